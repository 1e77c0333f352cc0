//! Writes rounds as JSON lines, and reads them back.
//!
//! ```text
//! {"type":"header", ...}   what is measured, where, in which groups, with which relation files
//! {"type":"round", ...}    cumulative counts and times of every event, one line a round
//! {"type":"threads", ...}  what the target's threads have done until about the round before; once an interval. Users and command
//!                          lines of processes are written once, and again when they change
//! {"type":"sampled", ...}  which events were sampled with their call stacks, and how; once, if any were
//! {"type":"stacks", ...}   samples in columns, and the frames, stacks and tasks that are new in them
//! {"type":"regions", ...}  what is new of named regions: counts that changed, enters and leaves, in columns
//! {"type":"end", ...}      how it ended, and the totals
//! ```
//!
//! Where events were counted in regions, `counts` of a line of regions has a column `events` for each of their sums,
//! and `states` has their names. What programs count themselves has a column `counters`, and its names there, too.
//!
//! A recording holds what was read and nothing that was derived: estimates are made anew by
//! whoever reads it. Lines of another type are passed over: a later version may write more of them. A file
//! that was cut off is good up to its last whole line.

use serde::{Deserialize, Serialize};

use crate::run::{End, Header};
use crate::sources::{Reading, Round};
use crate::stacks::SamplingSetup;
use crate::threads::ThreadSnapshot;
use crate::units::{CpuNs, WallNs};

mod check;
mod contents;
mod error;
mod head;
#[cfg(feature = "export")]
mod kept;
mod new_lines;
mod player;
mod processes;
mod range;
mod reader;
mod region_events;
mod regions;
mod stacks;
mod writer;

pub use contents::{Cut, RecordedStacks, Recording};
pub use error::ReadError;
pub use head::is_recording;
#[cfg(feature = "export")]
pub use kept::KeptSamples;
pub use player::{Player, Speed};
pub use range::{TimeRange, rounds_until};
pub use reader::read;
use regions::RegionsLine;
use stacks::StacksLine;
pub use writer::{ON_DISK, Recorder};

/// One line of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Header(Box<Header>),
    Round(RoundLine),
    Threads(ThreadSnapshot),
    Sampled(SamplingSetup),
    Stacks(Box<StacksLine>),
    Regions(Box<RegionsLine>),
    End(End),
    /// A line of a type that this version doesn't know.
    #[serde(other)]
    Unknown,
}

/// A round in columns, so that a table of rounds can be read by whatever reads JSON lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RoundLine {
    at_ns: WallNs,
    lost_rounds: u64,
    count: Vec<Option<u64>>,
    enabled_ns: Vec<Option<CpuNs>>,
    running_ns: Vec<Option<CpuNs>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    uncounted: Vec<usize>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    offline: Vec<(usize, WallNs)>,
}

impl RoundLine {
    fn new(round: &Round, lost_rounds: u64) -> Self {
        let (uncounted, offline) = (round.uncounted.clone(), round.offline.clone());
        let mut line = Self { at_ns: round.at, lost_rounds, uncounted, offline, ..Self::default() };
        for reading in &round.readings {
            line.count.push(reading.map(|reading| reading.count));
            line.enabled_ns.push(reading.map(|reading| reading.enabled));
            line.running_ns.push(reading.map(|reading| reading.running));
        }
        line
    }

    /// The round again; `None` if the columns aren't of `events` entries each, and about these.
    fn round(&self, events: usize) -> Option<Round> {
        if [self.count.len(), self.enabled_ns.len(), self.running_ns.len()] != [events; 3]
            || self.uncounted.iter().chain(self.offline.iter().map(|(event, _)| event)).any(|&event| event >= events)
        {
            return None;
        }
        let reading = |i: usize| {
            Some(Reading { count: self.count[i]?, enabled: self.enabled_ns[i]?, running: self.running_ns[i]? })
        };
        let readings = (0..events).map(reading).collect();
        let (uncounted, offline) = (self.uncounted.clone(), self.offline.clone());
        Some(Round { at: self.at_ns, readings, uncounted, offline, threads: None })
    }
}
