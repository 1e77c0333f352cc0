//! Derives what events counted while they were off the counters, from sums of events that were on.
//!
//! Of `a = b + c`, where b and c were counted at the same time, a was their sum, whether or not it was on a counter:
//!
//! ```text
//! round      1      2      3        two counters, three events: each is known all the time
//! counted    a b    b c    a c
//! derived    c      a      b
//! ```
//!
//! What is derived is as uncertain as the sum is. Where that is much of the event (a part that is small beside the
//! others, a sum that holds to some per cent, one that what was counted doesn't agree with) nothing is derived of it.
//! How far the sum is off shows where an event is derived in one slice and counted in another ([`Residual`]).

use std::collections::BTreeMap;

use super::RelationIndex;
use super::audit::{Audit, Trusted};
use super::gp::{Constraint, Posterior};
use super::residual::{MeanDifference, Residual, unexplained};
use crate::events::Event;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Delta, Error, Scaling, Tally, Uncertain};
use crate::relations::{BoundForm, BoundRelation, Relation};
use crate::units::CpuNs;

/// What is derived may be off by this part of it, as the standard error of the sum has it.
const MOST_ERROR: f64 = 0.01;

/// The same of what the sum was off by, as counts show: that is one error for all of the run, and less than those of
/// estimates.
const MOST_OFF: f64 = 0.03;

/// The half width of intervals that were made of completed rounds, over what the process and the turns say: what both
/// leave out to see how good they are follows from the other events of the sum.
const WIDTH: f64 = 1.25;

/// Where an event was known for this part of an interval, its scaled count may be surer than an estimate. Where less
/// was, errors of scaled counts are too uncertain to tell.
const MOSTLY_KNOWN: f64 = 0.4;

/// Completes rounds by sums, and adds up what is known then.
#[derive(Debug)]
pub(super) struct Completion {
    sums: Vec<TrustedSum>,
    interval: Vec<Completed>,
    run: Vec<Completed>,
    /// The CPU time of each event that each relation derived, in ms.
    derived: Vec<BTreeMap<RelationIndex, f64>>,
}

/// A sum of events that is zero.
#[derive(Clone, Debug)]
struct TrustedSum {
    by: RelationIndex,
    terms: Vec<Term>,
    /// The standard error that the relation says, as a part of half of the sum of the products' sizes: by this an event
    /// is derived or not, always in the same way.
    says: f64,
    /// Its standard error as far as counts show it, as a part of half of the sum of the products' sizes; `None` where
    /// it isn't trusted.
    error: Option<f64>,
    /// What counts show that it is off by, in counts per ms.
    off: f64,
}

/// An event of a sum, its factor, and what was derived of it or could have been: how many counts, and the
/// error that the relation says.
#[derive(Clone, Copy, Debug)]
struct Term {
    event: RowIndex,
    factor: f64,
    counts: f64,
    errors: f64,
    time: f64,
    residual: Residual,
}

impl Term {
    /// The rate of what was derived or could have been; 0 before anything was.
    fn rate(&self) -> f64 {
        if self.time > 0.0 { self.counts / self.time } else { 0.0 }
    }

    /// Whether an error of this many counts per ms of the sum is little of the event.
    fn allows(&self, off: f64) -> bool {
        off <= MOST_OFF * self.rate() * self.factor.abs()
    }
}

/// What is known of an event: what was counted, and where nothing was, what was derived.
#[derive(Clone, Copy, Debug, Default)]
struct Completed {
    known: Scaling,
    /// The standard error of what was derived, which is the sum's in all rounds alike.
    error: f64,
}

/// A count of a round that follows from others, with its standard error, and whether it is sure enough.
struct DerivedCount {
    event: RowIndex,
    delta: Delta,
    /// The time for which it follows.
    derived: CpuNs,
    error: f64,
    is_sure: bool,
}

impl Completion {
    /// Nothing yet of so many events, with the sums among relations.
    pub(super) fn new(events: usize, audit: &Audit) -> Self {
        let sum = |(by, bound): (RelationIndex, &BoundRelation)| {
            let BoundForm::Equation(equation) = &bound.form else { return None };
            let terms = equation.events().iter().zip(equation.sum()?);
            let terms = terms.map(|(&event, &factor)| Term {
                event,
                factor,
                counts: 0.0,
                errors: 0.0,
                time: 0.0,
                residual: Residual::new(),
            });
            let says = audit.slack_of(by);
            let error = Some(audit.relative_error(by));
            Some(TrustedSum { by, terms: terms.collect(), says, error, off: 0.0 })
        };
        Self {
            sums: audit.bound().filter_map(sum).collect(),
            interval: vec![Completed::default(); events],
            run: vec![Completed { known: Scaling::of_run(), error: 0.0 }; events],
            derived: vec![BTreeMap::new(); events],
        }
    }

    /// Whether there is a sum.
    pub(super) fn is_idle(&self) -> bool {
        self.sums.is_empty()
    }

    /// A round with what follows from sums in place of what wasn't counted.
    pub(super) fn round(&mut self, deltas: &[Option<Delta>]) -> Vec<Option<Delta>> {
        let (mut known, mut errors) = (deltas.to_vec(), vec![0.0; deltas.len()]);
        self.sums.iter_mut().for_each(|sum| sum.compare(deltas));
        let mut open: Vec<&mut TrustedSum> = self.sums.iter_mut().collect();
        // What follows from one sum may be what another lacks.
        loop {
            let before = open.len();
            open.retain_mut(|sum| {
                let Some(DerivedCount { event, delta, derived, error, is_sure }) = sum.derive(&known, &errors) else {
                    return true;
                };
                if is_sure {
                    (known[event], errors[event]) = (Some(delta), error);
                    *self.derived[event].entry(sum.by).or_default() += derived.as_ms();
                }
                false
            });
            if open.len() == before {
                break;
            }
        }
        for (event, delta) in known.iter().enumerate().take(self.run.len()) {
            for completed in [&mut self.interval[event], &mut self.run[event]] {
                delta.iter().for_each(|&delta| completed.known.add(delta));
                completed.error += errors[event];
            }
        }
        known
    }

    /// Begins the next interval; relations are trusted as an audit of this one has it.
    pub(super) fn end_interval(&mut self, audit: &Audit) {
        self.interval.fill(Completed::default());
        self.sums.iter_mut().for_each(|sum| sum.error = None);
        for Trusted { index, .. } in audit.trusted() {
            let trusted = self.sums.iter_mut().filter(|sum| sum.by == index);
            trusted.for_each(|sum| sum.error = Some(audit.relative_error(index)));
        }
    }

    /// Whether anything was derived of an event by a sum that is contradicted now, or seems to be: its total is what
    /// was counted alone.
    pub(super) fn is_spoilt(&self, event: RowIndex, audit: &Audit) -> bool {
        self.derived[event].keys().any(|&by| !audit.standings()[by].may_correct())
    }

    /// Whether anything was derived of an event.
    pub(super) fn has_derived(&self, event: RowIndex) -> bool {
        !self.derived[event].is_empty()
    }

    /// What counts show that a sum is off by, in counts per ms; 0 of other relations.
    pub(super) fn off(&self, relation: RelationIndex) -> f64 {
        self.sums.iter().find(|sum| sum.by == relation).map_or(0.0, |sum| sum.off)
    }

    /// How much of the run's beginning an event was neither counted in nor derived, in ms; `None` where nothing was
    /// derived.
    pub(super) fn lead(&self, event: RowIndex) -> Option<f64> {
        self.has_derived(event).then(|| self.run[event].known.lead())
    }

    /// The scaled count of the interval, of what was counted and derived; `None` where nothing was derived.
    pub(super) fn interval(&self, event: RowIndex, confidence: Confidence) -> Option<Uncertain> {
        self.scaled(&self.interval[event], event, confidence)
    }

    /// The same of the run.
    pub(super) fn total(&self, event: RowIndex, confidence: Confidence) -> Option<Uncertain> {
        self.scaled(&self.run[event], event, confidence)
    }

    fn scaled(&self, completed: &Completed, event: RowIndex, confidence: Confidence) -> Option<Uncertain> {
        let scaled = completed.known.scaled(confidence).filter(|_| !self.derived[event].is_empty())?;
        Some(self.widened(event, scaled, completed.error, confidence))
    }

    /// An estimate that was made of completed rounds, with the error of what was derived.
    fn widened(&self, event: RowIndex, estimate: Uncertain, deviation: f64, confidence: Confidence) -> Uncertain {
        if self.derived[event].is_empty() {
            return estimate;
        }
        let of_sum = Error::of(confidence.normal() * deviation);
        Uncertain { error: Error::of_sum([estimate.error.scaled(WIDTH), of_sum].into_iter()), ..estimate }
    }

    /// An estimate of the interval's count, made of completed rounds, with the error of what was derived. In a long
    /// interval, most of which is known, it goes towards the scaled count of what was counted and derived, where that
    /// is surer.
    pub(super) fn of_interval(&self, event: RowIndex, estimate: Uncertain, confidence: Confidence) -> Uncertain {
        let completed = &self.interval[event];
        let estimate = self.widened(event, estimate, completed.error, confidence);
        let is_well_known = completed.known.run_ratio().is_some_and(|part| part >= MOSTLY_KNOWN);
        let tells = is_well_known && completed.known.has_enough_stays() && !self.derived[event].is_empty();
        match completed.known.scaled(confidence).filter(|_| tells) {
            Some(scaled) => towards_surer(estimate, scaled),
            None => estimate,
        }
    }

    /// The same of the run's count.
    pub(super) fn of_run(&self, event: RowIndex, estimate: Uncertain, confidence: Confidence) -> Uncertain {
        self.widened(event, estimate, self.run[event].error, confidence)
    }

    /// The part that each relation has in what was derived of an event.
    pub(super) fn parts(&self, event: RowIndex) -> impl Iterator<Item = (RelationIndex, f64)> {
        let all: f64 = self.derived[event].values().sum();
        self.derived[event].iter().map(move |(&relation, time)| (relation, time / all))
    }
}

/// An estimate that goes towards another one of the same count, by the part `1 - (q/p)^2` of the way, with the widths p
/// and q of their intervals: by how much of the variance the other one lacks. Its error stays, as both come from the
/// same counts. An estimate that is the surer one, or whose error isn't known, stays as it is.
fn towards_surer(estimate: Uncertain, other: Uncertain) -> Uncertain {
    let (Error::Within { below, above }, Some((low, high))) = (estimate.error, other.bounds()) else { return estimate };
    let weight = 1.0 - ((high - low) / (below + above)).powi(2);
    // Of two that are exact there is none.
    let weight = if weight.is_nan() { 0.0 } else { weight.max(0.0) };
    Uncertain { value: estimate.value + weight * (other.value - estimate.value), ..estimate }
}

impl TrustedSum {
    /// Holds what was derived against what a round counted.
    fn compare(&mut self, deltas: &[Option<Delta>]) {
        let mut is_new = false;
        for term in &mut self.terms {
            is_new |= deltas[term.event].is_some_and(|delta| term.residual.counted(delta));
        }
        if is_new {
            // Each term's difference, times its factor, is what the sum is off by.
            let means = |scope: usize| {
                let mean = move |term: &Term| {
                    let MeanDifference { mean, variance } = term.residual.means()[scope]?;
                    Some(MeanDifference { mean: term.factor * mean, variance: term.factor.powi(2) * variance })
                };
                self.terms.iter().filter_map(mean)
            };
            self.off = unexplained(means(0)).max(unexplained(means(1)));
        }
    }

    /// What it is off by as a part of half of the sum of the products' sizes, by what was derived or could have been.
    fn part_off(&self) -> f64 {
        let size = self.terms.iter().map(|term| term.rate() * term.factor.abs()).sum::<f64>() / 2.0;
        if size > 0.0 { self.off / size } else { 0.0 }
    }

    /// What the event counted that was on a counter for less time than all the others, while they were. That these were
    /// on for exactly as long says that they were on at the same time.
    fn derive(&mut self, known: &[Option<Delta>], errors: &[f64]) -> Option<DerivedCount> {
        let error = self.error?;
        let deltas: Vec<Delta> = self.terms.iter().map(|term| known[term.event]).collect::<Option<_>>()?;
        let missing = (0..deltas.len()).min_by_key(|&place| deltas[place].running)?;
        let own = deltas[missing];
        let mut others = (0..deltas.len()).filter(|&place| place != missing);
        let running = deltas[others.next()?].running.min(own.enabled);
        let (mut sum, mut size, mut of_others) = (0.0, 0.0, 0.0);
        for (_, (term, delta)) in self.terms.iter().zip(&deltas).enumerate().filter(|&(place, _)| place != missing) {
            if !is_about(delta.enabled, own.enabled) || !is_about(delta.running, running) {
                return None;
            }
            let product = term.factor * delta.count as f64;
            (sum, size) = (sum + product, size + product.abs());
            of_others += term.factor.abs() * errors[term.event];
        }
        let is_whole = is_about(running, own.enabled);
        if running <= own.running || !is_whole && running + own.running > own.enabled {
            return None;
        }
        let term = &mut self.terms[missing];
        term.residual.derived(-sum / term.factor, running);
        let count = (-sum / term.factor).max(0.0);
        let size = (size + (term.factor * count).abs()) / 2.0;
        let part = |error: f64| error * size / term.factor.abs();
        let (counts, said) = (term.counts + count, term.errors + part(self.says));
        let off = self.off * running.as_ms() / term.factor.abs();
        let error = part(error).max(off) + of_others / term.factor.abs();
        (term.counts, term.errors, term.time) = (counts, said, term.time + running.as_ms());
        let derived = Delta { count: count.round() as u64, running, enabled: own.enabled };
        let delta = match is_whole {
            true => Delta { running: own.enabled, ..derived },
            false => Delta { count: own.count.saturating_add(derived.count), running: own.running + running, ..own },
        };
        let is_sure = said <= MOST_ERROR * counts && term.allows(self.off);
        Some(DerivedCount { event: term.event, delta, derived: running, error, is_sure })
    }
}

/// Whether two times are the same but for how exactly they are read.
fn is_about(one: CpuNs, other: CpuNs) -> bool {
    one.0.abs_diff(other.0) <= other.0 / 1000
}

/// Sums between events of a run that something else estimates: completes rounds by them, and judges them by what was
/// counted.
#[derive(Debug)]
pub struct JudgedSums {
    audit: Audit,
    tally: Tally,
    completion: Completion,
    /// The standard error of what was derived of each event in each interval so far, where it is kept.
    deviations: Option<Vec<Vec<f64>>>,
}

impl JudgedSums {
    /// The sums among relations between these events.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        let audit = Audit::new(events, relations);
        let completion = Completion::new(events.len(), &audit);
        Self { audit, tally: Tally::new(events.len()), completion, deviations: None }
    }

    /// Keeps what [`JudgedSums::hindsight`] needs, from before the first round.
    #[must_use]
    pub fn keeping_intervals(self) -> Self {
        Self { deviations: Some(Vec::new()), ..self }
    }

    /// A round with what follows from sums in place of what wasn't counted.
    pub fn round(&mut self, deltas: &[Delta]) -> Vec<Delta> {
        if self.completion.is_idle() {
            return deltas.to_vec();
        }
        let deltas: Vec<_> = deltas.iter().copied().map(Some).collect();
        self.tally.round(&deltas);
        self.completion.round(&deltas).into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Ends an interval: its estimates, made of completed rounds, with the errors of what was derived; and what is
    /// known of the counts of the next.
    pub fn end_interval(&mut self, estimates: &mut [Option<Uncertain>], confidence: Confidence) -> Vec<Constraint> {
        for (event, estimate) in estimates.iter_mut().enumerate() {
            *estimate = estimate.map(|estimate| self.completion.of_interval(event, estimate, confidence));
        }
        if let Some(deviations) = self.deviations.as_mut().filter(|_| !self.completion.is_idle()) {
            deviations.push(self.completion.interval.iter().map(|completed| completed.error).collect());
        }
        self.tally.end_interval();
        self.audit.update(&self.tally);
        self.completion.end_interval(&self.audit);
        self.constraints()
    }

    /// The sums that are trusted, as of now.
    pub fn constraints(&self) -> Vec<Constraint> {
        let trusted = self.completion.sums.iter().filter_map(|sum| Some((sum, sum.error?)));
        let constraint = |(sum, error): (&TrustedSum, f64)| Constraint {
            tolerance: error.max(sum.part_off()) / 2.0,
            ..Constraint::exact(sum.by, sum.terms.iter().map(|term| (term.event, term.factor)).collect())
        };
        trusted.map(constraint).collect()
    }

    /// Estimates of all intervals once more, with the errors of what was derived, where these were kept.
    pub fn hindsight(&self, series: &mut [Vec<Option<Uncertain>>], confidence: Confidence) {
        for (estimates, deviations) in series.iter_mut().zip(self.deviations.iter().flatten()) {
            for (event, (estimate, &deviation)) in estimates.iter_mut().zip(deviations).enumerate() {
                *estimate = estimate.map(|estimate| self.completion.widened(event, estimate, deviation, confidence));
            }
        }
    }

    /// Estimates of the run, with the errors of what was derived, that agree with each other as far as sums say.
    pub fn end(&self, estimates: &mut [Option<Uncertain>], confidence: Confidence) {
        for (event, estimate) in estimates.iter_mut().enumerate() {
            *estimate = match self.completion.is_spoilt(event, &self.audit) {
                true => self.tally.total(event),
                false => estimate.map(|estimate| self.completion.of_run(event, estimate, confidence)),
            };
        }
        if self.completion.is_idle() {
            return;
        }
        let value = |estimate: &Option<Uncertain>| match estimate {
            Some(estimate) => (estimate.value, estimate.deviation(confidence)),
            None => (0.0, 0.0),
        };
        let mut known = Posterior::independent(estimates.iter().map(value));
        for constraint in self.constraints() {
            if constraint.terms.iter().all(|&(event, _)| estimates[event].is_some()) {
                constraint.apply(&mut known, 0.0);
            }
        }
        // Errors stay: those of events that were derived from each other aren't independent.
        for (event, estimate) in estimates.iter_mut().enumerate() {
            let counted = self.tally.raw()[event].run.total().count as f64;
            *estimate = estimate.map(|old| Uncertain { value: known.mean[event], ..old }.at_least(counted));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::estimate::tests::{events, half, whole};

    fn sums(names: &[&str], relations: &str) -> JudgedSums {
        let relations = crate::relations::parse("test.json", relations.as_bytes()).strict().unwrap();
        JudgedSums::new(&events(names), &relations)
    }

    #[test]
    fn an_estimate_goes_towards_a_surer_one_by_hand() {
        let within = |value: f64, half: f64| Uncertain { value, error: Error::of(half) };
        // A half of the width is a quarter of the variance: three quarters of the way from 100 +- 20 to 140 +- 10.
        assert_eq!(towards_surer(within(100.0, 20.0), within(140.0, 10.0)), within(130.0, 20.0));
        // All of the way to one without an error, none to one that is no surer, or of which nobody knows.
        assert_eq!(towards_surer(within(100.0, 20.0), Uncertain::exact(140.0)), within(140.0, 20.0));
        for other in [within(140.0, 20.0), within(140.0, 30.0), within(140.0, f64::NAN)] {
            assert_eq!(towards_surer(within(100.0, 20.0), other), within(100.0, 20.0));
        }
        assert_eq!(towards_surer(Uncertain::exact(5.0), within(6.0, 1.0)), Uncertain::exact(5.0));
        assert_eq!(towards_surer(within(0.0, 0.0), Uncertain::exact(0.0)), within(0.0, 0.0));
    }

    proptest! {
        #[test]
        fn what_goes_towards_a_surer_one_stays_between_both(
            a in 0.0..1e6f64, b in 0.0..1e6f64, p in 0.0..1e6f64, q in 0.0..1e6f64,
        ) {
            let mixed = towards_surer(Uncertain { value: a, error: Error::of(p) }, Uncertain { value: b, error: Error::of(q) });
            prop_assert!(mixed.value >= a.min(b) - 1e-6 && mixed.value <= a.max(b) + 1e-6);
            prop_assert_eq!(mixed.error, Error::of(p));
        }
    }

    /// A round of 2 ms in which an event was off the counters.
    fn off() -> Delta {
        half(None)
    }

    const SUM: &str = r#"[{"relation": "a = b + c", "tolerance": "0.3%"}]"#;

    #[test]
    fn two_events_of_a_sum_give_the_third_by_hand() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        assert_eq!(sums.round(&[whole(100), whole(60), off()])[2], whole(40));
        assert_eq!(sums.round(&[off(), whole(60), whole(30)])[0], whole(90));
        assert_eq!(sums.round(&[whole(100), off(), whole(30)])[1], whole(70));
        // Half of 200 are 100, of which a thousandth; half of 180, and half of 200.
        let deviations: Vec<_> = sums.completion.run.iter().map(|completed| completed.error).collect();
        assert!(
            deviations.iter().zip([0.09, 0.1, 0.1]).all(|(found, by_hand)| (found - by_hand).abs() < 1e-9),
            "{deviations:?}"
        );
        let total = sums.completion.total(0, Confidence::DEFAULT).unwrap();
        assert_eq!(total.value, 290.0);
        assert!((total.error.half_width().unwrap() - 1.959_964 * 0.09).abs() < 1e-4);
    }

    #[test]
    fn nothing_follows_from_one_or_where_an_event_was_on_for_a_part() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        for round in [
            [whole(100), off(), off()],
            [whole(100), half(Some(30)), off()],
            [whole(1), whole(1), whole(1)],
            [half(Some(1)), half(Some(1)), half(Some(1))],
        ] {
            assert_eq!(sums.round(&round), round);
        }
        // What was on for a part is known for the whole then.
        assert_eq!(sums.round(&[whole(100), whole(60), half(Some(15))])[2], whole(40));
        // Two that were on for the same half, and the third for the other one.
        assert_eq!(sums.round(&[half(Some(50)), half(Some(30)), off()])[2], half(Some(20)));
        let quarter = Delta { running: CpuNs(500_000), ..half(Some(6)) };
        let both = Delta { count: 26, running: CpuNs(1_500_000), ..quarter };
        assert_eq!(sums.round(&[half(Some(50)), half(Some(30)), quarter])[2], both);
    }

    #[test]
    fn a_part_that_is_no_more_than_the_error_is_not_derived() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        assert_eq!(sums.round(&[whole(100_000), whole(99_000), off()])[2], off());
        assert_eq!(sums.round(&[off(), whole(99_000), whole(1_000)])[0], whole(100_000));
    }

    #[test]
    fn what_follows_from_one_sum_is_what_another_lacks() {
        let file =
            r#"[{"relation": "d = c + e", "tolerance": "0.3%"}, {"relation": "a = b + c", "tolerance": "0.3%"}]"#;
        let mut sums = sums(&["a", "b", "c", "d", "e"], file);
        let known = sums.round(&[whole(100), whole(60), off(), off(), whole(5)]);
        assert_eq!((known[2], known[3]), (whole(40), whole(45)));
    }

    #[test]
    fn a_sum_is_put_aside_once_what_it_derives_is_not_what_is_counted() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        let mut derived = Vec::new();
        for round in 0..60 {
            let mut deltas = [whole(110), whole(60), whole(40)];
            deltas[round % 3] = off();
            derived.push(sums.round(&deltas) != deltas);
        }
        assert!(derived[..9].iter().all(|&derived| derived) && !derived[24..].contains(&true), "{derived:?}");
        // 5 counts a millisecond of 55.
        assert!((sums.completion.off(0) - 5.0).abs() < 0.1, "{}", sums.completion.off(0));
    }

    #[test]
    fn totals_agree_with_sums_and_keep_their_errors_by_hand() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        sums.round(&[off(), off(), off()]);
        let total = |value, half_width| Some(Uncertain { value, error: Error::of(half_width) });
        // 10 too many: variances of 4, 1 and 0 in 5 take four fifths and a fifth of it.
        let mut totals = [total(110.0, 20.0), total(60.0, 10.0), Some(Uncertain::exact(40.0))];
        sums.end(&mut totals, Confidence::DEFAULT);
        let values = totals.map(|total| total.map_or(0.0, |total| total.value));
        assert!(
            values.iter().zip([102.0, 62.0, 40.0]).all(|(found, by_hand)| (found - by_hand).abs() < 0.01),
            "{values:?}"
        );
        assert_eq!(
            totals.map(|total| total.and_then(|total| total.error.half_width())),
            [Some(20.0), Some(10.0), Some(0.0)]
        );
    }

    #[test]
    fn a_sum_that_counts_contradict_derives_nothing() {
        let mut sums = sums(&["a", "b", "c"], SUM);
        for interval in 0..12 {
            for round in 0..6 {
                let mut deltas = [whole(130), whole(60), whole(40)];
                deltas[round % 3] = off();
                let known = sums.round(&deltas);
                if interval > 6 {
                    assert_eq!(known, deltas);
                }
            }
            sums.end_interval(&mut [], Confidence::DEFAULT);
        }
        assert!(sums.constraints().is_empty());
    }
}
