//! Compares what benchmarks gave for two commits.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::differing::{DifferingParams, MeasuredPlace, params_of_environments};
use super::entries::OF_MODEL;
use super::regressions::entry_name;
use super::results::{BenchmarkResult, CommitResults, ResultNumber, StoredResults, combinations};
use super::samples::{SampleStatistics, is_different};
use super::series::series_params;
use crate::compare::{Average, ComparedEvent, MeanRatio, NumbersOfRuns, Verdict, compare_numbers};
use crate::events::Unit;
use crate::rates::{Confidence, Uncertain};

/// Where no error is known, numbers differ if one is more than so many times the other (asv's choice).
pub const FACTOR: f64 = 1.1;

/// A benchmark of two commits.
#[derive(Clone, Debug)]
pub struct BenchmarkDifference {
    /// The benchmark.
    pub name: String,
    /// The machine on which both were measured.
    pub machine: String,
    /// What tells the environment from others in which the benchmark was measured on this machine.
    pub environment: DifferingParams,
    /// The unit of its numbers.
    pub unit: String,
    /// What each commit gave.
    pub results: [ComparedResult; 2],
    /// How many times the first commit's number the second one's is: by the means that were tested, else by the numbers.
    pub ratio: MeanRatio,
    /// Which is larger by more than chance.
    pub verdict: DifferenceVerdict,
}

/// What a commit gave of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComparedResult {
    /// The median of its samples, and how far it may be off at 95 %.
    Number(Uncertain),
    /// It failed.
    Failed,
    /// It was skipped.
    Skipped,
    /// It wasn't measured, or not with these parameters.
    NotMeasured,
}

/// Whether two commits differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceVerdict {
    /// By the test of [`compare`](crate::compare).
    Tested(Verdict),
    /// By what a model counted, the same in all runs of each commit: how the second commit's count is beside the first one's.
    Exact(Ordering),
    /// A model counted one run of each, so that nobody knows whether its counts agree from run to run.
    SingleRuns,
    /// By asv's test, in its results.
    OfAsv {
        /// Whether they differ by more than chance.
        is_different: bool,
    },
    /// By their ratio alone, in asv's results, as no error is known.
    ByRatio {
        /// Whether one is more than [`FACTOR`] times the other.
        is_different: bool,
    },
    /// They are of two versions of the benchmark, which can't be compared.
    OtherVersion,
    /// One of them has no number.
    NoNumber,
}

impl ComparedResult {
    /// The number, if there is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number.value),
            Self::Failed | Self::Skipped | Self::NotMeasured => None,
        }
    }
}

impl BenchmarkDifference {
    /// The numbers of both, if they have one.
    pub fn numbers(&self) -> Option<(f64, f64)> {
        let [a, b] = self.results;
        a.number().zip(b.number())
    }

    /// Whether more runs would tell nothing more.
    pub fn is_decided(&self) -> bool {
        match self.verdict {
            DifferenceVerdict::Tested(verdict) => verdict.needs().is_none(),
            DifferenceVerdict::OfAsv { .. } | DifferenceVerdict::ByRatio { .. } | DifferenceVerdict::SingleRuns => {
                false
            }
            DifferenceVerdict::Exact(_) | DifferenceVerdict::OtherVersion | DifferenceVerdict::NoNumber => true,
        }
    }

    /// Whether the second commit is worse by more than chance.
    pub fn is_worse(&self) -> bool {
        match self.verdict {
            DifferenceVerdict::Tested(verdict) => verdict == Verdict::Higher,
            DifferenceVerdict::Exact(of_second) => of_second == Ordering::Greater,
            DifferenceVerdict::OfAsv { is_different } | DifferenceVerdict::ByRatio { is_different } => {
                is_different && self.numbers().is_some_and(|(a, b)| b > a)
            }
            DifferenceVerdict::SingleRuns | DifferenceVerdict::OtherVersion | DifferenceVerdict::NoNumber => false,
        }
    }

    /// How many runs of each it takes to tell, where there are too few.
    pub fn needs_runs(&self) -> Option<usize> {
        match self.verdict {
            DifferenceVerdict::Tested(Verdict::TooFewRuns { needs }) => Some(needs),
            DifferenceVerdict::SingleRuns => Some(2),
            _ => None,
        }
    }

    /// Whether a test judged the two: its verdict may be wrong by chance.
    pub fn is_tested(&self) -> bool {
        matches!(self.verdict, DifferenceVerdict::Tested(_)) && self.needs_runs().is_none()
    }
}

/// What either commit has, in the order of names, where both were measured on a machine in an environment. All verdicts of
/// perfprop's results together are wrong in at most so many comparisons as the confidence leaves.
pub fn differences(stored: &StoredResults, a: &str, b: &str, confidence: Confidence) -> Vec<BenchmarkDifference> {
    let mut pairs: Vec<PairOfResults> = Vec::new();
    for machine in &stored.machines {
        let of = |hash: &str| machine.commits.iter().filter(|one| one.commit == hash).collect::<Vec<_>>();
        for a in of(a) {
            // Environments of one name may differ in variables.
            let variables = |one: &CommitResults| one.other.get("env_vars").cloned();
            let is_same = |b: &&CommitResults| b.environment == a.environment && variables(b) == variables(a);
            let same = of(b).into_iter().filter(is_same);
            same.for_each(|b| pairs.extend(pairs_of(stored, machine.machine.name(), a, b)));
        }
    }
    pairs.sort_by(|a, b| (&a.name, &a.machine, &a.environments).cmp(&(&b.name, &b.machine, &b.environments)));
    let numbers = |pair: &PairOfResults| {
        let [a, b] = pair.samples.clone();
        NumbersOfRuns { name: pair.name.clone(), unit: Unit::Count, a, b, average: Average::WithoutOutliers }
    };
    let is_tested = |pair: &&PairOfResults| pair.verdict.is_none();
    let tested = compare_numbers(pairs.iter().filter(is_tested).map(numbers).collect(), confidence);
    let mut tested =
        tested.into_iter().map(|event: ComparedEvent| (DifferenceVerdict::Tested(event.verdict), event.ratio()));
    let environments = params_of_environments(pairs.iter().map(PairOfResults::place));
    let difference = |(pair, environment): (PairOfResults, DifferingParams)| {
        let known = pair.verdict.map(|verdict| (verdict, pair.ratio_of_numbers(verdict)));
        let (verdict, ratio) =
            known.or_else(|| tested.next()).unwrap_or((DifferenceVerdict::NoNumber, MeanRatio::default()));
        let PairOfResults { name, machine, unit, results, .. } = pair;
        BenchmarkDifference { name, machine, environment, unit, results, ratio, verdict }
    };
    pairs.into_iter().zip(environments).map(difference).collect()
}

/// A benchmark with one combination of its parameters, of two commits.
struct PairOfResults {
    name: String,
    machine: String,
    environments: BTreeSet<String>,
    /// The machine and the environment, by name.
    params: BTreeMap<String, Option<String>>,
    unit: String,
    results: [ComparedResult; 2],
    samples: [Vec<f64>; 2],
    /// The verdict; `None` where the samples are to be tested.
    verdict: Option<DifferenceVerdict>,
}

impl PairOfResults {
    /// The ratio of the numbers themselves, if these can be compared and have one.
    fn ratio_of_numbers(&self, verdict: DifferenceVerdict) -> MeanRatio {
        let [a, b] = self.results.map(ComparedResult::number);
        let is_comparable = verdict != DifferenceVerdict::OtherVersion;
        let numbers = a.zip(b).filter(|&(a, b)| is_comparable && a > 0.0 && b >= 0.0);
        MeanRatio { value: numbers.map(|(a, b)| b / a), interval: None }
    }

    fn place(&self) -> MeasuredPlace<'_> {
        MeasuredPlace { benchmark: &self.name, params: &self.params, environments: &self.environments }
    }
}

/// The benchmarks of both files with each combination of parameters that one of them has.
fn pairs_of(stored: &StoredResults, machine: &str, a: &CommitResults, b: &CommitResults) -> Vec<PairOfResults> {
    let names: BTreeSet<&String> = [a, b].iter().flat_map(|one| one.results.0.iter().map(|(name, _)| name)).collect();
    let mut all = Vec::new();
    for name in names {
        let measured = [a, b].map(|one| one.results.get(name));
        let unit = stored.benchmarks.0.get(name).map_or("", |benchmark| &benchmark.unit);
        let places = measured.map(places);
        for values in all_combinations(measured) {
            let side = |at: usize| MeasuredSide::of(measured[at].zip(places[at].get(&values).copied()));
            let sides = [side(0), side(1)];
            let verdict = verdict_of(measured, &sides, machine.ends_with(OF_MODEL), a.is_of_asv());
            all.push(PairOfResults {
                name: entry_name(name, &values),
                machine: machine.to_owned(),
                environments: [a.environment.clone()].into(),
                params: series_params(a),
                unit: unit.to_owned(),
                results: [&sides[0], &sides[1]].map(|side| side.result),
                samples: sides.map(|side| side.samples),
                verdict,
            });
        }
    }
    all
}

/// The combinations of parameters that either has, those of the first one before others.
fn all_combinations<'a>(measured: [Option<&'a BenchmarkResult>; 2]) -> Vec<Vec<&'a str>> {
    let of = |one: &'a BenchmarkResult| combinations(&one.params);
    match measured {
        [Some(a), Some(b)] if a.params != b.params => {
            let mut all = of(a);
            let known: BTreeSet<_> = all.iter().cloned().collect();
            all.extend(of(b).into_iter().filter(|values| !known.contains(values)));
            all
        }
        [Some(one), _] | [_, Some(one)] => of(one),
        [None, None] => Vec::new(),
    }
}

/// The place of each combination of parameters.
fn places(of: Option<&BenchmarkResult>) -> BTreeMap<Vec<&str>, usize> {
    let all = of.map_or_else(Vec::new, |one| combinations(&one.params));
    // Of two that are alike the first counts.
    all.into_iter().enumerate().map(|(place, one)| (one, place)).rev().collect()
}

/// What one commit has of a benchmark with a combination of its parameters.
struct MeasuredSide {
    result: ComparedResult,
    /// The samples, or else the result; none without a result.
    samples: Vec<f64>,
    /// The ends of the 99 % interval.
    ends: Option<(f64, f64)>,
    /// How many samples there were.
    repeat: Option<f64>,
}

impl MeasuredSide {
    fn of(measured: Option<(&BenchmarkResult, usize)>) -> Self {
        let Some((of, place)) = measured else {
            return Self { result: ComparedResult::NotMeasured, samples: Vec::new(), ends: None, repeat: None };
        };
        let number = |numbers: &[ResultNumber]| numbers.get(place).and_then(|number| number.number());
        let result = match of.result.as_ref().and_then(|all| all.get(place)) {
            Some(&ResultNumber::Number(value)) => {
                ComparedResult::Number(Uncertain { value, error: of.error_at(place) })
            }
            Some(ResultNumber::Skipped) => ComparedResult::Skipped,
            Some(ResultNumber::Missing) | None => ComparedResult::Failed,
        };
        let kept = of.samples.get(place).and_then(Option::as_ref);
        let kept: Vec<f64> = kept.into_iter().flatten().filter_map(|sample| sample.number()).collect();
        Self {
            result,
            samples: if kept.is_empty() { result.number().into_iter().collect() } else { kept },
            ends: number(&of.ci_99_low).zip(number(&of.ci_99_high)),
            repeat: number(&of.repeat),
        }
    }

    /// Whether an error is known: of more than one sample.
    fn has_statistics(&self) -> bool {
        self.samples.len() > 1 || (self.ends.is_some() && self.repeat != Some(1.0))
    }
}

/// The verdict on both sides; `None` where their samples are to be tested.
fn verdict_of(
    measured: [Option<&BenchmarkResult>; 2],
    sides: &[MeasuredSide; 2],
    is_of_model: bool,
    is_of_asv: bool,
) -> Option<DifferenceVerdict> {
    let versions = measured.map(|one| one.and_then(|one| one.version.as_ref()));
    if let [Some(a), Some(b)] = versions
        && a != b
    {
        return Some(DifferenceVerdict::OtherVersion);
    }
    let [a, b] = sides;
    let Some(numbers) = a.result.number().zip(b.result.number()) else { return Some(DifferenceVerdict::NoNumber) };
    match is_of_asv {
        true if !a.has_statistics() || !b.has_statistics() => {
            Some(DifferenceVerdict::ByRatio { is_different: is_apart(numbers) })
        }
        true => Some(DifferenceVerdict::OfAsv { is_different: is_different_of_asv(a, b) }),
        false if is_of_model => exact(numbers, sides),
        false => None,
    }
}

/// asv's rule where no error is known: whether one number is more than [`FACTOR`] times the other.
fn is_apart((a, b): (f64, f64)) -> bool {
    a < b / FACTOR || b < a / FACTOR
}

/// What counts of a model are beside one another, if all runs of a commit gave the same: nothing of that is chance. Two runs that
/// agree are the evidence for it, of either commit; of single runs nothing is known.
fn exact((a, b): (f64, f64), sides: &[MeasuredSide; 2]) -> Option<DifferenceVerdict> {
    let is_constant = |side: &MeasuredSide| side.samples.windows(2).all(|pair| pair[0] == pair[1]);
    if sides.iter().all(|side| side.samples.len() < 2) {
        return Some(DifferenceVerdict::SingleRuns);
    }
    sides.iter().all(is_constant).then_some(DifferenceVerdict::Exact(b.partial_cmp(&a)?))
}

/// asv's test: of samples where they were kept, else whether the 99 % intervals are apart.
fn is_different_of_asv(a: &MeasuredSide, b: &MeasuredSide) -> bool {
    let known = |side: &MeasuredSide| SampleStatistics::of(&side.samples).filter(|known| known.count > 1);
    if let Some((known_a, known_b)) = known(a).zip(known(b)) {
        return is_different((&a.samples, &known_a), (&b.samples, &known_b));
    }
    a.ends.zip(b.ends).is_some_and(|(a, b)| a.1 < b.0 || b.1 < a.0)
}

#[cfg(test)]
mod tests {
    use super::super::results::{Benchmark, BenchmarkList, MachineFacts, MachineResults, OrderedMap};
    use super::*;
    use crate::rates::Error;

    fn stored(a: &[f64], b: &[f64], python: &str) -> StoredResults {
        let commit = |hash: &str, samples: &[f64]| {
            let numbers: Vec<_> = samples.iter().copied().map(ResultNumber::Number).collect();
            let result = SampleStatistics::of(samples).map(|found| vec![ResultNumber::Number(found.median)]);
            let result = BenchmarkResult { result, samples: vec![Some(numbers)], ..BenchmarkResult::default() };
            CommitResults {
                commit: hash.into(),
                results: OrderedMap(vec![("b".into(), result)]),
                other: [("python".to_owned(), python.into())].into(),
                ..CommitResults::default()
            }
        };
        let benchmark = Benchmark { name: "b".into(), unit: "seconds".into(), ..Benchmark::default() };
        StoredResults {
            benchmarks: BenchmarkList([("b".to_owned(), benchmark)].into()),
            machines: vec![MachineResults {
                machine: MachineFacts::default(),
                commits: vec![commit("x", a), commit("y", b)],
                profiles: Vec::new(),
            }],
            unreadable: Vec::new(),
        }
    }

    #[test]
    fn commits_are_compared_by_hand() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [7.0, 8.0, 9.0, 10.0, 11.0]);
        let found = differences(&stored(&a, &b, ""), "x", "y", Confidence::DEFAULT);
        assert_eq!((found.len(), found[0].numbers(), found[0].ratio.value), (1, Some((3.0, 9.0)), Some(3.0)));
        assert!(found[0].ratio.interval.is_some_and(|(low, high)| 1.0 < low && low < 3.0 && 3.0 < high));
        assert_eq!((found[0].verdict, found[0].is_worse()), (DifferenceVerdict::Tested(Verdict::Higher), true));
        assert!(found[0].is_decided());
        let back = differences(&stored(&b, &a, ""), "x", "y", Confidence::DEFAULT);
        assert!(!back[0].is_worse());
        // 2 of 252 orders of 5 and 5 are as far apart: asv asks for less than 0.002.
        let of_asv = differences(&stored(&a, &b, "3.11"), "x", "y", Confidence::DEFAULT);
        assert!(matches!(of_asv[0].verdict, DifferenceVerdict::OfAsv { .. }));
        assert_eq!(of_asv[0].ratio, MeanRatio { value: Some(3.0), interval: None });
    }

    #[test]
    fn counts_of_a_model_are_exact_where_all_runs_agree() {
        let verdict = |a: &[f64], b: &[f64]| {
            let mut stored = stored(a, b, "");
            stored.machines[0].machine = MachineFacts(OrderedMap(vec![("machine".into(), format!("m{OF_MODEL}"))]));
            differences(&stored, "x", "y", Confidence::DEFAULT)[0].verdict
        };
        assert_eq!(verdict(&[1.0], &[2.0, 2.0]), DifferenceVerdict::Exact(Ordering::Greater));
        assert_eq!(verdict(&[2.0, 2.0], &[1.0]), DifferenceVerdict::Exact(Ordering::Less));
        assert_eq!(verdict(&[2.0, 2.0], &[2.0, 2.0]), DifferenceVerdict::Exact(Ordering::Equal));
        // Of one run each nobody knows whether another one counts the same.
        assert_eq!([verdict(&[1.0], &[2.0]), verdict(&[2.0], &[2.0])], [DifferenceVerdict::SingleRuns; 2]);
        assert!(matches!(verdict(&[1.0, 1.1], &[2.0]), DifferenceVerdict::Tested(Verdict::TooFewRuns { .. })));
    }

    /// What two files of asv say of a benchmark.
    fn verdict(a: &BenchmarkResult, b: &BenchmarkResult) -> Vec<BenchmarkDifference> {
        let mut stored = stored(&[], &[], "3.11");
        for (commit, result) in stored.machines[0].commits.iter_mut().zip([a, b]) {
            commit.results.set("b", result.clone());
        }
        differences(&stored, "x", "y", Confidence::DEFAULT)
    }

    /// A number of one run.
    fn single(value: f64) -> ComparedResult {
        ComparedResult::Number(Uncertain { value, error: Error::Unknown })
    }

    fn numbers(numbers: &[f64]) -> Vec<ResultNumber> {
        numbers.iter().copied().map(ResultNumber::Number).collect()
    }

    #[test]
    fn without_statistics_the_ratio_counts_and_no_error_is_known() {
        let of = |number: f64| BenchmarkResult { result: Some(numbers(&[number])), ..BenchmarkResult::default() };
        let by_ratio = |is_different| DifferenceVerdict::ByRatio { is_different };
        let found = |a: f64, b: f64| verdict(&of(a), &of(b))[0].verdict;
        assert_eq!((found(1e6, 2e6), found(2e6, 1e6)), (by_ratio(true), by_ratio(true)));
        assert!(verdict(&of(1.0), &of(2.0))[0].is_worse() && !verdict(&of(2.0), &of(1.0))[0].is_worse());
        assert_eq!((found(1.0, 1.09), found(1.0, 1.11)), (by_ratio(false), by_ratio(true)));
        // A single sample has an interval without ends, which is no error.
        let single = |number: f64| BenchmarkResult {
            ci_99_low: numbers(&[f64::NEG_INFINITY]),
            ci_99_high: numbers(&[f64::INFINITY]),
            repeat: numbers(&[1.0]),
            ..of(number)
        };
        assert_eq!(verdict(&single(1.0), &single(1.5))[0].verdict, by_ratio(true));
        let known = |number: f64| BenchmarkResult {
            ci_99_low: numbers(&[number - 0.1]),
            ci_99_high: numbers(&[number + 0.1]),
            repeat: numbers(&[5.0]),
            ..of(number)
        };
        let by_test = |is_different| DifferenceVerdict::OfAsv { is_different };
        assert_eq!(verdict(&known(1.0), &known(1.19))[0].verdict, by_test(false));
        assert_eq!(verdict(&known(1.0), &known(1.3))[0].verdict, by_test(true));
        assert_eq!(verdict(&known(1.0), &single(1.3))[0].verdict, by_ratio(true));
    }

    #[test]
    fn one_run_of_a_commit_is_too_few() {
        let found = differences(&stored(&[1.0], &[4.0], ""), "x", "y", Confidence::DEFAULT);
        assert_eq!(found[0].verdict, DifferenceVerdict::Tested(Verdict::TooFewRuns { needs: 3 }));
        assert!(!found[0].is_worse());
    }

    #[test]
    fn what_one_commit_lacks_is_told() {
        let found = differences(&stored(&[1.0], &[], ""), "x", "y", Confidence::DEFAULT);
        assert_eq!(found[0].results, [single(1.0), ComparedResult::Failed]);
        assert_eq!((found[0].verdict, found[0].ratio), (DifferenceVerdict::NoNumber, MeanRatio::default()));
        assert!(found[0].is_decided() && !found[0].is_worse());
        let of = |values: &[&str], result: Vec<ResultNumber>| BenchmarkResult {
            result: Some(result),
            params: vec![values.iter().map(|&value| value.to_owned()).collect()],
            ..BenchmarkResult::default()
        };
        // A value was put before the others.
        let a = of(&["2", "4"], numbers(&[2.0, 4.0]));
        let b = of(&["1", "2"], vec![ResultNumber::Skipped, ResultNumber::Number(3.0)]);
        use ComparedResult::{NotMeasured, Skipped};
        let rows: Vec<_> = verdict(&a, &b).into_iter().map(|one| (one.name, one.results)).collect();
        let expected = [("b(1)", [NotMeasured, Skipped]), ("b(2)", [single(2.0), single(3.0)])];
        assert_eq!(rows[..2], expected.map(|(name, results)| (name.to_owned(), results)));
        assert_eq!(rows[2], ("b(4)".to_owned(), [single(4.0), NotMeasured]));
        let other = BenchmarkResult { version: Some("2".into()), ..a.clone() };
        let old = BenchmarkResult { version: Some("1".into()), ..a };
        let other = verdict(&old, &other).swap_remove(0);
        assert_eq!((other.verdict, other.ratio), (DifferenceVerdict::OtherVersion, MeanRatio::default()));
    }

    #[test]
    fn environments_of_a_machine_are_told_apart() {
        let mut stored = stored(&[1.0], &[1.0], "3.10");
        let python = |commit: &mut CommitResults, version: &str| {
            commit.environment = version.to_owned();
            commit.params = OrderedMap(vec![("python".into(), Some(version.to_owned()))]);
        };
        stored.machines[0].commits.iter_mut().for_each(|commit| python(commit, "3.10"));
        let alone = differences(&stored, "x", "y", Confidence::DEFAULT);
        assert!(alone.len() == 1 && alone[0].environment.is_empty());
        let mut others = stored.machines[0].commits.clone();
        others.iter_mut().for_each(|commit| python(commit, "3.11"));
        stored.machines[0].commits.extend(others);
        let found = differences(&stored, "x", "y", Confidence::DEFAULT);
        let told: Vec<_> = found.iter().filter_map(|one| one.environment["python"].as_deref()).collect();
        assert_eq!(told, ["3.10", "3.11"]);
        // Of one name, but with another variable: each is compared with its own.
        for (commit, mode) in stored.machines[0].commits.iter_mut().zip(["a", "a", "b", "b"]) {
            python(commit, "3.10");
            commit.other.insert("env_vars".into(), serde_json::json!({ "MODE": mode }));
        }
        let found = differences(&stored, "x", "y", Confidence::DEFAULT);
        let told: Vec<_> = found.iter().filter_map(|one| one.environment["env-MODE"].as_deref()).collect();
        assert_eq!(told, ["a", "b"]);
    }

    #[test]
    fn what_neither_commit_has_is_left_out() {
        assert!(differences(&stored(&[1.0], &[1.0], ""), "x", "z", Confidence::DEFAULT).is_empty());
        assert!(differences(&StoredResults::default(), "x", "y", Confidence::DEFAULT).is_empty());
    }
}
