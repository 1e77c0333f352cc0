//! Tests what a monitor finds out about a measurement, and how often it says so.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::ScaleEstimator;
use perfprop::events::{Encoding, Event, EventKind, Modifiers, Unit};
use perfprop::monitor::Monitor;
use perfprop::run::{self, CpuTime, End, Header, MeasuredEvent, MeasuredMachine, MeasuredTarget};
use perfprop::sources::{Reading, Round, Scope, Status};
use perfprop::text::{self, Repeats};
use perfprop::units::{CpuNs, WallNs};

const SECOND: u64 = 1_000_000_000;

/// Intervals of a second with ten rounds each.
fn header() -> Header {
    let event = |(name, kind): (&str, EventKind)| MeasuredEvent {
        event: Event {
            name: name.into(),
            canonical: name.into(),
            kind,
            encoding: Encoding::default(),
            modifiers: Modifiers::default(),
            unit: Unit::Count,
        },
        status: Status::Counted,
        scope: Scope::All,
    };
    Header {
        version: run::VERSION,
        perfprop: "test".into(),
        started: 0.0,
        machine: MeasuredMachine::default(),
        target: MeasuredTarget::Command { argv: vec!["./prog".into()], pid: 1 },
        delay_ns: WallNs(0),
        events: [("faults", EventKind::Software), ("duration_time", EventKind::Tool)].map(event).to_vec(),
        anchors: vec![],
        truths: vec![],
        modelled: None,
        rotated_by: None,
        groups: vec![],
        metrics: vec![],
        relations: vec![],
        estimator: "scale".into(),
        period_ns: WallNs(SECOND / 10),
        interval_ns: WallNs(SECOND),
    }
}

/// A tenth of a second after the one before; one event counts all the CPU time.
fn round(tenth: u64) -> Round {
    let time = CpuNs(tenth * SECOND / 10);
    let reading = Some(Reading { count: 100 * tenth, enabled: time, running: time });
    Round { at: WallNs(time.0), readings: vec![reading; 2], ..Round::default() }
}

fn fresh() -> Monitor {
    let header = header();
    let events: Vec<_> = header.events.iter().map(|event| event.event.clone()).collect();
    Monitor::new(header, vec![], Box::new(ScaleEstimator::new(&events, &[])))
}

/// The time of each finding, in tenths of a second, and its words.
fn told(monitor: &Monitor, code: &str) -> Vec<(u64, String)> {
    let findings = monitor.findings().iter().filter(|noted| noted.finding.code() == code);
    findings.map(|noted| (noted.at.0 * 10 / SECOND, noted.finding.words(monitor).to_string())).collect()
}

#[test]
fn lost_rounds_are_told_once_an_interval() {
    let mut monitor = fresh();
    // A late round each time, none in the second interval, one in the third, and some with the end.
    for (tenth, lost) in (1..=9).zip(1..).chain([(10, 9), (15, 9), (20, 9), (25, 10), (30, 10), (31, 10)]) {
        monitor.round(&round(tenth), lost);
        assert_eq!(monitor.rounds().1, lost);
    }
    monitor.end(End { at_ns: WallNs(4 * SECOND), lost_rounds: 12, ..End::default() });
    let rest = "came too late or found no room; totals are not affected";
    let words = [(10, 9, "rounds"), (30, 1, "round"), (31, 2, "rounds")];
    assert_eq!(told(&monitor, "W01"), words.map(|(at, count, rounds)| (at, format!("{count} {rounds} {rest}"))));
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
    let text = text::summary(&Repeats(&monitors));
    let line = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("faults").contains("300") && line("faults").contains("±?"), "{text}");
    assert!(!line("duration_time").contains("±?"), "{text}");
    let json = text::json_totals(&Repeats(&monitors));
    assert_eq!(json.matches("\"status\":\"counted without a child\"").count(), 1, "{json}");
    let csv = text::csv_totals(&Repeats(&monitors), ",");
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
