//! Implements `perfprop history export`: results as another program reads them.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::super::Error;
use super::super::stream::{Stream, say};
use super::{ProjectArgs, of_git, of_results};
use crate::names::{quoted_path, shown_path};

/// The arguments of `perfprop history export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history export --asv ~/asv && cd ~/asv && asv publish && asv preview")]
pub(super) struct ExportHistoryArgs {
    /// Write the results, and a configuration beside them, to a folder in which asv can publish them
    #[arg(long, value_name = "DIR")]
    asv: PathBuf,
    #[command(flatten)]
    project: ProjectArgs,
}

pub(super) fn export(args: &ExportHistoryArgs) -> Result<u8, Error> {
    let repository = args.project.repository()?;
    let store = args.project.existing_store(&repository)?;
    let Some(branch) = repository.branch().map_err(of_git)? else {
        return Err(Error::Usage(
            "asv publishes branches, and a single commit is checked out: check a branch out".into(),
        ));
    };
    let path = args.asv.join("asv.conf.json");
    if fs::symlink_metadata(&path).is_ok() {
        return Err(Error::Input(format!("{} is there already: name a folder without it", quoted_path(&path))));
    }
    store.copy_to(&args.asv.join("results")).map_err(of_results)?;
    let root = repository.root().to_string_lossy();
    let project = repository.root().file_name().unwrap_or_default().to_string_lossy();
    let configuration = json!({
        "version": 1, "project": project, "repo": root, "branches": [branch], "environment_type": "virtualenv",
        "benchmark_dir": "benchmarks", "env_dir": "env", "results_dir": "results", "html_dir": "html",
    });
    let text = serde_json::to_string_pretty(&configuration).unwrap_or_default() + "\n";
    Stream::write_whole(Some(&path), &text)?;
    say(&format!("asv publish in {} makes its pages", shown_path(&args.asv)));
    Ok(0)
}
