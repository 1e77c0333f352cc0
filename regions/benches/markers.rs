//! Measures what a marker costs beside two readings of the clock: `cargo bench -p perfprop-regions --bench markers
//! --config 'profile.bench.opt-level=3'`.
//!
//! Prints ratios of CPU time, the medians of alternated runs: of a region that is recorded, of one that isn't, and of eight
//! threads at once.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may fail")]

use std::hint::black_box;

use perfprop_regions::{Region, record};

const CALLS: u32 = 200_000;
const RUNS: usize = 15;

static REGION: Region = Region::new("region");

fn seconds(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[allow(unsafe_code, reason = "the clock of this thread's CPU time")]
    // SAFETY: the pointer is to a value of our own.
    unsafe {
        libc::clock_gettime(clock, &raw mut time);
    }
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// CPU time of a call, in nanoseconds.
fn cost(call: impl Fn()) -> f64 {
    let start = seconds(libc::CLOCK_THREAD_CPUTIME_ID);
    (0..CALLS).for_each(|_| call());
    (seconds(libc::CLOCK_THREAD_CPUTIME_ID) - start) / f64::from(CALLS) * 1e9
}

fn two_readings() {
    black_box(seconds(libc::CLOCK_MONOTONIC));
    black_box(seconds(libc::CLOCK_MONOTONIC));
}

fn marker() {
    drop(black_box(REGION.enter()));
}

/// The mean CPU time of a call on each of eight threads.
fn eight() -> f64 {
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| cost(marker))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>() / 8.0
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let (mut recorded, mut off, mut threads, mut clock) = (vec![], vec![], vec![], vec![]);
    for _ in 0..RUNS {
        let two = cost(two_readings);
        clock.push(two);
        record(true);
        let one = cost(marker);
        recorded.push(one / two);
        threads.push(eight() / one);
        record(false);
        off.push(cost(marker) / two);
    }
    println!("two readings of the clock: {:.1} ns", median(clock));
    println!("enter and leave, over that: {:.2} recorded, {:.3} not recorded", median(recorded), median(off));
    println!("on each of 8 threads, over one: {:.2}", median(threads));
}
