//! Runs two regions in turns, of which one does three times as much as the other: what is counted in them is as far apart.

use std::hint::black_box;

use perfprop_regions::region;

/// Steps of the shorter region.
const STEPS: u64 = 200_000;

fn main() {
    for _ in 0..40 {
        for (name, times) in [("short", 1), ("long", 3)] {
            let _open = region(name);
            for step in 0..times * STEPS {
                black_box(step);
            }
        }
    }
}
