//! Finds coefficients that a few measurements far off hardly move, by Huber's regression.

use super::Equations;

/// Residuals up to so many standard deviations count in full. It costs 5 % of efficiency where errors are Gaussian
/// (Huber, "Robust Statistics", 1981, chapter 7).
const IN_FULL: f64 = 1.345;
/// The standard deviation of Gaussian errors over the median of their sizes.
const OF_MEDIAN: f64 = 1.4826;
/// The most steps; ten are usual.
const STEPS: usize = 100;

/// The weight of each residual: 1 up to 1.345 standard deviations, which come from the median of their sizes, and then
/// as much less as it lies further off.
pub fn huber_weights(residuals: &[f64], coefficients: usize) -> Vec<f64> {
    let mut sizes: Vec<f64> = residuals.iter().map(|residual| residual.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // As many residuals as there are coefficients may be 0 by the fit alone.
    let counted = &sizes[coefficients.min(sizes.len().saturating_sub(1))..];
    let median = counted.get(counted.len() / 2).copied().unwrap_or(0.0);
    let limit = IN_FULL * OF_MEDIAN * median;
    residuals.iter().map(|residual| if residual.abs() <= limit { 1.0 } else { limit / residual.abs() }).collect()
}

/// Least squares again and again, weighted by what the last one left.
pub(super) fn solve(equations: &Equations) -> Vec<f64> {
    let mut x = equations.matrix.reduced(&equations.target).solution();
    for _ in 0..STEPS {
        let weights = huber_weights(&equations.residuals(&x), x.len());
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        let weighted = equations.scaled_rows(&roots);
        let new = weighted.matrix.reduced(&weighted.target).solution();
        let moved = new.iter().zip(&x).any(|(new, old)| (new - old).abs() > 1e-10 * old.abs());
        x = new;
        if !moved {
            break;
        }
    }
    x
}
