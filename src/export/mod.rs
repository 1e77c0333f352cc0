//! Imports stacks from other tools' files into a tree, and exports trees to files for other tools.
//!
//! Reading is streaming but for pprof: memory grows with what differs between stacks, not with their
//! number. What was read before a fault is kept.

mod callgrind;
mod firefox;
mod flame;
mod folded;
mod known;
mod lines;
mod names;
mod perf_script;
mod pprof;
mod read;
mod recording;
mod speedscope;
mod write;

pub use names::Names;
pub use perf_script::{Periods, Process};
pub use read::{Events, Fault, Format, Imported, ReadOptions, What, read, sniff};
pub use write::{Target, Unit, WriteError, WriteOptions, write};
