//! Samples programs whose functions or callers aren't where most are: in two parts, behind signals, on other stacks, under one name.

use std::fs;
use std::path::{Path, PathBuf};

use perfprop::stacks::{StackFrame, StackSample};

use super::stacks::{WITH_FRAME_POINTERS, compiled, names, record, replayed, samples, share};
use crate::folders::Folder;

const WITHOUT_FRAME_POINTERS: [&str; 3] = ["-O1", "-g", "-fomit-frame-pointer"];

/// `host` has a part that never runs, and a function that is inlined.
const PARTS: &str = r#"
#include <stdlib.h>
volatile unsigned long sink;
static inline __attribute__((always_inline)) void turn(long n) { for (long i = 0; i < n; i++) sink += i; }
__attribute__((cold, noinline)) void rare(long n) { sink = n; }
__attribute__((noinline)) void host(long n) {
    if (__builtin_expect(n < 0, 0)) { rare(n); rare(n + 1); abort(); }
    turn(n);
    sink = 1;
}
int main(void) { for (int i = 0; i < 600; i++) host(1000000); return 0; }
"#;

/// A part of the time is spent in the handler of a signal that comes while `work` runs, with `STACK` on a stack of its own. The next
/// signal comes once `work` has had 5 ms of CPU time, so that it gets on however slow the handler is; both take as long on any CPU.
const SIGNALS: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
volatile unsigned long sink, work_done;
static const struct itimerval once = {{0, 0}, {0, 5000}};
static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}
__attribute__((noinline)) void handle(void) {
    for (double end = cpu() + 0.004; cpu() < end;) for (long i = 0; i < 100000; i++) sink += i;
}
void handler(int number) { handle(); setitimer(ITIMER_VIRTUAL, &once, 0); sink = (unsigned long)number; }
__attribute__((noinline)) void work(long n) { for (long i = 0; i < n; i++) work_done += i; }
__attribute__((noinline)) void middle(long n) { work(n); sink = 1; }
int main(void) {
    struct sigaction action = {0};
    action.sa_handler = handler;
#ifdef STACK
    stack_t own = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&own, 0);
    action.sa_flags = SA_ONSTACK;
#endif
    sigaction(SIGVTALRM, &action, 0);
    setitimer(ITIMER_VIRTUAL, &once, 0);
    for (double end = cpu() + 1.0; cpu() < end;) middle(1000000);
    return 0;
}
"#;

/// `work` runs on a stack of its own.
const COROUTINE: &str = r#"
#include <stdlib.h>
#include <ucontext.h>
volatile unsigned long sink;
static ucontext_t outside, inside;
__attribute__((noinline)) void spin(long n) { for (long i = 0; i < n; i++) sink += i; }
void work(void) { for (;;) { spin(3000000); swapcontext(&inside, &outside); } }
int main(void) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = malloc(65536);
    inside.uc_stack.ss_size = 65536;
    inside.uc_link = &outside;
    makecontext(&inside, work, 0);
    for (int i = 0; i < 200; i++) { spin(100000); swapcontext(&outside, &inside); }
    return 0;
}
"#;

fn recorded(folder: &Folder, program: &Path, options: &[&str]) -> (Vec<(StackSample, Vec<StackFrame>)>, String) {
    let (recording, output) = record(folder, options, &[program.to_str().unwrap()]);
    let owned = |(sample, frames): (StackSample, Vec<&StackFrame>)| (sample, frames.into_iter().cloned().collect());
    let all = samples(&recording).into_iter().map(owned).collect();
    (all, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The part of the samples with one function that are below another one as well.
fn below(all: &[(StackSample, Vec<StackFrame>)], caller: &[&str], function: &str) -> f64 {
    let has = |frames: &[StackFrame], name: &str| frames.iter().any(|frame| frame.name == name);
    let of: Vec<_> = all.iter().filter(|(_, frames)| has(frames, function)).collect();
    assert!(of.len() > 10, "{} samples of {function}", of.len());
    of.iter().filter(|(_, frames)| caller.iter().all(|caller| has(frames, caller))).count() as f64 / of.len() as f64
}

#[test]
fn functions_with_a_cold_part_have_lines_and_what_is_inlined() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "parts", PARTS, "gcc", &["-O2", "-g"]) else { return };
    let (recording, _) = record(&folder, &["-g", "-F", "2000"], &[program.to_str().unwrap()]);
    let all = samples(&recording);
    assert!(share(&all, &["main", "host", "turn"]) > 0.8, "{:?}", names(&all[all.len() / 2].1));
    let is_host = |frame: &&&StackFrame| frame.name == "host" && frame.line == Some(8);
    assert!(all.iter().any(|(_, frames)| frames.iter().any(|frame| is_host(&frame))));
    assert!(!replayed(&folder, "source").contains("has no debug information"));
}

#[test]
fn stacks_go_on_from_a_handler_to_what_the_signal_interrupted() {
    let folder = Folder::new();
    for (name, options) in [("with", &WITH_FRAME_POINTERS[..]), ("without", &WITHOUT_FRAME_POINTERS)] {
        let Some(program) = compiled(&folder, name, SIGNALS, "gcc", options) else { return };
        for method in ["--call-graph=auto", "--call-graph=dwarf"] {
            let (all, said) = recorded(&folder, &program, &[method, "-F", "2000"]);
            let part = below(&all, &["main", "middle", "work", "handler"], "handle");
            // Some tens of samples on a busy machine, of which the first can come before the stack is copied.
            assert!(part > 0.8 && !said.contains("stacks are cut"), "{name} {method}: {part}\n{said}");
        }
    }
    // Nobody can follow frame pointers to a function that was interrupted before it had one, or has none.
    let (_, said) = recorded(&folder, &folder.join("with"), &["--call-graph=fp", "-F", "2000"]);
    assert!(said.contains("frame pointers miss what signals interrupted:  perfprop record -g -- "), "{said}");
}

#[test]
fn handlers_on_a_stack_of_their_own_are_no_reason_to_miss_frame_pointers() {
    let folder = Folder::new();
    let options = [&WITHOUT_FRAME_POINTERS[..], &["-DSTACK"]].concat();
    let Some(program) = compiled(&folder, "own", SIGNALS, "gcc", &options) else { return };
    let (all, said) = recorded(&folder, &program, &["-g", "-F", "2000"]);
    // The kernel tells what was interrupted, and none of its callers.
    assert!(below(&all, &["work", "[cut]"], "handle") > 0.9);
    assert!(said.contains("handlers of signals ran on a stack of their own (sigaltstack)"), "{said}");
}

#[test]
fn stacks_of_coroutines_are_whole() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "coroutine", COROUTINE, "gcc", &WITHOUT_FRAME_POINTERS) else { return };
    let (all, said) = recorded(&folder, &program, &["-g", "-F", "2000"]);
    assert!(below(&all, &["work"], "spin") > 0.7);
    let cut = all.iter().filter(|(_, frames)| frames[0].name == "[cut]").count();
    assert!(cut * 20 < all.len() && !said.contains("stacks are cut"), "{cut} of {}: {said}", all.len());
}

/// A program of two files with a function of the same name each, of which one takes three times as long.
fn of_one_name(folder: &Folder, options: &[&str]) -> Option<PathBuf> {
    let text = |name: &str, times: u32| {
        format!(
            "extern volatile unsigned long sink;
            static __attribute__((noinline)) void helper(long n) {{ for (long i = 0; i < {times} * n; i++) sink += i; }}
            void {name}(long n) {{ helper(n); sink = 1; }}"
        )
    };
    let files = [("short", 1), ("long", 3)].map(|(name, times)| {
        let path = folder.join(format!("{name}.c"));
        fs::write(&path, text(&format!("{name}_one"), times)).unwrap();
        path.to_str().unwrap().to_owned()
    });
    // Turns are far shorter than the time between two samples: those that are as long beat with them.
    let main = "volatile unsigned long sink; void short_one(long); void long_one(long);
        int main(void) { for (int i = 0; i < 30000; i++) { short_one(10000); long_one(10000); } return 0; }";
    let options: Vec<_> = options.iter().copied().chain(files.iter().map(String::as_str)).collect();
    compiled(folder, "namesakes", main, "gcc", &options)
}

#[test]
fn functions_of_one_name_are_told_apart_by_their_files() {
    let folder = Folder::new();
    for options in [&["-O1", "-g"][..], &["-O1"]] {
        let Some(program) = of_one_name(&folder, options) else { return };
        let (all, said) = recorded(&folder, &program, &["-g", "-F", "2000"]);
        let of = |file: &str| {
            let is_it =
                |frame: &StackFrame| frame.name == "helper" && frame.file.as_ref().is_some_and(|f| f.ends_with(file));
            all.iter().filter(|(_, frames)| frames.iter().any(is_it)).count()
        };
        let (short, long) = (of("short.c"), of("long.c"));
        assert!(short > 20 && long > 2 * short && long < 5 * short, "{short} and {long} of {}: {said}", all.len());
        let screen = replayed(&folder, "profile");
        assert!(["helper (short.c)", "helper (long.c)"].iter().all(|name| screen.contains(name)), "{screen}");
    }
}
