//! Implements `perfprop record`: runs a command and writes a recording of its events.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use crossbeam_channel::{Receiver, never};
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::args::{MeasurementArgs, milliseconds, whole_number};
use super::input::is_dash;
use super::outcome::{code_with, how_it_failed, tell_delay, tell_no_regions};
use super::progress::{SlowRun, instructions_of};
use super::stream::{hush, say};
use super::{Error, signals};
use crate::files::PartialFile;
use crate::measure::{self, BatchChannels, Delivery, EndedBy, Measurement, RunEvent, RunOutcome, close, note_partial};
use crate::monitor::taken_off;
use crate::names::shown_path;
use crate::number::counted;
use crate::profile::TreeOptions;
use crate::recording::Recorder;
use crate::regions::{RegionTable, Wanted};
use crate::run::{Header, MeasuredTarget};
use crate::session::{CaughtSignal, ChildIo, Launch};
use crate::stacks::live::LiveStacks;
use crate::stacks::{Gathered, Losses, RegionsToCome, SamplingSetup, UnwindMethod};

/// The arguments of `perfprop record`.
#[derive(Debug, Args)]
#[command(
    override_usage = "perfprop record [OPTIONS] [-- COMMAND...]",
    after_help = "Examples:
  perfprop record -- ./prog                        into perfprop.jsonl
  perfprop record -g -- ./prog                     with call stacks
  perfprop record -r 5 -o before.jsonl -- ./prog   five runs: before-1.jsonl to before-5.jsonl
  perfprop record -a -- sleep 60                   a minute of the whole machine"
)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    pub(super) measurement: MeasurementArgs,
    /// Print only errors
    #[arg(short, long, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Milliseconds between readings of the counters
    #[arg(short = 'I', long, value_name = "MS", default_value_t = 100, value_parser = milliseconds(), help_heading = "Intervals")]
    pub(super) interval: u64,
    /// Run the command this many times, and write a recording of each run: x-1.jsonl, x-2.jsonl and so on with `-o
    /// x.jsonl`. `replay --a` and `--b` compare such recordings
    #[arg(short, long, value_name = "N", value_parser = whole_number::<u32>(1..), help_heading = "Runs")]
    pub(super) repeat: Option<u32>,
    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "perfprop.jsonl", help_heading = "Output")]
    pub(super) output: PathBuf,
}

/// How often it is recorded what threads do, at most.
const THREADS_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(args: &RecordArgs) -> Result<u8, Error> {
    if args.quiet {
        hush();
    }
    let io = if is_dash(&args.output) { ChildIo::ToStderr } else { ChildIo::Inherit };
    let launch = args.measurement.target.launch(io)?;
    let paths = paths(args, launch.command.is_some())?;
    let threads = Some(THREADS_INTERVAL.max(Duration::from_millis(args.interval)));
    let mut measurement = args.measurement.of(Launch { threads, ..launch })?;
    let signals = signals::listen(&measurement.launch.stop).map_err(Error::System)?;
    let mut code = 0;
    for (run, path) in paths.iter().enumerate() {
        measurement.launch.first_turn = run;
        let outcome = once(args, &measurement, &signals, path)?;
        code = code_with(code, &outcome);
        if let Some(how) = how_it_failed(&outcome).filter(|_| paths.len() > 1) {
            say(&format!("the command of {} ended with {how}", shown_path(path)));
        }
        if outcome.ended_by.signal().is_some() {
            break;
        }
    }
    Ok(code)
}

/// Where the recordings go: one, or with `-r` one for each run.
fn paths(args: &RecordArgs, has_command: bool) -> Result<Vec<PathBuf>, Error> {
    let Some(runs) = args.repeat else { return Ok(vec![args.output.clone()]) };
    if !has_command {
        return Err(Error::Usage("-r repeats a command, and there is none".into()));
    }
    if is_dash(&args.output) {
        return Err(Error::Usage(
            "-r writes a file for each run, and -o - is one stream; give a file:  -o x.jsonl".into(),
        ));
    }
    let next = numbered(&args.output, runs.saturating_add(1));
    if next.exists() {
        say(&format!("{} is of an earlier series; a pattern of names would take it in", shown_path(&next)));
    }
    Ok((1..=runs).map(|run| numbered(&args.output, run)).collect())
}

/// `x-3.jsonl` of `x.jsonl`.
fn numbered(path: &Path, run: u32) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{run}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

/// Runs the command once and writes its recording.
fn once(
    args: &RecordArgs,
    measurement: &Measurement,
    signals: &Receiver<CaughtSignal>,
    path: &Path,
) -> Result<RunOutcome, Error> {
    let launch = &measurement.launch;
    let into = Destination { path, command: launch.command.as_ref().and_then(|line| line.argv.first()) };
    // Opened first, so that nothing runs whose recording can't be kept.
    let out = Out::open(path).map_err(|source| into.failed(source))?;
    let period = Duration::from_millis(args.interval);
    let (session, header) = measurement.start(period, period, &mut say)?;
    note_partial(&header, &mut say);
    let mut regions = session.watch_regions(period, Wanted::Marks).map_err(Error::System)?;
    let to_come = if regions.is_some() { RegionsToCome::Expected } else { RegionsToCome::Over };
    let mut recorder = RunRecorder::new(into, out, header, session.stacks(), to_come)?;
    let batches = BatchChannels {
        stacks: session.stacks().map_or_else(never, |stacks| stacks.batches().clone()),
        regions: regions.as_ref().map_or_else(never, |regions| regions.batches().clone()),
    };
    let outcome = measure::run(&session, signals, batches, Delivery::Batched, |event| {
        recorder.take(event)?;
        Ok::<_, Error>(recorder.flow())
    })?;
    if let Some(stacks) = session.stacks() {
        stacks.stop();
        stacks.batches().iter().try_for_each(|batch| recorder.take(RunEvent::Stacks(&batch)))?;
    }
    if let Some(regions) = &mut regions {
        regions.stop();
        regions.batches().iter().try_for_each(|batch| recorder.take(RunEvent::Regions(&batch)))?;
    }
    let is_unread = recorder.finish(launch, &outcome)?;
    let ended_by = close(session, signals, outcome.ended_by.signal()).map_or(outcome.ended_by, EndedBy::Signal);
    if is_unread { Err(Error::Unread) } else { Ok(RunOutcome { ended_by, ..outcome }) }
}

/// The file that a recording goes to, or `-`, and the command that it is of.
#[derive(Clone, Copy)]
struct Destination<'a> {
    path: &'a Path,
    command: Option<&'a OsString>,
}

impl Destination<'_> {
    /// The error that nothing can be written there.
    fn failed(self, source: io::Error) -> Error {
        let path = if is_dash(self.path) { Path::new("standard output") } else { self.path };
        Error::Write { path: path.into(), source }
    }

    /// The error that nothing more can be written there after so many readings.
    fn cut(self, source: io::Error, readings: u64) -> Error {
        match is_dash(self.path) {
            true => self.failed(source),
            false => Error::CutRecording { path: self.path.into(), source, readings, command: self.command.cloned() },
        }
    }

    /// Says what is in the file.
    fn tell(self, what: &str) {
        if !is_dash(self.path) {
            say(&format!("{what} in {}", shown_path(self.path)));
        }
    }
}

/// Writes a run to its recording, and counts what it writes.
struct RunRecorder<'a> {
    into: Destination<'a>,
    header: Header,
    recorder: Recorder<Box<dyn Write>>,
    /// Whether the recording goes to a pipe whose reader has left.
    is_unread: Rc<Cell<bool>>,
    written: Written,
    has_stacks: bool,
    slow: SlowRun,
}

impl<'a> RunRecorder<'a> {
    /// A recording that has its header.
    fn new(
        into: Destination<'a>,
        out: Out,
        header: Header,
        stacks: Option<&LiveStacks>,
        regions: RegionsToCome,
    ) -> Result<Self, Error> {
        let is_unread = Rc::new(Cell::new(false));
        let begun = out.recorder(&header, &is_unread).and_then(|mut recorder| {
            stacks.map_or(Ok(()), |stacks| recorder.sampled(stacks.sampled()))?;
            Ok(recorder)
        });
        let recorder = begun.map_err(|source| into.cut(source, 0))?;
        let written = Written::new(stacks, regions);
        let slow = SlowRun::new(header.modelled.is_some());
        Ok(Self { into, header, recorder, is_unread, written, has_stacks: stacks.is_some(), slow })
    }

    /// Writes what came.
    fn take(&mut self, event: RunEvent<'_>) -> Result<(), Error> {
        if let RunEvent::Round(round, _) = event {
            self.slow.note(instructions_of(round)).iter().for_each(|text| say(text));
        }
        let before = self.written.rounds;
        self.written.note(event, &self.header);
        let done = match event {
            RunEvent::Round(round, lost) => self.recorder.round(round, lost),
            RunEvent::Stacks(batch) => self.recorder.stacks(batch),
            RunEvent::Regions(batch) => self.recorder.regions(batch),
            RunEvent::Save => {
                let so_far = format!("{} so far", self.written.words(self.has_stacks));
                self.recorder.flush().inspect(|()| self.into.tell(&so_far))
            }
            RunEvent::Idle => self.recorder.flush(),
        };
        done.map_err(|source| self.into.cut(source, before))
    }

    /// Whether to go on: what runs already isn't recorded for nobody, but a command runs to its end.
    fn flow(&self) -> ControlFlow<()> {
        let is_for_nobody = self.is_unread.get() && self.into.command.is_none();
        if is_for_nobody { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends the recording, and says what is in it and what is to be known of it. Returns whether its reader had left.
    fn finish(self, launch: &Launch, outcome: &RunOutcome) -> Result<bool, Error> {
        let Self { into, header, recorder, is_unread, mut written, has_stacks, .. } = self;
        recorder.end(&outcome.end).map_err(|source| into.cut(source, written.rounds))?;
        written.lost_rounds = outcome.end.lost_rounds;
        into.tell(&written.words(has_stacks));
        tell_delay(launch.delay, outcome);
        if written.is_taken_off {
            say(&taken_off(&header));
        }
        written.findings(&header.target).iter().for_each(|finding| say(finding));
        tell_no_regions(launch.region_events.as_deref(), written.regions.programs().len());
        Ok(is_unread.get())
    }
}

/// What was written to a recording, in numbers.
#[derive(Default)]
struct Written {
    rounds: u64,
    lost_rounds: u64,
    samples: u64,
    /// What named regions counted.
    regions: RegionTable,
    /// Functions of a call graph that a model counted.
    functions: usize,
    losses: Losses,
    /// Whether the kernel took counters off at an exec.
    is_taken_off: bool,
    /// What was sampled and which regions were open; `None` where a model counts.
    gathered: Option<Gathered>,
}

impl Written {
    /// An empty count, with these call stacks, and regions if there may be any.
    fn new(stacks: Option<&LiveStacks>, regions: RegionsToCome) -> Self {
        let is_modelled = stacks.is_some_and(|stacks| stacks.sampled().call_graph == UnwindMethod::Modelled);
        let sampled = stacks.map_or_else(SamplingSetup::of_nothing, |stacks| stacks.sampled().clone());
        let gathered = (!is_modelled).then(|| Gathered::new(&sampled, regions, TreeOptions::default()));
        Self { gathered, ..Self::default() }
    }

    /// What is to be known of the call stacks and of regions.
    fn findings(&mut self, target: &MeasuredTarget) -> Vec<String> {
        let unread = self.regions.unread().into_iter().map(|unread| unread.to_string());
        let findings = self.gathered.as_mut().map(|gathered| {
            gathered.end_regions();
            let quality = gathered.quality();
            quality
                .copying()
                .into_iter()
                .chain(quality.findings(gathered.tree(), &target.selection()))
                .collect::<Vec<_>>()
        });
        findings.unwrap_or_default().into_iter().chain(unread).collect()
    }

    fn note(&mut self, event: RunEvent<'_>, header: &Header) {
        match event {
            RunEvent::Round(round, lost_rounds) => {
                self.rounds += 1;
                self.lost_rounds = lost_rounds;
                self.is_taken_off |= !header.uncounted_rows(round).taken_off.is_empty();
            }
            RunEvent::Stacks(batch) => {
                self.samples += batch.samples.len() as u64;
                if !batch.costs.is_empty() {
                    self.functions += batch.frames.len();
                }
                self.losses = batch.losses;
                if let Some(gathered) = &mut self.gathered {
                    gathered.take(batch.clone());
                }
            }
            RunEvent::Regions(batch) => {
                // What isn't defined can't be read back either, and is said then.
                let _ = self.regions.take(batch);
                if let Some(gathered) = &mut self.gathered {
                    gathered.take_regions(batch);
                }
            }
            RunEvent::Save | RunEvent::Idle => {}
        }
    }

    fn words(&self, with_stacks: bool) -> String {
        let mut words = counted(self.rounds, "reading");
        if self.lost_rounds > 0 {
            words += &format!(", {} skipped", self.lost_rounds);
        }
        if with_stacks {
            let losses = self.losses.to_string();
            let losses = if losses.is_empty() { losses } else { format!(" ({losses})") };
            words += &match self.functions {
                0 => format!(", {} samples with call stacks{losses}", self.samples),
                functions => format!(", the calls of {functions} functions{losses}"),
            };
        }
        match self.regions.distinct() {
            0 => {}
            regions => words += &format!(", {}", counted(regions, "region")),
        }
        words
    }
}

/// Where the recording goes.
enum Out {
    Stdout,
    File(PartialFile),
}

impl Out {
    fn open(path: &Path) -> io::Result<Self> {
        match is_dash(path) {
            true if stdout_was_closed() => Err(io::Error::other("it is closed")),
            true => Ok(Self::Stdout),
            false => PartialFile::create(path).map(Self::File),
        }
    }

    /// The file gets its name with its header: from there on it is good up to its last line.
    fn recorder(self, header: &Header, is_unread: &Rc<Cell<bool>>) -> io::Result<Recorder<Box<dyn Write>>> {
        match self {
            Self::Stdout => Recorder::new(Box::new(Pipe { is_unread: Rc::clone(is_unread) }), header),
            Self::File(part) => {
                let recorder = Recorder::new(Box::new(part.file()?) as Box<dyn Write>, header)?;
                part.put_keeping_old()?;
                Ok(recorder)
            }
        }
    }
}

/// Standard output, which may be a pipe whose reader leaves. That doesn't end the command: what is written then goes
/// nowhere.
struct Pipe {
    /// Whether the reader has left.
    is_unread: Rc<Cell<bool>>,
}

impl Pipe {
    fn unless_unread<T>(&self, done: impl FnOnce() -> io::Result<T>, nowhere: T) -> io::Result<T> {
        if self.is_unread.get() {
            return Ok(nowhere);
        }
        match done() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_unread.set(true);
                Ok(nowhere)
            }
            done => done,
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_unread(|| io::stdout().write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_unread(|| io::stdout().flush(), ())
    }
}

/// Whether standard output was closed when perfprop began: Rust then opens /dev/null in its place, for reading, too,
/// as no shell does.
fn stdout_was_closed() -> bool {
    let is_null = fs::metadata("/proc/self/fd/1").is_ok_and(|found| found.rdev() == NULL_DEVICE);
    let flags = fcntl(io::stdout(), FcntlArg::F_GETFL).map(OFlag::from_bits_retain);
    is_null && flags.is_ok_and(|flags| flags & OFlag::O_ACCMODE == OFlag::O_RDWR)
}

/// The number of /dev/null.
const NULL_DEVICE: u64 = 1 << 8 | 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::BATCH;
    use crate::recording::ON_DISK;

    #[test]
    fn what_was_read_has_time_left_to_be_written() {
        assert!(BATCH < ON_DISK);
    }

    #[test]
    fn runs_are_numbered_before_the_ending() {
        let named = |path: &str| numbered(Path::new(path), 3).display().to_string();
        assert_eq!(named("x.jsonl"), "x-3.jsonl");
        assert_eq!(named("/tmp/a.b/run.before.jsonl"), "/tmp/a.b/run.before-3.jsonl");
        assert_eq!([named("x"), named(".x")], ["x-3", ".x-3"]);
    }
}
