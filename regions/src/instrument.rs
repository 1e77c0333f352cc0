//! Measures futures: a region that a task holds is open while the task is polled, and suspended while it waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use crate::progress::{Progress, Refused};
use crate::region::{Region, complain as complain_of_open};
use crate::thread::{self, Entered};

impl Region {
    /// Measures a future: its region is open while it is polled, and suspended while it waits. All of it is one call. Where
    /// one of the name is open on the thread that polls, that is said on standard error the first time.
    ///
    /// ```
    /// use perfprop_regions::Region;
    /// static LOAD: Region = Region::new("load");
    /// async fn load() -> u32 {
    ///     LOAD.instrument(async { 1 }).await
    /// }
    /// # drop(load());
    /// ```
    ///
    /// A region of another name that the future opens and holds when it waits stays open: this is said once. Measure
    /// that part with `instrument` as well.
    pub fn instrument<F: Future>(&'static self, future: F) -> Instrumented<F> {
        Instrumented { region: self, future: Some(Box::pin(future)), call: Progress::New, is_recursive: false }
    }

    /// Measures a future that polls others of the region: each is a call, and the time is that of the outermost one.
    pub fn instrument_recursive<F: Future>(&'static self, future: F) -> Instrumented<F> {
        let mut instrumented = self.instrument(future);
        instrumented.is_recursive = true;
        instrumented
    }
}

/// A future whose polls are a call of a region.
#[derive(Debug)]
pub struct Instrumented<F: Future> {
    region: &'static Region,
    future: Option<Pin<Box<F>>>,
    call: Progress,
    is_recursive: bool,
}

/// Closes the region of a poll that panics.
struct Open(Option<Entered>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(thread::leave);
    }
}

impl<F: Future> Future for Instrumented<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Pending };
        let mut open = Open(enter(&mut this.call, this.region, this.is_recursive));
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            if let Some(entered) = open.0.take() {
                if let Some(held) = thread::held_within(entered) {
                    complain(&held, this.region.name);
                }
                this.call.suspend(entered);
            }
            return polled;
        }
        drop(open);
        // What couldn't be resumed at the end took its time all the same.
        this.future = None;
        this.call.finish();
        polled
    }
}

/// Opens the region for a poll.
fn enter(call: &mut Progress, region: &Region, is_recursive: bool) -> Option<Entered> {
    match call.enter(|call| thread::enter(|table| region.number(table), call)) {
        Ok(entered) => return Some(entered),
        Err(Refused::Within) if is_recursive => region.count_again(),
        Err(Refused::Within) => complain_of_open(region.name),
        Err(Refused::Other) => {}
    }
    None
}

impl<F: Future> Drop for Instrumented<F> {
    /// A future that is dropped before it is ready took its time all the same.
    fn drop(&mut self) {
        self.call.finish();
    }
}

/// Says once in a process that a guard was held over an await.
#[cold]
#[expect(clippy::print_stderr, reason = "the caller has no other way to learn of it")]
fn complain(held: &str, region: &str) {
    static ONCE: Once = Once::new();
    let (held, region) = (held.escape_debug(), region.escape_debug());
    ONCE.call_once(|| {
        eprintln!(
            "perfprop: region '{held}' is held over an await in '{region}': it stays open while the task waits; measure that \
             part with Region::instrument (told once)"
        );
    });
}
