//! Holds the numbers that the estimator was tuned to; docs/estimator-experiments.md says what they were chosen by.

use serde::{Deserialize, Serialize};

use super::time::ROUND_MS;

/// How much is remembered of what was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Memory {
    /// The part that is kept of what was 100 milliseconds before.
    pub per_100_ms: f64,
}

impl Memory {
    /// The part that is kept of what was so many milliseconds before.
    pub(crate) fn kept(self, ms: f64) -> f64 {
        self.per_100_ms.powf(ms / 100.0)
    }
}

/// Settings of the estimator. The defaults are right for most purposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// A window is solved once so many milliseconds have passed, and at the end of an interval.
    pub window_ms: f64,
    /// Observations from so many milliseconds before a window take part in it, or from more, so that with
    /// the window they are [`Settings::LEAST_MS`].
    pub context_ms: f64,
    /// Where there are more observations than this, they are of longer blocks, and then only those
    /// from [`Settings::SHORT_CONTEXT_MS`] before the window take part.
    pub most_observations: usize,
    /// What is remembered of an event's level.
    pub level_memory: Memory,
    /// What is remembered of how much events vary at present.
    pub volatility_memory: Memory,
    /// What is remembered of how far levels are from those of the run.
    pub drift_memory: Memory,
    /// The first step of learning.
    pub first_step: f64,
    /// How fast steps get smaller: the step after n windows is the first one over 1 + n times this.
    pub step_decline: f64,
    /// No step is smaller than this.
    pub least_step: f64,
    /// So many steps fit the covariances to a window before it is estimated; one less where they are
    /// dear, as their cost grows with the cubes of the numbers of observations and events.
    pub fit_steps: usize,
    /// The part of the way to what was fitted to a window that covariances go for good.
    pub kept: f64,
    /// How much of a prior's covariance between two events isn't believed.
    pub prior_doubt: f64,
    /// The step with a model.
    pub model_step: f64,
    /// Whether covariances follow how much events vary at present.
    pub volatile: bool,
    /// Whether threads that rotate on their own are told apart, with covariances that are those of one thread. A
    /// model's are those of all threads together.
    pub tells_threads_apart: bool,
    /// Number of steps at the end of a learning run, over all windows that are kept.
    pub lesson_steps: usize,
    /// The first of the steps at the end of a learning run.
    pub lesson_first: f64,
    /// The last of the steps at the end of a learning run.
    pub lesson_last: f64,
    /// The half width of intervals, over that of Student's t with as many degrees of freedom as there
    /// are observations of the event in the window that covariances were fitted to.
    pub half_width: f64,
    /// Usual ratio of a stay's squared prediction error to its predicted variance, relative to that where covariances
    /// are fitted to each window; 1 there.
    pub usual_squares: f64,
}

impl Settings {
    /// The context where observations are many.
    pub const SHORT_CONTEXT_MS: f64 = 12.0;
    /// The least that a window and its context are together.
    pub const LEAST_MS: f64 = 70.0;
    /// Number of observations above which steps are expensive.
    const MANY_OBSERVATIONS: usize = 200;
    /// Number of events above which steps are expensive.
    const MANY_EVENTS: usize = 100;
    /// The usual squares of runs of what was learnt, chosen on the accuracy bench.
    const SQUARES_OF_MODEL: f64 = 1.4;

    /// The longest block of a multiplexed event that is one observation: the first of these with
    /// which observations aren't too many.
    pub(crate) const BLOCKS_MS: [f64; 6] = [ROUND_MS, 6.0, 8.0, 12.0, 16.0, 24.0];

    /// How many steps fit covariances of so many events to so many observations. Those of several threads say less of
    /// them.
    pub(crate) fn fits_to(&self, observations: usize, events: usize, several_threads: bool) -> usize {
        let dear = several_threads || observations > Self::MANY_OBSERVATIONS || events > Self::MANY_EVENTS;
        if dear { self.fit_steps.saturating_sub(1).max(self.fit_steps.min(1)) } else { self.fit_steps }
    }

    /// For a run of a program that was learnt before: its levels and covariances hold as they are,
    /// so steps are small, and stays that are left out are less well known than where covariances are fitted to them.
    #[must_use]
    pub fn with_model(self) -> Self {
        let step = self.model_step;
        let usual_squares = Self::SQUARES_OF_MODEL;
        Self { first_step: step, least_step: step, usual_squares, volatile: false, tells_threads_apart: false, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window_ms: 100.0,
            context_ms: 40.0,
            most_observations: 240,
            level_memory: Memory { per_100_ms: 0.985 },
            volatility_memory: Memory { per_100_ms: 0.9 },
            drift_memory: Memory { per_100_ms: 0.7 },
            first_step: 1.8,
            step_decline: 0.15,
            least_step: 1.2,
            fit_steps: 3,
            kept: 0.3,
            prior_doubt: 0.05,
            model_step: 0.6,
            volatile: true,
            tells_threads_apart: true,
            lesson_steps: 2000,
            lesson_first: 0.4,
            lesson_last: 0.02,
            half_width: 1.25,
            usual_squares: 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_fades_with_time_by_hand() {
        let memory = Memory { per_100_ms: 0.81 };
        assert_eq!([memory.kept(0.0), memory.kept(100.0)], [1.0, 0.81]);
        assert!((memory.kept(50.0) - 0.9).abs() < 1e-12 && (memory.kept(200.0) - 0.6561).abs() < 1e-12);
        // Nothing or all.
        assert_eq!([0.0, 1.0].map(|per_100_ms| Memory { per_100_ms }.kept(40.0)), [0.0, 1.0]);
        assert_eq!(serde_json::to_string(&memory).ok().as_deref(), Some("0.81"));
    }

    proptest::proptest! {
        #[test]
        fn what_is_kept_over_two_times_is_kept_over_both(
            per_100_ms in 0.01..1.0f64, first in 0.0..500.0f64, second in 0.0..500.0f64,
        ) {
            let memory = Memory { per_100_ms };
            let both = memory.kept(first) * memory.kept(second);
            proptest::prop_assert!((memory.kept(first + second) - both).abs() < 1e-9);
        }
    }
}
