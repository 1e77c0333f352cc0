//! The commands that are measured of each commit, and how each commit is built: from options, or from `perfprop.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use serde::Deserialize;

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
}

/// What a text of a benchmark or of `perfprop.toml` lacks.
#[derive(Debug)]
pub enum PlanError {
    /// It isn't `NAME=COMMAND`.
    NoName(String),
    /// A quote of a command isn't closed.
    OpenQuote(String),
    /// The file can't be read.
    System(PathBuf, io::Error),
    /// The file isn't as it should be.
    Format(PathBuf, String),
    /// Neither options nor the file name a benchmark.
    Nothing,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(text) => {
                write!(f, "{} names no benchmark: expected NAME=COMMAND, as in sort='./sort 1000'", quoted(text))
            }
            Self::OpenQuote(text) => write!(f, "a quote isn't closed in {}", quoted(text)),
            Self::System(path, error) => write!(f, "{}: {error}", quoted(&path.to_string_lossy())),
            Self::Format(path, error) => {
                write!(f, "{}: {}", quoted(&path.to_string_lossy()), crate::names::shown(error.trim()))
            }
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

    fn new(name: &str, command: &str) -> Result<Self, PlanError> {
        let argv = words(command).ok_or_else(|| PlanError::OpenQuote(command.to_owned()))?;
        // The name becomes a part of files' names.
        let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        if argv.is_empty() || name.is_empty() || !name.chars().all(is_name) {
            return Err(PlanError::NoName(format!("{name}={command}")));
        }
        Ok(Self { name: name.to_owned(), argv })
    }
}

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

/// The file as it stands.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigurationFile {
    #[serde(default)]
    history: HistoryTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HistoryTable {
    build: Option<String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    keep: Vec<PathBuf>,
    #[serde(default)]
    bench: BTreeMap<String, String>,
}

impl HistoryPlan {
    /// What `perfprop.toml` in a folder says; nothing where there is none.
    ///
    /// # Errors
    /// Returns why the file can't be read, or what it lacks.
    pub fn of_folder(folder: &Path) -> Result<Self, PlanError> {
        let path = folder.join(CONFIGURATION);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(PlanError::System(path, error)),
        };
        let file: ConfigurationFile =
            toml::from_str(&text).map_err(|error| PlanError::Format(path, error.to_string()))?;
        let HistoryTable { build, events, keep, bench } = file.history;
        let benches = bench.iter().map(|(name, command)| BenchCommand::new(name, command)).collect::<Result<_, _>>()?;
        Ok(Self { build, events, benches, keep })
    }
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
        for wrong in ["./sort", "=x", "sort=", "a/b=x", "a='x", "a=x\\"] {
            assert!(BenchCommand::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_names_benchmarks() {
        let folder = std::env::temp_dir().join(format!("perfprop-benches-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(HistoryPlan::of_folder(&folder).unwrap(), HistoryPlan::default());
        let text =
            "[history]\nbuild = \"make\"\nevents = [\"cycles\"]\nkeep = [\"data\"]\n[history.bench]\nb = \"./b 1\"\n";
        fs::write(folder.join(CONFIGURATION), text).unwrap();
        let plan = HistoryPlan::of_folder(&folder).unwrap();
        assert_eq!((plan.build.as_deref(), plan.keep), (Some("make"), vec![PathBuf::from("data")]));
        assert_eq!(plan.benches[0].argv, ["./b", "1"]);
        fs::write(folder.join(CONFIGURATION), "[history]\nbuilt = 1\n").unwrap();
        assert!(HistoryPlan::of_folder(&folder).unwrap_err().to_string().contains("built"));
        fs::remove_dir_all(folder).unwrap();
    }

    proptest! {
        #[test]
        fn words_without_quotes_are_those_between_spaces(text in "[a-z ]*") {
            let expected: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
            prop_assert_eq!(words(&text), Some(expected));
        }
    }
}
