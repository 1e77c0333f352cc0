//! Formats what is wrong with a relation file.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::TextPlace;
use crate::codes::{Coded, ErrorCode};
use crate::names::{first_of, nearest, shown, shown_path};

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
        write!(f, "relation file ")?;
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
    /// How many of the fine ones can't be used here, where that was found out.
    pub unusable: usize,
    /// The events of these that this machine doesn't have.
    pub missing: Vec<String>,
    /// Whether what is fine is used anyway, so that nobody has to be told how.
    pub is_lenient: bool,
}

/// How many ids or events the closing line names.
const MAX_NAMED: usize = 5;

impl Diagnostics {
    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What `--relations-lenient` would do, if it would do something.
    fn way_on(&self) -> Option<String> {
        let fine = self.fine.saturating_sub(self.unusable);
        if fine == 0 {
            return self.of_no_use();
        }
        let [relations, are, them] = if fine == 1 { ["relation", "is", "it"] } else { ["relations", "are", "them"] };
        let (which, aim) = match (self.broken.is_empty(), self.unusable, fine) {
            (true, 0, 1) => (format!("the {relations}"), format!("use {them}")),
            (true, 0, _) => (format!("the {fine} {relations}"), format!("use {them}")),
            (true, ..) => (format!("{fine} {relations}"), format!("use {them}")),
            (false, ..) => (format!("{fine} other {relations}"), format!("go on without {}", some_of(&self.broken))),
        };
        Some(format!("{which} in this file {are} fine{}; to {aim}: --relations-lenient", self.besides()))
    }

    /// What follows the fine ones: that others can't be used here, where there are some.
    fn besides(&self) -> String {
        self.of_no_use().map_or_else(String::new, |words| format!(", {words}"))
    }

    /// `1 can't be used here (this machine has no EVENT)`; `None` where that is none.
    fn of_no_use(&self) -> Option<String> {
        let others = if self.fine == self.unusable { " other relations in this file" } else { "" };
        let others = if self.unusable == 1 { others.replace("relations", "relation") } else { others.to_owned() };
        let missing = some_of(&self.missing);
        (self.unusable > 0)
            .then(|| format!("{}{others} can't be used here (this machine has no {missing})", self.unusable))
    }
}

/// The first of some names, and how many more there are.
fn some_of(names: &[String]) -> String {
    first_of(names.iter().map(|name| shown(name)), MAX_NAMED)
}

impl Coded for Diagnostics {
    fn code(&self) -> Option<ErrorCode> {
        Some(ErrorCode::E07)
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = self.list.iter().map(Diagnostic::to_string).collect::<Vec<_>>();
        if let Some(last) = problems.last_mut() {
            if self.unlisted > 0 {
                last.push_str(&format!("\n      and {} more mistakes in this file", self.unlisted));
            }
            if let Some(way_on) = self.way_on().filter(|_| !self.is_lenient) {
                last.push_str(&format!("\n      {way_on}"));
            }
        }
        problems
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems().join("\n"))
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

impl Coded for LoadError {
    fn code(&self) -> Option<ErrorCode> {
        Some(ErrorCode::E07)
    }

    fn problems(&self) -> Vec<String> {
        vec![self.to_string()]
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "relation file {}: {}", shown_path(&self.path), unreadable(&self.error))?;
        if self.error.kind() == io::ErrorKind::NotFound {
            match similar_file(&self.path) {
                Some(similar) => write!(f, "\n      did you mean {}?", shown_path(&similar))?,
                None => f.write_str("\n      what a relation file says, and an example: README, Relations")?,
            }
        }
        Ok(())
    }
}

/// Why a file can't be read, without the number of the error.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read by this user".to_owned(),
        io::ErrorKind::IsADirectory => "it is a folder; a relation file is one file".to_owned(),
        _ => error.to_string(),
    }
}

/// The file in the same folder whose name is nearest to that of `path`.
fn similar_file(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = fs::read_dir(listed).ok()?.flatten().filter(|entry| entry.path().is_file());
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let similar = nearest(path.file_name()?.to_str()?, names.iter().map(String::as_str));
    similar.first().map(|name| folder.join(name))
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way_on(fine: usize, unusable: usize, missing: &[&str]) -> Option<String> {
        let missing = missing.iter().map(|&name| name.to_owned()).collect();
        Diagnostics { fine, unusable, missing, broken: vec!["R3".into()], ..Diagnostics::default() }.way_on()
    }

    #[test]
    fn a_file_that_is_not_there_has_a_neighbour() {
        let text = |path: &str, kind: io::ErrorKind| LoadError { path: path.into(), error: kind.into() }.to_string();
        let here = env!("CARGO_MANIFEST_DIR");
        let missing = text(&format!("{here}/Crago.toml"), io::ErrorKind::NotFound);
        assert!(missing.contains("there is no such file\n      did you mean ") && missing.ends_with("/Cargo.toml?"));
        let alone = text("/nonexistent/x.json", io::ErrorKind::NotFound);
        assert!(alone.ends_with("README, Relations"), "{alone}");
        assert!(text("x", io::ErrorKind::PermissionDenied).ends_with("it may not be read by this user"));
    }

    #[test]
    fn who_goes_on_already_is_not_told_how() {
        let is_lenient = true;
        let diagnostics = Diagnostics { fine: 2, broken: vec!["R3".into()], is_lenient, ..Diagnostics::default() };
        assert_eq!(diagnostics.to_string(), "");
    }

    #[test]
    fn relations_that_cannot_be_used_here_are_none_of_the_fine_ones() {
        let lenient = "to go on without R3: --relations-lenient";
        assert_eq!(way_on(2, 0, &[]), Some(format!("2 other relations in this file are fine; {lenient}")));
        let words = "1 other relation in this file is fine, 1 can't be used here (this machine has no x)";
        assert_eq!(way_on(2, 1, &["x"]), Some(format!("{words}; {lenient}")));
        let words = "2 other relations in this file can't be used here (this machine has no x, y)";
        assert_eq!(way_on(2, 2, &["x", "y"]), Some(words.to_owned()));
        assert_eq!(way_on(0, 0, &[]), None);
    }
}
