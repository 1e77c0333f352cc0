//! Degrees of freedom in, the quantile of Student's t distribution out.

/// The 97.5 % quantiles for 1 to 30 degrees of freedom, which bound 95 % two-sided.
const QUANTILES: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
    2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
    2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];

/// The same quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// The 97.5 % quantile of Student's t with `degrees` of freedom; infinite for none.
///
/// Above 30 by the Cornish-Fisher expansion in 1/degrees (Abramowitz and Stegun, 26.7.5), which is
/// then right to six digits.
pub fn quantile_975(degrees: u64) -> f64 {
    match usize::try_from(degrees) {
        Ok(0) => f64::INFINITY,
        Ok(degrees) if degrees <= QUANTILES.len() => QUANTILES[degrees - 1],
        _ => {
            let n = degrees as f64;
            let z = NORMAL;
            let first = (z.powi(3) + z) / 4.0;
            let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
            let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
            z + first / n + second / (n * n) + third / (n * n * n)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(|T| <= t) by integrating the density, with T = sqrt(n) tan(a): proportional to the
    /// integral of cos(a)^(n-1).
    fn two_sided_probability(t: f64, degrees: u64) -> f64 {
        let n = degrees as f64;
        let integral = |end: f64| {
            let steps = 200_000;
            let width = end / f64::from(steps);
            (0..steps).map(|i| ((f64::from(i) + 0.5) * width).cos().powf(n - 1.0) * width).sum::<f64>()
        };
        integral((t / n.sqrt()).atan()) / integral(std::f64::consts::FRAC_PI_2)
    }

    #[test]
    fn every_quantile_encloses_95_percent() {
        for degrees in (1..=30).chain([31, 60, 120]) {
            let probability = two_sided_probability(quantile_975(degrees), degrees);
            assert!((probability - 0.95).abs() < 1e-6, "{degrees} degrees: {probability}");
        }
    }

    #[test]
    fn no_degrees_of_freedom_bound_nothing_and_many_are_normal() {
        assert_eq!(quantile_975(0), f64::INFINITY);
        assert!((quantile_975(u64::MAX) - 1.959_964).abs() < 1e-9);
    }
}
