//! Reads the named regions of measured programs, which they share through the crate `perfprop-regions`.
//!
//! ```text
//! folder of a command ──┐                        ┌─ RegionTable: what was counted, and how fast it grows
//!                       ├─ snapshots ── batches ─┤
//! /proc/PID/fd ─────────┘   (source)    (live)   └─ OpenRegions: what was open on a thread at a time
//! ```
//!
//! Each command has a folder, which is named after its process. Each process of it that has regions makes a file there and
//! writes its counts into it as they come, so that they can be read at any time, and are still there when the process has
//! crashed. A process that runs already has a file without a name, in which perfprop switches recording on. The same
//! [batches](RegionBatch) come out of a recording.

mod attach;
mod batch;
mod folder;
mod live;
mod open;
mod range;
mod reader;
mod source;
mod table;

pub use batch::{
    RegionBatch, RegionCounts, RegionMark, RegionPath, RegionPathId, RegionProgram, RegionProgramId, RegionState,
    ThreadCounts, ThreadMarks,
};
#[cfg(feature = "stacks")]
pub(crate) use live::clock;
pub use live::{LiveRegions, Wanted};
pub use open::{OpenRegions, RegionAt};
pub use perfprop_regions::{
    Certainty, CountedPart, EventCounts, EventSums, EventTotal, LostCalls, Marker, PathRow, Snapshot, SnapshotError,
    Spread, Times, json,
};
pub use perfprop_regions::{
    MOST_EVENTS as MOST_REGION_EVENTS, event_names as region_event_names, is_event as is_region_event,
};
pub use range::RegionRange;
pub use source::RegionSource;
pub use table::{EventRate, RegionTable, Undefined, UnreadRegions, outlasted_regions};

use crate::events::Unit;
use crate::files::Refused;

/// The event of a profile tree that is the time of regions.
pub const REGION_TIME: &str = "region-time";

/// The event of a profile tree that is the time of regions' runs backwards.
pub const REGION_BACKWARD: &str = "region-backward-time";

/// The event of a profile tree that is an event which regions count: `region-page-faults`. The same event may be sampled, too.
pub fn region_event(name: &str) -> String {
    format!("region-{name}")
}

/// What an event of this name is counted in.
pub fn unit_of(event: &str) -> Unit {
    let (name, _) = event.split_once(':').unwrap_or((event, ""));
    let is_clock = ["cpu-clock", "task-clock"].iter().any(|clock| clock.eq_ignore_ascii_case(name));
    if is_clock { Unit::Nanoseconds } else { Unit::Count }
}

/// The regions of a process.
#[derive(Debug)]
pub struct ProcessRegions {
    /// The process.
    pub pid: u32,
    /// What they counted, or why that can't be read.
    pub regions: Result<Snapshot, RegionsError>,
}

/// Why the regions of a process can't be read.
#[derive(Debug)]
pub enum RegionsError {
    /// Their file is a link, or no regular file.
    Refused(Refused),
    /// Their file doesn't hold what it should.
    Snapshot(SnapshotError),
    /// Their file is another process's.
    OfAnother,
    /// What it was when the process was found.
    Known(String),
    /// It isn't read, as it is one of so many past the first 1,000.
    TooMany(usize),
}

impl std::fmt::Display for RegionsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Snapshot(error) => error.fmt(f),
            Self::OfAnother => f.write_str("it belongs to another process"),
            Self::Known(error) => f.write_str(error),
            Self::TooMany(others) => {
                let most = source::MOST_PROGRAMS;
                write!(f, "it is one of {others} processes past the first {most}, which alone are read")
            }
        }
    }
}

impl std::error::Error for RegionsError {}

impl From<std::io::Error> for RegionsError {
    fn from(error: std::io::Error) -> Self {
        Self::Refused(Refused::System(error))
    }
}
