//! Runs a command with many sizes, and keeps what each run took as workloads for a fit.

mod closures;
mod sweep;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::cost::{TIME, Workload, WorkloadFile, WorkloadHeader, sizes_in_words};
use crate::measure::{self, DefaultEvents, MeasureOptions, Measurement, watch};
use crate::names::shown;
use crate::run::MeasuredMachine;
use crate::session::{ChildIo, Launch, Needs};
use crate::sources::command::Exit;

pub use closures::{ClosureBench, PairedChange, paired, timer_latency};
pub use sweep::{SizeValue, SizeValues, Sizes, filled, order, points};

/// What is run.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// The name of the benchmark.
    pub name: String,
    /// The command; a size's name in braces stands for its value.
    pub command: Vec<String>,
    /// The sizes.
    pub sizes: Vec<SizeValues>,
    /// The events that are counted.
    pub events: Vec<String>,
    /// How often each set of sizes is measured, and how often it is run before that.
    pub repeats: usize,
    /// How often the command is run with each set of sizes before anything is kept.
    pub warmups: usize,
    /// What the order of runs is drawn by.
    pub seed: u64,
    /// Whether a run counts that ends with another exit code than 0.
    pub ignores_failure: bool,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub of: usize,
}

/// Why a sweep can't go on. What was measured is kept.
#[derive(Debug)]
pub enum SweepError {
    /// The command can't be measured.
    Measure(measure::Error),
    /// The command failed.
    Failed {
        /// The sizes, in words.
        sizes: String,
        /// How it ended.
        exit: String,
    },
    /// An event wasn't counted.
    NotCounted(String),
}

impl std::fmt::Display for SweepError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Measure(error) => error.fmt(f),
            Self::Failed { sizes, exit } => {
                write!(f, "the command {exit} at {sizes}: mend it, or count such runs as well (--ignore-failure)")
            }
            Self::NotCounted(event) => {
                write!(f, "{} could not be counted: leave it out, or see perfprop check", shown(event))
            }
        }
    }
}

impl std::error::Error for SweepError {}

/// A sweep, and how it ended.
#[derive(Debug)]
pub struct Swept {
    /// What was measured.
    pub file: WorkloadFile,
    /// Why it didn't come to its end.
    pub error: Option<SweepError>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Runs a sweep. `on_run` hears of each run that is done.
pub fn sweep(options: &SweepOptions, signals: &Receiver<i32>, on_run: &mut dyn FnMut(SweepProgress)) -> Swept {
    let points = points(&options.sizes);
    let workload = |sizes: &Sizes| Workload {
        sizes: sizes.iter().map(|(name, value)| (name.clone(), value.number)).collect(),
        samples: BTreeMap::new(),
        order: Vec::new(),
    };
    let header = WorkloadHeader {
        perfprop_workload: 1,
        name: options.name.clone(),
        sizes: options.sizes.iter().map(|size| size.name.clone()).collect(),
        command: options.command.clone(),
        machine: MeasuredMachine::this(),
        model: None,
    };
    let mut swept = Swept {
        file: WorkloadFile { header, workloads: points.iter().map(workload).collect() },
        error: None,
        signal: None,
    };
    let mut runs = order(points.len(), options.warmups, options.seed);
    let warmups = runs.len();
    runs.extend(order(points.len(), options.repeats, options.seed.wrapping_add(1)));
    for (done, &place) in runs.iter().enumerate() {
        match run(options, &points[place], signals) {
            Ok(Ran::Counted(counts)) if done >= warmups => {
                let workload = &mut swept.file.workloads[place];
                workload.order.push((done - warmups) as u32);
                counts.into_iter().for_each(|(name, count)| workload.samples.entry(name).or_default().push(count));
            }
            Ok(Ran::Counted(_)) => {}
            Ok(Ran::Signal(signal)) => {
                swept.signal = Some(signal);
                break;
            }
            Err(error) => {
                swept.error = Some(error);
                break;
            }
        }
        on_run(SweepProgress { done: done + 1, of: runs.len() });
    }
    swept.file.workloads.retain(|workload| !workload.samples.is_empty());
    swept
}

/// How a run ended.
enum Ran {
    /// The wall time in nanoseconds and the counts of events.
    Counted(Vec<(String, f64)>),
    /// By a signal to perfprop.
    Signal(i32),
}

/// No interval ends while a command of a sweep runs.
const INTERVAL: Duration = Duration::from_secs(3600);

fn run(options: &SweepOptions, sizes: &Sizes, signals: &Receiver<i32>) -> Result<Ran, SweepError> {
    let argv: Vec<OsString> = options.command.iter().map(|word| filled(word, sizes).into()).collect();
    let needs = if options.events.is_empty() { Needs::Nothing } else { Needs::All };
    let launch = Launch { needs, ..Launch::command(argv, ChildIo::Discard) };
    let measured = MeasureOptions {
        events: options.events.clone(),
        default_events: DefaultEvents::Nothing,
        ..MeasureOptions::default()
    };
    let mut quiet = |_: &str| {};
    let measurement = Measurement::new(&measured, launch, &mut quiet).map_err(SweepError::Measure)?;
    let (session, header) = measurement
        .start(measurement.period(Duration::from_millis(100)), INTERVAL, &mut quiet)
        .map_err(SweepError::Measure)?;
    let mut monitor = measurement.monitor(header);
    let outcome = watch::<measure::Error>(&session, signals, &mut monitor, |_, _| Ok(ControlFlow::Continue(())))
        .map_err(SweepError::Measure)?;
    if let Some(signal) = outcome.signal {
        return Ok(Ran::Signal(signal));
    }
    if let Some(exit) = outcome.end.exit.filter(|exit| *exit != Exit::Code(0) && !options.ignores_failure) {
        let numbers = sizes.iter().map(|(name, value)| (name.clone(), value.number)).collect();
        let exit = match exit {
            Exit::Code(code) => format!("ended with code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
        };
        return Err(SweepError::Failed { sizes: sizes_in_words(&numbers), exit });
    }
    let mut counts = vec![(TIME.to_owned(), outcome.end.at_ns.0 as f64)];
    for row in monitor.rows() {
        let name = row.event.event.name.clone();
        let count = row.best().ok_or_else(|| SweepError::NotCounted(name.clone()))?;
        counts.push((name, count.value));
    }
    Ok(Ran::Counted(counts))
}
