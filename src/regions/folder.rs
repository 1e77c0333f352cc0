//! Makes a folder for the files of regions, and reads them.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use perfprop_regions::{FILE_SIZE, Snapshot, folder_of};

use super::{ProcessRegions, RegionsError};
use crate::files::{ExpectedFile, Refused, open};

/// The most files that are read; more processes than these aren't shown.
const MOST_FILES: usize = 1000;

/// A folder in which a command and what it starts share their regions, for its owner alone. It is removed when this is
/// dropped.
#[derive(Debug)]
pub struct SharedFolder(PathBuf);

impl SharedFolder {
    /// Makes the folder of a command's process.
    ///
    /// # Errors
    /// Returns the operating system's error, also where another user has one of that name.
    pub fn new(pid: u32) -> io::Result<Self> {
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

    /// The regions of all processes that have or had any, the first one first.
    pub fn read(&self) -> Vec<ProcessRegions> {
        let names =
            fs::read_dir(&self.0).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let number = |name: String| {
            let (pid, file) = name.split_once('.')?;
            Some((pid.parse::<u32>().ok()?, file.parse::<u32>().ok()?))
        };
        let mut files: Vec<(u32, u32)> = names.filter_map(number).take(MOST_FILES).collect();
        files.sort_unstable();
        let read = |(pid, file)| ProcessRegions { pid, regions: read(&self.0.join(format!("{pid}.{file}"))) };
        files.into_iter().map(read).collect()
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> Result<Snapshot, RegionsError> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    if is_link {
        return Err(RegionsError::Refused(Refused::NotRegular));
    }
    let file = open(path, &ExpectedFile::any(FILE_SIZE as u64)).map_err(RegionsError::Refused)?;
    Snapshot::read(&file).map_err(RegionsError::Snapshot)
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
        let folder = SharedFolder::new(u32::MAX).inspect(|_| std::mem::forget(folder)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        assert!(folder.read().is_empty());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_file_of_regions_is_an_error() {
        let folder = SharedFolder::new(u32::MAX - 1).unwrap();
        let path = |name: &str| folder.0.join(name);
        fs::write(path("1.0"), "").unwrap();
        fs::write(path("2.0"), [7; 8192]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", path("3.0")).unwrap();
        nix::unistd::mkfifo(&path("4.0"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(path("not one"), "").unwrap();
        let read = folder.read();
        let errors: Vec<_> =
            read.into_iter().map(|process| (process.pid, process.regions.unwrap_err().to_string())).collect();
        assert_eq!(errors.iter().map(|(pid, _)| *pid).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert_eq!(errors[1].1, "it holds no regions");
        assert_eq!((errors[2].1.as_str(), errors[3].1.as_str()), ("it is no regular file", "it is no regular file"));
    }
}
