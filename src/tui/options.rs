//! The options of the screens: how they begin, and how they look.

use std::path::PathBuf;

use super::figures::ShownValues;
use super::keys::Keymap;
use super::screen::Screen;
use super::symbols::GlyphSet;
use super::theme::{Depth, Theme};
use crate::monitor::MeasureChoice;
use crate::recording::TimeRange;
use crate::stacks::FirstLevel;
use crate::units::WallNs;

/// What to do with a command that still runs when the user quits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuitAction {
    /// Ask the user.
    #[default]
    Ask,
    /// End the command.
    Kill,
    /// Let the command run on.
    Detach,
}

/// How a recording ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayedEnding {
    /// Its measurement ended.
    #[default]
    Finished,
    /// It breaks off: whoever wrote it was killed, or writes still.
    NotFinished,
    /// It has a header and nothing behind that.
    NoNumbers,
}

impl ReplayedEnding {
    /// Words for what is missing.
    pub fn words(self) -> Option<&'static str> {
        match self {
            Self::Finished => None,
            Self::NotFinished => Some("the recording was not finished"),
            Self::NoNumbers => Some("the recording was not finished: it holds no numbers"),
        }
    }

    /// The same for a narrow screen.
    pub(super) fn short_words(self) -> Option<&'static str> {
        match self {
            Self::Finished => None,
            Self::NotFinished => Some("not finished"),
            Self::NoNumbers => Some("it holds no numbers"),
        }
    }
}

/// Where the rounds come from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Mode {
    /// A measurement that runs.
    #[default]
    Live,
    /// A recording of this length.
    Replay {
        /// The time of its last round.
        length: WallNs,
        /// Seconds of it a second; 0 is at once.
        speed: f64,
        /// Whether all of it is there.
        ending: ReplayedEnding,
    },
    /// A profile alone, whose stacks another tool sampled.
    Stacks {
        /// Whether all that its file has could be read.
        is_whole: bool,
    },
}

impl Mode {
    /// The length of the recording; 0 of what isn't one.
    pub(super) fn length(self) -> WallNs {
        match self {
            Self::Replay { length, .. } => length,
            Self::Live | Self::Stacks { .. } => WallNs(0),
        }
    }
}

/// How the screens begin, and how they look.
#[derive(Clone, Debug)]
pub struct ScreenOptions {
    /// Where the rounds come from.
    pub mode: Mode,
    /// The range of a recording to begin with; all of it if `None`.
    pub range: Option<TimeRange>,
    /// Screen to begin with.
    pub screen: Screen,
    /// Whether help lies over it at first.
    pub help: bool,
    /// The step of the tour to begin with; none where `None`.
    pub tour: Option<usize>,
    /// What the first level of a profile's tree tells apart at first.
    pub first_level: FirstLevel,
    /// Units to begin with.
    pub measures: MeasureChoice,
    /// Corrected or raw numbers at first.
    pub basis: ShownValues,
    /// Colours and styles.
    pub theme: Theme,
    /// How many colours the terminal has, for when the theme is changed.
    pub depth: Depth,
    /// Which glyphs the terminal has.
    pub symbols: GlyphSet,
    /// What to do with a command that still runs.
    pub on_quit: QuitAction,
    /// Whether to quit when the measurement ends.
    pub exit_with_child: bool,
    /// The folder that recordings and exports are saved in.
    pub save_in: PathBuf,
    /// Keys and their actions.
    pub keymap: Keymap,
    /// Whether the mouse is perfprop's at first.
    pub mouse: bool,
    /// The theme's file, which is read again when it changes.
    pub theme_file: Option<PathBuf>,
    /// Lines for the log from before the first round: what is wrong with the theme.
    pub notes: Vec<String>,
}

impl Default for ScreenOptions {
    fn default() -> Self {
        let depth = Depth::default();
        Self {
            mode: Mode::default(),
            range: None,
            screen: Screen::default(),
            help: false,
            tour: None,
            first_level: FirstLevel::default(),
            measures: MeasureChoice::default(),
            basis: ShownValues::default(),
            theme: Theme::parse("terminal", "", depth).0,
            depth,
            symbols: GlyphSet::default(),
            on_quit: QuitAction::default(),
            exit_with_child: false,
            save_in: PathBuf::from("."),
            keymap: Keymap::default(),
            mouse: false,
            theme_file: None,
            notes: Vec::new(),
        }
    }
}
