//! Finds steps: where the level of a series of numbers changed.
//!
//! ```text
//! values   1.0 1.1 0.9 1.0 2.0 2.1 1.9 2.0      with missing ones, and weights
//! steps    [------ 1.0 ------][------ 2.0 ------]
//! ```
//!
//! [`detect`] gives the steps, [`evidence`] how sure each change is, [`regressions()`] which of them made the number larger for good, and [`improvements()`] which smaller.
//! [`potts`] is the method of the benchmark runner asv, number by number.

mod best;
#[cfg(test)]
mod draws;
mod golden_section;
mod locate;
mod normal;
pub mod potts;
mod ranges;
mod regressions;
mod series;
mod step;
mod weighted;
mod windows;

pub use best::ChangeEvidence;
pub use golden_section::{SearchEnds, SearchTolerance, minimize};
pub use locate::{LocateRules, LocatedStep, MeasuredTurn, NarrowedBy, locate};
pub use normal::normal_tail;
pub use regressions::{Regression, Regressions, improvements, regressions};
pub use series::{PresentPoints, median};
pub use step::Step;
pub use weighted::{Centre, WeightedValue, centre};

/// How steps are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepMethod {
    /// As asv finds them.
    Potts,
    /// Only those that noise doesn't explain, be it correlated, with outliers, or of changing spread.
    #[default]
    Best,
}

/// The steps of a series, in its order. `None` and what isn't finite is missing. A weight says how exact a value is; a weight
/// that is missing is the median one, and a value whose weight is 0 or less is missing.
pub fn detect(values: &[Option<f64>], weights: Option<&[Option<f64>]>, method: StepMethod) -> Vec<Step> {
    let mut present = PresentPoints::new(values, weights);
    let rights = match method {
        StepMethod::Potts => potts::automatic(&present.points).partition.rights,
        StepMethod::Best => {
            present.points.iter_mut().for_each(|point| point.weight = best::limited(point.weight));
            best::rights(&present.points)
        }
    };
    present.steps(&rights)
}

/// What is known of the change between each step and the next: one change less than there are steps. The values and weights are
/// those that the steps were found in.
pub fn evidence(values: &[Option<f64>], weights: Option<&[Option<f64>]>, steps: &[Step]) -> Vec<ChangeEvidence> {
    let present = PresentPoints::new(values, weights);
    let rights: Vec<usize> =
        steps.iter().map(|step| present.positions.partition_point(|&position| position < step.right)).collect();
    best::evidence(&present.points, &rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_weight_counts_twice_in_the_levels_of_best() {
        let values: Vec<_> = [1.0, 1.1, 0.9, 1.0, 1.02, 2.0, 2.1, 2.2, 2.0, 2.3].map(Some).to_vec();
        let level = |weight: f64, method| {
            let weights: Vec<_> = (0..10).map(|at| Some(if at == 9 { weight } else { 1.0 })).collect();
            detect(&values, Some(&weights), method).last().map(|step| step.value)
        };
        // Of 2, 2, 2.1, 2.2 and twice 2.3 it is between the middle two.
        assert!(level(1000.0, StepMethod::Best).is_some_and(|level| (level - 2.15).abs() < 1e-9));
        assert_eq!(level(1000.0, StepMethod::Best), level(2.0, StepMethod::Best));
        assert_ne!(level(1000.0, StepMethod::Potts), level(2.0, StepMethod::Potts));
    }
}
