//! Merges the short intervals of a partition, and moves the boundaries between what is left.

use super::{Partition, PointRanges};

/// An interval that may be merged with the next.
struct MergeInterval {
    left: usize,
    right: usize,
    distance: f64,
    previous: Option<usize>,
    next: Option<usize>,
    /// How far all points are from their median once this is merged with the next.
    merged: f64,
    /// By how much that changes the sum.
    change: f64,
}

/// Intervals in the order of the series.
struct Intervals<'a, 'b> {
    all: Vec<MergeInterval>,
    penalty: f64,
    ranges: &'a mut PointRanges<'b>,
}

/// Merges intervals as long as that doesn't make the sum larger, by asv's order: the first that may be merged, or one of
/// those that follow it at once while each gains at least as much as the one before it. Gives the ends of the intervals.
pub(super) fn merge(partition: &Partition, penalty: f64, ranges: &mut PointRanges<'_>) -> Vec<usize> {
    let mut intervals = Intervals::new(partition, penalty, ranges);
    let mut start = intervals.all.first().map(|_| 0);
    while let Some(first) = intervals.first_gain(start) {
        let mut best = first;
        while let Some(next) = intervals.all[best].next
            && intervals.all[next].change <= intervals.all[best].change
        {
            best = next;
        }
        intervals.merge_with_next(best);
        // Nothing changed before these.
        start = Some(if best == first { intervals.all[first].previous.unwrap_or(first) } else { first });
    }
    intervals.rights()
}

impl<'a, 'b> Intervals<'a, 'b> {
    fn new(partition: &Partition, penalty: f64, ranges: &'a mut PointRanges<'b>) -> Self {
        let count = partition.rights.len();
        let mut all: Vec<MergeInterval> = Vec::with_capacity(count);
        for (at, interval) in partition.intervals().enumerate() {
            let (left, right) = (interval.start, interval.end);
            let distance = ranges.distance(left, right);
            let (previous, next) = (at.checked_sub(1), (at + 1 < count).then_some(at + 1));
            all.push(MergeInterval { left, right, distance, previous, next, merged: 0.0, change: f64::INFINITY });
        }
        let mut intervals = Self { all, penalty, ranges };
        (0..count).for_each(|at| intervals.update(at));
        intervals
    }

    /// The first interval from one on that may be merged with the next.
    fn first_gain(&self, mut at: Option<usize>) -> Option<usize> {
        while let Some(interval) = at.map(|at| &self.all[at])
            && interval.change.is_nan() | (interval.change > 0.0)
        {
            at = interval.next;
        }
        at
    }

    fn merge_with_next(&mut self, at: usize) {
        let Some(gone) = self.all[at].next else { return };
        let (right, next) = (self.all[gone].right, self.all[gone].next);
        let one = &mut self.all[at];
        (one.right, one.distance, one.next) = (right, one.merged, next);
        if let Some(next) = next {
            self.all[next].previous = Some(at);
        }
        self.update(at);
        if let Some(previous) = self.all[at].previous {
            self.update(previous);
        }
    }

    /// Computes what merging an interval with the next changes.
    fn update(&mut self, at: usize) {
        let one = &self.all[at];
        let Some(next) = one.next.map(|next| &self.all[next]) else {
            self.all[at].change = f64::INFINITY;
            return;
        };
        let merged = self.ranges.distance(one.left, next.right);
        let change = merged - (one.distance + next.distance + self.penalty);
        (self.all[at].merged, self.all[at].change) = (merged, change);
    }

    fn rights(&self) -> Vec<usize> {
        let first = self.all.first();
        std::iter::successors(first, |one| one.next.map(|next| &self.all[next])).map(|one| one.right).collect()
    }
}

/// Moves each boundary by up to so many points to where the distances on both of its sides are the least, from left to right.
pub(super) fn move_boundaries(rights: &mut [usize], most: usize, ranges: &mut PointRanges<'_>) {
    let mut left = 0;
    for at in 1..rights.len() {
        let (old, end) = (rights[at - 1], rights[at]);
        let mut sum = |middle: usize| ranges.distance(left, middle) + ranges.distance(middle, end);
        let mut least = sum(old);
        for middle in old.saturating_sub(most).max(left + 1)..=(old + most).min(end - 1) {
            let moved = if middle == old { continue } else { sum(middle) };
            if moved < least {
                (least, rights[at - 1]) = (moved, middle);
            }
        }
        left = rights[at - 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weighted::WeightedValue;

    #[test]
    fn equal_levels_merge_and_a_boundary_finds_its_place() {
        let points = [1.0, 1.0, 1.0, 1.0, 4.0, 4.0, 4.0].map(|value| WeightedValue { value, weight: 1.0 });
        let mut ranges = PointRanges::new(&points, 2);
        let short = Partition { rights: vec![2, 3, 4, 6, 7] };
        assert_eq!(merge(&short, 1.0, &mut ranges), [4, 7]);
        let mut rights = [2, 7];
        move_boundaries(&mut rights, 3, &mut ranges);
        assert_eq!(rights, [4, 7]);
        move_boundaries(&mut [], 3, &mut ranges);
        assert!(merge(&Partition::default(), 1.0, &mut ranges).is_empty());
    }
}
