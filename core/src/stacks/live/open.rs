//! Opens the events to sample, with a ring buffer for each CPU.
//!
//! Every CPU has one ring buffer, because the kernel refuses one for an inherited event that isn't bound
//! to a CPU. It belongs to an event that counts nothing and reports mappings, names and tasks from the
//! moment it is opened; the sampled events of that CPU write into it, too.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::Pid;
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, ReadFormat};
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::{OFF_CPU, Rate, SampledEvent, SamplingSetup, UnwindMethod};
use super::copies::CopySize;
use super::record::{COMMON, SampleLayout, WAKEUP};
use super::ring::Ring;
use super::unwind::REGISTERS;
use crate::events::{Event, EventKind, Space, Unit, with_space};
use crate::host::HostFiles;
use crate::sources::perf::{
    CountedTarget, OpenError, Placed, Start, TargetKind, anew_while_others_start, each_thread, encode,
};
use crate::sources::{command, process};

/// Bytes of all ring buffers together, where the kernel allows it; and of one.
const ALL_RINGS: usize = 64 << 20;
const SMALLEST_RING: usize = 64 << 10;
const SMALL_RING: usize = 512 << 10;

/// `PERF_SAMPLE_BRANCH_USER`, `_CALL_STACK`.
const CALL_STACK: u64 = 1 << 0 | 1 << 11;

/// The namespace whose numbers of threads tracepoints give (`PROC_PID_INIT_INO`); samples give those of the own one.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

const TIMES: ReadFormat = ReadFormat::TOTAL_TIME_ENABLED.union(ReadFormat::TOTAL_TIME_RUNNING);

/// Events to sample, and how.
#[derive(Clone, Debug)]
pub struct StackRequest {
    /// The events; those that can't be sampled are left out.
    pub events: Vec<Event>,
    /// How often; the default is [`DEFAULT_FREQUENCY`], of the whole machine [`MACHINE_FREQUENCY`], and every one of a tracepoint
    /// or probe.
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

/// How often an event is sampled where nobody says it: as perf does.
pub const DEFAULT_FREQUENCY: u64 = 4000;

/// How often an event of the whole machine, of which every CPU is sampled, is sampled where nobody says it: a quarter, and not in step with the kernel's timers.
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

/// The open events.
pub(super) struct OpenEvents {
    pub(super) rings: Vec<Ring>,
    /// All sampled events, in every place, with the set that each is of.
    pub(super) counters: Vec<SampledCounter>,
    /// The clocks of places where the events' own times don't tell whether they take turns.
    pub(super) clocks: Vec<Counter>,
    /// The events that own no ring buffer and report mappings.
    pub(super) tellers: Vec<Counter>,
    /// The event of each identifier.
    pub(super) events: FxHashMap<u64, SampledAs>,
    pub(super) sampled: SamplingSetup,
    pub(super) unsampled: Vec<Unsampled>,
    /// The processes that run already.
    pub(super) running: Vec<Pid>,
    /// The place of time on no CPU among the sampled events, where it is one of them.
    pub(super) off_cpu: Option<u32>,
    pub(super) wakeups: OpenWakeups,
}

/// The events of wake-ups that are open; none by default.
#[derive(Default)]
pub(super) struct OpenWakeups {
    /// Their identifiers.
    pub(super) ids: FxHashSet<u64>,
    /// Where their records have the thread.
    pub(super) tid_at: usize,
}

/// An open event in one place.
pub(super) struct SampledCounter {
    pub(super) size: CopySize,
    /// Its place in [`SamplingSetup::events`].
    pub(super) event: u32,
    pub(super) turns: TurnTimes,
    pub(super) counter: Counter,
}

/// What tells for how long an event was off the processor's counters, which others may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnTimes {
    /// It needs none of them.
    Never,
    /// Its own times.
    OwnTimes,
    /// The clock of this number, which runs while the task is on the CPU: the event is enabled while the task is on others, too.
    Clock(usize),
}

/// What a sample is of, and which fields it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SampledAs {
    /// Its place in [`SamplingSetup::events`].
    pub(super) event: u32,
    pub(super) set: EventSet,
}

/// All events, opened with the same fields. Of several sets one samples at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventSet {
    pub(super) size: CopySize,
    pub(super) layout: SampleLayout,
}

impl EventSet {
    /// The sets for a way of unwinding, the one that begins first.
    fn of(call_graph: UnwindMethod) -> Vec<Self> {
        let of_size = |size: CopySize| match size {
            CopySize::None => Self { size, layout: SampleLayout { call_graph: UnwindMethod::Fp } },
            size => Self { size, layout: SampleLayout { call_graph: UnwindMethod::Dwarf(size.bytes()) } },
        };
        match call_graph {
            UnwindMethod::Auto if REGISTERS != 0 => CopySize::ALL.map(of_size).into(),
            call_graph => vec![Self { size: CopySize::None, layout: SampleLayout { call_graph } }],
        }
    }
}

/// Opens what can be sampled.
pub(super) fn open(wanted: &StackRequest, target: &CountedTarget) -> Result<OpenEvents, StackError> {
    if matches!(wanted.call_graph, UnwindMethod::Dwarf(_)) && REGISTERS == 0 {
        return Err(StackError::NoUnwinding);
    }
    let cpus = match &target.cpus {
        Some(cpus) => cpus.clone(),
        None => HostFiles::here().online_cpus().map_err(OpenError::System)?,
    };
    let subjects = SampledTask::all(target)?;
    let reports_switches = wanted.off_cpu.is_some();
    let opener =
        Opener { call_graph: wanted.call_graph, sets: EventSet::of(wanted.call_graph), target, reports_switches };
    let tried = TriedPlaces { subjects: &subjects, cpus: &cpus };
    let (mut chosen, mut unsampled) = opener.choose(wanted, tried)?;
    let off_cpu = wanted.off_cpu.as_ref().and_then(|event| match opener.switches(event, tried) {
        Ok(opened) => {
            chosen.push(opened);
            u32::try_from(chosen.len() - 1).ok()
        }
        Err(source) => {
            unsampled.push(Unsampled { name: OFF_CPU.into(), source });
            None
        }
    });
    let mut places = Places::new(opener, chosen, &cpus);
    if let Err(error) = places.attach(&subjects) {
        if matches!(error, StackError::Open(OpenError::Stopped(_))) {
            // Closing takes as long as opening did; where nobody else can do it, leaving takes that long.
            let _ = command::leave_closing_to_a_child();
        }
        return Err(error);
    }
    let running = match &target.kind {
        TargetKind::Processes(pids) => pids.clone(),
        TargetKind::Command(_) | TargetKind::Threads(_) | TargetKind::Everyone | TargetKind::Cgroup(_) => Vec::new(),
    };
    let wakeups = match off_cpu.map(|_| places.open_wakeups(wanted.wakeups.as_ref())) {
        Some(Ok(wakeups)) => wakeups,
        Some(Err(source)) => {
            unsampled.push(Unsampled { name: WAKEUPS.into(), source });
            OpenWakeups::default()
        }
        None => OpenWakeups::default(),
    };
    Ok(OpenEvents { off_cpu, wakeups, ..places.opened(unsampled, running) })
}

/// Task or CPU whose work one event samples.
enum SampledTask {
    Task(Pid),
    Anyone,
    Cgroup(File),
}

impl SampledTask {
    /// All tasks of the target, without processes that are gone, unless all are.
    fn all(target: &CountedTarget) -> Result<Vec<Self>, OpenError> {
        let tasks = match &target.kind {
            TargetKind::Everyone => return Ok(vec![Self::Anyone]),
            TargetKind::Cgroup(cgroup) => {
                return Ok(vec![Self::Cgroup(File::open(&cgroup.path).map_err(OpenError::System)?)]);
            }
            TargetKind::Command(pid) => vec![*pid],
            TargetKind::Threads(threads) => threads.clone(),
            TargetKind::Processes(pids) => {
                pids.iter().flat_map(|&pid| process::threads(pid).unwrap_or_default()).collect()
            }
        };
        if tasks.is_empty() { Err(gone(target)) } else { Ok(tasks.into_iter().map(Self::Task).collect()) }
    }
}

/// All of a target is gone.
fn gone(target: &CountedTarget) -> OpenError {
    match &target.kind {
        TargetKind::Threads(threads) => threads.first().map(|&thread| OpenError::NoThread(thread)),
        TargetKind::Processes(pids) => pids.first().map(|&pid| OpenError::NoProcess(pid)),
        TargetKind::Command(pid) => Some(OpenError::NoProcess(*pid)),
        TargetKind::Everyone | TargetKind::Cgroup(_) => None,
    }
    .unwrap_or(OpenError::System(Errno::ESRCH.into()))
}

/// The places where events are tried, one after the other.
#[derive(Clone, Copy)]
struct TriedPlaces<'a> {
    subjects: &'a [SampledTask],
    cpus: &'a [u32],
}

impl TriedPlaces<'_> {
    /// What the first place answers of which the task is still there and the CPU has the event's PMU.
    fn first(self, open: impl Fn(&SampledTask, u32) -> io::Result<()>) -> io::Result<()> {
        let mut answer = Err(Errno::ESRCH.into());
        for subject in self.subjects {
            for &cpu in self.cpus {
                answer = open(subject, cpu);
                match answer.as_ref().map_err(NotHere::of) {
                    Err(Some(NotHere::Pmu)) => {}
                    Err(Some(NotHere::Task)) => break,
                    Ok(()) | Err(None) => return answer,
                }
            }
            if !matches!(answer.as_ref().map_err(NotHere::of), Err(Some(NotHere::Task))) {
                break;
            }
        }
        answer
    }
}

/// Why an event can't be opened in one place, but maybe in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NotHere {
    /// The task has ended.
    Task,
    /// The CPU isn't of the kind that has the event's PMU.
    Pmu,
}

impl NotHere {
    fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::ESRCH) => Some(Self::Task),
            Some(Errno::ENOENT | Errno::ENODEV) => Some(Self::Pmu),
            _ => None,
        }
    }
}

/// Whether a ring buffer is larger than what a user may lock, or than what is left of memory.
fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EPERM | Errno::ENOMEM))
}

/// The event, unless it can't be opened in this place alone.
fn here(built: io::Result<Counter>) -> io::Result<Option<Counter>> {
    match built {
        Err(error) if NotHere::of(&error).is_none() => Err(error),
        built => Ok(built.ok()),
    }
}

/// An event as it is sampled.
struct OpenedEvent {
    event: Event,
    rate: Rate,
    weighs: Weighs,
}

/// What the weight of an event's samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weighs {
    /// How often it happened.
    Occurrences,
    /// How long the thread was on no CPU then.
    TimeOffCpu,
}

impl OpenedEvent {
    fn described(&self) -> SampledEvent {
        let (name, unit) = match self.weighs {
            Weighs::Occurrences => (self.event.name.clone(), self.event.unit.clone()),
            Weighs::TimeOffCpu => (OFF_CPU.to_owned(), Unit::Nanoseconds),
        };
        SampledEvent { name, unit, rate: self.rate }
    }

    /// Whether it needs one of the processor's counters.
    fn takes_turns(&self) -> bool {
        match self.event.kind {
            EventKind::Hardware | EventKind::Cache | EventKind::Raw | EventKind::Pmu => true,
            EventKind::Software
            | EventKind::Tracepoint
            | EventKind::Probe
            | EventKind::Breakpoint
            | EventKind::Modelled
            | EventKind::Tool => false,
        }
    }
}

struct Opener<'a> {
    call_graph: UnwindMethod,
    sets: Vec<EventSet>,
    target: &'a CountedTarget,
    reports_switches: bool,
}

impl Opener<'_> {
    /// The events that can be sampled, found by opening each in one place.
    fn choose(
        &self,
        wanted: &StackRequest,
        tried: TriedPlaces<'_>,
    ) -> Result<(Vec<OpenedEvent>, Vec<Unsampled>), StackError> {
        let (mut chosen, mut unsampled) = (Vec::new(), Vec::new());
        for event in &wanted.events {
            let rate = self.rate(wanted.rate, event);
            match self.try_event(event, rate, tried) {
                Ok(event) => chosen.push(OpenedEvent { event, rate, weighs: Weighs::Occurrences }),
                Err(source) => unsampled.push(Unsampled { name: event.name.clone(), source }),
            }
        }
        if !chosen.is_empty() {
            return Ok((chosen, unsampled));
        }
        if unsampled.iter().any(|one: &Unsampled| NotHere::of(&one.source) == Some(NotHere::Task)) {
            return Err(gone(self.target).into());
        }
        let call_graph = UnwindMethod::Fp;
        let sets = EventSet::of(call_graph);
        let without = Opener { call_graph, sets, target: self.target, reports_switches: false };
        let opens = |event| without.try_event(event, self.rate(wanted.rate, event), tried).is_ok();
        let is_lbr = wanted.call_graph == UnwindMethod::Lbr;
        Err(if is_lbr && (wanted.events.iter().any(opens) || !HostFiles::here().has_lbr()) {
            StackError::NoLbr
        } else {
            StackError::NoEvent(unsampled)
        })
    }

    fn rate(&self, asked: Option<Rate>, event: &Event) -> Rate {
        let is_machine = matches!(self.target.kind, TargetKind::Everyone);
        rate(asked, event, if is_machine { MACHINE_FREQUENCY } else { DEFAULT_FREQUENCY })
    }

    /// The event of switches, each of which is sampled. In user space alone there are none.
    fn switches(&self, event: &Event, tried: TriedPlaces<'_>) -> io::Result<OpenedEvent> {
        let opened = self.try_event(event, Rate::Period(1), tried)?;
        if opened.modifiers.exclude_kernel {
            return Err(Errno::EACCES.into());
        }
        Ok(OpenedEvent { event: opened, rate: Rate::Period(1), weighs: Weighs::TimeOffCpu })
    }

    /// The event as the kernel lets it be sampled: in user space only where it allows no more.
    fn try_event(&self, event: &Event, rate: Rate, tried: TriedPlaces<'_>) -> io::Result<Event> {
        if let Some(reason) = event.unavailable() {
            return Err(io::Error::other(reason));
        }
        let opened = |event: &Event| {
            tried.first(|subject, cpu| {
                let mut sets = self.sets.iter();
                sets.try_for_each(|set| self.event(event, rate, *set, (subject, cpu)).map(drop))
            })
        };
        match opened(event) {
            Ok(()) => Ok(event.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let narrowed = event.in_user_space_only().ok_or(error)?;
                opened(&narrowed)?;
                Ok(Event { name: with_space(&narrowed.name, Space::User), ..narrowed })
            }
            Err(error) => Err(error),
        }
    }

    /// A ring buffer as large as the kernel lets it be, with the event that it belongs to.
    fn ring(&self, teller: Counter, subject: &SampledTask, cpu: u32, size: usize) -> io::Result<Ring> {
        let mut teller = Ok(teller);
        let mut size = size;
        loop {
            match Ring::new(teller?, size) {
                Err(error) if is_short_of_memory(&error) && size > SMALLEST_RING => {
                    // What an unprivileged user may lock is counted in this size for each CPU.
                    size = if size > SMALL_RING { SMALL_RING } else { size / 2 };
                    teller = self.teller(subject, cpu, size);
                }
                other => return other,
            }
        }
    }

    /// The event that reports mappings, names and tasks.
    fn teller(&self, subject: &SampledTask, cpu: u32, ring: usize) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.enabled(true).mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
        builder.context_switch(self.reports_switches);
        builder.attrs_mut().sample_type = COMMON;
        self.build(&mut builder, (subject, cpu), ring, true)
    }

    fn event(
        &self,
        event: &Event,
        rate: Rate,
        set: EventSet,
        (subject, cpu): (&SampledTask, u32),
    ) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        let placed = Placed::new(event, &mut builder, &self.target.probes)?;
        // The clock goes on where nothing runs; hardware counters that stand still there needn't be able to leave it out.
        if matches!(subject, SampledTask::Anyone) && event.canonical == "cpu-clock" {
            builder.exclude_idle(true);
        }
        match rate {
            Rate::Frequency(hz) => builder.sample_frequency(hz),
            Rate::Period(period) => builder.sample_period(period),
        };
        match set.layout.call_graph {
            UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Modelled => {}
            UnwindMethod::Dwarf(bytes) => {
                // The copy stands in for the chain, unless it is to be chosen between the two.
                builder.exclude_callchain_user(self.call_graph != UnwindMethod::Auto);
                builder.sample_regs_user(REGISTERS).sample_stack_user(bytes);
            }
            UnwindMethod::Lbr => {
                builder.exclude_callchain_user(true);
                builder.attrs_mut().branch_sample_type = CALL_STACK;
            }
        }
        builder.attrs_mut().sample_type = set.layout.sample_type();
        builder.read_format(TIMES);
        let is_first = self.sets.first() == Some(&set);
        builder.enabled(false).enable_on_exec(is_first && self.target.start == Start::OnExec);
        self.build(&mut builder, (subject, cpu), SMALLEST_RING, placed.can_be_inherited())
    }

    /// The event that runs while the task is on the CPU, from when the sampled events are enabled.
    fn clock(&self, subject: &SampledTask, cpu: u32) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.read_format(TIMES).enabled(false).enable_on_exec(self.target.start == Start::OnExec);
        self.build(&mut builder, (subject, cpu), SMALLEST_RING, true)
    }

    /// The event of wake-ups on a CPU.
    fn wakeups(&self, event: &Event, cpu: u32) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        encode(event, &mut builder);
        builder.sample_period(1).enabled(true);
        builder.attrs_mut().sample_type = WAKEUP;
        self.build(&mut builder, (&SampledTask::Anyone, cpu), SMALLEST_RING, true)
    }

    fn build<'b>(
        &self,
        builder: &mut Builder<'b>,
        (subject, cpu): (&'b SampledTask, u32),
        ring: usize,
        can_be_inherited: bool,
    ) -> io::Result<Counter> {
        let inherit = self.target.inherit && can_be_inherited;
        match subject {
            SampledTask::Task(task) => builder.observe_pid(task.as_raw()).inherit(inherit),
            SampledTask::Anyone => builder.any_pid(),
            SampledTask::Cgroup(folder) => builder.observe_cgroup(folder),
        };
        builder.one_cpu(usize::try_from(cpu).unwrap_or(usize::MAX));
        builder.sample_id_all(true).clockid(Clock::MONOTONIC).wakeup_watermark(ring / 4);
        builder.build()
    }
}

/// The CPUs, with what is open on each.
struct Places<'a> {
    opener: Opener<'a>,
    chosen: Vec<OpenedEvent>,
    /// The ring buffer of a CPU is there once something is open on it.
    rings: Vec<(u32, Option<Ring>)>,
    counters: Vec<SampledCounter>,
    clocks: Vec<Counter>,
    tellers: Vec<Counter>,
    events: FxHashMap<u64, SampledAs>,
}

impl<'a> Places<'a> {
    fn new(opener: Opener<'a>, chosen: Vec<OpenedEvent>, cpus: &[u32]) -> Self {
        let rings = cpus.iter().map(|&cpu| (cpu, None)).collect();
        let (counters, clocks, tellers) = (Vec::new(), Vec::new(), Vec::new());
        Self { opener, chosen, rings, counters, clocks, tellers, events: FxHashMap::default() }
    }

    /// Opens the events of all tasks.
    fn attach(&mut self, subjects: &[SampledTask]) -> Result<(), StackError> {
        let CountedTarget { kind, inherit, .. } = self.opener.target;
        let TargetKind::Processes(pids) = kind else {
            return subjects.iter().try_for_each(|subject| self.open(subject).map(drop));
        };
        anew_while_others_start(*inherit, Instant::now(), || {
            self.close();
            pids.iter().try_for_each(|&pid| {
                each_thread(pid, *inherit, |thread| self.open(&SampledTask::Task(thread))).map(drop)
            })
        })
    }

    fn close(&mut self) {
        self.counters.clear();
        self.clocks.clear();
        self.tellers.clear();
        self.events.clear();
        self.rings.iter_mut().for_each(|(_, ring)| *ring = None);
    }

    /// Opens the events of a subject on every CPU; says whether it is still there.
    fn open(&mut self, subject: &SampledTask) -> Result<bool, StackError> {
        for place in 0..self.rings.len() {
            self.opener.target.stop.asked().map_or(Ok(()), |signal| Err(OpenError::Stopped(signal)))?;
            if !self.open_in(place, subject).map_err(|error| self.explained(error))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn open_in(&mut self, place: usize, subject: &SampledTask) -> io::Result<bool> {
        let (opener, size) = (&self.opener, ring_size(self.rings.len(), self.opener.call_graph));
        let (cpu, ring) = &mut self.rings[place];
        let teller = match opener.teller(subject, *cpu, size) {
            Err(error) if NotHere::of(&error) == Some(NotHere::Task) => return Ok(false),
            teller => teller?,
        };
        let ring = match ring {
            Some(ring) => {
                ring.join(&teller)?;
                self.tellers.push(teller);
                ring
            }
            none => none.insert(opener.ring(teller, subject, *cpu, size)?),
        };
        let needs_clock = matches!(subject, SampledTask::Task(_)) && self.chosen.iter().any(OpenedEvent::takes_turns);
        let clock = if needs_clock { here(opener.clock(subject, *cpu))? } else { None };
        let turns = if clock.is_some() { TurnTimes::Clock(self.clocks.len()) } else { TurnTimes::OwnTimes };
        self.clocks.extend(clock);
        for (index, chosen) in (0..).zip(&self.chosen) {
            for &set in &opener.sets {
                let Some(counter) = here(opener.event(&chosen.event, chosen.rate, set, (subject, *cpu)))? else {
                    continue;
                };
                ring.join(&counter)?;
                self.events.insert(counter.id(), SampledAs { event: index, set });
                let turns = if chosen.takes_turns() { turns } else { TurnTimes::Never };
                self.counters.push(SampledCounter { size: set.size, event: index, turns, counter });
            }
        }
        Ok(true)
    }

    /// Opens the event of wake-ups on every CPU, of all that runs there.
    fn open_wakeups(&mut self, wakeups: Option<&WakeupEvent>) -> io::Result<OpenWakeups> {
        let WakeupEvent { event, tid_at } = wakeups.ok_or(Errno::ENOENT)?;
        if !fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace == Path::new(FIRST_NAMESPACE)) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "threads have other numbers in this namespace"));
        }
        let mut opened = Vec::new();
        for (cpu, ring) in &self.rings {
            let Some(ring) = ring else { continue };
            let counter = self.opener.wakeups(event, *cpu)?;
            ring.join(&counter)?;
            opened.push(counter);
        }
        let ids = opened.iter().map(Counter::id).collect();
        self.tellers.extend(opened);
        Ok(OpenWakeups { ids, tid_at: *tid_at })
    }

    /// What the kernel's answer means.
    fn explained(&self, error: io::Error) -> StackError {
        let cpus = self.rings.len();
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPERM) => StackError::Locked {
                needed: (SMALLEST_RING as u64 + 4096) * cpus as u64,
                limit_kb: setting("perf_event_mlock_kb"),
            },
            Some(Errno::EMFILE) => {
                let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft);
                let events = self.chosen.len() * self.opener.sets.len() + 1 + usize::from(!self.clocks.is_empty());
                let open = self.counters.len() + self.clocks.len() + self.tellers.len();
                let places = open / events + cpus;
                StackError::Open(OpenError::TooManyFiles { events, places, needed: events * places, limit })
            }
            _ => StackError::Open(OpenError::System(error)),
        }
    }

    fn opened(self, unsampled: Vec<Unsampled>, running: Vec<Pid>) -> OpenEvents {
        let Self { opener, chosen, rings, counters, clocks, tellers, events } = self;
        let call_graph = opener.call_graph;
        let sampled = SamplingSetup { events: chosen.iter().map(OpenedEvent::described).collect(), call_graph };
        let rings = rings.into_iter().filter_map(|(_, ring)| ring).collect();
        OpenEvents {
            rings,
            counters,
            clocks,
            tellers,
            events,
            sampled,
            unsampled,
            running,
            off_cpu: None,
            wakeups: OpenWakeups::default(),
        }
    }
}

/// How often an event is sampled: no more often than the kernel allows.
fn rate(asked: Option<Rate>, event: &Event, frequency: u64) -> Rate {
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

fn setting(name: &str) -> Option<u64> {
    HostFiles::here().setting(name)?.try_into().ok()
}

/// A copy of the stack takes thirty times the room of a call chain.
fn ring_size(cpus: usize, call_graph: UnwindMethod) -> usize {
    let most = match call_graph {
        UnwindMethod::Dwarf(_) | UnwindMethod::Auto => 16 << 20,
        UnwindMethod::Fp | UnwindMethod::Lbr | UnwindMethod::Modelled => 2 << 20,
    };
    let share = (ALL_RINGS / cpus.max(1)).clamp(SMALL_RING, most);
    1 << share.ilog2()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn events_are_tried_where_their_task_is_still_there_and_their_pmu_is() {
        let subjects = [1, 2].map(|task| SampledTask::Task(Pid::from_raw(task)));
        let tried = TriedPlaces { subjects: &subjects, cpus: &[0, 1, 2] };
        let first = |answers: &[Errno]| {
            let (answers, places) = (RefCell::new(answers.iter()), RefCell::new(Vec::new()));
            let answer = tried.first(|subject, cpu| {
                let SampledTask::Task(task) = subject else { return Ok(()) };
                places.borrow_mut().push((task.as_raw(), cpu));
                answers.borrow_mut().next().map_or(Ok(()), |&error| Err(error.into()))
            });
            (answer.err().and_then(|error| error.raw_os_error()).map(Errno::from_raw), places.into_inner())
        };
        let (gone, absent) = (Errno::ESRCH, Errno::ENOENT);
        assert_eq!(first(&[gone, absent]), (None, vec![(1, 0), (2, 0), (2, 1)]));
        assert_eq!(first(&[gone, gone]), (Some(gone), vec![(1, 0), (2, 0)]));
        assert_eq!(first(&[absent; 9]), (Some(absent), vec![(1, 0), (1, 1), (1, 2)]));
        assert_eq!(first(&[Errno::EACCES]), (Some(Errno::EACCES), vec![(1, 0)]));
    }

    #[test]
    fn rings_share_memory_and_are_powers_of_two() {
        assert_eq!(ring_size(2, UnwindMethod::Fp), 2 << 20);
        assert_eq!(ring_size(2, UnwindMethod::Dwarf(8192)), 16 << 20);
        assert_eq!(ring_size(128, UnwindMethod::Dwarf(8192)), 512 << 10);
        assert_eq!(ring_size(6, UnwindMethod::Dwarf(8192)), 8 << 20);
        assert_eq!(ring_size(0, UnwindMethod::Fp), 2 << 20);
        assert_eq!(ring_size(2, UnwindMethod::Auto), 16 << 20);
    }
}
