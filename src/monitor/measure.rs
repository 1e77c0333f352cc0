//! A rate in, the number that people asked for out: per second, per instruction, in total.

use super::{Monitor, Point, Row};
use crate::rates::{Error, Moments};
use crate::recording::Header;

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

    /// The suffix of a number: `/cpu-s`; empty for totals. A model's time is its instructions, of which
    /// it executes one a nanosecond, so that its second is 10^9 of them: `/Ginst`.
    pub fn suffix(self, header: &Header) -> &'static str {
        match self {
            Self::PerCpuSecond if header.modelled.is_some() => "/Ginst",
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

impl Measure {
    /// The intervals of an event with rates, errors and estimates in this measure. Totals have
    /// none of their own, as they grow all the time: they get rates per CPU second.
    ///
    /// An interval in which no task was on a CPU has no rate per CPU second, and a rate of 0 per
    /// second of wall-clock time.
    pub fn points(self, monitor: &Monitor, row: &Row<'_>) -> Vec<Point> {
        let instructions = monitor.instructions_row().map(|row| row.history);
        let converted = |(place, point): (usize, &Point)| match self {
            Self::PerCpuSecond | Self::Total => point.times(1000.0),
            Self::PerSecond if point.enabled.0 == 0 => {
                Point { rate: Some(0.0), error: Error::Exact, ..point.times(0.0) }
            }
            Self::PerSecond => {
                positive(point.length.as_secs()).map_or(*point, |wall| point.times(point.enabled.as_ms() / wall))
            }
            Self::PerKiloInstruction => {
                let rate = instructions.and_then(|history| history.get(place)?.rate).and_then(positive);
                rate.map_or(Point { rate: None, estimate: None, ..*point }, |rate| point.times(1000.0 / rate))
            }
        };
        row.history.iter().enumerate().map(converted).collect()
    }

    /// The variance between intervals in the square of this measure; `None` for totals, of which
    /// there is one.
    pub fn variance(self, monitor: &Monitor, row: &Row<'_>) -> Option<f64> {
        match self {
            Self::PerCpuSecond => row.raw.rate.variance().map(|variance| variance * 1e6),
            Self::Total => None,
            Self::PerSecond | Self::PerKiloInstruction => {
                let mut moments = Moments::default();
                for point in self.points(monitor, row) {
                    let weight = if self == Self::PerSecond { point.length.as_ms() } else { point.running.as_ms() };
                    point.rate.into_iter().for_each(|rate| moments.add(rate, weight));
                }
                moments.variance()
            }
        }
    }
}

fn positive(number: f64) -> Option<f64> {
    (number > 0.0).then_some(number)
}

impl Monitor {
    /// The scaled count of instructions, if an event counts them.
    pub fn instructions(&self) -> Option<f64> {
        positive(self.instructions_row()?.raw.run.estimate()?)
    }

    fn instructions_row(&self) -> Option<Row<'_>> {
        self.rows().find(|row| row.event.event.is_called("instructions") || row.event.event.canonical == "Ir")
    }
}
