//! Prints the named regions of programs as a table.

use crate::names::shown;
use crate::number::{grouped, time};
use crate::regions::{ProcessRegions, RegionCounts, RegionProgram, RegionProgramId, RegionState, RegionTable};

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
