//! A program that is measured by script, and the loop that shows it on a terminal in memory.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{self, Write};
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use perfprop::estimate::EstimatorKind;
use perfprop::events::{Event, EventKind, Unit};
use perfprop::monitor::Monitor;
use perfprop::profile::{Amount, Tree};
use perfprop::recording::Recorder;
use perfprop::relations::Relation;
use perfprop::run::{self, End, Header, MeasuredEvent, MeasuredTarget};
use perfprop::sampling::SamplerMessage;
use perfprop::session::{CaughtSignal, LineEnd, OutputLine, Stream};
use perfprop::sources::command::Exit;
use perfprop::sources::{Reading, Round, Status};
use perfprop::stacks::{self, Losses};
use perfprop::tui::{self, Feed, Mode, Outcome, Picture, Screen, ScreenOptions, Terminal, TerminalScript};
use perfprop::units::{CpuNs, WallNs};

use crate::builders::{self, SECOND, event, measured, measured_group};
use crate::goldens::assert_golden;
use crate::programs::{SharedTree, add_stack, regions};

pub(crate) const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// What the program of these tests does: name, unit, status, rate per ms, tenths of the time run.
pub(crate) const EVENTS: [(&str, Unit, Status, f64, u64); 8] = [
    ("task-clock", Unit::Nanoseconds, Status::Counted, 1e6, 10),
    ("cycles", Unit::Count, Status::Counted, 2.01e6, 10),
    ("instructions", Unit::Count, Status::Counted, 1.1e6, 10),
    ("L1_MISSES", Unit::Count, Status::Counted, 1_930.0, 6),
    ("L2_HITS", Unit::Count, Status::Counted, 1_520.0, 5),
    ("L2_MISSES", Unit::Count, Status::UserOnly, 412.0, 5),
    ("L3_MISSES", Unit::Count, Status::NotSupported, 0.0, 0),
    ("page-faults", Unit::Count, Status::Counted, 0.0, 10),
];

/// One that agrees, one that doesn't, one whose event isn't counted, one that derives.
const RELATIONS: &str = r#"[
  { "id": "R1", "relation": "L1_MISSES = L2_HITS + L2_MISSES", "tolerance": "5%" },
  { "id": "R2", "relation": "instructions = 3 * cycles", "tolerance": "1%" },
  { "id": "R3", "relation": "L1_LOADS = 10 * L1_MISSES" },
  { "id": "R4", "eventFrom": "L2_MISSES", "eventTo": "L3_MISSES", "expectedMean": 0.1 * {mean} }
]"#;

pub(crate) fn relations() -> Vec<Relation> {
    perfprop::relations::parse("cache.json", RELATIONS.as_bytes()).strict().unwrap()
}

/// A monitor before the first round.
pub(crate) fn fresh() -> Monitor {
    builders::monitor(header(), relations(), EstimatorKind::Linear)
}

pub(crate) fn header() -> Header {
    let events = EVENTS.iter().map(|(name, unit, status, ..)| MeasuredEvent {
        status: status.clone(),
        ..measured(Event {
            unit: unit.clone(),
            // The kernel counts the first and the last by itself.
            kind: if matches!(*name, "task-clock" | "page-faults") { EventKind::Software } else { EventKind::Hardware },
            ..event(name)
        })
    });
    let groups: [&[usize]; 5] = [&[0, 7], &[1], &[2], &[3], &[4, 5]];
    Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Command { argv: vec!["./prog".into(), "--size=1000".into()], pid: 4121 },
        rotated_by: Some(run::RotatedBy::Kernel { every_ns: Some(WallNs(4_000_000)) }),
        groups: groups.map(measured_group).into(),
        estimator: "linear".into(),
        ..builders::header(events)
    }
}

/// The program's pace in a tenth of a second: a slow wave, a burst now and then, no chance.
fn pace(event: usize, tenth: u64) -> f64 {
    let t = tenth as f64 / 10.0;
    let wave = 1.0 + 0.3 * (t * 0.25 + event as f64).sin() + 0.1 * (t * 2.1 + event as f64).sin();
    let burst = if tenth % 170 > 150 { 1.6 } else { 1.0 };
    if event < 3 { 1.0 + 0.02 * (wave - 1.0) } else { wave * burst }
}

/// Rounds of so many tenths of a second.
pub(crate) fn rounds(tenths: u64) -> Vec<Round> {
    let mut readings = [Reading::default(); EVENTS.len()];
    let mut rounds = Vec::new();
    for tenth in 1..=tenths {
        for (event, (reading, (_, _, _, rate, tenths_run))) in readings.iter_mut().zip(&EVENTS).enumerate() {
            // For three seconds nothing but the first events is on a counter.
            let idle = (400..430).contains(&tenth) && (3..6).contains(&event);
            let runs = if idle { 0 } else { *tenths_run };
            let running = runs * SECOND / 100;
            reading.enabled += CpuNs(SECOND / 10);
            reading.running += CpuNs(running);
            reading.count += (rate * running as f64 / 1e6 * pace(event, tenth)) as u64;
        }
        let open = readings.iter().zip(&EVENTS).map(|(reading, event)| event.2.is_open().then_some(*reading));
        rounds.push(Round { at: WallNs(tenth * SECOND / 10), readings: open.collect(), ..Round::default() });
    }
    rounds
}

/// `tenths` of a second through a monitor.
pub(crate) fn monitor(tenths: u64) -> Monitor {
    let mut monitor = fresh();
    for round in rounds(tenths) {
        monitor.round(&round, 0);
    }
    monitor
}

pub(crate) fn output() -> Vec<OutputLine> {
    let line = |stream, text: &str| OutputLine { stream, text: text.into(), end: LineEnd::Newline };
    let mut lines: Vec<_> = (1..=30).map(|i| line(Stream::Stdout, &format!("step {i}\tresidual 1e-{i}"))).collect();
    lines.push(line(Stream::Stderr, "warning: \x1b[31mred\x1b[0m and a bell \x07"));
    lines
}

/// A feed whose rounds and output come from the test.
struct TestFeed {
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    command: Option<i32>,
    profile: Option<SharedTree>,
    /// At which rates it can sample more often.
    frequencies: Vec<u64>,
}

/// All samples of an event.
fn sampled(tree: &Tree, event: usize) -> Amount {
    let event = tree.event_ids().nth(event).unwrap();
    tree.walk().fold(Amount::ZERO, |sum, node| Amount {
        samples: sum.samples + node.samples(event),
        weight: sum.weight + node.weight(event),
    })
}

/// Samples of `outer` in a program whose instructions are known: at its first one, in its loop, and at
/// a place within an instruction, as of callers.
fn code_without_lines() -> stacks::FunctionLines {
    let amount = |samples: u64| Amount { samples, weight: samples * 1000 };
    let mut lines =
        stacks::FunctionLines { name: "outer".into(), module: "tests/elf/lines.so".into(), ..Default::default() };
    for (offset, own, total) in [(0x1ef, 20, 20), (0x205, 300, 300), (0x20d, 600, 600), (0x21b, 0, 80)] {
        lines.offsets.insert(offset, stacks::LineSamples { own: amount(own), total: amount(total) });
    }
    let whole = stacks::LineSamples { own: amount(920), total: amount(1000) };
    (lines.whole, lines.unknown) = (whole, whole);
    lines
}

impl Feed for TestFeed {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn profile(&mut self, _until: WallNs, see: &mut dyn FnMut(&Tree, &stacks::StackQuality)) {
        if let Some(tree) = &self.profile {
            let losses = Losses { lost: 3, ..Losses::default() };
            see(&tree.lock().unwrap(), &stacks::StackQuality { losses, ..Default::default() });
        }
    }

    /// Functions with even numbers have the source `heat.c`; that of the others isn't on this machine. Events but the first know
    /// places in a program without lines.
    fn function_lines(&mut self, function: usize, event: usize) -> Option<stacks::FunctionLines> {
        let of_all = self.profile.as_ref().map_or(Amount::ZERO, |tree| sampled(&tree.lock().unwrap(), event));
        if event > 0 {
            return Some(stacks::FunctionLines { of_all, ..code_without_lines() });
        }
        let path = format!("{}/tests/screens/heat.c", env!("CARGO_MANIFEST_DIR"));
        let file = if function.is_multiple_of(2) { path } else { "/build/elsewhere/heat.c".into() };
        let mut lines = stacks::FunctionLines { file: Some(file), of_all, ..Default::default() };
        for (line, own, total) in [(16, 30, 30), (17, 200, 200), (18, 700, 700), (19, 60, 110)] {
            let amount = |samples: u64| Amount { samples, weight: samples * 1000 };
            let samples = stacks::LineSamples { own: amount(own), total: amount(total) };
            lines.lines.insert(line, samples);
            lines.whole.own.samples += own;
        }
        lines.whole.total = Amount { samples: 1050, weight: 1_050_000 };
        lines.unknown.total = Amount { samples: 10, weight: 10_000 };
        Some(lines)
    }

    /// What was sampled is forgotten, and a thread sampled that was too short before.
    fn sample_more_often(&mut self) -> Option<u64> {
        let frequency = self.frequencies.pop()?;
        let mut tree = Tree::default();
        add_stack(&mut tree, &["prog", "request"], "cpu-clock", 10);
        *self.profile.as_ref()?.lock().unwrap() = tree;
        Some(frequency)
    }

    fn write_profile(&self, _until: WallNs, recorder: &mut Recorder<&mut dyn Write>) -> io::Result<Option<WallNs>> {
        if self.profile.is_none() {
            return Ok(None);
        }
        regions().iter().try_for_each(|regions| recorder.regions(regions))?;
        Ok(Some(WallNs(12_900_000_000)))
    }

    fn end(&mut self, last: &Round, lost: u64) -> End {
        self.command = None;
        End {
            at_ns: last.at,
            exit: Some(Exit::Code(0)),
            was_ended_by_perfprop: false,
            cpu_time: None,
            has_target_ended: false,
            lost_rounds: lost,
            is_all_watched: true,
            started: None,
            totals: last.readings.clone(),
        }
    }

    fn running_command(&self) -> Option<i32> {
        self.command
    }

    fn terminate(&mut self) {
        self.command = None;
    }
}

/// The test's side of a loop that runs.
pub(crate) struct Session {
    pub(crate) script: TerminalScript,
    pub(crate) samples: Sender<SamplerMessage>,
    pub(crate) output: Sender<OutputLine>,
    pub(crate) signals: Sender<CaughtSignal>,
}

impl Session {
    pub(crate) fn rounds(&self, rounds: &[Round]) {
        for round in rounds {
            self.samples.send(SamplerMessage::Round { round: round.clone(), lost: 0 }).unwrap();
        }
    }
}

/// Runs the loop with a test beside it; gives back what the loop gave.
pub(crate) fn with_loop(
    size: (u16, u16),
    options: ScreenOptions,
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    with_profile(size, options, None, test)
}

/// The same with what was sampled, which may be sampled at higher rates.
pub(crate) fn with_frequencies(
    profile: Option<SharedTree>,
    frequencies: Vec<u64>,
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    with_feed((120, 40), options(), (profile, frequencies), test)
}

/// The same with what was sampled.
pub(crate) fn with_profile(
    size: (u16, u16),
    options: ScreenOptions,
    profile: Option<SharedTree>,
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    with_feed(size, options, (profile, Vec::new()), test)
}

fn with_feed(
    size: (u16, u16),
    options: ScreenOptions,
    (profile, frequencies): (Option<SharedTree>, Vec<u64>),
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    let (terminal, script) = Terminal::scripted(size.0, size.1).unwrap();
    let (samples, samples_out) = bounded(0);
    let (output, output_out) = bounded(0);
    let (signals, signals_out) = bounded(0);
    let mut feed = TestFeed { samples: samples_out, output: output_out, command: Some(4121), profile, frequencies };
    let user = thread::spawn(move || {
        let mut session = Session { script, samples, output, signals };
        test(&mut session);
    });
    let monitor = fresh();
    let result = tui::run_on(terminal, monitor, &mut feed, &signals_out, &options).unwrap();
    drop(feed);
    user.join().unwrap();
    result
}

pub(crate) fn golden(name: &str, screen: &str) {
    assert_golden!("screens", name, screen);
}

pub(crate) fn options() -> ScreenOptions {
    ScreenOptions { mode: Mode::Live, ..ScreenOptions::default() }
}

/// A screen of this size of a replay.
pub(crate) fn replayed(monitor: Monitor, screen: Screen, length: WallNs, profile: Option<Tree>) -> String {
    let mode = Mode::Replay { length, speed: 1.0, ending: tui::ReplayedEnding::Finished };
    let profile = profile.map(|tree| (tree, stacks::StackQuality::default()));
    let wanted = Picture { size: (120, 40), profile, ..Picture::default() };
    tui::picture(monitor, &wanted, &ScreenOptions { screen, mode, ..ScreenOptions::default() })
}
