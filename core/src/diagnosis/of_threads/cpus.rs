//! Holds the rules about CPUs: whether threads have enough of them, and use them alike.

use std::collections::BTreeMap;

use super::{ACCOUNTED, IDLE_CPUS, LIVED, over, ready};
use crate::diagnosis::evidence::{Evidence, RuleResult, Said};
use crate::host::QuotaPeriods;
use crate::monitor::ThreadUses;
use crate::names::shown;
use crate::run::MeasuredTarget;
use crate::threads::ThreadUse;

/// The busiest thread runs or could run for at least this part of the time, and those like it run at most and at least
/// these parts of that, where it is told.
const IMBALANCE: (f64, f64, f64) = (0.9, 0.3, 0.02);
/// How many others there are at least.
const LEAST_OTHERS: usize = 2;
/// The part of CPUs, used or waited for, from which on a program is bound by them.
const CPU_BOUND: f64 = 0.9;
/// The part of the time in which a program could run that it waits for a CPU at least where that is told.
const WAITED: f64 = 0.05;
/// The part of its time in which a thread that computes runs or could: others wait for something else, too.
const COMPUTES: f64 = 0.8;
/// How many threads could run and have no CPU on average where that is told, and what part of those that could.
const CPU_WAIT: (f64, f64) = (0.15, 0.2);
/// In what part of a quota's periods it is used up at least where that is told, and of how many periods: as Kubernetes'
/// usual alert on throttled containers has it.
const QUOTA: (f64, u64) = (0.25, 10);
/// How sure a sum of CPU time is: what a thread used between its last reading and its end may be missing.
const SUMMED: &str =
    "at least: the sum of the threads' CPU times as the kernel has them, without what each used after its last reading";
/// How sure it is how long a machine's CPUs were busy.
const BUSY: &str = "how long the kernel says that CPUs were busy, in ticks of 10 ms";
/// How sure it is how often a quota was used up.
const THROTTLED: &str = "counted by the kernel, for all that runs in these control groups";
/// How sure the time ready for a CPU is: some kernels count too much of it.
const READY: &str =
    "counted by the kernel; as some kernels count too much, no more is taken than checks of the threads' states show";

/// The CPUs that a thread was on, or ready for.
fn wants(thread: &ThreadUse<'_>) -> f64 {
    thread.cpu + thread.ready().unwrap_or(0.0)
}

/// A thread's name without the number that tells it from others of its pool: `worker-3` is one of `worker`.
fn pool_name(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || "-_/:#. ".contains(c))
}

/// A number of threads: two decimals below one.
fn threads(number: f64) -> String {
    if number < 1.0 { format!("{number:.2}") } else { format!("{number:.1}") }
}

impl Evidence<'_> {
    pub(in crate::diagnosis) fn imbalance(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let (busy, most, least) = IMBALANCE;
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

    pub(in crate::diagnosis) fn cpu_wait(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let waiting = ready(uses);
        let running = self.running;
        let (least, least_part) = CPU_WAIT;
        let has_quota = self.cpu_quota().is_some();
        if has_quota || waiting < least || waiting < least_part * (waiting + running) {
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
                "threads get too few CPUs",
                "other programs may have the others, a control group's quota may hold the threads back, or they may \
                 be bound to few CPUs"
                    .into(),
            ),
        };
        let text = format!("{what}: {} threads wait for one on average, {} run", threads(waiting), threads(running));
        let why: String = format!(
            "ready without a CPU for {:.0}% of the time in which threads could run, {}; reported from {:.0}%; {who}",
            100.0 * waiting / (waiting + running),
            over(uses),
            100.0 * least_part
        );
        Some(Said { text, why, sure: READY.to_owned() })
    }

    /// Where a quota is used up it is why threads wait for a CPU.
    pub(in crate::diagnosis) fn cpu_quota(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let QuotaPeriods { periods, throttled } = uses.quota?;
        let (least, least_periods) = QUOTA;
        let part = throttled as f64 / periods as f64;
        if periods < least_periods || part < least {
            return None;
        }
        let text = format!(
            "the CPU quota of the control group is used up in {:.0}% of its periods: {} threads wait for a CPU on average, \
             {} run",
            100.0 * part,
            threads(ready(uses)),
            threads(self.running)
        );
        let why = format!(
            "nr_throttled is {throttled} and nr_periods {periods} in cpu.stat of the program's control group or \
             one above it, {}; reported from {:.0}%; --cpus of a container, CPUQuota= of systemd or cpu.max set the quota",
            over(uses),
            100.0 * least
        );
        Some(Said { text, why, sure: THROTTLED.to_owned() })
    }

    /// Who else runs: of a process that ran already its children may, and of single threads the others of their
    /// program.
    fn others(&self) -> &'static str {
        match self.monitor.header().target {
            MeasuredTarget::Processes(_) | MeasuredTarget::Threads(_) => "what isn't measured here",
            _ => "other programs",
        }
    }

    pub(in crate::diagnosis) fn cpu_bound(&self) -> RuleResult {
        let uses = self.threads.as_ref()?;
        let all = self.running;
        // A program needs one CPU all the time to be bound by that, or all; a machine needs all of its own.
        let is_machine = self.is_of_machine();
        let is_busy = all >= CPU_BOUND * self.cpus;
        let least = if is_machine { CPU_BOUND * self.cpus } else { CPU_BOUND };
        // Of who mostly lacks a CPU that is what is wrong, and it is told by itself.
        let lacks_cpus = self.lacks_cpus();
        let part = if lacks_cpus { |thread: &ThreadUse<'_>| thread.cpu } else { wants };
        if !is_busy && (is_machine || computing(uses, part) < CPU_BOUND) {
            return None;
        }
        let hot = self.mostly_in();
        let most = if hot.is_empty() { busiest_name(uses, all) } else { hot };
        let text = match is_machine {
            true => format!("CPU-bound: {all:.2} of {:.0} CPUs are busy{most}", self.cpus),
            false => format!("CPU-bound: {all:.2} of {:.0} CPUs are used{most}{}", self.cpus, self.waited(uses)),
        };
        let counted = if is_machine { "CPU time" } else { "CPU time and time ready for a CPU" };
        let why = format!("{counted} {}; reported from {least:.1} CPUs", over(uses));
        Some(Said { text, why, sure: if is_machine { BUSY } else { SUMMED }.into() })
    }

    /// Whether it is told by itself that threads wait for CPUs.
    fn lacks_cpus(&self) -> bool {
        self.cpu_wait().is_some() || self.cpu_quota().is_some()
    }

    /// `; it waits for a CPU for 14% of the time in which it could run`; nothing where that is told by itself, or little.
    fn waited(&self, uses: &ThreadUses<'_>) -> String {
        let waiting = ready(uses);
        let part = waiting / (waiting + self.running);
        if part < WAITED || self.lacks_cpus() {
            return String::new();
        }
        format!("; it waits for a CPU for {:.0}% of the time in which it could run", 100.0 * part)
    }
}

/// The sum of such parts of threads that do nothing but compute, with the CPUs of those that ended before a check saw
/// them.
fn computing(uses: &ThreadUses<'_>, part: fn(&ThreadUse<'_>) -> f64) -> f64 {
    let seen: f64 = uses.all().map(|thread| thread.cpu).sum();
    let computes = |thread: &&ThreadUse<'_>| wants(thread) >= COMPUTES * thread.lived;
    uses.all().filter(computes).map(part).sum::<f64>() + (uses.cpus - seen).max(0.0)
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
