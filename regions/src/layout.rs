//! Lays out the memory that a program shares with whoever watches it.
//!
//! ```text
//! header | names: offset and length of each | text of names | threads, each with a ring | nodes
//! ```
//!
//! All of it is zero at first, and most of it is never touched, so that it takes no memory. The program alone writes, but for
//! one word: [`Header::recording`]. While nodes of threads that have ended are added up, [`Header::folding`] is odd; otherwise a
//! node that is read while its thread writes is at most one call off.

use std::mem::size_of;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first eight bytes, written last: whoever sees them sees a whole header.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PPregion");
/// Changes when anything below does.
pub const VERSION: u32 = 8;

/// Names there is room for, and bytes of all their text.
pub const NAMES: usize = 32_768;
/// Bytes of the text of all names.
pub const TEXT: usize = 4 << 20;
/// Threads that there is room for. Where there are more, those that have ended share a slot.
pub const THREADS: usize = 1024;
/// Paths of regions, of all threads, that there is room for.
pub const NODES: usize = 65_536;
/// Enters and leaves that each thread keeps.
pub const MARKS: usize = 2048;
/// Regions of a thread that are open at once and shown; deeper ones are counted all the same.
pub const DEPTH: usize = 64;
/// Regions in the longest path. What is opened below begins a path of its own.
pub const DEEPEST: u32 = 128;
/// Counters that a program counts on its own.
pub const COUNTERS: usize = 4;
/// Events of the kernel or the CPU that are counted in each region.
pub const EVENTS: usize = 8;

/// The bit of [`Header::recording`] that is set by the program itself.
pub const BY_PROGRAM: u32 = 1;
/// The bit of [`Header::recording`] that is set in the file of a program whose command perfprop started. Who watches a
/// program that runs already sets one of the word's three other bytes.
pub const BY_WATCHER: u32 = 2;

/// What is at the beginning.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Regions are recorded where this isn't 0: [`BY_PROGRAM`], [`BY_WATCHER`], and a byte for each of three watchers.
    pub recording: AtomicU32,
    /// The process that writes.
    pub pid: AtomicU32,
    /// The name of that process; 0 where it isn't known.
    pub process_name: AtomicU32,
    /// The name of the present phase; 0 for none.
    pub phase: AtomicU32,
    /// How many names there are. The first is number 0 and empty.
    pub names: AtomicU32,
    /// Bytes of their text.
    pub text: AtomicU32,
    /// How many slots of threads were ever used. Slot 0 is that of threads that have ended and gave theirs away.
    pub threads: AtomicU32,
    /// How many nodes were ever used. Number 0 is the root of all threads.
    pub nodes: AtomicU32,
    /// Odd while nodes move from one thread to another, even otherwise.
    pub folding: AtomicU64,
    /// Calls that aren't counted, as there was no room for their path, or none for their thread, as a signal handler
    /// interrupted what counts, or as their name was open.
    pub lost: [AtomicU64; 4],
    /// What an enter and a leave add to the time of their own region, in nanoseconds: an `f64`'s bits.
    pub inner_ns: AtomicU64,
    /// What they add to the time of the region around, as above.
    pub outer_ns: AtomicU64,
    /// What a call that is counted while its region is open adds to the time of that region, and of those around, as above.
    pub again_ns: AtomicU64,
    /// How many events are counted, and their names.
    pub events: AtomicU32,
    /// Names of events.
    pub event_names: [AtomicU32; EVENTS],
    /// What an enter and a leave add to an event's count in their own region: an `f64`'s bits.
    pub event_inner: [AtomicU64; EVENTS],
    /// What they add to its count in the region around, as above.
    pub event_outer: [AtomicU64; EVENTS],
    /// What a call that is counted while its region is open adds to the count there and around, as above.
    pub event_again: [AtomicU64; EVENTS],
    /// How much more an enter and a leave added in most rounds in which they were measured, as above.
    pub event_excess: [AtomicU64; EVENTS],
    /// Names of the counters that the program counts; 0 for none.
    pub counter_names: [AtomicU32; COUNTERS],
}

/// Where the text of a name is.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Name {
    /// From the beginning of the text on.
    pub offset: AtomicU32,
    /// In bytes.
    pub length: AtomicU32,
}

/// An enter or a leave.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Mark {
    /// When, on CLOCK_MONOTONIC, in nanoseconds.
    pub time_ns: AtomicU64,
    /// Twice the node, and one more for an enter.
    pub node_and_enter: AtomicU64,
}

/// What becomes of a slot.
pub mod state {
    /// Nobody had it yet, or nobody has it any more.
    pub const FREE: u32 = 0;
    /// Its thread runs.
    pub const RUNS: u32 = 1;
    /// Its thread has ended, and its counts are kept.
    pub const ENDED: u32 = 2;
    /// Its thread measures what markers cost: what is counted and marked there is none of the program's.
    pub const MEASURES: u32 = 3;
}

/// A thread.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadSlot {
    /// Its number of the kernel; 0 in the slot of those that have ended.
    pub tid: AtomicU32,
    /// One of [`state`].
    pub state: AtomicU32,
    /// How many regions are open.
    pub depth: AtomicU32,
    /// Their nodes, the outermost first.
    pub open: [AtomicU32; DEPTH],
    /// Enters and leaves so far. The last [`MARKS`] are kept.
    pub marked: AtomicU64,
    /// Enters and leaves, one after the other and round.
    pub marks: [Mark; MARKS],
}

/// What one event counted in the calls of a node. Where it was counted for a part of a call, the call's count is scaled by
/// what part that was.
#[repr(C)]
#[derive(Debug, Default)]
pub struct EventCell {
    /// Calls in which it was counted for all or a part of the time.
    pub calls: AtomicU64,
    /// Calls in which it wasn't counted at all.
    pub missing: AtomicU64,
    /// Counts, not scaled.
    pub sum: AtomicU64,
    /// The least of a call, scaled.
    pub min: AtomicU64,
    /// The most of a call, scaled.
    pub max: AtomicU64,
    /// The sum of scaled counts of calls: an `f64`'s bits.
    pub scaled: AtomicU64,
    /// The sum of their squares, as above.
    pub squares: AtomicU64,
    /// The sum of squares of what stays counted, which isn't scaled, each divided by the stay's nanoseconds, as above. A stay
    /// has the calls that ended in one time on the counters without a break.
    pub squares_per_ns: AtomicU64,
    /// Stays so far.
    pub stays: AtomicU64,
    /// What the last stay has counted so far.
    pub stay_sum: AtomicU64,
    /// For how long it has counted, in nanoseconds.
    pub stay_running_ns: AtomicU64,
    /// For how long the thread's events had waited for counters when its last call ended, in nanoseconds.
    pub stay_waited_ns: AtomicU64,
    /// Time that was to be counted, also in calls without a count, in nanoseconds.
    pub enabled_ns: AtomicU64,
    /// The part of it that was counted.
    pub running_ns: AtomicU64,
}

/// Buckets of times of calls; the module `histogram` says which is which.
pub const BUCKETS: usize = 252;

/// A path of regions on a thread, in a phase.
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    /// Slot of the thread.
    pub thread: AtomicU32,
    /// The region around; 0 for none.
    pub parent: AtomicU32,
    /// Name of the region; 0 while the node isn't used.
    pub name: AtomicU32,
    /// Name of the phase; 0 for none.
    pub phase: AtomicU32,
    /// Name of the last of the regions that [`Node::outlasting`] counts; 0 where there are none.
    pub outlasting_name: AtomicU32,
    /// Regions that were opened in a call of this one, were open when it ended, and still are. The time until it ended was
    /// taken off this one's own, which is wrong if they were left without an end.
    pub outlasting: AtomicU64,
    /// Calls that ended.
    pub calls: AtomicU64,
    /// Those of them that were counted while the region was open, as where a function calls itself.
    pub again: AtomicU64,
    /// Those of them that recorded operations for a run backwards.
    pub recorded: AtomicU64,
    /// Their time, in nanoseconds, with what enter and leave cost.
    pub total_ns: AtomicU64,
    /// The part of the time of regions directly within that passed while this one wasn't open, less the time of others that
    /// passed in this one: an `i64`'s bits. It is 0 where regions close in the order that is the reverse of how they opened.
    pub outside_ns: AtomicU64,
    /// The shortest call.
    pub min_ns: AtomicU64,
    /// The longest.
    pub max_ns: AtomicU64,
    /// The sum of squares of calls' nanoseconds: an `f64`'s bits.
    pub squares: AtomicU64,
    /// Runs backwards.
    pub reverse_calls: AtomicU64,
    /// Their time.
    pub reverse_ns: AtomicU64,
    /// What the program counted itself.
    pub counters: [AtomicU64; COUNTERS],
    /// What events counted.
    pub events: [EventCell; EVENTS],
    /// How many calls took how long.
    pub histogram: [AtomicU32; BUCKETS],
}

/// Where the names begin.
pub const NAMES_AT: usize = 4096;
/// Where their text begins.
pub const TEXT_AT: usize = NAMES_AT + NAMES * size_of::<Name>();
/// Where the threads begin.
pub const THREADS_AT: usize = TEXT_AT + TEXT;
/// Where the nodes begin.
pub const NODES_AT: usize = THREADS_AT + THREADS * size_of::<ThreadSlot>();
/// Bytes of all.
pub const SIZE: usize = NODES_AT + NODES * size_of::<Node>();

const _: () = assert!(size_of::<Header>() <= NAMES_AT && THREADS_AT.is_multiple_of(8) && NODES_AT.is_multiple_of(8));
