//! Adds batches of samples to a profile tree.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use super::folding::{FrameRole, InterpreterFrames, fold};
use super::level::{FirstLevel, LevelFrames};
use super::places::{PlacedSample, ProfileSpan, RecentSamples, SampleLog, SampledPlaces, StackPlace};
use super::regions::{RegionEvents, RegionPaths};
use super::share::RunShares;
use super::timeline::{SampleTimeline, TimedSample};
use super::{
    FunctionLines, NamelessSamples, SampleWorth, SamplingSetup, StackBatch, StackFrame, StackId, StackTable, Task,
    TaskCosts, UnknownRegions, UnwindMethod,
};
use crate::callgrind::{self, FunctionId};
use crate::events::Unit;
use crate::profile::{self, Amount, EventId, Frame, FrameId, FrameKind, SampleMeasure, ThreadId, Tree, TreeOptions};
use crate::regions::{RegionAt, RegionBatch, RegionTable, Undefined};
use crate::units::WallNs;

/// What stands in the place of a region above samples of which nobody knows which regions were open.
const UNKNOWN_REGION: &str = "[region unknown]";

/// A profile tree that grows with every batch.
#[derive(Debug)]
pub struct StackTree {
    tree: Tree,
    place: ThreadId,
    table: StackTable,
    /// The tree's event of each sampled event; `None` for those that are left out.
    events: Vec<Option<EventId>>,
    naming: Naming,
    /// The tree's frame of each frame and each task.
    frames: Vec<FrameId>,
    /// What each frame is beside the functions of a language.
    roles: Vec<FrameRole>,
    interpreter: InterpreterFrames,
    tasks: Vec<Option<FrameId>>,
    /// What stands above samples.
    levels: LevelFrames,
    /// The stack that is being entered, the outermost frame first.
    path: Vec<FrameId>,
    /// The roles of its frames, the innermost first, and which of them stay.
    path_roles: Vec<FrameRole>,
    stays: Vec<bool>,
    /// All that was sampled: should a frame turn out to be another one, the paths are made anew of it.
    run: SampledPlaces,
    /// What of it is shown; `None` where that is all.
    recent: Option<SampledPlaces>,
    /// Whether the paths aren't those of all that was taken.
    is_stale: bool,
    log: SampleLog,
    regions: RegionPaths,
    shares: RunShares,
    in_unknown_regions: UnknownRegions,
    nameless: NamelessSamples,
    /// What a model counted, by the frame above a task.
    graphs: BTreeMap<Option<FrameId>, callgrind::CallGraph>,
}

/// Finds lines of code that was inlined into a function, frame by frame, the innermost first.
#[derive(Debug, Default)]
struct InlinedLines<'a> {
    /// Frames that are inlined into what follows, with their depths.
    pending: Vec<(usize, &'a StackFrame)>,
    /// Those of them that lie in the file of the function.
    lines: Vec<u32>,
    /// Whether the first of these ran itself.
    is_innermost: bool,
}

impl<'a> InlinedLines<'a> {
    fn begin_stack(&mut self) {
        self.pending.clear();
        self.lines.clear();
        self.is_innermost = false;
    }

    fn take_other(&mut self, frame: &'a StackFrame, depth: usize) {
        if frame.inlined {
            self.pending.push((depth, frame));
        } else {
            self.pending.clear();
        }
    }

    /// Takes a frame of the function, into which those before it are inlined.
    fn take_caller(&mut self, caller: &StackFrame) {
        for (depth, frame) in self.pending.drain(..) {
            if frame.file.is_some() && frame.file == caller.file {
                self.is_innermost |= depth == 0 && frame.line.is_some();
                self.lines.extend(frame.line);
            }
        }
    }
}

/// Names a task; `None` leaves it unnamed.
pub type TaskNaming = Box<dyn Fn(&Task) -> Option<String> + Send>;
/// Adds a place in code to a tree, as a frame.
pub type FrameNaming = Box<dyn Fn(&StackFrame, &mut Tree) -> FrameId + Send>;

/// How frames are named.
pub struct Naming {
    /// The frame that stands above all of a task, if there is to be one.
    pub task: TaskNaming,
    /// The frame of the tree for a place in code.
    pub frame: FrameNaming,
}

impl Default for Naming {
    /// Tasks by their names, frames as they are.
    fn default() -> Self {
        Self { task: Box::new(|task| Some(task.comm.clone())), frame: Box::new(as_is) }
    }
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naming").finish_non_exhaustive()
    }
}

/// Adds a frame unchanged.
pub fn as_is(frame: &StackFrame, tree: &mut Tree) -> FrameId {
    tree.frame(&Frame {
        kind: FrameKind::Function,
        name: &frame.name,
        module: &frame.module,
        file: frame.file.as_deref().unwrap_or_default(),
        line: frame.line.and_then(NonZeroU32::new),
        offset: frame.offset,
    })
}

impl StackTree {
    /// An empty tree for the events that `takes` chooses by name.
    pub fn new(
        sampled: &SamplingSetup,
        options: TreeOptions,
        naming: Naming,
        mut takes: impl FnMut(&str) -> bool,
    ) -> Self {
        let mut tree = Tree::new(options);
        let place = tree.sampled();
        let chosen = sampled.events.iter().map(|event| {
            let unit = match event.unit {
                Unit::Nanoseconds => "nanoseconds",
                Unit::Count | Unit::Scaled { .. } => "count",
            };
            let measure = match sampled.call_graph {
                UnwindMethod::Modelled => SampleMeasure::Sum(unit.into()),
                _ => SampleMeasure::Weighted(unit.into()),
            };
            takes(&event.name).then(|| tree.event(&profile::ProfileEvent::new(&event.name, measure)))
        });
        let events = chosen.collect();
        let (table, frames, tasks, path) = (StackTable::default(), Vec::new(), Vec::new(), Vec::new());
        let (regions, graphs) = (RegionPaths::default(), BTreeMap::new());
        let in_unknown_regions = UnknownRegions::default();
        Self {
            tree,
            place,
            table,
            events,
            naming,
            frames,
            roles: Vec::new(),
            interpreter: InterpreterFrames::default(),
            tasks,
            levels: LevelFrames::default(),
            path,
            path_roles: Vec::new(),
            stays: Vec::new(),
            run: SampledPlaces::default(),
            recent: None,
            is_stale: false,
            log: SampleLog::default(),
            regions,
            shares: RunShares::default(),
            in_unknown_regions,
            nameless: NamelessSamples::default(),
            graphs,
        }
    }

    /// Adds the samples of a batch.
    ///
    /// # Errors
    /// Fails if the batch names what no batch has defined; then nothing is added.
    pub fn take(&mut self, batch: &StackBatch) -> Result<(), Undefined> {
        let mut named =
            batch.samples.iter().map(|sample| sample.event).chain(batch.shares.iter().map(|share| share.event));
        if let Some(event) = named.find(|&event| event as usize >= self.events.len()) {
            return Err(Undefined { kind: "event", id: event });
        }
        self.table.define(batch)?;
        let Self { tree, naming, .. } = self;
        self.frames.extend(batch.frames.iter().map(|frame| (naming.frame)(frame, tree)));
        self.roles.extend(batch.frames.iter().map(FrameRole::of));
        let process = |task: &Task| {
            let name = (naming.task)(task)?;
            Some(tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(&name) }))
        };
        self.tasks.extend(batch.tasks.iter().map(process));
        self.rename(&batch.renamed);
        self.shares.take(&batch.shares);
        for sample in &batch.samples {
            let Some(event) = self.events[sample.event as usize] else { continue };
            let task = self.table.task(sample.task);
            let region = task.map_or(RegionAt::Outside, |task| self.regions.region_at(task, sample.at));
            let cpu = self.levels.cpu(sample.cpu);
            let place = StackPlace { task: sample.task, cpu, stack: sample.stack, region, event };
            let weight = self.shares.weight(sample.event, sample.at, sample.weight);
            let number = self.run.add(place, weight);
            self.log.add(PlacedSample { at: sample.at, place: number, weight });
            if self.recent.is_none() {
                self.add(place, Amount { samples: 1, weight });
                self.count(place, 1);
            }
        }
        batch.costs.iter().for_each(|costs| self.take_costs(costs));
        Ok(())
    }

    /// Counts samples whose innermost function has no name, and those of which nobody knows which regions were open.
    fn count(&mut self, place: StackPlace, samples: u64) {
        let frame = place.stack.and_then(|stack| self.table.stack(stack)).and_then(|node| self.table.frame(node.frame));
        if let Some(reason) = frame.and_then(|frame| frame.nameless) {
            self.nameless.add(place.event, reason, samples);
        }
        if place.region == RegionAt::Unknown {
            let is_joined = self.table.task(place.task).is_some_and(Task::is_joined);
            self.in_unknown_regions.samples += samples;
            self.in_unknown_regions.of_joined += if is_joined { samples } else { 0 };
        }
    }

    /// What is shown of what was sampled.
    fn shown(&self) -> &SampledPlaces {
        self.recent.as_ref().unwrap_or(&self.run)
    }

    /// Shows the samples of a span that ends with `until`. Gives the time after which they are; `None` where that is
    /// the beginning. What a model or regions counted is always that of the whole run. Needs [`Self::with_recent`].
    pub fn show(&mut self, span: ProfileSpan, until: WallNs) -> Option<WallNs> {
        let recent = match (span.start(until), &self.log) {
            (Some(after), SampleLog::Recent(log)) => Some(log.since(after, &self.run)),
            _ => None,
        };
        if recent.is_none() && self.recent.is_none() {
            return None;
        }
        let (recent, since) = recent.unzip();
        self.recent = recent;
        self.is_stale = true;
        self.settle();
        since
    }

    /// What an event sampled of a function, by lines.
    pub fn lines_of(&self, function: usize, event: usize) -> FunctionLines {
        let mut lines = FunctionLines::default();
        let (mut frames, mut roles, mut stays, mut inlined) =
            (Vec::new(), Vec::new(), Vec::new(), InlinedLines::default());
        for (place, amount) in self.shown().amounts().iter().filter(|(place, _)| place.event.index() == event) {
            lines.add_of_all(*amount);
            frames.clear();
            inlined.begin_stack();
            let mut is_innermost = false;
            roles.clear();
            roles.extend(self.table.innermost_first(place.stack).map(|frame| self.roles[frame.0 as usize]));
            self.stays_of(&roles, &mut stays);
            let staying = self.table.innermost_first(place.stack).zip(&stays).filter(|(_, stays)| **stays);
            for (depth, (number, _)) in staying.enumerate() {
                let Some(frame) = self.table.frame(number) else { continue };
                if self.frames[number.0 as usize].index() == function {
                    is_innermost |= depth == 0;
                    frames.push(frame);
                    inlined.take_caller(frame);
                } else {
                    inlined.take_other(frame, depth);
                }
            }
            lines.add(&frames, is_innermost, *amount);
            lines.add_inlined(&inlined.lines, inlined.is_innermost, *amount);
        }
        lines
    }

    /// Samples in functions without a name.
    pub fn nameless(&self) -> &NamelessSamples {
        &self.nameless
    }

    /// Puts an amount onto its path.
    fn add(&mut self, place: StackPlace, amount: Amount) {
        self.find_path(place);
        self.tree.stack(self.place, self.path.iter().rev().copied(), place.event, amount);
    }

    /// Finds the frames of a path, the innermost first.
    fn find_path(&mut self, place: StackPlace) {
        self.path.clear();
        self.path.extend(self.table.innermost_first(place.stack).map(|frame| self.frames[frame.0 as usize]));
        self.fold_path(place.stack);
        let is_below_program = self.regions.threads.is_none() && self.levels.level == FirstLevel::ThreadName;
        let above = self.levels.frame((place.task, place.cpu), &self.table, &self.naming.task, &mut self.tree);
        match place.region {
            RegionAt::In(region) if is_below_program => self.path.extend(self.regions.path(region).iter().rev()),
            RegionAt::In(region) => {
                self.path.extend(self.regions.below_program(region).iter().rev());
                self.path.extend(above);
            }
            RegionAt::Outside => self.path.extend(above),
            RegionAt::Unknown => {
                let unknown = Frame { kind: FrameKind::Region, ..Frame::function(UNKNOWN_REGION) };
                self.path.push(self.tree.frame(&unknown));
                self.path.extend(above);
            }
        }
    }

    /// Leaves out of the path of a stack what only runs functions of a language.
    fn fold_path(&mut self, stack: Option<StackId>) {
        if self.interpreter == InterpreterFrames::Shown {
            return;
        }
        self.path_roles.clear();
        self.path_roles.extend(self.table.innermost_first(stack).map(|frame| self.roles[frame.0 as usize]));
        fold(&self.path_roles, &mut self.stays);
        let mut stays = self.stays.iter();
        self.path.retain(|_| stays.next().is_none_or(|stays| *stays));
    }

    /// Which frames of a stack stay in its path.
    fn stays_of(&self, roles: &[FrameRole], stays: &mut Vec<bool>) {
        match self.interpreter {
            InterpreterFrames::Folded => fold(roles, stays),
            InterpreterFrames::Shown => {
                stays.clear();
                stays.resize(roles.len(), true);
            }
        }
    }

    /// Frames that turned out to be other ones: all paths are to be made anew.
    fn rename(&mut self, renamed: &[(super::StackFrameId, StackFrame)]) {
        let mut has_changed = false;
        for (number, frame) in renamed {
            let role = FrameRole::of(frame);
            has_changed |= std::mem::replace(&mut self.roles[number.0 as usize], role) != role;
            let frame = (self.naming.frame)(frame, &mut self.tree);
            has_changed |= std::mem::replace(&mut self.frames[number.0 as usize], frame) != frame;
        }
        self.is_stale |= has_changed && !self.run.is_empty();
    }

    /// Makes the paths anew, and what is counted beside them.
    fn refresh(&mut self) {
        self.add_all();
        self.nameless = NamelessSamples::default();
        self.in_unknown_regions = UnknownRegions::default();
        for number in 0..self.shown().amounts().len() {
            let (place, amount) = self.shown().amounts()[number];
            self.count(place, amount.samples);
        }
    }

    /// Makes all paths of samples and regions anew.
    fn add_all(&mut self) {
        self.tree.clear();
        for number in 0..self.shown().amounts().len() {
            let (place, amount) = self.shown().amounts()[number];
            self.add(place, amount);
        }
        self.regions.add_all(&mut self.tree, self.place);
    }

    /// Forgets all that was sampled so far. What is defined stays, and so do the numbers of frames and what regions
    /// counted.
    pub fn forget_samples(&mut self) {
        self.run = SampledPlaces::default();
        self.recent = self.recent.take().map(|_| SampledPlaces::default());
        self.log.clear();
        self.graphs.clear();
        self.refresh();
    }

    /// What the first level tells apart.
    pub fn first_level(&self) -> FirstLevel {
        self.levels.level
    }

    /// Gives frames the numbers that they had in another tree, before any is taken.
    pub fn number_frames_as(&mut self, other: Self) {
        self.tree.number_frames_as(other.tree);
    }

    /// Has another first level, below which all that was sampled stands from now on. Of samples that were taken before
    /// the level was CPUs, the CPU is unknown. What a model counted stays below names of threads.
    pub fn set_first_level(&mut self, level: FirstLevel) {
        if level == self.levels.level {
            return;
        }
        self.levels = LevelFrames::of(level);
        if !self.run.is_empty() {
            self.add_all();
            self.settle();
        }
    }

    /// Whether interpreters' own frames are shown.
    pub fn interpreter_frames(&self) -> InterpreterFrames {
        self.interpreter
    }

    /// Shows interpreters' own frames of all that was sampled, or leaves them out, from now on.
    pub fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        if std::mem::replace(&mut self.interpreter, frames) != frames && !self.run.is_empty() {
            self.add_all();
            self.settle();
        }
    }

    /// Which events of regions the tree has, by name: `region-time`, `region-page-faults`. All, unless this chooses
    /// before the first batch.
    #[must_use]
    pub fn with_region_events(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.regions.chosen = RegionEvents::Named(names.into_iter().collect());
        self
    }

    /// Has every thread's regions stand below the thread, which is one of these tasks, and not those of all threads
    /// below their program: what threads counted is in the last batch. Chosen before the first batch.
    #[must_use]
    pub fn with_regions_of_threads(mut self, tasks: &[Task]) -> Self {
        self.regions.threads = Some(tasks.iter().map(|task| (task.tid.cast_unsigned(), task.clone())).collect());
        self
    }

    /// Keeps samples one by one, too, for [`Self::into_timeline`]. Chosen before the first batch.
    #[must_use]
    pub fn with_timeline(self) -> Self {
        Self { log: SampleLog::All(Vec::new()), ..self }
    }

    /// Keeps the samples of the last minute one by one, for [`Self::show`]. Chosen before the first batch.
    #[must_use]
    pub fn with_recent(self) -> Self {
        Self { log: SampleLog::Recent(RecentSamples::default()), ..self }
    }

    /// Adds what was counted of regions, and places what is sampled from now on below those that were open.
    ///
    /// # Errors
    /// Fails if the batch names what no batch has defined; then nothing is added.
    pub fn take_regions(&mut self, batch: &RegionBatch) -> Result<(), Undefined> {
        self.regions.take(batch, &mut self.tree, &self.naming)?;
        if batch.counted_since.is_some() {
            self.regions.add_new(&mut self.tree, self.place, batch);
        }
        self.regions.add_threads(&mut self.tree, self.place, batch, &self.naming);
        Ok(())
    }

    /// The regions so far.
    pub fn regions(&self) -> &RegionTable {
        &self.regions.table
    }

    /// Samples of which nobody knows which regions were open, and enters and leaves that are gone.
    pub fn unknown_regions(&self) -> UnknownRegions {
        UnknownRegions { missed: self.regions.open.missed(), ..self.in_unknown_regions }
    }

    /// What samples tell whose weights differ.
    pub fn worth(&self) -> &SampleWorth {
        self.shown().worth()
    }

    /// The time up to which all is known of which regions were open.
    pub fn knows_regions_until(&self) -> WallNs {
        self.regions.open.known_until()
    }

    /// Forgets which regions were open before a time: of samples that come later it is unknown.
    pub fn forget_open_before(&mut self, at: WallNs) {
        self.regions.open.forget_before(at);
    }

    fn take_costs(&mut self, costs: &TaskCosts) {
        self.is_stale = true;
        let (above, events) = (self.tasks[costs.task.0 as usize], self.events.len());
        let graph = self.graphs.entry(above).or_insert_with(|| callgrind::CallGraph::new(events));
        for (function, counts) in &costs.own {
            graph.add_own(FunctionId(function.0), counts);
        }
        for (caller, callee, count, counts) in &costs.calls {
            graph.add_calls(FunctionId(caller.0), FunctionId(callee.0), *count, counts);
        }
    }

    /// Whether [`Self::settle`] would change the tree.
    pub fn is_settled(&self) -> bool {
        !self.is_stale
    }

    /// Makes paths anew: those of frames that turned out to be other ones, and those of what a model counted, as which
    /// path has how much depends on all of it. It takes the longer the more was sampled.
    pub fn settle(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            self.refresh();
        }
        if self.graphs.is_empty() {
            return;
        }
        self.tree.clear();
        for (above, graph) in &self.graphs {
            graph.add_to(&mut self.tree, above.as_slice(), &self.frames, &self.events);
        }
        self.regions.add_all(&mut self.tree, self.place);
    }

    /// The tree so far; of a model, and of frames that turned out to be other ones, as it was [settled](Self::settle)
    /// last.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Returns the tree, and the samples one by one if they were kept.
    pub fn into_timeline(mut self) -> (Tree, SampleTimeline) {
        self.settle();
        let ends: Vec<_> = (0..self.run.amounts().len())
            .map(|number| {
                self.find_path(self.run.amounts()[number].0);
                self.tree.end_of(self.path.iter().rev().copied())
            })
            .collect();
        let sample = |sample: PlacedSample| {
            let StackPlace { task, event, .. } = self.run.amounts()[sample.place].0;
            TimedSample { at: sample.at, task, event, node: ends[sample.place], weight: sample.weight }
        };
        let log = match std::mem::take(&mut self.log) {
            SampleLog::All(samples) => samples,
            SampleLog::Nothing | SampleLog::Recent(_) => Vec::new(),
        };
        let mut samples: Vec<_> = log.into_iter().map(sample).collect();
        samples.sort_by_key(|sample| sample.at);
        let tasks = self.table.tasks().to_vec();
        (self.tree, SampleTimeline { tasks, samples })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::{Rate, SampledEvent, StackNode, StackSample, TaskId, UnwindMethod};
    use super::*;

    fn sampled() -> SamplingSetup {
        let event = |name: &str, unit| SampledEvent { name: name.into(), unit, rate: Rate::Period(1) };
        let events = vec![event("cpu-clock", Unit::Nanoseconds), event("page-faults", Unit::Count)];
        SamplingSetup { events, call_graph: UnwindMethod::Fp }
    }

    /// `main` and, within it, `f` twice over.
    fn batch() -> StackBatch {
        let frame = |name: &str| StackFrame { name: name.into(), module: "/bin/p".into(), ..StackFrame::default() };
        let node = |caller: Option<u32>, frame| StackNode {
            caller: caller.map(StackId),
            frame: super::super::StackFrameId(frame),
        };
        let sample = |event, weight, stack: u32| StackSample {
            at: WallNs(0),
            task: TaskId(0),
            cpu: 0,
            event,
            weight,
            stack: Some(StackId(stack)),
        };
        StackBatch {
            frames: vec![frame("main"), frame("f")],
            stacks: vec![node(None, 0), node(Some(0), 1), node(Some(1), 1)],
            tasks: vec![Task { pid: 1, tid: 1, comm: "p".into() }],
            samples: vec![sample(0, 100, 2), sample(0, 50, 1), sample(1, 3, 0)],
            ..StackBatch::default()
        }
    }

    #[test]
    fn code_inlined_from_the_same_file_has_its_lines() {
        let frame = |name: &str, file: &str, line, inlined| StackFrame {
            name: name.into(),
            module: "/bin/p".into(),
            file: Some(file.into()),
            line: Some(line),
            inlined,
            ..StackFrame::default()
        };
        let mut batch = batch();
        let all = [
            ("score", "a.c", 10, false),
            ("dist", "a.c", 7, true),
            ("min", "std.h", 90, true),
            ("sq", "a.c", 6, true),
            ("other", "a.c", 20, false),
        ];
        batch.frames = all.map(|(name, file, line, inlined)| frame(name, file, line, inlined)).to_vec();
        let node = |caller: Option<u32>, frame| StackNode {
            caller: caller.map(StackId),
            frame: super::super::StackFrameId(frame),
        };
        batch.stacks = vec![node(None, 0), node(Some(0), 1), node(Some(1), 2), node(Some(2), 3), node(Some(1), 4)];
        let sample = batch.samples[0];
        batch.samples = [0, 1, 3, 3, 4].map(|stack| StackSample { stack: Some(StackId(stack)), ..sample }).to_vec();
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        tree.take(&batch).unwrap();
        let lines = tree.lines_of(tree.frames[0].index(), 0);
        let counted = |lines: &BTreeMap<u32, super::super::LineSamples>| -> Vec<_> {
            lines.iter().map(|(&line, one)| (line, one.own.samples, one.total.samples)).collect()
        };
        assert_eq!(counted(&lines.lines), [(10, 1, 5)]);
        // What an inlined function calls is none of it; what that is inlined through may be another file's.
        assert_eq!(counted(&lines.inlined), [(6, 2, 2), (7, 1, 4)]);
        assert_eq!((lines.whole.total.samples, lines.of_all.samples), (5, 5));
        // What the other function is in is the same event's.
        let other = tree.lines_of(tree.frames[4].index(), 0);
        assert_eq!((other.whole.total.samples, other.of_all), (1, lines.of_all));
    }

    #[test]
    fn recursion_is_one_path_and_every_event_has_its_weight() {
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        tree.take(&batch()).unwrap();
        let (tree, _) = tree.into_timeline();
        let [clock, faults] = ["cpu-clock", "page-faults"].map(|name| tree.find_event(name).unwrap());
        let rows: Vec<_> = tree
            .walk()
            .map(|node| (tree.names(node.id()).join(";"), node.weight(clock), node.samples(clock), node.weight(faults)))
            .collect();
        assert_eq!(rows[2], ("[root];p;main".into(), 0, 0, 3));
        assert_eq!(rows[3], ("[root];p;main;f".into(), 150, 2, 0));
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn a_frame_that_turns_out_to_be_another_moves_what_was_sampled() {
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        tree.take(&batch()).unwrap();
        let compiled = StackFrame { name: "compiled".into(), ..StackFrame::default() };
        let late = StackBatch { renamed: vec![(super::super::StackFrameId(1), compiled)], ..StackBatch::default() };
        assert!(tree.is_settled());
        tree.take(&late).unwrap();
        assert!(!tree.is_settled());
        let (tree, _) = tree.into_timeline();
        let clock = tree.find_event("cpu-clock").unwrap();
        let rows: Vec<_> = tree
            .walk()
            .map(|node| (tree.names(node.id()).join(";"), node.weight(clock), node.samples(clock)))
            .collect();
        assert_eq!(rows[3], ("[root];p;main;compiled".into(), 150, 2));
        assert_eq!((rows.len(), tree.total(clock).weight), (4, 150));
    }

    #[test]
    fn an_event_that_took_turns_weighs_more_in_every_path() {
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        let share = super::super::RunShare { until: WallNs(5), event: 1, enabled_ns: 4, running_ns: 1 };
        tree.take(&StackBatch { shares: vec![share], ..batch() }).unwrap();
        let unknown = super::super::RunShare { event: u32::MAX, ..share };
        assert!(tree.take(&StackBatch { shares: vec![unknown], ..StackBatch::default() }).is_err());
        let (tree, _) = tree.into_timeline();
        let [clock, faults] = ["cpu-clock", "page-faults"].map(|name| tree.total(tree.find_event(name).unwrap()));
        assert_eq!((clock, faults), (Amount { samples: 2, weight: 150 }, Amount { samples: 1, weight: 12 }));
    }

    #[test]
    fn samples_are_kept_in_the_order_of_time_with_their_paths_and_weights() {
        let new = || StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |name| name == "cpu-clock");
        let mut first = batch();
        first.samples[0].at = WallNs(7);
        let share = super::super::RunShare { until: WallNs(9), event: 0, enabled_ns: 2, running_ns: 1 };
        let mut tree = new().with_timeline();
        tree.take(&StackBatch { shares: vec![share], ..first }).unwrap();
        let (tree, timeline) = tree.into_timeline();
        let path = |sample: &TimedSample| tree.names(sample.node)[1..].join(";");
        let rows: Vec<_> = timeline.samples.iter().map(|sample| (sample.at.0, path(sample), sample.weight)).collect();
        // Recursion is folded, and the event that isn't chosen is left out.
        assert_eq!(rows, [(0, "p;main;f".into(), 100), (7, "p;main;f".into(), 200)]);
        assert_eq!(timeline.tasks, batch().tasks);
        let mut without = new();
        without.take(&batch()).unwrap();
        assert_eq!(without.into_timeline().1.samples, []);
    }

    #[test]
    fn samples_after_others_were_forgotten_are_those_of_a_tree_that_never_had_these() {
        let mut stacks = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        stacks.forget_samples();
        let first = batch();
        // Later ones name what the first batch has defined.
        let later = StackBatch { samples: first.samples[..1].to_vec(), ..StackBatch::default() };
        stacks.take(&first).unwrap();
        stacks.forget_samples();
        let event = stacks.tree().event_ids().next().unwrap();
        assert_eq!(stacks.tree().total(event), Amount::ZERO);
        stacks.take(&later).unwrap();
        let weight = first.samples[0].weight;
        assert_eq!(stacks.tree().total(event), Amount { samples: 1, weight });
    }

    #[test]
    fn another_first_level_moves_all_samples_and_loses_none() {
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        let mut first = batch();
        first.tasks = vec![Task { pid: 1, tid: 2, comm: "w".into() }, Task { pid: 1, tid: 1, comm: "p".into() }];
        tree.take(&first).unwrap();
        let paths = |tree: &StackTree| -> Vec<String> {
            let clock = tree.tree().find_event("cpu-clock").unwrap();
            let all = tree.tree().walk().filter(|node| node.weight(clock) > 0);
            all.map(|node| format!("{} {}", tree.tree().names(node.id())[1..].join(";"), node.weight(clock))).collect()
        };
        assert_eq!(paths(&tree), ["w;main;f 150"]);
        tree.set_first_level(FirstLevel::Process);
        assert_eq!(paths(&tree), ["p [1];main;f 150"]);
        tree.set_first_level(FirstLevel::Functions);
        assert_eq!(paths(&tree), ["main;f 150"]);
        tree.set_first_level(FirstLevel::Cpu);
        assert_eq!(paths(&tree), ["CPU not kept (sampled before);main;f 150"]);
        let mut second = StackBatch { samples: batch().samples, ..StackBatch::default() };
        second.samples.iter_mut().for_each(|sample| sample.cpu = 3);
        tree.take(&second).unwrap();
        assert_eq!(paths(&tree), ["CPU not kept (sampled before);main;f 150", "CPU 3;main;f 150"]);
        tree.set_first_level(FirstLevel::Thread);
        assert_eq!(paths(&tree), ["w [2];main;f 300"]);
    }

    #[test]
    fn events_that_are_not_chosen_are_left_out() {
        let chosen = |name: &str| name == "page-faults";
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), chosen);
        tree.take(&batch()).unwrap();
        assert_eq!(tree.tree().find_event("cpu-clock"), None);
        assert_eq!(tree.tree().total(tree.tree().find_event("page-faults").unwrap()).weight, 3);
    }

    #[test]
    fn an_event_that_was_not_sampled_is_an_error() {
        let mut tree = StackTree::new(&sampled(), TreeOptions::default(), Naming::default(), |_| true);
        let mut wrong = batch();
        wrong.samples[2].event = 2;
        assert_eq!(tree.take(&wrong), Err(Undefined { kind: "event", id: 2 }));
        assert_eq!(tree.tree().walk().count(), 1);
    }
}
