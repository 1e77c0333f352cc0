//! Measures what an enter and a leave cost.

use std::sync::Once;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::{Call, RECENT, Thread, ThreadEvents};
use crate::clock::now;
use crate::events::Readings;
use crate::layout::{EVENTS, EventCell, Header, Node};

/// Rounds of the measurement, and markers in each.
const ROUNDS: usize = 16;
const MARKERS: u32 = 32;

/// What a marker adds to the region around it: the least of all rounds.
struct Outer {
    ns: f64,
    counts: [f64; EVENTS],
    /// Counts of all rounds together, and how many rounds there were.
    sums: [f64; EVENTS],
    counted_rounds: u32,
}

/// Measures it once in a process, on the thread that is the first.
pub(super) fn measure(thread: &mut Thread) {
    static ONCE: Once = Once::new();
    static GENERATION: AtomicU32 = AtomicU32::new(0);
    let mut is_first = GENERATION.swap(thread.generation, Relaxed) != thread.generation;
    ONCE.call_once(|| is_first = true);
    let Some(slot) = thread.slot.filter(|_| is_first) else { return };
    thread.table.begin_measuring(slot);
    let name = thread.table.name("(marker)");
    let mut outer =
        Outer { ns: f64::INFINITY, counts: [f64::INFINITY; EVENTS], sums: [0.0; EVENTS], counted_rounds: 0 };
    for _ in 0..ROUNDS {
        outer.round(thread, name);
    }
    let node = thread.node(name);
    if node != 0 {
        outer.store(thread.table.memory.header(), thread.table.memory.node(node));
        thread.table.drop_node(slot, node);
    }
    thread.recent = [(0, 0, 0); RECENT];
    thread.nodes.clear();
    thread.table.end_measuring(slot);
}

impl Outer {
    fn round(&mut self, thread: &mut Thread, name: u32) {
        let read = |thread: &Thread| thread.events.as_ref().and_then(ThreadEvents::read);
        let (counted, start) = (read(thread), now());
        for _ in 0..MARKERS {
            let _ = thread.enter(name, Call::Plain);
            thread.close(name, now());
        }
        let end = now();
        self.ns = self.ns.min((end - start) as f64 / f64::from(MARKERS));
        if let (Some(before), Some(after)) = (counted, read(thread)) {
            let Readings { values, enabled_ns, running_ns } = after.since(&before);
            // What is counted for a part of the time says nothing exact.
            if enabled_ns == running_ns {
                let of_one = values.map(|value| value as f64 / f64::from(MARKERS));
                self.counts.iter_mut().zip(of_one).for_each(|(least, value)| *least = least.min(value));
                self.sums.iter_mut().zip(of_one).for_each(|(sum, value)| *sum += value);
                self.counted_rounds += 1;
            }
        }
    }

    /// How much more than the least a marker added on average, inside or in all, whichever is more: what is taken off may be
    /// too little by that.
    fn excess(&self, place: usize, cell: &EventCell, inner: f64) -> f64 {
        let mean_inner = cell.sum.load(Relaxed) as f64 / cell.calls.load(Relaxed) as f64;
        let mean_outer = self.sums[place] / f64::from(self.counted_rounds.max(1));
        (mean_inner - inner).max(mean_outer - self.counts[place]).max(0.0)
    }

    fn store(&self, header: &Header, node: &Node) {
        let inner = node.min_ns.load(Relaxed) as f64;
        header.inner_ns.store(inner.to_bits(), Relaxed);
        header.outer_ns.store(self.ns.max(inner).to_bits(), Relaxed);
        for (place, cell) in node.events.iter().enumerate() {
            if self.counts[place].is_finite() && cell.calls.load(Relaxed) > 0 {
                let inner = cell.min.load(Relaxed) as f64;
                header.event_inner[place].store(inner.to_bits(), Relaxed);
                header.event_outer[place].store(self.counts[place].max(inner).to_bits(), Relaxed);
                let excess = self.excess(place, cell, inner);
                header.event_excess[place].store(excess.to_bits(), Relaxed);
            }
        }
    }
}
