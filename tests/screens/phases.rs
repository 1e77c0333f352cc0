//! Tests how the phases of a run are shown, and the keys that go from change to change.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::thread;

use crossbeam_channel::{Receiver, bounded, never};
use perfprop::estimate::EstimatorKind;
use perfprop::events::{Event, Unit};
use perfprop::monitor::{Measure, MeasureChoice, Monitor, ReadAhead, RecordingNotes, phase_changes};
use perfprop::recording::Speed;
use perfprop::run::{End, Header, MeasuredTarget};
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::{Reading, RecordedRound, Round};
use perfprop::tui::{
    self, Feed, GlyphSet, Mode, Picture, ReplayedEnding, Screen, ScreenOptions, Terminal, TerminalScript, Timeline,
};
use perfprop::units::{CpuNs, WallNs};

use crate::builders::{self, SECOND, event, measured, software_event};
use crate::goldens::assert_golden;

const LENGTH: u64 = 80;

fn header() -> Header {
    let clock = Event { unit: Unit::Nanoseconds, ..software_event("task-clock") };
    Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Command { argv: vec!["./build".into()], pid: 4121 },
        ..builders::header(
            [clock, event("instructions"), event("cache-misses"), software_event("faults")].map(measured),
        )
    }
}

fn fresh() -> Monitor {
    builders::monitor(header(), vec![], EstimatorKind::Scale)
}

/// A program that compiles for 30 s, sorts for 25, and then compresses on half a CPU: rates per ms of CPU time.
fn rounds() -> Vec<RecordedRound> {
    let mut readings = [Reading::default(); 4];
    let round = |tenth: u64| {
        let (used, rates) = match tenth {
            0..300 => (0.95, [1e6, 1.9e6, 4_100.0, 31.0]),
            300..550 => (0.95, [1e6, 1.1e6, 9_200.0, 2.0]),
            _ => (0.48, [1e6, 2.6e6, 1_300.0, 2.0]),
        };
        let time = (used * SECOND as f64 / 10.0) as u64;
        for (at, (reading, rate)) in readings.iter_mut().zip(rates).enumerate() {
            let wave = (tenth * (7 + at as u64) % 11) as f64 / 11.0 - 0.5;
            reading.enabled += CpuNs(time);
            reading.running += CpuNs(time);
            reading.count += (rate * time as f64 / 1e6 * if at == 0 { 1.0 } else { 1.0 + 0.06 * wave }) as u64;
        }
        let readings = readings.map(Some).to_vec();
        let round = Round { at: WallNs((tenth + 1) * SECOND / 10), readings, ..Round::default() };
        RecordedRound { round, lost: 0 }
    };
    (0..10 * LENGTH).map(round).collect()
}

fn seen() -> Monitor {
    let mut monitor = fresh();
    monitor.take_rounds(&rounds());
    monitor
}

fn picture(screen: Screen, event: usize, size: (u16, u16), options: &ScreenOptions) -> String {
    let options = ScreenOptions { screen, ..options.clone() };
    tui::picture(seen(), &Picture { size, event: Some(event), ..Picture::default() }, &options)
}

#[test]
fn phases_at_all_sizes() {
    for size @ (width, height) in [(80, 24), (120, 40), (200, 60)] {
        for (screen, name) in [(Screen::Detail, "detail"), (Screen::Log, "log"), (Screen::Events, "events")] {
            let golden = picture(screen, 2, size, &ScreenOptions::default());
            assert_golden!("screens", format!("phases-{name}-{width}x{height}").as_str(), &golden);
        }
    }
}

#[test]
fn small_and_plain_screens_show_what_there_is_room_for() {
    let plain = ScreenOptions { symbols: GlyphSet::Ascii, ..ScreenOptions::default() };
    assert_golden!("screens", "phases-ascii-80x24", &picture(Screen::Detail, 2, (80, 24), &plain));
    assert_golden!("screens", "phases-60x11", &picture(Screen::Detail, 2, (60, 11), &ScreenOptions::default()));
    // The clock's own measure is per second; in another one, only the times are marked.
    let per_second = ScreenOptions { measures: MeasureChoice::Every(Measure::PerSecond), ..ScreenOptions::default() };
    assert_golden!("screens", "phases-clock-80x24", &picture(Screen::Detail, 0, (80, 24), &per_second));
    for size in [(20, 3), (40, 6), (18, 2)] {
        let _ = picture(Screen::Detail, 2, size, &plain);
    }
}

/// A recording that plays nothing by itself.
struct Recorded {
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    rounds: Vec<RecordedRound>,
    ahead: ReadAhead,
}

impl Timeline for Recorded {
    fn play(&mut self, _after: WallNs, _speed: Speed) -> std::io::Result<()> {
        Ok(())
    }

    fn stop(&mut self) {}

    fn rounds(&self) -> &[RecordedRound] {
        &self.rounds
    }

    fn monitor(&self) -> Monitor {
        fresh()
    }

    fn read_ahead(&mut self, rounds: usize) -> Option<&RecordingNotes> {
        self.ahead.read(&self.rounds, rounds, || End { at_ns: WallNs(LENGTH * SECOND), ..End::default() })
    }
}

impl Feed for Recorded {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn end(&mut self, last: &Round, _lost: u64) -> End {
        End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
    }

    fn timeline(&mut self) -> Option<&mut dyn Timeline> {
        Some(self)
    }
}

#[test]
fn keys_go_from_change_to_change() {
    let changes = phase_changes(header(), &rounds(), End { at_ns: WallNs(LENGTH * SECOND), ..End::default() });
    let told_at = |event: usize, at: u64| {
        let change = changes.iter().find(|change| (change.event, change.at) == (event, WallNs(at * SECOND))).unwrap();
        let second = change.told_at.as_secs().round() as u64;
        format!("PAUSED {}:{:02}/1:20", second / 60, second % 60)
    };
    let (faults, later, clock) = (told_at(3, 30), told_at(3, 55), told_at(0, 55));
    let mut feed = Recorded { samples: never(), output: never(), rounds: rounds(), ahead: ReadAhead::new(fresh()) };
    let (terminal, script) = Terminal::scripted(80, 24).unwrap();
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        let line = |script: &TerminalScript, words: &str| {
            let screen = script.screen();
            assert!(screen.contains(words), "{words}: {screen}");
        };
        // Detail stays with its event: faults change twice, the second time with the CPU time.
        script.keys("jj2nnn");
        line(&script, "no level changes after this time");
        line(&script, &later);
        script.keys("NN");
        line(&script, "no level changes before this time");
        line(&script, &faults);
        // Events goes to those of any, and selects it.
        script.keys("1n");
        line(&script, "task-clock changed at 00:55: −");
        line(&script, &clock);
        script.keys("N");
        line(&script, "faults changed at 00:30: ");
        line(&script, &faults);
        signals.send(15.into()).unwrap();
    });
    let mode = Mode::Replay { length: WallNs(LENGTH * SECOND), speed: 1.0, ending: ReplayedEnding::Finished };
    let options = ScreenOptions { mode, ..ScreenOptions::default() };
    tui::run_on(terminal, fresh(), &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
}
