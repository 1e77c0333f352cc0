//! Builds a tree of call paths from callgrind's costs of functions and calls.
//!
//! callgrind writes what each function cost by itself, and for each pair of functions how often the one
//! called the other and what these calls cost; it writes no paths. [`CallGraph::add_to`] makes them:
//!
//! ```text
//! self    main 1  f 2  g 3  h 8            [root] ── main 1 ─┬─ f 2 ── h 6
//! calls   main→f 8   main→g 5                                ╰─ g 3 ── h 2
//!         f→h 6      g→h 2
//! ```
//!
//! A function's costs are shared out over its callers in proportion to what their calls cost, for each
//! event by itself. So a path is exact where no function on it has more than one caller; elsewhere it
//! rests on the assumption that a function does the same for all who call its caller. The totals of
//! every function and event stay what they are, to the last count.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

mod acyclic;
mod parse;
mod paths;

pub use parse::{CallgrindFile, Faulty, Wrong};

/// A function of a [`CallGraph`], from 0 in the order in which they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);

impl FunctionId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// What callgrind knows of a function. Deeper rounds of a recursion are functions of their own, `f'2`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallgrindFunction {
    /// Name of the function; it may hold any character.
    pub name: String,
    /// The program or library; empty where that isn't known.
    pub module: String,
    /// The source file; empty where that isn't known.
    pub file: String,
}

impl CallgrindFunction {
    /// The name without the number of the round of a recursion.
    pub fn plain_name(&self) -> &str {
        match self.name.rsplit_once('\'') {
            Some((name, turn)) if !turn.is_empty() && turn.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &self.name,
        }
    }
}

/// All calls of one function by another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// Number of calls.
    pub count: u64,
    /// What they cost with all that they called, in each event.
    pub costs: Vec<u64>,
}

/// What functions cost, and who called whom.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallGraph {
    /// What each function cost without what it called, in each event.
    own: Vec<Vec<u64>>,
    calls: HashMap<(FunctionId, FunctionId), CallCosts, FxBuildHasher>,
    events: usize,
}

impl CallGraph {
    /// An empty graph for this many events.
    pub fn new(events: usize) -> Self {
        Self { events, ..Self::default() }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.own.iter().flatten().all(|&cost| cost == 0)
    }

    /// Adds costs of a function itself.
    pub fn add_own(&mut self, function: FunctionId, costs: &[u64]) {
        self.know(function);
        add(&mut self.own[function.index()], costs);
    }

    /// Adds calls and what they cost.
    pub fn add_calls(&mut self, caller: FunctionId, callee: FunctionId, count: u64, costs: &[u64]) {
        self.know(caller.max(callee));
        let events = self.events;
        let calls =
            self.calls.entry((caller, callee)).or_insert_with(|| CallCosts { count: 0, costs: vec![0; events] });
        calls.count = calls.count.saturating_add(count);
        add(&mut calls.costs, costs);
    }

    /// The functions that cost something themselves, in order.
    pub fn own(&self) -> impl Iterator<Item = (FunctionId, &[u64])> {
        let costly = |(index, costs): (usize, &'_ Vec<u64>)| costs.iter().any(|&cost| cost > 0).then_some(index);
        let ids = self.own.iter().enumerate().filter_map(costly);
        ids.map(|index| (FunctionId(index as u32), self.own[index].as_slice()))
    }

    /// All calls, in the order of callers and callees.
    pub fn calls(&self) -> Vec<(FunctionId, FunctionId, &CallCosts)> {
        let mut all: Vec<_> = self.calls.iter().map(|(&(caller, callee), calls)| (caller, callee, calls)).collect();
        all.sort_unstable_by_key(|&(caller, callee, _)| (caller, callee));
        all
    }

    /// What was counted of each event in all functions.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.events];
        self.own.iter().for_each(|costs| add(&mut totals, costs));
        totals
    }

    fn know(&mut self, function: FunctionId) {
        if self.own.len() <= function.index() {
            self.own.resize(function.index() + 1, vec![0; self.events]);
        }
    }
}

/// Adds costs to others; those that are left out at the end are 0.
fn add(to: &mut [u64], costs: &[u64]) {
    to.iter_mut().zip(costs).for_each(|(to, cost)| *to = to.saturating_add(*cost));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_a_recursion_are_one_function_by_name() {
        let plain = |name: &str| {
            CallgrindFunction { name: name.into(), ..CallgrindFunction::default() }.plain_name().to_owned()
        };
        assert_eq!(["f", "f'2", "f'main", "'2", "f'"].map(plain), ["f", "f", "f'main", "", "f'"]);
    }
}
