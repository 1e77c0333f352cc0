//! Tests how a replay is wound, and how a range of its time is chosen.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::{io, thread};

use crossbeam_channel::{Receiver, bounded, never};
use perfprop::monitor::{Monitor, ReadAhead, RecordingNotes};
use perfprop::profile::Tree;
use perfprop::recording::{Speed, TimeRange};
use perfprop::run::End;
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::{RecordedRound, Round};
use perfprop::stacks::StackQuality;
use perfprop::tui::{
    self, Feed, GlyphSet, Mode, Outline, Picture, ReplayedEnding, Scene, Screen, ScreenOptions, Terminal,
    TerminalScript, Timeline,
};
use perfprop::units::WallNs;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use crate::builders::SECOND;
use crate::programs::{SharedTree, shared, solver};
use crate::scripted::{fresh, golden, monitor, options, replayed, rounds, with_loop};

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
    profile: Option<SharedTree>,
}

impl Recorded {
    fn new(tenths: u64, plays: &Arc<Mutex<Vec<(WallNs, Speed)>>>) -> Self {
        let rounds = rounds(tenths).into_iter().map(|round| RecordedRound { round, lost: 0 }).collect();
        let (samples, output, plays) = (never(), never(), Arc::clone(plays));
        Self { samples, output, plays, rounds, ahead: ReadAhead::new(fresh()), profile: None }
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

    fn profile(&mut self, _until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        if let Some(tree) = &self.profile {
            see(&tree.lock().unwrap(), &StackQuality::default());
        }
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
        assert!(script.screen().contains("'nonsense' is no time"));
        script.keys(":1:23^U");
        assert!(script.screen().contains(" to ▏"), "{}", script.screen());
        script.keys("0:02^C");
        assert!(head(&script).contains("0:05/0:06"), "{}", head(&script));
        script.keys(":99<Enter>");
        assert!(script.screen().contains("REPLAY 0:06 "), "{}", script.screen());
        script.keys(":1<Enter>");
        assert!(head(&script).contains("0:01/0:06"), "{}", head(&script));
        script.keys("n");
        assert!(script.screen().contains("no level changes after this time"), "{}", script.screen());
        signals.send(15.into()).unwrap();
    });
    let options = ScreenOptions { mode, ..ScreenOptions::default() };
    tui::run_on(terminal, fresh(), &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
    let plays = plays.lock().unwrap();
    assert!(plays.contains(&(WallNs(5 * SECOND), Speed::Times(4.0))), "{plays:?}");
}

/// Uses the screens of a recording that plays nothing by itself, as large as the terminal is.
fn with_recording(size: (u16, u16), tenths: u64, test: impl FnOnce(&TerminalScript) + Send + 'static) {
    with_late_readings(size, tenths, WallNs(0), test);
}

/// The same, with readings that come so much later.
fn with_late_readings(
    size: (u16, u16),
    tenths: u64,
    late: WallNs,
    test: impl FnOnce(&TerminalScript) + Send + 'static,
) {
    let mut feed = Recorded::new(tenths, &Arc::default());
    feed.rounds.iter_mut().for_each(|recorded| recorded.round.at += late);
    with_feed(size, feed, test);
}

fn with_feed(size: (u16, u16), mut feed: Recorded, test: impl FnOnce(&TerminalScript) + Send + 'static) {
    let length = feed.rounds.last().unwrap().round.at;
    let mode = Mode::Replay { length, speed: 1.0, ending: ReplayedEnding::Finished };
    let (terminal, script) = Terminal::scripted(size.0, size.1).unwrap();
    let (signals, signals_out) = bounded(0);
    let user = thread::spawn(move || {
        test(&script);
        signals.send(15.into()).unwrap();
    });
    let options = ScreenOptions { mode, ..ScreenOptions::default() };
    tui::run_on(terminal, fresh(), &mut feed, &signals_out, &options).unwrap();
    user.join().unwrap();
}

#[test]
fn steps_go_from_interval_to_interval_where_readings_come_late() {
    with_late_readings((80, 24), 60, WallNs(7_000_000), |script| {
        let intervals = || {
            let head = script.screen().lines().next().unwrap().to_owned();
            head.split("n=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned()
        };
        script.keys("p:3<Enter>");
        assert_eq!(intervals(), "3");
        for wanted in ["4", "5", "6"] {
            script.keys(".");
            assert_eq!(intervals(), wanted);
        }
        // There is no more behind the end.
        script.keys(".");
        assert_eq!(intervals(), "6");
        for wanted in ["5", "4", "3", "2", "1", "0", "0"] {
            script.keys(",");
            assert_eq!(intervals(), wanted);
        }
        let head = script.screen().lines().next().unwrap().to_owned();
        assert!(head.contains("0:00/0:06"), "a length without tenths has none: {head}");
        // From within an interval to its ends.
        script.keys(":2.5<Enter>,");
        assert_eq!(intervals(), "2");
        script.keys(":2.5<Enter>.");
        assert_eq!(intervals(), "3");
    });
}

#[test]
fn each_press_is_a_step_though_the_way_is_long() {
    with_recording((80, 24), 14_000, |script| {
        let head = || loop {
            let head = script.screen().lines().next().unwrap().to_owned();
            if !head.contains("WINDING") {
                break head;
            }
        };
        script.keys("p:20:00<Enter>");
        assert!(head().contains("PAUSED 20:00/23:20"), "{}", head());
        script.keys(",,,");
        assert!(head().contains("PAUSED 19:57/23:20"), "{}", head());
        script.keys(",,.");
        assert!(head().contains("PAUSED 19:56/23:20"), "{}", head());
        script.keys("R:19:00<Enter>R");
        assert!(head().contains("RANGE 19:00"), "{}", head());
        script.keys(",,");
        assert!(head().contains("RANGE 18:58"), "{}", head());
    });
}

#[test]
fn the_end_of_a_replay_has_tenths_and_is_told_once() {
    with_recording((80, 24), 62, |script| {
        script.keys("p:end<Enter>");
        let head = script.screen().lines().next().unwrap().to_owned();
        assert!(head.contains("REPLAY 0:06.2 "), "{head}");
    });
}

#[test]
fn a_range_is_chosen_by_keys_moved_and_left() {
    with_recording((80, 24), 60, |script| {
        let head = || script.screen().lines().next().unwrap().to_owned();
        script.keys("p:2<Enter>R");
        assert!(script.screen().contains("range from 0:02"), "{}", script.screen());
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
        assert!(script.screen().contains("range from 0:01"), "{}", script.screen());
        // It may be chosen backwards.
        script.keys("<Esc>:5<Enter>R:2<Enter>R");
        assert!(head().contains("RANGE 0:02.0–0:05.0"), "{}", head());
    });
}

#[test]
fn esc_leaves_a_range_only_where_nothing_lies_over_it() {
    let feed = Recorded { profile: shared(solver()), ..Recorded::new(60, &Arc::default()) };
    with_feed((80, 24), feed, |script| {
        let head = || script.screen().lines().next().unwrap().to_owned();
        let is_in_range = || head().contains("RANGE 0:02.0–0:05.0");
        script.keys("p:2<Enter>R:5<Enter>R");
        // The command's output, a listing and an emphasis, a zoom: each takes an Esc.
        script.keys("6o<Esc>");
        assert!(is_in_range() && script.screen().contains("o Output"), "{}", script.screen());
        script.keys("4ttm<Esc>");
        assert!(is_in_range() && !script.screen().contains("CALL TREE"), "{}", script.screen());
        script.keys("<Esc>");
        assert!(is_in_range() && script.screen().contains("FUNCTIONS ("), "{}", script.screen());
        script.keys("ttj<Enter>");
        let zoomed = script.screen();
        script.keys("<Esc>");
        assert!(is_in_range() && script.screen() != zoomed, "{}", script.screen());
        script.keys("<Esc><Esc>");
        assert!(head().contains("PAUSED 0:05/0:06"), "{}", head());
        // One that has only begun is given up after what lies over it, too.
        script.keys("R6o<Esc>R");
        assert!(script.screen().contains("the range is empty"), "{}", script.screen());
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
        assert!(head().contains("PAUSED 0:03.1/0:06"), "{}", head());
        // The hand may leave the line.
        script.mouse(down, 33, 20);
        script.mouse(drag, 40, 12);
        script.mouse(drag, 57, 23);
        script.mouse(up, 57, 23);
        assert!(head().contains("RANGE 0:01.0–0:04.0"), "{}", head());
        script.keys("<Esc>");
        assert!(head().contains("PAUSED 0:04"), "{}", head());
        // One that begins elsewhere is none.
        script.mouse(down, 5, 5);
        script.mouse(drag, 40, 20);
        script.mouse(up, 40, 20);
        assert!(head().contains("PAUSED 0:04"), "{}", head());
    });
}

#[test]
fn time_lines_leave_where_there_is_no_room() {
    for (size, has_one) in [((80, 24), true), ((60, 20), true), ((80, 19), false), ((59, 30), false), ((200, 60), true)]
    {
        with_recording(size, 60, move |script| {
            script.keys("p:4<Enter>");
            assert_eq!(script.screen().contains("◆phase ▲warning ▼mark"), has_one, "{}", script.screen());
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
    monitor.take_rounds(&all[200..450]);
    monitor.close();
    monitor
}

#[test]
fn live_screens_are_not_wound() {
    with_loop((80, 24), options(), |session| {
        session.rounds(&rounds(20));
        session.script.keys("p");
        assert!(session.script.screen().contains("only a replay can be wound"));
        session.signals.send(15.into()).unwrap();
    });
}

#[test]
fn a_replay_says_its_time_once_and_of_less_than_a_second_too() {
    let length = WallNs(400_000_000);
    let top = |screen: &str| screen.lines().next().unwrap_or_default().to_owned();
    let first = top(&replayed(monitor(4), Screen::Events, length, None));
    assert!(first.contains("REPLAY 400 ms/400 ms") && !first.contains(":00"), "{first}");
    let longer = top(&replayed(monitor(20), Screen::Events, WallNs(2 * SECOND), None));
    assert!(longer.contains("REPLAY 0:02/0:02") && !longer.contains("00:00:02"), "{longer}");
}
