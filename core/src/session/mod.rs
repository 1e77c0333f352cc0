//! Runs a measurement: the process, its counters, the sampler.
//!
//! Dropping a [`Session`] ends whatever it started, unless it was [detached](Session::detach).

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::Receiver;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::HostFiles;
use crate::plan::Plan;
use crate::regions::{LiveRegions, ProcessRegions, RegionSource, Wanted};
use crate::run::{End, MeasuredTarget, RotatedBy};
#[cfg(feature = "stacks")]
use crate::sampling::LastRound;
use crate::sampling::{Sampler, SamplerMessage, SamplerRequest};
use crate::sources::Round;
use crate::sources::emulate::CacheModel;
#[cfg(feature = "stacks")]
use crate::sources::perf::TargetKind;
use crate::sources::perf::mux::{Interval, MuxError};
use crate::sources::perf::{CounterRow, OpenError, TracefsProbes};
#[cfg(feature = "stacks")]
use crate::sources::process;
#[cfg(feature = "stacks")]
use crate::stacks::live;
use crate::units::KernelNs;

mod awaited;
mod begin;
mod caught;
mod child;
mod counters;
mod launch;
mod output;
pub mod schedule;
mod stacks;

use begin::{Counting, TimeoutThread};
pub use caught::{CaughtSignal, SignalSender, Unfinished};
pub use child::find_command;
use child::{Running, terminate};
pub use launch::{ChildIo, CommandLine, Launch, Needs};
pub use output::{LineEnd, OutputLine, Stream};
pub use schedule::Schedule;

/// Why a measurement could not begin. Nothing is left running.
#[derive(Debug)]
pub enum StartError {
    /// The command can't be executed.
    Command {
        /// The command as the user gave it.
        command: OsString,
        /// The error of exec.
        source: io::Error,
    },
    /// Neither a command nor anything else to measure.
    NoTarget,
    /// Counters can't be opened.
    Open(OpenError),
    /// No event of the plan could be opened, or fewer than are needed.
    NotOpened(Vec<CounterRow>),
    /// Call stacks can't be sampled.
    #[cfg(feature = "stacks")]
    Stacks(live::StackError),
    /// The model needs valgrind, which isn't installed.
    NoValgrind,
    /// The kernel's rotation interval can't be changed.
    Mux(MuxError),
    /// The operating system can't make a process or a thread.
    System(io::Error),
}

/// A measurement that runs.
#[derive(Debug)]
pub struct Session {
    sampler: Sampler,
    target: MeasuredTarget,
    rows: Vec<CounterRow>,
    model: Option<CacheModel>,
    rotated_by: Option<RotatedBy>,
    command: Option<Running>,
    output: Receiver<OutputLine>,
    #[cfg_attr(not(feature = "stacks"), expect(dead_code, reason = "there is nothing in it"))]
    stacks: stacks::Sampling,
    /// Where the measured programs share their regions.
    regions: Option<Arc<RegionSource>>,
    /// What rounds, samples and regions count from.
    began: KernelNs,
    #[cfg(feature = "stacks")]
    last_round: LastRound,
    /// The kernel's rotation intervals that are restored at the end.
    intervals: Vec<Interval>,
    /// Time after which the session ends.
    ends_after: Option<Duration>,
    /// What ends it then; dropped after the sampler.
    _timeout_thread: Option<TimeoutThread>,
    /// Whether all processes or threads have ended that it measures and didn't start.
    has_target_ended: Arc<AtomicBool>,
    /// Whether all that a command does is to be counted, until it ends by itself.
    watches_all: bool,
    /// What the machine had started before.
    started_before: Option<u64>,
    /// The probes in tracefs, which can be removed once their counters, above, are closed.
    _probes: TracefsProbes,
}

impl Session {
    /// Opens the counters, starts the command if there is one, and begins to read every `period`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(plan: &Plan, launch: &Launch, period: Duration) -> Result<Self, StartError> {
        // Before anything is counted, and set back if nothing comes of it.
        let intervals = schedule::set_intervals(launch)?;
        let counting = match &launch.command {
            Some(line) => Counting::of_command(plan, launch, line)?,
            None => Counting::of_tasks(plan, launch)?,
        };
        counting.sampled(launch, period, intervals)
    }

    /// Target of the measurement.
    pub fn target(&self) -> &MeasuredTarget {
        &self.target
    }

    /// What became of each event of the plan, in each part of the target.
    pub fn rows(&self) -> &[CounterRow] {
        &self.rows
    }

    /// The model that counts, if no real machine does.
    pub fn model(&self) -> Option<&CacheModel> {
        self.model.as_ref()
    }

    /// What the named regions of the measured programs counted so far; of those that ran before, what they counted
    /// since.
    pub fn regions(&self) -> Vec<ProcessRegions> {
        self.regions.as_ref().map(|regions| regions.read()).unwrap_or_default()
    }

    /// Begins to read regions every `interval`, on the clock of the rounds; `None` where programs can't share any.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn watch_regions(&self, interval: Duration, wanted: Wanted) -> io::Result<Option<LiveRegions>> {
        let Some(source) = self.regions.as_ref().filter(|source| wanted != Wanted::Nothing || source.has_to_look())
        else {
            return Ok(None);
        };
        LiveRegions::start(Arc::clone(source), self.began, interval, wanted).map(Some)
    }

    /// Who rotates the groups if they have to; `None` where nothing is counted on hardware.
    pub fn rotated_by(&self) -> Option<RotatedBy> {
        self.rotated_by
    }

    /// The kernel's rotation intervals that were changed, and are restored at the end.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Channel that rounds come from.
    pub fn samples(&self) -> &Receiver<SamplerMessage> {
        self.sampler.samples()
    }

    /// Disconnected when no more rounds will come.
    pub fn ended(&self) -> &Receiver<Infallible> {
        self.sampler.ended()
    }

    /// Where the command's output comes out, if it is captured.
    pub fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    /// The sampling of call stacks, if that was asked for.
    #[cfg(feature = "stacks")]
    pub fn stacks(&self) -> Option<&live::LiveStacks> {
        self.stacks.as_ref()
    }

    /// Begins to sample the call stacks that are wanted of what `launch` told to count, and is counted already; of a
    /// command, the processes that it has now and those that they start.
    ///
    /// # Errors
    /// See [`StartError`]; counting goes on.
    #[cfg(feature = "stacks")]
    pub fn begin_stacks(&mut self, wanted: &live::StackRequest, launch: &Launch) -> Result<(), StartError> {
        let kind = match (&launch.target, self.running_command()) {
            (Some(kind), _) => kind.clone(),
            (None, Some(pid)) => TargetKind::Processes(std::iter::once(pid).chain(process::descendants(pid)).collect()),
            (None, None) => return Err(StartError::NoTarget),
        };
        self.stacks = stacks::start_late(wanted, &launch.counted(&kind, &self._probes), self.began, &self.last_round)?;
        Ok(())
    }

    /// Asks the sampler for something.
    pub fn request(&self, request: SamplerRequest) {
        self.sampler.request(request);
    }

    /// The command's process id while it runs.
    pub fn running_command(&self) -> Option<Pid> {
        self.command.as_ref().filter(|command| command.ended.get().is_none()).map(|command| command.task.pid())
    }

    /// How the measurement ended, after the last round.
    pub fn end(&self, last: &Round, lost_rounds: u64) -> End {
        let ended = self.command.as_ref().and_then(|command| command.ended.get());
        let was_ended_by_perfprop =
            self.command.as_ref().is_some_and(|command| command.was_ended.load(Ordering::Relaxed));
        End {
            at_ns: last.at,
            exit: ended.map(|(exit, _)| *exit),
            was_ended_by_perfprop,
            cpu_time: ended.map(|(_, cpu_time)| *cpu_time),
            is_all_watched: self.watches_all && self.command.is_some() && !was_ended_by_perfprop,
            started: self.started(),
            has_target_ended: self.has_target_ended.load(Ordering::Relaxed),
            lost_rounds,
            totals: last.readings.clone(),
        }
    }

    /// Processes and threads that the machine started since it began.
    fn started(&self) -> Option<u64> {
        let (now, before) = HostFiles::here().stat().started.zip(self.started_before)?;
        Some(now.saturating_sub(before))
    }

    /// Whether it ended because its time was over.
    pub fn has_timed_out(&self, end: &End) -> bool {
        self.ends_after.is_some_and(|time| end.at_ns >= time.into())
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.running_command() {
            let _ = kill(pid, signal);
        }
    }

    /// Ends the command and everything that it started: SIGTERM, and SIGKILL to what is left after 2 s, or as soon as
    /// there is a hurry.
    pub fn terminate(&self, is_hurry: &mut dyn FnMut() -> bool) {
        if let Some(command) = &self.command {
            command.was_ended.fetch_or(command.ended.get().is_none(), Ordering::Relaxed);
            terminate(&command.task, &command.ended, is_hurry);
        }
    }

    /// Lets the command run on when the session is dropped.
    ///
    /// # Errors
    /// When it runs under a model; the operating system's, when nothing can take over reading the command's output;
    /// then it will see a closed pipe.
    pub fn detach(&mut self) -> io::Result<()> {
        let Some(command) = &mut self.command else { return Ok(()) };
        if self.model.is_some() {
            // Nobody would delete what callgrind writes.
            return Err(io::Error::other("it runs under a model, which needs perfprop"));
        }
        command.detached = true;
        command.drains.hand_over()
    }
}
