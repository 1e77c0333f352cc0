//! Prints a monitor as plain text for people without screens, and as CSV and JSON for programs.

mod bench;
mod bisect;
mod block;
mod compare;
mod csv;
pub mod difference;
mod fit;
mod history;
mod hyperfine;
mod json;
mod metric;
mod perf_metric;
mod phases;
mod region_repeats;
mod regions;
mod regressions;
mod repeats;
mod stacks;
mod steps;
mod summary;
mod truth;
mod wrapped;

pub use bench::{process_start, sweep};
pub use bisect::bisection;
pub use block::block;
pub use compare::{Named, compare};
pub use csv::{interval as csv_interval, totals as csv_totals};
pub use fit::{choices, fit, fit_graph, fit_graph_dot, prediction};
pub use history::{CommitNames, ToldSeries, benchmark_commits, benchmark_differences, benchmark_overview};
pub use hyperfine::{hyperfine_json, hyperfine_markdown};
pub use json::{interval as json_interval, totals as json_totals};
pub use phases::phases;
pub use region_repeats::RegionRepeats;
pub use regions::{json_regions, regions};
pub use regressions::{
    SourceLine, benchmark_regressions, json_regressions, junit_regressions, markdown_regressions, sarif_regressions,
};
pub use repeats::Repeats;
pub use stacks::stacks;
pub use steps::{json_steps, steps};
pub use summary::{Digits, interval, interval_heading, interval_in, summary, summary_in};
pub use truth::truth;
pub use wrapped::wrapped;
