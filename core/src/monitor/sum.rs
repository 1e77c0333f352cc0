//! Sums the parts of an event, one for each thread or CPU.
//!
//! Counts and times add up. Errors do so in squares, as those of numbers that were counted
//! independently: each CPU and each thread goes through the groups at its own pace.

use std::collections::HashMap;

use super::measure::modelled_instructions;
use super::row::corrects;
use super::spread::{Extremes, IntervalSpread};
use super::{Absence, Measure, Monitor, Point, Row};
use crate::events::EventKind;
use crate::plan::RowIndex;
use crate::rates::{Error, ScopeIndex, Uncertain};
use crate::run::{Header, places};
use crate::sources::Scope;
use crate::units::CpuNs;

/// An event that is counted for each part of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummedEvent {
    /// Name of the event.
    pub name: String,
    /// Places of the parts in the list of events.
    pub events: Vec<RowIndex>,
}

/// What the parts of an event counted together, up to the end of the last interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// The sum of the scaled counts; `None` if no part has one. Its error isn't known where a part was
    /// never seen although it ran.
    pub scaled: Option<Uncertain>,
    /// Sum of what the estimator makes of the parts.
    pub estimate: Option<Uncertain>,
    /// CPU time of all parts.
    pub enabled: CpuNs,
    /// Time on a counter, summed over the parts.
    pub running: CpuNs,
    /// Why there is no number, if no part has one.
    pub absence: Option<Absence>,
}

impl Sum {
    /// Whether estimates moved the sum of the scaled counts, or narrowed its interval.
    pub fn is_corrected(&self) -> bool {
        self.scaled.zip(self.estimate).is_some_and(|(scaled, estimate)| corrects(scaled, estimate))
    }

    /// Running over enabled; `None` if no CPU time passed.
    pub fn run_ratio(&self) -> Option<f64> {
        (self.enabled.0 > 0).then(|| (self.running.0 as f64 / self.enabled.0 as f64).min(1.0))
    }
}

/// Numbers that are added up.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    value: f64,
    /// Sums of the squares of both sides.
    below: f64,
    above: f64,
    numbers: usize,
    has_unknown: bool,
}

impl Total {
    /// A part without a number leaves the sum without an error, unless it had no time to count in.
    fn add(&mut self, number: Option<Uncertain>, enabled: CpuNs) {
        let Some(number) = number else {
            self.has_unknown |= enabled.0 > 0;
            return;
        };
        self.numbers += 1;
        self.value += number.value;
        match number.error {
            Error::Exact => {}
            Error::Within { below, above } => {
                self.below += below * below;
                self.above += above * above;
            }
            Error::Unknown => self.has_unknown = true,
        }
    }

    fn sum(self) -> Option<Uncertain> {
        let error = match self {
            Self { has_unknown: true, .. } => Error::Unknown,
            Self { below: 0.0, above: 0.0, .. } => Error::Exact,
            Self { below, above, .. } => Error::Within { below: below.sqrt(), above: above.sqrt() },
        };
        (self.numbers > 0).then_some(Uncertain { value: self.value, error })
    }
}

/// The part of the target that each event is about, by the order of the parts' first events.
pub(super) fn scopes(header: &Header) -> Vec<ScopeIndex> {
    places(header.events.iter().map(|event| &event.scope))
}

/// The same for the CPU time of a part, with the events that perfprop added: tool events are apart, as their time is
/// the one that passes.
pub(super) fn scopes_of_time(header: &Header) -> Vec<ScopeIndex> {
    places(header.estimated().map(|event| (&event.scope, event.event.kind == EventKind::Tool)))
}

/// The events that are counted for each part of the target, in the order of their first parts.
pub(super) fn parts(header: &Header) -> Vec<SummedEvent> {
    let mut all: Vec<SummedEvent> = Vec::new();
    let (mut asked, mut places) = (HashMap::new(), HashMap::new());
    for (index, event) in header.events.iter().enumerate().filter(|(_, event)| event.scope != Scope::All) {
        let name = event.event.name.as_str();
        // One that was asked for twice has a sum each time.
        let times: &mut usize = asked.entry((name, &event.scope)).or_default();
        let place = *places.entry((name, *times)).or_insert_with(|| {
            all.push(SummedEvent { name: name.to_owned(), events: Vec::new() });
            all.len() - 1
        });
        all[place].events.push(index);
        *times += 1;
    }
    all
}

impl Monitor {
    /// The events that are counted for each part of the target, in the order of their first parts.
    pub fn parts(&self) -> &[SummedEvent] {
        &self.parts
    }

    /// Takes the interval that has ended into the spreads of all sums.
    pub(super) fn spread_sums(&mut self) {
        if self.parts.is_empty() {
            return;
        }
        let newest = |events: &[RowIndex]| self.sum_points(events, 1).pop();
        let instructions = |events: &[RowIndex]| newest(&self.instructions(events)).and_then(|point| point.raw);
        let is_modelled = self.header.modelled.is_some();
        let sums: Vec<_> =
            self.parts.iter().map(|parts| (newest(&parts.events), instructions(&parts.events))).collect();
        for (spread, (sum, instructions)) in self.spreads.iter_mut().zip(sums) {
            let modelled = |sum: &Point| is_modelled.then(|| modelled_instructions(sum.cpu_time));
            spread.add(|measure| sum.map(|sum| measure.of_sum(&sum, modelled(&sum).or(instructions))));
        }
    }

    fn spread_of_sum(&self, events: &[RowIndex]) -> Option<&IntervalSpread> {
        let place = self.parts.iter().position(|parts| parts.events == events)?;
        self.spreads.get(place)
    }

    /// What some events counted together.
    ///
    /// # Panics
    /// Panics if one of the events doesn't exist.
    pub fn sum(&self, events: &[RowIndex]) -> Sum {
        let (mut scaled, mut estimate) = (Total::default(), Total::default());
        let mut sum = Sum::default();
        for row in events.iter().map(|&event| self.row(event)) {
            let total = row.raw.run.total();
            let unseen = unseen(&row);
            scaled.add(row.scaled, unseen);
            estimate.add(row.estimate.total, unseen);
            sum.enabled += total.enabled;
            sum.running += total.running;
            // What may still come says more than what never will.
            sum.absence = sum.absence.or(row.absence);
        }
        (sum.scaled, sum.estimate) = (scaled.sum(), estimate.sum());
        if sum.scaled.is_some() || sum.estimate.is_some() {
            sum.absence = None;
        }
        sum
    }

    /// The newest intervals of some events together, as counts.
    fn sum_points(&self, events: &[RowIndex], most: usize) -> Vec<Point> {
        let histories: Vec<_> = events.iter().map(|&event| &self.tracks[event].history).collect();
        let length = histories.iter().map(|history| history.len()).min().unwrap_or(0);
        (length.saturating_sub(most)..length)
            .map(|place| sum_of(histories.iter().map(|history| &history[place])))
            .collect()
    }
}

/// The time in which a part could have counted something that nobody saw. One that isn't open may
/// have missed anything.
fn unseen(row: &Row<'_>) -> CpuNs {
    match row.absence {
        Some(Absence::NotSupported | Absence::Forbidden | Absence::InUse | Absence::TakenOff) => CpuNs(u64::MAX),
        _ => row.raw.run.total().enabled,
    }
}

fn sum_of<'a>(parts: impl Iterator<Item = &'a Point>) -> Point {
    let (mut sum, mut raw, mut corrected) = (Point::default(), Total::default(), Total::default());
    for part in parts {
        (sum.at, sum.length) = (part.at, part.length);
        sum.cpu_time += part.counted.enabled;
        sum.counted.count = sum.counted.count.saturating_add(part.counted.count);
        sum.counted.enabled += part.counted.enabled;
        sum.counted.running += part.counted.running;
        raw.add(part.raw, part.counted.enabled);
        corrected.add(part.corrected, part.counted.enabled);
    }
    Point { raw: raw.sum(), corrected: corrected.sum(), ..sum }
}

impl Measure {
    /// What the sum of these events over the run is to be multiplied with; `None` where that isn't known.
    pub fn factor_of_sum(self, monitor: &Monitor, events: &[RowIndex], sum: &Sum) -> Option<Uncertain> {
        self.of_span(sum.enabled, monitor.shown_time_counted(), || match monitor.header.modelled {
            Some(_) => Some(modelled_instructions(sum.enabled)),
            None => monitor.sum(&monitor.instructions(events)).scaled,
        })
    }

    /// The variance of the scaled rate of a sum between intervals; `None` for totals, and for what is no sum.
    pub fn variance_of_sum(self, monitor: &Monitor, events: &[RowIndex]) -> Option<f64> {
        monitor.spread_of_sum(events)?.variance(self)
    }

    /// The extremes of the intervals of a sum: scaled, and estimated; none for totals, and for what is no sum.
    pub fn extremes_of_sum(self, monitor: &Monitor, events: &[RowIndex]) -> (Option<Extremes>, Option<Extremes>) {
        monitor.spread_of_sum(events).map_or((None, None), |spread| spread.extremes(self))
    }

    /// The newest intervals of some events together in this measure.
    pub fn points_of_sum(self, monitor: &Monitor, events: &[RowIndex], most: usize) -> Vec<Point> {
        let instructions = match self {
            Self::PerKiloInstruction => monitor.sum_points(&monitor.instructions(events), most),
            _ => Vec::new(),
        };
        let points = monitor.sum_points(events, most);
        let is_modelled = monitor.header.modelled.is_some();
        let of_point = |(place, point): (usize, &Point)| {
            let count = if is_modelled {
                Some(modelled_instructions(point.cpu_time))
            } else {
                instructions.get(place).and_then(|one| one.raw)
            };
            self.of_sum(point, count)
        };
        points.iter().enumerate().map(of_point).collect()
    }

    /// An interval of a sum in this measure, beside the number of instructions in it.
    fn of_sum(self, sum: &Point, instructions: Option<Uncertain>) -> Point {
        sum.times(self.of_span(sum.cpu_time, sum.length, || instructions))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::builders;
    use crate::run::MeasuredEvent;

    fn number(value: f64, below: f64, above: f64) -> Option<Uncertain> {
        Some(Uncertain { value, error: Error::Within { below, above } })
    }

    fn total(parts: &[(Option<Uncertain>, u64)]) -> Option<Uncertain> {
        let mut total = Total::default();
        parts.iter().for_each(|&(part, enabled)| total.add(part, CpuNs(enabled)));
        total.sum()
    }

    #[test]
    fn errors_add_up_in_squares() {
        // 3 and 4 make 5, 6 and 8 make 10.
        let sum = total(&[(number(10.0, 3.0, 6.0), 1), (number(20.0, 4.0, 8.0), 1)]);
        assert_eq!(sum, number(30.0, 5.0, 10.0));
        let exact = Some(Uncertain::exact(7.0));
        assert_eq!(total(&[(exact, 1), (exact, 1)]), Some(Uncertain::exact(14.0)));
    }

    #[test]
    fn an_event_that_was_asked_for_twice_has_two_sums() {
        let of_cpu = |(name, cpu): (&str, u32)| MeasuredEvent {
            scope: Scope::Cpu(cpu),
            ..builders::measured(builders::event(name))
        };
        let rows = [("a", 0), ("b", 0), ("a", 0), ("a", 1), ("b", 1), ("a", 1)];
        let all = parts(&builders::header(rows.map(of_cpu)));
        let sums: Vec<_> = all.iter().map(|sum| (sum.name.as_str(), sum.events.as_slice())).collect();
        assert_eq!(sums, [("a", &[0, 3][..]), ("b", &[1, 4]), ("a", &[2, 5])]);
        assert_eq!(parts(&builders::header([])), []);
    }

    #[test]
    fn what_was_not_seen_is_not_0() {
        assert_eq!(total(&[]), None);
        assert_eq!(total(&[(None, 5)]), None);
        let unknown = Some(Uncertain { value: 7.0, error: Error::Unknown });
        assert_eq!(total(&[(Some(Uncertain::exact(7.0)), 5), (None, 5)]), unknown);
        // A thread that had no CPU time counted nothing.
        assert_eq!(total(&[(Some(Uncertain::exact(7.0)), 5), (None, 0)]), Some(Uncertain::exact(7.0)));
    }

    proptest! {
        #[test]
        fn a_sum_is_no_surer_than_its_worst_part_and_no_worse_than_all_together(
            parts in prop::collection::vec((0f64..1e6, 1f64..1e4, 1f64..1e4), 1..20),
        ) {
            let all: Vec<_> = parts.iter().map(|&(value, below, above)| (number(value, below, above), 1)).collect();
            let half = total(&all).and_then(|sum| sum.error.half_width()).unwrap_or(f64::NAN);
            let sides = parts.iter().map(|&(_, below, above)| below.max(above));
            let worst = sides.clone().fold(0.0, f64::max);
            let (belows, aboves) = (parts.iter().map(|part| part.1), parts.iter().map(|part| part.2));
            prop_assert!(half >= worst * 0.999_999 && half <= belows.sum::<f64>().max(aboves.sum::<f64>()) * 1.000_001);
        }
    }
}
