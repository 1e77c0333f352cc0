//! A monitor in, lines of separated fields out: those of `perf stat -x` in the same order, and ours
//! behind them.
//!
//! ```text
//! [time,][CPU0,|comm-tid,]value,unit,event,[standard error%,]runtime,running%,metric,metric unit,
//!     mean per CPU second,low,high,variance,corrected mean,relation,status
//! ```

use super::json::status;
use super::summary::{Metric, Repeats, absence_cell, counted, interval_metric, run_metric, scaled};
use crate::estimate::Quality;
use crate::events::Unit;
use crate::monitor::{Monitor, Row};
use crate::rates::Error;
use crate::words::shown;

/// A line an event for whole runs.
pub fn totals(runs: &Repeats<'_>, separator: &str) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let line = |row: Row<'_>| {
        let count = runs.mean_count(row.index);
        let mut fields = counted_fields(&row, count);
        if runs.0.len() > 1 {
            fields
                .push(runs.standard_error(row.index).map_or_else(String::new, |part| format!("{:.2}%", part * 100.0)));
        }
        let total = row.raw.run.total();
        fields.extend(time_fields(
            total.running.0,
            row.core_share.or(row.raw.run.run_ratio()),
            run_metric(runs, last, &row),
        ));
        let error = if runs.0.len() > 1 { Error::Unknown } else { row.raw.run.error() };
        fields.extend(our_fields(last, &row, count, error));
        fields
    };
    joined(last.rows().map(line), separator)
}

/// A line an event for the interval that ended last.
pub fn interval(monitor: &Monitor, separator: &str) -> String {
    let line = |row: Row<'_>| {
        let point = row.history.back().filter(|_| row.absence.is_none());
        let count = point.and_then(scaled);
        let mut fields = vec![format!("{:>16.9}", monitor.now().as_secs())];
        fields.extend(counted_fields(&row, count));
        let metric = point.and_then(|_| interval_metric(monitor, &row));
        fields.extend(time_fields(
            point.map_or(0, |point| point.running.0),
            row.core_share.or(point.and_then(|point| point.run_ratio)),
            metric,
        ));
        let error = point.map_or(Error::Unknown, |point| point.error.scaled(point.enabled.as_ms()));
        fields.extend(our_fields(monitor, &row, count, error));
        fields
    };
    joined(monitor.rows().map(line), separator)
}

fn joined(lines: impl Iterator<Item = Vec<String>>, separator: &str) -> String {
    lines.map(|fields| fields.join(separator) + "\n").collect()
}

/// Part of the target, value, unit, event.
fn counted_fields(row: &Row<'_>, count: Option<f64>) -> Vec<String> {
    let event = &row.event.event;
    let scope = Some(shown(&row.event.scope.to_string()).into_owned()).filter(|scope| !scope.is_empty());
    let value = count.map_or_else(|| absence_cell(row.absence).to_owned(), |count| number(count, &event.unit));
    scope.into_iter().chain([value, counted(0.0, &event.unit).unit, shown(&event.name).into_owned()]).collect()
}

/// Whole counts; what has a unit with two decimals.
fn number(count: f64, unit: &Unit) -> String {
    let counted = counted(count, unit);
    if counted.unit.is_empty() { format!("{:.0}", counted.value) } else { format!("{:.2}", counted.value) }
}

fn time_fields(running_ns: u64, run_ratio: Option<f64>, metric: Option<Metric>) -> [String; 4] {
    // What never ran has 100 % in perf's lines, and no metric.
    let percent = format!("{:.2}", run_ratio.unwrap_or(1.0) * 100.0);
    let value = metric.as_ref().map_or_else(String::new, |metric| format!("{:.3}", metric.value));
    [running_ns.to_string(), percent, value, metric.map_or_else(String::new, |metric| metric.unit)]
}

fn our_fields(monitor: &Monitor, row: &Row<'_>, count: Option<f64>, error: Error) -> [String; 7] {
    let unit = &row.event.event.unit;
    let rate = |per_ms: f64| counted(per_ms * 1000.0, unit).value.to_string();
    let bound = |sign: f64| Some(number((count? + sign * error.half_width()?).max(0.0), unit));
    // The variance of a rate is in the square of its unit.
    let scale = counted(1000.0, unit).value;
    let (corrected, relation) = match row.estimate.quality {
        Quality::Corrected(by) | Quality::Derived(by) => {
            (row.estimate.mean.map(rate), Some(shown(&monitor.relations()[by].id).into_owned()))
        }
        Quality::Missing | Quality::Measured | Quality::Scaled => (None, None),
    };
    let variance = row.raw.rate.variance().map(|variance| (variance * scale * scale).to_string());
    let fields = [row.raw.rate.mean().map(rate), bound(-1.0), bound(1.0), variance, corrected, relation];
    let [mean, low, high, variance, corrected, relation] = fields.map(Option::unwrap_or_default);
    [mean, low, high, variance, corrected, relation, status(row, count).to_owned()]
}
