//! Reads what the kernel says of processes: threads, names, descendants, CPU time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};
use nix::sys::signal::kill;
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::{Pid, geteuid};

use crate::threads::Stat;
use crate::units::{ClockTicks, CpuNs, CpuTime};

/// The threads of a process, its main thread included, in ascending order.
///
/// # Errors
/// Returns `NotFound` if there is no such process.
pub fn threads(pid: Pid) -> io::Result<Vec<Pid>> {
    let mut threads: Vec<_> = fs::read_dir(format!("/proc/{pid}/task"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .map(Pid::from_raw)
        .collect();
    threads.sort_unstable();
    Ok(threads)
}

/// The name of a process (`comm`), as the kernel has it.
pub fn name(pid: Pid) -> Option<String> {
    let name = text(&format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end_matches('\n').to_owned())
}

/// What a file of /proc says. The name of a process is any bytes: what is no text of it gets a sign for that.
pub(crate) fn text(path: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
}

/// `stat` of a process or of a thread; with the times of all its threads where it is a process.
pub(super) fn stat(task: Pid) -> Option<Stat> {
    Stat::parse(&text(&format!("/proc/{task}/stat")).ok()?)
}

/// `stat` of a thread of a process, the main thread or another one.
pub(super) fn stat_of_thread(pid: Pid, thread: Pid) -> Option<Stat> {
    Stat::parse(&text(&format!("/proc/{pid}/task/{thread}/stat")).ok()?)
}

/// The user id that a process runs as.
pub fn owner(pid: Pid) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(format!("/proc/{pid}")).ok().map(|metadata| metadata.uid())
}

/// Whether a process, or a thread of one, exists and has not yet ended. A process whose main thread
/// has ended lives as long as another thread of it.
pub fn is_alive(pid: Pid) -> bool {
    let lives = |thread: Pid| stat_of_thread(pid, thread).is_some_and(|stat| !stat.has_ended());
    // That of the main thread alone: for that of the process the kernel adds up the times of all its threads.
    lives(pid) || threads(pid).is_ok_and(|threads| threads.len() > 1 && threads.into_iter().any(lives))
}

/// The parent of a process that has ended and that this one has not waited for; `None` of others.
pub(crate) fn unwaited_parent(pid: Pid) -> Option<Pid> {
    let stat = stat(pid).filter(|stat| stat.state == 'Z' && !is_alive(pid))?;
    Some(Pid::from_raw(stat.parent))
}

/// A process or thread that is told from a later one with its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownTask {
    task: Pid,
    is_thread: bool,
    began: Option<ClockTicks>,
}

impl KnownTask {
    /// A process, all its threads.
    pub(crate) fn process(pid: Pid) -> Self {
        Self { task: pid, is_thread: false, began: began(pid) }
    }

    /// A thread alone, be it the main thread of its process.
    pub(crate) fn thread(thread: Pid) -> Self {
        Self { task: thread, is_thread: true, began: began(thread) }
    }

    /// Its number, which may be another task's by now.
    pub(crate) fn pid(&self) -> Pid {
        self.task
    }

    /// It, if it has not yet ended, and all its living descendants.
    pub(crate) fn family(&self) -> Vec<Self> {
        let descendants = descendants(self.task).into_iter().map(Self::process);
        let family = std::iter::once(*self).chain(descendants).collect();
        // Asked afterwards: they are its descendants only if the number was still its own.
        if self.is_alive() { family } else { Vec::new() }
    }

    /// A task that had its number earlier.
    #[cfg(test)]
    pub(crate) fn earlier(self) -> Self {
        Self { began: self.began.map(|began| began - ClockTicks(1)), ..self }
    }

    /// Whether it has not yet ended.
    pub(crate) fn is_alive(&self) -> bool {
        let Some(stat) = stat_of_thread(self.task, self.task) else { return false };
        let lives = || !stat.has_ended() || !self.is_thread && is_alive(self.task);
        Some(stat.began) == self.began && lives()
    }
}

/// When a task began, since the machine runs.
fn began(task: Pid) -> Option<ClockTicks> {
    stat_of_thread(task, task).map(|stat| stat.began)
}

/// Whether a task exists and has not begun to exit.
pub fn runs(task: Pid) -> bool {
    stat(task).is_some_and(|stat| !stat.ends())
}

/// Whether a thread is there and not about to end: the kernel sums up nothing of the others of its process, as for
/// [`runs`].
pub fn thread_runs(thread: Pid) -> bool {
    stat_of_thread(thread, thread).is_some_and(|stat| !stat.ends())
}

/// Whether a process that has just executed a program is hidden by the kernel, as it is where the program has more
/// rights than who started it, or may not be read by its user.
///
/// Its files in /proc are root's then. Its folder, which stays its user's, is left out where /proc hides what is
/// others' (`hidepid`).
pub fn is_hidden(pid: Pid) -> bool {
    let Some(folder) = Owner::of(&format!("/proc/{pid}")) else { return is_left_out(pid) };
    let files = Owner::of(&format!("/proc/{pid}/status"));
    files.is_some_and(|files| files.is_of_hidden(folder, geteuid().is_root(), || has_two_users(pid)))
}

/// Whether there is a process that /proc leaves out.
fn is_left_out(pid: Pid) -> bool {
    has_proc_of_this_namespace() && kill(pid, None) != Err(Errno::ESRCH)
}

/// Whether /proc numbers processes as this process does. That of another PID namespace, as it is where nobody mounted
/// one after `unshare --pid`, has others under these numbers.
pub fn has_proc_of_this_namespace() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own == Path::new(&Pid::this().to_string()))
}

/// Whether there is a process or thread of another user that /proc leaves out.
pub fn is_out_of_sight(pid: Pid) -> bool {
    kill(pid, None) == Err(Errno::EPERM) && is_left_out(pid) && Owner::of(&format!("/proc/{pid}")).is_none()
}

/// Whether a process runs as another user or group than who started it, as a program does that is setuid or setgid.
fn has_two_users(pid: Pid) -> bool {
    let status = text(&format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().filter_map(|line| line.strip_prefix("Uid:").or_else(|| line.strip_prefix("Gid:")));
    let mut real_and_effective = ids.map(|ids| ids.split_whitespace().take(2).collect::<Vec<_>>());
    real_and_effective.any(|ids| ids.first() != ids.last())
}

/// The user and the group that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    fn of(path: &str) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).ok().map(|metadata| Self { user: metadata.uid(), group: metadata.gid() })
    }

    /// Whether files in /proc of this owner are those of a hidden process, whose folder belongs to whom it runs as.
    ///
    /// For root that is seldom: the files of what has become another user by itself, as `su` does, are root's as well,
    /// and it is counted. Then it is one user; and root of a user namespace sees files that are the machine's root's.
    fn is_of_hidden(self, folder: Self, by_root: bool, has_two_users: impl FnOnce() -> bool) -> bool {
        match by_root {
            true => self != folder && (self.user != 0 || has_two_users()),
            false => self != folder || self.user == 0,
        }
    }
}

/// The CPU time of a task, which the kernel keeps to the nanosecond; `None` where it doesn't tell.
pub fn cpu_time(task: Pid) -> Option<CpuNs> {
    let schedstat = fs::read_to_string(format!("/proc/{task}/schedstat")).ok()?;
    schedstat.split_whitespace().next()?.parse().ok().map(CpuNs)
}

/// The CPU time that this process, this thread or all children that were waited for have used.
pub fn used(who: UsageWho) -> CpuTime {
    let nanoseconds = |time: TimeVal| CpuNs(u64::try_from(time.num_nanoseconds()).unwrap_or(0));
    getrusage(who).map_or_else(
        |_| CpuTime::default(),
        |usage| CpuTime { user_ns: nanoseconds(usage.user_time()), system_ns: nanoseconds(usage.system_time()) },
    )
}

/// All living descendants of a process, parents before their children.
///
/// The kernel lists children by thread, so a process that is being born may be missed: whoever
/// ends them all asks again until there are none.
pub fn descendants(pid: Pid) -> Vec<Pid> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() {
        found.extend(children(found[next]));
        next += 1;
    }
    found
}

fn children(pid: Pid) -> Vec<Pid> {
    let threads = threads(pid).unwrap_or_default();
    let lists =
        threads.iter().filter_map(|thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|word| word.parse().ok()).map(Pid::from_raw).collect::<Vec<_>>()
        })
        .collect()
}

/// The folders that commands are looked for in: where nobody says, those of execvp(3).
pub(crate) fn command_folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).collect()
}

/// Whether a file looks like a program that could be executed by its path.
pub fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// How many descriptors this process could open before it raised the limit, softly and at most.
static LIMIT_BEFORE: OnceLock<(u64, u64)> = OnceLock::new();

/// The limit of descriptors that a command is to have: that which perfprop was given.
pub(super) fn file_limit_before() -> Option<(u64, u64)> {
    LIMIT_BEFORE.get().copied()
}

/// Lets this process open as many descriptors as it ever may.
pub(super) fn raise_file_limit() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = LIMIT_BEFORE.set((soft, hard));
        // Where it can't be raised, the error that follows says how many are needed.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::process::Command;

    use super::*;

    #[test]
    fn what_has_rights_of_its_own_is_hidden_and_what_has_become_another_user_is_not() {
        let owner = |user, group| Owner { user, group };
        let (user, root, of_machine) = (owner(1000, 1000), owner(0, 0), owner(65534, 65534));
        let hidden = |files: Owner, folder, by_root, has_two| files.is_of_hidden(folder, by_root, || has_two);
        // By a plain user: what is plain, may not be read, is root's and setuid, is another user's and setuid.
        let by_user = [(user, user), (root, user), (root, owner(0, 1000)), (root, owner(1001, 1000))];
        assert_eq!(by_user.map(|(files, folder)| hidden(files, folder, false, false)), [false, true, true, true]);
        // By root: what is plain, is a user's and setuid, a group's and setgid, what has become a user by itself, and
        // is that user's from its next exec on.
        assert!(!hidden(root, root, true, false));
        assert!(hidden(root, owner(1000, 0), true, true) && hidden(root, owner(0, 1000), true, true));
        assert!(!hidden(root, user, true, false) && !hidden(user, user, true, false));
        // By root of a user namespace: what may not be read there.
        assert!(hidden(of_machine, root, true, false));
    }

    #[test]
    fn this_process_is_one_user_and_neither_hidden_nor_left_out() {
        let me = Pid::this();
        assert!(!has_two_users(me) && !is_hidden(me) && !is_left_out(Pid::from_raw(i32::MAX)));
    }

    #[test]
    fn this_process_has_itself_as_a_thread() {
        let me = nix::unistd::getpid();
        assert!(threads(me).unwrap().contains(&me));
        assert!(is_alive(me) && runs(me));
        assert!(cpu_time(nix::unistd::gettid()).is_none_or(|time| time.0 > 0));
        assert_eq!(owner(me), Some(nix::unistd::geteuid().as_raw()));
    }

    #[test]
    fn a_name_may_be_any_bytes() {
        let name = std::ffi::CString::new(b"\xff) S (\xfe".to_vec()).unwrap();
        let named = std::thread::spawn(move || {
            nix::sys::prctl::set_name(&name).unwrap();
            let task = nix::unistd::gettid();
            (is_alive(task), runs(task), self::name(task))
        });
        assert_eq!(named.join().unwrap(), (true, true, Some("\u{fffd}) S (\u{fffd}".into())));
    }

    #[test]
    fn a_process_that_never_was_has_no_threads() {
        let nobody = Pid::from_raw(i32::MAX);
        assert_eq!(threads(nobody).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(!is_alive(nobody));
        assert_eq!(name(nobody), None);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_task() {
        let me = nix::unistd::getpid();
        let (process, thread) = (KnownTask::process(me), KnownTask::thread(nix::unistd::gettid()));
        assert!(process.is_alive() && thread.is_alive());
        assert!(!process.earlier().is_alive() && process.earlier().family().is_empty());
        assert!(!KnownTask::process(Pid::from_raw(i32::MAX)).is_alive());
        let ended = std::thread::spawn(|| KnownTask::thread(nix::unistd::gettid())).join().unwrap();
        // The kernel may take a moment to forget a thread that was joined.
        while ended.is_alive() {
            std::thread::yield_now();
        }
        assert!(process.is_alive());
    }

    #[test]
    fn a_child_and_its_child_are_descendants() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(shell.id()).unwrap());
        while descendants(pid).is_empty() {
            std::thread::yield_now();
        }
        let sleep = descendants(pid)[0];
        nix::sys::signal::kill(sleep, nix::sys::signal::Signal::SIGKILL).unwrap();
        shell.wait().unwrap();
        assert!(!is_alive(pid));
    }
}
