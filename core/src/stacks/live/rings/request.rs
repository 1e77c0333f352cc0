//! What is asked to be sampled, how often, and why nothing can be.

use std::io;

use crate::events::{Event, EventKind};
use crate::host::HostFiles;
use crate::sources::perf::OpenError;
use crate::stacks::{Rate, UnwindMethod};

/// Events to sample, and how.
#[derive(Clone, Debug)]
pub struct StackRequest {
    /// The events; those that can't be sampled are left out.
    pub events: Vec<Event>,
    /// How often; the default is [`DEFAULT_FREQUENCY`], of the whole machine [`MACHINE_FREQUENCY`], and every one of a
    /// tracepoint or probe.
    pub rate: Option<Rate>,
    /// How stacks are unwound.
    pub call_graph: UnwindMethod,
    /// The event of switches between threads, where time on no CPU is sampled, too.
    pub off_cpu: Option<Event>,
    /// The event of wake-ups: without it, the time until a thread that was woken gets a CPU is part of its wait.
    pub wakeups: Option<WakeupEvent>,
    /// Whether there is nothing to measure without stacks.
    pub need: StackNeed,
}

/// Whether a measurement needs its stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackNeed {
    /// It fails where nothing can be sampled.
    Required,
    /// It goes on without them.
    IfPossible,
}

/// The event of threads being woken, on the whole machine.
#[derive(Clone, Debug)]
pub struct WakeupEvent {
    /// The tracepoint `sched:sched_waking`.
    pub event: Event,
    /// Where the number of the thread stands in its records, in bytes.
    pub tid_at: usize,
}

/// The name of that tracepoint.
pub const WAKEUPS: &str = "sched:sched_waking";

/// Default sampling frequency, in Hz: perf's.
pub const DEFAULT_FREQUENCY: u64 = 4000;

/// Default sampling frequency for `-a`, in Hz: about a quarter of perf's, and prime so that it doesn't beat with the
/// kernel's timers.
pub const MACHINE_FREQUENCY: u64 = 997;

/// Why nothing can be sampled.
#[derive(Debug)]
pub enum StackError {
    /// None of the events can be sampled.
    NoEvent(Vec<Unsampled>),
    /// The processor, or the machine it runs in, keeps no record of calls.
    NoLbr,
    /// Stacks of this processor can't be unwound.
    NoUnwinding,
    /// No memory for ring buffers within the limit of locked memory.
    Locked {
        /// How much all of them need at least, in bytes.
        needed: u64,
        /// Value of `perf_event_mlock_kb`.
        limit_kb: Option<u64>,
    },
    /// The target can't be measured at all.
    Open(OpenError),
}

/// An event that can't be sampled.
#[derive(Debug)]
pub struct Unsampled {
    /// Name of the event.
    pub name: String,
    /// The kernel's error.
    pub source: io::Error,
}

impl From<OpenError> for StackError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

/// How often an event is sampled: no more often than the kernel allows.
pub(super) fn rate(asked: Option<Rate>, event: &Event, frequency: u64) -> Rate {
    let default = match event.kind {
        EventKind::Tracepoint | EventKind::Probe | EventKind::Breakpoint => Rate::Period(1),
        EventKind::Software
        | EventKind::Hardware
        | EventKind::Cache
        | EventKind::Raw
        | EventKind::Pmu
        | EventKind::Modelled
        | EventKind::Tool => Rate::Frequency(frequency),
    };
    match asked.unwrap_or(default) {
        Rate::Frequency(hz) => Rate::Frequency(max_frequency().map_or(hz, |max| hz.min(max))),
        Rate::Period(period) => Rate::Period(period),
    }
}

/// The highest frequency that the kernel samples at now.
pub fn max_frequency() -> Option<u64> {
    setting("perf_event_max_sample_rate")
}

pub(super) fn setting(name: &str) -> Option<u64> {
    HostFiles::here().setting(name)?.try_into().ok()
}
