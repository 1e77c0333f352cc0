//! Turns what regions counted into rows, without what the markers cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::event_totals::{EventSums, EventTotal, Within, add_events};
use crate::histogram::quantile;
use crate::layout::{BUCKETS, COUNTERS};
use crate::markers::{MarkedCalls, MarkerCost};
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
    /// What the markers of its calls, and of those within, took by what they took when they were measured. It was taken off
    /// the time as far as that stays that of regions within.
    pub markers_ns: f64,
    /// The part of it that was taken off the time in the region alone.
    pub self_markers_ns: f64,
    /// Runs backwards.
    pub reverse_calls: u64,
    /// Their time.
    pub reverse_ns: f64,
    /// Name of a region that was opened in a call of this one, was open when it ended, and still is; `None` where there is
    /// none. If it was left without an end, as by `longjmp`, too much was taken off the time in this region alone.
    pub outlasted_by: Option<String>,
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
    /// A time that half of the calls stay below, or the longest: the end of a bucket, which is at most a quarter of it wide.
    pub p50: f64,
    /// A time that 99 % of them stay below, in the same way.
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
            p50: without(quantile(histogram, 0.5)?.min(self.max)),
            p99: without(quantile(histogram, 0.99)?.min(self.max)),
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
        self.self_markers_ns += derived.self_markers_ns;
        self.reverse_calls = self.reverse_calls.saturating_add(node.reverse_calls);
        self.reverse_ns += node.reverse_ns as f64;
        if self.outlasted_by.is_none() {
            self.outlasted_by.clone_from(&node.outlasted_by);
        }
        self.distribution.add(node);
    }

    fn finish(&mut self, marker: &Marker) {
        self.calls_ns = self.distribution.spread(self.calls, self.forward_ns, marker);
    }

    /// Forward and backward.
    pub fn total_ns(&self) -> f64 {
        self.forward_ns + self.reverse_ns
    }

    /// How well the time forward is known.
    pub fn certainty(&self) -> Certainty {
        Certainty::of(self.forward_ns, self.markers_ns)
    }

    /// How well the time in the region alone is known.
    pub fn self_certainty(&self) -> Certainty {
        Certainty::of_self(self.self_ns, self.self_markers_ns, self.outlasted_by.as_deref())
    }

    /// The total of what an event counted in these calls; `None` where it was never counted.
    pub fn event(&self, sums: &EventSums) -> Option<EventTotal> {
        sums.total_of(self.calls, self.outlasted_by.as_deref())
    }
}

/// How well a time is known, off which what the markers took was taken. A marker takes some percent more or less than when it
/// was measured, as what is around it differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Most of what was measured is left.
    Clear,
    /// Less than half of it is left.
    Rough,
    /// Nothing is left, which doesn't say that the time is 0; or it isn't known whether too much was taken off.
    Unknown,
}

impl Certainty {
    /// That of a time, off which so much was to be taken.
    pub fn of(left_ns: f64, markers_ns: f64) -> Self {
        match left_ns {
            left if markers_ns <= left => Self::Clear,
            left if left > 0.0 => Self::Rough,
            _ => Self::Unknown,
        }
    }

    /// The same of the time in a region alone, which isn't known while this region has outlasted it.
    pub fn of_self(left_ns: f64, markers_ns: f64, outlasted_by: Option<&str>) -> Self {
        if outlasted_by.is_some() { Self::Unknown } else { Self::of(left_ns, markers_ns) }
    }
}

/// Says that the time alone isn't known of regions that others have outlasted; both are lists of names.
pub fn outlasted_words(figure: &str, outlasted: &str, by: &str) -> String {
    format!("{figure} of {outlasted} is not known: in a call that has ended, {by} began and has not ended")
}

/// Times of a node without the markers'.
#[derive(Clone, Debug, Default)]
struct Derived {
    total_ns: f64,
    self_ns: f64,
    markers_ns: f64,
    self_markers_ns: f64,
    /// The times of the regions directly within.
    children_ns: f64,
    within: Within,
}

/// The times of all nodes without what markers cost: their own, and those of all regions within. Regions within come first:
/// no more is taken off than leaves their times, as a marker may take less than when it was measured.
fn derived(snapshot: &Snapshot) -> Vec<Derived> {
    let cost = MarkerCost::from(&snapshot.marker);
    let mut found = vec![Derived::default(); snapshot.nodes.len()];
    let open = open(snapshot);
    for place in innermost_first(&snapshot.nodes) {
        let (node, each) = (&snapshot.nodes[place], &mut found[place]);
        let (calls, measured) = (MarkedCalls::of(node), node.total_ns as f64);
        each.markers_ns = calls.within(&cost) + each.within.calls.around(&cost);
        each.self_markers_ns = calls.within(&cost) + each.within.children.beside(&cost);
        let outside = node.outside_ns as f64;
        // While a region is open, those within have counted more already than it has.
        let least = if open.contains(&place) { 0.0 } else { (each.children_ns - outside).min(measured) };
        each.total_ns = (measured - each.markers_ns).max(least).max(0.0);
        each.self_ns = (each.total_ns + outside - each.children_ns).max(0.0);
        let (total_ns, of_all) = (each.total_ns, calls.plus(each.within.calls));
        if let Some(parent) = node.parent {
            let around = &mut found[parent];
            around.children_ns += total_ns;
            around.within.calls = around.within.calls.plus(of_all);
            around.within.add_child(calls, &node.events);
        }
    }
    found
}

/// The places of all nodes, each before the one around it.
fn innermost_first(nodes: &[NodeCounts]) -> Vec<usize> {
    let depth = |place: usize| std::iter::successors(nodes[place].parent, |&parent| nodes[parent].parent);
    let mut places: Vec<usize> = (0..nodes.len()).collect();
    places.sort_by_cached_key(|&place| std::cmp::Reverse(depth(place).take(nodes.len()).count()));
    places
}

/// The places of the nodes that are open on their threads.
fn open(snapshot: &Snapshot) -> BTreeSet<usize> {
    let of_thread = |innermost| std::iter::successors(Some(innermost), |&place: &usize| snapshot.nodes[place].parent);
    let innermost = snapshot.threads.iter().filter_map(|thread| thread.open);
    innermost.flat_map(|innermost| of_thread(innermost).take(snapshot.nodes.len())).collect()
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
            add_events(&mut row.events, MarkedCalls::of(node), &node.events, &derived.within, self);
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
            add_events(&mut row.events, MarkedCalls::of(node), &node.events, &derived.within, self);
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
    use crate::snapshot::{EventCounts, ThreadRegions};

    /// A region with calls that took so long, so many of them while it was open.
    fn node(parent: Option<usize>, name: &str, (calls, again): (u64, u64), total_ns: u64) -> NodeCounts {
        NodeCounts {
            number: 1,
            thread: 0,
            parent,
            name: name.into(),
            phase: String::new(),
            outlasted_by: None,
            calls,
            again,
            recorded: 0,
            total_ns,
            outside_ns: 0,
            min_ns: 1,
            max_ns: total_ns,
            squares: 0.0,
            reverse_calls: 0,
            reverse_ns: 0,
            counters: [0; COUNTERS],
            events: Vec::new(),
            histogram: Box::new([0; BUCKETS]),
        }
    }

    /// The regions' time in all and in them alone, with how well they are known.
    fn times(nodes: Vec<NodeCounts>, threads: Vec<ThreadRegions>) -> Vec<[(f64, Certainty); 2]> {
        let marker = Marker { inner_ns: 20.0, outer_ns: 90.0, again_ns: 40.0 };
        let snapshot = Snapshot { nodes, threads, marker, ..Snapshot::default() };
        let of_row =
            |PathRow { times, .. }| [(times.forward_ns, times.certainty()), (times.self_ns, times.self_certainty())];
        snapshot.paths().into_iter().map(of_row).collect()
    }

    #[test]
    fn calls_within_calls_take_what_they_take_off_their_region_and_those_around() {
        let nodes = vec![node(None, "parent", (1, 0), 40_100), node(Some(0), "walk", (1001, 1000), 40_020)];
        let [parent, walk] = times(nodes, Vec::new())[..] else { panic!("two rows") };
        // 20 and 1000 times 40 off the one; these, 90 and the parent's 20 off the other: 20 less than what there is.
        assert_eq!(walk, [(0.0, Certainty::Unknown); 2]);
        assert_eq!(parent, [(0.0, Certainty::Unknown); 2]);
        let nodes = vec![node(None, "parent", (1, 0), 140_210), node(Some(0), "walk", (1001, 1000), 140_020)];
        assert_eq!(
            times(nodes, Vec::new()),
            [[(100_100.0, Certainty::Clear), (100.0, Certainty::Clear)], [(100_000.0, Certainty::Clear); 2],]
        );
    }

    #[test]
    fn no_region_has_less_time_than_those_within() {
        let nodes = || vec![node(None, "outer", (1, 0), 10_000), node(Some(0), "leaf", (100, 0), 5_000)];
        // 100 times 90 off 10,000 would leave less than the 3,000 of the leaf.
        let [outer, leaf] = times(nodes(), Vec::new())[..] else { panic!("two rows") };
        assert_eq!(leaf, [(3_000.0, Certainty::Clear); 2]);
        assert_eq!(outer, [(3_000.0, Certainty::Rough), (0.0, Certainty::Unknown)]);
        // While the outer one is open again, the leaf is ahead of it.
        let thread = ThreadRegions { tid: 0, runs: true, open: Some(0) };
        assert_eq!(times(nodes(), vec![thread])[0][0], (980.0, Certainty::Rough));
    }

    #[test]
    fn sums_of_what_a_program_made_up_are_the_most_there_are() {
        let node = |parent| NodeCounts {
            recorded: u64::MAX,
            outside_ns: i64::MIN,
            reverse_calls: u64::MAX,
            reverse_ns: u64::MAX,
            counters: [u64::MAX; COUNTERS],
            events: vec![EventCounts { calls: u64::MAX, sum: u64::MAX, ..EventCounts::default() }],
            histogram: Box::new([u32::MAX; BUCKETS]),
            ..node(parent, "x", (u64::MAX, 1), u64::MAX)
        };
        let nodes = vec![node(None), node(Some(0)), node(Some(0)), node(Some(1))];
        let snapshot = Snapshot { nodes, ..Snapshot::default() };
        let rows = snapshot.rows();
        let of_row = |row: &Row| (row.times.calls, row.times.recorded, row.times.reverse_calls, row.counters);
        assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), [(u64::MAX, u64::MAX, u64::MAX, [u64::MAX; COUNTERS])]);
        assert_eq!(snapshot.paths().len(), 3);
    }
}
