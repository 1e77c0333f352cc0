//! Checks the names of events that regions are to count, before the command starts that counts them.

use super::Error;
use crate::events::{EventError, EventErrorCause, EventOption, Problem, Resolver};
use crate::regions::{MOST_REGION_EVENTS, is_region_event, region_event_names};

/// Checks a list such as `instructions,page-faults`.
///
/// # Errors
/// Returns what is wrong with each name, with a suggestion of what was meant; and if there are too many names, or none.
pub(super) fn check(list: &str, resolver: &Resolver) -> Result<(), Error> {
    let names = region_event_names(list);
    if names.is_empty() || names.len() > MOST_REGION_EVENTS {
        let count = names.len();
        return Err(Error::Options(format!(
            "--region-events takes 1 to {MOST_REGION_EVENTS} events with commas between them, not {count}"
        )));
    }
    let wrong = names.iter().zip(1..).filter(|(name, _)| !is_region_event(name));
    let problems: Vec<_> = wrong.map(|(name, position)| problem(name, position, resolver)).collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Events(EventError { option: EventOption::RegionEvents, problems }))
}

/// What is wrong with a name, as `-e` would have it; or that regions don't count the event, which `-e` does.
fn problem(name: &str, position: usize, resolver: &Resolver) -> Problem {
    let cause = match resolver.parse(name) {
        Ok(_) => EventErrorCause::NotOfRegions,
        Err(error) => error.problems.into_iter().next().map_or(EventErrorCause::NotOfRegions, |problem| problem.cause),
    };
    let cause = match cause {
        EventErrorCause::Unknown { name, similar, pattern, list } => {
            let similar = similar.into_iter().filter(|similar| is_region_event(similar)).collect();
            EventErrorCause::Unknown { name, similar, pattern, list }
        }
        other => other,
    };
    Problem { position, text: name.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::events::Machine;

    #[test]
    fn names_are_checked_and_what_was_meant_is_suggested() {
        let resolver = Resolver::new(Machine::here());
        let check = |list: &str| check(list, &resolver).map_err(|error| error.to_string());
        assert_eq!(check("instructions:u, page-faults,r1a8,LLC-load-misses"), Ok(()));
        let error = check("task-clock,page-fults").unwrap_err();
        assert!(error.contains("unknown event 'page-fults' in --region-events (position 2)"), "{error}");
        assert!(error.contains("did you mean page-faults?"), "{error}");
        let error = check("duration_time").unwrap_err();
        assert!(error.contains("'duration_time' in --region-events") && error.contains("hardware, cache"), "{error}");
        assert!(check(" ,").unwrap_err().contains("not 0"));
        assert!(check(&["cs"; 9].join(",")).unwrap_err().contains("1 to 8 events"));
    }
}
