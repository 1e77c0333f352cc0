//! Rounds in, the error of an event's scaled total out.

/// How the rates of an event's turns on a counter differ.
///
/// Turns come in the order of time and evenly, so that differences between neighbours say how far a
/// systematic sample is off: its variance is half their mean square, over the number of turns
/// (Cochran, Sampling Techniques, 8.5), times the part of the time that wasn't counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    raw: f64,
    running: f64,
    last: Option<f64>,
    squares: f64,
    turns: f64,
}

/// The half width of 95 % intervals in standard deviations: more than the normal 1.96, as bursts
/// that fell between turns are in no difference.
const HALF_WIDTH: f64 = 2.5;

impl Turns {
    /// Takes a round's count and the time in it that the event was on a counter.
    pub(crate) fn push(&mut self, raw: f64, running: f64) {
        if running > 0.0 {
            self.raw += raw;
            self.running += running;
        } else if self.running > 0.0 {
            let rate = self.raw / self.running;
            if let Some(before) = self.last {
                self.squares += 0.5 * (rate - before).powi(2);
                self.turns += 1.0;
            }
            (self.last, self.raw, self.running) = (Some(rate), 0.0, 0.0);
        }
    }

    /// The half width of the interval of a scaled total over `enabled`, in the unit of `running`;
    /// `None` before there are two turns.
    pub(crate) fn half_width(&self, enabled: f64, running: f64) -> Option<f64> {
        let unseen = 1.0 - running / enabled;
        (self.turns > 0.0).then(|| {
            let variance = self.squares / self.turns / (self.turns + 1.0) * unseen;
            HALF_WIDTH * variance.sqrt() * enabled
        })
    }
}
