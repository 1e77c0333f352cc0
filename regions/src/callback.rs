//! Hands rows to functions of the program.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use crate::snapshot::Snapshot;

type Callback = Box<dyn Fn(&Snapshot) + Send>;

static CALLBACKS: Mutex<Vec<Callback>> = Mutex::new(Vec::new());

/// Has a function called with what the regions of this process counted, at each [`report`] and when the process exits. From
/// now on regions are recorded.
///
/// At exit the thread-local variables of the main thread are gone, and a panic ends the function alone. The function must not
/// call [`report`] or `on_report`.
///
/// ```
/// use perfprop_regions::{on_report, region, report};
///
/// on_report(|snapshot| {
///     for row in snapshot.rows() {
///         eprintln!("{}: {} calls", row.name, row.times.calls);
///     }
/// });
/// drop(region("load"));
/// report();
/// ```
pub fn on_report(callback: impl Fn(&Snapshot) + Send + 'static) {
    crate::record(true);
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(callback));
}

/// Calls the functions that [`on_report`] was given.
pub fn report() {
    if let Some(snapshot) = crate::snapshot() {
        let callbacks = CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner);
        callbacks.iter().for_each(|callback| callback(&snapshot));
    }
}

/// Calls none of them any more.
pub(crate) fn forget() {
    CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// [`report`] at exit, where a panic can't go on and another thread may still report.
pub(crate) fn at_exit(snapshot: &Snapshot) {
    let Ok(callbacks) = CALLBACKS.try_lock() else { return };
    for callback in callbacks.iter() {
        // Its message was printed.
        let _ = catch_unwind(AssertUnwindSafe(|| callback(snapshot)));
    }
}
