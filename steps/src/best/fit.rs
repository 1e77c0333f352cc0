//! Weighs the change of level at a boundary against the noise, and computes how often noise alone has as clear a one.

use std::f64::consts::TAU;
use std::ops::Range;

use super::clean::CleanedValues;
use super::scores::NormalScores;
use super::sums::{PointSums, RunningSums};

/// The spread of a short step is drawn towards that of all by so many values.
const PRIOR: f64 = 6.0;

/// So many values on either side are beside a boundary.
const NEAR: usize = 15;

/// The squares that two levels explain better than a straight line are on average an eighth of the square of t or more if there
/// is a step, whose line leaves a quarter; less if there is a drift.
const BEYOND_LINE: f64 = 8.0;

/// Jumps of such a chance are steps.
const CLEAR: f64 = 0.001;

/// Jumps are compared with so many values on either side.
const FAR: usize = 64;

/// The fewest values of a level beside a jump, and of both together: of fewer, one is soon much larger than the others.
const LEAST_LEVEL: usize = 3;
const LEAST_OF_BOTH: usize = 7;

/// Levels that lie apart have four values each, or three beside six, so that their products are so large.
const LEAST_PRODUCT: usize = 16;

/// What makes a probability of the sixth power of t, for each value of the series; found by simulation.
const APART: f64 = 24.0;

/// Where a step begins, where it and the next one meet, and where that ends.
pub(super) type TwoSteps = (usize, usize, usize);

/// The noise about the levels of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelNoise {
    variance: f64,
    /// By how much correlation makes the variance of means larger: (1 + r)/(1 - r).
    inflation: f64,
    /// Correlated values tell as much of the variance as this part of them would without correlation.
    independent: f64,
}

/// So many standard errors are added to the correlation that was found.
const ERRORS: f64 = 0.67;

/// The largest correlation of neighbours; where it seems to be larger, nothing is known of it.
const MOST_CORRELATED: f64 = 0.95;

impl LevelNoise {
    /// Noise whose neighbours have such a correlation, r.
    ///
    /// Means have (1 + r)/(1 - r) times the variance, and the variance is known as from (1 - r²)/(1 + r²) times as many values
    /// (Bartlett, "On the theoretical specification and sampling properties of autocorrelated time-series", 1946).
    fn correlated(variance: f64, correlation: f64) -> Self {
        let r = correlation.clamp(0.0, MOST_CORRELATED);
        let inflation = (1.0 + r) / (1.0 - r);
        let independent = if correlation < MOST_CORRELATED { (1.0 - r * r) / (1.0 + r * r) } else { inflation.recip() };
        Self { variance, inflation, independent }
    }
}

/// How a boundary looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundaryFit {
    /// By how much the level changes.
    pub(super) by: f64,
    /// The standard error of that, and its degrees of freedom.
    pub(super) error: f64,
    pub(super) degrees: f64,
    /// The square of the change over its variance; less if a straight line explains it too.
    whole: f64,
    /// The same of the values beside the boundary, which a drift moves less.
    near: f64,
    near_degrees: f64,
    /// The probability that heavy-tailed noise jumps so far once, and stays there.
    jump: f64,
    /// The probability that correlated noise has two levels that lie so far apart.
    apart: f64,
    /// In how many places the shorter of the two steps could be, if it has another one on its other side.
    places: f64,
}

impl BoundaryFit {
    /// The largest of the squares; that of a jump is the square of a normal variable with about its chance.
    pub(super) fn clearest(&self) -> f64 {
        self.whole.max(self.near).max(-2.0 * self.jump.min(self.apart).ln())
    }
}

/// What boundaries of a series are judged by.
pub(super) struct BoundaryJudge<'a> {
    pub(super) sums: &'a RunningSums,
    /// The variance that rounding leaves where there is none.
    rounding: f64,
    /// The least distance of values that aren't equal.
    resolution: f64,
    /// Shorter steps may be outliers, of which there is such a share.
    shortest: usize,
    share: f64,
    /// The noise as differences of neighbours have it.
    differences: LevelNoise,
}

impl<'a> BoundaryJudge<'a> {
    pub(super) fn new(sums: &'a RunningSums, cleaned: &CleanedValues) -> Self {
        let rounding = sums.rounding();
        let (variance, correlation) = cleaned.noise_of_differences();
        let differences = LevelNoise::correlated(variance.max(rounding), correlation);
        Self {
            sums,
            rounding,
            resolution: sums.resolution(),
            shortest: cleaned.shortest(),
            share: cleaned.share(),
            differences,
        }
    }

    /// The noise about the levels of steps.
    ///
    /// Levels that are fitted take correlation away (Marriott and Pope, "Bias in the estimation of autocorrelations", 1954).
    /// A part of a standard error is added, so that noise seldom looks less correlated than it is.
    pub(super) fn noise(&self, rights: &[usize]) -> LevelNoise {
        let (mut squares, mut degrees, mut products, mut plain) = (0.0, 0.0, 0.0, 0.0);
        let mut left = 0;
        for &right in rights {
            let all = self.sums.over(left..right);
            let (product, square) = self.sums.lagged(left..right);
            (squares, degrees) = (squares + all.squares(), degrees + all.count - 1.0);
            (products, plain) = (products + product, plain + square);
            left = right;
        }
        let count = self.sums.len() as f64;
        let variance = (squares / f64::max(degrees, 1.0)).max(self.rounding);
        if plain <= self.rounding * count {
            return LevelNoise::correlated(variance, 0.0);
        }
        let found = products / plain;
        let bias = rights.len() as f64 * (1.0 + 3.0 * found.max(0.0)) / count;
        let error = ERRORS * ((1.0 - found * found).max(0.0) / count).sqrt();
        LevelNoise::correlated(variance, found + bias + error)
    }

    /// Whether the values of each step are equal.
    pub(super) fn is_exact(&self, noise: LevelNoise) -> bool {
        noise.variance <= self.rounding
    }

    /// How the boundary between two steps looks.
    pub(super) fn fit(&self, steps: TwoSteps, noise: LevelNoise) -> BoundaryFit {
        let (left, middle, right) = steps;
        let (a, b) = (self.sums.over(left..middle), self.sums.over(middle..right));
        let spread = |side: &PointSums| (side.squares() + PRIOR * noise.variance) / (side.count - 1.0 + PRIOR);
        let variance = (spread(&a) / a.weight + spread(&b) / b.weight) * noise.inflation;
        let both = (a.squares() + b.squares() + PRIOR * noise.variance) / (a.count + b.count - 2.0 + PRIOR);
        let by = b.mean() - a.mean();
        let squares = (by * by / variance).min(beyond_line(&a, &b) / (both * noise.inflation));
        let is_outliers = self.may_be_outliers(left, middle) || self.may_be_outliers(middle, right);
        let degrees = ((a.count + b.count - 2.0 + PRIOR) * noise.independent).max(2.0);
        let [whole, near] = if is_outliers { [0.0; 2] } else { [squares, self.near(steps)] };
        let (jump, second) = self.jump(steps).filter(|_| !is_outliers).unwrap_or((1.0, f64::INFINITY));
        let apart = if is_outliers { 1.0 } else { self.apart(steps) };
        let (from, _, to) = beside(steps);
        let near_degrees = (to as f64 - from as f64 - 2.0).max(2.0);
        // Where only the jump tells of a step, other changes of neighbours say what it may be wrong by.
        let error = if jump < CLEAR { variance.sqrt().min(second) } else { variance.sqrt() };
        BoundaryFit { by, error, degrees, whole, near, near_degrees, jump, apart, places: self.places(steps) }
    }

    /// The same, but no clearer than the change is in ranks.
    pub(super) fn with_scores(
        &self,
        fit: BoundaryFit,
        scores: &NormalScores,
        steps: TwoSteps,
        noise: LevelNoise,
    ) -> BoundaryFit {
        let whole = scores.square(self.sums, steps) / noise.inflation;
        let near = scores.square(self.sums, beside(steps)) / self.differences.inflation;
        BoundaryFit { whole: fit.whole.min(whole), near: fit.near.min(near), ..fit }
    }

    /// How clear a change is if only the values beside it count.
    fn near(&self, steps: TwoSteps) -> f64 {
        let (left, middle, right) = beside(steps);
        let (a, b) = (self.sums.over(left..middle), self.sums.over(middle..right));
        let squares = (b.mean() - a.mean()).powi(2);
        let parts = a.weight.recip() + b.weight.recip();
        let both = ((a.squares() + b.squares()) / (a.count + b.count - 2.0).max(1.0)).max(self.differences.variance);
        // One of the sides may have more noise than the other.
        let own = |side: &PointSums| side.squares() / (side.count - 1.0).max(1.0) / side.weight;
        let variance = (both * parts).max(own(&a) + own(&b));
        (squares / variance).min(beyond_line(&a, &b) / both) / self.differences.inflation
    }

    /// The probability that noise with tails like those of Student's t with 3 degrees, however correlated, jumps as far as this once, and
    /// nowhere else in both steps by a part of that. Of numbers with such tails, the largest is more than k times the second with the
    /// probability k⁻³ (Pareto's law), and the series has room for so many pairs of steps. Beside it the second largest; `None` of few values.
    fn jump(&self, steps: TwoSteps) -> Option<(f64, f64)> {
        let (left, middle, right) = (steps.0.max(steps.1.saturating_sub(FAR)), steps.1, steps.2.min(steps.1 + FAR));
        let shorter = (middle - left).min(right - middle);
        if shorter < LEAST_LEVEL || right - left < LEAST_OF_BOTH {
            return None;
        }
        let jump = self.sums.difference(middle);
        let by = self.sums.over(middle..right).mean() - self.sums.over(left..middle).mean();
        // A drift in one of the steps isn't a part of the jump.
        let far = if by * jump > 0.0 { jump.abs().min(by.abs()) } else { return None };
        let others = (left + 1..right).filter(|&at| at != middle);
        let second = others.map(|at| self.sums.difference(at).abs()).fold(self.resolution, f64::max);
        let pairs = (self.sums.len() as f64 / (2 * shorter) as f64).max(1.0);
        Some(((pairs * (second / far).powi(3)).min(1.0), second))
    }

    /// The probability that noise whose values keep half of the one before has two levels so far apart, in all of both steps and
    /// beside their boundary. It asks for no estimate of the correlation, of which a short series tells nearly nothing.
    ///
    /// Of series of 8 to 40 such values the largest t, as of independent values, exceeds 7.5 to 8.5 with the probability 0.003 to 0.001,
    /// and falls with the sixth power or faster.
    fn apart(&self, steps: TwoSteps) -> f64 {
        let square = |(left, middle, right): TwoSteps| {
            let (a, b) = (self.sums.over(left..middle), self.sums.over(middle..right));
            let variance = (a.squares() + b.squares()) / (a.count + b.count - 2.0);
            let change = (b.mean() - a.mean()).powi(2) / (a.weight.recip() + b.weight.recip());
            change.min(beyond_line(&a, &b)).max(0.0) / variance.max(self.rounding)
        };
        let (left, middle, right) = steps;
        let (shorter, longer) = ((middle - left).min(right - middle), (middle - left).max(right - middle));
        if shorter < LEAST_LEVEL || shorter * longer < LEAST_PRODUCT {
            return 1.0;
        }
        let count = self.sums.len() as f64;
        let pairs = (count / (2 * shorter) as f64).max(1.0);
        (APART * count * pairs / square(steps).min(square(beside(steps))).powi(3)).min(1.0)
    }

    /// Whether a step is too short for outliers not to fill it by chance, and lies at an end of the series, or beyond the
    /// values on both of its sides.
    fn may_be_outliers(&self, left: usize, right: usize) -> bool {
        let count = self.sums.len();
        if right - left >= self.shortest {
            return false;
        }
        let mean = |from: usize, to: usize| (from < to).then(|| self.sums.over(from..to).mean());
        let Some(here) = mean(left, right) else { return true };
        let before = mean(left.saturating_sub(self.shortest), left).map(|before| here - before);
        let after = mean(right, (right + self.shortest).min(count)).map(|after| here - after);
        match (before, after) {
            (Some(before), Some(after)) if before.signum() != after.signum() => false,
            (Some(by), None) | (None, Some(by)) => !self.agree(left..right, by),
            (Some(before), Some(after)) => !self.agree(left..right, before.abs().min(after.abs())),
            (None, None) => true,
        }
    }

    /// Whether values are too near one another for outliers, which lie anywhere between the level beside them and the furthest.
    ///
    /// For m values in a range of r that are h away, that has the probability n qᵐ (r/h)^(m-1).
    fn agree(&self, step: Range<usize>, by: f64) -> bool {
        let count = step.len();
        if count < LEAST_LEVEL {
            return false;
        }
        let range = self.sums.range(step).max(self.resolution.min(by.abs()));
        let near = (range / by.abs()).min(1.0).powi(count as i32 - 1);
        self.sums.len() as f64 * self.share.powi(count as i32) * near <= CLEAR
    }

    fn places(&self, (left, middle, right): TwoSteps) -> f64 {
        let count = self.sums.len();
        let (from, to) = if middle - left < right - middle { (left, middle) } else { (middle, right) };
        if from > 0 && to < count { count as f64 / (to - from) as f64 } else { 0.0 }
    }

    /// The probability that a series of noise has as clear a boundary.
    pub(super) fn chance(&self, fit: &BoundaryFit) -> f64 {
        let count = (self.sums.len() as f64).max(2.0);
        let whole = chance_of(fit.whole, fit.degrees, count, fit.places);
        let near = chance_of(fit.near, fit.near_degrees, count, count / NEAR as f64);
        whole.min(near).min(fit.jump).min(fit.apart)
    }
}

/// The part of two steps that is beside their boundary.
fn beside((left, middle, right): TwoSteps) -> TwoSteps {
    (left.max(middle.saturating_sub(NEAR)), middle, right.min(middle + NEAR))
}

/// What two levels explain better than a straight line, made comparable with the square of their change.
fn beyond_line(a: &PointSums, b: &PointSums) -> f64 {
    BEYOND_LINE * ((*a + *b).squares_of_line() - a.squares() - b.squares())
}

/// The probability that the largest t of a series has such a square: of all places where one step may begin, and of several
/// in which a short one may lie.
///
/// For one step it is z φ(z) (2 ln n (1 - 1/z²) + 4/z²), for a normal z (Siegmund, "Boundary crossing probabilities and
/// statistical applications", 1986); for a short one in m places about m z³ φ(z)/4.
fn chance_of(square: f64, degrees: f64, count: f64, places: f64) -> f64 {
    if square.is_nan() || square <= 1.0 {
        return 1.0;
    }
    // A t as a normal number (Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", 1959).
    let z = (degrees * (square / degrees).ln_1p()).sqrt() * (1.0 - 0.75 / degrees);
    let density = (-0.5 * z * z).exp() / TAU.sqrt();
    let one = 2.0 * count.ln() * (1.0 - 1.0 / (z * z)) + 4.0 / (z * z);
    (z * density * (one + places * z * z / 4.0)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::best::clean::clean;
    use crate::weighted::WeightedValue;

    #[test]
    fn chances_by_hand() {
        // φ(4) = 1.3383e-4; 4 φ (2 ln 100 · 15/16 + 1/4).
        assert!((chance_of(16.0, 1e9, 100.0, 0.0) / (4.0 * 1.338_302e-4 * 8.884_69) - 1.0).abs() < 1e-4);
        assert_eq!([chance_of(0.5, 10.0, 100.0, 0.0), chance_of(f64::NAN, 10.0, 100.0, 0.0)], [1.0, 1.0]);
        assert_eq!(chance_of(f64::INFINITY, 10.0, 100.0, 0.0).max(0.0), 0.0);
    }

    #[test]
    fn the_variance_of_correlated_values_by_hand() {
        let noise = LevelNoise::correlated(2.0, 0.5);
        assert_eq!((noise.variance, noise.inflation, noise.independent), (2.0, 3.0, 0.6));
        assert_eq!(LevelNoise::correlated(2.0, -0.5).independent, 1.0);
        // Beyond what is told apart, nothing more is known of the variance than of a mean.
        let most = LevelNoise::correlated(2.0, 1.5);
        assert!((most.inflation - 39.0).abs() < 1e-9 && (most.independent - 1.0 / 39.0).abs() < 1e-9);
    }

    #[test]
    fn values_that_agree_are_no_outliers() {
        let mut values: Vec<f64> =
            (0..17).map(|at| 1.0 + f64::from(at * 7 % 5) / 100.0).chain([5.0, 5.1, 5.05]).collect();
        values[5] = 9.0;
        let points: Vec<_> = values.iter().map(|&value| WeightedValue { value, weight: 1.0 }).collect();
        let cleaned = clean(&points);
        let sums = RunningSums::new(&cleaned.values, &[1.0; 20], &cleaned.is_outlier);
        let judge = BoundaryJudge::new(&sums, &cleaned);
        // 20 · 0.075³ · (0.1 / 4)² is 5e-6; with 0.1 in place of 4 it is 8e-3.
        assert!(judge.share == 0.075 && judge.agree(17..20, 4.0) && !judge.agree(17..20, 0.1));
        // Two may agree by chance.
        assert!(!judge.agree(17..19, 4.0));
    }

    proptest! {
        #[test]
        fn clearer_changes_are_rarer(square in 9f64..60.0, degrees in 4f64..1000.0, count in 10f64..1e6) {
            let chance = chance_of(square, degrees, count, 2.0);
            prop_assert!(chance_of(square + 1.0, degrees, count, 2.0) <= chance);
            prop_assert!(chance_of(square, degrees + 1.0, count, 2.0) <= chance * (1.0 + 1e-9));
            prop_assert!(chance_of(square, degrees, count, 3.0) >= chance);
        }
    }
}
