//! Says how sure the number of some runs is, and when it is sure enough to stop.

use crate::cost::samples::{Determinizer, median_interval, quantile_interval, variance_of_median};
use crate::rates::{Confidence, Error, Uncertain, normal_quantile};

/// Fewer runs say too little about their own spread to stop by it. Of sweeps that stop by their own intervals these hold
/// 0.91 to 0.96 of the time where 10 runs are enough to stop, and 0.93 to 0.96 from 20 on.
pub const LEAST_RUNS: usize = 20;

/// The number that stands for repeated measurements, with its 95 % interval; `None` without measurements.
///
/// The interval of a mean is by Student's t, that of a median as [`median_interval`] says: fewer than three measurements don't say how far off
/// they are. That of a percentile has measurements for its ends. It is unknown where too few lie beyond the percentile on either side;
/// nothing ever lies beyond the 0th and the 100th.
pub fn determined(determinizer: Determinizer, samples: &[f64]) -> Option<Uncertain> {
    let value = determinizer.value(samples)?;
    let error = match determinizer {
        Determinizer::Percentile(percent) => within(value, interval_of_percentile(percent, samples)),
        Determinizer::Median => {
            median_interval(samples, Confidence::DEFAULT).map_or(Error::Unknown, |ends| within(value, ends))
        }
        Determinizer::Mean => error_of(determinizer.variance(samples), samples.len()),
    };
    Some(Uncertain { value, error })
}

fn interval_of_percentile(percent: f64, samples: &[f64]) -> (f64, f64) {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_interval(&sorted, percent / 100.0, Confidence::DEFAULT.alpha())
}

fn within(value: f64, (low, high): (f64, f64)) -> Error {
    let (below, above) = (value - low, high - value);
    if below.is_finite() && above.is_finite() { Error::Within { below, above } } else { Error::Unknown }
}

/// How far the median of so many measurements may be off, at 95 % as in [`determined`], where only their quartiles are known, as
/// asv interpolates them.
pub fn error_of_median((low, high): (f64, f64), count: usize) -> Error {
    error_of(variance_of_median((high - low) / distance_of_quartiles(count), count), count)
}

/// How far apart the quartiles at (n + 3) / 4 and (3 n + 1) / 4 of n sorted Gaussian measurements are on average, in standard
/// deviations: those of few are nearer. The i-th stands where (i - 3/8) / (n + 1/4) of all are below (Blom, "Statistical Estimates and
/// Transformed Beta-Variables", 1958).
fn distance_of_quartiles(count: usize) -> f64 {
    let count = count as f64;
    2.0 * normal_quantile(2.0 * (count - 1.0) / (4.0 * count + 1.0))
}

fn error_of(variance: Option<f64>, count: usize) -> Error {
    let degrees = count.saturating_sub(1) as f64;
    variance.map_or(Error::Unknown, |variance| Error::of(Confidence::DEFAULT.student(degrees) * variance.sqrt()))
}

/// Whether measurements are known to this part of their number, so that no more of them are needed.
pub(super) fn is_narrow(determinizer: Determinizer, samples: &[f64], part: f64) -> bool {
    let width = || determined(determinizer, samples)?.error.half_width().zip(determinizer.value(samples));
    samples.len() >= LEAST_RUNS && width().is_some_and(|(half, value)| half <= part * value.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn three_runs_by_hand() {
        // Variance of the mean: 2/3 over 2; t with 2 degrees is 4.30265.
        let found = determined(Determinizer::Mean, &[1.0, 2.0, 3.0]);
        let half = found.and_then(|found| found.error.half_width()).unwrap_or_default();
        assert!((half - 4.302_65 * (1.0_f64 / 3.0).sqrt()).abs() < 1e-4, "{half}");
        assert_eq!(determined(Determinizer::Mean, &[1.0, 2.0]), Some(Uncertain { value: 1.5, error: Error::Unknown }));
        assert_eq!(determined(Determinizer::Median, &[]), None);
    }

    #[test]
    fn a_median_is_as_sure_as_its_quartiles_say() {
        // Of 9 the quartiles stand at 3 and 7: 53/74 of all are below the upper one, so that they are 1.14328 apart. sqrt(pi/2 / 9) times
        // 2.30600 with 8 degrees.
        let half = error_of_median((1.0, 2.143_28), 9).half_width().unwrap_or_default();
        assert!((half - 0.417_771 * 2.306_004).abs() < 1e-4, "{half}");
        assert_eq!([error_of_median((1.0, 1.0), 3), error_of_median((1.0, 2.0), 2)], [Error::of(0.0), Error::Unknown]);
        // Those of one are the same, and those of many 1.34898 apart.
        assert!(distance_of_quartiles(1) == 0.0 && (distance_of_quartiles(1_000_000) - 1.348_98).abs() < 1e-5);
        // Of 1 to 5 they are 1 2/3 and 4 1/3: sqrt(pi/2 / 5) * 2.66667 / 1.34898 * 2.77645 with 4 degrees.
        let of_samples =
            determined(Determinizer::Median, &[4.0, 1.0, 3.0, 2.0, 5.0]).and_then(|found| found.error.half_width());
        assert!(of_samples.is_some_and(|half| (half - 3.076_29).abs() < 1e-4), "{of_samples:?}");
    }

    #[test]
    fn a_percentile_is_as_sure_as_the_runs_around_it() {
        let runs: Vec<f64> = (1..=40).map(f64::from).collect();
        let error = |percent: f64| determined(Determinizer::Percentile(percent), &runs).map(|found| found.error);
        // The 36th of 40 is between the 32nd and the last.
        assert_eq!(error(90.0), Some(Error::Within { below: 4.0, above: 4.0 }));
        assert_eq!([0.0, 99.0, 100.0].map(error), [Some(Error::Unknown); 3]);
        assert!(
            is_narrow(Determinizer::Percentile(90.0), &runs, 0.12)
                && !is_narrow(Determinizer::Percentile(90.0), &runs, 0.11)
        );
        assert!(!is_narrow(Determinizer::Percentile(0.0), &[5.0; 40], 1.0), "nothing bounds the least");
    }

    #[test]
    fn intervals_of_percentiles_hold() {
        const SETS: usize = 4000;
        let mut random = SplitMix64::new(5);
        for (percent, count) in [(10.0, 40), (25.0, 20), (50.0, 10), (90.0, 40), (90.0, 100), (99.0, 400)] {
            let mut holds = || {
                let samples: Vec<f64> = (0..count).map(|_| random.uniform().powi(3)).collect();
                let bounds = determined(Determinizer::Percentile(percent), &samples).and_then(Uncertain::bounds);
                let truth = (percent / 100.0_f64).powi(3);
                bounds.is_some_and(|(low, high)| low <= truth && truth <= high)
            };
            let held = (0..SETS).filter(|_| holds()).count() as f64 / SETS as f64;
            // 0.95 less what 4,000 sets may be off by chance.
            assert!(held > 0.94, "{held} of p{percent} of {count}");
        }
    }

    /// In what part of sets of so many runs the interval holds, where one in ten is eight times as far off if `has_outliers`.
    fn coverage(count: usize, has_outliers: bool) -> f64 {
        const SETS: usize = 4000;
        let mut random = SplitMix64::new(count as u64);
        let mut error = || if has_outliers && random.uniform() < 0.1 { 8.0 } else { 1.0 } * random.normal();
        let mut holds = || {
            let samples: Vec<f64> = (0..count).map(|_| 100.0 + error()).collect();
            let bounds = determined(Determinizer::Median, &samples).and_then(Uncertain::bounds);
            bounds.is_some_and(|(low, high)| low <= 100.0 && 100.0 <= high)
        };
        (0..SETS).filter(|_| holds()).count() as f64 / SETS as f64
    }

    #[test]
    fn intervals_of_few_runs_hold() {
        for count in [3, 5, 6, 7, 9, 10, 15, 30] {
            let held = [coverage(count, false), coverage(count, true)];
            assert!(held.iter().all(|held| *held > 0.94), "{held:?} of {count}");
        }
    }

    proptest::proptest! {
        /// The quartiles of more measurements are never nearer, nor farther apart than those of all.
        #[test]
        fn quartiles_of_more_are_farther_apart(count in 2_usize..10_000) {
            let [fewer, more] = [count, count + 1].map(distance_of_quartiles);
            proptest::prop_assert!(0.0 < fewer && fewer < more && more < 1.348_98);
        }
    }

    #[test]
    fn runs_are_enough_once_their_interval_is_narrow() {
        let samples: Vec<f64> = (0..40).map(|run| 100.0 + f64::from(run % 5)).collect();
        // Of 40, 14 to 27 are in the interval, from 101 to 103: 1 of 102.
        assert!(
            is_narrow(Determinizer::Median, &samples, 0.0099) && !is_narrow(Determinizer::Median, &samples, 0.0097)
        );
        assert!(!is_narrow(Determinizer::Median, &[5.0; LEAST_RUNS - 1], 0.5), "too few");
        assert!(is_narrow(Determinizer::Median, &[5.0; LEAST_RUNS], 0.0) && !is_narrow(Determinizer::Mean, &[], 1.0));
    }

    #[test]
    fn intervals_of_runs_that_stop_by_them_hold_nearly_as_often() {
        let (mut random, mut held) = (SplitMix64::new(7), 0);
        const SWEEPS: usize = 500;
        for _ in 0..SWEEPS {
            let mut samples = Vec::new();
            while !is_narrow(Determinizer::Median, &samples, 0.05) {
                samples.push(1.0 + 0.1 * random.normal());
            }
            let bounds = determined(Determinizer::Median, &samples).and_then(Uncertain::bounds);
            held += usize::from(bounds.is_some_and(|(low, high)| low <= 1.0 && 1.0 <= high));
        }
        // 0.92 less what 500 sweeps may be off by chance.
        assert!(held as f64 / SWEEPS as f64 > 0.895, "{held} of {SWEEPS}");
    }

    proptest::proptest! {
        #[test]
        fn a_wider_tolerance_never_takes_more_runs(samples in proptest::collection::vec(1.0..1e6_f64, 0..40), part in 0.0..1.0_f64) {
            let narrow = is_narrow(Determinizer::Median, &samples, part);
            proptest::prop_assert!(!narrow || is_narrow(Determinizer::Median, &samples, part * 2.0));
        }
    }
}
