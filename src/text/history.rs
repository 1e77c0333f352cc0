//! Prints results over commits: what there is, commit by commit, and how two commits differ.

use std::collections::BTreeMap;

use super::column_width;
use crate::compare::Verdict;
use crate::history::{
    BenchmarkDifference, BenchmarkSeries, Commit, DifferenceVerdict, NANOSECONDS, SECONDS, StepMethod, short,
};
use crate::names::shown;
use crate::number::{si, time};
use crate::steps::Step;

/// A number of a benchmark, with its unit.
pub(super) fn benchmark_number(number: f64, unit: &str) -> String {
    match unit {
        SECONDS => time(number * 1e9),
        NANOSECONDS => time(number),
        _ => si(number),
    }
}

/// By what part a number changed: `+12.5%`.
pub(super) fn change(before: f64, after: f64) -> String {
    let part = (after - before) / before.abs();
    match part {
        part if !part.is_finite() => "—".to_owned(),
        part if part < 0.0 => format!("−{}", crate::number::percent(-part)),
        part => format!("+{}", crate::number::percent(part)),
    }
}

/// Columns of text under one another, the last one as it is.
pub(super) fn table(columns: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let width = |(place, (title, _)): (usize, &(&str, bool))| {
        column_width(rows.iter().map(|row| row[place].as_str()).chain([*title]))
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let line = |cells: Vec<&str>| {
        let mut out = String::new();
        for (place, cell) in cells.into_iter().enumerate() {
            let width = widths[place];
            out += &match columns[place].1 {
                true => format!("{cell:>width$}  "),
                false => format!("{cell:<width$}  "),
            };
        }
        out.trim_end().to_owned() + "\n"
    };
    let heads = line(columns.iter().map(|(head, _)| *head).collect());
    let lines = rows.iter().map(|row| line(row.iter().map(String::as_str).collect()));
    lines.fold(heads, |text, line| text + &line)
}

/// What is known of commits by their places in the history.
#[derive(Debug)]
pub struct CommitNames<'a>(pub &'a [Commit]);

impl CommitNames<'_> {
    /// The first digits of a commit's hash.
    pub(super) fn hash(&self, revision: usize) -> &str {
        self.0.get(revision).map_or("?", |commit| short(&commit.hash))
    }

    /// The first line of a commit's message, as it may be shown.
    pub(super) fn subject(&self, revision: usize) -> String {
        const LONGEST: usize = 60;
        let subject = self.0.get(revision).map_or("", |commit| &commit.subject);
        let cut: String = subject.chars().take(LONGEST).collect();
        let mark = if subject.chars().count() > LONGEST { "…" } else { "" };
        shown(&cut).into_owned() + mark
    }
}

/// What results over commits are told from.
#[derive(Debug)]
pub struct ToldSeries<'a> {
    /// The series.
    pub series: &'a [BenchmarkSeries],
    /// The units of benchmarks, by name.
    pub units: &'a BTreeMap<String, String>,
    /// How steps are found.
    pub method: StepMethod,
    /// The commits.
    pub commits: CommitNames<'a>,
}

impl ToldSeries<'_> {
    pub(super) fn unit(&self, benchmark: &str) -> &str {
        self.units.get(benchmark).map_or("", String::as_str)
    }
}

/// How benchmarks of two commits differ, a line for each.
pub fn benchmark_differences(found: &[BenchmarkDifference], machines: usize) -> String {
    let row = |one: &BenchmarkDifference| {
        let (a, b) = one.results;
        let name = shown(&one.name);
        let name = if machines > 1 { format!("{name} on {}", shown(&one.machine)) } else { name.into_owned() };
        let change = one.change().map_or_else(|| "—".to_owned(), |_| change(a, b));
        vec![name, benchmark_number(a, &one.unit), benchmark_number(b, &one.unit), change, is(one).to_owned()]
    };
    let heads = [("BENCHMARK", false), ("A", true), ("B", true), ("CHANGE", true), ("VERDICT", false)];
    table(&heads, &found.iter().map(row).collect::<Vec<_>>())
}

fn is(one: &BenchmarkDifference) -> String {
    match one.verdict {
        DifferenceVerdict::Tested(verdict) => match verdict.needs() {
            Some(needs) if verdict != Verdict::Equal => format!("{} (needs {needs} runs)", verdict.word()),
            _ => verdict.word().to_owned(),
        },
        DifferenceVerdict::OfAsv { is_different: false } => "within error".to_owned(),
        DifferenceVerdict::OfAsv { is_different: true } if one.results.1 > one.results.0 => "higher".to_owned(),
        DifferenceVerdict::OfAsv { is_different: true } => "lower".to_owned(),
    }
}

/// What there is: a line for each series.
pub fn benchmark_overview(of: &ToldSeries<'_>) -> String {
    let mut rows = Vec::new();
    for one in of.series {
        let unit = of.unit(&one.benchmark);
        let steps = if one.combinations() == 1 { one.steps(0, of.method) } else { Vec::new() };
        let first = one.points.first().and_then(|point| point.values.first().copied().flatten());
        let last = one.points.last();
        let number =
            |number: Option<f64>| number.map_or_else(|| "—".to_owned(), |number| benchmark_number(number, unit));
        let latest = last.and_then(|point| point.values.first().copied().flatten());
        rows.push(vec![
            shown(&one.benchmark).into_owned(),
            one.params.get("machine").cloned().flatten().map_or_else(String::new, |name| shown(&name).into_owned()),
            one.measured().to_string(),
            number(first),
            number(latest),
            first.zip(latest).map_or_else(|| "—".to_owned(), |(first, latest)| change(first, latest)),
            if steps.is_empty() { "—".to_owned() } else { (steps.len() - 1).to_string() },
            last.map_or_else(String::new, |point| of.commits.hash(point.revision as usize).to_owned()),
        ]);
    }
    let heads = [
        ("BENCHMARK", false),
        ("MACHINE", false),
        ("COMMITS", true),
        ("FIRST", true),
        ("LATEST", true),
        ("CHANGE", true),
        ("STEPS", true),
        ("LATEST OF", false),
    ];
    table(&heads, &rows)
}

/// The numbers of one series, a line for each commit, with a line where the level changed.
pub fn benchmark_commits(one: &BenchmarkSeries, of: &ToldSeries<'_>) -> String {
    let (unit, commits) = (of.unit(&one.benchmark), &of.commits);
    let steps: Vec<Vec<Step>> = (0..one.combinations()).map(|combination| one.steps(combination, of.method)).collect();
    let mut rows = Vec::new();
    for point in &one.points {
        let revision = point.revision as usize;
        let begins = |steps: &&Vec<Step>| steps.iter().skip(1).any(|step| step.left == revision);
        let numbers = point
            .values
            .iter()
            .map(|value| value.map_or_else(|| "—".to_owned(), |value| benchmark_number(value, unit)));
        rows.push(vec![
            commits.hash(revision).to_owned(),
            numbers.collect::<Vec<_>>().join("  "),
            match () {
                () if steps.iter().any(|steps| begins(&steps)) => "new level".to_owned(),
                () if point.values.iter().all(Option::is_none) => "failed or skipped".to_owned(),
                () => String::new(),
            },
            commits.subject(revision),
        ]);
    }
    let heads = [
        ("COMMIT", false),
        (if one.combinations() > 1 { "RESULTS" } else { "RESULT" }, true),
        ("", false),
        ("", false),
    ];
    table(&heads, &rows)
}

/// Results for tests of texts.
#[cfg(test)]
pub(super) mod examples {
    use std::collections::BTreeMap;

    use crate::history::{BenchmarkSeries, Commit, SeriesPoint};

    /// A series whose level changes at the tenth commit.
    pub(crate) fn series(name: &str, levels: [f64; 2]) -> BenchmarkSeries {
        let value = |revision: u64| levels[usize::from(revision >= 10)] * (1.0 + 1e-4 * (revision % 3) as f64);
        let point = |revision| SeriesPoint { revision, values: vec![Some(value(revision))], weights: vec![None] };
        BenchmarkSeries {
            benchmark: name.into(),
            params: BTreeMap::new(),
            environments: std::collections::BTreeSet::new(),
            points: (0..20).map(point).collect(),
        }
    }

    /// Twenty commits.
    pub(crate) fn commits() -> Vec<Commit> {
        let commit = |n: u64| Commit { hash: format!("{n:08}ffff"), date: 0, subject: format!("change {n}\u{1b}[2J") };
        (0..20).map(commit).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::examples::{commits, series};
    use super::*;

    #[test]
    fn commits_and_an_overview() {
        let one = series("sort", [0.010, 0.012]);
        let names = commits();
        let of = ToldSeries {
            series: std::slice::from_ref(&one),
            units: &BTreeMap::new(),
            method: StepMethod::Potts,
            commits: CommitNames(&names),
        };
        let text = benchmark_commits(&one, &of);
        let level: Vec<&str> = text.lines().filter(|line| line.contains("new level")).collect();
        assert!(level.len() == 1 && level[0].starts_with("00000010"), "{text}");
        let text = benchmark_overview(&of);
        assert!(text.lines().count() == 2 && text.contains("+20.0%") && text.contains("00000019"), "{text}");
    }
}
