//! Prints regressions: as a table, in Markdown and JSON, and as the files JUnit and SARIF that services of continuous
//! integration read.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::history::{CommitNames, ToldSeries, benchmark_number, change, in_environment, table};
use super::steps::share;
use super::wrapped;
use crate::history::{
    ADDED, BenchmarkRegression, BenchmarkSeries, DifferingParams, LEAST_NUMBERS, SoughtSteps, counted_event,
};
use crate::names::{markdown, markup, shown};
use crate::number::counted;
use crate::steps::{Regression, Step};

/// What is said of a step between whose sides the machine may have changed.
const APART: &str = "measured in different runs";

/// A rise of a benchmark, as it is told.
#[derive(Default)]
struct ToldRise {
    /// The place of the series.
    series: usize,
    entry: String,
    unit: String,
    before: f64,
    /// The level right behind it.
    after: f64,
    /// The level since that is nearest to the one before.
    best_after: f64,
    /// The 95 % interval of what the number changed by, where it is that of one step whose values tell it.
    interval: Option<(f64, f64)>,
    /// How likely chance alone makes such a step.
    chance: Option<f64>,
    range: String,
    subject: String,
    /// The hashes of the last commit before it, and of the first one after it.
    ends: (Option<String>, Option<String>),
    /// The machine and the environment, where several were measured.
    on: String,
    /// The machine.
    machine: String,
    /// The environment, where the benchmark was measured in several on the machine.
    environment: String,
    /// What else of the benchmark changed there, and how.
    moved: Vec<(String, String)>,
    /// Whether no `history run` measured commits on both sides of it.
    is_measured_apart: bool,
}

impl CommitNames<'_> {
    /// The whole hash of a commit.
    fn whole_hash(&self, revision: usize) -> Option<String> {
        Some(self.0.get(revision)?.hash.clone())
    }

    /// The commits of which one made a number larger, and what to look at first.
    fn range(&self, rise: &Regression) -> (String, String) {
        let Some(after) = rise.after else { return (self.hash(rise.before).to_owned(), String::new()) };
        match after - rise.before {
            1 => (self.hash(after).to_owned(), self.subject(after)),
            between => (
                format!("{}..{}", self.hash(rise.before), self.hash(after)),
                format!("one of {between} commits, up to: {}", self.subject(after)),
            ),
        }
    }
}

impl<'a> ToldSeries<'a> {
    fn rises(&self, found: &[BenchmarkRegression]) -> Vec<ToldRise> {
        let mut steps = KnownSteps { of: self, known: BTreeMap::new() };
        let environments = self.environments();
        let rises = found.iter().flat_map(|one| one.rises.found.iter().map(move |rise| (one, rise)));
        let told = |(one, rise): (&BenchmarkRegression, &Regression)| ToldRise {
            environment: told_params(&environments[one.series]),
            ..self.told(one, rise, &mut steps)
        };
        rises.map(told).collect()
    }

    fn told(&self, one: &BenchmarkRegression, rise: &Regression, steps: &mut KnownSteps<'_>) -> ToldRise {
        let of = &self.series[one.series];
        let (range, subject) = self.commits.range(rise);
        let whole_hash = |revision: usize| self.commits.whole_hash(revision);
        let combination = one.combination.unwrap_or(0);
        let change = rise.after.and_then(|after| of.change_at(combination, self.method, after));
        ToldRise {
            series: one.series,
            entry: one.entry.clone(),
            unit: self.unit(&of.benchmark).to_owned(),
            before: rise.value_before,
            after: rise.value_after,
            best_after: rise.best_after,
            interval: change.and_then(|change| change.interval),
            chance: change.map(|change| change.chance),
            range,
            subject,
            ends: (whole_hash(rise.before), rise.after.and_then(whole_hash)),
            on: told_params(&one.params),
            machine: of.params.get("machine").cloned().flatten().unwrap_or_default(),
            environment: String::new(),
            moved: self.moved_with(one, rise, steps),
            is_measured_apart: rise
                .after
                .is_some_and(|after| steps.are_measured_apart(one.series, combination, [rise.before, after])),
        }
    }

    /// The benchmark of a series, and what was measured of it: `sort` and `cycles`.
    fn measured(&self, one: &'a BenchmarkSeries) -> (&'a str, &'a str) {
        counted_event(&one.benchmark, self.unit(&one.benchmark)).unwrap_or((&one.benchmark, "time"))
    }

    /// What else of the same benchmark changed from one commit to the other, and the kernel.
    fn moved_with(
        &self,
        one: &BenchmarkRegression,
        rise: &Regression,
        steps: &mut KnownSteps<'_>,
    ) -> Vec<(String, String)> {
        let of = &self.series[one.series];
        let (bench, _) = self.measured(of);
        let mut moved = Vec::new();
        for (place, other) in self.series.iter().enumerate() {
            let (other_bench, quantity) = self.measured(other);
            let is_of_same = other_bench == bench && other.params == of.params && other.benchmark != of.benchmark;
            if !is_of_same || other.combinations() != of.combinations() {
                continue;
            }
            let mut level = |revision| steps.level(place, one.combination.unwrap_or(0), revision);
            if let Some((before, after)) = level(rise.before).zip(rise.after.and_then(level))
                && before != after
            {
                moved.push((quantity.to_owned(), change(before, after)));
            }
        }
        let kernels = rise.after.and_then(|after| of.kernel_change(rise.before as u64, after as u64));
        moved.extend(kernels.map(|(before, after)| ("kernel".to_owned(), format!("{before} to {after}"))));
        moved
    }
}

/// The steps of series that were looked at, each found once.
struct KnownSteps<'a> {
    of: &'a ToldSeries<'a>,
    /// By the place of the series and the combination of parameters.
    known: BTreeMap<(usize, usize), Vec<Step>>,
}

impl KnownSteps<'_> {
    /// The step of a series that a revision belongs to.
    fn step(&mut self, series: usize, combination: usize, revision: usize) -> Option<Step> {
        let find = || self.of.series[series].steps(combination, self.of.method);
        let steps = self.known.entry((series, combination)).or_insert_with(find);
        steps.iter().find(|step| (step.left..step.right).contains(&revision)).cloned()
    }

    /// The level of a series at a revision.
    fn level(&mut self, series: usize, combination: usize, revision: usize) -> Option<f64> {
        self.step(series, combination, revision).map(|step| step.value)
    }

    /// Whether the steps that two revisions belong to were measured by different runs.
    fn are_measured_apart(&mut self, series: usize, combination: usize, revisions: [usize; 2]) -> bool {
        let [before, after] = revisions.map(|revision| self.step(series, combination, revision));
        let of = &self.of.series[series];
        before.zip(after).is_some_and(|(before, after)| of.are_measured_apart(combination, [&before, &after]))
    }
}

/// What benchmarks lost, a line for each rise, with what else of the benchmark changed there.
pub fn benchmark_regressions(found: &[BenchmarkRegression], of: &ToldSeries<'_>) -> String {
    let row = |rise: ToldRise| {
        let notes = rise.notes();
        let notes = if notes.is_empty() { notes } else { format!("  ({})", shown(&notes)) };
        vec![
            shown(&rise.name()).into_owned(),
            rise.number(rise.before),
            rise.number(rise.after),
            rise.change(),
            rise.chance.map_or_else(|| "—".to_owned(), share),
            rise.range,
            rise.subject + &notes,
        ]
    };
    let heads = [
        ("BENCHMARK", false),
        ("BEFORE", true),
        ("AFTER", true),
        ("CHANGE", true),
        ("CHANCE", true),
        ("COMMIT", false),
        ("", false),
    ];
    let rises = of.rises(found);
    let are_apart = rises.iter().any(|rise| rise.is_measured_apart);
    let rows: Vec<_> = rises.into_iter().map(row).collect();
    let mut out =
        table(&heads, &rows) + "\nCHANCE: how likely noise alone makes a step as clear somewhere in the series\n";
    if are_apart {
        let why = format!(
            "{APART}: no history run measured commits on both sides of the step, so that the machine may have changed between; \
             perfprop history compare --run A B tells whether the commit did it"
        );
        out += &format!("{}\n", wrapped(&why, 0));
    }
    out
}

/// What benchmarks lost, as a table in Markdown.
pub fn markdown_regressions(found: &[BenchmarkRegression], of: &ToldSeries<'_>) -> String {
    let mut out = "| Benchmark | Before | After | Change | Chance | Commit | Moved with it |\n".to_owned();
    out += "|:---|---:|---:|---:|---:|:---|:---|\n";
    for rise in of.rises(found) {
        let moved: Vec<_> =
            rise.moved.iter().map(|(name, change)| format!("{} {}", markdown(name), markdown(change))).collect();
        let number = |number: f64| markdown(&rise.number(number));
        let chance = rise.chance.map_or_else(|| "—".to_owned(), share);
        out += &format!(
            "| {} | {} | {} | {} | {chance} | {} {} | {} |\n",
            markdown(&rise.name()),
            number(rise.before),
            number(rise.after),
            [rise.change()].into_iter().chain(rise.left()).collect::<Vec<_>>().join(", "),
            markdown(&rise.range),
            markdown(&rise.subject),
            moved.into_iter().chain(rise.is_measured_apart.then(|| APART.to_owned())).collect::<Vec<_>>().join(", "),
        );
    }
    out
}

/// What benchmarks lost, as JSON with all digits, under the name of what was looked for.
pub fn json_regressions(found: &[BenchmarkRegression], sought: SoughtSteps, of: &ToldSeries<'_>) -> Value {
    let rise = |rise: ToldRise| {
        let moved: Vec<Value> =
            rise.moved.iter().map(|(name, change)| json!({"name": name, "change": change})).collect();
        json!({
            "benchmark": rise.entry, "on": rise.on, "machine": rise.machine, "unit": rise.unit, "before": rise.before, "after": rise.after, "best_after": rise.best_after,
            "change_low": rise.interval.map(|(low, _)| low), "change_high": rise.interval.map(|(_, high)| high), "chance": rise.chance, "commits": rise.range, "last_before": rise.ends.0, "first_after": rise.ends.1,
            "subject": rise.subject, "moved_with": moved, "measured_apart": rise.is_measured_apart,
        })
    };
    let name = match sought {
        SoughtSteps::Regressions => "regressions",
        SoughtSteps::Improvements => "improvements",
    };
    json!({ name: of.rises(found).into_iter().map(rise).collect::<Vec<_>>() })
}

/// The values of the machine and the environment by which a series differs from others: `machine m, os 6.1`. What was
/// added is told once.
pub(super) fn told_params(params: &DifferingParams) -> String {
    let part = |(name, value): (&String, &Option<String>)| match value.as_deref() {
        Some(ADDED) => ADDED.to_owned(),
        // asv's empty version is the newest one.
        Some("") => name.clone(),
        value => format!("{name} {}", value.unwrap_or("none")),
    };
    let mut parts: Vec<String> = Vec::new();
    for part in params.iter().map(part) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", ")
}

impl ToldRise {
    /// The benchmark, and on which machine where there are several.
    fn name(&self) -> String {
        if self.on.is_empty() { self.entry.clone() } else { format!("{} ({})", self.entry, self.on) }
    }

    /// A number of the benchmark, with its unit.
    fn number(&self, number: f64) -> String {
        benchmark_number(number, &self.entry, &self.unit)
    }

    /// By what part the number changed, and how far that may be off: `+24.9% ±1.2%`.
    fn change(&self) -> String {
        let half = half_part(self.before, self.after, self.interval);
        change(self.before, self.after) + &half.map_or_else(String::new, |half| format!(" ±{:.1}%", 100.0 * half))
    }

    /// What is left of the change now, where it isn't all: `of which +7.7% is left`.
    fn left(&self) -> Option<String> {
        left(self.before, self.after, self.best_after)
    }

    /// What else is worth knowing: how much is left, what changed with it, and whether the machine may have done it.
    fn notes(&self) -> String {
        let moved: Vec<_> = self.moved.iter().map(|(name, change)| format!("{name} {change}")).collect();
        let moved = (!moved.is_empty()).then(|| format!("with {}", moved.join(", ")));
        let apart = self.is_measured_apart.then(|| APART.to_owned());
        self.left().into_iter().chain(moved).chain(apart).collect::<Vec<_>>().join("; ")
    }

    /// What happened, in a sentence:
    /// `sort: 10.0 ms -> 12.0 ms (+20.0% ±1.2%) in 00000010, chance 1e-09: Compare names`.
    fn sentence(&self) -> String {
        let number = |number: f64| self.number(number);
        let mut out = format!("{}: {} -> {} ({})", self.name(), number(self.before), number(self.after), self.change());
        out += &format!(" in {}", self.range);
        if let Some(chance) = self.chance {
            out += &format!(", chance {}", share(chance));
        }
        if !self.subject.is_empty() {
            out += &format!(": {}", self.subject);
        }
        let notes = self.notes();
        if !notes.is_empty() {
            out += &format!(" ({notes})");
        }
        shown(&out).into_owned()
    }
}

/// How far a change may be off on its larger side, as a part of the level before it, by the ends of its interval.
pub(crate) fn half_part(before: f64, after: f64, interval: Option<(f64, f64)>) -> Option<f64> {
    let by = after - before;
    let half = |(low, high): (f64, f64)| (by - low).max(high - by).max(0.0) / before.abs();
    interval.map(half).filter(|half| half.is_finite())
}

/// What is left of a change at the best level since, where that tells it from the change itself: `of which +7.7% is left`.
pub(crate) fn left(before: f64, after: f64, best_after: f64) -> Option<String> {
    let left = change(before, best_after);
    (left != change(before, after)).then(|| format!("of which {left} is left"))
}

/// All series as a file of JUnit: a test for each, which fails where there is a regression.
pub fn junit_regressions(found: &[BenchmarkRegression], of: &ToldSeries<'_>) -> String {
    let mut sentences: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    of.rises(found).iter().for_each(|rise| sentences.entry(rise.series).or_default().push(rise.sentence()));
    let mut cases = String::new();
    let (mut failures, mut skipped) = (0, 0);
    for (place, (one, environment)) in of.series.iter().zip(of.environments()).enumerate() {
        let name = in_environment(one.benchmark.clone(), &environment);
        let machine = one.params.get("machine").and_then(Option::as_deref).unwrap_or_default();
        let head = format!("  <testcase name=\"{}\" classname=\"{}\"", markup(&name), markup(machine));
        let Some(sentences) = sentences.get(&place) else {
            match unjudged(one) {
                None => cases += &format!("{head}/>\n"),
                Some(why) => {
                    skipped += 1;
                    cases += &format!("{head}>\n    <skipped message=\"{why}\"/>\n  </testcase>\n");
                }
            }
            continue;
        };
        failures += 1;
        let message = counted(sentences.len(), "regression");
        cases += &format!("{head}>\n    <failure message=\"{message}\">{}</failure>\n", markup_lines(sentences));
        cases += "  </testcase>\n";
    }
    let tests = of.series.len();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"perfprop history\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">\n{cases}</testsuite>\n"
    )
}

/// Why nothing can be said of a series.
fn unjudged(one: &BenchmarkSeries) -> Option<&'static str> {
    match one.measured() {
        0 => Some("no commit has a number: it failed or was skipped"),
        measured if measured < LEAST_NUMBERS => Some("too few commits have a number"),
        _ => None,
    }
}

fn markup_lines(lines: &[String]) -> String {
    lines.iter().map(|line| markup(line)).collect::<Vec<_>>().join("\n")
}

/// Where a file names a benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file, from the folder of the repository.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

/// Regressions as a file of SARIF 2.1.0, for the alerts of a code host. `line` says where a benchmark is named, or else
/// where its alert stands: a host may refuse a file with an alert that has no place in the code.
pub fn sarif_regressions(
    found: &[BenchmarkRegression],
    of: &ToldSeries<'_>,
    line: impl Fn(&str) -> SourceLine,
) -> Value {
    let result = |rise: ToldRise| {
        let SourceLine { file, line } = line(&rise.entry);
        let location = json!({
            "logicalLocations": [{ "name": rise.entry, "kind": "benchmark" }],
            "physicalLocation": { "artifactLocation": { "uri": file }, "region": { "startLine": line } },
        });
        // An alert stays the same one as long as the same commit made the same benchmark slower.
        let first = rise.ends.1.clone().unwrap_or_default();
        let mut same = format!("{} {} {first}", rise.entry, rise.machine);
        if !rise.environment.is_empty() {
            same += &format!(" {}", rise.environment);
        }
        json!({
            "ruleId": "regression", "level": "warning", "message": { "text": rise.sentence() },
            "locations": [location], "partialFingerprints": { "benchmarkAndCommit/v1": same },
            "properties": {
                "before": rise.before, "after": rise.after, "bestAfter": rise.best_after, "unit": rise.unit, "chance": rise.chance,
                "changeLow": rise.interval.map(|(low, _)| low), "changeHigh": rise.interval.map(|(_, high)| high),
                "lastBefore": rise.ends.0, "firstAfter": rise.ends.1, "measuredApart": rise.is_measured_apart,
            },
        })
    };
    let rule = json!({
        "id": "regression", "name": "PerformanceRegression",
        "shortDescription": { "text": "A commit made a benchmark's number larger, and it stayed so" },
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "perfprop", "version": env!("CARGO_PKG_VERSION"), "rules": [rule] } },
            "results": of.rises(found).into_iter().map(result).collect::<Vec<_>>(),
        }],
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::history::examples::{commits, series};
    use super::*;
    use crate::history::{Commit, StepMethod};

    #[test]
    fn a_regression_names_its_commit_and_what_moved_with_it() {
        use crate::history::results::{Benchmark, BenchmarkList};
        use crate::history::{RegressionRule, all_regressions};
        let all = [series("sort", [0.010, 0.012]), series("sort.cycles", [1e6, 1.001e6]), series("sorted", [1.0, 2.0])];
        let benchmark = |(name, unit): (&str, &str)| {
            (name.to_owned(), Benchmark { name: name.into(), unit: unit.into(), ..Benchmark::default() })
        };
        let list = BenchmarkList([("sort", "seconds"), ("sort.cycles", "cycles")].map(benchmark).into());
        let rule = |_: &str| Some(RegressionRule { threshold: 0.05, from: 0 });
        let found = all_regressions(&all, &list, StepMethod::Potts, SoughtSteps::Regressions, rule);
        let names = commits();
        let of =
            ToldSeries { series: &all, benchmarks: &list, method: StepMethod::Potts, commits: CommitNames(&names) };
        let text = benchmark_regressions(&found, &of);
        let line = text.lines().nth(1).unwrap_or_default();
        assert!(line.starts_with("sort ") && line.contains("10.0 ms") && line.contains("+20.0%"), "{text}");
        assert!(
            line.contains("00000010") && line.contains("change 10\\x1b[2J") && line.contains("(with cycles +0.1%)"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4, "{text}");
        let text = markdown_regressions(&found, &of);
        assert!(
            text.contains("| sort | 10.0 ms | 12.0 ms | +20.0% ±0.0% |") && text.contains("| cycles +0.1% |"),
            "{text}"
        );
        let hostile: Vec<Commit> = names
            .iter()
            .map(|commit| Commit { subject: "![x](https://e.org) <b> | @all *".into(), ..commit.clone() })
            .collect();
        let of_hostile = ToldSeries { commits: CommitNames(&hostile), ..of };
        let text = markdown_regressions(&found, &of_hostile);
        assert!(text.contains(r"!\[x\](https://e.org) \<b\> \| @&#8203;all \* |"), "{text}");
        let json = json_regressions(&found, SoughtSteps::Regressions, &of);
        assert_eq!((&json["regressions"][0]["benchmark"], &json["regressions"][1]), (&"sort".into(), &Value::Null));
        assert!(json["regressions"][0]["chance"].as_f64().is_some_and(|chance| chance < 1e-3), "{json}");
        let [low, high] = ["change_low", "change_high"].map(|end| json["regressions"][0][end].as_f64().unwrap());
        assert!(low < 0.002_000_2 && 0.002_000_2 < high && high - low < 1e-5, "{json}");
        assert_eq!(json["regressions"][0]["first_after"], "00000010ffff");
        let text = junit_regressions(&found, &of);
        assert!(
            text.contains("tests=\"3\" failures=\"1\"") && text.contains("name=\"sorted\" classname=\"\"/>"),
            "{text}"
        );
        assert!(text.contains("sort: 10.0 ms -&gt; 12.0 ms (+20.0% ±0.0%) in 00000010, chance "), "{text}");
        assert!(text.contains("change 10\\x1b[2J (with cycles +0.1%)</failure>"), "{text}");
        let line = |_: &str| SourceLine { file: "perfprop.toml".into(), line: 7 };
        let sarif = sarif_regressions(&found, &of, line);
        let result = &sarif["runs"][0]["results"][0];
        assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 7);
        assert_eq!(result["partialFingerprints"]["benchmarkAndCommit/v1"], "sort  00000010ffff");
        assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(1));
        assert_eq!(sarif_regressions(&[], &of, line)["runs"][0]["results"], json!([]));
        let mut updated = all.clone();
        let rise = &found[0].rises.found[0];
        let kernels = [(rise.before, "6.1.1"), (rise.after.unwrap(), "6.1.2")];
        updated[0].kernels = kernels.map(|(at, kernel)| (at as u64, kernel.to_owned())).into();
        let text = benchmark_regressions(&found, &ToldSeries { series: &updated, ..of });
        assert!(text.contains("(with cycles +0.1%, kernel 6.1.1 to 6.1.2)"), "{text}");
    }

    #[test]
    fn a_change_has_its_interval() {
        let mut rise = ToldRise { before: 10.0, after: 12.0, interval: Some((1.5, 2.6)), ..ToldRise::default() };
        // 0.6 of 10 on its larger side.
        assert_eq!(rise.change(), "+20.0% ±6.0%");
        rise.interval = None;
        assert_eq!(rise.change(), "+20.0%");
    }

    #[test]
    fn an_improvement_names_its_commit() {
        use crate::history::results::{Benchmark, BenchmarkList};
        use crate::history::{RegressionRule, all_regressions};
        let all = [series("sort", [0.012, 0.010]), series("sorted", [1.0, 2.0])];
        let benchmark = |name: &str| {
            (name.to_owned(), Benchmark { name: name.into(), unit: "seconds".into(), ..Benchmark::default() })
        };
        let list = BenchmarkList(["sort", "sorted"].map(benchmark).into());
        let rule = |_: &str| Some(RegressionRule { threshold: 0.05, from: 0 });
        let found = all_regressions(&all, &list, StepMethod::Potts, SoughtSteps::Improvements, rule);
        let names = commits();
        let of =
            ToldSeries { series: &all, benchmarks: &list, method: StepMethod::Potts, commits: CommitNames(&names) };
        let text = benchmark_regressions(&found, &of);
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("sort ") && line.contains("12.0 ms") && line.contains("−16.7%"), "{text}");
        assert!(line.contains("00000010") && !text.contains("sorted"), "{text}");
        let json = json_regressions(&found, SoughtSteps::Improvements, &of);
        assert_eq!((json["improvements"].as_array().map(Vec::len), &json["regressions"]), (Some(1), &Value::Null));
    }

    #[test]
    fn environments_have_identities_of_their_own() {
        use crate::history::results::{Benchmark, BenchmarkList};
        use crate::history::{RegressionRule, all_regressions};
        let in_python = |version: &str| BenchmarkSeries {
            params: [("machine", "m"), ("python", version)]
                .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
                .into(),
            ..series("sort", [0.010, 0.012])
        };
        let all = [in_python("3.10"), in_python("3.11")];
        let benchmark = Benchmark { name: "sort".into(), ..Benchmark::default() };
        let (list, names) = (BenchmarkList([("sort".to_owned(), benchmark)].into()), commits());
        let told = |all: &[BenchmarkSeries]| {
            let rule = |_: &str| Some(RegressionRule { threshold: 0.05, from: 0 });
            let found = all_regressions(all, &list, StepMethod::Potts, SoughtSteps::Regressions, rule);
            let of =
                ToldSeries { series: all, benchmarks: &list, method: StepMethod::Potts, commits: CommitNames(&names) };
            let line = |_: &str| SourceLine { file: "perfprop.toml".into(), line: 7 };
            let sarif = sarif_regressions(&found, &of, line);
            let results = sarif["runs"][0]["results"].as_array().cloned().unwrap_or_default();
            let same = |one: &Value| one["partialFingerprints"]["benchmarkAndCommit/v1"].as_str().map(str::to_owned);
            (junit_regressions(&found, &of), results.iter().filter_map(same).collect::<Vec<_>>())
        };
        let (junit, same) = told(&all);
        assert!(
            junit.contains("name=\"sort (python 3.10)\" classname=\"m\"") && junit.contains("(python 3.11)\" class")
        );
        assert_eq!(same, ["sort m 00000010ffff python 3.10", "sort m 00000010ffff python 3.11"]);
        let (junit, same) = told(&all[..1]);
        assert!(junit.contains("name=\"sort\" classname=\"m\"") && same == ["sort m 00000010ffff"], "{junit}");
    }

    #[test]
    fn what_shares_a_module_does_not_move_with_a_benchmark() {
        use crate::history::results::{Benchmark, BenchmarkList};
        use crate::history::{RegressionRule, all_regressions};
        let (mut of_params, alone) = (series("suite.time_a", [0.010, 0.012]), series("suite.time_b", [1.0, 2.0]));
        for point in &mut of_params.points {
            point.values.insert(0, Some(1.0));
            point.weights.push(None);
        }
        let benchmark = Benchmark {
            name: "suite.time_a".into(),
            unit: "seconds".into(),
            params: vec![vec!["1".into(), "2".into()]],
            ..Benchmark::default()
        };
        let list = BenchmarkList([(benchmark.name.clone(), benchmark)].into());
        let rule = |_: &str| Some(RegressionRule { threshold: 0.05, from: 0 });
        let (all, names) = ([of_params, alone], commits());
        let found = all_regressions(&all, &list, StepMethod::Potts, SoughtSteps::Regressions, rule);
        let of =
            ToldSeries { series: &all, benchmarks: &list, method: StepMethod::Potts, commits: CommitNames(&names) };
        let text = benchmark_regressions(&found, &of);
        assert!(text.contains("suite.time_a(2)") && !text.contains("(with"), "{text}");
    }
}
