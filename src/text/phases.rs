//! Prints when levels of events changed in a run.

use serde_json::{Value, json};

use super::column_width;
use super::summary::counted;
use crate::monitor::{Measure, Monitor, PhaseChange, Row};
use crate::names::shown;
use crate::number::{chance, clock};

/// Lines that are printed, at most; a replay shows the others.
const MOST: usize = 20;

/// A line for each change of an event's level that lasted; nothing if there was none.
pub fn phases(monitor: &Monitor) -> String {
    let changes = monitor.phase_changes();
    if changes.is_empty() {
        return String::new();
    }
    let name = |change: &PhaseChange| shown(&monitor.header().events[change.event].title()).into_owned();
    let width = column_width(changes.iter().take(MOST).map(name));
    let line = |change: &PhaseChange| {
        let words = monitor.phase_change_words(change);
        format!("  {}  {:<width$}  {words}, chance {}\n", clock(change.at), name(change), chance(change.chance))
    };
    let mut out = String::from("changes of level that lasted:\n");
    out.extend(changes.iter().take(MOST).map(line));
    match changes.len().saturating_sub(MOST) {
        0 => out,
        more => out + &format!("  and {more} more: perfprop replay FILE shows all\n"),
    }
}

/// The changes of an event, with rates in its unit; `None` if there was none, as of an event that is counted for each
/// part of the target on its own.
pub(super) fn json_phases(monitor: &Monitor, row: &Row<'_>) -> Option<Value> {
    let per = match monitor.phase_measure(row.index) {
        Measure::PerSecond => "sec",
        _ if monitor.header().modelled.is_some() => "ginst",
        _ => "cpu-sec",
    };
    let unit = &row.event.event.unit;
    let value = |rate: f64| counted(rate, unit).value;
    let change = |change: &PhaseChange| {
        json!({
            "at": change.at.as_secs(),
            format!("from-per-{per}"): value(change.from),
            format!("to-per-{per}"): value(change.to),
            "change-pcnt": change.relative().map(|part| part * 100.0),
            "change-ci-lo": value(change.interval.0),
            "change-ci-hi": value(change.interval.1),
            "chance": change.chance,
        })
    };
    let changes: Vec<_> = monitor.phase_changes_of(row.index).map(change).collect();
    (!changes.is_empty()).then_some(Value::Array(changes))
}
