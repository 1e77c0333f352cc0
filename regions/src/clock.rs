//! Reads the clock that perfprop's samples are on.

use libc::{CLOCK_MONOTONIC, clock_gettime, timespec};

/// Nanoseconds on CLOCK_MONOTONIC.
#[inline]
#[expect(unsafe_code, reason = "the C library's function has no safe name here")]
pub(crate) fn now() -> u64 {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a `timespec` of our own.
    unsafe { clock_gettime(CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
