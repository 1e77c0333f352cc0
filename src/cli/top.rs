//! Implements `perfprop top`: shows live screens, or prints text where there is no terminal.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use crossbeam_channel::Receiver;

use super::args::{AppearanceArgs, MeasurementArgs, milliseconds, whole_number};
use super::error::code_of;
use super::outcome::{NO_REGIONS, exit_code, tell_delay, tell_no_regions};
use super::stacks::LiveProfile;
use super::stream::{Stream, has_terminal_beside_input, say, terminal_beside_output};
use super::{Error, appearance, signals, stacks};
use crate::codes::Coded;
use crate::diagnosis::{LATELY, LookBack, SampledFacts, diagnose};
use crate::measure::{
    DefaultEvents, DenialWords, Measurement, OVERVIEW_FREQUENCIES, WatchEvent, close, note_partial, pending_end, watch,
};
use crate::monitor::{MeasureChoice, Monitor};
use crate::profile::Tree;
use crate::recording::Recorder;
use crate::regions::RegionTable;
use crate::run::{End, Header};
use crate::sampling::SamplerMessage;
use crate::session::{ChildIo, Launch, OutputLine, Session};
use crate::sources::Round;
use crate::stacks::{FirstLevel, FunctionLines, InterpreterFrames, ProfileSpan, StackQuality};
use crate::text::{self, PrintedNews, Repeats, SummaryLayout};
use crate::tui::{self, Config, Feed, Outcome, Screen};
use crate::units::WallNs;

/// The arguments of `perfprop top`.
#[derive(Debug, Args)]
#[command(override_usage = "perfprop top [OPTIONS] [-- COMMAND...]", mut_arg("delay", |delay| delay.help(DELAY)), after_help = "Examples:
  perfprop top                                  the whole machine, where you may see it
  perfprop top -- ./prog                        what this machine can count of a command
  perfprop top -e L1_MISSES,L2_MISSES -p 4711   two events of a process that runs
  perfprop top -g -M IPC -- ./prog              call stacks, and metrics with the events that they need
  perfprop top -- sort < words.txt > sorted     a command that reads and writes files; screens stay on the terminal
  perfprop top --source emulate -- ./prog       caches and branches without counters")]
pub(super) struct TopArgs {
    #[command(flatten)]
    pub(super) measurement: MeasurementArgs,
    /// Milliseconds between updates of the numbers [default: 1000]
    #[arg(short = 'I', long, value_name = "MS", value_parser = milliseconds(), help_heading = "Intervals")]
    pub(super) interval: Option<u64>,
    /// Seconds between updates of the numbers [default: 1]
    #[arg(short = 'd', value_name = "SECONDS", conflicts_with = "interval", value_parser = whole_number::<u64>(1..=3600), help_heading = "Intervals")]
    pub(super) seconds: Option<u64>,
    /// Print text at every interval instead of drawing screens
    #[arg(long, help_heading = "Intervals")]
    pub(super) batch: bool,
    /// Stop after this many intervals of text
    #[arg(short = 'n', long, alias = "interval-count", value_name = "N", value_parser = whole_number::<u64>(1..), help_heading = "Intervals")]
    pub(super) iterations: Option<u64>,
    /// Sample no call stacks. By default screens of a program show its functions, by 199 samples a second (more
    /// where threads end before they are sampled)
    #[arg(long, conflicts_with_all = ["frame_pointers", "call_graph", "off_cpu"], help_heading = "Call stacks")]
    pub(super) no_stacks: bool,
    #[command(flatten)]
    pub(super) appearance: AppearanceArgs,
    /// What to do with a running command when you quit
    #[arg(long, value_name = "WHAT", help_heading = "Target")]
    pub(super) on_quit: Option<OnQuit>,
    /// Quit when the command ends
    #[arg(long, help_heading = "Target")]
    pub(super) exit_with_child: bool,
}

/// perf top's `--delay` is another one.
const DELAY: &str = "Start counting this many milliseconds after the start of the command, as in perf stat; how often numbers are \
    updated is -d or -I";

/// What becomes of the command when the screens are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnQuit {
    Ask,
    Kill,
    Detach,
}

pub(super) fn run(args: &TopArgs) -> Result<u8, Error> {
    appearance::check(&args.appearance)?;
    appearance::check_screen_of_run(&args.appearance)?;
    if args.batch || args.iterations.is_some() {
        return batch(args);
    }
    if has_terminal_beside_input() {
        return screens(args, None);
    }
    let has_command = !args.measurement.target.command.is_empty();
    if has_command && let Some(output) = terminal_beside_output() {
        return screens(args, Some(output));
    }
    say(NO_TERMINAL);
    if has_command {
        say("the command's output goes to standard error, beside its errors");
    }
    batch(args)
}

/// The option's, else the configuration's, else a second.
fn interval(args: &TopArgs, config: &Config) -> Duration {
    let seconds = args.seconds.map(|seconds| seconds * 1000);
    Duration::from_millis(args.interval.or(seconds).or(config.interval).unwrap_or(1000))
}

const NO_TERMINAL: &str =
    "E09 no terminal, printing text every interval instead (--batch; JSON lines: perfprop stat -I 1000 -j)";

/// What the options ask to launch, with the command's input and output there.
fn launch(args: &TopArgs, io: ChildIo, interval: Duration) -> Result<Launch, Error> {
    let launch = args.measurement.target.launch_or_everyone(io)?;
    Ok(Launch { threads: Some(interval), ..launch })
}

/// The first interval of screens: nobody waits a second for the first number.
const FIRST_INTERVAL: Duration = Duration::from_millis(200);

/// How long intervals are.
#[derive(Clone, Copy, Debug)]
struct ShownIntervals {
    interval: Duration,
    /// The first, if it is shorter.
    first: Option<Duration>,
}

/// A measurement that has begun.
struct Begun {
    session: Session,
    monitor: Monitor,
    /// Notes for screens, which hide what was printed before.
    notes: Vec<String>,
}

/// Begins to measure, and says what can't be. Where nobody said what to measure, and this user may not count the
/// machine's events, what needs no right to count is shown.
fn start(
    args: &TopArgs,
    measurement: &Measurement,
    launch: &Launch,
    intervals: ShownIntervals,
) -> Result<Begun, Error> {
    let error = match begin(measurement, intervals, Vec::new()) {
        Err(Error::Measure(error)) if args.measurement.are_open() => error,
        begun => return begun,
    };
    let Some(denial) = error.denial() else { return Err(error.into()) };
    let restriction = restriction(&denial);
    say(&restriction.join("\n      "));
    let measurement = args.measurement.counting(DefaultEvents::CpuTime, launch.clone())?;
    begin(&measurement, intervals, restriction)
}

fn begin(measurement: &Measurement, intervals: ShownIntervals, restriction: Vec<String>) -> Result<Begun, Error> {
    let ShownIntervals { interval, first } = intervals;
    let mut notes = measurement.notes.clone();
    let mut note = |words: &str| {
        say(words);
        notes.push(words.to_owned());
    };
    let (session, header) = measurement.start(measurement.period(interval), interval, &mut note)?;
    note_partial(&header, &mut say);
    let first_interval_ns = first.filter(|_| header.delay_ns == WallNs(0)).map(WallNs::from);
    let monitor = measurement.monitor(Header { restriction, first_interval_ns, ..header });
    Ok(Begun { session, monitor, notes })
}

/// Why the machine's events aren't counted, what is shown in their place, and what can be done instead, in lines.
fn restriction(denial: &DenialWords) -> Vec<String> {
    let (uid, reason) = (nix::unistd::geteuid(), &denial.reason);
    let what = format!("E01 uid {uid} may not count the machine ({reason})");
    let instead = match denial.works_alone {
        true => "processes are shown, from /proc; your own programs:  perfprop top -- COMMAND",
        false => "processes are shown, from /proc",
    };
    [what, instead.to_owned()].into_iter().chain(denial.remedy.lines().map(str::to_owned)).collect()
}

/// A block of text an interval on standard output; the command's output goes to standard error.
fn batch(args: &TopArgs) -> Result<u8, Error> {
    let interval = interval(args, &appearance::for_text(&args.appearance)?);
    let launch = launch(args, ChildIo::ToStderr, interval)?;
    let signals = signals::listen(&launch.stop).map_err(Error::System)?;
    let (measurement, intervals) = (args.measurement.of(launch.clone())?, ShownIntervals { interval, first: None });
    let Begun { session, mut monitor, .. } = start(args, &measurement, &launch, intervals)?;
    let regions = match session.stacks() {
        Some(_) => stacks::watch_regions(&session, interval)?,
        None => None,
    };
    let mut profile = LiveProfile::start(&session, regions)?;
    let mut out = Stream::stdout();
    let (mut has_enough, mut has_last, mut news) = (false, false, PrintedNews::default());
    let mut printed = None;
    let outcome = watch(&session, &signals, &mut monitor, |monitor, event| {
        match event {
            WatchEvent::Interval | WatchEvent::Save => {
                let block = text::block(monitor, MeasureChoice::default());
                let news = news.since(monitor, &diagnose(monitor, LookBack::Last(LATELY), SampledFacts::default()));
                out.print_folded(&format!("{block}{}{news}\n", profile.text(monitor)))?;
                printed = Some(monitor.now());
            }
            WatchEvent::LastInterval => has_last = text::is_another_reading(monitor, printed),
        }
        has_enough |= event == WatchEvent::Interval && args.iterations == Some(monitor.intervals());
        Ok::<_, Error>(if has_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    profile.finish(&session);
    if has_last || monitor.lacks_a_child() {
        out.print_folded(&format!("{}\n", text::block(&monitor, MeasureChoice::default())))?;
    }
    out.print_folded(&news.since(&monitor, &[]))?;
    out.print_folded(&text::phases(&monitor))?;
    // What was on its way when the last block was printed.
    out.print_folded(&profile.text(&monitor))?;
    let regions = RegionTable::of(&session.regions());
    out.print_folded(&text::regions(&regions, monitor.header(), monitor.confidence()))?;
    tell_no_regions(launch.region_events.as_deref(), regions.programs().len());
    close(session, &signals, outcome.ended_by.signal());
    tell_delay(launch.delay, &outcome);
    // A command that was ended because enough was seen has not failed.
    Ok(if has_enough { 0 } else { exit_code(&outcome) })
}

/// Shows screens; the command's output goes to a file where it was redirected.
fn screens(args: &TopArgs, output: Option<File>) -> Result<u8, Error> {
    let mut options = appearance::on_terminal(&args.appearance)?;
    options.exit_with_child = args.exit_with_child;
    options.on_quit = args.on_quit.map_or(options.on_quit, Into::into);
    let config = appearance::config(&args.appearance)?.0;
    let interval = interval(args, &config);
    let mut launch = launch(args, ChildIo::Capture, interval)?;
    if let Some(command) = &mut launch.command {
        command.output = output.map(Arc::new);
    }
    let signals = signals::listen_for_screens(&launch.stop).map_err(Error::System)?;
    let intervals = ShownIntervals { interval, first: Some(FIRST_INTERVAL) };
    let measurement = match args.no_stacks {
        true => args.measurement.of(launch.clone())?,
        false => args.measurement.with_overview(launch.clone(), OVERVIEW_FREQUENCIES[0])?,
    };
    let Begun { session, monitor, notes } = start(args, &measurement, &launch, intervals)?;
    if !monitor.header().restriction.is_empty() && args.appearance.screen.is_none() && config.screen.is_none() {
        options.screen = Screen::Threads;
    }
    options.notes.extend(notes);
    let profile = LiveProfile::start_to_save(&session, stacks::watch_regions(&session, interval)?)?;
    let may_rise = measurement.samples_overview();
    let frequencies = if may_rise { &OVERVIEW_FREQUENCIES[..] } else { &[] };
    let mut live = Live { profile, session, args, launch: &launch, interval, frequencies: frequencies.iter() };
    live.frequencies.next();
    let (mut monitor, outcome) = tui::run(monitor, &mut live, &signals, &options).map_err(Error::Terminal)?;
    // What was counted since the last interval, and its time, are part of the summary.
    monitor.close();
    let ended_by = match outcome {
        Outcome::Signal(signal) => Some(signal),
        Outcome::Quit | Outcome::Killed | Outcome::Detached | Outcome::Ended => None,
    };
    if ended_by.is_some() {
        live.session.terminate(&mut || pending_end(&signals).is_some());
    }
    live.profile.finish_unless(&live.session, || pending_end(&signals).is_some());
    let mut out = Stream::stderr();
    let layout = SummaryLayout { columns: out.columns(), ..SummaryLayout::default() };
    let summary = text::summary(&Repeats(std::slice::from_ref(&monitor)), layout);
    let table = RegionTable::of(&live.session.regions());
    let regions = text::regions(&table, monitor.header(), monitor.confidence());
    let stacks = live.profile.text(&monitor);
    out.print_folded(&format!("{summary}{stacks}{regions}"))?;
    tell_no_regions(launch.region_events.as_deref(), table.programs().len());
    close(live.session, &signals, ended_by);
    Ok(code(&monitor, outcome))
}

/// The command's own code, or 128 plus the signal that closed the screens.
fn code(monitor: &Monitor, outcome: Outcome) -> u8 {
    let exit = monitor.ended().and_then(|end| end.exit);
    match (outcome, exit) {
        (Outcome::Signal(signal), _) => code_of(signal),
        (Outcome::Detached, _) | (_, None) => 0,
        (Outcome::Quit | Outcome::Killed | Outcome::Ended, Some(exit)) => exit.shell_code(),
    }
}

/// A measurement that runs, and the profile that is gathered of it.
struct Live<'a> {
    session: Session,
    profile: LiveProfile,
    args: &'a TopArgs,
    launch: &'a Launch,
    interval: Duration,
    /// Rates of an overview that haven't been tried.
    frequencies: std::slice::Iter<'static, u64>,
}

impl Live<'_> {
    /// Begins to sample call stacks. Regions are read anew, with what is entered and left.
    fn sample(&mut self) -> Result<(), Error> {
        let measurement = self.args.measurement.with_stacks(self.launch.clone())?;
        self.frequencies = [].iter();
        self.sample_as(&measurement)
    }

    fn sample_as(&mut self, measurement: &Measurement) -> Result<(), Error> {
        measurement.begin_stacks(&mut self.session, &mut |_| {})?;
        self.profile.start_anew(&self.session, self.interval)
    }
}

impl Feed for Live<'_> {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        self.session.samples()
    }

    fn output(&self) -> &Receiver<OutputLine> {
        self.session.output()
    }

    fn profile(&mut self, until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        self.profile.look(until, see);
    }

    fn function_lines(&mut self, function: usize, event: usize) -> Option<FunctionLines> {
        self.profile.function_lines(function, event)
    }

    fn set_first_level(&mut self, level: FirstLevel) -> Result<(), String> {
        self.profile.set_first_level(level);
        Ok(())
    }

    fn begin_sampling(&mut self) -> Result<(), String> {
        self.sample().map_err(|error| error.with_code().join("\n"))
    }

    fn sample_more_often(&mut self) -> Option<u64> {
        let frequency = *self.frequencies.next()?;
        let measurement = self.args.measurement.with_overview(self.launch.clone(), frequency).ok()?;
        self.sample_as(&measurement).ok().map(|()| frequency)
    }

    fn set_profile_span(&mut self, span: ProfileSpan) -> Result<(), String> {
        self.profile.set_span(span);
        Ok(())
    }

    fn restart_profile(&mut self) {
        self.profile.restart();
    }

    fn set_interpreter_frames(&mut self, frames: InterpreterFrames) {
        self.profile.set_interpreter_frames(frames);
    }

    fn write_profile(&self, _until: WallNs, recorder: &mut Recorder<&mut dyn Write>) -> io::Result<Option<WallNs>> {
        let sampled = self.session.stacks().map(|stacks| stacks.sampled());
        self.profile.write(sampled, recorder)
    }

    fn is_profile_coming(&self) -> bool {
        self.profile.is_coming()
    }

    fn end(&mut self, last: &Round, lost: u64) -> End {
        self.profile.stop(&self.session);
        self.session.end(last, lost)
    }

    fn notes_of_end(&self) -> Vec<String> {
        let lacks_regions = self.launch.region_events.is_some() && self.session.regions().is_empty();
        lacks_regions.then(|| NO_REGIONS.to_owned()).into_iter().collect()
    }

    fn running_command(&self) -> Option<i32> {
        self.session.running_command().map(nix::unistd::Pid::as_raw)
    }

    fn terminate(&mut self) {
        self.session.terminate(&mut || false);
    }

    fn detach(&mut self) -> io::Result<()> {
        self.session.detach()
    }
}
