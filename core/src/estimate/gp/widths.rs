//! Says how wide intervals of counts are, for how much the process is sure of them.

use super::Gp;
use super::calibration::ErrorTail;
use super::threads::Concurrency;
use crate::rates::Confidence;

/// The half width over Student's, where several threads are counted one by one.
const WIDTH_OF_THREADS: f64 = 0.8;
/// By how much intervals of very many threads are narrower where it is known which of them was counted when: what isn't
/// known of each is independent of the others.
const NARROWER_OF_THREADS: f64 = 0.25;
/// Where covariances were fitted to fewer observations of an event, it is as if there had been so many.
const LEAST_OBSERVED: u64 = 2;

impl Gp {
    /// The half width of an event's 95 % interval, in standard deviations.
    pub(super) fn half_width(&self, event: usize) -> f64 {
        let student = Confidence::DEFAULT.student(self.observed[event].max(LEAST_OBSERVED));
        let stays = self.stays[event].stays();
        self.settings.half_width
            * student
            * self.width_of_threads(stays)
            * self.calibration.factor(event, stays, self.run[event].run_ratio(), self.tail(event))
    }

    /// The factor on half widths where several threads ran, of an event of which so many stays were seen.
    fn width_of_threads(&self, stays: f64) -> f64 {
        match self.concurrency() {
            Concurrency::Alone | Concurrency::Unclear => 1.0,
            Concurrency::Sampled => WIDTH_OF_THREADS,
            Concurrency::ToldApart => {
                let others = 1.0 - 1.0 / self.mean_threads.max(1.0);
                1.0 - NARROWER_OF_THREADS * others * (1.0 - 1.0 / stays.max(1.0))
            }
        }
    }

    /// How far off an event's counts may be, as it is quiet.
    pub(super) fn tail(&self, event: usize) -> ErrorTail {
        let quiet = &self.stays[event].quiet;
        match (self.empty.is_most(), quiet.is_mostly_empty()) {
            (true, _) => ErrorTail::AllQuiet,
            (false, true) => ErrorTail::Quiet { bursts: quiet.bursts() },
            (false, false) => ErrorTail::Usual,
        }
    }
}
