//! Describes how a run ended.

use serde::{Deserialize, Serialize};

use crate::defaults::is_default;
use crate::sources::Reading;
use crate::sources::command::Exit;
use crate::units::{CpuTime, WallNs};

/// How a measurement ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Time since the beginning.
    pub at_ns: WallNs,
    /// How the command ended, if there was one and it did.
    pub exit: Option<Exit>,
    /// Whether perfprop asked the command to end, at a signal or as it was told to: `exit` then is no end of its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub was_ended_by_perfprop: bool,
    /// CPU time of the command and its waited-for children, as the kernel accounts it; `None` if there was no command.
    pub cpu_time: Option<CpuTime>,
    /// Whether counters were to count all of that CPU time: of the command and all that it started, from its exec on
    /// until it ended by itself.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_all_watched: bool,
    /// Processes and threads that the whole machine started meanwhile; `None` where that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Whether it is the end of processes or threads that ran before: all have ended.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_target_ended: bool,
    /// Rounds that were read but not kept.
    pub lost_rounds: u64,
    /// The last readings: the totals.
    pub totals: Vec<Option<Reading>>,
}
