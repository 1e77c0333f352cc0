//! Finds the numbers of recordings that are compared: of each event and metric, in the measure that all recordings can
//! have.

use std::collections::HashMap;

use super::{ComparedEvent, ComparedNumber, Runs, Side, Verdict};
use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice, Monitor, Row};
use crate::rates::Uncertain;
use crate::run::{End, Header, MeasuredTarget};
use crate::sources::command::Exit;

/// Name of the time that commands took.
pub(super) const ELAPSED_TIME: &str = "elapsed time";

/// What each side's runs measured, without the ids of processes, in the order of runs, with how many runs did.
pub(super) fn programs(sides: [&[&Monitor]; 2]) -> [Vec<(String, usize)>; 2] {
    sides.map(|side| {
        let mut found: Vec<(String, usize)> = Vec::new();
        for program in side.iter().map(|run| program(run.header())) {
            match found.iter_mut().find(|(other, _)| *other == program) {
                Some((_, runs)) => *runs += 1,
                None => found.push((program, 1)),
            }
        }
        found
    })
}

fn program(header: &Header) -> String {
    match &header.target {
        MeasuredTarget::Command { argv, .. } => argv.join(" "),
        MeasuredTarget::Processes(all) | MeasuredTarget::Threads(all) => {
            all.iter().map(|process| process.name.as_str()).collect::<Vec<_>>().join(", ")
        }
        MeasuredTarget::Everyone { .. } | MeasuredTarget::Cgroup { .. } | MeasuredTarget::File { .. } => header.title(),
    }
}

/// Why a recording has no total to compare; `None` of a command that ended by itself.
pub(super) fn is_part(header: &Header, end: Option<&End>) -> Option<&'static str> {
    match (&header.target, end) {
        (MeasuredTarget::Command { .. }, Some(End { was_ended_by_perfprop: true, .. })) => {
            Some("is of a command that perfprop ended")
        }
        (MeasuredTarget::Command { .. }, Some(End { exit: Some(Exit::Code(_)), .. })) => None,
        (MeasuredTarget::Command { .. }, None) => Some("has no end"),
        (MeasuredTarget::Command { .. }, Some(_)) => Some("is of a command that didn't end by itself"),
        _ => Some("is of no command"),
    }
}

/// The first recording that has no total to compare, in words: `recording 2 of B is of no command`. `None` where all
/// have one, or none has.
pub(super) fn first_part(sides: [&[&Monitor]; 2]) -> Option<String> {
    let of_side = |(letter, side): (char, &[&Monitor])| {
        let words = side.iter().map(|run| is_part(run.header(), run.ended())).zip(1..);
        words.map(|(words, number)| Some(format!("recording {number} of {letter} {}", words?))).collect::<Vec<_>>()
    };
    let all: Vec<_> = ['A', 'B'].into_iter().zip(sides).flat_map(of_side).collect();
    if all.iter().all(Option::is_some) { None } else { all.into_iter().flatten().next() }
}

/// A drift of the machine then looks like a difference. Old recordings don't say when they were made.
pub(super) fn is_one_after_other(a: &[&Monitor], b: &[&Monitor]) -> bool {
    let ends = |side: &[&Monitor]| {
        let starts = side.iter().map(|monitor| monitor.header().started);
        (starts.clone().fold(f64::INFINITY, f64::min), starts.fold(f64::NEG_INFINITY, f64::max))
    };
    let (a_ends, b_ends) = (ends(a), ends(b));
    a.len() > 1 && b.len() > 1 && (a_ends.1 < b_ends.0 || b_ends.1 < a_ends.0)
}

/// How long commands took; `None` of what is no command, was slowed down by a model, or has it as an event.
pub(super) fn elapsed_time(sides: [&[&Monitor]; 2]) -> Option<ComparedEvent> {
    let is_timed = |monitor: &&&Monitor| {
        let header = monitor.header();
        let has_event = header.events.iter().any(|event| event.event.is_called("duration_time"));
        matches!(header.target, MeasuredTarget::Command { .. }) && header.modelled.is_none() && !has_event
    };
    let of_side = |side: &[&Monitor]| Runs {
        is_listed: true,
        numbers: side.iter().map(|monitor| Uncertain::exact(monitor.counted_for().0 as f64)).collect(),
        ..Runs::default()
    };
    let are_all = sides.iter().all(|side| side.iter().all(|monitor| is_timed(&monitor)));
    are_all.then(|| ComparedEvent::new(ELAPSED_TIME.to_owned(), Unit::Nanoseconds, sides.map(of_side)))
}

/// All events with their numbers, without verdicts that need both sides.
pub(super) fn matched(sides: [&[&Monitor]; 2], measures: MeasureChoice, basis: ComparedNumber) -> Vec<ComparedEvent> {
    let mut found: Vec<Matched<'_>> = Vec::new();
    let mut places: HashMap<(String, usize), usize> = HashMap::new();
    for (side, monitors) in [Side::A, Side::B].into_iter().zip(sides) {
        for (run, monitor) in monitors.iter().enumerate() {
            let mut seen: HashMap<String, usize> = HashMap::new();
            for row in monitor.rows() {
                let name = row.event.title();
                let nth = seen.entry(name.clone()).and_modify(|nth| *nth += 1).or_insert(0);
                let place = *places.entry((name, *nth)).or_insert_with(|| {
                    found.push(Vec::new());
                    found.len() - 1
                });
                found[place].push(MatchedRow { side, run, monitor, row });
            }
        }
    }
    found.iter().map(|rows| one_event(rows, measures, basis)).collect()
}

/// The rows of an event in all recordings that have it; at least one.
type Matched<'a> = Vec<MatchedRow<'a>>;

/// An event in a recording.
struct MatchedRow<'a> {
    side: Side,
    run: usize,
    monitor: &'a Monitor,
    row: Row<'a>,
}

fn one_event(rows: &[MatchedRow<'_>], measures: MeasureChoice, basis: ComparedNumber) -> ComparedEvent {
    let measure = common(rows.iter().map(|of| measures.of(of.monitor, of.row.index)));
    let of_side = |side: Side| {
        let mut runs = Runs::default();
        for MatchedRow { run, monitor, row, .. } in rows.iter().filter(|of| of.side == side) {
            runs.is_listed = true;
            runs.is_partial |= row.is_partial();
            runs.index = runs.index.or(Some(row.index).filter(|_| *run == 0));
            runs.numbers.extend(number(monitor, row, measure, basis));
        }
        runs
    };
    let (a, b) = (of_side(Side::A), of_side(Side::B));
    let verdict = match (&a, &b) {
        (_, b) if !b.is_listed => Verdict::OnlyIn(Side::A),
        (a, _) if !a.is_listed => Verdict::OnlyIn(Side::B),
        (a, b) if a.is_partial || b.is_partial => Verdict::Partial,
        _ => Verdict::NoNumber,
    };
    let first = rows.first().map(|of| of.row.event);
    ComparedEvent {
        name: first.map_or_else(String::new, |event| event.title()),
        unit: first.map_or(Unit::Count, |event| event.event.unit.clone()),
        measure,
        a,
        b,
        verdict,
        p: None,
        interval: None,
        least_factor: 1.0,
    }
}

/// The measure that all recordings of an event can have: the one that each has where these are the same, else a rate by
/// a clock that all know.
fn common(measures: impl Iterator<Item = Measure>) -> Measure {
    measures
        .reduce(|one, other| match (one, other) {
            _ if one == other => one,
            (Measure::PerSecond, _) | (_, Measure::PerSecond) => Measure::PerSecond,
            _ => Measure::PerCpuSecond,
        })
        .unwrap_or_default()
}

/// The metrics that both sides have, over the whole runs.
pub(super) fn matched_metrics(sides: [&[&Monitor]; 2]) -> Vec<ComparedEvent> {
    let mut found: Vec<ComparedEvent> = Vec::new();
    for (side, monitors) in [Side::A, Side::B].into_iter().zip(sides) {
        for metric in monitors.iter().flat_map(|monitor| monitor.metrics()) {
            let (name, unit) = (metric.title(), &metric.definition.unit);
            let unit = match unit.is_empty() {
                true => Unit::Count,
                false => Unit::Scaled { scale: 1.0, name: unit.clone() },
            };
            let place = found.iter().position(|one| one.name == name && one.unit == unit).unwrap_or_else(|| {
                found.push(ComparedEvent::new(name, unit, Default::default()));
                found.len() - 1
            });
            let runs = if side == Side::A { &mut found[place].a } else { &mut found[place].b };
            runs.is_listed = true;
            let number = metric.over_run().ok().map(|number| number.uncertain());
            runs.numbers.extend(number.filter(|number| number.value.is_finite()));
        }
    }
    found.retain(|one| one.a.is_listed && one.b.is_listed);
    found
}

fn number(monitor: &Monitor, row: &Row<'_>, measure: Measure, basis: ComparedNumber) -> Option<Uncertain> {
    let count = match basis {
        ComparedNumber::Raw => row.scaled,
        ComparedNumber::Estimate => row.estimate.total,
    };
    let number = count?.times(measure.factor(monitor, row)?);
    number.value.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::compare;
    use super::*;

    #[test]
    fn a_command_that_perfprop_ended_has_no_total_whatever_it_made_of_that() {
        let header = crate::builders::header([]);
        let words = |exit, was_ended_by_perfprop| {
            is_part(&header, Some(&End { exit: Some(exit), was_ended_by_perfprop, ..End::default() }))
        };
        assert_eq!([words(Exit::Code(0), false), words(Exit::Code(3), false)], [None; 2]);
        assert_eq!(words(Exit::Signal(15), false), Some("is of a command that didn't end by itself"));
        assert_eq!(
            [Exit::Code(0), Exit::Signal(15)].map(|exit| words(exit, true)),
            [Some("is of a command that perfprop ended"); 2]
        );
    }

    #[test]
    fn commands_are_compared_by_the_time_they_took() {
        use crate::builders::{self, SECOND, event, measured};
        use crate::estimate::EstimatorKind;
        use crate::sources::Round;
        use crate::units::WallNs;

        let ran = |name: &str, seconds: u64| {
            let mut monitor =
                builders::monitor(builders::header([measured(event(name))]), vec![], EstimatorKind::Scale);
            let at = WallNs(seconds * SECOND);
            monitor.round(&Round { at, readings: vec![None], ..Round::default() }, 0);
            monitor
        };
        let elapsed = |a: &[Monitor], b: &[Monitor], measures| {
            let [a, b] = [a, b].map(|side| side.iter().collect::<Vec<_>>());
            let found = compare(&a, &b, measures, ComparedNumber::Estimate);
            found.events.into_iter().find(|one| one.name == "elapsed time")
        };
        let totals = MeasureChoice::Every(Measure::Total);
        let a: Vec<_> = [10, 11, 10, 11, 10].map(|seconds| ran("cycles", seconds)).into();
        let b: Vec<_> = [20, 21, 20, 21, 20].map(|seconds| ran("cycles", seconds)).into();
        let found = elapsed(&a, &b, totals).unwrap();
        assert_eq!((found.a.mean(), found.b.mean(), found.verdict), (Some(10.4e9), Some(20.4e9), Verdict::Higher));
        // Rates have no length, and who counts the time has it once.
        assert_eq!(elapsed(&a, &b, MeasureChoice::Usual), None);
        assert_eq!(elapsed(&[ran("duration_time", 1)], &[ran("cycles", 1)], totals), None);
    }

    #[test]
    fn recordings_that_differ_in_what_they_know_have_a_rate_that_all_know() {
        use Measure::{PerCpuSecond, PerKiloInstruction, PerSecond, Total};
        let cases = [
            (vec![PerKiloInstruction; 3], PerKiloInstruction),
            (vec![PerKiloInstruction, PerCpuSecond], PerCpuSecond),
            (vec![PerKiloInstruction, PerSecond, PerCpuSecond], PerSecond),
            (vec![Total, Total], Total),
        ];
        for (measures, wanted) in cases {
            assert_eq!(common(measures.into_iter()), wanted);
        }
    }
}
