//! Reads what other programs measured, so that it can be kept under a commit.

use std::path::Path;
use std::{fmt, fs};

use serde::Deserialize;
use serde_json::Value;

use super::entries::{NANOSECONDS, SECONDS};
use super::results::{Benchmark, BenchmarkList, BenchmarkResult, OrderedMap, ResultNumber};
use super::samples::SampleStatistics;
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
                "expected what 'hyperfine --export-json' or 'perfprop stat -j' writes, or criterion's new/sample.json",
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

impl ImportedBenchmarks {
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
                all.add(&name, "time", SECONDS, &result.times)?;
            }
        } else if let Ok(samples) = serde_json::from_str::<CriterionSamples>(text) {
            let own = || serde_json::from_str::<Value>(&beside()?).ok()?.get("full_id")?.as_str().map(in_name);
            let name = name.map(str::to_owned).or_else(own).ok_or(ImportProblem::NoName)?;
            let times = samples.times.iter().zip(&samples.iters).map(|(time, runs)| time / runs / 1e9);
            all.add(&name, "time", SECONDS, &times.collect::<Vec<_>>())?;
        } else {
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let lines: Vec<StatLine> =
                lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_| ImportProblem::Format)?;
            let name = name.ok_or(ImportProblem::NoName)?;
            for line in lines {
                // What wasn't counted has no number, and so no result.
                let Some(value) = line.value else { continue };
                let name = format!("{name}.{}", line.event);
                let (unit, factor) = if line.unit == "msec" { (NANOSECONDS, 1e6) } else { (line.event.as_str(), 1.0) };
                all.add(&name, "track", unit, &[value * factor])?;
            }
        }
        if all.results.0.is_empty() { Err(ImportProblem::Format) } else { Ok(all) }
    }

    fn add(&mut self, name: &str, kind: &str, unit: &str, samples: &[f64]) -> Result<(), ImportProblem> {
        let is_number = |sample: &f64| sample.is_finite();
        let found = SampleStatistics::of(samples).filter(|_| samples.iter().all(is_number));
        let found = found.ok_or_else(|| ImportProblem::Number(name.to_owned()))?;
        let benchmark =
            Benchmark { name: name.to_owned(), kind: kind.to_owned(), unit: unit.to_owned(), ..Benchmark::default() };
        let kept = samples.iter().copied().map(ResultNumber::Number).collect();
        self.results.set(name, BenchmarkResult { samples: vec![Some(kept)], ..found.result() });
        self.benchmarks.0.insert(name.to_owned(), benchmark);
        Ok(())
    }
}

/// What stands for a text in a benchmark's name.
fn in_name(text: &str) -> String {
    /// Names become those of files.
    const LONGEST: usize = 100;
    let is_kept = |c: char| c.is_alphanumeric() || "_-.=".contains(c);
    let words: Vec<&str> = text.split(|c: char| !is_kept(c)).filter(|word| !word.is_empty()).collect();
    words.join("_").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

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
