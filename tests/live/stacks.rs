//! Records call stacks of real programs through the program as users start it. Each test says why it skips
//! where a compiler or a permission is missing.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is how a test fails, and a skip says why")]

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use perfprop::recording::{self, Recording};
#[cfg(target_arch = "x86_64")]
use perfprop::run;
use perfprop::stacks::{NamelessReason, StackFrame, StackSample};

use crate::folders::Folder;

/// Recursion of two functions, ten deep; ends after the given number of rounds, or never.
const RECURSION: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long leaf(long n) { long s = 0; for (volatile long i = 0; i < n; i++) s += i; return s; }
__attribute__((noinline)) long odd(int depth, long n);
__attribute__((noinline)) long even(int depth, long n) { return (depth ? odd(depth - 1, n) : leaf(n)) + 1; }
__attribute__((noinline)) long odd(int depth, long n) { return (depth ? even(depth - 1, n) : leaf(n)) + 2; }
int main(int count, char **words) {
    long sum = 0;
    puts("runs");
    fflush(stdout);
    for (int i = 0; count < 2 || i < atoi(words[1]); i++) sum += odd(9, 1000000);
    return sum == 1;
}
"#;

const THREADS: &str = r#"
use std::hint::black_box;
#[inline(never)]
fn work(n: u64) -> u64 { (0..n).fold(0, |sum, i| black_box(sum ^ i)) }
#[inline(never)]
fn descend(depth: u32, n: u64) -> u64 { black_box(if depth == 0 { work(n) } else { descend(depth - 1, n) }) + 1 }
struct Job<T>(T);
impl<T: Into<u64> + Copy> Job<T> {
    #[inline(never)]
    fn run(&self) -> u64 { black_box(descend(5, self.0.into())) }
}
fn main() {
    let start = |i| std::thread::Builder::new().name(format!("worker-{i}")).spawn(|| Job(100_000_000_u64).run()).unwrap();
    let threads: Vec<_> = (0..3).map(start).collect();
    threads.into_iter().for_each(|thread| drop(black_box(thread.join().unwrap())));
}
"#;

/// Writes a function of its own into memory, and its name into its perf map.
#[cfg(target_arch = "x86_64")]
const JIT: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    /* push rbp; mov rbp,rsp; mov ecx,100000000; dec ecx; jnz -4; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0xe1, 0xf5, 0x05, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char path[64];
    memcpy(page, code, sizeof code);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx %zx compiled::hot loop\n", (unsigned long)page, sizeof code);
    fclose(map);
    ((void (*)(void))page)();
    return 0;
}
"#;

/// Waits for a lock, sleeps and reads from a pipe, each in a function of its own, and prints how many nanoseconds each took.
const WAITS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000L + t.tv_nsec; }
static void rest(long ms) { struct timespec t = {ms / 1000, ms % 1000 * 1000000L}; nanosleep(&t, 0); }
__attribute__((noinline)) void wait_for_lock(void) { pthread_mutex_lock(&lock); pthread_mutex_unlock(&lock); }
__attribute__((noinline)) void read_pipe(void) { char c; if (read(ends[0], &c, 1) != 1) puts("no byte"); }
__attribute__((noinline)) void sleep_often(void) { for (int i = 0; i < 10; i++) rest(20); }
static void timed(const char *name, void (*what)(void)) { long from = now(); what(); printf("%s %ld\n", name, now() - from); }
static void *waiter(void *none) { timed("wait_for_lock", wait_for_lock); return none; }
static void *writer(void *none) { rest(300); if (write(ends[1], "x", 1) != 1) puts("no byte"); return none; }
int main(void) {
    pthread_t one, other;
    if (pipe(ends)) return 1;
    pthread_mutex_lock(&lock);
    pthread_create(&one, 0, waiter, 0);
    rest(800);
    pthread_mutex_unlock(&lock);
    pthread_join(one, 0);
    timed("sleep_often", sleep_often);
    pthread_create(&other, 0, writer, 0);
    timed("read_pipe", read_pipe);
    pthread_join(other, 0);
    return 0;
}
"#;

/// Its first thread ends, and the other one works on.
const FIRST_ENDS: &str = r#"
#include <pthread.h>
#include <stdio.h>
static volatile unsigned long sum;
static void *work(void *unused) { for (;;) sum++; return unused; }
int main(void) {
    pthread_t other;
    pthread_create(&other, 0, work, 0);
    puts("runs");
    fflush(stdout);
    pthread_exit(0);
}
"#;

pub(super) fn perfprop() -> Command {
    Command::new(env!("CARGO_BIN_EXE_perfprop"))
}

/// Whether call stacks can be sampled here at all.
pub(super) fn can_sample() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let output = perfprop().args(["record", "-g", "-e", "cpu-clock", "-o", "-", "--", "true"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let can = output.status.success() && !text.contains("cpu-clock:u");
        if !can {
            eprintln!("skipped: this user can't sample the kernel: {}", String::from_utf8_lossy(&output.stderr));
        }
        can
    })
}

/// A program made of a source text; `None` where the compiler isn't there.
pub(super) fn compiled(folder: &Path, name: &str, source: &str, compiler: &str, options: &[&str]) -> Option<PathBuf> {
    if !can_sample() {
        return None;
    }
    let (file, program) =
        (folder.join(format!("{name}.{}", if compiler == "rustc" { "rs" } else { "c" })), folder.join(name));
    fs::write(&file, source).unwrap();
    let done = Command::new(compiler).args(options).arg("-o").arg(&program).arg(&file).output();
    match done {
        Ok(done) if done.status.success() => Some(program),
        Ok(done) => panic!("{compiler}: {}", String::from_utf8_lossy(&done.stderr)),
        Err(error) => {
            eprintln!("skipped: {compiler}: {error}");
            None
        }
    }
}

/// Without help from `-fno-optimize-sibling-calls` a call in the last place leaves no frame.
pub(super) const WITH_FRAME_POINTERS: [&str; 4] =
    ["-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];

pub(super) fn record(folder: &Path, options: &[&str], command: &[&str]) -> (Recording, Output) {
    record_by(&mut perfprop(), folder, options, command)
}

/// The same by a command that runs perfprop.
fn record_by(perfprop: &mut Command, folder: &Path, options: &[&str], command: &[&str]) -> (Recording, Output) {
    let file = folder.join("recording.jsonl");
    let output = perfprop.args(["record", "-o"]).arg(&file).args(options).arg("--").args(command).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let recording = recording::read(BufReader::new(fs::File::open(&file).unwrap())).unwrap();
    (recording, output)
}

/// Each sample with its frames, the outermost first.
pub(super) fn samples(recording: &Recording) -> Vec<(StackSample, Vec<&StackFrame>)> {
    let stacks = recording.stacks.as_ref().unwrap();
    let frames = |sample: &StackSample| {
        let mut frames: Vec<_> =
            stacks.table.innermost_first(sample.stack).map(|frame| stacks.table.frame(frame).unwrap()).collect();
        frames.reverse();
        frames
    };
    stacks.batches.iter().flat_map(|batch| &batch.samples).map(|sample| (*sample, frames(sample))).collect()
}

pub(super) fn names<'a>(frames: &[&'a StackFrame]) -> Vec<&'a str> {
    frames.iter().map(|frame| frame.name.as_str()).collect()
}

/// The part of the samples in whose stacks these names follow one another.
pub(super) fn share(samples: &[(StackSample, Vec<&StackFrame>)], path: &[&str]) -> f64 {
    let holds =
        |frames: &&(StackSample, Vec<&StackFrame>)| names(&frames.1).windows(path.len()).any(|part| part == path);
    samples.iter().filter(holds).count() as f64 / samples.len() as f64
}

/// Nothing was lost, and every sample stands for what the rate says.
fn check_whole(recording: &Recording) {
    let losses = recording.stacks.as_ref().unwrap().batches.last().unwrap().losses;
    assert_eq!((losses.lost, losses.dropped, losses.malformed), (0, 0, 0));
}

const TEN_DEEP: [&str; 12] =
    ["main", "odd", "even", "odd", "even", "odd", "even", "odd", "even", "odd", "even", "leaf"];

#[test]
fn recursion_in_c_along_frame_pointers() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "recursion", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, _) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "60"]);
    check_whole(&recording);
    let samples = samples(&recording);
    assert!(share(&samples, &TEN_DEEP) > 0.8, "{:?}", samples.iter().map(|s| names(&s.1)).take(20).collect::<Vec<_>>());
    let leaf = samples.iter().find_map(|(_, frames)| frames.iter().find(|frame| frame.name == "leaf")).unwrap();
    assert!(leaf.file.as_ref().unwrap().ends_with("recursion.c") && leaf.line == Some(4), "{leaf:?}");
    assert_eq!(leaf.module, program.to_str().unwrap());
    // cpu-clock counts in nanoseconds, and 2,000 of a second are 500 us each.
    assert!(samples.iter().all(|(sample, _)| sample.weight == 500_000));
}

#[test]
fn recursion_beyond_the_kernels_longest_chain_is_said_to_be_cut() {
    const DEEP: &str = "static volatile long sink;
        __attribute__((noinline)) long down(long n) {
            char place[8]; place[0] = (char)n; sink += place[0];
            long r = n > 0 ? down(n - 1) : 0;
            for (int i = 0; i < 50; i++) sink += i;
            return r + place[0];
        }
        int main(void) { for (int i = 0; i < 100; i++) sink += down(40000); return 0; }";
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "deep", DEEP, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, output) = record(&folder, &["-g", "-F", "1000"], &[program.to_str().unwrap()]);
    check_whole(&recording);
    let losses = recording.stacks.as_ref().unwrap().batches.last().unwrap().losses;
    let all = samples(&recording);
    // Those of the program's start and of its first descents are whole.
    let deep =
        all.iter().filter(|(_, frames)| names(frames).iter().filter(|name| **name == "down").count() > 100).count();
    assert!(deep * 2 > all.len(), "{deep} of {}", all.len());
    assert!(losses.cut * 10 > deep as u64 * 9, "{losses} of {deep}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("stacks cut"));
}

#[test]
fn threads_in_rust_without_frame_pointers_by_unwind_information() {
    let folder = Folder::new();
    let options = ["-O", "-g", "-C", "force-frame-pointers=no"];
    let Some(program) = compiled(&folder, "threads", THREADS, "rustc", &options) else { return };
    let (recording, _) = record(&folder, &["--call-graph", "dwarf", "-F", "1000"], &[program.to_str().unwrap()]);
    check_whole(&recording);
    let table = &recording.stacks.as_ref().unwrap().table;
    let samples = samples(&recording);
    let in_workers: Vec<_> = samples
        .iter()
        .filter(|(sample, _)| table.task(sample.task).unwrap().comm.starts_with("worker-"))
        .cloned()
        .collect();
    let threads: HashSet<_> = in_workers.iter().map(|(sample, _)| &table.task(sample.task).unwrap().comm).collect();
    assert_eq!(threads.len(), 3, "{threads:?}");
    let descend = "threads::descend";
    let path = [descend, descend, descend, descend, descend, descend, "threads::work"];
    assert!(share(&in_workers, &path) > 0.8, "{:?}", names(&in_workers[in_workers.len() / 2].1));
    let is_from_the_beginning = |frames: &[&StackFrame]| frames[0].name.contains("clone");
    let whole = in_workers.iter().filter(|(_, frames)| is_from_the_beginning(frames)).count();
    assert!(whole * 5 > in_workers.len() * 4, "{whole} of {}", in_workers.len());
}

#[test]
fn python_by_unwind_information() {
    let folder = Folder::new();
    if !can_sample() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let code = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(25)";
    let (recording, _) = record(&folder, &["--call-graph", "dwarf,32768"], &["python3", "-S", "-c", code]);
    let table = &recording.stacks.as_ref().unwrap().table;
    // A shell script may choose which python3 it is to be.
    let is_python = |sample: &StackSample| table.task(sample.task).unwrap().comm.starts_with("python");
    let samples: Vec<_> = samples(&recording).into_iter().filter(|(sample, _)| is_python(sample)).collect();
    let in_python = |frame: &&&StackFrame| frame.module.contains("python");
    let deep = samples.iter().filter(|(_, frames)| frames.iter().filter(in_python).count() >= 5).count();
    assert!(deep * 2 > samples.len(), "{deep} of {}", samples.len());
}

#[test]
fn a_stripped_program_shows_its_name_and_offsets() {
    let folder = Folder::new();
    let options = ["-O1", "-s", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];
    let Some(program) = compiled(&folder, "stripped", RECURSION, "cc", &options) else { return };
    let (recording, _) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "60"]);
    let samples = samples(&recording);
    let own = |frame: &&&StackFrame| frame.name.starts_with("stripped+0x");
    let is_deep = |frames: &Vec<&StackFrame>| frames.iter().filter(own).count() == TEN_DEEP.len();
    let deep: Vec<_> = samples.iter().map(|(_, frames)| frames).filter(|frames| is_deep(frames)).collect();
    assert!(deep.len() * 5 > samples.len() * 4, "{} of {}", deep.len(), samples.len());
    // Each function is one by its unwind range: main, odd, even and leaf. Others run when the program begins and ends.
    let functions: HashSet<_> =
        deep.iter().flat_map(|frames| frames.iter().filter(own)).map(|frame| &frame.name).collect();
    assert_eq!(functions.len(), 4, "{functions:?}");
}

/// Runs a tool that a test can do without; whether it is there.
fn has_run(tool: &mut Command) -> bool {
    match tool.status() {
        Ok(done) => {
            assert!(done.success(), "{tool:?}");
            true
        }
        Err(error) => {
            eprintln!("skipped: {tool:?}: {error}");
            false
        }
    }
}

#[test]
fn symbols_that_are_packed_in_a_stripped_program_name_its_functions() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "packed", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let (symbols, packed) = (folder.join("symbols"), folder.join("symbols.xz"));
    let strip_debug = |tool: &mut Command| has_run(tool.arg("--strip-debug").arg(&program).arg(&symbols));
    if !strip_debug(&mut Command::new("objcopy")) || !has_run(Command::new("xz").arg("-k").arg(&symbols)) {
        return;
    }
    let section = format!(".gnu_debugdata={}", packed.display());
    assert!(has_run(Command::new("objcopy").args(["--strip-all", "--add-section", &section]).arg(&program)));
    let (recording, output) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "60"]);
    let samples = samples(&recording);
    assert!(share(&samples, &["main", "odd"]) > 0.8, "{:?}", names(&samples[samples.len() / 2].1));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("without a name"));
}

#[test]
fn functions_without_symbols_are_found_by_debug_frame_and_counted_as_nameless() {
    let folder = Folder::new();
    let options = [&WITH_FRAME_POINTERS[..], &["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]].concat();
    let Some(program) = compiled(&folder, "bare", RECURSION, "cc", &options) else { return };
    let strip = ["--strip-all", "--keep-section=.debug_frame"];
    if !has_run(Command::new("objcopy").args(strip).arg(&program)) {
        return;
    }
    let (recording, output) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "60"]);
    let samples = samples(&recording);
    let own = |frame: &&&StackFrame| frame.name.starts_with("bare+0x");
    // Others run when the program begins and ends.
    let is_deep = |frames: &Vec<&StackFrame>| frames.iter().filter(own).count() == TEN_DEEP.len();
    let deep = samples.iter().map(|(_, frames)| frames).filter(|frames| is_deep(frames));
    let frames: Vec<_> = deep.flat_map(|frames| frames.iter().filter(own)).collect();
    let functions: HashSet<_> = frames.iter().map(|frame| &frame.name).collect();
    assert_eq!(functions.len(), 4, "{functions:?}");
    assert!(frames.iter().all(|frame| frame.nameless == Some(NamelessReason::Stripped)));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let words = "of the samples are in functions without a name, in programs without symbols";
    assert!(stderr.contains(words), "{stderr}");
}

#[test]
fn exports_that_can_hold_lines_have_them() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "lined", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "60"]);
    let export = |from: &str, options: &[&str]| {
        let output = perfprop().current_dir(&*folder).arg("export").arg(from).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    export("recording.jsonl", &["--to", "pprof", "-o", "profile.pb.gz"]);
    for text in [
        export("recording.jsonl", &["--to", "speedscope", "--lines"]),
        export("profile.pb.gz", &["--to", "speedscope", "--lines"]),
    ] {
        assert!(text.contains("lined.c\",\"line\":"), "{}", &text[..text.len().min(2000)]);
    }
    assert!(export("recording.jsonl", &["--to", "firefox", "--lines"]).contains("lined.c:"));
}

#[test]
fn stubs_that_call_libraries_have_the_names_of_what_they_call() {
    let folder = Folder::new();
    let library =
        compiled(&folder, "libtiny.so", "long tiny(long n) { return n + 1; }", "cc", &["-shared", "-fPIC", "-O1"]);
    let Some(library) = library else { return };
    let source = "long tiny(long); int main(void) { long n = 0; for (long i = 0; i < 200000000; i++) n = tiny(n); return n == 7; }";
    let (rpath, library) = (format!("-Wl,-rpath,{}", folder.display()), library.display().to_string());
    let options = ["-O1", "-g", "-fno-omit-frame-pointer", "-Wl,-z,lazy", &rpath, "-Wl,--no-as-needed"];
    let file = folder.join("caller.c");
    fs::write(&file, source).unwrap();
    let program = folder.join("caller");
    let done = Command::new("cc").args(options).arg("-o").arg(&program).arg(&file).arg(&library).status().unwrap();
    assert!(done.success());
    let (recording, _) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap()]);
    let samples = samples(&recording);
    let innermost = |name: &str| samples.iter().filter(|(_, frames)| names(frames).last() == Some(&name)).count();
    assert!(innermost("tiny@plt") > 0, "{} of {}", innermost("tiny@plt"), samples.len());
    assert_eq!(innermost("_init"), 0);
}

#[test]
fn two_lambdas_are_two_functions() {
    const LAMBDAS: &str = "
        static volatile long sink;
        namespace { struct Local { static long turn(long x) { for (int i = 0; i < 100; i++) sink += x; return x; } }; }
        template <class F> static inline long run(F f) { long s = 0; for (long i = 0; i < 200000; i++) s += f(i); return s; }
        __attribute__((noinline)) long all() {
            auto first = [](long x) { for (int i = 0; i < 100; i++) sink += x; return x; };
            auto second = [](long x) { for (int i = 0; i < 100; i++) sink -= x; return x; };
            return run(first) + run(second) + run([](int x) { return Local::turn(x); });
        }
        int main() { long s = 0; for (int i = 0; i < 5; i++) s += all(); return s == 1; }";
    let folder = Folder::new();
    let options = ["-x", "c++", "-O2", "-g", "-fno-omit-frame-pointer"];
    let Some(program) = compiled(&folder, "lambdas", LAMBDAS, "g++", &options) else { return };
    let (recording, _) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap()]);
    let samples = samples(&recording);
    let all: HashSet<_> = samples.iter().flat_map(|(_, frames)| names(frames)).collect();
    for name in ["all()::{lambda#1}::operator()", "all()::{lambda#2}::operator()"] {
        assert!(share(&samples, &[name]) > 0.1, "{name}: {all:?}");
    }
    assert!(share(&samples, &["(anonymous namespace)::Local::turn"]) > 0.1, "{all:?}");
    assert!(!all.contains("operator()"), "{all:?}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_that_a_program_made_has_the_name_from_its_perf_map() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "jit", JIT, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, _) = record(&folder, &["-g", "-F", "1000"], &[program.to_str().unwrap()]);
    let samples = samples(&recording);
    assert!(share(&samples, &["main", "compiled::hot loop"]) > 0.8);
    let run::MeasuredTarget::Command { pid, .. } = recording.header.target else { panic!("no command") };
    fs::remove_file(format!("/tmp/perf-{pid}.map")).unwrap();
}

/// Loads a library, waits until that was seen, puts a FIFO in its place and runs in it.
const SWAP: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    if (!library) { puts(dlerror()); return 1; }
    long (*spin)(long) = (long (*)(long))dlsym(library, "spin");
    usleep(500000);
    for (int i = 1; i < count; i++) { unlink(words[i]); mkfifo(words[i], 0600); }
    return spin(200000000) == 1;
}
"#;

const LIBRARY: &str = "__attribute__((noinline)) long spin(long n) { long s = 0; for (volatile long i = 0; i < n; i++) s += i; return s; }";

#[test]
fn a_fifo_in_the_place_of_a_library_or_of_its_debug_information_hangs_nobody() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "swap", SWAP, "cc", &WITH_FRAME_POINTERS) else { return };
    let options = ["-shared", "-fPIC", "-g", "-O1", "-fno-omit-frame-pointer"];
    let library = compiled(&folder, "library", LIBRARY, "cc", &options).unwrap();
    let link = folder.join("library.debug");
    fs::copy(&library, &link).unwrap();
    let linked = format!("--add-gnu-debuglink={}", link.display());
    match Command::new("objcopy").arg(linked).arg(&library).status() {
        Ok(done) => assert!(done.success()),
        Err(error) => {
            eprintln!("skipped: objcopy: {error}");
            return;
        }
    }
    // Where a reader of debug information might look.
    let paths = [library.clone(), link, folder.join("library.dwp")];
    let words: Vec<_> = std::iter::once(&program).chain(&paths).map(|path| path.to_str().unwrap()).collect();
    let (recording, _) = record(&folder, &["-g", "-F", "1000"], &words);
    let samples = samples(&recording);
    assert!(share(&samples, &["main", "spin"]) > 0.5, "{:?}", names(&samples[samples.len() / 2].1));
}

#[test]
fn a_library_that_is_another_file_now_gives_no_names() {
    let folder = Folder::new();
    // Renamed over what was mapped before that could be looked at.
    let source = SWAP.replace("usleep(500000);", "").replace("mkfifo(words[i], 0600)", "rename(words[2], words[1])");
    let Some(program) = compiled(&folder, "swap", &source, "cc", &[&WITH_FRAME_POINTERS[..], &["-w"]].concat()) else {
        return;
    };
    let options = ["-shared", "-fPIC", "-g", "-O1", "-fno-omit-frame-pointer"];
    let library = compiled(&folder, "library", LIBRARY, "cc", &options).unwrap();
    let other = "int first(void) { return 1; } long wrong(long n) { for (volatile long i = 0; i < n; i++); return 0; }";
    let other =
        compiled(&folder, "other", &format!("{other}\nlong spin(long n) {{ return n; }}"), "cc", &options).unwrap();
    let words = [&program, &library, &other].map(|path| path.to_str().unwrap());
    let (recording, output) = record(&folder, &["-g", "-F", "1000"], &words);
    let samples = samples(&recording);
    assert!(samples.iter().all(|(_, frames)| !names(frames).contains(&"wrong")));
    // Root may follow the kernel's link to what is mapped.
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let is_reported = stderr.contains("no names from") && stderr.contains("another file has taken its place");
    assert!(share(&samples, &["main", "spin"]) > 0.5 || is_reported, "{stderr}");
}

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    /// Started, and through with its start.
    fn start(program: &Path) -> Self {
        let mut child = Command::new(program).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_that_runs_already_is_known_by_what_it_has_mapped() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "attached", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let running = Running::start(&program);
    let pid = running.0.id().to_string();
    let (recording, _) = record(&folder, &["-g", "-p", &pid], &["sleep", "0.3"]);
    let samples = samples(&recording);
    assert!(share(&samples, &TEN_DEEP) > 0.8, "{} samples", samples.len());
    assert_eq!(recording.stacks.as_ref().unwrap().table.task(samples[0].0.task).unwrap().comm, "attached");
}

/// Runs a command where another file lies at the path of a program.
const IN_OTHER_MOUNTS: &str = r#"mount -t overlay overlay -o lowerdir=other:none app && exec "$@""#;

#[test]
fn a_program_of_another_mount_namespace_has_names_of_its_own_file() {
    let folder = Folder::new();
    let [app, other, none] = ["app", "other", "none"].map(|name| folder.join(name));
    [&app, &other, &none].iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let source = |leaf: &str| RECURSION.replace("leaf", leaf);
    let Some(program) = compiled(&app, "program", &source("meant"), "cc", &WITH_FRAME_POINTERS) else { return };
    compiled(&other, "program", &source("decoy"), "cc", &WITH_FRAME_POINTERS).unwrap();
    let in_other_mounts = |program: &str| {
        let mut command = Command::new("unshare");
        command.current_dir(&*folder).args(["-m", "sh", "-c", IN_OTHER_MOUNTS, "sh", program]);
        command
    };
    if !in_other_mounts("true").output().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: this user can't mount an overlay in a namespace of mounts");
        return;
    }
    let running = Running::start(&program);
    let pid = running.0.id().to_string();
    let mut perfprop = in_other_mounts(env!("CARGO_BIN_EXE_perfprop"));
    let (recording, _) = record_by(&mut perfprop, &folder, &["-g", "-p", &pid], &["sleep", "0.3"]);
    let samples = samples(&recording);
    assert!(share(&samples, &["even", "meant"]) > 0.8, "{} samples", samples.len());
}

#[test]
fn more_programs_than_descriptors_have_names() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "program", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    for number in 0..100 {
        fs::copy(&program, folder.join(format!("copy{number}"))).unwrap();
    }
    let mut perfprop = Command::new("sh");
    perfprop.args(["-c", "ulimit -n $((64 + 16 * $(nproc))); exec \"$@\"", "sh", env!("CARGO_BIN_EXE_perfprop")]);
    let all = format!("for copy in {}/copy*; do $copy 5; done", folder.display());
    let (recording, _) = record_by(&mut perfprop, &folder, &["-g", "-F", "1000"], &["sh", "-c", &all]);
    let samples = samples(&recording);
    let innermost = samples.iter().filter_map(|(_, frames)| frames.last());
    let of_copies: Vec<_> = innermost.filter(|frame| frame.module.contains("/copy")).collect();
    let modules: HashSet<_> = of_copies.iter().map(|frame| &frame.module).collect();
    assert!(modules.len() > 60, "{} programs", modules.len());
    let nameless: HashSet<_> = of_copies.iter().filter(|frame| frame.nameless.is_some()).collect();
    assert!(nameless.is_empty(), "{nameless:?}");
}

#[test]
fn what_runs_outside_of_the_pid_namespace_is_said_to_be_outside() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "outside", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let in_own_namespace = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["-p", "-f", "--mount-proc", program]);
        command
    };
    if !in_own_namespace("true").output().is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: this user can't make a namespace of processes");
        return;
    }
    let _running = Running::start(&program);
    let mut perfprop = in_own_namespace(env!("CARGO_BIN_EXE_perfprop"));
    let (recording, _) =
        record_by(&mut perfprop, &folder, &["-a", "-g", "-e", "cpu-clock", "-F", "500"], &["sleep", "0.3"]);
    let table = &recording.stacks.as_ref().unwrap().table;
    let samples = samples(&recording);
    let of_outside: Vec<_> = samples.iter().filter(|(sample, _)| table.task(sample.task).unwrap().tid == 0).collect();
    let outside = "[outside of this PID namespace]";
    assert!(of_outside.iter().all(|(sample, _)| table.task(sample.task).unwrap().comm == outside));
    // One frame stands for all of a program.
    let is_outside =
        |frame: &&StackFrame| frame.name == outside && frame.nameless == Some(NamelessReason::ProcessOutside);
    assert!(of_outside.iter().flat_map(|(_, frames)| frames).all(|frame| frame.kernel || is_outside(frame)));
    assert!(of_outside.iter().any(|(_, frames)| frames.iter().any(is_outside)), "{} samples", samples.len());
}

/// Copies a program into a file in memory, and becomes it.
const IN_MEMORY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    static char bytes[1 << 16];
    int from = open(words[1], O_RDONLY), to = memfd_create("copied", MFD_CLOEXEC);
    for (long length; (length = read(from, bytes, sizeof bytes)) > 0;) if (write(to, bytes, length) != length) return 1;
    fexecve(to, words + 1, environ);
    return count;
}
"#;

#[test]
fn a_program_that_runs_from_a_file_in_memory_has_names() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "program", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let start = compiled(&folder, "start", IN_MEMORY, "cc", &WITH_FRAME_POINTERS).unwrap();
    // Long enough that it is looked at while it runs.
    let words = [start.to_str().unwrap(), program.to_str().unwrap(), "3000"];
    let (recording, _) = record(&folder, &["-g", "-F", "1000"], &words);
    let samples = samples(&recording);
    assert!(share(&samples, &TEN_DEEP) > 0.8, "{} samples", samples.len());
}

#[test]
fn a_program_whose_first_thread_has_ended_is_sampled() {
    let folder = Folder::new();
    let options = ["-pthread", "-g", "-O1", "-fno-omit-frame-pointer"];
    let Some(program) = compiled(&folder, "first_ends", FIRST_ENDS, "cc", &options) else { return };
    let running = Running::start(&program);
    let pid = running.0.id().to_string();
    while !fs::read_to_string(format!("/proc/{pid}/task/{pid}/stat")).unwrap().contains(") Z ") {
        std::thread::yield_now();
    }
    let (recording, _) = record(&folder, &["-g", "-p", &pid], &["sleep", "0.3"]);
    let samples = samples(&recording);
    assert!(share(&samples, &["work"]) > 0.8, "{} samples", samples.len());
}

#[test]
fn children_of_a_command_are_sampled_under_their_own_names() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "child", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let script = format!("{0} 40 & {0} 40; wait", program.display());
    let (recording, _) = record(&folder, &["-g"], &["sh", "-c", &script]);
    let table = &recording.stacks.as_ref().unwrap().table;
    let all = samples(&recording);
    let of_children: Vec<_> =
        all.iter().filter(|(sample, _)| table.task(sample.task).unwrap().comm == "child").cloned().collect();
    let processes: HashSet<_> = of_children.iter().map(|(sample, _)| table.task(sample.task).unwrap().pid).collect();
    assert_eq!(processes.len(), 2);
    assert!(share(&of_children, &TEN_DEEP) > 0.8);
}

/// What happens at the very moment of a change of what is copied may be sampled twice or not at all; in a second there are two.
const MOST_AT_CHANGES: u64 = 2;

#[test]
fn every_page_fault_is_a_sample_when_every_one_is_asked_for() {
    let folder = Folder::new();
    if !can_sample() {
        return;
    }
    let (recording, _) = record(&folder, &["-g", "-c", "1", "-e", "page-faults,minor-faults:u"], &["ls", "/"]);
    let stacks = recording.stacks.as_ref().unwrap();
    let losses = stacks.batches.last().unwrap().losses;
    assert_eq!((losses.dropped, losses.malformed), (0, 0));
    let names: Vec<_> = stacks.sampled.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["page-faults", "minor-faults:u"]);
    let faults = samples(&recording).iter().filter(|(sample, _)| sample.event == 0 && sample.weight == 1).count();
    let counted = recording.end.as_ref().unwrap().totals[0].unwrap().count;
    // A busy machine may lose some; the kernel says how many.
    let (fewest, most) = (faults as u64, faults as u64 + losses.lost);
    assert!(
        fewest <= counted + MOST_AT_CHANGES && counted <= most + MOST_AT_CHANGES,
        "{faults} of {counted}, {losses:?}"
    );
    // The kernel counts these itself: they take no turns, and weigh what it says.
    assert!(stacks.batches.iter().all(|batch| batch.shares.is_empty()));
}

#[test]
fn another_first_level_shows_the_same_samples() {
    let folder = Folder::new();
    if !can_sample() {
        return;
    }
    record(&folder, &["-g", "-c", "1", "-e", "page-faults"], &["sh", "-c", "ls / & ls /; wait"]);
    let screen = |by: &str| {
        let mut replay = perfprop();
        replay.args(["replay", "--dump", "txt", "--size", "120x40", "--screen", "profile", "--by", by]);
        let output = replay.arg(folder.join("recording.jsonl")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let samples = |screen: &str| {
        let before = screen.split(" samples").next().unwrap();
        before.rsplit(' ').next().unwrap().to_owned()
    };
    let by_name = screen("thread-name");
    for (by, words) in [("thread", "ls ["), ("process", "by process"), ("cpu", "CPU "), ("function", "FUNCTIONS (")] {
        let other = screen(by);
        assert!(other.contains(words) && other.contains(&format!("by {by}")), "{other}");
        assert_eq!(samples(&other), samples(&by_name), "{other}");
    }
}

/// What it keeps where a frame pointer would be leads nowhere.
const LOST: &str = "
    static volatile long sink;
    __attribute__((noinline)) void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
    __attribute__((noinline, optimize(\"omit-frame-pointer\"))) void lost(long n) {
        register long kept __asm__(\"rbp\") = n; __asm__ volatile(\"\" : \"+r\"(kept)); spin(n); sink += kept;
        __asm__ volatile(\"\" : \"+r\"(kept));
    }
    int main(void) { for (int i = 0; i < 30; i++) lost(20000000); return 0; }";

fn without_frame_pointers(folder: &Path, name: &str) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        eprintln!("skipped: the program is written for x86-64");
        return None;
    }
    compiled(folder, name, LOST, "gcc", &["-O1", "-g", "-fomit-frame-pointer", "-w"])
}

pub(super) fn replayed(folder: &Path, screen: &str) -> String {
    let options = ["--screen", screen, "--dump", "txt", "--size", "150x30"];
    let output = perfprop().arg("replay").arg(folder.join("recording.jsonl")).args(options).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn stacks_without_frame_pointers_are_copied_and_that_is_said() {
    let folder = Folder::new();
    let Some(program) = without_frame_pointers(&folder, "copied") else { return };
    let (recording, output) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap()]);
    check_whole(&recording);
    let all = samples(&recording);
    assert!(share(&all, &["main", "lost", "spin"]) > 0.8, "{:?}", names(&all[all.len() / 2].1));
    assert!(all.iter().all(|(sample, _)| sample.weight == 500_000));
    let said = "frame pointers are missing in functions of copied";
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(said) && !text.contains("of the stacks are cut"), "{text}");
    let (title, log) = (replayed(&folder, "profile"), replayed(&folder, "log"));
    assert!(title.contains("% complete") && log.contains(said), "{title}\n{log}");
}

#[test]
fn stacks_with_frame_pointers_are_not_copied() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "kept", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    // Long enough that the loader, which has no frame pointers, is little of it.
    let (recording, output) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap(), "1000"]);
    check_whole(&recording);
    assert!(share(&samples(&recording), &TEN_DEEP) > 0.8);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // A slow start may leave the loader, which has none, a part that is told.
    let named = text.split("frame pointers are missing in functions of ").nth(1).unwrap_or("");
    assert!(!named.lines().next().unwrap_or("").contains("kept"), "{text}");
    assert!(replayed(&folder, "profile").contains("% complete"));
}

#[test]
fn nothing_is_sampled_twice_or_not_at_all_when_copies_begin_and_end() {
    // Frame pointers hold: after a check at the beginning nothing is copied any more.
    const FAULTS: &str = "
        #include <sys/mman.h>
        static volatile long sink;
        __attribute__((noinline)) void touch(volatile char *pages) {
            for (long i = 0; i < 64; i++) { pages[i * 4096] = 1; for (volatile int j = 0; j < 20000; j++) sink += j; }
        }
        int main(void) {
            for (int i = 0; i < 300; i++) {
                char *pages = mmap(0, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                touch(pages);
                munmap(pages, 64 * 4096);
            }
            return 0;
        }";
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "faults", FAULTS, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, _) = record(&folder, &["-g", "-c", "1", "-e", "page-faults"], &[program.to_str().unwrap()]);
    // A busy machine may lose samples that are copied faster than they are read, and says how many.
    let losses = recording.stacks.as_ref().unwrap().batches.last().unwrap().losses;
    let sampled = samples(&recording).len() as u64;
    let counted = recording.end.as_ref().unwrap().totals[0].unwrap().count;
    let lost = losses.lost + losses.dropped;
    let is_right = sampled <= counted + MOST_AT_CHANGES && sampled + lost + MOST_AT_CHANGES >= counted;
    assert!(is_right, "{sampled} of {counted}, {losses:?}");
    assert!(sampled * 2 > counted, "{sampled} of {counted}");
}

#[test]
fn one_of_so_many_occurrences_is_sampled_and_stands_for_all_of_them() {
    const FAULTS: &str = "
        #include <sys/mman.h>
        int main(void) {
            long size = 20000L * 4096;
            char *pages = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(pages, size, MADV_NOHUGEPAGE);
            for (long i = 0; i < size; i += 4096) pages[i] = 1;
            return 0;
        }";
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "periods", FAULTS, "cc", &WITH_FRAME_POINTERS) else { return };
    let options = ["-g", "--call-graph", "fp", "-c", "100", "-e", "page-faults"];
    let (recording, _) = record(&folder, &options, &[program.to_str().unwrap()]);
    let samples = samples(&recording);
    assert!((190..=230).contains(&samples.len()), "{}", samples.len());
    assert!(samples.iter().all(|(sample, _)| sample.weight == 100));
}

#[test]
fn short_programs_are_whole_from_the_dynamic_linker_on() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new();
    for call_graph in ["auto", "dwarf"] {
        let options = ["--call-graph", call_graph, "-F", "4000"];
        let (recording, _) = record(&folder, &options, &["sh", "-c", "for i in $(seq 100); do /bin/true; done"]);
        let losses = recording.stacks.as_ref().unwrap().batches.last().unwrap().losses;
        let all = samples(&recording);
        let cut = all.iter().filter(|(_, frames)| frames.first().is_some_and(|frame| frame.name == "[cut]")).count();
        assert!(cut * 4 < all.len(), "{cut} of {} with {call_graph}, {losses:?}", all.len());
        assert!(cut as u64 <= losses.cut, "{cut}, {losses:?}");
    }
}

#[test]
fn the_deepest_stacks_are_whole_though_they_are_few() {
    const SOMETIMES_DEEP: &str = "#include <stdlib.h>
        static volatile long sink;
        __attribute__((noinline)) long leaf(long n) { for (int i = 0; i < 50; i++) n = n * 25 + 7; return n; }
        __attribute__((noinline)) long deep(int depth, long n) {
            if (depth == 0) return leaf(n);
            long r = deep(depth - 1, n + 1); sink = r; return r + 1;
        }
        int main(void) { for (int i = 0; i < 30000000; i++) { sink += leaf(i); if (i % 30 == 0) sink += deep(30, i); } return 0; }";
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "sometimes", SOMETIMES_DEEP, "cc", &["-O2", "-fno-optimize-sibling-calls"])
    else {
        return;
    };
    let (recording, _) = record(&folder, &["-g", "-F", "4000"], &[program.to_str().unwrap()]);
    let losses = recording.stacks.as_ref().unwrap().batches.last().unwrap().losses;
    let all = samples(&recording);
    let deep = all.iter().filter(|(_, frames)| names(frames).contains(&"deep")).count();
    // On a busy machine a larger copy is asked for later.
    assert!(losses.cut * 40 < all.len() as u64, "{losses:?} of {}", all.len());
    assert!(deep == 0 || losses.cut * 4 < deep as u64, "{losses:?} of {deep}");
}

#[test]
fn stacks_without_frame_pointers_are_told_to_be_cut_with_a_command_against_it() {
    let folder = Folder::new();
    let Some(program) = without_frame_pointers(&folder, "cut") else { return };
    let program = program.to_str().unwrap();
    let (_, output) = record(&folder, &["--call-graph", "fp", "-F", "1000"], &[program]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let command = format!("perfprop record --call-graph dwarf -- {program}");
    assert!(text.contains("of the stacks are cut") && text.contains(&command), "{text}");
    // And so it is: the command shows them whole.
    let (_, output) = record(&folder, &["--call-graph", "dwarf", "-F", "1000"], &[program]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!text.contains("of the stacks are cut"), "{text}");
    assert!(replayed(&folder, "profile").contains("% complete"));
}

#[test]
fn copies_of_the_stack_that_are_too_short_are_told_with_a_larger_size() {
    const FAR: &str = "
        static volatile long sink;
        __attribute__((noinline)) void spin(volatile char *place) { for (long i = 0; i < 20000000; i++) sink += place[i % 30000]; }
        __attribute__((noinline)) void far(void) { volatile char place[30000]; place[7] = 1; spin(place); sink += place[7]; }
        int main(void) { for (int i = 0; i < 5; i++) far(); return 0; }";
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "copies", FAR, "gcc", &["-O1", "-g"]) else { return };
    let program = program.to_str().unwrap();
    let (_, output) = record(&folder, &["--call-graph", "dwarf,8192", "-F", "1000"], &[program]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains(&format!("--call-graph dwarf,32768 -- {program}")), "{text}");
}

/// Goes 60 KiB down in 100 calls, and computes there in a function that needs no stack.
const FAR_DOWN: &str = "
    #include <stdlib.h>
    static volatile long sink;
    __attribute__((noinline)) long leaf(long n) { for (long i = 0; i < n; i++) sink += i; return n; }
    __attribute__((noinline)) long down(int depth) {
        volatile char place[600];
        place[depth % 600] = depth;
        long r = depth > 0 ? down(depth - 1) : leaf(20000000);
        return r + place[depth % 600];
    }
    int main(int count, char **words) { for (int i = 0; i < atoi(words[1]); i++) sink += down(atoi(words[2])); return 0; }";

#[test]
fn stacks_longer_than_copies_are_whole_where_only_the_leaf_lacks_a_frame_pointer() {
    let folder = Folder::new();
    // gcc gives a leaf that needs no stack no frame, whatever it is told.
    let Some(program) = compiled(&folder, "far", FAR_DOWN, "gcc", &WITH_FRAME_POINTERS) else { return };
    let (recording, output) = record(&folder, &["-g", "-F", "1000"], &[program.to_str().unwrap(), "30", "100"]);
    let samples = samples(&recording);
    let is_whole = |frames: &[&StackFrame]| {
        let names = names(frames);
        let downs = names.iter().filter(|name| **name == "down").count();
        downs == 101 && names.windows(2).any(|part| part == ["main", "down"]) && names.last() == Some(&"leaf")
    };
    let whole = samples.iter().filter(|(_, frames)| is_whole(frames)).count();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(whole * 5 > samples.len() * 4, "{whole} of {}: {text}", samples.len());
    assert!(!text.contains("of the stacks are cut"), "{text}");
}

#[test]
fn stacks_that_larger_copies_hold_are_whole_with_them() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "far", FAR_DOWN, "gcc", &["-O1", "-g", "-fomit-frame-pointer"]) else {
        return;
    };
    let run = |graph: &str, depth: &str| {
        let options = ["--call-graph", graph, "-F", "1000"];
        let (_, output) = record(&folder, &options, &[program.to_str().unwrap(), "15", depth]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let text = run("auto", "90");
    assert!(text.contains("up to 64 KiB") && text.contains("--call-graph dwarf,65528 -- "), "{text}");
    let text = run("dwarf,65528", "90");
    assert!(!text.contains("of the stacks are cut"), "{text}");
    // Nothing that perfprop can do makes these whole.
    let text = run("dwarf,65528", "120");
    assert!(text.contains("copies at most") && text.contains("-fno-omit-frame-pointer"), "{text}");
}

/// Loads a library, calls what it has and unloads it, so that the dynamic linker looks for all that it calls each time.
#[cfg(target_arch = "x86_64")]
const RELOADED: &str = "
    #include <dlfcn.h>
    #include <stdio.h>
    int main(int count, char **words) {
        long sum = 0;
        for (int i = 0; i < 1500; i++) {
            void *library = dlopen(words[1], RTLD_LAZY);
            if (!library) { puts(dlerror()); return 1; }
            sum += ((long (*)(long))dlsym(library, \"call_all\"))(i);
            dlclose(library);
        }
        return sum == 1;
    }";

#[test]
#[cfg(target_arch = "x86_64")]
fn stacks_through_the_search_for_a_function_have_their_callers() {
    let folder = Folder::new();
    let list = |line: &dyn Fn(usize) -> String| (0..1000).map(line).collect::<String>();
    let called = list(&|i| format!("long f{i}(long n) {{ return n + {i}; }}\n"));
    let calls = list(&|i| format!("n += f{i}(n);\n"));
    let caller = format!("{}long call_all(long n) {{ {calls} return n; }}", list(&|i| format!("long f{i}(long);\n")));
    let library = ["-O1", "-g", "-shared", "-fPIC", "-Wl,-z,lazy"];
    let Some(called) = compiled(&folder, "libcalled.so", &called, "cc", &library) else { return };
    let program = compiled(&folder, "reloads", RELOADED, "cc", &["-O1", "-g"]).unwrap();
    for frame_pointers in ["-fomit-frame-pointer", "-fno-omit-frame-pointer"] {
        let linked = ["-Wl,--no-as-needed", called.to_str().unwrap(), frame_pointers];
        let caller = compiled(&folder, "libcaller.so", &caller, "cc", &[&library[..], &linked].concat()).unwrap();
        let words = [&program, &caller].map(|path| path.to_str().unwrap());
        let (recording, _) = record(&folder, &["-g", "-F", "2000"], &words);
        let samples = samples(&recording);
        let is_linker = |frame: &&StackFrame| frame.module.contains("/ld-linux");
        // What starts the program isn't below main.
        let searching = |frames: &[&StackFrame]| {
            let linker = frames.iter().position(&is_linker)?;
            let names = names(&frames[..linker]);
            let opens =
                names.iter().any(|name| name.contains("dlopen") || name.contains("dlclose") || name.contains("dlsym"));
            (!opens).then(|| names.windows(2).any(|part| part == ["main", "call_all"]))
        };
        let found: Vec<_> = samples.iter().filter_map(|(_, frames)| searching(frames)).collect();
        let whole = found.iter().filter(|is_whole| **is_whole).count();
        assert!(found.len() * 5 > samples.len(), "{frame_pointers}: {} of {}", found.len(), samples.len());
        assert!(whole * 10 > found.len() * 9, "{frame_pointers}: {whole} of {}", found.len());
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_perf_map_that_is_written_at_the_end_still_names_what_ran() {
    let folder = Folder::new();
    // Runs its code first, and tells its name when all is done.
    let late = JIT.replace("FILE *map", "((void (*)(void))page)(); usleep(300000);\n    FILE *map");
    let late = late.replace("    ((void (*)(void))page)();\n    return 0;", "    return 0;");
    let Some(program) = compiled(&folder, "late", &late, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, output) = record(&folder, &["-g", "-F", "1000"], &[program.to_str().unwrap()]);
    let samples = samples(&recording);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(share(&samples, &["main", "compiled::hot loop"]) > 0.8, "{text}");
    assert!(!text.contains("without a name"), "{text}");
    let run::MeasuredTarget::Command { pid, .. } = recording.header.target else { panic!("no command") };
    fs::remove_file(format!("/tmp/perf-{pid}.map")).unwrap();
}

/// The nanoseconds on no CPU below each function, and those for this reason.
fn off_cpu(recording: &Recording, function: &str, reason: &str) -> (u64, u64) {
    let sampled = &recording.stacks.as_ref().unwrap().sampled;
    let event = sampled.events.iter().position(|event| event.name == "off-cpu").unwrap();
    let waits = samples(recording).into_iter().filter(|(sample, _)| sample.event as usize == event);
    let below: Vec<_> = waits
        .map(|(sample, frames)| (sample.weight, names(&frames).join(";")))
        .filter(|(_, stack)| stack.contains(function))
        .collect();
    let sum = |part: &str| below.iter().filter(|(_, stack)| stack.contains(part)).map(|(weight, _)| weight).sum();
    (sum(""), sum(reason))
}

#[test]
fn waits_have_their_times_stacks_and_reasons() {
    let folder = Folder::new();
    let options = [&WITH_FRAME_POINTERS[..], &["-pthread"]].concat();
    let Some(program) = compiled(&folder, "waits", WAITS, "gcc", &options) else { return };
    let (recording, output) = record(&folder, &["--off-cpu"], &[program.to_str().unwrap()]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let told: Vec<_> = printed.lines().filter_map(|line| line.split_once(' ')).collect();
    assert_eq!(told.len(), 3, "{printed}");
    for (function, own) in told {
        let own: u64 = own.parse().unwrap();
        let (reason, least) = match function {
            "wait_for_lock" => ("[waits for a lock]", 0.5),
            "read_pipe" => ("[waits for a pipe or socket]", 0.5),
            _ => ("[sleeps]", 0.5),
        };
        let (away, for_this) = off_cpu(&recording, function, reason);
        // The rest is the time in which it runs; on a busy machine a part of it waits for a CPU.
        assert!(away <= own && away as f64 > 0.98 * own as f64, "{function}: {away} of {own} ns");
        assert!(for_this as f64 > least * own as f64, "{function}: {for_this} of {own} ns {reason}");
    }
    // Wake-ups are those of the whole machine: a user who may not see them is told so.
    let text = String::from_utf8_lossy(&output.stderr);
    if text.contains("sched:sched_waking") {
        eprintln!("skipped: who wakes threads can't be seen here");
        return;
    }
    // Of a long wait that is told in parts the last one alone.
    let (_, woken) = off_cpu(&recording, "wait_for_lock", "[waits for a lock];[woken by waits]");
    assert!(woken > 0);
}

#[test]
fn a_recording_goes_out_as_folded_stacks() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "exported", RECURSION, "cc", &WITH_FRAME_POINTERS) else { return };
    let (recording, _) = record(&folder, &["-g"], &[program.to_str().unwrap(), "40"]);
    let folded = |options: &[&str]| {
        let file = folder.join("recording.jsonl");
        let output = perfprop().args(["export", "--to", "folded"]).args(options).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let sum =
        |text: &str| -> u64 { text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum() };
    let samples = samples(&recording);
    assert_eq!(sum(&folded(&[])), samples.iter().map(|(sample, _)| sample.weight).sum::<u64>());
    assert_eq!(sum(&folded(&["--counts", "--from", "recording"])), samples.len() as u64);
    assert!(folded(&[]).contains("exported;") && folded(&[]).contains(&TEN_DEEP.join(";")));
    assert!(folded(&["--canonical"]).contains("main;odd;even;leaf"));
}

#[test]
fn options_that_can_not_be_met_say_what_to_use() {
    let run = |options: &[&str]| {
        let output = perfprop().arg("record").args(options).args(["-o", "/dev/null", "--", "true"]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = run(&["-F", "99"]);
    assert!(code == Some(2) && text.contains("add -g"), "{text}");
    let (code, text) = run(&["--call-graph", "magic"]);
    assert!(code == Some(2) && text.contains("dwarf,SIZE"), "{text}");
    if !can_sample() {
        return;
    }
    // Not of a clock: a program that is interrupted at the highest rate may not get on.
    let (code, text) = run(&["-g", "-F", "100000000", "-e", "page-faults"]);
    assert!(code == Some(0) && text.contains("perf_event_max_sample_rate"), "{text}");
    let has_lbr = ["cpu", "cpu_core"]
        .iter()
        .any(|pmu| Path::new(&format!("/sys/bus/event_source/devices/{pmu}/caps/branches")).exists());
    if has_lbr {
        eprintln!("skipped: this processor has LBR");
        return;
    }
    let (code, text) = run(&["--call-graph", "lbr"]);
    assert!(code == Some(125) && text.contains("use -g alone"), "{text}");
}
