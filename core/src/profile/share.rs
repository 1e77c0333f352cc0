//! Computes the error of a path's share of all samples.

use crate::rates::{Confidence, Error};

/// The error of a share of so many samples: the ends of Wilson's interval, which stays between 0 and 1 and says
/// something of paths that were sampled once or never (E. B. Wilson, "Probable inference, the law of succession, and
/// statistical inference", 1927; L. D. Brown, T. T. Cai and A. DasGupta, "Interval estimation for a binomial
/// proportion", 2001):
///
/// ```text
/// (p + z²/2n ± z sqrt(p (1 - p)/n + z²/4n²)) / (1 + z²/n)
/// ```
///
/// Samples are taken as drawn one by one and alike. Those whose weights differ are worth fewer, so that `samples` need
/// not be whole; runs of samples that hang together make the true error larger. Unknown of no samples, and of what is
/// no share.
pub fn share_error(share: f64, samples: f64, confidence: Confidence) -> Error {
    if samples <= 0.0 || !(0.0..=1.0).contains(&share) {
        return Error::Unknown;
    }
    let (z, n) = (confidence.normal(), samples);
    let (z2, shrink) = (z * z, 1.0 + z * z / n);
    let middle = (share + z2 / (2.0 * n)) / shrink;
    let half = z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt() / shrink;
    Error::Within { below: (share - (middle - half)).max(0.0), above: (middle + half - share).max(0.0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sides(share: f64, samples: u64) -> (f64, f64) {
        match share_error(share, samples as f64, Confidence::DEFAULT) {
            Error::Within { below, above } => (below, above),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn half_of_a_hundred_by_hand() {
        // z² = 3.8415: middle 0.5, half 1.96 sqrt(0.0025 + 3.8415/40000) / 1.038415 = 0.0962.
        let (below, above) = sides(0.5, 100);
        assert!((below - 0.0962).abs() < 1e-4 && (above - 0.0962).abs() < 1e-4, "{below} {above}");
    }

    #[test]
    fn nothing_of_ten_may_be_more_and_all_of_ten_less() {
        // z² / (n + z²) = 3.8415 / 13.8415 = 0.2775.
        let (below, above) = sides(0.0, 10);
        assert!(below == 0.0 && (above - 0.2775).abs() < 1e-4, "{below} {above}");
        let (below, above) = sides(1.0, 10);
        assert!(above < 1e-12 && (below - 0.2775).abs() < 1e-4, "{below} {above}");
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        for (share, samples) in [(0.5, 0.0), (f64::NAN, 5.0), (1.5, 5.0), (-0.1, 5.0)] {
            assert_eq!(share_error(share, samples, Confidence::DEFAULT), Error::Unknown);
        }
    }

    proptest! {
        #[test]
        fn the_interval_is_within_the_whole_and_shrinks(part in 0u64..=1000, n in 1u64..100_000) {
            let share = part as f64 / 1000.0;
            let (below, above) = sides(share, n);
            prop_assert!(share - below >= -1e-9 && share + above <= 1.0 + 1e-9);
            let (fewer, more) = (sides(share, n * 4).0, sides(share, n * 4).1);
            prop_assert!(fewer <= below + 1e-12 && more <= above + 1e-12);
        }
    }
}
