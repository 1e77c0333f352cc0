//! How often noise is told as a change of an event's level, and how soon a change is told: the tables of docs/steps.md.
//! Run: `cargo bench --bench phases`, or with fewer runs: `cargo bench --bench phases -- 60`.
#![allow(clippy::print_stdout, reason = "prints tables")]

use std::time::Instant;

use perfprop::estimate::EstimatorKind;
use perfprop::events::{Encoding, Event, EventKind, Modifiers, Unit};
use perfprop::monitor::Monitor;
use perfprop::random::SplitMix64;
use perfprop::run::{Header, MeasuredEvent, MeasuredTarget};
use perfprop::sources::{Reading, Round, Scope, Status};
use perfprop::units::{CpuNs, WallNs};

const SECOND: u64 = 1_000_000_000;

/// Events of a run, and its seconds.
const EVENTS: usize = 20;
const LENGTH: u64 = 600;

/// Runs of each kind: 20 events for 50 hours.
const RUNS: u64 = 300;

/// Numbers that look random, the same in every run.
struct Chance(SplitMix64);

impl Chance {
    /// Above 0.
    fn uniform(&mut self) -> f64 {
        self.0.uniform() + f64::MIN_POSITIVE
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// With 3 degrees of freedom, and a deviation of 1.
    fn student(&mut self) -> f64 {
        let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
        self.normal() / squares.sqrt()
    }

    /// A Poisson count, by Knuth's products.
    fn poisson(&mut self, mean: f64) -> f64 {
        let (least, mut product, mut count) = ((-mean).exp(), self.uniform(), 0.0);
        while product > least {
            product *= self.uniform();
            count += 1.0;
        }
        count
    }
}

/// What an event does beside its level.
#[derive(Clone, Copy)]
enum Noise {
    White(f64),
    HeavyTails(f64),
    /// The deviation, and the seconds after which 1/e of a deviation is left.
    Correlated(f64, f64),
    /// So much more in ten minutes.
    Drift(f64),
    /// Bursts of 0.5 to 2 s, twice a minute.
    Bursts,
    /// 1 of 100 intervals has up to ten times as much.
    Outliers,
    /// The first second or two have five times as much.
    Start,
    /// A wave of so many seconds, and its height.
    Wave(f64, f64),
    /// Every so many seconds up or down, by so much.
    Alternating(f64, f64),
    /// So many counts a second, by chance.
    Rare(f64),
    /// Each request takes long or not: the CPU time of each interval is log-normal.
    Requests(f64),
    /// A fifth of the time on a counter, of a program with so much noise.
    Multiplexed(f64),
}

/// The state of an event's noise.
#[derive(Clone, Copy, Default)]
struct NoiseState {
    last: f64,
    until: f64,
}

impl Noise {
    /// The rate over its level, in an interval that begins then and lasts so many seconds.
    fn factor(self, state: &mut NoiseState, chance: &mut Chance, at: f64, long: f64) -> f64 {
        let small = |chance: &mut Chance| 1.0 + 0.03 * chance.normal();
        match self {
            Self::White(size) | Self::Multiplexed(size) => 1.0 + size * chance.normal(),
            Self::HeavyTails(size) => 1.0 + size * chance.student(),
            Self::Correlated(size, time) => {
                let kept = (-long / time).exp();
                state.last = kept * state.last + (1.0 - kept * kept).sqrt() * size * chance.normal();
                1.0 + state.last
            }
            Self::Drift(by) => small(chance) * (1.0 + by * at / 600.0),
            Self::Bursts => {
                if at >= state.until && chance.uniform() < long / 30.0 {
                    state.until = at + 0.5 + 1.5 * chance.uniform();
                    state.last = 0.5 + chance.uniform();
                }
                small(chance) + if at < state.until { state.last } else { 0.0 }
            }
            Self::Outliers => {
                let far = if chance.uniform() < 0.01 { 9.0 * chance.uniform() } else { 0.0 };
                small(chance) + far
            }
            Self::Start => {
                if state.until == 0.0 {
                    state.until = 1.0 + chance.uniform();
                }
                small(chance) * if at < state.until { 5.0 } else { 1.0 }
            }
            Self::Wave(period, by) => small(chance) + by * (std::f64::consts::TAU * at / period).sin(),
            Self::Alternating(every, by) => {
                small(chance) + if ((at / every) as u64).is_multiple_of(2) { 0.5 * by } else { -0.5 * by }
            }
            Self::Rare(rate) => chance.poisson(rate * long),
            Self::Requests(size) => (size * chance.normal()).exp(),
        }
    }
}

fn header(events: usize, interval: u64) -> Header {
    let event = |at: usize| Event {
        name: format!("e{at}"),
        canonical: format!("e{at}"),
        kind: EventKind::Hardware,
        encoding: Encoding::default(),
        modifiers: Modifiers::default(),
        unit: Unit::Count,
    };
    let measured = |at| MeasuredEvent { event: event(at), status: Status::Counted, scope: Scope::All };
    Header {
        events: (0..events).map(measured).collect(),
        period_ns: WallNs(interval),
        interval_ns: WallNs(interval),
        ..Header::new(MeasuredTarget::Command { argv: vec!["./prog".into()], pid: 1 }, EstimatorKind::Scale.name())
    }
}

/// A run, with its level from a second on being so much of what it was.
fn run(noise: Noise, interval: u64, seed: u64, change: Option<(f64, f64)>) -> Monitor {
    let header = header(EVENTS, interval);
    let estimator = EstimatorKind::Scale.build(&header.bare_events(), &[]);
    let mut monitor = Monitor::new(header, Vec::new(), estimator);
    let mut chance = Chance(SplitMix64::new(seed << 20));
    let mut states = [NoiseState::default(); EVENTS];
    let mut readings = [Reading::default(); EVENTS];
    let long = interval as f64 / 1e9;
    for at in 0..LENGTH * SECOND / interval {
        let second = at as f64 * long;
        for (state, reading) in states.iter_mut().zip(&mut readings) {
            let level = change.filter(|(from, _)| second >= *from).map_or(1.0, |(_, level)| level);
            let factor = level * noise.factor(state, &mut chance, second, long).max(0.0);
            let part = if let Noise::Multiplexed(_) = noise { 5 } else { 1 };
            let count = if let Noise::Rare(_) = noise { factor } else { factor * 1e6 * long / part as f64 };
            reading.count += count as u64;
            reading.enabled += CpuNs(interval);
            reading.running += CpuNs(interval / part);
        }
        let readings = readings.iter().copied().map(Some).collect();
        monitor.round(&Round { at: WallNs((at + 1) * interval), readings, ..Round::default() }, 0);
    }
    monitor
}

/// Changes that were told, and those that findings have, in 10 hours of 20 events.
fn false_findings(noise: Noise, interval: u64, runs: u64) -> (f64, f64) {
    let (mut changes, mut findings) = (0, 0);
    for seed in 0..runs {
        let monitor = run(noise, interval, seed, None);
        changes += monitor.phase_changes().len();
        findings += monitor.findings().iter().filter(|noted| noted.finding.code() == "W18").count();
    }
    let per_10_hours = 36_000.0 / (runs * LENGTH) as f64;
    (changes as f64 * per_10_hours, findings as f64 * per_10_hours)
}

/// How many of 100 events' changes were told, after how many seconds half and nine tenths of them were, and how far off the
/// times of change were in the median.
fn told(noise: Noise, interval: u64, level: f64, runs: u64) -> (f64, [f64; 2], f64) {
    let (mut delays, mut off, mut all) = (Vec::new(), Vec::new(), 0);
    for seed in 0..runs {
        let at = 120.0 + 37.3 * (seed % 7) as f64;
        let monitor = run(noise, interval, 1000 + seed, Some((at, level)));
        all += EVENTS;
        for event in 0..EVENTS {
            let near = monitor.phase_changes_of(event).find(|change| (change.at.as_secs() - at).abs() < 20.0);
            delays.extend(near.map(|change| change.told_at.as_secs() - at));
            off.extend(near.map(|change| (change.at.as_secs() - at).abs()));
        }
    }
    delays.sort_by(f64::total_cmp);
    off.sort_by(f64::total_cmp);
    let part =
        |numbers: &[f64], part: f64| numbers.get((part * numbers.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    (delays.len() as f64 / all as f64, [part(&delays, 0.5), part(&delays, 0.9)], part(&off, 0.5))
}

fn main() {
    let runs = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(RUNS);
    println!("{:<34} {:>16} {:>16}", "false, 20 events, 10 h", "10 a second", "1 a second");
    let kinds = [
        ("white, 3 %", Noise::White(0.03)),
        ("white, 10 %", Noise::White(0.1)),
        ("heavy tails (t3), 10 %", Noise::HeavyTails(0.1)),
        ("correlated over 1 s, 3 %", Noise::Correlated(0.03, 1.0)),
        ("correlated over 1 s, 10 %", Noise::Correlated(0.1, 1.0)),
        ("correlated over 5 s, 10 %", Noise::Correlated(0.1, 5.0)),
        ("correlated over 30 s, 10 %", Noise::Correlated(0.1, 30.0)),
        ("multiplexed, 10 %", Noise::Multiplexed(0.1)),
        ("drift of 30 %", Noise::Drift(0.3)),
        ("drift of 300 %", Noise::Drift(3.0)),
        ("bursts", Noise::Bursts),
        ("outliers", Noise::Outliers),
        ("start-up burst", Noise::Start),
        ("wave of 60 s, 10 %", Noise::Wave(60.0, 0.1)),
        ("alternating every 1 s, 30 %", Noise::Alternating(1.0, 0.3)),
        ("alternating every 1.9 s, 30 %", Noise::Alternating(1.9, 0.3)),
        ("0.1 counts a second", Noise::Rare(0.1)),
        ("2 counts a second", Noise::Rare(2.0)),
        ("50 counts a second", Noise::Rare(50.0)),
        ("requests, log-normal by 0.5", Noise::Requests(0.5)),
    ];
    for (name, noise) in kinds {
        let start = Instant::now();
        let found = [SECOND / 10, SECOND].map(|interval| false_findings(noise, interval, runs));
        let cells = found.map(|(changes, findings)| format!("{findings:.2} ({changes:.2})"));
        println!("{name:<34} {:>16} {:>16}   {:.1} s", cells[0], cells[1], start.elapsed().as_secs_f64());
    }
    println!("\n{:<34} {:>6} {:>8} {:>8} {:>8}   a second", "changes told", "told", "half", "90 %", "off");
    let changed = [
        ("-12 %, noise 3 %", 0.88, Noise::White(0.03)),
        ("-12 %, noise 10 %", 0.88, Noise::White(0.1)),
        ("-12 %, correlated over 1 s, 3 %", 0.88, Noise::Correlated(0.03, 1.0)),
        ("-12 %, correlated over 1 s, 10 %", 0.88, Noise::Correlated(0.1, 1.0)),
        ("-50 %, noise 10 %", 0.5, Noise::White(0.1)),
        ("-50 %, correlated over 1 s, 10 %", 0.5, Noise::Correlated(0.1, 1.0)),
        ("-50 %, requests", 0.5, Noise::Requests(0.5)),
        ("-50 %, bursts", 0.5, Noise::Bursts),
        ("x 3, 2 counts a second", 3.0, Noise::Rare(2.0)),
    ];
    for (name, level, noise) in changed {
        for (interval, often) in [(SECOND / 10, 10), (SECOND, 1)] {
            let (part, [half, most], off) = told(noise, interval, level, (runs / 10).max(5));
            println!("{name:<34} {:>5.1}% {half:>8.1} {most:>8.1} {off:>8.2}   {often}", 100.0 * part);
        }
    }
}
