//! Derives from counts what perf prints behind `#`: GHz, instructions per cycle, shares of misses, rates.

use super::repeats::Repeats;
use super::summary::interval_count;
use crate::events::{Event, Unit};
use crate::monitor::{Monitor, Row};

/// A number derived from the count, as perf prints it behind `#`.
pub(super) struct DerivedMetric {
    pub(super) value: f64,
    pub(super) unit: String,
    /// Whether the value is in percent. The sign stands in texts only, as perf has it: it is no part of the unit.
    pub(super) is_percent: bool,
}

impl DerivedMetric {
    pub(super) fn new(value: f64, unit: impl Into<String>) -> Self {
        Self { value, unit: unit.into(), is_percent: false }
    }
}

/// The time that a count is about, and the counts of the other events in that time.
struct SummarySpan<'a> {
    /// CPU time of the event.
    cpu_ns: f64,
    wall_ns: f64,
    /// The scaled count of an event.
    count: &'a dyn Fn(&Row<'_>) -> Option<f64>,
}

/// What perf prints behind `#`. Its rates are per second of `task-clock`; the time that the kernel
/// gives with every count is the same, so that no `task-clock` need be measured.
fn perfs_metric(monitor: &Monitor, row: &Row<'_>, span: &SummarySpan<'_>) -> Option<DerivedMetric> {
    let count = (span.count)(row)?;
    let event = &row.event.event;
    let metric = |value: f64, unit: &str| value.is_finite().then(|| DerivedMetric::new(value, unit));
    let of = |name: &str| {
        let is_called = |other: &Event| other.name_on_core() == name || other.is_called(name);
        let is_whole = |other: &Row<'_>| is_called(&other.event.event) && other.event.event.counts_beside(event);
        let other = neighbours(monitor, row).find(is_whole)?;
        (span.count)(&other).filter(|&whole| whole > 0.0).map(|whole| count / whole)
    };
    let share = |(whole, words)| Some((of(whole)?, words));
    match (event.name_on_core(), whole_of(event.name_on_core()).and_then(share)) {
        _ if event.unit == Unit::Nanoseconds => metric(count / span.wall_ns, "CPUs utilized"),
        ("cycles", _) => metric(count / span.cpu_ns, "GHz"),
        ("instructions", _) if of("cycles").is_some() => metric(of("cycles")?, "insn per cycle"),
        (_, Some((part, words))) => {
            metric(part * 100.0, words).map(|share| DerivedMetric { is_percent: true, ..share })
        }
        _ if event.unit != Unit::Count => None,
        ("instructions" | "Ir", _) if monitor.header().modelled.is_some() => None,
        // The time of a model is its instructions.
        _ if monitor.header().modelled.is_some() => metric(count / span.cpu_ns * 1000.0, "per 1,000 instructions"),
        _ => match count / span.cpu_ns * 1e9 {
            rate if rate >= 1e9 => metric(rate / 1e9, "G/sec"),
            rate if rate >= 1e6 => metric(rate / 1e6, "M/sec"),
            rate if rate >= 1e3 => metric(rate / 1e3, "K/sec"),
            rate => metric(rate, "/sec"),
        },
    }
}

/// What some misses are a part of, in perf's words.
fn whole_of(misses: &str) -> Option<(&'static str, &'static str)> {
    match misses {
        "branch-misses" => Some(("branches", "of all branches")),
        "cache-misses" => Some(("cache-references", "of all cache refs")),
        "L1-dcache-load-misses" => Some(("L1-dcache-loads", "of all L1-dcache accesses")),
        "L1-icache-load-misses" => Some(("L1-icache-loads", "of all L1-icache accesses")),
        "LLC-load-misses" => Some(("LLC-loads", "of all LL-cache accesses")),
        "dTLB-load-misses" => Some(("dTLB-loads", "of all dTLB cache accesses")),
        "iTLB-load-misses" => Some(("iTLB-loads", "of all iTLB cache accesses")),
        _ => None,
    }
}

/// The rows about the same part of the target, which stand together.
fn neighbours<'a>(monitor: &'a Monitor, row: &Row<'a>) -> impl Iterator<Item = Row<'a>> {
    let events = &monitor.header().events;
    let scope = &row.event.scope;
    let before = events[..row.index].iter().rev().take_while(|event| event.scope == *scope).count();
    let after = events[row.index..].iter().take_while(|event| event.scope == *scope).count();
    (row.index - before..row.index + after).map(|index| monitor.row(index))
}

/// Which counts a metric is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricCounts {
    /// Scaled ones, as perf's.
    Scaled,
    /// The corrected ones, where there are some.
    Best,
}

/// [`perfs_metric`] of whole runs: their mean count in their mean time.
pub(super) fn run_metric(
    runs: &Repeats<'_>,
    monitor: &Monitor,
    row: &Row<'_>,
    counts: MetricCounts,
) -> Option<DerivedMetric> {
    let wall_ns = runs.0.iter().map(|run| run.counted_for().0 as f64).sum::<f64>() / runs.0.len() as f64;
    // What is printed as 0 has no rate; a mean of runs is printed with its fraction.
    let is_zero = |row: &Row<'_>, value: f64| runs.0.len() == 1 && row.event.event.unit == Unit::Count && value < 0.5;
    let count = |row: &Row<'_>| {
        let count = match counts {
            MetricCounts::Scaled => runs.count(row.index),
            MetricCounts::Best => runs.best(row.index),
        };
        count.map(|count| if is_zero(row, count.value) { 0.0 } else { count.value })
    };
    perfs_metric(monitor, row, &SummarySpan { cpu_ns: runs.enabled_ns(row.index), wall_ns, count: &count })
}

/// [`perfs_metric`] of the interval that ended last.
pub(super) fn interval_metric(monitor: &Monitor, row: &Row<'_>) -> Option<DerivedMetric> {
    let (point, _) = interval_count(row)?;
    let span = SummarySpan {
        cpu_ns: point.counted.enabled.0 as f64,
        wall_ns: point.length.0 as f64,
        count: &|row| interval_count(row).map(|(_, count)| count.value),
    };
    perfs_metric(monitor, row, &span)
}
