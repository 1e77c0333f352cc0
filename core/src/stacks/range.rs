//! Takes off what was sampled, and what had gone missing, before a range of a recording begins.

use super::{Losses, StackBatch};
use crate::units::WallNs;

/// The batches of a recording as they are in a range of it: with samples and losses from its beginning on.
#[derive(Debug)]
pub struct SampleRange {
    /// The end of what is left out; nothing is if `None`.
    after: Option<WallNs>,
    /// What had gone missing by then.
    before: Losses,
    has_begun: bool,
}

impl SampleRange {
    /// A range from a time on.
    pub fn after(after: Option<WallNs>) -> Self {
        Self { after, before: Losses::default(), has_begun: after.is_none() }
    }

    /// The time after which it begins; `None` if that is the beginning of the recording.
    pub fn start(&self) -> Option<WallNs> {
        self.after
    }

    /// Whether a time is not before the range.
    pub fn has(&self, at: WallNs) -> bool {
        self.after.is_none_or(|after| at > after)
    }

    /// What has gone missing in the range up to and with a batch; always hand over all batches, in their order. What went
    /// missing before the first batch with something in the range did so before the range.
    pub fn losses(&mut self, batch: &StackBatch) -> Losses {
        self.has_begun |= batch.times().any(|at| self.has(at));
        if !self.has_begun {
            self.before = batch.losses;
        }
        batch.losses.since(&self.before)
    }

    /// What there is of a batch in the range up to and with a time; always hand over all batches, in their order. What one
    /// defines stays.
    pub fn take(&mut self, batch: &StackBatch, until: WallNs) -> StackBatch {
        let losses = self.losses(batch);
        let is_in = |at: WallNs| self.has(at) && at <= until;
        let samples = batch.samples.iter().filter(|sample| is_in(sample.at)).copied().collect();
        let costs = batch.costs.iter().filter(|costs| is_in(costs.at)).cloned().collect();
        StackBatch { samples, costs, losses, ..batch.definitions() }
    }
}

impl Default for SampleRange {
    fn default() -> Self {
        Self::after(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{StackSample, TaskCosts, TaskId};
    use super::*;

    fn batch(times: &[u64], lost: u64) -> StackBatch {
        let sample =
            |&at: &u64| StackSample { at: WallNs(at), task: TaskId(0), cpu: 0, event: 0, weight: 1, stack: None };
        let losses = Losses { lost, ..Losses::default() };
        StackBatch { samples: times.iter().map(sample).collect(), losses, ..StackBatch::default() }
    }

    /// The times of the samples, and what was lost by the last batch.
    fn part(batches: &[StackBatch], after: Option<u64>, until: u64) -> (Vec<u64>, u64) {
        let mut range = SampleRange::after(after.map(WallNs));
        let is_in = |batch: &&StackBatch| !batch.begins_after(WallNs(until));
        let parts: Vec<_> = batches.iter().take_while(is_in).map(|batch| range.take(batch, WallNs(until))).collect();
        let times = parts.iter().flat_map(|part| &part.samples).map(|sample| sample.at.0).collect();
        (times, parts.last().map_or(0, |part| part.losses.lost))
    }

    #[test]
    fn a_part_lacks_what_went_missing_in_it() {
        let batches = [batch(&[1], 40), batch(&[2], 50), batch(&[3], 57)];
        assert_eq!(part(&batches, None, 3), (vec![1, 2, 3], 57));
        assert_eq!(part(&batches, Some(2), 3), (vec![3], 7));
        assert_eq!(part(&batches, Some(1), 2), (vec![2], 10));
    }

    #[test]
    fn what_a_batch_without_samples_lacks_is_of_the_time_before_the_next() {
        let batches = [batch(&[], 1), batch(&[1], 40), batch(&[], 45), batch(&[2, 4], 50), batch(&[], 52)];
        assert_eq!(part(&batches, None, 9), (vec![1, 2, 4], 52));
        assert_eq!(part(&batches, Some(1), 9), (vec![2, 4], 7));
        // Of a batch that is partly before the range, nobody knows when what it lacks went missing.
        assert_eq!(part(&batches, Some(2), 9), (vec![4], 7));
        assert_eq!(part(&batches, None, 1), (vec![1], 45));
    }

    #[test]
    fn what_a_model_counted_begins_a_range_too() {
        let costs = |at: u64| vec![TaskCosts { task: TaskId(0), at: WallNs(at), own: Vec::new(), calls: Vec::new() }];
        let batches = [1, 2].map(|at| StackBatch { costs: costs(at), ..batch(&[], 10 * at) });
        assert_eq!(part(&batches, Some(1), 9).1, 10);
        assert_eq!(part(&batches, None, 1).1, 10);
    }
}
