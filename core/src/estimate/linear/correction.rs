//! Adds up what trusted relations expect of each event.

use super::super::RelationIndex;
use super::super::audit::{Audit, AuditScope};
use super::super::levels::{EventLevels, known, residual_with_gradient, with_gradient};
use super::LinearRule;
use super::state::mixed;
use crate::plan::RowIndex;
use crate::relations::{BoundEquation, BoundForm, BoundPair, BoundRelation, mean_slot};

/// Steps after which an equation that has no solution near by is given up.
const MAX_STEPS: usize = 50;

/// Where those steps begin, one after the other until one leads there. From 0 a quotient has no
/// value, and from too far above its solution it leads away.
const STARTS: [f64; 3] = [0.0, 1.0, 1e-6];

/// What relations expect of one event, added up.
#[derive(Clone, Debug, Default)]
pub(super) struct ExpectedCorrection {
    pub(super) mean: Expectation,
    pub(super) variance: Expectation,
    /// The errors of what is expected, weighted.
    deviation: f64,
    /// Each relation with its weight and what it expects.
    pub(super) expectations: Vec<(RelationIndex, f64, f64)>,
}

/// A weighted sum of expectations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expectation {
    pub(super) weight: f64,
    sum: f64,
}

/// What is known of events without relations.
pub(super) struct KnownEvents {
    pub(super) levels: EventLevels,
    /// Whether each event was on a counter in the last interval.
    pub(super) sampled: Vec<bool>,
    /// Whether it is known exactly: then nothing moves it.
    pub(super) exact: Vec<bool>,
}

/// A relation that corrects, and how far.
#[derive(Clone, Copy)]
pub(super) struct Corrector {
    pub(super) index: RelationIndex,
    pub(super) weight: f64,
}

/// What all relations expect, all from the same numbers.
pub(super) struct ExpectedCorrections<'a> {
    rule: LinearRule,
    audit: &'a Audit,
    scope: AuditScope,
    known: KnownEvents,
    pub(super) corrections: Vec<ExpectedCorrection>,
    /// The relation of each correction.
    pub(super) uses: Vec<RelationIndex>,
    /// Room for the gradient of one relation.
    gradient: Vec<f64>,
}

impl<'a> ExpectedCorrections<'a> {
    /// Corrections before any relation was added.
    pub(super) fn new(rule: LinearRule, audit: &'a Audit, scope: AuditScope, known: KnownEvents) -> Self {
        let corrections = vec![ExpectedCorrection::default(); known.exact.len()];
        Self { rule, audit, scope, known, corrections, uses: Vec::new(), gradient: Vec::new() }
    }

    /// Adds what a relation expects.
    pub(super) fn take(&mut self, by: Corrector, relation: &BoundRelation) {
        match &relation.form {
            BoundForm::Pair(pair) if self.known.sampled[pair.from] && !self.known.exact[pair.to] => {
                self.correct_pair(by, pair)
            }
            BoundForm::Pair(_) => {}
            BoundForm::Equation(equation) => self.correct_equation(by, equation),
        }
    }

    fn correct_pair(&mut self, by: Corrector, pair: &BoundPair) {
        if let Some(program) = &pair.mean
            && let Some(expected) = with_gradient(program, &self.known.levels.values, &mut self.gradient)
        {
            let deviation = self.known.levels.propagated(program.slots(), &self.gradient);
            self.expect_mean(by, pair.to, expected, deviation);
        }
        if let Some(expected) =
            pair.variance.as_ref().and_then(|program| known(program.eval(&self.known.levels.values)))
        {
            self.corrections[pair.to].variance.add(by.weight, expected.max(0.0));
            if pair.mean.is_none() {
                self.uses.push(by.index);
            }
        }
    }

    /// Each event towards the others; one without a number to where they put it. Two of those can't
    /// be distinguished.
    fn correct_equation(&mut self, by: Corrector, equation: &BoundEquation) {
        let events = equation.events();
        let (run, interval) = self.audit.levels();
        let own = if self.scope == AuditScope::Run { run } else { interval };
        // One that has a number from relations only is no source of others.
        let mut unknown = events.iter().enumerate().filter(|&(_, &event)| own.mean(event).is_nan());
        match (unknown.next(), unknown.next()) {
            (None, _) => {
                let residual = self.residual(equation);
                let places = 0..events.len();
                places.for_each(|place| self.expect_at(by, equation, place, residual));
            }
            (Some((place, &event)), None) => {
                let slot = mean_slot(event).0;
                let before = self.known.levels.values[slot];
                if self.solve(equation, place, slot).is_some() {
                    self.expect_at(by, equation, place, Some(0.0));
                }
                self.known.levels.values[slot] = before;
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// The residual, with its derivatives in `gradient`.
    fn residual(&mut self, equation: &BoundEquation) -> Option<f64> {
        residual_with_gradient(equation, &self.known.levels.values, &mut self.gradient)
    }

    /// Puts the number that makes the equation hold into `slot`, by Newton's steps: one, and one to
    /// see it, where the equation is linear in it.
    fn solve(&mut self, equation: &BoundEquation, place: usize, slot: usize) -> Option<()> {
        for start in STARTS {
            self.known.levels.values[slot] = start;
            for _ in 0..MAX_STEPS {
                let Some(residual) = self.residual(equation) else { break };
                let slope = self.gradient[place];
                if slope == 0.0 || !slope.is_finite() {
                    break;
                }
                let step = residual / slope;
                self.known.levels.values[slot] -= step;
                if step.abs() <= 1e-12 * self.known.levels.values[slot].abs().max(f64::MIN_POSITIVE) {
                    return Some(());
                }
            }
        }
        None
    }

    fn expect_at(&mut self, by: Corrector, equation: &BoundEquation, place: usize, residual: Option<f64>) {
        let events = equation.events();
        let (event, slope) = (events[place], self.gradient[place]);
        let is_moved =
            !self.known.exact[event] && events.iter().any(|&other| other != event && self.known.sampled[other]);
        let Some(residual) = residual.filter(|_| slope != 0.0 && slope.is_finite() && is_moved) else { return };
        let others = events.iter().zip(&self.gradient).filter(|&(&other, _)| other != event);
        let errors =
            others.map(|(&other, derivative)| derivative / slope * self.known.levels.deviations[mean_slot(other).0]);
        let deviation = errors.fold(0.0, f64::hypot);
        self.expect_mean(by, event, self.known.levels.mean(event) - residual / slope, deviation);
    }

    fn expect_mean(&mut self, by: Corrector, event: RowIndex, expected: f64, deviation: f64) {
        let Corrector { index, weight } = by;
        let Some(expected) = known(expected).map(|expected| expected.max(0.0)) else { return };
        let deviation = deviation.hypot(self.audit.misfit(index, self.scope, expected));
        let weight = match self.rule {
            LinearRule::Judged => weight * less_sure(self.known.levels.deviations[mean_slot(event).0], deviation),
            LinearRule::Plain => weight,
        };
        if weight == 0.0 {
            return;
        }
        let correction = &mut self.corrections[event];
        correction.mean.add(weight, expected);
        correction.deviation += weight * deviation;
        correction.expectations.push((index, weight, expected));
        self.uses.push(index);
    }
}

/// How much less an expectation weighs that is less sure than what it corrects: by the ratio of the variances, as in
/// the mean with the least. An error that isn't known is more than any other.
pub(super) fn less_sure(own: f64, expected: f64) -> f64 {
    match (own.is_nan(), expected.is_nan()) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) if expected == 0.0 => 1.0,
        (false, false) => (own / expected).powi(2).min(1.0),
    }
}

impl ExpectedCorrection {
    /// The deviation of a mean that was pulled, from that of the mean before.
    pub(super) fn deviation(&self, is_new: bool, before: f64) -> f64 {
        let theirs = self.deviation / self.mean.weight;
        if is_new { theirs } else { mixed(before, theirs, self.mean.share()) }
    }
}

impl Expectation {
    fn add(&mut self, weight: f64, expected: f64) {
        self.weight += weight;
        self.sum += weight * expected;
    }

    /// How much of the way is gone: all of it at most.
    pub(super) fn share(self) -> f64 {
        self.weight.min(1.0)
    }

    /// Where the expectations lead: nowhere without any.
    pub(super) fn apply(self, from: f64) -> f64 {
        if self.weight == 0.0 {
            return from;
        }
        let expected = self.sum / self.weight;
        if from.is_nan() { expected } else { from + self.share() * (expected - from) }
    }
}
