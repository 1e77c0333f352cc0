//! Builds commits in a clone of its own, and keeps what is run.
//!
//! ```text
//! CACHE/checkout          a clone; one commit after the other is checked out and built there, so that each build
//!                         begins with what the last one left
//! CACHE/builds/HASH-KEY   what was kept of a build, with the paths that it had; beside it HASH-KEY.log, what the build said,
//!                         and HASH-KEY.missing, the programs that it left out
//! CACHE/.lock             held by the perfprop that builds there
//! ```

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::{fmt, io};

use crossbeam_channel::Receiver;

use super::benches::{BenchCommand, HistoryPlan};
use super::git::{Commit, GitError, OF_A_REPOSITORY, Repository, git, git_until_signal};
use crate::bench::{CommandEnd, run_until_signal};
use crate::files::{FileLock, hash_of_name, try_lock};
use crate::names::shown_path;
use crate::session::{CaughtSignal, Unfinished};

/// The file in the cache that is locked.
const LOCK: &str = ".lock";

/// A clone in which commits are built, by no other perfprop at the same time.
#[derive(Debug)]
pub struct Checkout {
    cache: PathBuf,
    source: PathBuf,
    _lock: FileLock,
}

/// What became of a commit.
#[derive(Debug)]
pub enum Built {
    /// What is run lies in this folder.
    Kept(PathBuf),
    /// The build failed.
    Failed(FailedBuild),
    /// A signal to perfprop ended the build.
    Interrupted(i32),
}

/// A build of which nothing can be run.
#[derive(Clone, Debug)]
pub struct FailedBuild {
    /// The file that says why.
    pub log: PathBuf,
    /// What was to be kept, and isn't there after the build; `None` if the build itself failed.
    pub lacks: Option<PathBuf>,
}

impl From<PathBuf> for FailedBuild {
    /// One that failed by itself, and left this log.
    fn from(log: PathBuf) -> Self {
        Self { log, lacks: None }
    }
}

/// Why a commit can't be built at all.
#[derive(Debug)]
pub enum CheckoutError {
    /// git gave no answer.
    Git(GitError),
    /// Another perfprop builds in this cache.
    Busy(PathBuf),
    /// A file or folder in the cache can't be written.
    System(PathBuf, io::Error),
}

impl fmt::Display for CheckoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Git(error) => error.fmt(f),
            Self::Busy(cache) => write!(
                f,
                "another perfprop builds in '{}': wait until it ends, or name another folder with --cache",
                shown_path(cache)
            ),
            Self::System(path, error) => {
                write!(
                    f,
                    "'{}': {error}\n      another folder for clones and builds:  --cache FOLDER",
                    shown_path(path)
                )
            }
        }
    }
}

impl std::error::Error for CheckoutError {}

impl From<GitError> for CheckoutError {
    fn from(error: GitError) -> Self {
        Self::Git(error)
    }
}

impl Checkout {
    /// A clone of a repository in a folder of the cache, with all commits that the repository has now.
    ///
    /// # Errors
    /// Returns why it can't be made, or that another perfprop builds there.
    pub fn new(repository: &Repository, cache: &Path) -> Result<Self, CheckoutError> {
        let builds = cache.join("builds");
        fs::create_dir_all(&builds).map_err(system(&builds))?;
        // git, builds and benchmarks run in other folders.
        let cache = cache.canonicalize().map_err(system(cache))?;
        let lock = try_lock(&cache.join(LOCK)).map_err(system(&cache.join(LOCK)))?;
        let lock = lock.ok_or_else(|| CheckoutError::Busy(cache.clone()))?;
        // A perfprop that was killed may have left some.
        remove_parts(&cache.join("builds"));
        let checkout = Self { cache, source: repository.root().to_owned(), _lock: lock };
        let (folder, source) = (checkout.folder(), checkout.source.to_string_lossy().into_owned());
        if !folder.join(".git").exists() {
            git(&checkout.cache, &["clone", "--quiet", "--no-checkout", &source, &folder.to_string_lossy()])?;
        }
        // Also those that only HEAD leads to.
        let refs = ["+refs/*:refs/source/*", "+HEAD:refs/source/HEAD"];
        // Without those that are gone: a branch `fix` would forbid a later `fix/a`.
        git(&folder, &[&["fetch", "--quiet", "--force", "--prune", &source], &refs[..]].concat())?;
        Ok(checkout)
    }

    /// Where a comparison may keep its results while it runs: what is left of one that was killed goes with parts of builds.
    pub fn comparison(&self) -> PathBuf {
        self.cache.join("builds").join(format!("compare.{PART}"))
    }

    /// Where commits are checked out.
    fn folder(&self) -> PathBuf {
        self.cache.join("checkout")
    }

    /// Builds a commit, unless it was built before, and keeps what is run.
    ///
    /// # Errors
    /// Returns why it can't be checked out, or kept. A build that fails isn't an error.
    pub fn build(
        &self,
        commit: &Commit,
        plan: &HistoryPlan,
        signals: &Receiver<CaughtSignal>,
    ) -> Result<Built, CheckoutError> {
        self.build_until_signal(commit, plan, signals).or_else(|unfinished| unfinished.signal().map(Built::Interrupted))
    }

    fn build_until_signal(
        &self,
        commit: &Commit,
        plan: &HistoryPlan,
        signals: &Receiver<CaughtSignal>,
    ) -> Result<Built, UnfinishedBuild> {
        let kept = self.cache.join("builds").join(format!("{}-{:08x}", commit.hash, key(plan)));
        if is_known(&kept, plan)? {
            return Ok(Built::Kept(kept));
        }
        let log = kept.with_extension("log");
        if !self.check_out(commit, &log, signals)? {
            return Ok(Built::Failed(log.into()));
        }
        self.remove_stale(plan, signals)?;
        if let Some(build) = &plan.build {
            let status = unless_ended(self.run(build, &log, signals).map_err(system(&log))?)?;
            if !status.success() {
                return Ok(Built::Failed(log.into()));
            }
        }
        Ok(self.keep(plan, kept, log)?)
    }

    /// Asks git in the checkout.
    fn git(
        &self,
        arguments: &[&str],
        signals: &Receiver<CaughtSignal>,
    ) -> Result<Result<String, GitError>, UnfinishedBuild> {
        match git_until_signal(&self.folder(), arguments, signals) {
            Ok(end) => unless_ended(end).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Checks a commit out with its submodules; whether these could be fetched. If not, the log says why.
    fn check_out(
        &self,
        commit: &Commit,
        log: &Path,
        signals: &Receiver<CaughtSignal>,
    ) -> Result<bool, UnfinishedBuild> {
        self.git(&["checkout", "--quiet", "--force", "--detach", &commit.hash], signals)??;
        if !self.folder().join(".gitmodules").exists() {
            return Ok(true);
        }
        let updated = self.git(&["submodule", "--quiet", "update", "--init", "--recursive"], signals)?;
        let Err(error) = updated else { return Ok(true) };
        let said = match error {
            GitError::Failed { said, .. } => said,
            error => error.to_string(),
        };
        fs::write(log, format!("the submodules can't be fetched:\n{said}\n")).map_err(system(log))?;
        Ok(false)
    }

    /// Removes files that an earlier commit's build left where this one's are kept from: they aren't this one's. Folders stay, as
    /// builds begin with what they find there.
    fn remove_stale(&self, plan: &HistoryPlan, signals: &Receiver<CaughtSignal>) -> Result<(), UnfinishedBuild> {
        let folder = self.folder();
        for path in kept_paths(plan, &folder) {
            let name = path.to_string_lossy();
            let listed = ["--literal-pathspecs", "ls-files", "--recurse-submodules", "--", &name];
            let tracked = self.git(&listed, signals)??;
            let path = folder.join(&path);
            if tracked.is_empty() && path.is_file() {
                fs::remove_file(&path).map_err(system(&path))?;
            }
        }
        Ok(())
    }

    /// Keeps what is run in a folder, which gets its name once it is whole.
    fn keep(&self, plan: &HistoryPlan, kept: PathBuf, log: PathBuf) -> Result<Built, CheckoutError> {
        let folder = self.folder();
        let part = kept.with_extension(PART);
        drop(fs::remove_dir_all(&part));
        fs::create_dir_all(&part).map_err(system(&part))?;
        // A benchmark whose program isn't there is alone in it: commits before the one that added it have none.
        let missing: Vec<&str> = programs(plan).filter(|program| !folder.join(program).exists()).collect();
        for path in kept_paths(plan, &folder) {
            if missing.iter().any(|program| Path::new(program) == path) {
                continue;
            }
            if let Err(error) = copy(&folder.join(&path), &part.join(&path)) {
                drop(fs::remove_dir_all(&part));
                let why = format!("{} isn't there after the build: {error}\n", path.display());
                fs::write(&log, why).map_err(system(&log))?;
                return Ok(Built::Failed(FailedBuild { log, lacks: Some(path) }));
            }
        }
        let list = kept.with_extension(MISSING);
        let noted = if missing.is_empty() { remove(&list) } else { fs::write(&list, missing.join("\n")) };
        noted.map_err(system(&list))?;
        fs::rename(&part, &kept).map_err(system(&kept))?;
        Ok(Built::Kept(kept))
    }

    /// Runs a build in the checkout. What it says goes to a file.
    fn run(&self, build: &str, log: &Path, signals: &Receiver<CaughtSignal>) -> io::Result<CommandEnd<ExitStatus>> {
        let (folder, said) = (self.folder(), File::create(log)?);
        let mut shell = Command::new("sh");
        shell.args(["-c", build]).current_dir(&folder).stdin(Stdio::null());
        // Builds follow one another in one folder, whatever the user's own builds do.
        shell.env("CARGO_TARGET_DIR", folder.join("target"));
        // A build that asks git asks about its own commit.
        for variable in OF_A_REPOSITORY {
            shell.env_remove(variable);
        }
        run_until_signal(shell.stdout(said.try_clone()?).stderr(said), signals, || {})
    }
}

type UnfinishedBuild = Unfinished<CheckoutError>;

fn unless_ended<T>(end: CommandEnd<T>) -> Result<T, UnfinishedBuild> {
    match end {
        CommandEnd::Ended(end) => Ok(end),
        CommandEnd::Interrupted(signal) => Err(Unfinished::Signal(signal)),
    }
}

impl From<GitError> for UnfinishedBuild {
    fn from(error: GitError) -> Self {
        Self::Error(error.into())
    }
}

fn system(path: &Path) -> impl Fn(io::Error) -> CheckoutError {
    move |error| CheckoutError::System(path.to_owned(), error)
}

/// Whether a commit's build is in a folder. One that lacks a program which it had is removed.
fn is_known(kept: &Path, plan: &HistoryPlan) -> Result<bool, CheckoutError> {
    let is_there = kept.is_dir();
    let missing = fs::read_to_string(kept.with_extension(MISSING)).unwrap_or_default();
    let is_kept = |program: &str| kept.join(program).exists() || missing.lines().any(|line| line == program);
    let is_whole = is_there && programs(plan).all(is_kept);
    if is_there && !is_whole {
        fs::remove_dir_all(kept).map_err(system(kept))?;
    }
    Ok(is_whole)
}

/// Removes the folders of builds that weren't kept as a whole. One that can't be removed does no harm.
fn remove_parts(builds: &Path) {
    let entries = fs::read_dir(builds).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    for path in entries.filter(|path| path.extension().is_some_and(|ending| ending == PART)) {
        drop(fs::remove_dir_all(path));
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The ending of a folder that isn't whole yet.
const PART: &str = "part";
/// The ending of the list of programs that a build left out.
const MISSING: &str = "missing";

/// What tells builds of one commit apart: how it is built, and what is kept.
pub(super) fn key(plan: &HistoryPlan) -> u32 {
    let parts = plan
        .build
        .iter()
        .map(String::as_str)
        .chain(plan.benches.iter().flat_map(|bench| bench.argv.iter().map(String::as_str)));
    let keep: Vec<_> = plan.keep.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let text = parts.chain(keep.iter().map(String::as_str)).collect::<Vec<_>>().join("\0");
    hash_of_name(&text) as u32
}

/// The paths that are kept: those that are named, the programs of benchmarks, and files of the checkout that are
/// arguments.
fn kept_paths(plan: &HistoryPlan, folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = plan.keep.clone();
    for bench in &plan.benches {
        let is_path = |word: &&String| word.contains('/') || folder.join(word).exists();
        let (program, arguments) =
            bench.argv.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        let program = program.into_iter().filter(|word| word.contains('/'));
        let arguments = arguments.iter().filter(is_path).filter(|word| folder.join(word).is_file());
        all.extend(program.chain(arguments).map(PathBuf::from));
    }
    all.retain(|path| is_inside(path));
    all.sort();
    all.dedup();
    all
}

/// The programs of benchmarks that are built.
fn programs(plan: &HistoryPlan) -> impl Iterator<Item = &str> {
    plan.benches.iter().filter_map(program)
}

/// The program of a benchmark, if it is one that is built.
fn program(bench: &BenchCommand) -> Option<&str> {
    let program = bench.argv.first().map(String::as_str);
    program.filter(|program| program.contains('/') && is_inside(Path::new(program)))
}

/// A program of a benchmark that none of the commits has, where nothing is built that could make it.
///
/// # Errors
/// Returns git's word.
pub fn unbuilt_program<'a>(
    plan: &'a HistoryPlan,
    commits: &[Commit],
    repository: &Repository,
) -> Result<Option<&'a str>, GitError> {
    if plan.build.is_some() {
        return Ok(None);
    }
    for program in programs(plan) {
        let mut is_held = false;
        // The newest one has it most likely.
        for commit in commits.iter().rev() {
            is_held = is_held || repository.may_hold(commit, Path::new(program))?;
        }
        if !is_held {
            return Ok(Some(program));
        }
    }
    Ok(None)
}

/// The program of a benchmark that isn't among what was kept of a build.
pub(super) fn missing_program<'a>(bench: &'a BenchCommand, folder: &Path) -> Option<&'a str> {
    program(bench).filter(|program| !folder.join(program).exists())
}

/// Whether a path leads to something in the checkout.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Copies a file, or a folder with all files, folders and links that are in it. A link that was asked for by its name is followed.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        return fs::read_dir(from)?.try_for_each(|entry| {
            let entry = entry?;
            let (path, to) = (entry.path(), to.join(entry.file_name()));
            match entry.file_type()? {
                kind if kind.is_symlink() => copy_link(&path, &to),
                kind if kind.is_dir() || kind.is_file() => copy(&path, &to),
                // A pipe or a socket is nothing to keep.
                _ => Ok(()),
            }
        });
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to).map(drop)
}

fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    match symlink(fs::read_link(from)?, to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(to)?;
            symlink(fs::read_link(from)?, to)
        }
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_files_of_the_checkout_are_kept() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let bench =
            |argv: &[&str]| BenchCommand { name: "b".into(), argv: argv.iter().map(|&word| word.to_owned()).collect() };
        let plan = HistoryPlan {
            benches: vec![bench(&["./target/x", "Cargo.toml", "1000", "/etc/hosts"]), bench(&["gzip", "../up"])],
            keep: vec!["data".into(), "/etc".into()],
            ..HistoryPlan::default()
        };
        assert_eq!(kept_paths(&plan, folder), ["./target/x", "Cargo.toml", "data"].map(PathBuf::from));
        assert_ne!(key(&plan), key(&HistoryPlan { build: Some("make".into()), ..plan.clone() }));
        assert_eq!(key(&HistoryPlan::default()), 0x8422_2325, "the hash of nothing");
    }
}
