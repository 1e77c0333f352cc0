//! Asks Java for the names of the code that it compiled: it writes its perf map when `jcmd PID Compiler.perfmap` says
//! so.
//!
//! Java lists nothing by itself before it ends. perfprop says what `jcmd` would, which needs no JDK. `jcmd` also looks
//! for the socket in its own `/tmp`: of a process that has another one it finds none, and signals on, so that the
//! process prints the stacks of its threads each time.
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
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, unbounded};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{Pid, UnlinkatFlags, geteuid, unlinkat};

use crate::files::{self, Answerer};
use crate::sources::process;
use crate::stacks::live::namespaces;

/// What Java compiles first is compiled by then.
const FIRST: Duration = Duration::from_secs(1);

/// The first interval between questions, and the longest.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// How long Java may take until it listens, and as long again until it answers.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long reading a file of /proc may take.
const READING: Duration = Duration::from_secs(1);

/// How often it is looked whether it listens.
const LOOKING: Duration = Duration::from_millis(50);

/// The request, in the first version of the protocol, which every Java knows: a command and its three arguments.
const REQUEST: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";

/// What an answer to a request that was fulfilled begins with.
const FULFILLED: &[u8; 2] = b"0\n";

/// The bit of SIGQUIT in the masks of `/proc/PID/status`.
const QUIT: u64 = 1 << (nix::libc::SIGQUIT - 1);

/// A Java process that is asked on a thread of its own, as names may be looked up late. The thread ends with this.
#[derive(Debug)]
pub(super) struct JavaMap {
    at_end: Sender<()>,
    /// Whether each question was answered; after one that wasn't there are no more.
    answers: Receiver<bool>,
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
    /// Of a process that makes code: by then it has Java's library, if it is Java. `inside` is the number that it has
    /// in its own namespace, `root` where its paths begin.
    pub(super) fn of(pid: i32, inside: i32, root: Option<&OwnedFd>) -> Option<Self> {
        if !has_java(&text_of(pid, "maps")) {
            return None;
        }
        let folder = files::folder_below(root?, Path::new("/tmp")).ok()?;
        let process = JavaProcess { pid, inside, folder };
        Self::asking(move || match owner_to_ask(pid) {
            Some(owner) => Some(process.ask(owner).is_ok()),
            // One that is gone is asked no more.
            None => (!process::is_alive(Pid::from_raw(pid))).then_some(false),
        })
    }

    /// Asks again and again: `ask` gives nothing where it can't be asked yet. `None` where no thread can be made for
    /// it.
    fn asking(ask: impl Fn() -> Option<bool> + Send + 'static) -> Option<Self> {
        let (at_end, end) = bounded(1);
        let (told, answers) = unbounded();
        let run = move || {
            let (mut pause, mut next) = (FIRST, INTERVALS.0);
            loop {
                let is_end = match end.recv_timeout(pause) {
                    Ok(()) => true,
                    Err(RecvTimeoutError::Timeout) => false,
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                (pause, next) = (next, (next * 2).min(INTERVALS.1));
                let answer = ask();
                let is_last = is_end || answer == Some(false);
                if answer.is_some_and(|answer| told.send(answer).is_err()) || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("perfprop-java".into()).spawn(run).ok()?;
        Some(Self { at_end, answers })
    }

    /// Whether it has written a map since it was looked at last.
    pub(super) fn is_written(&self) -> bool {
        self.answers.try_iter().filter(|is_written| *is_written).count() > 0
    }

    /// Asks once more, waits for the answer, and says whether there is a map since it was looked at last.
    pub(super) fn is_written_at_end(&self) -> bool {
        let _ = self.at_end.try_send(());
        let mut is_written = false;
        // The thread ends behind its last answer.
        while let Ok(answer) = self.answers.recv_timeout(3 * PATIENCE) {
            is_written |= answer;
        }
        is_written
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

fn has_java(maps: &str) -> bool {
    maps.lines().any(|line| line.ends_with("/libjvm.so"))
}

/// What a file of /proc says of a process. The kernel waits for the lock of its memory, which another may hold for
/// ever.
fn text_of(pid: i32, file: &'static str) -> String {
    let read = move || fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let text = files::within(READING, Answerer::Process(pid), read).unwrap_or_default();
    String::from_utf8_lossy(&text).into_owned()
}

/// The user of a process that may be asked.
fn owner_to_ask(pid: i32) -> Option<u32> {
    let [status, maps, options] = ["status", "maps", "cmdline"].map(|file| text_of(pid, file));
    // In another namespace of users, what this one creates isn't its own.
    let is_here = namespaces::shares_namespace(pid, "user");
    if is_here { owner_of_java(&status, &maps, &options, geteuid().as_raw()) } else { None }
}

/// The user of a process, by its files in /proc, if it has Java's library, catches the signal, doesn't refuse to
/// listen, and this user may ask it.
fn owner_of_java(status: &str, maps: &str, options: &str, user: u32) -> Option<u32> {
    let field = |label: &str| status.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
    let caught = u64::from_str_radix(field("SigCgt:")?, 16).ok()?;
    let owner = field("Uid:")?.split_whitespace().nth(1)?.parse().ok()?;
    let listens = caught & QUIT != 0 && !options.contains("+DisableAttachMechanism");
    (has_java(maps) && listens && (user == 0 || user == owner)).then_some(owner)
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
    fn it_is_asked_at_the_end_and_no_more_once_it_refuses() {
        let written = JavaMap::asking(|| Some(true)).unwrap();
        assert!(!written.is_written() && written.is_written_at_end());
        // The thread is gone.
        assert!(!written.is_written_at_end());
        assert!(!JavaMap::asking(|| None).unwrap().is_written_at_end());
        assert!(!JavaMap::asking(|| Some(false)).unwrap().is_written_at_end());
    }
}
