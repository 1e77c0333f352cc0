//! Draws one event: its chart, histogram and statistics.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::chart::{self, Chart, Series, TimeOrigin};
use super::page::{ScreenPage, make_room};
use super::phases;
use super::timeline::range_words;
use super::{histogram, strip};
use crate::events::Unit;
use crate::monitor::{Measure, Point};
use crate::number::{change, percent, time as time_text, variance, whole_share};
use crate::plan::RowIndex;
use crate::rates::Uncertain;
use crate::tui::figures::{Figure, Figures, ShownValues};
use crate::tui::layout::{split_below, split_right};
use crate::tui::model::EventLine;
use crate::tui::symbols::MISSING;
use crate::tui::text::{amount, cut, left, right, span};
use crate::tui::theme::Role;
use crate::units::{CpuNs, WallNs};

/// Cells of a column of the statistics, and of its label.
const CELL: usize = 8;
pub(super) const LABEL: usize = 10;

/// Cells of the last part of a line, at least, if it is cut.
const LEAST_PART: usize = 4;

/// `whole`: the Detail screen; else the panel beside the table, where the strip's lines are shown
/// in place of the statistics.
pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect, whole: bool) {
    let model = page.model;
    let Some(line) = model.selected_line() else {
        let _ = page.panel(area, Line::from(page.span(Role::Title, "Detail")), Line::default(), whole);
        return;
    };
    let mut title = title(page, line);
    make_room(&mut title, &Line::default(), area);
    let inner = page.panel(area, title, window_title(page), whole);
    let width = usize::from(inner.width);
    let mut lines = if whole { statistics(page, line, width) } else { strip::news(page, line, width) };
    let lower = lines.len() as u16;
    let changes = if whole { phases::lines(page, line, inner, lower) } else { Vec::new() };
    let lower = if inner.height >= lower + 5 { lower + changes.len() as u16 } else { inner.height.min(lower) };
    let (upper, lower) = split_below(inner, lower);
    // A blank row between them, where there is one to spare.
    let upper = Rect { height: upper.height.saturating_sub(u16::from(upper.height > 7)), ..upper };
    if upper.width < 70 && upper.height >= 20 {
        let (plot, bars) = split_below(upper, upper.height / 3);
        draw_chart(page, plot, line);
        draw_histogram(page, Rect { y: bars.y + 1, height: bars.height - 1, ..bars }, line);
    } else if upper.width >= 70 && upper.height >= 5 {
        let (plot, bars) = split_right(upper, (upper.width * 2 / 5).min(44));
        draw_chart(page, plot, line);
        draw_histogram(page, Rect { x: bars.x + 2, width: bars.width - 2, ..bars }, line);
    } else {
        draw_chart(page, upper, line);
    }
    lines.extend(changes);
    for (line, row) in lines.into_iter().zip(lower.rows()) {
        page.line(row, line);
    }
}

fn title(page: &ScreenPage<'_>, line: EventLine) -> Line<'static> {
    let model = page.model;
    let mut title = Line::from(page.span(Role::Title, model.line_title(line)));
    title.push_span(page.span(Role::Border, " ─ "));
    let figures = model.line_figures(line);
    match figures.shown(model.basis) {
        Some(figure) => {
            let role = if model.basis == ShownValues::Raw { Role::Raw } else { Role::Corrected };
            let mean = amount(figure.mean, model.line_unit(line));
            let suffix = model.line_suffix(line);
            title.push_span(page.span(role, format!("{}{suffix}", mean.trim_end())));
            let error = figures.error_within(figure, model.line_unit(line), usize::MAX);
            title.push_span(page.span(Role::Dim, format!(" {error}")));
            if let Some(cause) = figures.by.filter(|_| model.basis != ShownValues::Raw) {
                title.push_span(page.span(Role::Dim, format!(" by {}", model.cause(cause))));
            }
        }
        None => {
            let words = model.line_absence(line).map_or(model.no_unit_words(), |absence| absence.words());
            title.push_span(page.span(Role::Missing, format!("{MISSING} {words}")));
        }
    }
    title
}

fn window_title(page: &ScreenPage<'_>) -> Line<'static> {
    if let Some(range) = page.model.shown_range() {
        return Line::from(page.span(Role::Dim, range_words(range)));
    }
    let (from, to) = visible(page);
    let which = if to > page.model.monitor.now() { "first" } else { "last" };
    Line::from(vec![page.span(Role::Dim, format!("{which} {} ", span(to - from))), page.span(Role::Key, "{ }")])
}

/// The time that is shown: the window, or less of it while the measurement is young.
fn visible(page: &ScreenPage<'_>) -> (WallNs, WallNs) {
    let model = page.model;
    let now = model.monitor.now();
    let least = WallNs(model.monitor.header().interval_ns.0.saturating_mul(10));
    let long = model.window().min(now.max(least));
    (now - long, now.max(long))
}

fn points(page: &ScreenPage<'_>, line: EventLine) -> Vec<Point> {
    let (from, to) = visible(page);
    let interval = page.model.monitor.header().interval_ns.0.max(1);
    // Two more, as rounds jitter and the last interval may be a short one.
    let most = usize::try_from((to - from).0 / interval).unwrap_or(usize::MAX).saturating_add(2);
    let mut points = page.model.line_points(line, most);
    points.retain(|point| point.at > from);
    points
}

fn draw_chart(page: &mut ScreenPage<'_>, area: Rect, line: EventLine) {
    let model = page.model;
    let points = points(page, line);
    let series: &[Series] = match model.basis {
        ShownValues::Raw => &[Series::RAW],
        ShownValues::Corrected => &[Series::CORRECTED],
        ShownValues::Both => &[Series::RAW, Series::CORRECTED],
    };
    if points.iter().all(|point| series.iter().all(|series| (series.of)(point).is_none())) {
        let words = model.line_absence(line).map_or("no interval is complete yet", |absence| absence.words());
        page.line(area, Line::from(page.span(Role::Missing, format!("{MISSING} {words}"))));
        return;
    }
    let (mut points, (mut from, mut to), mut ago) = (points, visible(page), span as fn(WallNs) -> String);
    let mut is_young = to > model.monitor.now();
    if model.line_measure(line).is_by_instructions(model.monitor.header()) {
        (from, to, ago) = (WallNs(0), by_instructions(&mut points), instructions);
        is_young = false;
    }
    // A range is where it is in the recording.
    let is_range = model.shown_range().is_some() && from > WallNs(0);
    // Of a run that is over no time is now.
    let is_over =
        model.monitor.ended().is_some() && !model.line_measure(line).is_by_instructions(model.monitor.header());
    let unit = model.line_unit(line);
    let (levels, changes) = phases::levels(page, line);
    let chart = Chart {
        histories: vec![points],
        series,
        clock: if is_range || is_young || is_over { TimeOrigin::Start } else { TimeOrigin::Now },
        from,
        to,
        span: ago,
        levels,
        changes,
        label: &|number| amount(number, unit),
    };
    chart::draw(page, area, &chart);
}

/// Puts intervals where they are in a model's time, one instruction a nanosecond, and gives its end.
fn by_instructions(points: &mut [Point]) -> WallNs {
    let mut passed = WallNs(0);
    for point in points {
        point.length = WallNs(point.cpu_time.0);
        passed += point.length;
        point.at = passed;
    }
    passed
}

fn instructions(count: WallNs) -> String {
    format!("{} inst", amount(count.0 as f64, &Unit::Count).trim())
}

fn draw_histogram(page: &mut ScreenPage<'_>, area: Rect, line: EventLine) {
    let rates = rates(page, line, if page.model.basis == ShownValues::Raw { Series::RAW } else { Series::CORRECTED });
    let unit = page.model.line_unit(line);
    let mut rows = area.rows();
    if let Some(row) = rows.next() {
        let suffix = page.model.interval_measure(line).suffix(page.model.monitor.header());
        let words = match rates.len() {
            1 => format!("1 interval ({suffix})"),
            intervals => format!("{intervals} intervals ({suffix})"),
        };
        page.line(row, Line::from(page.span(Role::Header, words)));
    }
    let below = split_below(area, area.height.saturating_sub(1)).1;
    histogram::draw(page, below, &rates, unit);
}

/// The rates of the intervals that are shown, in the unit of charts.
fn rates(page: &ScreenPage<'_>, line: EventLine, series: Series) -> Vec<f64> {
    points(page, line).iter().filter_map(|point| Some((series.of)(point)?.value)).collect()
}

/// A column of the statistics.
type Statistic = (&'static str, fn(&StatisticsRow<'_>, &Figure) -> String);

/// What the cells of a row are made from, beside its figure.
struct StatisticsRow<'a> {
    figures: &'a Figures,
    unit: &'a crate::events::Unit,
    /// The rates of the intervals, ascending.
    sorted: Vec<f64>,
    total: Option<f64>,
}

impl StatisticsRow<'_> {
    fn amount(&self, number: Option<f64>) -> String {
        number.map_or_else(|| format!("{MISSING} "), |number| amount(number, self.unit))
    }

    /// The value that this part of the intervals doesn't exceed: the nearest rank.
    fn quantile(&self, part: f64) -> String {
        let rank = (part * self.sorted.len() as f64).ceil() as usize;
        self.amount(self.sorted.get(rank.saturating_sub(1)).copied())
    }
}

/// Cells that a variance needs, at least: `3.0e-4s²`.
const VARIANCE: usize = 10;

/// The columns that fit, and how many cells each has beside those that it needs. Of a total of the run there is no
/// least or most of intervals: these are rates.
fn statistics_columns(measure: Measure, width: usize) -> (Vec<Statistic>, usize) {
    let is_of_total = |name: &str| ["mean", ERROR, "low", "high"].contains(&name);
    let mut columns = STATISTICS_COLUMNS.to_vec();
    columns.retain(|(name, _)| measure != Measure::Total || is_of_total(name));
    let room = width.saturating_sub(LABEL);
    let least = |columns: &[Statistic]| columns.iter().map(|(name, _)| least_cells(name)).sum::<usize>();
    while least(&columns) > room && columns.pop().is_some() {}
    let spare = room.saturating_sub(least(&columns)) / columns.len().max(1);
    (columns, spare.min(4))
}

fn least_cells(name: &str) -> usize {
    if name == "var" { VARIANCE } else { CELL }
}

/// What is first leaves last.
const STATISTICS_COLUMNS: [Statistic; 12] = [
    ("mean", |numbers, figure| numbers.amount(Some(figure.mean))),
    (ERROR, |numbers, figure| format!("{} ", numbers.figures.error_of(*figure, numbers.unit))),
    ("low", |numbers, figure| numbers.amount(figure.error.half_width().map(|_| figure.bounds().0))),
    ("high", |numbers, figure| numbers.amount(figure.error.half_width().map(|_| figure.bounds().1))),
    ("σ", |numbers, figure| numbers.amount(figure.sigma())),
    ("var", |numbers, figure| {
        figure.variance.map_or_else(|| format!("{MISSING} "), |number| format!("{} ", variance(number, numbers.unit)))
    }),
    ("min", |numbers, _| numbers.quantile(0.0)),
    ("max", |numbers, _| numbers.quantile(1.0)),
    ("p50", |numbers, _| numbers.quantile(0.5)),
    ("p99", |numbers, _| numbers.quantile(0.99)),
    ("total", |numbers, _| numbers.amount(numbers.total)),
    ("CV", |_, figure| figure.cv().map_or_else(|| format!("{MISSING} "), |cv| format!("{} ", percent(cv)))),
];

/// The column whose name has the level of the intervals.
const ERROR: &str = "±";

fn statistics(page: &ScreenPage<'_>, shown: EventLine, width: usize) -> Vec<Line<'static>> {
    let figures = page.model.line_figures(shown);
    let measure = page.model.line_measure(shown);
    let (columns, spare) = statistics_columns(measure, width);
    let columns = &columns[..];
    let mut head = Line::from(page.span(Role::Header, " ".repeat(LABEL)));
    for &(name, _) in columns {
        let words = match name {
            ERROR => page.model.error_head(),
            "mean" if measure == Measure::Total => "total".into(),
            _ => name.into(),
        };
        head.push_span(page.span(Role::Header, right(&format!("{words} "), least_cells(name) + spare)));
    }
    let (scaled, estimated) = page.model.line_totals(shown);
    let numbers = |series: Series, total: Option<Uncertain>| {
        let mut sorted = rates(page, shown, series);
        sorted.sort_by(f64::total_cmp);
        StatisticsRow {
            figures: &figures,
            unit: page.model.line_unit(shown),
            sorted,
            total: total.map(|total| total.value),
        }
    };
    let row = |label: &str, role: Role, figure: Option<Figure>, numbers: StatisticsRow<'_>| {
        let mut line = Line::from(page.span(role, left(label, LABEL)));
        for (name, text) in columns {
            let text = figure.map_or_else(|| format!("{MISSING} "), |figure| text(&numbers, &figure));
            line.push_span(page.span(Role::Text, right(&text, least_cells(name) + spare)));
        }
        line
    };
    let without_total = measure != Measure::Total && columns.iter().all(|(name, _)| *name != "total");
    let label = if figures.is_exact() { "counted" } else { "raw" };
    let mut lines = vec![head, row(label, Role::Raw, figures.raw, numbers(Series::RAW, scaled))];
    if !figures.is_exact() {
        lines.push(row("corrected", Role::Corrected, figures.corrected, numbers(Series::CORRECTED, estimated)));
    }
    match shown {
        EventLine::Event(event) => {
            // Of what was counted all the time the last line says so.
            lines.extend((!is_whole(page, event)).then(|| moved(page, event, width)));
            lines.push(running(page, event, width, without_total));
        }
        EventLine::Sum(place) => lines.push(strip::parts(page, place, width)),
    }
    lines
}

/// Whether the count is exact, and nothing is left out of it.
fn is_whole(page: &ScreenPage<'_>, event: RowIndex) -> bool {
    let row = page.model.monitor.row(event);
    page.model.figures(event).is_exact() && row.raw.run.is_exact() && row.uncounted.is_none() && !row.lacks_units
}

/// `moved     +1.1% in all: R1 +1.5%, R4 −0.4%`.
fn moved(page: &ScreenPage<'_>, index: RowIndex, width: usize) -> Line<'static> {
    let row = page.model.monitor.row(index);
    let mut line = Line::from(page.span(Role::Dim, left("moved", LABEL)));
    let raw = row.scaled.map(|raw| raw.value).filter(|&raw| raw != 0.0);
    let unit = &row.event.event.unit;
    // Of a number that wasn't there, or was 0, there are no parts.
    let amount_of =
        |counts: f64| raw.map_or_else(|| amount(counts, unit).trim_end().to_owned(), |raw| change(counts / raw));
    let words = match row.correction() {
        Some(correction) => {
            let parts = row.estimate.parts.iter();
            let parts: Vec<_> =
                parts.map(|part| format!("{} {}", page.model.cause(part.by), amount_of(part.counts))).collect();
            let moved = correction.count.value - correction.raw.map_or(0.0, |raw| raw.value);
            format!("{} in all: {}", amount_of(moved), parts.join(", "))
        }
        None => strip::why_unmoved(&row),
    };
    line.push_span(page.span(Role::Text, cut(&words, width.saturating_sub(LABEL)).into_owned()));
    line
}

/// `enabled 83.0 s  running 41.5 s (50%)  scale ×2.00  group {A, B}`.
///
/// The total comes first where the statistics have no room for it.
fn running(page: &ScreenPage<'_>, index: RowIndex, width: usize, with_total: bool) -> Line<'static> {
    let header = page.model.monitor.header();
    let row = page.model.monitor.row(index);
    let total = row.raw.run.total();
    // A model's time is its instructions, one a nanosecond.
    let time = |time: CpuNs| match header.modelled {
        Some(_) => instructions(WallNs(time.0)),
        None => time_text(time.0 as f64),
    };
    let mut parts = vec![("enabled", time(total.enabled)), ("running", time(total.running))];
    if let Some(run) = row.raw.run.run_ratio() {
        parts[1].1.push_str(&format!(" ({})", whole_share(run)));
        if run > 0.0 && run < 1.0 {
            parts.push(("scale", format!("×{:.2}", 1.0 / run)));
        }
    }
    let count = row.raw.run.estimate().filter(|_| with_total);
    if let Some(count) = count {
        parts.insert(0, ("total", amount(count, &row.event.event.unit).trim_end().to_owned()));
    }
    if let (Some(share), Some(core)) = (row.core_share, row.event.event.core()) {
        parts.push(("on", format!("{}, {} of the time", crate::names::shown(core), whole_share(share))));
    } else if row.raw.run.is_exact() && !row.lacks_units {
        parts.push(("counted", "all the time".into()));
    }
    match row.event.event.units().len() {
        0 if row.lacks_units => parts.push(("threads", "those at the start: see Log, W14".into())),
        0 => {}
        all if row.lacks_units => parts.push(("units", format!("some of {all}: see Log, W14"))),
        all => parts.push(("units", format!("sum of {all}"))),
    }
    let group = header.groups.iter().find(|group| group.members.contains(&index));
    if let Some(group) = group {
        let names: Vec<_> = group.members.iter().map(|&member| page.model.event_name(member)).collect();
        parts.push(("group", format!("{{{}}}", names.join(", "))));
    }
    let mut line = Line::default();
    let mut room = width;
    for (label, text) in parts {
        // A part of which only a few letters would be left says nothing.
        if room < label.len() + 1 + crate::tui::text::width(&text).min(LEAST_PART) {
            break;
        }
        let text = cut(&text, room.saturating_sub(label.len() + 1)).into_owned();
        room = room.saturating_sub(label.len() + 3 + crate::tui::text::width(&text));
        line.push_span(page.span(Role::Dim, format!("{label} ")));
        line.push_span(page.span(Role::Text, text));
        line.push_span(Span::raw("  "));
    }
    line
}
