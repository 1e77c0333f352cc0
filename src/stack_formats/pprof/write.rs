//! Exports a tree as a pprof profile, compressed with gzip.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::super::error::WriteError;
use super::message::{Function, Line, Location, Mapping, Profile, Sample, ValueType};
use crate::profile::{EventId, Frame, FrameId, NodeRef, SampleMeasure, Tree};

/// Writes all events of a tree: types are `calls/count` where calls were counted, then for each event
/// `samples/count` and its weight.
pub(in crate::stack_formats) fn write(
    tree: &Tree,
    default: Option<EventId>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let profile = profile(tree, default).map_err(WriteError::TooLarge)?;
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
    fn of(self, node: &NodeRef<'_>) -> u64 {
        match self {
            Self::Calls => node.calls(),
            Self::Samples(event) => node.samples(event),
            Self::Weight(event) => node.weight(event),
        }
    }
}

/// The profile, or what it has no room for: numbers have 63 bits there.
fn profile(tree: &Tree, default: Option<EventId>) -> Result<Profile, String> {
    let mut texts = Texts::new();
    let values = values(tree);
    let kind = |(_, name, unit): &(SampleValue, String, String), texts: &mut Texts| ValueType {
        r#type: texts.id(name),
        unit: texts.id(unit),
    };
    let sample_type = values.iter().map(|value| kind(value, &mut texts)).collect();
    let mut modules = ModuleIds::default();
    let mut functions = Functions::default();
    let places = tree.frames().zip(1..);
    let location = places.map(|(frame, id)| place(&frame, id, &mut modules, &mut functions, &mut texts)).collect();
    let function = functions.all;
    let mapping = modules.all.iter().enumerate().map(|(index, module)| Mapping {
        id: index as u64 + 1,
        filename: texts.id(module),
        has_functions: true,
        ..Mapping::default()
    });
    let mapping = mapping.collect();
    let mut sample = Vec::new();
    let mut too_large = None;
    tree.sequences(|path, node| {
        let numbers: Vec<u64> = values.iter().map(|(value, ..)| value.of(&node)).collect();
        if numbers.iter().all(|&number| number == 0) {
            return;
        }
        let place = numbers.iter().position(|&number| i64::try_from(number).is_err());
        too_large = too_large.take().or(place.map(|place| values[place].1.clone()));
        let value = numbers.into_iter().map(u64::cast_signed).collect();
        // The root stands above everything, and alone only for what was counted on itself.
        let below = if path.len() > 1 { &path[1..] } else { path };
        let location_id = below.iter().rev().map(|&frame| number(frame)).collect();
        sample.push(Sample { location_id, value, label: Vec::new() });
    });
    if let Some(name) = too_large {
        return Err(name);
    }
    let default_sample_type = default.map_or(0, |event| texts.id(&tree.event_of(event).name));
    Ok(Profile {
        sample_type,
        sample,
        mapping,
        location,
        function,
        string_table: texts.table,
        default_sample_type,
        ..Profile::default()
    })
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
    let mapping_id = modules.id(frame.module);
    let name = texts.id(frame.name);
    let filename = texts.id(frame.file);
    let line = i64::from(frame.line.map_or(0, std::num::NonZeroU32::get));
    let next = functions.all.len() as u64 + 1;
    let function_id = *functions.ids.entry((name, filename, mapping_id)).or_insert(next);
    if function_id == next {
        functions.all.push(Function { id: next, name, system_name: name, filename, start_line: 0 });
    }
    Location { id, mapping_id, address: 0, line: vec![Line { function_id, line }] }
}

/// The modules of a file, numbered from 1; 0 is none.
#[derive(Default)]
struct ModuleIds<'a> {
    all: Vec<&'a str>,
    ids: HashMap<&'a str, u64>,
}

impl<'a> ModuleIds<'a> {
    fn id(&mut self, module: &'a str) -> u64 {
        if module.is_empty() {
            return 0;
        }
        *self.ids.entry(module).or_insert_with(|| {
            self.all.push(module);
            self.all.len() as u64
        })
    }
}

/// The table of strings; its first is empty.
struct Texts {
    table: Vec<Vec<u8>>,
    ids: HashMap<Vec<u8>, i64>,
}

impl Texts {
    fn new() -> Self {
        Self { table: vec![Vec::new()], ids: HashMap::from([(Vec::new(), 0)]) }
    }

    fn id(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.ids.get(text.as_bytes()) {
            return id;
        }
        let id = self.table.len() as i64;
        self.table.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }
}
