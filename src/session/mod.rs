//! A plan and a target in, a running measurement out: the process, its counters, the sampler.
//!
//! Dropping a [`Session`] ends whatever it started, unless it was [detached](Session::detach).

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

use crate::plan::Plan;
use crate::recording::{CpuTime, End, Process, Target};
use crate::sampling::{Request, Sample, Sampler};
use crate::sources::command::{Exit, Held};
use crate::sources::perf::{self, OpenError, PerfSource};
use crate::sources::{Round, Status, process};
use crate::units::CpuNs;

mod output;

pub use output::{OutputLine, Stream};

/// How long a process may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// Whom to measure.
#[derive(Clone, Debug)]
pub enum Launch {
    /// A command to start.
    Command {
        /// The command and its arguments; not empty.
        argv: Vec<OsString>,
        /// Where its input comes from and its output goes.
        io: ChildIo,
    },
    /// Processes that run already.
    Attach(Vec<Pid>),
}

/// Where a started command's input comes from and its output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildIo {
    /// The terminal, or whatever perfprop has.
    Inherit,
    /// Nothing to read; lines of output come out of [`Session::output`].
    Capture,
    /// Nothing to read; both streams of output go to standard error.
    ToStderr,
}

/// Why a measurement could not begin. Nothing is left running.
#[derive(Debug)]
pub enum StartError {
    /// The command can't be executed.
    Command {
        /// As given.
        command: OsString,
        /// What exec said.
        source: io::Error,
    },
    /// Counters can't be opened.
    Open(OpenError),
    /// No event of the plan could be opened.
    NothingOpened(Vec<Status>),
    /// The operating system can't make a process or a thread.
    System(io::Error),
}

/// A measurement that runs.
#[derive(Debug)]
pub struct Session {
    sampler: Sampler,
    target: Target,
    statuses: Vec<Status>,
    command: Option<Running>,
    output: Receiver<OutputLine>,
}

/// A command that was started.
#[derive(Debug)]
struct Running {
    pid: Pid,
    ended: Arc<OnceLock<(Exit, CpuTime)>>,
    drains: output::Drains,
    detached: bool,
}

impl Session {
    /// Opens the counters, starts the command if there is one, and begins to read every `period`.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(plan: &Plan, launch: &Launch, period: Duration) -> Result<Self, StartError> {
        match launch {
            Launch::Command { argv, io } => Self::start_command(plan, argv, *io, period),
            Launch::Attach(pids) => Self::attach(plan, pids, period),
        }
    }

    fn start_command(plan: &Plan, argv: &[OsString], io: ChildIo, period: Duration) -> Result<Self, StartError> {
        let held = Held::spawn(command(argv, io)).map_err(StartError::System)?;
        let pid = held.pid();
        let (mut source, statuses) = PerfSource::open(plan, &perf::Target::Held(pid)).map_err(StartError::Open)?;
        if !statuses.iter().any(Status::is_open) {
            return Err(StartError::NothingOpened(statuses));
        }
        let before = children_cpu_time();
        let failed = |source| StartError::Command { command: argv[0].clone(), source };
        source.start_clock();
        let mut child = held.release().map_err(failed)?;
        let (drains, output) = output::drain(&mut child).map_err(StartError::System)?;
        let ended = Arc::new(OnceLock::new());
        let running = Running { pid, ended: Arc::clone(&ended), drains, detached: false };
        let sampler = Sampler::start(source, period).map_err(StartError::System)?;
        let remote = sampler.remote();
        let wait = move || wait(child, before, &ended, || remote.request(Request::Stop));
        thread::Builder::new().name("wait".into()).spawn(wait).map_err(StartError::System)?;
        let argv = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let target = Target::Command { argv, pid: pid.as_raw() };
        Ok(Self { sampler, target, statuses, command: Some(running), output })
    }

    fn attach(plan: &Plan, pids: &[Pid], period: Duration) -> Result<Self, StartError> {
        let named = |&pid: &Pid| Process { pid: pid.as_raw(), name: process::name(pid).unwrap_or_default() };
        let target = Target::Processes(pids.iter().map(named).collect());
        let (source, statuses) =
            PerfSource::open(plan, &perf::Target::Processes(pids.to_vec())).map_err(StartError::Open)?;
        if !statuses.iter().any(Status::is_open) {
            return Err(StartError::NothingOpened(statuses));
        }
        let sampler = Sampler::start(source, period).map_err(StartError::System)?;
        Ok(Self { sampler, target, statuses, command: None, output: crossbeam_channel::never() })
    }

    /// Whom it measures.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What became of each event of the plan.
    pub fn statuses(&self) -> &[Status] {
        &self.statuses
    }

    /// Where rounds come out.
    pub fn samples(&self) -> &Receiver<Sample> {
        self.sampler.samples()
    }

    /// Where the command's output comes out, if it is captured.
    pub fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    /// Asks the sampler for something.
    pub fn request(&self, request: Request) {
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
            lost_rounds,
            totals: last.readings.clone(),
        }
    }

    /// Sends a signal to the command.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = self.running_command() {
            let _ = kill(pid, signal);
        }
    }

    /// Ends the command and everything that it started: SIGTERM, and SIGKILL to what is left.
    pub fn terminate(&self) {
        if let Some(command) = &self.command {
            command.terminate();
        }
    }

    /// Lets the command run on when the session is dropped.
    ///
    /// # Errors
    /// The operating system's, when nothing can take over reading the command's output; then it
    /// will see a closed pipe.
    pub fn detach(&mut self) -> io::Result<()> {
        let Some(command) = &mut self.command else { return Ok(()) };
        command.detached = true;
        command.drains.hand_over()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(command) = self.command.as_ref().filter(|command| !command.detached) {
            command.terminate();
        }
    }
}

impl Running {
    fn terminate(&self) {
        if self.ended.get().is_some() {
            return;
        }
        // Taken before the signal: the children of an ended process are no longer found by it.
        let mut family = process::descendants(self.pid);
        family.insert(0, self.pid);
        signal_all(&family, Signal::SIGTERM);
        let patience = Instant::now() + TERM_PATIENCE;
        while Instant::now() < patience && family.iter().any(|&pid| process::is_alive(pid)) {
            thread::sleep(Duration::from_millis(5));
        }
        family.extend(process::descendants(self.pid));
        family.retain(|&pid| process::is_alive(pid));
        signal_all(&family, Signal::SIGKILL);
    }
}

fn signal_all(pids: &[Pid], signal: Signal) {
    for &pid in pids {
        // It may have ended by itself meanwhile.
        let _ = kill(pid, signal);
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
