//! Tests what a monitor finds out about a measurement, and how often it says so.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::{Estimate, Estimator, EstimatorKind, Gaussian, ScaleEstimator, Standing, Weakness};
use perfprop::events::{Event, EventKind, Unit};
use perfprop::monitor::{Measure, Monitor, leans_on_scaling};
use perfprop::rates::{Error, Tally, Uncertain};
use perfprop::run::{End, Header, MeasuredTarget, RotatedBy};
use perfprop::sources::{Reading, Round, Scope};
use perfprop::text::{self, Repeats, Repetition, SummaryLayout};
use perfprop::units::{CpuNs, CpuTime, WallNs};

use crate::builders::{self, SECOND, event, measured, software_event};

fn header() -> Header {
    let duration = Event { kind: EventKind::Tool, ..event("duration_time") };
    builders::header([software_event("faults"), duration].map(measured))
}

/// A tenth of a second after the one before; one event counts all the CPU time.
fn round(tenth: u64) -> Round {
    let time = CpuNs(tenth * SECOND / 10);
    let reading = Some(Reading { count: 100 * tenth, enabled: time, running: time });
    Round { at: WallNs(time.0), readings: vec![reading; 2], ..Round::default() }
}

fn fresh() -> Monitor {
    builders::monitor(header(), vec![], EstimatorKind::Scale)
}

/// The time of each finding, in tenths of a second, and its words.
fn told(monitor: &Monitor, code: &str) -> Vec<(u64, String)> {
    let findings = monitor.findings().iter().filter(|noted| noted.finding.code() == code);
    findings.map(|noted| (noted.at.0 * 10 / SECOND, noted.finding.words(monitor).to_string())).collect()
}

#[test]
fn lost_rounds_of_a_minute_are_told_together() {
    let mut monitor = fresh();
    // A late round each time, none in the second interval, one in the third, one a minute later, and some with the end.
    for (tenth, lost) in (1..=9).zip(1..).chain([(10, 9), (15, 9), (20, 9), (25, 10), (30, 10), (31, 10), (700, 11)]) {
        monitor.round(&round(tenth), lost);
        assert_eq!(monitor.rounds().1, lost);
    }
    monitor.end(End { at_ns: WallNs(71 * SECOND), lost_rounds: 12, ..End::default() });
    let rest = "skipped, totals are right";
    let words = [(10, 10), (700, 2)];
    assert_eq!(told(&monitor, "W01"), words.map(|(at, count)| (at, format!("{count} readings {rest}"))));
}

/// A command of which 0.3 s are counted, and that used so many tenths of a second.
fn ended(tenths: u64, last: Round) -> Monitor {
    let mut monitor = fresh();
    monitor.round(&round(1), 0);
    monitor.round(&round(2), 0);
    monitor.round(&last, 0);
    let cpu_time = Some(CpuTime { user_ns: CpuNs(tenths * SECOND / 10), system_ns: CpuNs(0) });
    monitor.end(End { at_ns: last.at, cpu_time, is_all_watched: true, totals: last.readings, ..End::default() });
    monitor
}

#[test]
fn counts_without_a_child_are_not_exact() {
    let monitors = [ended(8, round(3))];
    let [monitor] = &monitors;
    assert!(monitor.lacks_a_child());
    let told = told(monitor, "W13");
    assert!(told.len() == 1 && told[0].0 == 3, "{told:?}");
    assert!(told[0].1.starts_with("not counted: 0.50 s of 0.80 s CPU time. "), "{told:?}");
    let text = text::summary(&Repeats(&monitors), SummaryLayout::default());
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("faults").contains("300") && line("faults").contains("±?"), "{text}");
    assert!(!line("duration_time").contains("±?"), "{text}");
    let json = text::json_totals(&Repeats(&monitors), Repetition::Once);
    assert_eq!(json.matches("\"status\":\"counted without a child\"").count(), 1, "{json}");
    let csv = text::csv_totals(&Repeats(&monitors), ",", Repetition::Once);
    assert_eq!(csv.matches("counted without a child").count(), 1, "{csv}");
}

#[test]
fn nothing_is_told_of_a_child_where_all_is_counted_or_known_already() {
    let monitor = ended(5, round(3));
    assert_eq!(told(&monitor, "W13"), []);
    assert_eq!((monitor.row(0).uncounted, monitor.lacks_a_child()), (None, false));
    let monitor = ended(8, Round { uncounted: vec![0], ..round(3) });
    assert_eq!((told(&monitor, "W11").len(), told(&monitor, "W13").len()), (1, 0));
}

#[test]
fn counts_without_a_cpu_that_went_offline_are_not_exact() {
    let header = || {
        let mut header = header();
        (header.target, header.events[0].scope) = (MeasuredTarget::Everyone { cpus: None }, Scope::Cpu(1));
        header
    };
    let told = |offline: &[(usize, WallNs)]| {
        let mut monitor = builders::monitor(header(), vec![], EstimatorKind::Scale);
        for tenth in 1..=12 {
            let offline = if tenth > 3 { offline.to_vec() } else { vec![] };
            monitor.round(&Round { offline, ..round(tenth) }, 0);
        }
        let last = round(12);
        monitor.end(End { at_ns: last.at, totals: last.readings, ..End::default() });
        let words = told(&monitor, "W11");
        let json = text::json_totals(&Repeats(&[monitor]), Repetition::Once);
        (words, json.matches("\"status\":\"counted until a CPU was offline\"").count())
    };
    assert_eq!(told(&[]), (vec![], 0));
    let (words, status) = told(&[(0, WallNs(SECOND / 3))]);
    let begins = |words: &str| words.starts_with("CPU 1 was offline from 0.3 s on: the kernel took its counters off");
    assert!(words.len() == 1 && words[0].0 == 4 && begins(&words[0].1), "{words:?}");
    assert_eq!(status, 1);
    let mut monitor = builders::monitor(header(), vec![], EstimatorKind::Scale);
    monitor.round(&Round { offline: vec![(0, WallNs(SECOND / 3))], ..round(12) }, 0);
    let text = text::summary(&Repeats(&[monitor]), SummaryLayout::default());
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("faults").contains("±?") && !line("duration_time").contains("±?"), "{text}");
}

/// Intervals of 0.1 s of an event that is always counted, so often in rounds of 2 ms, and of one that has every other
/// round.
fn rotated(estimator: impl FnOnce(&[Event]) -> Box<dyn Estimator>, in_round: impl Fn(u64) -> u64) -> Monitor {
    rotated_beside(estimator, in_round, 100)
}

/// The same, where the other event happens so often in a round.
fn rotated_beside(
    estimator: impl FnOnce(&[Event]) -> Box<dyn Estimator>,
    in_round: impl Fn(u64) -> u64,
    of_other: u64,
) -> Monitor {
    const ROUND: u64 = 2_000_000;
    let mut header = header();
    (header.period_ns, header.interval_ns) = (WallNs(ROUND), WallNs(50 * ROUND));
    header.events.iter_mut().for_each(|event| event.event.kind = EventKind::Hardware);
    let events = header.bare_events();
    let mut monitor = Monitor::new(header, vec![], estimator(&events));
    let mut count = 0;
    for at in 1..=400 {
        count += in_round(at);
        let reading =
            |count, rounds| Some(Reading { count, enabled: CpuNs(at * ROUND), running: CpuNs(rounds * ROUND) });
        let readings = vec![reading(count, at), reading(of_other * (at / 2), at / 2)];
        monitor.round(&Round { at: WallNs(at * ROUND), readings, ..Round::default() }, 0);
    }
    monitor
}

fn gaussian(events: &[Event]) -> Box<dyn Estimator> {
    Box::new(Gaussian::new(events, &[]))
}

#[test]
fn a_rotation_in_step_with_the_program_is_told_once() {
    let in_step = rotated(gaussian, |at| if at % 2 == 0 { 380 } else { 20 });
    let told_of = told(&in_step, "W16");
    assert!(told_of.len() == 1 && told_of[0].1.contains("rotate in step with the program"), "{told_of:?}");
    assert_eq!(told(&rotated(gaussian, |_| 200), "W16"), []);
    assert_eq!(told(&in_step, "W17"), []);
}

/// Scales, as an estimator that has no solution does.
struct Unsolved(ScaleEstimator);

impl Estimator for Unsolved {
    fn end_interval(&mut self, tally: &Tally) {
        self.0.end_interval(tally);
    }

    fn estimates(&self) -> &[Estimate] {
        self.0.estimates()
    }

    fn relations(&self) -> &[Standing] {
        self.0.relations()
    }

    fn weaknesses(&self) -> Vec<Weakness> {
        vec![Weakness::Scaled]
    }
}

#[test]
fn an_estimator_that_scales_tells_so_once() {
    let unsolved = |events: &[Event]| -> Box<dyn Estimator> { Box::new(Unsolved(ScaleEstimator::new(events, &[]))) };
    assert_eq!(told(&rotated(unsolved, |_| 200), "W17").len(), 1);
}

#[test]
fn what_would_make_errors_smaller_is_what_there_is_too_much_of() {
    let words = |rotated_by| {
        let mut monitor = rotated(|events| Box::new(ScaleEstimator::new(events, &[])), |_| 1);
        let mut again =
            builders::monitor(Header { rotated_by, ..monitor.header().clone() }, vec![], EstimatorKind::Scale);
        std::mem::swap(&mut monitor, &mut again);
        for second in 1..=5 {
            let time = CpuNs(second * SECOND);
            let reading = |running| Some(Reading { count: second, enabled: time, running });
            let readings = vec![reading(time), reading(CpuNs(time.0 / 2))];
            monitor.round(&Round { at: WallNs(time.0), readings, ..Round::default() }, 0);
        }
        told(&monitor, "W03").remove(0).1
    };
    assert!(words(None).contains("with fewer hardware events its error would be smaller"));
    let emulated = words(Some(RotatedBy::Emulated { counters: 2, every_ns: None }));
    assert!(
        emulated.contains("with fewer events or more counters (--counters) its error would be smaller"),
        "{emulated}"
    );
}

#[test]
fn a_number_leans_on_scaling_by_hand() {
    let number = |value, error| Some(Uncertain { value, error: Error::of(error) });
    assert_eq!(
        [number(100.0, 1.0), number(100.0, 1.1), None].map(|number| leans_on_scaling(0.5, number)),
        [false, true, true]
    );
    assert_eq!(
        [number(0.0, 0.0), number(0.0, 2.0), number(5.0, f64::NAN)].map(|number| leans_on_scaling(0.5, number)),
        [false, true, true]
    );
    assert!(!leans_on_scaling(0.75, None) && !leans_on_scaling(0.1, Some(Uncertain::exact(7.0))));
}

#[test]
fn an_event_that_is_known_well_is_not_said_to_have_been_counted_too_little() {
    // 100 in each of 200 rounds are known to 1.4 % (as a Poisson process is), 10,000 to 0.14 %.
    let of = |of_other| {
        told(&rotated_beside(|events| Box::new(ScaleEstimator::new(events, &[])), |_| 1, of_other), "W03").len()
    };
    assert_eq!((of(100), of(10_000)), (1, 0));
}

#[test]
fn means_and_rates_leave_a_delay_out() {
    // A machine whose two CPUs are counted from 0.35 s on, in intervals of 0.2 s.
    let task_clock = Event { unit: Unit::Nanoseconds, ..software_event("cpu-clock") };
    let mut header = builders::header([measured(task_clock)]);
    header.target = MeasuredTarget::Everyone { cpus: None };
    (header.delay_ns, header.interval_ns) = (WallNs(35 * SECOND / 100), WallNs(SECOND / 5));
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    let mut told = Vec::new();
    for hundredths in [20_u64, 40, 60, 80] {
        let counted = CpuNs(2 * hundredths.saturating_sub(35) * SECOND / 100);
        let reading = Reading { count: counted.0, enabled: counted, running: counted };
        monitor.round(
            &Round { at: WallNs(hundredths * SECOND / 100), readings: vec![Some(reading)], ..Round::default() },
            0,
        );
        let row = monitor.row(0);
        told.push(
            Measure::PerSecond.newest(&monitor, &row, 1).pop().and_then(|point| point.raw).map(|rate| rate.value / 1e9),
        );
        assert!(!text::csv_interval(&monitor, ",", Repetition::Once).contains("CPUs utilized,0"));
    }
    assert_eq!(told, [None, Some(2.0), Some(2.0), Some(2.0)]);
    let row = monitor.row(0);
    let mean = row.scaled.unwrap().value * Measure::PerSecond.factor(&monitor, &row).unwrap().value / 1e9;
    assert!((mean - 2.0).abs() < 1e-9 && Measure::PerSecond.variance(&monitor, &row).unwrap() < 1e-3, "{mean}");
}
