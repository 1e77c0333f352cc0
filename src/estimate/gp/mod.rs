//! Estimates the counts of intervals and runs from rounds of multiplexed counts, by a Gaussian process.
//!
//! A Gaussian process over all events. The rate of an event relative to its mean is a sum of
//! processes with different memories (`time`), each of which has a covariance between every pair
//! of events (`covariance`). Events that are counted so say something of those that aren't, at
//! the same time and shortly before and after. What is counted in slices is joined to
//! blocks (`blocks`); a window's blocks are solved for what the window counted (`window`), and
//! for how covariances should change (`learn`). Three things keep it honest: covariances are
//! scaled by how much events vary at present (`volatility`) and then fitted to the window itself,
//! going only a part of the way there for good; intervals are those of Student's t, as variances
//! come from few observations; and an event that was counted for the whole of an interval is not
//! touched.
//!
//! `docs/estimator.md` says what was tried and what it gave.

mod aliasing;
mod blocks;
mod calibration;
mod covariance;
mod learn;
mod lessons;
mod level;
mod linear_algebra;
mod model;
mod prior;
mod relation;
mod settings;
#[cfg(test)]
mod tests;
mod time;
mod total;
mod volatility;
mod window;

pub use model::{CovarianceModel, ModelError};
pub use prior::{Complete, Prior};
pub use relation::Constraint;
pub use settings::Settings;
pub use time::{CpuClock, Span};

use crate::rates::{Confidence, Delta, Error, Uncertain};
use crate::units::CpuNs;
use aliasing::Aliasing;
use blocks::{Blocks, CountBlock, SEVERAL, WHOLE};
use calibration::Calibration;
use covariance::Covariances;
use lessons::Lessons;
use level::Level;
use total::TurnSpread;
use volatility::{Share, Volatility};
pub(super) use window::Posterior as Known;
use window::{Observation, Posterior, Solved, Window, WindowScale};

/// An event as the estimator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Name of the event, by which a prior knows it.
    pub name: String,
    /// Whether it has a counter of its own.
    pub always_counted: bool,
}

/// How counters are read and shared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Time between rounds, in ms of CPU time.
    pub read_ms: f64,
    /// The time between changes of what is counted.
    pub rotation_ms: f64,
}

/// What windows add up to in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct WindowSum {
    counted: Delta,
    estimate: f64,
    /// The square of the half width.
    square: f64,
    /// The half width in the last window.
    last: f64,
    known: bool,
}

impl WindowSum {
    /// Adds a window. Errors of neighbours are alike by about a half.
    fn add(&mut self, estimate: f64, half_width: f64) {
        self.estimate += estimate;
        self.square += half_width * (half_width + self.last);
        self.last = half_width;
        self.known = true;
    }
}

/// A delta with what can't be put right: nothing runs for longer than it is enabled, and what didn't run counted
/// nothing.
fn sane(delta: Delta) -> Delta {
    let running = delta.running.min(delta.enabled);
    Delta { count: if running > CpuNs(0) { delta.count } else { 0 }, running, ..delta }
}

/// The longest CPU time of an event, in milliseconds.
fn longest(deltas: &[Delta]) -> f64 {
    deltas.iter().map(|delta| delta.enabled).max().unwrap_or_default().as_ms()
}

/// Half the width of a 95 % interval, made that of an interval at another level as a normal variable's is.
fn at(confidence: Confidence, half_width: f64) -> f64 {
    half_width * confidence.normal() / Confidence::DEFAULT.normal()
}

/// An estimate of a count that is at least what was counted.
fn within(value: f64, error: Error, counted: Delta) -> Uncertain {
    Uncertain { value, error }.at_least(counted.count as f64)
}

/// An error of this half width, or more where counts may be off by factors.
fn widened(value: f64, half_width: f64, factors: Option<(f64, f64)>) -> Error {
    match (Error::of(half_width), factors) {
        (Error::Within { below, above }, Some((least, most))) => {
            Error::Within { below: below.max(value * (1.0 - least)), above: above.max(value * (most - 1.0)) }
        }
        (error, _) => error,
    }
}

/// What no rate fits, as a variance relative to the event's present one.
const NOISE: f64 = 2e-4;
/// Where events come in bursts, intervals are wider by this factor: what is next has heavier tails.
const BURSTS: f64 = 1.3;
/// The part that is kept of what was fitted to bursts: one says little of the next.
const KEPT_OF_BURSTS: f64 = 0.5;
/// The part that is kept, and the half width over Student's, where several threads are counted one by one: a window's
/// correlations are those of the threads that were counted.
const KEPT_OF_THREADS: f64 = 0.5;
const WIDTH_OF_THREADS: f64 = 0.8;
/// The variance of rates between threads, over that of a thread in time, before any were seen.
const BETWEEN_THREADS: f64 = 3.0;
/// The usual length of a turn: as many events as there are counters, of which one is changed every 4 ms.
const USUAL_TURN_MS: f64 = 16.0;
/// Where time is slowed down by more, turns are so far apart that the last rate may say more than the mean does.
const SLOW: f64 = 3.0;
/// Where it is slowed down by more, or more turns hold no count, totals are scaled counts.
const SLOW_TOTALS: f64 = 1.5;
const SELDOM: f64 = 0.1;
/// The same where intervals are shorter: more than neighbours have errors in common.
const SHORTEST_MS: f64 = 50.0;
/// Intervals are at least so many times as wide to a side as estimates were off then.
const OFF_WIDTH: f64 = 1.6;
/// The most that time is slowed down by.
const SLOWEST: f64 = 100.0;
/// Covariances are fitted anew after so long.
const FIT_EVERY_MS: f64 = 75.0;
/// Where fewer observations of an event were seen, it is as if there were so many.
const LEAST_OBSERVED: u64 = 2;
/// Before the first fit it is as if there were so many: a prior says more of variances than few observations.
const UNFITTED: u64 = 6;

/// Estimates multiplexed counts by a Gaussian process over all events.
pub struct Gp {
    settings: Settings,
    rotation_ms: f64,
    events: Vec<EventSpec>,
    constraints: Vec<Constraint>,
    blocks: Blocks,
    levels: Vec<Level>,
    volatilities: Vec<Volatility>,
    /// What volatilities make of the covariances at present.
    scales: Vec<WindowScale>,
    /// How events vary together at large.
    covariances: Covariances,
    /// Covariances as fitted to the last window.
    present: Covariances,
    /// How many observations of each event `present` was fitted to.
    observed: Vec<u64>,
    /// Since the last window, the last interval, the start.
    window: Vec<Delta>,
    interval: Vec<WindowSum>,
    run_sums: Vec<WindowSum>,
    run: Vec<Delta>,
    turns: Vec<TurnSpread>,
    aliasing: Aliasing,
    /// CPU time so far, in milliseconds.
    elapsed: f64,
    calibration: Calibration,
    /// Variances of events' mean rates, relative to their levels, by the covariances before they were fitted to the window.
    at_large: Vec<f64>,
    /// The rounds of multiplexed events without a count.
    empty: Share,
    window_start: f64,
    fitted_until: f64,
    end: f64,
    /// How many milliseconds of CPU time a unit of the process' time has: where a cycle of the rotation takes long, all
    /// that is looked at lasts as much longer.
    unit: f64,
    /// How many milliseconds a turn on the counters takes.
    turn_ms: f64,
    fitted_windows: u64,
    /// How many intervals ended.
    intervals: u64,
    /// Whether the last window had no solution, so that it was scaled.
    unsolved: bool,
    /// How many threads ran in the last window, on average.
    threads: f64,
    lessons: Option<Lessons>,
    /// Covariances that were known before the run.
    known_before: Covariances,
    model: Option<CovarianceModel>,
}

/// The most events that are estimated together. Of each pair four covariances are kept several times over, so that
/// 512 events take 55 MB and 2,000 would take 840, and a minute; a program's cores, threads and what they count are
/// more than that at times, and then too many to have much in common.
pub const MAX_EVENTS: usize = 512;

impl Gp {
    /// An estimator of these events, [`MAX_EVENTS`] at most. What a model of earlier runs holds of them goes before what
    /// the prior says.
    pub fn new(
        events: &[EventSpec],
        timing: Timing,
        settings: Settings,
        prior: &Prior,
        model: Option<&CovarianceModel>,
    ) -> Self {
        let always: Vec<bool> = events.iter().map(|event| event.always_counted).collect();
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let mut covariances = prior.covariances(&names, settings.doubt);
        if let Some(model) = model {
            model.replace(&names, &mut covariances);
        }
        for event in 0..events.len() {
            *covariances.between_threads_mut(event) =
                BETWEEN_THREADS * covariances.at(event, event).iter().sum::<f64>();
        }
        let n = events.len();
        let level = |name: &&str| match model.and_then(|model| model.level(name)) {
            Some(rate) if rate > 0.0 => Level::known(rate),
            _ => Level::default(),
        };
        let levels = names.iter().map(level).collect();
        Self {
            blocks: Blocks::new(&always, Settings::BLOCKS_MS[0]),
            settings,
            rotation_ms: timing.rotation_ms,
            events: events.to_vec(),
            constraints: Vec::new(),
            levels,
            volatilities: vec![Volatility::new(); n],
            scales: vec![WindowScale::AT_LARGE; n],
            known_before: covariances.clone(),
            present: covariances.clone(),
            observed: vec![UNFITTED; n],
            covariances,
            window: vec![Delta::default(); n],
            interval: vec![WindowSum::default(); n],
            run_sums: vec![WindowSum::default(); n],
            run: vec![Delta::default(); n],
            turns: vec![TurnSpread::default(); n],
            aliasing: Aliasing::new(n),
            elapsed: 0.0,
            calibration: Calibration::new(n),
            at_large: vec![0.0; n],
            empty: Share::default(),
            window_start: 0.0,
            fitted_until: 0.0,
            end: 0.0,
            unit: (timing.rotation_ms / USUAL_TURN_MS).max(1.0),
            turn_ms: timing.rotation_ms.max(USUAL_TURN_MS),
            fitted_windows: 0,
            intervals: 0,
            unsolved: false,
            threads: 1.0,
            lessons: None,
            model: model.cloned(),
        }
    }

    /// Puts these in place of what was known of the events' counts.
    pub fn constrain_to(&mut self, constraints: Vec<Constraint>) {
        self.constraints.clear();
        constraints.into_iter().for_each(|constraint| self.constrain(constraint));
    }

    /// Adds what is known of the events' counts, as of each window from now on.
    pub fn constrain(&mut self, constraint: Constraint) {
        if constraint.terms.iter().all(|&(event, factor)| event < self.events.len() && factor.is_finite()) {
            self.constraints.push(constraint);
        }
    }

    /// Takes a round: a delta for each event. Rounds of no length are ignored.
    pub fn round(&mut self, round: Span, deltas: &[Delta]) {
        let length = round.length();
        if !(length > 0.0 && length.is_finite()) {
            return;
        }
        self.elapsed += length;
        self.aliasing.round(length, deltas);
        let round = Span { start: self.end, end: self.end + length / self.unit };
        for (event, delta) in deltas.iter().enumerate().take(self.events.len()) {
            let delta = sane(*delta);
            self.blocks.push(event, round, self.unit, &delta);
            self.turns[event].push(delta.count as f64, delta.running.as_ms(), length, self.rotation_ms);
            self.window[event] += delta;
            self.interval[event].counted += delta;
            self.run[event] += delta;
            if !self.events[event].always_counted && delta.running > CpuNs(0) {
                self.empty.add(delta.count == 0);
            }
        }
        self.end = round.end;
        if self.end - self.window_start >= self.settings.window_ms - 1e-6 {
            self.end_window();
        }
    }

    /// Whether the last window's counts were scaled, as rounding left their covariances without a solution.
    pub fn is_unsolved(&self) -> bool {
        self.unsolved
    }

    /// By what factors counts may be off because the rotation beats with the program, if it does.
    pub fn aliasing(&self) -> Option<(f64, f64)> {
        self.aliasing.factors(self.elapsed, &self.run).filter(|_| self.threads < SEVERAL)
    }

    /// Ends an interval: what each event counted since the last one; `None` for an event that has
    /// never been counted.
    pub fn interval(&mut self, confidence: Confidence) -> Vec<Option<Uncertain>> {
        self.end();
        self.intervals += 1;
        for (run, sum) in self.run_sums.iter_mut().zip(&self.interval).filter(|(_, sum)| sum.known) {
            run.add(sum.estimate, sum.square.sqrt());
        }
        let sums = self.interval.iter_mut().map(std::mem::take);
        let aliasing = self.aliasing.factors(self.elapsed, &self.run).filter(|_| self.threads < SEVERAL);
        let estimates = sums.map(|sum| {
            let counted = sum.counted;
            match counted.run_ratio() {
                ratio if ratio >= WHOLE => Some(Uncertain::exact(counted.count as f64)),
                _ if !sum.known => None,
                _ => Some(within(
                    sum.estimate,
                    widened(sum.estimate, at(confidence, sum.square.sqrt()), aliasing),
                    counted,
                )),
            }
        });
        estimates.collect()
    }

    /// Ends the last window, as at the end of a run.
    pub fn end(&mut self) {
        if self.end > self.window_start {
            self.end_window();
        }
    }

    /// The half width of an event's 95 % interval, in standard deviations.
    fn half_width(&self, event: usize) -> f64 {
        let student = Confidence::DEFAULT.student(self.observed[event].max(LEAST_OBSERVED));
        let threads = if self.threads > SEVERAL { WIDTH_OF_THREADS } else { 1.0 };
        self.settings.half_width
            * student
            * threads
            * self.calibration.factor(event, self.turns[event].turns(), self.run[event].run_ratio())
            * if self.empty.is_most() || self.turns[event].empty() > 0.5 { BURSTS } else { 1.0 }
    }

    /// What each event counted in the run so far: between the scaled count, which is unbiased over many turns, with the
    /// error of a systematic sample, and the sum of the windows' estimates, which is nearer where there were few turns, by
    /// how sure both are. `None` for an event that has never been counted.
    pub fn totals(&self, confidence: Confidence) -> Vec<Option<Uncertain>> {
        let aliasing = self.aliasing();
        let total = |event: usize| {
            let run = self.run[event];
            if run.running == CpuNs(0) {
                return None;
            }
            if run.run_ratio() >= WHOLE {
                return Some(Uncertain::exact(run.count as f64));
            }
            let scaled = run.count as f64 / run.run_ratio();
            let (enabled, running) = (run.enabled.as_ms(), run.running.as_ms());
            let of_turns = self.turns[event].half_width(enabled, running);
            // What a Poisson process of the same rate leaves unseen is the least, of an event that was never seen as well.
            let poisson = (run.count as f64 + 0.5) * (enabled - running) * enabled / (running * running);
            let of_turns = of_turns.map(|half_width| half_width.max(Confidence::DEFAULT.normal() * poisson.sqrt()));
            let windows = &self.run_sums[event];
            // The fewer turns, the less is known of the level that all windows share.
            let of_windows = windows.square.sqrt() * (1.0 + 1.0 / (1.0 + self.turns[event].turns()));
            let is_steady = self.turns[event].empty() < SELDOM && !self.empty.is_most();
            let is_alone = longest(&self.run) < SEVERAL * self.elapsed && self.unit < SLOW_TOTALS;
            let is_usual = is_steady && is_alone && self.elapsed >= SHORTEST_MS * self.intervals as f64;
            let (value, half_width) = match of_turns {
                Some(of_turns) if windows.known && is_usual => {
                    let part = of_turns.powi(2) / (of_turns.powi(2) + of_windows.powi(2)).max(f64::MIN_POSITIVE);
                    (scaled + part * (windows.estimate - scaled), of_turns + part * (of_windows - of_turns))
                }
                Some(of_turns) => (scaled, of_turns),
                None if windows.known => (windows.estimate, of_windows),
                None => (scaled, scaled),
            };
            Some(within(value, widened(value, at(confidence, half_width), aliasing), run))
        };
        (0..self.events.len()).map(total).collect()
    }

    /// Makes this a learning run: its windows, after those of earlier runs, are kept for [`Gp::model`].
    pub fn learning(mut self) -> Self {
        let earlier = self.model.as_ref().and_then(|model| model.lessons(&self.names()));
        self.lessons = Some(earlier.cloned().unwrap_or_default());
        self
    }

    /// What this run and those before it teach, for later runs. Takes seconds of a learning run; without
    /// one it is what was known before.
    pub fn model(&self) -> CovarianceModel {
        let run = model::Run {
            names: self.names(),
            rates: self.run.iter().map(Delta::rate).collect(),
            time_ms: longest(&self.run),
            lessons: self.lessons.clone().unwrap_or_default(),
        };
        CovarianceModel::learn(
            run,
            self.model.as_ref(),
            self.known_before.clone(),
            &self.settings,
            |block, rate, own| self.observation(block, rate, WindowScale::AT_LARGE, own),
        )
    }

    fn names(&self) -> Vec<String> {
        self.events.iter().map(|event| event.name.clone()).collect()
    }

    fn end_window(&mut self) {
        let span = Span { start: self.window_start, end: self.end };
        self.window_start = self.end;
        self.threads = longest(&self.window) / (span.length() * self.unit);
        self.blocks.cut();
        for (level, counted) in self.levels.iter_mut().zip(&self.window) {
            if self.unit > SLOW {
                level.hold(counted.count as f64, counted.running.as_ms());
            }
            level.update(counted.count as f64, counted.running.as_ms(), span.length(), self.settings.level_memory);
        }
        let since = self.fitted_until;
        let fitted = (self.end - since >= FIT_EVERY_MS).then(|| self.fit(since));
        // Short windows are fitted together.
        let window = fitted.filter(|_| since >= span.start - 1e-6);
        let window = window.unwrap_or_else(|| {
            self.at_large.fill(0.0);
            Window::new(self.observations(span.start))
        });
        self.estimate(span, window.solve(&self.present).as_ref());
        self.window.fill(Delta::default());
        self.follow_turns();
        let memory = self.settings.context_ms.max(Settings::LEAST_MS) + self.settings.window_ms.max(FIT_EVERY_MS);
        self.blocks.forget(self.end - memory);
    }

    /// Follows how long turns on the counters take, and the unit of time with which a cycle of the rotation, from one turn
    /// of an event to its next, lasts for a window.
    fn follow_turns(&mut self) {
        let multiplexed = || (0..self.events.len()).filter(|&event| !self.events[event].always_counted);
        let turn = |event: usize| Some((self.turns[event].turn_ms()?, self.run[event].run_ratio().max(1e-3)));
        let mut turns: Vec<(f64, f64)> = multiplexed().filter_map(turn).collect();
        if turns.is_empty() || self.threads > SEVERAL {
            return;
        }
        turns.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.turn_ms = turns[turns.len() / 2].0;
        let mut cycles: Vec<f64> = turns.iter().map(|(turn_ms, counted)| turn_ms / counted).collect();
        cycles.sort_unstable_by(f64::total_cmp);
        self.unit = (cycles[cycles.len() / 2] / self.settings.window_ms).clamp(1.0, SLOWEST);
    }

    /// Fits covariances to the window since then: wholly for the time being, and in part for good.
    fn fit(&mut self, since: f64) -> Window {
        if self.settings.volatile {
            self.follow(since);
        }
        let window = Window::new(self.observations(since));
        let step = self.settings.first_step / (1.0 + self.settings.step_decline * self.fitted_windows as f64);
        let step = step.max(self.settings.least_step);
        self.present.clone_from(&self.covariances);
        let span = Span { start: since, end: self.end };
        self.at_large.fill(0.0);
        let fits = self.settings.fits_to(window.observations.len(), self.events.len(), self.threads > SEVERAL);
        for fit in 0..fits {
            let Some(solved) = window.solve(&self.present) else {
                self.present.clone_from(&self.covariances);
                break;
            };
            if fit == 0 && self.threads < SEVERAL {
                let known = solved.sums(span, &self.present, &self.scales);
                let part = solved.scale().max(0.25) / span.length().powi(2);
                self.at_large = (0..self.events.len()).map(|event| part * known.covariance.at(event, event)).collect();
            }
            if fit + 1 == fits && self.threads < SEVERAL {
                let surprise = solved.scale().max(0.25);
                let events = &self.events;
                let turns = solved.left_out(since).into_iter().filter(|&(event, _)| !events[event].always_counted);
                self.calibration
                    .window(self.turn_ms / self.unit, turns.map(|(event, square)| (event, square / surprise)));
            }
            learn::step(&solved, &mut self.present, step, learn::Pace::Fast);
        }
        let kept = self.settings.kept
            * if self.empty.is_most() { KEPT_OF_BURSTS } else { 1.0 }
            * if self.threads > SEVERAL { KEPT_OF_THREADS } else { 1.0 };
        self.covariances.approach(&self.present, kept);
        self.observed.fill(0);
        let new = window.observations.iter().filter(|o| o.span.start >= since - 1e-9);
        new.for_each(|o| self.observed[o.event] += 1);
        self.keep_lesson(since);
        self.fitted_windows += 1;
        self.fitted_until = self.end;
        window
    }

    /// Follows how much events vary at present.
    fn follow(&mut self, since: f64) {
        let observations = self.observations(since);
        let (all, covariances) = (&mut self.volatilities, &self.covariances);
        volatility::update_all(all, since, self.end, &observations, covariances, &self.settings);
        // Of events in bursts one says nothing of the size of the next.
        let bursts = self.empty.is_most();
        let scales = || volatility::scales(all, covariances);
        self.scales = if bursts { vec![WindowScale::AT_LARGE; all.len()] } else { scales() };
    }

    /// Keeps the window since then, where this is a learning run.
    fn keep_lesson(&mut self, since: f64) {
        if let Some(lessons) = &mut self.lessons {
            lessons.add(self.blocks.joined(since - self.settings.context_ms, since, lessons::BLOCK_MS));
        }
    }

    /// How long before it a window takes observations from.
    fn context(&self, since: f64) -> f64 {
        self.settings.context_ms.max(Settings::LEAST_MS - (self.end - since))
    }

    /// What blocks say of the time from shortly before `since`.
    fn observations(&self, since: f64) -> Vec<Observation> {
        let (most, context) = (self.settings.observations, self.context(since));
        let [.., longest] = Settings::BLOCKS_MS;
        let joined = |context: f64, longest: f64| self.blocks.joined(since - context, since, longest);
        let few = Settings::BLOCKS_MS.into_iter().map(|longest| joined(context, longest)).find(|all| all.len() <= most);
        let blocks = few.unwrap_or_else(|| joined(context.min(Settings::SHORT_CONTEXT_MS), longest));
        let observations = blocks.iter().filter_map(|block| {
            let rate = self.levels[block.event].rate()?;
            let scale = self.scales[block.event];
            Some(self.observation(block, rate, scale, self.covariances_of(block.event)))
        });
        observations.collect()
    }

    fn observation(&self, block: &CountBlock, rate: f64, scale: WindowScale, own: &time::PerProcess) -> Observation {
        // No error is smaller than what a rate of present size rounds to.
        let mut noise = NOISE * scale.rest.powi(2) * (10.0 * own[1]).min(1.0) + 1e-9;
        let between_threads = block.between_threads().sqrt();
        if between_threads == 0.0 && block.counted < WHOLE * block.span.length() {
            // It isn't known which part of the span was counted.
            let (part, whole) = (time::variances(block.counted), time::variances(block.span.length()));
            let more: f64 = (1..time::PROCESSES).map(|j| own[j] * (part[j] - whole[j])).sum();
            noise += scale.rest.powi(2) * more;
        }
        Observation {
            event: block.event,
            span: block.span,
            turn: block.turn,
            value: block.rate() / rate - 1.0,
            noise,
            between_threads,
            scale,
        }
    }

    fn covariances_of(&self, event: usize) -> &time::PerProcess {
        self.covariances.at(event, event)
    }

    /// Adds a window's estimates to the interval's.
    fn estimate(&mut self, span: Span, solved: Option<&Solved<'_>>) {
        self.unsolved = solved.is_none();
        let mut known = solved.map(|solved| self.counts(span, solved));
        if let Some(known) = &mut known {
            let cpu_ms = longest(&self.window);
            self.constraints.iter().for_each(|constraint| constraint.apply(known, cpu_ms));
        }
        // Bursts are quiet in between.
        let bursts = self.empty.is_most();
        for event in 0..self.events.len() {
            let counted = self.window[event];
            let Some(rate) = self.levels[event].rate() else { continue };
            let half_width = self.half_width(event);
            let sum = &mut self.interval[event];
            if counted.run_ratio() >= WHOLE {
                sum.add(counted.count as f64, 0.0);
                continue;
            }
            if self.levels[event].is_silent() {
                // Three times as often as the inverse of the time that it wasn't seen in: 95 %.
                let most = 3.0 * (counted.enabled - counted.running).as_ms() / self.levels[event].time();
                sum.add(0.0, most);
                continue;
            }
            let seen = counted.run_ratio() > 0.0;
            let scaled = if seen { counted.count as f64 / counted.run_ratio() } else { rate * counted.enabled.as_ms() };
            match &known {
                Some(known) if known.mean[event].is_finite() => {
                    let goes_on = if bursts { 1.0 } else { self.turns[event].goes_on() };
                    // Where it wasn't looked at, what may have stopped counted nothing.
                    let stopped = if seen { scaled } else { 0.0 };
                    let estimate = stopped + goes_on * (known.mean[event] - stopped);
                    let present = known.covariance.at(event, event).max(0.0);
                    let at_large = self.at_large[event] * (rate * counted.enabled.as_ms()).powi(2);
                    let deviation = self.calibration.deviation(present, at_large);
                    let (mut estimate, mut half_width) = (estimate, half_width * deviation);
                    if self.unit > SLOW {
                        let time = counted.enabled.as_ms();
                        estimate = time * self.levels[event].between(estimate / time);
                        half_width = half_width.max(OFF_WIDTH * time * self.levels[event].off());
                    }
                    sum.add(estimate.max(counted.count as f64), half_width);
                }
                _ => sum.add(scaled, half_width * scaled),
            }
        }
    }

    /// The process' means and covariances of counts.
    fn counts(&self, span: Span, solved: &Solved<'_>) -> Posterior {
        let mut known = solved.sums(span, &self.present, &self.scales);
        let surprise = solved.scale().max(0.25);
        // Per millisecond of the window, in which several threads may have run.
        let rates = self.levels.iter().zip(&self.window);
        let rate =
            |level: &Level, counted: &Delta| level.rate().unwrap_or(0.0) * counted.enabled.as_ms() / span.length();
        let rates: Vec<f64> = rates.map(|(level, counted)| rate(level, counted)).collect();
        for (event, &rate) in rates.iter().enumerate() {
            let exact = self.window[event].run_ratio() >= WHOLE;
            known.mean[event] = rate * (known.mean[event] + span.length());
            for (other, &other_rate) in rates.iter().enumerate() {
                let exact = exact || self.window[other].run_ratio() >= WHOLE;
                *known.covariance.at_mut(event, other) *= if exact { 0.0 } else { surprise * rate * other_rate };
            }
            if exact {
                known.mean[event] = self.window[event].count as f64;
            }
        }
        known
    }
}
