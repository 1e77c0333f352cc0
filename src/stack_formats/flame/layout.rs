//! Computes the rectangles of a flame graph.

use crate::profile::{EventId, NodeId, Tree};
use crate::stack_formats::options::WrittenNumber;

/// The deepest row; pictures with more can't be looked at.
const MOST_ROWS: usize = 1500;

/// A node's place; lengths are shares of the whole width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FlameBox {
    pub(super) node: NodeId,
    pub(super) row: usize,
    pub(super) left: f64,
    pub(super) width: f64,
    /// What was counted on the node and below it.
    pub(super) number: u64,
}

/// The places of all nodes that are drawn.
#[derive(Debug, Default)]
pub(super) struct FlameLayout {
    pub(super) places: Vec<FlameBox>,
    pub(super) rows: usize,
    /// Nodes that are too narrow or too deep, without those below them.
    pub(super) cut: u64,
}

/// Lays out nodes that are `narrowest` wide at least, as a share of the width. Children stand at the left under their
/// parent, in the order of their names.
pub(super) fn layout(tree: &Tree, event: EventId, unit: WrittenNumber, narrowest: f64) -> FlameLayout {
    let numbers: Vec<u64> =
        tree.inclusive(event).into_iter().map(|amount| unit.in_amount(tree, event, amount)).collect();
    let total = numbers[0].max(1) as f64;
    let mut layout = FlameLayout::default();
    let mut ahead = vec![(NodeId::ROOT, 0, 0.0)];
    while let Some((node, row, left)) = ahead.pop() {
        let number = numbers[node.index()];
        layout.places.push(FlameBox { node, row, left, width: number as f64 / total, number });
        layout.rows = layout.rows.max(row + 1);
        let mut children = tree.node(node).children();
        children.retain(|child| numbers[child.index()] > 0);
        children.sort_by_key(|&child| tree.node(child).frame().name);
        let mut left = left;
        for child in children {
            let width = numbers[child.index()] as f64 / total;
            if width >= narrowest && row + 1 < MOST_ROWS {
                ahead.push((child, row + 1, left));
            } else {
                layout.cut += 1;
            }
            left += width;
        }
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Amount, Frame, ProfileEvent, SampleMeasure};

    #[test]
    fn children_share_the_width_of_their_parent() {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new("samples", SampleMeasure::Samples));
        let [a, b, c] = ["a", "b", "c"].map(|name| tree.frame(&Frame::function(name)));
        let stacks = tree.sampled();
        for (path, count) in [(vec![b], 3), (vec![a, c], 6), (vec![a], 1)] {
            tree.stack(stacks, path, event, Amount { samples: count, weight: count });
        }
        let places = |narrowest| {
            let layout = layout(&tree, event, WrittenNumber::Samples, narrowest);
            let mut places: Vec<_> = layout
                .places
                .iter()
                .map(|place| (tree.names(place.node).join(";"), place.left, place.width, place.number))
                .collect();
            places.sort_by(|a, b| a.0.cmp(&b.0));
            (places, layout.cut)
        };
        let place = |path: &str, left, width, number| (path.to_owned(), left, width, number);
        let (all, cut) = places(0.0);
        assert_eq!(
            all,
            [
                place("[root]", 0.0, 1.0, 10),
                place("[root];a", 0.0, 0.7, 7),
                place("[root];a;c", 0.0, 0.6, 6),
                place("[root];b", 0.7, 0.3, 3)
            ]
        );
        assert_eq!((cut, places(0.5).0.len(), places(0.5).1), (0, 3, 1));
    }

    #[test]
    fn an_empty_tree_is_its_root() {
        let mut tree = Tree::default();
        let event = tree.event(&ProfileEvent::new("samples", SampleMeasure::Samples));
        let layout = layout(&tree, event, WrittenNumber::Weights, 0.1);
        assert_eq!((layout.places.len(), layout.places[0].width, layout.cut), (1, 0.0, 0));
    }
}
