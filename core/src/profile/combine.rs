//! Adds and subtracts trees.

use super::frame::{Frame, FrameId};
use super::node::NodeId;
use super::tree::{Tree, TreeOptions};
use super::weight::{Amount, EventId};

impl Tree {
    /// Adds all that another tree counted. Its paths are entered here, so repeats fold if they do here;
    /// events of one name become one.
    pub fn merge(&mut self, other: &Self) {
        self.merge_named(other, |frame| other.frame_of(frame));
    }

    /// Like [`Tree::merge`], with every frame but the root's as `name` has it; frames that become equal
    /// share a node.
    pub fn merge_named<'a>(&mut self, other: &Self, name: impl Fn(FrameId) -> Frame<'a>) {
        let ids = (1..other.frames.len() as u32).map(FrameId);
        let frames: Vec<FrameId> = std::iter::once(FrameId::ROOT).chain(ids.map(|id| self.frame(&name(id)))).collect();
        let is_first = self.events.is_empty();
        let events: Vec<EventId> = other.events.iter().map(|event| self.event(event)).collect();
        if let Some(event) = other.default_event().filter(|_| is_first) {
            self.set_default_event(events[event.index()]);
        }
        self.has_calls |= other.has_calls;
        // The numbers of nodes must stay while they are looked up, so there is no folding before the end.
        let cap = std::mem::replace(&mut self.options.cap, usize::MAX);
        let mut ids: Vec<NodeId> = Vec::with_capacity(other.len());
        for (index, node) in other.nodes.iter().enumerate() {
            let id = if node.parent == NodeId::NONE {
                NodeId::ROOT
            } else {
                self.arrive(ids[node.parent.index()], frames[node.frame.index()])
            };
            ids.push(id);
            self.add_numbers(id, node);
            if let Some(times) = other.times.get(&NodeId(index as u32)) {
                self.times.entry(id).or_default().add(times);
            }
            for (place, (&event, column)) in events.iter().zip(&other.columns).enumerate() {
                self.add(id, event, column.get(index));
                if let Some(counts) = other.counts.get(&(NodeId(index as u32), EventId(place as u32))) {
                    self.counts.entry((id, event)).and_modify(|known| known.add(counts)).or_insert(*counts);
                }
            }
        }
        self.set_cap(cap);
    }

    /// The tree's counts in one with other options, such as folded repeats.
    #[must_use]
    pub fn rebuilt(&self, options: TreeOptions) -> Self {
        let mut tree = Self::new(options);
        tree.merge(self);
        tree
    }

    /// A tree of the same nodes with nothing counted on them.
    fn emptied(&self) -> Self {
        let mut tree = self.clone();
        tree.columns.iter_mut().for_each(|column| *column = Default::default());
        for node in &mut tree.nodes {
            node.calls = 0;
        }
        tree.times.clear();
        tree.counts.clear();
        tree
    }
}

/// Two trees with the same nodes: one number means the same path in both.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Tree of the profile before.
    pub before: Tree,
    /// Tree of the profile after.
    pub after: Tree,
}

impl Difference {
    /// Lays two trees over each other. Both are entered with the options of `before`, without a cap, as a cap would
    /// fold different nodes of each.
    pub fn new(before: &Tree, after: &Tree) -> Self {
        let options = TreeOptions { cap: usize::MAX, ..before.options() };
        let mut both = before.rebuilt(options);
        both.merge(after);
        let shape = both.emptied();
        let over = |tree: &Tree| {
            let mut over = shape.clone();
            over.merge(tree);
            over
        };
        Self { before: over(before), after: over(after) }
    }

    /// After less before, on a path itself.
    pub fn change(&self, node: NodeId, event: EventId) -> AmountChange {
        let amount = |tree: &Tree| tree.node(node).amount(event);
        AmountChange::between(amount(&self.before), amount(&self.after))
    }

    /// After less before, on each path and below it, by [`NodeId::index`].
    pub fn inclusive(&self, event: EventId) -> Vec<AmountChange> {
        let (before, after) = (self.before.inclusive(event), self.after.inclusive(event));
        before.into_iter().zip(after).map(|(before, after)| AmountChange::between(before, after)).collect()
    }
}

/// How much more there is after than before; negative where there is less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmountChange {
    /// Difference in samples.
    pub samples: i128,
    /// The sum of their weights, in the event's unit.
    pub weight: i128,
}

impl AmountChange {
    fn between(before: Amount, after: Amount) -> Self {
        let less = |after: u64, before: u64| i128::from(after) - i128::from(before);
        Self { samples: less(after.samples, before.samples), weight: less(after.weight, before.weight) }
    }
}
