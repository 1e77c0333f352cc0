//! Parses the keys that a script or a picture presses.

use std::fmt;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Keys that are no characters, by the names that stand in `<>`: help's names, and longer ones.
const NAMES: [(&str, KeyCode); 17] = [
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("BackTab", KeyCode::BackTab),
    ("Space", KeyCode::Char(' ')),
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PageUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("PageDown", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Backspace", KeyCode::Backspace),
];

/// A name in `<>` that no key has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    name: String,
}

impl fmt::Display for UnknownKey {
    /// `no key is called <Foo>; there are <Enter>, ..., <F1> to <F12>, characters, and ^C`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = NAMES.map(|(name, _)| format!("<{name}>")).join(", ");
        write!(f, "no key is called <{}>; there are {names}, <F1> to <F12>, characters, and ^C", self.name)
    }
}

impl std::error::Error for UnknownKey {}

/// Keys as a picture or a script presses them, if each that stands in `<>` is one. What is typed after `/` may be any
/// text.
///
/// # Errors
/// Names the first that isn't.
pub fn checked_keys(keys: &str) -> Result<String, UnknownKey> {
    TypedKeys::new(keys).find_map(Result::err).map_or_else(|| Ok(keys.to_owned()), Err)
}

/// Each character is a key; `^C` is Control-C, and `<Enter>` is that key. After `/`, where text is typed, `^` is a
/// character until `<Enter>` or `<Esc>`. A name that no key has is no key.
pub(super) fn parse_keys(keys: &str) -> Vec<KeyEvent> {
    TypedKeys::new(keys).filter_map(Result::ok).collect()
}

/// Keys one by one.
struct TypedKeys<'a> {
    rest: &'a str,
    /// Whether a filter or a search is being typed.
    is_text: bool,
}

impl<'a> TypedKeys<'a> {
    fn new(rest: &'a str) -> Self {
        Self { rest, is_text: false }
    }

    /// The key at the beginning, and its length. In text, an unknown name is text.
    fn first(&self) -> Option<(Result<KeyEvent, UnknownKey>, usize)> {
        let first = self.rest.chars().next()?;
        let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
        if let Some(name) = name_of(self.rest) {
            match code_of(name) {
                Some(code) => return Some((Ok(plain(code)), name.len() + 2)),
                None if self.is_text => {}
                None => return Some((Err(UnknownKey { name: name.to_owned() }), name.len() + 2)),
            }
        }
        let held = self.rest.strip_prefix('^').filter(|_| !self.is_text).and_then(|rest| rest.chars().next());
        Some(match held {
            Some(c) => {
                let code = KeyCode::Char(c.to_ascii_lowercase());
                (Ok(KeyEvent::new(code, KeyModifiers::CONTROL)), 1 + c.len_utf8())
            }
            None => (Ok(plain(KeyCode::Char(first))), first.len_utf8()),
        })
    }
}

impl Iterator for TypedKeys<'_> {
    type Item = Result<KeyEvent, UnknownKey>;

    fn next(&mut self) -> Option<Self::Item> {
        let (key, length) = self.first()?;
        self.rest = &self.rest[length..];
        match &key {
            Ok(KeyEvent { code: KeyCode::Char('/'), .. }) => self.is_text = true,
            Ok(KeyEvent { code: KeyCode::Enter | KeyCode::Esc, .. }) => self.is_text = false,
            _ => {}
        }
        Some(key)
    }
}

/// The word in `<>` at the beginning; `<` alone is a key.
fn name_of(keys: &str) -> Option<&str> {
    let (name, _) = keys.strip_prefix('<')?.split_once('>')?;
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    is_name.then_some(name)
}

fn code_of(name: &str) -> Option<KeyCode> {
    let function = name.strip_prefix('F').and_then(|number| number.parse().ok());
    let function = function.filter(|number| (1..=12).contains(number)).map(KeyCode::F);
    function.or_else(|| NAMES.iter().find(|(known, _)| *known == name).map(|(_, code)| *code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(keys: &str) -> Vec<(KeyCode, KeyModifiers)> {
        parse_keys(keys).iter().map(|key| (key.code, key.modifiers)).collect()
    }

    fn plain(code: KeyCode) -> (KeyCode, KeyModifiers) {
        (code, KeyModifiers::NONE)
    }

    #[test]
    fn scripts_name_keys() {
        let [slash, l, two] = ['/', 'l', '2'].map(|c| plain(KeyCode::Char(c)));
        let control_c = (KeyCode::Char('c'), KeyModifiers::CONTROL);
        let wanted = [slash, l, two, plain(KeyCode::Enter), control_c, plain(KeyCode::Char('<'))];
        assert_eq!(codes("/l2<Enter>^C<"), wanted);
    }

    #[test]
    fn keys_have_the_names_of_help_too() {
        let wanted = [KeyCode::PageDown, KeyCode::Char(' '), KeyCode::BackTab, KeyCode::F(6), KeyCode::PageUp];
        assert_eq!(codes("<PgDn><Space><Shift-Tab><F6><PageUp>"), wanted.map(plain));
    }

    #[test]
    fn text_may_have_what_is_a_key_elsewhere() {
        let typed: Vec<_> = "/^v<int>$".chars().map(|c| plain(KeyCode::Char(c))).collect();
        let keys = codes("/^v<int>$<Enter>^U");
        assert_eq!(keys[..typed.len()], typed);
        assert_eq!(keys[typed.len()..], [plain(KeyCode::Enter), (KeyCode::Char('u'), KeyModifiers::CONTROL)]);
    }

    #[test]
    fn a_name_that_no_key_has_is_told() {
        for keys in ["", "<>", "/l2<Enter>^C<", "<<Up>>", "<a b>", "a<b", "/v<int><Enter>"] {
            assert_eq!(checked_keys(keys).as_deref(), Ok(keys));
        }
        let told = checked_keys("]<Foo>").map_err(|error| error.to_string());
        assert!(
            told.as_ref().is_err_and(|told| told.starts_with("no key is called <Foo>; there are <Enter>")),
            "{told:?}"
        );
        assert!(checked_keys("<F13>").is_err() && checked_keys("/x<Enter><Entr>").is_err());
    }
}
