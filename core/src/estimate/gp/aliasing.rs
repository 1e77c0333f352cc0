//! Detects a rotation that beats with the program, by events that are always counted.
//!
//! A program that repeats itself in the time of a cycle of the rotation, or in a simple ratio to it, shows each
//! multiplexed event the same moments again and again: scaled counts may be far off, and no spread of them says so.
//! What is counted all the time tells: seen in an event's stays alone, does it have the rate that it has? A program
//! that repeats itself after a few cycles is shown at as many phases, so stays are looked at one by one and in batches.

use super::super::timed_count::TimedCount;
use super::regression::{ALWAYS_COUNTED, MOST_REGRESSORS};
use crate::rates::{Delta, Moments};

/// An always-counted event's rates in batches of another event's stays, over its rates at all times from the end of one
/// batch to that of the next.
#[derive(Clone, Copy, Debug, Default)]
struct StayBatches {
    /// The batch so far, and all that was counted up to its start.
    open: TimedCount,
    stays: usize,
    start: TimedCount,
    ratios: Moments,
}

impl StayBatches {
    /// Takes a stay. `so_far`: all that was counted up to its end.
    fn add(&mut self, stay: TimedCount, size: usize, so_far: TimedCount) {
        self.open.add(stay.count, stay.time);
        self.stays += 1;
        if self.stays == size {
            // The first one's start isn't the end of another.
            if self.start.time > 0.0 {
                self.ratios.add(self.open.rate() / so_far.since(self.start).rate(), 1.0);
            }
            *self = Self { start: so_far, ratios: self.ratios, ..Self::default() };
        }
    }

    /// The mean ratio, and whether it differs from 1 by more than chance.
    fn ratio(&self) -> Option<(f64, bool)> {
        let enough = self.ratios.samples() >= LEAST_BATCHES;
        let (mean, variance) = (self.ratios.mean().filter(|_| enough)?, self.ratios.variance()?);
        let off = (mean - 1.0).abs();
        Some((mean, off > LEAST_OFF && off * off > FAR * FAR * variance / self.ratios.samples() as f64))
    }
}

/// An always-counted event in the stays of another: the stay so far, and batches of one stay, two, and so on.
#[derive(Clone, Copy, Debug, Default)]
struct InStays {
    open: TimedCount,
    batches: [StayBatches; MOST_PHASES],
}

impl InStays {
    fn end_stay(&mut self, so_far: TimedCount) {
        let stay = std::mem::take(&mut self.open);
        if stay.time > 0.0 {
            self.batches.iter_mut().zip(1..).for_each(|(batches, size)| batches.add(stay, size, so_far));
        }
    }
}

/// Batches are of so many stays at most. With more phases stays are at nearly all moments of the program.
const MOST_PHASES: usize = 5;
/// So many batches of an event's stays are needed.
const LEAST_BATCHES: u64 = 7;
/// Less than this is no matter.
const LEAST_OFF: f64 = 0.1;
/// So many standard errors are more than chance.
const FAR: f64 = 5.0;
/// The rotation beats with the program where so large a part of events is far off.
const MANY: f64 = 0.25;
/// After so many rounds it is known which events are always counted.
const LOOKED_AT: usize = 25;
/// The part of ratios that intervals leave out at either end, and how much wider than these they are.
const LEFT_OUT: f64 = 0.05;
const SLACK: f64 = 1.15;

/// Watches the events that are always counted during the stays of all others.
#[derive(Clone, Debug)]
pub(crate) struct Aliasing {
    /// Rounds so far, up to [`LOOKED_AT`]; and the events that were counted for all of them, or the first of these.
    rounds: usize,
    watched: Vec<usize>,
    /// What these counted since, in all; and for each event, in its stays.
    so_far: [TimedCount; MOST_REGRESSORS],
    in_stays: Vec<[InStays; MOST_REGRESSORS]>,
}

/// What a count may have to be multiplied by to be the truth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// The least such number, 1 at most.
    pub least: f64,
    /// The largest one, 1 at least.
    pub most: f64,
}

impl Factors {
    /// Those of both.
    fn and(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

impl Aliasing {
    /// Nothing yet of these events, in the order in which they are to be looked at if they are always counted.
    pub(crate) fn new(events: Vec<usize>) -> Self {
        let in_stays = vec![Default::default(); events.len()];
        Self { rounds: 0, watched: events, so_far: Default::default(), in_stays }
    }

    /// Takes a round of so many milliseconds.
    pub(crate) fn round(&mut self, length_ms: f64, deltas: &[Delta]) {
        if self.rounds < LOOKED_AT {
            self.rounds += 1;
            let is_whole = |event: &usize| deltas.get(*event).is_some_and(|delta| delta.run_ratio() >= ALWAYS_COUNTED);
            self.watched.retain(is_whole);
            if self.rounds == LOOKED_AT {
                self.watched.truncate(MOST_REGRESSORS);
            }
            return;
        }
        let counts = self.watched.iter().map(|&event| deltas.get(event).map_or(0.0, |delta| delta.count as f64));
        for (place, count) in counts.enumerate() {
            for (delta, in_stays) in deltas.iter().zip(&mut self.in_stays) {
                let part = delta.run_ratio();
                if part > 0.0 {
                    in_stays[place].open.add(part * count, part * length_ms);
                } else {
                    in_stays[place].end_stay(self.so_far[place]);
                }
            }
            self.so_far[place].add(count, length_ms);
        }
    }

    /// How far counts may be off, if the rotation beats with the program. `run`: what each event counted in all.
    pub(crate) fn factors(&self, run: &[Delta]) -> Option<Factors> {
        let is_whole =
            |place: &usize| run.get(self.watched[*place]).is_some_and(|run| run.run_ratio() >= ALWAYS_COUNTED);
        let watched = if self.rounds < LOOKED_AT { 0 } else { self.watched.len() };
        let of_watched = |place| (1..=MOST_PHASES).filter_map(move |size| self.factors_by(place, size, run));
        let seen = (0..watched).filter(is_whole).flat_map(of_watched);
        seen.reduce(Factors::and)
    }

    /// The same by one of these, and by batches of so many stays.
    fn factors_by(&self, place: usize, size: usize, run: &[Delta]) -> Option<Factors> {
        let multiplexed = self.in_stays.iter().zip(run).filter(|(_, run)| run.run_ratio() < ALWAYS_COUNTED);
        let ratios = multiplexed.filter_map(|(in_stays, _)| in_stays[place].batches[size - 1].ratio());
        let (mut ratios, is_far): (Vec<f64>, Vec<bool>) =
            ratios.map(|(ratio, is_far)| (ratio.max(1e-3), is_far)).unzip();
        let far = is_far.into_iter().filter(|is_far| *is_far).count() as f64;
        if far == 0.0 || far < MANY * ratios.len() as f64 {
            return None;
        }
        ratios.sort_unstable_by(f64::total_cmp);
        let left_out = (LEFT_OUT * ratios.len() as f64) as usize;
        let (least, most) = (ratios[left_out], ratios[ratios.len() - 1 - left_out]);
        Some(Factors { least: (1.0 / (SLACK * most)).min(1.0), most: (SLACK / least).max(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::CpuNs;

    /// Six events that take turns of 4 ms beside one that is always counted, at 100 a millisecond more or less as of
    /// the time.
    fn factors(rate: impl Fn(usize) -> f64) -> Option<Factors> {
        let mut aliasing = Aliasing::new((0..7).collect());
        let mut run = vec![Delta::default(); 7];
        for round in 0..600 {
            let running = |event: usize| event == 0 || round % 6 == event - 1;
            let delta = |event: usize| Delta {
                count: if running(event) { (400.0 * rate(round)) as u64 } else { 0 },
                enabled: CpuNs(4_000_000),
                running: CpuNs(if running(event) { 4_000_000 } else { 0 }),
            };
            let deltas: Vec<_> = (0..7).map(delta).collect();
            aliasing.round(4.0, &deltas);
            run.iter_mut().zip(&deltas).for_each(|(run, delta)| *run += *delta);
        }
        aliasing.factors(&run)
    }

    #[test]
    fn a_program_with_the_period_of_the_rotation_is_found() {
        // Three of six stays see 1.9 of the rate, three a tenth of it.
        let found = factors(|round| if round % 6 < 3 { 1.9 } else { 0.1 });
        assert!(found.is_some_and(|found| found.least < 0.55 && found.most > 9.0), "{found:?}");
    }

    #[test]
    fn a_program_that_is_seen_at_five_phases_is_found() {
        // In five cycles it repeats itself twice: of its 15 rounds a stay sees each third one, from one that differs
        // between events. Those from the first or the third on see three of five in the first half, the others two of
        // five.
        let found = factors(|round| if round % 15 < 7 { 1.9 } else { 0.1 });
        assert!(
            found.is_some_and(|found| (0.6..0.8).contains(&found.least) && (1.3..1.6).contains(&found.most)),
            "{found:?}"
        );
    }

    #[test]
    fn programs_with_other_periods_and_steady_ones_are_none() {
        assert_eq!(factors(|round| if round % 7 < 3 { 1.9 } else { 0.1 }), None);
        assert_eq!(factors(|_| 1.0), None);
        // Noise that is none of the rotation's.
        assert_eq!(factors(|round| 1.0 + 0.8 * ((round * round) as f64).sin()), None);
    }

    #[test]
    fn batches_of_stays_are_held_against_all_times_by_hand() {
        let mut batches = StayBatches::default();
        let stay = TimedCount { count: 12.0, time: 4.0 };
        // Batches of two stays at 3 a millisecond, in 24 ms at 2 each. The first one's start isn't the end of another.
        for place in 1..=16 {
            assert_eq!(batches.ratio(), None, "{place}");
            batches.add(stay, 2, TimedCount { count: 24.0 * f64::from(place), time: 12.0 * f64::from(place) });
        }
        // Seven batches, which are all the same: half as much again, and that by more than chance.
        assert_eq!(batches.ratio(), Some((1.5, true)));
    }

    #[test]
    fn what_was_hardly_looked_at_beats_with_nothing() {
        let mut aliasing = Aliasing::new(vec![0, 1]);
        assert_eq!(aliasing.factors(&[Delta::default(); 2]), None);
        (0..LOOKED_AT).for_each(|_| aliasing.round(4.0, &[Delta::default(); 2]));
        assert_eq!(aliasing.factors(&[Delta::default(); 2]), None);
        let both = Factors { least: 0.5, most: 1.5 }.and(Factors { least: 0.7, most: 3.0 });
        assert_eq!(both, Factors { least: 0.5, most: 3.0 });
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]

        #[test]
        fn factors_hold_one_between_them(rates in proptest::collection::vec(0.05..2.0f64, 6)) {
            if let Some(Factors { least, most }) = factors(|round| rates[round % 6]) {
                proptest::prop_assert!(0.0 < least && least <= 1.0 && 1.0 <= most && most.is_finite());
            }
        }
    }
}
