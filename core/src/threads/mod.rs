//! Reads what the threads of a target do: their CPU time, how long they wait for a CPU, and what they sleep in.
//!
//! ```text
//! /proc/PID/task/TID/stat, wchan   up to 20 times a second: running, sleeping or waiting, and where in the kernel
//! /proc/PID/task/TID/schedstat     as often: CPU time, time waiting for a CPU, how often it was given one
//! /proc/PID/cmdline, status        twice a process: its command line and its user
//!                                  └─ ThreadSnapshot, all cumulative ─ with a round ─ ThreadUse between two
//! ```
//!
//! Whole machines are read by process, as they may have thousands of threads: with the CPU time of all their threads,
//! and with the state of those that have one thread only. For root, the kernel tells what ended between two looks
//! (`taskstats`).

use std::cmp::Reverse;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::defaults::is_default;
use crate::host::{MachineResources, QuotaPeriods};
use crate::units::{ClockTicks, CpuNs, WallNs};

mod command;
mod ended;
mod family;
mod live;
mod process;
mod quota;
mod reader;
mod stat;
mod usage;

pub use command::CommandWords;
pub use ended::EndedProcesses;
pub use live::LiveThreads;
pub use process::ProcessDetails;
pub use reader::{ThreadReader, ThreadTarget};
pub(crate) use stat::Stat;
pub use usage::{LEAST_LOOKS, LooksSince, ThreadUse, Uses, WaitKind, of_ended_children, take_older_looks, uses};

/// The most threads of a snapshot; the others are counted.
pub const MOST_THREADS: usize = 512;

/// What the threads of a target have done until a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSnapshot {
    /// The moment.
    pub at_ns: WallNs,
    /// Processes and threads that the whole machine has started since it runs; `None` where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
    /// Threads beyond [`MOST_THREADS`], of which nothing is said.
    #[serde(default, skip_serializing_if = "is_default")]
    pub left_out: usize,
    /// CPU time of all of the target, with threads and children that have ended and those that are left out; of a
    /// machine, how long its CPUs were busy. `None` of single threads, and where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_ns: Option<CpuNs>,
    /// How long all CPUs together were busy since the machine runs, where the target isn't the machine; `None` where
    /// the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_ns: Option<CpuNs>,
    /// How long each CPU of a machine was busy since the machine runs, by its number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busy_ns: Vec<(u32, CpuNs)>,
    /// How often the CPU quota of the target's control groups, those of its first process, was used up since the
    /// measurement began; `None` of a machine, where there is no quota, and where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaPeriods>,
    /// Memory, load and disks of a machine; `None` of other targets, and where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<MachineResources>,
    /// Processes of a machine that have ended since the measurement began, by name: those that used some CPU time.
    /// Empty where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedProcesses>,
    /// Threads that ended since the snapshot before, as they were seen last; empty of a machine. Those that the
    /// snapshot before doesn't have aren't told where they used next to no CPU time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended_threads: Vec<ThreadReading>,
    /// The first snapshot of a run, from which on times count, where this one came before any round had that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<Arc<Self>>,
    /// The threads that live, processes in the order of their ids.
    pub threads: Vec<ThreadReading>,
}

impl ThreadSnapshot {
    /// Adds to a snapshot the threads that ended before an earlier one, which isn't kept: as many as a snapshot holds,
    /// those with most CPU time; and the first snapshot that it has.
    pub fn take_ended(later: &mut Arc<Self>, earlier: &Self) {
        if earlier.first.is_some() {
            Arc::make_mut(later).first.clone_from(&earlier.first);
        }
        if !earlier.ended_threads.is_empty() {
            let all = &mut Arc::make_mut(later).ended_threads;
            all.extend_from_slice(&earlier.ended_threads);
            all.sort_by_key(|thread| Reverse(thread.cpu_ns));
            all.truncate(MOST_THREADS);
        }
    }

    /// The later of two snapshots, with what ended before the earlier one.
    pub fn merged(earlier: Option<Arc<Self>>, later: Option<Arc<Self>>) -> Option<Arc<Self>> {
        match (earlier, later) {
            (Some(earlier), Some(mut later)) => {
                Self::take_ended(&mut later, &earlier);
                Some(later)
            }
            (earlier, later) => later.or(earlier),
        }
    }
}

/// What tells a thread from all others: the kernel gives the number of one that has ended to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId {
    /// The number.
    pub tid: i32,
    /// When it began, since the machine runs.
    pub began: ClockTicks,
}

/// What a thread has done since it began.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadReading {
    /// Its process.
    pub pid: i32,
    /// The thread; the process where a machine is read by process.
    pub tid: i32,
    /// Its name, which may hold any character.
    pub name: String,
    /// When it began, in clock ticks since the machine runs.
    pub began: u64,
    /// Time on a CPU.
    pub cpu_ns: CpuNs,
    /// Time in which it could have run and had no CPU; `None` where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ns: Option<CpuNs>,
    /// CPU time of the process' children that have ended and were waited for; 0 of all but the first thread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub children_ns: CpuNs,
    /// Memory that the process has in RAM, in bytes; 0 of all but the first thread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub resident: u64,
    /// The most memory that the process was seen to have so far, in bytes, where that is more than it has now; 0 of all
    /// but the first thread.
    #[serde(default, skip_serializing_if = "is_default")]
    pub most_resident: u64,
    /// Page faults, minor and major.
    #[serde(default, skip_serializing_if = "is_default")]
    pub faults: u64,
    /// How often it was given a CPU; `None` where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// How long it waited for block devices; 0 where the kernel doesn't keep that.
    #[serde(default, skip_serializing_if = "is_default")]
    pub blocked_ns: CpuNs,
    /// Whether it is a thread of the kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_of_kernel: bool,
    /// The user and the command line of its process; `None` of all but the first thread, and where it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Arc<ProcessDetails>>,
    /// What it did each time it was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<ThreadLooks>,
}

impl ThreadReading {
    /// Which thread it is.
    pub fn id(&self) -> ThreadId {
        ThreadId { tid: self.tid, began: ClockTicks(self.began) }
    }

    /// The most memory that the process was seen to have so far, in bytes; 0 where that isn't known.
    pub fn peak(&self) -> u64 {
        self.resident.max(self.most_resident)
    }

    /// Whether it has ended, and nobody has waited for it.
    pub fn is_defunct(&self) -> bool {
        self.looks.iter().any(|looks| matches!(looks.state, 'Z' | 'X'))
    }
}

/// How often a thread was seen in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadLooks {
    /// The kernel's letter for the state: `R` running or ready, `S` sleeping, `D` waiting without being interruptible.
    pub state: char,
    /// The function of the kernel in which it slept or waited; empty where the kernel doesn't say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
    /// How often.
    pub times: u32,
}
