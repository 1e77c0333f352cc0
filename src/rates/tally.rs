//! Accumulates the raw statistics of every event over the interval and the run.

use super::{Confidence, Delta, Moments, Scaling, Uncertain};
use crate::plan::EventIndex;
use crate::units::CpuNs;

/// The raw statistics of an event: its own samples, nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Raw {
    /// Mean and variance of the rate over intervals.
    pub rate: Moments,
    /// The scaled count of the whole run and its error.
    pub run: Scaling,
}

/// What was counted of every event, up to the end of the last interval. Rounds of an interval that
/// hasn't ended wait, so that all numbers are about the same time.
#[derive(Clone, Debug)]
pub struct Tally {
    confidence: Confidence,
    tracks: Vec<Track>,
    raw: Vec<Raw>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Track {
    /// The interval and the run so far.
    open: Option<Scaling>,
    run: Scaling,
    /// The interval that ended last; `None` if the event could not be read in it.
    interval: Option<Scaling>,
    /// The scaled counts of that interval and of the run up to its end.
    interval_count: Option<Uncertain>,
    total: Option<Uncertain>,
}

impl Tally {
    /// A tally of this many events, with nothing counted.
    pub fn new(events: usize) -> Self {
        let track = Track { run: Scaling::of_run(), ..Track::default() };
        let (tracks, raw) = (vec![track; events], vec![Raw::default(); events]);
        Self { confidence: Confidence::DEFAULT, tracks, raw }
    }

    /// Sets the confidence level of the intervals.
    pub fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// Confidence level of the intervals.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// Takes what a round counted of each event; `None` for one that could not be read.
    pub fn round(&mut self, deltas: &[Option<Delta>]) {
        for (track, delta) in self.tracks.iter_mut().zip(deltas) {
            if let Some(delta) = delta {
                track.open.get_or_insert_default().add(*delta);
                track.run.add(*delta);
            }
        }
    }

    /// Ends the current interval and begins the next.
    pub fn end_interval(&mut self) {
        for (track, raw) in self.tracks.iter_mut().zip(&mut self.raw) {
            track.interval = track.open.take();
            raw.run = track.run;
            track.total = track.run.scaled(self.confidence);
            track.interval_count = track.interval.and_then(|interval| match interval.total().enabled {
                CpuNs(0) => Some(Uncertain::exact(0.0)),
                _ => interval.scaled(self.confidence),
            });
            let delta = track.interval.map_or(Delta::default(), |interval| interval.total());
            if let Some(rate) = delta.rate() {
                raw.rate.add(rate, delta.running.as_ms());
            }
        }
    }

    /// The raw statistics of every event over the run.
    pub fn raw(&self) -> &[Raw] {
        &self.raw
    }

    /// What the interval that ended last counted of an event; nothing where it could not be read.
    pub fn interval(&self, event: EventIndex) -> Scaling {
        self.tracks[event].interval.unwrap_or_default()
    }

    /// The scaled count of that interval. Where the event was read and no task was on a CPU, there
    /// was nothing to count, and 0 is the count.
    pub fn interval_count(&self, event: EventIndex) -> Option<Uncertain> {
        self.tracks[event].interval_count
    }

    /// The scaled count of the run; `None` if the event never ran.
    pub fn total(&self, event: EventIndex) -> Option<Uncertain> {
        self.tracks[event].total
    }

    /// The CPU time of the interval that ended last: the event's own, or, for one that isn't open,
    /// the longest that another event had.
    pub fn interval_time(&self, event: EventIndex) -> CpuNs {
        let enabled = |track: &Track| track.interval.map_or(CpuNs(0), |interval| interval.total().enabled);
        longest_unless(enabled(&self.tracks[event]), self.tracks.iter().map(enabled))
    }

    /// CPU time of the run during which the event was enabled.
    pub fn run_time(&self, event: EventIndex) -> CpuNs {
        longest_unless(self.raw[event].run.total().enabled, self.raw.iter().map(|raw| raw.run.total().enabled))
    }
}

fn longest_unless(own: CpuNs, all: impl Iterator<Item = CpuNs>) -> CpuNs {
    if own.0 > 0 { own } else { all.max().unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(count: u64, enabled: u64, running: u64) -> Option<Delta> {
        let ms = |ms: u64| CpuNs(ms * 1_000_000);
        Some(Delta { count, enabled: ms(enabled), running: ms(running) })
    }

    #[test]
    fn an_open_interval_waits_until_it_ends() {
        let mut tally = Tally::new(1);
        tally.round(&[delta(10, 1, 1)]);
        assert_eq!((tally.total(0), tally.raw()[0]), (None, Raw::default()));
        tally.end_interval();
        assert_eq!((tally.total(0), tally.interval_count(0)), (Some(Uncertain::exact(10.0)), tally.total(0)));
        tally.round(&[delta(20, 1, 1)]);
        assert_eq!(tally.total(0), Some(Uncertain::exact(10.0)));
        tally.end_interval();
        assert_eq!(
            (tally.total(0), tally.interval_count(0)),
            (Some(Uncertain::exact(30.0)), Some(Uncertain::exact(20.0)))
        );
        assert_eq!((tally.raw()[0].rate.mean(), tally.raw()[0].rate.variance()), (Some(15.0), Some(50.0)));
    }

    #[test]
    fn nothing_read_nothing_run_and_nothing_to_count_differ() {
        let mut tally = Tally::new(3);
        tally.round(&[None, delta(0, 5, 0), delta(0, 0, 0)]);
        tally.end_interval();
        let counts: Vec<_> = (0..3).map(|event| tally.interval_count(event)).collect();
        assert_eq!(counts, [None, None, Some(Uncertain::exact(0.0))]);
        // The time of one that isn't read is that of the others.
        assert_eq!((tally.interval_time(0), tally.run_time(0)), (CpuNs(5_000_000), CpuNs(5_000_000)));
    }
}
