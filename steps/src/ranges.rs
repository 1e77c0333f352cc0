//! Computes how far the points of any range of a series are from the range's median.

use super::weighted::{WeightedValue, centre_of_sorted};
use super::windows::WindowTable;

/// A series of so many points needs no index.
const SMALL: usize = 1000;

/// The points of a series, prepared for questions about ranges of them.
pub(super) struct PointRanges<'a> {
    points: &'a [WeightedValue],
    windows: WindowTable,
    index: Option<MedianIndex>,
    sorted: Vec<WeightedValue>,
}

impl<'a> PointRanges<'a> {
    /// Ranges of up to `short` points are looked up.
    pub(super) fn new(points: &'a [WeightedValue], short: usize) -> Self {
        let index = (points.len() > SMALL).then(|| MedianIndex::new(points));
        Self { points, windows: WindowTable::new(points, short), index, sorted: Vec::new() }
    }

    /// The sum of the weighted distances of the points from `left` to before `right` from their median.
    pub(super) fn distance(&mut self, left: usize, right: usize) -> f64 {
        match &self.index {
            _ if right - left <= self.windows.size => self.windows.distance(left, right),
            Some(index) => index.distance(left, right),
            None => {
                self.sorted.clear();
                self.sorted.extend_from_slice(&self.points[left..right]);
                self.sorted.sort_unstable_by(WeightedValue::order);
                centre_of_sorted(&self.points[left..right], &self.sorted).distance
            }
        }
    }

    /// The distances of short ranges.
    pub(super) fn windows(&mut self) -> &mut WindowTable {
        &mut self.windows
    }
}

/// Finds the weighted median of a range in as many steps as the number of points has bits.
///
/// A wavelet matrix (Claude, Navarro and Ordóñez, "The wavelet matrix", 2015) of the ranks of the values: each level sorts
/// the points stably by one more bit of their rank, the highest bit first. It has running sums of the points whose bit is 0.
struct MedianIndex {
    levels: Vec<IndexLevel>,
    /// The values in their order.
    values: Vec<f64>,
    /// Running sums of all points.
    sums: Vec<Sums>,
}

/// What lies before each point at one level.
struct IndexLevel(Vec<LowPoints>);

/// The points whose bit is 0.
#[derive(Clone, Copy, Default)]
struct LowPoints {
    count: u32,
    sums: Sums,
}

/// Sums of points.
#[derive(Clone, Copy, Default)]
struct Sums {
    weight: f64,
    /// Weights times values.
    product: f64,
}

impl Sums {
    fn of(point: WeightedValue) -> Self {
        Self { weight: point.weight, product: point.weight * point.value }
    }

    fn plus(self, other: Self) -> Self {
        Self { weight: self.weight + other.weight, product: self.product + other.product }
    }

    fn minus(self, other: Self) -> Self {
        Self { weight: self.weight - other.weight, product: self.product - other.product }
    }

    /// Running sums, which begin with those of nothing.
    fn running(all: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut sum = Self::default();
        let next = |one| {
            sum = sum.plus(one);
            sum
        };
        std::iter::once(Self::default()).chain(all.map(next)).collect()
    }
}

impl MedianIndex {
    fn new(points: &[WeightedValue]) -> Self {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a].order(&points[b]));
        let offset = points[order[points.len() / 2]].value;
        let mut ranked: Vec<(u32, WeightedValue)> = points
            .iter()
            .map(|point| (0, WeightedValue { value: point.value - offset, weight: point.weight }))
            .collect();
        for (rank, &at) in order.iter().enumerate() {
            ranked[at].0 = rank as u32;
        }
        let values = order.iter().map(|&at| ranked[at].1.value).collect();
        let sums = Sums::running(ranked.iter().map(|&(_, point)| Sums::of(point)));
        let bits = usize::BITS - (points.len() - 1).leading_zeros();
        let mut next = Vec::with_capacity(ranked.len());
        let level = |bit: u32| {
            let level = IndexLevel::new(&ranked, bit);
            for half in [0, 1] {
                next.extend(ranked.iter().filter(|(rank, _)| rank >> bit & 1 == half));
            }
            std::mem::swap(&mut ranked, &mut next);
            next.clear();
            level
        };
        let levels = (0..bits).rev().map(level).collect();
        Self { levels, values, sums }
    }

    /// The sum of the weighted distances from the median, of at least one point.
    fn distance(&self, mut left: usize, mut right: usize) -> f64 {
        let all = self.sums[right].minus(self.sums[left]);
        let (half, mut below, mut rank) = (all.weight / 2.0, Sums::default(), 0);
        for level in &self.levels {
            let (before_left, before_right) = (level.0[left], level.0[right]);
            let (from, to) = (before_left.count as usize, before_right.count as usize);
            let with = below.plus(before_right.sums.minus(before_left.sums));
            // Rounding must not lead to a side that is empty.
            let is_low = to > from && (with.weight >= half || to - from == right - left);
            rank = 2 * rank + usize::from(!is_low);
            if is_low {
                (left, right) = (from, to);
            } else {
                let all = level.0[level.0.len() - 1].count as usize;
                (left, right) = (all + left - from, all + right - to);
                below = with;
            }
        }
        let median = self.values[rank];
        let above = all.minus(below);
        (above.product - median * above.weight + median * below.weight - below.product).max(0.0)
    }
}

impl IndexLevel {
    /// The level of a bit, from points in the order of this level.
    fn new(ranked: &[(u32, WeightedValue)], bit: u32) -> Self {
        let mut low = LowPoints::default();
        let mut before = Vec::with_capacity(ranked.len() + 1);
        before.push(low);
        for &(rank, point) in ranked {
            if rank >> bit & 1 == 0 {
                low = LowPoints { count: low.count + 1, sums: low.sums.plus(Sums::of(point)) };
            }
            before.push(low);
        }
        Self(before)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::weighted::centre;

    fn points(values: &[f64]) -> Vec<WeightedValue> {
        values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect()
    }

    #[test]
    fn distances_by_hand() {
        let points = points(&[5.0, 1.0, 2.0, 9.0]);
        let index = MedianIndex::new(&points);
        // The medians are 1, 1.5 and 3.5; any number between the two inner values is as near.
        assert_eq!([index.distance(1, 2), index.distance(1, 3), index.distance(0, 4)], [0.0, 1.0, 11.0]);
        assert_eq!(PointRanges::new(&points, 2).distance(0, 4), 11.0);
    }

    #[test]
    fn one_level_has_no_distance() {
        let points = points(&vec![0.1; 3000]);
        let mut ranges = PointRanges::new(&points, 2);
        assert_eq!([ranges.distance(0, 3000), ranges.distance(7, 2000)], [0.0, 0.0]);
    }

    proptest! {
        #[test]
        fn the_index_agrees_with_sorting(
            pairs in prop::collection::vec((-9i32..9, 0.1f64..4.0), 1..60),
            ends in (0usize..60, 0usize..60),
        ) {
            let points: Vec<_> =
                pairs.iter().map(|&(value, weight)| WeightedValue { value: f64::from(value), weight }).collect();
            let (a, b) = (ends.0 % points.len(), ends.1 % points.len());
            let (left, right) = (a.min(b), a.max(b) + 1);
            let found = MedianIndex::new(&points).distance(left, right);
            prop_assert!((found - centre(&points[left..right]).distance).abs() < 1e-9);
        }
    }
}
