//! Says which benchmarks lost at which commits: regressions of all series of a folder of results.

use std::collections::{BTreeMap, BTreeSet};

use super::results::{BenchmarkList, combinations};
use super::series::BenchmarkSeries;
use crate::steps::{Regressions, StepMethod, regressions};

/// A rise of less than this share of the level is no regression, unless another threshold is set.
pub const THRESHOLD: f64 = 0.05;

/// A step of fewer points is one only if the series stays there.
const MIN_POINTS: usize = 2;

/// What a benchmark lost with one combination of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkRegression {
    /// The benchmark, with its parameters: `sort('quick', 10)`.
    pub entry: String,
    /// The place of the series.
    pub series: usize,
    /// The place of the combination of parameters; `None` without parameters.
    pub combination: Option<usize>,
    /// The names and values of the machine and environment that not all series share.
    pub params: BTreeMap<String, Option<String>>,
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
    for (place, one) in series.iter().enumerate() {
        let Some(benchmark) = benchmarks.0.get(&one.benchmark) else { continue };
        for (combination, values) in combinations(&benchmark.params).iter().enumerate().take(one.combinations()) {
            let has_params = !benchmark.params.is_empty();
            let entry =
                if has_params { format!("{}({})", benchmark.name, values.join(", ")) } else { benchmark.name.clone() };
            let Some(rule) = rule(&entry) else { continue };
            let mut steps = one.steps(combination, method);
            steps.retain(|step| step.right as u64 >= rule.from);
            let Some(rises) = regressions(&steps, rule.threshold, MIN_POINTS) else { continue };
            let params = one.params.iter().filter(|(name, _)| differing.contains(name.as_str()));
            let params = params.map(|(name, value)| (name.clone(), value.clone())).collect();
            found.push(BenchmarkRegression {
                entry,
                series: place,
                combination: has_params.then_some(combination),
                params,
                rises,
            });
        }
    }
    found
}

/// The names of machines and environments that have several values.
fn differing_params(series: &[BenchmarkSeries]) -> BTreeSet<&str> {
    let mut values: BTreeMap<&str, BTreeSet<&Option<String>>> = BTreeMap::new();
    for (name, value) in series.iter().flat_map(|one| &one.params) {
        values.entry(name).or_default().insert(value);
    }
    values.into_iter().filter(|(_, values)| values.len() > 1).map(|(name, _)| name).collect()
}
