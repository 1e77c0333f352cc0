//! The equations of a model that is linear in what is to be found, and how sure their solution is.

use std::collections::{BTreeMap, BTreeSet};

use perfprop_linear_algebra::{Square, Tall, dot};

use super::correlation::{SizeErrors, of_neighbours, of_sizes};
use super::fit_error::FitError;
use super::fitted::{change, slope};
use super::measurements::{FittedPoint, Measured, Measurements};
use super::model::CostModel;
use super::solve::{Equations, Solver, huber_weights};
use super::term::LinearCombination;
use super::workload::sizes_in_words;

/// The model at a set of sizes.
struct ModelAtSizes {
    constant: f64,
    factors: BTreeMap<String, f64>,
}

/// The equations of a model that is linear in all that is to be found.
pub(super) struct LinearEquations<'a> {
    measurements: &'a Measurements,
    rows: Vec<ModelAtSizes>,
    pub(super) names: Vec<String>,
    equations: Equations,
    weighted: Equations,
}

/// The square of a larger number, or the sum of some such squares, may be too large for a number.
const LARGEST: f64 = 1e120;

impl<'a> LinearEquations<'a> {
    /// The equations where names have these values.
    pub(super) fn new(
        model: &CostModel,
        measurements: &'a Measurements,
        known: &BTreeMap<String, f64>,
    ) -> Result<Self, FitError> {
        let row = |measured: &Measured| {
            let sizes = &measured.point.sizes;
            let value = |name: &str| sizes.get(name).or_else(|| known.get(name)).copied();
            let LinearCombination { constant, coefficients: factors } = model.at(value).map_err(|error| {
                FitError::not_linear(error, model, |name| value(name).is_some(), sizes.keys().cloned().collect())
            })?;
            let is_finite = constant.is_finite() && factors.values().all(|factor| factor.is_finite());
            let is_too_large =
                factors.values().chain([&constant, &measured.point.measured]).any(|number| number.abs() > LARGEST);
            if !is_finite {
                return Err(FitError::NoValue { sizes: sizes_in_words(sizes) });
            }
            if is_too_large {
                return Err(FitError::TooLarge { sizes: sizes_in_words(sizes) });
            }
            Ok(ModelAtSizes { constant, factors })
        };
        let rows: Vec<ModelAtSizes> = measurements.all.iter().map(row).collect::<Result<_, _>>()?;
        let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.factors.keys()).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        if rows.len() < names.len() {
            return Err(FitError::TooFew { points: rows.len(), coefficients: names });
        }
        let column = |name: &String| rows.iter().map(|row| row.factors.get(name).copied().unwrap_or(0.0)).collect();
        let target =
            measurements.all.iter().zip(&rows).map(|(measured, row)| measured.point.measured - row.constant).collect();
        let equations = Equations { matrix: Tall::new(rows.len(), names.iter().map(column).collect()), target };
        let roots: Vec<f64> = measurements.all.iter().map(|measured| measured.point.weight.sqrt()).collect();
        let weighted = equations.scaled_rows(&roots);
        Ok(Self { measurements, rows, names, equations, weighted })
    }

    /// Sets of sizes less coefficients.
    pub(super) fn degrees(&self) -> usize {
        self.rows.len() - self.names.len()
    }

    /// The coefficients that fit best.
    pub(super) fn solve(&self, solver: Solver) -> Vec<f64> {
        self.weighted.solve(solver)
    }

    /// The squares of what is left of the weighted equations, added up.
    pub(super) fn left(&self, solver: Solver) -> f64 {
        let residuals = self.weighted.residuals(&self.solve(solver));
        dot(&residuals, &residuals)
    }

    /// The weighted equations with a column behind the others for each of these names, which have values: how the
    /// model changes with it where the coefficients are those that fit.
    pub(super) fn with_slopes(
        &self,
        model: &CostModel,
        known: &BTreeMap<String, f64>,
        solver: Solver,
        names: &[&str],
    ) -> Equations {
        let mut columns = self.weighted.matrix.columns().to_vec();
        let mut values = known.clone();
        values.extend(self.names.iter().cloned().zip(self.solve(solver)));
        let column = |name: &&str| {
            let slope = |Measured { point, .. }: &Measured| {
                let value = |name: &str| point.sizes.get(name).or_else(|| values.get(name)).copied();
                point.weight.sqrt() * slope(model, value, name).unwrap_or(0.0)
            };
            self.measurements.all.iter().map(slope).collect()
        };
        columns.extend(names.iter().map(column));
        Equations { matrix: Tall::new(self.rows.len(), columns), target: self.weighted.target.clone() }
    }

    /// How much each solution of the weighted equations changes where one of these names, which have values, is one more:
    /// the solution for what the model gives less then. A rule that holds coefficients at 0 is left out of account.
    pub(super) fn sensitivities(
        &self,
        model: &CostModel,
        values: &BTreeMap<String, f64>,
        weighted: &Equations,
        names: &[&str],
    ) -> Vec<Vec<f64>> {
        let solution = |name: &&str| {
            let less = |Measured { point, .. }: &Measured| {
                let value = |name: &str| point.sizes.get(name).or_else(|| values.get(name)).copied();
                -point.weight.sqrt() * change(model, value, name)
            };
            let target = self.measurements.all.iter().map(less).collect();
            Equations { matrix: weighted.matrix.clone(), target }.solve(Solver::LeastSquares)
        };
        let solutions: Vec<Vec<f64>> = names.iter().map(solution).collect();
        let of_place = |place: usize| solutions.iter().map(|solution| solution[place]).collect();
        (0..weighted.matrix.columns().len()).map(of_place).collect()
    }

    /// What was measured beside what the model gives with these coefficients.
    pub(super) fn points(&self, values: &[f64]) -> Vec<FittedPoint> {
        let fitted = self.equations.matrix.times(values);
        let point = |((measured, row), fitted): ((&Measured, &ModelAtSizes), f64)| FittedPoint {
            predicted: row.constant + fitted,
            ..measured.point.clone()
        };
        self.measurements.all.iter().zip(&self.rows).zip(fitted).map(point).collect()
    }

    /// The covariances of the coefficients, and behind them of the breakpoints.
    pub(super) fn covariances(&self, weighted: &Equations, values: &[f64], solver: Solver) -> Option<Vec<Vec<f64>>> {
        let mut all = values.to_vec();
        all.resize(weighted.matrix.columns().len(), 0.0);
        let predicted = self.equations.matrix.times(values);
        let Measurements { all: measured, spread, .. } = self.measurements;
        let errors: Vec<SizeErrors> = (measured.iter().zip(&self.rows).zip(predicted))
            .map(|((measured, row), fitted)| measured.errors(row.constant + fitted, *spread))
            .collect();
        // Where the model jumps at a breakpoint it has no slope there, which says nothing of the breakpoint's error.
        let columns = weighted.matrix.columns();
        let has_slope = |place: &usize| *place < values.len() || columns[*place].iter().any(|slope| *slope != 0.0);
        let kept: Vec<usize> = (0..columns.len()).filter(has_slope).collect();
        let with_slopes = Equations { matrix: weighted.matrix.select(&kept), target: weighted.target.clone() };
        all.truncate(kept.len());
        let covariance = covariance(&with_slopes, &all, solver, &errors)?;
        let mut rows = vec![vec![0.0; columns.len()]; columns.len()];
        for (i, &row) in kept.iter().enumerate() {
            kept.iter().enumerate().for_each(|(j, &column)| rows[row][column] = covariance.at(i, j));
        }
        Some(rows)
    }

    /// The covariances where the only coefficient comes from a single set of sizes, whose measurement has this variance.
    pub(super) fn covariance_of_only(&self, variance: f64) -> Option<Vec<Vec<f64>>> {
        let factor = self.equations.matrix.columns().first()?.first()?;
        (*factor != 0.0).then(|| vec![vec![variance / factor.powi(2)]])
    }

    /// The condition number of columns of length 1, and the names of those that nearly follow from one another.
    pub(super) fn collinearity(&self) -> (Option<f64>, Vec<Vec<String>>) {
        let (matrix, names) = (&self.weighted.matrix, &self.names);
        let unit = |column: &Vec<f64>| {
            let length = dot(column, column).sqrt();
            column.iter().map(|value| if length > 0.0 { value / length } else { 0.0 }).collect()
        };
        let factored =
            Tall::new(matrix.rows(), matrix.columns().iter().map(unit).collect()).factored(vec![0.0; matrix.rows()]);
        let (values, vectors) = factored.triangle().singular_values();
        let most = values.iter().fold(0.0_f64, |most, value| most.max(*value));
        let least = values.iter().fold(f64::INFINITY, |least, value| least.min(*value));
        let is_small = |value: f64| most / value > GO_ALONG;
        let members = |place: usize| -> Vec<String> {
            let parts = vectors.row(place).iter().zip(names).filter(|(part, _)| part.abs() > 0.3);
            parts.map(|(_, name)| name.clone()).collect()
        };
        let groups = (0..values.len()).filter(|&place| is_small(values[place])).map(members);
        let rank_is_full = factored.rank() == names.len() && !names.is_empty();
        (rank_is_full.then(|| most / least), groups.collect())
    }
}

/// The covariances of coefficients, by what is left of the weighted equations; `None` where a column follows from
/// others, or as many coefficients were found as there are rows.
///
/// Coefficients that a rule holds at 0 have the uncertainty that they would have without the rule. Where the errors of
/// neighbouring runs go along, so do those of sizes: with their covariances V over their variance the coefficients'
/// are (A'A)^-1 A'VA (A'A)^-1, and what is left lacks what all sizes share.
fn covariance(weighted: &Equations, values: &[f64], solver: Solver, errors: &[SizeErrors]) -> Option<Square> {
    let (rows, count) = (weighted.matrix.rows(), values.len());
    let mut covariance = weighted.matrix.clone().factored(weighted.target.clone()).inverse_gram()?;
    let residuals = weighted.residuals(values);
    let degrees = rows.checked_sub(count).filter(|&degrees| degrees > 0)? as f64;
    let mut variance = match solver {
        Solver::Robust => huber_variance(&residuals, count),
        _ => dot(&residuals, &residuals) / degrees,
    };
    let neighbours = of_neighbours(errors);
    if neighbours > 0.0 {
        let shared = of_sizes(errors, neighbours);
        let own = (0..rows).map(|i| shared.at(i, i)).sum::<f64>() / rows as f64;
        let all = (0..rows).map(|i| shared.row(i).iter().sum::<f64>()).sum::<f64>() - own * rows as f64;
        variance /= (own - all / (rows * (rows - 1)) as f64).max(0.1 * own);
        covariance = sandwich(&covariance, &weighted.matrix, &shared);
    }
    for i in 0..count {
        covariance.row_mut(i).iter_mut().for_each(|value| *value *= variance);
    }
    let wider = by_own_residuals(weighted, &residuals, solver)
        .map_or(vec![1.0; count], |own| (0..count).map(|i| (own[i] / covariance.at(i, i)).max(1.0).sqrt()).collect());
    for i in 0..count {
        covariance.row_mut(i).iter_mut().zip(&wider).for_each(|(value, other)| *value *= wider[i] * other);
    }
    Some(covariance)
}

/// A row that alone says nearly all of a coefficient leaves less than this part of its error.
const LEAST_LEFT: f64 = 0.1;

/// The variances of coefficients by what is left of each row, whatever its weight should have been: that is hardly known, of few runs.
///
/// What is left of a row is divided by the root of the part of its error that the fit leaves, and with a robust solver by that part
/// (MacKinnon and White, "Some heteroskedasticity-consistent covariance matrix estimators", 1985, HC2 and HC3).
fn by_own_residuals(weighted: &Equations, residuals: &[f64], solver: Solver) -> Option<Vec<f64>> {
    let count = weighted.matrix.columns().len();
    let (weights, power) = match solver {
        Solver::Robust => (huber_weights(residuals, count), 2),
        _ => (vec![1.0; residuals.len()], 1),
    };
    let inside: Vec<f64> = weights.iter().map(|weight| if *weight >= 1.0 { 1.0 } else { 0.0 }).collect();
    let gram = weighted.scaled_rows(&inside).matrix.factored(vec![0.0; residuals.len()]).inverse_gram()?;
    let slopes: Vec<Vec<f64>> = (0..count).map(|j| weighted.matrix.times(gram.row(j))).collect();
    let square = |row: usize| {
        let taken: f64 =
            weighted.matrix.columns().iter().zip(&slopes).map(|(column, slope)| column[row] * slope[row]).sum();
        let left = (1.0 - taken * inside[row]).max(LEAST_LEFT);
        (residuals[row] * weights[row]).powi(2) / left.powi(power)
    };
    let squares: Vec<f64> = (0..residuals.len()).map(square).collect();
    Some(
        slopes
            .iter()
            .map(|slope| slope.iter().zip(&squares).map(|(slope, square)| slope * slope * square).sum())
            .collect(),
    )
}

/// G A'VA G for a G and a V that are symmetric.
fn sandwich(g: &Square, a: &Tall, v: &Square) -> Square {
    let count = g.size();
    // A G, column by column.
    let columns: Vec<Vec<f64>> = (0..count).map(|j| a.times(g.row(j))).collect();
    let of_v = |column: &Vec<f64>| (0..a.rows()).map(|i| dot(v.row(i), column)).collect::<Vec<f64>>();
    let mut product = Square::zeros(count);
    for (j, column) in columns.iter().enumerate() {
        let column = of_v(column);
        for (i, other) in columns.iter().enumerate() {
            *product.at_mut(i, j) = dot(other, &column);
        }
    }
    product
}

/// The variance that Huber's regression has in place of the mean square of residuals (Huber, "Robust Statistics", 1981,
/// equation 7.6.9).
fn huber_variance(residuals: &[f64], coefficients: usize) -> f64 {
    let weights = huber_weights(residuals, coefficients);
    let (rows, count) = (residuals.len() as f64, coefficients as f64);
    let bounded: f64 = residuals.iter().zip(&weights).map(|(residual, weight)| (residual * weight).powi(2)).sum();
    let inside = weights.iter().filter(|weight| **weight >= 1.0).count() as f64 / rows;
    let correction = 1.0 + count / rows * (1.0 - inside) / inside.max(f64::MIN_POSITIVE);
    correction.powi(2) * bounded / (rows - count) / inside.powi(2).max(f64::MIN_POSITIVE)
}

/// From this condition number on, columns are said to go along (Belsley, Kuh and Welsch, "Regression Diagnostics", 1980).
const GO_ALONG: f64 = 30.0;
