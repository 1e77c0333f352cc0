//! What the benchmarks gave for one commit in one environment: a file of a machine's folder.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::json::{ResultNumber, bare, strict};
use super::ordered::OrderedMap;
use super::store::ResultsProblem;
use crate::history::git::short;
use crate::number::grouped;

/// The only version of these files that is read and written.
const VERSION: u32 = 2;

/// The columns of a benchmark's row, in the order in which they are written.
const COLUMNS: [&str; 13] = [
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    "stats_ci_99_a",
    "stats_ci_99_b",
    "stats_q_25",
    "stats_q_75",
    "stats_number",
    "stats_repeat",
    "samples",
    "profile",
];

/// What the benchmarks gave for one commit in one environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommitResults {
    /// The commit's whole hash.
    pub commit: String,
    /// The name of the environment: what was built how.
    pub environment: String,
    /// When the commit was made, in milliseconds since 1970.
    pub date: i64,
    /// The machine and the environment, as names and values; `None` of what isn't set.
    pub params: OrderedMap<Option<String>>,
    /// The rows of benchmarks, by name.
    pub results: OrderedMap<BenchmarkResult>,
    /// How long building took, and what else isn't a benchmark, in seconds.
    pub durations: OrderedMap<Option<f64>>,
    /// What else the file has: the version of Python, its packages.
    pub other: BTreeMap<String, Value>,
}

/// What a benchmark gave. Lists have an item for each combination of parameters, the last parameter varying fastest;
/// a benchmark without parameters has one item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchmarkResult {
    /// The numbers; `None` where all failed.
    pub result: Option<Vec<ResultNumber>>,
    /// The values of each parameter when it was run.
    pub params: Vec<Vec<String>>,
    /// The benchmark's version when it was run; `None` in old files.
    pub version: Option<String>,
    /// When the run that measured it began, in milliseconds since 1970: of perfprop's own results the last `history run`, which has one
    /// time for all commits that it measured in turns.
    pub started_at: Option<i64>,
    /// How long it took in seconds.
    pub duration: Option<f64>,
    /// The lower ends of the 99 % intervals.
    pub ci_99_low: Vec<ResultNumber>,
    /// The upper ends of the 99 % intervals.
    pub ci_99_high: Vec<ResultNumber>,
    /// The lower quartiles.
    pub quartile_low: Vec<ResultNumber>,
    /// The upper quartiles.
    pub quartile_high: Vec<ResultNumber>,
    /// How often each sample ran what is measured.
    pub number: Vec<ResultNumber>,
    /// How many samples there were.
    pub repeat: Vec<ResultNumber>,
    /// The samples, in the order in which they were measured; `None` where they weren't kept.
    pub samples: Vec<Option<Vec<ResultNumber>>>,
    /// A profile as asv keeps it: compressed, and as text.
    pub profile: Option<String>,
    /// Columns that this perfprop doesn't know, by name.
    pub other: BTreeMap<String, Value>,
}

/// The file as it stands on the disk.
#[derive(Serialize, Deserialize)]
struct CommitFile {
    commit_hash: String,
    env_name: String,
    #[serde(default, deserialize_with = "date")]
    date: i64,
    #[serde(deserialize_with = "words")]
    params: OrderedMap<Option<String>>,
    result_columns: Vec<String>,
    results: OrderedMap<Value>,
    #[serde(default)]
    durations: OrderedMap<Option<f64>>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
    version: u32,
}

impl CommitResults {
    /// Reads the text of a file, all of it.
    ///
    /// # Errors
    /// Returns why the text isn't such a file.
    pub fn parse(text: &str) -> Result<Self, ResultsProblem> {
        Self::parse_rows(text).and_then(all_rows)
    }

    /// Reads the text of a file, and says which rows are left out as they are wrong.
    ///
    /// # Errors
    /// Returns why the text isn't such a file.
    pub fn parse_rows(text: &str) -> Result<(Self, Vec<ResultsProblem>), ResultsProblem> {
        let file: CommitFile = read_versioned(text, VERSION)?;
        let row = |(name, row): (String, Value)| {
            let problem =
                |error: serde_json::Error| ResultsProblem::Row { benchmark: name.clone(), error: error.to_string() };
            let cells = Vec::deserialize(row).map_err(problem)?;
            let result = BenchmarkResult::of_row(&file.result_columns, cells).map_err(problem)?;
            check_params(&name, &result.params)?;
            Ok((name, result))
        };
        let (results, left_out) = right_rows(file.results.0.into_iter().map(row));
        let read = Self {
            results: OrderedMap(results),
            commit: file.commit_hash,
            environment: file.env_name,
            date: file.date,
            params: file.params,
            durations: file.durations,
            other: file.other,
        };
        Ok((read, left_out))
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let others = self.results.0.iter().flat_map(|(_, result)| result.other.keys().map(String::as_str));
        let mut columns: Vec<&str> = COLUMNS.to_vec();
        for other in others {
            if !columns.contains(&other) {
                columns.push(other);
            }
        }
        let file = CommitFile {
            commit_hash: self.commit.clone(),
            env_name: self.environment.clone(),
            date: self.date,
            params: self.params.clone(),
            results: OrderedMap(
                self.results
                    .0
                    .iter()
                    .map(|(name, result)| (name.clone(), Value::Array(result.row(&columns))))
                    .collect(),
            ),
            result_columns: columns.into_iter().map(str::to_owned).collect(),
            durations: self.durations.clone(),
            other: self.other.clone(),
            version: VERSION,
        };
        bare(&serde_json::to_string(&file).unwrap_or_default())
    }

    /// Whether asv measured it, which says with which Python.
    pub fn is_of_asv(&self) -> bool {
        self.other.get("python").and_then(Value::as_str).is_some_and(|version| !version.is_empty())
    }

    /// The name of the file: the first eight digits of the commit, and the environment.
    pub fn file_name(&self) -> String {
        format!("{}-{}.json", short(&self.commit), self.environment)
    }

    /// Takes the rows of a later measurement of the same commit and environment. Rows that it lacks stay.
    pub fn take(&mut self, later: Self) {
        later.results.0.into_iter().for_each(|(name, result)| self.results.set(&name, result));
        later.durations.0.into_iter().for_each(|(name, seconds)| self.durations.set(&name, seconds));
        (self.params, self.date) = (later.params, later.date);
        self.other.extend(later.other);
    }
}

/// A date in milliseconds: a whole number, another one, or none.
fn date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let found = Option::<f64>::deserialize(deserializer)?;
    Ok(found.map_or(0, |milliseconds| milliseconds as i64))
}

/// Names and values, of which each is text, a number or nothing.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OrderedMap<Option<String>>, D::Error> {
    let all = OrderedMap::<Value>::deserialize(deserializer)?;
    let word = |value: Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    };
    Ok(OrderedMap(all.0.into_iter().map(|(name, value)| (name, word(value))).collect()))
}

/// Which version of its format a file has.
#[derive(Deserialize)]
struct FileVersion {
    version: Option<u64>,
}

/// Reads a file that says which version of its format it has.
pub(super) fn read_versioned<T: for<'a> Deserialize<'a>>(text: &str, version: u32) -> Result<T, ResultsProblem> {
    let text = strict(text);
    let syntax = |error: serde_json::Error| ResultsProblem::Syntax {
        line: error.line(),
        is_cut: error.is_eof(),
        error: error.to_string(),
    };
    match serde_json::from_str(&text).map_err(syntax)? {
        FileVersion { version: Some(found) } if found == u64::from(version) => {
            serde_json::from_str(&text).map_err(syntax)
        }
        FileVersion { version: found } => Err(ResultsProblem::Version { found, expected: version }),
    }
}

/// The rows of a file that are right, and what is wrong with the others.
pub(super) fn right_rows<R: Default + Extend<T>, T>(
    rows: impl Iterator<Item = Result<T, ResultsProblem>>,
) -> (R, Vec<ResultsProblem>) {
    let (mut right, mut left_out) = (R::default(), Vec::new());
    for row in rows {
        match row {
            Ok(row) => right.extend([row]),
            Err(problem) => left_out.push(problem),
        }
    }
    (right, left_out)
}

/// What a file holds, if no row of it is wrong.
pub(super) fn all_rows<T>((read, left_out): (T, Vec<ResultsProblem>)) -> Result<T, ResultsProblem> {
    left_out.into_iter().next().map_or(Ok(read), Err)
}

impl BenchmarkResult {
    fn of_row(columns: &[String], row: Vec<Value>) -> serde_json::Result<Self> {
        let mut read = Self::default();
        for (column, cell) in columns.iter().zip(row) {
            match column.as_str() {
                "result" => read.result = Option::deserialize(cell)?,
                "params" => read.params = or_default(cell)?,
                "version" => read.version = Option::deserialize(cell)?,
                "started_at" => read.started_at = Option::deserialize(cell)?,
                "duration" => read.duration = Option::deserialize(cell)?,
                "stats_ci_99_a" => read.ci_99_low = or_default(cell)?,
                "stats_ci_99_b" => read.ci_99_high = or_default(cell)?,
                "stats_q_25" => read.quartile_low = or_default(cell)?,
                "stats_q_75" => read.quartile_high = or_default(cell)?,
                "stats_number" => read.number = or_default(cell)?,
                "stats_repeat" => read.repeat = or_default(cell)?,
                "samples" => read.samples = or_default(cell)?,
                "profile" => read.profile = Option::deserialize(cell)?,
                _ => drop(read.other.insert(column.clone(), cell)),
            }
        }
        Ok(read)
    }

    /// The row, without what is missing at its end.
    fn row(&self, columns: &[&str]) -> Vec<Value> {
        let value = |column: &&str| match *column {
            "result" => json(&self.result),
            "params" => json(&self.params),
            "version" => json(&self.version),
            "started_at" => json(&self.started_at),
            "duration" => json(&self.duration),
            "stats_ci_99_a" => list(&self.ci_99_low),
            "stats_ci_99_b" => list(&self.ci_99_high),
            "stats_q_25" => list(&self.quartile_low),
            "stats_q_75" => list(&self.quartile_high),
            "stats_number" => list(&self.number),
            "stats_repeat" => list(&self.repeat),
            "samples" => list(&self.samples),
            "profile" => json(&self.profile),
            other => self.other.get(other).cloned().unwrap_or(Value::Null),
        };
        let mut row: Vec<Value> = columns.iter().map(value).collect();
        row.truncate(row.iter().rposition(|value| !value.is_null()).map_or(0, |last| last + 1));
        row
    }

    /// The numbers of each combination of these values of parameters; what wasn't measured with it is missing.
    pub fn of_params(&self, params: &[Vec<String>]) -> Vec<ResultNumber> {
        self.by_params(params, self.result.as_deref().unwrap_or_default())
    }

    /// How much the number of each combination counts; `None` where that is unknown.
    pub fn weights(&self, params: &[Vec<String>]) -> Vec<Option<f64>> {
        let [low, high] = [&self.ci_99_low, &self.ci_99_high].map(|ends| self.by_params(params, ends));
        let weight = |(low, high): (ResultNumber, ResultNumber)| weight((low.number()?, high.number()?));
        low.into_iter().zip(high).map(weight).collect()
    }

    /// The items of a list of this result for each combination of these values of parameters; what wasn't measured with it
    /// is missing.
    pub fn by_params(&self, params: &[Vec<String>], numbers: &[ResultNumber]) -> Vec<ResultNumber> {
        self.places(params).into_iter().map(|place| item(numbers, place?)).map(Option::unwrap_or_default).collect()
    }

    /// What each combination of these values of parameters gave; `None` of one that wasn't run.
    pub fn outcomes(&self, params: &[Vec<String>]) -> Vec<Option<ResultNumber>> {
        let numbers = self.result.as_deref().unwrap_or_default();
        let outcome = |place| item(numbers, place).unwrap_or_default();
        self.places(params).into_iter().map(|place| place.map(outcome)).collect()
    }

    /// The place of each combination of these values of parameters among those of this result.
    pub(super) fn places(&self, params: &[Vec<String>]) -> Vec<Option<usize>> {
        if self.params == params {
            return (0..params.iter().map(Vec::len).product()).map(Some).collect();
        }
        // Of two that are alike the first counts.
        let own: HashMap<_, _> =
            combinations(&self.params).into_iter().enumerate().map(|(place, one)| (one, place)).rev().collect();
        combinations(params).iter().map(|wanted| own.get(wanted).copied()).collect()
    }
}

fn item(numbers: &[ResultNumber], place: usize) -> Option<ResultNumber> {
    numbers.get(place).copied()
}

/// How much a number with this 99 % interval counts among others: 2 over its width; `None` if that is infinite or 0.
pub(in crate::history) fn weight((low, high): (f64, f64)) -> Option<f64> {
    let width = (high - low).abs();
    (width.is_finite() && width > 0.0).then(|| 2.0 / width)
}

/// A cell; what is missing is empty.
fn or_default<T: for<'a> Deserialize<'a> + Default>(cell: Value) -> serde_json::Result<T> {
    Ok(Option::deserialize(cell)?.unwrap_or_default())
}

fn json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// A list; nothing for one that is empty.
fn list<T: Serialize>(values: &[T]) -> Value {
    if values.is_empty() { Value::Null } else { json(&values) }
}

/// The most combinations of parameters that a benchmark may have.
const MOST_COMBINATIONS: usize = 100_000;

/// Refuses parameters of too many combinations: few values of many parameters have more than any memory.
pub(super) fn check_params(benchmark: &str, params: &[Vec<String>]) -> Result<(), ResultsProblem> {
    // A parameter without values has none, but those of the others are made first.
    match params.iter().fold(1, |count: usize, values| count.saturating_mul(values.len().max(1))) {
        0..=MOST_COMBINATIONS => Ok(()),
        count => Err(ResultsProblem::Row {
            benchmark: benchmark.to_owned(),
            error: format!(
                "its parameters have {} combinations; perfprop reads at most {}",
                grouped(count as u64),
                grouped(MOST_COMBINATIONS as u64)
            ),
        }),
    }
}

/// Each value of each parameter with each of the others, the last parameter varying fastest.
pub fn combinations(params: &[Vec<String>]) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for values in params {
        let with = |one: Vec<_>| values.iter().map(move |value| [&one[..], &[value.as_str()]].concat());
        all = all.into_iter().flat_map(with).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    const FILE: &str = r#"{"commit_hash": "0123456789abcdef", "env_name": "e", "date": 5, "params": {"machine": "m", "arch": "x", "ram": null},
        "python": "3.11", "result_columns": ["result", "params", "version", "new", "stats_ci_99_a", "stats_ci_99_b"],
        "results": {"b": [[1.5, NaN, null, 2], [["1", "2"], ["x", "y"]], "v", 7, [1, null, null, -Infinity], [2, null, null, 3]],
                    "a": [null, []]}, "durations": {"<build>": 1.5}, "version": 2}"#;

    fn params(text: &[&[&str]]) -> Vec<Vec<String>> {
        text.iter().map(|values| values.iter().map(|&value| value.to_owned()).collect()).collect()
    }

    #[test]
    fn a_file_is_read_and_written() {
        use ResultNumber::{Missing, Number, Skipped};
        let read = CommitResults::parse(FILE).unwrap();
        assert_eq!(read.file_name(), "01234567-e.json");
        let names: Vec<_> = read.params.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["machine", "arch", "ram"], "in the order of the file");
        let b = read.results.get("b").unwrap();
        assert_eq!(b.result, Some(vec![Number(1.5), Skipped, Missing, Number(2.0)]));
        assert_eq!((b.other.get("new"), b.started_at), (Some(&Value::from(7)), None));
        assert_eq!(read.results.get("a").unwrap().result, None);
        let again = CommitResults::parse(&read.to_text()).unwrap();
        assert_eq!(again, read, "nothing is lost");
        assert!(read.to_text().contains(r#""a":[null,[]]"#), "missing columns at the end are left out");
    }

    #[test]
    fn numbers_are_those_of_the_parameters_of_now() {
        let read = CommitResults::parse(FILE).unwrap();
        let b = read.results.get("b").unwrap();
        let now = params(&[&["2", "3"], &["y", "x"]]);
        use ResultNumber::{Missing, Number};
        assert_eq!(b.of_params(&now), [Number(2.0), Missing, Missing, Missing]);
        assert_eq!(b.outcomes(&now), [Some(Number(2.0)), Some(Missing), None, None], "3 wasn't run");
        // 2 / (2 - 1); an infinite end gives none.
        assert_eq!(b.weights(&params(&[&["1", "2"], &["x", "y"]])), [Some(2.0), None, None, None]);
        assert_eq!(combinations(&[]), [Vec::<&str>::new()], "one, of nothing");
    }

    #[test]
    fn many_combinations_are_read_at_once_and_too_many_are_refused() {
        let values = |count: usize| (0..count).map(|value| value.to_string()).collect::<Vec<_>>();
        let (now, then) = (vec![values(300), values(300)], vec![values(300), values(301)]);
        let numbers: Vec<_> = (0..90_000_u32).map(|number| ResultNumber::Number(number.into())).collect();
        let one = BenchmarkResult { params: now.clone(), result: Some(numbers.clone()), ..BenchmarkResult::default() };
        assert_eq!(one.of_params(&now), numbers);
        let of_then = one.of_params(&then);
        assert_eq!((of_then.len(), of_then[300], of_then[301]), (90_300, ResultNumber::Missing, numbers[300]));
        let few = BenchmarkResult { result: None, ..one };
        assert_eq!(few.of_params(&now), vec![ResultNumber::Missing; 90_000]);
        // 2 to the power of 64.
        let wide = [vec![vec!["0", "1"]; 64], vec![Vec::new()]].concat();
        let text = FILE.replace(r#""a": [null, []]"#, &format!(r#""a": [null, {wide:?}]"#));
        let error = CommitResults::parse(&text).unwrap_err().to_string();
        assert!(error.contains("benchmark 'a': its parameters have") && error.contains("at most 100,000"), "{error}");
    }

    #[test]
    fn what_was_measured_later_counts() {
        let mut results = CommitResults::parse(FILE).unwrap();
        let mut later = CommitResults { results: OrderedMap::default(), ..results.clone() };
        later.results.set("a", BenchmarkResult { version: Some("2".into()), ..BenchmarkResult::default() });
        results.take(later);
        assert_eq!(results.results.get("a").unwrap().version.as_deref(), Some("2"));
        assert!(results.results.get("b").is_some());
    }

    #[test]
    fn numbers_stand_for_words_and_a_date_may_be_missing() {
        let read = |date: &str| {
            let text = FILE
                .replace(r#""date": 5"#, &format!(r#""date": {date}"#))
                .replace(r#""arch": "x""#, r#""num_cpu": 4"#);
            CommitResults::parse(&text).unwrap()
        };
        assert_eq!(
            [read("1601728000000").date, read("1601728000000.0").date, read("null").date],
            [1_601_728_000_000, 1_601_728_000_000, 0]
        );
        assert_eq!(read("5").params.get("num_cpu"), Some(&Some("4".to_owned())));
        assert_eq!(read("5").params.get("ram"), Some(&None));
    }

    #[test]
    fn only_a_row_that_is_wrong_is_left_out() {
        for wrong in [r#"[["x"], []]"#, "7", r#"[[1], "y"]"#] {
            let text = FILE.replace(r#"[null, []]"#, wrong);
            let (read, left_out) = CommitResults::parse_rows(&text).unwrap();
            assert!(read.results.get("b").is_some() && read.results.get("a").is_none());
            assert!(left_out.len() == 1 && left_out[0].to_string().contains("benchmark 'a': "), "{left_out:?}");
        }
    }

    #[test]
    fn what_is_no_file_is_told() {
        let error = |text: &str| CommitResults::parse(text).unwrap_err().to_string();
        assert!(
            error(&FILE[..90]).contains("line 1") && error(&FILE[..90]).contains("cut short"),
            "{}",
            error(&FILE[..90])
        );
        let lacks = error(&FILE.replace("commit_hash", "hash"));
        assert!(lacks.contains("missing field `commit_hash`") && !lacks.contains("cut short"), "{lacks}");
        assert!(error(&FILE.replace("\"version\": 2", "\"version\": 1")).contains("version 1"));
        assert!(error("{}").contains("no version"));
        assert!(error(&FILE.replace("[1.5,", "[\"x\",")).contains("'b'"));
    }
}
