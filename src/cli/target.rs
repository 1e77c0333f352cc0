//! Reads the options of what is measured: a command, processes, threads, CPUs or a control group.

use std::collections::HashSet;
use std::time::Duration;

use nix::unistd::Pid;

use super::Error;
use super::args::Target;
use crate::events::parse_cpus;
use crate::measure::check_command;
use crate::names::shown;
use crate::session::{ChildIo, CommandLine, Launch};
use crate::sources::perf::{Cgroup, Split, Who};

/// The command to start and the target to measure.
pub(super) fn launch(target: &Target, io: ChildIo) -> Result<Launch, Error> {
    let aim = aim(target)?;
    if aim.is_none() && target.command.is_empty() {
        let how = "give a command after --, processes with -p PID, or the machine with -a";
        return Err(Error::Usage(format!("nothing to measure: {how}")));
    }
    if let Some(command) = target.command.first() {
        check_command(command)?;
    }
    let argv = target.command.clone();
    let command = (!argv.is_empty()).then_some(CommandLine { argv, io });
    let delay = target.delay.map(Duration::from_millis);
    let timeout = target.timeout.map(Duration::from_millis);
    let (cpus, split, inherit) = (cpus(target)?, split(target)?, !target.no_inherit);
    Ok(Launch { command, cpus, inherit, split, delay, timeout, ..Launch::attach(aim) })
}

fn split(target: &Target) -> Result<Split, Error> {
    match (target.no_aggr, target.per_thread) {
        (false, true) if target.pid.is_empty() && target.tid.is_empty() => {
            Err(Error::Usage("--per-thread needs -p PID or -t TID".into()))
        }
        (false, true) => Ok(Split::Threads),
        (true, _) => Ok(Split::Cpus),
        (false, false) => Ok(Split::Sum),
    }
}

/// The part of the target that is no command.
fn aim(target: &Target) -> Result<Option<Who>, Error> {
    let pids = |numbers: &[i32]| {
        let mut seen = HashSet::new();
        numbers.iter().filter(|number| seen.insert(**number)).map(|&number| Pid::from_raw(number)).collect()
    };
    if !target.pid.is_empty() {
        return Ok(Some(Who::Processes(pids(&target.pid))));
    }
    if !target.tid.is_empty() {
        return Ok(Some(Who::Threads(pids(&target.tid))));
    }
    if let Some(name) = &target.cgroup {
        // perf takes one for each event; they are mostly all the same.
        let mut names: Vec<_> = name.split(',').collect();
        names.dedup();
        let [name] = names[..] else {
            return Err(Error::Usage("-G takes one control group: count others in runs of their own".into()));
        };
        let failed = |_| {
            let what = format!("no control group {} that events can be counted of", shown(name));
            Error::Usage(format!("{what}\n      those there are:  find /sys/fs/cgroup -name cgroup.procs"))
        };
        return Cgroup::open(name).map(|cgroup| Some(Who::Cgroup(cgroup))).map_err(failed);
    }
    Ok((target.all_cpus || target.cpu.is_some()).then_some(Who::Everyone))
}

fn cpus(target: &Target) -> Result<Option<Vec<u32>>, Error> {
    let Some(text) = &target.cpu else { return Ok(None) };
    let cpus =
        parse_cpus(text).ok_or_else(|| Error::Usage(format!("-C takes CPUs as in 0-2,5, not {}", shown(text))))?;
    Ok(Some(cpus))
}
