//! Reads the user and the command line of processes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};

use super::{Stat, ThreadId};
use crate::files::{self, Answerer};
use crate::host::{self, HostFiles};

/// How long reading a command line may take.
const DEADLINE: Duration = Duration::from_millis(50);
/// The most characters of a command line that are kept.
const LONGEST_COMMAND: usize = 512;

/// Who runs a process, and what it was started as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDetails {
    /// The name of its user, or the number of one without a name.
    #[serde(default)]
    pub user: String,
    /// Its command line, with blanks between the arguments, no longer than 512 characters. A thread of the kernel has
    /// none.
    #[serde(default)]
    pub command: String,
}

/// Reads each process twice, as one that has just begun may still be a copy of its parent, and again once its name
/// changes.
#[derive(Debug, Default)]
pub(super) struct ProcessReader {
    known: BTreeMap<ThreadId, KnownProcess>,
    users: BTreeMap<u32, String>,
}

#[derive(Debug)]
struct KnownProcess {
    name: String,
    is_settled: bool,
    details: Arc<ProcessDetails>,
}

impl ProcessReader {
    /// The details of a process, by its `stat`. Those of one that has ended are what they were.
    pub(super) fn details(&mut self, host: &HostFiles, pid: i32, stat: &Stat) -> Arc<ProcessDetails> {
        let users = &mut self.users;
        match self.known.entry(ThreadId { tid: pid, began: stat.began }) {
            Entry::Vacant(entry) => {
                let details = Arc::new(read(host, pid, users).unwrap_or_default());
                let known = KnownProcess { name: stat.name.clone(), is_settled: false, details };
                Arc::clone(&entry.insert(known).details)
            }
            Entry::Occupied(entry) => {
                let known = entry.into_mut();
                let has_same_name = known.name == stat.name;
                let is_known = known.is_settled && has_same_name || stat.ends();
                if let Some(details) = (!is_known).then(|| read(host, pid, users)).flatten() {
                    known.is_settled = has_same_name;
                    known.name.clone_from(&stat.name);
                    if *known.details != details {
                        known.details = Arc::new(details);
                    }
                }
                Arc::clone(&known.details)
            }
        }
    }

    /// Forgets all processes but these.
    pub(super) fn retain(&mut self, living: &BTreeSet<ThreadId>) {
        self.known.retain(|id, _| living.contains(id));
    }
}

/// `None` of a process that is gone.
fn read(host: &HostFiles, pid: i32, users: &mut BTreeMap<u32, String>) -> Option<ProcessDetails> {
    let status = host.text(&format!("proc/{pid}/status"))?;
    // The real user, the effective one, and two more.
    let effective = host::field(&status, "Uid").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
    let user = effective.map(|id| users.entry(id).or_insert_with(|| name_of(id)).clone()).unwrap_or_default();
    // The kernel reads it from the memory of the process, whose lock another may hold for ever.
    let (host, path) = (host.clone(), format!("proc/{pid}/cmdline"));
    let line =
        files::within(DEADLINE, Answerer::Process(pid), move || host.text(&path)).ok().flatten().unwrap_or_default();
    let command = line.chars().take(LONGEST_COMMAND).map(|c| if c == '\0' { ' ' } else { c }).collect();
    Some(ProcessDetails { user, command })
}

fn name_of(id: u32) -> String {
    User::from_uid(Uid::from_raw(id)).ok().flatten().map_or_else(|| id.to_string(), |user| user.name)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn a_process_is_read_twice_and_again_when_its_name_changes() {
        let root = std::env::temp_dir().join(format!("perfprop-process-details-{}", std::process::id()));
        fs::create_dir_all(root.join("proc/7")).unwrap();
        let write = |line: &str| fs::write(root.join("proc/7/cmdline"), line).unwrap();
        fs::write(root.join("proc/7/status"), "Name:\tsh\nUid:\t1\t4294967294\t0\t0\n").unwrap();
        let stat = |name: &str, state: char| {
            Stat::parse(&format!("7 ({name}) {state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0")).unwrap()
        };
        let host = HostFiles::under(&root);
        let mut reader = ProcessReader::default();
        let mut command = |stat| reader.details(&host, 7, &stat).command.clone();
        write("make\0-j\0");
        assert_eq!(command(stat("sh", 'R')), "make -j");
        write("sh\0-c\0echo a\u{1b}b\0");
        assert_eq!(command(stat("sh", 'R')), "sh -c echo a\u{1b}b");
        write("late");
        assert_eq!(command(stat("sh", 'R')), "sh -c echo a\u{1b}b", "it is known by now");
        assert_eq!(command(stat("cc", 'R')), "late");
        write(&"x".repeat(2 * LONGEST_COMMAND));
        assert_eq!(command(stat("cc", 'R')).len(), LONGEST_COMMAND, "a new name is read twice");
        write("");
        assert_eq!(command(stat("ended", 'Z')).len(), LONGEST_COMMAND);
        assert_eq!(reader.details(&host, 7, &stat("ended", 'Z')).user, "4294967294", "nobody has that number");
        fs::remove_file(root.join("proc/7/status")).unwrap();
        let gone = reader.details(&host, 7, &stat("cc", 'R'));
        assert_eq!((gone.user.as_str(), gone.command.len()), ("4294967294", LONGEST_COMMAND), "it is gone since");
        reader.retain(&BTreeSet::new());
        assert_eq!(reader.details(&host, 7, &stat("ended", 'Z')).command, "");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_command_line_that_never_comes_is_not_waited_for() {
        let root = std::env::temp_dir().join(format!("perfprop-process-stuck-{}", std::process::id()));
        // No other test has this number: what hangs is counted by it.
        fs::create_dir_all(root.join("proc/7007")).unwrap();
        let line = root.join("proc/7007/cmdline");
        nix::unistd::mkfifo(&line, nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(root.join("proc/7007/status"), "Name:\ta\n").unwrap();
        let stat = Stat::parse("7007 (a) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0").unwrap();
        let details = ProcessReader::default().details(&HostFiles::under(&root), 7007, &stat);
        assert_eq!(*details, ProcessDetails::default());
        // Lets the one who reads it go.
        fs::write(&line, "").unwrap();
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_process_that_cannot_be_read_has_no_details() {
        let host = HostFiles::under(std::path::Path::new("/nonexistent"));
        let stat = Stat::parse("7 (a) R 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5 0 0").unwrap();
        assert_eq!(*ProcessReader::default().details(&host, 7, &stat), ProcessDetails::default());
    }
}
