//! Computes the error of an event's scaled total, and whether the event may have stopped.

use crate::rates::Confidence;

/// How the rates of an event's turns on the counters differ.
///
/// Turns come in the order of time and evenly, so that differences between neighbours say how far a
/// systematic sample is off: its variance is half their mean square, over the number of turns
/// (Cochran, Sampling Techniques, 8.5), times the part of the time that wasn't counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnSpread {
    raw: f64,
    running: f64,
    /// How long ago the turn began.
    length: f64,
    last: Option<f64>,
    squares: f64,
    differences: f64,
    /// The time on a counter in all turns that ended.
    ended: f64,
    turns: f64,
    /// How many of them had no count.
    empty: f64,
    /// Turns without a count since the last that had one.
    quiet: i32,
    /// The most that there were before an event went on.
    usual: i32,
}

/// The half width of 95 % intervals over that of Student's t: bursts that fell between turns are in no difference.
const HALF_WIDTH: f64 = 1.25;
/// A turn ends after so many changes of what is counted, even if the event stays on a counter of one thread or another:
/// one stays for as many as there are counters.
const LONGEST: f64 = 5.5;

/// After so many quiet turns an event may have stopped, and for each more this much of the belief is left
/// that it hasn't.
const MAY_HAVE_STOPPED: i32 = 2;
const STOPPED: f64 = 0.7;

impl TurnSpread {
    /// Takes a round's count, the time in it that the event was on a counter, and its length; the
    /// counters change what they count after `rotation_ms`.
    pub(crate) fn push(&mut self, raw: f64, running: f64, length: f64, rotation_ms: f64) {
        if running > 0.0 {
            self.raw += raw;
            self.running += running;
            self.length += length;
        }
        if self.running > 0.0 && (running == 0.0 || self.length >= LONGEST * rotation_ms) {
            self.end();
        }
    }

    fn end(&mut self) {
        let rate = self.raw / self.running;
        if rate > 0.0 {
            (self.usual, self.quiet) = (self.usual.max(self.quiet), 0);
        } else {
            self.empty += 1.0;
            self.quiet = self.quiet.saturating_add(1);
        }
        if let Some(before) = self.last {
            self.squares += 0.5 * (rate - before).powi(2);
            self.differences += 1.0;
        }
        self.ended += self.running;
        self.turns += 1.0;
        (self.last, self.raw, self.running, self.length) = (Some(rate), 0.0, 0.0, 0.0);
    }

    /// How many turns ended.
    pub(crate) fn turns(&self) -> f64 {
        self.turns
    }

    /// The part of turns that had no count.
    pub(crate) fn empty(&self) -> f64 {
        self.empty / self.turns.max(1.0)
    }

    /// The mean time on a counter of a turn; `None` before one ended.
    pub(crate) fn turn_ms(&self) -> Option<f64> {
        (self.turns > 0.0).then(|| self.ended / self.turns)
    }

    /// How far it is believed that the event goes on as before: after more slices without a count than ever before, and
    /// two at least, it may have stopped, which a process that knows rates only can't say.
    pub(crate) fn goes_on(&self) -> f64 {
        STOPPED.powi((self.quiet - self.usual.max(MAY_HAVE_STOPPED)).max(0))
    }

    /// The half width of the interval of a scaled total over `enabled`, in the unit of `running`;
    /// `None` before there are two turns.
    pub(crate) fn half_width(&self, enabled: f64, running: f64) -> Option<f64> {
        let unseen = 1.0 - running / enabled;
        (self.differences > 0.0).then(|| {
            let variance = self.squares / self.differences / (self.differences + 1.0) * unseen;
            HALF_WIDTH * Confidence::DEFAULT.student(self.differences as u64 + 1) * variance.sqrt() * enabled
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_quiet_for_long_may_have_stopped() {
        let mut turns = TurnSpread::default();
        assert_eq!(turns.goes_on(), 1.0);
        let mut turn = |raw: f64| {
            turns.push(raw, 4.0, 4.0, 4.0);
            turns.push(0.0, 0.0, 4.0, 4.0);
            turns.goes_on()
        };
        assert_eq!([5.0, 0.0, 0.0].map(&mut turn), [1.0; 3]);
        assert!((turn(0.0) - 0.7).abs() < 1e-12 && (turn(0.0) - 0.49).abs() < 1e-12);
        assert_eq!(turn(1.0), 1.0);
        // It was quiet for four slices and went on.
        assert_eq!([0.0; 4].map(&mut turn), [1.0; 4]);
        assert!((turn(0.0) - 0.7).abs() < 1e-12);
    }

    #[test]
    fn a_turn_ends_in_time_where_the_event_is_never_off_by_hand() {
        // Half of each round of 4 ms: turns of six rounds, 12 ms on a counter, with 1 and 3 a millisecond in turn.
        let mut turns = TurnSpread::default();
        for round in 0..24 {
            turns.push(if round / 6 % 2 == 0 { 2.0 } else { 6.0 }, 2.0, 4.0, 4.0);
        }
        assert_eq!((turns.turns(), turns.turn_ms()), (4.0, Some(12.0)));
        // Three differences with a variance of 2 each, over four turns, of which half wasn't seen; four degrees.
        let expected = HALF_WIDTH * Confidence::DEFAULT.student(4) * (2.0f64 / 4.0 * 0.5).sqrt() * 96.0;
        let found = turns.half_width(96.0, 48.0);
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9), "{found:?} {expected}");
    }
}
