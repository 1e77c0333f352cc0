//! Opens the files that verbs read. `-` is standard input, and what gzip has packed is unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::Error;
use super::progress::ProgressReader;
use crate::names::shown;
use crate::recording::{self, ReadError, Recording};
use crate::stack_formats::unpacked;

/// Whether a path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file as it is; if reading it takes long, it shows how much was read.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if is_stdin(path) {
        return Ok(Box::new(ProgressReader::new(io::stdin().lock(), "standard input", 0)));
    }
    Ok(Box::new(ProgressReader::of_file(File::open(path)?, &title(path))))
}

/// Reads a recording.
pub(super) fn open_recording(path: &Path) -> Result<Recording, Error> {
    let failed = |source| Error::Recording { path: path.into(), source };
    let input = open(path).and_then(unpacked).map_err(|error| failed(ReadError::Io(error)))?;
    recording::read(BufReader::new(input)).map_err(failed)
}

/// What a file is called in titles and while it is read: its name without folders.
pub(super) fn title(path: &Path) -> String {
    match path.file_name() {
        Some(name) if name != "-" => shown(&name.to_string_lossy()).into_owned(),
        _ => "standard input".into(),
    }
}
