//! Prints the summary of `stat`: perf's layout, with what it leaves out.

use crate::names::shown;
use std::fmt::Write;

use super::block::error_cell;
use super::column_width;
use super::metric::{self, PrintedMetric};
use super::narrow::narrowed;
use super::perf_metric::{DerivedMetric, MetricCounts, interval_metric, run_metric};
use super::repeats::{Repeats, SummarySpread};
use super::wrap::folded;
use super::wrapped;
use crate::events::Unit;
use crate::monitor::{Absence, Correction, Monitor, Point, Row};
use crate::number::{
    self, BOTH_SIDES, change, fixed, grouped, has_two_sides, percent, plain, plus_minus, plus_minus_sides, share,
};
use crate::rates::{Error, Uncertain};
use crate::run::MeasuredTarget;
use crate::sources::Scope;
use crate::units::CpuNs;

/// A number with the unit that it is printed in.
pub(super) struct CountedNumber {
    /// The number, in that unit.
    pub(super) value: f64,
    /// `msec` for clocks, else mostly nothing.
    pub(super) unit: String,
    /// How many decimals it has in texts.
    pub(super) decimals: usize,
}

/// How large counts are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digits {
    /// In groups of three: `1,931,204`.
    #[default]
    Grouped,
    /// As they are: `1931204`.
    Plain,
}

/// How a summary is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryLayout {
    /// How large counts are written.
    pub digits: Digits,
    /// The columns of the terminal that it is for; any where `None`.
    pub columns: Option<usize>,
}

/// The whole summary, with an empty line before and after it.
pub fn summary(runs: &Repeats<'_>, layout: SummaryLayout) -> String {
    let Some(last) = runs.0.last() else { return String::new() };
    let mut out = String::new();
    let times = if runs.0.len() > 1 { format!(" ({} runs)", runs.0.len()) } else { String::new() };
    let modelled = if last.header().modelled.is_some() { ", modelled" } else { "" };
    let _ = writeln!(out, "\n Performance counter stats for '{}'{times}{modelled}:", shown(&title(last)));
    // The times begin with an empty line of their own.
    if last.rows().len() > 0 {
        out.push('\n');
    }
    let table = table(last, runs, layout.digits);
    out.push_str(&match layout.columns {
        Some(columns) => narrowed(&table, columns),
        None => table,
    });
    legend(&mut out, last, runs);
    times_of(&mut out, runs);
    out
}

/// A line an event, and those of its metrics.
fn table(last: &Monitor, runs: &Repeats<'_>, digits: Digits) -> String {
    let mut table = String::new();
    let columns = SummaryColumns { error: error_cells(last, runs), ..SummaryColumns::of(last, digits) };
    for row in by_event(last) {
        let start = table.len();
        table.push_str(&line(last, &row, runs, columns));
        let derived = || run_metric(runs, last, &row, MetricCounts::Best);
        with_metrics(&mut table, start, &metric::over_runs(runs, last, &row), derived);
    }
    table
}

/// Characters of the longest error.
fn error_cells(last: &Monitor, runs: &Repeats<'_>) -> usize {
    let errors = last.rows().filter_map(|row| Some(error_cell(&row, runs.count(row.index)?)));
    column_width(errors).max(LEAST_ERROR)
}

/// All rows as perf prints them: an event with all parts of the target that it is counted in, and then the next one.
pub(super) fn by_event(monitor: &Monitor) -> impl Iterator<Item = Row<'_>> {
    let events = &monitor.header().events;
    let mut place = 0;
    // Rows of one part stand together, each in the order of the plan.
    let places = (0..events.len()).map(|row| {
        place = if row > 0 && events[row].scope == events[row - 1].scope { place + 1 } else { 0 };
        (place, row)
    });
    let mut rows: Vec<_> = places.collect();
    rows.sort_unstable();
    rows.into_iter().filter(|&(_, row)| !events[row].is_elsewhere()).map(|(_, row)| monitor.row(row))
}

fn title(monitor: &Monitor) -> String {
    match &monitor.header().target {
        MeasuredTarget::Command { argv, .. } => argv.join(" "),
        _ => monitor.header().title(),
    }
}

/// Characters of the column of names as perf has it, and the most that it gets.
const PERFS_NAME: usize = 24;
const MOST_NAME: usize = 48;

/// Characters of the column of errors with one side.
const LEAST_ERROR: usize = 8;

/// What decides about the columns of all lines.
#[derive(Clone, Copy)]
struct SummaryColumns {
    /// Characters of the widest part of the target; 0 where lines are about all of it.
    scope: usize,
    /// Characters of the longest name, and of perf's column at least.
    name: usize,
    /// Characters of the longest error.
    error: usize,
    /// Whether something was multiplexed. Then every line has the column, so that they stay aligned.
    has_run: bool,
    digits: Digits,
}

impl SummaryColumns {
    fn of(monitor: &Monitor, digits: Digits) -> Self {
        let scope =
            column_width(monitor.header().events.iter().map(|event| shown(&event.scope.to_string()).into_owned()));
        let less = |ratio: Option<f64>| ratio.is_some_and(|ratio| ratio < 1.0);
        let has_run = monitor.rows().any(|row| row.core_share.is_some() || less(row.raw.run.run_ratio()));
        let names = column_width(monitor.header().events.iter().map(|event| shown(&event.event.name).into_owned()));
        Self { scope, name: names.clamp(PERFS_NAME, MOST_NAME), error: LEAST_ERROR, has_run, digits }
    }

    /// Which part of the target a line is about.
    fn scope(self, row: &Row<'_>) -> String {
        match &row.event.scope {
            Scope::All => String::new(),
            scope => format!("{:<width$} ", shown(&scope.to_string()), width = self.scope),
        }
    }
}

/// What is said of an event, up to what is derived from it.
fn line(monitor: &Monitor, row: &Row<'_>, runs: &Repeats<'_>, columns: SummaryColumns) -> String {
    let (name, name_width) = (shown(&row.event.event.name), columns.name);
    let scope = columns.scope(row);
    let correction = runs.correction(row.index);
    let number = |count: f64| mean_number(counted(count, &row.event.event.unit), runs);
    let column = |correction: Correction| {
        correction_text(monitor, row, &correction, &|count| with_unit(&number(count), columns.digits))
    };
    let correction = correction.map(column);
    let Some(count) = runs.count(row.index) else {
        let correction = correction.unwrap_or_default();
        return format!("{scope}{:>18}      {name:<name_width$} {correction}", absence_cell(row.absence));
    };
    let (counted, error) = (number(count.value), error_cell(row, count));
    let value = value_text(&counted, columns.digits);
    let mut text =
        format!("{scope}{value:>18} {:<4} {name:<name_width$} {error:>width$}", counted.unit, width = columns.error);
    if columns.has_run {
        let _ = write!(text, " {:>11}", run_text(row, runs.run_ratio(row.index)).unwrap_or_default());
    }
    if let Some(spread) = runs.relative_spread(row.index) {
        let _ = write!(text, "  {}", spread_text(spread));
    }
    if let Some(counted) = runs.counted_runs(row.index) {
        let _ = write!(text, "  (counted in {counted} of {} runs)", runs.0.len());
    }
    if let Some(correction) = correction {
        let _ = write!(text, "  {correction}");
    }
    text
}

/// `(σ 1.8% between runs)`: how runs differ is no error of a number.
pub(super) fn spread_text(spread: f64) -> String {
    format!("(σ {} between runs)", percent(spread))
}

/// Ends the line of an event, which starts there, with the metrics that stand with it, each on a line; where
/// there are none, with what perf derives.
fn with_metrics(
    out: &mut String,
    start: usize,
    metrics: &[PrintedMetric],
    derived: impl FnOnce() -> Option<DerivedMetric>,
) {
    // perf's `/sec` is per second of CPU time, which has a unit of its own here, as on screens.
    let unit = |metric: &DerivedMetric| metric.unit.replace("/sec", "/cpu-s");
    let value = |metric: &DerivedMetric| fixed(metric.value, 3) + if metric.is_percent { "%" } else { "" };
    let derived = || derived().map(|metric| format!("# {:>9} {}", value(&metric), unit(&metric)));
    let texts: Vec<_> = match metrics {
        [] => derived().into_iter().collect(),
        metrics => metrics.iter().map(PrintedMetric::text).collect(),
    };
    let [first, more @ ..] = texts.as_slice() else {
        out.truncate(start + out[start..].trim_end().len());
        out.push('\n');
        return;
    };
    let width = out[start..].chars().count();
    let _ = writeln!(out, "  {first}");
    for text in more {
        let _ = writeln!(out, "{:width$}  {text}", "");
    }
}

/// perf's words for a number that isn't there, and ours for those that it hasn't.
pub(super) fn absence_cell(absence: Option<Absence>) -> &'static str {
    match absence {
        Some(Absence::NotSupported) => "<not supported>",
        Some(Absence::Forbidden) => "<not permitted>",
        Some(Absence::InUse) => "<in use>",
        Some(Absence::NoneSeen) => "<none seen>",
        Some(Absence::Gone) => "<gone>",
        Some(Absence::Elsewhere) => "<on other CPUs>",
        Some(Absence::NotYetRan | Absence::NeverRan | Absence::TakenOff) | None => "<not counted>",
    }
}

/// `67.0% run`; `67.0% on cpu_core` for what only such cores count.
fn run_text(row: &Row<'_>, run_ratio: Option<f64>) -> Option<String> {
    match (row.core_share.and(run_ratio), row.event.event.core()) {
        (Some(part), Some(core)) => Some(format!("{} on {}", share(part), shown(core))),
        _ => run_ratio.map(|ratio| format!("{} run", share(ratio))),
    }
}

fn with_unit(counted: &CountedNumber, digits: Digits) -> String {
    let value = value_text(counted, digits);
    if counted.unit.is_empty() { value } else { format!("{value} {}", counted.unit) }
}

/// `corrected 1,931,204 ±1.8% (-2.3%) by R1`; `derived` where nothing was counted.
pub(super) fn correction_text(
    monitor: &Monitor,
    row: &Row<'_>,
    correction: &Correction,
    number: &dyn Fn(f64) -> String,
) -> String {
    let Correction { count, raw, by } = *correction;
    let word = if raw.is_some() { "corrected" } else { "derived" };
    let change = correction.relative().map_or_else(String::new, |part| format!(" ({})", change(part)));
    let by = by.map_or_else(String::new, |by| format!(" by {}", shown(monitor.cause(by))));
    let value = number(count.value);
    format!("{word} {value} {}{change}{by}", error_beside(&value, count, &row.event.event.unit))
}

/// The error of a count beside its text. Less than a half is printed as 0, which has no percents.
fn error_beside(text: &str, count: Uncertain, unit: &Unit) -> String {
    plus_minus_sides(if text == "0" { Uncertain { value: 0.0, ..count } } else { count }, unit)
}

pub(super) fn counted(count: f64, unit: &Unit) -> CountedNumber {
    match unit {
        Unit::Count => CountedNumber { value: count, unit: String::new(), decimals: 0 },
        Unit::Nanoseconds => CountedNumber { value: count / 1e6, unit: "msec".into(), decimals: 2 },
        // As perf: what stands for whole units is whole.
        Unit::Scaled { scale, name } => CountedNumber {
            value: count * scale,
            unit: shown(name).into_owned(),
            decimals: if scale.fract() == 0.0 { 0 } else { 2 },
        },
    }
}

/// A mean of several runs below this has its fraction: 1 in 3 runs is not 0, but less than a half in all of them is.
const WHOLE_MEAN: f64 = 10.0;

/// The same with its fraction, in three digits, where it is a small mean of several runs.
pub(super) fn mean_number(counted: CountedNumber, runs: &Repeats<'_>) -> CountedNumber {
    CountedNumber { decimals: mean_decimals(counted.value, runs.0.len()).max(counted.decimals), ..counted }
}

/// The digits behind the point of a mean of so many runs.
pub(super) fn mean_decimals(mean: f64, runs: usize) -> usize {
    let (size, least) = (mean.abs(), 0.5 / runs as f64);
    let has_fraction = runs > 1 && (least..WHOLE_MEAN).contains(&size) && size.fract() != 0.0;
    if has_fraction { (2.0 - size.log10().floor()).max(0.0) as usize } else { 0 }
}

/// Counts whole; what has a unit with two decimals, in groups as well: `12,345.67`.
fn value_text(counted: &CountedNumber, digits: Digits) -> String {
    let text = plain(counted.value, counted.decimals);
    let (whole, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
    match whole.parse() {
        Ok(whole) if digits == Digits::Grouped => grouped(whole) + decimals,
        _ => text,
    }
}

/// Which events had so few turns on a counter that a burst between them may be outside of intervals.
fn few_turns(scaled: &[Row<'_>]) -> String {
    let few: Vec<_> = scaled.iter().filter(|row| row.raw.run.is_in_few_stays()).collect();
    let turns = few.iter().map(|row| row.raw.run.stays());
    let (Some(least), Some(most)) = (turns.clone().min(), turns.max()) else { return String::new() };
    let (what, whose) = match few.as_slice() {
        [row] => (shown(&row.event.event.name), "its"),
        rows => (format!("{} events", rows.len()).into(), "their"),
    };
    let turns = if least == most { number::counted(least, "turn") } else { format!("{least} to {most} turns") };
    format!(" {what} had only {turns} on a counter: {whose} ± leaves out bursts between turns\n")
}

/// What `+182/−11%` means, where an event has it.
fn two_sides(scaled: &[Row<'_>], runs: &Repeats<'_>) -> String {
    let numbers = scaled.iter().flat_map(|row| {
        [runs.count(row.index), runs.correction(row.index).map(|correction| correction.count)].into_iter().flatten()
    });
    match numbers.filter(|number| has_two_sides(*number)).max_by(|a, b| a.value.total_cmp(&b.value)) {
        Some(number) => {
            format!(" {}: the truth may be so much above or below the number\n", plus_minus_sides(number, &Unit::Count))
        }
        None => String::new(),
    }
}

fn legend(out: &mut String, monitor: &Monitor, runs: &Repeats<'_>) {
    let has_error = |count: Uncertain| matches!(count.error, Error::Within { .. });
    let is_within = |row: &Row<'_>| row.count().is_some_and(has_error);
    let (stepped, scaled): (Vec<_>, Vec<_>) =
        monitor.rows().filter(is_within).partition(|row| row.event.event.step().is_some());
    if !stepped.is_empty() {
        out.push_str(
            "\n ± of user_time and system_time: the kernel samples whether a CPU is in user space or in the kernel, 100 times a second or more\n",
        );
    }
    let (level, are_repeated) = (monitor.confidence(), runs.0.len() > 1);
    if are_repeated && monitor.rows().any(|row| runs.count(row.index).is_some_and(has_error)) {
        let or_more = if scaled.is_empty() { "" } else { ",\n or what multiplexing left unseen where that is more" };
        let _ = writeln!(out, "\n ± is the error of the mean of the runs at {level}: by how they differ{or_more}");
    } else if !scaled.is_empty() {
        let _ = writeln!(out, "\n ± is the error of the number before it at {level}: what multiplexing left unseen");
    }
    out.push_str(&two_sides(&scaled, runs));
    out.push_str(&few_turns(&scaled));
    if are_repeated {
        out.push_str("\n σ is the standard deviation of a run, in percent of the mean of all\n");
    }
    if monitor.rows().any(|row| row.core_share.is_some()) {
        out.push_str("\n partial: what one kind of core counted, unscaled, and the part of the CPU time spent there\n");
    }
    let is_a_part = |row: &Row<'_>| row.lacks_units && row.absence.is_none();
    if monitor.rows().any(|row| is_a_part(&row) && row.event.event.not_inherited().is_some()) {
        out.push_str("\n partial: of the threads that were there at the start, without what they started\n");
    }
    if monitor.rows().any(|row| is_a_part(&row) && row.event.event.not_inherited().is_none()) {
        out.push_str("\n partial: the sum of the units that could be counted; others are missing in it\n");
    }
    if let Some(words) = monitor.header().modelled_words() {
        let _ = writeln!(out, "\n {}", wrapped(&words, 1));
    }
}

fn times_of(out: &mut String, runs: &Repeats<'_>) {
    let elapsed: Vec<_> = runs.0.iter().map(|run| run.counted_for().as_secs()).collect();
    let spread = SummarySpread::of(&elapsed);
    let _ = match spread.relative() {
        Some(deviation) => {
            writeln!(out, "\n  {:>16.9} seconds time elapsed  {}", spread.mean, spread_text(deviation))
        }
        None => writeln!(out, "\n  {:>16.9} seconds time elapsed\n", spread.mean),
    };
    // As perf: those of a command say nothing of other targets, for which it only says how long to count.
    let is_of_command = |run: &&Monitor| matches!(run.header().target, MeasuredTarget::Command { .. });
    let only = runs.0.last().filter(|_| runs.0.len() == 1).filter(is_of_command);
    let Some(cpu) = only.and_then(|run| run.ended()?.cpu_time) else {
        out.push('\n');
        return;
    };
    let mut time = |time: CpuNs, words: &str| {
        let _ = writeln!(out, "  {:>16.9} seconds {words}", time.as_secs());
    };
    let whose = if runs.0.iter().any(|run| run.header().modelled.is_some()) { " (of the model)" } else { "" };
    time(cpu.user_ns, &format!("user{whose}"));
    time(cpu.system_ns, &format!("sys{whose}"));
    if let Some((uncounted, all)) = only.and_then(Monitor::time_without_counters) {
        let [uncounted, all] = [uncounted, all].map(CpuNs::as_secs);
        let told = format!(
            "{uncounted:.2} of {all:.2} s of CPU time passed without counters, as where processes and threads start and end: \
             counts lack what happened then"
        );
        let _ = writeln!(out, "\n {}", wrapped(&told, 1));
    }
    out.push('\n');
}

/// Columns of the cells of an interval's line.
#[derive(Clone, Copy)]
struct IntervalColumns {
    count: usize,
    name: usize,
    error: usize,
}

impl IntervalColumns {
    /// As perf's where any length has room, and all columns of a line then.
    const WIDE: Self = Self { count: 18, name: 24, error: BOTH_SIDES };
    const ALL: usize = 89;
    /// From how many columns on there is room for what perf derives, too.
    const WITH_METRICS: usize = 120;

    /// On a terminal that has fewer columns, errors have one side, then names have no more than they need, and then
    /// counts.
    fn of(monitor: &Monitor, columns: Option<usize>) -> Self {
        let events = &monitor.header().events;
        let scope = SummaryColumns::of(monitor, Digits::default()).scope;
        let lacking = columns.map_or(0, |columns| (Self::ALL + scope).saturating_sub(columns));
        let longest = column_width(events.iter().map(|event| shown(&event.event.name).into_owned()));
        let error = if lacking > 0 { LEAST_ERROR } else { BOTH_SIDES };
        let lacking = lacking.saturating_sub(BOTH_SIDES - error);
        let count = absence_cell(Some(Absence::NotSupported)).len();
        let least = Self { count, name: longest.max("events".len()), error };
        let name = (Self::WIDE.name.saturating_sub(lacking)).max(least.name.min(Self::WIDE.name));
        let lacking = lacking - (Self::WIDE.name - name);
        Self { count: Self::WIDE.count.saturating_sub(lacking).max(least.count), name, error }
    }
}

/// The heading of the lines that [`interval`] gives.
pub fn interval_heading(monitor: &Monitor, columns: Option<usize>) -> String {
    let error = format!("±{}", monitor.confidence());
    let IntervalColumns { count, name, error: cells } = IntervalColumns::of(monitor, columns);
    format!("#{:>15} {:>count$} {:<4} {:<name$} {error:>cells$} {:>11}\n", "time", "counts", "unit", "events", "run")
}

/// A line an event for the interval that ended last.
pub fn interval(monitor: &Monitor, layout: SummaryLayout) -> String {
    let mut out = String::new();
    let columns = SummaryColumns::of(monitor, layout.digits);
    let cells = IntervalColumns::of(monitor, layout.columns);
    let has_metrics = layout.columns.is_none_or(|columns| columns >= IntervalColumns::WITH_METRICS);
    // What lines have in common is made once: there may be thousands of threads.
    let time = format!("{:>16.9} ", monitor.now().as_secs());
    let (mut scope, mut scope_cell) = (None, String::new());
    for row in by_event(monitor) {
        if scope.replace(&row.event.scope) != Some(&row.event.scope) {
            scope_cell = columns.scope(&row);
        }
        let start = out.len();
        out.push_str(&time);
        out.push_str(&scope_cell);
        interval_cells(&mut out, monitor, &row, (cells, layout.digits));
        let derived = || interval_metric(monitor, &row).filter(|_| has_metrics);
        with_metrics(&mut out, start, &metric::over_interval(monitor, &row), derived);
    }
    folded(&out, layout.columns)
}

/// The count of an event in the interval, and what is said of it.
fn interval_cells(out: &mut String, monitor: &Monitor, row: &Row<'_>, (columns, digits): (IntervalColumns, Digits)) {
    let IntervalColumns { count: width, name: name_width, error: error_width } = columns;
    let name = shown(&row.event.event.name);
    let number = |count: f64| with_unit(&counted(count, &row.event.event.unit), digits);
    let correction = row.interval_correction();
    let correction = correction.map(|correction| correction_text(monitor, row, &correction, &number));
    let correction = correction.unwrap_or_default();
    let Some((point, count)) = interval_count(row) else {
        let cell = absence_cell(row.absence);
        let _ = write!(out, "{cell:>width$}      {name:<name_width$}  {correction}");
        return;
    };
    let counted = counted(count.value, &row.event.event.unit);
    let run = run_text(row, row.core_share.or(point.run_ratio())).unwrap_or_else(|| "no CPU time".into());
    let error = if point.cpu_time.0 == 0 { "exact".into() } else { error_within(row, count, error_width) };
    let number = value_text(&counted, digits);
    let _ = write!(
        out,
        "{number:>width$} {:<4} {name:<name_width$} {error:>error_width$} {run:>11}  {correction}",
        counted.unit
    );
}

/// The error of a count with both sides where there is room for them.
fn error_within(row: &Row<'_>, count: Uncertain, cells: usize) -> String {
    let error = error_cell(row, count);
    if error.chars().count() <= cells { error } else { plus_minus(count, &row.event.event.unit) }
}

/// The interval that ended last, and its scaled count; `None` if the event wasn't on a counter.
pub(super) fn interval_count<'a>(row: &Row<'a>) -> Option<(&'a Point, Uncertain)> {
    let point = row.newest()?;
    Some((point, point.raw?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders;
    use crate::estimate::EstimatorKind;

    #[test]
    fn beside_a_printed_zero_stands_an_error_in_counts() {
        let count = Uncertain { value: 0.04, error: Error::of(3.5) };
        let beside = |text| error_beside(text, count, &Unit::Count);
        assert_eq!((beside("0").as_str(), beside("0.04").as_str()), ("±3.50", "±>999%"));
    }

    #[test]
    fn clocks_are_in_milliseconds() {
        let counted = counted(9.06e6, &Unit::Nanoseconds);
        assert_eq!((value_text(&counted, Digits::Grouped).as_str(), counted.unit.as_str()), ("9.06", "msec"));
    }

    #[test]
    fn digits_are_grouped_before_a_point_as_well() {
        let grouped = |count: f64, unit: &Unit| value_text(&counted(count, unit), Digits::Grouped);
        assert_eq!(grouped(12_345_678_900.0, &Unit::Nanoseconds), "12,345.68");
        assert_eq!(value_text(&counted(12_345_678_900.0, &Unit::Nanoseconds), Digits::Plain), "12345.68");
        let scaled = |scale| Unit::Scaled { scale, name: "Bytes".into() };
        assert_eq!(
            [64.0, 1.0, 0.5, 6.25].map(|scale| grouped(1001.0, &scaled(scale))),
            ["64,064", "1,001", "500.50", "6,256.25"]
        );
    }

    #[test]
    fn small_means_of_runs_have_their_fraction() {
        let monitor = || builders::monitor(builders::header([]), vec![], EstimatorKind::Scale);
        let (one, three) = ([monitor()], [monitor(), monitor(), monitor()]);
        let text = |value: f64, runs: &[Monitor]| {
            value_text(&mean_number(counted(value, &Unit::Count), &Repeats(runs)), Digits::Grouped)
        };
        let of_three = [0.0, 0.16, 0.17, 1.0 / 3.0, 3.0, 9.99, 1234.6].map(|value| text(value, &three));
        assert_eq!(of_three, ["0", "0", "0.170", "0.333", "3", "9.99", "1,235"]);
        assert_eq!(text(1.0 / 3.0, &one), "0");
    }
}
