//! Asks git about commits, so that nothing in the asked repository is written.

use std::path::{Component, Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fmt, io};

use crossbeam_channel::Receiver;

use crate::bench::{CommandEnd, output_until_signal};
use crate::names::{quoted, shown};
use crate::number::counted;
use crate::session::CaughtSignal;

/// A repository.
#[derive(Clone, Debug)]
pub struct Repository {
    root: PathBuf,
    /// Whether nothing is checked out.
    is_bare: bool,
}

/// A commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its whole hash.
    pub hash: String,
    /// When it was made, in milliseconds since 1970.
    pub date: i64,
    /// The first line of its message.
    pub subject: String,
}

impl Commit {
    /// The first digits of the hash, as git shows them.
    pub fn short(&self) -> &str {
        short(&self.hash)
    }
}

/// A name that was given to a commit for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Its name.
    pub name: String,
    /// The whole hash of the commit.
    pub commit: String,
}

/// The first digits of a hash, as git shows them.
pub fn short(hash: &str) -> &str {
    hash.get(..8).unwrap_or(hash)
}

/// Why git gave no answer.
#[derive(Debug)]
pub enum GitError {
    /// git isn't installed, or can't be started.
    Start(io::Error),
    /// git ended with an error.
    Failed {
        /// What it was asked.
        arguments: String,
        /// What it said.
        said: String,
    },
    /// git doesn't know a commit, in a clone that older ones were left out of.
    Shallow(Box<GitError>),
    /// A commit is named that would stand before the first one.
    TooFew {
        /// Its name.
        name: String,
        /// How many commits there are.
        commits: usize,
    },
    /// There are no commits in the range.
    NoCommits(String),
    /// Several commits are named where one is meant.
    Range(String),
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(error) => write!(f, "git can't be started ({error}): install it, or give another PATH"),
            // What went wrong is the fatal line, or that of an error, which advice may follow; else the last one.
            Self::Failed { said, .. } => {
                let line_of = |what: &str| said.lines().find(|line| line.starts_with(what));
                let fatal = line_of("fatal:").or_else(|| line_of("error:")).or(said.lines().next_back());
                write!(f, "git says: {}", shown(fatal.unwrap_or("it failed without a word")))
            }
            Self::Shallow(error) => {
                write!(f, "{error}; the clone is shallow, and git fetch --unshallow brings older commits")
            }
            Self::TooFew { name, commits } => {
                write!(f, "there is no {}: the history has only {}", quoted(name), counted(*commits, "commit"))
            }
            Self::Range(range) => write!(f, "{} is a range: name one commit", quoted(range)),
            Self::NoCommits(range) => {
                write!(f, "there are no commits in {}; one commit is named as it is, several as FROM..TO", shown(range))
            }
        }
    }
}

impl std::error::Error for GitError {}

/// The variables that say which repository git works on, as `git rev-parse --local-env-vars` lists them: those of perfprop's own
/// surroundings, such as a hook, are of another one. Settings (`GIT_CONFIG_COUNT`, `GIT_CONFIG_PARAMETERS`) stay, as they do where
/// git goes into a submodule: `safe.directory` may be among them.
pub(super) const OF_A_REPOSITORY: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Asks git in a folder.
pub(super) fn git(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    answer(arguments, command(folder, arguments).output().map_err(GitError::Start)?)
}

/// Asks git in a folder for what may take long, until a signal to perfprop comes.
pub(super) fn git_until_signal(
    folder: &Path,
    arguments: &[&str],
    signals: &Receiver<CaughtSignal>,
) -> Result<CommandEnd<String>, GitError> {
    let mut command = command(folder, arguments);
    // In the background, ssh would be stopped where it asks the terminal.
    command.env("SSH_ASKPASS_REQUIRE", "force");
    if env::var_os("SSH_ASKPASS").is_none() {
        command.env("SSH_ASKPASS", "false");
    }
    match output_until_signal(&mut command, signals).map_err(GitError::Start)? {
        CommandEnd::Ended(output) => answer(arguments, output).map(CommandEnd::Ended),
        CommandEnd::Interrupted(signal) => Ok(CommandEnd::Interrupted(signal)),
    }
}

/// It takes no locks, asks for no passwords, and doesn't listen to variables of another repository.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments).stdin(Stdio::null());
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    for variable in OF_A_REPOSITORY {
        command.env_remove(variable);
    }
    command
}

fn answer(arguments: &[&str], output: Output) -> Result<String, GitError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(GitError::Failed { arguments: arguments.join(" "), said: said.trim().to_owned() })
}

impl Repository {
    /// The repository that a folder is in.
    ///
    /// # Errors
    /// Returns git's word if there is none.
    pub fn of(folder: &Path) -> Result<Self, GitError> {
        let is_bare = git(folder, &["rev-parse", "--is-bare-repository"])?.trim() == "true";
        let root = git(folder, &["rev-parse", if is_bare { "--absolute-git-dir" } else { "--show-toplevel" }])?;
        Ok(Self { root: PathBuf::from(root.trim_end_matches('\n')), is_bare })
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commits of a range `FROM..TO` along first parents, the oldest first; or the one commit that is named.
    ///
    /// # Errors
    /// Returns git's word on a range that isn't one, and if no commit is in it.
    pub fn commits(&self, range: &str) -> Result<Vec<Commit>, GitError> {
        let limit = if range.contains("..") { "--max-count=-1" } else { "--max-count=1" };
        let commits = self.log(&[limit, range]).map_err(|error| match self.is_shallow() {
            Ok(true) => GitError::Shallow(Box::new(error)),
            _ => self.too_few(range).unwrap_or(error),
        })?;
        if commits.is_empty() { Err(GitError::NoCommits(range.to_owned())) } else { Ok(commits) }
    }

    /// That a range such as `HEAD~20..` or `FIRST^..` begins before the first commit; `None` if it doesn't.
    fn too_few(&self, range: &str) -> Option<GitError> {
        let name = range.split("..").next()?;
        let (tip, back) = match name.strip_suffix('^') {
            Some(tip) => (tip, 1),
            None => name.rsplit_once('~').and_then(|(tip, back)| Some((tip, back.parse().ok()?)))?,
        };
        let commits = self.history(tip).ok()?.len();
        let is_before = back >= commits;
        is_before.then(|| GitError::TooFew { name: name.to_owned(), commits })
    }

    /// The commit of a name.
    ///
    /// # Errors
    /// Returns git's word on a name that isn't a commit's, and refuses a range.
    pub fn commit(&self, name: &str) -> Result<Commit, GitError> {
        if name.contains("..") {
            return Err(GitError::Range(name.to_owned()));
        }
        self.commits(name)?.pop().ok_or_else(|| GitError::NoCommits(name.to_owned()))
    }

    /// All commits that lead to one along first parents, the oldest first.
    ///
    /// # Errors
    /// Returns git's word on a name that isn't a commit's.
    pub fn history(&self, tip: &str) -> Result<Vec<Commit>, GitError> {
        self.log(&[tip])
    }

    /// All tags of commits, by name.
    ///
    /// # Errors
    /// Returns git's word.
    pub fn tags(&self) -> Result<Vec<Tag>, GitError> {
        // A tag with a message is an object of its own, which says of which commit it is.
        let format = "--format=%(objectname)%00%(*objectname)%00%(refname:strip=2)";
        let text = git(&self.root, &["for-each-ref", format, "refs/tags"])?;
        Ok(text.lines().filter_map(tag).collect())
    }

    fn log(&self, which: &[&str]) -> Result<Vec<Commit>, GitError> {
        let format = "--format=%H%x00%ct%x00%s";
        // What begins with a dash is no option.
        let (name, options) = which.split_last().unwrap_or((&"HEAD", &[]));
        let arguments = [&["log", "--first-parent", "--reverse", format], options, &["--end-of-options", name, "--"]];
        let text = git(&self.root, &arguments.concat())?;
        let commit = |line: &str| {
            let mut parts = line.splitn(3, '\0');
            let hash = parts.next()?.to_owned();
            let seconds: i64 = parts.next()?.parse().ok()?;
            Some(Commit { hash, date: 1000 * seconds, subject: parts.next().unwrap_or_default().to_owned() })
        };
        Ok(text.lines().filter_map(commit).collect())
    }

    /// Whether a commit has a file of this path, or one that a link or a submodule on the way to it may lead to.
    ///
    /// # Errors
    /// Returns git's word.
    pub fn may_hold(&self, commit: &Commit, path: &Path) -> Result<bool, GitError> {
        let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
        let mut prefixes: Vec<String> = Vec::new();
        for part in parts {
            let part = part.as_os_str().to_string_lossy();
            prefixes.push(prefixes.last().map_or_else(|| part.to_string(), |before| format!("{before}/{part}")));
        }
        let Some(whole) = prefixes.last().map(|whole| format!("\t{whole}")) else { return Ok(false) };
        let names: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let listed = git(&self.root, &[&["ls-tree", "-z", "--full-tree", &commit.hash, "--"], &names[..]].concat())?;
        let leads_on = |line: &str| line.starts_with("120000") || line.starts_with("160000");
        Ok(listed.split('\0').any(|line| leads_on(line) || line.ends_with(&whole)))
    }

    /// The branch that is checked out; `None` if a commit is.
    ///
    /// # Errors
    /// Returns git's word.
    pub fn branch(&self) -> Result<Option<String>, GitError> {
        let name = git(&self.root, &["rev-parse", "--abbrev-ref", "HEAD"])?;
        Ok(Some(name.trim().to_owned()).filter(|name| name != "HEAD"))
    }

    /// Whether older commits were left out when it was cloned.
    ///
    /// # Errors
    /// Returns git's word.
    pub fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(git(&self.root, &["rev-parse", "--is-shallow-repository"])?.trim() == "true")
    }

    /// Whether files of the checkout differ from its commit.
    ///
    /// # Errors
    /// Returns git's word.
    pub fn has_changes(&self) -> Result<bool, GitError> {
        Ok(!self.is_bare && !git(&self.root, &["status", "--porcelain", "--untracked-files=no"])?.trim().is_empty())
    }
}

/// A tag of a line of git's: an object, the commit that it names or nothing, and its name.
fn tag(line: &str) -> Option<Tag> {
    let mut parts = line.splitn(3, '\0');
    let (object, named, name) = (parts.next()?, parts.next()?, parts.next()?);
    let commit = if named.is_empty() { object } else { named };
    Some(Tag { name: name.to_owned(), commit: commit.to_owned() })
}

/// `count` of the commits, spread over all of them, with the first and the last.
pub fn spread(commits: Vec<Commit>, count: usize) -> Vec<Commit> {
    let last = commits.len().saturating_sub(1);
    if count > last {
        return commits;
    }
    // One alone is the newest.
    let place = |number: usize| if count < 2 { last } else { number * last / (count - 1) };
    let places: Vec<usize> = (0..count).map(place).collect();
    commits.into_iter().enumerate().filter(|(place, _)| places.contains(place)).map(|(_, commit)| commit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_with_and_without_a_message_are_of_commits() {
        let of = |line| tag(line).map(|tag| (tag.name, tag.commit));
        assert_eq!(of("c1\0\0v1"), Some(("v1".to_owned(), "c1".to_owned())));
        assert_eq!(of("t2\0c2\0rel/v2"), Some(("rel/v2".to_owned(), "c2".to_owned())));
        assert_eq!(of("t2"), None);
    }

    #[test]
    fn commits_are_spread() {
        let commits = |count: usize| -> Vec<Commit> {
            (0..count).map(|n| Commit { hash: n.to_string(), date: 0, subject: String::new() }).collect()
        };
        let hashes = |all: Vec<Commit>| all.into_iter().map(|commit| commit.hash).collect::<Vec<_>>();
        assert_eq!(hashes(spread(commits(9), 3)), ["0", "4", "8"]);
        assert_eq!(hashes(spread(commits(9), 1)), ["8"]);
        assert_eq!(hashes(spread(commits(2), 5)), ["0", "1"]);
        assert!(spread(Vec::new(), 3).is_empty() && spread(commits(3), 0).is_empty());
        assert_eq!(short("0123456789"), "01234567");
    }
}
