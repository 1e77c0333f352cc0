//! Plans the groups of the events and metrics that options name.

use super::{Error, MeasureOptions};
use crate::events::{self, Event, Pmu, Resolver};
use crate::host::HostFiles;
use crate::metrics::MetricRequest;
use crate::plan::{Fit, Plan, always_on_candidates};
use crate::relations::{self, Relation};
use crate::sources::perf;

/// Counted where there is a PMU and nobody says what to count.
const DEFAULT_HARDWARE: &str =
    "CYCLES,INSTRUCTIONS,L1_MISSES,L2_MISSES,branch-misses,task-clock,page-faults,context-switches";
/// Counted where there is none.
const DEFAULT_SOFTWARE: &str = "task-clock,context-switches,cpu-migrations,page-faults,major-faults";

/// Counted where this user may count nothing: the kernel's books have it.
const CPU_TIME: &str = "user_time,system_time";

/// Counted by the model where nobody says what to count.
const DEFAULT_MODELLED: &str = "INSTRUCTIONS,L1_MISSES,LLC_MISSES,L1I_MISSES,BRANCHES,BRANCH_MISSES";

/// What is counted where neither events nor metrics are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DefaultEvents {
    /// The best that there is on this machine.
    #[default]
    Best,
    /// The same without the CPU clock: of whole CPUs it always runs.
    BestOfCpus,
    /// The CPU time in user space and in the kernel, which needs no right to count.
    CpuTime,
    /// Nothing.
    Nothing,
}

/// The groups of the events that are named; those of metrics come to them.
pub(super) fn groups(
    resolver: &Resolver,
    options: &MeasureOptions,
    request: &MetricRequest,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<events::Group>, Error> {
    let mut names: Vec<_> = options.events.iter().map(String::as_str).collect();
    let defaults = match options.default_events {
        _ if !names.is_empty() || !request.is_empty() => None,
        DefaultEvents::Nothing => None,
        DefaultEvents::Best => Some(best(resolver, note, Clock::Counted)),
        DefaultEvents::BestOfCpus => Some(best(resolver, note, Clock::LeftOut)),
        DefaultEvents::CpuTime => Some(CPU_TIME.to_owned()),
    };
    names.extend(defaults.as_deref());
    names.extend(options.further_events.iter().map(String::as_str));
    if names.is_empty() { Ok(Vec::new()) } else { resolver.parse(&names.join(",")).map_err(Error::Events) }
}

/// A plan of these groups and those of metrics, on as many counters as there are or as the options allow.
pub(super) fn plan(
    resolver: &Resolver,
    groups: Vec<events::Group>,
    request: &MetricRequest,
    counters: Option<usize>,
    relations: &[Relation],
) -> Result<Plan, Error> {
    // The model counts everything at once.
    let plan = match counters.or(resolver.machine().is_emulated().then_some(usize::MAX)) {
        Some(counters) => {
            let mut fit = |events: &[&Event]| if events.len() > counters { Fit::TooMany } else { Fit::Fits };
            Plan::limited(request.add_to(groups, &mut fit), counters, |events| {
                relations::sums(relations, events).into_iter().map(|(_, events)| events).collect()
            })
        }
        // Anchors come last: they take what room the groups of metrics leave.
        None => Plan::new(request.add_to(groups, &mut perf::fit), &mut perf::fit).map(|plan| {
            plan.linked(|events| relations::related(relations, events), &mut perf::fit)
                .with_always_on(|| always_on_candidates(resolver), &mut perf::fit)
        }),
    };
    plan.map_err(|group| Error::Unschedulable { group, has_watchdog: HostFiles::here().has_watchdog() })
}

/// Whether the CPU clock is among the events that are counted where nobody says what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    Counted,
    LeftOut,
}

/// The best that there is to count where nobody says what; notes why it isn't more.
fn best(resolver: &Resolver, note: &mut dyn FnMut(&str), clock: Clock) -> String {
    let names = if resolver.machine().is_emulated() {
        DEFAULT_MODELLED
    } else if resolver.pmus().iter().any(Pmu::is_core) {
        DEFAULT_HARDWARE
    } else {
        note(
            "no hardware counters on this machine: counting software events; --source emulate models caches and branches",
        );
        DEFAULT_SOFTWARE
    };
    let is_wanted = |name: &&str| clock == Clock::Counted || *name != "task-clock";
    names.split(',').filter(is_wanted).collect::<Vec<_>>().join(",")
}
