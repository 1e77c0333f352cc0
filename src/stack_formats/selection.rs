//! Selects the events of a file that are read.

use super::error::{Fault, FaultKind};
use super::options::EventSelection;

/// Which events of a file are taken, as it goes on.
pub(super) enum EventSelector {
    All,
    /// The first one, once it is known, and the others with how often they were met.
    First {
        first: Option<String>,
        others: Vec<(String, u64)>,
    },
    /// The events with these names, and some of those that weren't taken.
    Named {
        names: Vec<String>,
        taken: bool,
        others: Vec<String>,
    },
}

/// The number of other events that a message names.
const MOST_OTHERS: usize = 12;

impl EventSelector {
    pub(super) fn new(events: &EventSelection) -> Self {
        match events {
            EventSelection::All => Self::All,
            EventSelection::First => Self::First { first: None, others: Vec::new() },
            EventSelection::Named(names) => Self::Named { names: names.clone(), taken: false, others: Vec::new() },
        }
    }

    pub(super) fn takes(&mut self, event: &str) -> bool {
        match self {
            Self::All => true,
            Self::First { first, others } => {
                let takes = first.get_or_insert_with(|| event.into()) == event;
                if !takes {
                    match others.iter().position(|(other, _)| other == event) {
                        Some(place) => others[place].1 += 1,
                        None if others.len() < MOST_OTHERS => others.push((event.into(), 1)),
                        None => {}
                    }
                }
                takes
            }
            Self::Named { names, taken, others } => {
                let takes = names.iter().any(|name| is_named(event, name));
                *taken |= takes;
                if !takes && others.len() < MOST_OTHERS && !others.iter().any(|other| other == event) {
                    others.push(event.into());
                }
                takes
            }
        }
    }

    /// The events behind the first, and how often each was met.
    pub(super) fn behind_first(&self) -> &[(String, u64)] {
        match self {
            Self::First { others, .. } => others,
            _ => &[],
        }
    }

    /// The fault of a file in which there are events, but none that was requested.
    pub(super) fn missing(self) -> Result<(), Fault> {
        match self {
            Self::Named { names, taken: false, others } if !others.is_empty() => {
                Err(Fault::of_file(FaultKind::NoEvent(names.join(","), others)))
            }
            _ => Ok(()),
        }
    }
}

/// Whether `name` means this event: `cycles` means `cycles:u` too.
fn is_named(event: &str, name: &str) -> bool {
    event.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_meant_with_their_modifiers() {
        assert!(is_named("cycles:u", "cycles") && is_named("cycles:u", "cycles:u") && is_named("a:b", "a"));
        assert!(!is_named("cycles", "cycles:u") && !is_named("cycles2", "cycles"));
    }
}
