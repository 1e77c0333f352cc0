//! Lays out the graph of relations: which event corrects which, each at its place.
//!
//! Made once: what is measured, and which relations there are, doesn't change, and a drawing must stand still.

use crate::estimate::RelationIndex;
use crate::plan::EventIndex;
use crate::relations::{BoundForm, Relation, RelationBinding};
use crate::run::MeasuredEvent;

mod layered;

pub(in crate::tui) use layered::{Edge, Layout, Slot};

/// The events that relations tie together, and an edge for each of these ties.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::tui) struct Ties {
    pub(in crate::tui) nodes: Vec<EventIndex>,
    pub(in crate::tui) edges: Vec<(Edge, RelationIndex)>,
    pub(in crate::tui) layout: Layout,
}

impl Ties {
    pub(super) fn of(events: &[MeasuredEvent], relations: &[Relation]) -> Self {
        let events: Vec<_> = events.iter().map(|event| event.event.clone()).collect();
        let mut ties: Vec<(EventIndex, EventIndex, RelationIndex)> = Vec::new();
        for (index, relation) in relations.iter().enumerate() {
            let RelationBinding::Active(bound) = relation.bind(&events) else { continue };
            match bound.form {
                BoundForm::Pair(pair) => ties.push((pair.from, pair.to, index)),
                BoundForm::Equation(equation) => {
                    let to = equation.left_events().next();
                    let from = equation.events().iter().filter(|&&event| Some(event) != to);
                    ties.extend(to.into_iter().flat_map(|to| from.clone().map(move |&from| (from, to, index))));
                }
            }
        }
        let mut nodes: Vec<EventIndex> = ties.iter().flat_map(|&(from, to, _)| [from, to]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let place = |event: EventIndex| nodes.binary_search(&event).unwrap_or(0);
        let edges: Vec<_> =
            ties.iter().map(|&(from, to, index)| (Edge { from: place(from), to: place(to) }, index)).collect();
        let plain: Vec<_> = edges.iter().map(|(edge, _)| *edge).collect();
        Self { layout: layered::layout(nodes.len(), &plain), nodes, edges }
    }
}
