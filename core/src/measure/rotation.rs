//! Finds the PMUs whose rotation interval is changed, and explains why the kernel's rotation interval can't be changed.

use std::fmt;

use super::Error;
use crate::events::{Event, Resolver};
use crate::names::{shown, shown_path};
use crate::plan::Plan;
use crate::session::Schedule;
use crate::sources::perf::mux::{Interval, MuxError, MuxErrorCause};

/// The PMUs whose rotation interval, a setting of the whole machine, a schedule changes.
pub(super) fn pmus(schedule: Schedule, plan: &Plan, resolver: &Resolver) -> Result<Vec<String>, Error> {
    if !matches!(schedule, Schedule::KernelEvery { .. }) {
        return Ok(Vec::new());
    }
    let is_multiplexed = |event: &&Event| !event.kind.is_software() && event.unavailable().is_none();
    let counting: Vec<_> =
        plan.events.iter().filter(is_multiplexed).filter_map(|event| resolver.pmu_of(event)).collect();
    let pmus: Vec<_> =
        resolver.pmus().iter().filter(|pmu| counting.contains(pmu)).map(|pmu| pmu.name.clone()).collect();
    if pmus.is_empty() {
        let why = "--mux: none of these events is multiplexed (software events and tracepoints are always counted)";
        return Err(Error::Options(why.into()));
    }
    Ok(pmus)
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
    writeln!(f, "--mux: {path}: {} (nothing was started)", shown(&error.cause.to_string()))?;
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
