//! Tests of the screens, by pictures in text.

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

mod compare;
mod events;
mod keys;
mod lists;
mod looks;
mod phases;
mod profile;
mod programs;
mod ratios;
mod regions;
mod replay;
mod scripted;
mod threads;
mod tour;
