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
    SearchEnds, SearchTolerance, Step, StepMethod, WeightedValue, centre, detect, improvements, locate, median,
    minimize, normal_tail, potts, regressions,
};

use crate::rates::Confidence;

/// How a step differs from the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelChange {
    /// By how much the level changes: the mean without outliers, or the median of asv's method.
    pub by: f64,
    /// The interval of that, at the confidence asked for, if there is a step at all; `None` where the values of a step
    /// don't tell how far its level may be off.
    pub interval: Option<(f64, f64)>,
    /// The probability that noise alone leads to as clear a change; see [`ChangeEvidence::chance`].
    pub chance: f64,
}

/// How each step differs from the one before it: one change less than there are steps. The values, the weights and the
/// method are those that the steps were found in and by. The levels of asv's method have outliers in them, and so have
/// their changes.
pub fn changes(
    values: &[Option<f64>],
    weights: Option<&[Option<f64>]>,
    steps: &[Step],
    method: StepMethod,
    confidence: Confidence,
) -> Vec<LevelChange> {
    let change = |(evidence, pair): (ChangeEvidence, &[Step])| {
        let by = match method {
            StepMethod::Best => evidence.by,
            StepMethod::Potts => pair[1].value - pair[0].value,
        };
        let half = confidence.student(evidence.degrees) * evidence.error;
        let interval = evidence.has_error.then_some((by - half, by + half));
        LevelChange { by, interval, chance: evidence.chance }
    };
    perfprop_steps::evidence(values, weights, steps).into_iter().zip(steps.windows(2)).map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_asvs_method_is_that_of_its_levels() {
        let noise = |at: u32| Some(100.0 + f64::from(at * 7 % 5) / 10.0);
        let values: Vec<_> = (0..30).map(noise).chain([Some(130.0)]).collect();
        let step = |left, right, value| Step { left, right, value, minimum: value, error: 0.1 };
        let steps = [step(0, 30, 100.2), step(30, 31, 130.0)];
        let of = |method| changes(&values, None, &steps, method, Confidence::DEFAULT);
        assert!((of(StepMethod::Potts)[0].by - 29.8).abs() < 1e-9, "{:?}", of(StepMethod::Potts));
        assert_eq!(of(StepMethod::Potts)[0].interval, None, "one value, which is an outlier of the others");
        // Two levels of equal values: nothing tells how far off they may be.
        let values = [1.0, 1.0, 1.0, 3.0, 3.0, 3.0].map(Some);
        let steps = [step(0, 3, 1.0), step(3, 6, 3.0)];
        for method in [StepMethod::Potts, StepMethod::Best] {
            let change = changes(&values, None, &steps, method, Confidence::DEFAULT)[0];
            assert!((change.by - 2.0).abs() < 1e-9 && change.interval.is_none(), "{change:?}");
        }
    }
}
