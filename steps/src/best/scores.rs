//! Measures a change in ranks, so that noise with heavy tails doesn't look like steps.

use std::ops::Range;

use super::fit::TwoSteps;
use super::sums::RunningSums;

/// The deviations of a series from its levels, from which a deviation gets the score that a normal variable of the same rank
/// has (van der Waerden, "Order tests for the two-sample problem and their power", 1952).
pub(super) struct NormalScores {
    /// How far values are from the levels of their steps, in order.
    sorted: Vec<f64>,
    scores: Vec<f64>,
}

/// Deviations further than so many times the furthest have its score.
const BEYOND: f64 = 3.0;

/// Of the longer step so many times the values of the shorter one count: more hardly make the change any surer.
const ENOUGH: usize = 20;

impl NormalScores {
    pub(super) fn new(sums: &RunningSums, steps: impl Iterator<Item = Range<usize>>) -> Self {
        let mut sorted: Vec<f64> = Vec::with_capacity(sums.len());
        for step in steps {
            let level = sums.over(step.clone()).mean();
            sorted.extend(step.map(|at| sums.deviation(at, level).abs()));
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let scores =
            (0..=sorted.len()).map(|rank| upper_normal(0.5 - 0.5 * (rank as f64 + 0.5) / (count + 1.0))).collect();
        Self { sorted, scores }
    }

    fn score(&self, deviation: f64) -> f64 {
        let (far, rank) = (deviation.abs(), self.sorted.partition_point(|&other| other < deviation.abs()));
        // Beyond all deviations, scores go on in a straight line.
        let beyond = self.sorted.last().filter(|&&most| most > 0.0).map_or(1.0, |most| (far / most).clamp(1.0, BEYOND));
        self.scores[rank] * beyond * deviation.signum()
    }

    /// The square of the change at a boundary, over its variance, in scores of deviations from the level of both sides.
    pub(super) fn square(&self, sums: &RunningSums, (left, middle, right): TwoSteps) -> f64 {
        let reach = ENOUGH * (middle - left).min(right - middle);
        let (left, right) = (left.max(middle.saturating_sub(reach)), right.min(middle + reach));
        let level = sums.over(left..right).mean();
        let mean = |side: Range<usize>| {
            let count = side.len() as f64;
            side.map(|at| self.score(sums.deviation(at, level))).sum::<f64>() / count
        };
        let change = mean(middle..right) - mean(left..middle);
        change * change / (((middle - left) as f64).recip() + ((right - middle) as f64).recip())
    }
}

/// The normal variable that is exceeded with a probability up to 1/2, within 5e-4 (Hastings, "Approximations for Digital
/// Computers", 1955; Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.2.23).
fn upper_normal(probability: f64) -> f64 {
    let t = (-2.0 * probability.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - above / below).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_of_tables() {
        for (probability, z) in [(0.5, 0.0), (0.158_655, 1.0), (0.022_750, 2.0), (0.001_350, 3.0)] {
            assert!((upper_normal(probability) - z).abs() < 5e-4, "{probability}: {}", upper_normal(probability));
        }
    }

    #[test]
    fn only_ranks_count_up_to_the_largest_deviation() {
        let square = |far: f64| {
            let values: Vec<f64> = (0..40).map(|at| if at == 39 { far } else { f64::from(at % 4) }).collect();
            let sums = RunningSums::new(&values, &[1.0; 40], &[false; 40]);
            NormalScores::new(&sums, std::iter::once(0..40)).square(&sums, (0, 36, 40))
        };
        assert!((square(1e3) / square(1e6) - 1.0).abs() < 0.3, "{} {}", square(1e3), square(1e6));
        let flat = RunningSums::new(&[1.0; 8], &[1.0; 8], &[false; 8]);
        assert_eq!(NormalScores::new(&flat, std::iter::once(0..8)).square(&flat, (0, 4, 8)), 0.0);
    }
}
