//! Implements `perfprop history rm`: removes results.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;

use super::super::Error;
use super::super::stream::{Stream, say};
use super::{ProjectArgs, of_git, of_results, tell_unreadable};
use crate::history::results::{Removal, StoredResults};
use crate::history::{Repository, short};
use crate::names::glob::matches;
use crate::names::{nearest, quoted, shown};
use crate::number::counted;

/// The arguments of `perfprop history rm`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history rm sort                    what would be removed of sort
  perfprop history rm sort 'sort.*' --yes     removes its times, and the counts of its events
  perfprop history rm --commit v1.0 --yes     removes all results of a commit
  perfprop history rm sort --commit v1.0..    what would be removed of sort since v1.0")]
pub(super) struct RemoveArgs {
    /// A benchmark as history show names it, or a pattern of names; all benchmarks of the commits if none is named
    #[arg(value_name = "BENCHMARK")]
    benchmarks: Vec<String>,
    /// Only results of this commit, or of those of FROM..TO; the first digits of one that the repository lacks will do, too
    #[arg(long, value_name = "RANGE")]
    commit: Vec<String>,
    /// Remove: without it nothing is, and perfprop says what would be
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    project: ProjectArgs,
}

pub(super) fn remove(args: &RemoveArgs) -> Result<u8, Error> {
    if args.benchmarks.is_empty() && args.commit.is_empty() {
        return Err(Error::Usage(
            "name what to remove: benchmarks, as in history rm sort, or commits with --commit".into(),
        ));
    }
    let repository = args.project.repository()?;
    let store = args.project.existing_store(&repository)?;
    let stored = store.read().map_err(of_results)?;
    tell_unreadable(&stored);
    args.benchmarks.iter().try_for_each(|pattern| check_name(pattern, &stored))?;
    let commits = commits(&args.commit, &repository, &stored)?;
    let is_removed = |benchmark: &str, commit: &str| {
        let is_named = args.benchmarks.is_empty() || args.benchmarks.iter().any(|pattern| matches(pattern, benchmark));
        is_named && (args.commit.is_empty() || commits.contains(commit))
    };
    let removal = if args.yes { Removal::Done } else { Removal::Told };
    let removed = store.remove(removal, &is_removed).map_err(of_results)?;
    removed.unreadable.iter().for_each(|error| say(&format!("what it holds stays: {error}")));
    if removed.results.is_empty() && removed.profiles.is_empty() {
        return Err(Error::Input("there are no such results: perfprop history show lists what there is".into()));
    }
    let text = lines(&removed.results, "") + &lines(&removed.profiles, "the profile of ");
    Stream::stdout().print(&text)?;
    let counts = [(removed.results.len(), "result"), (removed.profiles.len(), "profile")];
    let counts: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, one)| counted(count, one)).collect();
    let counts = counts.join(" and ");
    say(&match removal {
        Removal::Told => format!("nothing is removed yet: the same with --yes removes {counts}"),
        Removal::Done => format!("{counts} removed"),
    });
    Ok(0)
}

/// Refuses a name of which there are no results.
fn check_name(pattern: &str, stored: &StoredResults) -> Result<(), Error> {
    let machines = &stored.machines;
    let results = machines.iter().flat_map(|machine| &machine.commits).flat_map(|one| &one.results.0);
    let profiles = machines.iter().flat_map(|machine| &machine.profiles).map(|one| one.of.benchmark.as_str());
    let known: BTreeSet<&str> = results.map(|(name, _)| name.as_str()).chain(profiles).collect();
    if known.iter().any(|name| matches(pattern, name)) {
        return Ok(());
    }
    let near = nearest(pattern, known);
    let help = if near.is_empty() {
        "perfprop history show lists them".to_owned()
    } else {
        near.iter().map(|name| shown(name)).collect::<Vec<_>>().join(" or ") + "?"
    };
    Err(Error::Input(format!("there is no benchmark {}: {help}", quoted(pattern))))
}

/// The hashes of commits that are named. Of those that a rebase took out of the repository, results are left.
fn commits(names: &[String], repository: &Repository, stored: &StoredResults) -> Result<BTreeSet<String>, Error> {
    let mut all = BTreeSet::new();
    for name in names {
        let of_results = stored.machines.iter().flat_map(|machine| &machine.commits).map(|one| &one.commit);
        let begin_so: Vec<&String> =
            of_results.filter(|hash| is_hash(name) && hash.starts_with(name.as_str())).collect();
        match repository.commits(name) {
            Ok(commits) => all.extend(commits.into_iter().map(|commit| commit.hash)),
            Err(error) => match begin_so.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()[..] {
                [] => return Err(of_git(error)),
                [hash] => all.extend([hash.clone()]),
                ref several => {
                    let what = format!("{} begins the hashes of {} commits with results", quoted(name), several.len());
                    return Err(Error::Input(format!("{what}: give more digits")));
                }
            },
        }
    }
    Ok(all)
}

/// Whether a name may be the first digits of a commit's hash.
fn is_hash(name: &str) -> bool {
    name.len() >= 7 && name.chars().all(|c| c.is_ascii_hexdigit())
}

/// A line for each: its benchmark and its commit, and where several machines or environments have some, how many.
fn lines(all: &[(String, String)], what: &str) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (benchmark, commit) in all {
        *counts.entry((benchmark, commit)).or_default() += 1;
    }
    let line = |((benchmark, commit), count): ((&str, &str), usize)| {
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        format!("{what}{} of {}{times}\n", shown(benchmark), shown(short(commit)))
    };
    counts.into_iter().map(line).collect()
}
