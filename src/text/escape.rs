//! Text from outside in, text that a terminal only shows out.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with control characters made visible: `\n`, `\t`, `\x1b`, `\u{202e}`.
///
/// Besides C0 and C1 controls these are the characters that turn the direction of text or that
/// have no width of their own, which could make one name look like another.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ if !is_hidden(character) => out.push(character),
            _ if character.is_ascii() => {
                // Writing to a string can't fail.
                let _ = write!(out, "\\x{:02x}", u32::from(character));
            }
            _ => out.extend(character.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(shown("a\x1b[31mb\n"), "a\\x1b[31mb\\n");
        assert_eq!(shown("\u{9b}x\u{202e}"), "\\u{9b}x\\u{202e}");
        assert_eq!(shown("L2_RQSTS:MISS µ"), "L2_RQSTS:MISS µ");
        assert_eq!(shown(""), "");
    }

    proptest! {
        #[test]
        fn what_is_shown_holds_no_control_character(text in any::<String>()) {
            prop_assert!(!shown(&text).contains(char::is_control));
        }
    }
}
