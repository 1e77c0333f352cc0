//! Puts rounds on an axis of CPU time and feeds a Gaussian process ([`super::gp`]) with them.

use std::sync::Arc;

use super::gp::{CovarianceModel, CpuClock, EventSpec, Gp, MAX_EVENTS, Prior, Settings, Total, WhenCounted};
use crate::events::Event;
use crate::plan::KERNEL_SLICE;
use crate::rates::{Confidence, Delta, Uncertain};
use crate::units::WallNs;

/// The rounds of a run on an axis of CPU time: where nobody ran there was nothing to count. As long as nothing
/// is multiplexed there is no process.
pub struct OnCpu {
    events: Vec<EventSpec>,
    /// What earlier runs of the program taught.
    learnt: Option<Arc<CovarianceModel>>,
    purpose: Purpose,
    /// The process; it begins with the first round in which an event had to wait.
    process: Option<Gp>,
    clock: CpuClock,
    /// What was counted before that, all of it exact: in the run, and in the interval in which that is.
    before: Vec<f64>,
    lead: Vec<f64>,
    /// How many intervals the process has estimated.
    intervals: usize,
    /// How many events there are with those of other processes beside it.
    together: usize,
}

/// Purpose of a run: measuring, measuring to estimate it once more at its end, or learning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Measure,
    MeasureAgain,
    Learn,
}

impl OnCpu {
    /// A run that is measured.
    pub(super) fn measuring(events: &[Event]) -> Self {
        Self::new(events, Purpose::Measure, None)
    }

    /// A run that is learnt from; it goes on where a model of the same events ends.
    pub fn learning(events: &[Event], earlier: Option<CovarianceModel>) -> Self {
        Self::new(events, Purpose::Learn, earlier.map(Arc::new))
    }

    fn new(events: &[Event], purpose: Purpose, learnt: Option<Arc<CovarianceModel>>) -> Self {
        let spec = |event: &Event| EventSpec {
            name: event.name.clone(),
            counted: match (event.kind.is_software(), event.modifiers.pinned) {
                (true, _) => WhenCounted::BySoftware,
                (false, true) => WhenCounted::Always,
                (false, false) => WhenCounted::InTurns,
            },
        };
        let nothing = vec![0.0; events.len()];
        let (before, lead) = (nothing.clone(), nothing);
        let (process, clock, intervals, together) = (None, CpuClock::default(), 0, events.len());
        let events = events.iter().map(spec).collect();
        Self { events, learnt, purpose, process, clock, before, lead, intervals, together }
    }

    /// There are so many events with those of other processes: of more than [`MAX_EVENTS`] none is corrected.
    pub(super) fn among(&mut self, together: usize) {
        self.together = together;
    }

    /// Uses what earlier runs taught; from before the first round. A model that knows none of the events is
    /// none.
    pub(super) fn learnt(&mut self, model: Arc<CovarianceModel>) {
        self.learnt = Some(model).filter(|model| self.events.iter().any(|event| model.knows(&event.name)));
    }

    /// Keeps what estimating it once more takes; from before the first round.
    pub(super) fn keep(&mut self) {
        self.purpose = Purpose::MeasureAgain;
    }

    /// Takes a round, as [`Estimator::round`](super::Estimator::round) does.
    pub fn round(&mut self, from: WallNs, to: WallNs, deltas: &[Option<Delta>]) {
        let wall_ms = (to - from).as_ms();
        let waits = |delta: &Delta| delta.running < delta.enabled;
        let may_begin = || self.together <= MAX_EVENTS && deltas.iter().flatten().any(waits);
        if self.process.is_none() && !may_begin() {
            for (event, delta) in deltas.iter().enumerate() {
                let count = delta.map_or(0.0, |delta| delta.count as f64);
                self.before[event] += count;
                self.lead[event] += count;
            }
            return;
        }
        let Some(span) = self.clock.round(wall_ms, deltas.iter().flatten()) else { return };
        let counted: Vec<_> = deltas.iter().map(|delta| delta.unwrap_or_default()).collect();
        let mut process = self.process.take().unwrap_or_else(|| self.begin());
        process.round(span, &counted);
        self.process = Some(process);
    }

    fn begin(&self) -> Gp {
        let rotation_ms = WallNs::from(KERNEL_SLICE).as_ms();
        let settings = match (self.purpose, &self.learnt) {
            (Purpose::Measure | Purpose::MeasureAgain, Some(_)) => Settings::default().with_model(),
            _ => Settings::default(),
        };
        let process = Gp::new(&self.events, rotation_ms, settings, &Prior::shipped(), self.learnt.as_deref());
        match self.purpose {
            Purpose::Measure => process,
            Purpose::MeasureAgain => process.keeping_windows(),
            Purpose::Learn => process.learning(self.learnt.as_deref()),
        }
    }

    /// The process; `None` as long as nothing is multiplexed.
    pub(super) fn process(&self) -> Option<&Gp> {
        self.process.as_ref()
    }

    /// Ends an interval: its place among those of the process, and what each event counted in it; `None` as long as
    /// nothing is multiplexed.
    pub(super) fn end_interval(&mut self, confidence: Confidence) -> Option<(usize, Vec<Option<Uncertain>>)> {
        let Some(process) = &mut self.process else {
            self.lead.fill(0.0);
            return None;
        };
        let mut counts = process.interval(confidence);
        if self.intervals == 0 {
            add(&mut counts, &self.lead);
        }
        self.intervals += 1;
        Some((self.intervals - 1, counts))
    }

    /// The intervals of the process once more, by all rounds; `None` if nothing was multiplexed, or what that takes
    /// wasn't kept.
    pub(super) fn hindsight(&self, confidence: Confidence) -> Option<Vec<Vec<Option<Uncertain>>>> {
        let mut intervals = self.process()?.hindsight(confidence)?;
        intervals.first_mut().into_iter().for_each(|first| add(first, &self.lead));
        Some(intervals)
    }

    /// What each event counted in the run; `None` as long as nothing is multiplexed.
    pub(super) fn totals(&self, confidence: Confidence) -> Option<Vec<Option<Total>>> {
        let mut totals = self.process()?.totals(confidence);
        for (total, before) in totals.iter_mut().zip(&self.before) {
            total.iter_mut().for_each(|total| total.count.value += before);
        }
        Some(totals)
    }

    /// The process, to change.
    pub(super) fn process_mut(&mut self) -> Option<&mut Gp> {
        self.process.as_mut()
    }

    /// Ends a run that is learnt from: what it and those before it teach, which takes seconds. `None` if nothing
    /// was multiplexed in it.
    pub fn model(mut self) -> Option<CovarianceModel> {
        let process = self.process.as_mut()?;
        process.end();
        process.model()
    }
}

/// Adds what was counted before to estimates of what came after.
fn add(counts: &mut [Option<Uncertain>], before: &[f64]) {
    for (count, before) in counts.iter_mut().zip(before) {
        count.iter_mut().for_each(|count| count.value += before);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::estimate::tests::{events, half, whole};

    /// A run of so many rounds of 2 ms, in which b is counted every other round.
    fn run(earlier: Option<CovarianceModel>, rounds: u64, b: impl Fn(u64) -> Delta) -> Option<CovarianceModel> {
        let mut run = OnCpu::learning(&events(&["a", "b"]), earlier);
        for at in 0..rounds {
            run.round(WallNs(at * 2_000_000), WallNs((at + 1) * 2_000_000), &[Some(whole(200)), Some(b(at))]);
        }
        run.model()
    }

    #[test]
    fn runs_go_on_where_the_ones_before_ended() {
        let turns = |at: u64| half(at.is_multiple_of(2).then_some(100));
        // 200 ms have two windows.
        let first = run(None, 100, turns).unwrap();
        assert_eq!((first.windows(), first.knows("b"), first.knows("c")), (2, true, false));
        let second = run(Some(first), 50, turns).unwrap();
        assert_eq!(second.windows(), 3);
        assert!((second.level("b").unwrap() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn more_events_than_can_be_held_against_one_another_are_scaled() {
        let begins = |count: usize| {
            let names: Vec<_> = (0..count).map(|n| format!("e{n}")).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let mut run = OnCpu::measuring(&events(&names));
            run.round(WallNs(0), WallNs(2_000_000), &vec![Some(half(Some(1))); count]);
            run.process().is_some()
        };
        assert_eq!([begins(2), begins(MAX_EVENTS + 1)], [true, false]);
    }

    #[test]
    fn where_nothing_takes_turns_nothing_is_learnt() {
        assert_eq!(run(None, 250, |_| whole(100)), None);
        // Something was multiplexed, but there is no window of it.
        assert_eq!(run(None, 2, |_| half(Some(1))).unwrap().windows(), 0);
    }

    #[test]
    fn a_model_of_other_events_is_none() {
        let model = Arc::new(run(None, 50, |_| half(Some(1))).unwrap());
        let [known, unknown] = [&["b", "c"], &["c", "d"]].map(|names| {
            let mut run = OnCpu::measuring(&events(names));
            run.learnt(model.clone());
            run.learnt.is_some()
        });
        assert_eq!((known, unknown), (true, false));
    }
}
