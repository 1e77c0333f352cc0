//! Counts events of the CPU and the kernel in regions.
//!
//! Each thread opens one group of events at its first region. A read of it gives all of them at one moment, and for how
//! long they were to be counted and were: where other groups take the counters, they are not counted all the time.

mod group;
mod names;
mod page;

use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

pub(crate) use group::{EventGroup, why};
pub(crate) use names::CountedEvent;

/// The most events that are counted.
pub use crate::layout::EVENTS as MOST;

/// Names of the events that are counted in regions, with commas between them.
pub const EVENTS: &str = "PERFPROP_REGION_EVENTS";
/// The file with that list in the folder that perfprop made for a command, which is read where the variable isn't set.
pub const EVENTS_FILE: &str = "events";
/// A longer list is no list.
const LONGEST: u64 = 4096;

/// What a group had counted at a moment, or between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readings {
    pub(crate) values: [u64; MOST],
    /// For how long it was to be counted, in nanoseconds of the thread's CPU time.
    pub(crate) enabled_ns: u64,
    /// For how long it was.
    pub(crate) running_ns: u64,
}

impl Readings {
    /// For how long it waited for counters, in nanoseconds: this stays the same while it is counted.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.enabled_ns.wrapping_sub(self.running_ns)
    }

    /// What was counted since an earlier moment.
    pub(crate) fn since(&self, start: &Self) -> Self {
        Self {
            values: std::array::from_fn(|place| self.values[place].wrapping_sub(start.values[place])),
            enabled_ns: self.enabled_ns.wrapping_sub(start.enabled_ns),
            running_ns: self.running_ns.wrapping_sub(start.running_ns),
        }
    }
}

/// The events that the environment or the folder asks for, as far as this thread can open them. What can't be counted is
/// said on standard error.
pub(crate) fn chosen(folder: Option<&Path>) -> Vec<CountedEvent> {
    let Some(list) = of_environment().or_else(|| folder.and_then(of_folder)) else { return Vec::new() };
    let (events, complaints) = group::possible(&named(&list));
    complaints.iter().for_each(|complaint| say(complaint));
    events
}

/// The names in a list of events: `instructions,page-faults`.
pub fn event_names(list: &str) -> Vec<&str> {
    list.split(|c: char| c == ',' || c.is_whitespace()).filter(|name| !name.is_empty()).collect()
}

/// Whether regions can be asked to count an event of this name, which a machine may not have.
pub fn is_event(name: &str) -> bool {
    CountedEvent::of(name).is_some()
}

/// Each name of a list, with its event.
fn named(list: &str) -> Vec<(&str, Option<CountedEvent>)> {
    event_names(list).into_iter().map(|name| (name, CountedEvent::of(name))).collect()
}

/// The list in a folder: a short file of the folder's owner.
fn of_folder(folder: &Path) -> Option<String> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(folder.join(EVENTS_FILE)).ok()?;
    let (about, of_folder) = (file.metadata().ok()?, std::fs::metadata(folder).ok()?);
    if !about.is_file() || about.uid() != of_folder.uid() || about.len() > LONGEST {
        return None;
    }
    let mut list = String::new();
    file.take(LONGEST).read_to_string(&mut list).ok()?;
    Some(list)
}

/// The list in the environment.
fn of_environment() -> Option<String> {
    std::env::var(EVENTS).ok().filter(|list| !list.is_empty())
}

/// What asked for events: without the variable it was perfprop's option.
fn asked_by() -> &'static str {
    of_environment().map_or("--region-events", |_| EVENTS)
}

#[cold]
#[expect(clippy::print_stderr, reason = "the program that is measured has no other way to say it")]
pub(crate) fn say(complaint: &str) {
    eprintln!("perfprop: {}: {complaint}", asked_by());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_split_at_commas_and_ends_of_lines() {
        let names: Vec<_> =
            named("cycles, faults,,nothing\n").into_iter().map(|(name, event)| (name, event.is_some())).collect();
        assert_eq!(names, [("cycles", true), ("faults", true), ("nothing", false)]);
        assert!(named(" ,\n").is_empty());
    }

    #[test]
    fn differences_of_readings_by_hand() {
        let of = |first: u64, enabled_ns, running_ns| {
            let mut values = [0; MOST];
            values[0] = first;
            Readings { values, enabled_ns, running_ns }
        };
        assert_eq!(of(10, 100, 50).since(&of(4, 60, 40)), of(6, 40, 10));
        // What a suspended call had before is put before its next beginning, which may be below zero.
        let resumed = of(5, 10, 10).since(&of(7, 20, 20));
        assert_eq!(of(6, 11, 11).since(&resumed), of(8, 21, 21));
    }
}
