//! Computes metrics, with error bars, from what was counted.
//!
//! A [`Metric`] is a formula over the counts of events, such as instructions per cycle. Formulas come
//! from relation files, from the vendors' tables ([`vendor`]) and from perfprop itself
//! (`relations/metrics.json`). A [`Catalog`] finds them and puts those that a formula names into it;
//! [`MetricRequest`] says which events they need; [`Derived`] computes them.
//!
//! ```text
//! -M IPC    catalog           request                       derived
//!           IPC = I / C   ->  {instructions,cycles}:W   ->  0.85 ±2.1 %
//! ```

mod catalog;
mod derived;
mod facts;
mod request;
mod scale;
pub mod vendor;

pub use catalog::{Catalog, ExpansionError, FormulaNeeds, Formulas, MAX_NAMING, MAX_NODES, MAX_TOGETHER};
pub use derived::{Derived, NoValue, Number, ThresholdVerdict};
pub use facts::{Facts, MeasuredScope};
pub use request::{MetricRequest, Skipped, Unknown};
pub use scale::MetricScale;

use crate::expr::Expr;

/// A formula over the counts of events.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// What it is called; in any case of letters.
    pub name: String,
    /// What it is computed from: names of events and of other metrics, facts of the machine.
    pub formula: Expr,
    /// Unit and factor of the shown value.
    pub scale: MetricScale,
    /// The groups of metrics that it belongs to.
    pub groups: Vec<String>,
    /// What isn't 0 where the value is one to look into; over values that aren't scaled.
    pub threshold: Option<Expr>,
    /// Description for people.
    pub description: String,
    /// Whether its events are to be counted at the same time.
    pub grouping: Grouping,
    /// Groups of metrics by which it is asked for without its events being counted together.
    pub apart_in: Vec<String>,
}

/// Whether the events of a metric are to be counted at the same time, where they fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The events must be counted in one group.
    #[default]
    Together,
    /// The events may be counted in different groups.
    Apart,
    /// The events may be counted in different groups while the NMI watchdog takes a counter.
    ApartUnderWatchdog,
    /// The events may be counted in different groups while cores run several threads.
    ApartUnderSmt,
}

impl Grouping {
    /// Every grouping, with the word that relation files have for it.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Together, "together"),
        (Self::Apart, "apart"),
        (Self::ApartUnderWatchdog, "apart-under-watchdog"),
        (Self::ApartUnderSmt, "apart-under-smt"),
    ];

    /// The word that relation files have for it.
    pub fn word(self) -> &'static str {
        Self::ALL.into_iter().find(|(grouping, _)| *grouping == self).map_or("", |(_, word)| word)
    }
}

/// How many characters the name of a metric has at most, as ids of relations have.
pub const MAX_NAME: usize = 100;

/// Whether `text` can be the name of a metric: characters that a terminal draws, and blanks between them.
pub(crate) fn is_name(text: &str) -> bool {
    let is_drawn = |c: char| c == ' ' || !(c.is_whitespace() || crate::names::is_hidden(c));
    text.trim() == text && text.chars().all(is_drawn) && (1..=MAX_NAME).contains(&text.chars().count())
}

/// The parts of a list such as `TopdownL1;Default`.
pub(crate) fn list(text: &str) -> Vec<String> {
    text.split([';', ',']).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
