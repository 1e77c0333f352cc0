//! Defines the arguments of a measurement that can sample call stacks.

use clap::Args;

use super::{EventArgs, StackArgs, TargetArgs};
use crate::cli::Error;
use crate::cli::stream::say;
use crate::measure::{DefaultEvents, MeasureOptions, Measurement, StackOptions, StackPurpose};
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
        let default_events = if is_of_cpus { DefaultEvents::BestOfCpus } else { DefaultEvents::Best };
        self.sampling(self.stacks.options()?, default_events, launch)
    }

    /// The same, of these events where they name none.
    pub(crate) fn counting(&self, default_events: DefaultEvents, launch: Launch) -> Result<Measurement, Error> {
        self.sampling(self.stacks.options()?, default_events, launch)
    }

    fn sampling(
        &self,
        stacks: Option<StackOptions>,
        default_events: DefaultEvents,
        launch: Launch,
    ) -> Result<Measurement, Error> {
        let options = self.events.options(&self.target)?;
        Ok(Measurement::new(&MeasureOptions { stacks, default_events, ..options }, launch, &mut say)?)
    }

    /// The same with call stacks, which they don't ask for. Nothing is said.
    pub(crate) fn with_stacks(&self, launch: Launch) -> Result<Measurement, Error> {
        let options = self.events.options(&self.target)?;
        let (stacks, default_events) = (Some(StackOptions::default()), DefaultEvents::Best);
        Ok(Measurement::new(&MeasureOptions { stacks, default_events, ..options }, launch, &mut |_| {})?)
    }

    /// The measurement that they ask for, with an overview of the functions of programs, if no stacks are asked for:
    /// what the whole machine does would cost much.
    pub(crate) fn with_overview(&self, launch: Launch, frequency: u64) -> Result<Measurement, Error> {
        match (self.stacks.options()?, &launch.target) {
            (None, None | Some(TargetKind::Processes(_) | TargetKind::Threads(_))) => {
                let overview = StackOptions { purpose: StackPurpose::Overview(frequency), ..StackOptions::default() };
                self.sampling(Some(overview), DefaultEvents::Best, launch)
            }
            _ => self.of(launch),
        }
    }

    /// Whether they say nothing of what to measure, nor of whom.
    pub(crate) fn are_open(&self) -> bool {
        let names_none = self.events.events.is_empty() && self.events.metrics.is_empty();
        names_none && self.target.is_open() && self.stacks.options().is_ok_and(|stacks| stacks.is_none())
    }
}
