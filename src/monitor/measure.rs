//! Converts counts to the measure that was asked for: per second, per instruction, in total.

use super::{Monitor, Point, Row};
use crate::events::{Event, EventKind};
use crate::plan::RowIndex;
use crate::rates::{Moments, ScopeIndex};
use crate::run::Header;
use crate::units::{CpuNs, WallNs};

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
    /// All measures, in the order in which a key goes through them.
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

    /// Whether charts have a model's instructions for their time: rates by wall-clock time have that.
    pub fn is_by_instructions(self, header: &Header) -> bool {
        header.modelled.is_some() && self.of_intervals() != Self::PerSecond
    }

    /// The next measure in the order of the screens.
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&measure| measure == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }

    /// The measure of single intervals: a total grows all the time, so that of it is the rate.
    pub fn of_intervals(self) -> Self {
        if self == Self::Total { Self::PerCpuSecond } else { self }
    }

    /// What a count over the run is to be multiplied with; `None` where that isn't known: no
    /// instructions were counted, no time passed.
    pub fn factor(self, monitor: &Monitor, row: &Row<'_>) -> Option<f64> {
        if !self.suits(row) {
            return None;
        }
        self.of_span(row.cpu_time, monitor.closed_at(), || positive(monitor.instructions_row(row)?.scaled?.value))
    }

    /// Time that passes has no rate per CPU second: its own time isn't that of the target.
    fn suits(self, row: &Row<'_>) -> bool {
        self != Self::PerCpuSecond || row.event.event.kind != EventKind::Tool
    }

    pub(super) fn of_span(self, cpu: CpuNs, wall: WallNs, instructions: impl FnOnce() -> Option<f64>) -> Option<f64> {
        match self {
            Self::PerCpuSecond => positive(cpu.as_secs()).map(f64::recip),
            Self::PerSecond => positive(wall.as_secs()).map(f64::recip),
            Self::PerKiloInstruction => instructions().map(|count| 1000.0 / count),
            Self::Total => Some(1.0),
        }
    }

    /// The intervals of an event with their counts in this measure, or, for totals, per CPU second.
    ///
    /// An interval in which no task was on a CPU has no rate per CPU second, and a rate of 0 per
    /// second of wall-clock time.
    pub fn points(self, monitor: &Monitor, row: &Row<'_>) -> Vec<Point> {
        self.newest(monitor, row, usize::MAX)
    }

    /// The newest of [`points`](Self::points), as many as are requested.
    pub fn newest(self, monitor: &Monitor, row: &Row<'_>, most: usize) -> Vec<Point> {
        let instructions = monitor.instructions_row(row).map(|row| row.history);
        let converted = |(place, point): (usize, &Point)| {
            let instructions = || positive(instructions?.get(place)?.raw?.value);
            let measure = Some(self.of_intervals()).filter(|measure| measure.suits(row));
            point.times(measure.and_then(|measure| measure.of_span(point.cpu_time, point.length, instructions)))
        };
        row.history.iter().enumerate().skip(row.history.len().saturating_sub(most)).map(converted).collect()
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
                    let running = point.counted.running.as_ms();
                    let weight = if self == Self::PerSecond { point.length.as_ms() } else { running };
                    point.raw.into_iter().for_each(|raw| moments.add(raw.value, weight));
                }
                moments.variance()
            }
        }
    }
}

fn positive(number: f64) -> Option<f64> {
    (number > 0.0).then_some(number)
}

/// The event that counts instructions of each part of the target, if one does.
pub(super) fn instructions(header: &Header, scopes: &[ScopeIndex]) -> Vec<Option<RowIndex>> {
    let counts = |event: &Event| event.is_called("instructions") || event.canonical == "Ir";
    let first = header.events.iter().find(|event| counts(&event.event)).map(|event| &event.event.name);
    let mut found = vec![None; scopes.iter().max().map_or(0, |last| last + 1)];
    let named = header.events.iter().enumerate().filter(|(_, event)| Some(&event.event.name) == first);
    for (index, _) in named {
        let place: &mut Option<RowIndex> = &mut found[scopes[index]];
        *place = place.or(Some(index));
    }
    found
}

impl Monitor {
    /// The events that count instructions, one for each part of the target.
    pub(super) fn instructions(&self) -> Vec<RowIndex> {
        self.instructions.iter().flatten().copied().collect()
    }

    /// Instructions of the part of the target that a row is about.
    fn instructions_row(&self, row: &Row<'_>) -> Option<Row<'_>> {
        self.instructions[self.scopes[row.index]].map(|index| self.row(index))
    }
}
