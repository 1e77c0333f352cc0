//! Predicts by a model whose coefficients were found, and keeps it in a file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fit_error::FitError;
use super::injected::InjectedCoefficients;
use super::lack_of_fit::LackOfFit;
use super::model::{CostModel, ModelError};
use super::workload::sizes_in_words;
use crate::rates::two_sided_quantile;

/// A coefficient that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// Its name in the model.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its standard error; `None` where too little was measured to say.
    pub error: Option<f64>,
    /// The ends of its interval.
    pub interval: Option<(f64, f64)>,
}

/// The variance of a measurement: a number times a power of its value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VarianceFunction {
    /// The number.
    pub factor: f64,
    /// The power: 0 where all measurements are as uncertain, 2 where they are off by a part of their value.
    pub power: f64,
}

impl VarianceFunction {
    /// The variance at a value.
    pub fn at(self, value: f64) -> f64 {
        let variance = self.factor * value.abs().powf(self.power);
        if variance.is_finite() && variance > 0.0 { variance } else { self.factor }
    }
}

/// A model with the coefficients that were found for it: all that a prediction needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FittedModel {
    /// The version of the format: 1.
    pub perfprop_model: u32,
    /// The name of what was measured; empty in files of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The model.
    pub model: String,
    /// The quantity: `time` in nanoseconds, or an event.
    pub response: String,
    /// The coefficients, in the order of the alphabet.
    pub coefficients: Vec<Coefficient>,
    /// The sizes at which the cost changes, where the model has such names and the fit found them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<Coefficient>,
    /// The coefficients that were known before.
    pub known: BTreeMap<String, f64>,
    /// Which of these other fits found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub injected: Option<InjectedCoefficients>,
    /// The measured quantities that the model names like sizes, by the names that it gives them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub quantities: BTreeMap<String, String>,
    /// The covariances of the coefficients that were found, behind them of the breakpoints, and of those that other fits found.
    pub covariance: Option<Vec<Vec<f64>>>,
    /// Sets of sizes less coefficients and breakpoints, or repetitions less 1 where there is a single set with one coefficient; 0
    /// where another fit whose coefficients are used has none.
    pub degrees: usize,
    /// The confidence level of intervals.
    pub confidence: f64,
    /// The variance of a measurement around the model.
    pub spread: VarianceFunction,
    /// What stood for the runs of a set of sizes, in words: `the median of 30 runs`. Predictions of a measurement are of that.
    #[serde(default = "like_those_of_the_fit")]
    pub measurement: String,
    /// The least and the most of each size that was measured.
    pub measured: BTreeMap<String, (f64, f64)>,
    /// Where the model is furthest off, if it doesn't fit what was measured; older versions didn't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lack_of_fit: Option<LackOfFit>,
}

fn like_those_of_the_fit() -> String {
    "as many runs as were fitted".to_owned()
}

/// The version of the format.
pub(super) const VERSION: u32 = 1;

/// How much a model changes where one of these values is one more; `None` where it has no value.
pub(super) fn slope(model: &CostModel, values: impl Fn(&str) -> Option<f64>, name: &str) -> Option<f64> {
    let at = values(name)?;
    let step = 1e-6 * at.abs().max(f64::MIN_POSITIVE);
    let moved = |by: f64| model.value(|other| if other == name { Some(at + by) } else { values(other) });
    let slope = (moved(step)? - moved(-step)?) / (2.0 * step);
    slope.is_finite().then_some(slope)
}

/// How much a model changes with a coefficient in which it may be linear: exactly then, also where the value is 0.
pub(super) fn change(model: &CostModel, values: impl Fn(&str) -> Option<f64>, name: &str) -> f64 {
    let others = |other: &str| if other == name { None } else { values(other) };
    let exact = model.at(others).ok().map(|found| found.coefficients.get(name).copied().unwrap_or(0.0));
    exact.filter(|change| change.is_finite()).or_else(|| slope(model, &values, name)).unwrap_or(0.0)
}

/// f'Cf.
fn square_form(c: &[Vec<f64>], f: &[f64]) -> f64 {
    let row = |row: &Vec<f64>| row.iter().zip(f).map(|(value, factor)| value * factor).sum::<f64>();
    c.iter().zip(f).map(|(values, factor)| factor * row(values)).sum()
}

/// A prediction of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// The value.
    pub value: f64,
    /// The interval of the value itself; `None` where too little was measured.
    pub interval: Option<(f64, f64)>,
    /// The interval of one more measurement like those of the fit: of as many runs, not of one.
    pub next: Option<(f64, f64)>,
}

impl FittedModel {
    /// The level of its intervals in percent, without what binary fractions add: 57, not 56.99999999999999.
    pub fn confidence_in_percent(&self) -> f64 {
        (self.confidence * 1e8).round() / 1e6
    }

    /// Whether what was read can be one that a fit wrote.
    ///
    /// # Errors
    /// What can't be, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.perfprop_model != VERSION {
            return Err(format!("version {} of models; this perfprop reads {VERSION}", self.perfprop_model));
        }
        if !(self.confidence > 0.0 && self.confidence < 1.0) {
            return Err(format!("its confidence is {}, and not between 0 and 1", self.confidence));
        }
        if self.spread.factor < 0.0 {
            return Err(format!("the variance of a measurement is below 0 (factor {})", self.spread.factor));
        }
        let injected = self.injected.as_ref().map_or(0, |injected| injected.sources.len());
        if self.injected.iter().flat_map(|found| &found.slopes).any(|slopes| slopes.len() != injected) {
            return Err(format!("slopes that aren't of {injected} coefficients"));
        }
        self.check_covariance(self.coefficients.len() + self.breakpoints.len() + injected)
    }

    fn check_covariance(&self, size: usize) -> Result<(), String> {
        let Some(rows) = &self.covariance else { return Ok(()) };
        if rows.len() != size || rows.iter().any(|row| row.len() != size) {
            return Err(format!("its covariances aren't {size} rows of {size} numbers"));
        }
        let variances = || (0..size).map(|place| rows[place][place]);
        // A variance of 0 may come out a little below it.
        let least = -1e-9 * variances().map(f64::abs).fold(0.0, f64::max);
        match variances().find(|variance| *variance < least) {
            Some(variance) => Err(format!("a variance is below 0 ({variance})")),
            None => Ok(()),
        }
    }

    /// The model.
    ///
    /// # Errors
    /// Returns the mistake in its text.
    pub fn cost_model(&self) -> Result<CostModel, ModelError> {
        CostModel::parse(&self.model, &[])
    }

    /// The coefficients by name, those that were known before among them.
    pub fn values(&self) -> BTreeMap<String, f64> {
        let found = self.coefficients.iter().chain(&self.breakpoints);
        let found = found.map(|coefficient| (coefficient.name.clone(), coefficient.value));
        self.known.clone().into_iter().chain(found).collect()
    }

    /// The standard error of a coefficient and half the width of its interval.
    pub(super) fn error_of(&self, place: usize) -> Option<(f64, Option<f64>)> {
        let factors = self.only(place);
        let error = self.variance(&factors)?.sqrt();
        Some((error, self.quantile(&factors, 0.0).map(|quantile| quantile * error)))
    }

    /// The degrees of freedom of a coefficient's variance; `None` where nothing tells it.
    pub(super) fn degrees_of_coefficient(&self, place: usize) -> Option<f64> {
        self.degrees_of(&self.only(place), 0.0)
    }

    /// The factors of a coefficient alone.
    fn only(&self, place: usize) -> Vec<f64> {
        let count = self.covariance.as_ref().map_or(0, Vec::len);
        (0..count).map(|other| f64::from(u8::from(other == place))).collect()
    }

    /// The variance of so many times each of what the covariances are of, added up.
    fn variance(&self, factors: &[f64]) -> Option<f64> {
        self.covariance.as_ref().map(|covariance| square_form(covariance, factors).max(0.0))
    }

    /// The degrees of freedom of such a variance and of what this fit's own errors add to it, by Welch and Satterthwaite: it
    /// is a sum of this fit's own variance and of that which comes from other fits, each with its degrees (Satterthwaite,
    /// "An approximate distribution of estimates of variance components", 1946).
    fn degrees_of(&self, factors: &[f64], added: f64) -> Option<f64> {
        let own_degrees = (self.degrees > 0).then_some(self.degrees as f64)?;
        let (Some(injected), Some(covariance)) = (&self.injected, &self.covariance) else { return Some(own_degrees) };
        let (own, others) = factors.split_at(factors.len() - injected.sources.len());
        let by =
            |place: usize| own.iter().zip(&injected.slopes).map(|(factor, slopes)| factor * slopes[place]).sum::<f64>();
        let others: Vec<f64> = others.iter().enumerate().map(|(place, factor)| factor + by(place)).collect();
        let block: Vec<Vec<f64>> = covariance[own.len()..].iter().map(|row| row[own.len()..].to_vec()).collect();
        let shared = square_form(&block, &others).max(0.0);
        let own = (self.variance(factors)? - shared).max(0.0) + added;
        let degrees = (own + shared).powi(2) / (own.powi(2) / own_degrees + shared.powi(2) / injected.degrees);
        Some(if degrees.is_finite() { degrees } else { own_degrees })
    }

    /// The quantile of Student's t that intervals have; `None` where there are as many coefficients as sets of sizes.
    fn quantile(&self, factors: &[f64], added: f64) -> Option<f64> {
        Some(two_sided_quantile(1.0 - self.confidence, self.degrees_of(factors, added)?))
    }

    /// What the model gives at some sizes.
    ///
    /// # Errors
    /// Returns where the model isn't linear, or has no value.
    pub fn predict(&self, model: &CostModel, sizes: &BTreeMap<String, f64>) -> Result<Prediction, FitError> {
        let breakpoints = self.breakpoints.iter().map(|found| (found.name.clone(), found.value));
        let values: BTreeMap<String, f64> =
            self.known.clone().into_iter().chain(breakpoints).chain(sizes.clone()).collect();
        let row = model.at(|name| values.get(name).copied()).map_err(|error| {
            FitError::not_linear(error, model, |name| values.contains_key(name), sizes.keys().cloned().collect())
        })?;
        let factor = |name: &String| row.coefficients.get(name).copied().unwrap_or(0.0);
        let mut factors: Vec<f64> = self.coefficients.iter().map(|coefficient| factor(&coefficient.name)).collect();
        let found = self.coefficients.iter().zip(&factors).map(|(coefficient, factor)| coefficient.value * factor);
        let value = row.constant + found.sum::<f64>();
        let is_known = row.coefficients.keys().all(|name| self.coefficients.iter().any(|known| known.name == *name));
        if !value.is_finite() || !is_known {
            return Err(FitError::NoValue { sizes: sizes_in_words(sizes) });
        }
        let all: BTreeMap<String, f64> = self.values().into_iter().chain(sizes.clone()).collect();
        let of_name = |name: &str| all.get(name).copied();
        factors.extend(self.breakpoints.iter().map(|found| slope(model, of_name, &found.name).unwrap_or(0.0)));
        let injected = self.injected.iter().flat_map(|injected| injected.sources.keys());
        factors.extend(injected.map(|name| change(model, of_name, name)));
        let interval = |added: f64| {
            let width = self.quantile(&factors, added)? * (self.variance(&factors)? + added).sqrt();
            Some((value - width, value + width))
        };
        Ok(Prediction { value, interval: interval(0.0), next: interval(self.spread.at(value)) })
    }

    /// The sizes that lie outside of those that were measured, with the least and the most of these.
    pub fn outside(&self, sizes: &BTreeMap<String, f64>) -> Vec<(String, f64, (f64, f64))> {
        let outside = |(name, &size): (&String, &f64)| {
            let &(low, high) = self.measured.get(name)?;
            (size < low || size > high).then(|| (name.clone(), size, (low, high)))
        };
        sizes.iter().filter_map(outside).collect()
    }
}
