//! Defines how files of stacks are read and written.

use super::names::Names;
use super::timed::TimedRun;
use crate::profile::{Amount, EventId, NodeRef, Tree, TreeOptions};
use crate::recording::TimeRange;

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// The text of `perf script`.
    PerfScript,
    /// A stack a line, `a;b;c 12`.
    Folded,
    /// pprof's protobuf, with gzip or without.
    Pprof,
    /// A recording of perfprop with sampled stacks.
    Recording,
    /// Costs and calls of valgrind's callgrind, and costs of its cachegrind.
    Callgrind,
}

/// Which events of a file are read. In pprof's files events are types of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventSelection {
    /// All events.
    #[default]
    All,
    /// The first event that is met in `perf script`; all events in other formats.
    First,
    /// The events with these names, with or without their modifiers.
    Named(Vec<String>),
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Format of the file; guessed from its first lines where this is `None`.
    pub format: Option<InputFormat>,
    /// How the tree is built.
    pub tree: TreeOptions,
    /// How frames of `perf script` are named.
    pub names: Names,
    /// What stands above the functions of `perf script`.
    pub process: ProcessNaming,
    /// Which periods of `perf script` count.
    pub periods: Periods,
    /// Events to read.
    pub events: EventSelection,
    /// The part of a recording's time that is read; all of it where this is `None`.
    pub range: Option<TimeRange>,
    /// Whether samples of a recording are kept one by one, and what places of frames.
    pub samples: SampleKeeping,
}

/// What is kept of the samples of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SampleKeeping {
    /// Their sums in the tree.
    #[default]
    Sums,
    /// Each with its time and its thread, too.
    Each,
    /// Each with its time and its thread, in frames that are divided by offsets in their files, where these are known.
    EachWithOffsets,
}

/// How the frame above all functions of a sample is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessNaming {
    /// No frame for the process.
    None,
    /// Named by the command.
    #[default]
    Name,
    /// Named by command and process: `name-pid`.
    Pid,
    /// Named by command, process and thread: `name-pid/tid`.
    Tid,
}

/// Which periods are the weights of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Periods {
    /// All periods that are printed.
    #[default]
    All,
    /// As inferno-collapse-perf: those with one blank behind them. perf aligns the names of several events with more;
    /// their samples weigh 1 then.
    Unpadded,
}

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// pprof's protobuf, packed with gzip; all events.
    Pprof,
    /// A stack a line, `a;b;c 12`; one event.
    Folded,
    /// JSON for the Firefox Profiler: a track for each thread, or for each event where threads aren't known.
    Firefox,
    /// JSON for speedscope: a profile for each thread, or for each event where threads aren't known.
    Speedscope,
    /// A flame graph as a picture; one event.
    Svg,
    /// A flame graph as a page; one event.
    Html,
}

/// What of a text of `perf script` isn't in the tree, or not for sure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptGaps {
    /// Whether periods didn't count, of [`Periods::Unpadded`].
    pub periods: bool,
    /// The number of lines that are messages of perf.
    pub messages: u64,
    /// Events that came behind the first, of [`EventSelection::First`], and their numbers of samples.
    pub others: Vec<(String, u64)>,
    /// Whether the text ends within a line of a sample.
    pub is_cut: bool,
}

impl ScriptGaps {
    /// What people are told of messages and of the end of the text.
    pub fn notes(&self) -> Vec<String> {
        let messages = match self.messages {
            0 => None,
            1 => Some("1 line is a message of perf, and is skipped".to_owned()),
            lines => Some(format!("{lines} lines are messages of perf, and are skipped")),
        };
        let cut = "the last line has no end: the last sample may be cut off";
        messages.into_iter().chain(self.is_cut.then(|| cut.to_owned())).collect()
    }
}

/// Which of an event's numbers is written, where a format has room for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WrittenNumber {
    /// The weight: what samples stand for.
    #[default]
    Weights,
    /// The number of samples.
    Samples,
}

impl WrittenNumber {
    /// The number of a node itself. An event without samples has its weight only.
    pub(super) fn of(self, node: &NodeRef<'_>, event: EventId) -> u64 {
        self.in_amount(node.tree(), event, node.amount(event))
    }

    /// This number of an amount that was summed over nodes.
    pub(super) fn in_amount(self, tree: &Tree, event: EventId, amount: Amount) -> u64 {
        match self {
            Self::Samples if tree.event_of(event).has_samples() => amount.samples,
            _ => amount.weight,
        }
    }

    /// Name of the unit, as pprof has it.
    pub(super) fn name(self, tree: &Tree, event: EventId) -> &str {
        match self {
            Self::Samples if tree.event_of(event).has_samples() => "count",
            _ => tree.event_of(event).unit(),
        }
    }
}

/// How a file is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Which number of an event.
    pub unit: WrittenNumber,
    /// The event, where a format has room for one; the tree's default where this is `None`.
    pub event: Option<EventId>,
    /// What stands above a flame graph.
    pub title: String,
    /// Two events of which a flame graph shows the difference.
    pub difference: Option<FlameDifference>,
    /// What a recording says of times and threads, for formats that have room for it.
    pub run: Option<TimedRun>,
    /// What a profile of pprof says of times, for one that is written.
    pub times: Option<ProfileTimes>,
}

/// When a profile of pprof was made, and what lay between its samples. 0 is what isn't known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileTimes {
    /// Nanoseconds since 1970.
    pub time_nanos: i64,
    /// How long it took.
    pub duration_nanos: i64,
    /// What lies between two samples.
    pub period: i64,
    /// Name and unit of what the period counts.
    pub period_type: Option<(String, String)>,
}

/// What a flame graph shows of a difference: the events of the two sides, and the functions that differ for sure.
#[derive(Clone, Debug)]
pub struct FlameDifference {
    /// The side that is compared with.
    pub a: EventId,
    /// The other one.
    pub b: EventId,
    /// Functions, by name and the file that they are in, that differ by more than chance.
    pub marked: std::collections::BTreeSet<(String, String)>,
    /// What is to be known of marks.
    pub note: String,
}

impl WriteOptions {
    pub(super) fn event(&self, tree: &Tree) -> Option<EventId> {
        self.event.or_else(|| tree.default_event())
    }
}
