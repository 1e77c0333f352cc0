//! Prints what stands out in a measurement.

use serde_json::{Value, json};

use super::wrapped;
use crate::diagnosis::{Diagnosis, nothing};
use crate::monitor::Monitor;

/// Columns of the margin.
const MARGIN: usize = 11;

/// A paragraph for each, with its reason, below a title. They are of this monitor.
pub fn diagnoses(all: &[Diagnosis], monitor: &Monitor) -> String {
    let mut text = String::from("\n What stands out:\n\n");
    if all.is_empty() {
        text.push_str(&format!("   {}\n", nothing(monitor)));
    }
    for one in all {
        let word = if one.rule.is_fault() { "warning" } else { "note" };
        let why = format!("why: {} ({})", one.why, one.rule.name());
        for (margin, sentence) in [(word, &one.text), ("", &why)] {
            let lines = wrapped(sentence, MARGIN);
            text.push_str(&format!("   {margin:<width$}{lines}\n", width = MARGIN - 3));
        }
    }
    text
}

/// A line of JSON: `{"stands_out": [{"rule": ..., "fault": ..., "text": ..., "why": ...}]}`.
pub fn json_diagnoses(all: &[Diagnosis]) -> String {
    let one = |one: &Diagnosis| json!({"rule": one.rule.name(), "fault": one.rule.is_fault(), "text": one.text, "why": one.why});
    let all: Vec<Value> = all.iter().map(one).collect();
    format!("{}\n", json!({"stands_out": all}))
}
