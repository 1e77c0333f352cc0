//! Says whether a model fits what was measured, or is off by more than chance and by so much that it matters.
//!
//! Where sizes were measured often enough to tell how errors grow with the value, what is left of the sizes is held against the
//! spread of their runs, by the F test of lack of fit (Draper and Smith, "Applied Regression Analysis", 3rd edition, 1998, 2.2).
//! Where the runs of most sizes agree exactly, as counts do that depend on nothing but the size, all that is left is the model's.
//! Else nothing but the order of what is left tells: where the model bends in another way than the measurements do, neighbouring
//! sizes are off to the same side, and their differences are small beside what is left (von Neumann, "Distribution of the
//! ratio of the mean square successive difference to the variance", 1941; of regressions, Durbin and Watson, 1950).

use std::collections::BTreeMap;

use perfprop_linear_algebra::{Tall, dot};
use serde::{Deserialize, Serialize};

use super::measurements::{FittedPoint, Measured, Measurements};
use super::samples::Determinizer;
use super::solve::{Solver, huber_weights};
use super::workload::sizes_in_words;
use crate::random::SplitMix64;
use crate::steps::median;

/// Where a model that doesn't fit is furthest off, as a part of what was measured there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LackOfFit {
    /// The sizes.
    pub sizes: BTreeMap<String, f64>,
    /// What was measured.
    pub measured: f64,
    /// What the model gave.
    pub predicted: f64,
    /// A model that fits where coefficients may be below 0, which the solver didn't allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fits_below_zero: Option<String>,
}

impl LackOfFit {
    /// The part of the measured value by which the model gives more, or less if below 0.
    pub fn part(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// The sizes in words.
    pub fn place(&self) -> String {
        sizes_in_words(&self.sizes)
    }
}

/// A model that is off by less than this part everywhere is said to fit, however small errors are.
const MATTERS: f64 = 0.05;
/// The normal quantile that the F test must exceed: one in 1,000 is above.
const SURE: f64 = 3.09;
/// So many standard errors of a size are more than its chance.
const FAR: f64 = 3.0;
/// The probability of an order of residuals that is called systematic, and how many draws tell it.
const SYSTEMATIC: f64 = 0.01;
const DRAWS: usize = 999;
/// From so many sizes on their signs must have such an order, too: a few large residuals have one that chance makes where errors grow with
/// the value in another way than weights say, or have long tails.
const MANY: usize = 12;
const SYSTEMATIC_SIGNS: f64 = 0.05;

/// A fit whose residuals are judged.
pub(super) struct FitResiduals<'a> {
    pub(super) measurements: &'a Measurements,
    pub(super) points: &'a [FittedPoint],
    /// The weighted columns of all that was found and isn't held at 0.
    pub(super) columns: &'a Tall,
    pub(super) solver: Solver,
    pub(super) determinizer: Determinizer,
}

impl FitResiduals<'_> {
    /// Where the model is furthest off, if it is by more than chance explains and by a part that matters.
    pub(super) fn lack_of_fit(&self) -> Option<LackOfFit> {
        if self.measurements.are_mostly_exact() {
            self.beyond_rounding()
        } else if self.measurements.tells_spread {
            self.beyond_spread()
        } else {
            self.furthest_of(|_| true).filter(|_| self.are_systematic())
        }
    }

    /// Where the model is furthest off, of the sizes whose runs agree exactly: what they don't tell is how a whole number was rounded,
    /// and, where other sizes' runs differ, as much as in these.
    fn beyond_rounding(&self) -> Option<LackOfFit> {
        let of_runs = self.mean_pure_error();
        self.furthest_of(|place| {
            let point = &self.points[place];
            let off = (point.measured - point.predicted).abs();
            let rounding = if self.measurements.are_whole { 1.0 } else { 0.0 };
            let is_far = point.weight * off.powi(2) > FAR.powi(2) * of_runs;
            self.measurements.all[place].is_exact() && off > rounding && is_far
        })
    }

    /// Where the model is furthest off, if it is by more than the spread of runs explains.
    fn beyond_spread(&self) -> Option<LackOfFit> {
        let weighted = self.weighted();
        let degrees = self.points.len().checked_sub(self.columns.columns().len()).filter(|degrees| *degrees > 0)?;
        let (variance, of_runs) = self.pure_error()?;
        let f = dot(&weighted, &weighted) / degrees as f64 / variance;
        let is_sure = normal_of_f(f, degrees as f64, of_runs) > SURE;
        let furthest = || self.furthest_of(|place| weighted[place].powi(2) > FAR.powi(2) * variance);
        // One size that something disturbed in most of its runs isn't systematic.
        (is_sure && self.are_systematic()).then(furthest).flatten()
    }

    fn furthest_of(&self, counts: impl Fn(usize) -> bool) -> Option<LackOfFit> {
        let one = |(place, point): (usize, &FittedPoint)| {
            let FittedPoint { sizes, measured, predicted, .. } = point.clone();
            let lack = LackOfFit { sizes, measured, predicted, fits_below_zero: None };
            (measured != 0.0 && lack.part().abs() > MATTERS && counts(place)).then_some(lack)
        };
        let all = self.points.iter().enumerate().filter_map(one);
        all.max_by(|a, b| a.part().abs().total_cmp(&b.part().abs()))
    }

    /// Whether the weights of this fit explain what is left of it better than those of another fit of the model do.
    ///
    /// By the restricted likelihood, as a fit to few sizes takes much of what is largest (Harville, "Maximum likelihood approaches to
    /// variance component estimation", 1977); it can be compared where both found the same coefficients, else the likelihood is.
    pub(super) fn explains_more_than(&self, other: &Self) -> bool {
        let found = self.columns.columns().len();
        match found == other.columns.columns().len() && found < self.points.len() {
            true => self.restricted_likelihood() > other.restricted_likelihood(),
            false => self.likelihood(0) > other.likelihood(0),
        }
    }

    /// Twice the logarithm of the likelihood of what is left, but for a constant, with so many degrees of freedom gone: of normal errors, and of
    /// a robust solver by Cauchy's distribution, where what is far off says little of how errors grow.
    fn likelihood(&self, gone: usize) -> f64 {
        let squares: Vec<f64> =
            self.points.iter().map(|point| point.weight * (point.measured - point.predicted).powi(2)).collect();
        let of_weights: f64 = self.points.iter().map(|point| point.weight.ln()).sum();
        let degrees = self.points.len().saturating_sub(gone) as f64;
        match self.solver {
            Solver::Robust => {
                let scale = cauchy_scale(&squares);
                let of_tails: f64 = squares.iter().map(|square| (square / scale).ln_1p()).sum();
                of_weights - degrees * scale.ln() - 2.0 * of_tails
            }
            _ => of_weights - degrees * squares.iter().sum::<f64>().ln(),
        }
    }

    fn restricted_likelihood(&self) -> f64 {
        let columns = self.columns.columns();
        // The determinant of their products is that of the lengths that each has beside those before it.
        let beside = |place: usize| {
            let before = orthonormal(&self.columns.select(&(0..place).collect::<Vec<_>>()));
            let left = without(&before, without(&before, columns[place].clone()));
            dot(&left, &left).ln()
        };
        self.likelihood(columns.len()) - (0..columns.len()).map(beside).sum::<f64>()
    }

    /// What is left of each size times the root of its weight; what a robust solver counts for less counts so here.
    fn weighted(&self) -> Vec<f64> {
        let left = |point: &FittedPoint| point.weight.sqrt() * (point.measured - point.predicted);
        let all: Vec<f64> = self.points.iter().map(left).collect();
        match self.solver {
            Solver::Robust => {
                let weights = huber_weights(&all, self.columns.columns().len());
                all.iter().zip(weights).map(|(left, weight)| left * weight).collect()
            }
            _ => all,
        }
    }

    /// The variance of a measurement of weight 1 by the spread of runs, and its degrees of freedom; `None` where no runs differ.
    ///
    /// It is the median of what sizes say, so that a disturbed run here and there doesn't hide a model that is wrong. Of k degrees
    /// of freedom the median of the variance is (1 - 2 / (9 k))^3 of it (Wilson and Hilferty, 1931), and a median is worth
    /// about half as many as a mean.
    fn pure_error(&self) -> Option<(f64, f64)> {
        let all = self.variances_of_runs();
        let degrees: f64 = all.iter().map(|(_, degrees)| degrees).sum();
        let of_median = |(variance, degrees): (f64, f64)| variance / (1.0 - 2.0 / (9.0 * degrees)).powi(3);
        let variance = median(all.into_iter().map(of_median).collect())?;
        (variance > 0.0).then_some((variance, degrees / 2.0))
    }

    /// The variance of a measurement of weight 1 by the mean of what sizes say; 0 where no runs differ.
    fn mean_pure_error(&self) -> f64 {
        let all = self.variances_of_runs();
        let degrees: f64 = all.iter().map(|(_, degrees)| degrees).sum();
        all.iter().map(|(variance, degrees)| variance * degrees).sum::<f64>() / degrees.max(1.0)
    }

    /// The variance of a measurement of weight 1 by the runs of each size that has several, and its degrees of freedom.
    fn variances_of_runs(&self) -> Vec<(f64, f64)> {
        let of = |(measured, point): (&Measured, &FittedPoint)| {
            let (variance, degrees) = measured.variance_of_runs(self.determinizer)?;
            Some((point.weight * variance, degrees))
        };
        self.measurements.all.iter().zip(self.points).filter_map(of).collect()
    }

    /// Whether neighbouring sizes are off alike, by more than chance: in the order of any size, each with its share of the
    /// probability. Normal errors of the fit's weights, less what the model takes of them, say what chance does.
    fn are_systematic(&self) -> bool {
        let Some(first) = self.points.first() else { return false };
        let weighted = self.weighted();
        let basis = orthonormal(self.columns);
        let names = first.sizes.len().max(1) as f64;
        first.sizes.keys().any(|name| {
            let size = |place: usize| self.points[place].sizes.get(name).copied().unwrap_or(0.0);
            let mut order: Vec<usize> = (0..self.points.len()).collect();
            order.sort_by(|&a, &b| size(a).total_cmp(&size(b)));
            let (found, of_signs) = (successive(&weighted, &order), successive(&signs(&weighted), &order));
            let mut random = SplitMix64::new(1);
            let (mut as_low, mut signs_as_low) = (1, 1);
            for _ in 0..DRAWS {
                let drawn = without(&basis, (0..weighted.len()).map(|_| random.normal()).collect());
                as_low += usize::from(successive(&drawn, &order) <= found);
                signs_as_low += usize::from(successive(&signs(&drawn), &order) <= of_signs);
            }
            let is_rare = |count: usize, level: f64| count as f64 <= level / names * (DRAWS + 1) as f64;
            is_rare(as_low, SYSTEMATIC) && (weighted.len() < MANY || is_rare(signs_as_low, SYSTEMATIC_SIGNS))
        })
    }
}

/// The square of the scale of Cauchy's distribution that makes numbers with these squares likeliest, from a first guess by their median
/// (Lange, Little and Taylor, "Robust statistical modeling using the t distribution", 1989).
fn cauchy_scale(squares: &[f64]) -> f64 {
    const STEPS: usize = 50;
    let least = f64::MIN_POSITIVE;
    let first = median(squares.to_vec()).unwrap_or_default().max(least);
    let next = |scale: f64| squares.iter().map(|square| 2.0 * square / (1.0 + square / scale)).sum::<f64>();
    (0..STEPS).fold(first, |scale, _| (next(scale) / squares.len().max(1) as f64).max(least))
}

/// The squares of differences between neighbours over those of the values: near 2 where these have no order, 0 where all are
/// alike. Of zeros it is 2, as they have none.
fn successive(values: &[f64], order: &[usize]) -> f64 {
    let differences: f64 = order.windows(2).map(|pair| (values[pair[1]] - values[pair[0]]).powi(2)).sum();
    let squares = dot(values, values);
    if squares > 0.0 { differences / squares } else { 2.0 }
}

/// 1 and -1 for values above and below 0.
fn signs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.signum()).collect()
}

/// Columns of length 1, square to one another, that say the same as these; those that follow from others are left out.
fn orthonormal(columns: &Tall) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for column in columns.columns() {
        let length = dot(column, column).sqrt();
        // Twice is enough (Giraud, Langou and Rozložník, 2005).
        let left = without(&basis, without(&basis, column.iter().map(|value| value / length).collect()));
        let length = dot(&left, &left).sqrt();
        if length > 1e-12 {
            basis.push(left.iter().map(|value| value / length).collect());
        }
    }
    basis
}

/// What such columns leave of values.
fn without(basis: &[Vec<f64>], mut values: Vec<f64>) -> Vec<f64> {
    for column in basis {
        let part = dot(column, &values);
        values.iter_mut().zip(column).for_each(|(value, column)| *value -= part * column);
    }
    values
}

/// The normal quantile of a ratio of two variances with these degrees of freedom, nearly (Paulson, 1942; Abramowitz and Stegun,
/// "Handbook of Mathematical Functions", 1964, 26.6.15).
fn normal_of_f(f: f64, above: f64, below: f64) -> f64 {
    let (root, above, below) = (f.cbrt(), 2.0 / (9.0 * above), 2.0 / (9.0 * below));
    // Of an infinite ratio, where the formula has infinity over infinity.
    let root = root.min(1e100);
    (root * (1.0 - below) - (1.0 - above)) / (below * root * root + above).sqrt()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ratios_of_variances_of_tables() {
        // Printed tables: 5.64 is exceeded once in 100 with 5 and 10 degrees, 2.98 once in 20 with 10 and 10, 8.75 once in 1,000 with 5 and 12 (8.89).
        for (f, above, below, normal) in [(5.64, 5.0, 10.0, 2.326), (2.98, 10.0, 10.0, 1.645), (8.89, 5.0, 12.0, 3.09)]
        {
            let found = normal_of_f(f, above, below);
            assert!((found - normal).abs() < 0.03, "{f}: {found}");
        }
        assert!(normal_of_f(f64::INFINITY, 5.0, 10.0) > SURE && normal_of_f(0.0, 5.0, 10.0) < -SURE);
    }

    #[test]
    fn differences_of_neighbours_by_hand() {
        // 1, 2, 3 in order: 1 + 1 of 14; with the largest in the middle 4 + 1.
        assert_eq!(successive(&[1.0, 2.0, 3.0], &[0, 1, 2]), 2.0 / 14.0);
        assert_eq!(successive(&[1.0, 2.0, 3.0], &[0, 2, 1]), 5.0 / 14.0);
        assert_eq!((successive(&[0.0; 3], &[0, 1, 2]), successive(&[], &[])), (2.0, 2.0));
    }

    #[test]
    fn what_columns_leave_by_hand() {
        // The mean of 1, 2 and 6 is 3; twice the ones and zeros are no more columns.
        let basis = orthonormal(&Tall::new(3, vec![vec![1.0; 3], vec![2.0; 3], vec![0.0; 3]]));
        assert_eq!(basis.len(), 1);
        let left = without(&basis, vec![1.0, 2.0, 6.0]);
        assert!(left.iter().zip([-2.0, -1.0, 3.0]).all(|(a, b)| (a - b).abs() < 1e-12), "{left:?}");
    }

    proptest! {
        #[test]
        fn larger_ratios_are_less_by_chance(f in 0.0..1e6f64, more in 1e-3..1e6f64, above in 1.0..100f64, below in 3.0..1e3f64) {
            prop_assert!(normal_of_f(f + more, above, below) >= normal_of_f(f, above, below));
        }

        #[test]
        fn the_order_of_residuals_has_no_unit(values in prop::collection::vec(-1.0..1.0f64, 2..20), unit in 1e-9..1e9f64) {
            let order: Vec<usize> = (0..values.len()).collect();
            let scaled: Vec<f64> = values.iter().map(|value| value * unit).collect();
            prop_assert!((successive(&scaled, &order) - successive(&values, &order)).abs() < 1e-9);
        }
    }
}
