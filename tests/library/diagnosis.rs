//! Tests what stands out in programs with known faults, and that nothing does in others.

use std::sync::Arc;

use perfprop::diagnosis::{
    Diagnosis, DiagnosisRule, HotFunction, LockWaits, LookBack, SampledFacts, SampledSpace, diagnose,
};
use perfprop::estimate::EstimatorKind;
use perfprop::events::Event;
use perfprop::host::QuotaPeriods;
use perfprop::monitor::Monitor;
use perfprop::run::{End, MeasuredTarget};
use perfprop::sources::{Reading, Round};
use perfprop::text::{self, EvidenceScreens, PrintedNews};
use perfprop::threads::{EndedProcesses, ThreadLooks, ThreadReading, ThreadSnapshot};
use perfprop::units::{CpuNs, CpuTime, WallNs};

use crate::builders::{self, SECOND, event, measured, software_event};

/// A thread as it is each second.
#[derive(Clone)]
struct Made {
    tid: i32,
    name: &'static str,
    /// The parts of a CPU that it has, that it waits for, and that its ended children have.
    parts: [f64; 3],
    /// What 100 looks a second see.
    looks: Vec<(char, &'static str, u32)>,
    /// Bytes after so many seconds.
    memory: fn(u64) -> u64,
    is_of_kernel: bool,
    /// How often a second it is given a CPU, where that is known.
    switches: Option<u64>,
}

fn thread(tid: i32, name: &'static str, cpu: f64, looks: &[(char, &'static str, u32)]) -> Made {
    let (parts, looks) = ([cpu, 0.0, 0.0], looks.to_vec());
    Made { tid, name, parts, looks, memory: |_| 1 << 20, is_of_kernel: false, switches: None }
}

impl Made {
    fn reading(&self, second: u64) -> ThreadReading {
        let time = |part: f64| CpuNs((part * second as f64 * 1e9) as u64);
        let [cpu_ns, delay, children_ns] = self.parts.map(time);
        let looks = |&(state, within, times): &(char, &str, u32)| ThreadLooks {
            state,
            within: within.into(),
            times: times * second as u32,
        };
        ThreadReading {
            pid: 7,
            tid: self.tid,
            name: self.name.into(),
            began: 1,
            cpu_ns,
            delay_ns: Some(delay),
            children_ns,
            resident: if self.tid == 7 { (self.memory)(second) } else { 0 },
            looks: self.looks.iter().map(looks).collect(),
            is_of_kernel: self.is_of_kernel,
            switches: self.switches.map(|switches| switches * second),
            ..ThreadReading::default()
        }
    }
}

/// A program of so many seconds on two CPUs.
struct Scenario {
    seconds: u64,
    threads: Vec<Made>,
    /// Processes that the machine starts a second.
    started: u64,
    /// Events with what they count a second, and the part of the time that they are counted.
    events: Vec<(Event, u64, f64)>,
    /// From which second on all that is how many times as often.
    change: (u64, u64),
    arch: &'static str,
    target: Option<MeasuredTarget>,
    /// CPUs of the whole machine that are busy, where that is known.
    machine_cpus: Option<f64>,
    /// Periods of a CPU quota a second, and how many of them use it up.
    quota: Option<(u64, u64)>,
}

impl Scenario {
    fn of(threads: Vec<Made>) -> Self {
        let events = vec![(software_event("page-faults"), 100, 1.0)];
        let (change, arch, target) = ((u64::MAX, 1), "x86_64", None);
        Self { seconds: 12, threads, started: 5, events, change, arch, target, machine_cpus: None, quota: None }
    }

    /// One busy thread, and events in 1,000 million instructions a second.
    fn counting(events: &[(&str, u64)]) -> Self {
        let all = [("instructions", 1_000_000_000)].iter().chain(events).map(|&(name, rate)| (event(name), rate, 1.0));
        Self { events: all.collect(), ..Self::of(vec![busy()]) }
    }

    fn monitor(&self) -> Monitor {
        let mut header = builders::header(self.events.iter().map(|(event, ..)| measured(event.clone())));
        header.machine.cpus = 2;
        header.machine.arch = self.arch.into();
        header.target = self.target.clone().unwrap_or(header.target);
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for second in 0..=self.seconds {
            let threads = self.threads.iter().map(|thread| thread.reading(second)).collect();
            let snapshot = ThreadSnapshot {
                at_ns: WallNs(second * SECOND),
                started: Some(1000 + self.started * second),
                machine_busy_ns: self.machine_cpus.map(|cpus| CpuNs((cpus * (second * SECOND) as f64) as u64)),
                quota: self.quota.map(|(periods, throttled)| QuotaPeriods {
                    periods: 50 + periods * second,
                    throttled: throttled * second,
                }),
                threads,
                ..ThreadSnapshot::default()
            };
            // Counters are enabled while the program runs, on one CPU at a time here.
            let cpus: f64 = self.threads.iter().map(|thread| thread.parts[0] + thread.parts[2]).sum();
            let cpus = if self.threads.is_empty() { 1.0 } else { cpus.min(1.0) };
            let reading = |&(_, rate, ran): &(Event, u64, f64)| {
                let enabled = CpuNs((cpus * (second * SECOND) as f64) as u64);
                let part = |whole: u64| (whole as f64 * ran) as u64;
                let (from, times) = self.change;
                let all = rate * (second + second.saturating_sub(from) * (times - 1));
                Some(Reading { count: part(all), enabled, running: CpuNs(part(enabled.0)) })
            };
            let readings = self.events.iter().map(reading).collect();
            let at = WallNs(second * SECOND);
            monitor.round(&Round { at, readings, threads: Some(Arc::new(snapshot)), ..Round::default() }, 0);
        }
        monitor
    }

    fn found(&self) -> Vec<Diagnosis> {
        diagnose(&self.monitor(), LookBack::Last(WallNs(10 * SECOND)), SampledFacts::default())
    }

    /// The faults that are told; each rule's sentence is in its place.
    fn faults(&self) -> Vec<&'static str> {
        self.found().iter().filter(|one| one.rule.is_fault()).map(|one| one.rule.name()).collect()
    }

    fn text(&self, rule: DiagnosisRule) -> String {
        self.found().into_iter().find(|one| one.rule == rule).unwrap().text
    }
}

fn busy() -> Made {
    thread(7, "prog", 0.99, &[('R', "", 99), ('S', "do_wait", 1)])
}

#[test]
fn nothing_stands_out_in_programs_that_work() {
    let waits = thread(7, "make", 0.01, &[('S', "do_wait", 100)]);
    let child = |tid| thread(tid, "cc1", 0.9, &[('R', "", 95), ('D', "folio_wait_bit", 5)]);
    let idle = |tid| thread(tid, "worker", 0.0, &[('S', "futex_wait_queue", 100)]);
    let working = |tid| thread(tid, "worker", 0.95, &[('R', "", 96), ('S', "futex_wait_queue", 4)]);
    let builds = Scenario { started: 60, ..Scenario::of(vec![waits, child(8), child(9)]) };
    // A pool of which nothing is wanted, one that works, and one that sleeps.
    let pool = Scenario::of(vec![busy(), idle(8), idle(9), idle(10)]);
    let works = Scenario::of(vec![thread(7, "prog", 0.0, &[('S', "futex_wait_queue", 100)]), working(8), working(9)]);
    let sleeps = Scenario::of(vec![thread(7, "sleep", 0.0, &[('S', "hrtimer_nanosleep", 100)])]);
    for scenario in [builds, pool, works, sleeps, Scenario::counting(&[("LLC_MISSES", 4_000_000)])] {
        assert_eq!(scenario.faults(), [""; 0], "{:?}", scenario.found());
    }
}

#[test]
fn threads_that_wait_for_a_lock_are_told() {
    let waits = |tid| thread(tid, "convoy", 0.16, &[('R', "", 16), ('S', "futex_wait_queue", 84)]);
    let scenario = Scenario::of((8..14).map(waits).collect());
    assert_eq!(scenario.faults(), ["lock-wait"]);
    let wanted = "6 threads wait for locks or one another 84% of the time: 1.0 of 2 CPUs are used";
    assert_eq!(scenario.text(DiagnosisRule::LockWait), wanted);
    // Where waits were sampled nobody is told to sample them, though stacks may call a futex something else.
    let why = |locks: Option<&LockWaits>| {
        let sampled = SampledFacts { hot: None, locks, over: WallNs(12 * SECOND) };
        let told = diagnose(&scenario.monitor(), LookBack::Run, sampled);
        told.into_iter().find(|one| one.rule == DiagnosisRule::LockWait).unwrap().why
    };
    assert!(why(None).ends_with("; perfprop record --off-cpu says in which functions"), "{}", why(None));
    let none = why(Some(&LockWaits { seconds: 0.0, most: None }));
    assert!(none.ends_with("; the sampled event off-cpu says in which functions"), "{none}");
    // One lock that all hold in turn, as Python's: checks on a busy machine see threads ready more often than they are.
    let of_python = |tid| Made {
        parts: [0.32, 0.16, 0.0],
        ..thread(tid, "python3", 0.32, &[('R', "", 52), ('S', "futex_wait_queue", 48)])
    };
    let python = Scenario::of((8..11).map(of_python).collect());
    let wanted = "3 threads wait for locks or one another 52% of the time: 1.0 of 2 CPUs are used";
    assert_eq!(python.text(DiagnosisRule::LockWait), wanted);
    // A pool whose workers wait for requests has no lock: for most of the time nobody could have it.
    let idle = |tid| thread(tid, "worker", 0.04, &[('R', "", 4), ('S', "futex_wait_queue", 96)]);
    assert_eq!(Scenario::of((8..16).map(idle).collect()).faults(), [""; 0]);
    // Who waits for the end of those that work does little of the work.
    let waits_for_all = thread(7, "prog", 0.002, &[('S', "futex_wait_queue", 100)]);
    let works = |tid| thread(tid, "worker", 0.3, &[('R', "", 60), ('S', "futex_wait_queue", 40)]);
    let both = Scenario::of(vec![waits_for_all, works(8), works(9), works(10)]);
    assert_eq!(both.text(DiagnosisRule::LockWait).split_once(' ').unwrap().0, "3");
    // Where all CPUs are used all the same, nothing is lost.
    let used = |tid| thread(tid, "convoy", 0.32, &[('R', "", 32), ('S', "futex_wait_queue", 68)]);
    assert_eq!(Scenario::of((8..14).map(used).collect()).faults(), [""; 0]);
}

#[test]
fn a_thread_that_waits_for_a_disk_is_told_and_one_that_waits_for_its_child_is_not() {
    let waits = |within| {
        let thread = thread(7, "db", 0.1, &[('R', "", 30), ('D', within, 70)]);
        Scenario::of(vec![Made { parts: [0.1, 0.2, 0.0], ..thread }])
    };
    assert_eq!(waits("io_schedule").faults(), ["disk-wait"]);
    let text = waits("submit_bio_wait").text(DiagnosisRule::DiskWait);
    assert!(text.starts_with("waits for a disk 70% of the time"), "{text}");
    // Others can't be interrupted either.
    for within in ["kernel_clone", "__wait_rcu_gp", ""] {
        assert_eq!(waits(within).faults(), [""; 0], "{within}");
    }
    let of_kernel = Made { is_of_kernel: true, ..thread(7, "jbd2", 0.1, &[('D', "jbd2_log_wait_commit", 100)]) };
    assert_eq!(Scenario::of(vec![of_kernel]).faults(), [""; 0]);
    // On busy CPUs it waits for one of these when its data is there; what counts is the rest of the time.
    let of = |ran, waited| {
        let thread =
            thread(7, "db", 0.1, &[('R', "", ran), ('D', "io_schedule", waited), ('S', "do_wait", 100 - ran - waited)]);
        Scenario::of(vec![thread]).faults()
    };
    assert_eq!([of(80, 15), of(80, 5), of(20, 15)], [vec!["disk-wait"], vec![], vec![]]);
}

#[test]
fn a_machine_has_no_more_cpus_busy_than_there_are() {
    // A child that ran for a minute is told to its parent at once, and has ended.
    let parts = |second: u64| {
        let process = |tid, cpu: u64, children: u64| ThreadReading {
            pid: tid,
            tid,
            cpu_ns: CpuNs(cpu * SECOND),
            children_ns: CpuNs(children * SECOND),
            ..ThreadReading::default()
        };
        if second < 60 { vec![process(7, 0, 0), process(8, second, 0)] } else { vec![process(7, 0, 60)] }
    };
    let mut header = builders::header([measured(software_event("page-faults"))]);
    header.machine.cpus = 2;
    let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
    for second in 55..=60 {
        let at = WallNs(second * SECOND);
        let snapshot = ThreadSnapshot { at_ns: at, threads: parts(second), ..ThreadSnapshot::default() };
        monitor.round(&Round { at, readings: vec![None], threads: Some(Arc::new(snapshot)), ..Round::default() }, 0);
    }
    let uses = monitor.thread_uses(WallNs(SECOND)).unwrap();
    assert_eq!((uses.cpus, uses.ended_children, uses.others), (1.0, 1.0, 1.0));
    // Its parent is told of 60 s: that says nothing of this second.
    assert_eq!(uses.starter, None);
}

#[test]
fn who_started_what_has_ended_is_known_by_what_it_is_told_of() {
    let starter = |left_out: usize| {
        let header = builders::header([measured(software_event("page-faults"))]);
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for second in 0..=1 {
            let process = |tid, children: f64| ThreadReading {
                pid: tid,
                tid,
                children_ns: CpuNs((children * second as f64 * 1e9) as u64),
                ..ThreadReading::default()
            };
            let threads = vec![process(7, 0.2), process(8, 0.7)];
            let all_ns = Some(CpuNs(second * SECOND));
            let at_ns = WallNs(second * SECOND);
            let snapshot = ThreadSnapshot { at_ns, left_out, all_ns, threads, ..ThreadSnapshot::default() };
            let threads = Some(Arc::new(snapshot));
            monitor.round(&Round { at: at_ns, readings: vec![None], threads, ..Round::default() }, 0);
        }
        monitor.thread_uses(WallNs(SECOND)).unwrap().starter.map(|starter| starter.tid)
    };
    // Of a second 0.7 s; where others aren't read, these may have used it.
    assert_eq!((starter(0), starter(1)), (Some(8), None));
}

#[test]
fn processes_that_live_for_a_moment_are_told() {
    let shell = |children| Made { parts: [0.05, 0.0, children], ..thread(7, "sh", 0.0, &[('S', "do_wait", 100)]) };
    let of = |children, started| Scenario { started, ..Scenario::of(vec![shell(children)]) };
    // 0.6 s of CPU time each second in 1,000 processes: 0.6 ms each.
    assert_eq!(of(0.6, 1000).faults(), ["short-processes"]);
    // Others may have started some of them.
    let text = of(0.6, 1000).text(DiagnosisRule::ShortProcesses).to_owned();
    assert!(text.contains(": up to 1") && text.ends_with(" each on average"), "{text}");
    // Of processes that ran already children aren't read, so that what the machine starts is others'.
    let target = Some(MeasuredTarget::Processes(vec![]));
    assert_eq!(Scenario { target, ..of(0.6, 1000) }.faults(), [""; 0]);
    // Compilers take longer, and few processes aren't many.
    assert_eq!((of(0.9, 110).faults(), of(0.04, 90).faults()), (vec![], vec![]));
    // Between two checks a second apart longer ones fit.
    let mut seldom = of(0.6, 1000);
    seldom.threads[0].looks = vec![('S', "do_wait", 1)];
    assert_eq!(seldom.faults(), [""; 0]);
}

#[test]
fn short_processes_are_told_by_their_names_where_these_are_known() {
    // 2,000 of `true`, and so many CPUs of 10 compilers, a second.
    let found = |of_true: f64, of_cc1: f64| {
        let mut header = builders::header([measured(software_event("page-faults"))]);
        header.machine.cpus = 2;
        header.target = MeasuredTarget::Everyone { cpus: None };
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for second in 0..=12 {
            let ended = |name: &str, count: u64, cpus: f64| EndedProcesses {
                name: name.into(),
                count: count * second,
                cpu_ns: CpuNs((cpus * (second * SECOND) as f64) as u64),
            };
            let busy = CpuNs(second * SECOND);
            let snapshot = ThreadSnapshot {
                at_ns: WallNs(second * SECOND),
                started: Some(2000 * second),
                all_ns: Some(busy),
                busy_ns: vec![(0, busy)],
                ended: vec![ended("cc1", 10, of_cc1), ended("true", 2000, of_true)],
                threads: vec![busy_reading()],
                ..ThreadSnapshot::default()
            };
            let (at, threads) = (WallNs(second * SECOND), Some(Arc::new(snapshot)));
            monitor.round(&Round { at, readings: vec![None], threads, ..Round::default() }, 0);
        }
        let all = diagnose(&monitor, LookBack::Run, SampledFacts::default());
        all.into_iter().find(|one| one.rule == DiagnosisRule::ShortProcesses).map(|one| one.text)
    };
    let text = found(0.6, 0.3).unwrap();
    assert!(
        text.starts_with("60% of CPU time is in short processes: 2") && text.ends_with("most of it in true"),
        "{text}"
    );
    // On average of both they are short, though compilers have most.
    assert_eq!(found(0.3, 0.6), None);
}

fn busy_reading() -> ThreadReading {
    ThreadReading { pid: 1, tid: 1, name: "init".into(), ..ThreadReading::default() }
}

#[test]
fn children_that_were_seen_to_run_are_not_short() {
    // A child that runs for ten seconds of a script's twelve, while others start a thousand processes a second.
    let faults = |seen_until: u64| {
        let mut header = builders::header([measured(software_event("page-faults"))]);
        header.machine.cpus = 2;
        let mut monitor = builders::monitor(header, vec![], EstimatorKind::Scale);
        for second in 0..=12 {
            let process = |tid, cpu: u64, children: u64| ThreadReading {
                pid: tid,
                tid,
                began: 1,
                looks: vec![ThreadLooks { state: 'S', within: "do_wait".into(), times: 10 * second as u32 }],
                cpu_ns: CpuNs(cpu * SECOND),
                children_ns: CpuNs(children * SECOND),
                ..ThreadReading::default()
            };
            let script = process(7, 0, if second > 10 { 10 } else { 0 });
            let child = (second <= seen_until).then(|| process(8, second, 0));
            let snapshot = ThreadSnapshot {
                at_ns: WallNs(second * SECOND),
                started: Some(2000 * second),
                threads: [script].into_iter().chain(child).collect(),
                ..ThreadSnapshot::default()
            };
            let (at, threads) = (WallNs(second * SECOND), Some(Arc::new(snapshot)));
            monitor.round(&Round { at, readings: vec![None], threads, ..Round::default() }, 0);
        }
        let all = diagnose(&monitor, LookBack::Run, SampledFacts::default());
        all.iter().map(|one| one.rule).filter(|rule| rule.is_fault()).collect::<Vec<_>>()
    };
    assert_eq!((faults(10), faults(1)), (vec![], vec![DiagnosisRule::ShortProcesses]));
}

#[test]
fn cpu_bound_is_who_computes_and_not_many_that_mostly_wait() {
    let is_told =
        |threads: Vec<Made>| Scenario::of(threads).found().iter().any(|one| one.rule == DiagnosisRule::CpuBound);
    let sleeper = |tid| thread(tid, "worker", 0.1, &[('R', "", 10), ('S', "hrtimer_nanosleep", 90)]);
    assert!(is_told(vec![busy()]));
    assert!(!is_told((7..17).map(sleeper).collect()), "ten that sleep for nine tenths of the time");
    assert!(is_told((7..26).map(sleeper).collect()), "both CPUs are busy all the same");
    // Short processes one after the other compute, too.
    assert!(is_told(vec![Made { parts: [0.05, 0.0, 0.9], ..thread(7, "sh", 0.0, &[('S', "do_wait", 100)]) }]));
}

#[test]
fn a_program_that_waits_for_a_cpu_now_and_then_is_bound_by_cpus() {
    let compiler = Made { parts: [0.85, 0.14, 0.0], ..thread(7, "cc1", 0.85, &[('R', "", 99), ('S', "pipe_read", 1)]) };
    let told = Scenario::of(vec![compiler.clone()]).text(DiagnosisRule::CpuBound);
    let wanted = "CPU-bound: 0.85 of 2 CPUs are used, 100% in cc1; \
                  it waits for a CPU for 14% of the time in which it could run";
    assert_eq!(told, wanted);
    // One that is on a CPU for half of the time lacks CPUs, and isn't bound by those that it has.
    let starved = Made { parts: [0.5, 0.49, 0.0], ..thread(7, "cc1", 0.5, &[('R', "", 99), ('S', "pipe_read", 1)]) };
    let rules: Vec<_> = Scenario::of(vec![starved]).found().iter().map(|one| one.rule).collect();
    assert!(rules.contains(&DiagnosisRule::CpuWait) && !rules.contains(&DiagnosisRule::CpuBound), "{rules:?}");
    // Had it waited for something else, it would not be.
    let waits = Made { parts: [0.85, 0.0, 0.0], ..compiler };
    let found = Scenario::of(vec![waits]).found();
    assert!(found.iter().all(|one| one.rule != DiagnosisRule::CpuBound), "{found:?}");
}

#[test]
fn work_that_is_uneven_is_told() {
    let worker =
        |tid, cpu, locked| thread(tid, "omp", cpu, &[('R', "", 100 - locked), ('S', "futex_wait_queue", locked)]);
    let main = thread(7, "omp", 0.0, &[('S', "futex_wait_queue", 100)]);
    let uneven = vec![main.clone(), worker(8, 0.97, 2), worker(9, 0.1, 90), worker(10, 0.1, 90), worker(11, 0.1, 90)];
    let scenario = Scenario::of(uneven);
    assert_eq!(scenario.faults(), ["thread-imbalance"]);
    // Numbers tell the threads of a pool apart; other names are of other work.
    let named = |names: [&'static str; 4]| {
        let threads = [0.97, 0.1, 0.1, 0.1].into_iter().zip(names).zip(8..);
        let looks = [('R', "", 10), ('S', "futex_wait_queue", 90)];
        let mut threads: Vec<_> = threads.map(|((cpu, name), tid)| thread(tid, name, cpu, &looks)).collect();
        threads.push(main.clone());
        Scenario::of(threads).faults()
    };
    assert_eq!(named(["omp-0", "omp-1", "omp-2", "omp-3"]), ["thread-imbalance"]);
    assert!(!named(["parse", "log", "net", "io"]).contains(&"thread-imbalance"));
    // Who lived for a tenth of the time had no part in most of the work.
    let short = |tid| thread(tid, "omp", 0.1, &[('S', "futex_wait_queue", 10)]);
    let pool = vec![main.clone(), worker(8, 0.97, 2), short(9), short(10), short(11)];
    assert!(Scenario::of(pool).faults().is_empty());
    let wanted = "one thread of omp has 97% of a CPU, 3 others like it 10% on average: the work is uneven";
    assert_eq!(scenario.text(DiagnosisRule::Imbalance), wanted);
    let even = vec![main, worker(8, 0.66, 0), worker(9, 0.66, 0), worker(10, 0.66, 0)];
    assert_eq!(Scenario::of(even).faults(), [""; 0]);
}

#[test]
fn memory_that_only_grows_is_told() {
    let of = |memory: fn(u64) -> u64| {
        let threads = vec![Made { memory, ..thread(7, "leak", 0.2, &[('R', "", 20), ('S', "hrtimer_nanosleep", 80)]) }];
        Scenario { seconds: 40, ..Scenario::of(threads) }
    };
    assert_eq!(of(|second| (50 + 10 * second) << 20).faults(), ["memory-growth"]);
    let text = of(|second| (50 + 10 * second) << 20).text(DiagnosisRule::MemoryGrowth);
    assert!(text.starts_with("memory of leak grows by 10M a second without a pause, now 450M"), "{text}");
    // What is read in at the start, goes up and down, or grows for a short time, is none.
    assert_eq!(of(|second| (50 + 40 * second.min(10)) << 20).faults(), [""; 0]);
    assert_eq!(of(|second| (50 + 10 * second + 200 * (second % 3)) << 20).faults(), [""; 0]);
    let short = Scenario { seconds: 12, ..of(|second| (50 + 10 * second) << 20) };
    assert_eq!(short.faults(), [""; 0]);
}

#[test]
fn counts_over_their_thresholds_are_told() {
    let cases = [
        ("LLC_MISSES", 41_000_000, "cache-misses"),
        ("mem_load_l3_hit_retired.xsnp_hitm", 4_000_000, "false-sharing"),
        ("dTLB-load-misses", 9_000_000, "tlb-misses"),
        ("page-faults", 600_000, "page-faults"),
    ];
    for (name, rate, rule) in cases {
        assert_eq!(Scenario::counting(&[(name, rate)]).faults(), [rule]);
        assert_eq!(Scenario::counting(&[(name, rate / 8)]).faults(), [""; 0], "{name}");
    }
    // Of caches only the last one counts, also where nothing misses it.
    let caches = |last| Scenario::counting(&[("L2_MISSES", 90_000_000), (last, 0)]).faults();
    assert_eq!(["LLC_MISSES", "cache-misses", "L3_LOAD_MISSES"].map(caches), [[""; 0]; 3]);
    assert_eq!(Scenario::counting(&[("L2_MISSES", 90_000_000)]).faults(), ["cache-misses"]);
    let branches = |missed| Scenario::counting(&[("branches", 200_000_000), ("branch-misses", missed)]);
    assert_eq!((branches(30_000_000).faults(), branches(12_000_000).faults()), (vec!["branch-misses"], vec![]));
    // A few branches that are all wrong cost nothing.
    assert_eq!(Scenario::counting(&[("branches", 100_000), ("branch-misses", 90_000)]).faults(), [""; 0]);
}

#[test]
fn the_events_that_are_measured_decide_which_numbers_are_compared() {
    // Whichever of several events of one kind happens most.
    let hitm = ["mem_load_l3_miss_retired.remote_hitm", "mem_load_l3_hit_retired.xsnp_hitm"];
    assert_eq!(Scenario::counting(&[(hitm[0], 0), (hitm[1], 4_000_000)]).faults(), ["false-sharing"]);
    assert_eq!(Scenario::counting(&[(hitm[0], 4_000_000), (hitm[1], 0)]).faults(), ["false-sharing"]);
    // Arm's cache-misses are of the first cache.
    let caches = [("L2_MISSES", 9_000_000), ("cache-misses", 41_000_000)];
    let on = |arch| Scenario { arch, ..Scenario::counting(&caches) }.faults();
    assert_eq!((on("x86_64"), on("aarch64")), (vec!["cache-misses"], vec![]));
    // Misses of all that runs aren't told by instructions of user space alone.
    let user = |scenario: Scenario, index: usize| {
        let mut scenario = scenario;
        scenario.events[index].0.modifiers.exclude_kernel = true;
        scenario
    };
    let misses = || Scenario::counting(&[("LLC_MISSES", 41_000_000)]);
    assert_eq!(user(misses(), 0).faults(), [""; 0]);
    assert_eq!(user(user(misses(), 0), 1).faults(), ["cache-misses"]);
}

#[test]
fn idle_cpus_of_a_machine_have_no_part_in_rates() {
    // Half of a CPU has 300,000 faults a CPU second; counters of a machine run on all CPUs all the time.
    let busy = || thread(7, "prog", 0.5, &[('R', "", 50), ('S', "do_wait", 50)]);
    let of = |target, faults| {
        let events = vec![(software_event("page-faults"), faults, 1.0)];
        Scenario { events, target, ..Scenario::of(vec![busy()]) }.faults()
    };
    let machine = |cpus| Some(MeasuredTarget::Everyone { cpus });
    assert_eq!(of(machine(None), 150_000), ["page-faults"]);
    assert_eq!(of(machine(None), 90_000), [""; 0]);
    // What ran on some CPUs alone isn't known.
    assert_eq!(of(machine(Some(vec![0])), 150_000), [""; 0]);
}

#[test]
fn a_count_that_may_be_below_its_threshold_is_not_told() {
    let known = |ran| {
        let mut scenario = Scenario::counting(&[("LLC_MISSES", 12_000_000)]);
        scenario.events[1].2 = ran;
        scenario.monitor()
    };
    let told = |monitor: &Monitor| {
        let found = diagnose(monitor, LookBack::Run, SampledFacts::default());
        found.iter().any(|one| one.rule == DiagnosisRule::CacheMisses)
    };
    assert!(told(&known(1.0)));
    // Not counted at all.
    assert!(!told(&known(0.0)));
}

#[test]
fn what_is_no_fault_is_told_after_faults() {
    let scenario = Scenario::counting(&[("LLC_MISSES", 41_000_000)]);
    let hot = HotFunction { name: "lz\u{1b}find".into(), share: 0.95, space: SampledSpace::All };
    let found = |over: u64| {
        let sampled = SampledFacts { hot: Some(&hot), locks: None, over: WallNs(over * SECOND) };
        diagnose(&scenario.monitor(), LookBack::Last(WallNs(10 * SECOND)), sampled)
    };
    assert!(found(60)[1].text.contains(", 95% of the samples of 60 s in lz"), "{:?}", found(60));
    let of_user = HotFunction { space: SampledSpace::User, ..hot.clone() };
    let sampled = SampledFacts { hot: Some(&of_user), locks: None, over: WallNs(12 * SECOND) };
    let of_user = diagnose(&scenario.monitor(), LookBack::Run, sampled);
    assert!(of_user[1].text.contains(", 95% of user-space samples in lz"), "{of_user:?}");
    let found = found(12);
    let texts: Vec<_> = found.iter().map(|one| one.text.as_str()).collect();
    let [cache, bound] = texts[..] else { panic!("{texts:?}") };
    assert!(cache.starts_with("LLC_MISSES 41 in 1,000 instructions, 95% in lz"), "{cache}");
    assert!(bound.starts_with("CPU-bound: 0.99 of 2 CPUs are used, 95% in lz"), "{bound}");
    assert!(texts.iter().all(|text| !text.contains('\u{1b}')));
    let short = Made { parts: [0.5, 0.9, 0.0], ..busy() };
    let short = Made { looks: vec![('R', "", 100)], ..short };
    let waiting = |threads: i32| Scenario::of((7..7 + threads).map(|tid| Made { tid, ..short.clone() }).collect());
    let (two, four) = (waiting(2), waiting(4));
    // Of two CPUs these use one, and the others both.
    assert!(two.text(DiagnosisRule::CpuWait).starts_with("threads get too few CPUs: 1.0 threads"), "{:?}", two.found());
    assert!(four.text(DiagnosisRule::CpuWait).starts_with("not enough CPUs: 2.0 threads"), "{:?}", four.found());
}

#[test]
fn threads_that_are_ready_are_told_by_who_has_the_cpus() {
    // Half a CPU, and ready for a quarter of the time: 0.5 of 1.5 threads that could run.
    let thread = |tid| Made {
        parts: [0.5, 0.25, 0.0],
        ..thread(tid, "prog", 0.5, &[('R', "", 75), ('S', "futex_wait_queue", 25)])
    };
    let of = |machine_cpus| Scenario { machine_cpus, ..Scenario::of(vec![thread(8), thread(9)]) };
    let text = |machine_cpus| of(machine_cpus).text(DiagnosisRule::CpuWait);
    let numbers = "0.50 threads wait for one on average, 1.0 run";
    assert_eq!(text(None), format!("threads get too few CPUs: {numbers}"));
    assert_eq!(text(Some(1.9)), format!("the CPUs are busy: {numbers}"));
    assert_eq!(text(Some(1.1)), format!("threads wait for a CPU though some are idle: {numbers}"));
    // A tenth of the time is no more than usual.
    let seldom = Made { parts: [0.9, 0.1, 0.0], ..busy() };
    let seldom = Scenario::of(vec![Made { looks: vec![('R', "", 100)], ..seldom }]);
    assert!(seldom.found().iter().all(|one| one.rule != DiagnosisRule::CpuWait));
}

#[test]
fn a_quota_that_is_used_up_is_told_instead_of_other_programs() {
    let held = Made { parts: [0.2, 0.8, 0.0], ..thread(7, "prog", 0.2, &[('R', "", 100)]) };
    let of = |quota| Scenario { quota, machine_cpus: Some(1.9), ..Scenario::of(vec![held.clone()]) };
    let text = "the CPU quota of the control group is used up in 90% of its periods: 0.80 threads wait for a CPU on \
                average, 0.20 run";
    let found = of(Some((10, 9))).found();
    assert_eq!(found[0].text, text);
    assert!(found[0].why.starts_with("nr_throttled is 90 and nr_periods 100 in cpu.stat"), "{}", found[0].why);
    let rules = |quota| of(quota).found().iter().map(|one| one.rule).collect::<Vec<_>>();
    assert_eq!(rules(Some((10, 9))), [DiagnosisRule::CpuQuota]);
    // Seldom, in few periods, never, or where there is none, it isn't why the threads wait.
    for quota in [Some((10, 2)), Some((0, 0)), Some((10, 0)), None] {
        assert_eq!(rules(quota), [DiagnosisRule::CpuWait], "{quota:?}");
    }
}

#[test]
fn a_command_that_waits_is_told_with_what_it_waits_in() {
    let sleeps =
        |cpu: f64, slept: u32| thread(7, "prog", cpu, &[('R', "", 100 - slept), ('S', "hrtimer_nanosleep", slept)]);
    let text = Scenario::of(vec![sleeps(0.6, 40)]).text(DiagnosisRule::Waiting);
    assert_eq!(text, "prog waits 40% of the time, most of it in hrtimer_nanosleep: 0.60 CPUs are used");
    // Time that neither the kernel's account nor checks explain, as where a hypervisor takes it, is no wait.
    let is_told = |thread| Scenario::of(vec![thread]).found().iter().any(|one| one.rule == DiagnosisRule::Waiting);
    assert!(!is_told(sleeps(0.6, 1)));
    assert!(!is_told(sleeps(0.9, 10)));
    // The only thread may have used less than half of the CPU time since it was first looked at; but not if it waits for a child.
    let alone = |within| Scenario::of(vec![thread(7, "sleep", 0.0, &[('S', within, 100)])]).found();
    let found = alone("hrtimer_nanosleep");
    assert_eq!(found[0].text, "sleep waits 100% of the time, most of it in hrtimer_nanosleep: 0.00 CPUs are used");
    assert!(alone("do_wait").is_empty());
    // A process that has ended waits for nothing, until its parent asks for it.
    assert!(!is_told(thread(7, "prog", 0.5, &[('R', "", 50), ('Z', "", 50)])));
    // Of processes that ran already, waiting for work is usual; doing nothing at all is told.
    let of_daemon = |thread| {
        let target = Some(MeasuredTarget::Processes(vec![]));
        let found = Scenario { target, ..Scenario::of(vec![thread]) }.found();
        found.into_iter().find(|one| one.rule == DiagnosisRule::Waiting).map(|one| one.text)
    };
    assert_eq!(of_daemon(sleeps(0.1, 90)), None);
    let hangs = thread(7, "prog", 0.0, &[('S', "futex_wait_queue", 100)]);
    let wanted = "prog doesn't run: its thread sleeps, most of the time in futex_wait_queue";
    assert_eq!(of_daemon(hangs).as_deref(), Some(wanted));
    let stopped = || thread(7, "prog", 0.0, &[('T', "do_signal_stop", 100)]);
    let wanted = "prog is stopped by a signal: kill -CONT 7 lets it go on";
    assert_eq!(of_daemon(stopped()).as_deref(), Some(wanted));
    assert_eq!(Scenario::of(vec![stopped()]).text(DiagnosisRule::Waiting), wanted);
    // On the screens a command that reads the terminal is stopped, however often it is let go on.
    assert!(Scenario::of(vec![stopped()]).found()[0].why.contains("stat and record leave it the terminal"));
}

#[test]
fn locks_are_told_by_sampled_waits_with_who_takes_them() {
    let monitor = Scenario::of(vec![busy()]).monitor();
    let most = HotFunction { name: "update\u{1b}".into(), share: 0.75, space: SampledSpace::All };
    let found = |seconds| {
        let locks = LockWaits { seconds, most: Some(most.clone()) };
        let sampled = SampledFacts { hot: None, locks: Some(&locks), over: WallNs(12 * SECOND) };
        let all = diagnose(&monitor, LookBack::Run, sampled);
        all.into_iter().find(|one| one.rule == DiagnosisRule::LockWait)
    };
    // 18 s of 12 are one and a half threads.
    let told = found(18.0).unwrap();
    assert_eq!(told.text, "on average 1.5 threads wait for locks, 75% of that in update\\x1b: 1.0 of 2 CPUs are used");
    assert!(told.why.starts_with("18.00 s in which threads waited for locks, of 12.0 s"), "{}", told.why);
    assert_eq!(found(3.0), None, "a quarter of a thread");
}

#[test]
fn texts_and_json_have_the_reasons() {
    let scenario = Scenario::counting(&[("LLC_MISSES", 41_000_000)]);
    let (monitor, found) = (scenario.monitor(), scenario.found());
    let text = text::diagnoses(&found, &monitor, EvidenceScreens::Top);
    assert!(
        text.contains("   warning LLC_MISSES 41 in 1,000 instructions") && text.contains("how sure: at least 41 "),
        "{text}"
    );
    assert!(text.contains("why: reported from 10 in 1,000 instructions") && text.contains("key 4 (profile)"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text::diagnoses(&[], &monitor, EvidenceScreens::Top).ends_with("nothing stands out\n"));
    let counts = Scenario { threads: vec![], ..scenario };
    assert!(
        text::diagnoses(&[], &counts.monitor(), EvidenceScreens::Top)
            .ends_with("nothing stands out in what is counted\n")
    );
    let json: serde_json::Value = serde_json::from_str(&text::json_diagnoses(&found)).unwrap();
    let first = &json["stands_out"][0];
    assert_eq!((first["rule"].as_str(), first["fault"].as_bool()), (Some("cache-misses"), Some(true)));
    assert_eq!((first["screen"].as_str(), first["key"].as_str()), (Some("profile"), Some("4")));
    assert!(["why", "sure"].iter().all(|field| first[field].as_str().is_some_and(|text| !text.is_empty())));
    // Printed as it comes, each is said once.
    let mut news = PrintedNews::default();
    let first = news.since(&monitor, &found);
    assert!(first.starts_with("warning: LLC_MISSES 41 in 1,000") && first.contains("\nnote: CPU-bound"), "{first}");
    assert_eq!(news.since(&monitor, &found), "");
}

#[test]
fn many_context_switches_are_told_with_what_is_waited_for() {
    let counted = |rate| vec![(software_event("context-switches"), rate, 1.0)];
    let hands_over = |within| thread(7, "prog", 0.4, &[('R', "", 40), ('S', within, 60)]);
    let scenario = |within, rate| Scenario { events: counted(rate), ..Scenario::of(vec![hands_over(within)]) };
    let many = scenario("futex_wait_queue", 300_000);
    assert_eq!(many.faults(), ["context-switches"]);
    let text = many.text(DiagnosisRule::ContextSwitches);
    assert!(text.ends_with(" context switches a CPU second: threads wait on a futex"), "{text}");
    let text = scenario("pipe_read", 300_000).text(DiagnosisRule::ContextSwitches);
    assert!(text.ends_with(": threads wait in pipe_read"), "{text}");
    // Who waits for a disk is switched at each wait.
    let disk = Scenario {
        events: counted(300_000),
        ..Scenario::of(vec![thread(7, "prog", 0.4, &[('D', "io_schedule", 60), ('R', "", 40)])])
    };
    assert_eq!(disk.faults(), ["disk-wait"]);
    // Each thread counts by its own switches, and the kernel's threads never.
    let of = |tid, within, switches| Made { switches: Some(switches), ..Made { tid, ..hands_over(within) } };
    let kernel = Made { is_of_kernel: true, ..of(9, "kdamond_fn", 900_000) };
    let others = vec![of(7, "ep_poll", 10), of(8, "pipe_read", 300_000), of(10, "ep_poll", 0), kernel];
    let text = Scenario { threads: others, ..many }.text(DiagnosisRule::ContextSwitches);
    assert!(text.ends_with(": threads wait in pipe_read"), "{text}");
    assert_eq!(scenario("futex_wait_queue", 10_000).faults(), [""; 0]);
}

#[test]
fn a_rate_far_above_that_of_the_first_minute_is_told() {
    let scenario = |seconds, change, rate| {
        let events = vec![(software_event("page-faults"), rate, 1.0)];
        Scenario { seconds, change, events, ..Scenario::of(vec![busy()]) }
    };
    let text = scenario(80, (65, 8), 2_000).text(DiagnosisRule::RateRise);
    assert_eq!(text, "page-faults 16k /s: 8 times its first minute");
    let is_told = |scenario: &Scenario| scenario.found().iter().any(|one| one.rule == DiagnosisRule::RateRise);
    // Not much more, not often all the same, no ten seconds behind the minute, and in the minute already.
    for quiet in [(80, (65, 3), 5_000), (80, (65, 8), 100), (69, (60, 8), 2_000), (80, (30, 8), 2_000)] {
        assert!(!is_told(&scenario(quiet.0, quiet.1, quiet.2)), "{quiet:?}");
    }
}

#[test]
fn time_in_the_kernel_is_told_where_it_is_surely_half() {
    let told = |found: Vec<Diagnosis>| found.into_iter().find(|one| one.rule == DiagnosisRule::KernelTime);
    let counted = |user: u64, kernel: u64| {
        let events = [("user_time", user), ("system_time", kernel)];
        let events = events.map(|(name, each)| (software_event(name), each * 1_000_000, 1.0)).into();
        told(Scenario { events, ..Scenario::of(vec![busy()]) }.found())
    };
    let found = counted(240, 760).unwrap();
    assert_eq!((found.text.as_str(), found.rule.is_fault()), ("76% of CPU time is in the kernel", false));
    // Ten seconds have 1,000 ticks, which know a half to 3 %; and who sleeps has nothing to lose.
    assert!(found.sure.starts_with("±3%") && counted(480, 520).is_none() && counted(20, 80).is_none());
    let ended = |user: u64, kernel: u64, span: LookBack| {
        let mut monitor = Scenario::of(vec![busy()]).monitor();
        let time = CpuTime { user_ns: CpuNs(user * 1_000_000), system_ns: CpuNs(kernel * 1_000_000) };
        monitor.end(End { at_ns: WallNs(SECOND), cpu_time: Some(time), ..End::default() });
        told(diagnose(&monitor, span, SampledFacts::default()))
    };
    let run = LookBack::Run;
    assert!(ended(240, 760, run).is_some_and(|found| found.why.starts_with("0.76 of 1.00 CPU seconds")));
    // So short a run has too few ticks; the end tells nothing of a part.
    assert!(ended(0, 400, run).is_none() && ended(240, 760, LookBack::Last(WallNs(10 * SECOND))).is_none());
}
