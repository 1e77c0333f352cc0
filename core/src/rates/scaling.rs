//! Scales the counts of multiplexed events, and says how far that may be off.

use super::{Confidence, Delta, Error, Uncertain};
use crate::units::CpuNs;

/// The scaled count of an event over a window, and its error.
///
/// ```text
/// enabled  ├────────────────────────────────┤  E
/// running     ├──┤      ├──┤      ├──┤         R    estimate = count x E / R
/// ```
///
/// The variance of the estimate has three terms. All rates are per ms, their mean is `m = count / R`, and there are `n`
/// stays on a counter:
///
/// ```text
/// sampling    (E/R)^2 (1 - R/E) n/(n-1) sum (d_i - d_(i-1))^2 / 2
/// beginning   L^2 max(s^2 (1 + 1/n), b)
/// pause       P^2 max(0, s^2 (1 + 1/n) - m/t)
/// ```
///
/// - *sampling*: that of a ratio estimate from a systematic sample, whose stays' counts deviate from `m x running` by
///   `d_i`. It is never below what a Poisson process of the same count would leave unseen (`Delta::unseen_variance`).
///   Source: Cochran, "Sampling Techniques", 1977, section 6.3, with the successive differences of Wolter,
///   "Introduction to Variance Estimation", 2007, section 8.2, which a slow drift of the program doesn't inflate.
/// - *beginning*: a program's beginning is not like the rest of it. What passed of a run before the event's first
///   slice, L, is therefore no part of the sample but predicted from it, with the spread `s` of the rates between stays
///   in place of the error of their mean: the variance of one more observation (Hahn and Meeker, "Statistical
///   Intervals", 1991, chapter 4). Where events that were seen from the beginning had `u` times their mean rate in
///   their first stay, in the median, this event may have had so much as well: `b` is the variance of which an error of
///   the rate of `m (u - 1)` is the end at 95 %. Of events that every program has many of when it begins, a
///   [`Tally`](super::Tally) knows the most that L may have had.
/// - *pause*: the longest time off the counters, P, is no part of the sample either if it is far longer than all
///   others, as after a perfprop that was stopped, or got no CPU. It is predicted as well, with the spread of rates
///   beyond what a Poisson process has in stays of the mean length t, `m/t`: in a long time that averages out.
///
/// A stay on a counter is one sample however many rounds it lasts: rounds that follow one another are alike. Two rounds
/// are one stay if the event ran for all of one of them. Where a part of a run holds few stays, their variance is taken
/// from the run ([`Scaling::scaled_within`]).
///
/// An event that was never seen but not looked for in the beginning has no count: nothing tells the size of a burst
/// there, and 0 times E / R would say that there was none. Nor has one that was looked for in few stays, and not in
/// nearly all of the time: it may have had a burst between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scaling {
    total: Delta,
    /// What was counted so far in the stay that goes on.
    stay: Option<Stay>,
    samples: StaySamples,
    gaps: Gaps,
    lead: Lead,
}

/// The times between the stays of an event on its counter, in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Gaps {
    /// The one that goes on.
    open: f64,
    ended: u64,
    sum: f64,
    longest: f64,
}

/// A gap that is so many times as long as the mean of the others is none of a rotation. Chosen: of gaps as irregular as
/// a Poisson process', one of e^10, which is 22,000, is so long, and a rotation's are far more regular.
const PAUSE: f64 = 10.0;

impl Gaps {
    fn end(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open > 0.0 {
            self.ended += 1;
            self.sum += open;
            self.longest = self.longest.max(open);
        }
    }

    /// The longest gap, if it is far longer than the others; else 0.
    fn pause(mut self) -> f64 {
        self.end();
        let others = (self.sum - self.longest) / (self.ended.max(2) - 1) as f64;
        if self.ended > ENOUGH && self.longest > PAUSE * others { self.longest } else { 0.0 }
    }
}

/// What was counted while an event stayed on a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stay {
    count: f64,
    running: f64,
    last_round: StayRound,
}

/// How much of a stay's last round the event was on its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StayRound {
    /// A part, and the stay began in it.
    First,
    /// All of it.
    Full,
    /// A part, after full ones.
    Last,
}

impl StayRound {
    /// That of the round after this one; `None` where the event was off its counter in between: after another round of
    /// which it was on for a part, or between two that are full.
    fn next(self, is_full: bool) -> Option<Self> {
        match (self, is_full) {
            (Self::First | Self::Full, true) => Some(Self::Full),
            (Self::Full, false) => Some(Self::Last),
            (Self::First, false) | (Self::Last, _) => None,
        }
    }

    fn begin(is_full: bool) -> Self {
        if is_full { Self::Full } else { Self::First }
    }
}

/// The counts of stays that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct StaySamples {
    number: u64,
    first: (f64, f64),
    last: (f64, f64),
    /// Sums over successive stays of the differences of count and running time: squares of the
    /// one, products, squares of the other. From them the sum for any rate follows.
    count_count: f64,
    count_running: f64,
    running_running: f64,
    /// The sum of count^2 / running, from which the spread of rates follows.
    squared_rates: f64,
}

impl StaySamples {
    fn add(&mut self, stay: Stay) {
        let this = (stay.count, stay.running);
        if self.number > 0 {
            let (count, running) = (this.0 - self.last.0, this.1 - self.last.1);
            self.count_count += count * count;
            self.count_running += count * running;
            self.running_running += running * running;
        }
        if self.number == 0 {
            self.first = this;
        }
        self.squared_rates += this.0 * this.0 / this.1;
        self.number += 1;
        self.last = this;
    }

    /// The variance of a stay's deviation from what the rate says.
    fn variance(&self, rate: f64) -> f64 {
        let differences =
            (self.count_count - 2.0 * rate * self.count_running + rate * rate * self.running_running).max(0.0);
        // Each difference has twice the variance of a deviation.
        differences / (2.0 * (self.number as f64 - 1.0))
    }

    /// The degrees of freedom of that variance of two stays or more: those of a chi-square variable whose mean and
    /// variance are in the same proportion as half the mean of squared successive differences (von Neumann, Kent,
    /// Bellinson and Hart, "The mean square successive difference", 1941), where stays are normal and independent.
    fn degrees(&self) -> f64 {
        let differences = self.number as f64 - 1.0;
        2.0 * differences * differences / (3.0 * differences - 1.0)
    }
}

/// What passed before an event's first slice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Lead {
    /// The window is a part of a run, and begins like any other.
    #[default]
    Within,
    /// The window is a run from its beginning, of which so much wasn't seen. How many times its mean rate an event may
    /// have had there; 0 where nothing tells.
    Beginning { unseen: CpuNs, unlike: f64 },
}

impl Scaling {
    /// The window of a whole run.
    pub fn of_run() -> Self {
        Self { lead: Lead::Beginning { unseen: CpuNs(0), unlike: 0.0 }, ..Self::default() }
    }

    /// Takes what a round counted.
    pub fn add(&mut self, delta: Delta) {
        self.total += delta;
        self.gaps.open += delta.enabled.as_ms() - delta.running.min(delta.enabled).as_ms();
        if delta.running.0 == 0 {
            if let (Lead::Beginning { unseen, .. }, None, 0) = (&mut self.lead, self.stay, self.samples.number) {
                *unseen += delta.enabled;
            }
            // Where nothing ran at all, the event may still be on its counter.
            if delta.enabled.0 > 0 {
                self.end_stay();
            }
            return;
        }
        let is_full = delta.running >= delta.enabled;
        let goes_on = self.stay.and_then(|stay| stay.last_round.next(is_full));
        if goes_on.is_none() {
            self.end_stay();
            // What passed before the first stay is the lead.
            if self.samples.number > 0 { self.gaps.end() } else { self.gaps = Gaps::default() }
        }
        let (before, last_round) = (self.stay, goes_on.unwrap_or_else(|| StayRound::begin(is_full)));
        let [count, running] = before.map_or([0.0, 0.0], |stay| [stay.count, stay.running]);
        self.stay =
            Some(Stay { count: count + delta.count as f64, running: running + delta.running.as_ms(), last_round });
    }

    fn end_stay(&mut self) {
        if let Some(stay) = self.stay.take() {
            self.samples.add(stay);
        }
    }

    /// The samples, with the stay that goes on.
    fn samples(&self) -> StaySamples {
        let mut ended = *self;
        ended.end_stay();
        ended.samples
    }

    /// How many times its mean rate an event had in its first stay, if that is the beginning of a run.
    pub fn beginning_ratio(&self) -> Option<f64> {
        let (samples, mean) = (self.samples(), self.total.count as f64 / self.total.running.as_ms());
        let is_seen = self.lead() == 0.0 && matches!(self.lead, Lead::Beginning { .. });
        let tells = is_seen && samples.number > 1 && self.total.count > 0;
        tells.then(|| samples.first.0 / samples.first.1 / mean)
    }

    /// Says how many times its mean rate an event may have had at the beginning of the run.
    pub fn may_begin_at(&mut self, ratio: f64) {
        if let Lead::Beginning { unlike, .. } = &mut self.lead {
            *unlike = ratio;
        }
    }

    /// What was counted, as it was counted.
    pub fn total(&self) -> Delta {
        self.total
    }

    /// Running over enabled, at most 1; `None` if no CPU time passed.
    pub fn run_ratio(&self) -> Option<f64> {
        let Delta { enabled, running, .. } = self.total;
        (enabled.0 > 0).then(|| (running.0 as f64 / enabled.0 as f64).min(1.0))
    }

    /// The count scaled to all of the CPU time; `None` if the event never ran, and if it was never seen in a
    /// run of which too little was watched to say so: 0 is a count only where that is known.
    pub fn estimate(&self) -> Option<f64> {
        let Delta { count, enabled, running } = self.total;
        let is_known = running.0 > 0 && (count > 0 || !self.is_blind());
        is_known.then(|| count as f64 * (enabled.0.max(running.0) as f64 / running.0 as f64))
    }

    /// Whether a count of 0 says nothing of the run.
    fn is_blind(&self) -> bool {
        matches!((self.lead, self.spread()), (Lead::Beginning { .. }, ErrorSpread::Unknown))
    }

    /// The estimate with its error; `None` where there is no estimate.
    pub fn scaled(&self, confidence: Confidence) -> Option<Uncertain> {
        self.with_spread(self.spread_with(self.beginning_variance()), confidence)
    }

    /// [`Scaling::scaled`] of a part of a run. Where the part holds few stays on a counter, their variance is that of
    /// the run's stays, in proportion to their counts where these are more.
    pub fn scaled_within(&self, run: &Self, confidence: Confidence) -> Option<Uncertain> {
        self.with_spread(self.spread_beside(run), confidence)
    }

    /// The spread by the stays of a part of a run, or, where these are few, by those of the run.
    fn spread_beside(&self, run: &Self) -> ErrorSpread {
        if self.has_enough_stays() { self.spread() } else { self.spread_within(run) }
    }

    /// How many times the event was on a counter.
    pub fn stays(&self) -> u64 {
        self.samples().number
    }

    /// Whether the event was looked for so seldom, and in so little of the time, that what occurred in a burst may not
    /// have been seen.
    pub fn is_in_few_stays(&self) -> bool {
        self.stays() < NONE_STAYS && self.total.run_ratio() < NONE_SEEN
    }

    /// Whether there are so many stays that they tell their own variance.
    pub(crate) fn has_enough_stays(&self) -> bool {
        self.samples().number >= ENOUGH
    }

    fn with_spread(&self, spread: ErrorSpread, confidence: Confidence) -> Option<Uncertain> {
        let error = match spread {
            ErrorSpread::None => Error::Exact,
            ErrorSpread::Unknown => Error::Unknown,
            ErrorSpread::Of { deviation, degrees } => Error::of(confidence.student(degrees) * deviation),
        };
        Some(Uncertain { value: self.estimate()?, error }.at_least(self.total.count as f64))
    }

    /// The standard deviation of a normal error that would be as large at 95 %: 0 if everything was
    /// counted, `None` if too little was seen to say. A beginning that may be unlike the rest is left out: it is no
    /// reason to trust a relation that what was counted contradicts.
    pub fn deviation(&self) -> Option<f64> {
        self.spread().deviation()
    }

    /// [`Scaling::deviation`] of a part of a run, as [`Scaling::scaled_within`] has it.
    pub fn deviation_within(&self, run: &Self) -> Option<f64> {
        self.spread_beside(run).deviation()
    }

    /// Whether everything was counted.
    pub fn is_exact(&self) -> bool {
        self.total.running.0 > 0 && self.total.running >= self.total.enabled
    }

    fn spread(&self) -> ErrorSpread {
        self.spread_with(0.0)
    }

    /// The spread, if the rate of a beginning that wasn't seen has at least this variance.
    fn spread_with(&self, beginning: f64) -> ErrorSpread {
        if self.is_exact() {
            return ErrorSpread::None;
        }
        let (samples, lead, seen) = (self.samples(), self.lead(), self.total.running.as_ms());
        if samples.number < 2 || self.may_have_missed_all() {
            return ErrorSpread::Unknown;
        }
        let of_stay = samples.variance(self.total.count as f64 / seen);
        let sampling = self.sampling_variance(samples.number as f64 * of_stay);
        let of_rate = self.rate_variance(&samples);
        let poisson = self.total.count as f64 / seen * samples.number as f64 / seen;
        let pause = self.gaps.pause();
        let variance = sampling + lead * lead * of_rate.max(beginning) + pause * pause * (of_rate - poisson).max(0.0);
        ErrorSpread::Of { deviation: variance.sqrt(), degrees: samples.degrees() }
    }

    /// Whether the event may have occurred often in a run though it was never seen.
    fn may_have_missed_all(&self) -> bool {
        let is_run = matches!(self.lead, Lead::Beginning { .. });
        self.total.count == 0 && is_run && (self.lead() > 0.0 || self.is_in_few_stays())
    }

    fn spread_within(&self, run: &Self) -> ErrorSpread {
        let (own, all) = (self.samples(), run.samples());
        if self.is_exact() {
            return ErrorSpread::None;
        }
        if own.number == 0 || all.number < 2 {
            return ErrorSpread::Unknown;
        }
        let (seen, seen_in_run) = (self.total.running.as_ms(), run.total.running.as_ms());
        let (rate, rate_in_run) = (self.total.count as f64 / seen, run.total.count as f64 / seen_in_run);
        let longer = (seen / own.number as f64) / (seen_in_run / all.number as f64);
        let higher = if rate_in_run > 0.0 { (rate / rate_in_run).max(1.0) } else { 1.0 };
        let of_stay = all.variance(rate_in_run) * (longer * higher).powi(2);
        let variance = self.sampling_variance(own.number as f64 * of_stay);
        ErrorSpread::Of { deviation: variance.sqrt(), degrees: all.degrees() }
    }

    /// The part of the beginning that wasn't seen, in ms.
    pub fn lead(&self) -> f64 {
        match self.lead {
            Lead::Within => 0.0,
            Lead::Beginning { unseen, .. } => unseen.as_ms(),
        }
    }

    /// The variance of a beginning's rate, if at 95 % it is no more unlike the mean than that of other events.
    fn beginning_variance(&self) -> f64 {
        match self.lead {
            Lead::Beginning { unlike, .. } if unlike > 1.0 => {
                let mean = self.total.count as f64 / self.total.running.as_ms();
                (mean * (unlike - 1.0) / Confidence::DEFAULT.normal()).powi(2)
            }
            _ => 0.0,
        }
    }

    /// The variance of the rate of one more stay around the mean of those that were seen.
    fn rate_variance(&self, samples: &StaySamples) -> f64 {
        let seen = self.total.running.as_ms();
        let (mean, n) = (self.total.count as f64 / seen, samples.number as f64);
        let variance = (samples.squared_rates / seen - mean * mean).max(0.0) * n / (n - 1.0);
        variance * (1.0 + 1.0 / n)
    }

    /// The variance of the estimate, from that of the count of all stays.
    fn sampling_variance(&self, of_stays: f64) -> f64 {
        let (all, seen) = (self.total.enabled.as_ms(), self.total.running.as_ms());
        let expansion = all / seen;
        (expansion * expansion * (1.0 - seen / all) * of_stays).max(self.total.unseen_variance())
    }
}

/// A part of a run with so many stays tells their variance as well as the run does: at four differences the half width
/// of Student's t is 1.65 times the normal one.
const ENOUGH: u64 = 5;

/// An event that occurred in none of so many stays may, at 95 %, have occurred in at most one in twenty of those
/// between them (the rule of three: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", 1983).
const NONE_STAYS: u64 = 60;
/// So may one that was looked for in so much of the time: a single burst lies in the rest in at most one of twenty
/// runs.
const NONE_SEEN: f64 = 0.95;

/// What is known of an estimate's error.
enum ErrorSpread {
    /// There is none: everything was counted.
    None,
    Unknown,
    Of {
        deviation: f64,
        degrees: f64,
    },
}

impl ErrorSpread {
    /// The standard deviation of a normal error that would be as large at 95 %.
    fn deviation(self) -> Option<f64> {
        match self {
            Self::None => Some(0.0),
            Self::Unknown => None,
            Self::Of { deviation, degrees } => {
                let level = Confidence::default();
                Some(deviation * level.student(degrees) / level.normal())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVEL: Confidence = Confidence::DEFAULT;

    fn error(scaling: &Scaling) -> Error {
        scaling.scaled(LEVEL).map_or(Error::Unknown, |scaled| scaled.error)
    }

    fn delta(count: u64, enabled_ms: u64, running_ms: u64) -> Delta {
        Delta { count, enabled: CpuNs(enabled_ms * 1_000_000), running: CpuNs(running_ms * 1_000_000) }
    }

    #[test]
    fn no_running_time_gives_no_rate_and_no_estimate() {
        assert_eq!(delta(0, 10, 0).rate(), None);
        let mut scaling = Scaling::default();
        scaling.add(delta(0, 10, 0));
        assert_eq!((scaling.estimate(), error(&scaling)), (None, Error::Unknown));
        assert_eq!(scaling.run_ratio(), Some(0.0));
        assert_eq!(Scaling::default().run_ratio(), None);
    }

    #[test]
    fn a_long_time_off_the_counters_is_predicted_not_sampled() {
        let error_after = |counts: [u64; 2], pause: u64| {
            let mut scaling = Scaling::default();
            for stay in 0..40 {
                scaling.add(delta(counts[stay % 2], 2, 2));
                scaling.add(delta(0, if stay == 20 { pause } else { 2 }, 0));
            }
            error(&scaling).half_width().unwrap_or(f64::NAN)
        };
        // Rates of 100 and 300 a ms: 200 x 1.012 x 2.055, which is t(26.2), and with a pause of 800 ms so much more, in
        // 880 ms that weren't seen.
        let (usual, paused) = (error_after([200, 600], 2), error_after([200, 600], 800));
        assert!(paused > 800.0 * 100.0 * 2.0 && paused < 880.0 * 100.0 * 2.2, "{usual} {paused}");
        // Ten times a usual gap is none.
        assert!(error_after([200, 600], 20) < 3.0 * usual);
        // Rates that differ by no more than Poisson's say nothing of a pause.
        assert!(error_after([2, 3], 800) < 800.0, "{}", error_after([2, 3], 800));
    }

    #[test]
    fn a_beginning_that_was_not_seen_is_predicted_not_sampled() {
        let rounds = [delta(0, 10, 0), delta(10, 10, 10), delta(0, 10, 0), delta(30, 10, 10)];
        let of = |mut scaling: Scaling| {
            rounds.iter().for_each(|&delta| scaling.add(delta));
            (scaling.estimate(), scaling.deviation().map(|deviation| deviation * LEVEL.normal() / LEVEL.student(1.0)))
        };
        let (within, beginning) = (of(Scaling::default()), of(Scaling::of_run()));
        assert_eq!((within.0, beginning.0), (Some(80.0), Some(80.0)));
        // Rates 1 and 3 a ms: variance 1 x 2/1, of one more round 2 x 3/2 = 3; 10^2 x 3 is added.
        let added = beginning.1.unwrap_or(0.0).powi(2) - within.1.unwrap_or(0.0).powi(2);
        assert!((added - 300.0).abs() < 1e-9, "{added}");
    }

    #[test]
    fn a_beginning_may_be_as_unlike_the_rest_as_that_of_other_events_by_hand() {
        let mut seen = Scaling::of_run();
        let mut missed = Scaling::of_run();
        for round in 0..20 {
            let (burst, on) = (if round == 0 { 110 } else { 10 }, round % 2 == 0);
            seen.add(delta(if on { burst } else { 0 }, 10, if on { 10 } else { 0 }));
            missed.add(delta(if on { 0 } else { 10 }, 10, if on { 0 } else { 10 }));
        }
        // 11 a ms in the first 10 of 100 ms, 200 counts in all; ten stays have 2 x 9^2 / (3 x 9 - 1) degrees.
        assert!(seen.beginning_ratio().is_some_and(|ratio| (ratio - 5.5).abs() < 1e-12), "{seen:?}");
        assert_eq!((missed.beginning_ratio(), Scaling::default().beginning_ratio()), (None, None));
        let half_width = |scaling: &Scaling| error(scaling).half_width().unwrap_or(0.0) / LEVEL.student(162.0 / 26.0);
        let (before, deviation) = (half_width(&missed), missed.deviation());
        missed.may_begin_at(5.5);
        // 10 ms at 1 a ms may have had 4.5 times as much more, at 95 %.
        let added = half_width(&missed).powi(2) - before.powi(2);
        assert!((added * LEVEL.normal().powi(2) - 45.0_f64.powi(2)).abs() < 1e-6, "{added}");
        // That is no error by which relations are judged.
        assert_eq!(missed.deviation(), deviation);
        // Who saw the beginning has no error of it, and a quiet one widens nothing.
        let own = half_width(&seen);
        seen.may_begin_at(5.5);
        assert_eq!(half_width(&seen), own);
        missed.may_begin_at(0.2);
        assert!((half_width(&missed) - before).abs() < 1e-12);
    }

    #[test]
    fn what_was_never_seen_and_not_looked_for_at_first_has_no_known_error() {
        let quiet = |first: Delta| {
            let mut scaling = Scaling::of_run();
            scaling.add(first);
            (0..60).for_each(|_| [delta(0, 10, 10), delta(0, 10, 0)].into_iter().for_each(|delta| scaling.add(delta)));
            error(&scaling)
        };
        assert_eq!(quiet(delta(0, 10, 0)), Error::Unknown);
        assert!(quiet(delta(0, 10, 5)).half_width().is_some_and(|half_width| half_width < 5.0));
    }

    #[test]
    fn what_was_never_seen_and_not_looked_for_at_first_is_not_0() {
        let run = |rounds: &[Delta]| {
            let mut scaling = Scaling::of_run();
            rounds.iter().for_each(|&delta| scaling.add(delta));
            (scaling.estimate(), scaling.scaled(LEVEL).is_some())
        };
        let (off, on, some) = (delta(0, 10, 0), delta(0, 10, 10), delta(3, 10, 10));
        assert_eq!(run(&[off, on, off, on]), (None, false));
        // Nor is one slice enough, of which nobody knows whether the next ones are like it.
        assert_eq!(run(&[on, off]), (None, false));
        assert_eq!(run(&[off, on, off, some]), (Some(6.0), true));
        assert_eq!(run(&[on, on]), (Some(0.0), true));
    }

    #[test]
    fn what_was_never_seen_in_few_stays_is_not_0() {
        let is_known = |stays: usize, off_ms: u64| {
            let mut scaling = Scaling::of_run();
            (0..stays)
                .for_each(|_| [delta(0, 10, 10), delta(0, off_ms, 0)].into_iter().for_each(|delta| scaling.add(delta)));
            scaling.estimate() == Some(0.0)
        };
        assert_eq!([2, 59, 60].map(|stays| is_known(stays, 10)), [false, false, true]);
        // A burst of it would lie in a tenth of the time, or a twenty-first.
        assert_eq!([(2, 1), (1, 0)].map(|(stays, off_ms)| is_known(stays, off_ms)), [false, true]);
        let mut scaling = Scaling::of_run();
        [(200, 200), (20, 0), (200, 200)]
            .iter()
            .for_each(|&(enabled, running)| scaling.add(delta(0, enabled, running)));
        assert_eq!(scaling.estimate(), Some(0.0));
    }

    #[test]
    fn an_event_that_ran_all_the_time_is_exact() {
        let mut scaling = Scaling::default();
        for count in [3, 9, 0] {
            scaling.add(delta(count, 10, 10));
        }
        assert_eq!((scaling.estimate(), error(&scaling)), (Some(12.0), Error::Exact));
    }

    #[test]
    fn scaled_count_and_error_by_hand() {
        // Counts 900, 1100, 1000 in 5 of 10 ms each: estimate 3000 x 30/15 = 6000, rate 200/ms.
        // Deviations -100, 100, 0; successive differences 200, -100; sum of squares 50,000;
        // half of their mean 12,500; (30/15)^2 x (1 - 1/2) x 3 x 12,500 = 75,000; 2 x 2^2 / (3 x 2 - 1)
        // = 1.6 degrees; t(1.6) = 5.517245.
        let mut scaling = Scaling::default();
        for count in [900, 1100, 1000] {
            scaling.add(delta(count, 10, 5));
        }
        assert_eq!(scaling.estimate(), Some(6000.0));
        let half_width = error(&scaling).half_width().unwrap_or(f64::NAN);
        assert!((half_width - 5.517_245_4 * 75_000.0_f64.sqrt()).abs() < 1e-3, "{half_width}");
        // At 99 %, t(1.6) = 15.330932; as a normal deviation at 95 %, divided by 1.96.
        let wider = scaling.scaled(Confidence::new(0.99).unwrap_or(LEVEL)).and_then(|scaled| scaled.error.half_width());
        assert!(wider.is_some_and(|wider| (wider - 15.330_932 * 75_000.0_f64.sqrt()).abs() < 1e-3), "{wider:?}");
        let deviation = scaling.deviation().unwrap_or(f64::NAN);
        assert!((deviation - half_width / 1.959_964).abs() < 1e-3, "{deviation}");
    }

    #[test]
    fn rounds_of_one_stay_are_one_sample_by_hand() {
        // Two stays of 20 ms, the first in four rounds that begin and end within one: counts of 900 and 1100.
        let mut scaling = Scaling::default();
        for delta in [
            delta(100, 10, 3),
            delta(500, 10, 10),
            delta(0, 0, 0),
            delta(300, 10, 7),
            delta(0, 10, 0),
            delta(600, 10, 10),
            delta(500, 10, 10),
            delta(0, 20, 0),
        ] {
            scaling.add(delta);
        }
        assert_eq!((scaling.samples().number, scaling.estimate()), (2, Some(4000.0)));
        // One difference of 200: a variance of 20,000 a stay; (80/40)^2 x (1 - 1/2) x 2 x 20,000 = 80,000; t(1)
        // = 12.7062.
        let half_width = error(&scaling).half_width().unwrap_or(f64::NAN);
        assert!((half_width - 12.706_205 * 80_000.0_f64.sqrt()).abs() < 1e-2, "{half_width}");
        // Two rounds that the event shared with others are two stays: it was off in between.
        let mut shared = Scaling::default();
        [delta(3, 10, 5), delta(5, 10, 5)].into_iter().for_each(|delta| shared.add(delta));
        assert_eq!(shared.samples().number, 2);
    }

    #[test]
    fn stays_are_told_apart_where_an_event_is_off_for_less_than_a_round() {
        let stays = |rounds: &[u64]| {
            let mut scaling = Scaling::default();
            rounds.iter().for_each(|&running| scaling.add(delta(running, 10, running)));
            scaling.samples().number
        };
        // It was off in each round of 6 ms.
        assert_eq!(stays(&[10, 6, 10, 6, 10, 6]), 3);
        assert_eq!(stays(&[6, 10, 10, 6, 6, 10]), 2);
        assert_eq!(stays(&[10, 10, 10]), 1);
        assert_eq!(stays(&[6, 10, 6, 0, 10]), 2);
        assert_eq!(stays(&[]), 0);
    }

    #[test]
    fn a_part_with_few_stays_has_the_variance_of_the_runs_stays_by_hand() {
        let of = |rounds: &[Delta]| {
            let mut scaling = Scaling::default();
            rounds.iter().for_each(|&delta| scaling.add(delta));
            scaling
        };
        let off = delta(0, 10, 0);
        // Stays of 10 ms with 90, 110 and 100: differences of 20 and -10, a variance of 125 a stay; t(1.6) = 5.517245.
        let run = of(&[delta(90, 10, 10), off, delta(110, 10, 10), off, delta(100, 10, 10), off]);
        let half_width = |part: &Scaling| {
            part.scaled_within(&run, LEVEL).and_then(|scaled| scaled.error.half_width()).unwrap_or(f64::NAN)
        };
        // (20/10)^2 x (1 - 1/2) x 125 = 250, more than the 202 of a Poisson process; twice the rate has twice the
        // deviation.
        let usual = half_width(&of(&[delta(100, 10, 10), off]));
        assert!((usual - 5.517_245 * 250.0_f64.sqrt()).abs() < 1e-3, "{usual}");
        let high = half_width(&of(&[delta(200, 10, 10), off]));
        assert!((high - 5.517_245 * 1000.0_f64.sqrt()).abs() < 1e-3, "{high}");
        // What was counted for all of the part is exact, and nothing is known from one stay alone.
        let whole = of(&[delta(100, 10, 10)]);
        assert_eq!(whole.scaled_within(&run, LEVEL), Some(Uncertain::exact(100.0)));
        let part = of(&[delta(100, 10, 10), off]);
        assert_eq!(part.scaled_within(&part, LEVEL).map(|scaled| scaled.error), Some(Error::Unknown));
    }

    #[test]
    fn zero_counts_leave_room_for_what_was_not_seen() {
        // Nothing in half of 20 ms: Poisson (0 + 1/2) x 10 x 20 / 100 = 1; t(1) = 12.706.
        let mut scaling = Scaling::default();
        scaling.add(delta(0, 10, 5));
        scaling.add(delta(0, 10, 5));
        assert_eq!(scaling.estimate(), Some(0.0));
        let half_width = error(&scaling).half_width().unwrap_or(f64::NAN);
        assert!((half_width - 12.706_205).abs() < 1e-4, "{half_width}");
        // There are no fewer than were counted.
        assert_eq!(scaling.scaled(LEVEL).and_then(Uncertain::bounds).map(|(low, _)| low), Some(0.0));
    }

    #[test]
    fn one_round_is_too_little_to_know_the_error() {
        let mut scaling = Scaling::default();
        scaling.add(delta(5, 10, 5));
        assert_eq!(error(&scaling), Error::Unknown);
    }

    proptest! {
        #[test]
        fn errors_are_never_negative_or_nan(
            rounds in prop::collection::vec((0u64..u64::MAX / 100, 0u64..1_000, 0u64..1_000), 0..50)
        ) {
            let mut scaling = Scaling::default();
            for (count, enabled, running) in rounds {
                scaling.add(delta(count, enabled, running.min(enabled)));
            }
            if let Some((low, high)) = scaling.scaled(LEVEL).and_then(Uncertain::bounds) {
                prop_assert!(low >= scaling.total().count as f64 * (1.0 - 1e-12) && low <= high);
            }
            prop_assert!(scaling.estimate().is_none_or(|estimate| estimate >= scaling.total().count as f64));
        }
    }
}
