//! Draws the events of two sets of recordings side by side, and the runs and histories of the selected one.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::chart::{self, Chart, Series, TimeOrigin};
use super::page::{ScreenPage, fit_beside, framed, make_room, rows_in_panel};
use super::run_plot::{self, RunScale, line};
use crate::compare::{ComparedEvent, RunComparison, Runs, Side, Verdict};
use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice, Monitor, Point};
use crate::names::shown;
use crate::number::{percent, plus_minus};
use crate::plan::RowIndex;
use crate::run::Header;
use crate::text::difference;
use crate::tui::figures::ShownValues;
use crate::tui::layout::split_below;
use crate::tui::model::{ClickTarget, CompareColumn, ScrolledList, VisibleRows};
use crate::tui::screen::Screen;
use crate::tui::symbols::{CURSOR, DOWN, MISSING, SAME, UP};
use crate::tui::text::{amount, cut, cut_middle, left, right, width};
use crate::tui::theme::Role;
use crate::units::WallNs;

const LEAST_NAME: usize = 13;
const LEAST_NAME_ALONE: usize = 10;
const MOST_NAME: usize = 40;
/// Cells of the head of the names with an arrow.
const LEAST_HEAD: usize = 6;

/// Cells of a recording's name in the title, at least.
const LEAST_FILE: usize = 8;

/// Cells of the border that the two titles leave free: corners, blanks and the line between them.
const AROUND: usize = 8;

/// Cells of the columns, with the blank before each.
const VERDICT: usize = 16;
const CHANGE: usize = 8;
const CHANGE_AND_INTERVAL: usize = 16;
const SPREAD: usize = 8;
const LEAST_PLOT: usize = 14;
const MOST_PLOT: usize = 80;

/// What is said of sides that were not recorded alternately.
const ONE_AFTER_OTHER: &str = "all of one side ran first: a drift looks like a difference";

/// Rows of the histories below the table, at least.
const LEAST_HISTORIES: u16 = 8;

/// How an event stands in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventLines {
    /// Its change and the verdict, where there is hardly any height.
    One,
    /// A line for each side, with a plot of its runs.
    LineASide,
}

impl EventLines {
    fn of(panel: Rect) -> Self {
        if panel.height >= 7 { Self::LineASide } else { Self::One }
    }

    fn rows(self) -> usize {
        if self == Self::One { 1 } else { 2 }
    }
}

/// Cells of each column, 0 where it has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ComparedColumns {
    name: usize,
    /// The letter of the side, and the mean of its runs.
    mean: usize,
    spread: usize,
    plot: usize,
    change: usize,
    verdict: usize,
}

impl ComparedColumns {
    /// The columns that fit into `room` cells. The verdict stays, then the change, the means, and the plot.
    fn of(room: usize, longest_name: usize, longest_mean: usize, (lines, has_test): (EventLines, bool)) -> Self {
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

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    let list = &page.model.comparison;
    // Frame, heads, what has to be known, and two lines for each event.
    let frame = 3 + notes(&list.found).count();
    let wanted = u16::try_from(frame + 2 * list.order.len()).unwrap_or(u16::MAX);
    let free = area.height.saturating_sub(wanted);
    let below = match free {
        LEAST_HISTORIES.. => free.min((area.height * 3 / 5).max(LEAST_HISTORIES)),
        _ if area.height >= 30 => area.height * 2 / 5,
        _ => 0,
    };
    let (table, below) = split_below(area, below);
    draw_table(page, table);
    if below.height > 0 {
        draw_histories(page, below);
    }
    if below.height == 0 || page.model.comparison.found.is_one_after_other {
        draw_foot(page, table);
    }
}

fn draw_table(page: &mut ScreenPage<'_>, area: Rect) {
    let list = &page.model.comparison;
    let height = area.height.saturating_sub(2);
    let has_heads = height >= 3;
    let lines = EventLines::of(area);
    let notes: Vec<_> = notes(&list.found).take(usize::from(height.saturating_sub(4))).collect();
    let selected = list.order.iter().position(|&place| place == list.selected).unwrap_or(0);
    let above = usize::from(has_heads) + notes.len();
    let rows = rows_in_panel(area, above) / lines.rows();
    let on_screen = page.scrolled(ScrolledList::Of(Screen::Compare), rows, (selected, list.order.len()));
    let count = count(page, on_screen, area);
    let mut title = title(page, usize::from(area.width), count.width());
    if !on_screen.is_whole() {
        make_room(&mut title, &count, area);
    }
    let inner = page.panel(area, title, count, true);
    let events = &list.found.events;
    let longest = |cells: &dyn Fn(&ComparedEvent) -> usize| events.iter().map(cells).max().unwrap_or(5);
    let room = usize::from(inner.width).saturating_sub(2);
    let longest_name = longest(&|one| width(&shown(&one.name)));
    let longest_mean = longest(&|one| width(&mean(one, &one.a)).max(width(&mean(one, &one.b)))).clamp(7, 14);
    let columns = ComparedColumns::of(room, longest_name, longest_mean, (lines, list.found.has_spread()));
    let mut rows = inner.rows().peekable();
    if let Some(row) = rows.next_if(|_| has_heads) {
        draw_heads(page, row, columns);
    }
    if list.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    for (words, row) in notes.iter().zip(rows.by_ref()) {
        let text = format!("  {}", cut(&shown(words), room));
        page.line(row, Line::from(page.span(Role::Warn, text)));
    }
    for &place in list.order.iter().skip(on_screen.first).take(on_screen.rows) {
        let is_selected = place == list.selected;
        for line in event_lines(page, &events[place], columns, lines, is_selected) {
            let Some(row) = rows.next() else { return };
            page.line(row, line);
            page.target(row, ClickTarget::Compared(place));
            if is_selected {
                page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
            }
        }
    }
}

/// What has to be known before any number is: why nothing has a verdict, and that there are two programs.
fn notes(found: &RunComparison) -> impl Iterator<Item = String> {
    found.what_it_takes().into_iter().chain(found.different_programs())
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
    if model.measures == MeasureChoice::Every(Measure::Total) && room >= 70 {
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

fn draw_heads(page: &mut ScreenPage<'_>, row: Rect, columns: ComparedColumns) {
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

/// A line of each side, or one with the verdict alone.
fn event_lines(
    page: &ScreenPage<'_>,
    one: &ComparedEvent,
    columns: ComparedColumns,
    lines: EventLines,
    selected: bool,
) -> Vec<Line<'static>> {
    let missing = || MISSING.to_owned();
    let (glyph, role) = mark(one.verdict);
    let suffix = one.measure.suffix(page.model.monitor.header());
    let name = cut_middle(&shown(&one.name), columns.name).into_owned();
    let scale = RunScale::of(one);
    let [first, second] = [
        RowText {
            cursor: if selected { CURSOR } else { " " },
            name: page.span(Role::Text, left(&name, columns.name)),
            change: one.change().map_or_else(missing, difference::change),
            verdict: page.span(role, left(&format!("  {glyph} {}", one.verdict.word()), columns.verdict)),
        },
        RowText {
            cursor: " ",
            name: page.span(Role::Dim, left(&cut(&format!("  {suffix}"), columns.name), columns.name)),
            change: one.interval.map_or_else(String::new, difference::interval),
            verdict: page.span(Role::Dim, left(&format!("    {}", how_sure(one)), columns.verdict)),
        },
    ];
    let line = |text: RowText, side: Option<(&str, &Runs, Role)>| {
        let mut line = Line::from(page.span(Role::Key, format!("{} ", text.cursor)));
        line.push_span(text.name);
        if let Some((letter, runs, role)) = side {
            line.spans.extend(side_cells(page, one, (letter, runs, role), columns, scale));
        }
        if columns.change > 0 {
            line.push_span(page.span(Role::Text, right(&text.change, columns.change)));
        }
        line.push_span(text.verdict);
        line
    };
    match lines {
        EventLines::One => vec![line(first, None)],
        EventLines::LineASide => {
            vec![line(first, Some(("A", &one.a, Role::Corrected))), line(second, Some(("B", &one.b, Role::Raw)))]
        }
    }
}

/// What a line of an event says beside the numbers of a side.
struct RowText {
    cursor: &'static str,
    name: Span<'static>,
    change: String,
    verdict: Span<'static>,
}

/// The mean, the spread and the plot of one side.
fn side_cells(
    page: &ScreenPage<'_>,
    one: &ComparedEvent,
    (letter, runs, role): (&str, &Runs, Role),
    columns: ComparedColumns,
    scale: RunScale,
) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    if columns.mean > 0 {
        spans.push(page.span(Role::Key, format!("  {letter}")));
        spans.push(page.span(Role::Title, right(&mean(one, runs), columns.mean - 3)));
    }
    if columns.spread > 0 {
        let spread = spread(&page.model.comparison.found, runs, &one.unit);
        spans.push(page.span(Role::Dim, right(&spread, columns.spread)));
    }
    if columns.plot > 0 {
        let interval = runs.interval_of_mean(page.model.comparison.found.confidence);
        let values: Vec<_> = runs.numbers.iter().map(|number| number.value).collect();
        spans.push(page.span(role, format!("  {}", line(&values, interval, scale, columns.plot - 2))));
    }
    spans
}

/// What stands below the verdict: how likely it is by chance, and how many runs would tell.
fn how_sure(one: &ComparedEvent) -> String {
    match (one.p, one.verdict) {
        (_, Verdict::TooFewRuns { needs }) => format!("needs {needs} runs"),
        (Some(p), Verdict::Unclear { needs: Some(runs) }) => format!("p {} n={runs}", difference::p_value(p)),
        (Some(p), _) => format!("p {}", difference::p_value(p)),
        (None, _) => String::new(),
    }
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

/// On the lower border of the table: what is said of the selected event, and what the plots show.
fn draw_foot(page: &mut ScreenPage<'_>, table: Rect) {
    if table.height < 3 {
        return;
    }
    let found = &page.model.comparison.found;
    let said = page.model.comparison.selected().map(|one| format!("{}: {}", shown(&one.name), sentence(found, one)));
    let said = if found.is_one_after_other { Some(ONE_AFTER_OTHER.into()) } else { said };
    let row = Rect { x: table.x + 2, y: table.bottom() - 1, width: table.width.saturating_sub(4), height: 1 };
    let legend = legend(page);
    let has_legend = EventLines::of(table) == EventLines::LineASide;
    let text = said.map_or_else(String::new, |said| format!(" {} ", cut(&said, usize::from(row.width) - 2)));
    let role = if found.is_one_after_other { Role::Warn } else { Role::Dim };
    let fits = width(&text) + legend.width() + 4 <= usize::from(row.width);
    page.line(row, Line::from(page.span(role, text)));
    if has_legend && fits {
        page.line(row, framed(legend).right_aligned());
    }
}

fn legend(page: &ScreenPage<'_>) -> Line<'static> {
    Line::from(page.span(Role::Dim, run_plot::legend(page.model.comparison.found.has_spread())))
}

/// Both sides, corrected or raw.
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

/// The histories of the selected event in the first recording of each side, on one axis.
fn draw_histories(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let Some(one) = model.comparison.selected() else {
        let _ = page.panel(area, Line::default(), Line::default(), false);
        return;
    };
    let (glyph, role) = mark(one.verdict);
    let mut title = Line::from(page.span(Role::Title, shown(&one.name).into_owned()));
    title.push_span(page.span(Role::Border, " ─ "));
    title.push_span(page.span(role, format!("{glyph} {}", sentence(&model.comparison.found, one))));
    let words = legend(page);
    let Some(other) = model.others.as_ref().and_then(|others| others.first()) else {
        let _ = page.panel(area, title, words, false);
        return;
    };
    // Intervals have no totals: each is in the usual unit, where both sides have the same.
    let usual = [(&model.monitor, one.a.index), (other, one.b.index)]
        .map(|(monitor, index)| index.map(|index| monitor.usual_measure(index)));
    let measure = match usual {
        [Some(a), Some(b)] if a == b && one.measure == Measure::Total => a,
        _ => one.measure,
    };
    title.push_span(page.span(Role::Border, " ─ "));
    title.push_span(page.span(Role::Dim, over_time(measure, one, model.monitor.header())));
    let inner = page.panel(area, title, words, false);
    if inner.height < 4 {
        return;
    }
    let points = |monitor: &Monitor, index: Option<RowIndex>| -> Vec<Point> {
        index.map_or_else(Vec::new, |index| measure.points(monitor, &monitor.row(index)))
    };
    let histories = vec![points(&model.monitor, one.a.index), points(other, one.b.index)];
    if histories.iter().all(Vec::is_empty) {
        return page.line(inner, Line::from(page.span(Role::Dim, "one number of each run: it has no history")));
    }
    let chart = Chart {
        span: crate::tui::text::span,
        histories,
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

/// What the histories show, and in which unit: `the first run of each over time, /s`.
fn over_time(measure: Measure, one: &ComparedEvent, header: &Header) -> String {
    let is_one_each = one.a.numbers.len().max(one.b.numbers.len()) < 2;
    let what = if is_one_each { "over time" } else { "the first run of each over time" };
    format!("{what} {}", measure.suffix(header)).trim_end().to_owned()
}

fn sentence(found: &RunComparison, one: &ComparedEvent) -> String {
    let by = one
        .change()
        .map_or_else(String::new, |part| format!(" by {}", difference::change(part).trim_start_matches(['+', '−'])));
    let p = one.p.map_or_else(String::new, |p| format!(", p {}", difference::p_value(p)));
    match one.verdict {
        Verdict::Higher | Verdict::Lower => format!("B is {}{by}{p}", one.verdict.word()),
        Verdict::Unclear { needs: Some(runs) } => format!("within error{p}; if it is so, {runs} runs of each show it"),
        Verdict::Unclear { needs: None } => format!("within error{p}; too small to be shown by 1,000 runs of each"),
        Verdict::TooFewRuns { needs } => match found.runs {
            [1, 1] => format!("one run each is too few to tell: {needs} of each can"),
            [a, b] => format!("{a} and {b} runs are too few to tell: {needs} of each can"),
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
