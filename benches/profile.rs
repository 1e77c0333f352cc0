//! Measures the nanoseconds that entering and leaving a known frame takes: `cargo bench --bench profile`.

#![allow(clippy::print_stdout, reason = "a bench tells what it measured")]

use std::hint::black_box;
use std::time::Instant;

use perfprop::profile::{Frame, FrameId, Tree};

/// Calls of a frame and back, a round: few enough that the best of many rounds wasn't interrupted.
const CALLS: u32 = 100_000;
const ROUNDS: u32 = 100;

fn main() {
    // One callee, a few that alternate, many.
    for callees in [1, 4, 64, 1000] {
        let mut tree = Tree::default();
        let frames: Vec<FrameId> =
            (0..callees).map(|number| tree.frame(&Frame::function(&format!("f{number}")))).collect();
        let thread = tree.thread();
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let mut next = frames.iter().cycle();
            for _ in 0..CALLS {
                let frame = *next.next().unwrap_or(&FrameId::ROOT);
                tree.enter(black_box(thread), black_box(frame));
                tree.exit(thread);
            }
            best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
        }
        println!("{callees:>5} callees in turn: {best:.1} ns for enter and exit");
    }
    recursion();
}

/// Two functions that call each other: every other call is a back edge.
fn recursion() {
    let mut tree = Tree::default();
    let frames = ["even", "odd"].map(|name| tree.frame(&Frame::function(name)));
    let thread = tree.thread();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for _ in 0..CALLS / 1000 {
            for depth in 0..1000 {
                tree.enter(black_box(thread), black_box(frames[depth % 2]));
            }
            for _ in 0..1000 {
                tree.exit(thread);
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!("recursion, 1000 deep: {best:.1} ns for enter and exit; {} nodes", tree.len());
}
