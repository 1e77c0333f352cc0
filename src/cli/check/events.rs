//! Checks the events of `-e` on this machine: how each is read, whether it opens, the groups, and how long
//! each of them will run.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::expected::{Expected, KernelRotation};
use crate::codes::Coded;
use crate::events::{Event, EventError, EventKind, Group, GroupBinding, Source};
use crate::machine::{self, Denial, EventVerdict, Host, Kernel, Waiting, verdict};
use crate::plan::{self, EventIndex, Fit, Member, Plan, PlannedGroup, SumGain, Unschedulable};
use crate::relations::{self, Relation};
use crate::sources::perf::ProbeTarget;

/// What becomes of an `-e` option.
#[derive(Debug)]
pub(super) enum Events {
    /// The names can't be read.
    Unread(EventError),
    /// The names were read, each event was tried, and groups were planned.
    Read { events: Vec<Tried>, groups: Result<Planned, Unschedulable>, has_watchdog: bool },
}

/// An event that was tried.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) event: Event,
    source: Option<Source>,
    pub(super) verdict: EventVerdict,
    whose: ProbeTarget,
}

/// What events are planned with.
#[derive(Clone, Copy, Debug)]
pub(super) struct CheckedPlan<'a> {
    pub(super) relations: &'a [Relation],
    /// How many emulated counters there are; those of the machine where `None`.
    pub(super) counters: Option<usize>,
}

/// The groups of a plan, and the scaling error to expect where they are multiplexed.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) groups: Vec<Grouped>,
    /// What each sum gains, where its events are multiplexed.
    pub(super) sums: Vec<(String, SumGain)>,
    pub(super) expected: Option<Expected>,
}

/// A group, and what to expect of it.
#[derive(Debug)]
pub(super) struct Grouped {
    /// The names of its events that can be counted.
    pub(super) events: Vec<String>,
    /// The PMU that it is counted on; the kernel counts the others without one.
    pub(super) pmu: Option<String>,
    /// The expected part of the time that it runs, from 0 to 1; `None` where a thread of this
    /// process can't try it.
    pub(super) ratio: Option<f64>,
}

impl Events {
    /// Reads and tries the events.
    pub(super) fn try_out(text: &str, host: &Host, kernel: &dyn Kernel, plan: CheckedPlan<'_>) -> Self {
        let groups = match host.resolver.parse(text) {
            Ok(groups) => groups,
            Err(error) => return Self::Unread(error),
        };
        let events: Vec<_> =
            groups.iter().flat_map(|group| &group.events).map(|event| tried(event, host, kernel)).collect();
        let groups = grouped(groups, &events, host, kernel, plan);
        Self::Read { events, groups, has_watchdog: host.setting("nmi_watchdog") == Some(1) }
    }

    /// Whether all that was asked for can be counted.
    pub(super) fn is_well(&self) -> bool {
        match self {
            Self::Unread(_) => false,
            Self::Read { events, groups, .. } => groups.is_ok() && events.iter().all(|event| event.verdict.counts()),
        }
    }

    /// The scaling error to expect, if groups are multiplexed.
    pub(super) fn expected(&self) -> Option<&Expected> {
        match self {
            Self::Read { groups: Ok(planned), .. } => planned.expected.as_ref(),
            Self::Unread(_) | Self::Read { .. } => None,
        }
    }

    /// What relations win, where groups could be planned.
    pub(super) fn sums(&self) -> &[(String, SumGain)] {
        match self {
            Self::Read { groups: Ok(planned), .. } => &planned.sums,
            Self::Unread(_) | Self::Read { .. } => &[],
        }
    }

    pub(super) fn json(&self) -> (Value, Value) {
        match self {
            Self::Unread(error) => (json!({ "error": error.printed() }), json!([])),
            Self::Read { events, groups, .. } => {
                let groups = match groups {
                    Ok(planned) => planned.groups.iter().map(Grouped::json).collect(),
                    Err(group) => json!({ "unschedulable": group.names, "fit": group.fit }),
                };
                (events.iter().map(Tried::json).collect(), groups)
            }
        }
    }
}

fn tried(event: &Event, host: &Host, kernel: &dyn Kernel) -> Tried {
    // A PMU outside of the cores is asked about a CPU that it listens to.
    let whose = event.encoding.cpus.first().map_or(ProbeTarget::Mine, |&cpu| ProbeTarget::Cpu(cpu));
    // The model counts what it resolves.
    let is_modelled = host.resolver.machine().is_emulated() && event.unavailable().is_none();
    let verdict = if is_modelled { EventVerdict::Counted } else { verdict(host, kernel, event, whose) };
    Tried { event: event.clone(), source: host.resolver.source_of(event), verdict, whose }
}

/// The groups of the events that can be counted, as a plan has them.
fn grouped(
    groups: Vec<Group>,
    events: &[Tried],
    host: &Host,
    kernel: &dyn Kernel,
    CheckedPlan { relations, counters }: CheckedPlan<'_>,
) -> Result<Planned, Unschedulable> {
    let mut next = events.iter();
    let mut counted = |group: Group| {
        let tried: Vec<_> = group.events.iter().zip(next.by_ref()).collect();
        let events: Vec<_> =
            tried.into_iter().filter(|(_, tried)| tried.verdict.counts()).map(|(event, _)| event.clone()).collect();
        (!events.is_empty()).then_some(Group { events, ..group })
    };
    let groups: Vec<_> = groups.into_iter().filter_map(&mut counted).collect();
    debug_assert!(groups.iter().all(|group| group.binding != GroupBinding::Free || group.events.len() == 1));
    // The model counts everything at once.
    if let Some(counters) = counters.or(host.resolver.machine().is_emulated().then_some(usize::MAX)) {
        return on_emulated(groups, relations, counters);
    }
    let mut fit = |events: &[&Event]| kernel.fit(events);
    let plan = Plan::new(groups, &mut fit)?
        .linked(|events| relations::related(relations, events), &mut fit)
        .with_always_on(|| plan::always_on_candidates(&host.resolver), &mut fit);
    let ratios = run_ratios(&plan, &mut fit);
    let name = |&member: &Member| match member {
        Member::Event(_) => plan.event(member).name.clone(),
        Member::Anchor(_) => format!("({})", plan.event(member).name),
    };
    let group = |(group, ratio): (&PlannedGroup, Option<f64>)| Grouped {
        events: group.members.iter().map(name).collect(),
        pmu: hardware(&plan, group).first().map(|event| pmu_name(event, host)),
        ratio,
    };
    let rotations = plan.rotations(&mut fit);
    let event_of = |&member: &Member| plan.asked(member).map(|EventIndex(event)| event);
    let slices: Vec<Vec<_>> =
        plan.groups.iter().map(|group| group.members.iter().filter_map(event_of).collect()).collect();
    let is_multiplexed = |sum: &[usize]| {
        let mut of = slices.iter().zip(&ratios).filter(|(slice, _)| sum.iter().any(|event| slice.contains(event)));
        of.any(|(_, ratio)| ratio.is_some_and(|ratio| ratio < 1.0))
    };
    let sums = gains(relations, &plan, &slices, is_multiplexed);
    let groups: Vec<_> = plan.groups.iter().zip(ratios).map(group).collect();
    let expected = kernel_rotation(&groups, host)
        .and_then(|rotation| Expected::new(rotation, &rotations, kernel.switch_cost(&plan, &rotations)));
    Ok(Planned { groups, sums, expected })
}

/// The groups on so many emulated counters, and for how much of the slices each is on.
fn on_emulated(groups: Vec<Group>, relations: &[Relation], counters: usize) -> Result<Planned, Unschedulable> {
    let sums = |events: &[Event]| relations::sums(relations, events).into_iter().map(|(_, events)| events).collect();
    let plan = Plan::limited(groups, counters, sums)?;
    let slices = plan.emulated_slices(counters);
    let ratio = |members: &[Member]| {
        let is_on = |slice: &&Vec<usize>| {
            members.iter().filter_map(|member| member.event()).all(|EventIndex(event)| slice.contains(&event))
        };
        Some(slices.iter().filter(is_on).count() as f64 / slices.len().max(1) as f64)
    };
    let group = |group: &PlannedGroup| Grouped {
        events: group.members.iter().map(|&member| plan.event(member).name.clone()).collect(),
        pmu: Some("the emulated PMU".to_owned()),
        ratio: ratio(&group.members),
    };
    let sums = gains(relations, &plan, &slices, |_| !plan.sums.is_empty());
    Ok(Planned { groups: plan.groups.iter().map(group).collect(), sums, expected: None })
}

/// What each sum among relations gains of slices, where its events are multiplexed.
fn gains(
    relations: &[Relation],
    plan: &Plan,
    slices: &[Vec<usize>],
    is_multiplexed: impl Fn(&[usize]) -> bool,
) -> Vec<(String, SumGain)> {
    let numbered =
        |(relation, events): (_, Vec<EventIndex>)| (relation, events.into_iter().map(|event| event.0).collect());
    let sums = relations::sums(relations, &plan.events).into_iter().map(numbered);
    let sums = sums.filter(|(_, events): &(&Relation, Vec<usize>)| is_multiplexed(events));
    sums.map(|(relation, events)| (relation.formula(), SumGain::new(&events, slices))).collect()
}

/// How the kernel rotates the group that runs least, if any has to wait.
fn kernel_rotation(groups: &[Grouped], host: &Host) -> Option<KernelRotation> {
    let waits = |group: &&Grouped| group.ratio.is_some_and(|ratio| ratio < 1.0);
    let least = groups.iter().filter(waits).min_by(|a, b| a.ratio.partial_cmp(&b.ratio).unwrap_or(Ordering::Equal))?;
    let on_pmu = groups.iter().filter(waits).filter(|group| group.pmu == least.pmu).count();
    let pmu = host.resolver.pmus().iter().find(|pmu| Some(&pmu.name) == least.pmu.as_ref());
    let slice = pmu.and_then(|pmu| pmu.says("perf_event_mux_interval_ms")?.parse().ok()).map(Duration::from_millis);
    Some(KernelRotation { ratio: least.ratio?, groups: on_pmu, slice })
}

/// Groups wait for each other where they share a PMU.
fn run_ratios(plan: &Plan, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Vec<Option<f64>> {
    let mut ratios = vec![Some(1.0); plan.groups.len()];
    let pmu = |group: &PlannedGroup| hardware(plan, group).first().map(|event| event.pmu_type());
    let mut pmus: Vec<_> = plan.groups.iter().filter_map(pmu).collect();
    pmus.sort_unstable();
    pmus.dedup();
    for one in pmus {
        let mut sharing: Vec<_> = (0..ratios.len()).filter(|&group| pmu(&plan.groups[group]) == Some(one)).collect();
        sharing.retain(|&group| {
            let known = fit(&hardware(plan, &plan.groups[group])) != Fit::Unknown;
            ratios[group] = ratios[group].filter(|_| known);
            known
        });
        let events: Vec<_> = sharing.iter().map(|&group| hardware(plan, &plan.groups[group])).collect();
        let waiting: Vec<_> = events
            .iter()
            .map(|events| Waiting { pinned: events.first().is_some_and(|event| event.modifiers.pinned) })
            .collect();
        let mut together = |groups: &[usize]| {
            let all: Vec<_> = groups.iter().flat_map(|&group| events[group].iter().copied()).collect();
            fit(&all) == Fit::Fits
        };
        for (&group, ratio) in sharing.iter().zip(machine::ratios(&waiting, &mut together)) {
            ratios[group] = Some(ratio);
        }
    }
    ratios
}

fn hardware<'a>(plan: &'a Plan, group: &PlannedGroup) -> Vec<&'a Event> {
    let events = group.members.iter().map(|&member| plan.event(member));
    events.filter(|event| !event.kind.is_software()).collect()
}

fn pmu_name(event: &Event, host: &Host) -> String {
    host.resolver.pmu_of(event).map_or_else(|| "cpu".to_owned(), |pmu| pmu.name.clone())
}

impl Tried {
    /// How the name was read.
    pub(super) fn reading(&self) -> String {
        let by = match (self.source, self.event.kind) {
            (Some(Source::Preset), _) => "preset",
            (Some(Source::Perf), EventKind::Software) => "software event",
            (Some(Source::Perf), EventKind::Tool) => "tool event",
            (Some(Source::Perf), _) => "perf's generic event",
            (Some(Source::Sysfs), _) => "PMU event of sysfs",
            (Some(Source::Libpfm), _) => "libpfm",
            (Some(Source::Tables), _) => "vendor table",
            (Some(Source::Tracefs), _) => "tracepoint",
            (Some(Source::Model), _) => "the emulated PMU",
            (None, EventKind::Breakpoint) => "breakpoint",
            (None, EventKind::Probe) => "probe",
            (None, _) => "raw code",
        };
        let same = self.event.is_called(&self.event.canonical) && self.event.name == self.event.canonical;
        let named = if same { by.to_owned() } else { format!("{by} {}", self.event.canonical) };
        match self.event.units() {
            [] => named,
            units => format!("{named}, the sum of {} units", units.len()),
        }
    }

    /// Whether it opens, and the layer that refuses it where it doesn't.
    pub(super) fn answer(&self) -> String {
        match self.verdict {
            EventVerdict::Counted if matches!(self.whose, ProbeTarget::Cpu(_)) => {
                "opens for whole CPUs (-a), not for a program".into()
            }
            EventVerdict::Counted => "opens".into(),
            EventVerdict::UserOnly => "opens in user space only: perf_event_paranoid forbids the kernel's side".into(),
            EventVerdict::Absent(error) => match self.event.unavailable() {
                Some(reason) => format!("{reason} (E02)"),
                None => format!("not on this machine: {error:?} (E02)"),
            },
            EventVerdict::Refused(error) => format!("the kernel refuses its bits: {error:?}, {}", error.desc()),
            EventVerdict::Denied(denial) => format!("{} (E01)", self.layer(denial)),
        }
    }

    fn layer(&self, denial: Denial) -> String {
        match denial {
            Denial::Level { level, allows } => {
                let level = level.map_or_else(|| "?".to_owned(), |level| level.to_string());
                format!("perf_event_paranoid={level} forbids it, {allows} would not")
            }
            Denial::Capability => "only CAP_PERFMON allows it, whatever perf_event_paranoid says".to_owned(),
            Denial::Nobody(error) => format!("the kernel refuses it to every user, {error:?}"),
            Denial::Seccomp(error) => format!("seccomp: a filter refuses perf_event_open, {error:?}"),
            Denial::NoSystemCall => "kernel: it has no perf_event_open, ENOSYS".to_owned(),
            Denial::Everything(error) => format!("perf_event_open is refused altogether, {error:?}"),
            Denial::Target => "the target is not yours, EACCES".to_owned(),
        }
    }

    fn json(&self) -> Value {
        let (status, errno) = match self.verdict {
            EventVerdict::Counted => ("counted", None),
            EventVerdict::UserOnly => ("user-only", None),
            EventVerdict::Absent(error) => ("not-supported", Some(error)),
            EventVerdict::Refused(error) => ("refused", Some(error)),
            EventVerdict::Denied(Denial::Level { .. }) => ("forbidden-by-level", None),
            EventVerdict::Denied(Denial::Capability) => ("needs-capability", None),
            EventVerdict::Denied(Denial::Nobody(error)) => ("refused", Some(error)),
            EventVerdict::Denied(Denial::Seccomp(error)) => ("forbidden-by-seccomp", Some(error)),
            EventVerdict::Denied(Denial::NoSystemCall) => ("no-system-call", None),
            EventVerdict::Denied(Denial::Everything(error)) => ("forbidden-altogether", Some(error)),
            EventVerdict::Denied(Denial::Target) => ("not-yours", None),
        };
        json!({
            "event": self.event.name,
            "canonical": self.event.canonical,
            "source": self.source,
            "kind": self.event.kind,
            "counts": self.verdict.counts(),
            "status": status,
            "errno": errno.map(|error| format!("{error:?}")),
            "whole-cpus": matches!(self.whose, ProbeTarget::Cpu(_)),
            "units": self.event.units().iter().map(|unit| &unit.pmu).collect::<Vec<_>>(),
            "answer": self.answer(),
        })
    }
}

impl Grouped {
    fn json(&self) -> Value {
        json!({
            "events": self.events,
            "pmu": self.pmu,
            "counters": if self.pmu.is_some() { self.events.len() } else { 0 },
            "run-ratio": self.ratio,
        })
    }
}
