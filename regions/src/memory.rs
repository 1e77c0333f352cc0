//! Maps the memory that the layout describes, where a watcher finds it.
//!
//! A command that perfprop started finds a folder that is named after its process, and so do all that it starts: they
//! look for one of themselves and of the processes above. Nothing tells them of it, as another variable in their
//! environment would change what they count. They make files there. Any other program makes a file without a name,
//! which its user finds in `/proc/PID/fd`. Where neither can be had, the memory is the program's own.

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    Header, NAMES_AT, NODES, NODES_AT, Name, Node, SIZE, TEXT, TEXT_AT, THREADS, THREADS_AT, ThreadSlot,
};
use crate::snapshot::Source;

/// A variable that names another folder for files than that of a command's process.
pub const FOLDER: &str = "PERFPROP_REGIONS";
/// Processes above a program that are looked at: no shell starts as many below one another.
const MOST_ABOVE: usize = 64;

/// The folder in which a command of this process, and all that it starts, make their files. It is in memory, so that no
/// count waits for a disk.
pub fn folder_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/dev/shm/perfprop-regions-{pid}"))
}
/// The name of a file without a folder, as `/proc/PID/fd` shows it behind `/memfd:`.
pub const MEMFD: &str = "perfprop-regions";

/// The memory, which stays for as long as the process does.
#[derive(Debug)]
pub(crate) struct Memory {
    base: *const u8,
    /// The folder that somebody made for it, where its file is.
    pub(crate) folder: Option<PathBuf>,
}

#[expect(unsafe_code, reason = "a pointer says nothing of who may use it")]
// SAFETY: all that is behind the pointer is atomic.
unsafe impl Send for Memory {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory of zeros; `None` where there is none to be had.
    pub(crate) fn new() -> Option<Self> {
        let folder = folder();
        let named = folder.as_deref().and_then(named).filter(is_long);
        let folder = folder.filter(|_| named.is_some());
        let file = named.or_else(|| unnamed().filter(is_long));
        // The file is left open, as that is how it is found.
        let file = file.map(std::os::fd::IntoRawFd::into_raw_fd);
        map(file).map(|base| Self { base, folder })
    }

    #[expect(unsafe_code, reason = "the memory is a file's: the compiler knows nothing of what it holds")]
    fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= SIZE, "within the memory");
        // SAFETY: there are as many bytes, which the layout aligns, any of them are a `T` of atomics, and nobody unmaps them.
        unsafe { &*self.base.add(offset).cast::<T>() }
    }

    /// A number anywhere in it.
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.at(offset)
    }

    pub(crate) fn header(&self) -> &Header {
        self.at(0)
    }

    pub(crate) fn name(&self, number: u32) -> &Name {
        self.at(NAMES_AT + number as usize * size_of::<Name>())
    }

    pub(crate) fn text(&self, offset: usize) -> &AtomicU8 {
        self.at(TEXT_AT + offset.min(TEXT - 1))
    }

    pub(crate) fn thread(&self, slot: u32) -> &ThreadSlot {
        self.at(THREADS_AT + (slot as usize).min(THREADS - 1) * size_of::<ThreadSlot>())
    }

    pub(crate) fn node(&self, number: u32) -> &Node {
        self.at(NODES_AT + (number as usize).min(NODES - 1) * size_of::<Node>())
    }
}

impl Source for Memory {
    fn read(&self, offset: usize, length: usize) -> io::Result<Vec<u8>> {
        let first = offset / 8 * 8;
        let words = (first..offset + length).step_by(8).map(|at| self.word(at).load(Ordering::Relaxed));
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        Ok(bytes[offset - first..][..length].to_vec())
    }
}

/// The folder that was made for this process or one above it, by its own user.
fn folder() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(FOLDER).filter(|folder| !folder.is_empty()) {
        return Some(folder.into());
    }
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: it takes nothing, and can't fail.
    let user = unsafe { libc::geteuid() };
    let above = std::iter::successors(Some(std::process::id()), |&pid| parent(pid)).take(MOST_ABOVE);
    let is_ours = |about: std::fs::Metadata| about.is_dir() && about.uid() == user;
    above.map(folder_of).find(|folder| std::fs::symlink_metadata(folder).is_ok_and(is_ours))
}

/// The process above; `None` above the first.
fn parent(pid: u32) -> Option<u32> {
    // pid (name) state ppid, where the name may be any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let parent = String::from_utf8_lossy(&stat).rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

/// A new file in the folder, for its user alone.
fn named(folder: &Path) -> Option<OwnedFd> {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (pid, made) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    // A program that ran as this process before may have left one.
    (made..made + 1000).find_map(|number| {
        let path = folder.join(format!("{pid}.{number}"));
        let path = CString::new(path.into_os_string().into_encoded_bytes()).ok()?;
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        #[expect(unsafe_code, reason = "a call of the kernel")]
        // SAFETY: the path ends with a zero.
        owned(unsafe { libc::open(path.as_ptr(), flags, 0o600) })
    })
}

fn unnamed() -> Option<OwnedFd> {
    let name = CString::new(MEMFD).ok()?;
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: the name ends with a zero.
    owned(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })
}

#[expect(unsafe_code, reason = "the kernel's number becomes a file of ours")]
fn owned(file: i32) -> Option<OwnedFd> {
    // SAFETY: the kernel has just opened it for us.
    (file >= 0).then(|| unsafe { OwnedFd::from_raw_fd(file) })
}

/// Makes a file as long as the layout; false where a limit forbids that.
#[expect(unsafe_code, reason = "calls of the kernel")]
fn is_long(file: &OwnedFd) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // Past its limit, a process would be killed.
    // SAFETY: the pointer is to a value of our own, the file is open.
    unsafe {
        libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) == 0
            && limit.rlim_cur >= SIZE as libc::rlim_t
            && libc::ftruncate(file.as_raw_fd(), SIZE as libc::off_t) == 0
    }
}

fn map(file: Option<i32>) -> Option<*const u8> {
    let flags = if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: the kernel chooses where, so that nothing else is there.
    let found =
        unsafe { libc::mmap(std::ptr::null_mut(), SIZE, access, flags | libc::MAP_NORESERVE, file.unwrap_or(-1), 0) };
    (found != libc::MAP_FAILED).then(|| found.cast_const().cast())
}
