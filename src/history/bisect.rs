//! Finds the commit of a known step: builds and measures as few commits as halving asks for, each until it is sure on which side it is.

use std::collections::BTreeMap;

use crossbeam_channel::Receiver;

use super::checkout::{Built, Checkout};
use super::entries::{divisor, named_benchmark};
use super::failures::HistoryError;
use super::git::Commit;
use super::results::ResultStore;
use super::run::{Begun, HistoryOptions, HistoryOutcome, HistoryProgress, HistoryRun, Measuring, Written};
use crate::bench::{Runner, order};
use crate::session::CaughtSignal;
use crate::steps::{LocateRules, LocatedStep, MeasuredTurn, NarrowedBy, locate, median};

/// The share of searches that may name a wrong commit.
pub const BISECT_ERROR: f64 = 0.01;

/// What a search found.
#[derive(Debug)]
pub struct BisectOutcome {
    /// Where the step is, by places of commits.
    pub located: LocatedStep,
    /// The median of what was measured of each commit now; `None` of those that weren't.
    pub levels: Vec<Option<f64>>,
    /// The unit of these.
    pub unit: String,
    /// How many commits were built, or found built.
    pub built: usize,
    /// How often the benchmark was run, what failed, and the signal that ended the search.
    pub history: HistoryOutcome,
}

/// Finds the commit that changed a quantity of the first benchmark: the first and the last commit are known to differ. The most
/// runs of a commit are the options' repeats. All runs go to the store, too.
///
/// # Errors
/// Returns why nothing more can be measured; what was measured until then is in the store.
pub fn bisect(
    options: &HistoryOptions,
    quantity: &str,
    checkout: &Checkout,
    store: &ResultStore,
    signals: &Receiver<CaughtSignal>,
    progress: &mut dyn FnMut(HistoryProgress<'_>),
) -> Result<BisectOutcome, HistoryError> {
    let count = options.commits.len();
    let unit = named_benchmark("", quantity).unit;
    let nothing = LocatedStep::Narrowed { last: 0, first: count.saturating_sub(1), because: NarrowedBy::Interrupted };
    let (history, runner) = match HistoryRun::start(options, store, signals)? {
        Begun::Ready(history, runner) => (*history, *runner),
        Begun::Interrupted(signal) => {
            let history = HistoryOutcome { signal: Some(signal), ..HistoryOutcome::default() };
            return Ok(BisectOutcome { located: nothing, levels: vec![None; count], unit, built: 0, history });
        }
    };
    let commits = (0..count).map(|_| BisectedCommit::default()).collect();
    let mut bisection = Bisection {
        history,
        runner,
        quantity,
        checkout,
        store,
        signals,
        progress,
        commits,
        turns: 0,
        seed: options.seed,
    };
    let rules = LocateRules { error: BISECT_ERROR, most_turns: options.repeats };
    let located = locate(count, rules, &mut |places| bisection.turn(places));
    let measured: Vec<Measuring<'_>> = bisection.commits.iter_mut().filter_map(|one| one.measuring.take()).collect();
    let written = bisection.history.write(&measured, Written::All, store);
    let located = located?;
    written?;
    let level = |one: BisectedCommit<'_>| median(one.numbers).map(|level| level / divisor(quantity));
    let levels = bisection.commits.into_iter().map(level).collect();
    let mut history = bisection.history.outcome;
    history.measured = measured.len();
    Ok(BisectOutcome { located, levels, unit, built: measured.len(), history })
}

/// A commit of the range.
#[derive(Default)]
struct BisectedCommit<'a> {
    measuring: Option<Measuring<'a>>,
    /// What was measured of it now.
    numbers: Vec<f64>,
}

/// A search on its way.
struct Bisection<'a, 'b> {
    history: HistoryRun<'a>,
    runner: Runner,
    quantity: &'b str,
    checkout: &'b Checkout,
    store: &'b ResultStore,
    signals: &'b Receiver<CaughtSignal>,
    progress: &'b mut dyn FnMut(HistoryProgress<'_>),
    commits: Vec<BisectedCommit<'a>>,
    turns: u64,
    seed: u64,
}

/// Why a commit has no number.
enum NoNumber {
    /// This one can't be built or run.
    Missing(usize),
    /// A signal to perfprop.
    Interrupted,
    /// Nothing can be measured.
    Failed(HistoryError),
}

impl<E: Into<HistoryError>> From<E> for NoNumber {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Bisection<'_, '_> {
    /// Measures each of some commits once, in an order that is drawn.
    fn turn(&mut self, places: &[usize]) -> Result<MeasuredTurn, HistoryError> {
        match self.numbers(places) {
            Ok(numbers) => Ok(MeasuredTurn::Numbers(numbers)),
            Err(NoNumber::Missing(place)) => Ok(MeasuredTurn::Missing(place)),
            Err(NoNumber::Interrupted) => Ok(MeasuredTurn::Interrupted),
            Err(NoNumber::Failed(error)) => Err(error),
        }
    }

    fn numbers(&mut self, places: &[usize]) -> Result<Vec<f64>, NoNumber> {
        places.iter().try_for_each(|&place| self.build(place))?;
        self.turns += 1;
        let mut numbers = vec![0.0; places.len()];
        for at in order(places.len(), 1, self.seed.wrapping_add(self.turns)) {
            numbers[at] = self.run(places[at])?;
        }
        places.iter().zip(&numbers).for_each(|(&place, number)| self.commits[place].numbers.push(*number));
        Ok(numbers)
    }

    /// Builds a commit, unless it is built, and warms it up.
    fn build(&mut self, place: usize) -> Result<(), NoNumber> {
        if self.commits[place].measuring.is_some() {
            return Ok(());
        }
        let options = self.history.options;
        let commit = &options.commits[place];
        let number = self.commits.iter().filter(|one| one.measuring.is_some()).count() + 1;
        // Both ends, and one each time that the rest is halved.
        let of = 2 + (self.commits.len() as f64 - 1.0).log2().ceil() as usize;
        (self.progress)(HistoryProgress::Building { commit, number, of: of.max(number) });
        let folder = match self.checkout.build(commit, &options.plan, self.signals)? {
            Built::Kept(folder) => folder,
            Built::Interrupted(signal) => return Err(self.interrupted(signal)),
            Built::Failed(build) => {
                (self.progress)(HistoryProgress::BuildFailed { commit, build: &build });
                self.history.note_failure(commit, build.log, self.store)?;
                return Err(NoNumber::Missing(place));
            }
        };
        let samples = self.history.before(commit).map(|before| self.history.samples_of(before)).unwrap_or_default();
        let measuring = self.commits[place].measuring.insert(self.history.measuring(commit, folder, samples));
        if measuring.is_broken(0) {
            return Err(NoNumber::Missing(place));
        }
        (0..options.warmups).try_for_each(|_| self.counts(place).map(drop))
    }

    /// Runs the benchmark of a commit once, and keeps what it took.
    fn run(&mut self, place: usize) -> Result<f64, NoNumber> {
        let counts = self.counts(place)?;
        self.history.outcome.runs += 1;
        let number = counts.get(self.quantity).copied();
        if let Some(one) = &mut self.commits[place].measuring {
            counts.into_iter().for_each(|(name, count)| one.samples.entry((0, name)).or_default().push(count));
        }
        number.ok_or(NoNumber::Missing(place))
    }

    fn counts(&mut self, place: usize) -> Result<BTreeMap<String, f64>, NoNumber> {
        let Some(one) = &mut self.commits[place].measuring else { return Err(NoNumber::Missing(place)) };
        let (runs, progress) = (self.history.outcome.runs, &mut self.progress);
        let mut on_round = |bench: &str, commit: &Commit| progress(HistoryProgress::Deciding { runs, bench, commit });
        let counts = self.history.counts(&mut self.runner, one, 0, self.signals, &mut on_round)?;
        counts.ok_or(match self.history.outcome.signal {
            Some(_) => NoNumber::Interrupted,
            None => NoNumber::Missing(place),
        })
    }

    fn interrupted(&mut self, signal: i32) -> NoNumber {
        self.history.outcome.signal = Some(signal);
        NoNumber::Interrupted
    }
}
