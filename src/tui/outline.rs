//! Outlines a whole recording, for the time line below the screens.

use crate::monitor::{Measure, RecordingNotes, Severity};
use crate::plan::RowIndex;
use crate::recording::TimeRange;
use crate::run::{Header, MeasuredEvent};
use crate::sources::{Reading, RecordedRound};
use crate::units::WallNs;

/// Rounds that are kept of a recording: more than a line has cells.
const KEPT: usize = 1024;

/// A recording in a few of its rounds, and what was told of it.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// When each round was, and what its readings were, oldest first. Readings are cumulative, so that none in between
    /// is needed.
    rounds: Vec<(WallNs, Vec<Option<Reading>>)>,
    length: WallNs,
    /// When levels changed, and findings with what they are.
    changes: Vec<(WallNs, RowIndex)>,
    findings: Vec<(WallNs, Severity)>,
}

impl Outline {
    /// The outline of a recording of this length, without what was told.
    pub fn of(rounds: &[RecordedRound], length: WallNs) -> Self {
        let mut kept: Vec<(WallNs, Vec<Option<Reading>>)> = Vec::new();
        let mut due = 0;
        for (place, RecordedRound { round, .. }) in rounds.iter().enumerate() {
            // The last one too: it has all that was counted.
            if round.at.0 >= due || place + 1 == rounds.len() {
                kept.push((round.at, round.readings.clone()));
                due = round.at.0.saturating_add(length.0 / KEPT as u64);
            }
        }
        Self { rounds: kept, length, ..Self::default() }
    }

    /// The same with what was told of the recording.
    #[must_use]
    pub fn with_notes(self, notes: &RecordingNotes) -> Self {
        let changes = notes.changes.iter().map(|change| (change.at, change.event)).collect();
        let findings = notes.findings.iter().map(|noted| (noted.at, noted.finding.severity())).collect();
        Self { changes, findings, ..self }
    }

    /// How long the recording is.
    pub(super) fn length(&self) -> WallNs {
        self.length
    }

    /// When levels of an event changed; of any where there is none.
    pub(super) fn changes(&self) -> &[(WallNs, RowIndex)] {
        &self.changes
    }

    /// When something was found.
    pub(super) fn findings(&self) -> &[(WallNs, Severity)] {
        &self.findings
    }

    /// The time that a cell of so many stands for.
    pub(super) fn cell(&self, cell: usize, cells: usize) -> TimeRange {
        let at = |cell: usize| WallNs((self.length.0 as f64 * cell as f64 / cells.max(1) as f64).round() as u64);
        TimeRange { from: at(cell), to: at(cell + 1) }
    }

    /// The cell that a time is in.
    pub(super) fn place(&self, at: WallNs, cells: usize) -> usize {
        let part = at.0 as f64 / self.length.0.max(1) as f64;
        // What happened at the end of a cell is in it: intervals are named by their ends.
        ((part * cells as f64).ceil() as usize).saturating_sub(1).min(cells.saturating_sub(1))
    }

    /// The rate of an event, or of the parts of one together, in each of so many cells: what was counted, scaled, per
    /// second of the clock or of CPU time. `None` where nothing was counted. Several cells between two rounds share
    /// their rate.
    pub(super) fn rates(
        &self,
        header: &Header,
        parts: &[RowIndex],
        measure: Measure,
        cells: usize,
    ) -> Vec<Option<f64>> {
        (0..cells).map(|cell| self.rate(header, parts, measure, self.cell(cell, cells))).collect()
    }

    fn rate(&self, header: &Header, parts: &[RowIndex], measure: Measure, of: TimeRange) -> Option<f64> {
        let last = self.rounds.partition_point(|(at, _)| *at < of.to).min(self.rounds.len().checked_sub(1)?);
        let first = self.rounds.partition_point(|(at, _)| *at <= of.from).checked_sub(1).filter(|&first| first < last);
        let counted = |&event: &RowIndex| self.counted(header.events.get(event)?, event, (first, last));
        let sums =
            parts.iter().filter_map(counted).reduce(|(count, time), (more, longer)| (count + more, time + longer));
        let (count, enabled) = sums?;
        if measure != Measure::PerSecond {
            return Some(count / positive(enabled)?);
        }
        let from = first.map_or(WallNs(0), |first| self.rounds[first].0);
        Some(count / positive((self.rounds[last].0 - from).as_secs())?)
    }

    /// What an event counted between two rounds, scaled, and for how many seconds it was to be counted; `None` where it
    /// wasn't.
    fn counted(
        &self,
        measured: &MeasuredEvent,
        event: RowIndex,
        (first, last): (Option<usize>, usize),
    ) -> Option<(f64, f64)> {
        let reading = |place: usize| self.rounds[place].1.get(event).copied().flatten();
        let mut before = Reading::default();
        if let Some(reading) = first.and_then(reading) {
            measured.delta(&mut before, reading).ok()?;
        }
        let delta = measured.delta(&mut before, reading(last)?).ok()?;
        // Nothing happens while the target doesn't run.
        if delta.enabled.0 == 0 {
            return Some((0.0, 0.0));
        }
        let enabled = delta.enabled.as_secs();
        Some((delta.count as f64 / positive(delta.running.as_secs())? * enabled, enabled))
    }
}

fn positive(number: f64) -> Option<f64> {
    (number > 0.0).then_some(number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builders::{self, SECOND, event, measured};
    use crate::sources::Round;
    use crate::units::CpuNs;

    /// A round each second, in which the event counted so much; it is on a counter half of the time.
    fn outline(counts: &[u64]) -> Outline {
        let mut count = 0;
        let round = |(place, more): (usize, &u64)| {
            count += more;
            let at = (place as u64 + 1) * SECOND;
            let reading = Reading { count, enabled: CpuNs(at), running: CpuNs(at / 2) };
            let round = Round { at: WallNs(at), readings: vec![Some(reading)], ..Round::default() };
            RecordedRound { round, lost: 0 }
        };
        let rounds: Vec<_> = counts.iter().enumerate().map(round).collect();
        Outline::of(&rounds, WallNs(counts.len() as u64 * SECOND))
    }

    fn rates(outline: &Outline, cells: usize) -> Vec<Option<f64>> {
        outline.rates(&builders::header([measured(event("e"))]), &[0], Measure::PerSecond, cells)
    }

    #[test]
    fn rates_by_hand() {
        let outline = outline(&[10, 20, 0, 40]);
        // Scaled up by 2.
        assert_eq!(rates(&outline, 4), [20.0, 40.0, 0.0, 80.0].map(Some));
        assert_eq!(rates(&outline, 2), [30.0, 40.0].map(Some));
        // Cells between two rounds share their rate.
        assert_eq!(rates(&outline, 8)[..4], [20.0, 20.0, 40.0, 40.0].map(Some));
        assert_eq!(rates(&Outline::default(), 3), [None; 3]);
        assert_eq!(rates(&outline, 0), []);
    }

    #[test]
    fn parts_of_an_event_are_summed() {
        let (reading, ns) = (|count, ns| Some(Reading { count, enabled: CpuNs(ns), running: CpuNs(ns) }), SECOND);
        let round = |second: u64, readings| RecordedRound {
            round: Round { at: WallNs(second * SECOND), readings, ..Round::default() },
            lost: 0,
        };
        // The second part was counted for half of the time, and the third never.
        let rounds = [
            round(1, vec![reading(10, ns), reading(4, ns / 2), None]),
            round(2, vec![reading(30, 2 * ns), reading(10, ns), None]),
        ];
        let (outline, parts) = (Outline::of(&rounds, WallNs(2 * SECOND)), || measured(event("e")));
        let header = builders::header([parts(), parts(), parts()]);
        let of = |measure| outline.rates(&header, &[0, 1, 2], measure, 2);
        assert_eq!(of(Measure::PerSecond), [14.0, 26.0].map(Some));
        assert_eq!(of(Measure::PerCpuSecond), [14.0 / 1.5, 26.0 / 1.5].map(Some));
        assert_eq!(outline.rates(&header, &[2], Measure::PerSecond, 2), [None, None]);
        assert_eq!(outline.rates(&header, &[], Measure::PerSecond, 2), [None, None]);
    }

    #[test]
    fn times_have_cells() {
        let outline = outline(&[1; 10]);
        let at = |tenths: u64| WallNs(tenths * SECOND / 10);
        assert_eq!(outline.cell(0, 5), TimeRange { from: at(0), to: at(20) });
        assert_eq!([0, 5, 20, 21, 100, 500].map(|tenths| outline.place(at(tenths), 5)), [0, 0, 0, 1, 4, 4]);
    }

    proptest! {
        #[test]
        fn a_long_recording_is_kept_in_few_rounds_and_whole(counts in prop::collection::vec(0u64..100, 1..3000)) {
            let outline = outline(&counts);
            prop_assert!(outline.rounds.len() <= KEPT + 2, "{}", outline.rounds.len());
            let mean = 2.0 * counts.iter().sum::<u64>() as f64 / counts.len() as f64;
            prop_assert!(rates(&outline, 1)[0].is_some_and(|rate| (rate - mean).abs() < 1e-6));
        }
    }
}
