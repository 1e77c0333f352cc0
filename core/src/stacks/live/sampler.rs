//! Empties the ring buffers on a thread of its own, and numbers the paths of samples.
//!
//! It gives no names and reads no debug information, which may take seconds, and never waits for whoever
//! does: what finds no room in the channel is dropped and counted. Definitions are never dropped.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustc_hash::FxHashMap;

use super::super::end::StackEnd;
use super::super::{CopySwitch, Losses, RunShare, Task, TaskId, UnwindMethod, WaitingSamples};
use super::auto::{AutoStacks, FoundStack};
use super::code::SampledCode;
use super::copies::CopySize;
use super::modules::{Module, ModuleId, OpenModule as OpenedModule, SeenAddresses};
use super::off_cpu::{LeftCpu, OffCpu};
use super::open::{OpenEvents, OpenWakeups, SampledAs, SampledCounter};
use super::paths::{CodeLocation, KeptPath, LocationId, PathId, PathNode};
use super::record::{ChainEntry, DecodedRecord, Malformed, RecordKind, SampleLayout, SampleRecord, Tasks};
use super::ring::{Ring, Sorter, go_first};
use super::turns::CounterTurns;
use super::unwind::Completeness;
use super::wakers::Wakers;
use super::{PATIENCE, clock};
use crate::host::HostFiles;
use crate::units::WallNs;

/// How long rings may fill without being looked at: also the delay of what is seen live.
const PASS: Duration = Duration::from_millis(100);

/// The same while it is checked whether frame pointers hold, and while a ring fills that wakes nobody.
const CHECKING_PASS: Duration = Duration::from_millis(20);

/// The most samples that may wait for their names, each of about 64 bytes.
const MOST_WAITING: u64 = 1 << 21;

/// A ring buffer has room for the largest copies from this size on, in bytes.
const ROOM_FOR_LARGE: usize = 2 << 20;

/// A record gets its time before it is written; an interrupt or a hypervisor may come between.
const WRITING: u64 = 2_000_000;

/// Requests to the thread, through its pipe.
pub(super) const ENABLE: u8 = b'e';
pub(super) const END: u8 = b'.';

/// A sample whose frames have no names yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSample {
    pub(super) at: WallNs,
    pub(super) task: TaskId,
    pub(super) cpu: u32,
    pub(super) event: u32,
    pub(super) weight: u64,
    pub(super) path: Option<PathId>,
    /// Where the stack ends; unknown where the name of the outermost frame has to tell it.
    pub(super) end: StackEnd,
    /// What counts among the losses with this sample.
    pub(super) faults: StackFaults,
    /// How the thread left its CPU, of time on none.
    pub(super) left: Option<LeftCpu>,
}

/// What is missing of a stack. It counts once, though the time of a wait may come in several samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackFaults {
    pub(super) is_cut: bool,
    pub(super) completeness: Completeness,
    /// Whether the name of the outermost frame has to tell where the stack ends.
    pub(super) asks_for_end: bool,
}

impl StackFaults {
    /// Nothing that counts.
    pub(super) const NONE: Self = Self { is_cut: false, completeness: Completeness::Whole, asks_for_end: false };

    fn count(self, losses: &mut Losses) {
        let Self { is_cut, completeness, asks_for_end } = self;
        losses.cut += u64::from(is_cut);
        losses.too_deep += u64::from(completeness == Completeness::TooDeep);
        losses.copy_ended += u64::from(completeness == Completeness::CopyEnded);
        losses.stack_gone += u64::from(completeness == Completeness::StackGone && !asks_for_end);
    }
}

/// Samples, and what is new in them.
#[derive(Debug, Default)]
pub(super) struct RawBatch {
    pub(super) modules: Vec<OpenedModule>,
    pub(super) locations: Vec<CodeLocation>,
    pub(super) paths: Vec<PathNode>,
    pub(super) tasks: Vec<Task>,
    /// Names of threads that woke others, from 0 in the order of their first time.
    pub(super) wakers: Vec<String>,
    pub(super) copies: Vec<CopySwitch>,
    pub(super) shares: Vec<RunShare>,
    pub(super) samples: Vec<RawSample>,
    pub(super) losses: Losses,
}

/// State of the sampler's thread.
pub(super) struct StackSampler {
    rings: Vec<Ring>,
    counters: Vec<SampledCounter>,
    /// Those that tell for how long events took turns.
    clocks: Vec<perf_event::Counter>,
    turns: CounterTurns,
    /// Shares that no batch has taken yet.
    shares: Vec<RunShare>,
    /// They report mappings as long as they are open.
    _tellers: Vec<perf_event::Counter>,
    commands: OwnedFd,
    sorter: Sorter,
    reader: RecordReader,
    batches: Sender<RawBatch>,
    waiting: WaitingSamples,
    /// How much of each table has been sent.
    sent: Sent,
}

#[derive(Default)]
struct Sent {
    losses: Losses,
    modules: usize,
    locations: usize,
    paths: usize,
    tasks: usize,
    wakers: usize,
    copies: usize,
}

impl StackSampler {
    /// `origin` is the time of the kernel's clock that samples are counted from.
    pub(super) fn new(
        opened: OpenEvents,
        origin: u64,
        commands: OwnedFd,
        to: (Sender<RawBatch>, WaitingSamples),
    ) -> Self {
        let OpenEvents { rings, counters, clocks, tellers, events, sampled, running, off_cpu, wakeups, .. } = opened;
        let mut reader = RecordReader::new(events, sampled.call_graph, origin);
        reader.off_cpu = off_cpu.map(OffCpu::new);
        reader.wakeups = wakeups;
        let has_large = rings.iter().all(|ring| ring.bytes >= ROOM_FOR_LARGE);
        reader.auto = (sampled.call_graph == UnwindMethod::Auto).then(|| AutoStacks::new(has_large));
        // Now, before they unmap anything.
        for pid in &running {
            reader.code.processes.space(pid.as_raw());
        }
        let (sorter, sent) = (Sorter::default(), Sent::default());
        let turns = CounterTurns::default();
        let shares = Vec::new();
        let (batches, waiting) = to;
        let _tellers = tellers;
        Self { rings, counters, clocks, turns, shares, _tellers, commands, sorter, reader, batches, waiting, sent }
    }

    /// Runs until it is asked to end, or nobody takes its samples.
    pub(super) fn run(mut self) {
        go_first();
        let mut watched = vec![RingWatch::Wakes; self.rings.len()];
        loop {
            let go_on = match self.wait(&mut watched) {
                SamplerCommand::None => true,
                SamplerCommand::Enable => {
                    self.enable();
                    true
                }
                SamplerCommand::End => false,
            };
            let at = WallNs(clock().saturating_sub(self.reader.origin));
            self.turns.read(&mut self.counters, &mut self.clocks, at, &mut self.shares);
            let horizon = if go_on { clock().saturating_sub(WRITING) } else { u64::MAX };
            for (ring, watch) in self.rings.iter_mut().zip(&mut watched) {
                let has_some = ring.drain(&mut self.sorter);
                if *watch != RingWatch::Wakes {
                    *watch = if has_some { RingWatch::Fills } else { RingWatch::Ended };
                }
            }
            let reader = &mut self.reader;
            self.sorter.give(horizon, |time, kind, body| reader.take(time, kind, body));
            reader.losses.malformed += std::mem::take(&mut self.sorter.malformed);
            self.reader.tell_waits(horizon);
            if go_on {
                self.decide();
            }
            let is_taken = if go_on { self.offer() } else { self.finish() };
            if !go_on || !is_taken {
                return;
            }
        }
    }

    fn enable(&mut self) {
        self.set_sampling(self.reader.size(), true);
        // After the events: what they ran before isn't taken for time in which they were off.
        for clock in &mut self.clocks {
            let _ = clock.enable();
        }
    }

    /// Enables or disables a set of events.
    fn set_sampling(&mut self, size: CopySize, enable: bool) {
        for one in self.counters.iter_mut().filter(|one| one.size == size) {
            // A task that has ended since cannot be enabled, and needs not be.
            let _ = if enable { one.counter.enable() } else { one.counter.disable() };
        }
    }

    /// Lets another set of events sample where stacks have to be copied, or no longer. For a moment both do: samples
    /// count by their time. One occurrence has a time in each set, some microseconds apart, so that one at the moment of the
    /// change may count twice or not at all.
    fn decide(&mut self) {
        let RecordReader { auto: Some(auto), code, origin, .. } = &mut self.reader else { return };
        let before = auto.size();
        let Some(size) = auto.decide(clock(), *origin, code) else { return };
        self.set_sampling(size, true);
        if let Some(auto) = &mut self.reader.auto {
            auto.change(clock(), size);
        }
        self.set_sampling(before, false);
    }

    /// Waits until a ring is a quarter full, or for a command, or for the time of a pass.
    fn wait(&self, watched: &mut [RingWatch]) -> SamplerCommand {
        let waking = |ring: &usize| watched[*ring] == RingWatch::Wakes;
        let waking: Vec<_> = (0..self.rings.len()).filter(waking).collect();
        let descriptor = |&ring: &usize| PollFd::new(self.rings[ring].as_fd(), PollFlags::POLLIN);
        let mut polled: Vec<_> = waking.iter().map(descriptor).collect();
        polled.push(PollFd::new(self.commands.as_fd(), PollFlags::POLLIN));
        let is_checking = self.reader.auto.as_ref().is_some_and(AutoStacks::is_checking);
        let is_often = is_checking || watched.contains(&RingWatch::Fills);
        let pass = if is_often { CHECKING_PASS } else { PASS };
        let timeout = PollTimeout::try_from(pass).unwrap_or(PollTimeout::MAX);
        if poll(&mut polled, timeout).unwrap_or(0) == 0 {
            return SamplerCommand::None;
        }
        for (&ring, polled) in waking.iter().zip(&polled) {
            let events = polled.revents().unwrap_or(PollFlags::empty());
            if events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
                watched[ring] = RingWatch::Ended;
            }
        }
        match polled.last().and_then(PollFd::revents) {
            Some(events) if !events.is_empty() => self.command(),
            _ => SamplerCommand::None,
        }
    }

    fn command(&self) -> SamplerCommand {
        let mut byte = [0];
        match nix::unistd::read(&self.commands, &mut byte) {
            Ok(1) if byte[0] == ENABLE => SamplerCommand::Enable,
            _ => SamplerCommand::End,
        }
    }

    /// Sends what there is, unless there is nothing. A full channel, or too many samples without names, costs the samples only.
    fn offer(&mut self) -> bool {
        let mut batch = self.batch();
        if batch.samples.is_empty() && batch.paths.is_empty() && batch.copies.is_empty() {
            return true;
        }
        let taken = batch.samples.len() as u64;
        self.waiting.came(taken);
        let offered = std::mem::take(&mut batch);
        let sent = match self.waiting.count() > MOST_WAITING {
            true => Err(TrySendError::Full(offered)),
            false => self.batches.try_send(offered),
        };
        match sent {
            Ok(()) => {
                self.note_sent();
                true
            }
            Err(TrySendError::Full(_)) => {
                // Nor do the stacks that are gone with them count as cut ones.
                let of_dropped = self.reader.losses.since(&self.sent.losses);
                self.reader.losses.forget_stacks(&of_dropped);
                self.reader.losses.dropped += taken;
                self.waiting.went(taken);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// The last batch alone may wait for room.
    fn finish(&mut self) -> bool {
        let batch = self.batch();
        self.waiting.came(batch.samples.len() as u64);
        self.batches.send_timeout(batch, PATIENCE).is_ok()
    }

    fn batch(&mut self) -> RawBatch {
        let RecordReader { code: SampledCode { processes, paths, .. }, auto, samples, losses, wakers, .. } =
            &mut self.reader;
        let copies = auto.as_ref().and_then(|auto| auto.switches.get(self.sent.copies..));
        RawBatch {
            copies: copies.unwrap_or_default().to_vec(),
            shares: self.shares.clone(),
            modules: processes.modules.since(self.sent.modules).cloned().collect(),
            locations: paths.locations_since(self.sent.locations).to_vec(),
            paths: paths.nodes_since(self.sent.paths).to_vec(),
            tasks: processes.tasks_since(self.sent.tasks).to_vec(),
            wakers: wakers.since(self.sent.wakers).to_vec(),
            samples: std::mem::take(samples),
            losses: *losses,
        }
    }

    fn note_sent(&mut self) {
        self.shares.clear();
        self.sent.losses = self.reader.losses;
        let RecordReader { code: SampledCode { processes, paths, .. }, auto, wakers, .. } = &self.reader;
        self.sent.wakers += wakers.since(self.sent.wakers).len();
        self.sent.copies = auto.as_ref().map_or(0, |auto| auto.switches.len());
        self.sent.modules = processes.modules.len();
        self.sent.locations += paths.locations_since(self.sent.locations).len();
        self.sent.paths += paths.nodes_since(self.sent.paths).len();
        self.sent.tasks += processes.tasks_since(self.sent.tasks).len();
    }
}

/// Whether a ring wakes who reads it when there is much in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RingWatch {
    Wakes,
    /// The task of the event that it belongs to has ended: asked for it, it would wake for ever.
    Ended,
    /// The same, and other tasks still write into it.
    Fills,
}

enum SamplerCommand {
    None,
    Enable,
    End,
}

/// Turns records into samples.
struct RecordReader {
    events: FxHashMap<u64, SampledAs>,
    call_graph: UnwindMethod,
    /// Where stacks are found in this way or that.
    auto: Option<AutoStacks>,
    /// Where threads are sampled as they leave their CPUs.
    off_cpu: Option<OffCpu>,
    wakeups: OpenWakeups,
    wakers: Wakers,
    origin: u64,
    code: SampledCode,
    kernel: ModuleId,
    /// Kernel addresses that were looked up before.
    known_kernel: FxHashMap<u64, LocationId>,
    samples: Vec<RawSample>,
    losses: Losses,
    /// The locations of the sample that is being read, the innermost first; and user addresses.
    locations: Vec<LocationId>,
    addresses: Vec<u64>,
    /// The longest call chain that the kernel gives.
    most_frames: usize,
    own_pid: u32,
}

impl RecordReader {
    fn new(events: FxHashMap<u64, SampledAs>, call_graph: UnwindMethod, origin: u64) -> Self {
        let mut code = SampledCode::new();
        let kernel = code.processes.modules.number(Module::Kernel, &SeenAddresses::default());
        Self {
            events,
            call_graph,
            auto: None,
            off_cpu: None,
            wakeups: OpenWakeups::default(),
            wakers: Wakers::default(),
            origin,
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
    fn size(&self) -> CopySize {
        self.auto.as_ref().map_or(CopySize::None, AutoStacks::size)
    }

    fn take(&mut self, time: u64, kind: RecordKind, body: &[u8]) {
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
            None => SampleLayout { call_graph: self.call_graph },
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

    /// Keeps samples for the next batch. What is missing of their stacks counts with them, so that both are dropped together.
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

    /// Tells the time of threads that are still on no CPU: up to the last record now and then, at the end up to now.
    fn tell_waits(&mut self, horizon: u64) {
        let Some(off_cpu) = &mut self.off_cpu else { return };
        let waits = match horizon {
            u64::MAX => off_cpu.all_so_far(clock(), self.origin),
            horizon => off_cpu.so_far(horizon, self.origin),
        };
        self.keep(waits);
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
