//! Edits a line that is being typed.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key did to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEdit {
    /// It is still being typed.
    Typed,
    Entered,
    GivenUp,
}

/// Edits a line of at most so many characters, by the keys of shells.
pub(super) fn edit(line: &mut String, key: KeyEvent, most: usize) -> LineEdit {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => return LineEdit::Entered,
        KeyCode::Esc => return LineEdit::GivenUp,
        KeyCode::Char('c') if control => return LineEdit::GivenUp,
        KeyCode::Char('u') if control => line.clear(),
        KeyCode::Char('w') if control => {
            let end = line.trim_end().rfind(' ').map_or(0, |space| space + 1);
            line.truncate(end);
        }
        KeyCode::Backspace => {
            line.pop();
        }
        KeyCode::Char(c) if !control && line.chars().count() < most => line.push(c),
        _ => {}
    }
    LineEdit::Typed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::typed::parse_keys;

    #[test]
    fn lines_are_edited_as_in_a_shell() {
        let typed = |keys: &str| {
            let mut line = String::new();
            let last = parse_keys(keys).into_iter().map(|key| edit(&mut line, key, 9)).last();
            (line, last)
        };
        assert_eq!(typed("ab c<Backspace>d").0, "ab d");
        assert_eq!(typed("ab cd^W").0, "ab ");
        assert_eq!(typed("ab cd^Uxy^A").0, "xy");
        assert_eq!(typed("0123456789").0, "012345678");
        for (keys, done) in [("a<Enter>", LineEdit::Entered), ("a<Esc>", LineEdit::GivenUp), ("a^C", LineEdit::GivenUp)]
        {
            assert_eq!(typed(keys), ("a".into(), Some(done)));
        }
    }
}
