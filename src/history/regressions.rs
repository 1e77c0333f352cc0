//! Says which benchmarks lost at which commits: regressions of all series of a folder of results.

use super::differing::{DifferingParams, differing_params};
use super::results::{Benchmark, BenchmarkList, combinations};
use super::series::BenchmarkSeries;
use crate::steps::{Regressions, Step, StepMethod, regressions};

/// A rise of less than this share of the level is no regression, unless another threshold is set.
pub const THRESHOLD: f64 = 0.05;

/// A step of fewer points is one only if the series stays there.
const MIN_POINTS: usize = 2;

/// In a series of fewer numbers no step is found: one needs three commits on both sides.
pub const LEAST_NUMBERS: usize = 6;

/// What a benchmark lost with one combination of its parameters.
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
    /// The rises, in the order of commits: positions are revisions.
    pub rises: Regressions,
}

/// Which steps of an entry are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegressionRule {
    /// The share of the level that a rise must have.
    pub threshold: f64,
    /// The first revision that may be on the higher level, and after which steps end.
    pub from: u64,
}

/// The regressions of all series. `rule` says what counts for an entry; `None` leaves it out.
pub fn all_regressions(
    series: &[BenchmarkSeries],
    benchmarks: &BenchmarkList,
    method: StepMethod,
    rule: impl Fn(&str) -> Option<RegressionRule>,
) -> Vec<BenchmarkRegression> {
    let differing = differing_params(series);
    let mut found = Vec::new();
    for (place, (one, params)) in series.iter().zip(&differing).enumerate() {
        let Some(benchmark) = benchmarks.0.get(&one.benchmark) else { continue };
        for (combination, entry) in entry_names(benchmark).into_iter().enumerate().take(one.combinations()) {
            let has_params = !benchmark.params.is_empty();
            let Some(rule) = rule(&entry) else { continue };
            let Some(rises) = rises(one.steps(combination, method), rule) else { continue };
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

/// The rises among the steps of an entry, whose ends are revisions; `None` if there are none.
pub fn rises(mut steps: Vec<Step>, rule: RegressionRule) -> Option<Regressions> {
    steps.retain(|step| step.right as u64 >= rule.from);
    regressions(&steps, rule.threshold, MIN_POINTS)
}

/// The names of a benchmark's entries: with each combination of its parameters, `sort('quick', 10)`.
pub fn entry_names(benchmark: &Benchmark) -> Vec<String> {
    combinations(&benchmark.params).iter().map(|values| entry_name(&benchmark.name, values)).collect()
}

/// The name of a benchmark with these values of its parameters.
pub(super) fn entry_name(benchmark: &str, values: &[&str]) -> String {
    if values.is_empty() { benchmark.to_owned() } else { format!("{benchmark}({})", values.join(", ")) }
}
