//! Measures a command, what runs already, or a whole machine: from options as data to a monitor and an outcome.
//!
//! [`Measurement::new`] resolves the events, plans their groups, loads relations and chooses the estimator.
//! [`Measurement::start`] opens the counters and starts the command. [`run()`] hands on what is read; [`watch`] feeds a
//! [`Monitor`] with it. [`Measurement::run`] does it all, as the first example of [this library](crate) shows.
//!
//! What a user should know and is no error is passed to a `note` function, one note a call.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use crossbeam_channel::never;

use crate::estimate::EstimatorKind;
use crate::events::{EventKind, Machine, Merge, Resolver, Space};
use crate::metrics::{Facts, MeasuredScope};
use crate::monitor::Monitor;
use crate::plan::{KERNEL_SLICE, Plan};
use crate::rates::Confidence;
use crate::run::{End, Header, MetricFormula};
use crate::session::{Launch, Schedule, Session};
use crate::sources::perf::{self, Split};
use crate::sources::{Counter, RecordedRound, Status, emulate};

mod command;
mod denied;
mod error;
mod estimation;
pub mod metrics;
pub mod misspelt;
mod modelled;
mod partial;
mod plan;
mod refused;
mod region_events;
mod relations;
mod resolver;
mod rotation;
mod run;
#[cfg(feature = "stacks")]
mod sampling;
mod start;

pub use command::check_command;
pub use denied::DenialWords;
pub use error::{Error, system};
pub use estimation::{Estimation, learnt_of_parts, monitor};
pub use modelled::{ModelledNames, modelled_events, modelled_metrics};
pub use partial::note_partial;
pub use plan::DefaultEvents;
pub use relations::{LoadedRelations, RelationOptions, recorded_relations};
pub use resolver::{can_count, resolver};
pub use run::{
    BATCH, BatchChannels, Delivery, EndedBy, RunEvent, RunOutcome, WatchEvent, close, end_within, pending_end, run,
    watch, watch_rounds,
};
#[cfg(feature = "stacks")]
pub use sampling::{OVERVIEW_FREQUENCIES, OffCpuTime, SampleRate, StackOptions, StackPurpose};

/// Rounds under the intervals of screens and texts come at least this often.
const LONGEST_PERIOD: Duration = Duration::from_millis(100);

/// What to measure, and how numbers are estimated.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// Events as `perf` names them; one text may hold several: `a,b`, `{a,b}`, `a:u`.
    pub events: Vec<String>,
    /// What is counted where neither events nor metrics are named.
    pub default_events: DefaultEvents,
    /// Events that are counted besides, behind the named ones or those of the default.
    pub further_events: Vec<String>,
    /// Metrics by name, pattern or group.
    pub metrics: Vec<String>,
    /// Whether the events of a metric are left out of groups.
    pub metric_no_group: bool,
    /// Where all events are counted; in both user space and the kernel, or as each event says, where `None`.
    pub space: Option<Space>,
    /// Whether an event of several like units is counted as their sum.
    pub merge: Merge,
    /// How much of the machine is measured, which metrics may ask for.
    pub scope: MeasuredScope,
    /// A folder of vendors' event tables.
    pub event_tables: Option<PathBuf>,
    /// What counts: the kernel, or a model.
    pub counter: Counter,
    /// How many events are counted at once, if fewer than can be; the truth is then counted beside.
    pub counters: Option<usize>,
    /// Who rotates the groups.
    pub schedule: Schedule,
    /// Which relation files are used.
    pub relations: RelationOptions,
    /// How counts are estimated; where `None`, by what gives the least errors of those that are known.
    pub estimator: Option<EstimatorKind>,
    /// A file of what earlier runs of the program taught [`EstimatorKind::Gp`].
    pub learnt: Option<PathBuf>,
    /// Confidence level of all intervals.
    pub confidence: Confidence,
    /// How call stacks are sampled; not at all where `None`.
    #[cfg(feature = "stacks")]
    pub stacks: Option<StackOptions>,
}

impl Default for MeasureOptions {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            default_events: DefaultEvents::default(),
            further_events: Vec::new(),
            metrics: Vec::new(),
            metric_no_group: false,
            space: None,
            merge: Merge::Units,
            scope: MeasuredScope::Part,
            event_tables: None,
            counter: Counter::default(),
            counters: None,
            schedule: Schedule::default(),
            relations: RelationOptions::default(),
            estimator: None,
            learnt: None,
            confidence: Confidence::default(),
            #[cfg(feature = "stacks")]
            stacks: None,
        }
    }
}

/// A measurement that is ready to start, as often as is wanted.
#[derive(Debug)]
pub struct Measurement {
    /// Which events are counted, in which groups.
    pub plan: Plan,
    /// The command and the target, with what counts, who rotates, and which stacks are sampled.
    pub launch: Launch,
    /// The relations that correct counts, and their files.
    pub relations: LoadedRelations,
    /// The estimator and its options.
    pub estimation: Estimation,
    /// Metrics that are computed of the events.
    pub metrics: Vec<MetricFormula>,
    /// Notes about the relations, for screens that hide what was printed before.
    pub notes: Vec<String>,
}

impl Measurement {
    /// Resolves the events and metrics, plans their groups, reads relations and what was learnt. Of `launch` the target
    /// is taken; what counts, who rotates and what is sampled are set from the options. Nothing is started.
    ///
    /// # Errors
    /// When the options can't be met: unknown events or metrics, groups that don't fit on the counters, wrong files.
    pub fn new(options: &MeasureOptions, launch: Launch, note: &mut dyn FnMut(&str)) -> Result<Self, Error> {
        let resolver = resolver_of(options)?;
        if let Some(list) = &launch.region_events {
            region_events::check(list, &self::resolver(options.event_tables.as_deref())?)?;
        }
        let mut relations = LoadedRelations::read(&options.relations, note)?;
        let catalog = metrics::catalog(&relations.metrics, resolver.tables(), note)?;
        let facts = Facts::new(&resolver, options.scope);
        let request = metrics::request(&options.metrics, &catalog, &facts, options.metric_no_group, note)?;
        relations.expand(&catalog, &facts)?;
        let groups = plan::groups(&resolver, options, &request, note)?;
        let plan = plan::plan(&resolver, groups, &request, options.counters, &relations.all)?;
        let rotating_pmus = rotation::pmus(options.schedule, &plan, &resolver)?;
        let estimation = Estimation::of_options(options, &plan.events, note)?;
        if estimation.learnt.is_some() && launch.split != Split::Sum {
            return Err(learnt_of_parts());
        }
        let notes = misspelt::misspelt(&relations.all, &plan.events, &resolver);
        notes.iter().for_each(|text| note(text));
        let launch = Launch {
            counter: options.counter.clone(),
            counters: options.counters,
            schedule: options.schedule,
            rotating_pmus,
            #[cfg(feature = "stacks")]
            stacks: sampling::request(options, launch.target.as_ref(), &plan, note)?,
            ..launch
        };
        Ok(Self { metrics: request.recorded(&plan), plan, launch, relations, estimation, notes })
    }

    /// The time between rounds for intervals of this length: so that whole rounds make an interval. Where events are
    /// multiplexed and `gp` learns how they vary together, a round comes in each slice of the kernel.
    pub fn period(&self, interval: Duration) -> Duration {
        let is_multiplexed = self.launch.counters.is_some() || self.plan.rotates() && self.has_counters();
        let learns = self.estimation.kind == EstimatorKind::Gp && is_multiplexed;
        let longest = if learns { KERNEL_SLICE } else { LONGEST_PERIOD };
        let rounds = interval.as_nanos().div_ceil(longest.as_nanos()).max(1);
        interval / u32::try_from(rounds).unwrap_or(u32::MAX)
    }

    /// Whether this machine counts any event that takes a counter: many virtual machines count none.
    fn has_counters(&self) -> bool {
        self.plan.events.iter().any(|event| match event.kind {
            EventKind::Hardware | EventKind::Cache => perf::probe(event) != Status::NotSupported,
            _ => !event.kind.is_software(),
        })
    }

    /// The time between rounds where nothing is shown but intervals: rounds within them say how far scaled counts may
    /// be off, and software events are never scaled.
    pub fn period_of_texts(&self, interval: Duration) -> Duration {
        let is_scaled =
            self.launch.counters.is_some() || self.plan.events.iter().any(|event| !event.kind.is_software());
        if is_scaled { self.period(interval) } else { interval }
    }

    /// Starts measuring, and describes it. Rounds come every `period`; numbers are shown every `interval`.
    ///
    /// # Errors
    /// When the counters can't be opened or the command can't be started. Nothing is left running then.
    pub fn start(
        &self,
        period: Duration,
        interval: Duration,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Session, Header), Error> {
        start::start(self, period, interval, note)
    }

    /// Begins to sample the call stacks of a session that counts already, as this measurement of the same target asks
    /// for; none where it asks for none.
    ///
    /// # Errors
    /// When nothing can be sampled; counting goes on.
    #[cfg(feature = "stacks")]
    pub fn begin_stacks(&self, session: &mut Session, note: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let Some(wanted) = &self.launch.stacks else { return Ok(()) };
        session
            .begin_stacks(wanted, &self.launch)
            .map_err(|error| refused::refused(error, &self.plan, &self.launch))?;
        session.stacks().inspect(|stacks| sampling::note_unsampled(stacks, note));
        Ok(())
    }

    /// Whether stacks are sampled for an overview alone.
    #[cfg(feature = "stacks")]
    pub fn samples_overview(&self) -> bool {
        self.launch.stacks.as_ref().is_some_and(|stacks| stacks.need == crate::stacks::live::StackNeed::IfPossible)
    }

    /// A monitor of a run of this measurement.
    pub fn monitor(&self, header: Header) -> Monitor {
        monitor(header, self.relations.all.clone(), self.estimation.clone())
    }

    /// A monitor of a run that is over, for its rounds once more: intervals are estimated with the whole run known.
    pub fn knowing_whole_run(&self, header: &Header, rounds: &[RecordedRound], end: &End) -> Monitor {
        let relations = &self.relations.all;
        let estimation = self.estimation.clone().with_whole_run(header, relations, rounds, end.clone());
        monitor(header.clone(), relations.clone(), estimation).without_history()
    }

    /// Measures from the start to the end of the command or of the time, and returns all that was measured.
    ///
    /// # Errors
    /// As for [`Measurement::start`].
    pub fn run(&self, interval: Duration, note: &mut dyn FnMut(&str)) -> Result<(Monitor, RunOutcome), Error> {
        let (session, header) = self.start(self.period(interval), interval, note)?;
        note_partial(&header, note);
        let mut monitor = self.monitor(header);
        let outcome = watch::<Error>(&session, &never(), &mut monitor, |_, _| Ok(ControlFlow::Continue(())))?;
        Ok((monitor, outcome))
    }
}

/// A resolver of the events of what counts, in the space that the options choose.
fn resolver_of(options: &MeasureOptions) -> Result<Resolver, Error> {
    let resolver = match options.counter {
        Counter::Kernel => resolver(options.event_tables.as_deref())?,
        Counter::Model(_) if emulate::find().is_none() => return Err(Error::NoValgrind),
        Counter::Model(_) => Resolver::new(Machine::emulated()),
    };
    let resolver = resolver.merging(options.merge);
    Ok(match options.space {
        Some(space) => resolver.only_in(space),
        None => resolver,
    })
}
