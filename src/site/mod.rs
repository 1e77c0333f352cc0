//! Writes the results of commits as a static site, which opens from a file and asks no server.
//!
//! ```text
//! results ── series, steps ── entries ─┬─ index.html, data/index.js     the grid of small plots, regressions
//!    │                                 ├─ data/commits.js               hashes, dates, subjects
//!    │                                 ├─ data/series-NAME.js           all points of a benchmark
//!    │                                 ├─ data/commits-N.js             what was measured of each commit
//!    │                                 └─ regressions.xml               an Atom feed
//!    └─ profiles ── flame graphs ─────── profiles/NAME.svg
//! ```
//!
//! Browsers let no page read files beside it, but run scripts: so data are scripts that hand JSON to a function. The same
//! results give the same bytes.

mod commits;
mod entries;
mod error;
mod feed;
mod flames;
mod folder;
mod index;
mod points;
mod script;
mod shape;
mod tables;

use std::collections::BTreeMap;
use std::path::Path;

use crate::history::results::{CommitResults, StoredProfile, StoredResults};
use crate::history::{Commit, RegressionRules, StepMethod, Tag, on_all_cpus};

pub use error::SiteError;

use entries::{SiteSeries, site_series};
use folder::SiteFolder;
use index::SiteIndex;

/// The files that are the same for all sites.
const PAGE: [(&str, &str); 9] = [
    ("uPlot.iife.min.js", include_str!("uplot/uPlot.iife.min.js")),
    ("uPlot.min.css", include_str!("uplot/uPlot.min.css")),
    ("uPlot-LICENSE.txt", include_str!("uplot/LICENSE")),
    ("site.css", include_str!("page/site.css")),
    ("numbers.js", include_str!("page/numbers.js")),
    ("page.js", include_str!("page/page.js")),
    ("grid.js", include_str!("page/grid.js")),
    ("plot.js", include_str!("page/plot.js")),
    ("views.js", include_str!("page/views.js")),
];

/// What a site says beside the results.
#[derive(Clone, Debug)]
pub struct SiteOptions {
    /// What stands above it: the project's name.
    pub title: String,
    /// Where it will be found, for links in the feed; these are relative if `None`.
    pub address: Option<String>,
    /// How steps are found.
    pub method: StepMethod,
    /// Which steps are regressions.
    pub rules: RegressionRules,
    /// The tags of the repository.
    pub tags: Vec<Tag>,
}

/// A commit that something is known of.
#[derive(Clone, Debug)]
struct SiteCommit<'a> {
    /// Its place in the history.
    revision: u64,
    commit: &'a Commit,
    state: CommitState,
    profiles: Vec<SiteProfile<'a>>,
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum CommitState {
    /// It has no number, but a profile, or benchmarks that were skipped.
    #[default]
    Known,
    /// It couldn't be built, or none of its benchmarks could be run.
    Failed,
    /// It has a number.
    Measured,
}

impl CommitState {
    fn of(results: &CommitResults) -> Self {
        match () {
            () if points::has_number(results) => Self::Measured,
            () if points::has_failed(results) => Self::Failed,
            () => Self::Known,
        }
    }

    /// The number that stands for it in data.
    fn code(self) -> u64 {
        match self {
            Self::Measured => 0,
            Self::Failed => 1,
            Self::Known => 2,
        }
    }
}

/// A profile and the name of its picture.
#[derive(Clone, Debug)]
struct SiteProfile<'a> {
    stored: &'a StoredProfile,
    machine: &'a str,
    file: String,
    /// The profile of an earlier commit that it is compared with; `None` where it is shown alone.
    before: Option<&'a StoredProfile>,
}

/// What a site is made of.
#[derive(Debug)]
pub struct Site<'a> {
    options: &'a SiteOptions,
    /// The whole history, the oldest first.
    history: &'a [Commit],
    /// Those of which there are results or profiles, the oldest first.
    commits: Vec<SiteCommit<'a>>,
    series: Vec<SiteSeries>,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteReport {
    /// Benchmarks with their parameters, on each machine and in each environment.
    pub entries: usize,
    /// Commits that have a number.
    pub commits: usize,
    /// Commits that couldn't be built or run.
    pub failed: usize,
    /// Regressions.
    pub regressions: usize,
    /// Files of the site.
    pub files: usize,
    /// Files of an older site that are gone.
    pub removed: usize,
    /// What is wrong with single profiles.
    pub faults: Vec<String>,
}

impl<'a> Site<'a> {
    /// The site of results. `history` has all commits, the oldest first.
    ///
    /// # Errors
    /// Nothing of what is stored is of a commit of the history.
    pub fn new(stored: &'a StoredResults, history: &'a [Commit], options: &'a SiteOptions) -> Result<Self, SiteError> {
        let revisions: BTreeMap<String, u64> =
            history.iter().zip(0..).map(|(commit, place)| (commit.hash.clone(), place)).collect();
        let series = site_series(stored, &revisions, options);
        if series.iter().all(|one| one.revisions.is_empty()) {
            return Err(SiteError::Empty);
        }
        let commits = known_commits(stored, history, &revisions);
        Ok(Self { options, history, commits, series })
    }

    /// Writes the site to a folder, which is new, empty, or holds an older site. Each file is replaced as a whole, data before
    /// the page that needs it; files of the older site that this one lacks are removed, and no others.
    ///
    /// # Errors
    /// The folder holds something else; a file of it can't be read or written. Profiles that can't be read are told in the report.
    pub fn write(&self, folder: &Path) -> Result<SiteReport, SiteError> {
        let index = SiteIndex::new(self);
        let pages = self.pages(&index);
        let pictures = self.commits.iter().flat_map(|commit| &commit.profiles).map(|one| one.file.clone());
        let names = pages.iter().map(|(name, _)| name.clone()).chain(commits::files(self)).chain(pictures).collect();
        let out = SiteFolder::open(folder)?;
        out.begin(&names)?;
        let pictures = flames::draw(&self.commits, |name, bytes| out.put(name, bytes))?;
        let measured = commits::pages(self, |file| pictures.files.contains(file));
        let all = measured.into_iter().chain(pages);
        let mut written = pictures.files;
        for (name, bytes) in all {
            out.put(&name, &bytes)?;
            written.insert(name);
        }
        let files = written.len();
        Ok(SiteReport {
            entries: self.series.iter().map(|one| one.lines.len()).sum(),
            commits: self.count(CommitState::Measured),
            failed: self.count(CommitState::Failed),
            regressions: index.rises.len(),
            files,
            removed: out.finish(written)?,
            faults: pictures.faults,
        })
    }

    /// All files but pictures, and those that link to them; data come before the page that needs them.
    fn pages(&self, index: &SiteIndex<'_>) -> Vec<(String, Vec<u8>)> {
        let mut files = on_all_cpus(&self.series, |one| (one.file(), tables::series(one).into_bytes()));
        files.push(("data/regressions.js".into(), index.all_rises().into_bytes()));
        files.push(("regressions.xml".into(), feed::atom(self, index).into_bytes()));
        files.extend(PAGE.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
        files.push(("data/index.js".into(), index.text().into_bytes()));
        files.push(("index.html".into(), self.front_page().into_bytes()));
        files
    }

    fn front_page(&self) -> String {
        include_str!("page/index.html").replace("TITLE", &crate::names::markup(&self.options.title))
    }

    /// How many commits are in a state.
    fn count(&self, state: CommitState) -> usize {
        self.commits.iter().filter(|one| one.state == state).count()
    }

    /// The commit at a place in the history.
    fn at(&self, revision: u64) -> Option<&Commit> {
        self.history.get(revision as usize)
    }
}

/// The commits of which there are results or profiles.
fn known_commits<'a>(
    stored: &'a StoredResults,
    history: &'a [Commit],
    revisions: &BTreeMap<String, u64>,
) -> Vec<SiteCommit<'a>> {
    let mut known: BTreeMap<u64, (CommitState, Vec<SiteProfile<'a>>)> = BTreeMap::new();
    for machine in &stored.machines {
        for one in &machine.commits {
            let Some(&revision) = revisions.get(&one.commit) else { continue };
            let (state, _) = known.entry(revision).or_default();
            // A number of one environment is one of the commit.
            *state = CommitState::of(one).max(*state);
        }
        for one in &machine.profiles {
            let Some(&revision) = revisions.get(&one.of.commit) else { continue };
            let name = machine.machine.name();
            let file = flames::file(name, &one.of);
            let (_, profiles) = known.entry(revision).or_default();
            profiles.push(SiteProfile { stored: one, machine: name, file, before: None });
        }
    }
    add_differences(known.values_mut().map(|(_, profiles)| profiles));
    let commit = |(revision, (state, profiles)): (u64, (CommitState, Vec<SiteProfile<'a>>))| {
        Some(SiteCommit { revision, commit: history.get(revision as usize)?, state, profiles })
    };
    known.into_iter().filter_map(commit).collect()
}

/// Adds to the profiles of each commit, the oldest first, what they differ in from the last ones before of the same benchmark
/// on the same machine.
fn add_differences<'a, 's>(commits: impl Iterator<Item = &'s mut Vec<SiteProfile<'a>>>)
where
    'a: 's,
{
    let mut last: BTreeMap<(&str, &str, &str, &str), &StoredProfile> = BTreeMap::new();
    for profiles in commits {
        let mut differences = Vec::new();
        for one in profiles.iter() {
            let of = &one.stored.of;
            let key = (one.machine, of.environment.as_str(), of.benchmark.as_str(), of.event.as_str());
            if let Some(before) = last.insert(key, one.stored) {
                let file = flames::difference_file(one.machine, of, &before.of);
                differences.push(SiteProfile { file, before: Some(before), ..one.clone() });
            }
        }
        profiles.extend(differences);
    }
}
