//! Describes a run: the machine, its target, what was counted and how, and how it ended.
//!
//! A [`Header`] is all that is known before the first round, an [`End`] what is known after the last one. They are
//! what a monitor computes from, whether it measures or reads a recording.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::defaults::is_default;
use crate::events::Event;
use crate::plan::{EventIndex, RowIndex, RowLayout};
use crate::rates::ScopeIndex;
use crate::sources::Round;
use crate::sources::emulate::CacheModel;
use crate::units::WallNs;

mod end;
mod event;
mod machine;
mod metric;
mod target;

pub use end::End;
pub use event::{AddedEvent, Anchor, MeasuredEvent, MeasuredGroup, RepeatedEvent, TruthColumn};
pub use machine::MeasuredMachine;
pub use metric::MetricFormula;
pub use target::{MeasuredProcess, MeasuredTarget};

/// The version of the format of recordings that this program writes, and the only one that it reads.
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
    pub machine: MeasuredMachine,
    /// Target of the measurement.
    pub target: MeasuredTarget,
    /// After how long counting began.
    #[serde(default, skip_serializing_if = "is_default")]
    pub delay_ns: WallNs,
    /// The events, in the order asked for.
    pub events: Vec<MeasuredEvent>,
    /// What was counted beside the events, for the estimator; the readings stand behind those of the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub anchors: Vec<Anchor>,
    /// What the events counted in truth, where counters were emulated; its readings stand last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truths: Vec<TruthColumn>,
    /// The caches of the model that counted, where no real machine did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<CacheModel>,
    /// Who rotated the groups if they had to; `None` where nothing was counted on hardware, or where that wasn't
    /// recorded.
    #[serde(default, rename = "turns", skip_serializing_if = "Option::is_none")]
    pub rotated_by: Option<RotatedBy>,
    /// The groups that the events were counted in.
    pub groups: Vec<MeasuredGroup>,
    /// Metrics over the events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MetricFormula>,
    /// The relation files, as they were.
    pub relations: Vec<RelationFile>,
    /// What the user may not count of the machine, and what helps, in lines; empty where nothing is in the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restriction: Vec<String>,
    /// The estimator that was chosen.
    pub estimator: String,
    /// The time between rounds.
    pub period_ns: WallNs,
    /// The time between the intervals that people see.
    pub interval_ns: WallNs,
    /// The length of the first one, where it is shorter: so that there is something to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_interval_ns: Option<WallNs>,
}

/// Who rotates groups that can't all be counted at once, and how long a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum RotatedBy {
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

/// A relation file as it was when the measurement began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RelationFile {
    /// Path of the file, as the user gave it.
    pub file: String,
    /// Text of the file.
    pub text: String,
}

/// The rows of which a part isn't counted from a round on, by the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncountedRows {
    /// Those of events with several units, one of which hasn't been on a counter so far.
    pub lacks_unit: Vec<RowIndex>,
    /// Those that the kernel took the counters off, as a task executed a program with rights of its own.
    pub taken_off: Vec<RowIndex>,
}

impl Header {
    /// The header of a run that begins with the epoch, counts nothing and has no rounds: what isn't said of a run.
    pub fn new(target: MeasuredTarget, estimator: &str) -> Self {
        Self {
            version: VERSION,
            perfprop: env!("CARGO_PKG_VERSION").into(),
            started: 0.0,
            machine: MeasuredMachine::default(),
            target,
            delay_ns: WallNs(0),
            events: Vec::new(),
            anchors: Vec::new(),
            truths: Vec::new(),
            modelled: None,
            rotated_by: None,
            groups: Vec::new(),
            metrics: Vec::new(),
            relations: Vec::new(),
            restriction: Vec::new(),
            estimator: estimator.into(),
            period_ns: WallNs(0),
            interval_ns: WallNs(0),
            first_interval_ns: None,
        }
    }

    /// Why the rows that a round tells of are uncounted in part.
    pub fn uncounted_rows(&self, round: &Round) -> UncountedRows {
        let has_units = |&row: &RowIndex| self.events.get(row).is_some_and(|event| !event.event.units().is_empty());
        let (lacks_unit, taken_off) = round.uncounted.iter().copied().partition(has_units);
        UncountedRows { lacks_unit, taken_off }
    }

    /// When the first interval ends.
    pub fn first_end(&self) -> WallNs {
        self.first_interval_ns.map_or(self.interval_ns, |first| first.min(self.interval_ns))
    }

    /// The events without what became of them.
    pub fn bare_events(&self) -> Vec<Event> {
        self.events.iter().map(|event| event.event.clone()).collect()
    }

    /// The events that perfprop added, each with the place of its reading in a round.
    pub fn added(&self) -> impl Iterator<Item = (usize, &MeasuredEvent)> {
        let layout = self.layout();
        self.anchors.iter().enumerate().filter_map(move |(place, anchor)| match anchor {
            Anchor::Added(event) => Some((layout.anchor(place), &*event.added)),
            Anchor::Again(_) => None,
        })
    }

    /// What an estimator estimates: the events, and behind them those that perfprop added.
    pub fn estimated(&self) -> impl Iterator<Item = &MeasuredEvent> {
        self.events.iter().chain(self.added().map(|(_, event)| event))
    }

    /// The same without what became of them.
    pub fn estimated_events(&self) -> Vec<Event> {
        self.estimated().map(|event| event.event.clone()).collect()
    }

    /// The part of the target that each of these is about, by the order of the parts' first events.
    pub fn estimated_scopes(&self) -> Vec<ScopeIndex> {
        places(self.estimated().map(|event| &event.scope))
    }

    /// How many readings a round has: one for each event, each anchor and each truth.
    pub fn columns(&self) -> usize {
        self.events.len() + self.anchors.len() + self.truths.len()
    }

    /// The word for numbers that no real machine counted, and of which model they are.
    pub fn modelled_words(&self) -> Option<String> {
        let model = self.modelled.as_ref()?;
        Some(format!(
            "modelled by valgrind's callgrind: {model}; L2 and LLC are one cache, of which L2_MISSES counts data only"
        ))
    }

    /// The words of the target, for titles: the command line, or names and ids.
    pub fn title(&self) -> String {
        match &self.target {
            MeasuredTarget::Command { argv, pid } => format!("{} [{pid}]", argv.join(" ")),
            MeasuredTarget::Everyone { cpus: None } => "system wide".into(),
            MeasuredTarget::Everyone { cpus: Some(cpus) } => {
                let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
                format!("CPU(s) {}", cpus.join(","))
            }
            MeasuredTarget::Cgroup { path } => format!("control group {path}"),
            MeasuredTarget::File { path } => path.clone(),
            MeasuredTarget::Processes(processes) | MeasuredTarget::Threads(processes) => {
                let names: Vec<_> =
                    processes.iter().map(|process| format!("{} [{}]", process.name, process.pid)).collect();
                names.join(", ")
            }
        }
    }

    /// Where readings stand in a round.
    pub fn layout(&self) -> RowLayout {
        let first = self.events.first();
        let of_a_part = self.events.iter().take_while(|event| first.is_some_and(|first| event.scope == first.scope));
        RowLayout::new(of_a_part.count(), self.events.len())
    }

    /// The places of the first events of each part of the target.
    pub fn parts(&self) -> impl Iterator<Item = RowIndex> + use<> {
        let layout = self.layout();
        (0..layout.parts()).map(move |part| layout.row(EventIndex(0), part))
    }
}

/// The place of each among the different ones, in the order in which these come first.
pub(crate) fn places<T: Eq + Hash>(all: impl Iterator<Item = T>) -> Vec<ScopeIndex> {
    let mut known = HashMap::new();
    let place = |one| {
        let next = known.len();
        *known.entry(one).or_insert(next)
    };
    all.map(place).collect()
}
