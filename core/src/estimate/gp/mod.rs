//! Estimates the counts of intervals and runs from rounds of multiplexed counts, by a Gaussian process.
//!
//! A Gaussian process over all events. The rate of an event relative to its mean is a sum of
//! processes with different memories (`time`), each of which has a covariance between every pair
//! of events (`covariance`). Events that are counted so say something of those that aren't, at
//! the same time and shortly before and after. What is counted in stays is joined to
//! blocks (`blocks`); a window's blocks are solved for what the window counted (`window`), and
//! for how covariances should change (`learn`). Three things keep it honest: covariances are
//! scaled by how much events vary at present (`volatility`) and then fitted to the window itself,
//! going only a part of the way there for good; intervals are those of Student's t, as variances
//! come from few observations; and an event that was counted for the whole of an interval is not
//! touched.
//!
//! Words for times on the counters: a *slice* is the time between two changes of what is counted. A *stay* is the time
//! that an event is on a counter without a break, one slice or several; in rotations events take *turns*, each of which
//! is a stay. A *slot* is a place in the order of turns, which events share that are counted together. A *block* is
//! what a part of a stay counted (`blocks`), a *piece* what a longer part did, which is compared with earlier ones
//! (`analogs`).
//!
//! Constants that name no source were chosen on the conditions of the accuracy bench (`benches/accuracy.rs`), by
//! coverage first and by error then; `docs/estimator-experiments.md` says what was tried and what it gave.

mod aliasing;
mod analogs;
mod blocks;
mod bursts;
mod calibration;
mod covariance;
mod estimates;
mod fits;
mod hindsight;
mod interval;
mod learn;
mod lessons;
mod level;
mod model;
mod observations;
mod prior;
mod quiet;
mod regression;
mod relation;
mod settings;
mod stays;
mod stillness;
#[cfg(test)]
mod tests;
mod threads;
mod time;
mod total;
mod volatility;
mod widths;
mod window;

pub use aliasing::Factors;
pub use model::{CovarianceModel, ModelError};
pub use prior::{Complete, Prior};
pub use relation::Constraint;
use relation::SumMisfit;
pub use settings::{Memory, Settings};
use stillness::Stillness;
pub use time::{CpuClock, Span};
use time::{PerProcess, ROUND_MS};
pub use total::Total;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::rates::{Confidence, Delta, Uncertain};
use crate::units::CpuNs;
use aliasing::Aliasing;
use analogs::{Analogs, Piece, TurnTimes};
use blocks::{Blocks, CountBlock, SEVERAL};
use calibration::{Calibration, TurnOrder, Turns};
use covariance::Covariances;
use hindsight::History;
use interval::WindowSum;
use level::Level;
use model::Learning;
use stays::StaySpread;
use threads::{Concurrency, Threads, WhichThreads};
use total::ranked;
use volatility::{Share, Volatility};
use widths::Sides;
pub(super) use window::Posterior;
use window::WindowScale;

/// An event as the estimator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// Name of the event, by which a prior knows it.
    pub name: String,
    /// When it is counted.
    pub counted: WhenCounted,
}

/// When an event is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenCounted {
    /// In turns with others, as far as is known before a run.
    InTurns,
    /// Always, on a counter of its own.
    Always,
    /// Always, by software.
    BySoftware,
}

impl WhenCounted {
    /// Whether it is counted all the time.
    pub fn is_always(self) -> bool {
        self != Self::InTurns
    }
}

/// The least relative half width of an interval's count: a switch of groups and the interrupt around it take some
/// microseconds of each slice, which no group counts. Intervals of 100 ms in a guest with two groups differed by 0.18 %
/// from those with a counter all the time.
pub(super) const SWITCHES: f64 = 0.002;

/// How far a clock may be in a round from the time that it was on a counter, as a part of that and beside it: the
/// kernel takes both at slightly other moments.
const CLOCK_ROUND: (f64, CpuNs) = (0.01, CpuNs(20_000));

/// A delta with what can't be put right: nothing runs for longer than it is enabled, and what didn't run counted
/// nothing.
fn sane(delta: Delta) -> Delta {
    let running = delta.running.min(delta.enabled);
    Delta { count: if running > CpuNs(0) { delta.count } else { 0 }, running, ..delta }
}

/// Whether an event counted the time that it was on a counter, as `task-clock` does: it then had the time in which it
/// wasn't, too.
fn is_clocked(counted: Delta, part: f64, slack: CpuNs) -> bool {
    let nanoseconds = counted.running.0 as f64;
    (counted.count as f64 - nanoseconds).abs() <= part * nanoseconds + slack.0 as f64
}

/// The longest CPU time of an event, in milliseconds.
fn longest(deltas: &[Delta]) -> f64 {
    deltas.iter().map(|delta| delta.enabled).max().unwrap_or_default().as_ms()
}

/// Length of the process' unit of time, in ms of CPU time, for a rotation cycle of `windows`.
fn time_unit(windows: f64) -> f64 {
    if windows < SHORTEST_SLOWED_CYCLE { 1.0 } else { windows.min(LARGEST_TIME_UNIT) }
}

/// The variance of rates between threads, over that of a thread in time, before any were seen.
const BETWEEN_THREADS: f64 = 3.0;
/// Where the unit of time is longer, in ms, stays are so far apart that the last rate may say more than the mean does.
const TIME_UNIT_OF_FAR_STAYS: f64 = 3.0;
/// Where it is longer than 1 ms and stays take so long, it may, too, and the moments at which other events were as they
/// are now say more than both.
const LONG_TURN_MS: f64 = 50.0;
/// A cycle of fewer windows is followed as it is.
const SHORTEST_SLOWED_CYCLE: f64 = 2.0;
/// The longest unit of time, in ms.
const LARGEST_TIME_UNIT: f64 = 100.0;
/// Covariances are fitted anew after so long.
const FIT_EVERY_MS: f64 = 75.0;
/// Before the first fit it is as if it had been to so many observations of each event: a prior says more of variances
/// than few observations.
const UNFITTED: u64 = 6;

/// Estimates multiplexed counts by a Gaussian process over all events.
#[derive(Clone)]
pub struct Gp {
    settings: Settings,
    rotation_ms: f64,
    events: Vec<EventSpec>,
    constraints: Constraints,
    times: ProcessTimes,
    counted: CountedSoFar,
    process: FittedProcess,
    blocks: Blocks,
    levels: Vec<Level>,
    stays: Vec<StaySpread>,
    /// Whether each event counted the time that it ran, in all rounds.
    may_be_clocks: Vec<bool>,
    regressors: Regressors,
    aliasing: Aliasing,
    /// What was counted where the rotation is slow.
    analogs: Analogs,
    calibration: Calibration,
    stillness: Stillness,
    /// The rounds of multiplexed events without a count.
    empty: Share,
    /// How turns on the counters go.
    turns: Turns,
    /// How many intervals ended.
    intervals: u64,
    unsolved: UnsolvedWindows,
    /// How many threads ran in the last window, on average.
    mean_threads: f64,
    /// Which thread was counted when, if that is known.
    threads: Threads,
    /// What a learning run keeps; clones share it, and the next field.
    learning: Option<Arc<Learning>>,
    /// The windows so far, where they are kept.
    history: Option<Arc<History>>,
}

/// What is known of sums of counts.
#[derive(Clone, Default)]
struct Constraints {
    all: Vec<Constraint>,
    /// How far each relation's sum was off, in windows.
    misfits: BTreeMap<usize, SumMisfit>,
}

/// How far the process has come: in CPU time, and in units of its own time.
#[derive(Clone)]
struct ProcessTimes {
    /// CPU time so far, in milliseconds.
    elapsed: f64,
    /// How many milliseconds of CPU time a unit of the process' time has: where a cycle of the rotation takes long, all
    /// that is looked at lasts as much longer.
    unit: f64,
    window_start: f64,
    fitted_until: f64,
    end: f64,
}

/// What each event counted.
#[derive(Clone)]
struct CountedSoFar {
    /// Since the last window ended.
    window: Vec<Delta>,
    /// What the windows since the last interval ended add up to.
    interval: Vec<WindowSum>,
    /// What the windows of all intervals that ended add up to.
    run_sums: Vec<WindowSum>,
    /// Since the start.
    run: Vec<Delta>,
}

impl CountedSoFar {
    /// Nothing of so many events.
    fn nothing(events: usize) -> Self {
        let (counts, sums) = (vec![Delta::default(); events], vec![WindowSum::default(); events]);
        Self { window: counts.clone(), interval: sums.clone(), run_sums: sums, run: counts }
    }
}

/// The covariances of the process, and how much events vary at present.
#[derive(Clone)]
struct FittedProcess {
    /// How events vary together at large.
    covariances: Covariances,
    /// Covariances as fitted to the last window.
    present: Covariances,
    /// How many observations of each event `present` was fitted to.
    observed: Vec<u64>,
    fitted_windows: u64,
    volatilities: Vec<Volatility>,
    /// What volatilities make of the covariances at present.
    scales: Vec<WindowScale>,
    /// Variances of events' mean rates, relative to their levels, by the covariances before they were fitted to the
    /// window.
    at_large: Vec<f64>,
}

impl FittedProcess {
    /// A process of so many events that was fitted to no window.
    fn unfitted(covariances: Covariances, events: usize) -> Self {
        Self {
            present: covariances.clone(),
            covariances,
            observed: vec![UNFITTED; events],
            fitted_windows: 0,
            volatilities: vec![Volatility::new(); events],
            scales: vec![WindowScale::AT_LARGE; events],
            at_large: vec![0.0; events],
        }
    }
}

/// The events that are always counted, on which totals are regressed.
#[derive(Clone)]
struct Regressors {
    events: Vec<usize>,
    /// What each event counted before they were chosen.
    before: Vec<Delta>,
    /// Whether it was looked which events turned out to be always counted.
    were_sought: bool,
}

/// Whether any window of this interval had no solution, so that it was scaled; and of the one before.
#[derive(Clone, Copy, Default)]
struct UnsolvedWindows {
    now: bool,
    before: bool,
}

/// The most events that are estimated together. Of each pair four covariances are kept several times over, so that
/// 512 events take 55 MB and 2,000 would take 840, and a minute; a program's cores, threads and what they count are
/// more than that at times, and then too many to have much in common.
pub const MAX_EVENTS: usize = 512;

impl Gp {
    /// An estimator of these events, [`MAX_EVENTS`] at most. What a model of earlier runs holds of them goes before
    /// what the prior says.
    pub fn new(
        events: &[EventSpec],
        rotation_ms: f64,
        settings: Settings,
        prior: &Prior,
        model: Option<&CovarianceModel>,
    ) -> Self {
        let always: Vec<bool> = events.iter().map(|event| event.counted.is_always()).collect();
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let mut covariances = prior.covariances(&names, settings.prior_doubt);
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
        Self {
            constraints: Constraints::default(),
            times: ProcessTimes {
                elapsed: 0.0,
                unit: time_unit(rotation_ms / Turns::USUAL.stay_ms),
                window_start: 0.0,
                fitted_until: 0.0,
                end: 0.0,
            },
            counted: CountedSoFar::nothing(n),
            process: FittedProcess::unfitted(covariances, n),
            blocks: Blocks::new(&always),
            levels: names.iter().map(level).collect(),
            stays: vec![StaySpread::default(); n],
            may_be_clocks: vec![true; n],
            regressors: Regressors {
                events: ranked((0..n).filter(|&event| always[event]).collect(), events),
                before: vec![Delta::default(); n],
                were_sought: false,
            },
            aliasing: Aliasing::new(ranked((0..n).collect(), events)),
            analogs: Analogs::new(n),
            calibration: Calibration::new(n, settings.usual_squares),
            stillness: Stillness::new(n),
            empty: Share::default(),
            turns: Turns { stay_ms: rotation_ms.max(Turns::USUAL.stay_ms), ..Turns::USUAL },
            intervals: 0,
            unsolved: UnsolvedWindows::default(),
            mean_threads: 1.0,
            threads: Threads::new(rotation_ms),
            learning: None,
            history: None,
            settings,
            rotation_ms,
            events: events.to_vec(),
        }
    }

    /// Puts these in place of what was known of the events' counts.
    pub fn constrain_to(&mut self, constraints: Vec<Constraint>) {
        self.constraints.all.clear();
        constraints.into_iter().for_each(|constraint| self.constrain(constraint));
    }

    /// Adds what is known of the events' counts, as of each window from now on.
    fn constrain(&mut self, constraint: Constraint) {
        if constraint.terms.iter().all(|&(event, factor)| event < self.events.len() && factor.is_finite()) {
            self.constraints.all.push(constraint);
        }
    }

    /// Takes a round: a delta for each event. Rounds of no length are ignored.
    pub fn round(&mut self, round: Span, deltas: &[Delta]) {
        let length = round.length();
        if !(length > 0.0 && length.is_finite()) {
            return;
        }
        self.times.elapsed += length;
        let deltas: Vec<Delta> = deltas.iter().take(self.events.len()).copied().map(sane).collect();
        self.aliasing.round(length, &deltas);
        let round = Span { start: self.times.end, end: self.times.end + length / self.times.unit };
        let regressors = self.of_regressors(|regressor| deltas.get(regressor).and_then(Delta::rate).unwrap_or(0.0));
        self.threads.round(round, self.times.unit, &deltas);
        for (event, &delta) in deltas.iter().enumerate() {
            self.blocks.push(event, round, self.times.unit, &delta);
            let [a, b, c] = regressors.map(|rate| rate * delta.running.as_ms());
            self.stays[event].push([delta.count as f64, a, b, c], delta.running.as_ms(), length, self.rotation_ms);
            self.may_be_clocks[event] &= is_clocked(delta, CLOCK_ROUND.0, CLOCK_ROUND.1);
            self.counted.window[event] += delta;
            self.counted.interval[event].counted += delta;
            self.counted.run[event] += delta;
            if !self.events[event].counted.is_always() && delta.running > CpuNs(0) {
                self.empty.add(delta.count == 0);
            }
        }
        self.times.end = round.end;
        if self.times.end - self.times.window_start >= self.settings.window_ms - 1e-6 {
            self.end_window();
        }
    }

    /// Whether the counts of any window of the last interval were scaled, as rounding left covariances without a
    /// solution.
    pub fn was_unsolved(&self) -> bool {
        self.unsolved.before
    }

    /// Whether a cycle of the rotation, from one turn of an event to its next, takes longer than two windows, so that
    /// the process says little more than what was counted.
    pub fn is_slow(&self) -> bool {
        self.times.unit > 1.0
    }

    /// Whether turns are so long, and cycles of them, that a window sees little more than one turn.
    fn is_in_long_turns(&self) -> bool {
        self.is_slow() && self.turns.stay_ms >= LONG_TURN_MS
    }

    /// Whether the last rate of an event may say more than its mean does.
    fn may_hold_rates(&self) -> bool {
        self.times.unit > TIME_UNIT_OF_FAR_STAYS || self.is_in_long_turns()
    }

    /// By what factors counts may be off because the rotation beats with the program, if it does.
    pub fn aliasing(&self) -> Option<Factors> {
        self.aliasing.factors(&self.counted.run).filter(|_| self.mean_threads < SEVERAL)
    }

    /// Ends an interval: what each event counted since the last one; `None` for an event that has
    /// never been counted.
    pub fn interval(&mut self, confidence: Confidence) -> Vec<Option<Uncertain>> {
        self.end();
        self.intervals += 1;
        self.unsolved.before = std::mem::take(&mut self.unsolved.now);
        // In slow rotations estimates aren't those of a level.
        let may_hold = self.may_hold_rates();
        let is_of_level = |event: usize| !self.levels[event].is_silent() && !may_hold;
        let sides = |event: usize| {
            let ms = self.counted.interval[event].counted.enabled.as_ms();
            let mean = self.levels[event].rate().unwrap_or(0.0) * ms;
            let sum = &self.counted.interval[event];
            Sides::new(sum, mean, self.stays[event].stays(), self.tail(event))
                .up_to(sum, self.most_above(event, sum.counted))
        };
        let sides: Vec<Option<Sides>> =
            (0..self.events.len()).map(|event| is_of_level(event).then(|| sides(event))).collect();
        for (sum, sides) in self.counted.interval.iter_mut().zip(sides) {
            sum.sides = sides.unwrap_or(Sides::ALIKE);
        }
        let interval = &self.counted.interval;
        self.history.iter_mut().for_each(|history| Arc::make_mut(history).end_interval(interval));
        for (run, sum) in self.counted.run_sums.iter_mut().zip(&self.counted.interval).filter(|(_, sum)| sum.known) {
            run.add(sum.estimate, sum.square.sqrt());
            run.counted += sum.counted;
        }
        let aliasing = self.aliasing();
        let ended = self.counted.interval.iter_mut().map(std::mem::take);
        let estimates: Vec<_> = ended.map(|sum| sum.estimate(confidence, aliasing)).collect();
        for (run, estimate) in self.counted.run_sums.iter_mut().zip(&estimates) {
            let (low, high) = estimate.and_then(|estimate| estimate.bounds()).unwrap_or_default();
            run.reach += high - low;
        }
        estimates
    }

    /// Ends the last window, as at the end of a run.
    pub fn end(&mut self) {
        if self.times.end > self.times.window_start {
            self.end_window();
        }
    }

    /// Makes this a learning run, from before its first round: its windows, after those of earlier runs, are kept for
    /// [`Gp::model`].
    pub fn learning(mut self, earlier: Option<&CovarianceModel>) -> Self {
        self.learning = Some(Arc::new(Learning::new(earlier, &self.names(), self.process.covariances.clone())));
        self
    }

    /// What this run and those before it teach, for later runs, which takes seconds; `None` of other runs.
    pub fn model(&self) -> Option<CovarianceModel> {
        let run = model::Run {
            names: self.names(),
            rates: self.counted.run.iter().map(Delta::rate).collect(),
            time_ms: longest(&self.counted.run),
        };
        let observation =
            |block: &CountBlock, rate, own: &PerProcess| self.observation(block, rate, WindowScale::AT_LARGE, own);
        Some(CovarianceModel::learn(run, self.learning.as_deref()?, &self.settings, observation))
    }

    fn names(&self) -> Vec<String> {
        self.events.iter().map(|event| event.name.clone()).collect()
    }

    fn end_window(&mut self) {
        let span = Span { start: self.times.window_start, end: self.times.end };
        self.times.window_start = self.times.end;
        self.mean_threads = longest(&self.counted.window) / (span.length() * self.times.unit);
        self.blocks.cut();
        let may_hold = self.may_hold_rates();
        for (level, counted) in self.levels.iter_mut().zip(&self.counted.window) {
            if may_hold {
                level.hold(counted.count as f64, counted.running.as_ms());
            }
            level.update(counted.count as f64, counted.running.as_ms(), span.length(), self.settings.level_memory);
        }
        self.follow_threads(span);
        self.keep_window(span);
        let analogs = if self.is_in_long_turns() { self.analogs(span) } else { Vec::new() };
        let since = self.times.fitted_until;
        let fitted = (self.times.end - since >= FIT_EVERY_MS).then(|| self.fit(since));
        // Short windows are fitted together.
        let fitted = fitted.filter(|_| since >= span.start - 1e-6).unwrap_or_else(|| {
            self.process.at_large.fill(0.0);
            self.unfitted(span.start)
        });
        self.estimate(span, &fitted.solve(&self.process.present), &analogs);
        self.counted.window.fill(Delta::default());
        self.follow_stays();
        self.look_for_regressors();
        let memory = self.settings.context_ms.max(Settings::LEAST_MS) + self.settings.window_ms.max(FIT_EVERY_MS);
        self.blocks.forget(self.times.end - memory);
    }

    /// The rate of each event while it wasn't counted in a window, by analogues.
    fn analogs(&mut self, window: Span) -> Vec<Option<f64>> {
        let turn = self.turns.stay_ms;
        let ms = |time: f64| self.times.elapsed - (self.times.end - time) * self.times.unit;
        for block in self.blocks.ended_since(window.start) {
            let span = Span { start: ms(block.span.start), end: ms(block.span.end) };
            let piece = Piece { span, count: block.count, running: block.running, stay: block.stay };
            self.analogs.add(block.event, piece, 0.5 * turn);
        }
        let cycle = self.times.unit * self.settings.window_ms;
        self.analogs.rates(Span { start: ms(window.start), end: self.times.elapsed }, &TurnTimes { turn, cycle })
    }

    /// Follows how turns on the counters go, and the unit of time with which a cycle of the rotation, from one stay
    /// of an event to its next, lasts for a window.
    fn follow_stays(&mut self) {
        let multiplexed = || (0..self.events.len()).filter(|&event| !self.events[event].counted.is_always());
        let stay = |event: usize| Some((self.stays[event].stay_ms()?, self.counted.run[event].run_ratio().max(1e-3)));
        let mut stays: Vec<(f64, f64)> = multiplexed().filter_map(stay).collect();
        if stays.is_empty() || matches!(self.concurrency(), Concurrency::Sampled | Concurrency::ToldApart) {
            return;
        }
        stays.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let drawn = multiplexed().filter(|&event| self.stays[event].are_drawn()).count();
        let order = if 2 * drawn > stays.len() { TurnOrder::Drawn } else { TurnOrder::Same };
        self.turns = Turns { stay_ms: stays[stays.len() / 2].0, order };
        let mut cycles: Vec<f64> = stays.iter().map(|(stay_ms, counted)| stay_ms / counted).collect();
        cycles.sort_unstable_by(f64::total_cmp);
        self.times.unit = time_unit(cycles[cycles.len() / 2] / self.settings.window_ms);
    }

    /// Follows how much events vary at present.
    fn follow(&mut self, since: f64) {
        let observations = self.observations(since);
        let (all, covariances) = (&mut self.process.volatilities, &self.process.covariances);
        let window = Span { start: since, end: self.times.end };
        volatility::update_all(all, window, &observations, covariances, &self.settings);
        // Of events in bursts one says nothing of the size of the next.
        let bursts = self.empty.is_most();
        let scales = || volatility::scales(all, covariances);
        self.process.scales = if bursts { vec![WindowScale::AT_LARGE; all.len()] } else { scales() };
    }

    /// Keeps the window since then, where this is a learning run.
    fn keep_lesson(&mut self, since: f64) {
        if let Some(learning) = &mut self.learning {
            let window = self.blocks.joined(since - self.settings.context_ms, since, ROUND_MS);
            Arc::make_mut(learning).lessons.add(window);
        }
    }

    /// Which threads the count of each event in the window is of: all.
    fn targets(&self) -> Vec<WhichThreads> {
        let target = |event| if self.threads.are_known() { self.threads.target(event) } else { WhichThreads::All };
        (0..self.events.len()).map(target).collect()
    }

    /// The rate of an event at present, per millisecond of CPU time; `None` if it was never counted.
    fn rate(&self, event: usize) -> Option<f64> {
        let rate = self.levels[event].rate()?;
        Some(if self.threads.are_known() { self.threads.mean(event) } else { rate })
    }

    /// How many threads ran in the last window, and what is known of them.
    fn concurrency(&self) -> Concurrency {
        match self.mean_threads {
            _ if self.threads.are_known() => Concurrency::ToldApart,
            threads if threads < SEVERAL => Concurrency::Alone,
            threads if threads > SEVERAL => Concurrency::Sampled,
            _ => Concurrency::Unclear,
        }
    }

    /// Whether several threads ran of which it isn't known which one was counted when.
    fn samples_threads(&self) -> bool {
        self.concurrency() == Concurrency::Sampled
    }

    /// Finds which threads were counted when in a window, and the rate of each.
    fn follow_threads(&mut self, window: Span) {
        let were_known = self.threads.are_known();
        let may_tell = self.settings.tells_threads_apart && !self.may_hold_rates();
        if !may_tell || self.concurrency() == Concurrency::Alone {
            return self.threads.skip();
        }
        self.threads.follow(window, self.times.unit, window.start - Settings::LEAST_MS);
        let are_known = self.threads.are_known();
        if are_known != were_known && self.process.fitted_windows > 0 {
            // Covariances are those of one thread, or of the mean over all.
            let threads = if are_known { self.mean_threads } else { 1.0 / self.mean_threads };
            for covariances in [&mut self.process.covariances, &mut self.process.present] {
                covariances.rescale(|_| threads.max(1e-3).sqrt());
            }
        }
        if !are_known {
            return;
        }
        self.threads.forget_rates(self.settings.level_memory.kept(window.length()));
        for block in self.blocks.joined(window.start, window.start, ROUND_MS) {
            self.threads.add(block.event, block.span, block.running, block.rate());
        }
        for event in 0..self.events.len() {
            if let Some(rate) = self.levels[event].rate() {
                self.threads.solve(event, rate);
            }
        }
    }
}
