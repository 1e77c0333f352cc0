//! Computes how far the points of short intervals are from their medians, for all intervals of a series.

use super::weighted::{WeightedValue, centre_of_sorted, has_equal_weights};

/// The distances of the points of all intervals of up to so many points.
pub(super) struct WindowTable {
    pub(super) size: usize,
    /// For each last point, a row of the intervals that end with it, the shortest first.
    distances: Vec<f64>,
}

impl WindowTable {
    pub(super) fn new(points: &[WeightedValue], size: usize) -> Self {
        let (mut distances, mut row) = (Vec::with_capacity(points.len() * size), Vec::new());
        let of_windows = if has_equal_weights(points) { plain_window_distances } else { window_distances };
        for right in 0..points.len() {
            of_windows(points, right, size.min(right + 1), &mut row);
            row.resize(size, f64::INFINITY);
            distances.extend_from_slice(&row);
        }
        Self { size, distances }
    }

    /// The distances of the intervals that end with the point `right`; infinite for those that would begin before the series.
    pub(super) fn row(&self, right: usize) -> &[f64] {
        &self.distances[right * self.size..(right + 1) * self.size]
    }
}

/// Computes the same, by adding one point after the other to those that are sorted.
pub(super) fn window_distances(points: &[WeightedValue], right: usize, size: usize, into: &mut Vec<f64>) {
    let mut sorted: Vec<WeightedValue> = Vec::with_capacity(size);
    into.clear();
    for left in (right + 1 - size..=right).rev() {
        let at = sorted.partition_point(|other| other.order(&points[left]).is_lt());
        sorted.insert(at, points[left]);
        into.push(centre_of_sorted(&points[left..=right], &sorted).distance);
    }
}

/// The same for weights of 1.
fn plain_window_distances(points: &[WeightedValue], right: usize, size: usize, into: &mut Vec<f64>) {
    let mut sorted: Vec<f64> = Vec::with_capacity(size);
    into.clear();
    for left in (right + 1 - size..=right).rev() {
        let value = points[left].value;
        sorted.push(value);
        let mut at = sorted.len() - 1;
        while at > 0 && sorted[at - 1] > value {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = value;
        let half = sorted.len() / 2;
        let is_even = sorted.len().is_multiple_of(2);
        let median = if is_even { f64::midpoint(sorted[half - 1], sorted[half]) } else { sorted[half] };
        into.push(points[left..=right].iter().fold(0.0, |sum, point| sum + (point.value - median).abs()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        let points = [3.0, 1.0, 2.0].map(|value| WeightedValue { value, weight: 1.0 });
        let mut row = Vec::new();
        let table = WindowTable::new(&points, 2);
        assert_eq!(table.row(2), [0.0, 1.0]);
        for distances in [window_distances, plain_window_distances] {
            distances(&points, 2, 3, &mut row);
            assert_eq!(row, [0.0, 1.0, 2.0]);
        }
        assert_eq!(table.row(0), [0.0, f64::INFINITY]);
    }
}
