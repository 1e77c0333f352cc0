//! Replaces glyphs that the terminal lacks by ASCII.
//!
//! Views draw with the Unicode glyphs named here. Where a terminal can't show them, each is
//! replaced by the one ASCII character that stands for it, after drawing and in one place. `±` alone takes two, of
//! which one is a blank beside it.

use std::borrow::Cow;

use ratatui::buffer::Buffer;

/// Glyphs that carry a state, always beside its word.
pub(super) const OK: &str = "●";
pub(super) const WAITING: &str = "○";
pub(super) const INFO: &str = "i";
pub(super) const WARN: &str = "▲";
pub(super) const ERROR: &str = "✖";
pub(super) const MISSING: &str = "—";
pub(super) const FROZEN: &str = "❚❚";
pub(super) const ENDED: &str = "■";
pub(super) const REPLAY: &str = "▶";
/// The mark in front of the selected row.
pub(super) const CURSOR: &str = "▶";
/// Sorted upwards, and downwards.
pub(super) const UP: &str = "↑";
pub(super) const DOWN: &str = "↓";
/// Two numbers that are equal to the last digit shown.
pub(super) const SAME: &str = "≈";
/// The mean of some runs, and a run that lies where the mean does.
pub(super) const MEAN: &str = "┃";
pub(super) const RUN_AND_MEAN: &str = "◆";
/// On a time line: a change of level, and a time that the user marked.
pub(super) const CHANGE: &str = "◆";
pub(super) const MARK: &str = "▼";
/// Parts of a thread's time: on a CPU, ready for one, blocked.
pub(super) const ON_CPU: &str = "█";
pub(super) const READY: &str = "▒";
pub(super) const BLOCKED: &str = "░";
/// Heights of a sparkline, lowest first.
pub(super) const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Eighths of a horizontal bar, from one to eight.
pub(super) const EIGHTHS: [&str; 8] = ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];

/// What each glyph becomes.
const STAND_INS: &[(&str, &str)] = &[
    ("─", "-"),
    ("━", "="),
    ("┃", "|"),
    ("◆", "#"),
    ("│", "|"),
    ("╭", "+"),
    ("╮", "+"),
    ("╰", "+"),
    ("╯", "+"),
    ("├", "+"),
    ("┤", "+"),
    ("┬", "+"),
    ("┴", "+"),
    ("┼", "+"),
    ("└", "+"),
    ("┄", "-"),
    ("┊", ":"),
    ("╎", "|"),
    ("●", "*"),
    ("○", "o"),
    ("▲", "!"),
    ("▼", "v"),
    ("✖", "X"),
    ("—", "-"),
    ("❚", "|"),
    ("■", "#"),
    ("▶", ">"),
    ("◀", "<"),
    ("╳", "X"),
    ("↑", "^"),
    ("↓", "v"),
    ("←", "<"),
    ("→", ">"),
    ("…", "~"),
    ("σ", "s"),
    ("×", "x"),
    ("−", "-"),
    ("–", "-"),
    ("·", " "),
    ("µ", "u"),
    ("²", "2"),
    ("≈", "="),
    ("░", "."),
    ("▒", ":"),
    ("▁", "_"),
    ("▂", "."),
    ("▃", ":"),
    ("▄", "-"),
    ("▅", "="),
    ("▆", "+"),
    ("▇", "*"),
    ("█", "#"),
    ("▉", "#"),
    ("▊", "#"),
    ("▋", "#"),
    ("▌", "="),
    ("▍", "-"),
    ("▎", "-"),
    ("▏", "|"),
];

/// Which glyphs a terminal can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GlyphSet {
    /// All Unicode glyphs named here.
    #[default]
    Unicode,
    /// ASCII only.
    Ascii,
}

impl GlyphSet {
    /// What the environment promises: the first of `LC_ALL`, `LC_CTYPE`, `LANG` that is set and
    /// not empty must name UTF-8, and `TERM` must not be a console or nothing at all.
    pub fn detect(lc_all: Option<&str>, lc_ctype: Option<&str>, lang: Option<&str>, term: Option<&str>) -> Self {
        let locale = [lc_all, lc_ctype, lang].into_iter().flatten().find(|value| !value.is_empty());
        let locale = locale.unwrap_or("C").to_ascii_lowercase();
        let utf8 = locale.contains("utf-8") || locale.contains("utf8");
        let plain = matches!(term, None | Some("" | "dumb" | "linux" | "vt100" | "vt220"));
        if utf8 && !plain { Self::Unicode } else { Self::Ascii }
    }

    /// What a locale says of texts: ASCII where one is set that isn't UTF-8, such as `C`. Without any, terminals of
    /// today show UTF-8.
    pub fn of_locale(lc_all: Option<&str>, lc_ctype: Option<&str>, lang: Option<&str>) -> Self {
        match [lc_all, lc_ctype, lang].into_iter().flatten().find(|value| !value.is_empty()) {
            None => Self::Unicode,
            locale => Self::detect(locale, None, None, Some("xterm")),
        }
    }

    /// A text with its glyphs replaced; other letters, which come from outside, stay.
    pub fn text(self, text: &str) -> Cow<'_, str> {
        if self == Self::Unicode || text.is_ascii() {
            return text.into();
        }
        let known = |c: char| STAND_INS.iter().find(|(unicode, _)| unicode.chars().eq([c]));
        let lines = text.split_inclusive('\n').map(|line| {
            let mut line: Vec<_> = line.chars().collect();
            let mut at = 0;
            while let Some(place) = line[at..].iter().position(|c| *c == '±').map(|place| at + place) {
                let plus = room_for_two(&mut line, place, |c| Filling::of(&c.to_string())).unwrap_or_else(|| {
                    line.insert(place, '+');
                    place
                });
                (line[plus], line[plus + 1]) = ('+', '-');
                at = plus + 2;
            }
            line
        });
        let replaced = |c: char| known(c).map_or_else(|| c.to_string(), |(_, ascii)| (*ascii).to_owned());
        lines.flatten().map(replaced).collect()
    }

    /// Replaces what the terminal can't show.
    pub(super) fn apply(self, buffer: &mut Buffer) {
        if self == Self::Unicode {
            return;
        }
        for line in buffer.content.chunks_mut(usize::from(buffer.area.width).max(1)) {
            let mut at = 0;
            while let Some(place) = line[at..].iter().position(|cell| cell.symbol() == PLUS_MINUS) {
                let place = at + place;
                // Within borders the last blank goes before a sign that means another thing.
                let before = place.checked_sub(1).filter(|&before| line[before].symbol() == " ");
                match room_for_two(line, place, |cell| Filling::of(cell.symbol())).or(before) {
                    Some(plus) => {
                        line[plus].set_symbol("+");
                        line[plus + 1].set_symbol("-");
                        let style = line[place].style();
                        line[plus].set_style(style);
                        line[plus + 1].set_style(style);
                        at = plus + 2;
                    }
                    None => {
                        line[place].set_symbol("~");
                        at = place + 1;
                    }
                }
            }
            for cell in line.iter_mut().filter(|cell| !cell.symbol().is_ascii()) {
                cell.set_symbol(stand_in(cell.symbol()));
            }
        }
    }
}

/// What `±` is drawn as; perf prints `+-` for it.
const PLUS_MINUS: &str = "±";

/// What a cell of a line holds, for those that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    Blank,
    /// What stands below and above others of its kind.
    Fixed,
    Text,
}

impl Filling {
    fn of(symbol: &str) -> Self {
        match symbol {
            " " => Self::Blank,
            "│" | "┤" | "├" | "╮" | "╯" | "╎" | "┊" => Self::Fixed,
            _ => Self::Text,
        }
    }
}

/// Makes room for two characters where there is one: two blanks before it give one, or two behind it, up to which the
/// text moves. Gives the place of the first; nothing where there is no room, but for a blank that parts it from what is
/// before it.
fn room_for_two<T>(line: &mut [T], at: usize, filling: impl Fn(&T) -> Filling) -> Option<usize> {
    let is_blank = |place: Option<usize>| place.and_then(|place| line.get(place)).map(&filling) == Some(Filling::Blank);
    if is_blank(at.checked_sub(1)) && is_blank(at.checked_sub(2)) {
        return Some(at - 1);
    }
    let movable = line[at + 1..].iter().take_while(|cell| filling(cell) != Filling::Fixed).count();
    let gap = (at + 1..at + movable).find(|&place| is_blank(Some(place)) && is_blank(Some(place + 1)));
    line[at + 1..=gap?].rotate_right(1);
    Some(at)
}

fn stand_in(glyph: &str) -> &'static str {
    if let Some((_, ascii)) = STAND_INS.iter().find(|(unicode, _)| *unicode == glyph) {
        return ascii;
    }
    match glyph.chars().next().map(u32::from) {
        Some(code @ 0x2800..=0x28ff) => braille_stand_in(code - 0x2800),
        _ => "?",
    }
}

/// The upper half of a braille cell is an apostrophe, the lower a dot, both a colon.
fn braille_stand_in(dots: u32) -> &'static str {
    const UPPER: u32 = 0x01 | 0x02 | 0x08 | 0x10;
    match (dots & UPPER != 0, dots & !UPPER != 0) {
        (true, true) => ":",
        (true, false) => "'",
        (false, true) => ".",
        (false, false) => " ",
    }
}

#[cfg(test)]
mod tests {
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn the_environment_decides() {
        use GlyphSet::{Ascii, Unicode};
        let xterm = Some("xterm-256color");
        assert_eq!(GlyphSet::detect(None, None, Some("en_US.UTF-8"), xterm), Unicode);
        assert_eq!(GlyphSet::detect(Some("C"), None, Some("en_US.UTF-8"), xterm), Ascii);
        assert_eq!(GlyphSet::detect(Some(""), Some("C.utf8"), None, xterm), Unicode);
        assert_eq!(GlyphSet::detect(None, None, None, xterm), Ascii);
        assert_eq!(GlyphSet::detect(None, None, Some("de_DE.UTF-8"), Some("linux")), Ascii);
        assert_eq!(GlyphSet::detect(None, None, Some("de_DE.UTF-8"), Some("dumb")), Ascii);
    }

    #[test]
    fn texts_are_ascii_where_a_locale_says_so() {
        use GlyphSet::{Ascii, Unicode};
        let of = GlyphSet::of_locale;
        assert_eq!((of(None, None, None), of(None, None, Some("C.UTF-8"))), (Unicode, Unicode));
        assert_eq!((of(Some("C"), None, Some("C.UTF-8")), of(Some(""), Some("POSIX"), None)), (Ascii, Ascii));
        assert_eq!(Ascii.text("1.2 ±3% ▲ — café"), "1.2 +-3% ! - café");
        assert_eq!(Ascii.text("a  ±3%  b\n± ≈\n±1%  c"), "a +-3%  b\n+- =\n+-1% c");
        assert_eq!(Unicode.text("±3%"), "±3%");
    }

    #[test]
    fn ascii_screens_are_ascii() {
        let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, 12, 1));
        buffer.set_string(0, 0, "╭─●▲✖±⡇⣿⠉漢x", Style::new());
        GlyphSet::Ascii.apply(&mut buffer);
        let line: String = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(line, "+-*!X~::'? x");
    }

    #[test]
    fn plus_minus_takes_a_blank_beside_it() {
        let drawn = |text: &str| {
            let width = text.chars().count() as u16;
            let mut buffer = Buffer::empty(ratatui::layout::Rect::new(0, 0, width, 1));
            buffer.set_string(0, 0, text, Style::new());
            GlyphSet::Ascii.apply(&mut buffer);
            buffer.content.iter().map(|cell| cell.symbol().to_owned()).collect::<String>()
        };
        assert_eq!(drawn("│ 1.2G   ±3.1%  ab  ±2% │"), "| 1.2G  +-3.1%  ab +-2% |");
        assert_eq!(drawn("│±MEAN   the same│"), "|+-MEAN  the same|");
        assert_eq!(drawn("│ 1.2G ±3.1% │  a"), "| 1.2G+-3.1% |  a", "a border stays where it is");
        assert_eq!(drawn("ab±3"), "ab~3");
    }

    #[test]
    fn every_level_has_a_stand_in() {
        for glyph in LEVELS.iter().chain(&EIGHTHS) {
            assert_ne!(stand_in(glyph), "?", "{glyph}");
        }
    }
}
