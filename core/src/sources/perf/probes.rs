//! Makes probes in tracefs, so that threads and processes that start later can inherit their counters.
//!
//! The kernel makes a probe of `perf_event_open` once more for each thread that inherits it, and reads the name of the
//! file again for that. It reads it where the name was in perfprop's memory, but in the memory of whoever starts the
//! thread: `clone` fails with EFAULT. A probe of tracefs is a tracepoint, which has a number instead of a name.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::libc;
use nix::unistd::Pid;

use crate::events::{Event, Machine, Probe, TracefsError};
use crate::host;
use crate::sources::command::{LastWrite, LastWrites};
use crate::sources::process;

/// The groups of probes begin so; the id of the process that made them follows.
const GROUP: &str = "perfprop_";

/// How many probes this process has made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// The number of the tracepoint that was made of each probe, or why none could be.
pub type ProbeIds = Arc<HashMap<Probe, Result<u64, String>>>;

/// Probes in tracefs. They are removed once this is dropped or the process is gone, however it ended.
#[derive(Debug, Default)]
pub struct TracefsProbes {
    ids: ProbeIds,
    _removals: Option<LastWrites>,
}

impl TracefsProbes {
    /// Makes the probes of these events; removes those that ended processes left behind.
    pub fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Self {
        let mut probes: Vec<&Probe> = Vec::new();
        for probe in events.filter_map(|event| event.encoding.probe.as_ref()) {
            if !probes.contains(&probe) {
                probes.push(probe);
            }
        }
        if probes.is_empty() {
            return Self::default();
        }
        let failed = |why: &str| probes.iter().map(|&probe| (probe.clone(), Err(why.to_owned()))).collect();
        match Self::make(&probes) {
            Ok(made) => made,
            Err(why) => Self { ids: Arc::new(failed(&why)), _removals: None },
        }
    }

    /// The number of each probe's tracepoint.
    pub fn ids(&self) -> ProbeIds {
        Arc::clone(&self.ids)
    }

    fn make(probes: &[&Probe]) -> Result<Self, String> {
        let folder = folder()?;
        let planned = probes.iter().map(|&probe| (probe, planned(probe, &folder)));
        let (mut ids, mut ready) = (HashMap::new(), Vec::new());
        for (probe, planned) in planned {
            match planned {
                Ok(planned) => ready.push((probe, planned)),
                Err(error) => drop(ids.insert(probe.clone(), Err(why(&error)))),
            }
        }
        // Before there is a probe, so that none outlives this process.
        let removals = ready.iter().map(|(_, planned)| planned.removal()).collect::<io::Result<Vec<_>>>();
        let removals = removals.and_then(LastWrites::new).map_err(|error| why(&error))?;
        for (probe, planned) in ready {
            ids.insert(probe.clone(), planned.make(&folder).map_err(|error| why(&error)));
        }
        Ok(Self { ids: Arc::new(ids), _removals: Some(removals) })
    }
}

/// The folder of tracefs.
fn folder() -> Result<PathBuf, String> {
    match Machine::here().tracepoints() {
        Ok(events) => Ok(events.parent().map(Path::to_path_buf).unwrap_or_default()),
        Err(TracefsError::NotMounted(_)) => Err("tracefs isn't mounted".to_owned()),
        Err(TracefsError::Forbidden(_)) => Err("tracefs may not be read".to_owned()),
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "tracefs may not be written".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "tracefs is read only".to_owned(),
        io::ErrorKind::NotFound => "this kernel has no such probes in tracefs".to_owned(),
        _ => format!("tracefs takes no probe: {error}"),
    }
}

/// A probe that can be made.
struct PlannedProbe {
    /// File of tracefs that takes it.
    list: File,
    /// Its group and name.
    name: String,
    definition: String,
    /// The probed program, by whose descriptor the kernel finds it: its path may have characters that tracefs doesn't
    /// take.
    _program: Option<File>,
}

impl PlannedProbe {
    fn removal(&self) -> io::Result<LastWrite> {
        Ok(LastWrite { file: self.list.try_clone()?, text: format!("-:{}\n", self.name) })
    }

    fn make(&self, folder: &Path) -> io::Result<u64> {
        (&self.list).write_all(self.definition.as_bytes())?;
        host::text(&folder.join("events").join(&self.name).join("id"))?.parse().map_err(io::Error::other)
    }
}

fn planned(probe: &Probe, folder: &Path) -> io::Result<PlannedProbe> {
    let is_user = !probe.path.is_empty();
    let path = folder.join(if is_user { "uprobe_events" } else { "kprobe_events" });
    remove_left_behind(&path);
    // Without `append` the kernel removes all probes that there are.
    let list = OpenOptions::new().append(true).open(&path)?;
    let program = match is_user {
        true => Some(OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&probe.path)?),
        false => None,
    };
    let place = match &program {
        Some(program) => format!("/proc/self/fd/{}:{:#x}", program.as_raw_fd(), probe.offset),
        None => format!("{}+{}", probe.function, probe.offset),
    };
    let name = unused_name(&folder.join("events"));
    let definition = format!("{}:{name} {place}\n", if probe.returns { 'r' } else { 'p' });
    Ok(PlannedProbe { list, name, definition, _program: program })
}

/// A name that no probe has: a second one of a name would be counted with the first.
fn unused_name(events: &Path) -> String {
    loop {
        let name = format!("{GROUP}{}/p{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        if !events.join(&name).exists() {
            return name;
        }
    }
}

/// Removes the probes of processes that are gone: they were killed, and all that would have removed them.
fn remove_left_behind(list: &Path) {
    let Ok(text) = fs::read_to_string(list) else { return };
    for name in text.lines().filter_map(own_name).filter(|(_, maker)| !process::is_alive(*maker)).map(|(name, _)| name)
    {
        // Another process may remove it at the same time. The kernel takes each write for a whole line.
        let line = format!("-:{name}\n");
        let list = OpenOptions::new().append(true).open(list);
        let _ = list.and_then(|mut list| list.write_all(line.as_bytes()));
    }
}

/// The name in a line of the list of probes, and the process that made it, where that was perfprop:
/// `p:perfprop_12/p0 /bin/true:0x1149`.
fn own_name(line: &str) -> Option<(&str, Pid)> {
    let name = line.split_once(':')?.1.split_whitespace().next()?;
    let maker = name.strip_prefix(GROUP)?.split_once('/')?.0;
    Some((name, Pid::from_raw(maker.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn the_probes_of_perfprop_are_known_by_their_group() {
        let name = |line| own_name(line).map(|(name, maker)| (name, maker.as_raw()));
        assert_eq!(name("p:perfprop_12/p0 /bin/true:0x1149"), Some(("perfprop_12/p0", 12)));
        assert_eq!(name("r8:perfprop_7/p1 do_exit"), Some(("perfprop_7/p1", 7)));
        for other in ["p:probe_true/main /bin/true:0x1149", "p:perfprop_x/p0 /bin/true:0x1", "p:perfprop_1 a:0x1", ""] {
            assert_eq!(name(other), None, "{other}");
        }
    }

    #[test]
    fn no_two_probes_have_the_same_name() {
        let folder = std::env::temp_dir().join(format!("perfprop-probes-{}", std::process::id()));
        let first = unused_name(&folder);
        let number: usize = first.rsplit_once("/p").unwrap().1.parse().unwrap();
        let next = format!("{GROUP}{}/p{}", std::process::id(), number + 1);
        fs::create_dir_all(folder.join(&next)).unwrap();
        let second = unused_name(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert!(second != first && second != next, "{first} {second}");
    }

    #[test]
    fn without_tracefs_there_is_a_reason() {
        let probe = Probe { function: "do_exit".into(), ..Probe::default() };
        let refused = planned(&probe, Path::new("/nonexistent")).map(|_| ()).map_err(|error| why(&error));
        assert_eq!(refused, Err("this kernel has no such probes in tracefs".to_owned()));
    }
}
