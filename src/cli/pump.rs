//! A session and the signals in, each round to a function, how it ended out: the loop of every
//! verb that draws no screens.

use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::{Receiver, never, select};
use nix::sys::signal::Signal;
use signal_hook::consts::SIGINT;

use super::Error;
use crate::recording::End;
use crate::sampling::{Request, Sample};
use crate::session::Session;
use crate::sources::Round;
use crate::stacks::StackBatch;

/// How a measurement ended, and the signal that ended it, if one did.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) signal: Option<i32>,
}

impl Finished {
    /// The code to exit with: the command's own, or 128 plus the signal that ended perfprop.
    pub(super) fn code(&self) -> u8 {
        match (self.end.exit, self.signal) {
            (_, Some(signal)) if signal != SIGINT => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            (Some(exit), _) => exit.shell_code(),
            (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            (None, None) => 0,
        }
    }
}

/// How rounds are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// Each as it comes.
    AtOnce,
    /// Some at a time, for files that nobody watches: being woken for each of a hundred rounds a second
    /// costs more than writing them does.
    Batches,
}

/// The time that a batch comes together in; the channel has room for far more.
const BATCH: Duration = Duration::from_millis(200);

/// What a measurement gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a> {
    /// A round, and how many were lost so far.
    Round(&'a Round, u64),
    /// Samples with their call stacks.
    Stacks(&'a StackBatch),
}

/// Hands every round to `take` until the measurement ends, a signal comes, or `take` has enough.
pub(super) fn pump(
    session: &Session,
    signals: &Receiver<i32>,
    taking: Taking,
    mut take: impl FnMut(&Round, u64) -> Result<ControlFlow<()>, Error>,
) -> Result<Finished, Error> {
    pump_all(session, signals, never(), taking, |given| match given {
        Given::Round(round, lost) => take(round, lost),
        Given::Stacks(_) => Ok(ControlFlow::Continue(())),
    })
}

/// Hands samples with their call stacks to `take`, too, but those that are still on their way at the end.
pub(super) fn pump_all(
    session: &Session,
    signals: &Receiver<i32>,
    mut batches: Receiver<StackBatch>,
    taking: Taking,
    mut take: impl FnMut(Given<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<Finished, Error> {
    let (mut last, mut lost_rounds, mut signal) = (Round::default(), 0, None);
    let mut flow = ControlFlow::Continue(());
    loop {
        if taking == Taking::Batches && session.samples().is_empty() {
            select! {
                recv(session.ended()) -> _ => {}
                recv(signals) -> number => {
                    signal = number.ok();
                    interrupt(session, signal);
                }
                default(BATCH) => {}
            }
        }
        select! {
            recv(session.samples()) -> sample => match sample {
                Ok(Sample::Round { round, lost }) => {
                    if flow.is_continue() {
                        flow = take(Given::Round(&round, lost))?;
                        if flow.is_break() {
                            session.request(Request::Stop);
                            session.terminate();
                        }
                    }
                    (last, lost_rounds) = (round, lost);
                }
                Ok(Sample::End) | Err(_) => break,
            },
            recv(batches) -> batch => match batch {
                Ok(batch) => {
                    let _ = take(Given::Stacks(&batch))?;
                }
                Err(_) => batches = never(),
            },
            recv(signals) -> number => {
                signal = number.ok();
                interrupt(session, signal);
            }
        }
    }
    Ok(Finished { end: session.end(&last, lost_rounds), signal })
}

/// INT is for the command, which may go on; the others end both.
fn interrupt(session: &Session, signal: Option<i32>) {
    if session.running_command().is_none() {
        session.request(Request::Stop);
    } else if signal == Some(SIGINT) {
        // The terminal sends INT to all of its foreground, `kill -INT` to perfprop alone.
        if !in_foreground() {
            session.signal(Signal::SIGINT);
        }
    } else {
        session.terminate();
    }
}

fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| nix::unistd::tcgetpgrp(terminal).is_ok_and(|group| group == nix::unistd::getpgrp()))
}
