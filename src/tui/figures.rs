//! A row of the monitor in, the numbers that a screen shows of it out.

use crate::estimate::{Quality, RelationIndex};
use crate::monitor::{Measure, Monitor};
use crate::plan::EventIndex;
use crate::rates::Error;

/// Which numbers are shown first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// What the estimator makes of all samples.
    #[default]
    Corrected,
    /// The event's own samples.
    Raw,
}

impl Basis {
    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Corrected => Self::Raw,
            Self::Raw => Self::Corrected,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::Raw => "raw",
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
    pub(super) fn sigma(&self) -> Option<f64> {
        self.variance.map(f64::sqrt)
    }

    /// The spread as a part of the mean.
    pub(super) fn cv(&self) -> Option<f64> {
        self.sigma().filter(|_| self.mean != 0.0).map(|sigma| sigma / self.mean.abs())
    }
}

/// All that is shown of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) raw: Option<Figure>,
    pub(super) corrected: Option<Figure>,
    /// Corrected minus raw, as a part of raw; `None` where no relation moved it.
    pub(super) correction: Option<f64>,
    /// The relation that moved it most.
    pub(super) by: Option<RelationIndex>,
    /// Whether only a relation knows it.
    pub(super) derived: bool,
    /// Running over enabled.
    pub(super) run: Option<f64>,
    /// Whether one kind of core counts it: then `run` is the time spent there.
    pub(super) is_partial: bool,
}

impl Figures {
    pub(super) fn of(monitor: &Monitor, index: EventIndex, measure: Measure) -> Self {
        let row = monitor.row(index);
        let factor = measure.factor(monitor, &row).filter(|factor| factor.is_finite());
        let figure = |mean: Option<f64>, error: Error, variance: Option<f64>| {
            let factor = factor?;
            Some(Figure {
                mean: mean? * factor,
                error: error.scaled(factor),
                variance: variance.map(|variance| variance * factor * factor),
            })
        };
        let (raw, estimate) = (row.raw, row.estimate);
        let mut raw = figure(raw.rate.mean(), raw.rate_error(), None);
        raw.iter_mut().for_each(|figure| figure.variance = measure.variance(monitor, &row));
        // The estimator knows the spread between intervals in one unit only.
        let variance = estimate.variance.filter(|_| measure == Measure::PerCpuSecond);
        let corrected = figure(estimate.mean, estimate.error, variance);
        let by = match estimate.quality {
            Quality::Corrected(relation) | Quality::Derived(relation) => Some(relation),
            Quality::Missing | Quality::Measured | Quality::Scaled => None,
        };
        let correction = match (raw, corrected) {
            (Some(raw), Some(corrected)) if by.is_some() && raw.mean != 0.0 => {
                Some((corrected.mean - raw.mean) / raw.mean)
            }
            _ => None,
        };
        let derived = matches!(estimate.quality, Quality::Derived(_));
        let run = row.core_share.or(row.raw.run.run_ratio());
        Self { raw, corrected, correction, by, derived, run, is_partial: row.core_share.is_some() }
    }

    /// The figure to show. What was counted all the time is shown as counted: no correction is
    /// better than that, and [`correction`](Self::correction) says what it would be.
    pub(super) fn shown(&self, basis: Basis) -> Option<Figure> {
        let exact = self.raw.filter(|raw| raw.error == Error::Exact);
        match basis {
            Basis::Corrected => exact.or(self.corrected),
            Basis::Raw => self.raw,
        }
    }
}

/// A total grows all the time, so charts of it show the rate.
pub(super) fn chart_measure(measure: Measure) -> Measure {
    if measure == Measure::Total { Measure::PerCpuSecond } else { measure }
}
