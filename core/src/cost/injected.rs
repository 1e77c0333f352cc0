//! Keeps what fits of a folder found for others, and how sure that is: its errors are in what others find.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fitted::FittedModel;

/// Coefficients that fits found, with their covariances.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundCoefficients {
    sources: BTreeMap<String, CoefficientSource>,
    covariances: BTreeMap<(String, String), f64>,
}

/// The fit that found a coefficient.
#[derive(Clone, Debug, PartialEq)]
struct CoefficientSource {
    name: String,
    /// The degrees of freedom of its variance; 0 where nothing tells how far off the coefficient is.
    degrees: f64,
}

/// Coefficients that other fits found, in a fitted model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InjectedCoefficients {
    /// What found each.
    pub sources: BTreeMap<String, String>,
    /// The fewest degrees of freedom that one was found with.
    pub degrees: f64,
    /// How much each coefficient of the model, and behind them each breakpoint, changes where one of these is one more.
    pub slopes: Vec<Vec<f64>>,
}

impl FoundCoefficients {
    /// Adds coefficients of a fit, named after what was fitted.
    pub fn add(&mut self, fitted: &FittedModel, name: &str, counts: impl Fn(&str) -> bool) {
        let degrees = |place: usize| fitted.covariance.as_ref().and_then(|_| fitted.degrees_of_coefficient(place));
        let before: Vec<String> = self.sources.keys().cloned().collect();
        let own: Vec<_> = fitted.coefficients.iter().enumerate().filter(|(_, found)| counts(&found.name)).collect();
        for (place, found) in &own {
            let with = |(other, of): &(usize, &super::Coefficient)| {
                let covariance = fitted.covariance.as_ref().map_or(0.0, |rows| rows[*place][*other]);
                ((found.name.clone(), of.name.clone()), covariance)
            };
            self.covariances.extend(own.iter().map(with));
            let Some(injected) = &fitted.injected else { continue };
            for other in &before {
                let terms = injected.slopes[*place].iter().zip(injected.sources.keys());
                let covariance: f64 = terms.map(|(slope, name)| slope * self.covariance(name, other)).sum();
                self.covariances.insert((found.name.clone(), other.clone()), covariance);
                self.covariances.insert((other.clone(), found.name.clone()), covariance);
            }
        }
        let source = |place: usize| CoefficientSource { name: name.to_owned(), degrees: degrees(place).unwrap_or(0.0) };
        self.sources.extend(own.into_iter().map(|(place, found)| (found.name.clone(), source(place))));
    }

    /// The coefficients that a model names.
    pub fn only(&self, is_named: impl Fn(&str) -> bool) -> Self {
        let sources = self.sources.clone().into_iter().filter(|(name, _)| is_named(name)).collect();
        Self { sources, covariances: self.covariances.clone() }
    }

    pub(super) fn names(&self) -> Vec<&str> {
        self.sources.keys().map(String::as_str).collect()
    }

    /// The covariance of two.
    fn covariance(&self, a: &str, b: &str) -> f64 {
        self.covariances.get(&(a.to_owned(), b.to_owned())).copied().unwrap_or(0.0)
    }

    /// The fewest degrees of freedom that one was found with.
    pub(super) fn degrees(&self) -> Option<f64> {
        self.sources.values().map(|source| source.degrees).reduce(f64::min)
    }

    /// What a fitted model keeps of them.
    pub(super) fn injected(&self, slopes: Vec<Vec<f64>>) -> Option<InjectedCoefficients> {
        let sources = self.sources.iter().map(|(name, source)| (name.clone(), source.name.clone())).collect();
        self.degrees().map(|degrees| InjectedCoefficients { sources, degrees, slopes })
    }

    /// The covariances of a fit's coefficients, and behind them of these: with the fit's own V, the slopes J and the
    /// covariances S of these they are V + JSJ', JS and S (the delta method).
    pub(super) fn propagated(&self, own: &[Vec<f64>], slopes: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (names, count) = (self.names(), own.len());
        let size = count + names.len();
        // A row for each: how it changes with these.
        let mut by = slopes.to_vec();
        by.extend((0..names.len()).map(|i| (0..names.len()).map(|j| f64::from(u8::from(i == j))).collect()));
        let shared = |i: usize, j: usize| -> f64 {
            let row = |(a, factor): (&&str, &f64)| {
                factor * names.iter().zip(&by[j]).map(|(b, other)| self.covariance(a, b) * other).sum::<f64>()
            };
            names.iter().zip(&by[i]).map(row).sum()
        };
        let of_own = |i: usize, j: usize| if i < count && j < count { own[i][j] } else { 0.0 };
        (0..size).map(|i| (0..size).map(|j| of_own(i, j) + shared(i, j)).collect()).collect()
    }
}
