//! Knows which set of events was to sample at what time.

use crate::stacks::live::rings::CopySize;

/// Which samples count: those of the set of events that was to sample at their time. While one set ends and another one
/// begins both sample, so no time is sampled twice or not at all.
#[derive(Debug)]
pub(super) struct SampledTimes {
    /// What was to sample from a time on, the earliest first.
    since: Vec<(u64, CopySize)>,
}

impl SampledTimes {
    pub(super) fn new(first: CopySize) -> Self {
        Self { since: vec![(0, first)] }
    }

    /// From this time on another set samples.
    pub(super) fn change(&mut self, at: u64, to: CopySize) {
        /// Records wait for milliseconds, and changes come seldom.
        const KEPT: usize = 16;
        self.since.push((at, to));
        if self.since.len() > KEPT {
            self.since.remove(0);
        }
    }

    /// Whether a sample of this set at this time counts.
    pub(super) fn counts(&self, at: u64, size: CopySize) -> bool {
        let earlier = self.since.iter().rev().find(|(since, _)| *since <= at);
        earlier.is_some_and(|(_, sampled)| *sampled == size)
    }

    /// When what samples now began.
    pub(super) fn last_change(&self) -> u64 {
        self.since.last().map_or(0, |(since, _)| *since)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_time_belongs_to_one_set_of_events() {
        let mut times = SampledTimes::new(CopySize::Small);
        times.change(100, CopySize::None);
        times.change(200, CopySize::Large);
        let counted = |at| CopySize::ALL.into_iter().filter(|&size| times.counts(at, size)).collect::<Vec<_>>();
        assert_eq!(
            [0, 99, 100, 199, 200].map(counted),
            [
                vec![CopySize::Small],
                vec![CopySize::Small],
                vec![CopySize::None],
                vec![CopySize::None],
                vec![CopySize::Large],
            ]
        );
        assert_eq!(times.last_change(), 200);
    }

    proptest! {
        #[test]
        fn no_sample_counts_twice_and_none_is_lost(mut changes in prop::collection::vec((1u64..100, 0usize..4), 0..10), at in 0u64..120) {
            changes.sort_unstable();
            let mut times = SampledTimes::new(CopySize::Small);
            changes.iter().for_each(|&(at, size)| times.change(at, CopySize::ALL[size]));
            prop_assert_eq!(CopySize::ALL.into_iter().filter(|&size| times.counts(at, size)).count(), 1);
        }
    }
}
