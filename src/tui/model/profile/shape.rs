//! Arranges paths with their numbers as a tree in the order of the screen.
//!
//! Children stand in the order of their weight, but who looks at a live profile is not to see them jump about: one
//! that stood behind another goes before it only once it has more by more than chance (2 standard deviations of the
//! difference of two counts).

use std::cmp::Reverse;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::calls::FrameIndex;
use super::place::SiblingOrder;
use crate::profile::Amount;

/// A place in a [`Shape`].
pub(in crate::tui) type TreeNode = u32;

/// The most siblings that keep their order; more stand by weight alone: nobody reads them one by one.
const MOST_HELD: usize = 1000;

/// The frame of each node and the node above it, which has a smaller number. The root is above itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PathTree {
    pub(super) frames: Vec<FrameIndex>,
    pub(super) parents: Vec<TreeNode>,
}

impl PathTree {
    /// Where each of these nodes is among others; `None` of those that are gone.
    pub(super) fn among(&self, others: &Self) -> Vec<Option<TreeNode>> {
        if others.frames.starts_with(&self.frames) && others.parents.starts_with(&self.parents) {
            return (0..self.frames.len()).map(|node| Some(node as TreeNode)).collect();
        }
        let edges = others.parents.iter().zip(&others.frames).enumerate().skip(1);
        let edges: FxHashMap<_, _> =
            edges.map(|(node, (&parent, &frame))| ((parent, frame), node as TreeNode)).collect();
        let mut places: Vec<Option<TreeNode>> = Vec::with_capacity(self.frames.len());
        for (node, (&frame, &parent)) in self.frames.iter().zip(&self.parents).enumerate() {
            let place = match node {
                0 => others.frames.first().map(|_| 0),
                _ => places[parent as usize].and_then(|parent| edges.get(&(parent, frame)).copied()),
            };
            places.push(place);
        }
        places
    }

    /// Numbers of nodes, each with those below it added.
    pub(super) fn add_up(&self, own: &[Amount]) -> Vec<Amount> {
        let mut total = own.to_vec();
        for node in (1..total.len()).rev() {
            let parent = self.parents[node] as usize;
            total[parent] = total[parent].plus(total[node]);
        }
        total
    }

    /// Which nodes are shown: those with a total, those that were measured, even if it was 0, and what is above them.
    pub(super) fn standing(&self, total: &[Amount], is_measured: impl Fn(TreeNode) -> bool) -> Vec<bool> {
        let own = total.iter().enumerate().map(|(node, total)| total.weight > 0 || is_measured(node as TreeNode));
        let mut standing: Vec<bool> = own.collect();
        for node in (1..standing.len()).rev() {
            standing[self.parents[node] as usize] |= standing[node];
        }
        standing
    }
}

/// Numbers of a tree's nodes.
#[derive(Clone, Debug, Default)]
pub(in crate::tui) struct NodeAmounts {
    /// What was counted on each node itself.
    pub(super) own: Arc<Vec<Amount>>,
    /// That and what was counted below.
    pub(super) total: Vec<Amount>,
    /// Which nodes are shown.
    pub(super) standing: Vec<bool>,
}

/// A tree as it is shown.
#[derive(Debug, Default)]
pub(in crate::tui) struct Shape {
    paths: Arc<PathTree>,
    depths: Vec<u32>,
    amounts: NodeAmounts,
    /// The children of node n stand from `first[n]` up to `first[n + 1]`.
    first: Vec<u32>,
    children: Vec<TreeNode>,
}

impl Shape {
    /// A tree with what was counted on each node itself and, with those below, in all. `before` is the one that
    /// stood on the screen, with the places of its nodes in this one.
    pub(super) fn new(
        paths: Arc<PathTree>,
        amounts: NodeAmounts,
        before: Option<(&Self, &[Option<TreeNode>])>,
    ) -> Self {
        let mut depths = vec![0; paths.frames.len()];
        for node in 1..depths.len() {
            depths[node] = depths[paths.parents[node] as usize] + 1;
        }
        let (first, children) = by_parent(&paths.parents);
        let mut shape = Self { paths, depths, amounts, first, children };
        shape.order(before);
        shape
    }

    /// Other numbers on the same paths; siblings keep their order with [`SiblingOrder::Stable`]. Whether all nodes that
    /// are shown are shown where they were.
    pub(super) fn count(&mut self, amounts: NodeAmounts, order: SiblingOrder) -> bool {
        let mut stands = order == SiblingOrder::Stable && self.amounts.standing == amounts.standing;
        self.amounts = amounts;
        let total = &self.amounts.total;
        if order == SiblingOrder::Anew {
            self.order(None);
            return false;
        }
        for siblings in self.first.windows(2).map(|ends| ends[0] as usize..ends[1] as usize) {
            match siblings.len() {
                0 | 1 => {}
                2..=MOST_HELD => {
                    stands &= !overtake(&mut self.children[siblings], |&node| total[node as usize]);
                }
                _ => {
                    by_weight(&mut self.children[siblings], total, &self.paths.frames);
                    stands = false;
                }
            }
        }
        stands
    }

    fn order(&mut self, before: Option<(&Self, &[Option<TreeNode>])>) {
        let mut stood = vec![u32::MAX; self.len()];
        if let Some((before, places)) = before {
            for (place, &node) in before.children.iter().enumerate() {
                if let Some(node) = places[node as usize] {
                    stood[node as usize] = place as u32;
                }
            }
        }
        let (total, frames) = (&self.amounts.total, &self.paths.frames);
        for node in 0..total.len() {
            let siblings = &mut self.children[self.first[node] as usize..self.first[node + 1] as usize];
            if siblings.len() > MOST_HELD {
                by_weight(siblings, total, frames);
            } else if siblings.len() > 1 {
                let key = |&node: &TreeNode| {
                    let node = node as usize;
                    (stood[node], Reverse(total[node].weight), frames[node])
                };
                siblings.sort_unstable_by_key(key);
                overtake(siblings, |node| total[*node as usize]);
            }
        }
    }

    pub(super) fn paths(&self) -> &Arc<PathTree> {
        &self.paths
    }

    pub(in crate::tui) fn len(&self) -> usize {
        self.paths.frames.len()
    }

    pub(in crate::tui) fn frame(&self, node: TreeNode) -> FrameIndex {
        self.paths.frames[node as usize]
    }

    /// The node above; the root's is the root.
    pub(in crate::tui) fn parent(&self, node: TreeNode) -> TreeNode {
        self.paths.parents[node as usize]
    }

    pub(in crate::tui) fn depth(&self, node: TreeNode) -> usize {
        self.depths[node as usize] as usize
    }

    /// What was counted on the node itself.
    pub(in crate::tui) fn own(&self, node: TreeNode) -> Amount {
        self.amounts.own[node as usize]
    }

    /// What was counted on it and below.
    pub(in crate::tui) fn total(&self, node: TreeNode) -> Amount {
        self.amounts.total.get(node as usize).copied().unwrap_or_default()
    }

    /// Whether a node is shown: the event was met on it or below, or is known to be 0.
    pub(in crate::tui) fn stands(&self, node: TreeNode) -> bool {
        self.amounts.standing.get(node as usize).is_some_and(|&stands| stands)
    }

    /// Children in the order of the screen; those on which nothing is known of the event are left out.
    pub(in crate::tui) fn children(&self, node: TreeNode) -> impl DoubleEndedIterator<Item = TreeNode> + '_ {
        let node = node as usize;
        let children = &self.children[self.first[node] as usize..self.first[node + 1] as usize];
        children.iter().copied().filter(|&child| self.stands(child))
    }

    /// The nodes from this one up to the root.
    pub(in crate::tui) fn ancestors(&self, node: TreeNode) -> impl Iterator<Item = TreeNode> + '_ {
        std::iter::successors(Some(node), |&node| (node != 0).then(|| self.parent(node)))
    }

    /// Whether a node is `above` or stands below it.
    pub(in crate::tui) fn is_within(&self, node: TreeNode, above: TreeNode) -> bool {
        // No node stands below one that isn't nearer to the root.
        let depth = self.depth(above);
        self.ancestors(node).find(|&node| self.depth(node) <= depth) == Some(above)
    }

    /// All nodes from one on downwards, in the order of the screen.
    pub(in crate::tui) fn walk(&self, from: TreeNode) -> impl Iterator<Item = TreeNode> + '_ {
        let mut ahead = vec![from];
        std::iter::from_fn(move || {
            let node = ahead.pop()?;
            ahead.extend(self.children(node).rev());
            Some(node)
        })
    }
}

fn by_weight(siblings: &mut [TreeNode], total: &[Amount], frames: &[FrameIndex]) {
    siblings.sort_unstable_by_key(|&node| (Reverse(total[node as usize].weight), frames[node as usize]));
}

/// Nodes by their parents, in the order of their numbers.
fn by_parent(parents: &[TreeNode]) -> (Vec<u32>, Vec<TreeNode>) {
    let mut first = vec![0u32; parents.len() + 1];
    for &parent in parents.iter().skip(1) {
        first[parent as usize + 1] += 1;
    }
    for node in 1..first.len() {
        first[node] += first[node - 1];
    }
    let mut next = first.clone();
    let mut children = vec![0; parents.len().saturating_sub(1)];
    for (node, &parent) in parents.iter().enumerate().skip(1) {
        let place = &mut next[parent as usize];
        children[*place as usize] = node as TreeNode;
        *place += 1;
    }
    (first, children)
}

/// Lets those go forward that have more than the ones before them by more than chance; whether there were any.
pub(super) fn overtake<T>(list: &mut [T], amount: impl Fn(&T) -> Amount) -> bool {
    let mut has_moved = false;
    for place in 1..list.len() {
        let mut place = place;
        while place > 0 && is_surely_more(amount(&list[place]), amount(&list[place - 1])) {
            list.swap(place, place - 1);
            has_moved = true;
            place -= 1;
        }
    }
    has_moved
}

/// The variance of the difference of two counts is their sum.
fn is_surely_more(one: Amount, other: Amount) -> bool {
    let difference = one.samples.abs_diff(other.samples) as f64;
    let variance = one.samples.saturating_add(other.samples) as f64;
    one.weight > other.weight && difference * difference >= 4.0 * variance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amount(samples: u64) -> Amount {
        Amount { samples, weight: samples * 10 }
    }

    fn shape(nodes: &[(FrameIndex, TreeNode, u64)], before: Option<&Shape>) -> Shape {
        let paths = PathTree {
            frames: nodes.iter().map(|(frame, ..)| *frame).collect(),
            parents: nodes.iter().map(|(_, parent, _)| *parent).collect(),
        };
        let own: Vec<_> = nodes.iter().map(|(.., samples)| amount(*samples)).collect();
        let total = paths.add_up(&own);
        let places = before.map(|before| before.paths.among(&paths));
        let standing = paths.standing(&total, |_| false);
        let amounts = NodeAmounts { own: Arc::new(own), total, standing };
        Shape::new(Arc::new(paths), amounts, before.zip(places.as_deref()))
    }

    #[test]
    fn what_is_known_to_be_0_stands_and_what_is_not_known_does_not() {
        let paths = PathTree { frames: vec![0, 1, 2, 3, 4], parents: vec![0, 0, 1, 1, 0] };
        let total = vec![Amount::ZERO; 5];
        let standing = paths.standing(&total, |node| node == 3);
        assert_eq!(standing, [true, true, false, true, false]);
        let amounts = NodeAmounts { own: Arc::new(total.clone()), total, standing };
        let shape = Shape::new(Arc::new(paths), amounts, None);
        assert_eq!(shape.walk(0).collect::<Vec<_>>(), [0, 1, 3]);
    }

    #[test]
    fn children_stand_by_weight_until_one_has_surely_more() {
        let first = shape(&[(0, 0, 0), (1, 0, 50), (2, 0, 60), (3, 1, 5)], None);
        assert_eq!(first.children(0).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(first.total(1), amount(55));
        // 70 to 60: less than two standard deviations (22.8).
        let second = shape(&[(0, 0, 0), (1, 0, 65), (2, 0, 60), (3, 1, 5), (4, 0, 1)], Some(&first));
        assert_eq!(second.children(0).collect::<Vec<_>>(), [2, 1, 4]);
        let third = shape(&[(0, 0, 0), (1, 0, 115), (2, 0, 60), (3, 1, 5), (4, 0, 1)], Some(&second));
        assert_eq!(third.children(0).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn other_numbers_on_the_same_paths_are_as_in_a_new_tree() {
        let nodes = |samples: [u64; 4]| {
            [(0, 0, 0), (1, 0, samples[0]), (2, 0, samples[1]), (3, 1, samples[2]), (4, 1, samples[3])]
        };
        let mut counted = shape(&nodes([50, 60, 5, 0]), None);
        for (samples, stands) in [([50, 61, 5, 0], true), ([50, 61, 5, 1], false), ([200, 61, 5, 1], false)] {
            let fresh = shape(&nodes(samples), Some(&counted));
            assert_eq!(counted.count(fresh.amounts.clone(), SiblingOrder::Stable), stands, "{samples:?}");
            assert_eq!((&counted.children, &counted.amounts.total), (&fresh.children, &fresh.amounts.total));
        }
        let fresh = shape(&nodes([1, 2, 3, 4]), None);
        assert!(!counted.count(fresh.amounts.clone(), SiblingOrder::Anew));
        assert_eq!(counted.children, fresh.children);
    }

    #[test]
    fn nodes_are_found_again_by_their_paths() {
        let old = PathTree { frames: vec![0, 1, 2, 3], parents: vec![0, 0, 1, 0] };
        let new = PathTree { frames: vec![0, 3, 1, 2], parents: vec![0, 0, 0, 2] };
        assert_eq!(old.among(&new), [Some(0), Some(2), Some(3), Some(1)]);
        let fewer = PathTree { frames: vec![0, 1], parents: vec![0, 0] };
        assert_eq!(old.among(&fewer), [Some(0), Some(1), None, None]);
        assert_eq!(old.among(&PathTree::default()), [None, None, None, None]);
    }

    #[test]
    fn within_is_by_path() {
        let shape = shape(&[(0, 0, 0), (1, 0, 1), (2, 1, 1), (3, 0, 1)], None);
        assert!(shape.is_within(2, 1) && shape.is_within(2, 0) && shape.is_within(2, 2));
        assert!(!shape.is_within(3, 1) && !shape.is_within(1, 2));
    }

    proptest! {
        #[test]
        fn every_node_with_samples_is_walked_once(nodes in prop::collection::vec((0u32..5, 0u32..50, 1u64..9), 1..50)) {
            let mut nodes: Vec<_> =
                nodes.into_iter().enumerate().map(|(i, (f, p, n))| (f, p % (i as u32).max(1), n)).collect();
            nodes[0].1 = 0;
            let shape = shape(&nodes, None);
            let mut walked: Vec<_> = shape.walk(0).collect();
            walked.sort_unstable();
            prop_assert_eq!(walked, (0..nodes.len() as TreeNode).collect::<Vec<_>>());
            let all: u64 = nodes.iter().map(|(.., samples)| samples).sum();
            prop_assert_eq!(shape.total(0), amount(all));
            for node in 0..nodes.len() as TreeNode {
                let below: u64 = shape.children(node).map(|child| shape.total(child).samples).sum();
                prop_assert_eq!(shape.total(node).samples, shape.own(node).samples + below);
            }
        }
    }
}
