//! Reads the text files that verbs take, and says what is wrong in them. `-` is standard input.

use std::fmt::Display;
use std::io::{self, IsTerminal};
use std::path::Path;

use super::Error;
use super::input::is_dash;
use crate::files;
use crate::names::quoted_path;

/// The text of a file, or of standard input where it is `-`.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
    match is_dash(path) {
        true if io::stdin().is_terminal() => Err(io::Error::other("it is the terminal: name a file, or pipe one in")),
        true => files::text_of(io::stdin().lock(), files::LONGEST),
        false => files::text(path, files::LONGEST),
    }
}

/// What is wrong in a file, or in standard input where it is `-`.
pub(super) fn in_file(path: &Path, what: impl Display) -> Error {
    let file = if is_dash(path) { "standard input".to_owned() } else { quoted_path(path) };
    Error::Input(format!("{file}: {what}"))
}
