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
const MAX_LINE: u64 = 4096;

/// A line of a command's output, without its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Which stream it came from.
    pub stream: Stream,
    /// The line, as far as it is text; what isn't is replaced. It may hold control characters.
    pub text: String,
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
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(&line)).into_owned();
                if lines.send(OutputLine { stream, text }).is_err() {
                    return;
                }
            }
        }
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
        let texts: Vec<_> = output.iter().map(|line| line.text.len()).collect();
        assert_eq!(texts, [1, 0, 4096, 904, 4]);
    }
}
