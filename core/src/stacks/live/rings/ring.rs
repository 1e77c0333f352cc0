//! Reads records from all ring buffers in the order of time.
//!
//! ```text
//! CPU 0   ──a────c──────┊─e──      each ring is in order; a pass drains all of them, and gives on
//! CPU 1   ────b─────d───┊────      what happened before it began: a, b, c, d. What is written while
//!                  pass begins     it drains (e) waits for the next pass.
//! ```

#![expect(
    unsafe_code,
    reason = "perf-event2 joins no event to the ring of another, and gives descriptors as numbers only; nix sets no priority"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::libc;
use perf_event::{Counter, Sampler};

use super::record::{Malformed, RecordKind};

/// Lets this thread, which empties the buffers, go before others where it may: on a busy machine it would come too
/// late, and the kernel would find no room.
pub(in crate::stacks::live) fn go_first() {
    /// Of `nice`.
    const BEFORE_OTHERS: libc::c_int = -10;
    // SAFETY: the calls take numbers only; 0 is the calling thread. Who may not, or was started with a priority, is
    // left as it is.
    unsafe {
        if libc::getpriority(libc::PRIO_PROCESS, 0) == 0 {
            let _ = libc::setpriority(libc::PRIO_PROCESS, 0, BEFORE_OTHERS);
        }
    }
}

/// A ring buffer that the kernel writes records into.
pub(in crate::stacks::live) struct Ring {
    sampler: Sampler,
    pub(in crate::stacks::live) bytes: usize,
}

impl Ring {
    /// Gives an event a ring buffer of so many bytes, a power of two of pages.
    pub(super) fn new(owner: Counter, bytes: usize) -> io::Result<Self> {
        owner.sampled(bytes).map(|sampler| Self { sampler, bytes })
    }

    /// Makes the kernel write another event of the same CPU into this buffer.
    pub(super) fn join(&self, event: &Counter) -> io::Result<()> {
        /// `PERF_EVENT_IOC_SET_OUTPUT`.
        const SET_OUTPUT: u64 = nix::request_code_none!(b'$', 5);
        // SAFETY: both descriptors are open perf events for the length of the call, and the kernel only
        // reads the two numbers.
        let answer = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, self.sampler.as_raw_fd()) };
        nix::errno::Errno::result(answer).map(drop).map_err(io::Error::from)
    }

    /// Copies all records that are there behind those of other rings; says whether there were any. Where the kernel
    /// writes as fast as they are read, it stops after as many as the ring holds: those that were there at first are
    /// among them.
    pub(in crate::stacks::live) fn drain(&mut self, into: &mut Sorter) -> bool {
        let mut left = self.bytes;
        let mut has_some = false;
        while left > 0
            && let Some(record) = self.sampler.next_record()
        {
            left = left.saturating_sub(record.len());
            into.take(RecordKind { kind: record.ty(), misc: record.misc() }, record.data());
            has_some = true;
        }
        has_some
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps its descriptor open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.sampler.as_raw_fd()) }
    }
}

/// The room that is kept from one pass to the next, in bytes: a pass of the largest copies at 4,000 Hz on two CPUs.
const KEPT_ROOM: usize = 32 << 20;

/// Records of several rings.
#[derive(Debug, Default)]
pub(in crate::stacks::live) struct Sorter {
    entries: Vec<RingEntry>,
    bytes: Vec<u8>,
    /// Records that are kept for the next pass.
    later: Vec<u8>,
    /// By how many nanoseconds the clock of this process is ahead of that of the records.
    ahead: i64,
    pub(in crate::stacks::live) malformed: u64,
}

#[derive(Clone, Copy, Debug)]
struct RingEntry {
    time: u64,
    kind: RecordKind,
    start: usize,
    length: usize,
}

impl Sorter {
    /// A sorter that gives records the time of a clock that is so many nanoseconds ahead of theirs.
    pub(in crate::stacks::live) fn ahead_by(nanoseconds: i64) -> Self {
        Self { ahead: nanoseconds, ..Self::default() }
    }

    /// Takes a record, in two parts where it lies around the end of a ring.
    pub(super) fn take(&mut self, kind: RecordKind, parts: &[&[u8]]) {
        let start = self.bytes.len();
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        match kind.time(&self.bytes[start..]) {
            Ok(time) => {
                let (time, length) = (time.saturating_add_signed(self.ahead), self.bytes.len() - start);
                self.entries.push(RingEntry { time, kind, start, length });
            }
            Err(Malformed) => {
                self.bytes.truncate(start);
                self.malformed += 1;
            }
        }
    }

    /// Gives on all records before `horizon` in the order of time, and keeps the others.
    pub(in crate::stacks::live) fn give(&mut self, horizon: u64, mut to: impl FnMut(u64, RecordKind, &[u8])) {
        // Stable: what happened at the same time in one ring stays in its order.
        self.entries.sort_by_key(|entry| entry.time);
        let ready = self.entries.partition_point(|entry| entry.time < horizon);
        for entry in &self.entries[..ready] {
            to(entry.time, entry.kind, &self.bytes[entry.start..entry.start + entry.length]);
        }
        self.entries.drain(..ready);
        self.later.clear();
        for entry in &mut self.entries {
            let start = self.later.len();
            self.later.extend_from_slice(&self.bytes[entry.start..entry.start + entry.length]);
            entry.start = start;
        }
        std::mem::swap(&mut self.bytes, &mut self.later);
        // After a pass that came late.
        self.bytes.shrink_to(KEPT_ROOM);
        self.later.shrink_to(KEPT_ROOM);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A record that is nothing but a trailer with this time.
    fn body(time: u64) -> Vec<u8> {
        [0, time, 0, 0].iter().flat_map(|word: &u64| word.to_ne_bytes()).collect()
    }

    const KIND: RecordKind = RecordKind { kind: 999, misc: 0 };

    fn times(sorter: &mut Sorter, horizon: u64) -> Vec<u64> {
        let mut times = Vec::new();
        sorter.give(horizon, |time, _, bytes| {
            assert_eq!(bytes, body(time));
            times.push(time);
        });
        times
    }

    #[test]
    fn what_happens_during_a_pass_waits_for_the_next() {
        let mut sorter = Sorter::default();
        [10, 30, 20, 25].iter().for_each(|&time| sorter.take(KIND, &[&body(time)]));
        assert_eq!(times(&mut sorter, 25), [10, 20]);
        sorter.take(KIND, &[&body(27)]);
        assert_eq!(times(&mut sorter, u64::MAX), [25, 27, 30]);
        assert!(times(&mut sorter, u64::MAX).is_empty());
    }

    #[test]
    fn records_have_the_time_of_the_clock_of_this_process() {
        let given = |ahead: i64| {
            let (mut sorter, mut times) = (Sorter::ahead_by(ahead), Vec::new());
            [30, 10].iter().for_each(|&time| sorter.take(KIND, &[&body(time)]));
            sorter.give(u64::MAX, |time, _, _| times.push(time));
            times
        };
        assert_eq!([given(0), given(100), given(-20)], [vec![10, 30], vec![110, 130], vec![0, 10]]);
    }

    #[test]
    fn a_record_too_short_for_its_time_is_counted_and_left_out() {
        let mut sorter = Sorter::default();
        sorter.take(KIND, &[&[1, 2, 3]]);
        sorter.take(KIND, &[&body(1)]);
        assert_eq!(times(&mut sorter, u64::MAX), [1]);
        assert_eq!(sorter.malformed, 1);
    }

    proptest! {
        #[test]
        fn records_come_whole_and_in_order_however_rings_wrap(
            records in prop::collection::vec((0u64..50, 0usize..=32), 0..40),
            horizons in prop::collection::vec(0u64..60, 0..5),
        ) {
            let mut sorter = Sorter::default();
            let mut given = Vec::new();
            for (i, &(time, cut)) in records.iter().enumerate() {
                let bytes = body(time);
                let (front, back) = bytes.split_at(cut);
                sorter.take(KIND, &[front, back]);
                if let Some(&horizon) = horizons.get(i / 8).filter(|_| i % 8 == 7) {
                    let part = times(&mut sorter, horizon);
                    prop_assert!(part.is_sorted() && part.iter().all(|&time| time < horizon));
                    given.extend(part);
                }
            }
            given.extend(times(&mut sorter, u64::MAX));
            given.sort_unstable();
            let mut expected: Vec<_> = records.iter().map(|&(time, _)| time).collect();
            expected.sort_unstable();
            prop_assert_eq!(given, expected);
        }
    }
}
