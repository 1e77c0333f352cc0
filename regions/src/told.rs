//! Says things on standard error, each once in a process.
//!
//! No lock is taken and no memory is asked for, as the speaker may be a signal handler that interrupts another one.

use std::fmt::{self, Write};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of the longest line; longer ones are cut.
const LONGEST: usize = 512;

/// A line that grows in place.
struct Line {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is left for the end of the line.
        let room = LONGEST - 1 - self.length;
        let part = &text[..boundary(text, room)];
        self.bytes[self.length..][..part.len()].copy_from_slice(part.as_bytes());
        self.length += part.len();
        Ok(())
    }
}

/// The last boundary of characters up to a number of bytes.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|&place| text.is_char_boundary(place)).unwrap_or(0)
}

/// Says what nobody has said yet: `once` remembers that.
#[cold]
pub(crate) fn tell_once(once: &AtomicBool, what: fmt::Arguments<'_>) {
    if once.swap(true, Relaxed) {
        return;
    }
    let line = line(what);
    #[expect(unsafe_code, reason = "the standard library's way takes a lock")]
    // SAFETY: the bytes are our own. Nobody could be told of an error.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length);
    }
}

fn line(what: fmt::Arguments<'_>) -> Line {
    let mut line = Line { bytes: [0; LONGEST], length: 0 };
    // It never fails.
    let _ = write!(line, "perfprop: {what}");
    line.bytes[line.length] = b'\n';
    line.length += 1;
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(what: fmt::Arguments<'_>) -> String {
        let line = line(what);
        String::from_utf8_lossy(&line.bytes[..line.length]).into_owned()
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        assert_eq!(text(format_args!("{} is open", "é")), "perfprop: é is open\n");
        let long = text(format_args!("xx{}", "é".repeat(LONGEST)));
        assert!(long.len() == LONGEST - 1 && long.ends_with("é\n"), "{long}");
    }
}
