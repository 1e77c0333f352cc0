//! Measures events and computes what perfprop shows of them: the rooms below its texts, screens and command line.
//!
//! This is a crate of its own so that it is built beside the rest. Use the crate perfprop, which has all of this: its
//! front page says what each module is for.

// What everything uses. Blank lines keep this order.
pub mod units;

pub mod defaults;

pub mod codes;

pub mod random;

pub mod names;

pub mod files;

pub mod host;

pub mod expr;

// From names to counts.
pub mod events;

pub mod plan;

pub mod threads;

pub mod sources;

pub mod sampling;

pub mod rates;

pub mod number;

// Call stacks.
pub mod profile;

pub mod callgrind;

pub mod regions;
pub mod stacks;

// From counts to estimates.
pub mod run;

pub mod metrics;

pub mod relations;

pub mod estimate;

pub mod steps;

pub mod monitor;

pub mod diagnosis;

pub mod compare;

#[cfg(feature = "bench")]
pub mod cost;

pub mod machine;

pub mod session;

pub mod measure;

pub mod validate;

#[cfg(feature = "bench")]
pub mod bench;

// Tests share these with those of perfprop, which therefore name that crate.
#[cfg(test)]
extern crate self as perfprop;

#[cfg(test)]
#[path = "../../tests/support/builders.rs"]
mod builders;
