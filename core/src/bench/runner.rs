//! Runs one command, and measures what it took.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use crossbeam_channel::Receiver;

use super::SweepError;
use crate::cost::TIME;
use crate::measure::{self, DefaultEvents, MeasureOptions, Measurement, watch};
use crate::session::{CaughtSignal, ChildIo, CommandLine, Launch, Needs};
use crate::sources::Counter;
use crate::sources::command::Exit;

/// The CPU time of a run in user space and in the kernel, beside whatever is counted.
pub const CPU_TIMES: [&str; 2] = ["user_time", "system_time"];

/// Measures commands, one after the other, with the same events.
#[derive(Debug)]
pub struct Runner {
    measurement: Measurement,
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
    /// By a signal to perfprop.
    Interrupted(i32),
}

/// No interval ends while a command of a sweep runs.
const INTERVAL: Duration = Duration::from_secs(3600);

const PERIOD: Duration = Duration::from_millis(100);

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
        Ok(Self { measurement })
    }

    /// The names of the events that are counted.
    pub fn events(&self) -> Vec<String> {
        self.measurement.plan.events.iter().map(|event| event.name.clone()).collect()
    }

    /// Runs a command in a folder, perfprop's own if there is none, until it ends or a signal arrives.
    ///
    /// # Errors
    /// Returns why it can't be started, or an event wasn't counted.
    pub fn run(
        &mut self,
        argv: &[String],
        folder: Option<&Path>,
        signals: &Receiver<CaughtSignal>,
    ) -> Result<Ran, SweepError> {
        let argv = argv.iter().map(OsString::from).collect();
        self.measurement.launch.command =
            Some(CommandLine { argv, folder: folder.map(Path::to_owned), io: ChildIo::Discard });
        let period = self.measurement.period(PERIOD);
        let (session, header) = self.measurement.start(period, INTERVAL, &mut |_| {}).map_err(SweepError::Measure)?;
        let mut monitor = self.measurement.monitor(header);
        let outcome = watch::<measure::Error>(&session, signals, &mut monitor, |_, _| Ok(ControlFlow::Continue(())))
            .map_err(SweepError::Measure)?;
        if let Some(signal) = outcome.signal {
            return Ok(Ran::Interrupted(signal));
        }
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
        Ok(Ran::Whole { counts, exit: outcome.end.exit.unwrap_or(Exit::Code(0)) })
    }
}
