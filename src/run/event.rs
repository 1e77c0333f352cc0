//! Describes the columns of a run's rounds: events, anchors and truths.

use serde::{Deserialize, Serialize};

use crate::events::Event;
use crate::plan::EventIndex;
use crate::rates::{Backwards, Delta};
use crate::sources::{Reading, Scope, Status};

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

    /// The event's name, with the part of the target where that isn't all of it.
    pub fn title(&self) -> String {
        match &self.scope {
            Scope::All => self.event.name.clone(),
            scope => format!("{scope} {}", self.event.name),
        }
    }
}

/// A further instance of an event, counted in another group than the event itself. Screens don't list
/// it: its readings show estimators how multiplexed groups vary together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Anchor {
    /// The event that it counts once more.
    pub anchor_of: EventIndex,
    /// The group that it goes along with: its place in the header's list.
    pub group: usize,
    /// Whether it could be opened.
    pub status: Status,
}

/// A column with all that an event counted, off the emulated counters too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthColumn {
    /// Event whose truth it is.
    pub truth_of: EventIndex,
}
