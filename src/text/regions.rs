//! Prints the named regions of programs as a table.

use crate::names::shown;
use crate::number::{grouped, plus_minus_part, si, time};
use crate::regions::{
    EventTotal, ProcessRegions, RegionCounts, RegionProgram, RegionProgramId, RegionState, RegionTable, Snapshot,
};

/// A table for each process that has regions: calls, time in all, in the region alone and of a call, indented as they nest.
/// Empty where none has any.
pub fn regions(table: &RegionTable) -> String {
    let mut out = String::new();
    for ((program, state), number) in table.programs().zip(0..) {
        match &state.error {
            None => out += &of_program(table, program, state, RegionProgramId(number)),
            Some(error) => {
                out += &format!(" Regions of process {} can't be read: {}\n\n", program.pid, shown(error));
            }
        }
    }
    out
}

/// A table for each process whose regions counted events: in all calls, in the region alone, and of a call. Empty where
/// none did.
pub fn region_events(processes: &[ProcessRegions]) -> String {
    let read = processes.iter().filter_map(|process| process.regions.as_ref().ok());
    read.filter(|snapshot| !snapshot.events.is_empty()).map(events_of_program).collect()
}

fn events_of_program(snapshot: &Snapshot) -> String {
    let rows = snapshot.paths_of_all_threads();
    let mut out = format!(" Events in regions of process {}:\n\n", snapshot.pid);
    out += &format!(
        "{:>13} {:>8} {:>13} {:>11} {:>10} {:>10}   EVENT IN REGION\n",
        "COUNT", "±95%", "SELF", "MEAN CALL", "LEAST", "MOST"
    );
    for (row, (place, event)) in
        rows.iter().flat_map(|row| snapshot.events.iter().enumerate().map(move |event| (row, event)))
    {
        let total = row.totals.get(place).copied().flatten();
        let indent = "  ".repeat(row.path.len().saturating_sub(1));
        let name = row.path.last().map_or("", String::as_str);
        let phase = if row.phase.is_empty() { String::new() } else { format!("  ({})", shown(&row.phase)) };
        out += &format!("{}   {indent}{} in {}{phase}\n", event_cells(total.as_ref()), shown(event), shown(name));
    }
    out + "\n"
}

/// What an event counted in a region; it wasn't counted where this is `None`, which is not 0.
fn event_cells(total: Option<&EventTotal>) -> String {
    let Some(total) = total else {
        return format!("{:>13} {:>8} {:>13} {:>11} {:>10} {:>10}", "—", "", "—", "—", "—", "—");
    };
    let count = |value: f64| grouped(value.round() as u64);
    let error = match total.error {
        Some(0.0) => "exact".to_owned(),
        Some(error) if total.count > 0.0 => plus_minus_part(error / total.count),
        _ => "±?".to_owned(),
    };
    format!(
        "{:>13} {error:>8} {:>13} {:>11} {:>10} {:>10}",
        count(total.count),
        total.self_count.map_or_else(|| "—".to_owned(), count),
        si(total.mean),
        si(total.min),
        si(total.max)
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
    let mut out = format!(" Regions of process {}:\n\n", program.pid);
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
    let (spread, names) = (row.spread, table.names(row.path));
    let name = names.last().copied().unwrap_or_default();
    let indent = "  ".repeat(names.len().saturating_sub(1));
    let phase = table.paths().get(row.path.0 as usize).map_or("", |path| path.phase.as_str());
    let phase = if phase.is_empty() { String::new() } else { format!("  ({})", shown(phase)) };
    let reverse = match row.reverse_calls {
        0 => String::new(),
        calls => format!("  backward: {} in {} runs", time(row.reverse_ns as f64), grouped(calls)),
    };
    format!(
        "{:>13} {:>10} {:>10} {:>10} {:>10} {:>10}   {indent}{}{phase}{reverse}\n",
        grouped(row.calls),
        time(row.time_ns as f64),
        time(row.self_ns as f64),
        of_call(spread.map(|spread| spread.mean)),
        of_call(spread.map(|spread| spread.p50)),
        of_call(spread.map(|spread| spread.p99)),
        shown(name),
    )
}
