//! Keeps the reader's place in a profile: the rows to show and the selected one.
//!
//! All that the reader chose is kept by path: when the tree has grown, the same frames are selected, zoomed into and
//! unfolded, and the selected row stays on its line of the screen.

use super::calls::FrameIndex;
use super::chains::{ChainView, Chains, TreeDirection};
use super::functions::CountedPaths;
use super::shape::{Shape, TreeNode};
use crate::profile::Amount;
use crate::tui::model::step::{ListStep, first_row};

/// Until the reader moves, what has at least this part of all is unfolded.
const UNFOLDED_AT_FIRST: f64 = 0.05;

/// The part of the root from which on a frame of the icicle has room for a name.
const LEAST_SEEN: f64 = 0.01;

/// No screen has as many rows.
const MOST_LEVELS: usize = 1000;

/// Whether what is below a node is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NodeFold {
    /// Not chosen: folded or not by its share until the reader moves, folded from then on.
    #[default]
    Unsaid,
    Open,
    Closed,
}

/// The order of the children of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiblingOrder {
    /// As before, but for those that have surely overtaken others.
    Stable,
    /// Sorted anew, by weight.
    Anew,
}

/// Where the reader is in a tree.
///
/// What is selected, unfolded and zoomed into are chains of frames, each named by its first node; a frame that is in
/// none is a chain of its own.
#[derive(Debug, Default)]
pub(in crate::tui) struct TreePlace {
    pub(in crate::tui) shape: Shape,
    chains: Chains,
    pub(super) view: ChainView,
    pub(in crate::tui) direction: TreeDirection,
    pub(in crate::tui) selected: TreeNode,
    /// The rows of the table: nodes that aren't folded away, in the order of the screen.
    pub(in crate::tui) rows: Vec<TreeNode>,
    /// How many chains stand above each row, from the one on that is zoomed into.
    levels: Vec<u32>,
    /// On which line of the table the selected row stands.
    pub(in crate::tui) line: usize,
    /// What was zoomed into, one within the other.
    zoom: Vec<TreeNode>,
    folds: Vec<NodeFold>,
    /// Whether the reader has moved.
    pub(super) is_settled: bool,
}

impl TreePlace {
    /// A tree of callers.
    pub(super) fn of_callers() -> Self {
        Self { direction: TreeDirection::CalledBy, ..Self::default() }
    }

    /// Takes over a tree that has grown, or another event's numbers; `may_join` says which frames may stand in a chain.
    pub(super) fn take(
        &mut self,
        (paths, amounts): CountedPaths,
        order: SiblingOrder,
        may_join: impl Fn(FrameIndex) -> bool,
    ) {
        if paths == *self.shape.paths() {
            let is_as_before = self.shape.count(amounts, order);
            let joined = (0..self.shape.len() as TreeNode).map(|node| self.chains.is_joined(node)).collect();
            // What is unfolded by its share may be another now.
            if self.join(joined, may_join) || !is_as_before || !self.is_settled {
                self.arrange();
            }
            return;
        }
        let places = self.shape.paths().among(&paths);
        let before = (order == SiblingOrder::Stable).then_some((&self.shape, places.as_slice()));
        let shape = Shape::new(paths, amounts, before);
        let place = |node: TreeNode| places.get(node as usize).copied().flatten();
        let mut folds = vec![NodeFold::Unsaid; shape.len()];
        let mut joined = vec![false; shape.len()];
        for (node, (fold, place)) in self.folds.iter().zip(&places).enumerate() {
            if let Some(place) = place {
                folds[*place as usize] = *fold;
                joined[*place as usize] = self.chains.is_joined(node as TreeNode);
            }
        }
        let gone_up = (!places.is_empty()).then(|| self.shape.ancestors(self.selected).find_map(place)).flatten();
        self.selected = gone_up.unwrap_or(0);
        self.zoom = self.zoom.iter().filter_map(|&node| place(node)).collect();
        (self.folds, self.shape) = (folds, shape);
        self.join(joined, may_join);
        self.arrange();
    }

    /// Shows chains as one line each, or all frames of them.
    pub(super) fn set_view(&mut self, view: ChainView, may_join: impl Fn(FrameIndex) -> bool, height: usize) {
        self.settle();
        let first = self.row().saturating_sub(self.line);
        let joined = (0..self.shape.len() as TreeNode).map(|node| self.chains.is_joined(node)).collect();
        self.view = view;
        self.join(joined, may_join);
        self.arrange();
        self.line = line(self.row(), first, self.rows.len(), height);
    }

    /// Finds the chains; `joined` is which nodes stood in one. What was unfolded of a chain stays so of its parts, and
    /// what was folded of a part is of the chain. Whether any has changed.
    fn join(&mut self, joined: Vec<bool>, may_join: impl Fn(FrameIndex) -> bool) -> bool {
        let shape = &self.shape;
        let is_free = |node| self.direction == TreeDirection::Calls || shape.parent(node) != 0;
        self.folds.resize(shape.len(), NodeFold::Unsaid);
        let chains = match self.view {
            ChainView::Whole => Chains::whole(shape.len()),
            ChainView::Joined => Chains::of(
                shape,
                self.direction,
                |node| !self.zoom.contains(&node) && is_free(node) && may_join(shape.frame(node)),
                |node| joined.get(node as usize).is_some_and(|&joined| joined),
            ),
        };
        let mut has_changed = false;
        for node in 0..shape.len() as TreeNode {
            let (is, was) = (chains.is_joined(node), joined[node as usize]);
            has_changed |= is != was;
            let above = shape.parent(node) as usize;
            match (was, is) {
                (true, _) => self.folds[node as usize] = self.folds[above],
                // Never the root, or there would be one row.
                (false, true) if self.folds[node as usize] == NodeFold::Closed && chains.first(node) != self.root() => {
                    self.folds[chains.first(node) as usize] = NodeFold::Closed;
                }
                (false, _) => {}
            }
        }
        self.chains = chains;
        self.selected = self.chains.first(self.selected);
        has_changed
    }

    /// The row that a node is shown in.
    pub(in crate::tui) fn chain_of(&self, node: TreeNode) -> TreeNode {
        self.chains.first(node)
    }

    /// The last node of a row: what is below it stands on the next level.
    pub(in crate::tui) fn end_of(&self, row: TreeNode) -> TreeNode {
        self.chains.last(row)
    }

    /// The nodes of a row, the outermost first.
    pub(in crate::tui) fn chain(&self, row: TreeNode) -> Vec<TreeNode> {
        let mut nodes: Vec<_> = self.upwards(row).collect();
        nodes.reverse();
        nodes
    }

    /// The nodes of a row, from the last one on.
    fn upwards(&self, row: TreeNode) -> impl Iterator<Item = TreeNode> + '_ {
        let last = self.end_of(row);
        std::iter::successors(Some(last), move |&node| (node != row).then(|| self.shape.parent(node)))
    }

    /// The rows below a row: what its last frame called, then what the others did besides.
    pub(in crate::tui) fn below(&self, row: TreeNode) -> Vec<TreeNode> {
        let calls = self.upwards(row).flat_map(|node| self.shape.children(node));
        calls.filter(|&node| !self.chains.is_joined(node)).collect()
    }

    /// Whether a row has any below it.
    pub(in crate::tui) fn has_below(&self, row: TreeNode) -> bool {
        let mut calls = self.upwards(row).flat_map(|node| self.shape.children(node));
        calls.any(|node| !self.chains.is_joined(node))
    }

    /// The row above; the root's is the root.
    pub(in crate::tui) fn above(&self, row: TreeNode) -> TreeNode {
        self.chains.first(self.shape.parent(row))
    }

    /// The rows from one up to the root, of what is zoomed into.
    pub(in crate::tui) fn rows_above(&self, row: TreeNode) -> impl Iterator<Item = TreeNode> + '_ {
        let root = self.root();
        std::iter::successors(Some(row), move |&row| (row != root && row != 0).then(|| self.above(row)))
    }

    /// How many rows stand above one, from what is zoomed into.
    pub(in crate::tui) fn level(&self, row: TreeNode) -> usize {
        self.rows_above(row).count() - 1
    }

    /// How many levels have a row wide enough to be seen, from what is zoomed into on.
    pub(super) fn levels(&self) -> usize {
        if self.shape.len() == 0 {
            return 0;
        }
        let weight = |row: TreeNode| self.shape.total(row).weight as f64;
        let least = (LEAST_SEEN * weight(self.root())).max(1.0);
        let (mut levels, mut level) = (0, vec![self.root()]);
        while !level.is_empty() && levels < MOST_LEVELS {
            levels += 1;
            level = level.iter().flat_map(|&row| self.below(row)).filter(|&row| weight(row) >= least).collect();
        }
        levels
    }

    /// The same of a row of the table, by its place there.
    pub(in crate::tui) fn level_of_row(&self, place: usize) -> usize {
        self.levels.get(place).map_or(0, |&level| level as usize)
    }

    /// What was counted on the frames of a row themselves, and not below it; of callers, on the function that they
    /// called.
    pub(in crate::tui) fn own(&self, row: TreeNode) -> Amount {
        if self.direction == TreeDirection::CalledBy {
            return self.shape.own(row);
        }
        self.upwards(row).fold(Amount::ZERO, |sum, node| sum.plus(self.shape.own(node)))
    }

    /// The node that is drawn over the whole width.
    pub(in crate::tui) fn root(&self) -> TreeNode {
        self.zoom.last().copied().unwrap_or(0)
    }

    pub(in crate::tui) fn is_zoomed(&self) -> bool {
        !self.zoom.is_empty()
    }

    pub(in crate::tui) fn is_open(&self, node: TreeNode) -> bool {
        match self.folds[node as usize] {
            NodeFold::Open => true,
            NodeFold::Closed => false,
            NodeFold::Unsaid if node == self.root() => true,
            NodeFold::Unsaid if self.is_settled => false,
            NodeFold::Unsaid => {
                let [part, all] = [node, 0].map(|node| self.shape.total(node).weight as f64);
                part >= UNFOLDED_AT_FIRST * all
            }
        }
    }

    /// The rows, and a selection that is one of them.
    pub(super) fn arrange(&mut self) {
        self.rows.clear();
        self.levels.clear();
        if self.shape.len() == 0 {
            return;
        }
        if !self.shape.is_within(self.selected, self.root()) {
            self.selected = self.root();
        }
        let mut ahead = vec![(self.root(), 0)];
        while let Some((row, level)) = ahead.pop() {
            self.rows.push(row);
            self.levels.push(level);
            if self.is_open(row) {
                ahead.extend(self.below(row).into_iter().rev().map(|row| (row, level + 1)));
            }
        }
        let root = self.root();
        let shown = |row: &TreeNode| *row == root || self.shape.stands(*row);
        let above: Vec<_> = self.rows_above(self.selected).take_while(|&row| row != root).collect();
        // The outermost one that is folded hides all below it.
        let hidden_by = above.iter().rev().copied().find(|row| !shown(row) || !self.is_open(*row));
        if let Some(row) = hidden_by {
            self.selected = if shown(&row) { row } else { self.above(row) };
        }
    }

    /// Index of the selected row.
    pub(in crate::tui) fn row(&self) -> usize {
        self.rows.iter().position(|&node| node == self.selected).unwrap_or(0)
    }

    pub(super) fn step(&mut self, step: ListStep, height: usize) {
        self.settle();
        let row = step.from(self.row(), self.rows.len());
        if let Some(&node) = self.rows.get(row) {
            self.select(node, height);
        }
    }

    /// Selects the row of a node, unfolds what hides it, and scrolls no further than needed.
    pub(super) fn select(&mut self, node: TreeNode, height: usize) {
        self.settle();
        let first = self.row().saturating_sub(self.line);
        self.reveal(node);
        self.line = line(self.row(), first, self.rows.len(), height);
    }

    /// Selects the row of a node and unfolds what hides it; the reader hasn't moved by that.
    pub(super) fn reveal(&mut self, node: TreeNode) {
        let row = self.chain_of(node);
        let mut was_hidden = !self.shape.is_within(row, self.root());
        let above: Vec<_> = self.rows_above(row).skip(1).collect();
        for above in above {
            if !self.is_open(above) {
                self.folds[above as usize] = NodeFold::Open;
                was_hidden = true;
            }
        }
        self.selected = row;
        if was_hidden || !self.shape.stands(row) {
            self.arrange();
        }
    }

    /// Keeps what is folded now folded.
    pub(super) fn settle(&mut self) {
        if !self.is_settled {
            for row in 0..self.rows.len() {
                let node = self.rows[row];
                self.folds[node as usize] = if self.is_open(node) { NodeFold::Open } else { NodeFold::Closed };
            }
            self.is_settled = true;
        }
    }

    /// Folds the selected node; one that is folded already gives way to the one above.
    pub(super) fn fold(&mut self, height: usize) {
        self.settle();
        if self.is_open(self.selected) && self.has_below(self.selected) {
            self.set(self.selected, NodeFold::Closed);
        } else if self.selected != self.root() {
            self.select(self.above(self.selected), height);
        }
    }

    /// Unfolds the selected node; of one that is unfolded already, goes to the first below it.
    pub(super) fn unfold(&mut self, height: usize) {
        self.settle();
        if !self.is_open(self.selected) {
            self.set(self.selected, NodeFold::Open);
            return;
        }
        let first = self.below(self.selected).first().copied();
        if let Some(child) = first {
            self.select(child, height);
        }
    }

    pub(super) fn toggle(&mut self) {
        self.settle();
        self.set(self.selected, if self.is_open(self.selected) { NodeFold::Closed } else { NodeFold::Open });
    }

    fn set(&mut self, node: TreeNode, fold: NodeFold) {
        self.folds[node as usize] = fold;
        self.arrange();
    }

    pub(super) fn unfold_all(&mut self, height: usize) {
        self.set_all(NodeFold::Open, height);
    }

    /// Folds all but the root, or there would be one row.
    pub(super) fn fold_all(&mut self, height: usize) {
        self.set_all(NodeFold::Closed, height);
    }

    fn set_all(&mut self, fold: NodeFold, height: usize) {
        self.settle();
        let first = self.row().saturating_sub(self.line);
        let root = self.root();
        let below: Vec<_> = self.shape.walk(root).collect();
        below.into_iter().for_each(|node| self.folds[node as usize] = fold);
        self.folds[root as usize] = NodeFold::Open;
        self.arrange();
        self.line = line(self.row(), first, self.rows.len(), height);
    }

    /// Makes the selected node as wide as the screen.
    pub(super) fn zoom_in(&mut self) -> bool {
        self.settle();
        let is_new = self.selected != self.root();
        if is_new {
            self.zoom.push(self.selected);
            self.folds[self.selected as usize] = NodeFold::Open;
            self.line = 0;
            self.arrange();
        }
        is_new
    }

    /// Makes the row of a node as wide as the screen, in place of what was zoomed into.
    pub(super) fn zoom_to(&mut self, node: TreeNode) {
        self.settle();
        self.zoom.clear();
        self.selected = self.chain_of(node);
        if !self.zoom_in() {
            self.arrange();
        }
    }

    /// Zooms out by one level; the selection stays where it is.
    pub(super) fn zoom_out(&mut self, height: usize) -> bool {
        let was_zoomed = self.zoom.pop().is_some();
        if was_zoomed {
            self.arrange();
            self.select(self.selected, height);
        }
        was_zoomed
    }

    /// The node beside the selected one in the icicle.
    pub(super) fn sibling(&self, step: isize) -> Option<TreeNode> {
        if self.selected == self.root() {
            return None;
        }
        let siblings = self.below(self.above(self.selected));
        let place = siblings.iter().position(|&node| node == self.selected)?;
        siblings.get(place.checked_add_signed(step)?).copied()
    }
}

/// The line of a row after a move: the first row stays the same where it can.
pub(super) fn line(row: usize, first: usize, count: usize, height: usize) -> usize {
    row - first_row(row, first, count, height)
}

#[cfg(test)]
mod tests {
    use super::super::shape::{NodeAmounts, PathTree};
    use std::sync::Arc;

    use super::*;

    /// all ─ a ─ b ─ c, a ─ d, e
    fn place(samples: [u64; 6]) -> TreePlace {
        let paths = PathTree { frames: vec![0, 1, 2, 3, 4, 5], parents: vec![0, 0, 1, 2, 1, 0] };
        let mut place = TreePlace::default();
        take(&mut place, paths, &samples);
        place
    }

    fn take(place: &mut TreePlace, paths: PathTree, samples: &[u64]) {
        let own: Vec<_> = samples.iter().map(|&samples| Amount { samples, weight: samples }).collect();
        let total = paths.add_up(&own);
        let standing = paths.standing(&total, |_| false);
        let amounts = NodeAmounts { own: Arc::new(own), total, standing };
        place.take((Arc::new(paths), amounts), SiblingOrder::Stable, |_| false);
    }

    #[test]
    fn the_hot_path_is_unfolded_until_the_reader_moves() {
        let mut place = place([0, 1, 1, 90, 2, 1]);
        assert_eq!(place.rows, [0, 1, 2, 3, 4, 5]);
        place.step(ListStep::By(1), 10);
        let paths = PathTree { frames: vec![0, 1, 2, 3, 4, 5, 6], parents: vec![0, 0, 1, 2, 1, 0, 5] };
        take(&mut place, paths, &[0, 1, 1, 90, 2, 1, 500]);
        // The new heavy one below `e` waits until it is unfolded.
        assert_eq!((place.rows.clone(), place.selected), (vec![0, 5, 1, 2, 3, 4], 1));
    }

    #[test]
    fn the_selection_stays_on_its_line_when_rows_come_above_it() {
        let mut place = place([0, 1, 1, 40, 2, 30]);
        place.step(ListStep::Last, 3);
        assert_eq!((place.selected, place.row(), place.line), (5, 5, 2));
        let paths = PathTree { frames: vec![0, 1, 2, 3, 4, 5, 6], parents: vec![0, 0, 1, 2, 1, 0, 1] };
        take(&mut place, paths, &[0, 1, 1, 40, 2, 30, 5]);
        assert_eq!((place.selected, place.row(), place.line), (5, 6, 2));
    }

    #[test]
    fn folding_and_unfolding_by_hand() {
        let mut place = place([0, 1, 1, 90, 2, 1]);
        place.select(3, 10);
        place.fold(10);
        assert_eq!(place.selected, 2, "a leaf gives way to the one above");
        place.fold(10);
        assert_eq!(place.rows, [0, 1, 2, 4, 5]);
        place.unfold(10);
        place.unfold(10);
        assert_eq!(place.selected, 3);
        place.fold_all(10);
        assert_eq!((place.rows.clone(), place.selected), (vec![0, 1, 5], 1));
        place.unfold_all(10);
        assert_eq!(place.rows, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn zoom_goes_in_and_out_by_levels() {
        let mut place = place([0, 1, 1, 90, 2, 1]);
        place.select(1, 10);
        assert!(place.zoom_in() && !place.zoom_in());
        place.select(2, 10);
        assert!(place.zoom_in());
        assert_eq!((place.root(), place.rows.clone()), (2, vec![2, 3]));
        assert!(place.zoom_out(10));
        assert_eq!((place.root(), place.selected), (1, 2));
        assert!(place.zoom_out(10) && !place.zoom_out(10));
    }

    #[test]
    fn what_is_gone_gives_way_to_what_stands_above_it() {
        let mut place = place([0, 1, 1, 90, 2, 1]);
        place.select(3, 10);
        place.zoom_in();
        take(&mut place, PathTree { frames: vec![0, 1], parents: vec![0, 0] }, &[0, 7]);
        assert_eq!((place.selected, place.root(), place.rows.clone()), (1, 0, vec![0, 1]));
        take(&mut place, PathTree { frames: vec![0], parents: vec![0] }, &[0]);
        assert_eq!((place.selected, place.rows.clone()), (0, vec![0]));
    }
}
