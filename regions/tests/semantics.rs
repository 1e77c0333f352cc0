//! Tests what regions count, in the words of the program that has them.

#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use perfprop_regions::{Certainty, PathRow, Region, Row, counter, phase, record, region, snapshot, try_region};

fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {}
}

/// The rows of this thread. Tests run beside one another.
fn rows() -> Vec<Row> {
    let tid = nix_tid();
    snapshot().unwrap().rows().into_iter().filter(|row| row.thread == tid).collect()
}

fn paths() -> Vec<PathRow> {
    let tid = nix_tid();
    snapshot().unwrap().paths().into_iter().filter(|row| row.thread == tid).collect()
}

fn nix_tid() -> u32 {
    std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap()
}

fn calls(name: &str) -> u64 {
    rows().into_iter().find(|row| row.name == name).map_or(0, |row| row.times.calls)
}

#[test]
fn regions_nest_and_close_in_any_order() {
    record(true);
    let outer = region("outer");
    let inner = region("inner");
    wait(Duration::from_micros(200));
    drop(outer);
    let further = region("further");
    drop(inner);
    drop(further);
    let found: Vec<Vec<String>> = paths().into_iter().map(|row| row.path).collect();
    assert_eq!(found, [vec!["outer"], vec!["outer", "inner"], vec!["outer", "inner", "further"]]);
    let rows = rows();
    assert!(rows.iter().all(|row| row.times.calls == 1 && row.times.forward_ns >= 0.0));
    let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap().times.clone();
    assert!(["outer", "inner"].iter().all(|name| of(name).forward_ns >= 190_000.0));
    let spread = of("outer").calls_ns.unwrap();
    assert_eq!((spread.mean, spread.variance, spread.p50 <= spread.max), (of("outer").forward_ns, None, true));
}

#[test]
fn one_name_is_open_once_on_a_thread() {
    record(true);
    let first = try_region("once").unwrap();
    let second = try_region("once").unwrap_err();
    assert_eq!((second.name(), second.to_string().as_str()), ("once", "region 'once' is already open on this thread"));
    drop(region("once"));
    let other = std::thread::spawn(|| try_region("once").is_ok());
    assert!(other.join().unwrap());
    assert_eq!(calls("once"), 0);
    drop(first);
    assert_eq!(calls("once"), 1);
    assert!(try_region("once").is_ok());
    assert_eq!(calls("once"), 2);
}

#[test]
fn a_function_that_calls_itself_is_one_open_region_with_all_its_calls() {
    static DEEP: Region = Region::new("deep");
    fn deep(times: u32) {
        let _open = DEEP.enter_recursive();
        wait(Duration::from_micros(50));
        if times > 1 {
            deep(times - 1);
        }
    }
    record(true);
    deep(4);
    let row = rows().into_iter().find(|row| row.name == "deep").unwrap();
    assert_eq!(row.times.calls, 4);
    assert!((190_000.0..10_000_000.0).contains(&row.times.forward_ns), "{row:?}");
}

#[test]
fn a_panic_closes_regions() {
    record(true);
    let ended = std::panic::catch_unwind(|| {
        let _open = region("panics");
        std::panic::resume_unwind(Box::new("a test"));
    });
    assert!(ended.is_err());
    assert_eq!((calls("panics"), try_region("panics").is_ok()), (1, true));
}

#[test]
fn a_phase_is_told_from_the_rest() {
    record(true);
    std::thread::spawn(|| {
        // Phases are the whole program's: other tests' regions may fall into this one too.
        phase("warmup");
        (0..3).for_each(|_| drop(region("phased")));
        phase("");
        (0..2).for_each(|_| drop(region("phased")));
        let row = rows().into_iter().find(|row| row.name == "phased").unwrap();
        assert_eq!((row.times.calls, row.warm_up.calls), (5, 3));
        let of_phases: Vec<_> = paths().into_iter().map(|row| (row.phase, row.times.calls)).collect();
        assert_eq!(of_phases, [(String::new(), 2), ("warmup".to_owned(), 3)]);
    })
    .join()
    .unwrap();
}

#[test]
fn a_program_counts_what_it_likes() {
    record(true);
    let (nodes, same) = (counter("chain_stack"), counter("chain_stack"));
    assert_eq!(nodes, same);
    let open = region("counted");
    open.count(nodes, 3);
    open.count(nodes, 4);
    drop(open);
    let snapshot = snapshot().unwrap();
    let place = snapshot.counters.iter().position(|name| name == "chain_stack").unwrap();
    let row = rows().into_iter().find(|row| row.name == "counted").unwrap();
    assert_eq!(row.counters[place], 7);
}

/// Is ready when it was polled so often.
struct Polled(u32);

impl Future for Polled {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        wait(Duration::from_micros(100));
        self.0 -= 1;
        if self.0 == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Polls a future, and adds the time that this takes.
fn poll(future: std::pin::Pin<&mut impl Future<Output = ()>>, took: &mut Duration) -> Poll<()> {
    let start = Instant::now();
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    *took += start.elapsed();
    polled
}

#[test]
fn a_future_that_waits_is_one_call_and_leaves_its_name_to_others() {
    static TASK: Region = Region::new("task");
    record(true);
    let (mut a, mut b) = (pin!(TASK.instrument(Polled(3))), pin!(TASK.instrument(Polled(2))));
    let mut took = Duration::ZERO;
    assert_eq!([poll(a.as_mut(), &mut took), poll(b.as_mut(), &mut took)], [Poll::Pending; 2]);
    assert_eq!(calls("task"), 0);
    wait(Duration::from_millis(5));
    assert!(poll(b.as_mut(), &mut took).is_ready() && poll(a.as_mut(), &mut took).is_pending());
    assert!(poll(a.as_mut(), &mut took).is_ready());
    let row = rows().into_iter().find(|row| row.name == "task").unwrap();
    assert_eq!(row.times.calls, 2);
    // The wait between polls is in none, however long other programs keep a poll from its CPU.
    assert!((450_000.0..=took.as_nanos() as f64).contains(&row.times.forward_ns), "{took:?} {row:?}");
}

/// The times of regions on a thread of their own: in all, and alone.
fn times_of(program: impl FnOnce() + Send + 'static) -> impl Fn(&str) -> (f64, f64) {
    record(true);
    let run = move || {
        program();
        rows()
    };
    let rows = std::thread::spawn(run).join().unwrap();
    move |name| {
        let times = &rows.iter().find(|row| row.name == name).unwrap().times;
        (times.forward_ns / 1e6, times.self_ns / 1e6)
    }
}

#[test]
fn a_region_that_is_closed_before_the_one_within_has_its_own_time() {
    let ms = |time| wait(Duration::from_millis(time));
    let times = times_of(move || {
        let around = region("around overlap");
        let first = region("overlap 1");
        ms(10);
        let second = region("overlap 2");
        ms(5);
        drop(first);
        ms(20);
        drop(second);
        ms(10);
        drop(around);
    });
    let ((all, around), (first, first_alone), (second, second_alone)) =
        (times("around overlap"), times("overlap 1"), times("overlap 2"));
    // Nothing else runs on the thread, so that all of its time is that of one region alone.
    assert!((all - around - first_alone - second_alone).abs() < 0.01, "{all} {around} {first_alone} {second_alone}");
    assert!(
        first_alone >= 9.9 && first - first_alone >= 4.9 && first - first_alone < second - 19.9,
        "{first} {first_alone}"
    );
    assert!(around >= 9.9 && second == second_alone, "{around} {second}");
}

/// The row of a region of this thread: whether its time alone is known, and what outlasted it.
fn outlasted(name: &str) -> (Certainty, Option<String>) {
    let times = rows().into_iter().find(|row| row.name == name).unwrap().times;
    (times.self_certainty(), times.outlasted_by)
}

#[test]
fn the_time_alone_is_unknown_while_a_region_that_began_in_a_call_outlasts_it() {
    record(true);
    std::thread::spawn(|| {
        let around = region("around outlasted");
        wait(Duration::from_micros(100));
        let outer = region("outlasted");
        let (first, second) = (region("outlasting 1"), region("outlasting 2"));
        wait(Duration::from_micros(100));
        drop(outer);
        assert_eq!(outlasted("outlasted"), (Certainty::Unknown, Some("outlasting 1".into())));
        drop(around);
        assert_eq!(outlasted("around outlasted"), (Certainty::Unknown, Some("outlasting 1".into())));
        // It outlasts the first one now, and none of the others.
        drop(first);
        assert_eq!(outlasted("outlasting 1"), (Certainty::Unknown, Some("outlasting 2".into())));
        assert_eq!([outlasted("outlasted").1, outlasted("around outlasted").1], [None, None]);
        drop(second);
        assert_eq!(outlasted("outlasting 1").1, None);
        assert_ne!(outlasted("around outlasted").0, Certainty::Unknown);
    })
    .join()
    .unwrap();
}

#[test]
fn the_time_alone_stays_unknown_where_a_region_never_ends_also_of_threads_long_gone() {
    record(true);
    for _ in 0..300 {
        let work = || {
            let left = region("left by a jump");
            std::mem::forget(region("never ends"));
            drop(left);
        };
        std::thread::spawn(work).join().unwrap();
    }
    let rows: Vec<_> = snapshot().unwrap().rows().into_iter().filter(|row| row.name == "left by a jump").collect();
    assert!(rows.iter().any(|row| row.thread == 0), "the first threads have one row");
    for row in rows {
        assert_eq!(row.times.self_certainty(), Certainty::Unknown, "{row:?}");
        assert_eq!(row.times.outlasted_by.as_deref(), Some("never ends"));
    }
}

#[test]
fn what_a_future_took_is_in_the_regions_around_its_polls_once_each() {
    let times = times_of(|| {
        static TASK: Region = Region::new("task of two polls");
        let mut task = pin!(TASK.instrument(Polled(2)));
        let mut context = Context::from_waker(Waker::noop());
        for name in ["first poll", "second poll"] {
            let _open = region(name);
            wait(Duration::from_millis(5));
            let _ = task.as_mut().poll(&mut context);
        }
    });
    let ((first, first_alone), (second, second_alone), (task, _)) =
        (times("first poll"), times("second poll"), times("task of two polls"));
    assert!(first_alone >= 4.9 && second_alone >= 4.9, "{first_alone} {second_alone}");
    assert!((first + second - first_alone - second_alone - task).abs() < 0.01, "{first} {second} {task}");
}

#[test]
fn regions_that_overlap_without_end_have_paths_that_end() {
    record(true);
    std::thread::spawn(|| {
        let mut last = region("0");
        for number in 1..1000 {
            // Each is closed after the next one was opened.
            let next = region(&(number % 3).to_string());
            drop(std::mem::replace(&mut last, next));
        }
        drop(last);
        let (rows, paths) = (rows(), paths());
        assert_eq!(rows.iter().map(|row| row.times.calls).sum::<u64>(), 1000);
        assert!(paths.len() < 400 && paths.iter().all(|row| row.path.len() <= 128), "{}", paths.len());
    })
    .join()
    .unwrap();
}

#[test]
fn rows_of_threads_that_came_and_went_by_the_thousand_add_up() {
    record(true);
    for _ in 0..30 {
        let threads: Vec<_> =
            (0..100).map(|_| std::thread::spawn(|| drop((region("many"), region("within"))))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let snapshot = snapshot().unwrap();
    let all: Vec<_> = snapshot.rows().into_iter().filter(|row| row.name == "many").collect();
    assert_eq!(all.iter().map(|row| row.times.calls).sum::<u64>(), 3000);
    assert!(all.len() < 600, "{} rows: those of threads long gone are one", all.len());
    // Another test has calls that are refused.
    assert_eq!((snapshot.lost.to_paths, snapshot.lost.to_threads), (0, 0));
}

#[test]
fn ten_thousand_names_have_a_row_each() {
    record(true);
    let names: Vec<String> = (0..10_000).map(|number| format!("name {number}, \"quoted\"\n\u{1b}[31m")).collect();
    std::thread::spawn(move || {
        names.iter().for_each(|name| drop(region(name)));
        let found = rows();
        assert_eq!(found.len(), names.len());
        assert!(names.iter().all(|name| found.iter().any(|row| row.name == *name)));
    })
    .join()
    .unwrap();
}

#[test]
fn times_of_regions_within_add_up_and_markers_are_taken_off() {
    record(true);
    std::thread::spawn(|| {
        let open = region("around");
        for _ in 0..20_000 {
            drop(region("empty"));
        }
        drop(open);
        let rows = rows();
        let of = |name: &str| rows.iter().find(|row| row.name == name).unwrap().times.clone();
        let (around, empty) = (of("around"), of("empty"));
        assert!((around.forward_ns - around.self_ns - empty.forward_ns).abs() < 1.0);
        let marker = snapshot().unwrap().marker;
        assert!(marker.inner_ns > 0.0 && marker.inner_ns <= marker.outer_ns, "{marker:?}");
        assert!(marker.again_ns > 0.0 && marker.again_ns <= marker.outer_ns * 3.0, "{marker:?}");
    })
    .join()
    .unwrap();
}
