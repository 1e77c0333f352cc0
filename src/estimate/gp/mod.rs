//! Rounds of multiplexed counts in, estimates with intervals out: a Gaussian process over all
//! events that learns how they vary together.

mod blocks;
mod covariance;
mod learn;
mod linear_algebra;
mod prior;
mod time;
mod window;

pub use blocks::Delta;
pub use prior::Prior;
pub use time::Span;

use blocks::Blocks;
use covariance::Covariances;
mod trust;
use trust::{Trust, Turns};
mod scale;
use scale::Volatility;
use window::{Observation, Scale, Solved};

/// An event as the estimator knows it.
#[derive(Clone, Debug)]
pub struct EventSpec {
    /// Its name, by which a prior knows it.
    pub name: String,
    /// Whether it has a counter of its own.
    pub always_counted: bool,
}

/// Temporary knobs.
#[derive(Clone, Debug)]
pub struct Tuning {
    pub context: f64,
    pub longest: f64,
    pub longest_always: f64,
    pub nu: f64,
    pub decay: f64,
    pub replays: usize,
    pub rate_floor: f64,
    pub rate_start: f64,
    pub rate_slope: f64,
    pub replay_rate: f64,
    pub pull: f64,
    pub n_scale: [f64; time::PROCESSES],
    pub z: f64,
    pub kappa: f64,
    pub noise: f64,
    pub prior_diagonal: f64,
    pub no_prior: bool,
    pub reservoir: usize,
    pub standard: bool,
    pub equal: bool,
    pub t_pseudo: f64,
    pub t_decay: f64,
    pub v_decay: f64,
    pub v_pseudo: f64,
    pub v_level: f64,
    pub v_on: f64,
    pub v_floor: f64,
    pub v_lag: f64,
    pub unknown: f64,
    pub power: f64,
    pub memory: f64,
    pub memories: Vec<f64>,
}

impl Default for Tuning {
    fn default() -> Self {
        let mut tuning = Self {
            context: 50.0,
            longest: 8.0,
            longest_always: 4.0,
            nu: 6.0,
            decay: 0.985,
            replays: 0,
            rate_floor: 0.4,
            rate_start: 0.6,
            rate_slope: 0.15,
            replay_rate: 1.0,
            pull: 0.0,
            n_scale: [1.0, 2.0, 2.0, 1.0],
            z: 2.2,
            kappa: 0.13,
            noise: 2e-4,
            prior_diagonal: 0.2,
            no_prior: false,
            reservoir: 200,
            standard: true,
            equal: true,
            t_pseudo: 2.0,
            t_decay: 0.95,
            v_decay: 0.9,
            v_pseudo: 1.0,
            v_level: 0.7,
            v_on: 1.0,
            v_floor: 0.02,
            v_lag: 8.0,
            unknown: 1.0,
            power: 2.0,
            memory: 0.9,
            memories: vec![0.985],
        };
        let text = std::env::var("GP").unwrap_or_default();
        for pair in text.split_whitespace() {
            let (key, value) = pair.split_once('=').expect("k=v");
            let number = || value.parse::<f64>().expect("number");
            match key {
                "context" => tuning.context = number(),
                "longest" => tuning.longest = number(),
                "longest_always" => tuning.longest_always = number(),
                "nu" => tuning.nu = number(),
                "decay" => tuning.decay = number(),
                "replays" => tuning.replays = number() as usize,
                "rate_floor" => tuning.rate_floor = number(),
                "rate_start" => tuning.rate_start = number(),
                "rate_slope" => tuning.rate_slope = number(),
                "replay_rate" => tuning.replay_rate = number(),
                "pull" => tuning.pull = number(),
                "n" => {
                    for (to, from) in tuning.n_scale.iter_mut().zip(value.split(',')) {
                        *to = from.parse().expect("number");
                    }
                }
                "z" => tuning.z = number(),
                "kappa" => tuning.kappa = number(),
                "noise" => tuning.noise = number(),
                "prior_diagonal" => tuning.prior_diagonal = number(),
                "no_prior" => tuning.no_prior = true,
                "reservoir" => tuning.reservoir = number() as usize,
                "power" => tuning.power = number(),
                "memory" => tuning.memory = number(),
                "memories" => tuning.memories = value.split(',').map(|v| v.parse().expect("n")).collect(),
                "unknown" => tuning.unknown = number(),
                "v_decay" => tuning.v_decay = number(),
                "v_pseudo" => tuning.v_pseudo = number(),
                "v_level" => tuning.v_level = number(),
                "v_on" => tuning.v_on = number(),
                "v_floor" => tuning.v_floor = number(),
                "v_lag" => tuning.v_lag = number(),
                "t_pseudo" => tuning.t_pseudo = number(),
                "t_decay" => tuning.t_decay = number(),
                "standard" => tuning.standard = number() > 0.0,
                "equal" => tuning.equal = number() > 0.0,
                _ => panic!("{key}"),
            }
        }
        tuning
    }
}

/// An estimate of a count with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalEstimate {
    /// The count.
    pub estimate: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

mod level;
use level::Level;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    raw: f64,
    enabled: f64,
    running: f64,
}

/// The estimator.
pub struct Gp {
    tuning: Tuning,
    events: Vec<EventSpec>,
    blocks: Blocks,
    levels: Vec<Level>,
    interval: Vec<Sum>,
    run: Vec<Sum>,
    start: f64,
    end: f64,
    covariances: Covariances,
    prior: Covariances,
    scales: Vec<Volatility>,
    trust: Vec<Trust>,
    turns: Vec<Turns>,
    windows: u64,
    stored: Vec<Vec<Observation>>,
    random: u64,
    totals: Vec<f64>,
    total_variances: Vec<f64>,
}

impl Gp {
    /// `read_ms`: the time between rounds; `mux_ms`: between rotations.
    pub fn new(events: &[EventSpec], read_ms: f64, mux_ms: f64, prior: &Prior) -> Self {
        let tuning = Tuning::default();
        let always: Vec<bool> = events.iter().map(|event| event.always_counted).collect();
        let n = events.len();
        let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let covariances =
            if tuning.no_prior { Prior::default().covariances(&names, 0.2) } else { prior.covariances(&names, tuning.prior_diagonal) };
        Self {
            events: events.to_vec(),
            blocks: Blocks::new(&always, [tuning.longest, tuning.longest_always], mux_ms >= read_ms),
            levels: vec![Level::new(&tuning); n],
            interval: vec![Sum::default(); n],
            run: vec![Sum::default(); n],
            start: 0.0,
            end: 0.0,
            prior: covariances.clone(),
            covariances,
            trust: vec![Trust::default(); n],
            turns: vec![Turns::default(); n],
            scales: vec![Volatility::new(&tuning); n],
            windows: 0,
            stored: Vec::new(),
            random: 0x9e37_79b9_7f4a_7c15,
            totals: vec![0.0; n],
            total_variances: vec![0.0; n],
            tuning,
        }
    }

    /// Takes a round.
    pub fn round(&mut self, round: Span, deltas: &[Delta]) {
        for (event, delta) in deltas.iter().enumerate() {
            self.blocks.push(event, round, delta);
            for sum in [&mut self.interval[event], &mut self.run[event]] {
                sum.raw += delta.raw;
                sum.enabled += delta.enabled_ns;
                sum.running += delta.running_ns;
            }
        }
        self.end = round.end;
        for (event, delta) in deltas.iter().enumerate() {
            self.turns[event].push(delta.raw, delta.running_ns);
        }
    }

    fn observations(&self, from: f64) -> Vec<Observation> {
        let mut observations = Vec::new();
        for block in self.blocks.done() {
            if block.span.end <= from + 1e-9 {
                continue;
            }
            let Some(rate) = self.levels[block.event].rate() else { continue };
            let value = block.count / (rate * block.counted) - 1.0;
            let noise = 0.0;
            let counted = block.counted;
            let turn = if self.events[block.event].always_counted { u64::MAX } else { block.turn };
            observations.push(Observation { event: block.event, span: block.span, value, noise, turn, counted, scale: self.scales[block.event].scale() });
        }
        observations
    }

    fn noise_of(&self, counted: f64, o: &Observation) -> f64 {
        let scale = self.scales[o.event].scale();
        let mut noise = self.tuning.noise * scale.rest.powi(2) * (self.covariances.at(o.event, o.event)[1] * 10.0).min(1.0) + 1e-9;
        if counted < 0.999 * o.span.length() {
            let (part, whole) = (time::variances(counted), time::variances(o.span.length()));
            let own = self.covariances.at(o.event, o.event);
            noise += scale.rest.powi(2) * (1..time::PROCESSES).map(|j| own[j] * (part[j] - whole[j])).sum::<f64>();
        }
        noise
    }

    /// Ends an interval: the counts since the last.
    pub fn interval(&mut self) -> Vec<IntervalEstimate> {
        let span = Span { start: self.start, end: self.end };
        self.start = self.end;
        self.blocks.cut();
        for (level, sum) in self.levels.iter_mut().zip(&self.interval) {
            let fraction = if sum.enabled > 0.0 { sum.running / sum.enabled } else { 0.0 };
            level.update(sum.raw, fraction * span.length(), span.length());
        }
        let mut observations = self.observations(span.start - self.tuning.context);
        for event in 0..self.events.len() {
            let level = self.levels[event].rate().unwrap_or(1.0);
            self.scales[event].update(event, span, &observations, &self.covariances, level);
        }
        for observation in &mut observations {
            let event = observation.event;
            observation.scale = self.scales[event].scale();
            observation.noise = self.noise_of(observation.counted, observation);
        }
        let estimates = self.window(span, &observations);
        for sum in &mut self.interval {
            *sum = Sum::default();
        }
        self.learn(observations);
        self.blocks.forget(span.end - self.tuning.context);
        self.windows += 1;
        estimates
    }

    fn window(&mut self, span: Span, observations: &[Observation]) -> Vec<IntervalEstimate> {
        let Some(mut solved) = Solved::new(observations, &self.covariances) else {
            return vec![IntervalEstimate::default(); self.events.len()];
        };
        let posterior = solved.sums(span, &self.covariances, &self.scales.iter().map(Volatility::scale).collect::<Vec<Scale>>());
        let nu = self.tuning.nu;
        let scale = (nu + solved.surprise) / (nu + observations.len() as f64);
        for turn in solved.left_out(span.start) {
            let level = self.levels[turn.event].rate().unwrap_or(1.0);
            let trust = &mut self.trust[turn.event];
            let before = turn.others.or(trust.last.map(|rate| rate / level - 1.0));
            trust.last = Some(level * (turn.value + 1.0));
            trust.update(turn.residual, turn.variance * scale, before.map(|before| turn.value - before), &self.tuning);
        }
        let mut estimates = Vec::new();
        for event in 0..self.events.len() {
            let sum = self.interval[event];
            let rate = self.levels[event].rate().unwrap_or(0.0);
            if self.events[event].always_counted || sum.running >= 0.9999 * sum.enabled {
                self.totals[event] += sum.raw;
                estimates.push(IntervalEstimate { estimate: sum.raw, low: sum.raw, high: sum.raw });
                continue;
            }
            let mixed = rate * (posterior.mean[event] + span.length());
            let scaled = if sum.running > 0.0 { sum.raw * sum.enabled / sum.running } else { self.trust[event].last.unwrap_or(rate) * span.length() };
            let weight = self.trust[event].weight(&self.tuning);
            let estimate = (weight * mixed + (1.0 - weight) * scaled).max(sum.raw);
            let variance = posterior.covariance.at(event, event).max(0.0)
                * scale.max(0.25)
                * self.trust[event].kappa.clamp(0.1, 25.0)
                * rate
                * rate;
            let half = self.tuning.z * variance.sqrt();
            self.totals[event] += estimate;
            self.total_variances[event] += variance;
            estimates.push(IntervalEstimate {
                estimate,
                low: (estimate - half).max(sum.raw),
                high: (estimate + half).max(sum.raw),
            });
        }
        estimates
    }

    fn learn(&mut self, observations: Vec<Observation>) {
        let tuning = &self.tuning;
        let rate = (tuning.rate_start / (1.0 + tuning.rate_slope * self.windows as f64)).max(tuning.rate_floor);
        learn::step(&observations, &mut self.covariances, &self.prior, rate, tuning);
        if self.stored.len() < tuning.reservoir {
            self.stored.push(observations);
        } else {
            let place = self.next_random(self.windows as usize + 1);
            if place < self.stored.len() {
                self.stored[place] = observations;
            }
        }
        for _ in 0..self.tuning.replays {
            let place = self.next_random(self.stored.len());
            let stored = &self.stored[place];
            learn::step(stored, &mut self.covariances, &self.prior, rate * self.tuning.replay_rate, &self.tuning);
        }
    }

    fn next_random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    /// The run's counts.
    pub fn totals(&mut self) -> Vec<IntervalEstimate> {
        let mut totals = Vec::new();
        for (event, sum) in self.run.iter().enumerate() {
            if sum.running <= 0.0 {
                totals.push(IntervalEstimate::default());
                continue;
            }
            let scaled = sum.raw * sum.enabled / sum.running;
            let half = if sum.running >= 0.9999 * sum.enabled { 0.0 } else { self.turns[event].half_width(scaled, sum.running / sum.enabled, self.totals[event]) };
            totals.push(IntervalEstimate { estimate: scaled, low: (scaled - half).max(sum.raw), high: scaled + half });
        }
        totals
    }
}
