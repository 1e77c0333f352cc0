//! Imports a file of stacks, and collects what is wrong with it.

use std::fmt;
use std::io::{self, Read};

use super::lines::{Broken, LONGEST, Lines};
use super::names::Names;
use super::perf_script::{Periods, Process};
use super::{callgrind, folded, perf_script, pprof, recording};
use crate::names::quoted;
use crate::profile::{Options, Tree};

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text of `perf script`.
    PerfScript,
    /// A stack a line, `a;b;c 12`.
    Folded,
    /// pprof's protobuf, with gzip or without.
    Pprof,
    /// A recording of perfprop with sampled stacks.
    Recording,
    /// Costs and calls of valgrind's callgrind.
    Callgrind,
}

/// Which events of a file are read. In pprof's files events are types of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Events {
    /// All events.
    #[default]
    All,
    /// The first event that is met in `perf script`; all events in other formats.
    First,
    /// The events with these names, with or without their modifiers.
    Named(Vec<String>),
}

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Format of the file; guessed from its first lines where this is `None`.
    pub format: Option<Format>,
    /// How the tree is built.
    pub tree: Options,
    /// How frames of `perf script` are named.
    pub names: Names,
    /// What stands above the functions of `perf script`.
    pub process: Process,
    /// Which periods of `perf script` count.
    pub periods: Periods,
    /// Events to read.
    pub events: Events,
}

/// The stacks of a file, and what is wrong with it.
#[derive(Debug)]
pub struct Imported {
    /// All stacks, those before the fault if there is one.
    pub tree: Tree,
    /// Why the file wasn't read to its end.
    pub fault: Option<Fault>,
    /// Whether periods didn't count, of [`Periods::Unpadded`].
    pub skipped_periods: bool,
    /// What it is written in; `None` where that isn't known.
    pub format: Option<Format>,
}

/// Why a file isn't read, or not to its end.
#[derive(Debug)]
pub struct Fault {
    /// The line, from 1, where lines are counted.
    pub line: Option<u64>,
    /// What is wrong with the file.
    pub what: What,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum What {
    /// Reading failed.
    Io(io::Error),
    /// There is no sample in it.
    Empty,
    /// Neither its first bytes nor its first lines are of a format that can be read.
    Unknown,
    /// A line of `perf script` begins no sample.
    NoSample,
    /// A line within a sample of `perf script` is no frame.
    NoFrame,
    /// A stack has more frames than any stack has.
    TooDeep,
    /// A line is longer than the limit.
    TooLong,
    /// A line of folded stacks doesn't end with a number.
    NoCount,
    /// Something is wrong with a profile of pprof.
    Pprof(String),
    /// Something is wrong with a recording.
    Recording(String),
    /// A line of callgrind's is wrong.
    Callgrind(crate::callgrind::Wrong),
    /// The last line of callgrind's, `totals:`, is missing.
    CutOff,
    /// A recording has no stacks in it.
    NoStacks,
    /// No event has this name; those there are.
    NoEvent(String, Vec<String>),
}

impl Fault {
    pub(super) fn at(line: u64, what: What) -> Self {
        Self { line: Some(line), what }
    }

    pub(super) fn of_file(what: What) -> Self {
        Self { line: None, what }
    }

    pub(super) fn broken(broken: Broken, line: u64) -> Self {
        match broken {
            Broken::TooLong => Self::at(line, What::TooLong),
            Broken::Io(error) => Self::of_file(What::Io(error)),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        match &self.what {
            What::Io(error) => write!(f, "{error}"),
            What::Empty => write!(f, "no samples"),
            What::Unknown => {
                let others = "`perf script` text nor folded stacks nor a pprof profile nor callgrind's costs";
                write!(f, "neither a recording nor {others}")
            }
            What::NoSample => write!(f, "no sample begins so; perf script prints `comm pid time: period event:`"),
            What::NoFrame => write!(f, "no frame; perf script prints `address symbol (module)`"),
            What::TooDeep => write!(f, "a stack without end"),
            What::TooLong => write!(f, "a line of more than {} MiB", LONGEST >> 20),
            What::NoCount => write!(f, "no stack with a whole number behind it, as in `main;f 12`"),
            What::Pprof(reason) => write!(f, "no valid pprof profile: {reason}"),
            What::Recording(reason) => f.write_str(reason),
            What::Callgrind(wrong) => write!(f, "{wrong}"),
            What::CutOff => write!(f, "the file is cut off: callgrind ends it with `totals:`"),
            What::NoStacks => write!(f, "no call stacks were recorded; perfprop record -g records them"),
            What::NoEvent(name, events) => {
                let events: Vec<_> = events.iter().map(|event| quoted(event)).collect();
                write!(f, "no event {}; there are {}", quoted(name), events.join(", "))
            }
        }
    }
}

/// Which events of a file are taken, as it goes on.
pub(super) enum Chosen {
    All,
    /// The first one, once it is known.
    First(Option<String>),
    /// The events with these names, and some of those that weren't taken.
    Named {
        names: Vec<String>,
        taken: bool,
        others: Vec<String>,
    },
}

/// The number of other events that a message names.
const MOST_OTHERS: usize = 12;

impl Chosen {
    pub(super) fn new(events: &Events) -> Self {
        match events {
            Events::All => Self::All,
            Events::First => Self::First(None),
            Events::Named(names) => Self::Named { names: names.clone(), taken: false, others: Vec::new() },
        }
    }

    pub(super) fn takes(&mut self, event: &str) -> bool {
        match self {
            Self::All => true,
            Self::First(first) => first.get_or_insert_with(|| event.into()) == event,
            Self::Named { names, taken, others } => {
                let takes = names.iter().any(|name| is_named(event, name));
                *taken |= takes;
                if !takes && others.len() < MOST_OTHERS && !others.iter().any(|other| other == event) {
                    others.push(event.into());
                }
                takes
            }
        }
    }

    /// The fault of a file in which there are events, but none that was requested.
    pub(super) fn missing(self) -> Result<(), Fault> {
        match self {
            Self::Named { names, taken: false, others } if !others.is_empty() => {
                Err(Fault::of_file(What::NoEvent(names.join(","), others)))
            }
            _ => Ok(()),
        }
    }
}

/// Whether `name` means this event: `cycles` means `cycles:u` too.
fn is_named(event: &str, name: &str) -> bool {
    event.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

/// How much of a file its format is guessed from.
const HEAD: u64 = 256 << 10;

/// What an input is written in, by its beginning, and the whole input again; `None` for what nobody can read. What begins
/// with a brace can be a recording only.
///
/// # Errors
/// Returns the operating system's error if nothing can be read.
pub fn sniff(mut input: impl Read) -> io::Result<(Option<Format>, impl Read)> {
    let begun = begin(&mut input)?;
    let format = guess(&begun).or_else(|| begun.starts_with(b"{").then_some(Format::Recording));
    Ok((format, io::Cursor::new(begun).chain(input)))
}

fn begin(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut begun = Vec::new();
    input.take(HEAD).read_to_end(&mut begun)?;
    Ok(begun)
}

/// Reads a file of stacks. A fault doesn't take away what stood before it.
pub fn read(mut input: impl Read, options: &ReadOptions) -> Imported {
    let mut tree = Tree::new(options.tree);
    let (format, (skipped_periods, result)) = match begin(&mut input) {
        Ok(begun) => {
            let format = options.format.or_else(|| guess(&begun));
            (format, rest(format, begun, input, &mut tree, options))
        }
        Err(error) => (None, (false, Err(Fault::of_file(What::Io(error))))),
    };
    let is_empty = tree.event_ids().next().is_none();
    let fault = result.err().or(is_empty.then_some(Fault::of_file(What::Empty)));
    Imported { tree, fault, skipped_periods, format }
}

fn rest(
    format: Option<Format>,
    begun: Vec<u8>,
    input: impl Read,
    tree: &mut Tree,
    options: &ReadOptions,
) -> (bool, Result<(), Fault>) {
    match format {
        Some(Format::PerfScript) => perf_script::read(&mut Lines::new(begun, input), tree, options),
        Some(Format::Folded) => (false, folded::read(&mut Lines::new(begun, input), tree, options)),
        Some(Format::Callgrind) => (false, callgrind::read(&mut Lines::new(begun, input), tree, options)),
        Some(Format::Recording) => {
            let input = io::BufReader::new(io::Cursor::new(begun).chain(input));
            (false, recording::read(input, tree, options))
        }
        Some(Format::Pprof) => (false, pprof::read(io::Cursor::new(begun).chain(input), tree, options)),
        None if begun.trim_ascii().is_empty() => (false, Err(Fault::of_file(What::Empty))),
        None => (false, Err(Fault::of_file(What::Unknown))),
    }
}

/// The format of a file that begins so: gzip and the first field of a protobuf are pprof's; `perf script` indents
/// frames, or has heads; a number ends the lines of folded stacks.
fn guess(begun: &[u8]) -> Option<Format> {
    let is_binary = begun.iter().take(4096).any(|&byte| byte < b' ' && !b"\t\n\r\x1b".contains(&byte));
    if begun.starts_with(&[0x1f, 0x8b]) || (is_binary && begun.starts_with(b"\n")) {
        return Some(Format::Pprof);
    }
    if recording::is_recording(begun) {
        return Some(Format::Recording);
    }
    if callgrind::is_callgrind(begun) {
        return Some(Format::Callgrind);
    }
    let mut lines = begun.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
    let mut lines = lines.by_ref().skip_while(|line| line.trim_ascii().is_empty());
    let first = lines.next()?;
    let is_frame = |line: &[u8]| line.starts_with(b"\t");
    if is_frame(first) || lines.next().is_some_and(is_frame) || perf_script::is_head(first) {
        return Some(Format::PerfScript);
    }
    // The first stack may be longer than what is looked at.
    let is_deep = first.len() as u64 == HEAD && first.contains(&b';') && !first.contains(&0);
    (is_deep || folded::split(first).is_some()).then_some(Format::Folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_beginnings() {
        for (text, format) in [
            ("rec 7 23.5: 1 cycles:\n\t 5b f+0x1 (/x)\n\n", Some(Format::PerfScript)),
            ("# hostname\n#\n\nrec 7 23.5: 1 cycles:  5b f+0x1 (/x)\n", Some(Format::PerfScript)),
            ("rec \n\t 5b f\n\n", Some(Format::PerfScript)),
            ("a;b;c 12\n", Some(Format::Folded)),
            ("a b 12", Some(Format::Folded)),
            ("version: 1\ncreator: callgrind-3.19.0\n", Some(Format::Callgrind)),
            ("\n\x04\x08\x01\x10\x02", Some(Format::Pprof)),
            ("\x1f\u{8b}", None),
            ("", None),
            ("hello\nworld\n", None),
        ] {
            assert_eq!(guess(text.as_bytes()), format, "{text:?}");
        }
        assert_eq!(guess(b"\x1f\x8b\x08"), Some(Format::Pprof));
        let begun = |frame: &[u8]| frame.iter().copied().cycle().take(HEAD as usize).collect::<Vec<u8>>();
        assert_eq!([guess(&begun(b"main;")), guess(&begun(b"x"))], [Some(Format::Folded), None]);
    }

    #[test]
    fn events_are_meant_with_their_modifiers() {
        assert!(is_named("cycles:u", "cycles") && is_named("cycles:u", "cycles:u") && is_named("a:b", "a"));
        assert!(!is_named("cycles", "cycles:u") && !is_named("cycles2", "cycles"));
    }
}
