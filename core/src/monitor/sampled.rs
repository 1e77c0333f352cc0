//! Says whether samples of CPU time stand for little of it.

use super::Monitor;
use crate::run::MeasuredTarget;
use crate::units::{CpuNs, WallNs};

/// Samples of less than this part of the CPU time, of so many seconds at least, are little.
const LITTLE: f64 = 0.7;
const LEAST_CPU_SECONDS: f64 = 0.5;

impl Monitor {
    /// The part of the CPU time that the samples of `event` stand for, where it is small: a thread that uses less than
    /// passes between two samples has none. `length` is the time in which they were taken; of a part of what is shown
    /// they are held against its mean CPU time. `None` of other events, and of CPUs and machines, which are idle as
    /// well.
    pub fn little_sampled(&self, event: &str, sampled: CpuNs, length: WallNs) -> Option<f64> {
        let is_of_time = matches!(event, "cpu-clock" | "task-clock");
        let is_of_tasks = !matches!(self.header.target, MeasuredTarget::Everyone { .. });
        let used = self.mean_cpu_share().filter(|_| is_of_time && is_of_tasks)? * length.as_secs();
        little(sampled.0 as f64 / 1e9, used)
    }
}

fn little(sampled: f64, used: f64) -> Option<f64> {
    let part = sampled / used;
    (used >= LEAST_CPU_SECONDS && part < LITTLE).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::little;

    #[test]
    fn little_is_less_than_seven_tenths_by_hand() {
        assert_eq!([little(0.5, 2.0), little(1.4, 2.0), little(0.0, 0.5)], [Some(0.25), None, Some(0.0)]);
        // Nothing is told of so short a time, nor of none.
        assert_eq!([little(0.1, 0.4), little(0.0, 0.0)], [None, None]);
    }
}
