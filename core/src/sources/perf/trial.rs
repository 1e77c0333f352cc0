//! Tries whether the hardware counts events at the same time.
//!
//! The kernel's word is not enough. x86 answers EINVAL from a trial schedule on an empty PMU, which
//! knows nothing of the NMI watchdog or of other users; other PMUs accept groups that can never
//! run. So the group is opened for this thread, let run, and must have run.

use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::{Pid, gettid};

use super::{BUDGET, CountedTarget, OpenError, PerfSource, TargetKind};
use crate::events::{Event, Modifiers};
use crate::host::{HostFiles, parse_cpus};
use crate::plan::{Cohesion, Fit, GroupIndex, Plan, Rotation};
use crate::sources::{CounterSource, Next};

/// A group that fits runs at once, unless others use the counters: then it gets its slice within
/// some ticks of the kernel.
const PATIENCE: Duration = Duration::from_millis(12);

/// How many switches a cost is measured from.
const SWITCHES: usize = 12;

/// The time that switching from one slice to the next takes, for one thread: measured with this one.
///
/// `None` where it can't be measured: the counters can't be opened, or nothing is multiplexed.
pub fn switch_cost(plan: &Plan, rotations: &[Rotation]) -> Option<Duration> {
    if rotations.is_empty() {
        return None;
    }
    let target = CountedTarget::alone(TargetKind::Threads(vec![gettid()]));
    let plan = only_in_turns(plan, rotations);
    let mut source = PerfSource::open_rotating(&plan, &target, rotations.to_vec(), BUDGET).ok()?;
    source.enable();
    for _ in 0..SWITCHES {
        source.tick();
    }
    Some(source.rotations.cost()).filter(|cost| !cost.is_zero())
}

/// The plan with nothing in the groups that aren't multiplexed: opening those costs time and says nothing of a switch.
fn only_in_turns(plan: &Plan, rotations: &[Rotation]) -> Plan {
    let mut turning = plan.clone();
    for (index, group) in turning.groups.iter_mut().enumerate() {
        if !rotations.iter().flat_map(|rotation| &rotation.sets).any(|set| set.contains(&GroupIndex(index))) {
            group.members.clear();
        }
    }
    turning
}

/// Whether these events, of one PMU, can be counted at the same time: tried on a CPU that has the PMU. Whether they are
/// pinned or exclusive, which the kernel takes of leaders only, is no part of the question.
pub fn fit(events: &[&Event]) -> Fit {
    let Some(core) = events.first().and_then(|event| event.core()) else { return fit_here(events) };
    // A thread of its own, so that this one stays where it may be.
    let there = || if stay_on_cpus_of(core).is_some() { fit_here(events) } else { Fit::Unknown };
    thread::scope(|scope| scope.spawn(there).join()).unwrap_or(Fit::Unknown)
}

/// Keeps this thread on the CPUs of one kind of core of a hybrid machine.
fn stay_on_cpus_of(core: &str) -> Option<()> {
    let cpus = HostFiles::here().text(&format!("sys/bus/event_source/devices/{core}/cpus"))?;
    let mut set = CpuSet::new();
    for cpu in parse_cpus(&cpus)? {
        set.set(usize::try_from(cpu).ok()?).ok()?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).ok()
}

fn fit_here(events: &[&Event]) -> Fit {
    let mut events: Vec<_> = events.iter().map(|&event| plain(event)).collect();
    // The kernel counts what became of slots only in a group that slots lead.
    events.sort_by_key(|event| !event.is_called_on_any_pmu("slots"));
    let plan = Plan::of_group(events, Cohesion::Required);
    let target = CountedTarget::alone(TargetKind::Threads(vec![gettid()]));
    match PerfSource::open(&plan, &target) {
        Err(OpenError::Group { source, .. }) if source.raw_os_error() == Some(Errno::EINVAL as i32) => Fit::TooMany,
        Err(_) => Fit::Unknown,
        Ok(source) if !source.rows().iter().all(|row| row.status.is_open()) => Fit::Unknown,
        Ok(mut source) => runs(&mut source),
    }
}

fn plain(event: &Event) -> Event {
    let modifiers = Modifiers { pinned: false, exclusive: false, ..event.modifiers.clone() };
    Event { modifiers, ..event.clone() }
}

fn runs(source: &mut PerfSource) -> Fit {
    source.enable();
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let Next::Round(round) = source.read() else { break };
        if round.readings.iter().all(|reading| reading.is_some_and(|reading| reading.running.0 > 0)) {
            return Fit::Fits;
        }
    }
    Fit::TooMany
}
