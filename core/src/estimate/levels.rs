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

    /// The sum of the products' sizes in a value with this gradient.
    pub(super) fn size(&self, slots: &[VariableSlot], gradient: &[f64]) -> f64 {
        slots.iter().zip(gradient).map(|(slot, derivative)| (derivative * self.values[slot.0]).abs()).sum()
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::estimate::tests::{events, half, whole};
    use crate::relations::{BoundForm, RelationBinding};

    fn levels(deviations: &[f64]) -> EventLevels {
        EventLevels { values: vec![0.0; deviations.len()], deviations: deviations.to_vec() }
    }

    #[test]
    fn levels_are_rates_and_their_errors_by_hand() {
        let mut tally = Tally::new(3);
        for _ in 0..2 {
            tally.round(&[Some(whole(20)), Some(half(Some(30))), None]);
            tally.end_interval();
        }
        for levels in [EventLevels::of_run(&tally), EventLevels::of_interval(&tally)] {
            // 20 in 2 ms, and 30 in one; what was counted all the time has no error.
            assert_eq!((levels.mean(0), levels.mean(1), levels.deviations[mean_slot(0).0]), (10.0, 30.0, 0.0));
            assert!(levels.deviations[mean_slot(1).0] > 0.0);
            // What could not be read is unknown.
            assert!(levels.mean(2).is_nan() && known(levels.mean(2)).is_none());
        }
    }

    #[test]
    fn errors_of_a_value_add_up_in_squares_by_hand() {
        let levels = levels(&[1.0, f64::NAN, 2.0]);
        let slots = [0, 1, 2].map(VariableSlot);
        // 3 x 1 and 2 x 2; what has no part in it may be unknown.
        assert_eq!(levels.propagated(&slots, &[3.0, 0.0, 2.0]), 5.0);
        assert_eq!(levels.propagated(&[], &[]), 0.0);
        assert!(levels.propagated(&slots, &[3.0, 1.0, 2.0]).is_nan());
    }

    #[test]
    fn derivatives_begin_at_none_each_time_by_hand() {
        let text = r#"[{"relation": "a = 2 * b"}]"#;
        let relations = crate::relations::parse("test.json", text.as_bytes()).strict().unwrap_or_default();
        let RelationBinding::Active(bound) = relations[0].bind(&events(&["a", "b"])) else { unreachable!() };
        let BoundForm::Equation(equation) = &bound.form else { unreachable!() };
        let mut gradient = vec![99.0; 5];
        for _ in 0..2 {
            let found = residual_with_gradient(equation, &[7.0, f64::NAN, 3.0, f64::NAN], &mut gradient);
            assert_eq!((found, &gradient[..]), (Some(1.0), &[1.0, -2.0][..]));
        }
        assert_eq!(residual_with_gradient(equation, &[f64::NAN; 4], &mut gradient), None);
    }

    proptest! {
        #[test]
        fn an_error_is_that_of_no_sign_and_of_any_unit(
            deviations in prop::array::uniform3(0.0..9.0f64),
            gradient in prop::array::uniform3(-9.0..9.0f64),
            unit in 0.1..9.0f64,
        ) {
            let (levels, slots) = (levels(&deviations), [0, 1, 2].map(VariableSlot));
            let found = levels.propagated(&slots, &gradient);
            let other = levels.propagated(&slots, &gradient.map(|derivative| -unit * derivative));
            prop_assert!((unit * found - other).abs() < 1e-9 * (1.0 + other));
            let parts = deviations.iter().zip(gradient).map(|(own, derivative)| own * derivative.abs());
            prop_assert!(found <= parts.sum::<f64>() + 1e-9);
        }
    }
}
