//! Tests what holds for programs that call the functions of `perfprop.h`.

#![allow(clippy::unwrap_used, reason = "tests panic")]
#![allow(unsafe_code, reason = "C's functions are called as C calls them")]

mod support;

use std::ffi::{CString, c_char, c_int};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use perfprop_regions::layout::{TEXT, THREADS};
use perfprop_regions::{CSV, JSON};
use support::{Folder, PART, part};

unsafe extern "C" {
    fn perfprop_begin(name: *const c_char) -> u64;
    fn perfprop_begin_recursive(name: *const c_char) -> u64;
    fn perfprop_end(region: u64);
    fn perfprop_phase(name: *const c_char);
}

fn begin(name: &str) -> u64 {
    let name = CString::new(name).unwrap();
    // SAFETY: the text ends with a zero.
    unsafe { perfprop_begin(name.as_ptr()) }
}

fn end(region: u64) {
    // SAFETY: it takes any number.
    unsafe { perfprop_end(region) }
}

#[test]
fn plays_a_part() {
    let Ok(what) = std::env::var(PART) else { return };
    match what.as_str() {
        "ends elsewhere" => {
            let region = begin("task");
            std::thread::spawn(move || {
                let own = begin("task");
                end(region);
                end(region);
                end(own);
            })
            .join()
            .unwrap();
            end(region);
        }
        "ends twice" => {
            let first = begin("job");
            end(first);
            let second = begin("job");
            end(first);
            std::thread::sleep(Duration::from_millis(20));
            end(second);
        }
        "has signals" => have_signals(),
        "has many names" => {
            // Each that fits takes half of the room that is left, or more, until there is none.
            (0..TEXT.ilog2()).rev().for_each(|power| end(begin(&"x".repeat(1 << power))));
            for _ in 0..10 {
                let (around, within) = (begin("load"), begin("parse"));
                end(within);
                end(around);
            }
        }
        "has many threads" => have_many_threads(),
        // Nobody has a name there.
        // SAFETY: where nothing is recorded the name isn't read.
        "has no name" => assert_eq!(unsafe { perfprop_begin(8 as *const c_char) }, 0),
        _ => end(begin(&what)),
    }
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: c_int) {
    // SAFETY: the text ends with a zero.
    unsafe { perfprop_end(perfprop_begin_recursive(c"handler".as_ptr())) };
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// Sends signals to the thread that calls this, until it is told to end: once it has, no more come.
fn send_signals(is_over: &'static AtomicBool) -> std::thread::JoinHandle<()> {
    // SAFETY: it takes nothing, and can't fail.
    let thread = unsafe { libc::pthread_self() };
    std::thread::spawn(move || {
        while !is_over.load(Ordering::Relaxed) {
            // SAFETY: the thread waits for the end of this one.
            unsafe { libc::pthread_kill(thread, libc::SIGALRM) };
            std::thread::sleep(Duration::from_micros(50));
        }
    })
}

/// Regions, and phases in which they are new, that a handler with regions of its own interrupts anywhere.
fn have_signals() {
    // All memory is taken before: a handler that interrupted that couldn't take any.
    let phases: Vec<CString> = (0..1000).map(|phase| CString::new(phase.to_string()).unwrap()).collect();
    // SAFETY: the handler has the type of one.
    unsafe { libc::signal(libc::SIGALRM, count_signal as extern "C" fn(c_int) as libc::sighandler_t) };
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let sender = send_signals(&IS_OVER);
    for phase in phases.iter().cycle() {
        // SAFETY: the texts end with a zero.
        unsafe {
            perfprop_phase(phase.as_ptr());
            let around = perfprop_begin(c"around".as_ptr());
            perfprop_end(perfprop_begin(c"within".as_ptr()));
            perfprop_end(around);
        }
        if SIGNALS.load(Ordering::Relaxed) >= 1000 {
            break;
        }
    }
    IS_OVER.store(true, Ordering::Relaxed);
    sender.join().unwrap();
    tell_signals();
}

#[allow(clippy::print_stdout, reason = "the test reads it")]
fn tell_signals() {
    println!("signals {}", SIGNALS.load(Ordering::Relaxed));
}

/// More threads at once than there is room for, each with a call of two regions, one of which calls itself.
fn have_many_threads() {
    let all = Barrier::new(THREADS + 50);
    std::thread::scope(|scope| {
        for _ in 0..THREADS + 50 {
            let work = || {
                let work = begin("work");
                // SAFETY: the texts end with a zero.
                let parts =
                    unsafe { [perfprop_begin_recursive(c"part".as_ptr()), perfprop_begin_recursive(c"part".as_ptr())] };
                parts.into_iter().rev().for_each(end);
                all.wait();
                end(work);
            };
            std::thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, work).unwrap();
        }
    });
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The calls of a region in the rows of a program's JSON, and those that were lost.
fn calls_and_lost(text: &str, name: &str) -> (u64, u64) {
    let json =
        text.lines().skip_while(|line| !line.starts_with("{\"version\"")).take_while(|line| !line.starts_with("test "));
    let json: serde_json::Value = serde_json::from_str(&json.collect::<Vec<_>>().join("\n")).unwrap();
    let rows = json["regions"].as_array().unwrap().iter();
    let of_name = rows.filter(|row| row["path"].as_array().unwrap().last().unwrap() == name);
    (of_name.map(|row| row["calls"].as_u64().unwrap()).sum(), json["lost_calls"].as_u64().unwrap())
}

fn with_json(what: &str) -> (Output, String) {
    // A program that waits for itself would do so for ever.
    let part = part(what);
    let mut limited = Command::new("timeout");
    limited.arg("60").arg(part.get_program()).args(part.get_args());
    limited.envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.env(JSON, "-").env_remove(CSV).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output, text)
}

#[test]
fn a_region_that_another_thread_ends_goes_on() {
    let (output, text) = with_json("ends elsewhere");
    assert_eq!(calls_and_lost(&text, "task"), (2, 0));
    assert_eq!(told(&output).matches("on another thread than the one that began it").count(), 1, "{output:?}");
}

#[test]
fn a_region_that_is_ended_twice_ends_no_other() {
    let (output, text) = with_json("ends twice");
    assert_eq!(calls_and_lost(&text, "job"), (2, 0));
    assert!(told(&output).contains("a region was ended that had ended already"), "{output:?}");
    let longest = text.split("\"max_ns\":").nth(1).and_then(|rest| rest.split(',').next()?.parse::<f64>().ok());
    assert!(longest.is_some_and(|ns| ns > 19e6), "{text}");
}

#[test]
fn signal_handlers_wait_for_nothing_and_what_they_cannot_count_is_lost() {
    let (output, text) = with_json("has signals");
    let (calls, lost) = calls_and_lost(&text, "handler");
    let signals = text.lines().find_map(|line| line.strip_prefix("signals ")?.parse().ok());
    assert_eq!(Some(calls + lost), signals, "{calls} and {lost}");
    assert!(
        lost > 0 && told(&output).contains(&format!("{lost} calls are not counted: a signal handler had interrupted"))
    );
    // The same where nobody watches.
    let part = part("has signals");
    let mut limited = Command::new("timeout");
    let envs = part.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let limited = limited.arg("60").arg(part.get_program()).args(part.get_args()).envs(envs);
    assert!(limited.env_remove(CSV).env_remove(JSON).output().unwrap().status.success());
}

#[test]
fn names_without_room_are_counted_together_and_told_once() {
    let (output, text) = with_json("has many names");
    let (calls, lost) = calls_and_lost(&text, "(other)");
    // 'load' and 'parse' each ten times, and what didn't fit before.
    assert!((20..20 + u64::from(TEXT.ilog2())).contains(&calls) && lost == 0, "{calls} {lost}");
    let told = told(&output);
    assert_eq!((told.matches("names of regions").count(), told.matches("already open").count()), (1, 0), "{told}");
}

#[test]
fn calls_of_threads_without_room_are_lost_and_told() {
    let (output, text) = with_json("has many threads");
    let (work, lost) = calls_and_lost(&text, "work");
    let (part, _) = calls_and_lost(&text, "part");
    assert_eq!((work + part + lost, part, lost % 3), (3 * (THREADS as u64 + 50), 2 * work, 0));
    assert!(lost > 0 && told(&output).contains(&format!("{lost} calls are not counted: there are too many threads")));
}

#[test]
fn names_are_not_read_where_nobody_asks() {
    let output = part("has no name").env_remove(CSV).env_remove(JSON).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Runs two programs from a shell with a process group of its own, with what stands between their commands.
fn script(file: &Path, between: &str) -> Output {
    let part = part("");
    let program = part.get_program().to_str().unwrap();
    let one = |what: &str| format!("{PART}={what} '{program}' --exact plays_a_part");
    let text = format!("{} {between} {}; wait", one("first"), one("second"));
    Command::new("sh").args(["-c", &text]).env(CSV, file).process_group(0).output().unwrap()
}

/// The region of a file.
fn region_in(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().nth(1).and_then(|line| line.split(',').next()).unwrap().to_owned()
}

#[test]
fn programs_of_one_run_write_files_of_their_own_and_the_next_run_begins_anew() {
    let folder = Folder::new();
    let file = folder.0.join("out.csv");
    let files = || {
        let entries = std::fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.collect();
        files.sort();
        files
    };
    for run in 1..3 {
        let output = script(&file, ";");
        assert!(told(&output).contains("out.csv is another process's of this run"), "{output:?}");
        let regions: Vec<_> = files().iter().map(|file| region_in(file)).collect();
        assert_eq!(regions, [&["first"][..], &["second"].repeat(run)].concat());
        // The kernel's clock of processes has steps of 10 ms.
        std::thread::sleep(Duration::from_millis(40));
    }
    for run in 0..10 {
        let (old, new) = (folder.0.join("old"), folder.0.join("together.csv"));
        std::fs::write(&new, "of an earlier run").unwrap();
        std::thread::sleep(Duration::from_millis(40));
        let output = script(&new, "&");
        let text = told(&output);
        assert_eq!(text.matches("together.csv is another process's").count(), 1, "{run}: {output:?}");
        let of_another = files().into_iter().find(|file| file.to_str().unwrap().contains("together.csv.")).unwrap();
        let mut regions = [region_in(&new), region_in(&of_another)];
        regions.sort();
        assert_eq!(regions, ["first", "second"]);
        std::fs::rename(of_another, old).unwrap();
    }
    let numbered = folder.0.join("of %p.csv");
    assert!(part("numbered").env(CSV, numbered).output().unwrap().status.success());
    assert!(files()[0].file_name().unwrap().to_str().unwrap().starts_with("of "), "{:?}", files());
}
