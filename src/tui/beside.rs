//! Plays a second recording along with the first.

use std::fmt;

use crate::monitor::Monitor;
use crate::recording::End;
use crate::sources::Round;
use crate::units::WallNs;

/// A recording to compare the screens' own with. It goes along with that one's time, and is seen whole
/// once that one has ended.
pub struct Beside {
    /// Names of the two recordings.
    pub(super) names: [String; 2],
    rounds: Vec<(Round, u64)>,
    end: End,
    fresh: Box<dyn Fn() -> Monitor>,
    pub(super) monitor: Monitor,
    /// How many rounds the monitor has seen.
    taken: usize,
}

impl fmt::Debug for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("names", &self.names).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Beside {
    /// The names of the screens' recording and of this one, its rounds with how many were lost before
    /// each, how it ended, and what makes a monitor that has seen nothing of it.
    pub fn new(names: [String; 2], rounds: Vec<(Round, u64)>, end: End, fresh: impl Fn() -> Monitor + 'static) -> Self {
        Self { monitor: fresh(), names, rounds, end, fresh: Box::new(fresh), taken: 0 }
    }

    /// Goes to a time; to the end if `None`. Backwards is from the beginning: estimates depend on all
    /// that came before.
    pub(super) fn follow(&mut self, time: Option<WallNs>) {
        let wanted = time.map_or(self.rounds.len(), |time| self.rounds.partition_point(|(round, _)| round.at <= time));
        if wanted < self.taken || (time.is_some() && self.monitor.ended().is_some()) {
            self.monitor = (self.fresh)();
            self.taken = 0;
        }
        for (round, lost) in &self.rounds[self.taken..wanted] {
            self.monitor.round(round, *lost);
        }
        self.taken = wanted;
        if time.is_none() && self.monitor.ended().is_none() {
            self.monitor.end(self.end.clone());
        }
    }
}
