//! Draws the row of the sum of an event's parts.

use ratatui::text::{Line, Span};

use super::events::{Column, Layout, run_cell, sparkline, why_missing};
use super::page::Page;
use crate::names::shown;
use crate::number::{change, percent, scientific};
use crate::plan::EventIndex;
use crate::tui::figures::{Change, Figure, Figures};
use crate::tui::model::{Fold, Line as Shown};
use crate::tui::symbols::{CURSOR, MISSING};
use crate::tui::text::{amount, cut_middle, left, right};
use crate::tui::theme::Role;

/// What stands before a name that unfolds, and before one that folds.
const CLOSED: &str = "+ ";
const OPEN: &str = "− ";

/// What stands before a part.
const INDENT: &str = "    ";

/// The names of all lines that there can be.
pub(super) fn names(page: &Page<'_>) -> Vec<String> {
    let model = page.model;
    let parts = (0..model.monitor.header().events.len()).map(|event| part_name(page, event));
    let sums = (0..model.events.folds.len()).map(|place| short_name(page, Shown::Sum(place)));
    parts.chain(sums).collect()
}

/// The name of an event; of a part only which part it is, as its sum stands above it.
pub(super) fn part_name(page: &Page<'_>, event: EventIndex) -> String {
    let model = page.model;
    match model.events.fold_of(event) {
        Some(_) => format!("{INDENT}{}", shown(&model.monitor.header().events[event].scope.to_string())),
        None => model.event_name(event),
    }
}

/// The name with a sign that it unfolds.
pub(super) fn short_name(page: &Page<'_>, line: Shown) -> String {
    match line {
        Shown::Event(event) => part_name(page, event),
        Shown::Sum(place) => {
            let sign = if page.model.events.folds[place].is_open { OPEN } else { CLOSED };
            format!("{sign}{}", page.model.line_name(line))
        }
    }
}

pub(super) fn line(page: &Page<'_>, place: usize, columns: &Layout, gap: usize) -> Line<'static> {
    let model = page.model;
    let whole = Shown::Sum(place);
    let cursor = if model.events.cursor == whole { CURSOR } else { " " };
    let mut line = Line::from(vec![page.span(Role::Key, format!("{cursor} "))]);
    let name = cut_middle(&short_name(page, whole), columns[0].1).into_owned();
    let figures = model.line_figures(whole);
    let Some(figure) = figures.shown(model.basis) else {
        line.push_span(page.span(Role::Dim, left(&name, columns[0].1 + gap)));
        let absence = model.monitor.sum(&model.events.folds[place].parts.events).absence;
        line.push_span(page.span(Role::Missing, why_missing(page, absence)));
        return line;
    };
    line.push_span(page.span(Role::Text, left(&name, columns[0].1)));
    for &(column, width) in &columns[1..] {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.spans.extend(cell(page, (column, width), &model.events.folds[place], &figures, figure));
    }
    line
}

fn cell(
    page: &Page<'_>,
    (column, width): (Column, usize),
    Fold { parts, .. }: &Fold,
    figures: &Figures,
    figure: Figure,
) -> Vec<Span<'static>> {
    let model = page.model;
    let unit = &model.monitor.header().events[parts.events[0]].event.unit;
    let (role, text) = match column {
        Column::Mean => (Role::Title, amount(figure.mean, unit)),
        Column::Error => (Role::Text, figures.error_of(figure, unit)),
        Column::Raw => (Role::Raw, figures.raw.map_or_else(|| format!("{MISSING} "), |raw| amount(raw.mean, unit))),
        Column::RawError => (Role::Dim, figures.raw.map_or_else(|| MISSING.into(), |raw| figures.error_of(raw, unit))),
        Column::Correction => match figures.correction {
            Change::Derived => (Role::Corrected, "derived".into()),
            Change::By(Some(part)) => (Role::Corrected, change(part)),
            Change::By(None) => (Role::Corrected, "yes".into()),
            Change::None => (Role::Dim, MISSING.into()),
        },
        Column::Run => return run_cell(page, width, figures),
        Column::Trend => {
            return sparkline(page, &model.measure.points_of_sum(&model.monitor, &parts.events, width), width);
        }
        Column::By => return vec![page.span(Role::Dim, left(MISSING, width))],
        Column::Variance => (Role::Dim, figure.variance.map_or_else(|| MISSING.into(), scientific)),
        Column::Sigma => (Role::Dim, figure.sigma().map_or_else(|| format!("{MISSING} "), |sigma| amount(sigma, unit))),
        Column::Cv => (Role::Dim, figure.cv().map_or_else(|| MISSING.into(), percent)),
        // What isn't kept of a sum: its extremes, and how far it is from the truth.
        _ => (Role::Dim, MISSING.into()),
    };
    vec![page.span(role, right(&text, width))]
}
