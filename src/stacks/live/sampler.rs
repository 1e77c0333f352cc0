//! Empties the ring buffers on a thread of its own, and numbers the paths of samples.
//!
//! It gives no names and reads no debug information, which may take seconds, and never waits for whoever
//! does: what finds no room in the channel is dropped and counted. Definitions are never dropped.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustc_hash::FxHashMap;

use super::super::{Losses, Task, TaskId, UnwindMethod};
use super::modules::{Module, ModuleId, OpenModule as OpenedModule, SeenAddresses};
use super::open::OpenEvents;
use super::paths::{CodeLocation, KeptPath, LocationId, PathId, PathNode, SeenPaths};
use super::process::Processes;
use super::record::{ChainEntry, DecodedRecord, Malformed, RecordKind, SampleLayout, SampleRecord};
use super::ring::{Ring, Sorter};
use super::unwind::{Completeness, UnwindCache};
use super::{PATIENCE, clock};
use crate::host::HostFiles;
use crate::units::WallNs;

/// How long rings may fill without being looked at: also the delay of what is seen live.
const PASS: Duration = Duration::from_millis(100);

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
}

/// Samples, and what is new in them.
#[derive(Debug, Default)]
pub(super) struct RawBatch {
    pub(super) modules: Vec<OpenedModule>,
    pub(super) locations: Vec<CodeLocation>,
    pub(super) paths: Vec<PathNode>,
    pub(super) tasks: Vec<Task>,
    pub(super) samples: Vec<RawSample>,
    pub(super) losses: Losses,
}

/// State of the sampler's thread.
pub(super) struct StackSampler {
    rings: Vec<Ring>,
    counters: Vec<perf_event::Counter>,
    commands: OwnedFd,
    sorter: Sorter,
    reader: RecordReader,
    batches: Sender<RawBatch>,
    /// How much of each table has been sent.
    sent: Sent,
}

#[derive(Default)]
struct Sent {
    modules: usize,
    locations: usize,
    paths: usize,
    tasks: usize,
}

impl StackSampler {
    /// `origin` is the time of the kernel's clock that samples are counted from.
    pub(super) fn new(opened: OpenEvents, origin: u64, commands: OwnedFd, batches: Sender<RawBatch>) -> Self {
        let OpenEvents { rings, counters, events, layout, running, .. } = opened;
        let mut reader = RecordReader::new(events, layout, origin);
        // Now, before they unmap anything.
        for pid in &running {
            reader.processes.space(pid.as_raw());
        }
        let (sorter, sent) = (Sorter::default(), Sent::default());
        Self { rings, counters, commands, sorter, reader, batches, sent }
    }

    /// Runs until it is asked to end, or nobody takes its samples.
    pub(super) fn run(mut self) {
        let mut ended = vec![false; self.rings.len()];
        loop {
            let go_on = match self.wait(&mut ended) {
                SamplerCommand::None => true,
                SamplerCommand::Enable => {
                    self.enable();
                    true
                }
                SamplerCommand::End => false,
            };
            let horizon = if go_on { clock().saturating_sub(WRITING) } else { u64::MAX };
            for ring in &mut self.rings {
                ring.drain(&mut self.sorter);
            }
            let reader = &mut self.reader;
            self.sorter.give(horizon, |time, kind, body| reader.take(time, kind, body));
            reader.losses.malformed += std::mem::take(&mut self.sorter.malformed);
            let is_taken = if go_on { self.offer() } else { self.finish() };
            if !go_on || !is_taken {
                return;
            }
        }
    }

    fn enable(&mut self) {
        // A task that has ended since cannot be enabled, and needs not be.
        self.counters.iter_mut().for_each(|counter| drop(counter.enable()));
    }

    /// Waits until a ring is a quarter full, or for a command, or for the time of a pass.
    fn wait(&self, ended: &mut [bool]) -> SamplerCommand {
        // A ring whose tasks have all ended would wake for ever.
        let watched: Vec<_> = (0..self.rings.len()).filter(|&ring| !ended[ring]).collect();
        let descriptor = |&ring: &usize| PollFd::new(self.rings[ring].as_fd(), PollFlags::POLLIN);
        let mut polled: Vec<_> = watched.iter().map(descriptor).collect();
        polled.push(PollFd::new(self.commands.as_fd(), PollFlags::POLLIN));
        let timeout = PollTimeout::try_from(PASS).unwrap_or(PollTimeout::MAX);
        if poll(&mut polled, timeout).unwrap_or(0) == 0 {
            return SamplerCommand::None;
        }
        for (&ring, polled) in watched.iter().zip(&polled) {
            let events = polled.revents().unwrap_or(PollFlags::empty());
            ended[ring] = events.intersects(PollFlags::POLLHUP | PollFlags::POLLERR);
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

    /// Sends what there is, unless there is nothing. A full channel costs the samples only.
    fn offer(&mut self) -> bool {
        let mut batch = self.batch();
        if batch.samples.is_empty() && batch.paths.is_empty() {
            return true;
        }
        let taken = batch.samples.len() as u64;
        match self.batches.try_send(std::mem::take(&mut batch)) {
            Ok(()) => {
                self.note_sent();
                true
            }
            Err(TrySendError::Full(_)) => {
                self.reader.losses.dropped += taken;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }

    /// The last batch alone may wait for room.
    fn finish(&mut self) -> bool {
        let batch = self.batch();
        self.batches.send_timeout(batch, PATIENCE).is_ok()
    }

    fn batch(&mut self) -> RawBatch {
        let RecordReader { processes, paths, samples, losses, .. } = &mut self.reader;
        RawBatch {
            modules: processes.modules.since(self.sent.modules).cloned().collect(),
            locations: paths.locations_since(self.sent.locations).to_vec(),
            paths: paths.nodes_since(self.sent.paths).to_vec(),
            tasks: processes.tasks_since(self.sent.tasks).to_vec(),
            samples: std::mem::take(samples),
            losses: *losses,
        }
    }

    fn note_sent(&mut self) {
        let RecordReader { processes, paths, .. } = &self.reader;
        self.sent.modules = processes.modules.len();
        self.sent.locations += paths.locations_since(self.sent.locations).len();
        self.sent.paths += paths.nodes_since(self.sent.paths).len();
        self.sent.tasks += processes.tasks_since(self.sent.tasks).len();
    }
}

enum SamplerCommand {
    None,
    Enable,
    End,
}

/// Turns records into samples.
struct RecordReader {
    events: FxHashMap<u64, u32>,
    layout: SampleLayout,
    origin: u64,
    processes: Processes,
    paths: SeenPaths,
    kernel: ModuleId,
    nowhere: LocationId,
    /// Kernel addresses that were looked up before.
    known_kernel: FxHashMap<u64, LocationId>,
    cache: UnwindCache,
    samples: Vec<RawSample>,
    losses: Losses,
    /// The locations of the sample that is being read, the innermost first; and user addresses.
    locations: Vec<LocationId>,
    addresses: Vec<u64>,
    /// The longest call chain that the kernel gives.
    most_frames: usize,
}

impl RecordReader {
    fn new(events: FxHashMap<u64, u32>, layout: SampleLayout, origin: u64) -> Self {
        let (mut processes, mut paths) = (Processes::default(), SeenPaths::default());
        let mut number = |module| processes.modules.number(module, &SeenAddresses::default());
        let (kernel, nowhere) = (number(Module::Kernel), number(Module::Nowhere));
        let nowhere = paths.location(CodeLocation { module: nowhere, place: 0 });
        Self {
            events,
            layout,
            origin,
            processes,
            paths,
            kernel,
            nowhere,
            known_kernel: FxHashMap::default(),
            cache: UnwindCache::default(),
            samples: Vec::new(),
            losses: Losses::default(),
            locations: Vec::new(),
            addresses: Vec::new(),
            most_frames: most_frames(),
        }
    }

    fn take(&mut self, time: u64, kind: RecordKind, body: &[u8]) {
        match kind.parse(body, self.layout) {
            Ok(DecodedRecord::Sample(sample)) => self.sample(time, &sample),
            Ok(DecodedRecord::Mmap(mmap)) => self.processes.map(&mmap),
            Ok(DecodedRecord::Comm { pid, tid, comm, exec }) => self.processes.rename(pid, tid, comm, exec),
            Ok(DecodedRecord::Fork(tasks)) => self.processes.fork(tasks),
            Ok(DecodedRecord::Exit(tasks)) => self.processes.exit(tasks),
            Ok(DecodedRecord::Lost(count)) => self.losses.lost += count,
            Ok(DecodedRecord::Throttle) => self.losses.throttled += 1,
            Ok(DecodedRecord::Other) => {}
            Err(Malformed) => self.losses.malformed += 1,
        }
    }

    fn sample(&mut self, time: u64, sample: &SampleRecord<'_>) {
        let Some(&event) = self.events.get(&sample.id) else {
            self.losses.malformed += 1;
            return;
        };
        let task = self.processes.task(sample.pid, sample.tid);
        self.locations.clear();
        self.addresses.clear();
        let completeness = self.stack(sample);
        self.user_locations(sample.pid);
        let (path, is_kept) = match self.paths.path(&self.locations) {
            KeptPath::Whole(path) => (path, true),
            KeptPath::Cut(path) => (path, false),
        };
        self.losses.cut += u64::from(completeness != Completeness::Whole || !is_kept);
        self.losses.too_deep += u64::from(completeness == Completeness::TooDeep);
        self.losses.copy_ended += u64::from(completeness == Completeness::CopyEnded);
        let at = WallNs(time.saturating_sub(self.origin));
        self.samples.push(RawSample { at, task, cpu: sample.cpu, event, weight: sample.period, path });
    }

    /// Puts the kernel's part into locations, and the addresses of user space behind it.
    fn stack(&mut self, sample: &SampleRecord<'_>) -> Completeness {
        let frames = self.chain(sample);
        match self.layout.call_graph {
            // The kernel says nothing where it stops.
            UnwindMethod::Fp if frames >= self.most_frames => Completeness::TooDeep,
            UnwindMethod::Fp | UnwindMethod::Modelled => Completeness::Whole,
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
                let (space, modules) = self.processes.space(sample.pid);
                space.unwinder(modules).unwind(user, &mut self.cache, &mut self.addresses)
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
        let (paths, module) = (&mut self.paths, self.kernel);
        *self.known_kernel.entry(address).or_insert_with(|| paths.location(CodeLocation { module, place: address }))
    }

    fn user_locations(&mut self, pid: i32) {
        if self.addresses.is_empty() {
            return;
        }
        let (space, _) = self.processes.space(pid);
        for &address in &self.addresses {
            let location = space.known.get(&address).copied().unwrap_or_else(|| {
                let place = space.place(address);
                let location =
                    place.map_or(self.nowhere, |(module, place)| self.paths.location(CodeLocation { module, place }));
                space.remember(address, location);
                location
            });
            self.locations.push(location);
        }
    }
}

/// `kernel.perf_event_max_stack`, which is 127 where nobody changed it.
fn most_frames() -> usize {
    let most = HostFiles::here().setting("perf_event_max_stack");
    most.and_then(|most| most.try_into().ok()).unwrap_or(127)
}
