//! Searches for the levels that fit a series best, with more boundaries than noise alone explains.

use super::clean::CleanedValues;
use super::sums;

/// What is known of the levels in a range: that the sum of squares up to now is at least a parabola of the last level, with the last
/// boundary at one place.
#[derive(Clone, Copy)]
struct LevelPiece {
    /// The range ends here, and begins where the one before ends.
    to: f64,
    /// The parabola a x² - 2 b x + c.
    a: f64,
    b: f64,
    c: f64,
    boundary: usize,
}

impl LevelPiece {
    fn at(&self, x: f64) -> f64 {
        (self.a * x - 2.0 * self.b) * x + self.c
    }

    /// The least value in a range.
    fn least(&self, from: f64) -> f64 {
        let lowest = if self.a > 0.0 { (self.b / self.a).clamp(from, self.to) } else { from };
        self.at(lowest)
    }
}

/// The ends of the levels with the least sum of squares plus a penalty for each boundary, for a penalty under which noise
/// leaves some boundaries.
pub(super) fn candidates(cleaned: &CleanedValues, weights: &[f64]) -> Vec<usize> {
    let count = cleaned.values.len();
    let most = cleaned.values.iter().fold(f64::NEG_INFINITY, |most, &x| most.max(x));
    let least = cleaned.values.iter().fold(f64::INFINITY, |least, &x| least.min(x));
    let uncertain = (count as f64).sqrt().recip();
    // What it is at least: steps in a short series look like correlation. Boundaries that noise made are dropped later.
    let correlation = (cleaned.correlation.min(1.0) - 3.0 * uncertain).clamp(0.0, 0.8);
    // The variance of means of many values, from that of differences.
    let variance = cleaned.noise.powi(2) * (1.0 + correlation) / (1.0 - correlation).powi(2);
    let floor = (most - least).powi(2) * sums::rounding(count);
    let penalty = 2.0 * (count as f64).ln().max(1.0) * variance.max(floor);
    optimal(&cleaned.values, weights, penalty, (least, most))
}

/// The same for a penalty, by functional pruning (Maidstone and others, "On optimal multiple changepoint algorithms for large
/// data", 2017): the least sum as a function of the last level is kept in pieces, few of which live.
fn optimal(values: &[f64], weights: &[f64], penalty: f64, (low, high): (f64, f64)) -> Vec<usize> {
    let middle = f64::midpoint(low, high);
    let (low, high) = (low - middle, high - middle);
    let mut pieces = vec![LevelPiece { to: high, a: 0.0, b: 0.0, c: 0.0, boundary: 0 }];
    let (mut boundaries, mut next) = (Vec::with_capacity(values.len()), Vec::new());
    for (at, (&value, &weight)) in values.iter().zip(weights).enumerate() {
        let value = value - middle;
        let (mut from, mut best) = (low, (f64::INFINITY, 0));
        for piece in &mut pieces {
            piece.a += weight;
            piece.b += weight * value;
            piece.c += weight * value * value;
            let least = piece.least(from);
            if least < best.0 {
                best = (least, piece.boundary);
            }
            from = piece.to;
        }
        boundaries.push(best.1);
        cut(&pieces, low, best.0 + penalty, at + 1, &mut next);
        std::mem::swap(&mut pieces, &mut next);
    }
    let mut rights = Vec::new();
    let mut right = values.len();
    while right > 0 {
        rights.push(right);
        right = boundaries[right - 1];
    }
    rights.reverse();
    rights
}

/// Replaces what lies above a height by a new piece.
fn cut(pieces: &[LevelPiece], low: f64, height: f64, boundary: usize, into: &mut Vec<LevelPiece>) {
    into.clear();
    let new = |to: f64| LevelPiece { to, a: 0.0, b: 0.0, c: height, boundary };
    let mut from = low;
    let mut push = |piece: LevelPiece| match into.last_mut() {
        Some(last) if last.boundary == piece.boundary => last.to = piece.to,
        _ => into.push(piece),
    };
    for piece in pieces {
        // The piece lies below the height between the roots of a x² - 2 b x + c = height.
        let inside = piece.b * piece.b - piece.a * (piece.c - height);
        if inside <= 0.0 {
            push(new(piece.to));
        } else {
            let root = inside.sqrt();
            let (first, second) = ((piece.b - root) / piece.a, (piece.b + root) / piece.a);
            if first >= piece.to || second <= from {
                push(new(piece.to));
            } else {
                if first > from {
                    push(new(first));
                }
                push(LevelPiece { to: second.min(piece.to), ..*piece });
                if second < piece.to {
                    push(new(piece.to));
                }
            }
        }
        from = piece.to;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The least sum of squares plus penalties, by trying all boundaries.
    fn least(values: &[f64], penalty: f64) -> f64 {
        let squares = |range: &[f64]| {
            let mean = range.iter().sum::<f64>() / range.len() as f64;
            range.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
        };
        let mut sums = vec![-penalty];
        for right in 1..=values.len() {
            let last = (0..right).map(|left| sums[left] + penalty + squares(&values[left..right]));
            sums.push(last.fold(f64::INFINITY, f64::min));
        }
        sums[values.len()]
    }

    #[test]
    fn levels_by_hand() {
        let values = [0.0, 0.0, 4.0, 4.0];
        // One level leaves 16.
        assert_eq!(optimal(&values, &[1.0; 4], 15.9, (0.0, 4.0)), [2, 4]);
        assert_eq!(optimal(&values, &[1.0; 4], 16.1, (0.0, 4.0)), [4]);
        assert_eq!(optimal(&[1.0; 3], &[1.0; 3], 1.0, (1.0, 1.0)), [3]);
    }

    proptest! {
        #[test]
        fn pruning_loses_nothing(values in prop::collection::vec(-5f64..5.0, 1..25), penalty in 0.5f64..30.0) {
            let ends = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), &x| (x.min(l), x.max(m)));
            let rights = optimal(&values, &vec![1.0; values.len()], penalty, ends);
            let mut left = 0;
            let sum = rights.iter().fold(-penalty, |sum, &right| {
                let range = &values[left..right];
                left = right;
                let mean = range.iter().sum::<f64>() / range.len() as f64;
                sum + penalty + range.iter().map(|x| (x - mean).powi(2)).sum::<f64>()
            });
            prop_assert!((sum - least(&values, penalty)).abs() < 1e-6, "{rights:?}");
        }
    }
}
