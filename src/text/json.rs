//! A monitor in, JSON lines out: perf's keys with real numbers, and what perf hasn't got.

use serde_json::{Map, Value, json};

use super::summary::{Metric, Repeats, counted, interval_metric, run_metric, scaled};
use crate::estimate::Quality;
use crate::monitor::{Absence, Monitor, Row};
use crate::rates::Error;
use crate::sources::Scope;

/// The version of these lines.
const SCHEMA: u32 = 1;

/// A line an event for whole runs; several runs give means and, as `variance`, what perf calls so:
/// the standard error of the mean in percent of it.
pub fn totals(runs: &Repeats<'_>) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    last.rows().map(|row| total_line(last, &row, runs)).collect()
}

/// A line an event for the interval that ended last.
pub fn interval(monitor: &Monitor) -> String {
    monitor.rows().map(|row| interval_line(monitor, &row)).collect()
}

fn total_line(monitor: &Monitor, row: &Row<'_>, runs: &Repeats<'_>) -> String {
    let count = runs.mean_count(row.index);
    let runtimes = runs.0.iter().map(|run| run.row(row.index).raw.run.total().running.0);
    let runtime = runtimes.sum::<u64>() / runs.0.len() as u64;
    let mut line = Map::new();
    count_keys(&mut line, row, count);
    if runs.0.len() > 1 {
        line.insert("variance".into(), runs.standard_error(row.index).map(|part| part * 100.0).into());
    }
    time_keys(&mut line, runtime, row.raw.run.run_ratio(), run_metric(runs, monitor, row).filter(|_| count.is_some()));
    // The error of one run is none of a mean over several.
    let error = if runs.0.len() > 1 { Error::Unknown } else { row.raw.run.error() };
    our_keys(&mut line, monitor, row, count, error);
    finish(line)
}

fn interval_line(monitor: &Monitor, row: &Row<'_>) -> String {
    let point = row.history.back().filter(|_| row.absence.is_none());
    let count = point.and_then(scaled);
    let mut line = Map::new();
    line.insert("interval".into(), monitor.now().as_secs().into());
    count_keys(&mut line, row, count);
    let metric = point.and_then(|_| interval_metric(monitor, row));
    time_keys(&mut line, point.map_or(0, |point| point.running.0), point.and_then(|point| point.run_ratio), metric);
    let error = point.map_or(Error::Unknown, |point| point.error.scaled(point.enabled.as_ms()));
    our_keys(&mut line, monitor, row, count, error);
    finish(line)
}

/// The first of perf's keys, in its order.
fn count_keys(line: &mut Map<String, Value>, row: &Row<'_>, count: Option<f64>) {
    let event = &row.event.event;
    match &row.event.scope {
        Scope::All => {}
        Scope::Cpu(cpu) => drop(line.insert("cpu".into(), cpu.to_string().into())),
        thread @ Scope::Thread { .. } => drop(line.insert("thread".into(), thread.to_string().into())),
    }
    line.insert("counter-value".into(), count.map(|count| counted(count, &event.unit).value).into());
    line.insert("unit".into(), counted(0.0, &event.unit).unit.into());
    line.insert("event".into(), event.name.clone().into());
}

/// The last of perf's keys, in its order.
fn time_keys(line: &mut Map<String, Value>, running_ns: u64, run_ratio: Option<f64>, metric: Option<Metric>) {
    line.insert("event-runtime".into(), running_ns.into());
    line.insert("pcnt-running".into(), run_ratio.map(|ratio| ratio * 100.0).into());
    line.insert("metric-value".into(), metric.as_ref().map(|metric| metric.value).into());
    line.insert("metric-unit".into(), metric.map(|metric| metric.unit).into());
}

/// Whether there is a number, and why not.
pub(super) fn status(row: &Row<'_>, count: Option<f64>) -> &'static str {
    match (row.absence, count) {
        (Some(absence), _) => absence.words(),
        (None, None) => Absence::NotYetRan.words(),
        (None, Some(_)) => "counted",
    }
}

/// What perfprop adds: why a number is missing, its interval, the spread, the correction.
fn our_keys(line: &mut Map<String, Value>, monitor: &Monitor, row: &Row<'_>, count: Option<f64>, error: Error) {
    let bound = |sign: f64| Some(counted(count? + sign * error.half_width()?, &row.event.event.unit).value);
    line.insert("status".into(), status(row, count).into());
    // Rates per second of CPU time, in the unit of the counter's value.
    let rate = |per_ms: f64| counted(per_ms * 1000.0, &row.event.event.unit).value;
    line.insert("mean-per-cpu-sec".into(), row.raw.rate.mean().map(rate).into());
    line.insert("sigma-per-cpu-sec".into(), row.raw.rate.variance().map(|variance| rate(variance.sqrt())).into());
    line.insert("ci-lo".into(), bound(-1.0).map(|low| low.max(0.0)).into());
    line.insert("ci-hi".into(), bound(1.0).into());
    let (corrected, relation) = match row.estimate.quality {
        Quality::Corrected(by) | Quality::Derived(by) => {
            (row.estimate.mean.map(rate), Some(monitor.relations()[by].id.clone()))
        }
        Quality::Missing | Quality::Measured | Quality::Scaled => (None, None),
    };
    line.insert("corrected-per-cpu-sec".into(), corrected.into());
    line.insert("relation".into(), relation.into());
    if monitor.header().modelled.is_some() {
        line.insert("modelled".into(), true.into());
    }
    truth_keys(line, monitor, row);
    line.insert("schema".into(), json!(SCHEMA));
}

/// What emulated counters would have counted had they been enough, and how far off it the numbers are.
fn truth_keys(line: &mut Map<String, Value>, monitor: &Monitor, row: &Row<'_>) {
    let Some(truth) = monitor.truth(row.index) else { return };
    line.insert("truth".into(), counted(truth.count as f64, &row.event.event.unit).value.into());
    line.insert("scaled-error-pcnt".into(), truth.scaled.map(|error| error * 100.0).into());
    line.insert("corrected-error-pcnt".into(), truth.corrected.map(|error| error * 100.0).into());
}

fn finish(line: Map<String, Value>) -> String {
    format!("{}\n", Value::Object(line))
}
