//! Finds least squares with no coefficient below 0, by Lawson's and Hanson's active sets.
//!
//! "Solving Least Squares Problems" (1974), chapter 23: the coefficient whose increase helps most becomes free; where the
//! least squares of the free ones go below 0, the step ends at the first that becomes 0, and that one is no longer free.

use super::{Equations, length};

/// More steps for each column than any problem needs that isn't stopped by rounding.
const STEPS: usize = 30;

pub(super) fn solve(equations: &Equations) -> Vec<f64> {
    let small = small(equations);
    let (columns, target) = (small.matrix.columns(), &small.target);
    let count = columns.len();
    let mut x = vec![0.0; count];
    let mut is_free = vec![false; count];
    let norms: Vec<f64> = columns.iter().map(|column| length(column)).collect();
    let least = 10.0 * f64::EPSILON * count as f64 * length(target);
    let mut refused = vec![false; count];
    for _ in 0..STEPS * count {
        let gain = small.matrix.transposed_times(&small.residuals(&x));
        let helps = |&j: &usize| !is_free[j] && !refused[j] && norms[j] > 0.0 && gain[j] / norms[j] > least;
        let best = (0..count).filter(helps).max_by(|&a, &b| (gain[a] / norms[a]).total_cmp(&(gain[b] / norms[b])));
        let Some(best) = best else { break };
        is_free[best] = true;
        if free_solution(&small, &is_free)[best] <= 0.0 {
            // Rounding alone said that it helps.
            (is_free[best], refused[best]) = (false, true);
            continue;
        }
        refused.fill(false);
        descend(&small, &mut x, &mut is_free);
    }
    x
}

/// Goes to the least squares of the free coefficients, as far as none goes below 0.
fn descend(small: &Equations, x: &mut [f64], is_free: &mut [bool]) {
    while is_free.contains(&true) {
        let to = free_solution(small, is_free);
        let blocks = |j: &usize| is_free[*j] && to[*j] <= 0.0;
        let step = |j: usize| x[j] / (x[j] - to[j]);
        let first = (0..x.len()).filter(blocks).min_by(|&a, &b| step(a).total_cmp(&step(b)));
        let Some(first) = first else {
            x.copy_from_slice(&to);
            return;
        };
        let part = step(first);
        x.iter_mut().zip(&to).for_each(|(x, to)| *x += part * (to - *x));
        x[first] = 0.0;
        for (x, is_free) in x.iter_mut().zip(is_free.iter_mut()) {
            *is_free &= *x > 0.0;
        }
    }
}

/// Least squares of the free coefficients; the others are 0.
fn free_solution(small: &Equations, is_free: &[bool]) -> Vec<f64> {
    let free: Vec<usize> = (0..is_free.len()).filter(|&j| is_free[j]).collect();
    let found = small.matrix.select(&free).factored(small.target.clone()).solution();
    let mut x = vec![0.0; is_free.len()];
    free.into_iter().zip(found).for_each(|(j, value)| x[j] = value);
    x
}

/// Equations of as many rows as columns that have the same least squares.
pub(super) fn small(equations: &Equations) -> Equations {
    let reduced = equations.matrix.reduced(&equations.target);
    Equations { matrix: reduced.triangle(), target: reduced.head }
}
