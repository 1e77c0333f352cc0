//! Holds the state of the Profile screen.
//!
//! ```text
//! profile::Tree ──> SampledTree ──event──> TreePlace ──> functions
//!                                                  └──> TreePlace     callers of one of them
//! ```
//!
//! All that drawing needs is worked out here, when something changes; drawing looks at what is on the screen only.

use std::sync::Arc;

use crate::diagnosis::{HotFunction, SampledSpace};
use crate::profile::{Amount, Tree, share_error};
use crate::rates::{Confidence, Error};
use crate::stacks::{Losses, OFF_CPU, Reach, SampleWorth, StackQuality};
use crate::units::WallNs;

mod calls;
mod chains;
mod difference;
mod functions;
mod hits;
mod moves;
mod place;
mod ratio;
mod region;
mod search;
mod shape;

pub(in crate::tui) use calls::{CallMeasure, FrameIndex, FrameLabel, FrameOrigin, ModuleLabel, RowCalls, SampledTree};
pub(in crate::tui) use chains::ChainEnd;
use chains::ChainView;
pub(in crate::tui) use chains::TreeDirection;
pub(in crate::tui) use difference::RowDifference;
use difference::ShownDifference;
pub(in crate::tui) use functions::{FunctionOrder, FunctionRow, SumList};
use place::SiblingOrder;
pub(in crate::tui) use place::TreePlace;
use ratio::EventRatio;
pub(in crate::tui) use ratio::{RatioKind, RatioRow};
pub(in crate::tui) use region::{ChosenRegion, RegionEvent};
pub(in crate::tui) use search::Search;
pub(super) use search::exactly;
use shape::NodeAmounts;
pub(in crate::tui) use shape::TreeNode;

use crate::tui::layout::profile::{BesideTable, Emphasis};

/// Rows of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Listing {
    /// Functions, those with most of their own first.
    Functions,
    /// Who called the selected function.
    Callers,
    /// Calls, from the outermost on.
    CallTree,
    /// Modules, those with most of their own first.
    Modules,
}

impl Listing {
    pub(in crate::tui) fn word(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Callers => "callers",
            Self::CallTree => "call tree",
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
    /// The share with what it called.
    pub(in crate::tui) total: f64,
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
    /// Samples that were read and wait for their names.
    pub(in crate::tui) waiting: u64,
    /// Samples up to this time are left out.
    pub(in crate::tui) since: Option<WallNs>,
    /// How far the stacks of each event go, where that is known.
    reach: Vec<Option<Reach>>,
    /// How many samples of each event are in functions without a name.
    nameless: Vec<u64>,
    /// What samples tell whose weights differ.
    worth: SampleWorth,
    /// What the reader should know of all stacks and regions.
    pub(in crate::tui) findings: Vec<String>,
    /// How stacks were had where frame pointers are missing.
    pub(in crate::tui) copying: Option<String>,
    /// The place of the event in [`SampledTree::events`].
    pub(in crate::tui) event: usize,
    /// Whether chains of frames are one line where they can be.
    view: ChainView,
    names: NameView,
    order: FunctionOrder,
    /// The listing that the reader chose.
    chosen: Option<Listing>,
    pub(in crate::tui) emphasis: Emphasis,
    /// What the event is held against.
    ratio: Option<EventRatio>,
    /// The two sides, where profiles are compared.
    difference: Option<ShownDifference>,
    pub(in crate::tui) tree: TreePlace,
    pub(in crate::tui) callers: TreePlace,
    /// The most levels that the icicle had since the reader chose what it shows: one that comes and goes would move the
    /// table.
    levels: u16,
    /// By the nodes of callers, where in the tree the function stands that they called.
    callees: Vec<Vec<TreeNode>>,
    /// The list of functions; the callers of what is selected in it are shown.
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

    /// What went missing, with the stacks of the event that are cut or may lack callers.
    pub(in crate::tui) fn losses_of_event(&self) -> Losses {
        match self.reach() {
            Some(Reach { cut, unknown, .. }) => Losses { cut, unknown, ..self.losses },
            None => self.losses,
        }
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
        self.waiting = quality.waiting;
        if self.since.is_some() != quality.since.is_some() {
            self.levels = 0;
        }
        self.since = quality.since;
        self.worth.clone_from(&quality.worth);
        self.reach = tree.event_ids().map(|event| quality.reach(tree, event)).collect();
        let nameless =
            |event| quality.nameless.of(event).iter().fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples));
        self.nameless = tree.event_ids().map(nameless).collect();
        self.copying = quality.copying();
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
            Listing::CallTree => {}
            Listing::Functions => {
                let mut rows = self.calls.functions(shape, root, &before(&self.functions));
                self.order.sort(&mut rows);
                self.functions.take(rows);
                if self.has_difference() {
                    self.list_difference();
                }
                // Nobody has a cursor in the list beside.
                self.list_callers(SiblingOrder::Anew);
                // What is selected in an icicle alone is the reader's to move.
                if self.is_in_sums() {
                    self.find_heaviest();
                }
            }
            Listing::Callers => self.list_callers(order),
            Listing::Modules => {
                let module = |frame| self.calls.module_of(frame);
                let mut rows = functions::modules(shape, root, &before(&self.modules), module);
                self.order.sort(&mut rows);
                self.modules.take(rows);
            }
        }
        let levels = u16::try_from(self.place().levels()).unwrap_or(u16::MAX);
        self.levels = if order == SiblingOrder::Stable { levels.max(self.levels) } else { levels };
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

    /// By what the list of sums is sorted; `None` where there is no such list, and where it is by what changed.
    pub(in crate::tui) fn order(&self) -> Option<FunctionOrder> {
        (self.sums().is_some() && !self.has_difference()).then_some(self.order)
    }

    /// What the table lists: what the reader chose, or what says most.
    pub(in crate::tui) fn listing(&self) -> Listing {
        match self.chosen {
            Some(Listing::Modules) if self.call_measure().is_some() => Listing::CallTree,
            chosen => chosen.unwrap_or(self.first_listing()),
        }
    }

    /// What says most, until the reader chose another. Regions are few, and stand where they were opened.
    fn first_listing(&self) -> Listing {
        if self.call_measure().is_some() { Listing::CallTree } else { Listing::Functions }
    }

    /// What has the room with the table.
    pub(in crate::tui) fn beside_table(&self) -> BesideTable {
        let levels = self.levels;
        match self.listing() {
            Listing::Functions if self.call_measure().is_none() => BesideTable::IcicleAndCallers { levels },
            _ => BesideTable::Icicle { levels },
        }
    }

    /// The listing that the key goes to.
    pub(in crate::tui) fn next_listing(&self) -> Listing {
        match self.listing() {
            Listing::Functions => Listing::Callers,
            Listing::Callers => Listing::CallTree,
            Listing::CallTree if self.call_measure().is_none() => Listing::Modules,
            Listing::CallTree | Listing::Modules => Listing::Functions,
        }
    }

    /// Whether chains of frames are one line. Calls of regions were measured each by itself.
    fn chain_view(&self) -> ChainView {
        if self.call_measure().is_some() { ChainView::Whole } else { self.view }
    }

    /// The tree that the icicle draws.
    pub(in crate::tui) fn place(&self) -> &TreePlace {
        match self.listing() {
            Listing::CallTree | Listing::Functions | Listing::Modules => &self.tree,
            Listing::Callers => &self.callers,
        }
    }

    fn place_mut(&mut self) -> &mut TreePlace {
        match self.listing() {
            Listing::CallTree | Listing::Functions | Listing::Modules => &mut self.tree,
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

    /// How far a share of so much may be off.
    pub(in crate::tui) fn share_error(&self, share: f64, of: Amount, confidence: Confidence) -> Error {
        share_error(share, of.samples as f64 * self.worth.of(self.event), confidence)
    }

    /// The functions in which most was sampled, the first of them first; none where samples aren't known.
    pub(in crate::tui) fn hottest(&self, most: usize, confidence: Confidence) -> Vec<HotRow> {
        let whole = self.whole();
        if !self.has_samples() || whole.weight == 0 {
            return Vec::new();
        }
        let space = SampledSpace::of(self.event_name().unwrap_or_default());
        let row = |function: &FunctionRow| {
            let share = self.share(function.own);
            let error = if self.is_off_cpu() { Error::Exact } else { self.share_error(share, whole, confidence) };
            let name = self.calls.label(function.frame).name.clone();
            let (shown, total) = (self.name(function.frame).to_owned(), self.share(function.total));
            HotRow { function: HotFunction { name, share, space }, shown, error, total }
        };
        let all = self.calls.functions(&self.tree.shape, 0, &[]);
        all.iter().filter(|function| function.own.weight > 0).take(most).map(row).collect()
    }

    /// The label of the last frame of a row.
    pub(in crate::tui) fn label(&self, row: TreeNode) -> &FrameLabel {
        let place = self.place();
        self.calls.label(place.shape.frame(place.end_of(row)))
    }

    /// The name of a frame, as it is shown in lists and the icicle. Two functions may have the same short name; they
    /// stay two.
    pub(in crate::tui) fn name(&self, frame: FrameIndex) -> &str {
        let label = self.calls.label(frame);
        match self.names {
            NameView::Whole => &label.name,
            NameView::Short => &label.short,
        }
    }

    /// The frames of a row of a tree that say something: those with which runtimes start are left out where others
    /// stand.
    pub(in crate::tui) fn frames_of_row(&self, place: &TreePlace, row: TreeNode) -> Vec<FrameIndex> {
        let all: Vec<_> = place.chain(row).into_iter().map(|node| place.shape.frame(node)).collect();
        let says = |frame: &FrameIndex| *frame != 0 && !self.calls.label(*frame).is_entry;
        let mut telling: Vec<_> = all.iter().copied().filter(says).collect();
        // How the kernel puts a thread to sleep is the same in all waits.
        if self.is_off_cpu() && place.direction == TreeDirection::Calls {
            let of_program = |frame: &FrameIndex| self.calls.label(*frame).origin != FrameOrigin::Kernel;
            let last = telling.iter().rposition(of_program);
            telling.truncate(last.map_or(telling.len(), |last| last + 1));
        }
        if telling.is_empty() { all.last().copied().into_iter().collect() } else { telling }
    }

    /// The frame of the thread or process that a row begins with, if it does.
    pub(in crate::tui) fn task_of_row(&self, place: &TreePlace, row: TreeNode) -> Option<FrameIndex> {
        let first = place.chain(row).first().copied().filter(|&node| node != 0)?;
        let frame = place.shape.frame(first);
        let label = self.calls.label(frame);
        // Tasks are of no module.
        let is_task = place.shape.parent(first) == 0 && label.origin == FrameOrigin::Unknown && label.module.is_empty();
        is_task.then_some(frame)
    }

    /// Which frame of these of a row has its name where there is room for one: of callers the nearest; of calls the
    /// last, unless the first is the task's or all are the kernel's, as many ends of those are alike.
    pub(in crate::tui) fn kept_end(&self, place: &TreePlace, row: TreeNode, frames: &[FrameIndex]) -> ChainEnd {
        let is_task = self.task_of_row(place, row).is_some_and(|frame| frames.first() == Some(&frame));
        let is_of_kernel = |frame: &FrameIndex| self.calls.label(*frame).origin == FrameOrigin::Kernel;
        match place.direction {
            TreeDirection::Calls if !is_task && !frames.iter().all(is_of_kernel) => ChainEnd::Last,
            TreeDirection::Calls | TreeDirection::CalledBy => ChainEnd::First,
        }
    }

    /// The name of the event that is shown.
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

    /// What is known of the calls of a row of the tree; `None` where they weren't measured. Of callers, these are the
    /// calls of the function that they made.
    pub(in crate::tui) fn calls_of_node(&self, node: TreeNode) -> Option<RowCalls> {
        match self.listing() {
            Listing::CallTree | Listing::Functions | Listing::Modules => self.calls.of_calls(node, self.event),
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
        let place = self.place();
        match self.listing() {
            Listing::Functions if self.is_in_functions() => Some(self.functions.selected),
            Listing::Modules if self.is_in_sums() => None,
            Listing::Functions | Listing::Modules => Some(place.shape.frame(place.end_of(place.selected))),
            Listing::CallTree | Listing::Callers => Some(place.shape.frame(place.selected)),
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
            Listing::Functions => Some(&self.functions),
            Listing::Modules => Some(&self.modules),
            Listing::CallTree | Listing::Callers => None,
        }
    }

    /// Whether the reader has selected something.
    pub(in crate::tui) fn has_moved(&self) -> bool {
        match self.sums() {
            Some(sums) if self.is_in_sums() => sums.is_chosen,
            _ => self.place().is_settled,
        }
    }

    /// Whether keys are about a list of sums: where the icicle is alone, they are about its frames.
    pub(in crate::tui) fn is_in_sums(&self) -> bool {
        self.sums().is_some() && self.emphasis != Emphasis::Icicle
    }

    /// The same of the list of functions.
    pub(in crate::tui) fn is_in_functions(&self) -> bool {
        self.is_in_sums() && self.listing() == Listing::Functions
    }

    /// Whose code a module is, and its name.
    pub(in crate::tui) fn module(&self, module: FrameIndex) -> &ModuleLabel {
        self.calls.module(module)
    }

    /// The names on the path to what is selected, the outermost first; of callers, the other way round.
    pub(in crate::tui) fn path(&self) -> Vec<FrameIndex> {
        self.path_nodes().into_iter().map(|node| self.place().shape.frame(node)).collect()
    }

    /// How many paths lead to the function of the one that is shown, and the part of all on this one. Of a path of
    /// callers neither is told.
    pub(in crate::tui) fn path_among(&self) -> Option<(usize, f64)> {
        let shape = &self.place().shape;
        let last = self.path_nodes().last().copied().filter(|_| self.listing() != Listing::Callers)?;
        let function = shape.frame(last);
        let is_path = |node: &TreeNode| shape.frame(*node) == function && shape.total(*node).weight > 0;
        let is_outermost =
            |node: &TreeNode| !shape.ancestors(*node).skip(1).any(|above| shape.frame(above) == function);
        let all = shape.walk(0).filter(is_path).filter(is_outermost).count();
        Some((all, self.share(shape.total(last))))
    }

    /// The frames on that path, by their places in the tree that is shown.
    pub(in crate::tui) fn path_nodes(&self) -> Vec<TreeNode> {
        let (place, function) = (self.place(), self.functions.selected);
        let end = match self.listing() {
            // Where the function has most.
            Listing::Functions => {
                place.chain(place.selected).into_iter().rfind(|&node| place.shape.frame(node) == function)
            }
            _ => None,
        };
        let end = end.unwrap_or_else(|| place.end_of(place.selected));
        let is_frame = |node: &TreeNode| place.shape.frame(*node) != 0;
        let mut path: Vec<_> = place.shape.ancestors(end).filter(is_frame).collect();
        if self.listing() != Listing::Callers {
            path.reverse();
        }
        path
    }
}

/// Whether a frame may stand in a chain: functions, processes and threads may, and what is named or summed may not.
fn may_join(calls: &SampledTree) -> impl Fn(FrameIndex) -> bool + '_ {
    |frame| calls.label(frame).may_join
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, ProfileEvent, SampleMeasure, TreeOptions};
    use crate::stacks::CUT;
    use crate::tui::keys::Action;

    /// What was sampled, by stacks of an event with so many samples each.
    fn profile(stacks: &[(&str, &str, u64)]) -> ProfileState {
        let mut tree = Tree::new(TreeOptions::default());
        let place = tree.sampled();
        for &(event, stack, samples) in stacks {
            let event = tree.event(&ProfileEvent::new(event, SampleMeasure::Samples));
            let frames: Vec<_> = stack.split(' ').map(|name| tree.frame(&Frame::function(name))).collect();
            tree.stack(place, frames, event, Amount { samples, weight: samples });
        }
        let mut profile = ProfileState::default();
        let origin = crate::stacks::StackOrigin::Sampled(crate::stacks::UnwindMethod::Auto);
        let losses = Losses { cut: 9, ..Losses::default() };
        profile.take(&tree, &StackQuality { origin, losses, ..StackQuality::default() }, "");
        profile
    }

    #[test]
    fn the_path_is_that_of_the_callers_that_stand_first() {
        // Most of one path is a's, and more of two is b's.
        let profile = profile(&[("clock", "a f", 40), ("clock", "m b f", 35), ("clock", "n b f", 25)]);
        let names = |frames: Vec<FrameIndex>| -> Vec<String> {
            frames.into_iter().map(|frame| profile.calls.label(frame).name.clone()).collect()
        };
        assert_eq!(names(profile.path()), ["m", "b", "f"]);
        assert_eq!(profile.path_among(), Some((3, 0.35)));
        let totals: Vec<_> = profile.path_nodes().iter().map(|&node| profile.tree.shape.total(node).weight).collect();
        assert_eq!(totals, [35, 35, 35]);
    }

    #[test]
    fn what_is_cut_is_told_of_the_event_that_is_shown() {
        let profile = profile(&[("clock", "[cut] f", 2), ("clock", "main f", 8), ("off-cpu", "[cut] f", 7)]);
        assert_eq!((profile.losses.cut, profile.losses_of_event().cut), (9, 2));
    }

    #[test]
    fn cut_stacks_are_no_unknown_module() {
        let profile = profile(&[("clock", "[cut]", 2), ("clock", "main", 8)]);
        let cut = (0..9).find(|&frame| profile.calls.label(frame).name == CUT);
        let module = cut.map(|cut| profile.module(profile.calls.module_of(cut)).name.as_str());
        assert_eq!(module, Some(CUT));
    }

    #[test]
    fn short_names_are_refused_where_none_differs() {
        let of = |name| profile(&[("clock", name, 8)]).act(Action::ShortNames, 9);
        assert!(of("main").is_err() && of("v<int>").is_ok());
    }
}
