//! Counts events in the regions of a thread.

use std::sync::Once;

use crate::events::{CountedEvent, EventGroup, Readings, say, why};
use crate::layout::{EventCell, Node};
use crate::table::{grow, grow_float, lower, raise};

/// The events of a thread, and what they had counted when its open regions were entered.
#[derive(Debug)]
pub(super) struct ThreadEvents {
    /// `None` where this thread can't count.
    group: Option<EventGroup>,
    /// As many events as there are.
    events: usize,
    /// In the order of the open regions; `None` where it couldn't be read.
    starts: Vec<Option<Readings>>,
}

impl ThreadEvents {
    /// Opens events on this thread; `None` where none are wanted.
    pub(super) fn new(events: &[CountedEvent]) -> Option<Self> {
        static ONCE: Once = Once::new();
        let first = events.first()?;
        let group = EventGroup::open(events);
        if let Err(error) = &group {
            ONCE.call_once(|| {
                say(&format!(
                    "a thread can't count: {}; its calls are missing from the counts (told once)",
                    why(first, error)
                ));
            });
        }
        Some(Self { group: group.ok(), events: events.len(), starts: Vec::with_capacity(16) })
    }

    /// What is counted so far.
    #[inline]
    pub(super) fn read(&self) -> Option<Readings> {
        self.group.as_ref().and_then(EventGroup::read)
    }

    /// Begins to count in a region that is opened. One that was suspended goes on with what it had, if that is known.
    #[inline(never)]
    pub(super) fn begin(&mut self, before: Option<&Option<Readings>>) {
        let start = match before {
            None => self.read(),
            Some(before) => before.as_ref().and_then(|before| Some(self.read()?.since(before))),
        };
        self.starts.push(start);
    }

    /// What was counted in an open region until now.
    #[inline]
    pub(super) fn end(&mut self, place: usize, now: Option<Readings>) -> Option<Readings> {
        let start = self.starts.remove(place)?;
        Some(now?.since(&start))
    }

    /// Adds what was counted in a call that took so long, if it was.
    #[inline]
    pub(super) fn count(&self, node: &Node, counted: Option<&Readings>, ns: u64) {
        for (place, cell) in node.events.iter().enumerate().take(self.events) {
            match counted {
                Some(counted) => add(cell, counted.values[place], counted.enabled_ns, counted.running_ns),
                // It was to be counted all the time, and wasn't.
                None => add_missing(cell, ns),
            }
        }
    }

    /// Gives up what a forked child has of its parent's events.
    pub(super) fn abandon(self) {
        self.group.into_iter().for_each(EventGroup::abandon);
    }
}

/// Adds a call's count.
#[inline]
fn add(cell: &EventCell, count: u64, enabled_ns: u64, running_ns: u64) {
    if running_ns == 0 && enabled_ns > 0 {
        return add_missing(cell, enabled_ns);
    }
    let is_whole = enabled_ns == running_ns;
    let scaled = if is_whole { count as f64 } else { count as f64 * (enabled_ns as f64 / running_ns as f64) };
    let rounded = if is_whole { count } else { scaled.round() as u64 };
    grow(&cell.sum, count);
    grow_float(&cell.scaled, scaled);
    grow_float(&cell.squares, scaled * scaled);
    grow_float(&cell.squares_per_ns, count as f64 * count as f64 / running_ns.max(1) as f64);
    grow(&cell.enabled_ns, enabled_ns);
    grow(&cell.running_ns, running_ns);
    lower(&cell.min, rounded);
    raise(&cell.max, rounded);
    grow(&cell.calls, 1);
}

fn add_missing(cell: &EventCell, enabled_ns: u64) {
    grow(&cell.enabled_ns, enabled_ns);
    grow(&cell.missing, 1);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    fn floats(cell: &EventCell) -> [f64; 3] {
        [&cell.scaled, &cell.squares, &cell.squares_per_ns].map(|sum| f64::from_bits(sum.load(Relaxed)))
    }

    #[test]
    fn calls_that_are_counted_all_the_time_in_part_and_not_at_all() {
        let cell = EventCell::default();
        cell.min.store(u64::MAX, Relaxed);
        add(&cell, 30, 10, 10);
        // Half of its time: 40 stand for 80.
        add(&cell, 40, 20, 10);
        add(&cell, 0, 50, 0);
        let sums = [&cell.calls, &cell.missing, &cell.sum, &cell.min, &cell.max, &cell.enabled_ns, &cell.running_ns];
        assert_eq!(sums.map(|sum| sum.load(Relaxed)), [2, 1, 70, 30, 80, 80, 20]);
        // 900 and 1600 in 10 ns each.
        assert_eq!(floats(&cell), [110.0, 7300.0, 250.0]);
    }

    #[test]
    fn a_call_too_short_for_the_clock_counts() {
        let cell = EventCell::default();
        add(&cell, 3, 0, 0);
        assert_eq!((cell.calls.load(Relaxed), cell.missing.load(Relaxed)), (1, 0));
        assert_eq!(floats(&cell), [3.0, 9.0, 9.0]);
    }
}
