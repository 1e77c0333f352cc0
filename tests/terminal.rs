//! `top` in a real terminal, which tmux gives: what it draws, and what it leaves behind.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A terminal with a shell in it.
struct Tmux {
    socket: String,
}

impl Tmux {
    /// `None` where there is no tmux, or nothing to count.
    fn start(name: &str) -> Option<Self> {
        let stat =
            Command::new(env!("CARGO_BIN_EXE_perfprop")).args(["stat", "-e", "task-clock", "--", "true"]).output();
        if !stat.unwrap().status.success() {
            eprintln!("skipped: this machine counts no software events");
            return None;
        }
        let tmux = Self { socket: format!("perfprop-{name}-{}", std::process::id()) };
        let shell = "env -i PATH=\"$PATH\" TERM=xterm-256color LANG=C.UTF-8 PS1='$ ' sh";
        let started = Command::new("tmux")
            .args(["-L", &tmux.socket, "-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", shell])
            .status();
        if !started.is_ok_and(|status| status.success()) {
            eprintln!("skipped: no tmux here");
            return None;
        }
        Some(tmux)
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(args).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &str) {
        self.run(&["send-keys", keys]);
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// Starts `top` on a sleeping command; gives perfprop's process id once it draws.
    fn top(&self, seconds: &str) -> nix::unistd::Pid {
        let line = format!(
            "{} top -I 50 -e task-clock,page-faults -- sleep {seconds}; echo left=$?",
            env!("CARGO_BIN_EXE_perfprop")
        );
        self.run(&["send-keys", &line, "Enter"]);
        self.eventually("it draws", |screen| screen.contains("● RUN"));
        let is_ours = |pid: &i32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(env!("CARGO_BIN_EXE_perfprop").as_bytes())
                && line.ends_with(format!("{seconds}\0").as_bytes())
        };
        let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        nix::unistd::Pid::from_raw(pids.into_iter().find(is_ours).unwrap())
    }

    fn eventually(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(start.elapsed() < Duration::from_secs(15), "{what}:\n{screen}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The alternate screen is left, the cursor shown, and the shell reads keys again.
    fn is_restored(&self, what: &str) {
        assert_eq!(
            self.run(&["display", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"]).trim(),
            "0 1 0",
            "{what}"
        );
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn is_running(seconds: &str) -> bool {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    processes.into_iter().any(|line| line == format!("sleep\0{seconds}\0").as_bytes())
}

#[test]
fn signals_restore_the_terminal_and_leave_nothing_running() {
    use nix::sys::signal::Signal;
    let Some(tmux) = Tmux::start("signals") else { return };
    for (number, signal) in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT].into_iter().enumerate() {
        // The time tells this test's sleep from any other.
        let seconds = format!("{}.5{number}", 200_000 + std::process::id());
        let pid = tmux.top(&seconds);
        nix::sys::signal::kill(pid, signal).unwrap();
        let code = format!("left={}", 128 + signal as i32);
        tmux.eventually(&code, |screen| screen.contains(&code));
        tmux.is_restored(signal.as_str());
        assert!(!is_running(&seconds), "{signal}");
        tmux.run(&["send-keys", "clear", "Enter"]);
        tmux.eventually("a clear screen", |screen| !screen.contains("left="));
    }
}

#[test]
fn a_larger_window_is_used_and_quitting_asks() {
    let Some(tmux) = Tmux::start("quit") else { return };
    let seconds = format!("{}.75", 200_000 + std::process::id());
    let pid = tmux.top(&seconds);
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.eventually("the larger size is used", |screen| screen.lines().count() >= 29 && screen.contains("q quit"));
    tmux.keys("q");
    tmux.eventually("it asks", |screen| screen.contains("[k]ill") && screen.contains("[d]etach"));
    tmux.keys("c");
    tmux.eventually("it stays", |screen| !screen.contains("[k]ill"));
    tmux.keys("q");
    tmux.eventually("it asks again", |screen| screen.contains("[k]ill"));
    tmux.keys("k");
    let screen = tmux.eventually("it ends", |screen| screen.contains("left="));
    assert!(screen.contains("left=143") && screen.contains("page-faults"), "{screen}");
    tmux.is_restored("quit");
    assert!(!is_running(&seconds) && nix::sys::signal::kill(pid, None).is_err());
}
