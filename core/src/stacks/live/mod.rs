//! Samples call stacks of a target that runs or waits before exec, and sends them in batches into a bounded channel.
//!
//! Two threads share the work: one empties the ring buffers and unwinds, and never waits; the other finds
//! names, which may take long. What either can't give on in time is dropped and counted.
//!
//! ```text
//! rings ── records ──> samples ── raw batches ──> naming ──> batches
//!                        └─ unwinding              │
//!                             └─ mapped ───────────┘
//!                                  └─ jit
//! ```

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{SamplingSetup, StackBatch, StackFrame, WaitingSamples};
use crate::sampling::LastRound;
use crate::sources::perf::CountedTarget;

mod jit;
mod mapped;
mod modelled;
mod namespaces;
mod naming;
mod rings;
mod samples;
mod unwinding;

#[cfg(feature = "disassembly")]
pub use naming::disassemble;
pub use rings::{
    DEFAULT_FREQUENCY, MACHINE_FREQUENCY, StackError, StackNeed, StackRequest, Unsampled, WAKEUPS, WakeupEvent,
    max_frequency,
};

/// The names of places in a program, as samples get them.
pub struct ProgramNames(naming::ElfProgram);

impl ProgramNames {
    /// Reads what is needed of any place in a program or library; `None` where the file is none.
    ///
    /// # Errors
    /// Returns the operating system's error if the file can't be opened.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let file = Arc::new(File::open(path)?);
        let program = mapped::MappedProgram { file, path: path.display().to_string(), root: None };
        Ok(naming::ElfProgram::open(program, &mut naming::DebugFiles::default()).map(Self))
    }

    /// The frames at an address that the file gives, the outermost first: a function, and what is inlined there. `None`
    /// where nothing names it.
    pub fn frames(&mut self, address: u64) -> Option<Vec<StackFrame>> {
        self.0.frames_at(address)
    }
}

impl fmt::Debug for ProgramNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramNames").finish_non_exhaustive()
    }
}

/// Raw batches, ten a second, that may wait for their names: reading the debug information of a large
/// program takes seconds.
const RAW_CAPACITY: usize = 600;
/// Batches that may wait for their taker.
const CAPACITY: usize = 64;
/// Open events that don't sample yet.
pub struct StackSource {
    opened: rings::OpenEvents,
}

/// Sampling that waits for [`begin`](Self::begin), or runs; dropping it ends it.
#[derive(Debug)]
pub struct LiveStacks {
    batches: Receiver<StackBatch>,
    sampled: SamplingSetup,
    /// Takes the time of the kernel's clock that samples count from, and what tells when they end.
    begin: Sender<(u64, LastRound)>,
    unsampled: Vec<Unsampled>,
    waiting: WaitingSamples,
    /// `None` where nothing is sampled and a model counts.
    commands: Option<io::PipeWriter>,
}

/// Begins to sample where that was put off; can be used from another thread.
#[derive(Debug)]
pub struct StacksRemote {
    commands: io::PipeWriter,
}

impl StacksRemote {
    /// Starts the sampling.
    pub fn enable(mut self) {
        // A thread that has ended no longer samples.
        let _ = self.commands.write_all(&[samples::ENABLE]);
    }
}

impl Drop for LiveStacks {
    fn drop(&mut self) {
        self.stop();
    }
}

impl StackSource {
    /// Opens the events for a target. Those of a process that waits before exec sample from exec on.
    ///
    /// # Errors
    /// When nothing can be sampled, see [`StackError`].
    pub fn open(wanted: &StackRequest, target: &CountedTarget) -> Result<Self, StackError> {
        rings::open(wanted, target).map(|opened| Self { opened })
    }

    /// Starts the threads, which wait for [`LiveStacks::begin`]. With `enable` events sample from then on, instead of
    /// with exec.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn start(mut self, enable: bool) -> io::Result<LiveStacks> {
        let (commands_out, commands) = io::pipe()?;
        let (raw, raw_batches) = bounded(RAW_CAPACITY);
        let (named, batches) = bounded(CAPACITY);
        let sampled = self.opened.sampled.clone();
        let unsampled = std::mem::take(&mut self.opened.unsampled);
        let waiting = WaitingSamples::default();
        let (begin, begun) = bounded(1);
        let worker = samples::StackSampler::new(self.opened, commands_out.into(), (raw, waiting.clone()));
        let work = move || begun.recv().map_or((), |(origin, last_round)| worker.run(origin, &last_round));
        thread::Builder::new().name("perfprop-stacks".into()).spawn(work)?;
        let to_name = waiting.clone();
        let name = move || naming::run(&raw_batches, &named, &to_name);
        thread::Builder::new().name("perfprop-symbols".into()).spawn(name)?;
        if enable {
            StacksRemote { commands: commands.try_clone()? }.enable();
        }
        Ok(LiveStacks { batches, sampled, begin, unsampled, waiting, commands: Some(commands) })
    }
}

impl LiveStacks {
    /// Where batches come out; it is closed after the last one.
    pub fn batches(&self) -> &Receiver<StackBatch> {
        &self.batches
    }

    /// What is sampled, and how.
    pub fn sampled(&self) -> &SamplingSetup {
        &self.sampled
    }

    /// Begins to sample. Times count from `origin`, a time of the kernel's clock that never goes backwards, in
    /// nanoseconds. What is sampled after the last round is left out.
    pub fn begin(&self, origin: u64, last_round: LastRound) {
        // Only the first one counts.
        let _ = self.begin.try_send((origin, last_round));
    }

    /// Requested events that can't be sampled.
    pub fn unsampled(&self) -> &[Unsampled] {
        &self.unsampled
    }

    /// The samples that were read and have no names yet.
    pub fn waiting(&self) -> &WaitingSamples {
        &self.waiting
    }

    /// A handle that begins to sample from another thread; `None` where a model samples nothing that could begin.
    ///
    /// # Errors
    /// The operating system's, when there is no descriptor left.
    pub fn remote(&self) -> io::Result<Option<StacksRemote>> {
        let commands = self.commands.as_ref().map(io::PipeWriter::try_clone).transpose()?;
        Ok(commands.map(|commands| StacksRemote { commands }))
    }

    /// Ends sampling; what was sampled still comes out.
    pub fn stop(&self) {
        // A thread that has ended needs no message.
        let _ = self.commands.as_ref().map(|mut commands| commands.write_all(&[samples::END]));
    }
}
