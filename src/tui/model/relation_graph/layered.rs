//! Arranges a directed graph in columns: sources on the left, what they lead to on the right (after Sugiyama,
//! Tagawa and Toda, "Methods for visual understanding of hierarchical system structures", 1981).
//!
//! The same graph always gives the same columns, so a drawing of it stands still.

/// An edge from a node to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) struct GraphEdge {
    pub(in crate::tui) from: usize,
    pub(in crate::tui) to: usize,
}

/// What takes up room in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum GraphSlot {
    Node(usize),
    /// This edge passes through the column.
    Pass(usize),
}

/// Where everything stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct GraphLayout {
    /// Columns from left to right, each from top to bottom.
    pub(in crate::tui) columns: Vec<Vec<GraphSlot>>,
    /// The column of each node.
    pub(in crate::tui) column: Vec<usize>,
    /// Edges that run from right to left, because they close a cycle.
    pub(in crate::tui) back: Vec<bool>,
}

/// How often the order within columns is improved.
const SWEEPS: usize = 4;

/// Puts nodes into columns.
pub(super) fn layout(nodes: usize, edges: &[GraphEdge]) -> GraphLayout {
    let back = back_edges(nodes, edges);
    let column = columns_of(nodes, edges, &back);
    let count = column.iter().max().map_or(0, |last| last + 1);
    let mut columns = vec![Vec::new(); count];
    for (node, &place) in column.iter().enumerate() {
        columns[place].push(GraphSlot::Node(node));
    }
    for (index, edge) in edges.iter().enumerate() {
        let (left, right) = ends(*edge, back[index]);
        for passed in columns.iter_mut().take(column[right]).skip(column[left] + 1) {
            passed.push(GraphSlot::Pass(index));
        }
    }
    let mut layout = GraphLayout { columns, column, back };
    for sweep in 0..SWEEPS {
        layout.order(edges, sweep % 2 == 0);
    }
    layout
}

/// Ends of an edge from left to right.
fn ends(edge: GraphEdge, back: bool) -> (usize, usize) {
    if back { (edge.to, edge.from) } else { (edge.from, edge.to) }
}

/// Edges to a node that is still on the path of a depth-first walk. The walk keeps its own stack.
fn back_edges(nodes: usize, edges: &[GraphEdge]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Done,
    }
    let mut outgoing = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(index, edge)| outgoing[edge.from].push(index));
    let mut marks = vec![Mark::New; nodes];
    let mut back = vec![false; edges.len()];
    for start in 0..nodes {
        let mut path = if marks[start] == Mark::New { vec![(start, 0)] } else { Vec::new() };
        while let Some((node, next)) = path.last_mut() {
            marks[*node] = Mark::OnPath;
            let Some(&index) = outgoing[*node].get(*next) else {
                marks[*node] = Mark::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match marks[edges[index].to] {
                Mark::New => path.push((edges[index].to, 0)),
                Mark::OnPath => back[index] = true,
                Mark::Done => {}
            }
        }
    }
    back
}

/// Puts each node right of all that lead to it: by the longest way from a source.
fn columns_of(nodes: usize, edges: &[GraphEdge], back: &[bool]) -> Vec<usize> {
    let mut column = vec![0; nodes];
    // Without cycles no way is longer than there are nodes.
    for _ in 0..nodes {
        let mut changed = false;
        for (edge, &back) in edges.iter().zip(back) {
            let (left, right) = ends(*edge, back);
            if left != right && column[right] <= column[left] {
                column[right] = column[left] + 1;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    column
}

impl GraphLayout {
    /// Moves each slot towards the middle of its neighbours in the column before, or behind.
    fn order(&mut self, edges: &[GraphEdge], rightwards: bool) {
        let count = self.columns.len();
        let places: Vec<usize> =
            if rightwards { (1..count).collect() } else { (0..count.saturating_sub(1)).rev().collect() };
        for place in places {
            let beside = if rightwards { place - 1 } else { place + 1 };
            let weights: Vec<Option<f64>> =
                self.columns[place].iter().map(|slot| self.middle(edges, *slot, beside)).collect();
            let mut order: Vec<usize> = (0..weights.len()).collect();
            // A slot without neighbours stays about where it is.
            let key = |index: usize| weights[index].unwrap_or(index as f64);
            order.sort_by(|&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
            self.columns[place] = order.into_iter().map(|index| self.columns[place][index]).collect();
        }
    }

    /// The mean place of the neighbours of a slot in the column `beside`.
    fn middle(&self, edges: &[GraphEdge], slot: GraphSlot, beside: usize) -> Option<f64> {
        let meets = |index: usize| match slot {
            GraphSlot::Pass(edge) => edge == index,
            GraphSlot::Node(node) => edges[index].from == node || edges[index].to == node,
        };
        let neighbours = self.columns[beside].iter().enumerate().filter(|(_, other)| match **other {
            GraphSlot::Pass(edge) => meets(edge),
            GraphSlot::Node(other) => {
                (0..edges.len()).any(|index| meets(index) && (edges[index].from == other || edges[index].to == other))
            }
        });
        let places: Vec<f64> = neighbours.map(|(place, _)| place as f64).collect();
        (!places.is_empty()).then(|| places.iter().sum::<f64>() / places.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edges(pairs: &[(usize, usize)]) -> Vec<GraphEdge> {
        pairs.iter().map(|&(from, to)| GraphEdge { from, to }).collect()
    }

    #[test]
    fn a_long_edge_passes_through_the_columns_between() {
        let found = layout(3, &edges(&[(0, 1), (1, 2), (0, 2)]));
        assert_eq!(found.column, [0, 1, 2]);
        assert_eq!(found.back, [false; 3]);
        assert!(found.columns[1].contains(&GraphSlot::Pass(2)));
    }

    #[test]
    fn a_cycle_has_one_edge_back() {
        let found = layout(3, &edges(&[(0, 1), (1, 2), (2, 0)]));
        assert_eq!((found.column, found.back), (vec![0, 1, 2], vec![false, false, true]));
        let alone = layout(1, &edges(&[(0, 0)]));
        assert_eq!((alone.column, alone.back), (vec![0], vec![true]));
        assert_eq!(layout(0, &[]), GraphLayout::default());
    }

    #[test]
    fn neighbours_stand_beside_one_another() {
        // 0 and 1 lead to 3 and 2: without an order the edges would cross.
        let found = layout(4, &edges(&[(0, 3), (1, 2)]));
        assert_eq!(found.columns[1], [GraphSlot::Node(3), GraphSlot::Node(2)]);
    }

    proptest! {
        #[test]
        fn every_edge_runs_from_left_to_right_unless_it_closes_a_cycle(
            pairs in prop::collection::vec((0usize..9, 0usize..9), 0..20),
        ) {
            let edges = edges(&pairs);
            let found = layout(9, &edges);
            for (edge, &back) in edges.iter().zip(&found.back) {
                let (left, right) = ends(*edge, back);
                prop_assert!(left == right || found.column[left] < found.column[right]);
            }
            let nodes = found.columns.iter().flatten().filter(|slot| matches!(slot, GraphSlot::Node(_))).count();
            prop_assert_eq!(nodes, 9);
            prop_assert_eq!(layout(9, &edges), found);
        }
    }
}
