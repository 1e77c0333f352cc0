//! Builds events, headers and rows for tests, of the library's units too.
//!
//! What a test doesn't say is the plainest that there is: `Event { kind: EventKind::Software, ..event("a") }`.

#![allow(dead_code, reason = "no test uses all of them")]

use perfprop::estimate::{EstimatorKind, IntervalBasis};
use perfprop::events::{Encoding, Event, EventKind, Group, GroupBinding, Modifiers, Unit};
use perfprop::measure::{self, Estimation};
use perfprop::monitor::Monitor;
use perfprop::plan::{Cohesion, EventIndex, GroupIndex, Member, Plan, PlannedGroup, Rotation, RowIndex};
use perfprop::rates::Confidence;
use perfprop::relations::Relation;
use perfprop::run::{Header, MeasuredEvent, MeasuredGroup, MeasuredTarget};
use perfprop::sources::perf::CounterRow;
use perfprop::sources::{Scope, Status};
use perfprop::units::WallNs;

/// A second in nanoseconds.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// An event that a counter of the core counts.
pub(crate) fn event(name: &str) -> Event {
    Event {
        name: name.into(),
        canonical: name.into(),
        kind: EventKind::Hardware,
        encoding: Encoding::default(),
        modifiers: Modifiers::default(),
        unit: Unit::Count,
    }
}

/// An event that the kernel counts by itself.
pub(crate) fn software_event(name: &str) -> Event {
    Event { kind: EventKind::Software, ..event(name) }
}

/// A raw event with a code of its own, which makes it another than all others.
pub(crate) fn raw_event(name: &str, code: usize) -> Event {
    let encoding = Encoding { pmu_type: 4, config: code as u64, ..Encoding::default() };
    Event { kind: EventKind::Raw, encoding, ..event(name) }
}

/// A group as an option of the user has it.
pub(crate) fn group(binding: GroupBinding, events: impl IntoIterator<Item = Event>) -> Group {
    Group { name: None, events: events.into_iter().collect(), binding }
}

/// A plan of groups of so many events, `e0`, `e1` and so on.
pub(crate) fn plan(sizes: &[usize]) -> Plan {
    let mut plan = Plan::default();
    for &size in sizes {
        let first = plan.events.len();
        let members = (first..first + size).map(|event| Member::Event(EventIndex(event))).collect();
        plan.events.extend((first..first + size).map(|index| event(&format!("e{index}"))));
        plan.groups.push(PlannedGroup { members, cohesion: Cohesion::Chosen });
    }
    plan
}

/// A rotation of groups, by their places in the plan.
pub(crate) fn rotation(sets: &[impl AsRef<[usize]>]) -> Rotation {
    let set = |set: &[usize]| set.iter().copied().map(GroupIndex).collect();
    Rotation { sets: sets.iter().map(|groups| set(groups.as_ref())).collect() }
}

/// The rows of so many events of a plan, all of them counted.
pub(crate) fn counter_rows(events: usize) -> Vec<CounterRow> {
    let row = |event| CounterRow {
        member: Member::Event(EventIndex(event)),
        scope: Scope::All,
        status: Status::Counted,
        units: Vec::new(),
        not_inherited: None,
    };
    (0..events).map(row).collect()
}

/// An event that is counted of all of the target.
pub(crate) fn measured(event: Event) -> MeasuredEvent {
    MeasuredEvent { event, status: Status::Counted, scope: Scope::All }
}

/// A group that perfprop made of these events of a run.
pub(crate) fn measured_group(members: &[RowIndex]) -> MeasuredGroup {
    MeasuredGroup { members: members.to_vec(), cohesion: Cohesion::Chosen }
}

/// The header of a command's run, with a round each tenth of a second and an interval each second.
pub(crate) fn header(events: impl IntoIterator<Item = MeasuredEvent>) -> Header {
    Header {
        perfprop: "test".into(),
        events: events.into_iter().collect(),
        period_ns: WallNs(SECOND / 10),
        interval_ns: WallNs(SECOND),
        ..Header::new(MeasuredTarget::Command { argv: vec!["./prog".into()], pid: 1 }, EstimatorKind::Scale.name())
    }
}

/// A monitor with an estimator of this kind.
pub(crate) fn monitor(header: Header, relations: Vec<Relation>, kind: EstimatorKind) -> Monitor {
    let (confidence, basis) = (Confidence::DEFAULT, IntervalBasis::AsLive);
    measure::monitor(header, relations, Estimation { kind, confidence, learnt: None, basis })
}
