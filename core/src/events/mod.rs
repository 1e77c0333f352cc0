//! Resolves event names to what the kernel is asked to count.
//!
//! An [`Event`] keeps the name that the user wrote beside the [`Encoding`] that the kernel gets;
//! two events are the same when [`Event::identity`] is. [`Resolver::parse`] reads an `-e` option;
//! [`catalog()`] lists what there is.

mod catalog;
mod cpu;
pub mod emulate;
mod error;
mod found;
mod list;
mod machine;
mod merge;
mod modifiers;
#[cfg(feature = "pfm")]
pub mod pfm;
mod pmu;
mod presets;
mod probe;
mod resolve;
mod startup_bursts;
mod symbols;
pub mod syntax;
mod table_event;
mod tables;
mod tracepoints;

use serde::{Deserialize, Serialize};

use crate::defaults::is_default;
use crate::units::CpuNs;

pub use catalog::{Availability, CatalogEntry, EventPart, Pattern, Prober, Question, Source, catalog, similar};
pub use error::{EventError, EventErrorCause, EventOption, ProbeProblem, Problem};
pub use machine::{Machine, TracefsError};
pub use merge::Merge;
pub use modifiers::{GroupRole, Letters, LettersError, Space};
pub use pmu::{Pmu, PmuType};
pub use resolve::{Resolver, with_letters, with_space};
pub use startup_bursts::most_per_ms_at_startup;
pub(crate) use symbols::TRACEPOINT;
pub use table_event::TableEvent;
pub use tables::{TableError, TableMetric, Tables};

/// One event to count: the name as the user wrote it, and what it means to the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The name as the user wrote it, modifiers included: `L1_MISSES`, `cycles:u`, `r1a`.
    pub name: String,
    /// The name of the same event in perf's, the kernel's or libpfm's words, without modifiers.
    pub canonical: String,
    /// Which part of the machine counts it.
    pub kind: EventKind,
    /// The bits that say what to count.
    pub encoding: Encoding,
    /// Where it is counted (user, kernel, ...) and how it is scheduled.
    pub modifiers: Modifiers,
    /// What one count stands for.
    pub unit: Unit,
}

impl Event {
    /// What makes two events the same: what is opened, not what it is called.
    pub fn identity(&self) -> (&Encoding, &Modifiers) {
        (&self.encoding, &self.modifiers)
    }

    /// Why nothing can be opened for this event, although its name is known; `None` when there is
    /// something to open (which the kernel may still refuse).
    pub fn unavailable(&self) -> Option<String> {
        self.encoding.absent.clone()
    }

    /// The event on one of its units alone.
    pub(crate) fn on(&self, unit: &PmuUnit) -> Self {
        Self { encoding: unit.encoding.clone(), ..self.clone() }
    }

    /// The units whose counts add up to the event's; empty where one PMU counts it.
    pub fn units(&self) -> &[PmuUnit] {
        &self.encoding.units
    }

    /// The type of the PMU that counts it.
    pub fn pmu_type(&self) -> PmuType {
        let Encoding { pmu_type, config, of_cores, core, .. } = &self.encoding;
        let is_generic = matches!(*pmu_type, symbols::HARDWARE | symbols::HW_CACHE);
        match (is_generic, config >> 32) {
            (true, 0) => PmuType::CORES,
            // On hybrid machines the kind of core stands in the upper half of a generic event's configuration.
            (true, core) => PmuType(u32::try_from(core).unwrap_or(u32::MAX)),
            (false, _) if *of_cores && core.is_none() => PmuType::CORES,
            (false, _) => PmuType(*pmu_type),
        }
    }

    /// The CPUs that its PMU is opened on, as text: `0,28`; empty where it may be any.
    pub fn cpu_list(&self) -> String {
        let cpus: Vec<_> = self.encoding.cpus.iter().map(u32::to_string).collect();
        cpus.join(",")
    }

    /// The event's units that have no part in what was counted.
    pub fn absent_units(&self) -> impl Iterator<Item = &PmuUnit> {
        self.units().iter().filter(|unit| unit.encoding.absent.is_some())
    }

    /// Whether its count is that of a part of the target: some units have no part in it, or what starts later.
    pub fn is_of_a_part(&self) -> bool {
        self.absent_units().next().is_some() || self.not_inherited().is_some()
    }

    /// Why only the threads that it was set on are counted, and not those that they start.
    pub fn not_inherited(&self) -> Option<&str> {
        self.encoding.probe.as_ref()?.not_inherited.as_deref()
    }

    /// The one kind of core that counts it, where a machine has several. Its time on a counter is
    /// then the time that was spent on such cores, and says nothing of multiplexing: what it counted
    /// is a part, and must not be scaled.
    pub fn core(&self) -> Option<&str> {
        self.encoding.core.as_deref()
    }

    /// Whether counting it in user space only means anything. The kernel asks where the CPU was
    /// when the event happened, and of what only the kernel does it would count none.
    pub fn happens_in_user_space(&self) -> bool {
        /// `PERF_COUNT_SW_` context-switches, cpu-migrations, bpf-output, cgroup-switches.
        const IN_KERNEL: [u64; 4] = [3, 4, 10, 11];
        match self.kind {
            EventKind::Software => !IN_KERNEL.contains(&self.encoding.config),
            EventKind::Tracepoint | EventKind::Probe | EventKind::Tool => false,
            EventKind::Hardware
            | EventKind::Cache
            | EventKind::Raw
            | EventKind::Pmu
            | EventKind::Breakpoint
            | EventKind::Modelled => true,
        }
    }

    /// Whether it is a clock of the kernel. The kernel counts all of the time, whatever part of it was asked for.
    pub fn is_clock(&self) -> bool {
        /// `PERF_COUNT_SW_` cpu-clock, task-clock.
        const CLOCKS: [u64; 2] = [0, 1];
        self.kind == EventKind::Software && CLOCKS.contains(&self.encoding.config)
    }

    /// The event counted in user space only, where that is a part of what was asked for.
    pub fn in_user_space_only(&self) -> Option<Self> {
        let Modifiers { exclude_kernel, exclude_user, .. } = self.modifiers;
        if exclude_kernel || exclude_user || !self.happens_in_user_space() {
            return None;
        }
        let modifiers = Modifiers { exclude_kernel: true, exclude_hv: true, ..self.modifiers.clone() };
        Some(Self { modifiers, ..self.clone() })
    }

    /// How far its counts may be off as they are read in steps: a tick of /proc, of which the kernel gives programs 100
    /// a second, whatever its own are.
    pub fn step(&self) -> Option<CpuNs> {
        (self.kind == EventKind::Tool && self.canonical != "duration_time").then_some(CpuNs(10_000_000))
    }

    /// Whether both count the same part of what runs, so that a ratio of them has a meaning: on the same kind of core,
    /// and in the same of user space, kernel and hypervisor. Guests make no difference, as in perf: modifiers choose
    /// them by the way.
    pub fn counts_beside(&self, other: &Self) -> bool {
        self.core() == other.core() && self.is_in_spaces_of(other)
    }

    /// Whether a relation may be of both: what every core has, as the kernel's own counts are, may stand beside what
    /// one kind of core counts.
    pub(crate) fn may_be_related(&self, other: &Self) -> bool {
        let same_cores = self.core().is_none() || other.core().is_none() || self.core() == other.core();
        same_cores && self.is_in_spaces_of(other)
    }

    /// What the kernel does is in one place alone, whatever was asked for.
    fn is_in_spaces_of(&self, other: &Self) -> bool {
        let excluded = |event: &Self| {
            let Modifiers { exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_idle, .. } =
                event.modifiers;
            [exclude_user, exclude_kernel, exclude_hv, exclude_host, exclude_idle]
        };
        let both_have_spaces = self.has_spaces() && other.has_spaces();
        !both_have_spaces || excluded(self) == excluded(other)
    }

    /// Whether it is another count in user space than in the kernel.
    pub(crate) fn has_spaces(&self) -> bool {
        self.happens_in_user_space() && !self.is_clock()
    }

    /// The canonical name without the kind of core that counts it: `cycles`, also of `cpu_core/cycles/`.
    pub fn name_on_core(&self) -> &str {
        if self.core().is_some() { self.name_on_pmu() } else { &self.canonical }
    }

    fn name_on_pmu(&self) -> &str {
        self.canonical.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
    }

    /// Whether it is the event of this name, on whichever PMU it was asked for.
    pub(crate) fn is_called_on_any_pmu(&self, name: &str) -> bool {
        self.name_on_pmu().eq_ignore_ascii_case(name) || self.is_called(name)
    }

    /// Whether relation files mean this event by `name`: the user's name or the canonical one, in
    /// any case of letters.
    pub fn is_called(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name) || self.canonical.eq_ignore_ascii_case(name)
    }
}

/// Which part of the machine counts an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// Counted by the kernel itself: page faults, context switches, clocks.
    Software,
    /// One of perf's generic hardware events: cycles, instructions.
    Hardware,
    /// One of perf's generic cache events: `L1-dcache-load-misses`.
    Cache,
    /// A raw code of the CPU's PMU.
    Raw,
    /// An event of a PMU that sysfs or libpfm describes.
    Pmu,
    /// A static tracepoint in the kernel.
    Tracepoint,
    /// A hardware breakpoint on an address.
    Breakpoint,
    /// A dynamic probe on a kernel or user function.
    Probe,
    /// A cost of the emulated PMU's model, or a sum of some.
    Modelled,
    /// A tool event, as perf calls what no kernel counts: time that passes, CPU time by the kernel's accounts.
    Tool,
}

impl EventKind {
    /// Whether the kernel counts it without a hardware counter, so that it is never multiplexed.
    ///
    /// Breakpoints take one of the few debug registers, but no counter, and are never rotated.
    pub fn is_software(self) -> bool {
        matches!(self, Self::Software | Self::Tracepoint | Self::Breakpoint | Self::Probe | Self::Tool)
    }
}

/// The fields of `perf_event_attr` that say what to count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Encoding {
    /// `perf_event_attr.type`: a `PERF_TYPE_*` or the number of a PMU in sysfs.
    pub pmu_type: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// `perf_event_attr.config1`, which is the address of a breakpoint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config1: u64,
    /// `perf_event_attr.config2`, which is the length of a breakpoint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config2: u64,
    /// `perf_event_attr.config3`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub config3: u64,
    /// `perf_event_attr.bp_type`: the accesses that a breakpoint counts.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bp_type: u32,
    /// Why this machine has no code for the preset; `None` when there is something to open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
    /// The PMU of the one kind of core that counts it, on a machine that has several kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Whether the PMU of the cores counts it by a type of its own, as on Arm.
    #[serde(default, skip_serializing_if = "is_default")]
    pub of_cores: bool,
    /// The place of a dynamic probe, which the kernel takes by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<Probe>,
    /// The CPUs that the PMU is opened on, each for all that it counts for: a PMU's `cpumask`. Empty is any CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// The like units whose counts add up to the event's, this encoding's own first; empty where one PMU counts it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<PmuUnit>,
}

/// One of several like units outside the cores (`uncore_imc_0`, `uncore_imc_1`), and the event's encoding there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PmuUnit {
    /// Name of the unit's PMU in sysfs.
    pub pmu: String,
    /// What is asked of it; `absent` says, too, why it has no part in what was counted.
    #[serde(flatten)]
    pub encoding: Encoding,
}

/// A dynamic probe on a place in a program or in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// The program or library, from the root; empty is the kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The kernel's function; empty in a program, where the offset says it all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Bytes from the beginning of the file, or of the kernel's function.
    #[serde(default)]
    pub offset: u64,
    /// Whether returns from there are counted, and not calls.
    #[serde(default, skip_serializing_if = "is_default")]
    pub returns: bool,
    /// Why only the threads that it was set on were counted, and not those that they started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_inherited: Option<String>,
}

impl Encoding {
    /// The type that [`absent`](Self::absent) encodings carry. No PMU has it, so that even an
    /// open by mistake is refused (ENOENT) and never counts something else.
    const NO_PMU: u32 = u32::MAX;

    /// The type of what the emulated PMU counts; the kernel has none of this number either.
    const MODEL: u32 = u32::MAX - 1;

    /// The type of tool events, which the kernel doesn't count.
    const TOOL: u32 = u32::MAX - 2;

    /// The encoding of an event whose name is known and for which this machine has no code;
    /// `why` names the event.
    pub fn absent(why: &str) -> Self {
        Self { pmu_type: Self::NO_PMU, absent: Some(why.to_owned()), ..Self::default() }
    }

    fn of(pmu_type: u32, config: u64) -> Self {
        Self { pmu_type, config, ..Self::default() }
    }
}

/// perf's event modifiers (`:ukhGHpPSDIeWb`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Modifiers {
    /// `perf_event_attr.exclude_user`.
    pub exclude_user: bool,
    /// `perf_event_attr.exclude_kernel`.
    pub exclude_kernel: bool,
    /// `perf_event_attr.exclude_hv`.
    pub exclude_hv: bool,
    /// `perf_event_attr.exclude_host`.
    pub exclude_host: bool,
    /// `perf_event_attr.exclude_guest`.
    pub exclude_guest: bool,
    /// `perf_event_attr.exclude_idle` (`I`).
    pub exclude_idle: bool,
    /// `perf_event_attr.precise_ip`, one for each `p`, at most 3.
    pub precise: u8,
    /// Sampled as precisely as the event can be (`P`).
    #[serde(skip_serializing_if = "is_default")]
    pub precise_max: bool,
    /// Samples carry the counts of the group (`S`).
    #[serde(skip_serializing_if = "is_default")]
    pub sample_read: bool,
    /// `perf_event_attr.pinned` (`D`): always on a counter, or an error.
    pub pinned: bool,
    /// `perf_event_attr.exclusive` (`e`): alone on the PMU.
    pub exclusive: bool,
}

/// What one count of an event stands for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// One occurrence of the event.
    #[default]
    Count,
    /// A nanosecond of CPU time (`task-clock`, `cpu-clock`).
    Nanoseconds,
    /// `scale` of the named unit, as sysfs has it: 6.1e-5 MiB.
    Scaled {
        /// Amount that one count stands for.
        scale: f64,
        /// Name of the unit.
        name: String,
    },
}

/// Events that must be counted together, or a single event.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name in front of the braces, if there is one.
    pub name: Option<String>,
    /// The events, in the order written; never empty.
    pub events: Vec<Event>,
    /// Who asked for them to be counted together.
    pub binding: GroupBinding,
}

/// How firmly the events of a [`Group`] belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBinding {
    /// A single event, written without braces.
    Free,
    /// Written in braces: counted together or refused.
    Braces,
    /// Written in braces with `:W`: counted together if that can be, else singly.
    Weak,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::software_event;

    #[test]
    fn only_what_was_asked_for_is_narrowed_to_user_space() {
        let narrowed = |exclude_user, exclude_kernel| {
            let modifiers = Modifiers { exclude_user, exclude_kernel, ..Modifiers::default() };
            let event = Event { modifiers, ..software_event("page-faults") };
            event.in_user_space_only().map(|event| (event.modifiers.exclude_user, event.modifiers.exclude_kernel))
        };
        assert_eq!(narrowed(false, false), Some((false, true)));
        // `:k` without the kernel would count nothing, and be exact.
        assert_eq!([narrowed(true, false), narrowed(false, true)], [None, None]);
    }

    #[test]
    fn a_name_says_once_where_an_event_is_counted() {
        let named = |name| with_space(name, Space::User);
        assert_eq!(
            ["faults", "faults:ku", "faults:kp", "cpu/x/k"].map(named),
            ["faults:u", "faults:u", "faults:pu", "cpu/x/u"]
        );
    }
}
