//! Conditions what is known of counts on linear relations between them.

use super::super::fading::FadingMean;
use super::window::Posterior;

/// Counts whose weighted sum, with a constant, is zero, but for an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The relation that says so, by index: how far it is off is followed for each.
    pub relation: usize,
    /// Events by index, and what their counts are multiplied by.
    pub terms: Vec<(usize, f64)>,
    /// What is added for each millisecond of CPU time.
    pub constant: f64,
    /// How much of the way to zero is gone where there is no other error: above 0 and at most 1.
    pub weight: f64,
    /// A standard error of the sum, as a part of the sum of the products' sizes.
    pub tolerance: f64,
    /// Another standard error of the sum, for each millisecond of CPU time.
    pub error: f64,
}

impl Constraint {
    /// A sum that is exact.
    pub fn exact(relation: usize, terms: Vec<(usize, f64)>) -> Self {
        Self { relation, terms, constant: 0.0, weight: 1.0, tolerance: 0.0, error: 0.0 }
    }

    /// Conditions counts of so much CPU time on the sum being zero: with H the factors, V the
    /// covariance and r the variance of the error, both move by V H' (H V H' + r)^-1. A weight w
    /// makes r larger by H V H' (1 - w) / w, so that an exact cause moves its effect by w of the way.
    ///
    /// Says how far the sum was from zero.
    pub(crate) fn apply(&self, known: &mut Posterior, cpu_ms: f64) -> Option<SumResidual> {
        let size: f64 = self.terms.iter().map(|&(event, factor)| (factor * known.mean[event]).abs()).sum();
        let events = known.mean.len();
        let shared: Vec<f64> = (0..events)
            .map(|event| self.terms.iter().map(|&(term, factor)| factor * known.covariance.at(event, term)).sum())
            .collect();
        let spread: f64 = self.terms.iter().map(|&(event, factor)| factor * shared[event]).sum();
        let variance = spread / self.weight + (self.tolerance * size).powi(2) + (self.error * cpu_ms).powi(2);
        let counts: f64 = self.terms.iter().map(|&(event, factor)| factor * known.mean[event]).sum();
        let sum = counts + self.constant * cpu_ms;
        if !(variance > 0.0 && variance.is_finite() && sum.is_finite()) {
            return None;
        }
        for event in 0..events {
            let gain = shared[event] / variance;
            known.mean[event] -= gain * sum;
            for (to, shared) in known.covariance.row_mut(event).iter_mut().zip(&shared) {
                *to -= gain * shared;
            }
        }
        Some(SumResidual { square: (sum / size).powi(2), variance: spread / (size * size) })
    }
}

/// How far a sum was from zero before it was set to that: its square, and the variance that counts left it, both over
/// the square of the sum of the products' sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumResidual {
    square: f64,
    variance: f64,
}

/// Follows how far a sum is from zero in windows, beyond what counts leave open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SumMisfit {
    squares: FadingMean,
    variances: FadingMean,
}

/// What is remembered of a window's residual at the next one: a sum that holds no more corrects little after half a
/// second.
const KEPT: f64 = 0.8;
/// Squares may be so many times as large as the variances by chance; those are estimates themselves.
const CHANCE: f64 = 2.0;

impl SumMisfit {
    pub(crate) fn add(&mut self, residual: SumResidual) {
        let SumResidual { square, variance } = residual;
        if square.is_finite() && variance.is_finite() {
            for (mean, value) in [(&mut self.squares, square), (&mut self.variances, variance)] {
                mean.forget(KEPT);
                mean.add(value);
            }
        }
    }

    /// The standard error of the sum that explains the residuals, as a part of the sum of the products' sizes.
    pub(crate) fn error(&self) -> f64 {
        ((self.squares.sum - CHANCE * self.variances.sum) / self.squares.weight.max(1.0)).max(0.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfprop_linear_algebra::Square;

    fn known(variances: [f64; 2]) -> Posterior {
        let mut covariance = Square::zeros(2);
        *covariance.at_mut(0, 0) = variances[0];
        *covariance.at_mut(1, 1) = variances[1];
        Posterior { mean: vec![10.0, 14.0], covariance }
    }

    #[test]
    fn equal_counts_meet_by_their_variances() {
        // x - y = 0 with variances 1 and 3: the gap of 4 closes by 1 and 3.
        let mut known = known([1.0, 3.0]);
        Constraint::exact(0, vec![(0, 1.0), (1, -1.0)]).apply(&mut known, 1.0);
        assert!((known.mean[0] - 11.0).abs() < 1e-12 && (known.mean[1] - 11.0).abs() < 1e-12);
        assert!((known.covariance.at(0, 0) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn what_counts_contradict_is_followed_less_by_hand() {
        let mut misfit = SumMisfit::default();
        assert_eq!(misfit.error(), 0.0);
        // Off by 4 of 24, where counts leave a variance of 4 open: 16 - 2 x 4 = 8.
        let sum = Constraint::exact(0, vec![(0, 1.0), (1, -1.0)]);
        for _ in 0..3 {
            sum.apply(&mut known([1.0, 3.0]), 1.0).into_iter().for_each(|residual| misfit.add(residual));
        }
        assert!((misfit.error() - 8.0f64.sqrt() / 24.0).abs() < 1e-12, "{misfit:?}");
        // The gap of 4 closes by 4 / (4 + 8) then, a quarter of it by the surer one.
        let mut known = known([1.0, 3.0]);
        Constraint { tolerance: misfit.error(), ..sum }.apply(&mut known, 1.0);
        assert!((known.mean[0] - (10.0 + 1.0 / 3.0)).abs() < 1e-12, "{:?}", known.mean);
    }

    #[test]
    fn a_weight_goes_a_part_of_the_way_and_a_constant_is_part_of_the_sum() {
        // 2 x + 3 per ms over 2 ms - y = 0, x exact: y goes from 14 a quarter of the way to 26.
        let mut known = known([0.0, 3.0]);
        let constraint = Constraint { weight: 0.25, constant: 3.0, ..Constraint::exact(0, vec![(0, 2.0), (1, -1.0)]) };
        constraint.apply(&mut known, 2.0);
        assert!((known.mean[1] - 17.0).abs() < 1e-12 && known.mean[0] == 10.0);
    }

    #[test]
    fn an_exact_count_is_not_moved_and_nothing_to_move_is_left() {
        let mut known = known([0.0, 3.0]);
        let constraint = Constraint::exact(0, vec![(0, 1.0), (1, -1.0)]);
        constraint.apply(&mut known, 1.0);
        assert_eq!(known.mean, [10.0, 10.0]);
        constraint.apply(&mut known, 1.0);
        assert_eq!(known.mean, [10.0, 10.0]);
    }

    #[test]
    fn what_is_exact_or_unknown_says_nothing_of_a_sum() {
        let sum = Constraint::exact(0, vec![(0, 1.0), (1, -1.0)]);
        assert!(sum.apply(&mut known([0.0, 0.0]), 1.0).is_none());
        assert!(sum.apply(&mut known([f64::NAN, 1.0]), 1.0).is_none());
        assert!(Constraint::exact(0, vec![]).apply(&mut known([1.0, 3.0]), 1.0).is_none());
        let mut misfit = SumMisfit::default();
        misfit.add(SumResidual { square: f64::NAN, variance: 1.0 });
        assert_eq!(misfit.error(), 0.0);
    }

    proptest::proptest! {
        #[test]
        fn an_exact_sum_holds_afterwards_and_nothing_is_less_sure(
            variances in proptest::array::uniform2(0.1..9.0f64), factor in 0.5..4.0f64,
        ) {
            let (mut found, sum) = (known(variances), Constraint::exact(0, vec![(0, factor), (1, -1.0)]));
            proptest::prop_assert!(sum.apply(&mut found, 1.0).is_some());
            proptest::prop_assert!((factor * found.mean[0] - found.mean[1]).abs() < 1e-9);
            for (event, before) in variances.into_iter().enumerate() {
                proptest::prop_assert!((-1e-9..=before).contains(&found.covariance.at(event, event)));
            }
        }
    }
}
