//! Counts events in the regions of a thread.

use std::sync::Once;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

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

    /// Adds what was counted in a call that took so long, if it was. The call ended when the events had waited for
    /// `waited_ns`; `None` of one that was suspended, which is a stay by itself.
    #[inline]
    pub(super) fn count(&self, node: &Node, counted: Option<&Readings>, waited_ns: Option<u64>, ns: u64) {
        for (place, cell) in node.events.iter().enumerate().take(self.events) {
            match counted {
                Some(counted) => {
                    add(cell, counted.values[place], (counted.enabled_ns, counted.running_ns), waited_ns);
                }
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
fn add(cell: &EventCell, count: u64, (enabled_ns, running_ns): (u64, u64), waited_ns: Option<u64>) {
    if running_ns == 0 && enabled_ns > 0 {
        return add_missing(cell, enabled_ns);
    }
    let is_whole = enabled_ns == running_ns;
    let scaled = if is_whole { count as f64 } else { count as f64 * (enabled_ns as f64 / running_ns as f64) };
    let rounded = if is_whole { count } else { scaled.round() as u64 };
    grow(&cell.sum, count);
    grow_float(&cell.scaled, scaled);
    grow_float(&cell.squares, scaled * scaled);
    grow(&cell.enabled_ns, enabled_ns);
    grow(&cell.running_ns, running_ns);
    lower(&cell.min, rounded);
    raise(&cell.max, rounded);
    grow(&cell.calls, 1);
    add_to_stay(cell, count, running_ns, waited_ns);
}

/// Adds a call's count to the stay on the counters in which it ended. Calls of one stay are alike, as what a program does
/// next is like what it did last: as so many samples of what it does at other times, they would seem to say more than they do.
#[inline]
fn add_to_stay(cell: &EventCell, count: u64, running_ns: u64, waited_ns: Option<u64>) {
    /// What no events have waited for.
    const NEVER: u64 = u64::MAX;
    let stays = cell.stays.load(Relaxed);
    let goes_on = stays > 0 && waited_ns == Some(cell.stay_waited_ns.load(Relaxed));
    let before = |value: &AtomicU64| if goes_on { value.load(Relaxed) } else { 0 };
    let (sum, running) = (before(&cell.stay_sum), before(&cell.stay_running_ns));
    let square_per_ns = |sum: u64, running: u64| sum as f64 * sum as f64 / running.max(1) as f64;
    let (new_sum, new_running) = (sum.saturating_add(count), running.saturating_add(running_ns));
    grow_float(&cell.squares_per_ns, square_per_ns(new_sum, new_running) - square_per_ns(sum, running));
    cell.stay_sum.store(new_sum, Relaxed);
    cell.stay_running_ns.store(new_running, Relaxed);
    cell.stay_waited_ns.store(waited_ns.unwrap_or(NEVER), Relaxed);
    cell.stays.store(stays + u64::from(!goes_on), Relaxed);
}

fn add_missing(cell: &EventCell, enabled_ns: u64) {
    grow(&cell.enabled_ns, enabled_ns);
    grow(&cell.missing, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(cell: &EventCell) -> [f64; 3] {
        [&cell.scaled, &cell.squares, &cell.squares_per_ns].map(|sum| f64::from_bits(sum.load(Relaxed)))
    }

    #[test]
    fn calls_that_are_counted_all_the_time_in_part_and_not_at_all() {
        let cell = EventCell::default();
        cell.min.store(u64::MAX, Relaxed);
        add(&cell, 30, (10, 10), Some(0));
        // Half of its time: 40 stand for 80.
        add(&cell, 40, (20, 10), Some(10));
        add(&cell, 0, (50, 0), Some(60));
        let sums = [&cell.calls, &cell.missing, &cell.sum, &cell.min, &cell.max, &cell.enabled_ns, &cell.running_ns];
        assert_eq!(sums.map(|sum| sum.load(Relaxed)), [2, 1, 70, 30, 80, 80, 20]);
        // 900 and 1600 in 10 ns each.
        assert_eq!((floats(&cell), cell.stays.load(Relaxed)), ([110.0, 7300.0, 250.0], 2));
    }

    #[test]
    fn calls_that_end_in_one_stay_on_the_counters_are_one_sample() {
        let cell = EventCell::default();
        let stays = || (cell.stays.load(Relaxed), f64::from_bits(cell.squares_per_ns.load(Relaxed)));
        // 10 and 30 in 10 ns each: 40 in 20 ns.
        add(&cell, 10, (10, 10), Some(70));
        assert_eq!(stays(), (1, 10.0));
        add(&cell, 30, (10, 10), Some(70));
        assert_eq!(stays(), (1, 80.0));
        // The events waited: 20 in 10 ns more.
        add(&cell, 20, (10, 10), Some(90));
        assert_eq!(stays(), (2, 120.0));
        // A call that was suspended is one by itself, as is the next.
        add(&cell, 20, (10, 10), None);
        add(&cell, 20, (10, 10), Some(90));
        add(&cell, 20, (10, 10), None);
        assert_eq!(stays(), (5, 240.0));
        // What wasn't counted is in none.
        add(&cell, 0, (10, 0), Some(100));
        assert_eq!(stays(), (5, 240.0));
    }

    #[test]
    fn a_call_too_short_for_the_clock_counts() {
        let cell = EventCell::default();
        add(&cell, 3, (0, 0), Some(0));
        assert_eq!((cell.calls.load(Relaxed), cell.missing.load(Relaxed)), (1, 0));
        assert_eq!(floats(&cell), [3.0, 9.0, 9.0]);
    }
}
