//! Finds what of a recording a range of times has.

use std::io::{self, Write};

use super::{Recorder, Recording};
use crate::regions::RegionRange;
use crate::sources::RecordedRound;
use crate::stacks::SampleRange;
use crate::units::WallNs;

/// A part of a recording: what comes after `from`, up to and with `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The time before it.
    pub from: WallNs,
    /// Its end.
    pub to: WallNs,
}

impl TimeRange {
    /// The time between two others, whichever is the earlier.
    pub fn between(one: WallNs, other: WallNs) -> Self {
        Self { from: one.min(other), to: one.max(other) }
    }
}

/// How many rounds of a recording are before a time. One that is nearer to it than that before it counts as well:
/// intervals end a little later than their lengths say.
pub fn rounds_until(rounds: &[RecordedRound], time: WallNs) -> usize {
    let next = rounds.partition_point(|recorded| recorded.round.at <= time);
    let at = |place: usize| rounds.get(place).map(|recorded| recorded.round.at);
    let before = next.checked_sub(1).and_then(at).unwrap_or_default();
    let is_nearer = at(next).is_some_and(|later| later - time < time - before);
    next + usize::from(is_nearer)
}

impl Recording {
    /// The places of the rounds that a range has; `None` if nothing was read in it.
    pub fn rounds_in(&self, range: TimeRange) -> Option<std::ops::Range<usize>> {
        let [first, last] = [range.from, range.to].map(|time| rounds_until(&self.rounds, time));
        (first < last).then_some(first..last)
    }

    /// A range between the readings that are nearest to its ends, so that samples are of the same time as counts. What
    /// was sampled after the last reading belongs to a range that reaches as far.
    pub fn whole_intervals(&self, range: TimeRange) -> Option<TimeRange> {
        let places = self.rounds_in(range)?;
        let at = |place: usize| self.rounds.get(place).map(|recorded| recorded.round.at);
        let from = places.start.checked_sub(1).and_then(at).unwrap_or(WallNs(0));
        let to = at(places.end - 1).filter(|_| places.end < self.rounds.len());
        Some(TimeRange { from, to: to.unwrap_or(range.to) })
    }

    /// Writes the samples and regions after a time, if it isn't `None`, up to and with another, and what went missing
    /// of them.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn write_profile<W: Write>(
        &self,
        after: Option<WallNs>,
        until: WallNs,
        recorder: &mut Recorder<W>,
    ) -> io::Result<()> {
        if let Some(stacks) = &self.stacks {
            recorder.sampled(&stacks.sampled)?;
            let mut range = SampleRange::after(after, Some(&stacks.sampled));
            let batches = stacks.batches.iter().take_while(|batch| !SampleRange::is_over(batch, until));
            batches.map(|batch| range.take(batch, until)).try_for_each(|batch| recorder.stacks(&batch))?;
        }
        let mut range = RegionRange::after(after);
        let regions = self.regions.iter().take_while(|batch| batch.at <= until);
        regions.map(|batch| range.take(batch)).try_for_each(|batch| recorder.regions(&batch))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::run::{End, Header, MeasuredTarget};
    use crate::sources::Round;

    fn at(ms: u64) -> RecordedRound {
        RecordedRound { round: Round { at: WallNs(ms * 1_000_000), ..Round::default() }, lost: 0 }
    }

    fn range(from: u64, to: u64) -> TimeRange {
        TimeRange { from: WallNs(from * 1_000_000), to: WallNs(to * 1_000_000) }
    }

    #[test]
    fn rounds_that_end_a_little_late_are_of_the_time_before() {
        let rounds = [at(1001), at(2002), at(3003)];
        let until = |ms: u64| rounds_until(&rounds, WallNs(ms * 1_000_000));
        assert_eq!([0, 400, 1000, 1001, 1400, 1600, 3000, 9000].map(until), [0, 0, 1, 1, 1, 2, 3, 3]);
        assert_eq!(rounds_until(&[], WallNs(5)), 0);
    }

    #[test]
    fn a_range_lies_between_the_readings_that_are_nearest() {
        let header = Header::new(MeasuredTarget::File { path: "x".into() }, "scale");
        let rounds = [at(0), at(1001), at(2002), at(2300)].into();
        let recording = Recording { header, rounds, stacks: None, regions: Vec::new(), end: None, cut: None };
        let whole = |from, to| recording.whole_intervals(range(from, to));
        assert_eq!(whole(1000, 1900), Some(range(1001, 2002)));
        assert_eq!(whole(0, 3000), Some(range(0, 3000)));
        assert_eq!((whole(1100, 1200), whole(3000, 4000)), (None, None), "nothing was read in it");
        assert_eq!(TimeRange::between(WallNs(9), WallNs(4)), TimeRange { from: WallNs(4), to: WallNs(9) });
        let end = Some(End { at_ns: WallNs(5), ..End::default() });
        let empty = Recording { rounds: [].into(), end, ..recording.clone() };
        assert_eq!((empty.rounds_in(range(0, 9)), empty.length()), (None, WallNs(5)));
        assert_eq!(recording.length(), WallNs(2_300_000_000));
    }
}
