//! Validates the intervals of multiplexed counts on this machine, against counts that had a counter all the time.
//!
//! A command runs several times with all events in turns on the counters, as any measurement counts them, and between
//! these runs as often with each event on a counter all the time. As many events as leave the others a counter are
//! pinned in a run, and the others still take turns, so that the command has the same cost of turns and reads:
//!
//! ```text
//! round 0    turns   a b   c d   start
//! round 1    a b     c d   start turns       each round begins one further, so that a drift of the machine
//! round 2    c d     start turns a b         hits what is estimated and what is true alike
//! ```
//!
//! What a run of turns counted in truth isn't known then, only what other runs did, and by how much they differ: in
//! all, and in what CPU time a report interval took. Where few counters are emulated (`--counters`) the truth is
//! counted beside, in the same run, and known exactly.
//!
//! `start` is a run of the [built-in mix](mix) at no length: what is left of the mix without it is known exactly.

use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::events::{Event, EventKind};
use crate::measure::{Error, Measurement};
use crate::plan::{Fit, RowIndex};
use crate::rates::{Confidence, Moments, Uncertain};
use crate::run::MeasuredEvent;
use crate::session::{CaughtSignal, CommandLine, Unfinished};
use crate::sources::command::Exit;
use crate::sources::perf;

mod conclusion;
pub mod mix;
mod runs;
#[cfg(test)]
mod tests;
mod truth;

pub use conclusion::{Conclusion, ENOUGH, Validity, least, misses_the_truth};
pub use mix::KnownCounts;
pub use truth::{Coverage, Judgement, RelativeError, TrueCount, judge};

use runs::{EventRun, ReadRun, Reads, StretchCounts};
use truth::Curve;

/// How a measurement is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidateOptions {
    /// How often the command runs with events in turns; at least 2.
    pub runs: usize,
    /// Length of the report intervals.
    pub interval: Duration,
}

/// A command whose counts are known, less those of another.
#[derive(Clone, Debug)]
pub struct KnownCommand {
    /// The other command, which only starts.
    pub start: CommandLine,
    /// By how much their counts differ.
    pub counts: KnownCounts,
}

/// What became of a validation.
#[derive(Debug)]
pub enum ValidationOutcome {
    /// Numbers were held against the truth.
    Validated(Validation),
    /// Nothing took turns, so that there is nothing to validate: what was counted, and what could not be.
    NothingInTurns {
        /// Events that were counted, each all the time.
        counted: Vec<MeasuredEvent>,
        /// Events that can't be counted here.
        refused: Vec<MeasuredEvent>,
    },
    /// A signal came before the last run.
    Interrupted(i32),
}

/// How far numbers are from the truth.
#[derive(Clone, Debug)]
pub struct Validation {
    /// Each event, in the order of the measurement.
    pub events: Vec<ValidatedEvent>,
    /// How often the command ran with events in turns.
    pub runs: usize,
    /// How many runs there were for the truth; 0 where it was counted beside.
    pub truth_runs: usize,
    /// Length of the report intervals.
    pub interval: Duration,
    /// The CPU time of a run with events in turns, on average.
    pub cpu_time: Duration,
    /// How often intervals are to hold the truth.
    pub confidence: Confidence,
    /// How many intervals of the events' totals hold it.
    pub totals: Coverage,
    /// How many report intervals hold the truth, of all events.
    pub intervals: Coverage,
    /// How the command ended, if a run didn't end with 0.
    pub failed: Option<Exit>,
    /// What all of it comes to.
    pub conclusion: Conclusion,
}

/// How far the numbers of an event are from the truth.
#[derive(Clone, Debug)]
pub struct ValidatedEvent {
    /// The event, and whether it could be opened.
    pub event: MeasuredEvent,
    /// The mean part of the time that it was on a counter.
    pub run_ratio: Option<f64>,
    /// The truth: its mean over runs, and how far it is from that in a run.
    pub truth: Option<Uncertain>,
    /// The error of scaled totals.
    pub scaled: Option<RelativeError>,
    /// The error of perfprop's totals.
    pub estimated: Option<RelativeError>,
    /// How many intervals of totals hold the truth.
    pub totals: Coverage,
    /// The error of scaled counts in report intervals.
    pub scaled_intervals: Option<RelativeError>,
    /// The error of perfprop's counts in report intervals.
    pub estimated_intervals: Option<RelativeError>,
    /// How many report intervals hold the truth.
    pub intervals: Coverage,
    /// What it counted of something known.
    pub known: Option<KnownCount>,
    /// What is to be said of it.
    pub validity: Validity,
}

/// A count beside its known value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownCount {
    /// The mean count, all the time on a counter, less what it takes to start.
    pub counted: f64,
    /// What it should be.
    pub known: u64,
    /// Whether only user space was counted, where nothing else happens.
    pub is_user_only: bool,
}

impl Validation {
    /// Whether the command was over before its events had turns enough for any interval.
    pub fn is_too_short(&self) -> bool {
        let found = [self.totals, self.intervals];
        found.iter().all(|found| *found == Coverage::default()) && self.cpu_time < self.interval
    }
}

impl KnownCount {
    /// How far the count is off, as a part of the known value.
    pub fn deviation(self) -> f64 {
        self.counted / self.known as f64 - 1.0
    }
}

/// A run that is done again and again.
struct Repeated {
    measurement: Measurement,
    what: RunKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum RunKind {
    /// All events take turns.
    Turns,
    /// These events are pinned.
    Pinned(Vec<RowIndex>),
    /// The command only starts, and these events are counted.
    Start(Vec<RowIndex>),
}

/// What became of the runs, for each event.
#[derive(Debug, Default)]
struct Counted {
    /// The events of each run with turns.
    turns: Vec<Vec<EventRun>>,
    /// What each event counted in the runs that it was pinned in.
    always: Vec<Vec<Curve>>,
    /// What it counted where the command only started.
    starts: Vec<Vec<f64>>,
    truth_runs: usize,
    failed: Option<Exit>,
}

impl Counted {
    fn new(events: usize) -> Self {
        Self { always: vec![Vec::new(); events], starts: vec![Vec::new(); events], ..Self::default() }
    }

    /// The mean CPU time of the runs with turns: in each, that of the event that was enabled longest.
    fn cpu_time(&self) -> Duration {
        let of_run = |run: &Vec<EventRun>| run.iter().map(|event| event.total.span.1).fold(0.0, f64::max);
        Duration::from_nanos(mean(self.turns.iter().map(of_run)).unwrap_or(0.0) as u64)
    }

    fn take(&mut self, repeated: &Repeated, run: &ReadRun) {
        let exit = run.outcome.end.exit.filter(|&exit| exit != Exit::Code(0));
        self.failed = self.failed.or(exit);
        match &repeated.what {
            RunKind::Turns => self.turns.push(run.estimated(&repeated.measurement)),
            RunKind::Pinned(set) => {
                self.truth_runs += 1;
                set.iter().for_each(|&event| self.always[event].extend(run.curve(event)));
            }
            RunKind::Start(set) => {
                let curves = set.iter().enumerate().map(|(place, &event)| (event, run.curve(place)));
                curves.for_each(|(event, curve)| self.starts[event].extend(curve.map(|curve| curve.total())));
            }
        }
    }
}

/// Why a validation ends before its last run.
type UnfinishedValidation = Unfinished<Error>;

/// Runs the command of a measurement in turns with runs that tell the truth. `progress` is told of each run, from 0,
/// and how many there will be. Signals end it.
///
/// # Errors
/// Returns the errors of measuring.
pub fn validate(
    measurement: Measurement,
    known: Option<&KnownCommand>,
    options: ValidateOptions,
    signals: &Receiver<CaughtSignal>,
    progress: &mut dyn FnMut(usize, Option<usize>),
    note: &mut dyn FnMut(&str),
) -> Result<ValidationOutcome, Error> {
    let reads = Reads { period: measurement.period(options.interval), interval: options.interval, signals };
    let outcome = until_stopped(measurement, known, options, &reads, progress, note);
    outcome.or_else(|stopped| stopped.signal().map(ValidationOutcome::Interrupted))
}

fn until_stopped(
    measurement: Measurement,
    known: Option<&KnownCommand>,
    options: ValidateOptions,
    reads: &Reads<'_>,
    progress: &mut dyn FnMut(usize, Option<usize>),
    note: &mut dyn FnMut(&str),
) -> Result<ValidationOutcome, UnfinishedValidation> {
    progress(0, None);
    // Not counted: the first run finds no file in memory, and tells what there is to count.
    let first = once(&measurement, reads, note)?;
    let events = first.events().to_vec();
    if !(0..events.len()).any(|event| first.takes_turns(event)) {
        let (counted, refused) = events.into_iter().partition(|event| event.status.is_open());
        return Ok(ValidationOutcome::NothingInTurns { counted, refused });
    }
    let confidence = measurement.estimation.confidence;
    let mut repeated = repeated(measurement, &events, known, reads)?;
    let mut counted = Counted::new(events.len());
    let all = repeated.len() * options.runs;
    for number in 0..all {
        progress(number, Some(all));
        let (round, place) = (number / repeated.len(), number % repeated.len());
        let kinds = repeated.len();
        let next = &mut repeated[(round + place) % kinds];
        next.measurement.launch.first_turn = round;
        let run = once(&next.measurement, reads, &mut |_| {})?;
        counted.take(next, &run);
    }
    progress(all, Some(all));
    Ok(ValidationOutcome::Validated(validation(&counted, known.map(|known| known.counts), options, confidence)))
}

fn once(
    measurement: &Measurement,
    reads: &Reads<'_>,
    note: &mut dyn FnMut(&str),
) -> Result<ReadRun, UnfinishedValidation> {
    let run = runs::run(measurement, reads, note)?;
    match run.outcome.ended_by.signal() {
        Some(signal) => Err(Unfinished::Signal(signal)),
        None => Ok(run),
    }
}

/// Everything that runs in a round.
fn repeated(
    measurement: Measurement,
    events: &[MeasuredEvent],
    known: Option<&KnownCommand>,
    reads: &Reads<'_>,
) -> Result<Vec<Repeated>, UnfinishedValidation> {
    let is_hardware = |event: &RowIndex| events[*event].status.is_open() && !events[*event].event.kind.is_software();
    let counted: Vec<RowIndex> = (0..events.len()).filter(is_hardware).collect();
    let mut all = Vec::new();
    let of_known = |event: &RowIndex| known_count(&events[*event].event, KnownCounts::default()).is_some();
    let known_set: Vec<_> = counted.iter().copied().filter(of_known).collect();
    if let Some(known) = known.filter(|_| !known_set.is_empty()) {
        let start = runs::alone(&measurement, &known_set, &known.start);
        all.push(Repeated { measurement: start, what: RunKind::Start(known_set) });
    }
    // Beside emulated counters the truth is counted anyway.
    if measurement.launch.counters.is_none() {
        let sets = pinned_sets(&measurement, counted, reads)?;
        all.extend(sets.into_iter().map(|set| {
            let pinned = runs::pinned(&measurement, &set);
            Repeated { measurement: pinned, what: RunKind::Pinned(set) }
        }));
    }
    all.push(Repeated { measurement, what: RunKind::Turns });
    Ok(all)
}

/// Sets of events that are counted all the time together. The kernel says which fit, but not that somebody else holds a
/// counter: a set of which some have to wait in a run is divided. An event that waits alone has no truth, and is in no
/// set.
fn pinned_sets(
    measurement: &Measurement,
    events: Vec<RowIndex>,
    reads: &Reads<'_>,
) -> Result<Vec<Vec<RowIndex>>, UnfinishedValidation> {
    let mut waiting = fitting_sets(&measurement.plan.events, events, &mut perf::fit);
    let mut sets = Vec::new();
    while let Some(set) = waiting.pop() {
        let run = once(&runs::pinned(measurement, &set), reads, &mut |_| {})?;
        let (counted, rest): (Vec<_>, Vec<_>) = set.iter().copied().partition(|&event| run.curve(event).is_some());
        match (counted.is_empty(), rest.is_empty()) {
            (false, true) => sets.push(set),
            (false, false) => waiting.extend([counted, rest]),
            (true, _) if set.len() == 1 => {}
            (true, _) => {
                let (one, other) = set.split_at(set.len() / 2);
                waiting.extend([one.to_vec(), other.to_vec()]);
            }
        }
    }
    sets.sort_unstable();
    Ok(sets)
}

/// Sets of events of which each PMU counts those that are its own at once, with one more beside where there are others:
/// these are to take turns there.
fn fitting_sets(all: &[Event], events: Vec<RowIndex>, fit: &mut dyn FnMut(&[&Event]) -> Fit) -> Vec<Vec<RowIndex>> {
    let mut sets: Vec<Vec<RowIndex>> = Vec::new();
    for &event in &events {
        let pmu = all[event].pmu_type();
        let mut takes = |set: &Vec<RowIndex>| {
            let own = |member: &RowIndex| all[*member].pmu_type() == pmu;
            let with: Vec<RowIndex> = set.iter().chain([&event]).copied().filter(own).collect();
            let other = events.iter().copied().find(|other| own(other) && !with.contains(other));
            let together: Vec<&Event> = with.iter().chain(&other).map(|&member| &all[member]).collect();
            with.len() == 1 || fit(&together) == Fit::Fits
        };
        match sets.iter_mut().find(|set| takes(set)) {
            Some(set) => set.push(event),
            None => sets.push(vec![event]),
        }
    }
    sets
}

/// What a mix executes of an event, and whether nothing else of it is counted in user space.
fn known_count(event: &Event, counts: KnownCounts) -> Option<u64> {
    let is_generic = matches!(event.kind, EventKind::Hardware | EventKind::Modelled) && event.core().is_none();
    // Arm's PMUs count other things as branches, each core its own.
    let counts_branches = event.kind == EventKind::Modelled || cfg!(target_arch = "x86_64");
    match event.canonical.as_str() {
        _ if !is_generic || event.modifiers.exclude_user => None,
        "instructions" => Some(counts.instructions),
        "branches" | "branch-instructions" if counts_branches => Some(counts.branches),
        _ => None,
    }
}

/// Holds what was counted in turns against the truth.
fn validation(
    counted: &Counted,
    known: Option<KnownCounts>,
    options: ValidateOptions,
    confidence: Confidence,
) -> Validation {
    let event = |event: RowIndex| {
        let turns: Vec<_> = counted.turns.iter().map(|run| &run[event]).collect();
        let mut validated = event_of_runs(&turns, &counted.always[event], confidence);
        let start = mean(counted.starts[event].iter().copied());
        let known = known.and_then(|known| known_count(&validated.event.event, known));
        validated.known = validated.truth.zip(start).zip(known).map(|((truth, start), known)| {
            let measured = &validated.event.event;
            let is_user_only = measured.modifiers.exclude_kernel || measured.kind == EventKind::Modelled;
            KnownCount { counted: truth.value - start, known, is_user_only }
        });
        validated
    };
    let mut events: Vec<_> = (0..counted.turns.first().map_or(0, Vec::len)).map(event).collect();
    conclusion::judge_events(&mut events, confidence);
    let (mut totals, mut intervals) = (Coverage::default(), Coverage::default());
    for event in &events {
        totals.add_all(event.totals);
        intervals.add_all(event.intervals);
    }
    Validation {
        conclusion: Conclusion::of(&events, totals, intervals, confidence),
        events,
        runs: options.runs,
        truth_runs: counted.truth_runs,
        interval: options.interval,
        cpu_time: counted.cpu_time(),
        confidence,
        totals,
        intervals,
        failed: counted.failed,
    }
}

/// An event by its runs in turns, and by those in which it had a counter all the time.
fn event_of_runs(turns: &[&EventRun], always: &[Curve], confidence: Confidence) -> ValidatedEvent {
    let total = TrueCount::of_other_runs(always.iter().map(Curve::total));
    // What was counted all the time is no estimate.
    let totals = turns.iter().map(|run| run.total).filter(|counts| !counts.is_exact());
    let totals: Vec<_> =
        totals.filter_map(|counts| Some((counts, counts.truth.map(TrueCount::SameRun).or(total)?))).collect();
    // What the kernel does alone goes by ticks and turns, and not by how far the command has come.
    let is_of_kernel = turns[0].event.event.modifiers.exclude_user;
    let of_stretch = |counts: &StretchCounts| {
        let curves = always.iter().filter(|_| !is_of_kernel);
        let other = || TrueCount::of_other_runs(curves.filter_map(|curve| curve.between(counts.span)));
        counts.truth.map(TrueCount::SameRun).or_else(other)
    };
    let intervals = turns.iter().flat_map(|run| &run.intervals).filter(|counts| !counts.is_exact());
    let intervals: Vec<_> = intervals.filter_map(|counts| Some((*counts, of_stretch(counts)?))).collect();
    let truths = turns.iter().filter_map(|run| run.total.truth).chain(always.iter().map(Curve::total));
    let error = |of: &[(StretchCounts, TrueCount)], number: fn(&StretchCounts) -> Option<Uncertain>| {
        RelativeError::of(of.iter().filter_map(|(counts, truth)| Some((number(counts)?.value, *truth))))
    };
    ValidatedEvent {
        event: turns[0].event.clone(),
        run_ratio: mean(turns.iter().filter_map(|run| run.run_ratio)),
        truth: spread_of(truths, confidence),
        scaled: error(&totals, |counts| counts.scaled),
        estimated: error(&totals, |counts| counts.best),
        totals: covered(&totals, confidence),
        scaled_intervals: error(&intervals, |counts| counts.scaled),
        estimated_intervals: error(&intervals, |counts| counts.best),
        intervals: covered(&intervals, confidence),
        known: None,
        validity: Validity::Unclear,
    }
}

fn covered(of: &[(StretchCounts, TrueCount)], confidence: Confidence) -> Coverage {
    let mut coverage = Coverage::default();
    let judgements = of.iter().filter_map(|(counts, truth)| judge(counts.best?, *truth, confidence));
    judgements.for_each(|judgement| coverage.add(judgement));
    coverage
}

/// The mean of counts, and how far a single one is from it; `None` without any.
fn spread_of(counts: impl Iterator<Item = f64>, confidence: Confidence) -> Option<Uncertain> {
    let mut spread = Moments::default();
    counts.for_each(|count| spread.add(count, 1.0));
    let half = spread.variance().map(|variance| variance.sqrt() * confidence.student((spread.samples() - 1) as f64));
    Some(Uncertain { value: spread.mean()?, error: half.map_or(crate::rates::Error::Unknown, crate::rates::Error::of) })
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all = Moments::default();
    numbers.for_each(|number| all.add(number, 1.0));
    all.mean()
}
