//! Tests what Profile makes of several events and of two sides: golden screens of ratios and of differences.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::compare::ProfileDifference;
use perfprop::estimate::EstimatorKind;
use perfprop::monitor::{Measure, MeasureChoice, Monitor};
use perfprop::profile::{Amount, Frame, FrameKind, ProfileEvent, SampleMeasure, Tree};
use perfprop::rates::Confidence;
use perfprop::stacks::StackQuality;
use perfprop::tui::{self, Mode, Others, Picture, ReplayedEnding, Scene, Screen, ScreenOptions};
use perfprop::units::WallNs;

use crate::builders::{self, event, measured};

/// Paths with the samples of each of some events; a sample of each stands for a million.
type Paths = [(&'static [&'static str], &'static [u64])];

fn tree(events: &[&str], unit: &'static str, paths: &Paths) -> Tree {
    let mut tree = Tree::default();
    let measure = || SampleMeasure::Weighted(unit.into());
    let events: Vec<_> = events.iter().map(|name| tree.event(&ProfileEvent::new(name, measure()))).collect();
    let place = tree.sampled();
    for (path, samples) in paths {
        let frame = |(level, name): (usize, &&str)| {
            let (kind, module) =
                if level == 0 { (FrameKind::Process, "") } else { (FrameKind::Function, "/bin/solve") };
            tree.frame(&Frame { kind, module, ..Frame::function(name) })
        };
        let frames: Vec<_> = path.iter().enumerate().map(frame).collect();
        for (&event, &samples) in events.iter().zip(*samples) {
            let amount = Amount { samples, weight: samples * 1_000_000 };
            tree.stack(place, frames.iter().copied(), event, amount);
        }
    }
    tree.end(place);
    tree
}

fn monitor() -> Monitor {
    builders::monitor(builders::header([measured(event("cycles"))]), vec![], EstimatorKind::Scale)
}

fn options() -> ScreenOptions {
    let mode = Mode::Replay { length: WallNs(1), speed: 0.0, ending: ReplayedEnding::Finished };
    ScreenOptions { mode, screen: Screen::Profile, ..ScreenOptions::default() }
}

fn golden(name: &str, screen: &str) {
    insta::with_settings!({ snapshot_path => ".", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, screen);
    });
}

/// What a row of the flat list says behind a name.
fn row<'a>(screen: &'a str, name: &str) -> Vec<&'a str> {
    let is_row =
        |line: &&str| line.contains(&format!(" {name} ")) && !line.contains(['▏', '├']) && !line.contains("OF");
    let line = screen.lines().skip(4).find(is_row);
    line.unwrap_or_else(|| panic!("{name}: {screen}")).split_whitespace().filter(|word| *word != "▶").collect()
}

#[test]
fn sampled_events_are_held_against_one_another() {
    let paths: &Paths = &[
        (&["solve", "main", "chase"], &[400, 40, 90]),
        (&["solve", "main", "add"], &[200, 500, 1]),
        (&["solve", "main", "fill"], &[10, 0, 0]),
    ];
    let tree = tree(&["cycles", "instructions:u", "L1_MISSES"], "count", paths);
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let profile = Some((tree.clone(), StackQuality::default()));
        let wanted = Picture { size: (width, height), profile, ..Picture::default() };
        let mut scene = Scene::new(monitor(), None, &options());
        let screen = scene.picture(Screen::Profile, &wanted);
        golden(&format!("profile-ratio-{width}x{height}"), &screen);
        if width == 120 {
            // 40 of 400: 0.1, times or by e^(1.96 sqrt(1/40 + 1/400)) = 1.384.
            let words = row(&screen, "chase");
            assert!(words.contains(&"0.100") && words.contains(&"0.072–0.138"), "{words:?}");
            // Of nothing it isn't known how much more there is.
            assert!(row(&screen, "fill").contains(&"?"), "{screen}");
            scene.keys("]]");
            let misses = scene.picture(Screen::Profile, &Picture { size: (width, height), ..Picture::default() });
            assert!(misses.contains("/1k ins") && row(&misses, "chase").contains(&"2.25k"), "{misses}");
        }
    }
}

#[test]
fn a_short_profile_leaves_its_rows_to_the_chart() {
    let paths: &Paths = &[(&["solve", "main", "chase"], &[400]), (&["solve", "main", "add"], &[200])];
    let profile = Some((tree(&["cycles"], "count", paths), StackQuality::default()));
    let wanted = Picture { size: (120, 40), profile, ..Picture::default() };
    let screen = Scene::new(monitor(), None, &options()).picture(Screen::Events, &wanted);
    let profile: Vec<_> = screen.lines().skip_while(|line| !line.contains("╭ Profile")).collect();
    let rows = profile.iter().position(|line| line.contains('╰')).unwrap() + 1;
    // Two levels above four functions and their heads, in a frame; and no panel is lower.
    assert_eq!(rows, 10, "{screen}");
    assert!(screen.contains("╭ cycles"), "{screen}");
}

fn run(hot: u64, cold: u64, only: &'static str) -> Tree {
    let mut tree = tree(&["task-clock"], "nanoseconds", &[(&["solve", "main"], &[1])]);
    let event = tree.default_event().unwrap();
    let place = tree.sampled();
    for (name, samples) in [("hot", hot), ("cold", cold), (only, 20)] {
        let path = [(FrameKind::Process, "", "solve"), (FrameKind::Function, "/bin/solve", "main")];
        let path = path.into_iter().chain([(FrameKind::Function, "/bin/solve", name)]);
        let frame = |(kind, module, name)| tree.frame(&Frame { kind, module, ..Frame::function(name) });
        let frames: Vec<_> = path.map(frame).collect();
        tree.stack(place, frames, event, Amount { samples, weight: samples * 1_000_000 });
    }
    tree.end(place);
    tree
}

pub(crate) fn difference(runs: u64) -> ProfileDifference {
    let side = |hot: u64, only| (0..runs).map(|i| run(hot + 7 * i, 300 + 5 * (i % 3), only)).collect::<Vec<_>>();
    let (a, b) = (side(500, "before"), side(800, "after"));
    let [a, b] = [&a, &b].map(|side| side.iter().collect::<Vec<_>>());
    ProfileDifference::of(&a, &b, MeasureChoice::Every(Measure::Total), Confidence::DEFAULT).unwrap()
}

#[test]
fn functions_of_two_sides_are_marked_by_the_test_alone() {
    let others = |runs| Others::new("a.jsonl".into(), vec![], vec![]).with_profile(Some(difference(runs)));
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let picture = || Picture { size: (width, height), ..Picture::default() };
        let mut scene = Scene::new(monitor(), Some(others(5)), &options());
        let screen = scene.picture(Screen::Profile, &picture());
        golden(&format!("profile-difference-{width}x{height}"), &screen);
        assert!(row(&screen, "hot").contains(&"higher") && !row(&screen, "cold").contains(&"higher"), "{screen}");
        assert!(row(&screen, "after").contains(&"new") && row(&screen, "before").contains(&"gone"), "{screen}");
        // The tree, modules, and a side alone.
        scene.keys("tt");
        assert!(scene.picture(Screen::Profile, &picture()).contains("CALL TREE"));
        scene.keys("tt]");
        assert!(scene.picture(Screen::Profile, &picture()).contains("task-clock of A (2 of 3)"));
        scene.keys("[?");
        assert!(scene.picture(Screen::Profile, &picture()).contains("B has less of it") || height < 40);
        let mut one = Scene::new(monitor(), Some(others(1)), &options());
        let screen = one.picture(Screen::Profile, &picture());
        assert!(!screen.contains("higher") && !screen.contains("lower"), "{screen}");
        assert!(screen.contains("no function is marked"), "{screen}");
        one.keys("B");
        assert!(one.picture(Screen::Profile, &picture()).contains("compared by names of threads"));
    }
}

#[test]
fn differences_are_told_as_text() {
    insta::with_settings!({ snapshot_path => ".", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("profile-difference-text", perfprop::text::profile_difference(&difference(5)));
        insta::assert_snapshot!("profile-difference-text-one-run", perfprop::text::profile_difference(&difference(1)));
    });
}

#[test]
fn no_size_stops_a_difference() {
    for width in [0, 1, 5, 20, 39, 41, 60, 80, 120, 170, 250] {
        for height in [0, 3, 6, 9, 14, 24, 45, 80] {
            let others = Others::new("a.jsonl".into(), vec![], vec![]).with_profile(Some(difference(2)));
            let wanted = Picture { size: (width, height), ..Picture::default() };
            let text = Scene::new(monitor(), Some(others), &options()).picture(Screen::Profile, &wanted);
            assert!(text.lines().count() <= usize::from(height), "{width}x{height}");
        }
    }
    let _ = tui::picture(monitor(), &Picture::default(), &options());
}
