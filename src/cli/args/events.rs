//! Defines the arguments of what is counted, by what, in whose turns.

use super::whole_number;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{CorrectionArgs, TargetArgs};
use crate::cli::Error;
use crate::events::{Merge, Space};
use crate::measure::MeasureOptions;
use crate::metrics::MeasuredScope;
use crate::names::shown;
use crate::session::Schedule;
use crate::sources::{Counter, emulate};

/// What to count.
#[derive(Debug, Args)]
#[command(next_help_heading = "Events")]
pub(crate) struct EventArgs {
    /// Events to count, named as in perf: `name`, `name:u`, `{a,b}`, tracepoints, raw codes, presets; repeatable
    #[arg(short, long = "event", alias = "events", value_name = "EVENTS")]
    pub(crate) events: Vec<String>,
    /// Metrics to compute, such as IPC, by name, pattern or group; their events are counted; repeatable
    #[arg(short = 'M', long = "metrics", value_name = "METRICS")]
    pub(crate) metrics: Vec<String>,
    /// Don't keep the events of a metric in one group
    #[arg(long, requires = "metrics")]
    pub(crate) metric_no_group: bool,
    /// Count all events in user space only, as with `:u`
    #[arg(long, conflicts_with = "all_kernel")]
    pub(crate) all_user: bool,
    /// Count all events in the kernel only, as with `:k`
    #[arg(long)]
    pub(crate) all_kernel: bool,
    /// Show an event of several like units (`uncore_imc_0`, `uncore_imc_1`) per unit, not as their sum
    #[arg(long)]
    pub(crate) no_merge: bool,
    /// The vendor's event tables: perf's folder pmu-events, or one CPU's folder of JSON files
    #[arg(long, value_name = "DIR")]
    pub(crate) event_tables: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) counting: CountingArgs,
    #[command(flatten)]
    pub(crate) corrections: CorrectionArgs,
}

/// This machine or a model.
#[derive(Debug, Args)]
pub(crate) struct CounterArgs {
    /// What counts: this machine's counters, or a model of a CPU in valgrind, which needs no hardware counters
    #[arg(long, value_name = "NAME", default_value = "perf", help_heading = "Counters")]
    pub(crate) source: SourceName,
    /// The caches of the model as size, associativity and line size: `i1=32k,8,64,d1=32k,8,64,ll=8m,16,64`
    #[arg(long, value_name = "CACHES", help_heading = "Counters")]
    pub(crate) model: Option<String>,
}

/// What is counted of each run beside its time, and where it runs.
#[cfg(feature = "bench")]
#[derive(Debug, Args)]
pub(crate) struct BesideTimeArgs {
    /// Events that are counted beside the time
    #[arg(short, long = "event", alias = "events", value_name = "EVENTS")]
    pub(crate) events: Vec<String>,
    #[command(flatten)]
    pub(crate) by: CounterArgs,
    /// Keep the commands on this CPU
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu_affinity: Option<u32>,
}

/// Who counts, and how groups take turns, where there are more than counters.
#[derive(Debug, Args)]
pub(crate) struct CountingArgs {
    #[command(flatten)]
    pub(crate) by: CounterArgs,
    /// Let all events share this many counters, and count the truth as well, to see the error of multiplexing
    #[arg(long, value_name = "K", value_parser = whole_number::<u16>(1..), help_heading = "Counters")]
    pub(crate) counters: Option<u16>,
    /// Who rotates the groups of events on the counters
    #[arg(long, value_name = "WHO", default_value = "auto", help_heading = "Counters")]
    pub(crate) schedule: ScheduleName,
    /// Set the kernel's rotation interval to so many milliseconds, as root; it is restored afterwards, even after a
    /// kill
    #[arg(long, value_name = "MS", value_parser = whole_number::<u32>(1..=1000), help_heading = "Counters")]
    pub(crate) mux: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleName {
    /// perfprop where that costs at most 1 % of a CPU, else the kernel
    Auto,
    /// The kernel, by its timer, every 4 ms unless `--mux` changes that
    Kernel,
    /// perfprop, every 2 ms, and less often where that costs more than 1 % of a CPU
    User,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SourceName {
    /// The counters of this machine, by perf_event_open
    Perf,
    /// valgrind's model of caches and branch prediction
    Emulate,
}

impl EventArgs {
    /// The options of a verb that measures, without call stacks.
    pub(crate) fn options(&self, target: &TargetArgs) -> Result<MeasureOptions, Error> {
        Ok(MeasureOptions {
            events: self.events.clone(),
            metrics: self.metrics.clone(),
            metric_no_group: self.metric_no_group,
            space: match (self.all_user, self.all_kernel) {
                (false, false) => None,
                (true, _) => Some(Space::User),
                (false, true) => Some(Space::Kernel),
            },
            scope: if target.is_whole_machine() { MeasuredScope::Whole } else { MeasuredScope::Part },
            merge: if self.no_merge { Merge::Nothing } else { Merge::Units },
            event_tables: self.event_tables.clone(),
            ..self.counting.options(&self.corrections)?
        })
    }
}

impl CountingArgs {
    /// The options that say how events are counted and estimated, whatever they are.
    pub(crate) fn options(&self, corrections: &CorrectionArgs) -> Result<MeasureOptions, Error> {
        Ok(MeasureOptions {
            counter: self.by.counter()?,
            counters: self.counters.map(usize::from),
            schedule: self.schedule()?,
            relations: corrections.relations(),
            estimator: corrections.estimator,
            learnt: corrections.learnt()?,
            confidence: corrections.confidence,
            ..MeasureOptions::default()
        })
    }

    /// Whether a rotation is asked for.
    pub(crate) fn has_rotation(&self) -> bool {
        self.mux.is_some() || self.schedule != ScheduleName::Auto
    }

    /// Who rotates the groups of events.
    fn schedule(&self) -> Result<Schedule, Error> {
        let usage = |text: &str| Err(Error::Usage(text.to_owned()));
        let is_asked = self.has_rotation();
        match (self.schedule, self.mux) {
            _ if is_asked && self.by.source == SourceName::Emulate => {
                usage("--schedule and --mux are about the counters of this machine: --source emulate has no slices")
            }
            _ if is_asked && self.counters.is_some() => {
                usage("--counters has slices of its own: --schedule and --mux have no meaning there")
            }
            (ScheduleName::User, Some(_)) => {
                usage("--mux is about the kernel's slices: leave it out, or --schedule user")
            }
            (_, Some(milliseconds)) => Ok(Schedule::KernelEvery { milliseconds }),
            (ScheduleName::Auto, None) => Ok(Schedule::Auto),
            (ScheduleName::Kernel, None) => Ok(Schedule::Kernel),
            (ScheduleName::User, None) => Ok(Schedule::User),
        }
    }
}

impl CounterArgs {
    /// What is to count.
    pub(crate) fn counter(&self) -> Result<Counter, Error> {
        match (self.source, &self.model) {
            (SourceName::Perf, None) => Ok(Counter::Kernel),
            (SourceName::Perf, Some(_)) => Err(Error::Usage("--model is about --source emulate".into())),
            (SourceName::Emulate, None) => Ok(Counter::Model(emulate::CacheModel::default())),
            (SourceName::Emulate, Some(text)) => {
                let wrong = |error: String| Error::Usage(format!("--model: {}", shown(&error)));
                emulate::CacheModel::parse(text).map(Counter::Model).map_err(wrong)
            }
        }
    }
}
