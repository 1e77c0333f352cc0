//! Prints the named regions of programs as a table.

use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, grouped, plus_minus_part, time};
use crate::rates::Confidence;
use crate::regions::{
    EventTotal, LostCalls, ProcessRegions, RegionCounts, RegionPathId, RegionProgram, RegionProgramId, RegionState,
    RegionTable, Snapshot, unit_of,
};
use crate::run::Header;

/// A table for each process that has regions: calls, time in all, in the region alone and of a call, indented as they nest;
/// and others of the events that its regions counted, with errors at this level. Empty where none has any.
pub fn regions(table: &RegionTable, header: &Header, confidence: Confidence) -> String {
    let mut out = String::new();
    let read = table.programs().zip(0..).filter(|((_, state), _)| state.error.is_none());
    for ((program, state), number) in read {
        let id = RegionProgramId(number);
        let rows = table.rows(id);
        let lines = lines(table, &rows, &table.unended(id));
        if !lines.is_empty() {
            out += &of_program(&lines, program, state);
            out += &clock_words(header);
        }
        if !rows.is_empty() {
            out += &events_of_program(table, &rows, (program, state), confidence);
        }
    }
    table.unread().iter().for_each(|unread| out += &format!(" {unread}\n\n"));
    out
}

/// Where the program ran under a model, that its times are those of that; and a blank line.
pub(super) fn clock_words(header: &Header) -> String {
    match header.modelled {
        Some(_) => " under emulation: times are those of valgrind's run, many times the program's own\n\n".into(),
        None => "\n".into(),
    }
}

/// What events counted in the regions of a program: a table for each, in all calls, in the region alone, and of a call.
fn events_of_program(
    table: &RegionTable,
    rows: &[&RegionCounts],
    (program, state): (&RegionProgram, &RegionState),
    confidence: Confidence,
) -> String {
    let error_head = format!("±{confidence}");
    let mut out = String::new();
    for (place, event) in state.events.iter().enumerate() {
        out += &format!(" {} in regions of {}:\n\n", shown(event), program.title());
        out += &format!(
            "{:>13} {error_head:>7} {:>9} {:>9} {:>8} {:>8}   REGION\n",
            "COUNT", "SELF", "MEAN CALL", "LEAST", "MOST"
        );
        for row in rows {
            let (indent, name, phase) = name_of(table, row);
            let cells = event_cells(row.event_at(place, confidence).as_ref(), &unit_of(event));
            out += &format!("{cells}   {indent}{name}{phase}\n");
        }
        out += "\n";
    }
    out
}

/// What an event counted in a region; it wasn't counted where this is `None`, which is not 0.
fn event_cells(total: Option<&EventTotal>, unit: &Unit) -> String {
    let Some(total) = total else {
        return format!("{:>13} {:>7} {:>9} {:>9} {:>8} {:>8}", "—", "", "—", "—", "—", "—");
    };
    let count = match unit {
        Unit::Nanoseconds => time(total.count),
        _ => grouped(total.count.round() as u64),
    };
    let error = match total.half_width() {
        Some(0.0) => "exact".to_owned(),
        Some(half_width) if total.count > 0.0 => plus_minus_part(half_width / total.count),
        _ => "±?".to_owned(),
    };
    format!(
        "{count:>13} {error:>7} {:>9} {:>9} {:>8} {:>8}",
        total.self_count.map_or_else(|| "—".to_owned(), |own| amount(own, unit)),
        amount(total.mean, unit),
        amount(total.min, unit),
        amount(total.max, unit)
    )
}

/// A line of JSON for each process that has regions, of all runs; `run` is its number where there are several.
pub fn json_regions(runs: &[Vec<ProcessRegions>], header: &Header) -> String {
    let line = |(run, process): (usize, &ProcessRegions)| {
        let has_any = |snapshot: &&Snapshot| !(snapshot.rows().is_empty() && snapshot.unended().is_empty());
        let snapshot = process.regions.as_ref().ok().filter(has_any)?;
        let run = if runs.len() > 1 { format!("\"run\":{run},") } else { String::new() };
        let clock = if header.modelled.is_some() { "\"under_emulation\":true," } else { "" };
        let object = crate::regions::json(snapshot).replace('\n', "");
        Some(format!("{{{run}{clock}{}\n", object.strip_prefix('{')?))
    };
    let numbered = (1..).zip(runs).flat_map(|(run, processes)| processes.iter().map(move |process| (run, process)));
    numbered.filter_map(line).collect()
}

fn of_program(lines: &str, program: &RegionProgram, state: &RegionState) -> String {
    let mut out = format!(" Regions of {}:\n\n", program.title());
    out += &format!(
        "{:>13} {:>8} {:>8} {:>9} {:>9} {:>9}   REGION\n",
        "CALLS", "TIME", "SELF", "MEAN CALL", "50% BELOW", "99% BELOW"
    );
    out += lines;
    out += &format!(
        "\n elapsed times of all threads, without what measuring a call takes: {} in its own region, {} in the one around;\n the times that 50% and 99% of calls stay below still have that of calls within\n",
        time(state.inner_ns),
        time(state.outer_ns)
    );
    out + &lost_words(&state.lost_calls())
}

/// A line for each reason for which calls are not counted.
pub(super) fn lost_words(lost: &LostCalls) -> String {
    lost.sentences(grouped).iter().map(|sentence| format!(" {sentence}\n")).collect()
}

/// What a program counted itself in a region, behind its row.
pub(super) fn counted_words<'a>(counters: impl Iterator<Item = (&'a String, String)>) -> String {
    counters.map(|(name, count)| format!("  {}: {count}", shown(name))).collect()
}

/// Lines for what was counted on paths, and for paths on which no call has ended, in the order of names.
fn lines(table: &RegionTable, rows: &[&RegionCounts], unended: &[RegionPathId]) -> String {
    let counted = rows.iter().map(|row| (table.names(row.path), Some(*row)));
    let mut all: Vec<_> = counted.chain(unended.iter().map(|path| (table.names(*path), None))).collect();
    // Rows of a path in several phases stay in their order.
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let (mut out, mut before) = (String::new(), Vec::new());
    for (names, row) in all {
        let unended = names.len() - usize::from(row.is_some());
        out += &lines_of_open(&before, &names[..unended]);
        out += &row.map_or_else(String::new, |row| line(table, row));
        before = names;
    }
    out
}

/// Lines for the regions of a path of which no call has ended: rows are indented below them. `before` is the path of the
/// row before, whose regions have lines.
fn lines_of_open(before: &[&str], path: &[&str]) -> String {
    let known = before.iter().zip(path).take_while(|(before, name)| before == name).count();
    let line = |depth: usize| {
        let (indent, name) = ("  ".repeat(depth), shown(path[depth]));
        format!(
            "{:>13} {:>8} {:>8} {:>9} {:>9} {:>9}   {indent}{name}  no call has ended\n",
            "-", "-", "-", "-", "-", "-"
        )
    };
    (known..path.len()).map(line).collect()
}

fn line(table: &RegionTable, row: &RegionCounts) -> String {
    let of_call = |value: Option<f64>| value.map_or_else(|| "-".into(), time);
    let (spread, (indent, name, phase)) = (row.spread, name_of(table, row));
    let reverse = match row.reverse_calls {
        0 => String::new(),
        calls => format!("  backward: {} in {} runs", time(row.reverse_ns as f64), grouped(calls)),
    };
    let counters = table.counters(row.path).iter().zip(&row.counters).filter(|(_, count)| **count > 0);
    let counted = counted_words(counters.map(|(name, &count)| (name, grouped(count))));
    format!(
        "{:>13} {:>8} {:>8} {:>9} {:>9} {:>9}   {indent}{name}{phase}{reverse}{counted}\n",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_that_were_not_left_stand_above_those_within() {
        let names =
            |text: String| -> Vec<String> { text.lines().map(|line| line.chars().skip(64).collect()).collect() };
        let of = |before: &[&str], path: &[&str]| names(lines_of_open(before, &path[..path.len() - 1]));
        assert_eq!(of(&[], &["a", "b", "c"]), ["a  no call has ended", "  b  no call has ended"]);
        assert_eq!(of(&["a", "b", "c"], &["a", "b", "d"]), [""; 0]);
        assert_eq!(of(&["a", "b"], &["a\u{1b}", "b"]), ["a\\x1b  no call has ended"]);
        assert_eq!(of(&["a", "b"], &["a"]), [""; 0]);
    }
}
