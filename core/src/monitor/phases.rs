//! Finds the phases of a run: when the rate of an event changed to another level that lasted.
//!
//! ```text
//! rates of intervals ── thinned ──> windows ── worth a look? ──> steps ── did both levels last? ──> changes, told once
//! ```
//!
//! Only what was counted is looked at, not what an estimator makes of it, so that a replay has the phases that the live
//! run told. docs/steps.md says how often noise alone is told, and how soon a change.

mod look;
mod noise;
mod series;
mod track;

use self::look::LastingChange;
use self::series::CountedSpan;
use self::track::{PhaseLengths, PhaseTrack};
use super::{Finding, Measure, Monitor, Noted, Point};
use crate::estimate::EstimatorKind;
use crate::events::{EventKind, Unit};
use crate::number::{self, amount};
use crate::plan::RowIndex;
use crate::rates::Confidence;
use crate::run::{End, Header, MeasuredEvent};
use crate::sources::{RecordedRound, Scope};
use crate::units::WallNs;

/// Of a target that used less than this part of a CPU, rates per CPU second say nothing.
const LEAST_CPU_PART: f64 = 0.01;

/// A change of an event's rate from one level to another that lasted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseChange {
    /// The event.
    pub event: RowIndex,
    /// When the rate changed.
    pub at: WallNs,
    /// When that was sure: the end of the interval that showed it.
    pub told_at: WallNs,
    /// The rate before the change, per second of CPU time or of the clock: [`Monitor::phase_measure`].
    pub from: f64,
    /// The rate after it, in the same measure.
    pub to: f64,
    /// The interval of the change of rate, at the confidence of the monitor.
    pub interval: (f64, f64),
    /// The probability that noise alone has as clear a change, in the values that were looked at.
    pub chance: f64,
}

impl PhaseChange {
    /// The change as a part of the rate before; `None` if that was 0.
    pub fn relative(&self) -> Option<f64> {
        (self.from > 0.0).then(|| self.to / self.from - 1.0)
    }

    /// `−12.0%`, and from ten times on `×23`; `None` if the rate before was 0.
    pub(super) fn words(&self) -> Option<String> {
        let part = self.relative()?;
        Some(if part >= 9.0 { format!("×{}", number::si((part + 1.0).round())) } else { number::change(part) })
    }
}

/// What is known of the phases of all events.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseTracks {
    lengths: PhaseLengths,
    /// `None` for events that aren't looked at.
    tracks: Vec<Option<PhaseTrack>>,
    changes: Vec<PhaseChange>,
}

impl PhaseTracks {
    pub(super) fn of(header: &Header) -> Self {
        let is_looked_at = |event: &MeasuredEvent| event.scope == Scope::All && event.status.is_open();
        let tracks = header.events.iter().map(|event| is_looked_at(event).then(PhaseTrack::default)).collect();
        Self { lengths: PhaseLengths::of(header.interval_ns), tracks, changes: Vec::new() }
    }
}

/// What was counted in an interval, as a rate per second of the clock or of CPU time.
fn span(point: &Point, measure: Measure, confidence: Confidence) -> CountedSpan {
    let begin = point.at - point.length;
    let missing = CountedSpan { begin, end: point.at, ..CountedSpan::default() };
    let (cpu, wall) = (point.cpu_time.as_secs(), point.length.as_secs());
    let seconds = if measure == Measure::PerSecond { wall } else { cpu };
    let is_idle = measure != Measure::PerSecond && cpu < LEAST_CPU_PART * wall;
    let Some(raw) = point.raw.filter(|_| seconds > 0.0 && !is_idle) else { return missing };
    let seen_part = point.run_ratio().unwrap_or(1.0);
    CountedSpan {
        count: raw.value,
        seconds,
        variance: raw.deviation(confidence).powi(2),
        seen: point.counted.count as f64,
        seen_seconds: seconds * seen_part,
        ..missing
    }
}

/// The changes of level in a run that is over.
pub fn phase_changes<'a>(
    header: Header,
    rounds: impl IntoIterator<Item = &'a RecordedRound>,
    end: End,
) -> Vec<PhaseChange> {
    let estimator = EstimatorKind::Scale.build(&header.estimated_events(), &[]);
    let mut monitor = Monitor::new(header, Vec::new(), estimator).without_history();
    monitor.take_rounds(rounds);
    monitor.end(end);
    monitor.phases.changes
}

impl Monitor {
    /// The changes of all events from one level to another that lasted, in the order in which they were told.
    pub fn phase_changes(&self) -> &[PhaseChange] {
        &self.phases.changes
    }

    /// The changes of an event, in their order.
    pub fn phase_changes_of(&self, event: RowIndex) -> impl Iterator<Item = &PhaseChange> {
        self.phases.changes.iter().filter(move |change| change.event == event)
    }

    /// What the rates of an event's phases are per: a second of the clock where the event is [looked
    /// at](Monitor::usual_measure) in that, and of times; a second of CPU time for all others.
    pub fn phase_measure(&self, event: RowIndex) -> Measure {
        let is_time = self.header.events[event].event.kind == EventKind::Tool;
        if is_time || self.usual_measure(event) == Measure::PerSecond {
            Measure::PerSecond
        } else {
            Measure::PerCpuSecond
        }
    }

    /// `−12.0%, 980 ms/s → 862 ms/s`.
    pub fn phase_change_words(&self, change: &PhaseChange) -> String {
        let unit = &self.header.events[change.event].event.unit;
        let suffix = self.phase_measure(change.event).suffix(&self.header);
        let level = |rate: f64| format!("{}{suffix}", amount(rate, unit));
        let part = change.words().map_or_else(String::new, |words| format!("{words}, "));
        format!("{part}{} → {}", level(change.from), level(change.to))
    }

    /// Looks for changes in the interval that has ended.
    pub(super) fn note_phases(&mut self) {
        let (lengths, confidence) = (self.phases.lengths, self.confidence());
        for event in 0..self.tracks.len() {
            let measure = self.phase_measure(event);
            let Some(track) = &mut self.phases.tracks[event] else { continue };
            let Some(point) = self.tracks[event].history.back().filter(|_| self.tracks[event].uncounted.is_none())
            else {
                continue;
            };
            let found = track.interval(span(point, measure, confidence), lengths, confidence);
            // Of a CPU's time, less than a hundredth is not worth telling.
            let is_time = self.header.events[event].event.unit == Unit::Nanoseconds;
            let least = if is_time { LEAST_CPU_PART * 1e9 } else { 0.0 };
            found
                .into_iter()
                .filter(|found| found.change.by.abs() >= least)
                .for_each(|found| self.note_phase(event, found));
        }
    }

    fn note_phase(&mut self, event: RowIndex, found: LastingChange) {
        let LastingChange { at, from, change: by, .. } = found;
        let (to, told_at) = (found.to(), self.now);
        let interval = by.interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let change = PhaseChange { event, at, told_at, from, to, interval, chance: by.chance };
        self.phases.changes.push(change);
        let Some(track) = &mut self.phases.tracks[event] else { return };
        let was_quiet = track.is_quiet;
        match track.tell(self.now) {
            false => self.tell_change(change),
            true if !was_quiet => self.note(Finding::ChangesOften { event }),
            true => {}
        }
    }

    /// Tells a change, together with those of other events at nearly the same time.
    fn tell_change(&mut self, change: PhaseChange) {
        let PhaseLengths { intervals, values } = self.phases.lengths;
        let near = WallNs(self.header.interval_ns.0.saturating_mul((intervals * values / 2) as u64));
        let is_near = |other: &PhaseChange| change.at - other.at <= near && other.at - change.at <= near;
        let before = self.findings.iter_mut().rev().find_map(|noted| match &mut noted.finding {
            Finding::LevelChanged { changes } => Some(changes),
            _ => None,
        });
        match before.filter(|changes| changes.first().is_some_and(is_near)) {
            Some(changes) => changes.push(change),
            None => {
                self.findings.push(Noted { at: self.now, finding: Finding::LevelChanged { changes: vec![change] } })
            }
        }
    }
}
