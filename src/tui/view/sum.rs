//! Draws the row of the sum of an event's parts.

use ratatui::text::{Line, Span};

use super::event_columns::{EventColumn, EventsLayout};
use super::events::{now_error, run_cell, why_missing};
use super::page::ScreenPage;
use super::sparkline::sparkline;
use crate::names::shown;
use crate::number::{change, percent, variance};
use crate::plan::RowIndex;
use crate::tui::figures::{CorrectionEffect, Figure, Figures, ShownValues};
use crate::tui::model::{EventFold, EventLine};
use crate::tui::symbols::{CURSOR, MISSING};
use crate::tui::text::{amount, cut_middle, left, right};
use crate::tui::theme::Role;

/// What stands before a name that unfolds, and before one that folds.
const CLOSED: &str = "+ ";
const OPEN: &str = "− ";

/// What stands before a part.
const INDENT: &str = "    ";

/// The names of all lines that there can be.
pub(super) fn names(page: &ScreenPage<'_>) -> Vec<String> {
    let model = page.model;
    let parts = (0..model.monitor.header().events.len()).map(|event| part_name(page, event));
    let sums = (0..model.events.folds.len()).map(|place| short_name(page, EventLine::Sum(place)));
    parts.chain(sums).collect()
}

/// The name of an event; of a part only which part it is, as its sum stands above it.
pub(super) fn part_name(page: &ScreenPage<'_>, event: RowIndex) -> String {
    let model = page.model;
    match model.events.fold_of(event) {
        Some(_) => format!("{INDENT}{}", shown(&model.monitor.header().events[event].scope.to_string())),
        None => model.event_name(event),
    }
}

/// The name with a sign that it unfolds.
pub(super) fn short_name(page: &ScreenPage<'_>, line: EventLine) -> String {
    match line {
        EventLine::Event(event) => part_name(page, event),
        EventLine::Sum(place) => {
            let sign = if page.model.events.folds[place].is_open { OPEN } else { CLOSED };
            format!("{sign}{}", page.model.line_name(line))
        }
    }
}

pub(super) fn line(
    page: &ScreenPage<'_>,
    (place, figures): (usize, &Figures),
    columns: &EventsLayout,
    gap: usize,
) -> Line<'static> {
    let model = page.model;
    let whole = EventLine::Sum(place);
    let cursor = if model.events.cursor == whole { CURSOR } else { " " };
    let mut line = Line::from(vec![page.span(Role::Key, format!("{cursor} "))]);
    let name = cut_middle(&short_name(page, whole), columns[0].1).into_owned();
    let Some(figure) = figures.shown(model.basis) else {
        line.push_span(page.span(Role::Dim, left(&name, columns[0].1 + gap)));
        let absence = model.monitor.sum(&model.events.folds[place].parts.events).absence;
        line.push_span(page.span(Role::Missing, why_missing(page, absence)));
        return line;
    };
    line.push_span(page.span(Role::Text, left(&name, columns[0].1)));
    for &(column, width) in &columns[1..] {
        line.push_span(Span::raw(" ".repeat(gap)));
        line.spans.extend(cell(page, (column, width), &model.events.folds[place], figures, figure));
    }
    line
}

fn cell(
    page: &ScreenPage<'_>,
    (column, width): (EventColumn, usize),
    EventFold { parts, .. }: &EventFold,
    figures: &Figures,
    figure: Figure,
) -> Vec<Span<'static>> {
    let model = page.model;
    let unit = &model.monitor.header().events[parts.events[0]].event.unit;
    let measure = model.measures.of(&model.monitor, parts.events[0]);
    let number = |number: Option<f64>| number.map_or_else(|| format!("{MISSING} "), |number| amount(number, unit));
    let (raw, corrected) = measure.extremes_of_sum(&model.monitor, &parts.events);
    let extremes = if model.basis == ShownValues::Raw { raw } else { corrected };
    let (role, text) = match column {
        EventColumn::Now => (Role::Text, number(figures.shown_now(model.basis).map(|now| now.value))),
        EventColumn::NowError => (Role::Dim, now_error(figures, model.basis, unit)),
        EventColumn::Unit => return vec![page.span(Role::Dim, left(measure.suffix(model.monitor.header()), width))],
        EventColumn::Mean => (Role::Title, amount(figure.mean, unit)),
        EventColumn::Error => (Role::Text, figures.error_of(figure, unit)),
        EventColumn::Raw => (Role::Raw, number(figures.raw.map(|raw| raw.mean))),
        EventColumn::RawError => {
            (Role::Dim, figures.raw.map_or_else(|| MISSING.into(), |raw| figures.error_of(raw, unit)))
        }
        EventColumn::Correction => match figures.correction {
            CorrectionEffect::Derived => (Role::Corrected, "derived".into()),
            CorrectionEffect::By(Some(part)) => (Role::Corrected, change(part)),
            CorrectionEffect::By(None) => (Role::Corrected, "yes".into()),
            CorrectionEffect::None => (Role::Dim, MISSING.into()),
        },
        EventColumn::Run => return run_cell(page, width, figures),
        EventColumn::Trend => {
            return sparkline(page, &measure.points_of_sum(&model.monitor, &parts.events, width), width);
        }
        EventColumn::By => return vec![page.span(Role::Dim, left(MISSING, width))],
        EventColumn::Variance => {
            (Role::Dim, figure.variance.map_or_else(|| MISSING.into(), |number| variance(number, unit)))
        }
        EventColumn::Sigma => (Role::Dim, number(figure.sigma())),
        EventColumn::Cv => (Role::Dim, figure.cv().map_or_else(|| MISSING.into(), percent)),
        EventColumn::Min => (Role::Dim, number(extremes.map(|extremes| extremes.least))),
        EventColumn::Max => (Role::Dim, number(extremes.map(|extremes| extremes.most))),
        // What isn't known of a sum: its samples, and how far it is from the truth.
        _ => (Role::Dim, MISSING.into()),
    };
    vec![page.span(role, right(&text, width))]
}
