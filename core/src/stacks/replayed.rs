//! Builds the profile tree of a recording at a given time.

use super::{
    FirstLevel, FunctionLines, InterpreterFrames, Naming, SampleRange, SamplingSetup, StackBatch, StackQuality,
    StackTree,
};
use crate::profile::{Tree, TreeOptions};
use crate::regions::{RegionBatch, RegionRange};
use crate::units::WallNs;

/// What a recording has for a profile.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedProfile<'a> {
    /// Which events were sampled, and how; `None` where none were.
    pub sampled: Option<&'a SamplingSetup>,
    /// The samples.
    pub batches: &'a [StackBatch],
    /// What named regions counted.
    pub regions: &'a [RegionBatch],
}

impl RecordedProfile<'_> {
    /// Which events were sampled, and how; without events where none were.
    pub fn setup(&self) -> SamplingSetup {
        self.sampled.cloned().unwrap_or_else(SamplingSetup::of_nothing)
    }

    fn empty(&self) -> (StackTree, StackQuality) {
        let sampled = self.setup();
        let mut tree = StackTree::new(&sampled, TreeOptions::default(), Naming::default(), |_| true);
        tree.set_interpreter_frames(InterpreterFrames::Folded);
        (tree, StackQuality::of(sampled.call_graph))
    }
}

/// A profile that can be wound to any time.
#[derive(Debug)]
pub struct Replayed {
    stacks: StackTree,
    quality: StackQuality,
    /// The time that it stands at; `None` before all samples.
    at: Option<WallNs>,
    /// What of the samples is left out.
    samples: SampleRange,
    /// The first batch of which something is left, and how many of its samples are taken; `None` if it wasn't begun.
    next: usize,
    taken: Option<usize>,
    /// Batches of regions that are taken, and what of them is left out.
    regions: usize,
    range: RegionRange,
    level: FirstLevel,
    /// Whether it has parts of waits that went on.
    has_cut_waits: bool,
}

impl Replayed {
    /// A profile without samples yet.
    pub fn new(recorded: RecordedProfile<'_>) -> Self {
        let (stacks, quality) = recorded.empty();
        Self {
            stacks,
            quality,
            at: None,
            samples: SampleRange::after(None, recorded.sampled),
            next: 0,
            taken: None,
            regions: 0,
            range: RegionRange::default(),
            level: FirstLevel::default(),
            has_cut_waits: false,
        }
    }

    /// Has another first level of the tree, also of samples that are already taken: the tree is made anew, as CPUs
    /// aren't kept of them.
    pub fn set_first_level(&mut self, level: FirstLevel) {
        self.level = level;
    }

    /// Shows interpreters' own frames, or leaves them out.
    pub fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        self.stacks.set_interpreter_frames(frames);
    }

    /// The tree of all samples and regions up to and with a time, and what had gone missing by then. Always hand over
    /// the same recording. Back from a later time, the tree is made anew. A batch that names what isn't defined is left
    /// out.
    pub fn until(&mut self, recorded: RecordedProfile<'_>, until: WallNs) -> (&Tree, &StackQuality) {
        self.between(recorded, None, until)
    }

    /// The tree of a part of the time: of samples and regions after `after`, if it isn't `None`, and what went missing
    /// from then on. The rest is as for [`until`](Self::until).
    pub fn between(
        &mut self,
        recorded: RecordedProfile<'_>,
        after: Option<WallNs>,
        until: WallNs,
    ) -> (&Tree, &StackQuality) {
        if self.at.is_some_and(|at| at > until || self.has_cut_waits && at < until)
            || self.samples.start() != after
            || self.level != self.stacks.first_level()
        {
            let (level, interpreter) = (self.level, self.stacks.interpreter_frames());
            let (samples, range) = (SampleRange::after(after, recorded.sampled), RegionRange::after(after));
            let anew = Self { level, samples, range, ..Self::new(recorded) };
            let before = std::mem::replace(self, anew);
            // Screens keep names and what was selected by the numbers of frames.
            self.stacks.number_frames_as(before.stacks);
            self.stacks.set_first_level(level);
            self.stacks.set_interpreter_frames(interpreter);
        }
        while let Some(batch) = recorded.regions.get(self.regions).filter(|batch| batch.at <= until) {
            let _ = self.stacks.take_regions(&self.range.take(batch));
            self.regions += 1;
        }
        // As live: samples wait until it is known which regions were open.
        let known = recorded.regions.get(self.regions).map_or(until, |next| next.since.min(until));
        self.take_samples(recorded.batches, known);
        self.quality.take_known(&self.stacks);
        self.quality.since = after;
        self.at = Some(until);
        (self.stacks.tree(), &self.quality)
    }

    /// The same, with what waits that went on then had already lasted.
    pub fn part(
        &mut self,
        recorded: RecordedProfile<'_>,
        after: Option<WallNs>,
        until: WallNs,
    ) -> (&Tree, &StackQuality) {
        self.between(recorded, after, until);
        if !self.has_cut_waits {
            self.cut_waits(recorded.batches, until);
        }
        (self.stacks.tree(), &self.quality)
    }

    /// Takes what was before a time of waits that were told after it.
    fn cut_waits(&mut self, batches: &[StackBatch], until: WallNs) {
        let batches = batches.iter().skip(self.next).take_while(|batch| !SampleRange::is_over(batch, until));
        for (batch, taken) in batches.zip(std::iter::once(self.taken).chain(std::iter::repeat(None))) {
            let later = batch.samples.iter().filter(|sample| sample.at > until);
            let samples: Vec<_> = later.filter_map(|sample| self.samples.part(sample, until)).collect();
            let definitions = if taken.is_none() { batch.definitions() } else { StackBatch::default() };
            let _ = self.stacks.take(&StackBatch { samples, ..definitions });
            self.has_cut_waits = true;
        }
    }

    /// What an event of the tree sampled of a function up to where it stands, by lines; both by their places in the
    /// tree.
    pub fn lines_of(&self, function: usize, event: usize) -> FunctionLines {
        self.stacks.lines_of(function, event)
    }

    /// Takes the samples, and what a model counted, up to and with a time.
    fn take_samples(&mut self, batches: &[StackBatch], until: WallNs) {
        let mut has_late = false;
        while let Some(batch) = batches.get(self.next) {
            let left = &batch.samples[self.taken.unwrap_or(0)..];
            // Within a batch samples are in the order of time.
            let due = left.iter().take_while(|sample| sample.at <= until).count();
            if batch.begins_after(until) {
                break;
            }
            let mut part = StackBatch::default();
            // What it defines is taken with its first samples.
            if self.taken.is_none() {
                part = batch.definitions();
                part.costs = batch.costs.iter().filter(|costs| self.samples.has(costs.at)).cloned().collect();
                has_late |= !batch.costs.is_empty() || !batch.renamed.is_empty();
            }
            part.samples = left[..due].iter().filter_map(|sample| self.samples.part(sample, until)).collect();
            part.losses = self.samples.losses(batch);
            let _ = self.stacks.take(&part);
            self.quality.take(&part);
            if due < left.len() {
                self.taken = Some(self.taken.unwrap_or(0) + due);
                break;
            }
            (self.next, self.taken) = (self.next + 1, None);
        }
        if has_late {
            self.stacks.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{
        Losses, OFF_CPU, Rate, SampledEvent, StackFrame, StackFrameId, StackId, StackNode, StackSample, Task, TaskId,
        UnwindMethod,
    };
    use super::*;

    fn sampled() -> SamplingSetup {
        let event = SampledEvent { name: "e".into(), unit: Default::default(), rate: Rate::Period(1) };
        SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp }
    }

    /// Batches at these times; each defines a frame of its own, called by that of the batch before.
    fn batches(times: &[Vec<u64>]) -> Vec<StackBatch> {
        let batch = |(i, times): (usize, &Vec<u64>)| {
            let number = i as u32;
            let sample = |&at: &u64| StackSample {
                at: WallNs(at),
                task: TaskId(0),
                cpu: 0,
                event: 0,
                weight: 10,
                stack: Some(StackId(number)),
            };
            let task = Task { pid: 1, tid: 1, comm: "p".into() };
            StackBatch {
                frames: vec![StackFrame { name: format!("f{i}"), ..StackFrame::default() }],
                stacks: vec![StackNode { caller: number.checked_sub(1).map(StackId), frame: StackFrameId(number) }],
                tasks: if i == 0 { vec![task] } else { Vec::new() },
                samples: times.iter().map(sample).collect(),
                losses: Losses { lost: u64::from(number), ..Losses::default() },
                ..StackBatch::default()
            }
        };
        times.iter().enumerate().map(batch).collect()
    }

    fn recorded<'a>(sampled: &'a SamplingSetup, batches: &'a [StackBatch]) -> RecordedProfile<'a> {
        RecordedProfile { sampled: Some(sampled), batches, regions: &[] }
    }

    fn rows(tree: &Tree) -> Vec<(String, u64)> {
        let event = tree.find_event("e");
        tree.walk()
            .map(|node| (tree.names(node.id()).join(";"), event.map_or(0, |event| node.samples(event))))
            .collect()
    }

    #[test]
    fn a_batch_is_taken_as_far_as_the_time_has_come() {
        let batches = batches(&[vec![1, 2, 5], vec![], vec![6, 9]]);
        let mut replayed = Replayed::new(recorded(&sampled(), &batches));
        let mut counted = |until: u64| {
            let (tree, quality) = replayed.until(recorded(&sampled(), &batches), WallNs(until));
            (tree.event_ids().map(|event| tree.total(event).samples).sum::<u64>(), quality.losses.lost)
        };
        assert_eq!([0, 2, 5, 6, 100].map(&mut counted), [(0, 0), (2, 0), (3, 1), (4, 2), (5, 2)]);
        assert_eq!([2, 2, 6].map(&mut counted), [(2, 0), (2, 0), (4, 2)]);
    }

    #[test]
    fn frames_keep_their_numbers_in_a_tree_that_is_made_anew() {
        let (sampled, batches) = (sampled(), batches(&[vec![1], vec![2], vec![3]]));
        let recorded = recorded(&sampled, &batches);
        let names = |tree: &Tree| tree.frames().map(|frame| frame.name.to_owned()).collect::<Vec<_>>();
        let mut replayed = Replayed::new(recorded);
        let before = names(replayed.until(recorded, WallNs(3)).0);
        // By thread there are frames for these, after those that were.
        replayed.set_first_level(FirstLevel::Thread);
        let by_thread = names(replayed.until(recorded, WallNs(3)).0);
        assert_eq!(by_thread[..before.len()], before);
        assert!(by_thread.len() > before.len(), "{by_thread:?}");
        // Back in time, a frame that is not yet reached keeps its number, too.
        assert_eq!(names(replayed.until(recorded, WallNs(1)).0), by_thread);
    }

    #[test]
    fn a_part_has_only_its_samples() {
        let batches = batches(&[vec![1, 2, 5], vec![], vec![6, 9]]);
        let mut replayed = Replayed::new(recorded(&sampled(), &batches));
        let mut counted = |after: Option<u64>, until: u64| {
            let (tree, _) = replayed.between(recorded(&sampled(), &batches), after.map(WallNs), WallNs(until));
            tree.event_ids().map(|event| tree.total(event).samples).sum::<u64>()
        };
        assert_eq!([None, Some(0), Some(1), Some(5), Some(9)].map(|after| counted(after, 100)), [5, 5, 4, 2, 0]);
        // What had gone missing before the part isn't the part's.
        let mut replayed = Replayed::new(recorded(&sampled(), &batches));
        let sampled = sampled();
        let mut lost = |after: Option<u64>| {
            let recorded = recorded(&sampled, &batches);
            replayed.between(recorded, after.map(WallNs), WallNs(100)).1.losses.lost
        };
        assert_eq!([None, Some(1), Some(5), Some(9)].map(&mut lost), [2, 2, 1, 0]);
        // Frames that batches before it defined are known, and the whole is there again.
        assert_eq!((counted(Some(1), 5), counted(Some(2), 6), counted(None, 6)), (2, 2, 4));
    }

    #[test]
    fn parts_have_what_waits_lasted_in_them() {
        let off_cpu = SampledEvent { name: OFF_CPU.into(), unit: Default::default(), rate: Rate::Period(1) };
        let sampled = SamplingSetup { events: vec![off_cpu], call_graph: UnwindMethod::Fp };
        // From 0 to 60 and from 60 to 120, told in two batches.
        let mut batches = batches(&[vec![60], vec![120]]);
        batches.iter_mut().flat_map(|batch| &mut batch.samples).for_each(|sample| sample.weight = 60);
        let waited = |replayed: &mut Replayed, after: u64, until: u64| {
            let (tree, _) = replayed.part(recorded(&sampled, &batches), Some(WallNs(after)), WallNs(until));
            tree.event_ids().map(|event| tree.total(event).weight).sum::<u64>()
        };
        let mut replayed = Replayed::new(recorded(&sampled, &batches));
        // Forth, at the same place once more, back, and at the end.
        for (after, until) in [(30, 40), (30, 50), (30, 50), (30, 90), (10, 20), (70, 100), (30, 1000), (30, 1000)] {
            let wanted = until.min(120) - after;
            assert_eq!(waited(&mut replayed, after, until), wanted, "{after} to {until}");
        }
        // Without cuts, as it was known then.
        let mut as_known = Replayed::new(recorded(&sampled, &batches));
        let (tree, _) = as_known.until(recorded(&sampled, &batches), WallNs(90));
        assert_eq!(tree.event_ids().map(|event| tree.total(event).weight).sum::<u64>(), 60);
    }

    #[test]
    fn what_a_model_counted_comes_when_it_had_been_counted() {
        let costs = |at: u64| super::super::TaskCosts {
            task: TaskId(0),
            at: WallNs(at),
            own: vec![(StackFrameId(0), vec![7])],
            calls: Vec::new(),
        };
        let mut batches = batches(&[vec![], vec![]]);
        (batches[0].costs, batches[1].costs) = (vec![costs(3)], vec![costs(8)]);
        let modelled = SamplingSetup { call_graph: UnwindMethod::Modelled, ..sampled() };
        let mut replayed = Replayed::new(recorded(&modelled, &batches));
        let mut counted = |until: u64| {
            let (tree, _) = replayed.until(recorded(&modelled, &batches), WallNs(until));
            tree.event_ids().map(|event| tree.total(event).weight).sum::<u64>()
        };
        assert_eq!([2, 3, 7, 8, 3, 0].map(&mut counted), [0, 7, 7, 14, 7, 0]);
    }

    proptest! {
        #[test]
        fn steps_forth_and_back_end_where_one_step_does(
            mut times in prop::collection::vec(prop::collection::vec(0u64..20, 0..4), 0..6),
            stops in prop::collection::vec(0u64..22, 1..8),
        ) {
            // Samples are in the order of time.
            let mut all: Vec<u64> = times.concat();
            all.sort_unstable();
            let mut all = all.into_iter();
            times.iter_mut().for_each(|batch| batch.iter_mut().for_each(|at| *at = all.next().unwrap_or(0)));
            let batches = batches(&times);
            let mut wound = Replayed::new(recorded(&sampled(), &batches));
            for stop in stops {
                let mut fresh = Replayed::new(recorded(&sampled(), &batches));
                let (at_once, losses) = fresh.until(recorded(&sampled(), &batches), WallNs(stop));
                let (tree, also) = wound.until(recorded(&sampled(), &batches), WallNs(stop));
                prop_assert_eq!(rows(tree), rows(at_once));
                prop_assert_eq!(losses, also);
            }
        }
    }
}
