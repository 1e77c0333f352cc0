//! Looks for changes of level that lasted, with the detector of steps.

use std::ops::Range;

use super::noise::CountedLevel;
use super::series::{CountedSpan, SpanWindow};
use crate::rates::Confidence;
use crate::steps::{LevelChange, Step, StepMethod, changes, detect, median};
use crate::units::WallNs;

/// The largest chance of a change that is told. Each event is looked at once a second or so, for hours.
pub(super) const CHANCE: f64 = 1e-6;

/// The least change that is told, as a part of the level before.
pub(super) const LEAST_CHANGE: f64 = 0.05;

/// Twice the logarithm of how much likelier two rates are than one, at the least: 6 standard errors of Poisson counts.
const CLEAR_OF_POISSON: f64 = 36.0;

/// A change of level that lasted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LastingChange {
    pub(super) at: WallNs,
    pub(super) from: f64,
    pub(super) change: LevelChange,
    /// How many spans there were before and after it.
    spans: (usize, usize),
}

impl LastingChange {
    /// The level before, of values of which so many are in a span.
    pub(super) fn before(&self, values: usize) -> CountedLevel {
        CountedLevel { level: self.from, values: self.spans.0 * values }
    }

    /// The level after it.
    pub(super) fn after(&self, values: usize) -> CountedLevel {
        CountedLevel { level: self.to(), values: self.spans.1 * values }
    }

    /// The rate after it.
    pub(super) fn to(&self) -> f64 {
        (self.from + self.change.by).max(0.0)
    }
}

/// What a look found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WindowLook {
    /// The changes that are sure, in their order.
    pub(super) lasting: Vec<LastingChange>,
    /// Values of short steps that others followed: a burst, or the start of a program.
    pub(super) bursts: Vec<Range<usize>>,
}

/// Looks for the phases of a window. One has at least so many values; fewer are no phase, and what comes before and
/// after them is compared.
pub(super) fn look(window: &SpanWindow, least: usize, confidence: Confidence) -> WindowLook {
    let spans: Vec<CountedSpan> = window.spans.iter().copied().collect();
    let mut values: Vec<Option<f64>> = spans.iter().map(CountedSpan::value).collect();
    let weights = weights(&spans);
    let mut found = WindowLook::default();
    // Without what was short, others may turn out to be one step.
    loop {
        let steps = detect(&values, Some(&weights), StepMethod::Best);
        let short: Vec<&Step> = steps.iter().filter(|step| present(&values, step) < least).collect();
        if short.is_empty() {
            found.lasting = lasting(&spans, (&values, &weights), &steps, confidence);
            return found;
        }
        let is_followed =
            |step: &&&Step| steps.last().is_some_and(|last| last.left > step.left && present(&values, last) >= least);
        found.bursts.extend(short.iter().filter(is_followed).map(|step| step.left..step.right));
        for step in short {
            values[step.left..step.right].fill(None);
        }
    }
}

fn present(values: &[Option<f64>], step: &Step) -> usize {
    values[step.left..step.right].iter().flatten().count()
}

/// The changes between phases that noise doesn't explain.
fn lasting(
    spans: &[CountedSpan],
    (values, weights): (&[Option<f64>], &[Option<f64>]),
    steps: &[Step],
    confidence: Confidence,
) -> Vec<LastingChange> {
    if steps.len() < 2 {
        return Vec::new();
    }
    let changes = changes(values, Some(weights), steps, StepMethod::Best, confidence);
    let phases = steps.windows(2).zip(changes);
    let is_clear = |pair: &[Step], change: &LevelChange| {
        let [before, after] =
            [&pair[0], &pair[1]].map(|step| seen(&spans[step.left..step.right], &values[step.left..step.right]));
        change.chance <= CHANCE
            && change.by.abs() >= LEAST_CHANGE * pair[0].value.abs()
            && poisson(before, after) >= CLEAR_OF_POISSON
    };
    let lasting = |(pair, change): (&[Step], LevelChange)| {
        let spans_of = (present(values, &pair[0]), present(values, &pair[1]));
        let at = spans[pair[1].left].begin;
        is_clear(pair, &change).then(|| LastingChange { at, from: pair[0].value, change, spans: spans_of })
    };
    phases.filter_map(lasting).collect()
}

/// What was counted in the spans whose values are there, and in how many seconds.
fn seen(spans: &[CountedSpan], values: &[Option<f64>]) -> (f64, f64) {
    let there = spans.iter().zip(values).filter(|(_, value)| value.is_some());
    there.fold((0.0, 0.0), |(count, seconds), (span, _)| (count + span.seen, seconds + span.seen_seconds))
}

/// Twice the logarithm of how much likelier two counts are with a rate each than with one rate, if both are Poisson.
///
/// Few counts may differ much by chance, and look as if they had no noise where nearly all values are 0.
fn poisson(before: (f64, f64), after: (f64, f64)) -> f64 {
    let rate = (before.0 + after.0) / (before.1 + after.1);
    let part = |(count, seconds): (f64, f64)| if count > 0.0 { count * (count / (rate * seconds)).ln() } else { 0.0 };
    2.0 * (part(before) + part(after))
}

/// How exact each value is: the inverse of its deviation. What multiplexing left unseen is known; the program's own
/// noise is taken to be as large as that mostly is, and smaller in longer times.
fn weights(spans: &[CountedSpan]) -> Vec<Option<f64>> {
    let there = || spans.iter().filter(|span| span.seconds > 0.0);
    let unseen = |span: &CountedSpan| span.variance / span.seconds.powi(2);
    let usual_seconds = median(there().map(|span| span.seconds).collect()).unwrap_or_default();
    let own = median(there().map(unseen).collect()).filter(|&own| own > 0.0).unwrap_or(1.0);
    let weight = |span: &CountedSpan| (unseen(span) + own * usual_seconds / span.seconds).sqrt().recip();
    spans.iter().map(|span| (span.seconds > 0.0).then(|| weight(span))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: usize = 5;

    /// A second each, with some noise.
    fn window(levels: &[(usize, f64)]) -> SpanWindow {
        let values = levels.iter().flat_map(|&(count, level)| std::iter::repeat_n(level, count));
        let spans = values.enumerate().map(|(at, level)| {
            let (begin, end) = (WallNs(at as u64), WallNs(at as u64 + 1));
            let count = level + (at * 7 % 5) as f64;
            CountedSpan { begin, end, count, seconds: 1.0, variance: 0.0, seen: count, seen_seconds: 1.0 }
        });
        let mut window = SpanWindow::default();
        window.spans.extend(spans);
        window
    }

    /// When changes were, and where bursts begin and end.
    fn found(window: &SpanWindow) -> (Vec<u64>, Vec<(usize, usize)>) {
        let found = look(window, LEAST, Confidence::DEFAULT);
        let bursts = found.bursts.iter().map(|burst| (burst.start, burst.end)).collect();
        (found.lasting.iter().map(|change| change.at.0).collect(), bursts)
    }

    #[test]
    fn a_change_that_lasts_is_found_with_its_levels() {
        let found = look(&window(&[(30, 1000.0), (20, 800.0)]), LEAST, Confidence::DEFAULT);
        let [change] = found.lasting[..] else { panic!("{found:?}") };
        assert_eq!((change.at, change.from), (WallNs(30), 1002.0));
        assert!((change.change.by + 200.0).abs() < 1e-9 && change.change.chance <= CHANCE);
    }

    #[test]
    fn a_burst_is_left_out_once_others_followed() {
        assert_eq!(found(&window(&[(30, 1000.0), (4, 2000.0)])), (vec![], vec![]), "it may last");
        assert_eq!(found(&window(&[(30, 1000.0), (4, 2000.0), (10, 1000.0)])), (vec![], vec![(30, 34)]));
        assert_eq!(found(&window(&[(4, 2000.0), (30, 1000.0)])), (vec![], vec![(0, 4)]), "the start");
        // What lies between two levels is no phase, and the second begins after it.
        assert_eq!(found(&window(&[(30, 1000.0), (4, 2000.0), (20, 700.0)])), (vec![34], vec![(30, 34)]));
    }

    #[test]
    fn small_changes_and_small_counts_are_not_told() {
        assert_eq!(found(&window(&[(60, 1000.0), (60, 1040.0)])).0, [] as [u64; 0]);
        let few = |rate: f64| {
            let mut window = window(&[(40, 0.0), (40, 0.0)]);
            for (at, span) in window.spans.iter_mut().enumerate() {
                span.count = if at >= 40 && at % 5 == 0 { rate } else { 0.0 };
                span.seen = span.count;
            }
            found(&window).0
        };
        assert_eq!(few(1.0), [] as [u64; 0]);
        assert_eq!(found(&window(&[])), (vec![], vec![]));
    }

    #[test]
    fn poisson_counts_by_hand() {
        // 10 in 10 s and 30 in 10 s: one rate is 2/s, and 2 (10 ln 0.5 + 30 ln 1.5) = 10.46.
        assert!((poisson((10.0, 10.0), (30.0, 10.0)) - 10.465).abs() < 1e-3);
        assert_eq!(poisson((7.0, 10.0), (7.0, 10.0)), 0.0);
        assert!((poisson((0.0, 10.0), (5.0, 10.0)) - 10.0 * 2f64.ln()).abs() < 1e-9);
        assert!(poisson((0.0, 10.0), (0.0, 10.0)) < CLEAR_OF_POISSON);
    }

    #[test]
    fn weights_are_the_inverse_of_deviations() {
        let exact = |seconds: f64| CountedSpan { seconds, ..CountedSpan::default() };
        assert_eq!(weights(&[exact(1.0), exact(4.0), exact(0.0)]), [Some(0.4_f64.sqrt()), Some(1.6_f64.sqrt()), None]);
        let unseen = |variance: f64| CountedSpan { variance, ..exact(1.0) };
        // The usual variance is 1: 1/sqrt(1 + 1) and 1/sqrt(7 + 1).
        let weights = weights(&[unseen(1.0), unseen(1.0), unseen(7.0)]);
        assert_eq!(weights, [2.0, 2.0, 8.0].map(|variance: f64| Some(variance.sqrt().recip())));
    }
}
