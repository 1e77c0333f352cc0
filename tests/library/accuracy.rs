//! Tests that `gp` stays nearer to the truth than scaling: each bound is what was measured, and a tenth.

#![allow(clippy::expect_used, reason = "tests may fail")]

use crate::scoring::gp::Scored;
use crate::scoring::{Part, Perf, Program, Score, Setup, Summary, programs, score, simulate};
use perfprop::estimate::gp::{Prior, Settings};

fn scores(programs: &[&Program], setup: &Setup, prior: &Prior) -> (Summary, Summary) {
    let (mut ours, mut scaled): (Vec<Score>, Vec<Score>) = Default::default();
    for program in programs {
        let (run, _) = simulate(&program.trace, Part::Whole, setup, 0, |init| Scored::new(init, prior, None));
        ours.extend(score(&run));
        let (run, _) = simulate(&program.trace, Part::Whole, setup, 0, |init| Perf::new(init.events.len()));
        scaled.extend(score(&run));
    }
    (Summary::of(&ours), Summary::of(&scaled))
}

fn family(kernel: bool) -> Vec<Program> {
    let all = programs("tests/traces".as_ref()).expect("tests/traces is there");
    all.into_iter().filter(|program| program.name.starts_with("k_") == kernel).collect()
}

/// Asserts the median error's ratio to scaling's, the coverage, and that totals aren't worse.
fn assert_accuracy(kernel: bool, setup: &Setup, prior: &Prior, ratio: f64, cover: f64) {
    let programs = family(kernel);
    let (ours, scaled) = scores(&programs.iter().collect::<Vec<_>>(), setup, prior);
    let found = ours.nl1[0] / scaled.nl1[0];
    assert!(found <= ratio, "{found} of scaling's error, {ratio} allowed: {ours:?} {scaled:?}");
    assert!(ours.cover >= cover, "{} of intervals hold the truth, {cover} wanted", ours.cover);
    assert!(ours.total[0] <= 1.001 * scaled.total[0], "{:?} {:?}", ours.total, scaled.total);
}

#[test]
fn without_a_prior_it_beats_scaling() {
    assert_accuracy(false, &Setup::default(), &Prior::default(), 0.71, 0.88);
}

#[test]
fn with_the_shipped_prior_it_beats_scaling_by_more() {
    assert_accuracy(false, &Setup::default(), &Prior::shipped(), 0.61, 0.90);
}

#[test]
fn kernel_events_are_estimated_better_than_by_scaling() {
    assert_accuracy(true, &Setup::default(), &Prior::shipped(), 0.27, 0.92);
}

#[test]
fn a_program_that_was_learnt_is_estimated_better() {
    let (setup, prior) = (Setup::default(), Prior::shipped());
    let settings = Settings { lesson_steps: 200, ..Settings::default() };
    let (mut learnt, mut unknown): (Vec<Score>, Vec<Score>) = Default::default();
    for program in family(false).iter().take(2) {
        let lesson = |init: &crate::scoring::Init| Scored::learning(init, &prior, None, settings.clone());
        let model = simulate(&program.trace, Part::Second, &setup, 1000, lesson).1.0.model();
        let run = |model| simulate(&program.trace, Part::First, &setup, 0, |init| Scored::new(init, &prior, model)).0;
        learnt.extend(score(&run(Some(&model))));
        unknown.extend(score(&run(None)));
    }
    let (learnt, unknown) = (Summary::of(&learnt), Summary::of(&unknown));
    assert!(learnt.nl1[1] < 0.95 * unknown.nl1[1] && learnt.cover >= 0.88, "{learnt:?} {unknown:?}");
}

#[test]
fn the_order_of_events_and_an_unknown_event_do_not_matter() {
    let mut programs = family(false);
    let program = programs.remove(0);
    let run = |trace: &crate::scoring::Trace| {
        let setup = Setup { events: 2, counters: 1, ..Setup::default() };
        simulate(trace, Part::Whole, &setup, 0, |init| Scored::new(init, &Prior::shipped(), None)).0
    };
    let plain = run(&program.trace);
    let mut other = program.trace.clone();
    let place = |name: &str| other.names.iter().position(|n| n == name).expect("there");
    let (a, b) = (place("cycles"), place("instructions"));
    other.names.swap(a, b);
    other.rows.iter_mut().for_each(|row| row.swap(a, b));
    let swapped = run(&other);
    for (row, other) in plain.answers.iter().zip(&swapped.answers) {
        for (event, answer) in row.iter().enumerate() {
            let at = swapped.names.iter().position(|name| *name == plain.names[event]).expect("there");
            let slack = 1e-6 * answer.estimate.abs() + 1e-6;
            assert!((answer.estimate - other[at].estimate).abs() <= slack, "{event}: {answer:?} {:?}", other[at]);
        }
    }
}
