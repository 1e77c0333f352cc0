//! Selects the numbers of a monitor's row that a screen shows.

use crate::estimate::Cause;
use crate::events::Unit;
use crate::monitor::{Measure, Monitor, Point, Row, leans_on_scaling};
use crate::number::{plus_minus, plus_minus_sides};
use crate::plan::RowIndex;
use crate::rates::{Error, Uncertain};
use crate::tui::text::width;

/// Which numbers are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownValues {
    /// What the estimator makes of all samples.
    #[default]
    Corrected,
    /// The event's own samples alone.
    Raw,
    /// Both, side by side.
    Both,
}

impl ShownValues {
    /// The next basis in the order of the key.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Corrected => Self::Raw,
            Self::Raw => Self::Both,
            Self::Both => Self::Corrected,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::Raw => "raw",
            Self::Both => "both",
        }
    }
}

/// A mean with its error and spread, in the unit of the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figure {
    pub(super) mean: f64,
    pub(super) error: Error,
    pub(super) variance: Option<f64>,
}

impl Figure {
    /// A mean whose variance is 0 where rounding alone makes it another number: a clock over its own time.
    fn new(mean: f64, error: Error, variance: Option<f64>) -> Self {
        /// The part of a mean that rounding may be.
        const ROUNDING: f64 = 1e-12;
        let least = (ROUNDING * mean).powi(2);
        Self { mean, error, variance: variance.map(|variance| if variance <= least { 0.0 } else { variance }) }
    }

    pub(super) fn sigma(&self) -> Option<f64> {
        self.variance.map(f64::sqrt)
    }

    /// The spread as a part of the mean.
    pub(super) fn cv(&self) -> Option<f64> {
        self.sigma().filter(|_| self.mean != 0.0).map(|sigma| sigma / self.mean.abs())
    }

    /// The interval; both ends are the mean where the error isn't known.
    pub(super) fn bounds(&self) -> (f64, f64) {
        Uncertain { value: self.mean, error: self.error }.bounds().unwrap_or((self.mean, self.mean))
    }
}

/// The numbers that are shown of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) raw: Option<Figure>,
    pub(super) corrected: Option<Figure>,
    /// The interval that ended last.
    pub(super) now: Option<Uncertain>,
    /// The same of its own samples alone.
    pub(super) raw_now: Option<Uncertain>,
    pub(super) correction: CorrectionEffect,
    /// What moved the count most.
    pub(super) by: Option<Cause>,
    /// Time running over time enabled.
    pub(super) run: Option<f64>,
    /// Whether one kind of core counts it: then `run` is the time spent there.
    pub(super) is_partial: bool,
}

/// An estimate of an interval that is far below one count says that there was none: 0, with how far that may be off.
/// Percents of it would say nothing.
fn no_less_than_counts(now: Uncertain) -> Uncertain {
    const NO_COUNT: f64 = 1e-3;
    match now.error.half_width() {
        Some(half_width) if now.value.abs() < NO_COUNT && half_width > now.value.abs() => {
            Uncertain { value: 0.0, ..now }
        }
        _ => now,
    }
}

/// The last intervals of an event without the moment in which the run ended: one that is less than half as long as the
/// one before it shows how a program exits, at rates that it never had.
pub(super) fn without_moment(monitor: &Monitor, mut points: Vec<Point>) -> Vec<Point> {
    if monitor.ended().is_some() && is_moment(points.iter().rev()) {
        points.pop();
    }
    points
}

/// In how many intervals an event was counted. The moment in which the run ended is none.
pub(super) fn intervals_of(monitor: &Monitor, row: &Row<'_>) -> u64 {
    let has_moment = monitor.ended().is_some() && is_moment(row.history.iter().rev());
    row.raw.rate.samples().saturating_sub(u64::from(has_moment))
}

/// How many intervals there are, in words. The moment in which the run ended is none.
pub(super) fn intervals_in_words(monitor: &Monitor) -> String {
    let has_moment = || monitor.rows().next().is_some_and(|row| is_moment(row.history.iter().rev()));
    match monitor.intervals() {
        intervals if monitor.ended().is_some() && has_moment() => format!("n={}", intervals.saturating_sub(1)),
        intervals => format!("n={intervals}"),
    }
}

/// Whether the last interval is less than half as long as the one before it; the newest come first.
fn is_moment<'a>(mut newest: impl Iterator<Item = &'a Point>) -> bool {
    newest.next().zip(newest.next()).is_some_and(|(last, before)| 2 * last.length.0 < before.length.0)
}

/// What correcting did to a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum CorrectionEffect {
    /// Nothing was corrected.
    #[default]
    None,
    /// The number was moved by this part of its raw value; `None` where that is 0 and has no parts.
    By(Option<f64>),
    /// There was no raw number: it follows from others.
    Derived,
}

impl CorrectionEffect {
    /// The part, where there is one.
    pub(super) fn part(self) -> Option<f64> {
        match self {
            Self::By(part) => part,
            Self::None | Self::Derived => None,
        }
    }
}

impl Figures {
    /// Whether there is one number only, as it was counted.
    pub(super) fn is_exact(&self) -> bool {
        self.raw.is_some_and(|raw| raw.error == Error::Exact) && self.raw == self.corrected
    }

    pub(super) fn of(monitor: &Monitor, index: RowIndex, measure: Measure) -> Self {
        Self::of_row(monitor, &monitor.row(index), measure)
    }

    fn of_row(monitor: &Monitor, row: &Row<'_>, measure: Measure) -> Self {
        let factor = measure.factor(monitor, row).filter(|factor| factor.value.is_finite());
        let newest = without_moment(monitor, measure.newest(monitor, row, 2)).pop();
        let figure = |count: Option<Uncertain>, variance: Option<f64>| {
            let Uncertain { value, error } = count?.times(factor?);
            Some(Figure::new(value, error, variance))
        };
        let (raw_variance, correction) = (measure.variance(monitor, row), row.correction());
        let variance = measure.best_variance(monitor, row);
        Self {
            raw: figure(row.scaled, raw_variance),
            corrected: figure(row.estimate.total, variance),
            now: newest.and_then(|point| point.corrected).map(no_less_than_counts),
            raw_now: newest.and_then(|point| point.raw).map(no_less_than_counts),
            correction: correction.map_or(CorrectionEffect::None, |correction| match correction.raw {
                Some(_) => CorrectionEffect::By(correction.relative()),
                None => CorrectionEffect::Derived,
            }),
            by: correction.and_then(|correction| correction.by),
            run: row.core_share.or(row.raw.run.run_ratio()),
            is_partial: row.is_partial(),
        }
    }

    /// Figures of all parts of an event together. An estimator knows no spread of a sum.
    pub(super) fn of_sum(monitor: &Monitor, events: &[RowIndex], measure: Measure) -> Self {
        let sum = &monitor.sum(events);
        let factor = measure.factor_of_sum(monitor, events, sum).filter(|factor| factor.value.is_finite());
        let newest = without_moment(monitor, measure.points_of_sum(monitor, events, 2)).pop();
        let raw_variance = measure.variance_of_sum(monitor, events);
        let figure = |count: Option<Uncertain>, variance| {
            let Uncertain { value, error } = count?.times(factor?);
            Some(Figure::new(value, error, variance))
        };
        let correction = match (sum.scaled, sum.estimate) {
            (Some(raw), Some(estimate)) if sum.is_corrected() => {
                CorrectionEffect::By((raw.value != 0.0).then(|| (estimate.value - raw.value) / raw.value))
            }
            (None, Some(_)) => CorrectionEffect::Derived,
            _ => CorrectionEffect::None,
        };
        let variance = raw_variance.filter(|_| correction == CorrectionEffect::None);
        let (raw, corrected) = (figure(sum.scaled, raw_variance), figure(sum.estimate, variance));
        Self {
            raw,
            corrected,
            now: newest.and_then(|point| point.corrected),
            raw_now: newest.and_then(|point| point.raw),
            correction,
            by: None,
            run: sum.run_ratio(),
            is_partial: false,
        }
    }

    /// How far a figure of these may be off; that of one kind of core is a part of all, nobody knows which.
    pub(super) fn error_of(&self, figure: Figure, unit: &Unit) -> String {
        match self.is_partial {
            true => "partial".into(),
            false => plus_minus(Uncertain { value: figure.mean, error: figure.error }, unit),
        }
    }

    /// The same in so many cells: with both sides of its interval where `±` says little and they have room.
    pub(super) fn error_within(&self, figure: Figure, unit: &Unit, cells: usize) -> String {
        let both = || plus_minus_sides(Uncertain { value: figure.mean, error: figure.error }, unit);
        let both = Some(()).filter(|()| !self.is_partial).map(|()| both());
        both.filter(|both| width(both) <= cells).unwrap_or_else(|| self.error_of(figure, unit))
    }

    /// The number of the newest interval to show.
    pub(super) fn shown_now(&self, basis: ShownValues) -> Option<Uncertain> {
        match basis {
            ShownValues::Corrected | ShownValues::Both => self.now,
            ShownValues::Raw => self.raw_now,
        }
    }

    /// Whether the figure to show first leans on scaling, as its event ran for little of the time.
    pub(super) fn leans_on_scaling(&self, run: f64, basis: ShownValues) -> bool {
        let number = self.shown(basis).map(|Figure { mean, error, .. }| Uncertain { value: mean, error });
        leans_on_scaling(run, number)
    }

    /// The figure to show first.
    pub(super) fn shown(&self, basis: ShownValues) -> Option<Figure> {
        match basis {
            ShownValues::Corrected | ShownValues::Both => self.corrected,
            ShownValues::Raw => self.raw,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{self, event, measured};
    use crate::estimate::EstimatorKind;
    use crate::run::End;
    use crate::sources::{Reading, Round};
    use crate::units::{CpuNs, WallNs};

    #[test]
    fn the_variance_of_times_is_in_the_square_of_seconds() {
        use crate::number::variance;
        // 198 ms, squared.
        assert_eq!(variance(198e6 * 198e6, &Unit::Nanoseconds), "3.9e-2s²");
        let scaled = Unit::Scaled { scale: 1e6, name: "ns".into() };
        assert_eq!([variance(198.0 * 198.0, &scaled), variance(0.0, &scaled)], ["3.9e-2s²", "0"]);
        assert_eq!(variance(270.0, &Unit::Count), "2.7e2");
    }

    #[test]
    fn the_moment_of_an_exit_is_not_counted_as_an_interval() {
        let mut monitor = builders::monitor(builders::header([measured(event("a"))]), vec![], EstimatorKind::Scale);
        let round = |tenth: u64| {
            let (at, time) = (WallNs(tenth * 100_000_000), CpuNs(tenth * 100_000_000));
            let reading = Reading { count: tenth, enabled: time, running: time };
            Round { at, readings: vec![Some(reading)], ..Round::default() }
        };
        for tenth in 0..=22 {
            monitor.round(&round(tenth), 0);
        }
        assert_eq!((intervals_in_words(&monitor).as_str(), intervals_of(&monitor, &monitor.row(0))), ("n=2", 2));
        let last = round(22);
        monitor.end(End { at_ns: last.at, totals: last.readings, ..End::default() });
        assert_eq!((intervals_in_words(&monitor).as_str(), intervals_of(&monitor, &monitor.row(0))), ("n=2", 2));
    }

    #[test]
    fn the_moment_of_an_exit_is_no_interval() {
        let monitor = |end: Option<End>| {
            let mut monitor = builders::monitor(builders::header([measured(event("a"))]), vec![], EstimatorKind::Scale);
            end.into_iter().for_each(|end| monitor.end(end));
            monitor
        };
        let left = |monitor: &Monitor, lengths: &[u64]| {
            let point = |&length: &u64| Point { length: WallNs(length), ..Point::default() };
            without_moment(monitor, lengths.iter().map(point).collect()).len()
        };
        let (runs, ended) = (monitor(None), monitor(Some(End::default())));
        assert_eq!([left(&runs, &[100, 49]), left(&ended, &[100, 49]), left(&ended, &[100, 50])], [2, 1, 2]);
        // A short run is all that there is.
        assert_eq!([left(&ended, &[49]), left(&ended, &[])], [1, 0]);
    }

    #[test]
    fn far_less_than_a_count_is_none() {
        let shown = |value, error| no_less_than_counts(Uncertain { value, error });
        let none = shown(7.1e-9, Error::of(0.2));
        assert_eq!((none.value, plus_minus(none, &Unit::Count)), (0.0, "±0.200".to_owned()));
        // What is known to be so little is a share, or a rate of long intervals.
        assert_eq!([shown(1e-4, Error::of(1e-5)).value, shown(0.3, Error::of(2.0)).value], [1e-4, 0.3]);
        assert_eq!(shown(1e-9, Error::Exact).value, 1e-9);
    }
}
