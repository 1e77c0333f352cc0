//! Tests when changes of level are told of a run, and that noise isn't.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::EstimatorKind;
use perfprop::events::{Event, Unit};
use perfprop::monitor::{Monitor, PhaseChange, phase_changes};
use perfprop::run::{End, Header};
use perfprop::sources::{Reading, RecordedRound, Round};
use perfprop::text::{self, Repeats, Repetition};
use perfprop::units::{CpuNs, WallNs};

use crate::builders::{self, SECOND, event, measured, software_event};

/// Rates of two events and the part of a CPU that is used, in a tenth of a second.
type Pace = fn(u64) -> (f64, f64, f64);

/// A hundredth up and down, which looks random.
fn noise(tenth: u64, seed: u64) -> f64 {
    let mixed = (tenth + 7919 * seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    1.0 + 0.02 * (((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64 / (1u64 << 24) as f64 - 0.5)
}

fn header(interval: u64) -> Header {
    let clock = Event { unit: Unit::Nanoseconds, ..software_event("task-clock") };
    let events = [event("loads"), event("misses"), clock];
    Header { interval_ns: WallNs(interval), ..builders::header(events.map(measured)) }
}

/// Rounds of so many tenths of a second.
fn rounds(tenths: u64, pace: Pace) -> Vec<RecordedRound> {
    let (mut counts, mut cpu) = ([0.0; 3], 0.0);
    let round = |tenth: u64| {
        let (loads, misses, used) = pace(tenth);
        let time = used * noise(tenth, 3) * SECOND as f64 / 10.0;
        cpu += time;
        let parts = [loads * noise(tenth, 1) * time / 1e9, misses * noise(tenth, 2) * time / 1e9, time];
        counts.iter_mut().zip(parts).for_each(|(count, part)| *count += part);
        let reading =
            |count: f64| Some(Reading { count: count as u64, enabled: CpuNs(cpu as u64), running: CpuNs(cpu as u64) });
        let readings = counts.map(reading).to_vec();
        RecordedRound { round: Round { at: WallNs((tenth + 1) * SECOND / 10), readings, ..Round::default() }, lost: 0 }
    };
    (0..tenths).map(round).collect()
}

fn seen(header: Header, rounds: &[RecordedRound]) -> Monitor {
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    monitor.take_rounds(rounds);
    monitor
}

/// The seconds at which each finding was made, and its words.
fn told(monitor: &Monitor) -> Vec<(f64, String)> {
    let findings = monitor.findings().iter().filter(|noted| matches!(noted.finding.code(), "W18" | "W19"));
    findings.map(|noted| (noted.at.as_secs(), noted.finding.words(monitor).to_string())).collect()
}

fn slower(tenth: u64) -> (f64, f64, f64) {
    (if tenth < 410 { 1.2e6 } else { 1.056e6 }, 1e3, 0.5)
}

#[test]
fn a_change_is_told_once() {
    let monitor = seen(header(SECOND / 10), &rounds(1200, slower));
    let words = told(&monitor);
    let [(at, words)] = &words[..] else { panic!("{words:?}") };
    assert!((46.0..=48.0).contains(at), "{at}");
    assert_eq!(words, "loads changed at 00:41: −12.0%, 1.20M/cpu-s → 1.06M/cpu-s");
    let [change] = monitor.phase_changes() else { panic!("{:?}", monitor.phase_changes()) };
    assert_eq!((change.event, change.at, change.told_at.as_secs()), (0, WallNs(41 * SECOND), *at));
    assert!(change.interval.0 < -144e3 && change.interval.1 > -144e3 && change.chance <= 1e-6, "{change:?}");
}

#[test]
fn times_are_told_per_second_and_events_of_one_moment_together() {
    let pace = |tenth: u64| if tenth < 300 { (1e6, 1e3, 0.9) } else { (1.5e6, 2e3, 0.6) };
    let words = told(&seen(header(SECOND), &rounds(900, pace)));
    let [(_, words)] = &words[..] else { panic!("{words:?}") };
    assert!(words.starts_with("3 events changed at 00:30: loads +"), "{words}");
    assert!(
        words.contains("loads +50.") && words.contains("misses +100%") && words.contains("task-clock −33."),
        "{words}"
    );
}

#[test]
fn a_replay_has_the_changes_that_were_told_live() {
    let pace = |tenth: u64| {
        (if (tenth / 200).is_multiple_of(2) { 1e6 } else { 2e6 }, if tenth < 500 { 1e3 } else { 3e3 }, 0.8)
    };
    let all = rounds(1200, pace);
    let whole = phase_changes(header(SECOND / 10), &all, End { at_ns: WallNs(120 * SECOND), ..End::default() });
    assert!(whole.len() >= 5, "{whole:?}");
    for tenths in [100, 333, 601, 1200] {
        let live = seen(header(SECOND / 10), &all[..tenths]);
        let known: Vec<PhaseChange> =
            whole.iter().copied().filter(|change| change.told_at <= all[tenths - 1].round.at).collect();
        assert_eq!(live.phase_changes(), known, "{tenths}");
    }
}

#[test]
fn starts_bursts_and_pauses_are_no_phases() {
    let start = |tenth: u64| (if tenth < 15 { 9e6 } else { 1e6 }, 1e3, 0.5);
    assert_eq!(told(&seen(header(SECOND / 10), &rounds(1200, start))), []);
    let burst = |tenth: u64| (if (400..420).contains(&tenth) { 3e6 } else { 1e6 }, 1e3, 0.5);
    assert_eq!(told(&seen(header(SECOND / 10), &rounds(1200, burst))), []);
    // Without CPU time there are no rates; only the time that is used changes.
    let pause = |tenth: u64| (1e6, 1e3, if (400..600).contains(&tenth) { 0.0 } else { 0.5 });
    let monitor = seen(header(SECOND / 10), &rounds(1000, pause));
    assert!(monitor.phase_changes().iter().all(|change| change.event == 2));
    let [end, begin] = monitor.phase_changes() else { panic!("{:?}", monitor.phase_changes()) };
    assert_eq!((end.at.as_secs(), begin.at.as_secs(), begin.relative()), (40.0, 60.0, None));
    assert!(end.relative().unwrap() < -0.99, "{end:?}");
}

#[test]
fn frequent_changes_are_told_five_times_and_listed_all() {
    let pace = |tenth: u64| (if tenth < 2400 && tenth / 200 % 2 == 1 || tenth >= 5800 { 2e6 } else { 1e6 }, 1e3, 0.5);
    let monitor = seen(header(SECOND / 10), &rounds(6000, pace));
    let words = told(&monitor);
    let codes: Vec<_> = words.iter().map(|(_, words)| words.contains("changes often")).collect();
    assert_eq!(codes, [false, false, false, false, false, true, false], "{words:?}");
    assert!(words[6].1.starts_with("loads changed at 09:40: +"), "{words:?}");
    assert!(monitor.phase_changes().len() >= 11, "{}", monitor.phase_changes().len());
}

#[test]
fn fast_turns_are_no_phases() {
    let every_second = |tenth: u64| (if (tenth / 10).is_multiple_of(2) { 1e6 } else { 1.5e6 }, 1e3, 0.5);
    let monitor = seen(header(SECOND / 10), &rounds(2400, every_second));
    assert_eq!(monitor.phase_changes(), []);
}

#[test]
fn steady_runs_have_no_phases() {
    for interval in [SECOND / 10, SECOND / 2, SECOND] {
        let monitor = seen(header(interval), &rounds(3000, |_| (1e6, 30.0, 0.7)));
        assert_eq!(monitor.phase_changes(), [], "{interval}");
    }
}

#[test]
fn texts_list_changes_and_json_has_them() {
    let all = rounds(900, slower);
    let monitors = [seen(header(SECOND / 10), &all)];
    let text = text::phases(&monitors[0]);
    assert!(
        text.starts_with("changes of level that lasted:\n  00:41  loads  −12.0%, 1.20M/cpu-s → 1.06M/cpu-s, chance "),
        "{text}"
    );
    let json = text::json_totals(&Repeats(&monitors), Repetition::Once);
    let lines: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let change = &lines[0]["changes"][0];
    assert_eq!(change["at"], 41.0);
    assert!((change["change-pcnt"].as_f64().unwrap() + 12.0).abs() < 0.5, "{change}");
    assert!(lines[1].get("changes").is_none());
    assert_eq!(text::phases(&seen(header(SECOND), &all[..100])), "");
}
