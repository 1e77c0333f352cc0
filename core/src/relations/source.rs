//! Locates a byte offset in a text: its line and column, and the line's text for people.

use super::TextPlace;
use super::diagnostic::Excerpt;
use crate::names::{is_hidden, push_shown};

/// How many bytes lie between two offsets whose place is kept.
const STEP: usize = 4096;

/// How much of a line is shown, in columns of the terminal, and how much of that at least from the
/// caret on.
const SHOWN: usize = 96;
const SHOWN_AFTER: usize = 32;

/// The text of a file, in which places can be found without reading it from the beginning.
pub(super) struct SourceText<'a> {
    file: &'a str,
    text: &'a str,
    /// Offset, line and column of a character about every `STEP` bytes.
    marks: Vec<(usize, u32, u32)>,
}

impl<'a> SourceText<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let mut source = Self { file, text, marks: vec![(0, 1, 1)] };
        while let Some(&(from, line, column)) = source.marks.last()
            && from + STEP < text.len()
        {
            let to = boundary(text, from + STEP);
            source.marks.push(advance(&text[from..to], to, line, column));
        }
        source
    }

    /// Where the character at `offset` is.
    pub(super) fn place(&self, offset: usize) -> TextPlace {
        let offset = boundary(self.text, offset);
        let next = self.marks.partition_point(|(at, ..)| *at <= offset);
        let (from, line, column) = self.marks[next.saturating_sub(1)];
        let (_, line, column) = advance(&self.text[from..offset], offset, line, column);
        TextPlace { file: self.file.to_owned(), line, column }
    }

    /// The line around `offset`, cut to the width of a terminal.
    pub(super) fn excerpt(&self, offset: usize, label: &str) -> Excerpt {
        let offset = boundary(self.text, offset);
        let before = self.text[..offset].rsplit('\n').next().unwrap_or_default();
        let after = self.text[offset..].split('\n').next().unwrap_or_default();
        let after = after.strip_suffix('\r').unwrap_or(after);

        // What is short on one side of the caret leaves its room to the other.
        let least_after = fitting(after.chars(), SHOWN_AFTER).width;
        let before = fitting(before.chars().rev(), SHOWN - least_after);
        let after = fitting(after.chars(), SHOWN - before.width);
        let mut line = String::from(if before.is_cut { "..." } else { "" });
        let caret = line.len() + before.width;
        line.extend(before.cells.into_iter().rev());
        line.extend(after.cells);
        line.push_str(if after.is_cut { "..." } else { "" });
        Excerpt { line, caret, label: label.to_owned() }
    }
}

fn advance(text: &str, to: usize, line: u32, column: u32) -> (usize, u32, u32) {
    text.chars().fold((to, line, column), |(to, line, column), c| match c {
        '\n' => (to, line.saturating_add(1), 1),
        _ => (to, line, column.saturating_add(1)),
    })
}

/// The last place at or before `offset` where a character begins or the text ends.
fn boundary(text: &str, offset: usize) -> usize {
    let offset = offset.min(text.len());
    (0..=offset).rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default()
}

/// Characters as they are shown, beginning at the caret.
struct Fitting {
    cells: Vec<String>,
    width: usize,
    /// Whether there was no room for some.
    is_cut: bool,
}

/// As many characters as fit into `room` columns.
fn fitting(characters: impl Iterator<Item = char>, room: usize) -> Fitting {
    let mut fitting = Fitting { cells: Vec::new(), width: 0, is_cut: false };
    for c in characters {
        let (cell, width) = cell(c);
        // Characters without a width would fit for ever.
        if fitting.width + width > room || fitting.cells.len() >= 4 * SHOWN {
            fitting.is_cut = true;
            break;
        }
        fitting.width += width;
        fitting.cells.push(cell);
    }
    fitting
}

/// What is shown for `c`, and how many columns a terminal needs for it.
fn cell(c: char) -> (String, usize) {
    if c == '\t' {
        return ("    ".to_owned(), 4);
    }
    let mut cell = String::new();
    push_shown(&mut cell, c);
    let width = match c {
        _ if is_hidden(c) => cell.len(),
        '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}' | '\u{fe00}'..='\u{fe0f}' => 0,
        _ if is_wide(c) => 2,
        _ => 1,
    };
    (cell, width)
}

/// Whether terminals draw `c` over two columns: the blocks of Unicode's East Asian Width that are
/// wide or full-width as a whole, and the pictures.
fn is_wide(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{303e}' | '\u{3041}'..='\u{a4cf}')
        || matches!(c, '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
        || matches!(c, '\u{fe30}'..='\u{fe6f}' | '\u{ff01}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}')
        || matches!(c, '\u{1f300}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}')
        || matches!(c, '\u{1f900}'..='\u{1faff}' | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let source = SourceText::new("f", "ab\né\tx");
        let at = |offset| {
            let place = source.place(offset);
            (place.line, place.column)
        };
        assert_eq!([at(0), at(2), at(3), at(5), at(6), at(99)], [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (2, 4)]);
    }

    #[test]
    fn places_far_into_a_long_line_are_right() {
        let text = format!("\n{}x", "é".repeat(3 * STEP));
        let place = SourceText::new("f", &text).place(text.len() - 1);
        assert_eq!((place.line, place.column), (2, 3 * STEP as u32 + 1));
    }

    #[test]
    fn the_caret_stands_under_its_character() {
        let text = "\t\u{1b}漢e\u{301}x";
        let excerpt = SourceText::new("f", text).excerpt(text.len() - 1, "");
        assert_eq!(excerpt.line, "    \\x1b漢e\u{301}x");
        assert_eq!(excerpt.caret, 4 + 4 + 2 + 1);
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let text = format!("{}X{}", "a".repeat(1000), "b".repeat(1000));
        let excerpt = SourceText::new("f", &text).excerpt(1000, "");
        assert_eq!(excerpt.line.chars().nth(excerpt.caret), Some('X'));
        assert!(excerpt.line.starts_with("...a") && excerpt.line.ends_with("b..."));
        assert!(excerpt.line.len() <= SHOWN + 6);
    }
}
