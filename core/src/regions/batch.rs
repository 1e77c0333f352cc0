//! Defines what is read of regions: what is new since the last time.

use serde::{Deserialize, Serialize};

use perfprop_regions::{Certainty, EventSums, EventTotal, LostCalls, Spread};

use crate::names::shown;
use crate::rates::Confidence;
use crate::units::WallNs;

/// The number of a [`RegionProgram`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RegionProgramId(pub u32);

/// The number of a [`RegionPath`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RegionPathId(pub u32);

/// A program that shares its regions. A process that is replaced by exec becomes another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionProgram {
    /// Its process.
    pub pid: u32,
    /// Name of the process (`comm`), which may hold any character; `None` where nobody knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl RegionProgram {
    /// `process 7 (fit)`: its number, and its name if that is known. Safe to show.
    pub fn title(&self) -> String {
        let name = self.name.as_deref().map_or_else(String::new, |name| format!(" ({})", shown(name)));
        format!("process {}{name}", self.pid)
    }
}

/// A region below other regions, in a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RegionPath {
    /// Its program.
    pub program: RegionProgramId,
    /// The region around, in no phase; `None` for the outermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<RegionPathId>,
    /// Name of the region, which may hold any character.
    pub name: String,
    /// Name of the phase; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub phase: String,
}

/// What was counted on a path since its program began to record, on all threads. Times are in nanoseconds, without what
/// markers cost.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionCounts {
    /// The path.
    pub path: RegionPathId,
    /// Calls that ended.
    pub calls: u64,
    /// Their time, with that of regions within.
    pub time_ns: u64,
    /// The part of it that passed in no region within. It never gets less.
    pub self_ns: u64,
    /// What the markers took by what they took when they were measured, which was taken off the time.
    pub markers_ns: u64,
    /// The part of it that was taken off the time in the region alone.
    pub self_markers_ns: u64,
    /// Runs backwards.
    pub reverse_calls: u64,
    /// Their time.
    pub reverse_ns: u64,
    /// How calls differ; `None` without one.
    pub spread: Option<Spread>,
    /// What events counted, in the order of [`RegionState::events`].
    pub events: Vec<EventSums>,
    /// What the program counted itself, in the order of [`RegionState::counters`].
    pub counters: Vec<u64>,
    /// Name of a region that began in a call which has ended, and hasn't ended since: what was counted in this region alone
    /// isn't known until then. `None` where there is no such region.
    pub outlasted_by: Option<String>,
}

impl RegionCounts {
    /// How well the time is known.
    pub fn certainty(&self) -> Certainty {
        Certainty::of(self.time_ns as f64, self.markers_ns as f64)
    }

    /// How well the time in the region alone is known.
    pub fn self_certainty(&self) -> Certainty {
        Certainty::of_self(self.self_ns as f64, self.self_markers_ns as f64, self.outlasted_by.as_deref())
    }

    /// Numbers of an event with their interval; `None` where it was never counted, which is not 0.
    pub fn event(&self, place: usize) -> Option<EventTotal> {
        self.events.get(place)?.total_of(self.calls, self.outlasted_by.as_deref())
    }

    /// Numbers of an event with their interval at this level; `None` where it was never counted.
    pub fn event_at(&self, place: usize, confidence: Confidence) -> Option<EventTotal> {
        let total = self.event(place)?;
        // What has no error has no degrees of freedom either.
        let half_width = |error: f64| if error == 0.0 { 0.0 } else { error * confidence.student(total.degrees as f64) };
        Some(EventTotal { error: total.standard_error.map(half_width), ..total })
    }

    /// What no call counts.
    pub fn nothing(path: RegionPathId) -> Self {
        Self {
            path,
            calls: 0,
            time_ns: 0,
            self_ns: 0,
            markers_ns: 0,
            self_markers_ns: 0,
            reverse_calls: 0,
            reverse_ns: 0,
            spread: None,
            events: Vec::new(),
            counters: Vec::new(),
            outlasted_by: None,
        }
    }

    /// What was counted on the path and on that of another program. How calls differ isn't known of both.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let counters = self.counters.len().max(other.counters.len());
        let counter = |place: usize| {
            let of = |counts: &Self| counts.counters.get(place).copied().unwrap_or(0);
            of(self).saturating_add(of(other))
        };
        let events = self.events.len().max(other.events.len());
        let event = |place: usize| match (self.events.get(place), other.events.get(place)) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other).copied(),
        };
        Self {
            path: self.path,
            calls: self.calls.saturating_add(other.calls),
            time_ns: self.time_ns.saturating_add(other.time_ns),
            self_ns: self.self_ns.saturating_add(other.self_ns),
            markers_ns: self.markers_ns.saturating_add(other.markers_ns),
            self_markers_ns: self.self_markers_ns.saturating_add(other.self_markers_ns),
            reverse_calls: self.reverse_calls.saturating_add(other.reverse_calls),
            reverse_ns: self.reverse_ns.saturating_add(other.reverse_ns),
            spread: None,
            events: (0..events).filter_map(event).collect(),
            counters: (0..counters).map(counter).collect(),
            outlasted_by: self.outlasted_by.as_ref().or(other.outlasted_by.as_ref()).cloned(),
        }
    }

    /// What was counted on the path later than these earlier counts of it. How calls differ is known of all of them only.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let event = |(place, event): (usize, &EventSums)| {
            earlier.events.get(place).map_or(*event, |earlier| event.since(earlier))
        };
        let before = earlier.counters.iter().copied().chain(std::iter::repeat(0));
        Self {
            path: self.path,
            calls: self.calls.saturating_sub(earlier.calls),
            time_ns: self.time_ns.saturating_sub(earlier.time_ns),
            self_ns: self.self_ns.saturating_sub(earlier.self_ns),
            markers_ns: self.markers_ns.saturating_sub(earlier.markers_ns),
            self_markers_ns: self.self_markers_ns.saturating_sub(earlier.self_markers_ns),
            reverse_calls: self.reverse_calls.saturating_sub(earlier.reverse_calls),
            reverse_ns: self.reverse_ns.saturating_sub(earlier.reverse_ns),
            spread: None,
            events: self.events.iter().enumerate().map(event).collect(),
            counters: self.counters.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect(),
            // Nobody knows whether it is the region that outlasted this one before.
            outlasted_by: self.outlasted_by.clone(),
        }
    }
}

/// What is known of a program's regions beside their counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionState {
    /// What measuring a call adds to the time of its own region, in nanoseconds; it is taken off.
    #[serde(default)]
    pub inner_ns: f64,
    /// What it adds to the region around.
    #[serde(default)]
    pub outer_ns: f64,
    /// Calls that were not counted, as there were too many paths of regions.
    #[serde(default)]
    pub lost: u64,
    /// Those that weren't, as there were too many threads.
    #[serde(default)]
    pub lost_to_threads: u64,
    /// Those that weren't, as a signal handler had interrupted what counts.
    #[serde(default)]
    pub lost_in_handlers: u64,
    /// Those that weren't, as a region of their name was open on their thread.
    #[serde(default)]
    pub lost_to_open_names: u64,
    /// Names of the events that are counted in regions, each of which may hold any character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Names of what programs count themselves, each of which may hold any character.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<String>,
    /// Why nothing can be read, if that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RegionState {
    /// All calls that were not counted.
    pub fn lost_calls(&self) -> LostCalls {
        LostCalls {
            to_paths: self.lost,
            to_threads: self.lost_to_threads,
            in_handlers: self.lost_in_handlers,
            to_open_names: self.lost_to_open_names,
        }
    }
}

/// An enter or a leave of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionMark {
    /// When.
    pub at: WallNs,
    /// What was entered or left.
    pub path: RegionPathId,
    /// Whether it was entered.
    pub is_enter: bool,
}

/// What a thread entered and left since the last time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadMarks {
    /// Its process.
    pub program: RegionProgramId,
    /// The kernel's number of the thread.
    pub tid: u32,
    /// Enters and leaves before these that are gone: the ring is short.
    pub missed: u64,
    /// The others, in the order of time.
    pub marks: Vec<RegionMark>,
}

/// What one thread counted on a path, in the region alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadCounts {
    /// The path.
    pub path: RegionPathId,
    /// The kernel's number of the thread; 0 for all those that have ended and share a place.
    pub tid: u32,
    /// Calls that ended.
    pub calls: u64,
    /// Their time outside of regions within, in nanoseconds.
    pub self_ns: u64,
    /// Time of runs backwards, with that of regions within.
    #[serde(default)]
    pub reverse_ns: u64,
    /// What each event counted outside of regions within, in the order of [`RegionState::events`]; `None` where it wasn't.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Option<u64>>,
}

/// What was new when regions were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RegionBatch {
    /// When they were read: all marks before are here, or missed.
    pub at: WallNs,
    /// When they were read the last time before: all marks here are later.
    pub since: WallNs,
    /// When the counts were read the last time before; `None` where they weren't read this time, but only marks.
    pub counted_since: Option<WallNs>,
    /// Programs that were not defined before.
    pub programs: Vec<RegionProgram>,
    /// Paths that were not defined before, those around first.
    pub paths: Vec<RegionPath>,
    /// Counts that changed.
    pub counts: Vec<RegionCounts>,
    /// What changed of programs.
    pub states: Vec<(RegionProgramId, RegionState)>,
    /// What threads entered and left.
    pub marks: Vec<ThreadMarks>,
    /// What each thread counted in all, in the last batch where enters and leaves are read.
    pub threads: Vec<ThreadCounts>,
}

impl RegionBatch {
    /// Whether it says nothing but when it was read.
    pub fn is_empty(&self) -> bool {
        *self == Self { at: self.at, since: self.since, counted_since: self.counted_since, ..Self::default() }
    }
}
