//! Tries an event in one place after the other: a task, or all that runs on a CPU.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::unistd::Pid;
use perf_event::Counter;

use crate::sources::perf::{CountedTarget, OpenError, TargetKind};
use crate::sources::process;

/// Task or CPU whose work one event samples.
pub(super) enum SampledTask {
    Task(Pid),
    Anyone,
    Cgroup(File),
}

impl SampledTask {
    /// All tasks of the target, without processes that are gone, unless all are.
    pub(super) fn all(target: &CountedTarget) -> Result<Vec<Self>, OpenError> {
        let tasks = match &target.kind {
            TargetKind::Everyone => return Ok(vec![Self::Anyone]),
            TargetKind::Cgroup(cgroup) => {
                return Ok(vec![Self::Cgroup(File::open(&cgroup.path).map_err(OpenError::System)?)]);
            }
            TargetKind::Command(pid) => vec![*pid],
            TargetKind::Threads(threads) => threads.clone(),
            TargetKind::Processes(pids) => {
                pids.iter().flat_map(|&pid| process::threads(pid).unwrap_or_default()).collect()
            }
        };
        if tasks.is_empty() { Err(gone(target)) } else { Ok(tasks.into_iter().map(Self::Task).collect()) }
    }
}

/// All of a target is gone.
pub(super) fn gone(target: &CountedTarget) -> OpenError {
    match &target.kind {
        TargetKind::Threads(threads) => threads.first().map(|&thread| OpenError::NoThread(thread)),
        TargetKind::Processes(pids) => pids.first().map(|&pid| OpenError::NoProcess(pid)),
        TargetKind::Command(pid) => Some(OpenError::NoProcess(*pid)),
        TargetKind::Everyone | TargetKind::Cgroup(_) => None,
    }
    .unwrap_or(OpenError::System(Errno::ESRCH.into()))
}

/// The places where events are tried, one after the other.
#[derive(Clone, Copy)]
pub(super) struct TriedPlaces<'a> {
    pub(super) subjects: &'a [SampledTask],
    pub(super) cpus: &'a [u32],
}

impl TriedPlaces<'_> {
    /// What the first place answers of which the task is still there and the CPU has the event's PMU.
    pub(super) fn first(self, open: impl Fn(&SampledTask, u32) -> io::Result<()>) -> io::Result<()> {
        let mut answer = Err(Errno::ESRCH.into());
        for subject in self.subjects {
            for &cpu in self.cpus {
                answer = open(subject, cpu);
                match answer.as_ref().map_err(NotHere::of) {
                    Err(Some(NotHere::Pmu)) => {}
                    Err(Some(NotHere::Task)) => break,
                    Ok(()) | Err(None) => return answer,
                }
            }
            if !matches!(answer.as_ref().map_err(NotHere::of), Err(Some(NotHere::Task))) {
                break;
            }
        }
        answer
    }
}

/// Why an event can't be opened in one place, but maybe in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotHere {
    /// The task has ended.
    Task,
    /// The CPU isn't of the kind that has the event's PMU.
    Pmu,
}

impl NotHere {
    pub(super) fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ESRCH) => Some(Self::Task),
            Some(Errno::ENOENT | Errno::ENODEV) => Some(Self::Pmu),
            _ => None,
        }
    }
}

/// The event, unless it can't be opened in this place alone.
pub(super) fn here(built: io::Result<Counter>) -> io::Result<Option<Counter>> {
    match built {
        Err(error) if NotHere::of(&error).is_none() => Err(error),
        built => Ok(built.ok()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn events_are_tried_where_their_task_is_still_there_and_their_pmu_is() {
        let subjects = [1, 2].map(|task| SampledTask::Task(Pid::from_raw(task)));
        let tried = TriedPlaces { subjects: &subjects, cpus: &[0, 1, 2] };
        let first = |answers: &[Errno]| {
            let (answers, places) = (RefCell::new(answers.iter()), RefCell::new(Vec::new()));
            let answer = tried.first(|subject, cpu| {
                let SampledTask::Task(task) = subject else { return Ok(()) };
                places.borrow_mut().push((task.as_raw(), cpu));
                answers.borrow_mut().next().map_or(Ok(()), |&error| Err(error.into()))
            });
            (answer.err().and_then(|error| error.raw_os_error()).map(Errno::from_raw), places.into_inner())
        };
        let (gone, absent) = (Errno::ESRCH, Errno::ENOENT);
        assert_eq!(first(&[gone, absent]), (None, vec![(1, 0), (2, 0), (2, 1)]));
        assert_eq!(first(&[gone, gone]), (Some(gone), vec![(1, 0), (2, 0)]));
        assert_eq!(first(&[absent; 9]), (Some(absent), vec![(1, 0), (1, 1), (1, 2)]));
        assert_eq!(first(&[Errno::EACCES]), (Some(Errno::EACCES), vec![(1, 0)]));
    }
}
