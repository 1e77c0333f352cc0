//! Selects the boundaries that noise doesn't explain, and says how sure they are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clean::CleanedValues;
use super::scores::NormalScores;
use super::sums::{PointSums, RunningSums};

/// Deviations of short steps are drawn to that of all by so many values.
const PRIOR: f64 = 4.0;

/// So many values on either side are beside a boundary.
const NEAR: usize = 15;

/// What is known of a change between two steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evidence {
    /// By how much the level changes.
    pub(crate) by: f64,
    /// The standard error of that.
    pub(crate) error: f64,
    /// The degrees of freedom of the error.
    pub(crate) degrees: f64,
    /// The probability that noise alone leads to as clear a change.
    pub(crate) chance: f64,
}

/// Boundaries, of which some are to be kept.
pub(super) struct Selection<'a> {
    sums: &'a RunningSums,
    rights: Vec<usize>,
    rounding: f64,
    /// Shorter steps are outliers.
    shortest: usize,
    /// The variance of the noise, as differences have it, and by how much its correlation makes that of means larger.
    near_noise: f64,
    near_inflation: f64,
}

/// What one boundary is like, before the correlation of the noise is taken into account.
struct BoundaryFit {
    by: f64,
    variance: f64,
    degrees: f64,
    /// The square of the change over its variance; less if a straight line fits as well.
    evidence: f64,
    /// The square of the change beside the boundary over its variance, if a drift is why steps vary.
    near: f64,
    /// In how many places the shorter of the two steps could be, if it has another one on its other side.
    places: f64,
}

impl BoundaryFit {
    fn clearest(&self, inflation: f64) -> f64 {
        (self.evidence / inflation).max(self.near)
    }
}

impl<'a> Selection<'a> {
    pub(super) fn new(sums: &'a RunningSums, rights: &[usize], cleaned: &CleanedValues) -> Self {
        let rounding = sums.rounding();
        let (near_noise, near_inflation) = cleaned.near();
        Self {
            sums,
            rights: rights.to_vec(),
            rounding,
            shortest: cleaned.shortest(),
            near_noise: near_noise.max(rounding),
            near_inflation,
        }
    }

    /// The ends of the steps that are left when all others are merged.
    pub(super) fn select(mut self, chance: f64) -> Vec<usize> {
        for _ in 0..4 {
            let before = self.rights.clone();
            self.drop_weak(chance);
            self.drop_outlying(chance);
            self.refine();
            if self.rights == before {
                break;
            }
        }
        self.rights
    }

    /// What is known of each boundary.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let inflation = self.inflation();
        let evidence = |fit: BoundaryFit| Evidence {
            by: fit.by,
            error: (fit.variance * inflation).sqrt(),
            degrees: (fit.degrees / inflation).max(1.0),
            chance: self.chance(&fit, inflation),
        };
        self.robust_fits().into_iter().map(evidence).collect()
    }

    fn ends(&self) -> Vec<usize> {
        std::iter::once(0).chain(self.rights.iter().copied()).collect()
    }

    /// The variance of all values about their levels.
    fn noise(&self) -> f64 {
        let (squares, degrees) = self.ends().windows(2).fold((0.0, 0.0), |(squares, degrees), ends| {
            let all = self.sums.over(ends[0]..ends[1]);
            (squares + all.squares(), degrees + all.count - 1.0)
        });
        (squares / degrees.max(1.0)).max(self.rounding)
    }

    /// By how much correlation makes the variance of means larger: (1 + ρ)/(1 - ρ).
    fn inflation(&self) -> f64 {
        let (products, squares) = self.ends().windows(2).fold((0.0, 0.0), |(products, squares), ends| {
            let (product, square) = self.sums.lagged(ends[0]..ends[1]);
            (products + product, squares + square)
        });
        let (count, steps) = (self.sums.len() as f64, self.rights.len() as f64);
        if squares <= self.rounding * count {
            return 1.0;
        }
        let found = products / squares;
        // Levels that are fitted take correlation away (Marriott and Pope, "Bias in the estimation of autocorrelations", 1954).
        let unbiased = found + steps * (1.0 + 3.0 * found.max(0.0)) / count;
        let uncertain = ((1.0 - found * found) / count).sqrt();
        let correlation = (unbiased + 0.5 * uncertain).clamp(0.0, 0.95);
        (1.0 + correlation) / (1.0 - correlation)
    }

    fn fit(&self, left: usize, middle: usize, right: usize, noise: f64) -> BoundaryFit {
        let (a, b) = (self.sums.over(left..middle), self.sums.over(middle..right));
        let spread = |side: &PointSums| (side.squares() + PRIOR * noise) / (side.count - 1.0 + PRIOR);
        let parts = [spread(&a) / a.weight, spread(&b) / b.weight];
        let variance = parts[0] + parts[1];
        let by = b.mean() - a.mean();
        let whole = a + b;
        let gain = whole.squares_of_line() - a.squares() - b.squares();
        let common = (a.squares() + b.squares() + PRIOR * noise) / (whole.count - 2.0 + PRIOR);
        let ratio = |gain: f64, noise: f64| if noise > 0.0 { gain / noise } else { gain.signum() * f64::INFINITY };
        let is_short = self.is_excursion(left, middle) || self.is_excursion(middle, right);
        let evidence = if is_short { 0.0 } else { ratio(by * by, variance).min(8.0 * ratio(gain, common)) };
        let degrees = (a.count + b.count - 2.0 + PRIOR).max(1.0);
        let count = self.sums.len();
        let shorter = if middle - left < right - middle { left..middle } else { middle..right };
        let is_between = shorter.start > 0 && shorter.end < count;
        let places = if is_between { count as f64 / shorter.len() as f64 } else { 0.0 };
        let near = if is_short { 0.0 } else { self.near(left, middle, right) };
        BoundaryFit { by, variance, degrees, evidence, near, places }
    }

    /// Whether a step may be of outliers only: too short, and at an end or beyond the values on both of its sides.
    fn is_excursion(&self, left: usize, right: usize) -> bool {
        if right - left >= self.shortest {
            return false;
        }
        if left == 0 || right == self.sums.len() {
            return true;
        }
        let mean = |from: usize, to: usize| self.sums.over(from..to).mean();
        let (before, after) =
            (mean(left.saturating_sub(self.shortest), left), mean(right, (right + self.shortest).min(self.sums.len())));
        let here = mean(left, right);
        (here - before).signum() != (after - here).signum()
    }

    /// How clear a change is if only the values beside it count.
    fn near(&self, left: usize, middle: usize, right: usize) -> f64 {
        let (left, right) = (left.max(middle.saturating_sub(NEAR)), right.min(middle + NEAR));
        let (a, b) = (self.sums.over(left..middle), self.sums.over(middle..right));
        let spread = ((a.squares() + b.squares()) / (a.count + b.count - 2.0).max(1.0)).max(self.near_noise);
        let square = (b.mean() - a.mean()).powi(2) / (spread * (a.weight.recip() + b.weight.recip()));
        let gain = 8.0 * ((a + b).squares_of_line() - a.squares() - b.squares()) / spread;
        square.min(gain) / self.near_inflation
    }

    /// The probability that the clearest boundary of a series of noise is as clear.
    fn chance(&self, fit: &BoundaryFit, inflation: f64) -> f64 {
        let whole = self.chance_of(fit.evidence / inflation, fit.degrees / inflation, fit.places);
        let near = self.sums.len() as f64 / NEAR as f64;
        whole.min(self.chance_of(fit.near, 2.0 * NEAR as f64, near))
    }

    /// The same of the square of a t of so many degrees of freedom, for a step that may begin anywhere and end in one of
    /// several places.
    fn chance_of(&self, square: f64, degrees: f64, places: f64) -> f64 {
        if square.is_nan() || square <= 1.0 {
            return 1.0;
        }
        // A t of few degrees, as a normal number (Wallace, "Bounds on normal approximations to Student's and the chi-square
        // distributions", 1959).
        let degrees = degrees.max(2.0);
        let z = (degrees * (square / degrees).ln_1p()).sqrt() * (1.0 - 0.75 / degrees);
        let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        // The clearest of all places for one step, and of all places for a step and another one back.
        let count = (self.sums.len() as f64).max(2.0);
        let single = 2.0 * count.ln() * (1.0 - 1.0 / (z * z)) + 4.0 / (z * z);
        (z * density * (single + places * z * z / 4.0)).min(1.0)
    }

    /// Merges the steps on both sides of the weakest boundary, again and again, until all are clear.
    fn drop_weak(&mut self, chance: f64) {
        let mut ends = self.ends();
        let count = ends.len();
        let (mut before, mut after): (Vec<usize>, Vec<usize>) = (
            (0..count).map(|at| at.saturating_sub(1)).collect(),
            (0..count).map(|at| (at + 1).min(count - 1)).collect(),
        );
        let mut noise = self.noise();
        let mut inflation = self.inflation();
        let mut stamps = vec![0u32; count];
        let mut heap = BinaryHeap::new();
        let weigh = |at: usize, before: &[usize], after: &[usize], ends: &[usize], noise: f64| {
            self.fit(ends[before[at]], ends[at], ends[after[at]], noise)
        };
        for at in 1..count.saturating_sub(1) {
            heap.push(Reverse((Ordered(weigh(at, &before, &after, &ends, noise).clearest(inflation)), at, 0)));
        }
        let mut gone = vec![false; count];
        let mut since = 0;
        while let Some(Reverse((_, at, stamp))) = heap.pop() {
            if gone[at] || stamps[at] != stamp {
                continue;
            }
            let fit = weigh(at, &before, &after, &ends, noise);
            if self.chance(&fit, inflation) <= chance {
                if since == 0 {
                    break;
                }
                // Estimates of the noise are old.
                let alive: Vec<usize> = (1..count).filter(|&at| !gone[at]).map(|at| ends[at]).collect();
                let now = Selection { rights: alive.clone(), ..*self };
                (noise, inflation, since) = (now.noise(), now.inflation(), 0);
                heap.push(Reverse((Ordered(weigh(at, &before, &after, &ends, noise).clearest(inflation)), at, stamp)));
                continue;
            }
            gone[at] = true;
            since += 1;
            let (a, b) = (before[at], after[at]);
            (after[a], before[b]) = (b, a);
            for near in [a, b] {
                if near > 0 && near < count - 1 {
                    stamps[near] += 1;
                    heap.push(Reverse((
                        Ordered(weigh(near, &before, &after, &ends, noise).clearest(inflation)),
                        near,
                        stamps[near],
                    )));
                }
            }
        }
        ends = (1..count).filter(|&at| !gone[at]).map(|at| ends[at]).collect();
        self.rights = ends;
    }

    /// Merges the steps on both sides of the weakest boundary that heavy tails explain, again and again.
    fn drop_outlying(&mut self, chance: f64) {
        loop {
            let fits = self.robust_fits();
            let inflation = self.inflation();
            let weakest =
                fits.iter().enumerate().min_by(|a, b| a.1.clearest(inflation).total_cmp(&b.1.clearest(inflation)));
            match weakest {
                Some((at, fit)) if self.chance(fit, inflation) > chance => drop(self.rights.remove(at)),
                _ => break,
            }
        }
    }

    fn robust_fits(&self) -> Vec<BoundaryFit> {
        let ends = self.ends();
        let scores = NormalScores::new(self.sums, ends.windows(2).map(|ends| ends[0]..ends[1]));
        let noise = self.noise();
        ends.windows(3)
            .map(|ends| {
                let fit = self.fit(ends[0], ends[1], ends[2], noise);
                if noise <= self.rounding {
                    return fit;
                }
                let evidence = fit.evidence.min(scores.evidence(self.sums, ends[0], ends[1], ends[2]));
                let near = (ends[0].max(ends[1].saturating_sub(NEAR)), ends[2].min(ends[1] + NEAR));
                let near = fit.near.min(scores.evidence(self.sums, near.0, ends[1], near.1) / self.near_inflation);
                BoundaryFit { evidence, near, ..fit }
            })
            .collect()
    }

    /// Puts each boundary where the squares on both of its sides are the least.
    fn refine(&mut self) {
        let mut left = 0;
        for at in 1..self.rights.len() {
            let right = self.rights[at];
            let squares =
                |middle: usize| self.sums.over(left..middle).squares() + self.sums.over(middle..right).squares();
            let now = (squares(self.rights[at - 1]), self.rights[at - 1]);
            let best = (left + 1..right)
                .map(|middle| (squares(middle), middle))
                .fold(now, |best, one| if one.0 < best.0 { one } else { best });
            self.rights[at - 1] = best.1;
            left = best.1;
        }
    }
}

/// Evidence in an order.
#[derive(Clone, Copy, PartialEq)]
struct Ordered(f64);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
