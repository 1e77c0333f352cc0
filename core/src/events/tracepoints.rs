//! Finds the tracepoints that a name such as `sched:sched_*` means, in tracefs.

use std::path::Path;

use super::machine::{self, Machine};
use super::{Encoding, symbols};
use crate::host;
use crate::names::glob;

/// One static tracepoint of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tracepoint {
    /// Name, `system:event`.
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
    let id = host::text(&events.join(system).join(event).join("id")).ok()?.parse().ok()?;
    Some(Tracepoint { name: format!("{system}:{event}"), encoding: Encoding::of(symbols::TRACEPOINT, id) })
}

impl Machine {
    /// Where a field of a tracepoint's records begins, in bytes; `None` where tracefs can't be read or has no such
    /// field.
    pub fn tracepoint_field(&self, tracepoint: &str, field: &str) -> Option<usize> {
        let (system, event) = tracepoint.split_once(':')?;
        let format = self.tracepoints().ok()?.join(system).join(event).join("format");
        field_offset(&host::text(&format).ok()?, field)
    }
}

/// The offset of a field in the format of a record: `field:pid_t pid; offset:24; size:4; signed:1;`.
fn field_offset(format: &str, field: &str) -> Option<usize> {
    let fields = format.lines().filter_map(|line| line.trim().strip_prefix("field:"));
    let mut parts = fields.map(|line| line.split(';').map(str::trim));
    parts.find_map(|mut parts| {
        let name = parts.next()?.rsplit([' ', '*']).next()?;
        let name = name.split('[').next()?;
        parts.find_map(|part| part.strip_prefix("offset:")).filter(|_| name == field)?.parse().ok()
    })
}

/// The names of all tracepoints, `system:event`, sorted; none where tracefs can't be read.
pub(super) fn names(machine: &Machine) -> impl Iterator<Item = String> + use<> {
    let Ok(events) = machine.tracepoints() else { return Vec::new().into_iter() };
    let text = machine.available_events();
    // The kernel's own list is one file instead of hundreds of folders. It leaves out the events that
    // can't be switched on, all of which are those of ftrace itself.
    let mut names: Vec<String> = text.lines().filter(|line| line.contains(':')).map(String::from).collect();
    let systems = if names.is_empty() { machine::names(&events) } else { vec!["ftrace".to_owned()] };
    names.extend(systems.into_iter().flat_map(|system| in_folder(&events, system)));
    names.sort_unstable();
    names.into_iter()
}

/// The names of a system's tracepoints by their folders; no file is opened.
fn in_folder(events: &Path, system: String) -> impl Iterator<Item = String> + use<> {
    let names = machine::names(&events.join(&system)).into_iter();
    names.filter(|name| name != "enable" && name != "filter").map(move |name| format!("{system}:{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_offsets() {
        let format = "name: sched_waking\nID: 375\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
                      \nprint fmt: \"comm=%s pid=%d\", REC->comm, REC->pid\n";
        assert_eq!(
            ["common_type", "comm", "pid", "prio"].map(|field| field_offset(format, field)),
            [Some(0), Some(8), Some(24), None]
        );
        assert_eq!(field_offset("", "pid"), None);
        assert_eq!(field_offset("field:int pid; offset:many;", "pid"), None);
    }
}
