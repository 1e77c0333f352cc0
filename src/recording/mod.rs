//! Writes rounds as JSON lines, and reads them back.
//!
//! ```text
//! {"type":"header", ...}   what is measured, where, in which groups, with which relation files
//! {"type":"round", ...}    cumulative counts and times of every event, one line a round
//! {"type":"sampled", ...}  which events were sampled with their call stacks, and how; once, if any were
//! {"type":"stacks", ...}   samples in columns, and the frames, stacks and tasks that are new in them
//! {"type":"end", ...}      how it ended, and the totals
//! ```
//!
//! A recording holds what was read and nothing that was derived: estimates are made anew by
//! whoever reads it. Lines of another type are passed over: a later version may write more of them. A file
//! that was cut off is good up to its last whole line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::plan::{EventIndex, PlannedGroup};
use crate::rates::{Backwards, Delta};
use crate::sources::command::Exit;
use crate::sources::emulate::Model;
use crate::sources::{Reading, Round, Scope, Status};
use crate::stacks::Sampled;
use crate::units::{CpuNs, WallNs};

mod check;
mod player;
mod reader;
mod stacks;
mod writer;

pub use player::{Player, Speed};
pub use reader::{Cut, ReadError, RecordedStacks, Recording, read};
use stacks::StacksLine;
pub use writer::{ON_DISK, Recorder};

/// The version of the format that this program writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// What is measured: all that is known before the first round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub version: u32,
    /// The version of perfprop that wrote it.
    pub perfprop: String,
    /// When the measurement began, in seconds since 1970.
    pub started: f64,
    /// Machine that was measured.
    pub machine: Machine,
    /// Target of the measurement.
    pub target: Target,
    /// After how long counting began.
    #[serde(default, skip_serializing_if = "is_at_once")]
    pub delay_ns: WallNs,
    /// The events, in the order asked for.
    pub events: Vec<RecordedEvent>,
    /// Events that were counted once more, beside others; their readings stand behind those of the
    /// events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<RecordedAnchor>,
    /// What the events counted in truth, where counters were emulated; its readings stand last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truths: Vec<RecordedTruth>,
    /// The caches of the model that counted, where no real machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Model>,
    /// Who rotated the groups; `None` where nothing was multiplexed, or where that wasn't recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// The groups that the events were counted in.
    pub groups: Vec<PlannedGroup>,
    /// Metrics over the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<RecordedMetric>,
    /// The relation files, as they were.
    pub relations: Vec<RelationFile>,
    /// The estimator that was chosen.
    pub estimator: String,
    /// The time between rounds.
    pub period_ns: WallNs,
    /// The time between the intervals that people see.
    pub interval_ns: WallNs,
}

/// Who rotates groups that can't all be counted at once, and how long a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Turns {
    /// The kernel, by its timer; `None` where it doesn't say how long its slices are.
    Kernel {
        /// The interval of the timer.
        every_ns: Option<WallNs>,
    },
    /// perfprop rotates the groups.
    User {
        /// Initial length of a slice; it grows where switching would cost too much.
        every_ns: WallNs,
    },
    /// Emulated counters; `None` is a slice each round.
    Emulated {
        /// Number of emulated counters.
        counters: usize,
        /// Length of a slice.
        every_ns: Option<WallNs>,
    },
}

/// An event, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// Name and encoding of the event.
    #[serde(flatten)]
    pub event: Event,
    /// Whether it could be opened.
    pub status: Status,
    /// Which part of the target it counts.
    #[serde(default)]
    pub scope: Scope,
}

impl RecordedEvent {
    /// What was counted since the last reading, which this one replaces.
    ///
    /// # Errors
    /// Returns [`Backwards`] if a count or a time fell.
    pub fn delta(&self, last: &mut Reading, reading: Reading) -> Result<Delta, Backwards> {
        // Elsewhere than on its kind of core it can't count, which is no reason to scale it.
        let is_partial = self.event.core().is_some();
        let reading = if is_partial { Reading { enabled: reading.running, ..reading } } else { reading };
        Delta::between(std::mem::replace(last, reading), reading)
    }

    /// The event's name, with the part of the target where that isn't all of it.
    pub fn title(&self) -> String {
        match &self.scope {
            Scope::All => self.event.name.clone(),
            scope => format!("{scope} {}", self.event.name),
        }
    }
}

/// A column with all that an event counted, off the emulated counters too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTruth {
    /// Event whose truth it is.
    pub truth_of: EventIndex,
}

/// A further instance of an event, counted in another group than the event itself. Screens don't list
/// it: its readings show estimators how multiplexed groups vary together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnchor {
    /// The event that it counts once more.
    pub anchor_of: EventIndex,
    /// The group that it goes along with: its place in the header's list.
    pub group: usize,
    /// Whether it could be opened.
    pub status: Status,
}

/// The machine that was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The instruction set: `x86_64`, `aarch64`.
    pub arch: String,
    /// The processor, as it calls itself.
    pub cpu: String,
    /// How many logical CPUs are online.
    pub cpus: usize,
}

/// Target of a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Target {
    /// A command that was started for it.
    Command {
        /// The command and its arguments.
        argv: Vec<String>,
        /// Id of the process.
        pid: i32,
    },
    /// Processes that ran already.
    Processes(Vec<Process>),
    /// Threads that ran already.
    Threads(Vec<Process>),
    /// Everything that runs on the machine.
    Everyone {
        /// Only on these CPUs; on all where `None`.
        cpus: Option<Vec<u32>>,
    },
    /// Everything that runs in a control group.
    Cgroup {
        /// Path of the control group's folder.
        path: String,
    },
    /// Nobody: another tool wrote this file.
    File {
        /// Path of the file.
        path: String,
    },
}

/// A process that ran already.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Id of the process.
    pub pid: i32,
    /// Name of the process, as the kernel has it.
    pub name: String,
}

/// A relation file as it was when the measurement began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationFile {
    /// Path of the file, as the user gave it.
    pub file: String,
    /// Text of the file.
    pub text: String,
}

/// A metric over the events of a recording. What the machine knows is in its formula as a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedMetric {
    /// Name of the metric.
    pub name: String,
    /// The formula over counts, as relation files write it.
    pub formula: String,
    /// What isn't 0 where the value is one to look into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<String>,
    /// What the value is multiplied with to be in the unit.
    pub factor: f64,
    /// The unit; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Description for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The events that each name in the formula is the sum of, by their places in one part of the
    /// target.
    pub events: BTreeMap<String, Vec<EventIndex>>,
}

/// How a measurement ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Time since the beginning.
    pub at_ns: WallNs,
    /// How the command ended, if there was one and it did.
    pub exit: Option<Exit>,
    /// CPU time in user space and in the kernel, if there was a command.
    pub cpu_time: Option<CpuTime>,
    /// Rounds that were read but not kept.
    pub lost_rounds: u64,
    /// The last readings: the totals.
    pub totals: Vec<Option<Reading>>,
}

/// CPU time of a command and its waited-for children, as the kernel accounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTime {
    /// CPU time in user space.
    pub user_ns: CpuNs,
    /// CPU time in the kernel.
    pub system_ns: CpuNs,
}

/// One line of a recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line {
    Header(Box<Header>),
    Round(RoundLine),
    Sampled(Sampled),
    Stacks(Box<StacksLine>),
    End(End),
    /// A line of a type that this version doesn't know.
    #[serde(other)]
    Unknown,
}

/// A round in columns, so that a table of rounds can be read by whatever reads JSON lines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct RoundLine {
    at_ns: WallNs,
    lost_rounds: u64,
    count: Vec<Option<u64>>,
    enabled_ns: Vec<Option<CpuNs>>,
    running_ns: Vec<Option<CpuNs>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    uncounted: Vec<usize>,
}

impl RoundLine {
    fn new(round: &Round, lost_rounds: u64) -> Self {
        let uncounted = round.uncounted.clone();
        let mut line = Self { at_ns: round.at, lost_rounds, uncounted, ..Self::default() };
        for reading in &round.readings {
            line.count.push(reading.map(|reading| reading.count));
            line.enabled_ns.push(reading.map(|reading| reading.enabled));
            line.running_ns.push(reading.map(|reading| reading.running));
        }
        line
    }

    /// The round again; `None` if the columns aren't of `events` entries each, and about these.
    fn round(&self, events: usize) -> Option<Round> {
        if [self.count.len(), self.enabled_ns.len(), self.running_ns.len()] != [events; 3]
            || self.uncounted.iter().any(|&event| event >= events)
        {
            return None;
        }
        let reading = |i: usize| {
            Some(Reading { count: self.count[i]?, enabled: self.enabled_ns[i]?, running: self.running_ns[i]? })
        };
        let readings = (0..events).map(reading).collect();
        Some(Round { at: self.at_ns, readings, uncounted: self.uncounted.clone() })
    }
}

impl Header {
    /// How many readings a round has: one for each event, each anchor and each truth.
    pub fn columns(&self) -> usize {
        self.events.len() + self.anchors.len() + self.truths.len()
    }

    /// The word for numbers that no real machine counted, and of which model they are.
    pub fn modelled_words(&self) -> Option<String> {
        let model = self.modelled.as_ref()?;
        Some(format!("modelled by valgrind's callgrind: {model}; two cache levels, L2 is LL"))
    }

    /// The words of the target, for titles: the command line, or names and ids.
    pub fn title(&self) -> String {
        match &self.target {
            Target::Command { argv, pid } => format!("{} [{pid}]", argv.join(" ")),
            Target::Everyone { cpus: None } => "system wide".into(),
            Target::Everyone { cpus: Some(cpus) } => {
                let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
                format!("CPU(s) {}", cpus.join(","))
            }
            Target::Cgroup { path } => format!("control group {path}"),
            Target::File { path } => path.clone(),
            Target::Processes(processes) | Target::Threads(processes) => {
                let names: Vec<_> =
                    processes.iter().map(|process| format!("{} [{}]", process.name, process.pid)).collect();
                names.join(", ")
            }
        }
    }
}

/// A word as a shell takes it for one word.
fn for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn is_at_once(delay: &WallNs) -> bool {
    *delay == WallNs(0)
}

impl Target {
    /// The end of a command line that measures it again: `-- prog 'a b'`, `-p 7,8`; empty for a file.
    pub fn selection(&self) -> String {
        let ids = |processes: &[Process]| -> String {
            processes.iter().map(|process| process.pid.to_string()).collect::<Vec<_>>().join(",")
        };
        match self {
            Self::Command { argv, .. } => {
                let words: Vec<_> = argv.iter().map(|word| for_shell(word)).collect();
                format!("-- {}", words.join(" "))
            }
            Self::Processes(processes) => format!("-p {}", ids(processes)),
            Self::Threads(threads) => format!("-t {}", ids(threads)),
            Self::Everyone { .. } => "-a".into(),
            Self::Cgroup { path } => format!("--cgroup {}", for_shell(path)),
            Self::File { .. } => String::new(),
        }
    }

    /// A control group as it is called below where the file system is.
    pub fn cgroup(&self) -> Option<&str> {
        let Self::Cgroup { path } = self else { return None };
        let roots = ["/sys/fs/cgroup/perf_event/", "/sys/fs/cgroup/unified/", "/sys/fs/cgroup/"];
        let name = roots.iter().find_map(|root| path.strip_prefix(root)).unwrap_or(path);
        Some(if name.is_empty() { "/" } else { name })
    }
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Self {
        let uname = nix::sys::utsname::uname();
        let text = |field: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
            uname.as_ref().map(|uname| field(uname).to_string_lossy().into_owned()).unwrap_or_default()
        };
        Self {
            host: text(nix::sys::utsname::UtsName::nodename),
            kernel: text(nix::sys::utsname::UtsName::release),
            arch: text(nix::sys::utsname::UtsName::machine),
            cpu: cpu_model(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The first `model name` of x86; Arm kernels give none.
fn cpu_model() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(String::new, |(_, model)| model.trim().to_owned())
}
