//! Tells recordings by their first line, and reads it.

use serde::Deserialize;
use serde_json::error::Category;

use super::Line;
use super::check::check;
use super::error::{ReadError, not_json};
use crate::run::{Header, VERSION};

/// Whether a file that begins so is a recording: its first line is a header, however its JSON is spaced and its keys
/// are sorted. The line may be longer than what is given.
pub fn is_recording(begun: &[u8]) -> bool {
    let begun = begun.trim_ascii_start();
    if !begun.starts_with(b"{") {
        return false;
    }
    let line = begun.split(|&byte| byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice::<LineKind>(line) {
        Ok(kind) => kind.r#type.as_deref() == Some(HEADER),
        // Of a part of a line, a key is looked for that no other file has.
        Err(error) => error.is_eof() && has_type_of_header(line),
    }
}

/// The type of a recording's first line.
const HEADER: &str = "header";

/// What tells kinds of lines apart.
#[derive(Deserialize)]
struct LineKind {
    r#type: Option<String>,
}

/// Whether a JSON object that isn't whole says that it is a header. Keys of objects in it count, too.
fn has_type_of_header(line: &[u8]) -> bool {
    const KEY: &[u8] = br#""type""#;
    let values = line.windows(KEY.len()).enumerate().filter(|(_, window)| *window == KEY);
    let is_header = |rest: &[u8]| {
        let value = rest.trim_ascii_start().strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.starts_with(br#""header""#))
    };
    values.map(|(place, _)| &line[place + KEY.len()..]).any(is_header)
}

/// The version is looked at first: the rest of a newer header may be of another shape.
pub(super) fn header(text: &[u8]) -> Result<Header, ReadError> {
    #[derive(Deserialize)]
    struct Kind {
        r#type: String,
        version: u64,
    }
    let foreign = |error: serde_json::Error| {
        let foreign = |reason: &str| ReadError::Foreign { reason: reason.to_owned() };
        match error.classify() {
            Category::Eof if has_type_of_header(text) => {
                ReadError::Line { line: 1, reason: "the recording is cut off here: it has no readings".into() }
            }
            Category::Data => foreign("it is JSON, but its first line is no header of a recording"),
            Category::Eof | Category::Io | Category::Syntax => foreign(&not_json(&error, text.len())),
        }
    };
    let kind: Kind = serde_json::from_slice(text).map_err(foreign)?;
    if kind.r#type != HEADER {
        return Err(ReadError::Foreign { reason: "the first line is not a header".into() });
    }
    if kind.version != u64::from(VERSION) {
        return Err(ReadError::Version { found: kind.version });
    }
    match serde_json::from_slice(text).map_err(foreign)? {
        Line::Header(header) => {
            check(&header).map_err(|reason| ReadError::Line { line: 1, reason })?;
            Ok(*header)
        }
        _ => Err(ReadError::Foreign { reason: "the first line is not a header".into() }),
    }
}
