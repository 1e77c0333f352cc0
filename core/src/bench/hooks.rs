//! Runs the shell's commands around runs: what prepares them and what cleans up.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never, select, tick};
use nix::libc::SIGUSR1;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::said;
use crate::names::shown;
use crate::session::CaughtSignal;
use crate::sources::command::Exit;

/// Shell commands around runs, with sizes and words in braces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before the first run with each set of sizes and words.
    pub setup: Option<String>,
    /// Before each run.
    pub prepare: Option<String>,
    /// After all runs, for each set of sizes and words.
    pub cleanup: Option<String>,
}

/// Which of the commands around runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// Before the first run.
    Setup,
    /// Before each run.
    Prepare,
    /// After all runs.
    Cleanup,
}

impl HookKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Setup, Self::Prepare, Self::Cleanup];

    /// The name of its option.
    pub fn option(self) -> &'static str {
        match self {
            Self::Setup => "--setup",
            Self::Prepare => "--prepare",
            Self::Cleanup => "--cleanup",
        }
    }
}

impl Hooks {
    /// The command of a kind, as it was given.
    pub fn text(&self, kind: HookKind) -> Option<&str> {
        let text = match kind {
            HookKind::Setup => &self.setup,
            HookKind::Prepare => &self.prepare,
            HookKind::Cleanup => &self.cleanup,
        };
        text.as_deref()
    }
}

/// A command around runs that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookFailure {
    /// Which one.
    pub kind: HookKind,
    /// What the shell was given.
    pub text: String,
    /// How it ended.
    pub exit: Exit,
    /// The last lines that it wrote to standard error.
    pub said: Vec<String>,
}

impl fmt::Display for HookFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the command of {} {}: {}", self.kind.option(), self.exit.told(), shown(&self.text))?;
        self.said.iter().try_for_each(|line| write!(f, "\n      {}", shown(line)))
    }
}

/// How a command around runs ended.
#[derive(Debug)]
pub(super) enum HookEnd {
    /// As it should.
    Done,
    Failed(HookFailure),
    /// A signal to perfprop ended it.
    Interrupted(i32),
}

/// How long it may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// Runs a text with `sh -c` until it ends or a signal comes. What it leaves in the background runs on.
pub(super) fn run(kind: HookKind, text: &str, signals: &Receiver<CaughtSignal>) -> io::Result<HookEnd> {
    let said = said::new()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    // A group of its own: a signal reaches all of it, and the keys of the terminal reach it through perfprop alone.
    let child = command.process_group(0).spawn()?;
    let group = Pid::from_raw(child.id().cast_signed());
    let (exit, signal) = wait(child, group, signals, &said)?;
    if let Some(signal) = signal {
        return Ok(HookEnd::Interrupted(signal));
    }
    match Exit::from(exit) {
        Exit::Code(0) => Ok(HookEnd::Done),
        exit => Ok(HookEnd::Failed(HookFailure { kind, text: text.to_owned(), exit, said: said::last_lines(&said)? })),
    }
}

/// So often is forgotten what it wrote to standard error, but for the end.
const FORGETS: Duration = Duration::from_millis(100);

/// Waits for a child; a signal to perfprop ends its group.
fn wait(
    mut child: Child,
    group: Pid,
    signals: &Receiver<CaughtSignal>,
    said: &File,
) -> io::Result<(ExitStatus, Option<i32>)> {
    let (sender, ended) = bounded(1);
    let waits = thread::Builder::new().name("hook".into()).spawn(move || sender.send(child.wait()));
    if let Err(error) = waits {
        // Nobody would wait for it.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = waitpid(group, None);
        return Err(error);
    }
    let gone = || io::Error::other("the thread that waits for a command is gone");
    let (mut signals, mut signal, mut patience, forget) = (signals.clone(), None, never(), tick(FORGETS));
    loop {
        select! {
            recv(ended) -> exit => return Ok((exit.map_err(|_| gone())??, signal)),
            recv(signals) -> caught => match caught {
                Ok(CaughtSignal { number: SIGUSR1, .. }) => {}
                Ok(CaughtSignal { number, .. }) => {
                    // The second one is in a hurry. It may have ended by itself meanwhile.
                    let _ = killpg(group, if signal.is_none() { Signal::SIGTERM } else { Signal::SIGKILL });
                    signal = Some(number);
                    patience = crossbeam_channel::after(TERM_PATIENCE);
                }
                Err(_) => signals = never(),
            },
            recv(forget) -> _ => said::forget_beginning(said),
            recv(patience) -> _ => {
                let _ = killpg(group, Signal::SIGKILL);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn what_a_hook_said_is_told_where_it_fails() {
        let failed = |text: &str| match run(HookKind::Setup, text, &never()).unwrap() {
            HookEnd::Failed(failure) => failure,
            end => panic!("{end:?}"),
        };
        let failure = failed("for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; echo out; exit 3");
        assert_eq!(failure.exit, Exit::Code(3));
        assert_eq!(failure.said, ["line 3", "line 4", "line 5", "line 6", "line 7"]);
        let text = HookFailure { said: vec!["a\u{1b}[2J".into()], ..failure }.to_string();
        assert!(text.starts_with("the command of --setup ended with code 3: for i in 1 2"), "{text}");
        assert!(text.ends_with("\n      a\\x1b[2J") || !text.contains('\u{1b}'), "{text}");
        assert_eq!(failed("kill -9 $$").exit, Exit::Signal(9));
        assert!(matches!(run(HookKind::Cleanup, "echo x >&2", &never()).unwrap(), HookEnd::Done));
    }

    #[test]
    fn a_signal_ends_a_hook_with_what_it_started() {
        let (sender, signals) = bounded(2);
        sender.send(SIGUSR1.into()).unwrap();
        sender.send(15.into()).unwrap();
        let end = run(HookKind::Prepare, "sleep 600 & sleep 600; wait", &signals).unwrap();
        assert!(matches!(end, HookEnd::Interrupted(15)), "{end:?}");
    }
}
