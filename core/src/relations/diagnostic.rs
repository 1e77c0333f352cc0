//! Formats what is wrong with a relation file.

use std::fmt;
use std::path::PathBuf;

use super::TextPlace;
use crate::names::shown;

/// The part of a line that something is wrong with, ready for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, cut to the width of a terminal, nothing in it that a terminal would obey.
    pub line: String,
    /// How many columns of `line` are before the place.
    pub caret: usize,
    /// What stands at the place.
    pub label: String,
}

/// One thing that is wrong with a relation file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Place of the mistake.
    pub place: TextPlace,
    /// Message: what the file should have there.
    pub message: String,
    /// The line, unless the file is wrong as a whole.
    pub excerpt: Option<Excerpt>,
    /// What to write instead, where that is known.
    pub help: Option<String>,
    /// The id of the relation that can't be used for it, if it is one.
    pub relation: Option<String>,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E07 perfprop: relation file ")?;
        match &self.excerpt {
            None => write!(f, "{}: {}", shown(&self.place.file), self.message)?,
            Some(excerpt) => {
                writeln!(f, "{}: {}", self.place, self.message)?;
                let line = self.place.line.to_string();
                writeln!(f, "{line:>5} | {}", excerpt.line)?;
                let (margin, caret) = (line.len().max(5), excerpt.caret);
                write!(f, "{:margin$} | {:caret$}^ {}", "", "", excerpt.label)?;
            }
        }
        self.help.iter().try_for_each(|help| write!(f, "\n      {help}"))
    }
}

/// All mistakes of a relation file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// What is wrong, in the order of the file.
    pub list: Vec<Diagnostic>,
    /// How much more is wrong than is listed.
    pub unlisted: usize,
    /// How many relations nothing is wrong with.
    pub fine: usize,
    /// The ids of the relations that something is wrong with.
    pub broken: Vec<String>,
}

/// How many ids the closing line names.
const MAX_NAMED: usize = 5;

impl Diagnostics {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What `--relations-lenient` would do, if it would do something.
    fn way_on(&self) -> Option<String> {
        let fine = match (self.fine, self.broken.is_empty()) {
            (0, _) => return None,
            (1, true) => return Some("the relation in this file is fine; to use it: --relations-lenient".into()),
            (fine, true) => {
                return Some(format!("the {fine} relations in this file are fine; to use them: --relations-lenient"));
            }
            (1, false) => "1 other relation in this file is fine".to_owned(),
            (fine, false) => format!("{fine} other relations in this file are fine"),
        };
        let named = self.broken.iter().take(MAX_NAMED).map(|id| shown(id)).collect::<Vec<_>>();
        let more = match self.broken.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("{fine}; to go on without {}{more}: --relations-lenient", named.join(", ")))
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = self.list.iter().map(Diagnostic::to_string).collect::<Vec<_>>();
        if self.unlisted > 0 {
            lines.push(format!("      and {} more mistakes in this file", self.unlisted));
        }
        lines.extend(self.way_on().map(|line| format!("      {line}")));
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Diagnostics {}

/// A relation file that can't be read.
#[derive(Debug)]
pub struct LoadError {
    /// Path of the file.
    pub path: PathBuf,
    /// Why it can't be read.
    pub error: std::io::Error,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display().to_string();
        let path = shown(&path);
        write!(f, "E07 perfprop: relation file {path}: {}", self.error)
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}
