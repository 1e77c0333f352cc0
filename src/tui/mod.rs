//! Shows a monitor on live screens in a terminal, or draws pictures of them.
//!
//! ```text
//! samples, output, keys, signals ──> Message ──update──> ScreenModel ──draw──> frame
//!                                                └──> LoopCommand: quit, save, stop ...
//! ```
//!
//! [`run`] is the loop. The state of the screens is a `ScreenModel`, which knows neither terminal nor
//! clock, and drawing only reads it; so [`picture()`] draws the same screens without a terminal, and
//! tests run the real loop on a [scripted](Terminal::scripted) one.

use std::io;

use crossbeam_channel::Receiver;

use crate::monitor::Monitor;
use crate::session::CaughtSignal;

mod app;
mod complaint;
mod config;
mod feed;
mod figures;
mod help;
mod keys;
mod layout;
mod model;
mod options;
mod others;
mod outline;
mod picture;
mod playback;
mod screen;
mod source_text;
mod symbols;
mod terminal;
mod text;
mod theme;
mod typed;
mod view;

pub use app::Outcome;
pub use complaint::Complaint;
#[cfg(feature = "history")]
pub(crate) use complaint::unknown;
pub use config::Config;
pub use feed::{Feed, Timeline};
pub use figures::ShownValues;
pub use keys::{KeyHelp, Keymap, key_table};
pub use options::{Mode, QuitAction, ReplayedEnding, ScreenOptions};
pub use others::{OtherRun, Others};
pub use outline::Outline;
pub use picture::{Picture, PictureFormat, Scene, picture};
pub use playback::parse_time;
pub use screen::Screen;
pub use symbols::GlyphSet;
pub use terminal::{Input, Terminal, TerminalScript, terminal_columns};
pub use text::cut;
pub use theme::{Depth, FindError, Role, SchemeError, Theme, theme_of_base16};
pub use typed::{UnknownKey, checked_keys};

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
    signals: &Receiver<CaughtSignal>,
    options: &ScreenOptions,
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
    signals: &Receiver<CaughtSignal>,
    options: &ScreenOptions,
) -> io::Result<(Monitor, Outcome)> {
    app::App::new(terminal, monitor, feed, signals.clone(), options).run()
}
