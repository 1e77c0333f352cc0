//! Defines the errors of measuring: the text for people of each.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read as _};
use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::command::missing_interpreter;
use super::denied;
use crate::codes::{Coded, ErrorCode};
use crate::events::{EventError, TableError};
use crate::files::{self, ExpectedFile};
use crate::host::HostFiles;
use crate::machine::Denial;
use crate::metrics::Unknown;
use crate::names::shown;
use crate::number::counted;
use crate::plan::Unschedulable;
use crate::relations::{Diagnostics, LoadError};
use crate::sources::perf::OpenError;
use crate::sources::perf::mux::MuxError;
use crate::sources::process;
#[cfg(feature = "stacks")]
use crate::stacks::live::StackError;

/// Why something can't be measured.
#[derive(Debug)]
pub enum Error {
    /// The options don't go together, or not with the target.
    Options(String),
    /// A model that was learnt of a program can't be used.
    Learnt(String),
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
    /// The model lacks events that were asked for: the name of each, and why.
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
    Unschedulable {
        /// The group.
        group: Unschedulable,
        /// Whether the NMI watchdog holds one of them, which a trial doesn't see.
        has_watchdog: bool,
    },
    /// Counters can't be opened.
    Open(OpenError),
    /// Call stacks can't be sampled.
    #[cfg(feature = "stacks")]
    Sampling {
        /// What is in the way.
        error: StackError,
        /// The layer that forbids it, and whether a command that perfprop starts could be sampled.
        denied: Option<(Denial, bool)>,
    },
    /// The kernel's rotation interval can't be changed.
    Mux(MuxError),
    /// This signal came before anything was started.
    Stopped(i32),
    /// The operating system can't do something as usual as starting a thread.
    System(io::Error),
}

impl Coded for Error {
    fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Events(error) => error.code(),
            Self::Metrics(error) => error.code(),
            Self::Relations(_) => Some(ErrorCode::E07),
            Self::RelationFile(error) => error.code(),
            Self::NotPermitted { .. } => Some(ErrorCode::E01),
            Self::NoCounters { .. } | Self::WholeCpus { .. } | Self::NotModelled(_) => Some(ErrorCode::E02),
            Self::Unschedulable { .. } => Some(ErrorCode::E04),
            Self::Command { .. } => Some(ErrorCode::E06),
            Self::NoValgrind => Some(ErrorCode::E15),
            Self::Mux(_) => Some(ErrorCode::E16),
            Self::Open(error) => code_of_opening(error),
            #[cfg(feature = "stacks")]
            Self::Sampling { error, .. } => super::sampling::code(error),
            Self::Options(_) | Self::Learnt(_) | Self::Tables(_) | Self::Stopped(_) | Self::System(_) => None,
        }
    }

    fn problems(&self) -> Vec<String> {
        match self {
            Self::Events(error) => error.problems(),
            Self::Metrics(error) => error.problems(),
            Self::Relations(files) => files.iter().flat_map(Diagnostics::problems).collect(),
            error => vec![error.to_string()],
        }
    }
}

fn code_of_opening(error: &OpenError) -> Option<ErrorCode> {
    match error {
        OpenError::NoProcess(pid) | OpenError::NoThread(pid) if process::is_out_of_sight(*pid) => Some(ErrorCode::E12),
        OpenError::NoProcess(_) | OpenError::NoThread(_) => Some(ErrorCode::E11),
        OpenError::NotYours(_) => Some(ErrorCode::E12),
        OpenError::TooManyFiles { .. } => Some(ErrorCode::E05),
        OpenError::Group { .. } | OpenError::Torn { .. } => Some(ErrorCode::E04),
        OpenError::NoCpu(_) | OpenError::System(_) | OpenError::Stopped(_) | OpenError::Event { .. } => None,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(text) | Self::Learnt(text) => f.write_str(text),
            Self::Events(_) | Self::Metrics(_) | Self::Relations(_) => f.write_str(&self.problems().join("\n")),
            Self::Tables(error) => error.fmt(f),
            Self::RelationFile(error) => error.fmt(f),
            Self::NotPermitted { events, denial, works_alone } => {
                denied::not_permitted(f, events, *denial, *works_alone)
            }
            Self::NoCounters { events, has_pmu, guest } => no_counters(f, events, *has_pmu, guest.as_deref()),
            Self::WholeCpus { events, cpus } => write!(
                f,
                "counted for whole CPUs, on CPU {cpus}, and not for a program or other CPUs: {}\n      \
                 all that is counted there:  -a, without -C",
                shown(&events.join(", "))
            ),
            Self::NoValgrind => write!(
                f,
                "--source emulate needs valgrind, which is not in PATH (nothing was started)\n      \
                 install it:  apt install valgrind   or: dnf install valgrind   or: pacman -S valgrind",
            ),
            Self::NotModelled(reasons) => write!(
                f,
                "the emulated PMU lacks events that were asked for\n      {}\n      what it counts:  perfprop list --source emulate",
                shown(&reasons.join("; "))
            ),
            Self::Command { command, source, similar } => no_command(f, command, source, similar.as_deref()),
            Self::Open(error) => not_opened(f, error),
            #[cfg(feature = "stacks")]
            Self::Sampling { error, denied } => super::sampling::explain(f, error, *denied),
            Self::Unschedulable { group, has_watchdog } => unschedulable(f, group, *has_watchdog),
            Self::Mux(error) => super::rotation::explain(f, error),
            Self::Stopped(signal) => stopped(f, *signal),
            Self::System(source) => system(f, source),
        }
    }
}

impl std::error::Error for Error {}

/// An error of the operating system, with what helps where descriptors or processes ran out, or a sandbox refuses what
/// every program may do.
pub fn system(f: &mut fmt::Formatter<'_>, source: &io::Error) -> fmt::Result {
    match source.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE) => write!(f, "{source}\n      raise the limit in this shell:  ulimit -n 1024"),
        Some(Errno::EAGAIN) => write!(
            f,
            "no thread or process can be started: {source} (EAGAIN)\n      \
             this user or container has as many as it may have; what sets that:  ulimit -u   and pids.max of the control \
             group (docker run --pids-limit)"
        ),
        Some(Errno::EPERM) => write!(
            f,
            "a sandbox refuses to start a thread or a process: {source} (EPERM)\n      \
             old container runtimes refuse the system call clone3; start the container with  \
             --security-opt seccomp=unconfined"
        ),
        _ => write!(f, "{source}"),
    }
}

fn stopped(f: &mut fmt::Formatter<'_>, signal: i32) -> fmt::Result {
    let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
    write!(f, "{name} ({signal}) came while counters were opened: nothing was started")
}

fn no_counters(f: &mut fmt::Formatter<'_>, events: &[String], has_pmu: bool, guest: Option<&str>) -> fmt::Result {
    let names = shown(&events.join(",")).into_owned();
    if has_pmu {
        writeln!(f, "this machine's PMU counts none of {names} (ENOENT)")?;
        return write!(f, "      what it counts:  perfprop list   try: perfprop check -e {names}");
    }
    let (guest, remedy) = match guest {
        Some(guest) => (format!("a {}, ", shown(guest)), "Enable the virtual PMU on the host, or use"),
        None => (String::new(), "Use"),
    };
    writeln!(
        f,
        "this machine exposes no hardware counters for {names} ({guest}no core PMU in /sys/bus/event_source/devices; ENOENT)"
    )?;
    write!(f, "      root does not help. {remedy} software events:  -e task-clock,page-faults   try: perfprop check")
}

fn no_command(
    f: &mut fmt::Formatter<'_>,
    command: &OsString,
    source: &io::Error,
    similar: Option<&str>,
) -> fmt::Result {
    let reason = match source.kind() {
        io::ErrorKind::NotFound => match missing_interpreter(command) {
            Some(interpreter) => format!("its interpreter {} is missing", shown(&interpreter)),
            None => "command not found".into(),
        },
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => source.to_string(),
    };
    let name = command.to_string_lossy();
    // An empty name is nothing to see.
    let name = if name.is_empty() { "''".into() } else { shown(&name) };
    write!(f, "{name}: {reason} (nothing was measured)")?;
    match similar {
        Some(similar) => write!(f, "\n      did you mean {}?", shown(similar)),
        None if source.kind() == io::ErrorKind::PermissionDenied && is_program(Path::new(command)) => {
            write!(f, "\n      make it executable:  chmod +x {}", shown(&command.to_string_lossy()))
        }
        None => Ok(()),
    }
}

/// Whether a file begins as a program or a script does.
fn is_program(path: &Path) -> bool {
    let mut begin = [0; 4];
    let is_read =
        files::open(path, &ExpectedFile::any(u64::MAX)).is_ok_and(|mut file| file.read_exact(&mut begin).is_ok());
    is_read && (begin == *b"\x7fELF" || begin.starts_with(b"#!"))
}

fn unschedulable(f: &mut fmt::Formatter<'_>, group: &Unschedulable, has_watchdog: bool) -> fmt::Result {
    let Unschedulable { names, fit } = group;
    let needed = names.len();
    let holds = if has_watchdog { ", the NMI watchdog holds 1" } else { "" };
    let all = shown(&names.join(",")).into_owned();
    writeln!(
        f,
        "group {{{all}}} cannot be scheduled: of its {needed} events {fit} fit on the counters at once{holds}"
    )?;
    let too_many = needed - fit;
    write!(f, "      each event opens alone. Remove {too_many}, or drop the braces to let them take turns")?;
    if has_watchdog { write!(f, ", or: sudo sysctl kernel.nmi_watchdog=0") } else { Ok(()) }
}

/// Room for what perfprop opens beside counters: pipes, ring buffers, files. A few dozen at most.
const OWN_DESCRIPTORS: usize = 64;

/// What is said of a process that is there by its number only.
fn has_ended(f: &mut fmt::Formatter<'_>, pid: Pid) -> fmt::Result {
    let parent = process::unwaited_parent(pid).unwrap_or(Pid::from_raw(0));
    let name = process::name(parent).unwrap_or_default();
    write!(
        f,
        "pid {pid} has ended; its parent, {} ({parent}), has not waited for it yet\n      \
         to measure it the next time:  -- ./prog in place of -p {pid}",
        shown(&name)
    )
}

fn not_opened(f: &mut fmt::Formatter<'_>, error: &OpenError) -> fmt::Result {
    match error {
        OpenError::NoProcess(pid) if process::unwaited_parent(*pid).is_some() => has_ended(f, *pid),
        OpenError::NoProcess(pid) | OpenError::NoThread(pid) | OpenError::NotYours(pid)
            if process::is_out_of_sight(*pid) =>
        {
            out_of_sight(f, *pid)
        }
        OpenError::NoProcess(pid) => write!(
            f,
            "pid {pid} does not exist (ESRCH)\n      \
             find it by its name:  pgrep -a NAME\n      \
             or start it to measure it:  -- ./prog in place of -p {pid}"
        ),
        OpenError::NoThread(tid) => write!(
            f,
            "thread {tid} does not exist (ESRCH)\n      \
             those of a process:  ls /proc/PID/task\n      \
             or start a program to measure it:  -- ./prog in place of -t {tid}"
        ),
        OpenError::NotYours(pid) => not_yours(f, *pid),
        OpenError::NoCpu(cpu) => {
            let online = HostFiles::here().text("sys/devices/system/cpu/online").unwrap_or_default();
            write!(f, "no CPU {cpu} is online\n      those that are: {}", shown(online.trim()))
        }
        OpenError::System(source) => system(f, source),
        OpenError::Stopped(signal) => stopped(f, *signal),
        OpenError::TooManyFiles { events, places, needed, limit } => {
            too_many_files(f, *events, *places, (*needed, *limit))
        }
        OpenError::Group { names, member, source } => {
            let (names, member) = (names.join(","), shown(member).into_owned());
            writeln!(
                f,
                "group {{{}}} cannot be counted together: {member} does not join it ({source})",
                shown(&names)
            )?;
            write!(f, "      drop the braces to let its events take turns")
        }
        OpenError::Torn { names, member, reason } => {
            let (names, member) = (names.join(","), shown(member).into_owned());
            let reason = shown(reason);
            writeln!(f, "group {{{}}} cannot be counted as a whole: {member}: {reason}", shown(&names))?;
            write!(f, "      leave {member} out, or drop the braces to count the others")
        }
        OpenError::Event { name, source } => write!(f, "cannot count {}: {source}", shown(name)),
    }
}

/// A process that isn't in /proc, and can't be measured by what is there.
fn out_of_sight(f: &mut fmt::Formatter<'_>, pid: Pid) -> fmt::Result {
    write!(
        f,
        "{pid} is another user's, which /proc doesn't show here (hidepid)\n      \
         run as that user, or:  sudo {} ... -p {pid}",
        HostFiles::here().own_program()
    )
}

fn not_yours(f: &mut fmt::Formatter<'_>, pid: Pid) -> fmt::Result {
    let name = process::name(pid).unwrap_or_default();
    let owner = process::owner(pid).unwrap_or_default();
    let uid = nix::unistd::geteuid();
    let name = shown(&name);
    writeln!(f, "not allowed to measure pid {pid} ({name}, owner uid {owner}) as uid {uid} (EACCES)")?;
    write!(
        f,
        "      run as that user, or:  sudo {} ... -p {pid}   lowering perf_event_paranoid will not help: it is not your process",
        HostFiles::here().own_program()
    )
}

fn too_many_files(
    f: &mut fmt::Formatter<'_>,
    events: usize,
    places: usize,
    (needed, limit): (usize, u64),
) -> fmt::Result {
    let narrow = if places > 1 { "Narrow with -C or -t" } else { "Count fewer events" };
    let places = counted(places, "place");
    writeln!(
        f,
        "too many open files: {events} events in {places} need {needed} descriptors beside perfprop's own, limit is {limit} (EMFILE)"
    )?;
    // A user can't raise a hard limit; in a shell of root's, `ulimit -n` would do.
    let enough = needed + OWN_DESCRIPTORS;
    write!(f, "      already raised to the hard limit. {narrow}, or: sudo prlimit --pid $$ --nofile={enough}:{enough}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn the_watchdog_is_named_where_it_holds_a_counter() {
        let text = |has_watchdog| {
            let names = ["a", "b", "c"].map(str::to_owned).into();
            Error::Unschedulable { group: Unschedulable { names, fit: 2 }, has_watchdog }.to_string()
        };
        assert!(text(true).contains("the NMI watchdog holds 1") && text(true).contains("nmi_watchdog=0"));
        assert!(!text(false).contains("watchdog") && text(false).contains("Remove 1"), "{}", text(false));
    }

    #[test]
    fn what_the_system_refuses_is_said_with_what_helps() {
        let text = |errno: Errno| Error::System(errno.into()).to_string();
        assert!(text(Errno::EMFILE).contains("ulimit -n 1024"));
        let words = ["no thread or process can be started", "ulimit -u", "pids.max"];
        assert!(words.iter().all(|words| text(Errno::EAGAIN).contains(words)));
        assert!(text(Errno::EPERM).contains("clone3") && text(Errno::EPERM).contains("seccomp=unconfined"));
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed());
        while process::is_alive(pid) {
            std::thread::yield_now();
        }
        let error = Error::Open(OpenError::NoProcess(pid));
        let told = || error.to_string();
        assert_eq!(error.code(), Some(ErrorCode::E11));
        let own = std::process::id();
        let text = told();
        child.wait().unwrap();
        assert!(text.starts_with(&format!("pid {pid} has ended; its parent, ")), "{text}");
        assert!(text.contains(&format!("({own}), has not waited for it yet")), "{text}");
        assert!(told().contains("does not exist"));
    }
}
