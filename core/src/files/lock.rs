//! Locks that keep two processes from changing the same files at one time.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// A lock (`flock`) that no other process gets until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _lock: Flock<File>,
}

/// Waits for the lock of a path, and takes it. The path is that of a folder, or of a file, which is made if it isn't there.
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
