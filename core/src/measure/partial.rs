//! Notes what of a measurement can't be counted: a part is never passed over in silence.

use std::collections::HashSet;

use nix::unistd::Pid;

use crate::events::EventKind;
use crate::names::shown;
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

/// Notes which events could not be opened and why, and how many threads had ended before.
pub fn note_partial(header: &Header, note: &mut dyn FnMut(&str)) {
    let events = &header.events;
    let is_elsewhere = |event: &&MeasuredEvent| event.is_elsewhere();
    let (gone, here): (Vec<_>, Vec<_>) =
        events.iter().filter(|event| !is_elsewhere(event)).partition(|event| event.status == Status::Gone);
    let gone: HashSet<_> = gone.iter().map(|event| &event.scope).collect();
    match gone.len() {
        0 => {}
        1 => note("1 thread had ended before counting began (W12)"),
        threads => note(&format!("{threads} threads had ended before counting began (W12)")),
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
    let code = if event.status == Status::Forbidden { "E01" } else { "E02" };
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
