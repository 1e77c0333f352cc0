//! Follows the rate that an event has at large.

/// The running mean of an event's rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    count: f64,
    time: f64,
    ever: bool,
    known: bool,
}

/// Rates below this many counts a millisecond differ from none by too little to divide by.
const LEAST_RATE: f64 = 0.0025;

impl Level {
    /// A level that was learnt: what is counted doesn't move it.
    pub(crate) fn known(rate: f64) -> Self {
        Self { count: rate, time: 1.0, ever: rate > 0.0, known: true }
    }

    /// The rate per millisecond; `None` if the event was never counted.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.time > 0.0).then(|| (self.count / self.time).max(LEAST_RATE))
    }

    /// Whether the event has never happened while it was counted.
    pub(crate) fn is_silent(&self) -> bool {
        !self.ever
    }

    /// The time that it remembers.
    pub(crate) fn time(&self) -> f64 {
        self.time
    }

    /// Takes a count over a time (ms) in an interval of some length, with what is remembered of the
    /// time before 100 ms.
    pub(crate) fn update(&mut self, count: f64, time: f64, length: f64, memory: f64) {
        if self.known {
            return;
        }
        let kept = memory.powf(length / 100.0);
        self.count = kept * self.count + count;
        self.time = kept * self.time + time;
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
            level.update(20.0, 10.0, 100.0, 0.5);
            level.update(60.0, 10.0, 100.0, 0.5);
        }
        // (0.5 * 20 + 60) / (0.5 * 10 + 10)
        assert!((free.rate().unwrap_or(0.0) - 70.0 / 15.0).abs() < 1e-12);
        assert_eq!(known.rate(), Some(4.0));
        assert_eq!((Level::default().rate(), Level::known(0.0).rate()), (None, Some(LEAST_RATE)));
    }
}
