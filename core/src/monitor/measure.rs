//! Converts counts to a measure: per second, per instruction, in total; each event's usual one unless another was asked
//! for.

use super::spread::Extremes;
use super::{Monitor, Point, Row};
use crate::events::{Event, EventKind, Unit};
use crate::plan::RowIndex;
use crate::rates::{Error, ScopeIndex, Uncertain, number_of_scopes};
use crate::run::{Header, MeasuredEvent, MeasuredTarget};
use crate::units::{CpuNs, WallNs};

/// The measure of each event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasureChoice {
    /// Each has its [usual one](Monitor::usual_measure).
    #[default]
    Usual,
    /// All have this one.
    Every(Measure),
}

impl MeasureChoice {
    /// All choices, in the order in which a key goes through them.
    const ALL: [Self; 5] = [
        Self::Usual,
        Self::Every(Measure::PerCpuSecond),
        Self::Every(Measure::PerSecond),
        Self::Every(Measure::PerKiloInstruction),
        Self::Every(Measure::Total),
    ];

    /// The measure of an event.
    pub fn of(self, monitor: &Monitor, event: RowIndex) -> Measure {
        match self {
            Self::Usual => monitor.usual_measure(event),
            Self::Every(measure) => measure,
        }
    }

    /// The next choice in the order of the screens.
    #[must_use]
    pub fn next(self) -> Self {
        let place = Self::ALL.iter().position(|&choice| choice == self).unwrap_or(0);
        Self::ALL[(place + 1) % Self::ALL.len()]
    }
}

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
    /// All measures.
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
        header.modelled.is_some() && self != Self::PerSecond
    }

    /// What a count over the run is to be multiplied with; `None` where that isn't known: no
    /// instructions were counted, no time passed. Instructions that were counted for a part of the time have an error.
    pub fn factor(self, monitor: &Monitor, row: &Row<'_>) -> Option<Uncertain> {
        if !self.suits(row) {
            return None;
        }
        self.of_span(row.cpu_time, monitor.shown_time_counted(), || match monitor.header.modelled {
            Some(_) => Some(modelled_instructions(row.cpu_time)),
            None => monitor.instructions_row(row)?.scaled,
        })
    }

    /// Time that passes has no rate per CPU second: its own time isn't that of the target.
    fn suits(self, row: &Row<'_>) -> bool {
        self != Self::PerCpuSecond || row.event.event.kind != EventKind::Tool
    }

    pub(super) fn of_span(
        self,
        cpu: CpuNs,
        wall: WallNs,
        instructions: impl FnOnce() -> Option<Uncertain>,
    ) -> Option<Uncertain> {
        let exactly = |factor: Option<f64>| factor.map(Uncertain::exact);
        match self {
            Self::PerCpuSecond => exactly(positive(cpu.as_secs()).map(f64::recip)),
            Self::PerSecond => exactly(positive(wall.as_secs()).map(f64::recip)),
            Self::PerKiloInstruction => per_thousand(instructions()?),
            Self::Total => exactly(Some(1.0)),
        }
    }

    /// The intervals of an event with their counts in this measure.
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
            let instructions = || match monitor.header.modelled {
                Some(_) => Some(modelled_instructions(point.cpu_time)),
                None => instructions?.get(place)?.raw,
            };
            let measure = Some(self).filter(|measure| measure.suits(row));
            point.times(measure.and_then(|measure| measure.of_span(point.cpu_time, point.length, instructions)))
        };
        row.history.iter().enumerate().skip(row.history.len().saturating_sub(most)).map(converted).collect()
    }

    /// The variance between intervals in the square of this measure; `None` for totals, of which
    /// there is one.
    pub fn variance(self, monitor: &Monitor, row: &Row<'_>) -> Option<f64> {
        match self {
            Self::PerCpuSecond => row.raw.rate.variance().map(|variance| variance * 1e6),
            Self::PerSecond | Self::PerKiloInstruction | Self::Total => monitor.tracks[row.index].spread.variance(self),
        }
    }

    /// The variance between intervals as the estimator has it. A relation corrects it per CPU second; in another
    /// measure it is larger or smaller by the same factor.
    pub fn best_variance(self, monitor: &Monitor, row: &Row<'_>) -> Option<f64> {
        let Some(corrected) = row.corrected_variance() else { return self.variance(monitor, row) };
        match self {
            Self::PerCpuSecond => Some(corrected * 1e6),
            Self::PerSecond | Self::PerKiloInstruction | Self::Total => {
                let counted = row.raw.rate.variance().and_then(positive)?;
                self.variance(monitor, row).map(|variance| variance * corrected / counted)
            }
        }
    }

    /// The extremes of an event's intervals: scaled, and estimated; none for totals.
    pub fn extremes(self, monitor: &Monitor, event: RowIndex) -> (Option<Extremes>, Option<Extremes>) {
        monitor.tracks[event].spread.extremes(self)
    }
}

fn positive(number: f64) -> Option<f64> {
    (number > 0.0).then_some(number)
}

/// Under a model an instruction takes a nanosecond.
pub(super) fn modelled_instructions(time: CpuNs) -> Uncertain {
    Uncertain::exact(time.0 as f64)
}

/// 1,000 over a number of instructions; `None` if there were none.
fn per_thousand(instructions: Uncertain) -> Option<Uncertain> {
    let value = 1000.0 / positive(instructions.value)?;
    let error = match instructions.error {
        // Of nearly none, any number is too few.
        Error::Within { below, .. } if below >= instructions.value => Error::Unknown,
        Error::Within { below, above } => Error::Within {
            below: value - 1000.0 / (instructions.value + above),
            above: 1000.0 / (instructions.value - below) - value,
        },
        other => other,
    };
    Some(Uncertain { value, error })
}

/// Whether an event counts what code takes to run, which is looked at by time: cycles, instructions, slots.
fn is_pace(event: &Event) -> bool {
    let name = event.canonical.to_ascii_lowercase();
    event.is_called("instructions")
        || event.canonical == "Ir"
        || ["cycle", "clk", "inst_retired", "slots"].iter().any(|word| name.contains(word))
}

/// For each event the one that counts the instructions of the same part of the target, and of user space and kernel the
/// same, if one does.
pub(super) fn instructions(header: &Header, scopes: &[ScopeIndex]) -> Vec<Option<RowIndex>> {
    let counts = |event: &Event| {
        event.is_called("instructions") || event.name_on_core() == "instructions" || event.canonical == "Ir"
    };
    let mut of_scopes: Vec<Vec<RowIndex>> = vec![Vec::new(); number_of_scopes(scopes)];
    for (index, _) in header.events.iter().enumerate().filter(|(_, event)| counts(&event.event)) {
        of_scopes[scopes[index]].push(index);
    }
    let of = |(event, &scope): (&MeasuredEvent, &ScopeIndex)| {
        of_scopes[scope].iter().copied().find(|&index| header.events[index].event.counts_beside(&event.event))
    };
    header.events.iter().zip(scopes).map(of).collect()
}

impl Monitor {
    /// The events that count the instructions of each of these events; none where one of them has none.
    pub(super) fn instructions(&self, events: &[RowIndex]) -> Vec<RowIndex> {
        events.iter().map(|&event| self.instructions[event]).collect::<Option<_>>().unwrap_or_default()
    }

    /// The measure in which an event is looked at:
    ///
    /// - per second: what the kernel counts, what isn't a number of occurrences, all that a whole machine or a control
    ///   group does, and cycles and instructions of a model, whose CPU time is its instructions
    /// - per second of CPU time: other cycles, instructions and slots, and all events beside which no instructions are
    ///   counted
    /// - per 1,000 instructions: what else code does, such as cache misses
    pub fn usual_measure(&self, event: RowIndex) -> Measure {
        let counted = &self.header.events[event].event;
        let is_of_machine =
            matches!(self.header.target, MeasuredTarget::Everyone { .. } | MeasuredTarget::Cgroup { .. });
        let knows_instructions = self.header.modelled.is_some() || self.instructions[event].is_some();
        let is_models_pace = self.header.modelled.is_some() && is_pace(counted);
        if is_of_machine || counted.kind.is_software() || counted.unit != Unit::Count || is_models_pace {
            Measure::PerSecond
        } else if is_pace(counted) || !knows_instructions {
            Measure::PerCpuSecond
        } else {
            Measure::PerKiloInstruction
        }
    }

    /// Takes the interval that has ended into the spreads of all events.
    pub(super) fn spread_events(&mut self) {
        for event in 0..self.tracks.len() {
            let row = self.row(event);
            let mut spread = self.tracks[event].spread;
            spread.add(|measure| measure.newest(self, &row, 1).pop());
            self.tracks[event].spread = spread;
        }
    }

    /// Whether counts can be expressed per instruction.
    pub fn knows_instructions(&self) -> bool {
        self.header.modelled.is_some() || self.instructions.iter().any(Option::is_some)
    }

    /// Instructions of the part of the target that a row is about.
    fn instructions_row(&self, row: &Row<'_>) -> Option<Row<'_>> {
        self.instructions[row.index].map(|index| self.row(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(value: f64, below: f64, above: f64) -> Uncertain {
        Uncertain { value, error: Error::Within { below, above } }
    }

    #[test]
    fn a_thousand_instructions_by_hand() {
        // Between 200 and 500 of them: 1,000 are 2 to 5 times as many.
        let factor = per_thousand(within(250.0, 50.0, 250.0));
        assert_eq!(factor, Some(within(4.0, 2.0, 1.0)));
        assert_eq!(per_thousand(Uncertain::exact(0.0)), None);
        assert_eq!(per_thousand(within(250.0, 250.0, 0.0)).map(|factor| factor.error), Some(Error::Unknown));
        // 300 misses ±30 % of 2,000 instructions ±40 %: half as wrong again, as 3, 4, 5.
        let misses = within(300.0, 90.0, 90.0).times(within(0.5, 0.2, 0.2));
        assert_eq!(misses.value, 150.0);
        assert!(
            matches!(misses.error, Error::Within { below, above } if (below - 75.0).abs() < 1e-9 && above == below)
        );
        assert_eq!(Uncertain::exact(3.0).times(Uncertain::exact(2.0)), Uncertain::exact(6.0));
        assert_eq!(within(1.0, 0.0, 1.0).times(Uncertain { value: 2.0, error: Error::Unknown }).error, Error::Unknown);
    }

    #[test]
    fn paces_are_looked_at_by_time() {
        let event = |name: &str| Event { canonical: name.into(), ..crate::builders::event(name) };
        for name in ["cycles", "cpu-cycles", "CPU_CLK_UNHALTED.THREAD", "instructions", "INST_RETIRED.ANY", "slots"] {
            assert!(is_pace(&event(name)), "{name}");
        }
        assert!(!["L1_MISSES", "branch-misses", "LLC-loads"].iter().any(|name| is_pace(&event(name))));
    }

    #[test]
    fn the_key_goes_round() {
        let all: Vec<_> =
            std::iter::successors(Some(MeasureChoice::default()), |choice| Some(choice.next())).take(6).collect();
        assert_eq!(all[..5], MeasureChoice::ALL);
        assert_eq!(all[5], MeasureChoice::Usual);
    }
}
