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

use std::collections::VecDeque;

use crate::estimate::{Cause, Estimate, Estimator, Quality, Standing, WholeRun};
use crate::events::{EventKind, most_per_ms_at_startup};
use crate::metrics::Derived;
use crate::plan::RowIndex;
use crate::rates::{Confidence, Delta, Error, ScopeIndex, Tally, Uncertain, number_of_scopes};
use crate::relations::Relation;
use crate::run::{End, Header, MeasuredEvent, MeasuredTarget};
use crate::sources::{Reading, RecordedRound, Round, Scope};
use crate::units::{CpuNs, WallNs};

mod anchors;
mod cpu_split;
mod detect;
mod finding;
mod first_minute;
mod measure;
mod metrics;
mod part;
mod phases;
mod read_ahead;
mod row;
mod sampled;
mod spread;
mod sum;
mod threads;
mod truth;
mod uncounted;

use detect::SETTLED;
pub use detect::{LOW_RUN_RATIO, leans_on_scaling};
pub use finding::{Finding, Noted, Severity, TakenOffBy, taken_off};
pub use first_minute::FirstMinute;
pub use measure::{Measure, MeasureChoice};
pub use metrics::MetricRow;
pub use phases::{PhaseChange, phase_changes};
pub use read_ahead::{ReadAhead, RecordingNotes};
pub use row::{Absence, Correction, Point, Row, UncountedPart};
pub use spread::Extremes;
pub use sum::{Sum, SummedEvent};
pub use threads::{DiskRates, EndedUse, ThreadUses};
pub use truth::{Judged, Truth};

/// Intervals that are kept for charts: an hour of seconds.
const HISTORY: usize = 3600;

/// The state of a measurement, built up round by round.
pub struct Monitor {
    header: Header,
    relations: Vec<Relation>,
    /// The metrics of the header by their places there.
    derived: Vec<(usize, Derived)>,
    tracks: Vec<EventTrack>,
    /// How many intervals each keeps.
    kept: usize,
    /// The part of the target that each event is about, and the event that counts the instructions there.
    scopes: Vec<ScopeIndex>,
    instructions: Vec<Option<RowIndex>>,
    /// Events that are counted for each part of the target, and how their sums vary between intervals.
    parts: Vec<SummedEvent>,
    spreads: Vec<spread::IntervalSpread>,
    tally: Tally,
    /// What each event counted in truth, where that was recorded: up to the last round, and up to the end of the last
    /// interval, as all numbers are.
    truths_now: Vec<Option<u64>>,
    truths: Vec<Option<u64>>,
    truths_before: Vec<u64>,
    /// The last readings of anchors, and of those among them that are events which perfprop added.
    anchors: Vec<Reading>,
    added: Vec<Reading>,
    estimator: Box<dyn Estimator>,
    /// When the current interval ends.
    due: WallNs,
    /// The time before which nothing is counted: 0 unless it is of a part of a recording.
    began: WallNs,
    /// The time of the last round, and of the last interval's end.
    now: WallNs,
    closed_at: WallNs,
    intervals: u64,
    rounds: u64,
    /// Lost rounds, how many of them there were at the last finding about them, and before the part that is counted.
    lost: u64,
    lost_noted: u64,
    lost_before: u64,
    findings: Vec<Noted>,
    phases: phases::PhaseTracks,
    threads: threads::ThreadTrack,
    end: Option<End>,
}

/// What is kept of each event beside its raw statistics.
#[derive(Clone, Debug, Default)]
struct EventTrack {
    last: Reading,
    /// The CPU time that the event could have been counted in; more than that of `last` where only
    /// one kind of core counts it.
    enabled: CpuNs,
    /// Both before the part of a recording that is counted.
    before: Reading,
    enabled_before: CpuNs,
    history: VecDeque<Point>,
    first_minute: FirstMinute,
    spread: spread::IntervalSpread,
    low_ratio_noted: bool,
    /// Whether one of the event's units has not been on a counter so far, and whether that was noted.
    lacks_unit: bool,
    lack_noted: bool,
    /// Which part of it isn't counted, and what is left of its estimate.
    uncounted: Option<(UncountedPart, Estimate)>,
    /// The estimate of an event that is read in steps.
    stepped: Option<Estimate>,
}

impl Monitor {
    /// A monitor for what the header describes; the estimator was made for the same relations.
    pub fn new(header: Header, relations: Vec<Relation>, estimator: Box<dyn Estimator>) -> Self {
        let events = header.events.len();
        let (parts, scopes) = (sum::parts(&header), sum::scopes(&header));
        let mut monitor = Self {
            due: header.first_end(),
            tracks: vec![EventTrack::default(); events],
            kept: HISTORY,
            instructions: measure::instructions(&header, &scopes),
            spreads: vec![spread::IntervalSpread::default(); parts.len()],
            parts,
            tally: Tally::of_scopes(sum::scopes_of_time(&header)).of_program(beginnings(&header)),
            scopes,
            derived: metrics::derived(&header),
            truths_now: vec![None; events],
            truths: vec![None; events],
            truths_before: vec![0; events],
            began: WallNs(0),
            anchors: vec![Reading::default(); header.anchors.len()],
            added: vec![Reading::default(); header.added().count()],
            phases: phases::PhaseTracks::of(&header),
            threads: threads::ThreadTrack::default(),
            header,
            relations,
            estimator,
            now: WallNs(0),
            closed_at: WallNs(0),
            intervals: 0,
            rounds: 0,
            lost: 0,
            lost_noted: 0,
            lost_before: 0,
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

    /// Keeps the last interval alone, for texts that show no others; to be called before the first round.
    pub fn without_history(mut self) -> Self {
        self.kept = 1;
        self
    }

    /// Takes rounds as they were recorded.
    pub fn take_rounds<'a>(&mut self, rounds: impl IntoIterator<Item = &'a RecordedRound>) {
        for RecordedRound { round, lost } in rounds {
            self.round(round, *lost);
        }
    }

    /// Takes a round; says whether it closed an interval.
    pub fn round(&mut self, round: &Round, lost: u64) -> bool {
        let before = std::mem::replace(&mut self.now, round.at);
        self.rounds += 1;
        self.lost = self.lost.max(lost);
        if let Some(snapshot) = &round.threads {
            self.threads.take(snapshot);
        }
        self.note_uncounted(round);
        self.take_truths(round);
        let mut deltas: Vec<_> = (0..self.tracks.len()).map(|event| self.delta(event, round)).collect();
        deltas.extend(self.of_added(round));
        self.tally.round(&deltas);
        let deltas = self.in_all_groups(&deltas, round);
        self.estimator.round(before, round.at, &deltas);
        let closes = round.at + self.slack() >= self.due;
        if closes {
            self.close_interval();
        }
        closes
    }

    /// Takes the end of the measurement; an interval that has begun counts as far as it got.
    pub fn end(&mut self, end: End) {
        // Of a part of a run it isn't known.
        let cpu_time = end.cpu_time.filter(|_| self.began == WallNs(0));
        let end = End { cpu_time, ..end };
        self.lost = self.lost.max(end.lost_rounds);
        if self.now > self.closed_at {
            self.close_interval();
        }
        self.note_lost();
        self.note_uncounted_time(&end);
        self.note_lacking_units();
        for (event, known) in self.stepped(Some(&end)) {
            self.tracks[event].stepped = Some(known);
        }
        if end.has_target_ended {
            self.note(Finding::TargetEnded);
        }
        self.end = Some(end);
    }

    /// What a round counted of an event; `None` if there was no reading, or none that is of use.
    fn delta(&mut self, event: RowIndex, round: &Round) -> Option<Delta> {
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

    /// The part of one CPU that the target was on in the interval that ended last: 2 for two CPUs all the time. `None`
    /// before the first, of a model, and of single CPUs and control groups, whose time always passes.
    pub fn cpu_share(&self) -> Option<f64> {
        let length = self.last_length()?;
        self.cpu_share_in(length, |event| self.tracks[event].history.back().map(|point| point.cpu_time))
    }

    /// The part of one CPU that the target was on in all of the run, or in the part that is shown, up to the end of the
    /// last interval; `None` as for [`cpu_share`](Self::cpu_share).
    pub fn mean_cpu_share(&self) -> Option<f64> {
        let length = self.shown_time_counted();
        self.cpu_share_in(length, |event| Some(self.tally.run_time(event)))
    }

    /// The part of one CPU in a time of this length, by the CPU times of events; of a machine, in whole snapshots of
    /// its processes.
    fn cpu_share_in(&self, length: WallNs, cpu_time: impl Fn(RowIndex) -> Option<CpuNs>) -> Option<f64> {
        if matches!(self.header.target, MeasuredTarget::Everyone { cpus: None }) {
            return self.thread_uses(length).map(|uses| uses.cpus);
        }
        let is_of_tasks = matches!(
            self.header.target,
            MeasuredTarget::Command { .. } | MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_)
        );
        let is_of_cpus = self.header.events.iter().any(|event| matches!(event.scope, Scope::Cpu(_)));
        if !is_of_tasks || is_of_cpus || self.header.modelled.is_some() {
            return None;
        }
        let mut times = vec![None; number_of_scopes(&self.scopes)];
        let is_counter = |&event: &usize| self.header.events[event].event.kind != EventKind::Tool;
        for event in (0..self.tracks.len()).filter(is_counter) {
            let time: &mut Option<CpuNs> = &mut times[self.scopes[event]];
            *time = cpu_time(event).max(*time);
        }
        if times.iter().all(Option::is_none) {
            return None;
        }
        let all: f64 = times.into_iter().flatten().map(CpuNs::as_secs).sum();
        (length.0 > 0).then(|| all / length.as_secs())
    }

    fn close_interval(&mut self) {
        self.intervals += 1;
        self.truths.clone_from(&self.truths_now);
        self.tally.end_interval();
        let before: Vec<_> = self.standings().iter().map(|standing| standing.state.clone()).collect();
        self.estimator.end_interval(&self.tally);
        self.note_relations(&before);
        // Nothing is counted during a delay.
        let (at, length) = (self.now, self.now - self.closed_at.max(self.header.delay_ns));
        let stepped = self.stepped(None);
        for ((event, track), estimate) in self.tracks.iter_mut().enumerate().zip(self.estimator.estimates()) {
            let counted = self.tally.interval(event).total();
            let (mut raw, mut corrected) = (self.tally.interval_count(event), estimate.interval);
            if track.lacks_unit || self.header.events[event].event.is_of_a_part() {
                (raw, corrected) = (raw.map(at_least), corrected.map(at_least));
            }
            if let Some((_, known)) = &mut track.uncounted {
                *known = at_least_so_much(self.tally.total(event), counted, raw);
                (raw, corrected) = (known.interval, known.interval);
            }
            if let Some(known) = stepped.get(&event) {
                (raw, corrected) = (known.interval, known.interval);
                track.stepped = Some(known.clone());
            }
            while track.history.len() >= self.kept {
                track.history.pop_front();
            }
            let cpu_time = self.tally.interval_time(event);
            let point = Point { at, length, cpu_time, counted, raw, corrected };
            track.first_minute.add(&point);
            track.history.push_back(point);
        }
        self.spread_events();
        self.spread_sums();
        self.note_phases();
        self.note_lost();
        self.note_low_ratios();
        self.note_weaknesses();
        if self.intervals >= SETTLED {
            self.note_lacking_units();
        }
        self.closed_at = self.now;
        self.due = self.next_due();
    }

    /// How early a round still ends its interval, as rounds jitter.
    fn slack(&self) -> WallNs {
        WallNs(self.header.period_ns.0 / 2)
    }

    /// The next whole interval ahead, so that a late round doesn't make short ones after it.
    fn next_due(&self) -> WallNs {
        let (interval, half) = (self.header.interval_ns.0.max(1), self.slack().0);
        WallNs((self.now.0.saturating_add(half) / interval).saturating_add(1).saturating_mul(interval))
    }
}

/// The most counts in a millisecond that each event that is estimated may have while a program begins, where the run
/// began with one.
fn beginnings(header: &Header) -> Vec<f64> {
    let begins = matches!(header.target, MeasuredTarget::Command { .. }) && header.delay_ns == WallNs(0);
    let most = |event: &MeasuredEvent| match event.scope {
        Scope::All if begins => most_per_ms_at_startup(&event.event),
        _ => 0.0,
    };
    header.estimated().map(most).collect()
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
        self.now - self.began.max(self.header.delay_ns)
    }

    /// The end of the last interval, up to which all numbers are.
    pub fn closed_at(&self) -> WallNs {
        self.closed_at
    }

    /// The length of the interval that ended last; `None` before the first.
    pub fn last_length(&self) -> Option<WallNs> {
        self.tracks.iter().filter_map(|track| track.history.back().map(|point| point.length)).max()
    }

    /// From when on a reading ends the interval that is under way.
    pub fn next_end(&self) -> WallNs {
        self.due - self.slack()
    }

    /// From when on a reading ended the last interval that ended by this time; `None` where none did.
    pub fn end_by(&self, time: WallNs) -> Option<WallNs> {
        let interval = self.header.interval_ns.0.max(1);
        let ended = (time + self.slack()).0 / interval;
        let first = self.header.first_end();
        let end = if ended == 0 && time + self.slack() >= first { first.0 } else { ended.saturating_mul(interval) };
        Some(WallNs(end) - self.slack()).filter(|end| end.0 > 0)
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
            Cause::Event(event) => self.header.estimated().nth(event).map_or("", |event| &event.event.name),
        }
    }

    /// Whether the end has told that a child was not counted: numbers that were shown before aren't exact.
    pub fn lacks_a_child(&self) -> bool {
        self.tracks.iter().any(|track| matches!(track.uncounted, Some((UncountedPart::OfChild, _))))
    }

    /// The estimates of all intervals by all rounds so far, where the estimator can give them.
    pub fn whole_run(&self) -> Option<WholeRun> {
        self.estimator.whole_run(self.tally.confidence())
    }

    /// Whether intervals are estimated with the whole run known; else by what came before their ends.
    pub fn knows_whole_run(&self) -> bool {
        self.estimator.knows_whole_run()
    }

    /// How many intervals are complete.
    pub fn intervals(&self) -> u64 {
        self.intervals
    }

    /// How many rounds came, and how many were lost.
    pub fn rounds(&self) -> (u64, u64) {
        (self.rounds, self.lost - self.lost_before)
    }
}
