//! Compares what benchmarks gave for two commits.

use std::cmp::Ordering;

use super::entries::OF_MODEL;
use super::regressions::entry_name;
use super::results::{BenchmarkResult, CommitResults, ResultNumber, StoredResults, combinations};
use super::samples::{SampleStatistics, is_different};
use crate::compare::{ComparedEvent, NumbersOfRuns, Verdict, compare_numbers};
use crate::events::Unit;
use crate::rates::Confidence;

/// A benchmark of two commits.
#[derive(Clone, Debug)]
pub struct BenchmarkDifference {
    /// The benchmark.
    pub name: String,
    /// The machine on which both were measured.
    pub machine: String,
    /// The unit of its numbers.
    pub unit: String,
    /// The results: medians of samples.
    pub results: (f64, f64),
    /// Which is larger by more than chance.
    pub verdict: DifferenceVerdict,
}

/// Whether two commits differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceVerdict {
    /// By the test of [`compare`](crate::compare).
    Tested(Verdict),
    /// By asv's test, in its results.
    OfAsv {
        /// Whether they differ by more than chance.
        is_different: bool,
    },
}

impl BenchmarkDifference {
    /// By what part the second commit's number differs from the first one's; `None` of 0, which has no parts.
    pub fn change(&self) -> Option<f64> {
        let (a, b) = self.results;
        Some((b - a) / a.abs()).filter(|part| part.is_finite())
    }

    /// Whether more runs would tell more.
    pub fn is_decided(&self) -> bool {
        match self.verdict {
            DifferenceVerdict::Tested(verdict) => verdict.needs().is_none(),
            DifferenceVerdict::OfAsv { .. } => false,
        }
    }

    /// Whether the second commit is worse by more than chance.
    pub fn is_worse(&self) -> bool {
        match self.verdict {
            DifferenceVerdict::Tested(verdict) => verdict == Verdict::Higher,
            DifferenceVerdict::OfAsv { is_different } => is_different && self.results.1 > self.results.0,
        }
    }
}

/// What both commits have, in the order of names. Results of another version of a benchmark are left out. All verdicts of
/// perfprop's results together are wrong in at most so many comparisons as the confidence leaves.
pub fn differences(stored: &StoredResults, a: &str, b: &str, confidence: Confidence) -> Vec<BenchmarkDifference> {
    let mut pairs: Vec<PairOfResults> = Vec::new();
    for machine in &stored.machines {
        let of = |hash: &str| machine.commits.iter().filter(|one| one.commit == hash).collect::<Vec<_>>();
        for a in of(a) {
            let same = of(b).into_iter().filter(|b| b.environment == a.environment);
            same.for_each(|b| pairs.extend(pairs_of(stored, machine.machine.name(), a, b)));
        }
    }
    pairs.sort_by(|a, b| (&a.name, &a.machine).cmp(&(&b.name, &b.machine)));
    let is_tested = |pair: &&PairOfResults| {
        !pair.is_of_asv && pair.exact().is_none() && pair.samples.iter().all(|samples| samples.len() > 1)
    };
    let numbers = |pair: &PairOfResults| {
        let [a, b] = pair.samples.clone();
        NumbersOfRuns { name: pair.name.clone(), unit: Unit::Count, a, b }
    };
    let tested = compare_numbers(pairs.iter().filter(is_tested).map(numbers).collect(), confidence);
    let mut verdicts = tested.into_iter().map(|event: ComparedEvent| DifferenceVerdict::Tested(event.verdict));
    let difference = |pair: PairOfResults| BenchmarkDifference {
        verdict: if is_tested(&&pair) { verdicts.next() } else { pair.exact() }
            .unwrap_or(DifferenceVerdict::OfAsv { is_different: pair.is_different }),
        name: pair.name,
        machine: pair.machine,
        unit: pair.unit,
        results: pair.results,
    };
    pairs.into_iter().map(difference).collect()
}

/// A benchmark with one combination of its parameters, of two commits.
struct PairOfResults {
    name: String,
    machine: String,
    unit: String,
    results: (f64, f64),
    samples: [Vec<f64>; 2],
    /// Whether asv measured it.
    is_of_asv: bool,
    /// What asv's test says.
    is_different: bool,
}

impl PairOfResults {
    /// What counts of a model are beside one another, if all runs of a commit gave the same: nothing of that is chance.
    fn exact(&self) -> Option<DifferenceVerdict> {
        let is_constant = |samples: &Vec<f64>| samples.windows(2).all(|pair| pair[0] == pair[1]);
        let is_exact = self.machine.ends_with(OF_MODEL) && !self.is_of_asv && self.samples.iter().all(is_constant);
        let (a, b) = self.results;
        let verdict = match a.partial_cmp(&b)? {
            Ordering::Less => Verdict::Higher,
            Ordering::Equal => Verdict::Equal,
            Ordering::Greater => Verdict::Lower,
        };
        is_exact.then_some(DifferenceVerdict::Tested(verdict))
    }
}

/// The benchmarks of both files, of the version that counts now, with each combination of parameters.
fn pairs_of(stored: &StoredResults, machine: &str, a: &CommitResults, b: &CommitResults) -> Vec<PairOfResults> {
    let is_of_asv = a.other.get("python").and_then(|version| version.as_str()).is_some_and(|text| !text.is_empty());
    let mut all = Vec::new();
    for (name, of_a) in &a.results.0 {
        let Some((benchmark, of_b)) = stored.benchmarks.0.get(name).zip(b.results.get(name)) else { continue };
        let is_of_now = |one: &BenchmarkResult| one.version.is_none() || one.version == benchmark.version;
        if !is_of_now(of_a) || !is_of_now(of_b) || of_a.params != of_b.params {
            continue;
        }
        for (place, values) in combinations(&of_a.params).iter().enumerate() {
            let number = |one: &BenchmarkResult| one.result.as_ref().and_then(|all| all.get(place)?.number());
            let Some(results) = number(of_a).zip(number(of_b)) else { continue };
            all.push(PairOfResults {
                name: entry_name(name, values),
                machine: machine.to_owned(),
                unit: benchmark.unit.clone(),
                results,
                samples: [samples(of_a, place), samples(of_b, place)],
                is_of_asv,
                is_different: is_different_of_asv([of_a, of_b], place),
            });
        }
    }
    all
}

/// The samples of a combination of parameters; none where they weren't kept.
fn samples(result: &BenchmarkResult, place: usize) -> Vec<f64> {
    let kept = result.samples.get(place).and_then(Option::as_ref);
    kept.map_or_else(Vec::new, |all| all.iter().filter_map(|sample| sample.number()).collect())
}

/// asv's test: of samples where they were kept, else whether the 99 % intervals are apart.
fn is_different_of_asv([a, b]: [&BenchmarkResult; 2], place: usize) -> bool {
    let (of_a, of_b) = (samples(a, place), samples(b, place));
    if let Some((known_a, known_b)) = SampleStatistics::of(&of_a).zip(SampleStatistics::of(&of_b)) {
        return is_different((&of_a, &known_a), (&of_b, &known_b));
    }
    let end = |ends: &[ResultNumber]| ends.get(place).and_then(|end| end.number());
    let apart = |low: &BenchmarkResult, high: &BenchmarkResult| {
        end(&low.ci_99_high).zip(end(&high.ci_99_low)).is_some_and(|(high, low)| high < low)
    };
    apart(a, b) || apart(b, a)
}

#[cfg(test)]
mod tests {
    use super::super::results::{Benchmark, BenchmarkList, MachineFacts, MachineResults, OrderedMap};
    use super::*;

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
        assert_eq!((found.len(), found[0].results, found[0].change()), (1, (3.0, 9.0), Some(2.0)));
        assert_eq!((found[0].verdict, found[0].is_worse()), (DifferenceVerdict::Tested(Verdict::Higher), true));
        assert!(found[0].is_decided());
        let back = differences(&stored(&b, &a, ""), "x", "y", Confidence::DEFAULT);
        assert!(!back[0].is_worse());
        // 2 of 252 orders of 5 and 5 are as far apart: asv asks for less than 0.002.
        let of_asv = differences(&stored(&a, &b, "3.11"), "x", "y", Confidence::DEFAULT);
        assert!(matches!(of_asv[0].verdict, DifferenceVerdict::OfAsv { .. }));
    }

    #[test]
    fn counts_of_a_model_are_exact_where_all_runs_agree() {
        let verdict = |a: &[f64], b: &[f64]| {
            let mut stored = stored(a, b, "");
            stored.machines[0].machine = MachineFacts(OrderedMap(vec![("machine".into(), format!("m{OF_MODEL}"))]));
            differences(&stored, "x", "y", Confidence::DEFAULT)[0].verdict
        };
        assert_eq!(verdict(&[1.0], &[2.0]), DifferenceVerdict::Tested(Verdict::Higher));
        assert_eq!(verdict(&[2.0, 2.0], &[1.0]), DifferenceVerdict::Tested(Verdict::Lower));
        assert_eq!(verdict(&[2.0], &[2.0]), DifferenceVerdict::Tested(Verdict::Equal));
        assert!(!matches!(verdict(&[1.0, 1.1], &[2.0]), DifferenceVerdict::Tested(Verdict::Higher)));
    }

    #[test]
    fn what_only_one_commit_has_is_left_out() {
        assert!(differences(&stored(&[1.0], &[], ""), "x", "y", Confidence::DEFAULT).is_empty());
        assert!(differences(&stored(&[1.0], &[1.0], ""), "x", "z", Confidence::DEFAULT).is_empty());
        assert!(differences(&StoredResults::default(), "x", "y", Confidence::DEFAULT).is_empty());
    }
}
