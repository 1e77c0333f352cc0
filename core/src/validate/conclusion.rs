//! Concludes from what intervals held whether they hold what they promise.

use super::{Coverage, KnownCount, ValidatedEvent};
use crate::rates::Confidence;

/// A conclusion by chance comes no more often than this of each kind of interval: of events' totals, of their
/// intervals, and of both of all events together.
const ALPHA: f64 = 0.05;

/// How far always-on counts may be from known ones: hardware counts an instruction or a branch more an interrupt (V.
/// Weaver, D. Terpstra, S. Moore, "Non-determinism and overcount on modern hardware performance counter
/// implementations", ISPASS 2013), which are a few thousand a second.
const KNOWN_WITHIN: f64 = 0.001;

/// So many intervals are needed to say that they hold: with fewer none is missed by chance (more than `ALPHA`), even if
/// twice as many miss the truth as are promised to (0.9^29 = 0.047).
pub const ENOUGH: u64 = 29;

/// What there is to say of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validity {
    /// Nothing speaks against its intervals.
    Holds,
    /// Its intervals hold the truth less often than they say, by more than chance.
    TooNarrow,
    /// The truth isn't known well enough, or there are no intervals.
    Unclear,
    /// It had a counter all the time, and needs no interval.
    AlwaysCounted,
    /// It never had a counter all the time, not even alone.
    NoTruth,
    /// It can't be counted here.
    NotCounted,
}

/// What all of it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conclusion {
    /// Intervals hold the truth as often as they should.
    Holds,
    /// They don't, or a known count is wrong.
    Fails,
    /// Too little is known to say.
    Unknown,
}

/// Whether less than the least part of these intervals of all events together hold the truth, by more than chance.
pub fn misses_the_truth(coverage: Coverage, confidence: Confidence) -> bool {
    is_less(coverage, confidence) && coverage.is_below(confidence.level(), ALPHA)
}

fn is_less(coverage: Coverage, confidence: Confidence) -> bool {
    coverage.share().is_some_and(|share| share < least(confidence))
}

/// The least part of the intervals that may hold the truth: twice as many may miss it as are promised to.
pub fn least(confidence: Confidence) -> f64 {
    1.0 - 2.0 * confidence.alpha()
}

/// Says of each event what there is to say.
pub(super) fn judge_events(events: &mut [ValidatedEvent], confidence: Confidence) {
    let judged = events.iter().filter(|event| event.totals != Coverage::default()).count().max(1);
    for event in events {
        event.validity = validity(event, ALPHA / judged as f64, confidence);
    }
}

fn validity(event: &ValidatedEvent, alpha: f64, confidence: Confidence) -> Validity {
    // Intervals of one run go wrong together: they are to hold the least, not what is promised.
    let is_too_narrow =
        event.totals.is_below(confidence.level(), alpha) || event.intervals.is_below(least(confidence), alpha);
    match event {
        _ if !event.event.status.is_open() => Validity::NotCounted,
        _ if event.run_ratio.is_none_or(|ratio| ratio >= 1.0) => Validity::AlwaysCounted,
        _ if event.truth.is_none() => Validity::NoTruth,
        _ if is_too_narrow => Validity::TooNarrow,
        _ if event.totals.judged() > 0 => Validity::Holds,
        _ => Validity::Unclear,
    }
}

impl KnownCount {
    /// Whether it is wrong. The kernel may add to what happens in user space, and never takes from it.
    pub fn is_wrong(self) -> bool {
        let off = self.deviation();
        off < -KNOWN_WITHIN || self.is_user_only && off > KNOWN_WITHIN
    }
}

impl Conclusion {
    /// What events and intervals come to, of totals and of report intervals.
    pub(super) fn of(events: &[ValidatedEvent], totals: Coverage, intervals: Coverage, confidence: Confidence) -> Self {
        let is_wrong = |event: &ValidatedEvent| {
            event.validity == Validity::TooNarrow || event.known.is_some_and(KnownCount::is_wrong)
        };
        let misses = |coverage| misses_the_truth(coverage, confidence);
        match () {
            () if events.iter().any(is_wrong) || misses(totals) || misses(intervals) => Self::Fails,
            () if totals.judged() < ENOUGH || is_less(totals, confidence) || is_less(intervals, confidence) => {
                Self::Unknown
            }
            () => Self::Holds,
        }
    }

    /// The code to exit with.
    pub fn code(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::Fails => 1,
            Self::Unknown => 2,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Unknown => "unknown",
        }
    }
}

impl Validity {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::TooNarrow => "too narrow",
            Self::Unclear => "can't tell",
            Self::AlwaysCounted => "always counted",
            Self::NoTruth => "no truth",
            Self::NotCounted => "not counted",
        }
    }
}
