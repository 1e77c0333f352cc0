//! Tests of the program by what it prints and its exit codes, one module a subject.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests panic and say why they skip"
)]

#[path = "../support/builders.rs"]
mod builders;
#[path = "../support/folders.rs"]
mod folders;
#[path = "../support/goldens.rs"]
mod goldens;
#[path = "../support/piped.rs"]
mod piped;

mod bench;
mod cli;
mod cost;
mod emulate;
mod export;
mod export_timed;
mod history;
mod learn;
mod perf_stat;
mod publish;
mod regions;
mod replay_stacks;
mod stands_out;
