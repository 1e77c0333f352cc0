//! Runs a command once, and keeps what each event counted in all of the run and in each of its intervals.
//!
//! Rounds are kept while the command runs, and estimated when it has ended: an estimator must not take the CPU from
//! what it is judged by.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::Receiver;

use super::truth::Curve;
use crate::estimate::EstimatorKind;
use crate::events::{self, GroupBinding};
use crate::measure::{
    self, BatchChannels, Delivery, Error, Estimation, LoadedRelations, Measurement, RunEvent, RunOutcome,
};
use crate::monitor::{Monitor, Row};
use crate::plan::{Plan, RowIndex};
use crate::rates::{self, Uncertain};
use crate::run::{Header, MeasuredEvent};
use crate::session::{CaughtSignal, CommandLine, Launch, Needs};
use crate::sources::{Reading, RecordedRound, perf};

/// What an event counted in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct StretchCounts {
    /// The scaled count; exact where it was counted all the time.
    pub(super) scaled: Option<Uncertain>,
    /// The best number that perfprop has.
    pub(super) best: Option<Uncertain>,
    /// The truth that was counted beside.
    pub(super) truth: Option<f64>,
    /// The CPU time of the command at its beginning and at its end, in nanoseconds.
    pub(super) span: (f64, f64),
}

impl StretchCounts {
    /// Whether the event had a counter all the time, so that nothing was estimated.
    pub(super) fn is_exact(&self) -> bool {
        self.scaled.is_some_and(|scaled| scaled.error == rates::Error::Exact)
    }
}

/// What an event counted in a run.
#[derive(Clone, Debug)]
pub(super) struct EventRun {
    pub(super) event: MeasuredEvent,
    /// The part of the time that it was on a counter; `None` where no time passed.
    pub(super) run_ratio: Option<f64>,
    pub(super) total: StretchCounts,
    /// Whole intervals from the start on.
    pub(super) intervals: Vec<StretchCounts>,
}

/// A run as it was read.
#[derive(Debug)]
pub(super) struct ReadRun {
    header: Header,
    rounds: Vec<RecordedRound>,
    pub(super) outcome: RunOutcome,
}

/// How a run is read, and what may end it.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) period: Duration,
    pub(super) interval: Duration,
    pub(super) signals: &'a Receiver<CaughtSignal>,
}

/// Runs the command of a measurement once.
pub(super) fn run(measurement: &Measurement, reads: &Reads<'_>, note: &mut dyn FnMut(&str)) -> Result<ReadRun, Error> {
    let (session, header) = measurement.start(reads.period, reads.interval, note)?;
    let mut rounds = Vec::new();
    let Ok(outcome) =
        measure::run::<Infallible>(&session, reads.signals, BatchChannels::default(), Delivery::Batched, |event| {
            if let RunEvent::Round(round, lost) = event {
                rounds.push(RecordedRound { round: round.clone(), lost });
            }
            Ok(ControlFlow::Continue(()))
        });
    Ok(ReadRun { header, rounds, outcome })
}

impl ReadRun {
    /// What became of each event.
    pub(super) fn events(&self) -> &[MeasuredEvent] {
        &self.header.events
    }

    /// Whether an event was on a counter, and had to leave it.
    pub(super) fn takes_turns(&self, event: RowIndex) -> bool {
        let last = self.outcome.end.totals.get(event).copied().flatten();
        last.is_some_and(|last| last.running < last.enabled) && self.header.events[event].event.core().is_none()
    }

    /// What an event has counted by CPU time; `None` unless it had a counter all the time.
    pub(super) fn curve(&self, event: RowIndex) -> Option<Curve> {
        let readings = self
            .rounds
            .iter()
            .map(|recorded| &recorded.round)
            .map(|round| round.readings.get(event).copied().flatten());
        let last = self.outcome.end.totals.get(event).copied();
        let readings: Option<Vec<Reading>> = readings.chain(last).collect();
        let readings = readings?;
        let is_always = |reading: &Reading| reading.running >= reading.enabled;
        let is_counted = self.header.events[event].status.is_open() && readings.iter().all(is_always);
        is_counted.then(|| Curve::new(readings.iter().map(|reading| (reading.enabled.0 as f64, reading.count as f64))))
    }

    /// What each event counted, as the measurement estimates it.
    pub(super) fn estimated(&self, measurement: &Measurement) -> Vec<EventRun> {
        let mut monitor = measurement.monitor(self.header.clone()).without_history();
        let mut intervals = vec![Vec::new(); monitor.rows().len()];
        let mut before = vec![Before::default(); intervals.len()];
        for RecordedRound { round, lost } in &self.rounds {
            if monitor.round(round, *lost) {
                for (row, (intervals, before)) in monitor.rows().zip(intervals.iter_mut().zip(&mut before)) {
                    intervals.push(interval(&monitor, &row, before));
                }
            }
        }
        monitor.end(self.outcome.end.clone());
        let is_true = self.true_columns();
        let of_event = |((row, intervals), is_true): ((Row<'_>, Vec<StretchCounts>), bool)| {
            let truth = monitor.truth(row.index).map(|truth| truth.count as f64);
            let known = |counts: StretchCounts| StretchCounts { truth: counts.truth.filter(|_| is_true), ..counts };
            let span = (0.0, row.cpu_time.0 as f64);
            EventRun {
                event: row.event.clone(),
                run_ratio: row.raw.run.run_ratio(),
                total: known(StretchCounts { scaled: row.scaled, best: row.best(), truth, span }),
                intervals: intervals.into_iter().map(known).collect(),
            }
        };
        monitor.rows().zip(intervals).zip(is_true).map(of_event).collect()
    }

    /// Which events' truths are true: what counts beside may itself wait for a counter.
    fn true_columns(&self) -> Vec<bool> {
        let header = &self.header;
        let first = header.columns() - header.truths.len();
        let mut is_true = vec![false; header.events.len()];
        for (column, reading) in header.truths.iter().zip(self.outcome.end.totals.iter().skip(first)) {
            is_true[column.truth_of] = reading.is_some_and(|reading| reading.running >= reading.enabled);
        }
        is_true
    }
}

/// Where an interval begins: the CPU time and the truth up to there.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    cpu_time: f64,
    truth: f64,
}

/// The interval that has just ended.
fn interval(monitor: &Monitor, row: &Row<'_>, before: &mut Before) -> StretchCounts {
    let now = |truth: crate::monitor::Truth| truth.count as f64;
    let truth = monitor.truth(row.index).map(now).map(|truth| truth - std::mem::replace(&mut before.truth, truth));
    let cpu_time = row.cpu_time.0 as f64;
    let span = (std::mem::replace(&mut before.cpu_time, cpu_time), cpu_time);
    let point = row.newest();
    StretchCounts { scaled: point.and_then(|point| point.raw), best: point.and_then(|point| point.best()), truth, span }
}

/// The same measurement with some of its events pinned to counters; the others still take turns, so that what turns
/// cost the command is the same.
pub(super) fn pinned(measurement: &Measurement, set: &[RowIndex]) -> Measurement {
    let events = measurement.plan.events.iter().enumerate().map(|(place, event)| {
        let mut event = event.clone();
        event.modifiers.pinned = set.contains(&place);
        event
    });
    of_events(measurement, events, measurement.launch.clone())
}

/// The same measurement of some of its events alone, and of another command.
pub(super) fn alone(measurement: &Measurement, set: &[RowIndex], command: &CommandLine) -> Measurement {
    let events = set.iter().map(|&event| measurement.plan.events[event].clone());
    let command = Some(command.clone());
    of_events(measurement, events, Launch { command, counters: None, ..measurement.launch.clone() })
}

/// A measurement of single events whose numbers are counts as they are read.
fn of_events(measurement: &Measurement, events: impl Iterator<Item = events::Event>, launch: Launch) -> Measurement {
    let groups: Vec<_> =
        events.map(|event| events::Group { name: None, events: vec![event], binding: GroupBinding::Free }).collect();
    let is_modelled = measurement.launch.counter != crate::sources::Counter::Kernel;
    let plan = match is_modelled {
        true => Plan::limited(groups, usize::MAX, |_| Vec::new()),
        false => Plan::new(groups, &mut perf::fit),
    };
    Measurement {
        // Without braces nothing is refused.
        plan: plan.unwrap_or_default(),
        launch: Launch { needs: Needs::Nothing, ..launch },
        relations: LoadedRelations::default(),
        estimation: Estimation { kind: EstimatorKind::Scale, learnt: None, ..measurement.estimation.clone() },
        metrics: Vec::new(),
        notes: Vec::new(),
    }
}
