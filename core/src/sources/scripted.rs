//! Replays a list of rounds: a source for tests and replays.

use std::collections::VecDeque;

use super::{CounterSource, Next, Round};

/// Gives prepared rounds in order, without waiting for their time.
#[derive(Debug, Default)]
pub struct ScriptedSource {
    rounds: VecDeque<Round>,
}

impl ScriptedSource {
    /// A source that gives these rounds and then ends.
    pub fn new(rounds: impl IntoIterator<Item = Round>) -> Self {
        Self { rounds: rounds.into_iter().collect() }
    }
}

impl CounterSource for ScriptedSource {
    fn read(&mut self) -> Next {
        self.rounds.pop_front().map_or(Next::Ended, Next::Round)
    }
}
