//! Says what stands out in a measurement, by rules with thresholds.
//!
//! A [`Diagnosis`] is a sentence with what it rests on. docs/diagnosis.md lists the rules, their thresholds and where
//! these come from. A rule that can't be sure says nothing: a false alarm costs a reader more than silence.
//!
//! ```text
//! counts of the last 10 s, with intervals ─┐
//! threads of the last 10 s ────────────────┼─ rules ─ warnings first, then what is no fault ─ at most three
//! what stacks were sampled ────────────────┘
//! ```

use crate::monitor::Monitor;
use crate::units::WallNs;

mod evidence;
mod of_counts;
mod of_threads;
mod sampled;

use evidence::{Evidence, Said};
pub use sampled::{HotFunction, LockWaits, SampledFacts, SampledSpace};

/// The most sentences of a screen.
pub const MOST_SHOWN: usize = 3;

/// The time that screens look back.
pub const LATELY: WallNs = WallNs(10_000_000_000);

/// What is said where no rule holds: without threads, only of what is counted.
pub fn nothing(monitor: &Monitor) -> &'static str {
    match monitor.knows_thread_uses() {
        true if monitor.shown_time() < evidence::LEAST_TIME => {
            "nothing stands out in what is counted; too short to tell what threads do"
        }
        true => "nothing stands out",
        false => "nothing stands out in what is counted",
    }
}

/// What a rule finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiagnosisRule {
    /// Threads wait for locks or one another while CPUs are idle.
    LockWait,
    /// Threads wait for a disk.
    DiskWait,
    /// Most CPU time goes into processes that live for a moment.
    ShortProcesses,
    /// A control group's CPU quota is used up.
    CpuQuota,
    /// One thread works and those like it wait.
    Imbalance,
    /// Memory grows without end.
    MemoryGrowth,
    /// Pages are mapped again and again.
    PageFaults,
    /// Threads are switched very often.
    ContextSwitches,
    /// Caches miss often.
    CacheMisses,
    /// CPUs take lines from one another's caches.
    SharedLines,
    /// Branches are predicted wrong.
    BranchMisses,
    /// Addresses miss the TLB.
    TlbMisses,
    /// Something happens far more often than in the first minute.
    RateRise,
    /// Multiplexing makes numbers wide.
    WideNumbers,
    /// Threads are ready and have no CPU.
    CpuWait,
    /// A command's busiest thread waits for a good part of the time.
    Waiting,
    /// Most CPU time is in the kernel.
    KernelTime,
    /// CPUs are busy all the time.
    CpuBound,
}

impl DiagnosisRule {
    /// All rules, those that matter most first.
    pub const ALL: [Self; 18] = [
        Self::LockWait,
        Self::DiskWait,
        Self::CpuQuota,
        Self::ShortProcesses,
        Self::Imbalance,
        Self::MemoryGrowth,
        Self::PageFaults,
        Self::ContextSwitches,
        Self::CacheMisses,
        Self::SharedLines,
        Self::BranchMisses,
        Self::TlbMisses,
        Self::RateRise,
        Self::WideNumbers,
        Self::CpuWait,
        Self::Waiting,
        Self::KernelTime,
        Self::CpuBound,
    ];

    /// Name of the rule in files and in docs/diagnosis.md.
    pub fn name(self) -> &'static str {
        match self {
            Self::LockWait => "lock-wait",
            Self::DiskWait => "disk-wait",
            Self::ShortProcesses => "short-processes",
            Self::CpuQuota => "cpu-quota",
            Self::Imbalance => "thread-imbalance",
            Self::MemoryGrowth => "memory-growth",
            Self::PageFaults => "page-faults",
            Self::ContextSwitches => "context-switches",
            Self::CacheMisses => "cache-misses",
            Self::SharedLines => "false-sharing",
            Self::BranchMisses => "branch-misses",
            Self::TlbMisses => "tlb-misses",
            Self::RateRise => "rate-rise",
            Self::WideNumbers => "wide-numbers",
            Self::CpuWait => "cpu-wait",
            Self::Waiting => "waiting",
            Self::KernelTime => "kernel-time",
            Self::CpuBound => "cpu-bound",
        }
    }

    /// Whether it tells of something that costs time; else of how the program or the measurement is.
    pub fn is_fault(self) -> bool {
        !matches!(
            self,
            Self::RateRise | Self::WideNumbers | Self::CpuWait | Self::Waiting | Self::KernelTime | Self::CpuBound
        )
    }

    /// The screen that shows more.
    pub fn screen(self) -> EvidenceScreen {
        match self {
            Self::RateRise => EvidenceScreen::Detail,
            Self::PageFaults
            | Self::CacheMisses
            | Self::SharedLines
            | Self::BranchMisses
            | Self::TlbMisses
            | Self::KernelTime
            | Self::CpuBound => EvidenceScreen::Profile,
            Self::WideNumbers => EvidenceScreen::Groups,
            Self::LockWait
            | Self::DiskWait
            | Self::CpuQuota
            | Self::ShortProcesses
            | Self::Imbalance
            | Self::MemoryGrowth
            | Self::ContextSwitches
            | Self::CpuWait
            | Self::Waiting => EvidenceScreen::Threads,
        }
    }
}

/// A screen that shows what a sentence rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvidenceScreen {
    /// An event's history.
    Detail,
    /// Functions and calls.
    Profile,
    /// Who shares counters.
    Groups,
    /// What threads do.
    Threads,
}

impl EvidenceScreen {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detail => "detail",
            Self::Profile => "profile",
            Self::Groups => "groups",
            Self::Threads => "threads",
        }
    }

    /// Its key.
    pub fn key(self) -> char {
        match self {
            Self::Detail => '2',
            Self::Profile => '4',
            Self::Groups => '5',
            Self::Threads => '7',
        }
    }
}

/// What stands out.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// The rule that found it.
    pub rule: DiagnosisRule,
    /// The sentence. Names from outside in it are safe to show.
    pub text: String,
    /// What it rests on, with the rule's threshold.
    pub why: String,
    /// How sure that is.
    pub sure: String,
}

/// Over which time a measurement is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookBack {
    /// The intervals of so long a time before the end of the last one.
    Last(WallNs),
    /// The whole run.
    Run,
}

/// Everything that stands out, what matters most first.
pub fn diagnose(monitor: &Monitor, span: LookBack, sampled: SampledFacts<'_>) -> Vec<Diagnosis> {
    let evidence = Evidence::new(monitor, span, sampled);
    DiagnosisRule::ALL.into_iter().filter_map(|rule| evidence.judge(rule)).collect()
}

impl Evidence<'_> {
    fn judge(&self, rule: DiagnosisRule) -> Option<Diagnosis> {
        let Said { text, why, sure } = match rule {
            DiagnosisRule::LockWait => self.lock_wait(),
            DiagnosisRule::DiskWait => self.disk_wait(),
            DiagnosisRule::CpuQuota => self.cpu_quota(),
            DiagnosisRule::ShortProcesses => self.short_processes(),
            DiagnosisRule::Imbalance => self.imbalance(),
            DiagnosisRule::MemoryGrowth => self.memory_growth(),
            DiagnosisRule::PageFaults => self.page_faults(),
            DiagnosisRule::ContextSwitches => self.context_switches(),
            DiagnosisRule::CacheMisses => self.cache_misses(),
            DiagnosisRule::SharedLines => self.shared_lines(),
            DiagnosisRule::BranchMisses => self.branch_misses(),
            DiagnosisRule::TlbMisses => self.tlb_misses(),
            DiagnosisRule::RateRise => self.rate_rise(),
            DiagnosisRule::WideNumbers => self.wide_numbers(),
            DiagnosisRule::CpuWait => self.cpu_wait(),
            DiagnosisRule::Waiting => self.waiting(),
            DiagnosisRule::KernelTime => self.kernel_time(),
            DiagnosisRule::CpuBound => self.cpu_bound(),
        }?;
        Some(Diagnosis { rule, text, why, sure })
    }
}
