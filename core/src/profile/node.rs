//! Stores what is known at one node of the tree.

use super::counts::CallCounts;
use super::frame::{Frame, FrameId};
use super::times::CallTimes;
use super::tree::Tree;
use super::weight::{Amount, EventId};

/// The number of a node. A parent's is smaller than those of its children. Numbers change when a cap
/// folds subtrees, so they are good until the tree changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(super) u32);

impl NodeId {
    /// The root, where every path begins.
    pub const ROOT: Self = Self(0);
    /// No node; never leaves this module's siblings.
    pub(super) const NONE: Self = Self(u32::MAX);

    /// Place of the node among all nodes of the tree.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Children are a chain of siblings, newest first; an edge table in the tree finds one by its frame.
#[derive(Clone, Debug)]
pub(super) struct TreeNode {
    pub(super) frame: FrameId,
    pub(super) parent: NodeId,
    pub(super) depth: u32,
    pub(super) first_child: NodeId,
    pub(super) next_sibling: NodeId,
    /// The frame that was last entered from here, and where that led.
    pub(super) recent: (FrameId, NodeId),
    pub(super) calls: u64,
}

impl TreeNode {
    pub(super) fn new(frame: FrameId, parent: NodeId, depth: u32) -> Self {
        let none = NodeId::NONE;
        let recent = (FrameId(u32::MAX), none);
        Self { frame, parent, depth, first_child: none, next_sibling: none, recent, calls: 0 }
    }
}

/// Gives access to a node of a tree.
#[derive(Clone, Copy, Debug)]
pub struct NodeRef<'a> {
    pub(super) tree: &'a Tree,
    pub(super) id: NodeId,
}

impl<'a> NodeRef<'a> {
    fn node(&self) -> &'a TreeNode {
        &self.tree.nodes[self.id.index()]
    }

    /// The tree that holds it.
    pub fn tree(&self) -> &'a Tree {
        self.tree
    }

    /// Id of the node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The last frame of the path.
    pub fn frame(&self) -> Frame<'a> {
        self.tree.frame_of(self.frame_id())
    }

    /// The number of the last frame of the path.
    pub fn frame_id(&self) -> FrameId {
        self.node().frame
    }

    /// The path without its last frame; `None` for the root.
    pub fn parent(&self) -> Option<NodeId> {
        Some(self.node().parent).filter(|&parent| parent != NodeId::NONE)
    }

    /// How many frames stand above it; 0 for the root.
    pub fn depth(&self) -> usize {
        self.node().depth as usize
    }

    /// How often the path was entered; sampled stacks have no calls.
    pub fn calls(&self) -> u64 {
        self.node().calls
    }

    /// What is known of the times of its calls; `None` where they weren't measured.
    pub fn call_times(&self) -> Option<&'a CallTimes> {
        self.tree.times.get(&self.id)
    }

    /// What an event counted in its calls; `None` where it wasn't counted in calls.
    pub fn call_counts(&self, event: EventId) -> Option<&'a CallCounts> {
        self.tree.counts.get(&(self.id, event))
    }

    /// What was counted on the path itself, not below it.
    pub fn amount(&self, event: EventId) -> Amount {
        self.tree.columns[event.index()].get(self.id.index())
    }

    /// Samples on the path itself.
    pub fn samples(&self, event: EventId) -> u64 {
        self.amount(event).samples
    }

    /// The weight of samples on the path itself.
    pub fn weight(&self, event: EventId) -> u64 {
        self.amount(event).weight
    }

    /// Whether anything was counted on the path itself.
    pub fn is_counted(&self) -> bool {
        let node = self.node();
        let has_amount = || self.tree.columns.iter().any(|column| column.get(self.id.index()) != Amount::ZERO);
        node.calls > 0 || has_amount()
    }

    /// Children of the node, in the order in which their frames became known.
    pub fn children(&self) -> Vec<NodeId> {
        self.tree.children(self.id)
    }

    /// The nodes from this one up to the root.
    pub fn ancestors(&self) -> impl Iterator<Item = NodeRef<'a>> + use<'a> {
        let tree = self.tree;
        std::iter::successors(Some(*self), move |node| node.parent().map(|id| NodeRef { tree, id }))
    }
}
