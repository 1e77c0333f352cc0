//! Reads a byte of each cache line of an array, again and again: `array_walk BYTES`. It walks over it four times, and what
//! that costs rises where the array leaves a cache.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a program of its own")]

use std::hint::black_box;

/// The length of a cache line in bytes.
const LINE: usize = 64;

fn main() {
    let Some(bytes) = std::env::args().nth(1).and_then(|word| word.parse::<f64>().ok()).map(|bytes| bytes as usize)
    else {
        eprintln!("array_walk BYTES");
        std::process::exit(2);
    };
    let array = vec![1_u8; bytes];
    let mut sum = 0_u64;
    for _ in 0..4 {
        for line in array.chunks(LINE) {
            sum += u64::from(black_box(line[0]));
        }
    }
    println!("{sum}");
}
