//! How events vary together in, the same after a step of learning out.

use super::linear_algebra::Square;
use super::time::{PROCESSES, PerProcess};

/// For each process, the covariances of all pairs of events, of rates relative to their means.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Covariances {
    events: usize,
    values: Vec<PerProcess>,
}

impl Covariances {
    /// Of zeros.
    pub(crate) fn zeros(events: usize) -> Self {
        Self { events, values: vec![[0.0; PROCESSES]; events * events] }
    }

    pub(crate) fn events(&self) -> usize {
        self.events
    }

    pub(crate) fn at(&self, a: usize, b: usize) -> &PerProcess {
        &self.values[a * self.events + b]
    }

    pub(crate) fn at_mut(&mut self, a: usize, b: usize) -> &mut PerProcess {
        &mut self.values[a * self.events + b]
    }

    /// Multiplies each by the factors of both of its events.
    pub(crate) fn rescale(&mut self, factor: impl Fn(usize) -> f64) {
        let factors: Vec<f64> = (0..self.events).map(factor).collect();
        for a in 0..self.events {
            for b in 0..self.events {
                self.at_mut(a, b).iter_mut().for_each(|value| *value *= factors[a] * factors[b]);
            }
        }
    }

    pub(crate) fn process(&self, process: usize) -> Square {
        let mut matrix = Square::zeros(self.events);
        for a in 0..self.events {
            for b in 0..self.events {
                *matrix.at_mut(a, b) = self.at(a, b)[process];
            }
        }
        matrix
    }

    pub(crate) fn set_process(&mut self, process: usize, matrix: &Square) {
        for a in 0..self.events {
            for b in 0..self.events {
                self.at_mut(a, b)[process] = matrix.at(a, b);
            }
        }
    }

    /// Draws the correlations of each process by a part towards those of the processes' sum, which
    /// more was seen of. Variances stay, and so does positive definiteness.
    pub(crate) fn share_correlations(&mut self, part: f64) {
        let deviations: Vec<PerProcess> = (0..self.events).map(|e| self.at(e, e).map(f64::sqrt)).collect();
        let totals: Vec<f64> = (0..self.events).map(|e| self.at(e, e).iter().sum::<f64>().sqrt()).collect();
        for a in 0..self.events {
            for b in 0..a {
                let own = *self.at(a, b);
                let correlation = own.iter().sum::<f64>() / (totals[a] * totals[b]);
                if !correlation.is_finite() {
                    continue;
                }
                let shared = std::array::from_fn(|j| {
                    (1.0 - part) * own[j] + part * correlation * deviations[a][j] * deviations[b][j]
                });
                *self.at_mut(a, b) = shared;
                *self.at_mut(b, a) = shared;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each process of two events: both variances and the covariance.
    fn of(processes: [[f64; 3]; PROCESSES]) -> Covariances {
        let mut covariances = Covariances::zeros(2);
        for (j, [first, second, both]) in processes.into_iter().enumerate() {
            covariances.at_mut(0, 0)[j] = first;
            covariances.at_mut(1, 1)[j] = second;
            covariances.at_mut(0, 1)[j] = both;
            covariances.at_mut(1, 0)[j] = both;
        }
        covariances
    }

    #[test]
    fn correlations_are_shared_by_hand() {
        // The sum has variances 4 and 16 and covariance 4: a correlation of 1/2. Half of the way from
        // 4 and 0 to 1/2 * sqrt(2 * 8).
        let unrelated = [2.0, 8.0, 0.0];
        let mut covariances = of([[2.0, 8.0, 4.0], unrelated, [0.0; 3], [0.0; 3]]);
        covariances.share_correlations(0.5);
        let expected = [3.0, 1.0, 0.0, 0.0];
        for (shared, expected) in covariances.at(0, 1).iter().zip(expected) {
            assert!((shared - expected).abs() < 1e-12, "{covariances:?}");
        }
        assert_eq!(covariances.at(0, 1), covariances.at(1, 0));
        assert_eq!(covariances.at(1, 1), &[8.0, 8.0, 0.0, 0.0]);
    }

    #[test]
    fn events_without_variance_share_nothing() {
        let mut covariances = of([[0.0; 3]; PROCESSES]);
        covariances.share_correlations(0.5);
        assert_eq!(covariances, of([[0.0; 3]; PROCESSES]));
    }

    proptest! {
        #[test]
        fn shared_correlations_stay_those_of_a_covariance(
            processes in prop::array::uniform4((0.0..4.0f64, 0.0..4.0f64, -1.0..1.0f64)),
            part in 0.0..1.0f64,
        ) {
            let before = of(processes.map(|(first, second, r)| [first, second, r * (first * second).sqrt()]));
            let mut after = before.clone();
            after.share_correlations(part);
            for j in 0..PROCESSES {
                prop_assert_eq!(after.at(0, 0)[j], before.at(0, 0)[j]);
                prop_assert!(after.at(0, 1)[j].powi(2) <= after.at(0, 0)[j] * after.at(1, 1)[j] + 1e-9);
            }
        }
    }
}
