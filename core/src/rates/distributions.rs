//! Computes tails and quantiles of the normal distribution and of Student's t.

use std::f64::consts::{PI, TAU};

/// The z for which P(|Z| < z) of a normal Z is `level`. Newton's steps from 0 grow to it and never past
/// it, as the function is concave.
pub(crate) fn normal_quantile(level: f64) -> f64 {
    let mut z = 0.0_f64;
    for _ in 0..60 {
        let density = (-0.5 * z * z).exp() / TAU.sqrt();
        let step = (0.5 * level - above_the_mean(z)) / density;
        z += step;
        if step < 1e-15 {
            break;
        }
    }
    z
}

/// P(0 < Z < z) of a normal Z (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.2.11).
fn above_the_mean(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > 1e-17 * sum {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum * (-0.5 * z * z).exp() / TAU.sqrt()
}

/// P(|T| > t) of Student's T with so many degrees of freedom, which need not be whole, t from 0 up; 1 for no degrees.
///
/// It is the incomplete beta function I_x(n/2, 1/2) at x = n / (n + t²) (Abramowitz and Stegun, 26.7.1), summed from
/// the side on which its series converges fast.
pub(crate) fn two_sided_tail(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let (a, square) = (degrees / 2.0, t * t);
    let inner = Part { of_one: degrees / (degrees + square), ln: -(square / degrees).ln_1p() };
    let outer = Part { of_one: square / (degrees + square), ln: -(degrees / square).ln_1p() };
    let beta = beta_half(a);
    let tail = if inner.of_one < 0.5 {
        incomplete_beta(inner, outer, a, 0.5) / beta
    } else {
        1.0 - incomplete_beta(outer, inner, 0.5, a) / beta
    };
    tail.clamp(0.0, 1.0)
}

/// The t that |T| exceeds with this probability, which is above 0 and below 1; infinite for no degrees.
pub(crate) fn two_sided_quantile(probability: f64, degrees: f64) -> f64 {
    two_sided_quantile_from(normal_quantile((1.0 - probability).min(FARTHEST_START)), probability, degrees)
}

/// The normal quantile of a higher level would suffer from the rounding of `1 - probability`.
const FARTHEST_START: f64 = 1.0 - 1e-9;

/// [`two_sided_quantile`] by Newton's steps from a `start` above 0. They go by the logarithms of t and of its tail:
/// as that function falls ever faster, with a slope of no more than the degrees, each step after the first comes nearer.
pub(super) fn two_sided_quantile_from(start: f64, probability: f64, degrees: f64) -> f64 {
    if degrees.is_nan() || degrees <= 0.0 {
        return f64::INFINITY;
    }
    let scale = 2.0 / (degrees.sqrt() * beta_half(degrees / 2.0));
    let mut t = start;
    for _ in 0..60 {
        let tail = two_sided_tail(t, degrees);
        let density = scale * (-0.5 * (degrees + 1.0) * (t * t / degrees).ln_1p()).exp();
        let step = (tail / probability).ln() * tail / (t * density);
        t *= step.exp();
        if step.abs() < 1e-14 || !t.is_normal() {
            break;
        }
    }
    // So few degrees that the number would be too large to be written.
    if t.is_finite() { t } else { f64::INFINITY }
}

/// A part of one, with its logarithm, which is exact where the part is nearly all of it.
#[derive(Clone, Copy)]
struct Part {
    of_one: f64,
    ln: f64,
}

/// I_x(a, b) B(a, b) with y = 1 - x (Abramowitz and Stegun, 26.5.4).
fn incomplete_beta(x: Part, y: Part, a: f64, b: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        term *= x.of_one * (a + b + n) / (a + 1.0 + n);
        sum += term;
        n += 1.0;
    }
    sum * (a * x.ln + b * y.ln).exp() / a
}

/// B(a, 1/2), from the ratio of gammas for large a (Abramowitz and Stegun, 6.1.47) down to a.
fn beta_half(a: f64) -> f64 {
    let (mut large, mut factor) = (a, 1.0);
    while large < 40.0 {
        factor *= (large + 0.5) / large;
        large += 1.0;
    }
    let inverse = large.recip();
    let small = inverse * (21.0 / 32768.0 - inverse * 399.0 / 262_144.0);
    let ratio = 1.0 + inverse * (1.0 / 8.0 + inverse * (1.0 / 128.0 - inverse * (5.0 / 1024.0 + small)));
    factor * (PI / large).sqrt() * ratio
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tails_of_tables() {
        // Printed tables of Student's t, and the arctangent that one degree is.
        let tables =
            [(12.706_205, 1.0, 0.05), (4.032_143, 5.0, 0.01), (2.228_139, 10.0, 0.05), (3.373_453, 100.0, 0.001_058)];
        for (t, degrees, tail) in tables {
            assert!((two_sided_tail(t, degrees) - tail).abs() < 1e-6, "{t} {degrees}: {}", two_sided_tail(t, degrees));
        }
        for t in [0.0, 0.3, 1.0, 30.0] {
            let arc = 1.0 - 2.0 / std::f64::consts::PI * f64::atan(t);
            assert!((two_sided_tail(t, 1.0) - arc).abs() < 1e-9, "{t}");
        }
        assert_eq!(
            [two_sided_tail(f64::INFINITY, 3.0), two_sided_tail(f64::NAN, 3.0), two_sided_tail(2.0, 0.0)],
            [0.0, 1.0, 1.0]
        );
    }

    #[test]
    fn quantiles_of_tables() {
        // Printed tables; between whole degrees, by integrating the density in small steps.
        let tables = [
            (0.05, 1.0, 12.706_205),
            (0.05, 2.0, 4.302_653),
            (0.01, 30.0, 2.749_996),
            (0.001, 120.0, 3.373_453),
            (0.05, 1e19, 1.959_964),
            (0.05, 1.6, 5.517_245),
            (0.01, 1.6, 15.330_933),
        ];
        for (probability, degrees, t) in tables {
            let quantile = two_sided_quantile(probability, degrees);
            assert!((quantile / t - 1.0).abs() < 1e-6, "{probability} {degrees}: {quantile}");
        }
        assert_eq!([0.0, -1.0, f64::NAN, 1e-3].map(|degrees| two_sided_quantile(0.05, degrees)), [f64::INFINITY; 4]);
    }

    proptest! {
        #[test]
        fn tails_fall_with_t_and_with_degrees(t in 0f64..100.0, degrees in 1f64..1000.0) {
            let tail = two_sided_tail(t, degrees);
            prop_assert!((0.0..=1.0).contains(&tail));
            prop_assert!(two_sided_tail(t * 1.1 + 0.01, degrees) <= tail + 1e-12);
            prop_assert!(two_sided_tail(t, degrees * 1.1) <= tail + 1e-12);
            if tail > 1e-9 {
                let back = two_sided_quantile(tail.min(1.0 - 1e-9), degrees);
                prop_assert!((two_sided_tail(back, degrees) - tail).abs() < 1e-8);
            }
        }
    }
}
