//! Rates and relations in, estimates with intervals out.
//!
//! An [`Estimator`] takes what each interval counted and answers with the best it knows of each
//! event. Raw statistics are kept by whoever feeds it, and are never touched by it.

use crate::plan::EventIndex;
use crate::rates::{Delta, Error, Moments, Scaling};

pub mod gp;
mod judge;
mod linear;
mod scale;

pub use linear::Linear;
pub use scale::Scale;

/// The place of a relation in the list of all that were read.
pub type RelationIndex = usize;

/// What an interval says of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// What was counted.
    pub delta: Delta,
    /// The error of the interval's rate, in counts per CPU-millisecond.
    pub error: Error,
}

/// The raw statistics of an event: its own samples, nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Raw {
    /// Mean and variance of the rate over intervals.
    pub rate: Moments,
    /// The scaled count of the whole run and its error.
    pub run: Scaling,
}

impl Raw {
    /// The error of the mean rate: that of the scaled count, per millisecond of CPU time.
    pub fn rate_error(&self) -> Error {
        let enabled = self.run.total().enabled.as_ms();
        if enabled > 0.0 { self.run.error().scaled(1.0 / enabled) } else { Error::Unknown }
    }
}

/// What an estimator knows of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The mean rate in counts per millisecond of CPU time; `None` if nothing is known.
    pub mean: Option<f64>,
    /// The variance of the rate between intervals, in the square of that unit.
    pub variance: Option<f64>,
    /// The error of the mean.
    pub error: Error,
    /// Where the mean comes from.
    pub quality: Quality,
}

/// Where a number comes from, and so how far it can be trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quality {
    /// There is no number (yet).
    #[default]
    Missing,
    /// The event was counted all the time.
    Measured,
    /// The event was counted for a part of the time, and scaled.
    Scaled,
    /// Counted, and corrected by relations; this one moved it most.
    Corrected(RelationIndex),
    /// Never counted: a relation says so.
    Derived(RelationIndex),
}

/// How a relation fares.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Standing {
    /// How often it corrected an event.
    pub uses: u64,
    /// What it predicts of its event minus what was counted, in counts per millisecond of CPU
    /// time, over the whole run.
    pub residual: Option<f64>,
    /// The residual as a part of what was counted.
    pub relative: Option<f64>,
    /// The residual in units of its standard error.
    pub z: Option<f64>,
    /// What follows from that.
    pub state: RelationState,
}

/// What a relation is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RelationState {
    /// Its events haven't all been counted yet.
    #[default]
    Waiting,
    /// It agrees with what is counted, and corrects.
    Agrees,
    /// What is counted contradicts it: it corrects nothing.
    Violated,
    /// These events of it aren't measured.
    Inactive {
        /// Their names.
        missing: Vec<String>,
    },
    /// It goes out from and into this event, which has two names.
    SameEvent {
        /// Which.
        event: EventIndex,
    },
}

/// Turns what intervals counted into estimates.
pub trait Estimator: Send {
    /// Takes an interval: what it says of each event, and the raw statistics including it.
    fn observe(&mut self, interval: &[Observation], raw: &[Raw]);

    /// The best that is known of each event over the run so far.
    fn estimates(&self) -> &[Estimate];

    /// How each relation fares, in the order of the files.
    fn relations(&self) -> &[Standing];
}

/// The estimate that raw statistics alone give.
fn own(raw: &Raw) -> Estimate {
    let error = raw.rate_error();
    let quality = match (raw.rate.mean(), error) {
        (None, _) => Quality::Missing,
        (Some(_), Error::Exact) => Quality::Measured,
        (Some(_), _) => Quality::Scaled,
    };
    Estimate { mean: raw.rate.mean(), variance: raw.rate.variance(), error, quality }
}

/// The half width of a 95 % interval in standard deviations.
const HALF_WIDTH: f64 = 1.96;

/// The standard deviation that an error stands for; NaN if it isn't known.
fn deviation(error: Error) -> f64 {
    error.half_width().map_or(f64::NAN, |half_width| half_width / HALF_WIDTH)
}
