//! Defines the arguments of how screens look.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use crate::stacks::FirstLevel;
use crate::tui::Screen;

/// How the screens look.
#[derive(Debug, Args)]
#[command(next_help_heading = "Screen")]
pub(crate) struct AppearanceArgs {
    /// The screen to begin with
    #[arg(long, value_name = "NAME", value_parser = first_screen())]
    pub(crate) screen: Option<FirstScreen>,
    /// A theme's name or file; `auto` follows the terminal's background, light or dark
    #[arg(long, value_name = "THEME", env = "PERFPROP_THEME")]
    pub(crate) theme: Option<String>,
    /// The configuration file; `perfprop check --default-config` prints the defaults
    #[arg(long, value_name = "FILE", env = "PERFPROP_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// What the first level of a profile tells apart: `thread-name` (default), `thread`, `process`, `cpu`, or
    /// `function` for none of them
    #[arg(long, value_name = "LEVEL", default_value_t, hide_default_value = true, value_parser = first_level())]
    pub(crate) by: FirstLevel,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// The screen to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstScreen {
    Screen(Screen),
    /// The first screen, with the help over it.
    Help,
}

/// Parses the names of first levels.
fn first_level() -> impl TypedValueParser<Value = FirstLevel> {
    PossibleValuesParser::new(FirstLevel::ALL.map(FirstLevel::word)).try_map(|name| name.parse::<FirstLevel>())
}

/// Parses the names of the screens, and `help`.
fn first_screen() -> impl TypedValueParser<Value = FirstScreen> {
    const HELP: &str = "help";
    // What the screen of threads is called on a whole machine.
    const PROCESSES: &str = "processes";
    let names = Screen::ALL.into_iter().chain([Screen::Source, Screen::Compare]).map(Screen::word).chain([HELP]);
    let names = names.map(|name| match Screen::Threads.word() == name {
        true => PossibleValue::new(name).alias(PROCESSES),
        false => PossibleValue::new(name),
    });
    PossibleValuesParser::new(names).map(|name| {
        let name = if name == PROCESSES { Screen::Threads.word() } else { &name };
        let mut screens = Screen::ALL.into_iter().chain([Screen::Source, Screen::Compare]);
        screens.find(|screen| screen.word() == name).map_or(FirstScreen::Help, FirstScreen::Screen)
    })
}
