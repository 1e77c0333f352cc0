//! Relations and raw statistics in, how well the one agrees with the other out.

use super::{Raw, RelationIndex, RelationState, Standing, deviation};
use crate::events::Event;
use crate::expr::{Program, Slot};
use crate::relations::{Binding, BoundForm, BoundPair, BoundRelation, Relation};

/// A relation is judged once each of its events has so many samples.
pub(super) const JUDGED_AFTER: u64 = 5;

/// Past so many standard errors a relation is put aside, and below so many it is taken back.
const VIOLATED_ABOVE: f64 = 3.0;
const AGREES_BELOW: f64 = 2.0;

/// Holds relations against what is counted, whether or not anything is corrected by them.
#[derive(Debug)]
pub(super) struct Judge {
    relations: Vec<Option<BoundRelation>>,
    standings: Vec<Standing>,
    /// Raw mean and variance of each event side by side, as bound relations read them.
    values: Vec<f64>,
    /// Room for the gradient of one relation.
    gradient: Vec<f64>,
}

impl Judge {
    /// A judge of these relations between these events.
    pub(super) fn new(events: &[Event], relations: &[Relation]) -> Self {
        let (relations, standings) = relations.iter().map(|relation| bind(relation, events)).unzip();
        Self { relations, standings, values: vec![f64::NAN; 2 * events.len()], gradient: Vec::new() }
    }

    /// How each relation fares.
    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The relations that may correct: bound, and not contradicted.
    pub(super) fn trusted(&self) -> impl Iterator<Item = (RelationIndex, &BoundRelation)> {
        let all = self.relations.iter().zip(&self.standings).enumerate();
        all.filter(|(_, (_, standing))| standing.state != RelationState::Violated)
            .filter_map(|(index, (relation, _))| Some((index, relation.as_ref()?)))
    }

    /// Notes that a relation corrected an event.
    pub(super) fn used(&mut self, index: RelationIndex) {
        let standing = &mut self.standings[index];
        standing.uses += 1;
    }

    /// Judges every relation anew; gives those that have just been found to be contradicted.
    pub(super) fn judge(&mut self, raw: &[Raw]) -> Vec<RelationIndex> {
        for (event, raw) in raw.iter().enumerate() {
            self.values[2 * event] = raw.rate.mean().unwrap_or(f64::NAN);
            self.values[2 * event + 1] = raw.rate.variance().unwrap_or(f64::NAN);
        }
        let mut fallen = Vec::new();
        for (index, relation) in self.relations.iter().enumerate() {
            let Some(relation) = relation else { continue };
            let Some(check) = check(relation, &self.values, &mut self.gradient, raw) else { continue };
            let standing = &mut self.standings[index];
            standing.residual = Some(check.residual);
            standing.relative = (check.counted != 0.0).then(|| check.residual / check.counted.abs());
            standing.z = check.z.is_finite().then_some(check.z);
            let next = next_state(&standing.state, &check);
            if next == RelationState::Violated && standing.state != RelationState::Violated {
                fallen.push(index);
            }
            standing.state = next;
        }
        fallen
    }

    /// The events that a relation corrects.
    pub(super) fn corrected(&self, index: RelationIndex) -> &[usize] {
        match self.relations[index].as_ref().map(|relation| &relation.form) {
            Some(BoundForm::Pair(pair)) => std::slice::from_ref(&pair.to),
            Some(BoundForm::Equation(equation)) => equation.events(),
            None => &[],
        }
    }
}

fn bind(relation: &Relation, events: &[Event]) -> (Option<BoundRelation>, Standing) {
    let (bound, state) = match relation.bind(events) {
        Binding::Active(bound) => (Some(bound), RelationState::Waiting),
        Binding::Inactive { missing } => (None, RelationState::Inactive { missing }),
        Binding::SelfRelation { event } => (None, RelationState::SameEvent { event }),
    };
    (bound, Standing { state, ..Standing::default() })
}

/// A relation's prediction beside what was counted.
struct Check {
    residual: f64,
    counted: f64,
    z: f64,
    /// The fewest samples that any of the events has.
    samples: u64,
}

/// `None` where not all of its events have been counted, or the prediction has no value.
fn check(relation: &BoundRelation, values: &[f64], gradient: &mut Vec<f64>, raw: &[Raw]) -> Option<Check> {
    let (residual, counted, variance, samples) = match &relation.form {
        BoundForm::Pair(BoundPair { to, mean: Some(mean), from, .. }) => {
            let predicted = with_gradient(mean, values, gradient)?;
            let counted = known(values[2 * to])?;
            let variance = mean_variance(&raw[*to]) + propagated(mean.slots(), gradient, raw);
            (predicted - counted, counted, variance, raw[*from].rate.samples().min(raw[*to].rate.samples()))
        }
        BoundForm::Pair(BoundPair { mean: None, .. }) => return None,
        BoundForm::Equation(equation) => {
            gradient.clear();
            gradient.resize(equation.events().len(), 0.0);
            let residual = known(equation.residual_with_gradient(values, gradient))?;
            let slots: Vec<_> = equation.events().iter().map(|&event| Slot(2 * event)).collect();
            let samples = equation.events().iter().map(|&event| raw[event].rate.samples()).min()?;
            (-residual, equation.sides(values)[0], propagated(&slots, gradient, raw), samples)
        }
    };
    // What a relation may be off by is as much as it is put aside for, were the counts exact.
    let slack = relation.tolerance.get() / VIOLATED_ABOVE * counted.abs().max((counted + residual).abs());
    let z = residual / (variance + slack * slack).sqrt();
    Some(Check { residual, counted, z, samples })
}

pub(super) fn known(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

pub(super) fn with_gradient(program: &Program, values: &[f64], gradient: &mut Vec<f64>) -> Option<f64> {
    gradient.clear();
    gradient.resize(program.slots().len(), 0.0);
    known(program.eval_with_gradient(values, gradient))
}

/// The variance that the means in `slots` give a value with this gradient, if they are independent.
fn propagated(slots: &[Slot], gradient: &[f64], raw: &[Raw]) -> f64 {
    let means = slots.iter().zip(gradient).filter(|(Slot(slot), _)| slot % 2 == 0);
    means.map(|(Slot(slot), derivative)| derivative * derivative * mean_variance(&raw[slot / 2])).sum()
}

/// The squared standard error of a raw mean: what multiplexing left unseen. How the program varies
/// is no error of it, as all events were counted on the same run. NaN where it isn't known.
fn mean_variance(raw: &Raw) -> f64 {
    deviation(raw.rate_error()).powi(2)
}

fn next_state(now: &RelationState, check: &Check) -> RelationState {
    let size = check.z.abs();
    match now {
        RelationState::Violated if size < AGREES_BELOW => RelationState::Agrees,
        RelationState::Violated => RelationState::Violated,
        _ if check.samples >= JUDGED_AFTER && size > VIOLATED_ABOVE => RelationState::Violated,
        _ => RelationState::Agrees,
    }
}
