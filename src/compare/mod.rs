//! Compares two sets of recordings, event by event, and says which differences are more than chance.
//!
//! A run is one number of an event: its count in the whole recording, in the [`Measure`] that the screen has. What a
//! run's number may be off by, as it was multiplexed, is part of how runs differ and needs no place of its own: every
//! run takes its turns anew.
//!
//! ```text
//! A   r1 r2 r3 ...  a number of each event from each     mean, spread
//! B   s1 s2 ...     the same                             mean, spread     tests, corrected for their number
//! ```

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::events::Unit;
use crate::monitor::{Measure, Monitor, Row};
use crate::plan::RowIndex;
use crate::rates::{Confidence, Uncertain};
use crate::run::{End, Header, MeasuredTarget};
use crate::sources::command::Exit;

mod profile;
#[cfg(test)]
mod simulation;
mod student;
#[cfg(feature = "bench")]
pub(crate) use student::two_sided_quantile;
mod verdict;

pub use profile::{FunctionKey, MOST_TESTED, ProfileDifference, marked};

use verdict::{Decision, RunSpread, decide, enough, is_enough, needed};

/// Means are equal if so many digits of them are, which is what is shown of them.
pub const DIGITS: usize = 5;

/// Which of two sets of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one named first.
    A,
    /// The other one.
    B,
}

/// Which number of an event is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparedNumber {
    /// The scaled count.
    Raw,
    /// What the estimator makes of it.
    Estimate,
}

/// What B is beside A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Higher by more than chance.
    Higher,
    /// Lower by more than chance.
    Lower,
    /// The numbers are the same to the last digit shown, and what runs differ by leaves no doubt of that.
    Equal,
    /// The difference may be chance. If it is as it seems, so many runs a side show it; `None` above 1,000.
    Unclear {
        /// Runs of each side.
        needs: Option<usize>,
    },
    /// So few runs can't tell any difference from chance.
    TooFewRuns {
        /// How many of each side can.
        needs: usize,
    },
    /// Only this side has the event.
    OnlyIn(Side),
    /// No run of one of the sides has a number, which is not 0.
    NoNumber,
    /// One kind of core counted a part, and what part of the whole that is isn't known.
    Partial,
}

impl Verdict {
    /// The word for it, about the second of two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Equal => "equal",
            Self::Unclear { .. } | Self::TooFewRuns { .. } => "can't tell",
            Self::OnlyIn(Side::A) => "only in A",
            Self::OnlyIn(Side::B) => "only in B",
            Self::NoNumber => "no number",
            Self::Partial => "partial",
        }
    }

    /// Whether a difference is sure.
    pub fn is_sure(self) -> bool {
        matches!(self, Self::Higher | Self::Lower)
    }

    /// How many runs of each side it takes to know more.
    pub fn needs(self) -> Option<usize> {
        match self {
            Self::Unclear { needs } => needs,
            Self::TooFewRuns { needs } => Some(needs),
            _ => None,
        }
    }

    /// What is known first stands first.
    fn rank(self) -> u8 {
        match self {
            Self::Higher | Self::Lower => 0,
            Self::Unclear { .. } | Self::TooFewRuns { .. } => 1,
            Self::Equal => 2,
            Self::OnlyIn(_) | Self::NoNumber | Self::Partial => 3,
        }
    }
}

/// An event in the recordings of one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs {
    /// Place of the event in the list of events of the side's first recording, if it is there.
    pub index: Option<RowIndex>,
    /// A number of each recording that has one, in the measure asked for, with what that run left unseen.
    pub numbers: Vec<Uncertain>,
    /// Whether a recording of this side asked for the event at all.
    is_listed: bool,
    is_partial: bool,
}

impl Runs {
    /// The mean over runs; `None` without a number.
    pub fn mean(&self) -> Option<f64> {
        self.spread().map(|spread| spread.mean)
    }

    /// The standard deviation between runs; `None` below two.
    pub fn deviation(&self) -> Option<f64> {
        self.spread().filter(|spread| spread.runs > 1).map(|spread| spread.variance.sqrt())
    }

    /// The standard deviation as a part of the mean; `None` also of zeros.
    pub fn relative_deviation(&self) -> Option<f64> {
        Some(self.deviation()? / self.mean()?.abs()).filter(|part| part.is_finite())
    }

    fn spread(&self) -> Option<RunSpread> {
        RunSpread::of(&self.numbers.iter().map(|number| number.value).collect::<Vec<_>>())
    }
}

/// An event of one side, of the other, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedEvent {
    /// Name of the event, with the part of the target that it is about.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// The runs of the first side.
    pub a: Runs,
    /// The runs of the second side.
    pub b: Runs,
    /// What they are beside one another.
    pub verdict: Verdict,
    /// The probability of such a difference by chance, corrected for the number of events; `None` where too few runs
    /// or numbers leave nothing to test.
    pub p: Option<f64>,
    /// The interval of the [`change`](Self::change), as wide as the verdict asks for; `None` where it has no bounds.
    pub interval: Option<(f64, f64)>,
}

impl ComparedEvent {
    /// By what part of the first mean the second differs from it; `None` of 0, which has no parts.
    pub fn change(&self) -> Option<f64> {
        let (a, b) = (self.a.mean()?, self.b.mean()?);
        Some((b - a) / a.abs()).filter(|part| part.is_finite())
    }

    /// The surest first, and of those that are as sure the larger change.
    pub fn by_sureness(&self, other: &Self) -> Ordering {
        let key = |one: &Self| (one.verdict.rank(), one.p.unwrap_or(1.0), -one.change().map_or(0.0, f64::abs));
        let (one, other) = (key(self), key(other));
        one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)).then(one.2.total_cmp(&other.2))
    }
}

/// The events of two sets of recordings.
#[derive(Clone, Debug)]
pub struct RunComparison {
    /// All events: those of A in their order, then those that only B has.
    pub events: Vec<ComparedEvent>,
    /// How many recordings each side has.
    pub runs: [usize; 2],
    /// How many events both sides counted, for which p-values are corrected.
    pub tested: usize,
    /// How many runs of each side a verdict takes.
    pub needs: usize,
    /// Whether so many runs can give a verdict.
    pub is_enough: bool,
    /// Whether all runs of one side came before those of the other.
    pub is_one_after_other: bool,
    /// With this probability no verdict is wrong.
    pub confidence: Confidence,
}

impl Default for RunComparison {
    fn default() -> Self {
        compare(&[], &[], Measure::default(), ComparedNumber::Estimate)
    }
}

impl RunComparison {
    /// How many events differ for sure.
    pub fn differing(&self) -> usize {
        self.events.iter().filter(|one| one.verdict.is_sure()).count()
    }

    /// Whether a side has several recordings, which differ.
    pub fn has_spread(&self) -> bool {
        self.runs.iter().any(|&runs| runs > 1)
    }

    /// Why there is no verdict, where that is for want of runs, and what to do.
    pub fn what_it_takes(&self) -> Option<String> {
        let (needs, events) = (self.needs, self.tested);
        let runs = match self.runs {
            _ if self.is_enough || self.tested == 0 => return None,
            [1, 1] => "one run each".into(),
            [a, b] => format!("{a} and {b} runs"),
        };
        let of_events = if events == 1 { "one event takes".into() } else { format!("{events} events take") };
        Some(format!("{runs}: can't tell; {of_events} {needs} of each: record -r {needs}"))
    }
}

/// How recordings are compared by default: runs of commands that ended by themselves did all their work, and their
/// totals are; rates of others, as they were of different length.
pub fn measure<'a>(recordings: impl IntoIterator<Item = (&'a Header, Option<&'a End>)>) -> Measure {
    let is_whole = |(header, end): (&Header, Option<&End>)| {
        matches!(header.target, MeasuredTarget::Command { .. })
            && end.is_some_and(|end| matches!(end.exit, Some(Exit::Code(_))))
    };
    if recordings.into_iter().all(is_whole) { Measure::Total } else { Measure::default() }
}

/// Compares two sets of recordings. Events are matched by name; of events that are there several times the first
/// belongs to the first.
pub fn compare(a: &[&Monitor], b: &[&Monitor], measure: Measure, basis: ComparedNumber) -> RunComparison {
    let confidence = a.first().map_or_else(Confidence::default, |monitor| monitor.confidence());
    let alpha = 1.0 - confidence.level();
    let mut events = matched([a, b], measure, basis);
    let tested = judge(&mut events, confidence);
    let runs = [a.len(), b.len()];
    RunComparison {
        events,
        runs,
        tested,
        needs: enough(tested.max(1), alpha),
        is_enough: is_enough(runs, tested, alpha),
        is_one_after_other: is_one_after_other(a, b),
        confidence,
    }
}

/// Numbers of single runs, to be compared without recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct NumbersOfRuns {
    /// What they are numbers of.
    pub name: String,
    /// Their unit.
    pub unit: Unit,
    /// A number of each run of the first side.
    pub a: Vec<f64>,
    /// A number of each run of the second side.
    pub b: Vec<f64>,
}

/// Compares numbers of runs as [`compare`] compares those of recordings: all together have at most one wrong verdict in so
/// many cases as the confidence leaves. A side without numbers has no verdict.
pub fn compare_numbers(all: Vec<NumbersOfRuns>, confidence: Confidence) -> Vec<ComparedEvent> {
    let runs = |numbers: Vec<f64>| Runs {
        is_listed: !numbers.is_empty(),
        numbers: numbers.into_iter().map(Uncertain::exact).collect(),
        ..Runs::default()
    };
    let event = |one: NumbersOfRuns| ComparedEvent {
        name: one.name,
        unit: one.unit,
        a: runs(one.a),
        b: runs(one.b),
        verdict: Verdict::NoNumber,
        p: None,
        interval: None,
    };
    let mut events: Vec<ComparedEvent> = all.into_iter().map(event).collect();
    judge(&mut events, confidence);
    events
}

/// Gives a verdict to each event that both sides counted; returns how many these are.
fn judge(events: &mut [ComparedEvent], confidence: Confidence) -> usize {
    let alpha = 1.0 - confidence.level();
    let both =
        |one: &ComparedEvent| (!one.a.is_partial && !one.b.is_partial).then(|| one.a.spread().zip(one.b.spread()));
    let (places, pairs): (Vec<_>, Vec<_>) =
        events.iter().enumerate().filter_map(|(place, one)| Some((place, both(one)??))).unzip();
    for (place, (decision, pair)) in places.into_iter().zip(decide(&pairs, confidence).into_iter().zip(&pairs)) {
        let one = &mut events[place];
        let is_equal = is_equal(pair, &one.unit) && is_known(pair, &decision);
        (one.verdict, one.p, one.interval) = match decision {
            _ if is_equal => (Verdict::Equal, None, None),
            Decision::TooFew => (Verdict::TooFewRuns { needs: enough(pairs.len(), alpha) }, None, None),
            Decision::Tested { p, differs: false, interval } => {
                (Verdict::Unclear { needs: needed(pair, pairs.len(), alpha) }, Some(p), interval)
            }
            Decision::Tested { p, interval, .. } => {
                (if pair.1.mean > pair.0.mean { Verdict::Higher } else { Verdict::Lower }, Some(p), interval)
            }
        };
    }
    pairs.len()
}

/// Whether the means are the same as they are shown.
fn is_equal((a, b): &(RunSpread, RunSpread), unit: &Unit) -> bool {
    let scale = if let Unit::Scaled { scale, .. } = unit { *scale } else { 1.0 };
    let shown = |spread: &RunSpread| format!("{:.*e}", DIGITS - 1, spread.mean * scale);
    shown(a) == shown(b)
}

/// Whether no difference is larger than the last digit shown: the runs are all alike, the same ones on both sides, or the
/// interval is that narrow.
fn is_known((a, b): &(RunSpread, RunSpread), decision: &Decision) -> bool {
    let half = 0.5 * 10_f64.powi(1 - DIGITS as i32);
    match decision {
        _ if !(a.variance > 0.0 || b.variance > 0.0) => true,
        _ if (a.mean, a.variance) == (b.mean, b.variance) => true,
        Decision::Tested { interval: Some((low, high)), .. } => *low >= -half && *high <= half,
        _ => false,
    }
}

/// A drift of the machine then looks like a difference. Old recordings don't say when they were made.
fn is_one_after_other(a: &[&Monitor], b: &[&Monitor]) -> bool {
    let ends = |side: &[&Monitor]| {
        let starts = side.iter().map(|monitor| monitor.header().started);
        (starts.clone().fold(f64::INFINITY, f64::min), starts.fold(f64::NEG_INFINITY, f64::max))
    };
    let (a_ends, b_ends) = (ends(a), ends(b));
    a.len() > 1 && b.len() > 1 && (a_ends.1 < b_ends.0 || b_ends.1 < a_ends.0)
}

/// All events with their numbers, without verdicts that need both sides.
fn matched(sides: [&[&Monitor]; 2], measure: Measure, basis: ComparedNumber) -> Vec<ComparedEvent> {
    let mut events: Vec<ComparedEvent> = Vec::new();
    let mut places: HashMap<(String, usize), usize> = HashMap::new();
    for (side, monitors) in [Side::A, Side::B].into_iter().zip(sides) {
        for (run, monitor) in monitors.iter().enumerate() {
            let mut seen: HashMap<String, usize> = HashMap::new();
            for row in monitor.rows() {
                let name = row.event.title();
                let nth = seen.entry(name.clone()).and_modify(|nth| *nth += 1).or_insert(0);
                let place = *places.entry((name.clone(), *nth)).or_insert_with(|| {
                    events.push(unmatched(name, &row));
                    events.len() - 1
                });
                let runs = if side == Side::A { &mut events[place].a } else { &mut events[place].b };
                runs.is_listed = true;
                runs.is_partial |= row.is_partial();
                runs.index = runs.index.or(Some(row.index).filter(|_| run == 0));
                runs.numbers.extend(number(monitor, &row, measure, basis));
            }
        }
    }
    for one in &mut events {
        one.verdict = match (&one.a, &one.b) {
            (_, b) if !b.is_listed => Verdict::OnlyIn(Side::A),
            (a, _) if !a.is_listed => Verdict::OnlyIn(Side::B),
            (a, b) if a.is_partial || b.is_partial => Verdict::Partial,
            _ => Verdict::NoNumber,
        };
    }
    events
}

fn unmatched(name: String, row: &Row<'_>) -> ComparedEvent {
    let (a, b) = Default::default();
    ComparedEvent {
        name,
        unit: row.event.event.unit.clone(),
        a,
        b,
        verdict: Verdict::NoNumber,
        p: None,
        interval: None,
    }
}

fn number(monitor: &Monitor, row: &Row<'_>, measure: Measure, basis: ComparedNumber) -> Option<Uncertain> {
    let count = match basis {
        ComparedNumber::Raw => row.scaled,
        ComparedNumber::Estimate => row.estimate.total,
    };
    let number = count?.times(measure.factor(monitor, row)?);
    number.value.is_finite().then_some(number)
}
