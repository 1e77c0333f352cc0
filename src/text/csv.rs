//! Prints a monitor as lines of separated fields: those of `perf stat -x` in the same order, and ours behind
//! them.
//!
//! ```text
//! [time,][CPU0,|comm-tid,]value,unit,event,[cgroup,][standard error%,]runtime,running%,metric,metric unit,
//!     mean per CPU second,low,high,sigma per CPU second,corrected mean per CPU second,corrected by,status,
//!     corrected value,low,high[,metric low,high,threshold][,truth,scaled error%,corrected error%]
//! ```
//!
//! The truth is that of the run, in lines of intervals as well. Where a file has lines of intervals and of runs, all
//! have the fields of both ([`Repetition`], [`beside_intervals`]). A table of all fields is in docs/output.md. The
//! first low and high are those of the value. Metrics that were asked for take the place of what perf derives, and
//! where an event has several the second is on a line of its own, without the event's fields. Then every line has their
//! last fields. Under a model the status is `modelled`, and 10^9 instructions are its CPU second.

use std::borrow::Cow;

use super::json::{COUNTED, LineNumbers, status};
use super::metric::{self, PrintedMetric};
use super::perf_metric::{DerivedMetric, MetricCounts, interval_metric, run_metric};
use super::repeats::{Repeats, Repetition};
use super::summary::{CountedNumber, absence_cell, by_event, counted, mean_decimals, mean_number};
use crate::monitor::{Monitor, Row};
use crate::names::shown;
use crate::number::{plain, shortest};
use crate::rates::Uncertain;
use crate::sources::Scope;

/// A line an event for whole runs.
pub fn totals(runs: &Repeats<'_>, separator: &str, repetition: Repetition) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let line = |row: Row<'_>| {
        let numbers = LineNumbers::of_runs(runs, &row);
        let mut fields = counted_fields(last, &row, numbers.count);
        fields.extend(standard_error_field(runs.standard_error(row.index), repetition));
        let metrics = metric::over_runs(runs, last, &row);
        let derived = || run_metric(runs, last, &row, MetricCounts::Scaled);
        let first = metrics.first().map_or_else(derived, PrintedMetric::field);
        fields.extend(time_fields(runs.running_ns(row.index), runs.run_ratio(row.index), first));
        fields.extend(our_fields(last, &row, &numbers, runs));
        with_truth(with_metrics(last, fields, &metrics, part_field(&row).len()), runs, &row)
    };
    joined(by_event(last).flat_map(line), separator)
}

/// Lines of runs behind lines of intervals: the word for the run in the place of a time, as perf has it.
pub fn beside_intervals(lines: &str, separator: &str) -> String {
    lines.lines().map(|line| format!("{:>16}{separator}{line}\n", "summary")).collect()
}

/// A line an event for the interval that ended last, which has no standard error.
pub fn interval(monitor: &Monitor, separator: &str, repetition: Repetition) -> String {
    let line = |row: Row<'_>| {
        let point = row.newest();
        let numbers = LineNumbers::of_interval(&row);
        let mut fields = vec![format!("{:>16.9}", monitor.now().as_secs())];
        fields.extend(counted_fields(monitor, &row, numbers.count));
        fields.extend(standard_error_field(None, repetition));
        let metrics = metric::over_interval(monitor, &row);
        let derived = || point.and_then(|_| interval_metric(monitor, &row));
        fields.extend(time_fields(
            point.map_or(0, |point| row.event.perfs_runtime(point.counted.running)),
            row.core_share.or(point.and_then(|point| point.run_ratio())),
            metrics.first().map_or_else(derived, PrintedMetric::field),
        ));
        let run = Repeats(std::slice::from_ref(monitor));
        fields.extend(our_fields(monitor, &row, &numbers, &run));
        with_truth(with_metrics(monitor, fields, &metrics, 1 + part_field(&row).len()), &run, &row)
    };
    joined(by_event(monitor).flat_map(line), separator)
}

/// Fields that [`our_fields`] gives, and before them the two of perf's metrics.
const OURS: usize = 10;
const METRIC: usize = 2;
/// The last fields of a line where metrics were asked for.
const METRIC_ENDS: usize = 3;
/// The fields behind them where the truth was counted.
const TRUTH: usize = 3;

/// The line of an event and those of its metrics but the first, which keep the first `kept` fields.
fn with_metrics(
    monitor: &Monitor,
    mut fields: Vec<String>,
    metrics: &[PrintedMetric],
    kept: usize,
) -> Vec<Vec<String>> {
    if monitor.header().metrics.is_empty() {
        return vec![fields];
    }
    let blank = |metric: &PrintedMetric| {
        let mut line = fields[..kept].to_vec();
        line.resize(fields.len() - OURS - METRIC, String::new());
        line.extend(metric.field().map_or_else(Default::default, |metric| [plain(metric.value, 3), metric.unit]));
        line.resize(fields.len(), String::new());
        line.extend(metric.our_fields());
        line
    };
    let more: Vec<_> = metrics.iter().skip(1).map(blank).collect();
    fields.extend(metrics.first().map_or_else(Default::default, PrintedMetric::our_fields));
    std::iter::once(fields).chain(more).collect()
}

/// How many fields of the truth lines have.
fn truth_fields(monitor: &Monitor) -> usize {
    if monitor.header().truths.is_empty() { 0 } else { TRUTH }
}

/// The lines of an event with the truth behind the first.
fn with_truth(mut lines: Vec<Vec<String>>, runs: &Repeats<'_>, row: &Row<'_>) -> Vec<Vec<String>> {
    let fields = runs.0.last().map_or(0, truth_fields);
    let width = lines.first().map_or(0, Vec::len) + fields;
    if let (Some(truth), Some(line)) = (runs.truth(row.index), lines.first_mut()) {
        let percent = |error: Option<f64>| error.map_or_else(String::new, |error| shortest(error * 100.0));
        let count = shortest(counted(truth.count, &row.event.event.unit).value);
        line.extend([count, percent(truth.scaled), percent(truth.corrected)]);
    }
    lines.iter_mut().for_each(|line| line.resize(width, String::new()));
    lines
}

fn joined(lines: impl Iterator<Item = Vec<String>>, separator: &str) -> String {
    lines.map(|fields| line(&fields, separator)).collect()
}

/// A line of these fields, in quotes where they need them.
pub(super) fn line(fields: &[String], separator: &str) -> String {
    let fields: Vec<_> = fields.iter().map(|field| quoted(field, separator)).collect();
    fields.join(separator) + "\n"
}

/// A field in quotes where it has the separator, a quote or the end of a line in it (RFC 4180).
pub(super) fn quoted<'a>(field: &'a str, separator: &str) -> Cow<'a, str> {
    let needs = field.contains(['"', '\n', '\r']) || (!separator.trim().is_empty() && field.contains(separator));
    if needs { Cow::Owned(format!("\"{}\"", field.replace('"', "\"\""))) } else { Cow::Borrowed(field) }
}

/// Part of the target; nothing where lines are about all of it.
fn part_field(row: &Row<'_>) -> Vec<String> {
    Some(shown(&row.event.scope.to_string()).into_owned()).filter(|part| !part.is_empty()).into_iter().collect()
}

/// Part of the target, value, unit, event, control group.
fn counted_fields(monitor: &Monitor, row: &Row<'_>, count: Option<Uncertain>) -> Vec<String> {
    let event = &row.event.event;
    let number = |count: f64| written(&counted(count, &event.unit));
    let value = count.map_or_else(|| absence_cell(row.absence).to_owned(), |count| number(count.value));
    part_field(row)
        .into_iter()
        .chain([value, counted(0.0, &event.unit).unit, shown(&event.name).into_owned()])
        .chain(monitor.header().target.cgroup().map(|cgroup| shown(cgroup).into_owned()))
        .collect()
}

/// The standard error of a mean of several runs, as a part of it.
fn standard_error_field(part: Option<f64>, repetition: Repetition) -> Option<String> {
    let field = || part.map_or_else(String::new, |part| format!("{:.2}%", part * 100.0));
    (repetition == Repetition::Several).then(field)
}

/// Whole counts; what has a unit with two decimals.
fn written(counted: &CountedNumber) -> String {
    plain(counted.value, counted.decimals)
}

fn time_fields(running_ns: u64, run_ratio: Option<f64>, metric: Option<DerivedMetric>) -> [String; 4] {
    // What never ran has 100 % in perf's lines, and no metric.
    let percent = format!("{:.2}", run_ratio.unwrap_or(1.0) * 100.0);
    let value = metric.as_ref().map_or_else(String::new, |metric| plain(metric.value, 3));
    [running_ns.to_string(), percent, value, metric.map_or_else(String::new, |metric| metric.unit)]
}

/// A line of something that is no event of the monitor, with the same fields.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EventLine {
    /// `None` where it wasn't counted.
    pub(super) value: Option<f64>,
    pub(super) unit: &'static str,
    /// Safe to show.
    pub(super) event: String,
    /// The standard error of the mean of several runs, as a part of it.
    pub(super) relative_error: Option<f64>,
    pub(super) running_ns: u64,
    pub(super) run_ratio: f64,
    /// The interval of the value.
    pub(super) bounds: Option<(f64, f64)>,
}

impl EventLine {
    /// The fields of totals, of the mean of so many runs.
    pub(super) fn fields(&self, monitor: &Monitor, (repetition, runs): (Repetition, usize)) -> Vec<String> {
        let header = monitor.header();
        let has_parts = header.events.iter().any(|event| event.scope != Scope::All);
        let whole = |value: f64| plain(value, 0);
        let value = self.value.map_or_else(|| "<not counted>".to_owned(), whole);
        let mut fields = vec![String::new(); usize::from(has_parts)];
        fields.extend([value, self.unit.into(), self.event.clone()]);
        fields.extend(header.target.cgroup().map(|cgroup| shown(cgroup).into_owned()));
        fields.extend(standard_error_field(self.relative_error, repetition));
        fields.extend(time_fields(self.running_ns, Some(self.run_ratio), None));
        let [low, high] = [|bounds: (f64, f64)| bounds.0, |bounds: (f64, f64)| bounds.1]
            .map(|end| self.bounds.map(end))
            .map(|end| end.map_or_else(String::new, |end| plain(end, mean_decimals(end, runs))));
        let status = match self.value {
            None => "not counted",
            Some(_) if header.modelled.is_some() => "under emulation",
            Some(_) => COUNTED,
        };
        let mut ours: [String; OURS] = Default::default();
        (ours[1], ours[2], ours[6]) = (low, high, status.to_owned());
        fields.extend(ours);
        let ends = if header.metrics.is_empty() { 0 } else { METRIC_ENDS };
        fields.resize(fields.len() + ends + truth_fields(monitor), String::new());
        fields
    }
}

/// What a model counted is never called counted.
fn marked<'a>(monitor: &Monitor, status: &'a str) -> &'a str {
    if status == COUNTED && monitor.header().modelled.is_some() { "modelled" } else { status }
}

fn our_fields(monitor: &Monitor, row: &Row<'_>, numbers: &LineNumbers, runs: &Repeats<'_>) -> [String; OURS] {
    let unit = &row.event.event.unit;
    let number = |count: f64| written(&mean_number(counted(count, unit), runs));
    let bounds = |count: Option<Uncertain>| {
        let bounds = count.and_then(Uncertain::bounds);
        (bounds.map(|(low, _)| number(low)), bounds.map(|(_, high)| number(high)))
    };
    let ((low, high), corrected) = (bounds(numbers.count), numbers.corrected.map(|correction| correction.count));
    let (corrected_low, corrected_high) = bounds(corrected);
    let by = numbers.corrected.and_then(|correction| correction.by).map(|by| shown(monitor.cause(by)).into_owned());
    let text = |number: Option<f64>| number.map(shortest);
    [
        text(numbers.rates.mean),
        low,
        high,
        text(numbers.rates.sigma),
        text(numbers.rates.corrected),
        by,
        Some(marked(monitor, status(row, numbers.count)).to_owned()),
        corrected.map(|corrected| number(corrected.value)),
        corrected_low,
        corrected_high,
    ]
    .map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_separators_are_quoted() {
        let fields = ["a,b", "a;b", "say \"x\"", "a b", "a\nb"].map(|field| quoted(field, ",").into_owned());
        assert_eq!(fields, ["\"a,b\"", "a;b", "\"say \"\"x\"\"\"", "a b", "\"a\nb\""]);
        assert_eq!(quoted("a b", " "), "a b", "all names of regions have blanks there");
        let line = line(&["1".to_owned(), "a,b".to_owned()], ",");
        assert_eq!(line, "1,\"a,b\"\n");
    }
}
