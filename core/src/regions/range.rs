//! Takes off what regions had counted before a range of a recording begins.

use rustc_hash::FxHashMap;

use super::{RegionBatch, RegionCounts, RegionPathId};
use crate::units::WallNs;

/// The batches of a recording as they are in a range of it: with counts from its beginning on.
#[derive(Debug, Default)]
pub struct RegionRange {
    /// The end of what is left out; nothing is if `None`.
    after: Option<WallNs>,
    before: FxHashMap<RegionPathId, RegionCounts>,
}

impl RegionRange {
    /// A range from a time on.
    pub fn after(after: Option<WallNs>) -> Self {
        Self { after, ..Self::default() }
    }

    /// What there is of a batch in the range; always hand over all batches, in their order. What one defines, and what threads
    /// entered and left, stays. What single threads counted in all isn't known of a range.
    pub fn take(&mut self, batch: &RegionBatch) -> RegionBatch {
        let Some(after) = self.after else { return batch.clone() };
        let mut part = RegionBatch { counts: Vec::new(), threads: Vec::new(), ..batch.clone() };
        if batch.at <= after {
            self.before.extend(batch.counts.iter().map(|counts| (counts.path, counts.clone())));
        } else {
            let since = |counts: &RegionCounts| match self.before.get(&counts.path) {
                Some(before) => counts.since(before),
                None => counts.clone(),
            };
            let counts = batch.counts.iter().map(since);
            part.counts = counts.filter(|counts| counts.calls > 0 || counts.reverse_calls > 0).collect();
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn counts(path: u32, calls: u64) -> RegionCounts {
        let nothing = RegionCounts::nothing(RegionPathId(path));
        RegionCounts { calls, time_ns: 10 * calls, self_ns: 4 * calls, ..nothing }
    }

    fn batch(at: u64, counts: Vec<RegionCounts>) -> RegionBatch {
        RegionBatch { at: WallNs(at), counts, ..RegionBatch::default() }
    }

    fn calls(batches: &[RegionBatch]) -> Vec<(u32, u64, u64, u64)> {
        let counts = batches.iter().flat_map(|batch| &batch.counts);
        counts.map(|counts| (counts.path.0, counts.calls, counts.time_ns, counts.self_ns)).collect()
    }

    #[test]
    fn a_range_has_what_was_counted_in_it() {
        let all = [
            batch(1, vec![counts(0, 3), counts(1, 5)]),
            batch(2, vec![counts(0, 4)]),
            batch(3, vec![counts(0, 9), counts(1, 5), counts(2, 1)]),
        ];
        let of = |after: Option<u64>| {
            let mut range = RegionRange::after(after.map(WallNs));
            calls(&all.iter().map(|batch| range.take(batch)).collect::<Vec<_>>())
        };
        // Of 9 calls 4 were before; path 1 had none since; path 2 is new.
        assert_eq!(of(Some(2)), [(0, 5, 50, 20), (2, 1, 10, 4)]);
        assert_eq!(of(Some(3)), []);
        assert_eq!(of(None), calls(&all));
    }

    proptest! {
        #[test]
        fn two_parts_are_the_whole(steps in prop::collection::vec(0_u64..5, 1..20), at in 0_usize..20) {
            let mut sum = 0;
            let all: Vec<_> = (1..).zip(&steps).map(|(at, step)| {
                sum += step;
                batch(at, vec![counts(0, sum)])
            }).collect();
            let last = |batches: &[RegionBatch]| calls(batches).last().map_or(0, |counts| counts.1);
            let mut range = RegionRange::after(Some(WallNs(at as u64)));
            let later: Vec<_> = all.iter().map(|batch| range.take(batch)).collect();
            prop_assert_eq!(last(&all[..at.min(all.len())]) + last(&later), sum);
        }
    }
}
