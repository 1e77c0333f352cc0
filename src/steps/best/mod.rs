//! Finds the steps that a person would point at, and says how sure each is.
//!
//! ```text
//! values ── clean ──> without outliers ── search ──> more boundaries than are true ── select ──> those that noise doesn't explain
//! ```
//!
//! The noise may be correlated, may have heavy tails and outliers, and may be larger at some times than at others. A drift is no
//! step, and nor is an outlier or a change of the spread.

mod clean;
mod scores;
mod search;
mod select;
mod sums;

use super::WeightedValue;
use clean::CleanedValues;
pub(super) use select::Evidence;
use select::Selection;
use sums::RunningSums;

/// The largest chance of a step that is shown.
pub(super) const CHANCE: f64 = 0.001;

/// How far weights may be from the median one. Those of real files differ by decades, and the noise doesn't.
const WEIGHTS: (f64, f64) = (0.5, 2.0);

/// The ends of the steps of points in their order.
pub(super) fn rights(points: &[WeightedValue]) -> Vec<usize> {
    let cleaned = clean::clean(points);
    let weights = weights(points, &cleaned);
    let sums = RunningSums::new(&cleaned.values, &weights);
    let candidates = search::candidates(&cleaned, &weights);
    Selection::new(&sums, &candidates, &cleaned).select(CHANCE)
}

/// What is known of the change between each step and the next.
pub(super) fn evidence(points: &[WeightedValue], rights: &[usize]) -> Vec<Evidence> {
    let cleaned = clean::clean(points);
    let sums = RunningSums::new(&cleaned.values, &weights(points, &cleaned));
    Selection::new(&sums, rights, &cleaned).evidence()
}

/// How much each value counts: the inverse of its variance.
fn weights(points: &[WeightedValue], cleaned: &CleanedValues) -> Vec<f64> {
    let weight = |(point, scale): (&WeightedValue, &f64)| (point.weight.clamp(WEIGHTS.0, WEIGHTS.1) / scale).powi(2);
    points.iter().zip(&cleaned.scales).map(weight).collect()
}
