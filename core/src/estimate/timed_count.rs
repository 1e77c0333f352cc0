//! Adds up counts and the time that they took.

/// A count, and how many milliseconds of CPU time it took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimedCount {
    pub(super) count: f64,
    pub(super) time: f64,
}

impl TimedCount {
    pub(super) fn add(&mut self, count: f64, time_ms: f64) {
        self.count += count;
        self.time += time_ms;
    }

    /// What came after a start.
    pub(super) fn since(self, start: Self) -> Self {
        Self { count: self.count - start.count, time: self.time - start.time }
    }

    /// The rate per millisecond.
    pub(super) fn rate(self) -> f64 {
        self.count / self.time
    }
}
