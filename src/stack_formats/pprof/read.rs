//! Imports a pprof profile into a tree.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::num::NonZeroU32;

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use rustc_hash::FxBuildHasher;

use super::message::{Function, Location, Mapping, Profile, Sample, ValueType};
use crate::profile::{Amount, EventId, Frame, FrameId, ProfileEvent, SampleMeasure, Tree};
use crate::stack_formats::error::{Fault, FaultKind};
use crate::stack_formats::options::{EventSelection, ProfileTimes, ReadOptions};
use crate::stack_formats::packed::unpacked;
use crate::stack_formats::selection::EventSelector;

/// How large a profile may be.
struct Limits {
    /// Unpacked, in bytes.
    unpacked: u64,
    /// Once it is decoded, in bytes.
    decoded: u64,
}

/// A day of samples of a large service has a tenth of this. A packed profile can be a thousandth of what it unpacks to;
/// of what is written in two bytes, a sample without anything in it, 72 are made.
const LIMITS: Limits = Limits { unpacked: 256 << 20, decoded: 2 << 30 };

/// How many types of samples a profile may have; those of Go have four, others a dozen.
const MOST_TYPES: usize = 1000;

/// What a message or a text takes at most beside its numbers, and what a number takes.
const PART: u64 = 88;
const NUMBER: u64 = 8;

type ById<T> = HashMap<u64, T, FxBuildHasher>;

/// Reads a whole profile, and returns when it was made; labels of samples aren't kept. Nothing is taken from one that breaks a rule of
/// the format, nor of types with numbers below 0.
pub(in crate::stack_formats) fn read(
    input: impl Read,
    tree: &mut Tree,
    options: &ReadOptions,
) -> Result<ProfileTimes, Fault> {
    let profile = unpack(input, LIMITS)?;
    let strings: Vec<String> =
        profile.string_table.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
    let fault = |reason: String| Fault::of_file(FaultKind::Pprof(reason));
    let stacks = CheckedStacks::check(&profile, &strings).map_err(fault)?;
    let mut chosen = EventSelector::new(match &options.events {
        EventSelection::First => &EventSelection::All,
        events => events,
    });
    let mut columns = SampleColumns::of(&profile, &stacks.strings, tree, &mut chosen).map_err(fault)?;
    // Where one event is wanted, no other stands in for it.
    if options.events == EventSelection::First && columns.lacks_default {
        columns.all.clear();
    }
    chosen.missing()?;
    if columns.all.is_empty() && columns.negative.is_empty() {
        return Err(fault("it has no types of samples".into()));
    }
    stacks.add(&profile.sample, &columns.all, tree);
    match columns.negative.is_empty() {
        true => ProfileTimes::of(&profile, &stacks.strings).map_err(fault),
        false => Err(Fault::of_file(FaultKind::Negative(columns.negative))),
    }
}

impl ProfileTimes {
    fn of(profile: &Profile, strings: &Strings<'_>) -> Result<Self, String> {
        let text = |index: i64| strings.get(index).map(str::to_owned);
        let period_type = match profile.period_type {
            Some(kind) => Some((text(kind.r#type)?, text(kind.unit)?)),
            None => None,
        };
        let &Profile { time_nanos, duration_nanos, period, .. } = profile;
        Ok(Self { time_nanos, duration_nanos, period, period_type })
    }
}

fn unpack(input: impl Read, limits: Limits) -> Result<Profile, Fault> {
    let fault = |reason: String| Fault::of_file(FaultKind::Pprof(reason));
    let mut bytes = Vec::new();
    let read = unpacked(input).and_then(|input| input.take(limits.unpacked + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => return Err(fault(error.to_string())),
        Ok(size) if size as u64 > limits.unpacked => {
            return Err(fault(format!("it is larger than {} MiB once it is unpacked", limits.unpacked >> 20)));
        }
        Ok(_) => {}
    }
    match memory(&bytes, DEEPEST) {
        Some(memory) if memory <= limits.decoded => {}
        Some(_) => return Err(fault(format!("it would take more than {} GiB of memory", limits.decoded >> 30))),
        None => return Err(fault("its fields don't fit into it".into())),
    }
    Profile::decode(&*bytes).map_err(|error| fault(error.to_string()))
}

/// How deep messages lie within one another: a profile, a sample, a label.
const DEEPEST: u8 = 2;

/// Whether these are the fields of a profile, as far as they go.
pub(in crate::stack_formats) fn is_profile(mut begun: &[u8]) -> bool {
    /// The last field of a profile, `doc_url`.
    const LAST: u32 = 15;
    while !begun.is_empty() {
        match decode_key(&mut begun) {
            Ok((1..=LAST, WireType::Varint)) if decode_varint(&mut begun).is_ok() => {}
            Ok((1..=LAST, WireType::LengthDelimited)) => {
                let Ok(length) = decode_varint(&mut begun) else { return false };
                let rest = usize::try_from(length).ok().and_then(|length| begun.get(length..));
                begun = rest.unwrap_or_default();
            }
            _ => return false,
        }
    }
    true
}

/// What a message takes at most once it is decoded; `None` where it is cut off or damaged. A text may be read as a
/// message: then it is counted as more than it is, or as a part without anything in it.
fn memory(mut message: &[u8], deeper: u8) -> Option<u64> {
    let mut sum = 0_u64;
    while !message.is_empty() {
        let (_, kind) = decode_key(&mut message).ok()?;
        match kind {
            WireType::Varint => sum += decode_varint(&mut message).ok().map(|_| NUMBER)?,
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut message).ok()?).ok()?;
                let (inner, rest) = message.split_at_checked(length)?;
                message = rest;
                // Numbers that stand side by side end with a byte below 128 each.
                let numbers = inner.iter().filter(|&&byte| byte < 0x80).count() as u64 * NUMBER;
                let parts = if deeper > 0 { memory(inner, deeper - 1).unwrap_or(0) } else { 0 };
                sum = sum.saturating_add(PART + numbers.max(parts));
            }
            WireType::ThirtyTwoBit => message = message.split_at_checked(4)?.1,
            WireType::SixtyFourBit => message = message.split_at_checked(8)?.1,
            WireType::StartGroup | WireType::EndGroup => return None,
        }
    }
    Some(sum)
}

/// The table of strings, which is asked for numbers that others wrote.
struct Strings<'a>(&'a [String]);

impl<'a> Strings<'a> {
    fn get(&self, index: i64) -> Result<&'a str, String> {
        let text = usize::try_from(index).ok().and_then(|index| self.0.get(index));
        text.map(|text| &**text).ok_or_else(|| format!("there is no string {index}"))
    }
}

/// What the samples of a profile refer to, checked.
struct CheckedStacks<'a> {
    strings: Strings<'a>,
    mappings: ById<&'a Mapping>,
    functions: ById<&'a Function>,
    locations: ById<&'a Location>,
}

impl<'a> CheckedStacks<'a> {
    fn check(profile: &'a Profile, strings: &'a [String]) -> Result<Self, String> {
        if strings.first().is_none_or(|first| !first.is_empty()) {
            return Err("its first string isn't empty".into());
        }
        let stacks = Self {
            strings: Strings(strings),
            mappings: by_id("mapping", profile.mapping.iter().map(|mapping| (mapping.id, mapping)))?,
            functions: by_id("function", profile.function.iter().map(|function| (function.id, function)))?,
            locations: by_id("location", profile.location.iter().map(|location| (location.id, location)))?,
        };
        for kind in profile.sample_type.iter().chain(&profile.period_type) {
            stacks.strings.get(kind.r#type)?;
            stacks.strings.get(kind.unit)?;
        }
        let Profile { drop_frames, keep_frames, default_sample_type, doc_url, .. } = profile;
        let texts = [drop_frames, keep_frames, default_sample_type, doc_url].into_iter().chain(&profile.comment);
        texts.into_iter().try_for_each(|&text| stacks.strings.get(text).map(drop))?;
        profile.mapping.iter().try_for_each(|mapping| {
            stacks.strings.get(mapping.filename)?;
            stacks.strings.get(mapping.build_id).map(drop)
        })?;
        profile.function.iter().try_for_each(|function| {
            let texts = [function.name, function.system_name, function.filename];
            texts.into_iter().try_for_each(|text| stacks.strings.get(text).map(drop))
        })?;
        profile.location.iter().try_for_each(|location| stacks.check_location(location))?;
        let types = profile.sample_type.len();
        if types > MOST_TYPES {
            return Err(format!("it has {types} types of samples, and {MOST_TYPES} at most can be read"));
        }
        profile.sample.iter().enumerate().try_for_each(|(index, sample)| {
            stacks.check_sample(sample, types).map_err(|reason| format!("sample {}: {reason}", index + 1))
        })?;
        Ok(stacks)
    }

    fn check_location(&self, location: &Location) -> Result<(), String> {
        let Location { id, mapping_id, .. } = location;
        if *mapping_id != 0 && !self.mappings.contains_key(mapping_id) {
            return Err(format!("location {id} is in mapping {mapping_id}, which isn't there"));
        }
        match location.line.iter().find(|line| !self.functions.contains_key(&line.function_id)) {
            Some(line) => Err(format!("location {id} is in function {}, which isn't there", line.function_id)),
            None => Ok(()),
        }
    }

    fn check_sample(&self, sample: &Sample, types: usize) -> Result<(), String> {
        if sample.value.len() != types {
            return Err(format!("{} values for {types} types", sample.value.len()));
        }
        if let Some(id) = sample.location_id.iter().find(|id| !self.locations.contains_key(id)) {
            return Err(format!("location {id} isn't there"));
        }
        for label in &sample.label {
            if self.strings.get(label.key)?.is_empty() {
                return Err("a label without a key".into());
            }
            self.strings.get(label.num_unit)?;
            self.strings.get(label.str)?;
            if label.str != 0 && label.num != 0 {
                return Err("a label with both a text and a number".into());
            }
        }
        Ok(())
    }

    fn add(&self, samples: &[Sample], columns: &[SampleColumn], tree: &mut Tree) {
        let frames: ById<Vec<FrameId>> =
            self.locations.iter().map(|(&id, location)| (id, self.frames(location, tree))).collect();
        let stacks = tree.sampled();
        for sample in samples {
            let outermost_first = sample.location_id.iter().rev().flat_map(|id| frames[id].iter().rev()).copied();
            // Some writers begin each path with the root itself.
            let mut path = outermost_first.peekable();
            path.next_if(|&frame| is_root(tree, frame));
            let path: Vec<FrameId> = path.collect();
            let value = |index: usize| sample.value[index].unsigned_abs();
            let calls = columns.iter().filter_map(SampleColumn::calls).map(value).fold(0, u64::saturating_add);
            let amounts: Vec<(EventId, Amount)> = columns.iter().filter_map(|column| column.amount(value)).collect();
            tree.tally(stacks, path, calls, &amounts);
        }
        tree.end(stacks);
    }

    /// The frames of a location, innermost first.
    fn frames(&self, location: &Location, tree: &mut Tree) -> Vec<FrameId> {
        let mapping = self.mappings.get(&location.mapping_id);
        let module = mapping.and_then(|mapping| self.strings.get(mapping.filename).ok()).unwrap_or_default();
        if location.line.is_empty() {
            let name = format!("0x{:x}", location.address);
            return vec![tree.frame(&Frame { module, ..Frame::function(&name) })];
        }
        let frames = location.line.iter().map(|line| {
            let function = self.functions[&line.function_id];
            let text = |index| self.strings.get(index).unwrap_or_default();
            let name = if text(function.name).is_empty() { text(function.system_name) } else { text(function.name) };
            let line = u32::try_from(line.line).ok().and_then(NonZeroU32::new);
            tree.frame(&Frame { module, file: text(function.filename), line, ..Frame::function(name) })
        });
        frames.collect()
    }
}

fn is_root(tree: &Tree, frame: FrameId) -> bool {
    let frame = tree.frame_of(frame);
    frame.name == "[root]" && frame.module.is_empty()
}

/// Things by their numbers, of which none is 0 and no two are the same.
fn by_id<'a, T>(kind: &str, things: impl Iterator<Item = (u64, &'a T)>) -> Result<ById<&'a T>, String> {
    let mut by_id = ById::default();
    for (id, thing) in things {
        if id == 0 {
            return Err(format!("a {kind} has the number 0"));
        }
        if by_id.insert(id, thing).is_some() {
            return Err(format!("two {kind}s have the number {id}"));
        }
    }
    Ok(by_id)
}

/// What of a sample's values makes a number of the tree.
enum SampleColumn {
    /// The number of calls of the path, in this column.
    Calls(usize),
    /// Samples, and the value they stand for.
    Weighted { event: EventId, samples: usize, weight: usize },
    /// An event of which only samples are known.
    Samples { event: EventId, samples: usize },
    /// An event of which only the sum is known.
    Sum { event: EventId, weight: usize },
}

impl SampleColumn {
    fn calls(&self) -> Option<usize> {
        match self {
            Self::Calls(index) => Some(*index),
            _ => None,
        }
    }

    fn amount(&self, value: impl Fn(usize) -> u64) -> Option<(EventId, Amount)> {
        match *self {
            Self::Calls(_) => None,
            Self::Weighted { event, samples, weight } => {
                Some((event, Amount { samples: value(samples), weight: value(weight) }))
            }
            Self::Samples { event, samples } => {
                Some((event, Amount { samples: value(samples), weight: value(samples) }))
            }
            Self::Sum { event, weight } => Some((event, Amount { samples: 0, weight: value(weight) })),
        }
    }
}

/// The types of samples: names and units. `samples/count` beside one other type says how many samples that was;
/// `NAME-samples/count` says it of NAME.
struct Types<'a> {
    all: Vec<(&'a str, &'a str)>,
    /// Where `NAME-samples/count` stands first, by NAME.
    own: HashMap<&'a str, usize>,
    /// Where `samples/count` stands that is beside one other type.
    common: Option<usize>,
}

impl<'a> Types<'a> {
    fn new(all: Vec<(&'a str, &'a str)>) -> Self {
        let counters = || all.iter().enumerate().filter(|(_, (_, unit))| *unit == "count");
        let own = counters().rev().filter_map(|(index, (name, _))| Some((name.strip_suffix("-samples")?, index)));
        let weights = all.iter().filter(|&&(name, unit)| !is_calls(name, unit) && name != "samples").count();
        let common = counters().find(|(_, (name, _))| *name == "samples" && weights == 1).map(|(index, _)| index);
        Self { own: own.collect(), common, all }
    }

    /// Where the number of samples stands of which this type is the weight.
    fn samples_of(&self, name: &str) -> Option<usize> {
        let common = self.common.filter(|_| name != "samples");
        self.own.get(name).copied().into_iter().chain(common).min()
    }

    /// The places of types that are the number of samples of another one.
    fn counters(&self) -> HashSet<usize> {
        self.all.iter().filter_map(|(name, _)| self.samples_of(name)).collect()
    }

    /// The event of the tree for a type that is neither of calls nor of samples of another.
    fn column(&self, index: usize, tree: &mut Tree) -> (EventId, SampleColumn) {
        let (name, unit) = self.all[index];
        let unit = || unit.to_owned().into();
        if let Some(samples) = self.samples_of(name) {
            let event = tree.event(&ProfileEvent::new(name, SampleMeasure::Weighted(unit())));
            return (event, SampleColumn::Weighted { event, samples, weight: index });
        }
        if name == "samples" && unit() == "count" {
            let event = tree.event(&ProfileEvent::new(name, SampleMeasure::Samples));
            return (event, SampleColumn::Samples { event, samples: index });
        }
        let event = tree.event(&ProfileEvent::new(name, SampleMeasure::Sum(unit())));
        (event, SampleColumn::Sum { event, weight: index })
    }
}

/// The types of samples as events of the tree.
#[derive(Default)]
struct SampleColumns {
    all: Vec<SampleColumn>,
    /// The names of those that were chosen and have numbers below 0; they aren't among the others.
    negative: Vec<String>,
    /// Whether the type that pprof shows first is one of these.
    lacks_default: bool,
}

impl SampleColumns {
    fn of(
        profile: &Profile,
        strings: &Strings<'_>,
        tree: &mut Tree,
        chosen: &mut EventSelector,
    ) -> Result<Self, String> {
        let kind = |kind: &ValueType| Ok((strings.get(kind.r#type)?, strings.get(kind.unit)?));
        let types = Types::new(profile.sample_type.iter().map(kind).collect::<Result<_, String>>()?);
        let (counters, below_zero) = (types.counters(), below_zero(profile));
        let preferred = strings.get(profile.default_sample_type)?;
        let mut columns = Self::default();
        // The last type is the one that pprof shows if none is preferred; without an event where its numbers are below 0.
        let mut default: Option<(&str, Option<EventId>)> = None;
        for (index, &(name, unit)) in types.all.iter().enumerate().filter(|(index, _)| !counters.contains(index)) {
            let is_negative = below_zero[index] || types.samples_of(name).is_some_and(|samples| below_zero[samples]);
            let is_calls = is_calls(name, unit);
            if is_calls && !is_negative {
                columns.all.push(SampleColumn::Calls(index));
                continue;
            }
            if !chosen.takes(name) {
                continue;
            }
            let event = if is_negative {
                columns.negative.push(name.to_owned());
                None
            } else {
                let (event, column) = types.column(index, tree);
                columns.all.push(column);
                Some(event)
            };
            if !is_calls && default.is_none_or(|(before, _)| before != preferred) {
                default = Some((name, event));
            }
        }
        match default {
            Some((_, Some(event))) => tree.set_default_event(event),
            Some((_, None)) => columns.lacks_default = true,
            None => {}
        }
        Ok(columns)
    }
}

/// Which types have a number below 0.
fn below_zero(profile: &Profile) -> Vec<bool> {
    let mut below_zero = vec![false; profile.sample_type.len()];
    for sample in &profile.sample {
        below_zero.iter_mut().zip(&sample.value).for_each(|(is_below, value)| *is_below |= *value < 0);
    }
    below_zero
}

fn is_calls(name: &str, unit: &str) -> bool {
    name == "calls" && unit == "count"
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::super::message::{Label, Line};
    use super::*;

    fn refusal(bytes: &[u8], limits: Limits) -> String {
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(bytes).unwrap();
        unpack(&packed.finish().unwrap()[..], limits).map_or_else(|fault| fault.to_string(), |_| "taken".into())
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        // Samples with nothing in them.
        let samples = b"\x12\x00".repeat(1 << 20);
        let limits = |unpacked, decoded| Limits { unpacked, decoded };
        assert_eq!(refusal(&samples, limits(2 << 20, 1 << 30)), "taken");
        let large = refusal(&samples, limits(1 << 20, 1 << 30));
        assert_eq!(large, "no valid pprof profile: it is larger than 1 MiB once it is unpacked");
        let much = refusal(&b"\x12\x00".repeat(13 << 20), limits(LIMITS.unpacked, 1 << 30));
        assert_eq!(much, "no valid pprof profile: it would take more than 1 GiB of memory");
        assert!(refusal(b"\x12\x05\x00", LIMITS).contains("don't fit"));
    }

    #[test]
    fn a_page_about_the_profile_is_among_its_fields() {
        // `sample_type`, and `doc_url` of one character; no field has a number above that.
        assert!(is_profile(b"\x0a\x00\x78\x01") && is_profile(b"\x0a\x00\x7a\x01u"));
        assert!(!is_profile(b"\x0a\x00\x80\x01\x01"));
    }

    /// A profile of one sample, of types of a unit `count`.
    fn counted(types: &[String], value: i64) -> Vec<u8> {
        with_values(types, &vec![value; types.len()])
    }

    fn with_values(types: &[String], values: &[i64]) -> Vec<u8> {
        let texts = ["", "count", "f"].into_iter().chain(types.iter().map(String::as_str));
        let kind = |r#type| ValueType { r#type, unit: 1 };
        let line = Line { function_id: 1, line: 0 };
        let profile = Profile {
            sample_type: (3..).take(types.len()).map(kind).collect(),
            sample: vec![Sample { location_id: vec![1], value: values.to_vec(), label: vec![] }],
            location: vec![Location { id: 1, line: vec![line], ..Location::default() }],
            function: vec![Function { id: 1, name: 2, ..Function::default() }],
            string_table: texts.map(|text| text.as_bytes().to_vec()).collect(),
            ..Profile::default()
        };
        profile.encode_to_vec()
    }

    /// As `pprof -base` writes them.
    #[test]
    fn types_with_numbers_below_0_are_left_out_and_told() {
        let types = ["inuse-samples", "inuse", "alloc-samples", "alloc"].map(str::to_owned);
        let read_of = |values: &[i64], events: EventSelection| {
            let mut tree = Tree::default();
            let options = ReadOptions { events, ..ReadOptions::default() };
            let fault = read(&with_values(&types, values)[..], &mut tree, &options).err();
            let names: Vec<_> = tree.event_ids().filter(|event| tree.total(*event) != Amount::ZERO).collect();
            let names: Vec<_> = names.into_iter().map(|event| tree.event_of(event).name.clone()).collect();
            (names.join(" "), fault.map_or_else(String::new, |fault| fault.to_string()))
        };
        let named = |name: &str| EventSelection::Named(vec![name.to_owned()]);
        let told = "has numbers below 0, as in a difference of profiles; compare the two profiles themselves";
        for values in [[1, -2, 3, 4], [-1, 2, 3, 4]] {
            let (names, fault) = read_of(&values, EventSelection::All);
            assert!(names == "alloc" && fault.starts_with(&format!("'inuse' {told}")), "{names} {fault}");
            assert_eq!(read_of(&values, named("alloc")), ("alloc".to_owned(), String::new()));
            assert_eq!(read_of(&values, named("inuse")).0, "");
        }
        // The last is what a file of one event would have.
        let (names, fault) = read_of(&[1, 2, -3, 4], EventSelection::First);
        assert!(names.is_empty() && fault.starts_with(&format!("'alloc' {told}")), "{names} {fault}");
        assert_eq!(read_of(&[1, 2, -3, 4], EventSelection::All).0, "inuse");
    }

    #[test]
    fn calls_that_are_too_many_to_be_added_up_are_the_most_there_are() {
        let mut tree = Tree::default();
        let types = ["calls", "calls", "calls", "x"].map(str::to_owned);
        read(&counted(&types, i64::MAX)[..], &mut tree, &ReadOptions::default()).unwrap();
        assert_eq!(tree.walk().map(|node| node.calls()).max(), Some(u64::MAX));
    }

    #[test]
    fn a_profile_of_many_types_is_read_at_once_and_one_of_too_many_refused() {
        let pairs = |pairs: usize| (0..pairs).flat_map(|n| [format!("e{n}-samples"), format!("e{n}")]);
        let read_pairs = |count: usize| {
            let mut tree = Tree::default();
            let types: Vec<String> = pairs(count).collect();
            let read = read(&counted(&types, 3)[..], &mut tree, &ReadOptions::default());
            read.map(|_| tree).map_err(|fault| fault.to_string())
        };
        let tree = read_pairs(MOST_TYPES / 2).unwrap();
        assert_eq!(tree.event_ids().count(), MOST_TYPES / 2);
        assert!(tree.event_ids().all(|event| tree.total(event) == Amount { samples: 3, weight: 3 }));
        assert!(read_pairs(MOST_TYPES).unwrap_err().contains("2000 types of samples"));
    }

    #[test]
    fn the_memory_of_a_profile_is_no_less_than_it_takes() {
        let label = Label { key: 1, str: 1, num: 0, num_unit: 0 };
        let sample = Sample { location_id: vec![1; 40], value: vec![1; 3], label: vec![label; 10] };
        let line = Line { function_id: 1, ..Line::default() };
        let profile = Profile {
            sample: vec![sample; 10],
            location: vec![Location { id: 1, line: vec![line; 5], ..Location::default() }; 10],
            function: vec![Function { id: 1, name: 1, ..Function::default() }; 10],
            string_table: vec![Vec::new(), b"name".to_vec()],
            comment: vec![1; 100],
            ..Profile::default()
        };
        let samples = 10 * (size_of::<Sample>() + 43 * 8 + 10 * size_of::<Label>());
        let locations = 10 * (size_of::<Location>() + 5 * size_of::<Line>());
        let rest = 10 * size_of::<Function>() + 2 * (size_of::<Vec<u8>>() + size_of::<String>()) + 100 * 8;
        let memory = memory(&profile.encode_to_vec(), DEEPEST).unwrap();
        assert!(memory >= (samples + locations + rest) as u64, "{memory}");
        assert!(PART as usize >= size_of::<Sample>().max(size_of::<Location>()));
    }
}
