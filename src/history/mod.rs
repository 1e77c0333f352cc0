//! Summarizes the samples that a benchmark took of one version of a program, so that versions can be compared.
//!
//! The statistics are those of the benchmark runner asv, number by number: [`SampleStatistics`] of one version,
//! [`is_different`] of two.

mod digits;
mod laplace;
mod rank_test;
mod regressions;
pub mod results;
mod samples;
mod series;
mod table;

pub use digits::round_to_5_digits;
pub use rank_test::{RankTest, rank_test};
pub use regressions::{BenchmarkRegression, RegressionRule, THRESHOLD, all_regressions};
pub use samples::{SampleStatistics, is_different};
pub use series::{BenchmarkSeries, SeriesPoint, series};
pub use table::{SeriesFault, SeriesFaultKind, SeriesTable};
