//! Measures how much the means of longer and longer times differ from one to the next, as long as no change was told.
//!
//! Noise that lasts for seconds looks like short phases. A change counts only if it is larger than what was seen before
//! from one second to the next, and from each half a minute to the next.

use std::collections::VecDeque;

use super::series::{CountedSpan, MERGED};
use crate::units::WallNs;

/// How many lengths there are, each some times as long as the one before.
const LENGTHS: usize = 5;

/// So many of the newest differences of each length count.
const KEPT: usize = 60;

/// So many of the largest differences count as the next one, but at most a quarter of all, rounded up: they are the
/// start of a program, or a change that isn't told yet, which may lie in two spans.
const LEFT_OUT: usize = 2;

/// Shorter times say little of noise that lasts, in nanoseconds.
const FIRST_LENGTH: u64 = 700_000_000;

/// A change exceeds so many standard errors of a normal number.
const CLEAR: f64 = 6.5;

/// From so many differences on, longer times count.
const ENOUGH: usize = 3;

/// How means of spans of each length differ.
#[derive(Clone, Debug, Default)]
pub(super) struct SpanNoise {
    lengths: [LengthNoise; LENGTHS],
}

/// How means of spans of one length differ.
#[derive(Clone, Debug, Default)]
struct LengthNoise {
    /// The one that isn't complete, and how many it has.
    open: (CountedSpan, usize),
    last: Option<CountedSpan>,
    /// When each difference ended, and its square over that of the mean.
    differences: VecDeque<(WallNs, f64)>,
}

/// A level, and how many values it was computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedLevel {
    pub(super) level: f64,
    pub(super) values: usize,
}

impl SpanNoise {
    /// Takes the next value.
    pub(super) fn push(&mut self, span: CountedSpan) {
        let mut new = span;
        for length in &mut self.lengths {
            length.push(new);
            let (open, parts) = &mut length.open;
            open.add(&new);
            *parts += 1;
            if *parts < MERGED {
                return;
            }
            (new, length.open) = (*open, (CountedSpan::default(), 0));
        }
    }

    /// Forgets how the level changed then: that is no noise.
    pub(super) fn forget_change(&mut self, at: WallNs) {
        for length in &mut self.lengths {
            length.differences.retain(|(end, _)| *end <= at);
            (length.open, length.last) = ((CountedSpan::default(), 0), None);
        }
    }

    /// Whether a change is larger than what means of each length differ by.
    pub(super) fn is_exceeded(&self, before: CountedLevel, after: CountedLevel) -> bool {
        let square = (after.level - before.level).powi(2);
        let is_long = |length: &&LengthNoise| length.last.is_some_and(|last| (last.end - last.begin).0 >= FIRST_LENGTH);
        let first = self.lengths.iter().position(|length| is_long(&length)).unwrap_or(0);
        self.lengths.iter().enumerate().skip(first).all(|(at, length)| {
            let merged = MERGED.pow(at as u32) as f64;
            let Some((noise, count)) = length.noise() else { return at > first };
            let of_mean = |side: CountedLevel| side.level.powi(2) * noise * (merged / side.values as f64).min(1.0);
            let variance = of_mean(before) + of_mean(after);
            let least = if at == first { clear_of(count) } else { CLEAR.powi(2) };
            (at > first && count < ENOUGH) || square >= least * variance
        })
    }
}

impl LengthNoise {
    fn push(&mut self, span: CountedSpan) {
        let before = self.last.replace(span);
        let values = before.and_then(|before| before.value()).zip(span.value());
        let Some((before, after)) = values.filter(|(before, after)| before + after > 0.0) else { return };
        if self.differences.len() == KEPT {
            self.differences.pop_front();
        }
        self.differences.push_back((span.end, ((after - before) / (0.5 * (after + before))).powi(2)));
    }

    /// The variance of a mean as a part of the square of the level, by differences of neighbours, and how many there
    /// are.
    fn noise(&self) -> Option<(f64, usize)> {
        let mut squares: Vec<f64> = self.differences.iter().map(|(_, square)| *square).collect();
        squares.sort_unstable_by(f64::total_cmp);
        let kept = squares.len() - LEFT_OUT.min(squares.len().div_ceil(4));
        let most = *squares[..kept].last()?;
        let sum: f64 = squares.iter().map(|square| square.min(most)).sum();
        Some((0.5 * sum / squares.len() as f64, kept))
    }
}

/// The square of Student's t that is as rare as a normal number [`CLEAR`], for a variance of so many differences
/// (Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", 1959).
fn clear_of(differences: usize) -> f64 {
    let degrees = differences.max(1) as f64;
    let square = (CLEAR / (1.0 - 0.75 / degrees)).powi(2);
    degrees * (square / degrees).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of a second each.
    fn noise(values: impl IntoIterator<Item = f64>) -> SpanNoise {
        let mut noise = SpanNoise::default();
        for (second, count) in (0..).zip(values) {
            let (begin, end) = (WallNs(second * 1_000_000_000), WallNs((second + 1) * 1_000_000_000));
            noise.push(CountedSpan { begin, end, count, seconds: 1.0, ..CountedSpan::default() });
        }
        noise
    }

    fn level(level: f64) -> CountedLevel {
        CountedLevel { level, values: 10 }
    }

    #[test]
    fn differences_by_hand() {
        // Means of 10 and 12, again and again: (2/11)² / 2, of which the two largest count as the next.
        let noise = noise((0..40).map(|at| if at % 2 == 0 { 10.0 } else { 12.0 }));
        let (variance, count) = noise.lengths[0].noise().unwrap_or_default();
        assert!((variance - 2.0 / 121.0).abs() < 1e-12 && count == 37, "{variance} {count}");
        // Means of four are equal.
        assert_eq!(noise.lengths[1].noise(), Some((0.0, 7)));
        // The only difference may be a change.
        assert_eq!((noise.lengths[2].differences.len(), noise.lengths[2].noise()), (1, None));
    }

    #[test]
    fn a_change_has_to_exceed_what_was_seen_from_one_time_to_the_next() {
        let short = noise((0..60).map(|at| 100.0 + f64::from(at * 7 % 5)));
        assert!(short.is_exceeded(level(102.0), level(120.0)) && !short.is_exceeded(level(102.0), level(104.0)));
        // As much from one second to the next, but up and down for half a minute.
        let long = noise((0..240).map(|at| 100.0 + f64::from(at * 7 % 5) + if at / 32 % 2 == 0 { 0.0 } else { 20.0 }));
        assert!(!long.is_exceeded(level(102.0), level(120.0)) && long.is_exceeded(level(102.0), level(400.0)));
        assert!(!noise([]).is_exceeded(level(1.0), level(9.0)), "nothing was seen");
    }

    #[test]
    fn what_was_told_is_no_noise() {
        let mut noise = noise((0..60).map(|at| f64::from(at * 7 % 5) + if at < 40 { 100.0 } else { 200.0 }));
        noise.forget_change(WallNs(40_000_000_000));
        assert_eq!(noise.lengths[0].noise().map(|(_, count)| count), Some(37));
        assert!(noise.is_exceeded(level(102.0), level(120.0)));
    }

    #[test]
    fn few_differences_ask_for_more() {
        // 6.5 for a normal number; of one difference, the variance says nearly nothing.
        assert!((clear_of(1_000_000).sqrt() - CLEAR).abs() < 1e-3);
        assert!((1..60).all(|count| clear_of(count + 1) < clear_of(count)) && clear_of(1) > 1e100);
    }
}
