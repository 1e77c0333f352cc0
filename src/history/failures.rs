//! Why a benchmark has no result of a commit.

use std::fmt;
use std::time::Duration;

use crate::names::quoted;
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
            Self::TimedOut(time) => write!(f, "took longer than {} s (--timeout)", time.as_secs()),
        }
    }
}
