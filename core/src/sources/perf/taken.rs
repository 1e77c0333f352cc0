//! Finds the tasks that the kernel took the counters off.
//!
//! Whoever executes a program that is setuid or setgid, has file capabilities or may not be read by its
//! user gets rights that whoever watches it may not have. So the kernel drops the counters at that exec,
//! without a word: their times stand still while the task runs on.

use nix::unistd::Pid;

use super::{CountedTarget, OpenGroup, TargetKind};
use crate::plan::RowIndex;
use crate::sources::process;
use crate::units::CpuNs;

/// So much CPU time passes beside a counter that stands still. The kernel keeps a task's time to the
/// nanosecond; this is what an exec and a few system calls take.
const PASSED: CpuNs = CpuNs(1_000_000);

/// The most tasks that are looked at in a round: each costs a file of /proc.
const A_ROUND: usize = 2;

/// The tasks that are watched, and the rows of those that lost their counters.
#[derive(Debug, Default)]
pub(super) struct Taken {
    watched: Vec<WatchedTask>,
    /// The process that waits before exec.
    command: Option<Pid>,
    /// Who is looked at next.
    next: usize,
    rows: Vec<RowIndex>,
}

#[derive(Debug)]
struct WatchedTask {
    task: Pid,
    /// What its counters said when they were looked at.
    enabled: CpuNs,
    seen: SeenTask,
}

/// What was seen of a task since its counters moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SeenTask {
    Nothing,
    /// Its counters stood still, at this CPU time of the task.
    StandsStill {
        cpu: CpuNs,
    },
    /// The task ran on since. If its counters were only read before it came to run, they will have moved at the
    /// next reading.
    RanOn,
    /// The kernel took its counters off.
    IsOff,
}

impl WatchedTask {
    fn look(&mut self, enabled: Option<CpuNs>, cpu: impl FnOnce() -> Option<CpuNs>) {
        // Counters that can't be read, or are in error, stand still for other reasons.
        let Some(enabled) = enabled.filter(|&enabled| enabled == self.enabled) else {
            (self.enabled, self.seen) = (enabled.unwrap_or(self.enabled), SeenTask::Nothing);
            return;
        };
        self.seen = match self.seen {
            SeenTask::Nothing => cpu().map_or(SeenTask::Nothing, |cpu| SeenTask::StandsStill { cpu }),
            SeenTask::StandsStill { cpu: before } => match cpu() {
                Some(now) if now.0 >= before.0 + PASSED.0 => SeenTask::RanOn,
                _ => SeenTask::StandsStill { cpu: before },
            },
            SeenTask::RanOn | SeenTask::IsOff => SeenTask::IsOff,
        };
        self.enabled = enabled;
    }
}

/// The groups that count a task.
fn of_task(groups: &[OpenGroup], task: Pid) -> impl Iterator<Item = &OpenGroup> {
    groups.iter().filter(move |group| group.task == Some(task))
}

/// How long the counters of a task have been enabled, all together, as only some may have their slice; `None`
/// while none can be read, or none has begun.
fn enabled(groups: &[OpenGroup], task: Pid) -> Option<CpuNs> {
    let read = of_task(groups, task).filter(|group| group.is_read);
    let sum = read.filter_map(|group| group.last.first()).map(|reading| reading.enabled.0).sum();
    Some(CpuNs(sum)).filter(|sum| sum.0 > 0)
}

impl Taken {
    pub(super) fn of(target: &CountedTarget) -> Self {
        let watched = |task| WatchedTask { task, enabled: CpuNs(0), seen: SeenTask::Nothing };
        let command = match target.kind {
            TargetKind::Command(pid) => Some(pid),
            TargetKind::Processes(_) | TargetKind::Threads(_) | TargetKind::Everyone | TargetKind::Cgroup(_) => None,
        };
        Self { watched: target.tasks().into_iter().map(watched).collect(), command, ..Self::default() }
    }

    /// The rows of which a part isn't counted any more.
    pub(super) fn rows(&self) -> &[RowIndex] {
        &self.rows
    }

    /// Looks at once after the exec of a command that is counted. Then no program can have hidden itself yet, so that
    /// who is hidden was hidden by its exec, which takes its counters off as well. What runs already may be hidden and
    /// counted all the same.
    pub(super) fn look_after_exec(&mut self, groups: &[OpenGroup]) {
        let command = self.command;
        self.take(groups, |watched| Some(watched.task) == command && process::is_hidden(watched.task));
    }

    /// Looks at the times of some tasks, after their groups were read.
    pub(super) fn look(&mut self, groups: &[OpenGroup]) {
        for _ in 0..A_ROUND.min(self.watched.len()) {
            self.next = (self.next + 1) % self.watched.len();
            let watched = &mut self.watched[self.next];
            let task = watched.task;
            watched.look(enabled(groups, task), || process::cpu_time(task));
        }
        self.take(groups, |watched| watched.seen == SeenTask::IsOff && process::runs(watched.task));
    }

    /// Notes the rows of tasks that lost their counters; they need no more watching.
    fn take(&mut self, groups: &[OpenGroup], is_off: impl Fn(&WatchedTask) -> bool) {
        let rows = &mut self.rows;
        self.watched.retain(|watched| {
            let is_off = is_off(watched);
            if is_off {
                rows.extend(of_task(groups, watched.task).flat_map(|group| &group.members));
            }
            !is_off
        });
        self.rows.sort_unstable();
        self.rows.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is seen after rounds that read these times, enabled and CPU, in milliseconds.
    fn seen(rounds: &[(u64, u64)]) -> SeenTask {
        let ms = |ms: u64| CpuNs(ms * 1_000_000);
        let mut watched = WatchedTask { task: Pid::this(), enabled: CpuNs(0), seen: SeenTask::Nothing };
        rounds.iter().for_each(|&(enabled, cpu)| watched.look(Some(ms(enabled)), || Some(ms(cpu))));
        watched.seen
    }

    #[test]
    fn only_a_command_is_looked_at_after_exec() {
        let pid = Pid::this();
        let command = |kind| Taken::of(&CountedTarget::alone(kind)).command;
        assert_eq!(command(TargetKind::Command(pid)), Some(pid));
        assert_eq!(command(TargetKind::Processes(vec![pid])), None);
    }

    #[test]
    fn counters_that_stand_still_while_their_task_runs_on_are_off() {
        assert_eq!(seen(&[(5, 9), (5, 10), (5, 20), (5, 30)]), SeenTask::IsOff);
    }

    #[test]
    fn counters_of_a_task_that_sleeps_are_not() {
        assert_eq!(seen(&[(5, 9), (5, 9), (5, 9), (5, 9), (5, 9)]), SeenTask::StandsStill { cpu: CpuNs(9_000_000) });
    }

    #[test]
    fn a_task_that_wakes_up_between_two_looks_moves_its_counters_by_the_next() {
        assert_eq!(seen(&[(5, 9), (5, 9), (5, 14), (10, 14)]), SeenTask::Nothing);
        assert_eq!(seen(&[(5, 9), (5, 9), (5, 14), (10, 14), (10, 15), (11, 16)]), SeenTask::Nothing);
    }
}
