//! Runs the scenario files of `tests/scenarios`: rounds as a source would give them, and the numbers that a
//! monitor must make of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use perfprop::estimate::{EstimatorKind, RelationState};
use perfprop::monitor::{Monitor, Row};
use perfprop::rates::Uncertain;
use perfprop::relations;
use perfprop::run::{End, Header};
use perfprop::sampling::{LastRound, Sampler, SamplerMessage};
use perfprop::sources::scripted::ScriptedSource;
use perfprop::sources::{Reading, Round};
use perfprop::units::{CpuNs, WallNs};
use serde::Deserialize;

use crate::builders::{self, event, measured};

/// A scenario: events, rounds, and what is expected of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    estimator: String,
    interval_ms: u64,
    #[serde(default)]
    relations: String,
    events: Vec<String>,
    /// Of each round: its time in ms, then count, enabled ms and running ms of each event,
    /// cumulative; an empty list is a reading that failed.
    rounds: Vec<(u64, Vec<Vec<u64>>)>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    expect: BTreeMap<String, Expected>,
    #[serde(default)]
    expect_relations: BTreeMap<String, ExpectedRelation>,
    #[serde(default)]
    findings: Vec<String>,
}

/// The corrected means of events after so many rounds, per millisecond of CPU time.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    rounds: usize,
    means: BTreeMap<String, f64>,
}

/// Of an event; rates per millisecond of CPU time. What isn't given isn't looked at; "none" is
/// written as NaN.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    raw_mean: Option<f64>,
    raw_variance: Option<f64>,
    mean: Option<f64>,
    variance: Option<f64>,
    total: Option<f64>,
    error: Option<f64>,
    /// The corrected total with its interval, and the count of the last interval with its own.
    corrected: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    last: Option<f64>,
    last_corrected: Option<f64>,
    last_low: Option<f64>,
    last_high: Option<f64>,
    /// The strongest of what moved the total, by how many counts, and which part of the scaled one.
    by: Option<String>,
    moved: Option<f64>,
    change: Option<f64>,
    samples: Option<u64>,
    run_ratio: Option<f64>,
    absence: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedRelation {
    uses: Option<u64>,
    residual: Option<f64>,
    z: Option<f64>,
    trust: Option<f64>,
    state: Option<String>,
}

#[test]
fn every_scenario_gives_its_numbers() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let scenario: Scenario = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        check(&scenario, &file.file_stem().unwrap().to_string_lossy());
    }
}

fn check(scenario: &Scenario, name: &str) {
    let place_of = |event: &String| scenario.events.iter().position(|name| name == event).expect("an event");
    for Step { rounds, means } in &scenario.steps {
        let monitor = run(scenario, *rounds);
        for (event, expected) in means {
            let row = monitor.row(place_of(event));
            let mean = row.estimate.total.map(|total| total.value / row.cpu_time.as_ms());
            near(Some(*expected), mean, &format!("{name}: {event} after {rounds} rounds"));
        }
    }
    let monitor = run(scenario, scenario.rounds.len());
    for (event, expected) in &scenario.expect {
        let place = place_of(event);
        check_event(&monitor, &monitor.row(place), expected, &format!("{name}: {event}"));
    }
    for (id, expected) in &scenario.expect_relations {
        let place = monitor.relations().iter().position(|relation| relation.id == *id).expect("a relation");
        let standing = &monitor.standings()[place];
        let what = format!("{name}: {id}");
        expected.uses.inspect(|uses| assert_eq!(standing.uses, *uses, "{what}"));
        near(expected.residual, standing.residual, &format!("{what} residual"));
        near(expected.z, standing.z, &format!("{what} z"));
        near(expected.trust, standing.trust, &format!("{what} trust"));
        let state = match &standing.state {
            RelationState::Waiting => "waiting",
            RelationState::Agrees => "agrees",
            RelationState::Violated => "violated",
            RelationState::Inactive { .. } => "inactive",
            RelationState::SameEvent { .. } => "same event",
        };
        expected.state.as_ref().inspect(|expected| assert_eq!(state, expected.as_str(), "{what}"));
    }
    let findings: Vec<_> = monitor.findings().iter().map(|noted| noted.finding.code()).collect();
    assert_eq!(findings, scenario.findings, "{name}");
}

fn check_event(monitor: &Monitor, row: &Row<'_>, expected: &Expected, what: &str) {
    let Row { raw, estimate, .. } = row;
    let near = |expected, found, part: &str| near(expected, found, &format!("{what} {part}"));
    near(expected.raw_mean, raw.rate.mean(), "raw mean");
    near(expected.raw_variance, raw.rate.variance(), "raw variance");
    near(expected.mean, estimate.total.map(|total| total.value / row.cpu_time.as_ms()), "mean");
    near(expected.variance, estimate.variance, "variance");
    near(expected.total, raw.run.estimate(), "total");
    near(expected.error, row.scaled.and_then(|total| total.error.half_width()), "error");
    near(expected.run_ratio, raw.run.run_ratio(), "run ratio");
    near(expected.corrected, estimate.total.map(|total| total.value), "corrected");
    near(expected.low, estimate.total.and_then(Uncertain::bounds).map(|(low, _)| low), "low");
    near(expected.high, estimate.total.and_then(Uncertain::bounds).map(|(_, high)| high), "high");
    let last = row.history.back().expect("an interval");
    near(expected.last, last.raw.map(|count| count.value), "last");
    near(expected.last_corrected, last.corrected.map(|count| count.value), "last, corrected");
    near(expected.last_low, last.corrected.and_then(Uncertain::bounds).map(|(low, _)| low), "last, low");
    near(expected.last_high, last.corrected.and_then(Uncertain::bounds).map(|(_, high)| high), "last, high");
    let strongest = estimate.parts.first();
    near(expected.moved, strongest.map(|part| part.counts), "moved");
    near(expected.change, row.correction().and_then(|correction| correction.relative()), "change");
    let by = strongest.map_or("", |part| monitor.cause(part.by));
    expected.by.as_ref().inspect(|expected| assert_eq!(by, expected.as_str(), "{what} by"));
    expected.samples.inspect(|samples| assert_eq!(raw.rate.samples(), *samples, "{what} samples"));
    expected.absence.as_ref().inspect(|absence| {
        assert_eq!(row.absence.map(|absence| absence.words()), Some(absence.as_str()), "{what}");
    });
}

/// Nothing expected is always right; NaN expects that there is nothing.
fn near(expected: Option<f64>, found: Option<f64>, what: &str) {
    let Some(expected) = expected else { return };
    let close = match found {
        None => expected.is_nan(),
        Some(found) => (found - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
    };
    assert!(close, "{what}: expected {expected}, found {found:?}");
}

/// Runs the first rounds through the sampler's thread and channel, as live rounds go.
fn run(scenario: &Scenario, rounds: usize) -> Monitor {
    let relations = relations::parse("scenario.json", scenario.relations.as_bytes());
    let relations = if scenario.relations.is_empty() { Vec::new() } else { relations.strict().unwrap() };
    let kind = EstimatorKind::named(&scenario.estimator).expect("an estimator");
    let mut monitor = builders::monitor(header(scenario), relations, kind);
    let rounds = scenario.rounds.iter().take(rounds).map(round);
    let sampler = Sampler::start(ScriptedSource::new(rounds), std::time::Duration::ZERO, LastRound::default()).unwrap();
    let mut last = Round::default();
    while let SamplerMessage::Round { round, lost } = sampler.samples().recv().unwrap() {
        monitor.round(&round, lost);
        last = round;
    }
    monitor.end(End { at_ns: last.at, totals: last.readings, ..End::default() });
    monitor
}

fn round((at_ms, readings): &(u64, Vec<Vec<u64>>)) -> Round {
    let ms = |ms: u64| CpuNs(ms * 1_000_000);
    let reading = |numbers: &Vec<u64>| match numbers[..] {
        [] => None,
        [count, enabled, running] => Some(Reading { count, enabled: ms(enabled), running: ms(running) }),
        _ => panic!("a reading has three numbers: {numbers:?}"),
    };
    Round { at: WallNs(at_ms * 1_000_000), readings: readings.iter().map(reading).collect(), ..Round::default() }
}

fn header(scenario: &Scenario) -> Header {
    Header {
        period_ns: WallNs(0),
        interval_ns: WallNs(scenario.interval_ms * 1_000_000),
        estimator: scenario.estimator.clone(),
        ..builders::header(scenario.events.iter().map(|name| measured(event(name))))
    }
}
