//! Exports a tree as a pprof profile, compressed with gzip.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::super::error::WriteError;
use super::super::options::{ProfileTimes, WriteOptions};
use super::super::timed::TimedRun;
use super::labels::{TaskAmounts, region_label};
use super::message::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use super::texts::Texts;
use crate::profile::{Amount, EventId, Frame, FrameId, SampleMeasure, Tree};
use crate::run::MeasuredTarget;

/// Writes all events of a tree: types are `calls/count` where calls were counted, then for each event
/// `samples/count` and its weight. Samples of a recording are labelled with their process, thread and regions.
pub(in crate::stack_formats) fn write(
    tree: &Tree,
    options: &WriteOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let profile = profile(tree, options).map_err(WriteError::TooLarge)?;
    let mut packed = GzEncoder::new(out, Compression::default());
    packed.write_all(&profile.encode_to_vec())?;
    Ok(packed.finish()?.flush()?)
}

/// One of the values that each sample has.
#[derive(Clone, Copy)]
enum SampleValue {
    Calls,
    Samples(EventId),
    Weight(EventId),
}

impl SampleValue {
    /// Of a path with so many calls, by what was counted of each event.
    fn of(self, calls: u64, amount: impl Fn(EventId) -> Amount) -> u64 {
        match self {
            Self::Calls => calls,
            Self::Samples(event) => amount(event).samples,
            Self::Weight(event) => amount(event).weight,
        }
    }
}

/// The profile, or what it has no room for: numbers have 63 bits there.
fn profile(tree: &Tree, options: &WriteOptions) -> Result<Profile, String> {
    let mut texts = Texts::new();
    let values = values(tree);
    let kind = |(_, name, unit): &(SampleValue, String, String), texts: &mut Texts| ValueType {
        r#type: texts.id(name),
        unit: texts.id(unit),
    };
    let sample_type = values.iter().map(|value| kind(value, &mut texts)).collect();
    let sample = samples(tree, options, &values, &mut texts)?;
    let used: HashSet<u64> = sample.iter().flat_map(|sample| &sample.location_id).copied().collect();
    let mut modules = ModuleIds::default();
    // Its readers take the first file for the program.
    if let Some(program) = options.run.as_ref().and_then(|run| program(run, tree)) {
        modules.id(program, None);
    }
    let mut functions = Functions::default();
    // Of a part of a recording, the tree has the frames of all of it.
    let places = tree.frames().zip(1..).filter(|(_, id)| used.contains(id));
    let location = places.map(|(frame, id)| place(&frame, id, &mut modules, &mut functions, &mut texts)).collect();
    let function = functions.all;
    let mapping = modules.mappings(&mut texts);
    let event = options.event(tree);
    let default_sample_type = event.map_or(0, |event| texts.id(&tree.event_of(event).name));
    let mut profile =
        Profile { sample_type, sample, mapping, location, function, default_sample_type, ..Profile::default() };
    match (&options.run, &options.times) {
        (Some(run), _) => tell_run(&mut profile, run, tree, event, &mut texts),
        (None, Some(times)) => tell_times(&mut profile, times, &mut texts),
        (None, None) => {}
    }
    profile.string_table = texts.table;
    Ok(profile)
}

/// The file of the command that was measured, by its name.
fn program<'a>(run: &TimedRun, tree: &'a Tree) -> Option<&'a str> {
    let MeasuredTarget::Command { argv, .. } = &run.header.target else { return None };
    let name = argv.first()?.rsplit('/').next()?;
    tree.frames().map(|frame| frame.module).find(|module| module.rsplit('/').next() == Some(name))
}

/// What is known of the times of a run. Numbers that aren't known are 0 in this format.
fn tell_run(profile: &mut Profile, run: &TimedRun, tree: &Tree, event: Option<EventId>, texts: &mut Texts) {
    let started = Some(run.header.started).filter(|started| *started > 0.0);
    let nanos = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
    profile.time_nanos = started.map_or(0, |started| ((started * 1e9) as i64).saturating_add(nanos(run.range.from.0)));
    profile.duration_nanos = nanos((run.range.to - run.range.from).0);
    if let Some((event, period)) = event.and_then(|event| Some((event, run.period(tree, event)?))) {
        let event = tree.event_of(event);
        profile.period_type = Some(ValueType { r#type: texts.id(&event.name), unit: texts.id(event.unit()) });
        profile.period = nanos(period);
    }
}

/// The times of the profile that was read.
fn tell_times(profile: &mut Profile, times: &ProfileTimes, texts: &mut Texts) {
    (profile.time_nanos, profile.duration_nanos) = (times.time_nanos, times.duration_nanos);
    profile.period = times.period;
    let kind = |(name, unit): &(String, String)| ValueType { r#type: texts.id(name), unit: texts.id(unit) };
    profile.period_type = times.period_type.as_ref().map(kind);
}

/// The samples of all paths, or what is too large in them.
fn samples(
    tree: &Tree,
    options: &WriteOptions,
    values: &[(SampleValue, String, String)],
    texts: &mut Texts,
) -> Result<Vec<Sample>, String> {
    let by_task = options.run.as_ref().map(|run| TaskAmounts::of(run, tree));
    let (mut samples, mut too_large) = (Vec::new(), None);
    let mut add = |path: &[FrameId], calls: u64, amount: &dyn Fn(EventId) -> Amount, label: Vec<Label>| {
        let numbers: Vec<u64> = values.iter().map(|(value, ..)| value.of(calls, amount)).collect();
        if numbers.iter().all(|&number| number == 0) {
            return;
        }
        let place = numbers.iter().position(|&number| i64::try_from(number).is_err());
        too_large = too_large.take().or(place.map(|place| values[place].1.clone()));
        let value = numbers.into_iter().map(u64::cast_signed).collect();
        // The root stands above everything, and alone only for what was counted on itself.
        let below = if path.len() > 1 { &path[1..] } else { path };
        let location_id = below.iter().rev().map(|&frame| number(frame)).collect();
        samples.push(Sample { location_id, value, label });
    };
    tree.sequences(|path, node| {
        let Some(by_task) = &by_task else {
            return add(path, node.calls(), &|event| node.amount(event), Vec::new());
        };
        let region = region_label(tree, path, texts);
        // What wasn't sampled: calls, and what regions or a model counted.
        let rest = |event| if by_task.events.contains(&event) { Amount::ZERO } else { node.amount(event) };
        add(path, node.calls(), &rest, region.iter().copied().collect());
        for (task, amounts) in by_task.at(node.id()) {
            let labels = by_task.labels(task, texts).into_iter().chain(region).collect();
            add(path, 0, &|event| amounts[event.index()], labels);
        }
    });
    too_large.map_or(Ok(samples), Err)
}

fn values(tree: &Tree) -> Vec<(SampleValue, String, String)> {
    let value = |value, name: &str, unit: &str| (value, name.to_owned(), unit.to_owned());
    let mut values = Vec::new();
    if tree.has_calls() {
        values.push(value(SampleValue::Calls, "calls", "count"));
    }
    let is_alone = tree.event_ids().count() == 1;
    for id in tree.event_ids() {
        let event = tree.event_of(id);
        let samples = if is_alone { "samples".into() } else { format!("{}-samples", event.name) };
        match &event.measure {
            SampleMeasure::Samples => values.push(value(SampleValue::Samples(id), &event.name, "count")),
            SampleMeasure::Weighted(unit) => {
                values.push(value(SampleValue::Samples(id), &samples, "count"));
                values.push(value(SampleValue::Weight(id), &event.name, unit));
            }
            SampleMeasure::Sum(_) | SampleMeasure::Timed | SampleMeasure::Counted(_) => {
                values.push(value(SampleValue::Weight(id), &event.name, event.unit()));
            }
        }
    }
    values
}

fn number(frame: FrameId) -> u64 {
    frame.index() as u64 + 1
}

/// The functions of a file: frames may be several lines of one.
#[derive(Default)]
struct Functions {
    all: Vec<Function>,
    /// By name, file and module.
    ids: HashMap<(i64, i64, u64), u64>,
}

/// A location for a frame, with this number, and its function.
fn place<'a>(
    frame: &Frame<'a>,
    id: u64,
    modules: &mut ModuleIds<'a>,
    functions: &mut Functions,
    texts: &mut Texts,
) -> Location {
    let mapping_id = modules.id(frame.module, frame.offset);
    let name = texts.id(frame.name);
    let filename = texts.id(frame.file);
    let line = i64::from(frame.line.map_or(0, std::num::NonZeroU32::get));
    let next = functions.all.len() as u64 + 1;
    let function_id = *functions.ids.entry((name, filename, mapping_id)).or_insert(next);
    if function_id == next {
        functions.all.push(Function { id: next, name, system_name: name, filename, start_line: 0 });
    }
    let address = frame.offset.filter(|_| mapping_id > 0).unwrap_or(0);
    Location { id, mapping_id, address, line: vec![Line { function_id, line }] }
}

/// The modules of a file, numbered from 1; 0 is none. Addresses are offsets in the module's file, as if each were mapped from its
/// beginning on at address 0: a recording has no others.
#[derive(Default)]
struct ModuleIds<'a> {
    /// With the end of what is known of each.
    all: Vec<(&'a str, u64)>,
    ids: HashMap<&'a str, u64>,
}

impl<'a> ModuleIds<'a> {
    fn id(&mut self, module: &'a str, offset: Option<u64>) -> u64 {
        if module.is_empty() {
            return 0;
        }
        let id = *self.ids.entry(module).or_insert_with(|| {
            self.all.push((module, 0));
            self.all.len() as u64
        });
        if let (Some(offset), Some((_, end))) = (offset, self.all.get_mut(id as usize - 1)) {
            *end = (*end).max(offset.saturating_add(1));
        }
        id
    }

    fn mappings(&self, texts: &mut Texts) -> Vec<Mapping> {
        let mapping = |((module, end), id): (&(&str, u64), u64)| Mapping {
            id,
            memory_limit: end.checked_next_multiple_of(PAGE).unwrap_or(*end),
            filename: texts.id(module),
            has_functions: true,
            ..Mapping::default()
        };
        self.all.iter().zip(1..).map(mapping).collect()
    }
}

/// Mappings end with a page.
const PAGE: u64 = 4096;
