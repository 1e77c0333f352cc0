//! Implements `perfprop estimate`: answers rounds with estimates, both as JSON lines, for other programs.
//!
//! The lines are described in the long help ([`PROTOCOL`]).

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stream::Stream;
use super::{Error, args};
use crate::estimate::gp::{CovarianceModel, CpuClock, EventSpec, Gp, MAX_EVENTS, Prior, Settings, WhenCounted};
use crate::estimate::{Estimate, Estimator, EstimatorKind, JudgedSums};
use crate::events::{Encoding, Event, EventKind, Modifiers, Unit};
use crate::expr::escaped_name;
use crate::names::shown;
use crate::plan::RoundRobin;
use crate::rates::{Confidence, Delta, Error as Uncertainty, Tally, Uncertain};
use crate::relations::{self, Relation};
use crate::units::{CpuNs, WallNs};

/// What the lines hold.
const PROTOCOL: &str = "\
Each line of input is a JSON object, and is answered by one line:
  {\"type\": \"init\", \"events\": [{\"name\": \"cycles\", \"fixed\": true}, ...],
   \"counters\": 4, \"mux_ms\": 4, \"read_ms\": 4}
      The first line, and the only one of its type. fixed: whether the event is always
      counted. mux_ms: for how long the kernel lets events count in turns; read_ms: how often
      counts are read (both in ms, above 0). It may also have
        \"sched\": \"user\"     to be told what to count next; \"kernel\" otherwise
        \"phase\": \"learn\"    to write what the run teaches to \"model\"
        \"model\": FILE       what was learnt before
        \"exact\": [{\"sum\": {\"loads\": 1, \"stores\": 1}, \"equals\": [\"accesses\"]}]
                            sums that hold
  {\"type\": \"read\", \"t0\": 0, \"t1\": 4, \"report\": false, \"d\": [[COUNT, ENABLED, RUNNING], ...]}
      What each event counted from t0 to t1 (ms), and for how long it was enabled and running
      (ns). A negative count is taken as none, as where a counter was reset. Where report is
      true, the answer has est, lo and hi: the count of each event since the last report, and
      its 95 % interval. With \"sched\": \"user\" it has next: the events to count, by index.
  {\"type\": \"end\"}
      The last line. The answer has total, lo and hi of the run, and, unless --as-live is
      given, series, series_lo and series_hi: each report once more, with the whole run known.
An event that was never counted has an estimate of 0 and no width. Learning, models and series
are for the estimator gp.";

/// The arguments of `perfprop estimate`.
#[derive(Debug, Args)]
#[command(after_long_help = PROTOCOL)]
pub(super) struct EstimateArgs {
    /// Learn from the run alone, without prior knowledge of programs
    #[arg(long)]
    pub(super) no_prior: bool,
    /// How to estimate counts
    #[arg(long, value_name = "NAME", value_parser = args::estimator(), default_value = EstimatorKind::Gp.name())]
    pub(super) estimator: EstimatorKind,
    /// Don't estimate each report once more at the end, with the whole run known
    #[arg(long)]
    pub(super) as_live: bool,
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

impl InitEvent {
    fn counted(&self) -> WhenCounted {
        if self.fixed { WhenCounted::Always } else { WhenCounted::InTurns }
    }
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

impl ExactSum {
    /// Its events and factors, which add up to zero; `None` unless all of its events are measured.
    fn terms(&self, events: &[InitEvent]) -> Option<Vec<(usize, f64)>> {
        let place = |name: &String| events.iter().position(|event| event.name == *name);
        let left = self.sum.iter().map(|(name, &factor)| Some((place(name)?, factor)));
        let right = self.equals.iter().map(|name| Some((place(name)?, -1.0)));
        left.chain(right).collect()
    }
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
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
}

/// Each report's estimates, made when all of the run is known.
#[derive(Debug, Serialize)]
struct Series {
    series: Vec<Vec<f64>>,
    series_lo: Vec<Vec<f64>>,
    series_hi: Vec<Vec<f64>>,
}

impl Series {
    fn new(reports: &[Vec<Option<Uncertain>>]) -> Self {
        let [mut series, mut series_lo, mut series_hi] = [const { Vec::new() }; 3];
        for [estimates, low, high] in reports.iter().map(|report| columns(report)) {
            series.push(estimates);
            series_lo.push(low);
            series_hi.push(high);
        }
        Self { series, series_lo, series_hi }
    }
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
        let wrong = |reason: String| Error::Input(format!("standard input, line {}: {}", number + 1, shown(&reason)));
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let request: Request = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let end = matches!(request, Request::End {});
        let answer = match (request, &mut session) {
            (Request::Init(_), Some(_)) => {
                return Err(wrong("a second line of type \"init\": one run is estimated at a time".into()));
            }
            (Request::Init(init), None) => {
                session = Some(Session::new(init, args, &prior).map_err(wrong)?);
                Answer { ready: Some(true), ..Answer::default() }
            }
            (_, None) => return Err(wrong("the first line must be of type \"init\"".into())),
            (Request::Read { t0, t1, .. }, _) if t1 < t0 => {
                return Err(wrong(format!("t1 ({t1}) is before t0 ({t0})")));
            }
            (Request::Read { t0, t1, report, d }, Some(session)) => session.read(t1 - t0, report, &d).map_err(wrong)?,
            (Request::End {}, Some(session)) => session.end()?,
        };
        let text = serde_json::to_string(&answer).map_err(|error| wrong(error.to_string()))?;
        out.print(&(text + "\n"))?;
        if end {
            return Ok(0);
        }
    }
    match session {
        None => Ok(0),
        Some(_) => Err(Error::Input("standard input ended before a line of type \"end\"".into())),
    }
}

/// A run that is being estimated.
struct Session {
    estimation: Estimation,
    events: usize,
    /// Which events are counted next, where the schedule is the user's.
    schedule: Option<RoundRobin>,
    /// Where what is learnt is written to.
    model: Option<PathBuf>,
}

/// What estimates the run.
enum Estimation {
    /// The process alone, with exact sums as constraints.
    Process { gp: Box<Gp>, clock: CpuClock, sums: Box<JudgedSums> },
    /// Any other estimator, with exact sums as relations.
    Other(Other),
}

impl Session {
    fn new(init: Init, args: &EstimateArgs, prior: &Prior) -> Result<Self, String> {
        if init.counters == 0 {
            return Err("\"counters\" is 0: nothing could be counted in turns".into());
        }
        for (key, ms) in [("mux_ms", init.mux_ms), ("read_ms", init.read_ms)] {
            if !(ms > 0.0 && ms.is_finite()) {
                return Err(format!("\"{key}\" is {ms}: it has to be a time above 0, in milliseconds"));
            }
        }
        let multiplexed = init.events.iter().enumerate().filter(|(_, event)| !event.fixed);
        let multiplexed = multiplexed.map(|(place, _)| vec![place]).collect();
        let sums = init
            .exact
            .iter()
            .filter_map(|sum| Some(sum.terms(&init.events)?.into_iter().map(|(event, _)| event).collect()));
        let schedule =
            (init.sched == Schedule::User).then(|| RoundRobin::new(multiplexed, init.counters, sums.collect()));
        let (events, learns) = (init.events.len(), init.phase == Phase::Learn);
        let model = init.model.clone().filter(|_| learns);
        let keeps_windows = !args.as_live && !learns;
        let estimation = match args.estimator {
            EstimatorKind::Gp => Estimation::process(init, prior, keeps_windows)?,
            kind if learns => return Err(format!("phase \"learn\" is for the estimator gp, not for {}", kind.name())),
            kind => Estimation::Other(Other::new(&init, kind)?),
        };
        Ok(Self { estimation, events, schedule, model })
    }

    fn read(&mut self, wall_ms: f64, report: bool, counted: &[[f64; 3]]) -> Result<Answer, String> {
        if counted.len() != self.events {
            return Err(format!("\"d\" holds {} events; init has {}", counted.len(), self.events));
        }
        let deltas: Vec<Delta> = counted.iter().map(|&numbers| delta(numbers)).collect();
        self.estimation.round(wall_ms, &deltas);
        let mut answer = Answer::default();
        if report {
            let [estimates, low, high] = columns(&self.estimation.interval());
            (answer.est, answer.lo, answer.hi) = (Some(estimates), Some(low), Some(high));
        }
        answer.next = self.schedule.as_mut().map(RoundRobin::next_slice);
        Ok(answer)
    }

    fn end(&mut self) -> Result<Answer, Error> {
        if let (Some(path), Estimation::Process { gp, .. }) = (&self.model, &self.estimation)
            && let Some(model) = gp.model()
        {
            model.write(path).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        let [totals, low, high] = columns(&self.estimation.totals());
        let series = self.estimation.series().map(|reports| Series::new(&reports));
        Ok(Answer { total: Some(totals), lo: Some(low), hi: Some(high), series, ..Answer::default() })
    }
}

impl Estimation {
    fn process(init: Init, prior: &Prior, keeps_windows: bool) -> Result<Self, String> {
        if init.events.len() > MAX_EVENTS {
            return Err(format!(
                "{} events; {MAX_EVENTS} can be estimated together, as memory grows with their pairs",
                init.events.len()
            ));
        }
        let events: Vec<EventSpec> =
            init.events.iter().map(|e| EventSpec { name: e.name.clone(), counted: e.counted() }).collect();
        let rotation_ms = match init.sched {
            Schedule::Kernel => init.mux_ms,
            Schedule::User => init.read_ms,
        };
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
        let mut gp = Gp::new(&events, rotation_ms, settings, prior, model.as_ref());
        let mut sums = JudgedSums::new(&measured(&init), &equations(&init.exact)?);
        gp.constrain_to(sums.constraints());
        if init.phase == Phase::Learn && init.model.is_some() {
            gp = gp.learning(model.as_ref());
        }
        if keeps_windows {
            gp = gp.keeping_windows();
            sums = sums.keeping_intervals();
        }
        Ok(Self::Process { gp: Box::new(gp), clock: CpuClock::default(), sums: Box::new(sums) })
    }

    fn round(&mut self, wall_ms: f64, deltas: &[Delta]) {
        match self {
            Self::Process { gp, clock, sums } => {
                if let Some(round) = clock.round(wall_ms, deltas.iter()) {
                    gp.round(round, &sums.round(deltas));
                }
            }
            Self::Other(other) => other.round(wall_ms, deltas),
        }
    }

    fn interval(&mut self) -> Vec<Option<Uncertain>> {
        match self {
            Self::Process { gp, sums, .. } => {
                let mut estimates = gp.interval(Confidence::DEFAULT);
                gp.constrain_to(sums.end_interval(&mut estimates, Confidence::DEFAULT));
                estimates
            }
            Self::Other(other) => other.interval(),
        }
    }

    fn totals(&mut self) -> Vec<Option<Uncertain>> {
        match self {
            Self::Process { gp, sums, .. } => {
                let totals = gp.totals(Confidence::DEFAULT).into_iter();
                let mut totals: Vec<_> = totals.map(|total| Some(total?.count)).collect();
                sums.end(&mut totals, Confidence::DEFAULT);
                totals
            }
            Self::Other(other) => other.totals(),
        }
    }

    /// The estimates of all reports, made now that all of the run is known.
    fn series(&self) -> Option<Vec<Vec<Option<Uncertain>>>> {
        let Self::Process { gp, sums, .. } = self else { return None };
        let mut series = gp.hindsight(Confidence::DEFAULT)?;
        sums.hindsight(&mut series, Confidence::DEFAULT);
        Some(series)
    }
}

/// An estimator that works on the raw statistics of intervals.
struct Other {
    estimator: Box<dyn Estimator>,
    tally: Tally,
    at: WallNs,
    /// Whether rounds came since the last interval ended.
    has_more: bool,
}

impl Other {
    fn new(init: &Init, kind: EstimatorKind) -> Result<Self, String> {
        let events = measured(init);
        let estimator = kind.build(&events, &equations(&init.exact)?);
        Ok(Self { estimator, tally: Tally::new(events.len()), at: WallNs(0), has_more: false })
    }

    fn round(&mut self, wall_ms: f64, deltas: &[Delta]) {
        let deltas: Vec<_> = deltas.iter().copied().map(Some).collect();
        let to = self.at + WallNs((wall_ms.max(0.0) * 1e6).round() as u64);
        self.tally.round(&deltas);
        self.estimator.round(self.at, to, &deltas);
        (self.at, self.has_more) = (to, true);
    }

    /// The counts of the interval that ends. What has no count there goes on at its rate in the run.
    fn interval(&mut self) -> Vec<Option<Uncertain>> {
        self.end_interval();
        let count = |(event, estimate): (usize, &Estimate)| {
            let goes_on = || {
                let rate = estimate.total?.value / self.tally.run_time(event).as_ms();
                let value = rate * self.tally.interval_time(event).as_ms();
                Some(Uncertain { value, error: Uncertainty::Unknown })
            };
            estimate.interval.or_else(goes_on)
        };
        self.estimator.estimates().iter().enumerate().map(count).collect()
    }

    fn totals(&mut self) -> Vec<Option<Uncertain>> {
        self.end_interval();
        self.estimator.estimates().iter().map(|estimate| estimate.total).collect()
    }

    fn end_interval(&mut self) {
        if std::mem::take(&mut self.has_more) {
            self.tally.end_interval();
            self.estimator.end_interval(&self.tally);
        }
    }
}

/// The events, which are known by their names alone.
fn measured(init: &Init) -> Vec<Event> {
    let event = |event: &InitEvent| Event {
        name: event.name.clone(),
        canonical: event.name.clone(),
        kind: EventKind::Raw,
        encoding: Encoding::default(),
        modifiers: Modifiers::default(),
        unit: Unit::Count,
    };
    init.events.iter().map(event).collect()
}

/// Sums as relations between their events.
fn equations(sums: &[ExactSum]) -> Result<Vec<Relation>, String> {
    let equation = |sum: &ExactSum| {
        let left = sum.sum.iter().map(|(name, factor)| format!("{factor} * {}", escaped_name(name)));
        let right = sum.equals.iter().map(|name| escaped_name(name));
        let [left, right] = [left.collect::<Vec<_>>().join(" + "), right.collect::<Vec<_>>().join(" + ")];
        json!({ "relation": format!("{left} = {right}"), "tolerance": SUM_TOLERANCE })
    };
    let file = Value::Array(sums.iter().map(equation).collect()).to_string();
    relations::parse("\"exact\"", file.as_bytes()).strict().map_err(|wrong| wrong.to_string())
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
