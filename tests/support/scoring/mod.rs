//! Scores an estimator against scaling on traces of complete counts.
//!
//! Simulates how the kernel multiplexes counters over a trace, feeds the estimator the rounds that a
//! profiler would have read, and holds its answers against the complete counts.

#![allow(dead_code, unreachable_pub, reason = "each program that includes this uses a part of it")]
#![allow(missing_docs, reason = "names say it")]

pub mod gp;
pub mod hard;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// Events that have a counter of their own.
const ALWAYS_COUNTED: [&str; 3] = ["cycles", "instructions", "task-clock"];

/// The order in which programmable events are taken from a trace.
const CORE_ORDER: &str = "loads stores l1d_load_miss br_cond br_misp l2_access l2_miss llc_miss \
    l1d_load_hit l1d_store_miss l1i_miss branches \
    llc_access llc_hit l2_hit br_ind br_ret misp_cond dtlb_load_miss stlb_hit page_walk stall_mem uops llc_load_miss \
    l1d_store_hit l2_code_miss br_call br_taken misp_ind itlb_miss dtlb_store_miss dram_read dram_write l2_pf l2_wb l1d_wb \
    l1i_access llc_store_miss misp_ret int_mul div_ops simd_int fp_scalar split_access stall_llc stall_fe stall_misp syscalls fp_vec";
const KERNEL_ORDER: &str = "raw_syscalls:sys_enter page-faults kmem:kmem_cache_alloc kmem:mm_page_alloc kmem:kmalloc sched:sched_switch syscalls:sys_enter_read syscalls:sys_enter_openat \
    kmem:kmem_cache_free kmem:rss_stat exceptions:page_fault_user syscalls:sys_enter_close \
    kmem:kfree kmem:mm_page_free syscalls:sys_enter_mmap syscalls:sys_enter_write syscalls:sys_enter_newfstatat minor-faults filemap:mm_filemap_map_pages pagemap:mm_lru_insertion maple_tree:ma_write mmap_lock:mmap_lock_start_locking raw_syscalls:sys_exit tlb:tlb_flush \
    context-switches sched:sched_waking rcu:rcu_utilization exceptions:page_fault_kernel timer:hrtimer_start irq:softirq_entry syscalls:sys_enter_brk syscalls:sys_enter_munmap kmem:mm_page_free_batched maple_tree:ma_read ext4:ext4_es_lookup_extent_enter sched:sched_wakeup";

/// Complete counts of a program: a row per time slice, a column per event.
#[derive(Clone, Debug)]
pub struct Trace {
    pub names: Vec<String>,
    pub rows: Vec<Vec<f64>>,
    /// The length of a row.
    pub row_ms: f64,
}

impl Trace {
    /// Reads gzipped CSV with a header of event names.
    pub fn read(path: &Path) -> std::io::Result<Self> {
        let file = std::fs::File::open(path)?;
        let reader: Box<dyn Read> = if path.extension().is_some_and(|end| end == "gz") {
            Box::new(flate2::read::GzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let mut lines = BufReader::new(reader).lines();
        let header = lines.next().ok_or(std::io::ErrorKind::UnexpectedEof)??;
        let wall = header.starts_with("bin_us,");
        let skipped = usize::from(wall);
        let names = header.split(',').skip(skipped).map(str::to_owned).collect();
        let mut rows = Vec::new();
        for line in lines {
            rows.push(line?.split(',').skip(skipped).map(|field| field.parse().unwrap_or(f64::NAN)).collect());
        }
        Ok(Self { names, rows, row_ms: if wall { 2.0 } else { 1.0 } })
    }

    fn half(&self, part: Part) -> Self {
        let middle = self.rows.len() / 2;
        let rows = match part {
            Part::Whole => self.rows.clone(),
            Part::First => self.rows[..middle].to_vec(),
            Part::Second => self.rows[middle..].to_vec(),
        };
        Self { rows, ..self.clone() }
    }
}

/// Which rows of a trace are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Whole,
    First,
    Second,
}

/// A program and its counts, and those of another input where there are some.
pub struct Program {
    pub name: String,
    pub trace: Trace,
    pub other: Option<Trace>,
}

/// The programs of a folder, in the order of their names.
pub fn programs(folder: &Path) -> std::io::Result<Vec<Program>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let name = |path: &Path| Some(path.file_name()?.to_str()?.strip_suffix(".csv.gz")?.to_owned());
    let mut programs: Vec<Program> = Vec::new();
    for file in &files {
        let Some(name) = name(file) else { continue };
        let trace = Trace::read(file)?;
        match name.strip_suffix("__b") {
            Some(base) => {
                if let Some(program) = programs.iter_mut().find(|program| program.name == base) {
                    program.other = Some(trace);
                }
            }
            None => programs.push(Program { name, trace, other: None }),
        }
    }
    Ok(programs)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    None,
    Pack,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    Kernel,
    User,
}

/// How counters are shared, and how often they are read.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub counters: usize,
    pub events: usize,
    pub mux_ms: f64,
    pub read_ms: f64,
    pub report_ms: f64,
    pub grouping: Grouping,
    pub schedule: Schedule,
    pub fixed: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            counters: 4,
            events: 24,
            mux_ms: 4.0,
            read_ms: 4.0,
            report_ms: 100.0,
            grouping: Grouping::None,
            schedule: Schedule::Kernel,
            fixed: true,
        }
    }
}

/// What is known before the first round.
#[derive(Clone, Debug)]
pub struct Init {
    pub events: Vec<(String, bool)>,
    pub setup: Setup,
    /// The setup's, in whole rows of the trace.
    pub read_ms: f64,
}

/// Raw count, time enabled and time running (ns) of an event in a round.
pub type Counted = [u64; 3];

/// An estimate and the ends of its interval.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub estimate: f64,
    pub low: f64,
    pub high: f64,
}

/// What is scored.
pub trait Estimating {
    /// Takes a round; answers where a report is due.
    fn round(&mut self, start_ms: f64, end_ms: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>>;
    /// The events to be counted next, by index; `None` for round robin.
    fn next(&mut self) -> Option<Vec<usize>> {
        None
    }
    /// The counts of the whole run.
    fn totals(&mut self) -> Vec<Answer>;
}

/// `perf stat -I`: the interval's counts scaled by enabled / running.
pub struct Perf {
    rates: Vec<f64>,
    interval: Vec<[f64; 3]>,
    run: Vec<[f64; 3]>,
}

impl Perf {
    pub fn new(events: usize) -> Self {
        Self { rates: vec![0.0; events], interval: vec![[0.0; 3]; events], run: vec![[0.0; 3]; events] }
    }
}

impl Estimating for Perf {
    fn round(&mut self, _: f64, _: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>> {
        for (event, counted) in counted.iter().enumerate() {
            for (i, &value) in counted.iter().enumerate() {
                self.interval[event][i] += value as f64;
                self.run[event][i] += value as f64;
            }
        }
        report.then(|| {
            let intervals = self.interval.iter_mut().zip(&mut self.rates);
            let answers = intervals.map(|(interval, rate)| {
                let [raw, enabled, running] = std::mem::take(interval);
                if running > 0.0 {
                    *rate = raw / running;
                }
                let estimate = *rate * enabled;
                Answer { estimate, low: f64::NAN, high: f64::NAN }
            });
            answers.collect()
        })
    }

    fn totals(&mut self) -> Vec<Answer> {
        let scaled = self.run.iter().map(|[raw, enabled, running]| raw * enabled / running.max(1e-9));
        scaled.map(|estimate| Answer { estimate, low: f64::NAN, high: f64::NAN }).collect()
    }
}

/// Where rotation starts and at which phase of a tick, as fractions: those which score.py draws for
/// its seeds 0, 1, 2 and for its learning runs 1000, 1001, 1002.
pub fn draw(seed: usize) -> (f64, f64) {
    match seed {
        0 => (0.85, 0.64),
        1 => (0.473, 0.51),
        2 => (0.837, 0.26),
        1000 => (0.18, 0.51),
        1001 => (0.9, 0.55),
        1002 => (0.6, 0.3),
        _ => ((seed as f64 * 0.618_034).fract(), (seed as f64 * 0.754_878).fract()),
    }
}

fn pick(names: &[String], programmable: usize) -> (Vec<usize>, Vec<usize>) {
    let fixed = (0..names.len()).filter(|&i| ALWAYS_COUNTED.contains(&names[i].as_str())).collect();
    let order = if names.iter().any(|name| name == "task-clock") { KERNEL_ORDER } else { CORE_ORDER };
    let found = order.split_whitespace().filter_map(|wanted| names.iter().position(|name| name == wanted));
    (fixed, found.take(programmable).collect())
}

/// Linux' rotation: groups stand in a list and are scheduled from its head until one doesn't fit; at
/// every tick the head moves to the tail.
struct Rotation {
    groups: Vec<Vec<usize>>,
    order: Vec<usize>,
    counters: usize,
    active: Vec<usize>,
    all_fit: bool,
}

impl Rotation {
    fn new(events: usize, setup: &Setup, start: f64) -> Self {
        let size = if setup.grouping == Grouping::Pack { setup.counters } else { 1 };
        let groups: Vec<Vec<usize>> =
            (0..events).step_by(size).map(|i| (i..(i + size).min(events)).collect()).collect();
        let first = (groups.len() as f64 * start) as usize;
        let order = (0..groups.len()).map(|i| (i + first) % groups.len()).collect();
        let mut rotation = Self { groups, order, counters: setup.counters, active: Vec::new(), all_fit: false };
        rotation.schedule();
        rotation.all_fit = rotation.active.len() == events;
        rotation
    }

    fn schedule(&mut self) {
        self.active.clear();
        for &group in &self.order {
            if self.active.len() + self.groups[group].len() > self.counters {
                break;
            }
            self.active.extend(&self.groups[group]);
        }
    }

    fn tick(&mut self) {
        if !self.all_fit {
            self.order.rotate_left(1);
            self.schedule();
        }
    }
}

/// What came out of a run: per report and event.
pub struct Run {
    pub names: Vec<String>,
    pub fixed: usize,
    pub truth: Vec<Vec<f64>>,
    pub answers: Vec<Vec<Answer>>,
    pub totals: Vec<Answer>,
    /// CPU time in the estimator per report.
    pub ms_per_report: f64,
}

/// Runs a trace past an estimator.
pub fn simulate<E: Estimating>(
    trace: &Trace,
    part: Part,
    setup: &Setup,
    seed: usize,
    make: impl FnOnce(&Init) -> E,
) -> (Run, E) {
    let half;
    let trace = if part == Part::Whole {
        trace
    } else {
        half = trace.half(part);
        &half
    };
    let (mut fixed, mut multiplexed) = pick(&trace.names, setup.events);
    if !setup.fixed {
        fixed.append(&mut multiplexed);
        multiplexed = std::mem::take(&mut fixed);
    }
    let columns: Vec<usize> = fixed.iter().chain(&multiplexed).copied().collect();
    let rows_per_round = ((setup.read_ms / trace.row_ms).round() as usize).max(1);
    let read_ms = rows_per_round as f64 * trace.row_ms;
    let every = ((setup.report_ms / setup.read_ms).round() as usize).max(1);
    let reports = trace.rows.len() / (rows_per_round * every);
    let names: Vec<String> = columns.iter().map(|&column| trace.names[column].clone()).collect();
    let events = names.iter().enumerate().map(|(i, name)| (name.clone(), i < fixed.len())).collect();
    let mut estimator = make(&Init { events, setup: *setup, read_ms });

    let (start, phase) = draw(seed);
    let mut rotation = Rotation::new(multiplexed.len(), setup, start);
    let ticks = ((setup.mux_ms / trace.row_ms).round() as usize).max(1);
    let phase = (ticks as f64 * phase) as usize;
    let (n, k) = (multiplexed.len(), setup.counters.min(multiplexed.len()));
    let mut next: Vec<usize> = (0..k).collect();
    let mut position = k;

    let mut truth = Vec::new();
    let mut answers = Vec::new();
    let mut spent = std::time::Duration::ZERO;
    let mut row = 0;
    for _ in 0..reports {
        let mut sums = vec![0.0; columns.len()];
        for round in 0..every {
            let mut counted = vec![[0u64; 3]; columns.len()];
            for _ in 0..rows_per_round {
                if row > 0 && (row + phase).is_multiple_of(ticks) && setup.schedule == Schedule::Kernel {
                    rotation.tick();
                }
                let row_ns = (trace.row_ms * 1e6) as u64;
                for (event, &column) in columns.iter().enumerate() {
                    sums[event] += trace.rows[row][column];
                    counted[event][1] += row_ns;
                }
                let active = if setup.schedule == Schedule::Kernel { &rotation.active } else { &next };
                for event in (0..fixed.len()).chain(active.iter().map(|event| event + fixed.len())) {
                    counted[event][0] += trace.rows[row][columns[event]] as u64;
                    counted[event][2] += row_ns;
                }
                row += 1;
            }
            let due = round + 1 == every;
            let end_ms = row as f64 * trace.row_ms;
            let before = cpu_now();
            let answer = estimator.round(end_ms - read_ms, end_ms, &counted, due);
            if setup.schedule == Schedule::User {
                next = match estimator.next() {
                    Some(next) => next.iter().filter(|&&e| e >= fixed.len()).map(|e| e - fixed.len()).take(k).collect(),
                    None => (0..k).map(|i| (position + i) % n).collect(),
                };
                position += k;
            }
            spent += cpu_now() - before;
            answers.extend(answer);
        }
        truth.push(sums);
    }
    let totals = estimator.totals();
    let ms_per_report = 1e3 * spent.as_secs_f64() / reports.max(1) as f64;
    (Run { names, fixed: fixed.len(), truth, answers, totals, ms_per_report }, estimator)
}

/// How far an event's estimates in a run were off.
#[derive(Clone, Debug)]
pub struct Score {
    pub event: String,
    /// Sum of |estimate - truth| over the sum of the truth.
    pub nl1: f64,
    /// |total - truth| / truth over the run.
    pub total: f64,
    /// The part of intervals that hold the truth.
    pub cover: f64,
    /// The sum of the intervals' widths over the sum of the truth.
    pub width: f64,
    /// Whether the total's interval holds the truth.
    pub total_covered: f64,
    pub total_width: f64,
}

/// Reports at the start that aren't scored.
const WARM: usize = 5;

/// The scores of the multiplexed events that count 50 in a mean interval or more.
pub fn score(run: &Run) -> Vec<Score> {
    let mut scores = Vec::new();
    for event in run.fixed..run.names.len() {
        let all: f64 = run.truth.iter().map(|row| row[event]).sum();
        if all / (run.truth.len() as f64) < 50.0 || run.truth.len() < WARM + 5 {
            continue;
        }
        let pairs: Vec<(f64, Answer)> =
            run.truth.iter().zip(&run.answers).skip(WARM).map(|(row, answers)| (row[event], answers[event])).collect();
        let sum: f64 = pairs.iter().map(|(truth, _)| truth).sum();
        if sum <= 0.0 {
            continue;
        }
        let off: f64 = pairs.iter().map(|(truth, answer)| (answer.estimate - truth).abs()).sum();
        let held = pairs.iter().filter(|(truth, answer)| {
            let slack = 1e-9 * truth + 1e-6;
            answer.low - slack <= *truth && *truth <= answer.high + slack
        });
        let cover = held.count() as f64 / pairs.len() as f64;
        let width = pairs.iter().map(|(_, answer)| answer.high - answer.low).sum::<f64>() / sum;
        let total = run.totals[event];
        scores.push(Score {
            event: run.names[event].clone(),
            nl1: off / sum,
            total: (total.estimate - all).abs() / all,
            cover,
            width,
            total_covered: f64::from(u8::from(total.low <= all && all <= total.high)),
            total_width: (total.high - total.low) / all,
        });
    }
    scores
}

/// Linear interpolation between order statistics, as numpy's percentile.
pub fn percentile(values: &[f64], percent: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return f64::NAN;
    }
    let place = percent / 100.0 * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Scores over all events and programs of a set-up.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    pub nl1: [f64; 3],
    pub total: [f64; 3],
    pub cover: f64,
    pub cover_p10: f64,
    pub width: f64,
    pub total_cover: f64,
    pub total_width: f64,
    pub pairs: usize,
}

impl Summary {
    pub fn of(scores: &[Score]) -> Self {
        let all = |value: fn(&Score) -> f64| scores.iter().map(value).collect::<Vec<_>>();
        let three = |values: &[f64]| [percentile(values, 50.0), mean(values), percentile(values, 90.0)];
        Self {
            nl1: three(&all(|score| score.nl1)),
            total: three(&all(|score| score.total)),
            cover: mean(&all(|score| score.cover)),
            cover_p10: percentile(&all(|score| score.cover), 10.0),
            width: percentile(&all(|score| score.width), 50.0),
            total_cover: mean(&all(|score| score.total_covered)),
            total_width: percentile(&all(|score| score.total_width), 50.0),
            pairs: scores.len(),
        }
    }
}

/// The CPU time that this process has taken.
pub fn cpu_now() -> std::time::Duration {
    let clock = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
    clock.map_or(std::time::Duration::ZERO, std::time::Duration::from)
}
