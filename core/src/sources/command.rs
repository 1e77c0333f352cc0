//! Starts a command and holds it just before exec, so that its counters are open before its first
//! instruction.
//!
//! ```text
//! perfprop   spawn ───────── open counters ── release ──────────────── wait ── exit status
//! child            fork ──── held ────────────────── exec (counters on) ── ... ── exit
//! ```

#![expect(unsafe_code, reason = "code between fork and exec can only be added by pre_exec, and fork is unsafe")]

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{self, ForkResult, Pid};
use serde::{Deserialize, Serialize};

use super::process;

/// A child process that waits, forked but not yet executing its command; dropped, it ends.
#[derive(Debug)]
pub struct PreparedCommand {
    pid: Pid,
    /// Both are there until the child is released.
    go: Option<OwnedFd>,
    spawning: Option<JoinHandle<io::Result<Child>>>,
}

impl PreparedCommand {
    /// Forks a child for `command` and holds it before exec.
    ///
    /// # Errors
    /// Returns the operating system's error if it can't make a process.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let (pid_out, pid_in) = unistd::pipe2(OFlag::O_CLOEXEC)?;
        let (go_out, go) = unistd::pipe2(OFlag::O_CLOEXEC)?;
        let go_in_child = go.as_raw_fd();
        let before = BeforeThis { limit: process::file_limit_before(), ignores_children: wait_for_children() };
        // SAFETY: the closure makes only system calls that are async-signal-safe, allocates
        // nothing, and closes a descriptor that only this process' parent uses.
        unsafe {
            command.pre_exec(move || wait_for_go(&pid_in, &go_out, go_in_child, before));
        }
        // `Command::spawn` returns only once exec is through, so it needs a thread of its own.
        let spawning = thread::Builder::new().name("spawn".into()).spawn(move || command.spawn())?;
        let mut pid = [0; 4];
        if unistd::read(&pid_out, &mut pid)? == pid.len() {
            let pid = Pid::from_raw(i32::from_ne_bytes(pid));
            return Ok(Self { pid, go: Some(go), spawning: Some(spawning) });
        }
        Err(join(spawning).err().unwrap_or_else(|| io::Error::other("the child process ended before it began")))
    }

    /// The child's process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Lets the child execute its command.
    ///
    /// # Errors
    /// Returns exec's error: the command doesn't exist, or can't be executed.
    pub fn release(mut self) -> io::Result<Child> {
        if let Some(go) = self.go.take() {
            // A child that has been killed meanwhile shows as the error of `join`.
            let _ = unistd::write(&go, b"g");
        }
        self.spawning.take().map_or_else(|| Err(io::Error::other("the child was released before")), join)
    }
}

impl Drop for PreparedCommand {
    fn drop(&mut self) {
        drop(self.go.take());
        // The child tells the spawning thread why it didn't execute, and needs somebody to listen.
        if let Some(spawning) = self.spawning.take() {
            let _ = join(spawning);
        }
    }
}

fn join(spawning: JoinHandle<io::Result<Child>>) -> io::Result<Child> {
    spawning.join().unwrap_or_else(|_| Err(io::Error::other("the spawning thread panicked")))
}

/// Whether this process was started with SIGCHLD ignored.
static IGNORES_CHILDREN: OnceLock<bool> = OnceLock::new();

/// Lets this process wait for its children though whoever started it had SIGCHLD ignored: the kernel then forgets how they end, and
/// what they took. Says whether that was so; commands get the signal as this process got it.
pub fn wait_for_children() -> bool {
    *IGNORES_CHILDREN.get_or_init(|| {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action runs nothing here, and one that was there before was installed by whoever answers for it.
        let before = unsafe { sigaction(Signal::SIGCHLD, &default) };
        let Ok(before) = before else { return false };
        if matches!(before.handler(), SigHandler::SigIgn) {
            return true;
        }
        // SAFETY: as above.
        let _ = unsafe { sigaction(Signal::SIGCHLD, &before) };
        false
    })
}

/// What this process was given and changed for itself, and a command is to have.
#[derive(Clone, Copy)]
struct BeforeThis {
    /// How many descriptors may be open, softly and at most.
    limit: Option<(u64, u64)>,
    /// Whether SIGCHLD is ignored.
    ignores_children: bool,
}

impl BeforeThis {
    /// Makes only system calls that are async-signal-safe.
    fn restore(self) {
        if let Some((soft, hard)) = self.limit {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft, hard);
        }
        if self.ignores_children {
            // SAFETY: no handler runs.
            let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
        }
    }
}

/// Runs in the child: tells its pid, then waits for one byte. An end of file means that the parent
/// gave up or is gone; then the command must not run.
fn wait_for_go(pid_in: &OwnedFd, go_out: &OwnedFd, go_in_child: RawFd, before: BeforeThis) -> io::Result<()> {
    // The child's copy of the writing end would keep that end of file away.
    let _ = unistd::close(go_in_child);
    before.restore();
    unistd::write(pid_in, &std::process::id().to_ne_bytes())?;
    let mut byte = [0];
    loop {
        match unistd::read(go_out, &mut byte) {
            Ok(1) => return Ok(()),
            Ok(_) => return Err(Errno::EPIPE.into()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How often the child looks whether its parent is gone.
const LOOK: Duration = Duration::from_millis(1);

/// Leaves the closing of this process' counters to a child, so that this process can end before they are closed.
///
/// The kernel takes some hundredths of a second to close the last descriptor of a tracepoint, and a process hasn't
/// ended before all of its own are closed. The child has the same counters, and nothing else, until this process is gone.
///
/// # Errors
/// Returns the operating system's error if it can't make a process or doesn't list open descriptors.
pub fn leave_closing_to_a_child() -> io::Result<()> {
    let others = descriptors_but_counters()?;
    let parent = unistd::getpid();
    // SAFETY: the child makes only system calls that are async-signal-safe, and allocates nothing.
    match unsafe { unistd::fork() }? {
        ForkResult::Parent { .. } => Ok(()),
        ForkResult::Child => {
            // Whoever reads what this process writes doesn't wait for the child.
            for &other in &others {
                let _ = unistd::close(other);
            }
            while unistd::getppid() == parent {
                thread::sleep(LOOK);
            }
            // SAFETY: nothing runs at this exit.
            unsafe { nix::libc::_exit(0) }
        }
    }
}

fn descriptors_but_counters() -> io::Result<Vec<RawFd>> {
    let is_counter =
        |path: &Path| fs::read_link(path).is_ok_and(|target| target == Path::new("anon_inode:[perf_event]"));
    descriptors(|path| !is_counter(path))
}

/// This process' descriptors by their files in `/proc`.
fn descriptors(is_wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<RawFd>> {
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let paths = fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    Ok(paths.iter().filter(|path| is_wanted(path)).filter_map(|path| number(path)).collect())
}

/// How often a last write is tried while what it removes is in use, and the time between; 10 s together.
const LAST_TRIES: usize = 1000;
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// How long this process waits for its last writes.
const LAST_PATIENCE: Duration = Duration::from_millis(200);

/// What is written to a file in the end.
#[derive(Debug)]
pub struct LastWrite {
    /// The open file.
    pub file: File,
    /// The text, which is written at once.
    pub text: String,
}

/// Writes to files once this is dropped or the process is gone, however it ended: a child waits for that.
#[derive(Debug)]
pub struct LastWrites {
    child: Pid,
    /// The child has the other end.
    end: UnixStream,
}

impl LastWrites {
    /// Starts the child.
    ///
    /// # Errors
    /// Returns the operating system's error if it can't make a process or doesn't list open descriptors.
    pub fn new(writes: Vec<LastWrite>) -> io::Result<Self> {
        let (end, of_child) = UnixStream::pair()?;
        end.set_read_timeout(Some(LAST_PATIENCE))?;
        let kept: Vec<RawFd> =
            writes.iter().map(|write| write.file.as_raw_fd()).chain([of_child.as_raw_fd()]).collect();
        let mut others = descriptors(|_| true)?;
        others.retain(|other| !kept.contains(other));
        // A signal to all of the terminal's foreground is perfprop's.
        let before = SigSet::thread_get_mask()?;
        SigSet::all().thread_block()?;
        let forked = fork_without(&others, || write_at_end(&of_child, &writes));
        before.thread_set_mask()?;
        forked.map(|child| Self { child, end })
    }
}

impl Drop for LastWrites {
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Write);
        // Until the child has closed its end, which it does last. One that takes longer outlives this process.
        if (&self.end).read(&mut [0]).is_ok() {
            let _ = waitpid(self.child, None);
        }
    }
}

/// Runs something in a child without some descriptors, in a session of its own, and returns the child.
///
/// It may make only system calls that are async-signal-safe, and allocate nothing.
fn fork_without(descriptors: &[RawFd], run: impl FnOnce()) -> io::Result<Pid> {
    // SAFETY: the child makes only system calls that are async-signal-safe, and allocates nothing.
    match unsafe { unistd::fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let _ = unistd::setsid();
            for &descriptor in descriptors {
                let _ = unistd::close(descriptor);
            }
            run();
            // SAFETY: nothing runs at this exit.
            unsafe { nix::libc::_exit(0) }
        }
    }
}

/// Waits for the other end to be closed, and writes. What is in use yet is tried again.
fn write_at_end(end: &UnixStream, writes: &[LastWrite]) {
    while unistd::read(end, &mut [0]) == Err(Errno::EINTR) {}
    for write in writes {
        for _ in 0..LAST_TRIES {
            if unistd::write(&write.file, write.text.as_bytes()) != Err(Errno::EBUSY) {
                break;
            }
            thread::sleep(LAST_PAUSE);
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exit {
    /// The command returned this code.
    Code(i32),
    /// This signal killed the command.
    Signal(i32),
}

impl Exit {
    /// The code that a shell would give for it: the command's own, or 128 plus the signal.
    pub fn shell_code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        };
        u8::try_from(code & 0xff).unwrap_or(u8::MAX)
    }

    /// How the command ended, in words: `ended with code 7`, `was ended by SIGSEGV`.
    pub fn told(self) -> String {
        match self {
            Self::Code(code) => format!("ended with code {code}"),
            Self::Signal(_) => format!("was ended by {self}"),
        }
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(status.into_raw()),
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exit {code}"),
            Self::Signal(number) => match Signal::try_from(number) {
                Ok(signal) => write!(f, "{signal}"),
                Err(_) => write!(f, "signal {number}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_held_command_runs_only_when_released() {
        let file = std::env::temp_dir().join(format!("perfprop-held-{}", std::process::id()));
        let mut command = Command::new("touch");
        command.arg(&file);
        let held = PreparedCommand::spawn(command).unwrap();
        assert!(!file.exists());
        let status = held.release().unwrap().wait().unwrap();
        assert!(status.success() && file.exists());
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn a_dropped_hold_never_runs_the_command() {
        let held = PreparedCommand::spawn(Command::new("true")).unwrap();
        let pid = held.pid();
        drop(held);
        assert!(!crate::sources::process::is_alive(pid));
    }

    #[test]
    fn a_missing_command_is_an_error_of_release() {
        let held = PreparedCommand::spawn(Command::new("/nonexistent/perfprop")).unwrap();
        assert_eq!(held.release().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_written_in_the_end_is_not_written_before() {
        let path = std::env::temp_dir().join(format!("perfprop-last-{}", std::process::id()));
        let write = |text: &str| LastWrite {
            file: File::options().create(true).append(true).open(&path).unwrap(),
            text: text.to_owned(),
        };
        let writes = LastWrites::new(vec![write("first\n"), write("second\n")]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        let child = writes.child;
        drop(writes);
        assert_eq!(waitpid(child, None), Err(Errno::ECHILD), "no zombie is left");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn exits_map_to_shell_codes() {
        assert_eq!(Exit::Code(7).shell_code(), 7);
        assert_eq!(Exit::Signal(15).shell_code(), 143);
        assert_eq!(Exit::from(ExitStatus::from_raw(9)), Exit::Signal(9));
        assert_eq!(Exit::from(ExitStatus::from_raw(7 << 8)).to_string(), "exit 7");
        assert_eq!(Exit::Signal(15).to_string(), "SIGTERM");
    }
}
