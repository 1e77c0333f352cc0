//! Draws the table of metrics: their values, errors and thresholds.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::events;
use super::page::ScreenPage;
use super::sparkline::bars;
use crate::events::Unit;
use crate::metrics::{NoValue, Number, ThresholdVerdict};
use crate::monitor::MetricRow;
use crate::names::shown;
use crate::number::{plus_minus, si};
use crate::tui::layout::{rows_of_list, split_below};
use crate::tui::model::VisibleRows;
use crate::tui::symbols::{MISSING, OK, WARN};
use crate::tui::text::{cut, cut_middle, left, right, width};
use crate::tui::theme::Role;

/// The least rows of a region that metrics take a part of, and that part.
const LEAST_REGION: u16 = 10;
const PART: u16 = 3;

/// Cells of the numbers, of units at most, and of the threshold's word.
const NUMBER: usize = 9;
const MOST_UNIT: usize = 16;
const STATE: usize = 16;
const MOST_NAME: usize = 36;
const LEAST_TREND: usize = 10;
const MOST_TREND: usize = 40;

/// The region of the events, and the one of the metrics below it, empty where there are none.
pub(super) fn below_events(page: &ScreenPage<'_>, area: Rect) -> (Rect, Rect) {
    let wanted = page.model.monitor.metrics().count();
    if wanted == 0 || area.height < LEAST_REGION {
        return (area, Rect::default());
    }
    // What the events leave free, and a part of the region in any case.
    let free = events::free_rows(page, area);
    split_below(area, rows_of_list(wanted).min(free.max(area.height / PART).max(4)))
}

pub(super) fn draw(page: &mut ScreenPage<'_>, area: Rect) {
    if area.height == 0 {
        return;
    }
    let monitor = &page.model.monitor;
    let metrics: Vec<_> = monitor.metrics().collect();
    let title = Line::from(page.span(Role::Title, "Metrics"));
    let shown = VisibleRows::in_panel(area, 1, metrics.len());
    let inner = page.list(area, title, (shown, metrics.len()), Some("a larger window"));
    let layout = MetricsLayout::of(usize::from(inner.width), &metrics);
    let mut rows = inner.rows();
    let error = format!("±{}", monitor.confidence());
    if let Some(row) = rows.next() {
        let heads = page.span(Role::Header, layout.line("METRIC", "VALUE", &error, "UNIT", "LAST", "STATE"));
        page.line(row, heads);
    }
    for (metric, row) in metrics.iter().zip(rows) {
        let line = metric_line(page, metric, &layout);
        page.line(row, line);
    }
}

/// Widths of the columns that depend on the room: what doesn't fit is left out from the right.
struct MetricsLayout {
    name: usize,
    unit: usize,
    has_last: bool,
    /// Width of the state: its glyph alone, or its word too; 0 where no metric has a threshold.
    state: usize,
    trend: usize,
}

impl MetricsLayout {
    fn of(room: usize, metrics: &[MetricRow<'_>]) -> Self {
        let names = metrics.iter().map(|metric| width(&shown(&metric.title())));
        let longest = names.max().unwrap_or(6).clamp(6, MOST_NAME);
        let mut spare = room.saturating_sub(longest + 2 * (NUMBER + 1));
        let mut take = |cells: usize| {
            let fits = spare > cells;
            spare -= if fits { cells + 1 } else { 0 };
            fits
        };
        let units = metrics.iter().map(|metric| width(&shown(&metric.definition.unit)));
        let unit = units.max().unwrap_or(0).clamp(4, MOST_UNIT);
        let has_unit = take(unit);
        let has_threshold = metrics.iter().any(|metric| metric.definition.threshold.is_some());
        let state = [STATE, 1].into_iter().find(|&cells| has_threshold && take(cells)).unwrap_or(0);
        // The last interval's number leaves for the sake of a trend that shows anything.
        let has_last = take(NUMBER + LEAST_TREND);
        spare += if has_last { LEAST_TREND } else { 0 };
        let unit = if has_unit { unit } else { 0 };
        let name = longest.min(room.saturating_sub(2 * (NUMBER + 1))).max(3);
        Self { name, unit, has_last, state, trend: spare.saturating_sub(1).min(MOST_TREND) }
    }

    fn line(&self, name: &str, value: &str, error: &str, unit: &str, last: &str, state: &str) -> String {
        let mut line = format!("{} {} {}", left(name, self.name), right(value, NUMBER), right(error, NUMBER));
        for (is_there, text) in [(self.unit > 0, left(unit, self.unit)), (self.has_last, right(last, NUMBER))] {
            line.push_str(&if is_there { format!(" {text}") } else { String::new() });
        }
        // A glyph alone has no head.
        let state = if self.state > 1 { state } else { "" };
        line.push_str(&format!(" {}", left(state, self.state)));
        line
    }
}

/// A metric in one line, for the smallest screens.
pub(super) fn short_line(page: &ScreenPage<'_>, metric: &MetricRow<'_>, cells: usize) -> Line<'static> {
    let (role, value) = match metric.over_run() {
        Ok(number) => {
            let unit = shown(&metric.definition.unit).into_owned();
            let text = format!("{}{} {}", si(number.value), if unit == "%" { "%" } else { "" }, error(&number));
            (Role::Text, text)
        }
        Err(none) => (Role::Missing, format!("{MISSING} {}", words(metric, none))),
    };
    let value = cut(&value, cells * 2 / 3).into_owned();
    let name = cut_middle(&shown(&metric.title()), cells.saturating_sub(width(&value) + 2).max(4)).into_owned();
    let gap = cells.saturating_sub(width(&name) + 1);
    Line::from(vec![page.span(Role::Dim, format!(" {name}")), page.span(role, right(&value, gap))])
}

fn metric_line(page: &ScreenPage<'_>, metric: &MetricRow<'_>, layout: &MetricsLayout) -> Line<'static> {
    let name = cut_middle(&shown(&metric.title()), layout.name).into_owned();
    let number = match metric.over_run() {
        Ok(number) => number,
        Err(none) => {
            let mut line = Line::from(page.span(Role::Text, left(&name, layout.name)));
            line.push_span(page.span(Role::Missing, format!(" {MISSING} {}", words(metric, none))));
            return line;
        }
    };
    let mut line = Line::from(page.span(Role::Text, left(&name, layout.name + 1)));
    line.push_span(page.span(Role::Title, right(&si(number.value), NUMBER)));
    line.push_span(page.span(Role::Text, right(&error(&number), NUMBER + 1)));
    if layout.unit > 0 {
        let unit = cut_middle(&shown(&metric.definition.unit), layout.unit).into_owned();
        line.push_span(page.span(Role::Dim, format!(" {}", left(&unit, layout.unit))));
    }
    if layout.has_last {
        let last = metric.over_interval().map_or_else(|_| MISSING.to_owned(), |number| si(number.value));
        line.push_span(page.span(Role::Dim, right(&last, NUMBER + 1)));
    }
    if layout.state > 0 {
        line.push_span(Span::raw(" "));
        line.push_span(state(page, metric, number.verdict, layout.state));
    }
    line.spans.extend(trend(page, metric, layout.trend));
    line
}

fn words(metric: &MetricRow<'_>, none: NoValue) -> String {
    shown(&metric.why(none)).into_owned()
}

fn error(number: &Number) -> String {
    plus_minus(number.uncertain(), &Unit::Count)
}

fn state(page: &ScreenPage<'_>, metric: &MetricRow<'_>, verdict: ThresholdVerdict, cells: usize) -> Span<'static> {
    let (role, glyph) = match verdict {
        ThresholdVerdict::Unjudged => (Role::Dim, " "),
        ThresholdVerdict::Fine => (Role::Ok, OK),
        ThresholdVerdict::Noticeable => (Role::Warn, WARN),
    };
    let word = if cells > 1 { metric.verdict(verdict) } else { String::new() };
    page.span(role, left(format!("{glyph} {word}").trim_end(), cells))
}

/// The newest intervals; one without a value is a gap.
fn trend(page: &ScreenPage<'_>, metric: &MetricRow<'_>, cells: usize) -> Vec<Span<'static>> {
    let intervals = page.model.monitor.row(metric.leader()).history.len().min(cells);
    let values: Vec<_> =
        (0..intervals).rev().map(|back| metric.interval(back).ok().map(|number| number.value)).collect();
    std::iter::once(Span::raw(" ")).chain(bars(page, &values)).collect()
}
