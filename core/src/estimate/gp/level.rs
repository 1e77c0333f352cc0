//! Follows the rate that an event has at large.

use super::super::fading::FadingMean;
use super::settings::Memory;

/// The rate of an event at large, per millisecond on a counter: a running mean, the last rate, or between both.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    /// Counts, over the milliseconds that they took.
    mean: FadingMean,
    /// Whether the event ever happened.
    ever: bool,
    /// Whether it is known from elsewhere, and what is counted doesn't move it.
    known: bool,
    /// The rate of the last interval in which the event was counted; only where rates are held.
    last: Option<f64>,
    /// The rate that the process said last.
    said: Option<f64>,
    /// How far these were from what was counted next; `None` before the last rate had a next one.
    deviations: Option<Deviations>,
    /// The rate that was estimated last.
    estimated: Option<f64>,
    /// Squares of how far estimated rates were from what was counted next.
    squares: FadingMean,
}

/// How far predictions were from the next rate: fading sums of deviations relative to the sum of both rates.
#[derive(Clone, Copy, Debug)]
struct Deviations {
    of_mean: f64,
    of_last: f64,
    /// `None` before the process said anything.
    of_process: Option<f64>,
}

/// What is remembered of deviations, and of squares, at each next one.
const OFF_KEPT: f64 = 0.9;
const SQUARES_KEPT: f64 = 0.95;
/// How sharply the better one is preferred.
const SHARP: i32 = 8;
/// The last rate has to be better by so much to be as good as the mean: the process itself follows what changed lately.
const HANDICAP: f64 = 1.5;

impl Deviations {
    /// Before any predictions were made the last rate is the better one.
    const BEFORE: Self = Self { of_mean: 0.5, of_last: 0.2, of_process: None };
    const OF_PROCESS_BEFORE: f64 = 0.5;

    /// Takes what was predicted of a rate that was counted.
    fn add(&mut self, now: f64, mean: f64, last: f64, said: Option<f64>) {
        let off = |rate: f64| (now - rate).abs() / (now + rate).max(LEAST_RATE);
        self.of_mean = OFF_KEPT * self.of_mean + off(mean);
        self.of_last = OFF_KEPT * self.of_last + off(last);
        if let Some(said) = said {
            self.of_process = Some(OFF_KEPT * self.of_process.unwrap_or(Self::OF_PROCESS_BEFORE) + off(said));
        }
    }

    /// The part that the last rate has beside the mean.
    fn beside_mean(&self) -> f64 {
        part(HANDICAP * self.of_last, self.of_mean)
    }

    /// The part that the last rate has beside the process.
    fn beside_process(&self) -> f64 {
        self.of_process.map_or(1.0, |of_process| part(self.of_last, of_process))
    }
}

/// The part of what was off by so much beside another one.
fn part(off: f64, other_off: f64) -> f64 {
    let [own, other] = [off, other_off].map(|off| (off + 1e-6).powi(SHARP));
    other / (other + own)
}

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
        let held = self.deviations.map_or(0.0, |deviations| deviations.beside_mean());
        Some((mean + held * (self.last.unwrap_or(mean) - mean)).max(LEAST_RATE))
    }

    /// Keeps a rate that was estimated, which is judged by what is counted next.
    pub(crate) fn foretell(&mut self, rate: f64) {
        self.estimated = Some(rate);
    }

    /// The rate that the process says, and one that is between it and the last rate, by which of them foretold more.
    pub(crate) fn between(&mut self, said: f64) -> f64 {
        self.said = Some(said);
        let beside = self.deviations.map_or(0.0, |deviations| deviations.beside_process());
        let rate = said + beside * (self.last.unwrap_or(said) - said);
        self.foretell(rate);
        rate
    }

    /// The root of the mean square that estimated rates were off by, per millisecond, of rates that were counted next.
    pub(crate) fn off(&self) -> f64 {
        self.squares.mean().map_or(0.0, f64::sqrt)
    }

    /// Judges whether the mean or the last rate said better what was counted now over so many milliseconds, before it
    /// is taken; the level goes between them by that.
    pub(crate) fn hold(&mut self, count: f64, time: f64) {
        if self.known || time <= 0.0 {
            return;
        }
        let now = count / time;
        if let (Some(last), Some(mean)) = (self.last, self.mean.mean()) {
            self.deviations.get_or_insert(Deviations::BEFORE).add(now, mean, last, self.said);
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

    /// The time on a counter that it remembers, in milliseconds.
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

    #[test]
    fn no_time_judges_nothing_and_a_rate_is_between_what_is_said_and_the_last_by_hand() {
        let mut level = Level::default();
        assert_eq!((level.between(5.0), level.off()), (5.0, 0.0));
        level.hold(0.0, 0.0);
        assert!(level.last.is_none() && level.deviations.is_none());
        for rate in [10.0, 10.0] {
            level.hold(100.0 * rate, 100.0);
            level.update(100.0 * rate, 100.0, 100.0, Memory { per_100_ms: 1.0 });
        }
        // Off by nothing: 0.9 of what each was held to be off by, but the process by a third more.
        let deviations = level.deviations.unwrap_or(Deviations::BEFORE);
        assert_eq!((deviations.of_mean, deviations.of_last), (0.45, 0.9 * 0.2));
        let of_process = deviations.of_process.unwrap_or(0.0);
        assert!((of_process - (0.45 + 1.0 / 3.0)).abs() < 1e-12, "{of_process}");
        let part = |off: f64, other: f64| (other / off).powi(8) / (1.0 + (other / off).powi(8));
        assert!((deviations.beside_mean() - part(1.5 * 0.18, 0.45)).abs() < 1e-4);
        assert!((level.between(4.0) - (4.0 + part(0.18, of_process) * 6.0)).abs() < 1e-4);
        // Squares of estimates: the first was of 5 where 10 came, twice.
        assert!((level.off() - 5.0).abs() < 1e-12);
    }

    proptest::proptest! {
        #[test]
        fn a_rate_lies_between_what_is_said_and_the_last(
            rates in proptest::collection::vec(0.1..100.0f64, 1..20), said in 0.1..100.0f64,
        ) {
            let mut level = Level::default();
            for &rate in &rates {
                level.hold(rate, 1.0);
                level.update(rate, 1.0, 100.0, Memory { per_100_ms: 0.9 });
                level.between(said);
            }
            let (last, found) = (rates[rates.len() - 1], level.between(said));
            proptest::prop_assert!(said.min(last) - 1e-9 <= found && found <= said.max(last) + 1e-9, "{found}");
        }
    }
}
