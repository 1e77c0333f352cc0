//! Opens the events of a thread as one group, and reads it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::names::CountedEvent;
use super::page::UserPage;
use super::{MOST, Readings};

/// `struct perf_event_attr` as of its first version, which all kernels take.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

const DISABLED: u64 = 1;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// Times enabled and running, and all events of the group in one read.
const GROUP_WITH_TIMES: u64 = 1 | 1 << 1 | 1 << 3;
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// `PERF_EVENT_IOC_ENABLE`.
const ENABLE: libc::Ioctl = 0x2400;
/// The part of its descriptors that a program keeps for itself.
const KEPT: libc::rlim_t = 2;

/// Events of this thread that are read at once.
#[derive(Debug)]
pub(crate) struct EventGroup {
    /// The first is the leader.
    files: Vec<OwnedFd>,
    /// A page for each event where the CPU's counters can be read without the kernel; otherwise none.
    pages: Vec<UserPage>,
}

impl EventGroup {
    /// Opens events on this thread.
    ///
    /// # Errors
    /// Returns the kernel's error of the first that can't be opened.
    pub(crate) fn open(events: &[CountedEvent]) -> io::Result<Self> {
        let mut files: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for event in events {
            files.push(open(event, files.first())?);
        }
        // An event that joins a group which counts doesn't count before the thread runs the next time.
        files.first().map_or(Ok(()), enable)?;
        // All of them or none: the kernel is asked once however many events it has to read.
        let pages: Option<Vec<_>> = files.iter().map(UserPage::of).collect();
        Ok(Self { files, pages: pages.unwrap_or_default() })
    }

    /// What was counted so far; `None` where that can't be read.
    #[inline]
    pub(crate) fn read(&self) -> Option<Readings> {
        if let Some(readings) = UserPage::read_all(&self.pages) {
            return Some(readings);
        }
        // Number of events, time enabled, time running, values.
        let mut words = [0_u64; 3 + MOST];
        let leader = self.files.first()?.as_raw_fd();
        #[expect(unsafe_code, reason = "a call of the kernel")]
        // SAFETY: the buffer is our own, and as long as is said.
        let read = unsafe { libc::read(leader, words.as_mut_ptr().cast(), size_of_val(&words)) };
        let [_, enabled_ns, running_ns, values @ ..] = words;
        let is_whole = usize::try_from(read).is_ok_and(|read| read >= (3 + self.files.len()) * size_of::<u64>());
        is_whole.then_some(Readings { values, enabled_ns, running_ns })
    }

    /// Gives up what a forked child has of its parent's group. The kernel doesn't give it the pages.
    pub(crate) fn abandon(self) {
        self.pages.into_iter().for_each(std::mem::forget);
    }
}

fn open(event: &CountedEvent, leader: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let exclude = |is_excluded: bool, flag: u64| if is_excluded { flag } else { 0 };
    let attributes = Attributes {
        kind: event.kind,
        size: size_of::<Attributes>() as u32,
        config: event.config,
        read_format: if leader.is_none() { GROUP_WITH_TIMES } else { 0 },
        flags: exclude(leader.is_none(), DISABLED)
            | exclude(event.without_user, EXCLUDE_USER)
            | exclude(event.without_kernel, EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR),
        ..Attributes::default()
    };
    let (this_thread, any_cpu) = (0, -1);
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: the pointer is to a value of our own, which says how long it is.
    let file = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, this_thread, any_cpu, leader, CLOSE_ON_EXEC)
    };
    let file = i32::try_from(file).ok().filter(|&file| file >= 0).ok_or_else(io::Error::last_os_error)?;
    #[expect(unsafe_code, reason = "the kernel's number becomes a file of ours")]
    // SAFETY: the kernel has just opened it for us.
    let owned = unsafe { OwnedFd::from_raw_fd(file) };
    if is_scarce(file) { Err(io::Error::from_raw_os_error(libc::EMFILE)) } else { Ok(owned) }
}

/// Begins to count.
fn enable(leader: &OwnedFd) -> io::Result<()> {
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: it takes a number.
    let done = unsafe { libc::ioctl(leader.as_raw_fd(), ENABLE, 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether so many descriptors are open that the program should have the rest.
fn is_scarce(file: i32) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    #[expect(unsafe_code, reason = "a call of the kernel")]
    // SAFETY: the pointer is to a value of our own.
    let is_known = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 };
    is_known && file as libc::rlim_t >= limit.rlim_cur / KEPT
}

/// Those of the named events that this thread can open together, and what is to be said of the others.
pub(super) fn possible(named: &[(&str, Option<CountedEvent>)]) -> (Vec<CountedEvent>, Vec<String>) {
    let (mut events, mut complaints) = (Vec::new(), Vec::new());
    let mut files: Vec<OwnedFd> = Vec::new();
    for (name, event) in named {
        let shown = name.escape_debug();
        let Some(event) = event else {
            complaints.push(format!(
                "no event is called '{shown}': take perf's hardware, cache and software events, or rNNN; regions go on without it"
            ));
            continue;
        };
        if events.len() == MOST {
            complaints
                .push(format!("'{shown}' is the {}th event, and a region has room for {MOST}: name fewer", MOST + 1));
            break;
        }
        match opened(event, files.first()) {
            Ok((event, file)) => {
                events.push(event);
                files.push(file);
            }
            Err(error) => {
                complaints.push(format!("'{shown}' can't be counted: {}; regions go on without it", why(event, &error)))
            }
        }
    }
    (events, complaints)
}

/// Opens an event, in user space alone where the kernel may not be counted.
fn opened(event: &CountedEvent, leader: Option<&OwnedFd>) -> io::Result<(CountedEvent, OwnedFd)> {
    let error = match open(event, leader) {
        Ok(file) => return Ok((event.clone(), file)),
        Err(error) => error,
    };
    match event.of_user().filter(|_| error.kind() == io::ErrorKind::PermissionDenied) {
        Some(of_user) => Ok((of_user.clone(), open(&of_user, leader)?)),
        None => Err(error),
    }
}

/// Why the kernel refused an event, and what to do.
pub(crate) fn why(event: &CountedEvent, error: &io::Error) -> String {
    let known = match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EOPNOTSUPP) if event.is_hardware() => {
            "this machine has no counter for it (a virtual machine often has none): take software events such as task-clock"
        }
        Some(libc::ENOENT | libc::EOPNOTSUPP) => "this kernel doesn't know it",
        Some(libc::EACCES | libc::EPERM) => {
            "the kernel doesn't allow it: as root, sysctl kernel.perf_event_paranoid=1 (in a container, its seccomp profile forbids it)"
        }
        Some(libc::ENOSYS) => "the kernel has no perf_event_open, or a seccomp profile forbids it",
        Some(libc::EINVAL) => "the CPU can't count it together with the events before it: name fewer events",
        Some(libc::EMFILE | libc::ENFILE) => "each thread needs a descriptor for each event: raise ulimit -n",
        _ => return error.to_string(),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic")]

    use super::*;

    #[test]
    fn attributes_are_as_long_as_the_kernels_first_version() {
        assert_eq!(size_of::<Attributes>(), 64);
    }

    #[test]
    fn what_cannot_be_counted_is_told_with_what_to_do() {
        let event = |name: &str| CountedEvent::of(name).unwrap();
        let why = |name: &str, errno: i32| why(&event(name), &io::Error::from_raw_os_error(errno));
        assert!(why("cycles", libc::ENOENT).contains("task-clock"));
        assert!(why("cgroup-switches", libc::ENOENT).contains("this kernel"));
        assert!(why("cycles", libc::EACCES).contains("perf_event_paranoid"));
        assert!(why("cycles", libc::EINVAL).contains("name fewer"));
        assert!(why("cycles", libc::EMFILE).contains("ulimit"));
        assert!(why("cycles", libc::E2BIG).contains("os error 7"));
        let (events, complaints) = possible(&[("no\nsuch", None)]);
        assert!(events.is_empty() && complaints.len() == 1 && complaints[0].contains("'no\\nsuch'"), "{complaints:?}");
    }
}
