//! Runs a measurement: the process, its counters, the sampler.
//!
//! Dropping a [`Session`] ends whatever it started, unless it was [detached](Session::detach).

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use crate::events::EventKind;
use crate::plan::{KERNEL_SLICE, Plan};
use crate::run::{CpuTime, End, MeasuredProcess, MeasuredTarget, RotatedBy};
use crate::sampling::{Sampler, SamplerMessage, SamplerRequest};
use crate::sources::command::{Exit, PreparedCommand};
use crate::sources::emulate::{self, CacheModel, Emulator, ModelLog};
use crate::sources::limited::Limited;
use crate::sources::perf::mux::{Interval, MuxError};
use crate::sources::perf::{self, CounterRow, OpenError, PerfSource, Split, Start, Stop, TargetKind};
use crate::sources::tool::{Times, Tools};
use crate::sources::{Counter, CounterSource, Round, process};
#[cfg(feature = "stacks")]
use crate::stacks::live;
use crate::units::{CpuNs, WallNs};

mod output;
pub mod schedule;
mod stacks;

pub use output::{OutputLine, Stream};
pub use schedule::Schedule;

/// How long a process may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// What to start, and what to measure.
#[derive(Clone, Debug)]
pub struct Launch {
    /// A command to start: what is measured, or how long it is measured.
    pub command: Option<CommandLine>,
    /// What is measured; the command where `None`.
    pub target: Option<TargetKind>,
    /// Only what runs on these CPUs; on any where `None`.
    pub cpus: Option<Vec<u32>>,
    /// Whether threads and processes that start later are measured too.
    pub inherit: bool,
    /// Whether there is one count an event or several.
    pub split: Split,
    /// How long after the start counting begins.
    pub delay: Option<Duration>,
    /// How long after the start everything ends.
    pub timeout: Option<Duration>,
    /// What is sampled with its call stacks, beside what is counted.
    #[cfg(feature = "stacks")]
    pub stacks: Option<live::StackRequest>,
    /// What counts: the kernel, or a model.
    pub counter: Counter,
    /// How many events are counted at once, if fewer than can be; the truth is then counted beside.
    pub counters: Option<usize>,
    /// Who rotates the groups.
    pub schedule: Schedule,
    /// How many of the events have to be counted.
    pub needs: Needs,
    /// Asks not to begin, while counters are opened.
    pub stop: Stop,
}

/// How many of the events of a measurement have to be counted; otherwise it isn't begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Needs {
    /// None: it may be that only time is measured.
    Nothing,
    /// One of them.
    #[default]
    One,
    /// All of them.
    All,
}

/// A command to start.
#[derive(Clone, Debug)]
pub struct CommandLine {
    /// The command and its arguments; not empty.
    pub argv: Vec<OsString>,
    /// Where its input comes from and its output goes.
    pub io: ChildIo,
}

impl Launch {
    /// A command to start and measure, with all that it starts.
    pub fn command(argv: Vec<OsString>, io: ChildIo) -> Self {
        Self { command: Some(CommandLine { argv, io }), ..Self::attach(None) }
    }

    /// Something that runs already.
    pub fn attach(target: impl Into<Option<TargetKind>>) -> Self {
        Self {
            command: None,
            target: target.into(),
            cpus: None,
            inherit: true,
            split: Split::Sum,
            delay: None,
            timeout: None,
            #[cfg(feature = "stacks")]
            stacks: None,
            counter: Counter::Kernel,
            counters: None,
            schedule: Schedule::default(),
            needs: Needs::default(),
            stop: Stop::default(),
        }
    }

    /// Whether the kernel is to count all that a command and its children do, from exec to their end, in one row an event.
    fn watches_all(&self) -> bool {
        let is_whole = self.target.is_none() && self.cpus.is_none() && self.inherit && self.split == Split::Sum;
        let is_always = self.delay.is_none() && self.timeout.is_none();
        is_whole && is_always && self.counter == Counter::Kernel && self.counters.is_none()
    }
}

/// Where a started command's input comes from and its output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildIo {
    /// The terminal, or whatever perfprop has.
    Inherit,
    /// Gives the command no input; lines of its output come out of [`Session::output`].
    Capture,
    /// Gives the command no input; both streams of its output go to standard error.
    ToStderr,
}

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
    /// The kernel's rotation intervals that are restored at the end.
    intervals: Vec<Interval>,
    /// Time after which the session ends.
    timeout: Option<Duration>,
    /// Whether all that a command does is to be counted, until it ends by itself.
    watches_all: bool,
}

/// Counters that are open, with what became of each row.
struct Opened {
    source: Box<dyn CounterSource>,
    rows: Vec<CounterRow>,
    rotated_by: Option<RotatedBy>,
    /// Reads from valgrind's log which caches it models.
    model_log: Option<ModelLog>,
}

/// How a command ended, once it has.
type Ended = Arc<OnceLock<(Exit, CpuTime)>>;

/// A command that was started.
#[derive(Debug)]
struct Running {
    pid: Pid,
    ended: Ended,
    drains: output::Drains,
    detached: bool,
    /// Whether it was asked to end.
    was_ended: AtomicBool,
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
            let stacks = stacks::start(launch, &target)?;
            let mut opened = open(plan, launch, target, &Arc::default())?;
            opened.source.start_clock();
            let described = described(launch, None);
            let session = Self::sample(opened, launch, described, None, crossbeam_channel::never(), period)?;
            return Ok(Self { stacks, ..session });
        };
        let mut emulator = emulator(launch)?;
        let ended = Ended::default();
        let argv = emulator.as_ref().map_or_else(|| line.argv.clone(), |emulator| emulator.command_line(&line.argv));
        let held = PreparedCommand::spawn(command(&argv, line.io)).map_err(StartError::System)?;
        let pid = held.pid();
        let target = launch.target.clone().unwrap_or(TargetKind::Command(pid));
        let stacks = match &mut emulator {
            Some(emulator) => stacks::of_model(launch, plan, emulator)?,
            None => stacks::start(launch, &target)?,
        };
        let mut opened = match emulator {
            Some(emulator) => emulated(emulator, plan, launch, pid)?,
            None => open(plan, launch, target, &ended)?,
        };
        let before = children_cpu_time();
        let failed = |source| StartError::Command { command: line.argv[0].clone(), source };
        opened.source.start_clock();
        let mut child = held.release().map_err(failed)?;
        opened.source.has_executed();
        // From here on whatever goes wrong ends the command: dropping the running one does.
        let mut running = Running {
            pid,
            ended: Arc::clone(&ended),
            drains: output::Drains::default(),
            detached: false,
            was_ended: false.into(),
        };
        let (drains, output) = output::drain(&mut child).map_err(StartError::System)?;
        running.drains = drains;
        let session = Self::sample(opened, launch, described(launch, Some(pid)), Some(running), output, period)?;
        let remote = session.sampler.remote();
        let wait = move || wait(child, before, &ended, || remote.request(SamplerRequest::Stop));
        thread::Builder::new().name("wait".into()).spawn(wait).map_err(StartError::System)?;
        Ok(Self { stacks, ..session })
    }

    fn sample(
        opened: Opened,
        launch: &Launch,
        target: MeasuredTarget,
        command: Option<Running>,
        output: Receiver<OutputLine>,
        period: Duration,
    ) -> Result<Self, StartError> {
        let Opened { source, rows, rotated_by, model_log } = opened;
        let sampler = Sampler::start(source, period).map_err(StartError::System)?;
        if let Some(delay) = launch.delay {
            let remote = sampler.remote();
            let later = move || {
                thread::sleep(delay);
                remote.request(SamplerRequest::Enable);
            };
            thread::Builder::new().name("delay".into()).spawn(later).map_err(StartError::System)?;
        }
        if let Some(timeout) = launch.timeout {
            let remote = sampler.remote();
            let family = command.as_ref().map(|command| (command.pid, Arc::clone(&command.ended)));
            let end = move || {
                thread::sleep(timeout);
                family.inspect(|(pid, ended)| terminate(*pid, ended, &mut || false));
                remote.request(SamplerRequest::Stop);
            };
            thread::Builder::new().name("timeout".into()).spawn(end).map_err(StartError::System)?;
        }
        let model = model_log.map(ModelLog::model);
        let (stacks, timeout, intervals, watches_all) = (None, launch.timeout, Vec::new(), launch.watches_all());
        Ok(Self { sampler, target, rows, model, rotated_by, command, output, stacks, intervals, timeout, watches_all })
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

    /// Who rotates the groups; `None` where nothing is multiplexed.
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

impl Drop for Running {
    fn drop(&mut self) {
        if !self.detached {
            terminate(self.pid, &self.ended, &mut || false);
        }
    }
}

/// Ends a command and everything that it started, unless it has ended.
fn terminate(pid: Pid, ended: &OnceLock<(Exit, CpuTime)>, is_hurry: &mut dyn FnMut() -> bool) {
    if ended.get().is_some() {
        return;
    }
    // Taken before the signal: the children of an ended process are no longer found by it.
    let mut family = process::descendants(pid);
    family.insert(0, pid);
    signal_all(&family, Signal::SIGTERM);
    let patience = Instant::now() + TERM_PATIENCE;
    // Whoever asks next how it ended is to know it: that is later than its end.
    let is_over = || ended.get().is_some() && !family.iter().any(|&pid| process::is_alive(pid));
    while Instant::now() < patience && !is_hurry() && !is_over() {
        thread::sleep(Duration::from_millis(5));
    }
    family.extend(process::descendants(pid));
    family.retain(|&pid| process::is_alive(pid));
    signal_all(&family, Signal::SIGKILL);
}

fn signal_all(pids: &[Pid], signal: Signal) {
    for &pid in pids {
        // It may have ended by itself meanwhile.
        let _ = kill(pid, signal);
    }
}

/// When counting begins by itself: with exec, unless that is put off.
fn begin(launch: &Launch, kind: &TargetKind) -> Start {
    let on_exec = matches!(kind, TargetKind::Command(_)) && launch.delay.is_none();
    if on_exec { Start::OnExec } else { Start::Later }
}

/// Opens what can be opened of the kernel's counters.
fn open(plan: &Plan, launch: &Launch, kind: TargetKind, ended: &Ended) -> Result<Opened, StartError> {
    let start = begin(launch, &kind);
    let target = perf::CountedTarget {
        kind: kind.clone(),
        cpus: launch.cpus.clone(),
        inherit: launch.inherit,
        split: launch.split,
        start,
        stop: launch.stop.clone(),
    };
    let own = schedule::own_rotations(plan, launch);
    let by = own.rotated_by(plan, launch);
    let opened = PerfSource::open_rotating(plan, &target, own.rotations, own.budget);
    let mut source = opened.map_err(StartError::Open)?;
    // Before the command, if there is one, so that none of its time is left out.
    if start == Start::Later && launch.delay.is_none() {
        source.enable();
    }
    let rows = source.rows().to_vec();
    let opened = Opened::new(source, rows, plan, launch, Some(KERNEL_SLICE)).with_tools(plan, launch, &kind, ended);
    let rotated_by = opened.rotated_by.or(by);
    Opened { rotated_by, ..opened }.checked(launch)
}

/// What runs the command under a model, if that is to count.
fn emulator(launch: &Launch) -> Result<Option<Emulator>, StartError> {
    let Counter::Model(model) = &launch.counter else { return Ok(None) };
    let valgrind = emulate::find().ok_or(StartError::NoValgrind)?;
    Emulator::new(valgrind, model, launch.inherit).map(Some).map_err(StartError::System)
}

/// The counters of a model.
fn emulated(emulator: Emulator, plan: &Plan, launch: &Launch, pid: Pid) -> Result<Opened, StartError> {
    let log = emulator.model_log(pid);
    let mut source = emulator.source(plan, pid);
    if launch.delay.is_some() {
        source.wait_for_enable();
    }
    let rows = source.rows().to_vec();
    // A slice of the kernel's length would be shorter than an answer takes.
    Opened { model_log: Some(log), ..Opened::new(source, rows, plan, launch, None) }.checked(launch)
}

impl Opened {
    /// A source as it is, or limited to some counters with slices of this length.
    fn new(
        source: impl CounterSource + 'static,
        rows: Vec<CounterRow>,
        plan: &Plan,
        launch: &Launch,
        slice: Option<Duration>,
    ) -> Self {
        let source: Box<dyn CounterSource> = match launch.counters {
            Some(counters) => Box::new(Limited::new(source, plan, &rows, counters, slice)),
            None => Box::new(source),
        };
        let every_ns = slice.map(WallNs::from);
        let rotated_by = launch.counters.map(|counters| RotatedBy::Emulated { counters, every_ns });
        Self { source, rows, rotated_by, model_log: None }
    }

    /// The same with tool events in it, if the plan has some.
    fn with_tools(self, plan: &Plan, launch: &Launch, kind: &TargetKind, ended: &Ended) -> Self {
        if !plan.events.iter().any(|event| event.kind == EventKind::Tool) {
            return self;
        }
        let Self { source, mut rows, rotated_by, model_log } = self;
        let places = rows.iter_mut().filter(|row| row.anchor_of.is_none());
        let places = places.map(|row| (&plan.events[row.event], &row.scope, &mut row.status));
        let ended = Arc::clone(ended);
        let times = |&(_, CpuTime { user_ns, system_ns }): &(Exit, CpuTime)| Times { user: user_ns, system: system_ns };
        let at_end = Box::new(move || ended.get().map(times));
        let tools = Tools::new(source, places, kind, launch.cpus.as_deref(), launch.delay.is_some(), at_end);
        Self { source: Box::new(tools), rows, rotated_by, model_log }
    }

    /// Fewer events than are needed are an error.
    fn checked(self, launch: &Launch) -> Result<Self, StartError> {
        let mut rows = self.rows.iter().filter(|row| row.anchor_of.is_none());
        let is_enough = match launch.needs {
            Needs::Nothing => true,
            Needs::One => rows.any(|row| row.status.is_open()),
            // A thread that has ended meanwhile says nothing of an event.
            Needs::All => rows.all(CounterRow::is_whole),
        };
        if is_enough { Ok(self) } else { Err(StartError::NotOpened(self.rows)) }
    }
}

/// What is measured, in words that a recording can keep.
fn described(launch: &Launch, command: Option<Pid>) -> MeasuredTarget {
    let argv = || {
        let words = launch.command.iter().flat_map(|line| &line.argv);
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    };
    let named = |&pid: &Pid| MeasuredProcess { pid: pid.as_raw(), name: process::name(pid).unwrap_or_default() };
    match &launch.target {
        None | Some(TargetKind::Command(_)) => {
            MeasuredTarget::Command { argv: argv(), pid: command.map_or(0, Pid::as_raw) }
        }
        Some(TargetKind::Processes(pids)) => MeasuredTarget::Processes(pids.iter().map(named).collect()),
        Some(TargetKind::Threads(threads)) => MeasuredTarget::Threads(threads.iter().map(named).collect()),
        Some(TargetKind::Everyone) => MeasuredTarget::Everyone { cpus: launch.cpus.clone() },
        Some(TargetKind::Cgroup(cgroup)) => MeasuredTarget::Cgroup { path: cgroup.path.display().to_string() },
    }
}

fn command(argv: &[OsString], io: ChildIo) -> Command {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    match io {
        ChildIo::Inherit => {}
        ChildIo::Capture => {
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // The keys of the terminal are perfprop's: none of them may become the command's signal.
            command.process_group(0);
        }
        ChildIo::ToStderr => {
            command.stdin(Stdio::null()).stdout(io::stderr()).stderr(Stdio::inherit());
        }
    }
    command
}

/// Runs in a thread of its own until the command ends.
fn wait(mut child: Child, before: CpuTime, ended: &OnceLock<(Exit, CpuTime)>, stop: impl FnOnce()) {
    let exit = child.wait().map_or(Exit::Code(-1), Exit::from);
    let after = children_cpu_time();
    let cpu_time = CpuTime { user_ns: after.user_ns - before.user_ns, system_ns: after.system_ns - before.system_ns };
    let _ = ended.set((exit, cpu_time));
    stop();
}

/// CPU time of all children that have been waited for.
fn children_cpu_time() -> CpuTime {
    let nanoseconds = |time: TimeVal| CpuNs(u64::try_from(time.num_nanoseconds()).unwrap_or(0));
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or_else(
        |_| CpuTime::default(),
        |usage| CpuTime { user_ns: nanoseconds(usage.user_time()), system_ns: nanoseconds(usage.system_time()) },
    )
}

/// Where a command is found, as exec would look for it: by its path, or in `PATH`.
pub fn find_command(name: &OsString) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| process::is_executable(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_is_watched_only_of_a_whole_command() {
        let whole = || Launch::command(vec!["true".into()], ChildIo::Inherit);
        assert!(whole().watches_all());
        let some = Some(Duration::from_secs(1));
        let parts = [
            Launch { target: Some(TargetKind::Everyone), ..whole() },
            Launch { target: Some(TargetKind::Processes(vec![Pid::this()])), ..whole() },
            Launch { cpus: Some(vec![0]), ..whole() },
            Launch { inherit: false, ..whole() },
            Launch { split: Split::Threads, ..whole() },
            Launch { split: Split::Cpus, ..whole() },
            Launch { delay: some, ..whole() },
            Launch { timeout: some, ..whole() },
            Launch { counters: Some(4), ..whole() },
            Launch { counter: Counter::Model(CacheModel::default()), ..whole() },
        ];
        for part in parts {
            assert!(!part.watches_all(), "{part:?}");
        }
    }
}
