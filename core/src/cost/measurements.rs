//! Takes from a file what was measured at each set of sizes, and says how much each counts.
//!
//! Each set of sizes counts as one measurement. Where sizes were measured again and again, one that is less certain counts
//! for less: its variance is taken from a power of the value that is fitted to all sizes' variances (Carroll and Ruppert,
//! "Transformation and Weighting in Regression", 1988, chapter 3), as the variance of one size alone is hardly known.

use std::collections::{BTreeMap, BTreeSet};

use perfprop_linear_algebra::Tall;

use super::correlation::{SizeErrors, of_neighbours, of_sizes};
use super::fit_error::FitError;
use super::fit_options::{FitOptions, UnrepeatedErrors};
use super::fitted::VarianceFunction;
use super::model::CostModel;
use super::samples::{Determinizer, cull, median_interval, moments, robust_square};
use super::solve::{Equations, Solver};
use super::workload::{WorkloadFile, sizes_in_words};
use crate::rates::Confidence;

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

/// What was measured at a set of sizes.
pub(super) struct Measured {
    pub(super) point: FittedPoint,
    samples: Vec<f64>,
    order: Vec<u32>,
    variance: Option<f64>,
}

/// What was measured, however it is fitted.
pub(super) struct Measurements {
    pub(super) all: Vec<Measured>,
    pub(super) culled: BTreeMap<usize, BTreeMap<String, f64>>,
    pub(super) spread: VarianceFunction,
    /// Whether repetitions tell the spread, and no option.
    pub(super) tells_spread: bool,
    /// Whether all runs gave whole numbers.
    pub(super) are_whole: bool,
}

/// How sure the measurement of a set of sizes is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RepeatedSet {
    /// The variance of what stands for its repetitions.
    pub(super) variance: f64,
    /// The degrees of freedom of that.
    pub(super) degrees: usize,
}

impl Measurements {
    /// What was measured of the response, with the quantities that the model names among the sizes.
    pub(super) fn of(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> Result<Self, FitError> {
        let has_samples = |place: &usize| !samples(file, *place, &options.response).is_empty();
        let mut places: Vec<usize> = (0..file.workloads.len()).filter(has_samples).collect();
        let mut culled = BTreeMap::new();
        if let Some(sigmas) = options.cull {
            let value = |&place: &usize| options.determinizer.value(samples(file, place, &options.response));
            let kept = cull(&places.iter().filter_map(value).collect::<Vec<_>>(), sigmas).kept;
            let left_out = (0..places.len()).filter(|place| !kept.contains(place)).map(|place| places[place]);
            culled = left_out.map(|place| (place, file.workloads[place].sizes.clone())).collect();
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
        let found = variance_function(&all, options.solver);
        let measured = |measured: &Measured| measured.point.measured;
        let spread = weigh(&mut all, found.unwrap_or(options.unrepeated.variance()), measured);
        let are_whole = all.iter().flat_map(|measured| &measured.samples).all(|sample| sample.fract() == 0.0);
        Ok(Self { all, culled, spread, tells_spread: found.is_some(), are_whole })
    }

    /// Whether most sizes were measured more than once with the same result.
    pub(super) fn are_mostly_exact(&self) -> bool {
        2 * self.all.iter().filter(|measured| measured.is_exact()).count() > self.all.len()
    }

    /// Weighs the measurements by what a fit gives in place of what was measured once or twice: those that are low by chance would
    /// count for more.
    pub(super) fn weigh_by(&mut self, points: &[FittedPoint], errors: UnrepeatedErrors) {
        /// A fit that is off by more doesn't say how large a value is.
        const FURTHEST: f64 = 10.0;
        for (measured, fitted) in self.all.iter_mut().zip(points) {
            let value = fitted.measured;
            measured.point.predicted = fitted.predicted.clamp(value / FURTHEST, value * FURTHEST);
        }
        self.spread = weigh(&mut self.all, errors.variance(), |measured| measured.point.predicted);
    }

    /// How sure the only set of sizes is by its repetitions; `None` of several sets, or of too few repetitions. Of a median the variance is
    /// the one with which Student's interval has the larger side of the median's own.
    pub(super) fn only_set(&self, options: &FitOptions) -> Option<RepeatedSet> {
        let [only] = self.all.as_slice() else { return None };
        let degrees = only.samples.len().checked_sub(1)?;
        let confidence = Confidence::new(options.confidence).unwrap_or(Confidence::DEFAULT);
        let of_median = |(low, high): (f64, f64)| {
            let half = (only.point.measured - low).max(high - only.point.measured);
            (half / confidence.student(degrees as f64)).powi(2)
        };
        let variance = match options.determinizer {
            Determinizer::Median => median_interval(&only.samples, confidence).map(of_median),
            Determinizer::Mean | Determinizer::Percentile(_) => only.variance,
        }?;
        let errors = [only.errors(only.point.measured, self.spread)];
        let neighbours = of_neighbours(&errors);
        let shared = if neighbours > 0.0 { of_sizes(&errors, neighbours).at(0, 0) } else { 1.0 };
        Some(RepeatedSet { variance: variance * shared, degrees })
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

impl Measured {
    /// Whether there are several runs, which agree exactly.
    pub(super) fn is_exact(&self) -> bool {
        self.samples.len() > 1 && self.samples.iter().all(|sample| *sample == self.samples[0])
    }

    /// The variance of what stands for the runs by their variance, and its degrees of freedom; `None` of one run. That of a
    /// median is pi/2 of a mean's, as it is for many runs with Gaussian errors, and less for few.
    pub(super) fn variance_of_runs(&self, determinizer: Determinizer) -> Option<(f64, f64)> {
        let degrees = self.samples.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
        let of_mean = moments(&self.samples)?.variance / degrees;
        let over_mean = match determinizer {
            Determinizer::Mean => 1.0,
            Determinizer::Median | Determinizer::Percentile(_) => std::f64::consts::FRAC_PI_2,
        };
        Some((over_mean * of_mean, degrees))
    }

    /// How far the runs are off what the model gives, in standard deviations but for a factor that all sizes share.
    pub(super) fn errors(&self, predicted: f64, spread: VarianceFunction) -> SizeErrors {
        let deviation = spread.at(predicted).sqrt();
        let errors = self.samples.iter().map(|sample| (sample - predicted) / deviation).collect();
        SizeErrors { errors, order: self.order.clone() }
    }
}

/// What was measured of a quantity; nothing where it wasn't.
fn samples<'a>(file: &'a WorkloadFile, place: usize, quantity: &str) -> &'a [f64] {
    file.workloads[place].samples.get(quantity).map_or(&[], Vec::as_slice)
}

/// The measured quantities that a model names, by the names that it gives them.
pub(super) fn quantities(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> BTreeMap<String, String> {
    let names = model.names();
    let is_named = |name: &String, quantity: &String| {
        names.contains(name.as_str()) && *quantity != options.response && !options.overrides.contains_key(name)
    };
    file.quantities().into_iter().filter(|(name, quantity)| is_named(name, quantity)).collect()
}

/// Gives each its weight, 1 on average, and returns the variance of one of weight 1 over that at large, as a function of
/// the value. What was measured as 0 is no surer than the least that was seen.
fn weigh(all: &mut [Measured], function: VarianceFunction, value: impl Fn(&Measured) -> f64) -> VarianceFunction {
    let values = all.iter().map(|measured| measured.point.measured);
    let least = values.filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let weight = |measured: &Measured| {
        let is_none = measured.point.measured == 0.0 && least.is_finite();
        function.at(if is_none { value(measured).max(least) } else { value(measured) }).recip()
    };
    let mean = all.iter().map(weight).sum::<f64>() / all.len().max(1) as f64;
    all.iter_mut().for_each(|measured| measured.point.weight = weight(measured) / mean);
    VarianceFunction { factor: function.factor * mean, ..function }
}

/// Fits the variance as a power of the value by least squares of logarithms; `None` where fewer than three sizes have a
/// variance. The power is at most that of errors that are a part of the value. A robust solver's power is robust, too: a disturbed run
/// makes the variance of few many times too large.
fn variance_function(all: &[Measured], solver: Solver) -> Option<VarianceFunction> {
    let variance = |measured: &Measured| match solver {
        Solver::Robust => robust_square(&measured.samples),
        _ => measured.variance,
    };
    let point = |measured: &Measured| {
        let (value, variance) = (measured.point.measured, variance(measured)?);
        (value > 0.0 && variance > 0.0).then(|| (value.ln(), variance.ln()))
    };
    let points: Vec<(f64, f64)> = all.iter().filter_map(point).collect();
    let columns = vec![vec![1.0; points.len()], points.iter().map(|(value, _)| *value).collect()];
    let line = Equations {
        matrix: Tall::new(points.len(), columns),
        target: points.iter().map(|(_, variance)| *variance).collect(),
    };
    if points.len() < 3 || line.matrix.clone().factored(line.target.clone()).rank() < 2 {
        return None;
    }
    let robust = if solver == Solver::Robust { Solver::Robust } else { Solver::LeastSquares };
    let power = line.solve(robust)[1].clamp(0.0, 2.0);
    let mean = points.iter().map(|(value, variance)| variance - power * value).sum::<f64>() / points.len() as f64;
    Some(VarianceFunction { factor: mean.exp(), power })
}
