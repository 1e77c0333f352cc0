//! Reads the options about rotation, and chooses who rotates the groups.

use std::fmt;

use super::Error;
use super::args::{Events, ScheduleName, SourceName};
use super::stream::say;
use crate::events::{Event, Pmu, Resolver};
use crate::names::shown;
use crate::plan::{self, Plan};
use crate::session::Schedule;
use crate::sources::perf::mux::{Interval, MuxError, MuxErrorCause};

/// Chooses who rotates the groups of a plan.
pub(super) fn schedule(events: &Events, plan: &Plan, resolver: &Resolver) -> Result<Schedule, Error> {
    let Events { turns, counting, .. } = events;
    let usage = |text: &str| Err(Error::Usage(text.to_owned()));
    let is_asked = turns.mux.is_some() || turns.schedule != ScheduleName::Auto;
    match (turns.schedule, turns.mux) {
        _ if is_asked && counting.source == SourceName::Emulate => {
            usage("--schedule and --mux are about the counters of this machine: --source emulate has no turns")
        }
        _ if is_asked && counting.counters.is_some() => {
            usage("--counters gives turns of its own: --schedule and --mux have no meaning there")
        }
        (ScheduleName::User, Some(_)) => usage("--mux is about the kernel's turns: leave it out, or --schedule user"),
        (_, Some(milliseconds)) => every(plan, resolver, milliseconds),
        (ScheduleName::Auto, None) => Ok(Schedule::Auto),
        (ScheduleName::Kernel, None) => Ok(Schedule::Kernel),
        (ScheduleName::User, None) => Ok(Schedule::User),
    }
}

/// The kernel's rotation at another interval, which is a setting of the whole machine.
fn every(plan: &Plan, resolver: &Resolver, milliseconds: u32) -> Result<Schedule, Error> {
    let counts = |pmu: &&Pmu| plan.events.iter().any(|event| is_on(event, pmu));
    let pmus: Vec<_> = resolver.pmus().iter().filter(counts).map(|pmu| pmu.name.clone()).collect();
    if pmus.is_empty() {
        let why = "--mux: none of these events takes turns (software events and tracepoints are always counted)";
        return Err(Error::Usage(why.into()));
    }
    Ok(Schedule::KernelEvery { pmus, milliseconds })
}

/// A setting of the whole machine is never changed in silence.
pub(super) fn tell(intervals: &[Interval]) {
    for Interval { pmu, before, now, .. } in intervals {
        say(&format!(
            "groups take turns every {now} ms on {}, in all of this machine; set back to {before} ms at the end, even if perfprop is killed",
            shown(pmu)
        ));
    }
}

/// Whether an event is counted on this PMU.
fn is_on(event: &Event, pmu: &Pmu) -> bool {
    if event.kind.is_software() || event.unavailable().is_some() {
        return false;
    }
    match plan::pmu_of(event) {
        (0, 0) => pmu.is_core(),
        (0, core) => u64::from(pmu.pmu_type) == core,
        (kind, _) => pmu.pmu_type == kind,
    }
}

/// Says why the kernel's rotation interval couldn't be changed.
pub(super) fn explain(f: &mut fmt::Formatter<'_>, error: &MuxError) -> fmt::Result {
    let path = error.path.display().to_string();
    let path = shown(&path);
    writeln!(f, "E16 perfprop: --mux: {path}: {} (nothing was started)", shown(&error.cause.to_string()))?;
    match error.cause {
        MuxErrorCause::NotPermitted => {
            write!(f, "      once, by hand:  echo 1 | sudo tee {path}   or: --schedule user")
        }
        MuxErrorCause::Taken => write!(f, "      wait until it has ended, or: --schedule user"),
        MuxErrorCause::Absent(_) | MuxErrorCause::NoGuard(_) | MuxErrorCause::Refused(_) => {
            write!(f, "      shorter turns without it:  --schedule user")
        }
    }
}
