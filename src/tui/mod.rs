//! Shows a monitor on live screens in a terminal, or draws pictures of them.
//!
//! ```text
//! samples, output, keys, signals ──> Message ──update──> Model ──draw──> frame
//!                                                └──> Command: quit, save, stop ...
//! ```
//!
//! [`run`] is the loop. The state of the screens is a `Model`, which knows neither terminal nor
//! clock, and drawing only reads it; so [`picture()`] draws the same screens without a terminal, and
//! tests run the real loop on a [scripted](Terminal::scripted) one.

use std::io;
use std::path::PathBuf;

use crossbeam_channel::Receiver;

use crate::monitor::{Measure, Monitor};
use crate::profile::Tree;
use crate::recording::End;
use crate::sampling::Sample;
use crate::session::OutputLine;
use crate::sources::Round;
use crate::stacks::Quality;
use crate::units::WallNs;

mod app;
mod complaint;
mod config;
mod figures;
mod keys;
mod model;
mod others;
mod picture;
mod symbols;
mod tape;
mod terminal;
mod text;
mod theme;
mod view;

pub use complaint::Complaint;
pub use config::Config;
pub use figures::Basis;
pub use keys::{KeyHelp, Keymap, key_table};
pub use model::Screen;
pub use others::{OtherRun, Others};
pub use picture::{Format, Picture, Scene, picture};
pub use symbols::Symbols;
pub use tape::Timeline;
pub use terminal::{Input, Script, Terminal};
pub use theme::{Depth, FindError, Role, SchemeError, Theme, theme_of_base16};

/// What feeds the screens, and what they can do to it.
pub trait Feed {
    /// Channel that rounds come from.
    fn samples(&self) -> &Receiver<Sample>;

    /// Where the command's output comes out; a channel that never gives a line if there is none.
    fn output(&self) -> &Receiver<OutputLine>;

    /// Hands over the profile of the call stacks that were sampled, with what went missing; not at all if none are
    /// sampled. What can be wound hands over what was sampled until then.
    fn profile(&mut self, _until: WallNs, _see: &mut dyn FnMut(&Tree, &Quality)) {}

    /// Whether samples may still come after the end: those on their way have to be named first.
    fn is_profile_coming(&self) -> bool {
        false
    }

    /// How the measurement ended; called once, after the last round.
    fn end(&mut self, last: &Round, lost: u64) -> End;

    /// The process id of the command while it runs.
    fn running_command(&self) -> Option<i32> {
        None
    }

    /// Ends the command; may take two seconds.
    fn terminate(&mut self) {}

    /// The recording behind a replay, which can be wound; `None` for what runs.
    fn timeline(&mut self) -> Option<&mut dyn Timeline> {
        None
    }

    /// Recordings to compare with; asked for once.
    fn others(&mut self) -> Option<Others> {
        None
    }

    /// Lets the command run on after the screens are gone.
    ///
    /// # Errors
    /// Fails if nothing can take over reading its output.
    fn detach(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What to do with a command that still runs when the user quits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnQuit {
    /// Ask the user.
    #[default]
    Ask,
    /// End the command.
    Kill,
    /// Let the command run on.
    Detach,
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
    },
    /// A profile alone, whose stacks another tool sampled.
    Stacks {
        /// Whether all that its file has could be read.
        is_whole: bool,
    },
}

/// How the screens begin, and how they look.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the rounds come from.
    pub mode: Mode,
    /// Screen to begin with.
    pub screen: Screen,
    /// Whether help lies over it at first.
    pub help: bool,
    /// Units to begin with.
    pub measure: Measure,
    /// Corrected or raw numbers at first.
    pub basis: Basis,
    /// Colours and styles.
    pub theme: Theme,
    /// How many colours the terminal has, for when the theme is changed.
    pub depth: Depth,
    /// Which glyphs the terminal has.
    pub symbols: Symbols,
    /// What to do with a command that still runs.
    pub on_quit: OnQuit,
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

impl Default for Options {
    fn default() -> Self {
        let depth = Depth::default();
        Self {
            mode: Mode::default(),
            screen: Screen::default(),
            help: false,
            measure: Measure::default(),
            basis: Basis::default(),
            theme: Theme::parse("terminal", "", depth).0,
            depth,
            symbols: Symbols::default(),
            on_quit: OnQuit::default(),
            exit_with_child: false,
            save_in: PathBuf::from("."),
            keymap: Keymap::default(),
            mouse: false,
            theme_file: None,
            notes: Vec::new(),
        }
    }
}

/// Why the screens closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The user quit; no command ran.
    Quit,
    /// The user quit, and the command was ended.
    Killed,
    /// The user quit, and the command runs on.
    Detached,
    /// The measurement ended, and [`Options::exit_with_child`] was set.
    Ended,
    /// A signal asked for it. A command that runs is the caller's to end.
    Signal(i32),
}

/// Runs the screens on the terminal until they are closed; gives the monitor back, with every
/// round that came, for a closing summary.
///
/// `signals` gives the numbers of signals that arrive: SIGTSTP stops the program with the terminal restored, SIGCONT
/// draws anew, SIGUSR1 saves, and all others close the screens.
///
/// # Errors
/// Fails if the terminal can't be used. It is restored in any case.
pub fn run(
    monitor: Monitor,
    feed: &mut dyn Feed,
    signals: &Receiver<i32>,
    options: &Options,
) -> io::Result<(Monitor, Outcome)> {
    run_on(Terminal::open(options.depth)?, monitor, feed, signals, options)
}

/// [`run`] on a given terminal.
///
/// # Errors
/// Fails if the terminal can't be used.
pub fn run_on(
    terminal: Terminal,
    monitor: Monitor,
    feed: &mut dyn Feed,
    signals: &Receiver<i32>,
    options: &Options,
) -> io::Result<(Monitor, Outcome)> {
    app::App::new(terminal, monitor, feed, signals.clone(), options).run()
}
