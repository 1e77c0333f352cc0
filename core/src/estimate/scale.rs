//! Scales counts by the part of the time that was counted, as perf does, with the error that it doesn't print.

use super::audit::Audit;
use super::{Estimate, Estimator, Standing, scale_all};
use crate::events::Event;
use crate::rates::Tally;
use crate::relations::Relation;

/// Each event by its own samples. Relations are audited and correct nothing.
#[derive(Debug)]
pub struct ScaleEstimator {
    audit: Audit,
    estimates: Vec<Estimate>,
}

impl ScaleEstimator {
    /// An estimator for these events.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        Self { audit: Audit::new(events, relations), estimates: vec![Estimate::default(); events.len()] }
    }
}

impl Estimator for ScaleEstimator {
    fn end_interval(&mut self, tally: &Tally) {
        self.audit.update(tally);
        scale_all(tally, &mut self.estimates);
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.audit.standings()
    }
}
