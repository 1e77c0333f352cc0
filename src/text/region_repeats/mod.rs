//! Prints what named regions took and counted in several runs: the mean of a run, and how sure it is; and as lines of
//! fields.
//!
//! The fields are those of events, in the same order; `region-time in outer/inner of fit` stands in the place of an
//! event's name. A region has lines for `region-calls`, `region-time` and `region-self-time` (in ns),
//! `region-backward-runs` and `region-backward-time` where it ran backwards, and `region-NAME` for each event that is
//! counted in regions. The low and the high end are those of the value, and empty where nothing is known of it, as
//! where measuring calls took more than they did. A name with the separator in it is quoted.

use std::collections::{BTreeMap, BTreeSet};

use super::csv::{self, EventLine};
use super::regions::{clock_words, lost_words};
use super::repeats::{Repetition, SummarySpread};
use crate::monitor::Monitor;
use crate::names::{in_path, shown};
use crate::rates::Confidence;
use crate::regions::{
    Certainty, EventTotal, LostCalls, RegionCounts, RegionPathId, RegionProgram, RegionProgramId, RegionState,
    RegionTable,
};

mod fields;
mod tables;

use fields::lines;
use tables::{events, times};

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
    let of = |ns: fn(&RunOfRegion) -> u64, markers: fn(&RunOfRegion) -> u64| {
        Certainty::of(mean(runs, ns).mean, mean(runs, markers).mean)
    };
    [of(|run| run.time_ns, |run| run.markers_ns), of(|run| run.self_ns, |run| run.self_markers_ns)]
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
        of_name.fold(LostCalls::default(), |sum, lost| LostCalls {
            to_paths: sum.to_paths + lost.to_paths,
            to_threads: sum.to_threads + lost.to_threads,
            in_handlers: sum.in_handlers + lost.in_handlers,
        })
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
            out += &times(&title, &of_program, confidence);
            let lost = lost_words(&self.lost(&program));
            if runs > 1 && !lost.is_empty() {
                out += "In all runs together:\n";
            }
            out += &lost;
            out += &clock_words(monitor.header());
            out += &events(&title, &of_program, confidence);
        }
        out
    }

    /// Lines of fields; the monitor and the repetition say which fields the lines of events have.
    pub fn csv(&self, monitor: &Monitor, separator: &str, repetition: Repetition) -> String {
        let all = self.all(monitor.confidence());
        let programs: BTreeSet<&String> = all.keys().map(|region| &region.program).collect();
        let lost = programs.into_iter().filter_map(|program| self.lost_line(program));
        let lines = all.iter().flat_map(|(region, runs)| lines(&region.title(), runs)).chain(lost);
        let line = |line: EventLine| {
            let fields = line.fields(monitor, repetition);
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

/// Whether no call has ended in any run.
fn never_ended(runs: &[RunOfRegion]) -> bool {
    runs.iter().all(|run| run.calls == 0 && run.reverse_calls == 0)
}

fn mean(runs: &[RunOfRegion], of: impl Fn(&RunOfRegion) -> u64) -> SummarySpread {
    SummarySpread::of(&runs.iter().map(|run| of(run) as f64).collect::<Vec<_>>())
}

/// Names of what a program counted itself in a region.
fn counter_names(runs: &[RunOfRegion]) -> BTreeSet<&String> {
    runs.iter().flat_map(|run| run.counters.keys()).collect()
}

/// What an event counted in each run, in a region and in it alone: 0 in a run that didn't enter it. A run in which it
/// wasn't counted is left out.
fn event_counts(name: &str, runs: &[RunOfRegion]) -> Vec<(f64, f64)> {
    let counted = |run: &RunOfRegion| match run.events.get(name) {
        Some(event) => event.total.map(|total| (total.count, total.self_count.unwrap_or(0.0))),
        None => (run.calls == 0 && !never_ended(runs)).then_some((0.0, 0.0)),
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
        times("fit, mean of runs", &rows, Confidence::DEFAULT)
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
            let line = lines("r of fit", &[run]).swap_remove(1);
            (line.value, line.bounds)
        };
        assert_eq!(of(10, 10), (Some(10.0), Some((10.0, 10.0))));
        assert_eq!([of(10, 11), of(0, 11)], [(Some(10.0), None), (None, None)]);
    }

    #[test]
    fn the_mean_of_two_runs_by_hand() {
        // 10 and 20 ms: 15 ms; s = 7.07, over √2: 5 ms, times t(1) = 12.706: 424 %. 3 calls on average.
        let text = rows(&[run(2, 10_000_000), run(4, 20_000_000)]);
        let row = text.lines().last().map(|line| line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(row, ["3", "15.0", "ms", "±424%", "15.0", "ms", "5.00", "ms", "r"], "{text}");
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
        lines("r of fit", &all.into_values().next().unwrap()).pop().unwrap()
    }

    #[test]
    fn events_of_a_run_that_did_not_enter_the_region_are_0_in_fields_as_in_the_table() {
        let tables = [run_with_an_event(), run(0, 0)];
        let line = of_branches(&tables, Confidence::DEFAULT);
        assert_eq!((line.event.as_str(), line.value, line.bounds), ("region-branches in r of fit", Some(30.0), None));
        let all = RegionRepeats(&tables).all(Confidence::DEFAULT);
        let text = events("fit", &all.iter().collect::<Vec<_>>(), Confidence::DEFAULT);
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
        let text = times("fit", &all.iter().collect::<Vec<_>>(), Confidence::DEFAULT);
        let names: Vec<&str> =
            text.lines().skip(3).map(|line| line.trim_start().split("   ").last().unwrap()).collect();
        assert_eq!(names, ["open  no call has ended", "  within  bytes: 5", "z  no call has ended"], "{text}");
        assert_eq!(lost_words(&repeats.lost("fit")), " 4 calls are not counted: there are too many threads at once\n");
        let values: Vec<_> = all.iter().map(|(region, runs)| lines(&region.title(), runs)).collect();
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
            let lines = lines("r of fit", all.values().next().unwrap());
            let ns = || runs.iter().map(|(_, ns)| *ns as f64);
            let value = lines[1].value.unwrap();
            prop_assert!(ns().fold(f64::INFINITY, f64::min) <= value + 1e-6 && value <= ns().fold(0.0, f64::max) + 1e-6);
            prop_assert_eq!(lines.len(), 3);
        }
    }
}
