//! perfprop measures many more events than a CPU has counters, live, and says how far each number
//! can be trusted.
//!
//! The modules follow the way of the data: [`events`] turns names into what the kernel is asked to
//! count, a plan puts them into groups, a source reads them in rounds, rounds become rates, rates
//! and [`relations`] become estimates with intervals, and screens and files show them.

pub mod callgrind;
#[cfg(feature = "cli")]
pub mod cli;
pub mod compare;
pub mod estimate;
pub mod events;
pub mod expr;
pub mod files;
pub mod machine;
pub mod measure;
pub mod metrics;
pub mod monitor;
pub mod names;
pub mod number;
pub mod plan;
pub mod profile;
pub mod rates;
pub mod recording;
pub mod relations;
pub mod run;
pub mod sampling;
pub mod session;
pub mod sources;
#[cfg(feature = "export")]
pub mod stack_formats;
pub mod stacks;
pub mod text;
#[cfg(feature = "tui")]
pub mod tui;
pub mod units;
