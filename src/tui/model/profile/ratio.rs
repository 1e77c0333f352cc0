//! Finds the ratio that says most of the event that is shown, and computes it on every row.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::calls::{FrameIndex, SampledTree};
use super::functions::{self, FunctionRow};
use super::place::TreePlace;
use super::shape::{NodeAmounts, Shape, TreeNode};
use crate::profile::{Amount, sampled_ratio};
use crate::rates::{Confidence, Uncertain};
use crate::stacks::OFF_CPU;

/// What an event is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum RatioKind {
    /// Instructions a cycle.
    Ipc,
    /// Of 1,000 instructions.
    PerInstructions,
    /// Of 1,000 cycles.
    PerCycles,
    /// Of a second of CPU time.
    PerSecond,
}

impl RatioKind {
    /// The head of its column.
    pub(in crate::tui) fn head(self) -> &'static str {
        match self {
            Self::Ipc => "IPC",
            Self::PerInstructions => "/1k ins",
            Self::PerCycles => "/1k cyc",
            Self::PerSecond => "/CPU s",
        }
    }

    fn times(self) -> f64 {
        match self {
            Self::Ipc => 1.0,
            Self::PerInstructions | Self::PerCycles => 1e3,
            Self::PerSecond => 1e9,
        }
    }
}

/// A ratio of two sampled events on all rows.
#[derive(Debug)]
pub(super) struct EventRatio {
    pub(super) kind: RatioKind,
    of: RatioSide,
    to: RatioSide,
}

/// The numbers of an event.
#[derive(Debug)]
pub(super) struct RatioSide {
    shape: Shape,
    functions: FxHashMap<FrameIndex, FunctionRow>,
    modules: FxHashMap<FrameIndex, FunctionRow>,
}

/// What numbers a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum RatioRow {
    /// A row of the tree, with all below it.
    Path(TreeNode),
    /// A function itself.
    Function(FrameIndex),
    /// The functions of a module.
    Module(FrameIndex),
}

impl EventRatio {
    /// The ratio of the event that is shown; `None` where nothing that was sampled beside says more of it.
    pub(super) fn of(calls: &SampledTree, event: usize) -> Option<Self> {
        // No other event says how much a program might have waited.
        if calls.events.get(event).is_some_and(|event| event.name == OFF_CPU) {
            return None;
        }
        let names: Vec<_> = calls.events.iter().map(|event| plain(&event.name)).collect();
        let is_sampled = |place: &usize| calls.events[*place].has_samples && calls.events[*place].of_calls.is_none();
        let (kind, of, to) = choose(&names, event)?;
        [of, to].iter().all(is_sampled).then(|| Self {
            kind,
            of: RatioSide::of(calls, of),
            to: RatioSide::of(calls, to),
        })
    }

    /// Sums functions and modules below what is zoomed into.
    pub(super) fn list(&mut self, root: TreeNode, calls: &SampledTree) {
        for side in [&mut self.of, &mut self.to] {
            side.list(root, calls);
        }
    }

    /// The ratio on a row.
    pub(super) fn on(&self, row: RatioRow, confidence: Confidence) -> Option<Uncertain> {
        sampled_ratio(self.of.amount(row), self.to.amount(row), self.kind.times(), confidence)
    }
}

impl RatioSide {
    /// Sums functions and modules below what is zoomed into.
    pub(super) fn list(&mut self, root: TreeNode, calls: &SampledTree) {
        let by_frame = |rows: Vec<FunctionRow>| rows.into_iter().map(|row| (row.frame, row)).collect();
        self.functions = by_frame(calls.functions(&self.shape, root, &[]));
        self.modules = by_frame(functions::modules(&self.shape, root, &[], |frame| calls.module_of(frame)));
    }

    pub(super) fn of(calls: &SampledTree, event: usize) -> Self {
        let (paths, own) = (Arc::clone(&calls.paths), Arc::clone(&calls.events[event].own));
        let total = paths.add_up(&own);
        let standing = paths.standing(&total, |_| false);
        let shape = Shape::new(paths, NodeAmounts { own, total, standing }, None);
        Self { shape, functions: FxHashMap::default(), modules: FxHashMap::default() }
    }

    pub(super) fn amount(&self, row: RatioRow) -> Amount {
        let own =
            |rows: &FxHashMap<FrameIndex, FunctionRow>, frame| rows.get(&frame).map_or(Amount::ZERO, |row| row.own);
        match row {
            RatioRow::Path(node) => self.shape.total(node),
            RatioRow::Function(frame) => own(&self.functions, frame),
            RatioRow::Module(module) => own(&self.modules, module),
        }
    }
}

/// An event's name without what stands for where it is counted.
fn plain(name: &str) -> String {
    name.split(':').next().unwrap_or_default().to_ascii_lowercase()
}

/// Which events of these names make the ratio that is shown with one of them: what counts work, before what counts
/// time.
fn choose(names: &[String], event: usize) -> Option<(RatioKind, usize, usize)> {
    let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    let instructions = find(&["instructions", "inst_retired.any", "instructions_retired"]);
    let cycles = find(&["cycles", "cpu-cycles", "cpu_clk_unhalted.thread"]);
    let clock = find(&["task-clock", "cpu-clock"]);
    if let (Some(instructions), Some(cycles)) = (instructions, cycles)
        && [instructions, cycles].contains(&event)
    {
        return Some((RatioKind::Ipc, instructions, cycles));
    }
    let bases =
        [(RatioKind::PerInstructions, instructions), (RatioKind::PerCycles, cycles), (RatioKind::PerSecond, clock)];
    if bases.iter().any(|(_, base)| *base == Some(event)) {
        return None;
    }
    bases.into_iter().find_map(|(kind, base)| base.map(|base| (kind, event, base)))
}

impl super::ProfileState {
    /// The ratio that is shown, if one says more of the event.
    pub(in crate::tui) fn ratio_kind(&self) -> Option<RatioKind> {
        self.ratio.as_ref().map(|ratio| ratio.kind)
    }

    /// The ratio on a row; `None` where there is none.
    pub(in crate::tui) fn ratio_on(&self, row: RatioRow, confidence: Confidence) -> Option<Uncertain> {
        self.ratio.as_ref()?.on(row, confidence)
    }

    /// The row of a tree for its ratio; callers have none.
    pub(in crate::tui) fn ratio_row(&self, place: &TreePlace, node: TreeNode) -> Option<RatioRow> {
        (place.direction == super::TreeDirection::Calls).then_some(RatioRow::Path(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], event: usize) -> Option<(RatioKind, usize, usize)> {
        choose(&names.iter().map(|name| plain(name)).collect::<Vec<_>>(), event)
    }

    #[test]
    fn what_counts_work_stands_before_what_counts_time() {
        let names = ["cycles:u", "L1_MISSES", "instructions", "task-clock"];
        assert_eq!(chosen(&names, 0), Some((RatioKind::Ipc, 2, 0)));
        assert_eq!(chosen(&names, 2), Some((RatioKind::Ipc, 2, 0)));
        assert_eq!(chosen(&names, 1), Some((RatioKind::PerInstructions, 1, 2)));
        assert_eq!(chosen(&["L1_MISSES", "cycles"], 0), Some((RatioKind::PerCycles, 0, 1)));
        assert_eq!(chosen(&["task-clock", "page-faults"], 1), Some((RatioKind::PerSecond, 1, 0)));
        assert_eq!(chosen(&["task-clock", "page-faults"], 0), None);
        assert_eq!((chosen(&["cycles"], 0), chosen(&["a", "b"], 0)), (None, None));
    }
}
