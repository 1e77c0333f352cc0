//! Holds what sums say of an event against what was counted of it at other times.
//!
//! Of `a = b + c` a slice without c says of it a - b, and another slice counts it. If the sum holds, both are the same
//! on average. Where c is small beside the others, this shows an error of the sum much sooner than the means of a, b
//! and c do.

use super::timed_count::TimedCount;
use crate::rates::Delta;
use crate::units::CpuNs;

/// Differences between rates counted and derived: over the run, and lately.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residual {
    counted: TimedCount,
    derived: TimedCount,
    was_counted: bool,
    run: Differences,
    lately: Differences,
}

/// A mean of differences, the older ones weighing less.
#[derive(Clone, Copy, Debug)]
struct Differences {
    kept: f64,
    weight: f64,
    squared_weight: f64,
    sum: f64,
    squares: f64,
}

/// A mean with the square of its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeanDifference {
    pub(super) mean: f64,
    pub(super) variance: f64,
}

/// What is kept of recent differences at each next one: a sum that holds no more is put aside after some ten.
const LATELY: f64 = 0.95;

/// So many differences say how large their mean's error is.
const ENOUGH: f64 = 5.0;

/// A mean may be so many times its standard error by chance: it is looked at again and again.
const CHANCE: f64 = 2.0;

impl Residual {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        let none = |kept| Differences { kept, weight: 0.0, squared_weight: 0.0, sum: 0.0, squares: 0.0 };
        let nothing = TimedCount::default();
        Self { counted: nothing, derived: nothing, was_counted: false, run: none(1.0), lately: none(LATELY) }
    }

    /// Takes what a round counted of the event; says whether there is one more difference. A stay on a counter is
    /// followed by times in which the event was derived, and the next stay ends both.
    pub(super) fn counted(&mut self, delta: Delta) -> bool {
        let is_counted = delta.running > CpuNs(0);
        let ends = is_counted && !self.was_counted && self.counted.time > 0.0 && self.derived.time > 0.0;
        if ends {
            let difference = self.counted.rate() - self.derived.rate();
            [&mut self.run, &mut self.lately].into_iter().for_each(|all| all.add(difference));
            (self.counted, self.derived) = (TimedCount::default(), TimedCount::default());
        }
        self.was_counted = is_counted;
        self.counted.add(delta.count as f64, delta.running.as_ms());
        ends
    }

    /// Takes what was derived for a time without a counter.
    pub(super) fn derived(&mut self, count: f64, time: CpuNs) {
        self.derived.add(count, time.as_ms());
    }

    /// Mean differences over the run and lately; `None` before there are enough.
    pub(super) fn means(&self) -> [Option<MeanDifference>; 2] {
        [self.run.mean(), self.lately.mean()]
    }
}

impl Differences {
    fn add(&mut self, difference: f64) {
        self.weight = self.kept * self.weight + 1.0;
        self.squared_weight = self.kept * self.kept * self.squared_weight + 1.0;
        self.sum = self.kept * self.sum + difference;
        self.squares = self.kept * self.squares + difference * difference;
    }

    fn mean(&self) -> Option<MeanDifference> {
        let number = self.weight * self.weight / self.squared_weight;
        let mean = self.sum / self.weight;
        let variance = (self.squares / self.weight - mean * mean).max(0.0) / (number - 1.0);
        (number >= ENOUGH - 1e-9).then_some(MeanDifference { mean, variance })
    }
}

/// What of means that should all be zero chance doesn't explain, each weighing by how sure it is.
pub(super) fn unexplained(means: impl Iterator<Item = MeanDifference>) -> f64 {
    let (mut weights, mut sum) = (0.0, 0.0);
    for MeanDifference { mean, variance } in means {
        // Steady rates have no variance.
        let weight = 1.0 / variance.max(f64::MIN_POSITIVE.sqrt());
        (weights, sum) = (weights + weight, sum + weight * mean);
    }
    if weights == 0.0 {
        return 0.0;
    }
    let (mean, variance) = (sum / weights, 1.0 / weights);
    (mean * mean - CHANCE * CHANCE * variance).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::estimate::tests::{half, whole};

    #[test]
    fn a_stay_and_what_was_derived_until_the_next_make_a_difference_by_hand() {
        let mut residual = Residual::new();
        for cycle in 0..6 {
            // 10 a millisecond counted, 8 and 7 derived in turns.
            assert_eq!(residual.counted(whole(20)), cycle > 0);
            assert!(!residual.counted(whole(20)) && !residual.counted(half(None)));
            residual.derived(16.0 - 2.0 * f64::from(cycle % 2), CpuNs(2_000_000));
        }
        // Of 2, 3, 2, 3, 2: the variance of the mean is 0.24 / 4.
        let [run, lately] = residual.means();
        assert!((run.unwrap().mean - 2.4).abs() < 1e-12 && (run.unwrap().variance - 0.06).abs() < 1e-12, "{run:?}");
        assert_eq!(lately, None);
    }

    #[test]
    fn what_is_unexplained_by_hand() {
        let mean = |mean, variance| MeanDifference { mean, variance };
        assert_eq!(unexplained(std::iter::empty()), 0.0);
        // Two standard errors are chance; of 5 with a standard error of 1 the root of 25 - 4 is left.
        assert_eq!(unexplained([mean(2.0, 1.0)].into_iter()), 0.0);
        assert!((unexplained([mean(5.0, 1.0)].into_iter()) - 21.0f64.sqrt()).abs() < 1e-12);
        // The surer one counts for more: (4 x 1 + 1 x 6) / 5, with a variance of 0.2.
        let both = unexplained([mean(1.0, 0.25), mean(6.0, 1.0)].into_iter());
        assert!((both - (4.0f64 - 0.8).sqrt()).abs() < 1e-9, "{both}");
    }

    #[test]
    fn what_was_never_counted_and_derived_in_turn_has_no_difference() {
        let mut residual = Residual::new();
        assert_eq!(residual.means(), [None; 2]);
        // Counted all the time, and derived all the time.
        (0..20).for_each(|_| assert!(!residual.counted(whole(20))));
        (0..20).for_each(|_| residual.derived(16.0, CpuNs(2_000_000)));
        assert_eq!(residual.means(), [None; 2]);
    }

    proptest::proptest! {
        #[test]
        fn what_is_unexplained_is_at_most_the_farthest_mean(
            means in proptest::collection::vec((-9.0..9.0f64, 0.0..4.0f64), 0..6),
        ) {
            let means = means.into_iter().map(|(mean, variance)| MeanDifference { mean, variance });
            let farthest = means.clone().map(|mean| mean.mean.abs()).fold(0.0, f64::max);
            let found = unexplained(means);
            proptest::prop_assert!((0.0..=farthest + 1e-9).contains(&found), "{found} {farthest}");
        }
    }
}
