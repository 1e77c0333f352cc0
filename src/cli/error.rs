//! Defines the program's errors: the text for people and the exit code of each.

use std::borrow::Cow;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use nix::unistd::geteuid;
use signal_hook::consts::SIGPIPE;

use super::input::is_dash;
use super::pager::{Pager, Paging};
use super::perf_compat;
use super::stream::message;
#[cfg(feature = "bench")]
use crate::bench::SweepError;
use crate::codes::{Coded, ErrorCode, named};
use crate::events::TracefsError;
use crate::machine::Host;
use crate::measure;
use crate::names::{for_shell, nearest, quoted, shown, shown_path};
use crate::recording::ReadError;
use crate::sources::perf::OpenError;
use crate::stack_formats::{Fault, FaultKind, WriteError};
use crate::stacks::live::{StackError, Unsampled};

/// A file was read up to a fault: that doesn't take away what stood before it, but it isn't hidden either.
pub(super) const NOT_ALL: u8 = 1;
/// Wrong usage, an unknown event, a bad file: nothing was started.
const USAGE: u8 = 2;
/// Measuring is impossible, or what was measured could not be kept.
pub(super) const MEASURING: u8 = 125;
/// The command was found and can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
const NOT_FOUND: u8 = 127;

/// Why a verb could not do what it should.
#[derive(Debug)]
pub enum Error {
    /// An option or a word of the command line is wrong, or they don't go together.
    Usage(String),
    /// A file, or what else was named to work on, isn't as it should be.
    Input(String),
    /// Something can't be measured.
    Measure(measure::Error),
    /// A recording can't be read.
    Recording {
        /// Path of the recording.
        path: PathBuf,
        /// Why it can't be read.
        source: ReadError,
    },
    /// A file of stacks can't be read.
    Stacks {
        /// Path of the file.
        path: PathBuf,
        /// Why it can't be read.
        source: Fault,
    },
    /// A file of stacks has no such numbers as were asked for.
    Export(WriteError),
    /// Something can't be written.
    Write {
        /// Path of the file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// A recording can't be written to its end.
    CutRecording {
        /// Path of the recording.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
        /// Readings that were written.
        readings: u64,
        /// The command that was measured, and was ended for it.
        command: Option<OsString>,
    },
    /// The terminal can't be drawn on.
    Terminal(io::Error),
    /// The theme can't be used, for this reason.
    Theme(String),
    /// The configuration that the user named can't be read.
    Config(std::path::PathBuf, std::io::Error),
    /// No event matches.
    NoMatch {
        /// The patterns that match nothing.
        patterns: Vec<String>,
        /// What there is that looks like it.
        similar: Vec<String>,
        /// Why tracepoints were not among those that were compared.
        unread: Option<TracefsError>,
    },
    /// Whoever read what was measured has left.
    Unread,
    /// The operating system can't do something as usual as starting a thread.
    System(io::Error),
    /// It can't be done for a reason that isn't the command line's.
    Impossible(String),
}

impl Error {
    /// Prints the error of a command line, `words`, and gives the code to exit with. `instead` says what to do without
    /// counters.
    pub(super) fn report(
        &self,
        words: &[OsString],
        program: &clap::Command,
        instead: impl FnOnce() -> Option<String>,
    ) -> ExitCode {
        if self.is_closed_pipe() {
            // Whoever read the output has had enough of it, as `head` does.
            return ExitCode::SUCCESS;
        }
        if matches!(self, Self::Unread) {
            return ExitCode::from(self.exit_code());
        }
        let help = match self {
            Self::Usage(_) | Self::Measure(measure::Error::Options(_)) => Some(more(words, program)),
            error if error.lacks_counters() => instead(),
            _ => None,
        };
        let help = help.map_or_else(String::new, |line| format!("\n      {line}"));
        // Nothing can report that standard error is closed.
        let _ = writeln!(io::stderr(), "{}", message(&format!("{self}{help}")));
        ExitCode::from(self.exit_code())
    }

    /// Whether this machine has no counters for what was asked for.
    fn lacks_counters(&self) -> bool {
        match self {
            Self::Measure(measure::Error::NoCounters { has_pmu, .. }) => !has_pmu,
            Self::Measure(measure::Error::Sampling { error: StackError::NoEvent(events), .. }) => {
                let is_absent = |event: &Unsampled| event.source.kind() != io::ErrorKind::PermissionDenied;
                events.iter().all(is_absent) && Host::here().cores().next().is_none()
            }
            _ => false,
        }
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Input(_) | Self::Theme(_) | Self::Config(..) => USAGE,
            Self::Measure(error) => code_of_measuring(error),
            Self::Recording { .. } | Self::Stacks { .. } | Self::Export(_) | Self::NoMatch { .. } => 1,
            Self::Write { .. }
            | Self::CutRecording { .. }
            | Self::Terminal(_)
            | Self::System(_)
            | Self::Impossible(_) => MEASURING,
            // As of a program that writes into a pipe that nobody reads.
            Self::Unread => code_of(SIGPIPE),
        }
    }
}

fn code_of_measuring(error: &measure::Error) -> u8 {
    use measure::Error;
    match error {
        Error::Options(_)
        | Error::Learnt(_)
        | Error::Events(_)
        | Error::Tables(_)
        | Error::Metrics(_)
        | Error::Relations(_)
        | Error::RelationFile(_) => USAGE,
        Error::Command { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
        Error::Command { .. } => NOT_EXECUTABLE,
        Error::Stopped(signal) | Error::Open(OpenError::Stopped(signal)) => code_of(*signal),
        Error::NotPermitted { .. }
        | Error::NoCounters { .. }
        | Error::WholeCpus { .. }
        | Error::NoValgrind
        | Error::NotModelled(_)
        | Error::Open(_)
        | Error::Sampling { .. }
        | Error::Unschedulable { .. }
        | Error::Mux(_)
        | Error::System(_) => MEASURING,
    }
}

/// The code of a program that a signal ended.
pub(super) fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// clap's own texts: help and versions are no errors and go to standard output. `words` is the command line of the
/// program.
pub(super) fn usage(mut error: clap::Error, words: &[OsString], program: &clap::Command) -> ExitCode {
    suggest_visible_verbs(&mut error, words, program);
    // clap takes a number below zero for an option, and would have it given to the command.
    if matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(word)) if is_negative(word)) {
        error.remove(ContextKind::Suggested);
    }
    let error = &error;
    match perfs_way(error, words)
        .or_else(|| not_utf8(error, words, program))
        .or_else(|| in_our_form(error, words, program))
    {
        Some(text) => drop(writeln!(io::stderr(), "{text}")),
        None => {
            let shown = if error.kind() == ErrorKind::DisplayHelp { help(error, words) } else { print(error) };
            // Nothing can report that standard error is closed.
            if let (false, Err(source)) = (error.use_stderr(), shown) {
                return Error::Write { path: "standard output".into(), source }.report(words, program, || None);
            }
        }
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

/// clap's error as all others are: the program, what is wrong, and what helps in lines below. `None` of a help text.
fn in_our_form(error: &clap::Error, words: &[OsString], program: &clap::Command) -> Option<String> {
    let text = error.render().to_string();
    let mut lines = text.strip_prefix("error: ")?.lines().filter(|line| !line.trim().is_empty());
    // clap repeats words as they are.
    let mut shown_text = shown(lines.next()?).into_owned();
    for line in lines.filter(|line| !line.starts_with("For more information")) {
        shown_text.push_str(&format!("\n      {}", shown(line.trim())));
    }
    Some(named([format!("{shown_text}\n      {}", more(words, program))]))
}

/// Where the options of the verb of a command line are explained.
fn more(words: &[OsString], program: &clap::Command) -> String {
    let mut program = program;
    let mut verbs = String::new();
    for word in words.iter().skip(1).filter(|word| !word.as_encoded_bytes().starts_with(b"-")) {
        let Some(verb) = program.find_subcommand(word) else { break };
        verbs.push_str(&format!("{} ", verb.get_name()));
        program = verb;
    }
    format!("more: perfprop {verbs}--help")
}

fn is_negative(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Which word or variable isn't text, where one should be.
fn not_utf8(error: &clap::Error, words: &[OsString], program: &clap::Command) -> Option<String> {
    if error.kind() != ErrorKind::InvalidUtf8 {
        return None;
    }
    let mut own = words.iter().take_while(|word| *word != "--");
    let what = match own.find(|word| word.to_str().is_none()) {
        Some(word) => escaped(word),
        None => format!("the variable {}", odd_variable(program)?),
    };
    Some(named([format!("{what} is not UTF-8\n      {}", more(words, program))]))
}

/// A word that isn't text, with its bytes.
pub(super) fn escaped(word: &OsStr) -> String {
    format!("'{}'", word.as_encoded_bytes().escape_ascii())
}

/// A variable that an option is taken from, and that isn't text.
fn odd_variable(program: &clap::Command) -> Option<String> {
    let options = program.get_subcommands().flat_map(clap::Command::get_arguments);
    let mut names = options.filter_map(|option| option.get_env()?.to_str());
    let is_odd = |name: &&str| env::var_os(name).is_some_and(|value| value.to_str().is_none());
    names.find(is_odd).map(str::to_owned)
}

/// Suggests none of the verbs that help doesn't show, and those that clap doesn't find near: `top` for `tpo`.
fn suggest_visible_verbs(error: &mut clap::Error, words: &[OsString], program: &clap::Command) {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return };
    // Below a verb, such as `history`, the words are others.
    let first = words.iter().skip(1).find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let is_verb = first.is_some_and(|word| word == wrong.as_str());
    let visible = program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(clap::Command::get_name);
    let near: Vec<String> = nearest(wrong, visible.filter(|_| is_verb)).into_iter().map(str::to_owned).collect();
    let mut verbs = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(verbs)) => verbs,
        _ => near,
    };
    verbs.retain(|verb| program.find_subcommand(verb).is_none_or(|found| !found.is_hide_set()));
    if !verbs.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(verbs));
    }
}

fn print(error: &clap::Error) -> io::Result<()> {
    error.print().and_then(|()| io::stdout().flush())
}

/// Shows a help text, in a pager where people look.
fn help(error: &clap::Error, words: &[OsString]) -> io::Result<()> {
    let paging = if words.iter().any(|word| word == "--no-pager") { Paging::Never } else { Paging::WherePeopleLook };
    match Pager::start(paging) {
        Some(mut pager) => {
            // Whoever ends the pager has read enough.
            let _ = write!(pager, "{}", error.render().ansi());
            Ok(())
        }
        None => print(error),
    }
}

/// What to do instead, for a word of perf's that isn't there.
fn perfs_way(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word),
        _ => None,
    };
    let (word, instead) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let (verb, option) = (words.get(1)?.to_str()?, context(ContextKind::InvalidArg)?);
            if verb == "bench" {
                return hyperfines_way(option, words);
            }
            (option, perf_compat::instead(verb, option)?)
        }
        ErrorKind::InvalidSubcommand => {
            let verb = context(ContextKind::InvalidSubcommand)?;
            (verb, perf_compat::instead_of_verb(verb)?)
        }
        _ => return None,
    };
    Some(named([format!("there is no {}\n      {instead}", shown(word))]))
}

/// What to do instead, for an option of hyperfine's, or a command that stands as hyperfine takes it.
fn hyperfines_way(option: &str, words: &[OsString]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let own = words.iter().position(|word| *word == "--").map_or(&words[..], |end| &words[..end]);
    let is_scan = |pair: &[Cow<'_, str>]| pair[0] == "-P" && !pair[1].contains('=');
    let of_hyperfine = if own.windows(2).any(is_scan) { "--parameter-scan" } else { option };
    if let Some(instead) = perf_compat::instead("bench", of_hyperfine) {
        return Some(named([format!("there is no {}\n      {instead}", shown(of_hyperfine))]));
    }
    // Options and their values stand before the commands.
    let lines = words.iter().skip_while(|word| *word != option).take_while(|word| !word.starts_with('-'));
    let lines: Vec<String> = lines.map(|word| word.clone().into_owned()).collect();
    let are_commands = !lines.is_empty() && lines.iter().all(|line| line.contains(char::is_whitespace));
    are_commands.then(|| named([perf_compat::bench_of_lines(&lines)]))
}

impl Coded for Error {
    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Measure(error) => error.code(),
            _ => None,
        }
    }

    fn problems(&self) -> Vec<String> {
        match self {
            Self::Measure(error) => no_verb(error).map_or_else(|| error.problems(), |text| vec![text]),
            error => vec![Sentence(error).to_string()],
        }
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.printed())
    }
}

/// What is wrong, without the program's name.
struct Sentence<'a>(&'a Error);

impl Display for Sentence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Error::Measure(error) => error.fmt(f),
            Error::Recording { path, source } => recording(f, path, source),
            Error::Stacks { path, source } => stacks(f, path, source),
            Error::Export(error) => write!(f, "{}", shown(&error.to_string())),
            Error::Unread => f.write_str("nobody reads what is measured any more"),
            Error::Write { path, source } => writing(f, path, source),
            Error::CutRecording { path, source, readings, command } => {
                cut_recording(f, (path, *readings), source, command.as_deref())
            }
            Error::Terminal(source) => {
                write!(f, "the terminal can't be used: {source}\n      as text: --batch")
            }
            Error::Usage(text) | Error::Input(text) | Error::Theme(text) | Error::Impossible(text) => {
                write!(f, "{text}")
            }
            Error::Config(path, error) => {
                write!(f, "configuration {}: {error}", shown_path(path))
            }
            Error::NoMatch { patterns, similar, unread } => no_match(f, patterns, similar, unread.as_ref()),
            Error::System(source) => measure::system(f, source),
        }
    }
}

/// A recording that can't be read, and how the lines before the wrong one are.
fn recording(f: &mut fmt::Formatter<'_>, path: &Path, source: &ReadError) -> fmt::Result {
    write!(f, "{}: {source}", shown_path(path))?;
    let is_text = !is_dash(path) && path.extension().is_none_or(|ending| ending != "gz");
    match source {
        ReadError::Line { line, .. } if *line > 2 && is_text => write!(
            f,
            "\n      what stands before it:  head -n {} {} | perfprop replay -",
            line - 1,
            for_shell(&path.to_string_lossy())
        ),
        _ => Ok(()),
    }
}

/// A file of stacks that can't be read.
fn stacks(f: &mut fmt::Formatter<'_>, path: &Path, source: &Fault) -> fmt::Result {
    write!(f, "{}: {source}", shown_path(path))?;
    match source.what {
        FaultKind::Unknown(None) => write!(f, "\n      say what it is with --from, or check the file"),
        _ => Ok(()),
    }
}

/// A file that can't be written, and what makes its folder where that is why.
fn writing(f: &mut fmt::Formatter<'_>, path: &Path, source: &io::Error) -> fmt::Result {
    write!(f, "cannot write {}: {source}", shown_path(path))?;
    let Some(folder) = path.parent() else { return Ok(()) };
    let is_here = folder.as_os_str().is_empty();
    if !is_here && !folder.exists() {
        let folder = for_shell(&folder.to_string_lossy());
        return write!(f, "\n      there is no folder of that name; make it:  mkdir -p {folder}");
    }
    match source.kind() {
        io::ErrorKind::NotFound if is_here => {
            write!(f, "\n      the folder that this shell is in has been removed: go to another, or give a whole path")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if !path.exists() => {
            let (folder, uid) = (if is_here { "this folder".into() } else { shown_path(folder) }, geteuid());
            write!(f, "\n      uid {uid} can make no file in {folder}; give one elsewhere:  -o FILE")
        }
        _ => Ok(()),
    }
}

/// A recording that can't be written on, and how many readings it has.
fn cut_recording(
    f: &mut fmt::Formatter<'_>,
    (path, readings): (&Path, u64),
    source: &io::Error,
    command: Option<&OsStr>,
) -> fmt::Result {
    let path = shown_path(path);
    write!(f, "cannot write {path}: {source}")?;
    if let Some(command) = command {
        let command = command.to_string_lossy();
        write!(f, "\n      {} had been started, and perfprop ended it", shown(&command))?;
    }
    match readings {
        0 => write!(f, "\n      nothing of the run is saved; give another file with -o"),
        1 => write!(f, "\n      1 reading is saved:  perfprop replay {path}"),
        _ => write!(f, "\n      {readings} readings are saved:  perfprop replay {path}"),
    }
}

/// Patterns that match no event, and similar names.
fn no_match(
    f: &mut fmt::Formatter<'_>,
    patterns: &[String],
    similar: &[String],
    unread: Option<&TracefsError>,
) -> fmt::Result {
    let named = patterns.iter().map(|pattern| quoted(pattern)).collect::<Vec<_>>().join(" or ");
    match patterns.iter().any(|pattern| pattern.contains(['*', '?', '['])) {
        true => write!(f, "no event matches {named}")?,
        false => write!(f, "no event has {named} in its name")?,
    }
    if let Some(unread) = unread {
        write!(f, "\n      tracepoints aren't listed: {unread}")?;
    }
    match similar.is_empty() {
        true if unread.is_some() => Ok(()),
        true => write!(f, "; all names:  perfprop list --all"),
        false => write!(f, "\n      similar: {}", shown(&similar.join(", "))),
    }
}

impl std::error::Error for Error {}

impl From<measure::Error> for Error {
    fn from(error: measure::Error) -> Self {
        Self::Measure(error)
    }
}

#[cfg(feature = "bench")]
impl From<SweepError> for Error {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Measure(error) => Self::Measure(error),
            SweepError::Write(path, source) => Self::Write { path, source },
            SweepError::System(source) => Self::System(source),
            SweepError::NotResumed(error) => Self::Input(error.to_string()),
            error @ (SweepError::Failed { .. }
            | SweepError::TimedOut { .. }
            | SweepError::NotCounted(_)
            | SweepError::Hook(_)) => Self::Impossible(error.to_string()),
        }
    }
}

/// What to say of a verb of perf's that isn't there, which looks like a command that isn't.
fn no_verb(error: &measure::Error) -> Option<String> {
    match error {
        measure::Error::Command { command, source, similar: _ } if source.kind() == io::ErrorKind::NotFound => {
            let instead = perf_compat::instead_below_stat(command)?;
            let command = command.to_string_lossy();
            Some(format!(
                "{}: command not found (nothing was measured)\n      perfprop has no stat {command}: {instead}",
                shown(&command)
            ))
        }
        _ => None,
    }
}
