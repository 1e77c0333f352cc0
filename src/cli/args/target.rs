//! Defines the arguments of what is measured: a command, processes, threads, CPUs or a control group.

use std::collections::HashSet;
use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use nix::unistd::Pid;

use super::{TimeUnit, duration};
use crate::cli::Error;
use crate::host::parse_cpus;
use crate::measure::check_command;
use crate::names::shown;
use crate::session::{ChildIo, CommandLine, Launch};
use crate::sources::perf::{Cgroup, Split, TargetKind};

/// Why `--region-events` needs a command, and what else can be done.
const OF_COMMANDS: &str = "--region-events is for a command that perfprop starts: perfprop stat --region-events page-faults -- COMMAND\n      \
     a program that runs already counts in its regions what it was started with, and -p shows that without the option:\n      \
     PERFPROP_REGION_EVENTS=page-faults COMMAND &   perfprop stat -p $!";

/// Whom to count.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetArgs {
    /// Running processes, with all their threads
    #[arg(short, long, value_name = "PID", value_delimiter = ',', group = "aim", value_parser = id)]
    pub(crate) pid: Vec<i32>,
    /// Single running threads
    #[arg(short, long, value_name = "TID", value_delimiter = ',', group = "aim", value_parser = id)]
    pub(crate) tid: Vec<i32>,
    /// The whole machine, all CPUs
    #[arg(short, long, conflicts_with = "aim")]
    pub(crate) all_cpus: bool,
    /// All processes of a control group
    #[arg(short = 'G', long, value_name = "CGROUP", conflicts_with = "aim")]
    pub(crate) cgroup: Option<String>,
    /// Only these CPUs, such as 0-2,5; without another target, everything on them
    #[arg(short = 'C', long, value_name = "CPUS")]
    pub(crate) cpu: Option<String>,
    /// Don't count threads and processes that start later
    #[arg(short = 'i', long)]
    pub(crate) no_inherit: bool,
    /// Show a count for each CPU
    #[arg(short = 'A', long, conflicts_with = "per_thread")]
    pub(crate) no_aggr: bool,
    /// Show a count for each thread; needs -p or -t
    #[arg(long)]
    pub(crate) per_thread: bool,
    /// Start counting this many milliseconds after the start of the command, as in perf stat
    #[arg(short = 'D', long, value_name = "MS", allow_negative_numbers = true, value_parser = delay)]
    pub(crate) delay: Option<u64>,
    /// Milliseconds, or a time with a unit, as in `10s` or `2m`: stop after counting for so long
    #[arg(long, value_name = "TIME", value_parser = duration(TimeUnit::Milliseconds, 1..=3_600_000))]
    pub(crate) timeout: Option<Duration>,
    /// Count these events in each named region of the command, too: names of perf's hardware, cache and software events
    #[arg(long, value_name = "EVENTS", help_heading = "Events")]
    pub(crate) region_events: Option<String>,
    /// The command to measure, after `--`; with another target it only sets how long to count
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl TargetArgs {
    /// The command to start and the target to measure; everything on the machine, where nothing is said.
    pub(crate) fn launch_or_everyone(&self, io: ChildIo) -> Result<Launch, Error> {
        let everyone = self.is_open().then_some(TargetKind::Everyone);
        self.launch_of(everyone.or(self.kind()?), io)
    }

    /// The command to start and the target to measure.
    pub(crate) fn launch(&self, io: ChildIo) -> Result<Launch, Error> {
        self.launch_of(self.kind()?, io)
    }

    fn launch_of(&self, target: Option<TargetKind>, io: ChildIo) -> Result<Launch, Error> {
        if target.is_none() && self.command.is_empty() {
            let how = "give a command after --, processes with -p PID, or the machine with -a";
            return Err(Error::Usage(format!("nothing to measure: {how}")));
        }
        if let Some(command) = self.command.first() {
            check_command(command)?;
        }
        if self.region_events.is_some() && (self.command.is_empty() || target.is_some()) {
            return Err(Error::Usage(OF_COMMANDS.into()));
        }
        let argv = self.command.clone();
        let command = (!argv.is_empty()).then_some(CommandLine { argv, folder: None, io, output: None, errors: None });
        let delay = self.delay.map(Duration::from_millis);
        let timeout = self.timeout;
        let (cpus, split, inherit) = (self.cpus()?, self.split()?, !self.no_inherit);
        let region_events = self.region_events.clone();
        Ok(Launch { command, cpus, inherit, split, delay, timeout, region_events, ..Launch::attach(target) })
    }

    /// Whether it says nothing of whom to count.
    pub(crate) fn is_open(&self) -> bool {
        let has_ids = !self.pid.is_empty() || !self.tid.is_empty();
        !(has_ids || self.all_cpus || self.cgroup.is_some() || self.cpu.is_some() || !self.command.is_empty())
    }

    /// Whether everything on all CPUs is counted; so it is where nothing is said and the verb allows that.
    pub(crate) fn is_whole_machine(&self) -> bool {
        self.all_cpus || self.is_open()
    }

    fn split(&self) -> Result<Split, Error> {
        match (self.no_aggr, self.per_thread) {
            (false, true) if self.pid.is_empty() && self.tid.is_empty() => {
                Err(Error::Usage("--per-thread needs -p PID or -t TID".into()))
            }
            (false, true) => Ok(Split::Threads),
            (true, _) => Ok(Split::Cpus),
            (false, false) => Ok(Split::Sum),
        }
    }

    /// The part of the target that is no command.
    fn kind(&self) -> Result<Option<TargetKind>, Error> {
        let pids = |numbers: &[i32]| {
            let mut seen = HashSet::new();
            numbers.iter().filter(|number| seen.insert(**number)).map(|&number| Pid::from_raw(number)).collect()
        };
        if !self.pid.is_empty() {
            return Ok(Some(TargetKind::Processes(pids(&self.pid))));
        }
        if !self.tid.is_empty() {
            return Ok(Some(TargetKind::Threads(pids(&self.tid))));
        }
        if let Some(name) = &self.cgroup {
            // perf takes one for each event; they are mostly all the same.
            let mut names: Vec<_> = name.split(',').collect();
            names.dedup();
            let [name] = names[..] else {
                return Err(Error::Usage("-G takes one control group: count others in runs of their own".into()));
            };
            let failed = |_| {
                let what = format!("there is no control group {}", shown(name));
                Error::Input(format!("{what}\n      those there are:  find /sys/fs/cgroup -name cgroup.procs"))
            };
            return Cgroup::open(name).map(|cgroup| Some(TargetKind::Cgroup(cgroup))).map_err(failed);
        }
        Ok((self.all_cpus || self.cpu.is_some()).then_some(TargetKind::Everyone))
    }

    fn cpus(&self) -> Result<Option<Vec<u32>>, Error> {
        let Some(text) = &self.cpu else { return Ok(None) };
        let cpus =
            parse_cpus(text).ok_or_else(|| Error::Usage(format!("-C takes CPUs as in 0-2,5, not {}", shown(text))))?;
        Ok(Some(cpus))
    }
}

fn delay(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (1..=3_600_000).contains(number));
    number.ok_or_else(|| {
        "give milliseconds from 1 to 3600000; perf's -D -1 (start disabled) and ranges of times are not supported"
            .into()
    })
}

/// The id of a process or thread.
fn id(text: &str) -> Result<i32, String> {
    let number = text.trim().parse().ok().filter(|&id| id > 0);
    number.ok_or_else(|| "it takes numbers as in 12,345; by name: $(pidof -s NAME)".into())
}
