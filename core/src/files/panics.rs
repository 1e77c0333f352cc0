//! Catches panics of libraries that read files which others control.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// What `read` gives; `None` where it panics, as a library does that takes for granted what a broken file lacks.
/// Nothing is printed then.
pub fn unless_it_panics<T>(read: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !panic_is_caught() {
                before(info);
            }
        }));
    });
    let outer = IS_CAUGHT.replace(true);
    let given = panic::catch_unwind(AssertUnwindSafe(read));
    IS_CAUGHT.set(outer);
    given.ok()
}

/// Whether a panic of this thread would be caught now: it is no reason to end anything.
pub fn panic_is_caught() -> bool {
    IS_CAUGHT.get()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic, reason = "that is what is caught")]

    use super::*;

    #[test]
    fn what_panics_gives_nothing() {
        assert_eq!(unless_it_panics(|| 7), Some(7));
        assert_eq!(
            unless_it_panics(|| if panic_is_caught() {
                panic!("a broken file")
            }),
            None
        );
        assert!(!panic_is_caught());
        // One within another.
        assert_eq!(
            unless_it_panics(|| (unless_it_panics(|| panic!("again")), panic_is_caught())),
            Some((None::<()>, true))
        );
    }
}
