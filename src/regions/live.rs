//! Reads regions while their programs run, on a thread of its own, and sends batches into a bounded channel.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use nix::time::{ClockId, clock_gettime};

use super::batch::RegionBatch;
use super::reader::{Part, RegionReader};
use super::source::RegionSource;

/// How often threads are asked what they entered and left: a ring is short.
const MARKS_PERIOD: Duration = Duration::from_millis(100);
/// How often processes are looked at that had no regions before.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Reading takes one part in so many of the time at most.
const MOST_TIME: u32 = 20;
/// Batches that may wait for their taker. More are dropped; what they would have said comes with the next.
const CAPACITY: usize = 64;
/// How long the last batch may wait for room.
const PATIENCE: Duration = Duration::from_secs(5);

/// What of regions is wanted while programs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
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
    /// Begins to read every `interval`. Times count from `origin`, a time of the kernel's clock that never goes backwards.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(source: Arc<RegionSource>, origin: u64, interval: Duration, wanted: Wanted) -> io::Result<Self> {
        let (sender, batches) = bounded(CAPACITY);
        let (stop, stopped) = bounded(0);
        let work = move || Reading { source, interval, wanted }.run(origin, &sender, &stopped);
        let thread = thread::Builder::new().name("regions".into()).spawn(work)?;
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

/// The time of the kernel's clock that never goes backwards, in nanoseconds: marks have it, and sampled stacks.
pub(crate) fn clock() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The work of the thread.
struct Reading {
    source: Arc<RegionSource>,
    interval: Duration,
    wanted: Wanted,
}

impl Reading {
    fn run(&self, origin: u64, batches: &Sender<RegionBatch>, stopped: &Receiver<()>) {
        let mut reader = RegionReader::new(origin);
        let period = match self.wanted {
            Wanted::Counts => self.interval,
            Wanted::Marks => self.interval.min(MARKS_PERIOD),
        };
        let (mut pause, start) = (period, Instant::now());
        let (mut looked, mut counted) = (start, start);
        while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let now = Instant::now();
            if now - looked >= LOOK_PERIOD.min(self.interval) {
                self.source.look();
                looked = now;
            }
            // What found no room comes with the next batch: nothing is read until there is some.
            if !batches.is_full() {
                let counts = now - counted + period / 2 >= self.interval;
                counted = if counts { now } else { counted };
                let batch = reader.read(&self.source, clock(), self.part(counts));
                if batches.try_send(batch).is_err() {
                    return;
                }
            }
            pause = period.max(now.elapsed() * MOST_TIME);
        }
        let last = reader.read(&self.source, clock(), self.part(true));
        let _ = batches.send_timeout(last, PATIENCE);
    }

    fn part(&self, counts: bool) -> Part {
        match (self.wanted, counts) {
            (Wanted::Counts, _) => Part::Counts,
            (Wanted::Marks, true) => Part::Both,
            (Wanted::Marks, false) => Part::Marks,
        }
    }
}
