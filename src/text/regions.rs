//! Prints the named regions of programs as a table.

use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, grouped, plus_minus_part, time};
use crate::regions::{
    EventTotal, ProcessRegions, RegionCounts, RegionProgram, RegionProgramId, RegionState, RegionTable, unit_of,
};

/// A table for each process that has regions: calls, time in all, in the region alone and of a call, indented as they nest;
/// and another one of the events that its regions counted. Empty where none has any.
pub fn regions(table: &RegionTable) -> String {
    let mut out = String::new();
    let read = table.programs().zip(0..).filter(|((_, state), _)| state.error.is_none());
    for ((program, state), number) in read {
        out += &of_program(table, program, state, RegionProgramId(number));
        out += &events_of_program(table, program, state, RegionProgramId(number));
    }
    table.unread().iter().for_each(|unread| out += &format!(" {unread}\n\n"));
    out
}

/// What events counted in the regions of a program: in all calls, in the region alone, and of a call. Empty where it has none.
fn events_of_program(table: &RegionTable, program: &RegionProgram, state: &RegionState, id: RegionProgramId) -> String {
    let rows = table.rows(id);
    if rows.is_empty() || state.events.is_empty() {
        return String::new();
    }
    let mut out = format!(" Events in regions of {}:\n\n", program.title());
    out += &format!(
        "{:>13} {:>8} {:>13} {:>11} {:>10} {:>10}   EVENT IN REGION\n",
        "COUNT", "±95%", "SELF", "MEAN CALL", "LEAST", "MOST"
    );
    for row in rows {
        let (indent, name, phase) = name_of(table, row);
        for (place, event) in state.events.iter().enumerate() {
            let cells = event_cells(row.event(place).as_ref(), &unit_of(event));
            out += &format!("{cells}   {indent}{} in {name}{phase}\n", shown(event));
        }
    }
    out + "\n"
}

/// What an event counted in a region; it wasn't counted where this is `None`, which is not 0.
fn event_cells(total: Option<&EventTotal>, unit: &Unit) -> String {
    let Some(total) = total else {
        return format!("{:>13} {:>8} {:>13} {:>11} {:>10} {:>10}", "—", "", "—", "—", "—", "—");
    };
    let count = |value: f64| match unit {
        Unit::Nanoseconds => time(value),
        _ => grouped(value.round() as u64),
    };
    let error = match total.error {
        Some(0.0) => "exact".to_owned(),
        Some(error) if total.count > 0.0 => plus_minus_part(error / total.count),
        _ => "±?".to_owned(),
    };
    format!(
        "{:>13} {error:>8} {:>13} {:>11} {:>10} {:>10}",
        count(total.count),
        total.self_count.map_or_else(|| "—".to_owned(), count),
        amount(total.mean, unit),
        amount(total.min, unit),
        amount(total.max, unit)
    )
}

/// A line of JSON for each process that has regions.
pub fn json_regions(processes: &[ProcessRegions]) -> String {
    let read = processes.iter().filter_map(|process| process.regions.as_ref().ok());
    let with_rows = read.filter(|snapshot| !snapshot.rows().is_empty());
    with_rows.map(|snapshot| crate::regions::json(snapshot).replace('\n', "") + "\n").collect()
}

fn of_program(table: &RegionTable, program: &RegionProgram, state: &RegionState, id: RegionProgramId) -> String {
    let rows = table.rows(id);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(" Regions of {}:\n\n", program.title());
    out += &format!(
        "{:>13} {:>10} {:>10} {:>10} {:>10} {:>10}   REGION\n",
        "CALLS", "TIME", "SELF", "MEAN CALL", "50% BELOW", "99% BELOW"
    );
    rows.iter().for_each(|row| out += &line(table, row));
    out += &format!(
        "\n elapsed times of all threads, without what measuring a call takes: {} in its region, {} in the one around\n",
        time(state.inner_ns),
        time(state.outer_ns)
    );
    if state.lost > 0 {
        out += &format!(" {} calls are not counted: there are too many regions\n", grouped(state.lost));
    }
    out + "\n"
}

fn line(table: &RegionTable, row: &RegionCounts) -> String {
    let of_call = |value: Option<f64>| value.map_or_else(|| "-".into(), time);
    let (spread, (indent, name, phase)) = (row.spread, name_of(table, row));
    let reverse = match row.reverse_calls {
        0 => String::new(),
        calls => format!("  backward: {} in {} runs", time(row.reverse_ns as f64), grouped(calls)),
    };
    format!(
        "{:>13} {:>10} {:>10} {:>10} {:>10} {:>10}   {indent}{name}{phase}{reverse}\n",
        grouped(row.calls),
        time(row.time_ns as f64),
        time(row.self_ns as f64),
        of_call(spread.map(|spread| spread.mean)),
        of_call(spread.map(|spread| spread.p50)),
        of_call(spread.map(|spread| spread.p99)),
    )
}

/// The indentation of a row, its name, and its phase if it has one.
fn name_of(table: &RegionTable, row: &RegionCounts) -> (String, String, String) {
    let names = table.names(row.path);
    let name = shown(names.last().copied().unwrap_or_default()).into_owned();
    let phase = table.paths().get(row.path.0 as usize).map_or("", |path| path.phase.as_str());
    let phase = if phase.is_empty() { String::new() } else { format!("  ({})", shown(phase)) };
    ("  ".repeat(names.len().saturating_sub(1)), name, phase)
}
