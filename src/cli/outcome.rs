//! Decides the exit code of a measurement from its outcome.

use std::time::Duration;

use signal_hook::consts::SIGINT;

use super::error::code_of;
use super::stream::say;
use crate::measure::{EndedBy, RunOutcome};
use crate::sources::command::Exit;

/// Says that events which regions were to count were counted in none.
pub(super) fn tell_no_regions(region_events: Option<&str>, programs: usize) {
    if region_events.is_some() && programs == 0 {
        say(NO_REGIONS);
    }
}

/// The words for that.
pub(super) const NO_REGIONS: &str = "--region-events: no program of the command had regions, so nothing was counted in any; regions/README.md says how to mark them";

/// Says that a command ended before its counting began.
pub(super) fn tell_delay(delay: Option<Duration>, outcome: &RunOutcome) {
    let delay = delay.filter(|&delay| outcome.end.exit.is_some() && Duration::from_nanos(outcome.end.at_ns.0) < delay);
    if let Some(delay) = delay {
        say(&format!("the command ended before the delay of {} ms (-D), so nothing was counted", delay.as_millis()));
    }
}

/// The code to exit with: the command's own, or 128 plus the signal that ended perfprop. What was ended as asked has
/// done what it should.
pub(super) fn exit_code(outcome: &RunOutcome) -> u8 {
    match (outcome.end.exit, outcome.ended_by) {
        (_, EndedBy::Signal(signal)) if signal != SIGINT => code_of(signal),
        (Some(Exit::Signal(_)), EndedBy::Request) => 0,
        (Some(exit), _) => exit.shell_code(),
        (None, EndedBy::Signal(signal)) => code_of(signal),
        (None, EndedBy::Itself | EndedBy::Request) => 0,
    }
}

/// The code of several runs with one more: one that went well doesn't hide one that failed, and what a signal ended
/// says so.
pub(super) fn code_with(so_far: u8, outcome: &RunOutcome) -> u8 {
    if so_far == 0 || outcome.ended_by.signal().is_some() { exit_code(outcome) } else { so_far }
}

/// How a command that failed ended: `exit 3`, `a signal`, `SIGTERM, at perfprop's signal`; `None` where it went well.
pub(super) fn how_it_failed(outcome: &RunOutcome) -> Option<String> {
    let how = || {
        let how = outcome.end.exit.map_or_else(|| "a signal".into(), |exit| exit.to_string());
        if outcome.end.was_ended_by_perfprop { format!("{how}, at perfprop's signal") } else { how }
    };
    (exit_code(outcome) != 0).then(how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::End;

    #[test]
    fn a_command_that_perfprop_ended_is_told_from_one_that_failed() {
        let ended = |exit, was_ended_by_perfprop| {
            let end = End { exit: Some(exit), was_ended_by_perfprop, ..End::default() };
            how_it_failed(&RunOutcome { end, ended_by: EndedBy::Itself })
        };
        assert_eq!(ended(Exit::Signal(15), false).as_deref(), Some("SIGTERM"));
        assert_eq!(ended(Exit::Signal(15), true).as_deref(), Some("SIGTERM, at perfprop's signal"));
        assert_eq!(ended(Exit::Code(0), false), None);
    }
}
