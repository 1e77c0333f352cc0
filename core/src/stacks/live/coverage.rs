//! Tells when samples of CPU time stand for too little of it, and how often to take them then.
//!
//! The kernel takes a sample of a thread each time it has run for a whole period. A thread that ends before has none, so that
//! programs of short threads would seem to do only what their long ones do.

use super::open::SampledCounter;
use super::ring::set_period;

/// The frequencies that follow the first, each about five times the one before and not in step with timers.
const FREQUENCIES: [u64; 2] = [997, 3989];
/// Samples stand for at least this part of the CPU time.
const LEAST_COVERED: f64 = 0.8;
/// After so much more CPU time that is judged, in ns.
const JUDGED_AFTER: u64 = 1_000_000_000;
/// Counters are read so often, in ns, and where they are more than [`FEW`] less often: each takes a system call.
const PAUSE: u64 = 500_000_000;
const LONG_PAUSE: u64 = 5_000_000_000;
const FEW: usize = 128;

/// How much of the CPU time samples stand for.
#[derive(Debug)]
pub(super) struct ClockCoverage {
    /// The frequencies that are left.
    next: std::slice::Iter<'static, u64>,
    looked_at: u64,
    /// The CPU time and what samples stood for, in ns, when that was judged last.
    judged: (u64, u64),
}

impl Default for ClockCoverage {
    fn default() -> Self {
        Self { next: FREQUENCIES.iter(), looked_at: 0, judged: (0, 0) }
    }
}

impl ClockCoverage {
    /// Has these counters, which count CPU time, sample more often where samples stand for too little of it: of `sampled` ns so far.
    pub(super) fn look(&mut self, counters: &mut [SampledCounter], sampled: u64, now: u64) {
        let pause = if counters.len() > FEW { LONG_PAUSE } else { PAUSE };
        if self.next.len() == 0 || now.saturating_sub(self.looked_at) < pause {
            return;
        }
        self.looked_at = now;
        let counted = counters.iter_mut().filter_map(|one| Some(one.counter.read_full().ok()?.count())).sum();
        if let Some(hz) = self.judge(counted, sampled) {
            // Who has ended starts no more threads.
            counters.iter().for_each(|one| drop(set_period(&one.counter, 1_000_000_000 / hz)));
        }
    }

    /// The frequency to go on with; `None` where the present one will do, or too little has run to tell.
    fn judge(&mut self, counted: u64, sampled: u64) -> Option<u64> {
        let (since, covered) = (counted.saturating_sub(self.judged.0), sampled.saturating_sub(self.judged.1));
        if since < JUDGED_AFTER {
            return None;
        }
        self.judged = (counted, sampled);
        if covered as f64 >= LEAST_COVERED * since as f64 { None } else { self.next.next().copied() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_frequency_rises_step_by_step_while_too_little_is_sampled() {
        let mut coverage = ClockCoverage::default();
        assert_eq!(coverage.judge(SECOND / 2, 0), None, "too early");
        assert_eq!(coverage.judge(SECOND, SECOND / 5), Some(997));
        // By what came since then.
        assert_eq!(coverage.judge(3 * SECOND / 2, SECOND / 2), None);
        assert_eq!(coverage.judge(2 * SECOND, SECOND / 5 + 9 * SECOND / 10), None);
        assert_eq!(coverage.judge(3 * SECOND, SECOND / 5 + 16 * SECOND / 10), Some(3989));
        assert_eq!(coverage.judge(9 * SECOND, 2 * SECOND), None, "none is left");
        assert_eq!(coverage.next.len(), 0);
    }

    #[test]
    fn nothing_rises_where_samples_stand_for_all() {
        let mut coverage = ClockCoverage::default();
        assert!((1..20).all(|second| coverage.judge(second * SECOND, second * SECOND).is_none()));
        assert_eq!(coverage.next.len(), FREQUENCIES.len());
    }
}
