//! Prints what differs between two sets of recordings as a table of plain text.

use std::fmt::Write;

use super::column_width;
use super::difference::{change, interval, mean, p_value};
use crate::compare::{ComparedEvent, ComparedNumber, RunComparison, Runs, compare as compared};
use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice, Monitor};
use crate::names::shown;
use crate::number::{percent, plus_minus_sides};
use crate::run::Header;

/// A recording with its name.
pub type Named<'a> = (&'a str, &'a Monitor);

/// Two sets of recordings: a line each, then a line for each event and metric, in the order of
/// [`RunComparison::in_order`].
pub fn compare(a: &[Named<'_>], b: &[Named<'_>], measures: MeasureChoice) -> String {
    let mut out = String::new();
    for (side, recordings) in [("A", a), ("B", b)] {
        for (name, monitor) in recordings {
            let (title, seconds) = (monitor.header().title(), monitor.closed_at().as_secs());
            let n = monitor.intervals();
            let _ = writeln!(out, "{side}  {}  {}  {seconds:.1} s  n={n}", shown(name), shown(&title));
        }
    }
    let [of_a, of_b] = [a, b].map(|side| side.iter().map(|(_, monitor)| *monitor).collect::<Vec<_>>());
    let found = compared(&of_a, &of_b, measures, ComparedNumber::Estimate);
    if let Some((_, first)) = a.first() {
        table(&mut out, &found, first.header());
    }
    notes(&mut out, &found, measures);
    out
}

fn table(out: &mut String, found: &RunComparison, header: &Header) {
    let width = column_width(found.events.iter().map(|one| shown(&one.name))).max(5);
    let has_units = found.events.iter().any(|one| !one.measure.suffix(header).is_empty());
    let unit = |text: &str| if has_units { format!("  {text:<6}") } else { String::new() };
    let (spread, cells) = (spread_head(found), spread_cells(found));
    let tested = if found.has_spread() { format!("  {:>17}  {:>6}", "INTERVAL", "P") } else { String::new() };
    let _ = writeln!(
        out,
        "{:<width$}{}  {:>11}  {spread:>cells$}  {:>11}  {spread:>cells$}  {:>9}{tested}  VERDICT",
        "EVENT",
        unit("UNIT"),
        "A",
        "B",
        "CHANGE"
    );
    for one in found.in_order().into_iter().map(|place| &found.events[place]) {
        let unit = unit(one.measure.suffix(header));
        let _ = writeln!(out, "{:<width$}{unit}  {}", shown(&one.name), numbers(found, one, cells));
    }
}

/// The head of the column beside each side's number.
fn spread_head(found: &RunComparison) -> String {
    if found.has_spread() { "SPREAD".into() } else { format!("±{}", found.confidence) }
}

/// How wide that column is: errors of single runs may have two sides.
fn spread_cells(found: &RunComparison) -> usize {
    let sides = found.events.iter().flat_map(|one| [&one.a, &one.b].map(|runs| spread(found, runs, &one.unit)));
    sides.map(|text| text.chars().count()).max().unwrap_or_default().max(LEAST_SPREAD)
}

/// As `±<0.1%` and `SPREAD`, with a cell to spare.
const LEAST_SPREAD: usize = 7;

fn numbers(found: &RunComparison, one: &ComparedEvent, cells: usize) -> String {
    let side = |runs: &Runs| {
        let number = runs.mean().map_or_else(|| "—".into(), |value| mean(value, &one.unit));
        format!("{number:>11}  {:>cells$}", spread(found, runs, &one.unit))
    };
    let missing = || "—".to_owned();
    let change = one.change().map_or_else(missing, change);
    let mut line = format!("{}  {}  {change:>9}", side(&one.a), side(&one.b));
    if found.has_spread() {
        let (interval, p) = (one.interval.map_or_else(missing, interval), one.p.map_or_else(missing, p_value));
        let _ = write!(line, "  {interval:>17}  {p:>6}");
    }
    let _ = write!(line, "  {}", one.verdict.word());
    if let Some(needs) = one.verdict.needs().filter(|_| found.is_enough) {
        let _ = write!(line, " ({needs} runs)");
    }
    line
}

/// The standard deviation between runs as a part of their mean; of one run each, what that one may be off by.
fn spread(found: &RunComparison, runs: &Runs, unit: &Unit) -> String {
    match runs.numbers.first() {
        Some(number) if !found.has_spread() => plus_minus_sides(*number, unit),
        _ => runs.relative_deviation().map_or_else(|| "—".into(), percent),
    }
}

fn notes(out: &mut String, found: &RunComparison, measures: MeasureChoice) {
    let are_totals = measures == MeasureChoice::Every(Measure::Total);
    if let Some(words) = found.different_programs() {
        let _ = writeln!(out, "{}", shown(&words));
    }
    let of = if are_totals { "totals of whole recordings" } else { "rates over whole recordings" };
    match found.what_it_takes() {
        Some(words) => {
            let _ = writeln!(out, "{words}");
        }
        None if found.tested > 0 => {
            let (level, tested) = (found.confidence, found.tested);
            let _ = writeln!(
                out,
                "higher, lower: a t-test between runs says that it is more than chance; with {level} confidence all of these verdicts are\n\
                 right ({tested} tested, P and INTERVAL are corrected for that); sorted by the least ratio that the interval allows\n\
                 within error (N runs): the difference may be chance; if it is as it seems, so many runs of each show it"
            );
        }
        None => {}
    }
    let _ = writeln!(out, "{of}");
    if let Some(words) = found.why_rates() {
        let _ = writeln!(out, "{words}");
    }
    if found.is_one_after_other {
        out.push_str("all runs of one side came before the other's: a change of the machine looks like a difference; take turns\n");
    }
}
