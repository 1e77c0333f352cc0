//! Finds the stays of a window in which an event burst, and holds them to say little of other events.
//!
//! What events share is known to some per cent at best. Where one bursts to a thousand times its rate, the process
//! takes that part of it for what others do, although their own stays saw them go on as before: they would have half or
//! twice their counts. So a stay of a size that neither its event's past nor any other event explains is taken to be as
//! uncertain as it is a surprise, for all events but its own: its square is that of the largest surprise that is
//! believed (so far from the rest, a t distribution weighs it so, too: Lange, Little and Taylor, Robust Statistical
//! Modeling Using the t Distribution, 1989).

use super::window::{Observation, Solved};

/// A stay is a burst where the square of how far it is off, over what was expected, is more than this: both without
/// what other stays say and with it. Of the stays of the traces' programs 0.1 to 0.3 % are off by so much.
const SURPRISE: f64 = 200.0;

/// A window's observations in which bursts say little, and the events that they are of.
pub(crate) struct Tempered {
    pub(crate) observations: Vec<Observation>,
    pub(crate) is_bursting: Vec<bool>,
}

/// The window of this many events with its bursts tempered; `None` where it has none.
pub(crate) fn tempered(solved: &Solved<'_>, events: usize) -> Option<Tempered> {
    let mut is_bursting = vec![false; events];
    let mut observations: Vec<Observation> = Vec::new();
    for stay in solved.surprises(SURPRISE) {
        if observations.is_empty() {
            observations.clone_from(&solved.window.observations);
        }
        is_bursting[stay.event] = true;
        // With as much more variance its square would be what is a burst at least.
        let noise = stay.off.powi(2) * (1.0 / SURPRISE - 1.0 / stay.square) * stay.effective;
        stay.places.iter().for_each(|&place| observations[place].noise += noise);
    }
    (!observations.is_empty()).then_some(Tempered { observations, is_bursting })
}

#[cfg(test)]
mod tests {
    use super::super::covariance::Covariances;
    use super::super::threads::WhichThreads;
    use super::super::time::{CONSTANT, Span, WHITE, WHITE_SPAN};
    use super::super::window::{Window, WindowScale};
    use super::*;

    #[test]
    fn observations_of_a_stay_share_the_noise_by_their_lengths_by_hand() {
        // One of 4 ms and one of 12: as sure as 16^2 / (4^2 + 12^2) = 1.6 of one length.
        let observation = |start: f64, end: f64| Observation {
            event: 0,
            span: Span { start, end },
            stay: 0,
            value: 40.0,
            noise: 0.0,
            sampling_deviation: 0.0,
            threads: WhichThreads::All,
        };
        let seen = vec![observation(0.0, 4.0), observation(4.0, 16.0)];
        let found = temper(&Window::new(seen, vec![WindowScale::AT_LARGE; 2]), &covariances(WHITE));
        let noise: Vec<f64> = found.iter().flat_map(|found| &found.observations).map(|o| o.noise).collect();
        // White noise has a variance of 1 over 4 ms, a quarter over 16: of 8 are to be added 7.75.
        assert!(noise.len() == 2 && noise.iter().all(|noise| (noise - 1.6 * 7.75).abs() < 1e-9), "{noise:?}");
    }

    /// Observations of the length of white noise, one after the other: event, stay, value.
    fn window(seen: &[(usize, u64, f64)]) -> Window {
        let observation = |(place, &(event, stay, value)): (usize, &(usize, u64, f64))| {
            let start = WHITE_SPAN * place as f64;
            let span = Span { start, end: start + WHITE_SPAN };
            Observation { event, span, stay, value, noise: 0.0, sampling_deviation: 0.0, threads: WhichThreads::All }
        };
        Window::new(seen.iter().enumerate().map(observation).collect(), vec![WindowScale::AT_LARGE; 2])
    }

    /// Two events of variance one: of white noise each, or of one constant that they share but for a hundredth.
    fn covariances(process: usize) -> Covariances {
        let mut covariances = Covariances::zeros(2);
        let shared = if process == CONSTANT { 0.99 } else { 0.0 };
        for (a, b, value) in [(0, 0, 1.0), (0, 1, shared), (1, 0, shared), (1, 1, 1.0)] {
            covariances.at_mut(a, b)[process] = value;
        }
        covariances
    }

    fn temper(window: &Window, covariances: &Covariances) -> Option<Tempered> {
        let solved = window.solve(covariances).unwrap_or_else(|| unreachable!());
        tempered(&solved, 2)
    }

    #[test]
    fn a_burst_has_as_much_noise_as_it_is_a_surprise_by_hand() {
        // 40 deviations: the square is 1,600, so that a variance of 8 makes it 200. In a stay of two observations the
        // mean has a variance of a half, of which the noise of each adds a half.
        let seen = window(&[(0, 0, 0.5), (1, 1, 40.0), (0, 2, -0.5), (0, 3, 40.0), (0, 3, 40.0)]);
        let found = temper(&seen, &covariances(WHITE)).unwrap_or_else(|| unreachable!());
        assert_eq!(found.is_bursting, [true, true]);
        let noise: Vec<f64> = found.observations.iter().map(|o| o.noise).collect();
        for (found, expected) in noise.iter().zip([0.0, 7.0, 0.0, 15.0, 15.0]) {
            assert!((found - expected).abs() < 1e-9, "{noise:?}");
        }
    }

    #[test]
    fn what_another_event_or_the_own_variance_explains_is_no_burst() {
        // 14 deviations are less than the root of 200; no observations are none.
        for calm in [&[(0, 0, 14.0), (1, 1, -14.0)][..], &[]] {
            assert!(temper(&window(calm), &covariances(WHITE)).is_none());
        }
        // Both events went to 40, and go along.
        let together = window(&[(0, 0, 40.0), (1, 1, 40.0)]);
        assert!(temper(&together, &covariances(CONSTANT)).is_none());
    }

    proptest::proptest! {
        #[test]
        fn only_bursts_are_tempered(values in proptest::collection::vec(-60.0f64..60.0, 1..12)) {
            let seen: Vec<_> = values.iter().enumerate().map(|(i, &value)| (i % 2, i as u64, value)).collect();
            let found = temper(&window(&seen), &covariances(WHITE));
            let is_burst = |value: &f64| value.powi(2) > SURPRISE;
            proptest::prop_assert_eq!(found.is_some(), values.iter().any(is_burst));
            for (o, value) in found.iter().flat_map(|found| &found.observations).zip(&values) {
                proptest::prop_assert_eq!(o.noise > 0.0, is_burst(value));
            }
        }
    }
}
