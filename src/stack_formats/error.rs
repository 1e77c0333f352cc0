//! Defines what may be wrong with a file of stacks that is read or written.

use std::fmt;
use std::io;

use super::lines::{Broken, LONGEST};
use crate::names::{quoted, shown};
use crate::units::WallNs;

/// Why a file isn't read, or not to its end.
#[derive(Debug)]
pub struct Fault {
    /// The line, from 1, where lines are counted.
    pub line: Option<u64>,
    /// What is wrong with the file.
    pub what: FaultKind,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum FaultKind {
    /// Reading failed.
    Io(io::Error),
    /// It has no bytes at all.
    NoBytes,
    /// There is no sample in it.
    Empty,
    /// The numbers of all its stacks are 0.
    AllZero,
    /// It is in no format that is read, but this, if that can be told.
    Unknown(Option<&'static str>),
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
    /// The number of a folded stack isn't whole.
    NotWhole,
    /// The number of a folded stack is below 0.
    BelowZero,
    /// Each line of folded stacks ends with two numbers.
    TwoCounts,
    /// Something is wrong with a profile of pprof.
    Pprof(String),
    /// These types of samples of a profile of pprof have numbers below 0.
    Negative(Vec<String>),
    /// Something is wrong with a recording.
    Recording(String),
    /// A line of callgrind's is wrong.
    Callgrind(crate::callgrind::Wrong),
    /// The last line of callgrind's, `totals:`, or of cachegrind's, `summary:`, is missing.
    CutOff,
    /// A recording has no stacks in it.
    NoStacks,
    /// Nothing was read in the range of a recording that was requested; how long the recording is.
    NotInRange(WallNs),
    /// No event has this name; those there are.
    NoEvent(String, Vec<String>),
    /// The numbers of this event add up to more than 64 bits hold.
    TooMuch(String),
}

impl Fault {
    pub(super) fn at(line: u64, what: FaultKind) -> Self {
        Self { line: Some(line), what }
    }

    pub(super) fn of_file(what: FaultKind) -> Self {
        Self { line: None, what }
    }

    /// What of the file is read all the same.
    pub fn rest(&self) -> &'static str {
        match self.what {
            FaultKind::Negative(_) => "the rest",
            _ => "what stands before it",
        }
    }

    pub(super) fn broken(broken: Broken, line: u64) -> Self {
        match broken {
            Broken::TooLong => Self::at(line, FaultKind::TooLong),
            Broken::Io(error) => Self::of_file(FaultKind::Io(error)),
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
            FaultKind::Io(error) => write!(f, "{error}"),
            FaultKind::NoBytes => write!(f, "it is empty: what was to write it wrote nothing"),
            FaultKind::Empty => write!(f, "no samples"),
            FaultKind::AllZero => write!(f, "no samples: the number behind each stack is 0"),
            FaultKind::Unknown(Some(what)) => write!(f, "no recording and no stacks, but {what}"),
            FaultKind::Unknown(None) => {
                let others = "`perf script` text nor folded stacks nor a pprof profile nor callgrind's costs";
                write!(f, "neither a recording nor {others}")
            }
            FaultKind::NoSample => write!(f, "no sample begins so; perf script prints `comm pid time: period event:`"),
            FaultKind::NoFrame => write!(f, "no frame; perf script prints `address symbol (module)`"),
            FaultKind::TooDeep => write!(f, "a stack without end"),
            FaultKind::TooLong => write!(f, "a line of more than {} MiB", LONGEST >> 20),
            FaultKind::NoCount => write!(f, "no stack with a whole number behind it, as in `main;f 12`"),
            FaultKind::NotWhole => {
                let times_1000 = r#"awk '{ n = $NF; sub(/ [^ ]*$/, ""); printf "%s %.0f\n", $0, n * 1000 }'"#;
                let instead = format!("in thousandths:  {times_1000} FILE | perfprop replay -");
                write!(f, "the number behind the stack isn't whole; {instead}")
            }
            FaultKind::BelowZero => {
                let compare = "of two files:  perfprop export BEFORE AFTER --to svg";
                write!(f, "the number behind the stack is below 0, as in a difference; {compare}")
            }
            FaultKind::TwoCounts => {
                let compare = "of two files:  perfprop export BEFORE AFTER --to svg";
                write!(f, "two numbers behind each stack, as difffolded.pl writes a difference; {compare}")
            }
            FaultKind::Pprof(reason) => write!(f, "no valid pprof profile: {}", shown(reason)),
            FaultKind::Negative(types) => {
                let types: Vec<_> = types.iter().map(|name| quoted(name)).collect();
                let instead = "compare the two profiles themselves (perfprop export BEFORE AFTER --to svg), or export another type (--event-filter)";
                let have = if types.len() == 1 { "has" } else { "have" };
                write!(f, "{} {have} numbers below 0, as in a difference of profiles; {instead}", types.join(", "))
            }
            FaultKind::Recording(reason) => f.write_str(&shown(reason)),
            FaultKind::Callgrind(wrong) => write!(f, "{wrong}"),
            FaultKind::CutOff => {
                write!(f, "the file is cut off: callgrind ends it with `totals:`, and cachegrind with `summary:`")
            }
            FaultKind::TooMuch(event) => write!(
                f,
                "the numbers of {} add up to more than 2^64, so that nobody knows their shares: write them in a larger unit",
                quoted(event)
            ),
            FaultKind::NotInRange(length) => {
                write!(f, "nothing was read in this range; the recording is {:.1} s long", length.as_secs())
            }
            FaultKind::NoStacks => write!(f, "no call stacks were recorded; perfprop record -g records them"),
            FaultKind::NoEvent(name, events) => {
                let events: Vec<_> = events.iter().map(|event| quoted(event)).collect();
                write!(f, "no event {}; there are {}", quoted(name), events.join(", "))
            }
        }
    }
}

/// Why a file isn't written.
#[derive(Debug)]
pub enum WriteError {
    /// Writing failed.
    Io(io::Error),
    /// Samples were requested, but of this event only sums are known.
    NoSamples(String),
    /// No enters and leaves of regions were recorded.
    NoMarks,
    /// The numbers of this event are too large for the format.
    TooLarge(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::error::Error for WriteError {}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::NoSamples(event) => write!(f, "of {event} the number of samples isn't known, only a sum"),
            Self::NoMarks => write!(f, "no calls of regions were recorded: no program had any"),
            Self::TooLarge(event) => write!(f, "the numbers of {event} are too large for this format"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_quote_the_file_are_escaped() {
        for what in [FaultKind::Recording("`\u{1b}[31m`".into()), FaultKind::Pprof("`\u{1b}[31m`".into())] {
            assert!(Fault::of_file(what).to_string().ends_with("`\\x1b[31m`"));
        }
    }
}
