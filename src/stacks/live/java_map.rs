//! Asks Java for the names of the code that it compiled: it writes its perf map when `jcmd PID Compiler.perfmap` says so.
//!
//! A Java process lists nothing by itself before it ends. `jcmd` starts a small Java program, so it is asked seldom: soon
//! after the first sample, then in intervals that double, and once more at the end if the process is still there.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The program that asks, from the folders of `PATH`: one beside the measured Java might be another user's.
const ASKS: &str = "jcmd";

/// What Java compiles first is compiled by then.
const FIRST: Duration = Duration::from_secs(1);

/// The first interval, and the longest.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// The bit of SIGQUIT in the masks of `/proc/PID/status`. Java listens for `jcmd` when it comes; what doesn't catch it ends.
const QUIT: u64 = 1 << (nix::libc::SIGQUIT - 1);

/// A Java process that may be asked.
#[derive(Debug)]
pub(super) struct JavaMap {
    pid: i32,
    /// When it may be asked again, and how long not after that.
    due: Instant,
    interval: Duration,
    asking: Option<Asking>,
}

#[derive(Debug)]
struct Asking {
    child: Child,
    since: Instant,
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

impl JavaMap {
    /// Of a process, if it runs Java and this user may ask it.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let [status, maps] = ["status", "maps"].map(|file| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default());
        let user = nix::unistd::geteuid().as_raw();
        let (status, maps) = (String::from_utf8_lossy(&status), String::from_utf8_lossy(&maps));
        may_be_asked(&status, &maps, user).then(|| Self {
            pid,
            due: Instant::now() + FIRST,
            interval: INTERVALS.0,
            asking: None,
        })
    }

    /// Asks if it is time to, without waiting for the answer.
    pub(super) fn ask(&mut self) -> JavaAnswer {
        let now = Instant::now();
        if self.asking.is_some() {
            return self.answer();
        }
        if now < self.due {
            return JavaAnswer::None;
        }
        (self.due, self.interval) = (now + self.interval, (self.interval * 2).min(INTERVALS.1));
        self.start(Command::new(ASKS).arg(self.pid.to_string()).arg("Compiler.perfmap"))
    }

    /// Asks now, and waits for the answer.
    pub(super) fn ask_at_end(&mut self) -> JavaAnswer {
        let mut answer = self.answer();
        if self.asking.is_none() && answer != JavaAnswer::Refused {
            // What is asked before is older than the end.
            self.due = Instant::now();
            answer = self.ask();
        }
        while self.asking.is_some() {
            thread::sleep(Duration::from_millis(10));
            answer = self.answer();
        }
        answer
    }

    fn start(&mut self, command: &mut Command) -> JavaAnswer {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match quiet.spawn() {
            Ok(child) => {
                self.asking = Some(Asking { child, since: Instant::now() });
                JavaAnswer::None
            }
            Err(_) => JavaAnswer::Refused,
        }
    }

    /// Looks whether the answer has come.
    fn answer(&mut self) -> JavaAnswer {
        let Some(asking) = &mut self.asking else { return JavaAnswer::None };
        match asking.answer() {
            Ok(None) => return JavaAnswer::None,
            Ok(Some(status)) if status.success() => {
                self.asking = None;
                JavaAnswer::Written
            }
            Ok(Some(_)) | Err(_) => {
                self.asking = None;
                JavaAnswer::Refused
            }
        }
    }
}

impl Asking {
    fn answer(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_none() && self.since.elapsed() > ANSWER {
            self.child.kill()?;
            return self.child.wait().map(Some);
        }
        Ok(status)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process is Java that a user may ask: it has Java's library, catches the signal that makes it listen, and is the
/// user's own, or the user is root.
fn may_be_asked(status: &str, maps: &str, user: u32) -> bool {
    let field = |label: &str| status.lines().find_map(|line| line.strip_prefix(label)).map(str::trim);
    let is_java = maps.lines().any(|line| line.ends_with("/libjvm.so"));
    let caught = field("SigCgt:").and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    let mut owners = field("Uid:").unwrap_or_default().split_whitespace().filter_map(|id| id.parse::<u32>().ok());
    is_java && caught & QUIT != 0 && (user == 0 || owners.nth(1) == Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(command: &mut Command) -> (JavaMap, JavaAnswer) {
        let mut map = JavaMap { pid: i32::MAX, due: Instant::now(), interval: INTERVALS.0, asking: None };
        let answer = map.start(command);
        (map, answer)
    }

    #[test]
    fn java_of_this_user_is_asked() {
        let status = "Name:\tjava\nUid:\t1000\t1000\t1000\t1000\nSigCgt:\t0000000000000004\n";
        let maps = "7f00-7f10 r-xp 00000000 08:01 7 /usr/lib/jvm/java-17/lib/server/libjvm.so\n";
        assert!(may_be_asked(status, maps, 1000) && may_be_asked(status, maps, 0));
        assert!(!may_be_asked(status, maps, 1001));
        // No Java; one that would end; one of which nothing is known.
        assert!(!may_be_asked(status, "7f00-7f10 r-xp 0 08:01 7 /usr/bin/perl\n", 1000));
        assert!(!may_be_asked(&status.replace("04\n", "02\n"), maps, 1000));
        assert!(!may_be_asked("", maps, 0) && !may_be_asked("Uid:\nSigCgt:\tx\n", maps, 1000));
        assert!(JavaMap::of(i32::MAX).is_none());
    }

    #[test]
    fn an_answer_is_waited_for_at_the_end_alone() {
        let (mut map, answer) = asking(&mut Command::new("cat"));
        // Nothing is there to read, so it ends at once.
        assert_eq!(answer, JavaAnswer::None);
        while map.asking.is_some() {
            assert!(matches!(map.ask(), JavaAnswer::None | JavaAnswer::Written));
        }
        let (mut refused, _) = asking(&mut Command::new("false"));
        assert_eq!(refused.ask_at_end(), JavaAnswer::Refused);
        assert_eq!(asking(&mut Command::new("/nonexistent/jcmd")).1, JavaAnswer::Refused);
    }

    #[test]
    fn what_asks_ends_with_the_measurement() {
        let (mut map, _) = asking(Command::new("sleep").arg("600"));
        let pid = map.asking.as_ref().map(|asking| asking.child.id());
        assert_eq!((map.answer(), map.asking.is_some()), (JavaAnswer::None, true));
        drop(map);
        assert!(pid.is_some_and(|pid| fs::metadata(format!("/proc/{pid}")).is_err()));
    }

    #[test]
    fn it_is_asked_less_and_less_often() {
        let mut map = JavaMap { pid: i32::MAX, due: Instant::now() + FIRST, interval: INTERVALS.0, asking: None };
        assert_eq!((map.ask(), map.asking.is_some()), (JavaAnswer::None, false));
        map.due = Instant::now();
        // Whether the command is here or not.
        map.ask();
        assert_eq!(map.interval, INTERVALS.0 * 2);
        assert!(map.due > Instant::now() + INTERVALS.0 / 2);
    }
}
