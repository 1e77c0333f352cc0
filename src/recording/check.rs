//! Checks that what a header names by its place is there, and that readings don't contradict themselves.
//!
//! A recording comes from anywhere. Whoever has read one indexes events, groups and parts of the target by
//! these numbers without a further look.

use crate::plan::RowIndex;
use crate::run::{Anchor, Header};
use crate::sources::Reading;

/// Checks every place of an event or a group.
///
/// # Errors
/// What names one that isn't there, in words.
pub(super) fn check(header: &Header) -> Result<(), String> {
    let events = header.events.len();
    let event = |place: RowIndex, what: &dyn Fn() -> String| match place < events {
        true => Ok(()),
        false => Err(format!("{} names event {place} of {events}", what())),
    };
    for (number, group) in header.groups.iter().enumerate() {
        group.members.iter().try_for_each(|&member| event(member, &|| format!("group {number}")))?;
    }
    for (number, anchor) in header.anchors.iter().enumerate() {
        let Anchor::Again(anchor) = anchor else { continue };
        event(anchor.anchor_of, &|| format!("anchor {number}"))?;
        if anchor.group.0 >= header.groups.len() {
            return Err(format!("anchor {number} names group {} of {}", anchor.group.0, header.groups.len()));
        }
    }
    for (number, truth) in header.truths.iter().enumerate() {
        event(truth.truth_of, &|| format!("truth {number}"))?;
    }
    // Each part of the target has the metric, by places behind its first event.
    let last = header.parts().last().unwrap_or(0);
    for (number, metric) in header.metrics.iter().enumerate() {
        let mut places = metric.events.values().flatten();
        places.try_for_each(|&place| event(last.saturating_add(place.0), &|| format!("metric {number}")))?;
    }
    Ok(())
}

/// How much longer an event may have been on a counter than there was time, in nanoseconds and as one in so many:
/// kernels read their clocks one after the other, and what one of them wrote is never refused.
const CLOCKS_DIFFER: (u64, u64) = (1_000_000, 10);

/// Checks that no event was on a counter for longer than it was counted.
///
/// # Errors
/// Which one was, in words.
pub(super) fn check_readings(readings: &[Option<Reading>]) -> Result<(), String> {
    let is_longer = |reading: &Option<Reading>| {
        let Some(Reading { enabled, running, .. }) = reading else { return false };
        let (least, part) = CLOCKS_DIFFER;
        running.0.saturating_sub(enabled.0) > least.max(enabled.0 / part)
    };
    match readings.iter().position(is_longer) {
        Some(event) => Err(format!("event {event} was on a counter for longer than it was counted")),
        None => Ok(()),
    }
}
