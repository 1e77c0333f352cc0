//! Decides the exit code of a measurement from its outcome.

use signal_hook::consts::SIGINT;

use super::error::code_of;
use crate::measure::RunOutcome;
use crate::sources::command::Exit;

/// The code to exit with: the command's own, or 128 plus the signal that ended perfprop. What was ended as asked has
/// done what it should.
pub(super) fn exit_code(outcome: &RunOutcome) -> u8 {
    match (outcome.end.exit, outcome.signal) {
        (_, Some(signal)) if signal != SIGINT => code_of(signal),
        (Some(Exit::Signal(_)), None) if outcome.was_asked => 0,
        (Some(exit), _) => exit.shell_code(),
        (None, Some(signal)) => code_of(signal),
        (None, None) => 0,
    }
}
