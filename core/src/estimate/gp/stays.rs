//! Estimates an event's total from its stays on the counters.

use super::super::timed_count::TimedCount;
use super::quiet::Quiet;
use super::regression::{MOST_REGRESSORS, Regression, WithRegressors};
use crate::rates::{Confidence, Moments};

/// The place of its time in a [`StayCounts`].
const RUNNING: usize = 1 + MOST_REGRESSORS;

/// The counts of a stay, and its time on a counter.
type StayCounts = [f64; 2 + MOST_REGRESSORS];

/// How the counts of an event's stays on the counters differ from its rate, and how they follow those of regressors.
///
/// Stays come in the order of time and evenly, so that differences between neighbours say how far a systematic sample
/// is off: its variance is half their mean square, over the number of stays (Cochran, Sampling Techniques, 8.5), times
/// the part of the time that wasn't counted. What differs is the count from that of the mean rate in the stay's time
/// (the same, 6.3): a stay of next to no time, in which the rate may be anything, moves no total.
///
/// A total is that of a regression (the same, 7.1): scaled, and put right by what regressors counted in the event's
/// stays against what they counted in all. Slopes are those of differences between neighbours on differences of
/// regressors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StaySpread {
    /// The counts in the stay so far.
    open: WithRegressors,
    running: f64,
    /// How long ago the stay began.
    length: f64,
    /// The time on no counter since a stay, and that between stays.
    gap: f64,
    gaps: Moments,
    /// Whether the event stayed on a counter when the last stay ended, as that was long: what follows is no gap.
    was_cut: bool,
    /// The last stay.
    last: Option<StayCounts>,
    /// Sums of products of differences between neighbours.
    products: [StayCounts; 2 + MOST_REGRESSORS],
    differences: f64,
    /// The counts while the event was on a counter, and that time, since there are these regressors; and the event's
    /// own before that.
    seen: WithRegressors,
    seen_ms: f64,
    before: TimedCount,
    /// The time on a counter in all stays that ended.
    ended: f64,
    pub(super) quiet: Quiet,
}

/// A total that an event's stays say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StayTotal {
    /// The scaled count.
    pub(crate) scaled: f64,
    /// What each regressor adds to it.
    pub(crate) added: [f64; MOST_REGRESSORS],
    /// Half of the 95 % interval; `None` before there are two stays.
    pub(crate) half_width: Option<f64>,
}

impl StayTotal {
    pub(crate) fn value(&self) -> f64 {
        self.scaled + self.added.iter().sum::<f64>()
    }
}

/// The half width of 95 % intervals over that of Student's t: bursts that fell between stays are in no difference.
const HALF_WIDTH: f64 = 1.25;
/// How much wider they are, divided by the number of stays: few stays have missed most of what a program does. With 3,
/// totals of runs of 0.5 s are covered nearly as often as those of long ones.
pub(crate) const FEW_STAYS: f64 = 3.0;
/// A stay ends after so many changes of what is counted, even if the event stays on a counter of one thread or another:
/// one stays for as many as there are counters.
const LONGEST: f64 = 5.5;
/// The variance of slopes counts so many times: they come from few differences, which aren't normal.
const SLOPES_VARIANCE: f64 = 2.0;
/// From so many differences between stays it is known how much counts scatter.
const LEAST_DIFFERENCES: f64 = 20.0;
/// After so many gaps between stays it is known whether they vary: by this part of their mean. Where each cycle has an
/// order of its own, gaps vary by 0.35 with two groups and by 0.44 to 0.46 with more; otherwise by what readings are
/// late.
const LEAST_GAPS: u64 = 4;
const GAPS_VARY: f64 = 0.25;

impl StaySpread {
    /// Takes a round's counts while the event was on a counter, that time, and the round's length; the
    /// counters change what they count after `rotation_ms`.
    pub(crate) fn push(&mut self, counts: WithRegressors, running: f64, length: f64, rotation_ms: f64) {
        self.gap += (length - running).max(0.0);
        if running > 0.0 {
            if self.running == 0.0 {
                if self.stays() > 0.0 && !self.was_cut {
                    self.gaps.add(self.gap, 1.0);
                }
                self.gap = 0.0;
            }
            for (place, count) in counts.into_iter().enumerate() {
                self.open[place] += count;
                self.seen[place] += count;
            }
            self.running += running;
            self.seen_ms += running;
            self.length += length;
        }
        let is_long = self.length >= LONGEST * rotation_ms;
        self.was_cut = running > 0.0 && is_long;
        if self.running > 0.0 && (running == 0.0 || is_long) {
            self.end();
        }
    }

    fn end(&mut self) {
        let [count, regressors @ ..] = self.open;
        self.quiet.end_stay(count, self.running, self.last.map(|last| last[0]));
        let mut stay = StayCounts::default();
        (stay[0], stay[RUNNING]) = (count, self.running);
        stay[1..RUNNING].copy_from_slice(&regressors);
        if let Some(before) = self.last {
            let steps: StayCounts = std::array::from_fn(|place| stay[place] - before[place]);
            for (row, step) in self.products.iter_mut().zip(steps) {
                row.iter_mut().zip(steps).for_each(|(product, other)| *product += step * other);
            }
            self.differences += 1.0;
        }
        self.ended += self.running;
        (self.last, self.open, self.running, self.length) = (Some(stay), WithRegressors::default(), 0.0, 0.0);
    }

    /// Forgets how rates differed, as the regressors are others from now on.
    pub(crate) fn forget_regressors(&mut self) {
        let (counted, seen_ms) = (self.seen[0], self.seen_ms);
        *self = Self { differences: 0.0, products: Default::default(), last: None, ..*self };
        (self.open, self.seen) = (WithRegressors::default(), WithRegressors::default());
        (self.running, self.length) = (0.0, 0.0);
        self.before.add(counted, seen_ms);
        self.seen_ms = 0.0;
    }

    /// How many stays ended.
    pub(crate) fn stays(&self) -> f64 {
        self.quiet.stays()
    }

    /// The mean time on a counter of a stay; `None` before one ended.
    pub(crate) fn stay_ms(&self) -> Option<f64> {
        (self.stays() > 0.0).then(|| self.ended / self.stays())
    }

    /// The variance of stays' counts over that of a Poisson process; `None` before so many stays that it is known, and
    /// of what never occurred.
    pub(crate) fn dispersion(&self) -> Option<f64> {
        let mut all = self.before;
        all.add(self.seen[0], self.seen_ms);
        let (rate, products) = (all.rate(), &self.products);
        let expected = rate * self.stay_ms()?;
        let squares = products[0][0] - 2.0 * rate * products[0][RUNNING] + rate * rate * products[RUNNING][RUNNING];
        (self.differences >= LEAST_DIFFERENCES && expected > 0.0)
            .then(|| 0.5 * squares.max(0.0) / self.differences / expected)
    }

    /// Whether stays come at moments that are drawn: the time between them varies.
    pub(crate) fn are_drawn(&self) -> bool {
        let enough = self.gaps.samples() >= LEAST_GAPS;
        let spread = self.gaps.variance().filter(|_| enough).zip(self.gaps.mean());
        spread.is_some_and(|(variance, mean)| variance.sqrt() > GAPS_VARY * mean)
    }

    /// The total over `enabled` ms of an event that was on a counter for a part of it. `regressors`: their mean rates
    /// since they are regressors; 0 for none.
    pub(crate) fn total(&self, enabled: f64, regressors: [f64; MOST_REGRESSORS]) -> StayTotal {
        let mut all = self.before;
        all.add(self.seen[0], self.seen_ms);
        let (seen_ms, mean) = (all.time, all.rate());
        let scaled = mean * enabled;
        let unseen = (1.0 - seen_ms / enabled).max(0.0);
        let regression = Regression::new(&self.of_rates(mean, &regressors), self.differences, mean, &regressors);
        let off = |&place: &usize| self.seen[1 + place] / self.seen_ms / regressors[place] - 1.0;
        let off: Vec<f64> = regression.regressors.iter().map(off).collect();
        let corrected = scaled * self.seen_ms / seen_ms;
        let mut added = [0.0; MOST_REGRESSORS];
        for ((slope, off), &place) in regression.slopes.iter().zip(&off).zip(&regression.regressors) {
            added[place] = -corrected * slope * off;
        }
        let half_width = (self.differences > 0.0).then(|| {
            let residual = 0.5 * regression.residual / self.differences / (self.differences + 1.0) * unseen;
            let of_slopes = SLOPES_VARIANCE * corrected.powi(2) * regression.variance_along(&off);
            let student = Confidence::DEFAULT.student(regression.degrees(self.differences));
            let few = 1.0 + FEW_STAYS / (self.differences + 1.0);
            HALF_WIDTH * few * student * (residual * enabled.powi(2) + of_slopes).sqrt()
        });
        StayTotal { scaled, added, half_width }
    }

    /// Sums of products of differences between neighbours, of what stays counted more than the mean rates do in their
    /// time, over the mean time of a stay: as of rates, where all stays are of one length.
    fn of_rates(&self, mean: f64, regressors: &[f64; MOST_REGRESSORS]) -> [WithRegressors; 1 + MOST_REGRESSORS] {
        let products = &self.products;
        let mean = |place: usize| if place == 0 { mean } else { regressors[place - 1] };
        let over = self.stay_ms().map_or(0.0, |stay| stay.powi(-2));
        let product = |a: usize, b: usize| {
            let of_times = mean(a) * products[RUNNING][b] + mean(b) * products[RUNNING][a];
            over * (products[a][b] - of_times + mean(a) * mean(b) * products[RUNNING][RUNNING])
        };
        std::array::from_fn(|a| std::array::from_fn(|b| product(a, b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scatter_as_those_of_a_poisson_process_or_more_by_hand() {
        let of = |counts: [f64; 2], stays: usize| {
            let mut spread = StaySpread::default();
            for stay in 0..stays {
                spread.push([counts[stay % 2], 0.0, 0.0, 0.0], 2.0, 2.0, 2.0);
                spread.push([0.0; 4], 0.0, 2.0, 2.0);
            }
            spread.dispersion()
        };
        // Stays of 8 and 12: differences of 4, a variance of 8, and 10 are expected.
        assert!(of([8.0, 12.0], 40).is_some_and(|dispersion| (dispersion - 0.8).abs() < 1e-9));
        assert!(of([0.0, 20.0], 40).is_some_and(|dispersion| (dispersion - 20.0).abs() < 1e-9));
        // Few stays don't tell, nor what never occurred.
        assert_eq!([of([8.0, 12.0], 20), of([0.0, 0.0], 40)], [None; 2]);
    }

    #[test]
    fn turns_are_drawn_where_the_time_between_them_varies_by_hand() {
        // Stays of 2 ms with gaps of so many milliseconds, in rounds of 2 ms.
        let are_drawn = |gaps: &[usize]| {
            let mut stays = StaySpread::default();
            for &gap in gaps {
                stays.push([1.0, 0.0, 0.0, 0.0], 2.0, 2.0, 2.0);
                (0..gap / 2).for_each(|_| stays.push([0.0; 4], 0.0, 2.0, 2.0));
            }
            stays.push([1.0, 0.0, 0.0, 0.0], 2.0, 2.0, 2.0);
            stays.are_drawn()
        };
        assert!(are_drawn(&[4, 16, 10, 18, 2]) && !are_drawn(&[10; 5]) && !are_drawn(&[4, 16, 10]));
        // Readings that are late: a mean of 10, and a deviation of 2.
        assert!(!are_drawn(&[8, 12, 8, 12, 8, 12, 8, 12, 8, 12]) && !are_drawn(&[]));
        // Two groups in turn, and readings that don't meet the switch: 6 ms off between 6 ms on.
        let mut stays = StaySpread::default();
        for running in [1.0, 2.0, 2.0, 1.0, 0.0, 0.0].repeat(5) {
            stays.push([running, 0.0, 0.0, 0.0], running, 2.0, 2.0);
        }
        assert!(stays.gaps.mean().is_some_and(|mean| (mean - 6.0).abs() < 1e-9) && !stays.are_drawn());
        // A stay of 32 ms is cut after 24, and what follows is no gap: 64 ms off each time.
        let mut stays = StaySpread::default();
        for running in [[4.0; 8], [0.0; 8], [0.0; 8]].concat().repeat(6) {
            stays.push([running, 0.0, 0.0, 0.0], running, 4.0, 4.0);
        }
        assert!(stays.gaps.mean().is_some_and(|mean| (mean - 64.0).abs() < 1e-9) && !stays.are_drawn());
    }

    #[test]
    fn a_stay_ends_in_time_where_the_event_is_never_off_by_hand() {
        // Half of each round of 4 ms: stays of six rounds, 12 ms on a counter, with 1 and 3 a millisecond in turn.
        let mut stays = StaySpread::default();
        for round in 0..24 {
            let count = if round / 6 % 2 == 0 { 2.0 } else { 6.0 };
            stays.push([count, 0.0, 0.0, 0.0], 2.0, 4.0, 4.0);
        }
        assert_eq!((stays.stays(), stays.stay_ms()), (4.0, Some(12.0)));
        // Three differences with a variance of 2 each, over four stays, of which half wasn't seen; four degrees.
        let expected = HALF_WIDTH * 1.75 * Confidence::DEFAULT.student(4.0) * (2.0f64 / 4.0 * 0.5).sqrt() * 96.0;
        let found = stays.total(96.0, [0.0; 3]).half_width;
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?} {expected}");
    }

    /// An event beside one that is always counted, in stays of 4 ms of 8: the counts of both in each half.
    fn beside(counts: &[[f64; 3]]) -> StayTotal {
        let mut stays = StaySpread::default();
        for &[count, regressor, _] in counts {
            stays.push([count, regressor, 0.0, 0.0], 4.0, 4.0, 4.0);
            stays.push([0.0; 4], 0.0, 4.0, 4.0);
        }
        let time = 8.0 * counts.len() as f64;
        let regressor = counts.iter().map(|[_, seen, unseen]| seen + unseen).sum::<f64>() / time;
        stays.total(time, [regressor, 0.0, 0.0])
    }

    #[test]
    fn a_total_follows_a_regressor_by_hand() {
        // Rates of 10, 30 and 20 a millisecond beside 100, 300 and 200; the regressor had 250 in the other halves.
        let found = beside(&[[40.0, 400.0, 1000.0], [120.0, 1200.0, 1000.0], [80.0, 800.0, 1000.0]]);
        // Means of 20 and 225: differences of 1 and -0.5, and of 200 / 225 and -100 / 225, fit without a rest.
        let slope = 225.0 / 200.0;
        assert_eq!(found.scaled, 480.0);
        let expected = -480.0 * slope * (200.0 / 225.0 - 1.0);
        assert!((found.added[0] - expected).abs() < 1e-3 && found.added[1..] == [0.0; 2], "{found:?} {expected}");
        assert!((found.value() - 20.0 * 24.0 * 1.125).abs() < 1e-3);
        assert!(found.half_width.is_some_and(|half_width| half_width < 1.0), "{found:?}");
    }

    #[test]
    fn a_stay_of_next_to_no_time_moves_no_error_by_hand() {
        // Stays of 4 ms at 10 a millisecond, and between the others one of 0.01 ms at 1,000, all half of their time.
        let mut stays = StaySpread::default();
        for (count, running) in [(40.0, 4.0), (10.0, 0.01), (40.0, 4.0)] {
            stays.push([count, 0.0, 0.0, 0.0], running, running, 4.0);
            stays.push([0.0; 4], 0.0, running, 4.0);
        }
        let found = stays.total(16.02, [0.0; 3]);
        // A rate of 90 / 8.01; the counts differ from it by -4.944, 9.888 and -4.944, twice 14.831 from one another.
        assert!((found.scaled - 180.0).abs() < 1e-9);
        let spread = (0.5 * 2.0 * 14.831_460_674f64.powi(2) / 2.0 / 3.0 * 0.5).sqrt() / (8.01 / 3.0) * 16.02;
        let expected = HALF_WIDTH * 2.0 * Confidence::DEFAULT.student(3.0) * spread;
        assert!(found.half_width.is_some_and(|found| (found - expected).abs() < 1e-6), "{found:?} {expected}");
        // Rates that differ as those do would have an error of many times the count.
        assert!(expected < 3.0 * found.scaled);
    }

    #[test]
    fn what_no_regressor_tells_of_is_scaled() {
        // A clock; one that is never counted; one stay.
        let clock = beside(&[[40.0, 400.0, 400.0], [120.0, 400.0, 400.0], [80.0, 400.0, 400.0]]);
        assert_eq!((clock.scaled, clock.added), (480.0, [0.0; 3]));
        let none = beside(&[[40.0, 0.0, 0.0], [120.0, 0.0, 0.0], [80.0, 0.0, 0.0]]);
        assert_eq!(none, clock);
        let one = beside(&[[40.0, 400.0, 800.0]]);
        assert_eq!((one.value(), one.half_width), (80.0, None));
    }

    #[test]
    fn regressors_that_are_multiples_of_one_another_share_the_slope() {
        let mut stays = StaySpread::default();
        for count in [40.0, 120.0, 80.0, 60.0] {
            stays.push([count, 10.0 * count, 20.0 * count, 0.0], 4.0, 4.0, 4.0);
            stays.push([0.0; 4], 0.0, 4.0, 4.0);
        }
        // Three quarters and a half: 187.5 a millisecond were seen of 250.
        let found = stays.total(32.0, [250.0, 500.0, 0.0]);
        assert!((found.added[0] - found.added[1]).abs() < 1e-3, "{found:?}");
        assert!((found.value() - 800.0).abs() < 0.1 * 800.0, "{found:?}");
    }

    #[test]
    fn other_regressors_leave_the_scaled_count() {
        let mut stays = StaySpread::default();
        stays.push([40.0, 1.0, 2.0, 3.0], 4.0, 4.0, 4.0);
        stays.forget_regressors();
        stays.push([80.0, 5.0, 0.0, 0.0], 4.0, 4.0, 4.0);
        assert_eq!(stays.total(16.0, [0.0; 3]), StayTotal { scaled: 240.0, added: [0.0; 3], half_width: None });
    }

    proptest::proptest! {
        #[test]
        fn a_total_has_no_nan(counts in proptest::collection::vec(proptest::array::uniform3(0.0f64..1e9), 1..20)) {
            let found = beside(&counts);
            proptest::prop_assert!(found.value().is_finite() && found.half_width.is_none_or(f64::is_finite), "{:?}", found);
        }
    }
}
