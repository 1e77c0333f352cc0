//! Notes what of a measurement can't be counted: a part is never passed over in silence.

use std::collections::HashSet;

use nix::unistd::Pid;

use crate::codes::ErrorCode::{E01, E02};
use crate::events::EventKind;
use crate::names::shown;
use crate::number::counted;
use crate::plan::{Plan, PlannedGroup};
use crate::run::{Header, MeasuredEvent, MeasuredTarget};
use crate::session::Launch;
use crate::sources::perf::{Split, TargetKind};
use crate::sources::{Status, process};

/// Threads that were asked for and have ended are no reason to refuse the others.
pub(super) fn note_ended(launch: &Launch, note: &mut dyn FnMut(&str)) {
    let Launch { target: Some(TargetKind::Threads(threads)), split: Split::Sum | Split::Cpus, .. } = launch else {
        return;
    };
    let ended: Vec<_> = threads.iter().filter(|&&thread| !process::is_alive(thread)).map(Pid::to_string).collect();
    if !ended.is_empty() {
        note(&format!("not counted, as they have ended: threads {}", ended.join(", ")));
    }
}

/// Threads that start later have no row of their own: their counters are inherited.
pub(super) fn note_later_threads(launch: &Launch, note: &mut dyn FnMut(&str)) {
    let is_of_tasks = matches!(launch.target, Some(TargetKind::Processes(_) | TargetKind::Threads(_)));
    if launch.split == Split::Threads && launch.inherit && is_of_tasks {
        note("a thread that starts later is counted in the row of the thread that starts it; -i leaves it out");
    }
}

/// Notes which events get no emulated counter, because others are pinned to all of them.
pub(super) fn note_pinned(plan: &Plan, launch: &Launch, note: &mut dyn FnMut(&str)) {
    let Some(counters) = launch.counters else { return };
    let is_pinned =
        |group: &&PlannedGroup| group.members.first().is_some_and(|&leader| plan.event(leader).modifiers.pinned);
    let names = |groups: &[&PlannedGroup]| {
        let members = groups.iter().flat_map(|group| &group.members);
        members.map(|&member| shown(&plan.event(member).name).into_owned()).collect::<Vec<_>>().join(", ")
    };
    let is_tool =
        |group: &&PlannedGroup| group.members.iter().any(|&member| plan.event(member).kind == EventKind::Tool);
    let on_counters = plan.groups.iter().filter(|group| !is_tool(group));
    let (pinned, others): (Vec<_>, Vec<_>) = on_counters.partition(is_pinned);
    let held: usize = pinned.iter().map(|group| group.members.len()).sum();
    let left = counters.saturating_sub(held);
    let off: Vec<_> = others.into_iter().filter(|group| group.members.len() > left).collect();
    if held > 0 && !off.is_empty() {
        let (pinned, off) = (names(&pinned), names(&off));
        let all = if counters == 1 { "the only counter".to_owned() } else { format!("{held} of {counters} counters") };
        note(&format!("not counted: {off}: what is pinned (:D) holds {all} all the time: {pinned}"));
    }
}

/// Notes which events could not be opened and why, and how many threads had ended before.
pub fn note_partial(header: &Header, note: &mut dyn FnMut(&str)) {
    let events = &header.events;
    let is_elsewhere = |event: &&MeasuredEvent| event.is_elsewhere();
    let (gone, here): (Vec<_>, Vec<_>) =
        events.iter().filter(|event| !is_elsewhere(event)).partition(|event| event.status == Status::Gone);
    let gone: HashSet<_> = gone.iter().map(|event| &event.scope).collect();
    match gone.len() {
        0 => {}
        threads => note(&format!("{} had ended before counting began (W12)", counted(threads, "thread"))),
    }
    // An event has a row in each scope, and is named once; where it is asked for twice, one may be refused.
    let mut names = HashSet::new();
    let named: Vec<_> =
        here.into_iter().filter(|event| names.insert((&event.event.name, event.status.is_open()))).collect();
    for event in &named {
        note_units(event, note);
    }
    let closed: Vec<_> = named.iter().filter(|event| !event.status.is_open()).collect();
    if closed.is_empty() {
        return;
    }
    let mut reasons: Vec<(String, Vec<_>)> = Vec::new();
    for event in &closed {
        let (reason, name) = (reason(event, header), shown(&event.event.name));
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => reasons.push((reason, vec![name])),
        }
    }
    let reasons: Vec<_> = reasons.iter().map(|(reason, names)| format!("{}: {reason}", names.join(", "))).collect();
    note(&format!("{} of {} events opened; {}", named.len() - closed.len(), named.len(), reasons.join("; ")));
}

/// A sum that lacks some of its units must not look like that of all.
fn note_units(event: &MeasuredEvent, note: &mut dyn FnMut(&str)) {
    if let Some(words) = event.lacking_words() {
        note(&format!("{} {} (W14)", shown(&event.event.name), shown(&words)));
    }
}

fn reason(event: &MeasuredEvent, header: &Header) -> String {
    let code = match event.status {
        Status::Forbidden => E01.name(),
        Status::InUse => "W21",
        _ => E02.name(),
    };
    match event.event.unavailable() {
        None if event.status == Status::Elsewhere => {
            format!("counted on CPU {} only, which -C leaves out (W15)", event.event.cpu_list())
        }
        None if event.status == Status::NotSupported
            && !event.event.encoding.cpus.is_empty()
            && !matches!(header.target, MeasuredTarget::Everyone { .. } | MeasuredTarget::Cgroup { .. }) =>
        {
            format!("counted for whole CPUs (-a), and not for a program ({code})")
        }
        Some(reason) if event.event.kind == EventKind::Modelled => reason,
        Some(reason) => format!("{reason} ({code})"),
        None => format!("{} ({code})", event.status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::software_event;
    use crate::events::{Event, Modifiers};
    use crate::plan::Cohesion;
    use crate::session::ChildIo;

    fn noted(tell: impl FnOnce(&mut dyn FnMut(&str))) -> Vec<String> {
        let mut notes = Vec::new();
        tell(&mut |note| notes.push(note.to_owned()));
        notes
    }

    #[test]
    fn what_is_pinned_leaves_the_others_no_counter() {
        let pinned = Modifiers { pinned: true, ..Modifiers::default() };
        let pinned = Event { modifiers: pinned, ..software_event("faults:D") };
        let mut plan = Plan::of_group(vec![pinned, software_event("minor")], Cohesion::Chosen);
        let second = plan.groups[0].members.split_off(1);
        plan.groups.push(PlannedGroup { members: second, ..plan.groups[0].clone() });
        let launch = |counters| Launch { counters, ..Launch::command(vec!["true".into()], ChildIo::Inherit) };
        let notes = |counters| noted(|note| note_pinned(&plan, &launch(counters), note));
        assert_eq!(
            notes(Some(1)),
            ["not counted: minor: what is pinned (:D) holds the only counter all the time: faults:D"]
        );
        assert!(notes(Some(2)).is_empty() && notes(None).is_empty());
    }

    #[test]
    fn threads_that_start_later_have_no_row() {
        let launch = Launch { split: Split::Threads, ..Launch::attach(TargetKind::Processes(vec![Pid::this()])) };
        assert_eq!(noted(|note| note_later_threads(&launch, note)).len(), 1);
        for alone in [Launch { inherit: false, ..launch.clone() }, Launch { split: Split::Sum, ..launch }] {
            assert!(noted(|note| note_later_threads(&alone, note)).is_empty());
        }
    }
}
