//! Prints a monitor's events as a table of plain text, for `top` without a terminal.

use crate::names::shown;
use std::fmt::Write;

use super::summary::correction_text;
use super::{column_width, metric};
use crate::estimate::RelationState;
use crate::monitor::{Measure, MeasureChoice, Monitor, Row};
use crate::number::{amount, change, plus_minus_sides, signed, whole_share};
use crate::rates::Uncertain;
use crate::units::WallNs;

/// One block of text: a line of state, a heading, a line an event, a metric, a relation in use.
pub fn block(monitor: &Monitor, measures: MeasureChoice) -> String {
    let header = monitor.header();
    let mut out = String::new();
    let _ =
        writeln!(out, "perfprop  {}  {}  n={}", shown(&header.title()), block_time(monitor.now()), monitor.intervals());
    if let Some(words) = header.modelled_words() {
        let _ = writeln!(out, "{words}");
    }
    let width = column_width(header.events.iter().map(|event| shown(&event.title()).into_owned())).max(5);
    let is_corrected = monitor.rows().any(|row| row.correction().is_some());
    let heads = format!(
        "{:<width$}  {:>9}  {:>11} {:<6}  {:>11}  {:>9}  {:>6}  {}",
        "EVENT",
        if monitor.ended().is_some() { "LAST" } else { "NOW" },
        "MEAN",
        "",
        format!("±{}", monitor.confidence()),
        "SIGMA",
        "RUN",
        if is_corrected { "CORRECTED" } else { "" }
    );
    let _ = writeln!(out, "{}", heads.trim_end());
    for row in monitor.rows() {
        let _ = writeln!(out, "{:<width$}  {}", shown(&row.event.title()), cells(monitor, &row, measures).trim_end());
    }
    for metric in metric::all(monitor) {
        let _ = writeln!(out, "{}", metric.text());
    }
    relations(&mut out, monitor);
    out
}

/// Up to when a block counts.
fn block_time(time: WallNs) -> String {
    format!("{:.1} s", time.as_secs())
}

/// Whether the end of a run is to be printed behind the reading that was printed last: not where that has the same
/// time, and nearly all counts.
pub fn is_another_reading(monitor: &Monitor, printed: Option<WallNs>) -> bool {
    let (end, interval) = (monitor.now(), monitor.header().interval_ns);
    printed.is_none_or(|printed| block_time(printed) != block_time(end) || end - printed >= WallNs(interval.0 / 10))
}

fn cells(monitor: &Monitor, row: &Row<'_>, measures: MeasureChoice) -> String {
    let measure = measures.of(monitor, row.index);
    let factor = measure.factor(monitor, row);
    let unit = &row.event.event.unit;
    let number = |count: f64| amount(count, unit);
    let correction = row.correction().zip(factor).map_or_else(String::new, |(correction, factor)| {
        correction_text(monitor, row, &correction.times(factor.value), &number)
    });
    let (Some(scaled), Some(factor), None) = (row.count(), factor, row.absence) else {
        let words = row.absence.map_or("not known", |absence| absence.words());
        return format!("{words:>26}  {:>36}{correction}", "");
    };
    // Of a total, the spread is that of rates, and the mean of a rate is the count over the time.
    let of_total = || {
        let per_rate = factor.value * row.cpu_time.as_ms();
        row.raw.rate.variance().map(|variance| variance * per_rate * per_rate)
    };
    let variance = if measure == Measure::Total { of_total() } else { measure.variance(monitor, row) };
    let sigma = variance.map_or_else(String::new, |variance| number(variance.sqrt()));
    let run = row.core_share.or(row.raw.run.run_ratio()).map_or_else(String::new, whole_share);
    let scaled = scaled.times(factor);
    let (error, suffix) = (error_cell(row, scaled), measure.suffix(monitor.header()));
    // What is counted of a run in all has another unit than an interval.
    let newest = (measure != Measure::Total).then(|| measure.newest(monitor, row, 1).pop()).flatten();
    let now = newest.and_then(|point| point.best());
    let now = now.map_or_else(String::new, |now| number(now.value));
    format!("{now:>9}  {:>11} {suffix:<6}  {error:>11}  {sigma:>9}  {run:>6}  {correction}", number(scaled.value))
}

/// The error of a count, or the word for what one kind of core or some units counted: how far that is from all of
/// it isn't known.
pub(super) fn error_cell(row: &Row<'_>, number: Uncertain) -> String {
    if row.is_partial() { PARTIAL.into() } else { plus_minus_sides(number, &row.event.event.unit) }
}

/// The word for a count that other kinds of cores, or other units, have no part in.
pub(super) const PARTIAL: &str = "partial";

fn relations(out: &mut String, monitor: &Monitor) {
    for (relation, standing) in monitor.relations().iter().zip(monitor.standings()) {
        let state = match &standing.state {
            RelationState::Waiting => "waiting".into(),
            RelationState::Agrees if standing.is_doubted() => "doubted".into(),
            RelationState::Agrees if standing.is_far_off(relation.tolerance) => "uncertain".into(),
            RelationState::Agrees => "agrees".into(),
            RelationState::Violated if standing.corrects_regardless() => "violated, corrects nevertheless".into(),
            RelationState::Violated => "violated, corrects nothing".into(),
            RelationState::SameEvent { event } => {
                format!("inactive: both events are {}", shown(&monitor.header().events[*event].event.name))
            }
            RelationState::Inactive { missing } => format!("inactive: needs {}", shown(&missing.join(", "))),
        };
        let residual = match (standing.relative, standing.z) {
            (Some(relative), Some(z)) => format!("  residual {}  z {}", change(relative), signed(z)),
            _ => String::new(),
        };
        let trust = standing.trust.map_or_else(String::new, |trust| format!("  trust {}", whole_share(trust)));
        let used = if standing.uses > 0 { format!("  used {}x", standing.uses) } else { String::new() };
        let _ =
            writeln!(out, "{}  {}{residual}{trust}{used}  {state}", shown(&relation.id), shown(&relation.formula()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;
    use crate::run::Header;
    use crate::sources::Round;

    #[test]
    fn an_end_at_the_time_of_the_last_reading_is_no_other_one() {
        let is_another = |end: u64, printed: Option<u64>| {
            let header = Header { interval_ns: WallNs(100_000_000), ..builders::header([]) };
            let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
            monitor.round(&Round { at: WallNs(end), ..Round::default() }, 0);
            is_another_reading(&monitor, printed.map(WallNs))
        };
        assert!(!is_another(1_000_300_000, Some(1_000_100_000)));
        assert!(is_another(1_400_000_000, Some(1_000_100_000)) && is_another(3_000_000, None));
        // Not much later, but there is more in it.
        assert!(is_another(1_040_000_000, Some(1_000_100_000)));
    }
}
