//! Finds the coefficients of a model by the measurements, and says how sure each is.
//!
//! Each set of sizes counts as one measurement. Where sizes were measured again and again, one that is less certain counts
//! for less: its variance is taken from a power of the value that is fitted to all sizes' variances (Carroll and Ruppert,
//! "Transformation and Weighting in LinearEquations", 1988, chapter 3), as the variance of one size alone is hardly known.
//! What is left after the fit says how far off measurements are, so that a disturbance that all repetitions of a size
//! shared is in the intervals, too. These are Student's t with as many degrees of freedom as there are sizes less
//! coefficients.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use perfprop_linear_algebra::{Square, Tall, dot, eigenvalues};

use super::breakpoints::{self, Breakpoint};
use super::correlation::{SizeErrors, of_neighbours, of_sizes};
use super::fitted::{Coefficient, FittedModel, VERSION, VarianceFunction, slope};
use super::model::CostModel;
use super::samples::{Determinizer, cull};
use super::solve::{Equations, Solver, huber_weights};
use super::term::{LinearCombination, NotLinear};
use super::workload::{WorkloadFile, sizes_in_words};
use crate::names::quoted;

/// How a fit is made.
#[derive(Clone, Debug, PartialEq)]
pub struct FitOptions {
    /// How coefficients are found.
    pub solver: Solver,
    /// What stands for the repeated measurements of a size.
    pub determinizer: Determinizer,
    /// Leaves out what is so many standard deviations from the mean of all sizes.
    pub cull: Option<f64>,
    /// Coefficients that are known.
    pub overrides: BTreeMap<String, f64>,
    /// The quantity that is fitted: `time`, or an event.
    pub response: String,
    /// The confidence level of intervals, between 0 and 1.
    pub confidence: f64,
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            solver: Solver::NonNegative,
            determinizer: Determinizer::default(),
            cull: None,
            overrides: BTreeMap::new(),
            response: super::workload::TIME.to_owned(),
            confidence: 0.95,
        }
    }
}

/// A set of sizes, what was measured there, and what the model gives.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedPoint {
    /// The sizes.
    pub sizes: BTreeMap<String, f64>,
    /// What was measured.
    pub measured: f64,
    /// What the model gives.
    pub predicted: f64,
    /// The measurements behind it.
    pub samples: usize,
    /// Its weight, 1 on average.
    pub weight: f64,
}

/// How well a model fits.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The model with the coefficients that were found.
    pub fitted: FittedModel,
    /// What was measured beside what the model gives.
    pub points: Vec<FittedPoint>,
    /// The part of the variance between sizes that the model explains; `None` where nothing varies.
    pub r_squared: Option<f64>,
    /// The root of the mean square of what is left.
    pub rmse: f64,
    /// The condition number of the columns, each of length 1; `None` where one follows from others.
    pub condition: Option<f64>,
    /// The coefficients that can't be told apart, in groups.
    pub collinear: Vec<Vec<String>>,
    /// The places of workloads that were left out, in the file.
    pub culled: Vec<usize>,
    /// Whether the solver pulls coefficients away from what fits best, so that intervals are too narrow or displaced.
    pub is_biased: bool,
}

/// Why a model can't be fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum FitError {
    /// No workload has the quantity.
    NoData {
        /// The quantity.
        response: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A measurement is no number, infinite or below 0.
    BadValue {
        /// The sizes at which it was measured.
        sizes: String,
        /// The measurement.
        value: f64,
    },
    /// The model isn't linear in its coefficients.
    NotLinear(NotLinear),
    /// The model has no value at some sizes.
    NoValue {
        /// These sizes.
        sizes: String,
    },
    /// A quantity that the model names wasn't measured everywhere.
    NoQuantity {
        /// The quantity.
        quantity: String,
        /// The sizes at which it is missing.
        sizes: String,
    },
    /// There are too few sizes for breakpoints among them.
    NoRoomForBreakpoints {
        /// The breakpoints.
        names: Vec<String>,
    },
    /// There are fewer sets of sizes than coefficients.
    TooFew {
        /// How many sets.
        points: usize,
        /// The coefficients.
        coefficients: Vec<String>,
    },
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoData { response, known } if known.is_empty() => {
                write!(f, "there are no measurements of {}: the file is empty", quoted(response))
            }
            Self::NoData { response, known } => {
                let known: Vec<_> = known.iter().map(|name| quoted(name)).collect();
                write!(f, "there are no measurements of {}; there are of {}", quoted(response), known.join(", "))
            }
            Self::BadValue { sizes, value } => write!(f, "{value} at {sizes} is no measurement: remove it"),
            Self::NotLinear(error) => {
                write!(
                    f,
                    "the model is not linear in its coefficients: {error}; change it, or set one (--set NAME=VALUE)"
                )
            }
            Self::NoQuantity { quantity, sizes } => {
                write!(f, "the model names {}, which was not measured at {sizes}", quoted(quantity))
            }
            Self::NoRoomForBreakpoints { names } => {
                let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
                write!(
                    f,
                    "too few sizes to look for {} among them: measure at least two on each side, or set it (--set NAME=VALUE)",
                    names.join(" and ")
                )
            }
            Self::NoValue { sizes } => {
                write!(f, "the model has no value at {sizes}: leave these sizes out, or mend the model")
            }
            Self::TooFew { points, coefficients } => {
                let names: Vec<_> = coefficients.iter().map(|name| quoted(name)).collect();
                write!(
                    f,
                    "{} of sizes can't tell {} coefficients ({}) apart: measure more sizes, or set some (--set NAME=VALUE)",
                    if *points == 1 { "one set".to_owned() } else { format!("{points} sets") },
                    coefficients.len(),
                    names.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for FitError {}

/// What was measured at a set of sizes.
struct Measured {
    point: FittedPoint,
    samples: Vec<f64>,
    order: Vec<u32>,
    variance: Option<f64>,
}

/// What was measured, however it is fitted.
pub(super) struct Measurements {
    all: Vec<Measured>,
    culled: Vec<usize>,
    spread: VarianceFunction,
}

/// The model at a set of sizes.
struct ModelAtSizes {
    constant: f64,
    factors: BTreeMap<String, f64>,
}

/// The equations of a model that is linear in all that is to be found.
pub(super) struct LinearEquations<'a> {
    measurements: &'a Measurements,
    rows: Vec<ModelAtSizes>,
    names: Vec<String>,
    equations: Equations,
    weighted: Equations,
}

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
            let LinearCombination { constant, coefficients: factors } = model.at(value).map_err(FitError::NotLinear)?;
            let is_finite = constant.is_finite() && factors.values().all(|factor| factor.is_finite());
            is_finite
                .then_some(ModelAtSizes { constant, factors })
                .ok_or_else(|| FitError::NoValue { sizes: sizes_in_words(sizes) })
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

    /// The squares of what is left of the weighted equations, added up.
    pub(super) fn left(&self, solver: Solver) -> f64 {
        let residuals = self.weighted.residuals(&self.weighted.solve(solver));
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
        values.extend(self.names.iter().cloned().zip(self.weighted.solve(solver)));
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
}

impl Fit {
    /// Fits a model to the workloads of a file.
    ///
    /// # Errors
    /// Returns why there is nothing to fit, or the model can't be.
    pub fn new(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        let measurements = Measurements::of(model, file, options)?;
        let breakpoints = breakpoints::find(model, &measurements, options)?;
        let mut known = options.overrides.clone();
        known.extend(breakpoints.iter().map(|found| (found.name.clone(), found.value)));
        let regression = LinearEquations::new(model, &measurements, &known)?;
        let Some(degrees) = regression.degrees().checked_sub(breakpoints.len()) else {
            let names = regression.names.into_iter().chain(breakpoints.into_iter().map(|found| found.name));
            return Err(FitError::TooFew { points: regression.rows.len(), coefficients: names.collect() });
        };
        let values = regression.weighted.solve(options.solver);
        let mut fitted = FittedModel {
            perfprop_model: VERSION,
            model: model.expression().to_string(),
            response: options.response.clone(),
            coefficients: Vec::new(),
            breakpoints: breakpoints.into_iter().map(Coefficient::from).collect(),
            known: options.overrides.clone(),
            quantities: quantities(model, file, options),
            covariance: None,
            degrees,
            confidence: options.confidence,
            spread: measurements.spread,
            measured: BTreeMap::new(),
        };
        let names: Vec<&str> = fitted.breakpoints.iter().map(|found| found.name.as_str()).collect();
        let weighted = regression.with_slopes(model, &known, options.solver, &names);
        fitted.covariance = covariances(&regression, &weighted, &values, options.solver);
        fitted.coefficients = coefficients(&fitted, &regression.names, &values, options.solver);
        let first = fitted.coefficients.len();
        for (place, breakpoint) in fitted.breakpoints.iter_mut().enumerate() {
            let variance = fitted.covariance.as_ref().map(|rows| rows[first + place][first + place]);
            breakpoint.error = variance.filter(|variance| *variance > 0.0).map(f64::sqrt);
        }
        let (condition, collinear) = collinearity(&regression.weighted.matrix, &regression.names);
        let points = regression.points(&values);
        fitted.spread.factor *= left(&points, points.len() - degrees);
        fitted.measured = measured_sizes(&points);
        Ok(Self {
            r_squared: r_squared(&points),
            rmse: (squares(&points) / points.len().max(1) as f64).sqrt(),
            points,
            condition,
            collinear,
            culled: measurements.culled,
            is_biased: matches!(options.solver, Solver::Ridge { .. } | Solver::Lasso { .. }),
            fitted,
        })
    }
}

/// The covariances of the coefficients, and behind them of the breakpoints.
fn covariances(
    regression: &LinearEquations<'_>,
    weighted: &Equations,
    values: &[f64],
    solver: Solver,
) -> Option<Vec<Vec<f64>>> {
    let mut all = values.to_vec();
    all.resize(weighted.matrix.columns().len(), 0.0);
    let predicted = regression.equations.matrix.times(values);
    let Measurements { all: measured, spread, .. } = regression.measurements;
    let errors: Vec<SizeErrors> = (measured.iter().zip(&regression.rows).zip(predicted))
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

impl From<Breakpoint> for Coefficient {
    fn from(found: Breakpoint) -> Self {
        Self { name: found.name, value: found.value, error: None, interval: found.interval }
    }
}

/// The coefficients with their intervals; one that may not be below 0 has no interval below.
fn coefficients(fitted: &FittedModel, names: &[String], values: &[f64], solver: Solver) -> Vec<Coefficient> {
    let is_positive = matches!(solver, Solver::NonNegative | Solver::Lasso { is_positive: true, .. });
    let lowest = if is_positive { 0.0 } else { f64::NEG_INFINITY };
    let coefficient = |(place, (name, &value)): (usize, (&String, &f64))| {
        let error = fitted.covariance.as_ref().map(|covariance| covariance[place][place].max(0.0).sqrt());
        let width = error.zip(fitted.quantile()).map(|(error, quantile)| quantile * error);
        let interval = width.map(|width| ((value - width).max(lowest), value + width));
        Coefficient { name: name.clone(), value, error, interval }
    };
    names.iter().zip(values).enumerate().map(coefficient).collect()
}

/// What is left, squared and added up.
fn squares(points: &[FittedPoint]) -> f64 {
    points.iter().map(|point| (point.measured - point.predicted).powi(2)).sum()
}

/// The variance of what is left of measurements of weight 1.
fn left(points: &[FittedPoint], coefficients: usize) -> f64 {
    let squares: f64 = points.iter().map(|point| point.weight * (point.measured - point.predicted).powi(2)).sum();
    squares / points.len().saturating_sub(coefficients).max(1) as f64
}

/// The least and the most of each size.
fn measured_sizes(points: &[FittedPoint]) -> BTreeMap<String, (f64, f64)> {
    let mut sizes: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (name, &size) in points.iter().flat_map(|point| &point.sizes) {
        let (low, high) = sizes.entry(name.clone()).or_insert((size, size));
        (*low, *high) = (low.min(size), high.max(size));
    }
    sizes
}

impl LinearEquations<'_> {
    /// What was measured beside what the model gives with these coefficients.
    fn points(&self, values: &[f64]) -> Vec<FittedPoint> {
        let fitted = self.equations.matrix.times(values);
        let point = |((measured, row), fitted): ((&Measured, &ModelAtSizes), f64)| FittedPoint {
            predicted: row.constant + fitted,
            ..measured.point.clone()
        };
        self.measurements.all.iter().zip(&self.rows).zip(fitted).map(point).collect()
    }
}

impl Measured {
    /// How far the runs are off what the model gives, in standard deviations but for a factor that all sizes share.
    fn errors(&self, predicted: f64, spread: VarianceFunction) -> SizeErrors {
        let deviation = spread.at(predicted).sqrt();
        let errors = self.samples.iter().map(|sample| (sample - predicted) / deviation).collect();
        SizeErrors { errors, order: self.order.clone() }
    }
}

impl Measurements {
    /// What was measured of the response, with the quantities that the model names among the sizes.
    pub(super) fn of(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        let has_samples = |place: &usize| !samples(file, *place, &options.response).is_empty();
        let mut places: Vec<usize> = (0..file.workloads.len()).filter(has_samples).collect();
        let mut culled = Vec::new();
        if let Some(sigmas) = options.cull {
            let value = |&place: &usize| options.determinizer.value(samples(file, place, &options.response));
            let kept = cull(&places.iter().filter_map(value).collect::<Vec<_>>(), sigmas).kept;
            culled = (0..places.len()).filter(|place| !kept.contains(place)).map(|place| places[place]).collect();
            places = kept.into_iter().map(|place| places[place]).collect();
        }
        if places.is_empty() {
            let known: BTreeSet<_> =
                file.workloads.iter().flat_map(|workload| workload.samples.keys().cloned()).collect();
            return Err(FitError::NoData { response: options.response.clone(), known: known.into_iter().collect() });
        }
        let quantities = quantities(model, file, options);
        let measured = |place: usize| Measured::of(file, place, &quantities, options);
        let mut all: Vec<Measured> = places.into_iter().map(measured).collect::<Result<_, _>>()?;
        let spread = weigh(&mut all);
        Ok(Self { all, culled, spread })
    }

    /// The values of some sizes, in rising order and each once.
    pub(super) fn sizes(&self, names: &BTreeSet<String>) -> Vec<f64> {
        let of = |measured: &Measured| {
            names.iter().filter_map(|name| measured.point.sizes.get(name).copied()).collect::<Vec<_>>()
        };
        let mut all: Vec<f64> = self.all.iter().flat_map(of).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// Whether a name is that of a size, or of a quantity that the model names like one.
    pub(super) fn has_size(&self, name: &str) -> bool {
        self.all.first().is_some_and(|measured| measured.point.sizes.contains_key(name))
    }
}

impl Measured {
    fn of(
        file: &WorkloadFile,
        place: usize,
        quantities: &BTreeMap<String, String>,
        options: &FitOptions,
    ) -> Result<Self, FitError> {
        let workload = &file.workloads[place];
        let mut sizes = workload.sizes.clone();
        for (name, quantity) in quantities {
            let value = options.determinizer.value(samples(file, place, quantity));
            let missing =
                || FitError::NoQuantity { quantity: quantity.clone(), sizes: sizes_in_words(&workload.sizes) };
            sizes.insert(name.clone(), value.ok_or_else(missing)?);
        }
        let samples = samples(file, place, &options.response);
        if let Some(&value) = samples.iter().find(|value| !value.is_finite() || **value < 0.0) {
            return Err(FitError::BadValue { sizes: sizes_in_words(&workload.sizes), value });
        }
        let measured = options.determinizer.value(samples).unwrap_or(f64::NAN);
        Ok(Self {
            point: FittedPoint { sizes, measured, predicted: f64::NAN, samples: samples.len(), weight: 1.0 },
            variance: options.determinizer.variance(samples),
            samples: samples.to_vec(),
            order: workload.order.clone(),
        })
    }
}

/// What was measured of a quantity; nothing where it wasn't.
fn samples<'a>(file: &'a WorkloadFile, place: usize, quantity: &str) -> &'a [f64] {
    file.workloads[place].samples.get(quantity).map_or(&[], Vec::as_slice)
}

/// The measured quantities that a model names, by the names that it gives them.
fn quantities(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> BTreeMap<String, String> {
    let names = model.names();
    let is_named = |name: &String, quantity: &String| {
        names.contains(name.as_str()) && *quantity != options.response && !options.overrides.contains_key(name)
    };
    file.quantities().into_iter().filter(|(name, quantity)| is_named(name, quantity)).collect()
}

/// Gives each its weight, 1 on average, and returns the variance of one of weight 1 over that at large, as a function of
/// the value.
fn weigh(all: &mut [Measured]) -> VarianceFunction {
    let function = variance_function(all);
    let weight = |measured: &Measured| function.at(measured.point.measured).recip();
    let mean = all.iter().map(weight).sum::<f64>() / all.len().max(1) as f64;
    all.iter_mut().for_each(|measured| measured.point.weight = weight(measured) / mean);
    VarianceFunction { factor: function.factor * mean, ..function }
}

/// Fits the variance as a power of the value by least squares of logarithms; the same for all where fewer than three
/// sizes have a variance. The power is at most that of errors that are a part of the value.
fn variance_function(all: &[Measured]) -> VarianceFunction {
    let point = |measured: &Measured| {
        let (value, variance) = (measured.point.measured, measured.variance?);
        (value > 0.0 && variance > 0.0).then(|| (value.ln(), variance.ln()))
    };
    let points: Vec<(f64, f64)> = all.iter().filter_map(point).collect();
    let columns = vec![vec![1.0; points.len()], points.iter().map(|(value, _)| *value).collect()];
    let line = Tall::new(points.len(), columns).factored(points.iter().map(|(_, variance)| *variance).collect());
    if points.len() < 3 || line.rank() < 2 {
        return VarianceFunction { factor: 1.0, power: 0.0 };
    }
    let power = line.solution()[1].clamp(0.0, 2.0);
    let mean = points.iter().map(|(value, variance)| variance - power * value).sum::<f64>() / points.len() as f64;
    VarianceFunction { factor: mean.exp(), power }
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
    Some(covariance)
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

/// 1 less the sum of squares of what is left over that of the differences from the mean, also of models without a
/// constant; `None` of fewer than two sizes, or where all are alike.
fn r_squared(points: &[FittedPoint]) -> Option<f64> {
    let mean = points.iter().map(|point| point.measured).sum::<f64>() / points.len().max(1) as f64;
    let total: f64 = points.iter().map(|point| (point.measured - mean).powi(2)).sum();
    let left: f64 = points.iter().map(|point| (point.measured - point.predicted).powi(2)).sum();
    (points.len() > 1 && total > 0.0).then(|| 1.0 - left / total)
}

/// From this condition number on, columns are said to go along (Belsley, Kuh and Welsch, "LinearEquations Diagnostics", 1980).
const GO_ALONG: f64 = 30.0;

/// The condition number of columns of length 1, and the names of those that nearly follow from one another.
fn collinearity(matrix: &Tall, names: &[String]) -> (Option<f64>, Vec<Vec<String>>) {
    let unit = |column: &Vec<f64>| {
        let length = dot(column, column).sqrt();
        column.iter().map(|value| if length > 0.0 { value / length } else { 0.0 }).collect()
    };
    let gram = Tall::new(matrix.rows(), matrix.columns().iter().map(unit).collect()).gram();
    let (values, vectors) = eigenvalues(&gram);
    let most = values.iter().fold(0.0_f64, |most, value| most.max(*value));
    let least = values.iter().fold(f64::INFINITY, |least, value| least.min(*value));
    let is_small = |value: f64| (most / value.max(0.0)).sqrt() > GO_ALONG;
    let members = |place: usize| -> Vec<String> {
        let parts = vectors.row(place).iter().zip(names).filter(|(part, _)| part.abs() > 0.3);
        parts.map(|(_, name)| name.clone()).collect()
    };
    let groups = (0..values.len()).filter(|&place| is_small(values[place])).map(members);
    let rank_is_full = matrix.clone().factored(vec![0.0; matrix.rows()]).rank() == names.len();
    ((rank_is_full && !names.is_empty()).then(|| (most / least.max(f64::MIN_POSITIVE)).sqrt()), groups.collect())
}
