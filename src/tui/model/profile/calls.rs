//! Converts a profile tree to what screens need of it: its nodes, the numbers of every event, and names that
//! are safe to show.

use std::hash::Hasher;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHasher};

use super::functions::{FunctionRow, functions};
use super::shape::{PathTree, Shape, TreeNode};
use crate::events::Unit;
use crate::names::{short_name, shown};
use crate::profile::{
    Amount, CallCounts, CallTimes, EventId, Frame, FrameKind, NodeRef, SampleMeasure, Tree, is_runtime_entry,
};
use crate::stacks::{CUT, OFF_CPU, PYTHON, WOKEN_BY, is_of_runtime};

/// The number of a frame in its tree.
pub(in crate::tui) type FrameIndex = u32;

/// Whose code a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum FrameOrigin {
    /// The program itself.
    Program,
    /// A library that it loaded.
    Library,
    Kernel,
    /// Compiled or interpreted while the program ran.
    Jit,
    /// No module is known; a process, or many small subtrees.
    Unknown,
}

impl FrameOrigin {
    /// The word for it, as in the legend.
    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Program => "program",
            Self::Library => "library",
            Self::Kernel => "kernel",
            Self::Jit => "JIT",
            Self::Unknown => "unknown",
        }
    }
}

/// A frame as screens show it.
#[derive(Clone, Debug)]
pub(in crate::tui) struct FrameLabel {
    pub(in crate::tui) name: String,
    /// The name without the arguments of templates, generics and functions.
    pub(in crate::tui) short: String,
    /// The file's name without its folder.
    pub(in crate::tui) module: String,
    /// The source file, if it is known.
    pub(in crate::tui) file: String,
    /// Whether the name has the file behind it, as another function of the module has the same name.
    is_file_told: bool,
    pub(in crate::tui) origin: FrameOrigin,
    /// Whether it only starts a program, a thread or a system call.
    pub(in crate::tui) is_entry: bool,
    /// Whether it may stand on one line with others.
    pub(in crate::tui) may_join: bool,
    /// Whether it is a named region, which counts calls.
    pub(in crate::tui) is_region: bool,
    /// Whether it is a process or a thread.
    pub(super) is_process: bool,
    /// Hash that is the same for all frames of the module, and for all of the name.
    pub(in crate::tui) module_hash: u32,
    pub(in crate::tui) name_hash: u32,
}

impl FrameLabel {
    fn of(frame: &Frame<'_>, is_root: bool) -> Self {
        let module = place(frame).rsplit('/').next().unwrap_or_default();
        let name = if is_root { "all".into() } else { shown(frame.name).into_owned() };
        Self {
            short: if frame.kind == FrameKind::Function { short_name(&name).into_owned() } else { name.clone() },
            name,
            module: shown(module).into_owned(),
            file: shown(frame.file).into_owned(),
            is_file_told: false,
            origin: origin(frame),
            is_entry: frame.kind == FrameKind::Function && is_runtime_entry(frame.name),
            may_join: matches!(frame.kind, FrameKind::Function | FrameKind::Process),
            is_region: frame.kind == FrameKind::Region,
            is_process: frame.kind == FrameKind::Process,
            module_hash: hash(if frame.kind == FrameKind::Region { frame.name } else { frame.module }),
            name_hash: hash(frame.name),
        }
    }

    /// Puts the source file behind the name, once: `helper (a.c)`.
    fn tell_file(&mut self, is_told_by_path: bool) {
        let file = if is_told_by_path { &self.file } else { self.file.rsplit('/').next().unwrap_or_default() };
        if !file.is_empty() && !self.is_file_told {
            let told = format!(" ({file})");
            self.name += &told;
            self.short += &told;
            self.is_file_told = true;
        }
    }
}

/// The parts of a path as it was written, without the detours by which compilers name one header: `a/../b.h`, `./b.h`.
fn components(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts
}

/// The file that a reader knows code by: of what a runtime compiled its source, where that is told.
fn place<'a>(frame: &Frame<'a>) -> &'a str {
    let module = frame.module.rsplit('/').next().unwrap_or_default();
    if is_of_runtime(module) && !frame.file.is_empty() { frame.file } else { frame.module }
}

fn origin(frame: &Frame<'_>) -> FrameOrigin {
    let file = frame.module.rsplit('/').next().unwrap_or_default();
    match frame.kind {
        FrameKind::Process | FrameKind::Other => FrameOrigin::Unknown,
        FrameKind::Region => FrameOrigin::Program,
        FrameKind::Function if frame.is_kernel() => FrameOrigin::Kernel,
        FrameKind::Function if is_of_runtime(file) => FrameOrigin::Jit,
        FrameKind::Function if frame.module == PYTHON => FrameOrigin::Jit,
        FrameKind::Function if matches!(frame.module, "" | "[unknown]" | "//anon") => FrameOrigin::Unknown,
        FrameKind::Function if is_library(file) || file == "[vdso]" => FrameOrigin::Library,
        FrameKind::Function => FrameOrigin::Program,
    }
}

/// Whether a file is a library by its name: `libc.so.6`, `_json.cpython-311.so`, `libz.so (deleted)`.
fn is_library(file: &str) -> bool {
    let name = file.split(' ').next().unwrap_or_default();
    name.ends_with(".so") || name.contains(".so.")
}

/// A module as screens show it.
#[derive(Clone, Debug)]
pub(in crate::tui) struct ModuleLabel {
    pub(in crate::tui) name: String,
    pub(in crate::tui) origin: FrameOrigin,
}

fn hash(text: &str) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    // The upper half is the better mixed one.
    (hasher.finish() >> 32) as u32
}

/// An event that was sampled.
#[derive(Clone, Debug)]
pub(in crate::tui) struct EventAmounts {
    /// Name as it was given; not escaped.
    pub(in crate::tui) name: String,
    pub(in crate::tui) has_samples: bool,
    /// Where it was measured of calls, whether as their times or as counts in them.
    pub(in crate::tui) of_calls: Option<CallMeasure>,
    /// What was counted on each node itself.
    pub(super) own: Arc<Vec<Amount>>,
    /// What was counted in the calls of each node.
    counts: FxHashMap<TreeNode, CallCounts>,
}

/// What is measured of calls.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tui) enum CallMeasure {
    /// How long they take.
    Time,
    /// What an event counts in them, in its unit.
    Count(Unit),
}

impl CallMeasure {
    /// What it is measured in.
    pub(in crate::tui) fn unit(&self) -> &Unit {
        match self {
            Self::Time => &Unit::Nanoseconds,
            Self::Count(unit) => unit,
        }
    }
}

/// What is known of the calls of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::tui) struct RowCalls {
    /// Their times.
    pub(in crate::tui) times: CallTimes,
    /// What the event that is shown counted in them; nothing where it counts no calls, or wasn't counted.
    pub(in crate::tui) counts: CallCounts,
}

impl RowCalls {
    /// What is known of these and other calls together.
    pub(super) fn add(&mut self, other: &Self) {
        self.times.add(&other.times);
        self.counts.add(&other.counts);
    }
}

/// A tree at one moment.
#[derive(Debug, Default)]
pub(in crate::tui) struct SampledTree {
    labels: Vec<FrameLabel>,
    /// The module of each frame, by number; 0 for frames that are in none.
    modules_of_frames: Vec<u32>,
    modules: Vec<ModuleLabel>,
    module_numbers: FxHashMap<String, u32>,
    /// The first frame with a file of each name in a module, by their hashes.
    namesakes: FxHashMap<(u32, u32), usize>,
    pub(super) paths: Arc<PathTree>,
    pub(in crate::tui) events: Vec<EventAmounts>,
    /// What is known of the calls of each node, where they were measured.
    times: FxHashMap<u32, CallTimes>,
}

impl SampledTree {
    /// Takes over what is in the tree now. Names are made once: frames keep their numbers while a tree grows, and in
    /// one that is made again from the same samples.
    pub(super) fn take(&mut self, tree: &Tree) {
        if tree.frames().len() < self.labels.len() {
            self.labels.clear();
            self.modules_of_frames.clear();
            self.namesakes.clear();
        }
        let known = self.labels.len();
        for (index, frame) in tree.frames().enumerate().skip(known) {
            let label = FrameLabel::of(&frame, index == 0);
            let module = self.module_number(&frame, &label, index == 0);
            self.modules_of_frames.push(module);
            self.labels.push(label);
            self.tell_apart(index);
        }
        let frame = |node: NodeRef<'_>| node.frame_id().index() as FrameIndex;
        let parent = |node: NodeRef<'_>| node.parent().map_or(0, |parent| parent.index() as u32);
        let known = self.paths.frames.iter().zip(&self.paths.parents);
        let is_known = |(node, known): (_, (&_, &_))| (frame(node), parent(node)) == (*known.0, *known.1);
        if tree.len() != self.paths.frames.len() || !tree.nodes().zip(known).all(is_known) {
            let (frames, parents) = (tree.nodes().map(frame).collect(), tree.nodes().map(parent).collect());
            self.paths = Arc::new(PathTree { frames, parents });
        }
        let times = tree.nodes().filter_map(|node| Some((node.id().index() as u32, *node.call_times()?)));
        self.times = times.collect();
        self.events = tree.event_ids().map(|id| sampled(tree, id)).collect();
    }

    /// Lets names tell the source file where another function of the module has the same name.
    fn tell_apart(&mut self, frame: usize) {
        let label = &self.labels[frame];
        if label.is_region || label.file.is_empty() {
            return;
        }
        let first = *self.namesakes.entry((label.name_hash, label.module_hash)).or_insert(frame);
        let [one, other] = [&self.labels[first].file, &label.file].map(|file| components(file));
        if one == other {
            return;
        }
        let is_told_by_path = one.last() == other.last();
        [first, frame].iter().for_each(|&namesake| self.labels[namesake].tell_file(is_told_by_path));
    }

    /// The number of a frame's module, which a new one gets. Processes, regions and the root stand in none.
    fn module_number(&mut self, frame: &Frame<'_>, label: &FrameLabel, is_root: bool) -> u32 {
        if self.modules.is_empty() {
            self.modules.push(ModuleLabel { name: "[no function]".into(), origin: FrameOrigin::Unknown });
        }
        if is_root || frame.kind != FrameKind::Function {
            return 0;
        }
        // What is missing of a stack is in no module, and isn't code of an unknown one.
        let key = if label.module.is_empty() && frame.name == CUT { CUT } else { place(frame) };
        if let Some(&number) = self.module_numbers.get(key) {
            return number;
        }
        let number = self.modules.len() as u32;
        let name = match key {
            CUT => CUT.to_owned(),
            _ if label.module.is_empty() => "[unknown]".into(),
            _ => label.module.clone(),
        };
        self.modules.push(ModuleLabel { name, origin: label.origin });
        self.module_numbers.insert(key.to_owned(), number);
        number
    }

    /// The number of a frame's module.
    pub(super) fn module_of(&self, frame: FrameIndex) -> u32 {
        self.modules_of_frames.get(frame as usize).copied().unwrap_or(0)
    }

    /// The same of all frames.
    pub(super) fn modules_of_frames(&self) -> &[u32] {
        &self.modules_of_frames
    }

    /// A module by its number.
    pub(in crate::tui) fn module(&self, module: u32) -> &ModuleLabel {
        &self.modules[module as usize]
    }

    /// Whether it says who woke a thread.
    pub(super) fn is_waker(&self, frame: FrameIndex) -> bool {
        let FrameLabel { name, module, .. } = self.label(frame);
        module == OFF_CPU && name.starts_with(WOKEN_BY)
    }

    /// The functions below a node, in the order of the list.
    pub(super) fn functions(&self, shape: &Shape, root: TreeNode, before: &[FunctionRow]) -> Vec<FunctionRow> {
        functions(shape, root, before, |frame| self.is_waker(frame), |frame| self.label(frame).is_process)
    }

    pub(in crate::tui) fn label(&self, frame: FrameIndex) -> &FrameLabel {
        &self.labels[frame as usize]
    }

    /// Whether some name has arguments that a short one leaves out.
    pub(super) fn has_short_names(&self) -> bool {
        self.labels.iter().any(|label| label.short != label.name)
    }

    /// The nodes whose calls were measured, in no order.
    pub(super) fn measured(&self) -> impl Iterator<Item = TreeNode> + '_ {
        self.times.keys().copied()
    }

    /// Whether the calls of a node were measured.
    pub(super) fn has_calls(&self, node: TreeNode) -> bool {
        self.times.contains_key(&node)
    }

    /// Whether the calls of a node have a number of an event, which may be 0.
    pub(super) fn is_measured(&self, node: TreeNode, event: usize) -> bool {
        let Some(event) = self.events.get(event) else { return false };
        match &event.of_calls {
            None => false,
            Some(CallMeasure::Time) => self.times.get(&node).is_some_and(|times| times.calls > 0),
            Some(CallMeasure::Count(_)) => event.counts.get(&node).is_some_and(CallCounts::is_counted),
        }
    }

    /// What is known of the calls of a node, and of an event in them.
    pub(super) fn of_calls(&self, node: TreeNode, event: usize) -> Option<RowCalls> {
        let times = *self.times.get(&node)?;
        let counts = self.events.get(event).and_then(|event| event.counts.get(&node).copied());
        Some(RowCalls { times, counts: counts.unwrap_or(CallCounts { calls: times.calls, ..CallCounts::default() }) })
    }

    /// What is known of the calls of a frame on all paths.
    pub(super) fn of_calls_of_frame(&self, frame: FrameIndex, event: usize) -> Option<RowCalls> {
        let is_of_frame = |node: &&TreeNode| self.paths.frames.get(**node as usize) == Some(&frame);
        // In the order of nodes, so that the same tree gives the same digits.
        let mut nodes: Vec<TreeNode> = self.times.keys().filter(is_of_frame).copied().collect();
        nodes.sort_unstable();
        self.of_calls_of(&nodes, event)
    }

    /// What is known of the calls of all these nodes.
    pub(super) fn of_calls_of(&self, nodes: &[TreeNode], event: usize) -> Option<RowCalls> {
        let all = nodes.iter().filter_map(|&node| self.of_calls(node, event));
        all.reduce(|mut sum, calls| {
            sum.add(&calls);
            sum
        })
    }

    pub(super) fn labels(&self) -> &[FrameLabel] {
        &self.labels
    }
}

/// Where nothing has a weight, samples weigh one each.
fn sampled(tree: &Tree, id: EventId) -> EventAmounts {
    let event = tree.event_of(id);
    let has_weight = tree.total(id).weight > 0;
    let own = |amount: Amount| if has_weight { amount } else { Amount { weight: amount.samples, ..amount } };
    let own = tree.nodes().map(|node| own(node.amount(id))).collect();
    let of_calls = match &event.measure {
        SampleMeasure::Timed => Some(CallMeasure::Time),
        SampleMeasure::Counted(unit) if unit == "nanoseconds" => Some(CallMeasure::Count(Unit::Nanoseconds)),
        SampleMeasure::Counted(_) => Some(CallMeasure::Count(Unit::Count)),
        SampleMeasure::Samples | SampleMeasure::Weighted(_) | SampleMeasure::Sum(_) => None,
    };
    let counts = tree.nodes().filter_map(|node| Some((node.id().index() as TreeNode, *node.call_counts(id)?)));
    EventAmounts {
        name: event.name.clone(),
        has_samples: event.has_samples(),
        counts: counts.collect(),
        of_calls,
        own: Arc::new(own),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::TreeOptions;

    #[test]
    fn functions_of_one_name_tell_their_files() {
        let mut tree = Tree::new(TreeOptions::default());
        let helper = Frame { module: "/bin/p", file: "/src/a.c", ..Frame::function("helper") };
        let add = |tree: &mut Tree, frames: &[Frame<'_>]| {
            for frame in frames {
                tree.frame(frame);
            }
        };
        add(&mut tree, &[helper, Frame { name: "other", ..helper }]);
        let mut calls = SampledTree::default();
        let names = |calls: &SampledTree| calls.labels().iter().map(|label| label.name.clone()).collect::<Vec<_>>();
        calls.take(&tree);
        assert_eq!(names(&calls), ["all", "helper", "other"]);
        // Those of other modules, and those whose file nobody knows, are no reason to tell it.
        let detour = Frame { file: "/src/x/.././a.c", ..helper };
        add(&mut tree, &[Frame { module: "/bin/q", file: "b.c", ..helper }, Frame { file: "", ..helper }, detour]);
        calls.take(&tree);
        assert_eq!(names(&calls)[1..], ["helper", "other", "helper", "helper", "helper"]);
        add(&mut tree, &[Frame { file: "b.c", ..helper }, Frame { file: "0x1170", ..helper }]);
        calls.take(&tree);
        let expected = ["helper (a.c)", "other", "helper", "helper", "helper", "helper (b.c)", "helper (0x1170)"];
        assert_eq!(names(&calls)[1..], expected);
        assert_eq!(calls.label(1).short, "helper (a.c)");
        // Files of one name are told by their paths.
        add(
            &mut tree,
            &[Frame { file: "c/b.c", ..Frame::function("g") }, Frame { file: "d/b.c", ..Frame::function("g") }],
        );
        calls.take(&tree);
        assert_eq!(names(&calls)[8..], ["g (c/b.c)", "g (d/b.c)"]);
    }
}
