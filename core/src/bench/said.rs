//! Keeps what a command writes to standard error, for its last lines where it fails.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::memfd::{MFdFlags, memfd_create};

/// So many lines of standard error are kept, from the last so many bytes.
const LINES: usize = 5;
const BYTES: u64 = 4096;

/// So many bytes at the end stay in memory while a command writes on.
const KEPT: u64 = 64 * 1024;

/// A file in memory, as nothing has to read it meanwhile, and what runs on in the background never finds it closed.
pub(super) fn new() -> io::Result<File> {
    Ok(File::from(memfd_create("perfprop-said", MFdFlags::MFD_CLOEXEC)?))
}

/// Forgets what was written until now.
pub(super) fn clear(mut said: &File) -> io::Result<()> {
    said.set_len(0)?;
    said.rewind()
}

/// Gives the memory back of all but the end of what was written until now: commands may write more than there is memory.
pub(super) fn forget_beginning(said: &File) {
    let length = said.metadata().map_or(0, |metadata| metadata.len());
    let old = i64::try_from(length.saturating_sub(KEPT)).unwrap_or(0);
    if old > 0 {
        // The file is as long as before, and the command writes on at its end. A kernel that can't do that keeps it all.
        let _ = fallocate(said, FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, old);
    }
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn only_the_end_stays_in_memory() {
        let said = new().unwrap();
        let line = |number: usize| format!("{number:0>63}\n");
        let write = |numbers: std::ops::Range<usize>| {
            numbers.for_each(|number| (&said).write_all(line(number).as_bytes()).unwrap());
        };
        write(0..100_000);
        forget_beginning(&said);
        let in_memory = said.metadata().unwrap().blocks() * 512;
        // A page that the beginning has a part of stays.
        assert!((KEPT..=KEPT + 65_536).contains(&in_memory), "{in_memory}");
        write(100_000..100_001);
        let expected: Vec<String> = (99_996..100_001).map(|number| line(number).trim_end().to_owned()).collect();
        assert_eq!(last_lines(&said).unwrap(), expected);
        clear(&said).unwrap();
        forget_beginning(&said);
        write(1..2);
        assert_eq!(last_lines(&said).unwrap(), [line(1).trim_end()]);
    }
}
