//! Estimates counts, with intervals, from what rounds counted and from relations.
//!
//! An [`Estimator`] takes every round, and at the end of an interval answers for every event: the
//! count of the interval and of the run with an interval each, the variance, where the numbers come
//! from, and what moved them. Raw statistics are kept beside in a [`Tally`] that it can only read.
//!
//! ```text
//! round(from, to, deltas) ... round(...)  end_interval(tally)  ->  estimates(), relations()
//! ```
//!
//! One more estimator is one more file here with a type that implements the trait, and an arm in
//! each function of [`EstimatorKind`]; command line, recordings, screens and texts take it from there. What
//! all of them keep to:
//!
//! - A count that is exact (the event was counted all the time) stays as it is.
//! - No estimate, and no lower end of an interval, is below what was counted
//!   ([`Uncertain::at_least`]).
//! - Intervals are at the level of [`Tally::confidence`], and may be wider on one side.
//! - An event that it knows nothing better of has the count that scaling gives ([`scaled`]).

use crate::events::Event;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Delta, Tally, Uncertain};
use crate::relations::{Relation, Tolerance};
use crate::units::WallNs;

mod audit;
mod each_part;
mod fading;
mod gaussian;
pub mod gp;
mod levels;
mod linear;
mod on_cpu;
mod residual;
mod scale;
mod sums;
mod timed_count;
mod whole_run;

pub use each_part::EachPart;
pub use gaussian::Gaussian;
pub use linear::{Linear, LinearRule};
pub use on_cpu::OnCpu;
pub use scale::ScaleEstimator;
pub use sums::JudgedSums;
pub use whole_run::{IntervalBasis, WholeRun};

/// The place of a relation in the list of all that were read.
pub type RelationIndex = usize;

/// Turns what rounds counted into estimates.
pub trait Estimator: Send {
    /// Takes a round: the time that it covers, and what it counted of each event; `None` for one
    /// that could not be read. An estimator that works on whole intervals needs no rounds.
    fn round(&mut self, _from: WallNs, _to: WallNs, _deltas: &[Option<Delta>]) {}

    /// Ends the interval of the rounds since the last end. `tally` has the raw statistics of the
    /// interval and of the run, both up to here.
    fn end_interval(&mut self, tally: &Tally);

    /// The best that is known of each event, up to the end of the last interval.
    fn estimates(&self) -> &[Estimate];

    /// How each relation fares, in the order of the files.
    fn relations(&self) -> &[Standing];

    /// What makes the numbers of the last interval less than they seem.
    fn weaknesses(&self) -> Vec<Weakness> {
        Vec::new()
    }

    /// Estimates of all intervals from all rounds; `None` if the estimator can't improve on its live estimates, or
    /// didn't keep what that takes.
    fn whole_run(&self, _confidence: Confidence) -> Option<WholeRun> {
        None
    }

    /// Whether intervals are estimated by a whole run, and not only by what came before their ends.
    fn knows_whole_run(&self) -> bool {
        false
    }
}

/// What makes an estimator's numbers less than they seem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weakness {
    /// The rotation of the counters beats with the program: events that are always counted have other rates in the
    /// stays of multiplexed ones on counters.
    Aliased {
        /// By what scaled counts may have to be multiplied, at least.
        least: f64,
        /// By what they may have to be multiplied at most.
        most: f64,
    },
    /// The estimator found no solution, and scaled counts.
    Scaled,
}

/// Names the estimators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EstimatorKind {
    /// [`ScaleEstimator`]: scales counts, as perf does.
    #[default]
    Scale,
    /// [`Linear`]: corrects means by fixed weights.
    Linear,
    /// [`Linear`] by [`LinearRule::Plain`]: corrects by every relation, always.
    LinearPlain,
    /// [`Gaussian`]: corrects by a Gaussian process.
    Gp,
}

impl EstimatorKind {
    /// All estimators.
    pub const ALL: [Self; 4] = [Self::Scale, Self::Linear, Self::LinearPlain, Self::Gp];

    /// Name of the estimator in recordings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scale => "scale",
            Self::Linear => "linear",
            Self::LinearPlain => "linear-plain",
            Self::Gp => "gp",
        }
    }

    /// Describes the estimator in a line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Scale => "Count x time enabled / time running, as perf does",
            Self::Linear => "Means, corrected with fixed weights by relations that agree with what is counted",
            Self::LinearPlain => "Means, corrected with fixed weights by every relation, right or wrong",
            Self::Gp => "Counts, corrected by how events rise and fall together, and by relations",
        }
    }

    /// The one of this name; recordings of other versions may have others.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// A new one for these events and relations.
    pub fn build(self, events: &[Event], relations: &[Relation]) -> Box<dyn Estimator> {
        match self {
            Self::Scale => Box::new(ScaleEstimator::new(events, relations)),
            Self::Linear => Box::new(Linear::new(events, relations)),
            Self::LinearPlain => Box::new(Linear::with_rule(LinearRule::Plain, events, relations)),
            Self::Gp => Box::new(Gaussian::new(events, relations)),
        }
    }
}

/// What an estimator knows of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The count of the interval that ended last; `None` if nothing is known of it.
    pub interval: Option<Uncertain>,
    /// The count of the run up to there. Over the CPU time of the run it is the mean rate.
    pub total: Option<Uncertain>,
    /// The variance of the rate between intervals, in the square of counts per millisecond of CPU
    /// time, where the estimator has one.
    pub variance: Option<f64>,
    /// Where the total comes from.
    pub quality: Quality,
    /// What moved the total, strongest first and the weighting last: their counts add up to the total less the scaled
    /// one, or to all of it where nothing was counted, unless it was raised to what was counted.
    pub parts: Vec<Contribution>,
}

/// Where a number comes from, and so how far it can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// There is no number (yet).
    #[default]
    Missing,
    /// The event was counted all the time.
    Measured,
    /// The event was counted for a part of the time, and scaled.
    Scaled,
    /// Counted for a part of the time, and corrected.
    Corrected,
    /// Never counted: it follows from others.
    Derived,
}

/// What moved a number, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    /// What moved it.
    pub by: Cause,
    /// How many counts it added, or took away.
    pub counts: f64,
}

impl Contribution {
    fn relation(&self) -> Option<RelationIndex> {
        match self.by {
            Cause::Relation(index) => Some(index),
            Cause::Event(_) | Cause::Weighting => None,
        }
    }
}

/// What can move a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The relation with this index.
    Relation(RelationIndex),
    /// What was counted of another event.
    Event(RowIndex),
    /// The estimator's weighting of own samples, which isn't by their time.
    Weighting,
}

/// Standing of a relation: its residual, and how far it is trusted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// How often it corrected an event.
    pub uses: u64,
    /// What it predicts of its event minus what was counted, over the whole run: in counts per
    /// millisecond of CPU time for means, in its square for a relation of variances alone.
    pub residual: Option<f64>,
    /// The residual as a part of what was counted.
    pub relative: Option<f64>,
    /// The residual in units of its standard error.
    pub z: Option<f64>,
    /// From 0 to 1: how far it can be believed to be as good as it says, after what its residuals
    /// were; `None` before there were enough of them, and where it corrects at its weight whatever they are.
    pub trust: Option<f64>,
    /// In how many intervals it was held against what was counted; 0 of a relation of variances, which a run has one
    /// of.
    pub tested: u64,
    /// The event that it moved most, as its run's total stands.
    pub moved: Option<Moved>,
    /// State that follows from the residual.
    pub state: RelationState,
}

/// The residual, as a part of what was counted, that is far from 0.
const FAR_OFF: f64 = 0.2;

/// The trust below which a relation that agrees is in doubt.
const DOUBT: f64 = 0.9;

impl Standing {
    /// Whether it agrees over the run so far, and is trusted less than a relation that its intervals agree with: it corrects with a
    /// part of its weight.
    pub fn is_doubted(&self) -> bool {
        self.state == RelationState::Agrees && self.trust.is_some_and(|trust| trust < DOUBT)
    }

    /// Whether its residual is far from 0, and larger than its tolerance: of a relation that isn't contradicted the counts are too
    /// uncertain to do so.
    pub fn is_far_off(&self, tolerance: Tolerance) -> bool {
        self.relative.is_some_and(|part| part.abs() > FAR_OFF.max(tolerance.into()))
    }

    /// Whether it corrects although what is counted contradicts it.
    pub fn corrects_regardless(&self) -> bool {
        self.state == RelationState::Violated && self.trust.is_none()
    }
}

/// An event, and how far it was moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moved {
    /// Event that was moved.
    pub event: RowIndex,
    /// The change as a part of the scaled count; `None` where there was nothing to move.
    pub relative: Option<f64>,
}

/// State of a relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RelationState {
    /// Too little has been counted to judge it.
    #[default]
    Waiting,
    /// The relation agrees with what is counted, and corrects.
    Agrees,
    /// What is counted contradicts it: it corrects nothing, but by [`LinearRule::Plain`].
    Violated,
    /// These events of it aren't measured.
    Inactive {
        /// Names of the events that are not measured.
        missing: Vec<String>,
    },
    /// The relation leads from an event to itself, which has two names.
    SameEvent {
        /// Event with two names.
        event: RowIndex,
    },
}

/// Differences below this part of a number are those of rounding.
const ROUNDING: f64 = 1e-9;

fn strongest_first(parts: &mut [Contribution]) {
    parts.sort_by(|a, b| b.counts.abs().total_cmp(&a.counts.abs()));
}

/// The estimate that an event's own samples alone give.
pub fn scaled(tally: &Tally, event: RowIndex) -> Estimate {
    let raw = &tally.raw()[event];
    let total = tally.total(event);
    let quality = match total {
        None => Quality::Missing,
        Some(_) if raw.run.is_exact() => Quality::Measured,
        Some(_) => Quality::Scaled,
    };
    let interval = tally.interval_count(event);
    Estimate { interval, total, variance: raw.rate.variance(), quality, parts: Vec::new() }
}

/// The same of every event.
fn scale_all(tally: &Tally, estimates: &mut [Estimate]) {
    for (event, estimate) in estimates.iter_mut().enumerate() {
        *estimate = scaled(tally, event);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::builders::event;
    use crate::units::CpuNs;

    pub(super) fn events(names: &[&str]) -> Vec<Event> {
        names.iter().map(|name| event(name)).collect()
    }

    /// Two milliseconds, of which one was counted, or nothing.
    pub(super) fn half(count: Option<u64>) -> Delta {
        let ms = |ms: u64| CpuNs(ms * 1_000_000);
        Delta { count: count.unwrap_or(0), enabled: ms(2), running: ms(count.map_or(0, |_| 1)) }
    }

    /// Two milliseconds, all of them counted.
    pub(super) fn whole(count: u64) -> Delta {
        Delta { count, running: half(None).enabled, ..half(None) }
    }

    #[test]
    fn what_agrees_is_in_doubt_below_nine_tenths_of_trust() {
        let of = |state, trust| Standing { state, trust, ..Standing::default() }.is_doubted();
        let agreeing = [Some(0.46), Some(0.9), Some(1.0), None].map(|trust| of(RelationState::Agrees, trust));
        assert_eq!(agreeing, [true, false, false, false]);
        assert!(!of(RelationState::Violated, Some(0.0)) && !of(RelationState::Waiting, Some(0.5)));
    }

    #[test]
    fn a_residual_is_far_off_beyond_a_fifth_and_its_tolerance() {
        let tolerance = |part: f64| Tolerance::new(part).unwrap();
        let of = |relative: Option<f64>| Standing { relative, ..Standing::default() };
        assert!(of(Some(1.79)).is_far_off(tolerance(0.1)) && of(Some(-0.3)).is_far_off(tolerance(0.001)));
        assert!(!of(Some(0.049)).is_far_off(tolerance(0.001)) && !of(Some(0.3)).is_far_off(tolerance(0.5)));
        assert!(!of(None).is_far_off(tolerance(0.1)));
    }

    #[test]
    fn names_lead_back_to_their_estimators() {
        assert!(EstimatorKind::ALL.into_iter().all(|kind| EstimatorKind::named(kind.name()) == Some(kind)));
        assert_eq!(EstimatorKind::named("guess"), None);
    }

    /// Right ones, wrong ones, one without a value at times.
    const RELATIONS: &str = r#"[
        {"eventFrom": "a", "eventTo": "b", "expectedMean": "2 * {mean}", "weight": 1},
        {"eventFrom": "b", "eventTo": "a", "expectedMean": "{mean} / 3", "expectedVariance": "{variance}"},
        {"eventFrom": "c", "eventTo": "a", "expectedMean": "1 / {mean}", "weight": 0.5},
        {"relation": "a = b + c", "tolerance": 1}, {"relation": "a / b = d"}]"#;

    /// The time between rounds.
    const ROUND: u64 = 20_000_000;

    /// What was counted of an event in a round, of so many milliseconds of which it ran so many.
    fn delta((count, enabled, running): (u64, u64, u64)) -> Option<Delta> {
        let ms = |ms: u64| CpuNs(ms * 1_000_000);
        let running = running.min(enabled);
        // Nothing is counted while nothing runs.
        Some(Delta { count: if running > 0 { count } else { 0 }, enabled: ms(enabled), running: ms(running) })
    }

    /// Rounds in intervals of three through an estimator, which `check` looks at after each.
    fn run(kind: EstimatorKind, rounds: &[[Option<Delta>; 4]], mut check: impl FnMut(&Tally, &[Estimate])) {
        let relations = crate::relations::parse("test.json", RELATIONS.as_bytes()).strict().unwrap();
        let mut estimator = kind.build(&events(&["a", "b", "c", "d"]), &relations);
        let mut tally = Tally::new(4);
        for (at, deltas) in (0..).zip(rounds) {
            tally.round(deltas);
            estimator.round(WallNs(at * ROUND), WallNs((at + 1) * ROUND), deltas);
            if at % 3 == 2 {
                tally.end_interval();
                estimator.end_interval(&tally);
                check(&tally, estimator.estimates());
            }
        }
    }

    fn rounds() -> impl Strategy<Value = Vec<[Option<Delta>; 4]>> {
        let event = prop::option::weighted(0.9, (0u64..1_000_000_000, 0u64..20, 0u64..20));
        let round = prop::array::uniform4(event);
        prop::collection::vec(round.prop_map(|events| events.map(|event| event.and_then(delta))), 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_counted_all_the_time_is_never_moved(mut rounds in rounds()) {
            for round in &mut rounds {
                for delta in round[..2].iter_mut().flatten() {
                    *delta = Delta { running: delta.enabled, ..*delta };
                }
            }
            for kind in EstimatorKind::ALL {
                run(kind, &rounds, |tally, estimates| {
                    for (event, estimate) in estimates[..2].iter().enumerate().filter(|(event, _)| tally.raw()[*event].run.is_exact()) {
                        assert_eq!(*estimate, scaled(tally, event));
                        assert_eq!(estimate.quality, Quality::Measured);
                    }
                });
            }
        }

        #[test]
        fn nothing_is_nan_or_less_than_was_counted(rounds in rounds()) {
            let check = |count: Option<Uncertain>, counted: u64| {
                let least = counted as f64 - 1e-12 * count.map_or(0.0, |count| count.value);
                assert!(count.is_none_or(|count| count.value.is_finite() && count.value >= least), "{count:?} {counted}");
                let bounds = count.and_then(Uncertain::bounds);
                assert!(bounds.is_none_or(|(low, high)| low >= least && low <= high), "{count:?} {counted}");
            };
            for kind in EstimatorKind::ALL {
                run(kind, &rounds, |tally, estimates| {
                    for (event, estimate) in estimates.iter().enumerate() {
                        check(estimate.interval, tally.interval(event).total().count);
                        check(estimate.total, tally.raw()[event].run.total().count);
                        assert!(estimate.variance.is_none_or(|variance| variance >= 0.0));
                        assert!(estimate.parts.iter().all(|part| part.counts.is_finite()));
                        assert_eq!(estimate.total.is_none(), estimate.quality == Quality::Missing);
                    }
                });
            }
        }
    }
}
