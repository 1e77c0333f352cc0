//! Follows further recordings to the time of the screens' own, which is compared with them.

use std::fmt;
use std::sync::Arc;

use crate::compare::ProfileDifference;
use crate::monitor::Monitor;
use crate::run::End;
use crate::sources::RecordedRound;
use crate::units::WallNs;

/// The recordings that the screens' own is compared with: the others of its side, and those of the other side.
#[derive(Debug)]
pub struct Others {
    own: String,
    a: Vec<OtherRun>,
    b: Vec<OtherRun>,
    profile: Option<Box<ProfileDifference>>,
}

impl Others {
    /// Takes the name of the screens' own recording, the further runs of its side, and the runs of the other side.
    pub fn new(own: String, a: Vec<OtherRun>, b: Vec<OtherRun>) -> Self {
        Self { own, a, b, profile: None }
    }

    /// The same with how the profiles of the two sides differ.
    #[must_use]
    pub fn with_profile(self, profile: Option<ProfileDifference>) -> Self {
        Self { profile: profile.map(Box::new), ..self }
    }

    /// How the profiles differ, which is taken once.
    pub(super) fn take_profile(&mut self) -> Option<Box<ProfileDifference>> {
        self.profile.take()
    }

    /// All go to a time; to their ends if `None`.
    pub(super) fn follow(&mut self, time: Option<WallNs>) {
        self.a.iter_mut().chain(&mut self.b).for_each(|run| run.follow(time));
    }

    /// Both sides with the screens' own recording.
    pub(super) fn sides<'a>(&'a self, own: &'a Monitor) -> [Vec<&'a Monitor>; 2] {
        let a = std::iter::once(own).chain(self.a.iter().map(|run| &run.monitor));
        [a.collect(), self.b.iter().map(|run| &run.monitor).collect()]
    }

    /// The first recording of the other side.
    pub(super) fn first(&self) -> Option<&Monitor> {
        self.b.first().map(|run| &run.monitor)
    }

    /// Name of the first recording of each side, and how many more there are.
    pub(super) fn names(&self) -> [(&str, usize); 2] {
        let b = self.b.first().map_or("", |run| &run.name);
        [(&self.own, self.a.len()), (b, self.b.len().saturating_sub(1))]
    }
}

/// A recording that goes along with the time of the screens' own, and is seen whole once that one has ended.
pub struct OtherRun {
    name: String,
    rounds: Arc<[RecordedRound]>,
    end: End,
    fresh: Box<dyn Fn() -> Monitor>,
    monitor: Monitor,
    /// How many rounds the monitor has seen.
    taken: usize,
}

impl fmt::Debug for OtherRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtherRun").field("name", &self.name).field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl OtherRun {
    /// Takes the name, its rounds, how it ended, and what makes a monitor that has seen nothing of it.
    pub fn new(name: String, rounds: Arc<[RecordedRound]>, end: End, fresh: impl Fn() -> Monitor + 'static) -> Self {
        Self { monitor: fresh(), name, rounds, end, fresh: Box::new(fresh), taken: 0 }
    }

    /// Backwards is from the beginning: estimates depend on all that came before.
    fn follow(&mut self, time: Option<WallNs>) {
        let wanted =
            time.map_or(self.rounds.len(), |time| self.rounds.partition_point(|recorded| recorded.round.at <= time));
        if wanted < self.taken || (time.is_some() && self.monitor.ended().is_some()) {
            self.monitor = (self.fresh)();
            self.taken = 0;
        }
        self.monitor.take_rounds(&self.rounds[self.taken..wanted]);
        self.taken = wanted;
        if time.is_none() && self.monitor.ended().is_none() {
            self.monitor.end(self.end.clone());
        }
    }
}
