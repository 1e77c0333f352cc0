//! Draws the events of two recordings side by side, and the histories of the selected one.
//!
//! A difference is marked only where the intervals of the two numbers have nothing in common.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::chart::{self, Chart, Clock, Series};
use super::layout::split_below;
use super::{Page, Target, top};
use crate::monitor::{Compared, Difference, Monitor, Point, Side};
use crate::number::{change, plus_minus};
use crate::plan::EventIndex;
use crate::rates::Uncertain;
use crate::tui::figures::Basis;
use crate::tui::model::CompareColumn;
use crate::tui::symbols::{CURSOR, DOWN, MISSING, SAME, UP};
use crate::tui::text::{amount, cut_middle, left, right, width};
use crate::tui::theme::Role;
use crate::units::WallNs;
use crate::words::shown;

const LEAST_NAME: usize = 12;
const MOST_NAME: usize = 40;

/// A column, with what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    A,
    AError,
    B,
    BError,
    Change,
    Difference,
}

/// All columns, in the order of the screen.
const ALL: [Column; 6] = [Column::A, Column::AError, Column::B, Column::BError, Column::Change, Column::Difference];

/// The order in which columns leave a screen that gets narrower. What is different stays.
const LEAVING: [Column; 5] = [Column::BError, Column::AError, Column::A, Column::B, Column::Change];

impl Column {
    fn width(self) -> usize {
        match self {
            Self::A | Self::B => 10,
            Self::AError | Self::BError | Self::Change => 7,
            Self::Difference => 13,
        }
    }

    fn sorted_by(self) -> Option<CompareColumn> {
        match self {
            Self::A => Some(CompareColumn::A),
            Self::B => Some(CompareColumn::B),
            Self::Change => Some(CompareColumn::Change),
            Self::Difference => Some(CompareColumn::Difference),
            Self::AError | Self::BError => None,
        }
    }
}

/// The columns behind the name that fit into `room` cells, and the cells of the name.
fn layout(room: usize, longest_name: usize) -> (Vec<Column>, usize) {
    let name = longest_name.clamp(5, MOST_NAME);
    let used = |columns: &[Column]| columns.iter().map(|column| column.width() + 1).sum::<usize>();
    let mut columns = ALL.to_vec();
    for leaving in LEAVING {
        if used(&columns) + name.min(LEAST_NAME) <= room {
            break;
        }
        columns.retain(|column| *column != leaving);
    }
    let name = room.saturating_sub(used(&columns)).clamp(3, name);
    (columns, name)
}

pub(super) fn draw(page: &mut Page<'_>, area: Rect) {
    let chart = if area.height >= 14 { (area.height * 2 / 5).max(8) } else { 0 };
    let (table, chart) = split_below(area, chart);
    draw_table(page, table);
    if chart.height > 0 {
        draw_histories(page, chart);
    }
}

fn draw_table(page: &mut Page<'_>, area: Rect) {
    let model = page.model;
    let list = &model.comparison;
    let inner = page.panel(area, title(page), count(page), true);
    let names = list.all.iter().map(|one| width(&shown(&one.name)));
    let (columns, name) = layout(usize::from(inner.width).saturating_sub(2), names.max().unwrap_or(5));
    let mut rows = inner.rows().peekable();
    let has_heads = inner.height >= 3;
    if let Some(row) = rows.next_if(|_| has_heads) {
        page.line(row, heads(page, &columns, name));
    }
    if list.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    let height = usize::from(inner.height.saturating_sub(u16::from(has_heads)));
    let selected = list.order.iter().position(|&place| place == list.selected).unwrap_or(0);
    for (&place, row) in list.order.iter().skip(top(selected, list.order.len(), height)).zip(rows) {
        let is_selected = place == list.selected;
        let line = event_line(page, &list.all[place], &columns, name, is_selected);
        page.line(row, line);
        page.target(row, Target::Compared(place));
        if is_selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
}

fn title(page: &Page<'_>) -> Line<'static> {
    let model = page.model;
    let mut line = Line::from(page.span(Role::Title, "Compare"));
    // A filter and what it leaves must be seen.
    if let Some(beside) = model.beside.as_ref().filter(|_| model.comparison.filter.is_empty()) {
        for (letter, name) in ["A", "B"].into_iter().zip(&beside.names) {
            line.push_span(page.span(Role::Border, if letter == "A" { " ─ " } else { "  " }));
            line.push_span(page.span(Role::Key, format!("{letter} ")));
            line.push_span(page.span(Role::Dim, cut_middle(&shown(name), 20).into_owned()));
        }
    }
    if let Some(column) = model.comparison.by {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Dim, format!("by {}", column.word())));
    }
    if model.basis == Basis::Raw {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Dim, model.basis.word()));
    }
    if !model.comparison.filter.is_empty() {
        line.push_span(page.span(Role::Border, " ─ "));
        let text = shown(model.comparison.filter.text()).into_owned();
        line.push_span(page.span(Role::Match, format!("filter: {text}")));
    }
    line
}

fn count(page: &Page<'_>) -> Line<'static> {
    let list = &page.model.comparison;
    let apart = list.all.iter().filter(|one| one.difference.is_apart()).count();
    let (some, all) = (list.order.len(), list.all.len());
    Line::from(page.span(Role::Dim, format!("{apart} apart, {some} of {all}")))
}

fn heads(page: &Page<'_>, columns: &[Column], name: usize) -> Line<'static> {
    let (model, list) = (page.model, &page.model.comparison);
    let suffix = model.measure.suffix(model.monitor.header());
    let arrow = |column| match list.by {
        Some(by) if Some(by) == column => {
            if list.is_ascending() {
                UP
            } else {
                DOWN
            }
        }
        _ => "",
    };
    let role = |arrow: &str| if arrow.is_empty() { Role::Header } else { Role::Key };
    let of_name = arrow(Some(CompareColumn::Event));
    let mut line = Line::from(page.span(role(of_name), format!("  {}", left(&format!("EVENT{of_name}"), name))));
    for &column in columns {
        let text = match column {
            Column::A => format!("A{suffix}"),
            Column::B => format!("B{suffix}"),
            Column::AError | Column::BError => model.error_head(),
            Column::Change => "CHANGE".into(),
            Column::Difference => "B IS".into(),
        };
        let arrow = arrow(column.sorted_by());
        let text = format!("{text}{arrow}");
        let field = match column {
            Column::Difference => format!("  {}", left(&text, column.width() - 1)),
            _ => right(&text, column.width() + 1),
        };
        line.push_span(page.span(role(arrow), field));
    }
    line
}

fn event_line(page: &Page<'_>, one: &Compared, columns: &[Column], name: usize, selected: bool) -> Line<'static> {
    let cursor = if selected { CURSOR } else { " " };
    let mut line = Line::from(page.span(Role::Key, format!("{cursor} ")));
    let text = cut_middle(&shown(&one.name), name).into_owned();
    line.push_span(page.span(Role::Text, left(&text, name)));
    for &column in columns {
        let (role, text) = match column {
            Column::A => (Role::Title, number(one, one.a_number)),
            Column::B => (Role::Title, number(one, one.b_number)),
            Column::AError => (Role::Dim, error(one, one.a_number)),
            Column::BError => (Role::Dim, error(one, one.b_number)),
            Column::Change => (Role::Text, one.change().map_or_else(|| MISSING.into(), change)),
            Column::Difference => {
                let (glyph, role) = mark(one.difference);
                let text = left(&format!("{glyph} {}", one.difference.word()), column.width() - 1);
                line.push_span(page.span(role, format!("  {text}")));
                continue;
            }
        };
        line.push_span(page.span(role, right(&text, column.width() + 1)));
    }
    line
}

fn number(one: &Compared, number: Option<Uncertain>) -> String {
    number.map_or_else(|| format!("{MISSING} "), |number| amount(number.value, &one.unit))
}

fn error(one: &Compared, number: Option<Uncertain>) -> String {
    number.map_or_else(|| MISSING.into(), |number| plus_minus(number, &one.unit))
}

/// A glyph beside the word, and how both look.
fn mark(difference: Difference) -> (&'static str, Role) {
    match difference {
        // Whether more is worse depends on the event.
        Difference::Higher => (UP, Role::Warn),
        Difference::Lower => (DOWN, Role::Warn),
        Difference::NotApart => (SAME, Role::Dim),
        Difference::OnlyIn(_) | Difference::NoNumber => (MISSING, Role::Missing),
        Difference::NoInterval => ("?", Role::Missing),
    }
}

/// Both histories of the selected event on one axis.
fn draw_histories(page: &mut Page<'_>, area: Rect) {
    const SERIES: [[Series; 2]; 2] = [
        [
            Series { history: 0, letter: Some('A'), ..Series::CORRECTED },
            Series { history: 1, letter: Some('B'), role: Role::Raw, ..Series::CORRECTED },
        ],
        [
            Series { history: 0, letter: Some('A'), role: Role::Corrected, ..Series::RAW },
            Series { history: 1, letter: Some('B'), ..Series::RAW },
        ],
    ];
    let model = page.model;
    let (Some(one), Some(beside)) = (model.comparison.selected(), &model.beside) else {
        let _ = page.panel(area, Line::default(), Line::default(), false);
        return;
    };
    let (glyph, role) = mark(one.difference);
    let mut title = Line::from(page.span(Role::Title, shown(&one.name).into_owned()));
    title.push_span(page.span(Role::Border, " ─ "));
    title.push_span(page.span(role, format!("{glyph} {}", sentence(one))));
    let inner = page.panel(area, title, Line::from(page.span(Role::Dim, "since their starts")), false);
    let points = |monitor: &Monitor, index: Option<EventIndex>| -> Vec<Point> {
        index.map_or_else(Vec::new, |index| model.measure.points(monitor, &monitor.row(index)))
    };
    let to = model.monitor.closed_at().max(beside.monitor.closed_at());
    let chart = Chart {
        span: crate::tui::text::span,
        histories: vec![points(&model.monitor, one.a), points(&beside.monitor, one.b)],
        series: &SERIES[usize::from(model.basis == Basis::Raw)],
        clock: Clock::Start,
        from: WallNs(0),
        to,
        reference: None,
        label: &|number| amount(number, &one.unit),
    };
    chart::draw(page, inner, &chart);
}

fn sentence(one: &Compared) -> String {
    match one.difference {
        Difference::Higher | Difference::Lower => {
            let part = one
                .change()
                .map_or_else(String::new, |part| format!(" by {}", change(part.abs()).trim_start_matches('+')));
            format!("B is {}{part}: the intervals have nothing in common", one.difference.word())
        }
        Difference::NotApart => "not apart: the intervals meet".into(),
        Difference::OnlyIn(Side::A) => "only A counted it".into(),
        Difference::OnlyIn(Side::B) => "only B counted it".into(),
        Difference::NoNumber => "one of them has no number, which is not 0".into(),
        Difference::NoInterval => "how far one of them may be off isn't known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_and_the_difference_stays() {
        use Column::{A, AError, B, BError, Change, Difference};
        assert_eq!(layout(74, 14), (vec![A, AError, B, BError, Change, Difference], 14));
        assert_eq!(layout(60, 14).0, [A, B, Change, Difference]);
        assert_eq!(layout(30, 14).0, [Difference]);
        assert_eq!(layout(3, 14), (vec![Difference], 3));
        for room in 30..200 {
            let (columns, name) = layout(room, 30);
            assert!(name + columns.iter().map(|column| column.width() + 1).sum::<usize>() <= room, "{room}");
        }
    }
}
