//! Starts a measurement, and describes it in a header.

use std::time::{Duration, SystemTime};

use super::partial::{note_ended, note_later_threads, note_pinned};
use super::refused::refused;
use super::{Error, Measurement, rotation};
use crate::events::{Event, Space, with_space};
use crate::plan::{AnchorIndex, GroupIndex, Member, Plan, PlannedAnchor, PlannedGroup, RowLayout};
use crate::run::{
    AddedEvent, Anchor, Header, MeasuredEvent, MeasuredGroup, MeasuredMachine, RepeatedEvent, TruthColumn,
};
use crate::session::{Launch, Session};
use crate::sources::perf::{CounterRow, Split};
use crate::sources::{Counter, Status};
use crate::units::WallNs;

/// Starts measuring, and describes it.
pub(super) fn start(
    measurement: &Measurement,
    period: Duration,
    interval: Duration,
    note: &mut dyn FnMut(&str),
) -> Result<(Session, Header), Error> {
    let Measurement { plan, launch, .. } = measurement;
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    check_modelled(launch)?;
    let session = Session::start(plan, launch, period).map_err(|error| refused(error, plan, launch))?;
    note_ended(launch, note);
    note_later_threads(launch, note);
    note_pinned(plan, launch, note);
    let events: Vec<_> = session.rows().iter().filter(|row| !row.is_anchor()).map(|row| measured(plan, row)).collect();
    rotation::note_intervals(session.intervals(), note);
    #[cfg(feature = "stacks")]
    session.stacks().inspect(|stacks| super::sampling::note_unsampled(stacks, note));
    let anchors = anchors(plan, events.len(), &session.rows()[events.len()..]);
    let groups = groups_of_rows(plan, events.len());
    let header = Header {
        started: started.as_secs_f64(),
        machine: MeasuredMachine::this(),
        delay_ns: launch.delay.map_or(WallNs(0), WallNs::from),
        truths: truths(launch, events.len()),
        modelled: session.model().cloned(),
        events,
        anchors,
        rotated_by: session.rotated_by(),
        groups,
        metrics: measurement.metrics.clone(),
        relations: measurement.relations.files.clone(),
        period_ns: WallNs::from(period),
        interval_ns: WallNs::from(interval),
        ..Header::new(session.target().clone(), measurement.estimation.kind.name())
    };
    Ok((session, header))
}

/// A row of the counters as a run describes it.
fn measured(plan: &Plan, row: &CounterRow) -> MeasuredEvent {
    MeasuredEvent { event: opened(plan.event(row.member), row), status: row.status.clone(), scope: row.scope.clone() }
}

/// A column of truth for each row, where counters are emulated.
fn truths(launch: &Launch, rows: usize) -> Vec<TruthColumn> {
    let rows = 0..launch.counters.map_or(0, |_| rows);
    rows.map(|truth_of| TruthColumn { truth_of }).collect()
}

/// The model runs a command of its own, and knows no CPUs.
fn check_modelled(launch: &Launch) -> Result<(), Error> {
    if launch.counter == Counter::Kernel {
        return Ok(());
    }
    let refused = |what: &str| Err(Error::Options(format!("--source emulate {what}")));
    match launch {
        Launch { target: Some(_), .. } => refused("runs the command under a model: it can't measure what runs already"),
        Launch { command: None, .. } => refused("needs a command after --"),
        Launch { cpus: Some(_), .. } => refused("models one CPU: -C has no meaning there"),
        Launch { split, .. } if *split != Split::Sum => refused("counts all of a command: no rows by CPU or thread"),
        _ => Ok(()),
    }
}

/// The event as it was opened: one that is counted in user space only says so in its name, and one of several units
/// says which have no part in it.
fn opened(event: &Event, row: &CounterRow) -> Event {
    let mut event = event.clone();
    if row.status.is_open() {
        for (unit, status) in event.encoding.units.iter_mut().zip(&row.units) {
            unit.encoding.absent = (!row.has(status)).then(|| status.word().to_owned());
        }
    }
    if let Some(probe) = &mut event.encoding.probe {
        probe.not_inherited.clone_from(&row.not_inherited);
    }
    if row.status == Status::UserOnly {
        event.modifiers.exclude_kernel = true;
        event.modifiers.exclude_hv = true;
        event.name = with_space(&event.name, Space::User);
    }
    event
}

/// The groups of every scope, by the places of their events; anchors know their groups themselves.
fn groups_of_rows(plan: &Plan, events: usize) -> Vec<MeasuredGroup> {
    let layout = RowLayout::new(plan.events.len(), events);
    let in_scope = |group: &PlannedGroup, scope: usize| {
        let events = group.members.iter().filter_map(|member| member.event());
        MeasuredGroup { members: events.map(|event| layout.row(event, scope)).collect(), cohesion: group.cohesion }
    };
    (0..layout.parts()).flat_map(|scope| asked_groups(plan).map(move |group| in_scope(group, scope))).collect()
}

/// The groups that hold events that were asked for.
fn asked_groups(plan: &Plan) -> impl Iterator<Item = &PlannedGroup> {
    plan.groups.iter().filter(|group| group.members.iter().any(|&member| plan.asked(member).is_some()))
}

/// The anchors of every scope, which are in the order of the plan.
fn anchors(plan: &Plan, events: usize, rows: &[CounterRow]) -> Vec<Anchor> {
    let groups: Vec<_> = asked_groups(plan).collect();
    let layout = RowLayout::new(plan.events.len(), events);
    let recorded = |(place, row): (usize, &CounterRow)| {
        let Member::Anchor(AnchorIndex(anchor)) = row.member else { return None };
        let PlannedAnchor::Again(event) = plan.anchors[anchor] else {
            return Some(Anchor::Added(AddedEvent { added: Box::new(measured(plan, row)) }));
        };
        let scope = place / plan.anchors.len();
        let group = groups.iter().position(|group| group.members.contains(&row.member))?;
        Some(Anchor::Again(RepeatedEvent {
            anchor_of: layout.row(event, scope),
            group: GroupIndex(scope * groups.len() + group),
            status: row.status.clone(),
        }))
    };
    rows.iter().enumerate().filter_map(recorded).collect()
}
