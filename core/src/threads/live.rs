//! Reads the threads of a target while it runs, on a thread of its own.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::{ThreadReader, ThreadSnapshot};

/// How often threads are looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(50);
/// Reading takes one part in so many of the time at most, and looks alone, of which fewer say nearly as much, a smaller one.
const MOST_TIME: u32 = 100;
const MOST_LOOKS: u32 = 400;

/// Reading that goes on; dropping it ends it.
#[derive(Debug)]
pub struct LiveThreads {
    newest: Arc<Mutex<Option<Arc<ThreadSnapshot>>>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LiveThreads {
    /// Begins to read, with a snapshot every `interval`. Times count from `start`.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(reader: ThreadReader, start: Instant, interval: Duration) -> io::Result<Self> {
        let newest = Arc::default();
        let (stop, stopped) = bounded(0);
        let place = Arc::clone(&newest);
        let work = move || run(reader, (start, interval), &place, &stopped);
        let thread = thread::Builder::new().name("perfprop-threads".into()).spawn(work)?;
        Ok(Self { newest, stop: Some(stop), thread: Some(thread) })
    }

    /// The newest snapshot, once.
    pub fn take(&self) -> Option<Arc<ThreadSnapshot>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for LiveThreads {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    mut reader: ThreadReader,
    (start, interval): (Instant, Duration),
    newest: &Mutex<Option<Arc<ThreadSnapshot>>>,
    stopped: &Receiver<()>,
) {
    let mut due = Duration::ZERO;
    loop {
        let began = Instant::now();
        let at = began.saturating_duration_since(start);
        if at >= due {
            let snapshot = reader.snapshot(at.into());
            // A late one doesn't make short ones after it.
            due = at.max(due) + interval;
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(snapshot));
        } else {
            reader.look();
        }
        let took = began.elapsed();
        let pause = pause(took, due.saturating_sub(at + took));
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// How long nothing is read after reading took so long, where the next snapshot is due after another time.
fn pause(took: Duration, due: Duration) -> Duration {
    let next_look = LOOK_PERIOD.max(took * MOST_LOOKS);
    next_look.min(due).max(took * MOST_TIME)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::ThreadTarget;
    use super::*;
    use crate::host::HostFiles;

    #[test]
    fn reading_takes_a_small_part_of_the_time() {
        let ms = Duration::from_millis;
        // Few threads: looks every 50 ms. Many: every 400 ms, with snapshots in time.
        assert_eq!([pause(ms(0), ms(900)), pause(ms(1), ms(900)), pause(ms(1), ms(250))], [ms(50), ms(400), ms(250)]);
        // Very many: a snapshot comes late.
        assert_eq!([pause(ms(20), ms(900)), pause(ms(20), ms(0))], [ms(2000), ms(2000)]);
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
