//! Draws the rows of a profile: a table of shares with their errors.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::super::page::{ScreenPage, VisibleRows};
use super::called::CallColumns;
use crate::number;
use crate::profile::{Amount, share_error};
use crate::rates::{Error, Uncertain};
use crate::tui::model::ClickTarget;
use crate::tui::model::profile::{
    CallMeasure, FrameIndex, FrameLabel, FunctionRow, Listing, ProfileState, RowCalls, TreeNode,
};
use crate::tui::symbols::{CURSOR, MISSING};
use crate::tui::text::{cut_middle, left, right, width};
use crate::tui::theme::Role;

/// Cells of a share and of its interval.
const SHARE: usize = 6;
const INTERVAL: usize = 9;
/// Cells of a module's name.
const LEAST_MODULE: usize = 8;
const MOST_MODULE: usize = 24;
/// Cells of a function's name, before columns leave for its sake.
const LEAST_NAME: usize = 18;
/// Cells of indentation for each level.
const INDENT: usize = 2;

/// What is in front of a name.
const UNFOLDED: &str = "−";
const FOLDED: &str = "+";

/// Widths; 0 for a column that has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProfileColumns {
    name: usize,
    intervals: usize,
    own: usize,
    module: usize,
}

impl ProfileColumns {
    /// The module leaves first, then intervals, then what was sampled in the function itself.
    pub(super) fn of(room: usize) -> Self {
        let mut columns = Self { name: 0, intervals: INTERVAL, own: SHARE, module: LEAST_MODULE };
        let leaving: [fn(&mut Self) -> &mut usize; 3] =
            [|columns| &mut columns.module, |columns| &mut columns.intervals, |columns| &mut columns.own];
        for column in leaving {
            if columns.rest() + LEAST_NAME > room {
                *column(&mut columns) = 0;
            }
        }
        if columns.module > 0 {
            let spare = room - columns.rest() - LEAST_NAME;
            columns.module += (spare / 3).min(MOST_MODULE - LEAST_MODULE);
        }
        columns.name = room.saturating_sub(columns.rest()).max(1);
        columns
    }

    fn rest(&self) -> usize {
        let gap = |width: usize| if width > 0 { width + 1 } else { 0 };
        let intervals = gap(self.intervals);
        let own = if self.own > 0 { self.own + 2 + intervals } else { 0 };
        2 + SHARE + 1 + intervals + own + if self.module > 0 { self.module + 2 } else { 0 }
    }
}

/// The columns of what is shown.
#[derive(Clone, Copy, Debug)]
pub(super) enum TableColumns {
    /// Shares of samples with their intervals.
    Sampled(ProfileColumns),
    /// What was measured of calls.
    Called(CallColumns),
}

impl TableColumns {
    pub(super) fn of(room: usize, profile: &ProfileState) -> Self {
        match profile.call_measure() {
            Some(_) => Self::Called(CallColumns::of(room)),
            None => Self::Sampled(ProfileColumns::of(room)),
        }
    }

    fn name(&self) -> usize {
        match self {
            Self::Sampled(columns) => columns.name,
            Self::Called(columns) => columns.name(),
        }
    }
}

pub(super) fn draw_heads(page: &mut ScreenPage<'_>, row: Rect, profile: &ProfileState, columns: &TableColumns) {
    let next = format!("{} (t: {})", profile.listing.word().to_uppercase(), profile.listing.next().word());
    let text = match columns {
        TableColumns::Sampled(columns) => sampled_heads(page, columns, &next),
        TableColumns::Called(columns) => {
            let measure = profile.call_measure().unwrap_or(&CallMeasure::Time);
            columns.heads(&next, &page.model.error_head(), measure)
        }
    };
    page.line(row, Line::from(page.span(Role::Header, text)));
}

fn sampled_heads(page: &ScreenPage<'_>, columns: &ProfileColumns, next: &str) -> String {
    let interval = format!("{} CI", page.model.monitor.confidence());
    let mut text = format!("  {} {}", left(next, columns.name), right("TOTAL", SHARE));
    if columns.intervals > 0 {
        text += &format!(" {}", right(&interval, INTERVAL));
    }
    if columns.own > 0 {
        text += &format!("  {}", right("SELF", SHARE));
        if columns.intervals > 0 {
            text += &format!(" {}", right(&interval, INTERVAL));
        }
    }
    if columns.module > 0 {
        text += &format!("  {}", left("MODULE", columns.module));
    }
    text
}

pub(super) fn draw(
    page: &mut ScreenPage<'_>,
    area: Rect,
    profile: &ProfileState,
    (columns, first): (&TableColumns, usize),
    focus: bool,
) {
    match profile.listing {
        Listing::Flat => {
            for (function, place) in profile.functions.iter().skip(first).zip(area.rows()) {
                draw_function(page, place, function, profile, columns);
                select(page, place, focus && function.frame == profile.function);
            }
        }
        Listing::Tree | Listing::Callers => {
            let place = profile.place();
            for (&node, row) in place.rows.iter().skip(first).zip(area.rows()) {
                draw_node(page, row, node, profile, columns);
                select(page, row, focus && node == place.selected);
            }
        }
    }
}

/// The rows of the listing that are on the screen.
pub(super) fn rows(area: Rect, profile: &ProfileState) -> VisibleRows {
    let rows = usize::from(area.height);
    let (selected, line, all) = listed(profile);
    VisibleRows { first: first_row(selected, line, all, rows), rows, all }
}

/// The same where the table has no frame, and the line that is kept for what says that rows are hidden.
pub(super) fn lines(area: Rect, profile: &ProfileState) -> (VisibleRows, Rect) {
    let (selected, line, all) = listed(profile);
    VisibleRows::in_lines(area, all, |rows| first_row(selected, line, all, rows))
}

/// The selected row of the listing, its line on the screen, and how many rows there are.
fn listed(profile: &ProfileState) -> (usize, usize, usize) {
    match profile.listing {
        Listing::Flat => (profile.function_row(), profile.line, profile.functions.len()),
        Listing::Tree | Listing::Callers => {
            let place = profile.place();
            (place.row(), place.line, place.rows.len())
        }
    }
}

/// The first row to show, so that the selected one stands on its line, or as near to it as there are rows.
fn first_row(selected: usize, line: usize, count: usize, height: usize) -> usize {
    let line = line.min(height.saturating_sub(1));
    selected.saturating_sub(line).min(count.saturating_sub(height))
}

fn select(page: &mut ScreenPage<'_>, row: Rect, is_selected: bool) {
    if is_selected {
        page.select(Rect { x: row.x.saturating_sub(1), width: row.width + 2, ..row });
    }
}

fn draw_node(page: &mut ScreenPage<'_>, row: Rect, node: TreeNode, profile: &ProfileState, columns: &TableColumns) {
    let place = profile.place();
    let shape = &place.shape;
    let level = shape.depth(node) - shape.depth(place.root());
    // However deep, there is room for a name.
    let indent = (level * INDENT).min(columns.name() / 2);
    let is_cut = indent < level * INDENT;
    let mark = match (shape.has_children(node), place.is_open(node)) {
        (false, _) => " ",
        (true, true) => UNFOLDED,
        (true, false) => FOLDED,
    };
    let before = format!("{}{}{mark} ", " ".repeat(indent - usize::from(is_cut)), if is_cut { "…" } else { "" });
    let name = FunctionName { before, frame: shape.frame(node), is_selected: node == place.selected };
    let calls = profile.calls_of_node(node);
    draw_row(page, row, &name, &RowNumbers { total: shape.total(node), own: shape.own(node), calls }, profile, columns);
    page.target(row, ClickTarget::Frame(node));
}

fn draw_function(
    page: &mut ScreenPage<'_>,
    row: Rect,
    function: &FunctionRow,
    profile: &ProfileState,
    columns: &TableColumns,
) {
    let is_selected = function.frame == profile.function;
    let name = FunctionName { before: String::new(), frame: function.frame, is_selected };
    let calls = profile.calls_of_function(function.frame);
    draw_row(page, row, &name, &RowNumbers { total: function.total, own: function.own, calls }, profile, columns);
    page.target(row, ClickTarget::Function(function.frame));
}

/// What a row shows beside its name.
pub(super) struct RowNumbers {
    pub(super) total: Amount,
    pub(super) own: Amount,
    pub(super) calls: Option<RowCalls>,
}

struct FunctionName {
    before: String,
    frame: FrameIndex,
    is_selected: bool,
}

fn draw_row(
    page: &mut ScreenPage<'_>,
    row: Rect,
    name: &FunctionName,
    numbers: &RowNumbers,
    profile: &ProfileState,
    columns: &TableColumns,
) {
    let label = profile.calls.label(name.frame);
    let cursor = if name.is_selected { CURSOR } else { " " };
    let room = columns.name().saturating_sub(width(&name.before));
    let role = if profile.is_hit(name.frame) { Role::Match } else { Role::Text };
    let text = cut_middle(&label.name, room).into_owned();
    let rest = " ".repeat(room.saturating_sub(width(&text)) + 1);
    let mut line = Line::from(vec![
        page.span(Role::Key, format!("{cursor} ")),
        page.span(Role::Dim, name.before.clone()),
        page.span(role, text),
        Span::raw(rest),
    ]);
    line.spans.extend(match columns {
        TableColumns::Sampled(columns) => shares(page, label, numbers, profile, columns),
        TableColumns::Called(columns) => columns.numbers(page, numbers, profile),
    });
    page.line(row, line);
}

fn shares(
    page: &ScreenPage<'_>,
    label: &FrameLabel,
    numbers: &RowNumbers,
    profile: &ProfileState,
    columns: &ProfileColumns,
) -> Vec<Span<'static>> {
    let mut spans = share(page, numbers.total, profile, columns, Role::Title);
    if columns.own > 0 {
        spans.push(Span::raw("  "));
        spans.extend(share(page, numbers.own, profile, columns, Role::Text));
    }
    if columns.module > 0 {
        spans.push(page.span(Role::Dim, format!("  {}", left(&module(label, columns.module), columns.module))));
    }
    spans
}

fn module(label: &FrameLabel, room: usize) -> String {
    cut_middle(&label.module, room).into_owned()
}

/// A share and the interval that it lies in, in percent of all. Its error has no `±`: that stands for percents of the
/// number before it, and these would be percents of all.
fn share(
    page: &ScreenPage<'_>,
    amount: Amount,
    profile: &ProfileState,
    columns: &ProfileColumns,
    role: Role,
) -> Vec<Span<'static>> {
    let share = profile.share(amount);
    let mut spans = vec![page.span(role, right(&number::share(share), SHARE))];
    if columns.intervals > 0 {
        spans.push(
            page.span(Role::Dim, format!(" {}", right(&interval(share, error(page, amount, profile)), INTERVAL))),
        );
    }
    spans
}

/// The error of a share; none for the whole, which is no estimate.
fn error(page: &ScreenPage<'_>, amount: Amount, profile: &ProfileState) -> Error {
    match amount == profile.whole() {
        true => Error::Exact,
        false if !profile.has_samples() => Error::Unknown,
        false => share_error(profile.share(amount), profile.whole().samples, page.model.monitor.confidence()),
    }
}

/// `11.9–12.7`; `?` where it isn't known.
pub(in crate::tui::view) fn interval(share: f64, error: Error) -> String {
    match (error, Uncertain { value: share, error }.bounds()) {
        (Error::Exact, _) => MISSING.into(),
        (_, Some((low, high))) => number::share_interval(low, high),
        (_, None) => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_in_order_and_take_no_more_than_there_is() {
        for room in 12..200 {
            let columns = ProfileColumns::of(room);
            assert!(columns.rest() + columns.name <= room.max(12), "{room}: {columns:?}");
            assert!(columns.module == 0 || columns.intervals > 0);
            assert!(columns.intervals == 0 || columns.own > 0);
        }
        assert!(
            ProfileColumns::of(76).module > 0
                && ProfileColumns::of(56).module == 0
                && ProfileColumns::of(56).intervals > 0
        );
    }

    #[test]
    fn shares_have_an_interval() {
        assert_eq!(interval(0.123, Error::Within { below: 0.004, above: 0.005 }), "11.9–12.8");
        assert_eq!((interval(1.0, Error::Exact), interval(0.5, Error::Unknown)), ("—".into(), "?".into()));
    }

    #[test]
    fn the_selected_row_keeps_its_line() {
        assert_eq!(first_row(10, 4, 100, 12), 6);
        assert_eq!(first_row(3, 4, 100, 12), 0);
        assert_eq!(first_row(99, 2, 100, 12), 88);
        assert_eq!(first_row(5, 40, 100, 12), 0);
    }
}
