//! Passes the rounds of a session to a function until it ends or a signal ends it: the loop of every verb
//! without screens.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never, select};
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGINT, SIGUSR1};

use super::Error;
use crate::run::End;
use crate::sampling::{SamplerMessage, SamplerRequest};
use crate::session::Session;
use crate::sources::Round;
use crate::sources::command::{self, Exit};
use crate::stacks::StackBatch;

/// How a measurement ended, and the signal that ended it, if one did.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) end: End,
    pub(super) signal: Option<i32>,
    /// Whether perfprop ended the command as it was asked to: after a time, or some intervals.
    pub(super) was_asked: bool,
}

impl Finished {
    /// The code to exit with: the command's own, or 128 plus the signal that ended perfprop. What was ended as
    /// asked has done what it should.
    pub(super) fn code(&self) -> u8 {
        match (self.end.exit, self.signal) {
            (_, Some(signal)) if signal != SIGINT => code_of(signal),
            (Some(Exit::Signal(_)), None) if self.was_asked => 0,
            (Some(exit), _) => exit.shell_code(),
            (None, Some(signal)) => code_of(signal),
            (None, None) => 0,
        }
    }
}

/// The code of a program that a signal ended.
pub(super) fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// How often rounds are passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taking {
    /// Passes on each round as it comes.
    AtOnce,
    /// Some at a time, for files that nobody watches: being woken for each of a hundred rounds a second
    /// costs more than writing them does.
    Batches,
}

/// The time that a batch comes together in; the channel has room for far more. A fifth of what may pass until
/// it is on disk is left for writing.
const BATCH: Duration = Duration::from_millis(80);

/// What a measurement gives.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a> {
    /// A round, and how many were lost so far.
    Round(&'a Round, u64),
    /// Samples with their call stacks.
    Stacks(&'a StackBatch),
    /// A request to save what was measured so far: USR1.
    Save,
    /// Nothing more for now: what was given may be handed on.
    Rest,
}

/// Where what a measurement gives comes from.
struct Channels<'a> {
    samples: &'a Receiver<SamplerMessage>,
    ended: &'a Receiver<Infallible>,
    batches: Receiver<StackBatch>,
    signals: &'a Receiver<i32>,
}

/// What comes next out of the channels.
enum Came {
    Round(Round, u64),
    Stacks(StackBatch),
    Signal(Option<i32>),
    /// All that waited is taken, and it is time to rest.
    Nothing,
}

impl Channels<'_> {
    /// Gives `on` all that comes until the end.
    fn pump(mut self, taking: Taking, mut on: impl FnMut(Came) -> Result<(), Error>) -> Result<(), Error> {
        loop {
            if taking == Taking::Batches && self.samples.is_empty() && self.batches.is_empty() {
                on(Came::Nothing)?;
                // For the end or a signal, but not for rounds and samples.
                select! {
                    recv(self.ended) -> _ => {}
                    recv(self.signals) -> number => {
                        on(Came::Signal(number.ok()))?;
                        continue;
                    }
                    default(BATCH) => {}
                }
            }
            select! {
                recv(self.samples) -> sample => match sample {
                    Ok(SamplerMessage::Round { round, lost }) => on(Came::Round(round, lost))?,
                    Ok(SamplerMessage::End) | Err(_) => return Ok(()),
                },
                recv(self.batches) -> batch => match batch {
                    Ok(batch) => on(Came::Stacks(batch))?,
                    Err(_) => self.batches = never(),
                },
                recv(self.signals) -> number => on(Came::Signal(number.ok()))?,
            }
        }
    }
}

/// Passes every round and every request to save to `take` until the measurement ends, a signal comes, or `take` has
/// enough.
pub(super) fn pump(
    session: &Session,
    signals: &Receiver<i32>,
    taking: Taking,
    take: impl FnMut(Given<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<Finished, Error> {
    pump_all(session, signals, never(), taking, take)
}

/// Hands samples with their call stacks to `take`, too, but those that are still on their way at the end.
pub(super) fn pump_all(
    session: &Session,
    signals: &Receiver<i32>,
    batches: Receiver<StackBatch>,
    taking: Taking,
    mut take: impl FnMut(Given<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<Finished, Error> {
    let (mut last, mut lost_rounds, mut signal) = (Round::default(), 0, None);
    let mut flow = ControlFlow::Continue(());
    let channels = Channels { samples: session.samples(), ended: session.ended(), batches, signals };
    channels.pump(taking, |came| {
        match came {
            Came::Round(round, lost) => {
                if flow.is_continue() {
                    flow = take(Given::Round(&round, lost))?;
                    if flow.is_break() {
                        session.request(SamplerRequest::Stop);
                        session.terminate(&mut || another_end(signals));
                    }
                }
                (last, lost_rounds) = (round, lost);
            }
            Came::Stacks(batch) => {
                let _ = take(Given::Stacks(&batch))?;
            }
            Came::Signal(number) => signal = answer(number, session, signals, &mut take)?.or(signal),
            Came::Nothing => {
                let _ = take(Given::Rest)?;
            }
        }
        Ok(())
    })?;
    let end = session.end(&last, lost_rounds);
    Ok(Finished { was_asked: flow.is_break() || session.has_timed_out(&end), end, signal })
}

/// Does what a signal asks for, and gives it back unless all goes on after it.
fn answer(
    signal: Option<i32>,
    session: &Session,
    signals: &Receiver<i32>,
    take: &mut impl FnMut(Given<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<Option<i32>, Error> {
    if signal == Some(SIGUSR1) {
        let _ = take(Given::Save)?;
        return Ok(None);
    }
    interrupt(session, signal, signals);
    Ok(signal)
}

/// INT is for the command, which may go on; the others end both, and another one that comes meanwhile does so at
/// once.
fn interrupt(session: &Session, signal: Option<i32>, signals: &Receiver<i32>) {
    if session.running_command().is_none() {
        session.request(SamplerRequest::Stop);
    } else if signal == Some(SIGINT) {
        // The terminal sends INT to all of its foreground, `kill -INT` to perfprop alone.
        if !in_foreground() {
            session.signal(Signal::SIGINT);
        }
    } else {
        session.terminate(&mut || another_end(signals));
    }
}

/// Whether a signal has come that ends perfprop.
pub(super) fn another_end(signals: &Receiver<i32>) -> bool {
    signals.try_iter().any(|signal| signal != SIGUSR1)
}

/// Closes the counters of a session, for which the kernel takes seconds where hundreds of tracepoints are open.
/// After a signal to end, before or meanwhile, it doesn't wait for that; returns that signal.
pub(super) fn close(session: Session, signals: &Receiver<i32>, ended_by: Option<i32>) -> Option<i32> {
    let (closing, closed) = bounded(0);
    let close = move || {
        drop(session);
        drop(closing);
    };
    let closer = thread::Builder::new().name("close".into()).spawn(close);
    let signal = ended_by.or_else(|| end_before(&closed, signals));
    if signal.is_some() {
        // Where that can't be, the end comes later.
        let _ = command::leave_closing_to_a_child();
    }
    let _ = closer.map(JoinHandle::join);
    signal
}

/// A signal that ends perfprop, if one comes before the counters are closed.
fn end_before(closed: &Receiver<Infallible>, signals: &Receiver<i32>) -> Option<i32> {
    loop {
        select! {
            recv(closed) -> _ => return None,
            recv(signals) -> signal => match signal {
                Ok(SIGUSR1) => {}
                signal => return signal.ok(),
            },
        }
    }
}

fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| nix::unistd::tcgetpgrp(terminal).is_ok_and(|group| group == nix::unistd::getpgrp()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::cell::RefCell;

    use crossbeam_channel::unbounded;

    use super::*;
    use crate::recording::ON_DISK;
    use crate::units::WallNs;

    /// Rounds and batches that come while the one before is written, and while nothing does: when there is a rest,
    /// all that came before has been handed on.
    #[test]
    fn nothing_that_came_waits_for_what_comes_later() {
        let (rounds, samples) = unbounded();
        let (stacks, batches) = unbounded();
        let (_runs, ended) = unbounded::<Infallible>();
        let signals = never();
        let round = |at| SamplerMessage::Round { round: Round { at: WallNs(at), ..Round::default() }, lost: 0 };
        // What comes during each rest, as rounds and as batches.
        let mut script = vec![(2, 3), (1, 0), (0, 2), (3, 1)].into_iter();
        let (sent, given, rests) = (RefCell::new((0, 0)), RefCell::new((0, 0)), RefCell::new(0));
        let take = |came: Came| {
            match came {
                Came::Signal(_) => {}
                Came::Round(..) => given.borrow_mut().0 += 1,
                Came::Stacks(_) => given.borrow_mut().1 += 1,
                Came::Nothing => {
                    assert_eq!(*given.borrow(), *sent.borrow());
                    *rests.borrow_mut() += 1;
                    let Some((more_rounds, more_batches)) = script.next() else {
                        rounds.send(SamplerMessage::End).unwrap();
                        return Ok(());
                    };
                    (0..more_rounds).for_each(|at| rounds.send(round(at)).unwrap());
                    (0..more_batches).for_each(|_| stacks.send(StackBatch::default()).unwrap());
                    let mut sent = sent.borrow_mut();
                    *sent = (sent.0 + more_rounds, sent.1 + more_batches);
                }
            }
            Ok(())
        };
        let channels = Channels { samples: &samples, ended: &ended, batches, signals: &signals };
        channels.pump(Taking::Batches, take).unwrap();
        assert_eq!((given.into_inner(), rests.into_inner()), ((6, 6), 5));
    }

    #[test]
    fn what_was_read_has_time_left_to_be_written() {
        assert!(BATCH < ON_DISK);
    }
}
