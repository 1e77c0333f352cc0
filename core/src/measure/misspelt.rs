//! Finds the names in relations that look like typing errors of this machine's events.
//!
//! A file may name events that this machine hasn't got: it may be written for others, too. Only a name that is
//! nearly an event's is reported.

use std::collections::HashMap;

use crate::events::{self, Event, Resolver};
use crate::names::{nearest, shown};
use crate::relations::Relation;

/// A line for each name that is no event here and nearly one: `R1 (file.json:1:14) names page-fautls, ...`. Events that
/// are measured are meant first.
pub fn misspelt(relations: &[Relation], measured: &[Event], resolver: &Resolver) -> Vec<String> {
    let mut seen: HashMap<String, Option<String>> = HashMap::new();
    let mut lines = Vec::new();
    for relation in relations {
        for name in relation.events() {
            let meant = seen.entry(name.clone()).or_insert_with(|| meant(&name, measured, resolver));
            if let Some(meant) = meant {
                let (id, place) = (shown(&relation.id), &relation.place);
                let (name, meant) = (shown(&name), shown(meant));
                lines.push(format!("{id} ({place}) names {name}, which is no event here; did you mean {meant}?"));
            }
        }
    }
    lines
}

/// What was meant by a name that is no event; `None` if it is one, or is like none.
pub fn meant(name: &str, measured: &[Event], resolver: &Resolver) -> Option<String> {
    let is_measured = measured.iter().any(|event| event.is_called(name));
    let is_known = |name: &str| !resolver.called(name).is_empty();
    if is_measured || is_known(name) || is_known(&name.to_lowercase()) {
        return None;
    }
    let names = measured.iter().flat_map(|event| [event.name.as_str(), &event.canonical]);
    let of_these = nearest(name, names).first().map(|&name| name.to_owned());
    of_these.or_else(|| events::similar(resolver, name).into_iter().next())
}
