//! Accumulates the raw statistics of every event over the interval and the run.

use super::{Confidence, Delta, Moments, Scaling, Uncertain};
use crate::plan::RowIndex;
use crate::units::CpuNs;

/// How long a program is at its beginning, in ms of CPU time: by then it has touched what it begins with.
const BEGINNING_MS: f64 = 4.0;

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
    tracks: Vec<TallyTrack>,
    raw: Vec<Raw>,
    /// The part of the target that each event is about.
    scopes: Vec<ScopeIndex>,
    /// The longest CPU times of each part.
    times: Vec<TallyTimes>,
    /// The most counts per millisecond that each event may have while the program begins; 0 where its rate then is like
    /// that of other times.
    in_beginning: Vec<f64>,
}

/// The place of a part of the target, such as a thread, among all of them.
pub type ScopeIndex = usize;

/// How many parts of the target rows are about, which are about these.
pub fn number_of_scopes(scopes: &[ScopeIndex]) -> usize {
    scopes.iter().max().map_or(0, |last| last + 1)
}

/// The CPU time of the interval that ended last, and of the run up to there.
#[derive(Clone, Copy, Debug, Default)]
struct TallyTimes {
    interval: CpuNs,
    run: CpuNs,
}

#[derive(Clone, Copy, Debug, Default)]
struct TallyTrack {
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
    /// A tally of this many events, with nothing counted, which are all about the same.
    pub fn new(events: usize) -> Self {
        Self::of_scopes(vec![0; events])
    }

    /// Nothing yet of events that are about these parts of the target. Events of one part have the CPU time of one
    /// another where they aren't open, so one that is enabled for another time than the CPU's is a part of its own.
    pub fn of_scopes(scopes: Vec<ScopeIndex>) -> Self {
        let track = TallyTrack { run: Scaling::of_run(), ..TallyTrack::default() };
        let (tracks, raw) = (vec![track; scopes.len()], vec![Raw::default(); scopes.len()]);
        let times = vec![TallyTimes::default(); number_of_scopes(&scopes)];
        let in_beginning = vec![0.0; scopes.len()];
        Self { confidence: Confidence::DEFAULT, tracks, raw, scopes, times, in_beginning }
    }

    /// Sets the confidence level of the intervals.
    pub fn with_confidence(self, confidence: Confidence) -> Self {
        Self { confidence, ..self }
    }

    /// The run begins with a program, in which each event may have up to so many counts per millisecond of CPU time.
    #[must_use]
    pub fn of_program(self, in_beginning: Vec<f64>) -> Self {
        Self { in_beginning, ..self }
    }

    /// Confidence level of the intervals.
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// What is known of these rows alone.
    ///
    /// # Panics
    /// Panics if there is no such row.
    pub fn of_rows(&self, rows: &[RowIndex]) -> Self {
        let mut known: Vec<ScopeIndex> = Vec::new();
        let mut place = |scope: ScopeIndex| {
            known.iter().position(|&one| one == scope).unwrap_or_else(|| {
                known.push(scope);
                known.len() - 1
            })
        };
        let scopes = rows.iter().map(|&row| place(self.scopes[row])).collect();
        Self {
            confidence: self.confidence,
            tracks: rows.iter().map(|&row| self.tracks[row]).collect(),
            raw: rows.iter().map(|&row| self.raw[row]).collect(),
            scopes,
            times: known.iter().map(|&scope| self.times[scope]).collect(),
            in_beginning: rows.iter().map(|&row| self.in_beginning[row]).collect(),
        }
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
        if let Some(ratio) = self.beginning_ratio() {
            self.tracks.iter_mut().for_each(|track| track.run.may_begin_at(ratio));
        }
        for ((track, raw), rate) in self.tracks.iter_mut().zip(&mut self.raw).zip(&self.in_beginning) {
            track.interval = track.open.take();
            raw.run = track.run;
            let most_unseen = most_unseen(*rate, track.run.lead());
            track.total = track.run.scaled(self.confidence).map(|total| total.or_more(most_unseen));
            track.interval_count = track.interval.and_then(|interval| match interval.total().enabled {
                CpuNs(0) => Some(Uncertain::exact(0.0)),
                _ => interval.scaled_within(&track.run, self.confidence),
            });
            if track.is_first_interval() {
                track.interval_count = track.interval_count.map(|count| count.or_more(most_unseen));
            }
            let delta = track.interval.map_or(Delta::default(), |interval| interval.total());
            if let Some(rate) = delta.rate() {
                raw.rate.add(rate, delta.running.as_ms());
            }
        }
        self.end_times();
    }

    /// How many times their mean rates events had at the beginning of the run, in the median of those that were seen
    /// there and waited later.
    fn beginning_ratio(&self) -> Option<f64> {
        let mut ratios: Vec<f64> = self.tracks.iter().filter_map(|track| track.run.beginning_ratio()).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let middle = ratios.len().checked_sub(1)? / 2;
        Some((ratios[middle] + ratios[ratios.len() / 2]) / 2.0)
    }

    /// Finds the longest CPU times of each part of the target.
    fn end_times(&mut self) {
        self.times.fill(TallyTimes::default());
        for (track, &scope) in self.tracks.iter().zip(&self.scopes) {
            let longest = &mut self.times[scope];
            longest.interval = longest.interval.max(track.time());
            longest.run = longest.run.max(track.run.total().enabled);
        }
    }

    /// The raw statistics of every event over the run.
    pub fn raw(&self) -> &[Raw] {
        &self.raw
    }

    /// What the interval that ended last counted of an event; nothing where it could not be read.
    pub fn interval(&self, event: RowIndex) -> Scaling {
        self.tracks[event].interval.unwrap_or_default()
    }

    /// The scaled count of that interval. Where the event was read and no task was on a CPU, there
    /// was nothing to count, and 0 is the count.
    pub fn interval_count(&self, event: RowIndex) -> Option<Uncertain> {
        self.tracks[event].interval_count
    }

    /// The scaled count of the run; `None` if the event never ran.
    pub fn total(&self, event: RowIndex) -> Option<Uncertain> {
        self.tracks[event].total
    }

    /// The most that an event may have counted in the beginning of the run, of which so many milliseconds weren't seen.
    pub fn most_unseen(&self, event: RowIndex, lead_ms: f64) -> f64 {
        most_unseen(self.in_beginning[event], lead_ms)
    }

    /// The part of the interval that ended last that is the beginning of the run, in which the event wasn't seen, in
    /// ms.
    pub fn interval_lead(&self, event: RowIndex) -> f64 {
        let track = &self.tracks[event];
        if track.is_first_interval() { track.run.lead() } else { 0.0 }
    }

    /// The CPU time of the interval that ended last: the event's own, or, for one that isn't open,
    /// the longest that another event had in the same part of the target.
    pub fn interval_time(&self, event: RowIndex) -> CpuNs {
        own_or(self.tracks[event].time(), self.times[self.scopes[event]].interval)
    }

    /// CPU time of the run during which the event was enabled.
    pub fn run_time(&self, event: RowIndex) -> CpuNs {
        own_or(self.raw[event].run.total().enabled, self.times[self.scopes[event]].run)
    }
}

impl TallyTrack {
    /// Whether the interval that ended last is all of the run so far.
    fn is_first_interval(&self) -> bool {
        self.time() == self.run.total().enabled
    }

    /// The CPU time of the interval that ended last.
    fn time(&self) -> CpuNs {
        self.interval.map_or(CpuNs(0), |interval| interval.total().enabled)
    }
}

/// The most counts in so many milliseconds of a run that weren't seen, at the most in a millisecond of its beginning.
fn most_unseen(rate: f64, lead_ms: f64) -> f64 {
    rate * lead_ms.min(BEGINNING_MS)
}

fn own_or(own: CpuNs, longest: CpuNs) -> CpuNs {
    if own.0 > 0 { own } else { longest }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

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
    fn what_programs_begin_with_may_have_been_missed_by_hand() {
        let after = |in_beginning: f64| {
            let mut tally = Tally::new(1).of_program(vec![in_beginning]);
            // 4 ms weren't seen, which is all of a beginning; then 2 counts in each of two slices of 2 ms, with 2 ms
            // between them.
            for round in [delta(0, 4, 0), delta(2, 2, 2), delta(0, 2, 0), delta(2, 2, 2)] {
                tally.round(&[round]);
            }
            tally.end_interval();
            (tally.total(0).unwrap(), tally.interval_count(0).unwrap(), tally.interval_lead(0))
        };
        let above = |count: Uncertain| count.bounds().unwrap().1 - count.value;
        let ((total, interval, lead), (cold_total, cold_interval, _)) = (after(0.0), after(100.0));
        assert_eq!((lead, cold_total.value, cold_interval.value), (4.0, total.value, interval.value));
        assert!((above(cold_total) - above(total).hypot(400.0)).abs() < 1e-9, "{cold_total:?}");
        assert!((above(cold_interval) - above(interval).hypot(400.0)).abs() < 1e-9, "{cold_interval:?}");
        assert_eq!(cold_total.bounds().unwrap().0, total.bounds().unwrap().0);
        // Later intervals are none of a beginning.
        let mut tally = Tally::new(1).of_program(vec![100.0]);
        tally.round(&[delta(0, 4, 0)]);
        tally.end_interval();
        tally.round(&[delta(2, 2, 2)]);
        tally.end_interval();
        assert_eq!(tally.interval_lead(0), 0.0);
    }

    #[test]
    fn totals_know_how_unlike_the_rest_a_run_began() {
        // Two events take turns of 1 ms; the first to be counted has all but one a turn in its first.
        let after = |first: u64| {
            let mut tally = Tally::new(2);
            for turn in 0..20 {
                let count = if turn == 0 { first } else { 1 };
                tally.round(&if turn % 2 == 0 {
                    [delta(count, 1, 1), delta(0, 1, 0)]
                } else {
                    [delta(0, 1, 0), delta(1, 1, 1)]
                });
            }
            tally.end_interval();
            [0, 1].map(|event| tally.total(event).and_then(|total| total.error.half_width()).unwrap_or(0.0))
        };
        let ([_, like], [_, unlike]) = (after(1), after(1000));
        assert!(unlike > 1.1 * like, "{like} {unlike}");
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

    #[test]
    fn an_idle_thread_has_no_time_of_another() {
        // Two threads with two events each: the second is idle, and its second event isn't open.
        let mut tally = Tally::of_scopes(vec![0, 0, 1, 1]);
        tally.round(&[delta(5, 7, 7), None, delta(0, 0, 0), None]);
        tally.end_interval();
        let times = |tally: &Tally| [0, 1, 2, 3].map(|event| (tally.interval_time(event), tally.run_time(event)));
        let (seven, none) = (CpuNs(7_000_000), CpuNs(0));
        assert_eq!(times(&tally), [(seven, seven), (seven, seven), (none, none), (none, none)]);
        // What it does in an interval in which the first doesn't run is its own.
        tally.round(&[delta(0, 0, 0), None, delta(1, 2, 2), None]);
        tally.end_interval();
        let two = CpuNs(2_000_000);
        assert_eq!(times(&tally), [(none, seven), (none, seven), (two, two), (two, two)]);
    }
}
