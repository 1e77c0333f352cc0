//! Keeps what was sampled: sums by place for a whole run, and the samples of its last minute one by one.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::{SampleWorth, StackId, TaskId};
use crate::profile::{Amount, EventId};
use crate::regions::RegionAt;
use crate::units::WallNs;

/// Which samples of a run a tree shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileSpan {
    /// All since the run began, or since samples were forgotten.
    #[default]
    Run,
    /// Those of the last seconds of wall-clock time.
    Last(WallNs),
}

const SECOND: u64 = 1_000_000_000;

impl ProfileSpan {
    /// The spans that screens offer, the shortest first.
    pub const ALL: [Self; 3] = [Self::Last(WallNs(10 * SECOND)), Self::Last(LONGEST_SPAN), Self::Run];

    /// The next shorter span; the shortest stays.
    #[must_use]
    pub fn shorter(self) -> Self {
        Self::ALL[self.place().saturating_sub(1)]
    }

    /// The next longer span; the run stays.
    #[must_use]
    pub fn longer(self) -> Self {
        Self::ALL[(self.place() + 1).min(Self::ALL.len() - 1)]
    }

    fn place(self) -> usize {
        Self::ALL.iter().position(|&span| span == self).unwrap_or(Self::ALL.len() - 1)
    }

    /// The time after which samples are shown that were taken until `until`; `None` where that is the beginning.
    pub fn start(self, until: WallNs) -> Option<WallNs> {
        match self {
            Self::Run => None,
            Self::Last(length) => until.checked_sub(length).filter(|start| *start > WallNs(0)),
        }
    }
}

/// The longest span of seconds.
pub(super) const LONGEST_SPAN: WallNs = WallNs(60 * SECOND);
/// Most samples that are kept one by one; they take 24 bytes each.
const MOST_KEPT: usize = 1 << 20;

/// What samples have in common that stand on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StackPlace {
    pub(super) task: TaskId,
    /// `None` where CPUs aren't told apart.
    pub(super) cpu: Option<u32>,
    pub(super) stack: Option<StackId>,
    pub(super) region: RegionAt,
    pub(super) event: EventId,
}

/// What was sampled, by place, in the order in which places came first.
#[derive(Debug, Default)]
pub(super) struct SampledPlaces {
    amounts: Vec<(StackPlace, Amount)>,
    numbers: FxHashMap<StackPlace, usize>,
    worth: SampleWorth,
}

impl SampledPlaces {
    /// Adds a sample; gives the number of its place.
    pub(super) fn add(&mut self, place: StackPlace, weight: u64) -> usize {
        let next = self.amounts.len();
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.amounts.push((place, Amount::ZERO));
        }
        let (_, amount) = &mut self.amounts[number];
        *amount = amount.plus(Amount { samples: 1, weight });
        self.worth.add(place.event, weight);
        number
    }

    /// All places with what was sampled there.
    pub(super) fn amounts(&self) -> &[(StackPlace, Amount)] {
        &self.amounts
    }

    pub(super) fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// What samples tell whose weights differ.
    pub(super) fn worth(&self) -> &SampleWorth {
        &self.worth
    }
}

/// A sample of which only the place is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedSample {
    pub(super) at: WallNs,
    /// The number of its place.
    pub(super) place: usize,
    pub(super) weight: u64,
}

/// Samples one by one.
#[derive(Debug, Default)]
pub(super) enum SampleLog {
    /// None are kept.
    #[default]
    Nothing,
    /// All of them.
    All(Vec<PlacedSample>),
    /// Those of the longest span of seconds, in the order in which they came.
    Recent(RecentSamples),
}

impl SampleLog {
    pub(super) fn add(&mut self, sample: PlacedSample) {
        match self {
            Self::Nothing => {}
            Self::All(samples) => samples.push(sample),
            Self::Recent(recent) => recent.add(sample),
        }
    }

    /// Forgets all samples.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Nothing => {}
            Self::All(samples) => samples.clear(),
            Self::Recent(recent) => *recent = RecentSamples::default(),
        }
    }
}

/// The newest samples.
#[derive(Debug, Default)]
pub(super) struct RecentSamples {
    samples: VecDeque<PlacedSample>,
    /// Up to this time some are gone.
    gone: Option<WallNs>,
}

impl RecentSamples {
    fn add(&mut self, sample: PlacedSample) {
        self.samples.push_back(sample);
        let kept_from = sample.at - LONGEST_SPAN;
        while let Some(oldest) =
            self.samples.front().filter(|oldest| oldest.at < kept_from || self.samples.len() > MOST_KEPT)
        {
            self.gone = self.gone.max(Some(oldest.at));
            self.samples.pop_front();
        }
    }

    /// The sums of the samples after a time, and the time after which they are: a later one where some are gone. `of`
    /// has their places.
    pub(super) fn since(&self, after: WallNs, of: &SampledPlaces) -> (SampledPlaces, WallNs) {
        let after = after.max(self.gone.unwrap_or_default());
        let mut sums = SampledPlaces::default();
        for sample in self.samples.iter().filter(|sample| sample.at > after) {
            sums.add(of.amounts[sample.place].0, sample.weight);
        }
        (sums, after)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::profile::{ProfileEvent, SampleMeasure, Tree};

    fn place(task: u32) -> StackPlace {
        let event = Tree::default().event(&ProfileEvent::new("e", SampleMeasure::Samples));
        StackPlace { task: TaskId(task), cpu: None, stack: None, region: RegionAt::Outside, event }
    }

    /// Samples at these seconds, each of its own task.
    fn taken(seconds: &[u64]) -> (SampledPlaces, RecentSamples) {
        let (mut sums, mut recent) = (SampledPlaces::default(), RecentSamples::default());
        for (task, at) in seconds.iter().enumerate() {
            let number = sums.add(place(task as u32), 1);
            recent.add(PlacedSample { at: WallNs(at * SECOND), place: number, weight: 1 });
        }
        (sums, recent)
    }

    fn tasks(sums: &SampledPlaces) -> Vec<u32> {
        sums.amounts().iter().map(|(place, _)| place.task.0).collect()
    }

    #[test]
    fn spans_go_from_the_shortest_to_the_run() {
        let [ten, minute, run] = ProfileSpan::ALL;
        assert_eq!((run.longer(), run.shorter(), minute.shorter(), ten.shorter()), (run, minute, ten, ten));
        assert_eq!((ten.longer(), minute.longer()), (minute, run));
        assert_eq!(ten.start(WallNs(12 * SECOND)), Some(WallNs(2 * SECOND)));
        // A run that is no longer than the span is shown whole.
        assert_eq!(
            (ten.start(WallNs(10 * SECOND)), ten.start(WallNs(0)), run.start(WallNs(u64::MAX))),
            (None, None, None)
        );
    }

    #[test]
    fn sums_of_the_last_seconds_lack_what_came_before() {
        let (all, recent) = taken(&[1, 2, 30, 31]);
        let (sums, since) = recent.since(WallNs(2 * SECOND), &all);
        assert_eq!((tasks(&sums), since), (vec![2, 3], WallNs(2 * SECOND)));
        assert!(tasks(&recent.since(WallNs(31 * SECOND), &all).0).is_empty());
    }

    #[test]
    fn samples_of_more_than_a_minute_ago_are_gone_and_it_is_told() {
        let (all, recent) = taken(&[1, 2, 62, 63]);
        let (sums, since) = recent.since(WallNs(0), &all);
        assert_eq!((tasks(&sums), since), (vec![2, 3], WallNs(2 * SECOND)));
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_came_after_and_all_of_it(mut seconds in prop::collection::vec(0u64..200, 0..30), after in 0u64..200) {
            seconds.sort_unstable();
            let (all, recent) = taken(&seconds);
            let (sums, since) = recent.since(WallNs(after * SECOND), &all);
            prop_assert!(since >= WallNs(after * SECOND));
            let expected = seconds.iter().filter(|second| WallNs(**second * SECOND) > since).count();
            prop_assert_eq!(sums.amounts().len(), expected);
            // Of a span that is offered nothing is gone.
            let newest = seconds.last().copied().unwrap_or(0);
            if after + 60 >= newest {
                prop_assert_eq!(since, WallNs(after * SECOND));
            }
        }
    }
}
