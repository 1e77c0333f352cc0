//! Loads themes: a style for each role.
//!
//! What a file leaves out comes from the theme that it inherits from, in the end from `terminal`.
//! A bad value is reported with its place, and the theme loads without it.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ratatui::style::{Color, Modifier, Style};

mod base16;
mod color;
mod file;
mod flame;
mod watch;

pub use base16::{SchemeError, theme_of_base16};
pub use color::Depth;
pub(crate) use color::indexed_rgb;
pub(super) use flame::{Hue, HueFrom};
pub(super) use watch::ThemeWatch;

use super::complaint::{Complaint, similar};
use crate::files;
use crate::names::{shown, shown_path};
use file::{RoleStyle, Sheet};

/// The themes in the program: name and text. The first is what all others fall back to.
const BUILT_IN: [(&str, &str); 11] = [
    ("terminal", include_str!("../../../themes/terminal.toml")),
    ("dark", include_str!("../../../themes/dark.toml")),
    ("light", include_str!("../../../themes/light.toml")),
    ("mono", include_str!("../../../themes/mono.toml")),
    ("high-contrast", include_str!("../../../themes/high-contrast.toml")),
    ("colorblind-dark", include_str!("../../../themes/colorblind-dark.toml")),
    ("colorblind-light", include_str!("../../../themes/colorblind-light.toml")),
    ("gruvbox", include_str!("../../../themes/gruvbox.toml")),
    ("nord", include_str!("../../../themes/nord.toml")),
    ("dracula", include_str!("../../../themes/dracula.toml")),
    ("solarized-light", include_str!("../../../themes/solarized-light.toml")),
];

/// How long a chain of `inherits` may be: a longer one goes in a circle.
const MAX_ANCESTORS: usize = 8;

macro_rules! roles {
    ($($(#[$doc:meta])* $role:ident = $section:literal $key:literal,)*) => {
        /// What a thing on the screen is, so that a theme can say how it looks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Role { $($(#[$doc])* $role,)* }

        impl Role {
            /// All roles.
            pub const ALL: &'static [Self] = &[$(Self::$role,)*];

            /// Section and key of the role in a theme file.
            pub fn place(self) -> (&'static str, &'static str) {
                match self { $(Self::$role => ($section, $key),)* }
            }
        }
    };
}

roles! {
    /// Ordinary text.
    Text = "ui" "text",
    /// Labels and what matters less.
    Dim = "ui" "dim",
    /// The background.
    Background = "ui" "bg",
    /// Borders.
    Border = "ui" "border",
    /// The border of the panel that keys go to.
    BorderFocus = "ui" "border_focus",
    /// Titles of panels.
    Title = "ui" "title",
    /// Heads of columns.
    Header = "ui" "header",
    /// The selected row.
    Selection = "ui" "selection",
    /// Text that a filter matched.
    Match = "ui" "match",
    /// Names of keys.
    Key = "ui" "key",
    /// The line at the top.
    Status = "ui" "status",
    /// The banner of a frozen view.
    Frozen = "ui" "frozen",
    /// Nothing is wrong.
    Ok = "state" "ok",
    /// Information: nothing is wrong.
    Info = "state" "info",
    /// A number is less than it seems.
    Warn = "state" "warn",
    /// Something is wrong.
    Error = "state" "error",
    /// There is no number.
    Missing = "state" "missing",
    /// A number from an event's own samples.
    Raw = "value" "raw",
    /// A corrected number.
    Corrected = "value" "corrected",
    /// The error band around a line.
    Band = "value" "ci_band",
    /// A line to compare with.
    Reference = "value" "reference",
    /// An event that ran at least 95 % of the time.
    RunFull = "run" "full",
    /// A run ratio of at least 75 %.
    RunPart = "run" "part",
    /// A lower run ratio.
    RunLow = "run" "low",
    /// A frame of a program; its background changes by hue where frames are told apart by module or name.
    FlameUser = "flame" "user",
    /// A frame of a library.
    FlameLibrary = "flame" "library",
    /// A frame of the kernel.
    FlameKernel = "flame" "kernel",
    /// A frame of code that was compiled while the program ran.
    FlameJit = "flame" "jit",
    /// A frame of which the module isn't known, a process, and what was merged.
    FlameUnknown = "flame" "unknown",
    /// A frame that the search matched.
    FlameMatch = "flame" "match",
    /// The left edge of a frame.
    FlameEdge = "flame" "edge",
}

/// How everything looks on a terminal of a certain depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Theme {
    name: String,
    light: bool,
    styles: Vec<Style>,
    gradient: Vec<Color>,
    series: Vec<Color>,
    hue_from: HueFrom,
    /// Backgrounds of frames, by hue.
    hues: Vec<Color>,
}

/// Why there is no such theme.
#[derive(Debug)]
pub enum FindError {
    /// No theme of this name; perhaps one like it was meant.
    Unknown {
        /// Name that isn't known.
        name: String,
        /// A similar name that is known.
        similar: Option<String>,
    },
    /// The file can't be read.
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's word.
        source: io::Error,
    },
}

impl Theme {
    /// The names of the themes in the program.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// A theme that comes with the program, by name.
    pub fn built_in(name: &str, depth: Depth) -> Option<Self> {
        let (name, text) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name)?;
        Some(Self::parse(name, text, depth).0)
    }

    /// A theme by its name or, if that has a `/` or ends in `.toml`, by its path. Names are looked
    /// for in `folders` first, so that a file can replace a theme of the program.
    ///
    /// # Errors
    /// Fails if there is no such theme, or its file can't be read.
    pub fn find(name: &str, folders: &[PathBuf], depth: Depth) -> Result<(Self, Vec<Complaint>), FindError> {
        if let Some(file) = Self::file(name, folders) {
            return Self::load(&file, depth);
        }
        match Self::built_in(name, depth) {
            Some(theme) => Ok((theme, Vec::new())),
            None => {
                let names = Self::all_names(folders);
                let similar = similar(name, names.iter().map(String::as_str)).map(str::to_owned);
                Err(FindError::Unknown { name: name.to_owned(), similar })
            }
        }
    }

    /// The names that [`find`](Self::find) knows: those of files in these folders, and those of the program.
    pub fn all_names(folders: &[PathBuf]) -> Vec<String> {
        let own = folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten());
        let own = own.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".toml")?.to_owned()));
        own.chain(Self::names().map(str::to_owned)).collect()
    }

    /// The file that [`find`](Self::find) reads for a name; `None` for a theme of the program.
    pub fn file(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
        if name.contains('/') || name.ends_with(".toml") {
            return Some(PathBuf::from(name));
        }
        folders.iter().map(|folder| folder.join(format!("{name}.toml"))).find(|file| file.is_file())
    }

    fn load(path: &Path, depth: Depth) -> Result<(Self, Vec<Complaint>), FindError> {
        let text =
            files::text(path, files::LONGEST).map_err(|source| FindError::Io { path: path.to_owned(), source })?;
        Ok(Self::parse(&path.to_string_lossy(), &text, depth))
    }

    /// A theme from the text of its file, and what is wrong with it.
    pub fn parse(file: &str, text: &str, depth: Depth) -> (Self, Vec<Complaint>) {
        let (sheet, mut complaints) = Sheet::parse(file, text);
        let mut sheets = vec![sheet];
        while let Some(parent) = sheets.last().and_then(|sheet| sheet.inherits.clone()) {
            match BUILT_IN.iter().find(|(name, _)| *name == parent.value) {
                Some((name, text)) if sheets.len() < MAX_ANCESTORS => sheets.push(Sheet::parse(name, text).0),
                _ => {
                    complaints.push(parent.complaint(file, text, similar_hint(&parent.value)));
                    break;
                }
            }
        }
        sheets.push(Sheet::parse(BUILT_IN[0].0, BUILT_IN[0].1).0);
        (Self::resolve(file, &sheets, depth), complaints)
    }

    /// Takes each role from the first sheet that names it; the last sheet names all.
    fn resolve(file: &str, sheets: &[Sheet], depth: Depth) -> Self {
        let stem = Path::new(file).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let paint = |role: Role| sheets.iter().find_map(|sheet| sheet.paint(role));
        let base = sheets.last();
        let styles = Role::ALL.iter().map(|&role| {
            let fallback = base.and_then(|sheet| sheet.paint(role));
            style(role, paint(role), fallback, depth)
        });
        let colors = |list: fn(&Sheet) -> &Vec<Vec<color::Choice>>| -> Vec<Color> {
            let own = sheets.iter().map(list).find(|colors| !colors.is_empty());
            let resolved: Option<Vec<_>> = own
                .and_then(|colors| colors.iter().map(|choices| color::resolve(choices, depth)).collect())
                .filter(|colors: &Vec<Color>| !colors.is_empty());
            let fall_back = || {
                let colors = base.map(list).map_or(&[][..], Vec::as_slice);
                colors.iter().filter_map(|choices| color::resolve(choices, depth)).collect()
            };
            resolved.unwrap_or_else(fall_back)
        };
        let styles: Vec<_> = styles.collect();
        let series = colors(|sheet| &sheet.series);
        let background = |role: Role| styles.get(role as usize).and_then(|style: &Style| style.bg);
        let hues = flame::hues(background(Role::FlameUser), background(Role::FlameKernel), &series);
        Self {
            name: stem,
            light: sheets.iter().find_map(|sheet| sheet.light).unwrap_or(false),
            styles,
            gradient: colors(|sheet| &sheet.gradient),
            series,
            hue_from: sheets.iter().find_map(|sheet| sheet.hue_from).unwrap_or_default(),
            hues,
        }
    }

    /// Name of the theme: that of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is made for a light background.
    pub fn is_light(&self) -> bool {
        self.light
    }

    /// Style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.styles.get(role as usize).copied().unwrap_or_default()
    }

    /// A colour for a height between 0 and 1.
    pub(super) fn height(&self, part: f64) -> Style {
        let last = self.gradient.len().saturating_sub(1);
        let place = part.clamp(0.0, 1.0) * last as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        match (self.gradient.get(low), self.gradient.get(high)) {
            (Some(&Color::Rgb(r, g, b)), Some(&Color::Rgb(r2, g2, b2))) => {
                let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * place.fract()).round() as u8;
                Style::new().fg(Color::Rgb(mix(r, r2), mix(g, g2), mix(b, b2)))
            }
            _ => self.gradient.get(place.round() as usize).map_or_else(Style::new, |&color| Style::new().fg(color)),
        }
    }

    /// What frames of programs and libraries take their hues from.
    pub(super) fn hue_from(&self) -> HueFrom {
        self.hue_from
    }

    /// A frame of a program or library, with this hue.
    pub(super) fn user_frame(&self, hue: Hue) -> Style {
        let style = self.style(Role::FlameUser);
        match (hue, style.bg) {
            (_, None) => style,
            (Hue::Hash(hash), _) => {
                let place = hash as usize % self.hues.len().max(1);
                self.hues.get(place).map_or(style, |&color| style.bg(color))
            }
            // The gradient goes under the same text, so it is only mixed into the background.
            (Hue::Heat(part), Some(cold)) => {
                let hot = self.style(Role::FlameKernel).bg.unwrap_or(cold);
                style.bg(flame::mixed(cold, hot, part))
            }
        }
    }

    /// A frame that differs between two sides by this part of all: more is nearer to the kernel's colour, less to the
    /// program's. A tenth of all is as near as it gets.
    pub(super) fn changed_frame(&self, part: f64) -> Style {
        let same = self.style(Role::FlameUnknown);
        let end = if part > 0.0 { Role::FlameKernel } else { Role::FlameUser };
        match (same.bg, self.style(end).bg) {
            (Some(cold), Some(hot)) => same.bg(flame::mixed(cold, hot, (part.abs() * 10.0).sqrt().min(1.0))),
            _ => same,
        }
    }

    /// The colour of one of several lines or bars.
    pub fn series(&self, index: usize) -> Style {
        let count = self.series.len().max(1);
        self.series.get(index % count).map_or_else(Style::new, |&color| Style::new().fg(color))
    }
}

fn similar_hint(name: &str) -> String {
    match similar(name, Theme::names()) {
        Some(similar) => format!("no theme \"{name}\" to inherit from; did you mean \"{similar}\"?"),
        None => format!("no theme \"{name}\" to inherit from, or it inherits from itself"),
    }
}

/// Without colours only modifiers are left: what would then look like any other text is reversed.
fn style(role: Role, paint: Option<&RoleStyle>, fallback: Option<&RoleStyle>, depth: Depth) -> Style {
    let Some(paint) = paint else { return Style::new() };
    let pick = |side: fn(&RoleStyle) -> &Vec<color::Choice>| {
        if side(paint).is_empty() {
            return None;
        }
        color::resolve(side(paint), depth).or_else(|| color::resolve(side(fallback?), depth))
    };
    let mut style = Style::new().add_modifier(paint.modifiers);
    style.fg = pick(|paint| &paint.fg);
    style.bg = pick(|paint| &paint.bg);
    let carried_by_background = matches!(role, Role::Selection | Role::Match | Role::Frozen | Role::FlameMatch);
    let visible = style.bg.is_some_and(|color| color != Color::Reset)
        || paint.modifiers.intersects(Modifier::REVERSED | Modifier::UNDERLINED);
    if carried_by_background && !visible {
        style = style.add_modifier(Modifier::REVERSED);
    }
    style
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, similar: Some(similar) } => {
                write!(f, "no theme '{}'; did you mean '{}'?", shown(name), shown(similar))
            }
            Self::Unknown { name, similar: None } => {
                let names: Vec<_> = Theme::names().collect();
                write!(f, "no theme '{}'; there are {}", shown(name), names.join(", "))
            }
            Self::Io { path, source } => write!(f, "theme {}: {source}", shown_path(path)),
        }
    }
}

impl std::error::Error for FindError {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

    use super::*;

    #[test]
    fn every_theme_resolves_every_role_at_every_depth() {
        for (name, text) in BUILT_IN {
            for depth in Depth::ALL {
                let (theme, complaints) = Theme::parse(name, text, depth);
                assert_eq!(complaints, [], "{name}");
                for &role in Role::ALL {
                    let style = theme.style(role);
                    let plain = style == Style::new() && !matches!(role, Role::Text | Role::Background | Role::Status);
                    assert!(depth == Depth::Mono || name == "mono" || !plain, "{name} {role:?} {depth:?}");
                }
                assert_eq!(theme.name(), name);
            }
        }
    }

    #[test]
    fn the_largest_number_does_not_look_like_a_warning() {
        for name in Theme::names().filter(|name| *name != "mono") {
            let theme = Theme::built_in(name, Depth::TrueColor).unwrap();
            assert_ne!(theme.height(1.0).fg, theme.style(Role::Warn).fg, "{name}");
        }
    }

    #[test]
    fn without_colours_no_colour_is_left_and_the_selection_shows() {
        for name in Theme::names() {
            let theme = Theme::built_in(name, Depth::Mono).unwrap();
            for &role in Role::ALL {
                assert_eq!((theme.style(role).fg, theme.style(role).bg), (None, None), "{name} {role:?}");
            }
            assert!(theme.style(Role::Selection).add_modifier.contains(Modifier::REVERSED), "{name}");
            assert_eq!((theme.height(0.5), theme.series(3)), (Style::new(), Style::new()));
        }
    }

    #[test]
    fn at_256_colours_nothing_is_mixed_and_at_16_nothing_is_numbered() {
        for name in Theme::names() {
            for &role in Role::ALL {
                let fg = |depth| Theme::built_in(name, depth).unwrap().style(role).fg;
                assert!(!matches!(fg(Depth::Indexed), Some(Color::Rgb(..))), "{name} {role:?}");
                assert!(!matches!(fg(Depth::Named), Some(Color::Rgb(..) | Color::Indexed(16..))), "{name} {role:?}");
            }
        }
    }

    fn rgb(color: Option<Color>) -> Option<[u8; 3]> {
        match color {
            Some(Color::Rgb(r, g, b)) => Some([r, g, b]),
            _ => None,
        }
    }

    /// The themes that bring their own background; the others use the terminal's, which nobody knows.
    fn painted() -> impl Iterator<Item = (&'static str, Theme, [u8; 3])> {
        Theme::names().filter_map(|name| {
            let theme = Theme::built_in(name, Depth::TrueColor).unwrap();
            rgb(theme.style(Role::Background).bg).map(|paper| (name, theme, paper))
        })
    }

    #[test]
    fn text_can_be_read_on_its_background() {
        assert!(painted().count() >= 8);
        for (name, theme, paper) in painted() {
            for &role in Role::ALL {
                let needed = match role {
                    Role::Text | Role::Title | Role::Header | Role::Key | Role::Dim => 4.5,
                    Role::Border | Role::Band | Role::Reference | Role::Background | Role::FlameEdge => continue,
                    _ => 3.0,
                };
                let Some(ink) = rgb(theme.style(role).fg) else { continue };
                let behind = rgb(theme.style(role).bg).unwrap_or(paper);
                let contrast = color::contrast(ink, behind);
                assert!(contrast >= needed, "{name} {role:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn frames_of_every_hue_can_be_read() {
        for (name, theme, _) in painted() {
            for hash in 0..12 {
                let style = theme.user_frame(Hue::Hash(hash));
                let contrast = color::contrast(rgb(style.fg).unwrap(), rgb(style.bg).unwrap());
                assert!(contrast >= 4.5, "{name} hue {hash}: {contrast:.2}");
            }
            for role in [Role::FlameUser, Role::FlameKernel, Role::FlameJit, Role::FlameUnknown, Role::FlameMatch] {
                let style = theme.style(role);
                let contrast = color::contrast(rgb(style.fg).unwrap(), rgb(style.bg).unwrap());
                assert!(contrast >= 4.5, "{name} {role:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn states_can_be_read_on_a_selected_row() {
        for (name, theme, _) in painted() {
            let Some(behind) = rgb(theme.style(Role::Selection).bg) else { continue };
            for role in [Role::Text, Role::Ok, Role::Warn, Role::Error, Role::Corrected, Role::Raw] {
                let contrast = color::contrast(rgb(theme.style(role).fg).unwrap(), behind);
                assert!(contrast >= 3.0, "{name} {role:?}: {contrast:.2}");
            }
        }
    }

    #[test]
    fn good_and_bad_differ_for_eyes_without_green_cones() {
        for (name, theme, _) in painted() {
            let seen = |role| color::without_green_cones(rgb(theme.style(role).fg).unwrap());
            for (one, other) in [(Role::Ok, Role::Warn), (Role::Ok, Role::Error), (Role::Warn, Role::Error)] {
                let distance = color::distance(seen(one), seen(other));
                assert!(distance >= 0.09, "{name} {one:?} {other:?}: {distance:.3}");
            }
        }
    }

    #[test]
    fn a_name_finds_a_file_first_and_a_typo_a_suggestion() {
        let folder = std::env::temp_dir().join(format!("perfprop-themes-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("dark.toml"), "[state]\nwarn = \"#123456\"\n").unwrap();
        let (theme, complaints) = Theme::find("dark", std::slice::from_ref(&folder), Depth::TrueColor).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(complaints, []);
        assert_eq!(theme.style(Role::Warn).fg, Some(Color::Rgb(0x12, 0x34, 0x56)));
        let error = Theme::find("drak", &[], Depth::Mono).unwrap_err();
        assert_eq!(error.to_string(), "no theme 'drak'; did you mean 'dark'?");
        assert!(matches!(Theme::find("./none.toml", &[], Depth::Mono), Err(FindError::Io { .. })));
    }

    #[test]
    fn missing_roles_are_inherited() {
        let text = "[meta]\ninherits = \"dark\"\n[state]\nok = \"blue\"\n";
        let (theme, complaints) = Theme::parse("mine.toml", text, Depth::TrueColor);
        let dark = Theme::built_in("dark", Depth::TrueColor).unwrap();
        assert_eq!(complaints, []);
        assert_eq!(theme.style(Role::Ok).fg, Some(Color::Blue));
        assert_eq!(theme.style(Role::Warn), dark.style(Role::Warn));
        assert_eq!(theme.series(2), dark.series(2));
    }

    #[test]
    fn an_unknown_parent_is_told_and_terminal_takes_its_place() {
        let (theme, complaints) = Theme::parse("mine.toml", "[meta]\ninherits = \"drak\"\n", Depth::TrueColor);
        let words: Vec<_> = complaints.iter().map(ToString::to_string).collect();
        assert_eq!(words, ["mine.toml:2:12: no theme \"drak\" to inherit from; did you mean \"dark\"?"]);
        let terminal = Theme::built_in("terminal", Depth::TrueColor).unwrap();
        assert_eq!(theme.style(Role::Warn), terminal.style(Role::Warn));
    }
}
