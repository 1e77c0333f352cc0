//! Removes the cycles of a call graph, and keeps what functions cost for each of their callers.

use super::CallGraph;

/// All calls of one function by another, as they count for paths.
pub(super) struct Arc {
    pub(super) callee: usize,
    /// Number of calls.
    pub(super) count: u64,
    /// Which part of the callee's costs is for this caller, by event; of its calls last.
    pub(super) parts: Vec<f64>,
}

/// The graph without calls that lead back; those are kept apart.
pub(super) struct Acyclic {
    /// The calls of each function.
    pub(super) arcs: Vec<Vec<Arc>>,
    /// The calls that lead back to a function that is on the path already.
    pub(super) back: Vec<Vec<(usize, u64)>>,
    /// Functions that nobody calls.
    pub(super) roots: Vec<usize>,
    /// What functions cost with all that they call, by event; calls last.
    pub(super) inclusive: Vec<Vec<f64>>,
}

/// How far the search for cycles is with a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    OnPath,
    Done,
}

/// The numbers of an arc before its parts are known: costs by event, calls last.
struct ArcCosts {
    callee: usize,
    numbers: Vec<f64>,
    count: u64,
}

impl Acyclic {
    pub(super) fn new(graph: &CallGraph) -> Self {
        let functions = graph.own.len();
        let mut edges: Vec<Vec<ArcCosts>> = (0..functions).map(|_| Vec::new()).collect();
        let mut is_called = vec![false; functions];
        for (caller, callee, calls) in graph.calls() {
            let numbers = calls.costs.iter().chain([&calls.count]).map(|&number| number as f64).collect();
            edges[caller.index()].push(ArcCosts { callee: callee.index(), numbers, count: calls.count });
            is_called[callee.index()] |= caller != callee;
        }
        let (order, back) = search(&mut edges, &is_called);
        let sums = sums(&edges, graph.events + 1);
        let called = |place: usize| sums[place].callers > 0;
        let roots = order.iter().rev().copied().filter(|&function| !called(function)).collect();
        let arcs: Vec<Vec<Arc>> =
            edges.iter().map(|edges| edges.iter().map(|edge| sums[edge.callee].arc(edge)).collect()).collect();
        let inclusive = inclusive(graph, &arcs, &back, &order);
        Self { arcs, back, roots, inclusive }
    }
}

/// What all callers of a function have of it.
#[derive(Clone)]
struct CallerSums {
    numbers: Vec<f64>,
    callers: usize,
}

fn sums(edges: &[Vec<ArcCosts>], numbers: usize) -> Vec<CallerSums> {
    let mut sums = vec![CallerSums { numbers: vec![0.0; numbers], callers: 0 }; edges.len()];
    for edge in edges.iter().flatten() {
        let sum = &mut sums[edge.callee];
        sum.callers += 1;
        sum.numbers.iter_mut().zip(&edge.numbers).for_each(|(sum, number)| *sum += number);
    }
    sums
}

impl CallerSums {
    /// Shares a function's costs over its callers: by costs; by calls where all cost nothing; equally without calls.
    fn arc(&self, edge: &ArcCosts) -> Arc {
        let last = self.numbers.len() - 1;
        let by_calls =
            if self.numbers[last] > 0.0 { edge.numbers[last] / self.numbers[last] } else { 1.0 / self.callers as f64 };
        let part = |(number, sum): (&f64, &f64)| if *sum > 0.0 { number / sum } else { by_calls };
        let parts = edge.numbers.iter().zip(&self.numbers).map(part).collect();
        Arc { callee: edge.callee, count: edge.count, parts }
    }
}

/// A search in depth, the costliest calls first, that takes out calls back to what is on its path. Gives
/// the functions in the order in which it left them, callees before callers, and the calls back.
fn search(edges: &mut [Vec<ArcCosts>], is_called: &[bool]) -> (Vec<usize>, Vec<Vec<(usize, u64)>>) {
    for edges in edges.iter_mut() {
        edges.sort_by(|a, b| b.numbers[0].total_cmp(&a.numbers[0]).then(a.callee.cmp(&b.callee)));
    }
    let mut states = vec![VisitState::New; edges.len()];
    let mut back = vec![Vec::new(); edges.len()];
    let mut order = Vec::new();
    let uncalled = (0..edges.len()).filter(|&function| !is_called[function]);
    for start in uncalled.chain(0..edges.len()) {
        if states[start] != VisitState::New {
            continue;
        }
        states[start] = VisitState::OnPath;
        let mut path = vec![(start, 0)];
        while let Some((function, next)) = path.last_mut() {
            let Some(edge) = edges[*function].get(*next) else {
                states[*function] = VisitState::Done;
                order.push(*function);
                path.pop();
                continue;
            };
            match states[edge.callee] {
                VisitState::OnPath => {
                    let edge = edges[*function].remove(*next);
                    back[*function].push((edge.callee, edge.count));
                }
                VisitState::Done => *next += 1,
                VisitState::New => {
                    *next += 1;
                    states[edge.callee] = VisitState::OnPath;
                    path.push((edge.callee, 0));
                }
            }
        }
    }
    (order, back)
}

fn inclusive(graph: &CallGraph, arcs: &[Vec<Arc>], back: &[Vec<(usize, u64)>], order: &[usize]) -> Vec<Vec<f64>> {
    let mut inclusive: Vec<Vec<f64>> = vec![Vec::new(); arcs.len()];
    for &function in order {
        let calls = back[function].iter().map(|&(_, count)| count).chain(arcs[function].iter().map(|arc| arc.count));
        let calls = calls.map(|count| count as f64).sum();
        let mut sum: Vec<f64> = graph.own[function].iter().map(|&cost| cost as f64).chain([calls]).collect();
        for arc in &arcs[function] {
            let below = inclusive[arc.callee].iter().zip(&arc.parts).map(|(all, part)| all * part);
            sum.iter_mut().zip(below).for_each(|(sum, below)| *sum += below);
        }
        inclusive[function] = sum;
    }
    inclusive
}
