//! A key in, what it means on a screen out. Help and footer are made from the same table.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::model::Screen;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Help,
    Back,
    Go(Screen),
    NextScreen,
    PreviousScreen,
    Up,
    Down,
    PageUp,
    PageDown,
    HalfUp,
    HalfDown,
    First,
    Last,
    Open,
    NextEvent,
    PreviousEvent,
    Filter,
    NextColumn,
    PreviousColumn,
    Invert,
    Freeze,
    Basis,
    Measure,
    Shorter,
    Longer,
    Output,
    Save,
    Theme,
    Redraw,
    Suspend,
}

/// A key with what is held down with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    code: KeyCode,
    control: bool,
}

/// Keys that mean the same.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) keys: &'static [Key],
    pub(super) action: Action,
    /// What it does, for the help screen.
    pub(super) words: &'static str,
    /// A word for the footer, which shows as many as there is room for, in the table's order.
    pub(super) hint: Option<&'static str>,
    /// The screens it works on; all if empty.
    on: &'static [Screen],
}

const fn key(c: char) -> Key {
    Key { code: KeyCode::Char(c), control: false }
}

const fn ctrl(c: char) -> Key {
    Key { code: KeyCode::Char(c), control: true }
}

const fn code(code: KeyCode) -> Key {
    Key { code, control: false }
}

const LISTS: &[Screen] = &[Screen::Events, Screen::Relations, Screen::Log];

macro_rules! bindings {
    ($($action:expr, [$($key:expr),*], $words:literal, $hint:expr, $on:expr;)*) => {
        &[$(Binding { keys: &[$($key),*], action: $action, words: $words, hint: $hint, on: $on },)*]
    };
}

/// All bindings. The order is that of the help screen and of the footer's hints.
pub(super) const BINDINGS: &[Binding] = bindings! {
    Action::Up, [code(KeyCode::Up), key('k')], "one up", None, &[];
    Action::Down, [code(KeyCode::Down), key('j')], "one down", Some("move"), &[];
    Action::PageUp, [code(KeyCode::PageUp), ctrl('b')], "a page up", None, LISTS;
    Action::PageDown, [code(KeyCode::PageDown), ctrl('f')], "a page down", None, LISTS;
    Action::HalfUp, [ctrl('u')], "half a page up", None, LISTS;
    Action::HalfDown, [ctrl('d')], "half a page down", None, LISTS;
    Action::First, [key('g'), code(KeyCode::Home)], "to the first", None, &[];
    Action::Last, [key('G'), code(KeyCode::End)], "to the last", None, &[];
    Action::Open, [code(KeyCode::Enter)], "the event in detail", Some("detail"), &[Screen::Events];
    Action::Filter, [key('/')], "filter: words or a glob, small letters match both", Some("filter"), LISTS;
    Action::NextColumn, [key('s'), code(KeyCode::F(6)), key('>'), code(KeyCode::Right), key('l')],
        "sort by the next column", Some("sort"), &[Screen::Events];
    Action::PreviousColumn, [key('<'), code(KeyCode::Left), key('h')], "sort by the column before", None,
        &[Screen::Events];
    Action::Invert, [key('I')], "invert the order", None, &[Screen::Events];
    Action::NextEvent, [key(']'), code(KeyCode::Right), key('l')], "the next event", None, &[Screen::Detail];
    Action::PreviousEvent, [key('['), code(KeyCode::Left), key('h')], "the event before", None, &[Screen::Detail];
    Action::Output, [key('o'), code(KeyCode::Right), key('l'), code(KeyCode::Left), key('h')],
        "what perfprop noticed, or the command's output", Some("output"), &[Screen::Log];
    Action::Freeze, [key('z'), key('Z')], "hold the view still; everything is still counted", Some("freeze"), &[];
    Action::Basis, [key('c')], "corrected numbers, raw ones, or both", Some("raw"), &[];
    Action::Measure, [key('u')], "units: per CPU second, second, 1,000 instructions, total", Some("units"), &[];
    Action::Longer, [key('}')], "show a longer time", None, &[Screen::Events, Screen::Detail];
    Action::Shorter, [key('{')], "show a shorter time", None, &[Screen::Events, Screen::Detail];
    Action::Save, [key('S')], "save what was recorded so far", Some("save"), &[];
    Action::Go(Screen::Events), [key('1')], "Events", None, &[];
    Action::Go(Screen::Detail), [key('2')], "Detail of the selected event", None, &[];
    Action::Go(Screen::Relations), [key('3')], "Relations", None, &[];
    Action::Go(Screen::Log), [key('4')], "Log", None, &[];
    Action::NextScreen, [code(KeyCode::Tab)], "the next screen", None, &[];
    Action::PreviousScreen, [code(KeyCode::BackTab)], "the screen before", None, &[];
    Action::Back, [code(KeyCode::Esc)], "one level back; clears a filter", None, &[];
    Action::Theme, [key('T')], "the next theme", None, &[];
    Action::Redraw, [ctrl('l')], "draw everything again", None, &[];
    Action::Suspend, [ctrl('z')], "to the shell; fg comes back", None, &[];
    Action::Help, [key('?'), code(KeyCode::F(1))], "this help", None, &[];
    Action::Quit, [key('q'), code(KeyCode::F(10)), ctrl('c')], "quit", None, &[];
};

/// What the key asks for on this screen.
pub(super) fn find(screen: Screen, event: KeyEvent) -> Option<Action> {
    let key = Key::from(event);
    BINDINGS.iter().find(|binding| binding.works_on(screen) && binding.keys.contains(&key)).map(|found| found.action)
}

impl Binding {
    pub(super) fn works_on(&self, screen: Screen) -> bool {
        self.on.is_empty() || self.on.contains(&screen)
    }

    /// Whether it works everywhere.
    pub(super) fn is_global(&self) -> bool {
        self.on.is_empty()
    }

    /// Its keys in words: `↑ k`.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.name()).collect();
        names.join(" ")
    }
}

impl From<KeyEvent> for Key {
    /// Terminals differ in whether they tell Shift beside a letter that is already a capital.
    fn from(event: KeyEvent) -> Self {
        Self { code: event.code, control: event.modifiers.contains(KeyModifiers::CONTROL) }
    }
}

impl Key {
    pub(super) fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".into(),
            KeyCode::Char(c) if self.control => c.to_ascii_uppercase().to_string(),
            KeyCode::Char(c) => crate::words::shown(c.encode_utf8(&mut [0; 4])).into_owned(),
            KeyCode::Up => "↑".into(),
            KeyCode::Down => "↓".into(),
            KeyCode::Left => "←".into(),
            KeyCode::Right => "→".into(),
            KeyCode::PageUp => "PgUp".into(),
            KeyCode::PageDown => "PgDn".into(),
            KeyCode::BackTab => "Shift-Tab".into(),
            KeyCode::F(number) => format!("F{number}"),
            other => format!("{other:?}"),
        };
        if self.control { format!("^{name}") } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREENS: [Screen; 4] = Screen::ALL;

    #[test]
    fn no_key_means_two_things_on_a_screen() {
        for screen in SCREENS {
            let mut seen: Vec<Key> = Vec::new();
            for binding in BINDINGS.iter().filter(|binding| binding.works_on(screen)) {
                for key in binding.keys {
                    assert!(!seen.contains(key), "{} twice on {screen:?}", key.name());
                    seen.push(*key);
                }
            }
        }
    }

    #[test]
    fn a_capital_is_found_with_and_without_shift() {
        for modifiers in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
            let event = KeyEvent::new(KeyCode::Char('S'), modifiers);
            assert_eq!(find(Screen::Events, event), Some(Action::Save));
        }
        let event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(find(Screen::Log, event), Some(Action::Quit));
    }

    #[test]
    fn every_binding_works_somewhere_and_says_what_it_does() {
        for binding in BINDINGS {
            assert!(SCREENS.iter().any(|&screen| binding.works_on(screen)));
            assert!(!binding.words.is_empty() && !binding.names().is_empty());
        }
    }
}
