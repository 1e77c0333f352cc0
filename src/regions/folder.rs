//! Makes a folder for the files of regions.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use perfprop_regions::{FILE_SIZE, folder_of};

use super::RegionsError;
use super::source::ProgramKey;
use crate::files::{ExpectedFile, Refused, open};

/// The most files that are read; more processes than these aren't shown.
const MOST_FILES: usize = 1000;

/// A folder in which a command and what it starts share their regions, for its owner alone. It is removed when this is
/// dropped.
#[derive(Debug)]
pub(super) struct SharedFolder(PathBuf);

impl SharedFolder {
    /// Makes the folder of a command's process.
    ///
    /// # Errors
    /// Returns the operating system's error, also where another user has one of that name.
    pub(super) fn new(pid: u32) -> io::Result<Self> {
        let path = folder_of(pid);
        let make = || DirBuilder::new().mode(0o700).create(&path);
        match make() {
            // It was left by one that was killed, when another process had this number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_dir_all(&path).and_then(|()| make())?
            }
            made => made?,
        }
        Ok(Self(path))
    }

    /// The programs that have files, the first one first, each with its process and its number there.
    pub(super) fn programs(&self) -> Vec<ProgramKey> {
        let names =
            fs::read_dir(&self.0).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let number = |name: String| {
            let (pid, file) = name.split_once('.')?;
            Some((pid.parse::<u32>().ok()?, file.parse::<u32>().ok()?))
        };
        let mut files: Vec<_> = names.filter_map(number).take(MOST_FILES).collect();
        files.sort_unstable();
        files
    }

    /// The file of a program.
    pub(super) fn path_of(&self, (pid, file): ProgramKey) -> PathBuf {
        self.0.join(format!("{pid}.{file}"))
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
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

    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_folder_is_its_owners_alone_and_goes() {
        // Numbers that no process has.
        let folder = SharedFolder::new(u32::MAX).unwrap();
        let path = folder.0.clone();
        fs::write(path.join("1.0"), "left").unwrap();
        fs::write(path.join("not one"), "").unwrap();
        assert_eq!(folder.programs(), [(1, 0)]);
        let folder = SharedFolder::new(u32::MAX).inspect(|_| std::mem::forget(folder)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(folder.programs().is_empty());
        drop(folder);
        assert!(!path.exists());
    }
}
