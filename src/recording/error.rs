//! Says why a file can't be read as a recording.

use std::fmt;
use std::io;

use crate::names::shown;
use crate::run::VERSION;

/// Why a file can't be read as a recording.
#[derive(Debug)]
pub enum ReadError {
    /// The operating system's word.
    Io(io::Error),
    /// The file is empty.
    Empty,
    /// The file isn't a recording of perfprop.
    Foreign {
        /// What is wrong with the first line.
        reason: String,
    },
    /// The file is a recording of another version.
    Version {
        /// Version that the file has.
        found: u64,
    },
    /// A line is not what it should be.
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        reason: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Empty => f.write_str("it is empty"),
            Self::Foreign { reason } => write!(f, "not a perfprop recording: {}", shown(reason)),
            Self::Version { found } => {
                write!(f, "a recording of version {found}; this perfprop reads version {VERSION}")
            }
            // The reason may quote the file.
            Self::Line { line, reason } => write!(f, "line {line}: {}", shown(reason)),
        }
    }
}

impl std::error::Error for ReadError {}

/// What is wrong with a line, and where in it. serde_json counts lines of its own, and the end of this one as a second.
pub(super) fn not_json(error: &serde_json::Error, length: usize) -> String {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    let column = if error.line() > 1 { length } else { error.column() };
    if column == 0 { reason.to_owned() } else { format!("column {column}: {reason}") }
}
