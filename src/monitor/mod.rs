//! Computes everything that a screen, a text or a file shows, from a header and rounds.
//!
//! The same rounds always give the same numbers, whether they come from the kernel or from a
//! recording. A [`Monitor`] knows no clock, no terminal and no file.
//!
//! ```text
//! rounds     |    |    |    |    |    |    |    |    |    |    |    |
//! intervals  |--------------------|--------------------|-------- ...
//!                      a sample of each event's rate
//! ```
//!
//! Everything that it shows is about the time up to the end of the last interval; only
//! [`Monitor::now`] is about the last round.

use std::collections::{HashSet, VecDeque};

use crate::estimate::{Cause, Estimate, Estimator, Quality, RelationState, Standing, Weakness};
use crate::events::EventKind;
use crate::metrics::Derived;
use crate::plan::EventIndex;
use crate::rates::{Confidence, Delta, Error, Raw, ScopeIndex, Tally, Uncertain};
use crate::relations::Relation;
use crate::run::{End, Header, MeasuredEvent, MeasuredTarget};
use crate::sources::{Reading, Round};
use crate::units::{CpuNs, WallNs};

mod finding;
mod measure;
mod metrics;
mod sum;
mod truth;
mod uncounted;

pub use finding::{Finding, Noted, Severity};
pub use measure::Measure;
pub use metrics::MetricRow;
pub use sum::{Sum, SummedEvent};
pub use truth::Truth;

/// Intervals that are kept for charts: an hour of seconds.
const HISTORY: usize = 3600;

/// A run ratio below this leans on scaling: a quarter of the time was never seen.
pub const LOW_RUN_RATIO: f64 = 0.75;

/// A low run ratio is reported only after so many intervals.
const SETTLED: u64 = 3;

/// The state of a measurement, built up round by round.
pub struct Monitor {
    header: Header,
    relations: Vec<Relation>,
    /// The metrics of the header by their places there.
    derived: Vec<(usize, Derived)>,
    tracks: Vec<EventTrack>,
    /// How many intervals each keeps.
    kept: usize,
    /// The part of the target that each event is about, and of each part the event that counts instructions.
    scopes: Vec<ScopeIndex>,
    instructions: Vec<Option<EventIndex>>,
    /// Events that are counted for each part of the target, and how their sums vary between intervals.
    parts: Vec<SummedEvent>,
    spreads: Vec<sum::SumSpread>,
    tally: Tally,
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
    /// Lost rounds, and how many of them there were at the last finding about them.
    lost: u64,
    lost_noted: u64,
    findings: Vec<Noted>,
    end: Option<End>,
}

/// What is kept of each event beside its raw statistics.
#[derive(Clone, Debug, Default)]
struct EventTrack {
    last: Reading,
    /// The CPU time that the event could have been counted in; more than that of `last` where only
    /// one kind of core counts it.
    enabled: CpuNs,
    history: VecDeque<Point>,
    low_ratio_noted: bool,
    /// Whether one of the event's units has not been on a counter so far, and whether that was noted.
    lacks_unit: bool,
    lack_noted: bool,
    /// Which part of it isn't counted, and what is left of its estimate.
    uncounted: Option<(UncountedPart, Estimate)>,
}

/// One interval of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// End of the interval.
    pub at: WallNs,
    /// Length of the interval.
    pub length: WallNs,
    /// The CPU time of it: the event's own, or that of the others where it isn't open.
    pub cpu_time: CpuNs,
    /// What was counted, as it was counted.
    pub counted: Delta,
    /// The scaled count; `None` where nothing ran.
    pub raw: Option<Uncertain>,
    /// What the estimator makes of it.
    pub corrected: Option<Uncertain>,
}

impl Point {
    /// This point with its counts in another unit; without a factor there are none.
    fn times(&self, factor: Option<f64>) -> Self {
        let scaled = |count: Option<Uncertain>| Some(count?.scaled(factor?));
        Self { raw: scaled(self.raw), corrected: scaled(self.corrected), ..*self }
    }

    /// The best that is known of the interval's count: what the estimator makes of it, else the scaled one.
    pub fn best(&self) -> Option<Uncertain> {
        self.corrected.or(self.raw)
    }

    /// Running over enabled, at most 1; `None` if no CPU time passed.
    pub fn run_ratio(&self) -> Option<f64> {
        let Delta { enabled, running, .. } = self.counted;
        (enabled.0 > 0).then(|| (running.0 as f64 / enabled.0 as f64).min(1.0))
    }
}

/// What there is to say about one event.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Place of the event in the list that the user asked for.
    pub index: EventIndex,
    /// The event and whether it could be opened.
    pub event: &'a MeasuredEvent,
    /// Raw statistics of the event's own samples.
    pub raw: &'a Raw,
    /// The scaled count of the run; `None` if it never ran.
    pub scaled: Option<Uncertain>,
    /// What the estimator makes of it.
    pub estimate: &'a Estimate,
    /// The CPU time of the run: the event's own, or that of the others where it isn't open.
    pub cpu_time: CpuNs,
    /// Intervals of the event, oldest first.
    pub history: &'a VecDeque<Point>,
    /// Why it has not been counted, if it hasn't.
    pub absence: Option<Absence>,
    /// The part of the CPU time that was spent on the one kind of core that counts the event. Its
    /// count is a part then, and isn't scaled. `None` for an event that all cores count.
    pub core_share: Option<f64>,
    /// What of it isn't counted, because the kernel took counters off at an exec.
    pub uncounted: Option<UncountedPart>,
    /// Whether some of the event's units have no part in its count, so that it is a part of the sum.
    pub lacks_units: bool,
}

/// What of an event isn't counted where the kernel took counters off at an exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncountedPart {
    /// All from the exec of a measured task on.
    FromExecOn,
    /// What a child did; the whole is counted otherwise.
    OfChild,
}

impl<'a> Row<'a> {
    /// The best that is known of the run's count: what the estimator makes of it, else the scaled one.
    pub fn best(&self) -> Option<Uncertain> {
        self.estimate.total.or(self.scaled)
    }

    /// The interval that ended last; `None` before the first, and where the event has not been on a counter.
    pub fn newest(&self) -> Option<&'a Point> {
        self.history.back().filter(|_| matches!(self.absence, None | Some(Absence::NoneSeen)))
    }

    /// Whether the count is a part of what it is called: that of one kind of core, or of some units.
    pub fn is_partial(&self) -> bool {
        self.core_share.is_some() || self.lacks_units
    }

    /// How the run's number was corrected, or where one that was never counted comes from; `None`
    /// where it is what was counted, or scaled.
    pub fn correction(&self) -> Option<Correction> {
        if !matches!(self.estimate.quality, Quality::Corrected | Quality::Derived) {
            return None;
        }
        Some(Correction { count: self.estimate.total?, raw: self.scaled, by: self.by() })
    }

    /// Correction of the interval that ended last.
    pub fn interval_correction(&self) -> Option<Correction> {
        let point = self.history.back()?;
        let is_corrected = point.corrected != point.raw;
        Some(Correction { count: point.corrected.filter(|_| is_corrected)?, raw: point.raw, by: self.by() })
    }

    fn by(&self) -> Option<Cause> {
        self.estimate.parts.first().map(|part| part.by)
    }
}

/// How a number was corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// The corrected count.
    pub count: Uncertain,
    /// The scaled count; `None` where nothing was counted.
    pub raw: Option<Uncertain>,
    /// What moved the run's count most.
    pub by: Option<Cause>,
}

impl Correction {
    /// This correction with counts in another unit.
    pub fn times(&self, factor: f64) -> Self {
        Self { count: self.count.scaled(factor), raw: self.raw.map(|raw| raw.scaled(factor)), by: self.by }
    }

    /// The correction as a part of the scaled count; `None` where there is none, or it is 0.
    pub fn relative(&self) -> Option<f64> {
        let raw = self.raw.map(|raw| raw.value).filter(|&raw| raw != 0.0)?;
        Some(self.count.value / raw - 1.0)
    }
}

/// Why an event has no number. These are different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// This machine has no such event.
    NotSupported,
    /// The kernel doesn't let this user count it.
    Forbidden,
    /// The event has not been on a counter so far.
    NotYetRan,
    /// The event was never on a counter, and the measurement has ended.
    NeverRan,
    /// The event counted nothing while it was on a counter, but wasn't on one in the beginning, where nobody knows
    /// what happened.
    NoneSeen,
    /// The kernel took its counters off before it counted anything.
    TakenOff,
    /// The thread had ended before its counters were open.
    Gone,
    /// The event's PMU is opened on other CPUs.
    Elsewhere,
}

impl Absence {
    /// Words for the reason.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotSupported => "not supported",
            Self::Forbidden => "not permitted",
            Self::NotYetRan => "not yet counted",
            Self::NeverRan => "never counted",
            Self::NoneSeen => "none seen",
            Self::TakenOff => "not counted from exec on",
            Self::Gone => "gone",
            Self::Elsewhere => "counted on other CPUs",
        }
    }
}

impl Monitor {
    /// A monitor for what the header describes; the estimator was made for the same relations.
    pub fn new(header: Header, relations: Vec<Relation>, estimator: Box<dyn Estimator>) -> Self {
        let events = header.events.len();
        let (parts, scopes) = (sum::parts(&header), sum::scopes(&header));
        let mut monitor = Self {
            due: header.interval_ns,
            tracks: vec![EventTrack::default(); events],
            kept: HISTORY,
            instructions: measure::instructions(&header, &scopes),
            spreads: vec![sum::SumSpread::default(); parts.len()],
            parts,
            tally: Tally::of_scopes(sum::scopes_of_time(&header)),
            scopes,
            derived: metrics::derived(&header),
            truths: vec![None; events],
            header,
            relations,
            estimator,
            now: WallNs(0),
            closed_at: WallNs(0),
            intervals: 0,
            rounds: 0,
            lost: 0,
            lost_noted: 0,
            findings: Vec::new(),
            end: None,
        };
        monitor.note_openings();
        monitor
    }

    /// Sets the confidence level of the intervals; to be called before the first round.
    pub fn with_confidence(mut self, confidence: Confidence) -> Self {
        self.tally = self.tally.with_confidence(confidence);
        self
    }

    /// The same with the last interval alone, for texts that show no others; from before the first round.
    pub fn without_history(mut self) -> Self {
        self.kept = 1;
        self
    }

    /// Takes a round; says whether it closed an interval.
    pub fn round(&mut self, round: &Round, lost: u64) -> bool {
        let before = std::mem::replace(&mut self.now, round.at);
        self.rounds += 1;
        self.lost = self.lost.max(lost);
        self.note_uncounted(round);
        self.take_truths(round);
        let deltas: Vec<_> = (0..self.tracks.len()).map(|event| self.delta(event, round)).collect();
        self.tally.round(&deltas);
        self.estimator.round(before, round.at, &deltas);
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
        self.lost = self.lost.max(end.lost_rounds);
        if self.now > self.closed_at {
            self.close_interval();
        }
        self.note_lost();
        self.note_uncounted_time(&end);
        self.note_lacking_units();
        if matches!(self.header.target, MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_)) {
            self.note(Finding::TargetEnded);
        }
        self.end = Some(end);
    }

    /// What a round counted of an event; `None` if there was no reading, or none that is of use.
    fn delta(&mut self, event: EventIndex, round: &Round) -> Option<Delta> {
        let reading = round.readings.get(event).copied().flatten()?;
        let track = &mut self.tracks[event];
        track.enabled = reading.enabled;
        let delta = self.header.events[event].delta(&mut track.last, reading).ok();
        if delta.is_none() {
            self.note(Finding::WentBackwards { event });
        }
        // What a unit that had no counter would have added isn't known from the others.
        if self.tracks[event].lacks_unit { delta.map(|delta| Delta { running: delta.enabled, ..delta }) } else { delta }
    }

    fn close_interval(&mut self) {
        self.intervals += 1;
        self.tally.end_interval();
        let before: Vec<_> = self.standings().iter().map(|standing| standing.state.clone()).collect();
        self.estimator.end_interval(&self.tally);
        self.note_relations(&before);
        let (at, length) = (self.now, self.now - self.closed_at);
        for ((event, track), estimate) in self.tracks.iter_mut().enumerate().zip(self.estimator.estimates()) {
            let counted = self.tally.interval(event).total();
            let (mut raw, mut corrected) = (self.tally.interval_count(event), estimate.interval);
            if track.lacks_unit || self.header.events[event].event.absent_units().next().is_some() {
                (raw, corrected) = (raw.map(at_least), corrected.map(at_least));
            }
            if let Some((_, known)) = &mut track.uncounted {
                *known = at_least_so_much(self.tally.total(event), counted, raw);
                (raw, corrected) = (known.interval, known.interval);
            }
            while track.history.len() >= self.kept {
                track.history.pop_front();
            }
            let cpu_time = self.tally.interval_time(event);
            track.history.push_back(Point { at, length, cpu_time, counted, raw, corrected });
        }
        self.spread_sums();
        self.note_lost();
        self.note_low_ratios();
        self.note_weaknesses();
        if self.intervals >= SETTLED {
            self.note_lacking_units();
        }
        self.closed_at = self.now;
        let interval = self.header.interval_ns.0.max(1);
        // The next whole interval ahead, so that a late round doesn't make short ones after it.
        let half = self.header.period_ns.0 / 2;
        self.due = WallNs((self.now.0.saturating_add(half) / interval).saturating_add(1).saturating_mul(interval));
    }
}

/// A count of a part, of which nobody knows how far it is from the whole.
fn at_least(count: Uncertain) -> Uncertain {
    Uncertain { error: Error::Unknown, ..count }
}

/// What is known of an event of which a part isn't counted any more: what was counted happened, and nobody
/// knows what else.
fn at_least_so_much(total: Option<Uncertain>, counted: Delta, interval: Option<Uncertain>) -> Estimate {
    let total = total.filter(|total| total.value > 0.0).map(at_least);
    let interval = interval.filter(|_| counted.enabled.0 > 0).map(at_least);
    let quality = if total.is_some() { Quality::Scaled } else { Quality::Missing };
    Estimate { interval, total, quality, ..Estimate::default() }
}

/// Queries of screens and texts.
impl Monitor {
    /// Description of the measurement.
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
    /// Panics if there is no such event.
    pub fn row(&self, index: EventIndex) -> Row<'_> {
        Row {
            index,
            event: &self.header.events[index],
            raw: &self.tally.raw()[index],
            scaled: self.scaled(index),
            estimate: self.known(index).unwrap_or(&self.estimator.estimates()[index]),
            cpu_time: self.tally.run_time(index),
            history: &self.tracks[index].history,
            absence: self.absence(index),
            core_share: self.core_share(index),
            uncounted: self.tracks[index].uncounted.as_ref().map(|(part, _)| *part),
            lacks_units: self.lacks_units(index),
        }
    }

    /// What is left of the estimate of an event of which a part isn't counted.
    fn known(&self, index: EventIndex) -> Option<&Estimate> {
        self.tracks[index].uncounted.as_ref().map(|(_, known)| known)
    }

    fn scaled(&self, index: EventIndex) -> Option<Uncertain> {
        let total = self.known(index).map_or_else(|| self.tally.total(index), |known| known.total);
        if self.lacks_units(index) { total.map(at_least) } else { total }
    }

    fn lacks_units(&self, index: EventIndex) -> bool {
        self.tracks[index].lacks_unit || self.header.events[index].event.absent_units().next().is_some()
    }

    fn core_share(&self, index: EventIndex) -> Option<f64> {
        let track = &self.tracks[index];
        let is_partial = self.header.events[index].event.core().is_some();
        (is_partial && track.enabled.0 > 0).then(|| track.last.running.0 as f64 / track.enabled.0 as f64)
    }

    fn absence(&self, index: EventIndex) -> Option<Absence> {
        use crate::sources::Status;
        match self.header.events[index].status {
            Status::NotSupported => Some(Absence::NotSupported),
            Status::Forbidden => Some(Absence::Forbidden),
            Status::Gone => Some(Absence::Gone),
            Status::Elsewhere => Some(Absence::Elsewhere),
            Status::Counted | Status::UserOnly if self.scaled(index).is_some() => None,
            Status::Counted | Status::UserOnly
                if matches!(self.tracks[index].uncounted, Some((UncountedPart::FromExecOn, _))) =>
            {
                Some(Absence::TakenOff)
            }
            Status::Counted | Status::UserOnly if self.tally.raw()[index].run.total().running.0 > 0 => {
                Some(Absence::NoneSeen)
            }
            Status::Counted | Status::UserOnly if self.end.is_some() => Some(Absence::NeverRan),
            Status::Counted | Status::UserOnly => Some(Absence::NotYetRan),
        }
    }

    /// All relations, in the order of the files.
    pub fn relations(&self) -> &[Relation] {
        &self.relations
    }

    /// The standing of each relation: how far it is trusted.
    pub fn standings(&self) -> &[Standing] {
        self.estimator.relations()
    }

    /// Findings so far, oldest first.
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

    /// How long there has been counting: the time since the beginning, without the delay.
    pub fn counted_for(&self) -> WallNs {
        self.now - self.header.delay_ns
    }

    /// The end of the last interval, up to which all numbers are.
    pub fn closed_at(&self) -> WallNs {
        self.closed_at
    }

    /// Confidence level of the intervals.
    pub fn confidence(&self) -> Confidence {
        self.tally.confidence()
    }

    /// The name of what moved a number: a relation's id, or an event's name.
    pub fn cause(&self, cause: Cause) -> &str {
        match cause {
            Cause::Relation(relation) => self.relations.get(relation).map_or("", |relation| &relation.id),
            Cause::Weighting => "weighting",
            Cause::Event(event) => self.header.events.get(event).map_or("", |event| &event.event.name),
        }
    }

    /// Whether the end has told that a child was not counted: numbers that were shown before aren't exact.
    pub fn lacks_a_child(&self) -> bool {
        self.tracks.iter().any(|track| matches!(track.uncounted, Some((UncountedPart::OfChild, _))))
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

/// Findings of rounds and intervals.
impl Monitor {
    fn note(&mut self, finding: Finding) {
        self.findings.push(Noted { at: self.now, finding });
    }

    fn note_openings(&mut self) {
        use crate::sources::Status;
        if self.header.modelled.is_some() {
            self.note(Finding::Modelled);
        }
        let is_gone = |event: &&MeasuredEvent| event.status == Status::Gone;
        let gone: HashSet<_> = self.header.events.iter().filter(is_gone).map(|event| &event.scope).collect();
        if !gone.is_empty() {
            self.note(Finding::Gone { threads: gone.len() });
        }
        for event in 0..self.header.events.len() {
            match self.header.events[event].status {
                Status::Counted | Status::UserOnly if self.header.events[event].event.core().is_some() => {
                    self.note(Finding::OneKindOfCore { event });
                }
                _ if self.header.events[event].is_elsewhere() => {}
                Status::Elsewhere => self.note(Finding::Elsewhere { event }),
                Status::Counted if self.lacks_units(event) => self.note(Finding::LacksUnits { event }),
                Status::Counted | Status::Gone => {}
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

    /// Once an interval: on a busy machine nearly every round may be late.
    fn note_lost(&mut self) {
        let rounds = self.lost - std::mem::replace(&mut self.lost_noted, self.lost);
        if rounds > 0 {
            self.note(Finding::LostRounds { rounds });
        }
    }

    /// Notes the events of which a part isn't counted from now on.
    fn note_uncounted(&mut self, round: &Round) {
        let mut events = Vec::new();
        let is_of_units =
            |event: EventIndex| self.header.events.get(event).is_some_and(|event| !event.event.units().is_empty());
        let (lacking, taken_off): (Vec<EventIndex>, Vec<_>) =
            round.uncounted.iter().partition(|&&event| is_of_units(event));
        self.tracks.iter_mut().for_each(|track| track.lacks_unit = false);
        for event in lacking {
            self.tracks[event].lacks_unit = true;
        }
        for event in taken_off {
            let Some(track) = self.tracks.get_mut(event).filter(|track| track.uncounted.is_none()) else { continue };
            track.uncounted = Some((UncountedPart::FromExecOn, Estimate::default()));
            events.push(event);
        }
        if !events.is_empty() {
            self.note(Finding::TakenOff { events });
        }
    }

    /// Notes that a part of the command's CPU time passed without its events. Nobody saw it while it happened.
    fn note_uncounted_time(&mut self, end: &End) {
        let is_known = self.tracks.iter().any(|track| track.uncounted.is_some());
        let found = uncounted::uncounted_time(&self.header.events, end).filter(|_| !is_known);
        let Some((uncounted, all)) = found else { return };
        for (event, track) in self.tracks.iter_mut().enumerate() {
            let last = track.history.back().map_or((Delta::default(), None), |point| (point.counted, point.raw));
            if self.header.events[event].event.kind != EventKind::Tool {
                let known = at_least_so_much(self.tally.total(event), last.0, last.1);
                track.uncounted = Some((UncountedPart::OfChild, known));
            }
        }
        self.note(Finding::UncountedTime { uncounted, all });
    }

    /// Notes the events of which a unit has had no counter for all that time.
    fn note_lacking_units(&mut self) {
        let lacking = |(event, track): (EventIndex, &mut EventTrack)| {
            let is_new = track.lacks_unit && !track.lack_noted;
            track.lack_noted |= is_new;
            is_new.then_some(event)
        };
        let events: Vec<_> = self.tracks.iter_mut().enumerate().filter_map(lacking).collect();
        for event in events {
            self.note(Finding::LacksUnits { event });
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

    /// Says once what makes estimates less than they seem.
    fn note_weaknesses(&mut self) {
        for weakness in self.estimator.weaknesses() {
            let finding = match weakness {
                Weakness::Aliased { least, most } => Finding::RotationBeats { least, most },
                Weakness::Scaled => Finding::FellBack,
            };
            if !self.findings.iter().any(|noted| noted.finding.code() == finding.code()) {
                self.note(finding);
            }
        }
    }

    fn note_low_ratios(&mut self) {
        if self.intervals < SETTLED {
            return;
        }
        let mut ratios = Vec::new();
        for (event, track) in self.tracks.iter_mut().enumerate().filter(|(_, track)| !track.low_ratio_noted) {
            let ratio = self.tally.raw()[event].run.run_ratio().filter(|&ratio| ratio < LOW_RUN_RATIO);
            track.low_ratio_noted = ratio.is_some();
            ratios.extend(ratio.map(|ratio| (event, ratio)));
        }
        if !ratios.is_empty() {
            self.note(Finding::LowRunRatio { ratios });
        }
    }
}
