//! Tests what estimators learn from events that perfprop added, and that relations may name them.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::{EstimatorKind, RelationState};
use perfprop::events::Event;
use perfprop::monitor::Monitor;
use perfprop::random::SplitMix64;
use perfprop::recording::{self, Recorder};
use perfprop::relations;
use perfprop::run::{AddedEvent, Anchor, Header};
use perfprop::sources::{Reading, Round};
use perfprop::units::{CpuNs, WallNs};

use crate::builders::{self, measured, raw_event};

/// The length of a round.
const ROUND: u64 = 4_000_000;
/// How many rounds make an interval, and a run.
const INTERVAL: u64 = 25;
const ROUNDS: u64 = 1000;

/// Two events in turns, which both happen for each instruction as often, and instructions that nobody asked for.
fn header() -> Header {
    let named = |name: &str, code: usize| Event { canonical: name.into(), ..raw_event(name, code) };
    let header = builders::header([measured(named("branches", 1)), measured(named("loads", 2))]);
    Header {
        anchors: vec![Anchor::Added(AddedEvent { added: Box::new(measured(named("instructions", 3))) })],
        period_ns: WallNs(ROUND),
        interval_ns: WallNs(INTERVAL * ROUND),
        ..header
    }
}

/// How much the program does in each round: it changes every 10 rounds or so.
fn work() -> Vec<u64> {
    let mut random = SplitMix64::new(7);
    let mut level = 1000;
    let mut next = || random.draw() % 1000;
    (0..ROUNDS)
        .map(|_| {
            if next() < 100 {
                level = 300 + 3 * next();
            }
            level
        })
        .collect()
}

/// The rounds of a run: each event in every other one, instructions in all, if they are read.
fn rounds(reads_added: bool) -> Vec<Round> {
    let mut counts = [0; 3];
    let round = |(place, work): (u64, u64)| {
        let turn = (place % 2) as usize;
        counts[turn] += work / 5;
        counts[2] += work;
        let at = (place + 1) * ROUND;
        let reading = |count, rounds: u64| Reading { count, enabled: CpuNs(at), running: CpuNs(rounds * ROUND) };
        let of_turns = [place / 2 + 1, place.div_ceil(2)];
        let readings = vec![
            Some(reading(counts[0], of_turns[0])),
            Some(reading(counts[1], of_turns[1])),
            reads_added.then(|| reading(counts[2], place + 1)),
        ];
        Round { at: WallNs(at), readings, ..Round::default() }
    };
    (0..ROUNDS).zip(work()).map(round).collect()
}

fn monitor(header: Header, rounds: &[Round]) -> Monitor {
    monitor_related(header, rounds, EstimatorKind::Gp, "[]")
}

fn monitor_related(header: Header, rounds: &[Round], kind: EstimatorKind, relations: &str) -> Monitor {
    let relations = relations::parse("r.json", relations.as_bytes()).strict().unwrap();
    let mut monitor = builders::monitor(header, relations, kind);
    for round in rounds {
        monitor.round(round, 0);
    }
    monitor
}

/// The mean error of an event's intervals, as a part of what happened.
fn error(monitor: &Monitor) -> f64 {
    let work = work();
    let truths = work.chunks(INTERVAL as usize).map(|rounds| rounds.iter().map(|work| work / 5).sum::<u64>() as f64);
    let row = monitor.row(0);
    let estimates = row.history.iter().map(|point| point.corrected.unwrap().value);
    let pairs: Vec<_> = estimates.zip(truths).collect();
    assert_eq!(pairs.len() as u64, ROUNDS / INTERVAL);
    let off: f64 = pairs.iter().map(|(estimate, truth)| (estimate - truth).abs()).sum();
    off / pairs.iter().map(|(_, truth)| truth).sum::<f64>()
}

#[test]
fn events_in_turns_are_corrected_by_one_that_was_added() {
    let (with, without) = (monitor(header(), &rounds(true)), monitor(header(), &rounds(false)));
    let (with, without) = (error(&with), error(&without));
    assert!(with < 0.5 * without, "{with} with instructions, {without} without");
}

#[test]
fn an_added_event_that_was_never_read_changes_nothing() {
    let without = Header { anchors: Vec::new(), ..header() };
    let rounds = rounds(false);
    let (never_read, without) = (monitor(header(), &rounds), monitor(without, &rounds));
    let near = (error(&never_read) - error(&without)).abs() < 0.02;
    assert!(near, "{} {}", error(&never_read), error(&without));
}

#[test]
fn a_recording_keeps_it_and_gives_the_same_numbers() {
    let (header, rounds) = (header(), rounds(true));
    let mut bytes = Vec::new();
    let mut recorder = Recorder::new(&mut bytes, &header).unwrap();
    rounds.iter().for_each(|round| recorder.round(round, 0).unwrap());
    drop(recorder);
    let recording = recording::read(&bytes[..]).unwrap();
    assert_eq!(recording.header, header);
    let again: Vec<_> = recording.rounds.iter().map(|recorded| recorded.round.clone()).collect();
    let (live, replayed) = (monitor(header, &rounds), monitor(recording.header, &again));
    assert_eq!(error(&live), error(&replayed));
}

#[test]
fn relations_are_judged_by_added_events_and_correct_others() {
    let state = |kind, relation: &str, reads_added| {
        let monitor = monitor_related(header(), &rounds(reads_added), kind, relation);
        assert_eq!(monitor.intervals(), ROUNDS / INTERVAL);
        monitor.standings()[0].state.clone()
    };
    for kind in EstimatorKind::ALL {
        let holds = state(kind, r#"[{ "relation": "instructions = 2.5 * branches + 2.5 * loads" }]"#, true);
        assert!(matches!(holds, RelationState::Agrees), "{kind:?} {holds:?}");
        let wrong = state(kind, r#"[{ "relation": "instructions = branches + loads" }]"#, true);
        assert_eq!(wrong, RelationState::Violated, "{kind:?}");
        // Without a reading it follows from the others, and nothing says whether that is right.
        for relation in [
            r#"[{ "relation": "instructions = branches + loads" }]"#,
            r#"[{ "eventFrom": "branches", "eventTo": "instructions", "expectedMean": "5 * {event_from.mean}" }]"#,
            r#"[{ "eventFrom": "instructions", "eventTo": "branches", "expectedMean": "0.2 * {event_from.mean}" }]"#,
        ] {
            state(kind, relation, true);
            state(kind, relation, false);
        }
    }
}
