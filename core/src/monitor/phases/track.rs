//! Follows one event: adds up intervals to values, and looks for changes when there is a new one.

use super::look::{self, LastingChange};
use super::noise::SpanNoise;
use super::series::{CountedSpan, LENGTHS, MERGED, ThinnedSeries};
use crate::rates::Confidence;
use crate::units::WallNs;

/// A phase lasts so long, at least, in nanoseconds, and so many intervals.
const LEAST_PHASE: u64 = 5_000_000_000;
const LEAST_INTERVALS: u64 = 8;

/// Intervals so short that more fit into the least phase make it shorter: it is so many of them then.
const MOST_INTERVALS: u64 = 50;

/// The least phase has so many values, at least. Shorter intervals are added up to one.
const LEAST_VALUES: u64 = 10;

/// After a look that found nothing, the next one is after twice as many values, up to so many.
const LONGEST_PAUSE: usize = 8;

/// Changes of an event that findings tell in so long a time; more of them are only listed.
const TOLD: usize = 5;
const TOLD_IN: WallNs = WallNs(300_000_000_000);

/// How many intervals are added up to a value, and how many values the least phase has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PhaseLengths {
    pub(super) intervals: usize,
    pub(super) values: usize,
}

impl PhaseLengths {
    pub(super) fn of(interval: WallNs) -> Self {
        let intervals = LEAST_PHASE.div_ceil(interval.0.max(1)).clamp(LEAST_INTERVALS, MOST_INTERVALS);
        let added = (intervals / LEAST_VALUES).max(1);
        Self { intervals: added as usize, values: intervals.div_ceil(added) as usize }
    }
}

/// The series of one event.
#[derive(Clone, Debug, Default)]
pub(super) struct PhaseTrack {
    series: ThinnedSeries,
    noise: SpanNoise,
    /// The value that isn't complete, and how many intervals it has.
    open: (CountedSpan, usize),
    /// For each length of spans, how many new ones the next look waits for, and how long the pause was.
    pauses: [(usize, usize); LENGTHS],
    /// When its newest changes were told.
    told: [Option<WallNs>; TOLD],
    pub(super) is_quiet: bool,
}

impl PhaseTrack {
    /// Takes an interval; gives the changes that it shows.
    pub(super) fn interval(
        &mut self,
        interval: CountedSpan,
        lengths: PhaseLengths,
        confidence: Confidence,
    ) -> Vec<LastingChange> {
        let (open, parts) = &mut self.open;
        open.add(&interval);
        *parts += 1;
        if *parts < lengths.intervals {
            return Vec::new();
        }
        let (value, _) = std::mem::take(&mut self.open);
        self.noise.push(value);
        let new = self.series.push(value);
        for length in 0..new {
            let found = self.look(length, lengths.values, confidence);
            if let Some(last) = found.last() {
                self.series.forget_before(last.at);
                self.noise.forget_change(last.at);
                return found;
            }
        }
        Vec::new()
    }

    fn look(&mut self, length: usize, least: usize, confidence: Confidence) -> Vec<LastingChange> {
        let (window, (wait, pause)) = (&mut self.series.windows[length], &mut self.pauses[length]);
        *wait = wait.saturating_sub(1);
        if *wait > 0 {
            return Vec::new();
        }
        if !window.may_have_changed(least, look::LEAST_CHANGE) {
            *pause = 0;
            return Vec::new();
        }
        let mut found = look::look(window, least, confidence);
        found.bursts.into_iter().for_each(|burst| window.leave_out(burst));
        let merged = MERGED.pow(length as u32);
        found.lasting.retain(|change| self.noise.is_exceeded(change.before(merged), change.after(merged)));
        *pause = if found.lasting.is_empty() { (2 * *pause).clamp(1, LONGEST_PAUSE) } else { 0 };
        *wait = *pause;
        found.lasting
    }

    /// Notes that a change is told now; says whether there were too many of late.
    pub(super) fn tell(&mut self, now: WallNs) -> bool {
        let is_recent = |told: &Option<WallNs>| told.is_some_and(|told| now - told < TOLD_IN);
        // Once there were too many, the event has to be steady for all of the time.
        let is_quiet = if self.is_quiet { self.told.iter().any(is_recent) } else { self.told.iter().all(is_recent) };
        self.told.rotate_left(1);
        self.told[TOLD - 1] = Some(now);
        self.is_quiet = is_quiet;
        is_quiet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_phase_by_hand() {
        let lengths = [10, 100, 250, 500, 1000, 60_000].map(|ms| PhaseLengths::of(WallNs(ms * 1_000_000)));
        // 0.5 s, 5 s, 5 s, 5 s, 8 s, 8 min.
        let shown = lengths.map(|lengths| (lengths.intervals, lengths.values));
        assert_eq!(shown, [(5, 10), (5, 10), (2, 10), (1, 10), (1, 8), (1, 8)]);
    }

    #[test]
    fn too_many_of_late_are_not_told_until_it_was_steady() {
        let mut track = PhaseTrack::default();
        let at = |second: u64| WallNs(second * 1_000_000_000);
        let mut is_quiet = |seconds: &[u64]| seconds.iter().map(|&second| track.tell(at(second))).collect::<Vec<_>>();
        assert_eq!(is_quiet(&[10, 70, 130, 190, 250, 309, 600]), [false, false, false, false, false, true, true]);
        // Five minutes after the last one.
        assert_eq!(is_quiet(&[900, 901, 902, 903, 904, 905]), [false, false, false, false, false, true]);
    }
}
