//! The commands that are measured of each commit, and how each commit is built.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::results::{RESERVED, VERSION_KEY};
use crate::names::quoted;

/// The file in which a project names its benchmarks.
pub const CONFIGURATION: &str = "perfprop.toml";

/// A command that is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BenchCommand {
    /// The benchmark's name.
    pub name: String,
    /// The command and its arguments; not empty.
    pub argv: Vec<String>,
}

/// How commits are built and measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistoryPlan {
    /// What builds a commit, for a shell; nothing is built if `None`.
    pub build: Option<String>,
    /// The events that are counted.
    pub events: Vec<String>,
    /// The benchmarks.
    pub benches: Vec<BenchCommand>,
    /// What is kept of a build, beside the programs of the benchmarks: paths in the checkout.
    pub keep: Vec<PathBuf>,
    /// The longest that a run of a benchmark may take; as long as it wants if `None`.
    pub timeout: Option<Duration>,
}

/// What a text of a benchmark lacks.
#[derive(Debug)]
pub enum PlanError {
    /// It isn't `NAME=COMMAND`.
    NoName(String),
    /// It has the name of what isn't a benchmark in asv's file of them.
    Reserved,
    /// A quote of a command isn't closed.
    OpenQuote(String),
    /// A word of a command means something to a shell alone.
    Shell(String, String),
    /// Neither options nor the file name a benchmark.
    Nothing,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(text) => {
                write!(
                    f,
                    "{} names no benchmark: expected NAME=COMMAND, as in sort='./sort 1000', with a NAME of letters, digits, _ and -",
                    quoted(text)
                )
            }
            Self::Reserved => f.write_str(RESERVED),
            Self::OpenQuote(text) => write!(f, "a quote isn't closed in {}", quoted(text)),
            Self::Shell(text, word) => write!(
                f,
                "{} isn't run by a shell, to which {} means something: write sh -c '...' if it is to be",
                quoted(text),
                quoted(word)
            ),
            Self::Nothing => write!(
                f,
                "there is nothing to measure: name benchmarks with --bench NAME=COMMAND, or in {CONFIGURATION}: [history.bench] NAME = \"COMMAND\""
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl BenchCommand {
    /// Reads `NAME=COMMAND`.
    ///
    /// # Errors
    /// Returns what the text lacks.
    pub fn parse(text: &str) -> Result<Self, PlanError> {
        let (name, command) = text.split_once('=').ok_or_else(|| PlanError::NoName(text.to_owned()))?;
        Self::new(name.trim(), command)
    }

    /// A benchmark of this name and command.
    ///
    /// # Errors
    /// Returns what they lack.
    pub fn new(name: &str, command: &str) -> Result<Self, PlanError> {
        let argv = words(command).ok_or_else(|| PlanError::OpenQuote(command.to_owned()))?;
        if let Some(word) = argv.iter().find(|word| OF_SHELL.contains(&word.as_str()) || word.starts_with("2>")) {
            return Err(PlanError::Shell(command.to_owned(), word.clone()));
        }
        // The name becomes a part of files' names.
        let is_name = |c: char| c.is_alphanumeric() || "_-".contains(c);
        if argv.is_empty() || name.is_empty() || !name.chars().all(is_name) {
            return Err(PlanError::NoName(format!("{name}={command}")));
        }
        if name == VERSION_KEY {
            return Err(PlanError::Reserved);
        }
        Ok(Self { name: name.to_owned(), argv })
    }
}

/// Words by which a shell joins commands and files.
const OF_SHELL: [&str; 8] = ["|", "||", "&&", ";", "&", ">", ">>", "<"];

/// Words as a shell takes them, with quotes and backslashes; nothing is replaced. `None` if a quote isn't closed.
fn words(text: &str) -> Option<Vec<String>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            ('\\', None | Some('"')) => word.get_or_insert_default().push(characters.next()?),
            (c, None) if c.is_whitespace() => all.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commands_have_names_and_words() {
        let bench = BenchCommand::parse(r#"sort = ./sort "a b" 'c"d' e\ f """#).unwrap();
        assert_eq!(
            (bench.name.as_str(), bench.argv),
            ("sort", ["./sort", "a b", "c\"d", "e f", ""].map(str::to_owned).into())
        );
        for wrong in ["./sort", "=x", "sort=", "a/b=x", "a='x", "a=x\\", "a=b > c", "a=b | c", "a=b 2>&1"] {
            assert!(BenchCommand::parse(wrong).is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn words_without_quotes_are_those_between_spaces(text in "[a-z ]*") {
            let expected: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(words(&text), Some(expected));
        }
    }
}
