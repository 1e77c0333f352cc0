//! Stores the tree of call paths, and follows each thread through it.
//!
//! Where a frame leads from a node depends on the path and the frame alone, not on what other threads
//! or earlier calls did: an edge that was taken once is looked up, and a new one goes back to an
//! ancestor or to a new child.

use std::collections::HashMap;

use rustc_hash::FxBuildHasher;

use super::counts::CallCounts;
use super::frame::{Frame, FrameId, FrameKind, Frames};
use super::node::{NodeId, NodeRef, TreeNode};
use super::times::CallTimes;
use super::weight::{Amount, EventColumn, EventId, ProfileEvent, SampleMeasure};

/// What becomes of repeats at the end of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepeatFolding {
    /// The path goes back to where the repeat began: paths are canonical.
    #[default]
    Fold,
    /// Repeats stay; a recursion is as long as it was deep.
    Keep,
}

/// How closely frames are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Functions: lines and offsets are dropped.
    #[default]
    Functions,
    /// Lines: functions are divided by lines.
    Lines,
    /// Places: functions are divided by lines and by offsets in their files.
    Places,
}

/// How a tree is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeOptions {
    /// What is done with repeats at the end of a path.
    pub repeats: RepeatFolding,
    /// How closely frames are distinguished.
    pub detail: Detail,
    /// The most nodes it may have, at least 16. Past it the smallest subtrees become one node
    /// `(other)` under each parent, with their numbers.
    pub cap: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self { repeats: RepeatFolding::default(), detail: Detail::default(), cap: 1_000_000 }
    }
}

/// A thread with its own stack over the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadId(u32);

impl ThreadId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Call paths with the numbers counted on them.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(super) options: TreeOptions,
    pub(super) frames: Frames,
    pub(super) nodes: Vec<TreeNode>,
    /// Where a frame leads from a node: to a child, or back to an ancestor.
    pub(super) edges: HashMap<(NodeId, FrameId), NodeId, FxBuildHasher>,
    /// The stacks of threads; never empty but for those that ended.
    pub(super) threads: Vec<Vec<NodeId>>,
    ended: Vec<ThreadId>,
    pub(super) events: Vec<ProfileEvent>,
    pub(super) columns: Vec<EventColumn>,
    /// How often subtrees were folded.
    pub(super) folds: u32,
    /// Frames that stand in some path, by number.
    pub(super) placed: Vec<bool>,
    pub(super) has_calls: bool,
    /// What is known of the times of calls, where they were measured.
    pub(super) times: HashMap<NodeId, CallTimes, FxBuildHasher>,
    /// What events counted in calls.
    pub(super) counts: HashMap<(NodeId, EventId), CallCounts, FxBuildHasher>,
    default_event: Option<EventId>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new(TreeOptions::default())
    }
}

impl Tree {
    /// A tree of the root alone.
    pub fn new(options: TreeOptions) -> Self {
        Self {
            options: TreeOptions { cap: options.cap.clamp(16, u32::MAX as usize / 2), ..options },
            frames: Frames::new(),
            nodes: vec![TreeNode::new(FrameId::ROOT, NodeId::NONE, 0)],
            edges: HashMap::default(),
            threads: Vec::new(),
            ended: Vec::new(),
            events: Vec::new(),
            columns: Vec::new(),
            folds: 0,
            placed: vec![true],
            has_calls: false,
            times: HashMap::default(),
            counts: HashMap::default(),
            default_event: None,
        }
    }

    /// Options that the tree was built with.
    pub fn options(&self) -> TreeOptions {
        self.options
    }

    /// Registers a place in code, or finds it. A function named `[root]` of which nothing else is known
    /// is the root's frame.
    pub fn frame(&mut self, frame: &Frame<'_>) -> FrameId {
        match self.options.detail {
            Detail::Functions => self.frames.id(&Frame { line: None, offset: None, ..*frame }),
            Detail::Lines => self.frames.id(&Frame { offset: None, ..*frame }),
            Detail::Places => self.frames.id(frame),
        }
    }

    /// A registered place in code.
    pub fn frame_of(&self, id: FrameId) -> Frame<'_> {
        self.frames.get(id)
    }

    /// All registered places, in order of their numbers.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'_>> {
        (0..self.frames.len()).map(|index| self.frames.get(FrameId(index as u32)))
    }

    /// Registers an event, or finds it. One that was only known to be sampled may later prove to have
    /// weights; then it has them from then on.
    pub fn event(&mut self, event: &ProfileEvent) -> EventId {
        if let Some(id) = self.find_event(&event.name) {
            let known = &mut self.events[id.index()];
            if known.measure == SampleMeasure::Samples {
                known.measure = event.measure.clone();
            }
            return id;
        }
        self.events.push(event.clone());
        self.columns.push(EventColumn::default());
        EventId(self.events.len() as u32 - 1)
    }

    /// Forgets all paths and what was counted on them; frames, events and threads stay, those at the root.
    pub fn clear(&mut self) {
        self.nodes = vec![TreeNode::new(FrameId::ROOT, NodeId::NONE, 0)];
        self.edges.clear();
        self.columns.iter_mut().for_each(|column| *column = EventColumn::default());
        self.placed = vec![true];
        self.has_calls = false;
        self.threads.iter_mut().for_each(|stack| stack.truncate(1));
        self.times.clear();
        self.counts.clear();
    }

    /// Gives places the numbers that another tree gave them, in a tree of which no place is registered yet.
    pub fn number_frames_as(&mut self, other: Self) {
        debug_assert_eq!(self.frames.len(), 1, "places are registered");
        self.frames = other.frames;
    }

    /// The event of this name.
    pub fn find_event(&self, name: &str) -> Option<EventId> {
        self.event_ids().find(|id| self.events[id.index()].name == name)
    }

    /// What is known of an event.
    pub fn event_of(&self, id: EventId) -> &ProfileEvent {
        &self.events[id.index()]
    }

    /// All events, in the order in which they came.
    pub fn event_ids(&self) -> impl Iterator<Item = EventId> + use<> {
        (0..self.events.len() as u32).map(EventId)
    }

    /// The event to show when nobody asks for another: the one set, else the first.
    pub fn default_event(&self) -> Option<EventId> {
        self.default_event.or_else(|| self.event_ids().next())
    }

    /// Says which event to show when nobody asks for another.
    pub fn set_default_event(&mut self, event: EventId) {
        self.default_event = Some(event);
    }

    /// A new thread, which stands at the root. The root counts a call for each.
    pub fn thread(&mut self) -> ThreadId {
        self.has_calls = true;
        self.nodes[0].calls += 1;
        self.position()
    }

    /// A stack that stands at the root.
    fn position(&mut self) -> ThreadId {
        let id = self.ended.pop().unwrap_or_else(|| {
            self.threads.push(Vec::new());
            ThreadId(self.threads.len() as u32 - 1)
        });
        self.threads[id.index()] = vec![NodeId::ROOT];
        id
    }

    /// Forgets a thread; what it counted stays. Its number may be given to a new one.
    pub fn end(&mut self, thread: ThreadId) {
        if !std::mem::take(&mut self.threads[thread.index()]).is_empty() {
            self.ended.push(thread);
        }
    }

    /// The node at which a thread stands.
    #[inline]
    pub fn top(&self, thread: ThreadId) -> NodeId {
        self.threads[thread.index()].last().copied().unwrap_or(NodeId::ROOT)
    }

    /// A call: the thread goes where the frame leads, and comes back with [`Tree::exit`].
    #[inline]
    pub fn enter(&mut self, thread: ThreadId, frame: FrameId) {
        let to = self.step(self.top(thread), frame);
        self.threads[thread.index()].push(to);
        self.make_room();
    }

    /// A tail call: the thread goes where the frame leads from its place, and comes back to its caller.
    #[inline]
    pub fn replace(&mut self, thread: ThreadId, frame: FrameId) {
        let to = self.step(self.top(thread), frame);
        if let Some(top) = self.threads[thread.index()].last_mut() {
            *top = to;
        }
        self.make_room();
    }

    /// Back to the caller. A thread at its beginning stays there.
    #[inline]
    pub fn exit(&mut self, thread: ThreadId) {
        let stack = &mut self.threads[thread.index()];
        if stack.len() > 1 {
            stack.pop();
        }
    }

    /// A sample of an event where the thread stands.
    #[inline]
    pub fn sample(&mut self, thread: ThreadId, event: EventId, weight: u64) {
        self.add(self.top(thread), event, Amount { samples: 1, weight });
    }

    /// A whole stack, outermost frame first, that was met with this amount of an event. `sampled` is a
    /// place for stacks, made by [`Tree::sampled`], and stays where it stands: at the root, or where
    /// [`Tree::stand`] put it.
    pub fn stack(
        &mut self,
        sampled: ThreadId,
        frames: impl IntoIterator<Item = FrameId>,
        event: EventId,
        amount: Amount,
    ) {
        self.at(sampled, frames, |tree, node| tree.add(node, event, amount));
    }

    /// Does something where frames lead from the place where stacks stand, which stays there.
    pub(super) fn at(
        &mut self,
        sampled: ThreadId,
        frames: impl IntoIterator<Item = FrameId>,
        act: impl FnOnce(&mut Self, NodeId),
    ) {
        let depth = self.threads[sampled.index()].len();
        self.stand(sampled, frames);
        act(self, self.top(sampled));
        self.threads[sampled.index()].truncate(depth);
    }

    /// Puts a place for stacks where these frames lead, so that all its stacks begin with them.
    pub fn stand(&mut self, sampled: ThreadId, frames: impl IntoIterator<Item = FrameId>) {
        for frame in frames {
            let to = self.arrive(self.top(sampled), frame);
            self.threads[sampled.index()].push(to);
            self.make_room();
        }
    }

    /// Where a path ends that a stack had, outermost frame first; at the `(other)` that it became part of, if it was
    /// folded.
    pub fn end_of(&self, frames: impl IntoIterator<Item = FrameId>) -> NodeId {
        let mut at = NodeId::ROOT;
        for frame in frames {
            let edge = self.edges.get(&(at, frame)).copied();
            let Some(to) = edge.or_else(|| self.back_edge(at, frame)) else {
                let is_other = |child: &NodeId| self.node(*child).frame().kind == FrameKind::Other;
                return self.children(at).into_iter().find(is_other).unwrap_or(at);
            };
            at = to;
        }
        at
    }

    /// What another profiler counted on a path, outermost frame first, and not on those above it: calls and amounts of
    /// events.
    pub fn tally(
        &mut self,
        sampled: ThreadId,
        frames: impl IntoIterator<Item = FrameId>,
        calls: u64,
        amounts: &[(EventId, Amount)],
    ) {
        self.at(sampled, frames, |tree, node| {
            let counted = &mut tree.nodes[node.index()].calls;
            *counted = counted.saturating_add(calls);
            tree.has_calls |= calls > 0;
            for &(event, amount) in amounts {
                tree.add(node, event, amount);
            }
        });
    }

    /// Takes off a path what was tallied there of an event, and was too much: estimates may become less.
    pub fn take_off(
        &mut self,
        sampled: ThreadId,
        frames: impl IntoIterator<Item = FrameId>,
        event: EventId,
        weight: u64,
    ) {
        self.at(sampled, frames, |tree, node| tree.columns[event.index()].take_off(node.index(), weight));
    }

    /// A place for [`Tree::stack`] and [`Tree::tally`]: a thread that counts no calls.
    pub fn sampled(&mut self) -> ThreadId {
        self.position()
    }

    /// Whether `calls` are calls that were made, not stacks that were sampled.
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// How often small subtrees were folded: places made by [`Tree::stand`] before may have become `(other)` then.
    pub fn folds(&self) -> u32 {
        self.folds
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is nothing but the root.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// Gives access to a node.
    pub fn node(&self, id: NodeId) -> NodeRef<'_> {
        NodeRef { tree: self, id }
    }

    pub(super) fn add(&mut self, node: NodeId, event: EventId, amount: Amount) {
        self.columns[event.index()].add(node.index(), amount);
    }

    /// Where a frame leads from a node; counts a call there.
    #[inline]
    fn step(&mut self, at: NodeId, frame: FrameId) -> NodeId {
        let to = self.arrive(at, frame);
        self.nodes[to.index()].calls += 1;
        to
    }

    /// Moves from a node by a frame, without counting a call.
    #[inline]
    pub(super) fn arrive(&mut self, at: NodeId, frame: FrameId) -> NodeId {
        let (recent, to) = self.nodes[at.index()].recent;
        if recent == frame { to } else { self.follow(at, frame) }
    }

    /// An edge that isn't the last one taken from its node.
    fn follow(&mut self, at: NodeId, frame: FrameId) -> NodeId {
        let to = match self.edges.get(&(at, frame)) {
            Some(&to) => to,
            None => self.discover(at, frame),
        };
        self.nodes[at.index()].recent = (frame, to);
        to
    }

    /// An edge that was never taken: back to where a repeat began, else to a new child.
    fn discover(&mut self, at: NodeId, frame: FrameId) -> NodeId {
        let to = self.back_edge(at, frame).unwrap_or_else(|| self.push_child(at, frame));
        self.edges.insert((at, frame), to);
        to
    }

    /// Where a frame leads back to from a node, if it ends a repeat.
    fn back_edge(&self, at: NodeId, frame: FrameId) -> Option<NodeId> {
        match self.options.repeats {
            RepeatFolding::Fold => self.repeated(at, frame),
            RepeatFolding::Keep => None,
        }
    }

    pub(super) fn push_child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let above = &mut self.nodes[parent.index()];
        let mut node = TreeNode::new(frame, parent, above.depth + 1);
        node.next_sibling = std::mem::replace(&mut above.first_child, id);
        self.nodes.push(node);
        if frame.index() >= self.placed.len() {
            self.placed.resize(frame.index() + 1, false);
        }
        self.placed[frame.index()] = true;
        id
    }

    /// The end of the first round of the shortest repeat that `frame` would complete: with
    /// path p(0) ... p(d), of the smallest k for which the last k of path + frame equal the k before,
    /// the node p(d + 1 - k).
    fn repeated(&self, at: NodeId, frame: FrameId) -> Option<NodeId> {
        if !self.placed.get(frame.index()).is_some_and(|&placed| placed) {
            return None;
        }
        let mut candidate = at;
        let mut k = 1;
        loop {
            let node = &self.nodes[candidate.index()];
            // The k frames before must be there.
            if node.depth + 1 < k {
                return None;
            }
            if node.frame == frame && self.is_repeat(at, node.parent, k - 1) {
                return Some(candidate);
            }
            candidate = Some(node.parent).filter(|&parent| parent != NodeId::NONE)?;
            k += 1;
        }
    }

    /// Whether the `count` frames up from `a` equal those up from `b`.
    fn is_repeat(&self, mut a: NodeId, mut b: NodeId, count: u32) -> bool {
        for _ in 0..count {
            if b == NodeId::NONE || self.nodes[a.index()].frame != self.nodes[b.index()].frame {
                return false;
            }
            (a, b) = (self.nodes[a.index()].parent, self.nodes[b.index()].parent);
        }
        true
    }

    /// Folds small subtrees when there are too many nodes.
    #[inline]
    fn make_room(&mut self) {
        if self.nodes.len() > self.options.cap {
            self.fold_smallest();
        }
    }
}
