//! Prints results over commits: what there is, commit by commit, and how two commits differ.

use super::bench::ratio;
use super::regressions::told_params;
use super::{column_width, wrapped};
use crate::compare::Verdict;
use crate::events::Unit;
use crate::history::results::BenchmarkList;
use crate::history::{
    BenchmarkDifference, BenchmarkSeries, Commit, ComparedResult, DifferenceVerdict, DifferingParams, FACTOR,
    MissingNumber, NANOSECONDS, SECONDS, SeriesPoint, StepMethod, counted_event, entry_names, params_of_environments,
    short,
};
use crate::names::shown;
use crate::number::{amount, counted, uncertain};
use crate::rates::Uncertain;
use crate::steps::Step;

/// A number of the benchmark of this name, with its unit.
pub(super) fn benchmark_number(number: f64, name: &str, unit: &str) -> String {
    let (factor, unit) = told_unit(name, unit);
    amount(number * factor, &unit)
}

/// The same with how far it may be off: `67.1 ms ±1.2%`.
fn uncertain_number(number: Uncertain, name: &str, unit: &str) -> String {
    let (factor, unit) = told_unit(name, unit);
    uncertain(number.scaled(factor), &unit)
}

/// In which unit numbers of a benchmark are told, and how many of these one of its own is. Of an event its name says it
/// already: `sort.page-faults`.
fn told_unit(name: &str, unit: &str) -> (f64, Unit) {
    let name = name.split(['(', ' ']).next().unwrap_or_default();
    match unit {
        SECONDS => (1e9, Unit::Nanoseconds),
        NANOSECONDS => (1.0, Unit::Nanoseconds),
        unit if unit.is_empty() || counted_event(name, unit).is_some() => (1.0, Unit::Count),
        unit => (1.0, Unit::Scaled { scale: 1.0, name: unit.to_owned() }),
    }
}

/// By what part a number changed: `+12.5%`; from 0 there is no part.
pub(super) fn change(before: f64, after: f64) -> String {
    let part = (after - before) / before.abs();
    if part.is_finite() { crate::number::change(part) } else { "—".to_owned() }
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
    /// The benchmarks.
    pub benchmarks: &'a BenchmarkList,
    /// How steps are found.
    pub method: StepMethod,
    /// The commits.
    pub commits: CommitNames<'a>,
}

impl ToldSeries<'_> {
    pub(super) fn unit(&self, benchmark: &str) -> &str {
        self.benchmarks.0.get(benchmark).map_or("", |known| &known.unit)
    }

    /// The names of a series' entries: with each combination of its parameters, `sort('quick', 10)`.
    pub fn entries(&self, one: &BenchmarkSeries) -> Vec<String> {
        let mut names = self.benchmarks.0.get(&one.benchmark).map_or_else(Vec::new, entry_names);
        names.resize(one.combinations(), one.benchmark.clone());
        names
    }

    /// What tells the environment of each series from others of its benchmark and machine.
    pub fn environments(&self) -> Vec<DifferingParams> {
        params_of_environments(self.series.iter().map(BenchmarkSeries::place))
    }
}

/// How benchmarks of two commits differ, a line for each.
pub fn benchmark_differences(found: &[BenchmarkDifference], machines: usize) -> String {
    let tested = found.iter().filter(|one| one.is_tested()).count();
    let row = |one: &BenchmarkDifference| {
        let [a, b] = one.results.map(|result| compared_result(result, one));
        let (value, interval) = ratio(one.ratio);
        let interval = (tested > 0).then_some(interval);
        let cells = [difference_name(one, machines), a, b, value].into_iter().chain(interval);
        cells.chain([is(one)]).collect()
    };
    let heads =
        [("BENCHMARK", false), ("A", true), ("B", true), ("RATIO", true), ("INTERVAL", true), ("VERDICT", false)];
    let heads: Vec<_> = heads.into_iter().filter(|(head, _)| tested > 0 || *head != "INTERVAL").collect();
    let table = table(&heads, &found.iter().map(row).collect::<Vec<_>>());
    let mut notes = Vec::new();
    if found.iter().any(|one| one.ratio.value.is_some()) {
        notes.push(match tested {
            0 => "RATIO: of B to A".to_owned(),
            _ => format!(
                "RATIO: of B to A. Of benchmarks that were tested it is that of the means of runs without outliers, of others that of the \
                 numbers shown. With 95% confidence no verdict is wrong, of {tested} tested (INTERVAL is corrected for that)"
            ),
        });
    }
    if found.iter().any(|one| matches!(one.verdict, DifferenceVerdict::Exact(_))) {
        notes.push(
            "exact: a model counted the same in all runs of each commit, which is no matter of chance".to_owned(),
        );
    }
    let notes: String = notes.iter().map(|note| format!("{}\n", wrapped(note, 0))).collect();
    if notes.is_empty() { table } else { format!("{table}\n{notes}") }
}

/// The benchmark, and where it was measured if there are several machines or environments.
fn difference_name(one: &BenchmarkDifference, machines: usize) -> String {
    let name = shown(&one.name);
    let name = if machines > 1 { format!("{name} on {}", shown(&one.machine)) } else { name.into_owned() };
    in_environment(name, &one.environment)
}

/// A name with what tells its environment from others, in brackets.
pub(super) fn in_environment(name: String, environment: &DifferingParams) -> String {
    if environment.is_empty() { name } else { format!("{name} ({})", shown(&told_params(environment))) }
}

fn compared_result(result: ComparedResult, of: &BenchmarkDifference) -> String {
    match result {
        ComparedResult::Number(number) => uncertain_number(number, &of.name, &of.unit),
        ComparedResult::Failed => "failed".to_owned(),
        ComparedResult::Skipped => "skipped".to_owned(),
        ComparedResult::NotMeasured => "not measured".to_owned(),
    }
}

fn is(one: &BenchmarkDifference) -> String {
    let side = match one.numbers() {
        Some((a, b)) if a < b => "higher",
        Some((a, b)) if a > b => "lower",
        _ => "equal",
    };
    match one.verdict {
        DifferenceVerdict::Tested(verdict) => match verdict.needs() {
            Some(needs) if verdict != Verdict::Equal => format!("{} (needs {needs} runs)", verdict.word()),
            _ => verdict.word().to_owned(),
        },
        DifferenceVerdict::Exact(_) => format!("{side} (exact)"),
        DifferenceVerdict::SingleRuns => "one run each: not known to be exact".to_owned(),
        DifferenceVerdict::OfAsv { is_different: false } => "within error".to_owned(),
        DifferenceVerdict::OfAsv { is_different: true } => side.to_owned(),
        DifferenceVerdict::ByRatio { is_different: false } if side != "equal" => {
            format!("less than {FACTOR} times apart (no error is known)")
        }
        DifferenceVerdict::ByRatio { .. } => format!("{side} (no error is known)"),
        DifferenceVerdict::OtherVersion => "two versions of the benchmark".to_owned(),
        DifferenceVerdict::NoNumber => lacks(one.results).to_owned(),
    }
}

/// What a benchmark did from one commit to the other, if one of them has no number.
fn lacks(results: [ComparedResult; 2]) -> &'static str {
    match results {
        [ComparedResult::Number(_), ComparedResult::Failed] => "fails now",
        [ComparedResult::Failed, ComparedResult::Number(_)] => "failed before",
        [ComparedResult::Number(_), ComparedResult::Skipped] => "skipped now",
        [ComparedResult::Skipped, ComparedResult::Number(_)] => "skipped before",
        [ComparedResult::NotMeasured, _] => "only in B",
        [_, ComparedResult::NotMeasured] => "only in A",
        _ => "no number",
    }
}

/// What there is: a line for each series, and each combination of parameters.
pub fn benchmark_overview(of: &ToldSeries<'_>) -> String {
    let environments = of.environments();
    let mut rows = Vec::new();
    for (one, environment) in of.series.iter().zip(&environments) {
        for (combination, entry) in of.entries(one).into_iter().enumerate() {
            rows.push(overview_row(one, combination, in_environment(shown(&entry).into_owned(), environment), of));
        }
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

fn overview_row(one: &BenchmarkSeries, combination: usize, name: String, of: &ToldSeries<'_>) -> Vec<String> {
    let none = || "—".to_owned();
    let value = |point: &SeriesPoint| Some((point.revision, point.number(combination)?));
    let numbers: Vec<(u64, Uncertain)> = one.points.iter().filter_map(value).collect();
    let machine = one.params.get("machine").cloned().flatten();
    let mut row =
        vec![name, machine.map_or_else(String::new, |name| shown(&name).into_owned()), numbers.len().to_string()];
    row.extend(match numbers[..] {
        [(_, first), ..] => {
            let (revision, latest) = numbers[numbers.len() - 1];
            let number = |number| uncertain_number(number, &one.benchmark, of.unit(&one.benchmark));
            let steps = one.steps(combination, of.method).len().saturating_sub(1);
            let commit = of.commits.hash(revision as usize).to_owned();
            [number(first), number(latest), change(first.value, latest.value), steps.to_string(), commit]
        }
        [] => [none(), none(), none(), none(), without_number(one, combination)],
    });
    row
}

/// Why no commit has a number: `failed in 3 commits`.
fn without_number(one: &BenchmarkSeries, combination: usize) -> String {
    let count = |reason| one.missing.values().filter(|all| all.get(combination) == Some(&Some(reason))).count();
    let part = |(reason, word)| {
        let count = count(reason);
        (count > 0).then(|| format!("{word} in {}", counted(count, "commit")))
    };
    let reasons = [(MissingNumber::Failed, "failed"), (MissingNumber::Skipped, "skipped")];
    let parts: Vec<String> = reasons.into_iter().filter_map(part).collect();
    if parts.is_empty() { "not measured".to_owned() } else { parts.join(", ") }
}

/// The numbers of one series, a line for each commit, with a line where the level changed: of these combinations of
/// parameters.
pub fn benchmark_commits(one: &BenchmarkSeries, combinations: &[usize], of: &ToldSeries<'_>) -> String {
    let (unit, commits) = (of.unit(&one.benchmark), &of.commits);
    let steps: Vec<Vec<Step>> = combinations.iter().map(|&combination| one.steps(combination, of.method)).collect();
    let mut rows = Vec::new();
    for revision in one.revisions() {
        let place = revision as usize;
        let begins = |steps: &Vec<Step>| steps.iter().skip(1).any(|step| step.left == place);
        let cell = |&combination: &usize| match one.at(revision, combination) {
            (Some(number), _) => uncertain_number(number, &one.benchmark, unit),
            (None, Some(MissingNumber::Failed)) => "failed".to_owned(),
            (None, Some(MissingNumber::Skipped)) => "skipped".to_owned(),
            (None, None) => "—".to_owned(),
        };
        let mut row = vec![commits.hash(place).to_owned()];
        row.extend(combinations.iter().map(cell));
        row.push(if steps.iter().any(begins) { "new level".to_owned() } else { String::new() });
        row.push(commits.subject(place));
        rows.push(row);
    }
    if rows.is_empty() {
        return "no commit was measured\n".to_owned();
    }
    let entries = of.entries(one);
    let values =
        |&combination: &usize| match entries.get(combination).and_then(|entry| entry.strip_prefix(&one.benchmark)) {
            Some(values) if combinations.len() > 1 => shown(values).into_owned(),
            _ => "RESULT".to_owned(),
        };
    let heads: Vec<String> = combinations.iter().map(values).collect();
    let mut columns = vec![("COMMIT", false)];
    columns.extend(heads.iter().map(|head| (head.as_str(), true)));
    columns.extend([("", false), ("", false)]);
    table(&columns, &rows)
}

/// What a series is of: its benchmark, or its only combination of parameters that is shown, with the machine and the
/// environment.
pub fn benchmark_title(
    one: &BenchmarkSeries,
    combinations: &[usize],
    environment: &DifferingParams,
    of: &ToldSeries<'_>,
) -> String {
    let entries = of.entries(one);
    let name = match combinations {
        &[only] => entries.get(only).unwrap_or(&one.benchmark),
        _ => &one.benchmark,
    };
    let machine = one.params.get("machine").and_then(Option::as_deref).unwrap_or_default();
    let on = if machine.is_empty() { String::new() } else { format!(" on {}", shown(machine)) };
    in_environment(format!("{}{on}", shown(name)), environment)
}

/// Results for tests of texts.
#[cfg(test)]
pub(super) mod examples {
    use std::collections::BTreeMap;

    use crate::history::{BenchmarkSeries, Commit, SeriesPoint};
    use crate::rates::Error;

    /// A series whose level changes at the tenth commit.
    pub(crate) fn series(name: &str, levels: [f64; 2]) -> BenchmarkSeries {
        let value = |revision: u64| levels[usize::from(revision >= 10)] * (1.0 + 1e-4 * (revision % 3) as f64);
        let point = |revision| SeriesPoint {
            revision,
            values: vec![Some(value(revision))],
            weights: vec![None],
            errors: vec![Error::of(1e-4)],
        };
        BenchmarkSeries {
            benchmark: name.into(),
            params: BTreeMap::new(),
            environments: std::collections::BTreeSet::new(),
            points: (0..20).map(point).collect(),
            missing: BTreeMap::new(),
            kernels: BTreeMap::new(),
            runs: BTreeMap::new(),
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
    use std::cmp::Ordering;

    use super::examples::{commits, series};
    use super::*;
    use crate::compare::MeanRatio;
    use crate::rates::Error;

    #[test]
    fn parameters_and_what_failed_are_told() {
        use std::collections::BTreeMap;

        use crate::history::results::Benchmark;
        let (failed, skipped) = (Some(MissingNumber::Failed), Some(MissingNumber::Skipped));
        let mut one = series("sort", [0.010, 0.012]);
        for point in &mut one.points {
            point.values.push(None);
            point.weights.push(None);
        }
        one.points.truncate(18);
        one.missing = [(17, vec![None, skipped]), (18, vec![failed, failed]), (19, vec![failed, skipped])].into();
        let other = BenchmarkSeries { params: [("python".to_owned(), Some("3.11".to_owned()))].into(), ..one.clone() };
        let params = vec![vec!["'a'".into(), "'b'".into()]];
        let benchmark = Benchmark { name: "sort".into(), unit: SECONDS.into(), params, ..Benchmark::default() };
        let benchmarks = BenchmarkList(BTreeMap::from([("sort".to_owned(), benchmark)]));
        let (all, names) = ([one, other], commits());
        let of = ToldSeries {
            series: &all,
            benchmarks: &benchmarks,
            method: StepMethod::Potts,
            commits: CommitNames(&names),
        };
        let text = benchmark_overview(&of);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..6], ["sort('a')", "(python", "none)", "18", "10.0", "ms"], "{text}");
        assert_eq!(lines[4].join(" "), "sort('b') (python 3.11) 0 — — — — failed in 1 commit, skipped in 2 commits");
        let text = benchmark_commits(&all[0], &[0, 1], &of);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!((lines.len(), &lines[0][..]), (21, &["COMMIT", "('a')", "('b')"][..]), "{text}");
        assert_eq!(lines[1][..5], ["00000000", "10.0", "ms", "±1.0%", "—"], "{text}");
        assert_eq!(lines[19][..3], ["00000018", "failed", "failed"], "{text}");
        assert_eq!(lines[20][..3], ["00000019", "failed", "skipped"], "{text}");
        assert_eq!(benchmark_title(&all[1], &[1], &of.environments()[1], &of), "sort('b') (python 3.11)");
        assert!(benchmark_commits(&all[0], &[1], &of).lines().next().is_some_and(|line| line.contains("RESULT")));
    }

    #[test]
    fn numbers_have_their_units() {
        let told = |name, unit| benchmark_number(1_200_000.0, name, unit);
        assert_eq!(told("mem_list", "bytes"), "1.20M bytes");
        assert_eq!(told("track_\u{1b}", "M\u{1b}B"), "1.20M M\\x1bB");
        assert_eq!((told("sort.cycles(10)", "cycles"), told("sort", "")), ("1.20M".into(), "1.20M".into()));
        let number = Uncertain { value: 0.0671, error: Error::of(0.0008) };
        assert_eq!(uncertain_number(number, "sort", SECONDS), "67.1 ms ±1.2%");
        assert_eq!(uncertain_number(number.scaled(1e3), "mem_list", "MB"), "67.1 MB ±1.2%");
    }

    #[test]
    fn differences_say_what_is_known() {
        use ComparedResult::{Failed, NotMeasured, Number, Skipped};
        let line = |results: [ComparedResult; 2], verdict| {
            let [a, b] = results.map(ComparedResult::number);
            let value = a.zip(b).filter(|_| verdict != DifferenceVerdict::OtherVersion).map(|(a, b)| b / a);
            let one = BenchmarkDifference {
                name: "b\u{1b}[2J".into(),
                machine: "m".into(),
                environment: [("python".to_owned(), Some("3.11".to_owned()))].into(),
                unit: SECONDS.into(),
                results,
                ratio: MeanRatio { value, interval: None },
                verdict,
            };
            let text = benchmark_differences(&[one], 2);
            text.lines()
                .nth(1)
                .unwrap_or_default()
                .split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect::<Vec<_>>()
                .join("|")
        };
        let by_ratio = |is_different| DifferenceVerdict::ByRatio { is_different };
        let number = |value| Number(Uncertain { value, error: Error::Unknown });
        let (one, two) = (number(1.0), number(2.0));
        let name = "b\\x1b[2J on m (python 3.11)";
        let expected = format!("{name}|1.00 s ±?|2.00 s ±?|2.000|higher (no error is known)");
        assert_eq!(line([one, two], by_ratio(true)), expected);
        assert!(line([one, number(1.05)], by_ratio(false)).ends_with("less than 1.1 times apart (no error is known)"));
        assert!(line([one, one], by_ratio(false)).ends_with("|equal (no error is known)"));
        assert!(
            line([one, two], DifferenceVerdict::Tested(Verdict::TooFewRuns { needs: 3 }))
                .ends_with("|2.000|too few runs (needs 3 runs)")
        );
        assert!(line([one, two], DifferenceVerdict::Exact(Ordering::Greater)).ends_with("|2.000|higher (exact)"));
        assert!(
            line([two, two], DifferenceVerdict::SingleRuns).ends_with("|1.000|one run each: not known to be exact")
        );
        assert!(
            line([one, two], DifferenceVerdict::OtherVersion).ends_with("|2.00 s ±?|—|two versions of the benchmark")
        );
        assert!(line([one, Failed], DifferenceVerdict::NoNumber).ends_with("|1.00 s ±?|failed|—|fails now"));
        assert!(line([one, Skipped], DifferenceVerdict::NoNumber).ends_with("|skipped|—|skipped now"));
        assert!(line([NotMeasured, one], DifferenceVerdict::NoNumber).ends_with("|not measured|1.00 s ±?|—|only in B"));
    }

    #[test]
    fn differences_have_both_errors_and_the_interval_of_the_ratio() {
        let number = |value: f64, half| ComparedResult::Number(Uncertain { value, error: Error::of(half) });
        let one = |name: &str, verdict, ratio| BenchmarkDifference {
            name: name.into(),
            machine: "m".into(),
            environment: DifferingParams::new(),
            unit: SECONDS.into(),
            results: [number(0.0671, 0.0008), number(0.0839, 0.0007)],
            ratio,
            verdict,
        };
        let sure = MeanRatio { value: Some(1.25), interval: Some((1.23, 1.27)) };
        let all = [
            one("sort", DifferenceVerdict::Tested(Verdict::Higher), sure),
            one(
                "asv",
                DifferenceVerdict::OfAsv { is_different: true },
                MeanRatio { value: Some(1.25), interval: None },
            ),
        ];
        let text = benchmark_differences(&all, 1);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "sort       67.1 ms ±1.2%  83.9 ms ±0.8%  1.250  1.230 to 1.270  higher", "{text}");
        assert!(lines[2].ends_with("1.250               —  higher"), "{text}");
        assert!(text.contains("of 1 tested") && lines.iter().all(|line| line.chars().count() <= 80), "{text}");
        let no_test = [DifferenceVerdict::Exact(Ordering::Greater), DifferenceVerdict::SingleRuns]
            .map(|verdict| one("sort", verdict, sure));
        let text = benchmark_differences(&[&no_test[..], &all[..1]].concat(), 1);
        assert!(text.contains("of 1 tested") && text.contains("\nexact: "), "{text}");
        let text = benchmark_differences(&no_test, 1);
        assert!(!text.contains("confidence") && !text.contains("INTERVAL"), "{text}");
        let of_asv = benchmark_differences(&all[1..], 1);
        assert!(!of_asv.contains("INTERVAL") && of_asv.ends_with("\n\nRATIO: of B to A\n"), "{of_asv}");
    }

    #[test]
    fn commits_and_an_overview() {
        let one = series("sort", [0.010, 0.012]);
        let names = commits();
        let of = ToldSeries {
            series: std::slice::from_ref(&one),
            benchmarks: &BenchmarkList::default(),
            method: StepMethod::Potts,
            commits: CommitNames(&names),
        };
        let text = benchmark_commits(&one, &[0], &of);
        let level: Vec<&str> = text.lines().filter(|line| line.contains("new level")).collect();
        assert!(level.len() == 1 && level[0].starts_with("00000010") && level[0].contains("±0.8%"), "{text}");
        let text = benchmark_overview(&of);
        assert!(text.lines().count() == 2 && text.contains("+20.0%") && text.contains("00000019"), "{text}");
    }
}
