//! How often `bench::paired` finds that a closure takes 1 % longer, within a second; and how often it finds what isn't there.
//! Run: `cargo bench --bench paired`. With `-- --one STEPS` it compares once, for benches/paired.py.
#![allow(clippy::print_stdout, reason = "prints a table")]

use std::hint::black_box;
use std::time::Duration;

use perfprop::bench::{PairedChange, paired};

const RUNS: usize = 20;
const STEPS: u64 = 20_000;

fn work(steps: u64) -> u64 {
    (0..steps).fold(1, |value, step| black_box(value ^ step).rotate_left(5))
}

/// How much longer so many steps more take.
fn change(more: u64) -> PairedChange {
    paired(|| work(black_box(STEPS)), || work(black_box(STEPS + more)), Duration::from_secs(1), 0.95)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(more) = words.iter().skip_while(|word| *word != "--one").nth(1).and_then(|word| word.parse().ok()) {
        let found = change(more);
        println!("{} {}", 100.0 * (found.ratio - 1.0), if found.is_apart() { "apart" } else { "alike" });
        return;
    }
    for (more, name) in [(STEPS / 100, "1 % more"), (0, "the same")] {
        let mut ratios = Vec::new();
        let mut found = 0;
        for _ in 0..RUNS {
            let one = change(more);
            found += usize::from(one.is_apart());
            ratios.push(one.ratio);
        }
        ratios.sort_by(f64::total_cmp);
        println!(
            "{name}: apart in {found} of {RUNS} runs of a second, ratios from {:.4} to {:.4}",
            ratios[0],
            ratios[RUNS - 1]
        );
    }
}
