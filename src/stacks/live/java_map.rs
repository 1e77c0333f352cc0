//! Asks Java for the names of the code that it compiled: it writes its perf map when `jcmd PID Compiler.perfmap` says so.
//!
//! Java lists nothing by itself before it ends. perfprop says what `jcmd` would, which needs no JDK. `jcmd` also looks for the
//! socket in its own `/tmp`: of a process that has another one it finds none, and signals on, so that the process prints the
//! stacks of its threads each time.
//!
//! ```text
//! perfprop  creates .attach_pid7, sends SIGQUIT once     1 ␀ jcmd ␀ Compiler.perfmap ␀ ␀ ␀
//! Java      makes the socket .java_pid7                                                       writes the map; 0 ↵
//! ```
//!
//! Both files lie in `/tmp`, as the process sees it.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{Pid, UnlinkatFlags, geteuid, unlinkat};

use crate::files;

/// What Java compiles first is compiled by then.
const FIRST: Duration = Duration::from_secs(1);

/// The first interval between questions, and the longest.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// How long Java may take until it listens, and as long again until it answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether it listens.
const LOOKING: Duration = Duration::from_millis(50);

/// The request, in the first version of the protocol, which every Java knows: a command and its three arguments.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";

/// What an answer to a request that was fulfilled begins with.
const FULFILLED: &[u8; 2] = b"0\n";

/// The bit of SIGQUIT in the masks of `/proc/PID/status`.
const QUIT: u64 = 1 << (nix::libc::SIGQUIT - 1);

/// A process that is asked when it is Java, and when that is next.
#[derive(Debug)]
pub(super) struct JavaMap {
    process: Arc<JavaProcess>,
    due: Instant,
    interval: Duration,
    answer: Option<Receiver<bool>>,
}

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JavaAnswer {
    /// Nothing new.
    None,
    /// The map is written.
    Written,
    /// There is no answer, and there won't be one.
    Refused,
}

#[derive(Debug)]
struct JavaProcess {
    pid: i32,
    /// The number that it has in its own namespace.
    inside: i32,
    /// Its `/tmp`.
    folder: OwnedFd,
}

impl JavaMap {
    /// Of a process that makes code. `inside` is the number that it has in its own namespace, `root` where its paths begin.
    pub(super) fn of(pid: i32, inside: i32, root: Option<&OwnedFd>) -> Option<Self> {
        let folder = files::folder_below(root?, Path::new("/tmp")).ok()?;
        Some(Self::at(JavaProcess { pid, inside, folder }))
    }

    fn at(process: JavaProcess) -> Self {
        Self { process: Arc::new(process), due: Instant::now() + FIRST, interval: INTERVALS.0, answer: None }
    }

    /// Asks if it is Java and time to, without waiting for the answer.
    pub(super) fn ask(&mut self) -> JavaAnswer {
        let now = Instant::now();
        if self.answer.is_some() {
            return self.answer_within(Duration::ZERO);
        }
        if now >= self.due {
            (self.due, self.interval) = (now + self.interval, (self.interval * 2).min(INTERVALS.1));
            // One that has just begun doesn't catch the signal yet.
            owner_to_ask(self.process.pid).into_iter().for_each(|owner| self.start(owner));
        }
        JavaAnswer::None
    }

    fn start(&mut self, owner: u32) {
        let (told, answer) = bounded(1);
        let process = Arc::clone(&self.process);
        thread::spawn(move || told.send(process.ask(owner).is_ok()));
        self.answer = Some(answer);
    }

    /// Asks now, and waits for the answer.
    pub(super) fn ask_at_end(&mut self) -> JavaAnswer {
        let earlier = self.answer_within(2 * PATIENCE);
        if earlier == JavaAnswer::Refused {
            return earlier;
        }
        self.due = Instant::now();
        self.ask();
        match self.answer_within(2 * PATIENCE) {
            JavaAnswer::Written => JavaAnswer::Written,
            // It may have ended.
            JavaAnswer::None | JavaAnswer::Refused => earlier,
        }
    }

    fn answer_within(&mut self, time: Duration) -> JavaAnswer {
        let Some(answer) = &self.answer else { return JavaAnswer::None };
        let told = answer.recv_timeout(time);
        if told == Err(RecvTimeoutError::Timeout) {
            return JavaAnswer::None;
        }
        self.answer = None;
        if told == Ok(true) { JavaAnswer::Written } else { JavaAnswer::Refused }
    }
}

impl JavaProcess {
    /// Has the process of a user write its map.
    fn ask(&self, owner: u32) -> io::Result<()> {
        let socket = match self.socket(owner)? {
            Some(socket) => socket,
            None => self.listening(owner)?,
        };
        let mut stream = UnixStream::connect(format!("/proc/self/fd/{}", socket.as_raw_fd()))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(REQUEST)?;
        let mut answer = [0; FULFILLED.len()];
        stream.read_exact(&mut answer)?;
        if answer == *FULFILLED { Ok(()) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    /// The socket on which the process listens; `None` where it doesn't.
    fn socket(&self, owner: u32) -> io::Result<Option<OwnedFd>> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let name = format!(".java_pid{}", self.inside);
        let found = match openat(&self.folder, name.as_str(), flags, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::ENOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let about = fstat(&found)?;
        let is_socket = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT == SFlag::S_IFSOCK;
        // Another user may have made it.
        let is_trusted = [owner, 0].contains(&about.st_uid);
        if is_socket && is_trusted { Ok(Some(found)) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Makes the process listen.
    fn listening(&self, owner: u32) -> io::Result<OwnedFd> {
        let _sign = ListenSign::create(&self.folder, self.inside)?;
        // It may have become another program, which the signal would end.
        if owner_to_ask(self.pid) != Some(owner) {
            return Err(io::ErrorKind::NotFound.into());
        }
        kill(Pid::from_raw(self.pid), Signal::SIGQUIT)?;
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(socket) = self.socket(owner)? {
                return Ok(socket);
            }
            thread::sleep(LOOKING);
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// The file that tells Java to listen when the signal comes, rather than to print stacks.
struct ListenSign<'a> {
    folder: &'a OwnedFd,
    name: String,
}

impl<'a> ListenSign<'a> {
    fn create(folder: &'a OwnedFd, inside: i32) -> io::Result<Self> {
        let name = format!(".attach_pid{inside}");
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        openat(folder, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        Ok(Self { folder, name })
    }
}

impl Drop for ListenSign<'_> {
    fn drop(&mut self) {
        let _ = unlinkat(self.folder, self.name.as_str(), UnlinkatFlags::NoRemoveDir);
    }
}

/// The user of a process that may be asked.
fn owner_to_ask(pid: i32) -> Option<u32> {
    let [status, maps, options] = ["status", "maps", "cmdline"].map(|file| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    });
    // In another namespace of users, what this one creates isn't its own.
    let users = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/user")).ok();
    let is_here = users(&pid.to_string()).is_some_and(|namespace| Some(namespace) == users("self"));
    if is_here { owner_of_java(&status, &maps, &options, geteuid().as_raw()) } else { None }
}

/// The user of a process, by its files in /proc, if it has Java's library, catches the signal, doesn't refuse to listen, and this
/// user may ask it.
fn owner_of_java(status: &str, maps: &str, options: &str, user: u32) -> Option<u32> {
    let field = |label: &str| status.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
    let is_java = maps.lines().any(|line| line.ends_with("/libjvm.so"));
    let caught = u64::from_str_radix(field("SigCgt:")?, 16).ok()?;
    let owner = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    let listens = caught & QUIT != 0 && !options.contains("+DisableAttachMechanism");
    (is_java && listens && (user == 0 || user == owner)).then_some(owner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    use super::*;

    /// A folder that a process takes for `/tmp`; it goes with this.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("pp-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// A process that is gone.
        fn process(&self) -> JavaProcess {
            JavaProcess { pid: i32::MAX, inside: 7, folder: files::folder(&self.0).unwrap() }
        }

        /// Asks it.
        fn ask(&self) -> io::Result<()> {
            self.process().ask(geteuid().as_raw())
        }

        /// Answers one request so.
        fn answer(&self, answer: &'static [u8]) -> thread::JoinHandle<Vec<u8>> {
            let listener = UnixListener::bind(self.0.join(".java_pid7")).unwrap();
            thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = vec![0; REQUEST.len()];
                stream.read_exact(&mut request).unwrap();
                stream.write_all(answer).unwrap();
                request
            })
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn java_of_this_user_is_asked() {
        let status = "Name:\tjava\nUid:\t1000\t1001\t1001\t1001\nSigCgt:\t0000000000000004\n";
        let maps = "7f00-7f10 r-xp 00000000 08:01 7 /usr/lib/jvm/java-17/lib/server/libjvm.so\n";
        let owner = |status: &str, maps, options, user| owner_of_java(status, maps, options, user);
        assert_eq!([1001, 0, 1000].map(|user| owner(status, maps, "java\0A", user)), [Some(1001), Some(1001), None]);
        // No Java; one that the signal would end; one that doesn't listen; one of which nothing is known.
        assert_eq!(owner(status, "7f00-7f10 r-xp 0 08:01 7 /usr/bin/perl\n", "", 0), None);
        assert_eq!(owner(&status.replace("04\n", "02\n"), maps, "", 0), None);
        assert_eq!(owner(status, maps, "java\0-XX:+DisableAttachMechanism\0A", 0), None);
        assert_eq!((owner("", maps, "", 0), owner("Uid:\nSigCgt:\tx\n", maps, "", 0)), (None, None));
        assert!(JavaMap::of(i32::MAX, 7, None).is_none());
    }

    #[test]
    fn it_says_what_jcmd_says() {
        let folder = Folder::new("fulfilled");
        let java = folder.answer(b"0\nwritten");
        assert!(folder.ask().is_ok());
        assert_eq!(java.join().unwrap(), b"1\0jcmd\0Compiler.perfmap\0\0\0");
    }

    #[test]
    fn what_is_no_socket_of_its_user_and_what_refuses_is_told() {
        let folder = Folder::new("refused");
        let java = folder.answer(b"1\nUnknown diagnostic command");
        assert_eq!(folder.ask().unwrap_err().kind(), io::ErrorKind::Unsupported);
        java.join().unwrap();
        let others = Folder::new("others");
        let _listener = UnixListener::bind(others.0.join(".java_pid7")).unwrap();
        // Root's socket is believed of every process.
        if !geteuid().is_root() {
            let asked = others.process().ask(geteuid().as_raw() + 1);
            assert_eq!(asked.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        let file = Folder::new("file");
        fs::write(file.0.join(".java_pid7"), "").unwrap();
        assert_eq!(file.ask().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn what_is_no_java_any_more_gets_no_signal() {
        let folder = Folder::new("gone");
        assert_eq!(folder.ask().unwrap_err().kind(), io::ErrorKind::NotFound);
        // And nothing is left.
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn it_is_asked_less_and_less_often_and_at_the_end() {
        let folder = Folder::new("often");
        let mut map = JavaMap::at(folder.process());
        assert_eq!((map.ask(), map.interval), (JavaAnswer::None, INTERVALS.0));
        map.due = Instant::now();
        // It isn't Java by now.
        assert_eq!((map.ask(), map.answer.is_some(), map.interval), (JavaAnswer::None, false, INTERVALS.0 * 2));
        assert!(map.due > Instant::now() + INTERVALS.0 / 2);
        let java = folder.answer(b"0\n");
        map.start(geteuid().as_raw());
        assert_eq!(map.ask_at_end(), JavaAnswer::Written);
        java.join().unwrap();
    }
}
