//! Measures futures: a region that a task holds is open while the task is polled, and suspended while it waits.

use std::future::Future;
use std::pin::Pin;
use std::sync::Once;
use std::task::{Context, Poll};

use crate::region::{Region, complain as complain_of_open};
use crate::thread::{self, Call, Entered, Refusal, Suspended};

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

    /// The same for a future that polls others of the region: each is a call, and the time is that of the outermost one.
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

/// How far the call of a future is.
#[derive(Debug)]
enum Progress {
    /// It hasn't begun.
    New,
    /// It goes on at the next poll.
    Waits(Suspended),
    /// It is a part of another call, or isn't counted at all.
    Within,
    /// It was counted, or is open.
    Done,
}

impl Progress {
    /// Opens the region for a poll.
    fn enter(&mut self, region: &Region, is_recursive: bool) -> Option<Entered> {
        let call = match self {
            Self::New => Call::Plain,
            Self::Waits(suspended) => Call::Resumed(suspended),
            Self::Within | Self::Done => return None,
        };
        match (thread::enter(|table| region.number(table), call), &self) {
            (Ok(entered), _) => {
                *self = Self::Done;
                Some(entered)
            }
            (Err(Refusal::AlreadyOpen), Self::New) => {
                *self = Self::Within;
                if is_recursive {
                    region.count_again()
                } else {
                    complain_of_open(region.name)
                }
                None
            }
            _ => None,
        }
    }

    /// Closes it for as long as the task waits.
    fn suspend(&mut self, region: &Region, entered: Entered) {
        if let Some(held) = thread::held_within(entered) {
            complain(&held, region.name);
        }
        *self = thread::suspend(entered).map_or(Self::Done, Self::Waits);
    }
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
        let mut open = Open(this.call.enter(this.region, this.is_recursive));
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            if let Some(entered) = open.0.take() {
                this.call.suspend(this.region, entered);
            }
            return polled;
        }
        drop(open);
        // What couldn't be resumed at the end took its time all the same.
        this.future = None;
        this.finish();
        polled
    }
}

impl<F: Future> Instrumented<F> {
    fn finish(&mut self) {
        if let Progress::Waits(suspended) = std::mem::replace(&mut self.call, Progress::Done) {
            thread::finish(&suspended);
        }
    }
}

impl<F: Future> Drop for Instrumented<F> {
    /// A future that is dropped before it is ready took its time all the same.
    fn drop(&mut self) {
        self.finish();
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
