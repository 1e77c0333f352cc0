//! Numbers the addresses of call stacks; each path is defined once.

use rustc_hash::FxHashMap;

use crate::stacks::live::mapped::ModuleId;

/// Stacks beyond this many parts are cut to the part that is known: some 100 MB, here and where names are
/// given to them.
const MAX_NODES: usize = 1 << 21;

/// The number of a [`CodeLocation`], from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) struct LocationId(pub(in crate::stacks::live) u32);

/// A place in the code of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) struct CodeLocation {
    pub(in crate::stacks::live) module: ModuleId,
    pub(in crate::stacks::live) place: u64,
}

/// The number of a path, from 0 in the order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) struct PathId(pub(in crate::stacks::live) u32);

/// A location that was called by a path, which makes a longer path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::stacks::live) struct PathNode {
    pub(in crate::stacks::live) caller: Option<PathId>,
    pub(in crate::stacks::live) location: LocationId,
}

/// All locations and paths that were seen.
#[derive(Debug, Default)]
pub(in crate::stacks::live) struct SeenPaths {
    locations: Vec<CodeLocation>,
    location_numbers: FxHashMap<CodeLocation, LocationId>,
    nodes: Vec<PathNode>,
    node_numbers: FxHashMap<PathNode, PathId>,
}

/// A path as far as it could be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stacks::live) enum KeptPath {
    Whole(Option<PathId>),
    /// The inner part of the path found no room.
    Cut(Option<PathId>),
}

impl SeenPaths {
    pub(in crate::stacks::live) fn location(&mut self, location: CodeLocation) -> LocationId {
        *self.location_numbers.entry(location).or_insert_with(|| {
            self.locations.push(location);
            LocationId(u32::try_from(self.locations.len() - 1).unwrap_or(u32::MAX))
        })
    }

    /// The module that a location lies in.
    pub(super) fn module(&self, location: LocationId) -> ModuleId {
        self.locations[location.0 as usize].module
    }

    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn place(&self, location: LocationId) -> u64 {
        self.locations[location.0 as usize].place
    }

    /// The path through these locations, the innermost first.
    pub(in crate::stacks::live) fn path(&mut self, innermost_first: &[LocationId]) -> KeptPath {
        let mut caller = None;
        for &location in innermost_first.iter().rev() {
            let node = PathNode { caller, location };
            caller = match self.node_numbers.get(&node) {
                Some(&known) => Some(known),
                None if self.nodes.len() >= MAX_NODES => return KeptPath::Cut(caller),
                None => Some(self.define(node)),
            };
        }
        KeptPath::Whole(caller)
    }

    fn define(&mut self, node: PathNode) -> PathId {
        let number = PathId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node);
        self.node_numbers.insert(node, number);
        number
    }

    /// The locations from a number on.
    pub(in crate::stacks::live) fn locations_since(&self, first: usize) -> &[CodeLocation] {
        self.locations.get(first..).unwrap_or_default()
    }

    /// The paths from a number on, callers first.
    pub(in crate::stacks::live) fn nodes_since(&self, first: usize) -> &[PathNode] {
        self.nodes.get(first..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_what_they_begin_with() {
        let mut paths = SeenPaths::default();
        let at = |place| CodeLocation { module: ModuleId(0), place };
        let [main, f, g] = [1, 2, 3].map(|place| paths.location(at(place)));
        assert_eq!(paths.location(at(2)), f);
        let KeptPath::Whole(Some(to_f)) = paths.path(&[f, main]) else { panic!("no path") };
        let KeptPath::Whole(Some(to_g)) = paths.path(&[g, f, main]) else { panic!("no path") };
        assert_eq!(paths.nodes_since(to_g.0 as usize), [PathNode { caller: Some(to_f), location: g }]);
        assert_eq!(paths.nodes_since(0).len(), 3);
        assert_eq!(paths.path(&[f, main]), KeptPath::Whole(Some(to_f)));
        assert_eq!(paths.path(&[]), KeptPath::Whole(None));
        assert_eq!(paths.locations_since(2), [at(3)]);
    }
}
