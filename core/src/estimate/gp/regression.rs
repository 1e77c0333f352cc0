//! Regresses how an event's rate differs between its stays on how those of regressors do.

use perfprop_linear_algebra::{Square, dot};

/// The most events that are always counted, and that totals are regressed on.
pub(crate) const MOST_REGRESSORS: usize = 3;
/// An event that is counted for so much of the time is always counted: its groups leave out the switch between them.
pub(crate) const ALWAYS_COUNTED: f64 = 0.98;

/// Numbers of an event, and of each regressor: an event that is always counted.
pub(crate) type WithRegressors = [f64; 1 + MOST_REGRESSORS];

/// Before any stay was seen, a rate follows that of a regressor in proportion to at most about so much: the standard
/// deviation of a slope around none. On the traces of programs 0.5 to 2 give the same.
const SLOPE: f64 = 1.0;
/// A regressor whose rate varies by less, as a part of it, tells nothing (a clock).
const STEADY: f64 = 1e-4;
/// What is added to squares so that regressors that are multiples of one another have slopes, as a part of them.
const ALIKE: f64 = 1e-6;

/// A regression of differences of an event's rate, relative to its mean, on those of regressors (those of stays over
/// their mean time).
pub(super) struct Regression {
    /// The regressors whose rates vary, and their slopes.
    pub(super) regressors: Vec<usize>,
    pub(super) slopes: Vec<f64>,
    /// Covariances of the slopes.
    covariance: Square,
    /// The sum of squares that is left of the differences of the rate itself.
    pub(super) residual: f64,
}

impl Regression {
    pub(super) fn new(
        products: &[WithRegressors; 1 + MOST_REGRESSORS],
        differences: f64,
        mean: f64,
        rates: &[f64; MOST_REGRESSORS],
    ) -> Self {
        let varies = |place: &usize| products[1 + place][1 + place] > differences * (STEADY * rates[*place]).powi(2);
        let regressors: Vec<usize> =
            (0..MOST_REGRESSORS).filter(|place| mean > 0.0 && rates[*place] > 0.0 && varies(place)).collect();
        let none =
            |regressors| Self { regressors, slopes: vec![], covariance: Square::zeros(0), residual: products[0][0] };
        let squares = |ridge: f64| {
            let mut squares = Square::zeros(regressors.len());
            for (row, &a) in regressors.iter().enumerate() {
                for (column, &b) in regressors.iter().enumerate() {
                    *squares.at_mut(row, column) = products[1 + a][1 + b] / (rates[a] * rates[b]);
                }
                *squares.at_mut(row, row) *= 1.0 + ALIKE;
                *squares.at_mut(row, row) += ridge;
            }
            squares.inverse()
        };
        let with_event: Vec<f64> = regressors.iter().map(|&a| products[0][1 + a] / (mean * rates[a])).collect();
        let own = products[0][0] / mean.powi(2);
        let slopes = |inverse: &Square| -> Vec<f64> {
            (0..with_event.len()).map(|row| dot(inverse.row(row), &with_event)).collect()
        };
        let left = differences - regressors.len() as f64;
        let variance = match squares(0.0) {
            Some(inverse) if left > 0.0 => (own - dot(&slopes(&inverse), &with_event)).max(0.0) / left,
            _ => own / differences,
        };
        let Some(mut covariance) = squares(variance / SLOPE.powi(2)).filter(|_| !regressors.is_empty()) else {
            return none(Vec::new());
        };
        let slopes = slopes(&covariance);
        (0..slopes.len()).for_each(|row| covariance.row_mut(row).iter_mut().for_each(|value| *value *= variance));
        let mut residual = own - 2.0 * dot(&slopes, &with_event);
        for (&a, of_a) in regressors.iter().zip(&slopes) {
            for (&b, of_b) in regressors.iter().zip(&slopes) {
                residual += of_a * of_b * products[1 + a][1 + b] / (rates[a] * rates[b]);
            }
        }
        Self { regressors, slopes, covariance, residual: residual.max(0.0) * mean.powi(2) }
    }

    /// The variance of the slopes' sum with these factors.
    pub(super) fn variance_along(&self, factors: &[f64]) -> f64 {
        (0..self.slopes.len()).map(|row| factors[row] * dot(self.covariance.row(row), factors)).sum()
    }

    /// Degrees of freedom of the residual.
    pub(super) fn degrees(&self, differences: f64) -> f64 {
        let stays = differences + 1.0;
        let slopes = self.slopes.len() as f64;
        if differences > slopes { stays - slopes } else { stays }
    }
}
