//! Tests events that are counted in regions: those of the kernel's software, which every machine has.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests panic and say why they skip")]

mod support;

use std::future::Future;
use std::pin::pin;
use std::process::{Command, Output};
use std::task::{Context, Poll, Waker};

use perfprop_regions::{CSV, EVENTS, EVENTS_FILE, EventTotal, FOLDER, JSON, Region, Row, Snapshot, region};
use serde_json::Value;
use support::{Folder, PART, built, here, library, part};

/// Pages that a part writes for the first time.
const PAGES: usize = 64;

/// This program as one that counts events; `None` where the kernel forbids them.
fn counts(what: &str, events: &str) -> Option<(Vec<Snapshot>, String)> {
    let folder = Folder::new();
    let output = part(what).env(FOLDER, &folder.0).env(EVENTS, events).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("the kernel doesn't allow it") || said.contains("no perf_event_open") {
        eprintln!("skipped: {said}");
        return None;
    }
    Some((folder.snapshots(), said))
}

fn row(snapshots: &[Snapshot], name: &str) -> Row {
    snapshots.iter().flat_map(Snapshot::rows).find(|row| row.name == name).unwrap()
}

fn total(snapshots: &[Snapshot], name: &str) -> EventTotal {
    total_of(&row(snapshots, name)).unwrap()
}

fn total_of(row: &Row) -> Option<EventTotal> {
    row.events[0].total(row.times.calls)
}

#[test]
fn plays_a_part() {
    let Ok(what) = std::env::var(PART) else { return };
    match what.as_str() {
        "touches" => touch_pages(),
        "waits" => wait_in_a_task(),
        "is short of descriptors" => forbid_descriptors(),
        "forks" => fork(),
        _ => {}
    }
}

/// Writes to pages that nobody had.
#[expect(unsafe_code, reason = "only the kernel gives memory that surely is new")]
fn touch(pages: usize) {
    const PAGE: usize = 4096;
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the memory is new, written within its bounds, and given back.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), pages * PAGE, access, flags, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        libc::madvise(memory, pages * PAGE, libc::MADV_NOHUGEPAGE);
        (0..pages).for_each(|page| memory.cast::<u8>().add(page * PAGE).write_volatile(1));
        libc::munmap(memory, pages * PAGE);
    }
}

fn touch_pages() {
    // The first call of each has the faults of its node.
    for _ in 0..10 {
        let _outer = region("outer");
        touch(PAGES);
        let _inner = region("inner");
        touch(2 * PAGES);
    }
}

#[test]
fn faults_of_pages_are_counted_in_the_region_that_touches_them() {
    let Some((snapshots, _)) = counts("touches", "page-faults") else { return };
    let (outer, inner) = (total(&snapshots, "outer"), total(&snapshots, "inner"));
    // Each call has those of its pages, and the first may have some of what it runs.
    let within = |counted: f64, pages: usize| (10.0 * pages as f64..10.0 * pages as f64 + 100.0).contains(&counted);
    assert!(within(outer.count, 3 * PAGES) && within(inner.count, 2 * PAGES), "{outer:?} {inner:?}");
    assert!(within(outer.self_count.unwrap(), PAGES), "{outer:?}");
    assert_eq!((outer.error, outer.min, outer.calls, outer.missing_calls), (Some(0.0), 3.0 * PAGES as f64, 10, 0));
    assert_eq!((outer.interval(), outer.run_ratio), (Some((outer.count, outer.count)), 1.0));
}

#[test]
fn rows_say_what_was_counted_in_csv_and_json() {
    let run =
        |variable: &str| part("touches").env(variable, "-").env(EVENTS, "page-faults,task-clock").output().unwrap();
    let csv = String::from_utf8(run(CSV).stdout).unwrap();
    let header: Vec<&str> = csv.lines().find(|line| line.starts_with("name,")).unwrap().split(',').collect();
    let Some(at) = header.iter().position(|column| column.starts_with("page-faults")) else {
        return eprintln!("skipped: events can't be counted here");
    };
    let inner: Vec<&str> = csv.lines().find(|line| line.starts_with("inner,")).unwrap().split(',').collect();
    assert_eq!(inner.len(), header.len());
    assert!(inner[at].parse::<usize>().unwrap() >= 20 * PAGES, "{inner:?}");
    assert_eq!((inner[at + 1], inner[at + 5], inner[at + 7]), ("0", (2 * PAGES).to_string().as_str(), "0"));
    let output = run(JSON);
    let text = String::from_utf8(output.stdout).unwrap();
    let value: Value =
        serde_json::from_str(&text[text.find("{\"version\"").unwrap()..=text.rfind("]}").unwrap() + 1]).unwrap();
    let outer = value["regions"].as_array().unwrap().iter().find(|row| row["path"] == serde_json::json!(["outer"]));
    let faults = &outer.unwrap()["events"][header[at]];
    assert!(faults["count"].as_f64().unwrap() >= (30 * PAGES) as f64, "{faults}");
    assert_eq!((&faults["calls"], &faults["missing_calls"], &faults["error"]), (&10.into(), &0.into(), &0.into()));
    let marker = &value["marker_events"][header[at + 8]];
    assert!(marker["outer"].as_f64() >= marker["inner"].as_f64() && marker["inner"].as_f64() > Some(0.0), "{marker}");
}

#[test]
fn what_cannot_be_counted_is_told_and_regions_go_on() {
    let Some((snapshots, said)) = counts("touches", "page-faults,no-such-event,task-clock,L1-dcache-loads:x") else {
        return;
    };
    assert!(said.contains("no event is called 'no-such-event'") && said.contains("'L1-dcache-loads:x'"), "{said}");
    assert_eq!(said.matches("PERFPROP_REGION_EVENTS").count(), 2, "{said}");
    assert_eq!(snapshots[0].events.len(), 2);
    assert_eq!((row(&snapshots, "outer").times.calls, row(&snapshots, "outer").events.len()), (10, 2));
}

#[test]
fn more_events_than_there_is_room_for_are_told() {
    let nine = ["page-faults"; 9].join(",");
    let Some((snapshots, said)) = counts("touches", &nine) else { return };
    assert_eq!(snapshots[0].events.len(), 8);
    assert!(said.contains("9th event"), "{said}");
}

#[test]
fn the_folder_of_perfprop_may_name_the_events() {
    let folder = Folder::new();
    std::fs::write(folder.0.join(EVENTS_FILE), "minor-faults\n").unwrap();
    let output = part("touches").env(FOLDER, &folder.0).env_remove(EVENTS).output().unwrap();
    std::fs::remove_file(folder.0.join(EVENTS_FILE)).unwrap();
    let events = &folder.snapshots()[0].events;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(events.iter().all(|name| name.starts_with("minor-faults")), "{events:?}");
    assert!(events.len() == 1 || said.contains("minor-faults"), "{said}");
}

/// Is ready when it was polled so often.
struct Polled(u32);

impl Future for Polled {
    type Output = ();

    fn poll(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        touch(PAGES);
        self.0 -= 1;
        if self.0 == 0 { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn wait_in_a_task() {
    static TASK: Region = Region::new("task");
    let mut task = pin!(TASK.instrument(Polled(4)));
    let mut context = Context::from_waker(Waker::noop());
    while task.as_mut().poll(&mut context).is_pending() {
        touch(10 * PAGES);
    }
}

#[test]
fn a_task_counts_while_it_is_polled() {
    let Some((snapshots, _)) = counts("waits", "page-faults") else { return };
    let task = total(&snapshots, "task");
    assert_eq!((task.calls, task.missing_calls), (1, 0));
    assert!((4.0 * PAGES as f64..14.0 * PAGES as f64).contains(&task.count), "{task:?}");
}

/// A first thread that counts, and a second that can't.
#[expect(unsafe_code, reason = "a limit of the process")]
fn forbid_descriptors() {
    drop(region("counts"));
    let limit = libc::rlimit { rlim_cur: 4, rlim_max: 4 };
    // SAFETY: the pointer is to a value of our own.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    let other = std::thread::spawn(|| (0..3).for_each(|_| drop(region("can't count"))));
    other.join().unwrap();
}

#[test]
fn a_thread_that_cannot_count_has_missing_calls_and_no_zeros() {
    let Some((snapshots, said)) = counts("is short of descriptors", "page-faults") else { return };
    assert!(said.contains("ulimit -n"), "{said}");
    assert!(total_of(&row(&snapshots, "counts")).is_some());
    let other = row(&snapshots, "can't count");
    assert_eq!((total_of(&other), other.events[0].all.missing, other.times.calls), (None, 3, 3));
}

#[expect(unsafe_code, reason = "a test of fork")]
fn fork() {
    drop(region("in the parent"));
    // SAFETY: the child makes regions and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        touch_pages();
        // SAFETY: it ends without anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a value of our own.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
}

#[test]
fn a_child_that_was_forked_counts_its_own_events() {
    let Some((snapshots, _)) = counts("forks", "page-faults") else { return };
    assert!(total(&snapshots, "inner").count >= 20.0 * PAGES as f64);
    assert_eq!(total(&snapshots, "in the parent").calls, 1);
}

/// The count of an event in a region of a program that wrote CSV; `None` where none can be counted.
fn counted(output: &Output, region: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("name,"));
    let column = lines.next()?.split(',').position(|column| column.starts_with("task-clock"))?;
    lines.find(|line| line.starts_with(&format!("{region},")))?.split(',').nth(column)?.parse().ok()
}

fn check(output: &Output, region: &str) {
    assert!(output.status.success(), "{output:?}");
    match counted(output, region) {
        Some(ns) => assert!(ns > 0, "{output:?}"),
        None => assert!(String::from_utf8_lossy(&output.stderr).contains("can't be counted"), "{output:?}"),
    }
}

#[test]
fn programs_in_cpp_and_python_count_by_the_same_variable() {
    let (Some(library), folder) = (library(), Folder::new()) else { return };
    let with = |command: &mut Command| command.env(CSV, "-").env(EVENTS, "task-clock").output().ok();
    let program = folder.0.join("sort");
    let compiled = Command::new("c++")
        .args(["-I".as_ref(), here("include").as_os_str(), here("examples/sort.cpp").as_os_str()])
        .arg(&library)
        .args(["-o".as_ref(), program.as_os_str()])
        .status();
    match compiled {
        Ok(status) if status.success() => {
            check(&with(Command::new(&program).env("LD_LIBRARY_PATH", built())).unwrap(), "sort")
        }
        _ => eprintln!("skipped: no C++ compiler here"),
    }
    let python = with(
        Command::new("python3")
            .arg(here("examples/words.py"))
            .env("PERFPROP_REGIONS_LIBRARY", &library)
            .env("PYTHONPATH", here("python")),
    );
    python.map_or_else(|| eprintln!("skipped: no python3 here"), |output| check(&output, "round"));
}
