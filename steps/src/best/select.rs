//! Selects the boundaries that noise doesn't explain.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::clean::CleanedValues;
use super::fit::{BoundaryFit, BoundaryJudge, LevelNoise};
use super::scores::NormalScores;
use super::sums::RunningSums;

/// Boundaries are moved, and weighed again, at most so often.
const ROUNDS: usize = 4;

/// The ends of the steps that are left of others when all are merged that noise may have made.
pub(super) fn select(sums: &RunningSums, cleaned: &CleanedValues, candidates: &[usize], chance: f64) -> Vec<usize> {
    let judge = BoundaryJudge::new(sums, cleaned);
    let mut rights = candidates.to_vec();
    for _ in 0..ROUNDS {
        let before = rights.clone();
        rights = without_weak(&judge, &rights, chance);
        drop_outlying(&judge, &mut rights, chance);
        refine(sums, &mut rights);
        if rights == before {
            break;
        }
    }
    rights
}

/// How each boundary looks, where a change also counts by ranks.
pub(super) fn robust_fits(judge: &BoundaryJudge<'_>, rights: &[usize]) -> Vec<BoundaryFit> {
    fits_by(judge, rights, &scores(judge, rights))
}

fn scores(judge: &BoundaryJudge<'_>, rights: &[usize]) -> NormalScores {
    NormalScores::new(judge.sums, ends(rights).windows(2).map(|ends| ends[0]..ends[1]))
}

fn fits_by(judge: &BoundaryJudge<'_>, rights: &[usize], scores: &NormalScores) -> Vec<BoundaryFit> {
    let noise = judge.noise(rights);
    let fit = |ends: &[usize]| {
        let steps = (ends[0], ends[1], ends[2]);
        let fit = judge.fit(steps, noise);
        if judge.is_exact(noise) { fit } else { judge.with_scores(fit, scores, steps, noise) }
    };
    ends(rights).windows(3).map(fit).collect()
}

/// The beginning of a series, and the ends of its steps.
pub(super) fn ends(rights: &[usize]) -> Vec<usize> {
    std::iter::once(0).chain(rights.iter().copied()).collect()
}

/// The ends of steps, from which boundaries are taken.
struct StepChain {
    ends: Vec<usize>,
    /// For each end, the one before and the one after that are still there.
    before: Vec<usize>,
    after: Vec<usize>,
    /// How often each end was weighed; `None` if it's gone.
    weighed: Vec<Option<u32>>,
}

impl StepChain {
    fn new(rights: &[usize]) -> Self {
        let ends = ends(rights);
        let last = ends.len() - 1;
        let before = (0..=last).map(|at| at.saturating_sub(1)).collect();
        let after = (0..=last).map(|at| (at + 1).min(last)).collect();
        Self { weighed: vec![Some(0); ends.len()], ends, before, after }
    }

    fn is_boundary(&self, at: usize) -> bool {
        at > 0 && at < self.ends.len() - 1
    }

    /// Where the steps on both sides of a boundary begin, meet and end.
    fn around(&self, at: usize) -> (usize, usize, usize) {
        (self.ends[self.before[at]], self.ends[at], self.ends[self.after[at]])
    }

    /// Takes a boundary out, and gives those beside it.
    fn take(&mut self, at: usize) -> [usize; 2] {
        let (before, after) = (self.before[at], self.after[at]);
        (self.after[before], self.before[after], self.weighed[at]) = (after, before, None);
        for near in [before, after] {
            self.weighed[near] = self.weighed[near].map(|times| times + 1);
        }
        [before, after]
    }

    fn rights(&self) -> Vec<usize> {
        (1..self.ends.len()).filter(|&at| self.weighed[at].is_some()).map(|at| self.ends[at]).collect()
    }
}

/// A boundary that waits to be judged, the least clear first; of those that are equally clear, the smallest.
type WaitingBoundary = Reverse<(ByNumber, ByNumber, usize, u32)>;

/// Merges the steps on both sides of the least clear boundary, again and again, until all are clear.
fn without_weak(judge: &BoundaryJudge<'_>, rights: &[usize], chance: f64) -> Vec<usize> {
    let mut chain = StepChain::new(rights);
    let mut noise = judge.noise(rights);
    let mut changed = false;
    let weigh = |chain: &StepChain, at: usize, noise: LevelNoise| -> Option<WaitingBoundary> {
        let times = chain.weighed[at].filter(|_| chain.is_boundary(at))?;
        let fit = judge.fit(chain.around(at), noise);
        Some(Reverse((ByNumber(fit.clearest()), ByNumber((fit.by / fit.error).abs()), at, times)))
    };
    let mut waiting: BinaryHeap<WaitingBoundary> =
        (0..chain.ends.len()).filter_map(|at| weigh(&chain, at, noise)).collect();
    while let Some(Reverse((_, _, at, times))) = waiting.pop() {
        if chain.weighed[at] != Some(times) {
            continue;
        }
        if judge.chance(&judge.fit(chain.around(at), noise)) > chance {
            let beside = chain.take(at);
            waiting.extend(beside.into_iter().filter_map(|at| weigh(&chain, at, noise)));
            changed = true;
        } else if changed {
            // What is known of the noise is from before.
            (noise, changed) = (judge.noise(&chain.rights()), false);
            waiting.extend(weigh(&chain, at, noise));
        } else {
            break;
        }
    }
    chain.rights()
}

/// Merges the steps on both sides of the boundaries that heavy tails explain, again and again: each time those that are less
/// clear than the boundaries beside them.
fn drop_outlying(judge: &BoundaryJudge<'_>, rights: &mut Vec<usize>, chance: f64) {
    // Ranks hardly change with the few steps that are merged.
    let scores = scores(judge, rights);
    loop {
        let fits = fits_by(judge, rights, &scores);
        let clearest = |at: usize| fits.get(at).map_or(f64::INFINITY, BoundaryFit::clearest);
        let stays = |at: usize, fit: &BoundaryFit| {
            let beside = clearest(at.wrapping_sub(1)).min(clearest(at + 1));
            judge.chance(fit) <= chance || fit.clearest() > beside
        };
        let mut kept: Vec<usize> =
            fits.iter().enumerate().filter(|(at, fit)| stays(*at, fit)).map(|(at, _)| rights[at]).collect();
        kept.extend(rights.last());
        if kept.len() == rights.len() {
            break;
        }
        *rights = kept;
    }
}

/// Puts each boundary where the squares on both of its sides are the least.
fn refine(sums: &RunningSums, rights: &mut [usize]) {
    let mut left = 0;
    for at in 1..rights.len() {
        let right = rights[at];
        let squares = |middle: usize| sums.over(left..middle).squares() + sums.over(middle..right).squares();
        let now = (squares(rights[at - 1]), rights[at - 1]);
        let others = (left + 1..right).map(|middle| (squares(middle), middle));
        left = others.fold(now, |best, other| if other.0 < best.0 { other } else { best }).1;
        rights[at - 1] = left;
    }
}

/// A number in the order of numbers.
#[derive(Clone, Copy, PartialEq)]
struct ByNumber(f64);

impl Eq for ByNumber {}

impl PartialOrd for ByNumber {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByNumber {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
