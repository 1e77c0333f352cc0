//! Implements `perfprop history add`: keeps what another program measured under a commit.

use std::path::PathBuf;

use clap::Args;

use super::super::Error;
use super::super::stream::say;
use super::{ProjectArgs, of_git};
use crate::history::{GitError, ImportedBenchmarks, imported_results};
use crate::names::quoted;

/// The arguments of `perfprop history add`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hyperfine --export-json h.json ./sort && perfprop history add h.json
  perfprop history add --name sort target/criterion/sort/new/sample.json
  perfprop stat -j -o s.json -- ./sort; perfprop history add --name sort --commit v1.0 s.json")]
pub(super) struct AddArgs {
    /// What was measured: JSON of hyperfine or of perfprop stat -j, or criterion's new/sample.json
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The commit of which it was measured
    #[arg(long, value_name = "COMMIT", default_value = "HEAD")]
    commit: String,
    /// What the benchmark is called; of several it stands before their names
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
}

pub(super) fn add(args: &AddArgs) -> Result<u8, Error> {
    let repository = args.project.repository()?;
    let commits = repository.commits(&args.commit).map_err(of_git)?;
    let commit = commits.last().ok_or_else(|| of_git(GitError::NoCommits(args.commit.clone())))?;
    // All are read before anything is kept.
    let read = |path: &PathBuf| {
        let in_file = |what| Error::Usage(format!("{}: {what}", quoted(&path.to_string_lossy())));
        ImportedBenchmarks::read(path, args.name.as_deref()).map_err(in_file)
    };
    let all: Vec<ImportedBenchmarks> = args.files.iter().map(read).collect::<Result<_, _>>()?;
    let store = args.project.store(&repository)?;
    for ImportedBenchmarks { benchmarks, results } in all {
        let names: Vec<_> = results.0.iter().map(|(name, _)| quoted(name)).collect();
        let (machine, results) = imported_results(commit, results);
        store.add(&machine, &benchmarks, results).map_err(|error| Error::Usage(error.to_string()))?;
        say(&format!("{} of {}", names.join(", "), commit.short()));
    }
    Ok(0)
}
