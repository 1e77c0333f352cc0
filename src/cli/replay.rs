//! Implements `perfprop replay`: shows the screens of a recording as the live run would have.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::args::{AppearanceArgs, CorrectionArgs, StackFormat, milliseconds, range, time};
use super::compare::{self, Compared};
use super::error::code_of;
use super::played::Played;
use super::progress::ProgressLine;
use super::stream::{self, Stream, has_keys, say};
use super::{Error, appearance, imported, input, report, signals};
use crate::estimate::EstimatorKind;
use crate::measure::{self, Estimation, LoadedRelations};
use crate::monitor::{Monitor, ReadAhead};
use crate::names::{shown, shown_path};
use crate::rates::Confidence;
use crate::recording::{self, Recording, Speed, TimeRange, rounds_until};
use crate::relations::Relation;
use crate::run::Header;
use crate::sources::perf::CancelToken;
use crate::sources::{RecordedRound, Scope};
use crate::stack_formats::{self, Imported};
use crate::stacks::Replayed;
use crate::tui::{
    self, GlyphSet, Mode, Outcome, Outline, Picture, PictureFormat, ReplayedEnding, Scene, Screen, ScreenOptions,
};
use crate::units::WallNs;

/// The arguments of `perfprop replay`.
#[derive(Debug, Args)]
#[command(
    mut_arg("relations", |arg| arg.help("A file of relations between events, instead of those that were recorded; repeatable")),
    mut_arg("estimator", |arg| arg.help("How to estimate counts; as recorded by default")),
    mut_arg("learnt", |arg| arg.help(LEARNT)),
    mut_arg("screen", |arg| arg.help("The screen to begin with; `source`, with --dump: the function that Profile opens on")),
    after_help = "Examples:
  perfprop replay perfprop.jsonl                the same screens as live
  perfprop replay before.jsonl after.jsonl      how two recordings differ
  perfprop replay --a a-*.jsonl --b b-*.jsonl   how several runs of each differ
  perf script | perfprop replay -               stacks that perf recorded
  perfprop replay perfprop.jsonl --print        a report as text
  perfprop replay perfprop.jsonl --dump svg     one screen as a picture")]
pub(super) struct ReplayArgs {
    /// A recording, or stacks of another tool; `-` is standard input. Two recordings are compared
    #[arg(value_name = "FILE", required_unless_present = "a")]
    pub(super) files: Vec<PathBuf>,
    /// Recordings of one side, to compare with those of --b: shows which events differ by more than chance.
    /// 5 of each are enough for up to 24 events. Record them alternately: one of a, one of b, one of a
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "b", conflicts_with = "files", help_heading = "Comparison")]
    pub(super) a: Vec<PathBuf>,
    /// Recordings of the other side
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "a", help_heading = "Comparison")]
    pub(super) b: Vec<PathBuf>,
    /// The format of the file; detected from its beginning by default
    #[arg(long, value_name = "FORMAT", help_heading = "Reading")]
    pub(super) from: Option<StackFormat>,
    /// Fold recursion in another tool's stacks, as recordings do: recursion of any depth is a few frames
    #[arg(long, help_heading = "Reading")]
    pub(super) canonical: bool,
    /// Play the recording so many times as fast as it was made; 0 shows all of it at once, and p plays it [default: 0;
    /// of one recording with --at: 1]
    #[arg(long, value_name = "X", help_heading = "Playing")]
    pub(super) speed: Option<f64>,
    /// Print text instead of drawing screens: the counts of all, what stands out, threads and functions; each interval
    /// with -I
    #[arg(long, conflicts_with = "dump", help_heading = "Output")]
    pub(super) print: bool,
    /// Start at this time of the recording, as in `12.5` or `1:30`; with `--dump`, show this time
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Playing")]
    pub(super) at: Option<WallNs>,
    /// Show only what was counted and sampled between these times, as in `12.5-30` or `1:00-1:30`
    #[arg(long, value_name = "FROM-TO", value_parser = range, conflicts_with_all = ["at", "a"], help_heading = "Playing")]
    pub(super) range: Option<TimeRange>,
    /// Milliseconds between updates of the numbers; as recorded by default
    #[arg(short = 'I', long, value_name = "MS", value_parser = milliseconds(), help_heading = "Intervals")]
    pub(super) interval: Option<u64>,
    /// Estimate each interval by what came before its end, as the live run did. By default it is estimated with the
    /// whole run known; comparisons are always as live
    #[arg(long, help_heading = "Intervals")]
    pub(super) as_live: bool,
    #[command(flatten)]
    pub(super) corrections: CorrectionArgs,
    /// Print one screen and exit
    #[arg(long, value_name = "FORMAT", help_heading = "Output")]
    pub(super) dump: Option<DumpFormat>,
    /// The size of the printed screen
    #[arg(
        long,
        value_name = "COLUMNSxROWS",
        requires = "dump",
        default_value = "80x24",
        value_parser = size,
        help_heading = "Output"
    )]
    pub(super) size: (u16, u16),
    /// Press these keys before the screen is printed, such as `]` (the next sampled event) or `/sort<Enter>`. Keys that
    /// need the file once more, such as `B`, do nothing
    #[arg(
        long,
        value_name = "KEYS",
        requires = "dump",
        default_value = "",
        hide_default_value = true,
        value_parser = tui::checked_keys,
        help_heading = "Output"
    )]
    pub(super) keys: String,
    #[command(flatten)]
    pub(super) appearance: AppearanceArgs,
}

/// A recording doesn't hold the model that it was made with.
const LEARNT: &str = "A model of this program for `gp`, learnt from earlier runs by `relations learn --program`; the one that it was \
    recorded with isn't part of a recording";

/// What a printed screen is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DumpFormat {
    Txt,
    Ansi,
    Svg,
}

pub(super) fn run(args: &ReplayArgs) -> Result<u8, Error> {
    appearance::check(&args.appearance)?;
    if args.speed.is_some_and(|speed| !(speed >= 0.0 && speed.is_finite())) {
        return Err(Error::Usage("--speed takes a number from 0 up".into()));
    }
    let (first, others) = compare::files(args)?;
    let is_text = args.dump.is_none() && (args.print || !has_keys(first));
    if others.is_some() {
        check_compared(args, is_text)?;
    }
    let recording = match (open(first, args)?, others) {
        (Opened::Recording(recording), _) => *recording,
        (Opened::Stacks(imported), None) => return imported::run(args, first, *imported),
        (Opened::Stacks(_), Some(_)) => return Err(no_recording(first)),
    };
    if is_text && args.at.is_some() {
        return Err(Error::Usage("--at is for screens; text of a part: --range FROM-TO".into()));
    }
    if args.at.is_some() && args.speed == Some(0.0) && args.dump.is_none() {
        return Err(Error::Usage("--at plays from there, and --speed 0 shows all at once: give one of them".into()));
    }
    check_time(args, &recording)?;
    let setup = setup(args, &recording)?;
    // Texts show no estimates of intervals.
    let shows_intervals = others.is_none() && !is_text;
    let setup = if shows_intervals && !args.as_live { setup.with_whole_run(&recording) } else { setup };
    let compared = others.map(|files| Compared::open(args, first, (&recording, &setup), files)).transpose()?;
    match (args.dump, compared) {
        (Some(format), compared) => dump(args, &recording, &setup, compared, format),
        (None, compared) if !is_text => screens(args, recording, setup, compared),
        (None, Some(compared)) => compared.print(&recording, setup.monitor()),
        (None, None) => report::print(args, &recording, &setup),
    }
}

/// Refuses what is for one recording, where several are compared.
fn check_compared(args: &ReplayArgs, is_text: bool) -> Result<(), Error> {
    let refused = match (args.at, args.range) {
        (Some(_), _) if is_text => "--at is for screens; recordings are compared whole",
        (_, Some(_)) => "--range is for one recording; recordings are compared whole",
        _ => return Ok(()),
    };
    Err(Error::Usage(refused.into()))
}

/// Refuses a time behind the end. The length that is shown is rounded, and the last interval may end late.
fn check_time(args: &ReplayArgs, recording: &Recording) -> Result<(), Error> {
    const ROUNDED: WallNs = WallNs(50_000_000);
    let length = recording.length();
    let slack = ROUNDED.0.max(recording.header.interval_ns.0 / 2);
    match args.at {
        Some(at) if at.0 > length.0.saturating_add(slack) => {
            let (at, length) = (at.as_secs(), length.as_secs());
            Err(Error::Usage(format!("--at {at}: nothing was read there; the recording is {length:.1} s long")))
        }
        _ => Ok(()),
    }
}

/// A monitor that has seen the rounds up to a time, and the end if that is not behind it.
pub(super) fn seen(recording: &Recording, mut monitor: Monitor, at: WallNs) -> Monitor {
    monitor.take_rounds(recording.rounds.iter().take_while(|recorded| recorded.round.at <= at));
    if recording.length() <= at {
        monitor.end(recording.end_or_last());
    }
    monitor
}

/// The rounds of a recording that are asked for, and a monitor of them that has seen nothing: all rounds, or those of a
/// range.
pub(super) fn begun<'a>(
    args: &ReplayArgs,
    recording: &'a Recording,
    setup: &Setup,
) -> Result<(&'a [RecordedRound], Monitor), Error> {
    let rounds = &recording.rounds[..];
    let Some(range) = args.range else { return Ok((rounds, setup.monitor())) };
    let places = recording.rounds_in(range).ok_or_else(|| {
        let length = recording.length().as_secs();
        Error::Usage(format!("nothing was read in this range; the recording is {length:.1} s long"))
    })?;
    let monitor = match rounds.get(..places.start).and_then(RecordedRound::last_of) {
        Some(base) => setup.as_live().monitor().beginning_after(&base.round, base.lost),
        None => setup.monitor(),
    };
    Ok((&rounds[places], monitor))
}

/// Ends what a monitor has seen of a recording, as the recording does if all of it is there.
pub(super) fn close(monitor: &mut Monitor, recording: &Recording, at: WallNs) {
    if recording.length() <= at {
        monitor.end(recording.end_or_last());
    } else {
        let behind = recording.rounds.get(rounds_until(&recording.rounds, at)..).unwrap_or_default();
        RecordedRound::first_threads(behind).into_iter().for_each(|threads| monitor.reach_to(threads));
        monitor.close();
    }
}

/// The time asked for; the end by default.
pub(super) fn at(args: &ReplayArgs) -> WallNs {
    args.at.unwrap_or(WallNs(u64::MAX))
}

/// The reading that is shown for the time asked for: intervals end a little later than their lengths say.
fn nearest_reading(recording: &Recording, at: WallNs, interval: WallNs) -> WallNs {
    let rounds = &recording.rounds[..rounds_until(&recording.rounds, at)];
    let reading = rounds.last().map(|recorded| recorded.round.at);
    reading.filter(|&reading| reading > at && reading - at <= WallNs(interval.0 / 2)).unwrap_or(at)
}

/// What a printed screen shows of a recording: the monitor, and the time that it stands at.
fn dumped_part(args: &ReplayArgs, recording: &Recording, setup: &Setup) -> Result<(Monitor, WallNs), Error> {
    let Some(range) = args.range else {
        let at = nearest_reading(recording, at(args), setup.header.interval_ns);
        return Ok((seen(recording, setup.monitor(), at), at));
    };
    let (rounds, mut monitor) = begun(args, recording, setup)?;
    monitor.take_rounds(rounds);
    close(&mut monitor, recording, range.to);
    Ok((monitor, range.to))
}

/// How a printed screen looks.
fn dump_options(
    args: &ReplayArgs,
    recording: &Recording,
    compared: Option<&Compared>,
    format: DumpFormat,
) -> Result<ScreenOptions, Error> {
    let in_picture = appearance::in_picture(&args.appearance)?;
    let measures = compared.map_or(in_picture.measures, |compared| compared.measures);
    let symbols = match format {
        DumpFormat::Txt | DumpFormat::Ansi if stream::of_locale() == GlyphSet::Ascii => GlyphSet::Ascii,
        DumpFormat::Txt | DumpFormat::Ansi | DumpFormat::Svg => in_picture.symbols,
    };
    Ok(ScreenOptions { mode: mode(recording, 1.0), measures, symbols, ..in_picture })
}

/// What a recording holds of all of its time, with what is told of it.
fn outline_of(recording: &Recording, setup: &Setup) -> Outline {
    let mut ahead = ReadAhead::new(setup.as_live().monitor());
    let notes = ahead.read(&recording.rounds, usize::MAX, || recording.end_or_last()).cloned().unwrap_or_default();
    Outline::of(&recording.rounds, recording.length()).with_notes(&notes)
}

/// Prints one screen, at the second asked for or at the end.
fn dump(
    args: &ReplayArgs,
    recording: &Recording,
    setup: &Setup,
    compared: Option<Compared>,
    format: DumpFormat,
) -> Result<u8, Error> {
    let (monitor, at) = dumped_part(args, recording, setup)?;
    let range = args.range.map(|_| TimeRange { from: monitor.began(), to: monitor.now() });
    let options = dump_options(args, recording, compared.as_ref(), format)?;
    let taken = recording.rounds.partition_point(|recorded| recorded.round.at <= at);
    let newest = &recording.rounds[taken.saturating_sub(usize::from(args.size.0))..taken];
    let mut replayed = recording.profile().map(Replayed::new);
    let after = start(&monitor);
    let profile = recording.profile().zip(replayed.as_mut()).map(|(recorded, profile)| {
        profile.set_first_level(args.appearance.by);
        let (tree, quality) = match range {
            Some(_) => profile.part(recorded, after, at),
            None => profile.between(recorded, after, at),
        };
        (tree.clone(), quality.clone())
    });
    let wanted = Picture {
        size: args.size,
        format: format.into(),
        rounds: newest.iter().map(|recorded| recorded.round.clone()).collect(),
        profile,
        outline: Some(outline_of(recording, setup)),
        range,
        keys: args.keys.clone(),
        ..Picture::default()
    };
    let screen = compare::first_screen(args, options.screen, compared.as_ref());
    let mut scene = Scene::new(monitor, compared.map(Compared::others), &options);
    let picture = match (screen, &replayed) {
        (Screen::Source, Some(profile)) => {
            scene.source_picture(&wanted, |function, event| profile.lines_of(function, event))
        }
        (Screen::Source, None) => scene.picture(Screen::Profile, &wanted),
        _ => scene.picture(screen, &wanted),
    };
    Stream::stdout().print(&picture)?;
    Ok(0)
}

fn screens(args: &ReplayArgs, recording: Recording, setup: Setup, compared: Option<Compared>) -> Result<u8, Error> {
    let speed = args.speed.unwrap_or(if args.at.is_some() && compared.is_none() { 1.0 } else { 0.0 });
    let (mode, range) = (mode(&recording, speed), args.range);
    let options = ScreenOptions { mode, range, ..appearance::on_terminal(&args.appearance)? };
    let options = ScreenOptions { screen: compare::first_screen(args, options.screen, compared.as_ref()), ..options };
    let units = appearance::config(&args.appearance)?.0.units;
    let of_comparison = compared.as_ref().filter(|_| units.is_none());
    let measures = of_comparison.map_or(options.measures, |compared| compared.measures);
    let options = ScreenOptions { measures, ..options };
    let speed = if speed == 0.0 { Speed::AtOnce } else { Speed::Times(speed) };
    play(setup, recording, compared, &options, (speed, args.at.unwrap_or_default()))
}

/// Leads through the screens of a recording, which stand at its end.
pub(super) fn tour(recording: Recording, options: ScreenOptions) -> Result<u8, Error> {
    let header = recording.header.clone();
    let kind = EstimatorKind::named(&header.estimator).unwrap_or_default();
    let events = header.events.iter().map(|event| &event.event);
    let estimator = Estimation::new(kind, Confidence::default(), None, events, &mut say)?;
    let setup = Setup { relations: measure::recorded_relations(&header.relations), header, estimator };
    let setup = setup.with_whole_run(&recording);
    let options = ScreenOptions { mode: mode(&recording, 0.0), tour: Some(0), ..options };
    play(setup, recording, None, &options, (Speed::AtOnce, WallNs(0)))
}

/// Shows a recording on the screens until the reader quits.
fn play(
    setup: Setup,
    recording: Recording,
    compared: Option<Compared>,
    options: &ScreenOptions,
    from: (Speed, WallNs),
) -> Result<u8, Error> {
    let monitor = setup.monitor();
    let signals = signals::listen_for_screens(&CancelToken::default()).map_err(Error::System)?;
    let mut feed = Played::new(setup, recording, compared, from)?;
    match tui::run(monitor, &mut feed, &signals, options).map_err(Error::Terminal)? {
        (_, Outcome::Signal(signal)) => Ok(code_of(signal)),
        _ => Ok(0),
    }
}

/// The time after which a monitor counts; `None` from the beginning.
pub(super) fn start(monitor: &Monitor) -> Option<WallNs> {
    Some(monitor.began()).filter(|began| began.0 > 0)
}

fn mode(recording: &Recording, speed: f64) -> Mode {
    Mode::Replay { length: recording.length(), speed, ending: ending(recording) }
}

pub(super) fn ending(recording: &Recording) -> ReplayedEnding {
    match (&recording.end, recording.rounds.len()) {
        (Some(_), _) => ReplayedEnding::Finished,
        (None, 0) => ReplayedEnding::NoNumbers,
        (None, _) => ReplayedEnding::NotFinished,
    }
}

impl From<DumpFormat> for PictureFormat {
    fn from(format: DumpFormat) -> Self {
        match format {
            DumpFormat::Txt => Self::Text,
            DumpFormat::Ansi => Self::Ansi,
            DumpFormat::Svg => Self::Svg,
        }
    }
}

/// What a file turned out to be.
pub(super) enum Opened {
    Recording(Box<Recording>),
    /// Stacks that another tool wrote.
    Stacks(Box<Imported>),
}

/// Reads a file by what it is written in.
pub(super) fn open(path: &Path, args: &ReplayArgs) -> Result<Opened, Error> {
    let failed = |error| Error::Recording { path: path.into(), source: recording::ReadError::Io(error) };
    let (format, input) = input::open(path).and_then(stack_formats::sniff).map_err(failed)?;
    match args.from.map(Into::into).or(format) {
        Some(stack_formats::InputFormat::Recording) => {
            read(path, BufReader::new(input)).map(Box::new).map(Opened::Recording)
        }
        _ => Ok(Opened::Stacks(Box::new(stack_formats::read(input, &imported::read_options(args))))),
    }
}

/// The error of comparing a file that has no counts.
pub(super) fn no_recording(path: &Path) -> Error {
    let file = shown_path(path);
    Error::Input(format!("{file} is no recording, and recordings are compared; alone: perfprop replay {file}"))
}

fn read(path: &Path, input: impl BufRead) -> Result<Recording, Error> {
    let recording = recording::read(input).map_err(|source| Error::Recording { path: path.into(), source })?;
    if let Some(cut) = recording.cut {
        say(&format!("the recording is cut off in line {}; showing what was written before", cut.line));
    }
    Ok(recording)
}

/// From so many counts on, to estimate them takes a second or so.
const MANY_COUNTS: usize = 100_000;

/// What a monitor of a recording needs: as the live run had it, or as the options change it.
pub(super) struct Setup {
    pub(super) header: Header,
    relations: Vec<Relation>,
    estimator: Estimation,
}

impl Setup {
    /// The same, with intervals that are estimated with the whole run known.
    fn with_whole_run(self, recording: &Recording) -> Self {
        let mut progress = ProgressLine::new();
        let readings = recording.rounds.len();
        if readings * self.header.events.len() >= MANY_COUNTS {
            progress.step(&format!("estimating the events of {readings} readings"));
        }
        let estimator =
            self.estimator.with_whole_run(&self.header, &self.relations, &*recording.rounds, recording.end_or_last());
        Self { estimator, ..self }
    }

    /// The same, with intervals that are estimated by what came before their ends.
    pub(super) fn as_live(&self) -> Self {
        Self {
            header: self.header.clone(),
            relations: self.relations.clone(),
            estimator: self.estimator.clone().as_live(),
        }
    }

    pub(super) fn monitor(&self) -> Monitor {
        measure::monitor(self.header.clone(), self.relations.clone(), self.estimator.clone())
    }
}

pub(super) fn setup(args: &ReplayArgs, recording: &Recording) -> Result<Setup, Error> {
    let mut header = recording.header.clone();
    let relations = if args.corrections.relations.is_empty() {
        measure::recorded_relations(&header.relations)
    } else {
        let mut relations = LoadedRelations::read(&args.corrections.relations(), &mut say)?;
        relations.expand_elsewhere(&mut say)?;
        let LoadedRelations { all, files, .. } = relations;
        header.relations = files;
        // Scaling takes no relations.
        if header.estimator == EstimatorKind::Scale.name() {
            header.estimator = EstimatorKind::Gp.name().into();
        }
        all
    };
    if let Some(interval) = args.interval {
        header.interval_ns = WallNs(interval * 1_000_000);
    }
    let kind = match args.corrections.estimator {
        Some(kind) => kind,
        None => EstimatorKind::named(&header.estimator).unwrap_or_else(|| {
            say(&format!("no estimator is called {}; using scale", shown(&header.estimator)));
            EstimatorKind::Scale
        }),
    };
    header.estimator = kind.name().into();
    let (confidence, learnt) = (args.corrections.confidence, args.corrections.learnt()?);
    let events = header.events.iter().map(|event| &event.event);
    let estimator = Estimation::new(kind, confidence, learnt.as_deref(), events, &mut say)?;
    if estimator.learnt.is_some() && header.events.iter().any(|event| event.scope != Scope::All) {
        return Err(measure::learnt_of_parts().into());
    }
    Ok(Setup { header, relations, estimator })
}

fn size(text: &str) -> Result<(u16, u16), String> {
    let parsed =
        text.split_once(['x', 'X']).and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
    match parsed {
        Some((columns @ 1..=1000, rows @ 1..=1000)) => Ok((columns, rows)),
        _ => Err("give columns x rows, each from 1 to 1000, as in 120x40".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("120x40"), Ok((120, 40)));
        assert!(["", "x", "80", "0x4", "80x24x3", "99999x1"].iter().all(|text| size(text).is_err()));
    }
}
