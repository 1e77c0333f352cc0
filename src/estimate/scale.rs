//! Intervals in, scaled means out: what perf does, with the error that it doesn't print.

use super::{Estimate, Estimator, Observation, Raw, RelationState, Standing, own};

/// Each event by its own samples. Relations correct nothing.
#[derive(Debug, Default)]
pub struct Scale {
    estimates: Vec<Estimate>,
    relations: Vec<Standing>,
}

impl Scale {
    /// An estimator for so many events; the relations are only listed.
    pub fn new(events: usize, relations: usize) -> Self {
        let standing = Standing { state: RelationState::Waiting, ..Standing::default() };
        Self { estimates: vec![Estimate::default(); events], relations: vec![standing; relations] }
    }
}

impl Estimator for Scale {
    fn observe(&mut self, _interval: &[Observation], raw: &[Raw]) {
        self.estimates = raw.iter().map(own).collect();
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        &self.relations
    }
}
