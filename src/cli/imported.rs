//! Implements `perfprop replay` of stacks that another tool wrote: opens their tree in the Profile screen.

use std::path::Path;

use crossbeam_channel::{Receiver, never};

use super::args::FirstScreen;
use super::error::{NOT_ALL, code_of};
use super::replay::ReplayArgs;
use super::stream::{Stream, has_keys, say};
use super::{Error, appearance, signals};
use crate::estimate::{EstimatorKind, IntervalBasis};
use crate::measure::{self, Estimation};
use crate::monitor::Monitor;
use crate::names::shown_path;
use crate::profile::{self, Amount, RepeatFolding, Tree};
use crate::run::{End, Header, MeasuredTarget};
use crate::sampling::SamplerMessage;
use crate::session::OutputLine;
use crate::sources::Round;
use crate::sources::perf::CancelToken;
use crate::stack_formats::{Imported, InputFormat, ReadOptions};
use crate::stacks::{FirstLevel, StackOrigin, StackQuality};
use crate::text;
use crate::tui::{self, Feed, Mode, Outcome, Picture, Scene, Screen, ScreenOptions};
use crate::units::WallNs;

/// The options by which `perfprop export` reads the same file for formats with room for all of it.
pub(super) fn read_options(args: &ReplayArgs) -> ReadOptions {
    let repeats = if args.canonical { RepeatFolding::Fold } else { RepeatFolding::Keep };
    ReadOptions {
        format: args.from.map(Into::into),
        tree: profile::TreeOptions { repeats, ..profile::TreeOptions::default() },
        ..ReadOptions::default()
    }
}

pub(super) fn run(args: &ReplayArgs, path: &Path, imported: Imported) -> Result<u8, Error> {
    let Imported { tree, fault, format, gaps, .. } = imported;
    let fault = match fault {
        Some(source) if tree.event_ids().all(|event| tree.total(event) == Amount::ZERO) => {
            return Err(Error::Stacks { path: path.into(), source });
        }
        fault => fault,
    };
    refuse(args, path)?;
    let origin = if format == Some(InputFormat::PerfScript) { StackOrigin::PerfScript } else { StackOrigin::Other };
    let quality = StackQuality { origin, ..StackQuality::default() };
    let file = shown_path(path);
    let mut notes = Vec::new();
    if let Some(fault) = fault {
        let rest = fault.rest();
        notes.push(format!("{file}: {fault}; {rest} is shown"));
        say(&format!("{file}: {fault}\n      {rest} is shown"));
    }
    let is_whole = notes.is_empty();
    for note in gaps.notes() {
        let note = format!("{file}: {note}");
        say(&note);
        notes.push(note);
    }
    let code = if is_whole { 0 } else { NOT_ALL };
    let adjust = |options: ScreenOptions| {
        let screen = if args.appearance.screen == Some(FirstScreen::Screen(Screen::Log)) {
            Screen::Log
        } else {
            Screen::Profile
        };
        let notes = notes.iter().cloned().chain(options.notes).collect();
        ScreenOptions { mode: Mode::Stacks { is_whole }, screen, notes, ..options }
    };
    if let Some(format) = args.dump {
        let options = adjust(appearance::in_picture(&args.appearance)?);
        let profile = Some((tree, quality));
        let wanted = Picture { size: args.size, format: format.into(), profile, ..Picture::default() };
        let picture = Scene::new(monitor(args, path), None, &options).picture(options.screen, &wanted);
        Stream::stdout().print(&picture)?;
    } else if !args.print && has_keys(path) {
        let options = adjust(appearance::on_terminal(&args.appearance)?);
        let signals = signals::listen_for_screens(&CancelToken::default()).map_err(Error::System)?;
        let mut feed = Still { tree, quality, samples: never(), output: never() };
        let (_, outcome) = tui::run(monitor(args, path), &mut feed, &signals, &options).map_err(Error::Terminal)?;
        if let Outcome::Signal(signal) = outcome {
            return Ok(code_of(signal));
        }
    } else {
        Stream::stdout().print_folded(&text::stacks(&tree, &quality, "", args.corrections.confidence, None))?;
    }
    Ok(code)
}

/// Stacks have no times, intervals or counts, and options for those would do nothing.
fn refuse(args: &ReplayArgs, path: &Path) -> Result<(), Error> {
    let file = shown_path(path);
    let needs_recording = [
        (args.speed.is_some(), "--speed"),
        (args.at.is_some(), "--at"),
        (args.range.is_some(), "--range"),
        (args.interval.is_some(), "-I"),
        (!args.corrections.relations.is_empty(), "--relations"),
        (args.appearance.by != FirstLevel::default(), "--by"),
    ];
    if let Some((_, option)) = needs_recording.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Error::Usage(format!("{option} is for recordings; {file} holds stacks without times or counts")));
    }
    match args.appearance.screen {
        None | Some(FirstScreen::Screen(Screen::Profile | Screen::Log) | FirstScreen::Help) => Ok(()),
        Some(_) => Err(Error::Usage(format!("{file} holds stacks, which have the screens profile and log only"))),
    }
}

/// A monitor of nothing: the screens' frame around the profile.
fn monitor(args: &ReplayArgs, path: &Path) -> Monitor {
    let name = match path.to_string_lossy() {
        name if name == "-" => "standard input".into(),
        name => name.into_owned(),
    };
    let header = Header::new(MeasuredTarget::File { path: name }, EstimatorKind::Scale.name());
    let confidence = args.corrections.confidence;
    let estimator = Estimation { kind: EstimatorKind::Scale, confidence, learnt: None, basis: IntervalBasis::AsLive };
    measure::monitor(header, Vec::new(), estimator)
}

/// A profile that doesn't change.
struct Still {
    tree: Tree,
    quality: StackQuality,
    samples: Receiver<SamplerMessage>,
    output: Receiver<OutputLine>,
}

impl Feed for Still {
    fn samples(&self) -> &Receiver<SamplerMessage> {
        &self.samples
    }

    fn output(&self) -> &Receiver<OutputLine> {
        &self.output
    }

    fn profile(&mut self, _until: WallNs, see: &mut dyn FnMut(&Tree, &StackQuality)) {
        see(&self.tree, &self.quality);
    }

    fn end(&mut self, _last: &Round, _lost: u64) -> End {
        End::default()
    }
}
