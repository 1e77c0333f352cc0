//! Finds where a known step lies, from as few measurements as the noise allows.
//!
//! ```text
//! first ├──────────────┬───────────────┤ last     both ends differ for sure
//!                    middle                       measured in turns with both ends, until it is sure like which it is
//!       ├──────────────┤                          halved again, until the ends are neighbours
//! ```
//!
//! Each decision is a sequential test: it ends as soon as one side is so much more likely than the other that it is wrong in at most
//! the share asked for (Wald, "Sequential tests of statistical hypotheses", 1945). All that is compared was measured in the same
//! turn, so that a drift of the machine moves no decision.

use crate::series::median;

/// How a step is looked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocateRules {
    /// The share of searches that may be wrong.
    pub error: f64,
    /// The most turns for one decision.
    pub most_turns: usize,
}

/// What a turn gave.
#[derive(Clone, Debug, PartialEq)]
pub enum MeasuredTurn {
    /// A number for each place asked for.
    Numbers(Vec<f64>),
    /// This place can't be measured.
    Missing(usize),
    /// Nothing more is to be measured.
    Interrupted,
}

/// Where the step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocatedStep {
    /// Between these neighbours.
    Found {
        /// The last place before it.
        last: usize,
        /// The first place after it.
        first: usize,
    },
    /// Between these two, which aren't neighbours.
    Narrowed {
        /// The last place that is known to be before it.
        last: usize,
        /// The first place that is known to be after it.
        first: usize,
        /// Why it isn't known better.
        because: NarrowedBy,
    },
    /// Both ends are the same, as far as can be told.
    NoStep,
    /// This end can't be measured.
    MissingEnd(usize),
}

/// Why a step isn't known to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NarrowedBy {
    /// No place between can be measured.
    Missing,
    /// This end could be measured at first, and no longer can.
    End(usize),
    /// The noise is too large for the turns that are allowed.
    Noise,
    /// It was interrupted.
    Interrupted,
}

/// On which side of the step a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepSide {
    Before,
    After,
}

/// Student's t with so many degrees has tails heavy enough for times of programs.
const TAILS: f64 = 4.0;

/// The spread of fewer turns isn't known.
const LEAST_TURNS: usize = 4;

/// From so many turns on outliers are told from the spread.
const MANY_TURNS: usize = 10;

/// The standard deviation over the median of absolute deviations: 1.48 for normal noise, and 2.04 for that of Laplace.
const OF_MEDIAN_DISTANCE: f64 = 1.8;

/// Finds the step between the places 0 and `count - 1`, which are known to differ. `measure` measures each of some places once.
///
/// # Errors
/// Returns the first error of `measure`.
pub fn locate<E>(
    count: usize,
    rules: LocateRules,
    measure: &mut impl FnMut(&[usize]) -> Result<MeasuredTurn, E>,
) -> Result<LocatedStep, E> {
    if count < 2 {
        return Ok(LocatedStep::NoStep);
    }
    let decisions = (count as f64).log2().ceil();
    let (mut last, mut first) = (0, count - 1);
    let mut search =
        StepSearch { limit: (decisions / rules.error).ln(), rules, ends: [0, count - 1], pairs: Vec::new() };
    match search.compare_ends(measure)? {
        EndsVerdict::Differ => {}
        EndsVerdict::Same => return Ok(LocatedStep::NoStep),
        EndsVerdict::Missing(end) => return Ok(LocatedStep::MissingEnd(end)),
        EndsVerdict::Interrupted => return Ok(LocatedStep::Narrowed { last, first, because: NarrowedBy::Interrupted }),
    }
    let mut missing = Vec::new();
    while first - last > 1 {
        let middle = usize::midpoint(last, first);
        let open = (last + 1..first).filter(|place| !missing.contains(place));
        let Some(place) = open.min_by_key(|place| place.abs_diff(middle)) else {
            return Ok(LocatedStep::Narrowed { last, first, because: NarrowedBy::Missing });
        };
        match search.side_of(place, measure)? {
            SideVerdict::Known(StepSide::Before) => last = place,
            SideVerdict::Known(StepSide::After) => first = place,
            SideVerdict::Missing => missing.push(place),
            SideVerdict::Open(because) => return Ok(LocatedStep::Narrowed { last, first, because }),
        }
    }
    Ok(LocatedStep::Found { last, first })
}

/// What is known of both ends.
enum EndsVerdict {
    Differ,
    Same,
    Missing(usize),
    Interrupted,
}

/// What is known of a place between.
enum SideVerdict {
    Known(StepSide),
    Missing,
    Open(NarrowedBy),
}

/// A search on its way.
struct StepSearch {
    /// The logarithm of how much more likely one side must be.
    limit: f64,
    rules: LocateRules,
    ends: [usize; 2],
    /// What both ends had in the turns until now.
    pairs: Vec<[f64; 2]>,
}

impl StepSearch {
    /// Measures both ends until it is sure that they differ.
    fn compare_ends<E>(
        &mut self,
        measure: &mut impl FnMut(&[usize]) -> Result<MeasuredTurn, E>,
    ) -> Result<EndsVerdict, E> {
        for _ in 0..self.rules.most_turns {
            match measure(&self.ends)? {
                MeasuredTurn::Interrupted => return Ok(EndsVerdict::Interrupted),
                MeasuredTurn::Missing(place) => return Ok(EndsVerdict::Missing(place)),
                MeasuredTurn::Numbers(numbers) => self.pairs.push([numbers[0], numbers[1]]),
            }
            if self.is_exact() || self.do_ends_differ() {
                break;
            }
        }
        Ok(if self.is_exact() || self.do_ends_differ() { EndsVerdict::Differ } else { EndsVerdict::Same })
    }

    /// Whether each end always gives the same number, another one than the other end. Of fewer turns, noise of a few whole numbers
    /// looks so, too.
    fn is_exact(&self) -> bool {
        self.pairs.len() >= LEAST_TURNS
            && self.pairs.iter().all(|pair| *pair == self.pairs[0])
            && self.pairs[0][0] != self.pairs[0][1]
    }

    /// Whether the differences within turns have another middle than 0: by how much that makes them likelier, less what the two
    /// numbers that are fitted do alone (half the logarithm of the turns for each, Schwarz 1978).
    fn do_ends_differ(&self) -> bool {
        let Some((step, deviation)) = self.difference() else { return false };
        let evidence: f64 =
            self.differences().map(|by| surprise(by / deviation) - surprise((by - step) / deviation)).sum();
        evidence > self.limit + (self.pairs.len() as f64).ln()
    }

    fn differences(&self) -> impl Iterator<Item = f64> {
        self.pairs.iter().map(|[a, b]| b - a)
    }

    /// The middle difference of the ends within a turn, and its standard deviation; `None` of too few turns.
    ///
    /// The deviation is taken from the median distance from the middle, which outliers hardly change. Of few turns
    /// it is the larger of that and the usual one. It is raised by what so few leave uncertain.
    fn difference(&self) -> Option<(f64, f64)> {
        let turns = self.pairs.len() as f64;
        if self.pairs.len() < LEAST_TURNS {
            return None;
        }
        let middle = median(self.differences().collect())?;
        let distance = median(self.differences().map(|by| (by - middle).abs()).collect())?;
        let squares: f64 = self.differences().map(|by| (by - middle).powi(2)).sum();
        let usual = (squares / (turns - 1.0)).sqrt();
        let robust = distance * OF_MEDIAN_DISTANCE;
        let deviation = if self.pairs.len() < MANY_TURNS { usual } else { (usual * robust).sqrt() }.max(robust);
        Some((middle, (deviation * (1.0 + 2.0 / turns)).max(f64::MIN_POSITIVE)))
    }

    /// Measures a place in turns with the ends, until it is sure like which it is.
    fn side_of<E>(
        &mut self,
        place: usize,
        measure: &mut impl FnMut(&[usize]) -> Result<MeasuredTurn, E>,
    ) -> Result<SideVerdict, E> {
        let is_exact = self.is_exact();
        let [a, b] = self.ends;
        let places: &[usize] = if is_exact { &[place] } else { &[place, a, b] };
        let mut from_middle = Vec::new();
        for _ in 0..self.rules.most_turns {
            let numbers = match measure(places)? {
                MeasuredTurn::Interrupted => return Ok(SideVerdict::Open(NarrowedBy::Interrupted)),
                MeasuredTurn::Missing(at) if at == place => return Ok(SideVerdict::Missing),
                MeasuredTurn::Missing(end) => return Ok(SideVerdict::Open(NarrowedBy::End(end))),
                MeasuredTurn::Numbers(numbers) => numbers,
            };
            let ends = if is_exact { self.pairs[0] } else { [numbers[1], numbers[2]] };
            from_middle.push(numbers[0] - f64::midpoint(ends[0], ends[1]));
            if is_exact {
                return Ok(SideVerdict::Known(side((ends[1] - ends[0]) * from_middle[0])));
            }
            self.pairs.push(ends);
            let evidence = self.evidence(&from_middle);
            if evidence.abs() > self.limit {
                return Ok(SideVerdict::Known(side(evidence)));
            }
        }
        Ok(SideVerdict::Open(NarrowedBy::Noise))
    }

    /// The logarithm of how much likelier a place is after the step than before it, by its distances from the middle of both ends.
    fn evidence(&self, from_middle: &[f64]) -> f64 {
        let Some((step, deviation)) = self.difference() else { return 0.0 };
        // A distance from a mean of two has three quarters of the variance of a difference.
        let scale = deviation * 0.75_f64.sqrt();
        let of_one = |at: f64| surprise((at + step / 2.0) / scale) - surprise((at - step / 2.0) / scale);
        from_middle.iter().copied().map(of_one).sum()
    }
}

/// How much less likely a deviation is than none, as a logarithm: that of Student's t.
fn surprise(off: f64) -> f64 {
    (TAILS + 1.0) / 2.0 * (off.powi(2) / TAILS).ln_1p()
}

fn side(evidence: f64) -> StepSide {
    if evidence > 0.0 { StepSide::After } else { StepSide::Before }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;
    use crate::draws::Draws;

    const RULES: LocateRules = LocateRules { error: 0.01, most_turns: 200 };

    /// Where the step before a place is found, and how many measurements that took.
    fn located(count: usize, mut number: impl FnMut(usize) -> Option<f64>) -> (LocatedStep, usize) {
        let mut measurements = 0;
        let mut measure = |places: &[usize]| -> Result<MeasuredTurn, Infallible> {
            measurements += places.len();
            let mut numbers = Vec::new();
            for &place in places {
                match number(place) {
                    Some(number) => numbers.push(number),
                    None => return Ok(MeasuredTurn::Missing(place)),
                }
            }
            Ok(MeasuredTurn::Numbers(numbers))
        };
        let Ok(found) = locate(count, RULES, &mut measure);
        (found, measurements)
    }

    #[test]
    fn numbers_without_noise_take_one_run_a_commit() {
        let (found, runs) = located(16, |place| Some(if place < 11 { 5.0 } else { 4.0 }));
        // Four of each end, and one each of 7, 11, 9 and 10.
        assert_eq!((found, runs), (LocatedStep::Found { last: 10, first: 11 }, 12));
        assert_eq!(located(2, |place| Some(place as f64)).0, LocatedStep::Found { last: 0, first: 1 });
        assert_eq!(located(16, |_| Some(5.0)).0, LocatedStep::NoStep);
        assert_eq!(located(1, |_| Some(5.0)).0, LocatedStep::NoStep);
    }

    #[test]
    fn places_that_cannot_be_measured_are_gone_around() {
        let level = |place: usize| if place < 11 { 5.0 } else { 4.0 };
        let (found, _) = located(16, |place| (place != 7).then(|| level(place)));
        assert_eq!(found, LocatedStep::Found { last: 10, first: 11 });
        let (found, _) = located(16, |place| (!(9..13).contains(&place)).then(|| level(place)));
        assert_eq!(found, LocatedStep::Narrowed { last: 8, first: 13, because: NarrowedBy::Missing });
        assert_eq!(located(16, |place| (place != 15).then_some(1.0)).0, LocatedStep::MissingEnd(15));
    }

    #[test]
    fn an_end_that_fails_later_is_not_a_place_between() {
        let (mut draws, mut between) = (Draws(5), 0);
        let (found, _) = located(16, |place| {
            between += usize::from((1..15).contains(&place));
            (place != 15 || between < 2).then(|| draws.normal() + if place < 11 { 0.0 } else { 3.0 })
        });
        assert_eq!(found, LocatedStep::Narrowed { last: 0, first: 15, because: NarrowedBy::End(15) });
    }

    #[test]
    fn noise_that_hides_a_step_is_told() {
        let mut draws = Draws(3);
        let (found, _) = located(16, |_| Some(draws.normal()));
        assert_eq!(found, LocatedStep::NoStep);
    }

    /// Of 200 searches in noise with a drift: how many are wrong or without an end, and the mean of their measurements.
    fn simulated(step: f64, draw: fn(&mut Draws) -> f64) -> (usize, usize, f64) {
        let mut draws = Draws(1);
        let (mut wrong, mut open, mut runs) = (0, 0, 0);
        for search in 0..200 {
            let (at, mut time) = (1 + search * 7 % 38, 0.0);
            let (found, measurements) = located(40, |place| {
                time += 0.01;
                Some(100.0 + time + draw(&mut draws) + if place < at { 0.0 } else { step })
            });
            runs += measurements;
            match found {
                LocatedStep::Found { first, .. } => wrong += usize::from(first != at),
                _ => open += 1,
            }
        }
        (wrong, open, runs as f64 / 200.0)
    }

    #[test]
    fn at_most_one_search_in_a_hundred_is_wrong() {
        for (name, draw) in [
            ("normal", Draws::normal as fn(&mut Draws) -> f64),
            ("Laplace", Draws::laplace),
            ("t with 3 degrees", Draws::student_3),
            ("with outliers", |draws| {
                draws.normal() + if draws.uniform() < 0.15 { -20.0 * draws.uniform().ln() } else { 0.0 }
            }),
        ] {
            for step in [1.5, 4.0, 20.0] {
                let (wrong, open, runs) = simulated(step, draw);
                // A small step among outliers is left open.
                let is_hidden = name == "with outliers" && step < 20.0;
                assert!(wrong <= 5, "{name}, step {step}: {wrong} wrong");
                assert!(open <= 2 || is_hidden, "{name}, step {step}: {open} open, {runs} runs");
            }
        }
    }

    proptest! {
        #[test]
        fn each_place_is_found_where_there_is_no_noise(count in 2usize..200, at in 1usize..199, by in prop::sample::select(vec![-1.0, 0.5])) {
            let at = at.min(count - 1);
            let (found, runs) = located(count, |place| Some(if place < at { 1.0 } else { 1.0 + by }));
            prop_assert_eq!(found, LocatedStep::Found { last: at - 1, first: at });
            prop_assert!(runs <= 8 + (count as f64).log2().ceil() as usize);
        }
    }
}
