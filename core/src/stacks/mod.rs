//! Samples events with their call stacks.
//!
//! ```text
//! ring buffers ─ records in the order of time ─ addresses ─ frames ─┐
//!  (live::rings)           (live::samples)       (live::unwinding)  ├─ batches
//!                                     names, lines (live::naming) ──┘
//! ```
//!
//! A [`StackBatch`] defines what is new (frames, stacks, tasks) before its samples name it by number;
//! [`StackTable`] puts the definitions of all batches together. The same batches come out of a
//! recording.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::defaults::is_default;
use crate::names::shown;
pub use crate::regions::Undefined;
use crate::units::WallNs;

mod disassembly;
mod end;
mod folding;
mod function_lines;
mod gather;
mod handlers;
mod level;
#[cfg(feature = "stacks")]
pub mod live;
mod nameless;
mod places;
mod quality;
mod range;
mod regions;
mod replayed;
mod share;
mod table;
mod timeline;
mod tree;
mod waiting;
mod waits;
mod worth;

#[cfg(not(feature = "disassembly"))]
pub use disassembly::disassemble;
pub use disassembly::{DisassemblyError, Instruction, by_instruction};
pub use folding::{InterpreterFrames, PYTHON, is_of_runtime};
pub use function_lines::{FunctionLines, LineSamples, hottest};
pub use gather::{BatchWatch, Gathered, Gathering, RegionsToCome};
pub use level::FirstLevel;
#[cfg(feature = "disassembly")]
pub use live::disassemble;
pub use nameless::{NamelessReason, NamelessSamples};
pub use places::ProfileSpan;
pub use quality::{Reach, StackOrigin, StackQuality, UnknownRegions};
pub use range::SampleRange;
pub use replayed::{RecordedProfile, Replayed};
pub use share::RunShare;
pub use table::StackTable;
pub use timeline::{SampleTimeline, TimedSample};
pub use tree::{FrameNaming, Naming, StackTree, TaskNaming, as_is};
pub use waiting::WaitingSamples;
pub use waits::{OFF_CPU, WOKEN_BY, WaitReason, waiting_function};
pub use worth::SampleWorth;

/// The number of a [`StackFrame`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackFrameId(pub u32);

/// The number of a [`StackNode`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StackId(pub u32);

/// The number of a [`Task`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u32);

/// A place in a program that is part of a call stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct StackFrame {
    /// The function, demangled; `module+0xoffset` where no symbol covers the place. It may hold any
    /// character.
    pub name: String,
    /// The file that the code is in, `[kernel]`, `[vdso]`; empty where that isn't known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// The source file, where debug information has it. Of several functions with one name and without debug
    /// information it is the file's name, or the address of the function: `0x1170`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line in the source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Whether the function was inlined into the frame that called it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inlined: bool,
    /// Whether it ran in the kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kernel: bool,
    /// Where no line is known, the offset of the code in the module's file: of a caller within the instruction that
    /// called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Why the function has no name of its own; `None` where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nameless: Option<NamelessReason>,
}

/// A frame called by a stack, which makes a longer stack. Stacks that begin alike share that part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "(Option<StackId>, StackFrameId)", into = "(Option<StackId>, StackFrameId)")]
pub struct StackNode {
    /// The stack that called; `None` for the outermost frame.
    pub caller: Option<StackId>,
    /// The frame that was called.
    pub frame: StackFrameId,
}

impl From<(Option<StackId>, StackFrameId)> for StackNode {
    fn from((caller, frame): (Option<StackId>, StackFrameId)) -> Self {
        Self { caller, frame }
    }
}

impl From<StackNode> for (Option<StackId>, StackFrameId) {
    fn from(node: StackNode) -> Self {
        (node.caller, node.frame)
    }
}

/// A thread under one of its names: one that changes its name becomes another task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Task {
    /// Id of the process.
    pub pid: i32,
    /// Id of the thread.
    pub tid: i32,
    /// Name of the task (`comm`), which may hold any character.
    pub comm: String,
}

impl Task {
    /// A task with this number or one below it isn't one thread, but many of one name, each of which was sampled
    /// seldom.
    pub const JOINED: i32 = -2;

    /// Whether it isn't one thread, but many.
    pub fn is_joined(&self) -> bool {
        self.tid <= Self::JOINED
    }
}

/// One sample: where a thread was when an event had happened often enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// Time of the sample.
    pub at: WallNs,
    /// Task that was sampled.
    pub task: TaskId,
    /// CPU that it ran on.
    pub cpu: u32,
    /// Event of the sample: its place in [`SamplingSetup::events`].
    pub event: u32,
    /// How many occurrences it stands for (its period), in the event's unit, as the kernel says it: without what
    /// happened while the event was off the counters.
    pub weight: u64,
    /// Where; `None` where nothing of the stack could be read.
    pub stack: Option<StackId>,
}

/// The outermost frame of a stack whose outer frames are missing.
pub const CUT: &str = "[cut]";

/// What has gone missing since the beginning. All numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Losses {
    /// Records for which the kernel found no room in a ring buffer.
    #[serde(default)]
    pub lost: u64,
    /// Samples that nobody took in time.
    #[serde(default)]
    pub dropped: u64,
    /// How often the kernel throttled an event, because it came too often.
    #[serde(default)]
    pub throttled: u64,
    /// Stacks whose outer frames are missing: the kernel's longest call chain or the copied part of the
    /// stack ended, or unwind information is absent or wrong.
    #[serde(default)]
    pub cut: u64,
    /// Stacks that [`UnwindMethod::Auto`] can't tell to be cut or not.
    #[serde(default)]
    pub unknown: u64,
    /// Cut stacks that are deeper than the kernel follows.
    #[serde(default)]
    pub too_deep: u64,
    /// Cut stacks that are longer than the part that was copied.
    #[serde(default)]
    pub copy_ended: u64,
    /// Cut stacks of processes that were on their way out, or became another program: there was nothing to copy.
    #[serde(default)]
    pub stack_gone: u64,
    /// Records that were not what the kernel promises.
    #[serde(default)]
    pub malformed: u64,
}

impl Losses {
    /// Samples that were taken and are not there.
    pub fn samples(&self) -> u64 {
        self.lost.saturating_add(self.dropped)
    }

    /// Takes back what was told of stacks whose samples were dropped.
    #[cfg(feature = "stacks")]
    pub(crate) fn forget_stacks(&mut self, dropped: &Self) {
        self.cut = self.cut.saturating_sub(dropped.cut);
        self.unknown = self.unknown.saturating_sub(dropped.unknown);
        self.too_deep = self.too_deep.saturating_sub(dropped.too_deep);
        self.copy_ended = self.copy_ended.saturating_sub(dropped.copy_ended);
        self.stack_gone = self.stack_gone.saturating_sub(dropped.stack_gone);
    }

    /// What has gone missing after another time: less what had by then.
    #[must_use]
    pub fn since(&self, then: &Self) -> Self {
        Self {
            lost: self.lost.saturating_sub(then.lost),
            dropped: self.dropped.saturating_sub(then.dropped),
            throttled: self.throttled.saturating_sub(then.throttled),
            cut: self.cut.saturating_sub(then.cut),
            unknown: self.unknown.saturating_sub(then.unknown),
            too_deep: self.too_deep.saturating_sub(then.too_deep),
            copy_ended: self.copy_ended.saturating_sub(then.copy_ended),
            stack_gone: self.stack_gone.saturating_sub(then.stack_gone),
            malformed: self.malformed.saturating_sub(then.malformed),
        }
    }
}

impl fmt::Display for Losses {
    /// What is worth a word: `3 lost, 2 throttled`; nothing where all is well.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.lost, "lost"),
            (self.dropped, "dropped"),
            (self.throttled, "times throttled"),
            (self.cut, "stacks cut"),
            (self.unknown, "stacks with unknown callers"),
            (self.malformed, "records malformed"),
        ];
        let word = |n: u64, words: &str| {
            // `1 stack cut`: the first word is the plural.
            let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
            let first = if n == 1 && !rest.is_empty() { first.trim_end_matches('s') } else { first };
            format!("{n} {first} {rest}").trim_end().to_owned()
        };
        let said: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, words)| word(*n, words)).collect();
        f.write_str(&said.join(", "))
    }
}

/// What a model counted of a task's functions in some time. A frame is a function here, and two frames may
/// have the same name: the rounds of a recursion are functions of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskCosts {
    /// Task that it is about.
    pub task: TaskId,
    /// When it had been counted.
    #[serde(default, rename = "at_ns")]
    pub at: WallNs,
    /// What a function counted of each of [`SamplingSetup::events`], without what it called.
    pub own: Vec<(StackFrameId, Vec<u64>)>,
    /// Who called whom how often, and what that counted of each event with all below.
    pub calls: Vec<(StackFrameId, StackFrameId, u64, Vec<u64>)>,
}

impl TaskCosts {
    /// The costs of a graph whose functions have the numbers of frames, up to a time.
    pub fn new(task: TaskId, at: WallNs, graph: &crate::callgrind::CallGraph) -> Self {
        let own = graph.own().map(|(function, costs)| (StackFrameId(function.0), costs.to_vec())).collect();
        let calls = graph.calls().into_iter();
        let calls = calls.map(|(caller, callee, calls)| {
            (StackFrameId(caller.0), StackFrameId(callee.0), calls.count, calls.costs.clone())
        });
        Self { task, at, own, calls: calls.collect() }
    }
}

/// A file whose functions have no names, though it was sampled.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct UnnamedFile {
    /// Path of the file, as its process named it. It may hold any character.
    pub path: String,
    /// Why it isn't sampled.
    pub why: String,
}

impl fmt::Display for UnnamedFile {
    /// `no names from /tmp/x: it is no regular file`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no names from {}: {}", shown(&self.path), shown(&self.why))
    }
}

/// From a time on, the kernel copies other parts of stacks than before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySwitch {
    /// The time.
    pub at: WallNs,
    /// How many bytes are copied with a sample; 0 where frame pointers do.
    pub bytes: u32,
    /// Paths of files that keep no frame pointers, the most frequent first; they may hold any character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

/// Some samples, and what is new in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StackBatch {
    /// Frames that were not defined before; their numbers go on from those that were.
    pub frames: Vec<StackFrame>,
    /// Stacks that were not defined before, callers first.
    pub stacks: Vec<StackNode>,
    /// What frames that were defined before turned out to be: runtimes may name late what they compiled.
    pub renamed: Vec<(StackFrameId, StackFrame)>,
    /// Files that give no names, each once.
    pub unnamed: Vec<UnnamedFile>,
    /// What is to be told of how names were found: debug information that was fetched. They are safe to show.
    pub notes: Vec<String>,
    /// Tasks that were not defined before.
    pub tasks: Vec<Task>,
    /// When the kernel began to copy stacks, or another part of them.
    pub copies: Vec<CopySwitch>,
    /// How long events were on counters since the batch before, where they took turns.
    pub shares: Vec<RunShare>,
    /// The samples, in the order of time within a batch.
    pub samples: Vec<StackSample>,
    /// What functions cost and called since the batch before, where a model counts.
    pub costs: Vec<TaskCosts>,
    /// What has gone missing so far.
    pub losses: Losses,
}

impl StackBatch {
    /// All but its samples and costs: what it defines and tells, and what has gone missing so far.
    #[must_use]
    pub fn definitions(&self) -> Self {
        // Without `..`, so that a new field isn't forgotten.
        let Self { frames, stacks, renamed, unnamed, notes, tasks, copies, shares, samples: _, costs: _, losses } =
            self;
        Self {
            frames: frames.clone(),
            stacks: stacks.clone(),
            renamed: renamed.clone(),
            unnamed: unnamed.clone(),
            notes: notes.clone(),
            tasks: tasks.clone(),
            copies: copies.clone(),
            shares: shares.clone(),
            samples: Vec::new(),
            costs: Vec::new(),
            losses: *losses,
        }
    }

    /// Whether none of its samples was taken later than this: what had gone missing with them did so before.
    pub fn was_sampled_by(&self, time: WallNs) -> bool {
        self.samples.last().is_none_or(|last| last.at <= time)
    }

    /// Whether all of its samples, or any of its costs, are of later than this.
    pub fn begins_after(&self, time: WallNs) -> bool {
        self.samples.first().is_some_and(|first| first.at > time) || self.costs.iter().any(|costs| costs.at > time)
    }

    /// When its samples were taken and its costs counted.
    fn times(&self) -> impl Iterator<Item = WallNs> {
        self.samples.iter().map(|sample| sample.at).chain(self.costs.iter().map(|costs| costs.at))
    }
}

/// How stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnwindMethod {
    /// Frame pointers where they lead to all callers, and copies of the stack where they don't.
    Auto,
    /// Frame pointers, which the kernel follows.
    Fp,
    /// A copy of this many bytes of the stack, unwound by the programs' unwind information.
    Dwarf(u32),
    /// The processor's record of calls (Intel's LBR).
    Lbr,
    /// A model that knows all calls: nothing is sampled, costs are in [`StackBatch::costs`].
    Modelled,
}

/// How often an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// Samples per second; the kernel changes the period to keep to it.
    Frequency(u64),
    /// Occurrences per sample.
    Period(u64),
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frequency(hz) => write!(f, "{hz} Hz"),
            Self::Period(1) => f.write_str("every one"),
            Self::Period(n) => write!(f, "1 in {n}"),
        }
    }
}

/// An event that is sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledEvent {
    /// Name of the event as the user wrote it, with `:u` where only user space is sampled.
    pub name: String,
    /// What one of its weight stands for.
    #[serde(default)]
    pub unit: crate::events::Unit,
    /// Rate of sampling.
    pub rate: Rate,
}

/// What is sampled, and how: all that is known before the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingSetup {
    /// The events that samples name by their place.
    pub events: Vec<SampledEvent>,
    /// How stacks are unwound.
    pub call_graph: UnwindMethod,
}

impl SamplingSetup {
    /// Of regions alone: no event is sampled.
    pub fn of_nothing() -> Self {
        Self { events: Vec::new(), call_graph: UnwindMethod::Fp }
    }
}
