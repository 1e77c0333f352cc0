//! Sorts numbers by merging: `merge_sort COUNT [SEED]`. Its cost grows with n log n.
#![allow(clippy::print_stderr, clippy::print_stdout, reason = "a program of its own")]

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<f64>().ok());
    let Some(Some(count)) = words.next() else {
        eprintln!("merge_sort COUNT [SEED]");
        std::process::exit(2);
    };
    let mut state = words.next().flatten().unwrap_or(1.0) as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut numbers: Vec<u64> = (0..count as usize).map(|_| next()).collect();
    let mut room = numbers.clone();
    sort(&mut numbers, &mut room);
    println!("{}", numbers.first().copied().unwrap_or(0));
}

/// Sorts `numbers`; `room` is as long, and is written over.
fn sort(numbers: &mut [u64], room: &mut [u64]) {
    if numbers.len() < 2 {
        return;
    }
    let middle = numbers.len() / 2;
    sort(&mut numbers[..middle], &mut room[..middle]);
    sort(&mut numbers[middle..], &mut room[middle..]);
    room.copy_from_slice(numbers);
    let (mut left, mut right) = (0, middle);
    for number in numbers {
        let takes_left = right == room.len() || left < middle && room[left] <= room[right];
        let from = if takes_left { &mut left } else { &mut right };
        *number = room[*from];
        *from += 1;
    }
}
