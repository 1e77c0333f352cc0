//! Tests regions of whole programs: those of other languages, of children, and what is left when one crashes.

#![allow(clippy::unwrap_used, clippy::print_stderr, clippy::print_stdout, reason = "tests panic and say why they skip")]

mod support;

use std::cell::Cell;
use std::ffi::OsStr;
use std::future::Future;
use std::pin::pin;
use std::process::{Command, Output};
use std::task::{Context, Poll, Waker};

use perfprop_regions::layout::{NAMES_AT, NODES_AT, TEXT_AT, THREADS_AT};
use perfprop_regions::{CSV, EVENTS, FILE_SIZE, FOLDER, JSON, Region, Snapshot, Source, on_report, record, region};
use support::{Folder, PART, built, here, library, part};

/// Name, calls of each row of CSV.
fn calls(output: &Output) -> Vec<(String, u64)> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().skip_while(|line| !line.starts_with("name,")).skip(1);
    let fields = lines.map(|line| line.split(',').collect::<Vec<_>>()).filter(|fields| fields.len() > 9);
    fields.map(|fields| (fields[0].to_owned(), fields[9].parse().unwrap())).collect()
}

fn named(names: &[(&str, u64)]) -> Vec<(String, u64)> {
    names.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect()
}

#[test]
fn the_linear_regression_has_forward_and_reverse_times() {
    let program = built().parent().unwrap().join("examples/linear_regression");
    if !program.exists() {
        return eprintln!("skipped: no {}", program.display());
    }
    let output = Command::new(program).env(CSV, "-").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("a = "), "{text}");
    let rows = text.lines().skip_while(|line| !line.starts_with("name,")).skip(1);
    // A step has 4 operations for each of 1000 points and one more; the model has those, 3 of the prior, 4 ends and a sum.
    // Name, chain stack, runs backwards, calls without a record, calls.
    let of_row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        [0, 5, 7, 8, 9].map(|column| fields[column].to_owned())
    };
    let wanted = [["likelihood", "1600400", "400", "0", "400"], ["model", "1603600", "400", "0", "400"]];
    let found: Vec<_> = rows.map(of_row).collect();
    assert_eq!(found[..2], wanted.map(|row| row.map(str::to_owned)));
    assert_eq!((found.len(), found[2][0].as_str()), (3, "prior"));
}

#[test]
fn a_program_in_cpp_has_regions() {
    let (Some(library), folder) = (library(), Folder::new()) else { return };
    let program = folder.0.join("sort");
    let compiled = Command::new("c++")
        .args(["-I".as_ref(), here("include").as_os_str(), here("examples/sort.cpp").as_os_str()])
        .arg(&library)
        .args(["-o".as_ref(), program.as_os_str()])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no C++ compiler here");
    }
    let output = Command::new(&program).env(CSV, "-").env("LD_LIBRARY_PATH", built()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let wanted = [("make numbers", 20), ("round", 20), ("sort", 20), ("stable_sort", 20), ("throws", 1)];
    assert_eq!(calls(&output), named(&wanted));
}

/// Leaves a region by `longjmp` in each of three calls of another one.
const JUMPS: &str = r#"
#include <perfprop.h>
#include <setjmp.h>
static jmp_buf out;
static void parse(void) {
    uint64_t inner = perfprop_begin("parse");
    longjmp(out, 1);
    perfprop_end(inner);
}
int main(void) {
    for (int i = 0; i < 3; i++) {
        uint64_t outer = perfprop_begin("load");
        if (setjmp(out) == 0) parse();
        perfprop_end(outer);
    }
    return 0;
}
"#;

#[test]
fn a_region_that_longjmp_left_is_told_with_what_is_not_known_for_it() {
    let (Some(library), folder) = (library(), Folder::new()) else { return };
    let [source, program, json] = ["jump.c", "jump", "jump.json"].map(|name| folder.0.join(name));
    std::fs::write(&source, JUMPS).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-I".as_ref(), here("include").as_os_str(), source.as_os_str()]).arg(&library);
    if !compiler.args(["-o".as_ref(), program.as_os_str()]).status().is_ok_and(|status| status.success()) {
        return eprintln!("skipped: no C compiler here");
    }
    let mut command = Command::new(&program);
    command.env(CSV, "-").env(JSON, &json).env(EVENTS, "task-clock").env("LD_LIBRARY_PATH", built());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(calls(&output), named(&[("load", 3)]));
    let told = String::from_utf8_lossy(&output.stderr);
    let unknown = "self_time of 'load' is not known: in a call that has ended, 'parse' began and has not ended";
    let refused = "2 calls are not counted: a region of the name was open on the thread";
    assert!(told.contains(unknown) && told.contains(refused), "{told}");
    let text = String::from_utf8_lossy(&output.stdout);
    let of_column = |name: &str| {
        let place = text.lines().next().unwrap().split(',').position(|column| column == name);
        place.map(|place| text.lines().nth(1).unwrap().split(',').nth(place).unwrap())
    };
    assert!(of_column("self_time") == Some("") && of_column("total_time") != Some(""), "{text}");
    assert!(of_column("task-clock_self").is_none_or(str::is_empty), "{text}");
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let rows = json["regions"].as_array().unwrap().iter();
    let selves: Vec<_> = rows.map(|row| (row["self_ns"].is_null(), row["outlasted_by"].as_str())).collect();
    assert_eq!((&selves[0], selves.len(), json["lost_calls"].as_u64()), (&(true, Some("parse")), 2, Some(2)));
    assert_eq!(selves[1].1, None);
}

#[test]
fn a_program_in_python_has_regions() {
    let Some(library) = library() else { return };
    let output = Command::new("python3")
        .arg(here("examples/words.py"))
        .env(CSV, "-")
        .env("PERFPROP_REGIONS_LIBRARY", library)
        .env("PYTHONPATH", here("python"))
        .output();
    let Ok(output) = output else { return eprintln!("skipped: no python3 here") };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(calls(&output), named(&[("Counter", 10), ("depth", 21), ("dict", 10), ("round", 10)]));
}

/// Takes away what asks for regions, and where the library is looked for.
fn without_regions(command: &mut Command) {
    for name in [CSV, JSON, EVENTS, FOLDER, "PERFPROP_REGIONS_LIBRARY", "LD_LIBRARY_PATH"] {
        command.env_remove(name);
    }
}

/// Calls all that the module has.
const ALL_OF_THE_MODULE: &str = "
import multiprocessing
import perfprop_regions as regions
@regions.measured
def call(): return 1
@regions.measured
def steps(): yield 2
def child():
    with regions.region('child'): pass
regions.record()
regions.on_report(lambda rows: print('reported'))
regions.phase('warmup')
with regions.region('outer'):
    with regions.region('inner'): pass
    print(call() + sum(steps()))
process = multiprocessing.get_context('fork').Process(target=child)
process.start()
process.join()
regions.report()
print(process.exitcode)
";

#[test]
fn a_program_in_python_without_the_library_runs_and_who_asked_is_told_once() {
    let folder = Folder::new();
    let damaged = folder.0.join("damaged.so");
    std::fs::write(&damaged, "no library").unwrap();
    let run = |variable: Option<(&str, &OsStr)>| {
        let mut command = Command::new("python3");
        command.args(["-W", "ignore", "-c", ALL_OF_THE_MODULE]).env("PYTHONPATH", here("python"));
        without_regions(&mut command);
        command.envs(variable).output().ok()
    };
    let (csv, library) = (folder.0.join("out.csv"), "PERFPROP_REGIONS_LIBRARY");
    let cases = [
        (None, None),
        (Some((CSV, csv.as_os_str())), Some("libperfprop_regions.so")),
        (Some((library, damaged.as_os_str())), Some("damaged.so")),
        (Some((library, OsStr::new("libc.so.6"))), Some("perfprop_begin")),
    ];
    for (variable, why) in cases {
        let Some(output) = run(variable) else { return eprintln!("skipped: no python3 here") };
        let [out, told] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        assert!(output.status.success() && out == "3\n0\n", "{output:?}");
        match why {
            None => assert_eq!(told, ""),
            Some(why) => {
                assert!(told.starts_with("perfprop: the regions of this program aren't recorded: "), "{told}");
                assert!(told.contains(why) && told.lines().count() == 1, "{told}");
            }
        }
    }
}

#[test]
fn a_program_in_python_that_perfprop_started_is_told_that_the_library_is_missing() {
    // The folder that perfprop makes for a command is named after its process, which is the shell here.
    let script = "folder=/dev/shm/perfprop-regions-$$; mkdir $folder || exit 77
        python3 -c 'import perfprop_regions'; result=$?; rmdir $folder; exit $result";
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("PYTHONPATH", here("python"));
    without_regions(&mut command);
    let output = command.output().unwrap();
    if matches!(output.status.code(), Some(77 | 127)) {
        return eprintln!("skipped: no python3 here, or no folder can be made in /dev/shm");
    }
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("aren't recorded"), "{output:?}");
}

/// Runs a program in Python with a file for its regions; `None` where that isn't possible here.
fn python(folder: &Folder, program: &str) -> Option<Output> {
    let library = library()?;
    let output = Command::new("python3")
        .args(["-c", program])
        .env(CSV, folder.0.join("out.csv"))
        .env("PERFPROP_REGIONS_LIBRARY", library)
        .env("PYTHONPATH", here("python"))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no python3 here");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(output)
}

/// Name and calls of each row of a file.
fn calls_in(file: &std::path::Path) -> Vec<(String, u64)> {
    let lines: Vec<String> = std::fs::read_to_string(file).unwrap().lines().skip(1).map(str::to_owned).collect();
    let fields = lines.iter().map(|line| line.split(',').collect::<Vec<_>>());
    fields.map(|fields| (fields[0].to_owned(), fields[9].parse().unwrap())).collect()
}

#[test]
fn processes_of_pythons_multiprocessing_write_files_of_their_own() {
    let folder = Folder::new();
    let program = "
import multiprocessing, sys
from perfprop_regions import region
def work():
    for _ in range(3):
        with region('in child'): pass
if __name__ == '__main__':
    with region('in parent'): pass
    child = multiprocessing.get_context('fork').Process(target=work)
    child.start()
    child.join()
    print(child.pid)
";
    let Some(output) = python(&folder, program) else { return };
    let child = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(calls_in(&folder.0.join("out.csv")), named(&[("in parent", 1)]));
    assert_eq!(calls_in(&folder.0.join(format!("out.csv.{child}"))), named(&[("in child", 3)]));
}

#[test]
fn steps_of_pythons_generators_and_async_functions_are_measured() {
    let folder = Folder::new();
    let program = "
import asyncio, time
from perfprop_regions import measured, region
def busy():
    end = time.perf_counter() + 0.005
    while time.perf_counter() < end: pass
@measured
def generator(first):
    try:
        busy(); got = yield first
        busy(); yield got
    except KeyError:
        yield 'caught'
    return 'returned'
def outer():
    assert (yield from generator(1)) == 'returned'
steps = generator(1)
with region('between'):
    assert next(steps) == 1
    assert steps.send(2) == 2
    assert steps.throw(KeyError()) == 'caught'
    steps.close()
assert list(outer()) == [1, None]
@measured
async def coroutine():
    busy()
    await asyncio.sleep(0.3)
    busy()
    return 'awaited'
@measured
async def asynchronous():
    for number in range(3):
        busy()
        await asyncio.sleep(0)
        yield number
async def main():
    assert await coroutine() == 'awaited'
    assert [number async for number in asynchronous()] == [0, 1, 2]
asyncio.run(main())
";
    if python(&folder, program).is_none() {
        return;
    }
    let text = std::fs::read_to_string(folder.0.join("out.csv")).unwrap();
    let row = |name: &str| -> (u64, f64) {
        let line = text.lines().find(|line| line.starts_with(&format!("{name},"))).unwrap();
        let fields: Vec<&str> = line.split(',').collect();
        (fields[9].parse().unwrap(), fields[3].parse().unwrap())
    };
    let ((steps, time), (awaited, while_awake), (given, _)) = (row("generator"), row("coroutine"), row("asynchronous"));
    // Three steps of the first, and of the other one up to its end; two parts of the coroutine; two for each number.
    assert_eq!((steps, awaited, given), (6, 2, 7), "{text}");
    assert!(time >= 0.0199 && (0.0099..0.28).contains(&while_awake), "{time} {while_awake}");
}

#[test]
fn regions_that_are_open_at_the_end_are_named() {
    let output = part("leaves regions open").env(CSV, "-").output().unwrap();
    assert_eq!(calls(&output), named(&[("before", 1)]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("perfprop: no call has ended of 'left', 'main\\u{1b}': no row has it"), "{text}");
    let output = part("leaves regions open").env_remove(CSV).env("PERFPROP_REGION_JSON", "-").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // 'before' has a call elsewhere, but none below these.
    let unended = r#""unended":[["main\u001b"],["main\u001b","left"],["main\u001b","left","before"]]}"#;
    assert!(text.contains(unended), "{text}");
}

#[test]
fn plays_a_part() {
    let Ok(what) = std::env::var(PART) else { return };
    drop(region("before"));
    match what.as_str() {
        "forks" => fork(),
        "leaves regions open" => ["main\u{1b}", "left", "before"].map(region).into_iter().for_each(std::mem::forget),
        "aborts" => {
            let _open = region("open");
            std::process::abort();
        }
        "executes" => {
            let mut again = part("ends");
            let error = std::os::unix::process::CommandExt::exec(&mut again);
            panic!("{error}");
        }
        "reports" => {
            on_report(|snapshot| println!("reported {}", snapshot.rows().len()));
            on_report(|_| panic!("a report that panics ends alone"));
            on_report(|snapshot| println!("also {}", snapshot.rows().len()));
            drop(region("after"));
        }
        "fills memory" => fill_memory(),
        "waits with a guard" => wait_with_a_guard(),
        "does much" => do_much(),
        "complains" => {
            let _open = region("open");
            (0..3).for_each(|_| drop(region("open")));
        }
        _ => {}
    }
}

/// A task of an executor of one thread that holds a guard over an await.
fn wait_with_a_guard() {
    static TASK: Region = Region::new("task");
    let mut waited = 0;
    let pause = std::future::poll_fn(move |_| {
        waited += 1;
        if waited > 3 { Poll::Ready(()) } else { Poll::Pending }
    });
    let mut task = pin!(TASK.instrument(async {
        let _held = region("held");
        pause.await;
    }));
    while task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
}

/// More names, threads and marks than there is room for in little memory.
fn fill_memory() {
    let open = |number: u32| {
        for name in 0..100 {
            let _outer = region(&format!("a rather long name {number} {name}"));
            (0..5).for_each(|_| drop(region("inner")));
        }
    };
    let threads: Vec<_> = (0..8).map(|number| std::thread::spawn(move || open(number))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A file system in memory of a few KiB; `None` where that isn't allowed.
fn small_memory(folder: &Folder, size: &str) -> Option<Mounted> {
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={size}"), "perfprop-test"])
        .arg(&folder.0)
        .output();
    mount.is_ok_and(|output| output.status.success()).then(|| Mounted(folder.0.clone()))
}

struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_program_whose_file_has_no_room_runs_to_its_end() {
    for size in ["4k", "48k", "96k", "256k"] {
        let folder = Folder::new();
        let Some(_mounted) = small_memory(&folder, size) else {
            return eprintln!("skipped: no file system can be mounted here");
        };
        let output = part("fills memory").env(FOLDER, &folder.0).env(CSV, "-").output().unwrap();
        assert!(output.status.success(), "{size}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr);
        // Where not even the beginning has room, the memory is elsewhere, and large.
        let is_elsewhere = size == "4k";
        assert_eq!(text.contains("no file of regions can be made in"), is_elsewhere, "{text}");
        assert_eq!(text.contains("with the file of regions is full"), !is_elsewhere, "{size}: {text}");
        assert_eq!(text.contains("calls are not counted"), !is_elsewhere, "{size}: {text}");
        // No thread has room in the second of them.
        assert!(size == "48k" || calls(&output).contains(&("before".to_owned(), 1)), "{size}: {output:?}");
    }
}

/// All that writes to the memory, from several threads, while it is read.
fn do_much() {
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                for number in 0..10 {
                    let _outer = region(&format!("name {number}"));
                    let _inner = region("inner");
                    drop(perfprop_regions::snapshot().map(|snapshot| snapshot.rows()));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_guard_that_is_held_over_an_await_is_told_once() {
    let output = part("waits with a guard").env(CSV, "-").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("region 'held' is held over an await in 'task'").count(), 1, "{told}");
    assert_eq!(calls(&output), named(&[("before", 1), ("held", 1), ("task", 1)]));
}

#[test]
fn memcheck_finds_no_memory_that_is_wrong() {
    let part = part("does much");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=no"]).arg(part.get_program()).args(part.get_args());
    valgrind
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env(CSV, "-")
        .env(EVENTS, "page-faults");
    let Ok(output) = valgrind.output() else { return eprintln!("skipped: no valgrind here") };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(calls(&output).iter().filter(|(name, _)| name == "inner").map(|(_, calls)| calls).sum::<u64>(), 40);
}

#[expect(unsafe_code, reason = "a test of fork")]
fn fork() {
    let _open = region("around the fork");
    // SAFETY: the child makes a region and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        drop(region("in the child"));
        // SAFETY: it ends without anything of the parent's.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the pointer is to a value of our own.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
    drop(region("in the parent"));
}

/// The names of each process' regions.
fn names(folder: &Folder) -> Vec<Vec<String>> {
    let of = |snapshot: &Snapshot| snapshot.rows().into_iter().map(|row| row.name).collect();
    let mut names: Vec<Vec<String>> = folder.snapshots().iter().map(of).collect();
    names.sort();
    names
}

#[test]
fn a_child_that_was_forked_counts_for_itself() {
    let folder = Folder::new();
    assert!(part("forks").env(FOLDER, &folder.0).output().unwrap().status.success());
    assert_eq!(names(&folder), [vec!["around the fork", "before", "in the parent"], vec!["in the child"]]);
}

#[test]
fn another_program_of_the_same_process_has_a_file_of_its_own() {
    let folder = Folder::new();
    assert!(part("executes").env(FOLDER, &folder.0).output().unwrap().status.success());
    assert_eq!(names(&folder), [["before"], ["before"]]);
}

#[test]
fn what_a_program_counted_before_it_crashed_is_there() {
    let folder = Folder::new();
    assert!(!part("aborts").env(FOLDER, &folder.0).output().unwrap().status.success());
    assert_eq!(names(&folder), [["before"]]);
    let snapshot = &folder.snapshots()[0];
    let open = snapshot.threads.iter().find_map(|thread| thread.open).unwrap();
    assert_eq!(snapshot.path(open), ["open"]);
}

#[test]
fn a_name_that_is_open_is_told_once() {
    let output = part("complains").env(CSV, "/dev/null").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.matches("region 'open' is already open on this thread").count(), 1, "{told}");
}

#[test]
fn a_program_is_handed_its_rows_at_exit() {
    let output = part("reports").env_remove(CSV).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.ends_with("reported 1\nalso 1\n"), "{output:?}");
}

#[test]
fn a_wheel_has_the_module_and_its_library() {
    let (Some(library), folder) = (library(), Folder::new()) else { return };
    if !Command::new("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: no pip here");
    }
    let (source, target) = (folder.0.join("source"), folder.0.join("installed"));
    std::fs::create_dir(&source).unwrap();
    for name in ["perfprop_regions.py", "pyproject.toml", "wheel_with_library.py"] {
        std::fs::copy(here("python").join(name), source.join(name)).unwrap();
    }
    // Built without the network, as it needs nothing.
    let install = ["install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target"];
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--disable-pip-version-check"]).args(install).arg(&target).arg(&source);
    let installed = command.env("PERFPROP_REGIONS_LIBRARY", library).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let words = Command::new("python3")
        .arg(here("examples/words.py"))
        .env(CSV, "-")
        .env("PYTHONPATH", &target)
        .output()
        .unwrap();
    assert_eq!(calls(&words), named(&[("Counter", 10), ("depth", 21), ("dict", 10), ("round", 10)]));
}

const REPORTS: &str = "
from perfprop_regions import on_report, region, report
on_report(lambda rows: print([row['path'] for row in rows['regions']]))
with region('a'):
    with region('b'):
        report()
report()
with region('c'):
    pass
";

#[test]
fn a_program_in_python_is_handed_its_rows() {
    let Some(library) = library() else { return };
    let python = Command::new("python3")
        .args(["-c", REPORTS])
        .env("PERFPROP_REGIONS_LIBRARY", library)
        .env("PYTHONPATH", here("python"))
        .output();
    let Ok(output) = python else { return eprintln!("skipped: no python3 here") };
    let wanted = "[]\n[['a'], ['a', 'b']]\n[['a'], ['a', 'b'], ['c']]\n";
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), wanted);
}

#[test]
fn what_nobody_asks_for_is_not_recorded() {
    let output = part("ends").env(CSV, "-").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\nbefore,"));
    let output = part("ends").env_remove(CSV).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("before"));
}

#[test]
fn a_library_that_is_closed_while_its_threads_run_breaks_nothing() {
    let Some(library) = library() else { return };
    let path = std::ffi::CString::new(library.into_os_string().into_encoded_bytes()).unwrap();
    record(true);
    for _ in 0..3 {
        let path = path.clone();
        #[expect(unsafe_code, reason = "a test of dlclose")]
        let thread = std::thread::spawn(move || {
            // SAFETY: the library has these functions, and its text ends with a zero.
            unsafe {
                let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
                let begin = libc::dlsym(handle, c"perfprop_begin".as_ptr());
                let record = libc::dlsym(handle, c"perfprop_record".as_ptr());
                assert!(!begin.is_null() && !record.is_null());
                let record: extern "C" fn(i32) = std::mem::transmute(record);
                let begin: extern "C" fn(*const libc::c_char) -> u64 = std::mem::transmute(begin);
                record(1);
                assert_ne!(begin(c"in a library".as_ptr()), 0);
                libc::dlclose(handle);
            }
        });
        thread.join().unwrap();
    }
}

/// A file of regions in which some bytes are others; counts what is read.
struct Damaged<'a> {
    file: &'a std::fs::File,
    bytes: Vec<(usize, u8)>,
    length: usize,
    read: Cell<usize>,
}

impl Source for Damaged<'_> {
    fn read(&self, offset: usize, length: usize) -> std::io::Result<Vec<u8>> {
        if offset + length > self.length {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.read.set(self.read.get() + length);
        let mut read = Source::read(self.file, offset, length)?;
        for &(place, byte) in self.bytes.iter().filter(|(place, _)| (offset..offset + length).contains(place)) {
            read[place - offset] = byte;
        }
        Ok(read)
    }
}

/// Numbers that are the same in every run: a step of D. E. Knuth's generator.
fn drawn(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below
}

#[test]
fn damaged_files_are_errors_or_numbers_and_nothing_worse() {
    for what in ["forks", "does much"] {
        let folder = Folder::new();
        assert!(part(what).env(FOLDER, &folder.0).env(EVENTS, "page-faults").output().unwrap().status.success());
        let path = std::fs::read_dir(&folder.0).unwrap().next().unwrap().unwrap().path();
        damage(&std::fs::File::open(path).unwrap());
    }
}

/// Reads a file with some bytes that are others, again and again.
fn damage(file: &std::fs::File) {
    // The header, some names, the beginning of their text, some threads and nodes.
    let places = [(0, 256), (NAMES_AT, 128), (TEXT_AT, 64), (THREADS_AT, 1024), (NODES_AT, 32_768)];
    let (mut state, mut read) = (1, 0);
    for case in 0..500 {
        // Small numbers are more often numbers of something than others.
        let bytes = (0..1 + case % 5).map(|_| {
            let (start, length) = places[drawn(&mut state, places.len())];
            let most = [4, 256][drawn(&mut state, 2)];
            (start + drawn(&mut state, length), drawn(&mut state, most) as u8)
        });
        // Neither the magic number nor the version.
        let bytes = bytes.filter(|&(place, _)| place >= 12).collect();
        let length = if case % 10 == 0 { drawn(&mut state, FILE_SIZE) } else { FILE_SIZE };
        let damaged = Damaged { file, bytes, length, read: Cell::new(0) };
        if let Ok(snapshot) = Snapshot::read(&damaged) {
            read += 1;
            let rows = snapshot.rows();
            assert!(rows.iter().all(|row| row.times.forward_ns >= 0.0));
            let totals = rows.iter().flat_map(|row| row.events.iter().filter_map(|event| event.total(row.times.calls)));
            assert!(totals.map(|total| total.count).all(|count| count >= 0.0));
            drop((snapshot.paths(), perfprop_regions::csv(&snapshot), perfprop_regions::json(&snapshot)));
            drop(Snapshot::marks(&damaged, drawn(&mut state, 2000)));
        }
        assert!(damaged.read.get() <= FILE_SIZE, "what takes longer than to read all of it once has no end");
    }
    assert!(read > 100, "{read}");
}
