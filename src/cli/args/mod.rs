//! Defines the groups of arguments that several verbs share, and what they mean as data.

use std::fmt::Display;
use std::ops::Bound::Included;
use std::ops::{RangeBounds, RangeInclusive};
use std::str::FromStr;
use std::time::Duration;

mod appearance;
mod corrections;
mod events;
mod measurement;
mod range;
mod stack_format;
mod stacks;
mod target;

pub(super) use appearance::{AppearanceArgs, FirstScreen, When};
pub(super) use corrections::{CorrectionArgs, estimator};
#[cfg(feature = "bench")]
pub(super) use events::BesideTimeArgs;
pub(super) use events::{CountingArgs, EventArgs, SourceName};
pub(super) use measurement::MeasurementArgs;
pub(super) use range::{range, time};
pub(super) use stack_format::StackFormat;
pub(super) use stacks::StackArgs;
pub(super) use target::TargetArgs;

/// Parses milliseconds: from one up to an hour.
pub(super) fn milliseconds() -> impl Fn(&str) -> Result<u64, String> + Clone {
    whole_number(1..=3_600_000)
}

/// What a time without a unit is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Milliseconds,
    #[cfg(any(feature = "bench", test))]
    Seconds,
}

impl TimeUnit {
    const fn in_ms(self) -> u64 {
        match self {
            Self::Milliseconds => 1,
            #[cfg(any(feature = "bench", test))]
            Self::Seconds => 1000,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Milliseconds => "milliseconds",
            #[cfg(any(feature = "bench", test))]
            Self::Seconds => "seconds",
        }
    }
}

/// Parses a time: a whole number of a unit, or a number with its own: `500ms`, `1.5s`, `2m`, `1h`. The range is in
/// milliseconds.
pub(super) fn duration(
    unit: TimeUnit,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    const UNITS: [(&str, f64); 4] = [("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 3.6e6)];
    move |text| {
        let text = text.trim();
        let bare = text.parse::<u64>().ok().and_then(|number| number.checked_mul(unit.in_ms()));
        let with_unit = UNITS.iter().find_map(|(name, in_ms)| {
            let number: f64 = text.strip_suffix(name)?.trim().parse().ok()?;
            let ms = (number * in_ms).round();
            // Beyond the largest range a number of milliseconds isn't exact.
            (number >= 0.0 && ms <= *range.end() as f64).then_some(ms as u64)
        });
        let found = bare.or(with_unit).filter(|ms| range.contains(ms)).map(Duration::from_millis);
        found.ok_or_else(|| {
            let (least, most) = (range.start() / unit.in_ms(), range.end() / unit.in_ms());
            format!("give {} from {least} to {most}, or a time with a unit, as in 500ms, 10s or 2m", unit.name())
        })
    }
}

/// Parses a whole number of a range that begins with a number.
pub(super) fn whole_number<N>(range: impl RangeBounds<N> + Clone) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| match (range.start_bound(), range.end_bound()) {
            (Included(least), Included(most)) => format!("give a whole number from {least} to {most}"),
            (Included(least), _) => format!("give a whole number from {least} on"),
            _ => "give a whole number".to_owned(),
        })
    }
}

/// Parses a percentage, and gives the part that it is: 0.05 for `5%`. The sign may be left out from 1 on.
#[cfg(any(feature = "bench", test))]
pub(super) fn percentage(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let text = text.trim();
    let number = text.trim_end_matches('%').trim();
    let expected = || format!("expected a percentage from {least}% to {most}%, as in 5%");
    let percent: f64 = number.parse().ok().filter(|percent| (least..=most).contains(percent)).ok_or_else(expected)?;
    if percent > 0.0 && percent < 1.0 && !text.ends_with('%') {
        return Err(format!("write {number}%, or {}% if it is meant as a share", percent * 100.0));
    }
    Ok(percent / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        let percent = whole_number::<u16>(1..=100);
        assert_eq!((percent("1"), percent("100")), (Ok(1), Ok(100)));
        let refused = Err("give a whole number from 1 to 100".to_owned());
        assert!(["0", "101", "x", "", "-1", "1.5", "65537"].iter().all(|text| percent(text) == refused));
        assert_eq!(whole_number::<u16>(1..)("65536"), Err("give a whole number from 1 on".to_owned()));
    }

    #[test]
    fn times_have_a_unit_or_that_of_the_option() {
        let of = |unit, text: &str| duration(unit, 1..=3_600_000)(text).ok().map(|time| time.as_millis());
        for (text, ms, s) in
            [("10", 10, 10_000), ("500ms", 500, 500), ("10s", 10_000, 10_000), ("2m", 120_000, 120_000)]
        {
            assert_eq!((of(TimeUnit::Milliseconds, text), of(TimeUnit::Seconds, text)), (Some(ms), Some(s)), "{text}");
        }
        assert_eq!((of(TimeUnit::Seconds, "1.5s"), of(TimeUnit::Seconds, "1h")), (Some(1500), Some(3_600_000)));
        let wrong = ["", "0", "x", "s", "-1s", "1.5", "2h", "1e99s", "nans", "10 d", "0.1ms"];
        assert!(wrong.iter().all(|text| of(TimeUnit::Milliseconds, text).is_none()));
        let refused = duration(TimeUnit::Seconds, 0..=86_400_000)("x");
        let expected = "give seconds from 0 to 86400, or a time with a unit, as in 500ms, 10s or 2m";
        assert_eq!(refused, Err(expected.to_owned()));
    }

    #[test]
    fn percentages() {
        assert_eq!(percentage("5%", 0.0, 100.0), Ok(0.05));
        assert_eq!(percentage(" 20 ", 0.0, 100.0), Ok(0.2));
        assert_eq!(percentage("0.5%", 0.0, 100.0), Ok(0.005));
        assert_eq!(percentage("0", 0.0, 100.0), Ok(0.0));
        assert!(percentage("0.05", 0.0, 100.0).is_err_and(|error| error.contains("0.05%") && error.contains("5%")));
        assert!(["", "x", "-1%", "101%", "NaN"].iter().all(|text| percentage(text, 0.0, 100.0).is_err()));
    }
}
