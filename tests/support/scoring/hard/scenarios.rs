//! Lists the scenarios, and makes those of real programs.

use super::worlds::{self, World};
use super::{HardRun, LEAST_COUNT, REPORT, Random, counted, standard};
use crate::scoring::{Grouping, Program, Setup, pick};

/// A condition, and how many runs are made of it a seed.
pub struct Scenario {
    pub name: &'static str,
    pub runs: usize,
    make: fn(&mut Context<'_>, usize) -> HardRun,
    /// What it varies.
    value: usize,
}

const fn scenario(
    name: &'static str,
    runs: usize,
    make: fn(&mut Context<'_>, usize) -> HardRun,
    value: usize,
) -> Scenario {
    Scenario { name, runs, make, value }
}

/// First those of real programs, then those of made-up events.
pub const SCENARIOS: [Scenario; 50] = [
    scenario("threads-1", 12, threads, 1),
    scenario("threads-2", 12, threads, 2),
    scenario("threads-4", 12, threads, 4),
    scenario("threads-8", 12, threads, 8),
    scenario("pool", 12, pool, 0),
    scenario("duty-5", 8, duty, 5),
    scenario("duty-30", 8, duty, 30),
    scenario("jitter", 12, jitter, 0),
    scenario("start", 24, start, 0),
    scenario("run-200ms", 48, short, 200),
    scenario("run-500ms", 24, short, 500),
    scenario("run-1000ms", 16, short, 1000),
    scenario("run-2000ms", 12, short, 2000),
    scenario("twice", 12, twice, 0),
    scenario("modifiers", 12, modifiers, 0),
    scenario("cycles-user", 12, cycles_user, 0),
    scenario("unknown", 12, unknown, 0),
    scenario("frequency", 12, frequency, 0),
    scenario("all-in-turns", 12, all_in_turns, 0),
    scenario("plus-one", 12, few, 5),
    scenario("sixty", 6, sixty, 0),
    scenario("one-counter", 12, one_counter, 0),
    scenario("slow-turns", 12, slow_turns, 20),
    scenario("slow-turns-3", 12, slow_turns, 12),
    scenario("ar", 6, worlds::plain, 0),
    scenario("transient", 6, worlds::transient, 0),
    scenario("phases-150", 6, worlds::phases, 150),
    scenario("phases-20", 6, worlds::phases_alone, 20),
    scenario("lognormal", 6, worlds::lognormal, 0),
    scenario("rare", 6, worlds::rare, 0),
    scenario("bursts", 6, worlds::bursts, 0),
    scenario("single-burst", 6, worlds::single_burst, 0),
    scenario("stop-at-half", 6, worlds::at_half, 1),
    scenario("start-at-half", 6, worlds::at_half, 0),
    scenario("still-jumps", 6, worlds::still_jumps, 25),
    scenario("still-ticks", 6, worlds::still_ticks, 0),
    scenario("still-jumps-3", 6, worlds::still_jumps, 12),
    scenario("wild", 6, worlds::wild, 0),
    scenario("suspended", 6, worlds::suspended, 0),
    scenario("ramp", 6, worlds::ramp, 0),
    scenario("flip", 6, worlds::flip, 0),
    scenario("constant", 6, worlds::constant, 0),
    scenario("zero", 6, worlds::zero, 0),
    scenario("negative", 6, worlds::negative, 0),
    scenario("alias-kernel-96", 4, worlds::alias_kernel, 96),
    scenario("alias-kernel-48", 4, worlds::alias_kernel, 48),
    scenario("alias-kernel-240", 4, worlds::alias_kernel, 240),
    scenario("alias-user-24", 4, worlds::alias_user, 24),
    scenario("alias-user-12", 4, worlds::alias_user, 12),
    scenario("alias-user-60", 4, worlds::alias_user, 60),
];

impl Scenario {
    /// A run by its number.
    pub fn run(&self, programs: &[&Program], seed: usize, run: usize) -> HardRun {
        let order = Random::new(self.name, seed, usize::MAX >> 2).shuffled(programs.len());
        let random = Random::new(self.name, seed, run);
        (self.make)(&mut Context { programs, order, random, run }, self.value)
    }
}

/// What a scenario makes a run from.
pub struct Context<'a> {
    programs: &'a [&'a Program],
    order: Vec<usize>,
    pub random: Random,
    /// The number of the run.
    pub run: usize,
}

/// A stretch of a program: its events, how many are always counted, and rows of full counts.
struct Stretch {
    events: Vec<String>,
    fixed: usize,
    rows: Vec<Vec<f64>>,
}

impl Stretch {
    /// Appends events that are sums of others, by their places.
    fn add_sum(&mut self, name: &str, of: &[usize]) {
        self.events.push(name.into());
        self.rows.iter_mut().for_each(|row| row.push(of.iter().map(|&event| row[event]).sum()));
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event == name)
    }
}

impl Context<'_> {
    /// The k-th program's first n events, so many rows from a row that is given or drawn.
    fn stretch(&mut self, ms: usize, n: usize, k: usize, at: Option<usize>) -> Stretch {
        let trace = &self.programs[self.order[(self.run + k) % self.order.len()]].trace;
        let (fixed, multiplexed) = pick(&trace.names, n);
        let columns: Vec<usize> = fixed.iter().chain(&multiplexed).copied().collect();
        let ms = ms.min(trace.rows.len() / REPORT * REPORT);
        let free = trace.rows.len() - ms;
        let at = at.unwrap_or_else(|| self.random.below(free + 1)).min(free);
        Stretch {
            events: columns.iter().map(|&column| trace.names[column].clone()).collect(),
            fixed: fixed.len(),
            rows: trace.rows[at..at + ms]
                .iter()
                .map(|row| columns.iter().map(|&column| row[column]).collect())
                .collect(),
        }
    }

    /// A run of these rows, rotated by the kernel.
    fn rotated(&mut self, stretch: Stretch, setup: Setup) -> HardRun {
        let shown = counted(&stretch.rows, stretch.fixed, &setup, &mut self.random);
        shown_run(stretch, shown, setup)
    }

    /// The kernel's share of what is counted, by row: 15 % of the user's, give or take half of it.
    fn kernel_shares(&mut self, rows: usize) -> Vec<f64> {
        self.random.remembering(rows, 30.0).into_iter().map(|x| (0.15 * (0.7 * x).exp()).min(0.8)).collect()
    }
}

/// A run of which this is shown.
fn shown_run(stretch: Stretch, shown: Vec<super::ShownRow>, setup: Setup) -> HardRun {
    HardRun {
        cuts: (0..=stretch.rows.len()).step_by(setup.read_ms as usize).collect(),
        events: stretch.events,
        fixed: stretch.fixed,
        truth: stretch.rows,
        shown,
        setup,
        warm: 5,
        scored: Vec::new(),
        least_count: LEAST_COUNT,
    }
}

/// The run of a world's counts, rotated by the kernel or to be rotated by the estimator.
pub(super) fn world_run(context: &mut Context<'_>, world: &World, counts: Vec<Vec<f64>>, setup: Setup) -> HardRun {
    let stretch = Stretch { events: world.events.clone(), fixed: 2, rows: counts };
    context.rotated(stretch, setup)
}

/// The same with nothing always counted and no name known, in groups that take turns of 100 ms.
pub(super) fn slow_run(context: &mut Context<'_>, counts: Vec<Vec<f64>>) -> HardRun {
    let events = (0..counts[0].len()).map(|event| format!("ev{event:02}")).collect();
    context.rotated(Stretch { events, fixed: 0, rows: counts }, slow())
}

fn slow() -> Setup {
    Setup { mux_ms: 100.0, read_ms: 100.0, grouping: Grouping::Pack, ..standard() }
}

fn add(rows: &mut [Vec<f64>], shown: &mut [super::ShownRow], more: &[Vec<f64>], more_shown: &[super::ShownRow]) {
    for (row, more) in rows.iter_mut().zip(more) {
        row.iter_mut().zip(more).for_each(|(sum, count)| *sum += count);
    }
    for (row, more) in shown.iter_mut().zip(more_shown) {
        row.iter_mut().zip(more).for_each(|(sum, now)| (0..3).for_each(|i| sum[i] += now[i]));
    }
}

/// Threads, of other programs (even runs) or other stretches of one (odd), each with its own rotation.
fn threads(context: &mut Context<'_>, threads: usize) -> HardRun {
    let mut parts: Vec<(Stretch, Vec<super::ShownRow>)> = Vec::new();
    for thread in 0..threads {
        let part = context.stretch(3200, 24, if context.run.is_multiple_of(2) { thread } else { 0 }, None);
        let shown = counted(&part.rows, part.fixed, &standard(), &mut context.random);
        parts.push((part, shown));
    }
    let rows = parts.iter().map(|(part, _)| part.rows.len()).min().unwrap_or(0);
    let (mut whole, mut shown) = parts.remove(0);
    whole.rows.truncate(rows);
    shown.truncate(rows);
    parts.iter().for_each(|(part, more)| add(&mut whole.rows, &mut shown, &part.rows, more));
    shown_run(whole, shown, standard())
}

/// A main thread and three workers that start and end again and again.
fn pool(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut whole = context.stretch(4000, 24, 0, None);
    let mut shown = counted(&whole.rows, whole.fixed, &standard(), &mut context.random);
    let rows = whole.rows.len();
    for worker in 0..3 {
        for (piece, range) in context.random.pieces(rows, 500.0, 100).into_iter().enumerate() {
            if piece % 2 == worker % 2 {
                continue;
            }
            // As many events, in their order: all programs have the same.
            let mut part = context.stretch(range.len(), 24, 1 + worker + 3 * piece, None);
            part.rows.truncate(range.len());
            let more = counted(&part.rows, part.fixed, &standard(), &mut context.random);
            add(&mut whole.rows[range.clone()], &mut shown[range], &part.rows, &more);
        }
    }
    shown_run(whole, shown, standard())
}

/// The process is on a CPU so many percent of the time, 6 ms at a time; neither rotation nor enabled time goes on without it.
fn duty(context: &mut Context<'_>, percent: usize) -> HardRun {
    let ms = if percent < 10 { 16_000 } else { 6_000 };
    let mut busy = vec![false; ms];
    let mut at = 0;
    loop {
        at += context.random.exponential(6.0 * (100.0 / percent as f64 - 1.0)) as usize;
        let end = at + 1 + context.random.exponential(5.0) as usize;
        if at >= ms {
            break;
        }
        busy[at..end.min(ms)].fill(true);
        at = end;
    }
    let places: Vec<usize> = (0..ms).filter(|&row| busy[row]).collect();
    let part = context.stretch(places.len() / REPORT * REPORT, 24, 0, None);
    let parts = counted(&part.rows, part.fixed, &standard(), &mut context.random);
    let width = part.events.len();
    let (mut rows, mut shown) = (vec![vec![0.0; width]; ms], vec![vec![[0.0; 3]; width]; ms]);
    for ((place, row), now) in places.into_iter().zip(part.rows).zip(parts) {
        (rows[place], shown[place]) = (row, now);
    }
    shown_run(Stretch { rows, ..part }, shown, standard())
}

/// A loaded machine: reads come 0 to 3 ms late, one in 25 after 40 ms.
fn jitter(context: &mut Context<'_>, _: usize) -> HardRun {
    let part = context.stretch(4000, 24, 0, None);
    let rows = part.rows.len();
    let (mut cuts, mut at) = (vec![0], 0);
    while at < rows {
        at += if context.random.unit() < 0.04 { 40 } else { 4 };
        cuts.push(at + context.random.below(4));
    }
    cuts.retain(|&cut| cut <= rows);
    HardRun { cuts, ..context.rotated(part, standard()) }
}

/// Runs of 1.2 s, all reports scored; half from the program's start, half from a random place.
fn start(context: &mut Context<'_>, _: usize) -> HardRun {
    let at = context.run.is_multiple_of(2).then_some(0);
    let part = context.stretch(1200, 24, 0, at);
    HardRun { warm: 0, ..context.rotated(part, standard()) }
}

fn short(context: &mut Context<'_>, ms: usize) -> HardRun {
    let part = context.stretch(ms, 24, 0, None);
    HardRun { warm: 0, ..context.rotated(part, standard()) }
}

/// Events under their own name and under perf's.
const TWICE: [(&str, &str); 6] = [
    ("branches", "branch-instructions"),
    ("loads", "L1-dcache-loads"),
    ("br_misp", "branch-misses"),
    ("llc_miss", "cache-misses"),
    ("l1d_load_miss", "L1-dcache-load-misses"),
    ("llc_access", "cache-references"),
];

fn twice(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 18, 0, None);
    for (name, other) in TWICE {
        part.place(name).into_iter().for_each(|place| part.add_sum(other, &[place]));
    }
    context.rotated(part, standard())
}

/// Some events as the sum, as :u and as :k; the kernel's share varies.
fn modifiers(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 16, 0, None);
    let shares = context.kernel_shares(part.rows.len());
    let split: Vec<_> = ["loads", "stores", "branches", "br_misp"].iter().filter_map(|name| part.place(name)).collect();
    for letter in ["u", "k"] {
        part.events.extend(split.iter().map(|&place| format!("{}:{letter}", part.events[place])).collect::<Vec<_>>());
    }
    for (row, share) in part.rows.iter_mut().zip(shares) {
        let user: Vec<_> = split.iter().map(|&place| row[place]).collect();
        let random = &mut context.random;
        let varied = user.iter().map(|user| {
            let expected = user * share * (0.1 * random.normal()).exp();
            random.poisson(expected)
        });
        let kernel: Vec<_> = varied.collect();
        split.iter().zip(&kernel).for_each(|(&place, kernel)| row[place] += kernel);
        row.extend(user);
        row.extend(kernel);
    }
    context.rotated(part, standard())
}

/// cycles:u and instructions:u are multiplexed beside cycles and instructions.
fn cycles_user(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 22, 0, None);
    let shares = context.kernel_shares(part.rows.len());
    for (row, share) in part.rows.iter_mut().zip(shares) {
        let own: Vec<_> = row.iter().map(|count| (count * (1.0 - share)).round()).collect();
        row.truncate(2);
        row.extend(&own[2..]);
        row.extend(&own[..2]);
    }
    let always: Vec<_> = part.events[..2].iter().map(|name| format!("{name}:u")).collect();
    part.events.extend(always);
    context.rotated(part, standard())
}

/// No event has a name that anything is known of.
fn unknown(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 24, 0, None);
    part.events.iter_mut().enumerate().for_each(|(place, name)| *name = format!("ev{place:02}"));
    context.rotated(part, standard())
}

/// The clock steps between 1 and 2 times its least rate, and all events with it; cycles are multiplexed too.
fn frequency(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 24, 0, None);
    for range in context.random.pieces(part.rows.len(), 300.0, 50) {
        let clock = [1.0, 1.3, 1.6, 2.0][context.random.below(4)];
        part.rows[range].iter_mut().flatten().for_each(|count| *count = (*count * clock).round());
    }
    part.fixed = 0;
    context.rotated(part, standard())
}

/// Nothing is always counted.
fn all_in_turns(context: &mut Context<'_>, _: usize) -> HardRun {
    let part = context.stretch(4000, 24, 0, None);
    context.rotated(Stretch { fixed: 0, ..part }, standard())
}

fn few(context: &mut Context<'_>, events: usize) -> HardRun {
    let part = context.stretch(4000, events, 0, None);
    context.rotated(part, standard())
}

/// Sums that make sixty events of 49.
const SUMS: [(&str, &[&str]); 11] = [
    ("mem_inst", &["loads", "stores"]),
    ("l1d_miss", &["l1d_load_miss", "l1d_store_miss"]),
    ("l1d_hit", &["l1d_load_hit", "l1d_store_hit"]),
    ("dram", &["dram_read", "dram_write"]),
    ("dtlb_miss", &["dtlb_load_miss", "dtlb_store_miss"]),
    ("tlb_miss", &["dtlb_load_miss", "dtlb_store_miss", "itlb_miss"]),
    ("l1_miss", &["l1d_load_miss", "l1d_store_miss", "l1i_miss"]),
    ("br_near", &["br_call", "br_ret"]),
    ("br_indirect", &["br_ind", "br_ret"]),
    ("writeback", &["l1d_wb", "l2_wb"]),
    ("stalls", &["stall_mem", "stall_fe", "stall_misp"]),
];

/// 60 events on four counters: a turn of the rotation takes 240 ms.
fn sixty(context: &mut Context<'_>, _: usize) -> HardRun {
    let mut part = context.stretch(4000, 49, 0, None);
    for (name, of) in SUMS {
        let of: Vec<_> = of.iter().filter_map(|name| part.place(name)).collect();
        part.add_sum(name, &of);
    }
    context.rotated(part, standard())
}

/// 24 events on one counter.
fn one_counter(context: &mut Context<'_>, _: usize) -> HardRun {
    let part = context.stretch(4000, 24, 0, None);
    context.rotated(part, Setup { counters: 1, ..standard() })
}

/// Groups of four of so many events take turns of 100 ms; nothing is always counted, no name is known.
fn slow_turns(context: &mut Context<'_>, events: usize) -> HardRun {
    let part = context.stretch(8000, events - 2, 0, None);
    slow_run(context, part.rows)
}
