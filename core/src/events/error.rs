//! Formats errors about the names of an `-e` option.

use std::fmt::{self, Display, Formatter};
use std::path::{Path, PathBuf};

use super::machine::TracefsError;
use super::modifiers::LettersError;
use crate::codes::{Coded, ErrorCode};
use crate::names;

/// An option that takes names of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOption {
    /// `-e`
    Event,
    /// `--region-events`
    RegionEvents,
}

impl Display for EventOption {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Event => "-e",
            Self::RegionEvents => "--region-events",
        })
    }
}

/// Everything that is wrong with one `-e` or another option. [`Display`] gives the whole message, a paragraph
/// for each problem.
#[derive(Clone, Debug, PartialEq)]
pub struct EventError {
    /// The option.
    pub option: EventOption,
    /// The problems in the order of the text, at least one.
    pub problems: Vec<Problem>,
}

/// One wrong event of an `-e` option.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    /// Which event of the list it is, counted from 1, braces not counted.
    pub position: usize,
    /// The event as it was written; the whole list for a syntax error.
    pub text: String,
    /// What is wrong with the event.
    pub cause: EventErrorCause,
}

/// What can be wrong with an event's text.
#[derive(Clone, Debug, PartialEq)]
pub enum EventErrorCause {
    /// The text can't be understood.
    Syntax {
        /// The byte of the text at which reading stopped.
        at: usize,
        /// What the grammar allows there.
        expected: &'static str,
    },
    /// It is counted, but not in regions.
    NotOfRegions,
    /// Neither perf, the kernel, the presets nor libpfm know the name.
    Unknown {
        /// The name without its modifiers.
        name: String,
        /// The nearest names, the nearest first.
        similar: Vec<String>,
        /// A pattern for `perfprop list` that finds something.
        pattern: Option<String>,
        /// What lists the names: `perfprop list`.
        list: &'static str,
    },
    /// No PMU of this name in sysfs.
    NoPmu {
        /// The name in front of the slash.
        pmu: String,
        /// Names of this machine's PMUs.
        known: Vec<String>,
    },
    /// The PMU has no such term or event.
    NoTerm {
        /// The PMU; empty for an event without a format of its own.
        pmu: String,
        /// The term as written.
        term: String,
        /// The terms and events that there are.
        known: Vec<String>,
    },
    /// The value doesn't fit into the bits of the term.
    TooLarge {
        /// The PMU; empty for an event without a format of its own.
        pmu: String,
        /// The term as written.
        term: String,
        /// The value written.
        value: u64,
        /// The largest value that fits.
        max: u64,
    },
    /// A term was written without a value.
    NeedsValue {
        /// The term as written.
        term: String,
    },
    /// A term's value must be a number.
    NotANumber {
        /// The term as written.
        term: String,
        /// The value written.
        text: String,
    },
    /// An event of sysfs leaves a parameter open (`core=?`).
    NeedsParameter {
        /// The event, `pmu/event/`.
        event: String,
        /// Name of the missing parameter.
        parameter: String,
    },
    /// The modifier letters mean nothing.
    Letters(LettersError),
    /// The name looks like a tracepoint's, and tracefs can't be read.
    Tracefs(TracefsError),
    /// A file of sysfs isn't what the kernel documents.
    BadSysfs {
        /// Path of the file.
        file: PathBuf,
        /// Text of the file.
        text: String,
    },
    /// A probe can't be placed.
    Probe {
        /// The program, as it was written; empty for the kernel.
        path: String,
        /// Why the probe can't be placed.
        problem: ProbeProblem,
    },
    /// Patterns stand for more events than can be counted.
    TooMany {
        /// How many events a list can have.
        most: usize,
    },
}

/// Why a probe can't be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeProblem {
    /// The kernel has no PMU for such probes (`uprobe`, `kprobe`).
    NoPmu(&'static str),
    /// The file can't be read, and what the operating system says.
    File(String),
    /// The file's path isn't text.
    NotText,
    /// The file is no program or library, and what is wrong with it.
    NotElf(String),
    /// The file has no symbols.
    Stripped {
        /// The function that was looked for.
        function: String,
    },
    /// There is no function of this name.
    NoFunction {
        /// The function that was looked for.
        function: String,
        /// The nearest names, the nearest first.
        similar: Vec<String>,
    },
    /// Several functions have this name.
    Several {
        /// The function that was looked for.
        function: String,
        /// Where the first of them are.
        addresses: Vec<u64>,
    },
    /// No code of the program is loaded at this address.
    NoCode(u64),
    /// The kernel takes functions only.
    KernelAddress,
}

impl std::error::Error for EventError {}

/// How many problems are written out.
const MOST_SHOWN: usize = 20;

impl Coded for EventError {
    fn code(&self) -> Option<ErrorCode> {
        Some(ErrorCode::E03)
    }

    fn problems(&self) -> Vec<String> {
        let shown = self.problems.iter().take(MOST_SHOWN);
        let mut texts: Vec<_> = shown.map(|problem| ProblemText(problem, self.option).to_string()).collect();
        let more = self.problems.len().saturating_sub(MOST_SHOWN);
        if let Some(last) = texts.last_mut().filter(|_| more > 0) {
            last.push_str(&format!("\n... and {more} more wrong names in {}", self.option));
        }
        texts
    }
}

impl Display for EventError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problems().join("\n"))
    }
}

/// A problem of an option.
struct ProblemText<'a>(&'a Problem, EventOption);

impl Display for ProblemText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(problem, option) = *self;
        let place = format!("in {option} (position {})", problem.position);
        let text = shown(&problem.text);
        match &problem.cause {
            EventErrorCause::Syntax { at, expected } => syntax(f, option, &problem.text, *at, expected),
            EventErrorCause::Unknown { name, similar, pattern, list } => {
                write!(f, "unknown event '{}' {place}", shown(name))?;
                hints(f, similar, pattern.as_deref(), list)
            }
            EventErrorCause::NoPmu { pmu, known } => {
                write!(f, "no PMU '{}' for '{text}' {place}", shown(pmu))?;
                write!(f, "\n      PMUs of this machine: {}", listed(known))
            }
            EventErrorCause::NoTerm { pmu, term, known } => {
                write!(f, "no term '{}' in '{text}' {place}", shown(term))?;
                let of = if pmu.is_empty() { "this event".to_owned() } else { format!("PMU {}", shown(pmu)) };
                write!(f, "\n      terms of {of}: {}", listed(known))
            }
            EventErrorCause::Tracefs(error) => {
                write!(f, "can't look up '{text}' {place}: the list of tracepoints can't be read")?;
                write!(f, "\n      {error}")
            }
            other => {
                write!(f, "bad event '{text}' {place}\n      ")?;
                plain(f, other)
            }
        }
    }
}

/// The causes that one line explains.
fn plain(f: &mut Formatter<'_>, cause: &EventErrorCause) -> fmt::Result {
    match cause {
        EventErrorCause::TooLarge { pmu, term, value, max } => {
            let of = if pmu.is_empty() { String::new() } else { format!(" of PMU {}", shown(pmu)) };
            write!(f, "{}={value:#x} is too large: the largest value{of} is {max:#x}", shown(term))
        }
        EventErrorCause::NeedsValue { term } => write!(f, "'{0}' needs a value: {0}=0x1", shown(term)),
        EventErrorCause::NotANumber { term, text } => {
            write!(f, "'{}' must be a number (10, 0x1a), not '{}'", shown(term), shown(text))
        }
        EventErrorCause::NeedsParameter { event, parameter } => {
            write!(f, "{} leaves '{1}' open: add {1}=0x1 between the slashes", shown(event), shown(parameter))
        }
        EventErrorCause::Letters(error) => write!(f, "{error}"),
        EventErrorCause::BadSysfs { file, text } => {
            write!(f, "the kernel's file {} says '{}', which has no meaning", path(file), shown(text))
        }
        EventErrorCause::Probe { path, problem } => probe(f, &shown(path), problem),
        EventErrorCause::NotOfRegions => f.write_str(
            "regions count perf's hardware, cache and software events, and raw ones (r1a8); -e counts it in all of the program",
        ),
        EventErrorCause::TooMany { most } => write!(f, "the list has more than {most} events: use a narrower pattern"),
        EventErrorCause::Syntax { .. }
        | EventErrorCause::Unknown { .. }
        | EventErrorCause::NoPmu { .. }
        | EventErrorCause::NoTerm { .. }
        | EventErrorCause::Tracefs(_) => Ok(()),
    }
}

/// Why a probe can't be placed, and what to do.
fn probe(f: &mut Formatter<'_>, path: &str, problem: &ProbeProblem) -> fmt::Result {
    let of = if path.is_empty() { "the kernel" } else { path };
    match problem {
        ProbeProblem::NoPmu(pmu) => {
            let setting = if *pmu == "kprobe" { "CONFIG_KPROBE_EVENTS" } else { "CONFIG_UPROBE_EVENTS" };
            write!(f, "this kernel has no PMU '{pmu}' in /sys/bus/event_source/devices; it is built without {setting}")
        }
        ProbeProblem::File(error) => write!(f, "cannot read {of}: {}", shown(error)),
        ProbeProblem::NotText => write!(f, "the full path of {of} isn't text"),
        ProbeProblem::NotElf(error) => write!(f, "{of} is no program or library: {}", shown(error)),
        ProbeProblem::Stripped { function } => {
            let function = shown(function);
            write!(f, "{of} has no symbols, so {function} can't be found in it")?;
            write!(f, "\n      build it without -s and strip, or give the address: uprobe:{of}:0x1139")
        }
        ProbeProblem::NoFunction { function, similar } => {
            write!(f, "{of} has no function {}", shown(function))?;
            if similar.is_empty() && path.is_empty() {
                return write!(f, "\n      its functions: /proc/kallsyms");
            }
            if similar.is_empty() {
                return write!(f, "\n      its functions: nm {of}, or nm -D {of}");
            }
            let names: Vec<String> = similar.iter().map(|name| shown(name)).collect();
            write!(f, "\n      did you mean {}?", names.join(", or "))
        }
        ProbeProblem::Several { function, addresses } => {
            let each: Vec<String> = addresses.iter().map(|address| format!("uprobe:{of}:{address:#x}")).collect();
            write!(f, "{of} has several functions {}; one of them:\n      {}", shown(function), each.join(", "))
        }
        ProbeProblem::NoCode(address) => write!(f, "{of} has no code at address {address:#x}"),
        ProbeProblem::KernelAddress => write!(f, "a probe in the kernel needs the name of a function"),
    }
}

fn hints(f: &mut Formatter<'_>, similar: &[String], pattern: Option<&str>, list: &str) -> fmt::Result {
    let mut parts = Vec::new();
    if let Some(first) = similar.first() {
        parts.push(format!("did you mean {}?", shown(first)));
    }
    if similar.len() > 1 {
        let rest: Vec<String> = similar[1..].iter().map(|name| shown(name)).collect();
        parts.push(format!("similar: {}", rest.join(", ")));
    }
    if let Some(pattern) = pattern {
        parts.push(format!("all: {list} '{}'", shown(pattern)));
    }
    if parts.is_empty() {
        parts.push(format!("all names: {list}"));
    }
    write!(f, "\n      {}", parts.join("   "))
}

impl fmt::Display for TracefsError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            TracefsError::Forbidden(folder) => {
                let folder = path(folder);
                write!(f, "{folder} may not be read by this user (EACCES)")?;
                write!(f, "\n      as root, or:  sudo mount -o remount,mode=755,gid=$(id -g) /sys/kernel/tracing")
            }
            TracefsError::NotMounted(folder) => {
                let folder = path(folder);
                write!(f, "no tracefs at {folder}; mount it: sudo mount -t tracefs tracefs {folder}")
            }
        }
    }
}

/// How much of a long list is shown on each side of the place that went wrong.
const AROUND: usize = 40;

fn syntax(f: &mut Formatter<'_>, option: EventOption, text: &str, at: usize, expected: &str) -> fmt::Result {
    let at = (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let before: Vec<char> = text[..at].chars().collect();
    let from = before.len().saturating_sub(AROUND);
    let before: String = before[from..].iter().collect();
    let after: String = text[at..].chars().take(AROUND).collect();
    let dots = if from > 0 { "..." } else { "" };
    let before = format!("{dots}{}", shown(&before));
    writeln!(f, "cannot read the events in {option}: expected {expected}")?;
    writeln!(f, "      {before}{}", shown(&after))?;
    write!(f, "      {:width$}^ here", "", width = before.chars().count())
}

/// The most known names that are listed.
const MOST_LISTED: usize = 24;

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let mut shown: Vec<String> = names.iter().take(MOST_LISTED).map(|name| self::shown(name)).collect();
    if names.len() > MOST_LISTED {
        shown.push(format!("and {} more", names.len() - MOST_LISTED));
    }
    shown.join(", ")
}

fn path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// The longest name that is repeated in full.
const LONGEST_SHOWN: usize = 200;

/// A name as it may reach a terminal, and not without end.
fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", names::shown(&text[..end])),
        None => names::shown(text).into_owned(),
    }
}
