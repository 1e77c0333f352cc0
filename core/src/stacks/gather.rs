//! Gathers batches from channels into a profile tree that grows while others look at it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Receiver, at, never, select};

use super::places::LONGEST_SPAN;
use super::{
    FirstLevel, FunctionLines, InterpreterFrames, Losses, Naming, ProfileSpan, SamplingSetup, StackBatch, StackQuality,
    StackTree,
};
use crate::profile::{Tree, TreeOptions};
use crate::regions::{RegionBatch, RegionTable};
use crate::units::WallNs;

/// What else takes the batches that are gathered, as they come.
pub trait BatchWatch: Send + 'static {
    /// Takes samples.
    fn samples(&mut self, batch: &StackBatch);

    /// Takes what is new of regions.
    fn regions(&mut self, batch: &RegionBatch);
}

/// Nothing else does.
impl BatchWatch for () {
    fn samples(&mut self, _batch: &StackBatch) {}

    fn regions(&mut self, _batch: &RegionBatch) {}
}

/// A thread that puts samples and regions into a tree, so that no screen has to.
#[derive(Debug)]
pub struct Gathering {
    shared: Arc<Mutex<Gathered>>,
    thread: Option<JoinHandle<()>>,
}

/// How much earlier than one that was taken a sample may be.
const OUT_OF_ORDER: WallNs = WallNs(1_000_000_000);
/// How long samples may be on their way: finding names may take long. Then it is forgotten which regions were open.
const MOST_ON_THE_WAY: WallNs = WallNs(60_000_000_000);

/// What was gathered so far.
#[derive(Debug)]
pub struct Gathered {
    stacks: StackTree,
    quality: StackQuality,
    /// That of the last seconds, where only their samples are shown.
    recent: Option<StackQuality>,
    /// Batches of which it isn't known yet which regions were open.
    waiting: VecDeque<StackBatch>,
    /// The time of the last sample that was placed.
    placed: WallNs,
    /// How long samples may be on their way.
    most_on_the_way: WallNs,
    regions: RegionsToCome,
    /// What had gone missing by the last batch, and by the time when samples were forgotten.
    lost: Losses,
    lost_before: Losses,
    lost_at: LossesByTime,
    /// Batches that named what isn't defined, since samples were forgotten.
    undefined: u64,
}

/// What had gone missing, by the times at which that changed in the longest span of seconds that is shown.
#[derive(Debug, Default)]
struct LossesByTime(VecDeque<(WallNs, Losses)>);

impl LossesByTime {
    fn add(&mut self, at: WallNs, losses: Losses) {
        self.0.push_back((at, losses));
        // The last before the span says what had gone missing by its beginning.
        while self.0.get(1).is_some_and(|(next, _)| *next < at - LONGEST_SPAN) {
            self.0.pop_front();
        }
    }

    /// What had gone missing by a time; `None` where nothing is known of that.
    fn by(&self, at: WallNs) -> Option<Losses> {
        let last = self.0.partition_point(|(changed, _)| *changed <= at).checked_sub(1)?;
        Some(self.0[last].1)
    }
}

/// Whether there will be more of regions, for which samples wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionsToCome {
    /// There may be more.
    Expected,
    /// There are none, or what was read last is there.
    Over,
}

impl Gathered {
    /// Nothing so far, of what is sampled so.
    pub fn new(sampled: &SamplingSetup, regions: RegionsToCome, options: TreeOptions) -> Self {
        let mut stacks = StackTree::new(sampled, options, Naming::default(), |_| true).with_recent();
        stacks.set_interpreter_frames(InterpreterFrames::Folded);
        Self {
            stacks,
            quality: StackQuality::of(sampled.call_graph),
            recent: None,
            waiting: VecDeque::new(),
            placed: WallNs(0),
            most_on_the_way: if sampled.events.is_empty() { WallNs(0) } else { MOST_ON_THE_WAY },
            regions,
            lost: Losses::default(),
            lost_before: Losses::default(),
            lost_at: LossesByTime::default(),
            undefined: 0,
        }
    }

    /// The tree: above all of a task its name, repeats folded, functions without lines. Below that, regions.
    pub fn tree(&self) -> &Tree {
        self.stacks.tree()
    }

    /// What an event of the tree sampled of a function, by lines; both by their places in the tree.
    pub fn lines_of(&self, function: usize, event: usize) -> FunctionLines {
        self.stacks.lines_of(function, event)
    }

    /// Whether anything was sampled or counted so far, or it is to be said why not.
    pub fn has_any(&self) -> bool {
        self.tree().event_ids().next().is_some() || !self.quality.unread.is_empty()
    }

    /// Forgets the samples that were placed so far, and what had gone missing by then.
    pub fn forget_samples(&mut self) {
        self.stacks.forget_samples();
        self.lost_before = self.lost;
        self.lost_at = LossesByTime::default();
        self.undefined = 0;
        self.quality.losses = Losses::default();
        self.quality.ended_before = 0;
        self.quality.take_known(&self.stacks);
        self.recent = None;
    }

    /// Shows the samples of a span that ends with `until`, until the next call; samples that come don't change a span
    /// of seconds.
    pub fn show(&mut self, span: ProfileSpan, until: WallNs) {
        let since = self.stacks.show(span, until);
        self.quality.take_known(&self.stacks);
        let lost = |since| self.lost_at.by(since).unwrap_or(self.lost_before).since(&self.lost_before);
        self.recent = since.map(|since| self.quality.since(since, &lost(since)));
    }

    /// Has another first level of the tree.
    pub fn set_first_level(&mut self, level: FirstLevel) {
        self.stacks.set_first_level(level);
    }

    /// Shows interpreters' own frames, or leaves them out.
    pub fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        self.stacks.set_interpreter_frames(frames);
    }

    /// How good what was gathered is.
    pub fn quality(&self) -> &StackQuality {
        self.recent.as_ref().unwrap_or(&self.quality)
    }

    /// So many samples were read, and wait for their names.
    pub fn set_waiting(&mut self, samples: u64) {
        self.quality.waiting = samples;
    }

    /// The regions so far.
    pub fn regions(&self) -> &RegionTable {
        self.stacks.regions()
    }

    /// Takes samples, which wait until it is known which regions were open.
    pub fn take(&mut self, batch: StackBatch) {
        self.waiting.push_back(batch);
        if self.regions == RegionsToCome::Over {
            self.place(WallNs(u64::MAX));
        }
    }

    /// Takes what is new of regions.
    pub fn take_regions(&mut self, batch: &RegionBatch) {
        if self.stacks.take_regions(batch).is_err() {
            self.undefined += 1;
            self.quality.losses.malformed += 1;
        }
        self.quality.take_known(&self.stacks);
        self.place(self.stacks.knows_regions_until());
    }

    /// There will be no more of regions: no sample waits any longer. The tree is settled.
    pub fn end_regions(&mut self) {
        self.regions = RegionsToCome::Over;
        self.place(WallNs(u64::MAX));
        self.settle();
    }

    /// Places the samples of batches that end before a time.
    fn place(&mut self, until: WallNs) {
        let is_due = |batch: &StackBatch| batch.was_sampled_by(until);
        while self.waiting.front().is_some_and(is_due) {
            if let Some(batch) = self.waiting.pop_front() {
                self.placed = batch.samples.last().map_or(self.placed, |sample| sample.at.max(self.placed));
                self.add(batch);
            }
        }
        self.quality.take_known(&self.stacks);
        // Samples come later than the regions that were open. They come in the order of time, but for a little.
        let earliest = self.placed.0.saturating_sub(OUT_OF_ORDER.0);
        let latest = self.stacks.knows_regions_until().0.saturating_sub(self.most_on_the_way.0);
        self.stacks.forget_open_before(WallNs(earliest.max(latest)));
    }

    /// Makes the tree anew where names have changed, and what is known of them.
    fn settle(&mut self) {
        self.stacks.settle();
        self.quality.take_known(&self.stacks);
    }

    fn add(&mut self, mut batch: StackBatch) {
        if self.lost != batch.losses {
            self.lost_at.add(self.placed, batch.losses);
        }
        self.lost = batch.losses;
        batch.losses = batch.losses.since(&self.lost_before);
        self.undefined += u64::from(self.stacks.take(&batch).is_err());
        batch.losses.malformed += self.undefined;
        self.quality.take(&batch);
    }
}

impl Gathering {
    /// Starts to gather what was sampled so, and regions; ends when both channels have. Samples wait until it is known
    /// which regions were open, as long as there is a channel of those. `watch` takes each batch first.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(
        stacks: Option<(Receiver<StackBatch>, SamplingSetup)>,
        regions: Option<Receiver<RegionBatch>>,
        options: TreeOptions,
        watch: impl BatchWatch,
    ) -> io::Result<Self> {
        let (batches, sampled) = stacks.map_or_else(|| (None, SamplingSetup::of_nothing()), |(b, s)| (Some(b), s));
        let to_come = if regions.is_some() { RegionsToCome::Expected } else { RegionsToCome::Over };
        let shared = Arc::new(Mutex::new(Gathered::new(&sampled, to_come, options)));
        let into = Arc::clone(&shared);
        let gather = move || gather(batches, regions, &into, watch);
        let thread = thread::Builder::new().name("perfprop-profile".into()).spawn(gather)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What is gathered; nothing is added while it is looked at, and the kernel's samples wait.
    pub fn look(&self) -> MutexGuard<'_, Gathered> {
        lock(&self.shared)
    }

    /// Whether samples may still come.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Waits until the channels have ended and all of it is gathered.
    pub fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Takes from both channels until they have ended.
fn gather(
    mut batches: Option<Receiver<StackBatch>>,
    mut regions: Option<Receiver<RegionBatch>>,
    into: &Mutex<Gathered>,
    mut watch: impl BatchWatch,
) {
    let mut settling = Settling { due: Instant::now() };
    while batches.is_some() || regions.is_some() {
        let (of_stacks, of_regions) = (batches.clone().unwrap_or_else(never), regions.clone().unwrap_or_else(never));
        let is_due = settling.settle(&mut lock(into));
        select! {
            recv(of_stacks) -> batch => match batch {
                Ok(batch) => {
                    watch.samples(&batch);
                    lock(into).take(batch);
                }
                Err(_) => batches = None,
            },
            recv(of_regions) -> batch => match batch {
                Ok(batch) => {
                    watch.regions(&batch);
                    lock(into).take_regions(&batch);
                }
                Err(_) => {
                    regions = None;
                    lock(into).end_regions();
                }
            },
            recv(is_due) -> _ => {}
        }
    }
    lock(into).settle();
}

/// Settling a tree may take this part of the time: one in so many.
const SHARE: u32 = 10;

/// When a tree may be settled again.
struct Settling {
    due: Instant,
}

impl Settling {
    /// Settles the tree unless that took too much of the time; gives the time when it may be.
    fn settle(&mut self, gathered: &mut Gathered) -> Receiver<Instant> {
        if gathered.stacks.is_settled() {
            return never();
        }
        let begun = Instant::now();
        if begun < self.due {
            return at(self.due);
        }
        gathered.settle();
        self.due = Instant::now() + begun.elapsed() * SHARE;
        never()
    }
}

/// A thread that panicked left whole samples behind.
fn lock(shared: &Mutex<Gathered>) -> MutexGuard<'_, Gathered> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{
        Rate, SampledEvent, StackFrame, StackFrameId, StackSample, Task, TaskId, UnknownRegions, UnwindMethod,
    };
    use super::*;
    use crate::regions::{RegionMark, RegionPath, RegionPathId, RegionProgram, RegionProgramId, ThreadMarks};

    const MS: u64 = 1_000_000;

    #[test]
    fn settling_waits_for_its_turn() {
        let mut settling = Settling { due: Instant::now() + Duration::from_secs(600) };
        let mut gathered = gathered();
        let named = |name: &str| StackFrame { name: name.into(), ..StackFrame::default() };
        let batch = StackBatch { frames: vec![named("0x7f00")], ..samples(true, &[1]) };
        assert!(gathered.stacks.take(&batch).is_ok() && gathered.stacks.is_settled());
        let renamed = vec![(StackFrameId(0), named("f"))];
        assert!(gathered.stacks.take(&StackBatch { renamed, ..StackBatch::default() }).is_ok());
        settling.settle(&mut gathered);
        assert!(!gathered.stacks.is_settled(), "not yet");
        settling.due = Instant::now();
        settling.settle(&mut gathered);
        assert!(gathered.stacks.is_settled());
    }

    /// One region, which is open from 10 ms on.
    fn regions(at: u64, missed: u64, marks: Vec<RegionMark>) -> RegionBatch {
        let thread = ThreadMarks { program: RegionProgramId(0), tid: 1, missed, marks };
        let since = WallNs(at.saturating_sub(100 * MS));
        RegionBatch { at: WallNs(at), since, marks: vec![thread], ..RegionBatch::default() }
    }

    fn opened() -> RegionBatch {
        let path = RegionPath { program: RegionProgramId(0), parent: None, name: "r".into(), phase: String::new() };
        let enter = RegionMark { at: WallNs(10 * MS), path: RegionPathId(0), is_enter: true };
        let program = RegionProgram { pid: 1, name: Some("p".into()) };
        RegionBatch { programs: vec![program], paths: vec![path], ..regions(100 * MS, 0, vec![enter]) }
    }

    fn left(at: u64) -> RegionMark {
        RegionMark { at: WallNs(at), path: RegionPathId(0), is_enter: false }
    }

    fn gathered() -> Gathered {
        let event = SampledEvent { name: "e".into(), unit: Default::default(), rate: Rate::Period(1) };
        let setup = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
        Gathered::new(&setup, RegionsToCome::Expected, TreeOptions::default())
    }

    fn samples(is_first: bool, times: &[u64]) -> StackBatch {
        let task = Task { pid: 1, tid: 1, comm: "p".into() };
        let sample =
            |&at: &u64| StackSample { at: WallNs(at), task: TaskId(0), cpu: 0, event: 0, weight: 1, stack: None };
        let tasks = if is_first { vec![task] } else { Vec::new() };
        StackBatch { tasks, samples: times.iter().map(sample).collect(), ..StackBatch::default() }
    }

    /// Samples by the innermost name above them.
    fn by_name(gathered: &Gathered) -> Vec<(&str, u64)> {
        let tree = gathered.tree();
        let samples = |node: &crate::profile::NodeRef<'_>| tree.event_ids().map(|event| node.samples(event)).sum();
        let all = tree.walk().map(|node| (tree.frame_of(node.frame_id()).name, samples(&node)));
        all.filter(|(_, samples)| *samples > 0).collect()
    }

    #[test]
    fn samples_find_their_regions_however_late_they_come() {
        let mut gathered = gathered();
        gathered.take_regions(&opened());
        gathered.take_regions(&regions(200 * MS, 0, vec![left(150 * MS)]));
        (3..20).for_each(|tick| gathered.take_regions(&regions(tick * 100 * MS, 0, Vec::new())));
        gathered.take(samples(true, &[5 * MS, 20 * MS, 140 * MS, 160 * MS]));
        gathered.take(samples(false, &[1950 * MS]));
        assert_eq!(by_name(&gathered), []);
        gathered.take_regions(&regions(1900 * MS, 0, Vec::new()));
        assert_eq!(by_name(&gathered), [("p", 2), ("r", 2)]);
        gathered.end_regions();
        assert_eq!(by_name(&gathered), [("p", 3), ("r", 2)]);
    }

    #[test]
    fn samples_in_what_was_missed_are_in_an_unknown_region() {
        let mut gathered = gathered();
        gathered.take_regions(&opened());
        gathered.take_regions(&regions(200 * MS, 7, vec![left(150 * MS)]));
        gathered.take(samples(true, &[90 * MS, 120 * MS, 130 * MS, 160 * MS]));
        gathered.end_regions();
        assert_eq!(by_name(&gathered), [("p", 1), ("r", 1), ("[region unknown]", 2)]);
        let unknown = gathered.quality().unknown_regions;
        assert_eq!((unknown.samples, unknown.missed), (2, 7));
    }

    #[test]
    fn of_threads_that_are_joined_nobody_knows_the_regions() {
        let of = |tid| StackBatch {
            tasks: vec![Task { pid: tid, tid, comm: "p".into() }],
            ..samples(false, &[5 * MS, 20 * MS])
        };
        let mut with_regions = gathered();
        with_regions.take_regions(&opened());
        with_regions.take(of(Task::JOINED));
        with_regions.end_regions();
        assert_eq!(with_regions.quality().unknown_regions, UnknownRegions { samples: 2, of_joined: 2, missed: 0 });
        let mut without = gathered();
        without.take(of(Task::JOINED));
        without.end_regions();
        assert_eq!(without.quality().unknown_regions, UnknownRegions::default());
    }

    #[test]
    fn what_went_missing_before_samples_were_forgotten_is_forgotten_too() {
        let mut gathered = gathered();
        gathered.end_regions();
        let lost = |cut| StackBatch { losses: Losses { cut, ..Losses::default() }, ..StackBatch::default() };
        gathered.take(lost(1000));
        assert_eq!(gathered.quality().losses.cut, 1000);
        gathered.forget_samples();
        assert_eq!(gathered.quality().losses.cut, 0);
        gathered.take(lost(1003));
        assert_eq!(gathered.quality().losses.cut, 3);
    }

    #[test]
    fn the_last_seconds_have_their_samples_and_what_went_missing_in_them() {
        let mut gathered = gathered();
        gathered.end_regions();
        let lost = |batch, cut| StackBatch { losses: Losses { cut, ..Losses::default() }, ..batch };
        gathered.take(lost(samples(true, &[MS]), 5));
        gathered.take(lost(samples(false, &[15_000 * MS, 20_000 * MS]), 7));
        let shown = |gathered: &Gathered| {
            (by_name(gathered).iter().map(|(_, samples)| samples).sum::<u64>(), gathered.quality().losses.cut)
        };
        let ten = ProfileSpan::ALL[0];
        gathered.show(ten, WallNs(20_000 * MS));
        assert_eq!((shown(&gathered), gathered.quality().since), ((2, 2), Some(WallNs(10_000 * MS))));
        // What comes is shown when it is asked for again.
        gathered.take(lost(samples(false, &[26_000 * MS]), 8));
        assert_eq!(shown(&gathered), (2, 2));
        gathered.show(ten, WallNs(26_000 * MS));
        // A batch that began before is known to have lacked something by its end only.
        assert_eq!(shown(&gathered), (2, 3));
        gathered.show(ten, WallNs(90_000 * MS));
        assert_eq!(shown(&gathered), (0, 0));
        gathered.show(ProfileSpan::Run, WallNs(90_000 * MS));
        assert_eq!((shown(&gathered), gathered.quality().since), ((4, 8), None));
        gathered.forget_samples();
        gathered.show(ten, WallNs(90_000 * MS));
        assert_eq!(shown(&gathered), (0, 0));
    }

    #[test]
    fn batches_that_name_what_is_not_defined_stay_counted() {
        let mut gathered = gathered();
        gathered.take_regions(&regions(100 * MS, 0, vec![left(5 * MS)]));
        assert_eq!(gathered.quality().losses.malformed, 1);
        gathered.end_regions();
        gathered.take(samples(false, &[MS]));
        assert_eq!(gathered.quality().losses.malformed, 2);
        gathered.take(samples(true, &[2 * MS]));
        assert_eq!((by_name(&gathered), gathered.quality().losses.malformed), (vec![("p", 1)], 2));
        gathered.forget_samples();
        gathered.take(samples(false, &[3 * MS]));
        assert_eq!(gathered.quality().losses.malformed, 0);
    }

    #[test]
    fn what_is_long_past_is_forgotten_and_unknown() {
        let mut gathered = gathered();
        gathered.take_regions(&opened());
        gathered.take_regions(&regions(200 * MS, 0, vec![left(150 * MS)]));
        gathered.take_regions(&regions(100_000 * MS, 0, Vec::new()));
        gathered.take(samples(true, &[20 * MS, 99_000 * MS]));
        gathered.end_regions();
        assert_eq!(by_name(&gathered), [("p", 1), ("[region unknown]", 1)]);
    }
}
