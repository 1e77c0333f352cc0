//! Tests golden screens: scripted rounds and keys through the real loop, on a terminal in memory.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::{io, thread};

use crossbeam_channel::{Receiver, Sender, bounded, never};
use perfprop::estimate::{
    Cause, Contribution, Estimate, Estimator, EstimatorKind, Moved, Quality, RelationState, Standing, scaled,
};
use perfprop::events::{Event, EventKind, Unit};
use perfprop::monitor::{Monitor, ReadAhead, RecordingNotes};
use perfprop::plan::EventIndex;
use perfprop::profile::{self, Amount, Frame, FrameId, SampleMeasure, Tree, TreeOptions};
use perfprop::rates::{Error, Tally, Uncertain};
use perfprop::recording::{self, Speed};
use perfprop::regions::{
    CountedPart, EventCounts, EventSums, RegionBatch, RegionCounts, RegionMark, RegionPath, RegionPathId,
    RegionProgram, RegionProgramId, RegionState, RegionTable, Spread, ThreadMarks,
};
use perfprop::relations::Relation;
use perfprop::run::{self, End, Header, MeasuredEvent, MeasuredTarget, MetricFormula};
use perfprop::sampling::SamplerMessage;
use perfprop::session::{OutputLine, Stream};
use perfprop::sources::command::Exit;
use perfprop::sources::{Reading, RecordedRound, Round, Status};
use perfprop::stacks::{
    self, Gathered, Losses, Naming, Rate, RegionsToCome, SampledEvent, SamplingSetup, StackBatch, StackFrame,
    StackFrameId, StackId, StackNode, StackSample, StackTree, Task, TaskId, UnwindMethod,
};
use perfprop::tui::{
    self, Config, Depth, Feed, GlyphSet, Mode, Outcome, Outline, Picture, PictureFormat, ReplayedEnding, Scene, Screen,
    ScreenOptions, Terminal, TerminalScript, Theme, TimeRange, Timeline,
};
use perfprop::units::{CpuNs, WallNs};
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::builders::{self, SECOND, event, measured, measured_group};
use crate::folders::Folder;
use crate::goldens::assert_golden;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// What the program of these tests does: name, unit, status, rate per ms, tenths of the time run.
const EVENTS: [(&str, Unit, Status, f64, u64); 8] = [
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

fn relations() -> Vec<Relation> {
    perfprop::relations::parse("cache.json", RELATIONS.as_bytes()).strict().unwrap()
}

/// A monitor before the first round.
fn fresh() -> Monitor {
    builders::monitor(header(), relations(), EstimatorKind::Linear)
}

fn header() -> Header {
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
fn rounds(tenths: u64) -> Vec<Round> {
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
fn monitor(tenths: u64) -> Monitor {
    let mut monitor = fresh();
    for round in rounds(tenths) {
        monitor.round(&round, 0);
    }
    monitor
}

fn output() -> Vec<OutputLine> {
    let line = |stream, text: &str| OutputLine { stream, text: text.into() };
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

/// A profile that grows while the screens look at it.
type SharedTree = Arc<Mutex<Tree>>;

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
        if event > 0 {
            return Some(code_without_lines());
        }
        let path = format!("{}/tests/screens/heat.c", env!("CARGO_MANIFEST_DIR"));
        let file = if function.is_multiple_of(2) { path } else { "/build/elsewhere/heat.c".into() };
        let mut lines = stacks::FunctionLines { file: Some(file), ..Default::default() };
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

    fn regions(&self, _until: WallNs) -> Option<RegionBatch> {
        let mut table = RegionTable::default();
        regions().iter().for_each(|regions| table.take(regions).unwrap());
        self.profile.as_ref().map(|_| table.as_batch())
    }

    fn samples_stacks(&self) -> bool {
        self.profile.is_some()
    }

    fn end(&mut self, last: &Round, lost: u64) -> End {
        self.command = None;
        End {
            at_ns: last.at,
            exit: Some(Exit::Code(0)),
            cpu_time: None,
            lost_rounds: lost,
            is_all_watched: true,
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
struct Session {
    script: TerminalScript,
    samples: Sender<SamplerMessage>,
    output: Sender<OutputLine>,
    signals: Sender<i32>,
}

impl Session {
    fn rounds(&self, rounds: &[Round]) {
        for round in rounds {
            self.samples.send(SamplerMessage::Round { round: round.clone(), lost: 0 }).unwrap();
        }
    }
}

/// Runs the loop with a test beside it; gives back what the loop gave.
fn with_loop(
    size: (u16, u16),
    options: ScreenOptions,
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    with_profile(size, options, None, test)
}

/// The same with what was sampled.
fn with_profile(
    size: (u16, u16),
    options: ScreenOptions,
    profile: Option<SharedTree>,
    test: impl FnOnce(&mut Session) + Send + 'static,
) -> (Monitor, Outcome) {
    let (terminal, script) = Terminal::scripted(size.0, size.1).unwrap();
    let (samples, samples_out) = bounded(0);
    let (output, output_out) = bounded(0);
    let (signals, signals_out) = bounded(0);
    let mut feed = TestFeed { samples: samples_out, output: output_out, command: Some(4121), profile };
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

fn golden(name: &str, screen: &str) {
    assert_golden!("screens", name, screen);
}

fn options() -> ScreenOptions {
    ScreenOptions { mode: Mode::Live, ..ScreenOptions::default() }
}

#[test]
fn screens_at_all_sizes() {
    for (width, height) in SIZES {
        with_loop((width, height), options(), move |session| {
            session.rounds(&rounds(640));
            output().into_iter().for_each(|line| session.output.send(line).unwrap());
            for (key, name) in [
                ("1", "events"),
                ("jjj2", "detail"),
                ("3", "relations"),
                ("4", "no-profile"),
                ("5", "groups"),
                ("6", "log"),
                ("o", "output"),
                ("?", "help"),
            ] {
                session.script.keys(key);
                let screen = session.script.screen();
                golden(&format!("{name}-{width}x{height}"), &screen);
            }
            session.signals.send(15).unwrap();
        });
    }
}

#[test]
fn both_numbers_side_by_side() {
    with_loop((120, 40), options(), |session| {
        session.rounds(&rounds(640));
        session.script.keys("jjjjcc2");
        golden("both-120x40", &session.script.screen());
        session.signals.send(15).unwrap();
    });
}

#[test]
fn in_mid_interval_all_numbers_are_up_to_the_last_ones_end() {
    let shown = |tenths: u64| {
        let options = ScreenOptions {
            measures: perfprop::monitor::MeasureChoice::Every(perfprop::monitor::Measure::Total),
            ..ScreenOptions::default()
        };
        let wanted = Picture { size: (120, 40), event: Some(3), ..Picture::default() };
        let text = tui::picture(monitor(tenths), &wanted, &options);
        text.lines().filter(|line| line.contains("MISSES") || line.contains("cycles")).collect::<Vec<_>>().join("\n")
    };
    let (whole, later) = (monitor(30), monitor(37));
    for (one, other) in whole.rows().zip(later.rows()) {
        assert_eq!((one.raw, one.scaled, one.estimate), (other.raw, other.scaled, other.estimate));
    }
    assert_eq!(shown(30), shown(37));
}

#[test]
fn tiny_screens_and_back() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(120));
        for (width, height) in [(79, 19), (60, 11), (40, 6), (39, 5), (20, 3), (18, 2), (80, 24)] {
            session.script.resize(width, height);
            golden(&format!("tiny-{width}x{height}"), &session.script.screen());
        }
        session.signals.send(1).unwrap();
    });
}

#[test]
fn before_the_first_interval_there_are_no_numbers() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(4));
        golden("first-reading", &session.script.screen());
        session.signals.send(15).unwrap();
    });
}

#[test]
fn frozen_views_hold_still_and_nothing_is_lost() {
    let (monitor, outcome) = with_loop((80, 24), options(), |session| {
        let all = rounds(320);
        session.rounds(&all[..200]);
        session.script.keys("z");
        let before = session.script.screen();
        session.rounds(&all[200..]);
        let frozen = session.script.screen();
        golden("frozen", &frozen);
        let body = |screen: &str| screen.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(body(&before), body(&frozen));
        session.script.keys("z");
        assert!(session.script.screen().contains("n=32"));
        session.script.keys("z");
        session.signals.send(2).unwrap();
    });
    assert_eq!(outcome, Outcome::Signal(2));
    assert_eq!((monitor.rounds().0, monitor.intervals()), (320, 32));
}

#[test]
fn filters_sort_and_units() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(120));
        session.script.keys("/l?_mis*");
        golden("filter-typed", &session.script.screen());
        session.script.keys("<Enter>");
        assert!(session.script.screen().contains("3 of 8"));
        session.script.keys("<Esc>");
        assert!(session.script.screen().contains("8 of 8"));
        session.script.keys("ssIc");
        golden("sorted-raw", &session.script.screen());
        session.script.keys("c");
        golden("both-80x24", &session.script.screen());
        session.script.keys("ccuuuW");
        golden("totals-unknown-key", &session.script.screen());
        session.signals.send(15).unwrap();
    });
}

#[test]
fn quitting_asks_while_the_command_runs() {
    let (_, outcome) = with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("q");
        golden("quit", &session.script.screen());
        session.script.keys("c");
        assert!(!session.script.screen().contains("[k]ill"));
        let Session { script, samples, .. } = session;
        script.keys("^C");
        script.keys("k");
        let _ = samples.send(SamplerMessage::End);
    });
    assert_eq!(outcome, Outcome::Killed);
}

#[test]
fn the_screen_stays_after_the_end() {
    let (monitor, outcome) = with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(35));
        session.samples.send(SamplerMessage::End).unwrap();
        golden("ended", &session.script.screen());
        // Held still it has ended all the same, and may do so while it is.
        session.script.keys("z");
        let frozen = session.script.screen();
        let header = frozen.lines().next().unwrap_or_default();
        assert!(header.contains("FROZEN +0 s") && header.contains("ENDED exit 0"), "{header}");
        session.script.keys("q");
    });
    assert_eq!(outcome, Outcome::Quit);
    assert!(monitor.ended().is_some());
}

#[test]
fn the_end_is_seen_while_the_view_is_frozen() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("z");
        session.rounds(&rounds(35)[20..]);
        session.samples.send(SamplerMessage::End).unwrap();
        let frozen = session.script.screen();
        let header = frozen.lines().next().unwrap_or_default();
        assert!(header.contains("FROZEN +1 s") && header.contains("ENDED exit 0"), "{header}");
        session.script.keys("q");
    });
}

#[test]
fn hidden_rows_are_marked_with_the_way_to_see_them() {
    with_loop((80, 13), options(), |session| {
        session.rounds(&rounds(20));
        let first = session.script.screen();
        assert!(first.contains(" of 8, ↓ more"), "{first}");
        let rows: usize = first.split(" of 8,").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        let events = |screen: &str| {
            EVENTS
                .iter()
                .filter(|event| screen.lines().skip(3).any(|line| line.split_whitespace().any(|word| word == event.0)))
                .count()
        };
        assert_eq!(events(&first), rows, "{first}");
        session.script.keys("G");
        let last = session.script.screen();
        assert!(last.contains(&format!("{rows} of 8, ↑ more")), "{last}");
        session.script.keys("/l?_*<Enter>");
        assert!(session.script.screen().contains("4 of 8"));
        session.script.keys("<Esc>g");
        session.script.resize(39, 5);
        let small = session.script.screen();
        assert!(small.contains("3 of 8, ↓ more"), "{small}");
        let values = |screen: &str| screen.lines().filter(|line| line.contains("exact") || line.contains('±')).count();
        assert_eq!(values(&small), 3, "{small}");
        session.script.keys("G");
        let small = session.script.screen();
        assert!(small.contains("3 of 8, ↑ more") && small.contains("▶page-faults"), "{small}");
        session.signals.send(2).unwrap();
    });
}

#[test]
fn hidden_rows_of_a_profile_are_marked() {
    with_profile((80, 16), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4tteEg");
        let is_row = |line: &&str| line.contains('%') && !line.contains("CI") && !line.contains("cpu ");
        let rows = |session: &Session| session.script.screen().lines().filter(is_row).count();
        let marked = |session: &Session, arrows: &str| {
            let screen = session.script.screen();
            let mark = format!("of 21, {arrows} more");
            let last = screen.lines().find(|line| line.contains(&mark)).unwrap_or_else(|| panic!("{screen}"));
            let rows = last.split(" of 21,").next().unwrap().rsplit(' ').next().unwrap();
            rows.parse::<usize>().unwrap()
        };
        // Beside the tree alone, below the icicle, in the panel at the right, and without a frame.
        session.script.keys("mm");
        assert_eq!(marked(session, "↓"), rows(session));
        session.script.keys("mG");
        marked(session, "↑");
        session.script.keys("m");
        assert!(!session.script.screen().contains("of 21"), "an icicle alone hides no rows of a table");
        session.script.keys("mmg");
        session.script.resize(39, 9);
        assert_eq!(marked(session, "↓"), rows(session));
        session.script.resize(20, 3);
        assert_eq!(marked(session, "↓"), 2);
        session.script.resize(200, 60);
        assert!(!session.script.screen().contains("of 21"));
        session.signals.send(15).unwrap();
    });
}

#[test]
fn saving_never_overwrites() {
    let folder = Folder::new();
    let options = ScreenOptions { save_in: folder.to_path_buf(), ..options() };
    with_loop((80, 24), options, |session| {
        session.rounds(&rounds(25));
        session.script.keys("S");
        assert!(session.script.screen().contains("saved to"));
        session.script.keys("zS");
        let _ = session.script.screen();
        session.signals.send(15).unwrap();
    });
    for name in ["perfprop.jsonl", "perfprop-1.jsonl"] {
        let text = std::fs::read(folder.join(name)).unwrap();
        let saved = recording::read(&text[..]).unwrap();
        assert_eq!((saved.rounds.len(), saved.header), (25, header()));
        assert_eq!(saved.rounds.iter().map(|recorded| recorded.round.clone()).collect::<Vec<_>>(), rounds(25));
    }
}

#[test]
fn exports_copies_and_other_keys() {
    let folder = Folder::new();
    let (config, complaints) = Config::parse("config.toml", "[keys]\nexport = \"X\"\nfreeze = [\"F3\"]\n");
    assert_eq!(complaints, []);
    let options = ScreenOptions { save_in: folder.to_path_buf(), keymap: config.keymap, ..options() };
    with_loop((80, 24), options, |session| {
        session.rounds(&rounds(35));
        session.script.keys("x");
        assert!(session.script.screen().contains("no key x here"));
        session.script.keys("X");
        golden("export", &session.script.screen());
        session.script.keys("t");
        assert!(session.script.screen().contains("saved to"));
        session.script.keys("Xs/miss<Enter>Xt");
        session.script.keys("y");
        assert!(session.script.screen().contains("copied: L1_MISSES"), "{}", session.script.screen());
        session.signals.send(15).unwrap();
    });
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("perfprop-events.txt").contains("cycles"));
    assert!(read("perfprop-events.svg").starts_with("<svg"));
    let filtered = read("perfprop-events-1.txt");
    assert!(
        filtered.contains("filter: miss") && !filtered.contains("▏") && !filtered.contains("  cycles"),
        "{filtered}"
    );
}

#[test]
fn the_mouse_selects_opens_and_scrolls() {
    let left = MouseEventKind::Down(MouseButton::Left);
    with_loop((80, 24), options(), move |session| {
        session.rounds(&rounds(35));
        // The third event's row: header, tabs, what stands out, border, heads, two rows.
        session.script.mouse(left, 6, 7);
        let screen = session.script.screen();
        let row = screen.lines().nth(7).unwrap();
        assert!(row.contains('▶'), "{screen}");
        let name = row.split_whitespace().find(|word| word.len() > 2).unwrap().trim_start_matches('▶').to_owned();
        session.script.mouse(left, 6, 7);
        let screen = session.script.screen();
        assert!(screen.contains("[2 Detail]") && screen.contains(&name), "{screen}");
        // A click on a head sorts by it, and another one the other way.
        session.script.keys("1");
        let heads = |session: &Session| session.script.screen().lines().nth(4).unwrap().to_owned();
        let mean = heads(session).chars().position(|c| c == 'M').unwrap();
        session.script.mouse(left, u16::try_from(mean).unwrap(), 4);
        assert!(heads(session).contains("MEAN↓"), "{}", heads(session));
        session.script.mouse(left, u16::try_from(mean).unwrap(), 4);
        assert!(heads(session).contains("MEAN↑"), "{}", heads(session));
        session.script.keys("I<<");
        let relations = screen.lines().nth(1).unwrap().find("Relations").unwrap();
        session.script.mouse(left, u16::try_from(relations).unwrap(), 1);
        assert!(session.script.screen().contains("[3 Relations]"));
        session.script.keys("1");
        session.script.mouse(MouseEventKind::ScrollUp, 6, 6);
        assert!(session.script.screen().lines().nth(5).unwrap().contains('▶'));
        // Where nothing is, nothing happens.
        let before = session.script.screen();
        session.script.mouse(left, 79, 23);
        assert_eq!(session.script.screen(), before);
        session.signals.send(15).unwrap();
    });
}

fn end_of(rounds: &[RecordedRound]) -> End {
    let last = &rounds.last().unwrap().round;
    End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
}

/// A recording of six seconds that plays nothing by itself.
struct Recorded {
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    plays: Arc<Mutex<Vec<(WallNs, Speed)>>>,
    rounds: Vec<RecordedRound>,
    ahead: ReadAhead,
}

impl Recorded {
    fn new(tenths: u64, plays: &Arc<Mutex<Vec<(WallNs, Speed)>>>) -> Self {
        let rounds = rounds(tenths).into_iter().map(|round| RecordedRound { round, lost: 0 }).collect();
        let (samples, output, plays) = (never(), never(), Arc::clone(plays));
        Self { samples, output, plays, rounds, ahead: ReadAhead::new(fresh()) }
    }
}

impl Timeline for Recorded {
    fn play(&mut self, after: WallNs, speed: Speed) -> io::Result<()> {
        self.plays.lock().unwrap().push((after, speed));
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
        self.ahead.read(&self.rounds, rounds, || end_of(&self.rounds))
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
fn a_replay_can_be_wound() {
    let mode = Mode::Replay { length: WallNs(6 * SECOND), speed: 1.0, ending: ReplayedEnding::Finished };
    let plays = Arc::new(Mutex::new(Vec::new()));
    let mut feed = Recorded::new(60, &plays);
    let (terminal, script) = Terminal::scripted(80, 24).unwrap();
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        let head = |script: &TerminalScript| script.screen().lines().next().unwrap().to_owned();
        script.keys("p:3<Enter>");
        assert!(head(&script).contains("PAUSED 0:03/0:06"), "{}", head(&script));
        golden("replay-paused", &script.screen());
        let at_three = script.screen();
        script.keys(".");
        assert!(head(&script).contains("0:04/0:06"), "{}", head(&script));
        script.keys(",");
        // Back and forth gives the same numbers, because a replay derives all again.
        assert_eq!(script.screen(), at_three);
        script.keys("b:0:05<Enter>b'");
        assert!(head(&script).contains("0:03/0:06"), "{}", head(&script));
        script.keys("'");
        assert!(head(&script).contains("0:05/0:06"), "{}", head(&script));
        script.keys("))p");
        assert!(head(&script).contains("REPLAY x4 0:05/0:06"), "{}", head(&script));
        script.keys(":nonsense<Enter>");
        assert!(script.screen().contains("nonsense is no time"));
        script.keys(":99<Enter>");
        assert!(script.screen().contains("0:06/0:06"), "{}", script.screen());
        script.keys(":1<Enter>");
        assert!(head(&script).contains("0:01/0:06"), "{}", head(&script));
        script.keys("n");
        assert!(script.screen().contains("no level changes after this time"), "{}", script.screen());
        signals.send(15).unwrap();
    });
    let options = ScreenOptions { mode, ..ScreenOptions::default() };
    tui::run_on(terminal, fresh(), &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
    let plays = plays.lock().unwrap();
    assert!(plays.contains(&(WallNs(5 * SECOND), Speed::Times(4.0))), "{plays:?}");
}

/// Uses the screens of a recording that plays nothing by itself, as large as the terminal is.
fn with_recording(size: (u16, u16), tenths: u64, test: impl FnOnce(&TerminalScript) + Send + 'static) {
    let mode = Mode::Replay { length: WallNs(tenths * SECOND / 10), speed: 1.0, ending: ReplayedEnding::Finished };
    let mut feed = Recorded::new(tenths, &Arc::default());
    let (terminal, script) = Terminal::scripted(size.0, size.1).unwrap();
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        test(&script);
        signals.send(15).unwrap();
    });
    let options = ScreenOptions { mode, ..ScreenOptions::default() };
    tui::run_on(terminal, fresh(), &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
}

#[test]
fn a_range_is_chosen_by_keys_moved_and_left() {
    with_recording((80, 24), 60, |script| {
        let head = || script.screen().lines().next().unwrap().to_owned();
        script.keys("p:2<Enter>R");
        assert!(script.screen().contains("a range begins at 0:02"), "{}", script.screen());
        script.keys("R");
        assert!(script.screen().contains("the range is empty"), "{}", script.screen());
        script.keys(":5<Enter>");
        golden("range-begun-80x24", &script.screen());
        script.keys("R");
        assert!(head().contains("RANGE 0:02.0–0:05.0 of 0:06"), "{}", head());
        golden("range-80x24", &script.screen());
        script.keys("2");
        golden("range-detail-80x24", &script.screen());
        script.keys("1R");
        assert!(script.screen().contains("Esc shows the whole recording again"), "{}", script.screen());
        script.keys("S");
        assert!(script.screen().contains("a range is shown"), "{}", script.screen());
        script.keys(".");
        assert!(head().contains("RANGE 0:03.0–0:06.0"), "{}", head());
        // Not beyond the end, and as far back as it goes.
        script.keys(".,,,,,");
        assert!(head().contains("RANGE 0:00.0–0:03.0"), "{}", head());
        script.keys("<Esc>");
        assert!(head().contains("PAUSED 0:03/0:06"), "{}", head());
        script.keys("R:1<Enter><Esc>R");
        assert!(script.screen().contains("a range begins at 0:01"), "{}", script.screen());
        // It may be chosen backwards.
        script.keys("<Esc>:5<Enter>R:2<Enter>R");
        assert!(head().contains("RANGE 0:02.0–0:05.0"), "{}", head());
    });
}

#[test]
fn a_range_of_everything_shows_what_the_whole_does() {
    with_recording((80, 24), 60, |script| {
        script.keys("p:9<Enter>");
        let whole = script.screen();
        script.keys(":0<Enter>R:9<Enter>R");
        let range = script.screen();
        // The head, the time line and the keys differ, and all numbers are the same.
        let body = |screen: &str| screen.lines().skip(2).take(18).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(body(&range), body(&whole));
        assert!(range.contains("RANGE 0:00.0–0:06.0 of 0:06"), "{range}");
    });
}

#[test]
fn the_mouse_drags_a_range_on_the_time_line() {
    with_recording((80, 24), 60, |script| {
        let head = || script.screen().lines().next().unwrap().to_owned();
        let (down, drag, up) = (
            MouseEventKind::Down(MouseButton::Left),
            MouseEventKind::Drag(MouseButton::Left),
            MouseEventKind::Up(MouseButton::Left),
        );
        // The line begins in column 25 and has 49 cells.
        script.keys("p");
        script.mouse(down, 49, 20);
        script.mouse(up, 49, 20);
        assert!(head().contains("PAUSED 0:03/0:06"), "{}", head());
        // The hand may leave the line.
        script.mouse(down, 33, 20);
        script.mouse(drag, 40, 12);
        script.mouse(drag, 57, 23);
        script.mouse(up, 57, 23);
        assert!(head().contains("RANGE 0:01.0–0:04.0"), "{}", head());
        script.keys("<Esc>");
        assert!(head().contains("PAUSED 0:04/0:06"), "{}", head());
        // One that begins elsewhere is none.
        script.mouse(down, 5, 5);
        script.mouse(drag, 40, 20);
        script.mouse(up, 40, 20);
        assert!(head().contains("PAUSED 0:04/0:06"), "{}", head());
    });
}

#[test]
fn time_lines_leave_where_there_is_no_room() {
    for (size, has_one) in [((80, 24), true), ((60, 20), true), ((80, 19), false), ((59, 30), false), ((200, 60), true)]
    {
        with_recording(size, 60, move |script| {
            script.keys("p:4<Enter>");
            assert_eq!(script.screen().contains("◆phase ▲finding ▼mark"), has_one, "{}", script.screen());
        });
    }
}

/// What replays show of a whole recording and of a range, on all screens that are about time.
#[test]
fn ranges_on_screens_of_all_sizes() {
    let all: Vec<_> = rounds(600).into_iter().map(|round| RecordedRound { round, lost: 0 }).collect();
    let (base, length) = (&all[199].round, WallNs(60 * SECOND));
    let mut ahead = ReadAhead::new(fresh());
    let outline = Outline::of(&all, length).with_notes(ahead.read(&all, usize::MAX, || end_of(&all)).unwrap());
    let range = Some(TimeRange { from: base.at, to: all[449].round.at });
    let mode = Mode::Replay { length, speed: 1.0, ending: ReplayedEnding::Finished };
    for (symbols, name) in [(GlyphSet::Unicode, "range"), (GlyphSet::Ascii, "range-ascii")] {
        let options = ScreenOptions { mode, symbols, ..ScreenOptions::default() };
        let mut scene = Scene::new(of_range(&all), None, &options);
        for (screen, word) in [(Screen::Events, "events"), (Screen::Detail, "of-detail")] {
            for size in [(80, 24), (120, 40), (200, 60)] {
                let wanted = Picture { size, outline: Some(outline.clone()), range, ..Picture::default() };
                let picture = scene.picture(screen, &wanted);
                assert!(symbols == GlyphSet::Unicode || picture.is_ascii(), "{picture}");
                golden(&format!("{name}-{word}-{}x{}", size.0, size.1), &picture);
            }
        }
    }
}

/// The monitor of the range that pictures show.
fn of_range(all: &[RecordedRound]) -> Monitor {
    let mut monitor = fresh().beginning_after(&all[199].round, 0);
    for RecordedRound { round, lost } in &all[200..450] {
        monitor.round(round, *lost);
    }
    monitor.close();
    monitor
}

#[test]
fn live_screens_are_not_wound() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("p");
        assert!(session.script.screen().contains("only a replay can be wound"));
        session.signals.send(15).unwrap();
    });
}

/// Every screen in a mode, with its name.
fn in_mode(options: &ScreenOptions, size: (u16, u16), format: PictureFormat) -> Vec<(Screen, String)> {
    let screens = Screen::ALL.into_iter();
    let picture = |screen| {
        let options = ScreenOptions { screen, ..options.clone() };
        let (output, rounds, profile) = (output(), rounds(40), Some((solver(), stacks::StackQuality::default())));
        let wanted = Picture { size, format, event: Some(3), output, rounds, profile, ..Picture::default() };
        (screen, tui::picture(monitor(640), &wanted, &options))
    };
    screens.map(picture).collect()
}

#[test]
fn every_screen_has_all_depths_of_colour() {
    for (depth, name) in Depth::ALL.into_iter().zip(["true-colour", "256", "16", "no-colour"]) {
        let options = ScreenOptions { depth, theme: Theme::built_in("dark", depth).unwrap(), ..options() };
        for (screen, drawn) in in_mode(&options, (80, 24), PictureFormat::Ansi) {
            golden(&format!("depth-{name}-{}", screen.word()), &drawn.replace('\x1b', "^["));
        }
    }
}

#[test]
fn every_screen_has_a_form_in_ascii() {
    let options = ScreenOptions { symbols: GlyphSet::Ascii, ..options() };
    for (width, height) in SIZES {
        for (screen, drawn) in in_mode(&options, (width, height), PictureFormat::Text) {
            assert!(drawn.is_ascii(), "{drawn}");
            golden(&format!("ascii-{}-{width}x{height}", screen.word()), &drawn);
        }
    }
}

#[test]
fn ascii_and_mono() {
    let options = ScreenOptions {
        symbols: GlyphSet::Ascii,
        depth: Depth::Mono,
        theme: Theme::built_in("mono", Depth::Mono).unwrap(),
        ..options()
    };
    with_loop((120, 40), options, |session| {
        session.rounds(&rounds(640));
        for (key, name) in [("1", "ascii-events"), ("jjj2", "ascii-detail"), ("5?", "ascii-help")] {
            session.script.keys(key);
            let screen = session.script.screen();
            assert!(screen.is_ascii(), "{screen}");
            golden(name, &screen);
        }
        session.signals.send(15).unwrap();
    });
}

#[test]
fn pictures_are_the_same_twice_in_every_format() {
    for format in [PictureFormat::Text, PictureFormat::Ansi, PictureFormat::Svg] {
        for theme in Theme::names() {
            for screen in Screen::ALL {
                let options = ScreenOptions {
                    screen,
                    theme: Theme::built_in(theme, Depth::TrueColor).unwrap(),
                    mode: Mode::Replay { length: WallNs(64 * SECOND), speed: 1.0, ending: ReplayedEnding::Finished },
                    ..ScreenOptions::default()
                };
                let (output, rounds) = (output(), rounds(40));
                let wanted = Picture { size: (120, 40), format, event: Some(3), output, rounds, ..Picture::default() };
                let first = tui::picture(monitor(300), &wanted, &options);
                assert_eq!(first, tui::picture(monitor(300), &wanted, &options));
                assert!(first.contains("REPLAY") || format == PictureFormat::Svg);
            }
        }
    }
}

/// Returns the given standings and estimates.
struct FixedEstimator {
    estimates: Vec<Estimate>,
    standings: Vec<Standing>,
}

impl Estimator for FixedEstimator {
    fn end_interval(&mut self, tally: &Tally) {
        for (event, estimate) in self.estimates.iter_mut().enumerate() {
            if !matches!(estimate.quality, Quality::Corrected | Quality::Derived) {
                *estimate = scaled(tally, event);
            }
        }
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        &self.standings
    }
}

fn told(value: f64, error: Error) -> Monitor {
    let mut estimates = vec![Estimate::default(); EVENTS.len()];
    let count = Some(Uncertain { value, error });
    let told = |quality, parts| Estimate { interval: count, total: count, variance: Some(value), quality, parts };
    let part = |by| Contribution { by, counts: value };
    estimates[5] = told(Quality::Corrected, vec![part(Cause::Relation(7)), part(Cause::Event(1))]);
    estimates[6] = told(Quality::Derived, vec![]);
    let standing = Standing {
        state: RelationState::Violated,
        z: Some(f64::NAN),
        trust: Some(value),
        moved: Some(Moved { event: 5, relative: Some(value) }),
        ..Standing::default()
    };
    let mut monitor =
        Monitor::new(header(), relations(), Box::new(FixedEstimator { estimates, standings: vec![standing; 4] }));
    for round in rounds(60) {
        monitor.round(&round, 3);
    }
    monitor
}

#[test]
fn no_size_and_no_state_stops_the_drawing() {
    let states: [fn() -> Monitor; 5] = [
        || monitor(0),
        || monitor(35),
        || monitor(450),
        || told(f64::MAX, Error::Within { below: 0.0, above: f64::INFINITY }),
        || told(f64::NAN, Error::Within { below: f64::NAN, above: f64::NAN }),
    ];
    let steps = |most: u16| (0..=most).filter(|n| *n < 24 || n % 17 == 0 || [40, 80, 120, 170, 200].contains(n));
    for (i, state) in states.iter().enumerate() {
        let mut scene = Scene::new(state(), None, &ScreenOptions::default());
        for screen in Screen::ALL {
            for width in steps(250).filter(|width| *width < 14 || (usize::from(*width) + i) % 3 != 0) {
                for height in steps(80).filter(|height| *height < 14 || (usize::from(*height) + i) % 3 == 0) {
                    let wanted =
                        Picture { size: (width, height), event: Some(i + 2), output: output(), ..Picture::default() };
                    let text = scene.picture(screen, &wanted);
                    assert_eq!(text.lines().count(), usize::from(if width == 0 { 0 } else { height }));
                }
            }
        }
    }
}

#[test]
fn names_from_outside_steer_nothing() {
    let mut header = header();
    header.events[3].event.name = "\x1b]0;title\x07evil\u{202e}".into();
    header.target = MeasuredTarget::Command { argv: vec!["a\nb\x1b[2J".into()], pid: 1 };
    let monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
    let wanted = Picture { size: (200, 60), event: Some(3), output: output(), ..Picture::default() };
    let text = tui::picture(monitor, &wanted, &ScreenOptions::default());
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'));
}

/// Stacks of a small solver, outermost frame first: frames with their modules, samples of two events.
const STACKS: [(&[&str], u64, u64); 12] = [
    (&["solve", "main@solve", "mid_a@solve", "leaf_chase@solve"], 16_700, 40),
    (&["solve", "main@solve", "mid_a@solve", "grow@solve", "malloc@/usr/lib/libc.so.6"], 150, 900),
    (
        &[
            "solve",
            "main@solve",
            "mid_a@solve",
            "grow@solve",
            "malloc@/usr/lib/libc.so.6",
            "page_fault@[kernel.kallsyms]",
        ],
        60,
        2_100,
    ),
    (&["solve", "main@solve", "mid_b@solve", "leaf_fp@solve"], 900, 10),
    (&["solve", "main@solve", "mid_b@solve", "leaf_fp@solve", "pow@/usr/lib/libm.so.6"], 120, 0),
    (
        &[
            "solve",
            "main@solve",
            "mid_b@solve",
            "std::vector<double, std::allocator<double> >::resize(unsigned long)@solve",
        ],
        30,
        300,
    ),
    (&["solve", "main@solve", "script@perf-4121.map", "jitted_loop@perf-4121.map"], 75, 0),
    (&["solve", "main@solve", "script@perf-4121.map", "[unknown]@"], 5, 0),
    (&["solve", "main@solve"], 20, 1),
    (&["solve", "_start@/usr/lib/ld-linux.so.2", "relocate@/usr/lib/ld-linux.so.2"], 2, 80),
    (&["solve", "worker@solve", "leaf_fp@solve"], 200, 5),
    (&["solve", "worker@solve", "wait@/usr/lib/libc.so.6", "schedule@[kernel.kallsyms]"], 8, 0),
];

fn add_stack(tree: &mut Tree, path: &[&str], event: &str, samples: u64) {
    let frames: Vec<FrameId> = path
        .iter()
        .enumerate()
        .map(|(i, frame)| {
            let (name, module) = frame.rsplit_once('@').unwrap_or((frame, ""));
            let kind = if i == 0 { profile::FrameKind::Process } else { profile::FrameKind::Function };
            tree.frame(&Frame { kind, module, ..Frame::function(name) })
        })
        .collect();
    let event = tree.event(&profile::ProfileEvent::new(event, SampleMeasure::Weighted("count".into())));
    let place = tree.sampled();
    tree.stack(place, frames, event, Amount { samples, weight: samples * 1000 });
    tree.end(place);
}

fn solver() -> Tree {
    let mut tree = Tree::default();
    for (path, misses, faults) in STACKS {
        add_stack(&mut tree, path, "L1_MISSES", misses);
        if faults > 0 {
            add_stack(&mut tree, path, "page-faults", faults);
        }
    }
    tree
}

fn shared(tree: Tree) -> Option<SharedTree> {
    Some(Arc::new(Mutex::new(tree)))
}

#[test]
fn profiles_at_all_sizes() {
    for (width, height) in SIZES {
        with_profile((width, height), options(), shared(solver()), move |session| {
            session.rounds(&rounds(40));
            let size = format!("{width}x{height}");
            golden(&format!("events-with-profile-{size}"), &session.script.screen());
            for (keys, name) in [
                ("4", "profile"),
                ("js", "profile-short-names"),
                ("tt", "profile-tree"),
                ("e", "profile-all-frames"),
                ("t", "profile-modules"),
                ("tjt", "profile-callers"),
                ("tgCjjl<Enter>/leaf<Enter>n", "profile-zoom-search"),
                ("<Esc><Esc>em", "profile-icicle"),
                ("mE]", "profile-faults"),
                ("m?", "profile-help"),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{size}"), &session.script.screen());
            }
            session.signals.send(15).unwrap();
        });
    }
}

/// Whether functions without lines have instructions.
const HAS_DISASSEMBLER: bool = cfg!(feature = "disassembly");

#[test]
fn sources_at_all_sizes() {
    for (width, height) in SIZES {
        with_profile((width, height), options(), shared(solver()), move |session| {
            session.rounds(&rounds(40));
            let size = format!("{width}x{height}");
            for (keys, name) in [
                ("4v", "source"),
                ("n", "source-next"),
                ("<Esc>j<Enter>", "source-missing"),
                ("<Esc>tGv?", "source-help"),
                ("<Esc><Esc>E]v", if HAS_DISASSEMBLER { "source-instructions" } else { "source-no-instructions" }),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{size}"), &session.script.screen());
            }
            session.signals.send(15).unwrap();
        });
    }
}

/// Lists calls.
fn to_tree(session: &Session) {
    for _ in 0..4 {
        if !session.script.screen().contains("TREE (") {
            session.script.keys("t");
        }
    }
    assert!(session.script.screen().contains("TREE ("), "{}", session.script.screen());
}

#[test]
fn enter_shows_the_source_of_a_function_and_zooms_into_calls_first() {
    with_profile((80, 24), options(), shared(solver()), move |session| {
        session.rounds(&rounds(40));
        let shows = |session: &Session, words: &str| {
            let screen = session.script.screen();
            assert!(screen.contains(words), "{words}: {screen}");
        };
        session.script.keys("4<Enter>");
        shows(session, "Source ─");
        session.script.keys("<Esc>");
        shows(session, "Profile ─");
        to_tree(session);
        session.script.keys("jj<Enter>");
        shows(session, "zoom: ");
        session.script.keys("<Enter>");
        shows(session, "Source ─");
        session.script.keys("<Esc>");
        shows(session, "zoom: ");
        session.signals.send(15).unwrap();
    });
}

/// Counts of two events in the calls of a region: page faults all the time, and instructions a third of the time, but for a
/// single call, in which they weren't counted. Each number is with the regions within, and without.
fn region_events(calls: u64, faults: (u64, u64), instructions: (u64, u64)) -> Vec<EventSums> {
    let ns = calls * 1000;
    let sums = |(sum, own): (u64, u64), running_ns: u64| {
        // A little more than where all calls count as much.
        let squares_per_ns = sum as f64 * sum as f64 / running_ns as f64 * 1.5;
        let all = EventCounts { calls, sum, max: sum, enabled_ns: ns, running_ns, ..EventCounts::default() };
        let all = EventCounts { squares_per_ns, stays: calls, ..all };
        let alone = CountedPart { sum: own, enabled_ns: ns, running_ns };
        EventSums { all, alone, ..EventSums::default() }
    };
    let never = EventCounts { missing: calls, enabled_ns: ns, ..EventCounts::default() };
    let never = EventSums {
        all: never,
        alone: CountedPart { enabled_ns: ns, ..CountedPart::default() },
        ..EventSums::default()
    };
    let instructions = if calls > 1 { sums(instructions, ns / 3) } else { never };
    vec![sums(faults, ns), instructions]
}

/// Regions of a fit: the likelihood most of the time, and one that was never left.
fn regions() -> Vec<RegionBatch> {
    let path = |parent: Option<u32>, name: &str, phase: &str| RegionPath {
        program: RegionProgramId(0),
        parent: parent.map(RegionPathId),
        name: name.into(),
        phase: phase.into(),
    };
    let counts = |path, calls: u64, time_ns: u64, self_ns: u64, faults: (u64, u64)| {
        let mean = time_ns as f64 / calls as f64;
        let variance = Some(mean * mean * 0.09);
        let spread = Spread { mean, variance, min: mean / 2.0, max: mean * 3.0, p50: mean, p99: mean * 2.0 };
        let path = RegionPathId(path);
        RegionCounts {
            path,
            calls,
            time_ns,
            self_ns,
            reverse_calls: 0,
            reverse_ns: 0,
            spread: Some(spread),
            events: region_events(calls, faults, (calls * time_ns / 100_000_000, calls * self_ns / 100_000_000)),
        }
    };
    let mark = |at, path| RegionMark { at: WallNs(at), path: RegionPathId(path), is_enter: true };
    let marks = ThreadMarks { program: RegionProgramId(0), tid: 1, missed: 0, marks: vec![mark(1, 0), mark(2, 2)] };
    let events = vec!["page-faults".into(), "instructions:u".into()];
    let first = RegionBatch {
        at: WallNs(38 * SECOND),
        counted_since: Some(WallNs(37 * SECOND)),
        programs: vec![RegionProgram { pid: 1, name: Some("fit".into()) }],
        paths: vec![
            path(None, "fit", ""),
            path(Some(0), "model", ""),
            path(Some(1), "likelihood", ""),
            path(Some(1), "prior\n\x1b[2J", ""),
            path(None, "write", ""),
            path(None, "write", "warmup"),
        ],
        counts: vec![counts(5, 1, 40_000_000, 40_000_000, (12, 12))],
        marks: vec![marks],
        states: vec![(RegionProgramId(0), RegionState { events, ..RegionState::default() })],
        ..RegionBatch::default()
    };
    let second = RegionBatch {
        at: WallNs(39 * SECOND),
        since: first.at,
        counted_since: Some(first.at),
        counts: vec![
            counts(1, 52_000, 31_000_000_000, 900_000_000, (109_000, 1_000)),
            counts(2, 52_000, 28_000_000_000, 28_000_000_000, (104_000, 104_000)),
            counts(3, 52_000, 2_100_000_000, 2_100_000_000, (4_000, 4_000)),
            counts(4, 1, 60_000_000, 60_000_000, (30, 30)),
        ],
        ..RegionBatch::default()
    };
    vec![first, second]
}

/// The tree of these regions, with samples in them or none.
fn with_regions(sampled: &SamplingSetup, batch: &StackBatch) -> Tree {
    let mut tree = StackTree::new(sampled, profile::TreeOptions::default(), Naming::default(), |_| true);
    regions().iter().for_each(|regions| tree.take_regions(regions).unwrap());
    tree.take(batch).unwrap();
    tree.into_tree()
}

#[test]
fn regions_fill_the_profile_where_nothing_is_sampled() {
    for (width, height) in SIZES {
        let nothing = SamplingSetup { events: vec![], call_graph: UnwindMethod::Fp };
        let tree = with_regions(&nothing, &StackBatch::default());
        with_profile((width, height), options(), shared(tree), move |session| {
            session.rounds(&rounds(40));
            for (keys, name) in [
                ("4jjj", "regions"),
                ("t", "regions-flat"),
                ("t", "regions-callers"),
                ("t]", "regions-faults"),
                ("]", "regions-instructions"),
                ("t", "regions-instructions-flat"),
                ("r", "regions-narrowed"),
                ("jr", "regions-again"),
            ] {
                session.script.keys(keys);
                golden(&format!("{name}-{width}x{height}"), &session.script.screen());
            }
            session.signals.send(15).unwrap();
        });
    }
}

#[test]
fn a_region_without_events_says_what_counts_them() {
    let mut without = regions();
    without.iter_mut().for_each(|batch| {
        batch.states.clear();
        batch.counts.iter_mut().for_each(|counts| counts.events.clear());
    });
    let nothing = SamplingSetup { events: vec![], call_graph: UnwindMethod::Fp };
    let mut tree = StackTree::new(&nothing, profile::TreeOptions::default(), Naming::default(), |_| true);
    without.iter().for_each(|regions| tree.take_regions(regions).unwrap());
    with_profile((80, 24), options(), shared(tree.into_tree()), move |session| {
        session.rounds(&rounds(40));
        // The process above the regions is none.
        session.script.keys("4jr");
        assert!(session.script.screen().contains("select one first"), "{}", session.script.screen());
        session.script.keys("jjr");
        golden("regions-no-events-80x24", &session.script.screen());
        // Lists have nothing to move in, and the first key back is the profile's.
        session.script.keys("j");
        assert!(session.script.screen().contains("1 shows all events"), "{}", session.script.screen());
        // Help has the keys that do something here, and no others.
        session.script.keys("?");
        let help = session.script.screen();
        assert!(help.contains("back from a region's events") && !help.contains("sort by the next column"), "{help}");
        session.script.keys("<Esc><Esc>");
        assert!(session.script.screen().contains("[4 Profile]"));
        session.script.keys("r1?");
        let help = session.script.screen();
        assert!(!help.contains("back from a region's events") && help.contains("filter by words"), "{help}");
        session.script.keys("<Esc>");
        assert!(session.script.screen().contains("Events ─ as given"), "{}", session.script.screen());
        session.signals.send(15).unwrap();
    });
}

#[test]
fn a_region_in_which_an_event_counted_nothing_stands_with_0() {
    let mut zero = regions();
    zero[1].counts[2].events[0] = region_events(52_000, (0, 0), (1, 1)).swap_remove(0);
    let mut tree = StackTree::new(&SamplingSetup::of_nothing(), TreeOptions::default(), Naming::default(), |_| true);
    zero.iter().for_each(|regions| tree.take_regions(regions).unwrap());
    with_profile((120, 40), options(), shared(tree.into_tree()), move |session| {
        session.rounds(&rounds(40));
        session.script.keys("4E]");
        let screen = session.script.screen();
        let row = screen.lines().find(|line| line.contains("prior") && line.contains("exact")).unwrap_or_default();
        let numbers: Vec<_> = row.split_whitespace().skip_while(|word| !word.contains('%')).collect();
        assert_eq!(numbers[..4], ["0.0%", "0", "0", "52k"], "{screen}");
        session.signals.send(15).unwrap();
    });
}

#[test]
fn what_is_saved_has_regions_and_says_that_it_has_no_stacks() {
    let folder = Folder::new();
    let options = ScreenOptions { save_in: folder.to_path_buf(), ..options() };
    let event = SampledEvent { name: "cpu-clock".into(), unit: Unit::Nanoseconds, rate: Rate::Frequency(99) };
    let sampled = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
    let tree = with_regions(&sampled, &StackBatch::default());
    with_profile((200, 60), options, shared(tree), |session| {
        session.rounds(&rounds(40));
        session.script.keys("S");
        let screen = session.script.screen();
        assert!(screen.contains("without its call stacks; with them:  perfprop record -g"), "{screen}");
        session.signals.send(15).unwrap();
    });
    let saved = recording::read(std::fs::read(folder.join("perfprop.jsonl")).unwrap().as_slice()).unwrap();
    assert_eq!(saved.regions_until(WallNs(u64::MAX)).distinct(), 5);
}

#[test]
fn regions_that_cannot_be_read_are_said_in_the_log() {
    let error = Some("it holds no\u{1b} regions".to_owned());
    let batch = RegionBatch {
        programs: vec![RegionProgram { pid: 7, name: None }],
        states: vec![(RegionProgramId(0), RegionState { error, ..RegionState::default() })],
        ..RegionBatch::default()
    };
    let mut gathered = Gathered::new(&SamplingSetup::of_nothing(), RegionsToCome::Expected, TreeOptions::default());
    gathered.take_regions(&batch);
    gathered.end_regions();
    let quality = gathered.quality().clone();
    let wanted = Picture { size: (120, 40), profile: Some((Tree::default(), quality)), ..Picture::default() };
    let text = |screen| tui::picture(monitor(20), &wanted, &ScreenOptions { screen, ..ScreenOptions::default() });
    let log = text(Screen::Log);
    assert_eq!(log.matches("Regions of process 7 can't be read: it holds no\\x1b regions").count(), 1, "{log}");
    assert!(text(Screen::Profile).contains("no region can be read; Log says why"));
}

#[test]
fn samples_stand_below_the_region_that_was_open() {
    let event = SampledEvent { name: "cycles".into(), unit: Unit::Count, rate: Rate::Frequency(99) };
    let sampled = SamplingSetup { events: vec![event], call_graph: UnwindMethod::Fp };
    let sample = |at, task| StackSample {
        at: WallNs(at),
        task: TaskId(task),
        cpu: 0,
        event: 0,
        weight: 1000,
        stack: Some(StackId(0)),
    };
    let task = |tid, comm: &str| Task { pid: 1, tid, comm: comm.into() };
    let batch = StackBatch {
        frames: vec![StackFrame { name: "dot".into(), module: "/bin/fit".into(), ..StackFrame::default() }],
        stacks: vec![StackNode { caller: None, frame: StackFrameId(0) }],
        tasks: vec![task(1, "worker"), task(2, "other")],
        samples: [(0, 0), (1, 0), (2, 0), (3, 0), (3, 0), (3, 1)].map(|(at, task)| sample(at, task)).to_vec(),
        ..StackBatch::default()
    };
    let tree = with_regions(&sampled, &batch);
    let cycles = tree.find_event("cycles").unwrap();
    let found = tree.nodes().filter(|node| node.samples(cycles) > 0);
    let mut found: Vec<_> = found.map(|node| (tree.names(node.id())[1..].join(";"), node.samples(cycles))).collect();
    found.sort();
    let wanted = [("fit;fit;dot", 1), ("fit;fit;model;likelihood;dot", 3), ("other;dot", 1), ("worker;dot", 1)];
    assert_eq!(found, wanted.map(|(path, samples)| (path.to_owned(), samples)));
    for (width, height) in [(80, 24), (120, 40)] {
        with_profile((width, height), options(), shared(tree.clone()), move |session| {
            session.rounds(&rounds(40));
            session.script.keys("4jjjj");
            golden(&format!("regions-sampled-{width}x{height}"), &session.script.screen());
            session.signals.send(15).unwrap();
        });
    }
}

/// The line of the table with the cursor, and where on the screen it is.
fn cursor(screen: &str) -> (usize, String) {
    let (row, line) = screen.lines().enumerate().skip(2).find(|(_, line)| line.contains('▶')).unwrap();
    (row, line.split('▶').nth(1).unwrap().trim_matches(['−', '+', ' ']).split("  ").next().unwrap().to_owned())
}

#[test]
fn a_live_profile_moves_nothing_under_the_readers_eyes() {
    let tree = shared(solver());
    let grows = tree.clone().unwrap();
    with_profile((80, 24), options(), tree, move |session| {
        let all = rounds(60);
        session.rounds(&all[..20]);
        session.script.keys("4");
        to_tree(session);
        session.script.keys("/leaf_fp<Enter>n<Enter><Esc>");
        let (row, name) = cursor(&session.script.screen());
        assert_eq!(name, "leaf_fp");
        let zoomed = session.script.screen().contains("zoom: leaf_fp");
        assert!(zoomed, "{}", session.script.screen());
        session.script.keys("<Esc>");
        let before = cursor(&session.script.screen());
        // New siblings before and after, and others that grow, but by less than chance.
        for (path, samples) in [
            (&["solve", "main@solve", "mid_b@solve", "aaa@solve"][..], 5_000),
            (&["solve", "main@solve", "aab@solve"], 40_000),
            (&["aaa"], 9),
        ] {
            add_stack(&mut grows.lock().unwrap(), path, "L1_MISSES", samples);
        }
        session.rounds(&all[20..40]);
        let screen = session.script.screen();
        assert!(screen.contains("63.3k samples"), "{screen}");
        assert_eq!(cursor(&screen), before, "{screen}");
        assert_eq!(before.1, name);
        // Frozen, the profile stays.
        session.script.keys("z");
        add_stack(&mut grows.lock().unwrap(), &["solve"], "L1_MISSES", 100_000);
        session.rounds(&all[40..]);
        assert!(session.script.screen().contains("63.3k samples"));
        session.script.keys("z");
        assert!(session.script.screen().contains("163k samples"), "{}", session.script.screen());
        assert_eq!(cursor(&session.script.screen()).1, name);
        let _ = row;
        session.signals.send(15).unwrap();
    });
}

#[test]
fn searches_tell_their_share_and_go_round() {
    with_profile((120, 40), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        // 900 + 120 + 200 of 18,270 samples.
        session.script.keys("4tte/leaf_f.$<Enter>");
        let screen = session.script.screen();
        assert!(screen.contains("/leaf_f.$ 6.7% of all"), "{screen}");
        let mut found = Vec::new();
        for _ in 0..3 {
            session.script.keys("n");
            found.push(cursor(&session.script.screen()));
        }
        assert_eq!(found[0], found[2]);
        assert!(found[0] != found[1] && found.iter().all(|(_, name)| name == "leaf_fp"), "{found:?}");
        session.script.keys("N");
        assert_eq!(cursor(&session.script.screen()), found[1]);
        session.script.keys("<Esc>/vector<double, std::alloc<Enter>");
        assert!(session.script.screen().contains("0.2% of all"), "{}", session.script.screen());
        session.script.keys("<Esc>/nowhere<Enter>n");
        let screen = session.script.screen();
        assert!(screen.contains("/nowhere matches nothing") && screen.contains("no name here matches"), "{screen}");
        session.script.keys("<Esc>#");
        assert!(session.script.screen().contains("/^leaf_fp$ 6.7% of all"), "{}", session.script.screen());
        session.script.keys("y");
        let screen = session.script.screen();
        assert!(screen.contains("copied: solve;"), "{screen}");
        session.signals.send(15).unwrap();
    });
}

#[test]
fn the_mouse_selects_and_zooms_frames() {
    let left = MouseEventKind::Down(MouseButton::Left);
    with_profile((80, 24), options(), shared(solver()), move |session| {
        session.rounds(&rounds(20));
        session.script.keys("4tteg");
        // The third level of the icicle: header, tabs, border, two rows.
        session.script.mouse(left, 10, 5);
        assert_eq!(cursor(&session.script.screen()).1, "main");
        session.script.mouse(left, 10, 5);
        assert!(session.script.screen().contains("zoom: main"), "{}", session.script.screen());
        session.script.keys("<Esc>");
        let screen = session.script.screen();
        let row = screen
            .lines()
            .position(|line| line.contains("+ grow"))
            .or_else(|| screen.lines().skip(9).position(|line| line.contains("mid_b")).map(|row| row + 9))
            .unwrap();
        session.script.mouse(left, 20, u16::try_from(row).unwrap());
        assert_eq!(cursor(&session.script.screen()).0, row);
        session.signals.send(15).unwrap();
    });
}

#[test]
fn events_and_profile_share_the_event() {
    with_profile((120, 40), options(), shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("1G4");
        assert!(session.script.screen().contains("page-faults (2 of 2)"), "{}", session.script.screen());
        session.script.keys("[");
        assert!(session.script.screen().contains("L1_MISSES (1 of 2)"));
        session.script.keys("1");
        assert!(cursor(&session.script.screen()).1.contains("L1_MISSES"), "{}", session.script.screen());
        session.signals.send(15).unwrap();
    });
}

#[test]
fn profiles_in_ascii_and_mono() {
    let options = ScreenOptions {
        symbols: GlyphSet::Ascii,
        depth: Depth::Mono,
        theme: Theme::built_in("mono", Depth::Mono).unwrap(),
        ..options()
    };
    with_profile((80, 24), options, shared(solver()), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4/leaf<Enter>n");
        let screen = session.script.screen();
        assert!(screen.is_ascii(), "{screen}");
        golden("ascii-profile", &screen);
        session.signals.send(15).unwrap();
    });
}

#[test]
fn a_recursion_without_end_can_be_looked_at() {
    const DEEP: usize = 100_000;
    let mut tree = Tree::new(profile::TreeOptions { repeats: profile::RepeatFolding::Keep, ..Default::default() });
    let names: Vec<_> = (0..DEEP).map(|level| format!("f{}", level % 3)).collect();
    let frames: Vec<_> = names.iter().map(String::as_str).collect();
    add_stack(&mut tree, &frames, "L1_MISSES", 7);
    add_stack(&mut tree, &frames[..DEEP / 2], "L1_MISSES", 3);
    with_profile((80, 24), options(), shared(tree), |session| {
        session.rounds(&rounds(20));
        session.script.keys("4");
        let joined = session.script.screen();
        assert!(joined.contains("f0 > … >"), "{joined}");
        session.script.keys("tteEG");
        golden("profile-deep", &session.script.screen());
        session.script.resize(200, 60);
        let large = session.script.screen();
        assert!(large.contains("42 of 100001, ↑ more ╮"), "{large}");
        session.script.resize(80, 24);
        session.script.keys("mkkk/f1<Enter>nm<Esc>mtt");
        golden("profile-deep-flat", &session.script.screen());
        session.script.keys("tCE<Esc>tg<Enter>");
        session.signals.send(15).unwrap();
    });
}

#[test]
fn names_of_frames_steer_nothing() {
    let mut tree = Tree::default();
    let evil = "\x1b]0;title\x07evil\u{202e}\x1b[2J@\x1b[31m/lib\n.so";
    add_stack(&mut tree, &[evil, evil, "漢字の名前が長い関数@/x"], "e\x1b[2J", 5);
    for size in SIZES {
        for screen in [Screen::Profile, Screen::Events] {
            let losses = Losses { lost: 1, cut: 2, ..Losses::default() };
            let wanted = Picture {
                size,
                profile: Some((tree.clone(), stacks::StackQuality { losses, ..Default::default() })),
                ..Picture::default()
            };
            let text = tui::picture(monitor(20), &wanted, &ScreenOptions { screen, ..ScreenOptions::default() });
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'), "{text}");
        }
    }
}

#[test]
fn what_is_missing_of_stacks_stays_in_a_narrow_title() {
    let mut tree = Tree::default();
    add_stack(&mut tree, &["prog", "_start", "main", "work"], "an-event-with-a-long-name", 700);
    add_stack(&mut tree, &["prog", "work"], "an-event-with-a-long-name", 300);
    let title = |width| {
        let quality = stacks::StackQuality::of(stacks::UnwindMethod::Fp);
        let wanted = Picture { size: (width, 24), profile: Some((tree.clone(), quality)), ..Picture::default() };
        let options = ScreenOptions { screen: Screen::Profile, ..ScreenOptions::default() };
        tui::picture(monitor(20), &wanted, &options).lines().nth(2).unwrap().to_owned()
    };
    assert!(title(110).contains("70.0% complete, 30.0% cut"), "{}", title(110));
    assert!(title(70).contains(" ─ 30.0% cut ─"), "{}", title(70));
}

#[test]
fn the_words_about_a_selected_function_are_whole() {
    for width in (60..130).step_by(9) {
        with_profile((width, 24), options(), shared(solver()), move |session| {
            session.rounds(&rounds(2));
            session.script.keys("4ttegjjj");
            let screen = session.script.screen();
            let last = screen.lines().find(|line| line.contains("mid_a: ")).unwrap_or_else(|| panic!("{screen}"));
            let words = last.split(['─', '╰', '╯']).map(str::trim).find(|part| part.starts_with("mid_a: ")).unwrap();
            assert!(!words.contains('…') && words.contains(" samples"), "{width}: {last}");
            session.signals.send(15).unwrap();
        });
    }
}

#[test]
fn no_word_of_detail_is_cut_off() {
    let options = ScreenOptions { screen: Screen::Detail, ..ScreenOptions::default() };
    for event in [0, 1, 3, 4] {
        for width in 60..150 {
            let wanted = Picture { size: (width, 24), event: Some(event), ..Picture::default() };
            let text = tui::picture(monitor(640), &wanted, &options);
            let line = text.lines().find(|line| line.contains(" enabled ")).unwrap();
            let last = line.trim_end_matches('│').split_whitespace().last().unwrap();
            let is_label = |label: &&str| label.starts_with(last);
            assert!(!["group", "counted", "scale"].iter().any(is_label), "{width}: {line}");
        }
    }
}

#[test]
fn the_log_counts_what_is_told_of_stacks() {
    let file = stacks::UnnamedFile { path: "/tmp/x".into(), why: "it is no regular file".into() };
    let quality = stacks::StackQuality { unnamed: vec![file], ..Default::default() };
    let wanted = Picture { size: (120, 40), profile: Some((solver(), quality)), ..Picture::default() };
    let text = tui::picture(monitor(20), &wanted, &ScreenOptions { screen: Screen::Log, ..ScreenOptions::default() });
    assert!(text.contains("no names from /tmp/x"), "{text}");
    let warnings = text.lines().skip(3).filter(|line| line.contains('▲')).count();
    assert!(text.lines().nth(1).unwrap().contains(&format!("Log {warnings}▲")), "{text}");
    let entries = text.lines().skip(3).filter(|line| line.contains(" 00:00:") || line.contains("/tmp/x")).count();
    assert!(text.lines().nth(2).unwrap().contains(&format!(" {entries} of {entries} ")), "{text}");
}

#[test]
fn a_round_at_the_end_does_not_change_what_a_cell_of_groups_is() {
    with_loop((120, 40), options(), |session| {
        session.rounds(&rounds(20));
        let mut last = rounds(21).pop().unwrap();
        last.at = WallNs(20 * SECOND / 10 + SECOND / 250);
        session.rounds(&[last]);
        session.script.keys("5");
        let screen = session.script.screen();
        assert!(screen.contains("a cell is 100 ms"), "{screen}");
        session.signals.send(15).unwrap();
    });
}

#[test]
fn no_size_stops_a_profile() {
    let mut narrow = solver();
    for i in 0..3000 {
        add_stack(
            &mut narrow,
            &["solve", &format!("f{}@m{}", i % 700, i % 13), &format!("g{i}")],
            "L1_MISSES",
            i % 5 + 1,
        );
    }
    for tree in [Tree::default(), solver(), narrow] {
        for width in [0, 1, 2, 3, 5, 12, 20, 39, 40, 41, 60, 80, 120, 169, 170, 200, 250] {
            for height in [0, 1, 3, 4, 5, 6, 7, 9, 11, 12, 14, 20, 24, 44, 45, 60, 80] {
                let size = (width, height);
                let wanted = Picture {
                    size,
                    profile: Some((tree.clone(), stacks::StackQuality::default())),
                    ..Picture::default()
                };
                let text = tui::picture(
                    monitor(5),
                    &wanted,
                    &ScreenOptions { screen: Screen::Profile, ..ScreenOptions::default() },
                );
                assert_eq!(text.lines().count(), usize::from(if width == 0 { 0 } else { height }));
            }
        }
    }
}

/// Two metrics, one over its threshold, and one whose event isn't counted.
fn with_metrics() -> Monitor {
    let metric =
        |name: &str, formula: &str, threshold: Option<&str>, unit: &str, events: &[(&str, usize)]| MetricFormula {
            name: name.into(),
            formula: formula.into(),
            threshold: threshold.map(Into::into),
            factor: 1.0,
            unit: unit.into(),
            description: String::new(),
            events: events.iter().map(|(name, event)| ((*name).to_owned(), vec![EventIndex(*event)])).collect(),
        };
    let mut header = header();
    let (instructions, cycles) = (("instructions", 2), ("cycles", 1));
    header.metrics = vec![
        metric("IPC", "instructions / cycles", None, "insn per cycle", &[instructions, cycles]),
        metric(
            "L1_MPKI",
            "1000 * L1_MISSES / instructions",
            Some("L1_MPKI > 1"),
            "",
            &[("L1_MISSES", 3), instructions],
        ),
        metric("L3_MPKI", "1000 * L3_MISSES / instructions", None, "", &[("L3_MISSES", 6), instructions]),
    ];
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
    for round in rounds(350) {
        monitor.round(&round, 0);
    }
    monitor
}

#[test]
fn metrics_are_rows_of_their_own() {
    let mut scene = Scene::new(with_metrics(), None, &options());
    for (width, height) in SIZES.into_iter().chain([(60, 11), (39, 13)]) {
        let size = Picture { size: (width, height), ..Picture::default() };
        golden(&format!("metrics-{width}x{height}"), &scene.picture(Screen::Events, &size));
    }
}

/// Two CPUs with three events each: what is counted for each part of the target.
fn per_cpu() -> Monitor {
    let mut header = header();
    let events = std::mem::take(&mut header.events);
    for cpu in 0..2 {
        let part = |event: &MeasuredEvent| MeasuredEvent { scope: perfprop::sources::Scope::Cpu(cpu), ..event.clone() };
        header.events.extend([1, 3, 7].map(|event| part(&events[event])));
    }
    header.groups.clear();
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
    for round in rounds(350) {
        let of_cpu = |factor: u64| {
            [1, 3, 7]
                .map(|event| round.readings[event].map(|reading| Reading { count: reading.count / factor, ..reading }))
        };
        let readings = [of_cpu(1), of_cpu(3)].concat();
        monitor.round(&Round { at: round.at, readings, ..Round::default() }, 0);
    }
    monitor
}

#[test]
fn parts_fold_into_a_sum() {
    let size = Picture { size: (80, 24), ..Picture::default() };
    let mut scene = Scene::new(per_cpu(), None, &options());
    golden("parts-folded", &scene.picture(Screen::Events, &size));
    scene.keys("jE");
    golden("parts-unfolded", &scene.picture(Screen::Events, &size));
    scene.keys("ss");
    golden("parts-sorted", &scene.picture(Screen::Events, &size));
    scene.keys("C/CPU1<Enter>");
    golden("parts-filtered", &scene.picture(Screen::Events, &size));
    scene.keys("<Esc>");
    let large = Picture { size: (200, 60), ..Picture::default() };
    golden("parts-200x60", &scene.picture(Screen::Events, &large));
    let lines = Picture { size: (39, 6), ..Picture::default() };
    golden("parts-lines", &scene.picture(Screen::Events, &lines));
    golden("parts-detail-80x24", &scene.picture(Screen::Detail, &size));
    golden("parts-detail-200x60", &scene.picture(Screen::Detail, &large));
    // Rates per CPU second are those of both CPUs' time, totals their sums.
    let monitor = per_cpu();
    let parts = monitor.parts();
    assert_eq!(parts.iter().map(|parts| parts.events.clone()).collect::<Vec<_>>(), [[0, 3], [1, 4], [2, 5]]);
    let sum = monitor.sum(&parts[0].events).scaled.unwrap();
    assert_eq!(sum.value, monitor.row(0).scaled.unwrap().value + monitor.row(3).scaled.unwrap().value);
}

#[test]
fn a_number_per_instruction_needs_instructions() {
    let mut header = header();
    header.events = vec![header.events[3].clone()];
    header.groups.clear();
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    for round in rounds(40) {
        monitor.round(&Round { at: round.at, readings: vec![round.readings[3]], ..Round::default() }, 0);
    }
    let size = Picture { size: (80, 24), ..Picture::default() };
    let mut scene = Scene::new(monitor, None, &options());
    scene.keys("uuu");
    let screen = scene.picture(Screen::Events, &size);
    assert!(screen.contains("count instructions to see this unit"), "{screen}");
}

/// A screen of this size of a replay.
fn replayed(monitor: Monitor, screen: Screen, length: WallNs, profile: Option<Tree>) -> String {
    let mode = Mode::Replay { length, speed: 1.0, ending: tui::ReplayedEnding::Finished };
    let profile = profile.map(|tree| (tree, stacks::StackQuality::default()));
    let wanted = Picture { size: (120, 40), profile, ..Picture::default() };
    tui::picture(monitor, &wanted, &ScreenOptions { screen, mode, ..ScreenOptions::default() })
}

#[test]
fn a_replay_of_less_than_a_second_has_a_time() {
    let length = WallNs(400_000_000);
    let top = |screen: &str| screen.lines().next().unwrap_or_default().to_owned();
    let first = top(&replayed(monitor(4), Screen::Events, length, None));
    assert!(first.contains("REPLAY 400 ms/400 ms") && !first.contains(":00"), "{first}");
    let longer = top(&replayed(monitor(20), Screen::Events, WallNs(2 * SECOND), None));
    assert!(longer.contains("REPLAY 0:02/0:02") && longer.contains("00:00:02"), "{longer}");
}

#[test]
fn a_group_of_one_event_has_one_word() {
    let screen = replayed(monitor(20), Screen::Groups, WallNs(2 * SECOND), None);
    let line = |event: &str| screen.lines().find(|line| line.contains(event)).unwrap_or_default().to_owned();
    assert!(line("cycles").contains(" alone ") && line("L2_HITS").contains(" packed "), "{screen}");
    assert!(!screen.lines().any(|line| line.contains("1 counters")), "{screen}");
}

#[test]
fn what_is_selected_of_a_profile_is_a_share_of_the_same_as_in_the_table() {
    let mut tree = Tree::default();
    let event = tree.event(&profile::ProfileEvent::new("page-faults", SampleMeasure::Weighted("count".into())));
    // One sample stands for nine faults, nine for one each.
    for (name, samples, weight) in [("often", 1, 9), ("seldom", 9, 9)] {
        let frame = tree.frame(&Frame::function(name));
        let place = tree.sampled();
        tree.stack(place, [frame], event, Amount { samples, weight });
        tree.end(place);
    }
    let screen = replayed(monitor(20), Screen::Profile, WallNs(2 * SECOND), Some(tree));
    assert!(
        screen.contains("50.0% of page-faults in 1 of 10 samples")
            || screen.contains("50.0% of page-faults in 9 of 10 samples"),
        "{screen}"
    );
    // Where each sample stands for as much, the samples say the same.
    let screen = replayed(monitor(20), Screen::Profile, WallNs(2 * SECOND), Some(solver()));
    assert!(screen.contains(" samples, ") && !screen.contains("% of L1_MISSES in"), "{screen}");
}

#[test]
fn skipped_readings_are_told_once() {
    let mut monitor = fresh();
    for (place, round) in rounds(40).iter().enumerate() {
        // Two more are lost in each second.
        monitor.round(round, 2 * (place as u64 / 10));
    }
    let screen = replayed(monitor, Screen::Log, WallNs(4 * SECOND), None);
    let told: Vec<_> = screen.lines().filter(|line| line.contains("W01")).collect();
    assert!(told.len() == 1 && told[0].contains("6 readings skipped, totals are right"), "{screen}");
}
