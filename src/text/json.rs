//! Prints a monitor as JSON lines: perf's keys with real numbers, and what perf lacks.

use serde_json::{Map, Value, json};

use super::block::PARTIAL;
use super::metric::{self, PrintedMetric};
use super::perf_metric::{DerivedMetric, MetricCounts, interval_metric, run_metric};
use super::phases;
use super::repeats::{Repeats, Repetition};
use super::summary::{by_event, counted, interval_count};
use crate::events::EventKind;
use crate::monitor::{Correction, Monitor, Row, UncountedPart};
use crate::rates::Uncertain;
use crate::sources::Scope;

/// The status of what has a number.
pub(super) const COUNTED: &str = "counted";

/// The version of these lines.
const SCHEMA: u32 = 1;

/// A line an event for whole runs; several runs give means and, as `variance`, what perf calls so:
/// the standard error of the mean in percent of it.
pub fn totals(runs: &Repeats<'_>, repetition: Repetition) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    by_event(last).map(|row| total_line(last, &row, runs, repetition)).collect()
}

/// A line an event for the interval that ended last.
pub fn interval(monitor: &Monitor) -> String {
    by_event(monitor).map(|row| interval_line(monitor, &row)).collect()
}

/// Numbers of one line, all of the same time: that of an interval or of a run, or the means of several runs.
pub(super) struct LineNumbers {
    /// The scaled count.
    pub(super) count: Option<Uncertain>,
    /// The corrected count.
    pub(super) corrected: Option<Correction>,
    pub(super) rates: Rates,
}

/// Per second of CPU time, in the unit that the counter's value is printed in.
#[derive(Default)]
pub(super) struct Rates {
    pub(super) mean: Option<f64>,
    /// How it varies between intervals, or between runs where there are several; an interval has none.
    pub(super) sigma: Option<f64>,
    pub(super) corrected: Option<f64>,
    /// How it varies between intervals as a relation has it, where one corrects that.
    pub(super) corrected_sigma: Option<f64>,
}

impl LineNumbers {
    pub(super) fn of_runs(runs: &Repeats<'_>, row: &Row<'_>) -> Self {
        let (count, corrected) = (runs.count(row.index), runs.correction(row.index));
        let rate = |row: &Row<'_>| row.raw.rate.mean().filter(|_| row.scaled.is_some());
        let best = |row: &Row<'_>| (row.cpu_time.0 > 0).then(|| Some(row.best()?.value / row.cpu_time.as_ms()))?;
        let rates = runs.rates(row.index, rate);
        let variance = match runs.0.len() {
            // What has no number has no spread, as an event that nobody saw happen.
            1 => row.scaled.and(row.raw.rate.variance()),
            _ => rates.variance(),
        };
        let best = corrected.and_then(|_| runs.rates(row.index, best).mean());
        let corrected_variance = row.corrected_variance().filter(|_| runs.0.len() == 1);
        let [sigma, corrected_sigma] = [variance, corrected_variance].map(|variance| variance.map(f64::sqrt));
        Self { count, corrected, rates: Rates::of(row, [rates.mean(), sigma, best, corrected_sigma]) }
    }

    pub(super) fn of_interval(row: &Row<'_>) -> Self {
        let count = interval_count(row).map(|(_, count)| count);
        let corrected = row.interval_correction();
        let ms = row.history.back().map(|point| point.cpu_time.as_ms()).filter(|&ms| ms > 0.0);
        let rate = |count: Option<Uncertain>| Some(count?.value / ms?);
        let rates = Rates::of(row, [rate(count), None, rate(corrected.map(|correction| correction.count)), None]);
        Self { count, corrected, rates }
    }
}

impl Rates {
    /// Those per millisecond of CPU time, in the order of the fields.
    fn of(row: &Row<'_>, rates: [Option<f64>; 4]) -> Self {
        // Time that passes has no rate per CPU second: its own time isn't that of the target.
        if row.event.event.kind == EventKind::Tool {
            return Self::default();
        }
        let scale = counted(1.0, &row.event.event.unit).value;
        let [mean, sigma, corrected, corrected_sigma] = rates.map(|rate| rate.map(|rate| rate * 1000.0 * scale));
        Self { mean, sigma, corrected, corrected_sigma }
    }
}

fn total_line(monitor: &Monitor, row: &Row<'_>, runs: &Repeats<'_>, repetition: Repetition) -> String {
    let numbers = LineNumbers::of_runs(runs, row);
    let mut line = Map::new();
    count_keys(&mut line, monitor, row, numbers.count);
    if repetition == Repetition::Several {
        line.insert("variance".into(), runs.standard_error(row.index).map(|part| part * 100.0).into());
    }
    let metric = run_metric(runs, monitor, row, MetricCounts::Scaled).filter(|_| numbers.count.is_some());
    time_keys(&mut line, runs.running_ns(row.index), runs.run_ratio(row.index), metric);
    our_keys(&mut line, monitor, row, &numbers);
    truth_keys(&mut line, row, runs);
    line.insert("schema".into(), json!(SCHEMA));
    // Those of one run: others have theirs at other times.
    if let (1, Some(changes)) = (runs.0.len(), phases::json_phases(monitor, row)) {
        line.insert("changes".into(), changes);
    }
    with_metrics(monitor, line, &metric::over_runs(runs, monitor, row), &["cpu", "thread"])
}

fn interval_line(monitor: &Monitor, row: &Row<'_>) -> String {
    let point = row.newest();
    let numbers = LineNumbers::of_interval(row);
    let mut line = Map::new();
    line.insert("interval".into(), monitor.now().as_secs().into());
    count_keys(&mut line, monitor, row, numbers.count);
    let metric = point.and_then(|_| interval_metric(monitor, row));
    let run_ratio = row.core_share.or(point.and_then(|point| point.run_ratio()));
    let runtime = point.map_or(0, |point| row.event.perfs_runtime(point.counted.running));
    time_keys(&mut line, runtime, run_ratio, metric);
    our_keys(&mut line, monitor, row, &numbers);
    truth_keys(&mut line, row, &Repeats(std::slice::from_ref(monitor)));
    line.insert("schema".into(), json!(SCHEMA));
    if monitor.knows_whole_run() {
        line.insert("whole-run".into(), true.into());
    }
    with_metrics(monitor, line, &metric::over_interval(monitor, row), &["interval", "cpu", "thread"])
}

/// The line of an event with the first of its metrics, and a line with the keys `kept` for each other.
fn with_metrics(monitor: &Monitor, mut line: Map<String, Value>, metrics: &[PrintedMetric], kept: &[&str]) -> String {
    let Some((first, more)) = metrics.split_first() else {
        if !monitor.header().metrics.is_empty() {
            metric::NO_METRIC_KEYS.iter().for_each(|&key| drop(line.insert(key.into(), Value::Null)));
        }
        return finish(line);
    };
    first.keys(&mut line);
    let others = more.iter().map(|metric| {
        let of_line = kept.iter().filter_map(|&key| Some((key.to_owned(), line.get(key)?.clone())));
        let mut other: Map<_, _> = of_line.collect();
        metric.keys(&mut other);
        other.insert("schema".into(), json!(SCHEMA));
        finish(other)
    });
    let others: String = others.collect();
    finish(line) + &others
}

/// The first of perf's keys, in its order.
fn count_keys(line: &mut Map<String, Value>, monitor: &Monitor, row: &Row<'_>, count: Option<Uncertain>) {
    let event = &row.event.event;
    match &row.event.scope {
        Scope::All => {}
        Scope::Cpu(cpu) => drop(line.insert("cpu".into(), cpu.to_string().into())),
        thread @ Scope::Thread { .. } => drop(line.insert("thread".into(), thread.to_string().into())),
    }
    line.insert("counter-value".into(), count.map(|count| counted(count.value, &event.unit).value).into());
    line.insert("unit".into(), counted(0.0, &event.unit).unit.into());
    line.insert("event".into(), event.name.clone().into());
    if let Some(cgroup) = monitor.header().target.cgroup() {
        line.insert("cgroup".into(), cgroup.into());
    }
}

/// The last of perf's keys, in its order.
fn time_keys(line: &mut Map<String, Value>, running_ns: u64, run_ratio: Option<f64>, metric: Option<DerivedMetric>) {
    line.insert("event-runtime".into(), running_ns.into());
    line.insert("pcnt-running".into(), run_ratio.map(|ratio| ratio * 100.0).into());
    line.insert("metric-value".into(), metric.as_ref().map(|metric| metric.value).into());
    line.insert("metric-unit".into(), metric.map(|metric| metric.unit).into());
}

/// Whether there is a number, and why not.
pub(super) fn status(row: &Row<'_>, count: Option<Uncertain>) -> &'static str {
    match (row.absence, count) {
        (Some(absence), None) => absence.words(),
        // It ran before, and not in this interval.
        (None, None) => "not counted",
        (_, Some(_)) if row.uncounted == Some(UncountedPart::FromExecOn) => "counted until exec",
        (_, Some(_)) if row.uncounted == Some(UncountedPart::OfChild) => "counted without a child",
        (_, Some(_)) if row.uncounted == Some(UncountedPart::OfModel) => "counted in part",
        (_, Some(_)) if row.uncounted == Some(UncountedPart::OfCpu) => "counted until a CPU was offline",
        (_, Some(_)) if row.is_partial() => PARTIAL,
        (_, Some(_)) => COUNTED,
    }
}

/// What perfprop adds: why a number is missing, its interval, the spread, the correction.
fn our_keys(line: &mut Map<String, Value>, monitor: &Monitor, row: &Row<'_>, numbers: &LineNumbers) {
    let is_interval = line.contains_key("interval");
    let mut key = |key: &str, value: Value| drop(line.insert(key.into(), value));
    let value = |count: f64| counted(count, &row.event.event.unit).value;
    let bounds = |count: Option<Uncertain>| {
        let bounds = count.and_then(Uncertain::bounds);
        (bounds.map(|(low, _)| value(low)), bounds.map(|(_, high)| value(high)))
    };
    let (low, high) = bounds(numbers.count);
    let corrected = numbers.corrected;
    let by = corrected.and_then(|correction| correction.by).map(|by| monitor.cause(by));
    key("status", status(row, numbers.count).into());
    // A model has no CPU seconds, but 10^9 instructions.
    let is_modelled = monitor.header().modelled.is_some();
    let per = if is_modelled { "ginst" } else { "cpu-sec" };
    key(&format!("mean-per-{per}"), numbers.rates.mean.into());
    if !is_interval {
        key(&format!("sigma-per-{per}"), numbers.rates.sigma.into());
    }
    key("ci-lo", low.into());
    key("ci-hi", high.into());
    key(&format!("corrected-per-{per}"), numbers.rates.corrected.into());
    if let Some(sigma) = numbers.rates.corrected_sigma {
        key(&format!("corrected-sigma-per-{per}"), sigma.into());
    }
    key("relation", by.into());
    key("corrected-value", corrected.map(|correction| value(correction.count.value)).into());
    let (low, high) = bounds(corrected.map(|correction| correction.count));
    key("corrected-ci-lo", low.into());
    key("corrected-ci-hi", high.into());
    key("correction-percent", corrected.and_then(|correction| correction.relative()).map(|part| part * 100.0).into());
    key("confidence", monitor.confidence().level().into());
    if is_modelled {
        key("modelled", true.into());
    }
}

/// What emulated counters would have counted had they been enough, and how far off it the numbers are. Of the run,
/// which a line of an interval has in its keys.
fn truth_keys(line: &mut Map<String, Value>, row: &Row<'_>, runs: &Repeats<'_>) {
    let Some(truth) = runs.truth(row.index) else { return };
    let of = if line.contains_key("interval") { "run-" } else { "" };
    let mut key = |name: &str, value: Value| line.insert(format!("{of}{name}"), value);
    key("truth", counted(truth.count, &row.event.event.unit).value.into());
    key("scaled-error-pcnt", truth.scaled.map(|error| error * 100.0).into());
    key("corrected-error-pcnt", truth.corrected.map(|error| error * 100.0).into());
}

fn finish(line: Map<String, Value>) -> String {
    format!("{}\n", Value::Object(line))
}
