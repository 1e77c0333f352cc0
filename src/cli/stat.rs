//! Implements `perfprop stat`: runs a command and prints a summary of its events.

use std::ops::ControlFlow;
use std::time::Duration;

use crossbeam_channel::Receiver;
use nix::sys::signal::Signal;

use super::Error;
use super::args::Stat;
use super::prepare::{self, Unnamed, Wishes};
use super::pump::{Finished, Given, Taking, close, code_of, pump};
use super::signals;
use super::stream::{Stream, hush, say};
use crate::monitor::{Finding, Monitor};
use crate::names::shown;
use crate::plan::Cohesion;
use crate::run::Header;
use crate::session::{ChildIo, Launch, Needs, Session};
use crate::sources::Reading;
use crate::sources::command::Exit;
use crate::text::{self, Digits, Repeats};

/// Intervals of a run whose intervals nobody sees.
const UNSEEN_INTERVAL: Duration = Duration::from_millis(100);

/// What each `-d` counts beside the rest: perf's sets.
const DETAILED: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// What files get where nothing else can be counted: texts have these times anyway.
const TIMES: &str = "duration_time,user_time,system_time";

pub(super) fn run(args: &Stat) -> Result<u8, Error> {
    if args.quiet {
        hush();
    }
    let launch = prepare::launch(&args.target, ChildIo::Inherit)?;
    if args.repeat > 1 && launch.command.is_none() {
        return Err(Error::Usage("-r repeats a command, and there is none".into()));
    }
    let mut beginning = Beginning::new(args, launch)?;
    let file = args.output.as_deref().map(|path| Stream::file(path, args.append));
    let mut out = match file {
        Some(file) => file?,
        None if args.quiet => Stream::nowhere(),
        None => Stream::stderr(),
    };
    let signals = signals::listen(&beginning.launch.stop).map_err(Error::System)?;
    let mut runs = Vec::new();
    let (mut code, mut ended_by) = (0, None);
    // The counters of the last run stay open until its numbers are printed.
    let mut open = None;
    for number in 0..args.repeat {
        if let Some(signal) = open.take().and_then(|session| close(session, &signals, None)) {
            code = code_of(signal);
            break;
        }
        let (monitor, finished, session) = once(args, &mut beginning, &signals, number == 0, &mut out)?;
        runs.push(monitor);
        code = finished.code();
        tell_signal(&finished);
        (open, ended_by) = (Some(session), finished.signal);
        if ended_by.is_some() {
            break;
        }
    }
    if args.interval.is_none() || args.repeat > 1 {
        let runs = Repeats(&runs);
        out.print(&Form::of(args).totals(&runs, digits(args)))?;
        if args.truth && Form::of(args) == Form::People {
            out.print(&text::truth(&runs))?;
        }
    }
    if let Some(session) = open {
        close(session, &signals, ended_by);
    }
    Ok(code)
}

/// The form in which numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form<'a> {
    People,
    Json,
    Fields(&'a str),
}

impl<'a> Form<'a> {
    fn of(args: &'a Stat) -> Self {
        match &args.field_separator {
            Some(separator) => Self::Fields(separator),
            None if args.json => Self::Json,
            None => Self::People,
        }
    }

    fn totals(self, runs: &Repeats<'_>, digits: Digits) -> String {
        match self {
            Self::People => text::summary_in(runs, digits),
            Self::Json => text::json_totals(runs),
            Self::Fields(separator) => text::csv_totals(runs, separator),
        }
    }

    fn interval(self, monitor: &Monitor, digits: Digits) -> String {
        match self {
            Self::People => text::interval_in(monitor, digits),
            Self::Json => text::json_interval(monitor),
            Self::Fields(separator) => text::csv_interval(monitor, separator),
        }
    }
}

fn digits(args: &Stat) -> Digits {
    if args.no_big_num { Digits::Plain } else { Digits::Grouped }
}

/// What each run begins with.
struct Beginning<'a> {
    args: &'a Stat,
    wishes: Wishes,
    launch: Launch,
}

impl<'a> Beginning<'a> {
    fn new(args: &'a Stat, launch: Launch) -> Result<Self, Error> {
        let (needs, wishes) = if args.null {
            (Needs::Nothing, wishes(args, Unnamed::Nothing, &times(args))?)
        } else {
            let detailed = &DETAILED[..DETAILED.len().min(args.detailed.into())];
            (if args.strict { Needs::All } else { Needs::One }, wishes(args, Unnamed::Default, detailed)?)
        };
        Ok(Self { args, wishes, launch: Launch { needs, ..launch } })
    }

    /// Begins a run. Where this machine has none of the events the command runs all the same, as with perf, and only
    /// time is measured; groups in braces are whole or refused.
    fn session(&mut self, interval: Duration) -> Result<(Session, Header), Error> {
        if self.args.sync {
            nix::unistd::sync();
        }
        let start = |Self { wishes, launch, .. }: &Self| {
            prepare::start(wishes, launch, wishes.period_of_texts(interval), interval)
        };
        let has_groups = self.wishes.plan.groups.iter().any(|group| group.cohesion == Cohesion::Required);
        match start(self) {
            Err(Error::NoCounters { .. } | Error::WholeCpus { .. })
                if self.launch.needs == Needs::One && !has_groups =>
            {
                self.launch.needs = Needs::Nothing;
                let further = times(self.args);
                if !further.is_empty() {
                    let detailed = &DETAILED[..DETAILED.len().min(self.args.detailed.into())];
                    self.wishes = wishes(self.args, Unnamed::Default, &[detailed, &further].concat())?;
                }
                start(self)
            }
            begun => begun,
        }
    }
}

fn wishes(args: &Stat, unnamed: Unnamed, further: &[&str]) -> Result<Wishes, Error> {
    prepare::wishes_with(&args.events, &args.target, unnamed, further)
}

/// What is counted besides, where nothing else can be.
fn times(args: &Stat) -> Vec<&'static str> {
    if Form::of(args) == Form::People { Vec::new() } else { vec![TIMES] }
}

/// Runs the command once.
fn once(
    args: &Stat,
    beginning: &mut Beginning<'_>,
    signals: &Receiver<i32>,
    is_first: bool,
    out: &mut Stream,
) -> Result<(Monitor, Finished, Session), Error> {
    let interval = args.interval.map_or(UNSEEN_INTERVAL, Duration::from_millis);
    let (session, header) = beginning.session(interval)?;
    let wishes = &beginning.wishes;
    if is_first {
        prepare::tell_partial(&header);
    }
    let mut monitor =
        prepare::monitor(header, wishes.relations.all.clone(), wishes.estimator.clone()).without_history();
    let prints = args.interval.is_some();
    let (form, digits) = (Form::of(args), digits(args));
    if prints && is_first && form == Form::People {
        out.print(&text::interval_heading(monitor.confidence()))?;
    }
    let finished = pump(&session, signals, Taking::AtOnce, |given| {
        match given {
            Given::Round(round, lost) if monitor.round(round, lost) && prints => {
                out.print(&form.interval(&monitor, digits))?;
                if args.interval_count == Some(monitor.intervals()) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Given::Save => out.print(&form.totals(&Repeats(std::slice::from_ref(&monitor)), digits))?,
            Given::Round(..) | Given::Stacks(_) | Given::Rest => {}
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let intervals = monitor.intervals();
    monitor.end(finished.end.clone());
    if prints && monitor.intervals() > intervals && args.interval_count.is_none_or(|count| intervals < count) {
        out.print(&form.interval(&monitor, digits))?;
    }
    if args.verbose {
        tell_readings(&monitor, &finished);
    }
    tell_uncounted(&monitor);
    if form == Form::People {
        tell_relations(&monitor);
    }
    Ok((monitor, finished, session))
}

/// Each event's count, time enabled and time running, as they were read last.
fn tell_readings(monitor: &Monitor, finished: &Finished) {
    for (event, reading) in monitor.header().events.iter().zip(&finished.end.totals) {
        if let Some(Reading { count, enabled, running }) = reading {
            say(&format!("{}: {count} {} {}", shown(&event.title()), enabled.0, running.0));
        }
    }
}

/// A shell says so only of its own children.
fn tell_signal(finished: &Finished) {
    if let (Some(Exit::Signal(number)), None, false) = (finished.end.exit, finished.signal, finished.was_asked) {
        let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
        say(&format!("the command was ended by {name} ({number})"));
    }
}

/// Counts that end at an exec, or lack a child or a unit, must not look like those of the whole run, whoever reads them.
fn tell_uncounted(monitor: &Monitor) {
    tell(monitor, |finding| match finding {
        Finding::TakenOff { .. } | Finding::UncountedTime { .. } => true,
        // A unit that was refused was told before anything was counted.
        Finding::LacksUnits { event } => monitor.header().events[*event].lacking_words().is_none(),
        _ => false,
    });
}

/// A relation that corrected nothing must not look as if it had agreed.
fn tell_relations(monitor: &Monitor) {
    tell(monitor, |finding| matches!(finding, Finding::RelationInactive { .. } | Finding::RelationViolated { .. }));
}

fn tell(monitor: &Monitor, is_told: impl Fn(&Finding) -> bool) {
    for noted in monitor.findings().iter().filter(|noted| is_told(&noted.finding)) {
        say(&format!("{} {}", noted.finding.code(), shown(&noted.finding.words(monitor).to_string())));
    }
}
