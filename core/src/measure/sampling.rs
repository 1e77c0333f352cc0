//! Chooses which events are sampled with their call stacks, and explains what can't be.

use std::{fmt, io};

use nix::errno::Errno;

use super::{Error, MeasureOptions, denied, resolver};
use crate::codes::ErrorCode;
use crate::events::{Event, EventKind, Machine};
use crate::machine::{Denial, Host};
use crate::names::shown;
use crate::plan::Plan;
use crate::sources::Counter;
use crate::sources::perf::TargetKind;
use crate::stacks::live::{self, MACHINE_FREQUENCY, StackError, StackNeed, StackRequest, WAKEUPS, WakeupEvent};
use crate::stacks::{OFF_CPU, Rate, UnwindMethod};

/// Sampled where nobody says what: where there is a PMU, and where there is none.
const DEFAULT_HARDWARE: &str = "cycles";
const DEFAULT_SOFTWARE: &str = "cpu-clock";

/// What is sampled as threads leave their CPUs.
const SWITCHES: &str = "context-switches";

/// The kernel's `perf_event_mlock_kb` as it begins: 512 KiB and a page (`kernel/events/core.c`).
const MLOCK_KB: u64 = 516;

/// How call stacks are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackOptions {
    /// How stacks are unwound; [`UnwindMethod::Auto`] where `None`. A model knows all calls: it needs none.
    pub method: Option<UnwindMethod>,
    /// How often an event is sampled; where `None`, 4000 times a second, and every one of a tracepoint.
    pub rate: Option<SampleRate>,
    /// Whether time on no CPU is sampled, too.
    pub off_cpu: OffCpuTime,
    /// What the stacks are for.
    pub purpose: StackPurpose,
}

/// What call stacks are sampled for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StackPurpose {
    /// They were asked for: without them the measurement fails.
    #[default]
    Profile,
    /// To show which functions run, beside what is counted: CPU time is sampled so many times a second, which takes no
    /// counter. Where that can't be, it is left out.
    Overview(u64),
}

/// Samples a second of an overview. Of 199, shares of a second's time are known to ±7 points, and those of ten seconds
/// to ±2. The others follow where threads end before they have run for long enough to be sampled.
pub const OVERVIEW_FREQUENCIES: [u64; 3] = [199, 997, 3989];

/// Whether the time that threads are on no CPU is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OffCpuTime {
    /// It isn't.
    #[default]
    Ignored,
    /// With the stack of each wait, and what was waited for.
    Sampled,
}

/// How often an event is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleRate {
    /// Samples a second; where the kernel allows fewer, those.
    Hz(u64),
    /// As many samples a second as the kernel allows.
    Max,
    /// A sample every so many occurrences.
    Period(u64),
}

/// What the options request to be sampled of the events of a plan, if anything.
pub(super) fn request(
    options: &MeasureOptions,
    target: Option<&TargetKind>,
    plan: &Plan,
    note: &mut dyn FnMut(&str),
) -> Result<Option<StackRequest>, Error> {
    let Some(stacks) = &options.stacks else { return Ok(None) };
    if let StackPurpose::Overview(frequency) = stacks.purpose {
        return overview(options, frequency);
    }
    if options.counter != Counter::Kernel {
        return modelled(stacks, plan).map(Some);
    }
    let rate = stacks.rate.map(|rate| allowed(rate, note)).transpose()?;
    if rate.is_none() && options.events.is_empty() && matches!(target, Some(TargetKind::Everyone)) {
        note(&format!("CPUs are sampled at {MACHINE_FREQUENCY} Hz at most; -F HZ samples more or less often"));
    }
    // Nothing happens when time passes.
    let sampled = plan.events.iter().filter(|event| event.kind != EventKind::Tool).cloned().collect::<Vec<_>>();
    let events = if options.events.is_empty() || sampled.is_empty() { default_events()? } else { sampled };
    let off_cpu = match stacks.off_cpu {
        OffCpuTime::Ignored => None,
        OffCpuTime::Sampled => resolver(None)?.called(SWITCHES).into_iter().next(),
    };
    let wakeups = if off_cpu.is_some() { wakeups()? } else { None };
    let call_graph = stacks.method.unwrap_or(UnwindMethod::Auto);
    Ok(Some(StackRequest { events, rate, call_graph, off_cpu, wakeups, need: StackNeed::Required }))
}

/// CPU time, of what the kernel counts: a model that counts all calls would take longer.
fn overview(options: &MeasureOptions, frequency: u64) -> Result<Option<StackRequest>, Error> {
    if options.counter != Counter::Kernel {
        return Ok(None);
    }
    let hz = live::max_frequency().map_or(frequency, |max| max.min(frequency));
    Ok(Some(StackRequest {
        events: events_called(DEFAULT_SOFTWARE)?,
        rate: Some(Rate::Frequency(hz)),
        call_graph: UnwindMethod::Auto,
        off_cpu: None,
        wakeups: None,
        need: StackNeed::IfPossible,
    }))
}

/// A model counts all calls of all events.
fn modelled(stacks: &StackOptions, plan: &Plan) -> Result<StackRequest, Error> {
    if *stacks != StackOptions::default() {
        let why = "the model of --source emulate counts every call, and samples nothing";
        return Err(Error::Options(format!("{why}: give -g alone")));
    }
    let events = plan.events.clone();
    let call_graph = UnwindMethod::Modelled;
    Ok(StackRequest { events, rate: None, call_graph, off_cpu: None, wakeups: None, need: StackNeed::Required })
}

/// The event of wake-ups, where tracefs can be read.
fn wakeups() -> Result<Option<WakeupEvent>, Error> {
    let event = resolver(None)?.called(WAKEUPS).into_iter().next();
    let tid_at = Machine::here().tracepoint_field(WAKEUPS, "pid");
    Ok(event.zip(tid_at).map(|(event, tid_at)| WakeupEvent { event, tid_at }))
}

fn default_events() -> Result<Vec<Event>, Error> {
    events_called(if Host::here().cores().next().is_some() { DEFAULT_HARDWARE } else { DEFAULT_SOFTWARE })
}

fn events_called(name: &str) -> Result<Vec<Event>, Error> {
    let groups = resolver(None)?.parse(name).map_err(Error::Events)?;
    Ok(groups.into_iter().flat_map(|group| group.events).collect())
}

/// A rate that the kernel allows; notes that another one was asked for.
fn allowed(rate: SampleRate, note: &mut dyn FnMut(&str)) -> Result<Rate, Error> {
    match (rate, live::max_frequency()) {
        (SampleRate::Period(period), _) => Ok(Rate::Period(period)),
        (SampleRate::Max, Some(max)) => Ok(Rate::Frequency(max)),
        (SampleRate::Max, None) => {
            Err(Error::Options("the kernel doesn't say its highest frequency: give a number".into()))
        }
        (SampleRate::Hz(hz), Some(max)) if hz > max => {
            note(&format!(
                "-F {hz} is more than the kernel allows now: sampling at {max} Hz (sudo sysctl kernel.perf_event_max_sample_rate={hz})"
            ));
            Ok(Rate::Frequency(max))
        }
        (SampleRate::Hz(hz), _) => Ok(Rate::Frequency(hz)),
    }
}

/// Notes each event that couldn't be sampled.
pub(super) fn note_unsampled(stacks: &live::LiveStacks, note: &mut dyn FnMut(&str)) {
    let (wakeups, others): (Vec<_>, Vec<_>) =
        stacks.unsampled().iter().partition(|unsampled| unsampled.name == WAKEUPS);
    let (waits, events): (Vec<_>, Vec<_>) = others.into_iter().partition(|unsampled| unsampled.name == OFF_CPU);
    for unsampled in wakeups {
        let (why, help) = match unsampled.source.kind() {
            io::ErrorKind::NotFound => (
                "tracefs isn't mounted, or may not be read".into(),
                "sudo mount -t tracefs tracefs /sys/kernel/tracing",
            ),
            io::ErrorKind::Unsupported => {
                (unsampled.source.to_string(), "perfprop has to run outside of the container")
            }
            _ => (why(&unsampled.source), "it needs root"),
        };
        note(&format!(
            "the time until a thread that was woken gets a CPU is part of its wait, and who woke it isn't known: \
             {WAKEUPS} of the whole machine can't be read ({why}); {help}"
        ));
    }
    let reasons: Vec<_> = events.into_iter().map(reason).collect();
    if !reasons.is_empty() {
        note(&format!("counted without call stacks: {}", reasons.join("; ")));
    }
    for unsampled in waits {
        let help = match unsampled.source.kind() {
            io::ErrorKind::PermissionDenied => "; as root, or:  sudo sysctl kernel.perf_event_paranoid=1",
            _ => "",
        };
        note(&format!("off-CPU time is not sampled: {}{help}", why(&unsampled.source)));
    }
}

fn reason(unsampled: &live::Unsampled) -> String {
    format!("{} ({})", shown(&unsampled.name), why(&unsampled.source))
}

fn why(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EINVAL | Errno::EOPNOTSUPP) => "it can't be sampled".into(),
        Some(Errno::ENOENT | Errno::ENODEV | Errno::ENXIO) => "this machine has no such event".into(),
        Some(Errno::EACCES | Errno::EPERM) => "not permitted".into(),
        _ => error.to_string(),
    }
}

/// The code of why nothing can be sampled; `None` of an error that is the counters'.
pub(super) fn code(error: &StackError) -> Option<ErrorCode> {
    match error {
        StackError::NoEvent(_) | StackError::NoLbr | StackError::NoUnwinding | StackError::Locked { .. } => {
            Some(ErrorCode::E14)
        }
        StackError::Open(_) => None,
    }
}

/// Why nothing can be sampled, and what to try.
pub(super) fn explain(f: &mut fmt::Formatter<'_>, error: &StackError, denied: Option<(Denial, bool)>) -> fmt::Result {
    match error {
        StackError::NoEvent(unsampled) => {
            let reasons: Vec<_> = unsampled.iter().map(reason).collect();
            write!(f, "no call stacks can be sampled: {}", reasons.join("; "))?;
            let is_forbidden = |event: &live::Unsampled| event.source.kind() == io::ErrorKind::PermissionDenied;
            match denied {
                Some((denial, works_alone)) => denied::what_helps(f, denial, works_alone),
                None if unsampled.iter().any(is_forbidden) => write!(f, "\n      as root, or:  {}", denied::setcap()),
                None => write!(f, "\n      what can be sampled everywhere:  -e cpu-clock"),
            }
        }
        StackError::NoLbr => {
            writeln!(f, "this processor keeps no record of calls (LBR): most virtual machines hide it")?;
            write!(f, "      use -g alone: it takes frame pointers, and copies of the stack where those are missing")
        }
        StackError::NoUnwinding => {
            writeln!(f, "stacks of this processor can't be unwound by unwind information")?;
            write!(f, "      use -g with programs that are built with frame pointers")
        }
        StackError::Locked { needed, limit_kb } => {
            let needed = needed.div_ceil(1024);
            let limit = limit_kb.map_or_else(String::new, |limit| format!("; perf_event_mlock_kb is {limit}"));
            writeln!(
                f,
                "ring buffers need {needed} KiB of locked memory at least, and this user may lock no more (EPERM{limit})"
            )?;
            let raised = limit_kb.unwrap_or(MLOCK_KB) * 2;
            write!(f, "      end other profilers of this user, or:  sudo sysctl kernel.perf_event_mlock_kb={raised}")
        }
        // Reported with the counters'.
        StackError::Open(_) => Ok(()),
    }
}
