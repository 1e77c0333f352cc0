//! Writes a header and rounds to a file of JSON lines.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{End, Header, Line, RoundLine, StacksLine};
use crate::sources::Round;
use crate::stacks::{Losses, Sampled, StackBatch};

/// What was read reaches the file within 100 ms: this, and the time to the next round.
const FLUSH_AFTER: Duration = Duration::from_millis(50);

/// Writes a recording.
pub struct Recorder<W: Write> {
    out: BufWriter<W>,
    flushed: Instant,
    /// Losses that the last line of samples reports.
    losses: Losses,
}

/// Makes a file for a recording; what was there before is kept as `FILE.old`.
///
/// # Errors
/// Returns the operating system's error.
pub fn create_keeping_old(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0) {
        fs::rename(path, with_suffix(path, ".old"))?;
    }
    File::create(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl<W: Write> Recorder<W> {
    /// Begins a recording by writing its header.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let mut recorder = Self { out: BufWriter::new(out), flushed: Instant::now(), losses: Losses::default() };
        recorder.line(&Line::Header(Box::new(header.clone())))?;
        recorder.out.flush()?;
        Ok(recorder)
    }

    /// Writes a round.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn round(&mut self, round: &Round, lost: u64) -> io::Result<()> {
        self.line(&Line::Round(RoundLine::new(round, lost)))?;
        if self.flushed.elapsed() >= FLUSH_AFTER {
            self.flush()?;
        }
        Ok(())
    }

    /// Lets what was written so far reach the file.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flushed = Instant::now();
        self.out.flush()
    }

    /// Writes what is sampled; comes before any samples.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn sampled(&mut self, sampled: &Sampled) -> io::Result<()> {
        self.line(&Line::Sampled(sampled.clone()))
    }

    /// Writes samples. A batch without anything new is left out.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn stacks(&mut self, batch: &StackBatch) -> io::Result<()> {
        if *batch == (StackBatch { losses: self.losses, ..StackBatch::default() }) {
            return Ok(());
        }
        self.losses = batch.losses;
        self.line(&Line::Stacks(StacksLine::from(batch)))
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn end(mut self, end: &End) -> io::Result<()> {
        self.line(&Line::End(end.clone()))?;
        self.out.flush()
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}
