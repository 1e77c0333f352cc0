//! Reads a source on a thread of its own, and sends its rounds into a bounded channel.
//!
//! The thread never waits for whoever takes the rounds, but with the last one. When the channel is full the round is
//! dropped and counted, as is a round whose time passed before the thread came to run: readings are
//! cumulative, so only time resolution is lost, never a count.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::sources::{CounterSource, Next, Round};
use crate::threads::ThreadSnapshot;
use crate::units::KernelNs;

/// Rounds that may wait for their taker: a minute at the default period.
const CAPACITY: usize = 600;

/// What the sampler sends.
#[derive(Clone, Debug, PartialEq)]
pub enum SamplerMessage {
    /// A round, and how many before it found no room since the beginning.
    Round {
        /// The round itself.
        round: Round,
        /// Rounds lost so far: read too late, or without room.
        lost: u64,
    },
    /// The source has ended.
    End,
}

/// What the sampler can be asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplerRequest {
    /// Read a last round and end.
    Finish,
    /// Let the source begin to count.
    Enable,
}

/// When a sampler begins to read its last round: what comes later is no part of the run.
#[derive(Clone, Debug)]
pub struct LastRound(Arc<AtomicU64>);

impl Default for LastRound {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(u64::MAX)))
    }
}

impl LastRound {
    /// The time of the kernel's clock that never goes backwards, in nanoseconds; the largest number as long as it isn't
    /// known.
    pub fn at(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    fn begin(&self) {
        self.0.store(KernelNs::now().0, Ordering::Release);
    }
}

/// A running sampler thread; dropping it stops the thread.
#[derive(Debug)]
pub struct Sampler {
    samples: Receiver<SamplerMessage>,
    ended: Receiver<Infallible>,
    requests: Arc<Requests>,
    /// It gives the source back, so that whoever drops the sampler closes it: the last round is read and shown by then.
    thread: Option<JoinHandle<Box<dyn CounterSource>>>,
}

/// What the thread has been asked for. It waits here between rounds; a channel would spin and yield
/// before it sleeps, which took a third of the thread's time.
#[derive(Debug, Default)]
struct Requests {
    waiting: Mutex<VecDeque<SamplerRequest>>,
    some: Condvar,
}

impl Requests {
    fn put(&self, request: SamplerRequest) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(request);
        self.some.notify_one();
    }

    /// The next request; `None` when there is none until then.
    fn next_before(&self, due: Instant) -> Option<SamplerRequest> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let left = due.saturating_duration_since(Instant::now());
        let woken = self.some.wait_timeout_while(waiting, left, |waiting| waiting.is_empty());
        woken.unwrap_or_else(PoisonError::into_inner).0.pop_front()
    }
}

impl Sampler {
    /// Starts reading `source` every `period`. `last_round` is told when the last one is read because that was
    /// requested.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(source: impl CounterSource + 'static, period: Duration, last_round: LastRound) -> io::Result<Self> {
        let (sample_sender, samples) = bounded(CAPACITY);
        let (runs, ended) = bounded(0);
        let requests = Arc::new(Requests::default());
        let (samples_in, requested) = (sample_sender, Arc::clone(&requests));
        let mut worker =
            SamplerThread { source, samples: samples_in, requests: requested, last_round, lost: 0, dropped: None };
        let work = move || {
            worker.run(period);
            drop(runs);
            Box::new(worker.source) as Box<dyn CounterSource>
        };
        let thread = thread::Builder::new().name("perfprop-sampler".into()).spawn(work)?;
        Ok(Self { samples, ended, requests, thread: Some(thread) })
    }

    /// Where the rounds come out.
    pub fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    /// Disconnected once the last round is among the samples: for who takes them from time to time and
    /// doesn't want to be woken for each.
    pub fn ended(&self) -> &Receiver<Infallible> {
        &self.ended
    }

    /// Asks the thread for something; a thread that has ended no longer hears it.
    pub fn request(&self, request: SamplerRequest) {
        self.requests.put(request);
    }

    /// A handle that asks for the same from another thread.
    pub fn remote(&self) -> SamplerRemote {
        SamplerRemote { requests: Arc::clone(&self.requests) }
    }
}

/// Asks a sampler for something from another thread.
#[derive(Clone, Debug)]
pub struct SamplerRemote {
    requests: Arc<Requests>,
}

impl SamplerRemote {
    /// Sends a request, as [`Sampler::request`] does.
    pub fn request(&self, request: SamplerRequest) {
        self.requests.put(request);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.request(SamplerRequest::Finish);
        // The thread may wait for room for its last round: make some.
        while self.samples.recv().is_ok_and(|sample| sample != SamplerMessage::End) {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct SamplerThread<S> {
    source: S,
    samples: Sender<SamplerMessage>,
    requests: Arc<Requests>,
    last_round: LastRound,
    lost: u64,
    /// The newest round, where it found no room.
    dropped: Option<Round>,
}

impl<S: CounterSource> SamplerThread<S> {
    fn run(&mut self, period: Duration) {
        let mut due = Instant::now() + period;
        let mut tick = self.next_tick();
        loop {
            match self.requests.next_before(tick.map_or(due, |tick| tick.min(due))) {
                Some(SamplerRequest::Enable) => self.source.enable(),
                Some(SamplerRequest::Finish) => return self.finish(),
                None if Instant::now() < due => {
                    self.source.tick();
                    tick = self.next_tick();
                }
                None => {
                    match self.source.read() {
                        Next::Round(round) => self.offer(round),
                        Next::Ended => return self.end_with_newest(),
                    }
                    let (next, missed) = next_due(due, period, Instant::now());
                    due = next;
                    self.lost += missed;
                }
            }
        }
    }

    /// When the source wants its next tick. It is counted from now: ticks that came late aren't made up for.
    fn next_tick(&self) -> Option<Instant> {
        Instant::now().checked_add(self.source.beat()?)
    }

    fn offer(&mut self, round: Round) {
        let round = self.with_dropped(round);
        let message = SamplerMessage::Round { round, lost: self.lost };
        self.dropped = match self.samples.try_send(message) {
            Err(TrySendError::Full(SamplerMessage::Round { round, .. })) => Some(round),
            _ => None,
        };
        self.lost += u64::from(self.dropped.is_some());
    }

    /// A round with what the threads did before the round that found no room: readings are cumulative, what ended is
    /// told once.
    fn with_dropped(&mut self, round: Round) -> Round {
        let dropped = self.dropped.take().and_then(|dropped| dropped.threads);
        Round { threads: ThreadSnapshot::merged(dropped, round.threads), ..round }
    }

    fn finish(&mut self) {
        self.last_round.begin();
        match self.source.read_last() {
            Next::Round(round) => {
                let last = self.with_dropped(round);
                self.end(Some(last));
            }
            Next::Ended => self.end_with_newest(),
        }
    }

    /// Ends where the newest round is the last: it isn't lost after all.
    fn end_with_newest(&mut self) {
        let newest = self.dropped.take();
        self.lost -= u64::from(newest.is_some());
        self.end(newest);
    }

    /// The last round carries the totals, so it alone waits for room: until somebody takes others, or drops the
    /// sampler.
    fn end(&mut self, last: Option<Round>) {
        self.source.end();
        if let Some(round) = last {
            let _ = self.samples.send(SamplerMessage::Round { round, lost: self.lost });
        }
        let _ = self.samples.send(SamplerMessage::End);
    }
}

/// The next multiple of the period that lies ahead, and how many were missed: a late round doesn't
/// shift the ones after it, and missed ones are skipped rather than read in a burst.
fn next_due(due: Instant, period: Duration, now: Instant) -> (Instant, u64) {
    let behind = now.saturating_duration_since(due).as_nanos();
    // Without a period there is no beat to miss.
    let missed = behind.checked_div(period.as_nanos()).unwrap_or(0);
    let missed = u32::try_from(missed).unwrap_or(u32::MAX - 1);
    (due + period.saturating_mul(missed + 1), missed.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::sources::scripted::ScriptedSource;
    use crate::threads::ThreadReading;
    use crate::units::WallNs;

    fn rounds(n: u64) -> ScriptedSource {
        ScriptedSource::new((0..n).map(|i| Round { at: WallNs(i), readings: vec![], ..Round::default() }))
    }

    fn drain(sampler: &Sampler) -> (Vec<u64>, u64) {
        let mut times = Vec::new();
        let mut last_lost = 0;
        while let SamplerMessage::Round { round, lost } = sampler.samples().recv().unwrap() {
            times.push(round.at.0);
            last_lost = lost;
        }
        (times, last_lost)
    }

    #[test]
    fn every_round_of_a_source_arrives_in_order() {
        let sampler = Sampler::start(rounds(50), Duration::ZERO, LastRound::default()).unwrap();
        assert_eq!(drain(&sampler), ((0..50).collect(), 0));
    }

    #[test]
    fn a_full_channel_loses_rounds_and_counts_them() {
        let sampler = Sampler::start(rounds(CAPACITY as u64 + 100), Duration::ZERO, LastRound::default()).unwrap();
        while !sampler.samples().is_full() {
            thread::yield_now();
        }
        // The thread goes on without a taker, so it reaches the end of the source; what it could
        // not place is gone from the channel, but for the last round, which has the totals.
        let (times, lost) = drain(&sampler);
        assert_eq!(times[..CAPACITY], (0..CAPACITY as u64).collect::<Vec<_>>()[..]);
        assert_eq!(times.last(), Some(&(CAPACITY as u64 + 99)));
        assert_eq!(times.len() as u64 + lost, CAPACITY as u64 + 100);
    }

    #[test]
    fn the_last_round_waits_for_room_however_long() {
        let sampler = Sampler::start(rounds(CAPACITY as u64 + 1), Duration::ZERO, LastRound::default()).unwrap();
        while !sampler.samples().is_full() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        assert_eq!(drain(&sampler), ((0..=CAPACITY as u64).collect(), 0));
    }

    #[test]
    fn threads_that_ended_before_a_lost_round_are_in_the_next() {
        let snapshot = |at: u64| {
            let ended_threads = vec![ThreadReading { began: at, ..ThreadReading::default() }];
            Some(Arc::new(ThreadSnapshot { at_ns: WallNs(at), ended_threads, ..ThreadSnapshot::default() }))
        };
        let all = CAPACITY as u64 + 9;
        let rounds = (0..all).map(|at| Round { at: WallNs(at), threads: snapshot(at), ..Round::default() });
        let sampler = Sampler::start(ScriptedSource::new(rounds), Duration::ZERO, LastRound::default()).unwrap();
        while !sampler.samples().is_full() {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(20));
        let mut ended = Vec::new();
        while let SamplerMessage::Round { round, .. } = sampler.samples().recv().unwrap() {
            ended.extend(round.threads.iter().flat_map(|one| &one.ended_threads).map(|thread| thread.began));
        }
        ended.sort_unstable();
        assert_eq!(ended, (0..all).collect::<Vec<_>>());
    }

    #[test]
    fn stop_reads_a_last_round() {
        let last_round = LastRound::default();
        let sampler = Sampler::start(rounds(1), Duration::from_secs(3600), last_round.clone()).unwrap();
        assert_eq!(last_round.at(), u64::MAX, "it isn't known yet");
        sampler.request(SamplerRequest::Finish);
        assert_eq!(drain(&sampler), (vec![0], 0));
        let told = last_round.at();
        last_round.begin();
        assert!(told > 0 && told <= last_round.at(), "{told}");
    }

    #[test]
    fn a_late_round_skips_missed_periods_and_keeps_the_beat() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        assert_eq!(next_due(start, ms(10), start + ms(1)), (start + ms(10), 0));
        assert_eq!(next_due(start, ms(10), start + ms(35)), (start + ms(40), 3));
        assert_eq!(next_due(start, ms(10), start + ms(10)), (start + ms(20), 1));
        assert_eq!(next_due(start, Duration::ZERO, start + ms(5)), (start, 0));
    }

    #[test]
    fn dropping_a_sampler_ends_its_thread() {
        struct TellsItsEnd(ScriptedSource, Arc<AtomicBool>);
        impl CounterSource for TellsItsEnd {
            fn read(&mut self) -> Next {
                self.0.read()
            }
        }
        impl Drop for TellsItsEnd {
            fn drop(&mut self) {
                self.1.store(true, Ordering::Relaxed);
            }
        }
        let has_ended = Arc::new(AtomicBool::new(false));
        let source = TellsItsEnd(rounds(1_000_000), Arc::clone(&has_ended));
        drop(Sampler::start(source, Duration::ZERO, LastRound::default()).unwrap());
        assert!(has_ended.load(Ordering::Relaxed), "the thread had its source");
    }
}
