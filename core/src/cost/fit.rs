//! Finds the coefficients of a model by the measurements, and says how sure each is.
//!
//! What is left after the fit says how far off measurements are, so that a disturbance that all repetitions of a size
//! shared is in the intervals, too. These are Student's t with as many degrees of freedom as there are sizes less
//! coefficients. A single coefficient of a single set of sizes, such as what reading a timer takes, leaves nothing: its interval
//! is that of the repetitions.

use std::collections::BTreeMap;

use perfprop_linear_algebra::Tall;

use super::breakpoints::{self, Breakpoint};
use super::equations::LinearEquations;
use super::fit_error::FitError;
use super::fit_options::{FitOptions, UnrepeatedErrors};
use super::fitted::{Coefficient, FittedModel, VERSION, VarianceFunction};
use super::lack_of_fit::FitResiduals;
use super::measurements::{FittedPoint, Measurements, RepeatedSet, quantities};
use super::model::CostModel;
use super::solve::{Equations, Solver};
use super::workload::WorkloadFile;

/// How well a model fits.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The model with the coefficients that were found.
    pub fitted: FittedModel,
    /// What was measured beside what the model gives.
    pub points: Vec<FittedPoint>,
    /// The part of the variance between sizes that the model explains, by the weights of the fit; `None` where nothing
    /// varies. It is below 0 where a constant would fit better.
    pub r_squared: Option<f64>,
    /// The root of the mean square of what is left.
    pub rmse: f64,
    /// The condition number of the columns, each of length 1; `None` where one follows from others.
    pub condition: Option<f64>,
    /// The coefficients that can't be told apart, in groups.
    pub collinear: Vec<Vec<String>>,
    /// The sizes of workloads that were left out, by their places in the file.
    pub culled: BTreeMap<usize, BTreeMap<String, f64>>,
    /// Whether the solver pulls coefficients away from what fits best, so that intervals are too narrow or displaced.
    pub is_biased: bool,
}

impl Fit {
    /// Fits a model to the workloads of a file, and finds whether it fits; if it doesn't, whether it would with coefficients
    /// below 0.
    ///
    /// # Errors
    /// Returns why there is nothing to fit, or the model can't be.
    pub fn new(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        let mut fit = Self::judged(model, file, options)?;
        if let Some(lack) = &mut fit.fitted.lack_of_fit {
            lack.fits_below_zero = fit_below_zero(model, file, options).map(|_| model.expression().to_string());
        }
        Ok(fit)
    }

    /// Fits a model, and finds whether it fits.
    fn judged(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        let (mut fit, parts) = Self::of_likelier_errors(model, file, options)?;
        fit.fitted.lack_of_fit = parts.residuals(&fit, options).lack_of_fit();
        Ok(fit)
    }

    /// Fits a model where repetitions don't tell how errors grow: with errors that are alike, that grow with the root of the value or
    /// that are a part of it, whichever explain most. Those of the one kind that are taken for another make intervals far too narrow, and
    /// look like a wrong model.
    fn of_likelier_errors(
        model: &CostModel,
        file: &WorkloadFile,
        options: &FitOptions,
    ) -> Result<(Self, FitParts), FitError> {
        let (fit, parts) = Self::with_parts(model, file, options)?;
        if parts.measurements.tells_spread || options.unrepeated != UnrepeatedErrors::Likelier {
            return Ok((fit, parts));
        }
        let others = [UnrepeatedErrors::RootOfValue, UnrepeatedErrors::PartOfValue];
        let others = others.into_iter().filter_map(|errors| Self::with_errors(errors, model, file, options).ok());
        Ok(others.fold((fit, parts), |best, other| {
            let explains_more =
                other.1.residuals(&other.0, options).explains_more_than(&best.1.residuals(&best.0, options));
            if explains_more { other } else { best }
        }))
    }

    /// Fits a model with errors that grow so, first with the values that were measured, and then with those of that fit.
    fn with_errors(
        unrepeated: UnrepeatedErrors,
        model: &CostModel,
        file: &WorkloadFile,
        options: &FitOptions,
    ) -> Result<(Self, FitParts), FitError> {
        let options = FitOptions { unrepeated, ..options.clone() };
        let (first, FitParts { mut measurements, .. }) = Self::with_parts(model, file, &options)?;
        measurements.weigh_by(&first.points, unrepeated);
        Self::of_measurements(measurements, model, file, &options)
    }

    /// Fits a model without finding whether it fits.
    pub(super) fn unjudged(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        Self::with_parts(model, file, options).map(|(fit, _)| fit)
    }

    fn with_parts(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<(Self, FitParts), FitError> {
        Self::of_measurements(Measurements::of(model, file, options)?, model, file, options)
    }

    fn of_measurements(
        measurements: Measurements,
        model: &CostModel,
        file: &WorkloadFile,
        options: &FitOptions,
    ) -> Result<(Self, FitParts), FitError> {
        let breakpoints = breakpoints::find(model, &measurements, options)?;
        let mut known = options.overrides.clone();
        known.extend(breakpoints.iter().map(|found| (found.name.clone(), found.value)));
        let equations = LinearEquations::new(model, &measurements, &known)?;
        let Some(degrees) = equations.degrees().checked_sub(breakpoints.len()) else {
            let names = equations.names.into_iter().chain(breakpoints.into_iter().map(|found| found.name));
            return Err(FitError::TooFew { points: measurements.all.len(), coefficients: names.collect() });
        };
        let found = equations.names.len() + breakpoints.len();
        let only = measurements.only_set(options).filter(|_| found == 1 && breakpoints.is_empty());
        let degrees = only.map_or(degrees, |only| only.degrees);
        let breakpoints = breakpoints.into_iter().map(Coefficient::from).collect();
        let mut fitted =
            FittedModel { breakpoints, degrees, ..without_coefficients(model, file, options, &measurements) };
        let values = equations.solve(options.solver);
        let solution = Solution { model, options, known: &known, equations: &equations, values: &values };
        let weighted = solution.give_errors(&mut fitted, only);
        let points = equations.points(&values);
        match only {
            Some(only) => fitted.spread = VarianceFunction { factor: only.variance, power: 0.0 },
            None => fitted.spread.factor *= left(&points, found),
        }
        fitted.measured = measured_sizes(&points);
        let (condition, collinear) = equations.collinearity();
        let is_free = |place: &usize| values.get(*place).is_none_or(|value| *value != 0.0);
        let free: Vec<usize> = (0..weighted.matrix.columns().len()).filter(is_free).collect();
        let fit = Self {
            r_squared: r_squared(&points),
            rmse: (squares(&points) / points.len().max(1) as f64).sqrt(),
            points,
            condition,
            collinear,
            culled: measurements.culled.clone(),
            is_biased: matches!(options.solver, Solver::Ridge { .. } | Solver::Lasso { .. }),
            fitted,
        };
        Ok((fit, FitParts { columns: weighted.matrix.select(&free), measurements }))
    }

    /// Whether a coefficient that was known before is a cost, as those that were found are, and no size such as an offset: the
    /// model is linear in all of them together.
    pub fn is_cost(&self, name: &str) -> bool {
        let (Ok(model), Some(point)) = (self.fitted.cost_model(), self.points.first()) else { return true };
        let mut values = self.fitted.values();
        values.remove(name);
        values.retain(|name, _| self.fitted.coefficients.iter().all(|found| found.name != *name));
        model.at(|name| point.sizes.get(name).or_else(|| values.get(name)).copied()).is_ok()
    }
}

/// What a fit was made of.
struct FitParts {
    measurements: Measurements,
    /// The weighted columns of all that was found and isn't held at 0.
    columns: Tall,
}

impl FitParts {
    fn residuals<'a>(&'a self, fit: &'a Fit, options: &FitOptions) -> FitResiduals<'a> {
        FitResiduals {
            measurements: &self.measurements,
            points: &fit.points,
            columns: &self.columns,
            solver: options.solver,
            determinizer: options.determinizer,
        }
    }
}

/// A fit of a model with a coefficient below 0, which the solver doesn't allow; `None` where that doesn't fit either.
pub(super) fn fit_below_zero(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Option<Fit> {
    let free = FitOptions { solver: Solver::LeastSquares, ..options.clone() };
    let fits =
        |fit: &Fit| fit.fitted.lack_of_fit.is_none() && fit.fitted.coefficients.iter().any(|found| found.value < 0.0);
    let fit = options.solver.is_positive().then(|| Fit::judged(model, file, &free).ok())?;
    // Models are told apart where all have the same weights.
    fit.filter(fits).and_then(|_| Fit::unjudged(model, file, &free).ok())
}

impl From<Breakpoint> for Coefficient {
    fn from(found: Breakpoint) -> Self {
        Self { name: found.name, value: found.value, error: None, interval: found.interval }
    }
}

/// What a fit says before any coefficient is found.
fn without_coefficients(
    model: &CostModel,
    file: &WorkloadFile,
    options: &FitOptions,
    measurements: &Measurements,
) -> FittedModel {
    FittedModel {
        perfprop_model: VERSION,
        name: file.header.name.clone(),
        model: model.expression().to_string(),
        response: options.response.clone(),
        coefficients: Vec::new(),
        breakpoints: Vec::new(),
        known: options.overrides.clone(),
        injected: None,
        quantities: quantities(model, file, options),
        covariance: None,
        degrees: 0,
        confidence: options.confidence,
        spread: measurements.spread,
        measurement: measurement(measurements, options),
        measured: BTreeMap::new(),
        lack_of_fit: None,
    }
}

/// The values of coefficients that solve the equations of a model.
struct Solution<'a> {
    model: &'a CostModel,
    options: &'a FitOptions,
    /// Values that were known before, and breakpoints.
    known: &'a BTreeMap<String, f64>,
    equations: &'a LinearEquations<'a>,
    values: &'a [f64],
}

impl Solution<'_> {
    /// Adds the coefficients to a model, and how sure they and its breakpoints are: of the only set of sizes by its repetitions,
    /// where it tells. Returns the weighted equations of all of these.
    fn give_errors(&self, fitted: &mut FittedModel, only: Option<RepeatedSet>) -> Equations {
        let &Self { model, options, known, equations, values } = self;
        let breakpoints: Vec<&str> = fitted.breakpoints.iter().map(|found| found.name.as_str()).collect();
        let weighted = equations.with_slopes(model, known, options.solver, &breakpoints);
        fitted.covariance = match only {
            Some(only) => equations.covariance_of_only(only.variance),
            None => equations.covariances(&weighted, values, options.solver),
        };
        let mut all = known.clone();
        all.extend(equations.names.iter().cloned().zip(values.iter().copied()));
        let slopes = equations.sensitivities(model, &all, &weighted, &options.found.names());
        if let Some(injected) = options.found.degrees() {
            // Nothing tells how far off a coefficient is that was found with as many as there were sizes.
            let own = fitted.covariance.take().filter(|_| injected > 0.0);
            fitted.covariance = own.map(|own| options.found.propagated(&own, &slopes));
            fitted.degrees = if injected > 0.0 { fitted.degrees } else { 0 };
        }
        fitted.injected = options.found.injected(slopes);
        fitted.coefficients = coefficients(fitted, &equations.names, values, options.solver);
        let first = fitted.coefficients.len();
        for (place, breakpoint) in fitted.breakpoints.iter_mut().enumerate() {
            let variance = fitted.covariance.as_ref().map(|rows| rows[first + place][first + place]);
            breakpoint.error = variance.filter(|variance| *variance > 0.0).map(f64::sqrt);
        }
        weighted
    }
}

/// The coefficients with their intervals; one that may not be below 0 has no interval below.
fn coefficients(fitted: &FittedModel, names: &[String], values: &[f64], solver: Solver) -> Vec<Coefficient> {
    let lowest = if solver.is_positive() { 0.0 } else { f64::NEG_INFINITY };
    let coefficient = |(place, (name, &value)): (usize, (&String, &f64))| {
        let error = fitted.error_of(place);
        let interval = error.and_then(|(_, width)| width).map(|width| ((value - width).max(lowest), value + width));
        Coefficient { name: name.clone(), value, error: error.map(|(error, _)| error), interval }
    };
    names.iter().zip(values).enumerate().map(coefficient).collect()
}

/// What stands for the runs of a set of sizes, in words.
fn measurement(measurements: &Measurements, options: &FitOptions) -> String {
    let runs = || measurements.all.iter().map(|measured| measured.point.samples);
    match (runs().min().unwrap_or(0), runs().max().unwrap_or(0)) {
        (_, 0 | 1) => "one run".to_owned(),
        (least, most) if least == most => format!("{} of {most} runs", options.determinizer),
        (least, most) => format!("{} of {least} to {most} runs", options.determinizer),
    }
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

/// 1 less the weighted sum of squares of what is left over that of the differences from the weighted mean, with the weights of
/// the fit, also of models without a constant; `None` of fewer than two sizes, or where all are alike.
fn r_squared(points: &[FittedPoint]) -> Option<f64> {
    let sum = |of: &dyn Fn(&FittedPoint) -> f64| points.iter().map(|point| point.weight * of(point)).sum::<f64>();
    let mean = sum(&|point| point.measured) / sum(&|_| 1.0);
    let total = sum(&|point| (point.measured - mean).powi(2));
    let left = sum(&|point| (point.measured - point.predicted).powi(2));
    let explained = (total - left) / total;
    // What a constant explains is 0 but for rounding.
    (points.len() > 1 && total > 0.0).then_some(if explained.abs() < 1e-12 { 0.0 } else { explained })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::workload::{Workload, WorkloadHeader};
    use super::*;
    use crate::random::SplitMix64;

    /// Points of weight 3 and 1: their weighted mean is that of 2, 2, 2 and 6, which is 3.
    fn of_two(predicted: [f64; 2]) -> Vec<FittedPoint> {
        let point = |(measured, weight), predicted| FittedPoint {
            sizes: BTreeMap::new(),
            measured,
            predicted,
            samples: 1,
            weight,
        };
        [(2.0, 3.0), (6.0, 1.0)].into_iter().zip(predicted).map(|(point_of, value)| point(point_of, value)).collect()
    }

    /// Sizes from 10 to 10,000 that were measured so often, each time with what `error` adds to the true value.
    fn measured(sizes: usize, runs: usize, mut error: impl FnMut(f64) -> f64) -> WorkloadFile {
        let workload = |place: usize| {
            let n = 10.0 * 10f64.powf(place as f64 * 3.0 / (sizes - 1) as f64);
            let truth = 5000.0 + 30.0 * n;
            let times = (0..runs).map(|_| (truth + error(truth)).max(0.0)).collect();
            let samples = BTreeMap::from([("time".to_owned(), times)]);
            Workload { sizes: BTreeMap::from([("n".to_owned(), n)]), samples, order: Vec::new() }
        };
        let header = WorkloadHeader { perfprop_workload: 1, sizes: vec!["n".into()], ..WorkloadHeader::default() };
        WorkloadFile { header, workloads: (0..sizes).map(workload).collect() }
    }

    /// Twelve sizes that were measured once, with errors by the true value.
    fn measured_once(random: &mut SplitMix64, error: impl Fn(f64) -> f64) -> WorkloadFile {
        measured(12, 1, |truth| error(truth) * random.normal())
    }

    /// How often intervals of both coefficients hold, and half the width of those of b.
    fn coverage(
        solver: Solver,
        (sizes, runs): (usize, usize),
        (deviation, disturbed): (f64, f64),
        fits: usize,
    ) -> ([f64; 2], f64) {
        let model = CostModel::parse("a + b * n", &["n".into()]).unwrap();
        let options = FitOptions { solver, ..FitOptions::default() };
        let mut random = SplitMix64::new(7);
        let (mut held, mut widths) = ([0.0; 2], Vec::new());
        for _ in 0..fits {
            let file = measured(sizes, runs, |truth| {
                let time = truth * (1.0 + deviation * random.normal());
                if random.uniform() < disturbed { 3.0 * time - truth } else { time - truth }
            });
            let (fit, _) = Fit::of_likelier_errors(&model, &file, &options).unwrap();
            for (place, truth) in [(0, 5000.0), (1, 30.0)] {
                let (low, high) = fit.fitted.coefficients[place].interval.unwrap();
                held[place] += f64::from(u8::from(low <= truth && truth <= high)) / fits as f64;
            }
            let (low, high) = fit.fitted.coefficients[1].interval.unwrap();
            widths.push((high - low) / 2.0);
        }
        (held, crate::steps::median(widths).unwrap())
    }

    /// `PERFPROP_FITS=2000` prints the table of docs/cost.md.
    #[test]
    #[expect(clippy::print_stderr, reason = "prints a table of docs/cost.md")]
    fn intervals_hold_where_few_runs_are_measured_or_some_are_disturbed() {
        let fits = std::env::var("PERFPROP_FITS").ok().and_then(|fits| fits.parse().ok()).unwrap_or(120);
        for (solver, name, sizes, runs, deviation, disturbed) in [
            (Solver::Robust, "robust", 12, 1, 0.02, 0.1),
            (Solver::Robust, "robust", 24, 1, 0.02, 0.05),
            (Solver::Robust, "robust", 24, 1, 0.02, 0.1),
            (Solver::Robust, "robust", 40, 1, 0.02, 0.1),
            (Solver::Robust, "robust", 12, 3, 0.02, 0.1),
            (Solver::Robust, "robust", 12, 5, 0.02, 0.1),
            (Solver::Robust, "robust", 24, 3, 0.02, 0.1),
            (Solver::Robust, "robust", 24, 1, 0.02, 0.0),
            (Solver::Robust, "robust", 12, 10, 0.02, 0.0),
            (Solver::NonNegative, "nnls", 12, 2, 0.1, 0.0),
            (Solver::NonNegative, "nnls", 12, 3, 0.1, 0.0),
            (Solver::NonNegative, "nnls", 12, 5, 0.1, 0.0),
        ] {
            let ([a, b], width) = coverage(solver, (sizes, runs), (deviation, disturbed), fits);
            eprintln!("| {name} | {sizes} | {runs} | {deviation} | {disturbed} | {a:.3} | {b:.3} | {width:.3} |");
            // 0.9 less what so few fits may be off by chance.
            let least = 0.9 - 2.0 * (0.9 * 0.1 / fits as f64).sqrt();
            assert!(a.min(b) > least, "{name} of {sizes} sizes, {runs} runs: {a} {b}");
        }
    }

    #[test]
    fn intervals_of_sizes_that_were_measured_once_hold_however_errors_grow() {
        const FITS: u32 = 150;
        let model = CostModel::parse("a + b * n", &["n".into()]).unwrap();
        let kinds: [fn(f64) -> f64; 4] =
            [|_| 300.0, |truth| 3.0 * truth.sqrt(), |truth| 0.05 * truth, |truth| 0.3 * truth];
        for (kind, error) in kinds.into_iter().enumerate() {
            let mut random = SplitMix64::new(7);
            let (mut held, mut held_by_alike) = ([0; 2], 0);
            for _ in 0..FITS {
                let file = measured_once(&mut random, error);
                let of = |unrepeated| {
                    let fit = Fit::new(&model, &file, &FitOptions { unrepeated, ..FitOptions::default() }).unwrap();
                    [(0, 5000.0), (1, 30.0)].map(|(place, truth)| {
                        let (low, high) = fit.fitted.coefficients[place].interval.unwrap();
                        u32::from(low <= truth && truth <= high)
                    })
                };
                held.iter_mut().zip(of(UnrepeatedErrors::Likelier)).for_each(|(held, holds)| *held += holds);
                held_by_alike += of(UnrepeatedErrors::Alike)[1];
            }
            // 0.87 to 0.97 of 400 fits did.
            assert!(held.iter().all(|held| *held >= FITS * 4 / 5), "{kind}: {held:?}");
            // Parts of the value that are taken to be alike leave the largest size to itself.
            assert!(kind < 2 || held_by_alike < FITS * 4 / 5, "{kind}: {held_by_alike}");
        }
    }

    #[test]
    fn r_squared_has_the_weights_of_the_fit() {
        // Squares from the mean: 3 * 1 + 9 = 12; left by 3 and 5: 3 * 1 + 1 = 4.
        let explained = r_squared(&of_two([3.0, 5.0]));
        assert!(explained.is_some_and(|value| (value - 2.0 / 3.0).abs() < 1e-12), "{explained:?}");
        // The best constant explains nothing, and a worse one less.
        assert_eq!(r_squared(&of_two([3.0, 3.0])), Some(0.0));
        assert!(r_squared(&of_two([4.0, 4.0])).is_some_and(|value| value < 0.0));
        assert_eq!(r_squared(&of_two([2.0, 6.0])), Some(1.0));
    }

    #[test]
    fn where_nothing_varies_r_squared_says_nothing() {
        let alike: Vec<_> =
            of_two([3.0, 3.0]).into_iter().map(|point| FittedPoint { measured: 5.0, ..point }).collect();
        assert_eq!((r_squared(&alike), r_squared(&alike[..1]), r_squared(&[])), (None, None, None));
    }
}
