//! Makes a folder for the files of regions.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag};
use perfprop_regions::{EVENTS_FILE, FILE_SIZE, folder_of};

use super::RegionsError;
use super::source::ProgramKey;
use crate::files::{ExpectedFile, Refused, open};

/// Where folders are, as [`folder_of`] has it, and what their names begin with.
const FOLDERS: &str = "/dev/shm";
const PREFIX: &str = "perfprop-regions-";

/// The most names that are looked at for folders that were left.
const MOST_LOOKED_AT: usize = 4096;

/// A folder in which a command and what it starts share their regions, for its owner alone. It is removed when this is
/// dropped.
#[derive(Debug)]
pub(super) struct SharedFolder {
    path: PathBuf,
    /// Says that somebody reads it, until it is dropped or perfprop is killed.
    _lock: Option<Flock<File>>,
}

impl SharedFolder {
    /// Makes the folder of a command's process.
    ///
    /// # Errors
    /// Returns the operating system's error, also where another user has one of that name.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        remove_left(Path::new(FOLDERS));
        let path = folder_of(pid);
        let make = || DirBuilder::new().mode(0o700).create(&path);
        match make() {
            // It was left by one that was killed, when another process had this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_dir_all(&path).and_then(|()| make())?
            }
            made => made?,
        }
        let _lock = lock(&path);
        Ok(Self { path, _lock })
    }

    /// Asks all programs to count these events in their regions.
    pub(super) fn ask_for(&self, events: &str) -> io::Result<()> {
        let path = self.path.join(EVENTS_FILE);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(events.as_bytes())
    }

    /// The programs that have files, the first one first, each with its process and its number there.
    pub(super) fn programs(&self) -> Vec<ProgramKey> {
        let names = fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let number = |name: String| {
            let (pid, file) = name.split_once('.')?;
            Some((pid.parse::<u32>().ok()?, file.parse::<u32>().ok()?))
        };
        let mut files: Vec<_> = names.filter_map(number).collect();
        files.sort_unstable();
        files
    }

    /// The file of a program.
    pub(super) fn path_of(&self, (pid, file): ProgramKey) -> PathBuf {
        self.path.join(format!("{pid}.{file}"))
    }
}

/// Removes the folders of commands that have ended and that nobody reads: whoever made them was killed. Those of other users,
/// links, and what has another name stay.
fn remove_left(below: &Path) {
    let user = nix::unistd::geteuid().as_raw();
    let entries = fs::read_dir(below).into_iter().flatten().flatten().take(MOST_LOOKED_AT);
    for entry in entries {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let Some(pid) = pid.filter(|&pid| !is_alive(pid)) else { continue };
        // Not of where a link leads.
        let is_left = fs::symlink_metadata(entry.path()).is_ok_and(|about| about.is_dir() && about.uid() == user);
        if is_left && name.to_str() == Some(&format!("{PREFIX}{pid}")) && lock(&entry.path()).is_some() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Locks a folder, unless somebody else has.
fn lock(folder: &Path) -> Option<Flock<File>> {
    let folder = File::options().read(true).custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW).bits()).open(folder);
    Flock::lock(folder.ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// Whether there is a process of this number.
pub(super) fn is_alive(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Opens the file of a program.
pub(super) fn read(path: &Path) -> Result<File, RegionsError> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if is_link {
        return Err(RegionsError::Refused(Refused::NotRegular));
    }
    open(path, &ExpectedFile::any(FILE_SIZE as u64)).map_err(RegionsError::Refused)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_its_owners_alone_and_goes() {
        // Numbers that no process has.
        let folder = SharedFolder::new(u32::MAX).unwrap();
        let path = folder.path.clone();
        fs::write(path.join("1.0"), "left").unwrap();
        fs::write(path.join("not one"), "").unwrap();
        assert_eq!(folder.programs(), [(1, 0)]);
        let folder = SharedFolder::new(u32::MAX).inspect(|_| std::mem::forget(folder)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(folder.programs().is_empty());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_commands_that_ended_are_removed_and_nothing_else() {
        let below = std::env::temp_dir().join(format!("perfprop-left-{}", std::process::id()));
        let path = |name: String| below.join(name);
        // A number that no process has, and our own.
        let (left, ours) = (path(format!("{PREFIX}{}", u32::MAX)), path(format!("{PREFIX}{}", std::process::id())));
        let (link, other) = (path(format!("{PREFIX}{}", u32::MAX - 1)), path(format!("{PREFIX}0{}", u32::MAX)));
        let (target, read) = (path("target".into()), path(format!("{PREFIX}{}", u32::MAX - 3)));
        for folder in [&left, &ours, &other, &target, &read] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("1.0"), "left").unwrap();
        }
        symlink(&target, &link).unwrap();
        let file = path(format!("{PREFIX}{}", u32::MAX - 2));
        fs::write(&file, "").unwrap();
        let reader = lock(&read).unwrap();
        remove_left(&below);
        assert!(!left.exists());
        assert!([&ours, &other, &target, &read].into_iter().all(|folder| folder.join("1.0").exists()));
        assert!(fs::symlink_metadata(&link).is_ok() && file.exists());
        drop(reader);
        remove_left(&below);
        assert!(!read.exists());
        fs::remove_dir_all(&below).unwrap();
    }

    #[test]
    fn folders_lie_where_they_are_looked_for() {
        assert_eq!(folder_of(7), Path::new(FOLDERS).join(format!("{PREFIX}7")));
    }
}
