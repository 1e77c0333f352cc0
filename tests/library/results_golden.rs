//! Tests results on the disk, series and regressions against what asv made of the same folders.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use perfprop::history::results::{BenchmarkList, CommitResults, ResultStore, StoredResults};
use perfprop::history::{
    AsvRules, BenchmarkRegression, BenchmarkSeries, SoughtSteps, THRESHOLD, all_regressions, benchmark_summaries,
    series, series_params,
};
use perfprop::steps::StepMethod;
use serde_json::{Value, json};

use crate::goldens::TOOLS;

/// A folder of asv's: its results, and what asv made of them.
struct Published {
    folder: PathBuf,
    stored: StoredResults,
    /// The places of commits.
    revisions: BTreeMap<String, u64>,
    index: Value,
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// All folders.
fn published() -> Vec<Published> {
    let Some(root) = TOOLS.find("asv-results") else { return Vec::new() };
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let one = |folder: PathBuf| {
        let stored = ResultStore::new(&folder.join("results")).read().unwrap();
        assert!(stored.unreadable.is_empty(), "{:?}", stored.unreadable);
        assert!(!stored.machines.is_empty());
        let index = read(&folder.join("html/index.json"));
        let hashes = index["revision_to_hash"].as_object().unwrap();
        let place =
            |(revision, hash): (&String, &Value)| (hash.as_str().unwrap().to_owned(), revision.parse().unwrap());
        Published { stored, revisions: hashes.iter().map(place).collect(), index, folder }
    };
    let all: Vec<_> = folders.filter(|path| path.join("results").is_dir()).map(one).collect();
    assert!(!all.is_empty());
    all
}

impl Published {
    /// What asv tells series apart by: null is empty, and a name that only other results have is null.
    fn params(&self, one: &BenchmarkSeries) -> BTreeMap<String, Option<String>> {
        let commits = self.stored.machines.iter().flat_map(|machine| &machine.commits);
        let mut params: BTreeMap<_, _> =
            commits.flat_map(|commit| series_params(commit).into_keys()).map(|name| (name, None)).collect();
        let set = |(name, value): (&String, &Option<String>)| (name.clone(), Some(value.clone().unwrap_or_default()));
        params.extend(one.params.iter().map(set));
        params.insert("branch".into(), Some("main".into()));
        params
    }

    /// The path of a series among asv's graphs.
    fn graph(&self, one: &BenchmarkSeries) -> String {
        let part = |(name, value): (String, Option<String>)| match value.as_deref() {
            None => format!("{name}-null"),
            Some("") => name,
            Some(value) => format!("{name}-{value}"),
        };
        let mut parts: Vec<_> = self.params(one).into_iter().map(part).collect();
        parts.sort();
        format!("graphs/{}/{}.json", parts.join("/"), one.benchmark)
    }

    /// What asv says of a regression's series: the names that have several values which aren't empty.
    fn told_apart(&self, one: &BenchmarkSeries, all: &[BenchmarkSeries]) -> BTreeMap<String, Option<String>> {
        let of_all: Vec<_> = all.iter().map(|one| self.params(one)).collect();
        let values = |name: &String| {
            let values = of_all.iter().filter_map(|params| params[name].as_deref().filter(|value| !value.is_empty()));
            values.collect::<BTreeSet<_>>().len()
        };
        self.params(one).into_iter().filter(|(name, _)| values(name) > 1).collect()
    }
}

/// The points of a series as asv writes them.
fn points(one: &BenchmarkSeries, has_params: bool) -> Value {
    let point = |point: &perfprop::history::SeriesPoint| match has_params {
        true => json!([point.revision, point.values]),
        false => json!([point.revision, point.values[0]]),
    };
    one.points.iter().map(point).collect()
}

/// Equal, but for how numbers are written, and for the order in which those of one commit were added: asv takes files as
/// the file system lists them.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 4.0 * f64::EPSILON * b.abs()
        }
        (a, b) => a == b,
    }
}

#[test]
fn golden_asv_results_have_the_series_of_asv() {
    for one in published() {
        let all = series(&one.stored, &one.revisions);
        let mut count = 0;
        for series in &all {
            let benchmark = &one.stored.benchmarks.0[&series.benchmark];
            let path = one.folder.join("html").join(one.graph(series));
            let (found, expected) = (points(series, !benchmark.params.is_empty()), read(&path));
            assert!(is_same(&found, &expected), "{}: {found} instead of {expected}", path.display());
            count += 1;
        }
        let graphs = one.index["graph_param_list"].as_array().unwrap().len();
        assert!(count > 0 && count <= graphs * one.stored.benchmarks.0.len());
    }
}

/// asv's rules of a folder.
fn rules(one: &Published) -> AsvRules {
    let path = one.folder.join("asv.conf.json");
    let text = if path.exists() { fs::read_to_string(path).unwrap() } else { "{}".to_owned() };
    let revision = |name: &str| {
        let tag = one.index["tags"][name].as_u64();
        tag.or_else(|| one.revisions.iter().find(|(hash, _)| hash.starts_with(name)).map(|(_, place)| *place))
    };
    AsvRules::parse(&text, revision).unwrap().of_branch(Some("main".into()))
}

/// Numbers that are equal within a share of 1e-9.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(a, b)),
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            (a - b).abs() <= 1e-9 * b.abs()
        }
        (a, b) => a == b,
    }
}

/// A regression as asv writes it. The first revision is missing where the next commit is the one to blame.
fn written(one: &Published, found: &BenchmarkRegression, all: &[BenchmarkSeries]) -> Value {
    let rise = |rise: &perfprop::steps::Regression| {
        let after = rise.after.unwrap();
        let before = (rise.before + 1 < after).then_some(rise.before);
        json!([before, after, rise.value_before, rise.best_after])
    };
    let rises: Vec<Value> = found.rises.found.iter().map(rise).collect();
    let (latest, best) = (found.rises.latest, found.rises.best);
    let series = &all[found.series];
    let params = one.told_apart(series, all);
    let set = |value: Option<&Option<String>>| value.cloned().flatten().filter(|value| !value.is_empty());
    let shared =
        |name: &String| found.params.contains_key(name) && set(found.params.get(name)) == set(params.get(name));
    assert!(params.keys().all(shared), "{params:?} {:?}", found.params);
    json!([found.entry, one.graph(series), params, found.combination, latest, best, rises])
}

#[test]
fn golden_asv_results_have_the_summaries_of_asv() {
    for one in published() {
        let all = series(&one.stored, &one.revisions);
        for summary in benchmark_summaries(&all) {
            let path = one.folder.join("html/graphs/summary").join(format!("{}.json", summary.benchmark));
            let (found, expected) = (json!(summary.points), read(&path));
            assert!(is_near(&found, &expected), "{}: {found} instead of {expected}", path.display());
        }
    }
}

/// The last step of a series as asv's list has it.
fn listed(one: &BenchmarkSeries, has_params: bool, combination: usize) -> Value {
    let steps = one.steps(combination, StepMethod::Potts);
    let place = has_params.then_some(combination);
    let Some(last) = steps.last() else { return json!([one.benchmark, place, null, null, null, null, null]) };
    let before = steps.len().checked_sub(2).map(|place| &steps[place]);
    let change = before.map(|before| match before.right == last.left {
        true => json!([null, last.left]),
        false => json!([before.right - 1, last.left]),
    });
    let value = before.map(|before| before.value);
    json!([one.benchmark, place, last.right - 1, last.value, last.error, value, change])
}

#[test]
fn golden_asv_results_have_the_last_steps_of_asv() {
    for one in published() {
        for series in series(&one.stored, &one.revisions).iter().filter(|series| series.measured() > 0) {
            let path = one.folder.join("html").join(one.graph(series));
            let list = read(&path.with_file_name("summary.json"));
            let has_params = !one.stored.benchmarks.0[&series.benchmark].params.is_empty();
            for combination in 0..series.combinations() {
                let found = listed(series, has_params, combination);
                let is_it = |row: &&Value| row["name"] == found[0] && row["idx"] == found[1];
                let row = list.as_array().unwrap().iter().find(is_it).unwrap();
                let keys = ["name", "idx", "last_rev", "last_value", "last_err", "prev_value", "change_rev"];
                let expected: Value = keys.iter().map(|key| row[key].clone()).collect();
                assert!(is_near(&found, &expected), "{found} instead of {expected}");
            }
        }
    }
}

#[test]
fn golden_asv_results_have_the_regressions_of_asv() {
    for one in published() {
        let all = series(&one.stored, &one.revisions);
        let rules = rules(&one);
        let found =
            all_regressions(&all, &one.stored.benchmarks, StepMethod::Potts, SoughtSteps::Regressions, |entry| {
                rules.rule(entry, THRESHOLD)
            });
        let mut found: Vec<Value> = found.iter().map(|found| written(&one, found, &all)).collect();
        let mut expected = read(&one.folder.join("html/regressions.json"))["regressions"].as_array().unwrap().clone();
        let key = |entry: &Value| format!("{}{}", entry[0], entry[1]);
        found.sort_by_key(key);
        expected.sort_by_key(key);
        let keys = |all: &[Value]| all.iter().map(key).collect::<Vec<_>>();
        assert_eq!(keys(&found), keys(&expected), "{}", one.folder.display());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(is_near(found, expected), "{found} instead of {expected}");
        }
    }
}

#[test]
fn golden_asv_results_are_written_as_they_were_read() {
    for one in published() {
        for machine in &one.stored.machines {
            for commit in &machine.commits {
                assert_eq!(CommitResults::parse(&commit.to_text()).unwrap(), *commit);
                let folder = one.folder.join("results").join(machine.machine.name());
                assert!(folder.join(commit.file_name()).exists(), "{}", commit.file_name());
            }
        }
        assert_eq!(BenchmarkList::parse(&one.stored.benchmarks.to_text()).unwrap(), one.stored.benchmarks);
    }
}
