//! Turns the kernel's records into samples, and numbers the paths of their stacks.

use rustc_hash::FxHashMap;

use super::off_cpu::OffCpu;
use super::raw_batch::{RawSample, StackFaults};
use super::wakers::Wakers;
use crate::host::HostFiles;
use crate::stacks::end::StackEnd;
use crate::stacks::live::mapped::{Module, ModuleId, SeenAddresses};
use crate::stacks::live::rings::{
    ChainEntry, CopySize, DecodedRecord, Malformed, OpenWakeups, RecordKind, SampleLayout, SamplePeriod, SampleRecord,
    SampledAs, Tasks,
};
use crate::stacks::live::unwinding::{
    AutoStacks, CodeLocation, Completeness, FoundStack, KeptPath, LocationId, SampledCode,
};
use crate::stacks::{Losses, UnwindMethod};
use crate::units::WallNs;

/// Turns records into samples.
pub(super) struct RecordReader {
    events: FxHashMap<u64, SampledAs>,
    call_graph: UnwindMethod,
    /// Where stacks are found in this way or that.
    pub(super) auto: Option<AutoStacks>,
    /// Where threads are sampled as they leave their CPUs.
    pub(super) off_cpu: Option<OffCpu>,
    pub(super) wakeups: OpenWakeups,
    pub(super) wakers: Wakers,
    /// The time of the kernel's clock that samples count from.
    pub(super) origin: u64,
    pub(super) code: SampledCode,
    kernel: ModuleId,
    /// Kernel addresses that were looked up before.
    known_kernel: FxHashMap<u64, LocationId>,
    pub(super) samples: Vec<RawSample>,
    pub(super) losses: Losses,
    /// The locations of the sample that is being read, the innermost first; and user addresses.
    locations: Vec<LocationId>,
    addresses: Vec<u64>,
    /// The longest call chain that the kernel gives.
    most_frames: usize,
    own_pid: u32,
}

impl RecordReader {
    pub(super) fn new(events: FxHashMap<u64, SampledAs>, call_graph: UnwindMethod) -> Self {
        let mut code = SampledCode::new();
        let kernel = code.processes.modules.number(Module::Kernel, &SeenAddresses::default());
        Self {
            events,
            call_graph,
            auto: None,
            off_cpu: None,
            wakeups: OpenWakeups::default(),
            wakers: Wakers::default(),
            origin: 0,
            code,
            kernel,
            known_kernel: FxHashMap::default(),
            samples: Vec::new(),
            losses: Losses::default(),
            locations: Vec::new(),
            addresses: Vec::new(),
            most_frames: most_frames(),
            own_pid: std::process::id(),
        }
    }

    /// What of stacks is copied now.
    pub(super) fn size(&self) -> CopySize {
        self.auto.as_ref().map_or(CopySize::None, AutoStacks::size)
    }

    pub(super) fn take(&mut self, time: u64, kind: RecordKind, body: &[u8]) {
        let id = kind.sampled(body);
        if id.is_some_and(|id| self.wakeups.ids.contains(&id)) {
            return self.wake(time, kind, body);
        }
        let sampled = id.map(|id| self.events.get(&id).copied());
        let layout = match sampled {
            Some(Some(sampled)) if !self.is_counted(time, sampled) => return,
            Some(Some(sampled)) => sampled.set.layout,
            Some(None) => {
                self.losses.malformed += 1;
                return;
            }
            None => SampleLayout { call_graph: self.call_graph, period: SamplePeriod::InSample },
        };
        match kind.parse(body, layout) {
            Ok(DecodedRecord::Sample(sample)) => {
                let event = sampled.flatten().map_or(0, |sampled| sampled.event);
                self.take_sample(time, event, &sample);
            }
            Ok(DecodedRecord::Switch { tid, direction }) => {
                let origin = self.origin;
                let back = self.off_cpu.as_mut().and_then(|off_cpu| off_cpu.switched(tid, time, origin, direction));
                self.keep(back);
            }
            Ok(DecodedRecord::Mmap(mmap)) => self.code.processes.map(&mmap),
            Ok(DecodedRecord::Comm { pid, tid, comm, exec }) => {
                if exec {
                    self.executed(pid);
                }
                self.code.processes.rename(pid, tid, comm, exec);
            }
            Ok(DecodedRecord::Fork(tasks)) => self.code.processes.fork(tasks),
            Ok(DecodedRecord::Exit(tasks)) => self.ended(tasks),
            Ok(DecodedRecord::Lost(count)) => self.lost(count),
            Ok(DecodedRecord::Throttle) => self.losses.throttled += 1,
            Ok(DecodedRecord::Other) => {}
            Err(Malformed) => self.losses.malformed += 1,
        }
    }

    /// A thread was sampled: at once, or as it leaves its CPU, when it counts once it is back.
    fn take_sample(&mut self, time: u64, event: u32, sample: &SampleRecord<'_>) {
        let taken = self.sample(time, event, sample);
        // The kernel's own threads wait for work, and those here for what they measure: that is no wait of a program.
        let is_of_kernel = self.addresses.is_empty() && sample.user.is_none();
        let is_own = sample.pid.cast_unsigned() == self.own_pid;
        match &mut self.off_cpu {
            Some(off_cpu) if off_cpu.event == event => {
                if !is_of_kernel && !is_own {
                    off_cpu.leaves(sample.tid, time, taken);
                }
                return;
            }
            Some(off_cpu) => off_cpu.runs(sample.tid, time),
            None => {}
        }
        self.keep([taken]);
    }

    /// Keeps samples for the next batch. What is missing of their stacks counts with them, so that both are dropped
    /// together.
    fn keep(&mut self, samples: impl IntoIterator<Item = RawSample>) {
        for sample in samples {
            sample.faults.count(&mut self.losses);
            self.samples.push(sample);
        }
    }

    /// A process became another program.
    fn executed(&mut self, pid: i32) {
        if let Some(auto) = &mut self.auto {
            auto.forget(pid);
        }
    }

    /// A thread has ended, and with its first one a process.
    fn ended(&mut self, tasks: Tasks) {
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.ended(tasks.tid);
        }
        if let Some(auto) = self.auto.as_mut().filter(|_| tasks.pid == tasks.tid) {
            auto.forget(tasks.pid);
        }
        self.code.processes.exit(tasks);
    }

    /// The kernel found no room for so many records.
    fn lost(&mut self, count: u64) {
        self.losses.lost += count;
        if let Some(auto) = &mut self.auto {
            auto.has_lost = true;
        }
        if let Some(off_cpu) = &mut self.off_cpu {
            off_cpu.lost();
        }
    }

    /// A thread of this machine is woken.
    fn wake(&mut self, time: u64, kind: RecordKind, body: &[u8]) {
        let Ok(wakeup) = kind.wakeup(body, self.wakeups.tid_at) else {
            self.losses.malformed += 1;
            return;
        };
        let Some(off_cpu) = self.off_cpu.as_mut().filter(|off_cpu| off_cpu.is_blocked(wakeup.tid)) else { return };
        let waker = self.wakers.of(&wakeup, &self.code.processes, time);
        let waited = off_cpu.woken(wakeup.tid, time, self.origin, waker);
        self.keep(waited);
    }

    /// Whether the set of events that took a sample was to sample at that time.
    fn is_counted(&self, time: u64, sampled: SampledAs) -> bool {
        self.auto.as_ref().is_none_or(|auto| auto.counts(time, sampled.set.size))
    }

    /// Tells the time up to now of threads that are still on no CPU, now and then.
    pub(super) fn tell_waits(&mut self, now: u64) {
        let origin = self.origin;
        let waits = self.off_cpu.as_mut().map(|off_cpu| off_cpu.so_far(now, origin));
        self.keep(waits.unwrap_or_default());
    }

    /// The same at once.
    pub(super) fn tell_last_waits(&mut self, end: u64) {
        let origin = self.origin;
        let waits = self.off_cpu.as_mut().map(|off_cpu| off_cpu.all_so_far(end, origin));
        self.keep(waits.unwrap_or_default());
    }

    fn sample(&mut self, time: u64, event: u32, sample: &SampleRecord<'_>) -> RawSample {
        let task = self.code.processes.task(sample.pid, sample.tid);
        self.locations.clear();
        self.addresses.clear();
        let FoundStack { completeness, end } = self.stack(sample);
        let (path, is_kept) = match self.code.paths.path(&self.locations) {
            KeptPath::Whole(path) => (path, true),
            KeptPath::Cut(path) => (path, false),
        };
        let asks_for_end = end == StackEnd::Unknown && is_kept;
        let is_cut = (completeness != Completeness::Whole || !is_kept) && !asks_for_end;
        let at = WallNs(time.saturating_sub(self.origin));
        let (cpu, weight) = (sample.cpu, sample.period);
        let end = match self.call_graph {
            _ if is_cut => StackEnd::Cut,
            // Names tell it of all stacks. They are counted when they are looked at.
            UnwindMethod::Fp | UnwindMethod::Lbr => StackEnd::Unknown,
            UnwindMethod::Auto | UnwindMethod::Dwarf(_) | UnwindMethod::Modelled => end,
        };
        let faults = StackFaults { is_cut, completeness, asks_for_end };
        RawSample { at, task, cpu, event, weight, path, end, faults, left: None }
    }

    /// Puts the stack into locations.
    fn stack(&mut self, sample: &SampleRecord<'_>) -> FoundStack {
        let frames = self.chain(sample);
        // The idle task has this number too, and no code but the kernel's.
        if sample.pid == 0 {
            let is_in_user_space = sample.user.is_some() || !self.addresses.is_empty();
            self.locations.extend(is_in_user_space.then_some(self.code.outside));
            return FoundStack::WHOLE;
        }
        if let Some(auto) = &mut self.auto {
            let is_too_deep = frames >= self.most_frames;
            return auto.stack(&mut self.code, sample, &self.addresses, is_too_deep, &mut self.locations);
        }
        let completeness = self.user_addresses(sample, frames);
        self.code.locate(sample.pid, &self.addresses, &mut self.locations);
        // Names tell it of all stacks, when they are looked at.
        FoundStack { completeness, end: StackEnd::Beginning }
    }

    /// Puts the addresses of user space behind the kernel's part, of whose call chain there are so many frames.
    fn user_addresses(&mut self, sample: &SampleRecord<'_>, frames: usize) -> Completeness {
        match self.call_graph {
            // The kernel says nothing where it stops.
            UnwindMethod::Auto | UnwindMethod::Fp if frames >= self.most_frames => Completeness::TooDeep,
            UnwindMethod::Auto | UnwindMethod::Fp | UnwindMethod::Modelled => Completeness::Whole,
            UnwindMethod::Lbr => {
                let is_in_user_space = self.locations.is_empty();
                self.addresses.extend(is_in_user_space.then_some(sample.ip));
                self.addresses.extend(sample.branches.callers());
                Completeness::Whole
            }
            UnwindMethod::Dwarf(_) => {
                // A kernel thread has no user space.
                let Some(user) = &sample.user else { return Completeness::Whole };
                self.addresses.clear();
                self.code.unwind(sample.pid, user, &mut self.addresses).end
            }
        }
    }

    /// The kernel's call chain: in each part the first address is that of an instruction, and those that
    /// follow are where calls return to. Gives their number.
    fn chain(&mut self, sample: &SampleRecord<'_>) -> usize {
        let (mut in_kernel, mut is_first, mut frames) = (false, true, 0);
        for entry in sample.chain.iter().map(ChainEntry::from) {
            match entry {
                ChainEntry::Kernel(kernel) => (in_kernel, is_first) = (kernel, true),
                ChainEntry::Address(0) => frames += 1,
                ChainEntry::Address(address) => {
                    frames += 1;
                    // The call lies before where it returns to, which may be another function already.
                    let address = if is_first { address } else { address - 1 };
                    is_first = false;
                    if in_kernel {
                        let location = self.kernel_location(address);
                        self.locations.push(location);
                    } else {
                        self.addresses.push(address);
                    }
                }
            }
        }
        frames
    }

    fn kernel_location(&mut self, address: u64) -> LocationId {
        let (paths, module) = (&mut self.code.paths, self.kernel);
        *self.known_kernel.entry(address).or_insert_with(|| paths.location(CodeLocation { module, place: address }))
    }
}

/// `kernel.perf_event_max_stack`, which is 127 where nobody changed it.
fn most_frames() -> usize {
    let most = HostFiles::here().setting("perf_event_max_stack");
    most.and_then(|most| most.try_into().ok()).unwrap_or(127)
}
