//! Measures how long evaluating a relation takes, beside a general evaluator of compiled expressions, and
//! `linear` with 10,000 of them: `cargo bench --bench relations`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program for people")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use fasteval::{Compiler as _, Evaler as _};
use perfprop::estimate::{Estimator as _, Linear};
use perfprop::expr::{Dialect, Subject, VariableSlot, parse};
use perfprop::rates::{Delta, Tally};
use perfprop::relations;
use perfprop::units::{CpuNs, WallNs};

#[path = "../tests/support/builders.rs"]
mod builders;

use builders::raw_event;

/// Each in our words and in those of the other evaluator.
const FORMULAS: [(&str, &str); 4] = [
    ("2 * a + 50", "2 * a + 50"),
    ("a - b - c", "a - b - c"),
    ("1000 * a / b", "1000 * a / b"),
    ("min(a, b) / (b + c) * 0.25 + a", "min(a, b) / (b + c) * 0.25 + a"),
];

fn main() {
    println!("{:<34} {:>9} {:>9} {:>9} {:>7}", "formula", "value", "gradient", "fasteval", "ratio");
    for (ours, theirs) in FORMULAS {
        let [value, gradient] = ours_takes(ours);
        let other = theirs_takes(theirs);
        println!("{ours:<34} {value:>6.1} ns {gradient:>6.1} ns {other:>6.1} ns {:>7.2}", value / other);
    }
    println!("linear, 10,000 relations over 200 events: {:.2} ms an interval", linear_takes() * 1e3);
}

/// The least of several goes, in nanoseconds for one call.
fn nanoseconds(mut call: impl FnMut() -> f64) -> f64 {
    const CALLS: u32 = 200_000;
    let go = |_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(call());
        }
        start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
    };
    (0..9).map(go).fold(f64::INFINITY, f64::min)
}

fn ours_takes(formula: &str) -> [f64; 2] {
    let program = parse(formula, Dialect::Equation).unwrap().compile(|variable| match &variable.subject {
        Subject::Event(name) => ["a", "b", "c"].iter().position(|known| known == name).map(VariableSlot),
        Subject::From => None,
    });
    let program = program.unwrap();
    let values = [12.0, 5.0, 3.0];
    let mut slopes = [0.0; 3];
    let value = nanoseconds(|| program.eval(black_box(&values)));
    [value, nanoseconds(|| program.eval_with_gradient(black_box(&values), &mut slopes))]
}

fn theirs_takes(formula: &str) -> f64 {
    let mut slab = fasteval::Slab::new();
    let parsed = fasteval::Parser::new().parse(formula, &mut slab.ps).unwrap().from(&slab.ps);
    let compiled = parsed.compile(&slab.ps, &mut slab.cs);
    let mut values: BTreeMap<String, f64> =
        [("a", 12.0), ("b", 5.0), ("c", 3.0)].map(|(n, v)| (n.to_owned(), v)).into();
    nanoseconds(|| compiled.eval(&slab, black_box(&mut values)).unwrap())
}

/// Seconds an interval, the mean of some.
fn linear_takes() -> f64 {
    const EVENTS: usize = 200;
    const INTERVALS: u32 = 50;
    let events: Vec<_> = (0..EVENTS).map(|index| raw_event(&format!("E{index}"), index)).collect();
    let line = |index: usize| {
        let [a, b, c] = [index, 7 * index + 1, 13 * index + 2].map(|event| event % EVENTS);
        match index % 2 {
            0 => format!(r#"{{"relation": "E{a} + E{b} = 2 * E{c}"}}"#),
            _ => format!(r#"{{"eventFrom": "E{a}", "eventTo": "E{}", "expectedMean": "{{mean}}"}}"#, (a + 1) % EVENTS),
        }
    };
    let file = format!("[{}]", (0..10_000).map(line).collect::<Vec<_>>().join(","));
    let relations = relations::parse("bench", file.as_bytes()).relations;
    let mut linear = Linear::new(&events, &relations);
    let mut tally = Tally::new(EVENTS);
    let mut took = 0.0;
    for interval in 0..INTERVALS {
        let delta = |index: usize| {
            let count = 100_000 + u64::from(interval) * 37 % 1000 + index as u64;
            Some(Delta { count, enabled: CpuNs(100_000_000), running: CpuNs(16_000_000) })
        };
        let deltas: Vec<_> = (0..EVENTS).map(delta).collect();
        tally.round(&deltas);
        tally.end_interval();
        let start = Instant::now();
        linear.round(WallNs(0), WallNs(100_000_000), &deltas);
        linear.end_interval(&tally);
        took += start.elapsed().as_secs_f64();
    }
    took / f64::from(INTERVALS)
}
