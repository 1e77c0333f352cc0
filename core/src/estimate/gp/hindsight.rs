//! Estimates the windows of a run once more when all of it is known: relative to the means of the run, with covariances
//! that all of it taught, and with what came after each window.

use std::sync::Arc;

use super::blocks::CountBlock;
use super::calibration::Turns;
use super::fits::FittedWindow;
use super::interval::WindowSum;
use super::level::Level;
use super::threads::Concurrency;
use super::time::Span;
use super::window::WindowScale;
use super::{FIT_EVERY_MS, Gp, UNFITTED};
use crate::rates::{Confidence, Delta, Uncertain};

/// The windows of a run so far.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    windows: Vec<PastWindow>,
    /// What was counted, in the order in which it ended.
    blocks: Vec<CountBlock>,
    intervals: Vec<PastInterval>,
}

/// An interval as it was estimated when it ended.
#[derive(Clone, Debug)]
struct PastInterval {
    /// How many windows there were by then.
    windows: usize,
    /// What they added up to for each event.
    live: Vec<WindowSum>,
}

/// A window, and the state of the process in it that only the rounds determine.
#[derive(Clone, Debug)]
struct PastWindow {
    span: Span,
    counted: Vec<Delta>,
    /// Whether no more than one thread ran at a time.
    is_alone: bool,
    turns: Turns,
    unit: f64,
}

/// Observations from so many milliseconds after a window take part in it, as many as from before it. 20 ms cost 0.01 of
/// the ratio to scaling's error, 60 win nothing.
const AHEAD_MS: f64 = 40.0;
/// The most observations; what comes after a window adds a quarter to those of 140 ms.
const OBSERVATIONS: usize = 300;
/// Half widths over those that a live run takes for the same variances: levels are known, and what comes after a window
/// bounds it.
const WIDTH: f64 = 0.5;
/// The least half width, as a part of the one at the interval's end: what a short run or bursts hide then stays hidden
/// later.
const LEAST_WIDTH: f64 = 0.8;

impl History {
    /// Takes the end of an interval, and what its windows add up to.
    pub(super) fn end_interval(&mut self, live: &[WindowSum]) {
        self.intervals.push(PastInterval { windows: self.windows.len(), live: live.to_vec() });
    }

    /// The blocks that ended in a span.
    fn blocks(&self, span: Span) -> &[CountBlock] {
        let place = |time: f64| self.blocks.partition_point(|block| block.span.end <= time + 1e-9);
        &self.blocks[place(span.start)..place(span.end)]
    }

    /// The windows, short ones with their neighbours: covariances are fitted to all of these together.
    fn stretches(&self) -> Vec<&[PastWindow]> {
        let mut stretches = Vec::new();
        let mut first = 0;
        for (place, window) in self.windows.iter().enumerate() {
            if window.span.end - self.windows[first].span.start >= FIT_EVERY_MS || place + 1 == self.windows.len() {
                stretches.push(&self.windows[first..=place]);
                first = place + 1;
            }
        }
        stretches
    }
}

impl WindowSum {
    /// The sum of other estimates of the same windows.
    fn again(&self, windows: impl Iterator<Item = Self>) -> Self {
        let mut again = Self { counted: self.counted, ..Self::default() };
        windows.filter(|window| window.known).for_each(|window| again.add(window.estimate, window.square.sqrt()));
        again.square = again.square.max(LEAST_WIDTH.powi(2) * self.square);
        again
    }
}

impl Gp {
    /// Keeps what [`Gp::hindsight`] needs, from before the first round: about 10 kB a window of 24 events on four
    /// counters.
    pub fn keeping_windows(mut self) -> Self {
        self.history = Some(Arc::default());
        self
    }

    /// Keeps the window that ends.
    pub(super) fn keep_window(&mut self, span: Span) {
        let is_alone = self.concurrency() == Concurrency::Alone;
        let (turns, unit) = (self.turns, self.times.unit);
        let Some(history) = self.history.as_mut().map(Arc::make_mut) else { return };
        history.windows.push(PastWindow { span, counted: self.counted.window.clone(), is_alone, turns, unit });
        history.blocks.extend(self.blocks.ended_since(span.start));
    }

    /// What [`Gp::interval`] answered for each interval, by all that the run has counted until now; `None` without
    /// [`Gp::keeping_windows`]. Intervals in which several threads ran stay as they were: what is counted of these is a
    /// sample of threads, and estimating them once more has made errors larger. Takes about twice the time that the
    /// run's own estimates took.
    pub fn hindsight(&self, confidence: Confidence) -> Option<Vec<Vec<Option<Uncertain>>>> {
        let history = self.history.as_ref()?;
        // As long as threads are told apart, covariances are those of one of them.
        if self.threads.are_known() || !history.windows.iter().any(|window| window.is_alone) {
            return None;
        }
        let mut later = self.knowing_all(confidence);
        let stretches = history.stretches();
        // Once more back to the beginning, whose covariances are least known.
        for stretch in stretches.iter().rev() {
            later.fit_stretch(history, stretch);
        }
        let windows: Vec<Vec<WindowSum>> =
            stretches.iter().flat_map(|stretch| later.estimate_stretch(history, stretch)).collect();
        let aliasing = self.aliasing();
        let mut first = 0;
        let intervals = history.intervals.iter().map(|interval| {
            let new = first..interval.windows;
            first = interval.windows;
            let is_alone = history.windows[new.clone()].iter().all(|window| window.is_alone);
            let estimate = |(event, live): (usize, &WindowSum)| {
                let again = || live.again(windows[new.clone()].iter().map(|window| window[event]));
                if is_alone { again() } else { *live }.estimate(confidence, aliasing)
            };
            interval.live.iter().enumerate().map(estimate).collect()
        });
        Some(intervals.collect())
    }

    /// A process that knows the levels and covariances of the run.
    fn knowing_all(&self, confidence: Confidence) -> Self {
        let mut later = Self { history: None, learning: None, ..self.clone() };
        for ((level, total), run) in later.levels.iter_mut().zip(self.totals(confidence)).zip(&self.counted.run) {
            if let Some(total) = total {
                let rate = total.count.value / run.enabled.as_ms();
                *level = Level::of_run(rate * run.running.as_ms(), run.running.as_ms());
            }
        }
        later.mean_threads = 1.0;
        later.process.scales.fill(WindowScale::AT_LARGE);
        later.process.observed.fill(UNFITTED);
        later.stays.iter_mut().for_each(|stays| stays.quiet.go_on());
        later.settings.volatile = false;
        later.settings.first_step = later.settings.least_step;
        later.settings.most_observations = later.settings.most_observations.max(OBSERVATIONS);
        later.settings.half_width *= WIDTH;
        later
    }

    /// Fits covariances to some windows, by what came before and after them.
    fn fit_stretch(&mut self, history: &History, stretch: &[PastWindow]) -> Option<FittedWindow> {
        let (first, last) = (stretch.first()?, stretch.last()?);
        (self.turns, self.times.unit) = (last.turns, last.unit);
        self.times.end = last.span.end;
        let before = self.context(first.span.start) + self.settings.window_ms;
        let around = Span { start: first.span.start - before, end: last.span.end + AHEAD_MS };
        self.blocks.replace(history.blocks(around));
        Some(self.fit(first.span.start))
    }

    /// Estimates these windows.
    fn estimate_stretch(&mut self, history: &History, stretch: &[PastWindow]) -> Vec<Vec<WindowSum>> {
        let Some(fitted) = self.fit_stretch(history, stretch) else { return Vec::new() };
        let present = self.process.present.clone();
        let solved = fitted.solve(&present);
        let mut estimate = |window: &PastWindow| {
            self.counted.window.clone_from(&window.counted);
            self.counted.interval.fill(WindowSum::default());
            self.estimate(window.span, &solved, &[]);
            self.counted.interval.clone()
        };
        stretch.iter().map(&mut estimate).collect()
    }
}
