//! A linear relation between counts and what is known of them in, what is known with it out.

use super::window::Posterior;

/// Counts whose weighted sum is zero, but for an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// Events by index, and what their counts are multiplied by.
    pub terms: Vec<(usize, f64)>,
    /// The standard error of the sum, as a part of the sum of the products' sizes.
    pub tolerance: f64,
}

impl Constraint {
    /// Conditions counts on the sum being zero: with H the factors, V the covariance and r the
    /// variance of the error, both move by V H' (H V H' + r)^-1.
    pub(crate) fn apply(&self, known: &mut Posterior) {
        let size: f64 = self.terms.iter().map(|&(event, factor)| (factor * known.mean[event]).abs()).sum();
        let events = known.mean.len();
        let shared: Vec<f64> = (0..events)
            .map(|event| self.terms.iter().map(|&(term, factor)| factor * known.covariance.at(event, term)).sum())
            .collect();
        let spread: f64 = self.terms.iter().map(|&(event, factor)| factor * shared[event]).sum();
        let variance = spread + (self.tolerance * size).powi(2);
        let sum: f64 = self.terms.iter().map(|&(event, factor)| factor * known.mean[event]).sum();
        if !(variance > 0.0 && variance.is_finite() && sum.is_finite()) {
            return;
        }
        for event in 0..events {
            let gain = shared[event] / variance;
            known.mean[event] -= gain * sum;
            for (to, shared) in known.covariance.row_mut(event).iter_mut().zip(&shared) {
                *to -= gain * shared;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::linear_algebra::Square;
    use super::*;

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
        Constraint { terms: vec![(0, 1.0), (1, -1.0)], tolerance: 0.0 }.apply(&mut known);
        assert!((known.mean[0] - 11.0).abs() < 1e-12 && (known.mean[1] - 11.0).abs() < 1e-12);
        assert!((known.covariance.at(0, 0) - 0.75).abs() < 1e-12);
    }

    #[test]
    fn an_exact_count_is_not_moved_and_nothing_to_move_is_left() {
        let mut known = known([0.0, 3.0]);
        let constraint = Constraint { terms: vec![(0, 1.0), (1, -1.0)], tolerance: 0.0 };
        constraint.apply(&mut known);
        assert_eq!(known.mean, [10.0, 10.0]);
        constraint.apply(&mut known);
        assert_eq!(known.mean, [10.0, 10.0]);
    }
}
