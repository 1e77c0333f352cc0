//! Finds steps: where the level of a series of numbers changed.
//!
//! The methods are the crate `perfprop-steps`; intervals at a confidence level are made here.
//!
//! ```text
//! values   1.0 1.1 0.9 1.0 2.0 2.1 1.9 2.0      with missing ones, and weights
//! steps    [------ 1.0 ------][------ 2.0 ------]
//! ```

pub use perfprop_steps::{
    Centre, ChangeEvidence, LocateRules, LocatedStep, MeasuredTurn, NarrowedBy, PresentPoints, Regression, Regressions,
    SearchEnds, SearchTolerance, Step, StepMethod, WeightedValue, centre, detect, locate, median, minimize,
    normal_tail, potts, regressions,
};

use crate::rates::Confidence;

/// How a step differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// By how much the mean level changes, without outliers.
    pub by: f64,
    /// The interval of that, at the confidence asked for, if there is a step at all.
    pub interval: (f64, f64),
    /// The probability that noise alone leads to as clear a change; see [`ChangeEvidence::chance`].
    pub chance: f64,
}

/// How each step differs from the one before it: one change less than there are steps. The values and weights are those that
/// the steps were found in.
pub fn changes(
    values: &[Option<f64>],
    weights: Option<&[Option<f64>]>,
    steps: &[Step],
    confidence: Confidence,
) -> Vec<LevelChange> {
    let change = |evidence: ChangeEvidence| {
        let half = confidence.student(evidence.degrees as u64) * evidence.error;
        let interval = (evidence.by - half, evidence.by + half);
        LevelChange { by: evidence.by, interval, chance: evidence.chance }
    };
    perfprop_steps::evidence(values, weights, steps).into_iter().map(change).collect()
}
