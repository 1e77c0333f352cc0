//! Adds named regions to a profile tree: their calls and times on paths of their own, above what was sampled in them.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Naming, Task};
use crate::events::Unit;
use crate::profile::{
    Amount, CallCounts, CallTimes, EventId, Frame, FrameId, FrameKind, ProfileEvent, SampleMeasure, ThreadId, Tree,
};
use crate::regions::{
    OpenRegions, REGION_BACKWARD, REGION_TIME, RegionAt, RegionBatch, RegionCounts, RegionPathId, RegionProgram,
    RegionTable, Undefined, region_event, unit_of,
};
use crate::units::WallNs;

/// Which events of regions a tree has.
#[derive(Debug, Default)]
pub(super) enum RegionEvents {
    /// All.
    #[default]
    All,
    /// Those of these names: `region-time`, `region-page-faults`.
    Named(FxHashSet<String>),
}

impl RegionEvents {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(name),
        }
    }
}

/// The paths of regions in a tree, and what of them is in it.
#[derive(Debug, Default)]
pub(super) struct RegionPaths {
    pub(super) table: RegionTable,
    pub(super) open: OpenRegions,
    pub(super) chosen: RegionEvents,
    /// The tree's event of times, and those of the events that each program counts in its regions.
    time: Option<EventId>,
    backward: Option<EventId>,
    events: Vec<Vec<Option<EventId>>>,
    /// The frame above all of a program.
    programs: Vec<Option<FrameId>>,
    /// The frames of each path, the outermost first.
    paths: Vec<Vec<FrameId>>,
    /// What of each path is in the tree.
    added: Vec<AddedCounts>,
    /// The threads by their numbers, where each thread's regions stand below it.
    pub(super) threads: Option<FxHashMap<u32, Task>>,
    tallies: Vec<ThreadTally>,
    /// What of runs backwards is in the tree, in the regions alone.
    added_backward: FxHashMap<Vec<FrameId>, u64>,
}

/// What of a path is in a tree.
#[derive(Clone, Debug, Default)]
struct AddedCounts {
    calls: u64,
    self_ns: u64,
    events: Vec<u64>,
}

/// What runs backwards took on paths with the same frames, with those of regions within.
#[derive(Clone, Copy, Debug, Default)]
struct BackwardRuns {
    runs: u64,
    ns: u64,
    /// The part of it that is regions' directly within.
    within_ns: u64,
}

/// What a thread counted on a path.
#[derive(Debug)]
struct ThreadTally {
    frames: Vec<FrameId>,
    calls: u64,
    amounts: Vec<(EventId, Amount)>,
}

impl ThreadTally {
    fn add_to(&self, tree: &mut Tree, place: ThreadId) {
        tree.tally(place, self.frames.iter().copied(), self.calls, &self.amounts);
    }
}

impl RegionPaths {
    /// Where a thread was. Of threads that are joined nobody knows which one was sampled.
    pub(super) fn region_at(&self, task: &Task, at: WallNs) -> RegionAt {
        if task.is_joined() && !self.open.is_empty() {
            return RegionAt::Unknown;
        }
        self.open.region_at(task.tid.cast_unsigned(), at)
    }

    /// Takes over what a batch defines.
    pub(super) fn take(&mut self, batch: &RegionBatch, tree: &mut Tree, naming: &Naming) -> Result<(), Undefined> {
        self.table.take(batch)?;
        self.open.take(batch);
        for program in &batch.programs {
            let name = (naming.task)(&task(program));
            let name = name.map(|name| tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(&name) }));
            self.programs.push(name);
            self.events.push(Vec::new());
        }
        for path in &batch.paths {
            let frame = tree.frame(&Frame { kind: FrameKind::Region, ..Frame::function(&path.name) });
            let mut frames = match path.parent {
                Some(parent) => self.paths[parent.0 as usize].clone(),
                None => self.programs[path.program.0 as usize].into_iter().collect(),
            };
            frames.push(frame);
            self.paths.push(frames);
            self.added.push(AddedCounts::default());
        }
        if !batch.counts.is_empty() {
            self.name_events(tree);
        }
        Ok(())
    }

    /// Gives the events that are new a place in the tree.
    fn name_events(&mut self, tree: &mut Tree) {
        if self.time.is_none() && self.chosen.has(REGION_TIME) {
            self.time = Some(tree.event(&ProfileEvent::new(REGION_TIME, SampleMeasure::Timed)));
        }
        let runs_backward = || self.table.all_counts().any(|counts| counts.reverse_calls > 0);
        if self.backward.is_none() && self.chosen.has(REGION_BACKWARD) && runs_backward() {
            let measure = SampleMeasure::Counted("nanoseconds".into());
            self.backward = Some(tree.event(&ProfileEvent::new(REGION_BACKWARD, measure)));
        }
        for ((_, state), known) in self.table.programs().zip(&mut self.events) {
            for event in state.events.iter().skip(known.len()) {
                let name = region_event(event);
                let unit = if unit_of(event) == Unit::Nanoseconds { "nanoseconds" } else { "count" };
                let id = || tree.event(&ProfileEvent::new(&name, SampleMeasure::Counted(unit.into())));
                known.push(self.chosen.has(&name).then(id));
            }
        }
    }

    /// The frames of a path, the outermost first.
    pub(super) fn path(&self, path: RegionPathId) -> &[FrameId] {
        self.paths.get(path.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The same without the frame of the program.
    pub(super) fn below_program(&self, path: RegionPathId) -> &[FrameId] {
        let program = self.table.paths().get(path.0 as usize).map(|path| path.program.0 as usize);
        let has_frame = program.and_then(|program| self.programs.get(program).copied().flatten()).is_some();
        &self.path(path)[usize::from(has_frame)..]
    }

    /// Adds what threads counted, if each thread's regions stand below it.
    pub(super) fn add_threads(&mut self, tree: &mut Tree, place: ThreadId, batch: &RegionBatch, naming: &Naming) {
        let Some(threads) = &self.threads else { return };
        let mut tallies = Vec::new();
        let mut backward: BTreeMap<Vec<FrameId>, BackwardRuns> = BTreeMap::new();
        for counts in &batch.threads {
            let Some(path) = self.table.paths().get(counts.path.0 as usize) else { continue };
            let Some(program) = self.table.program(path.program) else { continue };
            let of_program = task(program);
            let thread = Task { tid: counts.tid.cast_signed(), ..of_program };
            let name = (naming.task)(threads.get(&counts.tid).unwrap_or(&thread));
            let name = name.map(|name| tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(&name) }));
            let frames: Vec<FrameId> =
                name.into_iter().chain(self.below_program(counts.path).iter().copied()).collect();
            let more = |event, weight: u64| (event, Amount { samples: 0, weight });
            let events = self.events_of(counts.path).iter().zip(&counts.events);
            let events = events.filter_map(|(event, own)| Some(more((*event)?, (*own)?)));
            let amounts: Vec<_> = self.time.map(|time| more(time, counts.self_ns)).into_iter().chain(events).collect();
            tallies.push(ThreadTally { frames: frames.clone(), calls: counts.calls, amounts });
            backward.entry(frames[..frames.len() - 1].to_vec()).or_default().within_ns += counts.reverse_ns;
            backward.entry(frames).or_default().ns += counts.reverse_ns;
        }
        for (frames, BackwardRuns { ns, within_ns, .. }) in backward {
            let own = Amount { samples: 0, weight: ns.saturating_sub(within_ns) };
            let amounts = self.backward.map(|event| (event, own)).into_iter().collect();
            tallies.push(ThreadTally { frames, calls: 0, amounts });
        }
        tallies.iter().for_each(|tally| tally.add_to(tree, place));
        self.tallies.extend(tallies);
    }

    /// Adds what a batch counted.
    pub(super) fn add_new(&mut self, tree: &mut Tree, place: ThreadId, batch: &RegionBatch) {
        if self.threads.is_some() {
            return;
        }
        batch.counts.iter().for_each(|counts| self.add(tree, place, counts));
        self.add_backward(tree, place);
        self.tell_calls(tree, place);
    }

    /// Adds all to a tree in which there is nothing.
    pub(super) fn add_all(&mut self, tree: &mut Tree, place: ThreadId) {
        self.added.fill(AddedCounts::default());
        self.added_backward.clear();
        if self.threads.is_some() {
            return self.tallies.iter().for_each(|tally| tally.add_to(tree, place));
        }
        for path in (0..self.paths.len() as u32).map(RegionPathId) {
            if let Some(counts) = self.table.counts(path).cloned() {
                self.add(tree, place, &counts);
            }
        }
        self.add_backward(tree, place);
        self.tell_calls(tree, place);
    }

    /// Runs backwards by the frames of their paths.
    fn backward_runs(&self) -> FxHashMap<&[FrameId], BackwardRuns> {
        let mut all: FxHashMap<&[FrameId], BackwardRuns> = FxHashMap::default();
        for counts in self.table.all_counts().filter(|counts| counts.reverse_calls > 0) {
            let frames = self.path(counts.path);
            let runs = all.entry(frames).or_default();
            (runs.runs, runs.ns) = (runs.runs + counts.reverse_calls, runs.ns + counts.reverse_ns);
            let around = &frames[..frames.len().saturating_sub(1)];
            all.entry(around).or_default().within_ns += counts.reverse_ns;
        }
        all
    }

    /// Adds the time of runs backwards in each region alone, and says how many there were.
    fn add_backward(&mut self, tree: &mut Tree, place: ThreadId) {
        let Some(event) = self.backward else { return };
        let all: Vec<_> = self.backward_runs().into_iter().map(|(frames, runs)| (frames.to_vec(), runs)).collect();
        for (frames, BackwardRuns { runs, ns, within_ns }) in all.into_iter().filter(|(_, runs)| runs.runs > 0) {
            let own = ns.saturating_sub(within_ns);
            let counts = CallCounts {
                calls: runs,
                measured: runs,
                count: ns as f64,
                own: Some(own as f64),
                counted: ns as f64,
                variance: Some(0.0),
                ..CallCounts::default()
            };
            tree.set_call_counts(place, frames.iter().copied(), event, counts);
            let before = self.added_backward.insert(frames.clone(), own).unwrap_or(0);
            let more = Amount { samples: 0, weight: own.saturating_sub(before) };
            tree.tally(place, frames.iter().copied(), 0, &[(event, more)]);
            if before > own {
                tree.take_off(place, frames, event, before - own);
            }
        }
    }

    /// The tree's events of a path's program.
    fn events_of(&self, path: RegionPathId) -> &[Option<EventId>] {
        let program = self.table.paths().get(path.0 as usize).map(|path| path.program.0 as usize);
        program.and_then(|program| self.events.get(program)).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, tree: &mut Tree, place: ThreadId, counts: &RegionCounts) {
        let events = self.events_of(counts.path).to_vec();
        if self.time.is_none() && events.iter().all(Option::is_none) {
            return;
        }
        let path = counts.path.0 as usize;
        let (frames, added) = (&self.paths[path], &mut self.added[path]);
        let more = |event, weight: u64| (event, Amount { samples: 0, weight });
        let mut amounts = Vec::with_capacity(1 + events.len());
        amounts.extend(self.time.map(|time| more(time, counts.self_ns.saturating_sub(added.self_ns))));
        added.events.resize(events.len(), 0);
        for (number, event) in events.into_iter().enumerate() {
            let Some(event) = event else { continue };
            let own = counts.event(number).and_then(|total| total.self_count).map_or(0, |own| own.round() as u64);
            let before = std::mem::replace(&mut added.events[number], own);
            amounts.push(more(event, own.saturating_sub(before)));
            if before > own {
                tree.take_off(place, frames.iter().copied(), event, before - own);
            }
        }
        tree.tally(place, frames.iter().copied(), counts.calls.saturating_sub(added.calls), &amounts);
        (added.calls, added.self_ns) = (counts.calls, counts.self_ns);
    }

    /// How long calls took and what was counted in them, by the frames of their paths: those of all phases and of
    /// processes with one name together.
    fn tell_calls(&self, tree: &mut Tree, place: ThreadId) {
        let mut times: FxHashMap<&[FrameId], CallTimes> = FxHashMap::default();
        let mut counted: FxHashMap<(&[FrameId], EventId), CallCounts> = FxHashMap::default();
        for (path, frames) in self.paths.iter().enumerate() {
            let id = RegionPathId(path as u32);
            let Some(counts) = self.table.counts(id) else { continue };
            if self.time.is_some() || self.events_of(id).iter().any(Option::is_some) {
                times.entry(frames).or_default().add(&call_times(counts, self.table.per_second(id)));
            }
            for (number, event) in self.events_of(id).iter().enumerate() {
                let Some(event) = event else { continue };
                let rate = self.table.event_per_second(id, number).map(|rate| rate.per_second);
                let new = call_counts(counts, number, rate);
                counted.entry((frames, *event)).and_modify(|known| known.add(&new)).or_insert(new);
            }
        }
        for (frames, times) in times {
            tree.set_call_times(place, frames.iter().copied(), times);
        }
        for ((frames, event), counts) in counted.into_iter().filter(|(_, counts)| counts.is_counted()) {
            tree.set_call_counts(place, frames.iter().copied(), event, counts);
        }
    }
}

fn call_times(counts: &RegionCounts, per_second: f64) -> CallTimes {
    let (mean_ns, variance) = counts.spread.map_or((0.0, None), |spread| (spread.mean, spread.variance));
    let squares = variance.unwrap_or(0.0) * counts.calls.saturating_sub(1) as f64;
    CallTimes { calls: counts.calls, mean_ns, squares, markers_ns: counts.markers_ns as f64, per_second }
}

/// What an event counted; without any certainty where it was never counted.
fn call_counts(counts: &RegionCounts, event: usize, per_second: Option<f64>) -> CallCounts {
    let calls = counts.calls;
    counts.event(event).map_or(CallCounts { calls, ..CallCounts::default() }, |total| CallCounts {
        calls,
        measured: total.calls,
        count: total.count,
        own: total.self_count,
        counted: total.counted,
        excess: total.marker_error,
        variance: total.standard_error.map(|error| error * error),
        degrees: total.degrees,
        per_second,
    })
}

/// The task that stands for a program: its main thread.
fn task(program: &RegionProgram) -> Task {
    let pid = program.pid.cast_signed();
    let comm = program.name.clone().unwrap_or_else(|| format!("process {pid}"));
    Task { pid, tid: pid, comm }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::{SamplingSetup, StackTree, as_is};
    use super::*;
    use crate::profile::TreeOptions;
    use crate::rates::{Confidence, Error};
    use crate::regions::{CountedPart, EventCounts, EventSums, RegionPath, RegionProgramId, RegionState, ThreadCounts};
    use crate::units::WallNs;

    /// A region, another one in it, and the first one in a phase.
    fn batch(seconds: u64, counts: Vec<RegionCounts>) -> RegionBatch {
        let at = WallNs(seconds * 1_000_000_000);
        RegionBatch { at, counted_since: Some(WallNs(at.0 - 1_000_000_000)), counts, ..RegionBatch::default() }
    }

    fn first(counts: Vec<RegionCounts>) -> RegionBatch {
        let path = |parent: Option<u32>, name: &str, phase: &str| RegionPath {
            program: RegionProgramId(0),
            parent: parent.map(RegionPathId),
            name: name.into(),
            phase: phase.into(),
        };
        let state = RegionState { events: vec!["page-faults".into(), "task-clock:u".into()], ..RegionState::default() };
        RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: Some("p".into()) }],
            paths: vec![path(None, "outer", ""), path(Some(0), "inner", ""), path(None, "outer", "warmup")],
            states: vec![(RegionProgramId(0), state)],
            ..batch(1, counts)
        }
    }

    /// Of two calls; `own` and `sum` in a part of the time.
    fn counts(path: u32, sum: u64, own: u64, running_ns: u64) -> RegionCounts {
        let all = EventCounts { calls: 2, stays: 2, sum, enabled_ns: 100, running_ns, ..EventCounts::default() };
        let squares_per_ns = sum as f64 * sum as f64 / running_ns as f64 + 8.0;
        let all = EventCounts { squares_per_ns, ..all };
        let sums =
            EventSums { all, alone: CountedPart { sum: own, enabled_ns: 100, running_ns }, ..EventSums::default() };
        let never = EventSums { all: EventCounts { missing: 2, enabled_ns: 100, ..EventCounts::default() }, ..sums };
        RegionCounts { calls: 2, events: vec![sums, never], ..RegionCounts::nothing(RegionPathId(path)) }
    }

    fn tree() -> StackTree {
        let naming = Naming { task: Box::new(|task| Some(task.comm.clone())), frame: Box::new(as_is) };
        StackTree::new(&SamplingSetup::of_nothing(), TreeOptions::default(), naming, |_| true)
    }

    /// The own counts of `outer` and `inner`.
    fn own(tree: &Tree, event: &str) -> [u64; 2] {
        let event = tree.find_event(event).unwrap();
        let of = |name: &str| tree.walk().find(|node| node.frame().name == name).unwrap().weight(event);
        ["outer", "inner"].map(of)
    }

    #[test]
    fn own_counts_are_the_trees_and_estimates_may_become_less() {
        let mut all = tree();
        all.take_regions(&first(vec![counts(0, 60, 10, 50), counts(1, 50, 50, 50)])).unwrap();
        // Half of the time.
        assert_eq!(own(all.tree(), "region-page-faults"), [20, 100]);
        // All of it: 55 of 100 ns.
        all.take_regions(&batch(2, vec![counts(1, 55, 55, 100)])).unwrap();
        assert_eq!(own(all.tree(), "region-page-faults"), [20, 55]);
        // Phases are one path.
        all.take_regions(&batch(3, vec![counts(2, 7, 7, 100)])).unwrap();
        assert_eq!(own(all.tree(), "region-page-faults"), [27, 55]);
    }

    #[test]
    fn runs_backwards_are_an_event_and_those_within_are_not_the_regions_own() {
        let backward = |path, runs, ns| RegionCounts { reverse_calls: runs, reverse_ns: ns, ..counts(path, 0, 0, 100) };
        let mut all = tree();
        // 90 in all and 20 of them in the region within; then 30 in that, and another 10 in a phase of the first.
        all.take_regions(&first(vec![backward(0, 2, 90), backward(1, 3, 20)])).unwrap();
        assert_eq!(own(all.tree(), REGION_BACKWARD), [70, 20]);
        all.take_regions(&batch(2, vec![backward(1, 4, 30)])).unwrap();
        assert_eq!(own(all.tree(), REGION_BACKWARD), [60, 30]);
        all.take_regions(&batch(3, vec![backward(2, 1, 10)])).unwrap();
        assert_eq!(own(all.tree(), REGION_BACKWARD), [70, 30]);
        let event = all.tree().find_event(REGION_BACKWARD).unwrap();
        let outer = all.tree().walk().find(|node| node.frame().name == "outer").unwrap();
        let found = *outer.call_counts(event).unwrap();
        assert_eq!((found.calls, found.count, found.own), (3, 100.0, Some(70.0)));
        // Without one there is no such event.
        let mut none = tree();
        none.take_regions(&first(vec![counts(0, 1, 1, 1)])).unwrap();
        assert_eq!(none.tree().find_event(REGION_BACKWARD), None);
    }

    #[test]
    fn regions_of_threads_stand_below_their_threads() {
        let of_thread = |tid, path, self_ns| ThreadCounts {
            path: RegionPathId(path),
            tid,
            calls: 1,
            self_ns,
            reverse_ns: 0,
            events: vec![Some(self_ns / 10), None],
        };
        let threads = vec![of_thread(8, 0, 30), of_thread(8, 1, 50), of_thread(9, 0, 70)];
        let worker = Task { pid: 7, tid: 8, comm: "worker".into() };
        let naming = Naming {
            task: Box::new(|task| Some(format!("{}-{}/{}", task.comm, task.pid, task.tid))),
            frame: Box::new(as_is),
        };
        let tree = StackTree::new(&SamplingSetup::of_nothing(), TreeOptions::default(), naming, |_| true);
        let mut all = tree.with_regions_of_threads(&[worker]);
        all.take_regions(&first(vec![counts(0, 60, 10, 50)])).unwrap();
        all.take_regions(&RegionBatch { threads, ..batch(2, vec![]) }).unwrap();
        let tree = all.tree();
        let [time, faults] = ["region-time", "region-page-faults"].map(|name| tree.find_event(name).unwrap());
        let rows = tree.walk().filter(|node| node.weight(time) > 0);
        let rows: Vec<_> =
            rows.map(|node| (tree.names(node.id())[1..].join(";"), node.weight(time), node.weight(faults))).collect();
        let wanted = [("worker-7/8;outer", 30, 3), ("worker-7/8;outer;inner", 50, 5), ("p-7/9;outer", 70, 7)];
        assert_eq!(rows, wanted.map(|(path, time, faults)| (path.to_owned(), time, faults)));
    }

    #[test]
    fn calls_have_the_count_of_the_table_and_its_error() {
        let mut all = tree();
        all.take_regions(&first(vec![counts(0, 60, 10, 50)])).unwrap();
        let tree = all.tree();
        let outer = tree.walk().find(|node| node.frame().name == "outer").unwrap();
        let faults = tree.find_event("region-page-faults").unwrap();
        let found = *outer.call_counts(faults).unwrap();
        // s² = 8, E (E - R)/R = 100 · 50/50: the variance is 800, with one degree of freedom: t = 12.706.
        assert_eq!((found.calls, found.count, found.own, found.degrees), (2, 120.0, Some(20.0), 1));
        let Error::Within { below, above } = found.error(Confidence::DEFAULT) else { panic!("{found:?}") };
        assert!((above - 12.706 * 800_f64.sqrt()).abs() < 0.1 && below == 60.0, "{below} {above}");
        assert_eq!(found.per_second, Some(120.0));
        // What was never counted has no number.
        let clock = tree.find_event("region-task-clock:u").unwrap();
        assert_eq!((outer.call_counts(clock), tree.event_of(clock).unit()), (None, "nanoseconds"));
    }

    #[test]
    fn events_that_are_not_chosen_are_left_out() {
        let mut chosen = tree().with_region_events(["region-page-faults".to_owned()]);
        chosen.take_regions(&first(vec![counts(0, 60, 10, 50)])).unwrap();
        let names: Vec<_> = chosen.tree().event_ids().map(|id| chosen.tree().event_of(id).name.clone()).collect();
        assert_eq!(names, ["region-page-faults"]);
        let mut none = tree().with_region_events([]);
        none.take_regions(&first(vec![counts(0, 60, 10, 50)])).unwrap();
        assert_eq!((none.tree().event_ids().count(), none.tree().len()), (0, 1));
    }
}
