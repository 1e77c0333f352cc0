//! Corrects counts by a Gaussian process over all events, and totals by relations.
//!
//! The process ([`OnCpu`]) corrects the counts of intervals, and those of the run by what events that are always
//! counted say of the time in which an event wasn't. What relations say of totals enters as an observation whose error
//! is the relation's own, so that both sides move in proportion to their uncertainty and an exact count doesn't.
//!
//! Where all but one event of a sum were counted for the whole of a round, the last one follows ([`Completion`]): the
//! process and the totals take it as if it had been counted, with the error of the sum.
//!
//! As long as nothing is multiplexed there is no process, and every number is what was counted.

use std::sync::Arc;

use super::audit::{Audit, AuditScope, Trusted};
use super::gp::{Constraint, CovarianceModel, Factors, Gp, Posterior, SWITCHES, Total};
use super::levels::{known, residual_with_gradient, with_gradient};
use super::on_cpu::OnCpu;
use super::sums::Completion;
use super::{
    Cause, Contribution, Estimate, Estimator, IntervalBasis, Linear, Quality, ROUNDING, RelationIndex, Standing,
    Weakness, WholeRun, scale_all, scaled, strongest_first,
};
use crate::events::Event;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Delta, Error, Tally, Uncertain};
use crate::relations::{BoundForm, BoundRelation, Relation, is_mean, mean_slot, slot_event};
use crate::units::{CpuNs, WallNs};

/// Correction by what events have in common, learnt from the run.
pub struct Gaussian {
    audit: Audit,
    run: OnCpu,
    /// What sums say of rounds.
    sums: Completion,
    /// What follows for events that were never counted.
    derived: Linear,
    estimates: Vec<Estimate>,
    basis: IntervalBasis,
}

impl Gaussian {
    /// An estimator for these events, with the relations whose events are all among them.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        let audit = Audit::new(events, relations);
        Self {
            sums: Completion::new(events.len(), &audit),
            audit,
            run: OnCpu::measuring(events),
            derived: Linear::new(events, relations),
            estimates: vec![Estimate::default(); events.len()],
            basis: IntervalBasis::AsLive,
        }
    }

    /// Estimates intervals by these rounds; from before the first.
    #[must_use]
    pub fn by(mut self, basis: IntervalBasis) -> Self {
        if matches!(basis, IntervalBasis::Keeping) {
            self.run.keep();
        }
        Self { basis, ..self }
    }

    /// Has these events beside those of other estimators, so many together: of more than
    /// [`MAX_EVENTS`](super::gp::MAX_EVENTS) none is corrected by others.
    #[must_use]
    pub fn among(mut self, together: usize) -> Self {
        self.run.among(together);
        self
    }

    /// Uses what earlier runs of the program taught.
    #[must_use]
    pub fn with_model(mut self, model: Arc<CovarianceModel>) -> Self {
        self.run.learnt(model);
        self
    }

    /// What the process says of the interval that ends.
    fn end_interval_of_process(&mut self, confidence: Confidence) -> Vec<Option<Uncertain>> {
        let Some((place, live)) = self.run.end_interval(confidence) else { return vec![None; self.estimates.len()] };
        match &self.basis {
            IntervalBasis::WholeRun(run) => run.interval(place).map_or(live, <[_]>::to_vec),
            IntervalBasis::AsLive | IntervalBasis::Keeping => live,
        }
    }

    /// What relations say of counts, around the levels of the run or the interval.
    fn constraints(&self, scope: AuditScope) -> Vec<Constraint> {
        let (run, interval) = self.audit.levels();
        let values: Vec<f64> = match scope {
            AuditScope::Run => run.values.clone(),
            // An event that the interval saw nothing of is as it is in the run.
            AuditScope::Interval => {
                let both = interval.values.iter().zip(&run.values);
                both.map(|(&lately, &at_large)| known(lately).unwrap_or(at_large)).collect()
            }
        };
        let values = &values[..];
        let trusted = self.audit.trusted();
        trusted
            .filter_map(|Trusted { index, relation, weight }| {
                let constraint = linear(index, relation, values, weight)?;
                let error = match &relation.form {
                    BoundForm::Equation(equation) => {
                        (self.audit.relative_error(index) * equation.size(values)).max(self.sums.off(index))
                    }
                    BoundForm::Pair(_) => {
                        let product = |&(event, factor): &(usize, f64)| (factor * values[mean_slot(event).0]).abs();
                        let size = constraint.terms.iter().map(product).sum::<f64>() / 2.0;
                        self.audit.misfit(index, scope, size)
                    }
                };
                Some(Constraint { error, ..constraint })
            })
            .collect()
    }

    /// The run's counts, each with what relations added to it.
    fn totals(&self, tally: &Tally) -> Vec<Option<(Uncertain, Vec<Contribution>)>> {
        let (own, mut parts): (Vec<_>, Vec<_>) = self.own_totals(tally).into_iter().unzip();
        let constraints = self.constraints(AuditScope::Run);
        if constraints.is_empty() {
            return own.into_iter().zip(parts).map(|(total, parts)| Some((total?, parts))).collect();
        }
        let mut known = Posterior::independent(
            own.iter()
                .map(|total| total.map_or((0.0, 0.0), |total| (total.value, total.deviation(tally.confidence())))),
        );
        let mut is_related = vec![false; own.len()];
        for constraint in constraints {
            let by = Cause::Relation(constraint.relation);
            if constraint.terms.iter().any(|&(event, _)| own[event].is_none()) {
                continue;
            }
            let before = known.mean.clone();
            let time = constraint.terms.iter().map(|&(event, _)| tally.run_time(event)).max().unwrap_or_default();
            constraint.apply(&mut known, time.as_ms());
            for (event, parts) in parts.iter_mut().enumerate() {
                let counts = known.mean[event] - before[event];
                if counts.abs() > ROUNDING * before[event].abs() {
                    is_related[event] = true;
                    match parts.iter_mut().find(|part| part.by == by) {
                        Some(part) => part.counts += counts,
                        None => parts.push(Contribution { by, counts }),
                    }
                }
            }
        }
        let totals = own.iter().zip(parts).enumerate().map(|(event, (own, mut parts))| {
            let own = (*own)?;
            strongest_first(&mut parts);
            if !is_related[event] {
                return Some((own, parts));
            }
            let deviation = known.covariance.at(event, event).max(0.0).sqrt();
            // Errors of events that were derived from each other aren't independent.
            let error = match self.sums.has_derived(event) {
                true => own.error,
                false => Error::of(tally.confidence().normal() * deviation),
            };
            let counted = tally.raw()[event].run.total().count as f64;
            Some((Uncertain { value: known.mean[event], error }.at_least(counted), parts))
        });
        totals.collect()
    }

    /// What sums added to the scaled count of an event.
    fn derived_parts(&self, event: RowIndex, counts: f64) -> Vec<Contribution> {
        let part =
            |(index, part): (RelationIndex, f64)| Contribution { by: Cause::Relation(index), counts: part * counts };
        self.sums.parts(event).map(part).filter(|part| part.counts != 0.0).collect()
    }

    /// What the events counted in completed rounds, without other relations, each with what moved it from the scaled
    /// count.
    fn own_totals(&self, tally: &Tally) -> Vec<(Option<Uncertain>, Vec<Contribution>)> {
        let of_process = self.run.totals(tally.confidence());
        let total = |event: RowIndex| {
            let Some(own) = tally.total(event) else { return (None, Vec::new()) };
            if own.error == Error::Exact || self.sums.is_spoilt(event, &self.audit) {
                return (Some(own), Vec::new());
            }
            let of_sums = self.sums.total(event, tally.confidence());
            let completed = of_sums.map_or(own, |total| total.or_more(self.most_unseen(event, tally)));
            let mut parts = self.derived_parts(event, completed.value - own.value);
            match of_process.as_ref().and_then(|all| all[event].clone()) {
                Some(total) => {
                    parts.extend(moved(&total, completed.value));
                    let count = self.sums.of_run(event, self.not_exact(event, total.count), tally.confidence());
                    let raw = &tally.raw()[event].run;
                    // Never surer than the scaled count is: what moves the number says little of what it can't know,
                    // such as a beginning that is unlike the rest, or work that is done whenever groups rotate.
                    let error = wider(count.error, completed.error);
                    (Some(Uncertain { error, ..count }.at_least(raw.total().count as f64)), parts)
                }
                None => (Some(completed), parts),
            }
        };
        (0..self.estimates.len()).map(total).collect()
    }

    /// The most that an event may have counted in the beginning of the run, where it was neither counted nor derived.
    fn most_unseen(&self, event: RowIndex, tally: &Tally) -> f64 {
        tally.most_unseen(event, self.sums.lead(event).unwrap_or_else(|| tally.raw()[event].run.lead()))
    }

    /// A count that several groups add up to isn't exact. Of what is derived, sums say the error.
    fn not_exact(&self, event: RowIndex, count: Uncertain) -> Uncertain {
        match count.error {
            Error::Exact if self.sums.parts(event).next().is_none() => {
                Uncertain { error: Error::of(SWITCHES * count.value), ..count }
            }
            _ => count,
        }
    }

    fn estimate(
        &self,
        event: RowIndex,
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
        let confidence = tally.confidence();
        let of_process = interval
            .map(|found| self.not_exact(event, found))
            .map(|found| self.sums.of_interval(event, found, confidence));
        // Where turns are long, so is the interval: what sums complete is scaled, as totals are then.
        let is_slow = self.run.process().is_some_and(Gp::is_slow);
        let of_sums = self.sums.interval(event, confidence);
        let corrected =
            of_sums
                .filter(|scaled| is_slow && matches!(scaled.error, Error::Within { .. }))
                .or(of_process)
                .or(of_sums)
                .filter(|_| !counted.is_exact() && counted.total().enabled > CpuNs(0))
                .map(|found| own.interval.filter(|&own| self.is_as_good(own, found)).unwrap_or(found))
                .map(|found| found.at_least(counted.total().count as f64))
                .map(|found| {
                    if tally.interval_lead(event) > 0.0 { found.or_more(self.most_unseen(event, tally)) } else { found }
                });
        let quality = if parts.is_empty() { own.quality } else { Quality::Corrected };
        Estimate { interval: corrected.or(own.interval), total: Some(total), quality, parts, ..own }
    }

    /// Whether the scaled count of an interval is as good as an estimate: that is so where the estimate's interval
    /// leaves out nothing that the scaled count's has. Of 1,455 such intervals of 13 programs 0.996 held the truth,
    /// and 0.948 of the scaled counts', which were nearer to it as often. Where turns are long, or the rotation beats
    /// with the program, scaled counts are worse than they seem.
    fn is_as_good(&self, scaled: Uncertain, found: Uncertain) -> bool {
        let is_worse = self.run.process().is_some_and(|process| process.is_slow() || process.aliasing().is_some());
        !is_worse && !found.excludes_some_of(scaled)
    }

    /// Tells the audit what each relation did.
    fn note(&mut self, tally: &Tally) {
        let parts = self.estimates.iter().flat_map(|estimate| &estimate.parts);
        parts.filter_map(Contribution::relation).for_each(|index| self.audit.used(index));
        self.audit.note_moves(tally, &self.estimates);
    }
}

impl Estimator for Gaussian {
    fn round(&mut self, from: WallNs, to: WallNs, deltas: &[Option<Delta>]) {
        if self.sums.is_idle() {
            return self.run.round(from, to, deltas);
        }
        self.run.round(from, to, &self.sums.round(deltas));
    }

    fn end_interval(&mut self, tally: &Tally) {
        let intervals = self.end_interval_of_process(tally.confidence());
        if self.audit.is_idle() && self.run.process().is_none() {
            return scale_all(tally, &mut self.estimates);
        }
        self.audit.update(tally);
        self.derived.end_interval(tally);
        let totals = self.totals(tally);
        let both = totals.into_iter().zip(intervals).enumerate();
        self.estimates = both.map(|(event, (total, interval))| self.estimate(event, tally, total, interval)).collect();
        self.note(tally);
        self.sums.end_interval(&self.audit);
        let constraints = self.constraints(AuditScope::Interval);
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
        let aliased = process.aliasing().map(|Factors { least, most }| Weakness::Aliased { least, most });
        aliased.into_iter().chain(process.was_unsolved().then_some(Weakness::Scaled)).collect()
    }

    fn whole_run(&self, confidence: Confidence) -> Option<WholeRun> {
        self.run.hindsight(confidence).map(WholeRun::new)
    }

    fn knows_whole_run(&self) -> bool {
        matches!(self.basis, IntervalBasis::WholeRun(_))
    }
}

/// The wider of two errors, on each side.
fn wider(one: Error, other: Error) -> Error {
    match (one, other) {
        (Error::Within { below, above }, Error::Within { below: least_below, above: least_above }) => {
            Error::Within { below: below.max(least_below), above: above.max(least_above) }
        }
        (Error::Exact, error) | (error, Error::Exact) => error,
        _ => Error::Unknown,
    }
}

/// What moved a total from the scaled count: events that are always counted, and the weighting of its own samples.
fn moved(total: &Total, scaled: f64) -> Vec<Contribution> {
    let by_regressors = total.moved_by.iter().map(|&(event, counts)| Contribution { by: Cause::Event(event), counts });
    let rest = total.count.value - scaled - total.moved_by.iter().map(|(_, counts)| counts).sum::<f64>();
    let mut parts: Vec<_> = by_regressors.filter(|part| part.counts.abs() > ROUNDING * scaled.abs()).collect();
    strongest_first(&mut parts);
    if rest.abs() > ROUNDING * scaled.abs() {
        parts.push(Contribution { by: Cause::Weighting, counts: rest });
    }
    parts
}

/// A relation as a line through its value at these levels; `None` where it has no value there, and
/// for one of variances. A pair follows its source by its weight, an equation holds.
fn linear(index: RelationIndex, relation: &BoundRelation, values: &[f64], weight: f64) -> Option<Constraint> {
    let mut gradient = Vec::new();
    let (terms, residual, weight) = match &relation.form {
        BoundForm::Pair(pair) => {
            let program = pair.mean.as_ref()?;
            let expected = with_gradient(program, values, &mut gradient)?;
            let slots = program.slots().iter().zip(&gradient);
            // What a variance or another one than a mean adds is taken as it stands.
            let means = slots.filter(|(slot, _)| is_mean(**slot)).map(|(&slot, &factor)| (slot_event(slot), factor));
            let mut terms: Vec<_> = means.collect();
            terms.push((pair.to, -1.0));
            (terms, expected - values[mean_slot(pair.to).0], weight)
        }
        BoundForm::Equation(equation) => {
            let residual = residual_with_gradient(equation, values, &mut gradient)?;
            (equation.events().iter().copied().zip(gradient).collect(), residual, 1.0)
        }
    };
    let at_levels: f64 = terms.iter().map(|&(event, factor)| factor * values[mean_slot(event).0]).sum();
    let constant = residual - at_levels;
    let finite = constant.is_finite() && terms.iter().all(|(_, factor)| factor.is_finite());
    finite.then_some(Constraint { relation: index, terms, constant, weight, tolerance: 0.0, error: 0.0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::estimate::RelationState;
    use crate::estimate::tests::{events, half, whole};

    const ROUND: u64 = 2_000_000;

    /// Rounds of 2 ms in intervals of ten through an estimator.
    fn run(relations: &str, rounds: u64, counted: impl Fn(u64) -> [Delta; 2]) -> (Gaussian, Tally) {
        run_into(Tally::new(2), relations, rounds, counted)
    }

    fn run_into(
        mut tally: Tally,
        relations: &str,
        rounds: u64,
        counted: impl Fn(u64) -> [Delta; 2],
    ) -> (Gaussian, Tally) {
        let relations = crate::relations::parse("test.json", relations.as_bytes()).strict().unwrap();
        let mut estimator = Gaussian::new(&events(&["a", "b"]), &relations);
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
    fn a_total_follows_what_is_always_counted() {
        // a varies with a period of six rounds, and has 260 in those where b waits against 240 in the others; b is half
        // of a.
        let a = |at: u64| 200 + 20 * (at % 6);
        let (estimator, tally) = run("[]", 300, |at| [whole(a(at)), half((at % 2 == 0).then(|| a(at) / 4))]);
        let (own, found) = (tally.total(1).unwrap().value, &estimator.estimates()[1]);
        // The truth is 37,500, the scaled count 36,000.
        let total = found.total.unwrap().value;
        assert!((own - 36_000.0).abs() < 1e-6 && (total - 37_500.0).abs() < 500.0, "{own} {total}");
        assert_eq!((found.quality, found.parts[0].by), (Quality::Corrected, Cause::Event(0)));
        let moved: f64 = found.parts.iter().map(|part| part.counts).sum();
        assert!((moved - (total - own)).abs() < 1e-6, "{:?}", found.parts);
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
    fn intervals_reach_what_programs_begin_with_where_nobody_saw_it() {
        let upper = |in_beginning: f64, intervals: u64| {
            let tally = Tally::new(2).of_program(vec![0.0, in_beginning]);
            let (estimator, _) =
                run_into(tally, "[]", 10 * intervals, |at| [whole(200), half((at % 2 == 1).then_some(100))]);
            let estimate = &estimator.estimates()[1];
            [estimate.interval, estimate.total].map(|count| count.unwrap().bounds().unwrap().1)
        };
        // 2 ms weren't seen, in which b may have counted 5000 a millisecond; the first interval has them, and the run.
        let ([usual, _], [cold, cold_total]) = (upper(0.0, 1), upper(5000.0, 1));
        assert!(usual < 3500.0 && cold > 10_500.0 && cold_total > 10_500.0, "{usual} {cold} {cold_total}");
        let ([usual, total], [cold, cold_total]) = (upper(0.0, 4), upper(5000.0, 4));
        assert!(
            cold == usual && total < 9000.0 && (17_000.0..19_000.0).contains(&cold_total),
            "{cold} {usual} {total} {cold_total}"
        );
    }

    #[test]
    fn what_was_counted_before_anything_had_to_wait_is_part_of_its_interval() {
        // Both are counted for 30 ms, and b in every other round for the next 10 ms and the next interval.
        let estimates = |basis: IntervalBasis| {
            let (mut estimator, mut tally) = (Gaussian::new(&events(&["a", "b"]), &[]).by(basis), Tally::new(2));
            let mut found = Vec::new();
            for at in 0..40u64 {
                let b = if at < 15 || at % 2 == 0 { whole(100) } else { half(None) };
                let deltas = [Some(whole(200)), Some(b)];
                estimator.round(WallNs(at * 2_000_000), WallNs((at + 1) * 2_000_000), &deltas);
                tally.round(&deltas);
                if (at + 1) % 20 == 0 {
                    tally.end_interval();
                    estimator.end_interval(&tally);
                    found.push(estimator.estimates()[1].interval.unwrap().value);
                }
            }
            (found, estimator.whole_run(tally.confidence()))
        };
        let (live, whole_run) = estimates(IntervalBasis::Keeping);
        let (later, _) = estimates(IntervalBasis::WholeRun(Arc::new(whole_run.unwrap())));
        for found in [live, later] {
            assert!(found.iter().all(|count| (count - 2000.0).abs() < 20.0), "{found:?}");
        }
    }

    #[test]
    fn intervals_before_anything_had_to_wait_stay_their_own() {
        let relations = [r#"[]"#, r#"[{"relation": "b = a / 2", "tolerance": "5%"}]"#];
        for relations in relations {
            // 30 rounds of 2 ms are three intervals in which both are counted; b waits in every other round of the next
            // one.
            let turns = |at: u64| [whole(200), if at < 30 || at.is_multiple_of(2) { whole(100) } else { half(None) }];
            let (estimator, tally) = run(relations, 40, turns);
            let found = estimator.estimates()[1].interval.unwrap();
            assert!((found.value - 1000.0).abs() < 20.0, "{relations} {found:?}");
            assert!((estimator.estimates()[1].total.unwrap().value - 4000.0).abs() < 20.0, "{relations}");
            assert_eq!(tally.total(0).unwrap().value, 8000.0);
        }
    }

    #[test]
    fn what_a_relation_derived_leaves_totals_once_it_is_contradicted() {
        // a is 100 a millisecond and exact, b is seen at 50 in every other round.
        let relation = r#"[{"relation": "b = a", "tolerance": "1%"}]"#;
        let (estimator, tally) = run(relation, 200, |at| [whole(200), half((at % 2 == 0).then_some(50))]);
        let found = &estimator.estimates()[1];
        assert_eq!(estimator.relations()[0].state, RelationState::Violated);
        assert_eq!(found.total.map(|total| total.value), tally.total(1).map(|total| total.value));
        assert!((found.total.unwrap().value - 20_000.0).abs() < 1.0, "{found:?}");
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
        // a is 1.9 times as often in stays of b as it is.
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
        let found = linear(0, &square, &[3.0, f64::NAN, 5.0, f64::NAN], 0.25).unwrap();
        assert_eq!((found.terms, found.constant, found.weight), (vec![(0, 6.0), (1, -1.0)], -9.0, 0.25));
        // 1 / a has no value at 0.
        let inverse = bound(r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": 1 / {mean}}]"#);
        assert_eq!(linear(0, &inverse, &[0.0, f64::NAN, 5.0, f64::NAN], 0.25), None);
        let equation = bound(r#"[{"relation": "a = 2 * b"}]"#);
        let found = linear(0, &equation, &[3.0, f64::NAN, 5.0, f64::NAN], 0.25).unwrap();
        assert_eq!((found.terms, found.constant, found.weight), (vec![(0, 1.0), (1, -2.0)], 0.0, 1.0));
    }
}
