//! Writes what a region took and counted as lines of fields.

use super::{
    RunOfEvent, RunOfRegion, certainties, counter_names, event_counts, mean, never_ended, relative_half_width,
};
use crate::events::Unit;
use crate::names::shown;
use crate::rates::Confidence;
use crate::regions::{Certainty, REGION_BACKWARD, region_event, unit_of};
use crate::text::csv::EventLine;
use crate::text::repeats::SummarySpread;

/// The lines of a region.
pub(super) fn lines(title: &str, runs: &[RunOfRegion], confidence: Confidence) -> Vec<EventLine> {
    let line = |name: &str, unit: &'static str, of: &dyn Fn(&RunOfRegion) -> u64| {
        let spread = mean(runs, of);
        let running = mean(runs, |run| run.time_ns).mean;
        EventLine {
            value: Some(spread.mean),
            unit,
            event: format!("{name} in {title}"),
            relative_error: spread.relative().map(|part| part / (runs.len() as f64).sqrt()),
            running_ns: running.round() as u64,
            run_ratio: 1.0,
            bounds: bounds(&spread, runs.len(), confidence),
        }
    };
    let mut lines = vec![
        line("region-calls", "", &|run| run.calls),
        line("region-time", "ns", &|run| run.time_ns),
        line("region-self-time", "ns", &|run| run.self_ns),
    ];
    for (line, certainty) in lines[1..].iter_mut().zip(certainties(runs)) {
        // What its calls take isn't known yet, which is not 0.
        if never_ended(runs) || certainty == Certainty::Unknown {
            line.value = None;
        }
        if never_ended(runs) || certainty != Certainty::Clear {
            (line.bounds, line.relative_error) = (None, None);
        }
    }
    if runs.iter().any(|run| run.reverse_calls > 0) {
        lines.push(line("region-backward-runs", "", &|run| run.reverse_calls));
        lines.push(line(REGION_BACKWARD, "ns", &|run| run.reverse_ns));
    }
    for name in counter_names(runs) {
        let counted = |run: &RunOfRegion| run.counters.get(name).copied().unwrap_or(0);
        lines.push(line(&shown(&region_event(name)), "", &counted));
    }
    let mut names: Vec<&String> = runs.iter().flat_map(|run| run.events.keys()).collect();
    names.sort_unstable();
    names.dedup();
    lines.extend(names.into_iter().map(|name| event_line((name, title), runs, confidence)));
    lines
}

/// The ends of a mean of so many runs, which are the number of a single one.
fn bounds(spread: &SummarySpread, runs: usize, confidence: Confidence) -> Option<(f64, f64)> {
    let mean = spread.mean;
    let half = if runs == 1 { 0.0 } else { mean * relative_half_width(spread, runs, confidence)? };
    Some(((mean - half).max(0.0), mean + half))
}

fn event_line((name, title): (&str, &str), runs: &[RunOfRegion], confidence: Confidence) -> EventLine {
    let of_event: Vec<_> = runs.iter().filter_map(|run| run.events.get(name)).collect();
    let counts: Vec<_> = event_counts(name, runs).into_iter().map(|(count, _)| count).collect();
    let spread = SummarySpread::of(&counts);
    let sum = |of: fn(&RunOfEvent) -> u64| of_event.iter().map(|event| of(event)).sum::<u64>();
    let (running, enabled) = (sum(|event| event.running_ns), sum(|event| event.enabled_ns));
    let count = counts.len().max(1);
    // Of several runs nothing but how they differ is known.
    let bounds = match counts.len() {
        1 => of_event.iter().find_map(|event| event.total).and_then(|total| total.interval()),
        runs => bounds(&spread, runs, confidence),
    };
    EventLine {
        value: (!counts.is_empty()).then_some(spread.mean),
        unit: if unit_of(name) == Unit::Nanoseconds { "ns" } else { "" },
        event: format!("{} in {title}", shown(&region_event(name))),
        relative_error: spread.relative().map(|part| part / (count as f64).sqrt()),
        running_ns: running / count as u64,
        run_ratio: if enabled == 0 { 1.0 } else { running as f64 / enabled as f64 },
        bounds,
    }
}
