//! Maps keys to what they mean on a screen. Help and footer are made from the same table.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::screen::Screen;
use super::symbols::GlyphSet;

/// Actions that keys request.
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
    Axis,
    Shorter,
    Longer,
    Output,
    Save,
    Graph,
    Listing,
    Emphasis,
    Chains,
    SortFunctions,
    ShortNames,
    Levels,
    Restart,
    Zoom,
    Search,
    Source,
    NextSampledLine,
    PreviousSampledLine,
    ScrollLeft,
    ScrollRight,
    NextHit,
    PreviousHit,
    FindSame,
    GoLeft,
    GoRight,
    Fold,
    Unfold,
    Toggle,
    FoldAll,
    UnfoldAll,
    NextSampled,
    PreviousSampled,
    Narrow,
    Widen,
    Pause,
    StepBack,
    StepForward,
    Slower,
    Faster,
    Jump,
    Range,
    Mark,
    NextMark,
    NextChange,
    PreviousChange,
    Copy,
    Export,
    Mouse,
    Theme,
    Redraw,
    Suspend,
}

/// A key with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyChord {
    code: KeyCode,
    control: bool,
}

/// Keys of one action.
#[derive(Debug)]
pub(super) struct KeyBinding {
    /// Default keys of the action.
    keys: &'static [KeyChord],
    pub(super) action: Action,
    /// Name of the action in the configuration.
    pub(super) name: &'static str,
    /// What it does, for the help screen.
    pub(super) words: &'static str,
    /// A word for the footer, which shows as many as there is room for, in the table's order.
    pub(super) hint: Option<&'static str>,
    /// The screens it works on; all if empty.
    on: &'static [Screen],
}

const fn key(c: char) -> KeyChord {
    KeyChord { code: KeyCode::Char(c), control: false }
}

const fn ctrl(c: char) -> KeyChord {
    KeyChord { code: KeyCode::Char(c), control: true }
}

const fn code(code: KeyCode) -> KeyChord {
    KeyChord { code, control: false }
}

const LISTS: &[Screen] = &[Screen::Events, Screen::Relations, Screen::Log, Screen::Threads, Screen::Compare];
const PAGED: &[Screen] = &[
    Screen::Events,
    Screen::Relations,
    Screen::Profile,
    Screen::Groups,
    Screen::Log,
    Screen::Threads,
    Screen::Compare,
    Screen::Source,
];
const TABLES: &[Screen] = &[Screen::Events, Screen::Threads, Screen::Compare];
const VALUES: &[Screen] = &[Screen::Events, Screen::Detail, Screen::Relations, Screen::Profile, Screen::Compare];
const FOLDED: &[Screen] = &[Screen::Events, Screen::Profile];
const CHANGING: &[Screen] = &[Screen::Events, Screen::Detail, Screen::Log];
const TIMES: &[Screen] = &[Screen::Events, Screen::Detail, Screen::Profile];
const PROFILE: &[Screen] = &[Screen::Profile];
const SOURCE: &[Screen] = &[Screen::Source];

macro_rules! bindings {
    ($($action:expr, $name:literal, [$($key:expr),*], $words:literal, $hint:expr, $on:expr;)*) => {
        &[$(KeyBinding { keys: &[$($key),*], action: $action, name: $name, words: $words, hint: $hint, on: $on },)*]
    };
}

/// All bindings. The order is that of the help screen and of the footer's hints.
pub(super) const BINDINGS: &[KeyBinding] = bindings! {
    Action::Up, "up", [code(KeyCode::Up), key('k')], "one line up", None, &[];
    Action::Down, "down", [code(KeyCode::Down), key('j')], "one line down", Some("move"), &[];
    Action::PageUp, "page-up", [code(KeyCode::PageUp), ctrl('b')], "a page up", None, PAGED;
    Action::PageDown, "page-down", [code(KeyCode::PageDown), ctrl('f')], "a page down", None, PAGED;
    Action::HalfUp, "half-up", [ctrl('u')], "half a page up", None, PAGED;
    Action::HalfDown, "half-down", [ctrl('d')], "half a page down", None, PAGED;
    Action::First, "first", [key('g'), code(KeyCode::Home)], "go to the first line", None, &[];
    Action::Last, "last", [key('G'), code(KeyCode::End)], "go to the last line", None, &[];
    Action::Open, "open", [code(KeyCode::Enter)], "open: details, a thread's stacks, or functions that differ", Some("detail"), TABLES;
    Action::Filter, "filter", [key('/')], "filter by words or a glob; lower case matches both", Some("filter"), LISTS;
    Action::NextColumn, "sort-next", [key('s'), code(KeyCode::F(6)), key('>'), code(KeyCode::Right), key('l')],
        "sort by the next column", Some("sort"), TABLES;
    Action::PreviousColumn, "sort-previous", [key('<'), code(KeyCode::Left), key('h')], "sort by the previous column", None,
        TABLES;
    Action::Invert, "sort-invert", [key('I')], "reverse the order", None, TABLES;
    Action::Toggle, "toggle", [key(' ')], "unfold or fold a line: threads, CPUs, calls", None, FOLDED;
    Action::Unfold, "unfold", [key('+')], "unfold the line", None, FOLDED;
    Action::Fold, "fold", [key('-')], "fold the line", None, FOLDED;
    Action::UnfoldAll, "unfold-all", [key('E')], "unfold all lines", None, FOLDED;
    Action::FoldAll, "fold-all", [key('C')], "fold all lines", None, FOLDED;
    Action::NextEvent, "next-event", [key(']'), code(KeyCode::Right), key('l')], "the next event", None, &[Screen::Detail];
    Action::PreviousEvent, "previous-event", [key('['), code(KeyCode::Left), key('h')], "the previous event", None, &[Screen::Detail];
    Action::Output, "output", [key('o'), code(KeyCode::Right), key('l'), code(KeyCode::Left), key('h')],
        "perfprop's findings, or the command's output", Some("output"), &[Screen::Log];
    Action::Graph, "graph", [key('t')], "show or hide the graph", Some("graph"),
        &[Screen::Relations];
    Action::NextSampled, "next-sampled", [key(']')], "the next event: of the sampled ones, and of regions", Some("event"), PROFILE;
    Action::PreviousSampled, "previous-sampled", [key('[')], "the previous event: of the sampled ones, and of regions", None, PROFILE;
    Action::Narrow, "region-events", [key('r')], "what events counted in the selected region", Some("region's events"), PROFILE;
    Action::Zoom, "zoom", [code(KeyCode::Enter)], "zoom into a call; again, or in a list: its source", Some("zoom"), PROFILE;
    Action::Source, "source", [key('v')], "source or instructions of the function, with samples", Some("source"), PROFILE;
    Action::NextSampledLine, "next-line", [key('n')], "the next line that was sampled", Some("next"), SOURCE;
    Action::PreviousSampledLine, "previous-line", [key('N')], "the line before that was sampled", None, SOURCE;
    Action::ScrollLeft, "scroll-left", [code(KeyCode::Left), key('h')], "go back to the beginning of long lines", None, SOURCE;
    Action::ScrollRight, "scroll-right", [code(KeyCode::Right), key('l')], "see more of long lines", Some("scroll"), SOURCE;
    Action::Search, "search", [key('/')], "search by regular expression; lower case matches both", Some("search"), PROFILE;
    Action::NextHit, "next-hit", [key('n')], "the next frame that matches", None, PROFILE;
    Action::PreviousHit, "previous-hit", [key('N')], "the previous frame that matches", None, PROFILE;
    Action::FindSame, "find-same", [key('#')], "search for the selected name", None, PROFILE;
    Action::Listing, "listing", [key('t')], "next view: functions, callers, call tree, modules", Some("next view"),
        PROFILE;
    Action::Chains, "chains", [key('e')], "show frames that only pass on as one line, or all frames", Some("all frames"), PROFILE;
    Action::SortFunctions, "sort-functions", [key('s'), code(KeyCode::F(6)), key('>'), key('<')], "sort functions by SELF or by TOTAL",
        Some("sort"), PROFILE;
    Action::ShortNames, "short-names", [key('a')], "names without arguments of templates and functions, or whole", None, PROFILE;
    Action::Levels, "levels", [key('B')], "by thread name, thread, process, CPU, or by none of them", Some("by"), PROFILE;
    Action::Restart, "restart", [key('X')], "live: forget the samples so far, and show those from now on", Some("restart"), PROFILE;
    Action::GoLeft, "left", [code(KeyCode::Left), key('h')], "fold, or go to the caller; in the icicle, go left", None, PROFILE;
    Action::GoRight, "right", [code(KeyCode::Right), key('l')], "unfold, or go to the first call; in the icicle, go right",
        None, PROFILE;
    Action::Emphasis, "enlarge", [key('m')], "show the icicle, the table, or both", Some("enlarge"), PROFILE;
    Action::Widen, "region-back", [key('r')], "back from a region's events to the profile", Some("back"), &[Screen::Events];
    Action::Freeze, "freeze", [key('z'), key('Z')], "freeze the view; counting goes on", Some("freeze"), &[];
    Action::Basis, "values", [key('c')], "show corrected numbers, raw numbers, or both", Some("raw"), VALUES;
    Action::Measure, "units", [key('u')], "unit: usual, /cpu-s, /s, /kinst, total", Some("units"), VALUES;
    Action::Axis, "axis", [key('a')], "the vertical axis begins at zero, or at the minimum", None, &[Screen::Events, Screen::Detail];
    Action::Longer, "longer", [key('}')], "a longer time in charts, or in the profile", None, TIMES;
    Action::Shorter, "shorter", [key('{')], "a shorter time: in Profile, the last 60 s or 10 s", None, TIMES;
    Action::Save, "save", [key('S')], "save the recording so far", Some("save"), &[];
    Action::Go(Screen::Events), "events", [key('1')], "Events", None, &[];
    Action::Go(Screen::Detail), "detail", [key('2')], "Detail of the selected event", None, &[];
    Action::Go(Screen::Relations), "relations", [key('3')], "Relations", None, &[];
    Action::Go(Screen::Profile), "profile", [key('4')], "Profile of call stacks and regions", None, &[];
    Action::Go(Screen::Groups), "groups", [key('5')], "Groups: what is counted together, and when", None, &[];
    Action::Go(Screen::Log), "log", [key('6')], "Log", None, &[];
    Action::Go(Screen::Threads), "threads", [key('7')], "Threads: what each does, and what it waits for", None, &[];
    Action::Go(Screen::Compare), "compare", [key('0')], "Compare: recordings side by side", None, &[];
    Action::NextScreen, "next-screen", [code(KeyCode::Tab)], "the next screen", None, &[];
    Action::PreviousScreen, "previous-screen", [code(KeyCode::BackTab)], "the previous screen", None, &[];
    Action::Back, "back", [code(KeyCode::Esc)], "go one level back, or clear a filter", Some("leave range"), &[];
    Action::Pause, "pause", [key('p')], "replay: pause or resume; at its end, begin again", Some("pause"), &[];
    Action::StepBack, "step-back", [key(',')], "replay: one interval back; moves a range", None, &[];
    Action::StepForward, "step-forward", [key('.')], "replay: one interval forward; moves a range", Some("step"), &[];
    Action::Slower, "slower", [key('(')], "replay: slower", None, &[];
    Action::Faster, "faster", [key(')')], "replay: faster", None, &[];
    Action::Jump, "jump", [key(':')], "replay: go to a time", None, &[];
    Action::Range, "range", [key('R')], "replay: begin a range here, or end it; Esc leaves it", Some("range"), &[];
    Action::Mark, "mark", [key('b')], "replay: set or remove a mark at this time", None, &[];
    Action::NextMark, "next-mark", [key('\'')], "replay: go to the next mark", None, &[];
    Action::NextChange, "next-change", [key('n')], "replay: the next change of level; in Detail, the event's", None, CHANGING;
    Action::PreviousChange, "previous-change", [key('N')], "replay: the previous change of level", None, CHANGING;
    Action::Copy, "copy", [key('y')], "copy the line to the clipboard", None, &[];
    Action::Export, "export", [key('x')], "write the screen to a file", None, &[];
    Action::Mouse, "mouse", [key('M')], "use the mouse, or leave it to the terminal", None, &[];
    Action::Theme, "theme", [key('T')], "the next theme", None, &[];
    Action::Redraw, "redraw", [ctrl('l')], "redraw the screen", None, &[];
    Action::Suspend, "suspend", [ctrl('z')], "suspend perfprop; fg resumes it", None, &[];
    Action::Help, "help", [key('?'), code(KeyCode::F(1))], "show this help", None, &[];
    Action::Quit, "quit", [key('q'), code(KeyCode::F(10)), ctrl('c')], "quit", None, &[];
};

/// A line of the table of keys, for texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHelp {
    /// The keys, as help shows them: `↑ k`.
    pub keys: String,
    /// Description of what the keys do.
    pub words: &'static str,
    /// The screens they work on; empty for all.
    pub screens: Vec<&'static str>,
}

/// The default keys.
pub fn key_table() -> Vec<KeyHelp> {
    let names = |keys: &[KeyChord]| keys.iter().map(|key| key.name()).collect::<Vec<_>>().join(" ");
    let help = |binding: &KeyBinding| KeyHelp {
        keys: names(binding.keys),
        words: binding.words,
        screens: binding.on.iter().map(|screen| screen.name()).collect(),
    };
    BINDINGS.iter().map(help).collect()
}

/// Which keys ask for what: the table's, or those of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keymap {
    /// The keys of each binding, in the table's order.
    keys: Vec<Vec<KeyChord>>,
}

impl Default for Keymap {
    fn default() -> Self {
        Self { keys: BINDINGS.iter().map(|binding| binding.keys.to_vec()).collect() }
    }
}

/// A binding with the keys that it has now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'a> {
    pub(super) binding: &'static KeyBinding,
    pub(super) keys: &'a [KeyChord],
}

/// Why keys can't be given to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// No action has the name.
    Action(String),
    /// No key has the name.
    Key(String),
    /// The key already asks for the other action on a screen where both work.
    Taken { key: String, by: &'static str },
}

impl Keymap {
    /// Gives an action other keys, none if `keys` is empty. Keys that were another action's before
    /// stay with that one, and nothing changes.
    pub(super) fn bind(&mut self, action: &str, keys: &[&str]) -> Result<(), KeyError> {
        let place = BINDINGS.iter().position(|binding| binding.name == action);
        let place = place.ok_or_else(|| KeyError::Action(action.to_owned()))?;
        let parsed: Result<Vec<_>, _> =
            keys.iter().map(|name| KeyChord::parse(name).ok_or_else(|| KeyError::Key((*name).to_owned()))).collect();
        let parsed = parsed?;
        for (other, taken) in self.keys.iter().enumerate().filter(|(other, _)| *other != place) {
            let key = parsed.iter().find(|key| taken.contains(key));
            if let Some(key) = key.filter(|_| BINDINGS[other].meets(&BINDINGS[place])) {
                return Err(KeyError::Taken { key: key.name(), by: BINDINGS[other].name });
            }
        }
        self.keys[place] = parsed;
        Ok(())
    }

    /// Takes its keys from an action, so that others may have them.
    pub(super) fn free(&mut self, action: &str) {
        if let Some(place) = BINDINGS.iter().position(|binding| binding.name == action) {
            self.keys[place].clear();
        }
    }

    /// Gives an action its keys of the table again, but for those that others have by now.
    pub(super) fn reset(&mut self, action: &str) {
        let Some(binding) = BINDINGS.iter().find(|binding| binding.name == action) else { return };
        let names: Vec<_> = binding.keys.iter().map(|key| key.name()).collect();
        let mut own: Vec<&str> = names.iter().map(String::as_str).collect();
        own.retain(|name| self.clone().bind(action, &[name]).is_ok());
        // Each of them can be had.
        let _ = self.bind(action, &own);
    }

    /// The first key of an action that works everywhere; empty where it has none.
    pub(super) fn key_of(&self, action: Action) -> String {
        let found = BINDINGS.iter().zip(&self.keys).find(|(binding, _)| binding.action == action);
        found.and_then(|(_, keys)| keys.first()).map_or_else(String::new, |key| key.name())
    }

    /// What the key asks for on this screen.
    pub(super) fn find(&self, screen: Screen, event: KeyEvent) -> Option<Action> {
        let key = KeyChord::from(event);
        self.on(screen).find(|bound| bound.keys.contains(&key)).map(|bound| bound.binding.action)
    }

    /// What keys there are on a screen, in the table's order.
    pub(super) fn on(&self, screen: Screen) -> impl Iterator<Item = Bound<'_>> {
        let all = BINDINGS.iter().zip(&self.keys);
        all.filter(move |(binding, keys)| binding.works_on(screen) && !keys.is_empty())
            .map(|(binding, keys)| Bound { binding, keys })
    }
}

impl KeyBinding {
    /// Whether it works on all screens.
    pub(super) fn works_everywhere(&self) -> bool {
        self.on.is_empty()
    }

    fn works_on(&self, screen: Screen) -> bool {
        self.works_everywhere() || self.on.contains(&screen)
    }

    /// Whether both work on some screen.
    fn meets(&self, other: &Self) -> bool {
        Screen::ALL
            .into_iter()
            .chain([Screen::Source, Screen::Compare])
            .any(|screen| self.works_on(screen) && other.works_on(screen))
    }

    /// Whether it works everywhere.
    pub(super) fn is_global(&self) -> bool {
        self.on.is_empty()
    }

    /// Keys of the action as the configuration would name them.
    pub(super) fn spelled(&self) -> impl Iterator<Item = String> {
        self.keys.iter().map(|key| key.spelled())
    }
}

impl Bound<'_> {
    /// Keys of the action in words: `↑ k`.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.keys.iter().map(|key| key.name()).collect();
        names.join(" ")
    }
}

/// Names of keys as a terminal can show them: without arrows in words, `Up k`. An ASCII arrow would be a key itself.
pub(super) fn keys_in(glyphs: GlyphSet, names: &str) -> String {
    if glyphs == GlyphSet::Unicode {
        return names.to_owned();
    }
    let words = [("↑↓", "Up/Down"), ("←→", "Left/Right"), ("↑", "Up"), ("↓", "Down"), ("←", "Left"), ("→", "Right")];
    words.iter().fold(names.to_owned(), |names, (arrow, word)| names.replace(arrow, word))
}

/// Keys that aren't a character, as the configuration names them.
const NAMED: [(&str, KeyCode); 13] = [
    ("Up", KeyCode::Up),
    ("Down", KeyCode::Down),
    ("Left", KeyCode::Left),
    ("Right", KeyCode::Right),
    ("PgUp", KeyCode::PageUp),
    ("PgDn", KeyCode::PageDown),
    ("Home", KeyCode::Home),
    ("End", KeyCode::End),
    ("Enter", KeyCode::Enter),
    ("Esc", KeyCode::Esc),
    ("Tab", KeyCode::Tab),
    ("Shift-Tab", KeyCode::BackTab),
    ("Space", KeyCode::Char(' ')),
];

impl KeyChord {
    /// A character, `^C` or `Ctrl-C`, `F1` to `F12`, or one of the named keys.
    fn parse(text: &str) -> Option<Self> {
        let mut characters = text.chars();
        if let (Some(c), None) = (characters.next(), characters.next()) {
            return Some(key(c)).filter(|_| !c.is_control());
        }
        let held = text.strip_prefix("Ctrl-").or_else(|| text.strip_prefix('^'));
        if let Some(rest) = held {
            return Self::parse(&rest.to_lowercase())
                .filter(|key| !key.control)
                .map(|key| Self { control: true, ..key });
        }
        let function = text.strip_prefix('F').and_then(|number| number.parse().ok());
        if let Some(number) = function.filter(|number| (1..=12).contains(number)) {
            return Some(code(KeyCode::F(number)));
        }
        NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, named)| code(*named))
    }

    /// Name of the key in the configuration.
    fn spelled(self) -> String {
        match self.code {
            KeyCode::Char(c) if self.control => format!("^{}", c.to_ascii_uppercase()),
            KeyCode::F(number) => format!("F{number}"),
            other => match (NAMED.iter().find(|(_, named)| *named == other), other) {
                (Some((name, _)), _) => (*name).into(),
                (None, KeyCode::Char(c)) => c.into(),
                (None, other) => format!("{other:?}"),
            },
        }
    }
}

impl From<KeyEvent> for KeyChord {
    /// Terminals differ in whether they tell Shift beside a letter that is already a capital.
    fn from(event: KeyEvent) -> Self {
        Self { code: event.code, control: event.modifiers.contains(KeyModifiers::CONTROL) }
    }
}

impl KeyChord {
    pub(super) fn name(self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "Space".into(),
            KeyCode::Char(c) if self.control => c.to_ascii_uppercase().to_string(),
            KeyCode::Char(c) => crate::names::shown(c.encode_utf8(&mut [0; 4])).into_owned(),
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

    const SCREENS: [Screen; 8] = {
        let [a, b, c, d, e, f, g] = Screen::ALL;
        [a, b, c, d, e, f, g, Screen::Source]
    };

    #[test]
    fn no_key_means_two_things_on_a_screen() {
        for screen in SCREENS {
            let mut seen: Vec<KeyChord> = Vec::new();
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
            assert_eq!(Keymap::default().find(Screen::Events, event), Some(Action::Save));
        }
        let event = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(Keymap::default().find(Screen::Log, event), Some(Action::Quit));
    }

    #[test]
    fn every_binding_works_somewhere_and_says_what_it_does() {
        for binding in BINDINGS {
            assert!(SCREENS.iter().any(|&screen| binding.works_on(screen)));
            assert!(!binding.words.is_empty() && !binding.keys.is_empty());
        }
    }

    #[test]
    fn every_key_is_read_as_it_is_spelled() {
        for binding in BINDINGS {
            for key in binding.keys {
                assert_eq!(KeyChord::parse(&key.spelled()), Some(*key), "{}", key.spelled());
            }
        }
        assert_eq!(KeyChord::parse("Ctrl-X"), Some(ctrl('x')));
        for bad in ["", "F0", "F13", "Hyper", "^", "^^a", "ab"] {
            assert!(KeyChord::parse(bad).is_none() || bad == "^", "{bad}");
        }
    }

    #[test]
    fn names_of_actions_differ() {
        for (i, binding) in BINDINGS.iter().enumerate() {
            assert!(BINDINGS[..i].iter().all(|other| other.name != binding.name), "{}", binding.name);
        }
    }

    #[test]
    fn arrows_have_words_where_a_terminal_has_none() {
        let ascii = |names| keys_in(GlyphSet::Ascii, names);
        assert_eq!([ascii("↑ k"), ascii("s F6 > → l"), ascii("↑↓")], ["Up k", "s F6 > Right l", "Up/Down"]);
        assert_eq!(keys_in(GlyphSet::Unicode, "↑ k"), "↑ k");
    }

    #[test]
    fn a_key_is_taken_from_nobody() {
        let press = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE);
        let mut keymap = Keymap::default();
        assert_eq!(keymap.bind("freeze", &["w", "F3"]), Ok(()));
        assert_eq!(keymap.find(Screen::Log, press('w')), Some(Action::Freeze));
        assert_eq!(keymap.find(Screen::Log, press('z')), None);
        let taken = KeyError::Taken { key: "q".into(), by: "quit" };
        assert_eq!(keymap.bind("save", &["q"]), Err(taken));
        assert_eq!(keymap.find(Screen::Log, press('S')), Some(Action::Save));
        assert_eq!(keymap.bind("sav", &["w"]), Err(KeyError::Action("sav".into())));
        assert_eq!(keymap.bind("save", &["Hyper-w"]), Err(KeyError::Key("Hyper-w".into())));
        // The same key for two actions that never meet on a screen.
        assert_eq!(keymap.bind("sort-invert", &["o"]), Ok(()));
    }
}
