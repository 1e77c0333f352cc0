//! Runs one command, and measures what it took.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use nix::libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::{SweepError, said};
use crate::cost::TIME;
use crate::measure::{
    BatchChannels, DefaultEvents, Delivery, EndedBy, MeasureOptions, Measurement, RunEvent, RunOutcome, end_within,
    pending_end, run,
};
use crate::monitor::Monitor;
use crate::session::{CaughtSignal, ChildIo, CommandLine, Launch, Needs, Session};
use crate::sources::Counter;
use crate::sources::command::Exit;

/// The CPU time of a run in user space and in the kernel, beside whatever is counted.
pub const CPU_TIMES: [&str; 2] = ["user_time", "system_time"];

/// Measures commands, one after the other, with the same events.
#[derive(Debug)]
pub struct Runner {
    measurement: Measurement,
    /// What the command writes to standard error, if that is kept.
    said: Option<Arc<File>>,
}

/// What is run once.
#[derive(Clone, Copy, Debug)]
pub struct RunOnce<'a> {
    /// The command and its arguments; not empty.
    pub argv: &'a [String],
    /// The folder in which it runs; perfprop's own if there is none.
    pub folder: Option<&'a Path>,
    /// The longest that it may take; as long as it wants if `None`.
    pub timeout: Option<Duration>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ran {
    /// By itself, and what it took.
    Whole {
        /// What it took, by the names of times and events.
        counts: BTreeMap<String, f64>,
        /// How it ended.
        exit: Exit,
    },
    /// By perfprop, as it took too long.
    TimedOut,
    /// By a signal to perfprop.
    Interrupted(i32),
}

/// No interval ends while a command of a sweep runs.
const INTERVAL: Duration = Duration::from_secs(3600);

const PERIOD: Duration = Duration::from_millis(100);

/// The terminal's keys send a signal to the command and to perfprop: the command may have ended by it, or failed, before perfprop
/// has it.
pub const SIGNAL_PATIENCE: Duration = Duration::from_millis(500);

/// The signals that reach a command together with perfprop: by the terminal's keys, or as all of a group or session are ended.
const SHARED: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

impl Runner {
    /// Prepares to count these events.
    ///
    /// # Errors
    /// Returns why they can't be counted.
    pub fn new(events: &[String], counter: Counter, cpu: Option<u32>) -> Result<Self, SweepError> {
        let needs = if events.is_empty() { Needs::Nothing } else { Needs::All };
        let launch = Launch { needs, counter: counter.clone(), pinned_to: cpu, ..Launch::attach(None) };
        let measured = MeasureOptions {
            events: events.to_vec(),
            default_events: DefaultEvents::Nothing,
            counter,
            ..MeasureOptions::default()
        };
        let measurement = Measurement::new(&measured, launch, &mut |_| {}).map_err(SweepError::Measure)?;
        Ok(Self { measurement, said: None })
    }

    /// Keeps what commands write to standard error from the terminal, for [`Self::last_lines`].
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn keep_errors(&mut self) -> io::Result<()> {
        self.said = Some(Arc::new(said::new()?));
        Ok(())
    }

    /// The last lines that the last command wrote to standard error, if these are kept.
    pub fn last_lines(&self) -> Vec<String> {
        self.said.as_ref().and_then(|said| said::last_lines(said).ok()).unwrap_or_default()
    }

    /// The names of the events that are counted.
    pub fn events(&self) -> Vec<String> {
        self.measurement.plan.events.iter().map(|event| event.name.clone()).collect()
    }

    /// Runs a command until it ends, its time is over, or a signal arrives. `on_round` is called now and then meanwhile.
    ///
    /// # Errors
    /// Returns why it can't be started, or an event wasn't counted.
    pub fn run(
        &mut self,
        once: RunOnce<'_>,
        signals: &Receiver<CaughtSignal>,
        on_round: &mut dyn FnMut(),
    ) -> Result<Ran, SweepError> {
        if let Some(said) = &self.said {
            said::clear(said).map_err(SweepError::System)?;
        }
        let argv = once.argv.iter().map(OsString::from).collect();
        let folder = once.folder.map(Path::to_owned);
        self.measurement.launch.command =
            Some(CommandLine { argv, folder, io: ChildIo::Discard, output: None, errors: self.said.clone() });
        let period = self.measurement.period(PERIOD);
        let (session, header) = self.measurement.start(period, INTERVAL, &mut |_| {}).map_err(SweepError::Measure)?;
        let mut monitor = self.measurement.monitor(header);
        let said = self.said.as_deref();
        let mut on_round = || {
            said.into_iter().for_each(said::forget_beginning);
            on_round();
        };
        let outcome = watch(&session, once.timeout, signals, &mut monitor, &mut on_round)?;
        match outcome.ended_by {
            EndedBy::Signal(signal) => return Ok(Ran::Interrupted(signal)),
            EndedBy::Request => return Ok(Ran::TimedOut),
            EndedBy::Itself => {}
        }
        let unknown = || SweepError::System(io::Error::other("how the command ended isn't known"));
        let exit = outcome.end.exit.ok_or_else(unknown)?;
        let is_by_shared = SHARED.iter().any(|signal| 128 + signal == i32::from(exit.shell_code()));
        let came = if is_by_shared { end_within(signals, SIGNAL_PATIENCE) } else { pending_end(signals) };
        if let Some(signal) = came {
            return Ok(Ran::Interrupted(signal));
        }
        Ok(Ran::Whole { counts: counts(&outcome, &monitor)?, exit })
    }
}

/// Feeds a monitor until the command ends, or its time is over, which is a request.
fn watch(
    session: &Session,
    timeout: Option<Duration>,
    signals: &Receiver<CaughtSignal>,
    monitor: &mut Monitor,
    on_round: &mut dyn FnMut(),
) -> Result<RunOutcome, SweepError> {
    // The clock of rounds is that of a model, if one counts.
    let began = Instant::now();
    let mut stopped = None;
    let batches = BatchChannels::default();
    let outcome = run::<SweepError>(session, signals, batches, Delivery::Immediate, |event| {
        let RunEvent::Round(round, lost) = event else { return Ok(ControlFlow::Continue(())) };
        monitor.round(round, lost);
        on_round();
        let is_over = timeout.is_some_and(|timeout| began.elapsed() >= timeout);
        if is_over && stopped.is_none() && session.running_command().is_some() {
            let mut signal = None;
            session.terminate(&mut || {
                signal = signal.or_else(|| pending_end(signals));
                signal.is_some()
            });
            stopped = Some(signal.map_or(EndedBy::Request, EndedBy::Signal));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    monitor.end(outcome.end.clone());
    let ended_by =
        if outcome.ended_by.signal().is_some() { outcome.ended_by } else { stopped.unwrap_or(EndedBy::Itself) };
    Ok(RunOutcome { ended_by, ..outcome })
}

/// What a run took, by the names of times and events.
fn counts(outcome: &RunOutcome, monitor: &Monitor) -> Result<BTreeMap<String, f64>, SweepError> {
    let mut counts = BTreeMap::from([(TIME.to_owned(), outcome.end.at_ns.0 as f64)]);
    if let Some(used) = outcome.end.cpu_time {
        let times = [used.user_ns, used.system_ns].map(|time| time.0 as f64);
        counts.extend(CPU_TIMES.map(str::to_owned).into_iter().zip(times));
    }
    for row in monitor.rows() {
        let name = row.event.event.name.clone();
        let count = row.best().ok_or_else(|| SweepError::NotCounted(name.clone()))?;
        counts.insert(name, count.value);
    }
    Ok(counts)
}
