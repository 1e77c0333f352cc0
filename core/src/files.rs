//! Opens files that a measured program or another user may change at any time.
//!
//! Such a path may have become a FIFO, on which opening waits for ever, a device, whose opening does
//! something, or another file than the one that was meant. [`open`] looks at what a path leads to before it
//! opens it, and opens nothing but a regular file that is as expected. What lies on a file system that a
//! user's program answers for may still never come: [`within`] sets a deadline.
//!
//! What perfprop writes itself is created as a [`PartialFile`]: for its owner alone, and whole before it has its name.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, major};
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};

mod create;
mod deadline;
mod inherited;
mod lock;
mod panics;
mod stem;

pub use create::{PartialFile, append, remove_partial};
pub use deadline::{Answerer, within};
pub use lock::{FileLock, lock, try_lock};
pub use panics::{panic_is_caught, unless_it_panics};
pub use stem::{file_stem, hash_of_name};

/// Identifies a file by its device and inode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The device that it lies on, as [`makedev`](nix::sys::stat::makedev) makes it; 0 where it isn't known.
    pub device: u64,
    /// Inode number; 0 where it isn't known.
    pub inode: u64,
}

impl Identity {
    /// Whether a file with this identity is the one that is meant.
    pub fn is(self, found: Self) -> bool {
        let fits = |expected: u64, found: u64| expected == 0 || expected == found;
        fits(self.inode, found.inode) && fits(self.device, found.device)
    }
}

/// What a file must be to be opened.
#[derive(Clone, Debug)]
pub struct ExpectedFile<'a> {
    /// The identity that the file must have; any by default.
    pub identity: Identity,
    /// Whether a file of a file system in layers (overlayfs, btrfs) may have another one: these report other numbers
    /// for a mapping than for the file itself. Who lets it finds out whether the file is the one that is meant.
    pub in_layers: bool,
    /// User ids that may own the file; any where this is `None`.
    pub owners: Option<&'a [u32]>,
    /// The largest size that is accepted, in bytes.
    pub most: u64,
}

/// Why a file isn't opened.
#[derive(Debug)]
pub enum Refused {
    /// A FIFO, a device, a folder.
    NotRegular,
    /// Another file has taken its place.
    Replaced,
    /// The file belongs to this user id, which isn't trusted.
    Owner(u32),
    /// The file is longer than the limit, in bytes.
    TooLong(u64),
    /// The file system hasn't answered in this time.
    Late(Duration),
    /// The operating system's reason.
    System(io::Error),
}

impl Refused {
    /// Whether there is nothing at the path.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::System(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRegular => f.write_str("it is no regular file"),
            Self::Replaced => f.write_str("another file has taken its place"),
            Self::Owner(owner) => write!(f, "it belongs to user {owner}"),
            Self::TooLong(bytes) => write!(f, "it is too long: {bytes} bytes"),
            Self::Late(deadline) => write!(f, "its file system hasn't answered in {} s", deadline.as_secs()),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for io::Error {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::System(error) => error,
            other => io::Error::other(other),
        }
    }
}

/// The longest file that is read as a whole, where no less is known of it: 256 MiB.
pub const LONGEST: u64 = 256 << 20;

/// The text of what is no longer than that many bytes: a file, a pipe, or a device, some of which never end.
///
/// # Errors
/// Returns the operating system's error, or that it is longer (`FileTooLarge`) or no text (`InvalidData`).
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    text_of(File::open(path)?, most)
}

/// The text of an input that is no longer than that many bytes.
///
/// # Errors
/// Returns the operating system's error, or that it is longer or no text.
pub fn text_of(input: impl Read, most: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is no text (UTF-8)");
    String::from_utf8(bytes_of(input, most)?).map_err(not_text)
}

fn bytes_of(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Opens a regular file to read it; links are followed.
///
/// # Errors
/// Fails if there is no such file, or it isn't as expected.
pub fn open(path: &Path, expected: &ExpectedFile<'_>) -> Result<File, Refused> {
    let looked_at = openat(nix::fcntl::AT_FDCWD, path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
    expected.read(looked_at.map_err(system)?)
}

/// Opens a regular file to read and to write it; links are followed.
///
/// # Errors
/// As for [`open`].
pub fn open_to_write(path: &Path, expected: &ExpectedFile<'_>) -> Result<File, Refused> {
    let looked_at = openat(nix::fcntl::AT_FDCWD, path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty());
    expected.open(looked_at.map_err(system)?, OFlag::O_RDWR)
}

/// Opens a regular file below a folder that was [looked at](folder): its path, and all links on the way, begin there.
///
/// # Errors
/// Fails if there is no such file, or it isn't as expected.
pub fn open_below(root: &OwnedFd, path: &Path, expected: &ExpectedFile<'_>) -> Result<File, Refused> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_IN_ROOT);
    expected.read(openat2(root, path, how).map_err(system)?)
}

/// A folder below a folder that was [looked at](folder): its path, and all links on the way, begin there.
///
/// # Errors
/// Returns the operating system's error.
pub fn folder_below(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let how = OpenHow::new().flags(flags).resolve(ResolveFlag::RESOLVE_IN_ROOT);
    openat2(root, path, how).map_err(io::Error::from)
}

/// A folder to open files below, however it is renamed.
///
/// # Errors
/// Returns the operating system's error.
pub fn folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    openat(nix::fcntl::AT_FDCWD, path, flags, Mode::empty()).map_err(io::Error::from)
}

/// A path to an open file, for those that open files by their paths: it is the same file for as long as it is open.
pub fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl ExpectedFile<'_> {
    /// Any regular file up to a length.
    pub fn any(most: u64) -> Self {
        Self { identity: Identity::default(), in_layers: false, owners: None, most }
    }

    fn read(&self, looked_at: OwnedFd) -> Result<File, Refused> {
        self.open(looked_at, OFlag::O_RDONLY)
    }

    fn is_meant(&self, looked_at: &OwnedFd, about: &FileStat) -> bool {
        let found = Identity { device: about.st_dev, inode: about.st_ino };
        self.identity.is(found) || self.in_layers && may_be_in_layers(looked_at, found.device)
    }

    /// Opens what was looked at, if it is as expected: nothing is opened before that is known.
    fn open(&self, looked_at: OwnedFd, access: OFlag) -> Result<File, Refused> {
        let about = nix::sys::stat::fstat(&looked_at).map_err(system)?;
        if SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT != SFlag::S_IFREG {
            return Err(Refused::NotRegular);
        }
        if !self.is_meant(&looked_at, &about) {
            return Err(Refused::Replaced);
        }
        if let Some(owners) = self.owners
            && !owners.contains(&about.st_uid)
        {
            return Err(Refused::Owner(about.st_uid));
        }
        let length = u64::try_from(about.st_size).unwrap_or(0);
        if length > self.most {
            return Err(Refused::TooLong(length));
        }
        // Without waiting for one who holds a lease on it.
        let flags = access | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
        let path = format!("/proc/self/fd/{}", looked_at.as_raw_fd());
        openat(nix::fcntl::AT_FDCWD, path.as_str(), flags, Mode::empty()).map(File::from).map_err(system)
    }
}

/// Whether a file lies in a file system whose device has no number: one in layers may be among them. tmpfs isn't, and
/// numbers its few files in the same way each time.
fn may_be_in_layers(file: &OwnedFd, device: u64) -> bool {
    major(device) == 0 && fstatfs(file).is_ok_and(|about| about.filesystem_type() != TMPFS_MAGIC)
}

fn system(errno: Errno) -> Refused {
    Refused::System(errno.into())
}

/// Which file an open one is.
///
/// # Errors
/// Returns the operating system's error.
pub fn identity(file: &File) -> io::Result<Identity> {
    let about = file.metadata()?;
    Ok(Identity { device: about.dev(), inode: about.ino() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("perfprop-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn what_never_ends_is_not_read_for_ever() {
        let longer = text(Path::new("/dev/zero"), 3 << 20).unwrap_err();
        assert_eq!(longer.to_string(), "it is longer than 3 MiB");
        let path = scratch("whole").join("f");
        fs::write(&path, "abc").unwrap();
        assert_eq!((text(&path, 3).unwrap().as_str(), text(&path, 2).is_err()), ("abc", true));
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(text(&path, 3).unwrap_err().to_string(), "it is no text (UTF-8)");
    }

    #[test]
    fn a_fifo_is_refused_and_nothing_waits() {
        let folder = scratch("fifo");
        let fifo = folder.join("fifo");
        nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
        symlink("fifo", folder.join("link")).unwrap();
        for path in [fifo, folder.join("link"), folder.clone(), "/dev/null".into()] {
            assert!(matches!(open(&path, &ExpectedFile::any(9)), Err(Refused::NotRegular)), "{path:?}");
        }
        assert!(open(&folder.join("none"), &ExpectedFile::any(9)).unwrap_err().is_absence());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_is_what_it_was_when_it_was_looked_at() {
        let folder = scratch("identity");
        let path = folder.join("file");
        fs::write(&path, "first").unwrap();
        let file = open(&path, &ExpectedFile::any(100)).unwrap();
        let identity = identity(&file).unwrap();
        let expected = ExpectedFile { identity, ..ExpectedFile::any(100) };
        assert!(open(&path, &expected).is_ok());
        // The first stays, so the second has another number.
        fs::write(folder.join("other"), "second").unwrap();
        fs::rename(folder.join("other"), &path).unwrap();
        assert!(matches!(open(&path, &expected), Err(Refused::Replaced)));
        assert_eq!(fs::read_to_string(path_of(&file)).unwrap(), "first");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn owners_and_lengths_are_as_expected() {
        let folder = scratch("owner");
        let path = folder.join("file");
        fs::write(&path, "12345").unwrap();
        let me = nix::unistd::geteuid().as_raw();
        let of = |owners| ExpectedFile { owners: Some(owners), ..ExpectedFile::any(5) };
        let (mine, others) = ([me], [me + 1]);
        assert!(open(&path, &of(&mine)).is_ok());
        assert!(matches!(open(&path, &of(&others)), Err(Refused::Owner(owner)) if owner == me));
        assert!(matches!(open(&path, &ExpectedFile::any(4)), Err(Refused::TooLong(5))));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_below_a_folder_stay_there() {
        let folder = scratch("below");
        fs::write(folder.join("file"), "inside").unwrap();
        symlink("/file", folder.join("link")).unwrap();
        symlink("/../../../etc/passwd", folder.join("out")).unwrap();
        let root = self::folder(&folder).unwrap();
        let mut text = String::new();
        match open_below(&root, Path::new("/link"), &ExpectedFile::any(100)) {
            Ok(mut file) => file.read_to_string(&mut text).unwrap(),
            Err(Refused::System(error)) if error.raw_os_error() == Some(Errno::ENOSYS as i32) => return,
            Err(other) => panic!("{other}"),
        };
        assert_eq!(text, "inside");
        assert!(folder_below(&root, Path::new("/")).is_ok() && folder_below(&root, Path::new("/link")).is_err());
        assert!(open_below(&root, Path::new("/out"), &ExpectedFile::any(1 << 20)).unwrap_err().is_absence());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_in_layers_may_have_other_numbers_where_that_is_looked_at() {
        let mapped = Identity { device: 0x801, inode: 7 };
        let found = |device, inode| Identity { device, inode };
        assert!(mapped.is(mapped) && !mapped.is(found(0x801, 8)) && !mapped.is(found(0x2b, 7)));
        assert!(Identity::default().is(mapped));
        // The device of /proc has no number, nor has that of tmpfs.
        let opened = |path: &Path, in_layers| {
            open(path, &ExpectedFile { identity: mapped, in_layers, ..ExpectedFile::any(100) })
        };
        assert!(opened(Path::new("/proc/version"), true).is_ok());
        assert!(matches!(opened(Path::new("/proc/version"), false), Err(Refused::Replaced)));
        let in_memory = PathBuf::from(format!("/dev/shm/perfprop-files-{}", std::process::id()));
        if fs::write(&in_memory, "x").is_ok() {
            assert!(matches!(opened(&in_memory, true), Err(Refused::Replaced)));
            fs::remove_file(in_memory).unwrap();
        }
    }
}
