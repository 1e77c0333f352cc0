//! Prints what `perfprop check --validate` found as JSON.

use serde_json::{Map, Value, json};

use super::ValidateArgs;
use super::text::conclusion;
use crate::sources::command::Exit;
use crate::validate::{Coverage, RelativeError, ValidatedEvent, Validation};

/// What was found as one JSON object.
pub(super) fn validation(validation: &Validation, args: &ValidateArgs) -> String {
    let command: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
    let report = json!({
        "version": 1,
        "perfprop": env!("CARGO_PKG_VERSION"),
        "validation": {
            "command": if command.is_empty() { Value::Null } else { json!(command) },
            "runs": validation.runs,
            "truth-runs": validation.truth_runs,
            "truth": if args.counting.counters.is_some() { "same run" } else { "other runs" },
            "interval-ms": validation.interval.as_millis() as u64,
            "confidence": validation.confidence.level(),
            "events": validation.events.iter().map(event_json).collect::<Vec<_>>(),
            "totals": coverage_json(validation.totals),
            "intervals": coverage_json(validation.intervals),
            "ended-badly": validation.failed.map(Exit::shell_code),
            "conclusion": validation.conclusion.word(),
            "why": conclusion(validation),
        },
    });
    format!("{report}\n")
}

/// Why there is nothing to validate.
pub(super) fn nothing(why: &str) -> String {
    format!("{}\n", json!({ "version": 1, "validation": { "conclusion": "unknown", "why": why } }))
}

fn coverage_json(coverage: Coverage) -> Value {
    json!({ "held": coverage.held, "missed": coverage.missed, "unclear": coverage.unclear, "coverage": coverage.share() })
}

fn event_json(event: &ValidatedEvent) -> Value {
    let truth = event.truth;
    let mut members = Map::new();
    members.insert("event".into(), event.event.event.name.clone().into());
    members.insert("verdict".into(), event.validity.word().into());
    members.insert("run-ratio".into(), event.run_ratio.into());
    members.insert("truth".into(), truth.map(|truth| truth.value).into());
    members.insert("runs-differ-by".into(), truth.and_then(|truth| truth.error.half_width()).into());
    for (name, error) in [
        ("scaled-error", event.scaled),
        ("error", event.estimated),
        ("interval-scaled-error", event.scaled_intervals),
        ("interval-error", event.estimated_intervals),
    ] {
        members.insert(name.into(), error.map(RelativeError::size).into());
        members.insert(format!("{name}-is-below"), error.map(|error| matches!(error, RelativeError::Below(_))).into());
    }
    members.insert("totals".into(), coverage_json(event.totals));
    members.insert("intervals".into(), coverage_json(event.intervals));
    let known = event.known.map(|known| {
        json!({
            "known": known.known, "counted": known.counted, "deviation": known.deviation(),
            "by": "assembly", "user-only": known.is_user_only, "wrong": known.is_wrong(),
        })
    });
    members.insert("known".into(), known.unwrap_or_default());
    members.into()
}
