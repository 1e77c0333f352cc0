//! Computes how far the points of short intervals are from their medians, for all intervals of a series.

use std::ops::Range;

use super::weighted::{WeightedValue, centre_of_sorted, has_equal_weights};

/// Tells the distances of intervals from one end, as many as asked for.
pub(super) trait WindowRows {
    /// The distances of the intervals that end with the point `right`: the one of `size` points first, then the shorter ones.
    fn ending_with(&mut self, right: usize, size: usize) -> &[f64];
}

/// The distances of the points of all intervals of up to so many points.
pub(super) struct WindowTable {
    pub(super) size: usize,
    /// For each last point, a row of the intervals that end with it, the longest first.
    distances: Vec<f64>,
}

impl WindowTable {
    pub(super) fn new(points: &[WeightedValue], size: usize) -> Self {
        let mut distances = vec![f64::INFINITY; points.len() * size];
        let mut window = Window::new(points);
        let mut by_one = |rights: Range<usize>, rows: &mut [f64]| {
            for (right, row) in rights.zip(rows.chunks_exact_mut(size)) {
                let whole = size.min(right + 1);
                row[size - whole..].copy_from_slice(window.ending_with(right, whole));
            }
        };
        if has_equal_weights(points) {
            let values: Vec<f64> = points.iter().map(|point| point.value).collect();
            let mut sorted = vec![[0.0; LANES]; size];
            // The windows of the first points begin before the series.
            let (first, rest) = distances.split_at_mut(points.len().min(size) * size);
            by_one(0..points.len(), first);
            let mut rows = rest.chunks_exact_mut(size * LANES);
            let mut right = size;
            for rows in rows.by_ref() {
                plain_distances(&values, right, &mut sorted, rows);
                right += LANES;
            }
            by_one(right..points.len(), rows.into_remainder());
        } else {
            by_one(0..points.len(), &mut distances);
        }
        Self { size, distances }
    }

    /// The distance of the points from `left` to before `right`.
    pub(super) fn distance(&self, left: usize, right: usize) -> f64 {
        self.distances[right * self.size - (right - left)]
    }
}

impl WindowRows for WindowTable {
    fn ending_with(&mut self, right: usize, size: usize) -> &[f64] {
        let end = (right + 1) * self.size;
        &self.distances[end - size..end]
    }
}

/// Computes the distances of intervals by adding one point after the other to those that are sorted.
pub(super) struct Window<'a> {
    points: &'a [WeightedValue],
    sorted: Vec<WeightedValue>,
    row: Vec<f64>,
}

impl<'a> Window<'a> {
    pub(super) fn new(points: &'a [WeightedValue]) -> Self {
        Self { points, sorted: Vec::new(), row: Vec::new() }
    }
}

impl WindowRows for Window<'_> {
    fn ending_with(&mut self, right: usize, size: usize) -> &[f64] {
        self.sorted.clear();
        self.row.clear();
        for left in (right + 1 - size..=right).rev() {
            let at = self.sorted.partition_point(|other| other.order(&self.points[left]).is_lt());
            self.sorted.insert(at, self.points[left]);
            self.row.push(centre_of_sorted(&self.points[left..=right], &self.sorted).distance);
        }
        self.row.reverse();
        &self.row
    }
}

/// So many intervals are computed side by side.
const LANES: usize = 4;

/// The same for weights of 1: the rows of the intervals that end with `right` and the points after it. `sorted` has the size of
/// the longest.
fn plain_distances(values: &[f64], right: usize, sorted: &mut [[f64; LANES]], rows: &mut [f64]) {
    let size = sorted.len();
    sorted.fill([f64::INFINITY; LANES]);
    for points in 1..=size {
        let window = &values[right + 1 - points..right + LANES];
        insert(&mut sorted[..points], &window[..LANES]);
        let half = points / 2;
        let is_even = points.is_multiple_of(2);
        let median = |lane: usize| match sorted[half][lane] {
            above if is_even => f64::midpoint(sorted[half - 1][lane], above),
            middle => middle,
        };
        let medians: [f64; LANES] = std::array::from_fn(median);
        let mut sums = [0.0; LANES];
        for values in window.windows(LANES) {
            for lane in 0..LANES {
                sums[lane] += (values[lane] - medians[lane]).abs();
            }
        }
        for (row, sum) in rows.chunks_exact_mut(size).zip(sums) {
            row[size - points] = sum;
        }
    }
}

/// Puts a value into the order of each lane, where the last place is free.
fn insert(sorted: &mut [[f64; LANES]], values: &[f64]) {
    let lower = |a: f64, b: f64| if a < b { a } else { b };
    let higher = |a: f64, b: f64| if a > b { a } else { b };
    for at in (1..sorted.len()).rev() {
        let below = sorted[at - 1];
        for lane in 0..LANES {
            sorted[at][lane] = lower(sorted[at][lane], higher(below[lane], values[lane]));
        }
    }
    for lane in 0..LANES {
        sorted[0][lane] = lower(sorted[0][lane], values[lane]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<WeightedValue> {
        pairs.iter().map(|&(value, weight)| WeightedValue { value, weight }).collect()
    }

    #[test]
    fn distances_by_hand() {
        let points = points(&[(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]);
        let mut table = WindowTable::new(&points, 2);
        assert_eq!(table.ending_with(2, 2), [1.0, 0.0]);
        assert_eq!(table.ending_with(0, 1), [0.0]);
        assert_eq!(table.distance(0, 2), 2.0);
        assert_eq!(Window::new(&points).ending_with(2, 3), [2.0, 1.0, 0.0]);
        assert_eq!(WindowTable::new(&[], 2).distances, [0.0; 0]);
    }

    proptest! {
        #[test]
        fn a_table_holds_what_each_window_has(
            values in prop::collection::vec(-9i32..9, 1..40),
            size in 1usize..12,
            heavy in prop::option::of(0usize..40),
        ) {
            let pairs: Vec<_> = values.iter().map(|&value| (0.1 * f64::from(value), 1.0)).collect();
            let mut points = points(&pairs);
            if let Some(heavy) = heavy {
                points[heavy % values.len()].weight = 2.0;
            }
            let (mut table, mut window) = (WindowTable::new(&points, size), Window::new(&points));
            for right in 0..points.len() {
                let size = size.min(right + 1);
                prop_assert_eq!(table.ending_with(right, size), window.ending_with(right, size));
            }
        }
    }
}
