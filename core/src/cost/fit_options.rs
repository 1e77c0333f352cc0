//! Says how a fit is made.

use std::collections::BTreeMap;

use super::fitted::VarianceFunction;
use super::injected::FoundCoefficients;
use super::samples::Determinizer;
use super::solve::Solver;

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
    /// Which of these other fits found, and how sure they are; the others are exact.
    pub found: FoundCoefficients,
    /// How the variance of a measurement follows its value where sizes were measured too seldom to tell.
    pub unrepeated: VarianceFunction,
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
            found: FoundCoefficients::default(),
            unrepeated: VarianceFunction { factor: 1.0, power: 0.0 },
            response: super::workload::TIME.to_owned(),
            confidence: 0.95,
        }
    }
}
