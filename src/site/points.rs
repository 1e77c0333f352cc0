//! Gathers what results say of each point beside its number: its interval, how many samples it has, or why it is missing.

use std::collections::BTreeMap;

use crate::history::results::{Benchmark, BenchmarkResult, CommitResults, ResultNumber, StoredResults};
use crate::history::{NANOSECONDS, SECONDS, counted_event, series_params};

/// The machine and the environment of a series, by name.
pub(super) type SeriesParams = BTreeMap<String, Option<String>>;

/// What is known of the points of each series, by revision, for each combination of parameters.
pub(super) type PointDetails = BTreeMap<(String, SeriesParams), BTreeMap<u64, Vec<PointDetail>>>;

/// Why a commit has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoNumber {
    /// The benchmark failed, or wasn't run with these parameters.
    Failed,
    /// It was skipped.
    Skipped,
    /// It was another version of the benchmark, whose numbers can't be compared.
    OtherVersion,
    /// The commit couldn't be built, or none of its benchmarks could be run.
    FailedCommit,
}

impl NoNumber {
    /// The number that stands for it in data.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Failed => 1,
            Self::Skipped => 2,
            Self::OtherVersion => 3,
            Self::FailedCommit => 4,
        }
    }
}

/// What is known of a point beside its number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PointDetail {
    /// The 99 % interval of the median; `None` where that isn't known, as of one sample, unless an estimator gave one. Of
    /// several results, the means of their ends, which are no closer than those of the mean. It isn't below zero where
    /// numbers can't be.
    pub(super) interval: Option<(f64, f64)>,
    /// How many samples there are; 0 where nobody says.
    pub(super) samples: u64,
    /// Why there is no number.
    pub(super) reason: Option<NoNumber>,
}

/// What results say of their points.
pub(super) fn details(stored: &StoredResults, revisions: &BTreeMap<String, u64>) -> PointDetails {
    let mut all: BTreeMap<_, BTreeMap<u64, Vec<Vec<PointDetail>>>> = BTreeMap::new();
    let commits = stored.machines.iter().flat_map(|machine| &machine.commits);
    for (commit, &revision) in commits.filter_map(|commit| Some((commit, revisions.get(&commit.commit)?))) {
        let params: SeriesParams = series_params(commit);
        let has_failed = has_failed(commit);
        for (name, result) in &commit.results.0 {
            let Some(benchmark) = stored.benchmarks.0.get(name) else { continue };
            let of_series = all.entry((benchmark.name.clone(), params.clone())).or_default();
            of_series.entry(revision).or_default().push(of_result(benchmark, result, has_failed));
        }
    }
    let merged = |points: BTreeMap<u64, Vec<Vec<PointDetail>>>| {
        points.into_iter().map(|(revision, rows)| (revision, merge(&rows))).collect()
    };
    all.into_iter().map(|(key, points)| (key, merged(points))).collect()
}

/// The numbers of a commit, and what stands for missing ones.
fn numbers(commit: &CommitResults) -> impl Iterator<Item = &ResultNumber> {
    commit.results.0.iter().flat_map(|(_, result)| result.result.iter().flatten())
}

/// Whether anything of a commit has a number.
pub(super) fn has_number(commit: &CommitResults) -> bool {
    numbers(commit).any(|number| number.number().is_some())
}

/// Whether a commit's benchmarks all failed, as where it can't be built: results say no more.
pub(super) fn has_failed(commit: &CommitResults) -> bool {
    !commit.results.0.is_empty() && numbers(commit).all(|number| *number == ResultNumber::Missing)
}

/// Whether the numbers of a benchmark are never below zero: times, sizes, and counts of events, whose names end with
/// the event.
fn is_never_negative(benchmark: &Benchmark) -> bool {
    ["time", "memory", "peakmemory"].contains(&benchmark.kind.as_str())
        || counted_event(&benchmark.name, &benchmark.unit).is_some()
        || [SECONDS, NANOSECONDS].contains(&benchmark.unit.as_str())
}

/// The ends of an interval, as results have them.
type Ends = (ResultNumber, ResultNumber);

/// What is known of each combination of a result.
fn of_result(benchmark: &Benchmark, result: &BenchmarkResult, has_failed: bool) -> Vec<PointDetail> {
    let is_of_version = result.version.is_none() || result.version == benchmark.version;
    let reason = |number: ResultNumber| match number {
        _ if has_failed => Some(NoNumber::FailedCommit),
        _ if !is_of_version => Some(NoNumber::OtherVersion),
        ResultNumber::Missing => Some(NoNumber::Failed),
        ResultNumber::Skipped => Some(NoNumber::Skipped),
        ResultNumber::Number(_) => None,
    };
    let numbers = result.of_params(&benchmark.params).into_iter();
    let of = |numbers: &[ResultNumber]| result.by_params(&benchmark.params, numbers);
    let ends = of(&result.ci_99_low).into_iter().zip(of(&result.ci_99_high));
    let least = if is_never_negative(benchmark) { 0.0 } else { f64::NEG_INFINITY };
    let detail = |((number, (low, high)), samples): ((ResultNumber, Ends), ResultNumber)| {
        if let Some(reason) = reason(number) {
            return PointDetail { reason: Some(reason), ..PointDetail::default() };
        }
        let samples = samples.number().unwrap_or(0.0) as u64;
        let ends = low.number().zip(high.number()).filter(|(low, high)| low.is_finite() && high.is_finite());
        // That a single run was counted exactly says nothing of the next one.
        let ends = ends.filter(|(low, high)| samples != 1 || low < high);
        PointDetail { interval: ends.map(|(low, high)| (low.max(least), high.max(least))), samples, reason: None }
    };
    numbers.zip(ends).zip(of(&result.repeat)).map(detail).collect()
}

/// One row of several results of a commit: what has a number in one of them has one.
fn merge(rows: &[Vec<PointDetail>]) -> Vec<PointDetail> {
    let one = |place: usize| {
        let all: Vec<PointDetail> = rows.iter().filter_map(|row| row.get(place).copied()).collect();
        let measured: Vec<PointDetail> = all.iter().copied().filter(|detail| detail.reason.is_none()).collect();
        if measured.is_empty() {
            return all.first().copied().unwrap_or_default();
        }
        let ends: Option<Vec<(f64, f64)>> = measured.iter().map(|detail| detail.interval).collect();
        let mean = |ends: Vec<(f64, f64)>| {
            let (low, high) = ends.iter().fold((0.0, 0.0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
            (low / ends.len() as f64, high / ends.len() as f64)
        };
        PointDetail {
            interval: ends.map(mean),
            samples: measured.iter().map(|detail| detail.samples).sum(),
            reason: None,
        }
    };
    (0..rows.first().map_or(0, Vec::len)).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(numbers: &[ResultNumber]) -> BenchmarkResult {
        BenchmarkResult {
            result: Some(numbers.to_vec()),
            params: vec![vec!["1".into(), "2".into()]],
            ci_99_low: vec![ResultNumber::Number(1.0), ResultNumber::Number(f64::NEG_INFINITY)],
            ci_99_high: vec![ResultNumber::Number(3.0), ResultNumber::Number(5.0)],
            repeat: vec![ResultNumber::Number(10.0), ResultNumber::Number(1.0)],
            version: Some("v".into()),
            ..BenchmarkResult::default()
        }
    }

    fn benchmark(version: &str) -> Benchmark {
        Benchmark {
            name: "b".into(),
            params: vec![vec!["1".into(), "2".into(), "3".into()]],
            version: Some(version.into()),
            ..Benchmark::default()
        }
    }

    #[test]
    fn intervals_are_those_of_the_parameters_of_now() {
        use ResultNumber::{Number, Skipped};
        let details = of_result(&benchmark("v"), &result(&[Number(2.0), Number(4.0)]), false);
        let expected = [(Some((1.0, 3.0)), 10, None), (None, 1, None), (None, 0, Some(NoNumber::Failed))];
        let found: Vec<_> = details.iter().map(|one| (one.interval, one.samples, one.reason)).collect();
        assert_eq!(found, expected, "an infinite end says nothing");
        let reasons = |version: &str, numbers: &[ResultNumber], has_failed| {
            of_result(&benchmark(version), &result(numbers), has_failed)[0].reason
        };
        assert_eq!(reasons("v", &[Skipped, Skipped], false), Some(NoNumber::Skipped));
        assert_eq!(reasons("w", &[Number(1.0)], false), Some(NoNumber::OtherVersion));
        assert_eq!(reasons("v", &[], true), Some(NoNumber::FailedCommit));
    }

    #[test]
    fn a_single_run_has_no_interval_but_an_estimators() {
        let of = |low: f64, high: f64, repeat: f64| {
            let list = |number: f64| vec![ResultNumber::Number(number)];
            let result = BenchmarkResult {
                result: Some(list(2.0)),
                ci_99_low: list(low),
                ci_99_high: list(high),
                repeat: list(repeat),
                ..BenchmarkResult::default()
            };
            of_result(&Benchmark::default(), &result, false)[0].interval
        };
        assert_eq!(of(f64::NEG_INFINITY, f64::INFINITY, 1.0), None);
        assert_eq!((of(2.0, 2.0, 1.0), of(2.0, 2.0, 3.0)), (None, Some((2.0, 2.0))), "exact counts");
        assert_eq!(of(1.9, 2.2, 1.0), Some((1.9, 2.2)));
    }

    #[test]
    fn times_and_counts_are_never_below_zero() {
        let low = |name: &str, kind: &str, unit: &str| {
            let benchmark =
                Benchmark { name: name.into(), kind: kind.into(), unit: unit.into(), ..Benchmark::default() };
            let list = |number: f64| vec![ResultNumber::Number(number)];
            let result = BenchmarkResult {
                result: Some(list(1.0)),
                ci_99_low: list(-3.0),
                ci_99_high: list(5.0),
                repeat: list(3.0),
                ..BenchmarkResult::default()
            };
            of_result(&benchmark, &result, false)[0].interval.map(|ends| ends.0)
        };
        assert_eq!(low("sort", "time", SECONDS), Some(0.0));
        assert_eq!(low("sort.page-faults", "track", "page-faults"), Some(0.0));
        assert_eq!(low("sort.task-clock", "track", NANOSECONDS), Some(0.0));
        assert_eq!(low("gain", "track", "points"), Some(-3.0));
        assert_eq!(low("gain", "track", ""), Some(-3.0), "asv's, of which nothing is known");
    }

    #[test]
    fn a_commit_failed_where_all_its_benchmarks_did() {
        use ResultNumber::{Missing, Number, Skipped};
        let commit = |results: &[Option<Vec<ResultNumber>>]| {
            let one = |result: &Option<_>| {
                ("b".to_owned(), BenchmarkResult { result: result.clone(), ..BenchmarkResult::default() })
            };
            let results = crate::history::results::OrderedMap(results.iter().map(one).collect());
            let commit = CommitResults { results, ..CommitResults::default() };
            (has_number(&commit), has_failed(&commit))
        };
        assert_eq!(commit(&[None, Some(vec![Missing])]), (false, true));
        assert_eq!(commit(&[None, Some(vec![Missing, Number(1.0)])]), (true, false));
        assert_eq!((commit(&[None, Some(vec![Skipped])]), commit(&[])), ((false, false), (false, false)));
    }

    #[test]
    fn several_results_become_one() {
        let point = |low, high| PointDetail { interval: Some((low, high)), samples: 5, reason: None };
        let failed = PointDetail { reason: Some(NoNumber::Failed), ..PointDetail::default() };
        let merged = PointDetail { samples: 10, ..point(1.5, 4.0) };
        assert_eq!(merge(&[vec![point(1.0, 3.0)], vec![failed], vec![point(2.0, 5.0)]]), [merged]);
        assert_eq!(merge(&[vec![failed]]), [failed]);
        assert_eq!(merge(&[]), []);
        let unknown = PointDetail { interval: None, ..point(0.0, 0.0) };
        assert_eq!(merge(&[vec![point(1.0, 3.0)], vec![unknown]])[0].interval, None);
    }
}
