//! Holds the state of the Profile screen.
//!
//! ```text
//! profile::Tree ──> Calls ──event──> Place (tree) ──> functions     flat
//!                                                └──> Place         callers of one of them
//! ```
//!
//! All that drawing needs is worked out here, when something changes; drawing looks at what is on the screen only.

use std::sync::Arc;

use crate::diagnosis::HotFunction;
use crate::profile::{Amount, Tree};
use crate::stacks::{Losses, Reach, StackQuality};

mod calls;
mod functions;
mod place;
mod region;
mod search;
mod shape;

pub(in crate::tui) use calls::{CallMeasure, FrameIndex, FrameLabel, FrameOrigin, RowCalls, SampledTree};
pub(in crate::tui) use functions::FunctionRow;
use place::SiblingOrder;
pub(in crate::tui) use place::TreePlace;
pub(in crate::tui) use region::{ChosenRegion, RegionEvent};
pub(in crate::tui) use search::Search;
use shape::NodeAmounts;
pub(in crate::tui) use shape::{Shape, TreeNode};

use super::step::ListStep;
use crate::tui::keys::Action;
use crate::tui::layout::profile::Emphasis;

/// Rows of the table: the call tree, functions, or callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) enum Listing {
    /// Calls, from the outermost on.
    #[default]
    Tree,
    /// Functions, those with most of their own first.
    Flat,
    /// Who called the selected function.
    Callers,
}

impl Listing {
    pub(in crate::tui) fn next(self) -> Self {
        match self {
            Self::Tree => Self::Flat,
            Self::Flat => Self::Callers,
            Self::Callers => Self::Tree,
        }
    }

    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Flat => "flat",
            Self::Callers => "callers",
        }
    }
}

/// How much a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct SearchCount {
    /// Samples with a match on their path, below what is zoomed into.
    pub(in crate::tui) amount: Amount,
    /// Frames that match.
    pub(in crate::tui) frames: usize,
}

/// The profile as the reader looks at it.
#[derive(Debug, Default)]
pub(in crate::tui) struct ProfileState {
    pub(in crate::tui) calls: SampledTree,
    pub(in crate::tui) losses: Losses,
    /// How far the stacks of each event go, where that is known.
    reach: Vec<Option<Reach>>,
    /// How many samples of each event are in functions without a name.
    nameless: Vec<u64>,
    /// What the reader should know of all stacks and regions.
    pub(in crate::tui) findings: Vec<String>,
    /// The place of the event in [`SampledTree::events`].
    pub(in crate::tui) event: usize,
    pub(in crate::tui) listing: Listing,
    pub(in crate::tui) emphasis: Emphasis,
    pub(in crate::tui) tree: TreePlace,
    pub(in crate::tui) callers: TreePlace,
    /// By the nodes of callers, where in the tree the function stands that they called.
    callees: Vec<Vec<TreeNode>>,
    pub(in crate::tui) functions: Vec<FunctionRow>,
    /// The function that is selected in the flat list, and whose callers are shown.
    pub(in crate::tui) function: FrameIndex,
    /// On which line of the flat list it stands.
    pub(in crate::tui) line: usize,
    /// The line with most samples of the function that was selected last, and the event of which.
    pub(in crate::tui) hot_line: Option<(FrameIndex, usize, Option<u32>)>,
    pub(in crate::tui) search: Search,
    /// Which frames the search matches, by their numbers.
    hits: Vec<bool>,
    pub(in crate::tui) found: SearchCount,
    /// The nodes that match in the order of the walk over all, and the place of every node in that.
    matches: Vec<TreeNode>,
    walked: Vec<u32>,
}

/// What the screen shows of the tree.
impl ProfileState {
    /// How far the stacks of the event go.
    pub(in crate::tui) fn reach(&self) -> Option<Reach> {
        self.reach.get(self.event).copied().flatten()
    }

    /// The part of the event's samples in functions without a name.
    pub(in crate::tui) fn nameless(&self) -> f64 {
        let samples = self.nameless.get(self.event).copied().unwrap_or(0);
        samples as f64 / self.whole().samples.max(1) as f64
    }

    /// Takes over what was sampled by now.
    pub(in crate::tui) fn take(&mut self, tree: &Tree, quality: &StackQuality, target: &str) {
        let is_first = self.calls.events.is_empty();
        self.calls.take(tree);
        self.losses = quality.losses;
        self.reach = tree.event_ids().map(|event| quality.reach(tree, event)).collect();
        let nameless = |event| quality.nameless.of(event).iter().map(|(_, samples)| samples).sum::<u64>();
        self.nameless = tree.event_ids().map(nameless).collect();
        self.findings = quality.findings(tree, target);
        self.findings.extend(quality.unread.iter().map(ToString::to_string));
        if let Some(event) = tree.default_event().filter(|_| is_first) {
            self.event = event.index();
        }
        self.match_labels();
        self.show(SiblingOrder::Stable);
    }

    /// The numbers of the event, through all that is shown of them.
    fn show(&mut self, order: SiblingOrder) {
        let own = self.calls.events.get(self.event).map(|event| Arc::clone(&event.own));
        let paths = Arc::clone(&self.calls.paths);
        let own = own.unwrap_or_else(|| Arc::new(vec![Amount::ZERO; paths.frames.len()]));
        let total = paths.add_up(&own);
        let standing = paths.standing(&total, |node| self.calls.is_measured(node, self.event));
        self.tree.take((paths, NodeAmounts { own, total, standing }), order);
        self.list(order);
    }

    /// What the listing and the search make of the tree; done anew when either or the zoom changes.
    fn list(&mut self, order: SiblingOrder) {
        match self.listing {
            Listing::Tree => {}
            Listing::Flat => {
                let before = if order == SiblingOrder::Stable { self.functions.as_slice() } else { &[] };
                self.functions = functions::functions(&self.tree.shape, self.tree.root(), before);
                if !self.functions.iter().any(|function| function.frame == self.function) {
                    self.function = self.functions.first().map_or(0, |function| function.frame);
                }
            }
            Listing::Callers => {
                let has_calls = |node| self.calls.has_calls(node);
                let (paths, callees) = functions::callers(&self.tree.shape, self.function, has_calls);
                self.callers.take(paths, order);
                self.callees = callees;
            }
        }
        self.find();
    }

    /// The tree that the icicle draws.
    pub(in crate::tui) fn place(&self) -> &TreePlace {
        match self.listing {
            Listing::Tree | Listing::Flat => &self.tree,
            Listing::Callers => &self.callers,
        }
    }

    fn place_mut(&mut self) -> &mut TreePlace {
        match self.listing {
            Listing::Tree | Listing::Flat => &mut self.tree,
            Listing::Callers => &mut self.callers,
        }
    }

    /// What was counted of the event in all.
    pub(in crate::tui) fn whole(&self) -> Amount {
        self.tree.shape.total(0)
    }

    /// Whether there is nothing to show yet.
    pub(in crate::tui) fn is_empty(&self) -> bool {
        !self.tree.shape.stands(0)
    }

    /// The part of all that an amount is.
    pub(in crate::tui) fn share(&self, amount: Amount) -> f64 {
        amount.weight as f64 / self.whole().weight.max(1) as f64
    }

    /// The function in which most was sampled; `None` where nothing was.
    pub(in crate::tui) fn hottest(&self) -> Option<HotFunction> {
        let whole = self.whole().weight;
        if !self.has_samples() || whole == 0 {
            return None;
        }
        let all = functions::functions(&self.tree.shape, 0, &[]);
        let most = all.iter().max_by_key(|function| function.own.weight)?;
        let name = self.calls.label(most.frame).name.clone();
        Some(HotFunction { name, share: most.own.weight as f64 / whole as f64 })
    }

    pub(in crate::tui) fn label(&self, node: TreeNode) -> &FrameLabel {
        self.calls.label(self.place().shape.frame(node))
    }

    /// The number and name of the event that is shown.
    pub(in crate::tui) fn event_name(&self) -> Option<&str> {
        self.calls.events.get(self.event).map(|event| event.name.as_str())
    }

    /// Whether the number of samples of the event is known.
    pub(in crate::tui) fn has_samples(&self) -> bool {
        self.calls.events.get(self.event).is_some_and(|event| event.has_samples)
    }

    /// What the event measures of calls, if it does.
    pub(in crate::tui) fn call_measure(&self) -> Option<&CallMeasure> {
        self.calls.events.get(self.event)?.of_calls.as_ref()
    }

    /// What is known of the calls of a row of the tree; `None` where they weren't measured. Of callers, these are the calls
    /// of the function that they made.
    pub(in crate::tui) fn calls_of_node(&self, node: TreeNode) -> Option<RowCalls> {
        match self.listing {
            Listing::Tree | Listing::Flat => self.calls.of_calls(node, self.event),
            Listing::Callers => {
                let made = self.callees.get(node as usize).map_or(&[][..], Vec::as_slice);
                self.calls.of_calls_of(made, self.event)
            }
        }
    }

    /// What is known of all calls of a frame.
    pub(in crate::tui) fn calls_of_function(&self, frame: FrameIndex) -> Option<RowCalls> {
        self.calls.of_calls_of_frame(frame, self.event)
    }

    /// The function that is selected.
    pub(in crate::tui) fn selected_function(&self) -> FrameIndex {
        match self.listing {
            Listing::Flat => self.function,
            Listing::Tree | Listing::Callers => self.place().shape.frame(self.place().selected),
        }
    }

    /// The source file of a function, with the line of most of its samples where that is known: `spin.c:5`.
    pub(in crate::tui) fn source_of(&self, frame: FrameIndex) -> String {
        let file = &self.calls.label(frame).file;
        match self.hot_line {
            Some((of, _, Some(line))) if of == frame && !file.is_empty() => format!("{file}:{line}"),
            _ => file.clone(),
        }
    }

    /// The row of the flat list that is selected.
    pub(in crate::tui) fn function_row(&self) -> usize {
        self.functions.iter().position(|function| function.frame == self.function).unwrap_or(0)
    }

    /// The names on the path to what is selected, the outermost first; of callers, the other way round.
    pub(in crate::tui) fn path(&self) -> Vec<FrameIndex> {
        if self.listing == Listing::Flat {
            return vec![self.function];
        }
        let place = self.place();
        let path = place.shape.ancestors(place.selected).map(|node| place.shape.frame(node));
        let mut path: Vec<_> = path.filter(|&frame| frame != 0).collect();
        if self.listing == Listing::Tree {
            path.reverse();
        }
        path
    }
}

/// What keys and clicks do. `height` is that of the table.
impl ProfileState {
    /// Does what a key asks for; gives the reason if there is nothing to do.
    pub(in crate::tui) fn act(&mut self, action: Action, height: usize) -> Result<(), &'static str> {
        match action {
            Action::Listing => self.turn_over(),
            Action::Emphasis => self.emphasis = self.emphasis.next(),
            Action::Zoom => return self.zoom_in(height),
            Action::NextSampled => self.next_event(1)?,
            Action::PreviousSampled => self.next_event(self.calls.events.len().saturating_sub(1))?,
            Action::NextHit => return self.next_hit(1, height),
            Action::PreviousHit => return self.next_hit(-1, height),
            Action::FindSame => {
                let name = search::exactly(&self.selected_label().name);
                self.set_search(name);
            }
            _ if self.emphasis == Emphasis::Icicle => self.go(action, height),
            Action::GoLeft | Action::Fold if self.listing != Listing::Flat => self.place_mut().fold(height),
            Action::GoRight | Action::Unfold if self.listing != Listing::Flat => self.place_mut().unfold(height),
            Action::Toggle if self.listing != Listing::Flat => self.place_mut().toggle(),
            Action::UnfoldAll if self.listing != Listing::Flat => self.place_mut().unfold_all(height),
            Action::FoldAll if self.listing != Listing::Flat => self.place_mut().fold_all(height),
            _ => return Err("a flat list has nothing to fold; t lists calls"),
        }
        Ok(())
    }

    /// Where only the icicle is on the screen, arrows go where they point.
    fn go(&mut self, action: Action, height: usize) {
        let place = self.place_mut();
        let to = match action {
            Action::GoLeft => place.sibling(-1),
            Action::GoRight => place.sibling(1),
            _ => None,
        };
        if let Some(node) = to {
            place.select(node, height);
        }
    }

    /// Moves in the table or, where only the icicle is on the screen, up and down in that.
    pub(in crate::tui) fn step(&mut self, step: ListStep, height: usize) {
        match (self.emphasis, self.listing) {
            (Emphasis::Icicle, Listing::Tree | Listing::Callers) => self.climb(step, height),
            (_, Listing::Flat) => {
                let first = self.function_row().saturating_sub(self.line);
                let row = step.from(self.function_row(), self.functions.len());
                self.function = self.functions.get(row).map_or(0, |function| function.frame);
                self.line = place::line(row, first, self.functions.len(), height);
                self.find_heaviest(height);
            }
            _ => self.place_mut().step(step, height),
        }
    }

    fn climb(&mut self, step: ListStep, height: usize) {
        let place = self.place_mut();
        let (root, mut node) = (place.root(), place.selected);
        let shape = &place.shape;
        match step {
            ListStep::First => node = root,
            ListStep::Last => {
                while let Some(child) = shape.children(node).next() {
                    node = child;
                }
            }
            ListStep::By(by) => {
                for _ in 0..by.unsigned_abs() {
                    let next = match by < 0 {
                        true => (node != root).then(|| shape.parent(node)),
                        false => shape.children(node).next(),
                    };
                    let Some(next) = next else { break };
                    node = next;
                }
            }
        }
        place.select(node, height);
    }

    /// Selects the place in the tree where the selected function has most, so that the icicle shows it.
    fn find_heaviest(&mut self, height: usize) {
        let shape = &self.tree.shape;
        if shape.len() == 0 || shape.frame(self.tree.selected) == self.function {
            return;
        }
        let calls = shape.walk(self.tree.root()).filter(|&node| shape.frame(node) == self.function);
        // Of equals the first on the screen.
        let heaviest = calls.reduce(|best, node| {
            let weight = |node| (shape.total(node).weight, shape.own(node).weight);
            if weight(node) > weight(best) { node } else { best }
        });
        if let Some(node) = heaviest {
            self.tree.select(node, height);
        }
    }

    fn turn_over(&mut self) {
        if self.listing == Listing::Tree && self.tree.shape.len() > 0 {
            self.function = self.tree.shape.frame(self.tree.selected);
        }
        self.listing = self.listing.next();
        if self.listing == Listing::Callers {
            self.callers = TreePlace::default();
        }
        self.tree.settle();
        self.list(SiblingOrder::Anew);
        if self.listing == Listing::Flat {
            self.line = self.function_row();
        }
    }

    fn zoom_in(&mut self, height: usize) -> Result<(), &'static str> {
        if self.listing == Listing::Flat {
            self.find_heaviest(height);
            self.listing = Listing::Tree;
        }
        let is_new = self.place_mut().zoom_in();
        self.list(SiblingOrder::Anew);
        if is_new { Ok(()) } else { Err("this frame has the whole width already; Esc goes one level out") }
    }

    /// Goes one level back; `false` where there is none.
    pub(in crate::tui) fn back(&mut self, height: usize) -> bool {
        if !self.search.is_empty() {
            self.set_search(String::new());
        } else if self.place_mut().zoom_out(height) {
            self.list(SiblingOrder::Anew);
        } else if self.listing != Listing::Tree {
            self.listing = Listing::Tree;
            self.list(SiblingOrder::Anew);
        } else if self.emphasis != Emphasis::Both {
            self.emphasis = Emphasis::Both;
        } else {
            return false;
        }
        true
    }

    fn next_event(&mut self, step: usize) -> Result<(), &'static str> {
        let count = self.calls.events.len();
        if count < 2 {
            return Err("there is no other event: -e a,b -g samples both, --region-events counts in regions");
        }
        self.set_event((self.event + step) % count);
        Ok(())
    }

    /// Shows another event that was sampled.
    pub(in crate::tui) fn set_event(&mut self, event: usize) {
        if event != self.event && event < self.calls.events.len() {
            self.event = event;
            self.show(SiblingOrder::Anew);
        }
    }

    /// Selects a frame of the icicle or the table; what is selected already is zoomed into.
    pub(in crate::tui) fn click(&mut self, node: TreeNode, height: usize) {
        let place = self.place_mut();
        if place.selected == node {
            let _ = self.zoom_in(height);
        } else if (node as usize) < place.shape.len() {
            place.select(node, height);
            if self.listing == Listing::Flat {
                self.function = self.tree.shape.frame(node);
                self.line = self.line.min(self.function_row());
            }
        }
    }

    pub(in crate::tui) fn click_function(&mut self, function: FrameIndex, height: usize) {
        if self.function == function {
            let _ = self.zoom_in(height);
        } else {
            let first = self.function_row().saturating_sub(self.line);
            self.function = function;
            self.line = self.function_row().saturating_sub(first);
            self.find_heaviest(height);
        }
    }

    fn selected_label(&self) -> &FrameLabel {
        match self.listing {
            Listing::Flat => self.calls.label(self.function),
            _ => self.label(self.place().selected),
        }
    }
}

/// Searching.
impl ProfileState {
    pub(in crate::tui) fn set_search(&mut self, text: String) {
        self.search = Search::new(text);
        self.hits.clear();
        self.match_labels();
        self.find();
    }

    /// Frames that are new since the last time.
    fn match_labels(&mut self) {
        let labels = self.calls.labels();
        self.hits.truncate(labels.len());
        let new = labels[self.hits.len()..].iter().map(|label| self.search.matches(&label.name));
        self.hits.extend(new);
    }

    pub(in crate::tui) fn is_hit(&self, frame: FrameIndex) -> bool {
        self.hits.get(frame as usize).copied().unwrap_or(false)
    }

    /// A sample counts once, however many frames on its path match.
    fn find(&mut self) {
        self.found = SearchCount::default();
        self.matches.clear();
        if self.search.is_empty() {
            return;
        }
        let (place, mut found) = (self.place(), SearchCount::default());
        let shape = &place.shape;
        let mut covered: Option<usize> = None;
        let (mut matches, mut walked) = (Vec::new(), vec![0; shape.len()]);
        for (step, node) in shape.walk(if shape.len() > 0 { place.root() } else { return }).enumerate() {
            walked[node as usize] = step as u32;
            covered = covered.filter(|&depth| shape.depth(node) > depth);
            if self.is_hit(shape.frame(node)) {
                matches.push(node);
                found.frames += 1;
                if covered.is_none() {
                    covered = Some(shape.depth(node));
                    found.amount = found.amount.plus(shape.total(node));
                }
            }
        }
        (self.found, self.matches, self.walked) = (found, matches, walked);
    }

    /// Goes to the next match in the order of the screen, from the last to the first again.
    fn next_hit(&mut self, step: isize, height: usize) -> Result<(), &'static str> {
        if self.search.is_empty() {
            return Err("nothing is searched for: / searches");
        }
        let none = Err("no name here matches");
        if self.listing == Listing::Flat {
            let hits: Vec<_> =
                (0..self.functions.len()).filter(|&row| self.is_hit(self.functions[row].frame)).collect();
            let Some(row) = beside(&hits, self.function_row(), step) else { return none };
            let by = row.cast_signed() - self.function_row().cast_signed();
            self.step(ListStep::By(by), height);
            return Ok(());
        }
        let place = |node: TreeNode| self.walked.get(node as usize).copied().unwrap_or(0);
        let at = place(self.place().selected);
        let behind = self.matches.partition_point(|&node| place(node) <= at);
        let before = self.matches.partition_point(|&node| place(node) < at);
        let next = if step > 0 { self.matches.get(behind) } else { self.matches[..before].last() };
        let round = if step > 0 { self.matches.first() } else { self.matches.last() };
        let Some(&found) = next.or(round) else { return none };
        self.place_mut().select(found, height);
        Ok(())
    }
}

/// The number after (or before) `at` in a list that goes up, round the end.
fn beside(sorted: &[usize], at: usize, step: isize) -> Option<usize> {
    if step > 0 {
        sorted.iter().find(|&&one| one > at).or(sorted.first()).copied()
    } else {
        sorted.iter().rev().find(|&&one| one < at).or(sorted.last()).copied()
    }
}
