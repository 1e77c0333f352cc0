//! Computes what an event counted between two readings.

use std::fmt;
use std::ops::AddAssign;

use crate::sources::Reading;
use crate::units::CpuNs;

/// What one event counted between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Occurrences counted.
    pub count: u64,
    /// CPU time that passed.
    pub enabled: CpuNs,
    /// The part of it that the event was on a counter.
    pub running: CpuNs,
}

impl Delta {
    /// What came between `earlier` and `later`.
    ///
    /// # Errors
    /// Returns [`Backwards`] if a count or a time fell: then the readings are of no use together.
    pub fn between(earlier: Reading, later: Reading) -> Result<Self, Backwards> {
        let delta = || {
            Some(Self {
                count: later.count.checked_sub(earlier.count)?,
                enabled: later.enabled.checked_sub(earlier.enabled)?,
                running: later.running.checked_sub(earlier.running)?,
            })
        };
        delta().ok_or(Backwards)
    }

    /// The part of the time that the event was on a counter; 0 where no time passed.
    pub fn run_ratio(&self) -> f64 {
        if self.enabled.0 > 0 { self.running.0 as f64 / self.enabled.0 as f64 } else { 0.0 }
    }

    /// Counts per millisecond of CPU time on a counter; `None` if there was no such time.
    pub fn rate(&self) -> Option<f64> {
        (self.running.0 > 0).then(|| self.count as f64 / self.running.as_ms())
    }

    /// The variance of what a Poisson process of the same rate counted while the event was on no counter, where it was
    /// on one for some time: `(count + 1/2) (E - R) E / R^2`, the predictive variance under Jeffreys' prior (the
    /// posterior of the rate is a gamma distribution of the shape count + 1/2; Gelman and others, "Bayesian Data
    /// Analysis", 2013, section 2.6). It is what is known of an event that was counted rarely or never.
    pub(crate) fn unseen_variance(&self) -> f64 {
        let (all, seen) = (self.enabled.as_ms(), self.running.as_ms());
        (self.count as f64 + 0.5) * (all - seen) * all / (seen * seen)
    }

    /// How far above the scaled count such a process reaches, at so many standard deviations of a normal variable: a
    /// gamma distribution of that mean and variance (the quantile by E. B. Wilson and M. M. Hilferty, "The distribution
    /// of chi-square", 1931).
    pub(crate) fn most_unseen_above(&self, normal: f64) -> f64 {
        let (all, seen) = (self.enabled.as_ms(), self.running.as_ms());
        let shape = (self.count as f64 + 0.5) * (1.0 - seen / all);
        if shape <= 0.0 {
            return 0.0;
        }
        let quantile = shape * (1.0 - 1.0 / (9.0 * shape) + normal / (3.0 * shape.sqrt())).max(0.0).powi(3);
        (quantile * all / seen - self.count as f64 * (all - seen) / seen).max(0.0)
    }
}

impl AddAssign for Delta {
    /// Adds what was counted in the time after this one.
    fn add_assign(&mut self, next: Self) {
        self.count = self.count.saturating_add(next.count);
        self.enabled += next.enabled;
        self.running += next.running;
    }
}

/// A counter or a time that went backwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backwards;

impl fmt::Display for Backwards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a counter went backwards")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(count: u64, enabled: u64, running: u64) -> Reading {
        Reading { count, enabled: CpuNs(enabled), running: CpuNs(running) }
    }

    fn delta(count: u64, enabled_ms: u64, running_ms: u64) -> Delta {
        Delta { count, enabled: CpuNs(enabled_ms * 1_000_000), running: CpuNs(running_ms * 1_000_000) }
    }

    #[test]
    fn what_a_poisson_process_leaves_unseen_by_hand() {
        // (8 + 1/2) x 15 x 20 / 25; of an event that was never seen in half of 20 ms 1/2 x 10 x 20 / 100.
        assert_eq!([delta(8, 20, 5), delta(0, 20, 10)].map(|delta| delta.unseen_variance()), [102.0, 1.0]);
        // Nothing is left where it was counted all the time.
        assert_eq!(delta(8, 20, 20).unseen_variance(), 0.0);
    }

    #[test]
    fn how_much_a_poisson_process_leaves_unseen_at_most_by_hand() {
        // Never seen in half of 20 ms: shape 1/4, 0.25 (1 - 4/9 + 1.96 / 1.5)^3 = 1.610, times 2. Eight in a quarter:
        // shape 6.375, 6.375 (1 - 0.01743 + 0.25876)^3 = 12.20, times 4 is 48.8, less the 24 of the scaled count.
        let most = [delta(0, 20, 10), delta(8, 20, 5)].map(|delta| delta.most_unseen_above(1.96));
        assert!((most[0] - 3.22).abs() < 0.01 && (most[1] - 24.8).abs() < 0.1, "{most:?}");
        assert_eq!(delta(8, 20, 20).most_unseen_above(1.96), 0.0);
    }

    proptest::proptest! {
        /// Many counts are as a normal variable, and fewer reach farther for their deviation.
        #[test]
        fn what_is_unseen_of_many_counts_is_normal(count in 0..1_000_000u64, running in 1..100u64) {
            let delta = delta(count, 100, running);
            let (most, normal) = (delta.most_unseen_above(1.96), 1.96 * delta.unseen_variance().sqrt());
            proptest::prop_assert!(most.is_finite() && most >= 0.0);
            if count > 1000 && running < 100 {
                proptest::prop_assert!((most / normal - 1.0).abs() < 0.1, "{most} {normal}");
            }
        }
    }

    #[test]
    fn a_delta_is_the_difference_of_two_readings() {
        let between = Delta::between(reading(100, 20, 10), reading(180, 40, 15));
        assert_eq!(between, Ok(Delta { count: 80, enabled: CpuNs(20), running: CpuNs(5) }));
        assert_eq!(Delta::between(reading(100, 20, 10), reading(99, 40, 15)), Err(Backwards));
        assert_eq!(Delta::between(reading(100, 20, 10), reading(100, 20, 9)), Err(Backwards));
    }
}
