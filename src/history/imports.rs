//! Reads what other programs measured, so that it can be kept under a commit.

use std::path::Path;
use std::{fmt, fs};

use serde::Deserialize;
use serde_json::Value;

use super::entries::{NANOSECONDS, OF_A_SECOND, named_benchmark};
use super::results::{Benchmark, BenchmarkList, BenchmarkResult, OrderedMap, ResultNumber};
use super::samples::SampleStatistics;
use crate::cost::TIME;
use crate::names::{quoted, shown};

/// Benchmarks of a file, with the result of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedBenchmarks {
    /// The benchmarks.
    pub benchmarks: BenchmarkList,
    /// What each gave.
    pub results: OrderedMap<BenchmarkResult>,
}

/// Why a file has no benchmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportProblem {
    /// It can't be read.
    System(String),
    /// It is none of the formats that are read.
    Format,
    /// It lacks a number, or has one that isn't one.
    Number(String),
    /// Nothing says what the benchmark is called.
    NoName,
}

impl fmt::Display for ImportProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(error) => f.write_str(&shown(error)),
            Self::Format => f.write_str(
                "expected what 'hyperfine --export-json', 'perfprop stat -j' or 'perfprop record' writes, criterion's new/sample.json, or stacks",
            ),
            Self::Number(name) => write!(f, "{} has no numbers", quoted(name)),
            Self::NoName => f.write_str("nothing says what the benchmark is called: name it with --name"),
        }
    }
}

impl std::error::Error for ImportProblem {}

/// hyperfine's file.
#[derive(Deserialize)]
struct HyperfineFile {
    results: Vec<HyperfineResult>,
}

#[derive(Deserialize)]
struct HyperfineResult {
    command: String,
    times: Vec<f64>,
}

/// criterion's samples: how often each ran what is measured, and what that took in nanoseconds.
#[derive(Deserialize)]
struct CriterionSamples {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// A line of `perfprop stat -j`.
#[derive(Deserialize)]
struct StatLine {
    event: String,
    #[serde(rename = "counter-value")]
    value: Option<f64>,
    #[serde(default)]
    unit: String,
}

/// What one run took of one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredQuantity {
    /// The event, or [`TIME`].
    pub name: String,
    /// The number; of times, nanoseconds.
    pub number: f64,
    /// Its 99 % interval, where an estimator has one.
    pub interval: Option<(f64, f64)>,
}

impl ImportedBenchmarks {
    /// The runs of one benchmark: each is a sample of what it measured.
    ///
    /// # Errors
    /// Fails if nothing was measured.
    pub fn of_runs(bench: &str, runs: &[Vec<MeasuredQuantity>]) -> Result<Self, ImportProblem> {
        let mut all = Self::default();
        let mut quantities: OrderedMap<Vec<&MeasuredQuantity>> = OrderedMap::default();
        for one in runs.iter().flatten() {
            match quantities.0.iter_mut().find(|(name, _)| *name == one.name) {
                Some((_, samples)) => samples.push(one),
                None => quantities.set(&one.name, vec![one]),
            }
        }
        for (name, samples) in &quantities.0 {
            let factor = if name == TIME { OF_A_SECOND } else { 1.0 };
            let benchmark = named_benchmark(bench, name);
            let numbers: Vec<f64> = samples.iter().map(|sample| sample.number / factor).collect();
            all.add(benchmark.clone(), &numbers)?;
            // The spread of runs says more than what an estimator says of one.
            if let [MeasuredQuantity { interval: Some((low, high)), .. }] = samples[..] {
                let of = |end: f64| vec![ResultNumber::Number(end / factor)];
                let result = all.results.get_mut(&benchmark.name);
                result.into_iter().for_each(|result| {
                    (result.ci_99_low, result.ci_99_high) = (of(*low), of(*high));
                });
            }
        }
        if all.results.0.is_empty() { Err(ImportProblem::Number(bench.to_owned())) } else { Ok(all) }
    }

    /// Reads a file. `name` is what its benchmark is called, or what stands before the names of several.
    ///
    /// # Errors
    /// Returns why there are no benchmarks in it.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self, ImportProblem> {
        let text = fs::read_to_string(path).map_err(|error| ImportProblem::System(error.to_string()))?;
        let beside = || fs::read_to_string(path.with_file_name("benchmark.json")).ok();
        Self::parse(&text, name, beside)
    }

    /// Reads the text of a file. `beside` is the text of criterion's `benchmark.json` beside it.
    fn parse(text: &str, name: Option<&str>, beside: impl FnOnce() -> Option<String>) -> Result<Self, ImportProblem> {
        let mut all = Self::default();
        if let Ok(file) = serde_json::from_str::<HyperfineFile>(text) {
            let count = file.results.len();
            for result in file.results {
                let own = in_name(result.command.trim_start_matches("./"));
                let name = match name {
                    Some(name) if count > 1 => format!("{name}.{own}"),
                    Some(name) => name.to_owned(),
                    None => own,
                };
                all.add(named_benchmark(&name, TIME), &result.times)?;
            }
        } else if let Ok(samples) = serde_json::from_str::<CriterionSamples>(text) {
            let own = || serde_json::from_str::<Value>(&beside()?).ok()?.get("full_id")?.as_str().map(in_name);
            let name = name.map(str::to_owned).or_else(own).ok_or(ImportProblem::NoName)?;
            let times = samples.times.iter().zip(&samples.iters).map(|(time, runs)| time / runs / 1e9);
            all.add(named_benchmark(&name, TIME), &times.collect::<Vec<_>>())?;
        } else {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let lines: Vec<StatLine> =
                lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_| ImportProblem::Format)?;
            let name = name.ok_or(ImportProblem::NoName)?;
            for line in lines {
                // What wasn't counted has no number, and so no result.
                let Some(value) = line.value else { continue };
                let benchmark = named_benchmark(name, &line.event);
                let (unit, factor) = if line.unit == "msec" { (NANOSECONDS, 1e6) } else { (line.event.as_str(), 1.0) };
                all.add(Benchmark { unit: unit.to_owned(), ..benchmark }, &[value * factor])?;
            }
        }
        if all.results.0.is_empty() { Err(ImportProblem::Format) } else { Ok(all) }
    }

    fn add(&mut self, benchmark: Benchmark, samples: &[f64]) -> Result<(), ImportProblem> {
        let is_number = |sample: &f64| sample.is_finite();
        let found = SampleStatistics::of(samples).filter(|_| samples.iter().all(is_number));
        let found = found.ok_or_else(|| ImportProblem::Number(benchmark.name.clone()))?;
        let kept = samples.iter().copied().map(ResultNumber::Number).collect();
        self.results.set(&benchmark.name, BenchmarkResult { samples: vec![Some(kept)], ..found.result() });
        self.benchmarks.0.insert(benchmark.name.clone(), benchmark);
        Ok(())
    }
}

/// What stands for a text in a benchmark's name.
pub fn in_name(text: &str) -> String {
    /// Names become those of files.
    const LONGEST: usize = 100;
    let is_kept = |c: char| c.is_alphanumeric() || "_-.=".contains(c);
    let words: Vec<&str> = text.split(|c: char| !is_kept(c)).filter(|word| !word.is_empty()).collect();
    words.join("_").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::entries::SECONDS;
    use super::*;

    fn numbers(text: &str, name: Option<&str>, beside: &str) -> Result<Vec<(String, f64, String)>, ImportProblem> {
        let all = ImportedBenchmarks::parse(text, name, || Some(beside.to_owned()))?;
        let unit = |name: &String| all.benchmarks.0[name].unit.clone();
        let number = |result: &BenchmarkResult| result.result.as_ref().unwrap()[0].number().unwrap();
        Ok(all.results.0.iter().map(|(name, result)| (name.clone(), number(result), unit(name))).collect())
    }

    #[test]
    fn files_of_three_programs_are_read() {
        let hyperfine =
            r#"{"results": [{"command": "./sort 10", "times": [3.0, 1.0, 2.0], "parameters": {"n": "10"}}]}"#;
        assert_eq!(numbers(hyperfine, None, "").unwrap(), [("sort_10".to_owned(), 2.0, SECONDS.into())]);
        assert_eq!(numbers(hyperfine, Some("sort"), "").unwrap()[0].0, "sort");
        // 20 ns in 2 runs, 60 ns in 4.
        let criterion = r#"{"sampling_mode": "Linear", "iters": [2.0, 4.0], "times": [20.0, 60.0]}"#;
        let found = numbers(criterion, None, r#"{"full_id": "group/sort"}"#).unwrap();
        assert_eq!((found[0].0.as_str(), found[0].1), ("group_sort", 12.5e-9));
        let stat = "{\"event\":\"task-clock\",\"counter-value\":1.5,\"unit\":\"msec\"}\n{\"event\":\"cycles\",\"counter-value\":null}\n";
        assert_eq!(numbers(stat, Some("sort"), "").unwrap(), [("sort.task-clock".into(), 1.5e6, NANOSECONDS.into())]);
    }

    #[test]
    fn runs_are_samples_of_each_quantity() {
        let quantity = |name: &str, number, interval| MeasuredQuantity { name: name.into(), number, interval };
        let one = vec![quantity(TIME, 2e9, None), quantity("cycles", 7.0, Some((5.0, 10.0)))];
        let all = ImportedBenchmarks::of_runs("sort", std::slice::from_ref(&one)).unwrap();
        let cycles = all.results.get("sort.cycles").unwrap();
        assert_eq!((cycles.ci_99_low[0].number(), cycles.ci_99_high[0].number()), (Some(5.0), Some(10.0)));
        let time = |all: &ImportedBenchmarks| all.results.get("sort").unwrap().result.clone();
        assert_eq!(time(&all), Some(vec![ResultNumber::Number(2.0)]));
        let all = ImportedBenchmarks::of_runs("sort", &[one, vec![quantity(TIME, 4e9, None)]]).unwrap();
        assert_eq!(time(&all), Some(vec![ResultNumber::Number(3.0)]));
        assert_eq!(ImportedBenchmarks::of_runs("x", &[]), Err(ImportProblem::Number("x".into())));
    }

    #[test]
    fn what_has_no_benchmarks_is_told() {
        assert_eq!(numbers("[]", None, ""), Err(ImportProblem::Format));
        assert_eq!(numbers("", Some("x"), ""), Err(ImportProblem::Format));
        assert_eq!(numbers(r#"{"iters": [1], "times": [1]}"#, None, "{}"), Err(ImportProblem::NoName));
        let empty = r#"{"results": [{"command": "x", "times": []}]}"#;
        assert_eq!(numbers(empty, None, ""), Err(ImportProblem::Number("x".into())));
        let infinite = r#"{"iters": [0.0], "times": [1.0]}"#;
        assert_eq!(numbers(infinite, Some("x"), ""), Err(ImportProblem::Number("x".into())));
    }
}
