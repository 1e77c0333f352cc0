//! Tells perf's messages, which land within its text where errors and output go to one file, from samples.

use super::frame::is_frame;
use super::head::is_head;

/// Where messages end and samples go on.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The number of lines that were messages.
    pub(super) lines: u64,
    /// Whether the line before was part of a warning, which an empty line ends.
    is_within: bool,
}

impl Messages {
    /// Ends a message at a line that is none for sure.
    pub(super) fn end(&mut self) {
        self.is_within = false;
    }

    /// Whether a line is part of a message, and no part of a sample.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let text = line.trim_ascii_end();
        let begins = text.first().is_some_and(|byte| !byte.is_ascii_whitespace());
        if begins && is_message(text) {
            self.is_within |= begins_paragraph(text);
            self.lines += 1;
            return true;
        }
        if !self.is_within {
            return false;
        }
        self.is_within = begins && !is_head(text) && !is_frame(text);
        self.lines += u64::from(self.is_within);
        // The empty line is the end of the message, and not of a sample.
        self.is_within || text.is_empty()
    }
}

/// What warnings of several lines have at the beginning of a paragraph.
const PARAGRAPHS: [&[u8]; 4] =
    [b"Warning:", b"Check IO/CPU overload!", b"Please report this to ", b"Consider increasing the AUX ring buffer"];

/// What other messages begin with.
const BEGINS: [&[u8]; 4] = [b"[ perf record: ", b"addr2line: ", b"BFD: ", b"WARNING: Kernel address maps "];

/// What other messages end with, behind the name of a file.
const ENDS: [&[u8]; 3] =
    [b", continuing without symbols", b", maybe install a debug package?", b": could not read first record"];

/// Whether a line is one of perf's messages, or begins one.
pub(in crate::stack_formats) fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    if line == PARAGRAPHS[0] {
        return true;
    }
    let is_known = begins_paragraph(line)
        || BEGINS.iter().any(|begin| line.starts_with(begin))
        || ENDS.iter().any(|end| line.ends_with(end));
    // A thread may be called anything.
    is_known && !is_head(line)
}

fn begins_paragraph(line: &[u8]) -> bool {
    PARAGRAPHS.iter().any(|begin| line.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_from_samples() {
        for line in [
            "Warning:",
            "Warning: perf is old",
            "[ perf record: Woken up 1 times to write data ]",
            "/usr/lib/x.so with build id 12ab not found, continuing without symbols",
            "no symbols found in /usr/bin/x, maybe install a debug package?",
        ] {
            assert!(is_message(line.as_bytes()), "{line}");
        }
        for line in ["Warning: 7 23.5: 10 cycles:", "addr2line: 7 [001] 23.5: 1 cycles:", "rec", "a;b 1", ""] {
            assert!(!is_message(line.as_bytes()), "{line}");
        }
    }
}
