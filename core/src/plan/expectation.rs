//! Predicts the relative error of scaled counts from how groups are multiplexed.
//!
//! An expectation, made before anything is measured: what a program with a rate of typical
//! variability would give. What a real one gives is in the error of its numbers.
//!
//! ```text
//! cycle C   ████──────────────    the event runs for s = ratio × C of it, scaling guesses the rest
//! ```
//!
//! The rate is taken for stationary, with a covariance σ_j² e^(−|Δt|/τ_j) on several scales τ_j. Scaling
//! answers with the mean over `s` for the mean over `C`, so that of one scale it misses
//!
//! ```text
//! D(τ) = V(s) + V(C) − 2 K(s, C)        V(L) = 2 τ/L (1 − τ/L (1 − e^(−L/τ)))     variance of a mean over L
//! K(s, C) = 2 τ/(s C) (s − τ (1 − e^(−s/τ)) A)     A = τ/(C−s) (1 − e^(−(C−s)/τ))
//! ```
//!
//! where `K` is the covariance of both means, averaged over where in the cycle the slice lies. An
//! interval of length T has T/C cycles: the variance of its relative error is Σ σ_j² D(τ_j) · C/T.
//! The integrals are those of systematic sampling of a process with exponential covariance (Cochran,
//! Sampling Techniques, ch. 8).

use std::time::Duration;

/// Relative variances of a typical program on scales in seconds, chosen so that the test below meets errors that were
/// measured on traces. A program that varies more has larger errors.
const TYPICAL: [(f64, f64); 3] = [(0.1225, 0.150), (0.06125, 0.025), (0.06125, 0.002)];

/// The standard error of a count that was scaled, relative to it, in intervals of a length: an event
/// runs for a `ratio` of each `cycle`, from 0 to 1. `None` for one that never runs.
///
/// An interval shorter than a cycle is expected to do as well as one cycle.
pub fn relative_error(ratio: f64, cycle: Duration, interval: Duration) -> Option<f64> {
    if ratio.is_nan() || ratio <= 0.0 {
        return None;
    }
    let cycle = cycle.as_secs_f64();
    if ratio >= 1.0 || cycle <= 0.0 {
        return Some(0.0);
    }
    let one_cycle: f64 = TYPICAL.iter().map(|&(variance, scale)| variance * missed(ratio * cycle, cycle, scale)).sum();
    let cycles = (interval.as_secs_f64() / cycle).max(1.0);
    Some((one_cycle.max(0.0) / cycles).sqrt())
}

/// The part of the variance on one scale that a slice of length `s` misses of a cycle `c`.
fn missed(s: f64, c: f64, scale: f64) -> f64 {
    let decay = |length: f64| 1.0 - (-length / scale).exp();
    let of_mean = |length: f64| 2.0 * scale / length * (1.0 - scale / length * decay(length));
    let average = scale / (c - s) * decay(c - s);
    of_mean(s) + of_mean(c) - 4.0 * scale / (s * c) * (s - scale * decay(s) * average)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn one_scale_by_hand() {
        // s = 1, C = 2, τ = 1: V(1) = 2/e, V(2) = (1 + e^-2)/2, A = 1 - 1/e, K = 1 - (1 - 1/e)^2.
        let e = std::f64::consts::E;
        let by_hand = 2.0 / e + (1.0 + e.powi(-2)) / 2.0 - 2.0 * (1.0 - (1.0 - 1.0 / e).powi(2));
        assert!((missed(1.0, 2.0, 1.0) - by_hand).abs() < 1e-12);
    }

    #[test]
    fn what_is_expected_is_what_was_measured_of_programs() {
        // Slices of 24 events on 4 counters, intervals of 100 ms; the measured median of |error| / count,
        // which is 0.80 of a normal error's standard deviation.
        for (turns, ratio, measured) in [(24, 1.0 / 6.0, 0.166), (6, 1.0 / 6.0, 0.083)] {
            for (turn, measured) in [(4, measured), (1, measured / 2.0)] {
                let expected = relative_error(ratio, MS * turns * turn, 100 * MS).unwrap_or(f64::NAN) * 0.80;
                assert!((expected / measured - 1.0).abs() < 0.25, "{turns} x {turn} ms: {expected}, not {measured}");
            }
        }
    }

    #[test]
    fn what_runs_always_has_no_error_and_what_never_runs_no_number() {
        assert_eq!(relative_error(1.0, 8 * MS, 100 * MS), Some(0.0));
        assert_eq!(relative_error(0.5, Duration::ZERO, 100 * MS), Some(0.0));
        assert_eq!([0.0, -1.0, f64::NAN].map(|ratio| relative_error(ratio, 8 * MS, 100 * MS)), [None; 3]);
    }

    proptest! {
        #[test]
        fn longer_intervals_and_shorter_cycles_are_better(ratio in 0.01f64..0.99, cycle in 2u32..200, interval in 1u32..2000) {
            let error = |cycle: u32, interval: u32| relative_error(ratio, MS * cycle, MS * interval).unwrap_or(f64::NAN);
            let this = error(cycle, interval);
            prop_assert!((0.0..1.0).contains(&this));
            prop_assert!(error(cycle, interval * 2) <= this + 1e-12);
            prop_assert!(error(cycle / 2, interval) <= this + 1e-9);
        }
    }
}
