//! Tests what the lines of `stat -x` and `-j` hold, and that docs/output.md describes all of it.

use std::collections::{BTreeMap, BTreeSet};

use perfprop::estimate::EstimatorKind;
use perfprop::events::{Encoding, Event, EventKind, Modifiers, Space, Unit};
use perfprop::monitor::{Measure, Monitor};
use perfprop::plan::EventIndex;
use perfprop::regions::{
    CountedPart, EventCounts, EventSums, RegionBatch, RegionCounts, RegionPath, RegionPathId, RegionProgram,
    RegionProgramId, RegionState, RegionTable,
};
use perfprop::run::{End, Header, MeasuredEvent, MeasuredTarget, MetricFormula, TruthColumn};
use perfprop::sources::{Reading, Round, Scope};
use perfprop::text::{self, Repeats, Repetition, SummaryLayout};
use perfprop::units::{CpuNs, CpuTime, WallNs};
use serde_json::Value;

use crate::builders::{self, SECOND, event, measured};

/// What a run's lines have that not all have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    Nothing,
    Metrics,
    Truths,
    Cgroup,
    Cpus,
    Threads,
}

const EXTRAS: [Extra; 6] = [Extra::Nothing, Extra::Metrics, Extra::Truths, Extra::Cgroup, Extra::Cpus, Extra::Threads];

/// `a` is counted all the time, `b` for half of it.
fn header(extra: Extra) -> Header {
    let scope = match extra {
        Extra::Cpus => Scope::Cpu(3),
        Extra::Threads => Scope::Thread { tid: 7, name: "worker".into() },
        _ => Scope::All,
    };
    let events = ["a", "b"].map(|name| MeasuredEvent { scope: scope.clone(), ..measured(event(name)) });
    let mut header = builders::header(events);
    match extra {
        Extra::Metrics => header.metrics = vec![metric()],
        Extra::Truths => header.truths = vec![TruthColumn { truth_of: 1 }],
        Extra::Cgroup => header.target = MeasuredTarget::Cgroup { path: "/g".into() },
        _ => {}
    }
    header
}

fn metric() -> MetricFormula {
    MetricFormula {
        name: "share".into(),
        formula: "a / b".into(),
        threshold: None,
        factor: 1.0,
        unit: String::new(),
        description: String::new(),
        events: BTreeMap::from([("a".into(), vec![EventIndex(0)]), ("b".into(), vec![EventIndex(1)])]),
    }
}

/// A run of seconds in which `a` counts so many, and `b` so many in its half of a second.
fn run(header: Header, counts: &[(u64, u64)]) -> Monitor {
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    let (mut a, mut b, mut time) = (0, 0, 0);
    for &(of_a, of_b) in counts {
        (a, b, time) = (a + of_a, b + of_b, time + SECOND);
        let reading = |count, running| Some(Reading { count, enabled: CpuNs(time), running: CpuNs(running) });
        let readings = vec![reading(a, time), reading(b, time / 2), reading(2 * b, time)];
        monitor.round(&Round { at: WallNs(time), readings, ..Round::default() }, 0);
    }
    monitor.end(End { at_ns: WallNs(time), ..End::default() });
    monitor
}

/// Three runs of a second, then of two, then of one.
fn three(extra: Extra) -> [Monitor; 3] {
    [vec![(0, 100)], vec![(1, 400), (0, 200)], vec![(0, 150)]].map(|counts| run(header(extra), &counts))
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn fields(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split(',').map(|field| field.trim().to_owned()).collect()).collect()
}

#[test]
fn all_of_a_line_of_several_runs_is_the_mean_of_them() {
    let runs = three(Extra::Nothing);
    let b = &json(&text::json_totals(&Repeats(&runs), Repetition::Several))[1];
    // 200, 1200 and 300 counts in 1, 2 and 1 seconds, half of which the event was on a counter.
    assert!((b["counter-value"].as_f64().unwrap() - 1700.0 / 3.0).abs() < 1e-9, "{b}");
    assert_eq!(b["event-runtime"], SECOND * 2 / 3);
    assert_eq!(b["mean-per-cpu-sec"].as_f64().map(f64::round), Some(425.0), "{b}");
    assert_eq!(b["metric-value"].as_f64().map(f64::round), Some(425.0), "{b}");
    // Rates 200, 600 and 300 weigh 1, 2 and 1: squares 50625, 2 x 30625 and 15625 over 4, times 3 / 2.
    let sigma = (127_500.0_f64 / 4.0 * 1.5).sqrt();
    assert!((b["sigma-per-cpu-sec"].as_f64().unwrap() - sigma).abs() < 1e-6, "{b}");
    assert_eq!(b["pcnt-running"], 50.0);
}

#[test]
fn a_variance_that_a_relation_corrects_stands_beside_that_of_the_counts() {
    let text = r#"[{"eventFrom": "a", "eventTo": "b", "expectedVariance": 4 * {variance}, "weight": 1}]"#;
    let relations = perfprop::relations::parse("f", text.as_bytes()).strict().unwrap();
    let mut monitor = builders::monitor(header(Extra::Nothing), relations, EstimatorKind::LinearPlain);
    let (mut a, mut b) = (0, 0);
    for second in 1..=3 {
        (a, b) = (a + 100 * second, b + 50 + 50 * second);
        let time = second * SECOND;
        let reading = |count, running| Some(Reading { count, enabled: CpuNs(time), running: CpuNs(running) });
        let readings = vec![reading(a, time), reading(b, time / 2)];
        monitor.round(&Round { at: WallNs(time), readings, ..Round::default() }, 0);
    }
    monitor.end(End { at_ns: WallNs(3 * SECOND), ..End::default() });
    let runs = [monitor];
    let lines = json(&text::json_totals(&Repeats(&runs), Repetition::Once));
    let of = |line: usize, key: &str| lines[line][key].as_f64();
    // Rates of 100, 200, 300 and of 200, 300, 400 a second: both have a standard deviation of 100. Four times the variance is twice that.
    assert_eq!(of(1, "sigma-per-cpu-sec").map(f64::round), Some(100.0), "{}", lines[1]);
    assert_eq!(of(1, "corrected-sigma-per-cpu-sec").map(f64::round), Some(200.0), "{}", lines[1]);
    assert_eq!((of(0, "corrected-sigma-per-cpu-sec"), of(1, "corrected-value")), (None, None));
    // So it is in another measure.
    let row = runs[0].row(1);
    let [counted, corrected] =
        [Measure::PerSecond.variance(&runs[0], &row), Measure::PerSecond.best_variance(&runs[0], &row)];
    assert!((corrected.unwrap() / counted.unwrap() - 4.0).abs() < 1e-9, "{counted:?} {corrected:?}");
}

#[test]
fn a_small_mean_of_runs_has_its_fraction_and_its_rate() {
    let runs = three(Extra::Nothing);
    let summary = text::summary(&Repeats(&runs), SummaryLayout::default());
    let line = summary.lines().find(|line| line.contains(" a ")).unwrap();
    // One in 3 runs, of 4 seconds in all.
    assert!(line.trim_start().starts_with("0.333 ") && line.contains("0.250 /cpu-s"), "{line}");
    let csv = &fields(&text::csv_totals(&Repeats(&runs), ",", Repetition::Several))[0];
    // Runs of 0, 0 and 1: the mean is no surer than Student's t with two degrees says, and not below 0.
    assert_eq!((csv[0].as_str(), csv[6].as_str(), csv[8].as_str(), csv[9].as_str()), ("0", "0.250", "0.25", "0"));
}

#[test]
fn the_error_of_several_runs_is_told_as_that_of_their_mean() {
    let of_mean = "± is the error of the mean of the runs at 95%";
    let legend = |counts: &[(u64, u64)]| {
        let runs: Vec<_> = counts.iter().map(|&counts| run(header(Extra::Nothing), &[counts, counts])).collect();
        let summary = text::summary(&Repeats(&runs), SummaryLayout::default());
        (summary.contains(of_mean), summary.contains("± is the error of the number before it at 95%"))
    };
    // Two runs of an event that was counted all the time differ, or are alike.
    assert_eq!(legend(&[(10, 0), (12, 0)]), (true, false));
    assert_eq!(legend(&[(10, 0), (10, 0)]), (false, false));
    // A multiplexed event.
    assert_eq!(legend(&[(10, 40)]), (false, true));
    assert_eq!(legend(&[(10, 40), (10, 50)]), (true, false));
}

#[test]
fn a_count_of_some_runs_says_of_how_many() {
    let mut uncounted = builders::monitor(header(Extra::Nothing), vec![], EstimatorKind::Scale);
    let reading = |running| Some(Reading { count: 0, enabled: CpuNs(SECOND), running: CpuNs(running) });
    let readings = vec![reading(SECOND), reading(0), reading(SECOND)];
    uncounted.round(&Round { at: WallNs(SECOND), readings, ..Round::default() }, 0);
    uncounted.end(End { at_ns: WallNs(SECOND), ..End::default() });
    let runs = [run(header(Extra::Nothing), &[(5, 100)]), uncounted];
    let summary = text::summary(&Repeats(&runs), SummaryLayout::default());
    let line = |name: &str| summary.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line(" b ").contains("(counted in 1 of 2 runs)"), "{summary}");
    assert!(!line(" a ").contains("counted in"), "{summary}");
}

#[test]
fn times_that_the_kernel_samples_are_no_better_known_than_by_its_ticks() {
    let clock = |name| measured(Event { unit: Unit::Nanoseconds, kind: EventKind::Tool, ..event(name) });
    let measured = |target| {
        let header = Header { target, ..builders::header(["duration_time", "user_time", "system_time"].map(clock)) };
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        let half = Some(Reading { count: SECOND / 2, enabled: CpuNs(SECOND), running: CpuNs(SECOND) });
        monitor.round(&Round { at: WallNs(SECOND), readings: vec![half; 3], ..Round::default() }, 0);
        let half = CpuNs(SECOND / 2);
        let cpu_time = Some(CpuTime { user_ns: half, system_ns: half });
        monitor.end(End { at_ns: WallNs(SECOND), cpu_time, ..End::default() });
        [monitor]
    };
    let errors = |runs: &[Monitor; 1]| [0, 1].map(|row| runs[0].row(row).count().unwrap().error.half_width());
    let machine = measured(MeasuredTarget::Everyone { cpus: None });
    let ms = |errors: [Option<f64>; 2]| errors.map(|half| (half.unwrap() / 1e6).round());
    // Of 50 ticks, and of a tick at both ends.
    assert_eq!(ms(errors(&machine)), [0.0, 169.0]);
    let summary = text::summary(&Repeats(&machine), SummaryLayout::default());
    assert!(summary.contains("±33.8%") && summary.contains("100 times a second"), "{summary}");
    assert!(!summary.contains("multiplexing"), "{summary}");
    // The kernel tells what a command used in all when it ends: 50 of 100 ticks.
    let command = measured(MeasuredTarget::Command { argv: vec!["x".into()], pid: 7 });
    assert_eq!(ms(errors(&command)), [0.0, 96.0]);
}

#[test]
fn lines_of_intervals_and_errors_fit_the_terminal() {
    let runs = [run(header(Extra::Truths), &[(1_234_567, 200)])];
    let layout = |columns| SummaryLayout { columns, ..SummaryLayout::default() };
    let lines = |columns| {
        let heading = text::interval_heading(&runs[0], columns);
        heading + &text::interval(&runs[0], layout(columns)) + &text::truth(&Repeats(&runs), columns)
    };
    let wide = lines(None);
    assert!(wide.lines().any(|line| line.chars().count() > 80), "{wide}");
    assert!(wide.contains("400      b") && wide.contains("#   400.000 /cpu-s"), "{wide}");
    // What perf derives stands behind the rest where there is room.
    let all: String =
        wide.lines().map(|line| format!("{}\n", line.split("  #  ").next().unwrap_or_default())).collect();
    for columns in [66, 72, 80] {
        let narrow = lines(Some(columns));
        assert!(narrow.lines().all(|line| line.chars().count() <= columns), "{columns}: {narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&all));
        // The columns of a heading and its lines are the same.
        let ends: Vec<_> = narrow.lines().take(3).map(|line| line.trim_end().chars().count()).collect();
        assert!(ends.iter().all(|&end| end == ends[0]), "{narrow}");
    }
    assert_eq!(lines(Some(200)), wide);
}

#[test]
fn an_interval_has_its_own_rate() {
    let monitor = run(header(Extra::Nothing), &[(100, 0), (50, 200)]);
    let lines = json(&text::json_interval(&monitor));
    assert_eq!([&lines[0], &lines[1]].map(|line| line["mean-per-cpu-sec"].as_f64()), [Some(50.0), Some(400.0)]);
    assert!(lines[0].get("sigma-per-cpu-sec").is_none());
    let csv = fields(&text::csv_interval(&monitor, ",", Repetition::Once));
    assert_eq!((csv[1][8].as_str(), csv[1][11].as_str()), ("400", ""));
}

#[test]
fn the_truth_stands_at_the_end_of_the_fields() {
    let runs = three(Extra::Truths);
    let csv = fields(&text::csv_totals(&Repeats(&runs), ",", Repetition::Several));
    // The scaled counts are right; the truth of the other event isn't known, and only the longest run has an interval.
    let ends: Vec<_> = csv.iter().map(|line| line[line.len() - 3..].join(",")).collect();
    assert_eq!(ends[0], ",,");
    assert!(ends[1].starts_with("566.6666") && ends[1].ends_with(",0,"), "{ends:?}");
    let truth = text::truth(&Repeats(&runs), None);
    assert!(truth.contains("1 of 1") && truth.contains("means of runs"), "{truth}");
}

#[test]
fn what_nobody_saw_has_no_sigma() {
    let mut monitor = builders::monitor(header(Extra::Nothing), vec![], EstimatorKind::Scale);
    // Not on a counter in the first second, and 0 from then on.
    for second in 1..=5 {
        let time = second * SECOND;
        let running = |running| Some(Reading { count: 0, enabled: CpuNs(time), running: CpuNs(running) });
        let readings = vec![running(time), running((time - SECOND) / 2)];
        monitor.round(&Round { at: WallNs(time), readings, ..Round::default() }, 0);
    }
    monitor.end(End { at_ns: WallNs(5 * SECOND), ..End::default() });
    let runs = [monitor];
    let lines = json(&text::json_totals(&Repeats(&runs), Repetition::Once));
    assert_eq!((&lines[1]["status"], &lines[1]["counter-value"]), (&"none seen".into(), &Value::Null));
    assert_eq!((&lines[0]["sigma-per-cpu-sec"], &lines[1]["sigma-per-cpu-sec"]), (&0.0.into(), &Value::Null));
    let csv = fields(&text::csv_totals(&Repeats(&runs), ",", Repetition::Once));
    assert_eq!([&csv[0][10], &csv[1][10]], ["0", ""], "{csv:?}");
}

#[test]
fn every_line_has_the_keys_of_metrics_where_there_are_some() {
    let runs = three(Extra::Metrics);
    for lines in [text::json_totals(&Repeats(&runs), Repetition::Several), text::json_interval(&runs[0])] {
        for line in json(&lines) {
            let lacks = |key: &&str| line.get(key).is_none();
            let lacking: Vec<_> = ["metric-value", "metric-unit", "metric-ci-lo", "metric-ci-hi", "metric-status"]
                .into_iter()
                .filter(lacks)
                .collect();
            assert!(lacking.is_empty(), "{lacking:?} {line}");
        }
    }
}

#[test]
fn lines_of_intervals_and_of_runs_have_the_same_fields() {
    for extra in EXTRAS {
        let runs = three(extra);
        let of_runs = text::csv_beside_intervals(&text::csv_totals(&Repeats(&runs), ",", Repetition::Several), ",");
        let of_interval = text::csv_interval(&runs[0], ",", Repetition::Several);
        let all = fields(&format!("{of_interval}{of_runs}"));
        assert!(all.iter().all(|line| line.len() == all[0].len()), "{extra:?} {all:?}");
        assert_eq!([all[0][0].as_str(), all.last().unwrap()[0].as_str()], ["1.000000000", "summary"]);
    }
}

#[test]
fn one_run_of_several_has_an_empty_standard_error_in_its_place() {
    let runs = three(Extra::Nothing);
    let [one, all] =
        [&runs[..1], &runs[..]].map(|runs| fields(&text::csv_totals(&Repeats(runs), ",", Repetition::Several)));
    assert_eq!(one[1].len(), all[1].len());
    assert_eq!((one[1][3].as_str(), one[1][5].as_str()), ("", "50.00"), "{one:?}");
    let lines = json(&text::json_totals(&Repeats(&runs[..1]), Repetition::Several));
    assert_eq!(lines[1].get("variance"), Some(&Value::Null));
}

/// A second in which events count so much each.
fn second_of(events: Vec<(Event, u64)>) -> Monitor {
    let (events, counts): (Vec<_>, Vec<_>) = events.into_iter().unzip();
    let mut monitor =
        builders::monitor(builders::header(events.into_iter().map(measured)), vec![], EstimatorKind::Scale);
    let reading = |count| Some(Reading { count, enabled: CpuNs(SECOND), running: CpuNs(SECOND) });
    let readings = counts.into_iter().map(reading).collect();
    monitor.round(&Round { at: WallNs(SECOND), readings, ..Round::default() }, 0);
    monitor.end(End { at_ns: WallNs(SECOND), ..End::default() });
    monitor
}

/// An event of the CPU in user space or in the kernel only, where one of them is named.
fn of_space(canonical: &str, space: Option<Space>) -> Event {
    let mut modifiers = Modifiers::default();
    space.iter().for_each(|space| space.apply(&mut modifiers));
    let letter = space.map_or_else(String::new, |space| format!(":{}", space.letter()));
    let name = format!("{canonical}{letter}");
    Event { canonical: canonical.into(), modifiers, kind: EventKind::Hardware, ..event(&name) }
}

/// What the texts of a run derive from an event: its number and unit in JSON.
fn derived(monitor: &Monitor, row: usize) -> (Option<f64>, String) {
    let line = &json(&text::json_totals(&Repeats(std::slice::from_ref(monitor)), Repetition::Once))[row];
    (line["metric-value"].as_f64(), line["metric-unit"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn what_is_derived_is_of_events_in_the_same_space() {
    let [user, kernel] = [Some(Space::User), Some(Space::Kernel)];
    let monitor = second_of(vec![
        (of_space("cycles", user), 1000),
        (of_space("cycles", kernel), 100),
        (of_space("instructions", user), 3000),
        (of_space("instructions", kernel), 50),
        (of_space("instructions", None), 3050),
        (of_space("branch-misses", kernel), 5),
    ]);
    assert_eq!(derived(&monitor, 2), (Some(3.0), "insn per cycle".into()));
    assert_eq!(derived(&monitor, 3), (Some(0.5), "insn per cycle".into()));
    assert_eq!(derived(&monitor, 4), (Some(3.05), "K/sec".into()), "nothing counts all cycles");
    // 5 misses in the kernel's 50 instructions.
    let factor = Measure::PerKiloInstruction.factor(&monitor, &monitor.row(5));
    assert_eq!(factor.map(|factor| factor.value), Some(20.0));
}

#[test]
fn what_is_derived_is_of_events_on_the_same_kind_of_core() {
    let on = |core: &str, name: &str| {
        let encoding = Encoding { core: Some(core.into()), ..Encoding::default() };
        Event { encoding, ..of_space(&format!("{core}/{name}/"), None) }
    };
    let monitor = second_of(vec![
        (on("cpu_core", "cycles"), 1000),
        (on("cpu_atom", "cycles"), 100),
        (on("cpu_atom", "instructions"), 150),
        (on("cpu_core", "branches"), 200),
        (on("cpu_core", "branch-misses"), 20),
    ]);
    assert_eq!(derived(&monitor, 1).1, "GHz");
    assert_eq!(derived(&monitor, 2), (Some(1.5), "insn per cycle".into()));
    assert_eq!(derived(&monitor, 4), (Some(10.0), "of all branches".into()));
}

#[test]
fn shares_of_misses_have_perfs_unit_and_a_percent_sign_in_texts() {
    let monitor = second_of(vec![(of_space("branches", None), 200), (of_space("branch-misses", None), 5)]);
    let runs = Repeats(std::slice::from_ref(&monitor));
    let csv = text::csv_totals(&runs, ",", Repetition::Once);
    assert!(csv.contains(",2.5,of all branches,") || csv.contains(",2.500,of all branches,"), "{csv}");
    let summary = text::summary(&runs, SummaryLayout::default());
    assert!(summary.contains("#    2.500% of all branches"), "{summary}");
}

/// The rows of the table of docs/output.md that begins with this column.
fn table(first: &str) -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/output.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with(&format!("| {first} |"))).skip(2);
    let rows = rows.take_while(|line| line.starts_with("| "));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()).collect()
}

/// Whether the lines of such runs have what a row's second column says.
fn has(when: &str, extra: Extra, runs: usize, is_interval: bool) -> bool {
    match when {
        "always" => true,
        "-I" => is_interval,
        "not with -I" => !is_interval,
        "-r" => runs > 1,
        "-G" => extra == Extra::Cgroup,
        "-A" => extra == Extra::Cpus,
        "--per-thread" => extra == Extra::Threads,
        "-A, --per-thread" => matches!(extra, Extra::Cpus | Extra::Threads),
        "-M" => extra == Extra::Metrics,
        "--counters" => extra == Extra::Truths,
        "--source emulate" | "--whole-run" | "sometimes" => false,
        when => panic!("when is {when}?"),
    }
}

/// The field as it stands, and the key's value; `None` where the two are written in other ways.
fn numbers(field: &str, value: &Value) -> Option<(f64, f64)> {
    Some((field.parse().ok()?, value.as_f64()?))
}

#[test]
fn the_page_lists_every_field_in_its_place() {
    for extra in EXTRAS {
        let runs = three(extra);
        for (runs, is_interval) in [(&runs[..1], false), (&runs[..], false), (&runs[..1], true)] {
            let (csv, keys) = if is_interval {
                (text::csv_interval(&runs[0], ",", Repetition::Once), text::json_interval(&runs[0]))
            } else {
                let repetition = if runs.len() > 1 { Repetition::Several } else { Repetition::Once };
                let runs = Repeats(runs);
                (text::csv_totals(&runs, ",", repetition), text::json_totals(&runs, repetition))
            };
            let listed: Vec<_> =
                table("field").into_iter().filter(|row| has(&row[1], extra, runs.len(), is_interval)).collect();
            for (line, keys) in fields(&csv).iter().zip(json(&keys)) {
                assert_eq!(line.len(), listed.len(), "{extra:?} {line:?} {listed:?}");
                for (field, row) in line.iter().zip(&listed) {
                    let key = row[2].split(", ").find_map(|key| keys.get(key)).unwrap_or(&Value::Null);
                    let near = numbers(field, key).is_none_or(|(a, b)| (a - b).abs() <= 0.5_f64.max(b.abs() * 0.01));
                    let is_same = near && (field.is_empty() || !key.is_null() || row[0] == "truth" || is_interval);
                    assert!(is_same || row[0] == "value", "{extra:?} {}: {field} and {key}", row[0]);
                }
            }
        }
    }
}

/// A run of a program with a region that has all that lines of regions tell.
fn regions() -> RegionTable {
    let all = EventCounts { calls: 2, sum: 30, enabled_ns: 40, running_ns: 40, ..EventCounts::default() };
    let alone = CountedPart { sum: 20, enabled_ns: 20, running_ns: 20 };
    let counts = RegionCounts {
        calls: 2,
        time_ns: 50,
        self_ns: 40,
        reverse_calls: 1,
        reverse_ns: 9,
        events: vec![EventSums { all, alone, ..EventSums::default() }],
        counters: vec![7],
        ..RegionCounts::nothing(RegionPathId(0))
    };
    let state = RegionState {
        events: vec!["task-clock".into()],
        counters: vec!["bytes".into()],
        lost: 3,
        ..RegionState::default()
    };
    let path = RegionPath { program: RegionProgramId(0), parent: None, name: "r".into(), phase: "warmup".into() };
    let mut table = RegionTable::default();
    let batch = RegionBatch {
        counted_since: Some(WallNs(0)),
        programs: vec![RegionProgram { pid: 7, name: Some("prog".into()) }],
        paths: vec![path],
        counts: vec![counts],
        states: vec![(RegionProgramId(0), state)],
        ..RegionBatch::default()
    };
    table.take(&batch).unwrap();
    table
}

#[test]
fn the_page_lists_every_line_of_a_region_and_which_fields_it_has() {
    let names: Vec<_> = table("line").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let filled: BTreeSet<String> = {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/output.md")).unwrap();
        let rows =
            page.lines().skip_while(|line| !line.starts_with("| field | what it is in lines of regions |")).skip(2);
        let rows = rows.take_while(|line| line.starts_with("| "));
        rows.filter_map(|row| Some(row.split('|').nth(1)?.trim().to_owned())).collect()
    };
    for extra in EXTRAS {
        let monitors = three(extra);
        for runs in [1, 2] {
            let repetition = if runs > 1 { Repetition::Several } else { Repetition::Once };
            let csv = text::RegionRepeats(&vec![regions(); runs]).csv(&monitors[0], ",", repetition);
            let fields_of = table("field").into_iter().filter(|row| has(&row[1], extra, runs, false));
            let fields_of: Vec<String> = fields_of.map(|row| row[0].clone()).collect();
            let mut found = Vec::new();
            for line in fields(&csv) {
                assert_eq!(line.len(), fields_of.len(), "{extra:?} {line:?}");
                for (field, name) in line.iter().zip(&fields_of) {
                    let is_listed = filled.contains(name) && name != "part";
                    assert!(field.is_empty() || is_listed, "{extra:?} {name}: {field} in {line:?}");
                }
                let of = |name: &str| &line[fields_of.iter().position(|field| field == name).unwrap()];
                let (what, region) = of("event").split_once(" in ").unwrap();
                let wanted = if what == "region-lost-calls" { "prog" } else { "r (warmup) of prog" };
                assert_eq!(region, wanted);
                found.push((what.to_owned(), of("unit").clone()));
            }
            let known: Vec<_> = found.iter().filter(|line| names.contains(line)).cloned().collect();
            let named =
                [("region-bytes", ""), ("region-task-clock", "ns")].map(|(name, unit)| (name.into(), unit.into()));
            let others: Vec<_> = found.into_iter().filter(|line| !names.contains(line)).collect();
            assert_eq!((known.len() + 1, &others[..]), (names.len(), &named[..]), "{csv}");
        }
    }
}

#[test]
fn the_page_lists_every_key() {
    let listed = table("key");
    let names: BTreeSet<&str> = listed.iter().map(|row| row[0].as_str()).collect();
    for extra in EXTRAS {
        let runs = three(extra);
        for (lines, count, is_interval) in [
            (text::json_totals(&Repeats(&runs[..1]), Repetition::Once), 1, false),
            (text::json_totals(&Repeats(&runs), Repetition::Several), 3, false),
            (text::json_interval(&runs[0]), 1, true),
        ] {
            let printed: BTreeSet<String> =
                json(&lines).iter().flat_map(|line| line.as_object().unwrap().keys().cloned()).collect();
            let printed: BTreeSet<_> = printed.iter().map(|key| key.strip_prefix("run-").unwrap_or(key)).collect();
            let unlisted: Vec<_> = printed.difference(&names).collect();
            assert!(unlisted.is_empty(), "{extra:?} {unlisted:?}");
            for row in listed.iter().filter(|row| has(&row[1], extra, count, is_interval)) {
                assert!(printed.contains(row[0].as_str()), "{extra:?} {}", row[0]);
            }
        }
    }
}

#[test]
fn user_and_system_time_are_those_of_the_command_that_is_measured() {
    let end = |target: MeasuredTarget| {
        let mut monitor = builders::monitor(Header { target, ..header(Extra::Nothing) }, vec![], EstimatorKind::Scale);
        let cpu_time = Some(CpuTime { user_ns: CpuNs(SECOND), system_ns: CpuNs(0) });
        monitor.end(End { at_ns: WallNs(SECOND), cpu_time, ..End::default() });
        text::summary(&Repeats(&[monitor]), SummaryLayout::default())
    };
    assert!(end(MeasuredTarget::Command { argv: vec!["./prog".into()], pid: 1 }).contains("seconds user"));
    // A command beside it only says how long to count.
    assert!(!end(MeasuredTarget::Processes(vec![])).contains("seconds user"));
}

#[test]
fn texts_have_the_errors_of_the_screens() {
    let mut header = header(Extra::Nothing);
    (header.period_ns, header.interval_ns) = (WallNs(SECOND / 100), WallNs(SECOND / 10));
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Gp);
    for at in 1..=40 {
        let time = at * SECOND / 100;
        let reading = |count, running| Some(Reading { count, enabled: CpuNs(time), running: CpuNs(running) });
        // Every fourth slice, in which it counts something now and then.
        let slices = at / 4;
        let readings = vec![reading(100 * at, time), reading(slices / 3 * 50, slices * SECOND / 100)];
        monitor.round(&Round { at: WallNs(time), readings, ..Round::default() }, 0);
    }
    monitor.end(End { at_ns: WallNs(SECOND * 2 / 5), ..End::default() });
    let row = monitor.row(1);
    let unmoved = row.correction().is_none();
    assert_eq!(row.count(), if unmoved { row.estimate.total } else { row.scaled });
    let expected = row.count().and_then(perfprop::rates::Uncertain::bounds).map(|(_, high)| high);
    let printed =
        json(&text::json_totals(&Repeats(std::slice::from_ref(&monitor)), Repetition::Once))[1]["ci-hi"].as_f64();
    assert_eq!(printed, expected);
}

#[test]
fn a_summary_says_of_all_events_with_few_turns_that_their_errors_leave_out_bursts() {
    let text = |events: &[(&str, u64)]| {
        let mut header = builders::header(events.iter().map(|(name, _)| measured(event(name))));
        header.period_ns = WallNs(SECOND / 100);
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        // Each is counted in one of so many slices.
        for at in 1..=60 {
            let enabled = CpuNs(at * SECOND / 100);
            let of = |(_, every): &(&str, u64)| {
                let slices = at / every;
                Some(Reading { count: slices * 100, enabled, running: CpuNs(slices * SECOND / 100) })
            };
            let readings = events.iter().map(of).collect();
            monitor.round(&Round { at: WallNs(at * SECOND / 100), readings, ..Round::default() }, 0);
        }
        monitor.end(End { at_ns: WallNs(SECOND * 3 / 5), ..End::default() });
        text::summary(&Repeats(std::slice::from_ref(&monitor)), SummaryLayout::default())
    };
    let all = "all";
    for (events, says) in [
        (&[(all, 1), ("a", 12)][..], Some("a had only 5 turns on a counter: its ± leaves out bursts between turns")),
        (&[(all, 1), ("a", 12), ("b", 10)], Some("2 events had only 5 to 6 turns on a counter: their ± leaves out")),
        (&[("a", 12), ("b", 12), ("c", 6)], Some("3 events had only 5 to 10 turns on a counter: their ± leaves out")),
        (&[(all, 1)], None),
    ] {
        let text = text(events);
        assert_eq!(text.contains("had only"), says.is_some(), "{text}");
        assert!(says.is_none_or(|says| text.contains(says)), "{text}");
    }
}
