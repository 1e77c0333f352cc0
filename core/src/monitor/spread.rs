//! Keeps how the rate of an event, or of a sum, varies between intervals.

use super::{Measure, Point};
use crate::rates::{Moments, Uncertain};

/// The least and the most of some numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extremes {
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// The spread of the intervals so far, in each measure that has intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalSpread([(Measure, Spread); 3]);

#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    moments: Moments,
    raw: Option<Extremes>,
    corrected: Option<Extremes>,
}

impl Default for IntervalSpread {
    fn default() -> Self {
        let measures = [Measure::PerCpuSecond, Measure::PerSecond, Measure::PerKiloInstruction];
        Self(measures.map(|measure| (measure, Spread::default())))
    }
}

impl IntervalSpread {
    /// Takes an interval, which `point` gives in each measure.
    pub(super) fn add(&mut self, point: impl Fn(Measure) -> Option<Point>) {
        for (measure, spread) in &mut self.0 {
            if let Some(point) = point(*measure) {
                spread.add(*measure, &point);
            }
        }
    }

    /// The variance of the scaled rate; `None` of fewer than two intervals, and for totals.
    pub(super) fn variance(&self, measure: Measure) -> Option<f64> {
        self.of(measure)?.moments.variance()
    }

    /// The extremes of the scaled rate, and of what the estimator makes of it; none for totals.
    pub(super) fn extremes(&self, measure: Measure) -> (Option<Extremes>, Option<Extremes>) {
        self.of(measure).map_or((None, None), |spread| (spread.raw, spread.corrected))
    }

    fn of(&self, measure: Measure) -> Option<&Spread> {
        self.0.iter().find(|(of, _)| *of == measure).map(|(_, spread)| spread)
    }
}

impl Spread {
    fn add(&mut self, measure: Measure, point: &Point) {
        widen(&mut self.raw, point.raw);
        widen(&mut self.corrected, point.corrected);
        let running = point.counted.running.as_ms();
        let weight = if measure == Measure::PerSecond { point.length.as_ms() } else { running };
        point.raw.into_iter().for_each(|raw| self.moments.add(raw.value, weight));
    }
}

fn widen(extremes: &mut Option<Extremes>, number: Option<Uncertain>) {
    let Some(Uncertain { value, .. }) = number.filter(|number| !number.value.is_nan()) else { return };
    let before = extremes.unwrap_or(Extremes { least: value, most: value });
    *extremes = Some(Extremes { least: before.least.min(value), most: before.most.max(value) });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::units::WallNs;

    /// An interval of a second with this rate.
    fn second(rate: Option<f64>) -> Point {
        Point { length: WallNs(1_000_000_000), raw: rate.map(Uncertain::exact), ..Point::default() }
    }

    fn spread(rates: &[Option<f64>]) -> IntervalSpread {
        let mut spread = IntervalSpread::default();
        let is_known = |measure| measure == Measure::PerSecond;
        rates.iter().for_each(|rate| spread.add(|measure| is_known(measure).then(|| second(*rate))));
        spread
    }

    #[test]
    fn three_seconds_by_hand() {
        let spread = spread(&[Some(2.0), None, Some(4.0), Some(6.0)]);
        assert_eq!(spread.variance(Measure::PerSecond), Some(4.0));
        assert_eq!(spread.extremes(Measure::PerSecond), (Some(Extremes { least: 2.0, most: 6.0 }), None));
        assert_eq!(spread.variance(Measure::Total), None);
        assert_eq!(spread.extremes(Measure::Total), (None, None));
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(spread(&[None]).variance(Measure::PerSecond), None);
        assert_eq!(spread(&[None]).extremes(Measure::PerSecond), (None, None));
        assert_eq!(spread(&[Some(f64::NAN)]).extremes(Measure::PerSecond), (None, None));
    }

    proptest! {
        #[test]
        fn extremes_are_those_of_all(rates in prop::collection::vec(-1e9..1e9_f64, 1..40)) {
            let spread = spread(&rates.iter().copied().map(Some).collect::<Vec<_>>());
            let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
            let most = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(spread.extremes(Measure::PerSecond).0, Some(Extremes { least, most }));
        }
    }
}
