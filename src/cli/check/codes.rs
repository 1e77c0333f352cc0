//! Lists the code of every error and warning, with what it means and what to do.

use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};

use crate::codes::ErrorCode::{E01, E02, E03, E04, E05, E06, E07, E09, E10, E11, E12, E13, E14, E15, E16};
use crate::host::HostFiles;
use crate::text::wrapped;

/// What there is to know about a code.
struct Explained {
    code: &'static str,
    /// What happened, in a line.
    title: &'static str,
    /// What the error or warning means for the run.
    consequence: &'static str,
    /// The cause.
    meaning: &'static str,
    /// Commands and changes that mend it.
    remedy: &'static [&'static str],
}

/// What stands in commands for the path of this program.
const OWN_PROGRAM: &str = "PERFPROP";

const TABLE: &[Explained] = &[
    Explained {
        code: E01.name(),
        title: "this user may not count the events",
        consequence: "nothing is measured, exit 125; one event of several is shown as not permitted, and the others are counted",
        meaning: "The kernel, a seccomp filter or a security module refuses perf_event_open. perfprop asks with smaller \
                  and smaller questions (the event in user space only, a software event of its own process) and names \
                  the first layer that says no. perf_event_paranoid 2, the default of most systems, allows user space \
                  of your own processes; 1 adds the kernel's side, 0 whole CPUs. Levels 3 and 4 of Debian and Ubuntu \
                  allow nothing. top without a target and -e then shows CPU time and processes, which need no right.",
        remedy: &[
            "which layer it is:             perfprop check",
            "counting for one program:      sudo setcap cap_perfmon+ep PERFPROP",
            "counting for all users:        sudo sysctl kernel.perf_event_paranoid=1   (0 for -a, -C, -G)",
            "in a container:                --cap-add PERFMON --security-opt seccomp=unconfined",
        ],
    },
    Explained {
        code: E02.name(),
        title: "this machine does not count the events",
        consequence: "one event of several is shown as not supported, and the others are counted; else nothing is, exit 125",
        meaning: "Either there is no hardware counter at all, as in most virtual machines: then sysfs lists no PMU of \
                  the cores and root does not help. Or the PMU has no such event, or the kernel takes it in no such form (EINVAL), or what \
                  it needs is in use, as the breakpoints of a CPU are. Zeros are never printed instead. Without --strict, stat runs the \
                  command all the same, prints <not supported>, and exits as the command does.",
        remedy: &[
            "what there is:                 perfprop check; perfprop list",
            "what the kernel says to one:   perfprop check -e EVENT",
            "in a guest:                    give it a virtual PMU on the host (qemu: -cpu host,pmu=on)",
            "without hardware counters:     -e task-clock,page-faults,context-switches, tracepoints, probes",
        ],
    },
    Explained {
        code: E03.name(),
        title: "a name in -e is wrong",
        consequence: "nothing is started, exit 2",
        meaning: "Names are those of perf, of the PMUs in sysfs, of tracefs, of libpfm, of a vendor's tables \
                  (--event-tables) and perfprop's presets. Every wrong name of the option is told at once, with its \
                  position, and with the nearest names that this machine has.",
        remedy: &[
            "all names:                     perfprop list",
            "names with a word in them:     perfprop list '*MISS*'",
        ],
    },
    Explained {
        code: E04.name(),
        title: "a group in braces does not fit on the counters",
        consequence: "nothing is started, exit 125",
        meaning: "Events in braces are counted at the same time or not at all. perfprop tries the group before the \
                  start, because some kernels accept groups that can never run. The NMI watchdog holds one counter of \
                  each CPU.",
        remedy: &[
            "how many fit:                  perfprop check -e EVENTS",
            "let the events take turns:     drop the braces, or write {a,b,c}:W",
            "free the watchdog's counter:   sudo sysctl kernel.nmi_watchdog=0",
        ],
    },
    Explained {
        code: E05.name(),
        title: "too many open files",
        consequence: "nothing is measured, exit 125",
        meaning: "Each event takes a descriptor in each place where it is counted: a thread, a CPU, a thread on a CPU. \
                  perfprop raises the limit to the hard one by itself before it gives up.",
        remedy: &[
            "fewer places:                  -C 0-15, or -t TID for single threads",
            "a higher hard limit, as root:  ulimit -n 65536",
        ],
    },
    Explained {
        code: E06.name(),
        title: "the command cannot be executed",
        consequence: "nothing is measured; exit 127 if there is no such command, 126 if it may not be executed",
        meaning: "It is looked up before the start as a shell would look it up: in PATH, or by its path if there is a \
                  slash in it. Built-in commands of shells need the shell: sh -c 'command'.",
        remedy: &["make a file executable:        chmod +x FILE", "something in this folder:      ./NAME"],
    },
    Explained {
        code: E07.name(),
        title: "a relation file is wrong",
        consequence: "nothing is started, exit 2; `check FILE` exits with 1",
        meaning: "Everything that is wrong with the file is told at once, each with its line, its column and what was \
                  expected there.",
        remedy: &[
            "look through files:            perfprop check FILE...",
            "go on without what is wrong:   --relations-lenient",
        ],
    },
    Explained {
        code: E09.name(),
        title: "there is no terminal to draw on",
        consequence: "goes on and prints a block of text every interval, as --batch does",
        meaning: "The screens of `top` need a terminal to draw on, and one that keys come from. Standard input may be \
                  a file or a pipe that the command reads. Standard output may be a file that the command writes: \
                  screens stay on the terminal. Into a pipe, and into a file where there is no command, the same \
                  numbers are written as text, without a single escape.",
        remedy: &[
            "text on purpose:               perfprop top --batch",
            "for programs:                  perfprop stat -I 1000 -j",
        ],
    },
    Explained {
        code: E10.name(),
        title: "the terminal is too small",
        consequence: "drawn in place of the screen; counting goes on, q quits",
        meaning: "Below the size that is named there is no room for a single row. As soon as the terminal is larger \
                  the screen is back, and nothing was lost meanwhile.",
        remedy: &["make the terminal larger, or:  perfprop top --batch"],
    },
    Explained {
        code: E11.name(),
        title: "the process does not exist, or has ended",
        consequence: "at the start: exit 125; later: a line in the Log, final values are kept",
        meaning: "A process or thread given with -p or -t is not there (ESRCH). When the last one that is measured \
                  ends, so does the measurement.",
        remedy: &["find it:                       pgrep -a NAME"],
    },
    Explained {
        code: E12.name(),
        title: "the process is not yours to measure",
        consequence: "nothing is measured, exit 125",
        meaning: "Counters of another user's process need the right to trace it, whatever perf_event_paranoid says.",
        remedy: &[
            "as that user, or:              sudo PERFPROP ... -p PID",
            "or, for one program:           sudo setcap cap_perfmon+ep PERFPROP",
        ],
    },
    Explained {
        code: E13.name(),
        title: "a metric is not known, or can't be measured here",
        consequence: "nothing is measured, exit 2; one of a pattern or group: the others are",
        meaning: "-M takes the metrics of relation files, of the vendor's tables and perfprop's own, by name, pattern \
                  or group. Either none is called so, or this machine lacks one of its events, or does not tell what \
                  its formula asks for, such as the number of slots. Where none of its events can be counted, it is E02.",
        remedy: &[
            "which there are:               perfprop list metric",
            "what one needs:                perfprop relations show",
            "the vendor's as well:          --event-tables DIR",
        ],
    },
    Explained {
        code: E14.name(),
        title: "call stacks can't be sampled",
        consequence: "nothing is measured, exit 125",
        meaning: "Of -g and --call-graph: none of the events can be sampled (uncore and some software events only \
                  count); or the processor keeps no record of calls, as in most virtual machines; or ring buffers, one \
                  for each CPU, find no room within the memory that this user may lock (perf_event_mlock_kb for each \
                  CPU, and ulimit -l).",
        remedy: &[
            "what is sampled everywhere:    perfprop record -g -e cpu-clock",
            "without LBR:                   perfprop record --call-graph dwarf",
            "more memory for ring buffers:  sudo sysctl kernel.perf_event_mlock_kb=4096",
        ],
    },
    Explained {
        code: E15.name(),
        title: "the emulated PMU needs valgrind",
        consequence: "nothing was started, exit 125",
        meaning: "--source emulate runs the command under valgrind's callgrind, which models caches and branches. It is \
                  looked for in PATH.",
        remedy: &[
            "Debian, Ubuntu:                apt install valgrind",
            "others:                        dnf or pacman, the same name",
        ],
    },
    Explained {
        code: E16.name(),
        title: "the kernel's slices can't be made shorter",
        consequence: "nothing was started, exit 125; the interval is what it was",
        meaning: "--mux writes perf_event_mux_interval_ms of the PMUs that are counted on, which takes root and a \
                  /sys that is not read-only (containers). A guard process (sh) sets it back, so one that can't be \
                  started is a reason too, as is another perfprop that has changed it.",
        remedy: &[
            "slices that need no right:     --schedule user",
            "the interval, by hand:         /sys/bus/event_source/devices/*/perf_event_mux_interval_ms",
        ],
    },
    Explained {
        code: "W01",
        title: "readings were skipped",
        consequence: "totals are right; intervals are coarser for a while",
        meaning: "Counts are cumulative, so a reading that is left out costs resolution and nothing else. It came too late, or \
                  found no room: the machine is busy, or what takes the readings is slower than they come.",
        remedy: &["fewer readings:                a longer -I"],
    },
    Explained {
        code: "W02",
        title: "a count or a time went backwards",
        consequence: "that reading is left out",
        meaning: "The kernel's counts only grow. One that fell was reset, or overflowed, or comes from a broken \
                  driver; a rate from it would be invented.",
        remedy: &["if it comes often:             leave the event out, and tell what kernel and CPU it is"],
    },
    Explained {
        code: "W03",
        title: "an event ran for a small part of the time",
        consequence: "its total is scaled; its error is wide",
        meaning: "More hardware events are asked for than there are counters, so they take turns. What happened while \
                  an event had no counter is unknown, and its ± says how much that may be. There is no warning of \
                  a number that is known to 1 % all the same, by relations or because the program is steady.",
        remedy: &[
            "what to expect before a run:   perfprop check -e EVENTS",
            "narrower errors:               fewer hardware events, or relations that tie them together",
            "one counter more:              sudo sysctl kernel.nmi_watchdog=0",
        ],
    },
    Explained {
        code: "W06",
        title: "an event is counted in user space only",
        consequence: "its name gets :u, and so do files and screens",
        meaning: "perf_event_paranoid allows this user no look at the kernel. Counts are smaller than with the \
                  kernel's part: for some events, such as page faults of system calls, by far.",
        remedy: &[
            "the kernel's side too:         sudo setcap cap_perfmon+ep PERFPROP",
            "or for all users:              sudo sysctl kernel.perf_event_paranoid=1",
        ],
    },
    Explained {
        code: "W07",
        title: "a relation is inactive",
        consequence: "it corrects nothing; everything else is measured",
        meaning: "Not all of its events are measured. That is usual: a file may hold relations for many sets of events.",
        remedy: &["let it take part:              add the events that the Log names to -e"],
    },
    Explained {
        code: "W08",
        title: "a relation contradicts what is counted",
        consequence: "it corrects nothing any more, unless the estimator is linear-plain",
        meaning: "What the relation predicts differs from the counts by more than their errors and its tolerance can \
                  explain. Either it does not hold for this program or this CPU, or one of the events does not count \
                  what its name says.",
        remedy: &[
            "it is nearly right:            raise its \"tolerance\" in the file",
            "it is wrong:                   leave it out",
        ],
    },
    Explained {
        code: "W09",
        title: "the counts no longer contradict a relation",
        consequence: "it corrects again",
        meaning: "It was put aside (W08), and has come back within its error since.",
        remedy: &["nothing has to be done"],
    },
    Explained {
        code: "W10",
        title: "an event counts on one kind of core only",
        consequence: "its number is a part of the whole, which is shown as it is and not scaled",
        meaning: "This CPU has cores of several kinds, and each kind has counters of its own. While the \
                  program ran on the others, this event saw nothing.",
        remedy: &["name the event without a PMU in front: it is counted on each kind of core, in a row each"],
    },
    Explained {
        code: "W11",
        title: "the kernel took counters off",
        consequence: "what was counted before stays; nothing is counted from then on",
        meaning: "A program that is setuid or setgid, has file capabilities or can't be read by its user may do \
                  what whoever started it may not. So the kernel lets no plain user count it, and takes all \
                  counters off without a word when it is executed: their times stand still while it runs on. It takes off those of \
                  a CPU that goes offline as well, and doesn't put them back when it is online again.",
        remedy: &[
            "after a CPU was offline:           begin a new measurement",
            "count the program as root:         sudo PERFPROP stat -- COMMAND",
            "or a copy without those rights:    cp PROGRAM /tmp/copy",
        ],
    },
    Explained {
        code: "W12",
        title: "threads had ended before counting began",
        consequence: "they have no counts; all others are counted",
        meaning: "Threads are listed first and opened one by one. Those that end in between, or that were given \
                  with -t and had ended before, are gone.",
        remedy: &["nothing has to be done"],
    },
    Explained {
        code: "W13",
        title: "CPU time of a child of the command was not counted",
        consequence: "counts are shown as ±?: what was counted stays, and nobody knows how much a child added",
        meaning: "When the command has ended, its CPU time and that of the children it waited for is known. Here more of it \
                  passed while no event was enabled than starts and ends of processes take: 0.1 s and 2 ms for each that \
                  the machine started, or half of all. The kernel does so with a child that \
                  is setuid or setgid, has file capabilities or can't be read by its user, such as sudo and all that \
                  it starts: it takes all counters off without a word when such a program is executed (as in W11).",
        remedy: &[
            "count it as root:                  sudo PERFPROP stat -- COMMAND",
            "or the part after it alone:        sudo PERFPROP stat -- CHILD",
            "or all that runs meanwhile:        sudo PERFPROP stat -a -- COMMAND",
        ],
    },
    Explained {
        code: "W14",
        title: "some units, or threads that start later, have no part in an event's count",
        consequence: "the number is the sum of the others, marked partial and not scaled up to all",
        meaning: "Memory controllers, slices of caches and the like have several units, each with a PMU of its own \
                  (uncore_imc_0, uncore_imc_1). What one event counts on all of them is added up. A unit that the \
                  kernel refuses, or whose counters something else holds, adds nothing, which is not 0. A probe on a \
                  function (uprobe:, kprobe:) counts what threads do that start later only if it can be made in tracefs; \
                  elsewhere the kernel would refuse to start them.",
        remedy: &[
            "each unit in a row of its own: --no-merge",
            "who holds counters:            ps -C perf,perfprop",
            "a probe of all threads:        as root, with tracefs mounted",
        ],
    },
    Explained {
        code: "W15",
        title: "an event's PMU listens to other CPUs",
        consequence: "the event is not counted; the others are",
        meaning: "A PMU outside the cores counts for a whole socket, and the kernel names one CPU of each (the file \
                  cpumask in its folder of sysfs), where it is opened once. -C leaves that one out.",
        remedy: &[
            "all that it counts:            -a without -C",
            "or its CPU:                    -C with the CPU that is named",
        ],
    },
    Explained {
        code: "W16",
        title: "the counters rotate in step with the program",
        consequence: "multiplexed counts may be off by the factors that are named, and their intervals are as wide",
        meaning: "A program that repeats itself in the time of a cycle of the rotation is seen by each multiplexed event \
                  in the same moments again and again, and scaling takes these for all of the time. An event that is \
                  always counted shows it: in the slices of the others its rate is not that of the whole run.",
        remedy: &[
            "slices in an order that changes: --schedule user",
            "another length of slices:        --mux MS, as root",
            "no rotation at all:              fewer hardware events",
        ],
    },
    Explained {
        code: "W17",
        title: "the estimator found no solution for an interval",
        consequence: "the counts of that interval are scaled, as perf does; others are estimated",
        meaning: "Covariances of events are solved for in each window. Where rounding leaves them without a solution, as \
                  with many events that are nearly the same, counts are scaled by the part of the time that was counted.",
        remedy: &["fewer events of one kind, or the same event asked for once"],
    },
    Explained {
        code: "W18",
        title: "rates of events changed to another level",
        consequence: "the numbers are right: the program does something else from then on, or does it slower or faster",
        meaning: "A change is told if the rate differs by 5 % or more, both levels lasted 5 s and 8 intervals or longer (of \
                  intervals below 0.1 s, 50 are enough), and noise leads to as clear a change in less than 1 of 10^6 looks. \
                  Times, such as task-clock, are per second; other events are per second of CPU time.",
        remedy: &["perfprop top --screen detail shows the levels; in a replay, n and N go from change to change"],
    },
    Explained {
        code: "W19",
        title: "an event changes often",
        consequence: "its changes are listed and marked, but are no findings until 5 minutes pass without one",
        meaning: "Five changes of an event were told within 5 minutes, and another one came.",
        remedy: &["perfprop top --screen detail marks all of them"],
    },
    Explained {
        code: "W20",
        title: "all counts are modelled",
        consequence: "they are not those of this CPU",
        meaning: "A model of two levels of caches and of branch prediction counted, and no hardware. A program with one thread that \
                  does the same work has the same counts in every run. Each repetition of a string instruction (rep movsb in memcpy) \
                  counts as an instruction. Its time is instructions: rates are per 1,000 of them on screens, and per 10^9 in -x and -j.",
        remedy: &[
            "its caches:                    --model i1=SIZE,WAYS,LINE,d1=...,ll=...",
            "what it counts:                perfprop list --source emulate",
        ],
    },
    Explained {
        code: "W21",
        title: "all that could count the event is in use",
        consequence: "the event is shown as in use, never as 0; the others are counted",
        meaning: "The kernel has no room left for it (ENOSPC), or somebody else has what it needs (EBUSY). A CPU has few \
                  breakpoints, four on x86, and debuggers take them as well.",
        remedy: &[
            "fewer of its kind:             an event less in -e",
            "who holds counters:            ps -C perf,perfprop,gdb",
        ],
    },
    Explained {
        code: "W22",
        title: "the model ended before it had written all that it counted",
        consequence: "counts are shown as ±?: they are those of a part of the run",
        meaning: "valgrind writes what it counted into a folder for temporary files, the last of it when a program ends. A command \
                  has ended without that: the folder's file system is full, so that valgrind ended the command with code 1, or \
                  the command was killed.",
        remedy: &[
            "room in the folder:            df -h \"${TMPDIR:-/tmp}\"",
            "another folder:                TMPDIR=/var/tmp PERFPROP stat --source emulate -- COMMAND",
        ],
    },
];

/// The text for a code, in any case of letters; the list of all for an empty one.
pub(super) fn explain(code: &str) -> Option<String> {
    if code.is_empty() {
        return Some(TABLE.iter().map(|row| format!("{}  {}\n", row.code, row.title)).collect());
    }
    let row = TABLE.iter().find(|row| row.code.eq_ignore_ascii_case(code))?;
    let mut text = format!("{}  {}\n", row.code, row.title);
    let _ = writeln!(text, "     {}\n", row.consequence);
    let meaning: Vec<_> = row.meaning.split_whitespace().collect();
    let _ = writeln!(text, "{}\n", wrapped(&meaning.join(" "), 0));
    let program = HostFiles::here().own_program();
    row.remedy.iter().for_each(|line| text.push_str(&format!("  {}\n", line.replace(OWN_PROGRAM, &program))));
    Some(text)
}

/// Takes any text, and tells shells what there is to complete: an unknown code has an error of its own.
#[derive(Clone)]
pub(super) struct CodeParser;

impl TypedValueParser for CodeParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(TABLE.iter().map(|row| PossibleValue::new(row.code).help(row.title))))
    }
}

/// What to say of a code that isn't one.
pub(super) fn unknown(code: &str) -> String {
    let known: Vec<_> = TABLE.iter().map(|row| row.code).collect();
    format!("no error or warning is called {}; there are {}", crate::names::quoted(code), known.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::codes::ErrorCode;

    /// Collects every code in the sources of a folder but the lists', as `"E01`, `E01 ` or `{E01}` in a text.
    fn raised(folder: &Path, codes: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                raised(&path, codes);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("codes.rs") {
                codes.extend(codes_in(&fs::read_to_string(&path).unwrap()));
            }
        }
    }

    fn codes_in(text: &str) -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let is_code = |word: &&str| {
            word.len() == 3 && word.starts_with(['E', 'W']) && word[1..].bytes().all(|byte| byte.is_ascii_digit())
        };
        words.filter(is_code).map(str::to_owned).collect()
    }

    #[test]
    fn whatever_is_raised_is_explained_and_nothing_else() {
        let mut found = BTreeSet::new();
        for folder in ["core/src", "src"] {
            raised(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut found);
        }
        let explained: BTreeSet<_> = TABLE.iter().map(|row| row.code.to_owned()).collect();
        let lacking: Vec<_> = found.difference(&explained).collect();
        assert!(lacking.is_empty(), "without an explanation: {lacking:?}");
        // E10 is drawn where there is no room for its name.
        let idle: Vec<_> = explained.difference(&found).filter(|code| *code != "E10").collect();
        assert!(idle.is_empty(), "explained and never raised: {idle:?}");
    }

    #[test]
    fn the_table_explains_each_code_of_an_error() {
        let explained = TABLE.iter().map(|row| row.code).filter(|code| code.starts_with('E'));
        assert!(explained.eq(ErrorCode::ALL.iter().map(|code| code.name())), "{:?}", ErrorCode::ALL);
    }

    #[test]
    fn a_code_is_found_in_a_text() {
        assert_eq!(codes_in("write!(f, \"perfprop: E01 x\"), W123, XE01, E0a, (\"W09\")"), ["E01", "W09"]);
    }

    #[test]
    fn the_table_is_in_order_and_each_text_fits_a_terminal() {
        let codes: Vec<_> = TABLE.iter().map(|row| row.code).collect();
        assert!(codes.is_sorted() && codes.windows(2).all(|pair| pair[0] != pair[1]));
        for row in TABLE {
            let text = explain(&row.code.to_lowercase()).unwrap();
            let text = text.replace(&HostFiles::here().own_program(), OWN_PROGRAM);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(110) && text.starts_with(row.code), "{text}");
        }
        assert_eq!(explain("").unwrap().lines().count(), TABLE.len());
        assert_eq!(explain("E99"), None);
    }
}
