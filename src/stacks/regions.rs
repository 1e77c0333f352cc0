//! Adds named regions to a profile tree: their calls and times on paths of their own, above what was sampled in them.

use rustc_hash::FxHashMap;

use super::{Naming, Task};
use crate::profile::{
    Amount, CallTimes, EventId, Frame, FrameId, FrameKind, ProfileEvent, SampleMeasure, ThreadId, Tree,
};
use crate::regions::{
    OpenRegions, REGION_TIME, RegionBatch, RegionCounts, RegionPathId, RegionProgram, RegionTable, UndefinedRegion,
};

/// The paths of regions in a tree, and what of them is in it.
#[derive(Debug)]
pub(super) struct RegionPaths {
    pub(super) table: RegionTable,
    pub(super) open: OpenRegions,
    pub(super) is_event: bool,
    event: Option<EventId>,
    /// The frame above all of a program.
    programs: Vec<Option<FrameId>>,
    /// The frames of each path, the outermost first.
    paths: Vec<Vec<FrameId>>,
    /// Calls and time of each path that are in the tree.
    added: Vec<(u64, u64)>,
}

impl Default for RegionPaths {
    fn default() -> Self {
        Self {
            table: RegionTable::default(),
            open: OpenRegions::default(),
            is_event: true,
            event: None,
            programs: Vec::new(),
            paths: Vec::new(),
            added: Vec::new(),
        }
    }
}

impl RegionPaths {
    /// Takes over what a batch defines.
    pub(super) fn take(
        &mut self,
        batch: &RegionBatch,
        tree: &mut Tree,
        naming: &Naming,
    ) -> Result<(), UndefinedRegion> {
        self.table.take(batch)?;
        self.open.take(batch);
        for program in &batch.programs {
            let name = (naming.task)(&task(program));
            let name = name.map(|name| tree.frame(&Frame { kind: FrameKind::Process, ..Frame::function(&name) }));
            self.programs.push(name);
        }
        for path in &batch.paths {
            let frame = tree.frame(&Frame { kind: FrameKind::Region, ..Frame::function(&path.name) });
            let mut frames = match path.parent {
                Some(parent) => self.paths[parent.0 as usize].clone(),
                None => self.programs[path.program.0 as usize].into_iter().collect(),
            };
            frames.push(frame);
            self.paths.push(frames);
            self.added.push((0, 0));
        }
        if self.event.is_none() && self.is_event && !batch.counts.is_empty() {
            self.event = Some(tree.event(&ProfileEvent::new(REGION_TIME, SampleMeasure::Timed)));
        }
        Ok(())
    }

    /// The frames of a path, the outermost first.
    pub(super) fn path(&self, path: RegionPathId) -> &[FrameId] {
        self.paths.get(path.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// Adds what a batch counted.
    pub(super) fn add_new(&mut self, tree: &mut Tree, place: ThreadId, batch: &RegionBatch) {
        batch.counts.iter().for_each(|counts| self.add(tree, place, counts));
        self.set_times(tree, place);
    }

    /// Adds all to a tree in which there is nothing.
    pub(super) fn add_all(&mut self, tree: &mut Tree, place: ThreadId) {
        self.added.fill((0, 0));
        for path in (0..self.paths.len() as u32).map(RegionPathId) {
            if let Some(counts) = self.table.counts(path).copied() {
                self.add(tree, place, &counts);
            }
        }
        self.set_times(tree, place);
    }

    fn add(&mut self, tree: &mut Tree, place: ThreadId, counts: &RegionCounts) {
        let Some(event) = self.event else { return };
        let path = counts.path.0 as usize;
        let (calls, self_ns) = self.added[path];
        let more = Amount { samples: 0, weight: counts.self_ns.saturating_sub(self_ns) };
        tree.tally(place, self.paths[path].iter().copied(), counts.calls.saturating_sub(calls), &[(event, more)]);
        self.added[path] = (counts.calls, counts.self_ns);
    }

    /// How long calls took, by the frames of their paths: those of all phases and of processes with one name together.
    fn set_times(&self, tree: &mut Tree, place: ThreadId) {
        if self.event.is_none() {
            return;
        }
        let mut all: FxHashMap<&[FrameId], CallTimes> = FxHashMap::default();
        for (path, frames) in self.paths.iter().enumerate() {
            let id = RegionPathId(path as u32);
            let Some(counts) = self.table.counts(id) else { continue };
            let times = call_times(counts, self.table.per_second(id));
            all.entry(frames).or_default().add(&times);
        }
        for (frames, times) in all {
            tree.set_call_times(place, frames.iter().copied(), times);
        }
    }
}

fn call_times(counts: &RegionCounts, per_second: f64) -> CallTimes {
    let (mean_ns, variance) = counts.spread.map_or((0.0, None), |spread| (spread.mean, spread.variance));
    let squares = variance.unwrap_or(0.0) * counts.calls.saturating_sub(1) as f64;
    CallTimes { calls: counts.calls, mean_ns, squares, per_second }
}

/// The task that stands for a program: its main thread.
fn task(program: &RegionProgram) -> Task {
    let pid = program.pid.cast_signed();
    let comm = program.name.clone().unwrap_or_else(|| format!("process {pid}"));
    Task { pid, tid: pid, comm }
}
