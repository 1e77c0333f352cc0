//! Implements `perfprop export`: converts stacks from one tool's format to another's.

use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Error;
use super::args::{StackFormat, range, whole_number};
use super::error::NOT_ALL;
use super::input::{is_dash, open, refuse_input, title};
use super::stream::say;
use crate::compare::{self, ProfileDifference};
use crate::files::PartialFile;
use crate::monitor::MeasureChoice;
use crate::names::{shown, shown_path};
use crate::profile::{Amount, Detail, EventId, RepeatFolding, Tree, TreeOptions};
use crate::rates::Confidence;
use crate::recording::{self, ReadError, Recording, TimeRange};
use crate::stack_formats::{
    self, EventSelection, Fault, FaultKind, Imported, InputFormat, Names, OutputFormat, Periods, ProcessNaming,
    ReadOptions, SampleKeeping, ScriptGaps, TraceLength, WriteError, WriteOptions, WrittenNumber,
};
use crate::stacks::Losses;

/// The arguments of `perfprop export`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  perf script | perfprop export --to svg -o flame.svg       a flame graph
  perfprop export perfprop.jsonl --to pprof -o prof.pb.gz   for go tool pprof
  perfprop export perfprop.jsonl --to folded                a stack a line
  perfprop export perfprop.jsonl --to firefox -o run.json   each thread with its times, for profiler.firefox.com
  perfprop export before.jsonl after.jsonl --to svg         what two recordings differ in")]
pub(super) struct ExportArgs {
    /// The file of stacks; `-` is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    pub(super) file: PathBuf,
    /// Stacks to compare with: a flame graph shows what the second file has more and less of
    #[arg(value_name = "OTHER")]
    pub(super) other: Option<PathBuf>,
    /// Files of one side, to compare with those of --b: functions that differ by more than chance are marked
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b", conflicts_with = "file", help_heading = "Comparison")]
    pub(super) a: Vec<PathBuf>,
    /// Files of the other side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a", help_heading = "Comparison")]
    pub(super) b: Vec<PathBuf>,
    /// The format of the file; detected from its beginning by default
    #[arg(long, value_name = "FORMAT", help_heading = "Reading")]
    pub(super) from: Option<StackFormat>,
    /// The format to write
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(super) to: ExportFormat,
    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-", help_heading = "Output")]
    pub(super) output: PathBuf,
    /// Write the number of samples instead of their weight (the period of `perf script`)
    #[arg(long, help_heading = "Output")]
    pub(super) counts: bool,
    /// Weigh folded stacks by the period with several events in `perf script`, too; inferno doesn't see periods that
    /// perf pads
    #[arg(long, conflicts_with = "counts", help_heading = "Output")]
    pub(super) padded_periods: bool,
    /// Fold recursion: where the last frames of a path repeat the frames before them, the path goes back to the first
    /// of these, so that recursion of any depth is a few frames
    #[arg(long, help_heading = "Reading")]
    pub(super) canonical: bool,
    /// Keep one of N samples: their number is divided by N. A sample that stays has the weight of those that don't, so
    /// that the sum of weights stays where the file has both; of folded stacks and other sums, which have no samples,
    /// it is divided by N
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(1..), help_heading = "Reading")]
    pub(super) sample_period: Option<u64>,
    /// Keep only what was sampled and counted between these seconds of a recording, as in `12.5-30` or `1:00-1:30`
    #[arg(long, value_name = "FROM-TO", value_parser = range, conflicts_with_all = ["a", "other"], help_heading = "Reading")]
    pub(super) range: Option<TimeRange>,
    /// Keep source lines apart, where the file has them; pprof has them in any case, unless --canonical folds recursion
    #[arg(long, help_heading = "Output")]
    pub(super) lines: bool,
    /// Keep this many nodes, and fold the smallest subtrees into `(other)`
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = whole_number::<u32>(16..), help_heading = "Output")]
    pub(super) max_nodes: u32,
    /// Keep only these events, such as `cycles` or `cycles:u`; repeatable. Folded stacks and flame graphs hold one
    /// event: by default the first of `perf script`, or pprof's preferred one
    #[arg(long, value_name = "EVENT", help_heading = "Reading")]
    pub(super) event_filter: Vec<String>,
    /// Add the process id to names of processes: `name-pid` (needs `perf script -F +pid`)
    #[arg(long, conflicts_with = "tid", help_heading = "Names in stacks")]
    pub(super) pid: bool,
    /// Add the ids of process and thread to names of processes: `name-pid/tid`
    #[arg(long, help_heading = "Names in stacks")]
    pub(super) tid: bool,
    /// Leave out the names of processes
    #[arg(long, conflicts_with_all = ["pid", "tid"], help_heading = "Names in stacks")]
    pub(super) no_process: bool,
    /// Mark kernel frames of folded stacks with `_[k]`
    #[arg(long, help_heading = "Names in stacks")]
    pub(super) kernel: bool,
}

/// What stacks are exported as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ExportFormat {
    /// A stack a line, the process first, short names and weights as inferno-collapse-perf has them
    Folded,
    /// For `go tool pprof` and tools that build on it, gzipped; samples of recordings are labelled with process, thread
    /// and region
    Pprof,
    /// JSON for the Firefox Profiler: each thread of a recording is a track, with samples at their times
    Firefox,
    /// JSON for speedscope: each thread of a recording is a profile, with samples in the order of time
    Speedscope,
    /// A flame graph as a picture; zoom and search work in a browser
    Svg,
    /// A flame graph as a page, with zoom and search
    Html,
    /// JSON of the calls of regions one by one, for Perfetto and chrome://tracing
    ChromeTrace,
}

impl ExportFormat {
    /// What a tree is written as; `None` for what has each call on its own.
    fn of_tree(self) -> Option<OutputFormat> {
        match self {
            Self::Folded => Some(OutputFormat::Folded),
            Self::Pprof => Some(OutputFormat::Pprof),
            Self::Firefox => Some(OutputFormat::Firefox),
            Self::Speedscope => Some(OutputFormat::Speedscope),
            Self::Svg => Some(OutputFormat::Svg),
            Self::Html => Some(OutputFormat::Html),
            Self::ChromeTrace => None,
        }
    }
}

pub(super) fn run(args: &ExportArgs) -> Result<u8, Error> {
    if args.kernel && args.to != ExportFormat::Folded {
        return Err(Error::Usage("--kernel is for --to folded; other formats tell the kernel by its module".into()));
    }
    if args.lines && args.to == ExportFormat::Folded {
        say("--lines is left out: folded stacks have names alone");
    }
    if args.other.is_some() || !args.a.is_empty() {
        return export_difference(args);
    }
    let Some(target) = args.to.of_tree() else { return trace(args) };
    let Imported { mut tree, fault, gaps, losses, format, mut timed, times, .. } = read(args)?;
    if args.range.is_some() && format.is_some_and(|format| format != InputFormat::Recording) {
        let file = shown_path(&args.file);
        let why = match format {
            Some(InputFormat::PerfScript) => "of perf's text:  perf script --time FROM,TO | perfprop export ...".into(),
            _ => format!("{file} holds stacks without times"),
        };
        return Err(Error::Usage(format!("--range is for recordings; {why}")));
    }
    let is_empty = tree.event_ids().all(|event| tree.total(event) == Amount::ZERO);
    let is_whole = fault.is_none();
    match fault {
        Some(source) if is_empty => return Err(Error::Stacks { path: args.file.clone(), source }),
        Some(fault) => {
            say(&format!("{}: {fault}\n      {} is written", shown_path(&args.file), fault.rest()));
        }
        None => {}
    }
    if args.range.is_some() && is_empty {
        return Err(Error::Input("nothing was sampled in this range".into()));
    }
    tell_gaps(&args.file, &gaps, &tree);
    if gaps.periods && !args.counts {
        say("perf aligned the periods of several events, and such samples weigh 1, as inferno has it");
        say("to weigh them by their periods: --padded-periods");
    }
    tell_losses(&args.file, &losses);
    let event = event(args, &tree)?;
    if let Some(period) = args.sample_period {
        tree.down_sample(period);
        timed.iter_mut().for_each(|run| run.timeline.down_sample(period));
        if tree.event_ids().all(|event| tree.total(event) == Amount::ZERO) {
            return Err(Error::Usage(format!("--sample-period {period} leaves no sample: take a smaller number")));
        }
    }
    let unit = if args.counts { WrittenNumber::Samples } else { WrittenNumber::Weights };
    let options = WriteOptions { unit, event, title: title(&args.file), difference: None, run: timed, times };
    write(args, &tree, target, &options)?;
    Ok(if is_whole { 0 } else { NOT_ALL })
}

/// Says how many samples a recording lacks.
fn tell_losses(file: &Path, losses: &Losses) {
    if losses.samples() > 0 {
        let missing = Losses { lost: losses.lost, dropped: losses.dropped, ..Losses::default() };
        say(&format!("{}: samples are missing ({missing}): they were lost while it was recorded", shown_path(file)));
    }
}

/// Says what a text of `perf script` has beside what is written of it.
fn tell_gaps(file: &Path, gaps: &ScriptGaps, tree: &Tree) {
    for note in gaps.notes() {
        say(&format!("{}: {note}", shown_path(file)));
    }
    let Some(event) = tree.default_event().filter(|_| !gaps.others.is_empty()) else { return };
    let others = gaps.others.iter().map(|(name, number)| format!("{} ({number})", shown(name)));
    let others = others.collect::<Vec<_>>().join(", ");
    let event = &tree.event_of(event).name;
    say(&format!("{}: only {}, the first event, is written", shown_path(file), shown(event)));
    say(&format!("others, with their numbers of samples: {others}; --event-filter chooses one"));
}

/// Draws what two sides differ in.
fn export_difference(args: &ExportArgs) -> Result<u8, Error> {
    let (ExportFormat::Svg | ExportFormat::Html, Some(target)) = (args.to, args.to.of_tree()) else {
        return Err(Error::Usage("a difference is drawn as a flame graph: --to svg or --to html".into()));
    };
    let of_one = [(args.counts, "--counts"), (args.sample_period.is_some(), "--sample-period")];
    refuse(&of_one, "is for one file; profiles are compared by their weights, of all samples")?;
    let one = std::slice::from_ref(&args.file);
    let [a, b] = match &args.other {
        Some(other) => [one, std::slice::from_ref(other)],
        None => [&args.a[..], &args.b[..]],
    };
    let [of_a, of_b] = [a, b].map(|side| side.iter().map(|file| whole(args, file)).collect::<Result<Vec<_>, _>>());
    let (of_a, of_b) = (of_a?, of_b?);
    let [trees_of_a, trees_of_b] = [&of_a, &of_b].map(|side| side.iter().map(|one| &one.tree).collect::<Vec<_>>());
    let measures = measures(of_a.iter().chain(&of_b));
    let found = ProfileDifference::of(&trees_of_a, &trees_of_b, measures, Confidence::DEFAULT);
    let found = found.ok_or_else(|| {
        let tree = trees_of_a.first();
        let event = tree.and_then(|tree| Some(tree.event_of(tree.default_event()?).name.clone()));
        let event = event.map_or_else(|| "no event".into(), |event| shown(&event).into_owned());
        Error::Input(format!("nothing to compare: {event} isn't sampled in all files; --event-filter chooses another"))
    })?;
    let options = stack_formats::difference_options(&found, format!("{} to {}", side_title(a), side_title(b)));
    write(args, &found.tree, target, &options)?;
    Ok(0)
}

/// Refuses the first of these options that is given, with what it is for.
fn refuse(options: &[(bool, &str)], why: &str) -> Result<(), Error> {
    match options.iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(Error::Usage(format!("{option} {why}"))),
        None => Ok(()),
    }
}

/// What one side of a comparison is called.
fn side_title(files: &[PathBuf]) -> String {
    let first = files.first().map_or_else(String::new, |file| title(file));
    match files.len() {
        ..=1 => first,
        runs => format!("{first} and {} more", runs - 1),
    }
}

/// All stacks of a file; a part of them would be compared with a whole.
fn whole(args: &ExportArgs, file: &Path) -> Result<Imported, Error> {
    let options = options(args);
    let tree = TreeOptions { repeats: RepeatFolding::Fold, ..options.tree };
    let mut imported = stack_formats::read(input(file)?, &ReadOptions { tree, ..options });
    match imported.fault.take() {
        Some(source) => Err(Error::Stacks { path: file.to_owned(), source }),
        None => {
            tell_losses(file, &imported.losses);
            tell_gaps(file, &imported.gaps, &imported.tree);
            Ok(imported)
        }
    }
}

/// Weights are compared of recordings of commands that did all their work, and shares of others.
fn measures<'a>(files: impl Iterator<Item = &'a Imported>) -> MeasureChoice {
    match files.map(|file| file.run.as_ref()).collect::<Option<Vec<_>>>() {
        Some(runs) => compare::measures(runs.into_iter().map(|run| (&run.header, Some(&run.end)))),
        None => MeasureChoice::Usual,
    }
}

fn read(args: &ExportArgs) -> Result<Imported, Error> {
    Ok(stack_formats::read(input(&args.file)?, &options(args)))
}

/// The calls of regions one by one, of which only recordings know.
fn trace(args: &ExportArgs) -> Result<u8, Error> {
    let of_stacks = [
        (args.range.is_some(), "--range"),
        (args.from.is_some(), "--from"),
        (!args.event_filter.is_empty(), "--event-filter"),
        (args.counts, "--counts"),
        (args.padded_periods, "--padded-periods"),
        (args.canonical, "--canonical"),
        (args.sample_period.is_some(), "--sample-period"),
        (args.lines, "--lines"),
        (args.pid, "--pid"),
        (args.tid, "--tid"),
        (args.no_process, "--no-process"),
    ];
    refuse(&of_stacks, "is for samples, and --to chrome-trace writes the calls of regions, all of them")?;
    refuse_terminal(&args.file)?;
    let recording = recording_of_calls(&args.file)?;
    let mut length = TraceLength::default();
    write_out(args, |out| stack_formats::write_trace(&recording, out).map(|written| length = written))?;
    say(&length.to_string());
    let Some(words) = recording.breaks_off() else { return Ok(0) };
    say(&format!("{} {words}\n      what stands before it is written", shown_path(&args.file)));
    Ok(NOT_ALL)
}

/// Other files of stacks are told by what they are.
fn recording_of_calls(path: &Path) -> Result<Recording, Error> {
    let failed = |source| Error::Recording { path: path.into(), source };
    let (format, input) = open(path).and_then(stack_formats::sniff).map_err(|error| failed(ReadError::Io(error)))?;
    if format.is_some_and(|format| format != InputFormat::Recording) {
        let calls = "--to chrome-trace writes the calls of regions, which only recordings have";
        let record = "perfprop record -o FILE -- PROGRAM";
        return Err(Error::Input(format!("{} holds stacks, and no calls; {calls}:  {record}", shown_path(path))));
    }
    recording::read(BufReader::new(input)).map_err(failed)
}

fn input(file: &Path) -> Result<Box<dyn Read>, Error> {
    refuse_terminal(file)?;
    let fault = |error| Fault { line: None, what: FaultKind::Io(error) };
    open(file).map_err(|error| Error::Stacks { path: file.to_owned(), source: fault(error) })
}

/// Nobody types stacks.
fn refuse_terminal(file: &Path) -> Result<(), Error> {
    if is_dash(file) && io::stdin().is_terminal() {
        return Err(Error::Usage("give a file of stacks, or pipe one in: perf script | perfprop export ...".into()));
    }
    Ok(())
}

fn options(args: &ExportArgs) -> ReadOptions {
    let format = args.from.map(Into::into);
    // Its functions stay whole, with the lines of their samples.
    let keeps_functions = args.to == ExportFormat::Pprof && !args.canonical;
    let tree = TreeOptions {
        repeats: if args.canonical { RepeatFolding::Fold } else { RepeatFolding::Keep },
        detail: if args.lines || keeps_functions { Detail::Lines } else { Detail::Functions },
        cap: args.max_nodes as usize,
    };
    // Lines of folded stacks have no room for more than a name, and for one event.
    let is_folded = args.to == ExportFormat::Folded;
    let names = match (args.kernel, is_folded) {
        (true, _) => Names::ShortKernel,
        (false, true) => Names::Short,
        (false, false) => Names::Full,
    };
    let process = match (args.pid, args.tid, args.no_process) {
        (true, ..) => ProcessNaming::Pid,
        (_, true, _) => ProcessNaming::Tid,
        (.., true) => ProcessNaming::None,
        _ => ProcessNaming::Name,
    };
    let has_one = matches!(args.to, ExportFormat::Folded | ExportFormat::Svg | ExportFormat::Html);
    let events = match (args.event_filter.is_empty(), has_one) {
        (false, _) => EventSelection::Named(args.event_filter.clone()),
        (true, true) => EventSelection::First,
        (true, false) => EventSelection::All,
    };
    let periods = if is_folded && !args.padded_periods { Periods::Unpadded } else { Periods::All };
    let samples = match args.to {
        ExportFormat::Pprof | ExportFormat::Firefox => SampleKeeping::EachWithOffsets,
        ExportFormat::Speedscope => SampleKeeping::Each,
        _ => SampleKeeping::Sums,
    };
    ReadOptions { format, tree, names, process, periods, events, range: args.range, samples }
}

/// The event for a file that has room for one.
fn event(args: &ExportArgs, tree: &Tree) -> Result<Option<EventId>, Error> {
    let has_one = matches!(args.to, ExportFormat::Folded | ExportFormat::Svg | ExportFormat::Html);
    let names: Vec<_> = tree.event_ids().map(|id| shown(&tree.event_of(id).name).into_owned()).collect();
    if has_one && args.event_filter.len() > 1 && names.len() > 1 {
        let all = names.join(", ");
        return Err(Error::Usage(format!("one event fits into this format, and --event-filter takes {all}")));
    }
    Ok(tree.default_event())
}

fn write(args: &ExportArgs, tree: &Tree, target: OutputFormat, options: &WriteOptions) -> Result<(), Error> {
    let to_stdout = is_dash(&args.output);
    if to_stdout && target == OutputFormat::Pprof && io::stdout().is_terminal() {
        return Err(Error::Usage("a terminal can't show pprof's format: give a file with -o, or pipe it on".into()));
    }
    write_out(args, |out| stack_formats::write(tree, target, options, out))
}

/// Writes the file that was asked for.
fn write_out(args: &ExportArgs, write: impl FnOnce(&mut dyn Write) -> Result<(), WriteError>) -> Result<(), Error> {
    refuse_input(std::iter::once(&args.file).chain(&args.other).chain(&args.a).chain(&args.b), &args.output)?;
    let written = match is_dash(&args.output) {
        true => write(&mut buffered(io::stdout().lock())),
        false => to_file(&args.output, |out| write(out)),
    };
    match written {
        Ok(()) => Ok(()),
        Err(WriteError::Io(source)) => {
            let is_stdout = is_dash(&args.output);
            let path = if is_stdout { "standard output".into() } else { args.output.clone() };
            Err(Error::Write { path, source })
        }
        Err(error) => Err(Error::Export(error)),
    }
}

fn buffered<W: Write>(out: W) -> BufWriter<W> {
    BufWriter::with_capacity(1 << 16, out)
}

/// An error leaves the file as it was.
fn to_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut PartialFile>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut part = PartialFile::create(path).map_err(WriteError::Io)?;
    let mut out = buffered(&mut part);
    write(&mut out)?;
    out.flush().map_err(WriteError::Io)?;
    drop(out);
    part.put().map(drop).map_err(WriteError::Io)
}
