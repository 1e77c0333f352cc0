//! Defines the arguments of a measurement that can sample call stacks.

use clap::Args;

use super::{EventArgs, StackArgs, TargetArgs};
use crate::cli::Error;
use crate::cli::stream::say;
use crate::measure::{DefaultEvents, MeasureOptions, Measurement};
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
        let options = self.events.options(&self.target)?;
        let is_of_cpus = matches!(launch.target, Some(TargetKind::Everyone | TargetKind::Cgroup(_)));
        let default_events = if is_of_cpus { DefaultEvents::BestOfCpus } else { DefaultEvents::Best };
        let options = MeasureOptions { stacks: self.stacks.options()?, default_events, ..options };
        Ok(Measurement::new(&options, launch, &mut say)?)
    }
}
