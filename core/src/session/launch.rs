//! Says what to start and what to measure.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Pid;

use super::Schedule;
use crate::run::{MeasuredProcess, MeasuredTarget};
use crate::sources::perf::{CancelToken, CountedTarget, Split, Start, TargetKind, TracefsProbes};
use crate::sources::{Counter, process};
#[cfg(feature = "stacks")]
use crate::stacks::live;

/// What to start, and what to measure.
#[derive(Clone, Debug)]
pub struct Launch {
    /// A command to start: what is measured, or how long it is measured.
    pub command: Option<CommandLine>,
    /// What is measured; the command where `None`.
    pub target: Option<TargetKind>,
    /// Only what runs on these CPUs; on any where `None`.
    pub cpus: Option<Vec<u32>>,
    /// The CPU that the command is kept on, with all that it starts; the scheduler chooses where `None`.
    pub pinned_to: Option<u32>,
    /// Whether threads and processes that start later are measured too.
    pub inherit: bool,
    /// Whether there is one count an event or several.
    pub split: Split,
    /// How long after the start counting begins.
    pub delay: Option<Duration>,
    /// How long counting goes on; then everything ends.
    pub timeout: Option<Duration>,
    /// What is sampled with its call stacks, beside what is counted.
    #[cfg(feature = "stacks")]
    pub stacks: Option<live::StackRequest>,
    /// What counts: the kernel, or a model.
    pub counter: Counter,
    /// How many events are counted at once, if fewer than can be; the truth is then counted beside.
    pub counters: Option<usize>,
    /// How many turns have gone when counting begins, where counters are emulated: runs that are repeated begin with
    /// other groups, so that what a program does at its start isn't always seen by the same one.
    pub first_turn: usize,
    /// Who rotates the groups.
    pub schedule: Schedule,
    /// The PMUs whose interval is set where that is [`Schedule::KernelEvery`].
    pub rotating_pmus: Vec<String>,
    /// How many of the events have to be counted.
    pub needs: Needs,
    /// The events that each named region of a command counts, separated by commas.
    pub region_events: Option<String>,
    /// How often it is read what the target's threads do; never where `None`.
    pub threads: Option<Duration>,
    /// Asks not to begin, while counters are opened.
    pub stop: CancelToken,
}

impl Launch {
    /// A command to start and measure, with all that it starts.
    pub fn command(argv: Vec<OsString>, io: ChildIo) -> Self {
        Self { command: Some(CommandLine { argv, folder: None, io, output: None, errors: None }), ..Self::attach(None) }
    }

    /// Something that runs already.
    pub fn attach(target: impl Into<Option<TargetKind>>) -> Self {
        Self {
            command: None,
            target: target.into(),
            cpus: None,
            pinned_to: None,
            inherit: true,
            split: Split::Sum,
            delay: None,
            timeout: None,
            #[cfg(feature = "stacks")]
            stacks: None,
            counter: Counter::Kernel,
            counters: None,
            first_turn: 0,
            schedule: Schedule::default(),
            rotating_pmus: Vec::new(),
            needs: Needs::default(),
            region_events: None,
            threads: None,
            stop: CancelToken::default(),
        }
    }

    /// How long after the start everything ends.
    pub(super) fn ends_after(&self) -> Option<Duration> {
        self.timeout.map(|timeout| self.delay.unwrap_or_default() + timeout)
    }

    /// Whether the kernel is to count all that a command and its children do, from exec to their end, in one row an
    /// event.
    pub(super) fn watches_all(&self) -> bool {
        let is_whole = self.target.is_none() && self.cpus.is_none() && self.inherit && self.split == Split::Sum;
        let is_always = self.delay.is_none() && self.timeout.is_none();
        is_whole && is_always && self.counter == Counter::Kernel && self.counters.is_none()
    }
}

/// How many of the events of a measurement have to be counted; otherwise it isn't begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// None: it may be that only time is measured.
    Nothing,
    /// One of them.
    #[default]
    One,
    /// All of them.
    All,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The command and its arguments; not empty.
    pub argv: Vec<OsString>,
    /// The folder in which it runs; that of perfprop if `None`.
    pub folder: Option<PathBuf>,
    /// Where its input comes from and its output goes.
    pub io: ChildIo,
    /// A file that its output goes to instead.
    pub output: Option<Arc<File>>,
    /// A file that its errors go to instead.
    pub errors: Option<Arc<File>>,
}

/// Where a started command's input comes from and its output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildIo {
    /// The terminal, or whatever perfprop has.
    Inherit,
    /// Its input is what perfprop has, and none where that is a terminal; lines of its output come out of
    /// [`Session::output`](super::Session::output).
    Capture,
    /// Its input is what perfprop has; both streams of its output go to standard error, as perfprop writes to the
    /// other.
    ToStderr,
    /// Gives the command no input, and forgets what it prints but its errors.
    Discard,
}

impl Launch {
    /// What counters are opened on: it is counted from exec on, unless that is put off.
    pub(super) fn counted(&self, kind: &TargetKind, probes: &TracefsProbes) -> CountedTarget {
        let on_exec = matches!(kind, TargetKind::Command(_)) && self.delay.is_none();
        CountedTarget {
            kind: kind.clone(),
            cpus: self.cpus.clone(),
            inherit: self.inherit,
            split: self.split,
            start: if on_exec { Start::OnExec } else { Start::Later },
            stop: self.stop.clone(),
            probes: probes.ids(),
        }
    }

    /// Whether counting begins as soon as counters are open.
    pub(super) fn begins_at_once(&self, target: &CountedTarget) -> bool {
        target.start == Start::Later && self.delay.is_none()
    }
}

/// What is measured, in words that a recording can keep.
pub(super) fn described(launch: &Launch, command: Option<Pid>) -> MeasuredTarget {
    let argv = || {
        let words = launch.command.iter().flat_map(|line| &line.argv);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let named = |&pid: &Pid| MeasuredProcess { pid: pid.as_raw(), name: process::name(pid).unwrap_or_default() };
    match &launch.target {
        None | Some(TargetKind::Command(_)) => {
            MeasuredTarget::Command { argv: argv(), pid: command.map_or(0, Pid::as_raw) }
        }
        Some(TargetKind::Processes(pids)) => MeasuredTarget::Processes(pids.iter().map(named).collect()),
        Some(TargetKind::Threads(threads)) => MeasuredTarget::Threads(threads.iter().map(named).collect()),
        Some(TargetKind::Everyone) => MeasuredTarget::Everyone { cpus: launch.cpus.clone() },
        Some(TargetKind::Cgroup(cgroup)) => MeasuredTarget::Cgroup { path: cgroup.path.display().to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::emulate::CacheModel;

    #[test]
    fn all_is_watched_only_of_a_whole_command() {
        let whole = || Launch::command(vec!["true".into()], ChildIo::Inherit);
        assert!(whole().watches_all());
        let some = Some(Duration::from_secs(1));
        let parts = [
            Launch { target: Some(TargetKind::Everyone), ..whole() },
            Launch { target: Some(TargetKind::Processes(vec![Pid::this()])), ..whole() },
            Launch { cpus: Some(vec![0]), ..whole() },
            Launch { inherit: false, ..whole() },
            Launch { split: Split::Threads, ..whole() },
            Launch { split: Split::Cpus, ..whole() },
            Launch { delay: some, ..whole() },
            Launch { timeout: some, ..whole() },
            Launch { counters: Some(4), ..whole() },
            Launch { counter: Counter::Model(CacheModel::default()), ..whole() },
        ];
        for part in parts {
            assert!(!part.watches_all(), "{part:?}");
        }
    }
}
