//! Tests the reports of machines that are made of files and answers (`tests/check/`).

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;

use super::events::{CheckedPlan, Events};
use super::report::{Paint, Report};
use crate::events::{Event, Modifiers};
use crate::goldens::assert_golden;
use crate::machine::{FactStanding, Host, Kernel, facts};
use crate::plan::{Fit, Plan, Rotation};
use crate::sources::perf::ProbeTarget;

/// A kernel that answers by the rules of the real one.
struct Fake {
    /// `perf_event_paranoid`; 3 is Debian's.
    paranoid: i64,
    /// Whether the process has `CAP_PERFMON`.
    privileged: bool,
    /// The errno of a seccomp filter.
    filter: Option<Errno>,
    /// How many events the hardware counts at once; 0 is no PMU.
    counters: usize,
    /// How many of them take cycles only.
    cycles_only: usize,
}

const ROOT: Fake = Fake { paranoid: 2, privileged: true, filter: None, counters: 0, cycles_only: 0 };

impl Kernel for Fake {
    fn open(&self, event: &Event, whose: ProbeTarget) -> Result<(), Errno> {
        let level = if self.privileged { -1 } else { self.paranoid };
        let needs = match whose {
            _ if !event.modifiers.exclude_kernel => 1,
            ProbeTarget::Cpu(_) => 0,
            _ => 2,
        };
        match self.filter {
            Some(errno) => Err(errno),
            None if level > needs || !self.privileged && matches!(whose, ProbeTarget::Task(_)) => Err(Errno::EACCES),
            None if !event.kind.is_software() && self.counters == 0 => Err(Errno::ENOENT),
            None if event.name.starts_with("amd_l3") && whose == ProbeTarget::Mine => Err(Errno::EINVAL),
            None => Ok(()),
        }
    }

    fn fit(&self, events: &[&Event]) -> Fit {
        if events.iter().any(|event| self.open(&user_side(event), ProbeTarget::Mine).is_err()) {
            return Fit::Unknown;
        }
        let others = events.iter().filter(|event| !event.name.contains("cycles")).count();
        let fits = events.len() <= self.counters && others <= self.counters - self.cycles_only;
        if fits { Fit::Fits } else { Fit::TooMany }
    }

    fn switch_cost(&self, _: &Plan, _: &[Rotation]) -> Option<Duration> {
        Some(Duration::from_micros(9))
    }
}

fn user_side(event: &Event) -> Event {
    let modifiers = Modifiers { exclude_kernel: true, ..event.modifiers.clone() };
    Event { modifiers, ..event.clone() }
}

const USER: &str = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n";
const SUPERUSER: &str = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nNoNewPrivs:\t0\nSeccomp:\t0\n";
const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
    Max open files            1024                 524288               files     \n\
    Max locked memory         8388608              8388608              bytes     \n";

/// A folder with the files that all machines have, and those given; a file that is given as empty is
/// not there.
fn machine(name: &str, own: &[(&str, &str)]) -> (PathBuf, Host) {
    let root = std::env::temp_dir().join(format!("perfprop-check-{}-{name}", std::process::id()));
    let all = [
        ("proc/sys/kernel/osrelease", "6.12.9-amd64\n"),
        ("proc/sys/kernel/perf_event_paranoid", "2\n"),
        ("proc/sys/kernel/perf_event_mlock_kb", "516\n"),
        ("proc/sys/kernel/kptr_restrict", "0\n"),
        ("proc/kallsyms", "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _text\n"),
        ("proc/self/status", SUPERUSER),
        ("proc/self/limits", LIMITS),
        ("proc/self/uid_map", "         0          0 4294967295\n"),
        ("proc/1/cgroup", "0::/init.scope\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/bus/event_source/devices/software/type", "1\n"),
        ("sys/bus/event_source/devices/uprobe/type", "7\n"),
        ("sys/bus/event_source/devices/kprobe/type", "6\n"),
        ("sys/kernel/tracing/events/sched/sched_switch/id", "314\n"),
    ];
    for (path, text) in all.iter().filter(|(path, _)| !own.iter().any(|(own, _)| own == path)).chain(own) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if !text.is_empty() {
            fs::write(path, text).unwrap();
        }
    }
    let host = Host::under(&root);
    (root, host)
}

fn report(name: &str, own: &[(&str, &str)], kernel: &Fake, events: &str) -> Report {
    planned(name, own, kernel, events, CheckedPlan { relations: &[], counters: None })
}

fn planned(name: &str, own: &[(&str, &str)], kernel: &Fake, events: &str, plan: CheckedPlan<'_>) -> Report {
    let (root, host) = machine(name, own);
    let events = (!events.is_empty()).then(|| Events::try_out(events, &host, kernel, plan));
    let report = Report { facts: facts(&host, kernel), events, files: Vec::new() };
    fs::remove_dir_all(root).unwrap();
    report
}

fn golden(name: &str, report: &Report, is_well: bool) {
    let text = report.text(Paint::Plain);
    let too_wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(too_wide, None, "{name}");
    assert_eq!(report.is_well(), is_well, "{name}");
    assert_golden!("check", name, text);
}

const EPYC: &str = "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 17\n\
    model name : AMD EPYC 9654\nstepping : 1\nflags : fpu vme\n";
const CORE: &str = "sys/bus/event_source/devices/cpu/type";
const CORE_MUX: &str = "sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms";

#[test]
fn a_guest_without_counters_counts_software_events() {
    let own = [
        ("proc/cpuinfo", "processor : 0\nmodel name : QEMU Virtual CPU\nflags : fpu hypervisor\n"),
        ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
        ("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc\n"),
    ];
    golden("guest", &report("guest", &own, &ROOT, ""), true);
    golden("guest-events", &report("guest-events", &own, &ROOT, "cycles,page-faults"), false);
}

#[test]
fn a_watchdog_holds_a_counter_and_groups_take_turns() {
    let own = [("proc/cpuinfo", EPYC), (CORE, "4\n"), (CORE_MUX, "4\n"), ("proc/sys/kernel/nmi_watchdog", "1\n")];
    let kernel = Fake { counters: 5, ..ROOT };
    let events = "task-clock,cycles,instructions,branches,branch-misses,cache-misses,L1_MISSES,r11:u";
    golden("watchdog", &report("watchdog", &own, &kernel, events), true);
}

/// A CPU with four counters for anything, and others for cycles, instructions and slots, as Intel's have.
struct IceLake;

impl Kernel for IceLake {
    fn open(&self, _: &Event, _: ProbeTarget) -> Result<(), Errno> {
        Ok(())
    }

    fn fit(&self, events: &[&Event]) -> Fit {
        let has_its_own = |event: &&&Event| {
            ["cycles", "instructions", "slots"].contains(&event.name.as_str()) || event.name.starts_with("topdown-")
        };
        if events.iter().filter(|event| !has_its_own(event)).count() <= 4 { Fit::Fits } else { Fit::TooMany }
    }

    fn switch_cost(&self, _: &Plan, _: &[Rotation]) -> Option<Duration> {
        None
    }
}

#[test]
fn what_has_counters_of_its_own_is_counted_beside() {
    let own = [
        (CORE, "4\n"),
        (CORE_MUX, "4\n"),
        ("sys/bus/event_source/devices/cpu/events/slots", "event=0x00,umask=0x4\n"),
        ("sys/bus/event_source/devices/cpu/events/topdown-retiring", "event=0x00,umask=0x80\n"),
        ("sys/bus/event_source/devices/cpu/events/topdown-bad-spec", "event=0x00,umask=0x81\n"),
        ("sys/bus/event_source/devices/cpu/events/topdown-fe-bound", "event=0x00,umask=0x82\n"),
        ("sys/bus/event_source/devices/cpu/events/topdown-be-bound", "event=0x00,umask=0x83\n"),
        ("sys/bus/event_source/devices/cpu/format/event", "config:0-7\n"),
        ("sys/bus/event_source/devices/cpu/format/umask", "config:8-15\n"),
    ];
    let (root, host) = machine("ice-lake", &own);
    let events = |text: &str| {
        let plan = CheckedPlan { relations: &[], counters: None };
        let events = Some(Events::try_out(text, &host, &IceLake, plan));
        Report { facts: facts(&host, &IceLake), events, files: Vec::new() }.text(Paint::Plain)
    };
    let added = |text: &str| {
        let in_parentheses = |word: &&str| word.starts_with('(') && word.ends_with(')');
        let groups = text.split("\nGroups\n").nth(1).unwrap().split("Groups take turns").next().unwrap();
        groups.split_whitespace().filter(in_parentheses).map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    let six = events("branches,branch-misses,cache-misses,cache-references,dTLB-load-misses,r11");
    let top_down = "(slots) (topdown-retiring) (topdown-bad-spec) (topdown-fe-bound) (topdown-be-bound)";
    assert_eq!(added(&six), format!("{top_down} (cycles) (instructions)"), "{six}");
    assert!(six.contains("A slice takes 4 ms, a round of all 8 ms"), "{six}");
    assert!(six.contains("Events in parentheses aren't listed"), "{six}");
    // What all fits needs nothing beside it.
    assert_eq!(added(&events("branches,branch-misses")), "");
    std::fs::remove_dir_all(root).unwrap();
}

#[test]
fn what_relations_win_is_told() {
    let own = [("proc/cpuinfo", EPYC), (CORE, "4\n"), (CORE_MUX, "4\n")];
    let file = br#"[{ "relation": "branches = branch-misses + cache-misses" }, { "relation": "branches = 2 * r12" }]"#;
    let relations = crate::relations::parse("sums.json", file).strict().unwrap();
    let text = |counters| {
        let plan = CheckedPlan { relations: &relations, counters };
        let kernel = Fake { counters: 2, ..ROOT };
        let events = "branches,branch-misses,cache-misses,instructions";
        planned("sums", &own, &kernel, events, plan).text(Paint::Plain).replace("\n  ", " ")
    };
    let wins = "branches = branch-misses + cache-misses: two counters give three events; pairs counted together:";
    let (of_machine, emulated) = (text(None), text(Some(2)));
    assert!(of_machine.contains(&format!("{wins} 1 of 3")), "{of_machine}");
    assert!(emulated.contains(&format!("{wins} 3 of 3")), "{emulated}");
    // What fits at once needs no relation, nor does one whose events aren't all there.
    assert!(!text(Some(4)).contains("give three events") && !emulated.contains("r12"));
}

#[test]
fn each_kind_of_core_is_told() {
    let own = [
        ("proc/cpuinfo", "processor : 0\nmodel name : 13th Gen Intel(R) Core(TM) i7-1360P\nflags : fpu\n"),
        ("sys/devices/system/cpu/online", "0-15\n"),
        ("sys/bus/event_source/devices/cpu_core/type", "4\n"),
        ("sys/bus/event_source/devices/cpu_core/cpus", "0-7\n"),
        ("sys/bus/event_source/devices/cpu_core/perf_event_mux_interval_ms", "4\n"),
        ("sys/bus/event_source/devices/cpu_atom/type", "10\n"),
        ("sys/bus/event_source/devices/cpu_atom/cpus", "8-15\n"),
        ("sys/bus/event_source/devices/cpu_atom/perf_event_mux_interval_ms", "4\n"),
    ];
    let kernel = Fake { counters: 9, cycles_only: 1, ..ROOT };
    golden("hybrid", &report("hybrid", &own, &kernel, "cycles,instructions"), true);
}

#[test]
fn a_plain_user_at_level_3_counts_nothing() {
    let own = [
        ("proc/cpuinfo", EPYC),
        (CORE, "4\n"),
        ("proc/self/status", USER),
        ("proc/sys/kernel/perf_event_paranoid", "3\n"),
        ("proc/kallsyms", "0000000000000000 T _text\n"),
        ("sys/kernel/tracing/events/sched/sched_switch/id", ""),
    ];
    let kernel = Fake { paranoid: 3, privileged: false, counters: 6, ..ROOT };
    golden("level-3", &report("level-3", &own, &kernel, "cycles:u,page-faults"), false);
}

#[test]
fn a_plain_user_at_level_2_counts_in_user_space() {
    let own = [("proc/cpuinfo", EPYC), (CORE, "4\n"), ("proc/self/status", USER)];
    let kernel = Fake { privileged: false, counters: 6, ..ROOT };
    golden("level-2", &report("level-2", &own, &kernel, "cycles,context-switches"), false);
}

#[test]
fn without_proc_nothing_is_said_that_stands_there() {
    let own = [("proc/self/status", ""), ("proc/sys/kernel/perf_event_paranoid", "")];
    let facts = report("no-proc", &own, &ROOT, "").facts;
    let of = |name: &str| facts.iter().find(|fact| fact.name == name).map(|fact| fact.standing);
    assert_eq!(of("proc"), Some(FactStanding::Warn));
    let unknown = ["capabilities", "perf_event_paranoid", "seccomp", "no_new_privs"].map(of);
    assert_eq!(unknown, [Some(FactStanding::Unknown); 4]);
}

#[test]
fn a_proc_of_another_namespace_is_told() {
    let (root, host) = machine("others-proc", &[("proc/self/status", ""), ("proc/7/status", SUPERUSER)]);
    let told = |of: &str| {
        let _ = (fs::remove_dir(root.join("proc/self")), fs::remove_file(root.join("proc/self")));
        std::os::unix::fs::symlink(of, root.join("proc/self")).unwrap();
        facts(&host, &ROOT).iter().find(|fact| fact.name == "proc").map(|fact| fact.found.clone())
    };
    fs::remove_dir_all(root.join("proc/self")).unwrap();
    assert!(told("7").is_some_and(|found| found.contains("another PID namespace")));
    let own = std::process::id().to_string();
    fs::create_dir_all(root.join("proc").join(&own)).unwrap();
    fs::write(root.join("proc").join(&own).join("status"), SUPERUSER).unwrap();
    assert_eq!(told(&own), None);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_filter_is_told_from_a_level() {
    let status = "Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\nNoNewPrivs:\t0\nSeccomp:\t2\n";
    let own = [("proc/cpuinfo", EPYC), (CORE, "4\n"), ("proc/self/status", status), (".dockerenv", "\n")];
    let kernel = Fake { privileged: false, filter: Some(Errno::EPERM), ..ROOT };
    golden("seccomp", &report("seccomp", &own, &kernel, "cycles"), false);
}

#[test]
fn a_pmu_outside_of_the_cores_is_asked_about_its_cpu() {
    let own = [
        ("proc/cpuinfo", EPYC),
        ("sys/bus/event_source/devices/amd_l3/type", "12\n"),
        ("sys/bus/event_source/devices/amd_l3/cpumask", "2\n"),
        ("sys/bus/event_source/devices/amd_l3/format/event", "config:0-7\n"),
    ];
    let report = report("uncore", &own, &Fake { counters: 6, ..ROOT }, "amd_l3/event=4/");
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!((&json["events"][0]["whole-cpus"], &json["events"][0]["counts"]), (&true.into(), &true.into()));
    assert_eq!(
        (&json["groups"][0]["pmu"], &json["groups"][0]["run-ratio"]),
        (&"amd_l3".into(), &serde_json::Value::Null)
    );
}

#[test]
fn json_has_the_same_facts() {
    let report = report("json", &[("proc/cpuinfo", EPYC), (CORE, "4\n")], &Fake { counters: 6, ..ROOT }, "cycles,r11");
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(json["ok"], true);
    let counters = json["facts"].as_array().unwrap().iter().find(|fact| fact["name"] == "counters").unwrap();
    assert_eq!((&counters["value"]["cpu"], &counters["standing"]), (&6.into(), &"ok".into()));
    assert_eq!(json["events"][1]["status"], "counted");
    assert_eq!((&json["groups"][0]["counters"], &json["groups"][0]["run-ratio"]), (&2.into(), &1.0.into()));
}

#[test]
fn colour_adds_escapes_and_nothing_else() {
    let report = report("colour", &[], &ROOT, "");
    let coloured = report.text(Paint::Colour);
    let mut plain = String::new();
    for part in coloured.split('\x1b') {
        plain.push_str(if plain.is_empty() { part } else { part.split_once('m').unwrap().1 });
    }
    assert!(coloured.contains("\x1b[32mok"));
    // The first part is empty: the report begins with a heading.
    assert_eq!(plain.trim_start_matches("[1m"), report.text(Paint::Plain));
}
