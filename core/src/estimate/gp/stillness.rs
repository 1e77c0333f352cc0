//! Follows which events hold still: those of which the last stay foretells the next one better than the process does.
//!
//! A program that does the same for seconds and then another thing has levels and variances at large that say nothing
//! of either: the process draws estimates to them, and scaled counts are nearer.

use super::super::fading::FadingMean;
use super::window::LeftOut;

/// How far stays of each event were from what the process and the stay before said of them.
#[derive(Clone, Debug)]
pub(crate) struct Stillness {
    events: Vec<Foretold>,
}

/// How far stays of an event were from what was said of them, relative to its mean rate.
#[derive(Clone, Copy, Debug, Default)]
struct Foretold {
    by_process: FadingMean,
    by_last: FadingMean,
    /// How far stays of the present window were from the one before, at most.
    farthest_now: f64,
}

/// What a window keeps of those before.
const KEPT: f64 = 0.9;
/// A stay is no farther off than this, relative to the event's mean rate: one jump isn't all.
const FARTHEST: f64 = 1.0;
/// So few stays tell nothing.
const LEAST_STAYS: f64 = 4.0;
/// How sharply the better one is preferred.
const SHARP: i32 = 8;
/// What changes by more, relative to its mean rate, doesn't hold still.
const STILL: f64 = 0.15;

impl Stillness {
    pub(crate) fn new(events: usize) -> Self {
        Self { events: vec![Foretold::default(); events] }
    }

    /// Takes a window's stays.
    pub(crate) fn window(&mut self, stays: &[LeftOut]) {
        for event in &mut self.events {
            event.by_process.forget(KEPT);
            event.by_last.forget(KEPT);
            event.farthest_now = 0.0;
        }
        for stay in stays {
            let Some(by_last) = stay.off_last else { continue };
            let event = &mut self.events[stay.event];
            event.by_process.add(stay.off.min(FARTHEST));
            event.by_last.add(by_last.min(FARTHEST));
            event.farthest_now = event.farthest_now.max(by_last);
        }
    }

    /// How much of an event's estimate is its scaled count.
    pub(crate) fn part(&self, event: usize) -> f64 {
        let Foretold { by_process, by_last, farthest_now } = self.events[event];
        let Some(change) = by_last.mean().filter(|_| by_last.weight > LEAST_STAYS) else { return 0.0 };
        let [process, last] = [by_process, by_last].map(|off| (off.sum + 1e-4).powi(SHARP));
        let moves = change.max(farthest_now) / STILL;
        process / (process + last) / (1.0 + moves.powi(SHARP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of its estimate is scaled after so many windows of a stay each, this far from what the process and the
    /// stay before said.
    fn part(windows: usize, off: f64, off_last: Option<f64>) -> f64 {
        let mut stillness = Stillness::new(1);
        let stay = LeftOut { event: 0, square: 1.0, off, off_last };
        (0..windows).for_each(|_| stillness.window(std::slice::from_ref(&stay)));
        stillness.part(0)
    }

    #[test]
    fn an_event_that_holds_still_is_scaled_by_hand() {
        // 1 / (1 + 2^-8), and the other way round.
        assert!((part(20, 0.04, Some(0.02)) - 256.0 / 257.0).abs() < 1e-3);
        assert!((part(20, 0.02, Some(0.04)) - 1.0 / 257.0).abs() < 1e-3);
        assert!((part(20, 0.02, Some(0.02)) - 0.5).abs() < 1e-6);
        // What moves by more isn't still, whoever foretells it.
        assert!((part(20, 3.0, Some(0.15)) - 0.5).abs() < 1e-6 && part(20, 9.0, Some(0.6)) < 1e-4);
    }

    #[test]
    fn in_a_window_with_a_jump_nothing_is_still() {
        let mut stillness = Stillness::new(1);
        let stay = |off_last| LeftOut { event: 0, square: 1.0, off: 0.1, off_last: Some(off_last) };
        (0..20).for_each(|_| stillness.window(&[stay(0.01)]));
        assert!(stillness.part(0) > 0.99);
        stillness.window(&[stay(0.01), stay(0.7)]);
        assert!(stillness.part(0) < 0.01);
        stillness.window(&[stay(0.01)]);
        assert!(stillness.part(0) > 0.5);
    }

    #[test]
    fn few_stays_tell_nothing() {
        // 1 + 0.9 + 0.81 + 0.729 and 0.6561 are just above four.
        assert_eq!([part(0, 0.2, Some(0.05)), part(4, 0.2, Some(0.05)), part(20, 0.2, None)], [0.0; 3]);
        assert!(part(5, 0.2, Some(0.05)) > 0.99);
    }

    proptest::proptest! {
        #[test]
        fn a_part_is_one_and_grows_with_how_far_the_process_is_off(
            off in 0.0..2.0f64, more in 0.0..2.0f64, by_last in 0.0..2.0f64, windows in 0usize..30,
        ) {
            let [less, more] = [off, off + more].map(|off| part(windows, off, Some(by_last)));
            proptest::prop_assert!(0.0 <= less && less <= more + 1e-12 && more <= 1.0, "{less} {more}");
        }
    }
}
