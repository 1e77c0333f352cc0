//! Lets a monitor count a part of a recording: from one of its rounds on, up to another.
//!
//! ```text
//! rounds     |    |    |    |    |    |    |    |    |    |
//!                      base                          close
//! counted               |-----------------------------|
//! ```
//!
//! Readings are cumulative, so the round at the beginning says what had been counted before. All else is as in a replay
//! that has only the rounds after it.

use super::Monitor;
use crate::rates::Delta;
use crate::sources::{Reading, Round};
use crate::units::WallNs;

impl Monitor {
    /// Counts what comes after a round, of which only the readings are taken; from before the first round.
    #[must_use]
    pub fn beginning_after(mut self, base: &Round, lost: u64) -> Self {
        (self.began, self.now, self.closed_at) = (base.at, base.at, base.at);
        (self.lost, self.lost_noted, self.lost_before) = (lost, lost, lost);
        self.due = self.next_due();
        let own: Vec<Option<Delta>> = (0..self.tracks.len()).map(|event| self.delta(event, base)).collect();
        let _ = (self.of_added(base), self.in_all_groups(&own, base));
        for track in &mut self.tracks {
            (track.before, track.enabled_before) = (track.last, track.enabled);
        }
        self.note_uncounted(base);
        self.take_truths(base);
        for (before, truth) in self.truths_before.iter_mut().zip(&mut self.truths_now) {
            *before = truth.take().unwrap_or(0);
        }
        if let Some(snapshot) = &base.threads {
            self.threads.take(snapshot);
        }
        self
    }

    /// Ends the interval that has begun, as the end of a measurement does; nothing is said of why it ends there.
    pub fn close(&mut self) {
        if self.now > self.closed_at {
            self.close_interval();
        }
    }

    /// The time before which nothing is counted: 0 unless it is a part of a recording.
    pub fn began(&self) -> WallNs {
        self.began
    }

    /// The time up to the end of the last interval.
    pub fn shown_time(&self) -> WallNs {
        self.closed_at - self.began
    }

    /// That time without the delay in which nothing was counted.
    pub(super) fn shown_time_counted(&self) -> WallNs {
        self.closed_at - self.began.max(self.header.delay_ns)
    }

    /// How long an event was on a counter since the beginning, and how long it could have been, in ns.
    pub(super) fn times_since_beginning(&self, event: usize) -> (u64, u64) {
        let track = &self.tracks[event];
        let Reading { running, .. } = track.last;
        (running.0.saturating_sub(track.before.running.0), track.enabled.0.saturating_sub(track.enabled_before.0))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::builders::{self, SECOND, event, measured};
    use crate::estimate::EstimatorKind;
    use crate::run::{End, Header};
    use crate::sources::RecordedRound;
    use crate::threads::{ThreadReading, ThreadSnapshot};
    use crate::units::{CpuNs, CpuTime};

    const KINDS: [EstimatorKind; 3] = [EstimatorKind::Scale, EstimatorKind::Linear, EstimatorKind::Gp];

    fn header() -> Header {
        builders::header(["cycles", "L1_MISSES"].into_iter().map(|name| measured(event(name))))
    }

    fn monitor(kind: EstimatorKind) -> Monitor {
        builders::monitor(header(), vec![], kind)
    }

    /// A round each half second; each says what the two events counted in it, and how much of it the second one ran.
    fn rounds(steps: &[(u64, u64, u64)]) -> Vec<Round> {
        let mut readings = [Reading::default(); 2];
        let round = |(place, (a, b, tenths)): (usize, &(u64, u64, u64))| {
            let enabled = CpuNs(SECOND / 2);
            for (reading, (count, running)) in readings.iter_mut().zip([(a, SECOND / 2), (b, SECOND / 20 * tenths)]) {
                reading.count += count;
                reading.enabled += enabled;
                reading.running += CpuNs(running);
            }
            Round {
                at: WallNs((place as u64 + 1) * SECOND / 2),
                readings: readings.iter().copied().map(Some).collect(),
                ..Round::default()
            }
        };
        steps.iter().enumerate().map(round).collect()
    }

    /// The part of some rounds after that of a place: the monitor as it is told to begin there.
    fn part(kind: EstimatorKind, rounds: &[Round], after: usize) -> Monitor {
        let mut monitor = monitor(kind).beginning_after(&rounds[after], 0);
        for round in &rounds[after + 1..] {
            monitor.round(round, 0);
        }
        monitor.close();
        monitor
    }

    /// A replay that has only these rounds: times and readings from 0 on.
    fn alone(kind: EstimatorKind, rounds: &[Round], after: usize) -> Monitor {
        let base = &rounds[after];
        let mut monitor = monitor(kind);
        for round in &rounds[after + 1..] {
            let since = |(reading, base): (&Option<Reading>, &Option<Reading>)| {
                let (reading, base) = ((*reading)?, (*base)?);
                Some(Reading {
                    count: reading.count - base.count,
                    enabled: reading.enabled - base.enabled,
                    running: reading.running - base.running,
                })
            };
            let readings = round.readings.iter().zip(&base.readings).map(since).collect();
            monitor.round(&Round { at: round.at - base.at, readings, ..Round::default() }, 0);
        }
        monitor.close();
        monitor
    }

    /// All numbers of a monitor that a screen shows, with their errors; times since its beginning.
    fn numbers(monitor: &Monitor) -> String {
        let row = |row: super::super::Row<'_>| {
            let history: Vec<_> = row
                .history
                .iter()
                .map(|point| (point.at - monitor.began(), point.length, point.counted, point.raw, point.corrected))
                .collect();
            let measure = super::super::Measure::PerSecond;
            format!(
                "{:?} {:?} {:?} {history:?} {:?}\n",
                row.scaled,
                row.estimate.total,
                row.raw,
                measure.factor(monitor, &row)
            )
        };
        monitor.rows().map(row).collect()
    }

    #[test]
    fn a_part_by_hand() {
        // 2 s of 100 and 7, then 2 s of 300 and 5, of which the second event was on a counter half of the time.
        let steps: Vec<_> = (0..8).map(|place| if place < 4 { (100, 7, 10) } else { (300, 5, 5) }).collect();
        let part = part(EstimatorKind::Scale, &rounds(&steps), 3);
        let [cycles, misses] = [0, 1].map(|event| part.row(event).scaled.unwrap());
        assert_eq!((cycles.value, cycles.error), (1200.0, crate::rates::Error::Exact));
        assert_eq!(misses.value, 40.0);
        assert_eq!((part.intervals(), part.began(), part.shown_time()), (2, WallNs(2 * SECOND), WallNs(2 * SECOND)));
        assert_eq!(part.row(1).raw.run.run_ratio(), Some(0.5));
    }

    #[test]
    fn a_part_has_no_cpu_times_of_the_whole_run() {
        let (rounds, kind) = (rounds(&[(1, 1, 10); 4]), EstimatorKind::Scale);
        let cpu_time = Some(CpuTime { user_ns: CpuNs(SECOND), system_ns: CpuNs(SECOND) });
        let told = |mut monitor: Monitor, first: usize| {
            for round in &rounds[first..] {
                monitor.round(round, 0);
            }
            monitor.end(crate::run::End { at_ns: WallNs(2 * SECOND), cpu_time, ..crate::run::End::default() });
            monitor.ended().and_then(|end| end.cpu_time)
        };
        assert_eq!(told(monitor(kind), 0), cpu_time);
        assert_eq!(told(monitor(kind).beginning_after(&rounds[1], 0), 2), None);
    }

    #[test]
    fn what_is_lost_is_what_was_lost_in_the_part() {
        let rounds = rounds(&[(1, 1, 10); 4]);
        let mut monitor = monitor(EstimatorKind::Scale).beginning_after(&rounds[1], 5);
        assert_eq!(monitor.rounds(), (0, 0));
        monitor.round(&rounds[2], 7);
        assert_eq!(monitor.rounds(), (1, 2));
    }

    fn recorded() -> Vec<RecordedRound> {
        rounds(&[(1, 1, 10); 4]).into_iter().map(|round| RecordedRound { round, lost: 0 }).collect()
    }

    /// A snapshot after so many tenths of a second.
    fn threads(tenths: u64) -> Option<Arc<ThreadSnapshot>> {
        let (at_ns, threads) = (WallNs(tenths * SECOND / 10), vec![ThreadReading::default()]);
        Some(Arc::new(ThreadSnapshot { at_ns, threads, ..ThreadSnapshot::default() }))
    }

    #[test]
    fn a_snapshot_goes_with_the_round_that_is_nearest_to_it() {
        // Rounds at 0.5, 1.0, 1.5 and 2.0 s.
        let place = |tenths: u64, taken: Option<usize>| {
            let mut recorded = recorded();
            taken.into_iter().for_each(|place| recorded[place].round.threads = threads(1));
            RecordedRound::for_threads(&mut recorded, WallNs(tenths * SECOND / 10))
                .map(|one| one.round.at.0 * 10 / SECOND)
        };
        assert_eq!([20, 18, 17, 11, 1].map(|tenths| place(tenths, None)), [20, 20, 15, 10, 5].map(Some));
        // That has one already.
        assert_eq!(place(11, Some(1)), Some(15));
        assert_eq!(RecordedRound::for_threads(&mut [], WallNs(0)), None);
    }

    #[test]
    fn threads_are_known_from_the_newest_reading_before() {
        let mut recorded = recorded();
        let mut seconds = |before: u64| {
            (recorded[0].round.threads, recorded[3].round.threads) = (threads(before), threads(20));
            // None came with the last round before the part.
            let base = RecordedRound::last_of(&recorded[..3]).unwrap();
            let mut monitor = monitor(EstimatorKind::Scale).beginning_after(&base.round, 0);
            monitor.round(&recorded[3].round, 0);
            monitor.thread_uses(WallNs(SECOND)).map(|uses| uses.seconds)
        };
        // What came more than half of the part before it says little of it.
        assert_eq!([13, 12].map(&mut seconds), [Some(0.7), None]);
        assert_eq!(RecordedRound::last_of(&[]), None);
    }

    #[test]
    fn threads_of_a_part_are_those_between_the_snapshots_nearest_to_its_ends() {
        let mut recorded = recorded();
        let base_at = recorded[2].round.at.0 * 10 / SECOND;
        (recorded[2].round.threads, recorded[3].round.threads) = (threads(base_at - 4), threads(base_at + 1));
        let base = RecordedRound::last_of(&recorded[..3]).unwrap();
        let mut monitor = monitor(EstimatorKind::Scale).beginning_after(&base.round, 0);
        monitor.round(&recorded[3].round, 0);
        monitor.reach_to(&threads(base_at + 30).unwrap());
        assert_eq!(monitor.thread_uses(WallNs(SECOND)), None, "one snapshot is near");
        monitor.reach_to(&threads(base_at + 6).unwrap());
        assert_eq!(monitor.thread_uses(WallNs(SECOND)).map(|uses| uses.seconds), Some(0.5));
    }

    #[test]
    fn a_part_of_nothing_is_empty() {
        let part = part(EstimatorKind::Scale, &rounds(&[(1, 1, 10); 4]), 3);
        assert_eq!((part.intervals(), part.row(0).scaled), (0, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_part_is_a_replay_of_its_rounds_alone(
            steps in prop::collection::vec((0u64..1_000_000, 0u64..1_000_000, 0u64..11), 4..24),
            place in 0.0f64..1.0,
            kind in prop::sample::select(KINDS.to_vec()),
        ) {
            // At the end of an interval, so that both have the same intervals.
            let after = ((place * (steps.len() / 2) as f64) as usize).max(1) * 2 - 1;
            let rounds = rounds(&steps);
            prop_assert_eq!(numbers(&part(kind, &rounds, after)), numbers(&alone(kind, &rounds, after)));
        }

        #[test]
        fn a_part_from_before_all_is_the_whole(
            steps in prop::collection::vec((0u64..1_000_000, 0u64..1_000_000, 0u64..11), 1..24),
            kind in prop::sample::select(KINDS.to_vec()),
        ) {
            let rounds = rounds(&steps);
            let nothing = Round { readings: vec![Some(Reading::default()); 2], ..Round::default() };
            let all: Vec<_> = std::iter::once(nothing).chain(rounds.iter().cloned()).collect();
            let mut whole = monitor(kind);
            for round in &rounds {
                whole.round(round, 0);
            }
            whole.end(End::default());
            prop_assert_eq!(numbers(&part(kind, &all, 0)), numbers(&whole));
        }

        #[test]
        fn parts_add_up_to_the_whole(
            steps in prop::collection::vec((0u64..1_000_000, 0u64..1_000_000, 1u64..11), 4..24),
            place in 0.0f64..1.0,
        ) {
            let rounds = rounds(&steps);
            let nothing = Round { readings: vec![Some(Reading::default()); 2], ..Round::default() };
            let all: Vec<_> = std::iter::once(nothing).chain(rounds).collect();
            let cut = 1 + (place * (all.len() - 2) as f64) as usize;
            let count = |monitor: &Monitor| monitor.row(0).scaled.map_or(0.0, |scaled| scaled.value);
            let parts = [part(EstimatorKind::Scale, &all[..=cut], 0), part(EstimatorKind::Scale, &all, cut)];
            prop_assert_eq!(parts.iter().map(count).sum::<f64>(), count(&part(EstimatorKind::Scale, &all, 0)));
        }
    }
}
