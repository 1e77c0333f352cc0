//! Draws the table of events: their means, errors and spreads.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::page::{ScreenPage, VisibleRows, top};
use super::{metrics, sum};
use crate::monitor::{LOW_RUN_RATIO, Point};
use crate::number::{change, percent, scientific, whole_share};
use crate::plan::EventIndex;
use crate::rates::Uncertain;
use crate::tui::figures::{CorrectionEffect, Figure, Figures, ShownValues};
use crate::tui::layout::Room;
use crate::tui::model::ClickTarget;
use crate::tui::model::{EventLine, Motion, SortColumn};
use crate::tui::symbols::{CURSOR, DOWN, FROZEN, LEVELS, MISSING, UP, WARN};
use crate::tui::text::{amount, cut_middle, left, right, width};
use crate::tui::theme::Role;

/// Run ratio above which an event counts as running all the time.
const FULL_RUN_RATIO: f64 = 0.95;

/// The smallest width of the trend, in cells.
const LEAST_TREND: usize = 6;
const LARGE_TREND: usize = 24;
const MOST_TREND: usize = 40;

/// Cells of a name, before others leave for its sake.
const LEAST_NAME: usize = 14;
const MOST_NAME: usize = 36;

/// Cells of the name of what corrects.
const MOST_BY: usize = 12;

/// A column, with what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventColumn {
    Event,
    Mean,
    Error,
    Variance,
    Sigma,
    Cv,
    Min,
    Max,
    Samples,
    Raw,
    RawError,
    Run,
    Off,
    Correction,
    By,
    Trend,
}

/// All columns, in the order of the screen.
const ALL: [EventColumn; 16] = [
    EventColumn::Event,
    EventColumn::Raw,
    EventColumn::RawError,
    EventColumn::Mean,
    EventColumn::Error,
    EventColumn::Variance,
    EventColumn::Sigma,
    EventColumn::Cv,
    EventColumn::Min,
    EventColumn::Max,
    EventColumn::Samples,
    EventColumn::Run,
    EventColumn::Off,
    EventColumn::Correction,
    EventColumn::By,
    EventColumn::Trend,
];

/// Columns that only a large screen has.
const LARGE: [EventColumn; 5] =
    [EventColumn::Max, EventColumn::Min, EventColumn::Samples, EventColumn::Cv, EventColumn::Sigma];

/// Columns that a large screen has, and one that shows both raw and corrected numbers.
const BOTH: [EventColumn; 2] = [EventColumn::Raw, EventColumn::RawError];

/// The order in which columns leave a screen that gets narrower.
const LEAVING: [EventColumn; 13] = [
    EventColumn::Max,
    EventColumn::Min,
    EventColumn::Samples,
    EventColumn::Cv,
    EventColumn::Sigma,
    EventColumn::By,
    EventColumn::Variance,
    EventColumn::Trend,
    EventColumn::RawError,
    EventColumn::Raw,
    EventColumn::Correction,
    EventColumn::Off,
    EventColumn::Run,
];

impl EventColumn {
    fn width(self) -> usize {
        match self {
            Self::Event => LEAST_NAME,
            Self::Mean => 10,
            Self::Error | Self::RawError | Self::Correction | Self::Variance | Self::Off => 7,
            Self::Sigma | Self::Min | Self::Max | Self::Raw => 8,
            Self::Cv | Self::Samples => 6,
            Self::Run => 5,
            Self::By => 4,
            Self::Trend => LEAST_TREND,
        }
    }

    fn sorted_by(self) -> Option<SortColumn> {
        match self {
            Self::Event => Some(SortColumn::Event),
            Self::Mean => Some(SortColumn::Mean),
            Self::Error => Some(SortColumn::Error),
            Self::Variance => Some(SortColumn::Variance),
            Self::Run => Some(SortColumn::Run),
            Self::Correction => Some(SortColumn::Correction),
            _ => None,
        }
    }
}

/// Columns with their widths.
pub(super) type EventsLayout = Vec<(EventColumn, usize)>;

/// What a layout of the columns depends on, beside the room.
#[derive(Clone, Copy, Debug)]
struct EventsContents {
    large: bool,
    basis: ShownValues,
    has_truth: bool,
    has_corrections: bool,
    /// Cells of the longest name, and of the longest name of what corrects.
    name: usize,
    by: usize,
}

impl EventsContents {
    fn of(page: &ScreenPage<'_>, room: Room) -> Self {
        let model = page.model;
        let lines = model.events.order.iter().map(|&line| model.line_figures(line));
        let (mut has_corrections, mut by) = (false, 0);
        for figures in lines {
            has_corrections |= figures.correction != CorrectionEffect::None;
            by = by.max(figures.by.map_or(0, |cause| width(&model.cause(cause))));
        }
        Self {
            large: room == Room::Large,
            basis: model.basis,
            has_truth: !model.monitor.header().truths.is_empty(),
            has_corrections,
            name: sum::names(page).into_iter().map(|name| width(&name)).max().unwrap_or(0),
            by,
        }
    }

    /// Whether a column has anything to say.
    fn have(self, column: EventColumn) -> bool {
        let with_both = self.basis == ShownValues::Both || (self.large && self.basis == ShownValues::Corrected);
        match column {
            EventColumn::Off => self.has_truth,
            EventColumn::Correction | EventColumn::By => self.has_corrections,
            column if LARGE.contains(&column) => self.large,
            column if BOTH.contains(&column) => with_both,
            _ => true,
        }
    }
}

/// Which columns fit into `room` cells; what is left goes to the names and the trend.
fn layout(room: usize, gap: usize, contents: EventsContents) -> EventsLayout {
    let columns = ALL.into_iter().filter(|column| contents.have(*column));
    let wide = |column| column == EventColumn::Trend && contents.large;
    let mut columns: EventsLayout =
        columns.map(|column| (column, if wide(column) { LARGE_TREND } else { column.width() })).collect();
    let name = contents.name.clamp(5, MOST_NAME);
    columns[0].1 = name.min(LEAST_NAME);
    let used = |columns: &EventsLayout| columns.iter().map(|(_, width)| width + gap).sum::<usize>().saturating_sub(gap);
    for leaving in LEAVING {
        if used(&columns) <= room {
            break;
        }
        columns.retain(|(column, _)| *column != leaving);
    }
    let mut spare = room.saturating_sub(used(&columns));
    let mut widen = |column: EventColumn, most: usize| {
        if let Some((_, width)) = columns.iter_mut().find(|(found, _)| *found == column) {
            let more = most.saturating_sub(*width).min(spare);
            *width += more;
            spare -= more;
        }
    };
    widen(EventColumn::Event, name);
    widen(EventColumn::By, contents.by.min(MOST_BY));
    widen(EventColumn::Trend, MOST_TREND);
    // Nothing is as narrow as names that are cut to nothing.
    let over = used(&columns).saturating_sub(room);
    columns[0].1 = columns[0].1.saturating_sub(over).max(3);
    columns
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, room: Room) {
    let model = page.model;
    let order = &model.events.order;
    let selected = order.iter().position(|line| *line == model.events.cursor).unwrap_or(0);
    let shown = VisibleRows::in_panel(area, 1, selected, order.len());
    let inner = page.list(area, title(page), (shown, all(page)), None);
    let cells = usize::from(inner.width).saturating_sub(2);
    let gap = if cells < 70 { 1 } else { 2 };
    let columns = layout(cells, gap, EventsContents::of(page, room));
    let mut rows = inner.rows();
    if let Some(row) = rows.next() {
        page.line(row, heads(page, &columns, gap));
    }
    if model.events.order.is_empty() {
        if let Some(row) = rows.next() {
            page.line(row, Line::from(page.span(Role::Dim, "  no event matches the filter; Esc clears it")));
        }
        return;
    }
    for (&line, row) in order.iter().skip(shown.first).zip(rows) {
        let (text, target) = match line {
            EventLine::Event(event) => (event_line(page, event, &columns, gap), ClickTarget::Event(event)),
            EventLine::Sum(place) => (sum::line(page, place, &columns, gap), ClickTarget::Sum(place)),
        };
        page.line(row, text);
        page.target(row, target);
        if line == model.events.cursor {
            page.select(Rect { x: inner.x.saturating_sub(1), width: inner.width + 2, ..row });
        }
    }
}

fn title(page: &ScreenPage<'_>) -> Line<'static> {
    let model = page.model;
    let sort = &model.events.sort;
    let order = match sort.by {
        None if sort.inverted => "as given, inverted",
        None => "as given",
        Some(column) => column.word(),
    };
    let mut line = Line::from(vec![
        page.span(Role::Title, "Events"),
        page.span(Role::Border, " ─ "),
        page.span(Role::Dim, format!("by {order}").replace("by as", "as")),
        page.span(Role::Border, " ─ "),
        page.span(Role::Dim, basis(page)),
    ]);
    if !model.events.filter.is_empty() {
        line.push_span(page.span(Role::Border, " ─ "));
        let text = crate::names::shown(model.events.filter.text()).into_owned();
        line.push_span(page.span(Role::Match, format!("filter: {text}")));
    }
    if model.motion == Motion::Frozen {
        line.push_span(page.span(Role::Border, " ─ "));
        line.push_span(page.span(Role::Info, format!("{FROZEN} held, z goes on")));
    }
    line
}

/// Which numbers are shown: scaled ones, where nothing has moved any.
fn basis(page: &ScreenPage<'_>) -> &'static str {
    let model = page.model;
    let is_moved = |&line: &EventLine| {
        let figures = model.line_figures(line);
        figures.raw != figures.corrected
    };
    match model.basis {
        ShownValues::Corrected if !model.events.order.iter().any(is_moved) => "scaled",
        basis => basis.word(),
    }
}

/// How many lines there are without a filter, with the parts of what is unfolded.
fn all(page: &ScreenPage<'_>) -> usize {
    let model = page.model;
    let wholes = model.events.wholes(model.monitor.header().events.len());
    let open = model.events.folds.iter().filter(|fold| fold.is_open);
    wholes.len() + open.map(|fold| fold.parts.events.len()).sum::<usize>()
}

fn heads(page: &ScreenPage<'_>, columns: &EventsLayout, gap: usize) -> Line<'static> {
    let model = page.model;
    let sort = &model.events.sort;
    let mut line = Line::raw("  ");
    for (place, &(column, width)) in columns.iter().enumerate() {
        let mut text: String = match column {
            EventColumn::Event => "EVENT".into(),
            EventColumn::Mean => mean_head(page, columns.iter().any(|(column, _)| *column == EventColumn::Raw)),
            EventColumn::Error | EventColumn::RawError => model.error_head(),
            EventColumn::Variance => "VAR".into(),
            EventColumn::Sigma => "σ".into(),
            EventColumn::Cv => "CV".into(),
            EventColumn::Min => "MIN".into(),
            EventColumn::Max => "MAX".into(),
            EventColumn::Samples => "n".into(),
            EventColumn::Raw => "RAW".into(),
            EventColumn::Run => "RUN%".into(),
            EventColumn::Off => "OFF".into(),
            EventColumn::Correction => "CORR".into(),
            EventColumn::By => "BY".into(),
            EventColumn::Trend => trend_head(page, width),
        };
        let by = column.sorted_by().is_some() && column.sorted_by() == sort.by;
        if by {
            text.push_str(if sort.is_ascending() { UP } else { DOWN });
        }
        // An arrow must not be cut off: the gap before the column is free.
        let before = if place == 0 { 0 } else { gap };
        let field = if matches!(column, EventColumn::Event | EventColumn::By | EventColumn::Trend) {
            format!("{}{}", " ".repeat(before), left(&text, width))
        } else {
            right(&text, width + before)
        };
        line.push_span(page.span(if by { Role::Key } else { Role::Header }, field));
    }
    line
}

/// How far the number is from the truth, where that is counted beside.
fn off(page: &ScreenPage<'_>, index: EventIndex) -> (Role, String) {
    let truth = page.model.monitor.truth(index);
    let error = truth.and_then(|truth| match page.model.basis {
        ShownValues::Corrected | ShownValues::Both => truth.corrected.or(truth.scaled),
        ShownValues::Raw => truth.scaled,
    });
    error.map_or_else(|| (Role::Dim, MISSING.into()), |error| (Role::Text, change(error)))
}

/// What the numbers are; beside raw ones, that they aren't.
fn mean_head(page: &ScreenPage<'_>, beside_raw: bool) -> String {
    let suffix = page.model.measure.suffix(page.model.monitor.header());
    match suffix {
        _ if beside_raw => "CORRECTED".into(),
        "" => "TOTAL".into(),
        suffix => format!("MEAN{suffix}"),
    }
}

fn trend_head(page: &ScreenPage<'_>, width: usize) -> String {
    let interval = page.model.monitor.header().interval_ns.as_secs();
    let seconds = interval * width as f64;
    let span = match seconds {
        _ if seconds >= 120.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds >= 1.0 => format!("{seconds:.0} s"),
        _ => format!("{:.0} ms", seconds * 1000.0),
    };
    let head = format!("LAST {span}");
    if head.len() <= width { head } else { span }
}

fn event_line(page: &ScreenPage<'_>, index: EventIndex, columns: &EventsLayout, gap: usize) -> Line<'static> {
    let model = page.model;
    let selected = model.events.cursor == EventLine::Event(index);
    let cursor = if selected { CURSOR } else { " " };
    let mut line = Line::from(vec![page.span(Role::Key, format!("{cursor} "))]);
    let figures = model.figures(index);
    let name = cut_middle(&sum::part_name(page, index), columns[0].1).into_owned();
    let figure = figures.shown(model.basis);
    let absence = model.monitor.row(index).absence;
    let Some(figure) = figure else {
        line.push_span(page.span(Role::Dim, left(&name, columns[0].1 + gap)));
        line.push_span(page.span(Role::Missing, why_missing(page, absence)));
        return line;
    };
    line.push_span(page.span(Role::Text, left(&name, columns[0].1)));
    for &(column, width) in &columns[1..] {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.spans.extend(cell(page, column, width, index, &figures, figure));
    }
    line
}

/// Words in place of numbers. They are never 0.
pub(super) fn why_missing(page: &ScreenPage<'_>, absence: Option<crate::monitor::Absence>) -> String {
    use crate::monitor::Absence;
    let monitor = &page.model.monitor;
    match absence {
        Some(Absence::NotYetRan) | None if monitor.intervals() == 0 && monitor.ended().is_none() => first_reading(page),
        Some(absence) => format!("{MISSING} {}", absence.words()),
        None => format!("{MISSING} no number in this unit"),
    }
}

fn first_reading(page: &ScreenPage<'_>) -> String {
    let monitor = &page.model.monitor;
    let left = monitor.header().interval_ns - monitor.now();
    format!("n=0, first reading in {:.1} s", left.as_secs())
}

fn cell(
    page: &ScreenPage<'_>,
    column: EventColumn,
    width: usize,
    index: EventIndex,
    figures: &Figures,
    figure: Figure,
) -> Vec<Span<'static>> {
    let model = page.model;
    let unit = &model.monitor.header().events[index].event.unit;
    let number = |number: Option<f64>| number.map_or_else(|| format!("{MISSING} "), |number| amount(number, unit));
    let (role, text) = match column {
        EventColumn::Mean => (Role::Title, amount(figure.mean, unit)),
        EventColumn::Error => (Role::Text, figures.error_of(figure, unit)),
        EventColumn::Variance => (Role::Dim, figure.variance.map_or_else(|| MISSING.into(), scientific)),
        EventColumn::Sigma => (Role::Dim, number(figure.sigma())),
        EventColumn::Cv => (Role::Dim, figure.cv().map_or_else(|| MISSING.into(), percent)),
        EventColumn::Min => (Role::Dim, number(extreme(page, index, f64::min))),
        EventColumn::Max => (Role::Dim, number(extreme(page, index, f64::max))),
        EventColumn::Samples => (Role::Dim, model.monitor.row(index).raw.rate.samples().to_string()),
        EventColumn::Raw => (Role::Raw, number(figures.raw.map(|raw| raw.mean))),
        EventColumn::RawError => {
            let error = figures.raw.map_or_else(|| MISSING.into(), |raw| figures.error_of(raw, unit));
            (Role::Dim, error)
        }
        EventColumn::Run => return run_cell(page, width, figures),
        EventColumn::Off => off(page, index),
        EventColumn::Correction => match figures.correction {
            CorrectionEffect::Derived => (Role::Corrected, "derived".into()),
            CorrectionEffect::By(Some(part)) => (Role::Corrected, change(part)),
            CorrectionEffect::By(None) => (Role::Corrected, "yes".into()),
            CorrectionEffect::None => (Role::Dim, MISSING.into()),
        },
        EventColumn::By => {
            let by = figures.by.map_or_else(|| MISSING.into(), |cause| model.cause(cause));
            return vec![page.span(if figures.by.is_some() { Role::Text } else { Role::Dim }, left(&by, width))];
        }
        EventColumn::Trend => return trend(page, index, width),
        EventColumn::Event => (Role::Text, String::new()),
    };
    vec![page.span(role, right(&text, width))]
}

/// The warning's place is kept free, so that digits stand below one another.
pub(super) fn run_cell(page: &ScreenPage<'_>, width: usize, figures: &Figures) -> Vec<Span<'static>> {
    let Some(run) = figures.run else { return vec![page.span(Role::Dim, right(&format!("{MISSING} "), width))] };
    let (role, mark) = match run {
        // The time on one kind of core.
        _ if figures.is_partial => (Role::RunPart, " "),
        run if run < LOW_RUN_RATIO => (Role::RunLow, WARN),
        run if run < FULL_RUN_RATIO => (Role::RunPart, " "),
        _ => (Role::RunFull, " "),
    };
    vec![page.span(role, right(&format!("{}{mark}", whole_share(run)), width))]
}

fn extreme(page: &ScreenPage<'_>, index: EventIndex, pick: fn(f64, f64) -> f64) -> Option<f64> {
    let row = page.model.monitor.row(index);
    let points = page.model.measure.points(&page.model.monitor, &row);
    points.iter().filter_map(|point| Some(shown_point(page, point)?.value)).reduce(pick)
}

/// The interval's number that the table shows.
fn shown_point(page: &ScreenPage<'_>, point: &Point) -> Option<Uncertain> {
    if page.model.basis == ShownValues::Raw { point.raw } else { point.corrected }
}

/// The newest intervals, at least as tall as they differ; an interval without a sample is a gap.
fn trend(page: &ScreenPage<'_>, index: EventIndex, width: usize) -> Vec<Span<'static>> {
    let history = page.model.measure.newest(&page.model.monitor, &page.model.monitor.row(index), width);
    sparkline(page, &history, width)
}

pub(super) fn sparkline(page: &ScreenPage<'_>, history: &[Point], width: usize) -> Vec<Span<'static>> {
    let points: Vec<&Point> = history.iter().skip(history.len().saturating_sub(width)).collect();
    let rates = || points.iter().filter_map(|point| Some(shown_point(page, point)?.value));
    let (low, high) =
        rates().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), rate| (low.min(rate), high.max(rate)));
    // Noise of a few percent must not look like a mountain range.
    let least = 0.2 * high.abs();
    let (low, range) = if high - low < least { ((low + high - least) / 2.0, least) } else { (low, high - low) };
    let mut spans = vec![Span::raw(" ".repeat(width - points.len()))];
    for point in points {
        spans.push(match shown_point(page, point) {
            Some(rate) => {
                let part = if range > 0.0 { (rate.value - low) / range } else { 0.0 };
                Span::styled(level(part), page.theme().height(part))
            }
            None => Span::styled("·", page.style(Role::Missing)),
        });
    }
    spans
}

fn level(part: f64) -> &'static str {
    let step = (part * (LEVELS.len() - 1) as f64).round().clamp(0.0, (LEVELS.len() - 1) as f64);
    LEVELS[step as usize]
}

/// One line for each event, and for each metric behind them, for the smallest screens.
pub(super) fn lines(page: &mut ScreenPage<'_>, area: Rect) {
    let model = page.model;
    let order = &model.events.order;
    let metrics: Vec<_> = model.monitor.metrics().collect();
    let selected = order.iter().position(|line| *line == model.events.cursor).unwrap_or(0);
    let first = top(selected, order.len() + metrics.len(), usize::from(area.height));
    for (metric, row) in metrics.iter().zip(area.rows().skip(order.len().saturating_sub(first))) {
        let line = metrics::short_line(page, metric, usize::from(area.width).saturating_sub(1));
        page.line(row, line);
    }
    for (&line, row) in order.iter().skip(first).zip(area.rows()) {
        let room = usize::from(area.width).saturating_sub(1);
        let cursor = if line == model.events.cursor { CURSOR } else { " " };
        let value = short_value(page, line);
        let name = cut_middle(&sum::short_name(page, line), room.saturating_sub(width(&value) + 1).max(4)).into_owned();
        let gap = room.saturating_sub(width(&name));
        let text = Line::from(vec![
            Span::styled(cursor, page.style(Role::Key)),
            page.span(Role::Text, name),
            Span::styled(right(&value, gap), Style::new()),
        ]);
        page.line(row, text);
        if line == model.events.cursor {
            page.select(row);
        }
    }
}

fn short_value(page: &ScreenPage<'_>, line: EventLine) -> String {
    let model = page.model;
    let index = match line {
        EventLine::Event(event) => event,
        EventLine::Sum(place) => model.events.folds[place].parts.events[0],
    };
    let unit = &model.monitor.header().events[index].event.unit;
    let figures = model.line_figures(line);
    match figures.shown(model.basis) {
        Some(figure) => format!("{} {}", amount(figure.mean, unit).trim_end(), figures.error_of(figure, unit)),
        None => why_missing(page, model.monitor.row(index).absence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(large: bool, basis: ShownValues, has_truth: bool) -> EventsContents {
        EventsContents { large, basis, has_truth, has_corrections: true, name: 12, by: 2 }
    }

    fn shown_with(room: usize, large: bool, basis: ShownValues) -> Vec<EventColumn> {
        let columns = layout(room, if room < 60 { 1 } else { 2 }, contents(large, basis, false));
        columns.into_iter().map(|(column, _)| column).collect()
    }

    fn shown(room: usize, large: bool) -> Vec<EventColumn> {
        shown_with(room, large, ShownValues::Corrected)
    }

    #[test]
    fn columns_without_anything_to_say_are_not_there() {
        let nothing = EventsContents { has_corrections: false, ..contents(false, ShownValues::Corrected, false) };
        let columns: Vec<_> = layout(100, 2, nothing).into_iter().map(|(column, _)| column).collect();
        use EventColumn::*;
        assert_eq!(columns, [Event, Mean, Error, Variance, Run, Trend]);
    }

    #[test]
    fn columns_leave_in_order() {
        use EventColumn::*;
        assert_eq!(shown(74, false), [Event, Mean, Error, Variance, Run, Correction, By, Trend]);
        assert_eq!(shown(70, false), [Event, Mean, Error, Variance, Run, Correction, Trend]);
        assert_eq!(shown(62, false), [Event, Mean, Error, Run, Correction, Trend]);
        assert_eq!(shown(46, false), [Event, Mean, Error, Run, Correction]);
        assert_eq!(shown(30, false), [Event, Mean, Error]);
        assert_eq!(shown(3, false), [Event, Mean, Error]);
        // Without a truth there is nothing to be off from.
        assert_eq!(shown(200, true).len(), ALL.len() - 1);
        assert_eq!(shown_with(74, false, ShownValues::Both), [Event, Raw, RawError, Mean, Error, Run, Correction]);
        assert_eq!(shown_with(46, false, ShownValues::Both), [Event, Mean, Error, Run, Correction]);
    }

    #[test]
    fn the_columns_fill_the_room_and_no_more() {
        for room in 32..200 {
            let gap = if room < 60 { 1 } else { 2 };
            let columns = layout(room, gap, contents(room > 120, ShownValues::Both, true));
            let used: usize = columns.iter().map(|(_, width)| width + gap).sum::<usize>() - gap;
            assert!(used <= room, "{room}: {used}");
        }
    }
}
