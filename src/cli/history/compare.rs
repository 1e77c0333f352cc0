//! Implements `perfprop history compare`: how two commits differ, by what was measured before or is measured now.

use std::fs;

use clap::Args;

use super::super::Error;
use super::super::args::whole_number;
use super::super::error::code_of;
use super::super::signals::listen;
use super::super::stream::{Stream, say};
use super::failures::tell_failures;
use super::rules::part;
use super::run::{HistoryProgressLine, MeasuredArgs, need_programs, note};
use super::{ProjectArgs, of_git, of_history, of_results, tell_unreadable};
use crate::bench::SweepError;
use crate::history::results::{ResultStore, StoredResults};
use crate::history::{
    BenchCommand, BenchmarkDifference, Checkout, Commit, CommitChoice, HistoryError, HistoryOptions, HistoryOutcome,
    Repository, THRESHOLD, differences, measure_commits, quantity,
};
use crate::names::quoted;
use crate::number::percent;
use crate::rates::Confidence;
use crate::sources::perf::CancelToken;
use crate::text;

/// The arguments of `perfprop history compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history compare v1.0 HEAD                 what history run measured of both
  perfprop history compare --run origin/main HEAD    build and measure both now: exit code 1 if HEAD is slower
  perfprop history compare --run HEAD~1 HEAD -e instructions --source emulate --repeat 8
                                                     of a model, on any machine; two runs are enough if they agree")]
pub(super) struct CompareArgs {
    /// A commit
    #[arg(value_name = "A")]
    a: String,
    /// The commit that is compared with it
    #[arg(value_name = "B")]
    b: String,
    /// Build both and measure them in turns until it is sure which is slower; the exit code is 1 if B is, nothing is kept
    #[arg(long)]
    run: bool,
    /// With --run: how often each benchmark is run at the most
    #[arg(short, long, requires = "run", value_name = "RUNS", default_value_t = 40, value_parser = whole_number::<u32>(2..=10_000))]
    repeat: u32,
    /// With --run: the rise from which on the exit code is 1 [default: 5%]
    #[arg(long, requires = "run", value_name = "PERCENT", value_parser = part)]
    threshold: Option<f64>,
    #[command(flatten)]
    measured: MeasuredArgs,
    #[command(flatten)]
    project: ProjectArgs,
}

/// How often --run looks at the numbers: each look may be wrong, so all of them share what may be.
const LOOKS: u32 = 3;

pub(super) fn compare(args: &CompareArgs) -> Result<u8, Error> {
    let repository = args.project.repository()?;
    let commit = |name: &str| repository.commit(name).map_err(of_git);
    let (a, b) = (commit(&args.a)?, commit(&args.b)?);
    if args.run {
        return measured_now(args, &repository, a, b);
    }
    if let Some(option) = args.measured.given() {
        return Err(Error::Usage(format!(
            "{option} is for what is measured now, with --run; else stored results are compared"
        )));
    }
    let store = args.project.existing_store(&repository)?;
    let stored = store.read().map_err(of_results)?;
    tell_unreadable(&stored);
    for (name, commit) in [(&args.a, &a), (&args.b, &b)] {
        let mut results = stored.machines.iter().flat_map(|machine| &machine.commits);
        if !results.any(|one| one.commit == commit.hash) {
            let (name, hash) = (quoted(name), commit.short());
            return Err(Error::Input(format!(
                "{name} ({hash}) has no results: measure it with perfprop history run {hash}, or both with compare --run"
            )));
        }
    }
    print(&stored, &differences(&stored, &a.hash, &b.hash, Confidence::DEFAULT), &a, &b)?;
    Ok(0)
}

fn print(stored: &StoredResults, found: &[BenchmarkDifference], a: &Commit, b: &Commit) -> Result<(), Error> {
    if found.is_empty() {
        let [a, b] = [a, b].map(Commit::short);
        say(&format!("{a} and {b} weren't measured on the same machine in the same environment"));
        return Ok(());
    }
    Stream::stdout().print(&text::benchmark_differences(found, stored.machines.len()))
}

/// Builds and measures both, with more runs until it is sure.
fn measured_now(args: &CompareArgs, repository: &Repository, a: Commit, b: Commit) -> Result<u8, Error> {
    let options = HistoryOptions {
        commits: vec![a.clone(), b.clone()],
        choice: CommitChoice::Resumed,
        ..args.measured.options(repository)?
    };
    need_programs(&options, repository)?;
    note(repository)?;
    let cache = args.measured.cache(repository)?;
    let checkout = Checkout::new(repository, &cache).map_err(|error| of_history(error.into()))?;
    let store = ResultStore::new(&checkout.comparison());
    let plan = options.plan.clone();
    let outcome = until_sure(args, options, &checkout, &store);
    let stored = store.read();
    // It was made for this alone.
    drop(fs::remove_dir_all(store.root()));
    let outcome = outcome.map_err(of_history)?;
    tell_failures(&plan, &outcome);
    if let Some(signal) = outcome.signal {
        say("interrupted");
        return Ok(code_of(signal));
    }
    let stored = stored.map_err(of_results)?;
    let found = differences(&stored, &a.hash, &b.hash, confidence());
    print(&stored, &found, &a, &b)?;
    tell_undecided(&found);
    let threshold = args.threshold.unwrap_or(THRESHOLD);
    let is_worse =
        |one: &&BenchmarkDifference| one.is_worse() && one.ratio.value.is_none_or(|ratio| ratio > 1.0 + threshold);
    let worse = found.iter().filter(is_worse).count();
    if worse > 0 {
        let compared = found.iter().filter(|one| one.numbers().is_some()).count();
        say(&format!("{worse} of {compared} are higher by more than {}", percent(threshold)));
    }
    // What can't be built or run is no success, either.
    let has_failed = !outcome.failed.is_empty() || !outcome.broken.is_empty();
    Ok(u8::from(worse > 0 || has_failed))
}

/// Says of how many benchmarks there were too few runs to tell anything, and how many it takes.
fn tell_undecided(found: &[BenchmarkDifference]) {
    let Some(needs) = found.iter().filter_map(BenchmarkDifference::needs_runs).max() else { return };
    let open = found.iter().filter(|one| one.needs_runs().is_some()).count();
    let compared = found.iter().filter(|one| one.numbers().is_some()).count();
    let what = match compared - open {
        0 => "nothing was decided, as there were too few runs".to_owned(),
        _ => format!("{open} of {compared} were not decided, as there were too few runs"),
    };
    say(&format!("{what}: give --repeat {needs} or more"));
}

/// The confidence of one look, so that all together are wrong in one of twenty comparisons.
fn confidence() -> Confidence {
    let wrong = Confidence::DEFAULT.alpha() / f64::from(LOOKS);
    Confidence::new(1.0 - wrong).unwrap_or_default()
}

/// Measures, looks whether all is decided, and measures on; a quarter of the runs first, then half, then all.
fn until_sure(
    args: &CompareArgs,
    options: HistoryOptions,
    checkout: &Checkout,
    store: &ResultStore,
) -> Result<HistoryOutcome, HistoryError> {
    let signals = listen(&CancelToken::default()).map_err(|error| HistoryError::Run(SweepError::System(error)))?;
    let mut progress = HistoryProgressLine::new();
    let mut options = options;
    let mut last = HistoryOutcome::default();
    for look in (0..LOOKS).rev() {
        options.repeats = (args.repeat as usize >> look).max(2);
        let failed = std::mem::take(&mut last.broken);
        // What failed of one commit can't be compared.
        options.left_out = failed.iter().map(|one| one.name.clone()).collect();
        last = measure_commits(&options, checkout, store, &signals, &mut |now| progress.show(&now))?;
        last.broken.extend(failed);
        progress.clear();
        // Warm-ups are made once.
        options.warmups = 0;
        let stored = store.read().map_err(HistoryError::Results)?;
        let [a, b] = [0, 1].map(|place| options.commits[place].hash.as_str());
        let is_broken = |bench: &&BenchCommand| last.broken.iter().any(|one| one.name == bench.name);
        let broken: Vec<&BenchCommand> = options.plan.benches.iter().filter(is_broken).collect();
        let has_failed = |one: &BenchmarkDifference| broken.iter().any(|bench| quantity(bench, &one.name).is_some());
        let found = differences(&stored, a, b, confidence());
        let is_sure = found.iter().all(|one| one.is_decided() || has_failed(one));
        if is_sure || last.signal.is_some() {
            break;
        }
    }
    Ok(last)
}
