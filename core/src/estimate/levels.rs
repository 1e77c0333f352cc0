//! Turns raw statistics into the numbers that bound relations read, and their errors.

use crate::expr::{Program, VariableSlot};
use crate::rates::{Scaling, Tally};
use crate::relations::{BoundEquation, mean_slot};

/// The mean and the variance of every event side by side, as bound relations read them, and the
/// standard deviation of the error of each. NaN is unknown.
#[derive(Clone, Debug, Default)]
pub(super) struct EventLevels {
    pub(super) values: Vec<f64>,
    pub(super) deviations: Vec<f64>,
}

impl EventLevels {
    /// Levels of the run.
    pub(super) fn of_run(tally: &Tally) -> Self {
        Self::of(tally, |event| {
            let raw = &tally.raw()[event];
            (raw.rate.mean().unwrap_or(f64::NAN), rate_deviation(&raw.run, raw.run.deviation()))
        })
    }

    /// The rates of the interval that ended last, beside the variances of the run.
    pub(super) fn of_interval(tally: &Tally) -> Self {
        Self::of(tally, |event| {
            let interval = tally.interval(event);
            let deviation = interval.deviation_within(&tally.raw()[event].run);
            (interval.total().rate().unwrap_or(f64::NAN), rate_deviation(&interval, deviation))
        })
    }

    fn of(tally: &Tally, mean: impl Fn(usize) -> (f64, f64)) -> Self {
        let events = tally.raw().len();
        let mut levels = Self { values: Vec::with_capacity(2 * events), deviations: Vec::with_capacity(2 * events) };
        for (event, raw) in tally.raw().iter().enumerate() {
            let (value, deviation) = mean(event);
            levels.values.extend([value, raw.rate.variance().unwrap_or(f64::NAN)]);
            // Scaling adds its own error to every sample, and so to their variance.
            let noise = rate_deviation(&raw.run, raw.run.deviation()).powi(2) * raw.rate.samples() as f64;
            let sampling = raw.rate.variance_deviation().unwrap_or(f64::NAN);
            levels.deviations.extend([deviation, sampling.hypot(noise)]);
        }
        levels
    }

    pub(super) fn mean(&self, event: usize) -> f64 {
        self.values[mean_slot(event).0]
    }

    /// The standard deviation of a value with this gradient, if the errors of the numbers that it
    /// is made of are independent.
    pub(super) fn propagated(&self, slots: &[VariableSlot], gradient: &[f64]) -> f64 {
        let parts = slots.iter().zip(gradient).filter(|(_, derivative)| **derivative != 0.0);
        parts.map(|(slot, derivative)| derivative * self.deviations[slot.0]).fold(0.0, f64::hypot)
    }
}

/// The standard error of a rate: that of the scaled count, if it is known, per millisecond of CPU time. How the
/// program varies is no error of it, as all events were counted on the same run.
fn rate_deviation(scaling: &Scaling, deviation: Option<f64>) -> f64 {
    deviation.map_or(f64::NAN, |deviation| deviation / scaling.total().enabled.as_ms())
}

pub(super) fn known(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The value of a program, if it has one, and its derivatives.
pub(super) fn with_gradient(program: &Program, values: &[f64], gradient: &mut Vec<f64>) -> Option<f64> {
    known(program.eval_with_gradient(values, zeroed(gradient, program.slots().len())))
}

/// The residual of an equation, if it has one, and its derivatives.
pub(super) fn residual_with_gradient(equation: &BoundEquation, values: &[f64], gradient: &mut Vec<f64>) -> Option<f64> {
    known(equation.residual_with_gradient(values, zeroed(gradient, equation.events().len())))
}

fn zeroed(gradient: &mut Vec<f64>, size: usize) -> &mut [f64] {
    gradient.clear();
    gradient.resize(size, 0.0);
    gradient
}
