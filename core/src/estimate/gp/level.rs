//! Follows the rate that an event has at large.

use super::super::fading::FadingMean;
use super::settings::Memory;

/// The running mean of an event's rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    /// Counts, over the milliseconds that they took.
    mean: FadingMean,
    ever: bool,
    known: bool,
    /// The rate of the last interval in which it was counted.
    last: Option<f64>,
    /// How far the mean and the last rate were from the next one: running means of relative deviations.
    mean_off: f64,
    last_off: f64,
    /// The part of the last rate in the level.
    held: f64,
    /// What the process said last, how far that was from what was counted next, and the last rate's part beside it.
    said: Option<f64>,
    said_off: f64,
    beside: f64,
    /// The rate that was estimated last, and the squares of how far the next one was off.
    estimated: Option<f64>,
    squares: FadingMean,
}

/// What is remembered of how far predictions were off, at each next one.
const OFF_KEPT: f64 = 0.9;
/// Before any were made the last rate is the better one: how far each is taken to have been off.
const BEFORE: (f64, f64, f64) = (0.5, 0.5, 0.2);
const SQUARES_KEPT: f64 = 0.95;
/// How sharply the better one is preferred.
const SHARP: i32 = 8;
/// The last rate has to be better by so much to be as good: the process itself follows what changed lately.
const HANDICAP: f64 = 1.5;

/// Rates below this many counts a millisecond differ from none by too little to divide by.
const LEAST_RATE: f64 = 0.0025;

impl Level {
    /// A level that was learnt: what is counted doesn't move it.
    pub(crate) fn known(rate: f64) -> Self {
        Self::of_run(rate, 1.0)
    }

    /// The level of a run that is over: so many counts in a time (ms).
    pub(crate) fn of_run(count: f64, time: f64) -> Self {
        let mean = FadingMean { sum: count, weight: time };
        Self { mean, ever: count > 0.0, known: true, ..Self::default() }
    }

    /// The rate per millisecond; `None` if the event was never counted.
    pub(crate) fn rate(&self) -> Option<f64> {
        let mean = self.mean.mean()?;
        Some((mean + self.held * (self.last.unwrap_or(mean) - mean)).max(LEAST_RATE))
    }

    /// Keeps a rate that was estimated, which is judged by what is counted next.
    pub(crate) fn foretell(&mut self, rate: f64) {
        self.estimated = Some(rate);
    }

    /// The rate that the process says, and one that is between it and the last rate, by which of them foretold more.
    pub(crate) fn between(&mut self, said: f64) -> f64 {
        self.said = Some(said);
        let rate = said + self.beside * (self.last.unwrap_or(said) - said);
        self.foretell(rate);
        rate
    }

    /// The root of the mean square that estimated rates were off by, of rates that were counted next.
    pub(crate) fn off(&self) -> f64 {
        self.squares.mean().map_or(0.0, f64::sqrt)
    }

    /// Judges whether the mean or the last rate said better what was counted now, before it is taken; the level goes
    /// between them by that.
    pub(crate) fn hold(&mut self, count: f64, time: f64) {
        if self.known || time <= 0.0 {
            return;
        }
        let now = count / time;
        if let (Some(last), Some(mean)) = (self.last, self.mean.mean()) {
            if self.last_off == 0.0 {
                (self.mean_off, self.said_off, self.last_off) = BEFORE;
            }
            let off = |rate: f64| (now - rate).abs() / (now + rate).max(LEAST_RATE);
            self.mean_off = OFF_KEPT * self.mean_off + off(mean);
            self.last_off = OFF_KEPT * self.last_off + off(last);
            let [mean, last] = [self.mean_off, HANDICAP * self.last_off].map(|off| (off + 1e-6).powi(SHARP));
            self.held = mean / (mean + last);
            self.beside = 1.0;
            if let Some(said) = self.said {
                self.said_off = OFF_KEPT * self.said_off + off(said);
                let [said, last] = [self.said_off, self.last_off].map(|off| (off + 1e-6).powi(SHARP));
                self.beside = said / (said + last);
            }
        }
        if let Some(estimated) = self.estimated {
            self.squares.forget(SQUARES_KEPT);
            self.squares.add((now - estimated).powi(2));
        }
        self.last = Some(now);
    }

    /// Whether the event has never happened while it was counted.
    pub(crate) fn is_silent(&self) -> bool {
        !self.ever
    }

    /// The time that it remembers.
    pub(crate) fn time(&self) -> f64 {
        self.mean.weight
    }

    /// Takes a count over a time (ms) in an interval of some length.
    pub(crate) fn update(&mut self, count: f64, time: f64, length: f64, memory: Memory) {
        if self.known {
            return;
        }
        self.mean.forget(memory.kept(length));
        self.mean.add_sum(count, time);
        self.ever |= count > 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_follows_counts_unless_it_is_known() {
        let (mut free, mut known) = (Level::default(), Level::known(4.0));
        for level in [&mut free, &mut known] {
            level.update(20.0, 10.0, 100.0, Memory { per_100_ms: 0.5 });
            level.update(60.0, 10.0, 100.0, Memory { per_100_ms: 0.5 });
        }
        // (0.5 * 20 + 60) / (0.5 * 10 + 10)
        assert!((free.rate().unwrap_or(0.0) - 70.0 / 15.0).abs() < 1e-12);
        assert_eq!(known.rate(), Some(4.0));
        assert_eq!((Level::default().rate(), Level::known(0.0).rate()), (None, Some(LEAST_RATE)));
    }

    #[test]
    fn what_holds_still_between_jumps_is_held() {
        let (mut still, mut noisy) = (Level::default(), Level::default());
        for stay in 0..40 {
            let steps = if stay / 10 % 2 == 0 { 10.0 } else { 40.0 };
            let noise = if stay % 2 == 0 { 10.0 } else { 40.0 };
            for (level, rate) in [(&mut still, steps), (&mut noisy, noise)] {
                level.hold(100.0 * rate, 100.0);
                level.update(100.0 * rate, 100.0, 100.0, Memory { per_100_ms: 1.0 });
                level.between(25.0);
            }
        }
        assert!((still.rate().unwrap_or(0.0) - 40.0).abs() < 1.0, "{still:?}");
        assert!((noisy.rate().unwrap_or(0.0) - 25.0).abs() < 1.0, "{noisy:?}");
        assert!((still.between(25.0) - 40.0).abs() < 1.0 && (noisy.between(25.0) - 25.0).abs() < 1.0);
        // The process said 25 where 10 and 40 came.
        assert!((noisy.off() - 15.0).abs() < 2.0, "{}", noisy.off());
        for _ in 0..200 {
            noisy.foretell(7.0);
            noisy.hold(400.0, 100.0);
        }
        assert!((noisy.off() - 3.0).abs() < 0.1, "{}", noisy.off());
    }
}
