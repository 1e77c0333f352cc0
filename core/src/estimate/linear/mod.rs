//! Corrects means towards what relations expect of them, by fixed weights.
//!
//! Each event has a state of its own: a mean `m`, a variance `v` and a number of samples `n`. An
//! own sample `x` makes `n += 1` and `m += (x - m) / n`, and `v` the sample variance in one pass.
//! Then every relation whose source had a sample makes, from the states that all events have at
//! that moment,
//!
//! ```text
//! m_to += w (g - m_to)        v_to += w (u - v_to)
//! ```
//!
//! where `g` and `u` are what it expects of the mean and the variance. All steps start from the
//! same states, so that neither cycles nor the order of files matter, and several relations into
//! one event share the way in proportion to their weights, at most all of it.
//!
//! An equation corrects each of its events towards the value that would make it hold, the others
//! being what they are: `m - residual / (d residual / d m)`. An event that was never counted gets
//! that value once all the others are.
//!
//! The states are means over the intervals of the run, and give the run's totals. The count of a
//! single interval is corrected by the same step, from the rates of that interval.
//!
//! What was counted all the time stays as it is. The error of a corrected mean is the sum, weighted
//! as the correction is, of the errors of what went into it, with the relation's own residual as an
//! error of the relation: a mixture is never surer than its parts, however they are correlated.
//!
//! Five more things keep it honest. A relation that contradicts what is counted is put aside, and one
//! whose residuals are larger than it says weighs less. So does an expectation that is less sure than what
//! it corrects: a part that is small beside the others isn't moved by what these are wrong by. Nothing stays of
//! corrections from the time in which no error was known. An event whose
//! corrections predict its samples worse than its own mean does goes back to its own samples.
//! [`LinearRule::Plain`] does without these five.

mod correction;
mod state;
#[cfg(test)]
mod tests;

use correction::{Corrector, ExpectedCorrection, ExpectedCorrections, KnownEvents};
use state::EventState;

use super::audit::{Audit, AuditScope, Trusted};
use super::levels::{EventLevels, known};
use super::{
    Cause, Contribution, Estimate, Estimator, Quality, ROUNDING, Standing, scale_all, scaled, strongest_first,
};
use crate::events::Event;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Error, Tally, Uncertain};
use crate::relations::{Relation, mean_slot};

/// Which relations correct, and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinearRule {
    /// Those that what is counted agrees with, by their weight times how far they are trusted and how sure they are
    /// beside what they correct, and only events that it helps.
    Judged,
    /// All, always, by their weight.
    Plain,
}

/// Linear correction with the relations' weights.
#[derive(Debug)]
pub struct Linear {
    rule: LinearRule,
    audit: Audit,
    states: Vec<EventState>,
    estimates: Vec<Estimate>,
}

impl Linear {
    /// An estimator for these events, with the relations whose events are all among them.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        Self::with_rule(LinearRule::Judged, events, relations)
    }

    /// An estimator by this rule.
    pub fn with_rule(rule: LinearRule, events: &[Event], relations: &[Relation]) -> Self {
        Self {
            rule,
            audit: Audit::new(events, relations),
            states: vec![EventState::new(rule); events.len()],
            estimates: vec![Estimate::default(); events.len()],
        }
    }

    fn corrections(&self, scope: AuditScope, tally: &Tally) -> ExpectedCorrections<'_> {
        let (run, interval) = self.audit.levels();
        let levels = match scope {
            AuditScope::Run => {
                let values = self.states.iter().flat_map(EventState::as_source).collect();
                // The errors are those of own samples, which are independent: those of corrected
                // means would go round in cycles and grow.
                EventLevels { values, deviations: run.deviations.clone() }
            }
            AuditScope::Interval => interval.clone(),
        };
        let sampled = (0..self.states.len()).map(|event| tally.interval(event).total().running.0 > 0).collect();
        let exact = (0..self.states.len()).map(|event| match scope {
            AuditScope::Run => tally.raw()[event].run.is_exact(),
            AuditScope::Interval => tally.interval(event).is_exact(),
        });
        let known = KnownEvents { levels, sampled, exact: exact.collect() };
        let mut all = ExpectedCorrections::new(self.rule, &self.audit, scope, known);
        match self.rule {
            LinearRule::Judged => {
                for Trusted { index, relation, weight } in self.audit.trusted() {
                    all.take(Corrector { index, weight }, relation);
                }
            }
            LinearRule::Plain => {
                for (index, relation) in self.audit.bound() {
                    all.take(Corrector { index, weight: relation.weight.get() }, relation);
                }
            }
        }
        all
    }

    fn estimate(&self, event: RowIndex, tally: &Tally, interval: &ExpectedCorrection) -> Estimate {
        let own = scaled(tally, event);
        let state = &self.states[event];
        if own.quality == Quality::Measured || state.drops_corrections() {
            return own;
        }
        let interval = self.interval(event, tally, interval).or(own.interval);
        if state.parts.is_empty() || !state.mean.is_finite() {
            return Estimate { interval, variance: state.corrected_variance().or(own.variance), ..own };
        }
        let time = tally.run_time(event).as_ms();
        let raw = &tally.raw()[event];
        // Samples of equal weight have another mean than the count over the time: a known part of
        // what the corrected mean is wrong by.
        let weighting = raw.rate.mean().map_or(0.0, |mean| state.own_mean - mean);
        let total = uncertain(state.mean, state.deviation, weighting.abs(), tally.confidence()).scaled(time);
        let part = |by, rate: f64| Contribution { by, counts: rate * time };
        let of_relations = state.parts.iter().map(|(&index, &rate)| part(Cause::Relation(index), rate));
        let mut parts: Vec<_> = of_relations.collect();
        strongest_first(&mut parts);
        if weighting.abs() > ROUNDING * state.mean.abs() {
            parts.push(part(Cause::Weighting, weighting));
        }
        Estimate {
            interval,
            total: Some(total.at_least(raw.run.total().count as f64).or_more(tally.most_unseen(event, raw.run.lead()))),
            variance: known(state.variance).or(own.variance),
            quality: if state.samples == 0 { Quality::Derived } else { Quality::Corrected },
            parts,
        }
    }

    /// The corrected count of the last interval; `None` where nothing corrects it.
    fn interval(&self, event: RowIndex, tally: &Tally, correction: &ExpectedCorrection) -> Option<Uncertain> {
        let counted = tally.interval(event);
        if correction.mean.weight == 0.0 {
            return None;
        }
        let (_, levels) = self.audit.levels();
        let own = levels.mean(event);
        let rate = known(correction.mean.apply(own))?;
        let deviation = correction.deviation(own.is_nan(), levels.deviations[mean_slot(event).0]);
        let count = uncertain(rate, deviation, 0.0, tally.confidence()).scaled(tally.interval_time(event).as_ms());
        let unseen = tally.most_unseen(event, tally.interval_lead(event));
        Some(count.at_least(counted.total().count as f64).or_more(unseen))
    }
}

fn uncertain(value: f64, deviation: f64, bias: f64, confidence: Confidence) -> Uncertain {
    Uncertain { value, error: Error::of(confidence.normal() * deviation + bias) }
}

impl Estimator for Linear {
    fn end_interval(&mut self, tally: &Tally) {
        if self.audit.is_idle() {
            return scale_all(tally, &mut self.estimates);
        }
        let has_fallen = self.audit.update(tally);
        match self.rule {
            // What a wrong relation did may have gone on through others.
            LinearRule::Judged if has_fallen => self.states.iter_mut().for_each(EventState::forget_corrections),
            LinearRule::Judged => {}
            LinearRule::Plain => self.audit.leave_trust_open(),
        }
        let (run, interval) = self.audit.levels();
        for (event, state) in self.states.iter_mut().enumerate() {
            if let Some(rate) = known(interval.mean(event)) {
                state.sample(rate, run.deviations[mean_slot(event).0]);
            }
        }
        let ExpectedCorrections { corrections, uses, .. } = self.corrections(AuditScope::Run, tally);
        let of_interval = self.corrections(AuditScope::Interval, tally).corrections;
        for (state, correction) in self.states.iter_mut().zip(&corrections) {
            state.follow(correction);
        }
        uses.into_iter().for_each(|index| self.audit.used(index));
        let estimates =
            of_interval.iter().enumerate().map(|(event, correction)| self.estimate(event, tally, correction));
        self.estimates = estimates.collect();
        self.audit.note_moves(tally, &self.estimates);
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.audit.standings()
    }
}
