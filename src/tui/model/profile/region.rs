//! Finds what the events of a region counted that the reader chose.

use super::{CallMeasure, FrameIndex, Listing, ProfileState, RowCalls, SampledTree, TreeNode};
use crate::events::Unit;
use crate::profile::CallTimes;
use crate::regions::region_event;

/// A region that the reader chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tui) struct ChosenRegion {
    pub(in crate::tui) frame: FrameIndex,
    /// The frames of its path, the outermost first; `None` for all paths together.
    path: Option<Vec<FrameIndex>>,
}

/// An event that regions count.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::tui) struct RegionEvent {
    /// Name of the event, not escaped.
    pub(in crate::tui) name: String,
    pub(in crate::tui) unit: Unit,
    /// What it counted in the calls of the region; `None` where none has ended.
    pub(in crate::tui) calls: Option<RowCalls>,
}

impl ProfileState {
    /// The region that is selected: its path in the tree, elsewhere all calls of it.
    pub(in crate::tui) fn chosen_region(&self) -> Option<ChosenRegion> {
        let (place, shape) = (self.place(), &self.place().shape);
        let frame = match self.listing() {
            Listing::Functions => self.functions.selected,
            Listing::Modules => return None,
            _ if shape.len() == 0 => return None,
            _ => shape.frame(place.selected),
        };
        let path = (self.listing() == Listing::CallTree).then(|| self.path());
        self.calls.label(frame).is_region.then_some(ChosenRegion { frame, path })
    }

    /// How long the calls of a region took, and what each event counted in them. Nothing is known of a region that has
    /// gone, as it does where a replay goes back.
    pub(in crate::tui) fn region_events(&self, region: &ChosenRegion) -> (Option<CallTimes>, Vec<RegionEvent>) {
        let nodes = self.calls.nodes_of(region);
        let events = self.calls.events.iter().enumerate().filter_map(|(place, event)| {
            let Some(CallMeasure::Count(unit)) = &event.of_calls else { return None };
            let name = event.name.strip_prefix(&region_event("")).unwrap_or(&event.name);
            let calls = self.calls.of_calls_of(&nodes, place);
            Some(RegionEvent { name: name.to_owned(), unit: unit.clone(), calls })
        });
        let times = self.calls.of_calls_of(&nodes, self.event).map(|calls| calls.times);
        (times, events.collect())
    }
}

impl SampledTree {
    /// The nodes of a region whose calls were measured, in their order.
    fn nodes_of(&self, region: &ChosenRegion) -> Vec<TreeNode> {
        let is_of = |node: &TreeNode| match &region.path {
            Some(path) => self.path_of(*node).eq(path.iter().rev().copied()),
            None => self.paths.frames.get(*node as usize) == Some(&region.frame),
        };
        let mut nodes: Vec<_> = self.measured().filter(is_of).collect();
        nodes.sort_unstable();
        nodes
    }

    /// The frames on the way up from a node, without the root.
    fn path_of(&self, node: TreeNode) -> impl Iterator<Item = FrameIndex> + '_ {
        let up = move |&node: &TreeNode| self.paths.parents.get(node as usize).copied();
        std::iter::successors(Some(node), up)
            .take_while(|&node| node != 0)
            .filter_map(|node| self.paths.frames.get(node as usize).copied())
    }
}
