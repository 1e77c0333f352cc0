//! Holds how events vary together, a covariance between every pair for each process.

use super::time::{PROCESSES, PerProcess};
use perfprop_linear_algebra::Square;

/// For each process, the covariances of all pairs of events, of rates relative to their means.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Covariances {
    events: usize,
    values: Vec<PerProcess>,
    /// The variance of each event's relative rate between the threads that are counted one by one.
    threads: Vec<f64>,
}

impl Covariances {
    /// Covariances that are all zero.
    pub(crate) fn zeros(events: usize) -> Self {
        Self { events, values: vec![[0.0; PROCESSES]; events * events], threads: vec![0.0; events] }
    }

    pub(crate) fn events(&self) -> usize {
        self.events
    }

    #[inline(always)]
    pub(crate) fn at(&self, a: usize, b: usize) -> &PerProcess {
        &self.values[a * self.events + b]
    }

    pub(crate) fn at_mut(&mut self, a: usize, b: usize) -> &mut PerProcess {
        &mut self.values[a * self.events + b]
    }

    /// The variance of an event's relative rate between threads.
    #[inline(always)]
    pub(crate) fn between_threads(&self, event: usize) -> f64 {
        self.threads[event]
    }

    pub(crate) fn between_threads_mut(&mut self, event: usize) -> &mut f64 {
        &mut self.threads[event]
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

    /// Makes an event independent of all others.
    pub(crate) fn part(&mut self, event: usize) {
        for other in (0..self.events).filter(|&other| other != event) {
            *self.at_mut(event, other) = PerProcess::default();
            *self.at_mut(other, event) = PerProcess::default();
        }
    }

    /// Goes a part of the way to others.
    pub(crate) fn approach(&mut self, others: &Self, part: f64) {
        for (mine, other) in self.values.iter_mut().flatten().zip(others.values.iter().flatten()) {
            *mine += part * (other - *mine);
        }
        for (mine, other) in self.threads.iter_mut().zip(&others.threads) {
            *mine += part * (other - *mine);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_parted_keeps_its_own_variance() {
        let mut covariances = Covariances::zeros(3);
        (0..9).for_each(|place| *covariances.at_mut(place / 3, place % 3) = [1.0 + place as f64; PROCESSES]);
        covariances.part(1);
        let firsts: Vec<f64> = (0..9).map(|place| covariances.at(place / 3, place % 3)[0]).collect();
        assert_eq!(firsts, [1.0, 0.0, 3.0, 0.0, 5.0, 0.0, 7.0, 0.0, 9.0]);
    }

    #[test]
    fn a_part_of_the_way_by_hand() {
        let mut covariances = Covariances::zeros(1);
        let mut others = Covariances::zeros(1);
        *others.at_mut(0, 0) = [4.0, 0.0, 1.0, 2.0];
        covariances.approach(&others, 0.5);
        assert_eq!(covariances.at(0, 0), &[2.0, 0.0, 0.5, 1.0]);
        let before = covariances.clone();
        covariances.approach(&others, 0.0);
        assert_eq!(covariances, before);
        covariances.approach(&others, 1.0);
        assert_eq!(covariances, others);
    }

    #[test]
    fn rescaling_multiplies_by_the_factors_of_both_events_by_hand() {
        let mut covariances = Covariances::zeros(2);
        for (a, b, value) in [(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.5), (1, 1, 2.0)] {
            *covariances.at_mut(a, b) = [value; PROCESSES];
        }
        *covariances.between_threads_mut(0) = 7.0;
        let before = covariances.clone();
        covariances.rescale(|_| 1.0);
        assert_eq!(covariances, before);
        covariances.rescale(|event| [2.0, 3.0][event]);
        let found = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(a, b)| covariances.at(a, b)[1]);
        assert_eq!((found, covariances.between_threads(0)), ([4.0, 3.0, 3.0, 18.0], 7.0));
        covariances.rescale(|_| 0.0);
        assert_eq!(covariances.at(0, 1), &[0.0; PROCESSES]);
    }

    proptest::proptest! {
        #[test]
        fn rescaling_back_leaves_all_as_it_was(
            value in -5.0..5.0f64, factors in proptest::array::uniform2(0.1..10.0f64),
        ) {
            let mut covariances = Covariances::zeros(2);
            *covariances.at_mut(0, 1) = [value; PROCESSES];
            covariances.rescale(|event| factors[event]);
            covariances.rescale(|event| factors[event].recip());
            proptest::prop_assert!((covariances.at(0, 1)[0] - value).abs() < 1e-9);
        }
    }
}
