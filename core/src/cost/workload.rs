//! Reads and writes measurements of workloads: sizes, and what was measured at them.
//!
//! A file of JSON lines begins with a header, and has a line for each set of sizes:
//!
//! ```json
//! {"perfprop_workload":1,"name":"sort","sizes":["n"],"command":["./sort","{n}"]}
//! {"sizes":{"n":1000},"samples":{"time":[5210000,5190000],"instructions":[812345,812345]},"order":[0,7]}
//! ```
//!
//! Times are in nanoseconds. A file of comma-separated values has a line of names, and a line for each measurement, between lines that begin with
//! `#`; semicolons or tabs may stand for commas, where the first line has none. Its column of times may be called `time_us`, `time_ms` or `time_s` where they are in those units.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{quoted, shown};
use crate::number::shortest;
use crate::run::MeasuredMachine;

/// The sizes of a workload, and what was measured at them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// The sizes by name.
    pub sizes: BTreeMap<String, f64>,
    /// The repeated measurements of each quantity: `time` in nanoseconds, events by name.
    pub samples: BTreeMap<String, Vec<f64>>,
    /// The place of each repetition in the order of all runs of the file; empty where that isn't known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<u32>,
}

/// What stands above the workloads of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadHeader {
    /// The version of the format: 1.
    pub perfprop_workload: u32,
    /// The name of the benchmark.
    pub name: String,
    /// The names of sizes, in the order that they were given.
    pub sizes: Vec<String>,
    /// The command that was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The machine that was measured on.
    #[serde(default)]
    pub machine: MeasuredMachine,
    /// The words that the command was filled with, by the names of parameters: `algo` is `quick`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    /// How it was measured, if perfprop did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<SweepRecord>,
    /// The model that was named for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How the workloads of a file were measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepRecord {
    /// When it began, in seconds since 1970.
    pub started: f64,
    /// When it began as people read it, in UTC: `2026-11-23T05:20:19Z`; empty in files of older versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// What the order of runs was drawn by.
    pub seed: u64,
    /// All commands of the sweep, which took turns.
    pub commands: Vec<Vec<String>>,
    /// All words of each parameter that has words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, Vec<String>>,
    /// All values of each size.
    pub values: BTreeMap<String, Vec<f64>>,
    /// The events that were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// How often commands were run; `None` in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<SweepRuns>,
    /// The caches of the model that counted, where this machine didn't; times are then those of the emulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The CPU that the commands ran on; any where `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// The shell's commands that ran before and after, by the names of their options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hooks: BTreeMap<String, String>,
    /// What was measured of a command that does nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_start: Option<Workload>,
    /// What the machine did meanwhile, for each time that the sweep was begun or went on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<MachineConditions>,
}

/// How often commands of a sweep were run, and which of the runs count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepRuns {
    /// The runs of each set of sizes, at the most.
    pub repeats: usize,
    /// The runs before them, of which nothing is kept.
    pub warmups: usize,
    /// Runs ended once the time was known to this part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<f64>,
    /// What stands for the runs: `the median`.
    pub taken: String,
    /// Whether runs count that ended with another exit code than 0.
    pub ignores_failure: bool,
}

/// What the machine did while commands were measured, that may have disturbed them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineConditions {
    /// The CPUs that this is about.
    pub cpus: usize,
    /// How many of these CPUs were kept busy by what wasn't measured, on average; `None` where that isn't known.
    pub others_busy: Option<f64>,
    /// The lowest and the highest frequency in hertz after runs, of the fastest of these CPUs.
    pub frequency: Option<(f64, f64)>,
    /// How often these CPUs were slowed down because they were too hot.
    pub throttled: Option<u64>,
}

/// The workloads of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadFile {
    /// What stands above them.
    pub header: WorkloadHeader,
    /// The workloads.
    pub workloads: Vec<Workload>,
}

/// The only version of the format.
const VERSION: u32 = 1;
/// The name of the quantity where nobody says which: wall time in nanoseconds.
pub const TIME: &str = "time";

/// Sizes as they are given to a command: `m=0.5 n=1000`.
pub fn sizes_in_words(sizes: &BTreeMap<String, f64>) -> String {
    let words: Vec<_> = sizes.iter().map(|(name, size)| format!("{}={}", shown(name), shortest(*size))).collect();
    words.join(" ")
}

/// Why a file's workloads can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for WorkloadError {}

impl WorkloadFile {
    /// The measured quantities that a model may name like sizes, by their names in models: `cache_misses` for
    /// `cache-misses`. A size hides a quantity of its name.
    pub fn quantities(&self) -> BTreeMap<String, String> {
        let name = |quantity: &String| (plain_name(quantity), quantity.clone());
        let all = self.workloads.iter().flat_map(|workload| workload.samples.keys());
        all.map(name).filter(|(name, _)| !self.header.sizes.contains(name)).collect()
    }

    /// Reads a file: JSON lines, or comma-separated values where it doesn't begin with a brace; `response` is then the
    /// column that isn't a size.
    ///
    /// # Errors
    /// Returns the first line that is wrong.
    pub fn parse(text: &str, name: &str, response: &str) -> Result<Self, WorkloadError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut file = if text.trim_start().starts_with('{') { json(text)? } else { comma_separated(text, response)? };
        if file.header.name.is_empty() {
            file.header.name = name.to_owned();
        }
        Ok(file)
    }

    /// The file as JSON lines.
    pub fn to_json_lines(&self) -> String {
        let header = serde_json::to_string(&self.header).unwrap_or_default();
        let lines = self.workloads.iter().map(|workload| serde_json::to_string(workload).unwrap_or_default());
        std::iter::once(header).chain(lines).map(|line| line + "\n").collect()
    }
}

fn wrong(line: usize, what: impl Into<String>) -> WorkloadError {
    WorkloadError { line, what: what.into() }
}

fn json(text: &str) -> Result<WorkloadFile, WorkloadError> {
    let mut lines =
        text.lines().enumerate().map(|(place, line)| (place + 1, line)).filter(|(_, line)| !line.trim().is_empty());
    let (place, first) = lines.next().ok_or_else(|| wrong(1, "there is nothing here"))?;
    let header: WorkloadHeader = serde_json::from_str(first)
        .map_err(|error| wrong(place, format!("no header of workloads: {}", shown(&error.to_string()))))?;
    if header.perfprop_workload != VERSION {
        return Err(wrong(
            place,
            format!("version {} of workloads; this perfprop reads {VERSION}", header.perfprop_workload),
        ));
    }
    let mut workloads = Vec::new();
    for (place, line) in lines {
        let workload: Workload = serde_json::from_str(line)
            .map_err(|error| wrong(place, format!("no workload: {}", shown(&error.to_string()))))?;
        if let Some(missing) = header.sizes.iter().find(|name| !workload.sizes.contains_key(*name)) {
            return Err(wrong(place, format!("no size {}", quoted(missing))));
        }
        workloads.push(workload);
    }
    Ok(WorkloadFile { header, workloads })
}

/// The units of time that a column's name may end with, in nanoseconds: `time_us`.
pub const TIME_UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The column that isn't a size, and what its values are multiplied with.
struct ResponseColumn {
    column: usize,
    factor: f64,
}

/// The column of the response; of times, also the only one whose name has a unit. `None` where there is no such column; an
/// error is what to do where there are several.
fn response_column(names: &[String], response: &str) -> Result<Option<ResponseColumn>, String> {
    if let Some(column) = names.iter().position(|name| name == response) {
        return Ok(Some(ResponseColumn { column, factor: 1.0 }));
    }
    let with_unit = |(column, name): (usize, &String)| {
        let unit = name.strip_prefix(TIME)?.strip_prefix('_')?;
        let (_, factor) = TIME_UNITS.into_iter().find(|(name, _)| *name == unit)?;
        Some(ResponseColumn { column, factor })
    };
    let mut columns: Vec<_> = names.iter().enumerate().filter(|_| response == TIME).filter_map(with_unit).collect();
    if columns.len() > 1 {
        let names: Vec<_> = columns.iter().map(|found| quoted(&names[found.column])).collect();
        return Err(format!("several columns are times, {}: name one with --response", names.join(" and ")));
    }
    Ok(columns.pop())
}

/// The first name that stands there a second time.
fn twice(names: &[String]) -> Option<&String> {
    names.iter().enumerate().find_map(|(place, name)| names[..place].contains(name).then_some(name))
}

/// The words of models that no size can be named by.
const WORDS: [&str; 5] = ["if", "else", "let", "true", "false"];

/// What models name the size of a column: `n_size` for `n-size`, `if_` for `if`.
fn size_of_column(name: &str) -> String {
    let mut name = plain_name(name);
    if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    if WORDS.contains(&name.as_str()) {
        name.push('_');
    }
    name
}

/// A name with `_` for what isn't a letter or digit.
fn plain_name(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// What separates the values of a file with such a line of names: what spreadsheets write, too.
fn separator(names: &str) -> char {
    [',', ';', '\t'].into_iter().find(|&separator| names.contains(separator)).unwrap_or(',')
}

fn comma_separated(text: &str, response: &str) -> Result<WorkloadFile, WorkloadError> {
    let is_read = |line: &str| !line.trim().is_empty() && !line.starts_with('#');
    let mut lines = text.lines().enumerate().map(|(place, line)| (place + 1, line)).filter(|(_, line)| is_read(line));
    let (first, names) = lines.next().ok_or_else(|| wrong(1, "there is nothing here"))?;
    let separator = separator(names);
    let mut names: Vec<String> = names.split(separator).map(|name| name.trim().trim_matches('"').to_owned()).collect();
    if let Some(twice) = twice(&names) {
        return Err(wrong(first, format!("two columns are named {}: rename one", quoted(twice))));
    }
    let found = response_column(&names, response).map_err(|what| wrong(first, what))?;
    let ResponseColumn { column, factor } = found.ok_or_else(|| {
        let known: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        wrong(
            first,
            format!("no column {}: there are {}; name one with --response", quoted(response), known.join(", ")),
        )
    })?;
    for (_, name) in names.iter_mut().enumerate().filter(|(place, _)| *place != column) {
        *name = size_of_column(name);
    }
    if let Some(twice) = twice(&names) {
        return Err(wrong(first, format!("two columns are named {} in models: rename one", quoted(twice))));
    }
    let (mut workloads, mut places): (Vec<Workload>, HashMap<Vec<u64>, usize>) = (Vec::new(), HashMap::new());
    for (place, line) in lines {
        let values: Vec<&str> = line.split(separator).map(str::trim).collect();
        if values.len() != names.len() {
            return Err(wrong(place, format!("{} values for {} names", values.len(), names.len())));
        }
        let number = |(name, value): (&String, &&str)| {
            let number = value.parse::<f64>().map_err(|_| wrong(place, format!("{} is no number", quoted(value))))?;
            Ok((name.clone(), number))
        };
        let mut sizes: BTreeMap<String, f64> = names.iter().zip(&values).map(number).collect::<Result<_, _>>()?;
        let value = sizes.remove(&names[column]).unwrap_or(f64::NAN) * factor;
        // 0 and -0 are the same size.
        let key: Vec<u64> = sizes.values().map(|size| (size + 0.0).to_bits()).collect();
        let place = *places.entry(key).or_insert(workloads.len());
        if place == workloads.len() {
            workloads.push(Workload { sizes, samples: BTreeMap::new(), order: Vec::new() });
        }
        workloads[place].samples.entry(response.to_owned()).or_default().push(value);
    }
    names.remove(column);
    Ok(WorkloadFile {
        header: WorkloadHeader { perfprop_workload: VERSION, sizes: names, ..WorkloadHeader::default() },
        workloads,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times of a file with one measurement.
    fn times(names: &str, response: &str) -> Result<Vec<f64>, WorkloadError> {
        let file = WorkloadFile::parse(&format!("{names}\n10,2.5\n"), "f", response)?;
        Ok(file.workloads.iter().flat_map(|workload| workload.samples[response].clone()).collect())
    }

    #[test]
    fn lines_of_the_same_sizes_are_one_workload() {
        let file = WorkloadFile::parse("n,m,time\n1,0,5\n2,0,6\n1,-0,7\n0,1,8\n", "f", TIME).unwrap_or_default();
        let found =
            file.workloads.iter().map(|found| (found.sizes["n"], found.sizes["m"], found.samples[TIME].clone()));
        let expected = [(1.0, 0.0, vec![5.0, 7.0]), (2.0, 0.0, vec![6.0]), (0.0, 1.0, vec![8.0])];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn other_separators_and_comments_are_read() {
        let of = |text: &str| WorkloadFile::parse(text, "f", TIME).map(|file| file.workloads);
        let expected = of("n,time\n1,5\n2,6\n");
        assert!(expected.as_ref().is_ok_and(|workloads| workloads.len() == 2));
        for text in ["n;time\n1;5\n2;6\n", "n\ttime\n1\t5\n2\t6\n", "# of sort\nn, time\n1,5\n# again\n2,6\n"] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn columns_have_names_that_models_can_have() {
        let file = WorkloadFile::parse("n-size,N size,if,2nd,größe,time\n1,2,3,4,5,6\n", "f", TIME);
        let names = ["n_size", "N_size", "if_", "_2nd", "größe"];
        assert_eq!(file.as_ref().map(|file| file.header.sizes.clone()), Ok(names.map(str::to_owned).to_vec()));
        let sizes = file.map(|file| file.workloads[0].sizes.clone()).unwrap_or_default();
        assert_eq!(names.map(|name| sizes.get(name).copied()), [1.0, 2.0, 3.0, 4.0, 5.0].map(Some));
        let twice = times("n-m,n m,time", TIME).map_err(|error| error.what);
        assert_eq!(twice, Err("two columns are named 'n_m' in models: rename one".to_owned()));
    }

    #[test]
    fn a_column_of_times_may_name_its_unit() {
        let of = |name: &str| times(&format!("n,{name}"), TIME);
        assert_eq!(of("time"), Ok(vec![2.5]));
        let units = ["ns", "us", "ms", "s"].map(|unit| of(&format!("time_{unit}")));
        assert_eq!(units, [Ok(vec![2.5]), Ok(vec![2.5e3]), Ok(vec![2.5e6]), Ok(vec![2.5e9])]);
        assert!(of("time_h").is_err() && of("cycles").is_err());
        let twice = times("n,n,time", TIME).map_err(|error| error.what);
        assert_eq!(twice, Err("two columns are named 'n': rename one".to_owned()));
        let twice = times("n,time_ns,time_ms", TIME).map_err(|error| error.what);
        let words = "several columns are times, 'time_ns' and 'time_ms': name one with --response";
        assert_eq!(twice, Err(words.to_owned()));
        // A column that is named whole is taken as it is.
        assert_eq!(times("n,time_ms", "time_ms"), Ok(vec![2.5]));
        assert_eq!(
            WorkloadFile::parse("time_s,time\n10,2.5\n", "f", TIME).map(|file| file.header.sizes),
            Ok(vec!["time_s".to_owned()])
        );
    }
}
