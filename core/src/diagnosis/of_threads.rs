//! Holds the rules about threads.

use std::collections::{BTreeMap, BTreeSet};

use super::HotFunction;
use super::evidence::{Evidence, RuleResult, Said};
use crate::monitor::{EndedUse, ThreadUses};
use crate::names::shown;
use crate::number::{memory, si, time};
use crate::run::MeasuredTarget;
use crate::threads::{LEAST_LOOKS, LooksSince, ThreadUse, WaitKind};
use crate::units::WallNs;

/// The part of a CPU that a thread needs to be one that works; others wait for work.
const WORKS: f64 = 0.001;
/// The part of what threads use on average that one needs to wait for locks in its work: others wait for those that work.
const HAS_A_PART: f64 = 0.2;
/// How many threads run, could or wait for a disk on average where others are told to wait for a lock: one of these has it.
const HOLDERS: f64 = 0.7;
/// The share of its time from which on a thread that waits for locks is told.
const LOCKED: f64 = 0.3;
/// How long threads wait for locks where that is told, for each second that they run.
const LOCKED_TO_RUNNING: f64 = 1.0;
/// The part of the CPUs that threads could use, which is busy at most where waiting for locks is told.
const IDLE_CPUS: f64 = 0.85;
/// How many threads wait for locks on average where waits were sampled and that is told, and how many for each that runs.
const SAMPLED_LOCKS: (f64, f64) = (0.3, 0.3);
/// How many threads wait for a disk on average where that is told: of the time in which they don't want for a CPU, as who has just
/// got its data then waits for that; and of all the time.
const DISK: f64 = 0.3;
const LEAST_DISK: f64 = 0.1;
/// Processes started a second, CPU seconds of each at most, and their share of the CPU time where they are told.
const SHORT: (f64, f64, f64) = (100.0, 0.005, 0.5);
/// CPUs that ended children of a target were on at least: fewer may be those of a few that aren't short, beside others' that are.
const LEAST_OF_CHILDREN: f64 = 0.1;
/// The busiest thread runs or could run for at least this part of the time, and those like it run at most and at least these
/// parts of that, where it is told.
const IMBALANCE: (f64, f64, f64) = (0.9, 0.3, 0.02);
/// The part of the time that each of them lived at least.
const LIVED: f64 = 0.8;
/// How many others there are at least.
const LEAST_OTHERS: usize = 2;
/// The part of its time that a command's busiest thread waits where that is told.
const WAITING: f64 = 0.2;
/// The part of the CPU time that this thread has at least.
const MAIN: f64 = 0.5;
/// The kernel's function in which a process waits for a child.
const WAITS_FOR_CHILD: &str = "do_wait";
/// How long memory has to grow in seconds, in what share of steps, by how many bytes, and by what part of itself.
const GROWTH: (f64, f64, f64, f64) = (30.0, 0.9, 32e6, 0.2);
/// The part of CPUs from which on a program is bound by them, and threads are short of them.
const CPU_BOUND: f64 = 0.9;
/// The part of its time in which a thread that computes runs or could: others wait for something else, too.
const COMPUTES: f64 = 0.8;
/// The part of checks at which threads were stopped where that is told.
const STOPPED: f64 = 0.9;
/// How many threads could run and have no CPU on average where that is told, and what part of those that could.
const CPU_WAIT: (f64, f64) = (0.15, 0.2);

/// A thread's name without the number that tells it from others of its pool: `worker-3` is one of `worker`.
fn pool_name(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_/:#. ".contains(c))
}

fn has_looks(thread: &ThreadUse<'_>) -> bool {
    thread.waited(WaitKind::Lock).1 >= LEAST_LOOKS
}

/// `±3% of the time, by 240 checks`: half of the 95 % interval of a share of looks.
fn sure_of_looks(share: f64, looks: u32) -> String {
    let half = 1.96 * (share * (1.0 - share) / f64::from(looks.max(1))).sqrt();
    format!("±{:.0}% of the time, by {looks} checks", (100.0 * half).max(1.0))
}

/// How sure a sum of CPU time is: what a thread used between its last reading and its end may be missing.
const SUMMED: &str = "at least so much: the sum of the kernel's CPU times of threads, each as it was last read";
/// How sure it is how long a machine's CPUs were busy.
const BUSY: &str = "how long the kernel says that CPUs were busy, in ticks of 10 ms";
/// How sure the CPU time of threads is that lived nearly all the time.
const ACCOUNTED: &str = "from the kernel's scheduler statistics of threads that lived most of the time";
/// How sure the time ready for a CPU is: some kernels count too much of it.
const READY: &str = "counted by the kernel, up to what checks of the threads' states show";

/// The part of the time in which a thread waited for a device; and of the time in which it didn't want for a CPU.
fn disk_shares(thread: &ThreadUse<'_>) -> (f64, f64) {
    // Checks come when a CPU is free, and so more often while a thread waits: the kernel's account of its other time is exact.
    let is_known = thread.waits(WaitKind::Disk).is_some();
    let waits = if is_known { thread.wait_share(WaitKind::Disk) } else { thread.waited(WaitKind::Disk).0 };
    let (seen, _) = thread.waited(WaitKind::Nothing);
    // More than nothing: one that ended at once lived for none of the time.
    let lived = thread.lived.max(f64::MIN_POSITIVE);
    let ready = thread.ready().unwrap_or(0.0) / lived;
    let short_of_cpu = (seen - thread.cpu / lived).max(ready).clamp(0.0, 0.95);
    (waits, (waits / (1.0 - short_of_cpu)).min(1.0))
}

/// `over 10 s`.
fn over(uses: &ThreadUses<'_>) -> String {
    format!("over {:.0} s", uses.seconds)
}

impl Evidence<'_> {
    pub(super) fn lock_wait(&self) -> RuleResult {
        self.sampled_locks().or_else(|| self.seen_locks())
    }

    /// By the time in which threads waited for locks, where that was sampled.
    fn sampled_locks(&self) -> RuleResult {
        let locks = self.threads.as_ref().and(self.sampled.locks)?;
        let (least, least_part) = SAMPLED_LOCKS;
        let seconds = self.sampled.over.as_secs();
        let waiting = locks.seconds / seconds;
        if seconds <= 0.0 || waiting < least || waiting < least_part * self.running {
            return None;
        }
        let HotFunction { name, share, .. } = locks.most.as_ref()?;
        let text = format!(
            "on average {waiting:.1} threads wait for locks, {:.0}% of that in {}: {:.1} of {:.0} CPUs are used",
            100.0 * share,
            shown(name),
            self.running,
            self.cpus
        );
        let why = format!(
            "{:.2} s in which threads waited for locks, of {seconds:.1} s, by their stacks; reported from {least} threads, \
             and {least_part} of those that run",
            locks.seconds
        );
        Some(Said { text, why, sure: "each wait is measured, since sampling began".into() })
    }

    /// By the part of checks at which threads were in a futex, which stands for conditions and joins, too.
    fn seen_locks(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let share = |thread: &ThreadUse<'_>| thread.wait_share(WaitKind::Lock);
        let works = WORKS.max(HAS_A_PART * uses.cpus / uses.all().count().max(1) as f64);
        let is_locked = |thread: &&ThreadUse<'_>| has_looks(thread) && thread.cpu >= works && share(thread) >= LOCKED;
        let locked: Vec<_> = uses.all().filter(is_locked).collect();
        let waiting: f64 = locked.iter().map(|thread| thread.lived * share(thread)).sum();
        let lived: f64 = locked.iter().map(|thread| thread.lived).sum();
        let running: f64 = locked.iter().map(|thread| thread.cpu).sum();
        // Threads that come and go are as many as lived at a time.
        let number = lived.round();
        let useful = self.cpus.min(number);
        let is_much = number >= 2.0 && waiting >= 1.0 && waiting >= LOCKED_TO_RUNNING * running;
        // While nobody can have the lock, threads wait for work.
        let disk: f64 = uses.all().map(|thread| thread.lived * disk_shares(thread).0).sum();
        let has_holder = self.running + ready(uses) + disk >= HOLDERS;
        // Threads that wait for one that has more to do are told as that.
        if !is_much || !has_holder || self.running >= IDLE_CPUS * useful || self.imbalance().is_some() {
            return None;
        }
        let mean = waiting / lived;
        let text = format!(
            "{:.0} threads wait for locks or one another {:.0}% of the time: {:.1} of {useful:.0} CPUs are used",
            number,
            100.0 * mean,
            self.running
        );
        let looks = locked.iter().map(|thread| thread.waited(WaitKind::Lock).1).sum();
        let why = format!(
            "in a futex for {:.0}% of the time {}, as checks divide the time on no CPU; reported from {:.0}%; {}",
            100.0 * mean,
            over(uses),
            100.0 * LOCKED,
            self.where_waits_are()
        );
        Some(Said { text, why, sure: sure_of_looks(mean, looks) })
    }

    /// What says in which functions threads wait.
    fn where_waits_are(&self) -> &'static str {
        match self.sampled.locks {
            Some(_) => "the sampled event off-cpu says in which functions",
            None => "perfprop record --off-cpu says in which functions",
        }
    }

    /// Where threads are switched away most, in words: `on a futex`, `in pipe_read`. Each counts by its own switches: who sleeps all
    /// the time isn't switched. Of a machine's processes these aren't known, and of the kernel's threads it is how they idle.
    pub(super) fn waits_most(&self) -> Option<String> {
        let uses = self.threads.as_ref()?;
        let threads: Vec<_> = uses.all().filter(|thread| thread.cpu >= WORKS && !thread.thread.is_of_kernel).collect();
        let knows_switches = threads.iter().any(|thread| thread.switches.is_some());
        if !knows_switches && matches!(self.monitor.header().target, MeasuredTarget::Everyone { .. }) {
            return None;
        }
        let mut switches = std::collections::BTreeMap::<&str, f64>::new();
        let mut looks = 0;
        for thread in threads {
            let waits = || thread.looks.iter().filter(|looks| looks.state != 'R');
            let all: u32 = waits().map(|looks| looks.times).sum();
            let each = if knows_switches { thread.switches.unwrap_or(0.0) / f64::from(all.max(1)) } else { 1.0 };
            for seen in waits() {
                *switches.entry(seen.within).or_default() += each * f64::from(seen.times);
            }
            looks += all;
        }
        let all: f64 = switches.values().sum();
        let (within, most) = switches.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let is_known = looks >= LEAST_LOOKS && 2.0 * most >= all && most > 0.0 && !within.is_empty();
        let is_futex = within.contains("futex");
        is_known.then(|| if is_futex { "on a futex".to_owned() } else { format!("in {}", shown(within)) })
    }

    pub(super) fn disk_wait(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        // The kernel's threads wait for disks in the name of others.
        let is_program = |thread: &&ThreadUse<'_>| has_looks(thread) && !thread.thread.is_of_kernel;
        let threads: Vec<_> = uses.all().filter(is_program).collect();
        let share = |thread: &ThreadUse<'_>| thread.lived * disk_shares(thread).0;
        let waiting: f64 = threads.iter().map(|thread| share(thread)).sum();
        let without_cpu_wait: f64 = threads.iter().map(|thread| thread.lived * disk_shares(thread).1).sum();
        let most = threads.iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        let text = format!(
            "waits for a disk {:.0}% of the time: {}; on average {waiting:.2} threads do",
            100.0 * share(most),
            shown(&most.thread.name)
        );
        let within = most.disk_wait().filter(|within| !within.is_empty());
        let within = within.map_or_else(String::new, |within| format!(", mostly in {}", shown(within)));
        let why = format!(
            "seen in an uninterruptible wait {}{within}: without the time in which they waited for a CPU, \
             {without_cpu_wait:.2} threads on average waited for a disk; reported from {DISK}",
            over(uses)
        );
        let sure = sure_of_looks(share(most), most.waited(WaitKind::Disk).1);
        (without_cpu_wait >= DISK && waiting >= LEAST_DISK).then_some(Said { text, why, sure })
    }

    pub(super) fn short_processes(&self) -> RuleResult {
        // The children of processes that ran already aren't read.
        let target = &self.monitor.header().target;
        if matches!(target, MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_)) {
            return None;
        }
        let uses = self.threads.as_ref()?;
        let started = uses.started.filter(|started| *started >= SHORT.0)?;
        if uses.ended_names.is_empty() { self.unseen_processes(uses, started) } else { self.short_names(uses, started) }
    }

    /// By the CPU time of what ended, where the kernel tells each process' name: of those whose processes are short on average.
    fn short_names(&self, uses: &ThreadUses<'_>, started: f64) -> RuleResult {
        let (least_started, most_each, least_share) = SHORT;
        let is_short = |ended: &&EndedUse<'_>| ended.cpus * uses.seconds <= most_each * ended.count as f64;
        let short: Vec<_> = uses.ended_names.iter().filter(is_short).collect();
        let cpus: f64 = short.iter().map(|ended| ended.cpus).sum();
        let ended = short.iter().map(|ended| ended.count).sum::<u64>() as f64 / uses.seconds;
        let share = cpus / self.running;
        if share.is_nan() || share < least_share || ended <= 0.0 {
            return None;
        }
        let most = short.first().filter(|most| most.cpus >= 0.5 * cpus);
        let most = most.map_or_else(String::new, |most| format!(", most of it in {}", shown(most.name)));
        let text = format!(
            "{:.0}% of CPU time is in short processes: {} end a second and use {} of it each{most}",
            100.0 * share,
            si(ended),
            time(1e9 * cpus / ended)
        );
        let why = format!(
            "CPU time {} of all that ended with names whose processes use {} or less on average; reported from {:.0}%, where \
             {least_started} start a second; here {}",
            over(uses),
            time(1e9 * most_each),
            100.0 * least_share,
            si(started)
        );
        Some(Said { text, why, sure: "the kernel tells of each process that ends".into() })
    }

    /// By the CPU time of children that no check saw: how long each of them ran isn't known.
    fn unseen_processes(&self, uses: &ThreadUses<'_>, started: f64) -> RuleResult {
        let (least_started, most_each, least_share) = SHORT;
        let children = unseen_children(uses);
        let (share, each) = (children / self.running, children / started);
        // Of the machine all that start are its own.
        let is_machine = !uses.busy.is_empty();
        let is_little = !is_machine && children < LEAST_OF_CHILDREN;
        if share.is_nan() || share < least_share || each > most_each || is_little {
            return None;
        }
        let (at_most, at_least) = if is_machine { ("", "") } else { ("up to ", "at least ") };
        let text = format!(
            "{:.0}% of CPU time is in processes too short for a check to see: {at_most}{} start a second, with {at_least}{} of CPU time each on average",
            100.0 * share,
            si(started),
            time(1e9 * each)
        );
        let why = format!(
            "CPU time of children that ended before a check saw them, {}; reported from {:.0}%, and {least_started} a second that use {} \
             or less on average",
            over(uses),
            100.0 * least_share,
            time(1e9 * most_each)
        );
        let sure = match is_machine {
            true => "all that starts on the machine is counted; a few may be much longer than others".to_owned(),
            false => "what starts is counted for the whole machine: some may be others'".to_owned(),
        };
        Some(Said { text, why, sure })
    }

    pub(super) fn imbalance(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let (busy, most, least) = IMBALANCE;
        let wants = |thread: &ThreadUse<'_>| thread.cpu + thread.ready().unwrap_or(0.0);
        // Who came late or has ended had no part in most of the work.
        let lived = || uses.all().filter(|thread| thread.lived >= LIVED);
        let busiest = lived().max_by(|a, b| a.cpu.total_cmp(&b.cpu));
        let busiest = busiest.filter(|thread| wants(thread) >= busy && thread.cpu > 0.0)?;
        let is_like = |thread: &&ThreadUse<'_>| {
            let (one, other) = (&thread.thread, &busiest.thread);
            let is_other = one.pid == other.pid && one.tid != other.tid && one.tid != one.pid;
            is_other && pool_name(&one.name) == pool_name(&other.name) && thread.cpu >= least * busiest.cpu
        };
        let others: Vec<_> = lived().filter(is_like).collect();
        let mean = others.iter().map(|thread| thread.cpu).sum::<f64>() / others.len() as f64;
        if others.len() < LEAST_OTHERS || others.iter().any(|thread| thread.cpu > most * busiest.cpu) {
            return None;
        }
        let text = format!(
            "one thread of {} has {:.0}% of a CPU, {} others like it {:.0}% on average: the work is uneven",
            shown(&busiest.thread.name),
            100.0 * busiest.cpu,
            others.len(),
            100.0 * mean
        );
        let why =
            format!("CPU time {}; reported where no other has over {:.0}% of the busiest", over(uses), 100.0 * most);
        Some(Said { text, why, sure: ACCOUNTED.into() })
    }

    pub(super) fn memory_growth(&self) -> RuleResult {
        let (least_seconds, least_rising, least_bytes, least_part) = GROWTH;
        let is_much = |first: u64, last: u64| {
            let grown = last as f64 - first as f64;
            grown >= least_bytes && grown >= least_part * first as f64
        };
        let found = self.monitor.memory_series(is_much).into_iter().find_map(|(name, series)| {
            let ((from, first), (to, last)) = (*series.first()?, *series.last()?);
            let (seconds, grown) = ((to - from).as_secs(), last as f64 - first as f64);
            let rising = series.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
            let is_steady = rising as f64 >= least_rising * (series.len() - 1) as f64;
            // What was read in or built up at once isn't growth: the later half has its part.
            let half = from + WallNs((to - from).0 / 2);
            let middle = series.iter().find(|(at, _)| *at >= half)?.1 as f64;
            let is_lasting = last as f64 - middle >= 0.35 * grown;
            // The series ends with the newest reading, though it was found by the one before.
            let is_growth = is_much(first, last) && is_steady && is_lasting;
            (seconds >= least_seconds && is_growth).then_some((name, grown, seconds, last))
        });
        let (name, grown, seconds, last) = found?;
        let rate = memory((grown / seconds) as u64);
        let text = format!(
            "memory of {} grows by {rate} a second without a pause, now {}: a leak, or a cache without a limit",
            shown(name),
            memory(last)
        );
        let why = format!(
            "{} more in {seconds:.0} s, in {:.0}% of readings or more; reported from {} and 20%",
            memory(grown as u64),
            100.0 * least_rising,
            memory(least_bytes as u64)
        );
        let sure = "pages in RAM as the kernel counts them; whether they are still wanted isn't known".to_owned();
        Some(Said { text, why, sure })
    }

    pub(super) fn cpu_wait(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let waiting = ready(uses);
        let running = self.running;
        let (least, least_part) = CPU_WAIT;
        if waiting < least || waiting < least_part * (waiting + running) {
            return None;
        }
        let (what, who) = match uses.machine_cpus {
            _ if running >= IDLE_CPUS * self.cpus => {
                ("not enough CPUs", "other programs may have some of the CPUs".into())
            }
            Some(busy) if busy < IDLE_CPUS * self.cpus => (
                "threads wait for a CPU though some are idle",
                format!(
                    "{busy:.1} of {:.0} CPUs are busy; threads that are woken queue behind the one that runs there, as where a \
                     lock is passed on, or a control group's quota or the CPUs they are bound to hold them back",
                    self.cpus
                ),
            ),
            Some(busy) => (
                "the CPUs are busy",
                format!(
                    "{:.1} of the {:.0} CPUs are busy with {}; if the threads are bound to fewer CPUs (taskset, a control \
                     group), they wait for one another",
                    (busy - running).max(0.0),
                    self.cpus,
                    self.others()
                ),
            ),
            None => (
                "the CPUs are taken",
                "by other programs, a control group's quota, or one another where they are bound to few CPUs".into(),
            ),
        };
        let number = |threads: f64| if threads < 1.0 { format!("{threads:.2}") } else { format!("{threads:.1}") };
        let text = format!("{what}: {} threads wait for one on average, {} run", number(waiting), number(running));
        let why: String = format!(
            "ready without a CPU for {:.0}% of the time in which threads could run, {}; reported from {:.0}%; {who}",
            100.0 * waiting / (waiting + running),
            over(uses),
            100.0 * least_part
        );
        Some(Said { text, why, sure: READY.to_owned() })
    }

    /// Who else runs: of a process that ran already its children may, and of single threads the others of their program.
    fn others(&self) -> &'static str {
        match self.monitor.header().target {
            MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_) => "what isn't measured here",
            _ => "other programs",
        }
    }

    /// What a target waits for that doesn't run, or not all the time.
    pub(super) fn waiting(&self) -> RuleResult {
        self.stopped().or_else(|| self.asleep()).or_else(|| self.busiest_waits())
    }

    /// Of a target that a signal has stopped.
    fn stopped(&self) -> RuleResult {
        let uses = self.threads.as_ref().filter(|_| !self.is_of_machine())?;
        let (stopped, looks) = looks_in(uses, |looks| matches!(looks.state, 'T' | 't'));
        let first = uses.threads.first()?.thread;
        let text = format!("{} is stopped by a signal: kill -CONT {} lets it go on", shown(&first.name), first.pid);
        let why = format!("stopped (state T) at {:.0}% of checks {}", 100.0 * stopped, over(uses));
        let is_told = looks >= LEAST_LOOKS && stopped >= STOPPED;
        is_told.then(|| Said { text, why, sure: sure_of_looks(stopped, looks) })
    }

    /// Of processes that were there already and do nothing: a command that sleeps is told by its busiest thread.
    fn asleep(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let target = &self.monitor.header().target;
        if self.running >= WORKS || !matches!(target, MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_)) {
            return None;
        }
        let (asleep, looks) = looks_in(uses, |looks| looks.state != 'R');
        let mut within = BTreeMap::<&str, u32>::new();
        for looks in uses.threads.iter().flat_map(|thread| &thread.looks).filter(|looks| !looks.within.is_empty()) {
            *within.entry(looks.within).or_default() += looks.times;
        }
        let most = within.into_iter().max_by_key(|(_, times)| *times);
        let most = most.map_or_else(String::new, |(within, _)| format!(", most of the time in {}", shown(within)));
        let name = shown(&uses.threads.first()?.thread.name);
        let threads = match uses.threads.len() {
            1 => "its thread sleeps".to_owned(),
            several => format!("its {several} threads sleep"),
        };
        let text = format!("{name} doesn't run: {threads}{most}");
        let why = format!("{:.4} CPUs {}; reported up to {WORKS}", self.running, over(uses));
        (looks >= LEAST_LOOKS).then(|| Said { text, why, sure: sure_of_looks(asleep, looks) })
    }

    fn is_of_machine(&self) -> bool {
        matches!(self.monitor.header().target, MeasuredTarget::Everyone { .. })
    }

    /// Of a command that takes longer than it computes, what its busiest thread waits in.
    fn busiest_waits(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let is_told = || self.lock_wait().is_some() || self.disk_wait().is_some() || self.imbalance().is_some();
        let is_command = matches!(self.monitor.header().target, MeasuredTarget::Command { .. });
        if !is_command || self.running + ready(uses) > 1.0 - WAITING || is_told() {
            return None;
        }
        let may_wait = |thread: &&ThreadUse<'_>| has_looks(thread) && !thread.thread.is_defunct();
        let lived = uses.all().filter(|thread| thread.lived >= LIVED).filter(may_wait);
        let busiest = lived.max_by(|a, b| a.cpu.total_cmp(&b.cpu))?;
        // What a program used before it was looked at is in no thread. One that waits for a child has most of its time in that,
        // which says nothing.
        let is_alone =
            uses.all().count() == 1 && busiest.most_within().is_none_or(|(within, _)| within != WAITS_FOR_CHILD);
        if busiest.cpu < (self.running * MAIN).max(WORKS) && !is_alone {
            return None;
        }
        let waits = busiest.waited_at_all();
        let within =
            busiest.most_within().map_or_else(String::new, |(within, _)| format!(", most of it in {}", shown(within)));
        let name = shown(&busiest.thread.name);
        let text = format!("{name} waits {:.0}% of the time{within}: {:.2} CPUs are used", 100.0 * waits, self.running);
        let why = format!(
            "its time neither on a CPU nor ready for one {}, as the thread with most CPU time; reported from {:.0}%; {}",
            over(uses),
            100.0 * WAITING,
            self.where_waits_are()
        );
        (waits >= WAITING).then_some(Said { text, why, sure: ACCOUNTED.into() })
    }

    pub(super) fn cpu_bound(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let all = self.running;
        // A program needs one CPU all the time to be bound by that, or all; a machine needs all of its own.
        let is_machine = self.is_of_machine();
        let is_busy = all >= CPU_BOUND * self.cpus;
        let least = if is_machine { CPU_BOUND * self.cpus } else { CPU_BOUND };
        if !is_busy && (is_machine || computing(uses) < CPU_BOUND) {
            return None;
        }
        let hot = self.mostly_in();
        let most = if hot.is_empty() { busiest_name(uses, all) } else { hot };
        let text = match is_machine {
            true => format!("CPU-bound: {all:.2} of {:.0} CPUs are busy{most}", self.cpus),
            false => format!("CPU-bound: {all:.2} of {:.0} CPUs are used{most}", self.cpus),
        };
        let why = format!("CPU time {}; reported from {least:.1} CPUs", over(uses));
        Some(Said { text, why, sure: if is_machine { BUSY } else { SUMMED }.into() })
    }
}

/// How many threads could run and have no CPU on average.
fn ready(uses: &ThreadUses<'_>) -> f64 {
    uses.all().filter_map(ThreadUse::ready).sum()
}

/// The CPUs that children were on which ended before a check saw them.
fn unseen_children(uses: &ThreadUses<'_>) -> f64 {
    let living: BTreeSet<i32> = uses.threads.iter().map(|thread| thread.thread.pid).collect();
    let seen = uses.ended.iter().filter(|thread| !living.contains(&thread.thread.pid));
    (uses.ended_children - seen.map(|thread| thread.cpu).sum::<f64>()).max(0.0)
}

/// The CPUs that threads were on which do nothing but compute, with those that ended before a check saw them.
fn computing(uses: &ThreadUses<'_>) -> f64 {
    let seen: f64 = uses.all().map(|thread| thread.cpu).sum();
    let computes = |thread: &&ThreadUse<'_>| thread.cpu + thread.ready().unwrap_or(0.0) >= COMPUTES * thread.lived;
    uses.all().filter(computes).map(|thread| thread.cpu).sum::<f64>() + (uses.cpus - seen).max(0.0)
}

/// The share of checks at which living threads were as `is` says, and how many checks there were.
fn looks_in(uses: &ThreadUses<'_>, is: impl Fn(&LooksSince<'_>) -> bool) -> (f64, u32) {
    let all = || uses.threads.iter().flat_map(|thread| &thread.looks);
    let times: u32 = all().map(|looks| looks.times).sum();
    let those: u32 = all().filter(|looks| is(looks)).map(|looks| looks.times).sum();
    (f64::from(those) / f64::from(times.max(1)), times)
}

/// `, 93% in xz`: the name of the threads with most CPU time, with those that have ended.
fn busiest_name(uses: &ThreadUses<'_>, all: f64) -> String {
    let mut by_name = BTreeMap::<&str, f64>::new();
    for thread in uses.all() {
        *by_name.entry(&thread.thread.name).or_default() += thread.cpu;
    }
    let most = by_name.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    let most = most.map(|(name, cpu)| (name, cpu / all)).filter(|(_, share)| *share >= 0.5);
    most.map_or_else(String::new, |(name, share)| format!(", {:.0}% in {}", 100.0 * share, shown(name)))
}
