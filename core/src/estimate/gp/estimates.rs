//! Estimates what each event counted in a window, and adds that to its interval.

use super::blocks::WHOLE;
use super::covariance::Covariances;
use super::fits::{self, SolvedBursts, SolvedWindow};
use super::relation::Constraint;
use super::threads::Concurrency;
use super::time::Span;
use super::total::SELDOM;
use super::window::{Pairs, Posterior, Solved};
use super::{Gp, is_clocked, longest};
use crate::units::CpuNs;

/// What an event counted in a window.
struct WindowEstimate {
    count: f64,
    half_width: f64,
}

/// How far a clock may be in the run from the time that it was on a counter, as a part of that.
const CLOCK: f64 = 1e-3;

/// Intervals are at least so many times as wide to a side as estimates were off, where rates may be held.
const OFF_WIDTH: f64 = 1.6;

/// So many times the inverse of the time in which nothing was seen is the largest rate, at 95 %: the rule of three
/// (J. A. Hanley and A. Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA 249, 1983).
const UNSEEN: f64 = 3.0;

impl Gp {
    /// Adds a window's estimates to the interval's.
    pub(super) fn estimate(&mut self, span: Span, solved: &SolvedWindow<'_>, analogs: &[Option<f64>]) {
        let known = self.known(span, solved);
        for event in 0..self.events.len() {
            let Some(rate) = self.rate(event) else { continue };
            let analog = analogs.get(event).copied().flatten();
            let found = match (self.without_process(event), &known) {
                (Some(found), _) => found,
                (None, Some(known)) if known.mean[event].is_finite() => self.by_process(event, rate, known, analog),
                (None, _) => self.scaled(event, rate),
            };
            self.counted.interval[event].add(found.count, found.half_width);
        }
    }

    /// What the process and constraints say of the window's counts; `None` where rounding left no solution.
    fn known(&mut self, span: Span, solved: &SolvedWindow<'_>) -> Option<Posterior> {
        let mut known = self.counts(span, solved)?;
        let cpu_ms = longest(&self.counted.window);
        for constraint in &self.constraints.all {
            let misfit = self.constraints.misfits.entry(constraint.relation).or_default();
            let tolerance = constraint.tolerance.hypot(misfit.error());
            let doubted = Constraint { tolerance, ..constraint.clone() };
            doubted.apply(&mut known, cpu_ms).into_iter().for_each(|residual| misfit.add(residual));
        }
        Some(known)
    }

    /// The count of an event that needs no process: it was counted all the time, is silent, or is a clock.
    fn without_process(&self, event: usize) -> Option<WindowEstimate> {
        let counted = self.counted.window[event];
        if counted.run_ratio() >= WHOLE {
            return Some(WindowEstimate { count: counted.count as f64, half_width: 0.0 });
        }
        let silent_ms = match self.levels[event].is_silent() {
            true => Some(self.levels[event].time()),
            false => self.stays[event].quiet.stopped_ms().filter(|_| counted.count == 0),
        };
        if let Some(silent_ms) = silent_ms {
            let unseen_ms = (counted.enabled - counted.running).as_ms();
            return Some(WindowEstimate { count: 0.0, half_width: UNSEEN * unseen_ms / silent_ms });
        }
        let is_clock = self.may_be_clocks[event] && is_clocked(self.counted.run[event], CLOCK, CpuNs(0));
        is_clock.then_some(WindowEstimate { count: counted.enabled.0 as f64, half_width: 0.0 })
    }

    /// The count of an event as the process says, as far as it goes on and doesn't hold still; where turns are long, by
    /// analogues or the last rate.
    fn by_process(&mut self, event: usize, rate: f64, known: &Posterior, analog: Option<f64>) -> WindowEstimate {
        let (counted, time) = (self.counted.window[event], self.counted.window[event].enabled.as_ms());
        let present = known.covariance.at(event, event).max(0.0);
        let at_large = self.process.at_large[event] * (rate * time).powi(2);
        let deviation = self.calibration.deviation(present, at_large, self.counted.run[event].run_ratio());
        let half_width = self.half_width(event) * deviation;
        let of_process = self.as_it_goes_on(event, rate, known.mean[event]);
        let (count, least) = match analog {
            Some(unseen) => {
                self.levels[event].foretell(unseen);
                let unseen = unseen * (counted.enabled - counted.running).as_ms();
                (counted.count as f64 + unseen, self.levels[event].off())
            }
            None if self.may_hold_rates() && time > 0.0 => {
                (time * self.levels[event].between(of_process / time), self.levels[event].off())
            }
            None => (of_process, 0.0),
        };
        WindowEstimate { count: count.max(counted.count as f64), half_width: half_width.max(OFF_WIDTH * time * least) }
    }

    /// A count of the process, moved to what the event's own stays say as far as it may have stopped or holds still.
    fn as_it_goes_on(&self, event: usize, rate: f64, count: f64) -> f64 {
        let is_seen = self.counted.window[event].run_ratio() > 0.0;
        let scaled = self.scaled_count(event, rate);
        // Where it wasn't looked at, what may have stopped counted nothing. Bursts are quiet in between.
        let stopped = if is_seen { scaled } else { 0.0 };
        let goes_on = if self.empty.is_most() { 1.0 } else { self.stays[event].quiet.goes_on() };
        let count = stopped + goes_on * (count - stopped);
        if is_seen { count + self.still_part(event) * (scaled - count) } else { count }
    }

    /// The scaled count of an event, or its mean rate where it wasn't looked at, as the process had no solution.
    fn scaled(&mut self, event: usize, rate: f64) -> WindowEstimate {
        self.unsolved.now = true;
        let count = self.scaled_count(event, rate);
        WindowEstimate { count, half_width: self.half_width(event) * count }
    }

    fn scaled_count(&self, event: usize, rate: f64) -> f64 {
        let counted = self.counted.window[event];
        match counted.run_ratio() {
            part if part > 0.0 => counted.count as f64 / part,
            _ => rate * counted.enabled.as_ms(),
        }
    }

    /// How much of an event's estimate is its scaled count, as it holds still. Silence isn't stillness, and what is
    /// counted of several threads isn't of the same ones.
    fn still_part(&self, event: usize) -> f64 {
        let is_alone = self.concurrency() == Concurrency::Alone;
        let is_silent = self.empty.is_most() || self.stays[event].quiet.empty() >= SELDOM;
        if is_alone && !is_silent && !self.may_hold_rates() { self.stillness.part(event) } else { 0.0 }
    }

    /// The process' means and covariances of counts; `None` where rounding left no solution.
    fn counts(&self, span: Span, solved: &SolvedWindow<'_>) -> Option<Posterior> {
        // Only constraints ask how errors go along.
        let pairs = if self.constraints.all.is_empty() { Pairs::None } else { Pairs::All };
        let mut known = self.counts_of(span, solved.all.as_ref()?, &self.process.present, pairs);
        if let Some(SolvedBursts { solved, burst }) = &solved.bursts {
            let of_bursts = self.counts_of(span, solved, &burst.covariances, Pairs::None);
            (0..self.events.len())
                .filter(|&event| burst.is_bursting[event])
                .for_each(|event| known.replace(event, &of_bursts));
        }
        Some(known)
    }

    /// The process' means and covariances of counts by these covariances.
    fn counts_of(&self, span: Span, solved: &Solved<'_>, covariances: &Covariances, pairs: Pairs) -> Posterior {
        let mut known = solved.sums(span, covariances, &self.targets(), pairs);
        let surprise = fits::surprise(solved);
        // Per millisecond of the window, in which several threads may have run.
        let enabled = |event: usize| self.counted.window[event].enabled.as_ms() / span.length();
        let rates: Vec<f64> =
            (0..self.events.len()).map(|event| self.rate(event).unwrap_or(0.0) * enabled(event)).collect();
        for (event, &rate) in rates.iter().enumerate() {
            let exact = self.counted.window[event].run_ratio() >= WHOLE;
            known.mean[event] = rate * (known.mean[event] + span.length());
            for (other, &other_rate) in rates.iter().enumerate() {
                let exact = exact || self.counted.window[other].run_ratio() >= WHOLE;
                *known.covariance.at_mut(event, other) *= if exact { 0.0 } else { surprise * rate * other_rate };
            }
            if exact {
                known.mean[event] = self.counted.window[event].count as f64;
            }
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Memory;
    use super::super::tests::{delta, gp};
    use super::*;
    use crate::rates::Delta;

    #[test]
    fn counts_without_the_process_by_hand() {
        let mut gp = gp(&[true, false, false]);
        let quarter = Delta { count: 0, enabled: CpuNs(8_000_000), running: CpuNs(2_000_000) };
        gp.counted.window = vec![delta(7.0, 1.0), quarter, Delta { count: 6, ..quarter }];
        (gp.counted.run, gp.may_be_clocks) = (gp.counted.window.clone(), vec![false; 3]);
        for (level, count) in gp.levels.iter_mut().zip([7.0, 0.0, 6.0]) {
            level.update(count, 9.0, 100.0, Memory { per_100_ms: 1.0 });
        }
        let found = |event: usize| gp.without_process(event).map(|found| (found.count, found.half_width));
        // Counted all the time; not once in 9 ms, with 6 unseen ones: three times 6 / 9 at most; with counts.
        assert_eq!([0, 1, 2].map(found), [Some((7.0, 0.0)), Some((0.0, 2.0)), None]);
        // Six in a quarter of the time; and at its mean rate where it wasn't looked at.
        assert_eq!(gp.scaled_count(2, 0.5), 24.0);
        gp.counted.window[2] = Delta { running: CpuNs(0), count: 0, ..quarter };
        assert_eq!(gp.scaled_count(2, 0.5), 4.0);
        // What was seen goes on as the process says.
        gp.counted.window[2] = Delta { count: 6, ..quarter };
        assert_eq!(gp.as_it_goes_on(2, 0.5, 20.0), 20.0);
    }

    proptest! {
        #[test]
        fn what_may_have_stopped_lies_between_what_was_counted_and_the_process(
            count in 0u64..1000, said in 0.0..5000.0f64, quiet in 0u32..40,
        ) {
            let mut gp = gp(&[false]);
            (0..quiet).for_each(|_| gp.stays[0].push([0.0; 4], 4.0, 4.0, 4.0));
            gp.counted.window[0] = delta(count as f64, 0.5);
            let (scaled, found) = (2.0 * count as f64, gp.as_it_goes_on(0, 1.0, said));
            prop_assert!(scaled.min(said) - 1e-9 <= found && found <= scaled.max(said) + 1e-9, "{found}");
        }
    }
}
