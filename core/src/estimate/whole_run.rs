//! Holds what a process estimates of a run's intervals when all of the run is known.

use std::sync::Arc;

use crate::plan::RowIndex;
use crate::rates::Uncertain;

/// The estimates of all events in each interval of a run, by all of its rounds. Intervals count from the first one in
/// which something of the event's part of the target was multiplexed.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeRun {
    intervals: Vec<Vec<Option<Uncertain>>>,
}

impl WholeRun {
    pub(super) fn new(intervals: Vec<Vec<Option<Uncertain>>>) -> Self {
        Self { intervals }
    }

    /// How many intervals there are.
    pub(super) fn len(&self) -> usize {
        self.intervals.len()
    }

    /// The estimates of some rows alone.
    #[must_use]
    pub(super) fn of_rows(&self, rows: &[RowIndex]) -> Self {
        let of_rows = |all: &Vec<Option<Uncertain>>| rows.iter().map(|&row| all.get(row).copied().flatten()).collect();
        Self { intervals: self.intervals.iter().map(of_rows).collect() }
    }

    /// The estimates of an interval by its place; `None` behind the last.
    pub(super) fn interval(&self, place: usize) -> Option<&[Option<Uncertain>]> {
        self.intervals.get(place).map(Vec::as_slice)
    }
}

/// The rounds by which intervals are estimated.
#[derive(Clone, Debug, Default)]
pub enum IntervalBasis {
    /// Those up to the end of each: what a live run can know.
    #[default]
    AsLive,
    /// As `AsLive`, and what [`Estimator::whole_run`](super::Estimator::whole_run) takes is kept.
    Keeping,
    /// All rounds of a run that is over.
    WholeRun(Arc<WholeRun>),
}

impl IntervalBasis {
    /// The same for some rows alone.
    #[must_use]
    pub fn of_rows(&self, rows: &[RowIndex]) -> Self {
        match self {
            Self::WholeRun(run) => Self::WholeRun(Arc::new(run.of_rows(rows))),
            basis => basis.clone(),
        }
    }
}
