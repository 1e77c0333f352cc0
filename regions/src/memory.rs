//! Maps the memory that the layout describes, where a watcher finds it.
//!
//! A command that perfprop started finds a folder that is named after its process, and so do all that it starts: they
//! look for one of themselves and of the processes above. Nothing tells them of it, as another variable in their
//! environment would change what they count. They make files there. Any other program makes a file without a name,
//! which its user finds in `/proc/PID/fd`. Where neither can be had, the memory is the program's own.

use std::ffi::CString;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    Header, NAMES_AT, NODES, NODES_AT, Name, Node, SIZE, TEXT, TEXT_AT, THREADS, THREADS_AT, ThreadSlot,
};
use crate::snapshot::Source;
use crate::told::tell_once;

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

/// Bytes of names, of their text and of nodes that are asked for at once.
const BLOCK: usize = 4096;
const BLOCK_OF_NODES: usize = 8 * BLOCK;

/// The memory, which stays for as long as the process does.
#[derive(Debug)]
pub(crate) struct Memory {
    base: *const u8,
    /// The file that it is of, if any.
    file: Option<i32>,
    /// Whether the file couldn't grow any more.
    is_full: AtomicBool,
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
        let is_good = |file: &OwnedFd| is_long(file) && has_beginning(file.as_raw_fd());
        let tell = |path: &Path| {
            static ONCE: AtomicBool = AtomicBool::new(false);
            tell_once(&ONCE, format_args!("no file of regions can be made in {}: nobody sees them", path.display()));
        };
        let named = folder.as_deref().and_then(named).filter(is_good);
        if named.is_none() {
            folder.as_deref().map(tell);
        }
        let folder = folder.filter(|_| named.is_some());
        let file = named.or_else(|| unnamed().filter(is_good));
        // The file is left open, as that is how it is found.
        let file = file.map(std::os::fd::IntoRawFd::into_raw_fd);
        map(file).map(|base| Self { base, file, is_full: AtomicBool::new(false), folder })
    }

    /// Whether there is room in the file for these bytes, which nobody may touch before: a file system that is full would
    /// kill us. Where there was none once, none is looked for again.
    fn has_room(&self, offset: usize, length: usize) -> bool {
        let has_room = self.file.is_none_or(|file| !self.is_full.load(Ordering::Relaxed) && grow(file, offset, length));
        if !has_room {
            self.is_full.store(true, Ordering::Relaxed);
            static ONCE: AtomicBool = AtomicBool::new(false);
            let what = "the file system with the file of regions is full, or the memory";
            tell_once(&ONCE, format_args!("{what}: what there is no room for is not counted, or as '(other)'"));
        }
        has_room
    }

    /// The same for what grows in blocks, and is there up to `made`.
    fn has_block(&self, made: &mut usize, from: usize, length: usize, block: usize) -> bool {
        let end = from + length;
        if end <= *made {
            return true;
        }
        let (from, end) = (from.max(*made), end.next_multiple_of(block).min(SIZE));
        let has_room = self.has_room(from, end - from);
        if has_room {
            *made = end;
        }
        has_room
    }

    /// Makes room for a name at a number, and its text.
    pub(crate) fn add_name(&self, made: &mut Made, number: u32, text: usize, length: usize) -> bool {
        let at = NAMES_AT + number as usize * size_of::<Name>();
        self.has_block(&mut made.names, at, size_of::<Name>(), BLOCK)
            && self.has_block(&mut made.text, TEXT_AT + text, length, BLOCK)
    }

    /// Makes room for a node.
    pub(crate) fn add_node(&self, made: &mut Made, number: u32) -> bool {
        let at = NODES_AT + number as usize * size_of::<Node>();
        self.has_block(&mut made.nodes, at, size_of::<Node>(), BLOCK_OF_NODES)
    }

    /// Makes room for a slot that nobody had yet, with all its marks.
    pub(crate) fn add_thread(&self, slot: u32) -> bool {
        self.has_room(THREADS_AT + slot as usize * size_of::<ThreadSlot>(), size_of::<ThreadSlot>())
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

/// Up to where there is room for what grows in blocks.
#[derive(Debug, Default)]
pub(crate) struct Made {
    names: usize,
    text: usize,
    nodes: usize,
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

/// Makes room for what a table touches at once: the header, two names, the slot of threads that have ended, and the root.
fn has_beginning(file: i32) -> bool {
    let slot = offset_of!(ThreadSlot, marks);
    let begins = [(0, NAMES_AT + BLOCK), (TEXT_AT, BLOCK), (THREADS_AT, slot), (NODES_AT, BLOCK)];
    begins.into_iter().all(|(offset, length)| grow(file, offset, length))
}

/// Asks for a part of a file; false where there is no room for it. A file system that can't tell is taken to have room.
fn grow(file: i32, offset: usize, length: usize) -> bool {
    loop {
        #[expect(unsafe_code, reason = "a call of the kernel")]
        // SAFETY: it takes no pointer, and what is in the file stays.
        if unsafe { libc::fallocate(file, 0, offset as libc::off_t, length as libc::off_t) } == 0 {
            return true;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            error => return matches!(error, Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::ENODEV)),
        }
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
