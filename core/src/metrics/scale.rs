//! Parses units such as `100%` into a factor and a unit.

use std::fmt;

use crate::expr::number_end;

/// What a metric is shown in: its value is multiplied with the factor and then is in the unit.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricScale {
    /// Factor of the value, positive or negative, never 0.
    pub factor: f64,
    /// `%`, `MB/s`; empty where there is none.
    pub unit: String,
}

impl Default for MetricScale {
    fn default() -> Self {
        Self { factor: 1.0, unit: String::new() }
    }
}

impl MetricScale {
    /// Reads a number and the unit behind it, as perf's `ScaleUnit` has them: `1e-6MB/s`, `1per cycle`.
    /// Nothing at all is a factor of 1 without a unit; `None` is no number, or 0.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Some(Self::default());
        }
        let sign = usize::from(text.starts_with(['+', '-']));
        let end = sign + number_end(&text[sign..]);
        let factor = text[..end].parse::<f64>().ok().filter(|factor| factor.is_finite() && *factor != 0.0)?;
        let unit = text[end..].trim();
        (!unit.contains(crate::names::is_hidden)).then(|| Self { factor, unit: unit.to_owned() })
    }
}

impl fmt::Display for MetricScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.factor, self.unit.as_str()) {
            (1.0, "") => Ok(()),
            // A space keeps a unit apart that could go on with the number.
            (factor, unit) if unit.starts_with(['.', 'e', 'E']) || unit.starts_with(|c: char| c.is_ascii_digit()) => {
                write!(f, "{factor} {unit}")
            }
            (factor, unit) => write!(f, "{factor}{unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_by_hand() {
        let cases = [
            ("100%", 100.0, "%"),
            ("1e-6MB/s", 1e-6, "MB/s"),
            ("6.1e-5MiB", 6.1e-5, "MiB"),
            ("1per cycle", 1.0, "per cycle"),
            ("1errors", 1.0, "errors"),
            ("2.e+3 x", 2000.0, "x"),
            ("", 1.0, ""),
        ];
        for (text, factor, unit) in cases {
            assert_eq!(MetricScale::parse(text), Some(MetricScale { factor, unit: unit.into() }), "{text}");
        }
        for text in ["%", "0%", "-", "e5x", "1e999MB", "1a\u{1b}"] {
            assert_eq!(MetricScale::parse(text), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_read_is_written_the_same(text in "[-+.0-9eE]{0,8}[a-z%/ ]{0,6}|.{0,12}") {
            if let Some(scale) = MetricScale::parse(&text) {
                prop_assert_eq!(MetricScale::parse(&scale.to_string()), Some(scale));
            }
        }
    }
}
