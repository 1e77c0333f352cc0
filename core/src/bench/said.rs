//! Keeps what a command writes to standard error, for its last lines where it fails.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use nix::sys::memfd::{MFdFlags, memfd_create};

/// So many lines of standard error are kept, from the last so many bytes.
const LINES: usize = 5;
const BYTES: u64 = 4096;

/// A file in memory, as nothing has to read it meanwhile, and what runs on in the background never finds it closed.
pub(super) fn new() -> io::Result<File> {
    Ok(File::from(memfd_create("perfprop-said", MFdFlags::MFD_CLOEXEC)?))
}

/// Forgets what was written until now.
pub(super) fn clear(mut said: &File) -> io::Result<()> {
    said.set_len(0)?;
    said.rewind()
}

/// The last lines that aren't empty.
pub(super) fn last_lines(mut said: &File) -> io::Result<Vec<String>> {
    let length = said.seek(SeekFrom::End(0))?;
    said.seek(SeekFrom::Start(length.saturating_sub(BYTES)))?;
    let mut bytes = Vec::new();
    said.take(BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(lines[lines.len().saturating_sub(LINES)..].iter().map(|line| (*line).to_owned()).collect())
}
