//! Corrects counts by a Gaussian process over all events, and totals by relations.
//!
//! The process ([`OnCpu`]) corrects the counts of intervals. Those of the run are scaled counts, which
//! are unbiased over many slices; what relations say of them enters as an observation whose error is
//! the relation's own, so that both sides move in proportion to their uncertainty and an exact count
//! doesn't.
//!
//! As long as nothing is multiplexed there is no process, and every number is what was counted.

use std::sync::Arc;

use super::audit::{Audit, AuditScope};
use super::gp::{Constraint, CovarianceModel, Known};
use super::levels::with_gradient;
use super::on_cpu::OnCpu;
use super::{
    Cause, Contribution, Estimate, Estimator, Linear, Moved, Quality, RelationIndex, Standing, Weakness, scale_all,
    scaled,
};
use crate::events::Event;
use crate::plan::EventIndex;
use crate::rates::{Confidence, Delta, Error, Tally, Uncertain};
use crate::relations::{BoundForm, BoundRelation, Relation};
use crate::units::{CpuNs, WallNs};

/// Differences below this part of a count are those of rounding.
const ROUNDING: f64 = 1e-9;

/// Correction by what events have in common, learnt from the run.
pub struct Gaussian {
    audit: Audit,
    run: OnCpu,
    /// What follows for events that were never counted.
    derived: Linear,
    estimates: Vec<Estimate>,
}

impl Gaussian {
    /// An estimator for these events, with the relations whose events are all among them.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        Self {
            audit: Audit::new(events, relations),
            run: OnCpu::measuring(events),
            derived: Linear::new(events, relations),
            estimates: vec![Estimate::default(); events.len()],
        }
    }

    /// Uses what earlier runs of the program taught.
    #[must_use]
    pub fn with_model(mut self, model: Arc<CovarianceModel>) -> Self {
        self.run.learnt(model);
        self
    }

    /// What relations say of counts, around the levels of the run or the interval.
    fn constraints(&self, scope: AuditScope) -> Vec<(RelationIndex, Constraint)> {
        let (run, interval) = self.audit.levels();
        let values = match scope {
            AuditScope::Run => &run.values,
            AuditScope::Interval => &interval.values,
        };
        let trusted = self.audit.trusted();
        trusted
            .filter_map(|(index, relation, weight)| {
                let mut constraint = linear(relation, values, weight)?;
                let size = constraint.terms.iter().map(|&(event, factor)| (factor * values[2 * event]).abs());
                let size = size.sum::<f64>() / 2.0;
                constraint.error = self.audit.misfit(index, scope, size);
                Some((index, constraint))
            })
            .collect()
    }

    /// The run's counts, each with what relations added to it.
    fn totals(&self, tally: &Tally) -> Vec<Option<(Uncertain, Vec<Contribution>)>> {
        let own = self.own_totals(tally);
        let constraints = self.constraints(AuditScope::Run);
        if constraints.is_empty() {
            return own.into_iter().map(|total| Some((total?, Vec::new()))).collect();
        }
        let mut known = Known::independent(
            own.iter()
                .map(|total| total.map_or((0.0, 0.0), |total| (total.value, deviation(total, tally.confidence())))),
        );
        let mut parts = vec![Vec::new(); own.len()];
        for (index, constraint) in constraints {
            if constraint.terms.iter().any(|&(event, _)| own[event].is_none()) {
                continue;
            }
            let before = known.mean.clone();
            let time = constraint.terms.iter().map(|&(event, _)| tally.run_time(event)).max().unwrap_or_default();
            constraint.apply(&mut known, time.as_ms());
            for (event, parts) in parts.iter_mut().enumerate() {
                let counts = known.mean[event] - before[event];
                if counts.abs() > ROUNDING * before[event].abs() {
                    parts.push(Contribution { by: Cause::Relation(index), counts });
                }
            }
        }
        let totals = own.iter().zip(parts).enumerate().map(|(event, (own, mut parts))| {
            let own = (*own)?;
            parts.sort_by(|a, b| b.counts.abs().total_cmp(&a.counts.abs()));
            if parts.is_empty() {
                return Some((own, parts));
            }
            let deviation = known.covariance.at(event, event).max(0.0).sqrt();
            let error = Error::of(tally.confidence().normal() * deviation);
            let counted = tally.raw()[event].run.total().count as f64;
            Some((Uncertain { value: known.mean[event], error }.at_least(counted), parts))
        });
        totals.collect()
    }

    /// Scaled counts, with the error that multiplexing leaves; never surer than the tally is.
    fn own_totals(&self, tally: &Tally) -> Vec<Option<Uncertain>> {
        let of_turns = self.run.process().map(|process| process.totals(tally.confidence()));
        let total = |event: EventIndex| {
            let own = tally.total(event)?;
            let turns = of_turns.as_ref().and_then(|all| all[event]);
            Some(match (turns.map(|turns| turns.error), own.error) {
                (Some(Error::Within { above: least, .. }), Error::Within { below, above }) => {
                    let error = Error::Within { below: below.max(least), above: above.max(least) };
                    let counted = tally.raw()[event].run.total().count as f64;
                    Uncertain { value: own.value, error }.at_least(counted)
                }
                _ => own,
            })
        };
        (0..self.estimates.len()).map(total).collect()
    }

    fn estimate(
        &self,
        event: EventIndex,
        tally: &Tally,
        total: Option<(Uncertain, Vec<Contribution>)>,
        interval: Option<Uncertain>,
    ) -> Estimate {
        let own = scaled(tally, event);
        let Some((total, parts)) = total.filter(|_| own.quality != Quality::Measured) else {
            let derived = &self.derived.estimates()[event];
            return if derived.quality == Quality::Derived { derived.clone() } else { own };
        };
        let counted = tally.interval(event);
        let corrected = interval
            .filter(|_| !counted.is_exact() && counted.total().enabled > CpuNs(0))
            .map(|found| found.at_least(counted.total().count as f64));
        let quality = if parts.is_empty() { own.quality } else { Quality::Corrected };
        Estimate { interval: corrected.or(own.interval), total: Some(total), quality, parts, ..own }
    }

    /// Tells the audit what each relation did.
    fn note(&mut self, tally: &Tally) {
        for (event, estimate) in self.estimates.iter().enumerate() {
            let whole = tally.total(event).map(|total| total.value).filter(|&total| total > 0.0);
            for part in &estimate.parts {
                if let Cause::Relation(index) = part.by {
                    self.audit.used(index);
                    self.audit.moved(index, Moved { event, relative: whole.map(|whole| part.counts / whole) });
                }
            }
        }
    }
}

impl Estimator for Gaussian {
    fn round(&mut self, from: WallNs, to: WallNs, deltas: &[Option<Delta>]) {
        self.run.round(from, to, deltas);
    }

    fn end_interval(&mut self, tally: &Tally) {
        if self.audit.is_idle() && self.run.process().is_none() {
            return scale_all(tally, &mut self.estimates);
        }
        self.audit.update(tally);
        self.derived.end_interval(tally);
        let intervals = match self.run.process_mut() {
            Some(process) => process.interval(tally.confidence()),
            None => vec![None; self.estimates.len()],
        };
        let totals = self.totals(tally);
        let both = totals.into_iter().zip(intervals).enumerate();
        self.estimates = both.map(|(event, (total, interval))| self.estimate(event, tally, total, interval)).collect();
        self.note(tally);
        let constraints =
            self.constraints(AuditScope::Interval).into_iter().map(|(_, constraint)| constraint).collect();
        if let Some(process) = self.run.process_mut() {
            process.constrain_to(constraints);
        }
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.audit.standings()
    }

    fn weaknesses(&self) -> Vec<Weakness> {
        let Some(process) = self.run.process() else { return Vec::new() };
        let aliased = process.aliasing().map(|(least, most)| Weakness::Aliased { least, most });
        aliased.into_iter().chain(process.is_unsolved().then_some(Weakness::Scaled)).collect()
    }
}

/// The standard error of a number with an interval of this level.
fn deviation(number: Uncertain, confidence: Confidence) -> f64 {
    match number.error {
        Error::Exact => 0.0,
        Error::Within { below, above } => below.max(above) / confidence.normal(),
        // Nothing is known but that it is not negative.
        Error::Unknown => number.value.abs(),
    }
}

/// A relation as a line through its value at these levels; `None` where it has no value there, and
/// for one of variances. A pair follows its source by its weight, an equation holds.
fn linear(relation: &BoundRelation, values: &[f64], weight: f64) -> Option<Constraint> {
    let mut gradient = Vec::new();
    let (terms, residual, weight) = match &relation.form {
        BoundForm::Pair(pair) => {
            let program = pair.mean.as_ref()?;
            let expected = with_gradient(program, values, &mut gradient)?;
            let slots = program.slots().iter().zip(&gradient);
            // What a variance or another one than a mean adds is taken as it stands.
            let means = slots.filter(|(slot, _)| slot.0 % 2 == 0).map(|(slot, &factor)| (slot.0 / 2, factor));
            let mut terms: Vec<_> = means.collect();
            terms.push((pair.to, -1.0));
            (terms, expected - values[2 * pair.to], weight)
        }
        BoundForm::Equation(equation) => {
            gradient.resize(equation.events().len(), 0.0);
            let residual = equation.residual_with_gradient(values, &mut gradient);
            (equation.events().iter().copied().zip(gradient).collect(), residual, 1.0)
        }
    };
    let at_levels: f64 = terms.iter().map(|&(event, factor)| factor * values[2 * event]).sum();
    let constant = residual - at_levels;
    let finite = constant.is_finite() && terms.iter().all(|(_, factor)| factor.is_finite());
    finite.then_some(Constraint { terms, constant, weight, tolerance: 0.0, error: 0.0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::estimate::tests::{events, half, whole};

    const ROUND: u64 = 2_000_000;

    /// Rounds of 2 ms in intervals of ten through an estimator.
    fn run(relations: &str, rounds: u64, counted: impl Fn(u64) -> [Delta; 2]) -> (Gaussian, Tally) {
        let relations = crate::relations::parse("test.json", relations.as_bytes()).strict().unwrap();
        let mut estimator = Gaussian::new(&events(&["a", "b"]), &relations);
        let mut tally = Tally::new(2);
        for at in 0..rounds {
            let deltas = counted(at).map(Some);
            tally.round(&deltas);
            estimator.round(WallNs(at * ROUND), WallNs((at + 1) * ROUND), &deltas);
            if at % 10 == 9 {
                tally.end_interval();
                estimator.end_interval(&tally);
            }
        }
        (estimator, tally)
    }

    #[test]
    fn where_nothing_takes_turns_there_is_no_process() {
        let (estimator, tally) = run("[]", 20, |_| [whole(10), whole(20)]);
        assert!(estimator.run.process().is_none());
        let own: Vec<_> = (0..2).map(|event| scaled(&tally, event)).collect();
        assert_eq!(estimator.estimates(), own);
    }

    #[test]
    fn turns_at_a_steady_rate_are_met() {
        let (estimator, tally) = run("[]", 40, |at| [whole(200), half((at % 2 == 0).then_some(100))]);
        let estimate = &estimator.estimates()[1];
        let (interval, total) = (estimate.interval.unwrap(), estimate.total.unwrap());
        // 100 a millisecond over 20 ms, and over 80 ms.
        assert!((interval.value - 2000.0).abs() < 100.0, "{interval:?}");
        assert_eq!((total.value, estimate.quality), (tally.total(1).unwrap().value, Quality::Scaled));
        assert_eq!(estimator.estimates()[0], scaled(&tally, 0));
    }

    #[test]
    fn a_relation_moves_a_scaled_total_towards_an_exact_one() {
        let relation = r#"[{"relation": "b = a", "tolerance": "5%"}]"#;
        // a is 100 a millisecond and exact; b is seen at 100 and at 104, and is 102 on average.
        let (estimator, tally) =
            run(relation, 80, |at| [whole(200), half((at % 2 == 0).then_some(100 + 4 * (at / 2 % 2)))]);
        let (own, found) = (tally.total(1).unwrap().value, &estimator.estimates()[1]);
        let total = found.total.unwrap().value;
        assert!(total < own && total > 16_000.0, "{total} {own}");
        assert_eq!(found.quality, Quality::Corrected);
        assert_eq!(found.parts.len(), 1);
        assert!((found.parts[0].counts - (total - own)).abs() < 1e-6);
        assert_eq!(estimator.estimates()[0], scaled(&tally, 0));
        assert!(estimator.relations()[0].uses > 0);
    }

    #[test]
    fn an_event_that_was_never_counted_follows_from_the_other() {
        let relation = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": 2 * {mean}}]"#;
        let (estimator, _) = run(relation, 20, |_| [whole(200), half(None)]);
        let found = &estimator.estimates()[1];
        assert_eq!(found.quality, Quality::Derived);
        assert!((found.total.unwrap().value - 8000.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn a_program_in_step_with_the_rotation_is_told() {
        // b has every other round; a, which is always counted, is nearly all in these, or as much in all.
        let turns = |at: u64| half(at.is_multiple_of(2).then_some(100));
        let (estimator, _) = run("[]", 100, |at| [whole(if at.is_multiple_of(2) { 380 } else { 20 }), turns(at)]);
        let [Weakness::Aliased { least, most }] = estimator.weaknesses()[..] else {
            panic!("{:?}", estimator.weaknesses())
        };
        // a is 1.9 times as often in turns of b as it is.
        assert!((0.4..0.6).contains(&least) && most >= 1.0, "{least} {most}");
        let (low, _) = estimator.estimates()[1].interval.and_then(Uncertain::bounds).unwrap();
        assert!(low <= 1000.0, "{low}");
        let (steady, _) = run("[]", 100, |at| [whole(200), turns(at)]);
        assert_eq!(steady.weaknesses(), []);
    }

    #[test]
    fn lines_through_the_present_levels_by_hand() {
        let bound = |text: &str| {
            let relations = crate::relations::parse("test.json", text.as_bytes()).strict().unwrap();
            match relations[0].bind(&events(&["a", "b"])) {
                crate::relations::RelationBinding::Active(bound) => bound,
                other => panic!("{other:?}"),
            }
        };
        // b = a * a at a = 3, b = 5: 6 a - 9 - b.
        let square = bound(r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": {mean} * {mean}}]"#);
        let found = linear(&square, &[3.0, f64::NAN, 5.0, f64::NAN], 0.25).unwrap();
        assert_eq!((found.terms, found.constant, found.weight), (vec![(0, 6.0), (1, -1.0)], -9.0, 0.25));
        // 1 / a has no value at 0.
        let inverse = bound(r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": 1 / {mean}}]"#);
        assert_eq!(linear(&inverse, &[0.0, f64::NAN, 5.0, f64::NAN], 0.25), None);
        let equation = bound(r#"[{"relation": "a = 2 * b"}]"#);
        let found = linear(&equation, &[3.0, f64::NAN, 5.0, f64::NAN], 0.25).unwrap();
        assert_eq!((found.terms, found.constant, found.weight), (vec![(0, 1.0), (1, -2.0)], 0.0, 1.0));
    }
}
