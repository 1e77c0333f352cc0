//! Splits bytes into lines, one at a time, however long the input is.

use std::io::{self, Read};

use memchr::memmem;

/// The longest line that is taken for text, in bytes. A folded stack is one line.
pub(super) const LONGEST: usize = 64 << 20;

/// How much is read at once.
const CHUNK: usize = 256 << 10;

/// The lines of an input.
#[derive(Debug)]
pub(super) struct InputLines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer is still to come.
    start: usize,
    end: usize,
    at_end: bool,
    is_cut: bool,
    number: u64,
    empty_line: memmem::Finder<'static>,
}

/// Why there is no next line.
#[derive(Debug)]
pub(super) enum Broken {
    /// A line is longer than the limit.
    TooLong,
    /// Reading failed.
    Io(io::Error),
}

impl<R: Read> InputLines<R> {
    /// `begun` is what was read of the input already.
    pub(super) fn new(begun: Vec<u8>, input: R) -> Self {
        let empty_line = memmem::Finder::new(b"\n\n");
        Self { input, start: 0, end: begun.len(), buffer: begun, at_end: false, is_cut: false, number: 0, empty_line }
    }

    /// The number of the line that was given last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the last line had no newline.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next line without its newline; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Broken> {
        let mut searched = 0;
        loop {
            let unseen = self.start + searched..self.end;
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[unseen]) {
                let line = self.start..self.start + searched + length;
                self.start = line.end + 1;
                self.number += 1;
                return Ok(Some(&self.buffer[line]));
            }
            searched = self.end - self.start;
            if self.at_end {
                let line = std::mem::replace(&mut self.start, self.end)..self.end;
                self.number += u64::from(!line.is_empty());
                self.is_cut |= !line.is_empty();
                return Ok(Some(&self.buffer[line]).filter(|line| !line.is_empty()));
            }
            if searched > LONGEST {
                self.number += 1;
                return Err(Broken::TooLong);
            }
            self.fill().map_err(Broken::Io)?;
        }
    }

    /// What comes next, as far as it is read already.
    pub(super) fn ahead(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The lines that come next up to an empty one, with that, if no more than so many bytes and read already.
    pub(super) fn paragraph(&self, longest: usize) -> Option<&[u8]> {
        let ahead = &self.buffer[self.start..self.end.min(self.start + longest)];
        self.empty_line.find(ahead).map(|at| &ahead[..at + 2])
    }

    /// Goes on behind a [paragraph](Self::paragraph) of so many bytes and lines.
    pub(super) fn skip(&mut self, bytes: usize, lines: u64) {
        self.start = (self.start + bytes).min(self.end);
        self.number += lines;
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= std::mem::take(&mut self.start);
        if self.buffer.len() < self.end + CHUNK {
            // Doubled, so that a long line isn't copied over and over.
            self.buffer.resize((self.end + CHUNK).max(self.end * 2), 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.at_end = count == 0;
                    self.end += count;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(begun: &[u8], rest: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = InputLines::new(begun.to_vec(), rest);
        std::iter::from_fn(|| lines.next().unwrap().map(<[u8]>::to_vec)).collect()
    }

    #[test]
    fn lines_end_with_a_newline_or_with_the_input() {
        assert_eq!(all(b"", b""), Vec::<Vec<u8>>::new());
        assert_eq!(all(b"a\n", b"\nb"), [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut lines = InputLines::new(Vec::new(), io::repeat(b'x'));
        assert!(matches!(lines.next(), Err(Broken::TooLong)));
        assert_eq!(lines.number(), 1);
    }

    #[test]
    fn a_paragraph_ends_with_an_empty_line() {
        let mut lines = InputLines::new(b"a\nb\n\nc\nd".to_vec(), &b""[..]);
        assert_eq!(lines.paragraph(100), Some(&b"a\nb\n\n"[..]));
        assert_eq!(lines.paragraph(4), None);
        lines.skip(5, 3);
        assert_eq!(lines.paragraph(100), None, "it has no end");
        assert_eq!(lines.next().unwrap(), Some(&b"c"[..]));
        assert_eq!(lines.number(), 4);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_between_chunks(text in "[a\n]{0,40}", at in 0..40_usize) {
            let (begun, rest) = text.as_bytes().split_at(at.min(text.len()));
            let mut expected: Vec<_> = text.split('\n').map(|line| line.as_bytes().to_vec()).collect();
            if expected.last().is_some_and(Vec::is_empty) {
                expected.pop();
            }
            prop_assert_eq!(all(begun, rest), expected);
        }
    }
}
