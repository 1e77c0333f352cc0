//! Finds the sizes at which a cost changes: names of a model that sizes are compared with.
//!
//! A model such as `a * min(n, at) + b * max(0, n - at)` isn't linear in `at`. Where all breakpoints have values the rest
//! is, so that they are searched: those for which least is left. The interval of one holds the values for which not much
//! more is left, whatever the other coefficients are then (Seber and Wild, "Nonlinear Regression", 1989, 5.4): at most
//! 1 + t^2 / degrees times the least, with Student's t.

use std::collections::{BTreeMap, BTreeSet};

use super::equations::LinearEquations;
use super::fit_error::FitError;
use super::fit_options::FitOptions;
use super::measurements::Measurements;
use super::model::CostModel;
use super::solve::Solver;
use super::workload::WorkloadFile;
use crate::rates::two_sided_quantile;

/// The most breakpoints that are searched at once.
const MOST: usize = 2;
/// How many of the best gaps or pairs of gaps are searched, and in how many steps at most.
const STARTS: [usize; MOST] = [4, 40];
const STEPS: usize = 30;
/// From how many gaps on so many wide ones are tried first, with one breakpoint and with two, and into how many each of the best is then
/// divided, until they are those between neighbouring sizes.
const MANY_GAPS: [usize; MOST] = [200, 60];
const WIDE_GAPS: [usize; MOST] = [64, 24];
const FINER_GAPS: usize = 4;
/// By what part two sums of squares of the same model may differ.
const ROUNDING: f64 = 1e-6;

/// A breakpoint that was found.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Breakpoint {
    pub(super) name: String,
    pub(super) value: f64,
    /// The ends of its interval; `None` where too little was measured to say.
    pub(super) interval: Option<(f64, f64)>,
}

/// The breakpoints of a model of which no value is known; none where it has none, or too many.
pub(super) fn find(
    model: &CostModel,
    measurements: &Measurements,
    options: &FitOptions,
) -> Result<Vec<Breakpoint>, FitError> {
    let names = unknown(model, options, &|name| measurements.has_size(name));
    if names.is_empty() || names.len() > MOST {
        return Ok(Vec::new());
    }
    // The outermost gaps are left out: a side wants two sizes to have a slope.
    let inner = |names: &BTreeSet<String>| {
        let all = measurements.sizes(names);
        all.get(1..all.len().saturating_sub(1)).unwrap_or_default().to_vec()
    };
    let inner = names.values().map(inner).collect();
    BreakpointSearch { model, measurements, options, names, inner }.run()
}

/// The names of a model that a fit would search as breakpoints.
pub fn unknown_breakpoints(model: &CostModel, file: &WorkloadFile, options: &FitOptions) -> BTreeSet<String> {
    let quantities = file.quantities();
    let is_size = |name: &str| file.header.sizes.iter().any(|size| size == name) || quantities.contains_key(name);
    let names = unknown(model, options, &is_size);
    if names.len() > MOST { BTreeSet::new() } else { names.into_keys().collect() }
}

/// The breakpoints without a value, each with the sizes that are compared with it.
fn unknown(
    model: &CostModel,
    options: &FitOptions,
    is_size: &dyn Fn(&str) -> bool,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for compared in model.compared() {
        let (with, names): (BTreeSet<String>, BTreeSet<String>) = compared.into_iter().partition(|name| is_size(name));
        let names = names.into_iter().filter(|name| !with.is_empty() && !options.overrides.contains_key(name));
        names.for_each(|name| found.entry(name).or_default().extend(with.clone()));
    }
    found
}

/// The values for which least is left, how much that is, and the degrees of freedom.
struct Best {
    left: f64,
    values: Vec<f64>,
    degrees: Option<f64>,
}

struct BreakpointSearch<'a> {
    model: &'a CostModel,
    measurements: &'a Measurements,
    options: &'a FitOptions,
    names: BTreeMap<String, BTreeSet<String>>,
    /// The sizes that each name is compared with, but for the first and the last one.
    inner: Vec<Vec<f64>>,
}

impl BreakpointSearch<'_> {
    fn run(&self) -> Result<Vec<Breakpoint>, FitError> {
        let gaps: Vec<Vec<Gap>> = (0..self.names.len()).map(|place| self.gaps(place)).collect();
        let (rising, others): (Vec<_>, Vec<_>) = self.choices(&gaps).into_iter().partition(|chosen| self.rises(chosen));
        let found = self.best_of(rising)?;
        // Names that could be exchanged stand in rising order: the others' order must leave less than rounding does.
        let most_left = found.as_ref().map_or(f64::INFINITY, |found| found.left * (1.0 - ROUNDING));
        let better = self.best_of(others).ok().flatten().filter(|other| other.left < most_left);
        let Some(Best { left, values, degrees }) = better.or(found) else {
            return Err(FitError::NoRoomForBreakpoints { names: self.names.keys().cloned().collect() });
        };
        let most = degrees
            .map(|degrees| left * (1.0 + two_sided_quantile(1.0 - self.options.confidence, degrees).powi(2) / degrees));
        let breakpoint = |(place, name): (usize, &String)| {
            let interval = most.map(|most| self.interval(&values, place, &gaps[place], most)).transpose()?;
            Ok(Breakpoint { name: name.clone(), value: values[place], interval })
        };
        self.names.keys().enumerate().map(breakpoint).collect()
    }

    /// The best values within these choices of a gap for each breakpoint; `None` where there is no choice.
    fn best_of(&self, mut choices: Vec<Vec<Gap>>) -> Result<Option<Best>, FitError> {
        let (tried, degrees) = loop {
            let (tried, degrees) = self.best_tried(choices)?;
            if !tried.iter().any(|(.., chosen)| self.is_wide(chosen)) {
                break (tried, degrees);
            }
            choices = tried.iter().flat_map(|(.., chosen)| self.divided(chosen)).collect();
        };
        let better = |(left, middles, chosen): (f64, Vec<f64>, Vec<Gap>)| self.bettered((left, middles), &chosen);
        let bettered = tried.into_iter().map(better).collect::<Result<Vec<_>, FitError>>()?;
        let best = bettered.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b));
        Ok(best.map(|(left, values)| Best { left, values, degrees }))
    }

    /// The best of some choices, each with what is left in the middle of its gaps; and the degrees of freedom.
    fn best_tried(&self, choices: Vec<Vec<Gap>>) -> Result<(Vec<BreakpointTrial>, Option<f64>), FitError> {
        let mut tried = Vec::new();
        let mut degrees = None;
        for chosen in choices {
            let middles = middles(&chosen);
            // What is wrong with the rest is told.
            let (left, free) = self.left(&middles)?;
            degrees = free;
            tried.push((left, middles, chosen));
        }
        tried.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
        tried.truncate(STARTS[self.names.len() - 1]);
        Ok((tried, degrees))
    }

    /// Whether a gap of a choice has sizes within it.
    fn is_wide(&self, chosen: &[Gap]) -> bool {
        chosen.iter().zip(&self.inner).any(|(gap, sizes)| gap.divided(sizes).len() > 1)
    }

    /// The choices of a part of each gap, in the order that the gaps have.
    fn divided(&self, chosen: &[Gap]) -> Vec<Vec<Gap>> {
        let parts: Vec<_> = chosen.iter().zip(&self.inner).map(|(gap, sizes)| gap.divided(sizes)).collect();
        let mut choices = self.choices(&parts);
        choices.retain(|choice| self.rises(choice) == self.rises(chosen));
        choices
    }

    /// All choices of one gap for each breakpoint. Two may be in the same one while that has sizes within it.
    fn choices(&self, gaps: &[Vec<Gap>]) -> Vec<Vec<Gap>> {
        let mut choices = all_of(gaps);
        choices.retain(|chosen| {
            let is_free = |(place, gap): (usize, &Gap)| {
                !chosen[..place].contains(gap) || gap.divided(&self.inner[place]).len() > 1
            };
            chosen.iter().enumerate().all(is_free)
        });
        choices
    }

    /// Whether breakpoints of the same sizes are in the order of their names, or may be; those of other sizes have none.
    fn rises(&self, chosen: &[Gap]) -> bool {
        let named: Vec<_> = self.names.values().zip(chosen).collect();
        let rise = |one: &Gap, next: &Gap| one.high <= next.low || one == next;
        named.windows(2).all(|pair| pair[0].0 != pair[1].0 || rise(pair[0].1, pair[1].1))
    }

    /// The gaps that are tried for a breakpoint: those between neighbouring sizes, or where these are many wider ones.
    fn gaps(&self, place: usize) -> Vec<Gap> {
        let (sizes, kind) = (&self.inner[place], self.names.len() - 1);
        let most = if sizes.len() > MANY_GAPS[kind] { WIDE_GAPS[kind] } else { MANY_GAPS[kind] };
        gaps_between(sizes, most)
    }

    fn with(&self, values: &[f64]) -> BTreeMap<String, f64> {
        let mut known = self.options.overrides.clone();
        known.extend(self.names.keys().cloned().zip(values.iter().copied()));
        known
    }

    /// What is left with breakpoints in these places, and with how many degrees of freedom.
    fn left(&self, values: &[f64]) -> Result<(f64, Option<f64>), FitError> {
        let regression = LinearEquations::new(self.model, self.measurements, &self.with(values))?;
        let degrees = regression.degrees().checked_sub(self.names.len()).filter(|&degrees| degrees > 0);
        Ok((regression.left(self.options.solver), degrees.map(|degrees| degrees as f64)))
    }

    /// Moves breakpoints within their gaps, in which the model has no corner, to where less is left: as if it were
    /// linear in them, and half as far until it is less (Muggeo, "Estimating regression models with unknown
    /// break-points", 2003).
    fn bettered(&self, start: (f64, Vec<f64>), gaps: &[Gap]) -> Result<(f64, Vec<f64>), FitError> {
        let (mut least, mut values) = start;
        let names: Vec<&str> = self.names.keys().map(String::as_str).collect();
        for _ in 0..STEPS {
            let known = self.with(&values);
            let regression = LinearEquations::new(self.model, self.measurements, &known)?;
            let slopes = regression.with_slopes(self.model, &known, self.options.solver, &names);
            let found = slopes.solve(Solver::LeastSquares);
            let moves = &found[found.len() - names.len()..];
            let Some((left, moved)) = self.moved((least, &values), moves, gaps)? else { break };
            let gain = least - left;
            (least, values) = (left, moved);
            if gain <= 1e-9 * least {
                break;
            }
        }
        Ok((least, values))
    }

    /// The first of ever shorter moves after which less is left.
    fn moved(
        &self,
        (least, values): (f64, &[f64]),
        moves: &[f64],
        gaps: &[Gap],
    ) -> Result<Option<(f64, Vec<f64>)>, FitError> {
        for part in [1.0, 0.5, 0.25, 0.125, 0.03] {
            let to = |((value, by), gap): ((&f64, &f64), &Gap)| (value + part * by).clamp(gap.low, gap.high);
            let moved: Vec<f64> = values.iter().zip(moves).zip(gaps).map(to).collect();
            let left = self.left(&moved)?.0;
            if left < least {
                return Ok(Some((left, moved)));
            }
        }
        Ok(None)
    }

    /// The values around a breakpoint for which no more than `most` is left, whatever the others are.
    fn interval(&self, values: &[f64], place: usize, gaps: &[Gap], most: f64) -> Result<(f64, f64), FitError> {
        let now = values[place];
        let mut ends = [now; 2];
        let below = gaps.iter().rev().map(|gap| gap.low).filter(|low| *low < now).collect::<Vec<_>>();
        let above = gaps.iter().map(|gap| gap.high).filter(|high| *high > now).collect();
        for (end, way) in ends.iter_mut().zip([below, above]) {
            for next in way {
                if self.profile(values, place, next)? > most {
                    *end = self.last_within(values, place, (*end, next), most)?;
                    break;
                }
                *end = next;
            }
        }
        Ok((ends[0], ends[1]))
    }

    /// Where what is left passes `most` first, on the way from a value to a size: between which sizes, and there by halving.
    fn last_within(
        &self,
        values: &[f64],
        place: usize,
        (mut inside, outside): (f64, f64),
        most: f64,
    ) -> Result<f64, FitError> {
        let [low, high] = [inside.min(outside), inside.max(outside)];
        let mut sizes: Vec<f64> =
            self.inner[place].iter().copied().filter(|size| *size > low && *size < high).collect();
        if outside < inside {
            sizes.reverse();
        }
        for next in sizes.into_iter().chain([outside]) {
            if self.profile(values, place, next)? > most {
                return self.crossing(values, place, (inside, next), most);
            }
            inside = next;
        }
        Ok(inside)
    }

    /// What is left with one breakpoint at a value, and the other where least is left then.
    fn profile(&self, values: &[f64], place: usize, value: f64) -> Result<f64, FitError> {
        let mut values = values.to_vec();
        values[place] = value;
        let mut least = self.left(&values)?.0;
        for other in (0..values.len()).filter(|other| *other != place) {
            let mut gaps = self.gaps(other);
            while !gaps.is_empty() {
                let mut tried = Vec::with_capacity(gaps.len());
                for gap in gaps {
                    values[other] = gap.middle();
                    tried.push((self.left(&values)?.0, gap));
                }
                tried.sort_by(|(a, _), (b, _)| a.total_cmp(b));
                tried.truncate(STARTS[0]);
                least = least.min(tried[0].0);
                gaps = tried.iter().flat_map(|(_, gap)| gap.divided(&self.inner[other])).collect();
                gaps.retain(|gap| !tried.iter().any(|(_, wide)| wide == gap));
            }
        }
        Ok(least)
    }

    /// Where what is left passes `most`, by halving.
    fn crossing(
        &self,
        values: &[f64],
        place: usize,
        (mut inside, mut outside): (f64, f64),
        most: f64,
    ) -> Result<f64, FitError> {
        for _ in 0..12 {
            let middle = 0.5 * (inside + outside);
            if self.profile(values, place, middle)? <= most { inside = middle } else { outside = middle }
        }
        Ok(inside)
    }
}

/// What is left, the values that leave it, and the gaps that these lie in.
type BreakpointTrial = (f64, Vec<f64>, Vec<Gap>);

/// Two sizes: one next to the other, or with others between them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gap {
    low: f64,
    high: f64,
}

impl Gap {
    /// The middle; of sizes above 0 on a scale of logarithms.
    fn middle(self) -> f64 {
        if self.low > 0.0 { (self.low * self.high).sqrt() } else { 0.5 * (self.low + self.high) }
    }

    /// Where a third of it is, and two thirds, on the same scale.
    fn thirds(self) -> [f64; 2] {
        [1.0 / 3.0, 2.0 / 3.0].map(|part| match self.low > 0.0 {
            true => self.low * (self.high / self.low).powf(part),
            false => self.low + part * (self.high - self.low),
        })
    }

    /// Its parts, divided at some of the sizes within it; itself alone where there are none.
    fn divided(self, sizes: &[f64]) -> Vec<Self> {
        let [from, to] = [self.low, self.high].map(|end| sizes.partition_point(|size| *size < end));
        gaps_between(&sizes[from..=to], FINER_GAPS)
    }
}

/// At most so many gaps from the first to the last of these sizes, each with as many sizes within it.
fn gaps_between(sizes: &[f64], most: usize) -> Vec<Gap> {
    let last = sizes.len().saturating_sub(1);
    let width = last.div_ceil(most).max(1);
    (0..last).step_by(width).map(|low| Gap { low: sizes[low], high: sizes[(low + width).min(last)] }).collect()
}

/// Values within gaps that a choice is tried by: the middles, and thirds of one that two breakpoints are in.
fn middles(chosen: &[Gap]) -> Vec<f64> {
    match chosen {
        [one, other] if one == other => one.thirds().to_vec(),
        _ => chosen.iter().map(|gap| gap.middle()).collect(),
    }
}

/// All choices of one gap from each list.
fn all_of(gaps: &[Vec<Gap>]) -> Vec<Vec<Gap>> {
    gaps.iter().fold(vec![Vec::new()], |before, gaps| {
        let with =
            |one: &Vec<Gap>| gaps.iter().map(|&gap| one.iter().copied().chain([gap]).collect()).collect::<Vec<_>>();
        before.iter().flat_map(with).collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::cost::{Fit, TIME, Workload};

    const SIZES: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn file(sizes: &[f64], time: impl Fn(f64) -> f64) -> WorkloadFile {
        let mut file = WorkloadFile::parse("n,time\n1,1\n", "walk", TIME).unwrap();
        file.workloads = (sizes.iter())
            .map(|&n| Workload {
                sizes: BTreeMap::from([("n".to_owned(), n)]),
                samples: BTreeMap::from([(TIME.to_owned(), vec![time(n)])]),
                order: Vec::new(),
            })
            .collect();
        file
    }

    fn found(file: &WorkloadFile, text: &str) -> Result<Vec<Breakpoint>, FitError> {
        let model = CostModel::parse(text, &["n".to_owned()]).unwrap();
        let options = FitOptions::default();
        find(&model, &Measurements::of(&model, file, &options)?, &options)
    }

    /// 2 a piece up to `at`, 10 above.
    fn broken(n: f64, at: f64) -> f64 {
        2.0 * n.min(at) + 10.0 * (n - at).max(0.0)
    }

    #[test]
    fn a_break_between_two_sizes_is_found_exactly() {
        let file = file(&SIZES, |n| broken(n, 12.0));
        let found = found(&file, "breakdown").unwrap();
        assert_eq!((found.len(), found[0].name.as_str()), (1, "at"));
        assert!((found[0].value - 12.0).abs() < 1e-3, "{found:?}");
        let model = CostModel::parse("breakdown", &["n".to_owned()]).unwrap();
        let fit = Fit::new(&model, &file, &FitOptions::default()).unwrap();
        let values = fit.fitted.values();
        assert!((values["coeff1"] - 2.0).abs() < 1e-3 && (values["coeff2"] - 10.0).abs() < 1e-3, "{values:?}");
        assert_eq!(fit.fitted.degrees, 8 - 3);
    }

    #[test]
    fn gaps_are_divided_until_they_have_no_size_within() {
        let sizes: Vec<f64> = (0..10).map(f64::from).collect();
        let ends = |gaps: &[Gap]| gaps.iter().map(|gap| (gap.low, gap.high)).collect::<Vec<_>>();
        let wide = gaps_between(&sizes, 4);
        assert_eq!(ends(&wide), [(0.0, 3.0), (3.0, 6.0), (6.0, 9.0)]);
        assert_eq!(ends(&wide[1].divided(&sizes)), [(3.0, 4.0), (4.0, 5.0), (5.0, 6.0)]);
        assert_eq!(ends(&Gap { low: 4.0, high: 5.0 }.divided(&sizes)), [(4.0, 5.0)]);
        assert_eq!((gaps_between(&[], 4), gaps_between(&[1.0], 4)), (vec![], vec![]));
    }

    #[test]
    fn breaks_between_many_sizes_are_found() {
        let sizes: Vec<f64> = (1..=220).map(|step| f64::from(step) * 20.0).collect();
        let one = found(&file(&sizes, |n| broken(n, 2024.0)), "breakdown").unwrap();
        assert!((one[0].value - 2024.0).abs() < 0.1, "{one:?}");
        let (low, high) = one[0].interval.unwrap();
        assert!(low <= one[0].value && one[0].value <= high && high - low < 40.0, "{one:?}");
        let few: Vec<f64> = sizes.iter().copied().step_by(3).collect();
        let two = |n: f64| n.min(1000.0) + 5.0 * (n.min(3000.0) - 1000.0).max(0.0) + 40.0 * (n - 3000.0).max(0.0);
        let values: Vec<f64> = found(&file(&few, two), "breakdown2").unwrap().iter().map(|found| found.value).collect();
        assert!((values[0] - 1000.0).abs() < 1.0 && (values[1] - 3000.0).abs() < 1.0, "{values:?}");
    }

    #[test]
    fn two_breaks_near_one_another_are_found_between_many_sizes() {
        let sizes: Vec<f64> = (1..=100).map(|step| f64::from(step) * 10.0).collect();
        let two = |n: f64| n.min(405.0) + 90.0 * (n.min(425.0) - 405.0).max(0.0) + 2.0 * (n - 425.0).max(0.0);
        let values: Vec<f64> =
            found(&file(&sizes, two), "breakdown2").unwrap().iter().map(|found| found.value).collect();
        assert!((values[0] - 405.0).abs() < 1.0 && (values[1] - 425.0).abs() < 1.0, "{values:?}");
    }

    #[test]
    fn a_jump_is_found_between_two_sizes_and_has_no_slope() {
        let file = file(&SIZES, |n| if n <= 12.0 { 2.0 * n } else { 5.0 * n });
        let model = CostModel::parse("a * n if n <= end else b * n", &["n".to_owned()]).unwrap();
        let fit = Fit::new(&model, &file, &FitOptions::default()).unwrap();
        let [end] = fit.fitted.breakpoints.as_slice() else { panic!("{:?}", fit.fitted.breakpoints) };
        assert!(end.value > 8.0 && end.value < 16.0 && end.error.is_none(), "{end:?}");
        assert!(fit.fitted.coefficients.iter().all(|found| found.error.is_some()), "{:?}", fit.fitted.coefficients);
    }

    #[test]
    fn two_breaks_are_found_in_their_order() {
        let sizes: Vec<f64> = (0..16).map(|step| f64::from(step).exp2()).collect();
        let file =
            file(&sizes, |n| n.min(100.0) + 5.0 * (n.min(3000.0) - 100.0).max(0.0) + 40.0 * (n - 3000.0).max(0.0));
        let found = found(&file, "breakdown2").unwrap();
        let values: Vec<f64> = found.iter().map(|breakpoint| breakpoint.value).collect();
        assert!((values[0] - 100.0).abs() < 0.1 && (values[1] - 3000.0).abs() < 0.1, "{values:?}");
    }

    #[test]
    fn breaks_are_found_whatever_the_order_of_their_names() {
        let sizes: Vec<f64> = (0..16).map(|step| f64::from(step).exp2()).collect();
        let file = file(&sizes, |n| 3.0 * n.min(100.0) + 7.0 * (n - 1000.0).max(0.0));
        for (text, wanted) in [
            ("p * min(n, right) + q * max(0, n - left)", [("left", 1000.0), ("right", 100.0)]),
            ("p * min(n, a) + q * max(0, n - b)", [("a", 100.0), ("b", 1000.0)]),
        ] {
            for (found, (name, value)) in found(&file, text).unwrap().iter().zip(wanted) {
                assert_eq!(found.name, name);
                assert!((found.value / value - 1.0).abs() < 1e-3, "{text}: {found:?}");
            }
        }
    }

    #[test]
    fn breaks_of_two_sizes_have_no_order() {
        let grid = (0..8).flat_map(|n| (0..8).map(move |m| (f64::from(n).exp2() * 1000.0, f64::from(m + 1))));
        let csv: String =
            grid.map(|(n, m)| format!("{n},{m},{}\n", 2.0 * n.min(5000.0) + 300.0 * m.min(3.4))).collect();
        let file = WorkloadFile::parse(&format!("n,m,time\n{csv}"), "walk", TIME).unwrap();
        for (text, of_n) in [("x * min(n, a) + y * min(m, b)", "a"), ("x * min(n, b) + y * min(m, a)", "b")] {
            let model = CostModel::parse(text, &["n".to_owned(), "m".to_owned()]).unwrap();
            let options = FitOptions::default();
            let found = find(&model, &Measurements::of(&model, &file, &options).unwrap(), &options).unwrap();
            for breakpoint in found {
                let wanted = if breakpoint.name == of_n { 5000.0 } else { 3.4 };
                assert!((breakpoint.value / wanted - 1.0).abs() < 1e-3, "{text}: {breakpoint:?}");
            }
        }
    }

    #[test]
    fn what_is_not_compared_with_a_size_is_no_breakpoint() {
        for text in ["a + b * n", "max(a * 2, n * b)", "a * max(b * n, 3)", "nlogn"] {
            assert_eq!(found(&file(&SIZES, |n| n), text), Ok(Vec::new()), "{text}");
        }
        assert!(matches!(found(&file(&[1.0, 2.0], |n| n), "breakdown"), Err(FitError::NoRoomForBreakpoints { .. })));
    }

    #[test]
    fn a_breakpoint_that_is_set_is_not_searched() {
        let file = file(&SIZES, |n| broken(n, 12.0));
        let options = FitOptions { overrides: BTreeMap::from([("at".to_owned(), 16.0)]), ..FitOptions::default() };
        let model = CostModel::parse("breakdown", &["n".to_owned()]).unwrap();
        assert!(unknown_breakpoints(&model, &file, &options).is_empty());
        assert!(Fit::new(&model, &file, &options).unwrap().fitted.breakpoints.is_empty());
    }

    proptest! {
        /// Gaps join where one ends, from the first size to the last, however few there may be.
        #[test]
        fn gaps_leave_nothing_out(count in 2_usize..500, most in 1_usize..300) {
            let sizes: Vec<f64> = (0..count).map(|step| step as f64).collect();
            let gaps = gaps_between(&sizes, most);
            prop_assert!(gaps.len() <= most && gaps.windows(2).all(|pair| pair[0].high == pair[1].low));
            prop_assert_eq!((gaps[0].low, gaps[gaps.len() - 1].high), (0.0, (count - 1) as f64));
            let is_narrower = |gap: &Gap| gap.divided(&sizes).iter().all(|part| part != gap) || gap.high - gap.low == 1.0;
            prop_assert!(gaps.iter().all(is_narrower));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Wherever it lies between the measured sizes, it is found, and within its interval.
        #[test]
        fn a_break_anywhere_is_found(at in 2.5..60.0_f64) {
            let found = found(&file(&SIZES, |n| broken(n, at)), "breakdown").unwrap();
            let (low, high) = found[0].interval.unwrap();
            prop_assert!((found[0].value / at - 1.0).abs() < 0.01, "{found:?}");
            prop_assert!(low <= found[0].value && found[0].value <= high);
        }
    }
}
