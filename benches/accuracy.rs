//! Measures the errors of an estimator beside those of scaling: each half of the traces' programs is
//! estimated with a prior that the other half taught.
//!
//! `cargo bench --bench accuracy -- [setups=K4,N24;pack,mux1,refnone;user,read2] [family=kernel]
//! [each=1] [folds=2] [seeds=1] [learn=other|half] [hindsight=1] [settings={"context_ms":100}]`, with `PERFPROP_TRACES` the folder.
//! The last column is the estimator's CPU time per report; `cost=24,100,200` prints that alone, of made-up
//! rates of so many events on four counters, in groups of four that take turns with `turn=100` or `turn=2` (ms).
//!
//! `hard=all` scores conditions that real users have instead, `hard=threads,alias-user` those of these names or beginnings of
//! names; `[seeds=1] [seed0=0]`. With the shipped prior, as a measurement has it.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for developers")]

#[path = "../tests/support/scoring/mod.rs"]
mod scoring;

use perfprop::estimate::gp::{Complete, CovarianceModel, EventSpec, Gp, Prior, Settings, Span, WhenCounted};
use perfprop::random::SplitMix64;
use perfprop::rates::{Confidence, Delta};
use perfprop::units::CpuNs;
use scoring::gp::Scored;
use scoring::hard::{SCENARIOS, measure};
use scoring::{Grouping, Part, Perf, Program, Run, Schedule, Score, Setup, Summary, Trace};
use scoring::{cpu_now, mean, programs, score, simulate};

struct Options(Vec<String>);

impl Options {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|argument| argument.strip_prefix(key)?.strip_prefix('='))
    }

    fn settings(&self) -> Settings {
        self.get("settings").map_or_else(Settings::default, |json| serde_json::from_str(json).unwrap())
    }
}

fn complete(trace: &Trace) -> Complete<'_> {
    Complete { names: &trace.names, rows: &trace.rows, row_ms: trace.row_ms }
}

/// For each fold, the prior that all programs of other folds teach.
fn priors(programs: &[&Program], folds: usize) -> Vec<Prior> {
    let prior = |fold| {
        let others = programs.iter().enumerate().filter(|(i, _)| i % folds != fold).map(|(_, program)| program);
        let traces = others.flat_map(|program| [Some(&program.trace), program.other.as_ref()]).flatten();
        Prior::learn(&traces.map(complete).collect::<Vec<_>>(), |_| ())
    };
    (0..folds).map(prior).collect()
}

/// A set-up in words, and that which scaling is measured in.
fn setup(text: &str) -> (Setup, Setup) {
    let mut setup = Setup::default();
    for word in text.split(',') {
        let (key, value) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
        match key {
            "K" => setup.counters = value.parse().unwrap(),
            "N" => setup.events = value.parse().unwrap(),
            "mux" => setup.mux_ms = value.parse().unwrap(),
            "read" => setup.read_ms = value.parse().unwrap(),
            "report" => setup.report_ms = value.parse().unwrap(),
            "pack" => setup.grouping = Grouping::Pack,
            "user" => setup.schedule = Schedule::User,
            "nofixed" => setup.fixed = false,
            _ => {}
        }
    }
    let reference = match text.contains("refnone") {
        true => Setup { grouping: Grouping::None, mux_ms: 4.0, schedule: Schedule::Kernel, ..setup },
        false => setup,
    };
    (setup, reference)
}

fn main() {
    let options = Options(std::env::args().skip(1).collect());
    if let Some(events) = options.get("cost") {
        let turn_ms = options.get("turn").map_or(4.0, |turn| turn.parse().unwrap());
        return events.split(',').for_each(|events| cost(events.parse().unwrap(), turn_ms, options.settings()));
    }
    let folder = std::env::var("PERFPROP_TRACES").unwrap_or_else(|_| "../shared/traces".into());
    let all = programs(folder.as_ref()).unwrap();
    let kernel = options.get("family") == Some("kernel");
    let programs: Vec<&Program> = all.iter().filter(|program| program.name.starts_with("k_") == kernel).collect();
    if let Some(names) = options.get("hard") {
        return hard(names, &programs, &options);
    }
    let priors = priors(&programs, options.get("folds").map_or(2, |folds| folds.parse().unwrap()));
    for text in options.get("setups").unwrap_or("K4").split(';') {
        row(text, &programs, &priors, &options);
    }
}

/// Prints a line a scenario, and the worst of all. What can't be known isn't asked: where the kernel's rotation beats with the
/// program, only coverage tells.
fn hard(names: &str, programs: &[&Program], options: &Options) {
    let number = |key: &str, default: usize| options.get(key).map_or(default, |text| text.parse().unwrap());
    let seeds = number("seed0", 0)..number("seed0", 0) + number("seeds", 1);
    let wanted = |name: &str| names == "all" || names.split(',').any(|wanted| name.starts_with(wanted));
    let prior = Prior::shipped();
    let (mut worst, mut least, mut beats) = ((0.0, ""), (1.0, ""), Vec::new());
    println!(
        "{:16} | scaling nl1   ratio | cover p10  | width  | reports 0 to 3      | total ratio cover width",
        "scenario"
    );
    for scenario in SCENARIOS.iter().filter(|scenario| wanted(scenario.name)) {
        let found = measure(scenario, programs, &prior, seeds.clone(), usize::MAX);
        let first = found.first.map(|cover| format!("{cover:.2}")).join(" ");
        println!(
            "{:16} | {:7.3} {:5.3} {:5.2} | {:.3} {:.2} | {:6.2} | {first} | {:.2} {:.2} {:.2}",
            scenario.name,
            found.scaling,
            found.nl1,
            found.ratio,
            found.cover,
            found.p10,
            found.width,
            found.total_ratio,
            found.total_cover,
            found.total_width
        );
        if scenario.name.starts_with("alias-kernel") {
            beats.push(found.cover);
            continue;
        }
        if found.ratio > worst.0 {
            worst = (found.ratio, scenario.name);
        }
        if found.cover < least.0 {
            least = (found.cover, scenario.name);
        }
    }
    println!(
        "worst ratio {:.2} ({}), least coverage {:.3} ({}), alias-kernel {:.3}",
        worst.0,
        worst.1,
        least.0,
        least.1,
        mean(&beats)
    );
}

/// What three runs teach: on the program's other input, or (`learn=half`) on the second half of the
/// trace, of which the first is estimated then.
fn learnt(program: &Program, setup: &Setup, prior: &Prior, options: &Options) -> Option<CovarianceModel> {
    let (trace, part) = match options.get("learn")? {
        "half" => (&program.trace, Part::Second),
        _ => (program.other.as_ref()?, Part::Whole),
    };
    (1000..1003).fold(None, |model, seed| {
        let make = |init: &scoring::Init| Scored::learning(init, prior, model.as_ref(), options.settings());
        simulate(trace, part, setup, seed, make).1.0.model()
    })
}

fn row(text: &str, programs: &[&Program], priors: &[Prior], options: &Options) {
    let (setup, reference) = setup(text);
    let (mut ours, mut scaled): (Vec<Score>, Vec<Score>) = Default::default();
    let (mut worst, mut ms) = (0.0f64, Vec::new());
    let seeds = options.get("seeds").map_or(1, |seeds| seeds.parse().unwrap());
    for (seed, (i, program)) in (0..seeds).flat_map(|seed| std::iter::repeat(seed).zip(programs.iter().enumerate())) {
        let prior = &priors[i % priors.len()];
        let part = if options.get("learn") == Some("half") { Part::First } else { Part::Whole };
        let model = learnt(program, &setup, prior, options);
        if options.get("learn").is_some() && model.is_none() {
            continue;
        }
        let has_hindsight = options.get("hindsight").is_some();
        let make = |init: &scoring::Init| {
            let scored = Scored::with(init, prior, model.as_ref(), options.settings());
            if has_hindsight { scored.keeping() } else { scored }
        };
        let (run, scored) = simulate(&program.trace, part, &setup, seed, make);
        let run = if has_hindsight { Run { answers: scored.hindsight(), ..run } } else { run };
        let (perf, _) = simulate(&program.trace, part, &reference, seed, |init| Perf::new(init.events.len()));
        let (mine, its) = (score(&run), score(&perf));
        let (a, b) = (Summary::of(&mine), Summary::of(&its));
        worst = worst.max(a.nl1[0] / b.nl1[0]);
        if options.get("each").is_some() {
            let ratio = a.nl1[0] / b.nl1[0];
            println!("  {:20} {:.4} {:.4} {ratio:.2} cover {:.3}", program.name, a.nl1[0], b.nl1[0], a.cover);
        }
        ms.push(run.ms_per_report);
        ours.extend(mine);
        scaled.extend(its);
    }
    let (a, b) = (Summary::of(&ours), Summary::of(&scaled));
    let ratio = |of: usize| a.nl1[of] / b.nl1[of];
    println!(
        "{text:20} nl1 {:.3} {:.3} {:.3} | scaling {:.3} {:.3} {:.3} | ratio {:.2} {:.2} {:.2} worst {worst:.2} | \
         cover {:.3} p10 {:.3} width {:.2} | tot {:.4} {:.3} scaling {:.4} {:.3} cover {:.2} | {:.2} ms",
        a.nl1[0],
        a.nl1[1],
        a.nl1[2],
        b.nl1[0],
        b.nl1[1],
        b.nl1[2],
        ratio(0),
        ratio(1),
        ratio(2),
        a.cover,
        a.cover_p10,
        a.width,
        a.total[0],
        a.total[2],
        b.total[0],
        b.total[2],
        a.total_cover,
        mean(&ms)
    );
}

/// How long rounds and turns are in made-up counts.
#[derive(Clone, Copy)]
struct Turns {
    round_ms: f64,
    rounds: usize,
}

impl Turns {
    /// Rounds of 4 ms, or of a turn if that is shorter.
    fn new(turn_ms: f64) -> Self {
        let round_ms = turn_ms.min(4.0);
        Self { round_ms, rounds: (turn_ms / round_ms) as usize }
    }

    /// Whether groups of four change places, and not one event after the other as in the kernel's rotation.
    fn are_of_groups(self) -> bool {
        self.rounds > 1 || self.round_ms < 4.0
    }

    /// A count in a round of which the event ran for a part.
    fn delta(self, count: f64, part: f64) -> Delta {
        let ns = 1e6 * self.round_ms;
        Delta { count: count as u64, enabled: CpuNs(ns as u64), running: CpuNs((ns * part) as u64) }
    }
}

/// Counts of a round in which each event runs for a part of the time; half of what they do is common.
fn made_up(round: usize, events: usize, turns: Turns, random: &mut SplitMix64) -> Vec<Delta> {
    // Three events run for the whole of it, one comes on and one goes off a bit after its start.
    let late = 0.36;
    let common = random.uniform();
    let event = |event: usize| {
        let place = (event + events - round % events) % events;
        let part = match place {
            _ if turns.are_of_groups() => f64::from(u8::from(event / 4 == round / turns.rounds % events.div_ceil(4))),
            0..3 => 1.0,
            3 => 1.0 - late,
            _ if place == events - 1 => late,
            _ => 0.0,
        };
        turns.delta(1e4 * part * (0.5 + common + 0.3 * random.uniform()), part)
    };
    let mut deltas: Vec<Delta> = (0..events).map(event).collect();
    deltas.extend([turns.delta(1e6 * (0.5 + common), 1.0); 2]);
    deltas
}

/// The CPU time of a report of 100 ms.
fn cost(events: usize, turn_ms: f64, settings: Settings) {
    let mut specs: Vec<EventSpec> =
        (0..events).map(|i| EventSpec { name: format!("event{i}"), counted: WhenCounted::InTurns }).collect();
    specs.extend(["cycles", "instructions"].map(|name| EventSpec { name: name.into(), counted: WhenCounted::Always }));
    let turns = Turns::new(turn_ms);
    let (rounds, round_ms) = ((100.0 / turns.round_ms) as usize, turns.round_ms);
    let mut gp = Gp::new(&specs, turn_ms, settings, &Prior::shipped(), None);
    let mut random = SplitMix64::new(1);
    let mut ms = Vec::new();
    for report in 0..80 {
        let counts: Vec<_> =
            (rounds * report..rounds * (report + 1)).map(|i| (i, made_up(i, events, turns, &mut random))).collect();
        let before = cpu_now();
        for (i, deltas) in &counts {
            gp.round(Span { start: round_ms * *i as f64, end: round_ms * (*i + 1) as f64 }, deltas);
        }
        std::hint::black_box(gp.interval(Confidence::DEFAULT));
        ms.push(1e3 * (cpu_now() - before).as_secs_f64());
    }
    ms.sort_by(f64::total_cmp);
    println!("{events:4} events: median {:.2} ms, mean {:.2} ms", ms[ms.len() / 2], mean(&ms));
}
