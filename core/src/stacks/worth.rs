//! Says how many samples of one weight would tell as much as samples whose weights differ.

use crate::profile::EventId;

/// The sums of an event's weights and of their squares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct WeightSums {
    samples: f64,
    weights: f64,
    squares: f64,
}

/// What the samples of each event tell. Where the kernel chooses periods (`-F` of an event that comes in bursts), a few
/// samples may stand for most of what happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleWorth(Vec<WeightSums>);

impl SampleWorth {
    /// Takes a sample of an event.
    pub(super) fn add(&mut self, event: EventId, weight: u64) {
        if self.0.len() <= event.index() {
            self.0.resize(event.index() + 1, WeightSums::default());
        }
        let sums = &mut self.0[event.index()];
        let weight = weight as f64;
        sums.samples += 1.0;
        sums.weights += weight;
        sums.squares += weight * weight;
    }

    /// What one sample of an event is worth, at most 1: `(sum of weights)² / (n * sum of squares)` (L. Kish, "Survey
    /// Sampling", 1965, chapter 11.7). 1 where nothing is known.
    pub fn of(&self, event: usize) -> f64 {
        let worth = |sums: &WeightSums| sums.weights * sums.weights / (sums.samples * sums.squares);
        self.0.get(event).map(worth).filter(|worth| worth.is_finite()).map_or(1.0, |worth| worth.min(1.0))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::profile::{ProfileEvent, SampleMeasure, Tree, TreeOptions};

    fn worth(weights: &[u64]) -> f64 {
        let mut tree = Tree::new(TreeOptions::default());
        let event = tree.event(&ProfileEvent::new("e", SampleMeasure::Samples));
        let mut worth = SampleWorth::default();
        weights.iter().for_each(|weight| worth.add(event, *weight));
        worth.of(event.index())
    }

    #[test]
    fn weights_by_hand() {
        // (1 + 1 + 2)² / (3 * 6) = 16 / 18; one of four has all of the weight.
        assert!((worth(&[1, 1, 2]) - 8.0 / 9.0).abs() < 1e-12);
        assert!((worth(&[0, 0, 7, 0]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn of_nothing_nothing_is_known() {
        assert_eq!((worth(&[]), worth(&[0, 0]), SampleWorth::default().of(3)), (1.0, 1.0, 1.0));
    }

    proptest! {
        #[test]
        fn alike_weights_are_worth_all_and_others_less(weights in prop::collection::vec(1u64..1_000_000, 1..50), one in 1u64..1_000_000) {
            let found = worth(&weights);
            prop_assert!(found > 0.0 && found <= 1.0 && found >= 1.0 / weights.len() as f64 - 1e-12);
            prop_assert!((worth(&vec![one; weights.len()]) - 1.0).abs() < 1e-9);
        }
    }
}
