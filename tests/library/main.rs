//! Tests of the library, one module a subject.

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
#[path = "../support/imports.rs"]
mod imports;
#[path = "../support/scoring/mod.rs"]
mod scoring;
#[path = "../support/trees.rs"]
mod trees;

mod absence;
mod accuracy;
mod anchors;
mod cost;
mod cost_golden;
mod diagnosis;
mod event_presets;
mod event_syntax;
mod event_tables;
mod events;
mod export_golden;
mod findings;
mod layering;
mod metrics;
mod phases;
mod profile;
mod profile_golden;
mod recordings;
mod relations;
mod results_golden;
mod scenarios;
mod stat_output;
mod steps_golden;
