//! Computes the statistics that a file of results keeps of the samples of a benchmark.

use super::digits::round_to_5_digits;
use super::laplace::LaplacePosterior;
use super::rank_test::rank_test;
use super::results::{BenchmarkResult, ResultNumber, weight};
use crate::cost::samples::quantile_interval;

/// The share of intervals that don't hold the median.
const ALPHA: f64 = 0.01;

/// Two sets of samples differ if chance makes sets so unlike in fewer cases than this (asv's choice).
const DIFFERENT: f64 = 0.002;

/// What is known of the samples of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleStatistics {
    /// Their median, which is the result.
    pub median: f64,
    /// The 99 % interval of the median; infinite for one sample.
    pub interval: (f64, f64),
    /// The lower and the upper quartile.
    pub quartiles: (f64, f64),
    /// How many there are.
    pub count: usize,
}

impl SampleStatistics {
    /// The statistics of samples, which are numbers; `None` of no samples.
    ///
    /// The interval's ends are samples, if enough lie outside of them (the sign test turned round). Where too few do, a
    /// posterior distribution for Laplace noise gives the end, if it lies outside of the samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let median = quantile(&sorted, 0.5);
        let (mut low, mut high) = quantile_interval(&sorted, 0.5, ALPHA);
        if (low.is_infinite() || high.is_infinite()) && sorted.len() > 1 {
            let posterior = LaplacePosterior::new(&sorted, median);
            if low.is_infinite() {
                low = least.min(posterior.quantile(ALPHA / 2.0));
            }
            if high.is_infinite() {
                high = most.max(posterior.quantile(1.0 - ALPHA / 2.0));
            }
        }
        let quartiles = (quantile(&sorted, 0.25), quantile(&sorted, 0.75));
        Some(Self { median, interval: (low, high), quartiles, count: sorted.len() })
    }

    /// The result without its samples: the median as it is, what is known of it with five digits.
    pub(super) fn result(&self) -> BenchmarkResult {
        let one = |number: f64| vec![ResultNumber::Number(round_to_5_digits(number))];
        BenchmarkResult {
            result: Some(vec![ResultNumber::Number(self.median)]),
            ci_99_low: one(self.interval.0),
            ci_99_high: one(self.interval.1),
            quartile_low: one(self.quartiles.0),
            quartile_high: one(self.quartiles.1),
            number: one(1.0),
            repeat: one(self.count as f64),
            ..BenchmarkResult::default()
        }
    }

    /// How much the result counts among others; `None` if the interval is infinite, or has no width.
    pub fn weight(&self) -> Option<f64> {
        weight(self.interval)
    }

    /// Half the distance of the quartiles.
    pub fn error(&self) -> f64 {
        (self.quartiles.1 - self.quartiles.0) / 2.0
    }
}

/// Whether two sets of samples differ by more than chance. Few samples do if the intervals of their medians are apart.
pub fn is_different((a, of_a): (&[f64], &SampleStatistics), (b, of_b): (&[f64], &SampleStatistics)) -> bool {
    if least_chance(a.len(), b.len()) < DIFFERENT {
        return rank_test(a, b).chance < DIFFERENT;
    }
    of_a.interval.1 < of_b.interval.0 || of_a.interval.0 > of_b.interval.1
}

/// The chance of one order of m and n samples: 1 over the binomial coefficient.
fn least_chance(m: usize, n: usize) -> f64 {
    (1..=m.min(n)).fold(1.0, |chance, k| chance * k as f64 / (m.max(n) + k) as f64)
}

/// The quantile of sorted samples, between two of them where it falls there.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let below = place.floor();
    let part = place - below;
    match sorted[below as usize..] {
        [low, high, ..] => (1.0 - part) * low + part * high,
        [last, ..] => last,
        [] => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn statistics_by_hand() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        // Of 10 samples, 0 lie below the median in 1 of 1024 sets, and 0 or 1 in 11.
        assert_eq!(quantile_interval(&ten, 0.5, ALPHA), (1.0, 10.0));
        let of = SampleStatistics::of(&ten).map(|of| (of.median, of.quartiles, of.weight(), of.error()));
        assert_eq!(of, Some((5.5, (3.25, 7.75), Some(2.0 / 9.0), 2.25)));
        assert_eq!(SampleStatistics::of(&[]), None);
    }

    #[test]
    fn one_sample_and_equal_samples_have_no_weight() {
        let one = SampleStatistics::of(&[4.0]).map(|of| (of.interval, of.weight()));
        assert_eq!(one, Some(((f64::NEG_INFINITY, f64::INFINITY), None)));
        assert_eq!(SampleStatistics::of(&[4.0; 3]).and_then(|of| of.weight()), None);
    }

    #[test]
    fn few_samples_differ_if_their_intervals_are_apart() {
        let differ = |a: &[f64], b: &[f64]| {
            SampleStatistics::of(a).zip(SampleStatistics::of(b)).map(|of| is_different((a, &of.0), (b, &of.1)))
        };
        assert_eq!(differ(&[1.0, 1.0], &[2.0, 2.0]), Some(true));
        assert_eq!(differ(&[1.0], &[2.0]), Some(false), "one sample has no interval");
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(samples in prop::collection::vec(-5f64..5.0, 2..40)) {
            let of = SampleStatistics::of(&samples).ok_or_else(|| TestCaseError::fail("none"))?;
            prop_assert!(of.interval.0 <= of.median && of.median <= of.interval.1);
            prop_assert!(of.quartiles.0 <= of.median && of.median <= of.quartiles.1);
        }
    }
}
