//! Reads the configuration file: how screens begin, which keys they know, and all that is wrong with it.
//!
//! What is wrong is reported with its place and left at its default; perfprop starts all the same.

use std::fmt::Write as _;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::complaint::{Complaint, unknown};
use super::figures::ShownValues;
use super::keys::{BINDINGS, KeyError, Keymap};
use super::options::QuitAction;
use super::screen::Screen;
use super::symbols::GlyphSet;
use crate::monitor::{Measure, MeasureChoice};

/// What a configuration file can say. `None` is what an option of the command line or the
/// environment decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The theme's name or path.
    pub theme: Option<String>,
    /// The theme on a light background; `theme` where `None`.
    pub theme_light: Option<String>,
    /// The glyphs; by the locale where `None`.
    pub symbols: Option<GlyphSet>,
    /// Screen to begin with.
    pub screen: Option<Screen>,
    /// Units to begin with.
    pub units: Option<MeasureChoice>,
    /// Corrected or raw numbers at first.
    pub values: Option<ShownValues>,
    /// Whether the mouse is perfprop's at first.
    pub mouse: bool,
    /// Milliseconds between the numbers on screen.
    pub interval: Option<u64>,
    /// What becomes of a command that still runs.
    pub on_quit: Option<QuitAction>,
    /// The folder that recordings and exports are saved in.
    pub save_in: Option<PathBuf>,
    /// Keys and their actions.
    pub keymap: Keymap,
}

/// A key of the file: its name, its default as TOML, and what it means.
struct Setting {
    name: &'static str,
    default: &'static str,
    words: &'static str,
}

const SETTINGS: [Setting; 10] = [
    Setting { name: "theme", default: "\"terminal\"", words: "a theme's name, or the path of its file" },
    Setting { name: "theme_light", default: "\"terminal\"", words: "the theme on a light background" },
    Setting { name: "symbols", default: "\"auto\"", words: "auto (by the locale), unicode or ascii" },
    Setting { name: "screen", default: "\"events\"", words: "the first screen" },
    Setting {
        name: "units",
        default: "\"usual\"",
        words: "usual (of each event), cpu-second, second, instructions or total",
    },
    Setting { name: "values", default: "\"corrected\"", words: "corrected or raw" },
    Setting { name: "mouse", default: "false", words: "whether the mouse is perfprop's; if not, it selects text" },
    Setting { name: "interval", default: "1000", words: "milliseconds between the numbers on screen" },
    Setting { name: "on_quit", default: "\"ask\"", words: "what becomes of a running command: ask, kill or detach" },
    Setting { name: "save_in", default: "\".\"", words: "the folder for recordings and exports" },
];

const UNITS: [(&str, MeasureChoice); 5] = [
    ("usual", MeasureChoice::Usual),
    ("cpu-second", MeasureChoice::Every(Measure::PerCpuSecond)),
    ("second", MeasureChoice::Every(Measure::PerSecond)),
    ("instructions", MeasureChoice::Every(Measure::PerKiloInstruction)),
    ("total", MeasureChoice::Every(Measure::Total)),
];
const VALUES: [(&str, ShownValues); 2] = [("corrected", ShownValues::Corrected), ("raw", ShownValues::Raw)];
const ON_QUIT: [(&str, QuitAction); 3] =
    [("ask", QuitAction::Ask), ("kill", QuitAction::Kill), ("detach", QuitAction::Detach)];
const SYMBOLS: [(&str, Option<GlyphSet>); 3] =
    [("auto", None), ("unicode", Some(GlyphSet::Unicode)), ("ascii", Some(GlyphSet::Ascii))];

/// The range of `interval`, in milliseconds: up to a day.
const INTERVALS: std::ops::RangeInclusive<i64> = 1..=86_400_000;

impl Config {
    /// Reads a file's text; `file` is its name in complaints.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Complaint>) {
        let (table, errors) = DeTable::parse_recoverable(text);
        let mut reader = ConfigReader { file, text, config: Self::default(), complaints: Vec::new() };
        for error in errors {
            reader.complain(error.span().unwrap_or(0..0), error.message().to_owned());
        }
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("keys", DeValue::Table(keys)) => reader.keys(keys),
                ("keys", _) => reader.complain(value.span(), "[keys] must be a section".into()),
                (name, _) => reader.setting(name, key, value),
            }
        }
        reader.complaints.sort_by_key(|complaint| (complaint.line, complaint.column));
        (reader.config, reader.complaints)
    }

    /// A file that says what holds without one, every line with its meaning.
    pub fn default_text() -> String {
        let mut text =
            String::from("# perfprop's configuration. Everything here is the default: keep what you change.\n\n");
        for Setting { name, default, words } in SETTINGS {
            let _ = writeln!(text, "# {words}\n{name} = {default}");
        }
        text.push_str("\n[keys]\n");
        for binding in BINDINGS {
            let keys: Vec<_> = binding.spelled().map(|key| toml::Value::String(key).to_string()).collect();
            let _ = writeln!(text, "# {}\n{} = [{}]", binding.words, binding.name, keys.join(", "));
        }
        text
    }
}

type TomlValue<'i> = Spanned<DeValue<'i>>;

struct ConfigReader<'a> {
    file: &'a str,
    text: &'a str,
    config: Config,
    complaints: Vec<Complaint>,
}

impl ConfigReader<'_> {
    fn setting(&mut self, name: &str, key: &Spanned<std::borrow::Cow<'_, str>>, value: &TomlValue<'_>) {
        match name {
            "theme" => self.config.theme = self.string(name, value),
            "theme_light" => self.config.theme_light = self.string(name, value),
            "save_in" => self.config.save_in = self.string(name, value).map(PathBuf::from),
            "symbols" => self.config.symbols = self.one_of(name, value, &SYMBOLS).flatten(),
            "units" => self.config.units = self.one_of(name, value, &UNITS),
            "values" => self.config.values = self.one_of(name, value, &VALUES),
            "on_quit" => self.config.on_quit = self.one_of(name, value, &ON_QUIT),
            "screen" => {
                let names = Screen::ALL.map(|screen| (screen.word(), screen));
                self.config.screen = self.one_of(name, value, &names);
            }
            "mouse" => match value.get_ref().as_bool() {
                Some(mouse) => self.config.mouse = mouse,
                None => self.complain(value.span(), "mouse is true or false".into()),
            },
            "interval" => {
                let number = value.get_ref().as_integer().and_then(|number| number.as_str().parse::<i64>().ok());
                match number.filter(|number| INTERVALS.contains(number)) {
                    Some(number) => self.config.interval = Some(number.unsigned_abs()),
                    None => self.complain(value.span(), "interval is a number of milliseconds, 1 to 86400000".into()),
                }
            }
            other => {
                let known = SETTINGS.iter().map(|setting| setting.name).chain(["keys"]);
                self.complain(key.span(), unknown("key", other, known));
            }
        }
    }

    fn string(&mut self, name: &str, value: &TomlValue<'_>) -> Option<String> {
        let text = value.get_ref().as_str().map(str::to_owned);
        if text.is_none() {
            self.complain(value.span(), format!("{name} must be a string"));
        }
        text
    }

    fn one_of<T: Copy>(&mut self, name: &str, value: &TomlValue<'_>, choices: &[(&str, T)]) -> Option<T> {
        let word = value.get_ref().as_str();
        let found = choices.iter().find(|(choice, _)| Some(*choice) == word).map(|(_, found)| *found);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
            self.complain(value.span(), format!("{name} is one of {}", names.join(", ")));
        }
        found
    }

    fn keys(&mut self, section: &DeTable<'_>) {
        let lists: Vec<_> = section.iter().map(|(action, value)| (action, value, key_list(value))).collect();
        // Actions may exchange keys.
        lists
            .iter()
            .filter(|(.., keys)| keys.is_some())
            .for_each(|(action, ..)| self.config.keymap.free(action.get_ref()));
        for (action, value, keys) in lists {
            let Some(keys) = keys else {
                self.complain(value.span(), "keys are strings, or a list of them: [\"z\", \"Ctrl-Z\"]".into());
                continue;
            };
            let Err(error) = self.config.keymap.bind(action.get_ref(), &keys) else { continue };
            self.config.keymap.reset(action.get_ref());
            match error {
                KeyError::Action(name) => {
                    let known = BINDINGS.iter().map(|binding| binding.name);
                    self.complain(action.span(), unknown("action", &name, known));
                }
                KeyError::Key(name) => self.complain(
                    value.span(),
                    format!("no key is called \"{name}\": a character, ^C, F1 to F12, Up, Enter, Esc, Tab, Space ..."),
                ),
                KeyError::Taken { key, by } => {
                    self.complain(value.span(), format!("{key} already asks for {by}; give that other keys, too"));
                }
            }
        }
    }

    fn complain(&mut self, span: std::ops::Range<usize>, message: String) {
        self.complaints.push(Complaint::at(self.file, self.text, span, message));
    }
}

/// The keys of a string, or of a list of them.
fn key_list<'a>(value: &'a TomlValue<'_>) -> Option<Vec<&'a str>> {
    match value.get_ref() {
        DeValue::String(one) => Some(vec![one.as_ref()]),
        DeValue::Array(list) => list.iter().map(|value| value.get_ref().as_str()).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn complaints(text: &str) -> Vec<String> {
        Config::parse("config.toml", text).1.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_printed_default_is_the_default() {
        let (config, complaints) = Config::parse("config.toml", &Config::default_text());
        assert_eq!(complaints, []);
        assert_eq!(config.keymap, Keymap::default());
        assert_eq!((config.symbols, config.mouse, config.interval), (None, false, Some(1000)));
        assert_eq!((config.screen, config.units), (Some(Screen::default()), Some(MeasureChoice::default())));
        assert_eq!((config.values, config.on_quit), (Some(ShownValues::default()), Some(QuitAction::default())));
    }

    #[test]
    fn an_empty_file_changes_nothing() {
        assert_eq!(Config::parse("config.toml", ""), (Config::default(), Vec::new()));
    }

    #[test]
    fn what_is_wrong_has_a_place_and_the_rest_counts() {
        let text = "thme = \"dark\"\ninterval = 0\nunits = \"total\"\n[keys]\nfreze = [\"p\"]\nsave = [\"q\"]\nquit = 3\nback = \"Hyper\"\n";
        assert_eq!(
            complaints(text),
            [
                "config.toml:1:1: unknown key \"thme\"; did you mean \"theme\"?",
                "config.toml:2:12: interval is a number of milliseconds, 1 to 86400000",
                "config.toml:5:1: unknown action \"freze\"; did you mean \"freeze\"?",
                "config.toml:6:8: q already asks for quit; give that other keys, too",
                "config.toml:7:8: keys are strings, or a list of them: [\"z\", \"Ctrl-Z\"]",
                "config.toml:8:8: no key is called \"Hyper\": a character, ^C, F1 to F12, Up, Enter, Esc, Tab, Space ...",
            ]
        );
        assert_eq!(Config::parse("", text).0.units, Some(MeasureChoice::Every(Measure::Total)));
    }

    #[test]
    fn actions_exchange_keys_in_any_order() {
        for text in ["[keys]\nquit = \"Q\"\nfreeze = \"q\"\n", "[keys]\nfreeze = [\"q\"]\nquit = [\"Q\"]\n"] {
            let (config, complaints) = Config::parse("config.toml", text);
            assert_eq!(complaints, []);
            let mut wanted = Keymap::default();
            assert_eq!((wanted.bind("quit", &["Q"]), wanted.bind("freeze", &["q"])), (Ok(()), Ok(())));
            assert_eq!(config.keymap, wanted);
        }
        // What is refused keeps its keys.
        assert_eq!(Config::parse("", "[keys]\nsave = \"q\"\nback = \"Hyper\"\n").0.keymap, Keymap::default());
    }

    #[test]
    fn broken_toml_is_told_with_its_place() {
        let words = complaints("theme = \"dark\nmouse = true\n");
        assert!(words[0].starts_with("config.toml:1:"), "{words:?}");
    }

    proptest! {
        #[test]
        fn no_text_is_too_much(text in "(theme|mouse|\\[keys\\]|=|\"|\\[|\\]|\n|[ -~]){0,40}") {
            let _ = Config::parse("config.toml", &text);
        }
    }
}
