//! Counts times of calls in buckets that are a quarter of a power of two wide.
//!
//! Times below 4 ns have a bucket each. From there on the two bits behind the highest one say which quarter of a power
//! of two it is, so that a bucket is at most 25 % wide.

use crate::layout::BUCKETS;

/// Bits behind the highest one that tell buckets apart.
const BITS: u32 = 2;
const QUARTERS: u64 = 1 << BITS;

/// The bucket of a time in nanoseconds.
pub(crate) fn bucket(ns: u64) -> usize {
    if ns < QUARTERS {
        return ns as usize;
    }
    let power = 63 - ns.leading_zeros();
    let quarter = (ns >> (power - BITS)) & (QUARTERS - 1);
    (u64::from(power - BITS + 1) * QUARTERS + quarter) as usize
}

/// The first nanosecond of a bucket, and its width.
fn bounds(bucket: usize) -> (u64, u64) {
    let (bucket, quarters) = (bucket as u64, QUARTERS);
    if bucket < quarters {
        return (bucket, 1);
    }
    let width = 1_u64 << (bucket / quarters - 1);
    ((quarters + bucket % quarters).saturating_mul(width), width)
}

/// A time that this part of the calls stays below, in nanoseconds: the end of the bucket in which they are so many. `None`
/// without a call.
pub(crate) fn quantile(histogram: &[u32; BUCKETS], part: f64) -> Option<f64> {
    let calls: u64 = histogram.iter().map(|&calls| u64::from(calls)).sum();
    let rank = (part * calls as f64).ceil().max(1.0) as u64;
    let mut below = 0;
    for (number, &calls) in histogram.iter().enumerate() {
        below += u64::from(calls);
        if below >= rank {
            let (first, width) = bounds(number);
            return Some(first as f64 + width as f64);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_by_hand() {
        assert_eq!([0, 1, 3, 4, 5, 7, 8, 9, 10, 15, 16].map(bucket), [0, 1, 3, 4, 5, 7, 8, 8, 9, 11, 12]);
        assert_eq!([3, 4, 8, 9, 12].map(bounds), [(3, 1), (4, 1), (8, 2), (10, 2), (16, 4)]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn each_time_lies_in_its_bucket_and_no_bucket_is_wider_than_a_quarter() {
        for power in 0..63 {
            for ns in [1_u64 << power, (1 << power) + 1, (1 << power) + (1 << power) / 3, (2 << power) - 1] {
                let (first, width) = bounds(bucket(ns));
                assert!((first..first + width).contains(&ns) && width as f64 <= (0.25 * ns as f64).max(1.0), "{ns}");
            }
        }
    }

    #[test]
    fn quantiles_by_hand() {
        let mut histogram = [0; BUCKETS];
        assert_eq!(quantile(&histogram, 0.5), None);
        [1, 2, 3, 100].into_iter().for_each(|ns| histogram[bucket(ns)] += 1);
        assert_eq!([0.5, 0.75].map(|part| quantile(&histogram, part)), [Some(3.0), Some(4.0)]);
        // 96 to 111.
        assert_eq!(quantile(&histogram, 0.99), Some(112.0));
    }
}
