//! Turns what regions counted into rows, without what the markers cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::event_totals::{EventSums, Within, add_events};
use crate::histogram::quantile;
use crate::layout::{BUCKETS, COUNTERS};
use crate::snapshot::{Marker, NodeCounts, Snapshot};

/// The phase whose calls a row counts apart as well.
pub const WARM_UP: &str = "warmup";

/// What a region counted on a thread, wherever it was entered.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the region.
    pub name: String,
    /// The kernel's number of the thread; 0 for all those that have ended and share a row.
    pub thread: u32,
    /// Its calls and times.
    pub times: Times,
    /// The part of them that was entered in the phase [`WARM_UP`].
    pub warm_up: Times,
    /// What the program counted, in the order of [`Snapshot::counters`].
    pub counters: [u64; COUNTERS],
    /// What events counted, in the order of [`Snapshot::events`].
    pub events: Vec<EventSums>,
}

/// What a region counted on a thread below other regions, in a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRow {
    /// Names of the regions, the outermost first.
    pub path: Vec<String>,
    /// The kernel's number of the thread; 0 for all those that have ended and share a row.
    pub thread: u32,
    /// The phase; empty for none.
    pub phase: String,
    /// Its calls and times.
    pub times: Times,
    /// What the program counted.
    pub counters: [u64; COUNTERS],
    /// What events counted, in the order of [`Snapshot::events`].
    pub events: Vec<EventSums>,
}

/// Calls, and what they took, in nanoseconds, without what the markers cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Calls that ended.
    pub calls: u64,
    /// Those that recorded operations for a run backwards.
    pub recorded: u64,
    /// Time in the region, with that of regions within.
    pub forward_ns: f64,
    /// Time in the region alone.
    pub self_ns: f64,
    /// What the markers of its calls, and of those within, took, which was taken off the time.
    pub markers_ns: f64,
    /// Runs backwards.
    pub reverse_calls: u64,
    /// Their time.
    pub reverse_ns: f64,
    /// The spread of calls; `None` without a call.
    pub calls_ns: Option<Spread>,
    distribution: Distribution,
}

/// How the times of calls differ, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Mean, without the markers of regions within. They are in all that follows.
    pub mean: f64,
    /// Sample variance; `None` of one call.
    pub variance: Option<f64>,
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// The time that half of the calls stay below, at most an eighth off.
    pub p50: f64,
    /// The time that 99 % of them stay below.
    pub p99: f64,
}

/// What spreads follow from: sums over calls, with the markers'.
#[derive(Clone, Debug, Default, PartialEq)]
struct Distribution {
    total: f64,
    squares: f64,
    min: f64,
    max: f64,
    histogram: Vec<u32>,
}

impl Distribution {
    fn add(&mut self, node: &NodeCounts) {
        if node.calls == 0 {
            return;
        }
        if self.histogram.is_empty() {
            *self = Self { min: f64::INFINITY, histogram: vec![0; BUCKETS], ..Self::default() };
        }
        self.total += node.total_ns as f64;
        self.squares += node.squares;
        (self.min, self.max) = (self.min.min(node.min_ns as f64), self.max.max(node.max_ns as f64));
        self.histogram.iter_mut().zip(node.histogram.iter()).for_each(|(sum, calls)| *sum = sum.saturating_add(*calls));
    }

    fn spread(&self, calls: u64, forward_ns: f64, marker: &Marker) -> Option<Spread> {
        let histogram: &[u32; BUCKETS] = self.histogram.as_slice().try_into().ok()?;
        let n = calls as f64;
        let without = |ns: f64| (ns - marker.inner_ns).max(0.0);
        let mean = self.total / n;
        // Rounding may leave a little less than nothing.
        let variance = (calls > 1).then(|| ((self.squares - n * mean * mean) / (n - 1.0)).max(0.0));
        Some(Spread {
            mean: forward_ns / n,
            variance,
            min: without(self.min),
            max: without(self.max),
            p50: without(quantile(histogram, 0.5)?.max(self.min).min(self.max)),
            p99: without(quantile(histogram, 0.99)?.max(self.min).min(self.max)),
        })
    }
}

impl Times {
    fn add(&mut self, node: &NodeCounts, derived: &Derived) {
        // The numbers are the program's, which may write anything into memory that it shares.
        self.calls = self.calls.saturating_add(node.calls);
        self.recorded = self.recorded.saturating_add(node.recorded);
        self.forward_ns += derived.total_ns;
        self.self_ns += derived.self_ns;
        self.markers_ns += derived.markers_ns;
        self.reverse_calls = self.reverse_calls.saturating_add(node.reverse_calls);
        self.reverse_ns += node.reverse_ns as f64;
        self.distribution.add(node);
    }

    fn finish(&mut self, marker: &Marker) {
        self.calls_ns = self.distribution.spread(self.calls, self.forward_ns, marker);
    }

    /// Forward and backward.
    pub fn total_ns(&self) -> f64 {
        self.forward_ns + self.reverse_ns
    }
}

/// Times of a node without the markers'.
#[derive(Clone, Debug, Default)]
struct Derived {
    total_ns: f64,
    self_ns: f64,
    markers_ns: f64,
    within: Within,
}

/// The times of all nodes without what markers cost: their own, and those of all regions within.
fn derived(snapshot: &Snapshot) -> Vec<Derived> {
    let mut found = vec![Derived::default(); snapshot.nodes.len()];
    for node in &snapshot.nodes {
        let mut above = node.parent;
        for _ in 0..snapshot.nodes.len() {
            let Some(parent) = above else { break };
            let within = &mut found[parent].within.calls;
            *within = within.saturating_add(node.calls);
            above = snapshot.nodes[parent].parent;
        }
    }
    for (each, node) in found.iter_mut().zip(&snapshot.nodes) {
        let (inner, outer) = (snapshot.marker.inner_ns, snapshot.marker.outer_ns);
        each.markers_ns = node.calls as f64 * inner + each.within.calls as f64 * outer;
        each.total_ns = (node.total_ns as f64 - each.markers_ns).max(0.0);
        each.self_ns = each.total_ns + node.outside_ns as f64;
    }
    for (place, node) in snapshot.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            found[parent].self_ns -= found[place].total_ns;
            found[parent].within.add_child(node.calls, &node.events);
        }
    }
    // What a program made up, and what markers cost where regions overlap, may leave less than nothing.
    found.iter_mut().for_each(|each| each.self_ns = each.self_ns.max(0.0));
    found
}

impl Snapshot {
    /// A row for each name on each thread, by name and thread.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows: BTreeMap<(&str, u32), Row> = BTreeMap::new();
        for (node, derived) in self.nodes.iter().zip(derived(self)).filter(|(node, _)| has_counted(node)) {
            let thread = self.threads.get(node.thread).map_or(0, |thread| thread.tid);
            let row = rows.entry((&node.name, thread)).or_insert_with(|| Row {
                name: node.name.clone(),
                thread,
                times: Times::default(),
                warm_up: Times::default(),
                counters: [0; COUNTERS],
                events: Vec::new(),
            });
            row.times.add(node, &derived);
            if node.phase == WARM_UP {
                row.warm_up.add(node, &derived);
            }
            add_counters(&mut row.counters, &node.counters);
            add_events(&mut row.events, node.calls, &node.events, &derived.within, self);
        }
        let mut rows: Vec<Row> = rows.into_values().collect();
        for row in &mut rows {
            row.times.finish(&self.marker);
            row.warm_up.finish(&self.marker);
        }
        rows
    }

    /// A row for each path on each thread in each phase, parents first.
    pub fn paths(&self) -> Vec<PathRow> {
        self.gathered(|thread| thread)
    }

    /// A row for each path in each phase, whatever threads it was entered on, parents first. Their `thread` is 0.
    pub fn paths_of_all_threads(&self) -> Vec<PathRow> {
        self.gathered(|_| 0)
    }

    /// The paths of which no call has ended on any thread, parents first: of those that are open for the first time, and of
    /// those that were never closed.
    pub fn unended(&self) -> Vec<Vec<String>> {
        let (mut ended, mut entered) = (BTreeSet::new(), BTreeSet::new());
        for (place, node) in self.nodes.iter().enumerate() {
            // The shortest call is that of all, also of those that were counted before somebody watched.
            let has_ended = has_counted(node) || node.min_ns != u64::MAX;
            if has_ended { &mut ended } else { &mut entered }.insert(self.path(place));
        }
        let unended = entered.difference(&ended);
        unended.map(|path| path.iter().map(|&name| name.to_owned()).collect()).collect()
    }

    fn gathered(&self, of_thread: impl Fn(u32) -> u32) -> Vec<PathRow> {
        let mut rows: BTreeMap<(u32, Vec<&str>, &str), PathRow> = BTreeMap::new();
        let all = self.nodes.iter().zip(derived(self)).enumerate().filter(|(_, (node, _))| has_counted(node));
        for (place, (node, derived)) in all {
            let thread = of_thread(self.threads.get(node.thread).map_or(0, |thread| thread.tid));
            let path = self.path(place);
            let row = rows.entry((thread, path.clone(), &node.phase)).or_insert_with(|| PathRow {
                path: path.into_iter().map(str::to_owned).collect(),
                thread,
                phase: node.phase.clone(),
                times: Times::default(),
                counters: [0; COUNTERS],
                events: Vec::new(),
            });
            row.times.add(node, &derived);
            add_counters(&mut row.counters, &node.counters);
            add_events(&mut row.events, node.calls, &node.events, &derived.within, self);
        }
        let mut rows: Vec<PathRow> = rows.into_values().collect();
        rows.iter_mut().for_each(|row| row.times.finish(&self.marker));
        rows
    }
}

fn add_counters(sums: &mut [u64; COUNTERS], counters: &[u64; COUNTERS]) {
    sums.iter_mut().zip(counters).for_each(|(sum, counted)| *sum = sum.saturating_add(*counted));
}

/// A region that is open for the first time, or was opened only to hold others, has counted nothing yet.
fn has_counted(node: &NodeCounts) -> bool {
    node.calls > 0 || node.reverse_calls > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::EventCounts;

    #[test]
    fn sums_of_what_a_program_made_up_are_the_most_there_are() {
        let node = |parent| NodeCounts {
            number: 1,
            thread: 0,
            parent,
            name: "x".into(),
            phase: String::new(),
            calls: u64::MAX,
            recorded: u64::MAX,
            total_ns: u64::MAX,
            outside_ns: i64::MIN,
            min_ns: 0,
            max_ns: u64::MAX,
            squares: 0.0,
            reverse_calls: u64::MAX,
            reverse_ns: u64::MAX,
            counters: [u64::MAX; COUNTERS],
            events: vec![EventCounts { calls: u64::MAX, sum: u64::MAX, ..EventCounts::default() }],
            histogram: Box::new([u32::MAX; BUCKETS]),
        };
        let nodes = vec![node(None), node(Some(0)), node(Some(0)), node(Some(1))];
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        let rows = snapshot.rows();
        let of_row = |row: &Row| (row.times.calls, row.times.recorded, row.times.reverse_calls, row.counters);
        assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), [(u64::MAX, u64::MAX, u64::MAX, [u64::MAX; COUNTERS])]);
        assert_eq!(snapshot.paths().len(), 3);
    }
}
