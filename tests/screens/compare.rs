//! Tests the comparison of recordings: verdicts, golden text and screens.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, never};
use perfprop::compare::{self, ComparedNumber, ProfileDifference, RunComparison, Side, Verdict, compare};
use perfprop::estimate::EstimatorKind;
use perfprop::monitor::{Measure, MeasureChoice, Monitor};
use perfprop::plan::EventIndex;
use perfprop::profile::{Amount, Frame, ProfileEvent, SampleMeasure, Tree};
use perfprop::rates::Confidence;
use perfprop::run::{End, Header, MeasuredTarget, MetricFormula};
use perfprop::sampling::SamplerMessage;
use perfprop::session::OutputLine;
use perfprop::sources::{Reading, RecordedRound, Round};
use perfprop::text;
use perfprop::threads::{ThreadReading, ThreadSnapshot};
use perfprop::tui::{
    self, Depth, Feed, GlyphSet, Mode, OtherRun, Others, Picture, PictureFormat, ReplayedEnding, Scene, Screen,
    ScreenOptions, Terminal, TerminalScript, Theme,
};
use perfprop::units::{CpuNs, WallNs};

use crate::builders::{self, SECOND, event, measured};
use crate::ratios;

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
    Header {
        perfprop: "0.1.0".into(),
        target: MeasuredTarget::Command { argv: vec!["./prog".into()], pid: 4121 },
        estimator: "linear".into(),
        ..builders::header(specs.iter().map(|(name, ..)| measured(event(name))))
    }
}

fn fresh(specs: &[Spec]) -> Monitor {
    builders::monitor(header(specs), vec![], EstimatorKind::Linear)
}

/// Rounds of so many tenths of a second; a multiplexed event has a slow wave, the others none.
fn rounds(specs: &[Spec], tenths: u64) -> Vec<RecordedRound> {
    let mut readings = vec![Reading::default(); specs.len()];
    let round = |tenth: u64| {
        for (reading, (_, rate, tenths_run)) in readings.iter_mut().zip(specs) {
            let running = tenths_run * SECOND / 100;
            let wave = if *tenths_run < 10 { 1.0 + 0.2 * (tenth as f64 * 0.21).sin() } else { 1.0 };
            reading.enabled += CpuNs(SECOND / 10);
            reading.running += CpuNs(running);
            reading.count += (rate * running as f64 / 1e6 * wave) as u64;
        }
        let readings = readings.iter().copied().map(Some).collect();
        RecordedRound { round: Round { at: WallNs(tenth * SECOND / 10), readings, ..Round::default() }, lost: 0 }
    };
    (1..=tenths).map(round).collect()
}

fn end(rounds: &[RecordedRound]) -> End {
    let last = &rounds.last().unwrap().round;
    End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
}

fn whole(specs: &[Spec], tenths: u64) -> Monitor {
    let (mut monitor, rounds) = (fresh(specs), rounds(specs, tenths));
    monitor.take_rounds(&rounds);
    monitor.end(end(&rounds));
    monitor
}

fn run(name: &str, specs: &[Spec], tenths: u64) -> OtherRun {
    let rounds = rounds(specs, tenths);
    let (end, specs) = (end(&rounds), specs.to_vec());
    OtherRun::new(name.into(), rounds.into(), end, move || fresh(&specs))
}

fn others() -> Others {
    Others::new("before.jsonl".into(), vec![], vec![run("after.jsonl", &B, 450)])
}

#[test]
fn functions_that_differ_stand_below_the_events_where_there_is_room() {
    let screen = |size, keys: &str| {
        let others = others().with_profile(Some(ratios::difference(5)));
        let mut scene = Scene::new(whole(&A, 600), Some(others), &options());
        scene.keys(keys);
        scene.picture(Screen::Compare, &Picture { size, ..Picture::default() })
    };
    for (width, height) in [(120, 40), (200, 60)] {
        let beside = screen((width, height), "");
        assert!(beside.contains("over time") && beside.contains("↑ higher"), "{beside}");
        golden(&format!("compare-functions-{width}x{height}"), &beside);
        // What has no history leaves them its room.
        let alone = screen((width, height), "/elapsed<Enter>");
        assert!(alone.contains("Functions ─ task-clock") && !alone.contains("over time"), "{alone}");
    }
    assert!(!screen((80, 24), "").contains("Functions"));
}

#[test]
fn recordings_of_different_programs_say_so() {
    let other = Header {
        target: MeasuredTarget::Command { argv: vec!["./other".into(), "\x1b[31m9".into()], pid: 7 },
        ..header(&B)
    };
    let [a, b] = [header(&A), other].map(|header| {
        let mut monitor: Monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
        monitor.end(End::default());
        monitor
    });
    let words = "different programs: A is ./prog, B is ./other \\x1b[31m9";
    let text = text::compare(&[("a", &a)], &[("b", &b)], TOTALS);
    assert!(text.contains(words), "{text}");
    assert!(!text::compare(&[("a", &a)], &[("a", &a)], TOTALS).contains("different programs"));
    let fresh = || {
        let target = MeasuredTarget::Command { argv: vec!["./other".into(), "\x1b[31m9".into()], pid: 7 };
        builders::monitor(Header { target, ..header(&B) }, vec![], EstimatorKind::Linear)
    };
    let rounds = rounds(&B, 450);
    let run = OtherRun::new("b".into(), rounds.clone().into(), end(&rounds), fresh);
    let others = Others::new("a".into(), vec![], vec![run]);
    let mut scene = Scene::new(whole(&A, 600), Some(others), &ScreenOptions::default());
    let screen = scene.picture(Screen::Compare, &Picture { size: (80, 24), ..Picture::default() });
    assert!(screen.contains(words), "{screen}");
}

/// The same with rates that are higher by some parts of a thousand, as a run is by chance.
fn jittered(specs: &[Spec], thousandths: [f64; 3]) -> Vec<Spec> {
    let jitter = |(place, (name, rate, tenths)): (usize, &Spec)| {
        (*name, rate * (1.0 + thousandths[place % 3] / 1000.0), *tenths)
    };
    specs.iter().enumerate().map(jitter).collect()
}

/// What whole runs of commands are compared by.
const TOTALS: MeasureChoice = MeasureChoice::Every(Measure::Total);

/// Chance, of five runs.
const CHANCE: [[f64; 3]; 5] =
    [[0.0, 31.0, -14.0], [4.0, -22.0, 9.0], [-3.0, 12.0, 21.0], [6.0, -7.0, -26.0], [-5.0, 18.0, 3.0]];

/// So many runs of each, the second ones by chance otherwise.
fn several(specs: [&[Spec]; 2], runs: usize) -> [Vec<Monitor>; 2] {
    let a = CHANCE.iter().map(|by| whole(&jittered(specs[0], *by), 600));
    let b = CHANCE.iter().rev().map(|by| whole(&jittered(specs[1], by.map(|by| -0.8 * by)), 600));
    [a.take(runs).collect(), b.take(runs).collect()]
}

fn compared([a, b]: &[Vec<Monitor>; 2]) -> RunComparison {
    let [a, b] = [a, b].map(|side| side.iter().collect::<Vec<_>>());
    compare(&a, &b, TOTALS, ComparedNumber::Estimate)
}

fn verdicts(found: &RunComparison) -> Vec<(&str, Verdict)> {
    found.events.iter().map(|one| (one.name.as_str(), one.verdict)).collect()
}

fn five_each() -> (Monitor, Others) {
    let name = |side: &str, run: usize| format!("{side}-{}.jsonl", run + 1);
    let a = CHANCE.iter().enumerate().skip(1).map(|(place, by)| run(&name("before", place), &jittered(&A, *by), 600));
    let second = CHANCE.iter().rev().enumerate();
    let b = second.map(|(place, by)| run(&name("after", place), &jittered(&B, by.map(|by| -0.8 * by)), 600));
    (whole(&jittered(&A, CHANCE[0]), 600), Others::new(name("before", 0), a.collect(), b.collect()))
}

fn golden(name: &str, screen: &str) {
    insta::with_settings!({ snapshot_path => ".", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, screen);
    });
}

fn options() -> ScreenOptions {
    let mode = Mode::Replay { length: WallNs(60 * SECOND), speed: 0.0, ending: ReplayedEnding::Finished };
    ScreenOptions { mode, screen: Screen::Compare, ..ScreenOptions::default() }
}

#[test]
fn one_run_each_gives_differences_and_never_a_verdict() {
    let found = compared(&[vec![whole(&A, 600)], vec![whole(&B, 450)]]);
    let few = Verdict::TooFewRuns { needs: 4 };
    let wanted = [
        ("cycles", few),
        ("L1_MISSES", few),
        ("L2_MISSES", few),
        // It never ran in the first, which is not 0.
        ("L3_MISSES", Verdict::NoNumber),
        ("page-faults", few),
        ("branch-misses", Verdict::OnlyIn(Side::A)),
        ("\x1b[31mcontext-switches", Verdict::OnlyIn(Side::B)),
        ("elapsed time", few),
    ];
    assert_eq!(verdicts(&found), wanted);
    assert!(found.events[0].change().is_some_and(|part| (part + 0.1007).abs() < 1e-3));
    assert_eq!((found.differing(), found.tested), (0, 5));
    assert_eq!(
        found.what_it_takes().unwrap(),
        "one run each: too few to tell; 5 comparisons need 4 runs of each: record -r 4"
    );
}

#[test]
fn two_runs_each_are_told_how_many_it_takes() {
    let found = compared(&several([&A, &B], 2));
    assert!(found.events.iter().all(|one| !one.verdict.is_sure() && one.interval.is_none()));
    assert_eq!(
        found.what_it_takes().unwrap(),
        "2 and 2 runs: too few to tell; 5 comparisons need 4 runs of each: record -r 4"
    );
}

#[test]
fn five_runs_tell_what_differs_by_more_than_chance() {
    let found = compared(&several([&A, &B], 5));
    let found: Vec<_> = found.events.iter().map(|one| (one.name.as_str(), one.verdict.word())).collect();
    let wanted = [
        ("cycles", "higher"),
        ("L1_MISSES", "within error"),
        ("L2_MISSES", "lower"),
        ("L3_MISSES", "no number"),
        ("page-faults", "within error"),
        ("branch-misses", "only in A"),
        ("\x1b[31mcontext-switches", "only in B"),
        ("elapsed time", "equal"),
    ];
    assert_eq!(found, wanted);
}

#[test]
fn a_recording_is_as_it_is_itself() {
    for runs in [1, 5] {
        let mut sides = several([&A, &A], runs);
        sides[1] = several([&A, &A], runs)[0].drain(..).collect();
        let found = compared(&sides);
        assert!(found.events.iter().all(|one| matches!(one.verdict, Verdict::Equal | Verdict::NoNumber)));
        assert!(found.events.iter().all(|one| one.change().is_none_or(|part| part == 0.0)));
    }
}

#[test]
fn what_was_not_counted_in_some_runs_is_no_zero() {
    let mut sides = several([&A, &B], 5);
    let without: Vec<Spec> = B.iter().filter(|(name, ..)| *name != "cycles").copied().collect();
    sides[1][0] = whole(&without, 600);
    let found = compared(&sides);
    let cycles = &found.events[0];
    assert_eq!((cycles.a.numbers.len(), cycles.b.numbers.len(), cycles.b.index), (5, 4, None));
    assert_eq!(cycles.verdict, Verdict::Higher);
}

#[test]
fn whole_runs_of_commands_are_compared_by_their_totals() {
    let header = fresh(&A).header().clone();
    let exited = End { exit: Some(perfprop::sources::command::Exit::Code(0)), ..End::default() };
    let measures = |end: Option<&End>| compare::measures([(&header, Some(&exited)), (&header, end)]);
    assert_eq!(measures(Some(&exited)), TOTALS);
    // Ended before its time, or cut off.
    assert_eq!([measures(Some(&End::default())), measures(None)], [MeasureChoice::Usual; 2]);
}

#[test]
fn as_text() {
    let (a, b) = (whole(&A, 600), whole(&B, 450));
    golden("compare-text", &text::compare(&[("before.jsonl", &a)], &[("after.jsonl", &b)], MeasureChoice::Usual));
    let names = ["1.jsonl", "2.jsonl", "3.jsonl", "4.jsonl", "5.jsonl"];
    for (runs, name) in [(2, "compare-text-2-runs"), (5, "compare-text-5-runs")] {
        let [a, b] = several([&A, &B], runs);
        let [a, b] = [&a, &b].map(|side| names.into_iter().zip(side).collect::<Vec<_>>());
        golden(name, &text::compare(&a, &b, TOTALS));
    }
}

#[test]
fn runs_as_screens_of_all_sizes() {
    let (own, others) = five_each();
    let mut scene = Scene::new(own, Some(others), &ScreenOptions { measures: TOTALS, ..options() });
    for size in [(80, 24), (120, 40), (200, 60), (40, 6)] {
        let picture = scene.picture(Screen::Compare, &Picture { size, ..Picture::default() });
        golden(&format!("compare-runs-{}x{}", size.0, size.1), &picture);
    }
}

#[test]
fn as_screens_of_all_sizes() {
    let mut scene = Scene::new(whole(&A, 600), Some(others()), &options());
    for size in [(80, 24), (120, 40), (200, 60), (60, 11), (40, 6), (20, 3)] {
        let picture = scene.picture(Screen::Compare, &Picture { size, ..Picture::default() });
        golden(&format!("compare-{}x{}", size.0, size.1), &picture);
    }
}

#[test]
fn hidden_rows_are_marked_at_any_width() {
    let (own, five) = five_each();
    for (own, others, enough) in [(whole(&A, 600), others(), false), (own, five, true)] {
        let mut scene = Scene::new(own, Some(others), &options());
        for width in [40, 48, 60, 79, 80, 120] {
            let picture = scene.picture(Screen::Compare, &Picture { size: (width, 9), ..Picture::default() });
            let top = picture.lines().nth(1).unwrap();
            assert!(top.contains(" of 7, ↓ more ╮"), "{picture}");
            assert_eq!(top.contains("of 7 differ"), enough && width >= 48, "{picture}");
        }
    }
}

#[test]
fn as_screens_in_ascii() {
    let plain = ScreenOptions {
        symbols: GlyphSet::Ascii,
        theme: Theme::built_in("mono", options().depth).unwrap(),
        ..options()
    };
    let mut scene = Scene::new(whole(&A, 600), Some(others()), &plain);
    for size in [(80, 24), (120, 40), (200, 60)] {
        let picture = scene.picture(Screen::Compare, &Picture { size, ..Picture::default() });
        assert!(picture.is_ascii(), "{picture}");
        golden(&format!("compare-ascii-{}x{}", size.0, size.1), &picture);
    }
}

#[test]
fn as_screens_of_all_depths_of_colour() {
    for (depth, name) in Depth::ALL.into_iter().zip(["true-colour", "256", "16", "no-colour"]) {
        let options = ScreenOptions { depth, theme: Theme::built_in("dark", depth).unwrap(), ..options() };
        let mut scene = Scene::new(whole(&A, 600), Some(others()), &options);
        let wanted = Picture { size: (80, 24), format: PictureFormat::Ansi, ..Picture::default() };
        let picture = scene.picture(Screen::Compare, &wanted);
        golden(&format!("depth-{name}-compare"), &picture.replace('\x1b', "^["));
    }
}

/// The first recording, fed by the test, with the others.
struct Fed {
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
    others: Option<Others>,
}

impl Feed for Fed {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn others(&mut self) -> Option<Others> {
        self.others.take()
    }

    fn end(&mut self, last: &Round, _lost: u64) -> End {
        End { at_ns: last.at, totals: last.readings.clone(), ..End::default() }
    }
}

fn with_loop(others: Option<Others>, test: impl FnOnce(&TerminalScript, &Sender<SamplerMessage>) + Send + 'static) {
    let (terminal, script) = Terminal::scripted(80, 24).unwrap();
    let (samples, samples_out) = bounded(0);
    let (signals, signals_out) = bounded(0);
    let mut feed = Fed { samples: samples_out, output: never(), others };
    let user = thread::spawn(move || {
        test(&script, &samples);
        signals.send(15.into()).unwrap();
    });
    tui::run_on(terminal, fresh(&A), &mut feed, &signals_out, &options()).unwrap();
    user.join().unwrap();
}

#[test]
fn sorted_filtered_opened_and_in_step() {
    with_loop(Some(others()), |script, samples| {
        let all = rounds(&A, 600);
        let send = |rounds: &[RecordedRound]| {
            rounds.iter().for_each(|RecordedRound { round, lost }| {
                samples.send(SamplerMessage::Round { round: round.clone(), lost: *lost }).unwrap();
            });
        };
        send(&all[..300]);
        // Both stand at the same time until the first ends; then both are whole.
        golden("compare-on-the-way", &script.screen());
        send(&all[300..]);
        samples.send(SamplerMessage::End).unwrap();
        script.keys("sssss");
        golden("compare-sorted", &script.screen());
        script.keys("/miss<Enter>");
        assert!(script.screen().contains(" 4 of 7 ╮"), "{}", script.screen());
        // There are no stacks to compare: it says what records them.
        script.keys("<Enter>");
        assert!(script.screen().contains("[4 Profile]"), "{}", script.screen());
        assert!(script.screen().contains("perfprop record -g -r 4 -- ./prog"), "{}", script.screen());
        script.keys("<Esc>");
        assert!(script.screen().contains("[0 Compare]"));
        script.keys("<Esc>uu");
        assert!(script.screen().contains("7 rows") && script.screen().contains("  /s "), "{}", script.screen());
        script.keys("<Tab>");
        assert!(script.screen().contains("[1 Events]"));
        script.keys("0Gy");
        assert!(script.screen().contains("copied: "), "{}", script.screen());
    });
}

/// A run in which a function has this weight.
fn tree(weight: u64) -> Tree {
    let mut tree = Tree::default();
    let event = tree.event(&ProfileEvent::new("cycles", SampleMeasure::Weighted("events".into())));
    let frames = ["main", "solve"].map(|name| tree.frame(&Frame::function(name)));
    let place = tree.sampled();
    tree.stack(place, frames, event, Amount { samples: weight, weight });
    tree
}

#[test]
fn enter_leads_to_the_functions_that_differ() {
    let [a, b] = [tree(100), tree(300)];
    let profile = ProfileDifference::of(&[&a], &[&b], TOTALS, Confidence::DEFAULT);
    with_loop(Some(others().with_profile(profile)), |script, samples| {
        for RecordedRound { round, lost } in rounds(&A, 100) {
            samples.send(SamplerMessage::Round { round, lost }).unwrap();
        }
        script.keys("4]");
        // One side alone was shown before.
        script.keys("0<Enter>");
        let screen = script.screen();
        assert!(screen.contains("[4 Profile]") && screen.contains("solve") && screen.contains("CHANGE"), "{screen}");
        script.keys("<Esc>");
        assert!(script.screen().contains("[0 Compare]"));
    });
}

#[test]
fn a_comparison_is_sorted_by_the_column_before_as_well() {
    with_loop(Some(others()), |script, samples| {
        for RecordedRound { round, lost } in rounds(&A, 100) {
            samples.send(SamplerMessage::Round { round, lost }).unwrap();
        }
        let before = script.screen();
        script.keys("s");
        assert_ne!(script.screen(), before);
        script.keys("<Left>");
        assert_eq!(script.screen(), before);
    });
}

#[test]
fn threads_of_a_comparison_are_found_by_name() {
    let [a, b] = [tree(100), tree(300)];
    let profile = ProfileDifference::of(&[&a], &[&b], TOTALS, Confidence::DEFAULT);
    with_loop(Some(others().with_profile(profile)), |script, samples| {
        for (tenth, RecordedRound { round, lost }) in rounds(&A, 100).into_iter().enumerate() {
            let solver = ThreadReading { pid: 4121, tid: 4121, name: "solve".into(), ..ThreadReading::default() };
            let snapshot = ThreadSnapshot { at_ns: round.at, threads: vec![solver], ..ThreadSnapshot::default() };
            let threads = tenth.is_multiple_of(10).then(|| Arc::new(snapshot));
            samples.send(SamplerMessage::Round { round: Round { threads, ..round }, lost }).unwrap();
        }
        script.keys("7<Enter>");
        let screen = script.screen();
        assert!(screen.contains("profiles are compared by names of threads: all of solve are found"), "{screen}");
        assert!(screen.contains("[4 Profile]"), "{screen}");
    });
}

#[test]
fn metrics_are_compared_where_both_sides_have_them() {
    let metric = |name: &str| MetricFormula {
        name: name.into(),
        formula: "L2_MISSES / cycles".into(),
        threshold: None,
        factor: 100.0,
        unit: "%".into(),
        description: String::new(),
        events: [("cycles", 0), ("L2_MISSES", 1)].map(|(name, place)| (name.into(), vec![EventIndex(place)])).into(),
    };
    let specs = |cycles: f64| [("cycles", cycles, 10), ("L2_MISSES", 400.0, 10)];
    let side = |cycles: f64, names: &[&str]| -> Vec<Monitor> {
        let metrics: Vec<_> = names.iter().map(|name| metric(name)).collect();
        let run = |by: &[f64; 3]| {
            let specs = jittered(&specs(cycles), *by);
            let header = Header { metrics: metrics.clone(), ..header(&specs) };
            let mut monitor = builders::monitor(header, vec![], EstimatorKind::Linear);
            monitor.take_rounds(&rounds(&specs, 100));
            monitor
        };
        CHANCE.iter().map(run).collect()
    };
    let found = compared(&[side(1e6, &["misses", "of A alone"]), side(2e6, &["misses"])]);
    let names: Vec<_> = found.events.iter().map(|one| one.name.as_str()).collect();
    assert_eq!((names, found.tested), (vec!["cycles", "L2_MISSES", "misses", "elapsed time"], 4));
    let misses = &found.events[2];
    assert_eq!((misses.verdict, misses.a.index), (Verdict::Lower, None));
    // 400 of a million are 0.04 %.
    assert!(misses.a.mean().is_some_and(|mean| (mean - 0.04).abs() < 1e-3), "{misses:?}");
}

#[test]
fn one_recording_has_nothing_to_compare() {
    with_loop(None, |script, _| {
        script.keys("10");
        assert!(script.screen().contains("Compare needs two recordings"));
        assert!(!script.screen().contains("0 Compare"));
    });
}
