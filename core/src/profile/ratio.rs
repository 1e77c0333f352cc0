//! Computes the ratio of two events that were sampled on the same paths.

use super::weight::Amount;
use crate::rates::{Confidence, Error, Uncertain};

/// So many times the weight of one event by that of another; `None` where the other wasn't met.
///
/// Weights are sums over samples, whose numbers vary as counts of rare events do: the logarithm of the ratio of two
/// such numbers has the variance 1/m + 1/n (D. Katz, J. Baptista, S. P. Azen and M. C. Pike, "Obtaining confidence
/// intervals for the risk ratio in cohort studies", Biometrics 34, 1978, for small probabilities). The interval is
///
/// ```text
/// ratio · exp(± z sqrt(1/m + 1/n))
/// ```
///
/// It takes all samples of an event as of one weight. Of no sample of the first event it is unknown how many more there
/// are.
pub fn sampled_ratio(of: Amount, to: Amount, times: f64, confidence: Confidence) -> Option<Uncertain> {
    if to.weight == 0 {
        return None;
    }
    let value = times * of.weight as f64 / to.weight as f64;
    if of.samples == 0 || to.samples == 0 {
        return Some(Uncertain { value, error: Error::Unknown });
    }
    let factor = (confidence.normal() * (1.0 / of.samples as f64 + 1.0 / to.samples as f64).sqrt()).exp();
    Some(Uncertain { value, error: Error::Within { below: value - value / factor, above: value * factor - value } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(samples: u64, weight: u64) -> Amount {
        Amount { samples, weight }
    }

    #[test]
    fn a_ratio_by_hand() {
        // 100 and 400 samples: sqrt(0.01 + 0.0025) = 0.1118, times 1.96 = 0.2191, e^0.2191 = 1.2450.
        let ratio = sampled_ratio(amount(100, 5_000), amount(400, 2_500), 1.0, Confidence::DEFAULT);
        let Some(Uncertain { value, error: Error::Within { below, above } }) = ratio else { panic!("{ratio:?}") };
        assert!((value - 2.0).abs() < 1e-12 && (below - 0.3936).abs() < 1e-3 && (above - 0.4900).abs() < 1e-3);
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        assert_eq!(sampled_ratio(amount(3, 9), Amount::ZERO, 1.0, Confidence::DEFAULT), None);
        let none = sampled_ratio(Amount::ZERO, amount(3, 9), 1000.0, Confidence::DEFAULT);
        assert_eq!(none, Some(Uncertain { value: 0.0, error: Error::Unknown }));
    }

    proptest! {
        #[test]
        fn more_samples_are_surer(m in 1u64..10_000, n in 1u64..10_000, times in 1.0..1e4_f64) {
            let ends = |m: u64, n: u64| {
                let ratio = sampled_ratio(amount(m, m), amount(n, n), times, Confidence::DEFAULT);
                let Some(Uncertain { value, error: Error::Within { below, above } }) = ratio else { return (0.0, 0.0, 0.0) };
                (value - below, value, value + above)
            };
            let (low, value, high) = ends(m, n);
            let (nearer_low, _, nearer_high) = ends(4 * m, 4 * n);
            prop_assert!(0.0 < low && low < value && value < high);
            prop_assert!(low < nearer_low && nearer_high < high);
        }
    }
}
