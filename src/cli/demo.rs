//! Implements `perfprop demo`: leads through the screens with a recording that perfprop has with it.

use std::io::BufReader;
use std::path::Path;

use clap::Args;
use flate2::read::GzDecoder;

use super::args::AppearanceArgs;
use super::stream::has_keys;
use super::{Error, appearance, replay};
use crate::recording::{self, Recording};

/// A run of screenshots/orders.c; screenshots/make says how it was recorded.
const RUN: &[u8] = include_bytes!("../../screenshots/demo.jsonl.gz");

/// The arguments of `perfprop demo`.
#[derive(Debug, Args)]
#[command(mut_arg("screen", |screen| screen.hide(true)), after_help = "Examples:
  perfprop demo                     five steps through the screens; nothing is measured
  perfprop demo --theme nord        the same in other colours
  perfprop top -g -- ./prog         the same screens for your own program")]
pub(super) struct DemoArgs {
    #[command(flatten)]
    appearance: AppearanceArgs,
}

pub(super) fn run(args: &DemoArgs) -> Result<u8, Error> {
    appearance::check(&args.appearance)?;
    if args.appearance.screen.is_some() {
        return Err(Error::Usage(
            "the demo begins with the first of its steps, on Events: it takes no --screen".into(),
        ));
    }
    let name = Path::new("demo");
    if !has_keys(name) {
        return Err(Error::Input(
            "perfprop demo needs a terminal: it draws screens, and keys lead through them".into(),
        ));
    }
    let recording = recorded().map_err(|source| Error::Recording { path: name.into(), source })?;
    replay::tour(recording, appearance::on_terminal(&args.appearance)?)
}

fn recorded() -> Result<Recording, recording::ReadError> {
    recording::read(BufReader::new(GzDecoder::new(RUN)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;
    use crate::estimate::EstimatorKind;
    use crate::goldens::assert_golden;
    use crate::monitor::Monitor;
    use crate::stacks::Replayed;
    use crate::tui::{Picture, Scene, Screen, ScreenOptions};
    use crate::units::WallNs;

    #[test]
    fn the_run_is_whole_and_has_what_the_tour_speaks_of() {
        let recording = recorded().unwrap();
        assert!(recording.cut.is_none() && recording.stacks.is_some());
        let names: Vec<_> = recording.header.events.iter().map(|event| event.event.name.as_str()).collect();
        assert_eq!(names.len(), 6);
        assert!(
            ["L1_LOAD_MISSES", "L2_HITS", "L2_LOAD_MISSES", "LOADS", "STORES"].iter().all(|name| names.contains(name))
        );
        let relations = crate::measure::recorded_relations(&recording.header.relations);
        assert!(relations.iter().any(|relation| relation.id == "wrong"));
    }

    /// The screen of each step.
    const SCREENS: [Screen; 5] = [Screen::Events, Screen::Detail, Screen::Detail, Screen::Relations, Screen::Profile];

    #[test]
    fn each_step_shows_what_it_speaks_of() {
        let recording = recorded().unwrap();
        let relations = crate::measure::recorded_relations(&recording.header.relations);
        for (step, screen) in SCREENS.into_iter().enumerate() {
            for size in [(80, 24), (120, 40), (200, 60)] {
                let options = ScreenOptions { tour: Some(step), ..ScreenOptions::default() };
                let estimator = EstimatorKind::Gp.build(&recording.header.estimated_events(), &relations);
                let mut monitor = Monitor::new(recording.header.clone(), relations.clone(), estimator);
                monitor.take_rounds(&*recording.rounds);
                let recorded = recording.profile().unwrap();
                let (tree, quality) = {
                    let mut profile = Replayed::new(recorded);
                    let (tree, quality) = profile.until(recorded, WallNs(u64::MAX));
                    (tree.clone(), quality.clone())
                };
                let wanted = Picture { size, profile: Some((tree, quality)), ..Picture::default() };
                let text = Scene::new(monitor, None, &options).picture(screen, &wanted);
                assert_golden!("screens", format!("tour-{}-{}x{}", step + 1, size.0, size.1), text);
            }
        }
    }
}
