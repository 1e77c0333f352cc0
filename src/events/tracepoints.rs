//! The folder of tracefs and a name such as `sched:sched_*` in, the tracepoints it means out.

use std::path::Path;

use super::{Encoding, glob, machine, symbols};

/// One static tracepoint of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracepoint {
    /// `system:event`.
    pub(super) name: String,
    pub(super) encoding: Encoding,
}

/// The tracepoints that `system` and `event` name, sorted; both may be patterns. None when
/// tracefs has none of that name, or none that may be read.
pub(super) fn find(events: &Path, system: &str, event: &str) -> Vec<Tracepoint> {
    let folders = expand(events, system).into_iter();
    folders
        .flat_map(|system| {
            let names = expand(&events.join(&system), event);
            names.into_iter().filter_map(move |event| one(events, &system, &event))
        })
        .collect()
}

fn expand(folder: &Path, name: &str) -> Vec<String> {
    if !glob::is_pattern(name) {
        return if machine::is_file_name(name) { vec![name.to_owned()] } else { Vec::new() };
    }
    let mut names = machine::names(folder);
    names.retain(|found| glob::matches(name, found));
    names
}

fn one(events: &Path, system: &str, event: &str) -> Option<Tracepoint> {
    let id = machine::text(&events.join(system).join(event).join("id")).ok()?.parse().ok()?;
    Some(Tracepoint { name: format!("{system}:{event}"), encoding: Encoding::of(symbols::TRACEPOINT, id) })
}

/// The names of all tracepoints, `system:event`, sorted; no file is opened.
pub(super) fn names(events: &Path) -> impl Iterator<Item = String> + use<> {
    let events = events.to_owned();
    machine::names(&events).into_iter().flat_map(move |system| {
        let names = machine::names(&events.join(&system));
        names
            .into_iter()
            .filter(|name| name != "enable" && name != "filter")
            .map(move |name| format!("{system}:{name}"))
    })
}
