//! Windows' observations in, covariances that make them likelier out.

use super::covariance::Covariances;
use super::linear_algebra::{Square, dot};
use super::time::{CONSTANT, MEMORIES, PROCESSES, WHITE};
use super::window::{Observation, Solved};
use super::Tuning;

/// A step of expectation maximisation: C + rate / n * C D C, with D twice the gradient of the log
/// likelihood and n the number of independent values that the process took in the window.
pub(crate) fn step(
    observations: &[Observation],
    covariances: &mut Covariances,
    prior: &Covariances,
    rate: f64,
    tuning: &Tuning,
) {
    let Some(mut solved) = Solved::new(observations, covariances) else { return };
    let n = observations.len() as f64;
    let scale = (tuning.nu + solved.surprise) / (tuning.nu + n);
    let weight = (1.0 / scale).min(1.0);
    update(&mut solved, covariances, prior, rate, weight, tuning);
}

pub(crate) fn update(
    solved: &mut Solved<'_>,
    covariances: &mut Covariances,
    prior: &Covariances,
    rate: f64,
    weight: f64,
    tuning: &Tuning,
) {
    let mut active: Vec<usize> = solved.observations.iter().map(|o| o.event).collect();
    active.sort_unstable();
    active.dedup();
    let gradient = solved.gradient(&active, weight);
    let start = solved.observations.iter().map(|o| o.span.start).fold(f64::INFINITY, f64::min);
    let end = solved.observations.iter().map(|o| o.span.end).fold(0.0, f64::max);
    for (process, gradient) in gradient.iter().enumerate() {
        let independent = independent(process, end - start, tuning);
        let before = covariances.process(process);
        let after = (0..4).find_map(|halvings| {
            let after = stepped(&before, gradient, &active, rate * 0.5f64.powi(halvings) / independent);
            let mut check = after.clone();
            check.cholesky().then_some(after)
        });
        if let Some(after) = after {
            covariances.set_process(process, &after);
        }
    }
    if tuning.pull > 0.0 {
        let pull = tuning.pull * rate;
        for a in 0..covariances.events() {
            for b in 0..covariances.events() {
                for j in 0..PROCESSES {
                    let to = &mut covariances.at_mut(a, b)[j];
                    *to += pull * (prior.at(a, b)[j] - *to);
                }
            }
        }
    }
}

fn independent(process: usize, length: f64, tuning: &Tuning) -> f64 {
    match process {
        CONSTANT => tuning.n_scale[0],
        WHITE => (length / 4.0) * tuning.n_scale[PROCESSES - 1],
        fading => (1.0 + length / MEMORIES[fading - 1]) * tuning.n_scale[fading],
    }
}

/// C + rate * C D C, where D is zero but for the active events; with a floor on the diagonal.
fn stepped(before: &Square, gradient: &Square, active: &[usize], rate: f64) -> Square {
    let (events, size) = (before.size(), active.len());
    let rows: Vec<Vec<f64>> = (0..events).map(|e| active.iter().map(|&a| before.at(e, a)).collect()).collect();
    let mut after = before.clone();
    let mut product = vec![0.0; size];
    for a in 0..events {
        for (b, product) in product.iter_mut().enumerate() {
            *product = dot(&rows[a], gradient.row(b));
        }
        for b in 0..=a {
            *after.at_mut(a, b) += rate * dot(&product, &rows[b]);
        }
        let diagonal = after.at_mut(a, a);
        *diagonal = diagonal.max(1e-6);
    }
    after.mirror();
    for a in 0..events {
        *after.at_mut(a, a) += 1e-8;
    }
    after
}
