//! Describes a metric of a run, by its formula over the run's events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::number::shortest;
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

impl MetricFormula {
    /// `over 5%`, `under 0.5`: where the value is one to look into. `None` unless the threshold compares the formula
    /// with a number.
    pub fn limit(&self) -> Option<String> {
        let compared = self.threshold.as_deref()?.strip_prefix(&self.formula)?.trim_start();
        let (word, number) = match compared.split_at_checked(1)? {
            (">", number) => ("over", number),
            ("<", number) => ("under", number),
            _ => return None,
        };
        let limit = number.trim_start_matches('=').trim().parse::<f64>().ok()? * self.factor;
        let unit = if self.unit == "%" { "%" } else { "" };
        Some(format!("{word} {}{unit}", shortest((limit * 1e9).round() / 1e9)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_unit_of_the_metric() {
        let limit = |threshold: &str, factor, unit: &str| {
            let threshold = Some(threshold).filter(|text| !text.is_empty()).map(str::to_owned);
            let (name, formula, unit) = (String::new(), "a / b".to_owned(), unit.to_owned());
            let (description, events) = (String::new(), BTreeMap::new());
            MetricFormula { name, formula, threshold, factor, unit, description, events }.limit()
        };
        assert_eq!(limit("a / b > 0.05", 100.0, "%").as_deref(), Some("over 5%"));
        assert_eq!(limit("a / b < 0.5", 1.0, "insn per cycle").as_deref(), Some("under 0.5"));
        // Other conditions have no number to name.
        assert_eq!(limit("a / b > 0.05 & c > 1", 100.0, "%"), None);
        assert_eq!((limit("c > 1", 1.0, ""), limit("", 1.0, ""), limit("a / b", 1.0, "")), (None, None, None));
    }
}
