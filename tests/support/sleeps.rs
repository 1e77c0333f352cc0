//! Gives each test a `sleep` of its own to measure, and finds it among all processes.

#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

/// Seconds that no other test sleeps: the id of this process, and a number that it gives once.
pub(crate) fn own_seconds() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(100);
    format!("{}.{}", 200_000 + std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// How many processes sleep these seconds.
pub(crate) fn sleeping(seconds: &str) -> usize {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    processes.filter(|line| *line == format!("sleep\0{seconds}\0").as_bytes()).count()
}
