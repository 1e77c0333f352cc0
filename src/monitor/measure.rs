//! A rate in, the number that people asked for out: per second, per instruction, in total.

use super::{Monitor, Row};

/// How counts are expressed on screens and in texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// Per second of CPU time.
    #[default]
    PerCpuSecond,
    /// Per second of wall-clock time.
    PerSecond,
    /// Per 1,000 instructions, where an event counts those.
    PerKiloInstruction,
    /// Over the whole run.
    Total,
}

impl Measure {
    /// All, in the order in which a key goes through them.
    pub const ALL: [Self; 4] = [Self::PerCpuSecond, Self::PerSecond, Self::PerKiloInstruction, Self::Total];

    /// The suffix of a number: `/cpu-s`; empty for totals.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::PerCpuSecond => "/cpu-s",
            Self::PerSecond => "/s",
            Self::PerKiloInstruction => "/kinst",
            Self::Total => "",
        }
    }

    /// The next one.
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&measure| measure == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }

    /// What a mean rate over the run, in counts per millisecond of CPU time, is to be multiplied
    /// with; `None` where that isn't known: no instructions were counted, no time passed.
    pub fn factor(self, monitor: &Monitor, row: &Row<'_>) -> Option<f64> {
        let enabled = row.raw.run.total().enabled.as_ms();
        match self {
            Self::PerCpuSecond => Some(1000.0),
            Self::PerSecond => positive(monitor.now().as_secs()).map(|seconds| enabled / seconds),
            Self::PerKiloInstruction => monitor.instructions().map(|count| enabled / (count / 1000.0)),
            Self::Total => Some(enabled),
        }
    }
}

fn positive(number: f64) -> Option<f64> {
    (number > 0.0).then_some(number)
}

impl Monitor {
    /// The scaled count of instructions, if an event counts them.
    pub fn instructions(&self) -> Option<f64> {
        let row = self.rows().find(|row| row.event.event.is_called("instructions"))?;
        positive(row.raw.run.estimate()?)
    }
}
