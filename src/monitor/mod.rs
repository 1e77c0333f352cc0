//! A header and rounds in, everything that a screen, a text or a file shows out.
//!
//! The same rounds always give the same numbers, whether they come from the kernel or from a
//! recording. A [`Monitor`] knows no clock, no terminal and no file.
//!
//! ```text
//! rounds     |    |    |    |    |    |    |    |    |    |    |    |
//! intervals  |--------------------|--------------------|-------- ...
//!                      a sample of each event's rate
//! ```

use std::collections::VecDeque;

use crate::estimate::{Estimate, Estimator, Observation, Raw, RelationState, Standing};
use crate::plan::EventIndex;
use crate::rates::{Delta, Error, Scaling};
use crate::recording::{End, Header, RecordedEvent, Target};
use crate::relations::Relation;
use crate::sources::{Reading, Round};
use crate::units::{CpuNs, WallNs};

mod finding;
mod measure;
mod truth;

pub use finding::{Finding, Noted, Severity};
pub use measure::Measure;
pub use truth::Truth;

/// Intervals that are kept for charts: an hour of seconds.
const HISTORY: usize = 3600;

/// A run ratio below this leans on scaling: a quarter of the time was never seen.
pub const LOW_RUN_RATIO: f64 = 0.75;

/// An event is told to have a low run ratio only after so many intervals.
const SETTLED: u64 = 3;

/// The state of a measurement, built up round by round.
pub struct Monitor {
    header: Header,
    relations: Vec<Relation>,
    tracks: Vec<Track>,
    raw: Vec<Raw>,
    /// What each event counted in truth, where that was recorded.
    truths: Vec<Option<u64>>,
    estimator: Box<dyn Estimator>,
    /// When the current interval ends.
    due: WallNs,
    /// The time of the last round, and of the last interval's end.
    now: WallNs,
    closed_at: WallNs,
    intervals: u64,
    rounds: u64,
    lost: u64,
    findings: Vec<Noted>,
    end: Option<End>,
}

/// What is kept of each event beside its raw statistics.
#[derive(Clone, Debug, Default)]
struct Track {
    last: Reading,
    interval: Scaling,
    history: VecDeque<Point>,
    low_ratio_noted: bool,
}

/// One interval of one event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When the interval ended.
    pub at: WallNs,
    /// How long it was.
    pub length: WallNs,
    /// The raw rate in counts per millisecond of CPU time; `None` where nothing ran.
    pub rate: Option<f64>,
    /// The error of the rate.
    pub error: Error,
    /// Running over enabled; `None` if no CPU time passed.
    pub run_ratio: Option<f64>,
    /// What was counted, as it was counted.
    pub count: u64,
    /// CPU time that passed.
    pub enabled: CpuNs,
    /// The part of it that the event was on a counter.
    pub running: CpuNs,
    /// The estimator's mean at the end of the interval, in the unit of the rate.
    pub estimate: Option<f64>,
    /// The error of that mean.
    pub estimate_error: Error,
}

impl Point {
    /// The same interval with rates and errors in another unit.
    fn times(&self, factor: f64) -> Self {
        Self {
            rate: self.rate.map(|rate| rate * factor),
            error: self.error.scaled(factor),
            estimate: self.estimate.map(|estimate| estimate * factor),
            estimate_error: self.estimate_error.scaled(factor),
            ..*self
        }
    }
}

/// What there is to say about one event.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Its place in the list that the user asked for.
    pub index: EventIndex,
    /// The event and whether it could be opened.
    pub event: &'a RecordedEvent,
    /// Its own samples.
    pub raw: &'a Raw,
    /// What the estimator makes of them.
    pub estimate: &'a Estimate,
    /// Its intervals, oldest first.
    pub history: &'a VecDeque<Point>,
    /// Why there is no number, if there is none.
    pub absence: Option<Absence>,
}

/// Why an event has no number. These are four different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// This machine has no such event.
    NotSupported,
    /// The kernel doesn't let this user count it.
    Forbidden,
    /// It has not been on a counter so far.
    NotYetRan,
    /// It was never on a counter, and the measurement has ended.
    NeverRan,
}

impl Absence {
    /// The words for it.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotSupported => "not supported",
            Self::Forbidden => "not permitted",
            Self::NotYetRan => "not yet counted",
            Self::NeverRan => "never counted",
        }
    }
}

impl Monitor {
    /// A monitor for what the header describes; the estimator was made for the same relations.
    pub fn new(header: Header, relations: Vec<Relation>, estimator: Box<dyn Estimator>) -> Self {
        let events = header.events.len();
        let mut monitor = Self {
            due: header.interval_ns,
            tracks: vec![Track::default(); events],
            raw: vec![Raw::default(); events],
            truths: vec![None; events],
            header,
            relations,
            estimator,
            now: WallNs(0),
            closed_at: WallNs(0),
            intervals: 0,
            rounds: 0,
            lost: 0,
            findings: Vec::new(),
            end: None,
        };
        monitor.note_openings();
        monitor
    }

    /// Takes a round; says whether it closed an interval.
    pub fn round(&mut self, round: &Round, lost: u64) -> bool {
        self.now = round.at;
        self.rounds += 1;
        if lost > self.lost {
            self.note(Finding::LostRounds { rounds: lost - self.lost });
            self.lost = lost;
        }
        self.take_truths(round);
        for (event, reading) in round.readings.iter().enumerate() {
            if let Some(reading) = reading {
                self.take(event, *reading);
            }
        }
        // Rounds jitter: one that is a little early still ends its interval.
        let slack = WallNs(self.header.period_ns.0 / 2);
        let closes = round.at + slack >= self.due;
        if closes {
            self.close_interval();
        }
        closes
    }

    /// Takes the end of the measurement; an interval that has begun counts as far as it got.
    pub fn end(&mut self, end: End) {
        if end.lost_rounds > self.lost {
            self.note(Finding::LostRounds { rounds: end.lost_rounds - self.lost });
            self.lost = end.lost_rounds;
        }
        if self.now > self.closed_at {
            self.close_interval();
        }
        if matches!(self.header.target, Target::Processes(_) | Target::Threads(_)) {
            self.note(Finding::TargetEnded);
        }
        self.end = Some(end);
    }

    fn take(&mut self, event: EventIndex, reading: Reading) {
        let Some(track) = self.tracks.get_mut(event) else { return };
        match Delta::between(track.last, reading) {
            Ok(delta) => {
                track.interval.add(delta);
                self.raw[event].run.add(delta);
            }
            Err(_) => self.note(Finding::WentBackwards { event }),
        }
        self.tracks[event].last = reading;
    }

    fn close_interval(&mut self) {
        self.intervals += 1;
        let observations: Vec<_> = self.tracks.iter().map(|track| observation(&track.interval)).collect();
        for (raw, observation) in self.raw.iter_mut().zip(&observations) {
            if let Some(rate) = observation.delta.rate() {
                raw.rate.add(rate, observation.delta.running.as_ms());
            }
        }
        let before: Vec<_> = self.standings().iter().map(|standing| standing.state.clone()).collect();
        self.estimator.observe(&observations, &self.raw);
        self.note_relations(&before);
        let length = self.now - self.closed_at;
        let estimates = self.estimator.estimates();
        for ((track, observation), estimate) in self.tracks.iter_mut().zip(&observations).zip(estimates) {
            let point = Point {
                at: self.now,
                length,
                rate: observation.delta.rate(),
                error: observation.error,
                run_ratio: track.interval.run_ratio(),
                count: observation.delta.count,
                enabled: observation.delta.enabled,
                running: observation.delta.running,
                estimate: estimate.mean,
                estimate_error: estimate.error,
            };
            track.close(point);
        }
        self.note_low_ratios();
        self.closed_at = self.now;
        let interval = self.header.interval_ns.0.max(1);
        // The next whole interval ahead, so that a late round doesn't make short ones after it.
        let half = self.header.period_ns.0 / 2;
        self.due = WallNs((self.now.0.saturating_add(half) / interval).saturating_add(1).saturating_mul(interval));
    }
}

impl Track {
    fn close(&mut self, point: Point) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(point);
        self.interval = Scaling::default();
    }
}

/// The error of a rate is that of the scaled count, spread over the CPU time.
fn observation(interval: &Scaling) -> Observation {
    let delta = interval.total();
    let enabled = delta.enabled.as_ms();
    let error = if enabled > 0.0 { interval.error().scaled(1.0 / enabled) } else { Error::Unknown };
    Observation { delta, error }
}

/// What screens ask.
impl Monitor {
    /// What is measured.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All events, in the order that the user asked for.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.tracks.len()).map(|index| self.row(index))
    }

    /// One event.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn row(&self, index: EventIndex) -> Row<'_> {
        let (event, raw) = (&self.header.events[index], &self.raw[index]);
        let estimate = &self.estimator.estimates()[index];
        let history = &self.tracks[index].history;
        Row { index, event, raw, estimate, history, absence: self.absence(index) }
    }

    fn absence(&self, index: EventIndex) -> Option<Absence> {
        use crate::sources::Status;
        match self.header.events[index].status {
            Status::NotSupported => Some(Absence::NotSupported),
            Status::Forbidden => Some(Absence::Forbidden),
            Status::Counted | Status::UserOnly if self.raw[index].run.total().running.0 > 0 => None,
            Status::Counted | Status::UserOnly if self.end.is_some() => Some(Absence::NeverRan),
            Status::Counted | Status::UserOnly => Some(Absence::NotYetRan),
        }
    }

    /// All relations, in the order of the files.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// How each of them fares.
    pub fn standings(&self) -> &[Standing] {
        self.estimator.relations()
    }

    /// What was noticed, oldest first.
    pub fn findings(&self) -> &[Noted] {
        &self.findings
    }

    /// How the measurement ended, once it has.
    pub fn ended(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The time of the last round.
    pub fn now(&self) -> WallNs {
        self.now
    }

    /// How many intervals are complete.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    /// How many rounds came, and how many were lost.
    pub fn rounds(&self) -> (u64, u64) {
        (self.rounds, self.lost)
    }
}

/// What is noticed on the way.
impl Monitor {
    fn note(&mut self, finding: Finding) {
        self.findings.push(Noted { at: self.now, finding });
    }

    fn note_openings(&mut self) {
        use crate::sources::Status;
        if self.header.modelled.is_some() {
            self.note(Finding::Modelled);
        }
        for event in 0..self.header.events.len() {
            match self.header.events[event].status {
                Status::Counted => {}
                Status::UserOnly => self.note(Finding::UserOnly { event }),
                Status::NotSupported => self.note(Finding::NotSupported { event }),
                Status::Forbidden => self.note(Finding::Forbidden { event }),
            }
        }
        for relation in 0..self.standings().len() {
            if let RelationState::Inactive { missing } = self.standings()[relation].state.clone() {
                self.note(Finding::RelationInactive { relation, missing });
            }
        }
    }

    fn note_relations(&mut self, before: &[RelationState]) {
        for relation in 0..before.len() {
            let now = &self.standings()[relation];
            let z = now.z.unwrap_or(f64::NAN);
            match (&before[relation], &now.state) {
                (RelationState::Violated, RelationState::Agrees) => {
                    self.note(Finding::RelationRecovered { relation, z })
                }
                (before, RelationState::Violated) if *before != RelationState::Violated => {
                    self.note(Finding::RelationViolated { relation, z });
                }
                _ => {}
            }
        }
    }

    fn note_low_ratios(&mut self) {
        if self.intervals < SETTLED {
            return;
        }
        for event in 0..self.tracks.len() {
            let ratio = self.raw[event].run.run_ratio();
            if let Some(ratio) = ratio.filter(|&ratio| ratio < LOW_RUN_RATIO && !self.tracks[event].low_ratio_noted) {
                self.tracks[event].low_ratio_noted = true;
                self.note(Finding::LowRunRatio { event, ratio });
            }
        }
    }
}
