//! Defines the arguments of a measurement that can sample call stacks.

use clap::Args;

use super::{EventArgs, StackArgs, TargetArgs};
use crate::cli::Error;
use crate::cli::stream::say;
use crate::measure::{DefaultEvents, MeasureOptions, Measurement, StackOptions};
use crate::session::Launch;
use crate::sources::perf::TargetKind;

/// What is counted and sampled, and of what.
#[derive(Debug, Args)]
pub(crate) struct MeasurementArgs {
    #[command(flatten)]
    pub(crate) events: EventArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) stacks: StackArgs,
}

impl MeasurementArgs {
    /// The measurement that they ask for, of this launch.
    pub(crate) fn of(&self, launch: Launch) -> Result<Measurement, Error> {
        let is_of_cpus = matches!(launch.target, Some(TargetKind::Everyone | TargetKind::Cgroup(_)));
        self.counting(if is_of_cpus { DefaultEvents::BestOfCpus } else { DefaultEvents::Best }, launch)
    }

    /// The same, of these events where they name none.
    pub(crate) fn counting(&self, default_events: DefaultEvents, launch: Launch) -> Result<Measurement, Error> {
        let options = self.events.options(&self.target)?;
        let options = MeasureOptions { stacks: self.stacks.options()?, default_events, ..options };
        Ok(Measurement::new(&options, launch, &mut say)?)
    }

    /// The same with call stacks, which they don't ask for.
    pub(crate) fn sampling(&self, launch: Launch) -> Result<Measurement, Error> {
        let options = self.events.options(&self.target)?;
        let default_events = DefaultEvents::Best;
        let options = MeasureOptions { stacks: Some(StackOptions::default()), default_events, ..options };
        Ok(Measurement::new(&options, launch, &mut |_| {})?)
    }

    /// Whether they say nothing of what to measure, nor of whom.
    pub(crate) fn are_open(&self) -> bool {
        let names_none = self.events.events.is_empty() && self.events.metrics.is_empty();
        names_none && self.target.is_open() && self.stacks.options().is_ok_and(|stacks| stacks.is_none())
    }
}
