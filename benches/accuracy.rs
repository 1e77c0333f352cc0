//! Set-ups in, tables of errors beside scaling's out: each half of the traces' programs is estimated
//! with a prior that the other half taught.

#[path = "../tests/scoring/mod.rs"]
mod scoring;

use perfprop::estimate::gp::{Delta, EventSpec, Gp, IntervalEstimate, Model, Prior, Settings, Span, Timing, Complete};
use scoring::*;

struct Scored(Gp);

impl Scored {
    fn new(init: &Init, prior: &Prior, model: Option<&Model>) -> Self {
        let events: Vec<_> = init
            .events
            .iter()
            .map(|(name, fixed)| EventSpec { name: name.clone(), always_counted: *fixed })
            .collect();
        let user = init.setup.schedule == Schedule::User;
        let rotation_ms = if user { init.read_ms } else { init.setup.mux_ms };
        let timing = Timing { read_ms: init.read_ms, rotation_ms, counters: init.setup.counters };
        let settings = match std::env::args().find_map(|a| a.strip_prefix("settings=").map(str::to_owned)) {
            Some(json) => serde_json::from_str(&json).unwrap(),
            None => Settings::default(),
        };
        let settings = if model.is_some() { settings.with_model() } else { settings };
        Self(Gp::new(&events, timing, settings, prior, model))
    }
}

fn answers(estimates: Vec<Option<IntervalEstimate>>) -> Vec<Answer> {
    estimates.into_iter().map(Option::unwrap_or_default).map(|e| Answer { estimate: e.estimate, low: e.low, high: e.high }).collect()
}

impl Estimating for Scored {
    fn round(&mut self, start: f64, end: f64, counted: &[Counted], report: bool) -> Option<Vec<Answer>> {
        let deltas: Vec<_> = counted
            .iter()
            .map(|c| Delta { raw: c[0] as f64, enabled_ns: c[1] as f64, running_ns: c[2] as f64 })
            .collect();
        self.0.round(Span { start, end }, &deltas);
        report.then(|| answers(self.0.interval()))
    }

    fn totals(&mut self) -> Vec<Answer> {
        answers(self.0.totals())
    }
}

fn complete(trace: &Trace) -> Complete<'_> {
    Complete { names: &trace.names, rows: &trace.rows, row_ms: trace.row_ms }
}

fn main() {
    let folder = std::env::var("PERFPROP_TRACES").unwrap_or_else(|_| "../shared/traces".into());
    let all = programs(folder.as_ref()).unwrap();
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let get = |key: &str| arguments.iter().find_map(|a| a.strip_prefix(&format!("{key}=")).map(str::to_owned));
    let kernel = get("family").as_deref() == Some("kernel");
    let programs: Vec<&Program> = all.iter().filter(|p| p.name.starts_with("k_") == kernel).collect();
    let chosen = get("programs");
    let folds_count = get("folds").map_or(2, |n| n.parse().unwrap());
    let folds: Vec<Prior> = (0..folds_count)
        .map(|fold| {
            let mut training = Vec::new();
            for (i, program) in programs.iter().enumerate() {
                if i % folds_count != fold {
                    for trace in [Some(&program.trace), program.other.as_ref()].into_iter().flatten() {
                        training.push(complete(trace));
                    }
                }
            }
            Prior::learn(&training)
        })
        .collect();
    for text in get("setups").unwrap_or_else(|| "default".into()).split(';') {
        let mut setup = Setup::default();
        let mut none = false;
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
                "refnone" => none = true,
                _ => {}
            }
        }
        let mut ours = Vec::new();
        let mut perfs = Vec::new();
        let mut worst: f64 = 0.0;
        let mut ms = Vec::new();
        for (i, program) in programs.iter().enumerate() {
            if chosen.as_ref().is_some_and(|names| !names.split(',').any(|name| program.name.starts_with(name))) {
                continue;
            }
            let own;
            let prior = if get("self").is_some() {
                own = Prior::learn(&[complete(&program.trace)]);
                &own
            } else {
                &folds[i % folds_count]
            };
            let mut model = None;
            if get("learn").is_some() {
                let Some(other) = &program.other else { continue };
                for seed in 1000..1003 {
                    let (_, learnt) = simulate(other, Part::Whole, &setup, seed, |init| Scored::new(init, prior, model.as_ref()));
                    model = Some(learnt.0.model());
                }
            }
            let (run, _) = simulate(&program.trace, Part::Whole, &setup, 0, |init| Scored::new(init, prior, model.as_ref()));
            let reference = if none {
                Setup { grouping: Grouping::None, mux_ms: 4.0, schedule: Schedule::Kernel, ..setup }
            } else {
                Setup { schedule: Schedule::Kernel, ..setup }
            };
            let (perf, _) = simulate(&program.trace, Part::Whole, &reference, 0, |init| Perf::new(init.events.len()));
            let (mine, its) = (score(&run), score(&perf));
            let median = |scores: &[Score]| percentile(&scores.iter().map(|s| s.nl1).collect::<Vec<_>>(), 50.0);
            worst = worst.max(median(&mine) / median(&its));
            if get("each").is_some() {
                let s = Summary::of(&mine);
                println!(
                    "  {:16} {:.4} perf {:.4} ratio {:.2} cover {:.3} p10 {:.3} tot {:.4} perf {:.4}",
                    program.name, median(&mine), median(&its), median(&mine) / median(&its), s.cover, s.cover_p10, s.total[0], Summary::of(&its).total[0]
                );
            }
            if get("events").is_some_and(|name| program.name.starts_with(&name)) {
                for (a, b) in mine.iter().zip(&its) {
                    println!("    {:16} {:.4} perf {:.4} cover {:.3} width {:.3} tot {:.4} {:.4}", a.event, a.nl1, b.nl1, a.cover, a.width, a.total, b.total);
                    let event = run.names.iter().position(|n| *n == a.event).unwrap();
                    if get("series").is_some_and(|n| n == a.event) {
                        for (t, (truth, answer)) in run.truth.iter().zip(&run.answers).enumerate() {
                            println!("{:.0} ours {:.0} ({:.0} {:.0}) perf {:.0}", truth[event], answer[event].estimate, answer[event].low, answer[event].high, perf.answers[t][event].estimate);
                        }
                    }
                }
            }
            ms.push(run.ms_per_report);
            ours.extend(mine);
            perfs.extend(its);
        }
        let (a, b) = (Summary::of(&ours), Summary::of(&perfs));
        println!(
            "{text:24} nl1 {:.4} {:.4} {:.4} | perf {:.4} {:.4} {:.4} | ratio {:.3} {:.3} {:.3} worst {:.2} | cover {:.3} p10 {:.3} width {:.3} | tot {:.4} {:.4} perf {:.4} {:.4} cover {:.3} | {:.2} ms",
            a.nl1[0], a.nl1[1], a.nl1[2], b.nl1[0], b.nl1[1], b.nl1[2],
            a.nl1[0] / b.nl1[0], a.nl1[1] / b.nl1[1], a.nl1[2] / b.nl1[2], worst,
            a.cover, a.cover_p10, a.width, a.total[0], a.total[2], b.total[0], b.total[2], a.total_cover, mean(&ms)
        );
    }
}
