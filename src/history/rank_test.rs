//! Tests whether one set of samples tends to be larger than another, by their ranks (Mann and Whitney, "On a test of whether
//! one of two random variables is stochastically larger than the other", 1947).

use crate::steps::normal_tail;

/// Sets of up to so many samples are tested exactly, larger ones as if U were normal (asv's choice).
const EXACT: usize = 20;

/// What the test found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// In how many pairs the first set has the larger sample. Equal samples count for whatever is less significant.
    pub u: u64,
    /// The probability that sets of one distribution are as unlike.
    pub chance: f64,
}

/// Tests two sets of samples. Empty sets don't differ.
pub fn rank_test(a: &[f64], b: &[f64]) -> RankTest {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a, b)));
    let (mut larger, mut ties) = (0u64, 0u64);
    pairs.for_each(|(a, b)| {
        larger += u64::from(a > b);
        ties += u64::from(a == b);
    });
    let (all, half) = ((a.len() * b.len()) as u64, (a.len() * b.len()) as u64 / 2);
    if larger <= half && larger + ties >= half {
        ties = half - larger;
    }
    let nearest = |u: u64| u.min(all - u);
    let (u, tail) = if nearest(larger) >= nearest(larger + ties) {
        (larger, nearest(larger))
    } else {
        (larger + ties, nearest(larger + ties))
    };
    let chance = match (a.len(), b.len()) {
        (0, _) | (_, 0) => 1.0,
        (m, n) if m.max(n) > EXACT => normal_chance(m, n, tail),
        (m, n) => exact_chance(m, n, tail),
    };
    RankTest { u, chance }
}

/// P(U ≤ tail), and the same on the other side, from the number of orders of the samples that lead to each U.
fn exact_chance(m: usize, n: usize, tail: u64) -> f64 {
    let orders = orders(m, n);
    let total: f64 = orders.iter().sum();
    let up_to = |u: u64| orders.iter().take(u as usize + 1).fold(0.0, |sum, count| sum + count / total);
    let all = (m * n) as u64;
    up_to(tail) + (1.0 - up_to((all / 2).max((all - tail).saturating_sub(1))))
}

/// The number of orders of m and n samples with each U: the coefficients of the Gaussian binomial, whose factors
/// (1 - q^(n+k)) / (1 - q^k) for k from 1 to m are multiplied and divided in turn.
fn orders(m: usize, n: usize) -> Vec<f64> {
    let mut counts = vec![0.0; m * n + 1];
    counts[0] = 1.0;
    for k in 1..=m {
        for u in (n + k..counts.len()).rev() {
            counts[u] -= counts[u - n - k];
        }
        for u in k..counts.len() {
            counts[u] += counts[u - k];
        }
    }
    counts
}

/// 2 P(U ≤ tail) for a normal U of the same mean and variance.
fn normal_chance(m: usize, n: usize, tail: u64) -> f64 {
    let pairs = (m * n) as f64;
    let variance = pairs * (m + n + 1) as f64 / 12.0;
    let z = (tail as f64 - pairs / 2.0) / variance.sqrt();
    2.0 * normal_tail(-z)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn orders_by_hand() {
        // Two and two samples: aabb abab abba, baab baba, bbaa.
        assert_eq!(orders(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(orders(1, 3), [1.0; 4]);
    }

    #[test]
    fn sets_by_hand() {
        // All of three lie below all of three in 1 of 20 orders, and above in another.
        let apart = rank_test(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]);
        assert!(apart.u == 0 && (apart.chance - 0.1).abs() < 1e-12, "{apart:?}");
        assert!(rank_test(&[1.0; 5], &[1.0; 5]).chance > 0.99, "ties are no difference");
        assert_eq!(rank_test(&[], &[1.0]).chance, 1.0);
    }

    proptest! {
        #[test]
        fn sets_differ_as_much_the_other_way_round(
            a in prop::collection::vec(-5f64..5.0, 1..30),
            b in prop::collection::vec(-5f64..5.0, 1..30),
        ) {
            let (one, other) = (rank_test(&a, &b), rank_test(&b, &a));
            prop_assert_eq!(one.u + other.u, (a.len() * b.len()) as u64);
            prop_assert!((one.chance - other.chance).abs() < 1e-9 && one.chance > 0.0);
        }
    }
}
