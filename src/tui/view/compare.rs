//! Draws the events of two sets of recordings side by side, and the runs and histories of the selected one.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::chart::{self, Chart, Series, TimeOrigin};
use super::page::{ScreenPage, VisibleRows, fit_beside, make_room};
use crate::compare::{ComparedEvent, RunComparison, Runs, Side, Verdict};
use crate::events::Unit;
use crate::monitor::{Measure, Monitor, Point};
use crate::names::shown;
use crate::number::{percent, plus_minus};
use crate::plan::RowIndex;
use crate::text::difference;
use crate::tui::figures::ShownValues;
use crate::tui::layout::split_below;
use crate::tui::model::{ClickTarget, CompareColumn};
use crate::tui::symbols::{CURSOR, DOWN, MISSING, OK, SAME, UP};
use crate::tui::text::{amount, cut, cut_middle, left, right, width};
use crate::tui::theme::Role;
use crate::units::WallNs;

const LEAST_NAME: usize = 12;
const MOST_NAME: usize = 40;

/// Cells of a recording's name in the title, at least.
const LEAST_FILE: usize = 8;

/// Cells of the border that the two titles leave free: corners, blanks and the line between them.
const AROUND: usize = 8;

/// A column, with what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparedColumn {
    A,
    ASpread,
    B,
    BSpread,
    Change,
    Interval,
    P,
    Verdict,
    Needs,
}

/// In the order of the screen.
const ALL: [ComparedColumn; 9] = [
    ComparedColumn::A,
    ComparedColumn::ASpread,
    ComparedColumn::B,
    ComparedColumn::BSpread,
    ComparedColumn::Change,
    ComparedColumn::Interval,
    ComparedColumn::P,
    ComparedColumn::Verdict,
    ComparedColumn::Needs,
];

/// The order in which columns leave a screen that gets narrower. What differs stays.
const LEAVING: [ComparedColumn; 8] = [
    ComparedColumn::BSpread,
    ComparedColumn::ASpread,
    ComparedColumn::Needs,
    ComparedColumn::P,
    ComparedColumn::A,
    ComparedColumn::B,
    ComparedColumn::Interval,
    ComparedColumn::Change,
];

impl ComparedColumn {
    fn width(self) -> usize {
        match self {
            Self::P => 5,
            Self::ASpread | Self::BSpread | Self::Change => 7,
            Self::Needs => 8,
            Self::A | Self::B => 9,
            Self::Verdict => 13,
            Self::Interval => 15,
        }
    }

    fn sorted_by(self) -> Option<CompareColumn> {
        match self {
            Self::A => Some(CompareColumn::A),
            Self::B => Some(CompareColumn::B),
            Self::Change => Some(CompareColumn::Change),
            Self::Verdict => Some(CompareColumn::Difference),
            Self::ASpread | Self::BSpread | Self::Interval | Self::P | Self::Needs => None,
        }
    }
}

/// The columns behind the name that fit into `room` cells, and the cells of the name. One run each has nothing to
/// test.
fn layout(room: usize, longest_name: usize, has_spread: bool) -> (Vec<ComparedColumn>, usize) {
    let name = longest_name.clamp(5, MOST_NAME);
    let used = |columns: &[ComparedColumn]| columns.iter().map(|column| column.width() + 1).sum::<usize>();
    let mut columns = ALL.to_vec();
    columns.retain(|column| {
        has_spread || !matches!(column, ComparedColumn::Interval | ComparedColumn::P | ComparedColumn::Needs)
    });
    for leaving in LEAVING {
        if used(&columns) + name.min(LEAST_NAME) <= room {
            break;
        }
        columns.retain(|column| *column != leaving);
    }
    let name = room.saturating_sub(used(&columns)).clamp(3, name);
    (columns, name)
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let below = if area.height >= 14 { (area.height * 2 / 5).max(8) } else { 0 };
    let (table, below) = split_below(area, below);
    draw_table(page, table);
    if below.height > 0 {
        draw_selected(page, below);
    }
}

fn draw_table(page: &mut ScreenPage<'_>, area: Rect) {
    let list = &page.model.comparison;
    let height = area.height.saturating_sub(2);
    let has_heads = height >= 3;
    // Why nothing has a verdict must be seen before any number is.
    let what_it_takes = list.found.what_it_takes().filter(|_| height >= 5);
    let selected = list.order.iter().position(|&place| place == list.selected).unwrap_or(0);
    let above = usize::from(has_heads) + usize::from(what_it_takes.is_some());
    let on_screen = VisibleRows::in_panel(area, above, selected, list.order.len());
    let count = count(page, on_screen, area);
    let mut title = title(page, usize::from(area.width), count.width());
    if !on_screen.is_whole() {
        make_room(&mut title, &count, area);
    }
    let inner = page.panel(area, title, count, true);
    let names = list.found.events.iter().map(|one| width(&shown(&one.name)));
    let room = usize::from(inner.width).saturating_sub(2);
    let (columns, name) = layout(room, names.max().unwrap_or(5), list.found.has_spread());
    let mut rows = inner.rows().peekable();
    if let Some(row) = rows.next_if(|_| has_heads) {
        let sorts = columns.iter().map(|column| column.sorted_by());
        let sorts = std::iter::once(Some(CompareColumn::Event)).chain(sorts);
        page.heads(row, heads(page, &columns, name), sorts.map(|column| column.map(ClickTarget::SortComparison)));
    }
    if list.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    if let Some((words, row)) = what_it_takes.and_then(|words| Some((words, rows.next()?))) {
        let text = format!("  {}", cut(&words, room));
        page.line(row, Line::from(page.span(Role::Warn, text)));
    }
    for (&place, row) in list.order.iter().skip(on_screen.first).zip(rows) {
        let is_selected = place == list.selected;
        let line = event_line(page, &list.found.events[place], &columns, name, is_selected);
        page.line(row, line);
        page.target(row, ClickTarget::Compared(place));
        if is_selected {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
}

/// `beside`: cells of what stands at the right of it.
fn title(page: &ScreenPage<'_>, room: usize, beside: usize) -> Line<'static> {
    let model = page.model;
    let mut line = Line::from(page.span(Role::Title, "Compare"));
    // A filter and what it leaves must be seen.
    if let Some(others) = model.others.as_ref().filter(|_| model.comparison.filter.is_empty()) {
        let more = others.names().map(|(_, more)| if more == 0 { String::new() } else { format!(" +{more}") });
        let taken = beside + width("Compare ─ A   B ") + more.iter().map(String::len).sum::<usize>() + AROUND;
        let most = (room / 5).clamp(14, 40).min(room.saturating_sub(taken) / 2).max(LEAST_FILE);
        for (place, (letter, (name, _))) in ["A", "B"].into_iter().zip(others.names()).enumerate() {
            line.push_span(page.span(Role::Border, if letter == "A" { " ─ " } else { "  " }));
            line.push_span(page.span(Role::Key, format!("{letter} ")));
            let text = format!("{}{}", cut_middle(&shown(name), most), more[place]);
            line.push_span(page.span(Role::Dim, text));
        }
    }
    let mut note = |role: Role, text: String| {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(role, text));
    };
    if model.measures.of_all() == Measure::Total && room >= 70 {
        note(Role::Dim, "totals".into());
    }
    if model.comparison.by != CompareColumn::default() {
        note(Role::Dim, format!("by {}", model.comparison.by.word()));
    }
    if model.basis == ShownValues::Raw {
        note(Role::Dim, model.basis.word().into());
    }
    if !model.comparison.filter.is_empty() {
        note(Role::Match, format!("filter: {}", shown(model.comparison.filter.text())));
    }
    line
}

/// How many differ, and how many rows are hidden; where there is little room, only these.
fn count(page: &ScreenPage<'_>, on_screen: VisibleRows, area: Rect) -> Line<'static> {
    let list = &page.model.comparison;
    let all = list.found.events.len();
    let differ = list.found.is_enough.then(|| format!("{} of {all} differ", list.found.differing()));
    if on_screen.is_whole() && list.order.len() == all {
        return Line::from(page.span(Role::Dim, differ.unwrap_or_else(|| format!("{all} events"))));
    }
    let role = if on_screen.is_whole() { Role::Dim } else { Role::Warn };
    let hidden = Line::from(page.span(role, on_screen.words(all, None)));
    let both = differ.map(|differ| Line::from(page.span(role, format!("{differ}, {}", on_screen.words(all, None)))));
    both.filter(|both| fit_beside(&Line::raw("Compare"), both, area)).unwrap_or(hidden)
}

fn heads(page: &ScreenPage<'_>, columns: &[ComparedColumn], name: usize) -> Line<'static> {
    let (model, list) = (page.model, &page.model.comparison);
    let suffix = model.measures.of_all().suffix(model.monitor.header());
    let arrow = |column: Option<CompareColumn>| match column {
        Some(column) if column == list.by => {
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
            ComparedColumn::A => format!("A{suffix}"),
            ComparedColumn::B => format!("B{suffix}"),
            ComparedColumn::ASpread | ComparedColumn::BSpread if list.found.has_spread() => "SPREAD".into(),
            ComparedColumn::ASpread | ComparedColumn::BSpread => model.error_head(),
            ComparedColumn::Change => "CHANGE".into(),
            ComparedColumn::Interval => "INTERVAL".into(),
            ComparedColumn::P => "P".into(),
            ComparedColumn::Verdict => "VERDICT".into(),
            ComparedColumn::Needs => "SEEN IN".into(),
        };
        let arrow = arrow(column.sorted_by());
        let text = format!("{text}{arrow}");
        let field = match column {
            ComparedColumn::Verdict => format!("  {}", left(&text, column.width() - 1)),
            _ => right(&text, column.width() + 1),
        };
        line.push_span(page.span(role(arrow), field));
    }
    line
}

fn event_line(
    page: &ScreenPage<'_>,
    one: &ComparedEvent,
    columns: &[ComparedColumn],
    name: usize,
    selected: bool,
) -> Line<'static> {
    let found = &page.model.comparison.found;
    let cursor = if selected { CURSOR } else { " " };
    let mut line = Line::from(page.span(Role::Key, format!("{cursor} ")));
    let text = cut_middle(&shown(&one.name), name).into_owned();
    line.push_span(page.span(Role::Text, left(&text, name)));
    for &column in columns {
        let missing = || MISSING.to_owned();
        let (role, text) = match column {
            ComparedColumn::A => (Role::Title, mean(one, &one.a)),
            ComparedColumn::B => (Role::Title, mean(one, &one.b)),
            ComparedColumn::ASpread => (Role::Dim, spread(found, &one.a, &one.unit)),
            ComparedColumn::BSpread => (Role::Dim, spread(found, &one.b, &one.unit)),
            ComparedColumn::Change => (Role::Text, one.change().map_or_else(missing, difference::change)),
            ComparedColumn::Interval => (Role::Text, one.interval.map_or_else(missing, difference::interval)),
            ComparedColumn::P => (Role::Dim, one.p.map_or_else(missing, difference::p_value)),
            ComparedColumn::Needs => {
                (Role::Dim, one.verdict.needs().map_or_else(String::new, |runs| format!("{runs} runs")))
            }
            ComparedColumn::Verdict => {
                let (glyph, role) = mark(one.verdict);
                let text = left(&format!("{glyph} {}", one.verdict.word()), column.width() - 1);
                line.push_span(page.span(role, format!("  {text}")));
                continue;
            }
        };
        line.push_span(page.span(role, right(&text, column.width() + 1)));
    }
    line
}

fn mean(one: &ComparedEvent, runs: &Runs) -> String {
    runs.mean().map_or_else(|| MISSING.into(), |mean| difference::mean(mean, &one.unit))
}

/// The standard deviation between runs as a part of their mean; of one run each, what that one may be off by.
fn spread(found: &RunComparison, runs: &Runs, unit: &Unit) -> String {
    match runs.numbers.first() {
        Some(number) if !found.has_spread() => plus_minus(*number, unit),
        _ => runs.relative_deviation().map_or_else(|| MISSING.into(), percent),
    }
}

/// A glyph beside the word, and how both look.
fn mark(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        // Whether more is worse depends on the event.
        Verdict::Higher => (UP, Role::Warn),
        Verdict::Lower => (DOWN, Role::Warn),
        Verdict::Equal => (SAME, Role::Dim),
        Verdict::Unclear { .. } | Verdict::TooFewRuns { .. } | Verdict::Partial => ("?", Role::Dim),
        Verdict::OnlyIn(_) | Verdict::NoNumber => (MISSING, Role::Missing),
    }
}

/// The runs of the selected event, and the histories of the first of each side on one axis.
fn draw_selected(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let Some(one) = model.comparison.selected() else {
        let _ = page.panel(area, Line::default(), Line::default(), false);
        return;
    };
    let (glyph, role) = mark(one.verdict);
    let mut title = Line::from(page.span(Role::Title, shown(&one.name).into_owned()));
    title.push_span(page.span(Role::Border, " ─ "));
    title.push_span(page.span(role, format!("{glyph} {}", sentence(&model.comparison.found, one))));
    let drift = "all of one side ran first: a drift looks like a difference";
    let words = if model.comparison.found.is_one_after_other { drift } else { "since their starts" };
    let mut inner = page.panel(area, title, Line::from(page.span(Role::Dim, words)), false);
    if model.comparison.found.has_spread() {
        let (above, below) = split_below(inner, inner.height.saturating_sub(2));
        draw_runs(page, above, one);
        inner = below;
    }
    if inner.height >= 4 {
        draw_histories(page, inner, one);
    }
}

/// A line a side: each run where its number is between the least and the largest of all.
fn draw_runs(page: &mut ScreenPage<'_>, area: Rect, one: &ComparedEvent) {
    let label = usize::from(area.width / 3).min(34);
    let room = usize::from(area.width).saturating_sub(label + 3);
    let values = |runs: &Runs| runs.numbers.iter().map(|number| number.value).collect::<Vec<_>>();
    let all = [values(&one.a), values(&one.b)].concat();
    let ends =
        (all.iter().copied().fold(f64::INFINITY, f64::min), all.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    for ((letter, runs, role), row) in
        [("A", &one.a, Role::Corrected), ("B", &one.b, Role::Raw)].into_iter().zip(area.rows())
    {
        let spread = runs
            .deviation()
            .map_or_else(String::new, |deviation| format!(" σ {}", amount(deviation, &one.unit).trim()));
        let words = format!("{}{spread} n={}", mean(one, runs), runs.numbers.len());
        let mut line = Line::from(page.span(Role::Key, format!("{letter} ")));
        line.push_span(page.span(role, strip(&values(runs), ends, room)));
        line.push_span(page.span(Role::Dim, format!(" {}", left(&words, label))));
        page.line(row, line);
    }
}

/// Values as dots in so many cells between two ends; what is all the same stands in the middle.
fn strip(values: &[f64], (low, high): (f64, f64), cells: usize) -> String {
    let mut places = vec!["·"; cells];
    for value in values {
        let part = if high > low { (value - low) / (high - low) } else { 0.5 };
        if let Some(place) = places.get_mut((part * cells.saturating_sub(1) as f64).round() as usize) {
            *place = OK;
        }
    }
    places.concat()
}

fn draw_histories(page: &mut ScreenPage<'_>, inner: Rect, one: &ComparedEvent) {
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
    let Some(other) = model.others.as_ref().and_then(|others| others.first()) else { return };
    let points = |monitor: &Monitor, index: Option<RowIndex>| -> Vec<Point> {
        index.map_or_else(Vec::new, |index| model.measures.of_all().points(monitor, &monitor.row(index)))
    };
    let chart = Chart {
        span: crate::tui::text::span,
        histories: vec![points(&model.monitor, one.a.index), points(other, one.b.index)],
        series: &SERIES[usize::from(model.basis == ShownValues::Raw)],
        clock: TimeOrigin::Start,
        from: WallNs(0),
        to: model.monitor.closed_at().max(other.closed_at()),
        levels: Vec::new(),
        changes: Vec::new(),
        label: &|number| amount(number, &one.unit),
    };
    chart::draw(page, inner, &chart);
}

fn sentence(found: &RunComparison, one: &ComparedEvent) -> String {
    let by = one
        .change()
        .map_or_else(String::new, |part| format!(" by {}", difference::change(part).trim_start_matches(['+', '−'])));
    let p = one.p.map_or_else(String::new, |p| format!(", p {}", difference::p_value(p)));
    match one.verdict {
        Verdict::Higher | Verdict::Lower => format!("B is {}{by}{p}", one.verdict.word()),
        Verdict::Unclear { needs: Some(runs) } => format!("can't tell{p}; if it is so, {runs} runs of each show it"),
        Verdict::Unclear { needs: None } => format!("can't tell{p}; too small to be shown by 1,000 runs of each"),
        Verdict::TooFewRuns { needs } => match found.runs {
            [1, 1] => format!("one run each: can't tell; {needs} of each can"),
            [a, b] => format!("{a} and {b} runs: can't tell; {needs} of each can"),
        },
        Verdict::Equal => "equal to the last digit shown".into(),
        Verdict::OnlyIn(Side::A) => "only A counted it".into(),
        Verdict::OnlyIn(Side::B) => "only B counted it".into(),
        Verdict::NoNumber => "one of them has no number, which is not 0".into(),
        Verdict::Partial => "one kind of core counted it, an unknown part of the whole".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_leave_and_the_verdict_stays() {
        use ComparedColumn::{A, ASpread, B, BSpread, Change, Interval, Needs, P, Verdict};
        let whole = vec![A, ASpread, B, BSpread, Change, Interval, P, Verdict, Needs];
        assert_eq!(layout(110, 14, true), (whole, 14));
        assert_eq!(layout(76, 14, true).0, [A, B, Change, Interval, P, Verdict]);
        assert_eq!(layout(76, 14, false).0, [A, ASpread, B, BSpread, Change, Verdict]);
        assert_eq!(layout(30, 14, true).0, [Verdict]);
        assert_eq!(layout(3, 14, true), (vec![Verdict], 3));
        for room in 30..200 {
            let (columns, name) = layout(room, 30, true);
            assert!(name + columns.iter().map(|column| column.width() + 1).sum::<usize>() <= room, "{room}");
        }
    }

    #[test]
    fn runs_stand_where_their_numbers_are() {
        assert_eq!(strip(&[1.0, 3.0], (1.0, 5.0), 5), "●·●··");
        assert_eq!(strip(&[2.0, 2.0], (2.0, 2.0), 5), "··●··");
        assert_eq!(strip(&[], (f64::INFINITY, f64::NEG_INFINITY), 3), "···");
    }
}
