//! Implements `perfprop stat`: runs a command and prints a summary of its events.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use crossbeam_channel::Receiver;
use nix::sys::signal::Signal;

use super::args::{EventArgs, TargetArgs, milliseconds, whole_number};
use super::error::{MEASURING, code_of};
use super::input::{is_dash, refuse_input};
use super::outcome::{code_with, how_it_failed, tell_delay, tell_no_regions};
use super::progress::{SlowRun, instructions_of};
use super::stream::{Stream, after_blank, hush, say};
use super::with_model::modelled_instead;
use super::{Error, signals};
use crate::diagnosis::{self, LookBack, SampledFacts};
use crate::machine::Host;
use crate::measure::{
    self, DefaultEvents, EndedBy, MeasureOptions, Measurement, RunOutcome, WatchEvent, close, note_partial,
    watch_rounds,
};
use crate::monitor::{Finding, Monitor, Row};
use crate::names::shown;
use crate::plan::Cohesion;
use crate::regions::{ProcessRegions, RegionTable, Wanted};
use crate::run::{End, Header};
use crate::session::{CaughtSignal, ChildIo, Launch, Needs, Session};
use crate::sources::command::Exit;
use crate::sources::{Reading, RecordedRound, Round, Status};
use crate::text::{self, Digits, EvidenceScreens, RegionRepeats, Repeats, Repetition, SummaryLayout};

/// The arguments of `perfprop stat`.
#[derive(Debug, Args)]
#[command(
    override_usage = "perfprop stat [OPTIONS] [-- COMMAND...]",
    after_help = "Examples:
  perfprop stat -e cycles,instructions -- ./prog        a summary, with errors
  perfprop stat -r 10 -- ./prog                         means and spreads of ten runs
  perfprop stat --explain -- ./prog                     what stands out, and why
  perfprop stat -I 1000 -j -p 4711                      a line of JSON an event each second
  perfprop stat --source emulate -M L2_MPKI -- ./prog   misses of modelled caches"
)]
pub(super) struct StatArgs {
    #[command(flatten)]
    pub(super) events: EventArgs,
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Print counts at every interval of this many milliseconds
    #[arg(short = 'I', long, alias = "interval-print", value_name = "MS", value_parser = milliseconds(), help_heading = "Intervals")]
    pub(super) interval: Option<u64>,
    /// Print this many intervals; a command runs on to its end, anything else is no longer measured then
    #[arg(long, alias = "iterations", value_name = "N", requires = "interval", value_parser = whole_number::<u64>(1..), help_heading = "Intervals")]
    pub(super) interval_count: Option<u64>,
    /// Print the intervals when the run is over, with corrected counts that are estimated with the whole run known:
    /// they are nearer to the truth than what is known at once
    #[arg(long, requires = "interval", help_heading = "Intervals")]
    pub(super) whole_run: bool,
    /// Run the command this many times and print means
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = runs, help_heading = "Runs")]
    pub(super) repeat: u32,
    /// Count nothing; print only how long the command takes
    #[arg(short = 'n', long, conflicts_with_all = ["events", "metrics", "detailed", "counters", "strict"], help_heading = "Events")]
    pub(super) null: bool,
    /// Fail if an event can't be counted, instead of printing `<not supported>` for it
    #[arg(long, help_heading = "Events")]
    pub(super) strict: bool,
    /// Also print what stands out in the run, such as waiting for locks or many page faults, and why
    #[arg(long, conflicts_with = "field_separator", help_heading = "Output")]
    pub(super) explain: bool,
    /// Call sync before each run, so that no file waits to be written to disk
    #[arg(short = 'S', long, help_heading = "Runs")]
    pub(super) sync: bool,
    /// Print how far the scaled and corrected counts are from the truth; needs --counters, with which the lines of -j
    /// and -x have the truth and these errors anyway
    #[arg(long, requires = "counters", help_heading = "Output")]
    pub(super) truth: bool,
    /// Count cache events too, as perf does; `-d -d` and `-d -d -d` count more
    #[arg(short, long, action = ArgAction::Count, help_heading = "Events")]
    pub(super) detailed: u8,
    /// Print large counts with commas (the default)
    #[arg(short = 'B', long, conflicts_with_all = ["json", "field_separator"], help_heading = "Output")]
    pub(super) big_num: bool,
    /// Print large counts without commas
    #[arg(long, conflicts_with_all = ["big_num", "json", "field_separator"], help_heading = "Output")]
    pub(super) no_big_num: bool,
    /// Print no counts and no messages, only errors
    #[arg(short, long, conflicts_with_all = ["output", "verbose"], help_heading = "Output")]
    pub(super) quiet: bool,
    /// Also print each event's raw count, time enabled and time running, in nanoseconds
    #[arg(short, long, help_heading = "Output")]
    pub(super) verbose: bool,
    /// Print JSON lines; docs/output.md describes the keys
    #[arg(short, long, alias = "json-output", help_heading = "Output")]
    pub(super) json: bool,
    /// Print fields separated by this: perf's fields in perf's order, then perfprop's; docs/output.md describes
    /// them
    #[arg(short = 'x', long, value_name = "SEP", conflicts_with = "json", value_parser = separator, help_heading = "Output")]
    pub(super) field_separator: Option<String>,
    /// Write to a file instead of standard error; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(super) output: Option<PathBuf>,
    /// Append to the output file
    #[arg(long, requires = "output", help_heading = "Output")]
    pub(super) append: bool,
}

/// Intervals of a run whose intervals nobody sees.
const UNSEEN_INTERVAL: Duration = Duration::from_millis(100);

/// How often processes that run already are asked whether they have regions by now.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// How often it is read what threads do where that is to be explained.
const EXPLAIN_INTERVAL: Duration = Duration::from_millis(250);

/// What each `-d` counts beside the rest: perf's sets.
const DETAILED: [&str; 3] = [
    "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses",
    "L1-icache-loads,L1-icache-load-misses,dTLB-loads,dTLB-load-misses,iTLB-loads,iTLB-load-misses",
    "L1-dcache-prefetches,L1-dcache-prefetch-misses",
];

/// What files get where nothing else can be counted: texts have these times anyway.
const TIMES: &str = "duration_time,user_time,system_time";

pub(super) fn run(args: &StatArgs) -> Result<u8, Error> {
    // Whoever reads lines of -x or -j from standard error reads no others; -v and -o bring them.
    let is_read_there = Form::of(args) != Form::People && args.output.is_none() && !args.verbose;
    if args.quiet || is_read_there {
        hush();
    }
    let launch = args.target.launch(ChildIo::Inherit)?;
    if args.repeat > 1 && launch.command.is_none() {
        return Err(Error::Usage("-r repeats a command, and there is none".into()));
    }
    let mut beginning = Beginning::new(args, launch)?;
    let mut out = Output::open(args)?;
    let signals = signals::listen(&beginning.measurement.launch.stop).map_err(Error::System)?;
    let runs = StatRuns::measure(&mut beginning, &signals, &mut out)?;
    print_results(args, &runs, &mut out)?;
    if let Some(session) = runs.open {
        close(session, &signals, runs.ended_by);
    }
    match out.stream.is_unread() {
        true => Err(Error::Unread),
        false => Ok(if out.is_cut { MEASURING } else { runs.code }),
    }
}

/// The runs that were measured.
#[derive(Default)]
struct StatRuns {
    monitors: Vec<Monitor>,
    /// What regions counted in each.
    regions: Vec<Vec<ProcessRegions>>,
    code: u8,
    /// The last run, whose counters stay open until its numbers are printed.
    open: Option<Session>,
    /// The signal that ended the last run, if one did.
    ended_by: Option<i32>,
}

impl StatRuns {
    /// Runs the command as often as it is asked for.
    fn measure(
        beginning: &mut Beginning<'_>,
        signals: &Receiver<CaughtSignal>,
        out: &mut Output,
    ) -> Result<Self, Error> {
        let (mut runs, all) = (Self::default(), beginning.args.repeat);
        for number in 0..all {
            if let Some(signal) = runs.open.take().and_then(|session| close(session, signals, None)) {
                runs.code = code_of(signal);
                break;
            }
            beginning.measurement.launch.first_turn = number as usize;
            let (monitor, outcome, session) = match once(beginning, signals, number == 0, out) {
                // It came between two runs: those before are whole.
                Err(Error::Measure(crate::measure::Error::Stopped(signal))) if number > 0 => {
                    say(&format!("interrupted after run {number} of {all}"));
                    runs.code = code_of(signal);
                    break;
                }
                begun => begun?,
            };
            runs.monitors.push(monitor);
            runs.regions.push(session.regions());
            (runs.open, runs.ended_by) = (Some(session), outcome.ended_by.signal());
            runs.code = code_with(runs.code, &outcome);
            match how_it_failed(&outcome).filter(|_| all > 1 && outcome.ended_by.signal().is_none()) {
                Some(how) => {
                    let number = number + 1;
                    say(&format!("run {number} of {all} ended with {how}: its counts are in the means all the same"));
                }
                None => tell_signal(&outcome),
            }
            tell_delay(beginning.measurement.launch.delay, &outcome);
            if runs.ended_by.is_some() || out.stream.is_unread() {
                break;
            }
        }
        runs.leave_out_part(all);
        Ok(runs)
    }

    /// Leaves out a run that was interrupted: a part of a run is no run like the others.
    fn leave_out_part(&mut self, all: u32) {
        let number = self.monitors.len();
        if self.ended_by.is_some() && number > 1 {
            say(&format!("interrupted in run {number} of {all}, which is left out of the means"));
            self.monitors.pop();
            self.regions.pop();
        }
    }
}

/// Prints what is to be said of all runs.
fn print_results(args: &StatArgs, runs: &StatRuns, out: &mut Output) -> Result<(), Error> {
    let (form, repeats) = (Form::of(args), Repeats(&runs.monitors));
    if args.interval.is_none() || args.repeat > 1 {
        out.print(&form.totals(&repeats, out.layout(args)))?;
    }
    if args.truth && form == Form::People {
        out.print(&text::truth(&repeats, out.stream.columns()))?;
    }
    let Some(last) = runs.monitors.last() else { return Ok(()) };
    if form == Form::People {
        tell_model(last);
    }
    print_regions(args, last, &runs.regions, out)?;
    if args.explain {
        let found = diagnosis::diagnose(last, LookBack::Run, SampledFacts::default());
        out.print(&if args.json {
            text::json_diagnoses(&found)
        } else {
            text::diagnoses(&found, last, EvidenceScreens::Top)
        })?;
    }
    Ok(())
}

/// Where the numbers go: from the file, once it can't be written, to standard error, so that none are lost.
struct Output {
    stream: Stream,
    is_file: bool,
    is_cut: bool,
}

impl Output {
    fn open(args: &StatArgs) -> Result<Self, Error> {
        let given = &args.events.corrections;
        if let Some(output) = &args.output {
            refuse_input(given.relations.iter().chain(&given.learnt), output)?;
        }
        let stream = match args.output.as_deref() {
            Some(path) => Stream::file(path, args.append)?,
            None if args.quiet => Stream::nowhere(),
            None => Stream::stderr(),
        };
        let is_file = args.output.as_deref().is_some_and(|path| !is_dash(path));
        Ok(Self { stream: stream.of_measurement(), is_file, is_cut: false })
    }

    /// How summaries are laid out there.
    fn layout(&self, args: &StatArgs) -> SummaryLayout {
        SummaryLayout { digits: digits(args), columns: self.stream.columns() }
    }

    fn print(&mut self, text: &str) -> Result<(), Error> {
        match self.stream.print(text) {
            Err(error) if self.is_file && !self.is_cut => {
                self.is_cut = true;
                self.stream = Stream::stderr();
                self.stream.print(&format!("{error}\n      the numbers from here on:\n{text}"))
            }
            written => written,
        }
    }
}

/// Prints what regions counted: of several runs the mean of a run. The monitor is that of the last run.
fn print_regions(
    args: &StatArgs,
    monitor: &Monitor,
    regions: &[Vec<ProcessRegions>],
    out: &mut Output,
) -> Result<(), Error> {
    let tables: Vec<_> = regions.iter().map(|processes| RegionTable::of(processes)).collect();
    let form = Form::of(args);
    let text = match (form, &tables[..]) {
        (Form::Json(_), _) => text::json_regions(regions, monitor.header()),
        (Form::Fields { separator, repetition, .. }, tables) => {
            form.beside_intervals(RegionRepeats(tables).csv(monitor, separator, repetition))
        }
        (Form::People, [table]) if args.interval.is_some() => {
            after_blank(&text::regions(table, monitor.header(), monitor.confidence()))
        }
        (Form::People, [table]) => text::regions(table, monitor.header(), monitor.confidence()),
        (Form::People, tables) => RegionRepeats(tables).text(monitor),
    };
    tell_no_regions(args.target.region_events.as_deref(), tables.iter().map(|table| table.programs().len()).sum());
    out.print(&text)
}

/// The form in which numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form<'a> {
    People,
    Json(Repetition),
    Fields {
        separator: &'a str,
        /// Whether there are lines of intervals.
        has_intervals: bool,
        repetition: Repetition,
    },
}

impl<'a> Form<'a> {
    fn of(args: &'a StatArgs) -> Self {
        let repetition = if args.repeat > 1 { Repetition::Several } else { Repetition::Once };
        match &args.field_separator {
            Some(separator) => Self::Fields { separator, has_intervals: args.interval.is_some(), repetition },
            None if args.json => Self::Json(repetition),
            None => Self::People,
        }
    }

    fn totals(self, runs: &Repeats<'_>, layout: SummaryLayout) -> String {
        match self {
            Self::People => text::summary(runs, layout),
            Self::Json(repetition) => text::json_totals(runs, repetition),
            Self::Fields { separator, repetition, .. } => {
                self.beside_intervals(text::csv_totals(runs, separator, repetition))
            }
        }
    }

    /// Lines of fields that are about runs, with the fields of those about intervals where there are some.
    fn beside_intervals(self, lines: String) -> String {
        match self {
            Self::Fields { separator, has_intervals: true, .. } => text::csv_beside_intervals(&lines, separator),
            Self::Fields { .. } | Self::People | Self::Json(_) => lines,
        }
    }

    fn interval(self, monitor: &Monitor, layout: SummaryLayout) -> String {
        match self {
            Self::People => text::interval(monitor, layout),
            Self::Json(_) => text::json_interval(monitor),
            Self::Fields { separator, repetition, .. } => text::csv_interval(monitor, separator, repetition),
        }
    }
}

fn digits(args: &StatArgs) -> Digits {
    if args.no_big_num { Digits::Plain } else { Digits::Grouped }
}

/// What each run begins with.
struct Beginning<'a> {
    args: &'a StatArgs,
    options: MeasureOptions,
    measurement: Measurement,
}

impl<'a> Beginning<'a> {
    fn new(args: &'a StatArgs, launch: Launch) -> Result<Self, Error> {
        let (needs, default_events, further) = if args.null {
            (Needs::Nothing, DefaultEvents::Nothing, times(args))
        } else {
            let detailed = &DETAILED[..DETAILED.len().min(args.detailed.into())];
            (if args.strict { Needs::All } else { Needs::One }, DefaultEvents::Best, detailed)
        };
        let further_events = further.iter().map(|&events| events.to_owned()).collect();
        let options = args.events.options(&args.target)?;
        let options = MeasureOptions { default_events, further_events, ..options };
        let threads = args.explain.then_some(EXPLAIN_INTERVAL);
        let measurement = Measurement::new(&options, Launch { needs, threads, ..launch }, &mut say)?;
        Ok(Self { args, options, measurement })
    }

    /// Begins a run. Where this machine has none of the events the command runs all the same, as with perf, and only
    /// time is measured; groups in braces are whole or refused.
    fn session(&mut self, interval: Duration) -> Result<(Session, Header), Error> {
        if self.args.sync {
            nix::unistd::sync();
        }
        let start =
            |measurement: &Measurement| measurement.start(measurement.period_of_texts(interval), interval, &mut say);
        let has_groups = self.measurement.plan.groups.iter().any(|group| group.cohesion == Cohesion::Required);
        match start(&self.measurement) {
            Err(measure::Error::NoCounters { .. } | measure::Error::WholeCpus { .. })
                if self.measurement.launch.needs == Needs::One && !has_groups =>
            {
                self.measurement.launch.needs = Needs::Nothing;
                let times = times(self.args);
                if !times.is_empty() {
                    self.options.further_events.extend(times.iter().map(|&events| events.to_owned()));
                    self.measurement = Measurement::new(&self.options, self.measurement.launch.clone(), &mut say)?;
                }
                Ok(start(&self.measurement)?)
            }
            begun => Ok(begun?),
        }
    }
}

/// What is counted besides, where nothing else can be.
fn times(args: &StatArgs) -> &'static [&'static str] {
    if Form::of(args) == Form::People { &[] } else { &[TIMES] }
}

/// Runs the command once.
fn once(
    beginning: &mut Beginning<'_>,
    signals: &Receiver<CaughtSignal>,
    is_first: bool,
    out: &mut Output,
) -> Result<(Monitor, RunOutcome, Session), Error> {
    let args = beginning.args;
    let interval = args.interval.map_or(UNSEEN_INTERVAL, Duration::from_millis);
    let (session, header) = beginning.session(interval)?;
    if is_first {
        note_partial(&header, &mut say);
    }
    let _regions = session.watch_regions(LOOK_INTERVAL, Wanted::Nothing).map_err(Error::System)?;
    let mut monitor = beginning.measurement.monitor(header).without_history();
    let prints = args.interval.is_some() && !args.whole_run;
    let most = args.interval_count.unwrap_or(u64::MAX);
    let has_command = beginning.measurement.launch.command.is_some();
    let form = Form::of(args);
    if args.interval.is_some() && is_first && form == Form::People {
        out.print(&text::interval_heading(&monitor, out.stream.columns()))?;
    }
    let mut rounds = Vec::new();
    let mut slow = SlowRun::new(monitor.header().modelled.is_some());
    let take = |round: &Round, lost| {
        slow.note(instructions_of(round)).iter().for_each(|text| say(text));
        if args.whole_run {
            rounds.push(RecordedRound { round: round.clone(), lost });
        }
    };
    let outcome = watch_rounds(&session, signals, &mut monitor, take, |monitor, event| {
        match event {
            WatchEvent::Interval | WatchEvent::LastInterval if prints && monitor.intervals() <= most => {
                out.print(&form.interval(monitor, out.layout(args)))?;
            }
            WatchEvent::Interval | WatchEvent::LastInterval => {}
            WatchEvent::Save => {
                out.print(&form.totals(&Repeats(std::slice::from_ref(monitor)), out.layout(args)))?;
            }
        }
        let is_enough = (monitor.intervals() >= most || out.stream.is_unread()) && !has_command;
        Ok::<_, Error>(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    if args.whole_run {
        let knowing = beginning.measurement.knowing_whole_run(monitor.header(), &rounds, &outcome.end);
        if knowing.knows_whole_run() && form == Form::People {
            out.print("# with the whole run known\n")?;
        }
        let layout = out.layout(args);
        print_intervals(knowing, &rounds, &outcome.end, most, |monitor| out.print(&form.interval(monitor, layout)))?;
    }
    if args.verbose {
        tell_readings(&monitor, &outcome);
    }
    tell_uncounted(&monitor);
    if form == Form::People {
        tell_relations(&monitor);
    }
    Ok((monitor, outcome, session))
}

/// Prints the intervals of rounds, as many as are wanted.
fn print_intervals(
    mut monitor: Monitor,
    rounds: &[RecordedRound],
    end: &End,
    most: u64,
    mut print: impl FnMut(&Monitor) -> Result<(), Error>,
) -> Result<(), Error> {
    for RecordedRound { round, lost } in rounds {
        if monitor.round(round, *lost) && monitor.intervals() <= most {
            print(&monitor)?;
        }
    }
    let intervals = monitor.intervals();
    monitor.end(end.clone());
    if monitor.intervals() > intervals && monitor.intervals() <= most { print(&monitor) } else { Ok(()) }
}

/// Each event's count, time enabled and time running, as they were read last.
fn tell_readings(monitor: &Monitor, outcome: &RunOutcome) {
    for (event, reading) in monitor.header().events.iter().zip(&outcome.end.totals) {
        if let Some(Reading { count, enabled, running }) = reading {
            say(&format!("{}: {count} {} {}", shown(&event.title()), enabled.0, running.0));
        }
    }
}

/// A shell says so only of its own children.
fn tell_signal(outcome: &RunOutcome) {
    if let (Some(Exit::Signal(number)), EndedBy::Itself) = (outcome.end.exit, outcome.ended_by) {
        let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
        say(&format!("the command was ended by {name} ({number})"));
    }
}

/// Counts that end at an exec, or lack a child or a unit, must not look like those of the whole run, whoever reads
/// them.
fn tell_uncounted(monitor: &Monitor) {
    tell(monitor, |finding| match finding {
        Finding::TakenOff { .. } | Finding::UncountedTime { .. } => true,
        // A unit that was refused was told before anything was counted.
        Finding::LacksUnits { event } => monitor.header().events[*event].lacking_words().is_none(),
        _ => false,
    });
}

/// Says how a model counts what this machine has no counters for.
fn tell_model(monitor: &Monitor) {
    let is_lacking = |row: &Row<'_>| row.event.status == Status::NotSupported && !row.event.event.kind.is_software();
    if monitor.rows().any(|row| is_lacking(&row)) && Host::here().cores().next().is_none() {
        modelled_instead(&std::env::args_os().collect::<Vec<_>>()).iter().for_each(|line| say(line));
    }
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

fn runs(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| "give runs from 1; for ever:  while perfprop stat ...; do :; done".into())
}

/// What stands between fields; `\t` is a tab, as for perf.
fn separator(text: &str) -> Result<String, String> {
    match text {
        "" => Err("there must be something between the fields".into()),
        "\\t" => Ok("\t".into()),
        text => Ok(text.into()),
    }
}
