//! Audits relations: holds what they predict against what was counted, and says how far each can be trusted.

use super::fading::FadingMean;
use super::levels::{EventLevels, known, residual_with_gradient, with_gradient};
use super::{Estimate, Moved, RelationIndex, RelationState, Standing};
use crate::events::Event;
use crate::expr::VariableSlot;
use crate::rates::Tally;
use crate::relations::{BoundForm, BoundPair, BoundRelation, Relation, RelationBinding, mean_slot, variance_slot};

/// A relation is audited once each of its events has so many samples.
pub(super) const AUDITED_AFTER: u64 = 5;

/// Past so many standard errors a relation is put aside if these are known, and below this part of that it is taken
/// back.
const VIOLATED_ABOVE: f64 = 3.0;
const AGREES_BELOW: f64 = 2.0 / 3.0;

/// So many standard errors of a residual are those of the counts.
const EXPLAINED: f64 = 2.0;

/// A sum of products of this size may be so far off by how exactly it is computed.
const ROUNDING: f64 = 1e-9;

/// The memory of residuals, per interval.
const MEMORY: f64 = 0.9;

/// A relation begins as if so many residuals had been as large as it says.
const BELIEVED: f64 = 4.0;

/// One residual counts as no more standard errors than this.
const MOST: f64 = 5.0;

/// Holds relations against what is counted, whether or not anything is corrected by them.
#[derive(Debug)]
pub(super) struct Audit {
    relations: Vec<Option<BoundRelation>>,
    standings: Vec<Standing>,
    residuals: Vec<Residuals>,
    /// What was counted, over the run and in the last interval.
    run: EventLevels,
    interval: EventLevels,
    /// Room for the gradient of one relation.
    gradient: Vec<f64>,
}

/// A relation that may correct.
pub(super) struct Trusted<'a> {
    pub(super) index: RelationIndex,
    pub(super) relation: &'a BoundRelation,
    /// How far it corrects: its weight, lessened by what its residuals were.
    pub(super) weight: f64,
}

/// What a relation's residuals in single intervals were, the older the less.
#[derive(Clone, Copy, Debug, Default)]
struct Residuals {
    /// The residual over the run, as a part of what the tolerance is a fraction of.
    of_run: Option<f64>,
    /// Squares, in the unit of the residual and in standard errors.
    squares: FadingMean,
    standard: FadingMean,
}

impl Audit {
    /// An audit of these relations between these events.
    pub(super) fn new(events: &[Event], relations: &[Relation]) -> Self {
        let (bound, standings): (Vec<_>, _) = relations.iter().map(|relation| bind(relation, events)).unzip();
        Self {
            residuals: vec![Residuals::default(); bound.len()],
            relations: bound,
            standings,
            run: EventLevels::default(),
            interval: EventLevels::default(),
            gradient: Vec::new(),
        }
    }

    /// The standing of each relation.
    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// Whether there is nothing to audit: no relation has all of its events.
    pub(super) fn is_idle(&self) -> bool {
        self.relations.iter().all(Option::is_none)
    }

    /// What was counted over the run, and in the last interval, where there is something to audit.
    pub(super) fn levels(&self) -> (&EventLevels, &EventLevels) {
        (&self.run, &self.interval)
    }

    /// The relations that may correct, bound and not contradicted.
    pub(super) fn trusted(&self) -> impl Iterator<Item = Trusted<'_>> {
        let trusted = self.bound().filter(|&(index, _)| self.standings[index].may_correct());
        trusted.map(|(index, relation)| {
            let weight = relation.weight.get() * self.standings[index].trust.unwrap_or(1.0);
            Trusted { index, relation, weight }
        })
    }

    /// The relations whose events are all measured.
    pub(super) fn bound(&self) -> impl Iterator<Item = (RelationIndex, &BoundRelation)> {
        let all = self.relations.iter().enumerate();
        all.filter_map(|(index, relation)| Some((index, relation.as_ref()?)))
    }

    /// Says of no relation how far it is trusted, as none is corrected by less for it.
    pub(super) fn leave_trust_open(&mut self) {
        self.standings.iter_mut().for_each(|standing| standing.trust = None);
    }

    /// Notes that a relation corrected an event.
    pub(super) fn used(&mut self, index: RelationIndex) {
        self.standings[index].uses += 1;
    }

    /// Notes by how much relations moved the totals of events.
    pub(super) fn note_moves(&mut self, tally: &Tally, estimates: &[Estimate]) {
        for (event, estimate) in estimates.iter().enumerate() {
            let whole = tally.total(event).map(|total| total.value).filter(|&total| total > 0.0);
            for part in &estimate.parts {
                if let Some(index) = part.relation() {
                    self.moved(index, Moved { event, relative: whole.map(|whole| part.counts / whole) });
                }
            }
        }
    }

    /// Notes by how much a relation moved an event, if that is more than it moved another one.
    fn moved(&mut self, index: RelationIndex, moved: Moved) {
        let size = |moved: Moved| moved.relative.map_or(f64::INFINITY, f64::abs);
        let old = &mut self.standings[index].moved;
        if old.is_none_or(|old| size(old) < size(moved)) {
            *old = Some(moved);
        }
    }

    /// The error of a relation, as a standard deviation of what it expects: its residual over the
    /// run, or what those of intervals were. One that was never checked against anything is as far off
    /// as it says that it may be.
    pub(super) fn misfit(&self, index: RelationIndex, scope: AuditScope, expected: f64) -> f64 {
        let residual = match scope {
            AuditScope::Run => self.standings[index].residual,
            AuditScope::Interval => self.residuals[index].typical(),
        };
        residual.map_or(self.slack_of(index) * expected.abs(), f64::abs)
    }

    /// The relative standard error of an equation: what it says that it may be off by, and what it was off by over the
    /// run, where that is more than the counts' errors leave.
    pub(super) fn relative_error(&self, index: RelationIndex) -> f64 {
        let excess = match (self.residuals[index].of_run, self.standings[index].z) {
            (Some(relative), Some(z)) if z.abs() > EXPLAINED => relative.abs() * (1.0 - (EXPLAINED / z).powi(2)).sqrt(),
            _ => 0.0,
        };
        self.slack_of(index).hypot(excess)
    }

    /// The relative standard error that a relation says.
    pub(super) fn slack_of(&self, index: RelationIndex) -> f64 {
        self.relations[index].as_ref().map_or(0.0, |relation| slack(relation.tolerance.get()))
    }

    /// Judges every relation anew; says whether one that could correct has just been put aside.
    pub(super) fn update(&mut self, tally: &Tally) -> bool {
        if self.is_idle() {
            return false;
        }
        (self.run, self.interval) = (EventLevels::of_run(tally), EventLevels::of_interval(tally));
        let mut has_fallen = false;
        for (index, relation) in self.relations.iter().enumerate() {
            let standing = &mut self.standings[index];
            standing.moved = None;
            let Some(relation) = relation else { continue };
            let Some(check) = predict(relation, &self.run, &mut self.gradient) else { continue };
            let samples = check.events.iter().map(|&event| tally.raw()[event].rate.samples()).min().unwrap_or(0);
            let (residual, counted, z) = (check.residual, check.counted, check.z());
            let of_size = (check.size > 0.0).then(|| residual / check.size);
            let of_one_interval = if is_of_variance(relation) {
                // A single interval has no variance.
                self.residuals[index] = Residuals::default();
                Some(check)
            } else {
                predict(relation, &self.interval, &mut self.gradient)
            };
            standing.tested += u64::from(of_one_interval.is_some() && !is_of_variance(relation));
            of_one_interval.into_iter().for_each(|check| self.residuals[index].add(&check));
            let next = next_state(&standing.state, z.abs(), samples);
            let could_correct = standing.may_correct();
            standing.residual = Some(residual);
            standing.relative = (counted != 0.0).then(|| residual / counted.abs());
            self.residuals[index].of_run = of_size;
            standing.z = known(z);
            standing.trust = match next {
                RelationState::Violated => Some(0.0),
                _ if samples >= AUDITED_AFTER => Some(self.residuals[index].trust()),
                _ => None,
            };
            standing.state = next;
            has_fallen |= could_correct && !standing.may_correct();
        }
        has_fallen
    }
}

impl Standing {
    /// Whether a relation may correct: it isn't contradicted, nor, while it is too early to say, seems to be.
    pub(super) fn may_correct(&self) -> bool {
        match self.state {
            RelationState::Agrees => true,
            RelationState::Waiting => self.z.is_none(),
            RelationState::Violated | RelationState::Inactive { .. } | RelationState::SameEvent { .. } => false,
        }
    }
}

/// What a number is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuditScope {
    Run,
    Interval,
}

/// The standard error for which a relation that is off by all of its tolerance is just put aside, were the counts
/// exact.
fn slack(tolerance: f64) -> f64 {
    tolerance / VIOLATED_ABOVE
}

fn bind(relation: &Relation, events: &[Event]) -> (Option<BoundRelation>, Standing) {
    let (bound, state) = match relation.bind(events) {
        RelationBinding::Active(bound) => (Some(bound), RelationState::Waiting),
        RelationBinding::Inactive { missing } => (None, RelationState::Inactive { missing }),
        RelationBinding::SelfRelation { event } => (None, RelationState::SameEvent { event }),
    };
    (bound, Standing { state, ..Standing::default() })
}

fn is_of_variance(relation: &BoundRelation) -> bool {
    matches!(&relation.form, BoundForm::Pair(BoundPair { mean: None, .. }))
}

/// A relation's prediction beside what was counted.
struct PredictionCheck<'a> {
    residual: f64,
    /// What was counted of a pair's event, or of the left side of an equation.
    counted: f64,
    /// What the tolerance is a fraction of.
    size: f64,
    /// The standard deviation of the residual of a relation that holds.
    deviation: f64,
    /// Whether no count can be what it expects.
    is_impossible: bool,
    events: RelationEvents<'a>,
}

/// The events of a relation.
enum RelationEvents<'a> {
    Pair([usize; 2]),
    Equation(&'a [usize]),
}

impl RelationEvents<'_> {
    fn iter(&self) -> std::slice::Iter<'_, usize> {
        match self {
            Self::Pair(pair) => pair.iter(),
            Self::Equation(events) => events.iter(),
        }
    }
}

impl PredictionCheck<'_> {
    /// The residual in standard errors; not finite where they aren't known.
    fn z(&self) -> f64 {
        match self.residual / self.deviation {
            // Whatever errors counts have.
            z if self.is_impossible => z.min(-MOST),
            _ if self.residual == 0.0 && self.deviation == 0.0 => 0.0,
            z => z,
        }
    }
}

/// `None` where not all of its events have been counted, or the prediction has no value.
fn predict<'a>(
    relation: &'a BoundRelation,
    levels: &EventLevels,
    gradient: &mut Vec<f64>,
) -> Option<PredictionCheck<'a>> {
    let mut is_impossible = false;
    let (residual, counted, deviation, events) = match &relation.form {
        BoundForm::Pair(BoundPair { to, mean, variance, from }) => {
            let (program, VariableSlot(slot)) = match (mean, variance) {
                (Some(mean), _) => (mean, mean_slot(*to)),
                (None, Some(variance)) => (variance, variance_slot(*to)),
                (None, None) => return None,
            };
            let expected = with_gradient(program, &levels.values, gradient)?;
            let error = levels.propagated(program.slots(), gradient);
            is_impossible = mean.is_some() && is_below_zero(expected, error, levels.size(program.slots(), gradient));
            // Neither a rate nor a variance is below 0.
            let predicted = expected.max(0.0);
            let counted = known(levels.values[slot])?;
            let deviation = levels.deviations[slot].hypot(error);
            (predicted - counted, counted, deviation, RelationEvents::Pair([*from, *to]))
        }
        BoundForm::Equation(equation) => {
            let residual = residual_with_gradient(equation, &levels.values, gradient)?;
            let slots: Vec<_> = equation.events().iter().map(|&event| mean_slot(event)).collect();
            let deviation = levels.propagated(&slots, gradient);
            (-residual, equation.left(&levels.values), deviation, RelationEvents::Equation(equation.events()))
        }
    };
    let size = match &relation.form {
        BoundForm::Pair(_) => counted.abs().max((counted + residual).abs()),
        BoundForm::Equation(equation) => equation.size(&levels.values),
    };
    let deviation = deviation.hypot(slack(relation.tolerance.get()) * size);
    Some(PredictionCheck { residual, counted, size, deviation, is_impossible, events })
}

/// Whether an expected rate is below 0 by more than its error, where that is known, and by more than how exactly
/// numbers of this size are computed.
fn is_below_zero(expected: f64, error: f64, size: f64) -> bool {
    expected < -ROUNDING * size && (error.is_nan() || -expected > EXPLAINED * error)
}

impl Residuals {
    fn add(&mut self, check: &PredictionCheck<'_>) {
        let Some(z) = known(check.z()) else { return };
        let z = z.abs().min(MOST);
        for (mean, value) in [(&mut self.squares, check.residual), (&mut self.standard, z)] {
            mean.forget(MEMORY);
            mean.add(value * value);
        }
    }

    /// The size of a residual; `None` before there was one.
    fn typical(&self) -> Option<f64> {
        self.squares.mean().map(f64::sqrt)
    }

    /// One over the factor by which the variance of the residuals is larger than it should be, as
    /// the mean of an inverse gamma distribution has it that began at 1. Never above 1: a relation
    /// that is better than it says isn't believed more.
    fn trust(&self) -> f64 {
        ((BELIEVED + self.standard.weight) / (BELIEVED + self.standard.sum)).min(1.0)
    }
}

/// The state after a residual of so many standard errors. Where nobody knows how many they are it stays.
fn next_state(now: &RelationState, z: f64, samples: u64) -> RelationState {
    let most = violated_above(samples);
    match now {
        _ if z.is_nan() => now.clone(),
        RelationState::Violated if z < AGREES_BELOW * most => RelationState::Agrees,
        RelationState::Violated => RelationState::Violated,
        _ if z > VIOLATED_ABOVE && samples < AUDITED_AFTER => RelationState::Waiting,
        _ if z > most => RelationState::Violated,
        _ => RelationState::Agrees,
    }
}

/// How many standard errors, which so many samples tell, are as rare as [`VIOLATED_ABOVE`] of a normal number at any
/// look.
///
/// Looks are as many as samples, but those that have most samples in common say the same: they count each time that the
/// samples have doubled (2 ln k for k looks, as the tail of a normal distribution falls). Student's t with as rare a
/// tail is that of Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", 1959.
fn violated_above(samples: u64) -> f64 {
    let doubled = (samples as f64 / AUDITED_AFTER as f64).log2().max(0.0);
    let degrees = samples.saturating_sub(1).max(1) as f64;
    let square = VIOLATED_ABOVE * VIOLATED_ABOVE + 2.0 * (1.0 + doubled).ln();
    (degrees * (square / degrees).exp_m1()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_below_zero_contradicts_any_count_by_hand() {
        // -500, within 2 standard errors of 300 or not; an error that nobody knows is no excuse.
        assert!(!is_below_zero(-500.0, 300.0, 500.0) && is_below_zero(-500.0, 200.0, 500.0));
        assert!(is_below_zero(-500.0, f64::NAN, 500.0) && !is_below_zero(500.0, 0.0, 500.0));
        // What is left of equal numbers.
        assert!(!is_below_zero(-1e-8, 0.0, 500.0) && is_below_zero(-1e-5, 0.0, 500.0));
        let check = |residual: f64, deviation: f64, is_impossible: bool| PredictionCheck {
            residual,
            counted: 1.0,
            size: 1.0,
            deviation,
            is_impossible,
            events: RelationEvents::Equation(&[]),
        };
        assert_eq!([check(-1.0, 1.0, true).z(), check(-1.0, 0.1, true).z()], [-5.0, -10.0]);
        // Nothing counted, and less expected.
        assert_eq!([check(0.0, 0.0, true).z(), check(0.0, 0.0, false).z()], [-5.0, 0.0]);
        assert_eq!(check(-1.0, f64::NAN, true).z(), -5.0);
    }

    fn after(zs: &[f64]) -> Residuals {
        let check = |z| PredictionCheck {
            residual: z,
            counted: 1.0,
            size: 1.0,
            deviation: 1.0,
            is_impossible: false,
            events: RelationEvents::Equation(&[]),
        };
        let mut residuals = Residuals::default();
        zs.iter().for_each(|&z| residuals.add(&check(z)));
        residuals
    }

    #[test]
    fn trust_by_hand() {
        assert_eq!((after(&[]).trust(), after(&[]).typical()), (1.0, None));
        // (4 + 1) / (4 + 25): a residual of 7 standard errors counts as one of 5.
        assert_eq!(after(&[7.0]).trust(), 5.0 / 29.0);
        assert_eq!(after(&[f64::NAN, f64::INFINITY]).trust(), 1.0);
        assert_eq!(after(&[0.0, 0.5, -0.5]).trust(), 1.0);
        // (0.9 x 9 + 16) / 1.9.
        assert!(after(&[3.0, -4.0]).typical().is_some_and(|size| (size * size - 24.1 / 1.9).abs() < 1e-12));
    }

    #[test]
    fn a_relation_is_put_aside_and_taken_back_by_hand() {
        use RelationState::{Agrees, Violated, Waiting};
        for (now, z, samples, next) in [
            (Waiting, 2.9, 1, Agrees),
            (Waiting, 3.1, 4, Waiting),
            (Waiting, 3.1, 5, Agrees),
            (Waiting, 6.0, 5, Violated),
            (Agrees, f64::INFINITY, 5, Violated),
            (Agrees, 3.6, 1000, Agrees),
            (Agrees, 3.8, 1000, Violated),
            (Violated, 2.6, 1000, Violated),
            (Violated, 2.3, 1000, Agrees),
        ] {
            assert_eq!(next_state(&now, z, samples), next, "{now:?} {z} {samples}");
        }
        // Of two counts without a known error nobody knows whether they agree.
        for now in [Waiting, Agrees, Violated] {
            assert_eq!(next_state(&now, f64::NAN, 9), now);
        }
    }

    #[test]
    fn few_samples_contradict_by_more_standard_errors_by_hand() {
        // 4 (e^(9/4) - 1); 23 (e^((9 + 2 ln(1 + log2 4.8)) / 23) - 1).
        assert!((violated_above(5) - 5.827).abs() < 1e-3, "{}", violated_above(5));
        assert!((violated_above(24) - 3.839).abs() < 1e-2, "{}", violated_above(24));
        // Without end it would be that of the looks alone.
        assert!(
            (violated_above(u64::MAX) - (9.0 + 2.0 * (1.0 + (u64::MAX as f64 / 5.0).log2()).ln()).sqrt()).abs() < 1e-3
        );
        assert!(violated_above(0).is_finite() && violated_above(2) > violated_above(3));
    }

    #[test]
    fn a_true_relation_of_normal_samples_is_seldom_put_aside() {
        use crate::random::SplitMix64;
        let put_aside = |seed: u64| {
            let mut random = SplitMix64::new(seed);
            let (mut sum, mut squares) = (0.0, 0.0);
            (1..=200u64).any(|n| {
                let x = random.normal();
                (sum, squares) = (sum + x, squares + x * x);
                let mean = sum / n as f64;
                let error = ((squares / n as f64 - mean * mean) / (n as f64 - 1.0)).sqrt();
                n >= AUDITED_AFTER && (mean / error).abs() > violated_above(n)
            })
        };
        let times = (0..2000).filter(|&seed| put_aside(seed)).count();
        // With 3 standard errors at each look 215 would be.
        assert!((10..=60).contains(&times), "{times}");
    }

    #[test]
    fn trust_falls_with_residuals_and_comes_back() {
        let bad = after(&[5.0; 10]).trust();
        let mut zs = vec![5.0; 10];
        zs.extend([0.0; 40]);
        assert!(bad < 0.1 && after(&zs).trust() > 0.9, "{bad}");
    }
}
