//! Says which benchmarks lost or won at which commits: regressions and improvements of all series of a folder of results.

use super::differing::{DifferingParams, differing_params};
use super::results::{Benchmark, BenchmarkList, combinations};
use super::series::BenchmarkSeries;
use crate::steps::{Regressions, Step, StepMethod, improvements, median, regressions};

/// A rise of less than this share of the level is no regression, unless another threshold is set.
pub const THRESHOLD: f64 = 0.05;

/// A step of fewer points is one only if the series stays there.
const MIN_POINTS: usize = 2;

/// In a series of fewer numbers no step is found: one needs three commits on both sides.
pub const LEAST_NUMBERS: usize = 6;

/// Of fewer numbers the last two are above the first half by chance in more than one of 15 series.
const LEAST_RISE: usize = 8;

/// What a benchmark lost, or won, with one combination of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkRegression {
    /// The benchmark, with its parameters: `sort('quick', 10)`.
    pub entry: String,
    /// The place of the series.
    pub series: usize,
    /// The place of the combination of parameters; `None` without parameters.
    pub combination: Option<usize>,
    /// What of the machine and environment tells the series from others.
    pub params: DifferingParams,
    /// The steps, in the order of commits: positions are revisions.
    pub rises: Regressions,
}

/// Which steps are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoughtSteps {
    /// Those that made a number larger for good.
    Regressions,
    /// Those that made it smaller for good.
    Improvements,
}

/// Which steps of an entry are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionRule {
    /// The share of the level before it that a step must have.
    pub threshold: f64,
    /// The first revision that may be on the higher level, and after which steps end.
    pub from: u64,
}

/// The regressions or improvements of all series. `rule` says what counts for an entry; `None` leaves it out.
pub fn all_regressions(
    series: &[BenchmarkSeries],
    benchmarks: &BenchmarkList,
    method: StepMethod,
    sought: SoughtSteps,
    rule: impl Fn(&str) -> Option<RegressionRule>,
) -> Vec<BenchmarkRegression> {
    let differing = differing_params(series);
    let mut found = Vec::new();
    for (place, (one, params)) in series.iter().zip(&differing).enumerate() {
        let Some(benchmark) = benchmarks.0.get(&one.benchmark) else { continue };
        for (combination, entry) in entry_names(benchmark).into_iter().enumerate().take(one.combinations()) {
            let has_params = !benchmark.params.is_empty();
            let Some(rule) = rule(&entry) else { continue };
            let Some(rises) = sought.among(one.steps(combination, method), rule) else { continue };
            found.push(BenchmarkRegression {
                entry,
                series: place,
                combination: has_params.then_some(combination),
                params: params.clone(),
                rises,
            });
        }
    }
    found
}

/// A series that ends higher than it began, without a step that says where.
#[derive(Clone, Debug, PartialEq)]
pub struct UnclearRise {
    /// The benchmark, with its parameters.
    pub entry: String,
    /// By which share the last two numbers are above the first half, by medians.
    pub by: f64,
}

/// The series without a regression whose last two numbers are above all of their first half, and above its median by the threshold of
/// their rule: a drift, or a rise that is too new to be told from outliers.
pub fn unclear_rises(
    series: &[BenchmarkSeries],
    benchmarks: &BenchmarkList,
    found: &[BenchmarkRegression],
    rule: impl Fn(&str) -> Option<RegressionRule>,
) -> Vec<UnclearRise> {
    let mut rises = Vec::new();
    for (place, one) in series.iter().enumerate() {
        let Some(benchmark) = benchmarks.0.get(&one.benchmark) else { continue };
        for (combination, entry) in entry_names(benchmark).into_iter().enumerate().take(one.combinations()) {
            let is_found = found.iter().any(|one| one.series == place && one.entry == entry);
            let Some(rule) = rule(&entry).filter(|_| !is_found) else { continue };
            let numbers: Vec<f64> = one
                .points
                .iter()
                .filter(|point| point.revision >= rule.from)
                .filter_map(|point| point.values[combination])
                .collect();
            if let Some(by) = rise_at_end(&numbers).filter(|&by| by > rule.threshold) {
                rises.push(UnclearRise { entry, by });
            }
        }
    }
    rises
}

/// By which share the median of the last two numbers is above that of the first half, if both are above all of it.
fn rise_at_end(numbers: &[f64]) -> Option<f64> {
    if numbers.len() < LEAST_RISE {
        return None;
    }
    let (first, last) = (&numbers[..numbers.len() / 2], &numbers[numbers.len() - 2..]);
    let highest = first.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let before = median(first.to_vec()).filter(|&before| before > 0.0)?;
    last.iter().all(|&number| number > highest).then(|| f64::midpoint(last[0], last[1]) / before - 1.0)
}

impl SoughtSteps {
    /// Those among the steps of an entry, whose ends are revisions; `None` if there are none.
    pub fn among(self, mut steps: Vec<Step>, rule: RegressionRule) -> Option<Regressions> {
        steps.retain(|step| step.right as u64 >= rule.from);
        let find = match self {
            Self::Regressions => regressions,
            Self::Improvements => improvements,
        };
        find(&steps, rule.threshold, MIN_POINTS)
    }
}

/// The names of a benchmark's entries: with each combination of its parameters, `sort('quick', 10)`.
pub fn entry_names(benchmark: &Benchmark) -> Vec<String> {
    combinations(&benchmark.params).iter().map(|values| entry_name(&benchmark.name, values)).collect()
}

/// The name of a benchmark with these values of its parameters.
pub(super) fn entry_name(benchmark: &str, values: &[&str]) -> String {
    if values.is_empty() { benchmark.to_owned() } else { format!("{benchmark}({})", values.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_at_the_end_by_hand() {
        let by = |numbers: &[f64]| rise_at_end(numbers).map(|by| (by * 1000.0).round() / 1000.0);
        // The newest two commits take twice as long.
        assert_eq!(by(&[1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 2.0, 2.2]), Some(1.1));
        // One may be an outlier, and what was as high before is no rise.
        assert_eq!(by(&[1.0, 1.1, 0.9, 1.0, 1.0, 1.0, 1.0, 2.2]), None);
        assert_eq!(by(&[1.0, 2.1, 0.9, 1.0, 1.0, 1.0, 2.0, 2.2]), None);
        assert_eq!([by(&[1.0, 1.0, 1.0, 2.0, 2.0]), by(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0]), by(&[])], [None; 3]);
    }

    #[test]
    fn a_drift_is_a_rise() {
        let drift: Vec<f64> = (0..20).map(|at| 1.02_f64.powi(at)).collect();
        assert!(rise_at_end(&drift).is_some_and(|by| by > 0.3));
    }
}
