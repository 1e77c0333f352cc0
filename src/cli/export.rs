//! Implements `perfprop export`: converts stacks from one tool's format to another's.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::Path;

use super::Error;
use super::args::{Export, ExportFormat, StackFormat};
use super::stream::say;
use crate::files::PartialFile;
use crate::names::shown;
use crate::profile::{Amount, Detail, EventId, RepeatFolding, Tree, TreeOptions};
use crate::stack_formats::{
    self, EventSelection, Fault, FaultKind, Imported, InputFormat, Names, OutputFormat, Periods, ProcessNaming,
    ReadOptions, WriteError, WriteOptions, WrittenNumber,
};

/// A fault doesn't take away what stood before it, but it isn't hidden either.
const NOT_ALL: u8 = 1;

pub(super) fn run(args: &Export) -> Result<u8, Error> {
    if args.kernel && args.to != ExportFormat::Folded {
        return Err(Error::Usage("--kernel is for --to folded; other formats tell the kernel by its module".into()));
    }
    let Imported { mut tree, fault, skipped_periods, .. } = read(args)?;
    let is_empty = tree.event_ids().all(|event| tree.total(event) == Amount::ZERO);
    let is_whole = fault.is_none();
    match fault {
        Some(source) if is_empty => return Err(Error::Stacks { path: args.file.clone(), source }),
        Some(fault) => {
            let file = args.file.to_string_lossy();
            say(&format!("{}: {fault}\n      what stands before it is written", shown(&file)));
        }
        None => {}
    }
    if skipped_periods && !args.counts {
        say("perf aligned the periods of several events, and such samples weigh 1, as inferno has it");
        say("to weigh them by their periods: --padded-periods");
    }
    let event = event(args, &tree)?;
    if let Some(period) = args.sample_period {
        tree.down_sample(period);
    }
    let unit = if args.counts { WrittenNumber::Samples } else { WrittenNumber::Weights };
    let options = WriteOptions { unit, event, title: title(&args.file) };
    write(args, &tree, &options)?;
    Ok(if is_whole { 0 } else { NOT_ALL })
}

fn read(args: &Export) -> Result<Imported, Error> {
    let failed =
        |source| Error::Stacks { path: args.file.clone(), source: Fault { line: None, what: FaultKind::Io(source) } };
    let input: Box<dyn Read> = if args.file.as_os_str() == "-" {
        if io::stdin().is_terminal() {
            return Err(Error::Usage(
                "give a file of stacks, or pipe one in: perf script | perfprop export ...".into(),
            ));
        }
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(&args.file).map_err(failed)?)
    };
    Ok(stack_formats::read(input, &options(args)))
}

fn options(args: &Export) -> ReadOptions {
    let format = args.from.map(Into::into);
    let tree = TreeOptions {
        repeats: if args.canonical { RepeatFolding::Fold } else { RepeatFolding::Keep },
        detail: if args.lines { Detail::Lines } else { Detail::Functions },
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
    ReadOptions { format, tree, names, process, periods, events }
}

impl From<StackFormat> for InputFormat {
    fn from(format: StackFormat) -> Self {
        match format {
            StackFormat::PerfScript => Self::PerfScript,
            StackFormat::Folded => Self::Folded,
            StackFormat::Pprof => Self::Pprof,
            StackFormat::Recording => Self::Recording,
            StackFormat::Callgrind => Self::Callgrind,
        }
    }
}

/// The event for a file that has room for one.
fn event(args: &Export, tree: &Tree) -> Result<Option<EventId>, Error> {
    let has_one = matches!(args.to, ExportFormat::Folded | ExportFormat::Svg | ExportFormat::Html);
    let names: Vec<_> = tree.event_ids().map(|id| shown(&tree.event_of(id).name).into_owned()).collect();
    if has_one && args.event_filter.len() > 1 && names.len() > 1 {
        let all = names.join(", ");
        return Err(Error::Usage(format!("one event fits into this format, and --event-filter takes {all}")));
    }
    Ok(tree.default_event())
}

fn title(file: &Path) -> String {
    match file.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".into(),
    }
}

fn write(args: &Export, tree: &Tree, options: &WriteOptions) -> Result<(), Error> {
    let target = match args.to {
        ExportFormat::Folded => OutputFormat::Folded,
        ExportFormat::Pprof => OutputFormat::Pprof,
        ExportFormat::Firefox => OutputFormat::Firefox,
        ExportFormat::Speedscope => OutputFormat::Speedscope,
        ExportFormat::Svg => OutputFormat::Svg,
        ExportFormat::Html => OutputFormat::Html,
    };
    let to_stdout = args.output.as_os_str() == "-";
    if to_stdout && target == OutputFormat::Pprof && io::stdout().is_terminal() {
        return Err(Error::Usage("a terminal can't show pprof's format: give a file with -o, or pipe it on".into()));
    }
    let written = if to_stdout {
        stack_formats::write(tree, target, options, &mut buffered(io::stdout().lock()))
    } else {
        to_file(&args.output, |out| stack_formats::write(tree, target, options, out))
    };
    match written {
        Ok(()) => Ok(()),
        Err(WriteError::Io(source)) => Err(Error::Write { path: args.output.clone(), source }),
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
