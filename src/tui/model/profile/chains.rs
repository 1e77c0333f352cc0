//! Joins frames that only pass on what was sampled below them, so that the path to the first choice is one line.
//!
//! ```text
//! all ─ prog ─ main ─ run ─ loop ─┬─ hot   99.2 %         prog > main > run > loop
//!               ╰─ setup  0.3 %   ╰─ cold   0.5 %   ──>    hot, cold, setup
//! ```
//!
//! A callee joins the chain of its caller where it has more than 99.5 % of all that the chain has, and less than 0.5 %
//! was sampled in itself: a function in which time is spent has a line of its own, and the line's number is that of
//! each of its frames. What the chain's other frames called stands below the chain. This is a view: the tree is as it
//! was.

use super::shape::{Shape, TreeNode};

/// What part of a chain a frame has at least that joins it.
const PASSED_ON: f64 = 0.995;

/// What part of it a frame has that stays in it: numbers that go up and down by chance are not to move lines.
const STILL_PASSED_ON: f64 = 0.993;

/// Whether frames that only pass on are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum ChainView {
    /// A chain is one line.
    #[default]
    Joined,
    /// Every frame has a line.
    Whole,
}

impl ChainView {
    pub(in crate::tui) fn other(self) -> Self {
        match self {
            Self::Joined => Self::Whole,
            Self::Whole => Self::Joined,
        }
    }
}

/// An end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum ChainEnd {
    First,
    Last,
}

/// What a step from a node of a tree to one below it means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum TreeDirection {
    /// A function calls another.
    #[default]
    Calls,
    /// A function is called by another. The root is the function that all are about, and in no chain.
    CalledBy,
}

/// The chains of a tree. A chain is named by its first node; a node that no other joins is a chain of its own.
#[derive(Debug, Default)]
pub(super) struct Chains {
    /// By node: the first node of its chain.
    first: Vec<TreeNode>,
    /// By first nodes: the last one.
    last: Vec<TreeNode>,
}

impl Chains {
    /// Joins frames for which `may_join` holds to their callers. `was_joined` is how they stood on the screen.
    pub(super) fn of(
        shape: &Shape,
        direction: TreeDirection,
        may_join: impl Fn(TreeNode) -> bool,
        was_joined: impl Fn(TreeNode) -> bool,
    ) -> Self {
        let mut chains = Self::whole(shape.len());
        // Callers have smaller numbers.
        for node in 0..shape.len() as TreeNode {
            let heaviest =
                shape.children(node).max_by_key(|&child| (shape.total(child).weight, std::cmp::Reverse(child)));
            let Some(child) = heaviest.filter(|&child| may_join(child)) else { continue };
            let first = chains.first(node);
            let all = shape.total(first).weight as f64;
            let least = if was_joined(child) { STILL_PASSED_ON } else { PASSED_ON };
            let below: u64 = shape.children(child).map(|below| shape.total(below).weight).fold(0, u64::saturating_add);
            // Nothing is sampled in a caller.
            let passes_on = direction == TreeDirection::CalledBy || below as f64 > least * all;
            if passes_on && shape.total(child).weight as f64 > least * all {
                chains.first[child as usize] = first;
                chains.last[first as usize] = child;
            }
        }
        chains
    }

    /// Every node is a chain of its own.
    pub(super) fn whole(nodes: usize) -> Self {
        let each: Vec<_> = (0..nodes as TreeNode).collect();
        Self { first: each.clone(), last: each }
    }

    /// The first node of the chain that a node is in.
    pub(super) fn first(&self, node: TreeNode) -> TreeNode {
        self.first.get(node as usize).copied().unwrap_or(node)
    }

    /// The last node of the chain that a node is in.
    pub(super) fn last(&self, node: TreeNode) -> TreeNode {
        self.last.get(self.first(node) as usize).copied().unwrap_or(node)
    }

    /// Whether a node stands in a chain behind another.
    pub(super) fn is_joined(&self, node: TreeNode) -> bool {
        self.first(node) != node
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::shape::{NodeAmounts, PathTree};
    use super::*;
    use crate::profile::Amount;

    /// A tree of these parents and own weights.
    fn shape(parents: &[TreeNode], own: &[u64]) -> Shape {
        let paths = PathTree { frames: (0..parents.len() as u32).collect(), parents: parents.to_vec() };
        let own: Vec<_> = own.iter().map(|&weight| Amount { samples: weight, weight }).collect();
        let total = paths.add_up(&own);
        let standing = paths.standing(&total, |_| false);
        Shape::new(Arc::new(paths), NodeAmounts { own: Arc::new(own), total, standing }, None)
    }

    /// all ─ prog ─ main ─ run ─ loop ─ hot, and small ones beside `run` and `hot`.
    const PARENTS: [TreeNode; 8] = [0, 0, 1, 2, 3, 4, 2, 4];

    fn joined(own: &[u64], was_joined: bool) -> Vec<TreeNode> {
        let shape = shape(&PARENTS, own);
        let chains = Chains::of(&shape, TreeDirection::Calls, |_| true, |_| was_joined);
        (0..8).filter(|&node| chains.is_joined(node)).collect()
    }

    #[test]
    fn a_chain_ends_before_the_function_where_time_is_spent() {
        assert_eq!(joined(&[0, 0, 0, 0, 1, 992, 2, 5], false), [1, 2, 3, 4]);
        let shape = shape(&PARENTS, &[0, 0, 0, 0, 1, 992, 2, 5]);
        let chains = Chains::of(&shape, TreeDirection::Calls, |_| true, |_| false);
        assert_eq!((chains.last(0), chains.last(3), chains.first(4), chains.last(5)), (4, 4, 0, 5));
    }

    #[test]
    fn less_than_995_per_mille_is_a_choice_and_what_was_joined_is_one_later() {
        assert_eq!(joined(&[0, 0, 0, 0, 0, 994, 6, 0], false), [1, 2, 4], "run has 99.4 %, of which it passes on all");
        assert_eq!(joined(&[0, 0, 0, 0, 0, 994, 6, 0], true), [1, 2, 3, 4]);
        assert_eq!(joined(&[0, 0, 0, 0, 0, 995, 5, 0], false), [1, 2, 4], "just 99.5 % are not more");
        assert_eq!(joined(&[0, 0, 6, 0, 0, 994, 0, 0], false), [1, 4], "main has 0.6 % itself");
    }

    #[test]
    fn nothing_joins_where_nothing_was_sampled_or_nothing_may() {
        assert!(joined(&[0; 8], false).is_empty());
        let shape = shape(&PARENTS, &[0, 0, 0, 0, 0, 9, 0, 0]);
        let chains = Chains::of(&shape, TreeDirection::Calls, |node| node != 2, |_| false);
        assert_eq!((chains.last(0), chains.last(2)), (1, 4));
        let none = Chains::default();
        assert_eq!((none.first(3), none.last(3)), (3, 3));
    }

    proptest! {
        #[test]
        fn what_is_joined_has_nearly_all_of_its_chain(nodes in prop::collection::vec((0u32..50, 0u64..40), 1..60)) {
            let parents: Vec<_> = nodes.iter().enumerate().map(|(i, (parent, _))| parent % (i as u32).max(1)).collect();
            let own: Vec<_> = nodes.iter().map(|(_, own)| *own).collect();
            let shape = shape(&parents, &own);
            let chains = Chains::of(&shape, TreeDirection::Calls, |_| true, |_| false);
            for node in 0..shape.len() as TreeNode {
                let (first, last) = (chains.first(node), chains.last(node));
                prop_assert!(shape.is_within(node, first) && shape.is_within(last, node));
                let weight = |node| shape.total(node).weight as f64;
                prop_assert!(node == first || weight(node) > 0.995 * weight(first));
                prop_assert!(node == first || shape.own(node).weight as f64 <= 0.005 * weight(first) + 1e-9);
            }
        }
    }
}
