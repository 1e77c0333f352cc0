//! Measures what an enter and a leave cost.

use std::ffi::{CStr, c_char};
use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use super::{Entry, RECENT, Thread, ThreadEvents, with_known};
use crate::c::{perfprop_begin, perfprop_begin_recursive, perfprop_end};
use crate::clock::now;
use crate::events::Readings;
use crate::layout::{EVENTS, Header, Node};
use crate::region::{Region, enter_recursive, region};
use crate::table::generation;

/// Rounds of the measurement, and markers in each.
const ROUNDS: usize = 16;
const MARKERS: u32 = 32;

const NAME: &str = "(marker)";
const C_NAME: &CStr = c"(marker)";
static MARKER: Region = Region::new(NAME);

/// What a marker adds to what is around it: the least of all rounds.
struct Rounds {
    ns: f64,
    counts: [f64; EVENTS],
    /// By event, what each round that was counted adds.
    rounds: [Vec<f64>; EVENTS],
}

/// Measures it once in a process, on the thread that is the first, in the way in which that enters its first region. All that
/// a marker does is in it, so that the thread's state isn't taken meanwhile.
pub(super) fn measure(entry: Entry) {
    /// One more than the generation that was measured.
    static MEASURED: AtomicU32 = AtomicU32::new(0);
    let generation = generation() + 1;
    let known = with_known(|thread| (thread.table, thread.slot));
    let Some((table, Some(slot))) = known.filter(|(table, _)| table.records()) else { return };
    if MEASURED.swap(generation, Relaxed) == generation {
        return;
    }
    table.begin_measuring(slot);
    let outer = Rounds::of(|| mark(entry));
    let open = MARKER.enter();
    let again = Rounds::of(|| mark_again(entry));
    drop(open);
    with_known(|thread| end(thread, slot, &outer, &again));
    table.end_measuring(slot);
}

/// Enters and leaves a region as the program does.
fn mark(entry: Entry) {
    match entry {
        Entry::Static => drop(MARKER.enter()),
        Entry::Named => drop(region(NAME)),
        Entry::C => {
            // The compiler knows neither in a program that calls them.
            let begin: extern "C" fn(*const c_char) -> u64 = black_box(perfprop_begin);
            let end: extern "C" fn(u64) = black_box(perfprop_end);
            end(begin(C_NAME.as_ptr()));
        }
    }
}

/// Does the same where the region is open, and the call is counted as one more.
fn mark_again(entry: Entry) {
    match entry {
        Entry::Static => drop(MARKER.enter_recursive()),
        Entry::Named => drop(enter_recursive(NAME, entry)),
        Entry::C => {
            let begin: extern "C" fn(*const c_char) -> u64 = black_box(perfprop_begin_recursive);
            let end: extern "C" fn(u64) = black_box(perfprop_end);
            end(begin(C_NAME.as_ptr()));
        }
    }
}

impl Rounds {
    fn of(mark: impl Fn()) -> Self {
        let mut all = Self { ns: f64::INFINITY, counts: [f64::INFINITY; EVENTS], rounds: Default::default() };
        (0..ROUNDS).for_each(|_| all.round(&mark));
        all
    }

    fn round(&mut self, mark: &impl Fn()) {
        let read = || with_known(|thread| thread.events.as_ref().and_then(ThreadEvents::read)).flatten();
        let (counted, start) = (read(), now());
        for _ in 0..MARKERS {
            mark();
        }
        let end = now();
        // The second reading of the clock is in no marker, or in all of them.
        let readings = now() - end;
        self.ns = self.ns.min((end - start).saturating_sub(readings) as f64 / f64::from(MARKERS));
        if let (Some(before), Some(after)) = (counted, read()) {
            let Readings { values, enabled_ns, running_ns } = after.since(&before);
            // What is counted for a part of the time says nothing exact.
            if enabled_ns == running_ns {
                let of_one = values.map(|value| value as f64 / f64::from(MARKERS));
                self.counts.iter_mut().zip(of_one).for_each(|(least, value)| *least = least.min(value));
                self.rounds.iter_mut().zip(of_one).for_each(|(rounds, value)| rounds.push(value));
            }
        }
    }
}

/// Keeps what was measured, and takes away what it was measured with.
fn end(thread: &mut Thread, slot: u32, outer: &Rounds, again: &Rounds) {
    let name = thread.table.name(NAME);
    let node = thread.node(name);
    if node != 0 {
        store(thread.table.memory.header(), thread.table.memory.node(node), outer, again);
        thread.table.drop_node(slot, node);
    }
    thread.recent = [(0, 0, 0); RECENT];
    thread.nodes.clear();
}

fn store(header: &Header, node: &Node, outer: &Rounds, again: &Rounds) {
    // Recording ended meanwhile: of no call nothing is known.
    if node.calls.load(Relaxed) == 0 {
        return;
    }
    let keep = |place: &AtomicU64, value: f64| place.store(value.to_bits(), Relaxed);
    let inner = node.min_ns.load(Relaxed) as f64;
    keep(&header.inner_ns, inner);
    keep(&header.outer_ns, outer.ns.max(inner));
    keep(&header.again_ns, again.ns);
    for (place, cell) in node.events.iter().enumerate() {
        let counted = [outer.counts[place], again.counts[place]].iter().all(|count| count.is_finite());
        if counted && cell.calls.load(Relaxed) > 0 {
            let inner = cell.min.load(Relaxed) as f64;
            keep(&header.event_inner[place], inner);
            keep(&header.event_outer[place], outer.counts[place].max(inner));
            keep(&header.event_again[place], again.counts[place]);
            keep(&header.event_excess[place], excess(&outer.rounds[place]));
        }
    }
}

/// How much more than in the least of the rounds a marker adds in three quarters of them. An event that it doesn't always add
/// to has none: rounds touch pages for the first time, which markers don't do later.
fn excess(rounds: &[f64]) -> f64 {
    let mut sorted = rounds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.first() {
        Some(&least) if least > 0.0 => sorted[(sorted.len() - 1) * 3 / 4] - least,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_entered_in_each_way_that_programs_have() {
        crate::record(true);
        std::thread::spawn(|| {
            let calls = || with_known(|thread| thread.calls).unwrap_or_default();
            drop(region("first"));
            for entry in [Entry::Static, Entry::Named, Entry::C] {
                let before = calls();
                mark(entry);
                assert_eq!((calls(), with_known(|thread| thread.open.len())), (before + 1, Some(0)), "{entry:?}");
            }
            let open = MARKER.enter();
            let (node, before) = (with_known(|thread| thread.open[0].node).unwrap_or_default(), calls());
            [Entry::Static, Entry::Named, Entry::C].into_iter().for_each(mark_again);
            let again = with_known(|thread| thread.table.memory.node(node).again.load(Relaxed));
            assert_eq!((calls(), again), (before, Some(3)), "calls of an open region enter nothing");
            drop(open);
        })
        .join()
        .ok()
        .unwrap_or_else(|| panic!("a way counts otherwise"));
    }

    #[test]
    fn what_most_rounds_add_more_than_the_least_of_them() {
        assert_eq!((excess(&[]), excess(&[7.0])), (0.0, 0.0));
        assert_eq!(excess(&[90.0, 1.0, 3.0, 2.0, 5.0]), 4.0);
        let faults: Vec<f64> = (0..ROUNDS).map(|round| f64::from(u8::from(round < 5))).collect();
        assert_eq!(excess(&faults), 0.0);
    }
}
