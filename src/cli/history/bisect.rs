//! Implements `perfprop history run --bisect`: which commit of a range changed a number.

use super::super::Error;
use super::super::error::code_of;
use super::super::signals::listen;
use super::super::stream::{Stream, say};
use super::failures::tell_failures;
use super::run::{HistoryProgressLine, RunArgs, need_programs, note};
use super::{of_git, of_history};
use crate::cost::TIME;
use crate::history::{
    BenchCommand, Checkout, Commit, CommitChoice, HistoryError, HistoryOptions, Repository, bisect, quantity,
};
use crate::names::quoted;
use crate::sources::Counter;
use crate::sources::perf::CancelToken;
use crate::steps::LocatedStep;
use crate::text;

/// The most runs for one decision, unless an option says.
const MOST_RUNS: u32 = 100;
/// Of fewer, the spread isn't known well enough.
const FEWEST_RUNS: usize = 6;

pub(super) fn run(args: &RunArgs, repository: &Repository, name: &str) -> Result<u8, Error> {
    let commits = commits(args, repository)?;
    let mut options = args.measured.options(repository)?;
    let (bench, of) = benchmark(&options.plan.benches, name)?;
    if of == TIME && matches!(options.counter, Counter::Model(_)) {
        let help = format!("name an event of it, as in --bisect {}.instructions", bench.name);
        return Err(Error::Usage(format!("the time of {} under a model says nothing: {help}", quoted(name))));
    }
    // Nothing else is needed.
    options.plan.events = if of == TIME { Vec::new() } else { vec![of.clone()] };
    options.plan.benches = vec![bench];
    let repeats = args.repeat.unwrap_or(MOST_RUNS) as usize;
    if repeats < FEWEST_RUNS {
        return Err(Error::Usage(format!("so few runs can't decide: give --bisect at least --repeat {FEWEST_RUNS}")));
    }
    let options = HistoryOptions { commits, choice: CommitChoice::Resumed, repeats, ..options };
    need_programs(&options, repository)?;
    note(repository)?;
    let cache = args.measured.cache(repository)?;
    let checkout = Checkout::new(repository, &cache).map_err(|error| of_history(error.into()))?;
    let store = args.project.store(repository)?;
    let signals = listen(&CancelToken::default()).map_err(Error::System)?;
    let mut progress = HistoryProgressLine::new();
    let outcome = bisect(&options, &of, &checkout, &store, &signals, &mut |now| progress.show(&now));
    progress.clear();
    let outcome = outcome.map_err(|error| {
        if of != TIME && matches!(error, HistoryError::Run(_)) {
            say(&format!("--bisect {} counts the event {}:", quoted(name), quoted(&of)));
        }
        of_history(error)
    })?;
    tell_failures(&options.plan, &outcome.history);
    Stream::stdout().print(&text::bisection(name, &options.commits, &outcome))?;
    match outcome.history.signal {
        Some(signal) => {
            say("interrupted: builds until then are kept, and the same command begins with them");
            Ok(code_of(signal))
        }
        None => Ok(u8::from(!matches!(outcome.located, LocatedStep::Found { .. }))),
    }
}

/// The commits from the first to the last of the range, both included.
fn commits(args: &RunArgs, repository: &Repository) -> Result<Vec<Commit>, Error> {
    let Some((from, _)) = args.range().split_once("..").filter(|(from, to)| !from.is_empty() && !to.starts_with('.'))
    else {
        return Err(Error::Usage(format!(
            "--bisect wants a range FROM..TO of which both ends are known to differ, instead of {}",
            quoted(args.range())
        )));
    };
    let first = repository.commits(from).map_err(of_git)?;
    let rest = repository.commits(args.range()).map_err(of_git)?;
    Ok(first.into_iter().chain(rest).collect())
}

/// The benchmark and the quantity that a name such as `sort.page-faults` stands for.
fn benchmark(benches: &[BenchCommand], name: &str) -> Result<(BenchCommand, String), Error> {
    let named = benches.iter().find_map(|bench| Some((bench.clone(), quantity(bench, name)?.to_owned())));
    named.ok_or_else(|| {
        let names: Vec<_> = benches.iter().map(|bench| quoted(&bench.name)).collect();
        let names = names.join(", ");
        Error::Usage(format!(
            "there is no benchmark {}: name one of {names}, or an event of it as in sort.page-faults",
            quoted(name)
        ))
    })
}
