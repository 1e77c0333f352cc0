//! Finds the steps that a person would point at, and says how sure each is.
//!
//! ```text
//! values ── clean ──> without outliers ── search ──> more boundaries than are true ── select ──> those that noise doesn't explain
//! ```
//!
//! The noise may be correlated, may have heavy tails and outliers, and may be larger at some times than at others. A drift is no
//! step, and nor is an outlier or a change of the spread.

mod clean;
mod fit;
mod scores;
mod search;
mod select;
#[cfg(test)]
mod simulation;
mod sums;

use super::weighted::WeightedValue;
use clean::CleanedValues;
use fit::BoundaryJudge;
use sums::RunningSums;

/// What is known of a change between two steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeEvidence {
    /// By how much the mean level changes, without outliers.
    pub by: f64,
    /// The standard error of that, if there is a step at all.
    pub error: f64,
    /// The degrees of freedom of the error.
    pub degrees: f64,
    /// Whether the values tell the error: each of both steps has several that are no outliers, and they aren't all equal.
    pub has_error: bool,
    /// The probability that a series of as many values without a step, but with noise of this spread and correlation, has as
    /// clear a one anywhere; docs/steps.md says for which noise it is more. Without any noise, no less than what the order of the
    /// values tells.
    pub chance: f64,
}

/// The largest chance of a step that is shown.
const CHANCE: f64 = 0.001;

/// Fewer values that are no outliers don't tell how far a level may be off.
const SEVERAL: usize = 2;

/// How far weights may be from the median one. Those of real files differ by decades, and the noise doesn't.
const WEIGHTS: (f64, f64) = (0.5, 2.0);

/// A weight as near the median one as it may be.
pub(super) fn limited(weight: f64) -> f64 {
    weight.clamp(WEIGHTS.0, WEIGHTS.1)
}

/// The ends of the steps of points in their order.
pub(super) fn rights(points: &[WeightedValue]) -> Vec<usize> {
    if points.is_empty() {
        return Vec::new();
    }
    let cleaned = clean::clean(points);
    let weights = weights(points, &cleaned);
    let sums = RunningSums::new(&cleaned.values, &weights, &cleaned.is_outlier);
    let candidates = search::candidates(&cleaned, &weights);
    select::select(&sums, &cleaned, &candidates, CHANCE)
}

/// What is known of the change between each step and the next.
pub(super) fn evidence(points: &[WeightedValue], rights: &[usize]) -> Vec<ChangeEvidence> {
    let cleaned = clean::clean(points);
    let sums = RunningSums::new(&cleaned.values, &weights(points, &cleaned), &cleaned.is_outlier);
    let judge = BoundaryJudge::new(&sums, &cleaned);
    let is_exact = judge.is_exact(judge.noise(rights));
    let has_several = |left: usize, right: usize| {
        let is_kept = |at: &usize| !cleaned.is_outlier[*at];
        (left..right).filter(is_kept).count() >= SEVERAL
    };
    let ends = select::ends(rights);
    let evidence = |(fit, ends): (&fit::BoundaryFit, &[usize])| ChangeEvidence {
        by: fit.by,
        error: fit.error,
        degrees: fit.degrees,
        has_error: !is_exact && has_several(ends[0], ends[1]) && has_several(ends[1], ends[2]),
        chance: if is_exact { judge.chance(fit).max(chance_of_order(ends)) } else { judge.chance(fit) },
    };
    select::robust_fits(&judge, rights).iter().zip(ends.windows(3)).map(evidence).collect()
}

/// The part of all orders of two levels' values in which those of each level stand together. Where the values of a level are equal, nothing else
/// tells how likely their order is by chance.
fn chance_of_order(ends: &[usize]) -> f64 {
    let (a, b) = (ends[1] - ends[0], ends[2] - ends[1]);
    // 2 a! b! / (a + b)!
    (1..=a.min(b)).fold(2.0, |part, k| part * k as f64 / (a.max(b) + k) as f64).min(1.0)
}

/// How much each value counts: the inverse of its variance.
fn weights(points: &[WeightedValue], cleaned: &CleanedValues) -> Vec<f64> {
    let weight = |(point, scale): (&WeightedValue, &f64)| (limited(point.weight) / scale).powi(2);
    points.iter().zip(&cleaned.scales).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(values: &[f64]) -> Vec<WeightedValue> {
        values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect()
    }

    fn levels(levels: &[(usize, f64)]) -> Vec<f64> {
        levels.iter().flat_map(|&(count, level)| vec![level; count]).collect()
    }

    #[test]
    fn exact_levels_are_found_and_nothing_else() {
        assert_eq!(rights(&points(&levels(&[(10, 1.0), (7, 3.0), (20, 2.0)]))), [10, 17, 37]);
        assert_eq!(rights(&points(&levels(&[(30, 0.1)]))), [30]);
        assert_eq!(rights(&points(&[5.0])), [1]);
        assert_eq!(rights(&points(&[5.0, 6.0])), [2]);
        assert!(rights(&[]).is_empty());
    }

    #[test]
    fn levels_that_nearly_agree_are_found_though_they_are_few() {
        let values = [257.0, 256.0, 258.0, 356.0, 358.0, 358.0, 357.0];
        assert_eq!(rights(&points(&values)), [3, 7]);
        // Instructions of a program from commit to commit: small changes, which look like correlated noise, and large ones.
        let counts = [92.6, 92.6, 92.6, 93.2, 93.1, 93.0, 107.0, 107.0, 107.1, 107.0, 112.0, 112.0, 112.1, 112.0];
        let found = rights(&points(&counts));
        assert!(found.contains(&6) && found.contains(&10), "{found:?}");
        // What is as coarse as its changes has no levels.
        let coarse = [10.0, 10.0, 10.0, 11.0, 11.0, 11.0, 11.0, 10.0, 10.0, 11.0, 10.0, 10.0];
        assert_eq!(rights(&points(&coarse)), [12]);
    }

    #[test]
    fn the_error_of_a_change_needs_several_values_of_both_levels() {
        let has_error = |values: &[f64], rights: &[usize]| {
            evidence(&points(values), rights).iter().map(|one| one.has_error).collect::<Vec<_>>()
        };
        assert_eq!(has_error(&[10.0, 12.0], &[1, 2]), [false]);
        assert_eq!(has_error(&[10.0, 10.1, 12.0, 12.1], &[2, 4]), [true]);
        // The last value, and two among others, are outliers: of them nothing is left.
        let noise = |at: u32| 100.0 + f64::from(at * 7 % 5) / 10.0;
        let mut values: Vec<f64> = (0..30).map(noise).chain([130.0]).collect();
        assert_eq!(has_error(&values, &[30, 31]), [false]);
        (values[10], values[11], values[20]) = (130.0, 131.0, 70.0);
        assert_eq!(has_error(&values[..30], &[10, 12, 30]), [false, false]);
        assert_eq!(has_error(&values[..30], &[5, 10, 30]), [true, true]);
    }

    #[test]
    fn without_noise_only_the_order_of_values_tells_how_sure_a_change_is() {
        let found = |values: &[f64], rights: &[usize]| evidence(&points(values), rights)[0];
        // 2 of the 20 orders of three and three values, and of the 70 of four and four.
        let three = found(&levels(&[(3, 1.0), (3, 2.0)]), &[3, 6]);
        assert!((three.chance - 0.1).abs() < 1e-12 && !three.has_error, "{three:?}");
        let four = found(&levels(&[(4, 0.0), (4, 5.0)]), &[4, 8]);
        assert!((four.chance - 2.0 / 70.0).abs() < 1e-12 && four.by == 5.0, "{four:?}");
        assert!(found(&levels(&[(50, 1.0), (50, 2.0)]), &[50, 100]).chance < 1e-20);
        assert!(found(&[1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0], &[4, 8]).has_error);
    }

    /// Times of a program that became faster, and then slower by less.
    #[test]
    fn a_smaller_step_behind_a_large_one_hides_neither() {
        let mut values = vec![
            7.92, 7.83, 7.86, 7.90, 7.82, 7.97, 7.81, 7.91, 4.52, 4.42, 4.39, 4.41, 5.39, 5.46, 5.54, 5.73, 5.60, 5.37,
        ];
        assert_eq!(rights(&points(&values)), [8, 12, 18]);
        values[0] *= 1.12;
        assert_eq!(rights(&points(&values)), [8, 12, 18]);
    }

    #[test]
    fn outliers_drifts_and_waves_are_no_steps() {
        let mut values = levels(&[(60, 1.0)]);
        (values[20], values[41]) = (9.0, 8.0);
        assert_eq!(rights(&points(&values)), [60]);
        let drift: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(rights(&points(&drift)), [200]);
        let wave: Vec<f64> = (0..400).map(|at| (f64::from(at) / 60.0).sin()).collect();
        assert_eq!(rights(&points(&wave)), [400]);
    }

    proptest! {
        #[test]
        fn steps_keep_their_places_in_other_units(shift in -1e3f64..1e3, scale in prop::sample::select(vec![1e-9, 1.0, -1e6])) {
            let noise = |at: usize| (at * 7919 % 101) as f64 / 101.0;
            let values: Vec<f64> = (0..80).map(|at| noise(at) + if at < 30 { 0.0 } else { 3.0 }).collect();
            let others: Vec<f64> = values.iter().map(|value| scale * (value + shift)).collect();
            prop_assert_eq!(rights(&points(&others)), rights(&points(&values)));
            prop_assert_eq!(rights(&points(&values)), vec![30, 80]);
        }
    }
}
