//! Options and the environment in, how screens look out.

use std::env;
use std::path::PathBuf;

use super::Error;
use super::args::{Look, OnQuit, ScreenName, When};
use crate::tui::{self, Depth, Options, Screen, Symbols, Theme};

/// How the screens of a terminal look.
pub(super) fn on_terminal(look: &Look) -> Result<Options, Error> {
    let variable = |name: &str| env::var(name).ok();
    let (term, colorterm) = (variable("TERM"), variable("COLORTERM"));
    let detect = |no_color: Option<&str>| Depth::detect(no_color, colorterm.as_deref(), term.as_deref());
    let depth = match look.color {
        When::Never => Depth::Mono,
        When::Always => match detect(None) {
            Depth::Mono => Depth::Named,
            depth => depth,
        },
        When::Auto => detect(variable("NO_COLOR").as_deref()),
    };
    let [lc_all, lc_ctype, lang] = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let symbols = Symbols::detect(lc_all.as_deref(), lc_ctype.as_deref(), lang.as_deref(), term.as_deref());
    options(look, depth, if look.ascii { Symbols::Ascii } else { symbols }, "terminal")
}

/// How a picture looks: the same wherever it is made.
pub(super) fn in_picture(look: &Look) -> Result<Options, Error> {
    let depth = if look.color == When::Never { Depth::Mono } else { Depth::TrueColor };
    let symbols = if look.ascii { Symbols::Ascii } else { Symbols::Unicode };
    options(look, depth, symbols, "dark")
}

fn options(look: &Look, depth: Depth, symbols: Symbols, theme: &str) -> Result<Options, Error> {
    let name = look.theme.as_deref().unwrap_or(theme);
    let (theme, complaints) =
        Theme::find(name, &theme_folders(), depth).map_err(|error| Error::Theme(error.to_string()))?;
    let notes = complaints.iter().map(ToString::to_string).collect();
    let help = look.screen == Some(ScreenName::Help);
    Ok(Options { theme, depth, symbols, screen: screen(look.screen), help, notes, ..Options::default() })
}

fn screen(name: Option<ScreenName>) -> Screen {
    match name {
        None | Some(ScreenName::Events | ScreenName::Help) => Screen::Events,
        Some(ScreenName::Detail) => Screen::Detail,
        Some(ScreenName::Relations) => Screen::Relations,
        Some(ScreenName::Log) => Screen::Log,
    }
}

/// Where themes are looked for: `$XDG_CONFIG_HOME/perfprop/themes`, then the same in each of
/// `$XDG_DATA_DIRS`.
fn theme_folders() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let config = env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from).or(home);
    let data = env::var_os("XDG_DATA_DIRS").unwrap_or_default();
    let folders = config.into_iter().chain(env::split_paths(&data).filter(|folder| !folder.as_os_str().is_empty()));
    folders.map(|folder| folder.join("perfprop/themes")).collect()
}

impl From<OnQuit> for tui::OnQuit {
    fn from(on_quit: OnQuit) -> Self {
        match on_quit {
            OnQuit::Ask => Self::Ask,
            OnQuit::Kill => Self::Kill,
            OnQuit::Detach => Self::Detach,
        }
    }
}
