//! Starts the command of a measurement, waits for it, and ends it with all that it started.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::UsageWho;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{ChildIo, CommandLine, output};
use crate::sources::command::Exit;
use crate::sources::process::{self, KnownTask};
use crate::units::CpuTime;

/// How long a process may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// How a command ended, once it has.
pub(super) type Ended = Arc<OnceLock<(Exit, CpuTime)>>;

/// A command that was started.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) task: KnownTask,
    pub(super) ended: Ended,
    pub(super) drains: output::Drains,
    pub(super) detached: bool,
    /// Whether it was asked to end.
    pub(super) was_ended: AtomicBool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.detached {
            terminate(&self.task, &self.ended, &mut || false);
        }
    }
}

/// Ends a command and everything that it started, unless it has ended.
pub(super) fn terminate(command: &KnownTask, ended: &OnceLock<(Exit, CpuTime)>, is_hurry: &mut dyn FnMut() -> bool) {
    if ended.get().is_some() {
        return;
    }
    // Taken before the signal: the children of an ended process are no longer found by it.
    let family = command.family();
    signal_all(&family, Signal::SIGTERM);
    let patience = Instant::now() + TERM_PATIENCE;
    // Whoever asks next how it ended is to know it: that is later than its end.
    let is_over = || ended.get().is_some() && !family.iter().any(KnownTask::is_alive);
    while Instant::now() < patience && !is_hurry() && !is_over() {
        thread::sleep(Duration::from_millis(5));
    }
    // With those that they have started since.
    let left: Vec<_> = family.iter().flat_map(KnownTask::family).collect();
    signal_all(&left, Signal::SIGKILL);
}

/// A number may be another process' by now.
fn signal_all(tasks: &[KnownTask], signal: Signal) {
    for task in tasks.iter().filter(|task| task.is_alive()) {
        // It may have ended by itself meanwhile.
        let _ = kill(task.pid(), signal);
    }
}

/// What is started for a command line: `argv` is it, or what runs it.
pub(super) fn command(argv: &[OsString], line: &CommandLine) -> io::Result<Command> {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    if let Some(folder) = &line.folder {
        command.current_dir(folder);
    }
    match line.io {
        ChildIo::Inherit => {}
        ChildIo::Capture => {
            // The keys of a terminal are perfprop's.
            let input = if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() };
            command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
            // None of them may become the command's signal.
            command.process_group(0);
        }
        ChildIo::Discard => {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        ChildIo::ToStderr => {
            command.stdout(io::stderr());
        }
    }
    if let Some(output) = &line.output {
        command.stdout(output.try_clone()?);
    }
    if let Some(errors) = &line.errors {
        command.stderr(errors.try_clone()?);
    }
    Ok(command)
}

/// Keeps a child that is held before exec on a CPU, and so all that it starts.
pub(super) fn keep_on(pid: Pid, cpu: u32) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    let kept = cpus.set(cpu as usize).and_then(|()| sched_setaffinity(pid, &cpus));
    kept.map_err(|error| io::Error::other(format!("the command can't be kept on CPU {cpu}: {error}")))
}

/// Runs in a thread of its own until the command ends.
pub(super) fn wait(mut child: Child, before: CpuTime, ended: &OnceLock<(Exit, CpuTime)>, stop: impl FnOnce()) {
    let exit = child.wait().map_or(Exit::Code(-1), Exit::from);
    let _ = ended.set((exit, process::used(UsageWho::RUSAGE_CHILDREN) - before));
    stop();
}

/// Where a command is found, as exec would look for it: by its path, or in `PATH`.
pub fn find_command(name: &OsString) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    process::command_folders().into_iter().map(|folder| folder.join(name)).find(|file| process::is_executable(file))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn a_process_that_got_the_number_of_one_that_ended_is_left_alone() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let task = KnownTask::process(Pid::from_raw(child.id().cast_signed()));
        terminate(&task.earlier(), &OnceLock::new(), &mut || true);
        assert!(child.try_wait().unwrap().is_none() && task.is_alive());
        terminate(&task, &OnceLock::new(), &mut || true);
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn what_does_not_end_when_asked_is_killed_with_what_it_started() {
        let mut shell = Command::new("sh").args(["-c", "trap '' TERM; sleep 60 & wait"]).spawn().unwrap();
        let task = KnownTask::process(Pid::from_raw(shell.id().cast_signed()));
        let family = loop {
            let family = task.family();
            if family.len() > 1 {
                break family;
            }
            thread::yield_now();
        };
        terminate(&task, &OnceLock::new(), &mut || true);
        assert!(!shell.wait().unwrap().success());
        // The kernel may take a moment to end it.
        while family.iter().any(KnownTask::is_alive) {
            thread::yield_now();
        }
    }
}
