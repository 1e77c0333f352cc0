//! Reads a recording ahead, for what is told of all of it: changes of level and findings.

use super::{Monitor, Noted, PhaseChange};
use crate::run::End;
use crate::sources::RecordedRound;

/// What is told of a whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingNotes {
    /// Changes of level, in the order in which they were told.
    pub changes: Vec<PhaseChange>,
    /// Findings, oldest first.
    pub findings: Vec<Noted>,
}

/// A reading ahead, a few rounds at a time, as it may take long.
pub struct ReadAhead {
    monitor: Option<Monitor>,
    next: usize,
    notes: RecordingNotes,
}

impl std::fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadAhead").field("next", &self.next).finish_non_exhaustive()
    }
}

impl ReadAhead {
    /// Nothing is read yet; the monitor has seen nothing.
    pub fn new(monitor: Monitor) -> Self {
        Self { monitor: Some(monitor.without_history()), next: 0, notes: RecordingNotes::default() }
    }

    /// Reads so many rounds more of the recording, always the same one; gives the notes once all are read.
    pub fn read(
        &mut self,
        rounds: &[RecordedRound],
        most: usize,
        end: impl FnOnce() -> End,
    ) -> Option<&RecordingNotes> {
        if let Some(monitor) = &mut self.monitor {
            let until = self.next.saturating_add(most).min(rounds.len());
            monitor.take_rounds(&rounds[self.next..until]);
            self.next = until;
        }
        if self.next < rounds.len() {
            return None;
        }
        if let Some(mut monitor) = self.monitor.take() {
            monitor.end(end());
            self.notes = RecordingNotes { changes: monitor.phase_changes().to_vec(), findings: monitor.findings };
        }
        Some(&self.notes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{self, SECOND, event, measured};
    use crate::estimate::EstimatorKind;
    use crate::sources::{Reading, Round};
    use crate::units::{CpuNs, WallNs};

    #[test]
    fn in_steps_or_at_once_the_same_is_told() {
        // Ten times as much from the 60th second on.
        let mut count = 0;
        let rounds: Vec<_> = (1..=120u64)
            .map(|second| {
                count += if second > 60 { 10_000 } else { 1000 };
                let time = CpuNs(second * SECOND);
                let reading = Reading { count, enabled: time, running: time };
                let readings = vec![Some(reading)];
                let round = Round { at: WallNs(second * SECOND), readings, ..Round::default() };
                RecordedRound { round, lost: second / 100 }
            })
            .collect();
        let fresh = || {
            let header = builders::header([measured(event("e"))]);
            ReadAhead::new(builders::monitor(header, vec![], EstimatorKind::Scale))
        };
        let mut at_once = fresh();
        let known = at_once.read(&rounds, usize::MAX, End::default).cloned();
        assert!(
            known.as_ref().is_some_and(|notes| notes.changes.len() == 1 && !notes.findings.is_empty()),
            "{known:?}"
        );
        let mut steps = fresh();
        assert_eq!(steps.read(&rounds, 50, End::default), None);
        assert_eq!(steps.read(&rounds, 50, End::default), None);
        assert_eq!(steps.read(&rounds, 50, End::default), known.as_ref());
        // Nothing is read twice.
        assert_eq!(steps.read(&rounds, 50, End::default), known.as_ref());
    }
}
