//! Starts a command and holds it just before exec, so that its counters are open before its first
//! instruction.
//!
//! ```text
//! perfprop   spawn ───────── open counters ── release ──────────────── wait ── exit status
//! child            fork ──── held ────────────────── exec (counters on) ── ... ── exit
//! ```

#![expect(unsafe_code, reason = "code between fork and exec can only be added by pre_exec")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction, signal};
use nix::unistd::{self, Pid};

use crate::sources::process;

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

/// Lets this process wait for its children though whoever started it had SIGCHLD ignored: the kernel then forgets how
/// they end, and what they took. Says whether that was so; commands get the signal as this process got it.
pub fn wait_for_children() -> bool {
    *IGNORES_CHILDREN.get_or_init(|| {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action runs nothing here, and one that was there before was installed by whoever answers
        // for it.
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
}
