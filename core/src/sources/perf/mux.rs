//! Sets the interval of the kernel's rotation, until it is dropped.
//!
//! `/sys/bus/event_source/devices/PMU/perf_event_mux_interval_ms` holds for the whole machine, so it has
//! to be set back whatever becomes of perfprop. SIGKILL can't be caught; what is left then is another
//! process: a shell that waits at the end of a pipe and writes the old number back once the pipe is closed,
//! which the kernel does for every process that ends.
//!
//! ```text
//! perfprop   lock the file ─ start the guard ─ write 1 ─ measure ─ end, or SIGKILL
//! guard                      read ─────────────────────────────── end of file ─ write 4 ─ exit
//! ```
//!
//! The guard has the file open already, so nothing that happens to permissions or paths keeps it from
//! writing. It shares the lock, so that a second perfprop, which would take the changed number for the old
//! one, is refused for as long as there is something to set back.
//!
//! What it doesn't outlive is a signal to itself that can't be caught: a control group that is killed as a
//! whole, or the end of a container.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::events::PmuType;
use crate::host::{self, HostFiles};

/// Where the kernel has a folder for each PMU.
fn devices() -> PathBuf {
    HostFiles::here().path("sys/bus/event_source/devices")
}

/// The name of the number in a PMU's folder.
const FILE: &str = "perf_event_mux_interval_ms";

/// The guard: it waits for the end of its input, and then writes its argument into its output. What a
/// terminal sends to all that it started is not for it.
const GUARD: &str = r#"trap "" HUP INT QUIT TERM PIPE; read -r _; echo "$1""#;

/// A PMU whose groups are rotated at another interval than before; the old one is back once this is dropped.
#[derive(Debug)]
pub struct Interval {
    /// Name of the PMU.
    pub pmu: String,
    /// What holds again afterwards, in milliseconds.
    pub before: u32,
    /// Interval that the kernel has now, in ms.
    pub now: u32,
    guard: Child,
    /// Closed, it lets the guard go on.
    waits: Option<ChildStdin>,
    /// Locked until the guard has ended.
    _file: Flock<File>,
}

/// Why the interval can't be changed. Nothing has been.
#[derive(Debug)]
pub struct MuxError {
    /// The file that holds the interval.
    pub path: PathBuf,
    /// What is the matter with it.
    pub cause: MuxErrorCause,
}

/// What is the matter with the file of an interval.
#[derive(Debug)]
pub enum MuxErrorCause {
    /// The kernel has no such number for this PMU.
    Absent(io::Error),
    /// This user may not change it.
    NotPermitted,
    /// Another perfprop has changed it, and will set it back.
    Taken,
    /// No shell could be started to restore the interval.
    NoGuard(io::Error),
    /// The kernel refuses the new interval.
    Refused(io::Error),
}

/// Sets the rotation interval of a PMU, in ms.
///
/// # Errors
/// See [`MuxError`].
pub fn set(pmu: &str, milliseconds: u32) -> Result<Interval, MuxError> {
    set_in(&devices().join(pmu), milliseconds)
}

/// Length of the kernel's slices on this PMU; `None` where it doesn't say.
pub fn interval(pmu: &str) -> Option<Duration> {
    read(&devices().join(pmu).join(FILE)).ok().map(|ms| Duration::from_millis(ms.into()))
}

/// The rotation interval of a PMU.
pub fn interval_of(pmu: PmuType) -> Option<Duration> {
    let has_type = |folder: &&PathBuf| read(&folder.join("type")).is_ok_and(|number| PmuType(number) == pmu);
    let is_of_cores = |folder: &&PathBuf| pmu == PmuType::CORES && folder.join("cpus").exists();
    let folders: Vec<_> = std::fs::read_dir(devices()).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    let folder = folders.iter().find(has_type).or_else(|| folders.iter().find(is_of_cores))?;
    interval(folder.file_name()?.to_str()?)
}

fn set_in(folder: &Path, milliseconds: u32) -> Result<Interval, MuxError> {
    let path = folder.join(FILE);
    lock(&path).and_then(|file| change(&path, file, milliseconds)).map_err(|cause| MuxError { path, cause })
}

/// Locks the file of an interval, unless another perfprop has it.
fn lock(path: &Path) -> Result<Flock<File>, MuxErrorCause> {
    let file = OpenOptions::new().write(true).open(path).map_err(MuxErrorCause::of)?;
    Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
        Errno::EWOULDBLOCK => MuxErrorCause::Taken,
        errno => MuxErrorCause::Refused(errno.into()),
    })
}

/// Changes the interval in a locked file: what stands there now is nobody else's passing number.
fn change(path: &Path, mut file: Flock<File>, milliseconds: u32) -> Result<Interval, MuxErrorCause> {
    let before = read(path).map_err(MuxErrorCause::Absent)?;
    let (guard, waits) = guard(&file, before).map_err(MuxErrorCause::NoGuard)?;
    let written = file.write_all(format!("{milliseconds}\n").as_bytes());
    // Dropped on the error's way out, it is as it was.
    let pmu = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let interval = Interval { pmu, before, now: milliseconds, guard, waits: Some(waits), _file: file };
    written.map_err(MuxErrorCause::of)?;
    Ok(interval)
}

fn read(path: &Path) -> io::Result<u32> {
    host::text(path)?.parse().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "no number in it"))
}

/// Starts what writes a number into the file once perfprop is gone.
fn guard(file: &File, before: u32) -> io::Result<(Child, ChildStdin)> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", GUARD, "perfprop-guard", &before.to_string()]);
    command.stdin(Stdio::piped()).stdout(file.try_clone()?).stderr(Stdio::null());
    // Nor is it one of those that a terminal interrupts.
    let mut guard = command.process_group(0).spawn()?;
    let waits = guard.stdin.take().ok_or_else(|| io::Error::other("the guard has no input"))?;
    Ok((guard, waits))
}

impl Drop for Interval {
    fn drop(&mut self) {
        drop(self.waits.take());
        // Once perfprop has ended, it is as it was before.
        let _ = self.guard.wait();
    }
}

impl MuxErrorCause {
    fn of(error: io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EACCES | Errno::EPERM | Errno::EROFS) => Self::NotPermitted,
            Some(Errno::ENOENT | Errno::ENOTDIR) => Self::Absent(error),
            _ => Self::Refused(error),
        }
    }
}

impl fmt::Display for MuxErrorCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(error) => write!(f, "this PMU has no interval that could be changed ({error})"),
            Self::NotPermitted => f.write_str("only root may change it, and only where /sys is writable"),
            Self::Taken => f.write_str("another perfprop has changed it and will set it back"),
            Self::NoGuard(error) => write!(f, "nothing could set it back: sh does not start ({error})"),
            Self::Refused(error) => write!(f, "the kernel refuses it ({error})"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    /// A folder that stands for a PMU's; unlike the kernel's its file remembers more than what was written last.
    fn pmu(name: &str, text: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("perfprop-mux-{}-{name}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(FILE), text).unwrap();
        folder
    }

    fn last(folder: &Path) -> String {
        fs::read_to_string(folder.join(FILE)).unwrap().lines().last().unwrap().to_owned()
    }

    #[test]
    fn an_interval_holds_until_it_is_dropped() {
        let folder = pmu("held", "4\n");
        let interval = set_in(&folder, 1).unwrap();
        assert_eq!((last(&folder).as_str(), interval.before, interval.now), ("1", 4, 1));
        drop(interval);
        assert_eq!(last(&folder), "4");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn two_cannot_hold_one() {
        let folder = pmu("taken", "4\n");
        let interval = set_in(&folder, 1).unwrap();
        assert!(matches!(set_in(&folder, 2).unwrap_err().cause, MuxErrorCause::Taken));
        drop(interval);
        fs::write(folder.join(FILE), "4\n").unwrap();
        drop(set_in(&folder, 2).unwrap());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_holds_again_is_read_under_the_lock() {
        let folder = pmu("read", "1\n");
        let path = folder.join(FILE);
        let file = lock(&path).unwrap();
        // Another perfprop had set 1, and has set its own number back.
        fs::write(&path, "4\n").unwrap();
        assert_eq!(change(&path, file, 2).unwrap().before, 4);
        assert_eq!(last(&folder), "4");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_no_interval_is_not_changed() {
        let folder = pmu("words", "four\n");
        assert!(matches!(set_in(&folder, 1).unwrap_err().cause, MuxErrorCause::Absent(_)));
        assert_eq!(last(&folder), "four");
        assert!(matches!(set_in(Path::new("/nonexistent"), 1).unwrap_err().cause, MuxErrorCause::Absent(_)));
        fs::remove_dir_all(folder).unwrap();
    }
}
