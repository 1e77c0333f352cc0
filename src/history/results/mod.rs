//! Keeps results on the disk: a folder for each machine, a file for each commit and environment.
//!
//! ```text
//! results/benchmarks.json
//! results/MACHINE/machine.json
//! results/MACHINE/HASH8-ENVIRONMENT.json
//! ```
//!
//! These are the files of the benchmark runner asv: perfprop reads asv's, and asv reads perfprop's.

mod commit;
mod json;
mod ordered;
mod store;
mod suite;

pub use commit::{BenchmarkResult, CommitResults, combinations};
pub use json::ResultNumber;
pub use ordered::OrderedMap;
pub use store::{MachineResults, ResultStore, ResultsError, ResultsProblem, StoredResults};
pub use suite::{Benchmark, BenchmarkList, MachineFacts};
