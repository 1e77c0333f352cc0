//! Resolves event names of the emulated PMU to sums of the costs that its model keeps.
//!
//! The table is data, `relations/emulate.json`; `about` in it says how it is read. An event of the
//! model carries its sum in [`Encoding::config`](super::Encoding), a bit for each cost that counts,
//! and in `config1`, a bit for each that is taken away; so two names of one sum are the same event.

use std::sync::OnceLock;

use serde::Deserialize;

use super::{Encoding, Event, EventKind};

/// How many costs the model keeps.
pub const COSTS: usize = 13;

/// The file `relations/emulate.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EmulateTable {
    #[serde(rename = "about")]
    _about: Vec<String>,
    costs: Vec<Cost>,
    events: Vec<ModelRow>,
}

/// A cost of the model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    /// Name that callgrind gives it.
    pub(super) name: String,
    pub(super) description: String,
}

/// What some names mean to the model: one of `counts` and `missing` is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelRow {
    pub(super) names: Vec<String>,
    #[serde(default)]
    counts: Vec<String>,
    #[serde(default)]
    less: Vec<String>,
    /// Which accesses a sum of caches is about.
    #[serde(default)]
    of: Option<String>,
    #[serde(default)]
    missing: Option<String>,
}

fn table() -> &'static EmulateTable {
    static TABLE: OnceLock<EmulateTable> = OnceLock::new();
    TABLE.get_or_init(|| serde_json::from_str(include_str!("../../relations/emulate.json")).unwrap_or_default())
}

/// The costs, in the order of the table.
pub(super) fn costs() -> &'static [Cost] {
    &table().costs
}

/// The names of presets and of perf that the model knows.
pub(super) fn rows() -> &'static [ModelRow] {
    &table().events
}

/// The place of a cost among [`COSTS`], by callgrind's name for it.
pub fn cost(name: &str) -> Option<usize> {
    costs().iter().position(|cost| cost.name == name)
}

impl ModelRow {
    /// What is counted, in callgrind's words: `D1mr + D1mw, of loads and stores`.
    pub(super) fn formula(&self) -> String {
        let less: String = self.less.iter().map(|name| format!(" - {name}")).collect();
        let of = self.of.as_ref().map_or_else(String::new, |of| format!(", of {of}"));
        format!("{}{less}{of}", self.counts.join(" + "))
    }

    /// Whether the model can count it.
    pub(super) fn is_counted(&self) -> bool {
        self.missing.is_none()
    }

    fn encoding(&self) -> Encoding {
        let bits =
            |names: &[String]| names.iter().filter_map(|name| cost(name)).fold(0, |bits, place| bits | 1 << place);
        match &self.missing {
            Some(why) => Encoding::absent(&format!("not supported by the model: {why}")),
            None => Encoding { config1: bits(&self.less), ..Encoding::of(Encoding::MODEL, bits(&self.counts)) },
        }
    }
}

/// The canonical name and the encoding of a cost or a preset by its name, in any case of letters.
pub(super) fn find(name: &str) -> Option<(String, Encoding)> {
    if let Some(place) = costs().iter().position(|cost| cost.name.eq_ignore_ascii_case(name)) {
        return Some((costs()[place].name.clone(), Encoding::of(Encoding::MODEL, 1 << place)));
    }
    let row = rows().iter().find(|row| row.names.iter().any(|known| known.eq_ignore_ascii_case(name)))?;
    // perf's word for it, where there is one: relations and metrics know it by that.
    let is_perfs = |name: &&String| name.starts_with(|c: char| c.is_ascii_lowercase());
    let canonical = row.names.iter().find(is_perfs).or(row.names.first())?;
    Some((canonical.clone(), row.encoding()))
}

/// Why an event that exists elsewhere can't be counted by the model.
pub(super) fn not_modelled(canonical: &str) -> Encoding {
    Encoding::absent(&format!("not supported by the model: it has no {canonical}"))
}

/// How an event of the model is made of its costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Formula {
    plus: u64,
    minus: u64,
}

impl Formula {
    /// The formula of an event; `None` for one that the model doesn't count.
    pub fn of(event: &Event) -> Option<Self> {
        let is_modelled = event.kind == EventKind::Modelled && event.encoding.absent.is_none();
        is_modelled.then_some(Self { plus: event.encoding.config, minus: event.encoding.config1 })
    }

    /// What the event counts, given the costs.
    pub fn count(self, costs: &[u64; COSTS]) -> u64 {
        let sum = |bits: u64| {
            let chosen = costs.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
            chosen.fold(0_u64, |sum, (_, cost)| sum.saturating_add(*cost))
        };
        sum(self.plus).saturating_sub(sum(self.minus))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]
    use std::collections::HashSet;

    use super::*;
    use crate::events::presets;
    use crate::events::symbols;

    #[test]
    fn the_table_is_well_formed() {
        let table: EmulateTable = serde_json::from_str(include_str!("../../relations/emulate.json")).unwrap();
        assert_eq!(table.costs.len(), COSTS);
        let mut names = HashSet::new();
        for row in &table.events {
            assert!(row.missing.is_some() == row.counts.is_empty(), "{:?}", row.names);
            assert!(row.counts.iter().chain(&row.less).all(|name| cost(name).is_some()), "{:?}", row.names);
            for name in &row.names {
                assert!(names.insert(name.to_lowercase()) || *name == name.to_lowercase(), "{name} twice");
                let known = presets::find(name).is_some() || symbols::find(name).is_some_and(|s| s.canonical == *name);
                assert!(known, "{name} is no preset and no canonical name of perf");
            }
        }
        for preset in presets::all() {
            assert!(names.contains(&preset.name.to_lowercase()), "{} is missing", preset.name);
        }
    }

    #[test]
    fn misses_of_the_l1_cache_are_reads_and_writes() {
        let (name, encoding) = find("l1_misses").unwrap();
        assert_eq!((name.as_str(), encoding.config, encoding.config1), ("L1_MISSES", 0b11_0000, 0));
        let mut costs = [0; COSTS];
        (costs[4], costs[5], costs[1]) = (7, 5, 100);
        let formula = Formula { plus: encoding.config, minus: 0 };
        assert_eq!(formula.count(&costs), 12);
        assert_eq!(Formula { plus: 0b10, minus: 0b1_0000 }.count(&costs), 93);
        assert_eq!(Formula::default().count(&[u64::MAX; COSTS]), 0);
        assert_eq!(Formula { plus: 1, minus: 0b11 }.count(&[u64::MAX; COSTS]), 0);
    }

    #[test]
    fn hits_are_said_to_be_those_of_loads() {
        let formula = |name: &str| rows().iter().find(|row| row.names[0] == name).unwrap().formula();
        assert_eq!(["L1_HITS", "L2_HITS"].map(formula), ["Dr - D1mr, of loads", "D1mr - DLmr, of loads"]);
        assert_eq!(formula("L2_MISSES"), "DLmr + DLmw, of loads and stores");
    }

    #[test]
    fn names_of_one_sum_are_one_event_and_what_has_no_sum_says_why() {
        assert_eq!(find("INSTRUCTIONS"), find("instructions"));
        assert_eq!(find("cache-misses").unwrap().1, find("LLC_MISSES").unwrap().1);
        assert_eq!(find("Ir").unwrap().1, find("instructions").unwrap().1);
        assert!(find("CYCLES").unwrap().1.absent.unwrap().contains("no clock"));
        assert_eq!(find("nonsense"), None);
    }
}
