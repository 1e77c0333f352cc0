//! Begins a measurement: opens the counters, starts the command if there is one, and then the threads that read and end
//! it.

use std::convert::Infallible;
use std::io;
use std::process::Child;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use nix::sys::resource::UsageWho;
use nix::unistd::Pid;

use super::awaited::AwaitedTasks;
use super::child::{Ended, Running, command, keep_on, terminate, wait};
use super::counters::{Opened, emulated, emulator, open, probes};
use super::launch::described;
use super::{CommandLine, Launch, OutputLine, Session, StartError, output, stacks};
use crate::host::HostFiles;
use crate::plan::Plan;
use crate::regions::RegionSource;
use crate::run::MeasuredTarget;
use crate::sampling::{LastRound, Sampler, SamplerRemote, SamplerRequest};
use crate::sources::command::PreparedCommand;
use crate::sources::emulate::ModelLog;
use crate::sources::perf::mux::Interval;
use crate::sources::perf::{TargetKind, TracefsProbes};
use crate::sources::process::{self, KnownTask};
use crate::units::{CpuTime, KernelNs};

/// A target that is counted, and that nobody reads yet.
pub(super) struct Counting {
    opened: Opened,
    stacks: stacks::Sampling,
    target: MeasuredTarget,
    regions: Option<Arc<RegionSource>>,
    /// What rounds and samples count from.
    began: KernelNs,
    last_round: LastRound,
    ends_with: EndsWith,
    probes: TracefsProbes,
}

/// What ends a measurement.
enum EndsWith {
    /// The end of a command.
    Command(StartedCommand),
    /// The end of tasks that ran before.
    Tasks(AwaitedTasks),
}

/// A command that runs, and is waited for.
struct StartedCommand {
    running: Running,
    output: Receiver<OutputLine>,
    /// Takes the sampler, which the end of the command stops.
    sampler: mpsc::Sender<SamplerRemote>,
}

impl Counting {
    /// Counts what runs already.
    pub(super) fn of_tasks(plan: &Plan, launch: &Launch) -> Result<Self, StartError> {
        let target = launch.target.clone().ok_or(StartError::NoTarget)?;
        let ends_with = EndsWith::Tasks(AwaitedTasks::of(&target));
        let probes = probes(plan, launch, &target);
        let stacks = stacks::start(launch, &target, &probes)?;
        let mut opened = open(plan, launch, &target, &probes, &Arc::default())?;
        let began = opened.start_clock();
        let last_round = LastRound::default();
        stacks::begin(&stacks, began, &last_round);
        let (target, regions) = (described(launch, None), attached(launch).map(Arc::new));
        Ok(Self { opened, stacks, target, regions, began, last_round, ends_with, probes })
    }

    /// Starts a command, and counts it from its exec on, or what is measured as long as it runs.
    pub(super) fn of_command(plan: &Plan, launch: &Launch, line: &CommandLine) -> Result<Self, StartError> {
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
        let before = process::used(UsageWho::RUSAGE_CHILDREN);
        let failed = |source| StartError::Command { command: line.argv[0].clone(), source };
        let began = opened.start_clock();
        let last_round = LastRound::default();
        stacks::begin(&stacks, began, &last_round);
        let child = held.release().map_err(failed)?;
        opened.source.has_executed();
        let started = StartedCommand::new(pid, child, before, ended).map_err(StartError::System)?;
        let (target, ends_with) = (described(launch, Some(pid)), EndsWith::Command(started));
        Ok(Self { opened, stacks, target, regions, began, last_round, ends_with, probes })
    }

    /// Begins to read every `period`, with the threads that end it in time. `intervals` are restored at the end.
    pub(super) fn sampled(
        self,
        launch: &Launch,
        period: Duration,
        intervals: Vec<Interval>,
    ) -> Result<Session, StartError> {
        let Self { opened, stacks, target, regions, began, last_round, ends_with, probes } = self;
        let Opened { source, rows, rotated_by, model_log } = opened;
        let sampler = Sampler::start(source, period, last_round.clone()).map_err(StartError::System)?;
        begin_after_delay(launch, &sampler, &stacks)?;
        let (awaited, command, output) = match ends_with {
            EndsWith::Command(StartedCommand { running, output, sampler: to }) => {
                let _ = to.send(sampler.remote());
                (AwaitedTasks::none(), Some(running), output)
            }
            EndsWith::Tasks(awaited) => (awaited, None, crossbeam_channel::never()),
        };
        let timeout_thread = end_after_timeout(launch, &sampler, command.as_ref()).map_err(StartError::System)?;
        let has_target_ended = awaited.stop_at_end(sampler.remote(), sampler.ended().clone());
        Ok(Session {
            has_target_ended: has_target_ended.map_err(StartError::System)?,
            sampler,
            target,
            rows,
            model: model_log.map(ModelLog::model),
            rotated_by,
            command,
            output,
            stacks,
            regions,
            began,
            #[cfg(feature = "stacks")]
            last_round,
            intervals,
            ends_after: launch.ends_after(),
            _timeout_thread: timeout_thread,
            watches_all: launch.watches_all(),
            started_before: HostFiles::here().stat().started,
            _probes: probes,
        })
    }
}

impl StartedCommand {
    /// Reads the output of a command that was just released, and waits for its end.
    fn new(pid: Pid, mut child: Child, before: CpuTime, ended: Ended) -> io::Result<Self> {
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // Waited for whatever goes wrong from here on: that ends the command, as dropping the running one does.
        let (begun, sampler) = mpsc::channel::<SamplerRemote>();
        let mut running = Running {
            task: KnownTask::process(pid),
            ended: Arc::clone(&ended),
            drains: output::Drains::default(),
            detached: false,
            was_ended: false.into(),
        };
        let stop = move || {
            if let Ok(sampler) = sampler.recv() {
                sampler.request(SamplerRequest::Finish);
            }
        };
        let wait = move || wait(child, before, &ended, stop);
        thread::Builder::new().name("perfprop-wait".into()).spawn(wait)?;
        let (drains, output) = output::drain(stdout, stderr)?;
        running.drains = drains;
        Ok(Self { running, output, sampler: begun })
    }
}

/// Has counting and sampling begin after the delay, if there is one.
fn begin_after_delay(launch: &Launch, sampler: &Sampler, stacks: &stacks::Sampling) -> Result<(), StartError> {
    let Some(delay) = launch.delay else { return Ok(()) };
    let (remote, enable_stacks) = (sampler.remote(), stacks::enabler(stacks)?);
    let ended = sampler.ended().clone();
    let later = move || {
        if has_passed(delay, &ended) {
            enable_stacks();
            remote.request(SamplerRequest::Enable);
        }
    };
    thread::Builder::new().name("perfprop-delay".into()).spawn(later).map_err(StartError::System)?;
    Ok(())
}

/// Ends the command and the sampler after the timeout, if there is one.
fn end_after_timeout(
    launch: &Launch,
    sampler: &Sampler,
    command: Option<&Running>,
) -> io::Result<Option<TimeoutThread>> {
    let Some(timeout) = launch.ends_after() else { return Ok(None) };
    let (remote, ended) = (sampler.remote(), sampler.ended().clone());
    let family = command.map(|command| (command.task, Arc::clone(&command.ended)));
    let end = move || {
        if has_passed(timeout, &ended) {
            family.inspect(|(command, ended)| terminate(command, ended, &mut || false));
            remote.request(SamplerRequest::Finish);
        }
    };
    let thread = thread::Builder::new().name("perfprop-timeout".into()).spawn(end)?;
    Ok(Some(TimeoutThread(Some(thread))))
}

/// The thread that ends the command after the timeout. Dropping it waits until all is ended that the command started,
/// where the time is over; where the sampler has ended before, there is nothing to wait for.
#[derive(Debug)]
pub(super) struct TimeoutThread(Option<JoinHandle<()>>);

impl Drop for TimeoutThread {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// Waits for so long; `false` if the sampler has ended before.
fn has_passed(time: Duration, ended: &Receiver<Infallible>) -> bool {
    ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
}

/// Where a command shares its regions. Without a folder, programs keep them to themselves; that is an error where
/// events were asked for.
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
