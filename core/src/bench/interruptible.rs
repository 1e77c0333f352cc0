//! Runs commands that are not measured, until they end or a signal to perfprop ends them.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded, never, select, tick};
use nix::libc::SIGUSR1;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use super::said;
use crate::session::CaughtSignal;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd<T> {
    /// By itself, with this.
    Ended(T),
    /// A signal to perfprop ended it.
    Interrupted(i32),
}

impl<T> CommandEnd<T> {
    /// The same with something made of what it ended with.
    pub fn map<U>(self, made: impl FnOnce(T) -> U) -> CommandEnd<U> {
        match self {
            Self::Ended(end) => CommandEnd::Ended(made(end)),
            Self::Interrupted(signal) => CommandEnd::Interrupted(signal),
        }
    }
}

/// How long a command and what it started may take to end after SIGTERM.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// So often is done what is to be done meanwhile.
const MEANWHILE: Duration = Duration::from_millis(100);

/// So often is looked whether what a command started has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Runs a command until it ends or a signal to perfprop comes, which ends it with all that it started: by SIGTERM, and by SIGKILL
/// after two seconds or with a second signal. What it leaves in the background when it ends by itself runs on. `meanwhile` is
/// called now and then.
///
/// # Errors
/// Returns the operating system's error if it can't be started or waited for; nothing of it runs then.
pub fn run_until_signal(
    command: &mut Command,
    signals: &Receiver<CaughtSignal>,
    mut meanwhile: impl FnMut(),
) -> io::Result<CommandEnd<ExitStatus>> {
    // A group of its own: a signal reaches all of it, and the keys of the terminal reach it through perfprop alone.
    let child = command.process_group(0).spawn()?;
    let group = Pid::from_raw(child.id().cast_signed());
    let end = wait(child, group, signals, &mut meanwhile);
    if end.is_err() {
        // Nobody would wait for it.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = waitpid(group, None);
    }
    end
}

/// Runs a command as [`run_until_signal`] does, and returns what it wrote.
///
/// # Errors
/// As for that.
pub fn output_until_signal(command: &mut Command, signals: &Receiver<CaughtSignal>) -> io::Result<CommandEnd<Output>> {
    // Nothing has to read files meanwhile.
    let (out, errors) = (said::new()?, said::new()?);
    command.stdout(out.try_clone()?).stderr(errors.try_clone()?);
    let end = run_until_signal(command, signals, || {})?;
    let (stdout, stderr) = (all_of(out)?, all_of(errors)?);
    Ok(end.map(|status| Output { status, stdout, stderr }))
}

fn all_of(mut file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn wait(
    mut child: Child,
    group: Pid,
    signals: &Receiver<CaughtSignal>,
    meanwhile: &mut dyn FnMut(),
) -> io::Result<CommandEnd<ExitStatus>> {
    let (sender, ended) = bounded(1);
    thread::Builder::new().name("command".into()).spawn(move || sender.send(child.wait()))?;
    let gone = || io::Error::other("the thread that waits for a command is gone");
    let (mut signals, mut asked, mut patience, tick) = (signals.clone(), None, never(), tick(MEANWHILE));
    loop {
        select! {
            recv(ended) -> exit => {
                let exit = exit.map_err(|_| gone())??;
                let Some((signal, since)) = asked else { return Ok(CommandEnd::Ended(exit)) };
                end_rest(group, since);
                return Ok(CommandEnd::Interrupted(signal));
            }
            recv(signals) -> caught => match caught {
                Ok(CaughtSignal { number: SIGUSR1, .. }) => {}
                Ok(CaughtSignal { number, .. }) => {
                    // The second one is in a hurry. It may have ended by itself meanwhile.
                    let _ = killpg(group, if asked.is_none() { Signal::SIGTERM } else { Signal::SIGKILL });
                    asked = Some((number, Instant::now()));
                    patience = crossbeam_channel::after(TERM_PATIENCE);
                }
                Err(_) => signals = never(),
            },
            recv(tick) -> _ => meanwhile(),
            recv(patience) -> _ => {
                let _ = killpg(group, Signal::SIGKILL);
            }
        }
    }
}

/// Waits for what a command started and that got the same signal, and kills what doesn't end by itself.
fn end_rest(group: Pid, since: Instant) {
    while killpg(group, None).is_ok() {
        if since.elapsed() >= TERM_PATIENCE {
            let _ = killpg(group, Signal::SIGKILL);
            return;
        }
        thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn a_command_that_ends_by_itself_gives_what_it_wrote() {
        let text = "echo out; echo errors >&2; exit 3";
        let CommandEnd::Ended(output) = output_until_signal(&mut shell(text), &never()).unwrap() else {
            panic!("no signal came")
        };
        assert_eq!(
            (output.status.code(), &output.stdout[..], &output.stderr[..]),
            (Some(3), &b"out\n"[..], &b"errors\n"[..])
        );
        assert!(run_until_signal(&mut Command::new("/nonexistent"), &never(), || {}).is_err());
    }

    #[test]
    fn what_ends_slowly_is_waited_for_and_what_does_not_end_is_killed() {
        let folder = std::env::temp_dir().join(format!("perfprop-interruptible-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (begun, ended) = (folder.join("begun"), folder.join("ended"));
        // The shell ends at once; of what it started, one cleans up and the other doesn't listen.
        let text = format!(
            "(trap 'sleep 0.2; echo > {}; exit' TERM; echo > {}; while :; do sleep 0.05; done) & \
             (trap '' TERM; exec sleep 600) & trap 'exit 1' TERM; while :; do sleep 0.05; done",
            ended.display(),
            begun.display()
        );
        let (sender, signals) = bounded(2);
        sender.send(SIGUSR1.into()).unwrap();
        let (mut is_asked, started) = (false, Instant::now());
        let end = run_until_signal(&mut shell(&text), &signals, || {
            if begun.exists() && !is_asked {
                sender.send(15.into()).unwrap();
                is_asked = true;
            }
        });
        assert_eq!(end.unwrap(), CommandEnd::Interrupted(15));
        assert!(ended.exists(), "it had the time to clean up");
        assert!(started.elapsed() >= TERM_PATIENCE && started.elapsed() < Duration::from_secs(60));
        fs::remove_dir_all(folder).unwrap();
    }
}
