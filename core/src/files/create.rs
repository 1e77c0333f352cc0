//! Creates files, unless asked otherwise for their owner alone, under their names once they are whole. What was there
//! keeps its permissions.
//!
//! What is measured names commands with their arguments, functions and paths: it is nobody else's. In a folder
//! that others write to, such as `/tmp`, somebody may have put a link where a file is about to be made. So a
//! file has no name while it is written, and leaves nothing when its process is killed. Then it gets one that nobody
//! can know, and at once its own, which replaces whatever has that:
//!
//! ```text
//! write  ── link ──>  .perfprop-8a1c03e5b7d94f26.part  ── rename ──>  run.jsonl
//! ```
//!
//! Where a file system has no files without names, it has the name that nobody can know from its beginning.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::{geteuid, linkat};

use super::inherited::inherited;
use super::lock::{is_written, mark_written};
use super::path_of;

/// Reading and writing for the owner alone.
const PRIVATE: u32 = 0o600;

/// Reading and writing for all that the process's mask doesn't forbid it.
const READABLE: u32 = 0o666;

/// Whoever else may write to a folder: its group, and all.
const OTHERS_WRITE: u32 = 0o022;

/// How names of files begin and end that aren't whole.
const PARTIAL: &str = ".perfprop-";
const PARTIAL_ENDING: &str = ".part";

/// How many names are tried for a file.
const MAX_NAMES: u32 = 10_000;

/// Removes files of a folder that never got their names, where nobody writes any more.
pub fn remove_partial(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let is_partial = |name: &str| name.starts_with(PARTIAL) && name.ends_with(PARTIAL_ENDING);
    for entry in entries.filter(|entry| is_partial(&entry.file_name().to_string_lossy())) {
        drop(fs::remove_file(entry.path()));
    }
}

/// Where a file is on its way to its name.
#[derive(Debug)]
enum Place {
    /// Nowhere: its name will be linked to it.
    Nameless,
    /// Under a name that nobody can know.
    Beside(PathBuf),
    /// Under its name.
    There,
}

/// A file on its way to its name; dropped before it has that, it goes.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    now: Place,
    to: PathBuf,
    /// Whether its name was taken for it: it is free again if nothing comes of the file.
    has_taken_name: bool,
}

impl PartialFile {
    /// Begins what will be the file at `to`; what is there stays until then. A link is followed where only its
    /// owner could have made it. A device, a pipe or what is open already is written to as it is.
    ///
    /// # Errors
    /// The operating system's; a link in a folder that others write to; a file that another process still writes.
    pub fn create(to: &Path) -> io::Result<Self> {
        let there = |file| Self { file, now: Place::There, to: to.to_owned(), has_taken_name: false };
        if let Some(file) = inherited(to) {
            return file.map(there);
        }
        let Ok(found) = fs::symlink_metadata(to) else { return Self::beside(to.to_owned()) };
        if found.is_symlink() {
            refuse_link(to)?;
        }
        let meant = fs::metadata(to);
        if to.starts_with("/proc") || meant.as_ref().is_ok_and(is_special) {
            return OpenOptions::new().write(true).open(to).map(there);
        }
        let to = if found.is_symlink() { fs::canonicalize(to)? } else { to.to_owned() };
        refuse_written(&to)?;
        Self::beside(to)
    }

    /// Begins a file that wasn't there: `stem.ending`, or `stem-1.ending` and so on. Its name is taken at once.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create_new(folder: &Path, stem: &str, ending: &str) -> io::Result<Self> {
        for number in 0..MAX_NAMES {
            let name = if number == 0 { format!("{stem}.{ending}") } else { format!("{stem}-{number}.{ending}") };
            let to = folder.join(name);
            match new_file(&to) {
                Ok(_) => {
                    let mut part = Self::beside(to)?;
                    part.has_taken_name = true;
                    return Ok(part);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", to.display()))),
            }
        }
        Err(io::Error::other(format!("{} has {MAX_NAMES} files of that name already", folder.display())))
    }

    /// Begins what will be a file that whoever may by the process's mask can read, such as a page. A link at `to` is
    /// replaced.
    ///
    /// # Errors
    /// The operating system's.
    pub fn create_readable(to: &Path) -> io::Result<Self> {
        Self::beside_with(to.to_owned(), READABLE)
    }

    fn beside(to: PathBuf) -> io::Result<Self> {
        Self::beside_with(to, PRIVATE)
    }

    fn beside_with(to: PathBuf, mode: u32) -> io::Result<Self> {
        if to.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        // It would be refused once all is written.
        if let Err(error) = fs::symlink_metadata(&to)
            && error.kind() == io::ErrorKind::InvalidFilename
        {
            return Err(error);
        }
        let mut options = OpenOptions::new();
        options.write(true).mode(mode);
        let nameless = options.clone().custom_flags(OFlag::O_TMPFILE.bits()).open(folder_of(&to));
        // By that it will be linked.
        let has_path = |file: &File| path_of(file).exists();
        let (file, now) = match nameless {
            Ok(file) if has_path(&file) => (file, Place::Nameless),
            Ok(_) | Err(_) => {
                let now = name_beside(&to);
                (options.create_new(true).open(&now)?, Place::Beside(now))
            }
        };
        let part = Self { file, now, to, has_taken_name: false };
        part.take_permissions();
        Ok(part)
    }

    /// Takes the permissions of this user's file that has the name now. Not every file system has some to set.
    fn take_permissions(&self) {
        let found = fs::symlink_metadata(&self.to).ok();
        if let Some(found) = found.filter(|found| found.is_file() && found.uid() == geteuid().as_raw()) {
            let _ = self.file.set_permissions(Permissions::from_mode(found.mode() & 0o777));
        }
    }

    /// The open file, for who goes on to write after it has its name.
    ///
    /// # Errors
    /// The operating system's.
    pub fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives it its name; what had that is gone. Until it is closed everywhere, nobody else [creates](Self::create) a
    /// file of that name.
    ///
    /// # Errors
    /// The operating system's.
    pub fn put(mut self) -> io::Result<PathBuf> {
        if !matches!(self.now, Place::There) {
            mark_written(&self.file);
        }
        if let Place::Nameless = self.now {
            let now = name_beside(&self.to);
            let open = path_of(&self.file);
            linkat(AT_FDCWD, &open, AT_FDCWD, &now, AtFlags::AT_SYMLINK_FOLLOW)?;
            self.now = Place::Beside(now);
        }
        if let Place::Beside(now) = &self.now {
            fs::rename(now, &self.to)?;
        }
        self.now = Place::There;
        Ok(std::mem::take(&mut self.to))
    }

    /// Gives it its name; what had that and wasn't empty is kept as `FILE.old`.
    ///
    /// # Errors
    /// The operating system's; another process has begun to write a file of that name.
    pub fn put_keeping_old(self) -> io::Result<PathBuf> {
        if !matches!(self.now, Place::There) {
            refuse_written(&self.to)?;
            if fs::symlink_metadata(&self.to).is_ok_and(|found| found.is_file() && found.len() > 0) {
                let mut old = self.to.clone().into_os_string();
                old.push(".old");
                fs::rename(&self.to, old)?;
            }
        }
        self.put()
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        match &self.now {
            Place::There => return,
            Place::Nameless => {}
            Place::Beside(now) => drop(fs::remove_file(now)),
        }
        if self.has_taken_name {
            let _ = fs::remove_file(&self.to);
        }
    }
}

/// Opens a file to write behind what is in it, and makes it if there is none.
///
/// # Errors
/// The operating system's; a link in a folder that others write to.
pub fn append(path: &Path) -> io::Result<File> {
    if let Some(file) = inherited(path) {
        return file;
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(PRIVATE);
    if is_shared(&folder_of(path)) {
        refuse_link(path)?;
        options.custom_flags(OFlag::O_NOFOLLOW.bits());
    }
    options.open(path)
}

fn new_file(path: &Path) -> io::Result<File> {
    // A name that exists is an error, be it of a link.
    OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(path)
}

fn refuse_link(path: &Path) -> io::Result<()> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    match is_link && is_shared(&folder_of(path)) {
        true => Err(io::Error::other("it is a link in a folder that others write to, and isn't followed")),
        false => Ok(()),
    }
}

/// What another process still writes would be nowhere once its name is another file's.
fn refuse_written(path: &Path) -> io::Result<()> {
    let is_regular = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    match is_regular && is_written(path) {
        true => Err(io::Error::other("another perfprop is writing it; choose another name (-o)")),
        false => Ok(()),
    }
}

/// Whether others than this user and root can put something into a folder.
fn is_shared(folder: &Path) -> bool {
    let is_others = |found: Metadata| {
        let is_own = found.uid() == 0 || found.uid() == geteuid().as_raw();
        found.mode() & OTHERS_WRITE != 0 || !is_own
    };
    fs::metadata(folder).is_ok_and(is_others)
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// A name in the folder of `to` that nobody can know.
fn name_beside(to: &Path) -> PathBuf {
    folder_of(to).join(format!("{PARTIAL}{:016x}{PARTIAL_ENDING}", unpredictable()))
}

fn is_special(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device() || kind.is_fifo() || kind.is_socket()
}

/// A number that nobody else can know: the keys of the hasher are random.
fn unpredictable() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::collections::BTreeSet;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use nix::fcntl::{FcntlArg, FdFlag, fcntl};

    use super::*;

    /// A folder of this test with these permissions.
    fn folder(name: &str, mode: u32) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("perfprop-files-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, PermissionsExt::from_mode(mode)).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn write(mut part: PartialFile, text: &str) -> PathBuf {
        part.write_all(text.as_bytes()).unwrap();
        part.put().unwrap()
    }

    #[test]
    fn a_file_is_its_owners_and_has_its_name_once_it_is_whole() {
        let folder = folder("whole", 0o755);
        let to = folder.join("a");
        fs::write(&to, "before").unwrap();
        let part = PartialFile::create(&to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "before");
        if matches!(part.now, Place::Nameless) {
            assert_eq!(names(&folder), ["a"]);
        }
        let path = write(part, "after");
        assert_eq!((path == to, fs::read_to_string(&to).unwrap().as_str()), (true, "after"));
        // What was there keeps its permissions.
        fs::set_permissions(&to, Permissions::from_mode(0o640)).unwrap();
        write(PartialFile::create(&to).unwrap(), "later");
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, 0o640);
        fs::remove_file(&to).unwrap();
        write(PartialFile::create(&to).unwrap(), "new");
        assert_eq!(fs::metadata(&to).unwrap().mode() & 0o777, PRIVATE);
        // One that isn't whole leaves nothing.
        drop(PartialFile::create(&to).unwrap());
        assert_eq!(names(&folder), ["a"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_was_there_is_kept_beside() {
        let folder = folder("old", 0o755);
        let to = folder.join("a");
        for text in ["1", "2", "3"] {
            let mut part = PartialFile::create(&to).unwrap();
            part.write_all(text.as_bytes()).unwrap();
            part.put_keeping_old().unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            (names(&folder), read("a"), read("a.old")),
            (vec!["a".into(), "a.old".into()], "3".into(), "2".into())
        );
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_that_is_still_written_is_not_replaced() {
        let folder = folder("written", 0o755);
        let to = folder.join("a");
        let [first, second] = [(); 2].map(|()| PartialFile::create(&to).unwrap());
        let mut still_open = first.file().unwrap();
        first.put_keeping_old().unwrap();
        // One that began at the same time, and one that comes later.
        let mut errors = [second.put_keeping_old().unwrap_err(), PartialFile::create(&to).unwrap_err()].into_iter();
        assert!(errors.all(|error| error.to_string().contains("another perfprop is writing it")));
        still_open.write_all(b"whole").unwrap();
        assert_eq!((names(&folder), fs::read_to_string(&to).unwrap()), (vec!["a".into()], "whole".into()));
        drop(still_open);
        PartialFile::create(&to).unwrap().put_keeping_old().unwrap();
        assert_eq!(names(&folder), ["a", "a.old"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn links_are_followed_only_where_nobody_else_could_have_made_them() {
        let (own, shared) = (folder("own", 0o755), folder("shared", 0o1777));
        let target = own.join("target");
        fs::write(&target, "precious").unwrap();
        for folder in [&own, &shared] {
            symlink(&target, folder.join("link")).unwrap();
        }
        let error = PartialFile::create(&shared.join("link")).unwrap_err();
        assert!(error.to_string().contains("link in a folder that others write to"), "{error}");
        assert!(append(&shared.join("link")).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        // A link to nothing is no way to make a file elsewhere.
        symlink(own.join("new"), shared.join("dangling")).unwrap();
        assert!(PartialFile::create(&shared.join("dangling")).is_err() && append(&shared.join("dangling")).is_err());
        assert!(!own.join("new").exists());
        write(PartialFile::create(&own.join("link")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine");
        assert!(fs::symlink_metadata(own.join("link")).unwrap().is_symlink());
        // One that comes after the part was begun is replaced, not followed.
        let part = PartialFile::create(&shared.join("late")).unwrap();
        symlink(&target, shared.join("late")).unwrap();
        write(part, "late");
        assert_eq!((fs::read_to_string(&target).unwrap().as_str(), names(&shared).len()), ("mine", 3));
        [own, shared].into_iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }

    #[test]
    fn parts_have_names_that_nobody_can_know() {
        let folder = folder("names", 0o1777);
        let beside: BTreeSet<_> = (0..20).map(|_| name_beside(&folder.join("a"))).collect();
        assert!(beside.len() == 20 && beside.iter().all(|name| name.parent() == Some(&folder)));
        let mut part = PartialFile::create(&folder.join("a")).unwrap();
        // As where a file system has no files without names.
        part.now = Place::Beside(beside.into_iter().next().unwrap());
        drop(part);
        assert!(names(&folder).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn new_files_are_numbered_and_replace_nothing() {
        let folder = folder("new", 0o755);
        symlink("/nowhere", folder.join("a.txt")).unwrap();
        let write_new = |text: &str| write(PartialFile::create_new(&folder, "a", "txt").unwrap(), text);
        assert_eq!([write_new("1"), write_new("2")], ["a-1.txt", "a-2.txt"].map(|name| folder.join(name)));
        assert_eq!(fs::metadata(folder.join("a-2.txt")).unwrap().mode() & 0o777, PRIVATE);
        drop(PartialFile::create_new(&folder, "a", "txt").unwrap());
        assert_eq!(names(&folder), ["a-1.txt", "a-2.txt", "a.txt"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_open_is_written_to_where_its_descriptor_is() {
        let folder = folder("open", 0o755);
        let mut log = File::create(folder.join("log")).unwrap();
        // As one that a process is started with.
        fcntl(&log, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
        for name in ["/dev/fd", "/proc/self/fd"].map(|folder| format!("{folder}/{}", log.as_raw_fd())) {
            log.write_all(b"before ").unwrap();
            write(PartialFile::create(Path::new(&name)).unwrap(), "whole ");
            append(Path::new(&name)).unwrap().write_all(b"appended ").unwrap();
        }
        log.write_all(b"after").unwrap();
        let text = fs::read_to_string(folder.join("log")).unwrap();
        assert_eq!(text, "before whole appended before whole appended after");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn devices_and_open_files_are_written_to_as_they_are() {
        for name in ["/dev/null", "/dev/stderr", "/proc/self/fd/2"] {
            let Ok(mut part) = PartialFile::create(Path::new(name)) else { continue };
            part.write_all(b"").unwrap();
            assert_eq!(part.put().unwrap(), Path::new(name));
        }
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        assert!(PartialFile::create(Path::new("/")).is_err());
    }
}
