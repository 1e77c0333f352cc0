//! Prints what named regions took and counted in several runs: the mean of a run, and how sure it is; and as lines of
//! fields.
//!
//! The fields are those of events, in the same order; `region-time in outer/inner of fit` stands in the place of an
//! event's name. A region has lines for `region-calls`, `region-time` and `region-self-time` (in ns),
//! `region-backward-runs` and `region-backward-time` where it ran backwards, and `region-NAME` for each event that is
//! counted in regions. The low and the high end are those of the value, of several runs those of the mean by Student's t, and
//! empty where nothing is known of it, as where measuring calls took more than they did. A name with the separator in it is
//! quoted. docs/output.md has a table of them.

use std::collections::{BTreeMap, BTreeSet};

use super::csv::{self, EventLine};
use super::region_tree::{MOST_ROWS, RegionTree};
use super::regions::{clock_words, lost_words, outlasted_words};
use super::repeats::{Repetition, SummarySpread};
use crate::monitor::Monitor;
use crate::names::{in_path, shown};
use crate::rates::Confidence;
use crate::regions::{
    Certainty, EventTotal, LostCalls, RegionCounts, RegionPathId, RegionProgram, RegionProgramId, RegionState,
    RegionTable, outlasted_regions,
};

mod fields;
mod tables;

use fields::lines;
use tables::{Rows, events, times};

/// The regions of all runs of a command, in the order of the runs.
pub struct RegionRepeats<'a>(pub &'a [RegionTable]);

/// A region of a program, which is the same in all runs: those of its processes of one name stand together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RepeatedRegion {
    program: String,
    path: Vec<String>,
    phase: String,
}

impl RepeatedRegion {
    fn indented(&self) -> String {
        let name = self.path.last().map_or_else(String::new, |name| shown(name).into_owned());
        format!("{}{name}{}", "  ".repeat(self.path.len().saturating_sub(1)), self.of_phase())
    }

    fn of_phase(&self) -> String {
        if self.phase.is_empty() { String::new() } else { format!(" ({})", shown(&self.phase)) }
    }

    /// `outer/inner of fit`; a slash in a name has a backslash before it.
    fn title(&self) -> String {
        let path: Vec<_> = self.path.iter().map(|name| in_path(&shown(name)).into_owned()).collect();
        format!("{}{} of {}", path.join("/"), self.of_phase(), shown(&self.program))
    }
}

/// What a region did in a run: it may be that of several processes of one name.
#[derive(Clone, Debug, Default)]
struct RunOfRegion {
    calls: u64,
    time_ns: u64,
    self_ns: u64,
    markers_ns: u64,
    self_markers_ns: u64,
    reverse_calls: u64,
    reverse_ns: u64,
    events: BTreeMap<String, RunOfEvent>,
    /// What the program counted itself.
    counters: BTreeMap<String, u64>,
    /// Name of a region that outlasted a call of it, so that what it took alone isn't known.
    outlasted_by: Option<String>,
}

/// What an event counted in it; nothing of what was never counted is known.
#[derive(Clone, Copy, Debug, Default)]
struct RunOfEvent {
    total: Option<EventTotal>,
    running_ns: u64,
    enabled_ns: u64,
}

impl RunOfRegion {
    fn add(&mut self, counts: &RegionCounts, state: &RegionState, confidence: Confidence) {
        let RegionState { events, counters, .. } = state;
        for (name, count) in counters.iter().zip(&counts.counters).filter(|(_, count)| **count > 0) {
            *self.counters.entry(name.clone()).or_default() += count;
        }
        self.calls += counts.calls;
        self.time_ns += counts.time_ns;
        self.self_ns += counts.self_ns;
        self.markers_ns += counts.markers_ns;
        self.self_markers_ns += counts.self_markers_ns;
        self.reverse_calls += counts.reverse_calls;
        self.reverse_ns += counts.reverse_ns;
        self.outlasted_by = self.outlasted_by.take().or_else(|| counts.outlasted_by.clone());
        for (place, name) in events.iter().enumerate() {
            let Some(sums) = counts.events.get(place) else { continue };
            let event = self.events.entry(name.clone()).or_default();
            event.running_ns += sums.all.running_ns;
            event.enabled_ns += sums.all.enabled_ns;
            event.total = match (event.total, counts.event_at(place, confidence)) {
                (Some(before), Some(total)) => Some(both(before, &total)),
                (before, total) => before.or(total),
            };
        }
    }
}

/// How well the mean of the time is known, and that of the time in the region alone.
fn certainties(runs: &[RunOfRegion]) -> [Certainty; 2] {
    let outlasted_by = runs.iter().find_map(|run| run.outlasted_by.as_deref());
    let [time, own, markers, self_markers] = [
        mean(runs, |run| run.time_ns),
        mean(runs, |run| run.self_ns),
        mean(runs, |run| run.markers_ns),
        mean(runs, |run| run.self_markers_ns),
    ]
    .map(|spread| spread.mean);
    [Certainty::of(time, markers), Certainty::of_self(own, self_markers, outlasted_by)]
}

/// What two processes counted, whose errors have nothing to do with one another.
fn both(one: EventTotal, other: &EventTotal) -> EventTotal {
    let sum = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
    EventTotal {
        count: one.count + other.count,
        error: one.error.zip(other.error).map(|(a, b)| a.hypot(b)),
        self_count: sum(one.self_count, other.self_count),
        min: one.min.min(other.min),
        max: one.max.max(other.max),
        calls: one.calls + other.calls,
        counted: one.counted + other.counted,
        marker_error: one.marker_error + other.marker_error,
        ..one
    }
}

type Repeated = BTreeMap<RepeatedRegion, Vec<RunOfRegion>>;

impl RegionRepeats<'_> {
    /// All regions of all runs. One that a run didn't enter has no calls there, and took no time; one of which no call
    /// has ended has none in any run. Errors are at this level.
    fn all(&self, confidence: Confidence) -> Repeated {
        let mut all = Repeated::new();
        for (run, table) in self.0.iter().enumerate() {
            for ((program, state), id) in table.programs().zip(0..) {
                for counts in table.rows(RegionProgramId(id)) {
                    let key = key(table, program, counts);
                    let runs = all.entry(key).or_insert_with(|| vec![RunOfRegion::default(); self.0.len()]);
                    runs[run].add(counts, state, confidence);
                }
            }
        }
        for region in self.unended(&all) {
            all.insert(region, vec![RunOfRegion::default(); self.0.len()]);
        }
        all
    }

    /// Regions of which no call has ended: those that programs left open, and those around others that aren't among
    /// these.
    fn unended(&self, counted: &Repeated) -> Vec<RepeatedRegion> {
        let left_open = self.0.iter().flat_map(|table| {
            let of_program = |(id, (program, _)): (u32, &_)| {
                let unended = table.unended(RegionProgramId(id)).into_iter();
                unended.map(|path| (name_of(program), names(table, path))).collect::<Vec<_>>()
            };
            (0..).zip(table.programs()).flat_map(of_program).collect::<Vec<_>>()
        });
        let left_open: Vec<(String, Vec<String>)> = left_open.collect();
        let known: BTreeSet<_> = counted.keys().map(|region| (&region.program, &region.path[..])).collect();
        let all = known.iter().copied().chain(left_open.iter().map(|(program, path)| (program, &path[..])));
        let with_those_around =
            all.flat_map(|(program, path)| (1..=path.len()).map(move |depth| (program, &path[..depth])));
        let unended: BTreeSet<_> = with_those_around.filter(|region| !known.contains(region)).collect();
        let region = |(program, path): (&String, &[String])| RepeatedRegion {
            program: program.clone(),
            path: path.to_vec(),
            phase: String::new(),
        };
        unended.into_iter().map(region).collect()
    }

    /// The calls of all runs that programs of a name didn't count.
    fn lost(&self, name: &str) -> LostCalls {
        let states = self.0.iter().flat_map(RegionTable::programs);
        let of_name = states.filter(|(program, _)| name_of(program) == name).map(|(_, state)| state.lost_calls());
        of_name.fold(LostCalls::default(), |sum, lost| sum.plus(&lost))
    }

    /// A table of the mean of a run for each program, and one of the events that its regions counted. Empty without
    /// regions.
    pub fn text(&self, monitor: &Monitor) -> String {
        let confidence = monitor.confidence();
        let (all, runs) = (self.all(confidence), self.0.len());
        let mut out = String::new();
        let mut rows = all.iter().peekable();
        while let Some((first, _)) = rows.peek() {
            let program = first.program.clone();
            let of_program: Vec<_> =
                std::iter::from_fn(|| rows.next_if(|(region, _)| region.program == program)).collect();
            let title = format!("{}, mean of {runs} runs", shown(&program));
            let (shown_rows, left_out) = largest_first(&of_program);
            out += &times(&title, (&shown_rows, &left_out), confidence);
            let lost = lost_words(&self.lost(&program));
            out += &outlasted_words(outlasted(&of_program));
            if runs > 1 && !lost.is_empty() {
                out += "In all runs together:\n";
            }
            out += &lost;
            out += &clock_words(monitor.header());
            out += &events(&title, (&shown_rows, &left_out), confidence);
        }
        out
    }

    /// Lines of fields; the monitor and the repetition say which fields the lines of events have.
    pub fn csv(&self, monitor: &Monitor, separator: &str, repetition: Repetition) -> String {
        let confidence = monitor.confidence();
        let all = self.all(confidence);
        let programs: BTreeSet<&String> = all.keys().map(|region| &region.program).collect();
        let lost = programs.into_iter().filter_map(|program| self.lost_line(program));
        let lines = all.iter().flat_map(|(region, runs)| lines(&region.title(), runs, confidence)).chain(lost);
        let line = |line: EventLine| {
            let fields = line.fields(monitor, (repetition, self.0.len()));
            csv::line(&fields, separator)
        };
        lines.map(line).collect()
    }
    /// The calls that a program didn't count, in the mean of a run; `None` where it counted all.
    fn lost_line(&self, program: &str) -> Option<EventLine> {
        let lost = self.lost(program).total();
        let title = format!("region-lost-calls in {}", shown(program));
        (lost > 0).then(|| EventLine {
            value: Some(lost as f64 / self.0.len().max(1) as f64),
            unit: "",
            event: title,
            relative_error: None,
            running_ns: 0,
            run_ratio: 1.0,
            bounds: None,
        })
    }
}

fn key(table: &RegionTable, program: &RegionProgram, counts: &RegionCounts) -> RepeatedRegion {
    let phase = table.paths().get(counts.path.0 as usize).map_or_else(String::new, |path| path.phase.clone());
    RepeatedRegion { program: name_of(program), path: names(table, counts.path), phase }
}

fn names(table: &RegionTable, path: RegionPathId) -> Vec<String> {
    table.names(path).into_iter().map(str::to_owned).collect()
}

fn name_of(program: &RegionProgram) -> String {
    program.name.clone().unwrap_or_else(|| "a program without a name".into())
}

/// The rows of a table: those that took most first, and a line that says how many there are beside them.
fn largest_first<'a>(rows: &Rows<'a>) -> (Vec<(&'a RepeatedRegion, &'a Vec<RunOfRegion>)>, String) {
    let path = |region: &'a RepeatedRegion| region.path.iter().map(String::as_str).collect::<Vec<_>>();
    let all = rows.iter().map(|&(region, runs)| (path(region), Some((region, runs))));
    let tree =
        RegionTree::new(all, |(_, runs)| runs.iter().map(|run| run.time_ns).fold(0, u64::saturating_add), MOST_ROWS);
    let left_out = tree.left_out_words();
    (tree.regions.into_iter().flat_map(|region| region.rows).collect(), left_out)
}

/// Of which regions SELF isn't known, and why.
fn outlasted(rows: &Rows<'_>) -> Option<String> {
    let of_row = |(region, runs): &(&RepeatedRegion, &Vec<RunOfRegion>)| {
        let by = runs.iter().find_map(|run| run.outlasted_by.clone())?;
        Some((region.path.last().cloned().unwrap_or_default(), by))
    };
    let pairs: Vec<(String, String)> = rows.iter().filter_map(of_row).collect();
    outlasted_regions(pairs.iter().map(|(outlasted, by)| (outlasted.as_str(), by.as_str())))
}

/// Whether no call has ended in any run.
fn never_ended(runs: &[RunOfRegion]) -> bool {
    runs.iter().all(|run| run.calls == 0 && run.reverse_calls == 0)
}

fn mean(runs: &[RunOfRegion], of: impl Fn(&RunOfRegion) -> u64) -> SummarySpread {
    SummarySpread::of(&runs.iter().map(|run| of(run) as f64).collect::<Vec<_>>())
}

/// Half the interval of a mean of so many runs by Student's t, as a part of it; `None` of one run.
fn relative_half_width(spread: &SummarySpread, runs: usize, confidence: Confidence) -> Option<f64> {
    // Where the mean is 0 so are all.
    let relative = if spread.mean == 0.0 && runs > 1 { Some(0.0) } else { spread.relative() };
    relative.map(|part| part * confidence.student(runs.saturating_sub(1) as f64) / (runs as f64).sqrt())
}

/// Names of what a program counted itself in a region.
fn counter_names(runs: &[RunOfRegion]) -> BTreeSet<&String> {
    runs.iter().flat_map(|run| run.counters.keys()).collect()
}

/// What an event counted in each run, in a region and in it alone: 0 in a run that didn't enter it. A run in which it
/// wasn't counted is left out. What the region alone counted may not be known.
fn event_counts(name: &str, runs: &[RunOfRegion]) -> Vec<(f64, Option<f64>)> {
    let counted = |run: &RunOfRegion| match run.events.get(name) {
        Some(event) => event.total.map(|total| (total.count, total.self_count)),
        None => (run.calls == 0 && !never_ended(runs)).then_some((0.0, Some(0.0))),
    };
    runs.iter().filter_map(counted).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::regions::{EventCounts, EventSums, RegionBatch, RegionPath};
    use crate::units::WallNs;

    /// A run in which a region was called so often, and took so long; not at all where there are no calls.
    fn run(calls: u64, time_ns: u64) -> RegionTable {
        let path = RegionPath { program: RegionProgramId(0), parent: None, name: "r".into(), phase: String::new() };
        let nothing = RegionCounts::nothing(RegionPathId(0));
        let counts = RegionCounts { calls, time_ns, self_ns: time_ns, ..nothing };
        let batch = RegionBatch {
            counted_since: Some(WallNs(0)),
            programs: vec![RegionProgram { pid: 7, name: Some("fit".into()) }],
            paths: vec![path],
            counts: if calls > 0 { vec![counts] } else { Vec::new() },
            ..RegionBatch::default()
        };
        let mut table = RegionTable::default();
        table.take(&batch).unwrap();
        table
    }

    fn rows(runs: &[RegionTable]) -> String {
        let all = RegionRepeats(runs).all(Confidence::DEFAULT);
        let rows: Vec<_> = all.iter().collect();
        times("fit, mean of runs", (&rows, ""), Confidence::DEFAULT)
    }

    #[test]
    fn slashes_of_names_are_escaped() {
        let path = ["a/b", "c"].map(str::to_owned).to_vec();
        let region = RepeatedRegion { program: "fit".into(), path, phase: String::new() };
        assert_eq!(region.title(), "a\\/b/c of fit");
    }

    #[test]
    fn phases_stand_behind_names_with_one_blank() {
        let path = vec!["r".to_owned()];
        let region = RepeatedRegion { program: "fit".into(), path, phase: "warmup".into() };
        assert_eq!((region.title().as_str(), region.indented().as_str()), ("r (warmup) of fit", "r (warmup)"));
    }

    #[test]
    fn times_of_which_measuring_took_most_have_no_interval_and_none_where_nothing_is_left() {
        let of = |time_ns, markers_ns| {
            let run = RunOfRegion { calls: 2, time_ns, self_ns: time_ns, markers_ns, ..RunOfRegion::default() };
            let line = lines("r of fit", &[run], Confidence::DEFAULT).swap_remove(1);
            (line.value, line.bounds)
        };
        assert_eq!(of(10, 10), (Some(10.0), Some((10.0, 10.0))));
        assert_eq!([of(10, 11), of(0, 11)], [(Some(10.0), None), (None, None)]);
    }

    #[test]
    fn regions_that_took_most_in_all_runs_stand_first() {
        let region =
            |name: &str| RepeatedRegion { program: "fit".into(), path: vec![name.into()], phase: String::new() };
        let took = |times: [u64; 2]| times.map(|time_ns| RunOfRegion { calls: 1, time_ns, ..RunOfRegion::default() });
        let mut all: Repeated = [("a", [4, 4]), ("b", [9, 0]), ("c", [0, 9])]
            .map(|(name, times)| (region(name), took(times).to_vec()))
            .into();
        let names = |all: &Repeated| -> Vec<String> {
            largest_first(&all.iter().collect::<Vec<_>>()).0.iter().map(|(region, _)| region.indented()).collect()
        };
        assert_eq!(names(&all), ["b", "c", "a"]);
        all.extend((0..MOST_ROWS).map(|number| (region(&number.to_string()), took([1, 1]).to_vec())));
        let (rows, left_out) = largest_first(&all.iter().collect::<Vec<_>>());
        assert_eq!((rows.len(), left_out.split_whitespace().next()), (MOST_ROWS, Some("3")));
        let text = times("fit", (&rows, &left_out), Confidence::DEFAULT);
        assert!(
            text.contains(&left_out) && events("fit", (&rows, &left_out), Confidence::DEFAULT).is_empty(),
            "{text}"
        );
    }

    #[test]
    fn of_a_region_that_another_outlasted_in_a_run_self_is_not_known() {
        let counts = |table: &RegionTable| table.rows(RegionProgramId(0))[0].clone();
        let mut outlasted = run_with_an_event();
        let by = RegionCounts { outlasted_by: Some("inner".into()), ..counts(&outlasted) };
        let batch = RegionBatch { counted_since: Some(WallNs(0)), counts: vec![by], ..RegionBatch::default() };
        outlasted.take(&batch).unwrap();
        let tables = [outlasted];
        let all = RegionRepeats(&tables).all(Confidence::DEFAULT);
        let rows: Vec<_> = all.iter().collect();
        let last = |text: String| {
            text.trim_end().lines().last().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        let text = times("fit", (&rows, ""), Confidence::DEFAULT);
        assert_eq!(last(text).unwrap(), ["2", "40.0", "ns", "±?", "—", "20.0", "ns", "r"]);
        assert_eq!(last(events("fit", (&rows, ""), Confidence::DEFAULT)).unwrap(), ["60", "±?", "—", "30", "r"]);
        let told = super::outlasted(&rows);
        let wanted = "SELF of 'r' is not known: in a call that has ended, 'inner' began and has not ended";
        assert_eq!(told.as_deref(), Some(wanted));
        let values: Vec<_> = lines("r", rows[0].1, Confidence::DEFAULT).into_iter().map(|line| line.value).collect();
        assert_eq!(values[..3], [Some(2.0), Some(40.0), None]);
    }

    #[test]
    fn the_mean_of_two_runs_by_hand() {
        // 10 and 20 ms: 15 ms; s = 7.07, over √2: 5 ms, times t(1) = 12.706: 424 %. 3 calls on average.
        let text = rows(&[run(2, 10_000_000), run(4, 20_000_000)]);
        let row = text.lines().last().map(|line| line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(row, ["3", "15.0", "ms", "±424%", "15.0", "ms", "5.00", "ms", "r"], "{text}");
    }

    #[test]
    fn the_ends_of_the_mean_of_two_runs_in_fields_are_those_of_the_table() {
        let tables = [run(2, 10_000_000), run(4, 11_000_000)];
        let all = RegionRepeats(&tables).all(Confidence::DEFAULT);
        let lines = lines("r of fit", all.values().next().unwrap(), Confidence::DEFAULT);
        // 10 and 11 ms: 10.5 ms, s = 0.707, over √2: 0.5 ms, times t(1) = 12.706: 6.35 ms. 2 and 4 calls: 3 ± 12.7.
        let ends = |line: &EventLine| line.bounds.map(|(low, high)| (low.round(), high.round()));
        assert_eq!([ends(&lines[0]), ends(&lines[1])], [Some((0.0, 16.0)), Some((4_146_898.0, 16_853_102.0))]);
        assert!(rows(&tables).contains("±60.5%"), "{}", rows(&tables));
    }

    #[test]
    fn a_run_without_the_region_has_no_calls_of_it_and_equal_runs_no_spread() {
        let text = rows(&[run(2, 10_000_000), run(0, 0)]);
        assert!(text.lines().last().unwrap().trim().starts_with("1 "), "{text}");
        assert!(rows(&[run(2, 10), run(2, 10)]).contains(" ±<0.1% "));
        assert_eq!(RegionRepeats(&[]).all(Confidence::DEFAULT).len(), 0);
    }

    /// A run in which an event is counted in half of the time of a region, in stays of 10 and 20 counts.
    fn run_with_an_event() -> RegionTable {
        let all = EventCounts {
            calls: 2,
            sum: 30,
            stays: 2,
            // 10²/10 and 20²/10 in 20 ns.
            squares_per_ns: 50.0,
            enabled_ns: 40,
            running_ns: 20,
            ..EventCounts::default()
        };
        let mut counts = run(2, 40).rows(RegionProgramId(0))[0].clone();
        counts.events = vec![EventSums { all, ..EventSums::default() }];
        let state = RegionState { events: vec!["branches".into()], ..RegionState::default() };
        let mut table = run(0, 0);
        let batch =
            RegionBatch { counts: vec![counts], states: vec![(RegionProgramId(0), state)], ..RegionBatch::default() };
        table.take(&RegionBatch { counted_since: Some(WallNs(0)), ..batch }).unwrap();
        table
    }

    fn of_branches(tables: &[RegionTable], confidence: Confidence) -> EventLine {
        let all = RegionRepeats(tables).all(confidence);
        lines("r of fit", &all.into_values().next().unwrap(), confidence).pop().unwrap()
    }

    #[test]
    fn events_of_a_run_that_did_not_enter_the_region_are_0_in_fields_as_in_the_table() {
        let tables = [run_with_an_event(), run(0, 0)];
        let line = of_branches(&tables, Confidence::DEFAULT);
        assert_eq!((line.event.as_str(), line.value), ("region-branches in r of fit", Some(30.0)));
        // 60 and 0: s is 42.43, over √2 times t(1) 12.706: 381. No count is below 0.
        let (low, high) = line.bounds.unwrap();
        assert_eq!((low, high.round()), (0.0, 411.0));
        let all = RegionRepeats(&tables).all(Confidence::DEFAULT);
        let text = events("fit", (&all.iter().collect::<Vec<_>>(), ""), Confidence::DEFAULT);
        assert!(text.lines().any(|line| line.trim_start().starts_with("30 ")), "{text}");
    }

    #[test]
    fn intervals_of_events_have_the_level_that_was_asked_for() {
        let half_width = |level| {
            let line = of_branches(&[run_with_an_event()], Confidence::new(level).unwrap());
            line.bounds.unwrap().1 - line.value.unwrap()
        };
        // s² = 50 - 30²/20 = 5, times 40 (40 - 20) / 20: the error is √200, and t(1) 12.706 and 1.
        assert!((half_width(0.95) - 12.706_204_736 * 200_f64.sqrt()).abs() < 1e-6);
        assert!((half_width(0.5) - 200_f64.sqrt()).abs() < 1e-6);
    }

    /// A run that left a region open, in which another one has calls, and lost some.
    fn run_with_an_open_region() -> RegionTable {
        let path = |parent, name: &str| RegionPath {
            program: RegionProgramId(0),
            parent,
            name: name.into(),
            phase: String::new(),
        };
        let mut table = RegionTable::default();
        let first = RegionBatch {
            programs: vec![RegionProgram { pid: 7, name: Some("fit".into()) }],
            paths: vec![path(None, "open"), path(Some(RegionPathId(0)), "within"), path(None, "z")],
            states: vec![(RegionProgramId(0), RegionState { lost_to_threads: 2, ..RegionState::default() })],
            ..RegionBatch::default()
        };
        table.take(&first).unwrap();
        let mut counts = run(3, 30).rows(RegionProgramId(0))[0].clone();
        (counts.path, counts.counters) = (RegionPathId(1), vec![5]);
        let state = RegionState { counters: vec!["bytes".into()], lost_to_threads: 2, ..RegionState::default() };
        let later = RegionBatch { counts: vec![counts], states: vec![(RegionProgramId(0), state)], ..first };
        table.take(&RegionBatch { programs: vec![], paths: vec![], counted_since: Some(WallNs(0)), ..later }).unwrap();
        table
    }

    #[test]
    fn regions_of_which_no_call_has_ended_stand_above_those_within() {
        let tables = [run_with_an_open_region(), run_with_an_open_region()];
        let repeats = RegionRepeats(&tables);
        let all = repeats.all(Confidence::DEFAULT);
        let (rows, left_out) = largest_first(&all.iter().collect::<Vec<_>>());
        let text = times("fit", (&rows, &left_out), Confidence::DEFAULT);
        let names: Vec<&str> =
            text.lines().skip(3).map(|line| line.trim_start().split("   ").last().unwrap()).collect();
        assert_eq!(names, ["open  no call has ended", "  within  bytes: 5", "z  no call has ended"], "{text}");
        assert_eq!(lost_words(&repeats.lost("fit")), " 4 calls are not counted: there are too many threads at once\n");
        let values: Vec<_> =
            all.iter().map(|(region, runs)| lines(&region.title(), runs, Confidence::DEFAULT)).collect();
        assert_eq!(values[0].iter().map(|line| line.value).collect::<Vec<_>>(), [Some(0.0), None, None]);
        assert_eq!(
            (values[1][3].event.as_str(), values[1][3].value),
            ("region-bytes in open/within of fit", Some(5.0))
        );
        assert_eq!(repeats.lost_line("fit").and_then(|line| line.value), Some(2.0));
        assert!(repeats.lost_line("other").is_none());
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_runs(runs in prop::collection::vec((1u64..1000, 1u64..1_000_000), 1..6)) {
            let tables: Vec<_> = runs.iter().map(|&(calls, ns)| run(calls, ns)).collect();
            let all = RegionRepeats(&tables).all(Confidence::DEFAULT);
            let lines = lines("r of fit", all.values().next().unwrap(), Confidence::DEFAULT);
            let ns = || runs.iter().map(|(_, ns)| *ns as f64);
            let value = lines[1].value.unwrap();
            prop_assert!(ns().fold(f64::INFINITY, f64::min) <= value + 1e-6 && value <= ns().fold(0.0, f64::max) + 1e-6);
            prop_assert_eq!(lines.len(), 3);
        }
    }
}
