//! Adds up what windows say to the counts of intervals.

use super::SWITCHES;
use super::aliasing::Factors;
use super::blocks::WHOLE;
use super::widths::Sides;
use crate::rates::{Confidence, Delta, Error, Uncertain};

/// What windows add up to in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowSum {
    pub(super) counted: Delta,
    pub(super) estimate: f64,
    /// The square of the half width.
    pub(super) square: f64,
    /// The half width in the last window.
    pub(super) last: f64,
    /// All half widths.
    pub(super) widths: f64,
    /// How wide all intervals of a run are together, as they were shown.
    pub(super) reach: f64,
    pub(super) sides: Sides,
    pub(super) known: bool,
}

impl Default for WindowSum {
    fn default() -> Self {
        Self {
            counted: Delta::default(),
            estimate: 0.0,
            square: 0.0,
            last: 0.0,
            widths: 0.0,
            reach: 0.0,
            sides: Sides::ALIKE,
            known: false,
        }
    }
}

impl WindowSum {
    /// Adds a window. Errors of neighbours are alike by about a half.
    pub(super) fn add(&mut self, estimate: f64, half_width: f64) {
        self.estimate += estimate;
        self.square += half_width * (half_width + self.last);
        self.last = half_width;
        self.widths += half_width;
        self.known = true;
    }

    /// The count of an interval; `None` if nothing is known of it.
    pub(super) fn estimate(&self, confidence: Confidence, aliasing: Option<Factors>) -> Option<Uncertain> {
        match self.counted.run_ratio() {
            ratio if ratio >= WHOLE => Some(Uncertain::exact(self.counted.count as f64)),
            _ if !self.known => None,
            _ => {
                let side = |factor: f64| at(confidence, (factor * self.square.sqrt()).hypot(SWITCHES * self.estimate));
                let above = up_to_whole(self.estimate, side(self.sides.above));
                let error = Error::Within { below: side(self.sides.below), above };
                let error = widened(self.estimate, error, aliasing);
                Some(within(self.estimate, error, self.counted))
            }
        }
    }
}

/// How far above an estimate its interval ends: at the next whole count, as counts are whole. What is estimated to
/// occur a tenth of a time may occur once; of what is estimated not to occur nothing says so.
fn up_to_whole(estimate: f64, above: f64) -> f64 {
    if estimate > 0.0 { ((estimate + above).ceil() - estimate).max(above) } else { above }
}

/// Half the width of a 95 % interval, made that of an interval at another level as a normal variable's is.
pub(super) fn at(confidence: Confidence, half_width: f64) -> f64 {
    half_width * confidence.normal() / Confidence::DEFAULT.normal()
}

/// An estimate of a count that is at least what was counted.
pub(super) fn within(value: f64, error: Error, counted: Delta) -> Uncertain {
    Uncertain { value, error }.at_least(counted.count as f64)
}

/// An error, or more where counts may be off by factors.
pub(super) fn widened(value: f64, error: Error, factors: Option<Factors>) -> Error {
    match (error, factors) {
        (Error::Within { below, above }, Some(Factors { least, most })) => {
            Error::Within { below: below.max(value * (1.0 - least)), above: above.max(value * (most - 1.0)) }
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::up_to_whole;

    #[test]
    fn intervals_end_at_whole_counts_by_hand() {
        // 0.1 and up to 0.5 more: it may occur once. 2.5 to 3.5: four times. 2 to 3: three times.
        for (estimate, above, end) in [(0.1, 0.5, 1.0), (2.5, 1.0, 4.0), (2.0, 1.0, 3.0), (7.0, 0.0, 7.0)] {
            assert!((estimate + up_to_whole(estimate, above) - end).abs() < 1e-9, "{estimate} {above}");
        }
        // Nothing says that it occurs.
        assert_eq!(up_to_whole(0.0, 0.3), 0.3);
    }

    proptest! {
        #[test]
        fn whole_counts_are_less_than_one_farther(estimate in 0.0..1e9f64, above in 0.0..1e9f64) {
            let end = up_to_whole(estimate, above);
            prop_assert!((above..=above + 1.0 + 1e-6).contains(&end), "{end}");
        }
    }
}
