//! Counts in, the rate that an event has at large out.

/// The running mean of an event's rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Level {
    count: f64,
    time: f64,
    ever: bool,
}

/// Rates below this many counts a millisecond differ from none by too little to divide by.
const LEAST_RATE: f64 = 0.0025;

impl Level {
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
        let kept = memory.powf(length / 100.0);
        self.count = kept * self.count + count;
        self.time = kept * self.time + time;
        self.ever |= count > 0.0;
    }
}
