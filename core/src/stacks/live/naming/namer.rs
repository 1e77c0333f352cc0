//! Names the locations of samples on a thread of its own, and defines frames and stacks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::symbols::{NamedLocation, SymbolSources, unknown};
use crate::stacks::end::StackEnd;
use crate::stacks::live::jit::{JitProcess, LateName, MadeCode, MakerKey, MapReading};
use crate::stacks::live::mapped::ModuleContents;
use crate::stacks::live::samples::{LeftCpu, PATIENCE, RawBatch, RawSample, Waker};
use crate::stacks::live::unwinding::PathNode;
use crate::stacks::{
    CUT, Losses, NamelessReason, StackBatch, StackFrame, StackFrameId, StackId, StackNode, StackSample, UnnamedFile,
    WOKEN_BY, WaitReason, WaitingSamples,
};

/// The most addresses of compiled code that may wait for a name; others stay without one.
const MOST_PENDING: usize = 1 << 16;

/// How long what has its names may wait for more that came at once.
const GIVEN_ON: Duration = Duration::from_millis(250);

/// Takes raw batches until there are no more, and gives them on with names.
pub(in crate::stacks::live) fn run(batches: &Receiver<RawBatch>, to: &Sender<StackBatch>, waiting: &WaitingSamples) {
    let mut namer = Namer::new();
    let mut ready = StackBatch::default();
    let mut given = Instant::now();
    for raw in batches {
        let (is_last_so_far, samples) = (batches.is_empty(), raw.samples.len() as u64);
        namer.name(raw, &mut ready);
        waiting.went(samples);
        // Several that came at once go on as one, unless the names of many have to be read.
        if !is_last_so_far && given.elapsed() < GIVEN_ON {
            continue;
        }
        given = Instant::now();
        if !offer(&mut ready, &mut namer, to) {
            return;
        }
    }
    namer.find_late_names(MapReading::Last, &mut ready);
    // The last batch alone may wait for room.
    let _ = to.send_timeout(ready, PATIENCE);
}

/// Whether anybody still takes batches. A full channel costs the samples only.
fn offer(ready: &mut StackBatch, namer: &mut Namer, to: &Sender<StackBatch>) -> bool {
    let losses = ready.losses;
    match to.try_send(std::mem::take(ready)) {
        Ok(()) => {
            ready.losses = losses;
            namer.given = losses;
            true
        }
        Err(TrySendError::Full(batch)) => {
            *ready = batch;
            // Nor do the stacks that are gone with the samples count as cut ones.
            let of_dropped = losses.since(&namer.given);
            ready.losses.forget_stacks(&of_dropped);
            namer.drop_stacks(&of_dropped, ready.samples.len() as u64);
            ready.losses.dropped += ready.samples.len() as u64;
            ready.samples.clear();
            true
        }
        Err(TrySendError::Disconnected(_)) => false,
    }
}

/// Names locations, and defines frames and stacks once.
struct Namer {
    symbols: SymbolSources,
    /// The frames of each location, the outermost first: a function, and what is inlined there.
    locations: Vec<Vec<StackFrameId>>,
    /// The stack of each path, and what it is of.
    paths: Vec<Option<StackId>>,
    path_nodes: Vec<PathNode>,
    /// The location of each address of code that a process made.
    made: FxHashMap<(MakerKey, u64), usize>,
    frame_numbers: FxHashMap<StackFrame, StackFrameId>,
    frames: Vec<KnownFrame>,
    /// Frames of code that processes made, which may get their names later.
    pending: FxHashMap<(MakerKey, u64), StackFrameId>,
    /// Names of threads that woke others.
    wakers: Vec<String>,
    stack_numbers: FxHashMap<StackNode, StackId>,
    /// All stacks, and below which frame those stand that are cut.
    stacks: Vec<StackNode>,
    cut_stacks: FxHashMap<StackId, StackId>,
    /// Of each stack where it ends, by its outermost frame.
    ends: Vec<StackEnd>,
    /// Of each stack what is waited for in it, by the innermost of the kernel's frames that tells.
    reasons: Vec<Option<WaitReason>>,
    /// Stacks of which names told that they are cut, and of which names told nothing.
    cut: u64,
    unknown: u64,
    /// Samples that were dropped here, and what was told of their stacks.
    dropped: Losses,
    /// What was told with the last batch that was sent.
    given: Losses,
}

/// What the name of a frame tells.
#[derive(Clone, Copy)]
struct KnownFrame {
    /// Whether stacks end there.
    end: StackEnd,
    is_main: bool,
    is_kernel: bool,
    /// What threads wait for there.
    reason: Option<WaitReason>,
}

impl Namer {
    fn new() -> Self {
        Self {
            symbols: SymbolSources::new(),
            locations: Vec::new(),
            paths: Vec::new(),
            path_nodes: Vec::new(),
            made: FxHashMap::default(),
            frame_numbers: FxHashMap::default(),
            frames: Vec::new(),
            pending: FxHashMap::default(),
            wakers: Vec::new(),
            stack_numbers: FxHashMap::default(),
            stacks: Vec::new(),
            cut_stacks: FxHashMap::default(),
            ends: Vec::new(),
            reasons: Vec::new(),
            cut: 0,
            unknown: 0,
            dropped: Losses::default(),
            given: Losses::default(),
        }
    }

    fn drop_stacks(&mut self, of_stacks: &Losses, samples: u64) {
        self.dropped.dropped += samples;
        self.dropped.cut += of_stacks.cut;
        self.dropped.unknown += of_stacks.unknown;
        self.dropped.too_deep += of_stacks.too_deep;
        self.dropped.copy_ended += of_stacks.copy_ended;
        self.dropped.stack_gone += of_stacks.stack_gone;
    }

    fn name(&mut self, raw: RawBatch, out: &mut StackBatch) {
        for opened in &raw.modules {
            if let ModuleContents::Dump(dump) = &opened.contents {
                self.symbols.jit.dump(dump);
            }
        }
        self.symbols.modules.extend(raw.modules);
        let named = self.symbols.name(&raw.locations, &mut out.unnamed);
        out.notes.append(&mut self.symbols.programs.notes);
        for (location, named) in raw.locations.iter().zip(named) {
            let numbers = match named {
                NamedLocation::Frames(frames) => {
                    frames.into_iter().map(|frame| self.number(frame, &mut out.frames)).collect()
                }
                NamedLocation::Made(maker) => {
                    self.made.insert((maker.key(), location.place), self.locations.len());
                    vec![self.pending(&maker, location.place, &mut out.frames)]
                }
            };
            self.locations.push(numbers);
        }
        self.find_late_names(MapReading::IfDue, out);
        for path in &raw.paths {
            let stack = self.stack_of(*path, &mut out.stacks);
            self.paths.push(stack);
            self.path_nodes.push(*path);
        }
        out.tasks.extend(raw.tasks);
        self.wakers.extend(raw.wakers);
        for sample in &raw.samples {
            let found = self.found(sample, out);
            let stack = sample.left.map_or(found, |left| Some(self.waiting(found, left, out)));
            let &RawSample { at, task, cpu, event, weight, .. } = sample;
            out.samples.push(StackSample { at, task, cpu, event, weight, stack });
        }
        out.copies.extend(raw.copies);
        out.shares.extend(raw.shares);
        out.losses = raw.losses;
        out.losses.dropped += self.dropped.dropped;
        out.losses.cut += self.cut;
        out.losses.unknown += self.unknown;
        out.losses.forget_stacks(&self.dropped);
    }

    /// The stack of a path, whose callers have theirs.
    fn stack_of(&mut self, path: PathNode, new: &mut Vec<StackNode>) -> Option<StackId> {
        let mut caller = path.caller.and_then(|caller| self.paths[caller.0 as usize]);
        let location = path.location.0 as usize;
        for index in 0..self.locations[location].len() {
            let frame = self.locations[location][index];
            caller = Some(self.stack(StackNode { caller, frame }, new));
        }
        caller
    }

    /// Gives later samples the frames of code that lies now where other code was.
    fn rename_later(&mut self, changed: Vec<LateName>, out: &mut StackBatch) {
        let mut locations = FxHashSet::default();
        for late in changed {
            let Some(&location) = self.made.get(&(late.maker, late.address)) else { continue };
            self.locations[location] = vec![self.number(late.frame(), &mut out.frames)];
            locations.insert(location);
        }
        if locations.is_empty() {
            return;
        }
        let mut is_changed = vec![false; self.paths.len()];
        for place in 0..self.paths.len() {
            let path = self.path_nodes[place];
            let of_caller = path.caller.is_some_and(|caller| is_changed[caller.0 as usize]);
            if of_caller || locations.contains(&(path.location.0 as usize)) {
                is_changed[place] = true;
                self.paths[place] = self.stack_of(path, &mut out.stacks);
            }
        }
    }

    /// The stack of a sample, below a frame that says so where it is cut.
    fn found(&mut self, sample: &RawSample, out: &mut StackBatch) -> Option<StackId> {
        let stack = sample.path.and_then(|path| self.paths[path.0 as usize]);
        let end = match sample.end {
            StackEnd::Unknown => stack.map_or(StackEnd::Unknown, |stack| self.ends[stack.0 as usize]),
            known => known,
        };
        if sample.faults.asks_for_end {
            self.cut += u64::from(end == StackEnd::Cut);
            self.unknown += u64::from(end == StackEnd::Unknown);
        }
        stack.map(|stack| if end == StackEnd::Cut { self.below_cut(stack, out) } else { stack })
    }

    /// The same stack below a frame that says that its outer frames are missing.
    fn below_cut(&mut self, stack: StackId, out: &mut StackBatch) -> StackId {
        if let Some(&known) = self.cut_stacks.get(&stack) {
            return known;
        }
        let nodes = std::iter::successors(Some(stack), |stack| self.stacks[stack.0 as usize].caller);
        let frames: Vec<_> = nodes.map(|stack| self.stacks[stack.0 as usize].frame).collect();
        let frame = self.number(StackFrame { name: CUT.into(), ..StackFrame::default() }, &mut out.frames);
        let mut below = self.stack(StackNode { caller: None, frame }, &mut out.stacks);
        for frame in frames.into_iter().rev() {
            below = self.stack(StackNode { caller: Some(below), frame }, &mut out.stacks);
        }
        self.cut_stacks.insert(stack, below);
        below
    }

    /// The stack of a thread on no CPU, with what it waited for.
    fn waiting(&mut self, stack: Option<StackId>, left: LeftCpu, out: &mut StackBatch) -> StackId {
        let (reason, waker) = match left {
            LeftCpu::Ready => (WaitReason::Cpu, Waker::Unknown),
            LeftCpu::Blocked(waker) => {
                (stack.and_then(|stack| self.reason(stack)).unwrap_or(WaitReason::Unknown), waker)
            }
        };
        let frame = self.number(reason.frame(), &mut out.frames);
        let waits = self.stack(StackNode { caller: stack, frame }, &mut out.stacks);
        let name = match waker {
            Waker::Unknown => return waits,
            // Of the timer, which is what it waited for.
            Waker::Interrupt if reason == WaitReason::Sleep => return waits,
            Waker::Interrupt => format!("{WOKEN_BY}an interrupt]"),
            Waker::Thread(number) => {
                format!("{WOKEN_BY}{}]", self.wakers.get(number as usize).map_or("?", String::as_str))
            }
        };
        let waker = StackFrame { name, ..reason.frame() };
        let frame = self.number(waker, &mut out.frames);
        self.stack(StackNode { caller: Some(waits), frame }, &mut out.stacks)
    }

    /// What a thread waited for that left its CPU in a stack. What a program's function waits for is told by the
    /// kernel's functions below it, too: a lock may wait for a page.
    fn reason(&self, stack: StackId) -> Option<WaitReason> {
        let reason = self.reasons[stack.0 as usize]?;
        let nodes = std::iter::successors(Some(stack), |stack| self.stacks[stack.0 as usize].caller);
        let mut of_kernel = nodes
            .map(|stack| self.frames[self.stacks[stack.0 as usize].frame.0 as usize])
            .take_while(|frame| frame.is_kernel)
            .peekable();
        let is_told = of_kernel.peek().is_none() || of_kernel.any(|frame| frame.reason.is_some());
        (is_told || !reason.may_be_futex()).then_some(reason)
    }

    /// The number of a stack, which is defined when it is met first.
    fn stack(&mut self, node: StackNode, new: &mut Vec<StackNode>) -> StackId {
        if let Some(&known) = self.stack_numbers.get(&node) {
            return known;
        }
        let KnownFrame { end, is_main, reason, .. } = self.frames[node.frame.0 as usize];
        let of_caller = |caller: StackId| self.ends[caller.0 as usize];
        self.ends.push(node.caller.map_or(end, |caller| of_caller(caller).with_main(is_main)));
        let of_caller = node.caller.and_then(|caller| self.reasons[caller.0 as usize]);
        self.reasons.push(WaitReason::called_by(reason, of_caller));
        let number = StackId(u32::try_from(self.stack_numbers.len()).unwrap_or(u32::MAX));
        self.stack_numbers.insert(node, number);
        self.stacks.push(node);
        new.push(node);
        number
    }

    /// The number of a frame, which is defined when it is met first.
    fn number(&mut self, frame: StackFrame, new: &mut Vec<StackFrame>) -> StackFrameId {
        if let Some(&known) = self.frame_numbers.get(&frame) {
            return known;
        }
        let number = self.define(frame.clone(), new);
        self.frame_numbers.insert(frame, number);
        number
    }

    fn define(&mut self, frame: StackFrame, new: &mut Vec<StackFrame>) -> StackFrameId {
        let number = StackFrameId(u32::try_from(self.frames.len()).unwrap_or(u32::MAX));
        self.frames.push(KnownFrame {
            end: StackEnd::of(&frame.name, &frame.module, frame.kernel),
            is_main: frame.name == "main",
            is_kernel: frame.kernel,
            reason: WaitReason::within(&frame.name, frame.kernel),
        });
        new.push(frame);
        number
    }

    /// The number of an address of code that a process made: a frame of its own, as its name may come late.
    fn pending(&mut self, maker: &Arc<JitProcess>, address: u64, new: &mut Vec<StackFrame>) -> StackFrameId {
        let frame = StackFrame { module: "//anon".into(), ..unknown(NamelessReason::Made) };
        if self.pending.len() >= MOST_PENDING {
            return self.number(frame, new);
        }
        let number = self.define(frame, new);
        self.pending.insert((maker.key(), address), number);
        self.symbols.jit.want(maker, address);
        number
    }

    /// Gives frames the names that have become known since.
    fn find_late_names(&mut self, when: MapReading, out: &mut StackBatch) {
        let found = self.symbols.jit.look(when);
        for late in found.names {
            let Some(number) = self.pending.remove(&(late.maker, late.address)) else { continue };
            out.renamed.push((number, late.frame()));
        }
        self.rename_later(found.changed, out);
        let asked = found.asked.iter();
        out.notes.extend(asked.map(|pid| {
            format!("Java ({pid}) was asked for the names of its code, as by  jcmd {pid} Compiler.perfmap")
        }));
        let unnamed = found.refused.into_iter().map(|(path, why)| UnnamedFile { path, why: why.to_string() });
        out.unnamed.extend(unnamed);
    }
}

impl LateName {
    fn frame(self) -> StackFrame {
        let MadeCode { name, file, line } = self.code;
        StackFrame { name, module: self.module, file, line, ..StackFrame::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::symbols::UNKNOWN;
    use super::*;
    use crate::stacks::live::mapped::{Module, ModuleId, Modules, SeenAddresses};
    use crate::stacks::live::samples::StackFaults;
    use crate::stacks::live::unwinding::{CodeLocation, LocationId, PathId};
    use crate::stacks::{StackTable, Task, TaskId};
    use crate::units::WallNs;

    const ASKING: StackFaults = StackFaults { asks_for_end: true, ..StackFaults::NONE };

    fn raw(weight: u64) -> RawSample {
        let (at, path) = (WallNs(1), Some(PathId(0)));
        RawSample {
            at,
            task: TaskId(0),
            cpu: 0,
            event: 0,
            weight,
            path,
            end: StackEnd::Beginning,
            faults: StackFaults::NONE,
            left: None,
        }
    }

    /// A batch with one location that has no mapping.
    fn nowhere() -> RawBatch {
        let mut modules = Modules::default();
        modules.number(Module::Nowhere, &SeenAddresses::default());
        RawBatch {
            modules: modules.since(0).cloned().collect(),
            locations: vec![CodeLocation { module: ModuleId(0), place: 0 }],
            paths: vec![PathNode { caller: None, location: LocationId(0) }],
            tasks: vec![Task { pid: 1, tid: 1, comm: "x".into() }],
            wakers: vec!["worker".into()],
            shares: vec![],
            copies: Vec::new(),
            samples: vec![raw(5)],
            losses: Losses::default(),
        }
    }

    #[test]
    fn names_tell_of_stacks_that_ask_whether_they_are_cut() {
        let (mut namer, mut out) = (Namer::new(), StackBatch::default());
        let asking = RawSample { end: StackEnd::Unknown, faults: ASKING, ..raw(5) };
        let losses = Losses { cut: 7, ..Losses::default() };
        namer.name(RawBatch { samples: vec![raw(5), asking], losses, ..nowhere() }, &mut out);
        // No code lies there.
        assert_eq!((out.losses.cut, out.losses.unknown, out.samples.len()), (8, 0, 2));
    }

    #[test]
    fn cut_stacks_stand_below_a_frame_that_says_so() {
        let (mut namer, mut out) = (Namer::new(), StackBatch::default());
        let cut = RawSample { end: StackEnd::Cut, ..raw(5) };
        namer.name(RawBatch { samples: vec![raw(5), cut, cut], ..nowhere() }, &mut out);
        let mut table = StackTable::default();
        table.define(&out).unwrap();
        let names = |sample: &StackSample| -> Vec<_> {
            let frames = table.innermost_first(sample.stack);
            frames.map(|frame| table.frame(frame).unwrap().name.as_str()).collect()
        };
        let [whole, first, second] = &out.samples[..] else { panic!("{:?}", out.samples) };
        assert_eq!((names(whole), names(first)), (vec![UNKNOWN], vec![UNKNOWN, CUT]));
        assert_eq!(first.stack, second.stack);
        // Some other way had told that they are cut, and counted them.
        assert_eq!(out.losses.cut, 0);
    }

    #[test]
    fn a_wait_ends_in_what_is_waited_for() {
        let (mut namer, mut out) = (Namer::new(), StackBatch::default());
        namer.wakers.push("worker".into());
        let frame = |name: &str, kernel| StackFrame { name: name.into(), kernel, ..StackFrame::default() };
        let mut stack = None;
        // A program's own function of that name says nothing.
        for (name, kernel) in [("futex_loop", false), ("read", false), ("anon_pipe_read", true), ("schedule", true)] {
            let frame = namer.number(frame(name, kernel), &mut out.frames);
            stack = Some(namer.stack(StackNode { caller: stack, frame }, &mut out.stacks));
        }
        let mut ends_in = |stack, left| {
            let end = namer.waiting(stack, left, &mut out);
            out.frames[out.stacks[end.0 as usize].frame.0 as usize].name.clone()
        };
        assert_eq!(ends_in(stack, LeftCpu::Blocked(Waker::Unknown)), "[waits for a pipe or socket]");
        assert_eq!(ends_in(stack, LeftCpu::Ready), "[waits for a CPU]");
        assert_eq!(ends_in(Some(StackId(1)), LeftCpu::Blocked(Waker::Unknown)), "[waits]");
        assert_eq!(ends_in(None, LeftCpu::Blocked(Waker::Unknown)), "[waits]");
        assert_eq!(ends_in(stack, LeftCpu::Blocked(Waker::Interrupt)), "[woken by an interrupt]");
        assert_eq!(ends_in(stack, LeftCpu::Blocked(Waker::Thread(0))), "[woken by worker]");
    }

    #[test]
    fn code_that_lies_where_other_code_was_has_its_name_from_then_on() {
        let maker = Arc::new(JitProcess::of(i32::MAX - 12));
        let (mut namer, mut out) = (Namer::new(), StackBatch::default());
        namer.name(nowhere(), &mut out);
        // As if a process had made the code.
        namer.made.insert((maker.key(), 0x1000), 0);
        let late = |name: &str| LateName {
            maker: maker.key(),
            address: 0x1000,
            code: MadeCode { name: name.into(), ..MadeCode::default() },
            module: "perf-7.map".into(),
        };
        namer.rename_later(vec![late("second")], &mut out);
        namer.name(RawBatch { samples: vec![raw(5)], ..RawBatch::default() }, &mut out);
        let mut table = StackTable::default();
        table.define(&out).unwrap();
        let name = |sample: &StackSample| {
            table
                .innermost_first(sample.stack)
                .map(|frame| table.frame(frame).unwrap().name.as_str())
                .collect::<Vec<_>>()
        };
        assert_eq!(out.samples.iter().map(name).collect::<Vec<_>>(), [[UNKNOWN], ["second"]]);
    }

    #[test]
    fn stacks_of_samples_that_are_dropped_are_not_among_the_cut_ones() {
        let (mut namer, mut ready) = (Namer::new(), StackBatch::default());
        let (to, batches) = crossbeam_channel::bounded(1);
        let asking = RawSample { end: StackEnd::Unknown, faults: ASKING, ..raw(5) };
        let raw = |cut| RawBatch {
            samples: vec![asking, raw(5)],
            losses: Losses { cut, too_deep: cut, ..Losses::default() },
            ..RawBatch::default()
        };
        namer.name(RawBatch { samples: vec![], ..nowhere() }, &mut ready);
        let told = |batch: &StackBatch| (batch.losses.cut, batch.losses.too_deep, batch.losses.dropped);
        // Names tell of one in each batch that it is cut.
        namer.name(raw(1), &mut ready);
        assert!(offer(&mut ready, &mut namer, &to));
        namer.name(raw(2), &mut ready);
        assert!(offer(&mut ready, &mut namer, &to), "it is full");
        assert_eq!((told(&ready), ready.samples.len()), ((2, 1, 2), 0));
        assert_eq!(told(&batches.recv().unwrap()), (2, 1, 0));
        namer.name(raw(3), &mut ready);
        assert!(offer(&mut ready, &mut namer, &to));
        let last = batches.recv().unwrap();
        assert_eq!((told(&last), last.samples.len()), ((4, 2, 2), 2));
    }

    #[test]
    fn what_a_full_channel_drops_are_samples_and_no_definitions() {
        let (to_namer, from_sampler) = crossbeam_channel::unbounded();
        let (to_user, batches) = crossbeam_channel::bounded(1);
        let waiting = WaitingSamples::default();
        waiting.came(2);
        let counted = waiting.clone();
        to_user.send(StackBatch::default()).unwrap();
        let namer = std::thread::spawn(move || run(&from_sampler, &to_user, &counted));
        to_namer.send(nowhere()).unwrap();
        while !to_namer.is_empty() {
            std::thread::yield_now();
        }
        // Comes whole in any case: it waits until there is room.
        to_namer.send(RawBatch { samples: vec![raw(7)], ..RawBatch::default() }).unwrap();
        drop(to_namer);
        assert_eq!(batches.recv().unwrap(), StackBatch::default());
        let mut table = StackTable::default();
        let all: Vec<_> = batches.iter().collect();
        all.iter().for_each(|batch| table.define(batch).unwrap());
        namer.join().unwrap();
        let kept = all.iter().flat_map(|batch| &batch.samples).count() as u64;
        let dropped = all.last().unwrap().losses.dropped;
        assert_eq!(kept + dropped, 2);
        assert_eq!(waiting.count(), 0);
        assert_eq!(table.frames()[0].name, UNKNOWN);
    }
}
