//! Writes the details of a process once, and not in each snapshot of threads.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::threads::{ProcessDetails, ThreadId, ThreadReading, ThreadSnapshot};

/// The details of processes that were written or read so far.
#[derive(Debug, Default)]
pub(super) struct KnownProcesses(FxHashMap<ThreadId, Arc<ProcessDetails>>);

impl KnownProcesses {
    /// Leaves out of a snapshot what was written already.
    pub(super) fn leave_out(&mut self, snapshot: &mut ThreadSnapshot) {
        let living: FxHashSet<_> = snapshot.threads.iter().map(ThreadReading::id).collect();
        self.0.retain(|id, _| living.contains(id));
        for thread in &mut snapshot.threads {
            let id = thread.id();
            let Some(details) = &thread.process else { continue };
            if self.0.get(&id) == Some(details) {
                thread.process = None;
            } else {
                self.0.insert(id, Arc::clone(details));
            }
        }
    }

    /// Gives a snapshot what was left out of it.
    pub(super) fn fill_in(&mut self, snapshot: &mut ThreadSnapshot) {
        for thread in &mut snapshot.threads {
            let id = thread.id();
            match &thread.process {
                Some(details) => drop(self.0.insert(id, Arc::clone(details))),
                None => thread.process = self.0.get(&id).cloned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshot(processes: &[(i32, Option<&str>)]) -> ThreadSnapshot {
        let details = |command: &str| Arc::new(ProcessDetails { user: "u".into(), command: command.into() });
        let thread = |&(tid, command): &(i32, Option<&str>)| ThreadReading {
            tid,
            process: command.map(details),
            ..ThreadReading::default()
        };
        ThreadSnapshot { threads: processes.iter().map(thread).collect(), ..ThreadSnapshot::default() }
    }

    #[test]
    fn details_are_written_once_and_again_when_they_change() {
        let mut known = KnownProcesses::default();
        let mut written = |processes: &[(i32, Option<&str>)]| {
            let mut snapshot = snapshot(processes);
            known.leave_out(&mut snapshot);
            snapshot
        };
        assert_eq!(written(&[(7, Some("a")), (8, None)]), snapshot(&[(7, Some("a")), (8, None)]));
        assert_eq!(written(&[(7, Some("a")), (8, None)]), snapshot(&[(7, None), (8, None)]));
        assert_eq!(written(&[(7, Some("b"))]), snapshot(&[(7, Some("b"))]));
    }

    proptest! {
        #[test]
        fn what_is_left_out_is_filled_in_again(all in prop::collection::vec(prop::collection::vec((0..4i32, "[ab]"), 0..5), 0..6)) {
            let [mut written, mut read] = [KnownProcesses::default(), KnownProcesses::default()];
            for mut processes in all {
                processes.dedup_by_key(|process| process.0);
                let processes: Vec<_> = processes.iter().map(|(tid, command)| (*tid, Some(command.as_str()))).collect();
                let whole = snapshot(&processes);
                let mut line = whole.clone();
                written.leave_out(&mut line);
                read.fill_in(&mut line);
                prop_assert_eq!(line, whole);
            }
        }
    }
}
