//! Windows' observations in, covariances that make them likelier out.

use super::covariance::Covariances;
use super::linear_algebra::{Square, dot};
use super::time::{CONSTANT, MEMORIES, PROCESSES, WHITE, WHITE_SPAN};
use super::window::Solved;

/// No relative variance is below this, so that covariances stay positive definite.
const FLOOR: f64 = 1e-6;

/// A step of expectation maximisation: C + rate / n * C D C for each process, with D twice the
/// gradient of the log likelihood and n the number of independent values that the process took.
///
/// A window that is a surprise as a whole counts for less, by the weight of Student's t with
/// [`Solved::DEGREES`] degrees of freedom.
pub(crate) fn step(solved: &mut Solved<'_>, covariances: &mut Covariances, rate: f64, pace: Pace) {
    let mut active: Vec<usize> = solved.observations.iter().map(|o| o.event).collect();
    active.sort_unstable();
    active.dedup();
    let weight = (1.0 / solved.scale()).min(1.0);
    let gradient = solved.gradient(&active, weight);
    let start = solved.observations.iter().map(|o| o.span.start).fold(f64::INFINITY, f64::min);
    let end = solved.observations.iter().map(|o| o.span.end).fold(f64::NEG_INFINITY, f64::max);
    for (process, gradient) in gradient.iter().enumerate() {
        let rate = rate / pace.independent(process, end - start);
        let before = covariances.process(process);
        // Steps are longer than those that can't fail; where one does, a shorter one is taken.
        let after = (0..4).find_map(|halvings| {
            let after = stepped(&before, gradient, &active, rate * 0.5f64.powi(halvings));
            after.clone().cholesky().then_some(after)
        });
        if let Some(after) = after {
            covariances.set_process(process, &after);
        }
    }
}

/// How long steps are for their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Those of expectation maximisation, for learning in many steps.
    Exact,
    /// Longer where a process fades, for following a run.
    Fast,
}

impl Pace {
    /// How many independent values a process takes in a time: one, or as many as there are rounds. The
    /// fast pace takes a fading one for twice as many as there are memories in it: about as many as
    /// can be told apart.
    fn independent(self, process: usize, length: f64) -> f64 {
        match (process, self) {
            (CONSTANT, _) => 1.0,
            (WHITE, _) | (_, Self::Exact) => length / WHITE_SPAN,
            (_, Self::Fast) => 2.0 * (1.0 + length / MEMORIES[process - 1]),
        }
        .max(1.0)
    }
}

/// C + rate * C D C, where D is zero but for the active events.
fn stepped(before: &Square, gradient: &Square, active: &[usize], rate: f64) -> Square {
    let (events, size) = (before.size(), active.len());
    let rows: Vec<Vec<f64>> = (0..events).map(|e| active.iter().map(|&a| before.at(e, a)).collect()).collect();
    let mut after = before.clone();
    let mut product = vec![0.0; size];
    for a in 0..events {
        for (b, product) in product.iter_mut().enumerate() {
            *product = dot(&rows[a], gradient.row(b));
        }
        for (b, row) in rows[..=a].iter().enumerate() {
            *after.at_mut(a, b) += rate * dot(&product, row);
        }
        let diagonal = after.at_mut(a, a);
        *diagonal = diagonal.max(FLOOR) + 0.01 * FLOOR;
    }
    after.mirror();
    after
}

const _: () = assert!(PROCESSES == MEMORIES.len() + 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_pace_is_longer_where_a_process_fades() {
        // A window of 100 ms holds 25 rounds, and two thirds of a memory of 150 ms.
        let fading = CONSTANT + 1;
        assert!((Pace::Exact.independent(fading, 100.0) - 25.0).abs() < 1e-12);
        assert!((Pace::Fast.independent(fading, 100.0) - 2.0 * (1.0 + 100.0 / 150.0)).abs() < 1e-12);
        for pace in [Pace::Exact, Pace::Fast] {
            assert_eq!((pace.independent(CONSTANT, 100.0), pace.independent(WHITE, 1.0)), (1.0, 1.0));
        }
    }
}
