//! Describes the columns of a run's rounds: events, anchors and truths.

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::plan::{Cohesion, GroupIndex, RowIndex};
use crate::rates::{Backwards, Delta};
use crate::sources::{Reading, Scope, Status};
use crate::units::CpuNs;

/// An event, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEvent {
    /// Name and encoding of the event.
    #[serde(flatten)]
    pub event: Event,
    /// Whether it could be opened.
    pub status: Status,
    /// Which part of the target it counts.
    #[serde(default)]
    pub scope: Scope,
}

impl MeasuredEvent {
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

    /// What perf calls the time that an event ran: that of each unit, added up.
    pub fn perfs_runtime(&self, running: CpuNs) -> u64 {
        let units = self.event.units().len() - self.event.absent_units().count();
        running.0.saturating_mul(units.max(1) as u64)
    }

    /// Whether the row is of a CPU that the event's PMU doesn't listen to, so that there is nothing to count in it.
    pub fn is_elsewhere(&self) -> bool {
        self.status == Status::Elsewhere && matches!(self.scope, Scope::Cpu(_))
    }

    /// How the event's sum lacks some of its units, `is the sum of 1 of 2 units; not supported: uncore_imc_1`, or what
    /// starts later; `None` where it has all.
    pub fn lacking_words(&self) -> Option<String> {
        if let Some(why) = self.event.not_inherited() {
            return Some(format!(
                "counts the threads that were there at its start, and not what they started: the probe can't be made in \
                 tracefs, as root can ({why})"
            ));
        }
        let (units, absent): (_, Vec<_>) = (self.event.units().len(), self.event.absent_units().collect());
        let first = absent.first()?;
        let why = first.encoding.absent.as_deref().unwrap_or_default();
        let alike: Vec<_> = absent
            .iter()
            .filter(|unit| unit.encoding.absent == first.encoding.absent)
            .map(|unit| unit.pmu.as_str())
            .collect();
        let others = if alike.len() < absent.len() { ", ..." } else { "" };
        Some(format!("is the sum of {} of {units} units; {why}: {}{others}", units - absent.len(), alike.join(", ")))
    }

    /// The event's name, with the part of the target where that isn't all of it.
    pub fn title(&self) -> String {
        match &self.scope {
            Scope::All => self.event.name.clone(),
            scope => format!("{scope} {}", self.event.name),
        }
    }
}

/// What was counted beside the events. Screens don't list it: only an estimator gets what it counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Anchor {
    /// A further instance of an event, counted in another group than the event itself. An estimator gets what it
    /// counted together with what its event did.
    Again(RepeatedEvent),
    /// An event that nobody asked for, counted all the time on counters that take nothing else.
    Added(AddedEvent),
}

/// A further instance of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatedEvent {
    /// The event that it counts once more.
    pub anchor_of: RowIndex,
    /// The group of the run that it goes along with.
    pub group: GroupIndex,
    /// Whether it could be opened.
    pub status: Status,
}

/// An event that perfprop added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AddedEvent {
    /// What is counted, where, and whether it could be opened.
    pub added: Box<MeasuredEvent>,
}

/// Events that were counted, and read, together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredGroup {
    /// The members; the first is the leader.
    pub members: Vec<RowIndex>,
    /// Why the events are in one group.
    pub cohesion: Cohesion,
}

/// A column with all that an event counted, off the emulated counters too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthColumn {
    /// Event whose truth it is.
    pub truth_of: RowIndex,
}
