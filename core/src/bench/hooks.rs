//! Runs the shell's commands around runs: what prepares them and what cleans up.

use std::fmt;
use std::io;
use std::process::{Command, Stdio};

use crossbeam_channel::Receiver;

use super::interruptible::{CommandEnd, run_until_signal};
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

/// How a command around runs ended: as it should, with a failure, or by a signal to perfprop.
pub(super) type HookEnd = CommandEnd<Result<(), HookFailure>>;

/// Runs a text with `sh -c` until it ends or a signal comes. What it leaves in the background runs on.
pub(super) fn run(kind: HookKind, text: &str, signals: &Receiver<CaughtSignal>) -> io::Result<HookEnd> {
    let said = said::new()?;
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said.try_clone()?);
    let exit = match run_until_signal(&mut command, signals, || said::forget_beginning(&said))? {
        CommandEnd::Interrupted(signal) => return Ok(CommandEnd::Interrupted(signal)),
        CommandEnd::Ended(status) => Exit::from(status),
    };
    let failed = |said| HookFailure { kind, text: text.to_owned(), exit, said };
    let failure = (exit != Exit::Code(0)).then(|| said::last_lines(&said).map(failed)).transpose()?;
    Ok(CommandEnd::Ended(failure.map_or(Ok(()), Err)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

    use crossbeam_channel::{bounded, never};
    use nix::libc::SIGUSR1;

    use super::*;

    #[test]
    fn what_a_hook_said_is_told_where_it_fails() {
        let failed = |text: &str| match run(HookKind::Setup, text, &never()).unwrap() {
            HookEnd::Ended(Err(failure)) => failure,
            end => panic!("{end:?}"),
        };
        let failure = failed("for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; echo out; exit 3");
        assert_eq!(failure.exit, Exit::Code(3));
        assert_eq!(failure.said, ["line 3", "line 4", "line 5", "line 6", "line 7"]);
        let text = HookFailure { said: vec!["a\u{1b}[2J".into()], ..failure }.to_string();
        assert!(text.starts_with("the command of --setup ended with code 3: for i in 1 2"), "{text}");
        assert!(text.ends_with("\n      a\\x1b[2J") || !text.contains('\u{1b}'), "{text}");
        assert_eq!(failed("kill -9 $$").exit, Exit::Signal(9));
        assert!(matches!(run(HookKind::Cleanup, "echo x >&2", &never()).unwrap(), HookEnd::Ended(Ok(()))));
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
