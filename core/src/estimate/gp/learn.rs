//! Moves covariances towards what makes a window's observations likelier.

use super::covariance::Covariances;
use super::time::{CONSTANT, MEMORIES, PROCESSES, STAYS, WHITE, WHITE_SPAN};
use super::window::Solved;
use perfprop_linear_algebra::Square;

/// No relative variance is below this, so that covariances stay positive definite.
const FLOOR: f64 = 1e-6;

/// A step of expectation maximisation: C + rate / n * C D C for each process, with D twice the
/// gradient of the log likelihood and n the number of independent values that the process took.
///
/// A window that is a surprise as a whole counts for less, by the weight of Student's t with
/// [`Solved::DEGREES`] degrees of freedom.
pub(crate) fn step(solved: &Solved<'_>, covariances: &mut Covariances, rate: f64, pace: Pace) {
    let weight = (1.0 / solved.scale()).min(1.0);
    let gradient = solved.gradient(covariances.events(), weight);
    let length = solved.window.length();
    let seen = solved.window.seen();
    for (process, gradient) in gradient.processes.iter().enumerate() {
        let rate = rate / pace.independent(process, length);
        let before = covariances.process(process);
        let change = before.times_to_symmetric(&gradient.times(&before, seen), seen);
        // Steps are longer than those that can't fail; where one does, a shorter one is taken.
        let after = (0..4).find_map(|halvings| {
            let after = stepped(&before, &change, rate * 0.5f64.powi(halvings));
            after.clone().cholesky().then_some(after)
        });
        if let Some(after) = after {
            covariances.set_process(process, &after);
        }
    }
    let rate = rate / pace.independent(STAYS, length);
    for (event, gradient) in gradient.threads.iter().enumerate() {
        let variance = covariances.between_threads_mut(event);
        *variance =
            (*variance + rate * *variance * *variance * gradient).clamp(0.25 * *variance, 4.0 * *variance).max(FLOOR);
    }
}

/// How long steps are for their rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Steps of expectation maximisation, for learning in many steps.
    Exact,
    /// Longer where a process fades, for following a run.
    Fast,
}

impl Pace {
    /// How many independent values a process takes in a time: one, or as many as there are rounds. The
    /// fast pace takes a fading one for two, and two more for each memory in the time: about as many as
    /// can be distinguished.
    fn independent(self, process: usize, length: f64) -> f64 {
        match (process, self) {
            (CONSTANT, _) => 1.0,
            (WHITE, _) | (_, Self::Exact) => length / WHITE_SPAN,
            (_, Self::Fast) => 2.0 * (1.0 + length / MEMORIES[process - 1]),
        }
        .max(1.0)
    }
}

/// C + rate * change, symmetric and with no variance below the floor; of the change the lower triangle counts.
fn stepped(before: &Square, change: &Square, rate: f64) -> Square {
    let mut after = before.clone();
    for a in 0..before.size() {
        let row = after.row_mut(a);
        row.iter_mut().zip(change.row(a)).for_each(|(to, change)| *to += rate * change);
        row[a] = row[a].max(FLOOR) + 0.01 * FLOOR;
    }
    after.mirror();
    after
}

const _: () = assert!(PROCESSES == MEMORIES.len() + 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_symmetric_and_above_the_floor_by_hand() {
        let square = |values: [f64; 4]| {
            let mut square = Square::zeros(2);
            values.iter().enumerate().for_each(|(at, &value)| *square.at_mut(at / 2, at % 2) = value);
            square
        };
        // Of the change the lower triangle counts; the second variance would be -1.
        let after = stepped(&square([1.0, 0.5, 0.5, 1.0]), &square([2.0, 99.0, 1.0, -4.0]), 0.5);
        assert_eq!([after.at(0, 1), after.at(1, 0)], [1.0, 1.0]);
        assert_eq!([after.at(0, 0), after.at(1, 1)], [2.0 + 0.01 * FLOOR, 1.01 * FLOOR]);
        // No step leaves all as it was, but for what keeps variances above none.
        let still = stepped(&square([1.0, 0.5, 0.5, 1.0]), &square([2.0, 99.0, 1.0, -4.0]), 0.0);
        assert!((still.at(0, 0) - 1.0).abs() <= 0.01 * FLOOR && still.at(1, 0) == 0.5);
    }

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
