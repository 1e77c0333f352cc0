//! Compares what commands took, each with the first one at the same sizes.

use std::collections::BTreeMap;

use crate::compare::{Average, ComparedEvent, NumbersOfRuns, compare_numbers};
use crate::cost::{TIME, TIME_UNITS, WorkloadFile};
use crate::events::Unit;
use crate::rates::Confidence;

/// A command beside the first one, at one set of sizes.
#[derive(Clone, Debug)]
pub struct VariantComparison {
    /// The place of the command's file.
    pub variant: usize,
    /// The sizes.
    pub sizes: BTreeMap<String, f64>,
    /// What was compared, with the verdict; A is the first command.
    pub event: ComparedEvent,
}

/// What is shown of a file: the time, and the events that were asked for.
pub fn quantities(file: &WorkloadFile) -> Vec<&str> {
    let events = file.header.sweep.iter().flat_map(|sweep| &sweep.events);
    std::iter::once(TIME).chain(events.map(String::as_str)).collect()
}

/// The unit of what was measured under this name: that of times, and that which the name ends with, as `latency_ms` does.
pub fn unit(name: &str) -> Unit {
    let times = [TIME, "task-clock", "cpu-clock", "duration_time", "user_time", "system_time"];
    let bare = name.split(':').next().unwrap_or(name);
    let of_name = || {
        let (_, ending) = bare.rsplit_once('_')?;
        TIME_UNITS.into_iter().find_map(|(unit, factor)| (unit == ending).then_some(factor))
    };
    match of_name() {
        _ if times.contains(&bare) => Unit::Nanoseconds,
        Some(scale) => Unit::Scaled { scale, name: "ns".into() },
        None => Unit::Count,
    }
}

/// How many nanoseconds one of what was measured under this name is; `None` of what is no time.
pub fn nanoseconds(name: &str) -> Option<f64> {
    match unit(name) {
        Unit::Nanoseconds => Some(1.0),
        Unit::Scaled { scale, name } if name == "ns" => Some(scale),
        Unit::Scaled { .. } | Unit::Count => None,
    }
}

/// Compares each file with the first, at each set of sizes that both have. All verdicts together are at most in one of
/// twenty sweeps wrong.
pub fn comparisons(files: &[WorkloadFile]) -> Vec<VariantComparison> {
    let Some((first, others)) = files.split_first() else { return Vec::new() };
    let (mut places, mut numbers) = (Vec::new(), Vec::new());
    for (variant, file) in others.iter().enumerate() {
        for workload in &file.workloads {
            let same = first.workloads.iter().find(|other| other.sizes == workload.sizes);
            for name in same.into_iter().flat_map(|_| quantities(file)) {
                let samples = |samples: &BTreeMap<String, Vec<f64>>| samples.get(name).cloned().unwrap_or_default();
                places.push((variant + 1, &workload.sizes));
                numbers.push(NumbersOfRuns {
                    name: name.to_owned(),
                    unit: unit(name),
                    a: same.map_or_else(Vec::new, |same| samples(&same.samples)),
                    b: samples(&workload.samples),
                    average: Average::WithoutOutliers,
                });
            }
        }
    }
    let compared = compare_numbers(numbers, Confidence::DEFAULT).into_iter();
    let all = places.into_iter().zip(compared);
    all.map(|((variant, sizes), event)| VariantComparison { variant, sizes: sizes.clone(), event }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::compare::{MeanRatio, Verdict};
    use crate::cost::Workload;

    fn file(points: &[(f64, &[f64])]) -> WorkloadFile {
        let workload = |(n, times): &(f64, &[f64])| Workload {
            sizes: BTreeMap::from([("n".to_owned(), *n)]),
            samples: BTreeMap::from([(TIME.to_owned(), times.to_vec())]),
            order: Vec::new(),
        };
        WorkloadFile { workloads: points.iter().map(workload).collect(), ..WorkloadFile::default() }
    }

    #[test]
    fn two_commands_by_hand() {
        let a = file(&[(1.0, &[1.0, 2.0, 3.0, 4.0, 5.0]), (2.0, &[7.0; 5]), (3.0, &[1.0; 5])]);
        let b = file(&[(1.0, &[7.0, 8.0, 9.0, 10.0, 11.0]), (2.0, &[7.0; 5]), (4.0, &[1.0; 5])]);
        let found = comparisons(&[a, b]);
        assert_eq!(found.len(), 2, "sizes that only one has aren't compared");
        assert_eq!(found.iter().map(|one| one.event.verdict).collect::<Vec<_>>(), [Verdict::Higher, Verdict::Equal]);
        // The means are 3 and 9. As in compare::verdict, but two are tested: 0.05 / 2 with 8 degrees, t is 2.75152.
        let [first, second] = [0, 1].map(|place| found[place].event.ratio());
        assert_eq!((found[0].variant, first.value), (1, Some(3.0)));
        assert_eq!(second, MeanRatio { value: Some(1.0), interval: None });
        let (low, high) = first.interval.unwrap();
        let (square, scale) = (2.751_524_f64.powi(2), 9.0 - 2.751_524_f64.powi(2) / 2.0);
        let root = (square * (40.5 + 0.5 * scale)).sqrt();
        assert!(
            (low - (27.0 - root) / scale).abs() < 1e-4 && (high - (27.0 + root) / scale).abs() < 1e-3,
            "{low} {high}"
        );
        assert!((found[0].event.p.unwrap() - 2.0 * 0.002_065).abs() < 1e-5);
    }

    #[test]
    fn means_that_only_happen_to_agree_are_not_called_equal() {
        let verdict = |a: &[f64], b: &[f64]| comparisons(&[file(&[(1.0, a)]), file(&[(1.0, b)])])[0].event.clone();
        let agree = verdict(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5.0, 3.0, 3.0, 3.0, 1.0]);
        assert!(matches!(agree.verdict, Verdict::Unclear { .. }), "{agree:?}");
        // The interval says how large a difference may be.
        assert!(agree.interval.is_some_and(|(low, high)| low < -0.2 && high > 0.2), "{agree:?}");
        let near = |by: f64| [-1e-7, 0.0, 1e-7, 0.0, 0.0].map(|off| 3.0 + by + off);
        assert_eq!(verdict(&near(0.0), &near(1e-8)).verdict, Verdict::Equal);
    }

    #[test]
    fn one_command_is_compared_with_nothing() {
        assert!(comparisons(&[]).is_empty() && comparisons(&[file(&[(1.0, &[1.0])])]).is_empty());
        let few = comparisons(&[file(&[(1.0, &[1.0])]), file(&[(1.0, &[2.0])])]);
        assert!(matches!(few[0].event.verdict, Verdict::TooFewRuns { needs: 3 }), "{few:?}");
    }

    #[test]
    fn times_are_in_nanoseconds() {
        assert_eq!(unit("task-clock:u"), Unit::Nanoseconds);
        assert_eq!(unit("page-faults"), Unit::Count);
        assert_eq!(unit("latency_ms"), Unit::Scaled { scale: 1e6, name: "ns".into() });
        let of = ["time", "task-clock:u", "latency_us", "wait_s", "page_faults", "ms"].map(nanoseconds);
        assert_eq!(of, [Some(1.0), Some(1.0), Some(1e3), Some(1e9), None, None]);
    }
}
