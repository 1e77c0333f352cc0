//! Compares two closures that run in turns, so that what disturbs the machine is in both.
//!
//! Each pair of turns gives the logarithm of the ratio of their times. Their trimmed mean and its interval (Tukey and
//! McLaughlin, 1963) are hardly moved by turns that were interrupted.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::rates::two_sided_quantile;

/// A turn lasts about so long: some turns in a time slice of the kernel, and the timer takes little of it.
const TURN: Duration = Duration::from_micros(100);
/// The part of the pairs that is trimmed at each end.
const TRIMMED: f64 = 0.2;
/// The fewest pairs that are compared.
const LEAST_PAIRS: usize = 20;

/// How long calls of one closure take beside those of another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedChange {
    /// The second one's time over the first one's.
    pub ratio: f64,
    /// The ends of the ratio's interval; `None` where all pairs but a few would have to be trimmed.
    pub interval: Option<(f64, f64)>,
    /// How many pairs of turns there were.
    pub pairs: usize,
}

impl PairedChange {
    /// Whether one takes longer than the other by more than chance.
    pub fn is_apart(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }

    /// From the logarithms of ratios, at a confidence level between 0 and 1.
    fn of(mut logarithms: Vec<f64>, confidence: f64) -> Self {
        let pairs = logarithms.len();
        logarithms.retain(|logarithm| logarithm.is_finite());
        logarithms.sort_by(f64::total_cmp);
        let cut = (TRIMMED * logarithms.len() as f64) as usize;
        let kept = logarithms.get(cut..logarithms.len() - cut).unwrap_or_default();
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        let interval = (kept.len() > 2).then(|| {
            let error = standard_error(&logarithms, cut);
            let width = two_sided_quantile(1.0 - confidence, (kept.len() - 1) as f64) * error;
            ((mean - width).exp(), (mean + width).exp())
        });
        Self { ratio: mean.exp(), interval, pairs }
    }
}

/// The standard error of the mean that is left where `cut` of the sorted numbers are trimmed at each end: the standard
/// deviation of all, with the outermost kept ones in place of the trimmed, over the part that is kept and the root of how
/// many there are.
fn standard_error(sorted: &[f64], cut: usize) -> f64 {
    let count = sorted.len();
    let (low, high) = (sorted[cut], sorted[count - 1 - cut]);
    let bounded = || sorted.iter().map(|number| number.clamp(low, high));
    let mean = bounded().sum::<f64>() / count as f64;
    let variance = bounded().map(|number| (number - mean).powi(2)).sum::<f64>() / (count - 1) as f64;
    let kept = (count - 2 * cut) as f64 / count as f64;
    variance.sqrt() / (kept * (count as f64).sqrt())
}

/// Runs two closures in turns for a while, and says how long the second one's calls take beside the first one's.
/// Both are called as often in a turn. Which comes first changes from pair to pair.
pub fn paired<A, B>(
    mut first: impl FnMut() -> A,
    mut second: impl FnMut() -> B,
    time: Duration,
    confidence: f64,
) -> PairedChange {
    let start = Instant::now();
    let mut calls = 1_u32;
    while turn(&mut first, calls) < TURN && turn(&mut second, calls) < TURN && calls < 1 << 30 {
        calls *= 2;
    }
    let mut logarithms = Vec::new();
    while start.elapsed() < time || logarithms.len() < LEAST_PAIRS {
        let is_swapped = logarithms.len() % 2 == 1;
        let before = is_swapped.then(|| turn(&mut second, calls));
        let of_first = turn(&mut first, calls);
        let of_second = before.unwrap_or_else(|| turn(&mut second, calls));
        logarithms.push((of_second.as_nanos() as f64 / of_first.as_nanos() as f64).ln());
    }
    PairedChange::of(logarithms, confidence)
}

/// How long so many calls take.
fn turn<R>(run: &mut impl FnMut() -> R, calls: u32) -> Duration {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(run());
    }
    start.elapsed()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use proptest::prelude::*;

    use super::*;
    use crate::random::SplitMix64;

    #[test]
    fn ten_pairs_by_hand() {
        // Two are trimmed at each end: 3 to 8, whose mean is 5.5. With 3 three times and 8 three times the squares
        // around 5.5 are 6 * 6.25 + 2 * (2.25 + 0.25) = 42.5; 42.5 / 9 is the variance, and 0.6 are kept.
        let numbers: Vec<f64> = (1..=10).map(f64::from).collect();
        let error = standard_error(&numbers, 2);
        assert!((error - (42.5_f64 / 9.0).sqrt() / (0.6 * 10.0_f64.sqrt())).abs() < 1e-12, "{error}");
        let change = PairedChange::of(numbers, 0.95);
        assert!((change.ratio.ln() - 5.5).abs() < 1e-12);
        // Student's t of 5 degrees of freedom.
        let (low, high) = change.interval.unwrap();
        assert!((high.ln() - 5.5 - 2.570_581_8 * error).abs() < 1e-6 && (low.ln() + high.ln() - 11.0).abs() < 1e-9);
    }

    #[test]
    fn of_nothing_and_of_what_is_alike_nothing_is_apart() {
        assert!(!PairedChange::of(Vec::new(), 0.95).is_apart());
        assert!(!PairedChange::of(vec![f64::NAN; 30], 0.95).is_apart());
        let alike = PairedChange::of(vec![0.0; 30], 0.95);
        assert_eq!((alike.ratio, alike.interval, alike.is_apart()), (1.0, Some((1.0, 1.0)), false));
    }

    /// Numbers between -1 and 1.
    fn drawn(random: &mut SplitMix64) -> f64 {
        2.0 * random.uniform() - 1.0
    }

    #[test]
    fn one_part_in_a_hundred_is_found_and_nothing_is_found_where_nothing_is() {
        let mut random = SplitMix64::new(1);
        // 1,000 pairs that are off by 10 %, and one in twenty that was interrupted.
        let mut pairs = |change: f64| -> Vec<f64> {
            (0..1000)
                .map(|_| {
                    let interrupted = if drawn(&mut random) > 0.9 { 3.0 * drawn(&mut random) } else { 0.0 };
                    change + 0.1 * drawn(&mut random) + interrupted
                })
                .collect()
        };
        let found = (0..200).filter(|_| PairedChange::of(pairs(0.01), 0.95).is_apart()).count();
        let wrong = (0..1000).filter(|_| PairedChange::of(pairs(0.0), 0.95).is_apart()).count();
        assert!(found >= 180, "{found} of 200");
        assert!(wrong <= 70, "{wrong} of 1000");
    }

    #[test]
    fn two_closures_take_turns() {
        let calls = std::cell::Cell::new((0_u64, 0_u64));
        let work = |steps: u64| (0..steps).fold(0_u64, |sum, step| black_box(sum ^ step));
        let change = paired(
            || {
                calls.set((calls.get().0 + 1, calls.get().1));
                work(100)
            },
            || {
                calls.set((calls.get().0, calls.get().1 + 1));
                work(100)
            },
            Duration::ZERO,
            0.95,
        );
        let (first, second) = calls.get();
        assert!(change.pairs >= LEAST_PAIRS && first > 0 && second > 0);
        assert!(change.interval.is_some_and(|(low, high)| low <= change.ratio && change.ratio <= high));
    }

    proptest! {
        /// Swapping both turns the ratio round, and its interval.
        #[test]
        fn swapped_it_is_the_other_way_round(logarithms in prop::collection::vec(-1.0..1.0_f64, 10..60)) {
            let one = PairedChange::of(logarithms.clone(), 0.95);
            let other = PairedChange::of(logarithms.iter().map(|logarithm| -logarithm).collect(), 0.95);
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
            let ((low, high), (other_low, other_high)) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!((low * other_high - 1.0).abs() < 1e-9 && (high * other_low - 1.0).abs() < 1e-9);
        }
    }
}
