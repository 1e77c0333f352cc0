//! Exports a tree to a file for another tool.

use std::fmt;
use std::io::{self, Write};

use super::{firefox, flame, folded, pprof, speedscope};
use crate::profile::{Amount, EventId, NodeRef, Tree};

/// What a file is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// pprof's protobuf, packed with gzip; all events.
    Pprof,
    /// A stack a line, `a;b;c 12`; one event.
    Folded,
    /// JSON for the Firefox Profiler, an event a track.
    Firefox,
    /// JSON for speedscope, an event a profile.
    Speedscope,
    /// A flame graph as a picture; one event.
    Svg,
    /// A flame graph as a page; one event.
    Html,
}

/// Which of an event's numbers is written, where a format has room for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// The weight: what samples stand for.
    #[default]
    Weights,
    /// The number of samples.
    Samples,
}

impl Unit {
    /// The number of a node itself. An event without samples has its weight only.
    pub(super) fn of(self, node: &NodeRef<'_>, event: EventId) -> u64 {
        self.in_amount(node.tree(), event, node.amount(event))
    }

    /// This number of an amount that was summed over nodes.
    pub(super) fn in_amount(self, tree: &Tree, event: EventId, amount: Amount) -> u64 {
        match self {
            Self::Samples if tree.event_of(event).has_samples() => amount.samples,
            _ => amount.weight,
        }
    }

    /// Name of the unit, as pprof has it.
    pub(super) fn name(self, tree: &Tree, event: EventId) -> &str {
        match self {
            Self::Samples if tree.event_of(event).has_samples() => "count",
            _ => tree.event_of(event).unit(),
        }
    }
}

/// How a file is written.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Which number of an event.
    pub unit: Unit,
    /// The event, where a format has room for one; the tree's default where this is `None`.
    pub event: Option<EventId>,
    /// What stands above a flame graph.
    pub title: String,
}

impl WriteOptions {
    pub(super) fn event(&self, tree: &Tree) -> Option<EventId> {
        self.event.or_else(|| tree.default_event())
    }
}

/// Why a file isn't written.
#[derive(Debug)]
pub enum WriteError {
    /// Writing failed.
    Io(io::Error),
    /// Samples were requested, but of this event only sums are known.
    NoSamples(String),
    /// The numbers of this event are too large for the format.
    TooLarge(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl std::error::Error for WriteError {}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::NoSamples(event) => write!(f, "of {event} the number of samples isn't known, only a sum"),
            Self::TooLarge(event) => write!(f, "the numbers of {event} are too large for this format"),
        }
    }
}

/// Writes a tree.
///
/// # Errors
/// Fails if the output can't be written, or the numbers don't exist.
pub fn write(tree: &Tree, target: Target, options: &WriteOptions, out: &mut dyn Write) -> Result<(), WriteError> {
    let event = options.event(tree);
    let without = event.map(|event| tree.event_of(event)).filter(|event| !event.has_samples());
    if let (Unit::Samples, Some(event), true) = (options.unit, without, target != Target::Pprof) {
        return Err(WriteError::NoSamples(event.name.clone()));
    }
    match target {
        Target::Pprof => pprof::write(tree, event, out)?,
        Target::Folded => folded::write(tree, options, out)?,
        Target::Firefox => firefox::write(tree, options, out)?,
        Target::Speedscope => speedscope::write(tree, options, out)?,
        Target::Svg => flame::svg(tree, options, out)?,
        Target::Html => flame::html(tree, options, out)?,
    }
    out.flush().map_err(WriteError::Io)
}
