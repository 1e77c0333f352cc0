//! Opens sampled events with the kernel's ring buffers, and reads their records in the order of time.
//!
//! ```text
//! request ── opener, open ──> ring buffers ── ring ──> record
//!                       └──> counters ── turns
//! ```

mod copy_size;
mod open;
mod opener;
mod record;
mod registers;
mod request;
mod ring;
mod tried;
mod turns;

pub(super) use copy_size::CopySize;
pub(super) use open::{OpenEvents, OpenWakeups, SampledAs, SampledCounter, open};
#[cfg(all(test, target_arch = "x86_64"))]
pub(super) use record::Branches;
pub(super) use record::{
    ChainEntry, DecodedRecord, Malformed, Mmap, RecordKind, RecordWords, SampleLayout, SamplePeriod, SampleRecord,
    SwitchDirection, Tasks, UserState, Wakeup,
};
pub use request::{
    DEFAULT_FREQUENCY, MACHINE_FREQUENCY, StackError, StackNeed, StackRequest, Unsampled, WAKEUPS, WakeupEvent,
    max_frequency,
};
pub(super) use ring::{Ring, Sorter, go_first};
pub(super) use turns::CounterTurns;
