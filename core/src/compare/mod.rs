//! Compares two sets of recordings, event by event, and says which differences are more than chance.
//!
//! A run is one number of an event: its count in the whole recording, in the [`Measure`] in which the event is looked
//! at; or the value of a metric. What a run's number may be off by, as it was multiplexed, is part of how runs differ
//! and needs no place of its own: every run takes its turns anew.
//!
//! ```text
//! A   r1 r2 r3 ...  a number of each event from each     mean, spread
//! B   s1 s2 ...     the same                             mean, spread     tests, corrected for their number
//! ```

use std::cmp::Ordering;

use crate::events::Unit;
use crate::monitor::{Measure, MeasureChoice, Monitor};
use crate::plan::RowIndex;
use crate::rates::{Confidence, Error, Uncertain, two_sided_quantile};
use crate::run::{End, Header};

mod profile;
mod recordings;
#[cfg(test)]
mod simulation;
mod verdict;

pub use profile::{FunctionKey, MOST_TESTED, ProfileDifference, marked};

use recordings::{
    ELAPSED_TIME, elapsed_time, first_part, is_one_after_other, is_part, matched, matched_metrics, programs,
};
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
    /// One side has no number in any run. That isn't the same as 0.
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
            Self::Unclear { .. } => "within error",
            Self::TooFewRuns { .. } => "too few runs",
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

    /// Whether both sides have a number, so that it is one of those that verdicts are corrected for.
    pub fn is_of_both(self) -> bool {
        !matches!(self, Self::OnlyIn(_) | Self::NoNumber | Self::Partial)
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
    /// Which mean of them is compared.
    average: Average,
    /// Whether a recording of this side asked for the event at all.
    is_listed: bool,
    is_partial: bool,
}

/// Which mean of runs is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Average {
    /// That of all: rare events may be in one run of many.
    #[default]
    Whole,
    /// That without a seventh of the runs at each end: of times, one slow run says nothing of the others.
    WithoutOutliers,
}

impl Runs {
    /// The mean over runs; `None` without a number.
    pub fn mean(&self) -> Option<f64> {
        self.spread().map(|spread| spread.mean)
    }

    /// The standard deviation between runs; `None` below two.
    pub fn deviation(&self) -> Option<f64> {
        RunSpread::of(&self.values()).filter(|spread| spread.runs > 1).map(|spread| spread.variance.sqrt())
    }

    /// The standard deviation as a part of the mean; `None` also of zeros.
    pub fn relative_deviation(&self) -> Option<f64> {
        Some(self.deviation()? / self.mean()?.abs()).filter(|part| part.is_finite())
    }

    /// Where the mean lies, by how the runs of this side alone differ: Student's interval. Of a single run it is what
    /// that one may be off by.
    pub fn interval_of_mean(&self, confidence: Confidence) -> Option<(f64, f64)> {
        let spread = self.spread()?;
        if let [number] = self.numbers[..] {
            return match number.error {
                Error::Within { below, above } => Some((number.value - below, number.value + above)),
                Error::Exact | Error::Unknown => None,
            };
        }
        let runs = spread.counted as f64;
        let half = two_sided_quantile(confidence.alpha(), runs - 1.0) * (spread.variance / runs).sqrt();
        Some((spread.mean - half, spread.mean + half))
    }

    fn spread(&self) -> Option<RunSpread> {
        match self.average {
            Average::Whole => RunSpread::of(&self.values()),
            Average::WithoutOutliers => RunSpread::without_outliers(&self.values()),
        }
    }

    fn values(&self) -> Vec<f64> {
        self.numbers.iter().map(|number| number.value).collect()
    }
}

/// An event of one side, of the other, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedEvent {
    /// Name of the event, with the part of the target that it is about.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// What the numbers are rates of; metrics and functions have totals.
    pub measure: Measure,
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
    /// How many times the smaller mean the larger one is at least, by that interval: 1 where there may be no
    /// difference.
    pub least_factor: f64,
}

impl ComparedEvent {
    /// A total in the runs of both sides, without a verdict.
    fn new(name: String, unit: Unit, [a, b]: [Runs; 2]) -> Self {
        let (measure, verdict) = (Measure::Total, Verdict::NoNumber);
        Self { name, unit, measure, a, b, verdict, p: None, interval: None, least_factor: 1.0 }
    }

    /// By what part of the first mean the second differs from it; `None` of 0, which has no parts.
    pub fn change(&self) -> Option<f64> {
        let (a, b) = (self.a.mean()?, self.b.mean()?);
        Some((b - a) / a.abs()).filter(|part| part.is_finite())
    }

    /// How many times the first mean the second one is.
    pub fn ratio(&self) -> MeanRatio {
        let interval = self.interval.map(|(low, high)| (low + 1.0, high + 1.0));
        MeanRatio { value: self.change().map(|change| change + 1.0), interval }
    }

    /// The order of all lists: what differs by more than chance, by how many times it does at least; then what may be
    /// chance, the least likely to be first, and of those that are as likely the larger change; then what is equal;
    /// then what has no number.
    pub fn by_difference(&self, other: &Self) -> Ordering {
        let key = |one: &Self| (-one.least_factor, one.p.unwrap_or(1.0), -one.change().map_or(0.0, f64::abs));
        let (of_one, of_other) = (key(self), key(other));
        let ranks = self.verdict.rank().cmp(&other.verdict.rank());
        ranks
            .then(of_one.0.total_cmp(&of_other.0))
            .then(of_one.1.total_cmp(&of_other.1))
            .then(of_one.2.total_cmp(&of_other.2))
    }
}

/// How many times one mean another one is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MeanRatio {
    /// The ratio; `None` to 0.
    pub value: Option<f64>,
    /// Its interval, as wide as the verdict asks for; `None` where it has no bounds.
    pub interval: Option<(f64, f64)>,
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
    /// What the runs of each side measured, with how many did.
    pub programs: [Vec<(String, usize)>; 2],
    /// The recording for which rates are compared, where others have totals: which it is, and why.
    pub rates_for: Option<String>,
    /// With this probability no verdict is wrong.
    pub confidence: Confidence,
}

impl Default for RunComparison {
    fn default() -> Self {
        compare(&[], &[], MeasureChoice::Usual, ComparedNumber::Estimate)
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

    /// That the sides aren't runs of the same program, or a side is of several, where that is so.
    pub fn different_programs(&self) -> Option<String> {
        let mixed = |(letter, side): (char, &Vec<(String, usize)>)| {
            let all: Vec<_> = side.iter().map(|(program, runs)| format!("{program} ×{runs}")).collect();
            (all.len() > 1).then(|| format!("{letter} mixes {} programs: {}", all.len(), all.join(", ")))
        };
        let mixtures: Vec<_> = ['A', 'B'].into_iter().zip(&self.programs).filter_map(mixed).collect();
        match &self.programs {
            _ if !mixtures.is_empty() => Some(mixtures.join("; ")),
            [a, b] => match (&a[..], &b[..]) {
                ([(a, _)], [(b, _)]) if a != b => Some(format!("different programs: A is {a}, B is {b}")),
                _ => None,
            },
        }
    }

    /// Why rates are compared, where a few recordings are the reason.
    pub fn why_rates(&self) -> Option<String> {
        let which = self.rates_for.as_ref()?;
        Some(format!("{which}: rates are compared instead of totals, and no elapsed time"))
    }

    /// The events in the order of [`ComparedEvent::by_difference`]. While no difference is sure the largest is the
    /// noisiest: then the time that passed and the CPU time are first.
    pub fn in_order(&self) -> Vec<usize> {
        let all = &self.events;
        let mut order: Vec<usize> = (0..all.len()).collect();
        let is_sure = self.differing() > 0;
        let of_time = |one: &ComparedEvent| match one.name.as_str() {
            _ if is_sure => 0,
            ELAPSED_TIME | "duration_time" => 0,
            "task-clock" | "cpu-clock" => 1,
            _ => 2,
        };
        order.sort_by(|&a, &b| of_time(&all[a]).cmp(&of_time(&all[b])).then(all[a].by_difference(&all[b])));
        order
    }

    /// Why there is no verdict, where that is for want of runs, and what to do.
    pub fn what_it_takes(&self) -> Option<String> {
        let (needs, tested) = (self.needs, self.tested);
        let runs = match self.runs {
            _ if self.is_enough || self.tested == 0 => return None,
            [1, 1] => "one run each".into(),
            [a, b] => format!("{a} and {b} runs"),
        };
        let all = if tested == 1 { "one comparison needs".into() } else { format!("{tested} comparisons need") };
        Some(format!("{runs}: too few to tell; {all} {needs} runs of each: record -r {needs}"))
    }
}

/// How recordings are compared by default: runs of commands that ended by themselves did all their work, and their
/// totals are; the usual rates of others, as they were of different length.
pub fn measures<'a>(recordings: impl IntoIterator<Item = (&'a Header, Option<&'a End>)>) -> MeasureChoice {
    let is_whole = |(header, end): (&Header, Option<&End>)| is_part(header, end).is_none();
    if recordings.into_iter().all(is_whole) { MeasureChoice::Every(Measure::Total) } else { MeasureChoice::Usual }
}

/// Compares two sets of recordings. Events are matched by name; of events that are there several times the first
/// belongs to the first. Metrics that both sides have come behind the events.
pub fn compare(a: &[&Monitor], b: &[&Monitor], measures: MeasureChoice, basis: ComparedNumber) -> RunComparison {
    let confidence = a.first().map_or_else(Confidence::default, |monitor| monitor.confidence());
    let alpha = confidence.alpha();
    let mut events = matched([a, b], measures, basis);
    events.extend(matched_metrics([a, b]));
    let are_totals = measures == MeasureChoice::Every(Measure::Total);
    events.extend(are_totals.then(|| elapsed_time([a, b])).flatten());
    let tested = judge(&mut events, confidence);
    let runs = [a.len(), b.len()];
    RunComparison {
        events,
        runs,
        tested,
        needs: enough(tested.max(1), alpha),
        is_enough: is_enough(runs, tested, alpha),
        is_one_after_other: is_one_after_other(a, b),
        programs: programs([a, b]),
        rates_for: if are_totals { None } else { first_part([a, b]) },
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
    /// Which mean of them is compared.
    pub average: Average,
}

/// Compares numbers of runs as [`compare`] compares those of recordings: all together have at most one wrong verdict in
/// so many cases as the confidence leaves. A side without numbers has no verdict.
pub fn compare_numbers(all: Vec<NumbersOfRuns>, confidence: Confidence) -> Vec<ComparedEvent> {
    let runs = |numbers: Vec<f64>, average: Average| Runs {
        average,
        is_listed: !numbers.is_empty(),
        numbers: numbers.into_iter().map(Uncertain::exact).collect(),
        ..Runs::default()
    };
    let event = |one: NumbersOfRuns| {
        ComparedEvent::new(one.name, one.unit, [runs(one.a, one.average), runs(one.b, one.average)])
    };
    let mut events: Vec<ComparedEvent> = all.into_iter().map(event).collect();
    judge(&mut events, confidence);
    events
}

/// Gives a verdict to each event that both sides counted; returns how many these are.
fn judge(events: &mut [ComparedEvent], confidence: Confidence) -> usize {
    let alpha = confidence.alpha();
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
            Decision::Tested { p, differs: false, interval, .. } => {
                (Verdict::Unclear { needs: needed(pair, pairs.len(), alpha) }, Some(p), interval)
            }
            Decision::Tested { p, interval, least_factor, .. } => {
                one.least_factor = least_factor;
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

/// Whether no difference is larger than the last digit shown: several runs of each side are all alike, the runs are the
/// same ones on both sides, or the interval is that narrow. A single run says nothing of the next one; nor is it the
/// same one on both sides because nothing was counted in either.
fn is_known((a, b): &(RunSpread, RunSpread), decision: &Decision) -> bool {
    let half = 0.5 * 10_f64.powi(1 - DIGITS as i32);
    match decision {
        _ if a.runs.min(b.runs) > 1 && !(a.variance > 0.0 || b.variance > 0.0) => true,
        _ if (a.mean, a.variance) == (b.mean, b.variance) => a.runs.min(b.runs) > 1 || a.mean != 0.0,
        Decision::Tested { interval: Some((low, high)), .. } => *low >= -half && *high <= half,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, a: &[f64], b: &[f64]) -> NumbersOfRuns {
        NumbersOfRuns { name: name.into(), unit: Unit::Count, a: a.to_vec(), b: b.to_vec(), average: Average::Whole }
    }

    fn names(mut found: Vec<ComparedEvent>) -> Vec<String> {
        found.sort_by(ComparedEvent::by_difference);
        found.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn what_differs_stands_by_how_many_times_it_does_at_least() {
        let exactly = |value: f64| [value; 6];
        let all = vec![
            one("within error", &[90.0, 110.0, 100.0, 95.0, 105.0, 100.0], &[91.0, 111.0, 101.0, 97.0, 104.0, 100.0]),
            one("equal", &exactly(5.0), &exactly(5.0)),
            // Twice as much for sure, whatever the direction.
            one("doubled", &exactly(10.0), &exactly(20.0)),
            one("third", &exactly(30.0), &exactly(10.0)),
            // Ten times as much, but by an interval that begins below 2.
            one("wide", &[1.0, 1.2, 0.8, 1.1, 0.9, 1.0], &[2.0, 18.0, 10.0, 6.0, 14.0, 10.0]),
            // Of nearly 0, nobody knows how many times as much.
            one("new", &exactly(0.0), &[990.0, 1010.0, 1000.0, 1000.0, 995.0, 1005.0]),
            one("gone", &[9.0, 11.0, 10.0, 10.0, 9.0, 11.0], &[]),
        ];
        let found = compare_numbers(all, Confidence::DEFAULT);
        assert_eq!(names(found), ["new", "third", "doubled", "wide", "within error", "equal", "gone"]);
    }

    #[test]
    fn sides_and_recordings_that_dont_belong_together_are_named() {
        let side = |programs: &[(&str, usize)]| programs.iter().map(|(name, runs)| ((*name).into(), *runs)).collect();
        let words = |a: &[(&str, usize)], b: &[(&str, usize)]| {
            RunComparison { programs: [side(a), side(b)], ..RunComparison::default() }.different_programs()
        };
        assert_eq!(words(&[("x", 5)], &[("x", 4)]), None);
        assert_eq!(words(&[("x", 5)], &[("y", 4)]).as_deref(), Some("different programs: A is x, B is y"));
        let mixed = words(&[("./before", 4), ("./bytes", 1)], &[("./after", 5)]);
        assert_eq!(mixed.as_deref(), Some("A mixes 2 programs: ./before ×4, ./bytes ×1"));
    }

    #[test]
    fn time_is_first_while_no_difference_is_sure() {
        let all = vec![
            one("faults", &[1.0], &[9.0]),
            one("switches", &[1.0], &[99.0]),
            one("task-clock", &[10.0], &[11.0]),
            one(ELAPSED_TIME, &[10.0], &[10.5]),
        ];
        let events = compare_numbers(all, Confidence::DEFAULT);
        let found = RunComparison { events, ..RunComparison::default() };
        assert_eq!(found.in_order(), [3, 2, 1, 0]);
    }

    #[test]
    fn single_runs_are_equal_only_where_they_are_the_same() {
        let verdict = |a: &[f64], b: &[f64]| compare_numbers(vec![one("x", a, b)], Confidence::DEFAULT)[0].verdict;
        // They are 1.00000 million both as they are shown.
        assert!(matches!(verdict(&[1e6], &[1e6 + 0.1]), Verdict::TooFewRuns { .. }));
        assert!(matches!(verdict(&[1e6; 3], &[1e6 + 0.1]), Verdict::TooFewRuns { .. }));
        assert!(matches!(verdict(&[0.0], &[0.0]), Verdict::TooFewRuns { .. }));
        assert_eq!([verdict(&[1e6], &[1e6]), verdict(&[1e6; 2], &[1e6 + 0.1; 2])], [Verdict::Equal; 2]);
    }

    #[test]
    fn the_interval_of_a_mean_by_hand() {
        // t of 0.975 with 4 degrees is 2.7764; the deviation is sqrt(2.5), and that of the mean 0.70711.
        let runs = |numbers: &[f64]| Runs {
            numbers: numbers.iter().copied().map(Uncertain::exact).collect(),
            ..Runs::default()
        };
        let interval = runs(&[1.0, 2.0, 3.0, 4.0, 5.0]).interval_of_mean(Confidence::DEFAULT);
        assert!(interval.is_some_and(|(low, high)| (low - 1.0368).abs() < 1e-3 && (high - 4.9632).abs() < 1e-3));
        assert_eq!(runs(&[]).interval_of_mean(Confidence::DEFAULT), None);
        assert_eq!(runs(&[3.0]).interval_of_mean(Confidence::DEFAULT), None);
        let error = Error::Within { below: 1.0, above: 2.0 };
        let one = Runs { numbers: vec![Uncertain { value: 3.0, error }], ..Runs::default() };
        assert_eq!(one.interval_of_mean(Confidence::DEFAULT), Some((2.0, 5.0)));
    }
}
