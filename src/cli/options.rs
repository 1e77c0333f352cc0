//! Makes options of a measurement from arguments.

use super::Error;
use super::args::{Corrections, Counting, Events, ScheduleName, SourceName, Stacks, Target};
use crate::events::{Merge, Space};
use crate::measure::{MeasureOptions, RelationOptions, ScheduleOption, StackOptions};
use crate::metrics::MeasuredScope;
use crate::names::shown;
use crate::sources::{Counter, emulate};

/// The options of a verb that measures, without call stacks.
pub(super) fn measure_options(events: &Events, target: &Target) -> Result<MeasureOptions, Error> {
    Ok(MeasureOptions {
        events: events.events.clone(),
        metrics: events.metrics.clone(),
        metric_no_group: events.metric_no_group,
        space: match (events.all_user, events.all_kernel) {
            (false, false) => None,
            (true, _) => Some(Space::User),
            (false, true) => Some(Space::Kernel),
        },
        scope: if target.all_cpus { MeasuredScope::Whole } else { MeasuredScope::Part },
        merge: if events.no_merge { Merge::Nothing } else { Merge::Units },
        event_tables: events.event_tables.clone(),
        counter: counter(&events.counting)?,
        counters: events.counting.counters.map(usize::from),
        schedule: schedule(events)?,
        relations: relations(&events.corrections),
        estimator: events.corrections.estimator,
        learnt: events.corrections.learnt.clone(),
        confidence: events.corrections.confidence,
        ..MeasureOptions::default()
    })
}

/// The relation files that options name.
pub(super) fn relations(corrections: &Corrections) -> RelationOptions {
    RelationOptions { files: corrections.relations.clone(), is_lenient: corrections.relations_lenient }
}

/// What is to count.
fn counter(counting: &Counting) -> Result<Counter, Error> {
    match (counting.source, &counting.model) {
        (SourceName::Perf, None) => Ok(Counter::Kernel),
        (SourceName::Perf, Some(_)) => Err(Error::Usage("--model is about --source emulate".into())),
        (SourceName::Emulate, None) => Ok(Counter::Model(emulate::CacheModel::default())),
        (SourceName::Emulate, Some(text)) => {
            let wrong = |error: String| Error::Usage(format!("--model: {}", shown(&error)));
            emulate::CacheModel::parse(text).map(Counter::Model).map_err(wrong)
        }
    }
}

/// Who rotates the groups of events.
fn schedule(events: &Events) -> Result<ScheduleOption, Error> {
    let Events { turns, counting, .. } = events;
    let usage = |text: &str| Err(Error::Usage(text.to_owned()));
    let is_asked = turns.mux.is_some() || turns.schedule != ScheduleName::Auto;
    match (turns.schedule, turns.mux) {
        _ if is_asked && counting.source == SourceName::Emulate => {
            usage("--schedule and --mux are about the counters of this machine: --source emulate has no turns")
        }
        _ if is_asked && counting.counters.is_some() => {
            usage("--counters gives turns of its own: --schedule and --mux have no meaning there")
        }
        (ScheduleName::User, Some(_)) => usage("--mux is about the kernel's turns: leave it out, or --schedule user"),
        (_, Some(milliseconds)) => Ok(ScheduleOption::KernelEvery { milliseconds }),
        (ScheduleName::Auto, None) => Ok(ScheduleOption::Auto),
        (ScheduleName::Kernel, None) => Ok(ScheduleOption::Kernel),
        (ScheduleName::User, None) => Ok(ScheduleOption::User),
    }
}

/// Whether and how call stacks are sampled.
pub(super) fn stacks(args: &Stacks) -> Result<Option<StackOptions>, Error> {
    let (method, rate) = (args.call_graph, args.rate());
    match (args.frame_pointers || method.is_some(), rate) {
        (true, rate) => Ok(Some(StackOptions { method, rate })),
        (false, Some(_)) => {
            let how = "add -g, or --call-graph dwarf for programs without frame pointers";
            Err(Error::Usage(format!("-F and -c say how often call stacks are sampled: {how}")))
        }
        (false, None) => Ok(None),
    }
}
