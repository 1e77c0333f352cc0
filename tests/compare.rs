//! Tests two recordings side by side: golden text and screens.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, never};
use perfprop::estimate::Linear;
use perfprop::events::{Encoding, Event, Kind, Modifiers, Unit};
use perfprop::monitor::{Compare, Difference, Measure, Monitor, Side, compare};
use perfprop::recording::{self, End, Header, Machine, RecordedEvent, Target};
use perfprop::sampling::Sample;
use perfprop::session::OutputLine;
use perfprop::sources::{Reading, Round, Scope, Status};
use perfprop::text;
use perfprop::tui::{
    self, Beside, Depth, Feed, Format, Mode, Options, Picture, Scene, Screen, Script, Symbols, Terminal, Theme,
};
use perfprop::units::{CpuNs, WallNs};

const SECOND: u64 = 1_000_000_000;

/// Name, rate per ms, tenths of the time that it runs; 0 is never.
type Spec = (&'static str, f64, u64);

const A: [Spec; 6] = [
    ("cycles", 2.01e6, 10),
    ("L1_MISSES", 1_930.0, 6),
    ("L2_MISSES", 412.0, 5),
    ("L3_MISSES", 0.0, 0),
    ("page-faults", 3.0, 10),
    ("branch-misses", 77.0, 10),
];
const B: [Spec; 6] = [
    ("cycles", 2.41e6, 10),
    ("L2_MISSES", 300.0, 5),
    ("L1_MISSES", 1_930.3, 6),
    ("L3_MISSES", 12.0, 10),
    ("page-faults", 3.0, 10),
    ("\x1b[31mcontext-switches", 0.5, 10),
];

fn header(specs: &[Spec]) -> Header {
    let events = specs.iter().map(|(name, ..)| RecordedEvent {
        scope: Scope::All,
        event: Event {
            name: (*name).into(),
            canonical: (*name).into(),
            kind: Kind::Hardware,
            encoding: Encoding::default(),
            modifiers: Modifiers::default(),
            unit: Unit::Count,
        },
        status: Status::Counted,
    });
    Header {
        version: recording::VERSION,
        perfprop: "0.1.0".into(),
        started: 0.0,
        machine: Machine::default(),
        target: Target::Command { argv: vec!["./prog".into()], pid: 4121 },
        delay_ns: WallNs(0),
        events: events.collect(),
        anchors: Vec::new(),
        truths: vec![],
        modelled: None,
        turns: None,
        groups: vec![],
        relations: vec![],
        metrics: vec![],
        estimator: "linear".into(),
        period_ns: WallNs(SECOND / 10),
        interval_ns: WallNs(SECOND),
    }
}

fn fresh(specs: &[Spec]) -> Monitor {
    let header = header(specs);
    let events: Vec<_> = header.events.iter().map(|recorded| recorded.event.clone()).collect();
    Monitor::new(header, vec![], Box::new(Linear::new(&events, &[])))
}

/// Rounds of so many tenths of a second; a multiplexed event has a slow wave, the others none.
fn rounds(specs: &[Spec], tenths: u64) -> Vec<(Round, u64)> {
    let mut readings = vec![Reading::default(); specs.len()];
    let round = |tenth: u64| {
        for (reading, (_, rate, tenths_run)) in readings.iter_mut().zip(specs) {
            let running = tenths_run * SECOND / 100;
            let wave = if *tenths_run < 10 { 1.0 + 0.2 * (tenth as f64 * 0.21).sin() } else { 1.0 };
            reading.enabled += CpuNs(SECOND / 10);
            reading.running += CpuNs(running);
            reading.count += (rate * running as f64 / 1e6 * wave) as u64;
        }
        (
            Round {
                at: WallNs(tenth * SECOND / 10),
                readings: readings.iter().copied().map(Some).collect(),
                ..Round::default()
            },
            0,
        )
    };
    (1..=tenths).map(round).collect()
}

fn end(rounds: &[(Round, u64)]) -> End {
    let (last, _) = rounds.last().unwrap();
    End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
}

fn whole(specs: &[Spec], tenths: u64) -> Monitor {
    let (mut monitor, rounds) = (fresh(specs), rounds(specs, tenths));
    for (round, lost) in &rounds {
        monitor.round(round, *lost);
    }
    monitor.end(end(&rounds));
    monitor
}

fn beside() -> Beside {
    let rounds = rounds(&B, 450);
    let end = end(&rounds);
    Beside::new(["before.jsonl".into(), "after.jsonl".into()], rounds, end, || fresh(&B))
}

fn golden(name: &str, screen: &str) {
    insta::with_settings!({ snapshot_path => "screens", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, screen);
    });
}

fn options() -> Options {
    let mode = Mode::Replay { length: WallNs(60 * SECOND), speed: 0.0 };
    Options { mode, screen: Screen::Compare, ..Options::default() }
}

#[test]
fn events_are_matched_by_name_and_marked_where_intervals_part() {
    use Difference::{Higher, Lower, NoNumber, NotApart, OnlyIn};
    let found = compare(&whole(&A, 600), &whole(&B, 450), Measure::default(), Compare::Estimate);
    let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.difference)).collect();
    let wanted = [
        ("cycles", Higher),
        ("L1_MISSES", NotApart),
        ("L2_MISSES", Lower),
        // It never ran in the first, which is not 0.
        ("L3_MISSES", NoNumber),
        ("page-faults", NotApart),
        ("branch-misses", OnlyIn(Side::A)),
        ("\x1b[31mcontext-switches", OnlyIn(Side::B)),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_recording_is_as_it_is_itself() {
    let found = compare(&whole(&A, 600), &whole(&A, 600), Measure::Total, Compare::Raw);
    let told = |difference| matches!(difference, Difference::NotApart | Difference::NoNumber);
    assert!(found.iter().all(|one| told(one.difference) && one.change().is_none_or(|part| part == 0.0)));
}

#[test]
fn as_text() {
    let (a, b) = (whole(&A, 600), whole(&B, 450));
    golden("compare-text", &text::compare(("before.jsonl", &a), ("after.jsonl", &b), Measure::default()));
}

#[test]
fn as_screens_of_all_sizes() {
    let mut scene = Scene::new(whole(&A, 600), Some(beside()), &options());
    for size in [(80, 24), (120, 40), (200, 60), (60, 11), (40, 6), (20, 3)] {
        let picture = scene.picture(Screen::Compare, &Picture { size, ..Picture::default() });
        golden(&format!("compare-{}x{}", size.0, size.1), &picture);
    }
}

#[test]
fn as_screens_in_ascii() {
    let plain =
        Options { symbols: Symbols::Ascii, theme: Theme::built_in("mono", options().depth).unwrap(), ..options() };
    let mut scene = Scene::new(whole(&A, 600), Some(beside()), &plain);
    for size in [(80, 24), (120, 40), (200, 60)] {
        let picture = scene.picture(Screen::Compare, &Picture { size, ..Picture::default() });
        assert!(picture.is_ascii(), "{picture}");
        golden(&format!("compare-ascii-{}x{}", size.0, size.1), &picture);
    }
}

#[test]
fn as_screens_of_all_depths_of_colour() {
    for (depth, name) in Depth::ALL.into_iter().zip(["true-colour", "256", "16", "no-colour"]) {
        let options = Options { depth, theme: Theme::built_in("dark", depth).unwrap(), ..options() };
        let mut scene = Scene::new(whole(&A, 600), Some(beside()), &options);
        let wanted = Picture { size: (80, 24), format: Format::Ansi, ..Picture::default() };
        let picture = scene.picture(Screen::Compare, &wanted);
        golden(&format!("depth-{name}-compare"), &picture.replace('\x1b', "^["));
    }
}

/// The first recording, fed by the test, with the second beside it.
struct Fed {
    samples: Receiver<Sample>,
    output: Receiver<OutputLine>,
    beside: Option<Beside>,
}

impl Feed for Fed {
    fn samples(&self) -> &Receiver<Sample> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn beside(&mut self) -> Option<Beside> {
        self.beside.take()
    }

    fn end(&mut self, last: &Round, _lost: u64) -> End {
        End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
    }
}

fn with_loop(beside: Option<Beside>, test: impl FnOnce(&Script, &Sender<Sample>) + Send + 'static) {
    let (terminal, script) = Terminal::scripted(80, 24).unwrap();
    let (samples, samples_out) = bounded(0);
    let (signals, signals_out) = bounded(0);
    let mut feed = Fed { samples: samples_out, output: never(), beside };
    let user = thread::spawn(move || {
        test(&script, &samples);
        signals.send(15).unwrap();
    });
    tui::run_on(terminal, fresh(&A), &mut feed, &signals_out, &options()).unwrap();
    user.join().unwrap();
}

#[test]
fn sorted_filtered_opened_and_in_step() {
    with_loop(Some(beside()), |script, samples| {
        let all = rounds(&A, 600);
        let send = |rounds: &[(Round, u64)]| {
            rounds.iter().for_each(|(round, lost)| {
                samples.send(Sample::Round { round: round.clone(), lost: *lost }).unwrap();
            });
        };
        send(&all[..300]);
        // Both stand at the same time until the first ends; then both are whole.
        golden("compare-on-the-way", &script.screen());
        send(&all[300..]);
        samples.send(Sample::End).unwrap();
        script.keys("sssss");
        golden("compare-sorted", &script.screen());
        script.keys("/miss<Enter>");
        assert!(script.screen().contains("4 of 7"), "{}", script.screen());
        script.keys("<Enter>");
        assert!(script.screen().contains("[2 Detail]"), "{}", script.screen());
        script.keys("<Esc>");
        assert!(script.screen().contains("[0 Compare]"));
        script.keys("<Esc>u");
        assert!(script.screen().contains("7 of 7") && script.screen().contains("A/s"));
        script.keys("<Tab>");
        assert!(script.screen().contains("[1 Events]"));
        script.keys("0Gy");
        assert!(script.screen().contains("copied: "), "{}", script.screen());
    });
}

#[test]
fn one_recording_has_nothing_beside_it() {
    with_loop(None, |script, _| {
        script.keys("10");
        assert!(script.screen().contains("only replay of two recordings compares"));
        assert!(!script.screen().contains("0 Compare"));
    });
}
