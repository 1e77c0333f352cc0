//! Implements `perfprop estimate`: answers rounds with estimates, both as JSON lines, for other programs.
//!
//! The first line is `init`, then come `read`s, then `end`; each is answered by one line.
//! Members of `init`: `events` (`name`, `fixed`), `counters`, `mux_ms`, `read_ms`, `sched` (`kernel`
//! or `user`), `phase` (`measure` or `learn`), `model` (a file or null), and, if relations are to be
//! used, `exact` (`sum`: factors by event, `equals`: events). A `read` holds `t0`, `t1` (ms),
//! `report` and `d`: raw count, time enabled and time running (ns) of each event. It is answered by
//! `est`, `lo` and `hi` where a report is due, and by `next`, the indices of the events to be
//! counted, where the schedule is the user's. `end` is answered by `total`, `lo`, `hi`; in the phase
//! `learn` the model is written before. Events that were never counted are estimated at zero.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::Error;
use super::stream::Stream;
use crate::estimate::gp::{Constraint, CovarianceModel, CpuClock, EventSpec, Gp, MAX_EVENTS, Prior, Settings, Timing};
use crate::plan::RoundRobin;
use crate::rates::{Confidence, Delta, Uncertain};
use crate::units::CpuNs;

/// The arguments of `perfprop estimate`.
#[derive(Debug, Args)]
pub(super) struct EstimateArgs {
    /// Learn from the run alone, without prior knowledge of programs
    #[arg(long)]
    pub(super) no_prior: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Request {
    Init(Init),
    Read { t0: f64, t1: f64, report: bool, d: Vec<[f64; 3]> },
    End {},
}

#[derive(Debug, Deserialize)]
struct Init {
    events: Vec<InitEvent>,
    counters: usize,
    mux_ms: f64,
    read_ms: f64,
    #[serde(default)]
    sched: Schedule,
    #[serde(default)]
    phase: Phase,
    #[serde(default)]
    model: Option<PathBuf>,
    #[serde(default)]
    exact: Vec<ExactSum>,
}

#[derive(Debug, Deserialize)]
struct InitEvent {
    name: String,
    fixed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Schedule {
    #[default]
    Kernel,
    User,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    #[default]
    Measure,
    Learn,
}

#[derive(Debug, Deserialize)]
struct ExactSum {
    sum: BTreeMap<String, f64>,
    equals: Vec<String>,
}

/// The standard error of sums that are said to be exact.
const SUM_TOLERANCE: f64 = 1e-3;

#[derive(Debug, Default, Serialize)]
struct Answer {
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    est: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lo: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hi: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Vec<usize>>,
}

/// `perfprop estimate`.
pub(super) fn run(args: &EstimateArgs) -> Result<u8, Error> {
    let prior = match args.no_prior {
        true => Prior::default(),
        false => Prior::shipped(),
    };
    let mut out = Stream::stdout();
    let mut session = None;
    for (number, line) in io::stdin().lock().lines().enumerate() {
        let wrong = |reason: String| Error::Usage(format!("standard input, line {}: {reason}", number + 1));
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let request: Request = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let end = matches!(request, Request::End {});
        let answer = match (request, &mut session) {
            (Request::Init(init), _) => {
                session = Some(Session::new(init, &prior).map_err(wrong)?);
                Answer { ready: Some(true), ..Answer::default() }
            }
            (_, None) => return Err(wrong("the first line must be of type \"init\"".into())),
            (Request::Read { t0, t1, report, d }, Some(session)) => session.read(t1 - t0, report, &d).map_err(wrong)?,
            (Request::End {}, Some(session)) => session.end()?,
        };
        let text = serde_json::to_string(&answer).map_err(|error| wrong(error.to_string()))?;
        out.print(&(text + "\n"))?;
        if end {
            return Ok(0);
        }
    }
    Ok(0)
}

/// A run that is being estimated.
struct Session {
    gp: Gp,
    clock: CpuClock,
    events: usize,
    /// Which events are counted next, where the schedule is the user's.
    schedule: Option<RoundRobin>,
    /// Where what is learnt is written to.
    model: Option<PathBuf>,
}

impl Session {
    fn new(init: Init, prior: &Prior) -> Result<Self, String> {
        if init.events.len() > MAX_EVENTS {
            return Err(format!(
                "{} events; {MAX_EVENTS} can be estimated together, as memory grows with their pairs",
                init.events.len()
            ));
        }
        let events: Vec<EventSpec> =
            init.events.iter().map(|e| EventSpec { name: e.name.clone(), always_counted: e.fixed }).collect();
        let rotation_ms = match init.sched {
            Schedule::Kernel => init.mux_ms,
            Schedule::User => init.read_ms,
        };
        let timing = Timing { read_ms: init.read_ms, rotation_ms };
        let model = match &init.model {
            Some(path) if init.phase == Phase::Measure || path.exists() => {
                Some(CovarianceModel::read(path).map_err(|error| error.to_string())?)
            }
            _ => None,
        };
        let settings = match (&model, init.phase) {
            (Some(_), Phase::Measure) => Settings::default().with_model(),
            _ => Settings::default(),
        };
        let mut gp = Gp::new(&events, timing, settings, prior, model.as_ref());
        init.exact.iter().filter_map(|sum| constraint(sum, &events)).for_each(|constraint| gp.constrain(constraint));
        let model = init.model.filter(|_| init.phase == Phase::Learn);
        if model.is_some() {
            gp = gp.learning();
        }
        let multiplexed = (0..events.len()).filter(|&event| !events[event].always_counted).collect();
        let schedule = (init.sched == Schedule::User).then(|| RoundRobin::new(multiplexed, init.counters));
        Ok(Self { gp, clock: CpuClock::default(), events: events.len(), schedule, model })
    }

    fn read(&mut self, wall_ms: f64, report: bool, counted: &[[f64; 3]]) -> Result<Answer, String> {
        if counted.len() != self.events {
            return Err(format!("\"d\" holds {} events; init has {}", counted.len(), self.events));
        }
        let deltas: Vec<Delta> = counted.iter().map(|&numbers| delta(numbers)).collect();
        if let Some(round) = self.clock.round(wall_ms, deltas.iter()) {
            self.gp.round(round, &deltas);
        }
        let mut answer = Answer::default();
        if report {
            let [estimates, low, high] = columns(&self.gp.interval(Confidence::DEFAULT));
            (answer.est, answer.lo, answer.hi) = (Some(estimates), Some(low), Some(high));
        }
        answer.next = self.schedule.as_mut().map(RoundRobin::next_slice);
        Ok(answer)
    }

    fn end(&mut self) -> Result<Answer, Error> {
        if let Some(path) = &self.model {
            self.gp.model().write(path).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        let [totals, low, high] = columns(&self.gp.totals(Confidence::DEFAULT));
        Ok(Answer { total: Some(totals), lo: Some(low), hi: Some(high), ..Answer::default() })
    }
}

/// Numbers of JSON as counts and times; what is negative or no number is 0.
fn delta([count, enabled_ns, running_ns]: [f64; 3]) -> Delta {
    let whole = |number: f64| number.round() as u64;
    Delta { count: whole(count), enabled: CpuNs(whole(enabled_ns)), running: CpuNs(whole(running_ns)) }
}

/// Estimates, and the lower and upper ends of their intervals.
fn columns(estimates: &[Option<Uncertain>]) -> [Vec<f64>; 3] {
    let known = |estimate: &Option<Uncertain>| {
        let (value, bounds) = estimate.map_or((0.0, None), |found| (found.value, found.bounds()));
        let (low, high) = bounds.unwrap_or((value, value));
        [value, low, high]
    };
    let rows: Vec<_> = estimates.iter().map(known).collect();
    [0, 1, 2].map(|column| rows.iter().map(|row| row[column]).collect())
}

/// A sum as a constraint; `None` unless all of its events are measured.
fn constraint(sum: &ExactSum, events: &[EventSpec]) -> Option<Constraint> {
    let place = |name: &String| events.iter().position(|event| event.name == *name);
    let left = sum.sum.iter().map(|(name, &factor)| Some((place(name)?, factor)));
    let right = sum.equals.iter().map(|name| Some((place(name)?, -1.0)));
    let terms = left.chain(right).collect::<Option<Vec<_>>>()?;
    Some(Constraint { tolerance: SUM_TOLERANCE, ..Constraint::exact(terms) })
}
