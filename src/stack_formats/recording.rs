//! Reads the stacks that were sampled in a recording.

use std::io::BufRead;

use super::ImportedRun;
use super::error::{Fault, FaultKind};
use super::names::Names;
use super::options::{ProcessNaming, ReadOptions};
use super::selection::EventSelector;
use crate::profile::{FrameId, Tree};
use crate::recording;
use crate::regions::{REGION_BACKWARD, REGION_TIME, RegionBatch, region_event};
use crate::stacks::{Losses, Naming, StackFrame, StackTree, Task, as_is};

/// The tree is made anew: a recording says by itself what its events are.
pub(super) fn read(
    input: impl BufRead,
    tree: &mut Tree,
    losses: &mut Losses,
    options: &ReadOptions,
) -> Result<ImportedRun, Fault> {
    let damaged = |reason: String| Fault::of_file(FaultKind::Recording(reason));
    let recording = recording::read(input).map_err(|error| damaged(error.to_string()))?;
    let Some(recorded) = recording.profile() else { return Err(Fault::of_file(FaultKind::NoStacks)) };
    let mut chosen = EventSelector::new(&options.events);
    let sampled = recorded.setup();
    let all = StackTree::new(&sampled, options.tree, naming(options), |event| chosen.takes(event));
    let of_regions = region_events(recorded.regions);
    let mut all = all.with_region_events(of_regions.into_iter().filter(|event| chosen.takes(event)));
    if options.process == ProcessNaming::Tid && recorded.regions.iter().any(|batch| !batch.threads.is_empty()) {
        let tasks = recorded.batches.iter().flat_map(|batch| batch.tasks.iter().cloned());
        all = all.with_regions_of_threads(&tasks.collect::<Vec<_>>());
    }
    for batch in recorded.regions {
        all.take_regions(batch).map_err(|undefined| damaged(undefined.to_string()))?;
    }
    for batch in recorded.batches {
        all.take(batch).map_err(|undefined| damaged(undefined.to_string()))?;
        *losses = batch.losses;
    }
    *tree = all.into_tree();
    chosen.missing()?;
    match recording.cut {
        None => Ok(ImportedRun { header: recording.header, end: recording.end }),
        Some(cut) => Err(Fault::at(cut.line as u64, FaultKind::Recording("the file is cut off there".into()))),
    }
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
    let (names, process) = (options.names, options.process);
    let frame = move |frame: &StackFrame, tree: &mut Tree| match names {
        Names::Full => as_is(frame, tree),
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

/// Whether a file that begins so is a recording.
pub(super) fn is_recording(begun: &[u8]) -> bool {
    begun.starts_with(recording::BEGINNING)
}
