//! Detects a rotation that beats with the program, by events that are always counted.
//!
//! A program that repeats itself in the time of a cycle of the rotation, or in a simple ratio to it, shows each
//! multiplexed event the same moments again and again: scaled counts may be far off, and no spread of them says so. What
//! is counted all the time tells: seen in an event's stays alone, does it have the rate that it has?

use crate::rates::Delta;

/// The rates of an event that is always counted in the stays of another.
#[derive(Clone, Copy, Debug, Default)]
struct InStays {
    /// In the stay so far: counts, and milliseconds.
    open: (f64, f64),
    stays: f64,
    sum: f64,
    squares: f64,
}

impl InStays {
    fn end_stay(&mut self) {
        let (count, time) = std::mem::take(&mut self.open);
        if time > 0.0 {
            let rate = count / time;
            self.stays += 1.0;
            self.sum += rate;
            self.squares += rate * rate;
        }
    }

    /// The mean rate over the overall one, if that differs by more than chance.
    fn ratio(&self, overall: f64) -> Option<(f64, bool)> {
        if self.stays < LEAST_STAYS || overall <= 0.0 {
            return None;
        }
        let mean = self.sum / self.stays;
        let variance = (self.squares / self.stays - mean * mean).max(0.0) / (self.stays - 1.0);
        let ratio = mean / overall;
        let is_far = (ratio - 1.0).abs() > LEAST_OFF && (mean - overall).powi(2) > FAR * FAR * variance;
        Some((ratio, is_far))
    }
}

/// So many stays of an event are needed.
const LEAST_STAYS: f64 = 8.0;
/// Less than this is no matter.
const LEAST_OFF: f64 = 0.15;
/// So many standard errors are more than chance.
const FAR: f64 = 5.0;
/// The rotation beats with the program where so large a part of events is far off.
const MANY: f64 = 0.25;
/// After so many rounds it is known which events are always counted.
const LOOKED_AT: usize = 25;
/// No more than so many events that are always counted are looked at.
const MOST_ANCHORS: usize = 3;
/// The part of ratios that intervals leave out at either end, and how much wider than these they are.
const LEFT_OUT: f64 = 0.05;
const SLACK: f64 = 1.15;

/// Watches the events that are always counted during the stays of all others.
#[derive(Clone, Debug)]
pub(crate) struct Aliasing {
    /// Rounds so far, up to [`LOOKED_AT`]; and the events that were counted for all of them, or the first of these.
    rounds: usize,
    anchors: Vec<usize>,
    /// For each event, in the order of anchors.
    in_stays: Vec<[InStays; MOST_ANCHORS]>,
}

/// The least and the largest number that a count may have to be multiplied by to be the truth.
pub(crate) type Factors = (f64, f64);

impl Aliasing {
    pub(crate) fn new(events: usize) -> Self {
        Self { rounds: 0, anchors: (0..events).collect(), in_stays: vec![Default::default(); events] }
    }

    /// Takes a round of so many milliseconds.
    pub(crate) fn round(&mut self, length_ms: f64, deltas: &[Delta]) {
        if self.rounds < LOOKED_AT {
            self.rounds += 1;
            let is_whole = |event: &usize| deltas.get(*event).is_some_and(|delta| delta.running >= delta.enabled);
            self.anchors.retain(is_whole);
            if self.rounds == LOOKED_AT {
                self.anchors.truncate(MOST_ANCHORS);
            }
            return;
        }
        for (delta, in_stays) in deltas.iter().zip(&mut self.in_stays) {
            let part = delta.run_ratio();
            for (in_stays, &anchor) in in_stays.iter_mut().zip(&self.anchors) {
                match deltas.get(anchor) {
                    Some(anchor) if part > 0.0 => {
                        in_stays.open.0 += part * anchor.count as f64;
                        in_stays.open.1 += part * length_ms;
                    }
                    _ => in_stays.end_stay(),
                }
            }
        }
    }

    /// How far counts may be off, if the rotation beats with the program. `run`: what each event counted in all.
    pub(crate) fn factors(&self, length_ms: f64, run: &[Delta]) -> Option<Factors> {
        let anchors = if self.rounds < LOOKED_AT { 0 } else { self.anchors.len() };
        let seen = (0..anchors).filter_map(|place| self.factors_by(place, length_ms, run));
        seen.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn factors_by(&self, place: usize, length_ms: f64, run: &[Delta]) -> Option<Factors> {
        let anchor = run.get(self.anchors[place]).filter(|anchor| anchor.running >= anchor.enabled)?;
        let overall = anchor.count as f64 / length_ms;
        let multiplexed = self.in_stays.iter().zip(run).filter(|(_, run)| run.running < run.enabled);
        let ratios: Vec<(f64, bool)> = multiplexed.filter_map(|(stays, _)| stays[place].ratio(overall)).collect();
        let far = ratios.iter().filter(|(_, is_far)| *is_far).count() as f64;
        if far == 0.0 || far < MANY * ratios.len() as f64 {
            return None;
        }
        let mut ratios: Vec<f64> = ratios.into_iter().map(|(ratio, _)| ratio.max(1e-3)).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let left_out = (LEFT_OUT * ratios.len() as f64) as usize;
        let (least, most) = (ratios[left_out], ratios[ratios.len() - 1 - left_out]);
        Some(((1.0 / (SLACK * most)).min(1.0), (SLACK / least).max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::CpuNs;

    /// Six events that take turns of 4 ms beside one that is always counted, at 100 a millisecond more or less as of the
    /// time.
    fn factors(rate: impl Fn(usize) -> f64) -> Option<Factors> {
        let mut aliasing = Aliasing::new(7);
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
        aliasing.factors(2400.0, &run)
    }

    #[test]
    fn a_program_with_the_period_of_the_rotation_is_found() {
        // Three of six stays see 1.9 of the rate, three a tenth of it.
        let found = factors(|round| if round % 6 < 3 { 1.9 } else { 0.1 });
        assert!(found.is_some_and(|(least, most)| least < 0.55 && most > 9.0), "{found:?}");
    }

    #[test]
    fn programs_with_other_periods_and_steady_ones_are_none() {
        assert_eq!(factors(|round| if round % 7 < 3 { 1.9 } else { 0.1 }), None);
        assert_eq!(factors(|_| 1.0), None);
        // Noise that is none of the rotation's.
        assert_eq!(factors(|round| 1.0 + 0.8 * ((round * round) as f64).sin()), None);
    }
}
