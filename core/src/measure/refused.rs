//! Finds the true cause of a measurement that could not begin, by asking the kernel: one errno has many
//! causes.

#[cfg(feature = "stacks")]
use std::io;

use super::Error;
use crate::events::Event;
use crate::host::HostFiles;
use crate::machine::{Denial, EventVerdict, Host, ThisKernel, target_denial, verdict};
use crate::plan::{EventIndex, Member, Plan};
use crate::session::{Launch, StartError};
use crate::sources::perf::{CounterRow, OpenError, ProbeTarget, TargetKind};
use crate::sources::{Counter, Status};
#[cfg(feature = "stacks")]
use crate::stacks::live::{StackError, Unsampled};

/// The error for a plan and a target that could not be measured.
pub(super) fn refused(error: StartError, plan: &Plan, launch: &Launch) -> Error {
    match error {
        StartError::Command { command, source } => Error::Command { command, source, similar: None },
        StartError::Open(error) => not_opened(error, plan),
        #[cfg(feature = "stacks")]
        StartError::Stacks(StackError::Open(error)) => not_opened(error, plan),
        #[cfg(feature = "stacks")]
        StartError::Stacks(error) => not_sampled(error, launch),
        StartError::Mux(error) => Error::Mux(error),
        StartError::System(error) => Error::System(error),
        StartError::NoValgrind => Error::NoValgrind,
        StartError::NoTarget => Error::Options("nothing to measure".into()),
        StartError::NotOpened(rows) => rows_not_opened(&rows, plan, launch),
    }
}

/// Which layer forbids the events that can't be sampled, where one does.
#[cfg(feature = "stacks")]
fn not_sampled(error: StackError, launch: &Launch) -> Error {
    let StackError::NoEvent(unsampled) = &error else { return Error::Sampling { error, denied: None } };
    let host = Host::here();
    let is_forbidden = |event: &&Unsampled| event.source.kind() == io::ErrorKind::PermissionDenied;
    let mut forbidden = unsampled.iter().filter(is_forbidden).filter_map(|event| host.event(&event.name));
    let whose = whose(launch);
    let denied = forbidden.find_map(|event| match verdict(&host, &ThisKernel, &event, whose) {
        EventVerdict::Denied(denial) => Some((denial, works_alone(&host, &event, whose))),
        _ => None,
    });
    Error::Sampling { error, denied }
}

/// Whether an event that can't be counted of a target could be counted of a command that perfprop starts.
fn works_alone(host: &Host, event: &Event, whose: ProbeTarget) -> bool {
    whose != ProbeTarget::Mine && verdict(host, &ThisKernel, event, ProbeTarget::Mine).counts()
}

/// A process that can't be measured is somebody else's, unless nothing can be measured at all.
fn not_opened(error: OpenError, plan: &Plan) -> Error {
    let pid = match error {
        OpenError::NotYours(pid) => pid,
        OpenError::Stopped(signal) => return Error::Stopped(signal),
        _ => return Error::Open(error),
    };
    match target_denial(&Host::here(), &ThisKernel, pid) {
        Some(denial) if denial != Denial::Target => {
            Error::NotPermitted { events: names(&plan.events), denial, works_alone: false }
        }
        _ => Error::Open(error),
    }
}

fn rows_not_opened(rows: &[CounterRow], plan: &Plan, launch: &Launch) -> Error {
    if launch.counter != Counter::Kernel {
        return Error::NotModelled(plan.events.iter().filter_map(not_modelled).collect());
    }
    let host = Host::here();
    let is_closed = |event: usize| rows_of(rows, event).any(|row| !row.is_whole());
    let closed = plan.events.iter().enumerate().filter(|(event, _)| is_closed(*event));
    let events: Vec<_> = closed.map(|(_, event)| event.name.clone()).collect();
    let whose = whose(launch);
    let Some(row) = rows.iter().find(|row| row.status == Status::Forbidden) else {
        if let Some(cpus) = whole_cpus(&events, plan, rows, launch) {
            return Error::WholeCpus { events, cpus };
        }
        if let [event] = plan.events.as_slice()
            && let EventVerdict::Refused(errno) = verdict(&host, &ThisKernel, event, whose)
        {
            // There is such an event, so that the machine isn't to blame.
            return Error::Open(OpenError::Event { name: event.name.clone(), source: errno.into() });
        }
        let has_pmu = host.cores().next().is_some();
        return Error::NoCounters { events, has_pmu, guest: host.guest() };
    };
    let event = plan.event(row.member);
    match verdict(&host, &ThisKernel, event, whose) {
        EventVerdict::Denied(Denial::Target) => match whose {
            ProbeTarget::Task(pid) => Error::Open(OpenError::NotYours(pid)),
            ProbeTarget::Mine | ProbeTarget::Cpu(_) => {
                Error::NotPermitted { events, denial: Denial::Target, works_alone: false }
            }
        },
        EventVerdict::Denied(denial) => {
            Error::NotPermitted { events, denial, works_alone: works_alone(&host, event, whose) }
        }
        // What was refused a moment ago is allowed now: the level is what changes.
        _ => Error::NotPermitted {
            events,
            denial: Denial::Level { level: host.setting("perf_event_paranoid"), allows: 1 },
            works_alone: false,
        },
    }
}

/// An event with the reason why the model lacks it.
fn not_modelled(event: &Event) -> Option<String> {
    event.unavailable().map(|reason| format!("{}: {reason}", event.name))
}

/// The rows of an event, by its place in the plan.
fn rows_of(rows: &[CounterRow], event: usize) -> impl Iterator<Item = &CounterRow> {
    rows.iter().filter(move |row| row.member == Member::Event(EventIndex(event)))
}

/// The CPUs that the first of these events is opened on, where all of them are opened on some CPUs only: none that is
/// counted, or a program is, and no CPU.
fn whole_cpus(events: &[String], plan: &Plan, rows: &[CounterRow], launch: &Launch) -> Option<String> {
    let is_of_program = !matches!(launch.target, Some(TargetKind::Everyone | TargetKind::Cgroup(_)));
    let is_elsewhere = |event: usize| rows_of(rows, event).any(|row| is_of_program || row.status == Status::Elsewhere);
    let mut whole = plan.events.iter().enumerate().filter(|(_, event)| events.contains(&event.name));
    let all = whole.clone().all(|(index, event)| !event.encoding.cpus.is_empty() && is_elsewhere(index));
    whole.next().filter(|_| all).map(|(_, event)| event.cpu_list())
}

fn whose(launch: &Launch) -> ProbeTarget {
    match &launch.target {
        None | Some(TargetKind::Command(_)) => ProbeTarget::Mine,
        Some(TargetKind::Processes(tasks) | TargetKind::Threads(tasks)) => {
            tasks.first().map_or(ProbeTarget::Mine, |&task| ProbeTarget::Task(task))
        }
        Some(TargetKind::Everyone | TargetKind::Cgroup(_)) => {
            let online = || HostFiles::here().online_cpus().unwrap_or_default();
            ProbeTarget::Cpu(launch.cpus.clone().unwrap_or_else(online).first().copied().unwrap_or(0))
        }
    }
}

fn names(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| event.name.clone()).collect()
}
