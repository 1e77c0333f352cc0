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
    /// How errors grow with the value where sizes were measured too seldom to tell.
    pub unrepeated: UnrepeatedErrors,
    /// The quantity that is fitted: `time`, or an event.
    pub response: String,
    /// The confidence level of intervals, between 0 and 1.
    pub confidence: f64,
}

/// How the errors of sizes that were measured once or twice grow with the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnrepeatedErrors {
    /// Whichever of the others explains more of what is left of the model.
    #[default]
    Likelier,
    /// They are alike at all sizes.
    Alike,
    /// They grow with the root of the value.
    RootOfValue,
    /// They are a part of the value.
    PartOfValue,
}

impl UnrepeatedErrors {
    /// The variance of a measurement by its value, but for a factor.
    pub(super) fn variance(self) -> VarianceFunction {
        let power = match self {
            Self::Likelier | Self::Alike => 0.0,
            Self::RootOfValue => 1.0,
            Self::PartOfValue => 2.0,
        };
        VarianceFunction { factor: 1.0, power }
    }
}

impl Default for FitOptions {
    fn default() -> Self {
        Self {
            solver: Solver::NonNegative,
            determinizer: Determinizer::default(),
            cull: None,
            overrides: BTreeMap::new(),
            found: FoundCoefficients::default(),
            unrepeated: UnrepeatedErrors::default(),
            response: super::workload::TIME.to_owned(),
            confidence: 0.95,
        }
    }
}
