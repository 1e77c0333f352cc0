//! Measures real programs with real kernel counters, and compares with `perf stat` where there is one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::folders::Folder;
use crate::sleeps::{own_seconds, sleeping};

const PERFPROP: &str = env!("CARGO_BIN_EXE_perfprop");

/// Counts by event name, of one run of a command under `perfprop stat -j`.
fn counts(events: &str, command: &[&str]) -> Option<BTreeMap<String, f64>> {
    let output = Command::new(PERFPROP).args(["stat", "-j", "-e", events, "--"]).args(command).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let counts: BTreeMap<_, _> =
        lines.filter_map(|line| Some((line["event"].as_str()?.to_owned(), line["counter-value"].as_f64()?))).collect();
    if counts.is_empty() {
        eprintln!("skipped: {events} can't be counted here: {text}");
        return None;
    }
    Some(counts)
}

/// The same under `perf stat -x,`.
fn perf_counts(events: &str, command: &[&str]) -> Option<BTreeMap<String, f64>> {
    let output = Command::new("perf").args(["stat", "-x,", "-e", events, "--"]).args(command).output().ok();
    let Some(output) = output.filter(|output| output.status.success()) else {
        eprintln!("skipped: no perf here, or it can't count {events}");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let fields = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|fields| fields.len() > 2);
    Some(fields.filter_map(|fields| Some((fields[2].to_owned(), fields[0].parse().ok()?))).collect())
}

/// A process tree whose system calls are the same in every run.
const TREE: [&str; 3] = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do cat /etc/passwd > /dev/null; done"];

#[test]
fn tracepoints_of_a_process_tree_agree_with_perf() {
    let events = "syscalls:sys_enter_execve,syscalls:sys_enter_openat,syscalls:sys_exit_exit_group";
    let (Some(ours), Some(perfs)) = (counts(events, &TREE), perf_counts(events, &TREE)) else { return };
    // Counting begins within the shell's own exec; its ten children's are counted.
    assert_eq!(ours["syscalls:sys_enter_execve"], 10.0);
    assert_eq!(ours, perfs);
}

#[test]
fn software_events_agree_with_perf() {
    let events = "minor-faults,page-faults,task-clock";
    let (Some(ours), Some(perfs)) = (counts(events, &TREE), perf_counts(events, &TREE)) else { return };
    assert_eq!(ours.keys().collect::<Vec<_>>(), perfs.keys().collect::<Vec<_>>());
    // Where pages lie differs from run to run, and with it a few faults in a thousand.
    let ratio = ours["page-faults"] / perfs["page-faults"];
    assert!((0.95..1.05).contains(&ratio), "{ours:?} {perfs:?}");
}

#[test]
fn threads_are_counted_wherever_they_run() {
    // Four threads each read a file 50 times.
    let program = "import threading\n\
        def work():\n for _ in range(50): open('/etc/passwd').close()\n\
        ts = [threading.Thread(target=work) for _ in range(4)]\n\
        [t.start() for t in ts]; [t.join() for t in ts]";
    let open_only = |program: &str| counts("syscalls:sys_enter_openat", &["python3", "-c", program]);
    let (Some(with), Some(without)) = (open_only(program), open_only("import threading")) else { return };
    let difference = with["syscalls:sys_enter_openat"] - without["syscalls:sys_enter_openat"];
    assert_eq!(difference, 200.0);
}

#[test]
fn a_running_process_is_attached_to_with_its_threads() {
    let program = "import threading, time\n\
        def work():\n  while True: open('/etc/passwd').close(); time.sleep(0.001)\n\
        ts = [threading.Thread(target=work, daemon=True) for _ in range(3)]\n\
        [t.start() for t in ts]\nprint('ready', flush=True)\ntime.sleep(60)";
    let Ok(mut python) = Command::new("python3").args(["-c", program]).stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: no python3");
        return;
    };
    std::io::Read::read_exact(python.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
    let pid = python.id().to_string();
    let args = ["top", "--batch", "-n", "3", "-I", "100", "-e", "syscalls:sys_enter_openat,task-clock", "-p", &pid];
    let output = Command::new(PERFPROP).args(args).output().unwrap();
    let still_runs = python.try_wait().unwrap().is_none();
    python.kill().unwrap();
    python.wait().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    if text.is_empty() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert!(still_runs, "a process that was attached to must go on");
    let last = text.lines().rfind(|line| line.starts_with("syscalls:sys_enter_openat")).unwrap();
    assert!(last.contains("exact") && !last.contains(" 0 "), "{text}");
}

/// Two threads start forty each, in some 50 ms. Once a byte has come in, each of these 83 threads makes 200 page faults.
const STARTERS: &str = "#define _GNU_SOURCE\n#include <pthread.h>\n#include <stdio.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
    static pthread_barrier_t step;\n\
    static void *leaf(void *none) {\n\
      char *memory = mmap(0, 200 * 4096, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
      madvise(memory, 200 * 4096, MADV_NOHUGEPAGE);\n\
      pthread_barrier_wait(&step);\n\
      for (int i = 0; i < 200; i++) ((volatile char *)memory)[i * 4096] = 1;\n\
      pthread_barrier_wait(&step);\n\
      return none; }\n\
    static void *starter(void *none) { pthread_t t;\n\
      for (int i = 0; i < 40; i++) { pthread_create(&t, 0, leaf, 0); usleep(1000); }\n\
      return leaf(none); }\n\
    int main(void) { pthread_t t; char byte;\n\
      pthread_barrier_init(&step, 0, 83);\n\
      puts(\"ready\"); fflush(stdout);\n\
      for (int i = 0; i < 2; i++) pthread_create(&t, 0, starter, 0);\n\
      if (read(0, &byte, 1) != 1) return 1;\n\
      leaf(0);\n\
      _exit(0); }\n";

#[test]
fn a_measurement_of_a_process_ends_with_it_however_long_intervals_are() {
    if counts("page-faults", &["true"]).is_none() {
        return;
    }
    let mut sleep = Command::new("sleep").arg("600").spawn().unwrap();
    let folder = Folder::new();
    let file = folder.join("recording.jsonl");
    let record = |pid: u32, options: &[&str]| {
        let args = ["record", "-e", "page-faults", "-p", &pid.to_string(), "-o", file.to_str().unwrap()];
        Command::new(PERFPROP).args(args).args(options).stderr(Stdio::null()).spawn().unwrap()
    };
    let end = || perfprop::recording::read(&fs::read(&file).unwrap()[..]).unwrap().end.unwrap();
    // Readings once an hour. The file has its name with its header, when counting has begun.
    let mut perfprop = record(sleep.id(), &["-I", "3600000"]);
    eventually("it is recorded", || file.exists());
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert!(perfprop.wait().unwrap().success() && end().has_target_ended);
    // Only what has ended is said to have.
    let mut perfprop = record(std::process::id(), &["--timeout", "100"]);
    assert!(perfprop.wait().unwrap().success() && !end().has_target_ended);
}

#[test]
fn threads_that_start_while_they_are_attached_to_are_counted_once() {
    let folder = Folder::new();
    let Some(program) = compiled_of(&folder, STARTERS, "starters", &["-pthread", "-w"]) else { return };
    for turn in 0..3 {
        let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
        let pid = child.id().to_string();
        let output = folder.join(format!("counts-{turn}"));
        let args = ["-j", "-I", "50", "-e", "page-faults,{minor-faults},{faults}", "-p", &pid, "-o"];
        let mut perfprop = Command::new(PERFPROP).arg("stat").args(args).arg(&output).spawn().unwrap();
        let text = || fs::read_to_string(&output).unwrap_or_default();
        let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
        eventually("counts are printed", || has_ended(&mut perfprop) || text().contains("counter-value"));
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"!").unwrap();
        eventually("the program ends", || has_ended(&mut child));
        eventually("and perfprop with it", || has_ended(&mut perfprop));
        let mut sums = BTreeMap::new();
        for line in text().lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let (Some(event), Some(count)) = (line["event"].as_str(), line["counter-value"].as_f64()) else { continue };
            *sums.entry(event.to_owned()).or_insert(0.0) += count;
        }
        if sums.is_empty() {
            return eprintln!("skipped: {}", text());
        }
        // A thread that begins makes up to two more.
        let all_once = 83.0 * 200.0..84.0 * 200.0;
        assert!(sums.values().all(|count| all_once.contains(count)), "{sums:?}\n{}", text());
    }
}

/// Waits for what must come soon; gives up after ten seconds.
fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(child: &Child, signal: Signal) {
    send(child, signal as i32);
}

/// Sends any signal, real-time ones too, which have no names.
fn send(child: &Child, signal: i32) {
    assert!(Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_recording_is_whole_up_to_the_moment_it_was_killed() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    let folder = Folder::new();
    let file = folder.join("x.jsonl");
    let mut record = Command::new(PERFPROP)
        .args(["record", "-I", "5", "-e", "task-clock", "-o", file.to_str().unwrap(), "--", "sleep", "3"])
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    eventually("rounds reach the file while it runs", || lines() > 20);
    signal(&record, Signal::SIGKILL);
    record.wait().unwrap();
    let output = Command::new(PERFPROP).args(["replay", "--speed", "0", file.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // All of it is printed, and that its end is missing.
    assert!(output.status.code() == Some(1) && text.contains("task-clock"), "{text}");
}

#[test]
fn a_signal_ends_a_series_of_recordings() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    let folder = Folder::new();
    let file = folder.join("x.jsonl");
    let mut record = Command::new(PERFPROP)
        .args(["record", "-r", "3", "-I", "5", "-e", "task-clock", "-o", file.to_str().unwrap(), "--", "sleep", "60"])
        .spawn()
        .unwrap();
    let first = folder.join("x-1.jsonl");
    eventually("the first run is recorded", || fs::read_to_string(&first).is_ok_and(|text| text.lines().count() > 2));
    signal(&record, nix::sys::signal::Signal::SIGTERM);
    assert_eq!(record.wait().unwrap().code(), Some(143));
    assert!(!folder.join("x-2.jsonl").exists());
}

#[test]
fn what_nohup_ignores_ends_nothing() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    let mark = own_seconds();
    let script = "trap '' HUP; exec \"$0\" stat -e task-clock -- sh -c \"$1\"";
    let command = format!("sleep {mark} & wait; exit 7");
    let mut stat = Command::new("sh").args(["-c", script, PERFPROP, &command]).stderr(Stdio::null()).spawn().unwrap();
    eventually("it sleeps", || sleeping(&mark) == 1);
    signal(&stat, Signal::SIGHUP);
    thread::sleep(Duration::from_millis(50));
    assert_eq!((sleeping(&mark), stat.try_wait().unwrap()), (1, None));
    signal(&stat, Signal::SIGTERM);
    assert_eq!(stat.wait().unwrap().code(), Some(143));
    eventually("nothing runs any more", || sleeping(&mark) == 0);
}

#[test]
fn what_ignores_the_end_of_the_time_is_ended_before_perfprop() {
    let (mark, other) = (own_seconds(), own_seconds());
    let command = format!("sh -c \"trap '' TERM; exec sleep {mark}\" & exec sleep {other}");
    let mut stat = Command::new(PERFPROP)
        .args(["stat", "--timeout", "500", "-e", "task-clock", "--", "sh", "-c", &command])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("both sleep", || sleeping(&mark) + sleeping(&other) == 2);
    stat.wait().unwrap();
    // The kernel may take a moment to end it, but it doesn't wait for anybody.
    eventually("nothing runs any more", || sleeping(&mark) + sleeping(&other) == 0);
}

#[test]
fn a_command_has_its_exit_and_times_though_ends_of_children_are_ignored() {
    let ignoring = || {
        let mut env = Command::new("env");
        env.arg("--ignore-signal=CHLD");
        env
    };
    if !ignoring().arg("true").output().is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: env can't ignore signals here");
    }
    let run = |command: &[&str]| {
        ignoring().args([PERFPROP, "stat", "-e", "task-clock", "--"]).args(command).output().unwrap()
    };
    let output = run(&["sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exit 3"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let user = stderr.lines().find_map(|line| line.trim().strip_suffix(" seconds user")).unwrap();
    assert!(user.parse::<f64>().unwrap() > 0.0, "{stderr}");
    // The command ignores them as well, as was asked for; a shell would set that back.
    let output = run(&["grep", "SigIgn", "/proc/self/status"]);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let ignored = u64::from_str_radix(stdout.trim().trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert!(ignored & 1 << (Signal::SIGCHLD as u64 - 1) != 0, "{stdout}");
}

#[test]
fn nothing_is_left_running_when_perfprop_is_ended() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    // The time is the mark by which the grandchild is found again.
    let mark = own_seconds();
    let script = format!("sleep {mark} & sleep {mark}; true");
    let mut stat = Command::new(PERFPROP)
        .args(["stat", "-e", "task-clock", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("both sleeps run", || sleeping(&mark) == 2);
    signal(&stat, Signal::SIGTERM);
    let status = stat.wait().unwrap();
    assert_eq!(status.code(), Some(143));
    eventually("nothing runs any more", || sleeping(&mark) == 0);
    let mut summary = String::new();
    std::io::Read::read_to_string(stat.stderr.as_mut().unwrap(), &mut summary).unwrap();
    assert!(summary.contains("task-clock"), "what was counted is still told: {summary}");
}

/// `perfprop` with these arguments around a command that sleeps, as soon as that runs; its standard error goes to `to`.
fn around_a_sleep(args: &[&str], mark: &str, to: impl Into<Stdio>) -> Child {
    let mut command = Command::new(PERFPROP);
    let child = command.args(args).args(["--", "sleep", mark]).stderr(to).process_group(0).spawn().unwrap();
    eventually("the command runs", || sleeping(mark) == 1);
    child
}

#[test]
fn every_signal_that_ends_perfprop_ends_the_command_and_prints_what_was_counted() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    let named =
        [Signal::SIGUSR2, Signal::SIGALRM, Signal::SIGVTALRM, Signal::SIGPROF, Signal::SIGXCPU, Signal::SIGXFSZ];
    let ends = named.map(|signal| signal as i32).into_iter().chain([nix::libc::SIGIO, nix::libc::SIGRTMIN() + 1]);
    for end in ends {
        let mark = own_seconds();
        let stat = around_a_sleep(&["stat", "-e", "task-clock"], &mark, Stdio::piped());
        send(&stat, end);
        let output = stat.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + end));
        assert!(String::from_utf8_lossy(&output.stderr).contains("task-clock"), "{end}: {output:?}");
        eventually("the command is ended", || sleeping(&mark) == 0);
    }
}

#[test]
fn usr1_prints_what_was_counted_so_far_and_all_goes_on() {
    if counts("task-clock", &["true"]).is_none() {
        return;
    }
    let mark = own_seconds();
    let folder = Folder::new();
    let (recording, told) = (folder.join("run.jsonl"), folder.join("told"));
    let record = ["record", "-e", "task-clock", "-o", recording.to_str().unwrap()];
    for (args, words) in [(&["stat", "-e", "task-clock"][..], "task-clock"), (&record, "readings so far in")] {
        let mut child = around_a_sleep(args, &mark, fs::File::create(&told).unwrap());
        send(&child, Signal::SIGUSR1 as i32);
        eventually("it tells what was counted", || fs::read_to_string(&told).is_ok_and(|text| text.contains(words)));
        assert!(child.try_wait().unwrap().is_none() && sleeping(&mark) == 1, "{words}: it goes on");
        send(&child, Signal::SIGTERM as i32);
        assert_eq!(child.wait().unwrap().code(), Some(143));
    }
}

/// The counters that a process has open.
fn open_counters(pid: u32) -> usize {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let targets = links.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.as_os_str() == "anon_inode:[perf_event]").count()
}

/// Other processes of a process group, also those that have ended and nobody has waited for.
fn others_of_group(group: u32) -> usize {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_of_group = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // pid (name) state ppid pgrp
        stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(2)) == Some(&group.to_string())
    };
    pids.filter(|pid| *pid != group && is_of_group(pid)).count()
}

#[test]
fn counts_are_printed_before_counters_are_closed_and_whoever_is_told_to_end_does_not_wait_for_that() {
    let events = "syscalls:sys_enter_execve,syscalls:sys_enter_openat,syscalls:sys_exit_exit_group";
    if counts(events, &["true"]).is_none() {
        return;
    }
    // A child without a parent becomes this process', and can be seen for as long as nobody waits for it.
    nix::sys::prctl::set_child_subreaper(true).unwrap();
    let mark = own_seconds();
    // Whoever prints into a full pipe waits.
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let size = nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_GETPIPE_SZ).unwrap();
    std::io::Write::write_all(&mut writer, &vec![b'-'; usize::try_from(size).unwrap()]).unwrap();
    let mut stat = around_a_sleep(&["stat", "-e", events], &mark, writer);
    assert_eq!(open_counters(stat.id()), 3);
    send(&stat, Signal::SIGTERM as i32);
    let writes = format!("{} 0x2 ", nix::libc::SYS_write);
    let call = format!("/proc/{}/syscall", stat.id());
    eventually("it prints", || fs::read_to_string(&call).is_ok_and(|text| text.starts_with(&writes)));
    assert_eq!((sleeping(&mark), open_counters(stat.id())), (0, 3), "counters are open while it prints");
    assert_eq!(others_of_group(stat.id()), 0);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    assert!(text.contains("sys_enter_execve"), "{text}");
    assert_eq!(stat.wait().unwrap().code(), Some(143));
    assert_eq!(others_of_group(stat.id()), 1, "a child closes the counters");
}

/// The lines of `perfprop stat -j` with these arguments; `None` where nothing can be counted.
fn stat_lines(args: &[&str]) -> Option<Vec<Value>> {
    let output = Command::new(PERFPROP).args(["stat", "-j"]).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() {
        eprintln!("skipped: {text}");
        return None;
    }
    Some(lines)
}

/// A program that is on a CPU all the time.
const BUSY: [&str; 3] = ["sh", "-c", "while :; do :; done"];

#[test]
fn every_cpu_of_the_machine_is_counted_together_or_apart() {
    let Some(together) = stat_lines(&["-a", "-e", "cpu-clock", "--", "sleep", "0.1"]) else { return };
    let Some(apart) = stat_lines(&["-a", "-A", "-e", "cpu-clock", "--", "sleep", "0.1"]) else { return };
    let cpus = perfprop::host::HostFiles::here().online_cpus().unwrap();
    assert_eq!(together.len(), 1);
    assert_eq!(apart.len(), cpus.len());
    // Each CPU has a clock of its own that runs all the time.
    let seconds = together[0]["counter-value"].as_f64().unwrap() / 1000.0;
    assert!(seconds >= 0.1 * cpus.len() as f64, "{together:?}");
    let named: Vec<_> = apart.iter().map(|line| line["cpu"].as_str().unwrap().to_owned()).collect();
    assert_eq!(named, cpus.iter().map(u32::to_string).collect::<Vec<_>>());
}

#[test]
fn what_comes_and_goes_on_a_machine_has_a_name() {
    let folder = Folder::new();
    let program = folder.join("shortlived");
    fs::copy("/bin/sh", &program).unwrap();
    let script = format!(
        "for i in 1 2 3 4 5; do {} -c 'j=0; while [ $j -lt 50000 ]; do j=$((j+1)); done'; done",
        program.display()
    );
    let file = folder.join("machine.jsonl");
    let args =
        ["record", "-a", "-e", "task-clock", "-I", "100", "-o", file.to_str().unwrap(), "--", "sh", "-c", &script];
    let output = Command::new(PERFPROP).args(args).output().unwrap();
    let text = fs::read_to_string(&file).unwrap_or_default();
    if !text.contains("\"ended\":[") {
        // Without CAP_NET_ADMIN, in a container, or without CONFIG_TASKSTATS.
        return eprintln!(
            "skipped: the kernel doesn't tell what has ended: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let of_name = |ended: &Value| ended.as_array()?.iter().find(|one| one["name"] == "shortlived").cloned();
    let last = lines.rev().find_map(|line| of_name(&line["ended"]));
    let Some(last) = last else { panic!("no shortlived: {text}") };
    // The last may have ended after the last look.
    assert!((4..=5).contains(&last["count"].as_u64().unwrap()), "{last}");
    assert!(last["cpu_ns"].as_u64().unwrap() > 10_000_000, "{last}");
}

#[test]
fn one_cpu_is_counted_alone_and_an_absent_one_is_refused() {
    let Some(lines) = stat_lines(&["-C", "0", "-e", "cpu-clock", "--timeout", "50"]) else { return };
    let counted = lines[0]["counter-value"].as_f64().unwrap();
    assert!(counted >= 50.0, "{lines:?}");
    let output =
        Command::new(PERFPROP).args(["stat", "-C", "65000", "-e", "cpu-clock", "--", "true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no CPU 65000"));
}

#[test]
fn an_event_that_the_kernel_refuses_leaves_the_others() {
    // No x86 or Arm breakpoint is 3 bytes long; and a CPU has fewer than 20 of any length.
    let many = ["mem:0x1000:w"; 20].join(",");
    let cases =
        [("mem:0x1000/3:w,page-faults".to_owned(), 1, "not supported"), (format!("{many},page-faults"), 2, "in use")];
    for (events, fewest, refused) in cases {
        let Some(lines) = stat_lines(&["-e", &events, "--", "true"]) else { return };
        let of = |status: &str| lines.iter().filter(|line| line["status"] == status).count();
        assert!(of("counted") >= fewest && of(refused) > 0, "{lines:?}");
        assert_eq!(of("counted") + of(refused), lines.len(), "{lines:?}");
        assert_eq!(lines.last().unwrap()["status"], "counted");
    }
}

#[test]
fn what_a_command_did_on_each_cpu_adds_up() {
    let forks = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.002 & done; wait";
    let Some(lines) = stat_lines(&["-A", "-e", "sched:sched_process_fork", "--", "sh", "-c", forks]) else { return };
    let counts: f64 = lines.iter().filter_map(|line| line["counter-value"].as_f64()).sum();
    assert_eq!(counts, 20.0, "what happened on other CPUs is not scaled up to: {lines:?}");
    assert!(lines.iter().all(|line| line["pcnt-running"].as_f64().is_none_or(|part| part == 100.0)), "{lines:?}");
}

#[test]
fn what_runs_while_it_is_read_on_each_cpu_is_counted_all_the_time() {
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).stdout(Stdio::null()).spawn().unwrap();
    let pid = busy.id().to_string();
    let args = ["-A", "-p", &pid, "-e", "context-switches,page-faults", "--timeout", "60"];
    let lines: Vec<_> = (0..8).filter_map(|_| stat_lines(&args)).flatten().collect();
    busy.kill().unwrap();
    busy.wait().unwrap();
    for line in lines {
        assert!(line["pcnt-running"].as_f64().is_none_or(|part| part == 100.0), "{line:?}");
    }
}

#[test]
fn a_delay_leaves_out_the_beginning_and_a_timeout_begins_after_it() {
    let mut delayed = vec!["-D", "100", "--timeout", "200", "-e", "task-clock", "--"];
    delayed.extend(BUSY);
    let started = std::time::Instant::now();
    let Some(lines) = stat_lines(&delayed) else { return };
    let wall = lines[0]["counter-value"].as_f64().unwrap() / lines[0]["metric-value"].as_f64().unwrap();
    let whole = started.elapsed().as_secs_f64() * 1000.0;
    assert!(wall <= whole - 100.0, "CPUs utilized are about the time of counting: {wall} of {whole} ms");
    // Something else may take the CPU, but nothing can give more than was waited for.
    let counted = lines[0]["counter-value"].as_f64().unwrap();
    let elapsed = 1000.0 * lines[0]["event-runtime"].as_f64().unwrap() / 1e9;
    assert!(counted > 0.0 && (counted - elapsed).abs() < 5.0, "{lines:?}");
    assert!(wall >= 195.0, "as perf has it, the timeout is that of counting: {wall} ms");
}

#[test]
fn threads_are_told_apart() {
    let program = "import threading, time\n\
        def work():\n  while True: open('/etc/passwd').close()\n\
        threading.Thread(target=work, daemon=True).start()\nprint('ready', flush=True)\ntime.sleep(60)";
    let Ok(mut python) = Command::new("python3").args(["-c", program]).stdout(Stdio::piped()).spawn() else {
        eprintln!("skipped: no python3");
        return;
    };
    std::io::Read::read_exact(python.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
    let pid = python.id().to_string();
    let lines = stat_lines(&["--per-thread", "-p", &pid, "-e", "syscalls:sys_enter_openat", "--timeout", "100"]);
    python.kill().unwrap();
    python.wait().unwrap();
    let Some(lines) = lines else { return };
    assert_eq!(lines.len(), 2, "{lines:?}");
    let busy = lines.iter().filter(|line| line["counter-value"].as_f64().is_some_and(|count| count > 0.0)).count();
    assert_eq!(busy, 1, "the main thread sleeps: {lines:?}");
    assert!(lines.iter().all(|line| line["thread"].as_str().unwrap().starts_with("python3-")));
}

#[test]
fn children_are_left_out_where_asked() {
    let script = ["-e", "syscalls:sys_enter_execve", "--", "sh", "-c", "true; ls / > /dev/null; ls / > /dev/null; :"];
    let Some(with) = stat_lines(&script) else { return };
    let mut alone = vec!["-i"];
    alone.extend(script);
    let Some(without) = stat_lines(&alone) else { return };
    assert_eq!(with[0]["counter-value"], 2.0);
    assert_eq!(without[0]["counter-value"], 0.0);
}

/// Calls a function as often as its argument says, and a static one for every fourth call.
const CALLS: &str = "#include <stdlib.h>\n\
    __attribute__((noinline)) int called(int x) { __asm__ volatile(\"\"); return x + 1; }\n\
    static __attribute__((noinline)) int hidden(int x) { __asm__ volatile(\"\"); return x + 2; }\n\
    int main(int c, char **v) { int s = 0, n = atoi(v[1]);\n\
    for (int i = 0; i < n; i++) { s += called(i); if (i % 4 == 0) s += hidden(i); } return s == -1; }\n";

/// A program of these calls, or `None` where there is no compiler.
fn compiled(folder: &std::path::Path, name: &str, options: &[&str]) -> Option<String> {
    compiled_of(folder, CALLS, name, options)
}

/// A program of a text in C, or `None` where there is no compiler.
fn compiled_of(folder: &std::path::Path, text: &str, name: &str, options: &[&str]) -> Option<String> {
    let source = folder.join("calls.c");
    fs::write(&source, text).unwrap();
    let program = folder.join(name).display().to_string();
    let output = Command::new("gcc").args(["-O1", "-o", &program]).args(options).arg(&source).output();
    match output {
        Ok(output) if output.status.success() => Some(program),
        other => {
            eprintln!("skipped: no C compiler here: {other:?}");
            None
        }
    }
}

#[test]
fn probes_count_the_calls_of_a_program() {
    let folder = Folder::new();
    for (name, options) in [("anywhere", &["-fpie", "-pie"][..]), ("fixed", &["-no-pie"][..])] {
        let Some(program) = compiled(&folder, name, options) else { break };
        let (call, back) = (format!("uprobe:{program}:called"), format!("uretprobe:{program}:called"));
        let (local, start) = (format!("uprobe:{program}:hidden:u"), format!("uprobe:{program}:main+0"));
        let Some(counts) = counts(&[&call, &back, &local, &start].map(String::as_str).join(","), &[&program, "1000"])
        else {
            break;
        };
        assert_eq!((counts[&call], counts[&back], counts[&local], counts[&start]), (1000.0, 1000.0, 250.0, 1.0));
    }
}

/// Calls a function once in each of three threads, in a child process, and in the program itself; returns 7 if all could start.
const STARTS: &str = "#include <pthread.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
    __attribute__((noinline)) void *called(void *p) { __asm__ volatile(\"\"); return p; }\n\
    int main(void) { pthread_t t[3];\n\
    for (int i = 0; i < 3; i++) if (pthread_create(t + i, 0, called, 0)) return 1;\n\
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n\
    pid_t child = fork(); if (child < 0) return 2;\n\
    if (child == 0) { called(0); _exit(0); }\n\
    int status; if (waitpid(child, &status, 0) != child || status) return 3;\n\
    called(0); return 7; }\n";

/// The probes that a process of perfprop has in tracefs.
fn probes_of(perfprop: u32) -> usize {
    let group = format!(":perfprop_{perfprop}/");
    let list = fs::read_to_string("/sys/kernel/tracing/uprobe_events").unwrap_or_default();
    list.lines().filter(|line| line.contains(&group)).count()
}

/// The count of an event and the exit code of the program that starts threads and a child.
fn count_of_starts(program: &str, event: &str, args: &[&str]) -> Option<(Value, Option<i32>, u32)> {
    let mut command = Command::new(PERFPROP);
    command.args(["stat", "-j"]).args(args).args(["-e", event, "--", program]).stderr(Stdio::piped());
    let stat = command.spawn().unwrap();
    let id = stat.id();
    let output = stat.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = line.filter(|line| line["counter-value"].is_number());
    if line.is_none() {
        eprintln!("skipped: {event} can't be counted here: {text}");
    }
    Some((line?, output.status.code(), id))
}

#[test]
fn a_probe_lets_threads_and_children_start_and_counts_them() {
    let folder = Folder::new();
    // A name that tracefs doesn't take as it is.
    let Some(program) = compiled_of(&folder, STARTS, "starts # all", &["-pthread"]) else { return };
    let event = format!("uprobe:{program}:called");
    let Some((line, code, perfprop)) = count_of_starts(&program, &event, &[]) else { return };
    assert_eq!(code, Some(7), "{line}");
    if line["status"] == "counted" {
        assert_eq!(line["counter-value"], 5.0, "{line}");
        assert_eq!(probes_of(perfprop), 0);
    } else {
        assert_eq!((&line["status"], &line["counter-value"]), (&"partial".into(), &1.0.into()), "{line}");
    }
    // Without inheritance the program is alone in it.
    let Some((alone, code, _)) = count_of_starts(&program, &event, &["-i"]) else { return };
    assert_eq!((&alone["counter-value"], code), (&1.0.into(), Some(7)), "{alone}");
    // Two probes of one place are two tracepoints.
    let both = format!("{event},uretprobe:{program}:called,page-faults");
    let Some((line, code, _)) = count_of_starts(&program, &both, &[]) else { return };
    assert!(line["status"] != "counted" || line["counter-value"] == 5.0, "{line}");
    assert_eq!(code, Some(7));
}

#[test]
fn probes_are_removed_however_perfprop_ends() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "calls", &[]) else { return };
    let event = format!("uprobe:{program}:called");
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGKILL] {
        let mut command = Command::new(PERFPROP);
        command.args(["stat", "-e", &event, "--", "sleep", "60"]).stderr(Stdio::null());
        let mut stat = command.spawn().unwrap();
        let id = stat.id();
        let start = Instant::now();
        while probes_of(id) == 0 && start.elapsed() < Duration::from_secs(5) {
            thread::sleep(Duration::from_millis(20));
        }
        let had = probes_of(id);
        send(&stat, signal as i32);
        stat.wait().unwrap();
        if had == 0 {
            eprintln!("skipped: no probes can be made in tracefs here");
            return;
        }
        eventually("its probe is removed", || probes_of(id) == 0);
    }
}

#[test]
fn probes_of_a_process_that_is_gone_are_removed() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "calls", &[]) else { return };
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let left = format!("p:perfprop_{}/p0 {program}:0x40\n", gone.id());
    let list = fs::File::options().append(true).open("/sys/kernel/tracing/uprobe_events");
    if list.and_then(|mut list| std::io::Write::write_all(&mut list, left.as_bytes())).is_err() {
        eprintln!("skipped: no probes can be made in tracefs here");
        return;
    }
    // Another perfprop may remove it first.
    if counts(&format!("uprobe:{program}:called"), &[&program, "1"]).is_some() {
        assert_eq!(probes_of(gone.id()), 0);
    }
}

#[test]
fn a_probe_without_its_function_says_what_to_do() {
    let folder = Folder::new();
    let refused = |event: String| {
        let output = Command::new(PERFPROP).args(["stat", "-e", &event, "--", "true"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{event}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    if let (Some(whole), Some(stripped)) = (compiled(&folder, "whole", &[]), compiled(&folder, "stripped", &["-s"])) {
        let text = refused(format!("uprobe:{whole}:caled"));
        if text.contains("no PMU 'uprobe'") {
            eprintln!("skipped: this kernel has no uprobes");
        } else {
            assert!(text.contains("did you mean called?"), "{text}");
            assert!(refused(format!("uprobe:{stripped}:called")).contains("build it without -s and strip"));
            assert!(refused(format!("uprobe:{whole}:0x3")).contains("has no code at address 0x3"));
            assert!(refused(format!("uprobe:{}:f", folder.join("calls.c").display())).contains("is no program"));
            assert!(refused("uprobe:/nonexistent:f".to_owned()).contains("cannot read /nonexistent"));
        }
    }
}

#[test]
fn stat_prints_what_the_regions_of_a_program_took() {
    let example = Path::new(PERFPROP).parent().unwrap().join("examples/linear_regression");
    if !example.exists() || counts("task-clock", &["true"]).is_none() {
        eprintln!("skipped: no {} (cargo test makes it), or nothing can be counted", example.display());
        return;
    }
    let stat = |args: &[&str]| {
        let output =
            Command::new(PERFPROP).arg("stat").args(args).args(["-e", "task-clock", "--"]).arg(&example).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let text = stat(&[]);
    let row =
        |calls: &str, name: &str| text.lines().any(|line| line.trim_start().starts_with(calls) && line.contains(name));
    assert!(row("300 ", "   model  backward: ") && row("100 ", "     likelihood (warmup)  backward: "), "{text}");
    let json = stat(&["-j"]);
    let last: Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    let rows = last["regions"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum::<u64>(), 1200, "{json}");
    let text = stat(&["--region-events", "page-faults"]);
    assert!(text.contains(" in regions of process ") && row("", "   model"), "{text}");
    // A program without regions has no table.
    let none = Command::new(PERFPROP).args(["stat", "-e", "task-clock", "--", "true"]).output().unwrap();
    assert!(!String::from_utf8(none.stderr).unwrap().contains("Regions"));
}
