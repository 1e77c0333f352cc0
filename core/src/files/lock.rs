//! Locks that keep two processes from changing the same files at one time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// How often it is looked whether a file is written before that is believed, and the time between.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// A lock (`flock`) that no other process gets until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _lock: Flock<File>,
}

/// Waits for the lock of a path, and takes it. The path is that of a folder, or of a file, which is made if it isn't
/// there.
///
/// # Errors
/// Returns the operating system's error.
pub fn lock(path: &Path) -> io::Result<FileLock> {
    let lock = Flock::lock(lockable(path)?, FlockArg::LockExclusive);
    lock.map(|lock| FileLock { _lock: lock }).map_err(|(_, errno)| errno.into())
}

/// Takes the lock of a path without waiting: `None` while another process has the lock.
///
/// # Errors
/// Returns the operating system's error.
pub fn try_lock(path: &Path) -> io::Result<Option<FileLock>> {
    match Flock::lock(lockable(path)?, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(FileLock { _lock: lock })),
        Err((_, Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, errno)) => Err(errno.into()),
    }
}

/// Marks an open file as one that is being written, until it is closed everywhere: see [`is_written`]. Nothing where
/// the file system has no locks.
#[expect(deprecated, reason = "the lock outlives this reference, and `Flock` unlocks when it is dropped")]
pub(super) fn mark_written(file: &File) {
    let _ = nix::fcntl::flock(file.as_raw_fd(), FlockArg::LockExclusiveNonblock);
}

/// Whether another process goes on to write the regular file of this name, which is marked so.
pub(super) fn is_written(path: &Path) -> bool {
    let is_locked = || {
        let file = File::open(path).ok()?;
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Err((_, Errno::EWOULDBLOCK)) => Some(()),
            Ok(_) | Err(_) => None,
        }
    };
    // A process that has just been forked has the descriptors of its parent for a moment.
    (0..LOOKS).all(|look| {
        if look > 0 {
            thread::sleep(PAUSE);
        }
        is_locked().is_some()
    })
}

fn lockable(path: &Path) -> io::Result<File> {
    match path.is_dir() {
        true => File::open(path),
        false => OpenOptions::new().create(true).truncate(false).write(true).open(path),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;

    use super::*;

    #[test]
    fn one_has_a_lock_until_it_is_dropped() {
        let folder = std::env::temp_dir().join(format!("perfprop-lock-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for path in [folder.join(".lock"), folder.clone()] {
            let held = lock(&path).unwrap();
            assert!(try_lock(&path).unwrap().is_none());
            drop(held);
            assert!(try_lock(&path).unwrap().is_some());
        }
        assert!(try_lock(&folder.join("none/.lock")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
