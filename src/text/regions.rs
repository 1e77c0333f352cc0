//! Prints the named regions of programs as a table.

use crate::names::shown;
use crate::number::{grouped, time};
use crate::regions::{Marker, PathRow, ProcessRegions, Snapshot};

/// A table for each process that has regions: calls, time in all, in the region alone and of a call, indented as they nest.
/// Empty where none has any.
pub fn regions(processes: &[ProcessRegions]) -> String {
    let mut out = String::new();
    for process in processes {
        match &process.regions {
            Ok(snapshot) => out += &table(snapshot),
            Err(error) => {
                out += &format!(" Regions of process {} can't be read: {}\n\n", process.pid, shown(&error.to_string()))
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

fn table(snapshot: &Snapshot) -> String {
    let rows = snapshot.paths_of_all_threads();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(" Regions of process {}:\n\n", snapshot.pid);
    out += &format!(
        "{:>13} {:>10} {:>10} {:>10} {:>10} {:>10}   REGION\n",
        "CALLS", "TIME", "SELF", "MEAN CALL", "50% BELOW", "99% BELOW"
    );
    rows.iter().for_each(|row| out += &line(row));
    let Marker { inner_ns, outer_ns } = snapshot.marker;
    out += &format!(
        "\n elapsed times of all threads, without what measuring a call takes: {} in its region, {} in the one around\n",
        time(inner_ns),
        time(outer_ns)
    );
    if snapshot.lost > 0 {
        out += &format!(" {} calls are not counted: there are too many regions\n", grouped(snapshot.lost));
    }
    out + "\n"
}

fn line(row: &PathRow) -> String {
    let of_call = |value: Option<f64>| value.map_or_else(|| "-".into(), time);
    let spread = row.times.calls_ns;
    let name = row.path.last().map_or("", String::as_str);
    let indent = "  ".repeat(row.path.len().saturating_sub(1));
    let phase = if row.phase.is_empty() { String::new() } else { format!("  ({})", shown(&row.phase)) };
    let reverse = match row.times.reverse_calls {
        0 => String::new(),
        calls => format!("  backward: {} in {} runs", time(row.times.reverse_ns), grouped(calls)),
    };
    format!(
        "{:>13} {:>10} {:>10} {:>10} {:>10} {:>10}   {indent}{}{phase}{reverse}\n",
        grouped(row.times.calls),
        time(row.times.forward_ns),
        time(row.times.self_ns),
        of_call(spread.map(|spread| spread.mean)),
        of_call(spread.map(|spread| spread.p50)),
        of_call(spread.map(|spread| spread.p99)),
        shown(name),
    )
}
