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
    use super::super::threads::WhichThreads;
    use super::super::time::Span;
    use super::super::window::{Observation, Window, WindowScale};
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

    /// Covariances of the constant and of white noise, as much of each; nothing fades.
    fn covariances(events: usize, own: f64, shared: f64) -> Covariances {
        let mut covariances = Covariances::zeros(events);
        for a in 0..events {
            for b in 0..events {
                let value = if a == b { own } else { shared };
                (covariances.at_mut(a, b)[CONSTANT], covariances.at_mut(a, b)[WHITE]) = (value, value);
            }
        }
        covariances
    }

    /// Observations of events in turn, each of the length over which white noise has variance one.
    fn window(events: usize, values: &[f64]) -> Window {
        let observation = |(place, &value): (usize, &f64)| Observation {
            event: place % events,
            span: Span { start: WHITE_SPAN * place as f64, end: WHITE_SPAN * (place + 1) as f64 },
            stay: place as u64,
            value,
            noise: 0.0,
            sampling_deviation: 0.0,
            threads: WhichThreads::All,
        };
        Window::new(values.iter().enumerate().map(observation).collect(), vec![WindowScale::AT_LARGE; events])
    }

    fn after(window: &Window, mut covariances: Covariances, rate: f64) -> Covariances {
        let solved = window.solve(&covariances).unwrap_or_else(|| unreachable!());
        step(&solved, &mut covariances, rate, Pace::Exact);
        covariances
    }

    #[test]
    fn a_step_goes_towards_what_was_seen_by_hand() {
        // One value of 2 where the variance is 1: it is 4 of an expected 1, weighs 7 / (6 + 4), and D is 0.7 x 4 - 1.
        // C + C D C is 0.5 + 0.25 x 1.8 of the constant, and of the noise, of which there is one value.
        let found = after(&window(1, &[2.0]), covariances(1, 0.5, 0.0), 1.0);
        let [constant, slow, fast, white] = *found.at(0, 0);
        assert!((constant - 0.95).abs() < 1e-6 && (white - 0.95).abs() < 1e-6, "{found:?}");
        assert!(slow <= 1.01 * FLOOR && fast <= 1.01 * FLOOR);
        // What is as large as it was expected to be moves nothing; a step of half the rate goes half as far.
        let same = after(&window(1, &[1.0]), covariances(1, 0.5, 0.0), 1.0);
        assert!((same.at(0, 0)[CONSTANT] - 0.5).abs() < 1e-6);
        let half = after(&window(1, &[2.0]), covariances(1, 0.5, 0.0), 0.5);
        assert!((half.at(0, 0)[CONSTANT] - 0.725).abs() < 1e-6);
    }

    #[test]
    fn a_window_without_observations_teaches_nothing() {
        let before = covariances(2, 0.5, 0.3);
        let found = after(&window(2, &[]), before.clone(), 1.0);
        for (a, b) in [(0, 0), (0, 1), (1, 1)] {
            assert!((found.at(a, b)[CONSTANT] - before.at(a, b)[CONSTANT]).abs() < 1e-6);
        }
    }

    proptest::proptest! {
        #[test]
        fn covariances_stay_positive_definite(
            values in proptest::collection::vec(-50.0..50.0f64, 0..12), shared in -0.4..0.4f64, rate in 0.0..5.0f64,
        ) {
            let found = after(&window(2, &values), covariances(2, 0.5, shared), rate);
            for process in 0..PROCESSES {
                proptest::prop_assert!(found.process(process).cholesky(), "{found:?}");
            }
        }
    }
}
