//! Defines the groups of arguments that several verbs share, and what they mean as data.

mod appearance;
mod corrections;
mod events;
mod measurement;
mod stack_format;
mod stacks;
mod target;

pub(super) use appearance::{AppearanceArgs, FirstScreen, When};
pub(super) use corrections::{CorrectionArgs, estimator};
#[cfg(feature = "bench")]
pub(super) use events::BesideTimeArgs;
pub(super) use events::{CountingArgs, EventArgs, SourceName};
pub(super) use measurement::MeasurementArgs;
pub(super) use stack_format::StackFormat;
pub(super) use stacks::StackArgs;
pub(super) use target::TargetArgs;

/// Parses milliseconds: from one up to an hour.
pub(super) fn milliseconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=3_600_000)
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
    fn percentages() {
        assert_eq!(percentage("5%", 0.0, 100.0), Ok(0.05));
        assert_eq!(percentage(" 20 ", 0.0, 100.0), Ok(0.2));
        assert_eq!(percentage("0.5%", 0.0, 100.0), Ok(0.005));
        assert_eq!(percentage("0", 0.0, 100.0), Ok(0.0));
        assert!(percentage("0.05", 0.0, 100.0).is_err_and(|error| error.contains("0.05%") && error.contains("5%")));
        assert!(["", "x", "-1%", "101%", "NaN"].iter().all(|text| percentage(text, 0.0, 100.0).is_err()));
    }
}
