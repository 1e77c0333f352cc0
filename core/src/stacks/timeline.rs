//! Keeps samples one by one, each with its time and its thread, beside a tree of their sums.

use rustc_hash::FxHashMap;

use super::{Task, TaskId};
use crate::profile::{Amount, EventId, NodeId};
use crate::units::WallNs;

/// The samples of a recording in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleTimeline {
    /// The tasks that samples name by their numbers.
    pub tasks: Vec<Task>,
    /// The samples; those of one time in the order in which they were recorded.
    pub samples: Vec<TimedSample>,
}

/// A sample with the place of its stack in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedSample {
    /// Time of the sample.
    pub at: WallNs,
    /// Task that was sampled.
    pub task: TaskId,
    /// The tree's event.
    pub event: EventId,
    /// The node of its path in the tree; good as long as the tree doesn't change its nodes.
    pub node: NodeId,
    /// What it stands for, in the event's unit, as the tree has it.
    pub weight: u64,
}

impl SampleTimeline {
    /// Keeps one sample of `period` of each event, in the order of time, with the weight of those before it that go.
    /// Samples behind the last one that stays are left out. A period of 0 leaves everything as it is.
    pub fn down_sample(&mut self, period: u64) {
        let mut carried: FxHashMap<EventId, Amount> = FxHashMap::default();
        self.samples.retain_mut(|sample| {
            let carry = carried.entry(sample.event).or_insert(Amount::ZERO);
            let sum = carry.plus(Amount { samples: 1, weight: sample.weight });
            let stays = sum.samples >= period;
            *carry = if stays { Amount::ZERO } else { sum };
            sample.weight = sum.weight;
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{ProfileEvent, SampleMeasure, Tree};

    /// Samples of two events, by the event's place and the weight.
    fn timeline(samples: &[(usize, u64)]) -> SampleTimeline {
        let mut tree = Tree::default();
        let events = ["a", "b"].map(|name| tree.event(&ProfileEvent::new(name, SampleMeasure::Samples)));
        let sample = |(at, &(event, weight)): (usize, &(usize, u64))| TimedSample {
            at: WallNs(at as u64),
            task: TaskId(0),
            event: events[event],
            node: NodeId::ROOT,
            weight,
        };
        SampleTimeline { tasks: Vec::new(), samples: samples.iter().enumerate().map(sample).collect() }
    }

    fn kept(samples: &[(usize, u64)], period: u64) -> Vec<(u64, usize, u64)> {
        let mut timeline = timeline(samples);
        timeline.down_sample(period);
        timeline.samples.iter().map(|sample| (sample.at.0, sample.event.index(), sample.weight)).collect()
    }

    #[test]
    fn one_sample_of_a_period_stands_for_those_before_it() {
        let samples = [(0, 10), (0, 20), (1, 1), (0, 30), (1, 2), (0, 40), (0, 50)];
        assert_eq!(kept(&samples, 2), [(1, 0, 30), (4, 1, 3), (5, 0, 70)]);
        assert_eq!(kept(&samples, 9), []);
        assert_eq!(kept(&samples[..2], 0), [(0, 0, 10), (1, 0, 20)]);
        assert_eq!(kept(&[], 2), []);
    }

    proptest! {
        #[test]
        fn as_many_stay_as_periods_are_whole(samples in prop::collection::vec((0..2usize, 0..100u64), 0..40), period in 1..6u64) {
            let kept = kept(&samples, period);
            for event in 0..2 {
                let all = samples.iter().filter(|sample| sample.0 == event).map(|sample| sample.1);
                let whole = all.clone().count() as u64 / period * period;
                let stay: Vec<u64> = kept.iter().filter(|sample| sample.1 == event).map(|sample| sample.2).collect();
                prop_assert_eq!(stay.len() as u64, whole / period);
                prop_assert_eq!(stay.iter().sum::<u64>(), all.take(whole as usize).sum::<u64>());
            }
        }
    }
}
