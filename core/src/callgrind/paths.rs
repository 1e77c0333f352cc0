//! Walks a call graph and shares all costs out over its call paths.
//!
//! Calls that lead back into a recursion are taken out of the graph first; they stay calls, and what
//! functions cost deeper in a recursion stands where it was entered. The graph then has no cycles:
//!
//! ```text
//! part(f→g) = costs(f→g) / sum of costs(·→g) over all callers
//! share(main … f g) = share(main … f) × part(f→g)            1 for a function that nobody calls
//! ```
//!
//! Over all paths to a function its shares add up to 1. Calls are shared out in the same way, by the
//! numbers of calls. Paths are made in the order of what they cost with all below; what lies beyond the
//! last one becomes `(other)`.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::CallGraph;
use super::acyclic::Acyclic;
use crate::profile::{Amount, EventId, Frame, FrameId, FrameKind, Tree};

/// Paths that are made, where the tree holds more.
const MOST: usize = 50_000;

/// A path: that of its caller and one more function.
struct Path {
    caller: Option<usize>,
    function: usize,
    /// Which part of the function's costs is on this path, by event; of its calls last.
    shares: Vec<f64>,
}

/// A path that isn't made yet, and what it costs with all below: its largest part of an event's total.
struct Candidate {
    worth: f64,
    path: Path,
}

impl Candidate {
    /// By worth; of equals the path that was found first is larger.
    fn order(&self, other: &Self) -> Ordering {
        let place = |candidate: &Self| (candidate.path.caller, candidate.path.function);
        self.worth.total_cmp(&other.worth).then_with(|| place(other).cmp(&place(self)))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

/// The paths of a graph.
struct PathBuilder {
    made: Vec<Path>,
    /// Paths for which there was no room.
    cut: Vec<Path>,
    /// The paths to each function.
    of_function: Vec<Vec<usize>>,
}

/// What is counted on a path itself.
#[derive(Clone, Default)]
struct PathCounts {
    own: Vec<u64>,
    calls: u64,
    /// Calls that lead back to a function.
    back: Vec<(usize, u64)>,
}

impl CallGraph {
    /// Adds all costs and calls to a tree, below the frames `above`. `frames` are those of the functions
    /// by number, `events` those of the costs; a cost without one is left out.
    pub fn add_to(&self, tree: &mut Tree, above: &[FrameId], frames: &[FrameId], events: &[Option<EventId>]) {
        let acyclic = Acyclic::new(self);
        let paths = PathBuilder::new(self, &acyclic, MOST.min(tree.options().cap * 3 / 4));
        let (made, cut) = paths.count(self, &acyclic);
        let other = tree.frame(&Frame { kind: FrameKind::Other, ..Frame::function("(other)") });
        let place = tree.sampled();
        let weighed = |own: &[u64]| -> Vec<(EventId, Amount)> {
            let known = events.iter().zip(own).filter(|(_, weight)| **weight > 0);
            known.filter_map(|(event, &weight)| Some(((*event)?, Amount { samples: 0, weight }))).collect()
        };
        for (path, counted) in made.iter().enumerate() {
            let names = paths.names(Some(path), above, frames);
            for &(callee, count) in counted.back.iter().filter(|(_, count)| *count > 0) {
                tree.tally(place, names.iter().copied().chain([frames[callee]]), count, &[]);
            }
            tree.tally(place, names, counted.calls, &weighed(&counted.own));
        }
        for (caller, counted) in cut {
            let weights = weighed(&counted.own);
            if counted.calls > 0 || !weights.is_empty() {
                let names = paths.names(caller, above, frames);
                tree.tally(place, names.into_iter().chain([other]), counted.calls, &weights);
            }
        }
        tree.end(place);
    }
}

impl PathBuilder {
    fn new(graph: &CallGraph, acyclic: &Acyclic, most: usize) -> Self {
        let totals: Vec<f64> = graph.totals().iter().map(|&total| total as f64).collect();
        let candidate = |path: Path| {
            let inclusive = acyclic.inclusive[path.function].iter().zip(&path.shares);
            let of_total =
                |((all, share), total): ((&f64, &f64), &f64)| if *total > 0.0 { all * share / total } else { 0.0 };
            Candidate { worth: inclusive.zip(&totals).map(of_total).fold(0.0, f64::max), path }
        };
        let root = |&function: &usize| Path { caller: None, function, shares: vec![1.0; graph.events + 1] };
        let has_any = |function: usize| acyclic.inclusive[function].iter().any(|&all| all > 0.0);
        let roots = acyclic.roots.iter().filter(|&&function| has_any(function));
        let mut ahead: BinaryHeap<Candidate> = roots.map(root).map(candidate).collect();
        let mut made: Vec<Path> = Vec::new();
        let mut of_function = vec![Vec::new(); acyclic.arcs.len()];
        while let Some(Candidate { path, .. }) = (made.len() < most).then(|| ahead.pop()).flatten() {
            let place = made.len();
            of_function[path.function].push(place);
            let arcs = acyclic.arcs[path.function].iter().filter(|arc| arc.count > 0 || has_any(arc.callee));
            ahead.extend(arcs.map(|arc| {
                let shares = arc.parts.iter().zip(&path.shares).map(|(part, share)| part * share).collect();
                candidate(Path { caller: Some(place), function: arc.callee, shares })
            }));
            made.push(path);
        }
        let cut = ahead.into_sorted_vec().into_iter().rev().map(|candidate| candidate.path).collect();
        Self { made, cut, of_function }
    }

    /// The frames of a path, the outermost first.
    fn names(&self, path: Option<usize>, above: &[FrameId], frames: &[FrameId]) -> Vec<FrameId> {
        let upwards = std::iter::successors(path, |&path| self.made[path].caller);
        let mut names: Vec<_> = upwards.map(|path| frames[self.made[path].function]).collect();
        names.extend(above.iter().rev());
        names.reverse();
        names
    }

    /// Whole numbers for all paths, and for what was cut below each: together, what the graph has.
    fn count(&self, graph: &CallGraph, acyclic: &Acyclic) -> (Vec<PathCounts>, Vec<(Option<usize>, PathCounts)>) {
        let events = graph.events;
        let mut made = vec![PathCounts { own: vec![0; events], ..PathCounts::default() }; self.made.len()];
        // What is on no path that was made, by event; calls last.
        let mut rest = vec![0; events + 1];
        let along = self.by_arc();
        for (function, places) in self.of_function.iter().enumerate() {
            let shares = |event: usize| places.iter().map(move |&place| self.made[place].shares[event]);
            for (event, rest) in rest[..events].iter_mut().enumerate() {
                let (parts, left) = apportion(graph.own[function][event], shares(event));
                places.iter().zip(parts).for_each(|(&place, part)| made[place].own[event] = part);
                *rest += left;
            }
            for &(callee, count) in &acyclic.back[function] {
                let (parts, left) = apportion(count, shares(events));
                places.iter().zip(parts).for_each(|(&place, part)| made[place].back.push((callee, part)));
                rest[events] += left;
            }
            for arc in &acyclic.arcs[function] {
                let places = along.get(&(function, arc.callee)).map_or(&[][..], Vec::as_slice);
                let caller =
                    |&place: &usize| self.made[place].caller.map_or(0.0, |caller| self.made[caller].shares[events]);
                let (parts, left) = apportion(arc.count, places.iter().map(caller));
                places.iter().zip(parts).for_each(|(&place, part)| made[place].calls = part);
                rest[events] += left;
            }
        }
        let cut = self.share_rest(acyclic, &rest);
        (made, cut)
    }

    /// The paths that end with a call of one function by another.
    fn by_arc(&self) -> HashMap<(usize, usize), Vec<usize>> {
        let mut along: HashMap<_, Vec<usize>> = HashMap::new();
        for (place, path) in self.made.iter().enumerate() {
            if let Some(caller) = path.caller {
                along.entry((self.made[caller].function, path.function)).or_default().push(place);
            }
        }
        along
    }

    /// What is on no path, over those that were cut by what is on each with all below.
    fn share_rest(&self, acyclic: &Acyclic, rest: &[u64]) -> Vec<(Option<usize>, PathCounts)> {
        let mut shared = vec![vec![0; rest.len()]; self.cut.len().max(1)];
        for (event, &rest) in rest.iter().enumerate() {
            let below = |path: &Path| acyclic.inclusive[path.function][event] * path.shares[event];
            let all: f64 = self.cut.iter().map(below).sum();
            let (parts, left) =
                apportion(rest, self.cut.iter().map(|path| if all > 0.0 { below(path) / all } else { 0.0 }));
            shared.iter_mut().zip(parts).for_each(|(shared, part)| shared[event] = part);
            // Where no sum of parts says whose it is, it is nobody's in particular.
            shared[0][event] += left;
        }
        let counted = |mut shared: Vec<u64>| {
            let calls = shared.pop().unwrap_or(0);
            PathCounts { own: shared, calls, back: Vec::new() }
        };
        let callers = self.cut.iter().map(|path| path.caller).chain(self.cut.is_empty().then_some(None));
        callers.zip(shared.into_iter().map(counted)).collect()
    }
}

/// Whole parts of a count by shares, and what is left over: nothing if the shares add up to 1. Sums of
/// parts are rounded, not parts, so that no more than 1 is ever gathered by rounding.
fn apportion(count: u64, shares: impl Iterator<Item = f64>) -> (Vec<u64>, u64) {
    let (mut share, mut given) = (0.0, 0);
    let mut part = |of: f64| {
        share += of;
        // Products and sums of parts are 1 but for their last digits.
        let due = if share > 1.0 - 1e-9 { count } else { (share * count as f64).round() as u64 };
        let part = due.min(count).saturating_sub(given);
        given += part;
        part
    };
    let parts = shares.map(&mut part).collect();
    (parts, count - given)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::callgrind::FunctionId;
    use crate::profile::{ProfileEvent, SampleMeasure, TreeOptions};

    fn tree_of(graph: &CallGraph, functions: u32, cap: usize) -> (Tree, Vec<EventId>) {
        let mut tree = Tree::new(TreeOptions { cap, ..TreeOptions::default() });
        let ids: Vec<_> = (0..graph.events)
            .map(|e| tree.event(&ProfileEvent::new(&format!("e{e}"), SampleMeasure::Sum("count".into()))))
            .collect();
        let frames: Vec<_> = (0..functions).map(|f| tree.frame(&Frame::function(&format!("f{f}")))).collect();
        let events: Vec<_> = ids.iter().copied().map(Some).collect();
        graph.add_to(&mut tree, &[], &frames, &events);
        (tree, ids)
    }

    fn rows(tree: &Tree, event: EventId) -> Vec<(String, u64, u64)> {
        let row = |node: crate::profile::NodeRef<'_>| {
            (tree.names(node.id())[1..].join(";"), node.calls(), node.weight(event))
        };
        tree.walk().skip(1).map(row).collect()
    }

    fn graph(own: &[u64], calls: &[(u32, u32, u64, u64)]) -> CallGraph {
        let mut graph = CallGraph::new(1);
        own.iter().zip(0..).for_each(|(&cost, function)| graph.add_own(FunctionId(function), &[cost]));
        calls.iter().for_each(|&(a, b, count, cost)| graph.add_calls(FunctionId(a), FunctionId(b), count, &[cost]));
        graph
    }

    #[test]
    fn costs_are_shared_out_over_callers_as_in_the_picture() {
        // main 1, f 2, g 3, h 8; h costs 6 for f in 3 calls and 2 for g in 1.
        let graph = graph(&[1, 2, 3, 8], &[(0, 1, 1, 8), (0, 2, 2, 5), (1, 3, 3, 6), (2, 3, 1, 2)]);
        let (tree, ids) = tree_of(&graph, 4, 1000);
        let expected = [("f0", 0, 1), ("f0;f1", 1, 2), ("f0;f1;f3", 3, 6), ("f0;f2", 2, 3), ("f0;f2;f3", 1, 2)];
        assert_eq!(rows(&tree, ids[0]), expected.map(|(path, calls, cost)| (path.into(), calls, cost)));
    }

    #[test]
    fn recursion_is_one_path_with_all_its_calls() {
        // main calls f once, f itself 9 times; f and g call each other.
        let graph = graph(&[1, 50, 20], &[(0, 1, 1, 70), (1, 1, 9, 300), (1, 2, 5, 30), (2, 1, 4, 10)]);
        let (tree, ids) = tree_of(&graph, 3, 1000);
        let expected = [("f0", 0, 1), ("f0;f1", 10, 50), ("f0;f1;f2", 5, 20), ("f0;f1;f2;f1", 4, 0)];
        assert_eq!(rows(&tree, ids[0]), expected.map(|(path, calls, cost)| (path.into(), calls, cost)));
    }

    #[test]
    fn nothing_and_functions_that_only_call_each_other() {
        assert_eq!(tree_of(&CallGraph::new(1), 0, 100).0.len(), 1);
        let (tree, ids) = tree_of(&graph(&[3, 4], &[(0, 1, 1, 0), (1, 0, 1, 0)]), 2, 100);
        assert_eq!(tree.total(ids[0]).weight, 7);
    }

    #[test]
    fn what_there_is_no_room_for_becomes_other() {
        // 2^30 paths.
        let calls: Vec<_> = (0..30)
            .flat_map(|f| [(2 * f, 2 * f + 1, 1, 5), (2 * f, 2 * f + 2, 1, 9), (2 * f + 1, 2 * f + 2, 1, 4)])
            .collect();
        let graph = graph(&[7; 61], &calls);
        let (tree, ids) = tree_of(&graph, 61, 400);
        assert!(tree.len() <= 400);
        assert_eq!(tree.total(ids[0]).weight, 7 * 61);
        assert!(tree.walk().any(|node| node.frame().kind == FrameKind::Other));
    }

    #[test]
    fn parts_add_up() {
        assert_eq!(apportion(10, [0.25, 0.25, 0.5].into_iter()), (vec![3, 2, 5], 0));
        assert_eq!(apportion(10, [0.25].into_iter()), (vec![3], 7));
        assert_eq!(apportion(u64::MAX, [1.0].into_iter()), (vec![u64::MAX], 0));
        assert_eq!(apportion(5, std::iter::empty()), (vec![], 5));
    }

    proptest! {
        #[test]
        fn every_total_is_kept(
            own in prop::collection::vec((0u64..1 << 40, 0u64..100), 1..12),
            calls in prop::collection::vec((0u32..12, 0u32..12, 0u64..1000, 0u64..1 << 40, 0u64..100), 0..40),
            cap in 16usize..200,
        ) {
            let count = own.len() as u32;
            let mut graph = CallGraph::new(2);
            for (&(a, b), function) in own.iter().zip(0..) {
                graph.add_own(FunctionId(function), &[a, b]);
            }
            for &(caller, callee, n, a, b) in &calls {
                graph.add_calls(FunctionId(caller % count), FunctionId(callee % count), n, &[a, b]);
            }
            let (tree, ids) = tree_of(&graph, count, cap);
            let totals: Vec<_> = ids.iter().map(|&id| tree.total(id).weight).collect();
            prop_assert_eq!(totals, graph.totals());
            let calls: u64 = calls.iter().map(|&(_, _, n, ..)| n).sum();
            prop_assert_eq!(tree.walk().map(|node| node.calls()).sum::<u64>(), calls);
        }

        #[test]
        fn functions_keep_their_own_costs(own in prop::collection::vec(0u64..1 << 50, 2..10), seed in any::<u64>()) {
            // Calls go to later functions only, so there are few paths and no recursion.
            let mut graph = graph(&own, &[]);
            for caller in 0..own.len() as u32 {
                for callee in caller + 1..own.len() as u32 {
                    if seed >> ((caller * 7 + callee) % 64) & 1 == 1 {
                        graph.add_calls(FunctionId(caller), FunctionId(callee), 1, &[seed % 1000 + 1]);
                    }
                }
            }
            let (tree, ids) = tree_of(&graph, own.len() as u32, 10_000);
            for (function, &cost) in own.iter().enumerate() {
                let name = format!("f{function}");
                let sum: u64 = tree.walk().filter(|node| node.frame().name == name).map(|node| node.weight(ids[0])).sum();
                prop_assert_eq!(sum, cost);
            }
        }
    }
}
