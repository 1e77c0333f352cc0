//! Tests `top` in a real terminal, which tmux gives: what it draws, and what it leaves behind.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::folders::Folder;
use crate::sleeps::{own_seconds, sleeping};

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

    /// The shell has the terminal, and after `fg` perfprop has it again.
    fn stops_and_comes_back(&self, what: &str) {
        let start = Instant::now();
        while self.run(&["display", "-p", "#{alternate_on}"]).trim() != "0" {
            assert!(start.elapsed() < Duration::from_secs(15), "{}", self.screen());
            thread::sleep(Duration::from_millis(20));
        }
        self.is_restored(what);
        self.run(&["send-keys", "fg", "Enter"]);
        self.eventually("it comes back", |screen| screen.contains("● RUN"));
    }

    /// Quits, and ends the command.
    fn quits(&self, after: &str) {
        self.keys("q");
        self.eventually("it asks", |screen| screen.contains("[k]ill"));
        self.keys("k");
        self.eventually("it ends", |screen| screen.contains("seconds time elapsed"));
        self.is_restored(after);
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

/// Whether the shell has printed the exit code; its command line says how.
fn has_left(screen: &str) -> bool {
    // The line that was typed may wrap before its own `left=$?`.
    let is_code = |rest: &str| rest.starts_with(|digit: char| digit.is_ascii_digit());
    screen.lines().any(|line| line.strip_prefix("left=").is_some_and(is_code))
}

#[test]
fn signals_restore_the_terminal_and_leave_nothing_running() {
    use nix::sys::signal::Signal;
    let Some(tmux) = Tmux::start("signals") else { return };
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let seconds = own_seconds();
        let pid = tmux.top(&seconds);
        nix::sys::signal::kill(pid, signal).unwrap();
        // A shell leaves its line of commands where one ended by INT, so that the code isn't printed.
        let sign = if signal == Signal::SIGINT { "$".into() } else { format!("left={}", 128 + signal as i32) };
        tmux.eventually(signal.as_str(), |screen| {
            screen.contains("seconds time elapsed") && screen.lines().any(|line| line.trim_end() == sign)
        });
        tmux.is_restored(signal.as_str());
        assert!(sleeping(&seconds) == 0, "{signal}");
        tmux.run(&["send-keys", "clear", "Enter"]);
        tmux.eventually("a clear screen", |screen| !screen.contains("left="));
    }
}

#[test]
fn a_larger_window_is_used_and_quitting_asks() {
    let Some(tmux) = Tmux::start("quit") else { return };
    let seconds = own_seconds();
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
    let screen = tmux.eventually("it ends", has_left);
    assert!(screen.contains("left=143") && screen.contains("page-faults"), "{screen}");
    tmux.is_restored("quit");
    assert!(sleeping(&seconds) == 0 && nix::sys::signal::kill(pid, None).is_err());
}

/// `top` without a terminal on one side, or on both.
fn without_terminal(stdin: std::process::Stdio) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_perfprop"))
        .args(["top", "-I", "50", "-n", "2", "-e", "task-clock", "--", "sleep", "5"])
        .stdin(stdin)
        .output()
        .unwrap()
}

#[test]
fn without_a_terminal_there_is_text() {
    if Tmux::start("pipe").is_none() {
        return;
    }
    for stdin in [std::process::Stdio::null(), std::process::Stdio::piped()] {
        let output = without_terminal(stdin);
        let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && !out.contains('\x1b'), "{out}{error}");
        assert_eq!(out.matches("task-clock").count(), 2, "{out}");
        // -n asks for text; without it, perfprop says why there is some.
        assert!(!error.contains("E09"), "{error}");
    }
    let line = format!("{} top -I 50 -e task-clock -- true | cat", env!("CARGO_BIN_EXE_perfprop"));
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(error.contains("E09") && out.contains("task-clock") && !out.contains('\x1b'), "{out}{error}");
}

#[test]
fn a_command_under_screens_reads_what_is_piped_in() {
    let Some(tmux) = Tmux::start("input") else { return };
    let program = env!("CARGO_BIN_EXE_perfprop");
    // What is printed stands in neither line that is typed.
    let script = r#"read word; echo "<$word>" | tr a-z A-Z; sleep 600"#;
    for (input, sign) in [("echo piped-in |", "<PIPED-IN>"), ("", "<>")] {
        let line = format!("{input} {program} top -I 50 --screen log -e page-faults -- sh -c '{script}'; echo left=$?");
        tmux.run(&["send-keys", &line, "Enter"]);
        tmux.eventually("it runs", |screen| screen.contains("● RUN"));
        tmux.keys("o");
        tmux.eventually(sign, |screen| screen.contains(sign));
        leave(&tmux, sign);
    }
    // Nobody is at the keys there: text, until Ctrl-C.
    let line = format!("</dev/null {program} top -I 5000 -e page-faults -- sleep 600");
    tmux.run(&["send-keys", &line, "Enter"]);
    tmux.eventually("text", |screen| screen.contains("E09 no terminal"));
    tmux.keys("C-c");
    tmux.eventually("it ends", |screen| screen.contains("exact") && screen.trim_end().ends_with('$'));
}

/// Starts `top` on a `sleep` as a shell would with `before` and `options`, and waits until it draws `sign`.
fn begin(tmux: &Tmux, before: &str, options: &str, seconds: &str, sign: &str) -> String {
    let program = env!("CARGO_BIN_EXE_perfprop");
    let line =
        format!("{before} {program} top -I 50 {options} -e task-clock,page-faults -- sleep {seconds}; echo left=$?");
    tmux.run(&["send-keys", &line, "Enter"]);
    tmux.eventually(sign, |screen| screen.contains(sign))
}

/// Ends what [`begin`] started.
fn leave(tmux: &Tmux, what: &str) {
    tmux.keys("q");
    tmux.eventually("it asks", |screen| screen.contains("[k]ill"));
    tmux.keys("k");
    tmux.eventually("it ends", |screen| screen.contains("left=143"));
    tmux.is_restored(what);
    tmux.run(&["send-keys", "clear", "Enter"]);
    tmux.eventually("a clear screen", |screen| !screen.contains("left="));
}

#[test]
fn plain_terminals_get_plain_characters() {
    let Some(tmux) = Tmux::start("plain") else { return };
    for before in ["LC_ALL=C", "TERM=dumb"] {
        let screen = begin(&tmux, before, "", &own_seconds(), "* RUN");
        assert!(screen.is_ascii() && screen.contains("> task-clock"), "{before}: {screen}");
        leave(&tmux, before);
    }
}

/// The colours among the escape sequences of a screen: SGR 30 to 49 and 90 to 107.
fn colours(screen: &str) -> Vec<String> {
    let sequences = screen.split("\x1b[").skip(1).filter_map(|rest| rest.split_once('m')).map(|(codes, _)| codes);
    let is_colour = |code: &str| matches!(code.parse(), Ok(30..=38 | 40..=48 | 90..=107));
    sequences.filter(|codes| codes.split([';', ':']).any(is_colour)).map(str::to_owned).collect()
}

#[test]
fn no_color_is_no_colour_and_the_selection_is_still_seen() {
    let Some(tmux) = Tmux::start("colour") else { return };
    begin(&tmux, "", "", &own_seconds(), "● RUN");
    assert!(!colours(&tmux.run(&["capture-pane", "-p", "-e"])).is_empty());
    leave(&tmux, "colours");
    begin(&tmux, "NO_COLOR=1", "", &own_seconds(), "● RUN");
    let screen = tmux.run(&["capture-pane", "-p", "-e"]);
    assert_eq!(colours(&screen), Vec::<String>::new());
    let selected = screen.lines().find(|line| line.contains("task-clock")).unwrap();
    assert!(selected.contains("\x1b[7m") || selected.contains(";7m"), "{selected:?}");
    leave(&tmux, "NO_COLOR");
}

#[test]
fn sizes_come_and_go_and_the_filter_stays() {
    let Some(tmux) = Tmux::start("sizes") else { return };
    begin(&tmux, "", "", &own_seconds(), "● RUN");
    tmux.run(&["send-keys", "/fault", "Enter"]);
    tmux.eventually("the filter", |screen| screen.contains("filter: fault") && screen.contains("1 of 2"));
    for (width, height, sign) in
        [("200", "60", "filter: fault"), ("80", "24", "filter: fault"), ("40", "6", "page-faults"), ("18", "2", "18x2")]
    {
        tmux.run(&["resize-window", "-x", width, "-y", height]);
        tmux.eventually(sign, |screen| screen.contains(sign) && !screen.contains("task-clock "));
    }
    tmux.run(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.eventually("it comes back", |screen| screen.contains("1 of 2"));
    tmux.run(&["send-keys", "2"]);
    tmux.eventually("another screen", |screen| screen.contains("[2 Detail]"));
    tmux.run(&["send-keys", "1"]);
    tmux.eventually("and back", |screen| screen.contains("1 of 2"));
    tmux.keys("Escape");
    tmux.eventually("it is cleared", |screen| screen.contains("2 of 2"));
    leave(&tmux, "sizes");
}

#[test]
fn stopped_it_gives_the_terminal_back_and_the_mouse_too() {
    let Some(tmux) = Tmux::start("stop") else { return };
    let seconds = own_seconds();
    begin(&tmux, "", "", &seconds, "● RUN");
    tmux.keys("M");
    tmux.eventually("the mouse", |screen| screen.contains("the mouse is perfprop's"));
    assert_eq!(tmux.run(&["display", "-p", "#{alternate_on} #{mouse_any_flag}"]).trim(), "1 1");
    tmux.keys("C-z");
    tmux.stops_and_comes_back("Ctrl-Z");
    tmux.quits("fg");
    assert!(sleeping(&seconds) == 0);
}

#[test]
fn frozen_it_records_on() {
    let Some(tmux) = Tmux::start("freeze") else { return };
    let folder = Folder::new();
    tmux.run(&["send-keys", &format!("cd {}", folder.display()), "Enter"]);
    begin(&tmux, "", "", &own_seconds(), "● RUN");
    tmux.keys("z");
    let held = |screen: &str| screen.lines().filter(|line| line.contains("page-faults")).collect::<String>();
    let before = tmux.eventually("it is held", |screen| screen.contains("FROZEN"));
    let later = tmux.eventually("the lag is told", |screen| screen.contains("FROZEN +1 s"));
    assert_eq!(held(&before), held(&later));
    tmux.keys("z");
    tmux.eventually("it goes on", |screen| screen.contains("● RUN"));
    tmux.keys("S");
    tmux.eventually("it is saved", |screen| screen.contains("saved to"));
    leave(&tmux, "freeze");
    let saved = perfprop::recording::read(&fs::read(folder.join("perfprop.jsonl")).unwrap()[..]).unwrap();
    let times: Vec<_> = saved.rounds.iter().map(|recorded| recorded.round.at.as_secs()).collect();
    let lost = saved.rounds.last().map_or(0, |last| last.lost);
    // Whatever a busy machine lost, the second that was frozen isn't among it.
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] < 0.5) || lost > 0, "{times:?}");
    assert!(times.len() as u64 + lost >= 20, "{times:?}");
}

#[test]
fn sampling_begins_while_a_program_runs() {
    let Some(tmux) = Tmux::start("sample") else { return };
    let program = env!("CARGO_BIN_EXE_perfprop");
    // The loop runs in a child of the command.
    let line = format!(
        "{program} top -e task-clock --no-stacks --screen profile -- sh -c '(while :; do :; done); :'; echo left=$?"
    );
    tmux.run(&["send-keys", &line, "Enter"]);
    tmux.eventually("it says how", |screen| screen.contains("no call stacks are sampled: Enter begins"));
    tmux.keys("Enter");
    let screen = tmux.eventually("it samples, or says why not", |screen| {
        screen.contains("SELF") || screen.contains("E14") || screen.contains("not permitted")
    });
    if screen.contains("SELF") {
        tmux.eventually("there are functions", |screen| screen.contains('%') && !screen.contains("no sample yet"));
    }
    leave(&tmux, "sample");
}

#[test]
fn functions_are_shown_without_being_asked_for() {
    let Some(tmux) = Tmux::start("overview") else { return };
    let program = env!("CARGO_BIN_EXE_perfprop");
    let line = format!("{program} top --screen profile -- sh -c 'while :; do :; done'; echo left=$?");
    tmux.run(&["send-keys", &line, "Enter"]);
    // Where this user may sample nothing, the run goes on without.
    let screen = tmux.eventually("it samples, or says how", |screen| {
        screen.contains("SELF") || screen.contains("no call stacks are sampled: Enter begins")
    });
    if !screen.contains("SELF") {
        eprintln!("skipped: nothing can be sampled here");
    }
    leave(&tmux, "overview");
}

#[test]
fn a_panic_while_drawing_gives_the_terminal_back() {
    let Some(tmux) = Tmux::start("panic") else { return };
    let (program, seconds) = (env!("CARGO_BIN_EXE_perfprop"), own_seconds());
    // Builds without debug assertions have no such way to break down.
    if !cfg!(debug_assertions) {
        eprintln!("skipped: nothing makes this build panic");
        return;
    }
    let line = format!("PERFPROP_TEST_PANIC=1 {program} top -I 50 -e page-faults -- sleep {seconds}; echo left=$?");
    tmux.run(&["send-keys", &line, "Enter"]);
    let screen = tmux.eventually("it panics", has_left);
    assert!(screen.contains("left=101") && screen.contains("a test wants drawing to panic"), "{screen}");
    tmux.is_restored("a panic");
    assert!(sleeping(&seconds) == 0);
}

#[test]
fn errors_are_whole_and_the_terminal_is_as_it_was() {
    let Some(tmux) = Tmux::start("errors") else { return };
    tmux.run(&["resize-window", "-x", "200", "-y", "40"]);
    let folder = Folder::new();
    fs::write(folder.join("bad.json"), r#"[{ "id": "R1", "relation": "a = b + + c" }]"#).unwrap();
    tmux.run(&["send-keys", &format!("cd {}", folder.display()), "Enter"]);
    let cases = [
        ("-e page-falts -- true", 2, &["perfprop: E03 unknown event 'page-falts'", "did you mean page-faults?"][..]),
        ("-e page-faults -- ./porg", 127, &["perfprop: E06 ./porg: command not found (nothing was measured)"]),
        (
            "--relations bad.json -e page-faults -- true",
            2,
            &["perfprop: E07 relation file bad.json:1:", "^ second '+' here"],
        ),
        ("-e page-faults -p 2147483646", 125, &["perfprop: E11 pid 2147483646 does not exist (ESRCH)"]),
        ("--theme nosuch -e page-faults -- true", 2, &["nosuch"]),
        ("--config /nonexistent -e page-faults -- true", 2, &["/nonexistent"]),
    ];
    for (options, code, words) in cases {
        let line = format!("{} top {options}; echo left=$?", env!("CARGO_BIN_EXE_perfprop"));
        tmux.run(&["send-keys", &line, "Enter"]);
        let screen = tmux.eventually(options, has_left);
        let left = format!("left={code}");
        assert!(screen.lines().any(|line| line == left), "{options}: {screen}");
        assert!(words.iter().all(|word| screen.contains(word)), "{options}: {screen}");
        tmux.is_restored(options);
        tmux.run(&["send-keys", "clear", "Enter"]);
        tmux.eventually("a clear screen", |screen| !screen.contains("left="));
    }
}

#[test]
fn a_storm_of_sizes_breaks_nothing() {
    let Some(tmux) = Tmux::start("storm") else { return };
    begin(&tmux, "", "", &own_seconds(), "● RUN");
    for i in 0..60 {
        let (width, height) = (1 + i * 37 % 211, 1 + i * 17 % 67);
        tmux.run(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }
    tmux.run(&["resize-window", "-x", "19", "-y", "24"]);
    tmux.eventually("it says that it is too small", |screen| screen.contains("19x24: too"));
    tmux.run(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.eventually("it comes back", |screen| screen.contains("● RUN") && screen.contains("page-faults"));
    leave(&tmux, "a storm");
}

#[test]
fn stopped_by_a_signal_it_goes_on() {
    use nix::sys::signal::{Signal, kill};
    let Some(tmux) = Tmux::start("signalled") else { return };
    let seconds = own_seconds();
    let pid = tmux.top(&seconds);
    for _ in 0..2 {
        kill(pid, Signal::SIGTSTP).unwrap();
        tmux.stops_and_comes_back("SIGTSTP");
    }
    tmux.quits("SIGTSTP");
    assert!(sleeping(&seconds) == 0);
}

#[test]
fn ctrl_c_in_the_pager_is_the_pagers() {
    let Some(tmux) = Tmux::start("pager") else { return };
    let pager = "PERFPROP_PAGER='env true; trap : INT; head -1; echo reading; sleep 1; echo pager is left'";
    tmux.run(&["send-keys", &format!("{pager} {} list; echo left=$?", env!("CARGO_BIN_EXE_perfprop")), "Enter"]);
    tmux.eventually("the pager reads", |screen| screen.lines().any(|line| line.starts_with("reading")));
    tmux.keys("C-c");
    let screen = tmux.eventually("it is left", |screen| screen.lines().any(|line| line.starts_with("left=")));
    // Behind the ^C that the terminal shows.
    let pager = screen.lines().position(|line| line.trim_end().ends_with("pager is left"));
    assert!(pager.is_some() && pager < screen.lines().position(|line| line.starts_with("left=0")), "{screen}");
}

/// Sent by a key, the command has it from the terminal; sent by `kill`, from perfprop. It has it once.
#[test]
fn an_interrupt_reaches_the_command_once() {
    let Some(tmux) = Tmux::start("interrupt") else { return };
    let wait = "n=0; while [ $n -lt 40 ]; do sleep 0.05; n=$((n+1)); done";
    for (key, kill) in [(Some("C-c"), ""), (None, "kill -INT $PPID;")] {
        let script = format!("trap 'echo interrupted' INT; echo ready; {kill} {wait}").replace('$', "\\$");
        let stat = format!("{} stat -e task-clock -- sh -c", env!("CARGO_BIN_EXE_perfprop"));
        tmux.run(&["send-keys", &format!("clear; {stat} \"{script}\" 2>/dev/null; echo left=$?"), "Enter"]);
        tmux.eventually("the command is ready", |screen| screen.lines().any(|line| line == "ready"));
        key.inspect(|key| tmux.keys(key));
        let screen = tmux.eventually("it is left", |screen| screen.lines().any(|line| line.starts_with("left=")));
        assert_eq!(screen.lines().filter(|line| line.ends_with("interrupted")).count(), 1, "{key:?}\n{screen}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    if Tmux::start("head").is_none() {
        return;
    }
    let (program, seconds) = (env!("CARGO_BIN_EXE_perfprop"), own_seconds());
    let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/screenshots/threads.jsonl");
    for line in [
        format!("{program} top -I 20 -e page-faults -- sleep {seconds} | head -n 1"),
        format!("{program} replay {recording} --dump svg --screen events | head -n 1"),
        format!("{program} replay {recording} --print | head -n 1"),
    ] {
        let output = Command::new("sh").args(["-c", &line]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.stdout.is_empty() && !error.contains("panic") && !error.contains("Broken pipe"),
            "{line}: {error}"
        );
    }
    assert!(sleeping(&seconds) == 0);
}

#[test]
fn texts_fit_a_terminal_of_80_columns() {
    let Some(tmux) = Tmux::start("columns") else { return };
    for verb in ["stat", "stat -r 2", "record -g -o /dev/null"] {
        let line = format!("clear; {} {verb} -- true; echo left=$?", env!("CARGO_BIN_EXE_perfprop"));
        tmux.run(&["send-keys", &line, "Enter"]);
        tmux.eventually(verb, has_left);
        // Lines that the terminal broke are joined again.
        let text = tmux.run(&["capture-pane", "-p", "-J"]);
        let wide: Vec<_> = text.lines().filter(|line| line.trim_end().chars().count() > 80).collect();
        assert!(text.contains("left=0") && wide.is_empty(), "{wide:#?} of {text}");
        tmux.run(&["send-keys", "clear", "Enter"]);
        tmux.eventually("a clear screen", |screen| !screen.contains("left="));
    }
}
