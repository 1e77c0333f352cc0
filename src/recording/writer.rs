//! Writes a header and rounds to a file of JSON lines.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use super::processes::KnownProcesses;
use super::{Line, RegionsLine, RoundLine, StacksLine};
use crate::regions::RegionBatch;
use crate::run::{End, Header};
use crate::sources::Round;
use crate::stacks::{Losses, SamplingSetup, StackBatch};
use crate::threads::ThreadSnapshot;

/// What was read is in the file within this time, if whoever writes it [flushes](Recorder::flush) as often: a
/// program that is killed loses no more.
pub const ON_DISK: Duration = Duration::from_millis(100);

/// Writes a recording.
pub struct Recorder<W: Write> {
    out: BufWriter<W>,
    /// Losses that the last line of samples reports.
    losses: Losses,
    /// Whether the last line of regions says that none was called: that needs no second one.
    is_idle: bool,
    processes: KnownProcesses,
}

impl<W: Write> Recorder<W> {
    /// Begins a recording by writing its header.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn new(out: W, header: &Header) -> io::Result<Self> {
        let (losses, processes) = (Losses::default(), KnownProcesses::default());
        let mut recorder = Self { out: BufWriter::new(out), losses, is_idle: true, processes };
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
        if *batch == (StackBatch { losses: self.losses, ..StackBatch::default() }) {
            return Ok(());
        }
        self.losses = batch.losses;
        self.line(&Line::Stacks(Box::new(StacksLine::from(batch))))
    }

    /// Writes what is new of named regions. A batch that says nothing is left out.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn regions(&mut self, batch: &RegionBatch) -> io::Result<()> {
        let is_idle = batch.is_empty() && (batch.counted_since.is_none() || self.is_idle);
        self.is_idle = if batch.counted_since.is_some() { batch.counts.is_empty() } else { self.is_idle };
        if is_idle { Ok(()) } else { self.line(&Line::Regions(Box::new(RegionsLine::from(batch)))) }
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
