//! Intervals in, scaled means out: what perf does, with the error that it doesn't print.

use super::judge::Judge;
use super::{Estimate, Estimator, Observation, Raw, Standing, own};
use crate::events::Event;
use crate::relations::Relation;

/// Each event by its own samples. Relations are held against them and correct nothing.
#[derive(Debug)]
pub struct Scale {
    judge: Judge,
    estimates: Vec<Estimate>,
}

impl Scale {
    /// An estimator for these events.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        Self { judge: Judge::new(events, relations), estimates: vec![Estimate::default(); events.len()] }
    }
}

impl Estimator for Scale {
    fn observe(&mut self, _interval: &[Observation], raw: &[Raw]) {
        self.judge.judge(raw);
        self.estimates = raw.iter().map(own).collect();
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.judge.standings()
    }
}
