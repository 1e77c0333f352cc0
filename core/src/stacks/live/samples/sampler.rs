//! Empties the ring buffers on a thread of its own, and sends what records tell.
//!
//! It gives no names and reads no debug information, which may take seconds, and never waits for whoever
//! does: what finds no room in the channel is dropped and counted. Definitions are never dropped.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::off_cpu::OffCpu;
use super::raw_batch::{PATIENCE, RawBatch};
use super::record_reader::RecordReader;
use crate::host::HostFiles;
use crate::regions::clock;
use crate::sampling::LastRound;
use crate::stacks::live::rings::{CopySize, CounterTurns, OpenEvents, Ring, SampledCounter, Sorter, go_first};
use crate::stacks::live::unwinding::{AutoStacks, SampledCode};
use crate::stacks::{Losses, RunShare, UnwindMethod, WaitingSamples};
use crate::units::WallNs;

/// How long rings may fill without being looked at, at least and at most: also the delay of what is seen live.
const SHORTEST_PASS: Duration = Duration::from_millis(100);
const LONGEST_PASS: Duration = Duration::from_millis(250);
/// In between it is this part of the time so far, one in so many.
const PART_OF_THE_TIME: u64 = 10;

/// The time from one look to the next while it is checked whether frame pointers hold, and while a ring fills that
/// wakes nobody.
const CHECKING_PASS: Duration = Duration::from_millis(20);

/// The most samples that may wait for their names, each of about 64 bytes.
const MOST_WAITING: u64 = 1 << 21;

/// A ring buffer has room for the largest copies from this size on, in bytes.
const ROOM_FOR_LARGE: usize = 2 << 20;

/// A record gets its time before it is written; an interrupt or a hypervisor may come between.
const WRITING: u64 = 2_000_000;

/// Requests to the thread, through its pipe.
pub(in crate::stacks::live) const ENABLE: u8 = b'e';
pub(in crate::stacks::live) const END: u8 = b'.';

/// State of the sampler's thread.
pub(in crate::stacks::live) struct StackSampler {
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
    pub(in crate::stacks::live) fn new(
        opened: OpenEvents,
        commands: OwnedFd,
        to: (Sender<RawBatch>, WaitingSamples),
    ) -> Self {
        let OpenEvents { rings, counters, clocks, tellers, events, sampled, running, off_cpu, wakeups, .. } = opened;
        let mut reader = RecordReader::new(events, sampled.call_graph);
        reader.off_cpu = off_cpu.map(OffCpu::new);
        reader.wakeups = wakeups;
        let has_large = rings.iter().all(|ring| ring.bytes >= ROOM_FOR_LARGE);
        reader.auto = (sampled.call_graph == UnwindMethod::Auto).then(|| AutoStacks::new(has_large));
        // Now, before they unmap anything.
        for pid in &running {
            reader.code.processes.space(pid.as_raw());
        }
        let (sorter, sent) = (Sorter::ahead_by(HostFiles::here().monotonic_ahead()), Sent::default());
        let turns = CounterTurns::default();
        let shares = Vec::new();
        let (batches, waiting) = to;
        let _tellers = tellers;
        Self { rings, counters, clocks, turns, shares, _tellers, commands, sorter, reader, batches, waiting, sent }
    }

    /// Runs until it is asked to end, or nobody takes its samples. `origin` is the time of the kernel's clock that
    /// samples count from.
    pub(in crate::stacks::live) fn run(mut self, origin: u64, last_round: &LastRound) {
        self.reader.origin = origin;
        go_first();
        let mut watched = vec![RingWatch::Wakes; self.rings.len()];
        loop {
            let go_on = match self.wait(&mut watched, clock().saturating_sub(origin)) {
                SamplerCommand::None => true,
                SamplerCommand::Enable => {
                    self.enable();
                    true
                }
                SamplerCommand::End => false,
            };
            let at = WallNs(clock().saturating_sub(self.reader.origin));
            self.turns.read(&mut self.counters, &mut self.clocks, at, &mut self.shares);
            for (ring, watch) in self.rings.iter_mut().zip(&mut watched) {
                let has_some = ring.drain(&mut self.sorter);
                if *watch != RingWatch::Wakes {
                    *watch = if has_some { RingWatch::Fills } else { RingWatch::Ended };
                }
            }
            // At the end all has been written.
            let known = if go_on { clock().saturating_sub(WRITING) } else { clock() };
            let horizon = known.min(last_round.at());
            let reader = &mut self.reader;
            self.sorter.give(horizon, |time, kind, body| reader.take(time, kind, body));
            reader.losses.malformed += std::mem::take(&mut self.sorter.malformed);
            if go_on {
                self.reader.tell_waits(horizon);
                self.decide();
            } else {
                self.reader.tell_last_waits(horizon);
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
    /// count by their time. One occurrence has a time in each set, some microseconds apart, so that one at the moment
    /// of the change may count twice or not at all.
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

    /// Waits until a ring is a quarter full, or for a command, or for the time of a pass. `ran` is the time so far, in
    /// nanoseconds.
    fn wait(&self, watched: &mut [RingWatch], ran: u64) -> SamplerCommand {
        let waking = |ring: &usize| watched[*ring] == RingWatch::Wakes;
        let waking: Vec<_> = (0..self.rings.len()).filter(waking).collect();
        let descriptor = |&ring: &usize| PollFd::new(self.rings[ring].as_fd(), PollFlags::POLLIN);
        let mut polled: Vec<_> = waking.iter().map(descriptor).collect();
        polled.push(PollFd::new(self.commands.as_fd(), PollFlags::POLLIN));
        let is_checking = self.reader.auto.as_ref().is_some_and(AutoStacks::is_checking);
        let is_often = is_checking || watched.contains(&RingWatch::Fills);
        let pass = if is_often { CHECKING_PASS } else { pass_after(ran) };
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

    /// Sends what there is, unless there is nothing. A full channel, or too many samples without names, costs the
    /// samples only.
    fn offer(&mut self) -> bool {
        let mut batch = self.batch();
        if !batch.has_news(&self.sent.losses) {
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

/// How long rings may fill after they did so long, in nanoseconds.
fn pass_after(ran: u64) -> Duration {
    Duration::from_nanos(ran / PART_OF_THE_TIME).clamp(SHORTEST_PASS, LONGEST_PASS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_live_is_a_tenth_late_at_most_and_never_later_than_a_quarter_of_a_second() {
        let passes = [0, 500, 1000, 2000, 2500, 3_600_000].map(|ms: u64| pass_after(ms * 1_000_000).as_millis());
        assert_eq!(passes, [100, 100, 100, 200, 250, 250]);
    }
}
