//! Collects what a host and its kernel say about counting, in the order of the report.

use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{
    Capability, Denial, EventVerdict, FactStanding, Host, Kernel, MachineFact, ReportSection, measure, verdict,
};
use crate::events::{Event, TracefsError};
use crate::sources::perf::ProbeTarget;

/// Linux 4.13 is the first that reads a group of inherited events.
const FIRST_KERNEL: (u32, u32) = (4, 13);
/// The events whose descriptors must fit where each CPU is counted for itself.
const EVENTS_ON_EACH_CPU: u64 = 16;

impl Host {
    /// The first event that a text for `-e` stands for here.
    pub fn event(&self, text: &str) -> Option<Event> {
        self.resolver.first(text).ok()?
    }
}

/// Collects all facts about a host and its kernel.
pub fn facts(host: &Host, kernel: &dyn Kernel) -> Vec<MachineFact> {
    let software = software(host, kernel);
    let nothing = software.standing == FactStanding::Fail;
    let mut facts = vec![linux(host), processor(host), hypervisor(host), container(host)];
    facts.extend(proc(host));
    facts.extend([user(host), paranoid(host, nothing), seccomp(host, nothing), no_new_privs(host)]);
    facts.push(software);
    if !nothing {
        facts.extend([whole_machine(host, kernel), others(host, kernel)]);
        facts.extend(hardware(host, kernel));
        facts.extend([tracepoints(host, kernel), probes(host)]);
    }
    facts.extend([pmus(host), libpfm(host)]);
    facts.extend(hybrid(host));
    facts.extend([counters(host, kernel), watchdog(host), mux_interval(host)]);
    facts.extend([tracefs(host), kernel_symbols(host), locked_memory(host), descriptors(host)]);
    facts
}

fn linux(host: &Host) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Machine, "kernel", "groups of inherited events are read since Linux 4.13");
    let Some(release) = host.release() else { return fact };
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let found = format!("Linux {release}");
    if version >= FIRST_KERNEL { fact.ok(release, found) } else { fact.warn(release, found) }
}

fn processor(host: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Machine, "processor", "presets are codes of a family of CPUs");
    let Some(processor) = host.processor() else { return fact };
    let presets = match host.resolver.family_title() {
        Some(family) => format!("presets of {family}"),
        None => "presets by perf's generic events".to_owned(),
    };
    let cpus = host.cpus().map_or_else(String::new, |cpus| format!("{cpus} x "));
    fact.ok(processor.clone(), format!("{cpus}{processor}; {presets}"))
}

fn hypervisor(host: &Host) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Machine, "hypervisor", "a guest has the counters that its host gives it");
    match host.guest() {
        None => fact.ok(Value::Null, "none found"),
        Some(guest) => fact.ok(guest.clone(), guest),
    }
}

fn container(host: &Host) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Machine, "container", "containers filter system calls and drop capabilities");
    match host.container() {
        None => fact.ok(Value::Null, "none found"),
        Some(name) => fact.ok(name.clone(), format!("inside ({name})")),
    }
}

/// What is wrong with /proc: it isn't there, as in a bare root folder (chroot), or is another namespace's; nothing where
/// all is well.
fn proc(host: &Host) -> Option<MachineFact> {
    let why = "it tells what this user may do, and what processes and threads do";
    let found = match (host.has_proc(), host.has_proc_of_others()) {
        (false, _) => "not mounted at /proc",
        (true, true) => "that of another PID namespace: threads of a command are not shown",
        (true, false) => return None,
    };
    let fact = MachineFact::new(ReportSection::Machine, "proc", why);
    Some(fact.warn(false, found).fix("mount -t proc proc /proc"))
}

fn user(host: &Host) -> MachineFact {
    let why = "CAP_PERFMON (or CAP_SYS_ADMIN) counts everything, whatever perf_event_paranoid says";
    let fact = MachineFact::new(ReportSection::Permissions, "capabilities", why);
    if !host.has_proc() {
        return fact;
    }
    let process = host.process();
    let held = Capability::ALL.into_iter().filter(|&capability| process.can(capability));
    let names: Vec<_> = held.map(Capability::name).collect();
    let list = match (process.in_user_namespace, names.is_empty()) {
        (true, _) => "those of a user namespace, which don't reach the kernel".to_owned(),
        (false, true) => "none for counting".to_owned(),
        (false, false) => names.join(", "),
    };
    let found = format!("uid {}, {list}", process.uid);
    let free = host.setting("perf_event_paranoid").is_some_and(|level| level < 0);
    if process.may_count_everything() || free {
        return fact.ok(names, found);
    }
    let fact = fact.warn(names, found);
    match host.container() {
        Some(container) if process.uid == 0 => fact.fix(container_fix(&container)),
        _ if process.in_user_namespace || process.no_new_privs => fact,
        _ => fact.fix(host.setcap()),
    }
}

/// How a container is started that may count.
fn container_fix(container: &str) -> String {
    let program = if container.contains("podman") || container.contains("libpod") { "podman" } else { "docker" };
    format!("{program} run --cap-add PERFMON --security-opt seccomp=unconfined ...")
}

/// How a filter is made to let the system call pass.
fn filter_fix(host: &Host) -> String {
    match host.container() {
        Some(container) => container_fix(&container),
        None => "where the filter is set (systemd: SystemCallFilter=perf_event_open)".to_owned(),
    }
}

fn paranoid(host: &Host, nothing: bool) -> MachineFact {
    let why = "-1 allows all; 0 no raw tracepoints; 1 no whole CPUs; 2 no kernel; 3 and 4 (Debian, Ubuntu) nothing";
    let fact = MachineFact::new(ReportSection::Permissions, "perf_event_paranoid", why);
    if !host.has_proc() {
        return fact;
    }
    let Some(level) = host.setting("perf_event_paranoid") else {
        return fact.found(FactStanding::Fail, Value::Null, "not there: this kernel has no perf events");
    };
    let keeps_from = match level {
        ..=0 => "nothing that perfprop counts",
        1 => "whole CPUs (-a, -C, -G)",
        3.. if nothing => "everything",
        // Levels above 2 are Debian's and Ubuntu's; other kernels take them for 2.
        _ => "whole CPUs (-a, -C, -G) and the kernel's side",
    };
    if host.process().may_count_everything() {
        return fact.ok(level, format!("{level}, without effect for this user"));
    }
    let found = format!("{level}, keeps this user from {keeps_from}");
    let fix = "sudo sysctl kernel.perf_event_paranoid=0";
    match level {
        ..=0 => fact.ok(level, found),
        3.. if nothing => fact.found(FactStanding::Fail, level, found).fix(fix),
        _ => fact.warn(level, found).fix(fix),
    }
}

fn seccomp(host: &Host, nothing: bool) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Permissions, "seccomp", "a filter can refuse the system call perf_event_open");
    match (host.process().filtered, nothing) {
        _ if !host.has_proc() => fact,
        (false, _) => fact.ok(false, "no filter"),
        (true, false) => fact.ok(true, "a filter, which lets perf_event_open pass"),
        (true, true) => {
            let fact = fact.found(FactStanding::Fail, true, "a filter, and perf_event_open is refused");
            fact.fix(filter_fix(host))
        }
    }
}

fn no_new_privs(host: &Host) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Permissions, "no_new_privs", "where it is set, setcap and sudo give no rights");
    match host.process().no_new_privs {
        _ if !host.has_proc() => fact,
        false => fact.ok(false, "not set"),
        true if host.process().may_count_everything() => fact.ok(true, "set"),
        true => fact.warn(true, "set: setcap and sudo give no rights in here"),
    }
}

/// What became of an event, as a fact of the section of what can be counted.
fn tried(host: &Host, fact: MachineFact, verdict: EventVerdict, needed: FactStanding) -> MachineFact {
    let value = json!(verdict.counts());
    match verdict {
        EventVerdict::Counted => fact.ok(value, "yes"),
        EventVerdict::UserOnly => {
            let fact = fact.warn(value, "in user space only");
            fix_of(host, fact, Denial::Level { level: None, allows: 1 })
        }
        EventVerdict::Absent(error) => fact.found(needed, value, format!("no: not on this machine ({error:?})")),
        EventVerdict::Refused(error) => fact.found(needed, value, format!("no: {}", error.desc())),
        EventVerdict::Denied(denial) => {
            let fact = fact.found(needed, value, format!("no: {}", denial_words(denial)));
            fix_of(host, fact, denial)
        }
    }
}

/// Words for who refuses.
fn denial_words(denial: Denial) -> String {
    match denial {
        Denial::Level { level: Some(level), .. } => format!("perf_event_paranoid={level} forbids it (EACCES)"),
        Denial::Level { level: None, .. } => "perf_event_paranoid forbids it (EACCES)".to_owned(),
        Denial::Capability => "only CAP_PERFMON allows it (EACCES)".to_owned(),
        Denial::Nobody(error) => format!("the kernel refuses it to every user ({error:?})"),
        Denial::Seccomp(error) => format!("a seccomp filter refuses perf_event_open ({error:?})"),
        Denial::NoSystemCall => "this kernel has no perf events (ENOSYS)".to_owned(),
        Denial::Everything(error) => format!("perf_event_open is refused altogether ({error:?})"),
        Denial::Target => "other users' processes are not yours to measure (EACCES)".to_owned(),
    }
}

fn fix_of(host: &Host, fact: MachineFact, denial: Denial) -> MachineFact {
    match denial {
        Denial::Level { allows, .. } => fact.fix(format!("sudo sysctl kernel.perf_event_paranoid={allows}")),
        Denial::Seccomp(_) => fact.fix(filter_fix(host)),
        Denial::Target | Denial::Capability => fact.fix(host.setcap()),
        Denial::NoSystemCall | Denial::Everything(_) | Denial::Nobody(_) => fact,
    }
}

fn software(host: &Host, kernel: &dyn Kernel) -> MachineFact {
    let fact = MachineFact::new(
        ReportSection::Counting,
        "software",
        "the kernel counts these without a counter: task-clock, faults",
    );
    // Clocks are whole also where the kernel may not be watched.
    match host.event("page-faults") {
        Some(event) => tried(host, fact, verdict(host, kernel, &event, ProbeTarget::Mine), FactStanding::Fail),
        None => fact,
    }
}

fn whole_machine(host: &Host, kernel: &dyn Kernel) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Counting, "whole machine", "-a, -C and -G count whatever runs on CPUs");
    match host.event("cpu-clock") {
        Some(event) => {
            tried(host, fact, verdict(host, kernel, &event, ProbeTarget::Cpu(host.some_cpu())), FactStanding::Warn)
        }
        None => fact,
    }
}

fn others(host: &Host, kernel: &dyn Kernel) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Counting, "others' processes", "-p of another user's process; tried on pid 1");
    match host.event("task-clock:u") {
        Some(event) => {
            tried(host, fact, verdict(host, kernel, &event, ProbeTarget::Task(Pid::from_raw(1))), FactStanding::Warn)
        }
        None => fact,
    }
}

/// Hardware events by kind; where there is no PMU at all, that once.
fn hardware(host: &Host, kernel: &dyn Kernel) -> Vec<MachineFact> {
    let fact = |name, why| MachineFact::new(ReportSection::Counting, name, why);
    let ask = |event: &str| host.event(event).map(|event| verdict(host, kernel, &event, ProbeTarget::Mine));
    let cycles = fact("cycles", "the most usual hardware event");
    if host.cores().next().is_none()
        && let Some(EventVerdict::Absent(error)) = ask("cycles")
    {
        let place = host.guest().map_or("no PMU of the cores", |_| "this guest is given no PMU");
        let found = format!("no: {place} ({error:?}); root does not help");
        let fact = cycles.warn(false, found);
        return vec![match host.guest() {
            Some(_) => fact.fix("on the host: give the guest a PMU (qemu: -cpu host,pmu=on)"),
            None => fact,
        }];
    }
    let kinds = [
        (cycles, "cycles"),
        (fact("instructions", "what most ratios are made of"), "instructions"),
        (fact("cache events", "perf's generic cache events; not every CPU has each"), "L1-dcache-load-misses"),
        (fact("raw codes", "presets, libpfm and vendor tables need them"), "r11"),
    ];
    let tried = |(fact, event)| match ask(event) {
        Some(verdict) => tried(host, fact, verdict, FactStanding::Warn),
        None => fact,
    };
    kinds.into_iter().map(tried).collect()
}

fn tracepoints(host: &Host, kernel: &dyn Kernel) -> MachineFact {
    let fact =
        MachineFact::new(ReportSection::Counting, "tracepoints", "events in the kernel, such as sched:sched_switch");
    if host.resolver.machine().tracepoints().is_err() {
        return fact.warn(false, "no: tracefs can't be read (see tracefs below)");
    }
    match host.event("sched:sched_switch") {
        Some(event) => tried(host, fact, verdict(host, kernel, &event, ProbeTarget::Mine), FactStanding::Warn),
        None => fact.warn(false, "no: the ids of events in tracefs can't be read (see tracefs below)"),
    }
}

fn probes(host: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Counting, "probes", "uprobe: and kprobe: count calls of functions");
    let has = |name: &&&str| host.resolver.pmus().iter().any(|pmu| pmu.name == ***name);
    let names: Vec<&str> = ["uprobe", "kprobe"].iter().filter(has).copied().collect();
    match names.as_slice() {
        [] => fact.warn(json!([]), "no: this kernel has neither uprobes nor kprobes as events"),
        [only] => fact.ok(json!(names), format!("this kernel has {only}s only")),
        _ => fact.ok(json!(names), "this kernel has uprobes and kprobes"),
    }
}

fn pmus(host: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Hardware, "PMUs", "what sysfs lists in /sys/bus/event_source/devices");
    let names: Vec<_> = host.resolver.pmus().iter().map(|pmu| pmu.name.clone()).collect();
    let cores: Vec<_> = host.cores().map(|pmu| pmu.name.clone()).collect();
    let list = if names.is_empty() { "none".to_owned() } else { names.join(" ") };
    if cores.is_empty() {
        return fact.ok(names, format!("{list}; the CPU's cores have none"));
    }
    fact.ok(names, format!("{list}; of the cores: {}", cores.join(" ")))
}

#[cfg(feature = "pfm")]
fn libpfm(host: &Host) -> MachineFact {
    use crate::events::pfm;
    let fact = MachineFact::new(
        ReportSection::Hardware,
        "libpfm",
        "it chooses its tables by the CPU's id; the kernel may still refuse",
    );
    if !host.resolver.machine().has_libpfm() {
        return fact.found(FactStanding::Unknown, Value::Null, "not asked");
    }
    let pmus = pfm::pmus();
    let names: Vec<_> = pmus.iter().map(|pmu| pmu.name.clone()).collect();
    let table = |pmu: &pfm::PfmPmu| match pmu.is_core {
        true => format!("{} (core)", pmu.name),
        false => pmu.name.clone(),
    };
    match pmus.iter().any(|pmu| pmu.is_core) {
        true => fact.ok(names, pmus.iter().map(table).collect::<Vec<_>>().join(", ")),
        false => fact.warn(names, "no table for this CPU's cores: its names don't resolve here"),
    }
}

#[cfg(not(feature = "pfm"))]
fn libpfm(_: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Hardware, "libpfm", "its names are another way to write events");
    fact.found(FactStanding::Unknown, Value::Null, "not built in")
}

fn hybrid(host: &Host) -> Option<MachineFact> {
    let why = "an event counts on one kind of core only, so it is opened for each and its counts are partial";
    let cores: Vec<_> = host.cores().collect();
    let cpus = |pmu: &crate::events::Pmu| format!("{} on CPUs {}", pmu.name, pmu.says("cpus").unwrap_or_default());
    let list: Vec<_> = cores.iter().map(|pmu| cpus(pmu)).collect();
    let names: Vec<_> = cores.iter().map(|pmu| pmu.name.clone()).collect();
    (cores.len() > 1).then(|| MachineFact::new(ReportSection::Hardware, "hybrid", why).ok(names, list.join(", ")))
}

fn counters(host: &Host, kernel: &dyn Kernel) -> MachineFact {
    let fact = |why| MachineFact::new(ReportSection::Hardware, "counters", why);
    if host.cores().next().is_none() {
        return fact("hardware events can't be counted; --source emulate models caches and branches").warn(0, "none");
    }
    let measured: Vec<_> = host.cores().map(|pmu| (pmu, measure(host, kernel, pmu))).collect();
    let value = |(pmu, counters): &(&crate::events::Pmu, Option<super::Counters>)| {
        (pmu.name.clone(), counters.as_ref().map_or(Value::Null, |counters| json!(counters.total())))
    };
    let value: serde_json::Map<_, _> = measured.iter().map(value).collect();
    let words = |(pmu, counters): &(&crate::events::Pmu, Option<super::Counters>)| match counters {
        Some(counters) => {
            let each: Vec<_> = counters.each.iter().map(|(name, count)| format!("{count} x {name}")).collect();
            format!("{} counts {} events at once ({})", pmu.name, counters.total(), each.join(", "))
        }
        None => format!("{} counts none for this user", pmu.name),
    };
    let found: Vec<_> = measured.iter().map(words).collect();
    let all = measured.iter().all(|(_, counters)| counters.is_some());
    let fact = fact("more events than this take turns and are scaled");
    fact.found(if all { FactStanding::Ok } else { FactStanding::Warn }, value, found.join(", "))
}

fn watchdog(host: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Hardware, "nmi_watchdog", "without it each CPU has one counter more");
    match (host.setting("nmi_watchdog"), host.cores().next()) {
        (None, _) => fact.ok(Value::Null, "this kernel has none"),
        (Some(0), _) => fact.ok(0, "off"),
        (Some(on), None) => fact.ok(on, "on; there is no counter for it to hold"),
        (Some(on), Some(_)) => {
            fact.warn(on, "on: holds one counter of each CPU").fix("sudo sysctl kernel.nmi_watchdog=0")
        }
    }
}

fn mux_interval(host: &Host) -> MachineFact {
    let why = "how long a group is counted before the next has its turn";
    let fact = MachineFact::new(ReportSection::Hardware, "mux interval", why);
    let interval = |pmu: &crate::events::Pmu| {
        let ms: u64 = pmu.says("perf_event_mux_interval_ms")?.parse().ok()?;
        Some((pmu.name.clone(), json!(ms)))
    };
    let each: serde_json::Map<_, _> = host.cores().filter_map(interval).collect();
    if each.is_empty() {
        return match host.cores().next() {
            None => fact.ok(Value::Null, "no multiplexing"),
            Some(_) => fact,
        };
    }
    let found: Vec<_> = each.iter().map(|(pmu, ms)| format!("{ms} ms ({pmu})")).collect();
    fact.ok(each, found.join(", "))
}

fn tracefs(host: &Host) -> MachineFact {
    let fact = MachineFact::new(ReportSection::Limits, "tracefs", "tracepoints are looked up there");
    match host.resolver.machine().tracepoints() {
        Ok(folder) => match host.event("sched:sched_switch") {
            Some(_) => fact.ok(true, host.inside(&folder)),
            None => fact.warn(false, "mounted, but this user may not read the ids of its events").fix(REMOUNT),
        },
        Err(TracefsError::NotMounted(folder)) => fact
            .warn(false, format!("not mounted at {}", host.inside(&folder)))
            .fix("sudo mount -t tracefs tracefs /sys/kernel/tracing"),
        Err(TracefsError::Forbidden(folder)) => {
            fact.warn(false, format!("{} may not be read by this user", host.inside(&folder))).fix(REMOUNT)
        }
    }
}

/// The folder is open to root alone, its files to root and a group.
const REMOUNT: &str = "sudo mount -o remount,mode=755,gid=$(id -g) /sys/kernel/tracing";

fn kernel_symbols(host: &Host) -> MachineFact {
    let fact = MachineFact::new(
        ReportSection::Limits,
        "kernel symbols",
        "names of the kernel's functions need their addresses",
    );
    let restrict = host.setting("kptr_restrict");
    let level = restrict.map_or_else(String::new, |level| format!("kptr_restrict {level}"));
    match host.sees_kernel_addresses() {
        Some(true) => fact.ok(true, format!("readable ({level})")),
        Some(false) => fact.warn(false, format!("hidden from this user ({level})")).fix(match restrict {
            Some(0) => "sudo sysctl kernel.perf_event_paranoid=1",
            _ => "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1",
        }),
        None => fact,
    }
}

fn locked_memory(host: &Host) -> MachineFact {
    /// What the kernel gives by default: 512 KiB and a page of each CPU.
    const USUAL: i64 = 516;
    let fact = MachineFact::new(
        ReportSection::Limits,
        "locked memory",
        "the kernel locks the buffers that samples are read from",
    );
    let Some(kb) = host.setting("perf_event_mlock_kb") else { return fact };
    let limit = host.limit("Max locked memory").map_or_else(String::new, |limit| match limit.soft {
        None => ", and without limit beyond".to_owned(),
        Some(bytes) => format!(", and {} KiB beyond", bytes / 1024),
    });
    let free = host.process().can(Capability::IpcLock);
    let found = match free {
        true => format!("{kb} KiB a CPU, without limit by CAP_IPC_LOCK"),
        false => format!("{kb} KiB a CPU{limit}"),
    };
    if free || kb >= USUAL {
        return fact.ok(kb, found);
    }
    fact.warn(kb, found).fix(format!("sudo sysctl kernel.perf_event_mlock_kb={USUAL}"))
}

fn descriptors(host: &Host) -> MachineFact {
    let why = "each event takes a descriptor in each place that it is counted in";
    let fact = MachineFact::new(ReportSection::Limits, "descriptors", why);
    let Some(limit) = host.limit("Max open files") else { return fact };
    let cpus = host.cpus().unwrap_or(1) as u64;
    let needed = EVENTS_ON_EACH_CPU * cpus + 64;
    match limit.hard {
        None => fact.ok(Value::Null, "without limit"),
        Some(hard) if hard >= needed => fact.ok(hard, format!("{hard} (perfprop raises the soft limit by itself)")),
        Some(hard) => fact
            .warn(hard, format!("{hard}: too few for {EVENTS_ON_EACH_CPU} events on each of {cpus} CPUs"))
            .fix(format!("sudo prlimit --pid $$ --nofile={needed}")),
    }
}
