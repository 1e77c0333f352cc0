//! Implements `perfprop history run`: builds commits and measures them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::super::Error;
use super::super::args::{BesideTimeArgs, SourceName, TimeUnit, duration, whole_number};
use super::super::error::code_of;
use super::super::progress::ProgressLine;
use super::super::signals::listen;
use super::super::stream::say;
use super::bisect;
use super::configuration::{LIMITS_MS, plan_of_folder};
use super::failures::tell_failures;
use super::{PROJECT, ProjectArgs, cache_folder, of_git, of_history, of_plan, project_name};
use crate::history::{
    BenchCommand, CONFIGURATION, Checkout, Commit, CommitChoice, GitError, HistoryOptions, HistoryOutcome, HistoryPlan,
    HistoryProgress, PlanError, Repository, measure_commits, short, spread, unbuilt_program,
};
use crate::names::{quoted, shown, shown_path};
use crate::number::counted;
use crate::sources::Counter;
use crate::sources::perf::CancelToken;

/// The arguments of `perfprop history run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perfprop history run HEAD~20.. --bench sort='./target/release/sort 1000000'
  perfprop history run v1.0..v2.0 --commits 10 --build make --bench grep='./grep -c x words.txt'
  perfprop history run --all --commits 20                      twenty of all commits, the first one among them
  perfprop history run HEAD~20.. --resume                      go on after an interrupt
  perfprop history run v1.0..v2.0 --bisect sort                which commit made sort slower, with few builds
  perfprop history run HEAD -e instructions --source emulate   counts of a model, on any machine
  perfprop history regressions                                 which commit made what slower

Benchmarks may stand in perfprop.toml of the repository:
  [history]
  build = \"cargo build --release\"
  events = [\"page-faults\"]
  [history.bench]
  sort = \"./target/release/sort 1000000\"

A benchmark reads an empty standard input, and what it prints goes to /dev/null. Programs may do less then: GNU grep stops at the first
match (count them with -c, or write sh -c './grep x words.txt | cat > /dev/null').")]
pub(super) struct RunArgs {
    /// The commits: FROM..TO as git has it, along first parents, without FROM; or a single one
    #[arg(value_name = "RANGE", required_unless_present = "all")]
    range: Option<String>,
    /// Measure all commits that lead to the one named, or to HEAD, from the first of the repository on
    #[arg(long, conflicts_with = "bisect", help_heading = RUNS)]
    all: bool,
    #[command(flatten)]
    pub(super) measured: MeasuredArgs,
    /// How often each benchmark of each commit is run [default: 10; with --bisect at most 100 to decide on one commit]
    #[arg(short, long, value_name = "RUNS", value_parser = whole_number::<u32>(1..=10_000), help_heading = RUNS)]
    pub(super) repeat: Option<u32>,
    /// Find the commit of FROM..TO that changed this number, as history show names it, by halving: with as few builds and runs as
    /// the noise allows. You know that FROM and TO differ, by one step; both are built
    #[arg(long, value_name = "BENCHMARK", conflicts_with_all = ["commits", "new", "resume"], help_heading = RUNS)]
    bisect: Option<String>,
    /// Measure so many commits, spread over the range
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>(1..), help_heading = RUNS)]
    commits: Option<u32>,
    /// Measure only commits of which there are no results
    #[arg(long, conflicts_with = "resume", help_heading = RUNS)]
    new: bool,
    /// Make only the runs that are missing, as after an interrupt
    #[arg(long, help_heading = RUNS)]
    resume: bool,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
}

/// What is built and measured of each commit.
#[derive(Debug, Args)]
pub(super) struct MeasuredArgs {
    /// A benchmark: its name and its command, which runs in a folder with what was kept of the build
    #[arg(long, value_name = "NAME=COMMAND", help_heading = MEASURED)]
    bench: Vec<String>,
    /// What builds a commit, for a shell [default: cargo build --release where there is a Cargo.toml]
    #[arg(long, value_name = "COMMAND", help_heading = MEASURED)]
    build: Option<String>,
    /// What else to keep of a build: a file or folder in the checkout. Programs and files that benchmarks name are kept
    #[arg(long, value_name = "PATH", help_heading = MEASURED)]
    keep: Vec<PathBuf>,
    /// Seconds, or a time with a unit, as in `500ms` or `2m`: the longest that a run of a benchmark may take; one that takes longer is
    /// ended, and the benchmark has no result of the commit; 0 sets no limit [default: 600]
    #[arg(long, value_name = "TIME", value_parser = duration(TimeUnit::Seconds, LIMITS_MS), help_heading = RUNS)]
    timeout: Option<Duration>,
    #[command(flatten, next_help_heading = MEASURED)]
    counted: BesideTimeArgs,
    /// How often each is run before anything is kept [default: 1]
    #[arg(long, value_name = "RUNS", value_parser = whole_number::<u32>(0..=10_000), help_heading = RUNS)]
    warmup: Option<u32>,
    /// What the order of runs is drawn by [default: 1]
    #[arg(long, help_heading = RUNS)]
    seed: Option<u64>,
    /// The folder of the clone and of builds [default: one for the repository below ~/.cache/perfprop]
    #[arg(long, value_name = "DIR", help_heading = PROJECT)]
    cache: Option<PathBuf>,
}

const MEASURED: &str = "What is built and measured";
const RUNS: &str = "Which commits, and how often";

/// How often each benchmark is run, unless an option says.
const REPEATS: u32 = 10;
/// Nobody repeats what takes longer than this for each of many commits, and a run under a model may take a hundred times as long
/// as on the machine.
const TIMEOUT: Duration = Duration::from_secs(600);

pub(super) fn run(args: &RunArgs) -> Result<u8, Error> {
    let repository = args.project.repository()?;
    if let Some(name) = &args.bisect {
        return bisect::run(args, &repository, name);
    }
    let count = args.commits.map_or(usize::MAX, |count| count as usize);
    let commits = spread(args.commits_of(&repository)?, count);
    let choice = match (args.new, args.resume) {
        (true, _) => CommitChoice::New,
        (false, true) => CommitChoice::Resumed,
        (false, false) => CommitChoice::All,
    };
    let options = HistoryOptions {
        commits,
        choice,
        repeats: args.repeat.unwrap_or(REPEATS) as usize,
        ..args.measured.options(&repository)?
    };
    need_programs(&options, &repository)?;
    note(&repository)?;
    let cache = args.measured.cache(&repository)?;
    let checkout = Checkout::new(&repository, &cache).map_err(|error| of_history(error.into()))?;
    let store = args.project.store(&repository)?;
    let signals = listen(&CancelToken::default()).map_err(Error::System)?;
    let mut progress = HistoryProgressLine::new();
    let outcome = measure_commits(&options, &checkout, &store, &signals, &mut |now| progress.show(&now));
    progress.clear();
    let outcome = outcome.map_err(of_history)?;
    let is_default = args.project.results.is_none() && args.project.repo == Path::new(".");
    end(&options, &outcome, is_default)
}

impl RunArgs {
    /// The range as it is written; all that leads to HEAD needs none.
    pub(super) fn range(&self) -> &str {
        self.range.as_deref().unwrap_or("HEAD")
    }

    /// The commits that are named, the oldest first.
    fn commits_of(&self, repository: &Repository) -> Result<Vec<Commit>, Error> {
        let range = self.range();
        if !self.all {
            return repository.commits(range).map_err(|error| match error {
                GitError::TooFew { .. } => {
                    Error::Usage(format!("{error}; --all measures them all, the first one, too"))
                }
                error => of_git(error),
            });
        }
        if range.contains("..") {
            let range = quoted(range);
            return Err(Error::Usage(format!("--all takes all commits that lead to one: name one instead of {range}")));
        }
        repository.history(range).map_err(of_git)
    }
}

impl MeasuredArgs {
    /// An option that is given and says what is measured, or how.
    pub(super) fn given(&self) -> Option<&'static str> {
        let BesideTimeArgs { events, by, cpu_affinity } = &self.counted;
        let options = [
            (!self.bench.is_empty(), "--bench"),
            (self.build.is_some(), "--build"),
            (!self.keep.is_empty(), "--keep"),
            (self.timeout.is_some(), "--timeout"),
            (!events.is_empty(), "-e"),
            (by.source != SourceName::Perf, "--source"),
            (by.model.is_some(), "--model"),
            (cpu_affinity.is_some(), "--cpu-affinity"),
            (self.warmup.is_some(), "--warmup"),
            (self.seed.is_some(), "--seed"),
            (self.cache.is_some(), "--cache"),
        ];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// What is measured, of no commits yet: what options say, else `perfprop.toml`.
    pub(super) fn options(&self, repository: &Repository) -> Result<HistoryOptions, Error> {
        let file = plan_of_folder(repository.root())?;
        let named: Vec<BenchCommand> =
            self.bench.iter().map(|text| BenchCommand::parse(text)).collect::<Result<_, _>>().map_err(of_plan)?;
        let cargo = || repository.root().join("Cargo.toml").exists().then(|| "cargo build --release".to_owned());
        let plan = HistoryPlan {
            build: self.build.clone().or(file.build).or_else(cargo).filter(|build| !build.trim().is_empty()),
            events: if self.counted.events.is_empty() { file.events } else { self.counted.events.clone() },
            benches: if named.is_empty() { file.benches } else { named },
            keep: self.keep.iter().cloned().chain(file.keep).collect(),
            timeout: self.timeout(file.timeout),
        };
        if plan.benches.is_empty() {
            return Err(of_plan(PlanError::Nothing));
        }
        let mut names: Vec<&str> = plan.benches.iter().map(|bench| bench.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::Usage(format!(
                "two benchmarks are called {}: give them different names",
                quoted(twice[0])
            )));
        }
        let counter = self.counted.by.counter()?;
        if matches!(counter, Counter::Model(_)) && plan.events.is_empty() {
            return Err(Error::Usage("a model counts events, and its times mean nothing: name events with -e".into()));
        }
        Ok(HistoryOptions {
            plan,
            commits: Vec::new(),
            choice: CommitChoice::All,
            left_out: Vec::new(),
            repeats: 1,
            warmups: self.warmup.unwrap_or(1) as usize,
            seed: self.seed.unwrap_or(1),
            counter,
            cpu: self.counted.cpu_affinity,
        })
    }

    /// The longest that a run may take, by the option or the file.
    fn timeout(&self, of_file: Option<Duration>) -> Option<Duration> {
        Some(self.timeout.or(of_file).unwrap_or(TIMEOUT)).filter(|time| !time.is_zero())
    }

    /// The folder of the clone and of builds.
    pub(super) fn cache(&self, repository: &Repository) -> Result<PathBuf, Error> {
        match &self.cache {
            Some(folder) => Ok(folder.clone()),
            None => Ok(cache_folder()?.join(project_name(repository))),
        }
    }
}

/// Names of files that say how `make` builds.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// Refuses benchmarks whose program is in none of the commits, where nothing is built that could make it.
pub(super) fn need_programs(options: &HistoryOptions, repository: &Repository) -> Result<(), Error> {
    let found = unbuilt_program(&options.plan, &options.commits, repository).map_err(of_git)?;
    let Some(program) = found else { return Ok(()) };
    let (root, program) = (repository.root(), quoted(program));
    let build = if MAKEFILES.iter().any(|name| root.join(name).exists()) { "make" } else { "COMMAND" };
    Err(Error::Usage(format!(
        "{program} isn't in the repository, and nothing is built, as there is no Cargo.toml here: say what builds it with --build {build}"
    )))
}

/// What is worth knowing of the repository.
pub(super) fn note(repository: &Repository) -> Result<(), Error> {
    if repository.is_shallow().map_err(of_git)? {
        say("the clone is shallow: older commits aren't in it (git fetch --unshallow brings them)");
    }
    if repository.has_changes().map_err(of_git)? {
        say(&format!("changes that aren't committed are not measured; {CONFIGURATION} is read as it is now"));
    }
    Ok(())
}

fn end(options: &HistoryOptions, outcome: &HistoryOutcome, is_default: bool) -> Result<u8, Error> {
    tell_failures(&options.plan, outcome);
    let skipped = match outcome.skipped {
        0 => String::new(),
        skipped => format!(", {skipped} left out that have results"),
    };
    let (measured, runs) = (outcome.measured, outcome.runs);
    let runs = counted(runs, "run");
    say(&format!("{measured} of {} commits measured in {runs}{skipped}", options.commits.len()));
    if let Some(signal) = outcome.signal {
        say(match options.choice {
            CommitChoice::All => {
                "interrupted: builds and runs until then are kept, unless there were more runs before; --resume makes runs that are missing"
            }
            _ => "interrupted: builds and runs until then are kept; the same with --resume goes on",
        });
        return Ok(code_of(signal));
    }
    if measured > 0 && is_default {
        say("perfprop history regressions says what changed");
    }
    Ok(u8::from(measured + outcome.skipped == 0))
}

/// Shows the progress of builds and runs.
pub(super) struct HistoryProgressLine {
    line: ProgressLine,
    /// Runs take as long as one another, and builds don't: their time is on its own.
    is_running: bool,
}

impl HistoryProgressLine {
    pub(super) fn new() -> Self {
        Self { line: ProgressLine::new(), is_running: false }
    }

    pub(super) fn show(&mut self, now: &HistoryProgress<'_>) {
        match *now {
            HistoryProgress::Building { commit: Commit { hash, subject, .. }, number, of } => {
                self.is_running = false;
                self.line.step(&format!("build {number} of {of}: {} {}", short(hash), shown(subject)));
            }
            HistoryProgress::BuildFailed { commit, build } => {
                self.line.clear();
                let hash = commit.short();
                match &build.lacks {
                    Some(path) => say(&format!("{} isn't there after the build of {hash}", shown_path(path))),
                    None => say(&format!("the build of {hash} failed")),
                }
            }
            HistoryProgress::Deciding { runs, bench, commit } => {
                let (number, hash) = (runs + 1, commit.short());
                self.line.say(&format!("run {number}: {} of {hash}, until it is sure", shown(bench)));
            }
            HistoryProgress::Running { done, of, bench, commit } => {
                if !std::mem::replace(&mut self.is_running, true) {
                    self.line = ProgressLine::new();
                }
                self.line.current(&format!("{} of {}: run", shown(bench), commit.short()), done as u64, of as u64);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.line.clear();
    }
}
