//! Adds what the threads of a target do to the rounds of another source.

use std::time::{Duration, Instant};

use super::perf::TargetKind;
use super::{CounterSource, Next, Round, process};
use crate::host::HostFiles;
use crate::threads::{LiveThreads, ThreadReader, ThreadTarget};

/// A source whose rounds have a snapshot of the target's threads once an interval.
pub struct Watched<S> {
    inner: S,
    /// Until threads are read.
    reader: Option<ThreadReader>,
    /// Whether the target is a copy of this process until it executes its command.
    awaits_exec: bool,
    started: Instant,
    interval: Duration,
    live: Option<LiveThreads>,
}

impl<S> Watched<S> {
    /// Reads the threads of `target` every `interval` from [`start_clock`](CounterSource::start_clock) on; those of a
    /// command once it [has executed](CounterSource::has_executed).
    pub fn new(inner: S, target: ThreadTarget, interval: Duration) -> Self {
        let awaits_exec = matches!(target, ThreadTarget::Family(_));
        let reader = Some(ThreadReader::new(HostFiles::here(), target).with_ended());
        Self { inner, reader, awaits_exec, started: Instant::now(), interval, live: None }
    }

    fn read_threads(&mut self) {
        if let Some(reader) = self.reader.take() {
            // Without a thread more, the counts are still there.
            self.live = LiveThreads::start(reader, self.started, self.interval).ok();
        }
    }
}

/// The threads of a target; `None` where they can't be told from others: those of a control group and of single CPUs,
/// and of processes that have other numbers in /proc.
pub fn threads_of(kind: &TargetKind, cpus: Option<&[u32]>) -> Option<ThreadTarget> {
    if !matches!(kind, TargetKind::Everyone) && !process::has_proc_of_this_namespace() {
        return None;
    }
    let all = |pids: &[nix::unistd::Pid]| pids.iter().map(|pid| pid.as_raw()).collect();
    match (kind, cpus) {
        (_, Some(_)) | (TargetKind::Cgroup(_), None) => None,
        (TargetKind::Everyone, None) => Some(ThreadTarget::Machine),
        (TargetKind::Command(pid), None) => Some(ThreadTarget::Family(pid.as_raw())),
        (TargetKind::Processes(pids), None) => Some(ThreadTarget::Processes(all(pids))),
        (TargetKind::Threads(tids), None) => Some(ThreadTarget::Threads(all(tids))),
    }
}

impl<S: CounterSource> CounterSource for Watched<S> {
    fn read(&mut self) -> Next {
        match self.inner.read() {
            Next::Round(mut round) => {
                round.threads = self.live.as_ref().and_then(LiveThreads::take);
                Next::Round(round)
            }
            Next::Ended => Next::Ended,
        }
    }

    fn read_last(&mut self) -> Next {
        let next = self.inner.read_last();
        let last = self.live.take().and_then(LiveThreads::finish);
        match next {
            Next::Round(round) => Next::Round(Round { threads: last, ..round }),
            Next::Ended => Next::Ended,
        }
    }

    fn enable(&mut self) {
        self.inner.enable();
    }

    fn start_clock(&mut self, start: Instant) {
        self.inner.start_clock(start);
        self.started = start;
        match &mut self.reader {
            Some(reader) if self.awaits_exec => reader.note_release(),
            _ => self.read_threads(),
        }
    }

    fn has_executed(&mut self) {
        self.inner.has_executed();
        self.read_threads();
    }

    fn beat(&self) -> Option<Duration> {
        self.inner.beat()
    }

    fn tick(&mut self) {
        self.inner.tick();
    }

    fn end(&mut self) {
        self.live = None;
        self.inner.end();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use nix::unistd::Pid;

    use super::*;

    /// Rounds without end.
    struct Endless;

    impl CounterSource for Endless {
        fn read(&mut self) -> Next {
            Next::Round(Round::default())
        }
    }

    #[test]
    fn rounds_have_snapshots_from_the_start_of_the_clock_to_the_end() {
        let me = i32::try_from(std::process::id()).unwrap();
        let mut source = Watched::new(Endless, ThreadTarget::Processes(vec![me]), Duration::ZERO);
        assert_eq!(source.read(), Next::Round(Round::default()));
        source.start_clock(Instant::now());
        let snapshot = loop {
            if let Next::Round(Round { threads: Some(snapshot), .. }) = source.read() {
                break snapshot;
            }
        };
        assert!(snapshot.threads.iter().any(|thread| thread.tid == me));
        source.end();
        assert_eq!(source.read(), Next::Round(Round::default()));
    }

    #[test]
    fn the_last_round_has_what_the_threads_did_until_then() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let watch = |target| {
            let mut source = Watched::new(Endless, target, Duration::from_secs(3600));
            source.start_clock(Instant::now());
            source.has_executed();
            while !matches!(source.read(), Next::Round(Round { threads: Some(_), .. })) {}
            source
        };
        let has_child = |next: &Next| match next {
            Next::Round(Round { threads: Some(last), .. }) => last.threads.iter().any(|thread| thread.tid == pid),
            _ => false,
        };
        let (mut stopped, mut ended) = (watch(ThreadTarget::Family(pid)), watch(ThreadTarget::Processes(vec![pid])));
        assert!(has_child(&stopped.read_last()));
        child.kill().unwrap();
        child.wait().unwrap();
        // It is told as it was seen last, once.
        assert!(has_child(&ended.read_last()) && !has_child(&ended.read_last()));
    }

    #[test]
    fn targets_have_threads_where_they_can_be_told() {
        let pid = Pid::from_raw(7);
        let of = |kind| threads_of(&kind, None);
        assert_eq!(of(TargetKind::Command(pid)), Some(ThreadTarget::Family(7)));
        assert_eq!(of(TargetKind::Processes(vec![pid])), Some(ThreadTarget::Processes(vec![7])));
        assert_eq!(of(TargetKind::Threads(vec![pid])), Some(ThreadTarget::Threads(vec![7])));
        assert_eq!(
            (of(TargetKind::Everyone), threads_of(&TargetKind::Everyone, Some(&[0]))),
            (Some(ThreadTarget::Machine), None)
        );
    }
}
