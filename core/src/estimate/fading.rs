//! Follows means of what was seen lately: the older something is, the less it weighs.

/// A weighted mean, as a sum and the sum of weights.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct FadingMean {
    pub(super) sum: f64,
    pub(super) weight: f64,
}

impl FadingMean {
    /// Lets all that came before weigh so much of what it did.
    pub(super) fn forget(&mut self, kept: f64) {
        self.sum *= kept;
        self.weight *= kept;
    }

    /// Takes a value of weight one.
    pub(super) fn add(&mut self, value: f64) {
        self.add_sum(value, 1.0);
    }

    /// Takes a sum of values, each times its weight, and that of their weights.
    pub(super) fn add_sum(&mut self, sum: f64, weight: f64) {
        self.sum += sum;
        self.weight += weight;
    }

    /// The mean; `None` of nothing.
    pub(super) fn mean(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// The mean, as if there had been a value of so much weight before.
    pub(super) fn mean_with(self, before: f64, weight: f64) -> f64 {
        (self.sum + weight * before) / (self.weight + weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: &[f64], kept: f64) -> FadingMean {
        let mut mean = FadingMean::default();
        for &value in values {
            mean.forget(kept);
            mean.add(value);
        }
        mean
    }

    #[test]
    fn older_values_weigh_less_by_hand() {
        // (4 / 4 + 4 / 2 + 8) / (1/4 + 1/2 + 1).
        let mean = of(&[4.0, 4.0, 8.0], 0.5);
        assert_eq!((mean.sum, mean.weight), (11.0, 1.75));
        assert_eq!(mean.mean(), Some(11.0 / 1.75));
        // As if there had been a 3 of weight 0.25.
        assert_eq!(mean.mean_with(3.0, 0.25), 11.75 / 2.0);
        let mut weighted = FadingMean::default();
        weighted.add_sum(6.0, 3.0);
        assert_eq!(weighted.mean(), Some(2.0));
    }

    #[test]
    fn nothing_has_no_mean_but_what_was_before() {
        let nothing = FadingMean::default();
        assert_eq!((nothing.mean(), nothing.mean_with(7.0, 2.0)), (None, 7.0));
        // Nothing is kept: the last value alone.
        assert_eq!(of(&[1.0, 2.0, 3.0], 0.0).mean(), Some(3.0));
    }

    proptest! {
        #[test]
        fn a_mean_lies_between_its_values(
            values in prop::collection::vec(-100.0..100.0f64, 1..20), kept in 0.0..1.0f64, before in -100.0..100.0f64,
        ) {
            let mean = of(&values, kept);
            let between = |mean: f64, values: &mut dyn Iterator<Item = f64>| {
                let (least, most) = values.fold((f64::MAX, f64::MIN), |(a, b), value| (a.min(value), b.max(value)));
                least - 1e-9 <= mean && mean <= most + 1e-9
            };
            prop_assert!(mean.mean().is_some_and(|mean| between(mean, &mut values.iter().copied())));
            prop_assert!(between(mean.mean_with(before, 3.0), &mut values.iter().copied().chain([before])));
        }
    }
}
