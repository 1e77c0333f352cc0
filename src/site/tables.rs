//! Writes all points of a series as data of its plot.

use serde_json::{Value, json};

use super::entries::{SiteLine, SiteSeries};
use super::points::PointDetail;
use super::script::{call, drawn, number, word};

/// The file of a series.
///
/// ```text
/// {name, unit, params: [[NAME, VALUE]..], paramNames, revisions: [..], lines: [LINE..]}
/// LINE  {label, params, values, low, high, samples, reasons: [[PLACE, CODE]..], steps: [[FIRST, LAST, LEVEL]..],
///        changes: [[BY, LOW, HIGH, CHANCE]..]}     places are of revisions
/// ```
pub(super) fn series(one: &SiteSeries) -> String {
    let params: Vec<Value> = one.params.iter().map(|(name, value)| json!([word(name), param(value)])).collect();
    let names: Vec<Value> = one.param_names.iter().map(|name| word(name)).collect();
    let data = json!({
        "name": word(&one.benchmark), "unit": word(&one.unit), "params": params, "paramNames": names,
        "revisions": one.revisions, "lines": one.lines.iter().map(line).collect::<Vec<_>>(),
    });
    call("series", &one.stem.as_str().into(), &data)
}

/// A value of a machine or environment; null of what isn't set.
pub(super) fn param(value: &Option<String>) -> Value {
    value.as_deref().map_or(Value::Null, word)
}

fn line(one: &SiteLine) -> Value {
    let end = |which: fn((f64, f64)) -> f64| {
        let of = |detail: &PointDetail| detail.interval.map_or(Value::Null, |ends| drawn(which(ends)));
        one.details.iter().map(of).collect::<Vec<_>>()
    };
    let reasons: Vec<Value> = (0..one.values.len())
        .filter_map(|place| one.reason(place).map(|reason| json!([place, reason.code()])))
        .collect();
    let steps: Vec<Value> =
        one.steps.iter().map(|step| json!([step.left, step.right - 1, number(Some(step.value))])).collect();
    let changes: Vec<Value> = one
        .changes
        .iter()
        .map(|change| {
            let [low, high] =
                change.interval.map_or([Value::Null, Value::Null], |(low, high)| [drawn(low), drawn(high)]);
            json!([drawn(change.by), low, high, drawn(change.chance)])
        })
        .collect();
    json!({
        "label": word(&one.entry),
        "params": one.values_of_params.iter().map(|value| word(value)).collect::<Vec<_>>(),
        "values": one.values.iter().map(|&value| number(value)).collect::<Vec<_>>(),
        "low": end(|ends| ends.0),
        "high": end(|ends| ends.1),
        "samples": one.details.iter().map(|detail| detail.samples).collect::<Vec<_>>(),
        "reasons": reasons,
        "steps": steps,
        "changes": changes,
    })
}
