//! Finished runs in, the summary that `stat` prints out: perf's layout, with what it leaves out.

use crate::words::shown;
use std::fmt::Write;

use super::block::error_text;
use super::number::{grouped, percent, plus_minus};
use crate::estimate::Quality;
use crate::events::Unit;
use crate::monitor::{Absence, Monitor, Point, Row};
use crate::plan::EventIndex;
use crate::rates::Error;
use crate::rates::student::quantile_975;
use crate::sources::Scope;
use crate::units::CpuNs;

/// The same command measured several times.
pub struct Repeats<'a>(pub &'a [Monitor]);

/// A number with the unit that it is printed in.
pub(super) struct Counted {
    /// The number, in that unit.
    pub(super) value: f64,
    /// `msec` for clocks, else mostly nothing.
    pub(super) unit: String,
}

/// A number derived from the count, as perf prints it behind `#`.
pub(super) struct Metric {
    pub(super) value: f64,
    pub(super) unit: String,
}

/// The whole summary, with an empty line before and after it.
pub fn summary(runs: &Repeats<'_>) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let mut out = String::new();
    let times =
        if runs.0.len() > 1 { format!(" ({} runs, ± between runs at 95%)", runs.0.len()) } else { String::new() };
    let modelled = if last.header().modelled.is_some() { ", modelled" } else { "" };
    let _ = writeln!(out, "\n Performance counter stats for '{}'{times}{modelled}:\n", shown(&title(last)));
    for row in last.rows() {
        out.push_str(line(last, &row, runs).trim_end());
        out.push('\n');
    }
    legend(&mut out, last);
    times_of(&mut out, runs);
    out
}

fn title(monitor: &Monitor) -> String {
    use crate::recording::Target;
    match &monitor.header().target {
        Target::Command { argv, .. } => argv.join(" "),
        _ => monitor.header().title(),
    }
}

fn line(monitor: &Monitor, row: &Row<'_>, runs: &Repeats<'_>) -> String {
    let name = shown(&row.event.event.name);
    let scope = scope_column(monitor, row);
    let Some(total) = runs.mean_count(row.index) else {
        return format!("{scope}{:>18}      {name:<24}", absence_cell(row.absence));
    };
    let counted = counted(total, &row.event.event.unit);
    // Of several runs the spread between them says more than the error of one.
    let error = if runs.0.len() > 1 { String::new() } else { error_text(row.raw.run.error(), total) };
    let number = value_text(&counted);
    let mut text = format!("{scope}{number:>18} {:<4} {name:<24} {error:>8}", counted.unit);
    // Where something took turns every line has the column, so that they stay aligned.
    if is_multiplexed(monitor) {
        let run = row.raw.run.run_ratio().map_or_else(String::new, |ratio| format!("{} run", percent(ratio)));
        let _ = write!(text, " {run:>11}");
    }
    if let Some(spread) = runs.relative_spread(row.index) {
        let _ = write!(text, "  ({} between runs)", plus_minus(spread));
    }
    if let Some(correction) = correction(monitor, row) {
        let _ = write!(text, "  {correction}");
    }
    if let Some(metric) = run_metric(runs, monitor, row) {
        let _ = write!(text, "  # {:>9.3} {}", metric.value, metric.unit);
    }
    text
}

/// Which part of the target a line is about, in a column as wide as the widest; nothing where
/// lines are about all of it.
fn scope_column(monitor: &Monitor, row: &Row<'_>) -> String {
    let width = |scope: &Scope| shown(&scope.to_string()).chars().count();
    let widest = monitor.header().events.iter().map(|event| width(&event.scope)).max().unwrap_or(0);
    match &row.event.scope {
        Scope::All => String::new(),
        scope => format!("{:<widest$} ", shown(&scope.to_string())),
    }
}

/// perf's words for a number that isn't there, and one of ours for the one that it hasn't.
pub(super) fn absence_cell(absence: Option<Absence>) -> &'static str {
    match absence {
        Some(Absence::NotSupported) => "<not supported>",
        Some(Absence::Forbidden) => "<not permitted>",
        Some(Absence::NotYetRan) => "<not yet counted>",
        Some(Absence::NeverRan) | None => "<not counted>",
    }
}

/// The corrected total, and by which relation. What was counted all the time needs none.
fn correction(monitor: &Monitor, row: &Row<'_>) -> Option<String> {
    if row.raw.run.error() == Error::Exact {
        return None;
    }
    let (mean, raw) = (row.estimate.mean?, row.raw.rate.mean());
    let by = match row.estimate.quality {
        Quality::Corrected(by) | Quality::Derived(by) => shown(&monitor.relations()[by].id).into_owned(),
        Quality::Missing | Quality::Measured | Quality::Scaled => return None,
    };
    let total = counted(mean * row.raw.run.total().enabled.as_ms(), &row.event.event.unit);
    let change =
        raw.filter(|&raw| raw != 0.0).map_or_else(String::new, |raw| format!(" ({:+.1}%)", (mean / raw - 1.0) * 100.0));
    Some(format!("corrected {} {}{change} by {by}", value_text(&total), error_text(row.estimate.error, mean)))
}

pub(super) fn counted(count: f64, unit: &Unit) -> Counted {
    match unit {
        Unit::Count => Counted { value: count, unit: String::new() },
        Unit::Nanoseconds => Counted { value: count / 1e6, unit: "msec".into() },
        Unit::Scaled { scale, name } => Counted { value: count * scale, unit: shown(name).into_owned() },
    }
}

/// Counts whole and in groups of three; what has a unit with two decimals.
fn value_text(counted: &Counted) -> String {
    if counted.unit.is_empty() && counted.value < 1e18 {
        grouped(counted.value.round() as u64)
    } else {
        format!("{:.2}", counted.value)
    }
}

/// The time that a count is about, and the counts of the other events in that time.
pub(super) struct Span<'a> {
    /// CPU time of the event.
    cpu_ns: f64,
    wall_ns: f64,
    /// The scaled count of an event.
    count: &'a dyn Fn(&Row<'_>) -> Option<f64>,
}

/// What perf prints behind `#`. Its rates are per second of `task-clock`; the time that the kernel
/// gives with every count is the same, so that no `task-clock` need be measured.
pub(super) fn metric(monitor: &Monitor, row: &Row<'_>, span: &Span<'_>) -> Option<Metric> {
    let count = (span.count)(row)?;
    let event = &row.event.event;
    let metric = |value: f64, unit: &str| value.is_finite().then(|| Metric { value, unit: unit.into() });
    let of = |name: &str| {
        let other =
            monitor.rows().find(|other| other.event.event.is_called(name) && other.event.scope == row.event.scope)?;
        (span.count)(&other).filter(|&whole| whole > 0.0).map(|whole| count / whole)
    };
    match event.canonical.as_str() {
        _ if event.unit == Unit::Nanoseconds => metric(count / span.wall_ns, "CPUs utilized"),
        "cycles" => metric(count / span.cpu_ns, "GHz"),
        "instructions" if of("cycles").is_some() => metric(of("cycles")?, "insn per cycle"),
        "branch-misses" if of("branches").is_some() => metric(of("branches")? * 100.0, "% of all branches"),
        "cache-misses" if of("cache-references").is_some() => {
            metric(of("cache-references")? * 100.0, "% of all cache refs")
        }
        _ if event.unit != Unit::Count => None,
        "instructions" | "Ir" if monitor.header().modelled.is_some() => None,
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

/// [`metric`] of whole runs: their mean count in their mean time.
pub(super) fn run_metric(runs: &Repeats<'_>, monitor: &Monitor, row: &Row<'_>) -> Option<Metric> {
    let mean = |value: &dyn Fn(&Monitor) -> f64| runs.0.iter().map(value).sum::<f64>() / runs.0.len() as f64;
    let cpu_ns = mean(&|run| run.row(row.index).raw.run.total().enabled.0 as f64);
    let wall_ns = mean(&|run| run.now().0 as f64);
    metric(monitor, row, &Span { cpu_ns, wall_ns, count: &|row| runs.mean_count(row.index) })
}

/// [`metric`] of the interval that ended last.
pub(super) fn interval_metric(monitor: &Monitor, row: &Row<'_>) -> Option<Metric> {
    let point = row.history.back()?;
    let span = Span {
        cpu_ns: point.enabled.0 as f64,
        wall_ns: point.length.0 as f64,
        count: &|row| row.history.back().and_then(scaled),
    };
    metric(monitor, row, &span)
}

fn is_multiplexed(monitor: &Monitor) -> bool {
    monitor.rows().any(|row| row.raw.run.run_ratio().is_some_and(|ratio| ratio < 1.0))
}

fn legend(out: &mut String, monitor: &Monitor) {
    if monitor.rows().any(|row| matches!(row.raw.run.error(), Error::Within(_))) {
        out.push_str("\n ± is the error of the scaled count at 95%: what multiplexing left unseen\n");
    }
    if let Some(words) = monitor.header().modelled_words() {
        let _ = writeln!(out, "\n {words}");
    }
}

fn times_of(out: &mut String, runs: &Repeats<'_>) {
    let elapsed: Vec<_> = runs.0.iter().map(|run| run.now().as_secs()).collect();
    let spread = Spread::of(&elapsed);
    let _ = match spread.half_width {
        Some(half_width) => writeln!(out, "\n  {:>16.9} ± {half_width:.9} seconds time elapsed", spread.mean),
        None => writeln!(out, "\n  {:>16.9} seconds time elapsed\n", spread.mean),
    };
    let Some(cpu) = runs.0.last().filter(|_| runs.0.len() == 1).and_then(|run| run.ended()?.cpu_time) else {
        out.push('\n');
        return;
    };
    let mut time = |time: CpuNs, words: &str| {
        let _ = writeln!(out, "  {:>16.9} seconds {words}", time.as_secs());
    };
    let whose = if runs.0.iter().any(|run| run.header().modelled.is_some()) { " (of the model)" } else { "" };
    time(cpu.user_ns, &format!("user{whose}"));
    time(cpu.system_ns, &format!("sys{whose}"));
    out.push('\n');
}

impl Repeats<'_> {
    /// The mean of the scaled counts; `None` if the event counted in no run.
    pub(super) fn mean_count(&self, event: EventIndex) -> Option<f64> {
        let counts = self.counts(event);
        (!counts.is_empty()).then(|| Spread::of(&counts).mean)
    }

    /// The half width of the 95 % interval of that mean, as a part of it.
    pub(super) fn relative_spread(&self, event: EventIndex) -> Option<f64> {
        let spread = Spread::of(&self.counts(event));
        spread.half_width.filter(|_| spread.mean > 0.0).map(|half_width| half_width / spread.mean)
    }

    /// The standard error of that mean, as a part of it.
    pub(super) fn standard_error(&self, event: EventIndex) -> Option<f64> {
        let degrees = self.counts(event).len().checked_sub(1)?;
        self.relative_spread(event).map(|spread| spread / quantile_975(degrees as u64))
    }

    fn counts(&self, event: EventIndex) -> Vec<f64> {
        self.0.iter().filter_map(|run| run.row(event).raw.run.estimate()).collect()
    }
}

/// The mean of some runs, and what it may be off by.
struct Spread {
    mean: f64,
    half_width: Option<f64>,
}

impl Spread {
    /// Student's interval for the mean: t(n-1) times the standard deviation over the root of n.
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let half_width =
            (values.len() > 1).then(|| quantile_975(values.len() as u64 - 1) * (squares / (n - 1.0) / n).sqrt());
        Self { mean, half_width }
    }
}

/// The heading of the lines that [`interval`] gives.
pub fn interval_heading() -> String {
    format!("#{:>15} {:>18} {:<4} {:<24} {:>8} {:>11}\n", "time", "counts", "unit", "events", "±95%", "run")
}

/// A line an event for the interval that ended last.
pub fn interval(monitor: &Monitor) -> String {
    let mut out = String::new();
    for row in monitor.rows() {
        let name = shown(&row.event.event.name);
        let scope = scope_column(monitor, &row);
        let time = monitor.now().as_secs();
        let point = row.history.back().filter(|_| row.absence.is_none());
        let Some((point, count)) = point.and_then(|point| Some((point, scaled(point)?))) else {
            let cell = absence_cell(row.absence);
            let _ = writeln!(out, "{time:>16.9} {scope}{cell:>18}      {name}");
            continue;
        };
        let counted = counted(count, &row.event.event.unit);
        let error =
            if point.enabled.0 == 0 { "exact".into() } else { error_text(point.error, point.rate.unwrap_or_default()) };
        let run = point.run_ratio.map_or_else(|| "no CPU time".into(), |ratio| format!("{} run", percent(ratio)));
        let line = format!(
            "{time:>16.9} {scope}{:>18} {:<4} {name:<24} {error:>8} {run:>11}",
            value_text(&counted),
            counted.unit
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The count of an interval, scaled to its CPU time; `None` if the event wasn't on a counter. Where
/// no task was on a CPU there was nothing to count, and 0 is the count.
pub(super) fn scaled(point: &Point) -> Option<f64> {
    if point.enabled.0 == 0 { Some(0.0) } else { Some(point.rate? * point.enabled.as_ms()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_three_runs_by_hand() {
        // Mean 10, standard deviation 1; 4.302653 / sqrt(3).
        let spread = Spread::of(&[9.0, 10.0, 11.0]);
        assert!((spread.mean - 10.0).abs() < 1e-12);
        assert!(spread.half_width.is_some_and(|half_width| (half_width - 2.484_138).abs() < 1e-5));
    }

    #[test]
    fn one_run_has_no_spread_and_equal_runs_have_none_either() {
        assert_eq!(Spread::of(&[5.0]).half_width, None);
        assert_eq!(Spread::of(&[5.0, 5.0]).half_width, Some(0.0));
    }

    #[test]
    fn clocks_are_in_milliseconds() {
        let counted = counted(9.06e6, &Unit::Nanoseconds);
        assert_eq!((value_text(&counted).as_str(), counted.unit.as_str()), ("9.06", "msec"));
    }
}
