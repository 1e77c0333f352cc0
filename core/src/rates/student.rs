//! Computes the tails of Student's t for any degrees of freedom, also between whole ones, as Welch's test has them.
//! [`Confidence::student`](super::Confidence::student) takes less time, and only whole ones.

/// P(|T| > t) of a T with so many degrees of freedom, t from 0 up; 1 for no degrees.
///
/// It is the incomplete beta function I_x(n/2, 1/2) at x = n / (n + t²) (Abramowitz and Stegun, "Handbook of
/// Mathematical Functions", 1964, 26.7.1), summed from the side on which its series converges fast.
pub(crate) fn two_sided_tail(t: f64, degrees: f64) -> f64 {
    if t.is_nan() || degrees.is_nan() || degrees <= 0.0 {
        return 1.0;
    }
    if t.is_infinite() {
        return 0.0;
    }
    let (a, square) = (degrees / 2.0, t * t);
    let (inner, outer) = (degrees / (degrees + square), square / (degrees + square));
    if inner < 0.5 { incomplete_beta(inner, outer, a, 0.5, a) } else { 1.0 - incomplete_beta(outer, inner, 0.5, a, a) }
}

/// The t that is exceeded on either side with this probability, which is above 0 and below 1: the other way
/// round, by halving.
pub(crate) fn two_sided_quantile(probability: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_tail(high, degrees) > probability && high < 1e15 {
        (low, high) = (high, high * 2.0);
    }
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if two_sided_tail(middle, degrees) > probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// I_x(a, b) with y = 1 - x, where one of a and b is 1/2 and the other is `free` (Abramowitz and Stegun, 26.5.4).
fn incomplete_beta(x: f64, y: f64, a: f64, b: f64, free: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        term *= x * (a + b + n) / (a + 1.0 + n);
        sum += term;
        n += 1.0;
    }
    (sum * (a * x.ln() + b * y.ln()).exp() / (a * beta_half(free))).clamp(0.0, 1.0)
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
    factor * (std::f64::consts::PI / large).sqrt() * ratio
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rates::Confidence;

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
    fn whole_degrees_are_as_intervals_have_them() {
        for degrees in [1, 2, 3, 8, 29, 200] {
            let half_width = Confidence::DEFAULT.student(degrees);
            let quantile = two_sided_quantile(0.05, degrees as f64);
            assert!((quantile / half_width - 1.0).abs() < 1e-6, "{degrees}: {quantile} {half_width}");
        }
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
