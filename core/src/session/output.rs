//! Reads the lines of a child process' output into a bounded channel.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

/// Lines that may wait for their taker; past that the child waits, as it would for a slow pager.
const CAPACITY: usize = 4096;

/// A line longer than this is cut into several.
const MAX_LINE: usize = 4096;

/// A line of a command's output, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Which stream it came from.
    pub stream: Stream,
    /// The line, as far as it is text; what isn't is replaced. It may hold control characters.
    pub text: String,
    /// Whether it stays.
    pub end: LineEnd,
}

/// How a line of output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// With a newline.
    Newline,
    /// It hasn't yet, or with a carriage return, as that of a progress bar: the next of its stream stands in its place.
    Open,
}

/// The two streams of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The reading ends of a command's output, kept so that somebody else can take over reading.
#[derive(Debug, Default)]
pub(super) struct Drains {
    pipes: Vec<OwnedFd>,
}

impl Drains {
    /// Has a process of its own read and forget what the command still writes, so that it doesn't
    /// die of a closed pipe when perfprop ends.
    pub(super) fn hand_over(&mut self) -> io::Result<()> {
        for pipe in self.pipes.drain(..) {
            let mut cat = Command::new("/bin/cat");
            // In a group of its own, which a terminal's keys don't reach.
            cat.stdin(pipe).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn()?;
        }
        Ok(())
    }
}

/// Starts reading the piped streams of a child; without any, the channel never gives a line.
pub(super) fn drain(
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
) -> io::Result<(Drains, Receiver<OutputLine>)> {
    let (lines, output) = bounded(CAPACITY);
    let mut drains = Drains::default();
    if let Some(stdout) = stdout {
        drains.start(Stream::Stdout, OwnedFd::from(stdout), lines.clone())?;
    }
    if let Some(stderr) = stderr {
        drains.start(Stream::Stderr, OwnedFd::from(stderr), lines)?;
    }
    Ok((drains, output))
}

impl Drains {
    fn start(&mut self, stream: Stream, pipe: OwnedFd, lines: Sender<OutputLine>) -> io::Result<()> {
        self.pipes.push(pipe.try_clone()?);
        let file = std::fs::File::from(pipe);
        thread::Builder::new().name("perfprop-output".into()).spawn(move || forward(stream, file, &lines))?;
        Ok(())
    }
}

/// Ends with the stream, or when nobody takes the lines any more.
fn forward(stream: Stream, pipe: impl Read, lines: &Sender<OutputLine>) {
    let mut reader = BufReader::new(pipe);
    let mut line = UnfinishedLine::default();
    let send = |text: &[u8], end: LineEnd| {
        let text = String::from_utf8_lossy(text).into_owned();
        lines.send(OutputLine { stream, text, end }).is_ok()
    };
    loop {
        let read = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok([]) | Err(_) => return,
            Ok(bytes) => {
                let is_taken = bytes.iter().all(|&byte| line.push(byte, send));
                // What there is of a line is shown while nothing more comes.
                if !is_taken || !(line.text.is_empty() || send(&line.text, LineEnd::Open)) {
                    return;
                }
                bytes.len()
            }
        };
        reader.consume(read);
    }
}

/// What has come of a line.
#[derive(Default)]
struct UnfinishedLine {
    text: Vec<u8>,
    /// Whether the next character but a newline begins it anew.
    has_returned: bool,
}

impl UnfinishedLine {
    /// Takes a byte, and hands on the line where it ends; `false` if nobody takes it.
    fn push(&mut self, byte: u8, send: impl Fn(&[u8], LineEnd) -> bool) -> bool {
        let is_over = byte == b'\n' || self.text.len() == MAX_LINE;
        if is_over && !send(&self.text, LineEnd::Newline) {
            return false;
        }
        if is_over || self.has_returned {
            self.text.clear();
        }
        self.has_returned = byte == b'\r';
        if byte != b'\n' && byte != b'\r' {
            self.text.push(byte);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_out_whole_and_long_ones_in_pieces() {
        let (lines, output) = bounded(10);
        let long = "x".repeat(5000);
        forward(Stream::Stdout, format!("a\n\n{long}\nlast").as_bytes(), &lines);
        drop(lines);
        let ends = |line: &OutputLine| line.end == LineEnd::Newline;
        let texts: Vec<_> = output.iter().filter(ends).map(|line| line.text.len()).collect();
        assert_eq!(texts, [1, 0, 4096, 904]);
    }

    #[test]
    fn a_line_is_there_before_its_end_and_a_return_begins_it_anew() {
        /// A pipe that gives one of these at a time.
        struct Parts(std::slice::Iter<'static, &'static str>);
        impl Read for Parts {
            fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
                let part = self.0.next().copied().unwrap_or_default();
                into[..part.len()].copy_from_slice(part.as_bytes());
                Ok(part.len())
            }
        }
        let (lines, output) = bounded(20);
        const PARTS: [&str; 6] = ["a 1%", " done\r", "a 2%\rb", "c\r", "\nnext\r\n", "end"];
        forward(Stream::Stdout, Parts(PARTS.iter()), &lines);
        drop(lines);
        let found: Vec<_> = output.iter().map(|line| (line.text, line.end)).collect();
        let open = |text: &str| (text.to_owned(), LineEnd::Open);
        let whole = |text: &str| (text.to_owned(), LineEnd::Newline);
        assert_eq!(
            found,
            [open("a 1%"), open("a 1% done"), open("b"), open("bc"), whole("bc"), whole("next"), open("end")]
        );
    }
}
