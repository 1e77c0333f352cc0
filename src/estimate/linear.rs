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
//! being what they are: `m - residual / (d residual / d m)`.
//!
//! Three things keep it honest. A relation that contradicts what is counted is put aside. An event
//! whose corrections predict its samples worse than its own mean does goes back to its own
//! samples. And the error of a corrected mean is the sum, weighted as the correction is, of the
//! errors of what went into it, with the relation's own residual as an error of the relation: a
//! mixture is never surer than its parts, however they are correlated.

use super::judge::{Judge, known, with_gradient};
use super::{Estimate, Estimator, HALF_WIDTH, Observation, Quality, Raw, RelationIndex, Standing, deviation, own};
use crate::events::Event;
use crate::expr::Slot;
use crate::plan::EventIndex;
use crate::rates::Error;
use crate::relations::{BoundEquation, BoundForm, BoundPair, BoundRelation, Relation};

/// The memory of the comparison between corrected and own means, per sample.
const MEMORY: f64 = 0.9;

/// Corrections are judged after so many samples, and dropped when their squared prediction error
/// is so much larger than that of the own mean; below 1 they are taken back.
const HELP_JUDGED_AFTER: u64 = 8;
const NO_HELP_ABOVE: f64 = 1.25;

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
    /// The relation that moved it most when relations last did.
    by: Option<RelationIndex>,
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

/// The sum of what relations want of one event.
#[derive(Clone, Debug, Default)]
struct Pull {
    mean: Wish,
    variance: Wish,
    deviation: f64,
    strongest: Option<(f64, RelationIndex)>,
}

/// A weighted sum of expectations.
#[derive(Clone, Copy, Debug, Default)]
struct Wish {
    weight: f64,
    sum: f64,
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
            by: None,
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
}

impl Estimator for Linear {
    fn observe(&mut self, interval: &[Observation], raw: &[Raw]) {
        for fallen in self.judge.judge(raw) {
            for &event in self.judge.corrected(fallen) {
                self.states[event].forget_corrections();
            }
        }
        for ((state, observation), raw) in self.states.iter_mut().zip(interval).zip(raw) {
            if let Some(rate) = observation.delta.rate() {
                state.sample(rate, deviation(raw.rate_error()));
            }
        }
        let mut round = Round::new(&self.states, interval, self.judge.standings());
        for (index, relation) in self.judge.trusted() {
            round.pull(index, relation);
        }
        let Round { pulls, uses, .. } = round;
        for (state, pull) in self.states.iter_mut().zip(&pulls) {
            state.follow(pull);
        }
        uses.into_iter().for_each(|index| self.judge.used(index));
        let estimates = self.states.iter().zip(raw).map(|(state, raw)| state.estimate(raw));
        self.estimates = estimates.collect();
    }

    fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    fn relations(&self) -> &[Standing] {
        self.judge.standings()
    }
}

/// One round of pulls, all from the same states.
struct Round<'a> {
    states: &'a [State],
    interval: &'a [Observation],
    standings: &'a [Standing],
    /// Mean and variance of each event side by side, as bound relations read them; NaN is unknown.
    values: Vec<f64>,
    pulls: Vec<Pull>,
    /// The relation of each correction.
    uses: Vec<RelationIndex>,
    /// Room for the gradient of one relation.
    gradient: Vec<f64>,
}

impl<'a> Round<'a> {
    fn new(states: &'a [State], interval: &'a [Observation], standings: &'a [Standing]) -> Self {
        let values = states.iter().flat_map(|state| [state.mean, state.variance]).collect();
        let pulls = vec![Pull::default(); states.len()];
        Self { states, interval, standings, values, pulls, uses: Vec::new(), gradient: Vec::new() }
    }

    fn is_sampled(&self, event: EventIndex) -> bool {
        self.interval[event].delta.rate().is_some()
    }

    fn pull(&mut self, index: RelationIndex, relation: &BoundRelation) {
        let weight = relation.weight.get();
        match &relation.form {
            BoundForm::Pair(pair) if self.is_sampled(pair.from) => self.pull_pair(index, pair, weight),
            BoundForm::Pair(_) => {}
            BoundForm::Equation(equation) => self.pull_equation(index, equation, weight),
        }
    }

    fn pull_pair(&mut self, index: RelationIndex, pair: &BoundPair, weight: f64) {
        if let Some(program) = &pair.mean
            && let Some(expected) = with_gradient(program, &self.values, &mut self.gradient)
        {
            let deviation = self.deviation_of(program.slots());
            self.wish_mean(index, pair.to, weight, expected, deviation);
        }
        if let Some(expected) = pair.variance.as_ref().and_then(|program| known(program.eval(&self.values))) {
            self.pulls[pair.to].variance.add(weight, expected.max(0.0));
            if pair.mean.is_none() {
                self.uses.push(index);
            }
        }
    }

    fn pull_equation(&mut self, index: RelationIndex, equation: &BoundEquation, weight: f64) {
        let events = equation.events();
        self.gradient.clear();
        self.gradient.resize(events.len(), 0.0);
        let Some(residual) = known(equation.residual_with_gradient(&self.values, &mut self.gradient)) else { return };
        for (place, &event) in events.iter().enumerate() {
            let slope = self.gradient[place];
            let has_source = events.iter().any(|&other| other != event && self.is_sampled(other));
            if slope == 0.0 || !slope.is_finite() || !has_source {
                continue;
            }
            let others = events.iter().zip(&self.gradient).filter(|&(&other, _)| other != event);
            let errors = others.map(|(&other, derivative)| derivative / slope * self.states[other].own_deviation);
            let deviation = errors.fold(0.0, f64::hypot);
            self.wish_mean(index, event, weight, self.values[2 * event] - residual / slope, deviation);
        }
    }

    /// The deviation of a value whose gradient was just computed: that of its means' own samples,
    /// whose errors are independent. Their corrected means' would go round in cycles and grow.
    fn deviation_of(&self, slots: &[Slot]) -> f64 {
        let means = slots.iter().zip(&self.gradient).filter(|(Slot(slot), _)| slot % 2 == 0);
        means.map(|(Slot(slot), derivative)| derivative * self.states[slot / 2].own_deviation).fold(0.0, f64::hypot)
    }

    fn wish_mean(&mut self, index: RelationIndex, event: EventIndex, weight: f64, expected: f64, deviation: f64) {
        let Some(expected) = known(expected).map(|expected| expected.max(0.0)) else { return };
        // What the relation has been wrong by so far is an error of the relation.
        let misfit = self.standings[index].residual.unwrap_or(0.0);
        let pull = &mut self.pulls[event];
        pull.mean.add(weight, expected);
        pull.deviation += weight * deviation.hypot(misfit);
        let way = weight * (expected - self.values[2 * event]).abs();
        if pull.strongest.is_none_or(|(strongest, _)| way > strongest) {
            pull.strongest = Some((way, index));
        }
        self.uses.push(index);
    }
}

impl Wish {
    fn add(&mut self, weight: f64, expected: f64) {
        self.weight += weight;
        self.sum += weight * expected;
    }

    /// Where the wishes lead: nowhere without any, and all the way at most.
    fn apply(self, from: f64) -> f64 {
        if self.weight == 0.0 {
            return from;
        }
        let expected = self.sum / self.weight;
        if from.is_nan() { expected } else { from + self.weight.min(1.0) * (expected - from) }
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
    }

    fn follow(&mut self, pull: &Pull) {
        self.mean = pull.mean.apply(self.mean);
        self.variance = pull.variance.apply(self.variance).max(0.0);
        if pull.mean.weight > 0.0 {
            let share = pull.mean.weight.min(1.0);
            let theirs = pull.deviation / pull.mean.weight;
            self.deviation = if self.samples == 0 { theirs } else { mixed(self.deviation, theirs, share) };
            self.by = pull.strongest.map(|(_, relation)| relation);
        } else if pull.variance.weight == 0.0 && self.by.is_none() {
            self.deviation = self.own_deviation;
        }
    }

    fn forget_corrections(&mut self) {
        self.mean = self.own_mean;
        self.variance = self.own_variance;
        self.deviation = self.own_deviation;
        self.by = None;
        self.help = Help::default();
    }

    fn estimate(&self, raw: &Raw) -> Estimate {
        let own = own(raw);
        let Some(by) = self.by.filter(|_| !self.help.dropped && self.mean.is_finite()) else { return own };
        // Samples of equal weight have another mean than the count over the time: a known part of
        // what the corrected mean is wrong by.
        let weighting = own.mean.map_or(0.0, |mean| (mean - self.own_mean).abs());
        let half_width = HALF_WIDTH * self.deviation + weighting;
        let error = if half_width.is_finite() { Error::Within(half_width) } else { Error::Unknown };
        let quality = if self.samples == 0 { Quality::Derived(by) } else { Quality::Corrected(by) };
        let variance = known(self.variance).or(own.variance);
        Estimate { mean: Some(self.mean), variance, error, quality }
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
    use crate::events::{Encoding, Kind, Modifiers, Unit};
    use crate::rates::Delta;
    use crate::units::CpuNs;

    fn events(names: &[&str]) -> Vec<Event> {
        let event = |name: &&str| Event {
            name: (*name).into(),
            canonical: (*name).into(),
            kind: Kind::Raw,
            encoding: Encoding::default(),
            modifiers: Modifiers::default(),
            unit: Unit::Count,
        };
        names.iter().map(event).collect()
    }

    /// An estimator with its raw statistics, fed with a rate an event a millisecond.
    struct Bench {
        linear: Linear,
        raw: Vec<Raw>,
    }

    impl Bench {
        fn new(names: &[&str], file: &str) -> Self {
            let relations = crate::relations::parse("test.json", file.as_bytes()).strict().unwrap();
            Self { linear: Linear::new(&events(names), &relations), raw: vec![Raw::default(); names.len()] }
        }

        fn feed(&mut self, rates: &[Option<u64>]) {
            let ms = |ms: u64| CpuNs(ms * 1_000_000);
            let observation = |(rate, raw): (&Option<u64>, &mut Raw)| {
                let delta = Delta { count: rate.unwrap_or(0), enabled: ms(1), running: ms(rate.map_or(0, |_| 1)) };
                raw.run.add(delta);
                delta.rate().into_iter().for_each(|rate| raw.rate.add(rate, 1.0));
                Observation { delta, error: Error::Exact }
            };
            let interval: Vec<_> = rates.iter().zip(&mut self.raw).map(observation).collect();
            self.linear.observe(&interval, &self.raw);
        }

        fn mean(&self, event: usize) -> f64 {
            self.linear.estimates()[event].mean.unwrap()
        }
    }

    const FIVE: &str = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "5 * {mean}", "weight": 0.25}]"#;

    #[test]
    fn a_correction_goes_a_quarter_of_the_way_to_five_times_the_source() {
        // b has 40, a says 5 x 10 = 50: 40 + 0.25 x (50 - 40) = 42.5.
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), Some(40)]);
        assert_eq!((bench.mean(0), bench.mean(1)), (10.0, 42.5));
        assert_eq!(bench.raw[1].rate.mean(), Some(40.0));
        let standing = &bench.linear.relations()[0];
        assert_eq!((standing.uses, standing.residual), (1, Some(10.0)));
    }

    #[test]
    fn a_source_without_a_sample_corrects_nothing() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[None, Some(40)]);
        assert_eq!(bench.linear.relations()[0].uses, 0);
        assert_eq!(bench.linear.estimates()[0], Estimate::default());
        assert_eq!(bench.linear.estimates()[1].quality, Quality::Measured);
    }

    #[test]
    fn an_event_that_was_never_counted_is_derived() {
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), None]);
        assert_eq!(bench.mean(1), 50.0);
        assert_eq!(bench.linear.estimates()[1].quality, Quality::Derived(0));
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
        assert_eq!(bench.linear.estimates()[1].quality, Quality::Measured);
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
    fn an_error_mixes_as_its_number_does_and_does_not_grow() {
        // b has 40, exact; a says 50; the relation is 10 off: a quarter of 1.96 x 10.
        let mut bench = Bench::new(&["a", "b"], FIVE);
        bench.feed(&[Some(10), Some(40)]);
        let error = |bench: &Bench| bench.linear.estimates()[1].error.half_width().unwrap();
        assert!((error(&bench) - 4.9).abs() < 1e-12);
        for _ in 0..1000 {
            bench.feed(&[Some(10), Some(40)]);
        }
        assert!(error(&bench) <= 1.96 * 10.0);
        assert!(mixed(f64::NAN, 3.0, 0.5).is_nan() && (mixed(3.0, 5.0, 0.5) - 4.0).abs() < 1e-12);
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
        fn nothing_is_ever_nan_or_negative(rounds in prop::collection::vec(prop::array::uniform3(prop::option::of(0u64..1_000_000_000)), 1..40)) {
            let file = r#"[{"eventFrom": "a", "eventTo": "b", "expectedMean": "1 / {mean}", "expectedVariance": "-{variance}", "weight": 1},
                           {"eventFrom": "b", "eventTo": "a", "expectedMean": "-{mean}"},
                           {"relation": "a / b = c"}]"#;
            let mut bench = Bench::new(&["a", "b", "c"], file);
            for rates in rounds {
                bench.feed(&rates);
                for estimate in bench.linear.estimates() {
                    prop_assert!(estimate.mean.is_none_or(|mean| mean >= 0.0));
                    prop_assert!(estimate.variance.is_none_or(|variance| variance >= 0.0));
                    prop_assert!(estimate.error.half_width().is_none_or(|half_width| half_width >= 0.0));
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
