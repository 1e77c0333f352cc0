//! Computes weighted medians, and how far values are from them.

use std::cmp::Ordering;

use super::series::median;

/// A value, and how much it counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WeightedValue {
    /// The value, which is a number.
    pub value: f64,
    /// How much it counts.
    pub weight: f64,
}

impl WeightedValue {
    /// The order of values; of equal ones, that of weights.
    pub(super) fn order(&self, other: &Self) -> Ordering {
        self.value.total_cmp(&other.value).then(self.weight.total_cmp(&other.weight))
    }
}

/// The middle of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Centre {
    /// The weighted median.
    pub median: f64,
    /// The sum of the distances of all values from it, each times its weight.
    pub distance: f64,
}

/// The weighted median of values and their distance from it; zeros for no values.
///
/// The median is the first value at which the running weight reaches half of the weight of all. If it is exactly half
/// there, the median is the mean of this value and the next.
pub fn centre(points: &[WeightedValue]) -> Centre {
    if has_equal_weights(points) {
        let median = median(points.iter().map(|point| point.value).collect()).unwrap_or_default();
        let distance = points.iter().fold(0.0, |sum, point| sum + (point.value - median).abs());
        return Centre { median, distance };
    }
    let mut sorted = points.to_vec();
    sorted.sort_unstable_by(WeightedValue::order);
    centre_of_sorted(points, &sorted)
}

/// Whether all weights are 1.
pub(super) fn has_equal_weights(points: &[WeightedValue]) -> bool {
    points.iter().all(|point| point.weight == 1.0)
}

/// The same of points that are sorted already. The distances are added in the order of `points`.
pub(super) fn centre_of_sorted(points: &[WeightedValue], sorted: &[WeightedValue]) -> Centre {
    let median = median_of_sorted(sorted);
    let distance = points.iter().fold(0.0, |sum, point| sum + point.weight * (point.value - median).abs());
    Centre { median, distance }
}

fn median_of_sorted(sorted: &[WeightedValue]) -> f64 {
    let half = sorted.iter().fold(0.0, |sum, point| sum + point.weight) / 2.0;
    let mut sum = 0.0;
    for (at, point) in sorted.iter().enumerate() {
        sum += point.weight;
        if sum >= half {
            return match sorted.get(at + 1) {
                Some(next) if sum == half => f64::midpoint(next.value, point.value),
                _ => point.value,
            };
        }
    }
    sorted.last().map_or(0.0, |last| last.value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(pairs: &[(f64, f64)]) -> Vec<WeightedValue> {
        pairs.iter().map(|&(value, weight)| WeightedValue { value, weight }).collect()
    }

    #[test]
    fn medians_by_hand() {
        let centres = [
            (vec![(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)], 2.0, 2.0),
            // Half of the weight lies on either side of 2.5.
            (vec![(1.0, 1.0), (2.0, 1.0), (3.0, 2.0)], 2.5, 3.0),
            // The heavy point alone is the middle.
            (vec![(1.0, 1.0), (2.0, 5.0), (9.0, 1.0)], 2.0, 8.0),
            (vec![(7.0, 0.5)], 7.0, 0.0),
            (vec![], 0.0, 0.0),
        ];
        for (pairs, median, distance) in centres {
            assert_eq!(centre(&points(&pairs)), Centre { median, distance }, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn no_value_is_nearer_to_all_than_the_median(
            pairs in prop::collection::vec((-100f64..100.0, 0.1f64..10.0), 1..30),
            other in -100f64..100.0,
        ) {
            let points = points(&pairs);
            let centre = centre(&points);
            let from = |level: f64| points.iter().map(|point| point.weight * (point.value - level).abs()).sum::<f64>();
            prop_assert!(centre.distance <= from(other) + 1e-9);
            prop_assert!((centre.distance - from(centre.median)).abs() < 1e-9);
        }
    }
}
