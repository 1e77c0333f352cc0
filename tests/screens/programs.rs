//! What the programs of these tests have in their profiles: stacks of a small solver, regions of a fit.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};

use perfprop::profile::{self, Amount, Frame, FrameId, SampleMeasure, Tree};
use perfprop::regions::{
    CountedPart, EventCounts, EventSums, RegionBatch, RegionCounts, RegionMark, RegionPath, RegionPathId,
    RegionProgram, RegionProgramId, RegionState, Spread, ThreadMarks,
};
use perfprop::units::WallNs;

use crate::builders::SECOND;

/// A profile that grows while the screens look at it.
pub(crate) type SharedTree = Arc<Mutex<Tree>>;

/// Stacks of a small solver, outermost frame first: frames with their modules, samples of two events.
const STACKS: [(&[&str], u64, u64); 12] = [
    (&["solve", "main@solve", "mid_a@solve", "leaf_chase@solve"], 16_700, 40),
    (&["solve", "main@solve", "mid_a@solve", "grow@solve", "malloc@/usr/lib/libc.so.6"], 150, 900),
    (
        &[
            "solve",
            "main@solve",
            "mid_a@solve",
            "grow@solve",
            "malloc@/usr/lib/libc.so.6",
            "page_fault@[kernel.kallsyms]",
        ],
        60,
        2_100,
    ),
    (&["solve", "main@solve", "mid_b@solve", "leaf_fp@solve"], 900, 10),
    (&["solve", "main@solve", "mid_b@solve", "leaf_fp@solve", "pow@/usr/lib/libm.so.6"], 120, 0),
    (
        &[
            "solve",
            "main@solve",
            "mid_b@solve",
            "std::vector<double, std::allocator<double> >::resize(unsigned long)@solve",
        ],
        30,
        300,
    ),
    (&["solve", "main@solve", "script@perf-4121.map", "jitted_loop@perf-4121.map"], 75, 0),
    (&["solve", "main@solve", "script@perf-4121.map", "[unknown]@"], 5, 0),
    (&["solve", "main@solve"], 20, 1),
    (&["solve", "_start@/usr/lib/ld-linux.so.2", "relocate@/usr/lib/ld-linux.so.2"], 2, 80),
    (&["solve", "worker@solve", "leaf_fp@solve"], 200, 5),
    (&["solve", "worker@solve", "wait@/usr/lib/libc.so.6", "schedule@[kernel.kallsyms]"], 8, 0),
];

pub(crate) fn add_stack(tree: &mut Tree, path: &[&str], event: &str, samples: u64) {
    let frames: Vec<FrameId> = path
        .iter()
        .enumerate()
        .map(|(i, frame)| {
            let (name, module) = frame.rsplit_once('@').unwrap_or((frame, ""));
            let kind = if i == 0 { profile::FrameKind::Process } else { profile::FrameKind::Function };
            tree.frame(&Frame { kind, module, ..Frame::function(name) })
        })
        .collect();
    let event = tree.event(&profile::ProfileEvent::new(event, SampleMeasure::Weighted("count".into())));
    let place = tree.sampled();
    tree.stack(place, frames, event, Amount { samples, weight: samples * 1000 });
    tree.end(place);
}

pub(crate) fn solver() -> Tree {
    let mut tree = Tree::default();
    for (path, misses, faults) in STACKS {
        add_stack(&mut tree, path, "L1_MISSES", misses);
        if faults > 0 {
            add_stack(&mut tree, path, "page-faults", faults);
        }
    }
    tree
}

pub(crate) fn shared(tree: Tree) -> Option<SharedTree> {
    Some(Arc::new(Mutex::new(tree)))
}

/// Counts of two events in the calls of a region: page faults all the time, and instructions a third of the time, but for a
/// single call, in which they weren't counted. Each number is with the regions within, and without.
pub(crate) fn region_events(calls: u64, faults: (u64, u64), instructions: (u64, u64)) -> Vec<EventSums> {
    let ns = calls * 1000;
    let sums = |(sum, own): (u64, u64), running_ns: u64| {
        // A little more than where all calls count as much.
        let squares_per_ns = sum as f64 * sum as f64 / running_ns as f64 * 1.5;
        let all = EventCounts { calls, sum, max: sum, enabled_ns: ns, running_ns, ..EventCounts::default() };
        let all = EventCounts { squares_per_ns, stays: calls, ..all };
        let alone = CountedPart { sum: own, enabled_ns: ns, running_ns };
        EventSums { all, alone, ..EventSums::default() }
    };
    let never = EventCounts { missing: calls, enabled_ns: ns, ..EventCounts::default() };
    let never = EventSums {
        all: never,
        alone: CountedPart { enabled_ns: ns, ..CountedPart::default() },
        ..EventSums::default()
    };
    let instructions = if calls > 1 { sums(instructions, ns / 3) } else { never };
    vec![sums(faults, ns), instructions]
}

/// Regions of a fit: the likelihood most of the time, and one that was never left.
pub(crate) fn regions() -> Vec<RegionBatch> {
    let path = |parent: Option<u32>, name: &str, phase: &str| RegionPath {
        program: RegionProgramId(0),
        parent: parent.map(RegionPathId),
        name: name.into(),
        phase: phase.into(),
    };
    let counts = |path, calls: u64, time_ns: u64, self_ns: u64, faults: (u64, u64)| {
        let mean = time_ns as f64 / calls as f64;
        let variance = Some(mean * mean * 0.09);
        let spread = Spread { mean, variance, min: mean / 2.0, max: mean * 3.0, p50: mean, p99: mean * 2.0 };
        let path = RegionPathId(path);
        RegionCounts {
            path,
            calls,
            time_ns,
            self_ns,
            markers_ns: 0,
            self_markers_ns: 0,
            reverse_calls: 0,
            reverse_ns: 0,
            spread: Some(spread),
            events: region_events(calls, faults, (calls * time_ns / 100_000_000, calls * self_ns / 100_000_000)),
            counters: Vec::new(),
            outlasted_by: None,
        }
    };
    let mark = |at, path| RegionMark { at: WallNs(at), path: RegionPathId(path), is_enter: true };
    let marks = ThreadMarks { program: RegionProgramId(0), tid: 1, missed: 0, marks: vec![mark(1, 0), mark(2, 2)] };
    let events = vec!["page-faults".into(), "instructions:u".into()];
    let first = RegionBatch {
        at: WallNs(38 * SECOND),
        counted_since: Some(WallNs(37 * SECOND)),
        programs: vec![RegionProgram { pid: 1, name: Some("fit".into()) }],
        paths: vec![
            path(None, "fit", ""),
            path(Some(0), "model", ""),
            path(Some(1), "likelihood", ""),
            path(Some(1), "prior\n\x1b[2J", ""),
            path(None, "write", ""),
            path(None, "write", "warmup"),
        ],
        counts: vec![counts(5, 1, 40_000_000, 40_000_000, (12, 12))],
        marks: vec![marks],
        states: vec![(RegionProgramId(0), RegionState { events, ..RegionState::default() })],
        ..RegionBatch::default()
    };
    let second = RegionBatch {
        at: WallNs(39 * SECOND),
        since: first.at,
        counted_since: Some(first.at),
        counts: vec![
            counts(1, 52_000, 31_000_000_000, 900_000_000, (109_000, 1_000)),
            counts(2, 52_000, 28_000_000_000, 28_000_000_000, (104_000, 104_000)),
            counts(3, 52_000, 2_100_000_000, 2_100_000_000, (4_000, 4_000)),
            counts(4, 1, 60_000_000, 60_000_000, (30, 30)),
        ],
        ..RegionBatch::default()
    };
    vec![first, second]
}
