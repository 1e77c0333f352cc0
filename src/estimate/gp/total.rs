//! Computes the error of an event's scaled total, and whether the event may have stopped.

/// How the rates of an event's slices differ.
///
/// Slices come in the order of time and evenly, so that differences between neighbours say how far a
/// systematic sample is off: its variance is half their mean square, over the number of slices
/// (Cochran, Sampling Techniques, 8.5), times the part of the time that wasn't counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SliceSpread {
    raw: f64,
    running: f64,
    last: Option<f64>,
    squares: f64,
    turns: f64,
    /// Slices without a count since the last that had one.
    quiet: i32,
    /// The most that there were before an event went on.
    usual: i32,
}

/// The half width of 95 % intervals in standard deviations: more than the normal 1.96, as bursts
/// that fell between slices are in no difference.
const HALF_WIDTH: f64 = 2.5;

/// After so many quiet slices an event may have stopped, and for each more this much of the belief is left
/// that it hasn't.
const MAY_HAVE_STOPPED: i32 = 2;
const STOPPED: f64 = 0.7;

impl SliceSpread {
    /// Takes a round's count and the time in it that the event was on a counter.
    pub(crate) fn push(&mut self, raw: f64, running: f64) {
        if running > 0.0 {
            self.raw += raw;
            self.running += running;
        } else if self.running > 0.0 {
            let rate = self.raw / self.running;
            if rate > 0.0 {
                (self.usual, self.quiet) = (self.usual.max(self.quiet), 0);
            } else {
                self.quiet = self.quiet.saturating_add(1);
            }
            if let Some(before) = self.last {
                self.squares += 0.5 * (rate - before).powi(2);
                self.turns += 1.0;
            }
            (self.last, self.raw, self.running) = (Some(rate), 0.0, 0.0);
        }
    }

    /// How far it is believed that the event goes on as before: after more slices without a count than ever before, and
    /// two at least, it may have stopped, which a process that knows rates only can't say.
    pub(crate) fn goes_on(&self) -> f64 {
        STOPPED.powi((self.quiet - self.usual.max(MAY_HAVE_STOPPED)).max(0))
    }

    /// The half width of the interval of a scaled total over `enabled`, in the unit of `running`;
    /// `None` before there are two slices.
    pub(crate) fn half_width(&self, enabled: f64, running: f64) -> Option<f64> {
        let unseen = 1.0 - running / enabled;
        (self.turns > 0.0).then(|| {
            let variance = self.squares / self.turns / (self.turns + 1.0) * unseen;
            HALF_WIDTH * variance.sqrt() * enabled
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_was_quiet_for_long_may_have_stopped() {
        let mut turns = SliceSpread::default();
        assert_eq!(turns.goes_on(), 1.0);
        let mut turn = |raw: f64| {
            turns.push(raw, 4.0);
            turns.push(0.0, 0.0);
            turns.goes_on()
        };
        assert_eq!([5.0, 0.0, 0.0].map(&mut turn), [1.0; 3]);
        assert!((turn(0.0) - 0.7).abs() < 1e-12 && (turn(0.0) - 0.49).abs() < 1e-12);
        assert_eq!(turn(1.0), 1.0);
        // It was quiet for four slices and went on.
        assert_eq!([0.0; 4].map(&mut turn), [1.0; 4]);
        assert!((turn(0.0) - 0.7).abs() < 1e-12);
    }
}
