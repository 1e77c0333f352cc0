//! Draws the cells of the table of events.

use ratatui::text::Span;

use super::event_columns::EventColumn;
use super::page::ScreenPage;
use super::sparkline::sparkline;
use crate::events::Unit;
use crate::monitor::Extremes;
use crate::number::{change, percent, variance, whole_share};
use crate::tui::figures::{CorrectionEffect, Figure, Figures, ShownValues, intervals_of};
use crate::tui::model::EventLine;
use crate::tui::symbols::{MISSING, WARN};
use crate::tui::text::{amount, left, right};
use crate::tui::theme::Role;

/// Run ratio above which an event counts as running all the time.
const FULL_RUN_RATIO: f64 = 0.95;

/// A number of an event, or of the sum of its parts.
pub(super) fn cell(
    page: &ScreenPage<'_>,
    (column, width): (EventColumn, usize),
    line: EventLine,
    figures: &Figures,
    figure: Figure,
) -> Vec<Span<'static>> {
    let model = page.model;
    let unit = model.line_unit(line);
    let number = |number: Option<f64>| number.map_or_else(|| format!("{MISSING} "), |number| amount(number, unit));
    let (role, text) = match column {
        EventColumn::Now => (Role::Text, number(figures.shown_now(model.basis).map(|now| now.value))),
        EventColumn::NowError => (Role::Dim, now_error(figures, model.basis, unit, width)),
        EventColumn::Mean => (Role::Title, amount(figure.mean, unit)),
        EventColumn::Error => (Role::Text, figures.error_within(figure, unit, width)),
        EventColumn::Unit => return vec![page.span(Role::Dim, left(model.line_suffix(line), width))],
        EventColumn::Variance => {
            (Role::Dim, figure.variance.map_or_else(|| MISSING.into(), |number| variance(number, unit)))
        }
        EventColumn::Sigma => (Role::Dim, number(figure.sigma())),
        EventColumn::Cv => (Role::Dim, figure.cv().map_or_else(|| MISSING.into(), percent)),
        EventColumn::Min => (Role::Dim, number(extremes(page, line).map(|extremes| extremes.least))),
        EventColumn::Max => (Role::Dim, number(extremes(page, line).map(|extremes| extremes.most))),
        EventColumn::Samples => samples(page, line),
        EventColumn::Raw => (Role::Raw, number(figures.raw.map(|raw| raw.mean))),
        EventColumn::RawError => {
            let error = figures.raw.map_or_else(|| MISSING.into(), |raw| figures.error_within(raw, unit, width));
            (Role::Dim, error)
        }
        EventColumn::Run => return run_cell(page, width, figures),
        EventColumn::Off => off(page, line),
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
        EventColumn::Trend => return sparkline(page, &model.line_points(line, width), width),
        EventColumn::Event => (Role::Text, String::new()),
    };
    vec![page.span(role, right(&text, width))]
}

/// How far the number of the newest interval may be off.
fn now_error(figures: &Figures, basis: ShownValues, unit: &Unit, cells: usize) -> String {
    let now = figures.shown_now(basis);
    now.map_or_else(
        || MISSING.into(),
        |now| figures.error_within(Figure { mean: now.value, error: now.error, variance: None }, unit, cells),
    )
}

/// The warning's place is kept free, so that digits stand below one another.
fn run_cell(page: &ScreenPage<'_>, width: usize, figures: &Figures) -> Vec<Span<'static>> {
    let Some(run) = figures.run else { return vec![page.span(Role::Dim, right(&format!("{MISSING} "), width))] };
    let (role, mark) = match run {
        // The time on one kind of core.
        _ if figures.is_partial => (Role::RunPart, " "),
        run if figures.leans_on_scaling(run, page.model.basis) => (Role::RunLow, WARN),
        run if run < FULL_RUN_RATIO => (Role::RunPart, " "),
        _ => (Role::RunFull, " "),
    };
    vec![page.span(role, right(&format!("{}{mark}", whole_share(run)), width))]
}

fn extremes(page: &ScreenPage<'_>, line: EventLine) -> Option<Extremes> {
    let (monitor, measure) = (&page.model.monitor, page.model.line_measure(line));
    let (raw, corrected) = match line {
        EventLine::Event(event) => measure.extremes(monitor, event),
        EventLine::Sum(place) => measure.extremes_of_sum(monitor, &page.model.events.folds[place].parts.events),
    };
    if page.model.basis == ShownValues::Raw { raw } else { corrected }
}

/// How many intervals there are; of a sum that isn't known.
fn samples(page: &ScreenPage<'_>, line: EventLine) -> (Role, String) {
    let text = match line {
        EventLine::Event(event) => {
            let monitor = &page.model.monitor;
            intervals_of(monitor, &monitor.row(event)).to_string()
        }
        EventLine::Sum(_) => MISSING.into(),
    };
    (Role::Dim, text)
}

/// How far the number is from the truth, where that is counted beside.
fn off(page: &ScreenPage<'_>, line: EventLine) -> (Role, String) {
    let truth = match line {
        EventLine::Event(event) => page.model.monitor.truth(event),
        EventLine::Sum(_) => None,
    };
    let error = truth.and_then(|truth| match page.model.basis {
        ShownValues::Corrected | ShownValues::Both => truth.corrected.or(truth.scaled),
        ShownValues::Raw => truth.scaled,
    });
    error.map_or_else(|| (Role::Dim, MISSING.into()), |error| (Role::Text, change(error)))
}
