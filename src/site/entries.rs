//! Computes what a site shows of each benchmark: its series with steps, intervals and regressions.

use std::collections::{BTreeMap, BTreeSet};

use super::SiteOptions;
use super::points::{NoNumber, PointDetail, PointDetails, SeriesParams, details};
use crate::files::file_stem;
use crate::history::results::{Benchmark, StoredResults, combinations};
use crate::history::{
    BenchmarkSeries, DifferingParams, LEAST_NUMBERS, SeriesPoint, SoughtSteps, differing_params, entry_names,
    on_all_cpus, series,
};
use crate::rates::Confidence;
use crate::steps::{LevelChange, Regression, Step, changes, detect};

/// A benchmark on one machine in one environment.
#[derive(Debug)]
pub(super) struct SiteSeries {
    /// Its name in names of files; no two are alike.
    pub(super) stem: String,
    pub(super) benchmark: String,
    pub(super) unit: String,
    /// The names of its parameters.
    pub(super) param_names: Vec<String>,
    pub(super) params: SeriesParams,
    /// What of the machine and environment tells it from other series.
    pub(super) differing: DifferingParams,
    /// The commits that have a number, or a reason for none.
    pub(super) revisions: Vec<u64>,
    /// An entry for each combination of parameters.
    pub(super) lines: Vec<SiteLine>,
}

/// A benchmark with one combination of its parameters.
#[derive(Debug)]
pub(super) struct SiteLine {
    /// The benchmark with its parameters: `sort('quick', 10)`.
    pub(super) entry: String,
    /// The values of its parameters.
    pub(super) values_of_params: Vec<String>,
    /// A number for each of the revisions.
    pub(super) values: Vec<Option<f64>>,
    /// How much each counts among them.
    pub(super) weights: Vec<Option<f64>>,
    /// What else is known of each.
    pub(super) details: Vec<PointDetail>,
    /// The steps; ends are places among the revisions: the first point and the one after the last.
    pub(super) steps: Vec<Step>,
    /// How each step but the first differs from the one before it.
    pub(super) changes: Vec<LevelChange>,
    /// The regressions; positions are revisions.
    pub(super) rises: Vec<Regression>,
}

impl SiteSeries {
    /// The file of its points.
    pub(super) fn file(&self) -> String {
        format!("data/series-{}.js", self.stem)
    }
}

/// The series of all benchmarks.
pub(super) fn site_series(
    stored: &StoredResults,
    revisions: &BTreeMap<String, u64>,
    options: &SiteOptions,
) -> Vec<SiteSeries> {
    let series = series(stored, revisions);
    let details = details(stored, revisions);
    let differing = differing_params(&series);
    let mut stems = BTreeSet::new();
    let mut all: Vec<SiteSeries> = Vec::new();
    for (one, differing) in series.iter().zip(differing) {
        let Some(benchmark) = stored.benchmarks.0.get(&one.benchmark) else { continue };
        let mut made = unsolved(one, benchmark, &details, differing);
        made.stem = free_stem(&made, &mut stems);
        all.push(made);
    }
    solve(&mut all, options);
    all
}

/// A series without its steps and its file.
fn unsolved(
    one: &BenchmarkSeries,
    benchmark: &Benchmark,
    details: &PointDetails,
    differing: DifferingParams,
) -> SiteSeries {
    let none = BTreeMap::new();
    let details = details.get(&(one.benchmark.clone(), one.params.clone())).unwrap_or(&none);
    let revisions: Vec<u64> = details.keys().copied().collect();
    let points: BTreeMap<u64, &SeriesPoint> = one.points.iter().map(|point| (point.revision, point)).collect();
    type Column = fn(&SeriesPoint) -> &Vec<Option<f64>>;
    let column = |place: usize, of: Column| {
        revisions.iter().map(|revision| points.get(revision).and_then(|&point| *of(point).get(place)?)).collect()
    };
    let line = |(place, (entry, values)): (usize, (String, Vec<&str>))| SiteLine {
        entry,
        values_of_params: values.into_iter().map(str::to_owned).collect(),
        values: column(place, |point| &point.values),
        weights: column(place, |point| &point.weights),
        details: details.values().map(|row| row.get(place).copied().unwrap_or_default()).collect(),
        steps: Vec::new(),
        changes: Vec::new(),
        rises: Vec::new(),
    };
    let entries = entry_names(benchmark).into_iter().zip(combinations(&benchmark.params));
    SiteSeries {
        stem: String::new(),
        benchmark: benchmark.name.clone(),
        unit: benchmark.unit.clone(),
        param_names: benchmark.param_names.clone(),
        params: one.params.clone(),
        differing,
        lines: entries.enumerate().map(line).collect(),
        revisions,
    }
}

/// A name for the files of a series that no other one has.
fn free_stem(one: &SiteSeries, taken: &mut BTreeSet<String>) -> String {
    let values = one.differing.values().map(|value| value.as_deref().unwrap_or_default());
    let name: Vec<&str> = [one.benchmark.as_str()].into_iter().chain(values).collect();
    let stem = file_stem(&name.join("-"));
    let numbered = (2..).map(|number| format!("{stem}-{number}"));
    // Two names are alike where only what joins them differs.
    let free = [stem.clone()].into_iter().chain(numbered).find(|stem| !taken.contains(stem)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// Finds the steps of all lines.
fn solve(all: &mut [SiteSeries], options: &SiteOptions) {
    let lines: Vec<(&SiteLine, &[u64])> =
        all.iter().flat_map(|one| one.lines.iter().map(|line| (line, one.revisions.as_slice()))).collect();
    let solved = on_all_cpus(&lines, |(line, revisions)| line.solved(revisions, options));
    let lines = all.iter_mut().flat_map(|one| &mut one.lines);
    lines.zip(solved).for_each(|(line, (steps, changes, rises))| {
        (line.steps, line.changes, line.rises) = (steps, changes, rises);
    });
}

impl SiteLine {
    /// The steps, their changes, and the regressions.
    fn solved(&self, revisions: &[u64], options: &SiteOptions) -> (Vec<Step>, Vec<LevelChange>, Vec<Regression>) {
        let steps = detect(&self.values, Some(&self.weights), options.method);
        let changes = changes(&self.values, Some(&self.weights), &steps, options.method, Confidence::DEFAULT);
        let of_revisions = |step: &Step| {
            let (left, right) = (revisions[step.left] as usize, revisions[step.right - 1] as usize + 1);
            Step { left, right, ..step.clone() }
        };
        let rule = options.rules.rule(&self.entry);
        let all = rule.and_then(|rule| SoughtSteps::Regressions.among(steps.iter().map(of_revisions).collect(), rule));
        (steps, changes, all.map(|all| all.found).unwrap_or_default())
    }

    /// Whether it has too few numbers for a step to be found.
    pub(super) fn is_short(&self) -> bool {
        self.values.iter().flatten().count() < LEAST_NUMBERS
    }

    /// The last number, with its place.
    pub(super) fn latest(&self) -> Option<(usize, f64)> {
        let numbers = self.values.iter().enumerate().rev();
        numbers.filter_map(|(place, value)| Some((place, (*value)?))).next()
    }

    /// Why a place has no number; `None` if it has one.
    pub(super) fn reason(&self, place: usize) -> Option<NoNumber> {
        let has_none = self.values[place].is_none();
        has_none.then(|| self.details[place].reason.unwrap_or(NoNumber::Failed))
    }
}
