//! The benchmarks that there are, and what is known of a machine: the files that stand beside results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::commit::{all_rows, check_params, read_versioned, right_rows};
use super::ordered::OrderedMap;
use super::store::ResultsProblem;

/// The version of `benchmarks.json`.
const BENCHMARKS_VERSION: u32 = 2;
/// The version of `machine.json`.
const MACHINE_VERSION: u32 = 1;

/// A benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The names of its parameters.
    #[serde(default)]
    pub param_names: Vec<String>,
    /// The values of each parameter, as they are written.
    #[serde(default)]
    pub params: Vec<Vec<String>>,
    /// Its version: numbers of another one are not compared.
    #[serde(default)]
    pub version: Option<String>,
    /// What is measured: `time`, `track`, `memory`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The unit of its numbers: `seconds`.
    #[serde(default)]
    pub unit: String,
    /// What else is known of it.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// What has the version of the format beside the benchmarks, so that none can be called so.
pub const VERSION_KEY: &str = "version";
/// What is said of a benchmark that is called so.
pub const RESERVED: &str =
    "no benchmark can be called 'version', as asv's files have their own version under that name";

/// The benchmarks of a project, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchmarkList(pub BTreeMap<String, Benchmark>);

impl BenchmarkList {
    /// Reads the text of `benchmarks.json`, all of it.
    ///
    /// # Errors
    /// Returns why the text isn't such a file.
    pub fn parse(text: &str) -> Result<Self, ResultsProblem> {
        Self::parse_rows(text).and_then(all_rows)
    }

    /// Reads the text of `benchmarks.json`, and says which benchmarks are left out as they are wrong.
    ///
    /// # Errors
    /// Returns why the text isn't such a file.
    pub fn parse_rows(text: &str) -> Result<(Self, Vec<ResultsProblem>), ResultsProblem> {
        let mut all: Map<String, Value> = read_versioned(text, BENCHMARKS_VERSION)?;
        all.remove(VERSION_KEY);
        let row = |(name, row): (String, Value)| {
            let benchmark = Benchmark::deserialize(row)
                .map_err(|error| ResultsProblem::Row { benchmark: name.clone(), error: error.to_string() })?;
            check_params(&name, &benchmark.params)?;
            Ok((name, benchmark))
        };
        let (read, left_out) = right_rows(all.into_iter().map(row));
        Ok((Self(read), left_out))
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut all: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, benchmark) in &self.0 {
            all.insert(name, serde_json::to_value(benchmark).unwrap_or(Value::Null));
        }
        all.insert(VERSION_KEY, BENCHMARKS_VERSION.into());
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }
}

/// What is known of a machine, as names and values: `arch`, `cpu`, `num_cpu`, `os`, `ram`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineFacts(pub OrderedMap<String>);

impl MachineFacts {
    /// Reads the text of `machine.json`.
    ///
    /// # Errors
    /// Returns why the text isn't such a file.
    pub fn parse(text: &str) -> Result<Self, ResultsProblem> {
        let all: OrderedMap<Value> = read_versioned(text, MACHINE_VERSION)?;
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let facts = all.0.iter().filter(|(name, _)| name != "version").map(|(name, value)| (name.clone(), text(value)));
        Ok(Self(OrderedMap(facts.collect())))
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut all: BTreeMap<&str, Value> =
            self.0.0.iter().map(|(name, value)| (name.as_str(), value.as_str().into())).collect();
        all.insert("version", MACHINE_VERSION.into());
        serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
    }

    /// The machine's name.
    pub fn name(&self) -> &str {
        self.0.get("machine").map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn benchmarks_are_read_and_written() {
        let text = r#"{"a": {"name": "a", "params": [["1"]], "param_names": ["n"], "type": "time", "unit": "seconds", "version": "x", "code": ""},
            "b": {"name": "b"}, "version": 2}"#;
        let list = BenchmarkList::parse(text).unwrap();
        assert_eq!(list.0["a"].other["code"], "");
        assert_eq!((list.0["b"].params.len(), list.0["b"].version.clone()), (0, None));
        assert_eq!(BenchmarkList::parse(&list.to_text()).unwrap(), list);
        let (read, left_out) = BenchmarkList::parse_rows(r#"{"a": {}, "b": {"name": "b"}, "version": 2}"#).unwrap();
        assert!(read.0.len() == 1 && read.0.contains_key("b") && left_out[0].to_string().contains("benchmark 'a'"));
        assert!(BenchmarkList::parse(r#"{"a": {}, "version": 2}"#).unwrap_err().to_string().contains("'a'"));
        let wide = format!(r#"{{"a": {{"name": "a", "params": {:?}}}, "version": 2}}"#, vec![vec!["0", "1"]; 17]);
        assert!(BenchmarkList::parse(&wide).unwrap_err().to_string().contains("'a': its parameters have 131,072"));
        assert_eq!(BenchmarkList::parse(r#"{"version": 2}"#).unwrap(), BenchmarkList::default());
    }

    #[test]
    fn a_machine_is_read_and_written() {
        let machine = MachineFacts::parse(r#"{"machine": "m", "num_cpu": "2", "version": 1}"#).unwrap();
        assert_eq!((machine.name(), machine.0.get("num_cpu").map(String::as_str)), ("m", Some("2")));
        assert_eq!(MachineFacts::parse(&machine.to_text()).unwrap(), machine);
        assert_eq!(MachineFacts::default().name(), "");
    }
}
