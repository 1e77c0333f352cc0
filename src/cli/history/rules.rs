//! Reads which steps are regressions: from options, and from asv's configuration.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::Error;
use super::super::args::percentage;
use super::super::stream::say;
use super::super::text_input::in_file;
use super::{ProjectArgs, STEPS};
use crate::files;
use crate::history::{AsvRules, Commit, RegressionRules};
use crate::names::quoted_path;

/// The arguments that say which steps are regressions.
#[derive(Debug, Args)]
pub(super) struct RuleArgs {
    /// The rise from which on a step is a regression; it goes before the thresholds of asv's configuration [default: asv's,
    /// or 5%]
    #[arg(long, value_name = "PERCENT", value_parser = part, help_heading = STEPS)]
    threshold: Option<f64>,
    /// An asv.conf.json, whose thresholds and first commits count [default: the one beside --results]
    #[arg(long, value_name = "FILE", help_heading = STEPS)]
    asv_conf: Option<PathBuf>,
}

/// A rise in percent.
pub(super) fn part(text: &str) -> Result<f64, String> {
    percentage(text, 0.0, 10_000.0)
}

impl RuleArgs {
    /// The rules for these commits of a project, the oldest first.
    pub(super) fn read(&self, project: &ProjectArgs, commits: &[Commit]) -> Result<RegressionRules, Error> {
        Ok(RegressionRules { threshold: self.threshold, of_asv: self.of_asv(project, commits)? })
    }

    /// The rules of asv's configuration; none where there is no such file.
    fn of_asv(&self, project: &ProjectArgs, commits: &[Commit]) -> Result<AsvRules, Error> {
        let beside = project.results.as_deref().and_then(Path::parent).map(|folder| folder.join("asv.conf.json"));
        let Some(path) = self.asv_conf.clone().or_else(|| beside.filter(|path| path.is_file())) else {
            return Ok(AsvRules::default());
        };
        let text = files::text(&path, files::LONGEST).map_err(|error| in_file(&path, error))?;
        let repository = project.repository()?;
        let place = |name: &str| {
            let hash = repository.commits(name).ok()?.last()?.hash.clone();
            commits.iter().zip(0..).find(|(commit, _)| commit.hash == hash).map(|(_, place)| place)
        };
        let rules = AsvRules::parse(&text, place).map_err(|error| in_file(&path, error))?;
        let rules = rules.of_branch(repository.branch().ok().flatten());
        if !rules.is_empty() {
            let what = match self.threshold {
                None => "thresholds and first commits are those",
                Some(_) => "first commits, but not thresholds, are those",
            };
            say(&format!("{what} of {}", quoted_path(&path)));
        }
        Ok(rules)
    }
}
