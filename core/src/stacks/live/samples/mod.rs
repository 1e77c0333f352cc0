//! Makes samples of records, on a thread of its own that never waits; their places have no names yet.
//!
//! ```text
//! records ── sampler ── record_reader ──> raw_batch
//!                            └─ off_cpu, wakers: time on no CPU, and who ended it
//! ```

mod off_cpu;
mod raw_batch;
mod record_reader;
mod sampler;
mod wakers;

pub(super) use off_cpu::{LeftCpu, Waker};
#[cfg(test)]
pub(super) use raw_batch::StackFaults;
pub(super) use raw_batch::{PATIENCE, RawBatch, RawSample};
pub(super) use sampler::{ENABLE, END, StackSampler};
