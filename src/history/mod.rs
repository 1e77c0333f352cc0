//! Says which commit changed a number: measures commits, keeps their results, and finds where a series lost.
//!
//! ```text
//! git ── commits ── checkout: built once ── run: in shuffled rounds ── results: a file for each commit
//!                                                                         │
//!                                  regressions ── steps ── series over commits
//! ```
//!
//! Results, their statistics and regressions are those of the benchmark runner asv, number by number.

mod asv_rules;
mod benches;
mod bisect;
mod checkout;
mod differences;
mod differing;
mod digits;
mod entries;
mod failures;
mod fields;
mod git;
mod imports;
mod laplace;
mod parallel;
mod rank_test;
mod regressions;
pub mod results;
mod run;
mod samples;
mod series;
mod summary;
mod table;

pub use asv_rules::{AsvRules, AsvRulesError, RegressionRules};
pub use benches::{BenchCommand, CONFIGURATION, HistoryPlan, PlanError};
pub use bisect::{BISECT_ERROR, BisectOutcome, bisect};
pub use checkout::{Built, Checkout, CheckoutError, unbuilt_program};
pub use differences::{BenchmarkDifference, ComparedResult, DifferenceVerdict, FACTOR, differences};
pub use differing::{DifferingParams, MeasuredPlace, differing_params, params_of_environments};
pub use digits::round_to_5_digits;
pub use entries::{ADDED, CountedOn, NANOSECONDS, SECONDS, counted_event, imported_results, machine_facts, quantity};
pub use failures::{BenchFailure, BrokenBenchmark, FailedCommit, HistoryError};
pub use git::{Commit, GitError, Repository, Tag, short, spread};
pub use imports::{ImportProblem, ImportedBenchmarks, MeasuredQuantity, in_name};
pub use parallel::on_all_cpus;
pub use rank_test::{RankTest, rank_test};
pub use regressions::{
    BenchmarkRegression, LEAST_NUMBERS, RegressionRule, SoughtSteps, THRESHOLD, UnclearRise, all_regressions,
    entry_names, unclear_rises,
};
pub use run::{CommitChoice, HistoryOptions, HistoryOutcome, HistoryProgress, measure_commits};
pub use samples::{SampleStatistics, is_different};
pub use series::{BenchmarkSeries, MissingNumber, SeriesPoint, series, series_params};
pub use summary::{BenchmarkSummary, benchmark_summaries};
pub use table::{MissingMark, SeriesFault, SeriesFaultKind, SeriesTable};

pub use crate::steps::StepMethod;
