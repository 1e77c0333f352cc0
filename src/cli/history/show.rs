//! Implements `perfprop history show` and `regressions`: what results say.

use std::path::Path;

use clap::{Args, ValueEnum};

use super::super::Error;
use super::super::stream::{Stream, say};
use super::SeriesArgs;
use super::rules::RuleArgs;
use crate::files;
use crate::history::results::StoredResults;
use crate::history::{
    BenchmarkSeries, CONFIGURATION, Commit, LEAST_NUMBERS, SoughtSteps, UnclearRise, all_regressions, series,
    unclear_rises,
};
use crate::names::glob::matches;
use crate::names::{first_of, nearest, quoted, shown};
use crate::text::{self, CommitNames, SourceLine, ToldSeries};

/// The arguments of `perfprop history show`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history show                      the benchmarks
  perfprop history show sort                 its numbers, commit by commit
  perfprop history show 'sort.*'             those of its events, too")]
pub(super) struct HistoryShowArgs {
    /// A benchmark, one with values of its parameters such as "sort('quick', 10)", or a pattern of names
    #[arg(value_name = "BENCHMARK")]
    benchmark: Option<String>,
    #[command(flatten)]
    from: SeriesArgs,
}

/// The arguments of `perfprop history regressions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history regressions                       what commits made slower, and which
  perfprop history regressions --threshold 2%        smaller rises, too
  perfprop history regressions --improvements        what commits made faster, and which
  perfprop history regressions --results asv/results those of asv's results")]
pub(super) struct RegressionsArgs {
    /// Print what commits made better instead: levels that fell and stayed lower. The exit code is 0
    #[arg(long)]
    improvements: bool,
    #[command(flatten)]
    rules: RuleArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t = RegressionsFormat::Text)]
    format: RegressionsFormat,
    #[command(flatten)]
    from: SeriesArgs,
}

/// The names of formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RegressionsFormat {
    /// A table for people
    Text,
    /// JSON with all digits
    Json,
    /// A table in Markdown, for a comment
    Markdown,
    /// A test for each series, as JUnit has them
    Junit,
    /// Alerts for a code host, as SARIF has them
    Sarif,
}

/// So many names stand in a line.
const SHOWN: usize = 5;

/// The series of benchmarks, and the unit of each.
struct StoredSeries {
    stored: StoredResults,
    commits: Vec<Commit>,
    series: Vec<BenchmarkSeries>,
}

impl StoredSeries {
    fn told(&self, args: &SeriesArgs) -> ToldSeries<'_> {
        ToldSeries {
            series: &self.series,
            benchmarks: &self.stored.benchmarks,
            method: args.method.into(),
            commits: CommitNames(&self.commits),
        }
    }
}

fn read(args: &SeriesArgs) -> Result<StoredSeries, Error> {
    let (stored, commits) = args.read()?;
    let places = commits.iter().zip(0..).map(|(commit, place)| (commit.hash.clone(), place)).collect();
    let series = series(&stored, &places);
    Ok(StoredSeries { stored, commits, series })
}

pub(super) fn show(args: &HistoryShowArgs) -> Result<u8, Error> {
    let mut all = read(&args.from)?;
    let Some(pattern) = &args.benchmark else {
        Stream::stdout().print(&text::benchmark_overview(&all.told(&args.from)))?;
        return Ok(0);
    };
    let known: Vec<String> = all.series.iter().map(|one| one.benchmark.clone()).collect();
    let is_named = |one: &BenchmarkSeries| {
        matches(pattern, &one.benchmark) || !chosen(pattern, one, &all.told(&args.from)).is_empty()
    };
    all.series = all.series.iter().filter(|one| is_named(one)).cloned().collect();
    if all.series.is_empty() {
        let near = nearest(pattern, known.iter().map(String::as_str));
        let help = if near.is_empty() {
            "perfprop history show lists them".to_owned()
        } else {
            near.iter().map(|name| shown(name)).collect::<Vec<_>>().join(" or ") + "?"
        };
        return Err(Error::Input(format!("there is no benchmark {}: {help}", quoted(pattern))));
    }
    let told = all.told(&args.from);
    let mut out = String::new();
    for (one, environment) in all.series.iter().zip(told.environments()) {
        let combinations = chosen(pattern, one, &told);
        out += &format!("{}\n", text::benchmark_title(one, &combinations, &environment, &told));
        out += &text::benchmark_commits(one, &combinations, &told);
        out.push('\n');
    }
    Stream::stdout().print(out.trim_end_matches('\n'))?;
    Stream::stdout().print("\n")?;
    Ok(0)
}

/// The combinations of parameters that a pattern names: all if it is of the benchmark.
fn chosen(pattern: &str, one: &BenchmarkSeries, told: &ToldSeries<'_>) -> Vec<usize> {
    let entries = told.entries(one).into_iter().enumerate();
    if matches(pattern, &one.benchmark) {
        return entries.map(|(place, _)| place).collect();
    }
    let is_named = |entry: &str| entry == pattern || matches(pattern, entry);
    entries.filter(|(_, entry)| is_named(entry)).map(|(place, _)| place).collect()
}

pub(super) fn regressions(args: &RegressionsArgs) -> Result<u8, Error> {
    let sought = args.sought()?;
    let all = read(&args.from)?;
    let method = args.from.method.into();
    let rules = args.rules.read(&args.from.project, &all.commits)?;
    let found = all_regressions(&all.series, &all.stored.benchmarks, method, sought, |entry| rules.rule(entry));
    if args.format == RegressionsFormat::Text {
        if sought == SoughtSteps::Regressions {
            let unclear = unclear_rises(&all.series, &all.stored.benchmarks, &found, |entry| rules.rule(entry));
            if !unclear.is_empty() {
                say(&unclear_text(&unclear));
            }
        }
        if found.is_empty() {
            say(&none_found(&all.series, sought));
            return Ok(0);
        }
    }
    let told = all.told(&args.from);
    let text = match args.format {
        RegressionsFormat::Text => text::benchmark_regressions(&found, &told),
        RegressionsFormat::Json => format!("{}\n", text::json_regressions(&found, sought, &told)),
        RegressionsFormat::Markdown => text::markdown_regressions(&found, &told),
        RegressionsFormat::Junit => text::junit_regressions(&found, &told),
        RegressionsFormat::Sarif => {
            let repository = args.from.project.repository()?;
            let named = files::text(&repository.root().join(CONFIGURATION), files::LONGEST).unwrap_or_default();
            let line = |entry: &str| line_of(&named, entry).unwrap_or_else(|| of_project(repository.root()));
            format!("{}\n", text::sarif_regressions(&found, &told, line))
        }
    };
    Stream::stdout().print(&text)?;
    Ok(u8::from(!found.is_empty() && sought == SoughtSteps::Regressions))
}

impl RegressionsArgs {
    /// What is looked for. Tests that fail and alerts are of regressions.
    fn sought(&self) -> Result<SoughtSteps, Error> {
        match (self.improvements, self.format) {
            (true, RegressionsFormat::Junit | RegressionsFormat::Sarif) => Err(Error::Usage(
                "--improvements are no failures: print them with --format text, json or markdown".into(),
            )),
            (true, _) => Ok(SoughtSteps::Improvements),
            (false, _) => Ok(SoughtSteps::Regressions),
        }
    }
}

/// Names series that are higher at their end, though nobody can tell yet where they rose.
fn unclear_text(unclear: &[UnclearRise]) -> String {
    let names = unclear.iter().map(|one| format!("{} {:+.0}%", shown(&one.entry), 100.0 * one.by));
    let names = first_of(names, SHOWN);
    format!(
        "higher in the last two commits than in the first half, without a step that says since when: {names}; a slow drift, or too new to tell: perfprop history compare A B judges two commits"
    )
}

/// Says that there is no regression or improvement, and in which series none could be found.
fn none_found(series: &[BenchmarkSeries], sought: SoughtSteps) -> String {
    let what = match sought {
        SoughtSteps::Regressions => "regression",
        SoughtSteps::Improvements => "improvement",
    };
    let (all, points) = (series.len(), series.iter().map(BenchmarkSeries::measured).sum::<usize>());
    match series.iter().filter(|one| one.measured() < LEAST_NUMBERS).count() {
        0 => format!("no {what} in {all} series of {points} results"),
        short if short == all => format!(
            "too few results to tell whether there is a {what}: a step needs {LEAST_NUMBERS} numbers of a series; perfprop history compare A B judges two commits"
        ),
        short => format!(
            "no {what} found; {short} of {all} series have fewer than {LEAST_NUMBERS} numbers, too few to find a step: perfprop history compare A B judges two commits"
        ),
    }
}

/// The beginning of a file that tells of the project's benchmarks, or of the project, for benchmarks that `perfprop.toml` doesn't name.
fn of_project(root: &Path) -> SourceLine {
    let files = [CONFIGURATION, "asv.conf.json", "README.md", "README.rst", "README"];
    let file = files.into_iter().find(|file| root.join(file).is_file()).unwrap_or(CONFIGURATION);
    SourceLine { file: file.to_owned(), line: 1 }
}

/// The line of `perfprop.toml` that names the benchmark of an entry such as `sort.page-faults`.
fn line_of(text: &str, entry: &str) -> Option<SourceLine> {
    let bench = entry.split(['.', '(']).next()?;
    let is_named = |line: &str| {
        let name = line.split_once('=').map(|(name, _)| name.trim().trim_matches('"'));
        name == Some(bench)
    };
    let line = text.lines().position(is_named)? + 1;
    Some(SourceLine { file: CONFIGURATION.to_owned(), line })
}
