//! Defines the groups of arguments that several verbs share, and what they mean as data.

mod appearance;
mod corrections;
mod events;
mod measurement;
mod stack_format;
mod stacks;
mod target;

pub(super) use appearance::{AppearanceArgs, FirstScreen, When};
pub(super) use corrections::CorrectionArgs;
pub(super) use events::{CounterArgs, CountingArgs, EventArgs, RotationArgs, SourceName, method};
pub(super) use measurement::MeasurementArgs;
pub(super) use stack_format::StackFormat;
pub(super) use stacks::StackArgs;
pub(super) use target::TargetArgs;

/// Parses milliseconds: from one up to an hour.
pub(super) fn milliseconds() -> clap::builder::RangedU64ValueParser {
    clap::value_parser!(u64).range(1..=3_600_000)
}
