//! Reads the stacks that were sampled in a recording.

use std::borrow::Cow;
use std::io::BufRead;

use super::error::{Fault, FaultKind};
use super::names::Names;
use super::options::{ProcessNaming, ReadOptions, SampleKeeping};
use super::selection::EventSelector;
use super::timed::TimedRun;
use super::{Imported, ImportedRun};
use crate::profile::{Detail, FrameId, RepeatFolding, Tree, TreeOptions};
use crate::recording::{self, Recording, TimeRange};
use crate::regions::{REGION_BACKWARD, REGION_TIME, RegionBatch, RegionRange, region_event};
use crate::stacks::{Losses, Naming, RecordedProfile, SampleRange, StackFrame, StackTree, Task, as_is};
use crate::units::WallNs;

/// The tree is made anew: a recording says by itself what its events are.
pub(super) fn read(input: impl BufRead, imported: &mut Imported, options: &ReadOptions) -> Result<(), Fault> {
    let recording = recording::read(input).map_err(damaged)?;
    let Some(recorded) = recording.profile() else { return Err(Fault::of_file(FaultKind::NoStacks)) };
    if options.range.is_some_and(|range| range.from >= recording.length()) {
        return Err(Fault::of_file(FaultKind::NotInRange(recording.length())));
    }
    let part = options.range.map(|range| recording.whole_intervals(range).unwrap_or(range));
    let mut chosen = EventSelector::new(&options.events);
    let mut all = empty(recorded, options, &mut chosen);
    take_regions(&mut all, recorded.regions, part)?;
    imported.losses = take_samples(&mut all, recorded, part)?;
    let setup = recorded.setup();
    let (tree, timeline) = all.into_timeline();
    imported.tree = tree;
    let range = part.unwrap_or(TimeRange { from: WallNs(0), to: WallNs(u64::MAX) });
    let range = TimeRange { to: range.to.min(recording.length()).max(range.from), ..range };
    let breaks_off = recording.breaks_off();
    let Recording { header, end, .. } = recording;
    if options.samples != SampleKeeping::Sums {
        imported.timed = Some(TimedRun { header: header.clone(), range, setup, timeline });
    }
    chosen.missing()?;
    if let Some(words) = breaks_off {
        return Err(damaged(format!("the recording {words}")));
    }
    imported.run = end.map(|end| ImportedRun { header, end });
    Ok(())
}

fn damaged(reason: impl ToString) -> Fault {
    Fault::of_file(FaultKind::Recording(reason.to_string()))
}

/// What the stacks of a recording are added to.
fn empty(recorded: RecordedProfile<'_>, options: &ReadOptions, chosen: &mut EventSelector) -> StackTree {
    // Recursion folds where frames are functions.
    let has_offsets = options.samples == SampleKeeping::EachWithOffsets && options.tree.repeats == RepeatFolding::Keep;
    let detail = if has_offsets { Detail::Places } else { options.tree.detail };
    let tree = TreeOptions { detail, ..options.tree };
    let all = StackTree::new(&recorded.setup(), tree, naming(options), |event| chosen.takes(event));
    let of_regions = region_events(recorded.regions);
    let mut all = all.with_region_events(of_regions.into_iter().filter(|event| chosen.takes(event)));
    let has_threads = || recorded.regions.iter().any(|batch| !batch.threads.is_empty());
    // What single threads counted in regions isn't known of a part.
    if options.process == ProcessNaming::Tid && options.range.is_none() && has_threads() {
        let tasks = recorded.batches.iter().flat_map(|batch| batch.tasks.iter().cloned());
        all = all.with_regions_of_threads(&tasks.collect::<Vec<_>>());
    }
    if options.samples == SampleKeeping::Sums { all } else { all.with_timeline() }
}

/// The time after which a part begins; `None` where that is the beginning of the recording.
fn after(part: Option<TimeRange>) -> Option<WallNs> {
    part.map(|part| part.from).filter(|from| from.0 > 0)
}

fn take_regions(all: &mut StackTree, batches: &[RegionBatch], part: Option<TimeRange>) -> Result<(), Fault> {
    let mut range = RegionRange::after(after(part));
    for batch in batches {
        if part.is_none_or(|part| batch.at <= part.to) {
            all.take_regions(&range.take(batch)).map_err(damaged)?;
            continue;
        }
        // It still says which regions were open at the end of the part.
        let marks =
            RegionBatch { counted_since: None, counts: Vec::new(), threads: Vec::new(), ..RegionBatch::clone(batch) };
        return all.take_regions(&marks).map_err(damaged);
    }
    Ok(())
}

/// Adds the samples of a part, and returns what went missing in it.
fn take_samples(all: &mut StackTree, recorded: RecordedProfile<'_>, part: Option<TimeRange>) -> Result<Losses, Fault> {
    let mut range = SampleRange::after(after(part), recorded.sampled);
    let (mut losses, mut is_over) = (Losses::default(), false);
    for batch in recorded.batches {
        let within = match part {
            Some(part) => Cow::Owned(range.take(batch, part.to)),
            None => Cow::Borrowed(batch),
        };
        // What later batches define may be better names of what is in the part.
        all.take(&within).map_err(damaged)?;
        is_over |= part.is_some_and(|part| batch.begins_after(part.to));
        if !is_over {
            losses = within.losses;
        }
    }
    Ok(losses)
}

/// Names of the events that a tree may have of regions.
fn region_events(batches: &[RegionBatch]) -> Vec<String> {
    let mut names = Vec::new();
    if batches.iter().any(|batch| !batch.counts.is_empty()) {
        names.push(REGION_TIME.to_owned());
    }
    if batches.iter().flat_map(|batch| &batch.counts).any(|counts| counts.reverse_calls > 0) {
        names.push(REGION_BACKWARD.to_owned());
    }
    for event in batches.iter().flat_map(|batch| &batch.states).flat_map(|(_, state)| &state.events) {
        let name = region_event(event);
        if !names.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn naming(options: &ReadOptions) -> Naming {
    let (names, process, detail) = (options.names, options.process, options.tree.detail);
    let frame = move |frame: &StackFrame, tree: &mut Tree| match (names, detail) {
        (Names::Full, Detail::Functions) => as_is(&StackFrame { line: None, ..frame.clone() }, tree),
        (Names::Full, Detail::Lines | Detail::Places) => as_is(frame, tree),
        _ => named(names, frame, tree),
    };
    Naming { task: Box::new(move |task| process_name(process, task)), frame: Box::new(frame) }
}

fn named(names: Names, frame: &StackFrame, tree: &mut Tree) -> FrameId {
    let mut name = String::new();
    tree.frame(&names.frame(&frame.name, &frame.module, &mut name))
}

fn process_name(process: ProcessNaming, task: &Task) -> Option<String> {
    let Task { pid, tid, comm } = task;
    match process {
        ProcessNaming::None => None,
        ProcessNaming::Name => Some(comm.clone()),
        ProcessNaming::Pid => Some(format!("{comm}-{pid}")),
        ProcessNaming::Tid => Some(format!("{comm}-{pid}/{tid}")),
    }
}
