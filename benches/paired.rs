//! How often `bench::paired` finds that a closure takes 1 % longer, within a second; and how often it finds what isn't there.
//! Run: `cargo bench --bench paired`.
#![allow(clippy::print_stdout, reason = "prints a table")]

use std::hint::black_box;
use std::time::Duration;

use perfprop::bench::paired;

const RUNS: usize = 20;
const STEPS: u64 = 20_000;

fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |value, step| black_box(value ^ step).rotate_left(5))
}

fn main() {
    for (more, name) in [(STEPS / 100, "1 % more"), (0, "the same")] {
        let mut ratios = Vec::new();
        let mut found = 0;
        for _ in 0..RUNS {
            let change =
                paired(|| work(black_box(STEPS)), || work(black_box(STEPS + more)), Duration::from_secs(1), 0.95);
            found += usize::from(change.is_apart());
            ratios.push(change.ratio);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{name}: apart in {found} of {RUNS} runs of a second, ratios from {:.4} to {:.4}",
            ratios[0],
            ratios[RUNS - 1]
        );
    }
}
