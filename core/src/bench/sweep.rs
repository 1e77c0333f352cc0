//! Runs the commands of a sweep in shuffled turns, and keeps what each run took.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::Receiver;

use super::conditions::ConditionWatch;
use super::design::{Sizes, Variant, command_at, order, points, shell_text, variants};
use super::hooks::{self, HookEnd, HookKind, Hooks};
use super::precision::is_narrow;
use super::runner::{CPU_TIMES, Ran, RunOnce, Runner, SIGNAL_PATIENCE};
use super::store::{EXIT_CODE, PreviousSweep, SweepStore, take_over, without_empty};
use super::{NotResumed, SweepError, SweepOptions};
use crate::cost::{SweepRecord, SweepRuns, TIME, Workload, WorkloadFile, WorkloadHeader, sizes_in_words};
use crate::host::HostFiles;
use crate::measure::{end_within, pending_end};
use crate::number::rfc_3339;
use crate::run::MeasuredMachine;
use crate::session::{CaughtSignal, Unfinished, find_command};
use crate::sources::command::Exit;
use crate::units::CpuNs;

/// What a run took, by the names of times and events, and how it ended.
type MeasuredRun = (BTreeMap<String, f64>, Exit);

/// A command that does nothing: what it takes is what starting a process takes.
const NOTHING: &str = "true";

/// So often the files are written, or after each run where runs take longer.
const WRITES: Duration = Duration::from_millis(500);

/// How far a sweep is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepProgress {
    /// Runs that are done.
    pub done: usize,
    /// Runs in all.
    pub of: usize,
    /// Runs that weren't needed, as intervals were narrow enough.
    pub saved: usize,
    /// Runs that an earlier sweep had done.
    pub resumed: usize,
    /// Runs that took longer than they may: they were ended, and nothing of them is kept.
    pub timed_out: usize,
}

/// A sweep, and how it ended.
#[derive(Debug)]
pub struct Swept {
    /// The commands.
    pub variants: Vec<Variant>,
    /// What was measured of each.
    pub files: Vec<WorkloadFile>,
    /// How many runs there were.
    pub progress: SweepProgress,
    /// Why it didn't come to its end.
    pub error: Option<SweepError>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// Runs a sweep, and writes it to the files of `store` as it goes. `resumes` goes on with what these hold already. `on_run`
/// hears of each run that is done.
///
/// # Errors
/// The reason why nothing was run: events that can't be counted, files of another sweep.
pub fn sweep(
    options: &SweepOptions,
    store: Option<&SweepStore>,
    resumes: bool,
    signals: &Receiver<CaughtSignal>,
    on_run: &mut dyn FnMut(SweepProgress),
) -> Result<Swept, SweepError> {
    let mut sweep = Sweep::new(options, store, signals, on_run)?;
    if resumes {
        sweep.resume()?;
    }
    store.map_or(Ok(()), SweepStore::check).map_err(|(path, error)| SweepError::Write(path, error))?;
    let mut stop = sweep.run_all().err();
    let cleaned = sweep.clean_up();
    stop = stop.or(cleaned.err());
    let saved = sweep.save();
    stop = stop.or(saved.err().map(Unfinished::Error));
    let (error, signal) = match stop {
        None => (None, None),
        Some(Unfinished::Signal(signal)) => (None, Some(signal)),
        Some(Unfinished::Error(error)) => (Some(error), None),
    };
    let files = sweep.files.iter().map(without_empty).collect();
    Ok(Swept { variants: sweep.variants, files, progress: sweep.progress, error, signal })
}

/// Why a sweep ends before its last run.
type UnfinishedSweep = Unfinished<SweepError>;

/// A sweep on its way. A cell is a command at a set of sizes; cells of one command are neighbours.
struct Sweep<'a> {
    options: &'a SweepOptions,
    store: Option<&'a SweepStore>,
    signals: &'a Receiver<CaughtSignal>,
    on_run: &'a mut dyn FnMut(SweepProgress),
    runner: Runner,
    variants: Vec<Variant>,
    points: Vec<Sizes>,
    files: Vec<WorkloadFile>,
    /// Which cell has its turn in each run that is kept.
    order: Vec<usize>,
    /// The texts of commands before the first run that have run, and of those after all runs that are to.
    set_up: BTreeSet<String>,
    to_clean_up: Vec<String>,
    conditions: ConditionWatch,
    /// How many sweeps before this one left their conditions.
    earlier: usize,
    /// What becomes of what the files hold.
    before: PreviousSweep,
    saved_at: Instant,
    progress: SweepProgress,
}

impl<'a> Sweep<'a> {
    fn new(
        options: &'a SweepOptions,
        store: Option<&'a SweepStore>,
        signals: &'a Receiver<CaughtSignal>,
        on_run: &'a mut dyn FnMut(SweepProgress),
    ) -> Result<Self, SweepError> {
        let runner = Runner::new(&options.events, options.counter.clone(), options.cpu)?;
        let (variants, points) = (variants(&options.commands, &options.parameters), points(&options.parameters));
        let record = record(options, runner.events());
        let files = variants.iter().map(|variant| file(variant, options, &points, &record)).collect();
        let order = order(variants.len() * points.len(), options.repeats, options.seed.wrapping_add(1));
        let conditions = ConditionWatch::new(HostFiles::here(), options.cpu, options.hooks != Hooks::default());
        Ok(Self {
            options,
            store,
            signals,
            on_run,
            runner,
            variants,
            points,
            files,
            order,
            set_up: BTreeSet::new(),
            to_clean_up: Vec::new(),
            conditions,
            earlier: 0,
            before: PreviousSweep::Kept,
            saved_at: Instant::now(),
            progress: SweepProgress::default(),
        })
    }

    /// Takes over what earlier sweeps left in the files.
    fn resume(&mut self) -> Result<(), SweepError> {
        let Some(store) = self.store else { return Ok(()) };
        self.before = PreviousSweep::Replaced;
        let before = store.read().map_err(SweepError::NotResumed)?;
        for (place, (file, before)) in self.files.iter_mut().zip(before).enumerate() {
            let Some(before) = before else { continue };
            let taken = take_over(file, before, place * self.points.len(), &self.order);
            let path = || store.paths[place].clone();
            taken.map_err(|why| SweepError::NotResumed(NotResumed { path: path(), why }))?;
            self.earlier = file.header.sweep.as_ref().map_or(0, |sweep| sweep.conditions.len());
            self.progress.resumed += file.workloads.iter().map(|workload| workload.order.len()).sum::<usize>();
        }
        Ok(())
    }

    fn run_all(&mut self) -> Result<(), UnfinishedSweep> {
        let done: BTreeSet<u32> = self.workloads().flat_map(|workload| workload.order.iter().copied()).collect();
        let turns: Vec<(u32, usize)> = (0..).zip(self.order.clone()).filter(|(run, _)| !done.contains(run)).collect();
        let missing: BTreeSet<usize> = turns.iter().map(|&(_, cell)| cell).collect();
        let warmups = order(self.variants.len() * self.points.len(), self.options.warmups, self.options.seed);
        let warmups: Vec<usize> = warmups.into_iter().filter(|cell| missing.contains(cell)).collect();
        let starts = self.missing_starts(&turns);
        self.progress.of = starts.len() + warmups.len() + turns.len();
        for cell in warmups {
            self.run(cell)?;
        }
        self.keep_runs(turns, starts)
    }

    /// Makes the runs that are kept, each with its place in the order, and one of a command that does nothing in each round.
    fn keep_runs(&mut self, turns: Vec<(u32, usize)>, mut starts: BTreeSet<u32>) -> Result<(), UnfinishedSweep> {
        for (place, &(run, cell)) in turns.iter().enumerate() {
            let round = self.round(run);
            let (variant, point) = self.place(cell);
            if self.is_narrow(&self.files[variant].workloads[point]) {
                self.progress.saved += 1;
                self.progress.of -= 1;
                let is_last = turns.get(place + 1).is_none_or(|&(next, _)| self.round(next) != round);
                if is_last && starts.remove(&round) {
                    self.progress.of -= 1;
                }
                continue;
            }
            if starts.remove(&round) {
                self.measure_start(round)?;
            }
            let Some(counts) = self.run(cell)? else { continue };
            keep(&mut self.files[variant].workloads[point], run, counts);
            if self.saved_at.elapsed() >= WRITES && self.store.is_some_and(SweepStore::is_replaceable) {
                self.save()?;
            }
        }
        Ok(())
    }

    fn workloads(&self) -> impl Iterator<Item = &Workload> {
        self.files.iter().flat_map(|file| &file.workloads)
    }

    /// The command and the set of sizes of a cell.
    fn place(&self, cell: usize) -> (usize, usize) {
        (cell / self.points.len(), cell % self.points.len())
    }

    fn is_narrow(&self, workload: &Workload) -> bool {
        let samples = workload.samples.get(TIME).map_or(&[][..], Vec::as_slice);
        self.options.until.is_some_and(|part| is_narrow(self.options.determinizer, samples, part))
    }

    /// The round of a run that is kept: each cell has a turn in it.
    fn round(&self, run: u32) -> u32 {
        run / (self.variants.len() * self.points.len()).max(1) as u32
    }

    /// The rounds in which a command that does nothing is to be run, as a file lacks it; none where there is no such command.
    fn missing_starts(&self, turns: &[(u32, usize)]) -> BTreeSet<u32> {
        if find_command(&NOTHING.into()).is_none_or(|path| !path.exists()) {
            return BTreeSet::new();
        }
        let is_done = |round: &u32| self.files.iter().all(|file| has_start(file, *round));
        turns.iter().map(|&(run, _)| self.round(run)).filter(|round| !is_done(round)).collect()
    }

    /// Measures what starting a process takes, as everything else is measured.
    fn measure_start(&mut self, round: u32) -> Result<(), UnfinishedSweep> {
        let Some((counts, _)) = self.measure(&[NOTHING.to_owned()])? else { return Ok(()) };
        let lacking = self.files.iter_mut().filter(|file| !has_start(file, round));
        for sweep in lacking.filter_map(|file| file.header.sweep.as_mut()) {
            let empty = Workload { sizes: BTreeMap::new(), samples: BTreeMap::new(), order: Vec::new() };
            keep(sweep.process_start.get_or_insert(empty), round, counts.clone());
        }
        Ok(())
    }

    /// Runs a cell's command, with what has to run before it; `None` where it took too long and the sweep goes on without it.
    fn run(&mut self, cell: usize) -> Result<Option<BTreeMap<String, f64>>, UnfinishedSweep> {
        let (variant, point) = self.place(cell);
        self.begin(variant, point)?;
        let command = command_at(&self.variants[variant], &self.points[point]);
        let Some((mut counts, exit)) = self.measure(&command)? else { return self.timed_out(&command, point) };
        let runs = self.files[variant].header.sweep.as_ref().and_then(|sweep| sweep.runs.as_ref());
        let has_codes = runs.is_some_and(|runs| runs.ignores_failure);
        if self.options.ignores_failure || has_codes {
            counts.insert(EXIT_CODE.to_owned(), f64::from(exit.shell_code()));
        }
        if !self.options.ignores_failure && exit != Exit::Code(0) {
            if let Some(signal) = end_within(self.signals, SIGNAL_PATIENCE) {
                return Err(Unfinished::Signal(signal));
            }
            let sizes = sizes_in_words(&numbers(&self.points[point]));
            return Err(SweepError::Failed { command: command.join(" "), sizes, exit: exit.told() }.into());
        }
        Ok(Some(counts))
    }

    /// What becomes of the sweep after a run that was ended, as it took too long.
    fn timed_out<T>(&mut self, command: &[String], point: usize) -> Result<Option<T>, UnfinishedSweep> {
        self.progress.timed_out += 1;
        if self.options.ignores_failure {
            return Ok(None);
        }
        let sizes = sizes_in_words(&numbers(&self.points[point]));
        let timeout = self.options.timeout.unwrap_or_default();
        Err(SweepError::TimedOut { command: command.join(" "), sizes, timeout }.into())
    }

    /// Runs what has to run before a run.
    fn begin(&mut self, variant: usize, point: usize) -> Result<(), UnfinishedSweep> {
        let text = |kind| {
            let text = self.options.hooks.text(kind)?;
            Some(shell_text(text, &self.variants[variant], &self.points[point]))
        };
        let [setup, prepare, cleanup] = HookKind::ALL.map(text);
        self.to_clean_up.extend(cleanup.filter(|text| !self.to_clean_up.contains(text)));
        if let Some(setup) = setup.filter(|text| self.set_up.insert(text.clone())) {
            self.hook(HookKind::Setup, &setup)?;
        }
        prepare.map_or(Ok(()), |prepare| self.hook(HookKind::Prepare, &prepare))
    }

    fn hook(&self, kind: HookKind, text: &str) -> Result<(), UnfinishedSweep> {
        match hooks::run(kind, text, self.signals).map_err(SweepError::System)? {
            HookEnd::Ended(end) => end.map_err(|failure| SweepError::Hook(failure).into()),
            HookEnd::Interrupted(signal) => Err(Unfinished::Signal(signal)),
        }
    }

    /// Cleans up after all that was begun, also after a failure; returns the first failure of cleaning up.
    fn clean_up(&mut self) -> Result<(), UnfinishedSweep> {
        let texts = std::mem::take(&mut self.to_clean_up);
        let ends: Vec<_> = texts.iter().map(|text| self.hook(HookKind::Cleanup, text)).collect();
        ends.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    }

    /// What a run took, and how it ended; `None` where perfprop ended it, as it took too long.
    fn measure(&mut self, command: &[String]) -> Result<Option<MeasuredRun>, UnfinishedSweep> {
        if let Some(signal) = pending_end(self.signals) {
            return Err(Unfinished::Signal(signal));
        }
        let once = RunOnce { argv: command, folder: None, timeout: self.options.timeout };
        let measured = match self.runner.run(once, self.signals, &mut || {})? {
            Ran::Interrupted(signal) => return Err(Unfinished::Signal(signal)),
            Ran::Whole { counts, exit } => Some((counts, exit)),
            Ran::TimedOut => None,
        };
        // How long one that was ended used a CPU isn't known.
        let used = measured.as_ref().and_then(|(counts, _)| {
            CPU_TIMES.iter().map(|name| counts.get(*name).map(|time| *time as u64)).sum::<Option<u64>>()
        });
        self.conditions.after_run(used.map(CpuNs));
        self.progress.done += 1;
        (self.on_run)(self.progress);
        Ok(measured)
    }

    /// Notes the conditions until now, and writes the files, if something was measured.
    fn save(&mut self) -> Result<(), SweepError> {
        if self.progress.done == 0 {
            return Ok(());
        }
        let seen = self.conditions.conditions();
        for sweep in self.files.iter_mut().filter_map(|file| file.header.sweep.as_mut()) {
            sweep.conditions.truncate(self.earlier);
            sweep.conditions.push(seen.clone());
        }
        if let Some(store) = self.store.filter(|_| self.workloads().any(|workload| !workload.order.is_empty())) {
            store.write(&self.files, self.before).map_err(|(path, error)| SweepError::Write(path, error))?;
        }
        self.before = PreviousSweep::Replaced;
        self.saved_at = Instant::now();
        Ok(())
    }
}

/// Whether what starting a process takes was measured for a file in this round.
fn has_start(file: &WorkloadFile, round: u32) -> bool {
    let sweep = file.header.sweep.as_ref();
    sweep.and_then(|sweep| sweep.process_start.as_ref()).is_some_and(|start| start.order.contains(&round))
}

/// Keeps a run of this place in the order.
fn keep(workload: &mut Workload, run: u32, counts: BTreeMap<String, f64>) {
    workload.order.push(run);
    counts.into_iter().for_each(|(name, count)| workload.samples.entry(name).or_default().push(count));
}

fn numbers(sizes: &Sizes) -> BTreeMap<String, f64> {
    sizes.iter().map(|(name, value)| (name.clone(), value.number)).collect()
}

/// The file of a command, without a run.
fn file(variant: &Variant, options: &SweepOptions, points: &[Sizes], record: &SweepRecord) -> WorkloadFile {
    let sizes = options.parameters.iter().filter(|parameter| parameter.sizes().is_some());
    let header = WorkloadHeader {
        perfprop_workload: 1,
        name: variant.name(),
        sizes: sizes.map(|parameter| parameter.name.clone()).collect(),
        command: variant.command.clone(),
        words: variant.words.clone(),
        machine: MeasuredMachine::this(),
        sweep: Some(record.clone()),
        model: None,
    };
    let workload = |sizes: &Sizes| Workload { sizes: numbers(sizes), samples: BTreeMap::new(), order: Vec::new() };
    WorkloadFile { header, workloads: points.iter().map(workload).collect() }
}

fn record(options: &SweepOptions, events: Vec<String>) -> SweepRecord {
    let numbers = |parameter: &super::Parameter| {
        let values = parameter.sizes()?.iter().map(|value| value.number).collect();
        Some((parameter.name.clone(), values))
    };
    let hook = |kind: HookKind| Some((kind.option().to_owned(), options.hooks.text(kind)?.to_owned()));
    let words = options.parameters.iter();
    let started = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SweepRecord {
        started: started.as_secs_f64(),
        date: rfc_3339(started.as_millis() as i64),
        seed: options.seed,
        commands: options.commands.clone(),
        words: words.filter_map(|one| Some((one.name.clone(), one.words()?.to_vec()))).collect(),
        values: options.parameters.iter().filter_map(numbers).collect(),
        events,
        runs: Some(SweepRuns {
            repeats: options.repeats,
            warmups: options.warmups,
            until: options.until,
            taken: options.determinizer.to_string(),
            ignores_failure: options.ignores_failure,
        }),
        model: options.caches(),
        cpu: options.cpu,
        hooks: HookKind::ALL.into_iter().filter_map(hook).collect(),
        process_start: None,
        conditions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::super::LEAST_RUNS;
    use super::*;
    use crate::cost::samples::Determinizer;
    use crate::sources::Counter;

    #[test]
    fn progress_comes_to_its_end_where_runs_are_not_needed() {
        let options = SweepOptions {
            commands: vec![vec![NOTHING.to_owned()]],
            parameters: Vec::new(),
            events: Vec::new(),
            repeats: LEAST_RUNS + 10,
            warmups: 2,
            until: Some(10.0),
            determinizer: Determinizer::Median,
            seed: 1,
            ignores_failure: false,
            timeout: None,
            counter: Counter::Kernel,
            cpu: None,
            hooks: Hooks::default(),
        };
        let mut seen = Vec::new();
        let swept = sweep(&options, None, false, &crossbeam_channel::never(), &mut |now| seen.push((now.done, now.of)))
            .unwrap();
        // Of each round that has a run, it and a start.
        let (all, needed) = (2 + 2 * (LEAST_RUNS + 10), 2 + 2 * LEAST_RUNS);
        assert_eq!((seen[0], seen.len()), ((1, all), needed));
        let SweepProgress { done, of, saved, resumed, .. } = swept.progress;
        assert_eq!((done, of, saved, resumed), (needed, needed, 10, 0));
    }
}
