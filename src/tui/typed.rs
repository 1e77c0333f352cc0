//! Parses the keys that a script or a picture presses.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Keys that are no characters, as they are written.
const NAMES: [(&str, KeyCode); 13] = [
    ("<Enter>", KeyCode::Enter),
    ("<Esc>", KeyCode::Esc),
    ("<Tab>", KeyCode::Tab),
    ("<BackTab>", KeyCode::BackTab),
    ("<Up>", KeyCode::Up),
    ("<Down>", KeyCode::Down),
    ("<Left>", KeyCode::Left),
    ("<Right>", KeyCode::Right),
    ("<PageUp>", KeyCode::PageUp),
    ("<PageDown>", KeyCode::PageDown),
    ("<Home>", KeyCode::Home),
    ("<End>", KeyCode::End),
    ("<Backspace>", KeyCode::Backspace),
];

/// Keys as a picture or a script presses them, if each that stands in `<>` is one.
///
/// # Errors
/// Names the first that isn't.
pub(crate) fn checked_keys(keys: &str) -> Result<String, String> {
    let is_name = |word: &str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let named = keys.split('<').skip(1).filter_map(|rest| Some(rest.split_once('>')?.0)).filter(|word| is_name(word));
    for word in named {
        if NAMES.iter().all(|(name, _)| name[1..name.len() - 1] != *word) {
            let names = NAMES.map(|(name, _)| name).join(", ");
            return Err(format!("no key is called <{word}>: a character, ^C, {names}"));
        }
    }
    Ok(keys.to_owned())
}

/// Each character is a key; `^C` is Control-C, and `<Enter>` is that key.
pub(super) fn parse_keys(keys: &str) -> Vec<KeyEvent> {
    let mut events = Vec::new();
    let mut rest = keys;
    while let Some(first) = rest.chars().next() {
        let named = NAMES.iter().find(|(name, _)| rest.starts_with(name));
        let control = rest.strip_prefix('^').and_then(|rest| rest.chars().next());
        let (event, length) = match (named, control) {
            (Some((name, code)), _) => (KeyEvent::new(*code, KeyModifiers::NONE), name.len()),
            (None, Some(c)) => {
                let code = KeyCode::Char(c.to_ascii_lowercase());
                (KeyEvent::new(code, KeyModifiers::CONTROL), 1 + c.len_utf8())
            }
            (None, None) => (KeyEvent::new(KeyCode::Char(first), KeyModifiers::NONE), first.len_utf8()),
        };
        events.push(event);
        rest = &rest[length..];
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_key_has_is_told() {
        assert!(["", "<>", "/l2<Enter>^C<", "<<Up>>", "<a b>", "a<b"].iter().all(|keys| checked_keys(keys).is_ok()));
        assert!(
            checked_keys("]<Foo>")
                .is_err_and(|error| error.starts_with("no key is called <Foo>: a character, ^C, <Enter>"))
        );
    }

    #[test]
    fn scripts_name_keys() {
        let keys = parse_keys("/l2<Enter>^C<");
        let codes: Vec<_> = keys.iter().map(|key| (key.code, key.modifiers)).collect();
        let plain = KeyModifiers::NONE;
        assert_eq!(
            codes,
            [
                (KeyCode::Char('/'), plain),
                (KeyCode::Char('l'), plain),
                (KeyCode::Char('2'), plain),
                (KeyCode::Enter, plain),
                (KeyCode::Char('c'), KeyModifiers::CONTROL),
                (KeyCode::Char('<'), plain),
            ]
        );
    }
}
