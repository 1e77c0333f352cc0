//! Opens the files that verbs read. `-` is standard input, and what gzip has packed is unpacked.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::Error;
use super::progress::ProgressReader;
use crate::names::{quoted_path, shown, shown_path};
use crate::recording::{self, ReadError, Recording};
use crate::stack_formats::unpacked;

/// Whether a path is `-`: standard input or output.
pub(super) fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to write over a file that is read, by whatever name.
pub(super) fn refuse_input<'a>(mut inputs: impl Iterator<Item = &'a PathBuf>, output: &Path) -> Result<(), Error> {
    match inputs.find(|input| !is_dash(output) && is_same_file(input, output)) {
        Some(input) => Err(Error::Input(format!("{} is what is read: name another file", shown_path(input)))),
        None => Ok(()),
    }
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    let file = |path: &Path| std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file);
    let number = |file: &std::fs::Metadata| (file.dev(), file.ino());
    file(one).zip(file(other)).is_some_and(|(one, other)| number(&one) == number(&other))
}

/// Refuses a recording where something else is wanted; `wanted` says what, and which command makes it.
pub(super) fn refuse_recording(path: &Path, wanted: &str) -> Result<(), Error> {
    // What is no file is read once.
    if !path.is_file() {
        return Ok(());
    }
    let mut begun = Vec::new();
    let read =
        File::open(path).and_then(unpacked).and_then(|file| file.take(HEAD_OF_RECORDING).read_to_end(&mut begun));
    match read {
        Ok(_) if recording::is_recording(&begun) => Err(is_recording(path, wanted)),
        _ => Ok(()),
    }
}

/// The error of a recording where something else is wanted.
pub(super) fn is_recording(path: &Path, wanted: &str) -> Error {
    let name = if is_dash(path) { "standard input".to_owned() } else { quoted_path(path) };
    Error::Input(format!("{name} is a recording, and {wanted}"))
}

/// So much of a file says whether it is a recording.
const HEAD_OF_RECORDING: u64 = 1 << 16;

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
