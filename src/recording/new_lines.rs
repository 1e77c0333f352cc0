//! Turns batches of samples and regions into lines, and leaves out those that say nothing new.

use super::{Line, RegionsLine, StacksLine};
use crate::regions::RegionBatch;
use crate::stacks::{Losses, StackBatch};

/// What the last lines said, so that it isn't said twice.
#[derive(Clone, Debug)]
pub(super) struct NewLines {
    /// Losses that the last line of samples reports.
    losses: Losses,
    /// Whether the last line of regions says that none was called: that needs no second one.
    is_idle: bool,
}

impl Default for NewLines {
    fn default() -> Self {
        Self { losses: Losses::default(), is_idle: true }
    }
}

impl NewLines {
    /// The line of a batch of samples; `None` if nothing in it is new.
    pub(super) fn stacks(&mut self, batch: &StackBatch) -> Option<Line> {
        if *batch == (StackBatch { losses: self.losses, ..StackBatch::default() }) {
            return None;
        }
        self.losses = batch.losses;
        Some(Line::Stacks(Box::new(StacksLine::from(batch))))
    }

    /// The line of what is new of named regions; `None` if it says nothing.
    pub(super) fn regions(&mut self, batch: &RegionBatch) -> Option<Line> {
        let is_idle = batch.is_empty() && (batch.counted_since.is_none() || self.is_idle);
        self.is_idle = if batch.counted_since.is_some() { batch.counts.is_empty() } else { self.is_idle };
        (!is_idle).then(|| Line::Regions(Box::new(RegionsLine::from(batch))))
    }
}
