//! Computes the tails of the normal distribution, also those far out.

use std::f64::consts::TAU;

/// From here on the fraction needs fewer terms than the series.
const FAR: f64 = 3.0;

/// P(Z > z) of a normal Z with mean 0 and variance 1: by the series (Abramowitz and Stegun, "Handbook of Mathematical
/// Functions", 1964, 26.2.11) near 0 and the continued fraction (26.2.14) far out.
pub fn normal_tail(z: f64) -> f64 {
    if z.is_nan() {
        f64::NAN
    } else if z < 0.0 {
        1.0 - normal_tail(-z)
    } else if z < FAR {
        let (mut term, mut sum, mut odd) = (z, 0.0, 1.0);
        while term > 1e-18 * sum {
            sum += term;
            odd += 2.0;
            term *= z * z / odd;
        }
        0.5 - density(z) * sum
    } else {
        let fraction = (1..=80).rev().fold(z, |below, k| z + f64::from(k) / below);
        density(z) / fraction
    }
}

fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / TAU.sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tails_of_tables() {
        // Abramowitz and Stegun, tables 26.1 and 26.2.
        let tails = [
            (0.0, 0.5),
            (1.0, 0.158_655_253_931_457_05),
            (2.0, 0.022_750_131_948_179_21),
            (3.0, 1.349_898_031_630_094_6e-3),
            (5.0, 2.866_515_718_791_939_4e-7),
            (10.0, 7.619_853_024_160_527e-24),
            (-1.0, 0.841_344_746_068_542_9),
        ];
        for (z, tail) in tails {
            assert!((normal_tail(z) - tail).abs() < 1e-12 * tail, "{z}: {}", normal_tail(z));
        }
        assert!(normal_tail(f64::NAN).is_nan());
        assert_eq!([normal_tail(f64::INFINITY), normal_tail(f64::NEG_INFINITY)], [0.0, 1.0]);
    }

    proptest! {
        #[test]
        // Further down, the tail is 1 to as many digits as there are.
        fn tails_fall(z in -7f64..8.0, further in 0.001f64..1.0) {
            prop_assert!(normal_tail(z + further) < normal_tail(z));
        }
    }
}
