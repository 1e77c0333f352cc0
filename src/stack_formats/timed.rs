//! Tells what a recording says of times and threads beside its tree, by threads.

use std::collections::BTreeMap;

use crate::profile::{Amount, EventId, FrameId, FrameKind, NodeId, Tree};
use crate::recording::TimeRange;
use crate::run::Header;
use crate::stacks::{OFF_CPU, Rate, SampleTimeline, SampledEvent, SamplingSetup, Task, TaskId, TimedSample};

/// The samples of a recording one by one, and when they were taken.
#[derive(Clone, Debug)]
pub struct TimedRun {
    /// Header of the recording.
    pub header: Header,
    /// The time that was read of it.
    pub range: TimeRange,
    /// Which events were sampled, and how.
    pub setup: SamplingSetup,
    /// The samples.
    pub timeline: SampleTimeline,
}

/// What one event sampled of one thread.
#[derive(Debug)]
pub(super) struct ThreadTrack<'a> {
    pub(super) event: EventId,
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// The last name that it had.
    pub(super) name: &'a str,
    /// That of its process: of the first thread, or, if that wasn't sampled, of this one.
    pub(super) process: &'a str,
    /// In the order of time.
    pub(super) samples: Vec<TimedSample>,
}

impl TimedRun {
    /// The tracks of all threads: by event, then by process and by thread, each in the order in which they were sampled first;
    /// the first thread of a process before its others.
    pub(super) fn tracks(&self) -> Vec<ThreadTrack<'_>> {
        let processes = self.processes();
        let mut tracks: BTreeMap<_, ThreadTrack<'_>> = BTreeMap::new();
        let mut order: BTreeMap<i32, usize> = BTreeMap::new();
        let mut order_of_threads: BTreeMap<(i32, i32), usize> = BTreeMap::new();
        for sample in &self.timeline.samples {
            let Some(Task { pid, tid, comm }) = self.task(sample.task) else { continue };
            let (next, next_thread) = (order.len(), order_of_threads.len());
            let process_place = *order.entry(*pid).or_insert(next);
            let place = *order_of_threads.entry((*pid, *tid)).or_insert(next_thread);
            let track = tracks.entry((sample.event, process_place, tid != pid, place)).or_insert_with(|| {
                let process = processes.get(pid).copied().unwrap_or(comm);
                let (event, pid, tid) = (sample.event, *pid, *tid);
                ThreadTrack { event, pid, tid, name: comm, process, samples: Vec::new() }
            });
            track.name = comm;
            track.samples.push(*sample);
        }
        tracks.into_values().collect()
    }

    /// The names of processes by their ids: the last names of their first threads.
    pub(super) fn processes(&self) -> BTreeMap<i32, &str> {
        let first = self.timeline.tasks.iter().filter(|task| task.pid == task.tid);
        first.map(|task| (task.pid, task.comm.as_str())).collect()
    }

    pub(super) fn task(&self, task: TaskId) -> Option<&Task> {
        self.timeline.tasks.get(task.0 as usize)
    }

    /// How an event of the tree was sampled; `None` of those of regions.
    fn sampled(&self, tree: &Tree, event: EventId) -> Option<&SampledEvent> {
        let name = &tree.event_of(event).name;
        self.setup.events.iter().find(|sampled| sampled.name == *name)
    }

    /// What lies between two samples of an event that happens all the time, in its unit, if that is known.
    pub(super) fn period(&self, tree: &Tree, event: EventId) -> Option<u64> {
        let is_time = tree.event_of(event).unit() == "nanoseconds";
        let sampled = self.sampled(tree, event).filter(|sampled| sampled.name != OFF_CPU)?;
        match sampled.rate {
            Rate::Period(period) => Some(period),
            Rate::Frequency(hz) if is_time => 1_000_000_000_u64.checked_div(hz),
            // The kernel chooses it, and another one for each sample.
            Rate::Frequency(_) => None,
        }
    }

    /// The time between two samples of an event that happens all the time, in ns, if that is known.
    pub(super) fn interval_ns(&self, tree: &Tree, event: EventId) -> Option<u64> {
        match self.sampled(tree, event)?.rate {
            Rate::Frequency(hz) => 1_000_000_000_u64.checked_div(hz),
            Rate::Period(_) => self.period(tree, event).filter(|_| tree.event_of(event).unit() == "nanoseconds"),
        }
    }
}

impl ThreadTrack<'_> {
    /// The sum of its weights.
    pub(super) fn weight(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.weight))
    }
}

/// The events that are written as sums, without times and threads: all where there is no track, else those that have numbers
/// and no samples of their own.
pub(super) fn summed(tree: &Tree, tracks: &[ThreadTrack<'_>]) -> Vec<EventId> {
    let has_sums = |event: &EventId| tree.total(*event) != Amount::ZERO;
    let is_tracked = |event: &EventId| tracks.iter().any(|track| track.event == *event);
    tree.event_ids().filter(|event| tracks.is_empty() || has_sums(event) && !is_tracked(event)).collect()
}

/// The frames of a path that a thread's own track shows, outermost first: without the root and the thread, unless nothing else
/// is known of the stack.
pub(super) fn path_in_thread(tree: &Tree, node: NodeId) -> Vec<FrameId> {
    let path = tree.path(node);
    let is_thread = |frame: &FrameId| tree.frame_of(*frame).kind == FrameKind::Process;
    let above = 1 + usize::from(path.get(1).is_some_and(is_thread));
    path[above.min(path.len() - 1)..].to_vec()
}
