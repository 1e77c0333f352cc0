//! Tests regions of the spans of `tracing`.

#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, reason = "tests panic")]

use perfprop_regions::{PathRow, RegionLayer, record, region, snapshot};
use tracing::{Span, info_span};
use tracing_subscriber::layer::SubscriberExt;

/// The paths and calls of a thread that does something with spans.
fn paths(action: impl FnOnce() + Send + 'static) -> Vec<(String, u64)> {
    record(true);
    let run = || {
        tracing::subscriber::with_default(tracing_subscriber::registry().with(RegionLayer), action);
        let tid = std::fs::read_link("/proc/thread-self").unwrap();
        let tid: u32 = tid.file_name().unwrap().to_str().unwrap().parse().unwrap();
        snapshot().unwrap().paths().into_iter().filter(|row| row.thread == tid).map(calls).collect()
    };
    std::thread::spawn(run).join().unwrap()
}

fn calls(row: PathRow) -> (String, u64) {
    (row.path.join("/"), row.times.calls)
}

fn wanted(paths: &[(&str, u64)]) -> Vec<(String, u64)> {
    paths.iter().map(|(path, calls)| ((*path).to_owned(), *calls)).collect()
}

#[test]
fn spans_are_regions_and_nest_with_others() {
    let found = paths(|| {
        for _ in 0..3 {
            let _outer = info_span!("outer").entered();
            let _region = region("region");
            info_span!("inner").in_scope(|| {});
        }
    });
    assert_eq!(found, wanted(&[("outer", 3), ("outer/region", 3), ("outer/region/inner", 3)]));
}

#[test]
fn spans_within_spans_of_their_name_are_one_open_region() {
    fn descend(depth: u32) {
        let _span = info_span!("descend").entered();
        if depth > 0 {
            descend(depth - 1);
        }
    }
    assert_eq!(paths(|| descend(3)), wanted(&[("descend", 4)]));
}

#[test]
fn a_span_that_is_entered_again_and_again_is_one_call() {
    let found = paths(|| {
        // Two tasks of one thread, by turns.
        let tasks: [Span; 2] = [info_span!("task"), info_span!("task")];
        for _ in 0..4 {
            tasks.iter().for_each(|task| task.in_scope(|| {}));
        }
    });
    assert_eq!(found, wanted(&[("task", 2)]));
}

#[test]
fn a_span_that_is_entered_within_itself_or_closed_elsewhere_is_counted_once() {
    let found = paths(|| {
        let span = info_span!("itself");
        span.in_scope(|| span.in_scope(|| {}));
        drop(span);
        let moved = info_span!("moved");
        moved.in_scope(|| {});
        let subscriber = tracing_subscriber::registry().with(RegionLayer);
        std::thread::spawn(move || tracing::subscriber::with_default(subscriber, || drop(moved))).join().unwrap();
    });
    assert_eq!(found, wanted(&[("itself", 1)]));
    let moved = snapshot().unwrap().rows().into_iter().filter(|row| row.name == "moved");
    assert_eq!(moved.map(|row| row.times.calls).sum::<u64>(), 1);
}

#[test]
fn spans_that_are_left_in_another_order_close_all_the_same() {
    let found = paths(|| {
        let (a, b) = (info_span!("a"), info_span!("b"));
        let (in_a, in_b) = (a.enter(), b.enter());
        drop(in_a);
        drop(in_b);
        let _again = a.enter();
    });
    assert_eq!(found, wanted(&[("a", 1), ("a/b", 1)]));
}
