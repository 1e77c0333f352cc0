//! Runs a measurement: the process, its counters, the sampler.
//!
//! Dropping a [`Session`] ends whatever it started, unless it was [detached](Session::detach).

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::plan::Plan;
use crate::regions::{LiveRegions, ProcessRegions, RegionSource, Wanted};
use crate::run::{End, MeasuredTarget, RotatedBy};
use crate::sampling::{Sampler, SamplerMessage, SamplerRemote, SamplerRequest};
use crate::sources::Round;
use crate::sources::command::PreparedCommand;
use crate::sources::emulate::{CacheModel, ModelLog};
use crate::sources::perf::mux::{Interval, MuxError};
use crate::sources::perf::{CounterRow, OpenError, TargetKind, TracefsProbes};
#[cfg(feature = "stacks")]
use crate::sources::process;
#[cfg(feature = "stacks")]
use crate::stacks::live;

mod awaited;
mod caught;
mod child;
mod counters;
mod launch;
mod output;
pub mod schedule;
mod stacks;

use awaited::AwaitedTasks;
pub(crate) use caught::Stopped;
pub use caught::{CaughtSignal, SignalSender};
pub use child::find_command;
use child::{Ended, Running, children_cpu_time, command, keep_on, terminate, wait};
use counters::{Opened, emulated, emulator, open, probes};
use launch::described;
pub use launch::{ChildIo, CommandLine, Launch, Needs};
pub use output::{OutputLine, Stream};
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
    /// The time of the kernel's clock that rounds count from.
    began: u64,
    /// The kernel's rotation intervals that are restored at the end.
    intervals: Vec<Interval>,
    /// Time after which the session ends.
    timeout: Option<Duration>,
    /// Whether all processes or threads have ended that it measures and didn't start.
    has_target_ended: Arc<AtomicBool>,
    /// Whether all that a command does is to be counted, until it ends by itself.
    watches_all: bool,
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
        let intervals = launch.schedule.set_intervals()?;
        Ok(Self { intervals, ..Self::begin(plan, launch, period)? })
    }

    fn begin(plan: &Plan, launch: &Launch, period: Duration) -> Result<Self, StartError> {
        let Some(line) = &launch.command else {
            let target = launch.target.clone().ok_or(StartError::NoTarget)?;
            let awaited = AwaitedTasks::of(&target);
            let probes = probes(plan, launch, &target);
            let stacks = stacks::start(launch, &target, &probes)?;
            let mut opened = open(plan, launch, &target, &probes, &Arc::default())?;
            let began = opened.start_clock();
            let (described, regions) = (described(launch, None), attached(launch).map(Arc::new));
            let session = Self::sample(opened, stacks, launch, described, None, crossbeam_channel::never(), period)?;
            let (sampler, ended) = (session.sampler.remote(), session.sampler.ended().clone());
            let has_target_ended = awaited.stop_at_end(sampler, ended).map_err(StartError::System)?;
            return Ok(Self { regions, began, has_target_ended, _probes: probes, ..session });
        };
        let mut emulator = emulator(launch)?;
        let ended = Ended::default();
        let argv = emulator.as_ref().map_or_else(|| line.argv.clone(), |emulator| emulator.command_line(&line.argv));
        let held = command(&argv, line).and_then(PreparedCommand::spawn).map_err(StartError::System)?;
        let pid = held.pid();
        if let Some(cpu) = launch.pinned_to {
            keep_on(pid, cpu).map_err(StartError::System)?;
        }
        let regions = attached(launch).map_or_else(|| shared_by(pid, launch), |attached| Ok(Some(attached)))?;
        let regions = regions.map(Arc::new);
        let target = launch.target.clone().unwrap_or(TargetKind::Command(pid));
        let probes = probes(plan, launch, &target);
        let stacks = match &mut emulator {
            Some(emulator) => stacks::of_model(launch, plan, emulator)?,
            None => stacks::start(launch, &target, &probes)?,
        };
        let mut opened = match emulator {
            Some(emulator) => emulated(emulator, plan, launch, pid)?,
            None => open(plan, launch, &target, &probes, &ended)?,
        };
        let before = children_cpu_time();
        let failed = |source| StartError::Command { command: line.argv[0].clone(), source };
        let began = opened.start_clock();
        let mut child = held.release().map_err(failed)?;
        opened.source.has_executed();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Waited for whatever goes wrong from here on: that ends the command, as dropping the running one does.
        let (begun, sampler) = mpsc::channel::<SamplerRemote>();
        let mut running = Running {
            pid,
            ended: Arc::clone(&ended),
            drains: output::Drains::default(),
            detached: false,
            was_ended: false.into(),
        };
        let stop = move || {
            if let Ok(sampler) = sampler.recv() {
                sampler.request(SamplerRequest::Stop);
            }
        };
        let wait = move || wait(child, before, &ended, stop);
        thread::Builder::new().name("perfprop-wait".into()).spawn(wait).map_err(StartError::System)?;
        let (drains, output) = output::drain(stdout, stderr).map_err(StartError::System)?;
        running.drains = drains;
        let described = described(launch, Some(pid));
        let session = Self::sample(opened, stacks, launch, described, Some(running), output, period)?;
        let _ = begun.send(session.sampler.remote());
        Ok(Self { regions, began, _probes: probes, ..session })
    }

    fn sample(
        opened: Opened,
        stacks: stacks::Sampling,
        launch: &Launch,
        target: MeasuredTarget,
        command: Option<Running>,
        output: Receiver<OutputLine>,
        period: Duration,
    ) -> Result<Self, StartError> {
        let Opened { source, rows, rotated_by, model_log } = opened;
        let sampler = Sampler::start(source, period).map_err(StartError::System)?;
        if let Some(delay) = launch.delay {
            let (remote, enable_stacks) = (sampler.remote(), stacks::enabler(&stacks)?);
            let ended = sampler.ended().clone();
            let later = move || {
                if has_passed(delay, &ended) {
                    enable_stacks();
                    remote.request(SamplerRequest::Enable);
                }
            };
            thread::Builder::new().name("perfprop-delay".into()).spawn(later).map_err(StartError::System)?;
        }
        if let Some(timeout) = launch.timeout {
            let (remote, ended) = (sampler.remote(), sampler.ended().clone());
            let family = command.as_ref().map(|command| (command.pid, Arc::clone(&command.ended)));
            let end = move || {
                if has_passed(timeout, &ended) {
                    family.inspect(|(pid, ended)| terminate(*pid, ended, &mut || false));
                    remote.request(SamplerRequest::Stop);
                }
            };
            thread::Builder::new().name("perfprop-timeout".into()).spawn(end).map_err(StartError::System)?;
        }
        let model = model_log.map(ModelLog::model);
        let (regions, timeout, intervals) = (None, launch.timeout, Vec::new());
        let watches_all = launch.watches_all();
        Ok(Self {
            sampler,
            target,
            rows,
            model,
            rotated_by,
            command,
            output,
            stacks,
            regions,
            began: 0,
            intervals,
            timeout,
            has_target_ended: Arc::default(),
            watches_all,
            _probes: TracefsProbes::default(),
        })
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

    /// What the named regions of the measured programs counted so far; of those that ran before, what they counted since.
    pub fn regions(&self) -> Vec<ProcessRegions> {
        self.regions.as_ref().map(|regions| regions.read()).unwrap_or_default()
    }

    /// Begins to read regions every `interval`, on the clock of the sampled stacks; `None` where programs can't share any.
    ///
    /// # Errors
    /// Returns the operating system's error if no thread can be started.
    pub fn watch_regions(&self, interval: Duration, wanted: Wanted) -> io::Result<Option<LiveRegions>> {
        let Some(source) = self.regions.as_ref().filter(|source| wanted != Wanted::Nothing || source.has_to_look())
        else {
            return Ok(None);
        };
        #[cfg(feature = "stacks")]
        let origin = self.stacks().map_or(self.began, live::LiveStacks::origin);
        #[cfg(not(feature = "stacks"))]
        let origin = self.began;
        LiveRegions::start(Arc::clone(source), origin, interval, wanted).map(Some)
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

    /// Begins to sample the call stacks that `launch` asks for, of what is counted already; of a command, the processes that it has
    /// now and those that they start.
    ///
    /// # Errors
    /// See [`StartError`]; counting goes on.
    #[cfg(feature = "stacks")]
    pub fn begin_stacks(&mut self, launch: &Launch) -> Result<(), StartError> {
        let wanted = launch.stacks.as_ref().ok_or(StartError::NoTarget)?;
        let kind = match (&launch.target, self.running_command()) {
            (Some(kind), _) => kind.clone(),
            (None, Some(pid)) => TargetKind::Processes(std::iter::once(pid).chain(process::descendants(pid)).collect()),
            (None, None) => return Err(StartError::NoTarget),
        };
        self.stacks = stacks::start_late(wanted, &launch.counted(&kind, &self._probes), self.began)?;
        Ok(())
    }

    /// Asks the sampler for something.
    pub fn request(&self, request: SamplerRequest) {
        self.sampler.request(request);
    }

    /// The command's process id while it runs.
    pub fn running_command(&self) -> Option<Pid> {
        self.command.as_ref().filter(|command| command.ended.get().is_none()).map(|command| command.pid)
    }

    /// How the measurement ended, after the last round.
    pub fn end(&self, last: &Round, lost_rounds: u64) -> End {
        let ended = self.command.as_ref().and_then(|command| command.ended.get());
        End {
            at_ns: last.at,
            exit: ended.map(|(exit, _)| *exit),
            cpu_time: ended.map(|(_, cpu_time)| *cpu_time),
            is_all_watched: self.watches_all
                && self.command.as_ref().is_some_and(|command| !command.was_ended.load(Ordering::Relaxed)),
            has_target_ended: self.has_target_ended.load(Ordering::Relaxed),
            lost_rounds,
            totals: last.readings.clone(),
        }
    }

    /// Whether it ended because its time was over.
    pub fn has_timed_out(&self, end: &End) -> bool {
        self.timeout.is_some_and(|timeout| end.at_ns >= timeout.into())
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
            terminate(command.pid, &command.ended, is_hurry);
        }
    }

    /// Lets the command run on when the session is dropped.
    ///
    /// # Errors
    /// When it runs under a model; the operating system's, when nothing can take over reading the command's output; then it
    /// will see a closed pipe.
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

/// Waits for so long; `false` if the sampler has ended before.
fn has_passed(time: Duration, ended: &Receiver<Infallible>) -> bool {
    ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

/// Where a command shares its regions. Without a folder, programs keep them to themselves; that is an error where events
/// were asked for.
fn shared_by(pid: Pid, launch: &Launch) -> Result<Option<RegionSource>, StartError> {
    let events = launch.region_events.as_deref();
    match RegionSource::of_command(pid.as_raw().unsigned_abs(), events) {
        Ok(source) => Ok(Some(source)),
        Err(_) if events.is_none() => Ok(None),
        Err(source) => {
            let what =
                format!("events of regions are shared in a folder below /dev/shm, which can't be made: {source}");
            Err(StartError::System(io::Error::new(source.kind(), what)))
        }
    }
}

/// The regions of processes that run already, if those are measured.
fn attached(launch: &Launch) -> Option<RegionSource> {
    match &launch.target {
        Some(TargetKind::Processes(pids)) => Some(RegionSource::of_processes(pids)),
        _ => None,
    }
}
