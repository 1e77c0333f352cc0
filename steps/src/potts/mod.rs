//! Finds steps as asv does: piecewise constant levels, distances from medians, and a penalty for each jump.
//!
//! A [`Partition`] makes the sum of all distances plus `penalty` times the number of jumps small (Friedrich and others,
//! "Complexity penalized M-estimation: fast computation", 2008). [`partition`] finds the least sum, [`approximate`]
//! comes near it in less time, and [`automatic`] chooses the penalty by an information criterion.

mod criterion;
mod merge;

use std::ops::Range;

pub use criterion::{AutomaticFit, PenaltyTrial, automatic};

use super::ranges::PointRanges;
use super::weighted::{Centre, WeightedValue, centre};
use super::windows::{Window, WindowRows};

/// A series cut into intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// The position after each interval.
    pub rights: Vec<usize>,
}

impl Partition {
    /// The intervals, the first of which begins at 0.
    pub fn intervals(&self) -> impl Iterator<Item = Range<usize>> {
        std::iter::once(0).chain(self.rights.iter().copied()).zip(&self.rights).map(|(left, &right)| left..right)
    }

    /// The median of each interval, and the distance from it.
    pub fn centres(&self, points: &[WeightedValue]) -> Vec<Centre> {
        self.intervals().map(|interval| centre(&points[interval])).collect()
    }
}

/// Which intervals a partition may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntervalLimits {
    /// The least number of points in an interval.
    pub min_size: usize,
    /// The largest number of points in an interval.
    pub max_size: usize,
    /// The points that are cut into intervals.
    pub positions: Range<usize>,
}

/// The penalty that [`approximate`] takes if none is given: 3 D ln n / n for the distance D of all points.
pub fn default_penalty(points: &[WeightedValue]) -> f64 {
    let count = points.len() as f64;
    3.0 * centre(points).distance * count.ln() / count
}

/// The partition with the least sum, in a time that grows with n m² for n points in intervals of at most m. Of several, the
/// one whose last intervals are the shortest.
pub fn partition(points: &[WeightedValue], penalty: f64, limits: &IntervalLimits) -> Partition {
    partition_by(points.len(), penalty, limits, &mut Window::new(points))
}

/// The same, where `rows` say how far the points of each interval are from their median.
fn partition_by(count: usize, penalty: f64, limits: &IntervalLimits, rows: &mut impl WindowRows) -> Partition {
    let IntervalLimits { positions, max_size, .. } = limits;
    if count == 0 || limits.min_size >= positions.len() {
        return Partition { rights: (count > 0).then_some(count).into_iter().collect() };
    }
    let shortest = limits.min_size.max(1);
    let mut sums = Vec::with_capacity(positions.len() + 1);
    sums.push(-penalty);
    for points in 1..=positions.len() {
        let largest = points.min(*max_size);
        let row = rows.ending_with(positions.start + points - 1, largest);
        sums.push(least(&sums[points - largest..], &row[..(largest + 1).saturating_sub(shortest)], penalty));
    }
    let (mut rights, mut points) = (Vec::new(), positions.len());
    while points > 0 {
        rights.push(points + positions.start);
        let first = points - points.min(*max_size);
        let row = rows.ending_with(positions.start + points - 1, points - first);
        // The shortest of the intervals that lead to the least sum.
        let is_least = |at: usize| sums[first + at] + penalty + row[at] == sums[points];
        let place = (0..(points - first + 1).saturating_sub(shortest)).rfind(|&at| is_least(at));
        points = place.map_or(0, |place| first + place);
    }
    rights.reverse();
    Partition { rights }
}

/// The least of the sums before each interval with the penalty and the interval's own distance; infinite for no interval.
fn least(before: &[f64], distances: &[f64], penalty: f64) -> f64 {
    const LANES: usize = 4;
    let lower = |a: f64, b: f64| if a < b { a } else { b };
    let mut lanes = [f64::INFINITY; LANES];
    let (before, before_rest) = before[..distances.len()].as_chunks::<LANES>();
    let (distances, rest) = distances.as_chunks::<LANES>();
    for (before, distances) in before.iter().zip(distances) {
        for lane in 0..LANES {
            lanes[lane] = lower(before[lane] + penalty + distances[lane], lanes[lane]);
        }
    }
    let rest = before_rest.iter().zip(rest).map(|(sum, distance)| sum + penalty + distance);
    lanes.into_iter().chain(rest).fold(f64::INFINITY, lower)
}

/// A partition whose sum is near the least, in a time that grows with n log n: the best one of short intervals, which are
/// then merged and moved.
pub fn approximate(points: &[WeightedValue], penalty: f64, min_size: usize) -> Partition {
    Approximation::new(points, min_size).partition(penalty)
}

/// A series prepared for partitions by several penalties.
struct Approximation<'a> {
    ranges: PointRanges<'a>,
    limits: IntervalLimits,
}

impl<'a> Approximation<'a> {
    fn new(points: &'a [WeightedValue], min_size: usize) -> Self {
        // asv's choice, which keeps intervals short enough to be looked at one by one.
        let max_size = if min_size < 10 { 20 } else { min_size + 50 };
        let limits = IntervalLimits { min_size, max_size, positions: 0..points.len() };
        Self { ranges: PointRanges::new(points, max_size), limits }
    }

    fn partition(&mut self, penalty: f64) -> Partition {
        let count = self.limits.positions.len();
        let short = partition_by(count, penalty, &self.limits, self.ranges.windows());
        let mut rights = merge::merge(&short, penalty, &mut self.ranges);
        merge::move_boundaries(&mut rights, self.limits.max_size, &mut self.ranges);
        Partition { rights }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(values: &[f64]) -> Vec<WeightedValue> {
        values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect()
    }

    fn any(points: usize) -> IntervalLimits {
        IntervalLimits { min_size: 1, max_size: points, positions: 0..points }
    }

    fn sum(points: &[WeightedValue], partition: &Partition, penalty: f64) -> f64 {
        let distances: f64 = partition.centres(points).iter().map(|centre| centre.distance).sum();
        distances + penalty * (partition.rights.len() as f64 - 1.0)
    }

    #[test]
    fn a_jump_costs_less_than_the_distances_by_hand() {
        let points = points(&[0.0, 0.0, 0.0, 5.0, 5.0]);
        // One interval has a distance of 10.
        assert_eq!(partition(&points, 9.9, &any(5)).rights, [3, 5]);
        assert_eq!(partition(&points, 10.1, &any(5)).rights, [5]);
        assert_eq!(approximate(&points, 9.9, 1).rights, [3, 5]);
    }

    #[test]
    fn nothing_and_one_point() {
        assert!(partition(&[], 1.0, &any(0)).rights.is_empty());
        assert!(approximate(&[], 1.0, 1).rights.is_empty());
        assert!(automatic(&[]).partition.rights.is_empty());
        assert_eq!(approximate(&points(&[3.0]), 1.0, 1).rights, [1]);
    }

    #[test]
    fn long_intervals_are_merged_from_short_ones() {
        let values: Vec<f64> = (0..3000).map(|at| f64::from(at % 7) + if at < 1234 { 0.0 } else { 50.0 }).collect();
        assert_eq!(automatic(&points(&values)).partition.rights, [1234, 3000]);
    }

    proptest! {
        #[test]
        fn no_partition_has_a_smaller_sum(
            values in prop::collection::vec(-9f64..9.0, 2..25),
            cuts in prop::collection::btree_set(1usize..24, 0..6),
            penalty in 0.1f64..20.0,
        ) {
            let points = points(&values);
            let best = sum(&points, &partition(&points, penalty, &any(points.len())), penalty);
            let rights = cuts.into_iter().filter(|&cut| cut < points.len()).chain([points.len()]).collect();
            let other = sum(&points, &Partition { rights }, penalty);
            prop_assert!(best <= other + 1e-9);
            prop_assert!(best <= sum(&points, &approximate(&points, penalty, 1), penalty) + 1e-9);
        }
    }
}
