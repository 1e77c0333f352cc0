//! Formats what is wrong at a place in a TOML file.

use std::fmt;
use std::ops::Range;

use crate::names::shown;

/// Something wrong with a theme or the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Message: what is wrong.
    pub message: String,
}

impl Complaint {
    /// A complaint about a span of bytes of the file's text.
    pub(crate) fn at(file: &str, text: &str, span: Range<usize>, message: String) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
        Self { file: file.to_owned(), line, column, message }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The file's name and what stands in it were written by others.
        write!(f, "{}:{}:{}: {}", shown(&self.file), self.line, self.column, shown(&self.message))
    }
}

/// The candidate most like `name`, if any is.
pub(super) fn similar<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    crate::names::nearest(name, candidates).first().copied()
}

/// `unknown key "thme"; did you mean "theme"?`
pub(crate) fn unknown<'a>(what: &str, word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let hint = similar(word, known).map(|similar| format!("; did you mean \"{similar}\"?"));
    format!("unknown {what} \"{word}\"{}", hint.unwrap_or_default())
}
