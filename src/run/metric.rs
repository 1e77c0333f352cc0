//! Describes a metric of a run, by its formula over the run's events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::plan::EventIndex;

/// A metric over the events of a run. What the machine knows is in its formula as a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricFormula {
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
