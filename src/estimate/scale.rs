//! Intervals in, scaled counts out: what perf does, with the error that it doesn't print.

use super::judge::Judge;
use super::{Estimate, Estimator, Standing, scaled};
use crate::events::Event;
use crate::rates::Tally;
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
    fn end_interval(&mut self, tally: &Tally) {
        self.judge.judge(tally);
        self.estimates = (0..self.estimates.len()).map(|event| scaled(tally, event)).collect();
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.judge.standings()
    }
}
