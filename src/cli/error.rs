//! Defines the program's errors: the text for people and the exit code of each.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use nix::sys::signal::Signal;

use super::habits;
use super::pump::code_of;
use crate::events::{EventError, TableError};
use crate::machine::Denial;
use crate::metrics::Unknown;
use crate::names::{is_hidden, shown};
use crate::plan::Unschedulable;
use crate::recording::ReadError;
use crate::relations::{Diagnostics, LoadError};
use crate::sources::perf::OpenError;
use crate::sources::perf::mux::MuxError;
use crate::sources::process;
use crate::stack_formats::{Fault, FaultKind, WriteError};
use crate::stacks::live::StackError;

/// Wrong usage, an unknown event, a bad file: nothing was started.
const USAGE: u8 = 2;
/// Measuring is impossible, or what was measured could not be kept.
const MEASURING: u8 = 125;
/// The command was found and can't be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
const NOT_FOUND: u8 = 127;

/// Why a verb could not do what it should.
#[derive(Debug)]
pub enum Error {
    /// The options don't go together.
    Usage(String),
    /// Names after `-e` are wrong.
    Events(EventError),
    /// Metrics after `-M` are wrong, or can't be measured here.
    Metrics(Unknown),
    /// A folder of event tables can't be used.
    Tables(TableError),
    /// Relation files are wrong.
    Relations(Vec<Diagnostics>),
    /// A relation file can't be read.
    RelationFile(LoadError),
    /// This user may not count what was asked for.
    NotPermitted {
        /// Names of the events.
        events: Vec<String>,
        /// The layer that refuses them.
        denial: Denial,
        /// Whether they could be counted of a command that perfprop starts.
        works_alone: bool,
    },
    /// The machine counts nothing of what was asked for.
    NoCounters {
        /// Names of the events.
        events: Vec<String>,
        /// Whether there is a PMU of the processor at all.
        has_pmu: bool,
        /// What this machine is, if it is a virtual one.
        guest: Option<String>,
    },
    /// The events' PMUs count for whole CPUs, and these weren't to be measured.
    WholeCpus {
        /// Names of the events.
        events: Vec<String>,
        /// The CPUs that the first of them is opened on.
        cpus: String,
    },
    /// The model needs valgrind, and it isn't installed.
    NoValgrind,
    /// The model counts nothing of what was asked for, and why.
    NotModelled(Vec<String>),
    /// The command can't be executed.
    Command {
        /// The command as the user gave it.
        command: OsString,
        /// The error of exec.
        source: io::Error,
        /// A file that could have been meant.
        similar: Option<String>,
    },
    /// A group in braces doesn't fit on the counters.
    Unschedulable(Unschedulable),
    /// Counters can't be opened.
    Open(OpenError),
    /// Call stacks can't be sampled.
    Sampling(StackError),
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
    },
    /// The kernel's rotation interval can't be changed.
    Mux(MuxError),
    /// This signal came before anything was started.
    Stopped(i32),
    /// The operating system can't do something as usual as starting a thread.
    System(io::Error),
}

impl Error {
    /// Prints the error, and gives the code to exit with.
    pub(super) fn report(&self) -> ExitCode {
        if self.is_closed_pipe() {
            // Whoever read the output has had enough of it, as `head` does.
            return ExitCode::SUCCESS;
        }
        // Nothing can report that standard error is closed.
        let _ = writeln!(io::stderr(), "{self}");
        ExitCode::from(self.code())
    }

    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Write { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }

    fn code(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Events(_)
            | Self::Tables(_)
            | Self::Metrics(_)
            | Self::Relations(_)
            | Self::RelationFile(_)
            | Self::Theme(_)
            | Self::Config(..) => USAGE,
            Self::Command { source, .. } if source.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            Self::Command { .. } => NOT_EXECUTABLE,
            Self::Stopped(signal) | Self::Open(OpenError::Stopped(signal)) => code_of(*signal),
            Self::Recording { .. } | Self::Stacks { .. } | Self::Export(_) | Self::NoMatch { .. } => 1,
            Self::NotPermitted { .. }
            | Self::NoCounters { .. }
            | Self::WholeCpus { .. }
            | Self::NoValgrind
            | Self::NotModelled(_)
            | Self::Open(_)
            | Self::Sampling(_)
            | Self::Unschedulable(_)
            | Self::Write { .. }
            | Self::Terminal(_)
            | Self::Mux(_)
            | Self::System(_) => MEASURING,
        }
    }
}

/// clap's own texts: help and versions are no errors and go to standard output. `words` is the command line.
pub(super) fn usage(error: &clap::Error, words: &[OsString]) -> ExitCode {
    match perfs_way(error, words) {
        Some(text) => drop(writeln!(io::stderr(), "{text}")),
        // clap repeats words as they are.
        None if words.iter().any(|word| word.to_string_lossy().contains(is_hidden)) => {
            let text = error.render().to_string();
            text.lines().for_each(|line| drop(writeln!(io::stderr(), "{}", shown(line))));
        }
        None => drop(error.print()),
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

/// What to do instead, for a word of perf's that isn't there.
fn perfs_way(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let context = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word),
        _ => None,
    };
    let (word, instead) = match error.kind() {
        ErrorKind::UnknownArgument => {
            let option = context(ContextKind::InvalidArg)?;
            (option, habits::instead(words.get(1)?.to_str()?, option)?)
        }
        ErrorKind::InvalidSubcommand => {
            let verb = context(ContextKind::InvalidSubcommand)?;
            (verb, habits::instead_of_verb(verb)?)
        }
        _ => return None,
    };
    Some(format!("perfprop: perf's {} isn't there\n      {instead}", shown(word)))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => write!(f, "perfprop: {text}\n      more: perfprop --help"),
            Self::Events(error) => error.fmt(f),
            Self::Tables(error) => error.fmt(f),
            Self::Metrics(error) => error.fmt(f),
            Self::Relations(files) => {
                let texts: Vec<_> = files.iter().map(|diagnostics| diagnostics.to_string()).collect();
                f.write_str(texts.join("\n").trim_end())
            }
            Self::RelationFile(error) => error.fmt(f),
            Self::NotPermitted { events, denial, works_alone } => not_permitted(f, events, *denial, *works_alone),
            Self::NoCounters { events, has_pmu, guest } => no_counters(f, events, *has_pmu, guest.as_deref()),
            Self::WholeCpus { events, cpus } => write!(
                f,
                "E02 perfprop: counted for whole CPUs, on CPU {cpus}, and not for a program or other CPUs: {}\n      \
                 all that is counted there:  -a, without -C",
                shown(&events.join(", "))
            ),
            Self::NoValgrind => f.write_str(
                "E15 perfprop: --source emulate needs valgrind, which is not in PATH (nothing was started)\n      \
                 install it:  apt install valgrind   or: dnf install valgrind   or: pacman -S valgrind",
            ),
            Self::NotModelled(reasons) => write!(
                f,
                "E02 perfprop: the emulated PMU counts none of these events\n      {}\n      what it counts:  perfprop list --source emulate",
                shown(&reasons.join("; "))
            ),
            Self::Command { command, source, similar } => no_command(f, command, source, similar.as_deref()),
            Self::Open(error) => not_opened(f, error),
            Self::Sampling(error) => super::stacks::explain(f, error),
            Self::Unschedulable(group) => unschedulable(f, group),
            Self::Mux(error) => super::turns::explain(f, error),
            Self::Recording { path, source } => write!(f, "perfprop: {}: {source}", shown(&path.display().to_string())),
            Self::Stacks { path, source } => {
                write!(f, "perfprop: {}: {source}", shown(&path.to_string_lossy()))?;
                match source.what {
                    FaultKind::Unknown => write!(f, "\n      say what it is with --from, or check the file"),
                    _ => Ok(()),
                }
            }
            Self::Export(error) => write!(f, "perfprop: {}", shown(&error.to_string())),
            Self::Write { path, source } => {
                write!(f, "perfprop: cannot write {}: {source}", shown(&path.display().to_string()))
            }
            Self::Terminal(source) => {
                write!(f, "perfprop: the terminal can't be used: {source}\n      as text: --batch")
            }
            Self::Theme(text) => write!(f, "perfprop: {text}"),
            Self::Config(path, error) => {
                write!(f, "perfprop: configuration {}: {error}", shown(&path.to_string_lossy()))
            }
            Self::NoMatch { patterns, similar } => {
                write!(f, "perfprop: no event matches {}", shown(&patterns.join(" ")))?;
                if similar.is_empty() { Ok(()) } else { write!(f, "\n      similar: {}", shown(&similar.join(", "))) }
            }
            Self::Stopped(signal) => stopped(f, *signal),
            Self::System(source) => write!(f, "perfprop: {source}"),
        }
    }
}

impl std::error::Error for Error {}

fn stopped(f: &mut fmt::Formatter<'_>, signal: i32) -> fmt::Result {
    let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
    write!(f, "perfprop: {name} ({signal}) came while counters were opened: nothing was started")
}

/// The right that counts everything.
const SETCAP: &str = "sudo setcap cap_perfmon+ep \"$(command -v perfprop)\"";

fn not_permitted(f: &mut fmt::Formatter<'_>, events: &[String], denial: Denial, works_alone: bool) -> fmt::Result {
    let uid = nix::unistd::geteuid();
    let names = shown(&events.join(",")).into_owned();
    write!(f, "E01 perfprop: cannot count {names} as uid {uid} (")?;
    match denial {
        Denial::Level { level, allows } => {
            let level = level.map_or_else(String::new, |level| format!("perf_event_paranoid={level}, "));
            writeln!(f, "{level}EACCES)")?;
            if works_alone {
                writeln!(f, "      of a command of yours it works now:  perfprop stat -e {names} -- COMMAND")?;
            }
            write!(f, "      {SETCAP}   or: sudo sysctl kernel.perf_event_paranoid={allows}")
        }
        Denial::Capability => {
            writeln!(f, "only CAP_PERFMON allows it, EACCES)")?;
            write!(f, "      {SETCAP}   or as root; lowering perf_event_paranoid will not help")
        }
        Denial::Nobody(errno) => {
            writeln!(f, "the kernel refuses it to every user, {errno:?})")?;
            write!(f, "      what it counts instead:  perfprop list")
        }
        Denial::Seccomp(errno) => {
            writeln!(f, "a seccomp filter refuses perf_event_open, {errno:?})")?;
            write!(f, "      neither root nor perf_event_paranoid helps; start the container with\n      ")?;
            write!(f, "--cap-add PERFMON --security-opt seccomp=unconfined   try: perfprop check")
        }
        Denial::NoSystemCall => {
            writeln!(f, "this kernel has no perf_event_open, ENOSYS)")?;
            write!(
                f,
                "      it is built without CONFIG_PERF_EVENTS, or a sandbox plays the kernel   try: perfprop check"
            )
        }
        Denial::Everything(errno) => {
            writeln!(f, "perf_event_open is refused altogether, {errno:?})")?;
            write!(f, "      a security module or the container forbids even software events   try: perfprop check")
        }
        Denial::Target => {
            writeln!(f, "the target is not yours, EACCES)")?;
            write!(f, "      run as its user or root   or: {SETCAP}")
        }
    }
}

fn no_counters(f: &mut fmt::Formatter<'_>, events: &[String], has_pmu: bool, guest: Option<&str>) -> fmt::Result {
    let names = shown(&events.join(",")).into_owned();
    if has_pmu {
        writeln!(f, "E02 perfprop: this machine's PMU counts none of {names} (ENOENT)")?;
        return write!(f, "      what it counts:  perfprop list   try: perfprop check -e {names}");
    }
    let (guest, remedy) = match guest {
        Some(guest) => (format!("a {}, ", shown(guest)), "Enable the virtual PMU on the host, or use"),
        None => (String::new(), "Use"),
    };
    writeln!(
        f,
        "E02 perfprop: this machine exposes no hardware counters for {names} ({guest}no core PMU in /sys/bus/event_source/devices; ENOENT)"
    )?;
    write!(
        f,
        "      root does not help. {remedy} software events:  -e task-clock,page-faults   try: perfprop check\n      \
         cache and branch misses of a model instead:  --source emulate"
    )
}

fn no_command(
    f: &mut fmt::Formatter<'_>,
    command: &OsString,
    source: &io::Error,
    similar: Option<&str>,
) -> fmt::Result {
    let reason = match source.kind() {
        io::ErrorKind::NotFound => "command not found".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => source.to_string(),
    };
    write!(f, "E06 perfprop: {}: {reason} (nothing was measured)", shown(&command.to_string_lossy()))?;
    let not_found = source.kind() == io::ErrorKind::NotFound;
    match (habits::instead_below_stat(command).filter(|_| not_found), similar) {
        (Some(instead), _) => write!(f, "\n      perf's stat {} isn't there: {instead}", command.to_string_lossy()),
        (None, Some(similar)) => write!(f, "\n      did you mean {}?", shown(similar)),
        (None, None) if source.kind() == io::ErrorKind::PermissionDenied => {
            write!(f, "\n      make it executable:  chmod +x {}", shown(&command.to_string_lossy()))
        }
        (None, None) => Ok(()),
    }
}

fn unschedulable(f: &mut fmt::Formatter<'_>, group: &Unschedulable) -> fmt::Result {
    let Unschedulable { names, fit } = group;
    let needed = names.len();
    // The watchdog holds a counter of each CPU that a trial doesn't see.
    let watchdog = std::fs::read_to_string("/proc/sys/kernel/nmi_watchdog").is_ok_and(|text| text.trim() == "1");
    let holds = if watchdog { ", the NMI watchdog holds 1" } else { "" };
    let all = shown(&names.join(",")).into_owned();
    writeln!(
        f,
        "E04 perfprop: group {{{all}}} cannot be scheduled: of its {needed} events {fit} fit on the counters at once{holds}"
    )?;
    let too_many = needed - fit;
    write!(f, "      each event opens alone. Remove {too_many}, or drop the braces to let them take turns")?;
    if watchdog { write!(f, ", or: sudo sysctl kernel.nmi_watchdog=0") } else { Ok(()) }
}

fn not_opened(f: &mut fmt::Formatter<'_>, error: &OpenError) -> fmt::Result {
    match error {
        OpenError::NoProcess(pid) => write!(f, "E11 perfprop: pid {pid} does not exist (ESRCH)"),
        OpenError::NotYours(pid) => {
            let name = process::name(*pid).unwrap_or_default();
            let owner = process::owner(*pid).unwrap_or_default();
            let uid = nix::unistd::geteuid();
            let name = shown(&name);
            writeln!(
                f,
                "E12 perfprop: not allowed to measure pid {pid} ({name}, owner uid {owner}) as uid {uid} (EACCES)"
            )?;
            write!(
                f,
                "      run as that user, or:  sudo perfprop ... -p {pid}   lowering perf_event_paranoid will not help: it is not your process"
            )
        }
        OpenError::NoCpu(cpu) => {
            write!(f, "perfprop: no CPU {cpu} is online\n      those that are: /sys/devices/system/cpu/online")
        }
        OpenError::System(source) => write!(f, "perfprop: {source}"),
        OpenError::Stopped(signal) => stopped(f, *signal),
        OpenError::TooManyFiles { events, places, limit } => {
            let needed = events * places;
            let narrow = if *places > 1 { "Narrow with -C or -t" } else { "Count fewer events" };
            let s = if *places == 1 { "" } else { "s" };
            writeln!(
                f,
                "E05 perfprop: too many open files: {events} events in {places} place{s} need {needed} descriptors beside perfprop's own, limit is {limit} (EMFILE)"
            )?;
            // A user can't raise a hard limit; in a shell of root's, `ulimit -n` would do.
            let enough = needed + 64;
            write!(
                f,
                "      already raised to the hard limit. {narrow}, or: sudo prlimit --pid $$ --nofile={enough}:{enough}"
            )
        }
        OpenError::Group { names, member, source } => {
            let (names, member) = (names.join(","), shown(member).into_owned());
            writeln!(
                f,
                "E04 perfprop: group {{{}}} cannot be counted together: {member} does not join it ({source})",
                shown(&names)
            )?;
            write!(f, "      drop the braces to let its events take turns")
        }
        OpenError::Torn { names, member, reason } => {
            let (names, member) = (names.join(","), shown(member).into_owned());
            let reason = shown(reason);
            writeln!(f, "E04 perfprop: group {{{}}} cannot be counted as a whole: {member}: {reason}", shown(&names))?;
            write!(f, "      leave {member} out, or drop the braces to count the others")
        }
        OpenError::Event { name, source } => write!(f, "perfprop: cannot count {}: {source}", shown(name)),
    }
}
