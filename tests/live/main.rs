//! Tests of real counts, samples and terminals on this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests panic and say why they skip"
)]

#[path = "../support/folders.rs"]
mod folders;
#[path = "../support/sleeps.rs"]
mod sleeps;

mod frames;
mod live;
mod measure;
mod stacks;
mod terminal;
