//! Shows the difference of two profiles: the numbers of both sides on every row.

use rustc_hash::FxHashMap;

use super::ProfileState;
use super::calls::FrameIndex;
use super::ratio::{RatioRow, RatioSide};
use crate::compare::{ProfileDifference, Verdict};
use crate::events::Unit;

/// The numbers of both sides.
#[derive(Debug)]
pub(super) struct ShownDifference {
    pub(super) a: RatioSide,
    pub(super) b: RatioSide,
    /// What is known of functions that were tested.
    verdicts: FxHashMap<FrameIndex, Verdict>,
    /// The mean of a run of one of a side's weight.
    each: f64,
    /// The unit of means; `None` of shares.
    unit: Option<Unit>,
    /// Why no function is marked, where that is for want of runs.
    pub(super) note: Option<String>,
}

/// A row of both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::tui) struct RowDifference {
    /// The means of a run of each side.
    pub(in crate::tui) a: f64,
    pub(in crate::tui) b: f64,
    /// By what part of all that A has they differ.
    pub(in crate::tui) of_all: f64,
    /// What the test of the function says, where it was tested.
    pub(in crate::tui) verdict: Option<Verdict>,
}

impl ProfileState {
    /// Shows the difference of two profiles, and nothing else from now on.
    pub(in crate::tui) fn take_difference(&mut self, found: &ProfileDifference) {
        self.calls.take(&found.tree);
        self.event = found.events[0].index();
        let [a, b] = [found.events[1], found.events[2]].map(|event| RatioSide::of(&self.calls, event.index()));
        let frames = found.tree.frames().enumerate();
        let verdicts = frames.filter_map(|(place, frame)| Some((place as FrameIndex, found.tested(&frame)?.verdict)));
        let unit = match found.tree.event_of(found.events[0]).unit() {
            _ if !found.is_of_weights => None,
            "nanoseconds" => Some(Unit::Nanoseconds),
            _ => Some(Unit::Count),
        };
        let (verdicts, each) = (verdicts.collect(), found.mean(1));
        self.difference = Some(ShownDifference { a, b, verdicts, each, unit, note: found.what_it_takes() });
        self.show(super::SiblingOrder::Anew);
    }

    /// Shows the functions of both sides, those that are furthest apart first.
    pub(in crate::tui) fn show_difference(&mut self) {
        (self.event, self.chosen) = (0, None);
        self.show(super::SiblingOrder::Anew);
    }

    /// Whether it is of two profiles.
    pub(in crate::tui) fn compares(&self) -> bool {
        self.difference.is_some()
    }

    /// Whether both sides of a difference are shown, and not one of them.
    pub(in crate::tui) fn has_difference(&self) -> bool {
        self.event == 0 && self.difference.is_some()
    }

    /// The unit of a difference; `None` of shares.
    pub(in crate::tui) fn difference_unit(&self) -> Option<&Unit> {
        self.difference.as_ref()?.unit.as_ref()
    }

    /// Why no function is marked, where that is for want of runs.
    pub(in crate::tui) fn difference_note(&self) -> Option<&str> {
        let note = self.difference.as_ref().filter(|_| self.has_difference())?.note.as_deref()?;
        // What it takes is said by the screen of events.
        note.split(';').next()
    }

    /// How the sides differ on a row; `None` where no difference is shown.
    pub(in crate::tui) fn difference_on(&self, row: RatioRow) -> Option<RowDifference> {
        let shown = self.difference.as_ref().filter(|_| self.has_difference())?;
        let [a, b] = [&shown.a, &shown.b].map(|side| side.amount(row).weight as f64);
        let all = shown.a.amount(RatioRow::Path(0)).weight.max(1) as f64;
        let verdict = match row {
            RatioRow::Function(frame) => shown.verdicts.get(&frame).copied(),
            RatioRow::Path(_) | RatioRow::Module(_) => None,
        };
        Some(RowDifference { a: a * shown.each, b: b * shown.each, of_all: (b - a) / all, verdict })
    }

    /// Sums both sides below what is zoomed into, and sorts the list of functions by how far apart they are.
    pub(super) fn list_difference(&mut self) {
        let root = self.tree.root();
        let Some(shown) = &mut self.difference else { return };
        for side in [&mut shown.a, &mut shown.b] {
            side.list(root, &self.calls);
        }
        let apart = |frame: FrameIndex| {
            let own = |side: &RatioSide| side.amount(RatioRow::Function(frame)).weight;
            own(&shown.a).abs_diff(own(&shown.b))
        };
        let mut rows = std::mem::take(&mut self.functions.rows);
        rows.sort_by_key(|row| (std::cmp::Reverse(apart(row.frame)), row.frame));
        self.functions.take(rows);
    }
}
