//! Why benchmarks or commits have no results.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::checkout::CheckoutError;
use super::git::Commit;
use super::results::ResultsError;
use crate::bench::SweepError;
use crate::names::quoted;
use crate::number::time;
use crate::sources::command::Exit;

/// A benchmark that has no result of a commit.
#[derive(Clone, Debug)]
pub struct BrokenBenchmark {
    /// Its name.
    pub name: String,
    /// The commit's hash.
    pub commit: String,
    /// Why.
    pub why: BenchFailure,
    /// How many runs went well before.
    pub whole: usize,
    /// The last lines that it wrote to standard error.
    pub said: Vec<String>,
}

/// How a benchmark failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BenchFailure {
    /// The build left no such program.
    NoProgram(String),
    /// It ended otherwise than with code 0.
    Ended(Exit),
    /// A run took longer than it may.
    TimedOut(Duration),
}

impl fmt::Display for BenchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram(program) => write!(f, "lacks its program {} after the build", quoted(program)),
            Self::Ended(exit) => f.write_str(&exit.told()),
            Self::TimedOut(limit) => write!(f, "took longer than {} (--timeout)", time(limit.as_nanos() as f64)),
        }
    }
}

/// A commit whose build failed.
#[derive(Clone, Debug)]
pub struct FailedCommit {
    /// The commit.
    pub commit: Commit,
    /// The file that says why.
    pub log: PathBuf,
}

/// Why commits can't be measured.
#[derive(Debug)]
pub enum HistoryError {
    /// They can't be checked out.
    Checkout(CheckoutError),
    /// The results can't be read or written.
    Results(ResultsError),
    /// A run can't be made.
    Run(SweepError),
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checkout(error) => error.fmt(f),
            Self::Results(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HistoryError {}

impl From<ResultsError> for HistoryError {
    fn from(error: ResultsError) -> Self {
        Self::Results(error)
    }
}

impl From<CheckoutError> for HistoryError {
    fn from(error: CheckoutError) -> Self {
        Self::Checkout(error)
    }
}
