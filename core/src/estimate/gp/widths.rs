//! Says how wide intervals of counts are and how far they reach to each side, for how much the process is sure of them.

use super::Gp;
use super::calibration::ErrorTail;
use super::interval::WindowSum;
use super::threads::Concurrency;
use crate::rates::{Confidence, Delta};

/// The half width over Student's, where several threads are counted one by one.
const WIDTH_OF_THREADS: f64 = 0.8;
/// By how much intervals of very many threads are narrower where it is known which of them was counted when: what isn't
/// known of each is independent of the others.
const NARROWER_OF_THREADS: f64 = 0.3;
/// From so many stays of an event on that holds; with fewer, intervals are wider.
const FEW_STAYS_OF_THREADS: f64 = 3.6;
/// Where covariances were fitted to fewer observations of an event, it is as if there had been so many.
const LEAST_OBSERVED: u64 = 2;

/// How far from an estimate the truth may be to each side, over the half width.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sides {
    pub(super) below: f64,
    pub(super) above: f64,
}

/// So much farther above an estimate the truth may be, over the square of the number of stays: rates have long tails,
/// and a few stays rather miss what is much than see it.
const FEW_STAYS_ABOVE: f64 = 0.5;
/// How far above it may be of a frequent event; an event is frequent from so many counts a millisecond on.
const ABOVE: f64 = 0.8;
const FREQUENT_PER_MS: f64 = 1000.0;
/// What is rare comes in clusters: the power to which an event's rate is below that, and the most that it counts for.
const RARITY_POWER: f64 = 0.48;
const RAREST: f64 = 1000.0;
/// How far below it may be, where the half width is this part of a mean interval's count; the power to which that is
/// more or less. What is known to half its size is rarely next to nothing.
const BELOW: f64 = 0.83;
const BELOW_AT: f64 = 0.3;
const WIDE_POWER: f64 = -0.1;
const WIDTHS: (f64, f64) = (0.01, 7.0);
/// An estimate above the mean may fall back to it: the power to which it is, and the most that it counts for.
const RAISED_POWER: f64 = 1.0;
const MOST_RAISED: f64 = 1.3;
/// Below the mean an event varies by less, but may come back to it: the powers to which the estimate is below it, down
/// and up, and the least that it counts for.
const LOWERED_POWERS: (f64, f64) = (0.55, -0.15);
const LEAST_LOWERED: f64 = 0.1;

/// An interval with so many stays tells how far off it may be.
const LEAST_STAYS: f64 = 5.0;
/// Its count is at most so many times as far above the estimate as what its stays left unseen, as they scatter, is at
/// 95 %.
const MOST_SCATTERED: f64 = 2.0;

impl Sides {
    pub(super) const ALIKE: Self = Self { below: 1.0, above: 1.0 };

    /// Those of an interval's sum, of an event whose mean rate makes so many counts in it, and of which so many stays
    /// were seen. Their form comes from what intervals missed, by quantile regression (R. Koenker and G. Bassett,
    /// "Regression quantiles", Econometrica 46, 1978); the numbers from a search over the hard conditions
    /// (docs/estimator-experiments.md).
    pub(super) fn new(sum: &WindowSum, mean: f64, stays: f64, tail: ErrorTail) -> Self {
        let few_stays = 1.0 + FEW_STAYS_ABOVE / stays.max(1.0).powi(2);
        // Intervals of what is quiet have widths of their own.
        if tail != ErrorTail::Usual || mean <= 0.0 {
            return Self { above: few_stays, ..Self::ALIKE };
        }
        let rarity = (FREQUENT_PER_MS * sum.counted.enabled.as_ms() / mean).clamp(1.0, RAREST);
        let width = (sum.square.sqrt() / mean).clamp(WIDTHS.0, WIDTHS.1) / BELOW_AT;
        let raised = (sum.estimate / mean).clamp(1.0, MOST_RAISED);
        let lowered = (sum.estimate / mean).clamp(LEAST_LOWERED, 1.0);
        Self {
            below: BELOW * width.powf(WIDE_POWER) * raised.powf(RAISED_POWER) * lowered.powf(LOWERED_POWERS.0),
            above: ABOVE * few_stays * rarity.powf(RARITY_POWER) * lowered.powf(LOWERED_POWERS.1),
        }
    }

    /// These sides, but no farther above than `most` counts, and no nearer than a frequent event's.
    pub(super) fn up_to(self, sum: &WindowSum, most: Option<f64>) -> Self {
        let half_width = sum.square.sqrt();
        match most {
            Some(most) if half_width > 0.0 => Self { above: self.above.min((most / half_width).max(ABOVE)), ..self },
            _ => self,
        }
    }
}

impl Gp {
    /// How far above its estimate an interval's count may be, of an event whose stays scatter by so much; `None` where
    /// too few of them are known, in the run or in the interval.
    pub(super) fn most_above(&self, event: usize, counted: Delta) -> Option<f64> {
        let (stays, dispersion) = (&self.stays[event], self.stays[event].dispersion()?);
        let are_enough = counted.running.as_ms() >= LEAST_STAYS * stays.stay_ms()?;
        let scattered = dispersion.max(1.0).sqrt() * counted.most_unseen_above(Confidence::DEFAULT.normal());
        are_enough.then_some(MOST_SCATTERED * scattered)
    }

    /// The half width of an event's 95 % interval, in standard deviations.
    pub(super) fn half_width(&self, event: usize) -> f64 {
        let student = Confidence::DEFAULT.student(self.process.observed[event].max(LEAST_OBSERVED) as f64);
        let stays = self.stays[event].stays();
        self.settings.half_width
            * student
            * self.width_of_threads(stays)
            * self.calibration.factor(event, stays, self.counted.run[event].run_ratio(), self.tail(event))
    }

    /// The factor on half widths where several threads ran, of an event of which so many stays were seen.
    fn width_of_threads(&self, stays: f64) -> f64 {
        match self.concurrency() {
            Concurrency::Alone | Concurrency::Unclear => 1.0,
            Concurrency::Sampled => WIDTH_OF_THREADS,
            Concurrency::ToldApart => {
                let others = 1.0 - 1.0 / self.mean_threads.max(1.0);
                1.0 - NARROWER_OF_THREADS * others * (1.0 - FEW_STAYS_OF_THREADS / stays.max(1.0))
            }
        }
    }

    /// How far off an event's counts may be, as it is quiet.
    pub(super) fn tail(&self, event: usize) -> ErrorTail {
        let quiet = &self.stays[event].quiet;
        match (self.empty.is_most(), quiet.is_mostly_empty()) {
            (true, _) => ErrorTail::AllQuiet,
            (false, true) => ErrorTail::Quiet { bursts: quiet.bursts() },
            (false, false) => ErrorTail::Usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::CpuNs;

    /// An interval of 100 ms.
    fn sum(estimate: f64, half_width: f64) -> WindowSum {
        let counted = Delta { count: 0, enabled: CpuNs(100_000_000), running: CpuNs(20_000_000) };
        WindowSum { counted, estimate, square: half_width * half_width, ..WindowSum::default() }
    }

    fn is_near(sides: Sides, below: f64, above: f64) -> bool {
        (sides.below - below).abs() < 1e-9 && (sides.above - above).abs() < 1e-9
    }

    #[test]
    fn sides_by_hand() {
        let usual = |sum: &WindowSum, mean, stays| Sides::new(sum, mean, stays, ErrorTail::Usual);
        // A frequent event at its mean, known to three tenths of it.
        assert!(is_near(usual(&sum(1e6, 3e5), 1e6, 1e9), 0.83, 0.8));
        // Ten counts a millisecond are a hundredth of a frequent event's: 100^0.48 times as far above.
        assert!(is_near(usual(&sum(1e3, 3e2), 1e3, 1e9), 0.83, 0.8 * 100f64.powf(0.48)));
        // Seen in two stays: an eighth more above. Raised by a fifth: as much farther below.
        assert!(is_near(usual(&sum(1e6, 3e5), 1e6, 2.0), 0.83, 0.8 * 1.125));
        assert!(is_near(usual(&sum(1.2e6, 3e5), 1e6, 1e9), 0.83 * 1.2, 0.8));
        // At half the mean: 0.5^0.55 times as far below, and a bit farther above.
        assert!(is_near(usual(&sum(5e5, 3e5), 1e6, 1e9), 0.83 * 0.5f64.powf(0.55), 0.8 * 0.5f64.powf(-0.15)));
        // A half width of 3 times the mean reaches less far below: 10^-0.1 times.
        assert!(is_near(usual(&sum(1e6, 3e6), 1e6, 1e9), 0.83 * 10f64.powf(-0.1), 0.8));
    }

    #[test]
    fn no_interval_reaches_farther_above_than_stays_scatter_by_hand() {
        let sum = sum(1e3, 3e2);
        let rare = Sides::new(&sum, 1e3, 1e9, ErrorTail::Usual);
        // 600 counts are twice the half width; 150 are less than a frequent event's; and nobody knows.
        assert!(is_near(rare.up_to(&sum, Some(600.0)), 0.83, 2.0));
        assert!(is_near(rare.up_to(&sum, Some(150.0)), 0.83, 0.8));
        assert_eq!([rare.up_to(&sum, None), rare.up_to(&sum, Some(1e9))], [rare; 2]);
    }

    #[test]
    fn what_is_quiet_or_was_never_seen_has_only_few_stays_above() {
        let quiet = ErrorTail::Quiet { bursts: 0.5 };
        assert_eq!(Sides::new(&sum(10.0, 3.0), 10.0, 2.0, quiet), Sides { below: 1.0, above: 1.125 });
        assert_eq!(Sides::new(&sum(10.0, 3.0), 0.0, 0.0, ErrorTail::Usual), Sides { below: 1.0, above: 1.5 });
    }

    proptest! {
        #[test]
        fn rarer_events_reach_farther_above_and_all_sides_are_bounded(
            mean in 1e-3..1e9f64, rarer in 1.0..1e6f64, relative in 0.0..100.0f64, width in 0.0..100.0f64, stays in 0.0..1e3f64,
        ) {
            let sides = |mean: f64| Sides::new(&sum(relative * mean, width * mean), mean, stays, ErrorTail::Usual);
            let (frequent, rare) = (sides(mean), sides(mean / rarer));
            prop_assert!(frequent.above <= rare.above + 1e-9 && (frequent.below - rare.below).abs() < 1e-9);
            prop_assert!((0.15..=1.6).contains(&rare.below), "{rare:?}");
            let lowered = LEAST_LOWERED.powf(LOWERED_POWERS.1);
            let most = ABOVE * (1.0 + FEW_STAYS_ABOVE) * RAREST.powf(RARITY_POWER) * lowered;
            prop_assert!((ABOVE..=most + 1e-9).contains(&rare.above), "{rare:?}");
        }
    }
}
