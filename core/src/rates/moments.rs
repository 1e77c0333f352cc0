//! Computes the mean and the spread of a rate over intervals.

/// The mean and variance of a rate over intervals, in one pass.
///
/// Each interval weighs as much as the time it was counted, so that mean x time is the count.
/// D. H. D. West, "Updating mean and variance estimates: an improved method", CACM 22(9), 1979;
/// the higher moments by P. Pebay, "Formulas for robust, one-pass parallel computation of
/// covariances and arbitrary-order statistical moments", SAND2008-6212.
///
/// ```
/// # extern crate perfprop_core as perfprop;
/// # use perfprop::rates::Moments;
/// let mut rate = Moments::default();
/// rate.add(100.0 / 2.0, 2.0); // 100 counts in 2 ms
/// rate.add(80.0 / 1.0, 1.0); //   80 counts in 1 ms
/// assert_eq!(rate.mean(), Some(60.0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    samples: u64,
    weight: f64,
    mean: f64,
    /// Weighted sums of the deviations from the mean to the second, third and fourth power.
    squares: f64,
    cubes: f64,
    fourths: f64,
}

/// The part of a number that rounding may change in a few operations: an f64 has 53 bits.
const ROUNDED: f64 = 1e-13;

impl Moments {
    /// Takes a sample; one without a positive, finite weight or value is none.
    pub fn add(&mut self, value: f64, weight: f64) {
        if !(weight > 0.0 && weight.is_finite() && value.is_finite()) {
            return;
        }
        self.samples += 1;
        let (before, after) = (self.weight, self.weight + weight);
        let deviation = value - self.mean;
        // How far the mean goes, and what the squares grow by.
        let step = deviation * weight / after;
        let growth = deviation * before * step;
        self.fourths += growth * step * step * (before * before - before * weight + weight * weight)
            / (weight * weight)
            + 6.0 * step * step * self.squares
            - 4.0 * step * self.cubes;
        self.cubes += growth * step * (before - weight) / weight - 3.0 * step * self.squares;
        self.squares += growth;
        self.mean += step;
        self.weight = after;
    }

    /// How many samples there are.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The weighted mean; `None` without a sample.
    pub fn mean(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.mean)
    }

    /// The sample variance, `n / (n - 1)` times the weighted mean square deviation; `None` below
    /// two samples. Samples that differ by no more than how numbers are rounded have none: 0.
    pub fn variance(&self) -> Option<f64> {
        let n = self.samples as f64;
        let variance = || self.squares / self.weight * n / (n - 1.0);
        (self.samples > 1)
            .then(variance)
            .map(|variance| if variance > (ROUNDED * self.mean).powi(2) { variance } else { 0.0 })
    }

    /// The standard error of the variance, `sqrt((m4 - v^2 (n - 3) / (n - 1)) / n)` with the fourth
    /// central moment m4, and no less than what normal samples have, `v sqrt(2 / (n - 1))`; `None`
    /// below two samples. (Cramer, "Mathematical Methods of Statistics", 1946, section 27.4.)
    pub fn variance_deviation(&self) -> Option<f64> {
        let (n, variance) = (self.samples as f64, self.variance()?);
        let square = (self.fourths / self.weight - variance * variance * (n - 3.0) / (n - 1.0)) / n;
        Some(square.max(variance * variance * 2.0 / (n - 1.0)).sqrt())
    }
}

/// The mean of numbers that weigh the same; `None` of none.
pub fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn variance_of_two_intervals_by_hand() {
        // 50 for 2 ms and 80 for 1 ms: mean 60; (2 x 100 + 1 x 400) / 3 x 2/1 = 400.
        let mut moments = Moments::default();
        moments.add(50.0, 2.0);
        assert_eq!((moments.mean(), moments.variance()), (Some(50.0), None));
        moments.add(80.0, 1.0);
        assert_eq!((moments.mean(), moments.variance()), (Some(60.0), Some(400.0)));
    }

    #[test]
    fn samples_without_weight_or_value_are_none() {
        let mut moments = Moments::default();
        for (value, weight) in [(1.0, 0.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            moments.add(value, weight);
        }
        assert_eq!(moments, Moments::default());
    }

    #[test]
    fn the_error_of_a_variance_by_hand() {
        // 1, 2, 3, 10: mean 4, deviations -3 -2 -1 6; squares 50, variance 50/3; fourths 81 + 16 + 1
        // + 1296 = 1394, m4 348.5. (348.5 - (50/3)^2 / 3) / 4 = 63.98 is less than the 2/3 (50/3)^2 of
        // normal samples.
        let mut moments = Moments::default();
        [1.0, 2.0, 3.0, 10.0].into_iter().for_each(|value| moments.add(value, 2.0));
        assert!((moments.fourths / moments.weight - 348.5).abs() < 1e-9, "{moments:?}");
        let expected = 50.0 / 3.0 * (2.0_f64 / 3.0).sqrt();
        assert!(moments.variance_deviation().is_some_and(|deviation| (deviation - expected).abs() < 1e-9));
        assert_eq!(Moments::default().variance_deviation(), None);
    }

    proptest! {
        #[test]
        fn mean_times_time_is_the_count(rounds in prop::collection::vec((0u64..1_000_000, 1u64..1_000), 1..50)) {
            let mut moments = Moments::default();
            let mut total = (0.0, 0.0);
            for (count, ms) in rounds {
                moments.add(count as f64 / ms as f64, ms as f64);
                total = (total.0 + count as f64, total.1 + ms as f64);
            }
            let mean = moments.mean().unwrap_or(f64::NAN);
            prop_assert!((mean * total.1 - total.0).abs() <= 1e-9 * total.0.max(1.0));
        }

        #[test]
        fn equal_weights_give_the_textbook_variance(values in prop::collection::vec(-1e6f64..1e6, 2..50)) {
            let mut moments = Moments::default();
            values.iter().for_each(|&value| moments.add(value, 3.0));
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let textbook = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
            let variance = moments.variance().unwrap_or(f64::NAN);
            prop_assert!((variance - textbook).abs() <= 1e-9 * textbook.max(1.0));
        }
    }
}
