//! Makes runs of made-up events, each kind with one awkward property.

use super::scenarios::{Context, slow_run, world_run};
use super::{HardRun, Random, standard};
use crate::scoring::{CORE_ORDER, Schedule, Setup};

/// 26 events, the first two always counted, with their rates a millisecond and how these vary by row: by three shared factors
/// that remember for 5, 25 and 100 ms. Even runs have names of real events, whose priors are wrong here; odd runs unknown ones.
pub struct World {
    pub events: Vec<String>,
    rates: Vec<f64>,
    vary: Vec<Vec<f64>>,
}

const EVENTS: usize = 26;
/// Twelve of the multiplexed events, and six.
const HALF: std::ops::Range<usize> = 2..14;
const SIX: std::ops::Range<usize> = 2..8;

impl World {
    fn new(context: &mut Context<'_>, rows: usize) -> Self {
        let is_named = context.run.is_multiple_of(2);
        let random = &mut context.random;
        let names = CORE_ORDER.split_whitespace().take(EVENTS - 2).enumerate();
        let names = names.map(|(place, name)| if is_named { name.to_owned() } else { format!("ev{place:02}") });
        let mut rates = vec![300_000.0, 300_000.0 * random.between(0.5, 2.0)];
        rates.extend((2..EVENTS).map(|_| 10f64.powf(random.between(2.0, 5.0))));
        let weights: Vec<[f64; 3]> = (0..EVENTS).map(|_| [0.0; 3].map(|_| 0.15 * random.normal())).collect();
        let factors = [5.0, 25.0, 100.0].map(|memory| random.remembering(rows, memory));
        let level = |row: usize, weights: &[f64; 3]| {
            let sum: f64 = (0..3).map(|i| factors[i][row] * weights[i] - 0.5 * weights[i] * weights[i]).sum();
            sum.exp()
        };
        let vary = (0..rows).map(|row| weights.iter().map(|weights| level(row, weights)).collect()).collect();
        Self { events: ["cycles", "instructions"].map(str::to_owned).into_iter().chain(names).collect(), rates, vary }
    }

    fn rows(&self) -> usize {
        self.vary.len()
    }

    fn each(&mut self, mut change: impl FnMut(usize, usize, &mut f64)) {
        for (row, levels) in self.vary.iter_mut().enumerate() {
            levels.iter_mut().enumerate().for_each(|(event, level)| change(row, event, level));
        }
    }

    fn counts(&self, random: &mut Random) -> Vec<Vec<f64>> {
        let row = |levels: &Vec<f64>| {
            let counts = levels.iter().zip(&self.rates).enumerate();
            let count = |(event, (level, rate)): (usize, (&f64, &f64))| {
                if event == 0 { *rate } else { random.poisson(rate * level) }
            };
            counts.map(count).collect()
        };
        self.vary.iter().map(row).collect()
    }

    fn run(&self, context: &mut Context<'_>) -> HardRun {
        let counts = self.counts(&mut context.random);
        world_run(context, self, counts, standard())
    }

    /// Only these events are scored, however rare.
    fn run_of(&self, context: &mut Context<'_>, events: std::ops::Range<usize>) -> HardRun {
        HardRun { scored: events.collect(), least_count: 0.0, ..self.run(context) }
    }
}

/// Events vary with three shared factors.
pub(super) fn plain(context: &mut Context<'_>, _: usize) -> HardRun {
    World::new(context, 5000).run(context)
}

/// Up to ten times the rate at the start, fading within 120 ms; all reports are scored.
pub(super) fn transient(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 3000);
    let more: Vec<_> = (0..EVENTS).map(|_| context.random.between(0.0, 9.0)).collect();
    world.each(|row, event, level| *level *= 1.0 + (-(row as f64) / 120.0).exp() * more[event]);
    HardRun { warm: 0, ..world.run(context) }
}

/// Now and then all events have other rates.
pub(super) fn phases(context: &mut Context<'_>, ms: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    for range in context.random.pieces(world.rows(), ms as f64, 5) {
        let factors: Vec<_> = (0..EVENTS).map(|_| (0.8 * context.random.normal()).exp()).collect();
        for row in &mut world.vary[range] {
            row.iter_mut().zip(&factors).for_each(|(level, factor)| *level *= factor);
        }
    }
    world.run(context)
}

/// Each event for itself has another rate now and then.
pub(super) fn phases_alone(context: &mut Context<'_>, ms: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    for event in 1..EVENTS {
        for range in context.random.pieces(world.rows(), ms as f64, 2) {
            let factor = (0.8 * context.random.normal()).exp();
            world.vary[range].iter_mut().for_each(|row| row[event] *= factor);
        }
    }
    world.run(context)
}

/// Each event for itself has another rate every 10 ms, now and then ten times the usual.
pub(super) fn lognormal(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    for rows in world.vary.chunks_mut(10) {
        for event in 2..EVENTS {
            let factor = (1.2 * context.random.normal() - 0.72).exp();
            rows.iter_mut().for_each(|row| row[event] *= factor);
        }
    }
    world.run(context)
}

/// Twelve events happen once in 500 ms.
pub(super) fn rare(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    world.rates[HALF].fill(0.002);
    world.run_of(context, HALF)
}

/// Twelve events happen in bursts of 10 ms twice a second.
pub(super) fn bursts(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 8000);
    for event in HALF {
        world.vary.iter_mut().for_each(|row| row[event] *= 0.02);
        for range in context.random.pieces(world.rows(), 500.0, 1) {
            world.vary[range.end.saturating_sub(10)..range.end].iter_mut().for_each(|row| row[event] = 20.0);
        }
    }
    // In the first two seconds an event's first burst may not have been seen yet.
    HardRun { warm: 20, ..world.run_of(context, HALF) }
}

/// Twelve events happen in one burst of 5 to 60 ms; scored where a tenth of it was counted.
pub(super) fn single_burst(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    for event in HALF {
        let at = 600 + context.random.below(world.rows() - 700);
        let burst = at..at + 5 + context.random.below(55);
        let level = |row: usize| f64::from(u8::from(burst.contains(&row)));
        world.vary.iter_mut().enumerate().for_each(|(row, levels)| levels[event] = level(row));
    }
    let run = world.run_of(context, HALF);
    let was_seen = |event: &usize| {
        let shown: f64 = run.shown.iter().map(|row| row[*event][0]).sum();
        shown > 0.1 * run.truth.iter().map(|row| row[*event]).sum::<f64>()
    };
    let scored: Vec<_> = HALF.filter(was_seen).collect();
    // Of none nothing is scored, and not of all.
    let least_count = if scored.is_empty() { f64::INFINITY } else { 0.0 };
    HardRun { scored, least_count, ..run }
}

/// Six events stop (1) or start (0) at half of the run.
pub(super) fn at_half(context: &mut Context<'_>, stops: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    let half = world.rows() / 2;
    world.each(|row, event, level| {
        if SIX.contains(&event) && (row >= half) == (stops == 1) {
            *level = 0.0;
        }
    });
    world.run_of(context, SIX)
}

/// Events hold still to 1 % between jumps of all of them every 2 s or so.
fn still(context: &mut Context<'_>) -> World {
    let mut world = World::new(context, 16_000);
    world.each(|_, _, level| *level = level.powf(0.05));
    for range in context.random.pieces(world.rows(), 2000.0, 300) {
        let factors: Vec<_> = (0..EVENTS).map(|_| (0.7 * context.random.normal()).exp()).collect();
        for row in &mut world.vary[range] {
            row.iter_mut().zip(&factors).for_each(|(level, factor)| *level *= factor);
        }
    }
    world
}

/// So many events that hold still between jumps; slow turns.
pub(super) fn still_jumps(context: &mut Context<'_>, events: usize) -> HardRun {
    let world = still(context);
    in_slow_turns(context, &world, events)
}

/// Events that hold still between jumps, in the kernel's rotation.
pub(super) fn still_ticks(context: &mut Context<'_>, _: usize) -> HardRun {
    still(context).run(context)
}

/// Six events are a 10,000th of themselves but for 100 ms every second or so; slow turns.
pub(super) fn wild(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 16_000);
    for event in SIX {
        world.vary.iter_mut().for_each(|row| row[event] *= 1e-4);
        for range in context.random.pieces(world.rows(), 900.0, 100) {
            world.vary[range.end.saturating_sub(100)..range.end].iter_mut().for_each(|row| row[event] *= 1e4);
        }
    }
    HardRun {
        scored: SIX.map(|event| event - 1).collect(),
        least_count: 0.0,
        ..in_slow_turns(context, &world, EVENTS - 1)
    }
}

/// The first events after cycles.
fn in_slow_turns(context: &mut Context<'_>, world: &World, events: usize) -> HardRun {
    let mut counts = world.counts(&mut context.random);
    for row in &mut counts {
        row.remove(0);
        row.truncate(events);
    }
    slow_run(context, counts)
}

/// Stopped for 3 s: reads go on without enabled time (even runs), or none comes (odd).
pub(super) fn suspended(context: &mut Context<'_>, _: usize) -> HardRun {
    const PAUSE: usize = 3000;
    let world = World::new(context, 4000);
    let mut run = world.run(context);
    let at = 2000 + context.random.below(50);
    run.truth.splice(at..at, vec![vec![0.0; EVENTS]; PAUSE]);
    run.shown.splice(at..at, vec![vec![[0.0; 3]; EVENTS]; PAUSE]);
    run.cuts = (0..=run.truth.len()).step_by(run.setup.read_ms as usize).collect();
    if context.run % 2 == 1 {
        run.cuts.retain(|&cut| cut <= at || cut >= at + PAUSE);
    }
    run
}

/// All rates grow tenfold over the run.
pub(super) fn ramp(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    let last = world.rows() as f64 - 1.0;
    world.each(|row, _, level| *level *= 1.0 + 9.0 * row as f64 / last);
    world.run(context)
}

/// What went up with instructions goes down with them from half of the run on.
pub(super) fn flip(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    let (half, factor) = (world.rows() / 2, context.random.remembering(5000, 15.0));
    world.each(|row, event, level| {
        let up = 0.5 * factor[row];
        *level *= match event {
            0 => 1.0,
            1 => up.exp(),
            _ if row < half => up.exp(),
            _ => (-up).exp(),
        };
    });
    world.run(context)
}

/// Every event has the same count in every millisecond.
pub(super) fn constant(context: &mut Context<'_>, _: usize) -> HardRun {
    let world = World::new(context, 5000);
    let row: Vec<_> = world.rates.iter().map(|rate| rate.round()).collect();
    world_run(context, &world, vec![row; world.rows()], standard())
}

/// Six events never happen; scored in counts a report.
pub(super) fn zero(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut world = World::new(context, 5000);
    world.rates[SIX].fill(0.0);
    world.run_of(context, SIX)
}

/// Six counters fall back to zero once, and go on from there; only these are scored.
pub(super) fn negative(context: &mut Context<'_>, _: usize) -> HardRun {
    let world = World::new(context, 5000);
    let mut run = world.run_of(context, SIX);
    for event in SIX {
        let counted: Vec<_> = (1000..run.shown.len() - 500).filter(|&row| run.shown[row][event][2] > 0.0).collect();
        let at = counted[context.random.below(counted.len())];
        let before: f64 = run.shown[..at].iter().map(|row| row[event][0]).sum();
        run.shown[at][event][0] -= before;
    }
    run
}

/// Events go on and off with a period of so many milliseconds, which the kernel's rotation meets.
pub(super) fn alias_kernel(context: &mut Context<'_>, period: usize) -> HardRun {
    alias(context, period, Schedule::Kernel)
}

/// The same, of turns that the estimator chooses.
pub(super) fn alias_user(context: &mut Context<'_>, period: usize) -> HardRun {
    alias(context, period, Schedule::User)
}

fn alias(context: &mut Context<'_>, period: usize, schedule: Schedule) -> HardRun {
    let mut world = World::new(context, 5000);
    let period = period as f64;
    let phases: Vec<_> = (0..EVENTS).map(|_| context.random.between(0.0, period)).collect();
    world.each(|row, event, level| {
        let angle = std::f64::consts::TAU * (row as f64 - phases[event]) / period;
        *level *= 1.0 + 0.9 * angle.sin().signum();
    });
    let counts = world.counts(&mut context.random);
    world_run(context, &world, counts, Setup { schedule, ..standard() })
}
