//! Finds what to use instead of perf's options and verbs, and of hyperfine's, that perfprop lacks.

use std::ffi::OsString;

use crate::names::{for_shell, shown};

/// Options or verbs of perf that mean the same, and what does it here.
type Replacement = (&'static [&'static str], &'static str);

/// perf's options of every verb that measures.
const EVERYWHERE: [Replacement; 3] = [
    (&["--control"], "a part of a run:  -D MS, --timeout MS, or  -p PID"),
    (&["--filter"], "perfprop can't filter tracepoints: count them all, or one process' with  -p PID"),
    (&["--group"], "write groups in braces:  -e '{cycles,instructions}'"),
];

const STAT: [Replacement; 14] = [
    (&["-g"], "write groups in braces:  -e '{cycles,instructions}'"),
    (
        &["-T", "--transaction", "--topdown", "--td-level", "--smi-cost", "--iostat"],
        "metrics:  perfprop list metric; -M",
    ),
    (&["--metric-only"], "metrics alone:  -M METRICS -j"),
    (&["--metric-no-merge"], "one metric in a run shares no events:  -M METRIC"),
    (&["--hybrid-merge", "--cputype"], "each kind of core is counted apart:  -e cpu_core/cycles/"),
    (&["--no-scale", "--scale"], "unscaled counts, enabled and running times:  perfprop record"),
    (&["--per-core", "--per-die", "--per-node", "--per-socket", "--percore-show-thread"], "each CPU apart:  -A"),
    (&["--for-each-cgroup"], "one control group in a run:  -G CGROUP"),
    (&["--log-fd"], "a file instead of a descriptor:  -o /dev/fd/N"),
    (&["--pre", "--post"], "a shell does both:  -- sh -c 'PRE; COMMAND; POST', which counts them too"),
    (&["--table"], "the spread between runs is printed; each run:  a loop in a shell"),
    (&["--summary", "--no-csv-summary"], "the sum over all intervals:  perfprop record -I MS, perfprop replay --print"),
    (&["--interval-clear"], "live numbers:  perfprop top"),
    (&["--bpf-counters", "--bpf-prog"], "programs in the kernel aren't counted; a process is:  -p PID"),
];

const RECORD: [Replacement; 24] = [
    (&["--intr-regs"], "registers in samples need  perf record"),
    (
        &["--clang-opt", "--clang-path", "--debuginfod", "--vmlinux"],
        "names come from the programs, their debug files here and /proc/kallsyms",
    ),
    (&["-T", "--timestamp", "--timestamp-boundary"], "every reading and every sample has its time already"),
    (&["-k", "--clockid"], "times count from the start, by CLOCK_MONOTONIC"),
    (
        &["-B", "--no-buildid", "-N", "--no-buildid-cache", "--buildid-all", "--buildid-mmap"],
        "a recording holds names, no build ids: there is nothing to leave out",
    ),
    (&["-n", "--no-samples"], "record samples only with -g or --call-graph: leave these out"),
    (&["-s", "--stat"], "counts of each thread:  --per-thread -p PID"),
    (
        &["-d", "--data", "-P", "--period", "-R", "--raw-samples", "-W", "--weight", "--sample-cpu", "--phys-data"],
        "a sample is its event, stack, thread, time and weight; what else a sample can hold needs  perf record",
    ),
    (
        &["--data-page-size", "--code-page-size", "--transaction", "--sample-identifier", "--user-regs"],
        "a sample is its event, stack, thread, time and weight; what else a sample can hold needs  perf record",
    ),
    (&["-b", "--branch-any", "-j", "--branch-filter"], "call stacks out of the record of branches:  --call-graph lbr"),
    (&["-m", "--mmap-pages", "--mmap-flush"], "perfprop chooses its buffers, and says what was lost"),
    (&["--realtime"], "chrt -f PRIORITY perfprop record ..."),
    (&["-S", "--snapshot", "--aux-sample", "--kcore"], "traces of the processor need  perf record"),
    (&["-u", "--uid"], "the processes of a user:  -p $(pgrep -d, -u USER)"),
    (&["-v", "--verbose"], "what opens, and why not:  perfprop check -e EVENTS"),
    (&["--dry-run"], "what opens, and why not:  perfprop check -e EVENTS"),
    (&["-z", "--compression-level"], "the recording is text, which packs well:  -o - ... | zstd > FILE"),
    (
        &["--max-size", "--switch-output", "--switch-max-files", "--switch-output-event", "--timestamp-filename"],
        "a run that ends by itself:  --timeout MS",
    ),
    (
        &["--affinity", "--aio", "--threads", "--num-thread-synthesize", "--no-buffering", "--proc-map-timeout"],
        "perfprop reads with one thread and says what was lost",
    ),
    (
        &["--all-cgroups", "--namespaces", "--no-bpf-event", "--switch-events", "--synth", "--tail-synthesize"],
        "records beside counts and samples need  perf record",
    ),
    (&["--overwrite"], "the newest samples of a run that lasts:  perfprop top -g, whose key S saves them"),
    (&["--kernel-callchains"], "stacks of the kernel alone:  --all-kernel -g"),
    (&["--user-callchains"], "stacks of programs alone:  --all-user -g"),
    (
        &["--exclude-perf", "--running-time", "--strict-freq"],
        "perfprop isn't counted with a command, and every count has its times",
    ),
];

const TOP: [Replacement; 18] = [
    (&["--disassembler-style"], "instructions of a program:  objdump -d PROGRAM"),
    (
        &["--all-cgroups", "--namespaces", "--no-bpf-event", "--switch-on", "--switch-off", "--show-on-off-events"],
        "a part of a run:  -D MS, --timeout MS, -p PID or -G CGROUP",
    ),
    (&["-b", "--branch-any", "-j", "--branch-filter"], "call stacks out of the record of branches:  --call-graph lbr"),
    (
        &["--dump-symtab", "--sym-annotate", "--objdump", "--asm-raw", "--prefix", "--prefix-strip"],
        "instructions of a program:  objdump -d PROGRAM",
    ),
    (&["-E", "--entries"], "there are as many rows as the terminal has; all of them:  --batch"),
    (&["-f", "--count-filter", "--percent-limit", "--percentage"], "the key / filters rows"),
    (&["-K", "--hide_kernel_symbols"], "programs alone:  --all-user"),
    (&["-U", "--hide_user_symbols"], "the kernel alone:  --all-kernel"),
    (&["-k", "--vmlinux", "--kallsyms", "--ignore-vmlinux", "--demangle-kernel"], "the kernel's names: /proc/kallsyms"),
    (
        &["-m", "--mmap-pages", "--overwrite", "--num-thread-synthesize", "--proc-map-timeout"],
        "perfprop chooses its buffers, and says what was lost",
    ),
    (&["-r", "--realtime"], "chrt -f PRIORITY perfprop top ..."),
    (
        &["-s", "--sort", "--fields", "--group-sort-idx", "-w", "--column-widths"],
        "the keys s and < choose the column to sort by, I turns the order round",
    ),
    (
        &["--show-nr-samples", "--show-total-period", "--children", "--hierarchy", "--raw-trace"],
        "samples of a function, with those of what it calls:  -g --screen profile",
    ),
    (
        &["--max-stack", "--ignore-callees", "--stitch-lbr", "--symbols", "--dsos", "--comms"],
        "the keys / and Enter search and zoom in call stacks:  -g --screen profile",
    ),
    (&["-u", "--uid"], "the processes of a user:  -p $(pgrep -d, -u USER)"),
    (&["-v", "--verbose"], "what opens, and why not:  perfprop check -e EVENTS"),
    (&["-z", "--zero"], "each interval for itself:  --screen detail, or  perfprop stat -I MS"),
    (&["--stdio", "--tui", "--force"], "text instead of screens:  --batch"),
];

/// hyperfine's options.
const BENCH: [Replacement; 12] = [
    (&["-m", "--min-runs"], "as many runs as it takes:  --until 1% -r MOST"),
    (&["-M", "--max-runs"], "the most runs:  -r RUNS, with --until 1% where fewer may do"),
    (&["-L", "--parameter-list"], "the values of a parameter:  -P NAME=VALUE,VALUE"),
    (
        &["--parameter-scan", "-D", "--parameter-step-size"],
        "equal steps from A to B, as many as COUNT:  -P NAME=lin:A..B:COUNT",
    ),
    (&["-p", "-s", "-c"], "commands around runs:  --prepare, --setup, --cleanup"),
    (&["-C", "--conclude"], "what is to follow each run:  --prepare before the next one, --cleanup after the last"),
    (&["-n", "--command-name"], "names of commands:  -P tool=sort,msort -- {tool}"),
    (&["-N", "-S", "--shell"], "no shell is started, unless the command names one:  -- sh -c 'COMMAND'"),
    (&["--show-output", "--input"], "a shell directs them:  -- sh -c 'COMMAND < IN > OUT'"),
    (&["--reference"], "all commands are compared with the first:  -- REFERENCE --vs COMMAND"),
    (&["--export-asciidoc", "--export-orgmode"], "a table:  --export-markdown FILE, or  --export-csv FILE"),
    (&["--style", "--sort", "-u", "--time-unit"], "tables have one form; for other programs:  --export-json FILE"),
];

/// perf's verbs that perfprop lacks.
const VERBS: [Replacement; 8] = [
    (&["report"], "open a recording:  perfprop replay FILE; as text:  perfprop replay FILE --print"),
    (&["script"], "a recording is text already; for other tools:  perfprop export FILE --to FORMAT"),
    (&["diff", "compare"], "what differs by more than chance:  perfprop replay --a FILE FILE ... --b FILE FILE ..."),
    (&["annotate"], "functions and their callers:  perfprop replay FILE --screen profile"),
    (&["probe"], "events on functions need no preparation:  -e uprobe:/path/to/program:function"),
    (&["test", "version"], "the version:  perfprop -V; what can be counted here:  perfprop check"),
    (&["trace", "sched", "lock", "kmem", "ftrace", "timechart"], "count the tracepoints:  perfprop stat -e 'sched:*'"),
    (
        &["mem", "c2c", "kvm", "intel-pt", "inject", "buildid-cache", "buildid-list"],
        "perfprop has nothing for it: use perf",
    ),
];

/// perf's verbs below `stat`.
const BELOW_STAT: [Replacement; 2] = [
    (&["record"], "perfprop record keeps counts:  perfprop record -o FILE -e EVENTS -- COMMAND"),
    (&["report"], "perfprop replay prints what perfprop record kept:  perfprop replay FILE --print"),
];

/// What somebody used to perf does here instead of this option of a verb, given as it was written.
pub(super) fn instead(verb: &str, option: &str) -> Option<&'static str> {
    let name = option.split('=').next().unwrap_or(option);
    let own: &[Replacement] = match verb {
        "stat" => &STAT,
        "record" => &RECORD,
        "top" => &TOP,
        "bench" => return find(&BENCH, name),
        _ => return None,
    };
    find(own, name).or_else(|| find(&EVERYWHERE, name))
}

/// How `bench` is told commands that were written as hyperfine takes them, each as one word.
pub(super) fn bench_of_lines(lines: &[String]) -> String {
    let is_of_shell = |line: &str| line.contains(['|', '&', ';', '<', '>', '$', '`', '*', '?', '#', '~', '(', '\n']);
    let command = |line: &String| match line.trim() {
        line if is_of_shell(line) => format!("sh -c {}", for_shell(line)),
        line => shown(line).into_owned(),
    };
    let commands: Vec<String> = lines.iter().map(command).collect();
    format!(
        "commands are words, behind -- and each --vs; no shell runs them:\n      perfprop bench -- {}",
        commands.join(" --vs ")
    )
}

/// What to use instead of a verb of perf, if it is one.
pub(super) fn instead_of_verb(verb: &str) -> Option<&'static str> {
    find(&VERBS, verb)
}

/// What to use instead of a word that perf takes for a verb below `stat`, where it isn't a command.
pub(super) fn instead_below_stat(command: &OsString) -> Option<&'static str> {
    find(&BELOW_STAT, command.to_str()?)
}

fn find(replacements: &[Replacement], name: &str) -> Option<&'static str> {
    replacements.iter().find(|(names, _)| names.contains(&name)).map(|(_, instead)| *instead)
}

#[cfg(test)]
mod tests;
