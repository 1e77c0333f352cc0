//! Writes a header and rounds to a file of JSON lines.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use super::new_lines::NewLines;
use super::processes::KnownProcesses;
use super::{Line, RoundLine};
use crate::regions::RegionBatch;
use crate::run::{End, Header};
use crate::sources::Round;
use crate::stacks::{SamplingSetup, StackBatch};
use crate::threads::ThreadSnapshot;

/// What was read is in the file within this time, if whoever writes it [flushes](Recorder::flush) as often: a
/// program that is killed loses no more.
pub const ON_DISK: Duration = Duration::from_millis(100);

/// Writes a recording.
pub struct Recorder<W: Write> {
    out: BufWriter<W>,
    new: NewLines,
    processes: KnownProcesses,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording by writing its header.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let (new, processes) = (NewLines::default(), KnownProcesses::default());
        let mut recorder = Self { out: BufWriter::new(out), new, processes };
        recorder.line(&Line::Header(Box::new(header.clone())))?;
        recorder.out.flush()?;
        Ok(recorder)
    }

    /// Writes a round, and what threads have done if it has that.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn round(&mut self, round: &Round, lost: u64) -> io::Result<()> {
        self.line(&Line::Round(RoundLine::new(round, lost)))?;
        let Some(threads) = &round.threads else { return Ok(()) };
        let mut threads = ThreadSnapshot::clone(threads);
        self.processes.leave_out(&mut threads);
        self.line(&Line::Threads(threads))
    }

    /// Lets what was written so far reach the file.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes what is sampled; comes before any samples.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn sampled(&mut self, sampled: &SamplingSetup) -> io::Result<()> {
        self.line(&Line::Sampled(sampled.clone()))
    }

    /// Writes samples. A batch without anything new is left out.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn stacks(&mut self, batch: &StackBatch) -> io::Result<()> {
        self.new.stacks(batch).map_or(Ok(()), |line| self.line(&line))
    }

    /// Writes what is new of named regions. A batch that says nothing is left out.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn regions(&mut self, batch: &RegionBatch) -> io::Result<()> {
        self.new.regions(batch).map_or(Ok(()), |line| self.line(&line))
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn end(mut self, end: &End) -> io::Result<()> {
        self.line(&Line::End(end.clone()))?;
        self.out.flush()
    }

    /// Writes whole lines that were made before.
    #[cfg(feature = "export")]
    pub(super) fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.out.write_all(lines)
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }
}
