//! Leaves work to a child: what is done once this process is gone, however it ended.

#![expect(unsafe_code, reason = "fork is unsafe")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::sys::wait::waitpid;
use nix::unistd::{self, ForkResult, Pid};

/// How often the child looks whether its parent is gone.
const LOOK: Duration = Duration::from_millis(1);

/// Leaves the closing of this process' counters to a child, so that this process can end before they are closed.
///
/// The kernel takes some hundredths of a second to close the last descriptor of a tracepoint, and a process hasn't
/// ended before all of its own are closed. The child has the same counters, and nothing else, until this process is
/// gone.
///
/// # Errors
/// Returns the operating system's error if it can't make a process or doesn't list open descriptors.
pub fn leave_closing_to_a_child() -> io::Result<()> {
    // Whoever reads what this process writes doesn't wait for the child.
    let others = descriptors_but_counters()?;
    let parent = unistd::getpid();
    let wait = || {
        while unistd::getppid() == parent {
            thread::sleep(LOOK);
        }
    };
    fork_without(&others, wait).map(drop)
}

fn descriptors_but_counters() -> io::Result<Vec<RawFd>> {
    let is_counter =
        |path: &Path| fs::read_link(path).is_ok_and(|target| target == Path::new("anon_inode:[perf_event]"));
    descriptors(|path| !is_counter(path))
}

/// This process' descriptors by their files in `/proc`.
fn descriptors(is_wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<RawFd>> {
    let number = |path: &Path| path.file_name()?.to_str()?.parse().ok();
    let paths = fs::read_dir("/proc/self/fd")?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    Ok(paths.iter().filter(|path| is_wanted(path)).filter_map(|path| number(path)).collect())
}

/// How often a last write is tried while what it removes is in use, and the time between; 10 s together.
const LAST_TRIES: usize = 1000;
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// How long this process waits for its last writes.
const LAST_PATIENCE: Duration = Duration::from_millis(200);

/// What is written to a file in the end.
#[derive(Debug)]
pub struct LastWrite {
    /// The open file.
    pub file: File,
    /// The text, which is written at once.
    pub text: String,
}

/// Writes to files once this is dropped or the process is gone, however it ended: a child waits for that.
#[derive(Debug)]
pub struct LastWrites {
    child: Pid,
    /// The child has the other end.
    end: UnixStream,
}

impl LastWrites {
    /// Starts the child.
    ///
    /// # Errors
    /// Returns the operating system's error if it can't make a process or doesn't list open descriptors.
    pub fn new(writes: Vec<LastWrite>) -> io::Result<Self> {
        let (end, of_child) = UnixStream::pair()?;
        end.set_read_timeout(Some(LAST_PATIENCE))?;
        let kept: Vec<RawFd> =
            writes.iter().map(|write| write.file.as_raw_fd()).chain([of_child.as_raw_fd()]).collect();
        let mut others = descriptors(|_| true)?;
        others.retain(|other| !kept.contains(other));
        // A signal to all of the terminal's foreground is perfprop's.
        let before = SigSet::thread_get_mask()?;
        SigSet::all().thread_block()?;
        let write = || {
            let _ = unistd::setsid();
            write_at_end(&of_child, &writes);
        };
        let forked = fork_without(&others, write);
        before.thread_set_mask()?;
        forked.map(|child| Self { child, end })
    }
}

impl Drop for LastWrites {
    fn drop(&mut self) {
        let _ = self.end.shutdown(Shutdown::Write);
        // Until the child has closed its end, which it does last. One that takes longer outlives this process.
        if (&self.end).read(&mut [0]).is_ok() {
            let _ = waitpid(self.child, None);
        }
    }
}

/// Runs something in a child without some descriptors, and returns the child.
///
/// It may make only system calls that are async-signal-safe, and allocate nothing.
fn fork_without(descriptors: &[RawFd], run: impl FnOnce()) -> io::Result<Pid> {
    // SAFETY: the child makes only system calls that are async-signal-safe, and allocates nothing.
    match unsafe { unistd::fork() }? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            for &descriptor in descriptors {
                let _ = unistd::close(descriptor);
            }
            run();
            // SAFETY: nothing runs at this exit.
            unsafe { nix::libc::_exit(0) }
        }
    }
}

/// Waits for the other end to be closed, and writes. What is in use yet is tried again.
fn write_at_end(end: &UnixStream, writes: &[LastWrite]) {
    while unistd::read(end, &mut [0]) == Err(Errno::EINTR) {}
    for write in writes {
        for _ in 0..LAST_TRIES {
            if unistd::write(&write.file, write.text.as_bytes()) != Err(Errno::EBUSY) {
                break;
            }
            thread::sleep(LAST_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn what_is_written_in_the_end_is_not_written_before() {
        let path = std::env::temp_dir().join(format!("perfprop-last-{}", std::process::id()));
        let write = |text: &str| LastWrite {
            file: File::options().create(true).append(true).open(&path).unwrap(),
            text: text.to_owned(),
        };
        let writes = LastWrites::new(vec![write("first\n"), write("second\n")]).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        let child = writes.child;
        drop(writes);
        assert_eq!(waitpid(child, None), Err(Errno::ECHILD), "no zombie is left");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
        fs::remove_file(path).unwrap();
    }
}
