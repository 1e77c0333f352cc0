//! Names what stands above all frames of a sample: its thread, its process, the CPU, or nothing.

use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::{StackTable, Task, TaskId, TaskNaming};
use crate::profile::{Frame, FrameId, FrameKind, Tree};

/// What the first level of a tree of samples tells apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstLevel {
    /// Names of threads: threads of one name are one.
    #[default]
    ThreadName,
    /// Threads by their numbers.
    Thread,
    /// Processes, with all their threads.
    Process,
    /// CPUs that samples were taken on.
    Cpu,
    /// Nothing: outermost functions are the first level.
    Functions,
}

impl FirstLevel {
    /// All levels, in the order in which a key goes through them.
    pub const ALL: [Self; 5] = [Self::ThreadName, Self::Thread, Self::Process, Self::Cpu, Self::Functions];

    /// Name of the level in options and on screens.
    pub fn word(self) -> &'static str {
        match self {
            Self::ThreadName => "thread-name",
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Cpu => "cpu",
            Self::Functions => "function",
        }
    }

    /// The next level, from the last on the first.
    #[must_use]
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&level| level == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }
}

impl fmt::Display for FirstLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for FirstLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = Self::ALL.map(Self::word).join(", ");
        Self::ALL.into_iter().find(|level| level.word() == text).ok_or_else(|| format!("give one of {words}"))
    }
}

/// The frames above samples.
#[derive(Debug, Default)]
pub(super) struct LevelFrames {
    pub(super) level: FirstLevel,
    threads: FxHashMap<TaskId, Option<FrameId>>,
    /// By process id: a process keeps the name that was known when it was sampled first.
    processes: FxHashMap<i32, FrameId>,
    cpus: FxHashMap<Option<u32>, FrameId>,
}

impl LevelFrames {
    /// Frames of a level, of which none is made yet.
    pub(super) fn of(level: FirstLevel) -> Self {
        Self { level, ..Self::default() }
    }

    /// The CPU of a sample, where the level needs it: without, samples of several CPUs are one.
    pub(super) fn cpu(&self, cpu: u32) -> Option<u32> {
        (self.level == FirstLevel::Cpu).then_some(cpu)
    }

    /// The frame above a sample of a task, made if it is the first.
    pub(super) fn frame(
        &mut self,
        (task, cpu): (TaskId, Option<u32>),
        table: &StackTable,
        naming: &TaskNaming,
        tree: &mut Tree,
    ) -> Option<FrameId> {
        let mut above = |name: &str| tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(name) });
        let of = table.task(task)?;
        match self.level {
            FirstLevel::Functions => None,
            FirstLevel::ThreadName => *self.threads.entry(task).or_insert_with(|| naming(of).map(|name| above(&name))),
            FirstLevel::Thread => {
                let name = || Some(above(&with_number(&of.comm, of.tid)));
                *self.threads.entry(task).or_insert_with(name)
            }
            FirstLevel::Process => {
                let name = || above(&with_number(process_name(of, table), of.pid));
                Some(*self.processes.entry(of.pid).or_insert_with(name))
            }
            FirstLevel::Cpu => {
                let name = || cpu.map_or_else(|| "CPU not kept (sampled before)".into(), |cpu| format!("CPU {cpu}"));
                Some(*self.cpus.entry(cpu).or_insert_with(|| above(&name())))
            }
        }
    }
}

/// The name of a process is that of its first thread; where that wasn't sampled, of the one that was.
fn process_name<'a>(task: &'a Task, table: &'a StackTable) -> &'a str {
    &table.first_thread(task.pid).unwrap_or(task).comm
}

/// A name with a process's or thread's number. Where many threads stand together, it isn't theirs.
fn with_number(name: &str, number: i32) -> String {
    if number <= Task::JOINED { format!("{name} [others]") } else { format!("{name} [{number}]") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::stacks::StackBatch;

    #[test]
    fn levels_have_names_and_go_round() {
        for level in FirstLevel::ALL {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!(FirstLevel::Functions.next(), FirstLevel::ThreadName);
        assert!("pid".parse::<FirstLevel>().unwrap_err().contains("process"));
    }

    #[test]
    fn a_thread_stands_below_what_the_level_tells_apart() {
        let task = |pid, tid, comm: &str| Task { pid, tid, comm: comm.into() };
        let batch = StackBatch { tasks: vec![task(7, 9, "worker"), task(7, 7, "prog")], ..StackBatch::default() };
        let mut table = StackTable::default();
        table.define(&batch).unwrap();
        let naming: TaskNaming = Box::new(|task| Some(task.comm.clone()));
        let mut tree = Tree::default();
        let mut name = |level, cpu| {
            let frame = LevelFrames::of(level).frame((TaskId(0), cpu), &table, &naming, &mut tree);
            frame.map(|frame| tree.frame_of(frame).name.to_owned())
        };
        assert_eq!(name(FirstLevel::ThreadName, None).as_deref(), Some("worker"));
        assert_eq!(name(FirstLevel::Thread, None).as_deref(), Some("worker [9]"));
        assert_eq!(name(FirstLevel::Process, None).as_deref(), Some("prog [7]"));
        let joined =
            StackBatch { tasks: vec![task(Task::JOINED - 1, Task::JOINED - 1, "cc")], ..StackBatch::default() };
        table.define(&joined).unwrap();
        let mut of_joined = |level| {
            let frame = LevelFrames::of(level).frame((TaskId(2), None), &table, &naming, &mut tree);
            frame.map(|frame| tree.frame_of(frame).name.to_owned())
        };
        assert_eq!(of_joined(FirstLevel::Process).as_deref(), Some("cc [others]"));
        assert_eq!(of_joined(FirstLevel::Thread).as_deref(), Some("cc [others]"));
        // A process has the last name of its first thread, also one that it gets later.
        table.define(&StackBatch { tasks: vec![task(7, 7, "exec"), task(8, 8, "other")], ..batch }).unwrap();
        assert_eq!(table.first_thread(7).unwrap().comm, "exec");
        let mut name = |level, cpu| {
            let frame = LevelFrames::of(level).frame((TaskId(0), cpu), &table, &naming, &mut tree);
            frame.map(|frame| tree.frame_of(frame).name.to_owned())
        };
        assert_eq!(name(FirstLevel::Process, None).as_deref(), Some("exec [7]"));
        assert_eq!(name(FirstLevel::Cpu, Some(3)).as_deref(), Some("CPU 3"));
        assert_eq!(name(FirstLevel::Cpu, None).as_deref(), Some("CPU not kept (sampled before)"));
        assert_eq!(name(FirstLevel::Functions, None), None);
    }
}
