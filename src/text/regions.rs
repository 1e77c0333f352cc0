//! Prints the named regions of programs as a table.

use crate::events::Unit;
use crate::names::shown;
use crate::number::{amount, grouped, plus_minus_part, time};
use crate::rates::Confidence;
use crate::regions::{
    Certainty, EventTotal, LostCalls, ProcessRegions, RegionCounts, RegionPathId, RegionProgram, RegionProgramId,
    RegionState, RegionTable, Snapshot, unit_of,
};
use crate::run::Header;
use crate::text::region_tree::{MOST_ROWS, RegionTree, TreeRegion};

/// The regions of a program, with what was counted on each in each phase.
type CountedTree<'a> = RegionTree<'a, &'a RegionCounts>;

/// So many processes of one program have a table each; where there are more, they have one together.
const MOST_TABLES: usize = 3;

/// A table for each process that has regions, or one for many of one program: calls, time in all, in the region alone
/// and of a call, indented as they nest; and others of the events that its regions counted, with errors at this level.
/// Empty where none has any.
pub fn regions(table: &RegionTable, header: &Header, confidence: Confidence) -> String {
    let mut out = String::new();
    for programs in by_program(table) {
        if programs.len() > MOST_TABLES {
            let joined = table.joined(&programs);
            let name = joined.programs().next().and_then(|(program, _)| program.name.as_deref()).unwrap_or_default();
            let title = format!("{} processes ({}), added up", programs.len(), shown(name));
            out += &tables(&joined, RegionProgramId(0), &title, header, confidence);
            continue;
        }
        for id in programs {
            let title = table.program(id).map_or_else(String::new, RegionProgram::title);
            out += &tables(table, id, &title, header, confidence);
        }
    }
    table.unread().iter().for_each(|unread| out += &format!(" {unread}\n\n"));
    out
}

/// The programs that can be read and have regions: those of one name that count the same stand together, in the order
/// of the first.
fn by_program(table: &RegionTable) -> Vec<Vec<RegionProgramId>> {
    let mut groups: Vec<(_, Vec<RegionProgramId>)> = Vec::new();
    for (id, (program, state)) in (0..).map(RegionProgramId).zip(table.programs()) {
        if state.error.is_some() || (table.rows(id).is_empty() && table.unended(id).is_empty()) {
            continue;
        }
        let key = (&program.name, &state.events, &state.counters);
        match groups.iter_mut().find(|(known, _)| *known == key && program.name.is_some()) {
            Some((_, programs)) => programs.push(id),
            None => groups.push((key, vec![id])),
        }
    }
    groups.into_iter().map(|(_, programs)| programs).collect()
}

/// The tables of a program, which the title says.
fn tables(table: &RegionTable, id: RegionProgramId, title: &str, header: &Header, confidence: Confidence) -> String {
    let Some((_, state)) = table.programs().nth(id.0 as usize) else { return String::new() };
    let rows = table.rows(id);
    let tree = tree(table, &rows, &table.unended(id));
    let mut out = String::new();
    if !tree.regions.is_empty() {
        let lines: String = tree.regions.iter().map(|region| lines(table, region)).collect();
        out += &of_program(&(lines + &tree.left_out_words()), &rows, title, state);
        out += &outlasted_words(table.outlasted_of(rows.iter().copied()));
        out += &lost_words(&state.lost_calls());
        out += &clock_words(header);
    }
    if !rows.is_empty() {
        out += &events_of_program(table, &tree, (title, state), confidence);
    }
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
    tree: &CountedTree<'_>,
    (title, state): (&str, &RegionState),
    confidence: Confidence,
) -> String {
    let error_head = format!("±{confidence}");
    let mut out = String::new();
    for (place, event) in state.events.iter().enumerate() {
        out += &format!(" {} in regions of {title}:\n\n", shown(event));
        out += &format!(
            "{:>13} {error_head:>7} {:>9} {:>9} {:>8} {:>8}   REGION\n",
            "COUNT", "SELF", "MEAN CALL", "LEAST", "MOST"
        );
        for row in tree.regions.iter().flat_map(|region| &region.rows) {
            let (indent, name, phase) = name_of(table, row);
            let cells = event_cells(row.event_at(place, confidence).as_ref(), &unit_of(event));
            out += &format!("{cells}   {indent}{name}{phase}\n");
        }
        out += &tree.left_out_words();
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

fn of_program(lines: &str, rows: &[&RegionCounts], title: &str, state: &RegionState) -> String {
    let mut out = format!(" Regions of {title}:\n\n");
    out += &format!(
        "{:>13} {:>8} {:>8} {:>9} {:>9} {:>9}   REGION\n",
        "CALLS", "TIME", "SELF", "MEAN CALL", "50% BELOW", "99% BELOW"
    );
    out += lines;
    out += &format!(
        "\n elapsed times of all threads, without what measuring a call takes: {} in its own region, {} in the one around;\n the times that 50% and 99% of calls stay below are up to a quarter too long, and still have that of calls within\n",
        time(state.inner_ns),
        time(state.outer_ns)
    );
    if rows.iter().any(|row| row.reverse_calls > 0) {
        out += BACKWARD;
    }
    // Where a region is outlasted, another line says so.
    let is_rough = |row: &&RegionCounts| row.outlasted_by.is_none() && row.self_certainty() != Certainty::Clear;
    if rows.iter().any(|row| row.certainty() != Certainty::Clear || is_rough(row)) {
        out += ROUGH;
    }
    out
}

/// What a table says below of runs backwards.
pub(super) const BACKWARD: &str = " TIME, SELF and calls are without runs backwards, which stand behind the names\n";

/// What a table says below of times that aren't known well.
pub(super) const ROUGH: &str = " ~: measuring calls took more than the time that is left, which can't be told well; —: nothing is left to tell it\n";

/// A time with how well it is known: `~4.53 ms`; `—` where it isn't, which is not 0.
pub(super) fn known_time(ns: f64, certainty: Certainty) -> String {
    match certainty {
        Certainty::Clear => time(ns),
        Certainty::Rough => format!("~{}", time(ns)),
        Certainty::Unknown => "—".into(),
    }
}

/// A line that says of which regions SELF isn't known; empty where nothing is to be said.
pub(super) fn outlasted_words(told: Option<String>) -> String {
    told.map_or_else(String::new, |told| format!(" {told}\n"))
}

/// A line for each reason for which calls are not counted.
pub(super) fn lost_words(lost: &LostCalls) -> String {
    lost.sentences(grouped).iter().map(|sentence| format!(" {sentence}\n")).collect()
}

/// What a program counted itself in a region, behind its row.
pub(super) fn counted_words<'a>(counters: impl Iterator<Item = (&'a String, String)>) -> String {
    counters.map(|(name, count)| format!("  {}: {count}", shown(name))).collect()
}

/// The regions of a program, those that took most first, with what was counted on each; nothing where no call has ended.
fn tree<'a>(table: &'a RegionTable, rows: &[&'a RegionCounts], unended: &[RegionPathId]) -> CountedTree<'a> {
    let counted = rows.iter().map(|row| (table.names(row.path), Some(*row)));
    let all = counted.chain(unended.iter().map(|path| (table.names(*path), None)));
    RegionTree::new(all, |row| row.time_ns, MOST_ROWS)
}

/// A line for each row of a region, or one that says that no call has ended.
fn lines(table: &RegionTable, region: &TreeRegion<'_, &RegionCounts>) -> String {
    if region.rows.is_empty() {
        return line_of_open(&region.path);
    }
    region.rows.iter().map(|row| line(table, row)).collect()
}

/// A line for a region of which no call has ended.
fn line_of_open(path: &[&str]) -> String {
    let indent = "  ".repeat(path.len().saturating_sub(1));
    let name = shown(path.last().copied().unwrap_or_default());
    format!("{:>13} {:>8} {:>8} {:>9} {:>9} {:>9}   {indent}{name}  no call has ended\n", "—", "—", "—", "—", "—", "—")
}

fn line(table: &RegionTable, row: &RegionCounts) -> String {
    let of_call = |value: Option<f64>| value.map_or_else(|| "—".into(), time);
    let mean = match row.calls {
        0 => "—".into(),
        calls => known_time(row.time_ns as f64 / calls as f64, row.certainty()),
    };
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
        known_time(row.time_ns as f64, row.certainty()),
        known_time(row.self_ns as f64, row.self_certainty()),
        mean,
        of_call(spread.map(|spread| spread.p50)),
        of_call(spread.map(|spread| spread.p99)),
    )
}

/// The indentation of a row, its name, and its phase if it has one.
fn name_of(table: &RegionTable, row: &RegionCounts) -> (String, String, String) {
    let names = table.names(row.path);
    let name = shown(names.last().copied().unwrap_or_default()).into_owned();
    let phase = table.paths().get(row.path.0 as usize).map_or("", |path| path.phase.as_str());
    let phase = if phase.is_empty() { String::new() } else { format!(" ({})", shown(phase)) };
    ("  ".repeat(names.len().saturating_sub(1)), name, phase)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::builders;
    use crate::regions::{RegionBatch, RegionPath};

    /// Programs of these names, in each of which a region has so many calls, times, and what their markers took.
    fn table(names: &[&str], (calls, time_ns, markers_ns): (u64, u64, u64)) -> RegionTable {
        let of = |(number, name): (u32, &&str)| {
            let program = RegionProgram { pid: number + 7, name: Some((*name).into()) };
            let path = RegionPath {
                program: RegionProgramId(number),
                parent: None,
                name: "leaf".into(),
                phase: "warmup".into(),
            };
            let counts = RegionCounts {
                path: RegionPathId(number),
                calls,
                time_ns,
                self_ns: time_ns,
                markers_ns,
                self_markers_ns: markers_ns,
                reverse_calls: 2,
                reverse_ns: 3_000,
                spread: None,
                events: Vec::new(),
                counters: Vec::new(),
                outlasted_by: None,
            };
            ((program, path), counts)
        };
        let ((programs, paths), counts) = (0..).zip(names).map(of).unzip();
        let mut table = RegionTable::default();
        let counted_since = Some(crate::units::WallNs(0));
        table.take(&RegionBatch { counted_since, programs, paths, counts, ..RegionBatch::default() }).unwrap();
        table
    }

    fn text(table: &RegionTable) -> String {
        regions(table, &builders::header([]), Confidence::DEFAULT)
    }

    /// The words of the rows of a text.
    fn rows(text: &str) -> Vec<Vec<&str>> {
        let is_row = |line: &&str| line.contains("  leaf (warmup)");
        text.lines().filter(is_row).map(|line| line.split_whitespace().collect()).collect()
    }

    #[test]
    fn many_processes_of_one_program_have_one_table_and_few_have_their_own() {
        let many = text(&table(&["fit", "sh", "fit", "fit", "fit"], (10, 5_000, 0)));
        let titles: Vec<_> = many.lines().filter(|line| line.starts_with(" Regions of ")).collect();
        assert_eq!(titles, [" Regions of 4 processes (fit), added up:", " Regions of process 8 (sh):"]);
        assert_eq!(rows(&many)[0][..5], ["40", "20.0", "µs", "20.0", "µs"], "{many}");
        let few = text(&table(&["fit"; 3], (10, 5_000, 0)));
        assert_eq!(few.matches(" Regions of process ").count(), 3, "{few}");
    }

    #[test]
    fn times_say_how_well_they_are_known_and_what_is_not_in_them() {
        let clear = text(&table(&["fit"], (10, 5_000, 5_000)));
        assert_eq!(rows(&clear)[0][..5], ["10", "5.00", "µs", "5.00", "µs"], "{clear}");
        assert!(!clear.contains(ROUGH) && clear.contains(BACKWARD), "{clear}");
        let rough = text(&table(&["fit"], (10, 5_000, 5_001)));
        assert!(rough.contains(ROUGH), "{rough}");
        assert_eq!(rows(&rough)[0][..7], ["10", "~5.00", "µs", "~5.00", "µs", "~500", "ns"], "{rough}");
        let unknown = text(&table(&["fit"], (10, 0, 5_000)));
        assert_eq!(rows(&unknown)[0][..4], ["10", "—", "—", "—"], "{unknown}");
    }

    #[test]
    fn a_region_that_another_outlasts_has_no_self_and_a_line_says_why() {
        let mut table = table(&["fit"], (10, 5_000, 0));
        let counts = table.counts(RegionPathId(0)).unwrap().clone();
        let counts = vec![RegionCounts { outlasted_by: Some("inner".into()), ..counts }];
        let batch = RegionBatch { counted_since: Some(crate::units::WallNs(0)), counts, ..RegionBatch::default() };
        table.take(&batch).unwrap();
        let text = text(&table);
        assert_eq!(rows(&text)[0][..6], ["10", "5.00", "µs", "—", "500", "ns"], "{text}");
        let told = "\n SELF of 'leaf' is not known: in a call that has ended, 'inner' began and has not ended\n";
        assert!(text.contains(told) && !text.contains(ROUGH), "{text}");
    }

    /// The names of the rows of the table of a program with regions that took so long; without one no call has ended.
    fn named_rows(regions: &[(&str, Option<u64>)]) -> Vec<String> {
        let mut batch = RegionBatch {
            counted_since: Some(crate::units::WallNs(0)),
            programs: vec![RegionProgram { pid: 7, name: Some("fit".into()) }],
            ..RegionBatch::default()
        };
        for (number, (path, time_ns)) in (0..).zip(regions) {
            let (around, name) = path.rsplit_once('/').map_or((None, *path), |(around, name)| (Some(around), name));
            let parent = around.and_then(|around| regions.iter().position(|(path, _)| *path == around));
            let parent = parent.map(|parent| RegionPathId(parent as u32));
            batch.paths.push(RegionPath {
                program: RegionProgramId(0),
                parent,
                name: name.into(),
                phase: String::new(),
            });
            batch.counts.extend(time_ns.map(|time_ns| RegionCounts {
                calls: 1,
                time_ns,
                ..RegionCounts::nothing(RegionPathId(number))
            }));
        }
        let mut table = RegionTable::default();
        table.take(&batch).unwrap();
        let text = text(&table);
        let rows = text.lines().skip(3).take_while(|line| !line.is_empty());
        rows.map(|line| line.chars().skip(64).collect()).collect()
    }

    #[test]
    fn regions_that_took_most_stand_first_and_those_that_were_not_left_above_those_within() {
        let regions = [
            ("a", Some(5)),
            ("b", Some(9)),
            ("b/a", Some(2)),
            ("b/z\u{1b}", Some(3)),
            ("open", None),
            ("open/in", None),
            ("open/in/x", Some(7)),
        ];
        let wanted = ["b", "  z\\x1b", "  a", "open  no call has ended", "  in  no call has ended", "    x", "a"];
        assert_eq!(named_rows(&regions), wanted);
    }

    #[test]
    fn a_table_has_so_many_rows_and_says_how_many_more_there_are() {
        let names: Vec<String> = (0..MOST_ROWS + 7).map(|number| format!("{number:04}")).collect();
        let regions: Vec<_> = (1..).zip(&names).map(|(time, name)| (name.as_str(), Some(time))).collect();
        let rows = named_rows(&regions);
        assert_eq!((rows.len(), rows[0].as_str(), rows[MOST_ROWS - 1].as_str()), (MOST_ROWS + 1, "0506", "0007"));
    }
}
