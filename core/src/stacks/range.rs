//! Takes off what was sampled, and what had gone missing, before and after a range of a recording.

use super::{Losses, OFF_CPU, SamplingSetup, StackBatch, StackSample};
use crate::units::WallNs;

/// The batches of a recording as they are in a range of it: with samples and losses from its beginning on.
#[derive(Debug)]
pub struct SampleRange {
    /// The end of what is left out; nothing is if `None`.
    after: Option<WallNs>,
    /// What had gone missing by then.
    before: Losses,
    has_begun: bool,
    /// The place of the event whose samples are waits, which end at their times.
    off_cpu: Option<u32>,
}

/// A wait that goes on is told after half a second; where the thread that does it has no CPU, later.
const LONGEST_WAIT: WallNs = WallNs(2_000_000_000);

impl SampleRange {
    /// A range from a time on, of what was sampled.
    pub fn after(after: Option<WallNs>, sampled: Option<&SamplingSetup>) -> Self {
        let mut events = sampled.into_iter().flat_map(|sampled| &sampled.events).zip(0..);
        let off_cpu = events.find_map(|(event, place)| (event.name == OFF_CPU).then_some(place));
        Self { after, before: Losses::default(), has_begun: after.is_none(), off_cpu }
    }

    /// The time after which it begins; `None` if that is the beginning of the recording.
    pub fn start(&self) -> Option<WallNs> {
        self.after
    }

    /// Whether a time is not before the range.
    pub fn has(&self, at: WallNs) -> bool {
        self.after.is_none_or(|after| at > after)
    }

    /// What has gone missing in the range up to and with a batch; always hand over all batches, in their order. What
    /// went missing before the first batch with something in the range did so before the range.
    pub fn losses(&mut self, batch: &StackBatch) -> Losses {
        self.has_begun |= batch.times().any(|at| self.has(at));
        if !self.has_begun {
            self.before = batch.losses;
        }
        batch.losses.since(&self.before)
    }

    /// What there is of a sample in the range up to and with a time: a part of a wait that began before or goes on.
    pub fn part(&self, sample: &StackSample, until: WallNs) -> Option<StackSample> {
        if self.off_cpu != Some(sample.event) {
            return (self.has(sample.at) && sample.at <= until).then_some(*sample);
        }
        let from = WallNs(sample.at.0.saturating_sub(sample.weight)).max(self.after.unwrap_or_default());
        let at = sample.at.min(until);
        (at > from).then(|| StackSample { at, weight: (at - from).0, ..*sample })
    }

    /// Whether a batch is so late that nothing of it was before a time.
    pub fn is_over(batch: &StackBatch, until: WallNs) -> bool {
        batch.begins_after(until + LONGEST_WAIT)
    }

    /// What there is of a batch in the range up to and with a time; always hand over all batches, in their order. What
    /// one defines stays.
    pub fn take(&mut self, batch: &StackBatch, until: WallNs) -> StackBatch {
        let losses = self.losses(batch);
        let is_in = |at: WallNs| self.has(at) && at <= until;
        let samples = batch.samples.iter().filter_map(|sample| self.part(sample, until)).collect();
        let costs = batch.costs.iter().filter(|costs| is_in(costs.at)).cloned().collect();
        StackBatch { samples, costs, losses, ..batch.definitions() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Rate, SampledEvent, TaskCosts, TaskId, UnwindMethod};
    use super::*;

    fn batch(times: &[u64], lost: u64) -> StackBatch {
        let sample =
            |&at: &u64| StackSample { at: WallNs(at), task: TaskId(0), cpu: 0, event: 0, weight: 1, stack: None };
        let losses = Losses { lost, ..Losses::default() };
        StackBatch { samples: times.iter().map(sample).collect(), losses, ..StackBatch::default() }
    }

    /// The times of the samples, and what was lost by the last batch.
    fn part(batches: &[StackBatch], after: Option<u64>, until: u64) -> (Vec<u64>, u64) {
        let mut range = SampleRange::after(after.map(WallNs), None);
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
    fn waits_are_cut_at_both_ends_by_hand() {
        let event = |name: &str| SampledEvent { name: name.into(), unit: Default::default(), rate: Rate::Period(1) };
        let events = vec![event("task-clock"), event(OFF_CPU)];
        let sampled = SamplingSetup { events, call_graph: UnwindMethod::Fp };
        let of = |after: Option<u64>, until: u64| {
            let range = SampleRange::after(after.map(WallNs), Some(&sampled));
            let sample = |event, at, weight| {
                let sample = StackSample { event, weight, ..batch(&[at], 0).samples[0] };
                range.part(&sample, WallNs(until)).map(|part| (part.at.0, part.weight))
            };
            // A wait from 10 to 60, and a sample of 50 at 60.
            (sample(1, 60, 50), sample(0, 60, 50))
        };
        assert_eq!(of(None, 100), (Some((60, 50)), Some((60, 50))));
        assert_eq!(of(Some(20), 40), (Some((40, 20)), None));
        assert_eq!(of(Some(40), 100), (Some((60, 20)), Some((60, 50))));
        assert_eq!((of(Some(60), 100), of(None, 10)), ((None, None), (None, None)));
        // Longer than the time of a run.
        let range = SampleRange::after(None, Some(&sampled));
        let long = StackSample { event: 1, weight: 90, ..batch(&[60], 0).samples[0] };
        assert_eq!(range.part(&long, WallNs(100)).map(|part| part.weight), Some(60));
    }

    proptest! {
        #[test]
        fn parts_of_a_wait_add_up_to_it(at in 0u64..1000, weight in 1u64..1000, cut in 0u64..1200) {
            let sampled = SamplingSetup {
                events: vec![SampledEvent { name: OFF_CPU.into(), unit: Default::default(), rate: Rate::Period(1) }],
                call_graph: UnwindMethod::Fp,
            };
            let sample = StackSample { weight: weight.min(at), ..batch(&[at], 0).samples[0] };
            let part = |after: Option<u64>, until: u64| {
                let range = SampleRange::after(after.map(WallNs), Some(&sampled));
                range.part(&sample, WallNs(until)).map_or(0, |part| part.weight)
            };
            prop_assert_eq!(part(None, cut) + part(Some(cut), u64::MAX), sample.weight);
        }
    }

    #[test]
    fn what_a_model_counted_begins_a_range_too() {
        let costs = |at: u64| vec![TaskCosts { task: TaskId(0), at: WallNs(at), own: Vec::new(), calls: Vec::new() }];
        let batches = [1, 2].map(|at| StackBatch { costs: costs(at), ..batch(&[], 10 * at) });
        assert_eq!(part(&batches, Some(1), 9).1, 10);
        assert_eq!(part(&batches, None, 1).1, 10);
    }
}
