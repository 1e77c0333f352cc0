//! A monitor in, a table of its events as plain text out: what `top` prints without a terminal.

use crate::words::shown;
use std::fmt::Write;

use super::number::{amount, plus_minus, si};
use crate::estimate::{Quality, RelationState};
use crate::monitor::{Measure, Monitor, Row};
use crate::rates::Error;

/// One block of text: a line of state, a heading, a line an event, a line a relation in use.
pub fn block(monitor: &Monitor, measure: Measure) -> String {
    let header = monitor.header();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "perfprop  {}  {:.1} s  n={}",
        shown(&header.title()),
        monitor.now().as_secs(),
        monitor.intervals()
    );
    if let Some(words) = header.modelled_words() {
        let _ = writeln!(out, "{words}");
    }
    let width = header.events.iter().map(|event| shown(&event.event.name).chars().count()).max().unwrap_or(0).max(5);
    let mean = format!("MEAN{}", measure.suffix(header));
    let _ = writeln!(out, "{:<width$}  {mean:>11}  {:>7}  {:>9}  {:>6}  CORRECTED", "EVENT", "±95%", "SIGMA", "RUN");
    for row in monitor.rows() {
        let _ = writeln!(out, "{:<width$}  {}", shown(&row.event.event.name), cells(monitor, &row, measure).trim_end());
    }
    relations(&mut out, monitor);
    out
}

fn cells(monitor: &Monitor, row: &Row<'_>, measure: Measure) -> String {
    let (Some(mean), Some(factor), None) = (row.raw.rate.mean(), measure.factor(monitor, row), row.absence) else {
        let words = row.absence.map_or("not known", |absence| absence.words());
        let derived = Measure::factor(measure, monitor, row).map(|factor| correction(monitor, row, factor));
        return format!("{words:>15}  {:>28}{}", "", derived.unwrap_or_default());
    };
    let unit = &row.event.event.unit;
    let sigma = row.raw.rate.variance().map_or_else(String::new, |variance| amount(variance.sqrt() * factor, unit));
    let run = row.raw.run.run_ratio().map_or_else(String::new, |ratio| format!("{:.0}%", ratio * 100.0));
    let error = error_text(row.raw.rate_error(), mean);
    format!(
        "{:>11}  {error:>7}  {sigma:>9}  {run:>6}  {}",
        amount(mean * factor, unit),
        correction(monitor, row, factor)
    )
}

/// `exact`, `±1.8%`, or `±?` for what isn't known; beside a 0, which has no percents, `±1.2` in
/// its own unit.
pub(super) fn error_text(error: Error, mean: f64) -> String {
    match (error, error.relative_to(mean)) {
        (Error::Exact, _) => "exact".into(),
        (Error::Unknown, _) => "±?".into(),
        (Error::Within(_), Some(relative)) => plus_minus(relative),
        (Error::Within(half_width), None) => format!("±{}", si(half_width)),
    }
}

fn correction(monitor: &Monitor, row: &Row<'_>, factor: f64) -> String {
    let (Some(mean), Quality::Corrected(by) | Quality::Derived(by)) = (row.estimate.mean, row.estimate.quality) else {
        return String::new();
    };
    let error = error_text(row.estimate.error, mean);
    format!("{} {error} by {}", amount(mean * factor, &row.event.event.unit), shown(&monitor.relations()[by].id))
}

fn relations(out: &mut String, monitor: &Monitor) {
    for (relation, standing) in monitor.relations().iter().zip(monitor.standings()) {
        let state = match &standing.state {
            RelationState::Waiting => "waiting".into(),
            RelationState::Agrees => "agrees".into(),
            RelationState::Violated => "violated, corrects nothing".into(),
            RelationState::SameEvent { event } => {
                format!("inactive: both events are {}", shown(&monitor.header().events[*event].event.name))
            }
            RelationState::Inactive { missing } => format!("inactive: needs {}", shown(&missing.join(", "))),
        };
        let residual = match (standing.relative, standing.z) {
            (Some(relative), Some(z)) => format!("  residual {:+.1}%  z {z:+.1}", relative * 100.0),
            _ => String::new(),
        };
        let used = if standing.uses > 0 { format!("  used {}x", standing.uses) } else { String::new() };
        let _ = writeln!(out, "{}  {}{residual}{used}  {state}", shown(&relation.id), shown(&relation.formula()));
    }
}
