//! Encodes what events counted in regions as columns, and decodes them.

use serde::{Deserialize, Serialize};

use crate::regions::{CountedPart, EventCounts, EventSums};

/// Sums of events, a column for each number, with all events of a row of regions one after another.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct EventColumns {
    /// How many events each row has.
    events: Vec<usize>,
    calls: Vec<u64>,
    missing: Vec<u64>,
    sum: Vec<u64>,
    min: Vec<u64>,
    max: Vec<u64>,
    scaled: Vec<f64>,
    squares: Vec<f64>,
    squares_per_ns: Vec<f64>,
    /// Empty in recordings of before, in which each call was a stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stays: Vec<u64>,
    enabled_ns: Vec<u64>,
    running_ns: Vec<u64>,
    /// Sum, time enabled and time running in the region alone.
    own: Vec<(u64, u64, u64)>,
    /// What the markers added to all, to the region alone, and to a call.
    markers: Vec<(f64, f64, f64)>,
    /// How much more they may have added; empty in recordings of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    marker_error: Vec<f64>,
}

impl EventColumns {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The columns of rows; empty where none has events.
    pub(super) fn of<'a>(rows: impl Iterator<Item = &'a [EventSums]> + Clone) -> Self {
        let all = || rows.clone().flatten();
        Self {
            events: if all().next().is_some() { rows.clone().map(<[_]>::len).collect() } else { Vec::new() },
            calls: all().map(|event| event.all.calls).collect(),
            missing: all().map(|event| event.all.missing).collect(),
            sum: all().map(|event| event.all.sum).collect(),
            min: all().map(|event| event.all.min).collect(),
            max: all().map(|event| event.all.max).collect(),
            scaled: all().map(|event| event.all.scaled).collect(),
            squares: all().map(|event| event.all.squares).collect(),
            squares_per_ns: all().map(|event| event.all.squares_per_ns).collect(),
            stays: all().map(|event| event.all.stays).collect(),
            enabled_ns: all().map(|event| event.all.enabled_ns).collect(),
            running_ns: all().map(|event| event.all.running_ns).collect(),
            own: all().map(|event| (event.alone.sum, event.alone.enabled_ns, event.alone.running_ns)).collect(),
            markers: all().map(|event| (event.markers, event.self_markers, event.call_marker)).collect(),
            marker_error: all().map(|event| event.marker_error).collect(),
        }
    }

    /// The events of each of so many rows; `None` if the columns aren't of one length, or of other rows.
    pub(super) fn rows(&self, rows: usize) -> Option<Vec<Vec<EventSums>>> {
        if self.is_empty() {
            return Some(vec![Vec::new(); rows]);
        }
        let count = self.calls.len();
        let whole = [&self.missing, &self.sum, &self.min, &self.max, &self.enabled_ns, &self.running_ns];
        let floats = [&self.scaled, &self.squares, &self.squares_per_ns];
        let fits = whole.iter().all(|column| column.len() == count)
            && floats.iter().all(|column| column.len() == count)
            && [self.own.len(), self.markers.len()] == [count; 2]
            && [self.marker_error.len(), self.stays.len()].iter().all(|length| [0, count].contains(length))
            && self.events.len() == rows
            && self.events.iter().try_fold(0_usize, |sum, &events| sum.checked_add(events)) == Some(count);
        let mut all = (0..count).map(|place| self.event(place));
        fits.then(|| self.events.iter().map(|&events| all.by_ref().take(events).collect()).collect())
    }

    fn event(&self, i: usize) -> EventSums {
        let (sum, enabled_ns, running_ns) = self.own[i];
        let (markers, self_markers, call_marker) = self.markers[i];
        EventSums {
            all: EventCounts {
                calls: self.calls[i],
                missing: self.missing[i],
                sum: self.sum[i],
                min: self.min[i],
                max: self.max[i],
                scaled: self.scaled[i],
                squares: self.squares[i],
                squares_per_ns: self.squares_per_ns[i],
                stays: self.stays.get(i).copied().unwrap_or(self.calls[i]),
                enabled_ns: self.enabled_ns[i],
                running_ns: self.running_ns[i],
            },
            alone: CountedPart { sum, enabled_ns, running_ns },
            markers,
            self_markers,
            call_marker,
            marker_error: self.marker_error.get(i).copied().unwrap_or(0.0),
        }
    }
}
