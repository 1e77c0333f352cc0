//! Draws the histories of the selected event on both sides.

use ratatui::layout::Rect;
use ratatui::text::Line;

use super::super::chart::{self, Chart, Series, TimeOrigin};
use super::super::page::ScreenPage;
use super::super::run_plot;
use super::rows::{is_told_of_all, mark, sentence};
use crate::compare::ComparedEvent;
use crate::monitor::{Measure, Monitor, Point};
use crate::names::shown;
use crate::plan::RowIndex;
use crate::run::Header;
use crate::tui::figures::ShownValues;
use crate::tui::text::amount;
use crate::tui::theme::Role;
use crate::units::WallNs;

pub(super) fn legend(page: &ScreenPage<'_>) -> Line<'static> {
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

/// What is said above the histories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HistoriesTitle {
    /// The event alone: the table says how its sides differ, and what the plots show.
    Event,
    /// That as well.
    Verdict,
}

/// The histories of the selected event in the first recording of each side, on one axis.
pub(super) fn draw_histories(page: &mut ScreenPage<'_>, area: Rect, says: HistoriesTitle) {
    let model = page.model;
    let Some(one) = model.comparison.selected() else {
        let _ = page.panel(area, Line::default(), Line::default(), false);
        return;
    };
    let mut title = Line::from(page.span(Role::Title, shown(&one.name).into_owned()));
    let mut words = Line::default();
    if says == HistoriesTitle::Verdict {
        if !is_told_of_all(&model.comparison.found, one) {
            let (glyph, role) = mark(one.verdict);
            title.push_span(page.span(Role::Border, " ─ "));
            title.push_span(page.span(role, format!("{glyph} {}", sentence(&model.comparison.found, one))));
        }
        words = legend(page);
    }
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
