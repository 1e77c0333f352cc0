//! Stores the samples and weights of events, a column for each event.

use std::borrow::Cow;
use std::fmt;

use crate::events::Unit;
use crate::number;

/// What is known of each sample of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SampleMeasure {
    /// Only that each was taken: samples are counted, and the weight is their number.
    Samples,
    /// How much it stands for, in this unit, as the period of a sampled counter.
    Weighted(Cow<'static, str>),
    /// Only a sum in this unit; how many samples went into it isn't known.
    Sum(Cow<'static, str>),
    /// Nanoseconds that passed in calls that were all measured: [`CallTimes`](super::CallTimes) tells how they differ.
    Timed,
    /// What was counted in calls, in this unit, all the time or for a part of it: [`CallCounts`](super::CallCounts)
    /// tells how sure that is.
    Counted(Cow<'static, str>),
}

/// Something that was sampled or added up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfileEvent {
    /// Name of the event, not escaped.
    pub name: String,
    /// What the event's numbers mean.
    pub measure: SampleMeasure,
}

impl ProfileEvent {
    /// An event with this name and measure.
    pub fn new(name: &str, measure: SampleMeasure) -> Self {
        Self { name: name.into(), measure }
    }

    /// The unit of weights: `count`, `nanoseconds`, `bytes`, as in pprof.
    pub fn unit(&self) -> &str {
        match &self.measure {
            SampleMeasure::Samples => "count",
            SampleMeasure::Weighted(unit) | SampleMeasure::Sum(unit) | SampleMeasure::Counted(unit) => unit,
            SampleMeasure::Timed => "nanoseconds",
        }
    }

    /// A weight in this unit, as text: `12.3k`, `1.50 s`, `2.05k bytes`.
    pub fn in_unit(&self, weight: u64) -> String {
        let unit = match self.unit() {
            "count" => Unit::Count,
            "nanoseconds" => Unit::Nanoseconds,
            unit => Unit::Scaled { scale: 1.0, name: unit.to_owned() },
        };
        number::amount(weight as f64, &unit)
    }

    /// Whether the number of samples is known.
    pub fn has_samples(&self) -> bool {
        matches!(self.measure, SampleMeasure::Samples | SampleMeasure::Weighted(_))
    }

    /// Whether calls were measured, and nothing sampled.
    pub fn is_of_calls(&self) -> bool {
        matches!(self.measure, SampleMeasure::Timed | SampleMeasure::Counted(_))
    }
}

impl fmt::Display for ProfileEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The number of an event in its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub(super) u32);

impl EventId {
    /// Place of the event among all events of the tree.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How often an event was sampled, and how much these samples stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// Samples; 0 where [`ProfileEvent::has_samples`] is false.
    pub samples: u64,
    /// The sum of their weights, in the event's unit.
    pub weight: u64,
}

impl Amount {
    /// Both numbers 0.
    pub const ZERO: Self = Self { samples: 0, weight: 0 };

    /// The sum; it stays at the largest number instead of going round.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { samples: self.samples.saturating_add(other.samples), weight: self.weight.saturating_add(other.weight) }
    }
}

/// The numbers of one event, by node. As long as the last node that has any.
#[derive(Clone, Debug, Default)]
pub(super) struct EventColumn(Vec<Amount>);

impl EventColumn {
    pub(super) fn get(&self, node: usize) -> Amount {
        self.0.get(node).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn add(&mut self, node: usize, amount: Amount) {
        if node >= self.0.len() {
            self.0.resize(node + 1, Amount::ZERO);
        }
        self.0[node] = self.0[node].plus(amount);
    }

    pub(super) fn take_off(&mut self, node: usize, weight: u64) {
        if let Some(amount) = self.0.get_mut(node) {
            amount.weight = amount.weight.saturating_sub(weight);
        }
    }

    pub(super) fn set(&mut self, node: usize, amount: Amount) {
        if node < self.0.len() {
            self.0[node] = amount;
        } else {
            self.add(node, amount);
        }
    }

    pub(super) fn total(&self) -> Amount {
        self.0.iter().fold(Amount::ZERO, |sum, &amount| sum.plus(amount))
    }
}
