//! Tests the macro and the attribute that make regions.

#![cfg(feature = "macros")]
#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::fmt::Debug;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use perfprop_regions::{Row, profile, record, snapshot, try_region};

fn rows() -> Vec<Row> {
    let tid: u32 =
        std::fs::read_link("/proc/thread-self").unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap();
    snapshot().unwrap().rows().into_iter().filter(|row| row.thread == tid).collect()
}

fn calls(name: &str) -> u64 {
    rows().into_iter().find(|row| row.name == name).map_or(0, |row| row.times.calls)
}

/// Polls until it is ready; gives how often that took, and the result.
fn run<T>(future: impl Future<Output = T>) -> (u32, T) {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    let mut polls = 1;
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return (polls, result);
        }
        polls += 1;
    }
}

/// Waits once.
async fn pause() {
    let mut waited = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[test]
fn the_macro_opens_a_region_each_time_it_is_reached() {
    record(true);
    for _ in 0..3 {
        let _open = perfprop_regions::region!("by macro");
        assert!(try_region("by macro").is_err());
    }
    const NAME: &str = "by macro";
    drop(perfprop_regions::region!(NAME));
    assert_eq!(calls("by macro"), 4);
}

#[profile]
fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

#[test]
fn a_function_is_one_open_region_with_all_its_calls() {
    record(true);
    assert_eq!(fibonacci(5), 5);
    // 2·F(6) - 1.
    assert_eq!(calls("macros::fibonacci"), 15);
}

struct Solver {
    steps: u32,
}

impl Solver {
    #[profile("solve")]
    pub(crate) fn solve<F: Fn(u32) -> Option<u32>, const N: usize>(
        &mut self,
        step: F,
        _open: [u32; N],
    ) -> Result<u32, String>
    where
        [u32; N]: Copy,
    {
        self.steps = step(self.steps).ok_or("no step")?;
        Ok(self.steps + _open[0])
    }

    #[profile(crate = perfprop_regions, "later")]
    async fn later(&mut self, by: u32) -> Result<Box<dyn Debug>, Box<dyn std::error::Error>> {
        pause().await;
        if by == 0 {
            return Err("nothing".into());
        }
        self.steps += by;
        Ok(Box::new(self.steps))
    }
}

#[test]
fn arguments_generics_and_errors_stay_as_they_are() {
    record(true);
    let mut solver = Solver { steps: 1 };
    assert_eq!(solver.solve(|steps| Some(steps + 1), [5]), Ok(7));
    assert_eq!(solver.solve(|_| None, [5]), Err("no step".to_owned()));
    assert_eq!(calls("solve"), 2);
}

#[test]
fn an_async_function_is_one_call_however_often_it_is_polled() {
    record(true);
    let mut solver = Solver { steps: 1 };
    let (polls, result) = run(solver.later(2));
    assert_eq!((polls, format!("{:?}", result.unwrap())), (2, "3".to_owned()));
    assert!(run(solver.later(0)).1.is_err());
    assert_eq!(calls("later"), 2);
}

#[profile]
async fn descend(depth: u32) -> u32 {
    pause().await;
    if depth == 0 { 0 } else { 1 + Box::pin(descend(depth - 1)).await }
}

#[profile]
async fn shown() -> impl Debug {
    pause().await;
    "shown"
}

#[test]
fn an_async_function_that_calls_itself_is_one_open_region() {
    record(true);
    assert_eq!(run(descend(3)).1, 3);
    assert_eq!(calls("macros::descend"), 4);
    assert_eq!(format!("{:?}", run(shown()).1), "\"shown\"");
    assert_eq!(calls("macros::shown"), 1);
}
