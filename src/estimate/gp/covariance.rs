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
