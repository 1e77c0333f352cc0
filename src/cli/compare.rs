//! Implements `perfprop replay A B`, `--a` and `--b`: opens the recordings that the first is compared with.

use std::fs;
use std::path::{Path, PathBuf};

use super::Error;
use super::args::FirstScreen;
use super::error::NOT_ALL;
use super::input::is_dash;
use super::replay::ReplayArgs;
use super::replay::{Opened, Setup, no_recording, open, seen, setup};
use super::stream::{Stream, say};
use crate::compare::{self, ProfileDifference};
use crate::monitor::{MeasureChoice, Monitor};
use crate::names::shown_path;
use crate::profile::Tree;
use crate::rates::Confidence;
use crate::recording::Recording;
use crate::stacks::Replayed;
use crate::text;
use crate::tui::{OtherRun, Others, Screen};
use crate::units::WallNs;

/// Recordings are compared whole.
const END: WallNs = WallNs(u64::MAX);

/// What is compared with the first file: the further files of its side, and those of the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'a> {
    a: &'a [PathBuf],
    b: &'a [PathBuf],
}

/// The first file, and what it is compared with.
pub(super) fn files(args: &ReplayArgs) -> Result<(&Path, Option<Files<'_>>), Error> {
    let (first, files) = match (&args.files[..], &args.a[..]) {
        (_, [first, a @ ..]) => (first, Some(Files { a, b: &args.b })),
        ([first, b @ ..], []) if b.len() == 1 => (first, Some(Files { a: &[], b })),
        ([first], []) if args.appearance.screen == Some(FirstScreen::Screen(Screen::Compare)) => {
            return Err(alone(first));
        }
        ([first], []) => (first, None),
        (more, []) => return Err(too_many(more)),
    };
    let mut seen = Vec::new();
    for path in files.iter().flat_map(|files| std::iter::once(first).chain(files.a).chain(files.b)) {
        let whole = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        // Two recordings of one name may be compared: each is one run of a side.
        if seen.contains(&whole) && (!args.a.is_empty() || is_dash(path)) {
            let path = shown_path(path);
            return Err(Error::Input(format!("{path} is given twice; a recording counts for one run")));
        }
        seen.push(whole);
    }
    Ok((first, files))
}

/// A recording, with its name.
struct One {
    name: String,
    recording: Recording,
    setup: Setup,
}

/// The recordings that the first is compared with.
pub(super) struct Compared {
    own: String,
    /// The default of units.
    pub(super) measures: MeasureChoice,
    a: Vec<One>,
    b: Vec<One>,
    /// How the profiles differ, where all recordings have one.
    profile: Option<ProfileDifference>,
}

impl Compared {
    /// Reads them; numbers of one are to mean the same as those of the others.
    pub(super) fn open(
        args: &ReplayArgs,
        first: &Path,
        own: (&Recording, &Setup),
        files: Files<'_>,
    ) -> Result<Self, Error> {
        let one = |path: &PathBuf| -> Result<One, Error> {
            let Opened::Recording(recording) = open(path, args)? else { return Err(no_recording(path)) };
            let setup = setup(args, &recording)?;
            check_source((first, own.0), (path, &recording))?;
            tell_break(path, &recording);
            Ok(One { name: path.to_string_lossy().into_owned(), recording: *recording, setup })
        };
        tell_break(first, own.0);
        let a = files.a.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let b = files.b.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let others = || a.iter().chain(&b);
        if others().any(|one| one.setup.header.interval_ns != own.1.header.interval_ns) {
            say("the recordings have different intervals; -I gives all the same");
        }
        let recordings = std::iter::once(own.0).chain(others().map(|one| &one.recording));
        let measures = compare::measures(recordings.map(|recording| (&recording.header, recording.end.as_ref())));
        let mut trees_of_a = vec![tree(own.0)];
        trees_of_a.extend(a.iter().map(|one| tree(&one.recording)));
        let trees_of_b: Vec<_> = b.iter().map(|one| tree(&one.recording)).collect();
        let confidence = own.1.monitor().confidence();
        let profile = difference(&trees_of_a, &trees_of_b, measures, confidence);
        Ok(Self { own: first.to_string_lossy().into_owned(), measures, a, b, profile })
    }

    /// What the screens need of them.
    pub(super) fn others(self) -> Others {
        let run = |one: One| {
            let One { name, recording, setup } = one;
            let end = recording.end_or_last();
            OtherRun::new(name, recording.rounds, end, move || setup.monitor())
        };
        let (a, b) = (self.a.into_iter().map(run).collect(), self.b.into_iter().map(run).collect());
        Others::new(self.own, a, b).with_profile(self.profile)
    }

    /// All as text.
    pub(super) fn print(&self, first: &Recording, monitor: Monitor) -> Result<u8, Error> {
        let own = seen(first, monitor, END);
        let read = |one: &One| seen(&one.recording, one.setup.monitor(), END);
        let [a, b] = [&self.a, &self.b].map(|side| side.iter().map(read).collect::<Vec<_>>());
        let named = |(one, monitor)| -> text::Named<'_> {
            let (one, monitor): (&One, &Monitor) = (one, monitor);
            (&one.name, monitor)
        };
        let a: Vec<_> = std::iter::once((self.own.as_str(), &own)).chain(self.a.iter().zip(&a).map(named)).collect();
        let b: Vec<_> = self.b.iter().zip(&b).map(named).collect();
        Stream::stdout().print(&text::compare(&a, &b, self.measures))?;
        if let Some(profile) = &self.profile {
            Stream::stdout().print(&format!("\n{}", text::profile_difference(profile)))?;
        }
        let all = [&self.a, &self.b].into_iter().flatten().map(|one| &one.recording);
        Ok(if all.chain([first]).all(Recording::is_whole) { 0 } else { NOT_ALL })
    }
}

/// The profile of a whole recording, if it has one.
fn tree(recording: &Recording) -> Option<Tree> {
    let recorded = recording.profile()?;
    let mut profile = Replayed::new(recorded);
    Some(profile.until(recorded, END).0.clone())
}

/// How profiles differ; `None` where a recording has none.
fn difference(
    a: &[Option<Tree>],
    b: &[Option<Tree>],
    measures: MeasureChoice,
    confidence: Confidence,
) -> Option<ProfileDifference> {
    let all = |side: &'_ [Option<Tree>]| side.iter().all(Option::is_some);
    if !all(a) || !all(b) {
        return None;
    }
    let [a, b] = [a, b].map(|side| side.iter().flatten().collect::<Vec<_>>());
    ProfileDifference::of(&a, &b, measures, confidence)
}

/// Where a recording is cut off within a line, who read it said so.
fn tell_break(path: &Path, recording: &Recording) {
    if let (None, Some(words)) = (recording.cut, recording.breaks_off()) {
        say(&format!("{} {words}", shown_path(path)));
    }
}

fn check_source(first: (&Path, &Recording), other: (&Path, &Recording)) -> Result<(), Error> {
    let is_modelled = |(_, recording): &(&Path, &Recording)| recording.header.modelled.is_some();
    if is_modelled(&first) == is_modelled(&other) {
        return Ok(());
    }
    let modelled = shown_path(if is_modelled(&first) { first.0 } else { other.0 });
    let words = "a rate of a model is per 10^9 instructions, and one of a machine per second";
    Err(Error::Input(format!("only {modelled} was counted by a model: {words}; nothing to compare")))
}

/// Recordings are compared first, unless the options name another screen.
pub(super) fn first_screen(args: &ReplayArgs, screen: Screen, compared: Option<&Compared>) -> Screen {
    if compared.is_some() && args.appearance.screen.is_none() { Screen::Compare } else { screen }
}

/// Nothing to compare with.
fn alone(file: &Path) -> Error {
    let file = shown_path(file);
    Error::Usage(format!("the screen compare needs two recordings; try: perfprop replay {file} OTHER"))
}

/// More than two don't say which belong together.
fn too_many(files: &[PathBuf]) -> Error {
    let count = files.len();
    Error::Usage(format!(
        "{count} recordings have no two sides; try: perfprop replay --a FILE FILE ... --b FILE FILE ..."
    ))
}
