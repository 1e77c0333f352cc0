//! Removes the smallest subtrees of a tree past its cap; every total stays.

use super::frame::{Frame, FrameKind};
use super::node::{NodeId, TreeNode};
use super::tree::Tree;
use super::weight::EventColumn;

/// What a subtree is worth: samples of all events, then calls, on it and below.
type Worth = (u64, u64);

impl Tree {
    /// Sets the most nodes, and folds at once if there are more.
    pub fn set_cap(&mut self, cap: usize) {
        self.options.cap = cap.clamp(16, u32::MAX as usize / 2);
        if self.len() > self.options.cap {
            self.fold_smallest();
        }
    }

    /// Keeps the nodes that are worth most, three eighths of the cap; each subtree below them that isn't
    /// kept becomes part of its parent's child `(other)`. That leaves a quarter of the cap free at least, so
    /// that folding is rare. Threads that stood in a folded subtree stand in `(other)`.
    #[cold]
    pub(super) fn fold_smallest(&mut self) {
        self.folds += 1;
        let kept = self.worthiest(self.options.cap * 3 / 8);
        let other = self.frames.id(&Frame { kind: FrameKind::Other, ..Frame::function("(other)") });
        let old_nodes = std::mem::take(&mut self.nodes);
        let old_columns: Vec<EventColumn> = self.columns.iter_mut().map(std::mem::take).collect();
        let old_edges = std::mem::take(&mut self.edges);
        let (old_times, old_counts) = (std::mem::take(&mut self.times), std::mem::take(&mut self.counts));
        self.placed.iter_mut().for_each(|placed| *placed = false);
        let mut new_ids: Vec<NodeId> = Vec::with_capacity(old_nodes.len());
        for (index, old) in old_nodes.iter().enumerate() {
            let id = if index == 0 {
                self.nodes.push(TreeNode::new(old.frame, NodeId::NONE, 0));
                self.placed[0] = true;
                NodeId::ROOT
            } else if kept[index] {
                let parent = new_ids[old.parent.index()];
                self.child(parent, old.frame)
            } else if kept[old.parent.index()] {
                let parent = new_ids[old.parent.index()];
                self.child(parent, other)
            } else {
                // Parents come before their children: this one stands in an `(other)` already.
                new_ids[old.parent.index()]
            };
            new_ids.push(id);
            self.add_numbers(id, old);
            for (column, old_column) in self.columns.iter_mut().zip(&old_columns) {
                column.add(id.index(), old_column.get(index));
            }
        }
        // Back edges stay where both ends do; others are found again.
        for ((from, frame), to) in old_edges {
            if kept[from.index()] && kept[to.index()] {
                self.edges.insert((new_ids[from.index()], frame), new_ids[to.index()]);
            }
        }
        let times = old_times.into_iter().filter(|(node, _)| kept[node.index()]);
        self.times = times.map(|(node, times)| (new_ids[node.index()], times)).collect();
        let counts = old_counts.into_iter().filter(|((node, _), _)| kept[node.index()]);
        self.counts = counts.map(|((node, event), counts)| ((new_ids[node.index()], event), counts)).collect();
        self.threads.iter_mut().flatten().for_each(|position| *position = new_ids[position.index()]);
    }

    /// Which nodes are among the `count` that are worth most. A parent is worth as much as its child at
    /// least and has the smaller number, so a node's ancestors are kept with it.
    fn worthiest(&self, count: usize) -> Vec<bool> {
        let own = (0..self.len()).map(|index| -> Worth {
            let node = &self.nodes[index];
            // A sum without samples counts by its weight.
            let amount = |column: &EventColumn| {
                let amount = column.get(index);
                if amount.samples > 0 { amount.samples } else { amount.weight }
            };
            (self.columns.iter().map(amount).fold(0, u64::saturating_add), node.calls)
        });
        let plus = |a: Worth, b: Worth| (a.0.saturating_add(b.0), a.1.saturating_add(b.1));
        let worth = self.add_up(own.collect(), plus);
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|&index| (std::cmp::Reverse(worth[index]), index));
        let mut kept = vec![false; self.len()];
        order.into_iter().take(count.max(1)).for_each(|index| kept[index] = true);
        kept
    }

    /// The child with this frame, made if it isn't there. No repeat is looked for.
    fn child(&mut self, parent: NodeId, frame: super::FrameId) -> NodeId {
        if let Some(&child) = self.edges.get(&(parent, frame)) {
            return child;
        }
        let child = self.push_child(parent, frame);
        self.edges.insert((parent, frame), child);
        child
    }

    pub(super) fn add_numbers(&mut self, id: NodeId, of: &TreeNode) {
        let node = &mut self.nodes[id.index()];
        node.calls = node.calls.saturating_add(of.calls);
    }
}
