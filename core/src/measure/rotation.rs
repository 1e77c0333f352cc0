//! Chooses who rotates the groups, and explains why the kernel's rotation interval can't be changed.

use std::fmt;

use super::Error;
use crate::events::{Event, Resolver};
use crate::names::{shown, shown_path};
use crate::plan::Plan;
use crate::session::Schedule;
use crate::sources::perf::mux::{Interval, MuxError, MuxErrorCause};

/// Who rotates the groups on the counters, where they can't all be counted at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScheduleOption {
    /// perfprop, if that costs no more than 1 % of a CPU, else the kernel.
    #[default]
    Auto,
    /// The kernel, by its timer.
    Kernel,
    /// The kernel, by its timer at another interval, on the PMUs of the plan. It is set back afterwards.
    KernelEvery {
        /// Length of a slice.
        milliseconds: u32,
    },
    /// perfprop.
    User,
}

/// The schedule of a plan.
pub(super) fn schedule(option: ScheduleOption, plan: &Plan, resolver: &Resolver) -> Result<Schedule, Error> {
    match option {
        ScheduleOption::Auto => Ok(Schedule::Auto),
        ScheduleOption::Kernel => Ok(Schedule::Kernel),
        ScheduleOption::KernelEvery { milliseconds } => every(plan, resolver, milliseconds),
        ScheduleOption::User => Ok(Schedule::User),
    }
}

/// The kernel's rotation at another interval, which is a setting of the whole machine.
fn every(plan: &Plan, resolver: &Resolver, milliseconds: u32) -> Result<Schedule, Error> {
    let is_multiplexed = |event: &&Event| !event.kind.is_software() && event.unavailable().is_none();
    let counting: Vec<_> =
        plan.events.iter().filter(is_multiplexed).filter_map(|event| resolver.pmu_of(event)).collect();
    let pmus: Vec<_> =
        resolver.pmus().iter().filter(|pmu| counting.contains(pmu)).map(|pmu| pmu.name.clone()).collect();
    if pmus.is_empty() {
        let why = "--mux: none of these events is multiplexed (software events and tracepoints are always counted)";
        return Err(Error::Options(why.into()));
    }
    Ok(Schedule::KernelEvery { pmus, milliseconds })
}

/// A setting of the whole machine is never changed in silence.
pub(super) fn note_intervals(intervals: &[Interval], note: &mut dyn FnMut(&str)) {
    for Interval { pmu, before, now, .. } in intervals {
        note(&format!(
            "groups take turns in slices of {now} ms on {}, in all of this machine; set back to {before} ms at the end, even if perfprop is killed",
            shown(pmu)
        ));
    }
}

/// Says why the kernel's rotation interval couldn't be changed.
pub(super) fn explain(f: &mut fmt::Formatter<'_>, error: &MuxError) -> fmt::Result {
    let path = shown_path(&error.path);
    writeln!(f, "perfprop: E16 --mux: {path}: {} (nothing was started)", shown(&error.cause.to_string()))?;
    match error.cause {
        MuxErrorCause::NotPermitted => {
            write!(f, "      once, by hand:  echo 1 | sudo tee {path}   or: --schedule user")
        }
        MuxErrorCause::Taken => write!(f, "      wait until it has ended, or: --schedule user"),
        MuxErrorCause::Absent(_) | MuxErrorCause::NoGuard(_) | MuxErrorCause::Refused(_) => {
            write!(f, "      shorter slices without it:  --schedule user")
        }
    }
}
