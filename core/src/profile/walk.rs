//! Walks a tree in sequence. Nothing here calls itself: paths may be as deep as memory allows.

use super::frame::FrameId;
use super::node::{NodeId, NodeRef};
use super::tree::Tree;
use super::weight::{Amount, EventId};

/// All nodes, depth first, a node before its children, children in the order of their frames' numbers.
#[derive(Debug)]
pub struct Walk<'a> {
    tree: &'a Tree,
    ahead: Vec<NodeId>,
}

impl<'a> Iterator for Walk<'a> {
    type Item = NodeRef<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let id = self.ahead.pop()?;
        self.ahead.extend(self.tree.children(id).into_iter().rev());
        Some(self.tree.node(id))
    }
}

impl Tree {
    /// All nodes, depth first.
    pub fn walk(&self) -> Walk<'_> {
        Walk { tree: self, ahead: vec![NodeId::ROOT] }
    }

    /// All nodes, in the order of their numbers: a node before its children.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeRef<'_>> {
        (0..self.len()).map(|index| self.node(NodeId(index as u32)))
    }

    /// Hands every sequence to `see`, depth first: its frames from the root on, and the node where its
    /// numbers stand.
    pub fn sequences<'a>(&'a self, mut see: impl FnMut(&[FrameId], NodeRef<'a>)) {
        let mut path = Vec::new();
        for node in self.walk() {
            path.truncate(node.depth());
            path.push(node.frame_id());
            see(&path, node);
        }
    }

    /// The frames from the root to a node.
    pub fn path(&self, id: NodeId) -> Vec<FrameId> {
        let mut path: Vec<_> = self.node(id).ancestors().map(|node| node.frame_id()).collect();
        path.reverse();
        path
    }

    /// The names of the frames from the root to a node.
    pub fn names(&self, id: NodeId) -> Vec<&str> {
        self.path(id).into_iter().map(|frame| self.frame_of(frame).name).collect()
    }

    /// What was counted of an event on each path and below it, by [`NodeId::index`].
    pub fn inclusive(&self, event: EventId) -> Vec<Amount> {
        let column = &self.columns[event.index()];
        self.add_up((0..self.len()).map(|node| column.get(node)).collect(), Amount::plus)
    }

    /// Numbers of nodes, each with those below it added.
    pub(super) fn add_up<T: Copy>(&self, mut numbers: Vec<T>, plus: impl Fn(T, T) -> T) -> Vec<T> {
        // Parents come before their children.
        for id in (1..self.len()).rev() {
            let parent = self.nodes[id].parent.index();
            numbers[parent] = plus(numbers[parent], numbers[id]);
        }
        numbers
    }

    /// What was counted of an event everywhere.
    pub fn total(&self, event: EventId) -> Amount {
        self.columns[event.index()].total()
    }

    pub(super) fn children(&self, id: NodeId) -> Vec<NodeId> {
        let first = self.nodes[id.index()].first_child;
        let exists = |&id: &NodeId| id != NodeId::NONE;
        let siblings = std::iter::successors(Some(first).filter(exists), |id| {
            Some(self.nodes[id.index()].next_sibling).filter(exists)
        });
        let mut children: Vec<_> = siblings.collect();
        children.sort_unstable_by_key(|id| self.nodes[id.index()].frame);
        children
    }
}
