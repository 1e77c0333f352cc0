//! Writes JSON for speedscope: the frames once, and a profile for each event, and for each thread where these are known.
//!
//! Profiles of threads are of the kind `sampled`: stacks in the order of time, each as wide as its weight. Where that is time,
//! they stand where they were sampled, with empty stacks between them. Profiles of sums are of the kind `evented`: frames open
//! and close at running totals, so that the file grows with the number of nodes, not with the length of their paths.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::options::{WriteOptions, WrittenNumber};
use super::timed::{ThreadTrack, TimedRun, path_in_thread, summed};
use crate::profile::{EventId, FrameId, NodeId, NodeRef, Tree};
use crate::stacks::OFF_CPU;
use crate::units::WallNs;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub(super) fn write(tree: &Tree, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"$schema\":{},\"exporter\":\"perfprop\",\"shared\":{{\"frames\":[", json!(SCHEMA))?;
    for (index, frame) in tree.frames().enumerate() {
        let mut value = json!({ "name": frame.name });
        if !frame.file.is_empty() || !frame.module.is_empty() {
            // A frame has one place in this format; the source is the better one.
            value["file"] = Value::from(if frame.file.is_empty() { frame.module } else { frame.file });
        }
        if let Some(line) = frame.line {
            value["line"] = line.get().into();
        }
        write!(out, "{}{value}", if index > 0 { ",\n" } else { "\n" })?;
    }
    write!(out, "]}},\"profiles\":[")?;
    let run = options.run.as_ref();
    let tracks = run.map(TimedRun::tracks).unwrap_or_default();
    let profiles = profiles(tree, &tracks);
    for (index, profile) in profiles.iter().enumerate() {
        write!(out, "{}", if index > 0 { ",\n" } else { "\n" })?;
        match (profile, run) {
            (WrittenProfile::Thread(track), Some(run)) => thread(tree, track, run, options, out)?,
            (profile, _) => sums(tree, profile.event(), options, out)?,
        }
    }
    writeln!(out, "],\"activeProfileIndex\":{}}}", shown(&profiles, options.event(tree)))
}

/// What becomes a profile of its own.
enum WrittenProfile<'a> {
    /// All threads together.
    Sum(EventId),
    Thread(&'a ThreadTrack<'a>),
}

impl WrittenProfile<'_> {
    fn event(&self) -> EventId {
        match self {
            Self::Sum(event) => *event,
            Self::Thread(track) => track.event,
        }
    }
}

/// The profiles of all events: of several threads their sum before each of them, as speedscope doesn't add profiles up.
fn profiles<'a>(tree: &Tree, tracks: &'a [ThreadTrack<'a>]) -> Vec<WrittenProfile<'a>> {
    let summed = summed(tree, tracks);
    let of_event = |event: EventId| {
        let threads: Vec<_> = tracks.iter().filter(|track| track.event == event).collect();
        let has_sum = threads.len() > 1 || summed.contains(&event);
        let sum = has_sum.then_some(WrittenProfile::Sum(event));
        sum.into_iter().chain(threads.into_iter().map(WrittenProfile::Thread))
    };
    tree.event_ids().flat_map(of_event).collect()
}

/// The place of the profile that is shown first: of this event, the thread with the most of it.
fn shown(profiles: &[WrittenProfile<'_>], event: Option<EventId>) -> usize {
    let weight = |profile: &WrittenProfile<'_>| match profile {
        WrittenProfile::Sum(_) => 0,
        WrittenProfile::Thread(track) => track.weight(),
    };
    let of_event = profiles.iter().enumerate().filter(|(_, profile)| Some(profile.event()) == event);
    of_event.max_by_key(|(place, profile)| (weight(profile), std::cmp::Reverse(*place))).map_or(0, |(place, _)| place)
}

/// The unit of an event's numbers, as speedscope has it.
fn unit<'a>(tree: &'a Tree, event: EventId, options: &WriteOptions) -> &'a str {
    match options.unit.name(tree, event) {
        unit @ ("nanoseconds" | "microseconds" | "milliseconds" | "seconds" | "bytes") => unit,
        _ => "none",
    }
}

/// What stands side by side in a thread's profile: a node's stack, or none, and how wide it is.
type Bar = (Option<NodeId>, u64);

/// Samples in the order of time, from this time on. Weights that are times stand where they were counted, if what lies between them
/// is longer than one of them: the kernel's clock isn't even.
fn bars(
    track: &ThreadTrack<'_>,
    start: Option<WallNs>,
    is_off_cpu: bool,
    run: &TimedRun,
    unit: WrittenNumber,
) -> Vec<Bar> {
    let (is_time, mut at) = (start.is_some(), start.unwrap_or_default());
    let mut bars = Vec::with_capacity(track.samples.len());
    for sample in &track.samples {
        let weight = if unit == WrittenNumber::Samples { 1 } else { sample.weight };
        let gap = sample.at - WallNs(weight) - at;
        if is_time && gap.0 > if is_off_cpu { 0 } else { weight } {
            bars.push((None, gap.0));
            at += gap;
        }
        bars.push((Some(sample.node), weight));
        at += WallNs(weight);
    }
    let rest = run.range.to - at;
    if is_time && rest.0 > 0 {
        bars.push((None, rest.0));
    }
    bars
}

/// Writes what was sampled of a thread.
fn thread(
    tree: &Tree,
    track: &ThreadTrack<'_>,
    run: &TimedRun,
    options: &WriteOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ThreadTrack { event, pid, tid, name, process, .. } = track;
    let unit = unit(tree, *event, options);
    let event_name = &tree.event_of(*event).name;
    let title = if pid == tid { format!("{name} [{pid}]") } else { format!("{name} [{tid}] of {process} [{pid}]") };
    // What a sample stands for may have begun before the time that was read.
    let begun = track.samples.iter().map(|sample| sample.at - WallNs(sample.weight)).min();
    let start = (unit == "nanoseconds").then(|| begun.map_or(run.range.from, |begun| begun.min(run.range.from)));
    let bars = bars(track, start, event_name == OFF_CPU, run, options.unit);
    let start = start.unwrap_or_default().0;
    let end = bars.iter().fold(start, |sum, (_, weight)| sum.saturating_add(*weight));
    let title = json!(format!("{title}: {event_name}"));
    write!(out, "{{\"type\":\"sampled\",\"name\":{title},\"unit\":\"{unit}\",")?;
    write!(out, "\"startValue\":{start},\"endValue\":{end},\"samples\":[")?;
    let mut stacks: HashMap<NodeId, String> = HashMap::new();
    for (index, (node, _)) in bars.iter().enumerate() {
        let stack = node.map(|node| &*stacks.entry(node).or_insert_with(|| stack(tree, node)));
        write!(out, "{}{}", if index > 0 { ",\n" } else { "\n" }, stack.map_or("[]", |stack| stack))?;
    }
    let weights: Vec<u64> = bars.iter().map(|(_, weight)| *weight).collect();
    write!(out, "],\"weights\":{}}}", json!(weights))
}

/// The numbers of the frames of a stack, outermost first.
fn stack(tree: &Tree, node: NodeId) -> String {
    let frames: Vec<usize> = path_in_thread(tree, node).into_iter().map(FrameId::index).collect();
    json!(frames).to_string()
}

/// Writes an event without times and threads.
fn sums(tree: &Tree, event: EventId, options: &WriteOptions, out: &mut dyn Write) -> io::Result<()> {
    let unit = unit(tree, event, options);
    let name = &tree.event_of(event).name;
    write!(out, "{{\"type\":\"evented\",\"name\":{},\"unit\":\"{unit}\",\"startValue\":0,\"events\":[", json!(name))?;
    let inclusive = tree.inclusive(event);
    let mut writer = EventedWriter { tree, out, open: Vec::new(), at: 0, comma: "\n" };
    for node in tree.walk().filter(|node| inclusive[node.id().index()] != Default::default()) {
        // The root is no frame, but for what was counted on itself.
        let own = options.unit.of(&node, event);
        if node.depth() == 0 && own == 0 {
            continue;
        }
        writer.open(&node, own)?;
        if node.depth() == 0 {
            writer.close(0)?;
        }
    }
    writer.close(0)?;
    let at = writer.at;
    write!(out, "],\"endValue\":{at}}}")
}

/// Writes the events of a profile: frames that open and close.
struct EventedWriter<'a> {
    tree: &'a Tree,
    out: &'a mut dyn Write,
    /// The nodes that are open, with their depths.
    open: Vec<(NodeId, usize)>,
    /// The running total.
    at: u64,
    /// What stands before the next event.
    comma: &'static str,
}

impl EventedWriter<'_> {
    /// Opens a frame in which so much was counted, after those are closed that aren't around it.
    fn open(&mut self, node: &NodeRef<'_>, own: u64) -> io::Result<()> {
        self.close(node.depth())?;
        self.event('O', node.frame_id())?;
        self.open.push((node.id(), node.depth()));
        self.at = self.at.saturating_add(own);
        Ok(())
    }

    /// Closes the frames that are at this depth or below it.
    fn close(&mut self, depth: usize) -> io::Result<()> {
        while let Some((node, _)) = self.open.pop_if(|(_, open_depth)| *open_depth >= depth) {
            self.event('C', self.tree.node(node).frame_id())?;
        }
        Ok(())
    }

    fn event(&mut self, kind: char, frame: FrameId) -> io::Result<()> {
        let (comma, at) = (std::mem::replace(&mut self.comma, ",\n"), self.at);
        write!(self.out, "{comma}{{\"type\":\"{kind}\",\"frame\":{},\"at\":{at}}}", frame.index())
    }
}
