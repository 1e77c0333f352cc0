//! Computes what events counted in a row of regions, with an interval where they were counted in turns.

use crate::markers::{MarkedCalls, MarkerCost};
use crate::snapshot::{EventCounts, EventMarker, Snapshot};

/// What an event counted in the calls of a row, without what the markers add.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventTotal {
    /// Counts in all calls. Where the event was counted for a part of the time, this is estimated.
    pub count: f64,
    /// Half the width of the 95 % interval of [`EventTotal::count`]: 0 where all was counted, `None` where a part was
    /// counted in a single stay on the counters.
    pub error: Option<f64>,
    /// The standard error of [`EventTotal::count`], from which that follows.
    pub standard_error: Option<f64>,
    /// Its degrees of freedom.
    pub degrees: u64,
    /// Counts in the region alone, estimated in the same way. `None` where it was never counted there, and while a region
    /// that was opened in a call has outlasted it.
    pub self_count: Option<f64>,
    /// Of a call.
    pub mean: f64,
    /// Sample variance of calls that were counted, with the markers of regions within; `None` of one call.
    pub variance: Option<f64>,
    /// The least of a call that was counted.
    pub min: f64,
    /// The most, as above.
    pub max: f64,
    /// Calls in which it was counted for all or a part of the time.
    pub calls: u64,
    /// Calls in which it wasn't counted at all.
    pub missing_calls: u64,
    /// The part of the time of calls in which it was counted.
    pub run_ratio: f64,
    /// What the markers added, which was taken off.
    pub markers: f64,
    /// How much more they may have added: by so much the count may be too large.
    pub marker_error: f64,
    /// What was counted without being estimated: but for the markers, no total is less.
    pub counted: f64,
}

impl EventTotal {
    /// The interval, at the level of [`EventTotal::error`]; `None` where it isn't known.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let error = self.error?;
        let low = (self.count - error).max(self.counted) - self.marker_error;
        // Where all was taken off, it may have been too much as well as too little.
        let high = if self.count == 0.0 { error.max(self.marker_error) } else { self.count + error };
        Some((low.max(0.0), high))
    }

    /// The larger side of that interval; 0 where the count is exact.
    pub fn half_width(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        Some((self.count - low).max(high - self.count))
    }
}

/// What an event counted in the calls of a row: the sums that its [total](Self::total) follows from. All of it grows while
/// the program runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EventSums {
    /// In the region, with those within.
    pub all: EventCounts,
    /// In the region alone.
    pub alone: CountedPart,
    /// What the markers added to [`EventSums::all`].
    pub markers: f64,
    /// What they added to [`EventSums::alone`].
    pub self_markers: f64,
    /// What they add to the count of a call.
    pub call_marker: f64,
    /// How much more than [`EventSums::markers`] they may have added.
    pub marker_error: f64,
}

/// What was counted, and in what part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedPart {
    /// Counts, not scaled.
    pub sum: u64,
    /// Time that was to be counted, in nanoseconds.
    pub enabled_ns: u64,
    /// The part of it that was.
    pub running_ns: u64,
}

impl EventSums {
    /// What no call adds up to.
    const NOTHING: Self = Self {
        all: EventCounts {
            calls: 0,
            missing: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
            scaled: 0.0,
            squares: 0.0,
            squares_per_ns: 0.0,
            stays: 0,
            enabled_ns: 0,
            running_ns: 0,
        },
        alone: CountedPart { sum: 0, enabled_ns: 0, running_ns: 0 },
        markers: 0.0,
        self_markers: 0.0,
        call_marker: 0.0,
        marker_error: 0.0,
    };

    /// The total of a row with so many calls; `None` where the event was never counted.
    pub fn total(&self, calls: u64) -> Option<EventTotal> {
        let all = &self.all;
        let whole = all.part();
        let count = whole.estimated().filter(|_| all.calls > 0)?;
        let n = all.calls as f64;
        let without = |count: f64, markers: f64| (count - markers).max(0.0);
        let mean = all.scaled / n;
        Some(EventTotal {
            count: without(count, self.markers),
            error: standard_error(all).map(|error| error * student(freedom(all))),
            standard_error: standard_error(all),
            degrees: all.stays.saturating_sub(1),
            self_count: self.alone.estimated().map(|count| without(count, self.self_markers)),
            mean: without(count, self.markers) / calls.max(1) as f64,
            // Rounding may leave a little less than nothing.
            variance: (all.calls > 1).then(|| ((all.squares - n * mean * mean) / (n - 1.0)).max(0.0)),
            min: without(all.min as f64, self.call_marker),
            max: without(all.max as f64, self.call_marker),
            calls: all.calls,
            missing_calls: all.missing,
            run_ratio: if all.enabled_ns == 0 { 1.0 } else { all.running_ns as f64 / all.enabled_ns as f64 },
            markers: self.markers,
            marker_error: self.marker_error,
            counted: without(all.sum as f64, self.markers),
        })
    }

    /// The same of a row that a region has outlasted, if this is one: what was counted in the row alone isn't known then.
    pub fn total_of(&self, calls: u64, outlasted_by: Option<&str>) -> Option<EventTotal> {
        let total = self.total(calls)?;
        Some(EventTotal { self_count: total.self_count.filter(|_| outlasted_by.is_none()), ..total })
    }

    /// What was counted since earlier sums of the same row. The least and the most of a call stay those of all calls.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            all: self.all.since(&earlier.all),
            alone: self.alone.without(earlier.alone),
            markers: self.markers - earlier.markers,
            self_markers: self.self_markers - earlier.self_markers,
            call_marker: self.call_marker,
            marker_error: self.marker_error - earlier.marker_error,
        }
    }

    /// What was counted in the calls of this row and of another one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            all: self.all.plus(&other.all),
            alone: self.alone.plus(other.alone),
            markers: self.markers + other.markers,
            self_markers: self.self_markers + other.self_markers,
            call_marker: self.call_marker.max(other.call_marker),
            marker_error: self.marker_error + other.marker_error,
        }
    }

    /// Adds what a node counted in these calls.
    fn add(&mut self, calls: MarkedCalls, event: &EventCounts, within: (&Within, usize), marker: &EventMarker) {
        let (within, place) = within;
        let of_those = within.events.get(place).map_or_else(CountedPart::default, EventCounts::part);
        let cost = MarkerCost::from(marker);
        self.all = self.all.plus(event);
        // A region that was closed after the one around it may have more than that.
        self.alone = self.alone.plus(event.part().without(of_those));
        self.markers += calls.within(&cost) + within.calls.around(&cost);
        self.self_markers += calls.within(&cost) + within.children.beside(&cost);
        self.call_marker = marker.inner;
        self.marker_error += (calls.total() + within.calls.total()) * marker.excess;
    }
}

impl CountedPart {
    fn plus(self, other: Self) -> Self {
        Self {
            sum: self.sum.saturating_add(other.sum),
            enabled_ns: self.enabled_ns.saturating_add(other.enabled_ns),
            running_ns: self.running_ns.saturating_add(other.running_ns),
        }
    }

    fn without(self, other: Self) -> Self {
        Self {
            sum: self.sum.saturating_sub(other.sum),
            enabled_ns: self.enabled_ns.saturating_sub(other.enabled_ns),
            running_ns: self.running_ns.saturating_sub(other.running_ns),
        }
    }

    /// Counts in all the time that was to be counted: what was counted, over the part of the time that it took. `None`
    /// where it was never counted.
    fn estimated(self) -> Option<f64> {
        let sum = self.sum as f64;
        match (self.enabled_ns, self.running_ns) {
            (enabled, running) if enabled <= running => Some(sum),
            (_, 0) => None,
            (enabled, running) => Some(sum * (enabled as f64 / running as f64)),
        }
    }
}

impl EventCounts {
    /// What was counted later than these earlier counts. The least and the most of a call stay those of all calls.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            missing: self.missing.saturating_sub(earlier.missing),
            sum: self.sum.saturating_sub(earlier.sum),
            min: self.min,
            max: self.max,
            scaled: (self.scaled - earlier.scaled).max(0.0),
            squares: (self.squares - earlier.squares).max(0.0),
            squares_per_ns: (self.squares_per_ns - earlier.squares_per_ns).max(0.0),
            stays: self.stays.saturating_sub(earlier.stays),
            enabled_ns: self.enabled_ns.saturating_sub(earlier.enabled_ns),
            running_ns: self.running_ns.saturating_sub(earlier.running_ns),
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            missing: self.missing.saturating_add(other.missing),
            sum: self.sum.saturating_add(other.sum),
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            scaled: self.scaled + other.scaled,
            squares: self.squares + other.squares,
            squares_per_ns: self.squares_per_ns + other.squares_per_ns,
            stays: self.stays.saturating_add(other.stays),
            enabled_ns: self.enabled_ns.saturating_add(other.enabled_ns),
            running_ns: self.running_ns.saturating_add(other.running_ns),
        }
    }

    fn part(&self) -> CountedPart {
        CountedPart { sum: self.sum, enabled_ns: self.enabled_ns, running_ns: self.running_ns }
    }
}

/// Adds what a node counted in these calls to the sums of each event.
pub(crate) fn add_events(
    sums: &mut Vec<EventSums>,
    calls: MarkedCalls,
    events: &[EventCounts],
    within: &Within,
    snapshot: &Snapshot,
) {
    sums.resize(events.len().max(sums.len()), EventSums::NOTHING);
    for (place, (sum, event)) in sums.iter_mut().zip(events).enumerate() {
        let marker = snapshot.event_markers.get(place).copied().unwrap_or_default();
        sum.add(calls, event, (within, place), &marker);
    }
}

/// What is directly and indirectly within a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Within {
    /// Calls of all regions within.
    pub(crate) calls: MarkedCalls,
    /// Those of regions directly within.
    pub(crate) children: MarkedCalls,
    /// By event, what those directly within counted.
    events: Vec<EventCounts>,
}

impl Within {
    /// Adds a region that is directly within.
    pub(crate) fn add_child(&mut self, calls: MarkedCalls, events: &[EventCounts]) {
        self.children = self.children.plus(calls);
        self.events.resize(events.len().max(self.events.len()), EventCounts::default());
        self.events.iter_mut().zip(events).for_each(|(sum, event)| *sum = sum.plus(event));
    }
}

/// The standard error of [`CountedPart::estimated`], by the model in which the count of a stay on the counters varies by its
/// time: of `n` stays, in which `c` was counted in `r` ns, with the sums `C` and `R`, of the time `E` that was to be counted,
///
/// ```text
/// s² = (Σ c²/r - C²/R) / (n - 1),  error = √(s² · E · (E - R) / R)
/// ```
///
/// A stay has all calls that ended in it, and a longer call is one by itself. Calls instead of stays would make intervals far
/// too narrow, as calls that follow one another are alike.
///
///
/// This is the ratio estimator's error of R. M. Royall, "On finite population sampling theory under certain linear
/// regression models", Biometrika 57 (1970), 377-387, whose variance grows with the size. Half the 95 % interval is t(n - 1)
/// of it.
fn standard_error(counts: &EventCounts) -> Option<f64> {
    let (enabled, running) = (counts.enabled_ns as f64, counts.running_ns as f64);
    if enabled <= running {
        return Some(0.0);
    }
    let freedom = Some(freedom(counts)).filter(|&freedom| freedom > 0.0)?;
    let sum = counts.sum as f64;
    let variance = ((counts.squares_per_ns - sum * sum / running) / freedom).max(0.0);
    Some((variance * enabled * (enabled - running) / running).sqrt())
}

fn freedom(counts: &EventCounts) -> f64 {
    counts.stays.saturating_sub(1) as f64
}

/// The 97.5 % quantile of Student's t distribution: exact for 1 and 2 degrees of freedom, else the series 26.7.5 of
/// Abramowitz and Stegun, which is at most 0.8 % off.
fn student(freedom: f64) -> f64 {
    if freedom < 1.5 {
        return 12.706_204_736;
    }
    if freedom < 2.5 {
        return 4.302_652_730;
    }
    let z = 1.959_963_985_f64;
    let power = |exponent| z.powi(exponent);
    let first = (power(3) + z) / 4.0;
    let second = (5.0 * power(5) + 16.0 * power(3) + 3.0 * z) / 96.0;
    let third = (3.0 * power(7) + 19.0 * power(5) + 17.0 * power(3) - 15.0 * z) / 384.0;
    z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic")]

    use super::*;

    /// Counts of calls, each with what was counted, in how long, of how long.
    fn counts(calls: &[(u64, u64, u64)]) -> EventCounts {
        let mut sums = EventSums::NOTHING.all;
        for &(count, running, enabled) in calls {
            let scaled = if running == 0 { 0.0 } else { count as f64 * enabled as f64 / running as f64 };
            let is_missing = running == 0;
            let one = EventCounts {
                calls: u64::from(!is_missing),
                missing: u64::from(is_missing),
                sum: count,
                min: if is_missing { u64::MAX } else { scaled as u64 },
                max: scaled as u64,
                scaled,
                squares: scaled * scaled,
                squares_per_ns: if is_missing { 0.0 } else { (count * count) as f64 / running as f64 },
                stays: u64::from(!is_missing),
                enabled_ns: enabled,
                running_ns: running,
            };
            sums = sums.plus(&one);
        }
        sums
    }

    fn entered(calls: usize) -> MarkedCalls {
        MarkedCalls { entered: calls as u64, again: 0 }
    }

    fn total(calls: &[(u64, u64, u64)], inner: f64) -> Option<EventTotal> {
        let mut sums = EventSums::NOTHING;
        let marker = EventMarker { inner, outer: inner, ..EventMarker::default() };
        sums.add(entered(calls.len()), &counts(calls), (&Within::default(), 0), &marker);
        sums.total(calls.len() as u64)
    }

    #[test]
    fn all_the_time_is_exact() {
        let total = total(&[(30, 10, 10), (50, 10, 10), (40, 10, 10)], 10.0).unwrap();
        assert_eq!((total.count, total.error, total.interval()), (90.0, Some(0.0), Some((90.0, 90.0))));
        assert_eq!((total.mean, total.variance, total.min, total.max), (30.0, Some(100.0), 20.0, 40.0));
        assert_eq!((total.markers, total.run_ratio, total.self_count), (30.0, 1.0, Some(90.0)));
    }

    #[test]
    fn a_part_of_the_time_by_hand() {
        // 10 and 20 in 10 ns each, of 40 ns: 60. s² = (10 + 40 - 900/20)/1 = 5; E (E - R)/R = 40·20/20 = 40.
        let total = total(&[(10, 10, 10), (20, 10, 30)], 0.0).unwrap();
        assert_eq!((total.count, total.mean, total.run_ratio), (60.0, 30.0, 0.5));
        assert!((total.error.unwrap() - 12.706_204_736 * 200_f64.sqrt()).abs() < 1e-9, "{total:?}");
        // No less than the 30 that were counted.
        assert_eq!(total.interval().unwrap().0, 30.0);
    }

    #[test]
    fn a_call_that_was_not_counted_is_missing_and_not_zero() {
        let with = total(&[(10, 10, 10), (10, 10, 10), (0, 0, 10)], 0.0).unwrap();
        assert_eq!((with.count, with.calls, with.missing_calls, with.min), (30.0, 2, 1, 10.0));
        // Both calls counted the same: nothing says that the third differs.
        assert_eq!(with.error, Some(0.0));
        assert_eq!(total(&[(0, 0, 10)], 0.0), None);
        assert_eq!(total(&[(7, 5, 10)], 0.0).unwrap().error, None);
        assert_eq!(total(&[], 0.0), None);
    }

    #[test]
    fn what_regions_within_counted_is_not_the_regions_own() {
        let (outer, inner) = (counts(&[(100, 50, 50)]), counts(&[(30, 10, 10), (30, 10, 10)]));
        let mut within = Within { calls: entered(2), ..Within::default() };
        within.add_child(entered(2), &[inner]);
        let mut sums = EventSums::NOTHING;
        let marker = EventMarker { inner: 2.0, outer: 5.0, ..EventMarker::default() };
        sums.add(entered(1), &outer, (&within, 0), &marker);
        let total = sums.total(1).unwrap();
        // 100 less 2 and twice 5; within are 60 less twice 2; the rest is its own.
        assert_eq!((total.count, total.self_count), (88.0, Some(88.0 - 56.0)));
    }

    #[test]
    fn what_markers_may_have_added_makes_a_count_inexact() {
        let of = |calls: &[(u64, u64, u64)], excess| {
            let mut sums = EventSums::NOTHING;
            let within = Within { calls: entered(1), ..Within::default() };
            let marker = EventMarker { inner: 5.0, outer: 10.0, again: 10.0, excess };
            sums.add(entered(calls.len()), &counts(calls), (&within, 0), &marker);
            sums.total(calls.len() as u64).unwrap()
        };
        // 80 less twice 5 and once 10; three markers may have added 4 more each.
        let whole = of(&[(30, 10, 10), (50, 10, 10)], 4.0);
        assert_eq!((whole.count, whole.interval(), whole.half_width()), (60.0, Some((48.0, 60.0)), Some(12.0)));
        assert_eq!(of(&[(30, 10, 10), (50, 10, 10)], 0.0).half_width(), Some(0.0));
        let nothing = of(&[(5, 10, 10), (5, 10, 10)], 4.0);
        assert_eq!((nothing.count, nothing.interval()), (0.0, Some((0.0, 12.0))));
        // There is nothing below 0.
        assert_eq!(of(&[(30, 10, 10), (50, 10, 10)], 100.0).interval(), Some((0.0, 60.0)));
        // 50 of 100 in a half of the time: what was counted is 50 less 20.
        let half = of(&[(20, 10, 20), (30, 10, 20)], 4.0);
        let (low, high) = half.interval().unwrap();
        assert!((low, half.count) == (18.0, 80.0) && high > 80.0, "{half:?}");
    }

    #[test]
    fn what_came_since_is_estimated_by_itself() {
        let sums = |calls: &[(u64, u64, u64)]| {
            let mut sums = EventSums::NOTHING;
            sums.add(entered(calls.len()), &counts(calls), (&Within::default(), 0), &EventMarker::default());
            sums
        };
        let earlier = [(10, 10, 10), (20, 10, 20)];
        let later = sums(&[&earlier[..], &[(30, 10, 10), (10, 5, 10)]].concat()).since(&sums(&earlier));
        // 40 in 15 of 20 ns.
        let total = later.total(2).unwrap();
        assert!((total.count - 160.0 / 3.0).abs() < 1e-9 && (total.calls, total.run_ratio) == (2, 0.75), "{total:?}");
        assert_eq!(sums(&earlier).since(&sums(&earlier)).total(0), None);
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        let table = [(1, 12.706), (2, 4.303), (3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (120, 1.980)];
        for (freedom, wanted) in table {
            assert!((student(f64::from(freedom)) / wanted - 1.0).abs() < 0.008, "{freedom}");
        }
    }

    /// Numbers that are the same in every run: a step of D. E. Knuth's generator.
    fn drawn(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn intervals_hold_the_truth_where_counts_vary_by_time() {
        let (mut state, mut held) = (1, 0);
        for _ in 0..1000 {
            let mut truth = 0.0;
            let calls: Vec<_> = (0..40)
                .map(|_| {
                    // A call of ten stretches, of which some are counted.
                    let stretches: Vec<u64> = (0..10).map(|_| (drawn(&mut state) * 200.0) as u64).collect();
                    let running = (drawn(&mut state) * 11.0) as usize;
                    truth += stretches.iter().sum::<u64>() as f64;
                    (stretches[..running].iter().sum(), 100 * running as u64, 1000)
                })
                .collect();
            let (low, high) = total(&calls, 0.0).unwrap().interval().unwrap();
            held += u32::from((low..=high).contains(&truth));
        }
        assert!((930..=970).contains(&held), "{held} of 1000");
    }
}
