//! Keeps the rounds of the whole run, the oldest more sparsely, for a file and for a frozen view to continue
//! from.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::PartialFile;
use crate::recording::Recorder;
use crate::run::{End, Header};
use crate::sources::{RecordedRound, Round};
use crate::threads::ThreadSnapshot;
use crate::units::WallNs;

/// Rounds that are kept: an hour at the default period. Readings are cumulative, so leaving out
/// rounds loses time resolution and no count.
const MAX_ROUNDS: usize = 36_000;

/// Readings that are kept, so that thousands of events don't take all memory: 64 MiB of them.
const MAX_READINGS: usize = 2 << 20;

/// Snapshots of threads that are kept: each may have a thousand.
const MAX_SNAPSHOTS: usize = 256;

/// A recording that was saved.
#[derive(Debug)]
pub(crate) struct SavedRecording {
    pub(crate) path: PathBuf,
    /// The last time whose samples aren't in it, if any aren't.
    pub(crate) left_out: Option<WallNs>,
}

/// The rounds that were read.
#[derive(Debug, Default)]
pub(crate) struct RoundBuffer {
    rounds: VecDeque<RecordedRound>,
    /// How many of them have a snapshot of threads.
    snapshots: usize,
    /// How many of them, from the newest on, the view hasn't taken.
    behind: usize,
    /// The least time between old rounds, once not all can be kept.
    apart: WallNs,
    pub(crate) end: Option<End>,
}

impl RoundBuffer {
    pub(crate) fn push(&mut self, newest: RecordedRound) {
        let most = (MAX_READINGS / newest.round.readings.len().max(1)).clamp(4, MAX_ROUNDS);
        if self.rounds.len() >= most {
            self.thin();
        }
        self.snapshots += usize::from(newest.round.threads.is_some());
        self.rounds.push_back(newest);
        self.behind = (self.behind + 1).min(self.rounds.len());
        if self.snapshots > MAX_SNAPSHOTS {
            self.thin_snapshots();
        }
    }

    /// Leaves out every other snapshot of the older half. What ended before it is told by the next.
    fn thin_snapshots(&mut self) {
        let mut left_out = None;
        let with_snapshot = self.rounds.iter_mut().filter(|recorded| recorded.round.threads.is_some());
        for (place, recorded) in with_snapshot.enumerate() {
            let threads = merged(left_out.take(), recorded.round.threads.take());
            let stays = place % 2 == 0 || place >= MAX_SNAPSHOTS / 2;
            *(if stays { &mut recorded.round.threads } else { &mut left_out }) = threads;
        }
        self.count_snapshots();
    }

    fn count_snapshots(&mut self) {
        self.snapshots = self.rounds.iter().filter(|recorded| recorded.round.threads.is_some()).count();
    }

    /// Leaves out rounds of the older half that are too close to the one before, by a distance that
    /// grows until there is room again; so all of the old time is equally sparse.
    fn thin(&mut self) {
        let before = self.rounds.len();
        let older = before / 2;
        loop {
            self.leave_out(older - (before - self.rounds.len()));
            if self.rounds.len() <= before - before.div_ceil(8) {
                return;
            }
            self.apart = WallNs((2 * self.apart.0).max(1));
        }
    }

    fn leave_out(&mut self, older: usize) {
        let (apart, taken) = (self.apart, self.rounds.len() - self.behind);
        let (mut index, mut last, mut left_out) = (0, None, None);
        self.rounds.retain_mut(|RecordedRound { round, .. }| {
            let stays = index >= older || last.is_none_or(|last| round.at - last >= apart);
            let threads = merged(left_out.take(), round.threads.take());
            if stays {
                (last, round.threads) = (Some(round.at), threads);
            } else {
                self.behind -= usize::from(index >= taken);
                left_out = threads;
            }
            index += 1;
            stays
        });
        self.count_snapshots();
    }

    /// The rounds that the view has taken, oldest first.
    pub(crate) fn seen(&self) -> impl DoubleEndedIterator<Item = &Round> {
        self.rounds.range(..self.rounds.len() - self.behind).map(|recorded| &recorded.round)
    }

    /// The newest round.
    pub(crate) fn last(&self) -> Option<&RecordedRound> {
        self.rounds.back()
    }

    /// The time of the newest round.
    pub(crate) fn now(&self) -> WallNs {
        self.last().map_or(WallNs(0), |recorded| recorded.round.at)
    }

    /// The rounds that the view hasn't taken; it has them now.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = &RecordedRound> {
        let first = self.rounds.len() - self.behind;
        self.behind = 0;
        self.rounds.iter().skip(first)
    }

    /// Writes them to a new file in `folder`: `perfprop.jsonl`, or `perfprop-1.jsonl` and so on. With them goes what
    /// `write_profile` writes, which may leave out samples until a time.
    ///
    /// # Errors
    /// Returns the operating system's error; also fails if there is no round yet.
    pub(crate) fn save(
        &self,
        folder: &Path,
        header: &Header,
        write_profile: impl FnOnce(&mut Recorder<&mut dyn Write>) -> io::Result<Option<WallNs>>,
    ) -> io::Result<SavedRecording> {
        if self.rounds.is_empty() {
            return Err(io::Error::other("nothing has been counted yet"));
        }
        let mut part = PartialFile::create_new(folder, "perfprop", "jsonl")?;
        let mut recorder = Recorder::new(&mut part as &mut dyn Write, header)?;
        for RecordedRound { round, lost } in &self.rounds {
            recorder.round(round, *lost)?;
        }
        let left_out = write_profile(&mut recorder)?;
        let end = match (&self.end, self.last()) {
            (Some(end), _) => end.clone(),
            (None, Some(RecordedRound { round: last, lost })) => {
                End { at_ns: last.at, lost_rounds: *lost, totals: last.readings.clone(), ..End::default() }
            }
            (None, None) => End::default(),
        };
        recorder.end(&end)?;
        Ok(SavedRecording { path: part.put()?, left_out })
    }
}

/// The later of two snapshots, with what ended before the earlier one.
fn merged(earlier: Option<Arc<ThreadSnapshot>>, later: Option<Arc<ThreadSnapshot>>) -> Option<Arc<ThreadSnapshot>> {
    match (earlier, later) {
        (Some(earlier), Some(mut later)) => {
            ThreadSnapshot::take_ended(&mut later, &earlier);
            Some(later)
        }
        (earlier, later) => later.or(earlier),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::ThreadReading;

    fn round(at: u64, events: usize) -> RecordedRound {
        let round = Round { at: WallNs(at), readings: vec![None; events], ..Round::default() };
        RecordedRound { round, lost: 0 }
    }

    #[test]
    fn old_rounds_get_sparse_and_the_first_and_the_newest_stay() {
        let mut buffer = RoundBuffer::default();
        for at in 0..10 * MAX_ROUNDS as u64 {
            buffer.push(round(at, 1));
            if at % 1000 == 0 {
                buffer.take().for_each(drop);
            }
        }
        let times: Vec<u64> = buffer.rounds.iter().map(|recorded| recorded.round.at.0).collect();
        assert!(times.len() <= MAX_ROUNDS && times.is_sorted() && times[0] == 0);
        assert_eq!(
            times[times.len() - MAX_ROUNDS / 4..],
            (10 * MAX_ROUNDS as u64 - MAX_ROUNDS as u64 / 4..10 * MAX_ROUNDS as u64).collect::<Vec<_>>()
        );
        let middle = times.partition_point(|&at| at < 5 * MAX_ROUNDS as u64);
        assert!(middle > 100, "{middle} rounds of the first half");
        assert_eq!(buffer.take().count(), 999);
    }

    #[test]
    fn what_a_frozen_view_has_not_taken_gets_sparse_too() {
        let mut buffer = RoundBuffer::default();
        for at in 0..MAX_ROUNDS as u64 + 1 {
            buffer.push(round(at, 1));
        }
        assert_eq!(buffer.rounds.len(), MAX_ROUNDS - MAX_ROUNDS / 4 + 1);
        assert_eq!(buffer.take().count(), buffer.rounds.len());
    }

    #[test]
    fn many_events_keep_fewer_rounds() {
        let mut buffer = RoundBuffer::default();
        for at in 0..10 {
            buffer.push(round(at, MAX_READINGS / 4));
        }
        assert_eq!(buffer.rounds.iter().map(|recorded| recorded.round.at.0).collect::<Vec<_>>(), [0, 7, 8, 9]);
    }

    /// The times of the snapshots that are kept, and how many ended threads they have.
    fn snapshots(buffer: &RoundBuffer) -> (Vec<u64>, usize) {
        let all = || buffer.rounds.iter().filter_map(|recorded| recorded.round.threads.as_ref());
        (all().map(|snapshot| snapshot.at_ns.0).collect(), all().map(|snapshot| snapshot.ended_threads.len()).sum())
    }

    #[test]
    fn snapshots_get_sparse_and_keep_what_ended() {
        let mut buffer = RoundBuffer::default();
        for at in 0..3 * MAX_SNAPSHOTS as u64 {
            let ended = ThreadReading { began: at, ..ThreadReading::default() };
            let snapshot =
                ThreadSnapshot { at_ns: WallNs(at), ended_threads: vec![ended], ..ThreadSnapshot::default() };
            let mut round = round(at, 1);
            round.round.threads = (at % 3 == 0).then(|| Arc::new(snapshot));
            buffer.push(round);
            let wanted = at as usize / 3 + 1;
            let (times, ended) = snapshots(&buffer);
            assert!(ended == wanted && times.len() == buffer.snapshots && buffer.snapshots <= MAX_SNAPSHOTS, "{at}");
            assert!(times[0] == 0 && times.is_sorted() && times.last() == Some(&(at / 3 * 3)));
        }
        for at in 0..2 * MAX_ROUNDS as u64 {
            buffer.push(round(3 * MAX_SNAPSHOTS as u64 + at, 1));
        }
        assert_eq!(snapshots(&buffer).1, MAX_SNAPSHOTS, "rounds that are left out leave their snapshots");
    }

    #[test]
    fn each_round_is_taken_once() {
        let mut buffer = RoundBuffer::default();
        assert_eq!(buffer.take().count(), 0);
        buffer.push(round(1, 1));
        buffer.push(round(2, 1));
        assert_eq!(buffer.take().map(|recorded| recorded.round.at.0).collect::<Vec<_>>(), [1, 2]);
        buffer.push(round(3, 1));
        assert_eq!(buffer.take().map(|recorded| recorded.round.at.0).collect::<Vec<_>>(), [3]);
        assert_eq!((buffer.take().count(), buffer.now()), (0, WallNs(3)));
    }
}
