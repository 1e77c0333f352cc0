//! Implements `perfprop history`: measures commits, and says which of them changed a number.

mod add;
mod bisect;
mod compare;
mod configuration;
mod export;
mod failures;
mod publish;
mod recordings;
mod remove;
mod rules;
mod run;
mod show;
mod steps;

use std::env;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::Error;
use super::stream::say;
use crate::files::hash_of_name;
use crate::history::results::{BenchmarkResult, ResultStore, ResultsError, ResultsProblem, StoredResults};
use crate::history::{Commit, GitError, HistoryError, PlanError, Repository, StepMethod};
use crate::names::{quoted, shown, shown_path};
use crate::number::counted;

use add::AddArgs;
use compare::CompareArgs;
use export::ExportHistoryArgs;
use publish::PublishArgs;
use remove::RemoveArgs;
use run::RunArgs;
use show::{HistoryShowArgs, RegressionsArgs};
use steps::StepsArgs;

/// The arguments of `perfprop history`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history run HEAD~10..HEAD   build and measure ten commits
  perfprop history regressions         which commit made what slower
  perfprop history show                what was measured
  perfprop history publish site        a site of plots that opens from a file")]
pub(super) struct HistoryArgs {
    #[command(subcommand)]
    verb: HistoryVerb,
}

/// The verbs below `perfprop history`.
#[derive(Debug, Subcommand)]
enum HistoryVerb {
    /// Build commits and measure benchmarks of each, in rounds
    Run(RunArgs),
    /// Keep what perfprop record, stat, hyperfine or criterion measured, under a commit
    Add(AddArgs),
    /// Print which benchmarks were measured, or the numbers of one over commits
    Show(HistoryShowArgs),
    /// Compare two commits, benchmark by benchmark
    Compare(CompareArgs),
    /// Print which benchmarks a commit made slower (exit code 1 if there are any), or with --improvements faster
    Regressions(RegressionsArgs),
    /// Write a site of plots, regressions and profiles, which opens without a server
    Publish(PublishArgs),
    /// Write results so that asv can publish them
    Export(ExportHistoryArgs),
    /// Remove results of benchmarks or commits; first it says which, and --yes removes them
    Rm(RemoveArgs),
    /// Find where the level of a series of numbers changed, and say how sure that is
    Steps(StepsArgs),
}

/// Which repository, and where its results are.
#[derive(Debug, Args)]
struct ProjectArgs {
    /// The folder of the repository
    #[arg(long, value_name = "DIR", default_value = ".", help_heading = PROJECT)]
    repo: PathBuf,
    /// The folder of results; asv's can be read, too [default: one for the repository below ~/.local/share/perfprop]
    #[arg(long, value_name = "DIR", help_heading = PROJECT)]
    results: Option<PathBuf>,
}

/// What is read of results, and how.
#[derive(Debug, Args)]
struct SeriesArgs {
    #[command(flatten)]
    project: ProjectArgs,
    /// The commit up to which the history goes
    #[arg(long, value_name = "COMMIT", default_value = "HEAD", help_heading = PROJECT)]
    tip: String,
    /// How steps are found
    #[arg(long, value_enum, default_value_t = MethodName::Best, help_heading = STEPS)]
    method: MethodName,
}

const PROJECT: &str = "Repository and results";
const STEPS: &str = "Steps";

/// The names of methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    /// Steps that noise doesn't explain, be it correlated or with outliers
    Best,
    /// Steps as asv finds them
    Potts,
}

impl From<MethodName> for StepMethod {
    fn from(name: MethodName) -> Self {
        match name {
            MethodName::Best => Self::Best,
            MethodName::Potts => Self::Potts,
        }
    }
}

pub(super) fn run(args: &HistoryArgs) -> Result<u8, Error> {
    match &args.verb {
        HistoryVerb::Run(args) => run::run(args),
        HistoryVerb::Add(args) => add::add(args),
        HistoryVerb::Show(args) => show::show(args),
        HistoryVerb::Compare(args) => compare::compare(args),
        HistoryVerb::Regressions(args) => show::regressions(args),
        HistoryVerb::Publish(args) => publish::publish(args),
        HistoryVerb::Export(args) => export::export(args),
        HistoryVerb::Rm(args) => remove::remove(args),
        HistoryVerb::Steps(args) => steps::steps(args),
    }
}

impl ProjectArgs {
    fn repository(&self) -> Result<Repository, Error> {
        Repository::of(&self.repo).map_err(|error| {
            let folder = self.repo.to_string_lossy();
            match error {
                GitError::Start(_) => of_git(error),
                GitError::Failed { ref said, .. } if said.contains("dubious ownership") => of_another(said),
                error => {
                    Error::Input(format!("{} is in no git repository ({error}): name one with --repo", quoted(&folder)))
                }
            }
        })
    }

    fn store(&self, repository: &Repository) -> Result<ResultStore, Error> {
        match &self.results {
            Some(folder) => Ok(ResultStore::new(folder)),
            None => Ok(ResultStore::new(&data_folder()?.join(project_name(repository)).join("results"))),
        }
    }

    /// The folder of results, which is to be there.
    fn existing_store(&self, repository: &Repository) -> Result<ResultStore, Error> {
        let store = self.store(repository)?;
        if store.root().exists() {
            return Ok(store);
        }
        Err(Error::Input(format!(
            "there are no results in '{}': measure commits with perfprop history run, or name a folder with --results",
            shown_path(store.root())
        )))
    }
}

impl SeriesArgs {
    /// What is stored, and the commits of the history, the oldest first.
    fn read(&self) -> Result<(StoredResults, Vec<Commit>), Error> {
        let repository = self.project.repository()?;
        let store = self.project.existing_store(&repository)?;
        let stored = store.read().map_err(of_results)?;
        tell_unreadable(&stored);
        if stored.benchmarks.0.is_empty() && !stored.machines.is_empty() {
            say(
                "there are results, but benchmarks.json, which says of what, is missing or empty: measure a commit again",
            );
        }
        let commits = repository.history(&self.tip).map_err(of_git)?;
        let known: std::collections::BTreeSet<&str> = commits.iter().map(|commit| commit.hash.as_str()).collect();
        let all = stored.machines.iter().flat_map(|machine| &machine.commits);
        let elsewhere = all.filter(|one| !known.contains(one.commit.as_str())).count();
        if elsewhere > 0 {
            let what = format!("commits that are not on the first-parent line of {}", quoted(&self.tip));
            say(&left_out(elsewhere, &what));
        }
        left_out_versions(&stored).iter().for_each(|text| say(text));
        Ok((stored, commits))
    }
}

/// Says how many results are left out: `left out: 2 results of other commands`.
fn left_out(count: usize, what: &str) -> String {
    format!("left out: {} of {what}", counted(count, "result"))
}

/// Says how many results are of another version of their benchmark than the one that counts; nothing if none are. The version of
/// perfprop's own is that of the command.
fn left_out_versions(stored: &StoredResults) -> Vec<String> {
    let is_other = |(name, result): &&(String, BenchmarkResult)| {
        let now = stored.benchmarks.0.get(name).and_then(|benchmark| benchmark.version.as_ref());
        result.version.as_ref().zip(now).is_some_and(|(then, now)| then != now)
    };
    let (mut of_asv, mut own) = (0, 0);
    for commit in stored.machines.iter().flat_map(|machine| &machine.commits) {
        let others = commit.results.0.iter().filter(is_other).count();
        *(if commit.is_of_asv() { &mut of_asv } else { &mut own }) += others;
    }
    let all = [(own, "other commands of the same names"), (of_asv, "other versions of their benchmarks")];
    all.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| left_out(count, what)).collect()
}

/// Says what of results can't be read.
fn tell_unreadable(stored: &StoredResults) {
    stored.unreadable.iter().for_each(|error| say(&format!("left out: {error}")));
}

/// A repository that git refuses, as it is another user's: root's in a container, or one that is mounted there. Git says
/// what allows it.
fn of_another(said: &str) -> Error {
    let allows = said.lines().map(str::trim).find(|line| line.starts_with("git config"));
    let allows = allows.unwrap_or("git config --global --add safe.directory FOLDER");
    let text = "git doesn't open the repository, as its folder belongs to another user; if you trust that one:";
    Error::Input(format!("{text}\n      {}", shown(allows)))
}

/// What git doesn't know was named wrongly, unless there is no git.
fn of_git(error: GitError) -> Error {
    match error {
        GitError::Start(_) => Error::Impossible(error.to_string()),
        error => Error::Input(error.to_string()),
    }
}

/// A file that isn't as it should be is a bad argument; one that can't be read or written isn't.
fn of_results(error: ResultsError) -> Error {
    match error.problem {
        ResultsProblem::System(_) => Error::Impossible(error.to_string()),
        _ => Error::Input(error.to_string()),
    }
}

fn of_plan(error: PlanError) -> Error {
    Error::Usage(error.to_string())
}

fn of_history(error: HistoryError) -> Error {
    match error {
        HistoryError::Run(error) => error.into(),
        HistoryError::Results(error) => of_results(error),
        // The names of commits were known before.
        HistoryError::Checkout(error) => Error::Impossible(error.to_string()),
    }
}

/// The folder's name of a repository: that of its own folder, and what tells it from others of that name.
fn project_name(repository: &Repository) -> String {
    let path = repository.root().canonicalize().unwrap_or_else(|_| repository.root().to_owned());
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect();
    let hash = hash_of_name(&path.to_string_lossy());
    format!("{name}-{hash:016x}")
}

/// Where results are kept.
fn data_folder() -> Result<PathBuf, Error> {
    user_folder("XDG_DATA_HOME", ".local/share")
}

/// Where clones and builds are kept.
fn cache_folder() -> Result<PathBuf, Error> {
    user_folder("XDG_CACHE_HOME", ".cache")
}

fn user_folder(variable: &str, below_home: &str) -> Result<PathBuf, Error> {
    let named = env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(|home| Path::new(&home).join(below_home));
    let folder = named.or(home).ok_or_else(|| {
        Error::Input(format!("neither {variable} nor HOME is set: name folders with --results and --cache"))
    })?;
    Ok(folder.join("perfprop/history"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::results::{Benchmark, CommitResults, MachineResults, OrderedMap};

    #[test]
    fn a_repository_of_another_user_is_told_with_what_opens_it() {
        let said = "fatal: detected dubious ownership in repository at '/srv/x'\nTo add an exception for this directory, \
                    call:\n\n\tgit config --global --add safe.directory /srv/x";
        let text = of_another(said).to_string();
        assert!(text.contains("belongs to another user"), "{text}");
        assert!(text.ends_with("\n      git config --global --add safe.directory /srv/x"), "{text}");
        assert!(of_another("fatal: detected dubious ownership").to_string().ends_with("safe.directory FOLDER"));
    }

    #[test]
    fn other_versions_are_told_as_what_they_are() {
        let of = |python: &str, version: &str| CommitResults {
            results: OrderedMap(vec![(
                "b".into(),
                BenchmarkResult { version: Some(version.into()), ..BenchmarkResult::default() },
            )]),
            other: [("python".to_owned(), python.into())].into(),
            ..CommitResults::default()
        };
        let told = |commits: Vec<CommitResults>| {
            let mut stored = StoredResults::default();
            let benchmark = Benchmark { name: "b".into(), version: Some("2".into()), ..Benchmark::default() };
            stored.benchmarks.0.insert("b".into(), benchmark);
            stored.machines = vec![MachineResults { commits, ..MachineResults::default() }];
            left_out_versions(&stored).join("; ")
        };
        assert_eq!(told(vec![of("3.11", "2"), of("", "2")]), "");
        assert_eq!(
            told(vec![of("3.11", "1"), of("", "1"), of("", "0")]),
            "left out: 2 results of other commands of the same names; left out: 1 result of other versions of their benchmarks"
        );
    }
}
