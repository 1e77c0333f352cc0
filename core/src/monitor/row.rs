//! Describes what is known of one event: its counts over the run and in each interval, or why it has none.

use std::collections::VecDeque;

use super::{FirstMinute, Monitor, at_least};
use crate::estimate::{Cause, Estimate, Quality};
use crate::plan::RowIndex;
use crate::rates::{Delta, Raw, Uncertain};
use crate::run::MeasuredEvent;
use crate::sources::Status;
use crate::units::{CpuNs, WallNs};

/// What there is to say about one event.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    /// Place of the event in the list that the user asked for.
    pub index: RowIndex,
    /// The event and whether it could be opened.
    pub event: &'a MeasuredEvent,
    /// Raw statistics of the event's own samples.
    pub raw: &'a Raw,
    /// The scaled count of the run; `None` if it never ran.
    pub scaled: Option<Uncertain>,
    /// What the estimator makes of it.
    pub estimate: &'a Estimate,
    /// The CPU time of the run: the event's own, or that of the others where it isn't open.
    pub cpu_time: CpuNs,
    /// Intervals of the event, oldest first.
    pub history: &'a VecDeque<Point>,
    /// What it counted in the first minute.
    pub first_minute: &'a FirstMinute,
    /// Why it has not been counted, if it hasn't.
    pub absence: Option<Absence>,
    /// The part of the CPU time that was spent on the one kind of core that counts the event. Its
    /// count is a part then, and isn't scaled. `None` for an event that all cores count.
    pub core_share: Option<f64>,
    /// What of it isn't counted, because the kernel took counters off at an exec.
    pub uncounted: Option<UncountedPart>,
    /// Whether some of the event's units have no part in its count, so that it is a part of the sum.
    pub lacks_units: bool,
}

impl<'a> Row<'a> {
    /// The best that is known of the run's count: what the estimator makes of it, else the scaled one.
    pub fn best(&self) -> Option<Uncertain> {
        self.estimate.total.or(self.scaled)
    }

    /// The count of the run as it is printed before any correction. Where nothing moved the scaled one, the estimator
    /// says how far off it may be, as on screens: it knows more of that than the event's own samples alone.
    pub fn count(&self) -> Option<Uncertain> {
        if self.is_corrected() || self.lacks_units { self.scaled } else { self.scaled.and(self.best()) }
    }

    /// The interval that ended last; `None` before the first, and where the event has not been on a counter.
    pub fn newest(&self) -> Option<&'a Point> {
        self.history.back().filter(|_| matches!(self.absence, None | Some(Absence::NoneSeen)))
    }

    /// Whether the count is a part of what it is called: that of one kind of core, or of some units.
    pub fn is_partial(&self) -> bool {
        self.core_share.is_some() || self.lacks_units
    }

    /// How the run's number was corrected, or where one that was never counted comes from; `None`
    /// where it is what was counted, or scaled.
    pub fn correction(&self) -> Option<Correction> {
        let count = self.estimate.total.filter(|_| self.is_corrected())?;
        Some(Correction { count, raw: self.scaled, by: self.by() })
    }

    /// Whether the estimator moved the run's number, or narrowed its interval. What does neither is an estimate of the
    /// error.
    pub(super) fn is_corrected(&self) -> bool {
        match (self.estimate.quality, self.estimate.total, self.scaled) {
            (Quality::Corrected, Some(count), Some(scaled)) => corrects(scaled, count),
            (quality, ..) => matches!(quality, Quality::Corrected | Quality::Derived),
        }
    }

    /// The variance of the rate between intervals, in the square of counts per millisecond of CPU time, where a
    /// relation makes it another one than that of what was counted.
    pub fn corrected_variance(&self) -> Option<f64> {
        let counted = self.raw.rate.variance();
        self.estimate.variance.filter(|&variance| {
            counted.is_none_or(|counted| (variance - counted).abs() > LEAST_MOVED * counted.abs().max(variance))
        })
    }

    /// Correction of the interval that ended last.
    pub fn interval_correction(&self) -> Option<Correction> {
        let point = self.history.back()?;
        let is_corrected = match (point.raw, point.corrected) {
            (Some(raw), Some(count)) => corrects(raw, count),
            (raw, corrected) => raw != corrected,
        };
        // What moved an interval alone is how the estimator weighs what was counted.
        let by = self.by().or(Some(Cause::Weighting));
        Some(Correction { count: point.corrected.filter(|_| is_corrected)?, raw: point.raw, by })
    }

    fn by(&self) -> Option<Cause> {
        self.estimate.parts.first().map(|part| part.by)
    }
}

/// The part of a number that moving it is to be told of: less is shown as 0.0 %.
const LEAST_MOVED: f64 = 0.0005;

/// Whether a number in place of the scaled one is another one, or a surer one.
pub(super) fn corrects(scaled: Uncertain, count: Uncertain) -> bool {
    let moved = (count.value - scaled.value).abs();
    let width = |number: Uncertain| number.bounds().map_or(f64::INFINITY, |(low, high)| high - low);
    (moved > 0.0 && moved >= LEAST_MOVED * scaled.value.abs()) || width(count) < width(scaled)
}

/// One interval of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// End of the interval.
    pub at: WallNs,
    /// Length of the interval.
    pub length: WallNs,
    /// The CPU time of it: the event's own, or that of the others where it isn't open.
    pub cpu_time: CpuNs,
    /// What was counted, as it was counted.
    pub counted: Delta,
    /// The scaled count; `None` where nothing ran.
    pub raw: Option<Uncertain>,
    /// What the estimator makes of it.
    pub corrected: Option<Uncertain>,
}

impl Point {
    /// This point with its counts in another unit; without a factor there are none.
    pub(super) fn times(&self, factor: Option<Uncertain>) -> Self {
        let scaled = |count: Option<Uncertain>| Some(count?.times(factor?));
        Self { raw: scaled(self.raw), corrected: scaled(self.corrected), ..*self }
    }

    /// The best that is known of the interval's count: what the estimator makes of it, else the scaled one.
    pub fn best(&self) -> Option<Uncertain> {
        self.corrected.or(self.raw)
    }

    /// Running over enabled, at most 1; `None` if no CPU time passed.
    pub fn run_ratio(&self) -> Option<f64> {
        let Delta { enabled, running, .. } = self.counted;
        (enabled.0 > 0).then(|| (running.0 as f64 / enabled.0 as f64).min(1.0))
    }
}

/// What of an event isn't counted where the kernel took counters off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UncountedPart {
    /// All from the exec of a measured task on.
    FromExecOn,
    /// What a child did; the whole is counted otherwise.
    OfChild,
    /// What a model hadn't written when it ended.
    OfModel,
    /// What runs on a CPU from when it was offline on.
    OfCpu,
}

/// How a number was corrected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correction {
    /// The corrected count.
    pub count: Uncertain,
    /// The scaled count; `None` where nothing was counted.
    pub raw: Option<Uncertain>,
    /// What moved the run's count most.
    pub by: Option<Cause>,
}

impl Correction {
    /// This correction with counts in another unit.
    pub fn times(&self, factor: f64) -> Self {
        Self { count: self.count.scaled(factor), raw: self.raw.map(|raw| raw.scaled(factor)), by: self.by }
    }

    /// The correction as a part of the scaled count; `None` where there is none, or it is 0.
    pub fn relative(&self) -> Option<f64> {
        let raw = self.raw.map(|raw| raw.value).filter(|&raw| raw != 0.0)?;
        Some(self.count.value / raw - 1.0)
    }
}

/// Why an event has no number. These are different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absence {
    /// This machine has no such event.
    NotSupported,
    /// The kernel doesn't let this user count it.
    Forbidden,
    /// All that could count it is in use.
    InUse,
    /// The event has not been on a counter so far.
    NotYetRan,
    /// The event was never on a counter, and the measurement has ended.
    NeverRan,
    /// The event counted nothing while it was on a counter, but wasn't on one in the beginning, or was so in few turns:
    /// it may have occurred there, or between them.
    NoneSeen,
    /// The kernel took its counters off before it counted anything.
    TakenOff,
    /// The thread had ended before its counters were open.
    Gone,
    /// The event's PMU is opened on other CPUs.
    Elsewhere,
}

impl Absence {
    /// Words for the reason, the same in all texts and on all screens; README.md lists them.
    pub fn words(self) -> &'static str {
        match self {
            Self::NotSupported => "not supported",
            Self::Forbidden => "not permitted",
            Self::InUse => "in use",
            Self::NotYetRan | Self::NeverRan => "not counted",
            Self::NoneSeen => "none seen",
            Self::TakenOff => "not counted from exec on",
            Self::Gone => "gone",
            Self::Elsewhere => "on other CPUs",
        }
    }
}

impl Monitor {
    /// All events, in the order that the user asked for.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        (0..self.tracks.len()).map(|index| self.row(index))
    }

    /// One event.
    ///
    /// # Panics
    /// Panics if there is no such event.
    pub fn row(&self, index: RowIndex) -> Row<'_> {
        Row {
            index,
            event: &self.header.events[index],
            raw: &self.tally.raw()[index],
            scaled: self.scaled(index),
            estimate: self.known(index).unwrap_or(&self.estimator.estimates()[index]),
            cpu_time: self.tally.run_time(index),
            history: &self.tracks[index].history,
            first_minute: &self.tracks[index].first_minute,
            absence: self.absence(index),
            core_share: self.core_share(index),
            uncounted: self.tracks[index].uncounted.as_ref().map(|(part, _)| *part),
            lacks_units: self.lacks_units(index),
        }
    }

    /// What is left of the estimate of an event of which a part isn't counted, or that is read in steps.
    fn known(&self, index: RowIndex) -> Option<&Estimate> {
        let track = &self.tracks[index];
        track.uncounted.as_ref().map(|(_, known)| known).or(track.stepped.as_ref())
    }

    fn scaled(&self, index: RowIndex) -> Option<Uncertain> {
        let total = self.known(index).map_or_else(|| self.tally.total(index), |known| known.total);
        if self.lacks_units(index) { total.map(at_least) } else { total }
    }

    pub(super) fn lacks_units(&self, index: RowIndex) -> bool {
        self.tracks[index].lacks_unit || self.header.events[index].event.is_of_a_part()
    }

    fn core_share(&self, index: RowIndex) -> Option<f64> {
        let is_partial = self.header.events[index].event.core().is_some();
        let (running, enabled) = self.times_since_beginning(index);
        (is_partial && enabled > 0).then(|| running as f64 / enabled as f64)
    }

    fn absence(&self, index: RowIndex) -> Option<Absence> {
        match self.header.events[index].status {
            Status::NotSupported => Some(Absence::NotSupported),
            Status::Forbidden => Some(Absence::Forbidden),
            Status::InUse => Some(Absence::InUse),
            Status::Gone => Some(Absence::Gone),
            Status::Elsewhere => Some(Absence::Elsewhere),
            Status::Counted | Status::UserOnly if self.scaled(index).is_some() => None,
            Status::Counted | Status::UserOnly
                if matches!(self.tracks[index].uncounted, Some((UncountedPart::FromExecOn, _))) =>
            {
                Some(Absence::TakenOff)
            }
            Status::Counted | Status::UserOnly if self.tally.raw()[index].run.total().running.0 > 0 => {
                Some(Absence::NoneSeen)
            }
            Status::Counted | Status::UserOnly if self.end.is_some() => Some(Absence::NeverRan),
            Status::Counted | Status::UserOnly => Some(Absence::NotYetRan),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rates::Error;

    #[test]
    fn a_correction_moves_a_number_or_narrows_its_interval() {
        let within = |value: f64, error: f64| Uncertain { value, error: Error::Within { below: error, above: error } };
        let scaled = within(1000.0, 10.0);
        assert!(corrects(scaled, within(1002.0, 20.0)) && corrects(scaled, within(1000.0, 5.0)));
        assert!(!corrects(scaled, within(1000.1, 20.0)) && !corrects(scaled, scaled));
        // Of 0 everything is a part; an interval that isn't known is the widest.
        assert!(corrects(within(0.0, 1.0), within(0.1, 2.0)));
        assert!(corrects(Uncertain { value: 5.0, error: Error::Unknown }, within(5.0, 50.0)));
    }
}
