//! Chooses the penalty of jumps by an information criterion whose noise may depend on the value before it.

use super::{Approximation, Partition};
use crate::golden_section::{SearchEnds, SearchTolerance, minimize};
use crate::weighted::{WeightedValue, centre};

/// A penalty that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PenaltyTrial {
    /// The logarithm of the penalty over the distance of all points from their median.
    pub x: f64,
    /// The penalty.
    pub penalty: f64,
    /// The number of intervals that it leads to.
    pub intervals: usize,
    /// How much of the deviation of one point the next one has.
    pub correlation: f64,
    /// The criterion, which is to be small.
    pub objective: f64,
}

/// The partition with the best penalty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AutomaticFit {
    /// The partition.
    pub partition: Partition,
    /// The penalty that led to it.
    pub penalty: f64,
    /// What an interval costs in the criterion: 4 ln n / n for n points.
    pub cost: f64,
    /// All penalties that were tried, in this order.
    pub trials: Vec<PenaltyTrial>,
}

/// How near the correlation is searched. Its range is ±1, which may be left (asv's choice).
const CORRELATION: SearchTolerance = SearchTolerance { x: 0.05, value: 1e-8 };

/// The partition with the least criterion of all penalties that are tried: those of a golden section search between 0.1/n
/// and 1 times the distance of all points from their median, in logarithms.
pub fn automatic(points: &[WeightedValue]) -> AutomaticFit {
    if points.is_empty() {
        return AutomaticFit::default();
    }
    let count = points.len() as f64;
    let cost = 4.0 * count.ln() / count;
    let distance = centre(points).distance;
    let unit = if distance == 0.0 { 1.0 } else { distance };
    let mut approximation = Approximation::new(points, 1);
    let (mut trials, mut best): (Vec<PenaltyTrial>, Option<(PenaltyTrial, Partition)>) = (Vec::new(), None);
    let try_penalty = |x: f64| {
        let penalty = unit * x.exp();
        let partition = approximation.partition(penalty);
        let (correlation, noise) = criterion_noise(points, &partition);
        let intervals = partition.rights.len();
        let objective = cost * intervals as f64 + noise.ln();
        let trial = PenaltyTrial { x, penalty, intervals, correlation, objective };
        trials.push(trial);
        if best.as_ref().is_none_or(|(best, _)| objective < best.objective) {
            best = Some((trial, partition));
        }
        objective
    };
    let low = (0.1 / count).ln();
    let tolerance = SearchTolerance { x: low.abs() * 0.1, value: 0.0 };
    minimize(try_penalty, (low, 0.0), tolerance, SearchEnds::FirstTried);
    let (penalty, partition) = best.map(|(trial, partition)| (trial.penalty, partition)).unwrap_or_default();
    AutomaticFit { partition, penalty, cost, trials }
}

/// The correlation that leaves the least noise, and that noise plus the least noise that any series has.
fn criterion_noise(points: &[WeightedValue], partition: &Partition) -> (f64, f64) {
    let levels: Vec<f64> = partition.centres(points).iter().map(|centre| centre.median).collect();
    let deviations: Vec<f64> = partition
        .intervals()
        .zip(&levels)
        .flat_map(|(interval, level)| points[interval].iter().map(move |point| point.value - level))
        .collect();
    let noise = |correlation: f64| uncorrelated_noise(points, &deviations, correlation);
    let correlation = minimize(noise, (-1.0, 1.0), CORRELATION, SearchEnds::FirstTried);
    (correlation, least_noise(&levels) + noise(correlation))
}

/// The weighted sum of what of each deviation doesn't follow from the one before it.
fn uncorrelated_noise(points: &[WeightedValue], deviations: &[f64], correlation: f64) -> f64 {
    let first = deviations[0].abs() * points[0].weight;
    let pairs = deviations.windows(2).zip(&points[1..]);
    pairs.fold(first, |sum, (pair, point)| sum + (pair[1] - correlation * pair[0]).abs() * point.weight)
}

/// A tenth of the smallest jump, or for at most one jump a thousandth of the smallest level; above 0, as its logarithm is
/// taken.
fn least_noise(levels: &[f64]) -> f64 {
    let least = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::INFINITY, |least, x| least.min(x.abs()));
    let noise = if levels.len() > 2 {
        0.1 * least(&mut levels.windows(2).map(|pair| pair[1] - pair[0]))
    } else {
        0.001 * least(&mut levels.iter().copied())
    };
    noise.max(1e-300)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn points(values: &[f64]) -> Vec<WeightedValue> {
        values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect()
    }

    #[test]
    fn noise_by_hand() {
        assert_eq!(uncorrelated_noise(&points(&[2.0, 1.0, 3.0]), &[2.0, 1.0, 3.0], 0.5), 2.0 + 0.0 + 2.5);
        assert_eq!(least_noise(&[1.0, 3.0, 3.5]), 0.05);
        assert_eq!(least_noise(&[5.0, 3.0]), 0.003);
        assert_eq!(least_noise(&[0.0]), 1e-300);
    }

    #[test]
    fn one_level_is_one_interval() {
        assert_eq!(automatic(&points(&[2.5; 40])).partition.rights, [40]);
        assert_eq!(automatic(&points(&[2.5])).partition.rights, [1]);
        assert_eq!(automatic(&points(&[0.0; 9])).partition.rights, [9]);
    }

    proptest! {
        #[test]
        fn steps_without_noise_are_found_in_every_unit(levels in prop::collection::vec(1i32..50, 1..6), unit in -9i32..9) {
            let scale = 10f64.powi(unit);
            let values: Vec<f64> = levels.iter().flat_map(|&level| [f64::from(level) * scale; 15]).collect();
            let changes = levels.windows(2).enumerate().filter(|(_, pair)| pair[0] != pair[1]);
            let rights: Vec<_> = changes.map(|(at, _)| 15 * (at + 1)).chain([values.len()]).collect();
            prop_assert_eq!(automatic(&points(&values)).partition.rights, rights);
        }
    }
}
