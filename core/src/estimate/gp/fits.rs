//! Fits covariances to a window, and to what is left of it without its bursts.

use super::Gp;
use super::bursts::{Tempered, tempered};
use super::calibration::{StaySquare, Turns};
use super::covariance::Covariances;
use super::learn;
use super::time::Span;
use super::window::{LeftOut, Pairs, Solved, Window};

/// The part that is kept of what was fitted to bursts: one says little of the next.
const KEPT_OF_BURSTS: f64 = 0.5;
/// The part that is kept where several threads are counted one by one: a window's correlations are those of the threads
/// that were counted.
const KEPT_OF_THREADS: f64 = 0.5;

/// A window that the present covariances were fitted to, or are near to.
pub(super) struct FittedWindow {
    /// With its bursts tempered.
    pub(super) window: Window,
    bursts: Option<FittedBursts>,
}

/// A window as it was seen, which tells of the events that burst in it.
pub(super) struct FittedBursts {
    window: Window,
    /// What was fitted to it.
    pub(super) covariances: Covariances,
    pub(super) is_bursting: Vec<bool>,
}

/// What a window's observations say.
pub(super) struct SolvedWindow<'a> {
    /// `None` where rounding left no solution.
    pub(super) all: Option<Solved<'a>>,
    pub(super) bursts: Option<SolvedBursts<'a>>,
}

/// The same of the events that burst in it.
pub(super) struct SolvedBursts<'a> {
    pub(super) solved: Solved<'a>,
    pub(super) burst: &'a FittedBursts,
}

impl FittedWindow {
    pub(super) fn solve(&self, present: &Covariances) -> SolvedWindow<'_> {
        let bursts = self.bursts.as_ref().and_then(|burst| {
            let solved = burst.window.solve(&burst.covariances)?;
            Some(SolvedBursts { solved, burst })
        });
        SolvedWindow { all: self.window.solve(present), bursts }
    }
}

impl Gp {
    /// Fits covariances to the window since then: wholly for the time being, and in part for good.
    pub(super) fn fit(&mut self, since: f64) -> FittedWindow {
        if self.settings.volatile {
            self.follow(since);
        }
        let seen = Window::new(self.observations(since), self.process.scales.clone());
        let first = seen.solve(&self.process.covariances);
        let fitted = match self.tempered(first.as_ref()) {
            None => {
                self.fit_to(&seen, first, since);
                self.process.covariances.approach(&self.process.present, self.kept());
                FittedWindow { window: seen, bursts: None }
            }
            Some(Tempered { observations, is_bursting }) => {
                let covariances = self.fitted(&seen, first, |_| ());
                let window = Window::new(observations, self.process.scales.clone());
                self.fit_to(&window, window.solve(&self.process.covariances), since);
                // What burst once may burst again: variances at large hold it, too.
                self.process.covariances.approach(&covariances, self.kept());
                FittedWindow { window, bursts: Some(FittedBursts { window: seen, covariances, is_bursting }) }
            }
        };
        self.part_from_quiet();
        self.process.observed.fill(0);
        let new = fitted.window.observations.iter().filter(|o| o.span.start >= since - 1e-9);
        new.for_each(|o| self.process.observed[o.event] += 1);
        self.keep_lesson(since);
        self.process.fitted_windows += 1;
        self.times.fitted_until = self.times.end;
        fitted
    }

    /// Takes what is quiet for nothing that says something of others: an event that never occurred, or has stopped, is
    /// always as far below any rate as can be, and would pull the others down for ever.
    fn part_from_quiet(&mut self) {
        let is_quiet =
            |event: &usize| self.levels[*event].is_silent() || self.stays[*event].quiet.stopped_ms().is_some();
        let quiet: Vec<usize> = (0..self.events.len()).filter(is_quiet).collect();
        quiet.into_iter().for_each(|event| self.process.present.part(event));
    }

    /// The window since then, by the present covariances as they are: they are nearer to it than those at large.
    pub(super) fn unfitted(&self, since: f64) -> FittedWindow {
        let seen = Window::new(self.observations(since), self.process.scales.clone());
        let tempered = self.tempered(seen.solve(&self.process.present).as_ref());
        let Some(Tempered { observations, is_bursting }) = tempered else {
            return FittedWindow { window: seen, bursts: None };
        };
        let bursts = FittedBursts { window: seen, covariances: self.process.present.clone(), is_bursting };
        FittedWindow { window: Window::new(observations, self.process.scales.clone()), bursts: Some(bursts) }
    }

    /// A window with its bursts tempered. Of a sample of threads it isn't known what is one.
    fn tempered(&self, seen: Option<&Solved<'_>>) -> Option<Tempered> {
        seen.filter(|_| !self.samples_threads()).and_then(|seen| tempered(seen, self.events.len()))
    }

    /// Fits the present covariances to a window, and takes what its stays were off by. `first`: the window by
    /// covariances at large.
    fn fit_to(&mut self, window: &Window, first: Option<Solved<'_>>, since: f64) {
        let tells_of_stays = !self.samples_threads();
        self.process.at_large = match &first {
            Some(first) if tells_of_stays => self.variances_at_large(first, since),
            _ => vec![0.0; self.events.len()],
        };
        let mut off: Option<(Vec<LeftOut>, f64)> = None;
        self.process.present = self.fitted(window, first, |last| {
            off = tells_of_stays.then(|| (last.left_out(since), surprise(last)));
        });
        if let Some((mut stays, surprise)) = off {
            stays.retain(|stay| !self.events[stay.event].counted.is_always());
            let square = |stay: &LeftOut| {
                let (event, tail) = (stay.event, self.tail(stay.event));
                StaySquare { event, square: stay.square / surprise, tail }
            };
            let squares: Vec<_> = stays.iter().map(square).collect();
            self.calibration
                .window(Turns { stay_ms: self.turns.stay_ms / self.times.unit, ..self.turns }, squares.into_iter());
            self.stillness.window(&stays);
        }
    }

    /// The part of what is fitted to a window that is kept for good.
    fn kept(&self) -> f64 {
        self.settings.kept
            * if self.empty.is_most() { KEPT_OF_BURSTS } else { 1.0 }
            * if self.samples_threads() { KEPT_OF_THREADS } else { 1.0 }
    }

    /// Variances of events' mean rates since then, by the covariances at large.
    fn variances_at_large(&self, solved: &Solved<'_>, since: f64) -> Vec<f64> {
        let span = Span { start: since, end: self.times.end };
        let known = solved.sums(span, &self.process.covariances, &self.targets(), Pairs::None);
        let part = surprise(solved) / span.length().powi(2);
        (0..self.events.len()).map(|event| part * known.covariance.at(event, event)).collect()
    }

    /// Covariances that are fitted to a window, from those at large, which they are where rounding leaves no solution.
    /// `at_last` sees the window before the last step.
    fn fitted<'a>(
        &self,
        window: &'a Window,
        first: Option<Solved<'a>>,
        mut at_last: impl FnMut(&Solved<'_>),
    ) -> Covariances {
        let step = self.settings.first_step / (1.0 + self.settings.step_decline * self.process.fitted_windows as f64);
        let step = step.max(self.settings.least_step);
        let fits = self.settings.fits_to(window.observations.len(), self.events.len(), self.samples_threads());
        let mut present = self.process.covariances.clone();
        let mut next = first;
        for fit in 1..=fits {
            let Some(solved) = next else { return self.process.covariances.clone() };
            if fit == fits {
                at_last(&solved);
            }
            learn::step(&solved, &mut present, step, learn::Pace::Fast);
            next = (fit < fits).then(|| window.solve(&present)).flatten();
        }
        present
    }
}

/// How much larger than expected squared deviations are in a window, at least a quarter.
pub(super) fn surprise(solved: &Solved<'_>) -> f64 {
    solved.scale().max(0.25)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::blocks::SEVERAL;
    use super::super::tests::{delta, gp, round};
    use super::super::threads::Concurrency;
    use super::*;

    #[test]
    fn less_is_kept_of_bursts_and_of_samples_of_threads_by_hand() {
        let mut gp = gp(&[false]);
        assert_eq!(gp.kept(), 0.3);
        gp.mean_threads = 2.0;
        assert_eq!(gp.kept(), 0.15);
        // At the limit it is neither one thread nor several.
        gp.mean_threads = SEVERAL;
        assert_eq!((gp.concurrency(), gp.kept()), (Concurrency::Unclear, 0.3));
        gp.mean_threads = 1.0;
        gp.empty.add(true);
        assert_eq!((gp.concurrency(), gp.kept()), (Concurrency::Alone, 0.15));
    }

    #[test]
    fn a_window_with_a_burst_is_fitted_with_and_without_it() {
        let mut gp = gp(&[true, false, false]);
        for i in 0..25 {
            let on = |event: usize| f64::from(u8::from(i % 2 == event));
            let burst = if i == 20 { 1e6 } else { 100.0 };
            gp.round(round(i), &[delta(4e3, 1.0), delta(burst * on(0), on(0)), delta(100.0 * on(1), on(1))]);
        }
        let fitted = gp.unfitted(0.0);
        let solved = fitted.solve(&gp.process.present);
        let bursts = solved.bursts.unwrap_or_else(|| unreachable!());
        assert!(bursts.burst.is_bursting[1], "{:?}", bursts.burst.is_bursting);
        // Nothing was seen of another one.
        assert!(self::gp(&[true, false]).unfitted(0.0).solve(&Covariances::zeros(2)).bursts.is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn what_is_fitted_is_finite_and_no_surprise_is_less_than_a_quarter(
            counts in prop::collection::vec(0.0..1e6f64, 1..30),
        ) {
            let mut gp = gp(&[true, false]);
            for (i, &count) in counts.iter().enumerate() {
                let on = f64::from(u8::from(i % 2 == 0));
                gp.round(round(i), &[delta(4e3, 1.0), delta(count * on, on)]);
            }
            let fitted = gp.fit(0.0);
            let solved = fitted.window.solve(&gp.process.present).unwrap_or_else(|| unreachable!());
            prop_assert!(surprise(&solved) >= 0.25);
            for event in 0..2 {
                let is_sane = |variance: &f64| variance.is_finite() && *variance > 0.0;
                prop_assert!(gp.process.present.at(event, event).iter().all(is_sane));
            }
        }
    }
}
