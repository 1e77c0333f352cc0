//! Sums over any range of a series, from running sums.

use std::ops::{Add, Range, Sub};

/// Sums over points: of weights, and of weights times values, places and products of these.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PointSums {
    pub(super) count: f64,
    pub(super) weight: f64,
    value: f64,
    square: f64,
    place: f64,
    place_square: f64,
    place_value: f64,
    /// Over values that are no outliers, as are those before them, without weights: how many, their products with those before them,
    /// and the sums of both.
    pairs: f64,
    lagged: f64,
    of_pairs: f64,
    plain: f64,
    plain_square: f64,
}

macro_rules! by_field {
    ($operator:ident, $method:ident, $($field:ident)*) => {
        impl $operator for PointSums {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                Self { $($field: self.$field.$method(other.$field)),* }
            }
        }
    };
}
by_field!(Add, add, count weight value square place place_square place_value pairs lagged of_pairs plain plain_square);
by_field!(Sub, sub, count weight value square place place_square place_value pairs lagged of_pairs plain plain_square);

impl PointSums {
    pub(super) fn mean(&self) -> f64 {
        self.value / self.weight
    }

    /// The squares of what is left beside one level.
    pub(super) fn squares(&self) -> f64 {
        (self.square - self.value * self.value / self.weight).max(0.0)
    }

    /// The squares of what is left beside a straight line.
    pub(super) fn squares_of_line(&self) -> f64 {
        let spread = self.place_square - self.place * self.place / self.weight;
        let shared = self.place_value - self.place * self.value / self.weight;
        if spread > 0.0 { (self.squares() - shared * shared / spread).max(0.0) } else { self.squares() }
    }
}

/// The variance below which sums over so many values are rounding, as a part of the square of the values' range.
pub(super) fn rounding(count: usize) -> f64 {
    (1e-14 * count as f64).max(1e-12)
}

/// Running sums of a series.
pub(super) struct RunningSums {
    sums: Vec<PointSums>,
    values: Vec<f64>,
    /// The square roots of the weights.
    roots: Vec<f64>,
}

impl RunningSums {
    /// Of values without outliers, their weights, and which stand in the place of outliers.
    pub(super) fn new(values: &[f64], weights: &[f64], is_outlier: &[bool]) -> Self {
        let count = values.len();
        // Sums of small numbers keep their digits.
        let middle = values.iter().sum::<f64>() / count.max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - middle).collect();
        let mut sum = PointSums::default();
        let mut sums = vec![sum];
        for (at, (&value, &weight)) in values.iter().zip(weights).enumerate() {
            let place = at as f64 - count as f64 / 2.0;
            // An outlier's place has a value that is made of those around it.
            let before =
                at.checked_sub(1).filter(|&before| !is_outlier[before] && !is_outlier[at]).map(|at| values[at]);
            sum = sum
                + PointSums {
                    count: 1.0,
                    weight,
                    value: weight * value,
                    square: weight * value * value,
                    place: weight * place,
                    place_square: weight * place * place,
                    place_value: weight * place * value,
                    pairs: before.map_or(0.0, |_| 1.0),
                    lagged: before.map_or(0.0, |before| value * before),
                    of_pairs: before.map_or(0.0, |before| value + before),
                    plain: value,
                    plain_square: value * value,
                };
            sums.push(sum);
        }
        Self { sums, values, roots: weights.iter().map(|weight| weight.sqrt()).collect() }
    }

    /// The variance that rounding leaves where there is none.
    pub(super) fn rounding(&self) -> f64 {
        let (least, most) =
            self.values.iter().fold((0.0_f64, 0.0_f64), |(least, most), &x| (least.min(x), most.max(x)));
        (most - least).powi(2) * rounding(self.len())
    }

    /// How far a value is from a level that its range has, in units of its own noise.
    pub(super) fn deviation(&self, at: usize, level: f64) -> f64 {
        (self.values[at] - level) * self.roots[at]
    }

    /// By how much a value differs from the one before it.
    pub(super) fn difference(&self, at: usize) -> f64 {
        self.values[at] - self.values[at - 1]
    }

    /// The least distance of neighbours that aren't equal: finer than this, values can't tell levels apart. Infinite if all are equal.
    pub(super) fn resolution(&self) -> f64 {
        let distances = (1..self.len()).map(|at| self.difference(at).abs());
        distances.filter(|&distance| distance > 0.0).fold(f64::INFINITY, f64::min)
    }

    /// How far the values of a range lie apart.
    pub(super) fn range(&self, range: Range<usize>) -> f64 {
        let ends = (f64::INFINITY, f64::NEG_INFINITY);
        let (least, most) = self.values[range].iter().fold(ends, |(least, most), &x| (least.min(x), most.max(x)));
        most - least
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn over(&self, range: Range<usize>) -> PointSums {
        self.sums[range.end] - self.sums[range.start]
    }

    /// Sums of the deviations from the level of a range: of their products with those before them, as if there were no outliers, and of
    /// their squares.
    pub(super) fn lagged(&self, range: Range<usize>) -> (f64, f64) {
        let (all, later) = (self.over(range.clone()), self.over(range.start + 1..range.end));
        let mean = all.plain / all.count;
        let products = later.lagged - mean * later.of_pairs + later.pairs * mean * mean;
        let whole = if later.pairs > 0.0 { later.count / later.pairs } else { 0.0 };
        (whole * products, (all.plain_square - all.plain * mean).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_hand() {
        let sums = RunningSums::new(&[1.0, 2.0, 3.0, 10.0], &[1.0, 1.0, 2.0, 1.0], &[false; 4]);
        let all = sums.over(0..3);
        // The mean is 2.25 less the middle of all, 4.
        assert!((all.mean() + 1.75).abs() < 1e-12 && (all.squares() - 2.75).abs() < 1e-12);
        assert!(all.squares_of_line().abs() < 1e-12, "three values on a line");
        let (products, squares) = sums.lagged(0..3);
        assert!((products, squares) == (0.0, 2.0), "{products} {squares}");
        assert_eq!(sums.over(3..4).squares(), 0.0);
    }
}
