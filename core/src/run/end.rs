//! Describes how a run ended.

use serde::{Deserialize, Serialize};

use crate::sources::Reading;
use crate::sources::command::Exit;
use crate::units::{CpuNs, WallNs};

/// How a measurement ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Time since the beginning.
    pub at_ns: WallNs,
    /// How the command ended, if there was one and it did.
    pub exit: Option<Exit>,
    /// CPU time in user space and in the kernel, if there was a command.
    pub cpu_time: Option<CpuTime>,
    /// Whether counters were to count all of that CPU time: of the command and all that it started, from its exec on until
    /// it ended by itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_all_watched: bool,
    /// Processes and threads that the whole machine started meanwhile; `None` where that isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Whether it is the end of processes or threads that ran before: all have ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub has_target_ended: bool,
    /// Rounds that were read but not kept.
    pub lost_rounds: u64,
    /// The last readings: the totals.
    pub totals: Vec<Option<Reading>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// CPU time of a command and its waited-for children, as the kernel accounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// CPU time in user space.
    pub user_ns: CpuNs,
    /// CPU time in the kernel.
    pub system_ns: CpuNs,
}

impl CpuTime {
    /// In user space and in the kernel.
    pub fn all(self) -> CpuNs {
        self.user_ns + self.system_ns
    }
}
