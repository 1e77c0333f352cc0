//! Simulates runs: how often verdicts are wrong, and how often they are given; docs/compare.md has the table.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests panic, and print their tables")]

use super::verdict::{Decision, RunSpread, decide};
use crate::random::SplitMix64;
use crate::rates::Confidence;

const EVENTS: usize = 12;
const PAIRS: usize = 1000;

/// Uniform numbers are multiplied until they fall below e^-mean.
fn poisson(random: &mut SplitMix64, mean: f64) -> f64 {
    let (mut count, mut product) = (0.0, random.uniform());
    while product > (-mean).exp() {
        count += 1.0;
        product *= random.uniform();
    }
    count
}

/// A run of an event: its place in the order in which runs of both sides alternated, and its side.
type Draw = fn(&mut SplitMix64, turn: f64, side: usize) -> f64;

fn normal(random: &mut SplitMix64, _: f64, _: usize) -> f64 {
    100.0 + random.normal()
}

fn lognormal(random: &mut SplitMix64, _: f64, _: usize) -> f64 {
    random.normal().exp()
}

/// A standard deviation up with every run.
fn drift(random: &mut SplitMix64, turn: f64, _: usize) -> f64 {
    100.0 + turn + random.normal()
}

/// One of two values with a little noise.
fn two_modes(random: &mut SplitMix64, _: f64, _: usize) -> f64 {
    if random.uniform() < 0.5 { 100.0 } else { 120.0 + random.normal() }
}

fn few_counts(random: &mut SplitMix64, _: f64, _: usize) -> f64 {
    poisson(random, 1.0)
}

/// B varies ten times as much.
fn unequal(random: &mut SplitMix64, _: f64, side: usize) -> f64 {
    100.0 + random.normal() * if side == 0 { 1.0 } else { 10.0 }
}

/// Both sides of an event, whose runs alternate as long as both have some left.
fn pair(random: &mut SplitMix64, draw: Draw, runs: [usize; 2]) -> (RunSpread, RunSpread) {
    let mut sides = [vec![], vec![]];
    let mut turn = 0.0;
    while sides[0].len() < runs[0] || sides[1].len() < runs[1] {
        for side in [0, 1] {
            if sides[side].len() < runs[side] {
                let value = draw(random, turn, side);
                sides[side].push(value);
                turn += 1.0;
            }
        }
    }
    let [a, b] = sides.map(|values| RunSpread::of(&values).unwrap());
    (a, b)
}

/// The part of comparisons in which one of these events, all drawn alike but for what is added to the first's B, gets
/// a verdict.
fn verdicts(draw: Draw, runs: [usize; 2], added: f64, of: std::ops::Range<usize>) -> f64 {
    let mut random = SplitMix64::new(20);
    let found = (0..PAIRS).filter(|_| {
        let mut pairs: Vec<_> = (0..EVENTS).map(|_| pair(&mut random, draw, runs)).collect();
        pairs[0].1.mean += added;
        let decisions = decide(&pairs, Confidence::DEFAULT);
        decisions[of.clone()].iter().any(|decision| matches!(decision, Decision::Tested { differs: true, .. }))
    });
    found.count() as f64 / PAIRS as f64
}

const DISTRIBUTIONS: [(&str, Draw); 5] =
    [("normal", normal), ("lognormal", lognormal), ("drift", drift), ("modes", two_modes), ("counts", few_counts)];

#[test]
fn five_runs_of_one_distribution_seldom_get_a_verdict() {
    for (name, draw) in DISTRIBUTIONS {
        for runs in [[2, 2], [3, 3], [4, 4], [5, 5]] {
            let found = verdicts(draw, runs, 0.0, 0..EVENTS);
            println!("{name:>10} {runs:?}: {:.1} %", found * 100.0);
            assert!(found <= 0.05, "{name} {runs:?}: {found}");
        }
    }
}

#[test]
fn nor_do_other_numbers_of_runs() {
    // Where the probability is 5 %, one series of 1,000 pairs in a hundred finds more than this.
    let most = 0.05 + 2.33 * (0.05_f64 * 0.95 / PAIRS as f64).sqrt();
    for (name, draw) in DISTRIBUTIONS {
        for runs in [[10, 10], [3, 5], [2, 10], [5, 8], [3, 10]] {
            // Runs of one side that come when those of the other are over can't be distinguished from a drift.
            if name == "drift" && runs == [3, 10] {
                continue;
            }
            let found = verdicts(draw, runs, 0.0, 0..EVENTS);
            println!("{name:>10} {runs:?}: {:.1} %", found * 100.0);
            assert!(found <= most, "{name} {runs:?}: {found}");
        }
    }
}

#[test]
fn a_difference_of_four_deviations_is_found_in_five_runs_and_no_other() {
    let found = verdicts(normal, [5, 5], 4.0, 0..1);
    println!("found {:.1} %, of others {:.1} %", found * 100.0, verdicts(normal, [5, 5], 4.0, 1..EVENTS) * 100.0);
    assert!(found >= 0.9, "{found}");
    assert!(verdicts(normal, [5, 5], 4.0, 1..EVENTS) <= 0.05);
}

#[test]
fn means_of_unequal_spread_are_nearly_as_safe() {
    // Welch's degrees of freedom are themselves an estimate; the table in the docs has these too.
    for runs in [[5, 5], [10, 10], [5, 8], [8, 5]] {
        let found = verdicts(unequal, runs, 0.0, 0..EVENTS);
        println!("   unequal {runs:?}: {:.1} %", found * 100.0);
        assert!(found <= 0.1, "{runs:?}: {found}");
    }
}
