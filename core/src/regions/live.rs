//! Reads regions while their programs run, on a thread of its own, and sends batches into a bounded channel.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use perfprop_regions::layout::MARKS;

use super::batch::RegionBatch;
use super::reader::{Part, RegionReader};
use super::source::RegionSource;
use crate::units::KernelNs;

/// How often threads are asked what they entered and left while they enter and leave much: a ring is short.
const MARKS_PERIOD: Duration = Duration::from_millis(25);
/// In how many of these periods they are asked once, else.
const QUIET_PERIODS: u32 = 4;
/// From so many new enters and leaves on a thread does much: four times as many fill half of its ring.
const MANY_MARKS: usize = MARKS / 8;
/// How often processes are looked at that had no regions before.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Reading takes one part in so many of the time at most.
const MOST_TIME: u32 = 20;
/// How long before the end of an interval it is read at most.
const MOST_AHEAD: Duration = Duration::from_millis(20);
/// Batches that may wait for their taker. More are dropped; what they would have said comes with the next.
const CAPACITY: usize = 64;
/// How long the last batch may wait for room.
const PATIENCE: Duration = Duration::from_secs(5);

/// What of regions is wanted while programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Only that programs are found, and record: what they counted is read at the end.
    Nothing,
    /// What was counted.
    Counts,
    /// What threads entered and left, too.
    Marks,
}

/// Reading that goes on; dropping it ends it.
#[derive(Debug)]
pub struct LiveRegions {
    batches: Receiver<RegionBatch>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveRegions {
    /// Begins to read every `interval`. Times count from `origin`.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(source: Arc<RegionSource>, origin: KernelNs, interval: Duration, wanted: Wanted) -> io::Result<Self> {
        let (sender, batches) = bounded(CAPACITY);
        let (stop, stopped) = bounded(0);
        let work = move || ReaderThread { source, interval, wanted }.run(origin, &sender, &stopped);
        let thread = thread::Builder::new().name("perfprop-regions".into()).spawn(work)?;
        Ok(Self { batches, stop: Some(stop), thread: Some(thread) })
    }

    /// Where batches come out; it is closed after the last one.
    pub fn batches(&self) -> &Receiver<RegionBatch> {
        &self.batches
    }

    /// Ends reading; what was counted last still comes out.
    pub fn stop(&mut self) {
        self.stop = None;
    }
}

impl Drop for LiveRegions {
    fn drop(&mut self) {
        self.stop();
        // The thread may wait for room for its last batch.
        while self.batches.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The bare number of the kernel's clock that sampled stacks count with.
#[cfg(feature = "stacks")]
pub(crate) fn clock() -> u64 {
    KernelNs::now().0
}

/// The work of the thread.
struct ReaderThread {
    source: Arc<RegionSource>,
    interval: Duration,
    wanted: Wanted,
}

impl ReaderThread {
    fn run(&self, origin: KernelNs, batches: &Sender<RegionBatch>, stopped: &Receiver<()>) {
        let mut reader = RegionReader::new(origin);
        let beat = Beat::new(self.interval, self.wanted);
        let start = Instant::now() - Duration::from(KernelNs::now().since(origin));
        let (mut tick, mut looked, mut rest, mut is_quiet) = (1, start, Duration::ZERO, true);
        loop {
            tick = beat.next(tick, start.elapsed() + rest);
            tick = if is_quiet { beat.quiet(tick) } else { tick };
            let pause = (start + beat.due(tick)).saturating_duration_since(Instant::now());
            if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                break;
            }
            let now = Instant::now();
            if now - looked >= LOOK_PERIOD.min(self.interval) {
                self.source.look();
                looked = now;
            }
            // What found no room comes with the next batch: nothing is read until there is some.
            if let Some(part) = self.part(beat.counts(tick))
                && !batches.is_full()
            {
                let batch = reader.read(&self.source, KernelNs::now(), part);
                is_quiet = batch.marks.iter().all(|thread| thread.missed == 0 && thread.marks.len() < MANY_MARKS);
                if batches.try_send(batch).is_err() {
                    return;
                }
            }
            rest = now.elapsed() * MOST_TIME;
            tick += 1;
        }
        if let Some(part) = self.part(true) {
            let _ = batches.send_timeout(reader.read_last(&self.source, KernelNs::now(), part), PATIENCE);
        }
    }

    fn part(&self, counts: bool) -> Option<Part> {
        match (self.wanted, counts) {
            (Wanted::Nothing, _) => None,
            (Wanted::Counts, _) => Some(Part::Counts),
            (Wanted::Marks, true) => Some(Part::Both),
            (Wanted::Marks, false) => Some(Part::Marks),
        }
    }
}

/// When regions are read: a little before each interval ends, so that screens have them with the rest of it.
#[derive(Clone, Copy, Debug)]
struct Beat {
    period: Duration,
    /// How many periods an interval has.
    ticks: u32,
}

impl Beat {
    fn new(interval: Duration, wanted: Wanted) -> Self {
        let ticks = match wanted {
            Wanted::Nothing | Wanted::Counts => 1,
            Wanted::Marks => u32::try_from(interval.as_nanos().div_ceil(MARKS_PERIOD.as_nanos())).unwrap_or(u32::MAX),
        };
        let ticks = ticks.max(1);
        Self { period: (interval / ticks).max(Duration::from_millis(1)), ticks }
    }

    /// When a tick is due, from the start on.
    fn due(&self, tick: u32) -> Duration {
        let ahead = (self.period * self.ticks / 10).min(self.period / 2).min(MOST_AHEAD);
        (self.period * tick).saturating_sub(ahead)
    }

    /// The tick that follows, this one or a later one, at a time. Of those that are over by then it is the last that reads
    /// counts, else the last.
    fn next(&self, tick: u32, now: Duration) -> u32 {
        let over = u32::try_from(now.as_nanos() / self.period.as_nanos()).unwrap_or(u32::MAX - self.ticks);
        if over < tick {
            return tick;
        }
        let counted = over / self.ticks * self.ticks;
        if counted > tick { counted } else { over }
    }

    /// The tick that follows where nobody enters and leaves much: this one or a later one, but none after the next that reads
    /// counts.
    fn quiet(&self, tick: u32) -> u32 {
        tick.next_multiple_of(QUIET_PERIODS).min(tick.next_multiple_of(self.ticks))
    }

    /// Whether counts are read at a tick, or only marks.
    fn counts(&self, tick: u32) -> bool {
        tick.is_multiple_of(self.ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn marks_are_read_often_and_counts_at_the_end_of_intervals() {
        let beat = Beat::new(MS(1000), Wanted::Marks);
        assert_eq!((beat.period, beat.ticks), (MS(25), 40));
        assert_eq!((1..=80).filter(|&tick| beat.counts(tick)).collect::<Vec<_>>(), [40, 80]);
        assert_eq!([1, 40].map(|tick| beat.due(tick)), [MS(25) / 2, MS(1000) - MS(25) / 2]);
        let counts = Beat::new(MS(1000), Wanted::Counts);
        assert!(counts.counts(1) && counts.due(1) == MS(980));
        assert_eq!(Beat::new(MS(10), Wanted::Marks).period, MS(10));
        assert_eq!(Beat::new(MS(60), Wanted::Marks).ticks, 3);
    }

    #[test]
    fn who_enters_little_is_asked_ten_times_a_second_and_whenever_counts_are_read() {
        let beat = Beat::new(MS(250), Wanted::Marks);
        assert_eq!((beat.ticks, [1, 4, 5, 9, 10, 11].map(|tick| beat.quiet(tick))), (10, [4, 4, 8, 10, 10, 12]));
        assert_eq!([1, 2].map(|tick| Beat::new(MS(1000), Wanted::Counts).quiet(tick)), [1, 2]);
    }

    #[test]
    fn who_is_late_leaves_out_ticks_but_reads_counts() {
        let beat = Beat::new(MS(250), Wanted::Marks);
        assert_eq!([beat.next(3, MS(60)), beat.next(3, MS(80)), beat.next(3, MS(130))], [3, 3, 5]);
        // The tenth counts, and is read late rather than never.
        assert_eq!([beat.next(9, MS(310)), beat.next(11, MS(380)), beat.next(9, MS(860))], [10, 15, 30]);
    }
}
