//! Holds the rules about threads that wait for one another, for disks, or for anything else.

use std::collections::BTreeMap;

use super::{ACCOUNTED, IDLE_CPUS, LIVED, over, ready};
use crate::diagnosis::HotFunction;
use crate::diagnosis::evidence::{Evidence, RuleResult, Said};
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::run::MeasuredTarget;
use crate::threads::{LEAST_LOOKS, LooksSince, ThreadUse, WaitKind};

/// The part of a CPU that a thread needs to be one that works; others wait for work.
const WORKS: f64 = 0.001;
/// The part of what threads use on average that one needs to wait for locks in its work: others wait for those that
/// work.
const HAS_A_PART: f64 = 0.2;
/// How many threads run, could or wait for a disk on average where others are told to wait for a lock: one of these has
/// it.
const HOLDERS: f64 = 0.7;
/// The share of its time from which on a thread that waits for locks is told.
const LOCKED: f64 = 0.3;
/// How long threads wait for locks where that is told, for each second that they run.
const LOCKED_TO_RUNNING: f64 = 1.0;
/// How many threads wait for locks on average where waits were sampled and that is told, and how many for each that
/// runs.
const SAMPLED_LOCKS: (f64, f64) = (0.3, 0.3);
/// How many threads wait for a disk on average where that is told: of the time in which they don't want for a CPU, as
/// who has just got its data then waits for that; and of all the time.
const DISK: f64 = 0.3;
const LEAST_DISK: f64 = 0.1;
/// The part of its time that a command's busiest thread waits where that is told.
const WAITING: f64 = 0.2;
/// The part of the CPU time that this thread has at least.
const MAIN: f64 = 0.5;
/// The kernel's function in which a process waits for a child.
const WAITS_FOR_CHILD: &str = "do_wait";
/// The part of checks at which threads were stopped where that is told.
const STOPPED: f64 = 0.9;

fn has_looks(thread: &ThreadUse<'_>) -> bool {
    thread.waited(WaitKind::Lock).1 >= LEAST_LOOKS
}

/// `±3% of the time, by 240 checks`: half of the 95 % interval of a share of looks.
fn sure_of_looks(share: f64, looks: u32) -> String {
    let half = 1.96 * (share * (1.0 - share) / f64::from(looks.max(1))).sqrt();
    format!("±{:.0}% of the time, by {looks} checks", (100.0 * half).max(1.0))
}

/// The part of the time in which a thread waited for a device; and of the time in which it didn't want for a CPU.
fn disk_shares(thread: &ThreadUse<'_>) -> (f64, f64) {
    // Checks come when a CPU is free, and so more often while a thread waits: the kernel's account of its other time is
    // exact.
    let is_known = thread.waits(WaitKind::Disk).is_some();
    let waits = if is_known { thread.wait_share(WaitKind::Disk) } else { thread.waited(WaitKind::Disk).0 };
    let (seen, _) = thread.waited(WaitKind::Nothing);
    // More than nothing: one that ended at once lived for none of the time.
    let lived = thread.lived.max(f64::MIN_POSITIVE);
    let ready = thread.ready().unwrap_or(0.0) / lived;
    let short_of_cpu = (seen - thread.cpu / lived).max(ready).clamp(0.0, 0.95);
    (waits, (waits / (1.0 - short_of_cpu)).min(1.0))
}

/// Why a command may be stopped again and again: it isn't in the terminal's foreground.
const READS_TERMINAL: &str = "; a command that reads its terminal is stopped while screens are on that, too: perfprop stat \
                              and record leave it the terminal";

impl Evidence<'_> {
    pub(in crate::diagnosis) fn lock_wait(&self) -> RuleResult {
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

    /// Where threads are switched away most, in words: `on a futex`, `in pipe_read`. Each counts by its own switches:
    /// who sleeps all the time isn't switched. Of a machine's processes these aren't known, and of the kernel's threads
    /// it is how they idle.
    pub(in crate::diagnosis) fn waits_most(&self) -> Option<String> {
        let uses = self.threads.as_ref()?;
        let threads: Vec<_> = uses.all().filter(|thread| thread.cpu >= WORKS && !thread.thread.is_of_kernel).collect();
        let knows_switches = threads.iter().any(|thread| thread.switches.is_some());
        if !knows_switches && matches!(self.monitor.header().target, MeasuredTarget::Everyone { .. }) {
            return None;
        }
        let mut switches = BTreeMap::<&str, f64>::new();
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

    pub(in crate::diagnosis) fn disk_wait(&self) -> RuleResult {
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

    /// What a target waits for that doesn't run, or not all the time.
    pub(in crate::diagnosis) fn waiting(&self) -> RuleResult {
        self.stopped().or_else(|| self.asleep()).or_else(|| self.busiest_waits())
    }

    /// Of a target that a signal has stopped.
    fn stopped(&self) -> RuleResult {
        let uses = self.threads.as_ref().filter(|_| !self.is_of_machine())?;
        let (stopped, looks) = looks_in(uses, |looks| matches!(looks.state, 'T' | 't'));
        let first = uses.threads.first()?.thread;
        let text = format!("{} is stopped by a signal: kill -CONT {} lets it go on", shown(&first.name), first.pid);
        let reads = match self.monitor.header().target {
            MeasuredTarget::Command { .. } => READS_TERMINAL,
            _ => "",
        };
        let why = format!("stopped (state T) at {:.0}% of checks {}{reads}", 100.0 * stopped, over(uses));
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
        // What a program used before it was looked at is in no thread. One that waits for a child has most of its time
        // in that, which says nothing.
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
}

/// The share of checks at which living threads were as `is` says, and how many checks there were.
fn looks_in(uses: &ThreadUses<'_>, is: impl Fn(&LooksSince<'_>) -> bool) -> (f64, u32) {
    let all = || uses.threads.iter().flat_map(|thread| &thread.looks);
    let times: u32 = all().map(|looks| looks.times).sum();
    let those: u32 = all().filter(|looks| is(looks)).map(|looks| looks.times).sum();
    (f64::from(those) / f64::from(times.max(1)), times)
}
