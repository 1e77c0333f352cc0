//! Says what starting a process takes, and whether that is the constant of a command's cost model.

use crate::cost::samples::Determinizer;
use crate::cost::solve::Solver;
use crate::cost::{Choice, CostModel, FitOptions, TIME, WorkloadFile, candidates, choose};
use crate::rates::Uncertain;

use super::precision::determined;

/// What a process that does nothing takes, beside the command of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessStart {
    /// Its time in nanoseconds.
    pub time: Uncertain,
    /// What a model can make of it.
    pub role: StartRole,
}

/// What the time of a start is to a model of the command.
#[derive(Clone, Debug, PartialEq)]
pub enum StartRole {
    /// Too uncertain to be set.
    Uncertain,
    /// As much as the command takes at some sizes: this time in nanoseconds.
    MostOfCommand(f64),
    /// The fit of the likeliest model finds it as its constant.
    Constant {
        /// The model, an expression.
        model: String,
    },
    /// The fit of the likeliest model finds another constant.
    OtherConstant {
        /// The model, an expression.
        model: String,
        /// The ends of the constant's interval, in nanoseconds.
        interval: (f64, f64),
    },
    /// No model tells: there are too few sizes, the likeliest one has no constant, or none fits.
    Untold,
}

/// Wider than this part of its value, the time of a start is of no use as a constant.
const WIDEST: f64 = 0.2;

/// The coefficient of models that stands for the constant.
const CONSTANT: &str = "intercept";

impl ProcessStart {
    /// What the runs of a file say; `None` where no start was measured.
    pub fn of(file: &WorkloadFile, determinizer: Determinizer) -> Option<Self> {
        let start = file.header.sweep.as_ref()?.process_start.as_ref()?;
        let time = determined(determinizer, start.samples.get(TIME)?)?;
        Some(Self { time, role: role(time, file, determinizer) })
    }
}

fn role(start: Uncertain, file: &WorkloadFile, determinizer: Determinizer) -> StartRole {
    let times = file.workloads.iter().filter_map(|workload| determinizer.value(workload.samples.get(TIME)?));
    let shortest = times.fold(f64::INFINITY, f64::min);
    if start.error.relative_to(start.value).is_none_or(|error| error > WIDEST) {
        return StartRole::Uncertain;
    }
    if start.value >= shortest {
        return StartRole::MostOfCommand(shortest);
    }
    let Some((model, (low, high))) = free_constant(file, determinizer) else { return StartRole::Untold };
    if (low..=high).contains(&start.value) {
        StartRole::Constant { model }
    } else {
        StartRole::OtherConstant { model, interval: (low, high) }
    }
}

/// The likeliest model of a file's times and the interval of its constant, if it fits and has one. The constant is free: it may
/// be below 0, as one is that stands for another form of growth.
fn free_constant(file: &WorkloadFile, determinizer: Determinizer) -> Option<(String, (f64, f64))> {
    if file.header.sizes.is_empty() {
        return None;
    }
    let options = FitOptions { solver: Solver::LeastSquares, determinizer, ..FitOptions::default() };
    let parsed = candidates(&file.header.sizes).into_iter().map(|text| CostModel::parse(&text, &file.header.sizes));
    let models: Vec<CostModel> = parsed.collect::<Result<_, _>>().ok()?;
    let Choice { model, fit, .. } = choose(models, file, &options).ok()?.into_iter().next()?;
    let constant = fit.fitted.coefficients.iter().find(|found| found.name == CONSTANT)?;
    let interval = constant.interval.filter(|_| fit.fitted.lack_of_fit.is_none())?;
    Some((model.expression().to_string(), interval))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a panic is how a test fails")]

    use std::collections::BTreeMap;

    use super::*;
    use crate::cost::{SweepRecord, Workload, WorkloadHeader};
    use crate::random::SplitMix64;

    const START: f64 = 5e5;

    /// Runs of a start of 500 µs, and of a command at eight sizes that takes so many nanoseconds, all off by 1 %.
    fn file(sizes: &[&str], time: impl Fn(f64) -> f64) -> WorkloadFile {
        let mut random = SplitMix64::new(3);
        let mut workload = |n: f64, time: f64| Workload {
            sizes: sizes.iter().map(|name| ((*name).to_owned(), n)).collect(),
            samples: BTreeMap::from([(
                TIME.to_owned(),
                (0..15).map(|_| time * (1.0 + 0.01 * random.normal())).collect(),
            )]),
            order: Vec::new(),
        };
        let workloads = (1..=8).map(|place| f64::from(place) * 1e3).map(|n| workload(n, time(n))).collect();
        let sweep = SweepRecord { process_start: Some(workload(0.0, START)), ..SweepRecord::default() };
        let sizes = sizes.iter().map(|name| (*name).to_owned()).collect();
        let header = WorkloadHeader { sizes, sweep: Some(sweep), ..WorkloadHeader::default() };
        WorkloadFile { header, workloads }
    }

    fn role_of(file: &WorkloadFile) -> StartRole {
        ProcessStart::of(file, Determinizer::Median).unwrap().role
    }

    #[test]
    fn the_constant_is_the_start_where_the_likeliest_model_says_so() {
        let linear = file(&["n"], |n| START + 400.0 * n);
        assert_eq!(role_of(&linear), StartRole::Constant { model: "intercept + coeff * n".into() });
        let square = file(&["n"], |n| START + 0.4 * n * n);
        assert_eq!(role_of(&square), StartRole::Constant { model: "intercept + coeff * n * n".into() });
    }

    #[test]
    fn a_command_that_does_more_before_its_sizes_matter_has_another_constant() {
        let slow = file(&["n"], |n| 20.0 * START + 400.0 * n);
        let StartRole::OtherConstant { interval: (low, high), .. } = role_of(&slow) else {
            panic!("{:?}", role_of(&slow))
        };
        assert!(START < low && low < 20.0 * START && 20.0 * START < high, "{low} {high}");
    }

    #[test]
    fn nothing_is_told_without_sizes_or_with_too_few() {
        assert_eq!(role_of(&file(&[], |_| 2.0 * START)), StartRole::Untold);
        let mut few = file(&["n"], |n| START + 400.0 * n);
        few.workloads.truncate(2);
        assert_eq!(role_of(&few), StartRole::Untold);
    }

    #[test]
    fn a_start_that_is_uncertain_or_most_of_the_time_is_no_constant() {
        let mut wide = file(&["n"], |n| START + 400.0 * n);
        let start = wide.header.sweep.as_mut().unwrap().process_start.as_mut().unwrap();
        start.samples.insert(TIME.to_owned(), vec![1e5, 2e5, 5e5, 8e5, 9e5]);
        assert_eq!(role_of(&wide), StartRole::Uncertain);
        let short = file(&["n"], |n| 0.9 * START + n);
        assert!(matches!(role_of(&short), StartRole::MostOfCommand(time) if time < START));
    }
}
