//! Holds what a process estimates of a run's intervals when all of the run is known.

use std::sync::Arc;

use crate::rates::Uncertain;

/// The estimates of all events in each interval of a run, by all of its rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct WholeRun {
    intervals: Vec<Vec<Option<Uncertain>>>,
}

impl WholeRun {
    pub(super) fn new(intervals: Vec<Vec<Option<Uncertain>>>) -> Self {
        Self { intervals }
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
