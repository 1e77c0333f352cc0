//! Summarises a benchmark over its machines, environments and parameters: one number for each commit, as asv's grid has it.

use std::collections::BTreeMap;

use super::series::{BenchmarkSeries, without_missing_ends};
use crate::rates::mean;

/// Gaps of at most this share of a series' numbers are filled.
const LARGEST_GAP: f64 = 0.1;
/// From so many commits on, commits are taken together; asv's pictures have so many columns.
const COLUMNS: f64 = 384.0;

/// A benchmark over all series of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchmarkSummary {
    /// The benchmark.
    pub benchmark: String,
    /// Revisions with their numbers; `None` where no series has one.
    pub points: Vec<(u64, Option<f64>)>,
}

/// A summary of each benchmark, in the order of names.
///
/// The number of a commit is the geometric mean over all series and parameters. Where one of them has no number but others have,
/// a straight line across the gap stands for it, if the gap is short. Many commits are taken together by their means.
pub fn benchmark_summaries(series: &[BenchmarkSeries]) -> Vec<BenchmarkSummary> {
    let mut groups: BTreeMap<&str, Vec<&BenchmarkSeries>> = BTreeMap::new();
    series.iter().for_each(|one| groups.entry(&one.benchmark).or_default().push(one));
    let summary = |(name, group): (&str, Vec<&BenchmarkSeries>)| BenchmarkSummary {
        benchmark: name.to_owned(),
        points: without_missing_ends(resampled(combined(&group)), |(_, number)| number.is_some()),
    };
    groups.into_iter().map(summary).collect()
}

/// The mean of all series for each revision that one of them has.
fn combined(group: &[&BenchmarkSeries]) -> Vec<(u64, Option<f64>)> {
    let mut places: BTreeMap<u64, usize> =
        group.iter().flat_map(|one| &one.points).map(|point| (point.revision, 0)).collect();
    places.values_mut().zip(0..).for_each(|(place, at)| *place = at);
    let mut rows: Vec<Vec<Option<f64>>> = Vec::new();
    for one in group {
        let mut of_one = vec![vec![None; places.len()]; one.combinations()];
        for point in &one.points {
            of_one.iter_mut().zip(&point.values).for_each(|(row, value)| row[places[&point.revision]] = *value);
        }
        rows.extend(of_one);
    }
    let filled: Vec<_> = rows.iter().map(|row| filled(row)).collect();
    let number = |at: usize| {
        let is_measured = rows.iter().any(|row| row[at].is_some());
        is_measured.then(|| geometric_mean(filled.iter().filter_map(|row| row[at]).collect())).flatten()
    };
    places.into_iter().map(|(revision, at)| (revision, number(at))).collect()
}

/// A row without its short gaps.
fn filled(row: &[Option<f64>]) -> Vec<Option<f64>> {
    let measured = row.iter().flatten().count();
    let largest = (LARGEST_GAP * measured as f64).ceil() as usize;
    let mut filled = row.to_vec();
    let mut before: Option<(usize, f64)> = None;
    for (at, value) in row.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))) {
        if let Some((from, low)) = before.filter(|(from, _)| at - from - 1 <= largest) {
            let width = (at - from) as f64;
            for (gap, place) in filled[from + 1..at].iter_mut().zip(1..) {
                let near = f64::from(place);
                *gap = Some((value * near + (width - near) * low) / width);
            }
        }
        before = Some((at, value));
    }
    filled
}

/// The geometric mean of sizes, with the sign of the sum; `None` of nothing.
fn geometric_mean(values: Vec<f64>) -> Option<f64> {
    let exponent = 1.0 / values.len() as f64;
    let product = values.iter().fold(1.0, |product, value| product * value.abs().powf(exponent));
    let is_negative = values.iter().sum::<f64>() < 0.0;
    (!values.is_empty()).then_some(if is_negative { -product } else { product })
}

/// Means of commits that are taken together, each at the end of its stretch.
fn resampled(points: Vec<(u64, Option<f64>)>) -> Vec<(u64, Option<f64>)> {
    let (Some(&(first, _)), Some(&(last, _))) = (points.first(), points.last()) else { return points };
    if (points.len() as f64) < COLUMNS {
        return points;
    }
    let step = match ((last - first) as f64 / COLUMNS) as u64 {
        0 => last - first + 1,
        step => step,
    };
    let (mut out, mut rest) = (Vec::new(), &points[..]);
    for end in (first + step..last + step).step_by(step as usize) {
        let here = rest.partition_point(|(revision, _)| *revision < end);
        let (chunk, later) = rest.split_at(here);
        rest = later;
        let numbers: Vec<f64> = chunk.iter().filter_map(|(_, number)| *number).collect();
        out.extend((!chunk.is_empty()).then(|| (end, mean(&numbers))));
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::series::SeriesPoint;
    use super::*;

    fn series(values: &[(u64, Option<f64>)]) -> BenchmarkSeries {
        let point =
            |&(revision, value)| SeriesPoint { revision, values: vec![value], weights: vec![None], errors: Vec::new() };
        BenchmarkSeries {
            benchmark: "b".into(),
            params: BTreeMap::new(),
            environments: std::collections::BTreeSet::new(),
            points: values.iter().map(point).collect(),
            missing: BTreeMap::new(),
            kernels: BTreeMap::new(),
            runs: BTreeMap::new(),
        }
    }

    fn summary(all: &[BenchmarkSeries]) -> Vec<(u64, Option<f64>)> {
        benchmark_summaries(all).into_iter().flat_map(|one| one.points).collect()
    }

    #[test]
    fn means_are_geometric_by_hand() {
        let a = series(&[(0, Some(2.0)), (1, Some(2.0)), (2, Some(4.0))]);
        let b = series(&[(0, Some(8.0)), (1, None), (2, Some(16.0)), (5, Some(9.0))]);
        // The gap of b is filled with 12; that of both isn't there.
        let points = summary(&[a, b]);
        assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), [0, 1, 2, 5]);
        let near = |at: usize, expected: f64| points[at].1.is_some_and(|number| (number - expected).abs() < 1e-12);
        assert!(near(0, 4.0) && near(1, 24.0_f64.sqrt()) && near(2, 8.0) && near(3, 9.0), "{points:?}");
        assert_eq!(geometric_mean(vec![-4.0, 1.0]), Some(-2.0));
        assert_eq!((geometric_mean(Vec::new()), benchmark_summaries(&[])), (None, Vec::new()));
    }

    #[test]
    fn long_gaps_stay() {
        let row = [Some(1.0), None, None, Some(4.0)];
        assert_eq!(filled(&row), row);
        assert_eq!(filled(&[None, Some(1.0), None, Some(3.0), None])[2], Some(2.0));
    }

    proptest! {
        #[test]
        fn a_summary_lies_between_its_series(values in prop::collection::vec((1f64..9.0, 1f64..9.0), 1..1000)) {
            let one = |take: fn(&(f64, f64)) -> f64| {
                series(&values.iter().map(take).map(Some).zip(0..).map(|(value, at)| (at, value)).collect::<Vec<_>>())
            };
            let points = summary(&[one(|pair| pair.0), one(|pair| pair.1)]);
            prop_assert!(points.iter().all(|(_, number)| number.is_some_and(|number| (0.999..=9.001).contains(&number))));
            prop_assert!(points.len() <= 768);
        }
    }
}
