//! Intervals and relations in, means corrected towards what the relations expect out.
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
//! Five things keep it honest. What was counted all the time stays as it is. A relation that
//! contradicts what is counted is put aside, and one whose residuals are larger than it says weighs
//! less. An event whose corrections predict its samples worse than its own mean does goes back to
//! its own samples. And the error of a corrected mean is the sum, weighted as the correction is, of
//! the errors of what went into it, with the relation's own residual as an error of the relation: a
//! mixture is never surer than its parts, however they are correlated.

use std::collections::BTreeMap;

use super::judge::{Judge, Scope};
use super::levels::{Levels, known, with_gradient};
use super::{Cause, Estimate, Estimator, Moved, Part, Quality, RelationIndex, Standing, scaled};
use crate::events::Event;
use crate::plan::EventIndex;
use crate::rates::{Confidence, Error, Tally, Uncertain};
use crate::relations::{BoundEquation, BoundForm, BoundPair, BoundRelation, Relation, mean_slot};

/// The memory of the comparison between corrected and own means, per sample.
const MEMORY: f64 = 0.9;

/// Corrections are judged after so many samples, and dropped when their squared prediction error
/// is so much larger than that of the own mean; below 1 they are taken back.
const HELP_JUDGED_AFTER: u64 = 8;
const NO_HELP_ABOVE: f64 = 1.25;

/// Differences below this part of a mean are those of rounding.
const ROUNDING: f64 = 1e-9;

/// Steps after which an equation that has no solution near by is given up.
const MAX_STEPS: usize = 50;

/// Where those steps begin, one after the other until one leads there. From 0 a quotient has no
/// value, and from too far above its solution it leads away.
const STARTS: [f64; 3] = [0.0, 1.0, 1e-6];

/// Linear correction with the relations' weights.
#[derive(Debug)]
pub struct Linear {
    judge: Judge,
    states: Vec<State>,
    estimates: Vec<Estimate>,
}

/// What one event has come to, its corrections included.
#[derive(Clone, Debug)]
struct State {
    samples: u64,
    mean: f64,
    variance: f64,
    /// The standard deviation of the mean's error.
    deviation: f64,
    /// The same from own samples alone: what a put-aside relation leaves behind.
    own_mean: f64,
    own_variance: f64,
    own_deviation: f64,
    /// What each relation added to the mean: together, the mean less the own one.
    parts: BTreeMap<RelationIndex, f64>,
    help: Help,
}

/// Whether corrections predict an event's samples better than its own mean does.
#[derive(Clone, Debug, Default)]
struct Help {
    judged: u64,
    corrected: f64,
    own: f64,
    dropped: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            samples: 0,
            mean: f64::NAN,
            variance: f64::NAN,
            deviation: f64::NAN,
            own_mean: f64::NAN,
            own_variance: f64::NAN,
            own_deviation: f64::NAN,
            parts: BTreeMap::new(),
            help: Help::default(),
        }
    }
}

impl Linear {
    /// An estimator for these events, with the relations whose events are all among them.
    pub fn new(events: &[Event], relations: &[Relation]) -> Self {
        Self {
            judge: Judge::new(events, relations),
            states: vec![State::default(); events.len()],
            estimates: vec![Estimate::default(); events.len()],
        }
    }

    fn pulls(&self, scope: Scope, tally: &Tally) -> Pulls<'_> {
        let (run, interval) = self.judge.levels();
        let levels = match scope {
            Scope::Run => {
                let values = self.states.iter().flat_map(State::as_source).collect();
                // The errors are those of own samples, which are independent: those of corrected
                // means would go round in cycles and grow.
                Levels { values, deviations: run.deviations.clone() }
            }
            Scope::Interval => interval.clone(),
        };
        let sampled = (0..self.states.len()).map(|event| tally.interval(event).total().running.0 > 0).collect();
        let exact = (0..self.states.len()).map(|event| match scope {
            Scope::Run => tally.raw()[event].run.is_exact(),
            Scope::Interval => tally.interval(event).is_exact(),
        });
        let mut all = Pulls {
            judge: &self.judge,
            scope,
            levels,
            sampled,
            exact: exact.collect(),
            pulls: vec![Pull::default(); self.states.len()],
            uses: Vec::new(),
            gradient: Vec::new(),
        };
        for (index, relation, weight) in self.judge.trusted() {
            all.take(index, relation, weight);
        }
        all
    }

    fn estimate(&self, event: EventIndex, tally: &Tally, interval: &Pull) -> Estimate {
        let own = scaled(tally, event);
        let state = &self.states[event];
        if own.quality == Quality::Measured || state.help.dropped {
            return own;
        }
        let interval = self.interval(event, tally, interval).or(own.interval);
        if state.parts.is_empty() || !state.mean.is_finite() {
            return Estimate { interval, ..own };
        }
        let time = tally.run_time(event).as_ms();
        let raw = &tally.raw()[event];
        // Samples of equal weight have another mean than the count over the time: a known part of
        // what the corrected mean is wrong by.
        let weighting = raw.rate.mean().map_or(0.0, |mean| state.own_mean - mean);
        let total = uncertain(state.mean, state.deviation, weighting.abs(), tally.confidence()).scaled(time);
        let part = |by, rate: f64| Part { by, counts: rate * time };
        let of_relations = state.parts.iter().map(|(&index, &rate)| part(Cause::Relation(index), rate));
        let mut parts: Vec<_> = of_relations.collect();
        parts.sort_by(|a, b| b.counts.abs().total_cmp(&a.counts.abs()));
        if weighting.abs() > ROUNDING * state.mean.abs() {
            parts.push(part(Cause::Weighting, weighting));
        }
        Estimate {
            interval,
            total: Some(total.at_least(raw.run.total().count as f64)),
            variance: known(state.variance).or(own.variance),
            quality: if state.samples == 0 { Quality::Derived } else { Quality::Corrected },
            parts,
        }
    }

    /// The corrected count of the last interval; `None` where nothing corrects it.
    fn interval(&self, event: EventIndex, tally: &Tally, pull: &Pull) -> Option<Uncertain> {
        let counted = tally.interval(event);
        if pull.mean.weight == 0.0 {
            return None;
        }
        let (_, levels) = self.judge.levels();
        let own = levels.mean(event);
        let rate = known(pull.mean.apply(own))?;
        let deviation = pull.deviation(own.is_nan(), levels.deviations[mean_slot(event).0]);
        let count = uncertain(rate, deviation, 0.0, tally.confidence()).scaled(tally.interval_time(event).as_ms());
        Some(count.at_least(counted.total().count as f64))
    }

    /// Tells the judge what each relation moved most.
    fn note_moves(&mut self, tally: &Tally) {
        for (event, estimate) in self.estimates.iter().enumerate() {
            let whole = tally.total(event).map(|total| total.value).filter(|&total| total > 0.0);
            for part in &estimate.parts {
                if let Cause::Relation(index) = part.by {
                    self.judge.moved(index, Moved { event, relative: whole.map(|whole| part.counts / whole) });
                }
            }
        }
    }
}

fn uncertain(value: f64, deviation: f64, bias: f64, confidence: Confidence) -> Uncertain {
    Uncertain { value, error: Error::of(confidence.normal() * deviation + bias) }
}

impl Estimator for Linear {
    fn end_interval(&mut self, tally: &Tally) {
        if self.judge.judge(tally) {
            // What a wrong relation did may have gone on through others.
            self.states.iter_mut().for_each(State::forget_corrections);
        }
        let (run, interval) = self.judge.levels();
        for (event, state) in self.states.iter_mut().enumerate() {
            if let Some(rate) = known(interval.mean(event)) {
                state.sample(rate, run.deviations[mean_slot(event).0]);
            }
        }
        let Pulls { pulls, uses, .. } = self.pulls(Scope::Run, tally);
        let of_interval = self.pulls(Scope::Interval, tally).pulls;
        for (state, pull) in self.states.iter_mut().zip(&pulls) {
            state.follow(pull);
        }
        uses.into_iter().for_each(|index| self.judge.used(index));
        let estimates = of_interval.iter().enumerate().map(|(event, pull)| self.estimate(event, tally, pull));
        self.estimates = estimates.collect();
        self.note_moves(tally);
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.judge.standings()
    }
}

/// The sum of what relations want of one event.
#[derive(Clone, Debug, Default)]
struct Pull {
    mean: Wish,
    variance: Wish,
    /// The errors of what is expected, weighted.
    deviation: f64,
    /// Each relation with its weight and what it expects.
    wishes: Vec<(RelationIndex, f64, f64)>,
}

/// A weighted sum of expectations.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    weight: f64,
    sum: f64,
}

/// What all relations want, all from the same numbers.
struct Pulls<'a> {
    judge: &'a Judge,
    scope: Scope,
    levels: Levels,
    /// Whether each event was on a counter in the last interval.
    sampled: Vec<bool>,
    /// Whether it is known exactly: then nothing moves it.
    exact: Vec<bool>,
    pulls: Vec<Pull>,
    /// The relation of each correction.
    uses: Vec<RelationIndex>,
    /// Room for the gradient of one relation.
    gradient: Vec<f64>,
}

impl Pulls<'_> {
    fn take(&mut self, index: RelationIndex, relation: &BoundRelation, weight: f64) {
        match &relation.form {
            BoundForm::Pair(pair) if self.sampled[pair.from] && !self.exact[pair.to] => {
                self.pull_pair(index, pair, weight)
            }
            BoundForm::Pair(_) => {}
            BoundForm::Equation(equation) => self.pull_equation(index, equation, weight),
        }
    }

    fn pull_pair(&mut self, index: RelationIndex, pair: &BoundPair, weight: f64) {
        if let Some(program) = &pair.mean
            && let Some(expected) = with_gradient(program, &self.levels.values, &mut self.gradient)
        {
            let deviation = self.levels.propagated(program.slots(), &self.gradient);
            self.wish_mean(index, pair.to, weight, expected, deviation);
        }
        if let Some(expected) = pair.variance.as_ref().and_then(|program| known(program.eval(&self.levels.values))) {
            self.pulls[pair.to].variance.add(weight, expected.max(0.0));
            if pair.mean.is_none() {
                self.uses.push(index);
            }
        }
    }

    /// Each event towards the others; one without a number to where they put it. Two of those can't
    /// be told apart.
    fn pull_equation(&mut self, index: RelationIndex, equation: &BoundEquation, weight: f64) {
        let events = equation.events();
        let (run, interval) = self.judge.levels();
        let own = if self.scope == Scope::Run { run } else { interval };
        // One that has a number from relations only is no source of others.
        let mut unknown = events.iter().enumerate().filter(|&(_, &event)| own.mean(event).is_nan());
        match (unknown.next(), unknown.next()) {
            (None, _) => {
                let residual = self.residual(equation);
                let places = 0..events.len();
                places.for_each(|place| self.wish_place(index, equation, place, weight, residual));
            }
            (Some((place, &event)), None) => {
                let slot = mean_slot(event).0;
                let before = self.levels.values[slot];
                if self.solve(equation, place, slot).is_some() {
                    self.wish_place(index, equation, place, weight, Some(0.0));
                }
                self.levels.values[slot] = before;
            }
            (Some(_), Some(_)) => {}
        }
    }

    /// The residual, with its derivatives in `gradient`.
    fn residual(&mut self, equation: &BoundEquation) -> Option<f64> {
        self.gradient.clear();
        self.gradient.resize(equation.events().len(), 0.0);
        known(equation.residual_with_gradient(&self.levels.values, &mut self.gradient))
    }

    /// Puts the number that makes the equation hold into `slot`, by Newton's steps: one, and one to
    /// see it, where the equation is linear in it.
    fn solve(&mut self, equation: &BoundEquation, place: usize, slot: usize) -> Option<()> {
        for start in STARTS {
            self.levels.values[slot] = start;
            for _ in 0..MAX_STEPS {
                let Some(residual) = self.residual(equation) else { break };
                let slope = self.gradient[place];
                if slope == 0.0 || !slope.is_finite() {
                    break;
                }
                let step = residual / slope;
                self.levels.values[slot] -= step;
                if step.abs() <= 1e-12 * self.levels.values[slot].abs().max(f64::MIN_POSITIVE) {
                    return Some(());
                }
            }
        }
        None
    }

    fn wish_place(
        &mut self,
        index: RelationIndex,
        equation: &BoundEquation,
        place: usize,
        weight: f64,
        residual: Option<f64>,
    ) {
        let events = equation.events();
        let (event, slope) = (events[place], self.gradient[place]);
        let is_moved = !self.exact[event] && events.iter().any(|&other| other != event && self.sampled[other]);
        let Some(residual) = residual.filter(|_| slope != 0.0 && slope.is_finite() && is_moved) else { return };
        let others = events.iter().zip(&self.gradient).filter(|&(&other, _)| other != event);
        let errors = others.map(|(&other, derivative)| derivative / slope * self.levels.deviations[mean_slot(other).0]);
        let deviation = errors.fold(0.0, f64::hypot);
        self.wish_mean(index, event, weight, self.levels.mean(event) - residual / slope, deviation);
    }

    fn wish_mean(&mut self, index: RelationIndex, event: EventIndex, weight: f64, expected: f64, deviation: f64) {
        let Some(expected) = known(expected).map(|expected| expected.max(0.0)) else { return };
        let misfit = self.judge.misfit(index, self.scope, expected);
        let pull = &mut self.pulls[event];
        pull.mean.add(weight, expected);
        pull.deviation += weight * deviation.hypot(misfit);
        pull.wishes.push((index, weight, expected));
        self.uses.push(index);
    }
}

impl Pull {
    /// The deviation of a mean that was pulled, from that of the mean before.
    fn deviation(&self, is_new: bool, before: f64) -> f64 {
        let theirs = self.deviation / self.mean.weight;
        if is_new { theirs } else { mixed(before, theirs, self.mean.share()) }
    }
}

impl Wish {
    fn add(&mut self, weight: f64, expected: f64) {
        self.weight += weight;
        self.sum += weight * expected;
    }

    /// How much of the way is gone: all of it at most.
    fn share(self) -> f64 {
        self.weight.min(1.0)
    }

    /// Where the wishes lead: nowhere without any.
    fn apply(self, from: f64) -> f64 {
        if self.weight == 0.0 {
            return from;
        }
        let expected = self.sum / self.weight;
        if from.is_nan() { expected } else { from + self.share() * (expected - from) }
    }
}

impl State {
    /// Takes a sample; `deviation` is that of the mean of all own samples.
    fn sample(&mut self, x: f64, deviation: f64) {
        self.help.judge(x, self.mean, self.own_mean);
        self.samples += 1;
        let n = self.samples as f64;
        (self.mean, self.variance) = one_pass(n, x, self.mean, self.variance);
        (self.own_mean, self.own_variance) = one_pass(n, x, self.own_mean, self.own_variance);
        self.own_deviation = deviation;
        self.deviation = if self.deviation.is_nan() { deviation } else { mixed(self.deviation, deviation, 1.0 / n) };
        // The sample draws both means its way, and so brings them together.
        self.parts.values_mut().for_each(|part| *part *= 1.0 - 1.0 / n);
    }

    fn follow(&mut self, pull: &Pull) {
        // Unlike `max` this leaves a variance that isn't known so.
        self.variance = pull.variance.apply(self.variance).clamp(0.0, f64::INFINITY);
        if pull.mean.weight > 0.0 {
            let is_new = self.mean.is_nan();
            let share = if is_new { 1.0 } else { pull.mean.share() };
            let from = if is_new { 0.0 } else { self.mean };
            for &(index, weight, expected) in &pull.wishes {
                *self.parts.entry(index).or_default() += share * weight / pull.mean.weight * (expected - from);
            }
            self.mean = pull.mean.apply(self.mean);
            self.deviation = pull.deviation(self.samples == 0, self.deviation);
        } else if pull.variance.weight == 0.0 && self.parts.is_empty() {
            self.deviation = self.own_deviation;
        }
    }

    /// The mean and the variance that relations go out from: own ones where corrections don't help.
    fn as_source(&self) -> [f64; 2] {
        if self.help.dropped { [self.own_mean, self.own_variance] } else { [self.mean, self.variance] }
    }

    fn forget_corrections(&mut self) {
        self.mean = self.own_mean;
        self.variance = self.own_variance;
        self.deviation = self.own_deviation;
        self.parts.clear();
        self.help = Help::default();
    }
}

/// The mean and the sample variance after the `n`th sample.
fn one_pass(n: f64, x: f64, mean: f64, variance: f64) -> (f64, f64) {
    if n == 1.0 {
        return (x, f64::NAN);
    }
    let next = mean + (x - mean) / n;
    let before = if variance.is_nan() { 0.0 } else { variance };
    (next, ((n - 2.0) * before + (x - mean) * (x - next)) / (n - 1.0))
}

/// The deviation of a mixture of two numbers, however they are correlated; NaN where one of them
/// isn't known.
fn mixed(one: f64, other: f64, share_of_other: f64) -> f64 {
    (1.0 - share_of_other) * one + share_of_other * other
}

impl Help {
    fn judge(&mut self, x: f64, corrected: f64, own: f64) {
        let (corrected, own) = ((x - corrected).powi(2), (x - own).powi(2));
        if corrected.is_nan() || own.is_nan() {
            return;
        }
        self.judged += 1;
        self.corrected = MEMORY * self.corrected + corrected;
        self.own = MEMORY * self.own + own;
        let limit = if self.dropped { 1.0 } else { NO_HELP_ABOVE };
        self.dropped = self.judged >= HELP_JUDGED_AFTER && self.corrected > limit * self.own;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::super::RelationState;
    use super::super::judge::JUDGED_AFTER;
    use super::*;
    use crate::estimate::tests::{events, half, whole};
    use crate::rates::Delta;

    /// An estimator and what was counted, fed with a rate an event a millisecond, each counted for
    /// half of the time.
    struct Bench {
        linear: Linear,
        tally: Tally,
    }

    impl Bench {
        fn new(names: &[&str], file: &str) -> Self {
            let relations = crate::relations::parse("test.json", file.as_bytes()).strict().unwrap();
            Self { linear: Linear::new(&events(names), &relations), tally: Tally::new(names.len()) }
        }

        fn feed(&mut self, rates: &[Option<u64>]) {
            self.feed_deltas(&rates.iter().map(|rate| Some(half(*rate))).collect::<Vec<_>>());
        }

        fn feed_deltas(&mut self, deltas: &[Option<Delta>]) {
            self.tally.round(deltas);
            self.tally.end_interval();
            self.linear.end_interval(&self.tally);
        }

        fn mean(&self, event: usize) -> f64 {
            self.linear.estimates()[event].total.unwrap().value / self.tally.run_time(event).as_ms()
        }

        fn interval(&self, event: usize) -> f64 {
            self.linear.estimates()[event].interval.unwrap().value / self.tally.interval_time(event).as_ms()
        }

        fn quality(&self, event: usize) -> Quality {
            self.linear.estimates()[event].quality
        }

        /// What moved an event, as rates.
        fn parts(&self, event: usize) -> Vec<(Cause, f64)> {
            let time = self.tally.run_time(event).as_ms();
            self.linear.estimates()[event].parts.iter().map(|part| (part.by, part.counts / time)).collect()
        }
    }

    const FIVE: &str = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "5 * {mean}", "weight": 0.25}]"#;

    #[test]
    fn a_correction_goes_a_quarter_of_the_way_to_five_times_the_source() {
        // b has 40, a says 5 x 10 = 50: 40 + 0.25 x (50 - 40) = 42.5.
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), Some(40)]);
        assert_eq!((bench.mean(0), bench.mean(1)), (10.0, 42.5));
        assert_eq!((bench.interval(0), bench.interval(1)), (10.0, 42.5));
        assert_eq!(bench.tally.raw()[1].rate.mean(), Some(40.0));
        let standing = &bench.linear.relations()[0];
        assert_eq!((standing.uses, standing.residual, standing.trust), (1, Some(10.0), None));
        assert_eq!(standing.moved, Some(Moved { event: 1, relative: Some(0.0625) }));
        assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Corrected, vec![(Cause::Relation(0), 2.5)]));
    }

    #[test]
    fn a_source_without_a_sample_corrects_nothing() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[None, Some(40)]);
        assert_eq!(bench.linear.relations()[0].uses, 0);
        assert_eq!(bench.linear.estimates()[0], Estimate::default());
        assert_eq!(bench.quality(1), Quality::Scaled);
    }

    #[test]
    fn an_event_that_was_never_counted_is_derived() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), None]);
        assert_eq!(bench.mean(1), 50.0);
        assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Derived, vec![(Cause::Relation(0), 50.0)]));
        assert_eq!(bench.linear.relations()[0].moved, Some(Moved { event: 1, relative: None }));
    }

    #[test]
    fn an_equation_derives_the_one_event_that_was_never_counted() {
        let cases = [
            (r#"[{"relation": "a = b + c"}]"#, [Some(100), Some(40), None], Some(60.0)),
            (r#"[{"relation": "a = b * c"}]"#, [Some(100), Some(40), None], Some(2.5)),
            (r#"[{"relation": "a = b / c"}]"#, [Some(100), Some(40), None], Some(0.4)),
            (r#"[{"relation": "a = b + c"}]"#, [None, Some(40), Some(50)], Some(90.0)),
            // Less than nothing is nothing; of two none can be told.
            (r#"[{"relation": "a = b + c"}]"#, [Some(40), Some(100), None], Some(0.0)),
            (r#"[{"relation": "a = b + c"}]"#, [Some(100), None, None], None),
            (r#"[{"relation": "a = b + 0 * c"}]"#, [Some(100), Some(40), None], None),
        ];
        for (file, rates, expected) in cases {
            let mut bench = Bench::new(&["a", "b", "c"], file);
            let missing = rates.iter().rposition(Option::is_none).unwrap();
            for _ in 0..3 {
                bench.feed(&rates);
                match expected {
                    Some(expected) => {
                        assert!((bench.mean(missing) - expected).abs() < 1e-9, "{file}: {}", bench.mean(missing));
                        assert!((bench.interval(missing) - expected).abs() < 1e-9, "{file}");
                        assert_eq!(bench.quality(missing), Quality::Derived, "{file}");
                    }
                    None => assert_eq!(bench.linear.estimates()[missing], Estimate::default(), "{file}"),
                }
            }
            // What it gives corrects nothing in turn.
            assert!(
                (0..3).filter(|&event| rates[event].is_some()).all(|event| bench.quality(event) == Quality::Scaled)
            );
        }
    }

    #[test]
    fn what_a_relation_derives_is_as_uncertain_as_it_says() {
        // 10 % is what it is put aside for, and three deviations: 1.96 x 50 / 30, of exact events.
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed_deltas(&[Some(whole(20)), Some(half(None))]);
        let total = bench.linear.estimates()[1].total.unwrap();
        let half_width = 1.959_964 * total.value / 30.0;
        assert!((total.error.half_width().unwrap() - half_width).abs() < 1e-4, "{total:?}");
    }

    #[test]
    fn a_cycle_starts_from_the_same_states() {
        let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "{mean}", "weight": 0.5},
                       {"eventFrom": "b", "eventTo": "a", "expectedMean": "{mean}", "weight": 0.5}]"#;
        let mut bench = Bench::new(&["a", "b"], file);
        bench.feed(&[Some(10), Some(20)]);
        assert_eq!((bench.mean(0), bench.mean(1)), (15.0, 15.0));
    }

    #[test]
    fn relations_into_one_event_share_at_most_the_whole_way() {
        let file = r#"[{"eventFrom": "a", "eventTo": "c", "expectedMean": "{mean}", "weight": 1},
                       {"eventFrom": "b", "eventTo": "c", "expectedMean": "{mean}", "weight": 0.5}]"#;
        let mut bench = Bench::new(&["a", "b", "c"], file);
        bench.feed(&[Some(30), Some(60), Some(0)]);
        assert!((bench.mean(2) - 40.0).abs() < 1e-12);
        // Two thirds of the way to 30, and one third of that to 60.
        assert_eq!(bench.parts(2), [(Cause::Relation(0), 20.0), (Cause::Relation(1), 20.0)]);
    }

    #[test]
    fn a_single_interval_is_corrected_from_its_own_rates() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), Some(40)]);
        bench.feed(&[Some(20), Some(100)]);
        assert_eq!(bench.interval(1), 100.0);
        // 42.5 + (100 - 42.5) / 2 = 71.25, and a quarter of the way to 5 x 15.
        assert_eq!(bench.mean(1), 72.1875);
        // Not counted in this interval: what the other says of it.
        bench.feed(&[Some(8), None]);
        assert_eq!(bench.interval(1), 40.0);
        bench.feed(&[None, None]);
        assert_eq!(bench.linear.estimates()[1].interval, None);
    }

    #[test]
    fn an_equation_corrects_each_of_its_events() {
        // a = b + c with 100, 40, 50: residual 10; a should be 90, b 50, c 60; a tenth of the way.
        let mut bench = Bench::new(&["a", "b", "c"], r#"[{"relation": "a = b + c", "weight": 0.1}]"#);
        bench.feed(&[Some(100), Some(40), Some(50)]);
        for (event, mean) in [99.0, 41.0, 51.0].into_iter().enumerate() {
            assert!((bench.mean(event) - mean).abs() < 1e-12, "{event}");
        }
    }

    #[test]
    fn variance_follows_the_source_and_never_goes_below_zero() {
        let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedVariance": "{variance} - 1000", "weight": 0.5}]"#;
        let mut bench = Bench::new(&["a", "b"], file);
        bench.feed(&[Some(10), Some(0)]);
        bench.feed(&[Some(20), Some(20)]);
        // b: (0 - 10)^2 + (20 - 10)^2 = 200; expected 50 - 1000, which is read as 0.
        assert_eq!(bench.linear.states[1].variance, 100.0);
    }

    #[test]
    fn a_relation_that_contradicts_the_counts_is_put_aside() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        for _ in 0..JUDGED_AFTER + 1 {
            bench.feed(&[Some(10), Some(1000)]);
        }
        assert_eq!(bench.linear.relations()[0].state, RelationState::Violated);
        assert_eq!(bench.linear.relations()[0].trust, Some(0.0));
        assert_eq!((bench.quality(1), bench.parts(1)), (Quality::Scaled, vec![]));
        assert_eq!(bench.mean(1), 1000.0);
        for _ in 0..500 {
            bench.feed(&[Some(1000), Some(1000)]);
        }
        assert_eq!(bench.linear.relations()[0].state, RelationState::Violated, "5 x 990 is still not 1000");
    }

    #[test]
    fn a_relation_with_events_that_are_not_measured_is_inactive() {
        let bench = Bench::new(&["a"], FIVE);
        assert_eq!(bench.linear.relations()[0].state, RelationState::Inactive { missing: vec!["b".into()] });
    }

    #[test]
    fn an_error_mixes_as_its_number_does() {
        // A quarter is what a says of b: five times the error of a, and the 10 that it is off by.
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), Some(40)]);
        assert_eq!(bench.linear.estimates()[1].total.unwrap().error, Error::Unknown);
        bench.feed(&[Some(10), Some(40)]);
        let [a, b] = [0, 1].map(|event| bench.tally.raw()[event].run.deviation().unwrap() / 4.0);
        let expected = 4.0 * 1.959_964 * (0.75 * b + 0.25 * (5.0 * a).hypot(10.0));
        let found = bench.linear.estimates()[1].total.unwrap().error.half_width().unwrap();
        assert!((found - expected).abs() < 1e-4 * expected, "{found} {expected}");
        assert!(mixed(f64::NAN, 3.0, 0.5).is_nan() && (mixed(3.0, 5.0, 0.5) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_relation_of_variances_is_judged() {
        let file = r#"[{"id": "same", "eventFrom": "a", "eventTo": "b", "expectedVariance": "{variance}"},
                       {"id": "much", "eventFrom": "a", "eventTo": "b", "expectedVariance": "1000 * {variance} + 1e9"}]"#;
        let mut bench = Bench::new(&["a", "b"], file);
        for i in 0..40 {
            bench.feed_deltas(&[Some(whole(1_000_000 + 100_000 * (i % 4))); 2]);
        }
        let [same, much] = bench.linear.relations() else { panic!("two") };
        assert_eq!((same.residual, same.z, same.trust), (Some(0.0), Some(0.0), Some(1.0)));
        assert_eq!((&same.state, &much.state), (&RelationState::Agrees, &RelationState::Violated));
    }

    #[test]
    fn what_a_wrong_relation_did_is_forgotten_wherever_it_went() {
        let file =
            r#"[{"id": "right", "relation": "a = b", "tolerance": "1%"}, {"id": "wrong", "relation": "c = 9 * b"}]"#;
        let mut bench = Bench::new(&["a", "b", "c"], file);
        for _ in 0..12 {
            bench.feed(&[Some(10_000), Some(10_000), Some(5_000)]);
        }
        assert_eq!(bench.linear.relations()[1].state, RelationState::Violated);
        for (event, rate) in [10_000.0, 10_000.0, 5_000.0].into_iter().enumerate() {
            assert!((bench.mean(event) - rate).abs() < 1e-6, "{event}: {}", bench.mean(event));
        }
    }

    #[test]
    fn a_relation_that_is_off_by_more_than_it_says_weighs_less() {
        // 5 x 10 beside 46: within the tolerance of 10 %, but not as often as in every interval.
        let mut bench = Bench::new(&["a", "b"], &FIVE.replace("0.25", "1"));
        for _ in 0..30 {
            bench.feed_deltas(&[Some(whole(10_000)), Some(whole(46_000))]);
        }
        let standing = bench.linear.relations()[0].clone();
        let trust = standing.trust.unwrap();
        assert_eq!(standing.state, RelationState::Agrees);
        assert!((0.1..0.9).contains(&trust), "{trust}");
    }

    /// By how much an estimate was raised to what was counted.
    fn clipped(bench: &Bench, event: usize) -> f64 {
        let mean = bench.linear.states[event].mean * bench.tally.run_time(event).as_ms();
        (bench.tally.raw()[event].run.total().count as f64 - mean).max(0.0)
    }

    #[test]
    fn one_pass_gives_the_sample_variance() {
        let (mut mean, mut variance) = (f64::NAN, f64::NAN);
        for (n, x) in [(1.0, 2.0), (2.0, 4.0), (3.0, 9.0)] {
            (mean, variance) = one_pass(n, x, mean, variance);
        }
        assert_eq!((mean, variance), (5.0, 13.0));
    }

    proptest! {
        #[test]
        fn what_moved_a_number_adds_up(rounds in prop::collection::vec(prop::array::uniform3(prop::option::of(0u64..1_000_000)), 1..40)) {
            let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "2 * {mean}", "weight": 1},
                           {"eventFrom": "b", "eventTo": "a", "expectedMean": "{mean} / 3"},
                           {"relation": "a = b + c", "tolerance": 1}]"#;
            let mut bench = Bench::new(&["a", "b", "c"], file);
            for rates in rounds {
                bench.feed(&rates);
                for (event, estimate) in bench.linear.estimates().iter().enumerate() {
                    let parts: f64 = estimate.parts.iter().map(|part| part.counts).sum();
                    let scaled = bench.tally.raw()[event].run.estimate().unwrap_or(0.0);
                    let moved = estimate.total.map_or(0.0, |total| total.value - scaled);
                    prop_assert!((parts - moved).abs() <= 1e-6 * scaled.max(1.0) + clipped(&bench, event));
                }
            }
        }

        #[test]
        fn the_order_of_relations_does_not_matter(a in 0u64..1000, b in 0u64..1000, c in 0u64..1000) {
            let relations = [
                r#"{"eventFrom": "a", "eventTo": "c", "expectedMean": "2 * {mean}"}"#,
                r#"{"eventFrom": "b", "eventTo": "c", "expectedMean": "{mean} + 1"}"#,
                r#"{"relation": "a = b + c"}"#,
            ];
            let file = |order: [usize; 3]| format!("[{}]", order.map(|i| relations[i]).join(","));
            let mut one = Bench::new(&["a", "b", "c"], &file([0, 1, 2]));
            let mut other = Bench::new(&["a", "b", "c"], &file([2, 0, 1]));
            for bench in [&mut one, &mut other] {
                bench.feed(&[Some(a), Some(b), Some(c)]);
            }
            for event in 0..3 {
                prop_assert!((one.mean(event) - other.mean(event)).abs() < 1e-9);
            }
        }
    }
}
