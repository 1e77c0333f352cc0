//! Measures what a marker costs beside two readings of the clock or of events: `cargo bench -p perfprop-regions --bench
//! markers --features tracing --config 'profile.bench.opt-level=3'`.
//!
//! Prints ratios of CPU time, the medians of alternated runs: of a region that is recorded, of one that isn't, of eight
//! threads at once, and of spans of `tracing`. A process that this starts measures regions that count events.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may fail")]

use std::hint::black_box;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use perfprop_regions::{EVENTS, Region, profile, record, region, snapshot};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, info_span};

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

fn by_name() {
    drop(black_box(region("by name")));
}

#[profile]
fn by_attribute() {
    black_box(());
}

fn span() {
    drop(black_box(info_span!("span").entered()));
}

/// The mean CPU time of a call on each of eight threads.
fn eight() -> f64 {
    let threads: Vec<_> = (0..8).map(|_| std::thread::spawn(|| cost(marker))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).sum::<f64>() / 8.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Takes every span, and does nothing with it.
struct NoOp(AtomicU64);

impl tracing::Subscriber for NoOp {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

/// A span's cost where nothing is done with it.
fn no_op_span() -> f64 {
    tracing::subscriber::with_default(NoOp(AtomicU64::new(1)), || cost(span))
}

/// A span's cost in a registry, and in one with our layer.
#[cfg(feature = "tracing")]
fn spans_in_a_registry() -> [f64; 2] {
    use tracing_subscriber::layer::SubscriberExt;
    let without = tracing::subscriber::with_default(tracing_subscriber::registry(), || cost(span));
    let with = tracing_subscriber::registry().with(perfprop_regions::RegionLayer);
    [without, tracing::subscriber::with_default(with, || cost(span))]
}

/// Names of what is measured, each with the cost over that of two readings of the clock.
fn of_time() {
    let mut ratios: [(&str, Vec<f64>); 6] = [
        ("a region, recorded", vec![]),
        ("a region, not recorded", vec![]),
        ("a region by a name known at run time", vec![]),
        ("a function with #[profile]", vec![]),
        ("a region on each of 8 threads, over one", vec![]),
        ("a span of tracing, subscriber that does nothing", vec![]),
    ];
    let mut clock = vec![];
    for _ in 0..RUNS {
        let two = cost(two_readings);
        clock.push(two);
        record(true);
        let one = cost(marker);
        let rest = [cost(by_name) / two, cost(by_attribute) / two, eight() / one, no_op_span() / two];
        record(false);
        let all = [one / two, cost(marker) / two].into_iter().chain(rest);
        ratios.iter_mut().zip(all).for_each(|((_, ratios), ratio)| ratios.push(ratio));
    }
    println!("two readings of the clock: {:.1} ns; over that:", median(&mut clock));
    ratios.iter_mut().for_each(|(name, ratios)| println!("  {name}: {:.3}", median(ratios)));
    #[cfg(feature = "tracing")]
    {
        record(true);
        let [without, with] = spans_in_a_registry();
        println!(
            "  a span in a registry: {:.2}, with our layer: {:.2}",
            without / median(&mut clock),
            with / median(&mut clock)
        );
    }
}

/// A group of software events of our own, and what a reading of it costs.
struct Group(i32);

impl Group {
    #[allow(unsafe_code, reason = "calls of the kernel")]
    fn new(events: &[u64]) -> Option<Self> {
        let mut leader = -1;
        for &event in events {
            // Type software, 64 bytes; config; period, sample type; group with both times; disabled if it leads.
            let attributes = [1 | 64 << 32, event, 0, 0, 11, u64::from(leader < 0), 0, 0_u64];
            // SAFETY: the pointer is to a value of our own, which says how long it is.
            let file = unsafe { libc::syscall(libc::SYS_perf_event_open, attributes.as_ptr(), 0, -1, leader, 8) };
            leader = if leader < 0 { file } else { leader };
            if file < 0 {
                return None;
            }
        }
        // SAFETY: it takes a number.
        unsafe { libc::ioctl(leader as i32, 0x2400, 0) };
        Some(Self(leader as i32))
    }

    #[allow(unsafe_code, reason = "a call of the kernel")]
    fn read(&self) {
        let mut words = [0_u64; 16];
        // SAFETY: the buffer is our own, and as long as is said.
        unsafe { libc::read(self.0, words.as_mut_ptr().cast(), size_of_val(&words)) };
        black_box(words);
    }
}

/// Lists of software events, by name and number.
const LISTS: [(&str, &[u64]); 3] = [
    ("page-faults", &[2]),
    ("task-clock,page-faults,context-switches,cpu-migrations", &[1, 2, 3, 4]),
    ("page-faults,page-faults,page-faults,page-faults,page-faults,page-faults,page-faults,page-faults", &[2; 8]),
];

fn of_events(list: &str) {
    let (_, events) = LISTS.iter().find(|(name, _)| *name == list).unwrap();
    let Some(group) = Group::new(events) else { return println!("events can't be counted here") };
    let (mut ratios, mut reads) = (vec![], vec![]);
    record(true);
    drop(REGION.enter());
    for _ in 0..RUNS {
        let two = cost(|| (group.read(), group.read()).0);
        reads.push(two);
        ratios.push(cost(marker) / two);
    }
    assert_eq!(snapshot().unwrap().events.len(), events.len());
    let (ratio, two) = (median(&mut ratios), median(&mut reads));
    println!("two readings of {} events: {two:.1} ns; a region that counts them, over that: {ratio:.3}", events.len());
}

fn main() {
    if let Ok(list) = std::env::var(EVENTS) {
        return of_events(&list);
    }
    of_time();
    for (list, _) in LISTS {
        let _ = Command::new(std::env::current_exe().unwrap()).env(EVENTS, list).status();
    }
}
