//! The series of a benchmark: its numbers over the commits, on one machine in one environment.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::differing::MeasuredPlace;
use super::results::{Benchmark, BenchmarkResult, CommitResults, ResultNumber, StoredResults};
use crate::rates::{self, Confidence, Error, Uncertain};
use crate::steps::{LevelChange, Step, StepMethod, changes, detect};

/// The numbers of a benchmark over commits.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkSeries {
    /// The benchmark.
    pub benchmark: String,
    /// The machine, the environment and its variables, by name; `None` of what isn't set.
    pub params: BTreeMap<String, Option<String>>,
    /// The names of the environments whose results it is of.
    pub environments: BTreeSet<String>,
    /// The points, in the order of commits. The first and the last have a number.
    pub points: Vec<SeriesPoint>,
    /// The commits of which a combination failed or was skipped, by their places in the history: why each has no number.
    pub missing: BTreeMap<u64, Vec<Option<MissingNumber>>>,
    /// The release of the kernel on which each commit was measured, by its place in the history. Of asv's results it is among the
    /// params instead.
    pub kernels: BTreeMap<u64, String>,
    /// The `history run`s in which each commit was measured, by the time at which they began, in milliseconds since 1970. asv's results
    /// have none, as asv measures each commit by itself.
    pub runs: BTreeMap<u64, BTreeSet<i64>>,
}

/// What the release of a machine's kernel stands under.
const KERNEL: &str = "os";

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingNumber {
    /// It failed, as where the commit couldn't be built.
    Failed,
    /// It was skipped.
    Skipped,
}

/// What was measured of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesPoint {
    /// The place of the commit in the history, from 0 for the oldest.
    pub revision: u64,
    /// A number for each combination of the benchmark's parameters.
    pub values: Vec<Option<f64>>,
    /// How much each number counts among those of the series; `None` where that isn't known.
    pub weights: Vec<Option<f64>>,
    /// How far each number may be off, at 95 %.
    pub errors: Vec<Error>,
}

/// A number for each point, and how much it counts.
type NumbersAndWeights = (Vec<Option<f64>>, Vec<Option<f64>>);

/// Numbers of one commit that are to become one.
#[derive(Default)]
struct GatheredNumbers {
    outcomes: Vec<Vec<Option<ResultNumber>>>,
    weights: Vec<Vec<Option<f64>>>,
    errors: Vec<Vec<Error>>,
}

/// Results that are to become one series.
#[derive(Default)]
struct GatheredSeries {
    environments: BTreeSet<String>,
    points: BTreeMap<u64, GatheredNumbers>,
    kernels: BTreeMap<u64, String>,
    runs: BTreeMap<u64, BTreeSet<i64>>,
}

/// The series of all benchmarks: one for each machine and environment, in their order.
///
/// Numbers of another version of a benchmark are left out, as are commits without a place in the history. The numbers of
/// one commit are averaged.
pub fn series(stored: &StoredResults, revisions: &BTreeMap<String, u64>) -> Vec<BenchmarkSeries> {
    type Key = (String, BTreeMap<String, Option<String>>);
    let mut all: BTreeMap<Key, GatheredSeries> = BTreeMap::new();
    let commits = stored.machines.iter().flat_map(|machine| &machine.commits);
    for (commit, &revision) in commits.filter_map(|commit| Some((commit, revisions.get(&commit.commit)?))) {
        let params = series_params(commit);
        for (benchmark, result) in comparable(commit, &stored.benchmarks.0) {
            let series = all.entry((benchmark.name.clone(), params.clone())).or_default();
            series.environments.insert(commit.environment.clone());
            if !commit.is_of_asv() {
                if let Some(Some(kernel)) = commit.params.get(KERNEL) {
                    series.kernels.insert(revision, kernel.clone());
                }
                series.runs.entry(revision).or_default().extend(result.started_at);
            }
            let gathered = series.points.entry(revision).or_default();
            gathered.outcomes.push(result.outcomes(&benchmark.params));
            gathered.weights.push(result.weights(&benchmark.params));
            gathered.errors.push(result.errors(&benchmark.params));
        }
    }
    let one = |((benchmark, params), gathered): (Key, GatheredSeries)| {
        let GatheredSeries { environments, points, kernels, runs } = gathered;
        let reasons = points.iter().map(|(&revision, gathered)| (revision, gathered.missing()));
        let missing = reasons.filter(|(_, reasons)| reasons.iter().any(Option::is_some)).collect();
        let point = |(revision, gathered): (u64, GatheredNumbers)| SeriesPoint {
            revision,
            values: means(&gathered.values()),
            weights: means(&gathered.weights),
            errors: gathered.errors_of_means(),
        };
        let points = without_missing_ends(points.into_iter().map(point).collect(), SeriesPoint::has_number);
        BenchmarkSeries { benchmark, params, environments, points, missing, kernels, runs }
    };
    all.into_iter().map(one).collect()
}

/// What tells the series of results from others: the machine, and the environment with its variables, `env-NAME`. The machine's
/// kernel isn't among it, as a series would end with each of its updates; asv's results say with `os` what their users chose.
pub fn series_params(commit: &CommitResults) -> BTreeMap<String, Option<String>> {
    let variables = commit.other.get("env_vars").and_then(Value::as_object).into_iter().flatten();
    let variables = variables.map(|(name, value)| (format!("env-{name}"), value.as_str().map(str::to_owned)));
    let is_told = |(name, _): &&(String, Option<String>)| commit.is_of_asv() || name != KERNEL;
    commit.params.0.iter().filter(is_told).cloned().chain(variables).collect()
}

/// The results of a commit that can be compared with those of others.
fn comparable<'a>(
    commit: &'a CommitResults,
    benchmarks: &'a BTreeMap<String, Benchmark>,
) -> impl Iterator<Item = (&'a Benchmark, &'a BenchmarkResult)> {
    commit.results.0.iter().filter_map(|(name, result)| {
        let benchmark = benchmarks.get(name)?;
        let is_of_version = result.version.is_none() || result.version == benchmark.version;
        is_of_version.then_some((benchmark, result))
    })
}

impl GatheredNumbers {
    fn values(&self) -> Vec<Vec<Option<f64>>> {
        let number = |outcome: &Option<ResultNumber>| outcome.and_then(ResultNumber::number);
        self.outcomes.iter().map(|row| row.iter().map(number).collect()).collect()
    }

    /// How far the mean of each combination's numbers may be off.
    fn errors_of_means(&self) -> Vec<Error> {
        let values = self.values();
        let of = |place: usize| {
            let rows = values.iter().zip(&self.errors).filter(|(row, _)| row[place].is_some());
            let present: Vec<Error> = rows.map(|(_, errors)| errors[place]).collect();
            if present.is_empty() {
                return Error::Unknown;
            }
            Error::of_sum(present.iter().copied()).scaled(1.0 / present.len() as f64)
        };
        (0..self.errors.first().map_or(0, Vec::len)).map(of).collect()
    }

    /// Why each combination has no number; `None` of one that has one, or wasn't run.
    fn missing(&self) -> Vec<Option<MissingNumber>> {
        let reason = |place: usize| {
            let mut all = self.outcomes.iter().filter_map(|row| *row.get(place)?);
            let first = all.next()?;
            if first.number().is_some() || all.any(|outcome| outcome.number().is_some()) {
                return None;
            }
            Some(if first == ResultNumber::Skipped { MissingNumber::Skipped } else { MissingNumber::Failed })
        };
        (0..self.outcomes.first().map_or(0, Vec::len)).map(reason).collect()
    }
}

/// The mean of each place over those that have a number there.
fn means(rows: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let mean = |place: usize| {
        let present: Vec<f64> = rows.iter().filter_map(|row| *row.get(place)?).collect();
        rates::mean(&present)
    };
    (0..rows.first().map_or(0, Vec::len)).map(mean).collect()
}

/// Points from the first to the last that has a number.
pub(super) fn without_missing_ends<T>(mut points: Vec<T>, has_number: impl Fn(&T) -> bool) -> Vec<T> {
    points.truncate(points.iter().rposition(&has_number).map_or(0, |last| last + 1));
    points.drain(..points.iter().position(&has_number).unwrap_or(0));
    points
}

impl SeriesPoint {
    /// The number of a combination, and how far it may be off.
    pub fn number(&self, combination: usize) -> Option<Uncertain> {
        let value = (*self.values.get(combination)?)?;
        Some(Uncertain { value, error: self.errors.get(combination).copied().unwrap_or_default() })
    }

    /// Whether any combination of parameters has a number.
    fn has_number(&self) -> bool {
        self.values.iter().any(Option::is_some)
    }
}

impl BenchmarkSeries {
    /// Where it was measured.
    pub fn place(&self) -> MeasuredPlace<'_> {
        MeasuredPlace { benchmark: &self.benchmark, params: &self.params, environments: &self.environments }
    }

    /// How many commits have a number.
    pub fn measured(&self) -> usize {
        self.points.iter().filter(|point| point.has_number()).count()
    }

    /// How many combinations of parameters there are; 1 without parameters.
    pub fn combinations(&self) -> usize {
        let of_missing = || self.missing.values().next().map_or(0, Vec::len);
        self.points.first().map_or_else(of_missing, |point| point.values.len())
    }

    /// The places in the history of the commits that have a number, or a reason for none.
    pub fn revisions(&self) -> BTreeSet<u64> {
        self.points.iter().map(|point| point.revision).chain(self.missing.keys().copied()).collect()
    }

    /// What each combination gave at a revision: a number, or why there is none.
    pub fn at(&self, revision: u64, combination: usize) -> (Option<Uncertain>, Option<MissingNumber>) {
        let point = self.points.binary_search_by_key(&revision, |point| point.revision);
        let number = point.ok().and_then(|place| self.points[place].number(combination));
        (number, self.missing.get(&revision).and_then(|reasons| *reasons.get(combination)?))
    }

    /// The kernels on which two commits were measured, if they differ.
    pub fn kernel_change(&self, before: u64, after: u64) -> Option<(&str, &str)> {
        let kernels = (self.kernels.get(&before)?.as_str(), self.kernels.get(&after)?.as_str());
        (kernels.0 != kernels.1).then_some(kernels)
    }

    /// Whether no `history run` measured commits of both of two steps, whose ends are revisions, but all of one before all of the other:
    /// the machine may have changed between. `false` if it isn't known in which run one of the commits was measured.
    pub fn are_measured_apart(&self, combination: usize, steps: [&Step; 2]) -> bool {
        let ends = |step: &Step| {
            let is_in = |point: &&SeriesPoint| {
                (step.left..step.right).contains(&(point.revision as usize)) && point.number(combination).is_some()
            };
            let runs = self.points.iter().filter(is_in).map(|point| {
                let runs = self.runs.get(&point.revision)?;
                Some((*runs.first()?, *runs.last()?))
            });
            runs.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))).flatten()
        };
        let [a, b] = steps.map(ends);
        a.zip(b).is_some_and(|(a, b)| a.1 < b.0 || b.1 < a.0)
    }

    /// How the level changes to the step that begins at a revision; `None` if none does.
    pub fn change_at(&self, combination: usize, method: StepMethod, revision: usize) -> Option<LevelChange> {
        let (values, weights) = self.of(combination)?;
        let steps = detect(&values, Some(&weights), method);
        let begins = |step: &Step| self.points[step.left].revision as usize == revision;
        let place = steps.iter().position(begins)?.checked_sub(1)?;
        changes(&values, Some(&weights), &steps, method, Confidence::DEFAULT).into_iter().nth(place)
    }

    /// The numbers of one combination, and their weights; `None` if there is no such combination.
    fn of(&self, combination: usize) -> Option<NumbersAndWeights> {
        let of_point = |point: &SeriesPoint| Some((*point.values.get(combination)?, *point.weights.get(combination)?));
        self.points.iter().map(of_point).collect()
    }

    /// The steps of one combination, none if there is no such one. Ends are revisions: the first one of the step, and the one
    /// after its last.
    pub fn steps(&self, combination: usize, method: StepMethod) -> Vec<Step> {
        let Some((values, weights)) = self.of(combination) else { return Vec::new() };
        let revision = |place: usize| self.points[place].revision as usize;
        let of_revisions = |step: Step| Step { left: revision(step.left), right: revision(step.right - 1) + 1, ..step };
        detect(&values, Some(&weights), method).into_iter().map(of_revisions).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::results::{BenchmarkList, MachineResults, OrderedMap};
    use super::*;

    #[test]
    fn commits_without_a_number_have_a_reason() {
        let result = |numbers: Option<Vec<ResultNumber>>| BenchmarkResult {
            result: numbers,
            params: vec![vec!["1".into(), "2".into()]],
            ..BenchmarkResult::default()
        };
        use ResultNumber::{Missing, Number, Skipped};
        let all = [
            None,
            Some(vec![Number(1.0), Number(2.0)]),
            Some(vec![Skipped, Number(3.0)]),
            Some(vec![Missing, Skipped]),
        ];
        let commit = |(place, numbers): (usize, Option<Vec<ResultNumber>>)| CommitResults {
            commit: place.to_string(),
            results: OrderedMap(vec![("b".into(), result(numbers))]),
            ..CommitResults::default()
        };
        let mut stored = StoredResults::default();
        let params = vec![vec!["1".into(), "2".into(), "3".into()]];
        stored.benchmarks.0.insert("b".into(), Benchmark { name: "b".into(), params, ..Benchmark::default() });
        let commits = all.into_iter().enumerate().map(commit).collect();
        stored.machines = vec![MachineResults { commits, ..MachineResults::default() }];
        let revisions = (0..4).map(|place| (place.to_string(), place)).collect();
        let found = &series(&stored, &revisions)[0];
        let of_points: Vec<_> = found.points.iter().map(|point| point.revision).collect();
        assert_eq!((of_points, found.combinations()), (vec![1, 2], 3), "the ends of the points have a number");
        let (failed, skipped) = (Some(MissingNumber::Failed), Some(MissingNumber::Skipped));
        let at = |revision| [0, 1, 2].map(|combination| found.at(revision, combination));
        let single = |value| Some(Uncertain { value, error: Error::Unknown });
        assert_eq!(at(0), [(None, failed), (None, failed), (None, None)], "3 wasn't run");
        assert_eq!(at(1), [(single(1.0), None), (single(2.0), None), (None, None)]);
        assert_eq!(at(2), [(None, skipped), (single(3.0), None), (None, None)]);
        assert_eq!(at(3), [(None, failed), (None, skipped), (None, None)]);
        assert_eq!(found.revisions().len(), 4);
    }

    #[test]
    fn the_mean_of_two_results_is_surer_than_each() {
        let row = |value| vec![Some(ResultNumber::Number(value)), None];
        let errors = |half: f64| vec![Error::of(half), Error::Unknown];
        let mut gathered = GatheredNumbers {
            outcomes: vec![row(10.0), row(20.0)],
            weights: Vec::new(),
            errors: vec![errors(3.0), errors(4.0)],
        };
        assert_eq!(gathered.errors_of_means(), [Error::of(2.5), Error::Unknown]);
        // What has no number says nothing of the other's error.
        gathered.outcomes[1] = vec![Some(ResultNumber::Missing), None];
        assert_eq!(gathered.errors_of_means(), [Error::of(3.0), Error::Unknown]);
        assert!(GatheredNumbers::default().errors_of_means().is_empty());
    }

    #[test]
    fn variables_of_environments_tell_series_apart() {
        let text = r#"{"commit_hash": "0123456789abcdef", "env_name": "e", "date": 5, "params": {"machine": "m"},
            "env_vars": {"MODE": "fast", "EMPTY": ""}, "result_columns": ["result"], "results": {}, "version": 2}"#;
        let params = series_params(&CommitResults::parse(text).unwrap());
        let param = |(name, value): (&str, &str)| (name.to_owned(), Some(value.to_owned()));
        assert_eq!(params, [("env-EMPTY", ""), ("env-MODE", "fast"), ("machine", "m")].map(param).into());
    }

    #[test]
    fn steps_between_two_runs_are_told_from_those_within_one() {
        let point =
            |revision| SeriesPoint { revision, values: vec![Some(1.0)], weights: vec![None], errors: Vec::new() };
        let series = |runs: [&[i64]; 4]| BenchmarkSeries {
            benchmark: "b".into(),
            params: BTreeMap::new(),
            environments: BTreeSet::new(),
            points: (0..4).map(point).collect(),
            missing: BTreeMap::new(),
            kernels: BTreeMap::new(),
            runs: (0..).zip(runs.map(|runs| runs.iter().copied().collect())).collect(),
        };
        let step = |left, right| Step { left, right, value: 1.0, minimum: 1.0, error: 0.0 };
        let (before, after) = (step(0, 2), step(2, 4));
        let are_apart = |runs| series(runs).are_measured_apart(0, [&before, &after]);
        assert!(are_apart([&[1], &[2], &[3], &[3]]));
        assert!(are_apart([&[3], &[3], &[1], &[2]]), "older commits may be measured later");
        assert!(!are_apart([&[1], &[2], &[2], &[3]]), "one run measured both sides");
        assert!(!are_apart([&[1], &[1, 2], &[2], &[2]]), "so did this one, of which one was resumed");
        assert!(!are_apart([&[1], &[1], &[], &[2]]), "one isn't known");
        assert!(!series([&[1], &[1], &[2], &[2]]).are_measured_apart(1, [&before, &after]), "there is no such number");
    }

    #[test]
    fn an_update_of_the_kernel_ends_no_series_but_asvs() {
        let commit = |hash: &str, kernel: &str, python: &str| {
            let text = format!(
                r#"{{"commit_hash": "{hash}", "env_name": "e", "date": 5, "params": {{"machine": "m", "os": "{kernel}"}},
                "python": "{python}", "result_columns": ["result"], "results": {{"b": [[1.0]]}}, "version": 2}}"#
            );
            CommitResults::parse(&text).unwrap()
        };
        let benchmark = Benchmark { name: "b".into(), ..Benchmark::default() };
        let all = |python: &str| {
            let commits =
                vec![commit("a", "6.1.1", python), commit("b", "6.1.2", python), commit("c", "6.1.2", python)];
            let machines = vec![MachineResults { commits, ..MachineResults::default() }];
            let benchmarks = BenchmarkList([("b".into(), benchmark.clone())].into());
            let stored = StoredResults { benchmarks, machines, ..StoredResults::default() };
            series(&stored, &[("a".into(), 0), ("b".into(), 1), ("c".into(), 2)].into())
        };
        let ours = all("");
        assert_eq!((ours.len(), ours[0].points.len()), (1, 3));
        assert_eq!(ours[0].kernel_change(0, 1), Some(("6.1.1", "6.1.2")));
        assert_eq!((ours[0].kernel_change(1, 2), ours[0].kernel_change(1, 3)), (None, None));
        let of_asv = all("3.11");
        assert_eq!((of_asv.len(), of_asv[0].params["os"].as_deref()), (2, Some("6.1.1")));
        assert_eq!(of_asv[0].kernel_change(0, 1), None);
    }
}
