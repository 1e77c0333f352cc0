//! Tests how every screen looks: depths of colour, ASCII, pictures, all sizes, names from outside.

#![cfg(feature = "tui")]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use perfprop::estimate::{
    Cause, Contribution, Estimate, Estimator, EstimatorKind, Moved, Quality, RelationState, Standing, scaled,
};
use perfprop::monitor::Monitor;
use perfprop::rates::{Error, Tally, Uncertain};
use perfprop::run::MeasuredTarget;
use perfprop::stacks;
use perfprop::tui::{
    self, Depth, GlyphSet, Mode, Picture, PictureFormat, ReplayedEnding, Scene, Screen, ScreenOptions, Theme,
};
use perfprop::units::WallNs;

use crate::builders::{self, SECOND};
use crate::programs::solver;
use crate::scripted::{EVENTS, SIZES, golden, header, monitor, options, output, relations, rounds, with_loop};

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
        session.signals.send(15.into()).unwrap();
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

pub(crate) fn told(value: f64, error: Error) -> Monitor {
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
