//! Follows how much each event varies at present, over how it does at large.

use super::super::fading::FadingMean;
use super::Settings;
use super::covariance::Covariances;
use super::threads::WhichThreads;
use super::time::{CONSTANT, PerProcess, Span, TimedSpan, VARYING};
use super::window::{Observation, WindowScale};

/// That squares are as large as covariances expect counts as so many of them.
const ALWAYS: f64 = 0.3;

/// How many times as large as expected squares are.
fn ratio(squares: FadingMean) -> f64 {
    squares.mean_with(1.0, ALWAYS)
}

/// How much an event's level and its rate vary at present.
///
/// Programs go through phases in which the same event varies by a per cent or tenfold. Scaling the
/// covariances by what was last seen follows phases much faster than learning them does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Volatility {
    /// Squares over what covariances expect of them: of changes of the rate, and of how far the level is from the run's
    /// mean.
    rest: FadingMean,
    level: FadingMean,
    /// Whether anything was seen of the event.
    seen: bool,
}

/// Before any were seen it is as if so many squares of changes and of levels had been as expected.
pub(crate) const CHANGES_BEFORE: f64 = 1.0;
pub(crate) const LEVELS_BEFORE: f64 = 0.3;
/// Squares of levels, and those of changes, are so many times as large as expected at least and at most.
pub(crate) const LEAST_LEVEL: f64 = 0.25;
pub(crate) const MOST_LEVEL: f64 = 400.0;
const LEAST_CHANGE: f64 = 1e-6;
pub(crate) const MOST_CHANGE: f64 = 100.0;
/// Changes are looked at over so many milliseconds or more.
const LAG_MS: f64 = 8.0;
/// A window's changes count for so many at most: neighbours say the same again.
const MOST: f64 = 4.0;
/// A single change counts for no more than so many times what was expected.
const LARGEST: f64 = 100.0;

impl Volatility {
    pub(crate) fn new() -> Self {
        let as_expected = |weight| FadingMean { sum: weight, weight };
        Self { rest: as_expected(CHANGES_BEFORE), level: as_expected(LEVELS_BEFORE), seen: false }
    }

    fn scale(&self) -> WindowScale {
        WindowScale {
            level: ratio(self.level).clamp(LEAST_LEVEL, MOST_LEVEL).sqrt(),
            rest: ratio(self.rest).clamp(LEAST_CHANGE, MOST_CHANGE).sqrt(),
        }
    }

    /// Takes a window's observations of the event, in the order of time.
    fn update(&mut self, window: Span, mine: &[&Observation], covariances: &Covariances, settings: &Settings) {
        let length: f64 = mine.iter().map(|o| o.span.length()).sum();
        let Some(event) = mine.first().map(|o| o.event).filter(|_| length > 0.0) else { return };
        let own = covariances.at(event, event);
        self.seen = true;
        let (sum, count) = changes(window.start, mine, own, covariances.between_threads(event));
        let weight = if count > MOST { MOST / count } else { 1.0 };
        self.rest.forget(settings.volatility_memory.kept(window.length()));
        self.rest.add_sum(weight * sum, weight * count);
        let mean = mine.iter().map(|o| o.span.length() * o.value).sum::<f64>() / length;
        let sampled =
            mine.iter().map(|o| (o.span.length() * o.sampling_deviation).powi(2)).sum::<f64>() / length.powi(2);
        let threads = WhichThreads::mean(mine.iter().map(|o| (o.span.length(), &o.threads)));
        let noise = covariances.between_threads(event) * (sampled + threads.unknown(&threads));
        self.level.forget(settings.drift_memory.kept(window.length()));
        self.level.add(mean * mean / (own[CONSTANT] * threads.alike(&threads) + noise).max(1e-9));
    }
}

/// The sum of squared changes over what is expected of them, and how many there were.
fn changes(since: f64, mine: &[&Observation], own: &PerProcess, between_threads: f64) -> (f64, f64) {
    let covariance = |a: &Observation, b: &Observation, in_time: &PerProcess| {
        let own: f64 = VARYING.map(|process| own[process] * in_time[process]).sum();
        a.threads.alike(&b.threads) * own + between_threads * a.threads.unknown(&b.threads)
    };
    let (mut sum, mut count) = (0.0, 0.0);
    for (i, o) in mine.iter().enumerate().filter(|(_, o)| o.span.end > since + 1e-9) {
        let Some(before) = mine[..i].iter().rev().find(|b| b.span.start + LAG_MS <= o.span.start) else { continue };
        let timed = |span: Span| TimedSpan::new(span, o.span.start);
        let (a, b) = (timed(before.span), timed(o.span));
        let (aa, bb, ab) = (a.covariances(&a), b.covariances(&b), a.covariances(&b));
        let expected = covariance(before, before, &aa) + covariance(o, o, &bb) - 2.0 * covariance(before, o, &ab);
        let expected = expected + between_threads * (before.sampling_deviation.powi(2) + o.sampling_deviation.powi(2));
        sum += ((o.value - before.value).powi(2) / expected.max(1e-12)).min(LARGEST);
        count += 1.0;
    }
    (sum, count)
}

/// How many of some had a property.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Share {
    with: u64,
    all: u64,
}

impl Share {
    pub(crate) fn add(&mut self, has: bool) {
        self.with += u64::from(has);
        self.all += 1;
    }

    /// Whether more than half have it.
    pub(crate) fn is_most(self) -> bool {
        2 * self.with > self.all
    }
}

/// The part of a scale, as a power, that is believed: few changes were seen of it.
const BELIEVED: f64 = 0.7;
/// An event's scale is the geometric mean of its own and those of others, each with this power of
/// their correlation as its weight.
const ALIKE: i32 = 6;

/// The factors on the covariances of all events.
///
/// Scales of their own would undo what ties events: the hits and misses of a cache sum to its
/// accesses however much they vary at present.
pub(crate) fn scales(all: &[Volatility], covariances: &Covariances) -> Vec<WindowScale> {
    let own: Vec<WindowScale> = all.iter().map(Volatility::scale).collect();
    let shared = |event: usize, part: ScalePart| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (other, scale) in own.iter().enumerate().filter(|&(other, _)| other == event || all[other].seen) {
            let [both, one, two] =
                [(event, other), (event, event), (other, other)].map(|(a, b)| part.of_variance(covariances.at(a, b)));
            let weight = if other == event { 1.0 } else { (both / (one * two).sqrt().max(1e-9)).powi(ALIKE) };
            sum += weight * part.of_scale(*scale).ln();
            weights += weight;
        }
        (BELIEVED * sum / weights).exp()
    };
    let scale = |event| WindowScale { level: shared(event, ScalePart::Level), rest: shared(event, ScalePart::Rest) };
    (0..all.len()).map(scale).collect()
}

/// A part of what an event varies by that has a scale of its own.
#[derive(Clone, Copy)]
enum ScalePart {
    Level,
    Rest,
}

impl ScalePart {
    fn of_scale(self, scale: WindowScale) -> f64 {
        match self {
            Self::Level => scale.level,
            Self::Rest => scale.rest,
        }
    }

    fn of_variance(self, variance: &PerProcess) -> f64 {
        match self {
            Self::Level => variance[CONSTANT],
            Self::Rest => variance[VARYING].iter().sum(),
        }
    }
}

/// Updates all events from a window's observations.
pub(crate) fn update_all(
    all: &mut [Volatility],
    window: Span,
    observations: &[Observation],
    covariances: &Covariances,
    settings: &Settings,
) {
    let mut by_event: Vec<Vec<&Observation>> = vec![Vec::new(); all.len()];
    for observation in observations {
        by_event[observation.event].push(observation);
    }
    for (event, mine) in by_event.iter().enumerate() {
        all[event].update(window, mine, covariances, settings);
    }
}

#[cfg(test)]
mod tests {
    use super::super::time::PROCESSES;
    use super::*;

    #[test]
    fn most_is_more_than_half() {
        let mut share = Share::default();
        assert!(!share.is_most());
        for (has, most) in [(true, true), (false, false), (true, true), (false, false), (false, false)] {
            share.add(has);
            assert_eq!(share.is_most(), most, "{share:?}");
        }
    }

    /// Two events, of which the first varies by four times as much as it does at large.
    fn scales_at(correlation: f64, seen: bool) -> Vec<WindowScale> {
        let mut covariances = Covariances::zeros(2);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            *covariances.at_mut(a, b) = [if a == b { 1.0 } else { correlation }; PROCESSES];
        }
        let varied = FadingMean { sum: 4.0 * (100.0 + ALWAYS) - ALWAYS, weight: 100.0 };
        let first = Volatility { rest: varied, seen, ..Volatility::new() };
        let second = Volatility { seen: true, ..Volatility::new() };
        scales(&[first, second], &covariances)
    }

    #[test]
    fn scales_are_shared_by_those_that_go_along_by_hand() {
        // Standard deviations of 2 and 1, each by its own: 2^0.7 and 1.
        let apart = scales_at(0.0, true);
        assert!((apart[0].rest - 2f64.powf(0.7)).abs() < 1e-12 && apart[1].rest == 1.0, "{apart:?}");
        // The geometric mean of both.
        let along = scales_at(-1.0, true);
        for scale in &along {
            assert!((scale.rest - 2f64.powf(0.35)).abs() < 1e-9 && scale.level == 1.0, "{along:?}");
        }
    }

    #[test]
    fn what_was_never_seen_says_nothing_of_others() {
        assert_eq!(scales_at(1.0, false)[1].rest, 1.0);
        assert!(scales(&[], &Covariances::zeros(0)).is_empty());
        let unknown = scales(&[Volatility::new()], &Covariances::zeros(1));
        assert_eq!(unknown, [WindowScale { level: 1.0, rest: 1.0 }]);
    }

    proptest::proptest! {
        #[test]
        fn scales_lie_between_ones_own_and_the_others(correlation in -1.0..1.0f64) {
            let [first, second] = scales_at(correlation, true)[..] else { unreachable!() };
            proptest::prop_assert!(1.0 <= second.rest && second.rest <= first.rest + 1e-9);
            proptest::prop_assert!(first.rest <= 2f64.powf(0.7) + 1e-9);
        }
    }
}
