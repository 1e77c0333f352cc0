//! Keeps windows of learning runs, and learns covariances from passes over all of them.

use serde::{Deserialize, Serialize};

use super::blocks::CountBlock;
use super::covariance::Covariances;
use super::learn;
use super::settings::Settings;
use super::window::{Observation, Window, WindowScale};
use crate::random;

/// The blocks of windows: a fair sample of those of all learning runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lessons {
    windows: Vec<Vec<CountBlock>>,
    /// Number of windows so far.
    seen: u64,
}

/// The most windows that are kept.
const KEPT: usize = 240;
/// The usual number of blocks in a window.
const USUAL: f64 = 250.0;

impl Lessons {
    /// Takes a window. Each of those seen is kept with the same probability (Vitter's algorithm R).
    pub(crate) fn add(&mut self, window: Vec<CountBlock>) {
        self.seen += 1;
        if self.windows.len() < KEPT {
            self.windows.push(window);
        } else if let Some(kept) = self.windows.get_mut(random_below(self.seen, self.seen)) {
            *kept = window;
        }
    }

    /// Number of windows so far.
    pub(crate) fn seen(&self) -> u64 {
        self.seen
    }

    /// Whether all blocks are of the first so many events, and sane.
    pub(crate) fn fit(&self, events: usize) -> bool {
        self.windows.iter().flatten().all(|block| block.event < events && block.is_sane())
    }

    /// How often so many steps go through all windows: once at least, and less often where windows hold
    /// more blocks than usual, as the time of a step grows by their square and more.
    fn passes(&self, steps: usize) -> usize {
        let windows = self.windows.len().max(1);
        let blocks = self.windows.iter().map(Vec::len).sum::<usize>() as f64 / windows as f64;
        let steps = steps as f64 * (USUAL / blocks).powi(2).min(1.0);
        (steps as usize / windows).max(1)
    }

    /// Passes over all windows, each in another order, with steps that get smaller.
    pub(crate) fn teach(
        &self,
        covariances: &mut Covariances,
        settings: &Settings,
        observation: impl Fn(&CountBlock, &Covariances) -> Option<Observation>,
    ) {
        let windows = self.windows.len();
        let passes = self.passes(settings.lesson_steps);
        for step in 0..passes * windows {
            let size = settings.lesson_first
                * (settings.lesson_last / settings.lesson_first).powf(step as f64 / (passes * windows) as f64);
            let window = &self.windows[shuffled(step % windows, (step / windows) as u64, windows)];
            let observations = window.iter().filter_map(|block| observation(block, covariances)).collect();
            let window = Window::new(observations, vec![WindowScale::AT_LARGE; covariances.events()]);
            if let Some(solved) = window.solve(covariances) {
                learn::step(&solved, covariances, size, learn::Pace::Exact);
            }
        }
    }
}

/// A place in an order that visits each of so many once, another one in each pass: steps of a length
/// that has no divisor in common with them.
fn shuffled(step: usize, pass: u64, windows: usize) -> usize {
    let coprime = |stride: &usize| gcd(*stride, windows) == 1;
    let first = 1 + random_below(pass + 1, windows as u64);
    let stride = (first..).find(coprime).unwrap_or(1);
    (step * stride + first) % windows
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// A number below, the same in every run.
fn random_below(seed: u64, below: u64) -> usize {
    (random::nth(seed) % below.max(1)) as usize
}

#[cfg(test)]
mod tests {
    use super::super::time::Span;
    use super::*;
    use proptest::prelude::*;

    fn window(number: usize) -> Vec<CountBlock> {
        let span = Span { start: 0.0, end: 1.0 };
        vec![CountBlock { event: number, span, count: 1.0, counted: 1.0, running: 1.0, threads: 1.0, stay: 0 }]
    }

    #[test]
    fn what_is_kept_comes_from_all_of_the_run() {
        let mut lessons = Lessons::default();
        (0..10 * KEPT).for_each(|number| lessons.add(window(number)));
        assert_eq!((lessons.windows.len(), lessons.seen), (KEPT, 10 * KEPT as u64));
        let late = lessons.windows.iter().filter(|window| window[0].event >= 5 * KEPT).count();
        // Half of them, give or take four standard deviations.
        assert!((late as f64 - 0.5 * KEPT as f64).abs() < 2.0 * (KEPT as f64).sqrt(), "{late}");
    }

    #[test]
    fn large_windows_are_passed_over_less_often() {
        let of = |blocks: usize| Lessons { windows: vec![window(0).repeat(blocks); 10], seen: 10 };
        // 2000 steps over ten windows; a quarter of them where there is twice as much; never none.
        assert_eq!([1, 250, 500, 100_000].map(|blocks| of(blocks).passes(2000)), [200, 200, 50, 1]);
        assert_eq!(Lessons::default().passes(2000), 2000);
    }

    #[test]
    fn without_windows_nothing_is_learnt() {
        let mut covariances = Covariances::zeros(2);
        Lessons::default().teach(&mut covariances, &Settings::default(), |_, _| None);
        assert_eq!(covariances, Covariances::zeros(2));
    }

    proptest! {
        #[test]
        fn a_pass_visits_each_window_once(windows in 1usize..300, pass in 0u64..100) {
            let mut places: Vec<_> = (0..windows).map(|step| shuffled(step, pass, windows)).collect();
            places.sort_unstable();
            prop_assert_eq!(places, (0..windows).collect::<Vec<_>>());
        }
    }
}
