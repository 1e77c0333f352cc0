//! Finds the places where the counters of a target are opened.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use nix::sys::statfs::{CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, statfs};
use nix::unistd::Pid;

use super::{OpenError, ProbeIds};
use crate::host::HostFiles;
use crate::sources::{Scope, process};

/// Processes, threads or CPUs to count, and the rows to keep them in.
#[derive(Clone, Debug)]
pub struct CountedTarget {
    /// Processes, threads or CPUs that are counted.
    pub kind: TargetKind,
    /// Only what runs on these CPUs; on any where `None`.
    pub cpus: Option<Vec<u32>>,
    /// Whether threads and processes that start later are counted too.
    pub inherit: bool,
    /// Whether there is one count an event or several.
    pub split: Split,
    /// When counting begins.
    pub start: Start,
    /// Asks to open no more.
    pub stop: CancelToken,
    /// The probes that can be inherited, as tracepoints.
    pub probes: ProbeIds,
}

/// Asks whoever opens counters to leave off: thousands take the kernel seconds.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicI32>);

impl CancelToken {
    /// Asks for it, as this signal did.
    pub fn ask(&self, signal: i32) {
        self.0.store(signal, Ordering::Relaxed);
    }

    /// The signal that asked, if one did.
    pub fn asked(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
    }
}

/// When counting begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// When a process that waits before exec executes its command.
    OnExec,
    /// When the source is enabled.
    #[default]
    Later,
}

/// Processes, threads or CPUs that are counted.
#[derive(Clone, Debug)]
pub enum TargetKind {
    /// A process that waits before exec.
    Command(Pid),
    /// Processes that run already, all their threads.
    Processes(Vec<Pid>),
    /// Single threads that run already.
    Threads(Vec<Pid>),
    /// Everything that runs on the machine.
    Everyone,
    /// Everything that runs in a control group.
    Cgroup(Cgroup),
}

/// An open folder of the control group file system.
#[derive(Clone, Debug)]
pub struct Cgroup {
    /// Path of the control group's folder.
    pub path: PathBuf,
    pub(super) folder: Arc<File>,
}

/// Whether there is one count an event or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Split {
    /// One row for the whole target.
    #[default]
    Sum,
    /// One row for each CPU.
    Cpus,
    /// One row for each thread that exists at the beginning.
    Threads,
}

/// Where the counters of a group are opened.
#[derive(Clone, Debug)]
pub(super) struct CounterPlace {
    pub(super) subject: CountedTask,
    pub(super) cpu: Option<u32>,
    pub(super) scope: Scope,
}

/// Task or CPU whose work one counter counts.
#[derive(Clone, Debug)]
pub(super) enum CountedTask {
    Task(Pid),
    Anyone,
    Cgroup(Arc<File>),
}

impl CounterPlace {
    /// The task whose work is counted, if it is one's.
    pub(super) fn task(&self) -> Option<Pid> {
        match self.subject {
            CountedTask::Task(task) => Some(task),
            CountedTask::Anyone | CountedTask::Cgroup(_) => None,
        }
    }

    /// The CPU on which all that runs is counted, if it is that.
    pub(super) fn whole_cpu(&self) -> Option<u32> {
        self.cpu.filter(|_| matches!(self.subject, CountedTask::Anyone))
    }

    /// Whether what listens to these CPUs is counted here: on one of them, or wherever a task is. All do where none are
    /// given.
    pub(super) fn is_among(&self, cpus: &[u32]) -> bool {
        cpus.is_empty() || self.cpu.is_none_or(|cpu| cpus.contains(&cpu))
    }

    /// Whether what its task does on other CPUs isn't counted.
    pub(super) fn is_one_cpu_of_a_task(&self) -> bool {
        self.cpu.is_some() && matches!(self.subject, CountedTask::Task(_))
    }
}

impl CountedTarget {
    /// A process that waits before exec, with all that it will start.
    pub fn held(pid: Pid) -> Self {
        Self { inherit: true, start: Start::OnExec, ..Self::alone(TargetKind::Command(pid)) }
    }

    /// What runs already, without what it will start; counted when the source is enabled.
    pub(super) fn alone(kind: TargetKind) -> Self {
        let (stop, probes) = (CancelToken::default(), ProbeIds::default());
        Self { kind, cpus: None, inherit: false, split: Split::Sum, start: Start::Later, stop, probes }
    }

    /// The tasks by which it is known; none where it isn't known by tasks.
    pub(super) fn tasks(&self) -> Vec<Pid> {
        match &self.kind {
            TargetKind::Command(pid) => vec![*pid],
            TargetKind::Processes(tasks) | TargetKind::Threads(tasks) => tasks.clone(),
            TargetKind::Everyone | TargetKind::Cgroup(_) => Vec::new(),
        }
    }

    /// Whether what tasks do on each CPU is counted apart, or on some alone.
    pub(super) fn is_single_cpus_of_tasks(&self) -> bool {
        (self.cpus.is_some() || self.split == Split::Cpus)
            && !matches!(self.kind, TargetKind::Everyone | TargetKind::Cgroup(_))
    }

    /// In how many places there would be counters, had all of them room; as far as is known, of processes that end.
    pub fn count_of_places(&self) -> usize {
        let tasks = match &self.kind {
            TargetKind::Command(_) | TargetKind::Everyone | TargetKind::Cgroup(_) => 1,
            TargetKind::Threads(threads) => threads.len(),
            TargetKind::Processes(pids) => pids.iter().filter_map(|&pid| Some(process::threads(pid).ok()?.len())).sum(),
        };
        let each = self.split == Split::Cpus || matches!(self.kind, TargetKind::Everyone | TargetKind::Cgroup(_));
        let cpus = match &self.cpus {
            Some(cpus) => cpus.len(),
            None if each => HostFiles::here().online_cpus().map_or(1, |cpus| cpus.len()),
            None => 1,
        };
        tasks * cpus
    }

    /// Places where a task's counters are opened.
    pub(super) fn places_of(&self, task: Pid) -> Result<Vec<CounterPlace>, OpenError> {
        let scope = match self.split {
            Split::Threads => Scope::Thread { tid: task.as_raw(), name: process::name(task).unwrap_or_default() },
            Split::Sum | Split::Cpus => Scope::All,
        };
        self.on_cpus(&CountedTask::Task(task), &scope, self.split == Split::Cpus)
    }

    /// The places that belong to no task.
    pub(super) fn places_of_all(&self) -> Result<Vec<CounterPlace>, OpenError> {
        match &self.kind {
            TargetKind::Everyone => self.on_cpus(&CountedTask::Anyone, &Scope::All, true),
            TargetKind::Cgroup(cgroup) => {
                self.on_cpus(&CountedTask::Cgroup(Arc::clone(&cgroup.folder)), &Scope::All, true)
            }
            TargetKind::Command(_) | TargetKind::Processes(_) | TargetKind::Threads(_) => Ok(Vec::new()),
        }
    }

    fn on_cpus(&self, subject: &CountedTask, scope: &Scope, each: bool) -> Result<Vec<CounterPlace>, OpenError> {
        if self.cpus.is_none() && !each {
            return Ok(vec![CounterPlace { subject: subject.clone(), cpu: None, scope: scope.clone() }]);
        }
        let online = HostFiles::here().online_cpus().map_err(OpenError::System)?;
        let cpus = match &self.cpus {
            Some(cpus) => match cpus.iter().find(|cpu| !online.contains(cpu)) {
                Some(&absent) => return Err(OpenError::NoCpu(absent)),
                None => cpus.clone(),
            },
            None => online,
        };
        let scope_on = |cpu: u32| if self.split == Split::Cpus { Scope::Cpu(cpu) } else { scope.clone() };
        let place = |cpu: u32| CounterPlace { subject: subject.clone(), cpu: Some(cpu), scope: scope_on(cpu) };
        Ok(cpus.into_iter().map(place).collect())
    }
}

impl Cgroup {
    /// A control group by its path in the control group file system, `system.slice/ssh.service`,
    /// or by the path of its folder.
    ///
    /// # Errors
    /// Fails if there is no such folder.
    pub fn open(name: &str) -> io::Result<Self> {
        let roots = ["", "/sys/fs/cgroup/perf_event", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let relative = name.trim_start_matches('/');
        let candidates = roots.iter().map(|root| match *root {
            "" => PathBuf::from(name),
            root => Path::new(root).join(relative),
        });
        let path = candidates.into_iter().find(|path| counts_events(path)).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { folder: Arc::new(File::open(&path)?), path })
    }
}

/// Whether a folder is a control group that events can be counted of: one of version 2, or one of version
/// 1 in the hierarchy of the controller `perf_event`.
fn counts_events(folder: &Path) -> bool {
    let Ok(system) = statfs(folder) else { return false };
    match system.filesystem_type() {
        CGROUP2_SUPER_MAGIC => true,
        CGROUP_SUPER_MAGIC => folder.components().any(|part| part.as_os_str().to_string_lossy().contains("perf_event")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_no_control_group_is_not_opened() {
        assert_eq!(Cgroup::open("tmp").map(|_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
    }
}
