//! Converts a confidence level into half widths in standard deviations.

use std::fmt;
use std::str::FromStr;

use super::distributions::{normal_quantile, two_sided_quantile_from};

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
        (0.5..=0.9999).contains(&level).then(|| Self { level, normal: normal_quantile(level) })
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

    /// Half the width for Student's t with so many degrees of freedom, which need not be whole; infinite for none.
    pub fn student(self, degrees: f64) -> f64 {
        two_sided_quantile_from(self.normal, self.alpha(), degrees)
    }
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
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    fn at(level: f64) -> Confidence {
        Confidence::new(level).unwrap_or_default()
    }

    /// P(|T| <= t) of a T with `n` degrees by integrating the density, with T = sqrt(n) tan(a): proportional to the
    /// integral of cos(a)^(n-1).
    fn two_sided_probability(t: f64, n: f64) -> f64 {
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
            for degrees in (1..=31).chain([60, 120]).map(f64::from).chain([1.5, 7.3]) {
                let probability = two_sided_probability(at(level).student(degrees), degrees);
                assert!((probability - level).abs() < 1e-6, "{level}, {degrees} degrees: {probability}");
            }
        }
    }

    #[test]
    fn half_widths_of_tables() {
        let tables = [(1.0, 12.706_205), (2.0, 4.302_653), (5.0, 2.570_582), (29.0, 2.045_230), (30.0, 2.042_272)];
        for (degrees, half_width) in tables {
            assert!((at(0.95).student(degrees) - half_width).abs() < 1e-6, "{degrees}");
        }
        assert!((normal_quantile(0.95) - Confidence::DEFAULT.normal()).abs() < 1e-14);
        for (level, half_width) in [(0.5, 0.674_490), (0.95, 1.959_964), (0.99, 2.575_829), (0.9999, 3.890_592)] {
            assert!((at(level).normal() - half_width).abs() < 1e-6, "{level}");
        }
    }

    #[test]
    fn no_degrees_of_freedom_bound_nothing_and_many_are_normal() {
        assert_eq!(Confidence::default().student(0.0), f64::INFINITY);
        assert!((Confidence::default().student(1e19) - 1.959_964).abs() < 1e-6);
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
