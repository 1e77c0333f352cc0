//! Opens a sampled event in one place, and the events beside it: who tells of mappings, clocks, switches and wake-ups.

use std::io;

use nix::errno::Errno;
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, ReadFormat};

use super::copy_size::CopySize;
use super::record::{COMMON, SampleLayout, SamplePeriod, WAKEUP};
use super::registers::REGISTERS;
use super::request::{DEFAULT_FREQUENCY, MACHINE_FREQUENCY, StackError, StackRequest, Unsampled, rate};
use super::ring::Ring;
use super::tried::{NotHere, SampledTask, TriedPlaces, gone};
use crate::events::{Event, EventKind, Space, Unit, with_space};
use crate::host::HostFiles;
use crate::sources::perf::{CountedTarget, Placed, Start, TargetKind, encode, uninterrupted};
use crate::stacks::{OFF_CPU, Rate, SampledEvent, UnwindMethod};

/// The size of a ring buffer at least, in bytes; and of one that an unprivileged user may lock for each CPU.
pub(super) const SMALLEST_RING: usize = 64 << 10;
pub(super) const SMALL_RING: usize = 512 << 10;

/// `PERF_SAMPLE_BRANCH_USER`, `_CALL_STACK`.
const CALL_STACK: u64 = 1 << 0 | 1 << 11;

const TIMES: ReadFormat = ReadFormat::TOTAL_TIME_ENABLED.union(ReadFormat::TOTAL_TIME_RUNNING);

/// All events, opened with the same fields. Of several sets one samples at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct EventSet {
    pub(in crate::stacks::live) size: CopySize,
    pub(in crate::stacks::live) layout: SampleLayout,
}

impl EventSet {
    /// The sets for a way of unwinding, the one that begins first.
    pub(super) fn of(call_graph: UnwindMethod) -> Vec<Self> {
        let period = SamplePeriod::InSample;
        let of_size = |size: CopySize| match size {
            CopySize::None => Self { size, layout: SampleLayout { call_graph: UnwindMethod::Fp, period } },
            size => Self { size, layout: SampleLayout { call_graph: UnwindMethod::Dwarf(size.bytes()), period } },
        };
        match call_graph {
            UnwindMethod::Auto if REGISTERS != 0 => CopySize::ALL.map(of_size).into(),
            call_graph => vec![Self { size: CopySize::None, layout: SampleLayout { call_graph, period } }],
        }
    }

    /// The fields of an event's samples. The kernel samples each occurrence of what it counts itself where samples are
    /// to say their period, whatever that is; but its clocks are timers.
    pub(super) fn of_event(self, event: &Event, rate: Rate) -> Self {
        let is_clock = matches!(event.canonical.as_str(), "cpu-clock" | "task-clock");
        let is_counted_by_kernel = !is_clock && !takes_turns(event);
        match rate {
            Rate::Period(period) if period > 1 && is_counted_by_kernel => {
                Self { layout: SampleLayout { period: SamplePeriod::Fixed(period), ..self.layout }, ..self }
            }
            Rate::Period(_) | Rate::Frequency(_) => self,
        }
    }
}

/// An event as it is sampled.
pub(super) struct OpenedEvent {
    pub(super) event: Event,
    pub(super) rate: Rate,
    weighs: Weighs,
}

impl OpenedEvent {
    /// Takes the events that are the same to the kernel out of others: it gives the samples of both the number of one
    /// of them (seen on Linux 6.18, with perf as well).
    pub(super) fn take_from(&self, others: &mut Vec<Self>) -> Vec<Unsampled> {
        let is_same = |other: &mut Self| other.event.encoding == self.event.encoding;
        let reason = |same: Self| {
            let source =
                io::Error::other(format!("{OFF_CPU} has the stack of each, and the kernel can't tell the two apart"));
            Unsampled { name: same.event.name, source }
        };
        others.extract_if(.., is_same).map(reason).collect()
    }
}

/// What the weight of an event's samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weighs {
    /// How often it happened.
    Occurrences,
    /// How long the thread was on no CPU then.
    TimeOffCpu,
}

impl OpenedEvent {
    pub(super) fn described(&self) -> SampledEvent {
        let (name, unit) = match self.weighs {
            Weighs::Occurrences => (self.event.name.clone(), self.event.unit.clone()),
            Weighs::TimeOffCpu => (OFF_CPU.to_owned(), Unit::Nanoseconds),
        };
        SampledEvent { name, unit, rate: self.rate }
    }

    /// Whether it needs one of the processor's counters.
    pub(super) fn takes_turns(&self) -> bool {
        takes_turns(&self.event)
    }
}

fn takes_turns(event: &Event) -> bool {
    match event.kind {
        EventKind::Hardware | EventKind::Cache | EventKind::Raw | EventKind::Pmu => true,
        EventKind::Software
        | EventKind::Tracepoint
        | EventKind::Probe
        | EventKind::Breakpoint
        | EventKind::Modelled
        | EventKind::Tool => false,
    }
}

/// Opens an event in one place, as a way of unwinding needs it.
pub(super) struct Opener<'a> {
    pub(super) call_graph: UnwindMethod,
    pub(super) sets: Vec<EventSet>,
    pub(super) target: &'a CountedTarget,
    pub(super) reports_switches: bool,
}

impl Opener<'_> {
    /// The events that can be sampled, found by opening each in one place.
    pub(super) fn choose(
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
    pub(super) fn switches(&self, event: &Event, tried: TriedPlaces<'_>) -> io::Result<OpenedEvent> {
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
    pub(super) fn ring(&self, teller: Counter, subject: &SampledTask, cpu: u32, size: usize) -> io::Result<Ring> {
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
    pub(super) fn teller(&self, subject: &SampledTask, cpu: u32, ring: usize) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.enabled(true).mmap(true).mmap2(true).comm(true).comm_exec(true).task(true);
        builder.context_switch(self.reports_switches);
        builder.attrs_mut().sample_type = COMMON;
        self.build(&mut builder, (subject, cpu), ring, true)
    }

    pub(super) fn event(
        &self,
        event: &Event,
        rate: Rate,
        set: EventSet,
        (subject, cpu): (&SampledTask, u32),
    ) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        let placed = Placed::new(event, &mut builder, &self.target.probes)?;
        // The clock goes on where nothing runs; hardware counters that stand still there needn't be able to leave it
        // out.
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
        builder.attrs_mut().sample_type = set.of_event(event, rate).layout.sample_type();
        builder.read_format(TIMES);
        let is_first = self.sets.first() == Some(&set);
        builder.enabled(false).enable_on_exec(is_first && self.target.start == Start::OnExec);
        self.build(&mut builder, (subject, cpu), SMALLEST_RING, placed.can_be_inherited())
    }

    /// The event that runs while the task is on the CPU, from when the sampled events are enabled.
    pub(super) fn clock(&self, subject: &SampledTask, cpu: u32) -> io::Result<Counter> {
        let mut builder = Builder::new(Software::DUMMY);
        builder.read_format(TIMES).enabled(false).enable_on_exec(self.target.start == Start::OnExec);
        self.build(&mut builder, (subject, cpu), SMALLEST_RING, true)
    }

    /// The event of wake-ups on a CPU.
    pub(super) fn wakeups(&self, event: &Event, cpu: u32) -> io::Result<Counter> {
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
        uninterrupted(|| builder.build())
    }
}

/// Whether a ring buffer is larger than what a user may lock, or than what is left of memory.
fn is_short_of_memory(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::EPERM | Errno::ENOMEM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::software_event;

    #[test]
    fn an_event_that_is_the_same_to_the_kernel_leaves_the_others() {
        let opened = |name: &str, config: u64| {
            let mut event = software_event(name);
            event.encoding.config = config;
            OpenedEvent { event, rate: Rate::Period(1), weighs: Weighs::Occurrences }
        };
        let switches = OpenedEvent { weighs: Weighs::TimeOffCpu, ..opened("context-switches", 3) };
        let mut others = vec![opened("task-clock", 1), opened("cs", 3)];
        let left = switches.take_from(&mut others);
        assert_eq!(left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["cs"]);
        assert!(others.len() == 1 && switches.take_from(&mut others).is_empty());
    }
}
