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
use crate::profile::{Amount, Tree, share_error};
use crate::rates::{Confidence, Error};
use crate::stacks::{InterpreterFrames, Losses, OFF_CPU, Reach, StackQuality};

mod calls;
mod chains;
mod difference;
mod functions;
mod place;
mod ratio;
mod region;
mod search;
mod shape;

pub(in crate::tui) use calls::{CallMeasure, FrameIndex, FrameLabel, FrameOrigin, ModuleLabel, RowCalls, SampledTree};
use chains::ChainView;
pub(in crate::tui) use chains::TreeDirection;
pub(in crate::tui) use difference::RowDifference;
use difference::ShownDifference;
pub(in crate::tui) use functions::{FunctionRow, SumList};
use place::SiblingOrder;
pub(in crate::tui) use place::TreePlace;
use ratio::EventRatio;
pub(in crate::tui) use ratio::{RatioKind, RatioRow};
pub(in crate::tui) use region::{ChosenRegion, RegionEvent};
pub(in crate::tui) use search::Search;
pub(super) use search::exactly;
use shape::NodeAmounts;
pub(in crate::tui) use shape::TreeNode;

use super::step::ListStep;
use crate::tui::keys::Action;
use crate::tui::layout::profile::{BesideTable, Emphasis};

/// Rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Listing {
    /// Functions, those with most of their own first.
    Flat,
    /// Who called the selected function.
    Callers,
    /// Calls, from the outermost on.
    Tree,
    /// Modules, those with most of their own first.
    Modules,
}

impl Listing {
    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Callers => "callers",
            Self::Tree => "tree",
            Self::Modules => "modules",
        }
    }
}

/// A function in which much was sampled.
#[derive(Clone, Debug)]
pub(in crate::tui) struct HotRow {
    pub(in crate::tui) function: HotFunction,
    /// Its name as lists show it.
    pub(in crate::tui) shown: String,
    /// How far its share may be off.
    pub(in crate::tui) error: Error,
}

/// How much of functions' names is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NameView {
    #[default]
    Whole,
    /// Without the arguments of templates, generics and functions.
    Short,
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
    /// Whether chains of frames are one line where they can be.
    view: ChainView,
    names: NameView,
    /// The listing that the reader chose.
    chosen: Option<Listing>,
    pub(in crate::tui) emphasis: Emphasis,
    /// What the event is held against.
    ratio: Option<EventRatio>,
    /// The two sides, where profiles are compared.
    difference: Option<ShownDifference>,
    pub(in crate::tui) tree: TreePlace,
    pub(in crate::tui) callers: TreePlace,
    /// By the nodes of callers, where in the tree the function stands that they called.
    callees: Vec<Vec<TreeNode>>,
    /// The flat list; the callers of what is selected in it are shown.
    pub(in crate::tui) functions: SumList,
    pub(in crate::tui) modules: SumList,
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
        let nameless =
            |event| quality.nameless.of(event).iter().fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples));
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
        self.ratio = EventRatio::of(&self.calls, self.event).filter(|_| self.difference.is_none());
        self.tree.view = self.chain_view();
        self.tree.take((paths, NodeAmounts { own, total, standing }), order, may_join(&self.calls));
        self.list(order);
    }

    /// What the listing and the search make of the tree; done anew when either or the zoom changes.
    fn list(&mut self, order: SiblingOrder) {
        if self.has_difference() && self.listing() == Listing::Modules {
            self.list_difference();
        }
        if let Some(ratio) = &mut self.ratio {
            ratio.list(self.tree.root(), &self.calls);
        }
        let (shape, root) = (&self.tree.shape, self.tree.root());
        let before = |list: &SumList| if order == SiblingOrder::Stable { list.rows.clone() } else { Vec::new() };
        match self.listing() {
            Listing::Tree => {}
            Listing::Flat => {
                let rows = functions::functions(shape, root, &before(&self.functions));
                self.functions.take(rows);
                if self.has_difference() {
                    self.list_difference();
                }
                self.find_heaviest();
                self.list_callers(order);
            }
            Listing::Callers => self.list_callers(order),
            Listing::Modules => {
                let module = |frame| self.calls.module_of(frame);
                let rows = functions::modules(shape, root, &before(&self.modules), module);
                self.modules.take(rows);
            }
        }
        self.find();
    }

    fn list_callers(&mut self, order: SiblingOrder) {
        let has_calls = |node| self.calls.has_calls(node);
        let (paths, callees) = functions::callers(&self.tree.shape, self.functions.selected, has_calls);
        self.callers.view = self.chain_view();
        self.callers.direction = TreeDirection::CalledBy;
        self.callers.take(paths, order, may_join(&self.calls));
        self.callees = callees;
    }

    /// What the table lists: what the reader chose, or what says most. Regions are few, and stand where they were opened.
    pub(in crate::tui) fn listing(&self) -> Listing {
        match self.chosen {
            Some(Listing::Modules) | None if self.call_measure().is_some() => Listing::Tree,
            chosen => chosen.unwrap_or(Listing::Flat),
        }
    }

    /// What stands beside the table where there is room.
    pub(in crate::tui) fn beside_table(&self) -> BesideTable {
        match self.listing() {
            Listing::Flat if self.call_measure().is_none() => BesideTable::Callers,
            _ => BesideTable::Nothing,
        }
    }

    /// The listing that the key goes to.
    pub(in crate::tui) fn next_listing(&self) -> Listing {
        match self.listing() {
            Listing::Flat => Listing::Callers,
            Listing::Callers => Listing::Tree,
            Listing::Tree if self.call_measure().is_none() => Listing::Modules,
            Listing::Tree | Listing::Modules => Listing::Flat,
        }
    }

    /// Whether chains of frames are one line. Calls of regions were measured each by itself.
    fn chain_view(&self) -> ChainView {
        if self.call_measure().is_some() { ChainView::Whole } else { self.view }
    }

    /// The tree that the icicle draws.
    pub(in crate::tui) fn place(&self) -> &TreePlace {
        match self.listing() {
            Listing::Tree | Listing::Flat | Listing::Modules => &self.tree,
            Listing::Callers => &self.callers,
        }
    }

    fn place_mut(&mut self) -> &mut TreePlace {
        match self.listing() {
            Listing::Tree | Listing::Flat | Listing::Modules => &mut self.tree,
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

    /// The functions in which most was sampled, the first of them first; none where samples aren't known.
    pub(in crate::tui) fn hottest(&self, most: usize, confidence: Confidence) -> Vec<HotRow> {
        let whole = self.whole();
        if !self.has_samples() || whole.weight == 0 {
            return Vec::new();
        }
        let row = |function: &FunctionRow| {
            let share = self.share(function.own);
            let is_sampled = function.own != whole && !self.is_off_cpu();
            let error = if is_sampled { share_error(share, whole.samples, confidence) } else { Error::Exact };
            let name = self.calls.label(function.frame).name.clone();
            HotRow { function: HotFunction { name, share }, shown: self.name(function.frame).to_owned(), error }
        };
        let all = functions::functions(&self.tree.shape, 0, &[]);
        all.iter().filter(|function| function.own.weight > 0).take(most).map(row).collect()
    }

    /// The label of the last frame of a row.
    pub(in crate::tui) fn label(&self, row: TreeNode) -> &FrameLabel {
        let place = self.place();
        self.calls.label(place.shape.frame(place.end_of(row)))
    }

    /// The name of a frame, as it is shown in lists and the icicle. Two functions may have the same short name; they stay two.
    pub(in crate::tui) fn name(&self, frame: FrameIndex) -> &str {
        let label = self.calls.label(frame);
        match self.names {
            NameView::Whole => &label.name,
            NameView::Short => &label.short,
        }
    }

    /// The frames of a row of a tree that say something: those with which runtimes start are left out where others stand.
    pub(in crate::tui) fn frames_of_row(&self, place: &TreePlace, row: TreeNode) -> Vec<FrameIndex> {
        let all: Vec<_> = place.chain(row).into_iter().map(|node| place.shape.frame(node)).collect();
        let says = |frame: &FrameIndex| *frame != 0 && !self.calls.label(*frame).is_entry;
        let telling: Vec<_> = all.iter().copied().filter(says).collect();
        if telling.is_empty() { all.last().copied().into_iter().collect() } else { telling }
    }

    /// The number and name of the event that is shown.
    pub(in crate::tui) fn event_name(&self) -> Option<&str> {
        self.calls.events.get(self.event).map(|event| event.name.as_str())
    }

    /// Whether the event is time on no CPU, each wait of which was measured.
    pub(in crate::tui) fn is_off_cpu(&self) -> bool {
        self.event_name() == Some(OFF_CPU)
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
        match self.listing() {
            Listing::Tree | Listing::Flat | Listing::Modules => self.calls.of_calls(node, self.event),
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

    /// The function that is selected; of modules none is.
    pub(in crate::tui) fn selected_function(&self) -> Option<FrameIndex> {
        match self.listing() {
            Listing::Flat => Some(self.functions.selected),
            Listing::Modules => None,
            Listing::Tree | Listing::Callers => Some(self.place().shape.frame(self.place().selected)),
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

    /// The list of sums that is shown, if one is.
    pub(in crate::tui) fn sums(&self) -> Option<&SumList> {
        match self.listing() {
            Listing::Flat => Some(&self.functions),
            Listing::Modules => Some(&self.modules),
            Listing::Tree | Listing::Callers => None,
        }
    }

    /// Whose code a module is, and its name.
    pub(in crate::tui) fn module(&self, module: FrameIndex) -> &ModuleLabel {
        self.calls.module(module)
    }

    /// The names on the path to what is selected, the outermost first; of callers, the other way round.
    pub(in crate::tui) fn path(&self) -> Vec<FrameIndex> {
        let (place, function) = (self.place(), self.functions.selected);
        let end = match self.listing() {
            // Where the function has most.
            Listing::Flat => place.chain(place.selected).into_iter().rfind(|&node| place.shape.frame(node) == function),
            _ => None,
        };
        let end = end.unwrap_or_else(|| place.end_of(place.selected));
        let path = place.shape.ancestors(end).map(|node| place.shape.frame(node));
        let mut path: Vec<_> = path.filter(|&frame| frame != 0).collect();
        if self.listing() != Listing::Callers {
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
            Action::Chains => return self.turn_chains(height),
            Action::ShortNames => {
                self.names = if self.names == NameView::Whole { NameView::Short } else { NameView::Whole };
            }
            Action::Zoom => return self.zoom_in(),
            Action::NextSampled => self.next_event(1)?,
            Action::PreviousSampled => self.next_event(self.calls.events.len().saturating_sub(1))?,
            Action::NextHit => return self.next_hit(1, height),
            Action::PreviousHit => return self.next_hit(-1, height),
            Action::FindSame => {
                let name = exactly(&self.selected_label().name);
                self.set_search(name);
            }
            _ if self.emphasis == Emphasis::Icicle => self.go(action, height),
            Action::GoLeft | Action::Fold if self.sums().is_none() => self.place_mut().fold(height),
            Action::GoRight | Action::Unfold if self.sums().is_none() => self.place_mut().unfold(height),
            Action::Toggle if self.sums().is_none() => self.place_mut().toggle(),
            Action::UnfoldAll if self.sums().is_none() => self.place_mut().unfold_all(height),
            Action::FoldAll if self.sums().is_none() => self.place_mut().fold_all(height),
            _ => return Err("this list has nothing to fold; t lists calls"),
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
        match (self.emphasis, self.listing()) {
            (Emphasis::Icicle, Listing::Tree | Listing::Callers) => self.climb(step, height),
            (_, Listing::Flat) => {
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

    /// Shows where the function stands that is selected in the flat list, and who called it.
    fn follow_function(&mut self) {
        self.find_heaviest();
        self.callers = TreePlace::of_callers();
        self.list_callers(SiblingOrder::Anew);
    }

    fn climb(&mut self, step: ListStep, height: usize) {
        let place = self.place_mut();
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
        place.select(node, height);
    }

    /// Selects the place in the tree where the selected function has most, so that the icicle shows it.
    fn find_heaviest(&mut self) {
        let function = self.functions.selected;
        let shape = &self.tree.shape;
        let stands_in = |row| self.tree.chain(row).into_iter().any(|node| shape.frame(node) == function);
        if function == 0 || shape.len() == 0 || stands_in(self.tree.selected) {
            return;
        }
        if let Some(node) = heaviest(&self.tree, |frame| frame == function) {
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
        if self.listing() == Listing::Tree && tree.shape.len() > 0 {
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
        if self.listing() == Listing::Flat {
            self.functions.line = self.functions.row();
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
        self.list(SiblingOrder::Stable);
        Ok(())
    }

    fn zoom_in(&mut self) -> Result<(), &'static str> {
        if self.sums().is_some() {
            self.chosen = Some(Listing::Tree);
        }
        let is_new = self.place_mut().zoom_in();
        self.list(SiblingOrder::Anew);
        if is_new { Ok(()) } else { Err("this frame has the whole width already; Esc goes one level out") }
    }

    /// Zooms into what was sampled of a task, of which the first level of the tree has the number behind its name; `false`
    /// where nothing was.
    pub(in crate::tui) fn zoom_into_task(&mut self, id: i32) -> bool {
        let shape = &self.tree.shape;
        if shape.len() == 0 {
            return false;
        }
        // One that changed its name has several frames.
        let tasks = shape.children(0).filter(|node| self.is_of_task(*node, id));
        let Some(task) = tasks.max_by_key(|&node| shape.total(node).weight) else { return false };
        self.chosen = Some(Listing::Tree);
        self.tree.zoom_to(task);
        self.list(SiblingOrder::Anew);
        true
    }

    fn is_of_task(&self, node: TreeNode, id: i32) -> bool {
        self.calls.label(self.tree.shape.frame(node)).name.ends_with(&format!(" [{id}]"))
    }

    /// Whether the tree is zoomed into a task, and no deeper.
    pub(in crate::tui) fn is_zoomed_into_task(&self, id: i32) -> bool {
        self.tree.is_zoomed() && self.is_of_task(self.tree.root(), id)
    }

    /// Goes one level back; `false` where there is none.
    pub(in crate::tui) fn back(&mut self, height: usize) -> bool {
        if !self.search.is_empty() {
            self.set_search(String::new());
        } else if self.place_mut().zoom_out(height) || self.chosen.take().is_some_and(|chosen| chosen != self.listing())
        {
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
            let _ = self.zoom_in();
        } else if (node as usize) < place.shape.len() {
            place.select(node, height);
            if self.listing() == Listing::Flat {
                let tree = &self.tree;
                self.functions.choose(tree.shape.frame(tree.end_of(tree.selected)));
                self.callers = TreePlace::of_callers();
                self.list_callers(SiblingOrder::Anew);
            }
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
        match self.listing() {
            Listing::Flat => self.calls.label(self.functions.selected),
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
                matches.push(place.chain_of(node));
                found.frames += 1;
                if covered.is_none() {
                    covered = Some(shape.depth(node));
                    found.amount = found.amount.plus(shape.total(node));
                }
            }
        }
        // A row with several matches is one to go to; what is zoomed into may be the end of one.
        matches.sort_unstable_by_key(|&row| walked.get(row as usize).copied());
        matches.dedup();
        (self.found, self.matches, self.walked) = (found, matches, walked);
    }

    /// Goes to the next match in the order of the screen, from the last to the first again.
    fn next_hit(&mut self, step: isize, height: usize) -> Result<(), &'static str> {
        if self.search.is_empty() {
            return Err("nothing is searched for: / searches");
        }
        let none = Err("no name here matches");
        if let Some(list) = self.sums() {
            let is_hit = |row: &usize| self.listing() == Listing::Flat && self.is_hit(list.rows[*row].frame);
            let hits: Vec<_> = (0..list.rows.len()).filter(is_hit).collect();
            let at = list.row();
            let Some(row) = beside(&hits, at, step) else { return none };
            self.step(ListStep::By(row.cast_signed() - at.cast_signed()), height);
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

/// Of the frames that are wanted, the node that has most, of equals the first on the screen.
fn heaviest(tree: &TreePlace, is_wanted: impl Fn(FrameIndex) -> bool) -> Option<TreeNode> {
    let shape = &tree.shape;
    let weight = |node| (shape.total(node).weight, shape.own(node).weight);
    let wanted = shape.walk(tree.root()).filter(|&node| is_wanted(shape.frame(node)));
    wanted.reduce(|best, node| if weight(node) > weight(best) { node } else { best })
}

/// Whether a frame may stand in a chain: functions, processes and threads may, and what is named or summed may not.
fn may_join(calls: &SampledTree) -> impl Fn(FrameIndex) -> bool + '_ {
    |frame| calls.label(frame).may_join
}

/// The number after (or before) `at` in a list that goes up, round the end.
fn beside(sorted: &[usize], at: usize, step: isize) -> Option<usize> {
    if step > 0 {
        sorted.iter().find(|&&one| one > at).or(sorted.first()).copied()
    } else {
        sorted.iter().rev().find(|&&one| one < at).or(sorted.last()).copied()
    }
}
