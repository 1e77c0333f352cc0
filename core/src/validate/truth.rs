//! Holds estimates against the true count, as far as that is known.

use crate::rates::{Confidence, Moments, Uncertain};

/// Errors below this part of the truth of other runs are none: `±<0.1%` is what is shown of them, and runs with pinned
/// events don't cost the kernel to the last instruction what runs with turns do.
const TOLD_APART: f64 = 0.001;

/// What an event counted in truth in a run that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrueCount {
    /// It was counted beside, in the same run.
    SameRun(f64),
    /// It was counted in other runs of the same command.
    OtherRuns {
        /// Mean of these runs.
        mean: f64,
        /// How far the truth of one more run is from that mean, as a standard deviation: `s sqrt(1 + 1/n)` of the
        /// spread s between n runs.
        deviation: f64,
        /// How many runs there were; at least 2.
        runs: u64,
    },
}

impl TrueCount {
    /// The truth by what other runs counted; `None` below two, as nobody knows how runs differ then.
    pub fn of_other_runs(counts: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut spread = Moments::default();
        counts.into_iter().for_each(|count| spread.add(count, 1.0));
        let (mean, variance, runs) = (spread.mean()?, spread.variance()?, spread.samples());
        Some(Self::OtherRuns { mean, deviation: (variance * (1.0 + 1.0 / runs as f64)).sqrt(), runs })
    }

    /// The count, or the mean over runs.
    pub fn count(self) -> f64 {
        match self {
            Self::SameRun(count) | Self::OtherRuns { mean: count, .. } => count,
        }
    }

    /// How far the truth of a single run is from it, as a standard deviation.
    pub fn deviation(self) -> f64 {
        match self {
            Self::SameRun(_) => 0.0,
            Self::OtherRuns { deviation, .. } => deviation,
        }
    }

    /// The least error that can be told from none.
    fn told_apart(self) -> f64 {
        match self {
            Self::SameRun(_) => 0.0,
            Self::OtherRuns { mean, .. } => TOLD_APART * mean.abs(),
        }
    }

    /// How far it is from it, as often as the confidence says (a prediction interval by Student's t).
    pub fn half_width(self, confidence: Confidence) -> f64 {
        match self {
            Self::OtherRuns { deviation, runs, .. } if deviation > 0.0 => {
                deviation * confidence.student((runs - 1) as f64)
            }
            Self::SameRun(_) | Self::OtherRuns { .. } => 0.0,
        }
    }
}

/// What an event counted in a run by CPU time, which tells how far a command had come where it was slower or had to
/// wait.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    /// CPU time and count at each reading; neither falls.
    points: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve from the beginning, where there is nothing.
    pub(super) fn new(readings: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut points = vec![(0.0, 0.0)];
        for (time, count) in readings {
            // A thread's time may be read a little earlier than another's.
            let (before, least) = points[points.len() - 1];
            if time > before {
                points.push((time, f64::max(count, least)));
            } else if let Some(last) = points.last_mut() {
                last.1 = f64::max(count, least);
            }
        }
        Self { points }
    }

    /// The count of all of the run.
    pub(super) fn total(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, count)| *count)
    }

    /// The count between two times; `None` where the run had ended before.
    pub(super) fn between(&self, (from, to): (f64, f64)) -> Option<f64> {
        Some(self.at(to)? - self.at(from)?)
    }

    /// The count up to a time, in proportion between readings.
    fn at(&self, time: f64) -> Option<f64> {
        let next = self.points.partition_point(|(at, _)| *at < time);
        let &(after, high) = self.points.get(next)?;
        let Some(&(before, low)) = next.checked_sub(1).and_then(|last| self.points.get(last)) else {
            return Some(high);
        };
        Some(low + (high - low) * (time - before) / (after - before))
    }
}

/// Whether an interval holds the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The truth is in the interval.
    Held,
    /// The truth is outside the interval.
    Missed,
    /// It may be either: the truth differs between runs by more than the interval is wide.
    Unclear,
}

/// Holds an interval against the truth. An interval that is right and a truth that varies are together as far apart as
/// the root of the sum of their squared half widths, as often as the confidence says. `None` without an interval. What
/// other runs counted tells no errors below a thousandth.
pub fn judge(estimate: Uncertain, truth: TrueCount, confidence: Confidence) -> Option<Judgement> {
    let (low, high) = estimate.bounds()?;
    let off = truth.count() - estimate.value;
    let own = if off < 0.0 { estimate.value - low } else { high - estimate.value };
    let own = own.max(truth.told_apart());
    let varies = truth.half_width(confidence);
    Some(match off.abs() <= own.hypot(varies) {
        false => Judgement::Missed,
        true if varies > own => Judgement::Unclear,
        true => Judgement::Held,
    })
}

/// How many intervals hold the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Intervals that hold it.
    pub held: u64,
    /// Intervals that don't.
    pub missed: u64,
    /// Intervals of which that can't be known.
    pub unclear: u64,
}

impl Coverage {
    /// Adds a judgement.
    pub fn add(&mut self, judgement: Judgement) {
        match judgement {
            Judgement::Held => self.held += 1,
            Judgement::Missed => self.missed += 1,
            Judgement::Unclear => self.unclear += 1,
        }
    }

    /// Adds those of another event.
    pub fn add_all(&mut self, other: Self) {
        self.held += other.held;
        self.missed += other.missed;
        self.unclear += other.unclear;
    }

    /// Intervals of which it is known.
    pub fn judged(self) -> u64 {
        self.held + self.missed
    }

    /// The part of those judged that hold the truth; `None` without any.
    pub fn share(self) -> Option<f64> {
        (self.judged() > 0).then(|| self.held as f64 / self.judged() as f64)
    }

    /// Whether so many misses would come by a chance of less than `alpha`, were each interval right as often as `level`
    /// says. Those that are unclear hold the truth as far as anybody knows.
    pub fn is_below(self, level: f64, alpha: f64) -> bool {
        at_least(self.missed, self.judged() + self.unclear, 1.0 - level) < alpha
    }
}

/// P(X >= count) of a binomial X of `all` tries, each of which happens with this probability, above 0 and below 1.
fn at_least(count: u64, all: u64, probability: f64) -> f64 {
    let (mut term, mut below) = (all as f64 * (1.0 - probability).ln(), 0.0);
    let odds = (probability / (1.0 - probability)).ln();
    for happened in 0..count.min(all + 1) {
        below += term.exp();
        term += ((all - happened) as f64 / (happened + 1) as f64).ln() + odds;
    }
    (1.0 - below).clamp(0.0, 1.0)
}

/// The error of some numbers: the root of their summed squared errors over that of the squared truths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RelativeError {
    /// It is so large, as a part of the truth; what the truth differs by between runs is taken off.
    Of(f64),
    /// It is below this, by which the truth differs between runs.
    Below(f64),
}

impl RelativeError {
    /// The error of these numbers; `None` without any, and where the truth is 0.
    pub fn of(numbers: impl IntoIterator<Item = (f64, TrueCount)>) -> Option<Self> {
        let (mut errors, mut varies, mut size) = (0.0, 0.0, 0.0);
        for (number, truth) in numbers {
            errors += (number - truth.count()).powi(2);
            varies += truth.deviation().powi(2);
            size += truth.count().powi(2);
        }
        if size == 0.0 {
            return None;
        }
        let own = errors - varies;
        Some(if varies > 0.0 && own <= varies {
            Self::Below((varies / size).sqrt())
        } else {
            Self::Of((own / size).sqrt())
        })
    }

    /// The error, or what it is below.
    pub fn size(self) -> f64 {
        match self {
            Self::Of(part) | Self::Below(part) => part,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::rates::Error;

    const LEVEL: Confidence = Confidence::DEFAULT;

    fn within(value: f64, below: f64, above: f64) -> Uncertain {
        Uncertain { value, error: Error::Within { below, above } }
    }

    #[test]
    fn the_truth_of_other_runs_by_hand() {
        // 98, 100, 102: mean 100, variance 4, of one more run 4 (1 + 1/3), t of 2 degrees 4.302653.
        let truth = TrueCount::of_other_runs([98.0, 100.0, 102.0]).unwrap();
        assert_eq!(truth.count(), 100.0);
        assert!((truth.deviation() - (16.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((truth.half_width(LEVEL) - 4.302_653 * (16.0f64 / 3.0).sqrt()).abs() < 1e-5);
        assert_eq!([TrueCount::of_other_runs([]), TrueCount::of_other_runs([1.0])], [None, None]);
        let same = TrueCount::of_other_runs([7.0, 7.0]).unwrap();
        assert_eq!([same.deviation(), same.half_width(LEVEL)], [0.0, 0.0]);
        assert_eq!(TrueCount::SameRun(7.0).half_width(LEVEL), 0.0);
        assert_eq!(TrueCount::of_other_runs([f64::NAN, 1.0]), None);
    }

    #[test]
    fn curves_are_read_between_their_readings() {
        let curve = Curve::new([(10.0, 100.0), (20.0, 400.0), (20.0, 420.0), (15.0, 410.0), (30.0, 420.0)]);
        assert_eq!(curve.total(), 420.0);
        assert_eq!(curve.between((0.0, 10.0)), Some(100.0));
        // Half of what comes in the first stretch, and a quarter of the second.
        assert_eq!(curve.between((5.0, 12.5)), Some(50.0 + 80.0));
        assert_eq!(curve.between((0.0, 30.0)), Some(420.0));
        assert_eq!([curve.between((0.0, 31.0)), curve.between((40.0, 50.0))], [None, None]);
        assert_eq!((Curve::new([]).total(), Curve::new([]).between((0.0, 0.0))), (0.0, Some(0.0)));
    }

    #[test]
    fn intervals_are_judged_by_the_side_on_which_the_truth_lies() {
        let judged = |estimate, truth| judge(estimate, TrueCount::SameRun(truth), LEVEL);
        assert_eq!(judged(within(100.0, 5.0, 20.0), 120.0), Some(Judgement::Held));
        assert_eq!(judged(within(100.0, 5.0, 20.0), 94.0), Some(Judgement::Missed));
        assert_eq!(judged(Uncertain::exact(3.0), 3.0), Some(Judgement::Held));
        assert_eq!(judged(Uncertain { value: 3.0, error: Error::Unknown }, 3.0), None);
    }

    #[test]
    fn a_truth_that_varies_widens_and_blurs() {
        // Half width 9.936: of 3 and 9.936 together 10.379.
        let truth = TrueCount::of_other_runs([98.0, 100.0, 102.0]).unwrap();
        let judged = |value: f64, half: f64| judge(within(value, half, half), truth, LEVEL);
        assert_eq!(judged(110.0, 3.0), Some(Judgement::Unclear));
        assert_eq!(judged(110.5, 3.0), Some(Judgement::Missed));
        assert_eq!(judged(110.5, 10.0), Some(Judgement::Held));
        // What is off by less than a thousandth of other runs is right, of the same run it isn't.
        let same = TrueCount::of_other_runs([1000.0, 1000.0]).unwrap();
        let judged = |value: f64, truth| judge(within(value, 0.1, 0.1), truth, LEVEL);
        assert_eq!([judged(1000.9, same), judged(1001.1, same)], [Some(Judgement::Held), Some(Judgement::Missed)]);
        assert_eq!(judged(1000.9, TrueCount::SameRun(1000.0)), Some(Judgement::Missed));
    }

    #[test]
    fn binomial_tails_by_hand() {
        // 1 - 0.95^10, and 1 - 0.95^10 - 10 x 0.05 x 0.95^9.
        assert!((at_least(1, 10, 0.05) - 0.401_263).abs() < 1e-6);
        assert!((at_least(2, 10, 0.05) - 0.086_138).abs() < 1e-6);
        assert_eq!([at_least(0, 10, 0.05), at_least(0, 0, 0.05)], [1.0, 1.0]);
        assert!(at_least(10, 10, 0.5) - 0.5f64.powi(10) < 1e-12 && at_least(11, 10, 0.5) < 1e-12);
        // Of 10,000 tries the median is the mean.
        assert!((at_least(2500, 10_000, 0.25) - 0.5).abs() < 0.01);
    }

    #[test]
    fn coverage_by_hand() {
        let mut coverage = Coverage::default();
        assert_eq!((coverage.share(), coverage.is_below(0.95, 0.05)), (None, false));
        [Judgement::Held, Judgement::Missed, Judgement::Unclear].into_iter().for_each(|one| coverage.add(one));
        coverage.add_all(Coverage { held: 2, ..Coverage::default() });
        assert_eq!((coverage.share(), coverage.judged()), (Some(0.75), 4));
        // Two of ten are likely by chance (0.086), three are not (0.012).
        assert!(!Coverage { held: 8, missed: 2, unclear: 0 }.is_below(0.95, 0.05));
        assert!(Coverage { held: 3, missed: 3, unclear: 4 }.is_below(0.95, 0.05));
    }

    #[test]
    fn errors_by_hand() {
        let same = |numbers: &[(f64, f64)]| {
            RelativeError::of(numbers.iter().map(|&(number, truth)| (number, TrueCount::SameRun(truth))))
        };
        // Off by 3 and 4 of 30 and 40.
        assert_eq!(same(&[(33.0, 30.0), (44.0, 40.0)]), Some(RelativeError::Of(0.1)));
        assert_eq!([same(&[]), same(&[(1.0, 0.0)])], [None, None]);
        assert_eq!(same(&[(5.0, 5.0)]), Some(RelativeError::Of(0.0)));
        // A truth that varies by 3 and a number that is off by 5: the error is 4, and below 3 nobody knows it.
        let truth = TrueCount::OtherRuns { mean: 100.0, deviation: 3.0, runs: 9 };
        assert_eq!(RelativeError::of([(105.0, truth)]), Some(RelativeError::Of(0.04)));
        assert_eq!(RelativeError::of([(104.0, truth)]), Some(RelativeError::Below(0.03)));
    }

    proptest! {
        #[test]
        fn stretches_of_a_curve_add_up(steps in prop::collection::vec((0u32..100, 0u32..1000), 1..20), cut in 0f64..1.0) {
            let mut now = (0.0, 0.0);
            let readings: Vec<_> = steps.iter().map(|&(time, count)| {
                now = (now.0 + f64::from(time), now.1 + f64::from(count));
                now
            }).collect();
            let curve = Curve::new(readings);
            let (end, middle) = (now.0, cut * now.0);
            let (first, second) = (curve.between((0.0, middle)).unwrap(), curve.between((middle, end)).unwrap());
            prop_assert!(first >= 0.0 && second >= 0.0);
            prop_assert!((first + second - curve.between((0.0, end)).unwrap()).abs() < 1e-6);
        }

        #[test]
        fn wider_intervals_never_miss_more(value in -1e3f64..1e3, half in 0f64..100.0, counts in prop::collection::vec(0f64..1e3, 2..9)) {
            let truth = TrueCount::of_other_runs(counts).unwrap();
            let judged = |half: f64| judge(within(value, half, half), truth, LEVEL).unwrap();
            if judged(half) != Judgement::Missed {
                prop_assert!(judged(half * 1.5 + 1.0) != Judgement::Missed);
            }
            prop_assert_eq!(judged(1e9), Judgement::Held);
        }

        #[test]
        fn tails_fall_with_the_count(all in 0u64..300, probability in 0.01f64..0.99) {
            let mut last = 1.0;
            for count in (0..=all).step_by(7) {
                let tail = at_least(count, all, probability);
                prop_assert!(tail <= last + 1e-9 && tail >= 0.0);
                last = tail;
            }
        }

        #[test]
        fn errors_keep_their_size_in_any_unit(numbers in prop::collection::vec((1f64..1e3, 1f64..1e3), 1..9), unit in 0.1f64..10.0) {
            let error = |unit: f64| {
                RelativeError::of(numbers.iter().map(|&(number, truth)| (number * unit, TrueCount::SameRun(truth * unit)))).unwrap()
            };
            prop_assert!((error(unit).size() - error(1.0).size()).abs() < 1e-9 * (1.0 + error(1.0).size()));
        }
    }
}
