//! Does what keys and clicks ask of the profile. `height` is that of the table.

use super::chains::ChainView;
use super::place::SiblingOrder;
use super::shape::Shape;
use super::{FrameIndex, FrameLabel, Listing, NameView, ProfileState, TreeNode, TreePlace, exactly, may_join};
use crate::stacks::{InterpreterFrames, OFF_CPU};
use crate::tui::keys::Action;
use crate::tui::layout::profile::Emphasis;
use crate::tui::model::step::ListStep;

impl ProfileState {
    /// Does what a key asks for; gives the reason if there is nothing to do.
    pub(in crate::tui) fn act(&mut self, action: Action, height: usize) -> Result<(), &'static str> {
        match action {
            Action::Listing => self.turn_over(),
            Action::Emphasis => self.emphasis = self.emphasis.next(),
            Action::Chains => return self.turn_chains(height),
            Action::ShortNames if !self.calls.has_short_names() => {
                return Err("no name has arguments of templates or functions");
            }
            Action::ShortNames => {
                self.names = if self.names == NameView::Whole { NameView::Short } else { NameView::Whole };
            }
            Action::SortFunctions => return self.sort_functions(),
            Action::Zoom => return self.zoom_in(),
            Action::NextSampled => self.next_event(1)?,
            Action::PreviousSampled => self.next_event(self.calls.events.len().saturating_sub(1))?,
            Action::NextHit => return self.next_hit(1, height),
            Action::PreviousHit => return self.next_hit(-1, height),
            Action::FindSame => {
                let name = match self.listing() {
                    Listing::Modules if self.is_in_sums() => exactly(&self.module(self.modules.selected).name),
                    _ => exactly(&self.selected_label().name),
                };
                self.set_search(name);
            }
            Action::GoLeft if self.emphasis == Emphasis::Icicle => self.go_aside(-1, height),
            Action::GoRight if self.emphasis == Emphasis::Icicle => self.go_aside(1, height),
            _ if self.emphasis == Emphasis::Icicle => return Err("an icicle has nothing to fold; m shows the table"),
            _ if self.sums().is_some() => return Err("this list has nothing to fold; t lists calls"),
            Action::GoLeft | Action::Fold => self.place_mut().fold(height),
            Action::GoRight | Action::Unfold => self.place_mut().unfold(height),
            Action::Toggle => self.place_mut().toggle(),
            Action::UnfoldAll => self.place_mut().unfold_all(height),
            Action::FoldAll => self.place_mut().fold_all(height),
            _ => {}
        }
        Ok(())
    }

    /// Where only the icicle is on the screen, arrows go where they point.
    fn go_aside(&mut self, step: isize, height: usize) {
        if let Some(node) = self.place().sibling(step) {
            self.select_node(node, height);
        }
    }

    /// Selects a frame of the tree, and in a list of sums what it stands for.
    pub(super) fn select_node(&mut self, node: TreeNode, height: usize) {
        self.place_mut().select(node, height);
        let frame = self.place().shape.frame(self.place().end_of(node));
        match self.listing() {
            Listing::Functions => {
                self.functions.choose(frame);
                self.callers = TreePlace::of_callers();
                self.list_callers(SiblingOrder::Anew);
            }
            Listing::Modules => self.modules.choose(self.calls.module_of(frame)),
            Listing::CallTree | Listing::Callers => {}
        }
    }

    /// Moves in the table or, where only the icicle is on the screen, up and down in that.
    pub(in crate::tui) fn step(&mut self, step: ListStep, height: usize) {
        match (self.emphasis, self.listing()) {
            (Emphasis::Icicle, _) => self.climb(step, height),
            (_, Listing::Functions) => {
                self.functions.step(step, height);
                self.follow_function();
            }
            (_, Listing::Modules) => {
                self.modules.step(step, height);
                self.find_module();
            }
            _ => self.place_mut().step(step, height),
        }
    }

    /// Shows where the function stands that is selected in the list of functions, and who called it.
    fn follow_function(&mut self) {
        self.callers = TreePlace::of_callers();
        self.list_callers(SiblingOrder::Anew);
        self.find_heaviest();
    }

    fn climb(&mut self, step: ListStep, height: usize) {
        let place = self.place();
        let (root, mut node) = (place.root(), place.selected);
        let below = |row| place.below(row).first().copied();
        match step {
            ListStep::First => node = root,
            ListStep::Last => {
                while let Some(child) = below(node) {
                    node = child;
                }
            }
            ListStep::By(by) => {
                for _ in 0..by.unsigned_abs() {
                    let next = match by < 0 {
                        true => (node != root).then(|| place.above(node)),
                        false => below(node),
                    };
                    let Some(next) = next else { break };
                    node = next;
                }
            }
        }
        self.select_node(node, height);
    }

    /// Selects the place in the tree where the selected function has most, so that the icicle shows it: of the callers
    /// that stand first in the list beside.
    pub(super) fn find_heaviest(&mut self) {
        let function = self.functions.selected;
        let shape = &self.tree.shape;
        let stands_in = |row| self.tree.chain(row).into_iter().any(|node| shape.frame(node) == function);
        if function == 0 || shape.len() == 0 || stands_in(self.tree.selected) {
            return;
        }
        let of_callers = called_through(&self.callers.shape, shape, function);
        let of_callers = of_callers.filter(|&node| shape.is_within(node, self.tree.root()));
        if let Some(node) = of_callers.or_else(|| heaviest(&self.tree, |frame| frame == function)) {
            self.tree.reveal(node);
        }
    }

    /// The same of the selected module.
    fn find_module(&mut self) {
        let (module, of) = (self.modules.selected, self.calls.modules_of_frames());
        let found = heaviest(&self.tree, |frame| module != 0 && of.get(frame as usize) == Some(&module));
        if let Some(node) = found {
            self.tree.reveal(node);
        }
    }

    fn turn_over(&mut self) {
        let (tree, function) = (&self.tree, self.functions.selected);
        if self.listing() == Listing::CallTree && tree.shape.len() > 0 {
            let chain = tree.chain(tree.selected).into_iter().map(|node| tree.shape.frame(node));
            let chain: Vec<_> = chain.collect();
            // Of a chain that the function stands in, it stays the one.
            if let Some(&last) = chain.last().filter(|_| !chain.contains(&function)) {
                self.functions.choose(last);
            }
        }
        self.chosen = Some(self.next_listing());
        if self.listing() == Listing::Callers {
            self.callers = TreePlace::of_callers();
        }
        self.tree.settle();
        self.list(SiblingOrder::Anew);
        // A list begins with its first row, if the selected one is in sight then.
        match self.listing() {
            Listing::Functions => self.functions.line = self.functions.row(),
            Listing::CallTree => self.tree.line = self.tree.row(),
            Listing::Callers | Listing::Modules => {}
        }
    }

    /// Interpreters' own frames are shown where all frames are.
    pub(in crate::tui) fn interpreter_frames(&self) -> InterpreterFrames {
        match self.view {
            ChainView::Joined => InterpreterFrames::Folded,
            ChainView::Whole => InterpreterFrames::Shown,
        }
    }

    /// Shows chains as one line each, or all frames of them.
    fn turn_chains(&mut self, height: usize) -> Result<(), &'static str> {
        if self.call_measure().is_some() {
            return Err("every region has a line of its own");
        }
        self.view = self.view.other();
        for place in [&mut self.tree, &mut self.callers] {
            place.set_view(self.view, may_join(&self.calls), height);
        }
        self.levels = 0;
        self.list(SiblingOrder::Stable);
        Ok(())
    }

    fn sort_functions(&mut self) -> Result<(), &'static str> {
        if self.has_difference() {
            return Err("functions are sorted by how much they changed");
        }
        if self.order().is_none() {
            return Err("calls stand below their callers; t lists functions, which can be sorted");
        }
        if !self.is_in_sums() {
            return Err("an icicle isn't sorted; m shows the table");
        }
        self.order = self.order.next();
        self.list(SiblingOrder::Stable);
        if self.listing() == Listing::Modules {
            self.find_module();
        }
        Ok(())
    }

    fn zoom_in(&mut self) -> Result<(), &'static str> {
        if self.sums().is_some() {
            self.chosen = Some(Listing::CallTree);
        }
        let is_new = self.place_mut().zoom_in();
        self.list(SiblingOrder::Anew);
        if is_new { Ok(()) } else { Err("this frame has the whole width already; Esc goes one level out") }
    }

    /// Zooms into what was sampled of a task, of which the first level of the tree has the number behind its name;
    /// `false` where nothing was.
    pub(in crate::tui) fn zoom_into_task(&mut self, id: i32) -> bool {
        let shape = &self.tree.shape;
        if shape.len() == 0 {
            return false;
        }
        // One that changed its name has several frames.
        let tasks = shape.children(0).filter(|node| self.is_of_task(*node, id));
        let Some(task) = tasks.max_by_key(|&node| shape.total(node).weight) else { return false };
        self.chosen = Some(Listing::CallTree);
        self.tree.zoom_to(task);
        self.list(SiblingOrder::Anew);
        true
    }

    /// Zooms into a task, of one that waited with the time on no CPU where that was sampled of it.
    pub(in crate::tui) fn open_task(&mut self, id: i32, has_waited: bool) -> bool {
        let before = self.event;
        if let Some(off_cpu) = self.calls.events.iter().position(|event| has_waited && event.name == OFF_CPU) {
            self.set_event(off_cpu);
            if self.zoom_into_task(id) {
                return true;
            }
            self.set_event(before);
        }
        self.zoom_into_task(id)
    }

    fn is_of_task(&self, node: TreeNode, id: i32) -> bool {
        self.calls.label(self.tree.shape.frame(node)).name.ends_with(&format!(" [{id}]"))
    }

    /// Whether the tree is zoomed into a task, and no deeper.
    pub(in crate::tui) fn is_zoomed_into_task(&self, id: i32) -> bool {
        self.tree.is_zoomed() && self.is_of_task(self.tree.root(), id)
    }

    /// Whether there is a level to go back from.
    pub(in crate::tui) fn has_level(&self) -> bool {
        let is_as_at_first = self.listing() == self.first_listing() && self.emphasis == Emphasis::Both;
        !self.search.is_empty() || self.place().is_zoomed() || !is_as_at_first
    }

    /// Goes one level back, if there is one.
    pub(in crate::tui) fn back(&mut self, height: usize) {
        if !self.search.is_empty() {
            self.set_search(String::new());
        } else if self.place_mut().zoom_out(height) {
            self.list(SiblingOrder::Anew);
        } else if self.listing() != self.first_listing() {
            self.chosen = None;
            self.list(SiblingOrder::Anew);
        } else {
            self.emphasis = Emphasis::Both;
        }
    }

    fn next_event(&mut self, step: usize) -> Result<(), &'static str> {
        let count = self.calls.events.len();
        if count < 2 {
            return Err("no other event is sampled: --off-cpu adds waits, -e a,b -g two events");
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
        let place = self.place();
        if place.selected == node {
            let _ = self.zoom_in();
        } else if (node as usize) < place.shape.len() {
            self.select_node(node, height);
        }
    }

    /// Selects a row of a list of sums; what is selected already is zoomed into.
    pub(in crate::tui) fn click_sum(&mut self, frame: FrameIndex) {
        match self.listing() {
            Listing::Modules => {
                self.modules.choose(frame);
                self.find_module();
            }
            _ if self.functions.selected == frame => {
                let _ = self.zoom_in();
            }
            _ => {
                self.functions.choose(frame);
                self.follow_function();
            }
        }
    }

    fn selected_label(&self) -> &FrameLabel {
        match self.is_in_functions() {
            true => self.calls.label(self.functions.selected),
            false => self.label(self.place().selected),
        }
    }
}

/// The place of a function in a tree below the callers that stand first in the tree of its callers; `None` where that
/// has no such path.
fn called_through(callers: &Shape, tree: &Shape, function: FrameIndex) -> Option<TreeNode> {
    if callers.len() == 0 || callers.frame(0) != function {
        return None;
    }
    let weight = |node| callers.total(node).weight;
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(first) = callers.children(at).next() {
        // More of the calls may have begun here than came from any caller.
        let begun = weight(at).saturating_sub(callers.children(at).map(weight).sum());
        if at != 0 && begun > weight(first) {
            break;
        }
        path.push(callers.frame(first));
        at = first;
    }
    let child = |node, frame| tree.children(node).find(|&child| tree.frame(child) == frame);
    let caller = path.into_iter().rev().try_fold(0, child)?;
    child(caller, function)
}

/// Of the frames that are wanted, the node that has most, of equals the first on the screen.
fn heaviest(tree: &TreePlace, is_wanted: impl Fn(FrameIndex) -> bool) -> Option<TreeNode> {
    let shape = &tree.shape;
    let weight = |node| (shape.total(node).weight, shape.own(node).weight);
    let wanted = shape.walk(tree.root()).filter(|&node| is_wanted(shape.frame(node)));
    wanted.reduce(|best, node| if weight(node) > weight(best) { node } else { best })
}
