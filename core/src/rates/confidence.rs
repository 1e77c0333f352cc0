//! Converts a confidence level into half widths in standard deviations.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, TAU};
use std::fmt;
use std::str::FromStr;

/// The most degrees of freedom for which the distribution is summed; above, it is nearly normal.
const SUMMED: u64 = 30;

/// Confidence level: above 0 and below 1, 0.95 by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    level: f64,
    normal: f64,
}

impl Default for Confidence {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Confidence {
    /// The default level: 95 %.
    pub const DEFAULT: Self = Self { level: 0.95, normal: 1.959_963_984_540_054 };

    /// The level, if it is at least 0.5 and at most 0.9999: below, an interval says nothing, and
    /// above, nobody knows the tails.
    pub fn new(level: f64) -> Option<Self> {
        (0.5..=0.9999).contains(&level).then(|| Self { level, normal: normal(level) })
    }

    /// The level as a part of one.
    pub fn level(self) -> f64 {
        self.level
    }

    /// The chance that an interval of this level misses: what is left of one.
    pub fn alpha(self) -> f64 {
        1.0 - self.level
    }

    /// Half the width of the interval around a normal variable, in its standard deviations: 1.96
    /// for 95 %.
    pub fn normal(self) -> f64 {
        self.normal
    }

    /// Half width for Student's t with `degrees` of freedom; infinite for none.
    ///
    /// Above 30 by the Cornish-Fisher expansion in 1/degrees (Abramowitz and Stegun, 26.7.5).
    pub fn student(self, degrees: u64) -> f64 {
        match degrees {
            0 => f64::INFINITY,
            degrees if degrees <= SUMMED => self.summed(degrees),
            degrees => {
                let (n, z) = (degrees as f64, self.normal);
                let first = (z.powi(3) + z) / 4.0;
                let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
                let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
                z + first / n + second / (n * n) + third / (n * n * n)
            }
        }
    }

    /// By Newton's steps from the normal's angle, which is below the one sought; none goes past it, as
    /// the function is concave.
    fn summed(self, degrees: u64) -> f64 {
        let root = (degrees as f64).sqrt();
        let steepest = if degrees % 2 == 1 { FRAC_2_PI * (1.0 + series(1.0, degrees)) } else { series(1.0, degrees) };
        let mut angle = (self.normal / root).atan();
        for _ in 0..20 {
            let slope = steepest * angle.cos().powi(degrees as i32 - 1);
            let step = (self.level - within(angle, degrees)) / slope;
            angle = (angle + step).min(FRAC_PI_2);
            if step < 1e-15 {
                break;
            }
        }
        root * angle.tan()
    }
}

/// The z for which P(|Z| < z) of a normal Z is `level`. Newton's steps from 0 grow to it and never past
/// it, as the function is concave.
pub(crate) fn normal(level: f64) -> f64 {
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

/// P(0 < Z < z) of a normal Z (Abramowitz and Stegun, 26.2.11).
fn above_the_mean(z: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (z, z, 1.0);
    while term > 1e-17 * sum {
        odd += 2.0;
        term *= z * z / odd;
        sum += term;
    }
    sum * (-0.5 * z * z).exp() / TAU.sqrt()
}

/// P(|T| <= sqrt(n) tan(angle)) of a T with n degrees (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn within(angle: f64, degrees: u64) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let sum = series(cosine, degrees);
    if degrees % 2 == 1 { FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The series of powers of the cosine in it: `c + 2/3 c^3 + ...` for odd degrees, `1 + 1/2 c^2 + ...`
/// for even ones.
fn series(cosine: f64, degrees: u64) -> f64 {
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    for k in 0..degrees / 2 {
        sum += term;
        let even = 2.0 * (k + 1) as f64;
        let ratio = if is_odd { even / (even + 1.0) } else { (even - 1.0) / even };
        term *= ratio * cosine * cosine;
    }
    sum
}

impl fmt::Display for Confidence {
    /// Formats the level as `95%` or `99.9%`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", (self.level * 1e6).round() / 1e4)
    }
}

impl FromStr for Confidence {
    type Err = String;

    /// Parses `0.95` and `95%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let level = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
            None => text.parse(),
        };
        let level = level.ok().and_then(Self::new);
        level.ok_or_else(|| "give a part of one from 0.5 to 0.9999, as in 0.95".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(level: f64) -> Confidence {
        Confidence::new(level).unwrap_or_default()
    }

    /// P(|T| <= t) by integrating the density, with T = sqrt(n) tan(a): proportional to the
    /// integral of cos(a)^(n-1).
    fn two_sided_probability(t: f64, degrees: u64) -> f64 {
        let n = degrees as f64;
        let integral = |end: f64| {
            let steps = 20_000;
            let width = end / f64::from(steps);
            (0..steps).map(|i| ((f64::from(i) + 0.5) * width).cos().powf(n - 1.0) * width).sum::<f64>()
        };
        integral((t / n.sqrt()).atan()) / integral(FRAC_PI_2)
    }

    #[test]
    fn every_half_width_encloses_its_part() {
        for level in [0.5, 0.95, 0.999] {
            for degrees in (1..=31).chain([60, 120]) {
                let probability = two_sided_probability(at(level).student(degrees), degrees);
                assert!((probability - level).abs() < 1e-6, "{level}, {degrees} degrees: {probability}");
            }
        }
    }

    #[test]
    fn half_widths_of_tables() {
        let tables = [(1, 12.706_205), (2, 4.302_653), (5, 2.570_582), (29, 2.045_230), (30, 2.042_272)];
        for (degrees, half_width) in tables {
            assert!((at(0.95).student(degrees) - half_width).abs() < 1e-6, "{degrees}");
        }
        assert!((normal(0.95) - Confidence::DEFAULT.normal()).abs() < 1e-14);
        for (level, half_width) in [(0.5, 0.674_490), (0.95, 1.959_964), (0.99, 2.575_829), (0.9999, 3.890_592)] {
            assert!((at(level).normal() - half_width).abs() < 1e-6, "{level}");
        }
    }

    #[test]
    fn no_degrees_of_freedom_bound_nothing_and_many_are_normal() {
        assert_eq!(Confidence::default().student(0), f64::INFINITY);
        assert!((Confidence::default().student(u64::MAX) - 1.959_964).abs() < 1e-6);
    }

    #[test]
    fn levels_are_read_and_written() {
        assert_eq!(("0.9".parse(), "99.5%".parse()), (Ok(at(0.9)), Ok(at(0.995))));
        assert_eq!((at(0.95).to_string(), at(0.999).to_string()), ("95%".into(), "99.9%".into()));
        for wrong in ["", "95", "1", "0", "-0.9", "nan", "x", "1e999"] {
            assert!(wrong.parse::<Confidence>().is_err(), "{wrong}");
        }
    }
}
