//! Reads events in rounds of cumulative readings, from the kernel, a model or a script.
//!
//! Everything downstream works on [`Round`]s and doesn't know where they come from: the kernel
//! ([`perf`]), a recording or a script ([`scripted`]).

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::plan::RowIndex;
use crate::threads::ThreadSnapshot;
use crate::units::{CpuNs, WallNs};

pub mod command;
pub mod emulate;
pub mod limited;
pub mod perf;
pub mod process;
pub mod scripted;
pub mod tool;
pub mod watched;

/// What the kernel has counted of one event since the measurement began.
///
/// ```text
/// task on a CPU   ████████████████████        enabled
/// on a counter    ████    ████    ████        running: the count covers only this
/// ```
///
/// A reading with `running == 0` hasn't counted anything yet: its count is unknown, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Occurrences while the event was on a counter.
    pub count: u64,
    /// CPU time of the monitored tasks.
    pub enabled: CpuNs,
    /// The part of `enabled` during which the event was on a counter.
    pub running: CpuNs,
}

/// One pass over all groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Round {
    /// Time at which the pass over all counters began.
    pub at: WallNs,
    /// A reading for each event in each part of the target, behind them one for each anchor
    /// ([`RowLayout`](crate::plan::RowLayout)), and last those of what was counted in truth, where counters were
    /// emulated. `None` where a counter isn't open or could not be read this time.
    pub readings: Vec<Option<Reading>>,
    /// The rows of which a part isn't counted: the kernel took the counters off a task that executed a
    /// program with rights of its own, which stays so in all later rounds; or one of the event's units hasn't been on a
    /// counter so far.
    pub uncounted: Vec<RowIndex>,
    /// The rows of which a CPU isn't counted any more as it went offline, and since when: so in all later rounds, also
    /// where it is online again.
    pub offline: Vec<(RowIndex, WallNs)>,
    /// What the target's threads have done, once an interval, by the time that it says.
    pub threads: Option<Arc<ThreadSnapshot>>,
}

/// A round as it is kept and played back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedRound {
    /// The round.
    pub round: Round,
    /// How many rounds of the run were lost before it.
    pub lost: u64,
}

impl RecordedRound {
    /// The last of these rounds, with the newest snapshot of threads that they have: what is known before the next one.
    pub fn last_of(rounds: &[Self]) -> Option<Self> {
        let mut last = rounds.last()?.clone();
        last.round.threads = rounds.iter().rev().find_map(|recorded| recorded.round.threads.clone());
        Some(last)
    }

    /// The round that a snapshot of threads goes with, which is written after the last of these: that which is nearest
    /// to its time, so that a range of a recording has the snapshots nearest to its ends. A round has one at most.
    pub fn for_threads(rounds: &mut [Self], at: WallNs) -> Option<&mut Self> {
        let distance = |place: usize| rounds[place].round.at.0.abs_diff(at.0);
        let mut place = rounds.len().checked_sub(1)?;
        while place > 0 && rounds[place - 1].round.threads.is_none() && distance(place - 1) < distance(place) {
            place -= 1;
        }
        rounds.get_mut(place)
    }

    /// The first snapshot of threads that these rounds have.
    pub fn first_threads(rounds: &[Self]) -> Option<&Arc<ThreadSnapshot>> {
        rounds.iter().find_map(|recorded| recorded.round.threads.as_ref())
    }
}

/// What a source answers when it is asked for a round.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// A round was read.
    Round(Round),
    /// There are no more rounds: everything that was measured has ended.
    Ended,
}

/// Gives rounds, one at a time.
pub trait CounterSource: Send {
    /// Reads the next round.
    fn read(&mut self) -> Next;

    /// Reads the last round, with what is read at the end only.
    fn read_last(&mut self) -> Next {
        self.read()
    }

    /// Begins to count, where that hasn't begun by itself.
    fn enable(&mut self) {}

    /// Has rounds counted from a time: the moment of exec.
    fn start_clock(&mut self, _start: Instant) {}

    /// Called once when the command has been released and begun to execute.
    fn has_executed(&mut self) {}

    /// How often [`tick`](Self::tick) is to be called between rounds; never where `None`.
    fn beat(&self) -> Option<Duration> {
        None
    }

    /// Does what has to be done more often than rounds are read.
    fn tick(&mut self) {}

    /// Called once after the last round. What a source hands on beside rounds ends here; its counters stay open
    /// until it is dropped.
    fn end(&mut self) {}
}

impl CounterSource for Box<dyn CounterSource> {
    fn read(&mut self) -> Next {
        self.as_mut().read()
    }

    fn read_last(&mut self) -> Next {
        self.as_mut().read_last()
    }

    fn enable(&mut self) {
        self.as_mut().enable();
    }

    fn start_clock(&mut self, start: Instant) {
        self.as_mut().start_clock(start);
    }

    fn has_executed(&mut self) {
        self.as_mut().has_executed();
    }

    fn end(&mut self) {
        self.as_mut().end();
    }

    fn beat(&self) -> Option<Duration> {
        self.as_ref().beat()
    }

    fn tick(&mut self) {
        self.as_mut().tick();
    }
}

/// What counts the events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Counter {
    /// The kernel, with the counters of this machine.
    #[default]
    Kernel,
    /// valgrind, with a model of a machine.
    Model(emulate::CacheModel),
}

/// Which part of the target a row counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The whole target.
    #[default]
    All,
    /// Only what runs on this CPU.
    Cpu(u32),
    /// Only this thread.
    Thread {
        /// Id of the thread.
        tid: i32,
        /// Name of the thread, as the kernel has it.
        name: String,
    },
}

impl fmt::Display for Scope {
    /// Formats the scope as perf does: `CPU3`, `rec-4121`; nothing for all.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => Ok(()),
            Self::Cpu(cpu) => write!(f, "CPU{cpu}"),
            // It had ended before it was asked.
            Self::Thread { tid, name } if name.is_empty() => write!(f, "{tid}"),
            Self::Thread { tid, name } => write!(f, "{name}-{tid}"),
        }
    }
}

/// Whether an event could be opened on this machine, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The row is counted as asked.
    Counted,
    /// The row is counted in user space only: counting the kernel needs more rights.
    UserOnly,
    /// This machine has no such event, or no PMU that counts it.
    NotSupported,
    /// The kernel doesn't let this user count it.
    Forbidden,
    /// All that could count it is in use.
    InUse,
    /// The thread had ended before its counters were open.
    Gone,
    /// Its PMU is opened on other CPUs than those that are counted.
    Elsewhere,
}

impl Status {
    /// Whether readings of the event will come.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Counted | Self::UserOnly)
    }

    /// The word for it in files and on screens.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::UserOnly => "user only",
            Self::NotSupported => "not supported",
            Self::Forbidden => "not permitted",
            Self::InUse => "in use",
            Self::Gone => "gone",
            Self::Elsewhere => "on other CPUs",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
