//! Reads what other programs measured, so that it can be kept under a commit.

use std::path::Path;
use std::{fmt, io};

use serde::Deserialize;
use serde_json::Value;

use super::entries::{CountedOn, NANOSECONDS, divisor, named_benchmark};
use super::results::{Benchmark, BenchmarkList, BenchmarkResult, OrderedMap, RESERVED, ResultNumber, VERSION_KEY};
use super::samples::SampleStatistics;
use crate::cost::TIME;
use crate::files;
use crate::names::{quoted, shown};

/// What was measured of benchmarks elsewhere, in the order in which it was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedBenchmarks(Vec<ImportedBenchmark>);

/// What was measured of one benchmark.
#[derive(Clone, Debug, PartialEq)]
struct ImportedBenchmark {
    benchmark: Benchmark,
    /// What counted.
    on: CountedOn,
    samples: Vec<f64>,
    /// The 99 % interval of a single sample, where an estimator has one.
    interval: Option<(f64, f64)>,
}

/// Why a file has no benchmarks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImportProblem {
    /// It can't be read.
    System(String),
    /// It is none of the formats that are read.
    Format,
    /// Nothing is in it.
    Empty,
    /// It lacks a number, or has one that isn't one.
    Number(String),
    /// It has a time or a count below 0.
    Negative(String),
    /// It has two results of this benchmark, which may be of different commands.
    Twice(String),
    /// This command failed, so that what it took says nothing.
    Failed(String),
    /// The benchmark has the name of what isn't one in asv's file.
    Reserved,
    /// Its lines are of parts of a run, by this option of `perfprop stat`.
    Parts(&'static str),
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
            Self::Empty => f.write_str("it is empty"),
            Self::Number(name) => write!(f, "{} has no numbers", quoted(name)),
            Self::Negative(name) => write!(f, "{} has a number below 0, which no time and no count is", quoted(name)),
            Self::Twice(name) => {
                write!(f, "it has {} twice: keep one of them in a file of its own, with another --name", quoted(name))
            }
            Self::Failed(command) => {
                write!(f, "{} failed in a run, so that what it took says nothing", quoted(command))
            }
            Self::Reserved => f.write_str(RESERVED),
            Self::Parts(option) => {
                write!(f, "its lines are of parts of a run: measure without {option}, which prints one line an event")
            }
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
    /// `None` of a run that a signal ended.
    #[serde(default)]
    exit_codes: Vec<Option<i32>>,
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
    /// Lines of metrics, regions and findings have none.
    event: Option<String>,
    #[serde(rename = "counter-value")]
    value: Option<f64>,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    modelled: bool,
    /// Of which part of a run or of what is measured it is, where it isn't all.
    interval: Option<Value>,
    cpu: Option<Value>,
    thread: Option<Value>,
}

impl StatLine {
    /// The option that a line comes from that isn't of all of a run.
    fn part(&self) -> Option<&'static str> {
        let parts = [(&self.interval, "-I"), (&self.cpu, "-A"), (&self.thread, "--per-thread")];
        parts.into_iter().find_map(|(field, option)| field.as_ref().map(|_| option))
    }
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
        for run in runs {
            let mut of_run = Self::default();
            for MeasuredQuantity { name, number, interval } in run {
                let divisor = divisor(name);
                of_run.put(named_benchmark(bench, name), vec![number / divisor])?;
                let ends = interval.map(|(low, high)| (low / divisor, high / divisor));
                of_run.0.iter_mut().next_back().into_iter().for_each(|one| one.interval = ends);
            }
            all.join(of_run);
        }
        if all.0.is_empty() { Err(ImportProblem::Number(bench.to_owned())) } else { Ok(all) }
    }

    /// Reads a file. `name` is what its benchmark is called, or what stands before the names of several.
    ///
    /// # Errors
    /// Returns why there are no benchmarks in it.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self, ImportProblem> {
        let text = files::text(path, files::LONGEST).map_err(|error| match error.kind() {
            // Packed files, pprof's, and long recordings.
            io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => ImportProblem::Format,
            _ => ImportProblem::System(error.to_string()),
        })?;
        let beside = || files::text(&path.with_file_name("benchmark.json"), files::LONGEST).ok();
        Self::parse(&text, name, beside)
    }

    /// Reads the text of a file. `beside` is the text of criterion's `benchmark.json` beside it.
    fn parse(text: &str, name: Option<&str>, beside: impl FnOnce() -> Option<String>) -> Result<Self, ImportProblem> {
        if text.trim().is_empty() {
            return Err(ImportProblem::Empty);
        }
        let mut all = Self::default();
        if let Ok(file) = serde_json::from_str::<HyperfineFile>(text) {
            all.put_hyperfine(file, name)?;
        } else if let Ok(samples) = serde_json::from_str::<CriterionSamples>(text) {
            let own = || serde_json::from_str::<Value>(&beside()?).ok()?.get("full_id")?.as_str().map(in_name);
            let name = name.map(str::to_owned).or_else(own).ok_or(ImportProblem::NoName)?;
            if samples.times.len() != samples.iters.len() {
                return Err(ImportProblem::Format);
            }
            let times = samples.times.iter().zip(&samples.iters).map(|(time, runs)| time / runs / divisor(TIME));
            all.put(named_benchmark(&name, TIME), times.collect())?;
        } else {
            all.put_stat(text, name)?;
        }
        if all.0.is_empty() { Err(ImportProblem::Format) } else { Ok(all) }
    }

    fn put_hyperfine(&mut self, file: HyperfineFile, name: Option<&str>) -> Result<(), ImportProblem> {
        let count = file.results.len();
        for HyperfineResult { command, times, exit_codes } in file.results {
            if exit_codes.iter().any(|code| *code != Some(0)) {
                return Err(ImportProblem::Failed(command));
            }
            let own = in_name(command.trim_start_matches("./"));
            let name = match name {
                Some(name) if count > 1 => format!("{name}.{own}"),
                Some(name) => name.to_owned(),
                None => own,
            };
            self.put(named_benchmark(&name, TIME), times)?;
        }
        Ok(())
    }

    /// Lines of `perfprop stat -j`.
    fn put_stat(&mut self, text: &str, name: Option<&str>) -> Result<(), ImportProblem> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines: Vec<StatLine> =
            lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_| ImportProblem::Format)?;
        if lines.iter().all(|line| line.event.is_none()) {
            return Err(ImportProblem::Format);
        }
        if let Some(option) = lines.iter().find_map(StatLine::part) {
            return Err(ImportProblem::Parts(option));
        }
        let name = name.ok_or(ImportProblem::NoName)?;
        for line in &lines {
            // What wasn't counted has no number, and so no result.
            let (Some(event), Some(value)) = (&line.event, line.value) else { continue };
            let benchmark = named_benchmark(name, event);
            let (unit, factor) = match line.unit.as_str() {
                "msec" => (NANOSECONDS, 1e6),
                "ns" => (NANOSECONDS, 1.0),
                _ => (event.as_str(), 1.0),
            };
            let on = if line.modelled { CountedOn::Model } else { CountedOn::Machine };
            self.put_counted(on, Benchmark { unit: unit.to_owned(), ..benchmark }, vec![value * factor])?;
        }
        Ok(())
    }

    fn put(&mut self, benchmark: Benchmark, samples: Vec<f64>) -> Result<(), ImportProblem> {
        self.put_counted(CountedOn::Machine, benchmark, samples)
    }

    fn put_counted(&mut self, on: CountedOn, benchmark: Benchmark, samples: Vec<f64>) -> Result<(), ImportProblem> {
        let name = || benchmark.name.clone();
        if benchmark.name == VERSION_KEY {
            return Err(ImportProblem::Reserved);
        }
        if samples.is_empty() || !samples.iter().all(|sample| sample.is_finite()) {
            return Err(ImportProblem::Number(name()));
        }
        if samples.iter().any(|&sample| sample < 0.0) {
            return Err(ImportProblem::Negative(name()));
        }
        if self.0.iter().any(|one| one.benchmark.name == benchmark.name) {
            return Err(ImportProblem::Twice(name()));
        }
        self.0.push(ImportedBenchmark { benchmark, on, samples, interval: None });
        Ok(())
    }

    /// Takes what another file holds: of a benchmark that is in both, they are samples of one.
    pub fn join(&mut self, other: Self) {
        for one in other.0 {
            let is_same =
                |known: &&mut ImportedBenchmark| known.benchmark.name == one.benchmark.name && known.on == one.on;
            match self.0.iter_mut().find(is_same) {
                // The spread of runs says more than what an estimator says of one.
                Some(known) => {
                    known.samples.extend(one.samples);
                    known.interval = None;
                }
                None => self.0.push(one),
            }
        }
    }

    /// Those that this counted.
    pub fn counted_on(&self, on: CountedOn) -> Self {
        Self(self.0.iter().filter(|one| one.on == on).cloned().collect())
    }

    /// The benchmarks.
    pub fn benchmarks(&self) -> BenchmarkList {
        BenchmarkList(self.0.iter().map(|one| (one.benchmark.name.clone(), one.benchmark.clone())).collect())
    }

    /// The result of each.
    pub fn results(&self) -> OrderedMap<BenchmarkResult> {
        let result = |one: &ImportedBenchmark| {
            let kept = one.samples.iter().copied().map(ResultNumber::Number).collect();
            let mut result = SampleStatistics::of(&one.samples)?.result();
            result.samples = vec![Some(kept)];
            if let Some((low, high)) = one.interval {
                let of = |end: f64| vec![ResultNumber::Number(end)];
                (result.ci_99_low, result.ci_99_high) = (of(low), of(high));
            }
            Some((one.benchmark.name.clone(), result))
        };
        OrderedMap(self.0.iter().filter_map(result).collect())
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
        let benchmarks = all.benchmarks();
        let unit = |name: &String| benchmarks.0[name].unit.clone();
        let number = |result: &BenchmarkResult| result.result.as_ref().unwrap()[0].number().unwrap();
        Ok(all.results().0.iter().map(|(name, result)| (name.clone(), number(result), unit(name))).collect())
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
    fn counts_of_a_model_are_kept_apart_and_lines_without_an_event_are_passed_over() {
        let text = "{\"event\":\"instructions\",\"counter-value\":7,\"modelled\":true}\n{\"metric-value\":1.5}\n\
                    {\"event\":\"page-faults\",\"counter-value\":3}\n";
        let all = ImportedBenchmarks::parse(text, Some("sort"), || None).unwrap();
        let names = |on| all.counted_on(on).benchmarks().0.into_keys().collect::<Vec<_>>();
        assert_eq!(names(CountedOn::Model), ["sort.instructions"]);
        assert_eq!(names(CountedOn::Machine), ["sort.page-faults"]);
    }

    #[test]
    fn runs_are_samples_of_each_quantity() {
        let quantity = |name: &str, number, interval| MeasuredQuantity { name: name.into(), number, interval };
        let one = vec![quantity(TIME, 2e9, None), quantity("cycles", 7.0, Some((5.0, 10.0)))];
        let all = ImportedBenchmarks::of_runs("sort", std::slice::from_ref(&one)).unwrap();
        let results = all.results();
        let cycles = results.get("sort.cycles").unwrap();
        assert_eq!((cycles.ci_99_low[0].number(), cycles.ci_99_high[0].number()), (Some(5.0), Some(10.0)));
        let time = |all: &ImportedBenchmarks| all.results().get("sort").unwrap().result.clone();
        assert_eq!(time(&all), Some(vec![ResultNumber::Number(2.0)]));
        let all = ImportedBenchmarks::of_runs("sort", &[one.clone(), vec![quantity(TIME, 4e9, None)]]).unwrap();
        assert_eq!(time(&all), Some(vec![ResultNumber::Number(3.0)]));
        let all = ImportedBenchmarks::of_runs("sort", &[one.clone(), one]).unwrap();
        let results = all.results();
        assert_eq!(results.get("sort.cycles").unwrap().ci_99_low[0].number(), Some(7.0), "the spread of two");
        assert_eq!(ImportedBenchmarks::of_runs("x", &[]), Err(ImportProblem::Number("x".into())));
    }

    #[test]
    fn what_has_no_benchmarks_is_told() {
        assert_eq!(numbers("[]", None, ""), Err(ImportProblem::Format));
        assert_eq!(numbers(" \n", Some("x"), ""), Err(ImportProblem::Empty));
        assert_eq!(numbers(r#"{"iters": [1], "times": [1]}"#, None, "{}"), Err(ImportProblem::NoName));
        let empty = r#"{"results": [{"command": "x", "times": []}]}"#;
        assert_eq!(numbers(empty, None, ""), Err(ImportProblem::Number("x".into())));
        let failed = r#"{"results": [{"command": "x", "times": [1, 2], "exit_codes": [0, 1]}]}"#;
        assert_eq!(numbers(failed, None, ""), Err(ImportProblem::Failed("x".into())));
        let negative = r#"{"results": [{"command": "x", "times": [1, -2], "exit_codes": [0, 0]}]}"#;
        assert_eq!(numbers(negative, None, ""), Err(ImportProblem::Negative("x".into())));
        let twice = r#"{"results": [{"command": "./x", "times": [1]}, {"command": "x", "times": [2]}]}"#;
        assert_eq!(numbers(twice, None, ""), Err(ImportProblem::Twice("x".into())));
        let parts = "{\"event\":\"cycles\",\"counter-value\":1,\"cpu\":\"0\"}\n";
        assert_eq!(numbers(parts, Some("x"), ""), Err(ImportProblem::Parts("-A")));
        assert_eq!(numbers("{\"metric-value\":1.5}\n", Some("x"), ""), Err(ImportProblem::Format));
        let reserved = r#"{"results": [{"command": "version", "times": [1]}]}"#;
        assert_eq!(numbers(reserved, None, ""), Err(ImportProblem::Reserved));
        let infinite = r#"{"iters": [0.0], "times": [1.0]}"#;
        assert_eq!(numbers(infinite, Some("x"), ""), Err(ImportProblem::Number("x".into())));
    }
}
