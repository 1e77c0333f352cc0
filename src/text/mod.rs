//! Prints a monitor as plain text for people without screens, and as CSV and JSON for programs.

#[cfg(feature = "bench")]
mod bench;
#[cfg(feature = "history")]
mod bisect;
mod block;
mod compare;
mod csv;
mod diagnosis;
pub mod difference;
#[cfg(feature = "bench")]
mod fit;
#[cfg(feature = "history")]
mod history;
#[cfg(feature = "bench")]
mod hyperfine;
mod json;
mod metric;
mod narrow;
mod perf_metric;
mod phases;
mod profile_difference;
mod region_repeats;
mod region_tree;
mod regions;
#[cfg(feature = "history")]
mod regressions;
mod repeats;
mod stacks;
#[cfg(feature = "history")]
mod steps;
mod summary;
mod threads;
mod truth;
mod wrap;

/// Columns are no wider than this, whatever names from outside are: a format takes no width above 65,535.
const WIDEST: usize = 1000;

/// The characters of the longest of some texts, which a column has to be wide, and no more than [`WIDEST`].
fn column_width<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> usize {
    texts.into_iter().map(|text| text.as_ref().chars().count()).max().unwrap_or(0).min(WIDEST)
}

#[cfg(feature = "bench")]
pub use bench::{process_start, sweep};
#[cfg(feature = "history")]
pub use bisect::bisection;
pub use block::{block, is_another_reading};
pub use compare::{Named, compare};
pub use csv::{beside_intervals as csv_beside_intervals, interval as csv_interval, totals as csv_totals};
pub use diagnosis::{EvidenceScreens, PrintedNews, diagnoses, json_diagnoses};
#[cfg(feature = "bench")]
pub use fit::{choices, doubtful_prediction, fit, fit_graph, fit_graph_dot, lack_of_fit, prediction};
#[cfg(feature = "history")]
pub use history::{
    CommitNames, ToldSeries, benchmark_commits, benchmark_differences, benchmark_overview, benchmark_title,
};
#[cfg(feature = "bench")]
pub use hyperfine::{hyperfine_csv, hyperfine_json, hyperfine_markdown};
pub use json::{interval as json_interval, totals as json_totals};
pub use phases::phases;
pub use profile_difference::profile_difference;
pub use region_repeats::RegionRepeats;
pub use regions::{json_regions, regions};
#[cfg(feature = "history")]
pub use regressions::{
    SourceLine, benchmark_regressions, json_regressions, junit_regressions, markdown_regressions, sarif_regressions,
};
#[cfg(feature = "history")]
pub(crate) use regressions::{half_part, left};
pub use repeats::{Repeats, Repetition};
pub use stacks::{LittleSampled, stacks};
#[cfg(feature = "history")]
pub use steps::{json_steps, steps};
pub use summary::{Digits, SummaryLayout, interval, interval_heading, summary};
pub use threads::threads;
pub use truth::truth;
pub(crate) use wrap::wrapped;
pub use wrap::{folded, wrapped_message};
