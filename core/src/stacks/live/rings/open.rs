//! Opens the events to sample, with a ring buffer for each CPU.
//!
//! Every CPU has one ring buffer, because the kernel refuses one for an inherited event that isn't bound
//! to a CPU. It belongs to an event that counts nothing and reports mappings, names and tasks from the
//! moment it is opened; the sampled events of that CPU write into it, too.

use std::io;
use std::time::Instant;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::Pid;
use perf_event::Counter;
use rustc_hash::{FxHashMap, FxHashSet};

use super::copy_size::CopySize;
use super::opener::{EventSet, OpenedEvent, Opener, SMALL_RING, SMALLEST_RING};
use super::registers::REGISTERS;
use super::request::{StackError, StackRequest, Unsampled, WAKEUPS, WakeupEvent, setting};
use super::ring::Ring;
use super::tried::{NotHere, SampledTask, TriedPlaces, here};
use crate::host::{HostFiles, page_size};
use crate::sources::command;
use crate::sources::perf::{CountedTarget, OpenError, TargetKind, anew_while_others_start, each_thread};
use crate::stacks::live::namespaces;
use crate::stacks::{OFF_CPU, SamplingSetup, UnwindMethod};

/// Bytes of all ring buffers together, where the kernel allows it.
const ALL_RINGS: usize = 64 << 20;

/// The open events.
pub(in crate::stacks::live) struct OpenEvents {
    pub(in crate::stacks::live) rings: Vec<Ring>,
    /// All sampled events, in every place, with the set that each is of.
    pub(in crate::stacks::live) counters: Vec<SampledCounter>,
    /// The clocks of places where the events' own times don't tell whether they take turns.
    pub(in crate::stacks::live) clocks: Vec<Counter>,
    /// The events that own no ring buffer and report mappings.
    pub(in crate::stacks::live) tellers: Vec<Counter>,
    /// The event of each identifier.
    pub(in crate::stacks::live) events: FxHashMap<u64, SampledAs>,
    pub(in crate::stacks::live) sampled: SamplingSetup,
    pub(in crate::stacks::live) unsampled: Vec<Unsampled>,
    /// The processes that run already.
    pub(in crate::stacks::live) running: Vec<Pid>,
    /// The place of time on no CPU among the sampled events, where it is one of them.
    pub(in crate::stacks::live) off_cpu: Option<u32>,
    pub(in crate::stacks::live) wakeups: OpenWakeups,
}

/// The events of wake-ups that are open; none by default.
#[derive(Default)]
pub(in crate::stacks::live) struct OpenWakeups {
    /// Their identifiers.
    pub(in crate::stacks::live) ids: FxHashSet<u64>,
    /// Where their records have the thread.
    pub(in crate::stacks::live) tid_at: usize,
}

/// An open event in one place.
pub(in crate::stacks::live) struct SampledCounter {
    pub(in crate::stacks::live) size: CopySize,
    /// Its place in [`SamplingSetup::events`].
    pub(super) event: u32,
    pub(super) turns: TurnTimes,
    pub(in crate::stacks::live) counter: Counter,
}

/// What tells for how long an event was off the processor's counters, which others may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnTimes {
    /// It needs none of them.
    Never,
    /// Its own times.
    OwnTimes,
    /// The clock of this number, which runs while the task is on the CPU: the event is enabled while the task is on
    /// others, too.
    Clock(usize),
}

/// What a sample is of, and which fields it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) struct SampledAs {
    /// Its place in [`SamplingSetup::events`].
    pub(in crate::stacks::live) event: u32,
    pub(in crate::stacks::live) set: EventSet,
}

/// Opens what can be sampled.
pub(in crate::stacks::live) fn open(wanted: &StackRequest, target: &CountedTarget) -> Result<OpenEvents, StackError> {
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
            unsampled.extend(opened.take_from(&mut chosen));
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
                self.events
                    .insert(counter.id(), SampledAs { event: index, set: set.of_event(&chosen.event, chosen.rate) });
                let turns = if chosen.takes_turns() { turns } else { TurnTimes::Never };
                self.counters.push(SampledCounter { size: set.size, event: index, turns, counter });
            }
        }
        Ok(true)
    }

    /// Opens the event of wake-ups on every CPU, of all that runs there.
    fn open_wakeups(&mut self, wakeups: Option<&WakeupEvent>) -> io::Result<OpenWakeups> {
        let WakeupEvent { event, tid_at } = wakeups.ok_or(Errno::ENOENT)?;
        // Tracepoints give the numbers of the first namespace, samples those of the own one.
        if !namespaces::sees_all_processes() {
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
                needed: (SMALLEST_RING as u64 + page_size()) * cpus as u64,
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
    use super::*;

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
