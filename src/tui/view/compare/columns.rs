//! Chooses the columns of the comparison.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::page::ScreenPage;
use crate::tui::model::{ClickTarget, CompareColumn};
use crate::tui::symbols::{DOWN, UP};
use crate::tui::text::{left, right, width};
use crate::tui::theme::Role;

const LEAST_NAME: usize = 13;
const LEAST_NAME_ALONE: usize = 10;
const MOST_NAME: usize = 40;
/// Cells of the head of the names with an arrow.
const LEAST_HEAD: usize = 6;

/// Cells of the columns, with the blank before each.
const VERDICT: usize = 16;
const CHANGE: usize = 8;
const CHANGE_AND_INTERVAL: usize = 16;
const SPREAD: usize = 8;
const LEAST_PLOT: usize = 14;
const MOST_PLOT: usize = 132;

/// How an event stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventLines {
    /// Its change and the verdict, where there is hardly any height.
    One,
    /// A line for each side, with a plot of its runs.
    LineASide,
}

impl EventLines {
    pub(super) fn of(panel: Rect) -> Self {
        if panel.height >= 7 { Self::LineASide } else { Self::One }
    }

    pub(super) fn rows(self) -> usize {
        if self == Self::One { 1 } else { 2 }
    }
}

/// Cells of each column, 0 where it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ComparedColumns {
    pub(super) name: usize,
    /// The letter of the side, and the mean of its runs.
    pub(super) mean: usize,
    pub(super) spread: usize,
    pub(super) plot: usize,
    pub(super) change: usize,
    pub(super) verdict: usize,
}

impl ComparedColumns {
    /// The columns that fit into `room` cells. The verdict stays, then the change, the means, and the plot.
    pub(super) fn of(
        room: usize,
        longest_name: usize,
        longest_mean: usize,
        (lines, has_test): (EventLines, bool),
    ) -> Self {
        let name = longest_name.clamp(LEAST_HEAD, MOST_NAME);
        let least_name = name.min(if lines == EventLines::One { LEAST_NAME_ALONE } else { LEAST_NAME });
        let mut spare = room.saturating_sub(VERDICT + least_name);
        let mut take = |cells: usize| {
            let fits = spare >= cells;
            spare -= if fits { cells } else { 0 };
            if fits { cells } else { 0 }
        };
        let wide = if has_test && lines == EventLines::LineASide { CHANGE_AND_INTERVAL } else { CHANGE };
        let change = take(wide);
        let (mean, plot, spread) = match lines {
            EventLines::One => (0, 0, 0),
            EventLines::LineASide => {
                let mean = take(longest_mean + 4);
                let plot = take(LEAST_PLOT + 2);
                // Names are whole before there is a column more.
                let for_name = take(name.saturating_sub(least_name));
                let spread = take(SPREAD);
                spare += for_name;
                (mean, plot, spread)
            }
        };
        // Where there is hardly any room, the verdict has it.
        let name = name.min(least_name + spare).min(room.saturating_sub(VERDICT).max(3));
        let used = name + mean + spread + plot + change + VERDICT;
        let wider = if plot > 0 { room.saturating_sub(used) } else { 0 };
        let verdict = VERDICT.min(room.saturating_sub(name));
        Self { name, mean, spread, plot: (plot + wider).min(MOST_PLOT + 2).max(plot), change, verdict }
    }
}

pub(super) fn draw_heads(page: &mut ScreenPage<'_>, row: Rect, columns: ComparedColumns) {
    let list = &page.model.comparison;
    let arrow = |column: CompareColumn| match column == list.by {
        true if list.is_ascending() => UP,
        true => DOWN,
        false => "",
    };
    let head = |column: CompareColumn, text: &str| {
        let arrow = arrow(column);
        (if arrow.is_empty() { Role::Header } else { Role::Key }, format!("{text}{arrow}"))
    };
    let mut line = Line::default();
    let mut targets = Vec::new();
    let mut push = |(role, text): (Role, String), column: Option<CompareColumn>| {
        line.push_span(page.span(role, text));
        targets.push(column.map(ClickTarget::SortComparison));
    };
    let (role, text) = head(CompareColumn::Event, "EVENT");
    push((role, format!("  {}", left(&text, columns.name))), Some(CompareColumn::Event));
    if columns.mean > 0 {
        let ((of_a, a), (of_b, b)) = (head(CompareColumn::A, "A"), head(CompareColumn::B, "B"));
        let b = format!(", {b}");
        push((of_a, right(&a, columns.mean.saturating_sub(width(&b)))), Some(CompareColumn::A));
        push((of_b, b), Some(CompareColumn::B));
    }
    if columns.spread > 0 {
        let text = if list.found.has_spread() { "SPREAD".into() } else { page.model.error_head() };
        push((Role::Header, right(&text, columns.spread)), None);
    }
    if columns.plot > 0 {
        push(
            (
                Role::Header,
                format!("  {}", left(if list.found.has_spread() { "RUNS" } else { "RUNS, from 0" }, columns.plot - 2)),
            ),
            None,
        );
    }
    if columns.change > 0 {
        let (role, text) = head(CompareColumn::Change, "CHANGE");
        push((role, right(&text, columns.change)), Some(CompareColumn::Change));
    }
    let (role, text) = head(CompareColumn::Difference, "VERDICT");
    push((role, left(&format!("  {text}"), columns.verdict)), Some(CompareColumn::Difference));
    page.heads(row, line, targets);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_and_the_verdict_stays() {
        let of = |room, lines, has_test| ComparedColumns::of(room, 16, 9, (lines, has_test));
        let at_80 = of(74, EventLines::LineASide, true);
        assert_eq!(at_80, ComparedColumns { name: 13, mean: 13, spread: 0, plot: 16, change: 16, verdict: 16 });
        let wide = of(112, EventLines::LineASide, true);
        assert_eq!(wide, ComparedColumns { name: 16, mean: 13, spread: 8, plot: 43, change: 16, verdict: 16 });
        let small = of(34, EventLines::One, true);
        assert_eq!(small, ComparedColumns { name: 10, change: 8, verdict: 16, ..ComparedColumns::default() });
        let smallest = of(14, EventLines::One, true);
        assert_eq!(smallest, ComparedColumns { name: 3, verdict: 11, ..ComparedColumns::default() });
        for (lines, has_test) in
            [(EventLines::One, false), (EventLines::LineASide, false), (EventLines::LineASide, true)]
        {
            for room in 20..250 {
                let ComparedColumns { name, mean, spread, plot, change, verdict } = of(room, lines, has_test);
                assert!(name + mean + spread + plot + change + verdict <= room, "{room}");
            }
        }
    }
}
