//! Runs a session until it ends or a signal ends it, and hands on its rounds: the loop of every measurement without
//! screens.
//!
//! Signals come from a channel that the caller owns: USR1 asks to save, INT is passed on to the command, any
//! other one ends the measurement. Without signals, [`crossbeam_channel::never`] is that channel.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded, never, select};
use nix::libc::{SIGINT, SIGUSR1};
use nix::sys::signal::Signal;

use crate::monitor::Monitor;
use crate::regions::RegionBatch;
use crate::run::End;
use crate::sampling::{SamplerMessage, SamplerRequest};
use crate::session::{CaughtSignal, Session, SignalSender};
use crate::sources::Round;
use crate::sources::command;
use crate::stacks::StackBatch;

/// How a measurement ended.
#[derive(Debug)]
pub struct RunOutcome {
    /// Times, exit status and totals.
    pub end: End,
    /// What ended it.
    pub ended_by: EndedBy,
}

/// What ended a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The command or the target did, or nothing is left to count.
    Itself,
    /// perfprop did as it was asked to: after a time, or some intervals.
    Request,
    /// A signal to perfprop, of this number.
    Signal(i32),
}

impl EndedBy {
    /// The signal, where one ended it.
    pub fn signal(self) -> Option<i32> {
        if let Self::Signal(number) = self { Some(number) } else { None }
    }
}

/// How often rounds are handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Each round as it comes.
    Immediate,
    /// Some at a time, for files that nobody watches: being woken for each of a hundred rounds a second
    /// costs more than writing them does.
    Batched,
}

/// The time that a batch comes together in; the channel has room for far more. A fifth of what may pass until
/// a recording is on disk is left for writing.
pub const BATCH: Duration = Duration::from_millis(80);

/// What happens while a measurement runs.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A round, and how many were lost so far.
    Round(&'a Round, u64),
    /// Samples with their call stacks.
    Stacks(&'a StackBatch),
    /// What is new of named regions.
    Regions(&'a RegionBatch),
    /// A request to save what was measured so far: USR1.
    Save,
    /// Nothing more for now: what was handed on may be written out.
    Idle,
}

/// Where the events of a run come from.
struct Channels<'a> {
    samples: &'a Receiver<SamplerMessage>,
    ended: &'a Receiver<Infallible>,
    batches: BatchChannels,
    signals: Receiver<CaughtSignal>,
}

/// Where batches come from that are handed on beside rounds.
#[derive(Clone, Debug)]
pub struct BatchChannels {
    /// Samples with their call stacks.
    pub stacks: Receiver<StackBatch>,
    /// What is new of named regions.
    pub regions: Receiver<RegionBatch>,
}

impl Default for BatchChannels {
    /// Channels from which nothing comes.
    fn default() -> Self {
        Self { stacks: never(), regions: never() }
    }
}

impl BatchChannels {
    fn are_empty(&self) -> bool {
        self.stacks.is_empty() && self.regions.is_empty()
    }
}

/// What comes next out of the channels.
enum Arrival {
    Round(Round, u64),
    Stacks(StackBatch),
    Regions(RegionBatch),
    Signal(CaughtSignal),
    /// All that waited is taken, and it is time to rest.
    Idle,
}

impl Channels<'_> {
    /// Hands all that comes to `on` until the end.
    fn drain<E>(mut self, delivery: Delivery, mut on: impl FnMut(Arrival) -> Result<(), E>) -> Result<(), E> {
        loop {
            if delivery == Delivery::Batched && self.samples.is_empty() && self.batches.are_empty() {
                on(Arrival::Idle)?;
                // For the end or a signal, but not for rounds and samples.
                select! {
                    recv(self.ended) -> _ => {}
                    recv(self.signals) -> signal => {
                        self.signal(signal.ok(), &mut on)?;
                        continue;
                    }
                    default(BATCH) => {}
                }
            }
            select! {
                recv(self.samples) -> sample => match sample {
                    Ok(SamplerMessage::Round { round, lost }) => on(Arrival::Round(round, lost))?,
                    Ok(SamplerMessage::End) | Err(_) => return Ok(()),
                },
                recv(self.batches.stacks) -> batch => match batch {
                    Ok(batch) => on(Arrival::Stacks(batch))?,
                    Err(_) => self.batches.stacks = never(),
                },
                recv(self.batches.regions) -> batch => match batch {
                    Ok(batch) => on(Arrival::Regions(batch))?,
                    Err(_) => self.batches.regions = never(),
                },
                recv(self.signals) -> signal => self.signal(signal.ok(), &mut on)?,
            }
        }
    }

    /// Hands on a signal; without one no more will come.
    fn signal<E>(
        &mut self,
        signal: Option<CaughtSignal>,
        on: &mut impl FnMut(Arrival) -> Result<(), E>,
    ) -> Result<(), E> {
        if signal.is_none() {
            self.signals = never();
        }
        signal.map_or(Ok(()), |signal| on(Arrival::Signal(signal)))
    }
}

/// Hands every round, every batch of call stacks or regions and every request to save to `take` until the measurement
/// ends, a signal comes, or `take` has enough after a round. Batches that are on their way at the end are left in their
/// channel.
///
/// # Errors
/// Returns those of `take`.
pub fn run<E>(
    session: &Session,
    signals: &Receiver<CaughtSignal>,
    batches: BatchChannels,
    delivery: Delivery,
    mut take: impl FnMut(RunEvent<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<RunOutcome, E> {
    let (mut last, mut lost_rounds, mut signal) = (Round::default(), 0, None);
    let mut flow = ControlFlow::Continue(());
    let channels = Channels { samples: session.samples(), ended: session.ended(), batches, signals: signals.clone() };
    channels.drain(delivery, |arrival| {
        match arrival {
            Arrival::Round(round, lost) => {
                if flow.is_continue() {
                    flow = take(RunEvent::Round(&round, lost))?;
                    if flow.is_break() {
                        session.request(SamplerRequest::Finish);
                        session.terminate(&mut || pending_end(signals).is_some());
                    }
                }
                (last, lost_rounds) = (round, lost);
            }
            Arrival::Stacks(batch) => {
                let _ = take(RunEvent::Stacks(&batch))?;
            }
            Arrival::Regions(batch) => {
                let _ = take(RunEvent::Regions(&batch))?;
            }
            Arrival::Signal(caught) => signal = answer(caught, session, signals, &mut take)?.or(signal),
            Arrival::Idle => {
                let _ = take(RunEvent::Idle)?;
            }
        }
        Ok(())
    })?;
    let end = session.end(&last, lost_rounds);
    let ended_by = match signal {
        Some(number) => EndedBy::Signal(number),
        None if flow.is_break() || session.has_timed_out(&end) => EndedBy::Request,
        None => EndedBy::Itself,
    };
    Ok(RunOutcome { end, ended_by })
}

/// What a monitor has to show while a measurement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// An interval is complete.
    Interval,
    /// The run has ended within an interval, which is shorter than the others.
    LastInterval,
    /// Save what was measured so far: USR1.
    Save,
}

/// Feeds a monitor with every round, and calls `show` after each interval and on request to save, until the measurement
/// ends, a signal comes, or `show` has enough after an interval. Then the monitor has the end, too.
///
/// # Errors
/// Returns those of `show`.
pub fn watch<E>(
    session: &Session,
    signals: &Receiver<CaughtSignal>,
    monitor: &mut Monitor,
    show: impl FnMut(&Monitor, WatchEvent) -> Result<ControlFlow<()>, E>,
) -> Result<RunOutcome, E> {
    watch_rounds(session, signals, monitor, |_, _| {}, show)
}

/// Feeds a monitor as [`watch`] does, and hands each round to `take`, with how many were lost so far, before the
/// monitor takes it.
///
/// # Errors
/// Returns those of `show`.
pub fn watch_rounds<E>(
    session: &Session,
    signals: &Receiver<CaughtSignal>,
    monitor: &mut Monitor,
    mut take: impl FnMut(&Round, u64),
    mut show: impl FnMut(&Monitor, WatchEvent) -> Result<ControlFlow<()>, E>,
) -> Result<RunOutcome, E> {
    let mut has_enough = false;
    let outcome = run(session, signals, BatchChannels::default(), Delivery::Immediate, |event| {
        let flow = match event {
            RunEvent::Round(round, lost) => {
                take(round, lost);
                let closes = monitor.round(round, lost);
                if closes { show(monitor, WatchEvent::Interval)? } else { ControlFlow::Continue(()) }
            }
            RunEvent::Save => show(monitor, WatchEvent::Save)?,
            RunEvent::Stacks(_) | RunEvent::Regions(_) | RunEvent::Idle => ControlFlow::Continue(()),
        };
        has_enough |= flow.is_break();
        Ok(flow)
    })?;
    let intervals = monitor.intervals();
    monitor.end(outcome.end.clone());
    if monitor.intervals() > intervals && !has_enough {
        let _ = show(monitor, WatchEvent::LastInterval)?;
    }
    Ok(outcome)
}

/// Does what a signal asks for, and gives it back unless all goes on after it.
fn answer<E>(
    signal: CaughtSignal,
    session: &Session,
    signals: &Receiver<CaughtSignal>,
    take: &mut impl FnMut(RunEvent<'_>) -> Result<ControlFlow<()>, E>,
) -> Result<Option<i32>, E> {
    if signal.number == SIGUSR1 {
        let _ = take(RunEvent::Save)?;
        return Ok(None);
    }
    interrupt(session, signal, signals);
    Ok(Some(signal.number))
}

/// INT is for the command, which may go on; the others end both, and another one that comes meanwhile does so at
/// once.
fn interrupt(session: &Session, signal: CaughtSignal, signals: &Receiver<CaughtSignal>) {
    if session.running_command().is_none() {
        session.request(SamplerRequest::Finish);
    } else if signal.number == SIGINT {
        // From a terminal the command has it, too; from a process that sends it to the whole group it has it twice,
        // which nothing tells.
        if signal.sender == SignalSender::Process {
            session.signal(Signal::SIGINT);
        }
    } else {
        session.terminate(&mut || pending_end(signals).is_some());
    }
}

/// A signal that ends what is done, if one has come.
pub fn pending_end(signals: &Receiver<CaughtSignal>) -> Option<i32> {
    signals.try_iter().map(|signal| signal.number).find(|&number| number != SIGUSR1)
}

/// Waits for a signal that ends what is done, for a time at most.
pub fn end_within(signals: &Receiver<CaughtSignal>, time: Duration) -> Option<i32> {
    end_before(&crossbeam_channel::after(time), signals)
}

/// Closes the counters of a session, for which the kernel takes seconds where hundreds of tracepoints are open.
/// After a signal to end, before or meanwhile, it doesn't wait for that; returns that signal.
pub fn close(session: Session, signals: &Receiver<CaughtSignal>, ended_by: Option<i32>) -> Option<i32> {
    let (closing, closed) = bounded::<Infallible>(0);
    let close = move || {
        drop(session);
        drop(closing);
    };
    let closer = thread::Builder::new().name("perfprop-close".into()).spawn(close);
    let signal = ended_by.or_else(|| end_before(&closed, signals));
    if signal.is_some() {
        // Where that can't be, the end comes later.
        let _ = command::leave_closing_to_a_child();
    }
    let _ = closer.map(JoinHandle::join);
    signal
}

/// A signal that ends what is done, if one comes before something else is over.
fn end_before<T>(over: &Receiver<T>, signals: &Receiver<CaughtSignal>) -> Option<i32> {
    loop {
        select! {
            recv(over) -> _ => return None,
            recv(signals) -> signal => match signal {
                Ok(CaughtSignal { number: SIGUSR1, .. }) => {}
                Ok(signal) => return Some(signal.number),
                // Nobody sends any.
                Err(_) => {
                    let _ = over.recv();
                    return None;
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::cell::RefCell;

    use crossbeam_channel::unbounded;

    use super::*;
    use crate::units::WallNs;

    /// Rounds and batches that come while the one before is written, and while nothing does: when there is a rest,
    /// all that came before has been handed on.
    #[test]
    fn a_request_to_save_ends_nothing() {
        let (sender, signals) = unbounded();
        sender.send(SIGUSR1.into()).unwrap();
        assert_eq!(end_within(&signals, Duration::ZERO), None);
        for signal in [SIGUSR1, SIGINT] {
            sender.send(signal.into()).unwrap();
        }
        assert_eq!(end_within(&signals, Duration::from_secs(60)), Some(SIGINT));
        drop(sender);
        assert_eq!(end_within(&signals, Duration::from_millis(1)), None);
    }

    #[test]
    fn nothing_that_came_waits_for_what_comes_later() {
        let (rounds, samples) = unbounded();
        let (stacks, batches) = unbounded();
        let (_runs, ended) = unbounded::<Infallible>();
        let round = |at| SamplerMessage::Round { round: Round { at: WallNs(at), ..Round::default() }, lost: 0 };
        // What comes during each rest, as rounds and as batches.
        let mut script = vec![(2, 3), (1, 0), (0, 2), (3, 1)].into_iter();
        let (sent, given, rests) = (RefCell::new((0, 0)), RefCell::new((0, 0)), RefCell::new(0));
        let take = |arrival: Arrival| {
            match arrival {
                Arrival::Signal(_) | Arrival::Regions(_) => {}
                Arrival::Round(..) => given.borrow_mut().0 += 1,
                Arrival::Stacks(_) => given.borrow_mut().1 += 1,
                Arrival::Idle => {
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
            Ok::<_, Infallible>(())
        };
        let batches = BatchChannels { stacks: batches, ..BatchChannels::default() };
        let channels = Channels { samples: &samples, ended: &ended, batches, signals: never() };
        channels.drain(Delivery::Batched, take).unwrap();
        assert_eq!((given.into_inner(), rests.into_inner()), ((6, 6), 5));
    }
}
