//! Estimates what each event counted in a run: between what its stays say and what windows add up to.

use super::blocks::{SEVERAL, WHOLE};
use super::interval::{at, widened, within};
use super::regression::{ALWAYS_COUNTED, MOST_REGRESSORS};
use super::stays::{FEW_STAYS, StaySpread, StayTotal};
use super::{EventSpec, Gp, longest};
use crate::rates::{Confidence, Delta, Error, Uncertain};
use crate::units::CpuNs;

/// What an event counted in the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The count with its interval.
    pub count: Uncertain,
    /// The events that are always counted which moved it from the scaled count, and by how many counts each.
    pub moved_by: Vec<(usize, f64)>,
}

/// A total that windows add up to.
#[derive(Clone, Copy, Debug)]
struct WindowTotal {
    value: f64,
    half_width: f64,
    /// The sum of the half widths of intervals: no total is less sure.
    widths: f64,
    /// How wide they are together.
    reach: f64,
}

/// A total between what stays say and what windows add up to.
#[derive(Clone, Copy, Debug)]
struct MixedTotal {
    value: f64,
    half_width: f64,
    /// How far it may be below.
    below: f64,
    /// How wide its interval may be in bursts; unknown where windows say nothing of all of the run.
    widest: Option<f64>,
    /// How much of it is what stays say.
    part_of_stays: f64,
}

/// Where more stays hold no count, totals are scaled counts.
pub(super) const SELDOM: f64 = 0.1;
/// So are they where intervals are shorter on average: more windows than neighbours have errors in common.
const SHORTEST_MS: f64 = 50.0;
/// The sum of windows is weighted as if its interval were this many times as wide, because all windows share the error
/// of the level. At 1 the totals of one program in twelve are worse than scaled ones.
const WINDOWS_DOUBT: f64 = 2.3;
/// A half width counts for at most so many times the total where the interval is even on a log scale.
const MOST_RELATIVE: f64 = 1.5;
/// An event that had no stay in so long may never have one.
const LONGEST_WAIT_MS: f64 = 2000.0;

impl MixedTotal {
    /// How far off it may be, of an event of which this was counted. Few stays rather miss what is much than see it, so
    /// that the interval is as long on a log scale above as below, and no shorter than what a Poisson process leaves
    /// unseen. In bursts it is no wider than all intervals together, but for half of these above it.
    fn error(&self, run: Delta, confidence: Confidence) -> Error {
        let [half_width, below] = [self.half_width, self.below].map(|side| at(confidence, side));
        if !below.is_finite() {
            return Error::Unknown;
        }
        let relative = (half_width / self.value.max(f64::MIN_POSITIVE)).min(MOST_RELATIVE);
        let above = half_width.max(self.value * relative.exp_m1()).max(run.most_unseen_above(confidence.normal()));
        // Nothing is below what was counted.
        let down = below.min((self.value - run.count as f64).max(0.0));
        let widest = self.widest.unwrap_or(f64::INFINITY);
        Error::Within { below, above: above.min((widest - down).max(0.5 * widest)) }
    }
}

impl Gp {
    /// What each event counted in the run so far: between the scaled count, which is unbiased over many stays, with the
    /// error of a systematic sample, and the sum of the windows' estimates, which is nearer where there were few stays,
    /// by how sure both are. `None` for an event that has never been counted.
    pub fn totals(&self, confidence: Confidence) -> Vec<Option<Total>> {
        let aliasing = self.aliasing();
        let regressors = self.of_regressors(|regressor| self.regressor_rate(regressor));
        let total = |event: usize| match self.counted.run[event] {
            run if run.running == CpuNs(0) => None,
            run if run.run_ratio() >= WHOLE => {
                Some(Total { count: Uncertain::exact(run.count as f64), moved_by: Vec::new() })
            }
            run => {
                let is_steady = self.stays[event].quiet.empty() < SELDOM && !self.empty.is_most();
                let regressors = if is_steady { regressors } else { [0.0; MOST_REGRESSORS] };
                let of_stays = self.stays[event].total(run.enabled.as_ms(), regressors);
                let mixed = self.mixed(event, &of_stays, is_steady);
                let value = mixed.value;
                let error = widened(value, mixed.error(run, confidence), aliasing);
                let moves = self.regressors.events.iter().zip(of_stays.added);
                let moves = moves.map(|(&regressor, added)| (regressor, mixed.part_of_stays * added));
                let moved_by = moves.filter(|&(_, counts)| counts != 0.0).collect();
                Some(Total { count: within(value, error, run), moved_by })
            }
        };
        (0..self.events.len()).map(total).collect()
    }

    /// The total of an event that was counted for a part of the time; between both, where windows are as usual.
    fn mixed(&self, event: usize, of_stays: &StayTotal, is_steady: bool) -> MixedTotal {
        // What a Poisson process of the same rate leaves unseen is the least, of an event that was never seen as well.
        let least = Confidence::DEFAULT.normal() * self.counted.run[event].unseen_variance().sqrt();
        let half_width = of_stays.half_width.map(|half_width| half_width.max(least));
        let windows = self.total_of_windows(event);
        let alone = |value: f64, half_width: f64, part_of_stays: f64| MixedTotal {
            value,
            half_width,
            below: half_width,
            widest: windows.filter(|_| !is_steady).map(|windows| windows.reach),
            part_of_stays,
        };
        match (half_width, windows) {
            (Some(half_width), Some(windows)) if self.is_usual() => {
                // In bursts windows may all be off by what they say.
                let doubted = if is_steady { WINDOWS_DOUBT * windows.half_width } else { windows.widths };
                let part = half_width.powi(2) / (half_width.powi(2) + doubted.powi(2)).max(f64::MIN_POSITIVE);
                let moved = part * (windows.value - of_stays.value());
                let mixed = (half_width + part * (windows.half_width - half_width)).min(windows.widths);
                let total = alone(of_stays.value() + moved, mixed, 1.0 - part);
                // Nor do they know how much of a burst there was beside what was counted.
                if is_steady { total } else { MixedTotal { half_width, below: (half_width + moved).max(0.0), ..total } }
            }
            (Some(half_width), _) => alone(of_stays.value(), half_width, 1.0),
            (None, Some(windows)) => alone(windows.value, windows.half_width, 0.0),
            (None, None) => alone(of_stays.scaled, of_stays.scaled, 0.0),
        }
    }

    /// The sum of the windows' estimates, if there were some for all of the run.
    fn total_of_windows(&self, event: usize) -> Option<WindowTotal> {
        let windows = &self.counted.run_sums[event];
        let is_whole = windows.counted.enabled.0 as f64 >= WHOLE * self.counted.run[event].enabled.0 as f64;
        (windows.known && is_whole).then(|| WindowTotal {
            value: windows.estimate,
            // The fewer stays, the less is known of the level that all windows share.
            half_width: windows.square.sqrt() * (1.0 + FEW_STAYS / (1.0 + self.stays[event].stays())),
            widths: windows.widths,
            reach: windows.reach,
        })
    }

    /// Whether windows are as the process takes them to be: of one thread, in a rotation that isn't slow, not too
    /// short.
    fn is_usual(&self) -> bool {
        let is_alone = longest(&self.counted.run) < SEVERAL * self.times.elapsed && !self.is_slow();
        is_alone && self.times.elapsed >= SHORTEST_MS * self.intervals as f64
    }

    /// The mean rate of an event since it is a regressor, per millisecond; 0 if it wasn't counted all the time.
    fn regressor_rate(&self, regressor: usize) -> f64 {
        let (run, before) = (self.counted.run[regressor], self.regressors.before[regressor]);
        let time = (run.running - before.running).as_ms();
        if run.run_ratio() >= ALWAYS_COUNTED && time > 0.0 { (run.count - before.count) as f64 / time } else { 0.0 }
    }

    /// A number of each regressor.
    pub(super) fn of_regressors(&self, number: impl Fn(usize) -> f64) -> [f64; MOST_REGRESSORS] {
        std::array::from_fn(|place| self.regressors.events.get(place).map_or(0.0, |&regressor| number(regressor)))
    }

    /// Takes the events that were always counted so far as regressors, once each of the others had a stay and ended it:
    /// before that the first group to be counted was always counted, too.
    pub(super) fn look_for_regressors(&mut self) {
        let is_whole = |event: usize| self.counted.run[event].run_ratio() >= ALWAYS_COUNTED;
        let events = 0..self.events.len();
        let is_open = |event: usize| !is_whole(event) && self.stays[event].stays() < 1.0;
        if self.regressors.were_sought || self.times.elapsed < LONGEST_WAIT_MS && events.clone().any(is_open) {
            return;
        }
        self.regressors.were_sought = true;
        let found: Vec<usize> = events.filter(|&event| is_whole(event)).collect();
        if found.iter().any(|&event| !self.events[event].counted.is_always()) {
            self.regressors.events = ranked(found, &self.events);
            self.regressors.before.clone_from(&self.counted.run);
            self.stays.iter_mut().for_each(StaySpread::forget_regressors);
        }
    }
}

/// Events in the order in which they are taken as regressors: those on counters first, as what software counts says
/// little of others.
pub(super) fn ranked(mut found: Vec<usize>, events: &[EventSpec]) -> Vec<usize> {
    found.sort_by_key(|&event| events[event].counted);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How far below and above a total may be, of which so much was counted in a quarter of a second.
    fn sides(value: f64, half_width: f64, count: u64, widest: Option<f64>) -> (f64, f64) {
        let total = MixedTotal { value, half_width, below: half_width, widest, part_of_stays: 1.0 };
        let run = Delta { count, enabled: CpuNs(1_000_000_000), running: CpuNs(250_000_000) };
        match total.error(run, Confidence::DEFAULT) {
            Error::Within { below, above } => (below, above),
            Error::Exact | Error::Unknown => (f64::NAN, f64::NAN),
        }
    }

    #[test]
    fn totals_reach_farther_up_than_down_by_hand() {
        let is_near = |(below, above): (f64, f64), wanted: (f64, f64)| {
            (below - wanted.0).abs() < 0.01 * wanted.0.max(1.0) && (above - wanted.1).abs() < 0.01 * wanted.1
        };
        // 4000 (e^0.5 - 1); hardly farther where little is unknown; and no farther than e^1.5.
        assert!(is_near(sides(4000.0, 2000.0, 1000, None), (2000.0, 2594.9)));
        assert!(is_near(sides(4e6, 4e4, 1_000_000, None), (4e4, 40_200.7)));
        assert!(is_near(sides(4000.0, 8000.0, 1000, None), (8000.0, 13_926.8)));
        // Up to 3000 below, as 1000 were counted: 3500 of 6500 are left, and half of 4500.
        assert!(is_near(sides(4000.0, 8000.0, 1000, Some(6500.0)), (8000.0, 3500.0)));
        assert!(is_near(sides(4000.0, 8000.0, 1000, Some(4500.0)), (8000.0, 2250.0)));
        // Never seen: shape 3/8, and 0.375 (1 - 0.2963 + 1.0669)^3 = 2.08, four times.
        assert!(is_near(sides(0.0, 0.0, 0, None), (0.0, 8.32)), "{:?}", sides(0.0, 0.0, 0, None));
    }

    proptest! {
        #[test]
        fn no_total_reaches_less_far_up_than_down(value in 0.0..1e9f64, relative in 0.0..50.0f64) {
            let (below, above) = sides(value, relative * value, 0, None);
            prop_assert!(above.is_finite() && above >= below, "{below} {above}");
        }
    }
}
