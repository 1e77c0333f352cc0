//! Holds the rules about counts.

use super::LookBack;
use super::evidence::{Evidence, Happened, RuleResult, Said};
use crate::number::si;
use crate::run::RotatedBy;

/// Page faults a CPU second from which on they are told: at half a microsecond to two each, a tenth to a half of the
/// time.
const FAULTS: f64 = 200_000.0;
/// CPU time in a second without which faults and switches cost nobody much.
const LEAST_CPU: f64 = 0.2;
/// Context switches a CPU second from which on they are told: at 2.5 to 3.3 microseconds each, an eighth of the time or
/// more.
const SWITCHES: f64 = 50_000.0;
/// How many times its rate in the first minute an event has where that is told, and how many times the highest of an
/// interval then.
const RISE: (f64, f64) = (4.0, 2.0);
/// Events of which a rise is told, and from how many a second on.
const RISING: [(&str, f64); 5] = [
    ("major-faults", 100.0),
    ("page-faults", 5_000.0),
    ("minor-faults", 5_000.0),
    ("context-switches", 10_000.0),
    ("cpu-migrations", 1_000.0),
];
/// Misses of a large cache in 1,000 instructions from which on they are told.
const CACHE_MISSES: f64 = 10.0;
/// Misses of the last cache. What misses another one isn't told where one of these is measured, whether or not it has a
/// number.
const LAST_CACHE: [&str; 6] =
    ["LLC_MISSES", "L3_MISSES", "cache-misses", "LLC-load-misses", "LLC_LOAD_MISSES", "L3_LOAD_MISSES"];
/// Misses of a TLB in 1,000 instructions from which on they are told.
const TLB_MISSES: f64 = 5.0;
/// Loads of lines that another CPU has changed, in 1,000 instructions, from which on they are told.
const SHARED_LINES: f64 = 1.0;
/// The share of branches that are predicted wrong from which on it is told, of a CPU and of valgrind's model, which
/// predicts worse: compilers, compressors and databases have 6 to 12 % in it.
const BRANCH_MISSES: (f64, f64) = (0.1, 0.15);
/// How many there are in 1,000 instructions at least.
const LEAST_BRANCH_MISSES: f64 = 5.0;
/// The share of CPU time in the kernel from which on it is told, and of how much CPU time in seconds at least.
const KERNEL: (f64, f64) = (0.5, 0.5);
/// Kernels that tell user space from themselves at ticks of a timer have so many a second or more.
const TICKS: f64 = 100.0;
/// Half of an interval over its number from which on a number is wide.
const WIDE: f64 = 0.2;

impl Evidence<'_> {
    /// The count in 1,000 instructions, if that is at least so much for sure.
    fn per_kilo_instruction(&self, event: &Happened<'_>, least: f64) -> Option<(f64, f64)> {
        let instructions = self.happened_beside(event.event, "instructions")?;
        let sure = 1000.0 * event.least_per(&instructions)?;
        (sure >= least).then(|| (1000.0 * event.count.value / instructions.count.value, sure))
    }

    /// Of these events the one of which there is most for sure.
    fn misses(&self, names: &[&str], least: f64, what: &str) -> RuleResult {
        let rates = names.iter().filter_map(|name| {
            let event = self.happened(&[*name])?;
            let (rate, sure) = self.per_kilo_instruction(&event, least)?;
            Some((event, rate, sure))
        });
        let (event, rate, sure) = rates.reduce(|most, other| if other.2 > most.2 { other } else { most })?;
        let text = format!("{} {} in 1,000 instructions{}: {what}", event.name(), si(rate), self.mostly_in());
        let why = format!("reported from {least} in 1,000 instructions");
        Some(Said { text, why, sure: self.at_least(&si(sure)) })
    }

    /// The end of an interval that is nearest to a threshold.
    fn at_least(&self, least: &str) -> String {
        format!("at least {least} with {} confidence", self.monitor.confidence())
    }

    pub(super) fn cache_misses(&self) -> RuleResult {
        let names: Vec<&str> = LAST_CACHE.into_iter().filter(|name| self.is_of_last_cache(name)).collect();
        let is_last = names.iter().any(|name| self.row(name).is_some());
        let names: &[&str] = if is_last { &names } else { &["L2_MISSES"] };
        self.misses(names, CACHE_MISSES, "the data doesn't fit the caches")
    }

    /// Whether an event is of the last cache on this machine: Arm's `cache-misses` are of the first one.
    fn is_of_last_cache(&self, name: &str) -> bool {
        let header = self.monitor.header();
        let is_arm = header.machine.arch.starts_with("aarch64") || header.machine.arch.starts_with("arm");
        name != "cache-misses" || header.modelled.is_some() || !is_arm
    }

    pub(super) fn tlb_misses(&self) -> RuleResult {
        let names = ["DTLB_MISSES", "DTLB_LOAD_MISSES", "dTLB-load-misses"];
        self.misses(&names, TLB_MISSES, "memory is touched over more pages than the TLB holds")
    }

    pub(super) fn shared_lines(&self) -> RuleResult {
        let is_of_others = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.contains("hitm") || name.contains("xsnp_fwd")
        };
        let rows = self.monitor.rows();
        let names: Vec<&str> =
            rows.map(|row| row.event.event.name.as_str()).filter(|name| is_of_others(name)).collect();
        self.misses(&names, SHARED_LINES, "CPUs change the same cache lines; false sharing, or a shared variable")
    }

    pub(super) fn branch_misses(&self) -> RuleResult {
        let misses = self.happened(&["branch-misses"])?;
        let branches = self.happened_beside(misses.event, "branches")?;
        let (of_cpu, of_model) = BRANCH_MISSES;
        let least_share = if self.monitor.header().modelled.is_some() { of_model } else { of_cpu };
        let share = misses.least_per(&branches).filter(|share| *share >= least_share)?;
        self.per_kilo_instruction(&misses, LEAST_BRANCH_MISSES)?;
        let all = misses.count.value / branches.count.value;
        let text = format!("{:.1}% of branches are predicted wrong{}", 100.0 * all, self.mostly_in());
        let why = format!("reported from {:.0}%", 100.0 * least_share);
        Some(Said { text, why, sure: self.at_least(&format!("{:.1}%", 100.0 * share)) })
    }

    pub(super) fn page_faults(&self) -> RuleResult {
        let faults = self.happened(&["page-faults", "minor-faults"])?;
        let cpu_seconds = faults.cpu_seconds?;
        let [rate, sure] = [faults.count.value, faults.least()?].map(|count| count / cpu_seconds);
        let text = format!(
            "{} page faults a CPU second{}: memory is given back and taken again, or much is touched once",
            si(rate),
            self.mostly_in()
        );
        let is_much = sure >= FAULTS && cpu_seconds >= LEAST_CPU * faults.seconds;
        let why = format!("reported from {} a CPU second", si(FAULTS));
        is_much.then(|| Said { text, why, sure: self.at_least(&si(sure)) })
    }

    pub(super) fn context_switches(&self) -> RuleResult {
        let switches = self.happened(&["context-switches"])?;
        let cpu_seconds = switches.cpu_seconds?;
        let [rate, sure] = [switches.count.value, switches.least()?].map(|count| count / cpu_seconds);
        let is_much = sure >= SWITCHES && cpu_seconds >= LEAST_CPU * switches.seconds;
        // What threads wait for says more: while a program runs, that is waited for.
        let is_early = self.threads.is_none() && self.span != LookBack::Run;
        if !is_much || is_early || self.lock_wait().is_some() || self.disk_wait().is_some() {
            return None;
        }
        let waits = self.waits_most().map_or_else(String::new, |within| format!(": threads wait {within}"));
        let text = format!("{} context switches a CPU second{waits}", si(rate));
        let why = format!("reported from {} a CPU second", si(SWITCHES));
        Some(Said { text, why, sure: self.at_least(&si(sure)) })
    }

    pub(super) fn kernel_time(&self) -> RuleResult {
        let (least, least_seconds) = KERNEL;
        let time = self.split_cpu_time()?;
        let all = time.user + time.kernel;
        let share = time.kernel / all;
        // Each tick is a sample of where the CPU is.
        let half = 1.96 * (share * (1.0 - share) / (TICKS * all)).sqrt().max(0.01 / 1.96);
        if all < least_seconds.max(LEAST_CPU * time.seconds) || share - half < least {
            return None;
        }
        let text = format!("{:.0}% of CPU time is in the kernel", 100.0 * share);
        let why = format!(
            "{:.2} of {all:.2} CPU seconds; reported from {:.0}%. \
             perfprop stat -e 'syscalls:sys_enter_*' counts its system calls, strace -c times them",
            time.kernel,
            100.0 * least
        );
        let sure = format!("±{:.0}%: many kernels split CPU time by where a timer's ticks find it", 100.0 * half);
        Some(Said { text, why, sure })
    }

    pub(super) fn rate_rise(&self) -> RuleResult {
        let rises = RISING.iter().filter_map(|(name, least)| self.rise(name, *least));
        rises.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, said)| said)
    }

    /// How many times its rate in the first minute an event has.
    fn rise(&self, name: &str, least: f64) -> Option<(f64, Said)> {
        let (times, of_highest) = RISE;
        let (now, minute) = (self.happened(&[name])?, self.first_minute(name)?);
        let rate = now.least()? / now.seconds;
        let (before, most) = (minute.count()?, minute.count()?.bounds()?.1);
        // Of the CPU time as well, where it is known: that a program does more in all is no news of this event.
        let cpu_seconds = now.cpu_seconds.filter(|_| self.counts_busy_time());
        let least_now = now.least()?;
        let of_cpu = cpu_seconds.map(|seconds| least_now / seconds * minute.cpu_time.as_secs() / most);
        let of_time = rate * minute.length.as_secs() / most;
        let is_much = of_cpu.is_none_or(|of_cpu| of_cpu >= times)
            && of_time >= times
            && rate >= least
            && rate >= of_highest * minute.highest;
        let sure = self.at_least(&format!("{} /s", si(rate)));
        let (rate, before) = (now.count.value / now.seconds, before.value / minute.length.as_secs());
        let beside = match before > 0.0 {
            true => format!("{:.0} times its first minute", rate / before),
            false => "none in its first minute".to_owned(),
        };
        let text = format!("{} {} /s: {beside}", now.name(), si(rate));
        let by = if of_cpu.is_some() { "by time and by CPU time" } else { "by time" };
        let why = format!("{} /s then; reported from {times:.0} times, {by}", si(before));
        is_much.then_some((rate / before, Said { text, why, sure }))
    }

    pub(super) fn wide_numbers(&self) -> RuleResult {
        let rows = || self.monitor.rows().filter(|row| row.raw.run.run_ratio().is_some_and(|ratio| ratio < 0.95));
        let is_wide =
            |count: crate::rates::Uncertain| count.error.relative_to(count.value).is_some_and(|part| part >= WIDE);
        let (multiplexed, wide) = (rows().count(), rows().filter(|row| row.best().is_some_and(is_wide)).count());
        let by_kernel = matches!(self.monitor.header().rotated_by, Some(RotatedBy::Kernel { .. }));
        let or_schedule = if by_kernel { ", or use --schedule user" } else { "" };
        let text = format!(
            "intervals are wide: {wide} of {multiplexed} multiplexed events have ±{:.0}% or more; count fewer events{or_schedule}",
            100.0 * WIDE
        );
        let why = "the fewer events take turns, the longer each is counted".to_owned();
        let sure = format!("by their own {} intervals", self.monitor.confidence());
        (wide > 0 && 2 * wide >= multiplexed).then_some(Said { text, why, sure })
    }
}
