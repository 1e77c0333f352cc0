//! Opens the files that verbs read. `-` is standard input, and what gzip has packed is unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Error;
use super::progress::ProgressReader;
use crate::names::{shown, shown_path};
use crate::recording::{self, ReadError, Recording};
use crate::stack_formats::unpacked;

/// Whether a path is `-`: standard input or output.
pub(super) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to write over a file that is read, by whatever name.
pub(super) fn refuse_input<'a>(mut inputs: impl Iterator<Item = &'a PathBuf>, output: &Path) -> Result<(), Error> {
    match inputs.find(|input| !is_dash(output) && is_same_file(input, output)) {
        Some(input) => Err(Error::Usage(format!("{} is what is read: name another file", shown_path(input)))),
        None => Ok(()),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let number = |file: &std::fs::Metadata| (file.dev(), file.ino());
    file(one).zip(file(other)).is_some_and(|(one, other)| number(&one) == number(&other))
}

/// A file as it is; if reading it takes long, it shows how much was read.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if is_dash(path) {
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
