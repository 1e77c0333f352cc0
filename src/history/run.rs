//! Measures commits: builds each once, then runs their benchmarks in shuffled rounds.
//!
//! Each round runs every benchmark of every commit once, in another order, so that a drift of the machine is in all
//! commits alike and is not taken for a step. Results are written after each round.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crossbeam_channel::Receiver;

use super::benches::{BenchCommand, HistoryPlan};
use super::checkout::{Built, Checkout, FailedBuild, key, missing_program};
use super::entries::{benchmark, divisor, facts_of, quantity, result, results_of, this_machine, version};
use super::failures::{BenchFailure, BrokenBenchmark, FailedCommit, HistoryError};
use super::git::Commit;
use super::results::{
    Benchmark, BenchmarkList, BenchmarkResult, CommitResults, MachineFacts, OrderedMap, ResultNumber, ResultStore,
    StoredResults,
};
use crate::bench::{Ran, RunOnce, Runner, SIGNAL_PATIENCE, SweepError, order};
use crate::cost::TIME;
use crate::measure::end_within;
use crate::session::CaughtSignal;
use crate::sources::Counter;
use crate::sources::command::Exit;

/// Which of the commits are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitChoice {
    /// All: what was measured of them before is replaced.
    All,
    /// Commits of which nothing was measured.
    New,
    /// All, but only runs that are missing.
    Resumed,
}

/// How commits are measured.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// How each is built, and what is run.
    pub plan: HistoryPlan,
    /// The commits, the oldest first.
    pub commits: Vec<Commit>,
    /// Which of them.
    pub choice: CommitChoice,
    /// The benchmarks that aren't run, as they failed before. What is built and kept of a commit depends on those of the plan.
    pub left_out: Vec<String>,
    /// How often each benchmark is run.
    pub repeats: usize,
    /// How often each is run before anything is kept.
    pub warmups: usize,
    /// What the order of runs is drawn by.
    pub seed: u64,
    /// What counts: this machine, or a model.
    pub counter: Counter,
    /// The CPU that commands are kept on.
    pub cpu: Option<u32>,
}

/// How far commits are measured.
#[derive(Clone, Debug)]
pub enum HistoryProgress<'a> {
    /// A commit is being built.
    Building {
        /// The commit.
        commit: &'a Commit,
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        of: usize,
    },
    /// A build failed.
    BuildFailed {
        /// The commit.
        commit: &'a Commit,
        /// What became of it.
        build: &'a FailedBuild,
    },
    /// Commits are run until it is sure on which side of a step they are.
    Deciding {
        /// Runs that are done.
        runs: usize,
        /// The benchmark that runs.
        bench: &'a str,
        /// The commit of which it is.
        commit: &'a Commit,
    },
    /// A benchmark runs.
    Running {
        /// Runs that are done.
        done: usize,
        /// All runs.
        of: usize,
        /// The benchmark that runs.
        bench: &'a str,
        /// The commit of which it is.
        commit: &'a Commit,
    },
}

/// What became of the commits.
#[derive(Debug, Default)]
pub struct HistoryOutcome {
    /// How many commits were measured.
    pub measured: usize,
    /// How many runs were made now.
    pub runs: usize,
    /// How many commits were left out because they were measured before.
    pub skipped: usize,
    /// The commits whose build failed.
    pub failed: Vec<FailedCommit>,
    /// The benchmarks that failed.
    pub broken: Vec<BrokenBenchmark>,
    /// The signal that ended it early.
    pub signal: Option<i32>,
}

/// Which results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All.
    All,
    /// Those that are of at least as many runs as what they replace: more may come.
    Longer,
}

/// A commit on its way: where it is run, and the samples of each benchmark and quantity.
pub(super) struct Measuring<'a> {
    pub(super) commit: &'a Commit,
    pub(super) folder: PathBuf,
    /// What was taken, by the benchmark's place and the quantity.
    pub(super) samples: BTreeMap<(usize, String), Vec<f64>>,
    /// The benchmarks that failed.
    broken: Vec<usize>,
    /// How many runs of each benchmark went well now.
    whole: BTreeMap<usize, usize>,
}

impl Measuring<'_> {
    /// Whether a benchmark failed.
    pub(super) fn is_broken(&self, bench: usize) -> bool {
        self.broken.contains(&bench)
    }

    /// How many samples were taken, and how many benchmarks failed: what is written changes with these alone.
    fn extent(&self) -> (usize, usize) {
        (self.samples.values().map(Vec::len).sum(), self.broken.len())
    }
}

/// Measures commits, and adds what they took to the store.
///
/// # Errors
/// Returns why nothing more can be measured; what was measured until then is in the store.
pub fn measure_commits(
    options: &HistoryOptions,
    checkout: &Checkout,
    store: &ResultStore,
    signals: &Receiver<CaughtSignal>,
    progress: &mut dyn FnMut(HistoryProgress<'_>),
) -> Result<HistoryOutcome, HistoryError> {
    let (mut history, mut runner) = match HistoryRun::start(options, store, signals)? {
        Begun::Ready(history, runner) => (*history, *runner),
        Begun::Interrupted(signal) => return Ok(HistoryOutcome { signal: Some(signal), ..HistoryOutcome::default() }),
    };
    let mut all = history.build(checkout, store, signals, progress)?;
    if !all.is_empty() && history.outcome.signal.is_none() {
        history.run(&mut runner, &mut all, store, signals, progress)?;
    }
    let benches = options.plan.benches.len();
    history.outcome.measured = all.iter().filter(|one| one.broken.len() < benches).count();
    Ok(history.outcome)
}

/// What became of the beginning of a run.
pub(super) enum Begun<'a> {
    /// Commits can be measured.
    Ready(Box<HistoryRun<'a>>, Box<Runner>),
    /// A signal to perfprop ended it.
    Interrupted(i32),
}

/// What is shared by all commits of a run.
pub(super) struct HistoryRun<'a> {
    pub(super) options: &'a HistoryOptions,
    machine: MachineFacts,
    environment: String,
    /// The time and the events.
    quantities: Vec<String>,
    /// What was measured before in the same way, by the commit's hash.
    before: BTreeMap<String, CommitResults>,
    /// When it began, in milliseconds since 1970.
    started_at: i64,
    pub(super) outcome: HistoryOutcome,
}

impl<'a> HistoryRun<'a> {
    /// Begins: reads what was measured before, and tries the events.
    pub(super) fn start(
        options: &'a HistoryOptions,
        store: &ResultStore,
        signals: &Receiver<CaughtSignal>,
    ) -> Result<Begun<'a>, HistoryError> {
        let stored = if store.root().exists() { store.read()? } else { StoredResults::default() };
        let machine = this_machine(&options.counter);
        let environment = environment(options);
        // A file that can't be read isn't written over, which is told before anything is built.
        let mine = store.root().join(machine.name());
        if let Some(damaged) = stored.unreadable.iter().find(|error| error.path.parent() == Some(&mine)) {
            return Err(damaged.clone().into());
        }
        // An event that can't be counted is told before anything is built.
        let mut runner =
            Runner::new(&options.plan.events, options.counter.clone(), options.cpu).map_err(HistoryError::Run)?;
        // So is one that this machine can't.
        let nothing = RunOnce { argv: &["true".to_owned()], folder: None, timeout: None };
        if let Ran::Interrupted(signal) = runner.run(nothing, signals, &mut || {}).map_err(HistoryError::Run)? {
            return Ok(Begun::Interrupted(signal));
        }
        runner.keep_errors().map_err(|error| HistoryError::Run(SweepError::System(error)))?;
        // The time of a run under a model is that of the model.
        let time = matches!(options.counter, Counter::Kernel).then(|| TIME.to_owned());
        let quantities = time.into_iter().chain(runner.events()).collect();
        let outcome = HistoryOutcome::default();
        let before = same_way(stored, &machine, &environment);
        let history = Self { options, machine, environment, quantities, before, started_at: now(), outcome };
        Ok(Begun::Ready(Box::new(history), Box::new(runner)))
    }

    /// Builds the commits that are chosen.
    fn build(
        &mut self,
        checkout: &Checkout,
        store: &ResultStore,
        signals: &Receiver<CaughtSignal>,
        progress: &mut dyn FnMut(HistoryProgress<'_>),
    ) -> Result<Vec<Measuring<'a>>, HistoryError> {
        let (choice, of) = (self.options.choice, self.options.commits.len());
        let mut all = Vec::new();
        for (place, commit) in self.options.commits.iter().enumerate() {
            let before = self.before(commit);
            if choice == CommitChoice::New && before.is_some_and(|before| self.is_complete(before)) {
                self.outcome.skipped += 1;
                continue;
            }
            let samples = before.filter(|_| choice == CommitChoice::Resumed).map(|before| self.samples_of(before));
            progress(HistoryProgress::Building { commit, number: place + 1, of });
            let built = checkout.build(commit, &self.options.plan, signals)?;
            match built {
                Built::Interrupted(signal) => {
                    self.outcome.signal = Some(signal);
                    break;
                }
                Built::Kept(folder) => all.push(self.measuring(commit, folder, samples.unwrap_or_default())),
                Built::Failed(build) => {
                    progress(HistoryProgress::BuildFailed { commit, build: &build });
                    self.note_failure(commit, build.log, store)?;
                }
            }
        }
        Ok(all)
    }

    /// A commit that is built. Benchmarks whose program it lacks have failed.
    pub(super) fn measuring(
        &mut self,
        commit: &'a Commit,
        folder: PathBuf,
        samples: BTreeMap<(usize, String), Vec<f64>>,
    ) -> Measuring<'a> {
        let mut one = Measuring { commit, folder, samples, broken: Vec::new(), whole: BTreeMap::new() };
        for (place, bench) in self.options.plan.benches.iter().enumerate() {
            if let Some(program) = missing_program(bench, &one.folder).filter(|_| !self.is_left_out(place)) {
                self.note_broken(&mut one, place, BenchFailure::NoProgram(program.to_owned()), Vec::new());
            }
        }
        one
    }

    /// Whether a benchmark isn't run.
    fn is_left_out(&self, bench: usize) -> bool {
        self.options.left_out.contains(&self.options.plan.benches[bench].name)
    }

    /// Notes that a benchmark failed.
    fn note_broken(&mut self, one: &mut Measuring<'_>, bench: usize, why: BenchFailure, said: Vec<String>) {
        one.broken.push(bench);
        let (name, commit) = (self.options.plan.benches[bench].name.clone(), one.commit.hash.clone());
        let whole = one.whole.get(&bench).copied().unwrap_or(0);
        self.outcome.broken.push(BrokenBenchmark { name, commit, why, whole, said });
    }

    /// Keeps that a commit can't be built.
    pub(super) fn note_failure(
        &mut self,
        commit: &'a Commit,
        log: PathBuf,
        store: &ResultStore,
    ) -> Result<(), HistoryError> {
        let broken = (0..self.options.plan.benches.len()).collect();
        let (folder, samples, whole) = (PathBuf::new(), BTreeMap::new(), BTreeMap::new());
        self.write([&Measuring { commit, folder, samples, broken, whole }], Written::All, store)?;
        self.outcome.failed.push(FailedCommit { commit: commit.clone(), log });
        Ok(())
    }

    /// What was measured of a commit before, in the same way.
    pub(super) fn before(&self, commit: &Commit) -> Option<&CommitResults> {
        self.before.get(&commit.hash)
    }

    /// Whether each benchmark has a result of each quantity.
    fn is_complete(&self, before: &CommitResults) -> bool {
        let has = |bench: &BenchCommand, quantity: &String| {
            let result = before.results.get(&benchmark(bench, quantity).name);
            result.is_some_and(|result| result.version.as_deref() == Some(&version(bench)))
        };
        let benches = &self.options.plan.benches;
        benches.iter().all(|bench| self.quantities.iter().all(|quantity| has(bench, quantity)))
    }

    /// Whether there is a number of a benchmark of this version.
    fn has_number(&self, commit: &Commit, benchmark: &Benchmark) -> bool {
        let before = self.before(commit).and_then(|before| before.results.get(&benchmark.name));
        before.is_some_and(|before| before.version == benchmark.version && before.result.is_some())
    }

    /// The samples of earlier runs of the same commands.
    pub(super) fn samples_of(&self, before: &CommitResults) -> BTreeMap<(usize, String), Vec<f64>> {
        let mut all = BTreeMap::new();
        for (place, bench) in self.options.plan.benches.iter().enumerate() {
            for (name, result) in &before.results.0 {
                let Some(quantity) = quantity(bench, name) else { continue };
                let kept = result.samples.first().and_then(Option::as_ref);
                if let Some(kept) = kept.filter(|_| result.version.as_deref() == Some(&version(bench))) {
                    let measured = |sample: &ResultNumber| Some(sample.number()? * divisor(quantity));
                    let samples = kept.iter().filter_map(measured).collect();
                    all.insert((place, quantity.to_owned()), samples);
                }
            }
        }
        all
    }

    /// Runs the benchmarks in rounds, and keeps what they took, even if one can't be run.
    fn run(
        &mut self,
        runner: &mut Runner,
        all: &mut [Measuring<'a>],
        store: &ResultStore,
        signals: &Receiver<CaughtSignal>,
        progress: &mut dyn FnMut(HistoryProgress<'_>),
    ) -> Result<(), HistoryError> {
        let benches = self.options.plan.benches.len();
        let cells = all.len() * benches;
        let rounds = self.options.warmups + self.options.repeats;
        let (mut ran, mut kept) = (Ok(()), vec![(0, 0); all.len()]);
        for (done, cell) in order(cells, rounds, self.options.seed).into_iter().enumerate() {
            let is_warmup = done < self.options.warmups * cells;
            let mut on_round = |bench: &str, commit: &Commit| {
                progress(HistoryProgress::Running { done, of: cells * rounds, bench, commit });
            };
            ran = self.run_once(runner, &mut all[cell / benches], cell % benches, is_warmup, signals, &mut on_round);
            if ran.is_err() || self.outcome.signal.is_some() {
                break;
            }
            if (done + 1) % cells == 0 && !is_warmup {
                let changed = all.iter().zip(&kept).filter(|(one, kept)| one.extent() != **kept).map(|(one, _)| one);
                self.write(changed, Written::Longer, store)?;
                kept = all.iter().map(Measuring::extent).collect();
            }
        }
        let is_whole = ran.is_ok() && self.outcome.signal.is_none();
        let written = self.write(&*all, if is_whole { Written::All } else { Written::Longer }, store);
        ran.and(written)
    }

    /// Runs one benchmark of a commit, unless it failed before, or has all its samples.
    fn run_once(
        &mut self,
        runner: &mut Runner,
        one: &mut Measuring<'_>,
        bench: usize,
        is_warmup: bool,
        signals: &Receiver<CaughtSignal>,
        on_round: &mut dyn FnMut(&str, &Commit),
    ) -> Result<(), HistoryError> {
        let taken_of = |quantity: &String| one.samples.get(&(bench, quantity.clone())).map_or(0, Vec::len);
        let taken = self.quantities.iter().map(taken_of).min().unwrap_or(0);
        if taken >= self.options.repeats || one.is_broken(bench) || self.is_left_out(bench) {
            return Ok(());
        }
        let counts = self.counts(runner, one, bench, signals, on_round)?;
        if let Some(counts) = counts.filter(|_| !is_warmup) {
            self.outcome.runs += 1;
            counts.into_iter().for_each(|(name, count)| one.samples.entry((bench, name)).or_default().push(count));
        }
        Ok(())
    }

    /// What one run of a benchmark takes; `None` if it fails, or a signal ends it. `on_round` is called now and then meanwhile.
    pub(super) fn counts(
        &mut self,
        runner: &mut Runner,
        one: &mut Measuring<'_>,
        bench: usize,
        signals: &Receiver<CaughtSignal>,
        on_round: &mut dyn FnMut(&str, &Commit),
    ) -> Result<Option<BTreeMap<String, f64>>, HistoryError> {
        let options = self.options;
        let (named, commit, timeout) = (&options.plan.benches[bench], one.commit, options.plan.timeout);
        let argv = argv(named, &one.folder);
        let once = RunOnce { argv: &argv, folder: Some(&one.folder), timeout };
        let ran = runner.run(once, signals, &mut || on_round(&named.name, commit)).map_err(HistoryError::Run)?;
        let why = match ran {
            Ran::Whole { exit: Exit::Code(0), counts } => {
                *one.whole.entry(bench).or_default() += 1;
                return Ok(Some(counts));
            }
            Ran::Interrupted(signal) => {
                self.outcome.signal = Some(signal);
                return Ok(None);
            }
            Ran::Whole { exit, .. } => BenchFailure::Ended(exit),
            Ran::TimedOut => BenchFailure::TimedOut(timeout.unwrap_or_default()),
        };
        match end_within(signals, SIGNAL_PATIENCE) {
            Some(signal) => self.outcome.signal = Some(signal),
            None => self.note_broken(one, bench, why, runner.last_lines()),
        }
        Ok(None)
    }

    /// Adds all samples to the store.
    pub(super) fn write<'m>(
        &self,
        all: impl IntoIterator<Item = &'m Measuring<'a>>,
        written: Written,
        store: &ResultStore,
    ) -> Result<(), HistoryError>
    where
        'a: 'm,
    {
        for one in all {
            let (list, results) = self.results(one, written);
            if !results.results.0.is_empty() {
                store.add(&self.machine, &list, results)?;
            }
        }
        Ok(())
    }

    /// How many samples there are of a benchmark of this version.
    fn samples_before(&self, commit: &Commit, benchmark: &Benchmark) -> usize {
        let before = self.before(commit).and_then(|before| before.results.get(&benchmark.name));
        let before = before.filter(|before| before.version == benchmark.version);
        before.and_then(|before| before.samples.first()?.as_ref()).map_or(0, Vec::len)
    }

    /// When the run began that made the last of so many samples: an earlier one if there are no more than before.
    fn started_at(&self, commit: &Commit, benchmark: &Benchmark, taken: usize) -> Option<i64> {
        let is_resumed = self.options.choice == CommitChoice::Resumed;
        if is_resumed && taken > 0 && taken == self.samples_before(commit, benchmark) {
            return self.before(commit)?.results.get(&benchmark.name)?.started_at;
        }
        Some(self.started_at)
    }

    fn results(&self, one: &Measuring<'_>, written: Written) -> (BenchmarkList, CommitResults) {
        let (mut list, mut results) = (BenchmarkList::default(), OrderedMap::default());
        let benches = self.options.plan.benches.iter().enumerate().filter(|&(place, _)| !self.is_left_out(place));
        for (place, bench) in benches {
            for quantity in &self.quantities {
                let samples = one.samples.get(&(place, quantity.clone())).filter(|_| !one.is_broken(place));
                let benchmark = benchmark(bench, quantity);
                // A failure of now doesn't take the place of what was measured before.
                let is_failure = one.is_broken(place) && !self.has_number(one.commit, &benchmark);
                if samples.is_none() && !is_failure {
                    // Runs of now that went well before it aren't a result either.
                    if let Some(before) = self.before(one.commit).filter(|_| one.is_broken(place))
                        && let Some(result) = before.results.get(&benchmark.name)
                    {
                        results.set(&benchmark.name, result.clone());
                        list.0.insert(benchmark.name.clone(), benchmark);
                    }
                    continue;
                }
                let taken = samples.map_or(0, Vec::len);
                let is_shorter = taken < self.samples_before(one.commit, &benchmark) && !one.is_broken(place);
                if written == Written::Longer && is_shorter {
                    continue;
                }
                let started_at = self.started_at(one.commit, &benchmark, taken);
                let result = result(bench, quantity, samples.map_or(&[], Vec::as_slice));
                results.set(&benchmark.name, BenchmarkResult { started_at, ..result });
                list.0.insert(benchmark.name.clone(), benchmark);
            }
        }
        let build = ("build".to_owned(), self.options.plan.build.clone());
        let params = facts_of(&self.machine).chain([build]);
        (list, results_of(one.commit, &self.environment, params.collect(), results))
    }
}

/// Milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The command with its program in the folder of what was built.
pub(super) fn argv(bench: &BenchCommand, folder: &Path) -> Vec<String> {
    let mut argv = bench.argv.clone();
    if argv[0].contains('/') {
        argv[0] = folder.join(&argv[0]).to_string_lossy().into_owned();
    }
    argv
}

/// The results of commits on a machine that were built in one way, by hash.
fn same_way(stored: StoredResults, machine: &MachineFacts, environment: &str) -> BTreeMap<String, CommitResults> {
    let machines = stored.machines.into_iter().filter(|one| one.machine.name() == machine.name());
    let commits = machines.flat_map(|one| one.commits).filter(|one| one.environment == environment);
    let mut before = BTreeMap::new();
    for one in commits {
        before.entry(one.commit.clone()).or_insert(one);
    }
    before
}

/// What is the same of all commits of a run: how they are built, and what counts.
fn environment(options: &HistoryOptions) -> String {
    let built = HistoryPlan { build: options.plan.build.clone(), ..HistoryPlan::default() };
    format!("build-{:08x}", key(&built))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::results::MachineResults;
    use super::*;

    #[test]
    fn a_program_is_that_of_the_build() {
        let bench = BenchCommand::parse("sort=./sort 10").unwrap();
        assert_eq!(argv(&bench, Path::new("/b")), ["/b/./sort", "10"]);
        let installed = BenchCommand::parse("sort=sort 10").unwrap();
        assert_eq!(argv(&installed, Path::new("/b")), ["sort", "10"]);
    }
    #[test]
    fn fewer_runs_take_the_place_of_more_at_the_end_alone() {
        let bench = BenchCommand::parse("sort=./sort 10").unwrap();
        let options = HistoryOptions {
            plan: HistoryPlan { benches: vec![bench.clone()], ..HistoryPlan::default() },
            commits: Vec::new(),
            choice: CommitChoice::All,
            left_out: Vec::new(),
            repeats: 3,
            warmups: 0,
            seed: 1,
            counter: Counter::Kernel,
            cpu: None,
        };
        let commit = Commit { hash: "abc".into(), date: 0, subject: String::new() };
        let (machine, environment) = (this_machine(&options.counter), environment(&options));
        let before = OrderedMap(vec![("sort".to_owned(), result(&bench, TIME, &[1.0, 2.0, 3.0]))]);
        let commits = vec![results_of(&commit, &environment, Vec::new(), before)];
        let machines = vec![MachineResults { machine: machine.clone(), commits, ..MachineResults::default() }];
        let stored = StoredResults { machines, ..StoredResults::default() };
        let before = same_way(stored, &machine, &environment);
        let (quantities, outcome) = (vec![TIME.to_owned()], HistoryOutcome::default());
        let history =
            HistoryRun { options: &options, machine, environment, quantities, before, started_at: 7, outcome };
        let written = |runs: usize, written: Written| {
            let samples = [((0, TIME.to_owned()), vec![5.0; runs])].into();
            let (folder, broken, whole) = (PathBuf::new(), Vec::new(), BTreeMap::new());
            let one = Measuring { commit: &commit, folder, samples, broken, whole };
            history.results(&one, written).1.results.0.len()
        };
        assert_eq!([1, 2, 3].map(|runs| written(runs, Written::Longer)), [0, 0, 1]);
        assert_eq!(written(1, Written::All), 1);
        let begun = |history: &HistoryRun<'_>, taken| history.started_at(&commit, &benchmark(&bench, TIME), taken);
        assert_eq!(begun(&history, 3), Some(7));
        let resumed = HistoryOptions { choice: CommitChoice::Resumed, ..options.clone() };
        let history = HistoryRun { options: &resumed, ..history };
        assert_eq!(
            [3, 4].map(|taken| begun(&history, taken)),
            [None, Some(7)],
            "no run of now is among the first three"
        );
    }
}
