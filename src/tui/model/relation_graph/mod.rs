//! Lays out the graph of relations: which event corrects which, each at its place.
//!
//! Made once: what is measured, and which relations there are, doesn't change, and a drawing must stand still.

use crate::estimate::RelationIndex;
use crate::plan::RowIndex;
use crate::relations::{BoundForm, Relation, RelationBinding};
use crate::run::MeasuredEvent;

mod layered;

pub(in crate::tui) use layered::{GraphEdge, GraphLayout, GraphSlot};

/// The events that relations connect, and the edges between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct RelationGraph {
    pub(in crate::tui) nodes: Vec<RowIndex>,
    pub(in crate::tui) edges: Vec<(GraphEdge, RelationIndex)>,
    pub(in crate::tui) layout: GraphLayout,
}

impl RelationGraph {
    pub(super) fn of(events: &[MeasuredEvent], relations: &[Relation]) -> Self {
        let events: Vec<_> = events.iter().map(|event| event.event.clone()).collect();
        let mut pairs: Vec<(RowIndex, RowIndex, RelationIndex)> = Vec::new();
        for (index, relation) in relations.iter().enumerate() {
            let RelationBinding::Active(bound) = relation.bind(&events) else { continue };
            match bound.form {
                BoundForm::Pair(pair) => pairs.push((pair.from, pair.to, index)),
                BoundForm::Equation(equation) => {
                    let to = equation.left_events().next();
                    let from = equation.events().iter().filter(|&&event| Some(event) != to);
                    pairs.extend(to.into_iter().flat_map(|to| from.clone().map(move |&from| (from, to, index))));
                }
            }
        }
        let mut nodes: Vec<RowIndex> = pairs.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |event: RowIndex| nodes.binary_search(&event).unwrap_or(0);
        let edges: Vec<_> =
            pairs.iter().map(|&(from, to, index)| (GraphEdge { from: place(from), to: place(to) }, index)).collect();
        let plain: Vec<_> = edges.iter().map(|(edge, _)| *edge).collect();
        Self { layout: layered::layout(nodes.len(), &plain), nodes, edges }
    }
}
