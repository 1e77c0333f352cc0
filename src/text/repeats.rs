//! Sums up several runs of one command: means, and how runs differ.

use crate::monitor::{Absence, Correction, Monitor, Row, Truth};
use crate::plan::RowIndex;
use crate::rates::{Confidence, Error, Moments, Uncertain, mean};

/// Whether a command was to run several times. Then lines have a place for the standard error, however many runs became
/// whole: a script finds all other fields in the same places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repetition {
    /// It runs once.
    Once,
    /// It runs several times.
    Several,
}

/// One command measured several times.
pub struct Repeats<'a>(pub &'a [Monitor]);

impl Repeats<'_> {
    /// The mean of the scaled counts, and how far it may be off, as runs differ. `None` if the event counted in no run.
    pub(super) fn count(&self, event: RowIndex) -> Option<Uncertain> {
        self.mean(event, |row| row.count())
    }

    fn mean(&self, event: RowIndex, count: fn(&Row<'_>) -> Option<Uncertain>) -> Option<Uncertain> {
        let rows = || self.0.iter().map(|run| run.row(event));
        let counts: Vec<_> = rows().filter_map(|row| count(&row)).collect();
        let unseen = rows().filter(|row| count(row).is_none() && saw_none(row)).count();
        mean_of_runs(&counts, unseen, self.0.first()?.confidence())
    }

    /// Mean over the runs of the best estimate of each run's count.
    pub(super) fn best(&self, event: RowIndex) -> Option<Uncertain> {
        self.mean(event, |row| row.best())
    }

    /// How the mean was corrected: as that of the last run that was, with the mean of the best estimates.
    pub(super) fn correction(&self, event: RowIndex) -> Option<Correction> {
        let last = self.0.iter().rev().find_map(|run| run.row(event).correction())?;
        Some(Correction { count: self.best(event)?, raw: self.count(event), ..last })
    }

    /// The event in the runs that [`Self::count`] is the mean of; in all of them where it was on a counter in none.
    fn rows(&self, event: RowIndex) -> Vec<Row<'_>> {
        let all: Vec<_> = self.0.iter().map(|run| run.row(event)).collect();
        let counted: Vec<_> = all.iter().copied().filter(|row| row.scaled.is_some() || saw_none(row)).collect();
        if counted.is_empty() { all } else { counted }
    }

    /// How many runs counted the event, where others had no counter for it.
    pub(super) fn counted_runs(&self, event: RowIndex) -> Option<usize> {
        let counted = self.rows(event).len();
        (counted < self.0.len()).then_some(counted)
    }

    /// The mean time that the event was on a counter.
    pub(super) fn running_ns(&self, event: RowIndex) -> u64 {
        let rows = self.rows(event);
        let times = rows.iter().map(|row| row.event.perfs_runtime(row.raw.run.total().running));
        times.fold(0, u64::saturating_add) / rows.len().max(1) as u64
    }

    /// The mean CPU time that it could have been counted in.
    pub(super) fn enabled_ns(&self, event: RowIndex) -> f64 {
        let times: Vec<_> = self.rows(event).iter().map(|row| row.raw.run.total().enabled.0 as f64).collect();
        SummarySpread::of(&times).mean
    }

    /// The mean part of the time that it was on a counter; of what one kind of core counts, the part spent there.
    pub(super) fn run_ratio(&self, event: RowIndex) -> Option<f64> {
        let rows = self.rows(event);
        let ratios: Vec<_> = rows.iter().filter_map(|row| row.core_share.or(row.raw.run.run_ratio())).collect();
        mean(&ratios)
    }

    /// The mean of what the event counted in truth, and how far off it the mean counts are; `None` where it wasn't
    /// counted.
    pub(super) fn truth(&self, event: RowIndex) -> Option<MeanTruth> {
        let truths: Vec<_> = self.true_counts(event).iter().map(|(_, truth)| truth.count as f64).collect();
        let count = mean(&truths)?;
        let error = |estimate: Option<Uncertain>| (count > 0.0).then(|| Some(estimate?.value / count - 1.0))?;
        let corrected = self.correction(event).map(|correction| correction.count);
        Some(MeanTruth { count, scaled: error(self.count(event)), corrected: error(corrected) })
    }

    /// The event beside its truth, in the runs that [`Self::count`] is the mean of.
    pub(super) fn true_counts(&self, event: RowIndex) -> Vec<(Row<'_>, Truth)> {
        let truths = self.0.iter().filter_map(|run| Some((run.row(event), run.truth(event)?)));
        let all: Vec<_> = truths.collect();
        let is_counted = |(row, _): &(Row<'_>, Truth)| row.scaled.is_some() || saw_none(row);
        if all.iter().any(is_counted) { all.into_iter().filter(is_counted).collect() } else { all }
    }

    /// A rate in each run, which weighs as much as its CPU time: so the mean is that of the counts over that of the
    /// times.
    pub(super) fn rates(&self, event: RowIndex, rate: impl Fn(&Row<'_>) -> Option<f64>) -> Moments {
        let mut rates = Moments::default();
        for row in self.rows(event) {
            if let Some(rate) = rate(&row) {
                rates.add(rate, row.cpu_time.as_ms());
            }
        }
        rates
    }

    /// The standard deviation of a run, as a part of that mean.
    pub(super) fn relative_spread(&self, event: RowIndex) -> Option<f64> {
        SummarySpread::of(&self.counts(event)).relative()
    }

    /// The standard error of that mean, as a part of it.
    pub(super) fn standard_error(&self, event: RowIndex) -> Option<f64> {
        let counts = self.counts(event);
        SummarySpread::of(&counts).relative().map(|deviation| deviation / (counts.len() as f64).sqrt())
    }

    fn counts(&self, event: RowIndex) -> Vec<f64> {
        let count = |row: Row<'_>| row.raw.run.estimate().or_else(|| saw_none(&row).then_some(0.0));
        let counts: Vec<_> = self.0.iter().filter_map(|run| count(run.row(event))).collect();
        if counts.iter().any(|&count| count > 0.0) { counts } else { Vec::new() }
    }
}

/// Whether a run saw none of an event that it looked at, which alone says nothing of the run.
fn saw_none(row: &Row<'_>) -> bool {
    row.absence == Some(Absence::NoneSeen)
}

/// What an event counted in truth on average, and the relative errors of its mean counts.
pub(super) struct MeanTruth {
    pub(super) count: f64,
    pub(super) scaled: Option<f64>,
    pub(super) corrected: Option<f64>,
}

/// The mean of numbers whose errors have nothing to do with one another; `None` of none.
fn mean_of(numbers: &[Uncertain]) -> Option<Uncertain> {
    let value = numbers.iter().map(|number| number.value).sum();
    let sum = Uncertain { value, error: Error::of_sum(numbers.iter().map(|number| number.error)) };
    (!numbers.is_empty()).then(|| sum.scaled(1.0 / numbers.len() as f64))
}

/// The mean of what runs counted and of 0 in those that saw none; `None` where all saw none. Each run begins with
/// another group, so one that counted what happens at the beginning stands for those that didn't look: left out, they
/// would make the mean too large. Its error is Student's where runs differ, which holds what multiplexing left unseen
/// too, and no less than what the counts themselves leave open.
fn mean_of_runs(counts: &[Uncertain], unseen: usize, confidence: Confidence) -> Option<Uncertain> {
    let runs = (counts.len() + unseen) as f64;
    let of_counts = mean_of(counts)?.scaled(counts.len() as f64 / runs);
    let zeros = std::iter::repeat_n(0.0, unseen);
    let values: Vec<f64> = counts.iter().map(|count| count.value).chain(zeros).collect();
    let Some(deviation) = SummarySpread::of(&values).deviation.filter(|deviation| *deviation > 0.0) else {
        return Some(of_counts);
    };
    let half_width = confidence.student((values.len() - 1) as f64) * deviation / runs.sqrt();
    let (below, above) = match of_counts.error {
        Error::Within { below, above } => (below.max(half_width), above.max(half_width)),
        Error::Exact | Error::Unknown => (half_width, half_width),
    };
    let value = of_counts.value;
    Some(Uncertain { value, error: Error::Within { below: below.min(value), above } })
}

/// The mean of some runs, and how they differ.
pub(super) struct SummarySpread {
    pub(super) mean: f64,
    /// The standard deviation; `None` of fewer than two.
    deviation: Option<f64>,
}

impl SummarySpread {
    pub(super) fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Self { mean, deviation: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()) }
    }

    /// The standard deviation as a part of the mean; `None` of 0, which has no parts.
    pub(super) fn relative(&self) -> Option<f64> {
        self.deviation.filter(|_| self.mean != 0.0).map(|deviation| deviation / self.mean.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_three_runs_by_hand() {
        // Mean 10, squares 1 + 0 + 1 over 2.
        let spread = SummarySpread::of(&[9.0, 10.0, 11.0]);
        assert_eq!((spread.mean, spread.deviation, spread.relative()), (10.0, Some(1.0), Some(0.1)));
    }

    #[test]
    fn one_run_has_no_spread_and_equal_runs_have_none_either() {
        assert_eq!(
            [
                SummarySpread::of(&[]).relative(),
                SummarySpread::of(&[5.0]).relative(),
                SummarySpread::of(&[0.0, 0.0]).relative()
            ],
            [None; 3]
        );
        assert_eq!(SummarySpread::of(&[5.0, 5.0]).relative(), Some(0.0));
    }

    #[test]
    fn the_error_of_a_mean_of_runs_by_hand() {
        let within = |value, below, above| Uncertain { value, error: Error::Within { below, above } };
        // sqrt(3² + 4²) / 2 = 2.5, sqrt(6² + 8²) / 2 = 5.
        assert_eq!(mean_of(&[within(10.0, 3.0, 6.0), within(20.0, 4.0, 8.0)]), Some(within(15.0, 2.5, 5.0)));
        assert_eq!(mean_of(&[within(10.0, 3.0, 6.0)]), Some(within(10.0, 3.0, 6.0)));
        let exact = Uncertain::exact;
        assert_eq!(mean_of(&[exact(1.0), exact(3.0)]), Some(exact(2.0)));
        assert_eq!(mean_of(&[exact(1.0), within(3.0, 2.0, 2.0)]), Some(within(2.0, 1.0, 1.0)));
        let unknown = Uncertain { value: 3.0, error: Error::Unknown };
        assert_eq!(mean_of(&[exact(1.0), unknown]), Some(Uncertain { value: 2.0, error: Error::Unknown }));
        assert_eq!(mean_of(&[]), None);
    }

    #[test]
    fn runs_that_saw_none_count_as_zero_by_hand() {
        let within = |value, half| Uncertain { value, error: Error::Within { below: half, above: half } };
        // Of 90, 0 and 0 the mean is 30, the deviation sqrt((60² + 30² + 30²) / 2) = sqrt(2700).
        let found = mean_of_runs(&[within(90.0, 3.0)], 2, Confidence::DEFAULT);
        let Some(Uncertain { value, error: Error::Within { below, above } }) = found else { unreachable!("{found:?}") };
        let half_width = Confidence::DEFAULT.student(2.0) * (2700.0f64 / 3.0).sqrt();
        assert!((value - 30.0).abs() < 1e-9 && (above - half_width).abs() < 1e-9, "{found:?}");
        // No count is below 0.
        assert_eq!(below, 30.0);
        // What was counted exactly in each run differs between them: t with 1 degree is 12.706, the deviation over the
        // root of 2 is 10.
        let counted = mean_of_runs(&[200.0, 220.0].map(Uncertain::exact), 0, Confidence::DEFAULT);
        let half = counted.and_then(|mean| mean.error.half_width()).unwrap_or_default();
        assert!((half - 127.06).abs() < 0.01, "{counted:?}");
        let same = mean_of_runs(&[200.0, 200.0].map(Uncertain::exact), 0, Confidence::DEFAULT);
        assert_eq!(same, Some(Uncertain::exact(200.0)));
        assert_eq!(mean_of_runs(&[], 3, Confidence::DEFAULT), None);
    }
}
