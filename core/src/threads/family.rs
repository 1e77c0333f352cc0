//! Remembers which processes belong to a command, also those whose parents have ended.
//!
//! ```text
//! command 7 ── child 8 ── grandchild 9         the kernel's tree has them all
//! command 7               grandchild 9 ── 1    8 has ended: 9 is found as it was known, or by its group or session
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::Stat;
use crate::units::ClockTicks;

/// The processes of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    /// When each began.
    members: BTreeMap<i32, ClockTicks>,
    /// Groups and sessions that one of them began.
    own: BTreeSet<i32>,
    /// Groups that they have from who started the command, which others may be in.
    shared: BTreeSet<i32>,
    /// When the command began, and its number: what began in the same tick has a larger one if it is later.
    began: Option<(ClockTicks, i32)>,
    /// Processes that can't be of it.
    strangers: BTreeSet<i32>,
}

impl Family {
    /// Takes what was read of the command, and of each process that is known to be of it.
    pub(super) fn add(&mut self, pid: i32, stat: &Stat) {
        self.began.get_or_insert((stat.began, pid));
        self.members.insert(pid, stat.began);
        self.own.extend([stat.group, stat.session].into_iter().filter(|id| *id == pid));
        if !self.own.contains(&stat.group) {
            self.shared.insert(stat.group);
        }
    }

    /// Whether nothing was read of the command so far.
    pub(super) fn is_unknown(&self) -> bool {
        self.began.is_none()
    }

    /// The processes that are known and aren't among these.
    pub(super) fn missing(&self, found: &BTreeSet<i32>) -> Vec<i32> {
        self.members.keys().copied().filter(|pid| !found.contains(pid)).collect()
    }

    /// Whether this is the process that was known by its number.
    pub(super) fn is_same(&self, pid: i32, stat: &Stat) -> bool {
        self.members.get(&pid) == Some(&stat.began)
    }

    /// Forgets one that is gone.
    pub(super) fn forget(&mut self, pid: i32) {
        self.members.remove(&pid);
    }

    /// Which of the machine's processes have to be looked at: those that were never seen to be others'.
    pub(super) fn unknown(&mut self, all: &[i32]) -> Vec<i32> {
        let living: BTreeSet<i32> = all.iter().copied().collect();
        self.strangers.retain(|pid| living.contains(pid));
        let is_unknown = |pid: &i32| !self.members.contains_key(pid) && !self.strangers.contains(pid);
        living.into_iter().filter(is_unknown).collect()
    }

    /// Whether a process outside of the tree is of the command: its parent has ended, and it is in a group or session
    /// of the command's. `adopter` is what is its parent now, where that could be read.
    pub(super) fn has_orphan(&mut self, pid: i32, stat: &Stat, adopter: Option<&Stat>) -> bool {
        let is_own = [stat.group, stat.session].iter().any(|id| self.own.contains(id));
        let is_shared = self.shared.contains(&stat.group);
        let is_later = self.began.is_some_and(|began| (stat.began, pid) > began);
        if !is_later || !(is_own || is_shared) {
            self.strangers.insert(pid);
            return false;
        }
        // The tree has it next time.
        if self.members.contains_key(&stat.parent) {
            return false;
        }
        is_own || adopter.is_some_and(|adopter| self.is_adopted(pid, stat, adopter))
    }

    /// Whether a process was started by another one than its parent. It has its session from who started it, or has
    /// begun it itself; where init is in the same session, as in containers, the group has to tell.
    fn is_adopted(&self, pid: i32, stat: &Stat, adopter: &Stat) -> bool {
        let is_not = |id: i32, of_adopter: i32| id != of_adopter && id != pid;
        let is_later = self.began.is_some_and(|(began, _)| stat.began > began);
        is_not(stat.session, adopter.session) || stat.parent == 1 && is_later && is_not(stat.group, adopter.group)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    fn stat(ids: [i32; 3], began: u64) -> Stat {
        let [parent, group, session] = ids;
        Stat::parse(&format!("9 (a) R {parent} {group} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {began} 0 0")).unwrap()
    }

    /// Command 7 of a shell in group 5 and session 3, with a child 8 that has begun a group.
    fn family() -> Family {
        let mut family = Family::default();
        family.add(7, &stat([6, 5, 3], 100));
        family.add(8, &stat([7, 8, 3], 110));
        family
    }

    #[test]
    fn an_orphan_is_told_by_its_group_or_session() {
        let init = stat([0, 1, 1], 0);
        let is = |ids, began| family().has_orphan(9, &stat(ids, began), Some(&init));
        // In the group that the child began; in that of the command, whose session init doesn't have.
        assert!(is([1, 8, 3], 120) && is([1, 5, 3], 120));
        // In another group of the terminal, older than the command, or with a session of its own.
        assert!(!is([1, 4, 3], 120) && !is([1, 5, 3], 90) && !is([1, 9, 9], 120));
        // Its parent is known: the tree has it.
        assert!(!is([8, 8, 3], 120));
        // What began in the same tick, after the command and before it.
        let in_same_tick = |pid| family().has_orphan(pid, &stat([1, 5, 3], 100), Some(&init));
        assert!(in_same_tick(9) && !in_same_tick(6));
    }

    #[test]
    fn what_the_shell_starts_beside_the_command_is_not_of_it() {
        // A pager in the same group: the shell is in its session. So is what a script starts.
        let is = |ids, adopter: &Stat| family().has_orphan(9, &stat(ids, 120), Some(adopter));
        assert!(!is([4, 5, 3], &stat([1, 4, 3], 0)) && !is([4, 5, 3], &stat([1, 5, 3], 0)));
        // Init itself is the shell's session, as in a container: another group tells.
        assert!(is([1, 5, 3], &stat([0, 1, 3], 0)) && !is([1, 5, 3], &stat([0, 5, 3], 0)));
        assert!(!family().has_orphan(9, &stat([1, 5, 3], 120), None));
    }

    #[test]
    fn others_are_looked_at_once() {
        let mut family = family();
        assert_eq!(family.unknown(&[1, 7, 8, 9]), [1, 9]);
        assert!(!family.has_orphan(9, &stat([1, 4, 3], 120), None));
        assert_eq!(family.unknown(&[1, 7, 8, 9]), [1]);
        // The number is another process' later.
        assert_eq!((family.unknown(&[1]), family.unknown(&[1, 9])), (vec![1], vec![1, 9]));
    }

    #[test]
    fn a_number_that_another_process_has_now_is_forgotten() {
        let mut family = family();
        assert_eq!(family.missing(&BTreeSet::from([7])), [8]);
        assert!(family.is_same(8, &stat([1, 8, 3], 110)) && !family.is_same(8, &stat([1, 8, 3], 111)));
        family.forget(8);
        assert_eq!(family.missing(&BTreeSet::new()), [7]);
        // What it began is still the command's.
        assert!(family.has_orphan(9, &stat([1, 8, 3], 120), None));
    }
}
