//! Draws pictures of a screen: as text, with colours, or as SVG.
//!
//! The same monitor always gives the same bytes: there is no clock, no host and no chance in them.

use std::fmt;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::model::{EventLine, LoopCommand, Message, ScreenModel, SourceState, update};
use super::options::ScreenOptions;
use super::others::Others;
use super::outline::Outline;
use super::playback::Sight;
use super::screen::Screen;
use super::typed::parse_keys;
use super::view;
use crate::files::PartialFile;
use crate::monitor::Monitor;
use crate::plan::RowIndex;
use crate::profile::Tree;
use crate::recording::TimeRange;
use crate::session::OutputLine;
use crate::sources::{RecordedRound, Round};
use crate::stacks::{FunctionLines, ProfileSpan, StackQuality};

mod format;
mod svg;

pub use format::PictureFormat;

/// What to take a picture of.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Width and height in cells.
    pub size: (u16, u16),
    /// Format of the picture.
    pub format: PictureFormat,
    /// The selected event; the one that screens begin with where `None`.
    pub event: Option<RowIndex>,
    /// Lines that the command wrote.
    pub output: Vec<OutputLine>,
    /// The newest rounds that the monitor has taken, for what shows them one by one.
    pub rounds: Vec<Round>,
    /// What was sampled, and what went missing of it.
    pub profile: Option<(Tree, StackQuality)>,
    /// The whole recording, for the time line; and the range of it that the monitor has, if that isn't all up to now.
    pub outline: Option<Outline>,
    /// That range.
    pub range: Option<TimeRange>,
    /// Keys that are pressed before it is taken, as [`Scene::keys`] presses them.
    pub keys: String,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            size: (80, 24),
            format: PictureFormat::default(),
            event: None,
            output: Vec::new(),
            rounds: Vec::new(),
            profile: None,
            outline: None,
            range: None,
            keys: String::new(),
        }
    }
}

/// Takes a picture of the screen that `options` name.
pub fn picture(monitor: Monitor, wanted: &Picture, options: &ScreenOptions) -> String {
    Scene::new(monitor, None, options).picture(options.screen, wanted)
}

/// What pictures are taken of: a monitor, and what it is compared with.
pub struct Scene {
    model: ScreenModel,
}

impl fmt::Debug for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scene").finish_non_exhaustive()
    }
}

impl Scene {
    /// A monitor, and recordings to compare with.
    pub fn new(monitor: Monitor, others: Option<Others>, options: &ScreenOptions) -> Self {
        Self { model: ScreenModel::new(monitor, options).with_others(others) }
    }

    /// Presses keys as [`TerminalScript::keys`](super::TerminalScript::keys) does; what they ask of the loop isn't
    /// done.
    pub fn keys(&mut self, keys: &str) {
        for key in parse_keys(keys) {
            if let Some(LoopCommand::ProfileSpan(_)) = update(&mut self.model, Message::Key(key)) {
                // The profile stays that of the whole run.
                self.model.profile_span = ProfileSpan::Run;
            }
        }
    }

    /// Takes a picture of a screen. The selected event stays selected where none is given.
    pub fn picture(&mut self, screen: Screen, wanted: &Picture) -> String {
        self.set(screen, wanted);
        drawn(&self.model, wanted.format)
    }

    /// Takes a picture of the source of the function that Profile opens on. `lines_of` gives what an event sampled of a
    /// function, by lines, from the places of both in the profile.
    pub fn source_picture(&mut self, wanted: &Picture, lines_of: impl FnOnce(usize, usize) -> FunctionLines) -> String {
        self.set(Screen::Profile, wanted);
        if let Some(LoopCommand::ShowSource(function, event)) = self.model.ask_for_source() {
            let lines = lines_of(function as usize, event);
            let state = SourceState::read(self.model.monitor.header(), function, event, lines);
            let _ = update(&mut self.model, Message::Source(Box::new(state)));
        }
        drawn(&self.model, wanted.format)
    }

    fn set(&mut self, screen: Screen, wanted: &Picture) {
        let (width, height) = wanted.size;
        let model = &mut self.model;
        model.outline.clone_from(&wanted.outline);
        if let (Some(range), Some(playback)) = (wanted.range, &mut model.playback) {
            (playback.sight, playback.playing) = (Sight::Range(range), false);
        }
        model.screen = screen;
        (model.output, model.rounds) = Default::default();
        let _ = update(model, Message::Resized(width, height));
        for line in &wanted.output {
            let _ = update(model, Message::Output(line.clone()));
        }
        wanted.rounds.iter().for_each(|round| model.rounds.push(RecordedRound { round: round.clone(), lost: 0 }));
        model.rounds.take().for_each(drop);
        let line = wanted.event.map(EventLine::Event);
        if let Some(line) = line.filter(|line| model.events.order.contains(line)) {
            model.events.select(line);
        }
        if let Some((tree, quality)) = &wanted.profile {
            model.take_profile(tree, quality);
        }
        self.keys(&wanted.keys);
    }
}

/// What a model shows now.
fn drawn(model: &ScreenModel, format: PictureFormat) -> String {
    let area = Rect::new(0, 0, model.size.0, model.size.1);
    let mut buffer = Buffer::empty(area);
    view::draw_on(model, area, &mut buffer);
    match format {
        PictureFormat::Text => text(&buffer),
        PictureFormat::Ansi => ansi(&buffer),
        PictureFormat::Svg => svg::svg(&buffer, model.theme.is_light()),
    }
}

/// Writes what a model shows to a new file in `folder`: `perfprop-events.svg`, or
/// `perfprop-events-1.svg` and so on.
///
/// # Errors
/// Returns the operating system's error.
pub(super) fn export(model: &ScreenModel, format: PictureFormat, folder: &Path) -> io::Result<PathBuf> {
    let ending = match format {
        PictureFormat::Text => "txt",
        PictureFormat::Ansi => "ansi",
        PictureFormat::Svg => "svg",
    };
    let mut part = PartialFile::create_new(folder, &format!("perfprop-{}", model.screen.word()), ending)?;
    part.write_all(drawn(model, format).as_bytes())?;
    part.put()
}

/// The characters of a buffer, without spaces at the ends of lines.
pub(super) fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in rows(buffer) {
        let line: String = row.iter().map(|(symbol, _)| *symbol).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Rows of glyphs with their styles; the cell behind a wide glyph is not a glyph.
fn rows(buffer: &Buffer) -> impl Iterator<Item = Vec<(&str, Style)>> {
    let width = usize::from(buffer.area.width).max(1);
    buffer.content.chunks(width).map(|row| {
        let mut glyphs = Vec::with_capacity(row.len());
        let mut skip = 0usize;
        for cell in row {
            if skip > 0 {
                skip -= 1;
                continue;
            }
            skip = super::text::width(cell.symbol()).saturating_sub(1);
            glyphs.push((cell.symbol(), cell.style()));
        }
        glyphs
    })
}

fn ansi(buffer: &Buffer) -> String {
    let mut text = String::new();
    for row in rows(buffer) {
        let mut last = Style::reset();
        for (symbol, style) in row {
            if style != last {
                text.push_str(&sequence(style));
                last = style;
            }
            text.push_str(symbol);
        }
        text.push_str("\x1b[0m\n");
    }
    text
}

/// The escape sequence for a style (ECMA-48, SGR).
fn sequence(style: Style) -> String {
    let mut codes = vec!["0".to_owned()];
    const MODIFIERS: [(Modifier, &str); 5] = [
        (Modifier::BOLD, "1"),
        (Modifier::DIM, "2"),
        (Modifier::ITALIC, "3"),
        (Modifier::UNDERLINED, "4"),
        (Modifier::REVERSED, "7"),
    ];
    for (modifier, code) in MODIFIERS {
        if style.add_modifier.contains(modifier) {
            codes.push(code.to_owned());
        }
    }
    codes.extend(style.fg.and_then(|color| color_code(color, 30)));
    codes.extend(style.bg.and_then(|color| color_code(color, 40)));
    format!("\x1b[{}m", codes.join(";"))
}

fn color_code(color: Color, base: u8) -> Option<String> {
    if let Color::Rgb(r, g, b) = color {
        return Some(format!("{};2;{r};{g};{b}", base + 8));
    }
    match index(color)? {
        index @ 0..=7 if !matches!(color, Color::Indexed(_)) => Some((base + index).to_string()),
        index @ 8..=15 if !matches!(color, Color::Indexed(_)) => Some((base + 60 + index - 8).to_string()),
        index => Some(format!("{};5;{index}", base + 8)),
    }
}

/// The place of a colour in the palette of 256; `None` for the terminal's own and mixed ones.
fn index(color: Color) -> Option<u8> {
    const NAMED: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    match color {
        Color::Indexed(index) => Some(index),
        named => NAMED.iter().position(|one| *one == named).and_then(|place| u8::try_from(place).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_keeps_wide_characters_in_place() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 2));
        buffer.set_string(0, 0, "a漢b", Style::new());
        assert_eq!(text(&buffer), "a漢b\n\n");
    }

    #[test]
    fn colours_become_sequences() {
        let style = Style::new().fg(Color::Rgb(1, 2, 3)).bg(Color::LightRed).add_modifier(Modifier::BOLD);
        assert_eq!(sequence(style), "\x1b[0;1;38;2;1;2;3;101m");
        assert_eq!(sequence(Style::new().fg(Color::Cyan).bg(Color::Indexed(3))), "\x1b[0;36;48;5;3m");
        assert_eq!(sequence(Style::new().fg(Color::Reset)), "\x1b[0m");
    }
}
