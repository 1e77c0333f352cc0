//! Scores an estimator under conditions that real users have and the standard set-up leaves out: several threads, reads that
//! come late, names that mean nothing, events that are rare, come in bursts or beat with the rotation.

mod random;
mod scenarios;
mod worlds;

use std::ops::Range;

use perfprop::estimate::gp::{CpuClock, EventSpec, Gp, Prior, Settings, WhenCounted};
use perfprop::plan::RoundRobin;
use perfprop::rates::{Confidence, Delta};
use perfprop::units::CpuNs;

use super::gp::answers;
use super::{Answer, Counted, Estimating, Grouping, Init, Perf, Program, Rotation, Schedule, Setup, mean, percentile};
pub use random::Random;
pub use scenarios::{SCENARIOS, Scenario};

const ROW_NS: f64 = 1e6;
/// Rows in a report.
const REPORT: usize = 100;
/// Errors below this count as this: nobody can tell them apart.
const LEAST_ERROR: f64 = 0.002;
/// The fewest counts a report that an event is scored with.
const LEAST_COUNT: f64 = 50.0;

/// Raw count, time enabled and time running (ns) of each event in a row of a millisecond.
pub type ShownRow = Vec<[f64; 3]>;

/// A run to be estimated.
pub struct HardRun {
    pub events: Vec<String>,
    /// How many of them, the first ones, are always counted.
    pub fixed: usize,
    /// The full counts, a row a millisecond, and what the counters show of them.
    pub truth: Vec<Vec<f64>>,
    pub shown: Vec<ShownRow>,
    /// Rows before which a read comes; the first is 0.
    pub cuts: Vec<usize>,
    pub setup: Setup,
    /// Reports at the start that aren't scored.
    pub warm: usize,
    /// The events that are scored; the multiplexed ones where empty.
    pub scored: Vec<usize>,
    pub least_count: f64,
}

/// What one thread's counters show of the full counts.
pub fn counted(truth: &[Vec<f64>], fixed: usize, setup: &Setup, random: &mut Random) -> Vec<ShownRow> {
    let events = truth.first().map_or(0, Vec::len);
    let mut rotation = Rotation::new(events - fixed, setup, random.unit());
    let ticks = (setup.mux_ms.round() as usize).max(1);
    let phase = random.below(ticks);
    let mut shown = Vec::with_capacity(truth.len());
    for (row, counts) in truth.iter().enumerate() {
        if row > 0 && (row + phase).is_multiple_of(ticks) {
            rotation.tick();
        }
        let mut line = vec![[0.0, ROW_NS, 0.0]; events];
        for event in (0..fixed).chain(rotation.active.iter().map(|event| event + fixed)) {
            line[event] = [counts[event], ROW_NS, ROW_NS];
        }
        shown.push(line);
    }
    shown
}

/// Sums of a range of rows.
fn sums(rows: &[Vec<f64>]) -> Vec<f64> {
    let mut all = vec![0.0; rows.first().map_or(0, Vec::len)];
    rows.iter().for_each(|row| all.iter_mut().zip(row).for_each(|(sum, count)| *sum += count));
    all
}

fn shown_sums(rows: &[ShownRow]) -> Vec<[f64; 3]> {
    let mut all = vec![[0.0; 3]; rows.first().map_or(0, Vec::len)];
    for row in rows {
        for (sum, now) in all.iter_mut().zip(row) {
            (0..3).for_each(|i| sum[i] += now[i]);
        }
    }
    all
}

/// A report: its rows, what was true and shown of it, and what was answered.
struct Report {
    truth: Vec<f64>,
    shown: Vec<[f64; 3]>,
    answers: Vec<Answer>,
}

impl HardRun {
    /// The reads as ranges of rows, each with whether a report is due: at the first read at or after each 100 ms. The run ends
    /// with the last report.
    fn reads(&self) -> Vec<(Range<usize>, bool)> {
        let due = |read: &[usize]| read[1] / REPORT > read[0] / REPORT;
        let reads: Vec<_> = self.cuts.windows(2).map(|read| (read[0]..read[1], due(read))).collect();
        let last = reads.iter().rposition(|(_, due)| *due).map_or(0, |last| last + 1);
        reads[..last].to_vec()
    }

    fn init(&self) -> Init {
        let events = self.events.iter().enumerate().map(|(i, name)| (name.clone(), i < self.fixed)).collect();
        Init { events, setup: self.setup, read_ms: self.setup.read_ms }
    }

    /// Runs an estimator over it; a score an event.
    pub fn play(&self, estimator: &mut dyn Estimating) -> Vec<HardScore> {
        let n = self.events.len() - self.fixed;
        let k = self.setup.counters.min(n);
        let (mut next, mut position): (Vec<usize>, usize) = ((0..k).collect(), k);
        let (mut reports, mut start) = (Vec::new(), 0);
        for (rows, due) in self.reads() {
            let mut shown = shown_sums(&self.shown[rows.clone()]);
            if self.setup.schedule == Schedule::User {
                let full = sums(&self.truth[rows.clone()]);
                for (event, [raw, enabled, running]) in shown.iter_mut().enumerate() {
                    let is_on = event < self.fixed || next.contains(&(event - self.fixed));
                    (*raw, *running) = if is_on { (full[event], *enabled) } else { (0.0, 0.0) };
                }
            }
            let given: Vec<Counted> = shown.iter().map(|now| now.map(|number| number as u64)).collect();
            let answers = estimator.round(rows.start as f64, rows.end as f64, &given, due);
            if self.setup.schedule == Schedule::User {
                next = match estimator.next() {
                    Some(next) => next.iter().filter_map(|&event| event.checked_sub(self.fixed)).take(k).collect(),
                    None => (0..k).map(|i| (position + i) % n).collect(),
                };
                position += k;
            }
            if let Some(answers) = answers {
                let all = start..rows.end;
                reports.push(Report {
                    truth: sums(&self.truth[all.clone()]),
                    shown: shown_sums(&self.shown[all]),
                    answers,
                });
                start = rows.end;
            }
        }
        let totals = estimator.totals();
        let scored = |event: &usize| self.scored.is_empty() || self.scored.contains(event);
        (self.fixed..self.events.len())
            .filter(scored)
            .filter_map(|event| self.score(event, &reports, totals[event]))
            .collect()
    }

    fn score(&self, event: usize, reports: &[Report], total: Answer) -> Option<HardScore> {
        let all: f64 = reports.iter().map(|report| report.truth[event]).sum();
        if all / (reports.len().max(1) as f64) < self.least_count || reports.len() <= self.warm {
            return None;
        }
        // Nobody knows an event that hasn't been counted yet, and where nothing ran there is nothing to know.
        let (mut seen, mut rows) = (0.0, Vec::new());
        for report in reports {
            let [_, enabled, running] = report.shown[event];
            seen += running;
            let is_alive = enabled > 0.0 && (seen > 0.0 || self.setup.schedule == Schedule::User);
            rows.push((report.truth[event], report.answers[event], is_alive));
        }
        let holds = |truth: f64, answer: &Answer| {
            let slack = 1e-9 * truth + 1e-6;
            answer.low - slack <= truth && truth <= answer.high + slack
        };
        let warm = &rows[self.warm..];
        let or_one = |sum: f64, count: usize| if sum == 0.0 { count as f64 } else { sum };
        let size = or_one(warm.iter().map(|(truth, ..)| truth).sum(), warm.len());
        let known: Vec<_> = warm.iter().filter(|(.., is_alive)| *is_alive).collect();
        let held = known.iter().filter(|(truth, answer, _)| holds(*truth, answer)).count();
        let first = |report: usize| {
            let (truth, answer, _) = rows.get(report).filter(|(.., is_alive)| *is_alive)?;
            Some(f64::from(u8::from(holds(*truth, answer))))
        };
        let whole = or_one(all, reports.len());
        Some(HardScore {
            nl1: warm.iter().map(|(truth, answer, _)| (answer.estimate - truth).abs()).sum::<f64>() / size,
            cover: (!known.is_empty()).then(|| held as f64 / known.len() as f64),
            width: warm.iter().map(|(_, answer, _)| answer.high - answer.low).sum::<f64>() / size,
            first: [0, 1, 2, 3].map(first),
            total: (total.estimate - all).abs() / whole,
            total_covered: f64::from(u8::from(holds(all, &total))),
            total_width: (total.high - total.low) / whole,
        })
    }
}

/// How far an event's estimates in a run were off.
#[derive(Clone, Copy, Debug)]
pub struct HardScore {
    pub nl1: f64,
    pub cover: Option<f64>,
    pub width: f64,
    /// Whether the interval of each of the first four reports holds the truth.
    pub first: [Option<f64>; 4],
    pub total: f64,
    pub total_covered: f64,
    pub total_width: f64,
}

/// All runs of a scenario: an estimator's errors beside scaling's, and what its intervals hold.
#[derive(Clone, Copy, Debug)]
pub struct HardSummary {
    pub scaling: f64,
    pub nl1: f64,
    pub ratio: f64,
    pub cover: f64,
    pub p10: f64,
    pub width: f64,
    pub first: [f64; 4],
    pub total_ratio: f64,
    pub total_cover: f64,
    pub total_width: f64,
    /// The part of the runs that were found to beat with the rotation.
    pub aliased: f64,
    pub pairs: usize,
}

fn ratio(error: f64, reference: f64) -> f64 {
    error.max(LEAST_ERROR) / reference.max(LEAST_ERROR)
}

impl HardSummary {
    fn of(ours: &[HardScore], scaled: &[HardScore], aliased: &[f64]) -> Self {
        let all = |scores: &[HardScore], value: fn(&HardScore) -> Option<f64>| {
            scores.iter().filter_map(value).collect::<Vec<_>>()
        };
        let median = |scores: &[HardScore], value: fn(&HardScore) -> Option<f64>| percentile(&all(scores, value), 50.0);
        let (nl1, scaling) = (median(ours, |score| Some(score.nl1)), median(scaled, |score| Some(score.nl1)));
        let (total, its) = (median(ours, |score| Some(score.total)), median(scaled, |score| Some(score.total)));
        let cover = all(ours, |score| score.cover);
        let first = |report: usize| mean(&ours.iter().filter_map(|score| score.first[report]).collect::<Vec<_>>());
        Self {
            scaling,
            nl1,
            ratio: ratio(nl1, scaling),
            cover: mean(&cover),
            p10: percentile(&cover, 10.0),
            width: median(ours, |score| Some(score.width)),
            first: [0, 1, 2, 3].map(first),
            total_ratio: ratio(total, its),
            total_cover: mean(&all(ours, |score| Some(score.total_covered))),
            total_width: median(ours, |score| Some(score.total_width)),
            aliased: mean(aliased),
            pairs: ours.len(),
        }
    }
}

/// Scores `gp` in a scenario, over as many runs as it has for each of some seeds, or fewer.
pub fn measure(
    scenario: &Scenario,
    programs: &[&Program],
    prior: &Prior,
    seeds: Range<usize>,
    runs: usize,
) -> HardSummary {
    let (mut ours, mut scaled, mut aliased) = (Vec::new(), Vec::new(), Vec::new());
    for (seed, run) in seeds.flat_map(|seed| (0..scenario.runs.min(runs)).map(move |run| (seed, run))) {
        let run = scenario.run(programs, seed, run);
        let mut live = Live::new(&run.init(), prior);
        ours.extend(run.play(&mut live));
        aliased.push(f64::from(u8::from(live.is_aliased)));
        scaled.extend(run.play(&mut Perf::new(run.events.len())));
    }
    HardSummary::of(&ours, &scaled, &aliased)
}

/// The estimator as a live measurement has it: by CPU time.
struct Live {
    gp: Gp,
    clock: CpuClock,
    turns: RoundRobin,
    /// Whether the rotation was found to beat with the program, at any report.
    is_aliased: bool,
}

impl Live {
    fn new(init: &Init, prior: &Prior) -> Self {
        let spec = |(name, fixed): &(String, bool)| EventSpec {
            name: name.clone(),
            counted: if *fixed { WhenCounted::Always } else { WhenCounted::InTurns },
        };
        let events: Vec<_> = init.events.iter().map(spec).collect();
        let rotation_ms = if init.setup.schedule == Schedule::Kernel { init.setup.mux_ms } else { init.read_ms };
        let multiplexed =
            (0..events.len()).filter(|&event| !events[event].counted.is_always()).map(|event| vec![event]).collect();
        let gp = Gp::new(&events, rotation_ms, Settings::default(), prior, None);
        let turns = RoundRobin::new(multiplexed, init.setup.counters, Vec::new());
        Self { gp, clock: CpuClock::default(), turns, is_aliased: false }
    }
}

impl Estimating for Live {
    fn round(&mut self, start: f64, end: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>> {
        let delta =
            |&[raw, enabled, running]: &Counted| Delta { count: raw, enabled: CpuNs(enabled), running: CpuNs(running) };
        let deltas: Vec<_> = counted.iter().map(delta).collect();
        if let Some(span) = self.clock.round(end - start, deltas.iter()) {
            self.gp.round(span, &deltas);
        }
        self.is_aliased |= self.gp.aliasing().is_some();
        report.then(|| answers(self.gp.interval(Confidence::DEFAULT)))
    }

    fn next(&mut self) -> Option<Vec<usize>> {
        Some(self.turns.next_slice())
    }

    fn totals(&mut self) -> Vec<Answer> {
        answers(self.gp.totals(Confidence::DEFAULT).into_iter().map(|total| Some(total?.count)).collect())
    }
}

/// The set-up that most scenarios have: rounds of 4 ms, as long as the kernel's turns.
fn standard() -> Setup {
    Setup { grouping: Grouping::None, ..Setup::default() }
}
