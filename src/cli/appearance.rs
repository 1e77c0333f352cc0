//! Decides how screens look, from options and the environment.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, io};

use super::Error;
use super::args::{AppearanceArgs, FirstScreen, When};
use super::stream::say;
use super::top::OnQuit;
use crate::codes::Coded;
use crate::files;
use crate::names::shown;
use crate::tui::{self, Complaint, Config, Depth, GlyphSet, Screen, ScreenOptions, Theme};

/// Refuses a theme that isn't there, whether anything will be drawn with it or not.
pub(super) fn check(args: &AppearanceArgs) -> Result<(), Error> {
    match chosen(args) {
        None | Some(AUTO) => Ok(()),
        Some(theme) => match Theme::find(theme, &theme_folders(), Depth::Mono) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::Theme(error.to_string())),
        },
    }
}

/// Refuses the screens that a run can't begin with.
pub(super) fn check_screen_of_run(args: &AppearanceArgs) -> Result<(), Error> {
    match args.screen {
        Some(FirstScreen::Screen(Screen::Compare)) => {
            Err(Error::Usage("Compare needs two recordings:  perfprop replay A B".into()))
        }
        Some(FirstScreen::Screen(Screen::Source)) => Err(Error::Usage(SOURCE_IS_OPENED.into())),
        _ => Ok(()),
    }
}

/// Why no screens begin with the source.
const SOURCE_IS_OPENED: &str =
    "source is opened from the screen profile, with v on a function; replay --dump prints it";

/// The theme that was asked for; a variable that is empty asks for none.
fn chosen(args: &AppearanceArgs) -> Option<&str> {
    args.theme.as_deref().filter(|theme| !theme.is_empty())
}

/// The theme that follows the terminal's background.
const AUTO: &str = "auto";

/// How the screens of a terminal look.
pub(super) fn on_terminal(args: &AppearanceArgs) -> Result<ScreenOptions, Error> {
    let variable = |name: &str| env::var(name).ok();
    let (config, complaints) = config(args)?;
    let (term, colorterm) = (variable("TERM"), variable("COLORTERM"));
    let detect = |no_color: Option<&str>| Depth::detect(no_color, colorterm.as_deref(), term.as_deref());
    let depth = match args.color {
        When::Never => Depth::Mono,
        When::Always => match detect(None) {
            Depth::Mono => Depth::Named,
            depth => depth,
        },
        When::Auto => detect(variable("NO_COLOR").as_deref()),
    };
    let [lc_all, lc_ctype, lang] = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable);
    let detect = || GlyphSet::detect(lc_all.as_deref(), lc_ctype.as_deref(), lang.as_deref(), term.as_deref());
    let symbols = if args.ascii { GlyphSet::Ascii } else { config.symbols.unwrap_or_else(detect) };
    let theme = theme_name(args, &config);
    let options = match options(args, depth, symbols, &theme) {
        // A wrong word in the configuration is no reason not to start.
        Err(error) if chosen(args).is_none() => {
            let notes = vec![in_configuration(&error)];
            ScreenOptions { notes, ..self::options(args, depth, symbols, "terminal")? }
        }
        options => options?,
    };
    if options.screen == Screen::Source {
        return Err(Error::Usage(SOURCE_IS_OPENED.into()));
    }
    let screen = options.screen;
    let notes: Vec<_> = complaints.iter().map(ToString::to_string).chain(options.notes).collect();
    notes.iter().for_each(|note| say(note));
    Ok(ScreenOptions {
        notes,
        screen: if args.screen.is_none() { config.screen.unwrap_or_default() } else { screen },
        measures: config.units.unwrap_or_default(),
        basis: config.values.unwrap_or_default(),
        mouse: config.mouse,
        on_quit: config.on_quit.unwrap_or_default(),
        save_in: config.save_in.unwrap_or_else(|| PathBuf::from(".")),
        theme_file: Theme::file(&theme, &theme_folders()),
        keymap: config.keymap,
        ..options
    })
}

/// How a picture looks: the same wherever it is made, so no configuration is read but one that is named.
pub(super) fn in_picture(args: &AppearanceArgs) -> Result<ScreenOptions, Error> {
    let depth = if args.color == When::Never { Depth::Mono } else { Depth::TrueColor };
    let symbols = if args.ascii { GlyphSet::Ascii } else { GlyphSet::Unicode };
    // There is no terminal whose background it could follow.
    let (config, complaints) = if args.config.is_some() { config(args)? } else { Default::default() };
    complaints.iter().for_each(|complaint| say(&complaint.to_string()));
    let theme = chosen(args).or(config.theme.as_deref()).filter(|theme| *theme != AUTO).unwrap_or("dark");
    let options = options(args, depth, symbols, theme)?;
    let screen = if args.screen.is_none() { config.screen.unwrap_or_default() } else { options.screen };
    let options = ScreenOptions {
        screen,
        measures: config.units.unwrap_or_default(),
        basis: config.values.unwrap_or_default(),
        ..options
    };
    options.notes.iter().for_each(|note| say(note));
    Ok(options)
}

fn options(args: &AppearanceArgs, depth: Depth, symbols: GlyphSet, theme: &str) -> Result<ScreenOptions, Error> {
    let (theme, complaints) =
        Theme::find(theme, &theme_folders(), depth).map_err(|error| Error::Theme(error.to_string()))?;
    let notes = complaints.iter().map(ToString::to_string).collect();
    let (screen, help) = match args.screen {
        Some(FirstScreen::Screen(screen)) => (screen, false),
        Some(FirstScreen::Help) => (Screen::default(), true),
        None => (Screen::default(), false),
    };
    let first_level = args.by;
    Ok(ScreenOptions { theme, depth, symbols, screen, help, first_level, notes, ..ScreenOptions::default() })
}

/// The configuration where nothing is drawn: what is wrong with it and with its theme is said only.
pub(super) fn for_text(args: &AppearanceArgs) -> Result<Config, Error> {
    let (config, complaints) = config(args)?;
    complaints.iter().for_each(|complaint| say(&complaint.to_string()));
    let theme = config.theme.as_deref().filter(|theme| chosen(args).is_none() && *theme != AUTO);
    if let Some(Err(error)) = theme.map(|theme| options(args, Depth::Mono, GlyphSet::Ascii, theme)) {
        say(&in_configuration(&error));
    }
    Ok(config)
}

fn in_configuration(error: &Error) -> String {
    format!("configuration: {}", error.with_code().join("\n"))
}

/// The configuration, and what is wrong with it. A file that the user named must be there.
pub(super) fn config(args: &AppearanceArgs) -> Result<(Config, Vec<Complaint>), Error> {
    let named = args.config.clone();
    let Some(path) = named.clone().or_else(|| config_folder().map(|folder| folder.join("perfprop/config.toml"))) else {
        return Ok((Config::default(), Vec::new()));
    };
    match files::text(&path, files::LONGEST) {
        Ok(text) => Ok(Config::parse(&path.to_string_lossy(), &text)),
        Err(error) if named.is_none() && has_none(&error) => Ok(Default::default()),
        Err(error) => Err(Error::Config(path, error)),
    }
}

/// Whether there is no configuration for this user, as there is none in somebody else's home, after `sudo -u`, and none
/// below `/dev/null`, the home of many a service.
fn has_none(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// The theme that was asked for: by the option or the environment, else by the configuration. On a
/// light background that one's other theme is taken; `auto` is `light` or `dark`.
fn theme_name(args: &AppearanceArgs, config: &Config) -> String {
    let asked = chosen(args);
    match (asked.map(str::to_owned).or_else(|| config.theme.clone()), &config.theme_light) {
        (Some(theme), _) if theme == AUTO => if background_is_light() { "light" } else { "dark" }.into(),
        (theme, Some(light)) if asked.is_none() && theme.as_ref() != Some(light) && background_is_light() => {
            light.clone()
        }
        (theme, _) => theme.unwrap_or_else(|| "terminal".into()),
    }
}

/// Asks the terminal for its background (OSC 11), else the environment.
fn background_is_light() -> bool {
    let mut options = terminal_colorsaurus::QueryOptions::default();
    options.timeout = ANSWER;
    match terminal_colorsaurus::theme_mode(options) {
        Ok(mode) => mode == terminal_colorsaurus::ThemeMode::Light,
        Err(_) => env::var("COLORFGBG").is_ok_and(|value| colorfgbg_is_light(&value)),
    }
}

/// How long a terminal may take to say what its background is.
const ANSWER: Duration = Duration::from_millis(150);

/// `COLORFGBG` is the foreground's and the background's number among the 16 colours: `0;15`.
fn colorfgbg_is_light(value: &str) -> bool {
    value.rsplit_once(';').is_some_and(|(_, background)| matches!(background, "7" | "15"))
}

/// The names of themes that there are.
pub(super) fn theme_names() -> Vec<String> {
    Theme::all_names(&theme_folders()).iter().map(|name| shown(name).into_owned()).collect()
}

/// Where themes are looked for: `$XDG_CONFIG_HOME/perfprop/themes`, then the same in each of
/// `$XDG_DATA_DIRS`.
fn theme_folders() -> Vec<PathBuf> {
    let data = env::var_os("XDG_DATA_DIRS").unwrap_or_default();
    let data = env::split_paths(&data).filter(|folder| !folder.as_os_str().is_empty());
    config_folder().into_iter().chain(data).map(|folder| folder.join("perfprop/themes")).collect()
}

fn config_folder() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from).or(home)
}

impl From<OnQuit> for tui::QuitAction {
    fn from(on_quit: OnQuit) -> Self {
        match on_quit {
            OnQuit::Ask => Self::Ask,
            OnQuit::Kill => Self::Kill,
            OnQuit::Detach => Self::Detach,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_background_stands_last_in_colorfgbg() {
        let light = ["0;15", "0;default;15", "15;7"].map(colorfgbg_is_light);
        let dark = ["15;0", "7;8", "15", ""].map(colorfgbg_is_light);
        assert_eq!((light, dark), ([true; 3], [false; 4]));
    }
}
