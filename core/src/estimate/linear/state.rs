//! Holds an event's mean and variance, with and without what relations expect of it.

use std::collections::BTreeMap;

use super::super::RelationIndex;
use super::LinearRule;
use super::correction::ExpectedCorrection;

/// The memory of the comparison between corrected and own means, per sample.
const MEMORY: f64 = 0.9;

/// Corrections are judged after so many samples, and dropped when their squared prediction error
/// is so much larger than that of the own mean; below 1 they are taken back.
const HELP_JUDGED_AFTER: u64 = 8;
const NO_HELP_ABOVE: f64 = 1.25;

/// What one event has come to, its corrections included.
#[derive(Clone, Debug)]
pub(super) struct EventState {
    pub(super) samples: u64,
    pub(super) mean: f64,
    pub(super) variance: f64,
    /// The standard deviation of the mean's error.
    pub(super) deviation: f64,
    /// Mean from own samples alone: what a put-aside relation leaves behind.
    pub(super) own_mean: f64,
    own_variance: f64,
    own_deviation: f64,
    /// What each relation added to the mean: together, the mean less the own one.
    pub(super) parts: BTreeMap<RelationIndex, f64>,
    /// Whether corrections help; `None` where that isn't asked.
    help: Option<Help>,
}

/// Whether corrections predict an event's samples better than its own mean does.
#[derive(Clone, Debug, Default)]
struct Help {
    judged: u64,
    corrected: f64,
    own: f64,
    dropped: bool,
}

impl EventState {
    /// The state of an event without samples, of which corrections are dropped that don't help, or stay.
    pub(super) fn new(rule: LinearRule) -> Self {
        Self {
            samples: 0,
            mean: f64::NAN,
            variance: f64::NAN,
            deviation: f64::NAN,
            own_mean: f64::NAN,
            own_variance: f64::NAN,
            own_deviation: f64::NAN,
            parts: BTreeMap::new(),
            help: (rule == LinearRule::Judged).then(Help::default),
        }
    }

    /// Takes a sample; `deviation` is that of the mean of all own samples.
    pub(super) fn sample(&mut self, x: f64, deviation: f64) {
        self.help.iter_mut().for_each(|help| help.judge(x, self.mean, self.own_mean));
        self.samples += 1;
        let n = self.samples as f64;
        (self.mean, self.variance) = one_pass(n, x, self.mean, self.variance);
        (self.own_mean, self.own_variance) = one_pass(n, x, self.own_mean, self.own_variance);
        self.own_deviation = deviation;
        // The sample draws both means its way, and so brings them together.
        self.parts.values_mut().for_each(|part| *part *= 1.0 - 1.0 / n);
        if !self.deviation.is_nan() {
            self.deviation = mixed(self.deviation, deviation, 1.0 / n);
        } else if self.help.is_none() || deviation.is_nan() {
            self.deviation = deviation;
        } else {
            // Corrections by what may have been off by anything end once own samples say how far they are off.
            self.undo_corrections();
        }
    }

    pub(super) fn follow(&mut self, correction: &ExpectedCorrection) {
        // Unlike `max` this leaves a variance that isn't known so.
        self.variance = correction.variance.apply(self.variance).clamp(0.0, f64::INFINITY);
        if correction.mean.weight > 0.0 {
            let is_new = self.mean.is_nan();
            let share = if is_new { 1.0 } else { correction.mean.share() };
            let from = if is_new { 0.0 } else { self.mean };
            for &(index, weight, expected) in &correction.expectations {
                *self.parts.entry(index).or_default() += share * weight / correction.mean.weight * (expected - from);
            }
            self.mean = correction.mean.apply(self.mean);
            self.deviation = correction.deviation(self.samples == 0, self.deviation);
        } else if correction.variance.weight == 0.0 && self.parts.is_empty() {
            self.deviation = self.own_deviation;
        }
    }

    /// The variance, where relations moved it.
    pub(super) fn corrected_variance(&self) -> Option<f64> {
        Some(self.variance).filter(|variance| variance.is_finite() && *variance != self.own_variance)
    }

    /// The mean and the variance that relations go out from: own ones where corrections don't help.
    pub(super) fn as_source(&self) -> [f64; 2] {
        if self.drops_corrections() { [self.own_mean, self.own_variance] } else { [self.mean, self.variance] }
    }

    /// Whether it goes by its own samples, as corrections didn't help.
    pub(super) fn drops_corrections(&self) -> bool {
        self.help.as_ref().is_some_and(|help| help.dropped)
    }

    pub(super) fn forget_corrections(&mut self) {
        self.undo_corrections();
        self.help.iter_mut().for_each(|help| *help = Help::default());
    }

    fn undo_corrections(&mut self) {
        self.mean = self.own_mean;
        self.variance = self.own_variance;
        self.deviation = self.own_deviation;
        self.parts.clear();
    }
}

/// The mean and the sample variance after the `n`th sample.
pub(super) fn one_pass(n: f64, x: f64, mean: f64, variance: f64) -> (f64, f64) {
    if n == 1.0 {
        return (x, f64::NAN);
    }
    let next = mean + (x - mean) / n;
    let before = if variance.is_nan() { 0.0 } else { variance };
    (next, ((n - 2.0) * before + (x - mean) * (x - next)) / (n - 1.0))
}

/// The deviation of a mixture of two numbers, however they are correlated; NaN where one of them
/// isn't known.
pub(super) fn mixed(one: f64, other: f64, share_of_other: f64) -> f64 {
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
