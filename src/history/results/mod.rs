//! Keeps results on the disk: a folder for each machine, a file for each commit and environment.
//!
//! ```text
//! results/benchmarks.json
//! results/MACHINE/machine.json
//! results/MACHINE/HASH8-ENVIRONMENT.json
//! results/MACHINE/profiles/HASH8-ENVIRONMENT/BENCHMARK.folded
//! ```
//!
//! These are the files of the benchmark runner asv: perfprop reads asv's, and asv reads perfprop's. asv doesn't look at profiles.

mod commit;
mod errors;
mod json;
mod ordered;
mod profiles;
mod remove;
mod store;
mod suite;

pub(super) use commit::weight;
pub use commit::{BenchmarkResult, CommitResults, combinations};
pub use json::ResultNumber;
pub use ordered::OrderedMap;
pub use profiles::{ProfileOrigin, StoredProfile};
pub use remove::{Removal, RemovedResults};
pub use store::{MachineResults, ResultStore, ResultsError, ResultsProblem, StoredResults};
pub use suite::{Benchmark, BenchmarkList, MachineFacts, RESERVED, VERSION_KEY};
