//! Reads the threads of a target while it runs, on a thread of its own.
//!
//! ```text
//! rounds      |    |    |    |    |    |    |    |    |    |    |    |
//! intervals   |--------------------|--------------------|-------- ...
//! snapshots   *                  *                    *               a little before, to be there with the round
//! ```

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use nix::time::ClockId;

use super::{ThreadReader, ThreadSnapshot};

/// How often threads are looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Reading takes one part in so many of a CPU at most, and looks alone, of which fewer say nearly as much, a smaller
/// one.
const MOST_TIME: u32 = 100;
const MOST_LOOKS: u32 = 800;
/// The longest pause, in intervals of a second or more: an older list tells nobody anything.
const LONGEST_PAUSE: u32 = 3;
/// When the second snapshot is begun at the latest: with two of them there is something to show.
const SECOND_SNAPSHOT: Duration = Duration::from_millis(160);

/// How long before the end of an interval a snapshot is begun at least.
const LEAST_LEAD: Duration = Duration::from_millis(10);

/// Reading that goes on; dropping it ends it.
#[derive(Debug)]
pub struct LiveThreads {
    newest: Arc<Mutex<NewestSnapshot>>,
    stop: Option<Sender<LastSnapshot>>,
    thread: Option<JoinHandle<()>>,
}

/// The newest snapshot until a round takes it, with what those before it said that no round took.
#[derive(Debug, Default)]
struct NewestSnapshot {
    waiting: Option<Arc<ThreadSnapshot>>,
    /// Whether the first snapshot has come.
    has_begun: bool,
    /// Whether what waits is the first one.
    is_first: bool,
}

impl NewestSnapshot {
    fn put(&mut self, mut newest: ThreadSnapshot) {
        let earlier = self.waiting.take();
        if self.is_first {
            newest.first.clone_from(&earlier);
        }
        self.waiting = ThreadSnapshot::merged(earlier, Some(Arc::new(newest)));
        self.is_first = !self.has_begun;
        self.has_begun = true;
    }

    fn take(&mut self) -> Option<Arc<ThreadSnapshot>> {
        self.is_first = false;
        self.waiting.take()
    }
}

/// Asks for a snapshot that is the last.
#[derive(Clone, Copy, Debug)]
struct LastSnapshot;

impl LiveThreads {
    /// Begins to read, with a snapshot for the end of every `interval`. Times count from `start`.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(reader: ThreadReader, start: Instant, interval: Duration) -> io::Result<Self> {
        let newest = Arc::<Mutex<NewestSnapshot>>::default();
        let (stop, stopped) = bounded(1);
        let place = Arc::clone(&newest);
        let work = move || run(reader, (start, interval), &place, &stopped);
        let thread = thread::Builder::new().name("perfprop-threads".into()).spawn(work)?;
        Ok(Self { newest, stop: Some(stop), thread: Some(thread) })
    }

    /// The newest snapshot, once, with what ended before those that weren't taken, and the very first if that wasn't.
    pub fn take(&self) -> Option<Arc<ThreadSnapshot>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Reads a last time, ends, and gives the newest snapshot.
    pub fn finish(mut self) -> Option<Arc<ThreadSnapshot>> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(LastSnapshot);
        }
        self.join();
        self.take()
    }

    fn join(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for LiveThreads {
    fn drop(&mut self) {
        self.join();
    }
}

fn run(
    mut reader: ThreadReader,
    (start, interval): (Instant, Duration),
    newest: &Mutex<NewestSnapshot>,
    stopped: &Receiver<LastSnapshot>,
) {
    let put = |snapshot| newest.lock().unwrap_or_else(PoisonError::into_inner).put(snapshot);
    let mut due = Duration::ZERO;
    // The first two are not held back by what they cost.
    let mut unpaid = 2_u32;
    // A snapshot is a look, and more that has to be paid for by itself.
    let mut cost_of_look = Duration::MAX;
    loop {
        let (began, cpu_began) = (start.elapsed(), own_cpu_time());
        let is_snapshot = began >= due;
        if is_snapshot {
            put(reader.snapshot(began.into()));
            unpaid = unpaid.saturating_sub(1);
        } else {
            reader.look();
        }
        let (now, cost) = (start.elapsed(), own_cpu_time().saturating_sub(cpu_began));
        if is_snapshot {
            let paid = if unpaid > 0 { now } else { now + longest(cost * MOST_TIME, interval) };
            due = next_snapshot(began, interval, now - began, paid);
            if unpaid > 0 {
                due = due.min(began + SECOND_SNAPSHOT);
            }
        }
        cost_of_look = if is_snapshot { cost_of_look.min(cost) } else { cost };
        let due_in = due.saturating_sub(now);
        let pause = if unpaid > 0 { LOOK_PERIOD.min(due_in) } else { pause(cost_of_look, due_in, interval) };
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(LastSnapshot) => return put(reader.snapshot(start.elapsed().into())),
        }
    }
}

/// The CPU time of this thread: on a busy machine reading takes far longer than it costs.
fn own_cpu_time() -> Duration {
    ClockId::CLOCK_THREAD_CPUTIME_ID.now().map_or(Duration::ZERO, Duration::from)
}

fn longest(pause: Duration, interval: Duration) -> Duration {
    pause.min(LONGEST_PAUSE * interval.max(Duration::from_secs(1)))
}

/// When to begin the snapshot after one that began `at` and took so long: before the end of an interval, so that it is
/// there by then, and not before the last one is paid for. A late one doesn't make short ones after it.
fn next_snapshot(at: Duration, interval: Duration, took: Duration, paid: Duration) -> Duration {
    let lead = (LEAST_LEAD + 2 * took).min(interval / 4);
    let ended = (at + interval / 2).max(paid + lead).as_nanos().checked_div(interval.as_nanos());
    let Some(ended) = ended else { return paid };
    interval.saturating_mul(u32::try_from(ended + 1).unwrap_or(u32::MAX)).saturating_sub(lead)
}

/// How long nothing is read after reading cost so much, where the next snapshot is due after another time.
fn pause(cost: Duration, due: Duration, interval: Duration) -> Duration {
    longest(LOOK_PERIOD.max(cost * MOST_LOOKS), interval).min(due)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::{ThreadReading, ThreadTarget};
    use super::*;
    use crate::host::HostFiles;
    use crate::units::WallNs;

    #[test]
    fn reading_takes_a_small_part_of_a_cpu() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        let pauses = [(0, 900), (1, 900), (1, 250), (40, 9000)].map(|(cost, due)| pause(ms(cost), ms(due), second));
        // Few threads: looks every 50 ms. Many: every 800 ms, with snapshots in time. Very many: none in three
        // intervals.
        assert_eq!(pauses, [ms(50), ms(800), ms(250), ms(3000)]);
    }

    #[test]
    fn a_snapshot_is_there_at_the_end_of_an_interval() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        let next = |at: u64, took: u64, paid: u64| next_snapshot(ms(at), second, ms(took), ms(paid)).as_millis();
        assert_eq!([next(0, 5, 5), next(980, 5, 985), next(1980, 45, 2025)], [980, 1980, 2900]);
        // On a busy machine it comes late, and the next one in time; one that came very late is that of the next
        // interval.
        assert_eq!([next(1300, 0, 1300), next(1600, 0, 1600), next(1600, 600, 2200)], [1990, 2990, 2750]);
        // Very many threads: what a snapshot costs is paid first.
        assert_eq!(next(980, 20, 3000), 3950);
        assert_eq!(next_snapshot(ms(7), Duration::ZERO, ms(1), ms(8)), ms(8));
    }

    #[test]
    fn a_wait_for_a_cpu_costs_nothing() {
        let before = own_cpu_time();
        thread::sleep(Duration::from_millis(60));
        assert!(own_cpu_time() - before < Duration::from_millis(50));
    }

    #[test]
    fn what_no_round_takes_is_in_the_next_snapshot() {
        let snapshot = |at: u64, ended: &[i32]| ThreadSnapshot {
            at_ns: WallNs(at),
            ended_threads: ended.iter().map(|&tid| ThreadReading { tid, ..ThreadReading::default() }).collect(),
            ..ThreadSnapshot::default()
        };
        let mut newest = NewestSnapshot::default();
        [snapshot(0, &[]), snapshot(1, &[7]), snapshot(2, &[8])].into_iter().for_each(|one| newest.put(one));
        let told = |snapshot: &ThreadSnapshot| {
            let mut ended: Vec<_> = snapshot.ended_threads.iter().map(|thread| thread.tid).collect();
            ended.sort_unstable();
            (snapshot.at_ns.0, snapshot.first.as_ref().map(|first| first.at_ns.0), ended)
        };
        // The threads that ended in between, and the beginning of their times.
        assert_eq!(told(&newest.take().unwrap()), (2, Some(0), vec![7, 8]));
        assert_eq!(newest.take(), None);
        [snapshot(3, &[9]), snapshot(4, &[10])].into_iter().for_each(|one| newest.put(one));
        assert_eq!(told(&newest.take().unwrap()), (4, None, vec![9, 10]));
    }

    #[test]
    fn the_last_snapshot_is_read_when_it_is_asked_for() {
        let me = i32::try_from(std::process::id()).unwrap();
        let reader = ThreadReader::new(HostFiles::here(), ThreadTarget::Processes(vec![me]));
        let start = Instant::now();
        let threads = LiveThreads::start(reader, start, Duration::from_secs(3600)).unwrap();
        while threads.take().is_none() {
            thread::yield_now();
        }
        let asked = start.elapsed();
        let last = threads.finish().unwrap();
        assert!(last.at_ns.0 >= u64::try_from(asked.as_nanos()).unwrap() && !last.threads.is_empty());
    }

    #[test]
    fn this_process_is_read_and_each_snapshot_is_taken_once() {
        let me = i32::try_from(std::process::id()).unwrap();
        let reader = ThreadReader::new(HostFiles::here(), ThreadTarget::Processes(vec![me]));
        let threads = LiveThreads::start(reader, Instant::now(), Duration::from_secs(3600)).unwrap();
        let snapshot = loop {
            match threads.take() {
                Some(snapshot) => break snapshot,
                None => thread::yield_now(),
            }
        };
        assert!(snapshot.threads.iter().any(|thread| (thread.pid, thread.tid) == (me, me)), "{snapshot:?}");
        assert_eq!(threads.take(), None);
    }
}
